"""Queries for which the engine might be the wrong choice: rows that Spark has to make or has cached, and small queries.

With the engine, none may be slower than on Spark alone by more than 10 % and 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.functions import sum as total

from wallaby_lab import tpch
from wallaby_lab.bench.pipelines.pairs import Pair, PipelineSetup, measure_pair, switched, write_nowhere

#: The acceptable slowdown under `enable`: a share of Spark's time, plus milliseconds of noise.
SLOWER_MAX: Final = 0.10
NOISE_SECONDS: Final = 0.010
#: Detecting ten percent takes more runs than detecting a factor of two.
ROUNDS_FACTOR: Final = 2

Act = Callable[[SparkSession], object]


def measure_leaves(setup: PipelineSetup) -> dict[str, Any]:
    """Measure every query over leaves."""
    spark, folder = setup.spark, setup.folder
    with switched(spark, on=False):
        cached = spark.table("orders").cache()
        write_nowhere(cached)
        spark.table("orders").select("o_orderkey", "o_orderpriority", "o_totalprice").write.mode(
            "overwrite"
        ).json(str(folder / "orders.json"))
        json = spark.read.json(str(folder / "orders.json"))
    try:
        for name, act in {**_cached(cached), **_from_spark(json), **_plain(), **_small()}.items():
            setup.progress.run(name, partial(_measured, setup, name, act))
    finally:
        cached.unpersist(blocking=True)
    return {"cases": setup.progress.cases}


def _measured(setup: PipelineSetup, name: str, act: Act) -> dict[str, Any]:
    pair = measure_pair(setup, partial(act, setup.spark), rounds_factor=ROUNDS_FACTOR)
    slower = is_slower(pair)
    setup.say(
        f"leaves, {name}: {median(pair.off):.3f} s on Spark, {median(pair.on):.3f} s with the engine"
        f"{', SLOWER' if slower else ''}"
    )
    return {"slower": slower, **asdict(pair)}


def is_slower(pair: Pair) -> bool:
    """Is it too slow with the engine, both by the differences of neighbouring runs and by the medians?"""
    allowed = median(pair.off) * SLOWER_MAX + NOISE_SECONDS
    return pair.added_seconds > allowed and median(pair.on) - median(pair.off) > allowed


def _cached(orders: DataFrame) -> dict[str, Act]:
    def joined(spark: SparkSession) -> None:
        lines = spark.table("lineitem").groupBy("l_orderkey").count()
        both = orders.join(lines, col("o_orderkey") == col("l_orderkey"))
        write_nowhere(both.groupBy("o_orderpriority").agg(total("count")))

    return {
        "count of a cached table": lambda _: orders.count(),
        "groupBy of a cached table": lambda _: (
            orders.groupBy("o_orderpriority").agg(total("o_totalprice")).collect()
        ),
        "a cached table joined with an aggregate": joined,
    }


def _from_spark(json: DataFrame) -> dict[str, Act]:
    change: Any = udf(str.lower, "string")

    def of_function(spark: SparkSession) -> DataFrame:
        return spark.table("orders").groupBy(change("o_orderpriority").alias("p")).count()

    def of_json(_: SparkSession) -> DataFrame:
        return json.groupBy("o_orderpriority").agg(total("o_totalprice"))

    return {
        "a Python UDF below an aggregate, collected": lambda spark: of_function(spark).collect(),
        "a Python UDF below an aggregate, written": lambda spark: write_nowhere(of_function(spark)),
        "JSON below an aggregate, collected": lambda spark: of_json(spark).collect(),
        "JSON below an aggregate, written": lambda spark: write_nowhere(of_json(spark)),
    }


def _plain() -> dict[str, Act]:
    """Queries over one table or two, collected or written: some are worth it, others not."""
    texts = {
        "customers by segment": "select c_mktsegment, count(*) n from customer group by 1",
        "orders by customer": "select o_custkey, sum(o_totalprice) s from orders group by 1",
        "orders in the order of price": "select o_orderkey, o_totalprice from orders order by o_totalprice",
        "lines by order": "select l_orderkey, sum(l_quantity) q from lineitem group by 1",
        "lines of a year with their orders": (
            "select l_orderkey, l_partkey, o_orderdate from lineitem join orders on l_orderkey = o_orderkey "
            "where year(o_orderdate) = 1995"
        ),
        "parts and their suppliers": (
            "select p_name, s_name, ps_supplycost from partsupp join part on ps_partkey = p_partkey "
            "join supplier on ps_suppkey = s_suppkey"
        ),
        "TPC-H 6": tpch.query(6),
        "TPC-H 14": tpch.query(14),
    }
    return {f"{name}, written": partial(_write, text) for name, text in texts.items()}


def _small() -> dict[str, Act]:
    texts = {
        "nations by region": "select n_regionkey, count(*) n from nation group by 1",
        "suppliers by nation": (
            "select n_name, count(*) n from supplier join nation on s_nationkey = n_nationkey group by 1"
        ),
    }
    found: dict[str, Act] = {}
    for name, text in texts.items():
        found[f"{name}, written"] = partial(_write, text)
        found[f"{name}, collected"] = partial(_collect, text)
    found["count of a small table"] = lambda spark: spark.table("supplier").count()
    found["show of a small table"] = lambda spark: spark.table("supplier").show(5)
    return found


def _write(text: str, spark: SparkSession) -> None:
    write_nowhere(spark.sql(text))


def _collect(text: str, spark: SparkSession) -> None:
    spark.sql(text).collect()

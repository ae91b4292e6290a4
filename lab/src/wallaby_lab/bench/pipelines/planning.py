"""Measure what the engine adds to the planning of queries that stay on Spark.

Spark plans each query from its text to its physical plan, with and without the engine, and nothing runs. So the
difference is the time in which the engine examines the plan. Of such queries the CPU time in the driver is measured
too, in the thread of the JVM that plans and in Python, because other work on the machine does not count there. Some
small queries also run, because Spark plans the rest of a query again after each stage. The small tables are TPC-H at
scale 0.02, generated here: large enough for the engine to examine a plan, and too small for it to take a part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lower, udf

from wallaby_lab import tpch
from wallaby_lab.bench.pipelines.pairs import (
    Pair,
    PipelineSetup,
    measure_pair,
    switched,
    wallaby_nodes,
    write_nowhere,
)

SMALL_SCALE: Final = 0.02
#: Planning takes milliseconds, so it is measured more often than what takes seconds.
WARM_UPS_FACTOR: Final = 8
ROUNDS_FACTOR: Final = 7
_DEEP: Final = 40
_JOINS: Final = 6
#: A simple one, and those whose plans take longest to read and plan: these are put below a Python function too.
_NUMBERS: Final = (1, 2, 5, 7, 8, 9, 18, 21)

Make = Callable[[SparkSession], DataFrame]


def measure_planning(setup: PipelineSetup, small_scale: float = SMALL_SCALE) -> dict[str, Any]:
    """Measure all queries; at the end, the session has the tables of `setup.data` again."""
    small = tpch.generate(setup.folder / "small", small_scale)
    for name, make in _large().items():
        _run(setup, f"{name} (plan)", make, planned)
    tpch.register(setup.spark, small)
    try:
        for name, make in _small().items():
            _run(setup, f"{name}, small tables (plan)", make, planned)
        for name, make in _runs().items():
            _run(setup, f"{name}, small tables (run)", make, write_nowhere)
        rand = _sql("select rand() from nation")
        _run(setup, "rand() of a table, small tables (collect)", rand, _collect)
    finally:
        tpch.register(setup.spark, setup.data)
    return {"cases": setup.progress.cases, "small_scale": small_scale}


def _run(setup: PipelineSetup, name: str, make: Make, act: Callable[[DataFrame], object]) -> None:
    setup.progress.run(name, partial(_measured, setup, name, make, act))


def _measured(
    setup: PipelineSetup, name: str, make: Make, act: Callable[[DataFrame], object]
) -> dict[str, Any]:
    with switched(setup.spark, on=True):
        taken = wallaby_nodes(make(setup.spark))
    pair: Pair = measure_pair(
        setup, lambda: act(make(setup.spark)), rounds_factor=ROUNDS_FACTOR, warm_ups_factor=WARM_UPS_FACTOR
    )
    told = {"taken": taken + pair.queries_on, "added_ms": pair.added_seconds * 1000}
    said = f"planning, {name}: {pair.added_seconds * 1000:+.1f} ms"
    if act is planned:
        cpu = planning_cpu(setup, make)
        told |= asdict(cpu)
        said += f"; CPU {cpu.jvm_added_ms:+.1f} ms in the JVM, {cpu.python_ms:.1f} ms in Python"
    setup.say(said)
    return {**told, **asdict(pair)}


@dataclass(frozen=True, slots=True)
class PlanningCpu:
    """The CPU time that the engine adds in the driver, in milliseconds: medians of the rounds."""

    jvm_added_ms: float
    python_ms: float


def planning_cpu(setup: PipelineSetup, make: Make) -> PlanningCpu:
    """Measure the CPU time from the optimized plan to the physical one, in which the engine looks at it."""
    jvm: Any = setup.spark._jvm
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    added: list[float] = []
    python: list[float] = []
    for _ in range(setup.rounds * ROUNDS_FACTOR):
        found: dict[bool, tuple[float, float]] = {}
        for on in (False, True):
            with switched(setup.spark, on=on):
                queries: Any = make(setup.spark)._jdf.queryExecution()
                queries.optimizedPlan()
                java, own = threads.getCurrentThreadCpuTime(), time.process_time()
                queries.executedPlan()
                own = time.process_time() - own
                found[on] = ((threads.getCurrentThreadCpuTime() - java) / 1e6, own * 1e3)
        added.append(found[True][0] - found[False][0])
        python.append(found[True][1] - found[False][1])
    return PlanningCpu(median(added), median(python))


def planned(df: DataFrame) -> None:
    """Let Spark plan a query without running it."""
    queries: Any = df._jdf.queryExecution()
    queries.executedPlan()


def _collect(df: DataFrame) -> None:
    df.collect()


def _sql(text: str) -> Make:
    return lambda spark: spark.sql(text)


def _large() -> dict[str, Make]:
    """Queries over the given tables that stay on Spark."""
    return {
        "scan and filter": _sql("select * from lineitem where l_quantity > 10"),
        "a sort of a whole table": _sql("select * from lineitem order by l_comment"),
        "an aggregate by a unique key": _sql(
            "select o_orderkey, o_comment, count(*) n from orders group by o_orderkey, o_comment"
        ),
        "an aggregate with a function that is not native": _sql(
            "select l_returnflag, percentile(l_quantity, 0.5) p from lineitem group by l_returnflag"
        ),
    }


def _small() -> dict[str, Make]:
    found: dict[str, Make] = {
        "join of two tables": _sql("select * from nation join region on n_regionkey = r_regionkey"),
        "40 columns and filters, one after the other": _deep,
        "6 joins, a Python function on each table": _functions,
    }
    for number in tpch.QUERIES:
        found[f"TPC-H {number}"] = _sql(tpch.query(number))
    for number in _NUMBERS:
        found[f"TPC-H {number} below a Python function"] = _below_function(number)
    return found


def _runs() -> dict[str, Make]:
    return {
        "scan and filter": _sql("select * from nation where n_nationkey > 3"),
        "join of two tables": _sql("select * from nation join region on n_regionkey = r_regionkey"),
        "an aggregate": _sql("select n_regionkey, count(*) n from nation group by n_regionkey"),
        "TPC-H 3": _sql(tpch.query(3)),
        "TPC-H 5": _sql(tpch.query(5)),
    }


def _deep(spark: SparkSession) -> DataFrame:
    df = spark.table("orders")
    for number in range(_DEEP):
        df = df.withColumn(f"c{number}", col("o_orderkey") + number).filter(col(f"c{number}") > -number)
    return df.groupBy("o_orderpriority").count()


def _functions(spark: SparkSession) -> DataFrame:
    change: Any = udf(lambda value: f"{value}", "string")
    df = spark.table("orders").select("o_orderkey", change("o_clerk").alias("clerk"))
    for number in range(_JOINS):
        other = spark.table("lineitem").select(
            col("l_orderkey").alias(f"k{number}"), change("l_comment").alias(f"comment{number}")
        )
        df = df.join(other, col("o_orderkey") == col(f"k{number}"))
    return df


def _below_function(number: int) -> Make:
    change: Any = udf(lambda value: f"{value}", "string")

    def make(spark: SparkSession) -> DataFrame:
        df = spark.sql(tpch.query(number))
        return df.select(lower(change(df.columns[0])).alias("changed"), *df.columns[1:])

    return make

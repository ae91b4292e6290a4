"""A DataFrame whose part ran here, or should have, can be used again: after an end, a failure, or without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.storagelevel import StorageLevel
from tests.engine.conftest import Counted, on_spark
from tests.engine.test_ends import until
from tests.spark_sessions import Engines

import wallaby
from wallaby.engine import Engine
from wallaby.errors import GcsLostError, QueryTimeoutError

#: Its order is not Spark's business: whoever reads the rows gets them sorted.
JOINED = "select n_name, count(*) n from customer join nation on c_nationkey = n_nationkey group by n_name"
SLOW = "select k, count(*) n, sum(v) s from tiny group by k"


def over(df: DataFrame) -> DataFrame:
    """The query with a Python function on top, so that Spark reads the rows of the part below."""
    first = df.schema.fields[0]
    return df.select(udf(lambda value: value, first.dataType)(first.name).alias("u"), "*")


def rows(found: list[Any]) -> list[Any]:
    return sorted(map(tuple, found), key=str)


@contextmanager
def enabled(engines: Engines, spark: SparkSession) -> Iterator[Engine]:
    engine = engines.get(workers=2, threads=1, split=1, leaf_minimum=0)
    wallaby.enable(spark)
    spark.conf.set("spark.wallaby.below", "always")
    try:
        yield engine
    finally:
        spark.conf.unset("spark.wallaby.below")
        wallaby.disable(spark)


def test_spark_runs_it_once_the_engine_is_closed(engines: Engines, spark: SparkSession) -> None:
    """A part that has run, one that was only planned, an RDD, and a cached table whose rows were evicted."""
    queries = [JOINED, f"{JOINED} order by n_name desc", "select * from orders order by o_orderkey"]
    ran: list[tuple[str, DataFrame]] = []
    with enabled(engines, spark) as engine:
        expected = on_spark(spark, lambda: {query: over(spark.sql(query)).collect() for query in queries})
        for adaptive in ("true", "false"):
            spark.conf.set("spark.sql.adaptive.enabled", adaptive)
            for query in queries:
                explained, collected = (over(spark.sql(query)) for _ in range(2))
                assert "Wallaby" in explained._jdf.queryExecution().executedPlan().toString()
                assert len(collected.collect()) == len(expected[query])
                ran += [(query, explained), (query, collected)]
        spark.conf.unset("spark.sql.adaptive.enabled")
        handle = over(spark.sql(JOINED)).rdd
        cached = over(spark.sql(f"{JOINED} having n > 1")).persist(StorageLevel.MEMORY_ONLY)
        assert handle.count() == cached.count() == len(expected[JOINED])
        assert len(engine.subplans.kept) == 8
    engines.close()
    for query, df in ran:
        found = df.collect()
        assert found == expected[query] if "order by" in query else rows(found) == rows(expected[query])
    assert handle.count() == len(expected[JOINED])
    evict(spark)
    assert rows(cached.collect()) == rows(expected[JOINED])
    cached.unpersist(blocking=True)


def evict(spark: SparkSession) -> None:
    """Remove the rows of all cached tables from Spark's memory, as Spark does if others need it."""
    context: Any = spark.sparkContext._jsc
    for each in context.getPersistentRDDs().values():
        each.unpersist(True)


def test_spark_runs_it_after_the_store_was_lost(above: Engine, spark: SparkSession) -> None:
    df = over(spark.sql(JOINED))
    expected = rows(df.collect())
    (kept,) = above.subplans.kept.values()
    assert kept.query is not None
    above._parts.head.kept.ended(kept.query, GcsLostError("The store was lost."))
    assert rows(df.collect()) == expected
    kept.release()


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_was_cancelled_can_be_collected(adaptive: str, above: Engine, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    slow, context = over(spark.sql(SLOW)), spark.sparkContext
    failed: list[BaseException] = []

    def collect() -> None:
        context.setJobGroup("slow", "a slow query", interruptOnCancel=True)
        try:
            slow.collect()
        except PySparkException as error:
            failed.append(error)

    try:
        collecting = InheritableThread(target=collect)
        collecting.start()
        until(lambda: bool(above._parts.gcs.queries()))
        context.cancelJobGroup("slow")
        collecting.join(60)
        assert len(failed) == 1
        assert "cancel" in str(failed[0]).lower()
        assert rows(slow.collect()) == rows(on_spark(spark, over(spark.sql(SLOW)).collect))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


#: Tops with which Spark makes the RDDs of a plan without asking for the number of their partitions.
TOPS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "nothing": lambda df: df,
    "filter": lambda df: df.where("u > 0"),
    "limit": lambda df: df.limit(5),
}


def test_what_took_too_long_runs_again(counted: Counted, spark: SparkSession) -> None:
    spark.conf.set("spark.wallaby.timeout", "1ms")
    try:
        for name, top in TOPS.items():
            slow, before = top(over(spark.sql(SLOW))), counted.runs
            for _ in range(2):
                with pytest.raises(QueryTimeoutError):
                    slow._jdf.collectToPython()  # Spark's action, whose part alone has the limit
            assert counted.runs == before + 2, name
    finally:
        spark.conf.unset("spark.wallaby.timeout")


#: Tops with which Spark asks for the number of partitions while it makes the RDDs of a plan.
ASKING: dict[str, Callable[[DataFrame], DataFrame]] = {
    "coalesce": lambda df: df.coalesce(1),
    "union": lambda df: df.union(df),
    "groups": lambda df: df.groupBy("u").count(),
    "repartition": lambda df: df.repartition(3),
}
#: Under adaptive execution Spark itself remembers that the stage of an exchange has failed.
AGAIN = [("false", name) for name in ASKING] + [("true", "coalesce"), ("true", "union")]


@pytest.mark.parametrize(("adaptive", "name"), AGAIN)
def test_a_failed_part_runs_again_where_its_partitions_were_counted(
    adaptive: str, name: str, above: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, runs = above.subplans._run, 0

    def fail_first(subplan: Any) -> Any:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise QueryTimeoutError("It took too long.")
        return run(subplan)

    monkeypatch.setattr(above.subplans, "_run", fail_first)
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        df = ASKING[name](over(spark.sql(JOINED)))
        with pytest.raises(QueryTimeoutError):
            df.collect()
        assert runs == 1
        for _ in range(2):
            assert rows(df.collect()) == rows(on_spark(spark, ASKING[name](over(spark.sql(JOINED))).collect))
        assert runs == 2
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")

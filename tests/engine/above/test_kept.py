"""Rows that stay in the TaskManagers: read late, twice, through losses, until they are let go."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, udf
from tests.engine.conftest import kept_after_collecting
from tests.engine.losses.test_losses import wait_for
from tests.engine.test_ends import nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

from wallaby.above import partitions
from wallaby.above.dataframe import KeptDataFrame
from wallaby.engine import Engine
from wallaby.errors import DoubtfulValueError, InvalidArgumentError, KeptResultError, WallabyError
from wallaby.lineage.kept import KeptChannel

#: Each TaskManager reads a part of it, and keeps that.
QUERY = "select k, v % 97 w, v n from few where v % 3 > 0"


@pytest.fixture
def kept(engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptDataFrame]:
    """A result at both TaskManagers, read by three tasks, however small it is: the other two slots are theirs."""
    wait_for(engine, 2, set())
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 1)
    found = engine.persist(spark.sql(QUERY))
    assert isinstance(found, KeptDataFrame)
    assert {channel.host for channel in channels(engine)} == {worker.id for worker in engine.workers()}
    yield found
    found.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))


def channels(engine: Engine) -> list[KeptChannel]:
    (query,) = engine._parts.head.kept.queries
    return list(engine._parts.head.kept.channels(query).values())


def recoveries(engine: Engine) -> int:
    (rows,) = engine.subplans.kept.values()
    assert rows.collected is not None
    return rows.collected.figures.recoveries


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> list[tuple[int, ...]]:
    return sorted(map(tuple, spark.sql(QUERY).collect()))


def rows(df: DataFrame) -> list[tuple[int, ...]]:
    return sorted(map(tuple, df.collect()))


def kill(engine: Engine, count: int = 1) -> set[str]:
    victims = [worker for worker in engine.workers() if worker.is_live][:count]
    for worker in victims:
        os.kill(worker.pid, signal.SIGKILL)
    return {worker.id for worker in victims}


def test_rows_are_read_as_often_as_one_likes(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]], tmp_path: Path
) -> None:
    commits = engine._parts.gcs.status(engine._parts.head.kept.queries[0]).commits
    assert rows(kept) == expected
    assert rows(kept) == expected
    assert kept.rdd.getNumPartitions() == 3
    kept.write.parquet(str(tmp_path / "kept"))
    same = kept.alias("a").join(kept.alias("b"), expr("a.k = b.k and a.n = b.n"))
    assert same.count() == len(expected)
    assert engine._parts.gcs.status(engine._parts.head.kept.queries[0]).commits == commits, (
        "nothing was computed again"
    )


def test_a_lazy_one_runs_at_its_first_action(engine: Engine, spark: SparkSession) -> None:
    lazy = engine.dataframe(spark.sql(QUERY))
    derived = lazy.where("n > 0").select(udf(lambda n: n, "long")("n"))
    derived.explain()
    assert not engine.subplans.kept
    assert derived.count() == lazy.count()
    assert len(engine.subplans.kept) == 1
    (reason,) = engine.fallback_reasons(lazy.groupBy("k").count())[-1:]
    assert "Spark has the rows in memory" in reason, "they would be written to files to be counted here"
    lazy.unpersist()
    until(lambda: not engine.subplans.kept)


def test_a_small_result_is_broadcast_once_it_has_run(engine: Engine, spark: SparkSession) -> None:
    """Spark knows its size then. Before, it has an estimate, which is larger than the limit."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "20k")
    lazy = engine.dataframe(spark.sql("select k, sum(v) s, count(*) n from short group by k"))

    def plan() -> str:
        joined = spark.table("tiny").alias("t").join(lazy.alias("l"), expr("t.k = l.k"))
        return str(joined._jdf.queryExecution().executedPlan().toString())

    try:
        assert "BroadcastHashJoin" not in plan()
        assert lazy.count() == 7
        assert "BroadcastHashJoin" in plan()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        lazy.unpersist()


def test_sparks_own_cache_goes_with_the_rows(engine: Engine, spark: SparkSession) -> None:
    kept = engine.persist(spark.sql(QUERY))
    kept.cache().count()
    before = kept.storageLevel
    kept.unpersist(blocking=True)
    assert (before.useMemory, kept.storageLevel.useMemory) == (True, False)
    until(lambda: nothing_is_left_of_queries(engine))


def test_rows_that_are_let_go_while_their_query_runs_do_not_stay(engine: Engine, spark: SparkSession) -> None:
    lazy = engine.dataframe(spark.sql("select k, v % 97 w, v n from short where v % 3 > 0"))
    assert isinstance(lazy, KeptDataFrame)

    def run() -> None:
        with suppress(WallabyError):  # it may be over already
            lazy.run()

    running = threading.Thread(target=run)
    running.start()
    until(lambda: bool(engine._parts.gcs.queries()))
    lazy.unpersist()
    running.join(60)
    until(lambda: not engine.subplans.kept)
    until(lambda: nothing_is_left_of_queries(engine))


def test_a_worker_lost_after_the_query_costs_what_it_held(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]]
) -> None:
    lost = kill(engine)
    assert rows(kept) == expected
    assert recoveries(engine) >= 1
    assert not lost & {channel.host for channel in channels(engine)}
    assert rows(kept) == expected


def test_both_workers_lost_cost_everything_and_nothing_else(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]]
) -> None:
    kill(engine, 2)
    assert rows(kept) == expected
    assert recoveries(engine) >= 1


def test_a_worker_lost_while_rows_are_read(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]]
) -> None:
    stream = kept.toLocalIterator()
    found = [tuple(next(stream))]
    kill(engine)
    found += map(tuple, stream)
    assert sorted(found) == expected
    assert recoveries(engine) >= 1


def test_a_worker_that_leaves_makes_room_for_others_first(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]]
) -> None:
    leaving = engine.workers()[0]
    assert engine.drain(leaving, timeout=60)
    assert leaving.id not in {channel.host for channel in channels(engine)}
    assert rows(kept) == expected


def test_a_worker_that_stands_still_is_done_without(
    engine: Engine, kept: KeptDataFrame, expected: list[tuple[int, ...]]
) -> None:
    victim = engine.workers()[0]
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        assert rows(kept) == expected
    finally:
        os.kill(victim.pid, signal.SIGCONT)
    assert recoveries(engine) >= 1


def test_rows_that_were_let_go_are_gone_and_say_so(engine: Engine, spark: SparkSession) -> None:
    kept = engine.persist(spark.sql(QUERY))
    derived = kept.where("k > 3")
    kept.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))
    for df in (kept, derived):
        with pytest.raises(
            KeptResultError, match=r"released by unpersist\. Create the DataFrame again"
        ) as caught:
            df.count()
        assert caught.value.getCondition() == "WALLABY_KEPT_RESULT"
    kept.unpersist()


def test_tasks_that_come_too_late_say_what_was_released(engine: Engine, spark: SparkSession) -> None:
    kept = engine.persist(spark.sql(QUERY))
    tasks = kept.rdd
    assert tasks.count() > 0
    kept.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))
    with pytest.raises(KeptResultError, match="released"):
        tasks.count()


def test_what_spark_has_cached_outlives_the_rows_it_was_made_of(engine: Engine, spark: SparkSession) -> None:
    kept = engine.persist(spark.sql(QUERY))
    counted = kept.groupBy("k").count().cache()
    expected = rows(counted)
    kept.unpersist()
    until(lambda: nothing_is_left_of_queries(engine))
    assert rows(counted) == expected
    assert counted.where("k = 1").count() == 1
    counted.unpersist(blocking=True)
    with pytest.raises(KeptResultError, match="released by unpersist"):
        kept.groupBy("k").count().collect()


def test_rows_go_when_nobody_has_the_dataframe_any_more(engine: Engine, spark: SparkSession) -> None:
    kept = engine.persist(spark.sql(QUERY))
    derived = kept.where("k > 3")
    del kept
    gc.collect()
    engine.subplans.collect()
    time.sleep(0.5)
    assert derived.count() > 0, "what was made of it still reads its rows"
    del derived
    until(lambda: not kept_after_collecting(engine))
    until(lambda: nothing_is_left_of_queries(engine))


def test_what_spark_has_to_run_stays_in_sparks_cache(
    engine: Engine, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    odd = spark.table("nation").select(udf(lambda x: x)("n_name").alias("u"))
    with caplog.at_level("WARNING", logger="wallaby"):
        cached = engine.persist(odd)
    assert cached.is_cached
    assert cached.count() == 25
    assert "Python functions" in caplog.text
    cached.unpersist()


def test_an_error_in_the_data_is_raised_when_the_query_is_run(engine: Engine, spark: SparkSession) -> None:
    spark.conf.set("spark.wallaby.sparkErrors", "true")
    try:
        bad = spark.sql("select o_custkey, sum(1 / (o_orderkey - 1)) s from orders group by o_custkey")
        with pytest.raises((PySparkException, Py4JJavaError), match="DIVIDE_BY_ZERO"):
            engine.persist(bad)
        assert not bad.is_cached
    finally:
        spark.conf.unset("spark.wallaby.sparkErrors")


def test_what_is_left_to_spark_meanwhile_stays_in_sparks_cache(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_doubt(subplan: object) -> None:
        raise DoubtfulValueError("A value is in doubt.")

    monkeypatch.setattr(engine.subplans, "_run", in_doubt)
    cached = engine.persist(spark.sql(QUERY))
    assert cached.is_cached
    assert cached.count() > 0
    cached.unpersist(blocking=True)


def test_rows_do_not_stay_where_spark_has_no_slot_to_read_them(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._parts, "site", replace(engine._parts.site, leaves_slot=False))
    with pytest.raises(KeptResultError, match=r"spark\.wallaby\.exclusive"):
        engine.persist(spark.sql(QUERY))


def test_bad_input_is_refused(engine: Engine) -> None:
    for call in (engine.dataframe, engine.persist):
        with pytest.raises(InvalidArgumentError, match="DataFrame"):
            call("select 1")  # type: ignore[arg-type]


def test_a_closed_engine_is_named_by_whoever_reads_its_rows(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=1, threads=2)
    kept = engine.persist(spark.sql(QUERY))
    assert kept.count() > 0
    tasks = kept.rdd
    counted = kept.groupBy("k").count().cache()
    expected = rows(counted)
    engines.close()
    assert rows(counted) == expected, "they are in Spark's cache"
    counted.unpersist(blocking=True)
    began = time.monotonic()
    for act in (kept.count, tasks.count, kept.groupBy("w").count().collect):
        with pytest.raises(KeptResultError, match="is closed"):
            act()
    assert time.monotonic() - began < 20, "nobody waits for what cannot come"


def test_closing_the_engine_ends_who_reads_its_rows(
    engines: Engines, spark: SparkSession, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def slowly(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            begun.touch()
            time.sleep(120)
            yield frame

    kept = engines.get(workers=1, threads=2).persist(spark.sql(QUERY))
    raised: list[Exception] = []

    def read() -> None:
        try:
            kept.mapInPandas(slowly, kept.schema).write.format("noop").mode("overwrite").save()
        except WallabyError as error:
            raised.append(error)

    reading = InheritableThread(target=read)
    reading.start()
    until(begun.exists)
    engines.close()
    reading.join(30)
    (error,) = raised
    assert isinstance(error, KeptResultError)
    assert "was closed while Spark's tasks read rows from it" in str(error)


@pytest.mark.parametrize("policy", ["restart", "spool"])
def test_without_lineage_at_the_workers_nothing_stays(
    policy: str, engines: Engines, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engines.get(
        workers=1, threads=1, fault_tolerance_policy=policy, fault_tolerance_store=str(tmp_path)
    )
    with caplog.at_level("WARNING", logger="wallaby"):
        cached = engine.persist(spark.sql(QUERY))
    assert cached.is_cached
    assert "cannot stay with the TaskManagers" in caplog.text
    cached.unpersist()
    engines.close()

"""Whatever cancels Spark's jobs ends a query of ours too, as it ends Spark's own, and no TaskManager."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until
from tests.spark_sessions import Engines

import wallaby
from wallaby.batches import stopping
from wallaby.engine import Engine
from wallaby.errors import QueryCancelledError, QueryTimeoutError, SparkCancelledError
from wallaby.relations.relation import DataFile
from wallaby.tables import footer

GROUP = "nightly"


def java_context(spark: SparkSession) -> Any:
    jsc: Any = spark.sparkContext._jsc
    return jsc.sc()


def interrupt_operation(spark: SparkSession) -> None:
    store = java_context(spark).statusStore().jobsList(None)
    jobs = [store.apply(at) for at in range(store.size())]
    operations = [tag for job in jobs for tag in _tags(job) if "execution-root-id" in tag]
    assert spark.interruptOperation(operations[0].rpartition("-")[2])


def _tags(job: Any) -> list[str]:
    tags = job.jobTags().iterator()
    found = []
    while job.status().toString() == "RUNNING" and tags.hasNext():
        found.append(str(tags.next()))
    return found


WAYS: dict[str, Callable[[SparkSession], object]] = {
    "a job group": lambda spark: spark.sparkContext.cancelJobGroup(GROUP),
    "a job group and what comes": lambda spark: java_context(spark).cancelJobGroupAndFutureJobs(GROUP),
    "a tag of jobs": lambda spark: spark.sparkContext.cancelJobsWithTag("theirs"),
    "all jobs": lambda spark: spark.sparkContext.cancelAllJobs(),
    "all of the session": lambda spark: spark.interruptAll(),
    "an operation": interrupt_operation,
    "the UI": lambda spark: java_context(spark).cancelJob(_query_job(spark)),
}


def _query_job(spark: SparkSession) -> int:
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP))


def begin(spark: SparkSession, collect: Callable[[], object], pool: ThreadPoolExecutor) -> Any:
    """Collect something on another thread, under a group and a tag."""

    def work() -> object:
        spark.sparkContext.setJobGroup(GROUP, "work of the night")
        spark.sparkContext.addJobTag("theirs")
        return collect()

    before = set(spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP))
    waiting = pool.submit(work)
    until(lambda: bool(set(spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP)) - before))
    return waiting


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as found:
        yield found


def pids(engine: Engine) -> list[object]:
    return [worker.pid for worker in engine.workers()]


@pytest.mark.parametrize("way", WAYS)
def test_it_ends_the_query_as_it_ends_sparks(
    way: str, engine: Engine, spark: SparkSession, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "GROUP", way)  # a group whose jobs to come are cancelled stays so
    before = pids(engine)
    waiting = begin(spark, spark_sql(spark, engine), pool)
    WAYS[way](spark)
    with pytest.raises(SparkCancelledError) as caught:
        waiting.result(60)
    error = caught.value
    assert isinstance(error, QueryCancelledError)
    assert isinstance(error, Py4JJavaError), "as on Spark"
    assert error.getCondition() == "SPARK_JOB_CANCELLED" == error.java_exception.getCondition()
    assert error.getSqlState() == error.java_exception.getSqlState()
    assert error.getMessageParameters() == dict(error.java_exception.getMessageParameters())
    until(lambda: nothing_is_left_of_queries(engine))
    assert pids(engine) == before
    assert engine.count(spark.table("nation")) == 25


@pytest.mark.parametrize("way", ["all of the session", "a job group"])
def test_it_ends_a_query_that_is_being_planned(
    way: str,
    engine: Engine,
    spark: SparkSession,
    pool: ThreadPoolExecutor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The footers of many files, far away, may take long to read."""
    path = str(tmp_path / "t")
    spark.range(0, 30, 1, 3).write.parquet(path)
    looked, go_on = [], threading.Event()

    def slow(file: DataFile) -> bool:
        looked.append(file)
        return go_on.wait(60)

    monkeypatch.setattr(footer, "_is_as_listed", slow)
    df = spark.read.parquet(path)
    waiting = begin(spark, lambda: engine.collect(df), pool)
    until(lambda: bool(looked))
    WAYS[way](spark)
    until(lambda: any(task.error for task in stopping._running.values()))
    go_on.set()
    with pytest.raises(SparkCancelledError):
        waiting.result(60)
    assert len(looked) == 1, "no other file was looked at"
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()[len(engine.workers()) :]


@pytest.fixture
def deserted(engines: Engines, pool: ThreadPoolExecutor) -> Iterator[Engine]:
    """An engine that has lost all its TaskManagers, and to which no others come."""
    engine = engines.get(workers=1, threads=1, split=1, leaf_minimum=0, no_workers_timeout=3600)
    engine._parts.deployment._hosting.stop(
        0
    )  # Spark kills the keepers, and they take their TaskManagers with them
    until(lambda: not engine.workers(), 60)
    yield engine
    engines.close()


def test_it_ends_a_query_that_waits_for_workers(
    deserted: Engine, spark: SparkSession, pool: ThreadPoolExecutor
) -> None:
    waiting = begin(spark, spark_sql(spark, deserted), pool)
    WAYS["a job group"](spark)
    with pytest.raises(SparkCancelledError):
        waiting.result(60)


def test_it_ends_a_query_that_waits_for_workers_after_spark_has_run_its_part(
    deserted: Engine, spark: SparkSession, pool: ThreadPoolExecutor
) -> None:
    same = udf(lambda key: key, "long")
    df = spark.table("nation").select(same("n_nationkey").alias("k")).groupBy("k").count()
    waiting = begin(spark, lambda: deserted.collect(df), pool)
    until(lambda: any(run._submitted is not None for run in deserted._parts.runner._leaf_runs))
    WAYS["a job group"](spark)
    with pytest.raises(SparkCancelledError):
        waiting.result(60)


def test_the_time_limit_of_a_query_counts_while_it_waits_for_workers(
    deserted: Engine, spark: SparkSession
) -> None:
    spark.conf.set("spark.wallaby.timeout", "2s")
    try:
        with pytest.raises(QueryTimeoutError, match="longer than 2 s"):
            deserted.collect(spark.table("nation"))
    finally:
        spark.conf.unset("spark.wallaby.timeout")


def test_a_query_that_stays_sparks_is_no_job_of_the_engines(engine: Engine, spark: SparkSession) -> None:
    tracker, context = spark.sparkContext.statusTracker(), spark.sparkContext
    context.setJobGroup("sparks own", "")
    try:
        assert not engine.run(spark.sql("select collect_list(n_name) from nation")).native
        assert list(tracker.getJobIdsForGroup("sparks own")) == []
    finally:
        java_context(spark).clearJobGroup()


def spark_sql(spark: SparkSession, engine: Engine) -> Callable[[], object]:
    df: DataFrame = spark.sql(LONG)
    return lambda: engine.collect(df)


def test_it_ends_a_query_of_which_spark_runs_a_part(
    engine: Engine, spark: SparkSession, pool: ThreadPoolExecutor
) -> None:
    slow = udf(lambda key: threading.Event().wait(120) and key, "long")
    query = spark.table("nation").select(slow("n_nationkey").alias("k")).groupBy("k").count()
    waiting = begin(spark, lambda: engine.collect(query), pool)
    spark.sparkContext.cancelJobsWithTag("theirs")
    with pytest.raises(SparkCancelledError):
        waiting.result(60)
    until(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds()[len(engine.workers()) :])


def test_a_tag_of_the_session_is_its_threads(engine: Engine, spark: SparkSession) -> None:
    spark.addTag("mine")
    try:
        result = engine.run(spark.sql(LONG))
        assert len(spark.interruptTag("mine")) == 1, "the operation that was interrupted"
        with pytest.raises(SparkCancelledError):
            result.rows()
    finally:
        spark.removeTag("mine")


def test_others_go_on(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(LONG))
    spark.sparkContext.cancelJobGroup("of somebody else")
    spark.sparkContext.cancelJobsWithTag("of somebody else")
    assert len(result.rows()) == 7


def test_spark_sees_a_query_as_a_job_that_succeeds_or_fails(engine: Engine, spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()

    def status(group: str) -> list[str]:
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        return [info.status for info in infos if info is not None]

    spark.sparkContext.setJobGroup("good", "a query")
    engine.count(spark.table("nation"))
    until(lambda: status("good") == ["SUCCEEDED"])
    spark.sparkContext.setJobGroup("bad", "a query")
    result = engine.run(spark.sql(LONG))
    result.cancel()
    until(lambda: status("bad") == ["FAILED"])
    for name in ("spark.jobGroup.id", "spark.job.description"):
        spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type] # unsets it


def test_the_scheduler_is_as_it_was_when_the_engine_is_closed(spark: SparkSession, engine: Engine) -> None:
    scheduler = java_context(spark).dagScheduler()
    assert "wallaby" in scheduler.eventProcessLoop().getClass().getName()
    engine.close()
    assert "wallaby" not in scheduler.eventProcessLoop().getClass().getName()
    with wallaby.attach(spark, workers=1, attach_timeout=120) as another:
        assert another.count(spark.table("nation")) == 25

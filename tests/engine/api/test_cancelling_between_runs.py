"""A query that runs again, with another plan or on Spark, is one query to whoever cancels it and to its time limit."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from tests.engine.api.test_cancelling import java_context
from tests.engine.test_ends import LONG, nothing_is_left_of_queries, until

import wallaby
from wallaby.engine import Engine
from wallaby.errors import (
    DoubtfulValueError,
    MemoryLimitError,
    QueryCancelledError,
    QueryTimeoutError,
    SparkCancelledError,
)
from wallaby.results.leaves import LeafResult
from wallaby.results.result import Result

TOO_LARGE = MemoryLimitError("A build side is too large.", setting="spark.wallaby.broadcast")
DOUBT = DoubtfulValueError("A value is in doubt.")


def sleeping(spark: SparkSession, seconds: int = 5) -> DataFrame:
    """Spark runs it. Spark does not interrupt tasks that it cancels, so they are not long."""
    return spark.range(0, 1, 1, 1).selectExpr(f"java_method('java.lang.Thread', 'sleep', {seconds}000L + id)")


@pytest.fixture
def in_group(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """The jobs of this thread are a group; cancels it, and waits until Spark knows no job of it."""
    group = f"between runs {time.monotonic()}"
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup(group, "")

    def cancel() -> None:
        def active() -> set[int]:
            return set(tracker.getJobIdsForGroup(group)) & set(tracker.getActiveJobsIds())

        spark.sparkContext.cancelJobGroup(group)
        until(lambda: not active())

    yield cancel
    java_context(spark).clearJobGroup()


def meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]
) -> Callable[..., object]:
    """Do something while a query is planned again."""
    plan = engine._parts.site.planner.plan

    def planned(*arguments: Any, **named: Any) -> Any:
        do()
        return plan(*arguments, **named)

    monkeypatch.setattr(engine._parts.site.planner, "plan", planned)
    return planned


def in_hand_over(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something while a query is left to Spark."""
    leave = Result._leave_to_spark

    def leaving(result: Result, error: Any) -> None:
        do()
        leave(result, error)

    monkeypatch.setattr(Result, "_leave_to_spark", leaving)


def heard_of(result: Result, cancel: Callable[[], None]) -> Callable[[], None]:
    """Cancel by Spark, and wait until the query knows of it: the news travel on a thread of their own."""

    def cancel_and_wait() -> None:
        cancel()
        until(lambda: result._lifetime.cancelled is not None)

    return cancel_and_wait


def a_minute_passes_for(result: Result) -> None:
    """To the limit of a query, a minute passes: a real limit would be too short for planning on a busy machine."""
    result._lifetime.limit = result._lifetime.limit.later(-60.0)


# --- on Spark ------------------------------------------------------------------------------------------


def test_a_query_that_was_cancelled_before_spark_begins_does_not_begin(
    engine: Engine, spark: SparkSession, in_group: Callable[[], None]
) -> None:
    result = engine.run(sleeping(spark))
    assert not result.native
    result.cancel()
    with pytest.raises(QueryCancelledError):
        result.rows()
    assert engine.history()[-1].state == "cancelled"


def test_a_cancellation_just_before_sparks_first_job_is_not_forgotten(
    engine: Engine, spark: SparkSession
) -> None:
    df = sleeping(spark)
    result = engine.run(df)
    collect = df._jdf.collectToPython

    class Late:
        """The query in the JVM, cancelled when Spark is about to run it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(jdf, name)

        def collectToPython(self) -> Any:  # noqa: N802 - the name is Spark's
            result.cancel()
            return collect()

    jdf, df._jdf = df._jdf, Late()
    with pytest.raises(QueryCancelledError):
        result.rows()


def test_a_query_that_has_ended_on_spark_is_not_affected(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql("select 1 as one"))
    assert len(result.rows()) == 1
    result.cancel()
    assert len(result.rows()) == 1


@pytest.mark.parametrize("by_spark", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_query_is_cancelled_while_it_is_left_to_spark(
    by_spark: bool,
    streamed: bool,
    engine: Engine,
    spark: SparkSession,
    in_group: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = engine.run(spark.sql(LONG))
    in_hand_over(monkeypatch, heard_of(result, in_group) if by_spark else result.cancel)
    result._collected.cancel(DOUBT)
    with pytest.raises(SparkCancelledError if by_spark else QueryCancelledError):
        list(result.batches()) if streamed else result.rows()
    assert engine.history()[-1].state == "cancelled"


def test_the_job_of_a_query_that_is_left_to_spark_lasts_until_spark_has_answered(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_then: list[int] = []
    in_hand_over(monkeypatch, lambda: open_then.append(len(engine._parts.jobs._running)))
    result = engine.run(spark.sql(LONG))
    result._collected.cancel(DOUBT)
    assert len(result.rows()) == 7
    assert open_then == [1]
    assert not engine._parts.jobs._running


def test_the_job_of_a_result_that_nobody_reads_ends_with_it(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(LONG))
    result._collected.cancel(DOUBT)
    run = result._collected
    until(lambda: run.is_over)
    assert len(engine._parts.jobs._running) == 1
    del result
    gc.collect()
    until(lambda: not engine._parts.jobs._running)


# --- another plan --------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_spark", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_query_is_cancelled_while_it_is_planned_again(
    by_spark: bool,
    streamed: bool,
    engine: Engine,
    spark: SparkSession,
    in_group: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = engine.run(spark.sql(LONG))
    meanwhile(engine, monkeypatch, heard_of(result, in_group) if by_spark else result.cancel)
    result._collected.cancel(TOO_LARGE)
    with pytest.raises(SparkCancelledError if by_spark else QueryCancelledError):
        list(result.batches()) if streamed else result.rows()
    until(lambda: nothing_is_left_of_queries(engine))
    assert not engine._parts.jobs._running
    assert engine.history()[-1].state == "cancelled"


def test_kept_rows_are_cancelled_while_their_query_is_planned_again(
    above: Engine, spark: SparkSession, in_group: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = above.dataframe(spark.sql(LONG))
    meanwhile(above, monkeypatch, in_group)

    def end_later(collected: Any) -> None:
        until(lambda: bool(above._parts.head._queries))
        collected.cancel(TOO_LARGE)

    def submitted(_job: object, collected: Any) -> None:
        threading.Thread(target=end_later, args=(collected,)).start()

    monkeypatch.setattr(above._parts.runner, "on_submit", submitted)
    with pytest.raises(SparkCancelledError):
        kept.run()  # type: ignore[operator]  # a KeptDataFrame
    until(lambda: not above._parts.jobs._running)


# --- time limits ---------------------------------------------------------------------------------------


def test_the_time_limit_does_not_begin_anew_with_another_plan(
    engine: Engine,
    spark: SparkSession,
    setting: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting("timeout", "60s")
    result = engine.run(spark.sql(LONG))
    meanwhile(engine, monkeypatch, lambda: a_minute_passes_for(result))
    result._collected.cancel(TOO_LARGE)
    with pytest.raises(QueryTimeoutError, match="longer than 60 s"):
        result.rows()
    assert len(engine.history()[-1].queries) == 1, "a second run has begun"


def test_the_time_limit_goes_on_when_a_query_is_left_to_spark(
    engine: Engine, spark: SparkSession, setting: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting("timeout", "60s")
    result = engine.run(spark.sql(LONG))
    in_hand_over(monkeypatch, lambda: a_minute_passes_for(result))
    result._collected.cancel(DOUBT)
    with pytest.raises(QueryTimeoutError, match="longer than 60 s"):
        result.rows()


@pytest.mark.parametrize("way", ["run", "show", "enabled"])
def test_a_query_that_spark_runs_has_the_time_limit_too(
    way: str, engine: Engine, spark: SparkSession, setting: Callable[[str, str], None]
) -> None:
    setting("timeout", "1s")
    df = sleeping(spark)
    ways: dict[str, Callable[[], object]] = {
        "run": lambda: engine.run(df).rows(),
        "show": lambda: engine.show(df),
        "enabled": lambda: df.collect(),  # noqa: PLW0108 - the method is replaced by then
    }
    if way == "enabled":
        wallaby.enable(spark)
    try:
        with pytest.raises(QueryTimeoutError, match=r"1 s .*spark\.wallaby\.timeout"):
            ways[way]()
    finally:
        if way == "enabled":
            wallaby.disable(spark)
    assert engine.history()[-1].state == "failed"


# --- parts that Spark runs first -----------------------------------------------------------------------


def left_to_spark(engine: Engine, df: DataFrame, monkeypatch: pytest.MonkeyPatch) -> LeafResult:
    """A query with a leaf that cannot be run by itself: Spark has to run all of it."""
    planned = engine._plan(df)
    lost = tuple(replace(leaf, path=(0, 0, 0, 0, 0, 7)) for leaf in planned.leaves)
    monkeypatch.setattr(engine._parts.site.planner, "plan", lambda *_: replace(planned, leaves=lost))
    result = engine.run(df)
    assert isinstance(result, LeafResult)
    until(result._run.outcome.done)
    return result


def with_a_function(spark: SparkSession) -> DataFrame:
    same = udf(lambda key: key, "long")
    return spark.table("nation").select(same("n_nationkey").alias("k")).groupBy("k").count()


def test_a_query_is_cancelled_between_its_leaf_and_spark(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = left_to_spark(engine, with_a_function(spark), monkeypatch)
    result.cancel()
    with pytest.raises(QueryCancelledError):
        result.rows()
    until(lambda: not engine._parts.jobs._running)


def test_spark_cancels_a_query_between_its_leaf_and_spark(
    engine: Engine, spark: SparkSession, in_group: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = left_to_spark(engine, with_a_function(spark), monkeypatch)
    (job,) = engine._parts.jobs._running.values()
    in_group()
    until(lambda: job._cancelled is not None)  # Spark tells it a little after it knows no job
    with pytest.raises(SparkCancelledError):
        result.rows()


def test_a_result_that_is_dropped_before_its_leaf_has_run_ends_its_query(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    let_go = tmp_path / "let go"
    held = udf(lambda key: _until_there(str(let_go)) and key, "long")
    result = engine.run(spark.table("nation").select(held("n_nationkey").alias("k")).groupBy("k").count())
    assert isinstance(result, LeafResult)
    outcome = result._run.outcome
    del result
    gc.collect()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(outcome.exception, 60).result()
    let_go.touch()
    assert isinstance(outcome.exception(), QueryCancelledError)
    until(lambda: nothing_is_left_of_queries(engine))


def _until_there(path: str) -> bool:
    deadline = time.monotonic() + 20
    while not Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return True

"""How queries end before their result is whole: cancelled, out of time, by an error; others go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark_sessions import Engines

from wallaby.engine import Engine
from wallaby.errors import (
    ArithmeticOverflowError,
    CastOverflowError,
    CorruptFileError,
    DivideByZeroError,
    NumericOutOfRangeError,
    QueryCancelledError,
    QueryError,
    QueryTimeoutError,
    SourceChangedError,
)
from wallaby.lineage.names import QueryId
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

LONG = "select k, count(*) n, sum(v) s from short group by k"


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def nothing_is_left_of_queries(engine: Engine) -> bool:
    return not engine._parts.gcs.queries() and not engine._parts.head._queries


def test_a_cancelled_query_ends_and_leaves_nothing(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(spark.sql(LONG))
    threading.Timer(0.3, result.cancel).start()
    with pytest.raises(QueryCancelledError):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    assert engine.count(spark.table("nation")) == 25


def test_a_stream_that_is_dropped_cancels_its_query(engine: Engine, spark: SparkSession) -> None:
    stream = engine.run(spark.table("short")).batches()
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    until(lambda: nothing_is_left_of_queries(engine))


def test_ctrl_c_ends_the_query_and_nothing_else(engine: Engine, spark: SparkSession) -> None:
    before = engine.workers()
    result = engine.run(spark.sql(LONG))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        result.arrow()
    until(lambda: nothing_is_left_of_queries(engine))
    assert [worker.pid for worker in engine.workers()] == [worker.pid for worker in before]
    assert engine.count(spark.table("nation")) == 25


def sleeping(spark: SparkSession) -> DataFrame:
    """Spark does not interrupt tasks that it cancels: two, so that a slot stays free, and not for long."""
    seconds = "java_method('java.lang.Thread', 'sleep', 10000L + id) as x"
    return spark.range(0, 2, 1, 2).selectExpr(seconds)


def test_ctrl_c_during_a_spark_job_cancels_it_and_spares_the_task_managers(
    engine: Engine, spark: SparkSession
) -> None:
    before = engine.workers()
    tracker = spark.sparkContext.statusTracker()
    hosting = set(tracker.getActiveJobsIds())
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    spark.sparkContext.setJobGroup("interrupted", "a job that sleeps")
    with pytest.raises(KeyboardInterrupt):
        sleeping(spark).collect()
    spark.sparkContext._jsc.clearJobGroup()
    until(lambda: set(tracker.getActiveJobsIds()) == hosting)
    (job,) = tracker.getJobIdsForGroup("interrupted")
    assert tracker.getJobInfo(job).status == "FAILED", "it did not come to its own end"  # type: ignore[union-attr]
    assert spark.range(10).count() == 10
    assert [worker.pid for worker in engine.workers()] == [worker.pid for worker in before]


def test_spark_jobs_of_a_result_can_be_cancelled_too(engine: Engine, spark: SparkSession) -> None:
    result = engine.run(sleeping(spark))
    assert not result.native
    threading.Timer(1.0, result.cancel).start()
    with pytest.raises(QueryCancelledError):
        result.rows()


def test_rows_of_a_query_that_has_ended_are_dropped(engine: Engine, spark: SparkSession) -> None:
    gone: list[bool] = []
    done = threading.Event()
    head = engine._parts.head

    def collect() -> None:
        head._collect(QueryId("a query that has ended"), (), lambda: gone.append(True))
        done.set()

    head.node.loop.post(collect)
    assert done.wait(10)
    assert gone == [True]
    assert engine.count(spark.table("nation")) == 25


def test_a_head_that_fails_ends_its_queries_and_takes_no_more(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=1, threads=1, split=1)
    result = engine.run(spark.sql(LONG))

    def fail() -> None:
        raise ZeroDivisionError("on purpose")

    engine._parts.head.node.loop.post(fail)
    with pytest.raises(QueryError, match="on purpose"):
        result.rows()
    with pytest.raises(QueryError, match="attach again"):
        engine.collect(spark.table("nation"))
    engines.close()
    assert engines.get(workers=1, threads=1, split=1).count(spark.table("nation")) == 25


def test_a_query_that_takes_too_long_is_ended(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=1, threads=1, split=1, timeout="500ms")
    with pytest.raises(QueryTimeoutError, match=r"spark\.wallaby\.timeout"):
        engine.collect(spark.sql(LONG))
    until(lambda: nothing_is_left_of_queries(engine))


def test_closing_while_a_query_runs_never_gives_half_a_result(engines: Engines, spark: SparkSession) -> None:
    engine = engines.get(workers=1, threads=1, split=1)
    result = engine.run(spark.table("short"))
    stream = result.batches()
    next(stream)
    engine.close()
    with pytest.raises(QueryCancelledError):
        list(stream)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("sum(l_orderkey / (l_linenumber - 1))", DivideByZeroError),
        ("max(l_orderkey * 9223372036854775807)", ArithmeticOverflowError),
        ("sum(cast('99999999999999999999999999999999999999' as decimal(38, 0)))", ArithmeticOverflowError),
        ("max(cast(l_orderkey as tinyint))", CastOverflowError),
        ("max(cast(l_extendedprice as decimal(4, 2)))", NumericOutOfRangeError),
    ],
)
def test_an_error_of_the_data_has_sparks_condition(
    engine: Engine, spark: SparkSession, column: str, kind: type[PySparkException]
) -> None:
    df = spark.sql(f"select {column} from lineitem")
    assert engine.fallback_reasons(df) == []
    with pytest.raises(kind) as ours:
        engine.collect(df)
    with pytest.raises(ArithmeticException) as theirs:
        df.collect()
    assert ours.value.getCondition() == theirs.value.getCondition()
    assert str(ours.value.fields["task"]).startswith("s")  # type: ignore[attr-defined]


def test_an_invalid_cast_of_text_is_sparks_error(engine: Engine, spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as error:
        engine.collect(spark.sql("select max(cast(n_comment as int)) from nation"))
    assert error.value.getCondition() == "CAST_INVALID_INPUT"


def test_files_that_break_between_planning_and_reading_end_the_query(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": list(range(50_000))}), path, row_group_size=5_000, compression="none")
    df = spark.read.parquet(str(path)).where("n > 10")
    assert engine._plan(df).physical is not None
    whole = path.read_bytes()
    stat = path.stat()
    path.write_bytes(whole[:100] + bytes(200_000) + whole[200_100:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(CorruptFileError) as corrupt:
        engine.collect(df)
    assert corrupt.value.getCondition() == "FAILED_READ_FILE.NO_HINT"
    path.write_bytes(whole)
    with pytest.raises(SourceChangedError):
        engine.collect(df)
    path.unlink()
    with pytest.raises(SourceChangedError):
        engine.collect(df)


def test_ten_queries_at_once_while_some_fail(
    engine: Engine, spark: SparkSession, answers: dict[int, pa.Table]
) -> None:
    def ask(number: int) -> pa.Table | PySparkException:
        try:
            text = (
                tpch.query(number) if number else "select sum(l_orderkey / (l_linenumber - 1)) from lineitem"
            )
            return engine.to_arrow(spark.sql(text))
        except PySparkException as error:
            return error

    numbers = [1, 3, 0, 4, 5, 6, 0, 10, 12, 14]
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(ask, numbers))
    for number, answer in zip(numbers, found, strict=True):
        if number:
            assert isinstance(answer, pa.Table), answer
            require_same(answer, answers[number], order=tpch.ORDERS[number])
        else:
            assert isinstance(answer, DivideByZeroError)
    until(lambda: nothing_is_left_of_queries(engine))


def test_thousands_of_tiny_tasks(engine: Engine, spark: SparkSession) -> None:
    df = spark.sql(LONG.replace("short", "tiny"))
    result = engine.run(df)
    require_same(result.arrow(), df.toArrow())
    assert result.stats.tasks > 3_000

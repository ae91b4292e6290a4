"""A part whose rows are handed over to Spark's tasks: interrupted, doubtful, wrong, or one of many at once."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.engine.above.test_above_again import JOINED, SLOW, over, rows
from tests.engine.conftest import Counted, on_spark
from tests.engine.test_ends import until

from wallaby.above.subplan import LEFT_WHILE_RUNNING
from wallaby.engine import Engine

LEFT = LEFT_WHILE_RUNNING.partition(":")[0]


def test_ctrl_c_ends_the_part_and_the_next_action_runs_it(above: Engine, spark: SparkSession) -> None:
    slow = over(spark.sql(SLOW))
    over_it = threading.Event()

    def press() -> None:
        until(lambda: bool(above._parts.gcs.queries()) or over_it.is_set())
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            slow.collect()
    finally:
        over_it.set()
        pressing.join(60)
    until(lambda: not above._parts.gcs.queries())
    assert rows(slow.collect()) == rows(on_spark(spark, over(spark.sql(SLOW)).collect))


def test_an_error_in_the_data_is_sparks_own(above: Engine, spark: SparkSession) -> None:
    spark.conf.set("spark.wallaby.sparkErrors", "true")
    try:
        bad = spark.sql("select o_custkey, sum(1 / (o_orderkey - 1)) s from orders group by o_custkey")
        with pytest.raises((PySparkException, Py4JJavaError), match="DIVIDE_BY_ZERO"):
            over(bad).collect()
        with pytest.raises((PySparkException, Py4JJavaError), match="DIVIDE_BY_ZERO"):
            list(bad.toLocalIterator())
    finally:
        spark.conf.unset("spark.wallaby.sparkErrors")


def test_a_doubtful_value_leaves_the_part_to_spark(
    counted: Counted, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pq.write_table(
        pa.table({"v": ["2020-01-01 01:02:03", "2020-01-01 01:02:03 Europe/Paris"]}), tmp_path / "odd"
    )
    spark.read.parquet(str(tmp_path / "odd")).createOrReplaceTempView("odd")
    try:
        query = "select cast(v as timestamp) t, count(*) n from odd group by t"
        with caplog.at_level("INFO", logger="wallaby"):
            found = rows(over(spark.sql(query)).collect())
        assert counted.runs == 1
        assert LEFT in caplog.text
        assert found == rows(on_spark(spark, lambda: over(spark.sql(query)).collect()))
    finally:
        spark.catalog.dropTempView("odd")


def test_a_part_that_is_no_query_of_its_own_is_left_to_spark(
    above: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark fails to analyze some plans again that it has optimized itself, with errors that are not Wallaby's."""

    def fail(_: object) -> None:
        raise Py4JError("java.lang.ClassCastException: Literal cannot be cast to Attribute")

    expected = rows(on_spark(spark, over(spark.sql(JOINED)).collect))
    monkeypatch.setattr(above.subplans, "_subplan", fail)
    with caplog.at_level("INFO", logger="wallaby"):
        assert rows(over(spark.sql(JOINED)).collect()) == expected
    assert f"{LEFT}: java.lang.ClassCastException" in caplog.text


def test_many_readers_at_once_do_not_disturb_each_other(counted: Counted, spark: SparkSession) -> None:
    expected = on_spark(spark, lambda: spark.table("orders").count())
    found: dict[int, int] = {}

    def read(number: int) -> None:
        query = spark.sql(f"select o_custkey % {number + 2} k, count(*) n from orders group by 1")
        found[number] = sum(row.n for row in query.toLocalIterator())

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == dict.fromkeys(range(6), expected)
    assert counted.runs == 6


def test_a_profile_of_python_functions_has_only_those_of_the_user(
    counted: Counted, spark: SparkSession
) -> None:
    """The function that reads rows in Spark's tasks is one of ours."""
    spark.conf.set("spark.sql.pyspark.udf.profiler", "perf")
    try:
        over(spark.sql(JOINED)).collect()
        assert counted.runs == 1
        assert len(spark.profile.profiler_collector._perf_profile_results) == 1
    finally:
        spark.conf.unset("spark.sql.pyspark.udf.profiler")
        spark.profile.clear()

"""What a session's queries were, where they ran and why: the log, the history and the findings of real queries."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from tests.engine.test_ends import until
from tests.spark_sessions import Engines

import wallaby
from wallaby import FindingKind, Where
from wallaby.engine import Engine
from wallaby.errors import AttachError
from wallaby.head import collected
from wallaby.observe.log_reading import read_log

GROUPED = "select o_custkey, sum(o_totalprice) s from orders group by 1"


@pytest.fixture
def enabled(engine: Engine, spark: SparkSession) -> Iterator[Engine]:
    wallaby.enable(spark)
    yield engine
    wallaby.disable(spark)


def test_every_action_is_recorded_with_where_it_ran(
    enabled: Engine, spark: SparkSession, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "wallaby.queries")
    before = len(enabled.history())
    same = udf(lambda x: x, "string")
    spark.sql(GROUPED).collect()
    spark.sql("select sin(o_totalprice) from orders limit 3").collect()
    spark.table("orders").count()
    spark.table("orders").select(same("o_orderpriority").alias("p")).groupBy("p").count().toPandas()
    spark.conf.set("spark.wallaby.below", "always")
    try:
        spark.sql(GROUPED).write.parquet(str(tmp_path / "out"))
        spark.sql(GROUPED).select(same("s")).collect()
    finally:
        spark.conf.unset("spark.wallaby.below")
    found = enabled.history()[before:]
    assert [(each.where, each.action) for each in found[:4]] == [
        (Where.NATIVE, "collect"),
        (Where.SPARK, "collect"),
        (Where.NATIVE, "count"),
        (Where.PART, "toPandas"),
    ]
    assert [(each.where, each.sql) for each in found[4:]] == [(Where.NATIVE, GROUPED), (Where.PART, GROUPED)]
    assert all(each.state == "done" for each in found)
    assert found[0].rows == spark.table("orders").select("o_custkey").distinct().count()
    assert "Sin" in found[1].reasons[0]
    assert "ArrowEvalPython" in found[3].why
    assert found[2].text.startswith("count at test_history.py:")
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.INFO]
    assert [line.partition(":")[0] for line in lines[:6]] == [
        "native",
        "Spark",
        "native",
        "part",
        "native",
        "part",
    ]
    assert [finding.kind for finding in found[1].findings] == [FindingKind.ON_SPARK]


def test_errors_and_the_last_query_are_explained(enabled: Engine, spark: SparkSession) -> None:
    spark.conf.set("spark.wallaby.sparkErrors", "false")
    try:
        with pytest.raises(Exception, match="cast"):
            spark.sql("select cast(o_orderpriority as int) from orders").collect()
    finally:
        spark.conf.unset("spark.wallaby.sparkErrors")
    last = enabled.history()[-1]
    assert (last.state, last.where) == ("failed", Where.NATIVE)
    assert "cast" in last.error
    text = wallaby.explain_last(spark)
    assert "failed in the TaskManagers" in text
    assert "test_history.py" in text
    assert text == wallaby.explain_last()
    with pytest.raises(AttachError, match="no engine"):
        wallaby.explain_last(object())  # type: ignore[arg-type]


def test_a_stream_that_nobody_reads_is_recorded_as_cancelled(engine: Engine, spark: SparkSession) -> None:
    engine.run(spark.table("short")).cancel()
    until(lambda: engine.history()[-1].state == "cancelled")


def test_an_event_log_says_what_the_query_was(engines: Engines, spark: SparkSession, tmp_path: Path) -> None:
    engine = engines.get(workers=2, threads=1, event_log_dir=str(tmp_path))
    result = engine.run(spark.sql(GROUPED))
    result.arrow()
    path = Path(result.stats.event_log)
    (plan,) = [event for event in map(json.loads, path.read_text().splitlines()) if event["event"] == "plan"]
    assert (plan["sql"], plan["action"]) == (GROUPED, "run")
    assert plan["line"].startswith("test_history.py:")
    assert read_log(path).about.sql == GROUPED
    assert engine.history()[-1].event_log == str(path)


def test_a_table_that_is_read_twice_is_found_and_one_that_is_read_once_is_not(
    engine: Engine, spark: SparkSession
) -> None:
    twice = engine.run(
        spark.sql("select count(*) from lineitem a join lineitem b on a.l_orderkey = b.l_partkey"),
        observed=True,
    )
    twice.arrow()
    found = {finding.kind: finding for finding in twice.findings}
    assert "lineitem is read twice" in found[FindingKind.READ_TWICE].what
    assert found[FindingKind.READ_TWICE].line.startswith("test_history.py:")
    once = engine.run(spark.sql(GROUPED), observed=True)
    once.arrow()
    assert FindingKind.READ_TWICE not in {finding.kind for finding in once.findings}


@pytest.mark.parametrize(
    ("key", "is_skewed"), [("l_orderkey", False), ("if(l_orderkey < 9, l_orderkey, null)", True)]
)
def test_a_skewed_key_is_found_and_an_even_one_is_not(
    engines: Engines, spark: SparkSession, key: str, is_skewed: bool
) -> None:
    engine = engines.get(workers=2, threads=1, channels=4, split=1)
    numbered = f"row_number() over (partition by {key} order by l_comment, l_orderkey, l_linenumber)"
    result = engine.run(spark.sql(f"select max(n) m from (select {numbered} n from lineitem)"), observed=True)
    result.arrow()
    assert result.native
    assert (FindingKind.SKEW in {finding.kind for finding in result.findings}) is is_skewed, result.findings


def test_a_lost_worker_is_in_the_record_and_a_finding(
    engines: Engines, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engines.get(workers=2, threads=1, split=1, leaf_minimum=0)
    result = engine.run(spark.sql("select k, count(*) n, sum(v) s from short group by k"), observed=True)
    victim = engine.workers()[0]
    until(
        lambda: (
            result._collected.observation is not None and result._collected.observation.stats(0).commits > 20
        )
    )
    os.kill(victim.pid, signal.SIGKILL)
    assert len(result.rows()) == 7
    record = engine.history()[-1]
    assert record.lost_workers == (victim.id,)
    assert record.recoveries >= 1
    assert (
        any(finding.kind is FindingKind.RECOVERY for finding in record.findings)
        or result.stats.frozen_seconds < 1
    )
    said = [
        each.getMessage() for each in caplog.records if each.levelno == logging.WARNING and "lost" in each.msg
    ]
    assert len([line for line in said if victim.id in line]) == 1


def test_a_slow_client_is_found(engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "UNTAKEN_BYTES_MAX", 50)
    result = engine.run(spark.table("few"), observed=True)
    for number, _ in enumerate(result.batches()):
        time.sleep(0.5 if number < 10 else 0)
    until(lambda: engine.history()[-1].state == "done")
    assert FindingKind.CLIENT in {finding.kind for finding in result.findings}
    monkeypatch.undo()
    quick = engine.run(spark.table("few"), observed=True)
    quick.arrow()
    assert FindingKind.CLIENT not in {finding.kind for finding in quick.findings}


def test_threads_share_a_history(engine: Engine, spark: SparkSession) -> None:
    before = len(engine.history())
    threads = [threading.Thread(target=lambda: engine.run(spark.sql(GROUPED)).arrow()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = engine.history()[before:]
    assert [each.state for each in found] == ["done"] * 4
    assert len({each.number for each in found}) == 4

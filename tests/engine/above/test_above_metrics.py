"""What the SQL tab of Spark's UI shows of a part: rows, bytes, time, and losses, also those while its rows are read."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from tests.engine.conftest import Counted
from tests.engine.losses.test_losses import wait_for

from wallaby.above import partitions
from wallaby.engine import Engine

QUERY = "select k, v % 97 w, count(*) n from short group by k, w"
GROUPS = 7 * 97
LOSSES = "lost TaskManagers recovered from"


def shown(spark: SparkSession) -> dict[str, str]:
    """The metrics of the Wallaby node in the last execution."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty(60_000)
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last().executionId()
    values, as_java = store.executionMetrics(last), jvm.scala.jdk.javaapi.CollectionConverters.asJava
    (node,) = [node for node in as_java(store.planGraph(last).allNodes()) if node.name() == "Wallaby"]
    metrics = {metric.name(): values.get(metric.accumulatorId()) for metric in as_java(node.metrics())}
    return {name: value.get() if value.isDefined() else "" for name, value in metrics.items()}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_each_action_shows_what_has_run(counted: Counted, spark: SparkSession) -> None:
    df = spark.sql(QUERY).select(udf(lambda k: k, "long")("k"), "n")
    for _ in range(2):
        assert len(df.collect()) == GROUPS
        found = shown(spark)
        assert number(found["number of output rows"]) == GROUPS
        assert found["data size"]
        assert found["time in the TaskManagers"]
        assert number(found[LOSSES]) == 0
    assert counted.runs == 1


def test_a_write_shows_what_has_run(counted: Counted, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(QUERY).write.parquet(str(tmp_path / "written"))
    assert counted.runs == 1
    found = shown(spark)
    assert number(found["number of output rows"]) == GROUPS
    assert found["data size"]
    assert found["time in the TaskManagers"]


def test_a_loss_while_rows_are_read_is_shown(
    above: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(above, 2, set())
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 1)
    df = spark.sql("select k, v from short where v % 3 > 0 order by v").select(
        udf(lambda k: k, "long")("k"), "v"
    )
    expected = len(df.collect())
    for worker in above.workers():
        os.kill(worker.pid, signal.SIGKILL)
    assert len(df.collect()) == expected
    assert number(shown(spark)[LOSSES]) >= 1

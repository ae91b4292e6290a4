"""`enable` sends a session's actions through the engine, and `disable` leaves no trace of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame as AnyDataFrame
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from tests.spark_sessions import Engines

import wallaby
from wallaby.config.settings import read_settings
from wallaby.engine import Engine
from wallaby.errors import AttachError, DivideByZeroError
from wallaby_lab import tpch
from wallaby_lab.compare import require_same

METHODS = (
    "collect",
    "_collect_as_arrow",
    "count",
    "_show_string",
    "toArrow",
    "toPandas",
    "show",
    "take",
    "head",
)


class Counted:
    """Counts the queries that an engine runs."""

    def __init__(self, engine: Engine) -> None:
        self.queries = 0
        self._submit = engine._parts.runner._submit
        self._engine = engine
        engine._parts.runner._submit = self._count  # type: ignore[method-assign, assignment]

    def _count(self, *arguments: object, **named: object) -> object:
        self.queries += 1
        return self._submit(*arguments, **named)  # type: ignore[arg-type]

    def stop(self) -> None:
        del self._engine._parts.runner._submit


@pytest.fixture
def counted(engine: Engine, spark: SparkSession, setting: Callable[[str, str], None]) -> Iterator[Counted]:
    setting("leaf.minimum", str(read_settings({}, {}).leaf_minimum))
    wallaby.enable(spark)
    found = Counted(engine)
    yield found
    found.stop()
    wallaby.disable(spark)


def test_all_actions_go_through_the_engine(
    counted: Counted, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    nation = spark.table("nation").orderBy("n_name")
    done = [
        nation.collect(),
        nation.toArrow(),
        nation.toPandas(),
        nation.count(),
        nation.take(3),
        nation.first(),
        nation.head(),
        nation.head(2),
    ]
    nation.show(3)
    shown = capsys.readouterr().out
    assert counted.queries == 9
    spark.conf.set("spark.wallaby.enabled", "false")
    try:
        assert done[0] == nation.collect()
        require_same(done[1], nation.toArrow(), order=["n_name"])
        pd.testing.assert_frame_equal(done[2], nation.toPandas())
        assert done[3:] == [25, nation.take(3), nation.first(), nation.head(), nation.head(2)]
        nation.show(3)
        assert shown == capsys.readouterr().out
        assert counted.queries == 9, "the switch leaves queries to Spark"
    finally:
        spark.conf.unset("spark.wallaby.enabled")


def test_what_is_not_worth_it_stays_on_spark(counted: Counted, spark: SparkSession) -> None:
    assert spark.sql("select 1").collect()[0][0] == 1
    assert spark.sql("show tables").count() > 0
    assert len(spark.createDataFrame([(1, "a")], ["n", "s"]).toPandas()) == 1
    assert spark.range(10).count() == 10
    assert spark.sql("select sum(n) from values (1), (2) as t(n)").first() == (3,)
    spark.sql("create or replace temporary view v as select 1")
    assert counted.queries == 0


def test_streaming_stays_on_spark(counted: Counted, spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    query = stream.writeStream.format("memory").queryName("rates").trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert spark.table("rates").count() >= 0
    assert counted.queries == 0


def test_the_session_of_a_batch_of_a_stream_is_enabled_with_the_one_it_was_made_from(
    counted: Counted, spark: SparkSession, tmp_path: Path
) -> None:
    nation = spark.table("nation")
    seen: list[tuple[int, int]] = []

    def each(batch: AnyDataFrame, _: int) -> None:
        there = batch.sparkSession
        assert there is not spark
        seen.append((there.table("nation").count(), counted.queries))
        wallaby.disable(there)
        seen.append((there.table("nation").count(), counted.queries))
        wallaby.enable(there)
        seen.append((there.table("nation").count(), counted.queries))
        wallaby.disable(there)

    files = str(tmp_path / "nation")
    nation.write.parquet(files)
    stream = spark.readStream.schema(nation.schema).parquet(files).writeStream.foreachBatch(each)
    query = stream.option("checkpointLocation", str(tmp_path / "kept")).trigger(availableNow=True).start()
    assert query.awaitTermination(100)
    assert seen == [(25, 1), (25, 1), (25, 2)]


def test_what_the_engine_cannot_run_is_right_and_says_why(
    counted: Counted, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="wallaby"):
        rows = spark.sql("select collect_list(n_name) r from nation").collect()
    assert [len(row.r) for row in rows] == [25]
    said = [
        record for record in caplog.records if record.name == "wallaby.queries" and record.levelname == "INFO"
    ]
    lines = [record.getMessage() for record in said]
    assert len(lines) == 1
    assert lines[0].startswith("Spark: 1 row in ")
    assert "CollectList" in lines[0]
    assert counted.queries == 0


def test_errors_are_sparks_conditions(counted: Counted, spark: SparkSession) -> None:
    with pytest.raises(DivideByZeroError):
        spark.sql("select sum(l_orderkey / (l_linenumber - 1)) from lineitem").collect()


def test_enable_is_idempotent_and_disable_restores_everything(engine: Engine, spark: SparkSession) -> None:
    before = {name: DataFrame.__dict__.get(name) for name in METHODS}
    assert wallaby.enable(spark) is engine
    assert wallaby.enable(spark) is engine
    assert DataFrame.__dict__["collect"] is not before["collect"]
    wallaby.disable(spark)
    assert {name: DataFrame.__dict__.get(name) for name in METHODS} == before
    wallaby.disable(spark)
    assert engine.is_open, "an engine that the user attached is the user's to close"


def test_settings_cannot_be_given_for_an_engine_that_is_there(engine: Engine, spark: SparkSession) -> None:
    with pytest.raises(AttachError, match="already"):
        wallaby.enable(spark, workers=1)


def test_enable_brings_its_own_engine_and_takes_it_away(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    mine = wallaby.enable(spark, workers=1, threads=1, attach_timeout=120)
    assert spark.sql(tpch.query(6)).toArrow().num_rows == 1
    wallaby.disable(spark)
    assert not mine.is_open


def test_a_closed_engine_leaves_queries_to_spark(engines: Engines, spark: SparkSession) -> None:
    engines.close()
    wallaby.enable(spark, workers=1, threads=1, attach_timeout=120).close()
    try:
        assert spark.table("nation").count() == 25
    finally:
        wallaby.disable(spark)

"""`spark.conf.set("spark.wallaby.…")`: read at attach, from the next query on, or told not to count."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark_sessions import Engines

import wallaby
from wallaby.engine import Engine
from wallaby.errors import ConfigurationError, QueryTimeoutError

LONG = "select k, count(*) n, sum(v) s from short group by k"


@pytest.fixture(autouse=True)
def _unset_again(spark: SparkSession) -> Iterator[None]:
    yield
    for key in list(spark.conf.getAll):
        if key.startswith("spark.wallaby."):
            spark.conf.unset(key)


def test_it_is_read_at_attach(spark: SparkSession, engines: Engines) -> None:
    engines.close()
    spark.conf.set("spark.wallaby.threads", "1")
    spark.conf.set("spark.wallaby.timeout", "77s")
    with wallaby.attach(spark, workers=1, attach_timeout=120, timeout=88) as engine:
        assert engine.settings.threads == 1
        assert engine.settings.timeout == 88, "keywords come first"
        assert engine._settings(spark.table("nation")).timeout == 88
        spark.conf.set("spark.wallaby.timeout", "99s")
        assert engine._settings(spark.table("nation")).timeout == 99, "and what is set later before them"
        spark.conf.set("spark.wallaby.timeout", "77s")
        assert engine._settings(spark.table("nation")).timeout == 77, "whatever it was at attach"
        spark.conf.unset("spark.wallaby.timeout")
        assert engine._settings(spark.table("nation")).timeout == 88


@pytest.mark.parametrize(("key", "value"), [("thread", "1"), ("threads", "some"), ("workers", "-1")])
def test_nonsense_is_refused_at_attach(spark: SparkSession, engines: Engines, key: str, value: str) -> None:
    engines.close()
    spark.conf.set(f"spark.wallaby.{key}", value)
    with pytest.raises(ConfigurationError, match=f"spark.wallaby.{key}"):
        wallaby.attach(spark, workers=1)


def test_a_change_counts_from_the_next_query_on(engine: Engine, spark: SparkSession) -> None:
    spark.conf.set("spark.wallaby.timeout", "50ms")
    with pytest.raises(QueryTimeoutError):
        engine.collect(spark.sql(LONG))
    spark.conf.unset("spark.wallaby.timeout")
    assert len(engine.collect(spark.sql(LONG))) == 7


def test_a_change_that_comes_too_late_is_told_once(
    engine: Engine, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.wallaby.memory", "3g")
    with caplog.at_level(logging.WARNING, "wallaby"):
        engine.count(spark.table("nation"))
        engine.count(spark.table("nation"))
    told = [record.getMessage() for record in caplog.records if "spark.wallaby.memory" in record.getMessage()]
    assert len(told) == 1
    assert "has no effect" in told[0]


@pytest.mark.parametrize(
    ("key", "value", "fix"), [("timout", "5s", "timeout"), ("channels", "many", "number")]
)
def test_nonsense_is_refused_by_the_next_query(
    engine: Engine, spark: SparkSession, key: str, value: str, fix: str
) -> None:
    spark.conf.set(f"spark.wallaby.{key}", value)
    with pytest.raises(ConfigurationError, match=fix):
        engine.collect(spark.table("nation"))
    spark.conf.unset(f"spark.wallaby.{key}")
    assert engine.count(spark.table("nation")) == 25


@pytest.mark.parametrize(
    ("key", "value"), [("timout", "5s"), ("channels", "many"), ("below", "nevr"), ("enabled", "flase")]
)
@pytest.mark.parametrize(
    "act",
    [
        lambda df, path: df.write.parquet(path),
        lambda df, path: df.write.json(path),
        lambda df, path: df.groupBy("n_regionkey").count().write.parquet(path),
        lambda df, path: df.sparkSession.sql("create table refused using parquet as select 1 one"),
    ],
    ids=["write", "write json", "write groups", "create table"],
)
def test_nonsense_is_refused_by_the_next_write(
    above: Engine,
    spark: SparkSession,
    tmp_path: Path,
    key: str,
    value: str,
    act: Callable[[DataFrame, str], object],
) -> None:
    """However little it reads, and whether or not a part of it would run here."""
    df = spark.table("nation")
    spark.conf.set(f"spark.wallaby.{key}", value)
    with pytest.raises(ConfigurationError, match=rf"spark\.wallaby\.{key}"):
        act(df, str(tmp_path / "t"))
    assert not list((tmp_path / "t").glob("*.parquet"))
    spark.sql(f"reset spark.wallaby.{key}")
    act(df, str(tmp_path / "t"))
    spark.sql("drop table if exists refused")


def test_nonsense_is_told_once_of_what_else_spark_plans(
    above: Engine, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark would remember an error with the DataFrame, which would fail for ever."""
    df = spark.table("nation")
    spark.conf.set("spark.wallaby.timout", "5s")
    with caplog.at_level(logging.WARNING, "wallaby"):
        assert len(list(df.toLocalIterator())) == 25
        df.foreachPartition(lambda rows: None)
    assert len([each for each in caplog.messages if "There is no setting spark.wallaby.timout" in each]) == 1


def test_a_switch_that_is_neither_on_nor_off_is_refused(engine: Engine, spark: SparkSession) -> None:
    wallaby.enable(spark)
    try:
        spark.conf.set("spark.wallaby.enabled", "flase")
        with pytest.raises(ConfigurationError, match=r"spark\.wallaby\.enabled"):
            spark.table("nation").count()
    finally:
        spark.conf.unset("spark.wallaby.enabled")
        wallaby.disable(spark)

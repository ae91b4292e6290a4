"""`engine.write`: PySpark's methods without `enable`, and keys that make a write happen once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.above.test_writing import files, listed, read
from tests.engine.conftest import on_spark

from wallaby.above import staging
from wallaby.engine import Engine
from wallaby.errors import InvalidArgumentError, QueryTimeoutError, WriteError

__all__ = ["files"]

BY_DAY = "select o_orderdate, count(*) n, sum(o_totalprice) s from orders group by 1"
#: Writes under a key, and is killed at a step of it: before or after a call of a function.
DRIVER = """
import os, signal, sys
from pyspark.sql import SparkSession
import wallaby
from wallaby.above.places import Places
from wallaby.above.publishing import Publication

folder, query, path, step, mode, by, overwrite = sys.argv[1:]
where, name, when = step.split("-")
owner = {"Publication": Publication, "Places": Places}[where]
original = getattr(owner, name)

def call(*arguments):
    if when == "after":
        original(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, call)
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
    "spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").config(
    "spark.sql.sources.partitionOverwriteMode", overwrite).getOrCreate()
engine = wallaby.attach(spark)
spark.read.parquet(folder + "/orders.parquet").createOrReplaceTempView("orders")
writer = engine.write(spark.sql(query)).mode(mode).option("key", "monday")
(writer.partitionBy(by) if by else writer).parquet(path)
"""
BY_PRIORITY = (
    "select o_orderdate, o_orderpriority p, count(*) n from orders where o_orderkey < 2000 group by 1, 2"
)


def written(path: Path) -> list[str]:
    return [file.name for file in listed(path) if file.suffix == ".parquet"]


def test_a_write_needs_no_enabling_and_no_gain(
    engine: Engine, files: list[int], spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.sql("select * from nation")
    engine.write(df).mode("overwrite").parquet(str(tmp_path / "t"))
    assert files == [len(written(tmp_path / "t"))]
    assert read(spark, tmp_path / "t") == sorted(
        row.j for row in df.selectExpr("to_json(struct(*)) j").collect()
    )
    engine.write(df).save(str(tmp_path / "o"), format="orc", mode="error")
    assert spark.read.orc(str(tmp_path / "o")).count() == 25
    df.write.parquet(str(tmp_path / "by-spark"))
    assert len(files) == 1, "the session itself is not enabled"


@pytest.mark.parametrize("way", ["parquet", "save", "saveAsTable", "insertInto"])
def test_a_second_write_under_the_same_key_does_nothing(
    engine: Engine, files: list[int], spark: SparkSession, tmp_path: Path, way: str
) -> None:
    df = spark.sql(BY_DAY)
    rows, path = df.count(), str(tmp_path / "t")
    spark.sql("drop table if exists days")
    if way == "insertInto":
        spark.sql(
            f"create table days (o_orderdate date, n long, s decimal(25, 2)) using parquet location '{path}'"
        )
    try:
        for key in ("monday", "monday", "tuesday", "monday"):
            writer = engine.write(df).mode("append").option("key", key)
            match way:
                case "parquet":
                    writer.parquet(path)
                case "save":
                    writer.save(path, format="parquet")
                case "saveAsTable":
                    writer.option("path", path).saveAsTable("days")
                case _:
                    writer.insertInto("days")
        assert spark.read.parquet(path).count() == 2 * rows
        assert sum(files) == len(written(tmp_path / "t"))
        assert len(files) == 2
    finally:
        spark.sql("drop table if exists days")


def test_a_write_with_a_key_that_spark_would_have_to_make_is_refused(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    df = spark.sql(BY_DAY)
    with pytest.raises(InvalidArgumentError, match="Parquet"):
        engine.write(df).option("key", "monday").orc(path)
    with pytest.raises(InvalidArgumentError, match="non-empty"):
        engine.write(df).option("key", "")
    with pytest.raises(WriteError, match=r"parquet\.bloom\.filter\.enabled"):
        engine.write(df).options(key="monday").option("parquet.bloom.filter.enabled", "true").parquet(path)
    only_spark = df.selectExpr("o_orderdate", "java_method('java.util.UUID', 'randomUUID') u")
    with pytest.raises(WriteError, match="The TaskManagers cannot make this write, which has a key"):
        engine.write(only_spark).option("key", "monday").parquet(path)
    assert not written(tmp_path / "t")
    engine.write(df).mode("append").option("key", "monday").parquet(path)
    assert spark.read.parquet(path).count() == df.count()


def test_a_write_that_fails_can_be_made_again(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.wallaby.timeout", "100ms")
    try:
        with pytest.raises(QueryTimeoutError):
            engine.write(spark.sql("select k, count(*) n from tiny group by k")).option("key", "monday").mode(
                "append"
            ).parquet(str(tmp_path / "t"))
    finally:
        spark.conf.unset("spark.wallaby.timeout")
    assert not written(tmp_path / "t")
    engine.write(spark.sql(BY_DAY)).mode("append").option("key", "monday").parquet(str(tmp_path / "t"))
    assert written(tmp_path / "t")


@pytest.mark.parametrize(
    ("step", "mode", "by", "overwrite", "published"),
    [
        ("Publication-stage-before", "error", "", "static", False),
        ("Places-_change-after", "append", "p", "static", False),
        ("Publication-publish-after", "overwrite", "p", "static", True),
        ("Places-_change-after", "overwrite", "p", "dynamic", False),
        ("Publication-finish-after", "append", "p", "static", True),
    ],
)
def test_a_driver_that_is_killed_costs_a_second_run_and_no_row(
    engine: Engine,
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    mode: str,
    by: str,
    overwrite: str,
    published: bool,
) -> None:
    """Until the moment that counts, the table is as it was before; the next engine finds what is left."""
    path = tmp_path / "t"
    query = BY_PRIORITY if by else BY_DAY
    df = spark.sql(query)
    everything = on_spark(spark, lambda: rows_of(df))
    before: list[str] = []
    if mode != "error":
        old = df.where("p <> '5-LOW'").limit(30)
        on_spark(spark, lambda: old.write.partitionBy(by).parquet(str(path)))
        before = read(spark, path, *df.columns)
    after = sorted((before if mode == "append" else []) + everything)
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, str(data), query, str(path), step, mode, by, overwrite],
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    staging.recover_known()
    if mode == "error":
        assert not path.exists()
    else:
        assert read(spark, path, *df.columns) == (after if published else before)
    found = listed(tmp_path)
    assert not [file for file in found if "wallaby" in str(file) and "keys" not in str(file)]
    assert not list(path.glob(".spark-staging-*"))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", overwrite)
    try:
        for again in range(2):
            names = written(path)
            writer = engine.write(df).mode(mode).option("key", "monday")
            (writer.partitionBy(by) if by else writer).parquet(str(path))
            assert read(spark, path, *df.columns) == after
            assert (written(path) == names) is (published or again == 1)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def rows_of(df: DataFrame) -> list[str]:
    return sorted(row.j for row in df.selectExpr("to_json(struct(*)) j").collect())

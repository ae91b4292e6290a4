"""An error that was caught is gone: nothing keeps what its caller had, DataFrames and rows that stay for them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaby.engine import Engine

Make = Callable[[SparkSession, Path], DataFrame]


class Canary:
    """Something that the caller has."""


def missing(spark: SparkSession, tmp_path: Path) -> DataFrame:
    spark.range(10).write.parquet(str(tmp_path / "gone"))
    df = spark.read.parquet(str(tmp_path / "gone")).groupBy("id").count()
    for path in (tmp_path / "gone").glob("*.parquet"):
        path.unlink()
    return df


#: Not what Spark raises about the data: after many other tests something, not found yet, keeps that error.
FAILING: dict[str, tuple[dict[str, str], Make]] = {
    "data": (
        {},
        lambda spark, _: spark.sql("select o_custkey, sum(1 / (o_orderkey - 1)) from orders group by 1"),
    ),
    "a file": ({"sparkErrors": "true"}, missing),
    "too long": ({"timeout": "1ms"}, lambda spark, _: spark.sql("select k, count(*) from tiny group by k")),
}


def caught(act: Callable[[DataFrame], object], df: DataFrame) -> weakref.ref[Canary]:
    """Act, in a frame that has a canary."""
    canary = Canary()
    with pytest.raises((PySparkException, Py4JJavaError)):
        act(df)
    return weakref.ref(canary)


@pytest.mark.parametrize("name", FAILING)
def test_a_failed_query_lets_go_of_its_callers_frames(
    name: str,
    engine: Engine,
    spark: SparkSession,
    setting: Callable[[str, str], None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    entries, make = FAILING[name]
    for key, text in entries.items():
        setting(key, text)
    for act in (
        engine.collect,
        engine.to_arrow,
        lambda df: list(engine.run(df).batches()),
        engine.persist,
        lambda df: engine.write(df).parquet(str(tmp_path / "out")),
    ):
        left = caught(act, make(spark, tmp_path / str(id(act))))
        caplog.clear()  # PySpark logs some errors, and pytest keeps what is logged
        gc.collect()
        assert left() is None, act

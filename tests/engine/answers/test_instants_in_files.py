"""Instants as Spark writes them by default, in 96 bits, are read natively, by Spark's rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from wallaby.engine import Engine
from wallaby_lab.compare import require_same

ODD = """VALUES
    (1, TIMESTAMP '0001-01-01 00:00:00.000001'), (2, TIMESTAMP '1582-10-10 12:00:00'),
    (3, TIMESTAMP '1899-12-31 23:59:59.9'), (4, TIMESTAMP '1969-12-31 23:59:59.999999'), (5, NULL),
    (6, TIMESTAMP '2026-03-29 02:30:00'), (7, TIMESTAMP '2262-04-12 00:00:00'),
    (8, TIMESTAMP '9999-12-31 23:59:59.999999') AS t(k, at)"""
REBASED = "spark.sql.parquet.int96RebaseModeInRead"


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("instants") / "odd")
    spark.sql(f"SELECT k, at, array(at, NULL) AS list, struct(at AS inner) AS s FROM {ODD}").write.parquet(
        path
    )
    return path


def equal(engine: Engine, df: DataFrame) -> None:
    assert not engine.fallback_reasons(df)
    require_same(engine.to_arrow(df), df.toArrow())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM odd",
        "SELECT k FROM odd WHERE at > TIMESTAMP '1950-01-01'",
        "SELECT at FROM odd WHERE k > 3",
        "SELECT max(at), min(s.inner), count(list[0]), count(DISTINCT year(at)) FROM odd",
        "SELECT a.k FROM odd a JOIN odd b ON a.at = b.list[0]",
    ],
)
def test_instants_of_96_bits_are_read_as_spark_reads_them(
    engine: Engine, spark: SparkSession, odd: str, query: str
) -> None:
    spark.read.parquet(odd).createOrReplaceTempView("odd")
    equal(engine, spark.sql(query))


def test_so_are_many_of_them_with_filters(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "many")
    many = spark.range(20_000).selectExpr("id", "timestamp_seconds(id * 1000003 - 70000000000) AS at")
    many.coalesce(1).write.option("parquet.block.size", "65536").parquet(path)
    read = spark.read.parquet(path)
    equal(engine, read.where("id % 3 = 1 AND at < TIMESTAMP '1900-01-01'").select("at"))
    equal(engine, read.where("at > TIMESTAMP '2300-01-01'").select("id"))
    equal(engine, read.groupBy("at").count())


def test_what_spark_would_change_while_it_reads_stays_there(
    engine: Engine, spark: SparkSession, odd: str
) -> None:
    df = spark.read.parquet(odd).groupBy("at").count()
    spark.conf.set(REBASED, "LEGACY")
    try:
        reasons = engine.fallback_reasons(spark.read.parquet(odd).groupBy("at").count())
    finally:
        spark.conf.unset(REBASED)
    assert any(REBASED in reason for reason in reasons), reasons
    assert not engine.fallback_reasons(df)

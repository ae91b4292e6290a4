"""What the engine does not run, Spark runs, and the reason is there to be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from wallaby.engine import Engine
from wallaby_lab.compare import require_same


def estimated(spark: SparkSession, _: Path) -> DataFrame:
    return spark.sql(
        "select n_regionkey, approx_percentile(n_nationkey, 0.5) n from nation group by n_regionkey"
    )


def python_function(spark: SparkSession, _: Path) -> DataFrame:
    return spark.table("nation").select(F.udf(lambda name: name[::-1])("n_name").alias("backwards"))


def json_source(spark: SparkSession, directory: Path) -> DataFrame:
    (directory / "rows.json").write_text('{"a": 1}\n{"a": 2}\n')
    return spark.read.option("lineSep", "\n").json(str(directory / "rows.json"))


def local_rows(spark: SparkSession, _: Path) -> DataFrame:
    return spark.sql("select * from values (1, 'a'), (2, null) as t(n, s)")


def generated(spark: SparkSession, _: Path) -> DataFrame:
    return spark.sql("select n_name, json_tuple(n_name, n_comment) part from nation")


def cached(spark: SparkSession, _: Path) -> DataFrame:
    return spark.sql("select r_regionkey + 1 as k from region").cache()


CASES: dict[str, tuple[Callable[[SparkSession, Path], DataFrame], str]] = {
    "an unknown aggregation": (estimated, "it depends on how rows are partitioned"),
    "a Python function": (python_function, "Python"),
    "a JSON source": (json_source, "Parquet"),
    "local rows": (local_rows, "local rows"),
    "a generator": (generated, "this generator is not supported"),
    "a cached table": (cached, "cached"),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_runs_what_the_engine_does_not(
    engine: Engine, spark: SparkSession, tmp_path: Path, case: str
) -> None:
    make, reason = CASES[case]
    df = make(spark, tmp_path)
    reasons = engine.fallback_reasons(df)
    assert any(reason in why for why in reasons), reasons
    result = engine.run(df)
    assert not result.native
    assert result.stats.native is False
    require_same(result.arrow(), df.toArrow())
    assert sorted(map(str, engine.collect(df))) == sorted(map(str, df.collect()))


def test_types_that_arrow_does_not_have_still_come_as_rows(engine: Engine, spark: SparkSession) -> None:
    df = spark.sql("select make_interval(1, 2) as i, n_name from nation where n_nationkey = 0")
    assert not engine.run(df).native


def test_ordinary_spark_jobs_run_beside_the_engine(engine: Engine, spark: SparkSession) -> None:
    running = engine.run(spark.table("short").groupBy("k").count())
    assert spark.sparkContext.parallelize(range(100), 4).map(lambda x: x * x).sum() == 328_350
    assert spark.range(1000).selectExpr("sum(id)").collect()[0][0] == 499_500
    assert isinstance(running.arrow(), pa.Table)

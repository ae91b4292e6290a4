"""Files of one table with other columns than the table: read as Spark reads them, or left to it, never a wrong row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from tests.engine.outcome import natively, outcome

from wallaby.engine import Engine

NUMBERS = [1, None, 100, -7, 0]
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def array(kind: pa.DataType) -> pa.Array:
    values: list[object] = [abs(n) if n else n for n in NUMBERS] if "uint" in str(kind) else list(NUMBERS)
    if pa.types.is_decimal(kind):
        values = [None if n is None else Decimal(n) for n in NUMBERS]
    elif pa.types.is_date(kind):
        values = [date(2020, 1, 1), None, date(1500, 2, 28)]
    elif pa.types.is_timestamp(kind):
        values = [NOON if kind.tz else NOON.replace(tzinfo=None), None]
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        values = ["a", None, "é"]
    return pa.array(values, kind)


#: A file's type, a table's, and whether the column is read natively.
PAIRS = [
    (pa.int8(), "smallint", True),
    (pa.int16(), "bigint", True),
    (pa.int32(), "bigint", True),
    (pa.int32(), "double", True),
    (pa.int32(), "decimal(12,2)", True),
    (pa.int32(), "decimal(11,2)", False),
    (pa.int64(), "decimal(22,2)", True),
    (pa.uint32(), "bigint", True),
    (pa.float32(), "double", True),
    (pa.decimal128(5, 2), "decimal(12,4)", True),
    (pa.decimal128(18, 2), "decimal(38,10)", True),
    (pa.int64(), "int", False),
    (pa.int64(), "double", False),
    (pa.int32(), "float", False),
    (pa.int32(), "smallint", False),
    (pa.float64(), "float", False),
    (pa.decimal128(12, 2), "decimal(12,4)", False),
    (pa.decimal128(12, 2), "decimal(8,2)", False),
    (pa.int32(), "string", False),
    (pa.string(), "int", False),
    (pa.string(), "binary", False),
    (pa.binary(), "string", False),
    (pa.date32(), "timestamp_ntz", False),
    (pa.date32(), "int", False),
    (pa.timestamp("us", "UTC"), "timestamp_ntz", False),
    (pa.timestamp("us"), "timestamp", False),
    (pa.timestamp("ms", "UTC"), "timestamp", True),
    (pa.timestamp("ns", "UTC"), "timestamp", False),
]


def summary(table: DataFrame) -> DataFrame:
    return table.groupBy("a").agg(F.count("*").alias("n"), F.sum("b").alias("b"))


@pytest.mark.parametrize(("found", "wanted", "native"), PAIRS, ids=str)
def test_another_type_is_widened_or_left_to_spark(
    engine: Engine, spark: SparkSession, tmp_path: Path, found: pa.DataType, wanted: str, native: bool
) -> None:
    column = array(found)
    pq.write_table(pa.table({"b": pa.array(range(len(column))), "a": column}), tmp_path / "a.parquet")
    table = spark.read.schema(f"a {wanted}, b bigint").parquet(str(tmp_path))
    df = summary(table)
    planned = engine._plan(df)
    assert (planned.physical is not None and not planned.leaves) == native
    assert native or planned.leaves, "only the table is Spark's"
    ours, theirs = outcome(lambda: engine.collect(df)), outcome(df.collect)
    if isinstance(theirs, str) and not theirs.isupper():
        assert isinstance(ours, str), "Spark has an error without a condition"
    else:
        assert ours == theirs


def write(directory: Path, *tables: pa.Table) -> str:
    for number, table in enumerate(tables):
        pq.write_table(table, directory / f"{number}.parquet", row_group_size=2)
    return str(directory)


def test_names_are_found_without_regard_to_case_and_order(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = write(
        tmp_path,
        pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}),
        pa.table({"B": [7, 8], "x": [0, 0], "A": [9, 9]}),
        pa.table({"b": [1]}),
        pa.table({"a": pa.array([5], pa.int32())}),
        pa.table({"x": ["neither"]}),
        pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}),
    )
    table = spark.read.schema("a bigint, b bigint").parquet(path)
    for df in (
        table,
        table.groupBy().agg(F.count("*"), F.count("a"), F.count("b"), F.max("a")),
        table.where("a is null"),
        table.where("a > 2").select("b"),
        table.where("b is not null").groupBy("a").count(),
        table.alias("l").join(table.alias("r"), "a").groupBy().count(),
    ):
        assert outcome(partial(lambda each: natively(engine, each).rows(), df)) == outcome(df.collect)


def test_merged_schemas_are_the_tables_schema(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"a": [1, 2]}), pa.table({"b": ["x"], "a": [3]}), pa.table({"c": [0.5]}))
    table = spark.read.option("mergeSchema", "true").parquet(path)
    df = table.groupBy("b").agg(F.sum("a"), F.sum("c"))
    assert outcome(lambda: natively(engine, df).rows()) == outcome(df.collect)


def test_a_column_that_is_there_twice_is_sparks_error(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path, pa.table({"a": [1]}), pa.table({"a": [1], "A": [2]}))
    df = spark.read.schema("a bigint").parquet(path).groupBy().sum("a")
    assert engine._plan(df).leaves
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)


def test_with_case_sensitive_names_spark_reads(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"a": [1], "A": [2]}), pa.table({"A": [3]}))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        df = spark.read.schema("a bigint").parquet(path).groupBy().sum("a")
        assert any("caseSensitive" in reason for reason in engine.fallback_reasons(df))
        assert outcome(lambda: engine.collect(df)) == outcome(df.collect)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_only_the_odd_table_of_a_join_is_a_leaf(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"k": pa.array([1, 2], pa.uint64()), "v": ["x", "y"]}))
    odd = spark.read.schema("k decimal(20,0), v string").parquet(path)
    df = odd.join(spark.table("nation"), odd.k == F.col("n_regionkey")).groupBy("v").count()
    planned = engine._plan(df)
    assert [str(reason.why) for leaf in planned.leaves for reason in leaf.reasons] == [
        f"the column k of {path}/0.parquet is uint64, not decimal(20,0)"
    ]
    assert outcome(lambda: engine.collect(df)) == outcome(df.collect)

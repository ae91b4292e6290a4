"""Actions on the rows of a query, each with its result as a table, so that two runs can be compared."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from wallaby.catalyst.spark_versions import arrow_schema
from wallaby_lab.differential.layouts import configured
from wallaby_lab.differential.tops.query import (
    ToppedQuery,
    exact,
    for_python,
    for_text_files,
    short_key,
    sortable,
)

ALONE: Final = {"spark.wallaby.enabled": "false"}
_TABLE: Final = "wallaby_top"
_VIEW: Final = "wallaby_query"
_LAST: Final = 4
Act = Callable[[ToppedQuery, Path], pa.Table]


@dataclass(frozen=True, slots=True)
class Sink:
    """An action. `keeps_order`: do the rows of a sorted query come in their order?"""

    act: Act
    keeps_order: bool = False


def _collected(query: ToppedQuery, _: Path) -> pa.Table:
    return query.df.toArrow()


# --- files and tables --------------------------------------------------------------------------------


def _written(kind: str) -> Act:
    def write(query: ToppedQuery, place: Path) -> pa.Table:
        found = for_text_files(query) if kind == "csv" else query
        found.df.write.format(kind).save(str(place))
        return _read_back(found.df, kind, place)

    return write


def _partitioned(query: ToppedQuery, place: Path) -> pa.Table:
    keyed = query.df.withColumn("part", short_key(query))
    keyed.write.partitionBy("part").parquet(str(place))
    return _read_back(keyed, "parquet", place)


def _appended(query: ToppedQuery, place: Path) -> pa.Table:
    query.df.write.parquet(str(place))
    query.df.write.mode("append").parquet(str(place))
    return _read_back(query.df, "parquet", place)


def _read_back(df: DataFrame, kind: str, place: Path) -> pa.Table:
    with configured(df.sparkSession, ALONE):
        return df.sparkSession.read.schema(df.schema).format(kind).load(str(place)).toArrow()


def _made_by_sql(query: ToppedQuery, _: Path) -> pa.Table:
    with _table_of(query) as spark:
        spark.sql(f"create table {_TABLE} using parquet as select * from {_VIEW}")
        return _table_read(spark)


def _inserted(query: ToppedQuery, _: Path) -> pa.Table:
    with _table_of(query) as spark:
        spark.catalog.createTable(_TABLE, schema=query.df.schema, source="parquet")
        spark.sql(f"insert into {_TABLE} select * from {_VIEW}")
        query.df.write.insertInto(_TABLE)
        return _table_read(spark)


def _overwritten(query: ToppedQuery, _: Path) -> pa.Table:
    with _table_of(query) as spark:
        query.df.write.format("orc").saveAsTable(_TABLE)
        spark.sql(f"insert overwrite {_TABLE} select * from {_VIEW}")
        return _table_read(spark)


@contextmanager
def _table_of(query: ToppedQuery) -> Iterator[SparkSession]:
    spark = query.spark
    query.df.createOrReplaceTempView(_VIEW)
    _dropped(spark)
    try:
        yield spark
    finally:
        _dropped(spark)
        spark.catalog.dropTempView(_VIEW)


def _dropped(spark: SparkSession) -> None:
    """Drop the table, and what a failed command left in its place."""
    spark.sql(f"drop table if exists {_TABLE}")
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
    shutil.rmtree(Path(warehouse) / _TABLE, ignore_errors=True)


def _table_read(spark: SparkSession) -> pa.Table:
    with configured(spark, ALONE):
        return spark.table(_TABLE).toArrow()


# --- kept rows ---------------------------------------------------------------------------------------


def _cached(level: StorageLevel) -> Act:
    def cache(query: ToppedQuery, _: Path) -> pa.Table:
        kept = query.df.persist(level)
        try:
            number = kept.count()
            table = kept.toArrow()
        finally:
            kept.unpersist(blocking=True)
        return table.append_column("counted", pa.array([number] * table.num_rows, pa.int64()))

    return cache


def _cached_by_sql(query: ToppedQuery, _: Path) -> pa.Table:
    spark = query.spark
    query.df.createOrReplaceTempView(_VIEW)
    try:
        spark.sql(f"cache table {_TABLE}_cached as select * from {_VIEW}")
        try:
            return spark.table(f"{_TABLE}_cached").toArrow()
        finally:
            spark.sql(f"uncache table if exists {_TABLE}_cached")
            spark.catalog.dropTempView(f"{_TABLE}_cached")
    finally:
        spark.catalog.dropTempView(_VIEW)


def _locally_checkpointed(query: ToppedQuery, _: Path) -> pa.Table:
    return query.df.localCheckpoint().toArrow()


def _checkpointed(query: ToppedQuery, _: Path) -> pa.Table:
    return query.df.checkpoint().toArrow()


# --- rows in Python ----------------------------------------------------------------------------------


def _iterated(query: ToppedQuery, _: Path) -> pa.Table:
    found = for_python(query).df
    return _as_table(found.toLocalIterator(), found)


def _as_rdd(query: ToppedQuery, _: Path) -> pa.Table:
    found = for_python(query).df
    return _as_table(found.rdd.map(_same).collect(), found)


def _same(row: Row) -> Row:
    return row


def _visited(query: ToppedQuery, _: Path) -> pa.Table:
    """The number of rows, and a sum over their texts, as the tasks' accumulators have them."""
    found = for_python(exact(query))
    rows, sums = (query.spark.sparkContext.accumulator(0) for _ in range(2))

    def visit(part: Iterable[Row]) -> None:
        for row in part:
            rows.add(1)
            sums.add(zlib.crc32(repr(tuple(row)).encode()))

    found.df.foreachPartition(visit)
    return pa.table({"rows": [rows.value], "sums": [sums.value]})


def _as_table(rows: Iterable[Row], df: DataFrame) -> pa.Table:
    fields = df.schema.fields
    listed = list(rows)
    schema = arrow_schema(df.schema)
    columns = [
        pa.array([_cell(row[place], field.dataType) for row in listed], kind)
        for place, (field, kind) in enumerate(zip(fields, schema.types, strict=True))
    ]
    return pa.table(columns, schema=schema)


def _cell(value: Any, kind: DataType) -> Any:
    """A value of PySpark's as Arrow takes it."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_cell(one, kind.elementType) for one in value]
    if isinstance(kind, MapType):
        return [(_cell(k, kind.keyType), _cell(v, kind.valueType)) for k, v in value.items()]
    if isinstance(kind, StructType):
        return {field.name: _cell(value[place], field.dataType) for place, field in enumerate(kind.fields)}
    return bytes(value) if isinstance(value, bytearray) else value


# --- a few values ------------------------------------------------------------------------------------


def _is_empty(query: ToppedQuery, _: Path) -> pa.Table:
    return pa.table({"empty": [query.df.isEmpty()]})


def _last(query: ToppedQuery, _: Path) -> pa.Table:
    """The last rows in an order of all columns that have one."""
    names = sortable(query)
    columns = [col(name) for name in names] or [lit("k").alias("c0")]
    found = for_python(query.selected(columns, names)).df
    ordered = found.orderBy(*found.columns)
    return _as_table(ordered.tail(_LAST), ordered)


def _described(query: ToppedQuery, _: Path) -> pa.Table:
    kinds = (ByteType, ShortType, IntegerType)
    names = [
        field.name
        for field in query.df.schema.fields
        if isinstance(field.dataType, kinds) and field.name not in query.inexact
    ]
    rows = query.df.select(*names, lit(1).alias("one")).describe().collect()
    return pa.table(
        {
            "summary": [row["summary"] for row in rows],
            # Means and deviations may differ in their last digits.
            **{
                name: pa.array(
                    [None if row[name] is None else float(row[name]) for row in rows], pa.float64()
                )
                for name in [*names, "one"]
            },
        }
    )


def _summarized(query: ToppedQuery, _: Path) -> pa.Table:
    kinds = (ByteType, ShortType, IntegerType, StringType, DecimalType)
    names = [
        field.name
        for field in query.df.schema.fields
        if isinstance(field.dataType, kinds) and field.name not in query.inexact
    ]
    return query.df.select(*names, lit("1").alias("one")).summary("count", "min", "max").toArrow()


def _as_json(query: ToppedQuery, _: Path) -> pa.Table:
    return pa.table({"json": pa.array(exact(query).df.toJSON().collect(), pa.string())})


SINKS: Final[Mapping[str, Sink]] = {
    "toArrow": Sink(_collected, keeps_order=True),
    "write Parquet": Sink(_written("parquet")),
    "write ORC": Sink(_written("orc")),
    "write CSV": Sink(_written("csv")),
    "write JSON": Sink(_written("json")),
    "partitioned write": Sink(_partitioned),
    "write, then append": Sink(_appended),
    "CREATE TABLE AS": Sink(_made_by_sql),
    "INSERT, insertInto": Sink(_inserted),
    "saveAsTable, INSERT OVERWRITE": Sink(_overwritten),
    "cache, two actions": Sink(_cached(StorageLevel.MEMORY_AND_DISK_DESER), keeps_order=True),
    "persist on disk, two actions": Sink(_cached(StorageLevel.DISK_ONLY), keeps_order=True),
    "CACHE TABLE": Sink(_cached_by_sql, keeps_order=True),
    "localCheckpoint": Sink(_locally_checkpointed, keeps_order=True),
    "checkpoint": Sink(_checkpointed, keeps_order=True),
    "toLocalIterator": Sink(_iterated, keeps_order=True),
    "rdd": Sink(_as_rdd, keeps_order=True),
    "foreachPartition, accumulators": Sink(_visited),
    "isEmpty": Sink(_is_empty),
    "tail": Sink(_last),
    "describe": Sink(_described),
    "summary": Sink(_summarized),
    "toJSON": Sink(_as_json),
}

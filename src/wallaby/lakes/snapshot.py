"""A DataFrame over exactly the files of a snapshot: a relation for each group of files that name their columns alike.

Spark's own Parquet reader finds columns by names. Files of one table may have another name for a column than the
table, or another column under one of its names. So each group of files has its own relation, with the names that
are in these files, and a projection above it with the table's names. To Spark and to Wallaby it is a table of
Parquet files.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from wallaby.catalyst.janino import load_class

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as timestamps without a zone count
_MICROSECONDS: Final = 1_000_000
_BETWEEN: Final = "\0"
_SOME: Final = "="


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One file of a snapshot: its path, its size, and the values of the table's partition columns."""

    path: str
    size_bytes: int
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column of a table, and the field that has its values in a group of files; None if none has."""

    name: str
    type: DataType
    stored: StructField | None


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that name their columns alike."""

    files: tuple[SnapshotFile, ...]
    columns: tuple[SnapshotColumn, ...]
    #: The stored fields of `columns` whose values are with the files, not in them, in the order of these values.
    partitions: tuple[StructField, ...] = ()


def dataframe(spark: SparkSession, table: str, groups: Sequence[FileGroup]) -> DataFrame:
    """The rows of all groups, at least one; `table` is the table's path."""
    return reduce(DataFrame.unionAll, (_rows(spark, table, group) for group in groups))


def _rows(spark: SparkSession, table: str, group: FileGroup) -> DataFrame:
    jvm: Any = spark._jvm
    files = load_class(jvm, "wallaby.lakes", "SnapshotFiles")
    stored = [column.stored for column in group.columns if column.stored is not None]
    data = StructType([field for field in stored if field not in group.partitions])
    partitions = StructType(list(group.partitions))
    method = next(each for each in files.getMethods() if each.getName() == "table")
    given = [spark._jsparkSession, table, _text(group.files), data.json(), partitions.json()]
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, len(given))  # type: ignore[union-attr]
    for at, argument in enumerate(given):
        arguments[at] = argument
    rows = DataFrame(method.invoke(None, arguments), spark)
    return rows.select(*map(_named, group.columns))


def _named(column: SnapshotColumn) -> Column:
    if column.stored is None:
        return lit(None).cast(column.type).alias(column.name)
    found = col(f"`{column.stored.name.replace('`', '``')}`")
    return (found if column.stored.dataType == column.type else found.cast(column.type)).alias(column.name)


def _text(files: Sequence[SnapshotFile]) -> str:
    """The files as `SnapshotFiles.java` reads them."""
    words = [word for file in files for word in (file.path, str(file.size_bytes), *map(_word, file.values))]
    return _BETWEEN.join(words)


def _word(value: Any) -> str:
    """A value of a partition column as a word: what Catalyst stores, or its digits."""
    match value:
        case None:
            return ""
        case bool():
            return _SOME + str(value).lower()
        case bytes():
            return _SOME + base64.b64encode(value).decode("ascii")
        case datetime():
            past = (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value) - _EPOCH
            return _SOME + str((past.days * 86_400 + past.seconds) * _MICROSECONDS + past.microseconds)
        case date():
            return _SOME + str(value.toordinal() - _EPOCH.toordinal())
        case Decimal():
            return _SOME + format(value, "f")
        case float():
            return _SOME + {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), repr(value))
        case _:
            return _SOME + str(value)


def nullable(type_: DataType) -> DataType:
    """A type in which everything may be NULL and no field has notes, whatever the table promises."""
    match type_:
        case StructType():
            return StructType([StructField(field.name, nullable(field.dataType)) for field in type_.fields])
        case ArrayType():
            return ArrayType(nullable(type_.elementType))
        case MapType():
            return MapType(nullable(type_.keyType), nullable(type_.valueType))
        case _:
            return type_

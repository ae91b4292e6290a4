"""A query to put a top on: a DataFrame, and what is known about its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, hex, lit, substring  # noqa: A004 - Spark's
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

_FLOATING: Final = (FloatType, DoubleType)
_TIMES: Final = (DateType, TimestampType, TimestampNTZType)
_NESTED: Final = (ArrayType, MapType, StructType)
#: Types that files, Arrow or Python lack; their values travel as text.
_ODD: Final = (
    NullType,
    CalendarIntervalType,
    DayTimeIntervalType,
    YearMonthIntervalType,
    VariantType,
)
_SIMPLE: Final = (IntegralType, StringType, BooleanType, DecimalType, *_TIMES)
#: The most characters of a value in a part of a file name.
_NAME_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class ToppedQuery:
    """A query, and what the top on it needs to know."""

    df: DataFrame
    #: Columns whose last digits depend on the order of rows.
    inexact: frozenset[str] = frozenset()
    #: The columns by which the rows are ordered, if they are.
    order: tuple[str, ...] = ()
    #: May there be dates that Python does not have?
    wild: bool = False

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.df.sparkSession

    def names(self, *, without: tuple[type[DataType], ...] = ()) -> list[str]:
        """The exact columns in whose types none of these occurs."""
        return [
            field.name
            for field in self.df.schema.fields
            if field.name not in self.inexact and not holds(field.dataType, without)
        ]

    def selected(self, columns: list[Column], names: list[str]) -> ToppedQuery:
        """The query with other columns; the order counts as long as its columns are there."""
        order = self.order if set(self.order) <= set(names) else ()
        return replace(self, df=self.df.select(*columns), inexact=self.inexact & set(names), order=order)


def plain(df: DataFrame, order: tuple[str, ...], inexact: frozenset[str], *, wild: bool) -> ToppedQuery:
    """A query whose columns have names of their own, and types that files, Arrow and Python have."""
    before = df.columns
    after = [f"c{place}" for place in range(len(before))]
    renamed = df.toDF(*after)
    columns = [
        col(field.name).cast("string").alias(field.name) if holds(field.dataType, _ODD) else col(field.name)
        for field in renamed.schema.fields
    ]
    new = dict(zip(before, after, strict=True))
    return ToppedQuery(
        renamed.select(*columns),
        frozenset(new[name] for name in inexact if name in new),
        tuple(new[name] for name in order) if set(order) <= set(before) else (),
        wild,
    )


def holds(kind: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    """Does a type, or a part of it, belong to some kinds?"""
    if isinstance(kind, kinds):
        return True
    if isinstance(kind, ArrayType):
        return holds(kind.elementType, kinds)
    if isinstance(kind, MapType):
        return holds(kind.keyType, kinds) or holds(kind.valueType, kinds)
    return isinstance(kind, StructType) and any(holds(field.dataType, kinds) for field in kind.fields)


def key(query: ToppedQuery) -> Column:
    """A text that tells rows apart: of the first simple column, or the same for all rows."""
    names = [
        field.name
        for field in query.df.schema.fields
        if isinstance(field.dataType, _SIMPLE) and field.name not in query.inexact
    ]
    return col(names[0]).cast("string") if names else lit("k")


def short_key(query: ToppedQuery) -> Column:
    """The key as a text that can be a part of a file's name."""
    return hex(substring(key(query), 1, _NAME_CHARACTERS))


def exact(query: ToppedQuery) -> ToppedQuery:
    """The columns whose text is the same in both engines: no floating-point numbers, at least one column."""
    names = query.names(without=_FLOATING)
    return query.selected([col(name) for name in names] or [lit("k").alias("c0")], names)


def texts(query: ToppedQuery) -> ToppedQuery:
    """The exact columns as text, which pandas does not change, whichever rows share a batch."""
    names = query.names(without=(*_FLOATING, BinaryType, *_NESTED))
    columns = [col(name).cast("string").alias(name) for name in names]
    return query.selected(columns or [lit("k").alias("c0")], names)


def for_python(query: ToppedQuery) -> ToppedQuery:
    """The columns as Python has them: dates that it may not have are text."""
    if not query.wild:
        return query
    fields = query.df.schema.fields
    columns = [
        col(field.name).cast("string").alias(field.name) if holds(field.dataType, _TIMES) else col(field.name)
        for field in fields
    ]
    return query.selected(columns, [field.name for field in fields])


def for_text_files(query: ToppedQuery) -> ToppedQuery:
    """The columns as CSV files have them: what is nested, and bytes, are text."""
    fields = query.df.schema.fields
    columns = [_flat(field.name, field.dataType).alias(field.name) for field in fields]
    return query.selected(columns, [field.name for field in fields])


def sortable(query: ToppedQuery) -> list[str]:
    """The columns by which rows can be ordered, always in the same way."""
    return query.names(without=(MapType, BinaryType))


def _flat(name: str, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return hex(col(name))
    return col(name).cast("string") if isinstance(kind, _NESTED) else col(name)

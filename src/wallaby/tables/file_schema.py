"""The schema of a Parquet file, in the types in which its columns are read.

By default, Spark writes timestamps as INT96, a Julian day and its nanoseconds. Arrow reads them as local times in
nanoseconds, which end in the year 2262; read in microseconds they are the timestamps that Spark reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa

from wallaby.relations.relation import DataFile
from wallaby.tables.footer import footer

#: The unit in which Arrow reads INT96 timestamps.
INT96_UNIT: Final = "us"
_INT96: Final = "INT96"


@lru_cache(maxsize=1024)
def file_schema(file: DataFile) -> pa.Schema:
    """The schema of a file; INT96 timestamps have a zone."""
    schema = footer(file).schema
    stored = iter([schema.column(place).physical_type for place in range(len(schema))])
    return pa.schema([field.with_type(_as_read(field.type, stored)) for field in schema.to_arrow_schema()])


def has_int96(file: DataFile, places: list[int]) -> bool:
    """Is one of these columns of a footer stored in 96 bits?"""
    schema = footer(file).schema
    return any(schema.column(place).physical_type == _INT96 for place in places)


def _as_read(type_: pa.DataType, stored: Iterator[str]) -> pa.DataType:
    """A type whose parts are stored in the columns that come next."""
    if pa.types.is_map(type_):
        key = type_.key_field.with_type(_as_read(type_.key_type, stored))
        return pa.map_(key, type_.item_field.with_type(_as_read(type_.item_type, stored)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_as_read(field.type, stored)) for field in type_])
    if pa.types.is_nested(type_):
        value = type_.value_field.with_type(_as_read(type_.value_type, stored))
        return pa.large_list(value) if pa.types.is_large_list(type_) else pa.list_(value)
    return pa.timestamp(INT96_UNIT, "UTC") if next(stored) == _INT96 else type_

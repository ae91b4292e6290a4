"""The schema of a Parquet file, in the types in which its columns are read.

By default, Spark writes timestamps as INT96, a Julian day and its nanoseconds. Arrow reads them as local times in
nanoseconds, which end in the year 2262; read in microseconds they are the timestamps that Spark reads.

In some tables columns have ids, which stay the same when a column is renamed. Wallaby finds columns by their names, so
it reads only those files of such a table in which names and ids say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from wallaby.relations.formats import Parquet
from wallaby.relations.relation import DataFile
from wallaby.tables.footer import footer

#: The unit in which Arrow reads INT96 timestamps.
INT96_UNIT: Final = "us"
_INT96: Final = "INT96"
_ID: Final = b"PARQUET:field_id"
#: The names of the parts of lists and maps, in paths.
_ELEMENT: Final = "element"
_KEY: Final = "key"
_VALUE: Final = "value"


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


def id_reason(file: DataFile, format_: Parquet, names: Sequence[str]) -> str | None:
    """Why the names of these columns do not lead to the columns of the same ids; None if they do."""
    there = dict(_ids(file_schema(file), ()))
    by_id = {number: path for path, number in there.items() if number is not None}
    lower = {_lower(path) for path in there}
    for field in format_.ids:
        if field.path[0] not in names:
            continue
        path = ".".join(field.path)
        found = by_id.get(field.id)
        if found is None and field.in_every_file:
            return f"{file.path} does not have the column {path}"
        if found is None and _lower(field.path) in lower:
            return f"{file.path} has another column by the name {path}"
        if found is not None and found != field.path:
            return f"the column {path} has the name {'.'.join(found)} in {file.path}"
    return None


def _lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)


def _ids(
    fields: pa.Schema | pa.StructType, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int | None]]:
    """The path of each column and field of a struct, and its id if it has one."""
    for field in fields:
        path = (*above, field.name)
        known = (field.metadata or {}).get(_ID)
        yield path, None if known is None else int(known)
        yield from _ids_within(field.type, path)


def _ids_within(type_: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
    if pa.types.is_struct(type_):
        yield from _ids(type_, path)
    elif pa.types.is_map(type_):
        yield from _ids_within(type_.key_type, (*path, _KEY))
        yield from _ids_within(type_.item_type, (*path, _VALUE))
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from _ids_within(type_.value_type, (*path, _ELEMENT))

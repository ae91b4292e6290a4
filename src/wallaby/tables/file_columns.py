"""Map a table's columns to a file: read from it, perhaps in a narrower type, or one value for all rows.

Spark finds a file's columns by their names without regard to case. A column that the file lacks is NULL in all its
rows. A narrower type in an older file is widened where that changes no value; any other difference leaves the table to
Spark, which raises an error for most of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from wallaby.relations.expression import Column
from wallaby.relations.relation import Constant, DataFile, Scan
from wallaby.relations.types import NULL, DataType, Kind
from wallaby.sql.types import arrow_type
from wallaby.tables.file_schema import file_schema
from wallaby.tables.footer import footer
from wallaby.tables.nested_columns import field_places, leaf_columns, same_fields

#: File types that Spark also reads as wider types, without changing values.
_WIDENED: Final[dict[Kind, tuple[pa.DataType, ...]]] = {
    Kind.SHORT: (pa.int8(), pa.uint8()),
    Kind.INTEGER: (pa.int8(), pa.int16(), pa.uint8(), pa.uint16()),
    Kind.LONG: (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    Kind.DOUBLE: (pa.int8(), pa.int16(), pa.int32(), pa.float32()),
}
#: Digits of whole numbers, as Spark counts them when it reads them as decimals.
_INTEGER_DIGITS: Final = {pa.int8(): 10, pa.int16(): 10, pa.int32(): 10, pa.int64(): 20}


@lru_cache(maxsize=1 << 14)
def file_column(file: DataFile, name: str) -> str | Constant:
    """Find a table's column in a file: its name there, or its value in all rows."""
    wanted = name.lower()
    for constant in file.constants:
        if constant.name.lower() == wanted:
            return constant
    return next((found for found in _own_names(file) if found.lower() == wanted), Constant(name, None, NULL))


def column_reason(file: DataFile, column: Column, name: str) -> str | None:
    """Why Wallaby cannot read a column of a file as Spark does; None if it can."""
    return _reason(file, name, column.type, nullable=column.nullable)


@lru_cache(maxsize=1 << 14)
def _reason(file: DataFile, name: str, type_: DataType, *, nullable: bool) -> str | None:
    source = file_column(file, name)
    if isinstance(source, Constant):
        if source.value is None and not nullable:
            return f"{file.path} does not have the column {name}, which is never NULL"
        return None
    # Spark raises an error for it, except for a partition column.
    if sum(found.lower() == name.lower() for found in _own_names(file)) > 1:
        return f"{file.path} has more than one column {name}"
    schema = file_schema(file)
    if "." in source and any(pa.types.is_nested(field.type) for field in schema):
        return f"the column {name} of {file.path} may be a field of another"
    found = schema.field(source).type
    if not readable_as(found, type_):
        return f"the column {name} of {file.path} is {found}, not {type_}"
    return None


@lru_cache(maxsize=1 << 14)
def is_as_in_the_table(file: DataFile, column: Column, name: str) -> bool:
    """Does a file have a column with exactly the table's name and type?"""
    if file_column(file, name) != name:
        return False
    return _is_type(footer(file).schema.to_arrow_schema().field(name).type, column.type)


def readable_as(found: pa.DataType, wanted: DataType) -> bool:
    """Can a file's column be read as a type without changing any value, and does Spark do so?"""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if wanted.is_nested:
        return _is_nested_type(found, wanted)
    if wanted.kind is Kind.DECIMAL:
        return _is_narrower_number(found, wanted)
    return _is_type(found, wanted) or found in _WIDENED.get(wanted.kind, ())


def _is_type(found: pa.DataType, wanted: DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    match wanted.kind:
        case Kind.STRING:
            return found in (pa.string(), pa.large_string(), pa.string_view())
        case Kind.BINARY:
            return found in (pa.binary(), pa.large_binary(), pa.binary_view())
        case Kind.TIMESTAMP:
            return pa.types.is_timestamp(found) and found.tz is not None and found.unit in ("ms", "us")
        case Kind.TIMESTAMP_NTZ:
            return pa.types.is_timestamp(found) and found.tz is None and found.unit in ("ms", "us")
        case _:
            return bool(found == arrow_type(wanted))


def _is_nested_type(found: pa.DataType, wanted: DataType) -> bool:
    """Does a nested type have exactly the file's types in all parts? A struct must have one of the wanted fields."""
    match wanted.kind:
        case Kind.ARRAY:
            lists = pa.types.is_list(found) or pa.types.is_large_list(found)
            return lists and _is_nested_type(found.value_type, wanted.element)
        case Kind.MAP:
            key, value = wanted.children
            return (
                pa.types.is_map(found)
                and _is_nested_type(found.key_type, key)
                and _is_nested_type(found.item_type, value)
            )
        case Kind.STRUCT:
            return (
                pa.types.is_struct(found)
                and same_fields(found, wanted)
                and all(
                    at is None or _is_nested_type(found.field(at).type, child)
                    for at, child in zip(field_places(found, wanted), wanted.children, strict=True)
                )
            )
        case _:
            return _is_type(found, wanted)


def _is_narrower_number(found: pa.DataType, wanted: DataType) -> bool:
    if pa.types.is_decimal(found):
        digits = found.precision - found.scale
        return bool(found.scale <= wanted.scale and digits <= wanted.precision - wanted.scale)
    return found in _INTEGER_DIGITS and _INTEGER_DIGITS[found] <= wanted.precision - wanted.scale


def read_paths(scan: Scan, file: DataFile) -> list[str]:
    """The columns that a scan reads, down to the needed fields of structs."""
    schema = footer(file).schema
    return [schema.column(place).path for place in read_places(scan, file)]


def read_places(scan: Scan, file: DataFile) -> list[int]:
    """The positions in the footer of the columns that a scan reads."""
    places: dict[int, None] = {}
    for column, name in zip(scan.columns, scan.names, strict=True):
        source = file_column(file, name)
        if isinstance(source, str):
            places |= dict.fromkeys(leaf_columns(footer(file), source, column.type))
    return list(places)


def read_names(scan: Scan, file: DataFile) -> list[str]:
    """The columns of a file that a scan reads from it."""
    sources = (file_column(file, name) for name in scan.names)
    return list(dict.fromkeys(source for source in sources if isinstance(source, str)))


@lru_cache(maxsize=1024)
def _own_names(file: DataFile) -> tuple[str, ...]:
    return tuple(file_schema(file).names)

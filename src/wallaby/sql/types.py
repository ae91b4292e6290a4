"""Types in three languages: Catalyst's, Arrow's, and DuckDB's names for them.

Columns travel under names made of their ids, `c12`, and fields of a struct under their positions, `f0`, never under the
user's names, so that names can neither collide nor do harm. Rows without columns (under a `count(*)`) travel as one
column of nulls, because neither a DuckDB relation nor an Arrow table can have rows and no columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from wallaby.errors import InternalError
from wallaby.relations.expression import Column
from wallaby.relations.types import DataType, Kind, parts_of

#: The column that stands for rows without columns.
ROWS_ONLY: Final = "rows"

_ARROW: Final[dict[Kind, pa.DataType]] = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.BYTE: pa.int8(),
    Kind.SHORT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.DAY_TIME: pa.int64(),
    Kind.YEAR_MONTH: pa.int32(),
}

_DUCKDB: Final[dict[Kind, str]] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.BYTE: "TINYINT",
    Kind.SHORT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.LONG: "BIGINT",
    Kind.FLOAT: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.BINARY: "BLOB",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP WITH TIME ZONE",
    Kind.TIMESTAMP_NTZ: "TIMESTAMP",
    Kind.DAY_TIME: "BIGINT",
    Kind.YEAR_MONTH: "INTEGER",
}

#: The types without parts that every kernel can carry and compare.
FLAT: Final = frozenset(_DUCKDB) | {Kind.DECIMAL}


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type in which a column travels.

    It is the type that `df.toArrow()` gives, with three exceptions. Timestamps travel in UTC, and the client relabels
    them with the session's zone, which changes no value. Intervals travel as numbers. A map travels as an array of
    pairs, and fields without their names.
    """
    match type_.kind:
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.ARRAY:
            return pa.list_(arrow_type(type_.children[0]))
        case Kind.MAP:
            return pa.list_(arrow_type(entry_type(type_)))
        case Kind.STRUCT:
            return pa.struct([pa.field(field_name(i), arrow_type(c)) for i, c in enumerate(type_.children)])
        case _:
            return _ARROW[type_.kind]


def duckdb_type(type_: DataType) -> str:
    """DuckDB's text for a type."""
    match type_.kind:
        case Kind.DECIMAL:
            return f"DECIMAL({type_.precision},{type_.scale})"
        case Kind.ARRAY:
            return f"{duckdb_type(type_.element)}[]"
        case Kind.MAP:
            return f"{duckdb_type(entry_type(type_))}[]"
        case Kind.STRUCT:
            fields = (f'"{field_name(i)}" {duckdb_type(c)}' for i, c in enumerate(type_.children))
            return f"STRUCT({', '.join(fields)})"
        case kind if kind in _DUCKDB:
            return _DUCKDB[kind]
        case _:
            raise InternalError(
                f"Type {type_} cannot be sent to DuckDB.", fix="`supports` should have refused it."
            )


def is_carried(type_: DataType) -> bool:
    """Can columns of a type be read, moved and computed with?"""
    if type_.is_nested:
        return bool(type_.children) and all(map(is_carried, type_.children))
    return type_.kind in FLAT


def is_comparable(type_: DataType) -> bool:
    """Does a type have an equality and an order? Maps, and types that contain maps, have none."""
    return is_carried(type_) and all(part.kind is not Kind.MAP for part in parts_of(type_))


def entry_type(type_: DataType) -> DataType:
    """The type of a map's entries."""
    return DataType(Kind.STRUCT, children=type_.children, names=("key", "value"))


def field_name(place: int) -> str:
    """The name under which a struct's field travels."""
    return f"f{place}"


def column_name(column_id: int) -> str:
    """The name under which a column travels."""
    return f"c{column_id}"


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The schema of rows with these columns. The same column may stand twice."""
    fields = [pa.field(column_name(column.id), arrow_type(column.type)) for column in columns]
    return pa.schema(fields or [pa.field(ROWS_ONLY, pa.int8())])

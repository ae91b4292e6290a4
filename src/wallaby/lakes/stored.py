"""Fields of Parquet files that have the values of a table's columns: found by ids, or by names that the table gives.

A column keeps its id when it is renamed, and one that is dropped and made again gets another id. So a field of a file
with the id of a column has its values, whatever either is called; and a field with the right name and another id has
none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from wallaby.errors import UnsupportedTableError
from wallaby.lakes.snapshot import nullable

#: Where a field of a table's schema has its id, for `by_id`.
ID: Final = "wallaby.id"
_FIELD_ID: Final = b"PARQUET:field_id"
#: The name of a field that a file does not have, followed by its id. Readers give NULL for it.
_ABSENT: Final = "_wallaby_absent_"


def by_name(field: StructField, name_of: Callable[[StructField], str]) -> StructField:
    """The field of a column in files, if the table knows its name there and the names of the fields in it."""
    return StructField(name_of(field), _type_by_name(field.dataType, name_of))


def _type_by_name(type_: DataType, name_of: Callable[[StructField], str]) -> DataType:
    match type_:
        case StructType():
            return StructType([by_name(field, name_of) for field in type_.fields])
        case ArrayType():
            return ArrayType(_type_by_name(type_.elementType, name_of))
        case MapType():
            return MapType(_type_by_name(type_.keyType, name_of), _type_by_name(type_.valueType, name_of))
        case _:
            return type_


def with_ids(field: StructField, id_of: Callable[[StructField], int]) -> StructField:
    """A column of a table that has its id, and the ids of the fields in it, where `by_id` looks for them."""
    return StructField(field.name, _type_with_ids(field.dataType, id_of), metadata={ID: id_of(field)})


def _type_with_ids(type_: DataType, id_of: Callable[[StructField], int]) -> DataType:
    match type_:
        case StructType():
            return StructType([with_ids(field, id_of) for field in type_.fields])
        case ArrayType():
            return ArrayType(_type_with_ids(type_.elementType, id_of))
        case MapType():
            return MapType(_type_with_ids(type_.keyType, id_of), _type_with_ids(type_.valueType, id_of))
        case _:
            return type_


def by_id(table: Sequence[StructField], file: pa.Schema, path: str) -> tuple[StructField | None, ...]:
    """The field of a file for each column of a table; None for a column that the file does not have.

    Raises:
        UnsupportedTableError: the file has no ids, or its columns cannot be told apart by names.
    """
    if len(file) and all(_id_of(field) is None for field in file):
        raise UnsupportedTableError(
            f"The columns in the file {path} have no ids, so they cannot be matched with those of the table.",
            fix="Read the table through Spark's catalog, or have its files written again.",
            path=path,
        )
    found = _ids(list(file), path)
    return tuple(
        None if field.metadata[ID] not in found else _field_by_id(field, found[field.metadata[ID]], path)
        for field in table
    )


def _field_by_id(field: StructField, found: pa.Field, path: str) -> StructField:
    return StructField(found.name, _type_by_id(field.dataType, found.type, path))


def _type_by_id(type_: DataType, found: pa.DataType, path: str) -> DataType:
    match type_:
        case StructType() if pa.types.is_struct(found):
            fields = _ids(list(found), path)
            if not any(field.metadata[ID] in fields for field in type_.fields):
                raise UnsupportedTableError(
                    f"A struct in {path} has none of the fields that the table has now.",
                    fix="Read the table through Spark's catalog, or have its files written again.",
                    path=path,
                )
            return StructType([_within(field, fields, path) for field in type_.fields])
        case ArrayType() if pa.types.is_list(found) or pa.types.is_large_list(found):
            return ArrayType(_type_by_id(type_.elementType, found.value_type, path))
        case MapType() if pa.types.is_map(found):
            key = _type_by_id(type_.keyType, found.key_type, path)
            return MapType(key, _type_by_id(type_.valueType, found.item_type, path))
        case _:
            return type_


def _within(field: StructField, found: Mapping[int, pa.Field], path: str) -> StructField:
    number = field.metadata[ID]
    if number in found:
        return _field_by_id(field, found[number], path)
    return StructField(f"{_ABSENT}{number}", nullable(field.dataType))


def _ids(fields: list[pa.Field], path: str) -> dict[int, pa.Field]:
    names = [field.name.lower() for field in fields]
    found = {number: field for field in fields if (number := _id_of(field)) is not None}
    if len(set(names)) < len(names) or any(name.startswith(_ABSENT) for name in names):
        raise UnsupportedTableError(
            f"Names of columns in {path} differ only by their case.",
            fix="Read the table through Spark's catalog.",
            path=path,
        )
    return found


def _id_of(field: pa.Field) -> int | None:
    said = (field.metadata or {}).get(_FIELD_ID)
    return None if said is None else int(said)

"""Convert nested columns on their way in and out: the needed fields, under the names by which they travel.

A file's struct may have its fields in another order or case, or lack some, which are then NULL. A map travels as an
array of pairs, which is also its layout in memory. So a map with a repeated key, as files may have it, is nothing
special to a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import arrow_type


def conformed(array: pa.Array, wanted: DataType) -> pa.Array:
    """Convert a column to the type in which it travels."""
    target = arrow_type(wanted)
    if array.type == target:
        return array
    match wanted.kind:
        case Kind.ARRAY:
            lists = _plain_list(array)
            return _with_children(lists, target, conformed(lists.values, wanted.element))
        case Kind.MAP:
            fields = [
                conformed(part, kind)
                for part, kind in zip((array.keys, array.items), wanted.children, strict=True)
            ]
            return _with_children(
                array, target, pa.StructArray.from_arrays(fields, fields=list(target.value_type))
            )
        case Kind.STRUCT:
            children = [
                pa.nulls(len(array), arrow_type(child)) if at is None else conformed(array.field(at), child)
                for at, child in zip(field_places(array.type, wanted), wanted.children, strict=True)
            ]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
        case _:
            return array.cast(target)


def _plain_list(array: pa.Array) -> pa.Array:
    """Convert a list to 32-bit offsets."""
    return array.cast(pa.list_(array.type.value_field)) if pa.types.is_large_list(array.type) else array


def _with_children(lists: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """The same lists with other values."""
    validity, offsets = lists.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(lists), [validity, offsets], lists.null_count, lists.offset, [values]
    )


@lru_cache(maxsize=1 << 12)
def field_places(found: pa.StructType, wanted: DataType) -> tuple[int | None, ...]:
    """The positions of the wanted fields in a struct, by name without regard to case; None for a missing field."""
    places: dict[str, int] = {}
    for place in range(found.num_fields):
        places.setdefault(found.field(place).name.lower(), place)
    return tuple(places.get(name.lower()) for name in wanted.names)


def same_fields(found: pa.StructType, wanted: DataType) -> bool:
    """Does a struct have at least one of the wanted fields, and none of them twice?"""
    lower = [found.field(place).name.lower() for place in range(found.num_fields)]
    counts = [lower.count(name.lower()) for name in wanted.names]
    return max(counts) == 1


def leaf_columns(metadata: pq.FileMetaData, name: str, wanted: DataType) -> list[int]:
    """The positions in a footer of all columns that are needed to read a file's column as a type."""
    schema: pa.Schema = metadata.schema.to_arrow_schema()
    place = schema.get_field_index(name)
    begin = sum(_leaves(schema.field(at).type) for at in range(place))
    return list(_wanted_leaves(schema.field(place).type, wanted, begin))


def _wanted_leaves(found: pa.DataType, wanted: DataType, begin: int) -> Iterator[int]:
    match wanted.kind:
        case Kind.ARRAY:
            yield from _wanted_leaves(found.value_type, wanted.element, begin)
        case Kind.MAP:
            key, value = wanted.children
            yield from _wanted_leaves(found.key_type, key, begin)
            yield from _wanted_leaves(found.item_type, value, begin + _leaves(found.key_type))
        case Kind.STRUCT:
            begins = [begin]
            for field in found:
                begins.append(begins[-1] + _leaves(field.type))
            for at, child in zip(field_places(found, wanted), wanted.children, strict=True):
                if at is not None:
                    yield from _wanted_leaves(found.field(at).type, child, begins[at])
        case _:
            yield begin


def _leaves(type_: pa.DataType) -> int:
    """The number of file columns that hold the values of a type."""
    if pa.types.is_map(type_):
        return _leaves(type_.key_type) + _leaves(type_.item_type)
    if pa.types.is_struct(type_):
        return sum(_leaves(field.type) for field in type_)
    return _leaves(type_.value_type) if pa.types.is_nested(type_) else 1


class _Labelled:
    """An array under the names and flags of another type with the same layout."""

    def __init__(self, array: pa.Array, type_: pa.DataType) -> None:
        self._array = array
        self._type = type_

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The interface by which Arrow libraries exchange arrays: a description of the type, and the data."""
        _, data = self._array.__arrow_c_array__(requested_schema)
        return self._type.__arrow_c_schema__(), data


def labelled(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Give a column that has travelled the user's names again; arrays of pairs become maps."""
    if array.type == wanted:
        return array
    label = _label(array.type, wanted)
    named = array if label == array.type else pa.array(_Labelled(array, label))
    return named if label == wanted else named.cast(wanted)


def _label(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The wanted type, with the value types of the actual one."""
    if pa.types.is_map(wanted):
        parts = (found.key_type, found.item_type) if pa.types.is_map(found) else _types(found.value_type)
        return pa.map_(
            wanted.key_field.with_type(_label(parts[0], wanted.key_type)),
            wanted.item_field.with_type(_label(parts[1], wanted.item_type)),
        )
    if pa.types.is_struct(wanted):
        pairs = zip(found, wanted, strict=True)
        return pa.struct([theirs.with_type(_label(ours.type, theirs.type)) for ours, theirs in pairs])
    if pa.types.is_list(wanted) or pa.types.is_large_list(wanted):
        return pa.list_(wanted.value_field.with_type(_label(found.value_type, wanted.value_type)))
    return found


def _types(fields: pa.StructType) -> tuple[pa.DataType, ...]:
    return tuple(field.type for field in fields)


def named_type(type_: DataType) -> pa.DataType:
    """A type with the user's names, as in files that hand columns over."""
    match type_.kind:
        case Kind.ARRAY:
            return pa.list_(named_type(type_.element))
        case Kind.MAP:
            return pa.map_(*map(named_type, type_.children))
        case Kind.STRUCT:
            fields = zip(type_.names, type_.children, strict=True)
            return pa.struct([pa.field(name, named_type(child)) for name, child in fields])
        case _:
            return arrow_type(type_)

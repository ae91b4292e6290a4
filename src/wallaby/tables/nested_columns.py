"""Nested columns on their way in and out: the fields that are needed, under the names by which they travel.

A file's struct may have its fields in another order, in other letters, or not at all, which are NULL then. A map
travels as an array of pairs, which is what it is in memory, so that one with a key twice, as files may have it, is
nothing special to any kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import arrow_type


def conformed(array: pa.Array, wanted: DataType) -> pa.Array:
    """A file's column, or another's, in the type in which it travels."""
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
    """With offsets of 32 bits."""
    return array.cast(pa.list_(array.type.value_field)) if pa.types.is_large_list(array.type) else array


def _with_children(lists: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """The same lists of other values."""
    validity, offsets = lists.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(lists), [validity, offsets], lists.null_count, lists.offset, [values]
    )


@lru_cache(maxsize=1 << 12)
def field_places(found: pa.StructType, wanted: DataType) -> tuple[int | None, ...]:
    """Where the wanted fields stand in a struct, by their names without regard to case; None: nowhere."""
    places: dict[str, int] = {}
    for place in range(found.num_fields):
        places.setdefault(found.field(place).name.lower(), place)
    return tuple(places.get(name.lower()) for name in wanted.names)


def same_fields(found: pa.StructType, wanted: DataType) -> bool:
    """Has a struct none of the wanted fields twice, and at least one of them?"""
    lower = [found.field(place).name.lower() for place in range(found.num_fields)]
    counts = [lower.count(name.lower()) for name in wanted.names]
    return max(counts) == 1


def leaf_columns(metadata: pq.FileMetaData, name: str, wanted: DataType) -> list[int]:
    """The places in a footer of all that a column of the file needs to be read as a type."""
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
    """How many columns of a file hold values of a type."""
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
        """What Arrow's libraries hand arrays over by: a description of the type, and the data."""
        _, data = self._array.__arrow_c_array__(requested_schema)
        return self._type.__arrow_c_schema__(), data


def labelled(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A column as it travelled, under the names that the user gave it: a map is one again."""
    if array.type == wanted:
        return array
    label = _label(array.type, wanted)
    named = array if label == array.type else pa.array(_Labelled(array, label))
    return named if label == wanted else named.cast(wanted)


def _label(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The wanted type, but with the values of the one that was found."""
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
    """A type under the user's names, in which columns are handed over in files."""
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

"""Conditions that the side inputs of a read imply for its rows: the keys of a side, or the bounds of its keys.

If a split is joined with a side input, and rows without a partner are dropped, then only rows with one of the side's
keys matter. Row groups whose bounds exclude all keys are not read, nor are files of partitions whose value is not a
key. The join itself decides about all rows that are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from wallaby.relations import functions
from wallaby.relations.expression import Call, Column, Expression, Literal
from wallaby.relations.relation import Filter, Input, Join, Project, Relation, children_of
from wallaby.relations.tree import is_choice
from wallaby.relations.types import BOOLEAN, Kind
from wallaby.sql.types import arrow_type, column_name

_BOUNDED = frozenset({Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.DATE})
_KINDS = _BOUNDED | {Kind.STRING, Kind.DECIMAL}
#: Up to this many distinct keys are compared one by one.
_KEYS_MAX = 256
#: The first rows often show that there are more.
_SAMPLE_ROWS = 1 << 16


class KeyBounds:
    """The conditions for one fragment; those of a side are computed once, because its batches do not change."""

    def __init__(self, columns: tuple[Column, ...], tree: Relation) -> None:
        known = {column.id for column in columns}
        self._pairs = [pair for pair in _pairs(tree) if pair[0].id in known and pair[0].type.kind in _KINDS]
        #: Together with the batches, so that their ids cannot be reused.
        self._found: dict[int, tuple[tuple[pa.RecordBatch, ...], tuple[Expression, ...]]] = {}

    @property
    def pairs(self) -> Sequence[tuple[Column, int, Column]]:
        """Columns of the split, each with the side input and its column among whose values a relevant row's must be."""
        return self._pairs

    def conditions(self, sides: Mapping[int, Sequence[pa.RecordBatch]]) -> tuple[Expression, ...]:
        """The conditions that every relevant row meets, given the present side inputs."""
        return tuple(
            condition
            for at, (column, number, key) in enumerate(self._pairs)
            if number in sides
            for condition in self._of(at, column, key, sides[number])
        )

    def _of(
        self, at: int, column: Column, key: Column, batches: Sequence[pa.RecordBatch]
    ) -> tuple[Expression, ...]:
        before, found = self._found.get(at, ((), ()))
        if (
            not found
            or len(before) != len(batches)
            or any(a is not b for a, b in zip(before, batches, strict=True))
        ):
            try:
                found = _keys(column, column_name(key.id), batches)
            except (OverflowError, ValueError):
                found = ()  # dates that Python has no value for
            self._found[at] = (tuple(batches), found)
        return found


def _keys(column: Column, name: str, batches: Sequence[pa.RecordBatch]) -> tuple[Expression, ...]:
    rows = pa.chunked_array([batch.column(name) for batch in batches], arrow_type(column.type))
    # Most columns with too many distinct keys show it early; for the others all rows are read.
    many = len(rows) > _SAMPLE_ROWS and len(pc.unique(rows.slice(0, _SAMPLE_ROWS))) > _KEYS_MAX + 1
    different = pa.array([], rows.type) if many else pc.unique(rows).drop_null()
    if not many and not len(different):
        return (Literal(False, BOOLEAN),)
    if many or len(different) > _KEYS_MAX:
        return _bounds(column, name, batches) if column.type.kind in _BOUNDED else ()
    keys = tuple(Literal(key, column.type) for key in different.to_pylist())
    return (Call(functions.IN, (column, *keys), BOOLEAN, nullable=True),)


def _bounds(column: Column, name: str, batches: Sequence[pa.RecordBatch]) -> tuple[Expression, ...]:
    ends = [pc.min_max(batch.column(name)) for batch in batches]
    lows = [end["min"].as_py() for end in ends if end["min"].is_valid]
    highs = [end["max"].as_py() for end in ends if end["max"].is_valid]
    if not lows:
        return (Literal(False, BOOLEAN),)
    return (
        Call(functions.GREATER_OR_EQUAL, (column, Literal(min(lows), column.type)), BOOLEAN, nullable=True),
        Call(functions.LESS_OR_EQUAL, (column, Literal(max(highs), column.type)), BOOLEAN, nullable=True),
    )


def _pairs(tree: Relation) -> Iterator[tuple[Column, int, Column]]:
    """Columns of the split whose values must be among those of a side input's column."""
    found: list[tuple[Column, int, Column]] = []
    while not isinstance(tree, Input):
        match tree:
            case Filter(child=child):
                tree = child
            case Project(child=child) if is_choice(tree):
                tree = child
            case Join(left=left, right=right, kind=kind) if kind.filters_left:
                if kind.keeps_only_matched and isinstance(right, Input):
                    keys = zip(tree.left_keys, tree.right_keys, strict=True)
                    found += [
                        (ours, right.number, theirs)
                        for ours, theirs in keys
                        if isinstance(ours, Column) and isinstance(theirs, Column)
                    ]
                tree = left
            case _:
                found.clear()
                tree = children_of(tree)[0]
    yield from found

"""Rows of very many columns: how many of them a statement may take at once, and what their batches take besides.

DuckDB computes with vectors of 2048 values, and every operator has one for each of its columns, however few the rows
are. An aggregation has a state for each group and function, which is larger than most values. Both are nothing for
tables of ordinary width. With hundreds of columns they are more than the rows themselves, so fewer rows are taken.

Arrow describes every column of every batch by some objects. So rows of many columns must not be in many small batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from wallaby.relations.relation import Aggregate, Relation, Window, children_of
from wallaby.statements.connection import KernelSettings

#: What the vectors of a column take in the operators of a statement, on its way in and out.
_VECTORS_BYTES: Final = 2048 * 19
#: What a group takes for each of its functions, and a row for each of its columns, while DuckDB works on it.
_STATE_BYTES: Final = 32
_VALUE_BYTES: Final = 16
#: Vectors of up to this part of what a kernel may hold are not worth a thought.
_VECTORS_PARTS: Final = 4
#: DuckDB has rows about twice while it puts them in order or in groups.
_HELD_TIMES: Final = 2
#: What Arrow needs to describe one column of one batch.
_ARRAY_BYTES: Final = 700


def rows_at_once(tree: Relation, settings: KernelSettings) -> int | None:
    """How many rows the aggregations and windows of a tree may take at once; None: as many as fit by their size."""
    found = [rows for child in children_of(tree) if (rows := rows_at_once(child, settings)) is not None]
    own = _rows_of(tree, settings)
    return min((*found, *(() if own is None else (own,))), default=None)


def _rows_of(relation: Relation, settings: KernelSettings) -> int | None:
    if isinstance(relation, Aggregate) and relation.keys:
        row_bytes = _STATE_BYTES * len(relation.aggregations) + _VALUE_BYTES * len(relation.keys)
    elif isinstance(relation, Window):
        row_bytes = _VALUE_BYTES * len(relation.columns)
    else:
        return None
    (child,) = children_of(relation)
    vectors_bytes = _VECTORS_BYTES * (len(child.columns) + len(relation.columns))
    if vectors_bytes * _VECTORS_PARTS <= settings.memory_bytes:
        return None
    left = max(settings.memory_bytes - vectors_bytes, settings.memory_bytes // 8)
    return max(left // _HELD_TIMES // row_bytes, 1)


def divided(tree: Relation, settings: KernelSettings) -> tuple[Relation, ...]:
    """A tree, or several whose columns side by side are its own: an aggregation without keys gives one row each."""
    if not isinstance(tree, Aggregate) or tree.keys:
        return (tree,)
    columns = settings.memory_bytes // _VECTORS_PARTS // _VECTORS_BYTES
    groups = range(0, max(len(tree.aggregations), 1), columns)
    return tuple(replace(tree, aggregations=tree.aggregations[begin : begin + columns]) for begin in groups)


def side_by_side(answers: Iterable[Iterable[pa.RecordBatch]], schema: pa.Schema) -> pa.RecordBatch:
    """The columns of several answers of one row each."""
    columns = [column for answer in answers for batch in answer for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def described_bytes(columns: int, batches: int) -> int:
    """What so many batches of so many columns take in memory although their values are on disk."""
    return _ARRAY_BYTES * columns * batches

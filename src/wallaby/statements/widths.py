"""Rows with very many columns: how many a statement may take at once, and the overhead of their batches.

DuckDB computes with vectors of 2048 values, and every operator has one for each of its columns, however few rows there
are. An aggregation has a state for each group and function, which is larger than most values. Both are negligible for
tables of ordinary width. With hundreds of columns they exceed the rows themselves, so fewer rows are taken.

Arrow needs some objects for every column of every batch. So rows with many columns must not be in many small batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from wallaby.relations.relation import Aggregate, Relation, Window, children_of
from wallaby.statements.connection import KernelSettings

#: The bytes of a column's vectors in the operators of a statement, on its way in and out.
_VECTORS_BYTES: Final = 2048 * 19
#: The bytes of a group for each of its functions, and of a row for each of its columns, while DuckDB processes it.
_STATE_BYTES: Final = 32
_VALUE_BYTES: Final = 16
#: Vectors up to this fraction of what a kernel may hold are ignored.
_VECTORS_PARTS: Final = 4
#: DuckDB holds rows about twice while it sorts or groups them.
_HELD_TIMES: Final = 2
#: What Arrow needs to describe one column of one batch.
_ARRAY_BYTES: Final = 700


def rows_at_once(tree: Relation, settings: KernelSettings) -> int | None:
    """How many rows the aggregations and windows of a tree may take at once; None: limited by their size only."""
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
    """Divide an aggregation without keys into several trees of one row each, whose columns side by side are its own."""
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
    """The memory that batches take for their descriptions although their values are on disk."""
    return _ARRAY_BYTES * columns * batches

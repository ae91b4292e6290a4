"""Joining batches with an indexed build side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.kernels.index import JoinIndex, cut_by_partners, find, pairs, rows_in
from wallaby.kernels.key_set import KeySet
from wallaby.kernels.sizes import rows_within
from wallaby.kernels.types import ROWS_ONLY
from wallaby.plan.relation import JoinKind

Keys = Sequence[tuple[str, str]]
Rows = npt.NDArray[Any]


def joined_batches(
    index: JoinIndex | KeySet,
    rows: pa.Table,
    keys: Keys,
    kind: JoinKind,
    schema: pa.Schema,
    limit_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """One output batch for each batch of the probe side, or several where it finds many partners.

    `keys` are the names of the key columns on the probe and on the build side.
    """
    rows_max = rows_within(schema, limit_bytes)
    for batch in rows.to_batches():
        if isinstance(index, JoinIndex):
            yield from _with_partners(index, batch, keys, kind, schema, rows_max)
            continue
        chosen = rows_in(index, batch.column(keys[0][0]), kind)
        yield from _joined(batch, chosen, batch.num_rows if chosen is None else len(chosen), {}, schema)


def _with_partners(
    index: JoinIndex,
    batch: pa.RecordBatch,
    keys: Keys,
    kind: JoinKind,
    schema: pa.Schema,
    rows_max: int,
) -> Iterator[pa.RecordBatch]:
    """The joined rows of pieces of a probe batch, none with more partners than so many, unless it is a single row."""
    found = find(index, batch.column(keys[index.key][0]))
    others = [key for at, key in enumerate(keys) if at != index.key]
    shown = [field.name for field in schema if field.name in index.build.column_names]
    begin = 0
    for end in cut_by_partners(found, rows_max):
        piece = batch.slice(begin, end - begin)
        chosen, partners = pairs(index, found.piece(begin, end), kind)
        if others:
            chosen, partners = _equal_in(others, piece, chosen, index.build, partners)
        beside = {name: _chunk(index.build.column(name)).take(partners) for name in shown}
        yield from _joined(piece, chosen, len(partners), beside, schema)
        begin = end


def _equal_in(
    keys: Keys, batch: pa.RecordBatch, chosen: Rows | None, build: pa.Table, partners: pa.Array
) -> tuple[Rows, pa.Array]:
    """Those pairs of rows that are equal in further keys; NULL equals nothing."""
    rows = np.arange(batch.num_rows) if chosen is None else chosen
    for ours, theirs in keys:
        left = batch.column(ours).take(pa.array(rows))
        equal = pc.equal(left, _chunk(build.column(theirs)).take(partners)).fill_null(False)
        rows, partners = rows[equal.to_numpy(zero_copy_only=False)], partners.filter(equal)
    return rows, partners


def _joined(
    batch: pa.RecordBatch,
    chosen: Rows | None,
    count: int,
    beside: Mapping[str, pa.Array],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The chosen rows of a batch (None: all), `count` of them, with columns of the build side beside them, if any."""
    if not count:
        return
    taken = None if chosen is None else pa.array(chosen)
    arrays = []
    for field in schema:
        if field.name == ROWS_ONLY:
            arrays.append(pa.nulls(count, field.type))
        elif field.name in beside:
            arrays.append(beside[field.name])
        else:
            column = batch.column(field.name)
            arrays.append(column if taken is None else column.take(taken))
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)

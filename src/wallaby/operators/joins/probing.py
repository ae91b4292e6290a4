"""Join batches with an indexed build side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.batches.sizes import is_varying, rows_within, sizes_of_values
from wallaby.operators.joins.index import JoinIndex, cut_by_partners, find, pairs_by_pieces, rows_in
from wallaby.operators.joins.key_set import KeySet
from wallaby.relations.join_kind import JoinKind
from wallaby.sql.types import ROWS_ONLY

Keys = Sequence[tuple[str, str]]
Rows = npt.NDArray[Any]
#: The bytes that finding a pair of rows takes besides the pair.
_PAIR = pa.field("pair", pa.binary(40))


def joined_batches(
    index: JoinIndex | KeySet,
    batches: Iterable[pa.RecordBatch],
    keys: Keys,
    kind: JoinKind,
    schema: pa.Schema,
    limit_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield one output batch for each batch of the probe side, or several if it finds many partners.

    `keys` are the names of the key columns on the probe and on the build side. No output batch is larger than the
    limit, unless it is a single row.
    """
    rows_max = rows_within(schema.append(_PAIR), limit_bytes)
    for batch in batches:
        if isinstance(index, JoinIndex):
            yield from _with_partners(index, batch, keys, kind, schema, rows_max, limit_bytes)
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
    limit_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The joined rows of a probe batch, in pieces with at most this many partners each."""
    found = find(index, batch.column(keys[index.key][0]), kind)
    others = [key for at, key in enumerate(keys) if at != index.key]
    shown = [field.name for field in schema if field.name in index.build.column_names]
    begin = 0
    for end in cut_by_partners(found, rows_max):
        some = found.piece(begin, end)
        piece = batch.slice(begin, end - begin) if some.rows is None else batch
        for chosen, partners in pairs_by_pieces(index, some, kind, rows_max):
            if others:
                chosen, partners = _equal_in(others, piece, chosen, index.build, partners)  # noqa: PLW2901
            for ours, theirs in _cut_by_size(index, piece, chosen, partners, schema, limit_bytes):
                beside = {name: _chunk(index.build.column(name)).take(theirs) for name in shown}
                yield from _joined(piece, ours, len(theirs), beside, schema)
        begin = end


def _cut_by_size(
    index: JoinIndex,
    batch: pa.RecordBatch,
    chosen: Rows | None,
    partners: pa.Array,
    schema: pa.Schema,
    limit_bytes: int,
) -> Iterator[tuple[Rows | None, pa.Array]]:
    """Cut pairs of rows into pieces whose texts and lists are not too large together."""
    varying = [field.name for field in schema if is_varying(field.type)]
    theirs = [name for name in varying if name in index.build.column_names]
    ours = [name for name in varying if name not in theirs]
    widest = sum(index.longest(name) for name in theirs)
    widest += sum(int(sizes_of_values(batch.column(name)).max(initial=0)) for name in ours)
    if len(partners) * widest <= limit_bytes:
        yield chosen, partners
        return
    sizes = np.zeros(len(partners), np.int64)
    if ours:
        per_row = sum(sizes_of_values(batch.column(name)) for name in ours)
        sizes += per_row if chosen is None else per_row[chosen]  # type: ignore[index]
    if theirs and index.build.num_rows:
        at = partners.fill_null(0).to_numpy(zero_copy_only=False)
        for name in theirs:
            sizes += index.sizes(name)[at]
    reached = np.cumsum(sizes)
    begin = 0
    while begin < len(partners):
        before = int(reached[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(reached, before + limit_bytes, side="right")), begin + 1)
        rows = np.arange(begin, end) if chosen is None else chosen[begin:end]
        yield rows, partners.slice(begin, end - begin)
        begin = end


def _equal_in(
    keys: Keys, batch: pa.RecordBatch, chosen: Rows | None, build: pa.Table, partners: pa.Array
) -> tuple[Rows, pa.Array]:
    """The pairs of rows that are equal in further keys; NULL equals nothing."""
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
    """The `count` chosen rows of a batch (None: all), with columns of the build side beside them, if any."""
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

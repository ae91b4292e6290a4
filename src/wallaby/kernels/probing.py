"""Joining batches with an indexed build side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from wallaby.kernels.index import JoinIndex, cut_by_partners, find, pairs, rows_in
from wallaby.kernels.key_set import KeySet
from wallaby.kernels.sizes import rows_within
from wallaby.kernels.types import ROWS_ONLY, column_name
from wallaby.plan.expression import Column
from wallaby.plan.relation import JoinKind


def joined_batches(
    index: JoinIndex | KeySet,
    rows: pa.Table,
    probe_key: Column,
    kind: JoinKind,
    schema: pa.Schema,
    limit_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """One output batch for each batch of the probe side, or several where it finds many partners."""
    key = column_name(probe_key.id)
    rows_max = rows_within(schema, limit_bytes)
    for batch in rows.to_batches():
        if isinstance(index, JoinIndex):
            yield from _with_partners(index, batch, key, kind, schema, rows_max)
            continue
        chosen = rows_in(index, batch.column(key), kind)
        yield from _joined(batch, chosen, batch.num_rows if chosen is None else len(chosen), {}, schema)


def _with_partners(
    index: JoinIndex, batch: pa.RecordBatch, key: str, kind: JoinKind, schema: pa.Schema, rows_max: int
) -> Iterator[pa.RecordBatch]:
    """The joined rows of pieces of a probe batch, none with more partners than so many, unless it is a single row."""
    found = find(index, batch.column(key))
    shown = [field.name for field in schema if field.name in index.build.column_names]
    begin = 0
    for end in cut_by_partners(found, rows_max):
        chosen, partners = pairs(index, found.piece(begin, end), kind)
        beside = {name: _chunk(index.build.column(name)).take(partners) for name in shown}
        yield from _joined(batch.slice(begin, end - begin), chosen, len(partners), beside, schema)
        begin = end


def _joined(
    batch: pa.RecordBatch,
    chosen: npt.NDArray[Any] | None,
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

"""Merge or cut decoded batches so that each is about as large as a portion.

Readers decode some rows at a time, as many as should fit according to the file. The size of these rows is known only
after that. Dictionary-encoded text is decoded last, when it is known which rows go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.batches.mapped import MappedBatches
from wallaby.batches.stopping import check


def on_disk(batches: Iterator[pa.RecordBatch], directory: Path) -> MappedBatches:
    """Write batches, at least one, to a file."""
    first = next(batches)
    return MappedBatches(chain((first,), batches), first.schema, directory)


def side_by_side(parts: Sequence[MappedBatches]) -> Iterator[pa.RecordBatch]:
    """Combine the columns of all parts, whose batches have the same rows."""
    for batches in zip(*(part.batches for part in parts), strict=True):
        columns = [column for batch in batches for column in batch.columns]
        names = [name for batch in batches for name in batch.schema.names]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def cut(batches: Iterator[pa.RecordBatch], limit_bytes: int) -> Iterator[pa.Table]:
    """Merge or cut batches so that each has about this size, decoded; a single row may be larger."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        check()
        reached = np.cumsum(_row_bytes(batch))
        begin = before = 0
        while begin < batch.num_rows:
            end = int(np.searchsorted(reached, before + limit_bytes - size, side="right"))
            if end <= begin and group:
                yield _together(group)
                group, size = [], 0
                continue
            end = max(end, begin + 1)
            group.append(_plain(batch.slice(begin, end - begin)))
            size += int(reached[end - 1]) - before
            begin, before = end, int(reached[end - 1])
    if group:
        yield _together(group)


def _together(group: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(group).combine_chunks()


def _row_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The decoded size of each row; the values of nested columns are assumed to be spread evenly."""
    rows = max(batch.num_rows, 1)
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        kind = column.type
        if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
            lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False)
            at = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
            sizes += (lengths[at] if len(lengths) else 0) + 4
        elif _is_text(kind):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False) + 4
        else:
            sizes += column.nbytes // rows + 1
    return sizes


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_binary,
            pa.types.is_large_string,
            pa.types.is_large_binary,
        )
    )


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode dictionary-encoded text."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

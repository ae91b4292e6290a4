"""Partition batches by the hash of keys: equal keys of one type go to the same channel, whatever their table.

Within a channel, rows keep their order and batches their boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wallaby.errors import InvalidArgumentError
from wallaby.operators.hashing import row_hashes
from wallaby.statements.connection import DuckDbSession

#: Up to this many channels, finding the rows of each channel in turn is faster than sorting all rows.
_FEW_CHANNELS = 8
_HASH_BITS = np.uint64(32)
_LOWER_HALF = np.uint64((1 << 32) - 1)


def partition(
    batches: Sequence[pa.RecordBatch], keys: Sequence[int], channels: int, session: DuckDbSession
) -> list[list[pa.RecordBatch]]:
    """The batches of each channel, none empty. `keys` are positions of columns."""
    if not 1 <= channels <= 1 << 16:
        raise InvalidArgumentError(
            f"Rows cannot be divided among {channels} channels.", fix="Use 1 to 65536 channels."
        )
    if not keys:
        raise InvalidArgumentError(
            "Rows cannot be divided by hash without a key.", fix="Name at least one key."
        )
    if channels == 1:
        return [[batch for batch in batches if batch.num_rows]]
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(channels)]
    for batch in batches:
        for channel, part in cut_rows(batch, channels_of(batch, keys, channels, session), channels):
            parts[channel].append(part)
    return parts


def channels_of(
    batch: pa.RecordBatch, keys: Sequence[int], channels: int, session: DuckDbSession
) -> npt.NDArray[np.uint16]:
    """The channel of every row."""
    # The upper half decides: multiplying and shifting spreads evenly, and is cheaper than a remainder.
    return _scaled(row_hashes(batch, keys, session) >> _HASH_BITS, channels)


def part_of_rows(
    batch: pa.RecordBatch, keys: Sequence[int], parts: int, session: DuckDbSession
) -> npt.NDArray[np.uint16]:
    """The part of every row within a channel, by the bits that do not determine the channel."""
    return _scaled(row_hashes(batch, keys, session) & _LOWER_HALF, parts)


def _scaled(half: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint16]:
    return (half * np.uint64(count) >> _HASH_BITS).astype(np.uint16)


def cut_rows(
    batch: pa.RecordBatch, channel: npt.NDArray[np.uint16], channels: int
) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of each part. Every part has its own memory, so that a waiting part does not keep the others alive."""
    narrow = channel.astype(np.uint8) if channels <= 1 << 8 else channel
    if channels <= _FEW_CHANNELS:
        chosen = ((number, np.flatnonzero(narrow == number)) for number in range(channels))
        return [(number, _taken(batch, rows)) for number, rows in chosen if len(rows)]
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(channel, minlength=channels))
    parts = []
    begin = 0
    for number, end in enumerate(ends.tolist()):
        if end > begin:
            parts.append((number, _taken(batch, order[begin:end])))
        begin = end
    return parts


def _taken(batch: pa.RecordBatch, rows: npt.NDArray[np.intp]) -> pa.RecordBatch:
    """Take rows by their numbers, without bounds checks."""
    return pc.take(batch, pa.array(rows), boundscheck=False)

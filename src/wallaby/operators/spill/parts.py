"""Divide rows into parts on disk by the hash of keys, to process part by part what is too large for memory.

Rows with equal keys are in one part. The hash is that of the exchange: channels use the upper half of its bits and
parts the lower half, so the parts of a channel are even. A key with many rows makes its part large; users of the parts
must handle that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa

from wallaby.batches.chunks import Chunks
from wallaby.batches.mapped import MappedBatches, whole
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.batches.stored import StoredBatches
from wallaby.errors import InternalError
from wallaby.operators.partition import cut_rows, part_of_rows
from wallaby.statements.connection import DuckDbSession, KernelSettings
from wallaby.statements.widths import described_bytes

PARTS_MAX = 4096
#: The descriptions of all pieces may take this fraction of what a kernel may hold.
_DESCRIBED_PARTS: Final = 8


def parts_for(size_bytes: int, limit_bytes: int) -> int:
    """Number of parts of about `limit_bytes` each."""
    return min(max(-(-size_bytes // max(limit_bytes, 1)), 1), PARTS_MAX)


def cut_into_parts(
    rows: Chunks, keys: Sequence[int], parts: int, session: DuckDbSession, settings: KernelSettings
) -> list[Chunks]:
    """The rows of each part, in order. All parts share one file."""
    if settings.temp_directory is None:
        raise InternalError("Rows are cut into parts on disk, but there is no directory for them.")
    if not rows.batches:
        return [Chunks() for _ in range(parts)]
    cut = _cut(rows, keys, parts, session, settings)
    expected = parts * parts_for(rows.value_bytes, settings.portion_bytes)
    if described_bytes(rows.batches[0].num_columns, expected) > settings.memory_bytes // _DESCRIBED_PARTS:
        cut = _sorted_by_part(cut, parts, rows.batches[0].schema, settings)
    numbers: list[int] = []
    sizes = [0] * parts

    def pieces() -> Iterator[pa.RecordBatch]:
        for number, piece in cut:
            numbers.append(number)
            sizes[number] += value_bytes((piece,))
            yield piece

    file = MappedBatches(pieces(), rows.batches[0].schema, settings.temp_directory)
    found: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
    for number, batch in zip(numbers, file.batches, strict=True):
        found[number].append(batch)
    return [Chunks(tuple(batches), (file,), size) for batches, size in zip(found, sizes, strict=True)]


def _cut(
    rows: Chunks, keys: Sequence[int], parts: int, session: DuckDbSession, settings: KernelSettings
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut one portion after the other, with the numbers of the parts."""
    for group in rows.groups(settings.portion_bytes):
        batch = whole(group)
        yield from cut_rows(batch, part_of_rows(batch, keys, parts, session), parts)


def _sorted_by_part(
    cut: Iterator[tuple[int, pa.RecordBatch]], parts: int, schema: pa.Schema, settings: KernelSettings
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rewrite the rows part by part through another file, in batches of about a portion."""
    assert settings.temp_directory is not None, "rows are cut on disk"
    places: list[list[int]] = [[] for _ in range(parts)]
    with closing(StoredBatches(schema, settings.temp_directory)) as stored:
        for number, piece in cut:
            places[number].append(stored.append(piece))
        for number, own in enumerate(places):
            for group in grouped(map(stored.read, own), settings.portion_bytes):
                yield number, whole(group)

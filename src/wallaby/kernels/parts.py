"""Rows cut into parts by the hash of keys, on disk: so that what is too large for memory is worked on part by part.

Rows with equal keys are in one part. The hash is that of the exchange, of which the channels use the upper half of
the bits and parts the lower: within a channel the parts are even. A key with many rows makes its part large; who
uses the parts has to live with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from wallaby.errors import InternalError
from wallaby.kernels.chunks import Chunks
from wallaby.kernels.connection import KernelSettings, Session
from wallaby.kernels.mapped import MappedBatches, whole
from wallaby.kernels.partition import cut_rows, part_of_rows
from wallaby.kernels.sizes import value_bytes

PARTS_MAX = 4096


def parts_for(size_bytes: int, limit_bytes: int) -> int:
    """Number of parts of about `limit_bytes` each."""
    return min(max(-(-size_bytes // max(limit_bytes, 1)), 1), PARTS_MAX)


def cut_into_parts(
    rows: Chunks, keys: Sequence[int], parts: int, session: Session, settings: KernelSettings
) -> list[Chunks]:
    """For each part its rows, in their order. All parts share one file."""
    if settings.temp_directory is None:
        raise InternalError("Rows are cut into parts on disk, but there is no directory for them.")
    if not rows.batches:
        return [Chunks() for _ in range(parts)]
    numbers: list[int] = []
    sizes = [0] * parts

    def pieces() -> Iterator[pa.RecordBatch]:
        for group in rows.groups(settings.portion_bytes):
            batch = whole(group)
            for number, piece in cut_rows(batch, part_of_rows(batch, keys, parts, session), parts):
                numbers.append(number)
                sizes[number] += value_bytes((piece,))
                yield piece

    file = MappedBatches(pieces(), rows.batches[0].schema, settings.temp_directory)
    found: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
    for number, batch in zip(numbers, file.batches, strict=True):
        found[number].append(batch)
    return [Chunks(tuple(batches), (file,), size) for batches, size in zip(found, sizes, strict=True)]

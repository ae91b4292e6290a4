"""Rows that a kernel sets aside: batches in memory or in mapped files, and the spool that collects them.

A spool keeps batches in memory up to a limit, then writes those and all that follow to a file. The batches are the same
in both cases, so results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from wallaby.batches.mapped import MappedBatches
from wallaby.batches.sizes import grouped, value_bytes
from wallaby.batches.stopping import check


@dataclass(frozen=True, slots=True)
class Chunks:
    """Batches of one schema, the files that some of them are in, and the size of all their values.

    The size is stored, because computing it again would bring pages of the files back to memory.
    """

    batches: tuple[pa.RecordBatch, ...] = ()
    files: tuple[MappedBatches, ...] = ()
    value_bytes: int = 0

    def release(self) -> None:
        """Release the pages that were read."""
        for file in self.files:
            file.release()

    def reader(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """Yield the batches one by one, and release the pages that were read."""
        return pa.RecordBatchReader.from_batches(schema, self._released())

    def groups(self, size_bytes: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
        """Group adjacent batches up to about a size. The pages of a group are released before the next one.

        Even computing the size of a batch brings pages of its file to memory.
        """
        for group in grouped(self.batches, size_bytes):
            yield group
            self.release()

    def _released(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            yield batch
            self.release()


def spooled(batches: Iterable[pa.RecordBatch], limit_bytes: int, directory: Path | None) -> Chunks:
    """Set batches aside: in memory up to a limit, beyond that in a file if there is a directory."""
    size = 0

    def measured() -> Iterator[pa.RecordBatch]:
        nonlocal size
        for batch in batches:
            check()
            size += value_bytes((batch,))
            yield batch

    kept: list[pa.RecordBatch] = []
    coming = measured()
    for batch in coming:
        kept.append(batch)
        if directory is not None and size > limit_bytes:
            file = MappedBatches(_emptied(kept, coming), batch.schema, directory)
            return Chunks(file.batches, (file,), size)
    return Chunks(tuple(kept), (), size)


def _emptied(first: list[pa.RecordBatch], coming: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the items one by one, without keeping references to earlier ones."""
    while first:
        yield first.pop(0)
    yield from coming

"""Rows that a kernel puts aside: batches, in memory or in mapped files, and the spool that they are put on.

A spool keeps what it is given in memory up to a limit, then writes everything, that and what follows, to a file.
Batches stay the same on either way, so it makes no difference to what is computed from them.
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

    The size is carried along: to ask the batches again would bring pages of their files back to memory.
    """

    batches: tuple[pa.RecordBatch, ...] = ()
    files: tuple[MappedBatches, ...] = ()
    value_bytes: int = 0

    def release(self) -> None:
        """Let go of pages that were read."""
        for file in self.files:
            file.release()

    def reader(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """The batches one after the other; what was read is let go."""
        return pa.RecordBatchReader.from_batches(schema, self._released())

    def groups(self, size_bytes: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
        """Neighbouring batches together, up to about a size. What was read of a group is let go before the next.

        Even to ask a batch for its size brings pages of its file to memory.
        """
        for group in grouped(self.batches, size_bytes):
            yield group
            self.release()

    def _released(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            yield batch
            self.release()


def spooled(batches: Iterable[pa.RecordBatch], limit_bytes: int, directory: Path | None) -> Chunks:
    """Put batches aside: in memory up to a limit, else, if there is a directory, in a file."""
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
    """One after the other, without holding on to those that have gone."""
    while first:
        yield first.pop(0)
    yield from coming

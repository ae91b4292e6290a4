"""Arrow data on disk, read through a memory map: for a channel's rows that do not fit in memory.

A file is unlinked once it is mapped, so it disappears when its batches are gone or the process is killed. Values and
batch boundaries are those of the batches that were written, so steps give the same bytes whether their rows were in
memory or not. `release` frees the pages that were read.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from wallaby.batches.task_timing import spilled

_LOOKS = 64


class MappedBatches:
    """Some batches of one schema, on disk."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, directory: Path) -> None:
        handle, name = tempfile.mkstemp(prefix="state-", suffix=".arrow", dir=directory)
        try:
            with os.fdopen(handle, "w+b") as file:
                with pa.ipc.new_file(file, schema) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
                file.flush()
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                spilled(len(self._map))
        finally:
            Path(name).unlink()
        reader = pa.ipc.open_file(pa.py_buffer(self._map))
        found: list[pa.RecordBatch] = []
        for at in range(reader.num_record_batches):
            found.append(reader.get_batch(at))
            # Each access to a batch's description brings the pages around it to memory.
            if at % _LOOKS == _LOOKS - 1:
                self.release()
        self.release()
        self.batches = tuple(found)

    @property
    def size_bytes(self) -> int:
        """The size on disk."""
        return len(self._map)

    def release(self) -> None:
        """Release the pages that were read; they are read again when needed."""
        self._map.madvise(mmap.MADV_DONTNEED)


def combined_on_disk(table: pa.Table, directory: Path) -> tuple[pa.Table, list[MappedBatches]]:
    """Combine a table into one chunk, column by column, so that at most one column is in memory."""
    kept: list[MappedBatches] = []
    columns: list[pa.Array] = []
    for at, field in enumerate(table.schema):
        if table.column(at).num_chunks == 0:
            return table.combine_chunks(), []
        whole = pa.concat_arrays(table.column(at).chunks)
        schema = pa.schema([field])
        mapped = MappedBatches([pa.RecordBatch.from_arrays([whole], schema=schema)], schema, directory)
        kept.append(mapped)
        columns.append(mapped.batches[0].column(0))
    return pa.Table.from_arrays(columns, schema=table.schema), kept


def whole(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Combine batches into one."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)

"""Batches in a file that are read one by one, each into its own memory.

A mapped file (`mapped`) shows all its batches at once, and the kernel brings 64 KiB to memory for every value that is
accessed. That is too much for readers that take a little from each of many places. Here a batch is one piece of the
file, and reading it takes exactly its size. The file is unlinked, so it disappears when it is closed or the process is
killed.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from pathlib import Path

import pyarrow as pa

from wallaby.batches.task_timing import spilled


class StoredBatches:
    """Batches of one schema, in the order in which they were written."""

    def __init__(self, schema: pa.Schema, directory: Path) -> None:
        self._schema = schema
        self._file = tempfile.TemporaryFile(prefix="batches-", dir=directory, buffering=0)  # noqa: SIM115 - closed below
        #: Where each batch begins, and where the last one ends.
        self._starts = array("q", [0])

    def append(self, batch: pa.RecordBatch) -> int:
        """Write a batch and return the number under which it can be read."""
        data = batch.serialize()
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._starts.append(self._starts[-1] + data.size)
        spilled(data.size)
        return len(self._starts) - 2

    def read(self, number: int) -> pa.RecordBatch:
        """Read a batch into memory."""
        start, end = self._starts[number], self._starts[number + 1]
        buffer = pa.allocate_buffer(end - start)
        rest = memoryview(buffer).cast("B")
        while rest:
            count = os.preadv(self._file.fileno(), [rest], end - len(rest))
            if not count:
                raise OSError(f"A file of rows ends {len(rest)} bytes before it should.")
            rest = rest[count:]
        return pa.ipc.read_record_batch(buffer, self._schema)

    def close(self) -> None:
        """Remove the file; batches that were read stay valid."""
        self._file.close()

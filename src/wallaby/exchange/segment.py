"""Segment files: bodies of one query, appended to a few large files and read back through memory maps.

Nothing is changed in place, and nothing is meant to outlive the process, so there is no fsync, no index on disk and no
recovery: a worker's memory and disk are lost together. Files have mode 0600 in a directory of mode 0700 and are removed
when the query is dropped.

One thread at a time writes bodies, and any thread reads them; a map stays valid even after the file is removed. If the
disk is full, `OSError` with ENOSPC is raised after every directory has been tried, and readers see nothing of the body:
a range is returned only for a body that was written completely.
"""

from __future__ import annotations

import mmap
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from wallaby.errors.files import FULL
from wallaby.exchange.body import decode, encode

SEGMENT_BYTES = 256 << 20
#: Bodies begin at multiples of this, so that mapped columns are as aligned as allocated ones.
ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The location of a body: the number of the segment, the range in it, and the number of batches."""

    segment: int
    offset_bytes: int
    length_bytes: int
    batches: int


class Segments:
    """The segment files of one query, spread over the given directories."""

    def __init__(
        self, directories: tuple[Path, ...], compression: str | None, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._directories = directories
        self._compression = compression
        self._segment_bytes = segment_bytes
        self._files: list[int] = []
        self._end_bytes = 0
        self._closed = False
        self._writing = threading.Lock()
        self._opening = threading.Lock()

    def append(self, batches: tuple[pa.RecordBatch, ...], room_bytes: int) -> SegmentRange | None:
        """Write a body. Returns None if it takes more than `room_bytes`, or if the query has been dropped."""
        data = encode(batches, self._compression)
        if data.size > room_bytes:
            return None
        with self._writing:
            if self._closed:
                return None
            for tried in range(len(self._directories) + 1):
                try:
                    return self._append(data, len(batches), fresh=tried > 0)
                except OSError as error:
                    if error.errno not in FULL or tried == len(self._directories):
                        raise
            raise AssertionError("unreachable")

    def _append(self, data: pa.Buffer, batches: int, *, fresh: bool) -> SegmentRange:
        if fresh or not self._files or self._end_bytes + data.size > self._segment_bytes:
            self._open_next()
        segment, offset = len(self._files) - 1, self._end_bytes
        rest = memoryview(data)
        while rest:
            rest = rest[os.pwrite(self._files[segment], rest, offset + data.size - len(rest)) :]
        self._end_bytes = -(-(offset + data.size) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return SegmentRange(segment, offset, data.size, batches)

    def _open_next(self) -> None:
        """Open the next file, in the next directory."""
        number = len(self._files)
        directory = self._directories[number % len(self._directories)]
        directory.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(directory / f"{number}.segment", flags, 0o600)
        with self._opening:
            self._files.append(file)
        self._end_bytes = 0

    def read(self, place: SegmentRange) -> tuple[pa.RecordBatch, ...] | None:
        """Map the batches of a range, without copying them unless compressed. None if the query was dropped."""
        skip = place.offset_bytes % mmap.ALLOCATIONGRANULARITY
        with self._opening:
            if self._closed:
                return None
            view = mmap.mmap(
                self._files[place.segment],
                place.length_bytes + skip,
                prot=mmap.PROT_READ,
                offset=place.offset_bytes - skip,
            )
        return decode(pa.py_buffer(view).slice(skip), place.batches)

    def close(self) -> None:
        """Remove the files; waits for a body that is being written."""
        with self._writing, self._opening:
            self._closed = True
            for file in self._files:
                os.close(file)
            self._files = []
            # Errors are ignored, because Spark may have removed its local directories already.
            for directory in self._directories:
                shutil.rmtree(directory, ignore_errors=True)

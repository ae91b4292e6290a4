"""Measure the parts of the task on this thread, to see where time and disk space went.

The clock is read twice for each part, always: a task takes milliseconds. To measure a task, call `taken` before it and
after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class Lap(Enum):
    """A part of a task; time outside all of these is the kernel's own work."""

    SCAN = "scan_seconds"
    PARTITION = "partition_seconds"
    CHECKSUM = "checksum_seconds"


@dataclass(slots=True)
class Laps:
    """The seconds of each part, and the bytes written to files for lack of memory."""

    scan_seconds: float = 0.0
    partition_seconds: float = 0.0
    checksum_seconds: float = 0.0
    spilled_bytes: int = 0


class _Here(threading.local):
    laps: Laps


_here = _Here()


def _now() -> Laps:
    try:
        return _here.laps
    except AttributeError:
        _here.laps = Laps()
        return _here.laps


@contextmanager
def lap(part: Lap) -> Iterator[None]:
    """Count the time inside as this part. Parts do not overlap."""
    began = time.perf_counter()
    try:
        yield
    finally:
        laps = _now()
        setattr(laps, part.value, getattr(laps, part.value) + time.perf_counter() - began)


def spilled(size_bytes: int) -> None:
    """Count bytes that were written to a file."""
    _now().spilled_bytes += size_bytes


def taken() -> Laps:
    """The measurements of this thread since the last call."""
    laps = _now()
    _here.laps = Laps()
    return laps

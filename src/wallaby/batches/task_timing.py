"""What parts of the task on this thread took: for whoever wants to know where time and disk space went.

Two looks at the clock for each part, always: a task takes milliseconds. Whoever runs a task and wants to know calls
`taken` before it and after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class Lap(Enum):
    """A part of a task; what is none of these is the kernel's own work."""

    SCAN = "scan_seconds"
    PARTITION = "partition_seconds"
    CHECKSUM = "checksum_seconds"


@dataclass(slots=True)
class Laps:
    """Seconds of each part, and bytes written to files because memory had no room."""

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
    """What is done in here is this part. Parts do not overlap."""
    began = time.perf_counter()
    try:
        yield
    finally:
        laps = _now()
        setattr(laps, part.value, getattr(laps, part.value) + time.perf_counter() - began)


def spilled(size_bytes: int) -> None:
    """So much went to a file."""
    _now().spilled_bytes += size_bytes


def taken() -> Laps:
    """What there was on this thread since the last time this was asked."""
    laps = _now()
    _here.laps = Laps()
    return laps

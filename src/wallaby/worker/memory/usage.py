"""Read how much memory a process uses, and how much the host and its control groups leave. Takes microseconds.

A TaskManager is forked from PySpark's daemon, and shares pages with it and with its siblings. Resident memory (RSS)
counts such pages in full in each of them. The proportional measure (PSS) divides them by how many share them, so those
of all processes add up to the memory that is really used. RSS is never less than PSS and costs 20 µs; so it is read
first, and PSS, which costs a millisecond for some gigabytes, only if RSS is near a limit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from wallaby.worker.memory.cgroup import left_bytes

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KIB: Final = 1 << 10


def resident_bytes(process: str = "self", proc: Path = Path("/proc")) -> int:
    """The memory of a process, including all that it shares; 0 if unknown."""
    try:
        fields = (proc / process / "statm").read_text(encoding="ascii").split()
        return int(fields[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def proportional_bytes(process: str = "self", proc: Path = Path("/proc")) -> int:
    """The memory of a process, with its part of what it shares; if that is unknown, all of it."""
    try:
        lines = (proc / process / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * _KIB
    except (OSError, ValueError, IndexError, StopIteration):
        return resident_bytes(process, proc)


def available_bytes(proc: Path = Path("/proc")) -> int | None:
    """The bytes that the host can still give before its kernel ends a process, including swap; None if unknown."""
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        figures = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
        return (figures["MemAvailable"] + figures.get("SwapFree", 0)) * _KIB
    except (OSError, ValueError, IndexError, KeyError):
        return None


def room_bytes() -> int | None:
    """The bytes that this process may still take before the kernel ends one, because of the host or a control group."""
    rooms = (available_bytes(), left_bytes())
    return min((room for room in rooms if room is not None), default=None)

"""What a process has in memory, and what the host and its control groups leave it. Reading costs microseconds.

A TaskManager is forked from PySpark's daemon, and shares pages with it and with its siblings. Resident memory (RSS)
counts such pages in full in each of them. The proportional measure (PSS) divides them by how many share them, so those
of all processes add up to what the host really gives. RSS is never less than PSS and costs 20 µs; so it is looked at
first, and PSS, which costs a millisecond for some gigabytes, only where RSS is near a limit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from wallaby.worker.memory.cgroup import left_bytes

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KIB: Final = 1 << 10


def resident_bytes(process: str = "self", proc: Path = Path("/proc")) -> int:
    """What a process has in memory, all of what it shares included; 0 where that cannot be known."""
    try:
        fields = (proc / process / "statm").read_text(encoding="ascii").split()
        return int(fields[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def proportional_bytes(process: str = "self", proc: Path = Path("/proc")) -> int:
    """What a process has in memory, with its part of what it shares; where that is not told, all of it."""
    try:
        lines = (proc / process / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * _KIB
    except (OSError, ValueError, IndexError, StopIteration):
        return resident_bytes(process, proc)


def available_bytes(proc: Path = Path("/proc")) -> int | None:
    """What the host can still give before its kernel ends a process, swap included; None if it does not say."""
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        figures = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
        return (figures["MemAvailable"] + figures.get("SwapFree", 0)) * _KIB
    except (OSError, ValueError, IndexError, KeyError):
        return None


def room_bytes() -> int | None:
    """What this process may still take before the kernel, for itself or for a control group, ends one."""
    rooms = (available_bytes(), left_bytes())
    return min((room for room in rooms if room is not None), default=None)

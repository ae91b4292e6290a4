"""What memory this host has left for TaskManagers: what is available, within the limits of control groups."""

from __future__ import annotations

from pathlib import Path

import psutil

from wallaby.worker.memory.cgroup import CGROUPS, OWN, groups

#: Even a host that seems to have nothing left gives so much: less would refuse to start at all.
LEFT_BYTES_MIN = 1 << 29


def left_bytes(reserved: int, cgroups: Path = CGROUPS, own: Path = OWN) -> int:
    """What is left beside what JVMs may still take. Pages of files that nobody uses give way."""
    available = int(psutil.virtual_memory().available)
    limited = [
        group.limit_bytes - group.used_bytes + group.inactive_file_bytes for group in groups(cgroups, own)
    ]
    return max(min(available, *limited, available) - reserved, LEFT_BYTES_MIN)

"""The memory that this host has left for TaskManagers, within the limits of control groups."""

from __future__ import annotations

from pathlib import Path

import psutil

from wallaby.worker.memory.cgroup import CGROUPS, OWN, groups

#: The minimum result, even if the host seems to have nothing left: with less, nothing would start.
LEFT_BYTES_MIN = 1 << 29


def left_bytes(reserved: int, cgroups: Path = CGROUPS, own: Path = OWN) -> int:
    """The memory that is left besides what JVMs may still take. Unused pages of files count as free."""
    available = int(psutil.virtual_memory().available)
    limited = [
        group.limit_bytes - group.used_bytes + group.inactive_file_bytes for group in groups(cgroups, own)
    ]
    return max(min(available, *limited, available) - reserved, LEFT_BYTES_MIN)

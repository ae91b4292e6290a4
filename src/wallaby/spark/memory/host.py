"""The memory that JVMs leave on a host, within its control groups."""

from __future__ import annotations

from pathlib import Path

import psutil

from wallaby.worker.memory.cgroup import CGROUPS, OWN, groups

#: The least that counts as left for TaskManagers, even if the host has less, because nothing would start then.
LEFT_BYTES_MIN = 1 << 29


def left_bytes(reserved: int, cgroups: Path = CGROUPS, own: Path = OWN) -> int:
    """The memory of this host, within its control groups, that JVMs leave. Unused pages of files count as free."""
    available = int(psutil.virtual_memory().available)
    limited = [
        group.limit_bytes - group.used_bytes + group.inactive_file_bytes for group in groups(cgroups, own)
    ]
    return max(min(available, *limited, available) - reserved, LEFT_BYTES_MIN)

"""What memory this host has left for TaskManagers: what is available, within the limit of the control group."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
#: Even a host that seems to have nothing left gives so much: less would refuse to start at all.
LEFT_BYTES_MIN = 1 << 29


def left_bytes(reserved: int, cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int:
    """What is left beside what JVMs may still take."""
    available = int(psutil.virtual_memory().available)
    limited = _cgroup_left(cgroups, own)
    return max(min(available, limited if limited is not None else available) - reserved, LEFT_BYTES_MIN)


def _cgroup_left(cgroups: Path, own: Path) -> int | None:
    """What this process's control group, or one around it, may still take; None if nothing limits it (version 2)."""
    with suppress(OSError, ValueError):
        path = next(
            line.partition("::")[2] for line in own.read_text().splitlines() if line.startswith("0::")
        )
        group = cgroups / path.strip().lstrip("/")
        groups = [group, *group.parents[: len(group.relative_to(cgroups).parts)]]
        left = [found for each in groups if (found := _left_in(each)) is not None]
        return min(left) if left else None
    return None


def _left_in(group: Path) -> int | None:
    try:
        limit = (group / "memory.max").read_text().strip()
        if limit == "max":
            return None
        taken = int((group / "memory.current").read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(limit) - taken + int(statistics.get("inactive_file", 0))  # a cache that gives way

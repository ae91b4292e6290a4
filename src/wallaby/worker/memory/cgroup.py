"""The control groups (versions 1 and 2) that limit the memory of this process.

Kubernetes, YARN with cgroups and systemd all set limits this way. A group's limit holds for all its processes
together, so an executor's JVM and its TaskManagers share one limit; and a group inside another obeys both limits. A
group that does not exist or cannot be read imposes no limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
#: Version 1 expresses "no limit" by a number beyond any memory.
_LIMIT_BYTES_MAX: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A control group with a limit."""

    limit_bytes: int
    used_bytes: int
    #: Pages of files that have not been used for a while: the kernel reclaims them first.
    inactive_file_bytes: int
    #: All pages of files, and memory that the kernel itself can give up: it reclaims them before it ends a process.
    reclaimable_bytes: int

    @property
    def left_bytes(self) -> int:
        """The bytes that its processes may still take before the kernel ends one of them."""
        return self.limit_bytes - self.used_bytes + self.reclaimable_bytes


def groups(cgroups: Path = CGROUPS, own: Path = OWN) -> tuple[ControlGroup, ...]:
    """The groups with a limit that this process is in, the innermost first."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:  # version 2
            found += [group for at in _upwards(cgroups, path) if (group := _version_2(at)) is not None]
        elif "memory" in controllers.split(","):
            # In a container the path may be the host's, which does not exist here.
            root = cgroups / controllers if (cgroups / controllers).is_dir() else cgroups / "memory"
            found += [group for at in _upwards(root, path) if (group := _version_1(at)) is not None]
    return tuple(found)


def left_bytes(cgroups: Path = CGROUPS, own: Path = OWN) -> int | None:
    """The bytes that the tightest group leaves; None if nothing limits this process."""
    return min((group.left_bytes for group in groups(cgroups, own)), default=None)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """The directory of a group and of those around it."""
    inner = root / path.strip().lstrip("/")
    yield inner
    yield from inner.parents[: len(inner.relative_to(root).parts)]


def _version_2(group: Path) -> ControlGroup | None:
    try:
        text = (group / "memory.max").read_text(encoding="ascii").strip()
        if text == "max":
            return None
        limit = int(text)
        used = int((group / "memory.current").read_text(encoding="ascii"))
        of = _statistics(group)
    except (OSError, ValueError):
        return None
    inactive = of.get("inactive_file", 0)
    reclaimable = inactive + of.get("active_file", 0) + of.get("slab_reclaimable", 0)
    return ControlGroup(limit, used, inactive, reclaimable)


def _version_1(group: Path) -> ControlGroup | None:
    try:
        limit = int((group / "memory.limit_in_bytes").read_text(encoding="ascii"))
        if limit >= _LIMIT_BYTES_MAX:
            return None
        used = int((group / "memory.usage_in_bytes").read_text(encoding="ascii"))
        of = _statistics(group)
    except (OSError, ValueError):
        return None
    inactive = of.get("total_inactive_file", 0)
    return ControlGroup(limit, used, inactive, inactive + of.get("total_active_file", 0))


def _statistics(group: Path) -> dict[str, int]:
    lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    return {name: int(value) for name, _, value in (line.partition(" ") for line in lines)}

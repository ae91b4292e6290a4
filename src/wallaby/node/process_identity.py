"""Process identities that stay unique across hosts, reboots and reused pids."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def host_name() -> str:
    """This host's name, in characters that a file's name may have."""
    return re.sub(r"[^\w.]", "_", socket.gethostname(), flags=re.ASCII) or "unknown"


def started(pid: int) -> int:
    """When a process was started, in ticks since the system was; 0 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def this_process() -> str:
    """A name for this process, anywhere; it is empty where the system gives none."""
    surroundings = _surroundings()
    return f"{surroundings} {os.getpid()} {started(os.getpid())}" if surroundings else ""


def has_ended(process: str) -> bool:
    """Has the process of this name surely ended? Of one that could not be seen from here, nobody knows."""
    surroundings, _, numbers = process.partition(" ")
    pid, _, start = numbers.partition(" ")
    if not surroundings or surroundings != _surroundings() or not (pid.isdecimal() and start.isdecimal()):
        return False
    return started(int(pid)) != int(start)


def _surroundings() -> str:
    """The host, its present run, the namespace that process ids are of, for a container has its own, and the user.

    Processes of other users may be hidden.
    """
    try:
        boot, namespace = _BOOT.read_text(encoding="ascii").strip(), _NAMESPACE.readlink()
    except OSError:
        return ""
    return f"{host_name()}/{boot}/{namespace}/{os.getuid()}"

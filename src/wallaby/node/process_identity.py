"""Process identities that stay unique across hosts, reboots and reused pids."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def host_name() -> str:
    """This host's name, in characters that are valid in file names."""
    return re.sub(r"[^\w.]", "_", socket.gethostname(), flags=re.ASCII) or "unknown"


def started(pid: int) -> int:
    """The start time of a process, in ticks since the system started; 0 if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def this_process() -> str:
    """A globally unique name of this process; empty if the system does not provide one."""
    surroundings = _surroundings()
    return f"{surroundings} {os.getpid()} {started(os.getpid())}" if surroundings else ""


def has_ended(process: str) -> bool:
    """Has the process of this name certainly ended? False for one that could not be seen from here."""
    surroundings, _, numbers = process.partition(" ")
    pid, _, start = numbers.partition(" ")
    if not surroundings or surroundings != _surroundings() or not (pid.isdecimal() and start.isdecimal()):
        return False
    return started(int(pid)) != int(start)


def _surroundings() -> str:
    """The host, its boot id, the namespace of process ids (containers have their own), and the user.

    Processes of other users may be hidden.
    """
    try:
        boot, namespace = _BOOT.read_text(encoding="ascii").strip(), _NAMESPACE.readlink()
    except OSError:
        return ""
    return f"{host_name()}/{boot}/{namespace}/{os.getuid()}"

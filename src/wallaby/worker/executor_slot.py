"""TaskManager slots of an executor: limit how many TaskManagers of one engine run in one executor.

Spark cannot be told "one per executor": it puts a task wherever a core is free. So each TaskManager takes one of the
slots for TaskManagers that its executor has before it starts anything; if none is free, it ends and is submitted again.
A slot is a name that the kernel gives to one process at a time: that of an abstract socket, without a file, to which
nobody connects. It is free as soon as its process has ended, in whatever way.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def taking_slot(engine: str, slots: int) -> Iterator[bool]:
    """Hold a slot in this executor; False if all are taken. If `slots` is 0, there is no limit."""
    slot = _take(engine, slots) if slots else None
    try:
        yield slot is not None or not slots
    finally:
        if slot is not None:
            slot.close()


def _take(engine: str, slots: int) -> socket.socket | None:
    executor = executor_of(os.getppid())
    for number in range(slots):
        slot = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            slot.bind(f"\0wallaby-{engine}-{executor}-{number}")
        except OSError:
            slot.close()
        else:
            return slot
    return None


def executor_of(parent: int) -> str:
    """A name of the executor, unique in the kernel's namespace: the parent of PySpark's daemon.

    Process ids are unique only within their namespace, and each container has its own.
    """
    namespace = Path("/proc/self/ns/pid").readlink().name
    return f"{namespace}-{_process_of_executor(parent)}"


def _process_of_executor(parent: int) -> int:
    stat = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")
    name, _, fields = stat.partition("(")[2].rpartition(")")
    # With spark.python.use.daemon=false there is no daemon: the parent is the executor itself.
    return parent if name == "java" else int(fields.split()[1])


def spark_id_of_executor() -> str:
    """Spark's id of this process's executor, which every cluster manager passes on the executor's command line.

    Empty if there is none, as under `local[n]`, or if it is not visible.
    """
    try:
        command = Path(f"/proc/{_process_of_executor(os.getppid())}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return ""
    _, found, rest = command.partition(b"\0--executor-id\0")
    return rest.partition(b"\0")[0].decode("ascii", "replace") if found else ""

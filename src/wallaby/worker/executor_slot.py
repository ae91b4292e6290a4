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
from typing import Final

#: The executor is among this many processes above its TaskManager.
ANCESTORS_MAX: Final = 5


@contextmanager
def taking_slot(engine: str, slots: int) -> Iterator[bool]:
    """Hold a slot in this executor; False if all are taken. 0 `slots` means no limit."""
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
    name, above = _name_and_parent(parent)
    # With spark.python.use.daemon=false there is no daemon: the parent is the executor itself.
    return parent if name == "java" else above


def _name_and_parent(process: int) -> tuple[str, int]:
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    name, _, fields = stat.partition("(")[2].rpartition(")")
    return name, int(fields.split()[1])


def spark_id_of_executor() -> str:
    """Spark's id of this process's executor, which every cluster manager passes on the executor's command line.

    Between a TaskManager and its executor are its keeper and PySpark's daemon. Empty if there is no such executor, as
    under `local[n]`, or if it is not visible.
    """
    process = os.getppid()
    try:
        for _ in range(ANCESTORS_MAX):
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            _, found, rest = command.partition(b"\0--executor-id\0")
            if found:
                return rest.partition(b"\0")[0].decode("ascii", "replace")
            _, process = _name_and_parent(process)
    except (OSError, ValueError, IndexError):
        pass
    return ""

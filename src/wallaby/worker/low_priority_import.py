"""Import modules at low priority, so as not to slow down other TaskManagers.

A TaskManager that replaces a lost one starts while the others repair the loss, and helps only with later work. If it
shares CPUs with them, its imports, which take a second of CPU time, should not delay the repair. So they run in a
thread of lower priority, which ends after them. Priorities belong to threads on Linux; elsewhere this is an ordinary
import.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Final

#: A tenth of the weight of a thread that works.
NICENESS: Final = 10


def import_gently(module: str) -> None:
    """Import a module at low priority; raises what the import raises."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            if sys.platform == "linux":
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
            importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="wallaby-import")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]

"""Importing a module without being in the way of those who work.

A TaskManager that takes a lost one's place starts while the others repair the loss, and helps only with what comes
after. Where it shares its processors with them, its imports, a second of computing, go behind: in a thread of lower
priority, which ends with them. Priorities belong to threads on Linux; elsewhere it is an import like any other.
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
    """Import a module, or raise what its import raises."""
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

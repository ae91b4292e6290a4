"""Find what an engine has left behind after its rows became unreachable; it should be nothing."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wallaby.engine import Engine
from wallaby.worker.scratch import LEAF_PREFIX, PREFIX

#: How long the JVM, the head and the TaskManagers may take to release rows.
_WAIT_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.2


def leftovers(engine: Engine, local: Path) -> list[str]:
    """What is still there after some time: kept rows, queries in the control store, files in scratch."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        found = list(_present(engine, local))
        if not found or time.monotonic() > deadline:
            return found
        if engine.subplans.kept:
            gc.collect()
            engine.subplans.collect()
        time.sleep(_PAUSE_SECONDS)


def _present(engine: Engine, local: Path) -> Iterator[str]:
    inspection = engine.inspection
    yield from (f"rows of {query} stay" for query in engine.subplans.kept)
    yield from (f"{query} is in the control store" for query in inspection.queries_in_store())
    yield from (f"the head knows {query}" for query in inspection.queries_at_head())
    for prefix in (PREFIX, LEAF_PREFIX):
        for scratch in local.rglob(f"{prefix}*"):
            yield from (f"file {path.name} in scratch" for path in scratch.rglob("*") if path.is_file())

"""Start a TaskManager in a process below Spark's task. Libraries are loaded there, and no sooner.

Some of them read the environment when they are loaded, and a process that has loaded them cannot be forked safely.
"""

from __future__ import annotations

import os
import socket
from typing import Final

from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.succession_here import serve_in_turn

KNOCK_SECONDS: Final = 2.0


def start(bootstrap: Bootstrap, at: int, *, again: bool) -> None:
    """Run the TaskManager of a place until it ends; `again` if it replaces a lost one."""
    serve_in_turn(
        lambda anew: _serve(bootstrap, at, gently=anew),
        lambda: _is_open(bootstrap),
        again=again,
        only_killed=not bootstrap.is_local,
    )


def _is_open(bootstrap: Bootstrap) -> bool:
    """Does the engine answer? It closes connections to its lifelines that send nothing."""
    host, _, port = bootstrap.lifeline_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except OSError:
        return False
    return True


def _serve(bootstrap: Bootstrap, at: int, *, gently: bool) -> bool:
    """Run a TaskManager in this process; `gently` if others may be repairing the loss of the one before.

    True if it was dismissed, and another may be needed.
    """
    if bootstrap.threads:
        os.environ["POLARS_MAX_THREADS"] = str(bootstrap.threads)  # read when Polars is imported
    from wallaby.worker.memory.allocator_settings import set_allocators  # noqa: PLC0415 - before what it is about

    set_allocators(bootstrap.memory_bytes)
    from wallaby.worker.memory.lean import leave_pandas_out  # noqa: PLC0415 - before anything makes Arrow look for it

    leave_pandas_out()
    if gently:
        from wallaby.worker.low_priority_import import import_gently  # noqa: PLC0415 - needed after a loss only

        import_gently("wallaby.worker.main")
    from wallaby.worker.main import serve  # noqa: PLC0415 - after the environment is set: it takes a while

    return serve(bootstrap, at)

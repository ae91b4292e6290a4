"""Start a TaskManager in a process below Spark's task, with the libraries that its keeper has loaded.

The keeper loads them once, before it starts the first TaskManager. So the successor of a killed one begins to work
within some hundredths of a second: loading takes a second of CPU time, and many seconds on a busy host. Some libraries
have threads from then on (allocators, and a cleaner of Polars), which survive a fork. The keeper must start no others
and must not use the libraries, because a child would lack the threads of their pools and connections.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
from typing import Final

from wallaby.worker.bootstrap import Bootstrap
from wallaby.worker.slot_keeper import serve_in_turn

KNOCK_SECONDS: Final = 2.0


def start(bootstrap: Bootstrap, at: int, *, again: bool) -> None:
    """Run the TaskManager of a place until it ends; `again` if Spark restarts it after a loss."""
    load(bootstrap, gently=again)
    from wallaby.worker.main import serve  # noqa: PLC0415 - `load` has to be first

    serve_in_turn(
        lambda: serve(bootstrap, at), lambda: _is_open(bootstrap), only_killed=not bootstrap.is_local
    )


def load(bootstrap: Bootstrap, *, gently: bool) -> None:
    """Load what TaskManagers need into this process; `gently` if others may be repairing a loss."""
    if bootstrap.threads:
        os.environ["POLARS_MAX_THREADS"] = str(bootstrap.threads)  # read when Polars is imported
    from wallaby.worker.memory.allocator_settings import set_allocators  # noqa: PLC0415 - before what it is about

    set_allocators(bootstrap.memory_bytes)
    from wallaby.worker.memory.lean import leave_pandas_out  # noqa: PLC0415 - before anything makes Arrow look for it

    # Loading makes many objects and nearly no garbage; looking for garbage would take a fifth of the time.
    gc.disable()
    leave_pandas_out()
    if gently:
        from wallaby.worker.low_priority_import import import_gently  # noqa: PLC0415 - needed after a loss only

        import_gently("wallaby.worker.main")
    else:
        importlib.import_module("wallaby.worker.main")
    # A collection in a child would write to the objects that are here, and so copy their pages.
    gc.freeze()
    gc.enable()


def _is_open(bootstrap: Bootstrap) -> bool:
    """Does the engine answer? It closes connections to its lifelines that send nothing."""
    host, _, port = bootstrap.lifeline_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except OSError:
        return False
    return True

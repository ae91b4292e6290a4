"""Wait for workers that can get work: if all of them were lost, for the next ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from wallaby.errors import NoWorkersError, QueryCancelledError
from wallaby.gcs.interface import WorkerLease
from wallaby.head.submission import Submission
from wallaby.lineage.names import WorkerId

#: How often to look.
WAIT_FOR_WORKER_SECONDS: Final = 0.02


def await_members(
    submission: Submission,
    workers: Callable[[], tuple[WorkerLease, ...]],
    require_open: Callable[[], None],
    limit_seconds: float,
) -> list[WorkerId]:
    """The workers that can get work.

    A query that is cancelled or out of time stops waiting. It waits on its client's thread or on one of its own:
    threads that the coordinator needs must stay free.

    Raises:
        NoWorkersError: none has come.
        WallabyError: the query may not wait, or `require_open` says that the engine has ended.
    """
    deadline = time.monotonic() + limit_seconds
    while True:
        submission.require_time()
        members = [lease.worker for lease in workers() if lease.remaining_ms > 0 and not lease.draining]
        if members:
            return members
        require_open()
        if time.monotonic() > deadline:
            raise NoWorkersError(
                "There is no TaskManager to run the query.",
                fix="Check the executors' logs, or raise spark.wallaby.noWorkersTimeout.",
            )
        time.sleep(WAIT_FOR_WORKER_SECONDS)


def closed_while(doing: str) -> QueryCancelledError:
    """The error of a query whose engine was closed."""
    return QueryCancelledError(f"The engine was closed while the query {doing}.", fix="Attach again.")

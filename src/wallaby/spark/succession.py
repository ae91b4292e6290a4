"""Successive deployments: an engine whose store was lost continues with a new head and new TaskManagers.

Nothing of the old deployment is used again. Its workers may hold outputs that were committed to a store which has
forgotten them, and they may be connected to another store than the head. So all of them end before the first new one
starts. An embedded store is started anew; an external one is connected to again, and has to pass all checks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from wallaby.errors import AttachError, GcsError
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.submission import Submission
from wallaby.spark.deployment import Deployment

_log = logging.getLogger(__name__)
#: How long a query that is to be restarted waits between two attempts to find a usable store.
_PAUSE_SECONDS = 0.5


class Succession:
    """The deployments of one engine, one at a time. Threads may share it."""

    def __init__(
        self,
        make: Callable[[tuple[str, ...]], Deployment],
        taken: Callable[[Deployment], None],
        patience_seconds: float = 0.0,
    ) -> None:
        """Make the first deployment.

        `make` gets the names of earlier deployments; `taken` is called with each deployment once it is the present one.
        A store may be away, or be a replica, for a while after it was lost: a query that is to be restarted waits that
        long.
        """
        self._make = make
        self._taken = taken
        self._patience_seconds = patience_seconds
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._names: tuple[str, ...] = ()
        self.deployment = make(())
        taken(self.deployment)

    def head(self) -> Head:
        """The head; if its store was lost, a new one on the store that is available now.

        Raises:
            GcsError: there is no usable store; the message says why.
            AttachError: the engine is closed, or the TaskManagers do not come.
        """
        with self._lock:
            self._require_open()
            lost = self.deployment.head.lost_store
            if lost is not None:
                _log.warning("the engine restarts because its control store was lost: %s", lost.what)
                self._replace()
            return self.deployment.head

    def _replace(self) -> None:
        self.deployment.close()
        self._names = (*self._names, self.deployment.engine)
        successor = self._make(self._names)
        self.deployment = successor
        try:
            self._taken(successor)
            successor.start()
            successor.await_workers()
        finally:
            if self._closed:  # while this went on
                successor.close()
        self._require_open()

    def run_elsewhere(self, submission: Submission, collected: Collected) -> None:
        """Run a query again that was lost with its store. Does not wait; its client learns the outcome in any case."""

        def again() -> None:
            try:
                self._next_head(submission).take_over(submission, collected)
            except BaseException as error:  # noqa: BLE001 - nobody else would tell the client
                collected.end(error)
                collected.removed.set()

        threading.Thread(target=again, name="wallaby-again", daemon=True).start()

    def _next_head(self, submission: Submission) -> Head:
        """The head; waits for a store that is not usable yet, as long as the query may."""
        until = time.monotonic() + self._patience_seconds
        while True:
            submission.require_time()
            try:
                return self.head()
            except GcsError as error:
                if time.monotonic() >= until:
                    raise
                _log.info("waiting for a usable control store: %s", error)
                self._ending.wait(_PAUSE_SECONDS)

    def close(self) -> None:
        """End the present deployment, for good."""
        self._closed = True
        self._ending.set()
        self.deployment.close()

    def _require_open(self) -> None:
        if self._closed:
            raise AttachError("This engine is closed.", fix="Attach again.")

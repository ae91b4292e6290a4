"""Executors that Spark has been told will go: their TaskManagers are drained before they do.

A cluster manager may announce the end of an executor (a spot instance, a node that is emptied): Spark calls it
decommissioned, gives it no more tasks, and lets it go once its tasks have ended. A TaskManager is such a task, so its
executor waits for it. There is no listener event, so the scheduler is asked, every now and then, for each executor
that hosts a TaskManager. Drained, the TaskManager leaves without a loss: nobody has to notice, and what it has made and
others still need is delivered before it goes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from py4j.protocol import Py4JError

from wallaby.errors import GcsError
from wallaby.gcs.interface import WorkerLease
from wallaby.lineage.names import WorkerId
from wallaby.node.worker_address import WorkerAddress

_log = logging.getLogger(__name__)
POLL_SECONDS: Final = 0.25
#: How long one attempt to drain waits; it is repeated until the TaskManager has gone.
DRAIN_SECONDS: Final = 30.0


class KnowsDecommissions(Protocol):
    """Whoever can be asked; see `cluster`."""

    def is_decommissioned(self, executor: str) -> bool:
        """Will this executor go soon?"""


class Decommissions:
    """Watches the executors of one engine's TaskManagers, on a thread of its own."""

    def __init__(
        self,
        cluster: KnowsDecommissions,
        workers: Callable[[], tuple[WorkerLease, ...]],
        drain: Callable[[WorkerId, float], bool],
    ) -> None:
        self._cluster = cluster
        self._workers = workers
        self._drain = drain
        self._leaving: set[WorkerId] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="wallaby-decommissions", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, wait_seconds: float = 5.0) -> None:
        """Watch no more."""
        self._closing.set()
        self._thread.join(wait_seconds)

    def _watch(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            try:
                self.look()
            except (
                Py4JError,
                OSError,
                AttributeError,
            ) as error:  # Spark is gone, and the engine ends with it
                _log.info("Stopped polling for decommissioned executors: %s", error)
                return

    def look(self) -> None:
        """Begin to drain every TaskManager whose executor is to go."""
        try:
            workers = self._workers()
        except GcsError:
            return  # the coordinator deals with a store that does not answer
        self._leaving &= {lease.worker for lease in workers}
        for lease in workers:
            executor = WorkerAddress.decode(lease.address).executor
            if executor and lease.worker not in self._leaving and self._cluster.is_decommissioned(executor):
                _log.warning("Spark decommissions executor %s: draining %s", executor, lease.worker)
                self._leaving.add(lease.worker)
                threading.Thread(
                    target=self._let_go,
                    args=(lease.worker,),
                    name=f"wallaby-drain-{lease.worker}",
                    daemon=True,
                ).start()

    def _let_go(self, worker: WorkerId) -> None:
        while not self._closing.is_set():
            try:
                if self._drain(worker, DRAIN_SECONDS):
                    return
            except GcsError:
                if self._closing.wait(POLL_SECONDS):
                    return

"""Drain the TaskManagers of executors that Spark decommissions, before the executors end.

A cluster manager may announce the end of an executor (a spot instance, a node that is being emptied). Spark then
decommissions the executor: it gives it no more tasks, and ends it once its tasks have ended. A TaskManager is such a
task, so its executor waits for it. There is no listener event, so the scheduler is polled for each executor that hosts
a TaskManager. A drained TaskManager leaves without a loss: no failure has to be detected, and outputs that others still
need are delivered before it leaves.
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
    """Knows which executors are decommissioned; see `cluster`."""

    def is_decommissioned(self, executor: str) -> bool:
        """Will this executor end soon?"""


class Decommissions:
    """Watches the executors of one engine's TaskManagers, on its own thread."""

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
        """Start watching."""
        self._thread.start()

    def stop(self, wait_seconds: float = 5.0) -> None:
        """Stop watching."""
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
        """Begin to drain every TaskManager whose executor will end."""
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

"""The addresses of workers by id, read from the store once and cached.

An id is never reused for another address, so a cached address stays valid.
"""

from __future__ import annotations

import threading

from wallaby.errors import GcsUnavailableError
from wallaby.gcs.interface import Gcs
from wallaby.lineage.names import HEAD, WorkerId
from wallaby.node.worker_address import WorkerAddress


class Directory:
    """Addresses by worker id. Any thread may use it."""

    def __init__(self, gcs: Gcs, head_address: str = "") -> None:
        self._gcs = gcs
        self._lock = threading.Lock()
        self._addresses: dict[WorkerId, str] = {HEAD: head_address} if head_address else {}

    def address_of(self, worker: WorkerId) -> str | None:
        """A worker's address, or None if the store does not know it."""
        with self._lock:
            found = self._addresses.get(worker)
        if found is not None:
            return found
        try:
            leases = self._gcs.workers()
        except GcsUnavailableError:
            return None
        with self._lock:
            self._addresses.update(
                {lease.worker: WorkerAddress.decode(lease.address).endpoint for lease in leases}
            )
            return self._addresses.get(worker)

    def known(self) -> tuple[WorkerId, ...]:
        """The workers whose addresses are cached."""
        with self._lock:
            return tuple(self._addresses)

"""A TaskManager as users see it: `engine.workers()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wallaby.gcs.interface import WorkerLease
from wallaby.node.worker_address import WorkerAddress


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A TaskManager as users see it.

    `state` is `live`, `draining` (it hands its work to others and leaves), or `silent` (it may be lost).
    """

    id: str
    host: str
    pid: int
    address: str
    state: Literal["live", "draining", "silent"]

    @property
    def is_live(self) -> bool:
        """Does it take part in queries?"""
        return self.state == "live"


def worker_info(lease: WorkerLease) -> WorkerInfo:
    """Describe a TaskManager for users."""
    place = WorkerAddress.decode(lease.address)
    state: Literal["live", "draining", "silent"] = "live" if lease.remaining_ms > 0 else "silent"
    return WorkerInfo(
        lease.worker, place.host, place.pid, place.endpoint, "draining" if lease.draining else state
    )

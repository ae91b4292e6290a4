"""A TaskManager as users see it: `engine.workers()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wallaby.gcs.interface import WorkerLease
from wallaby.node.worker_address import WorkerAddress

#: Whether a TaskManager takes part in queries, hands its work to others, or may be lost.
WorkerInfoState = Literal["live", "draining", "silent"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """One TaskManager, as `Engine.workers` lists it."""

    #: Its id, which a successor does not inherit.
    id: str
    #: The host on which it runs.
    host: str
    #: The id of its process on that host.
    pid: int
    #: The address of its data server.
    address: str
    #: `live`, `draining` (it hands its work to others and leaves), or `silent` (it may be lost).
    state: WorkerInfoState

    @property
    def is_live(self) -> bool:
        """Does it take part in queries?"""
        return self.state == "live"


def worker_info(lease: WorkerLease) -> WorkerInfo:
    """Describe a TaskManager for users."""
    place = WorkerAddress.decode(lease.address)
    state: WorkerInfoState = "live" if lease.remaining_ms > 0 else "silent"
    return WorkerInfo(
        lease.worker, place.host, place.pid, place.endpoint, "draining" if lease.draining else state
    )

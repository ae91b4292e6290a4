"""The contents of the control store in memory: the server's side of `memory`, which says why it ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wallaby.gcs.complaints import Complaints
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, Edge, QueryId, WorkerId
from wallaby.lineage.snapshot import ChannelState, ReRead


@dataclass(slots=True)
class StoredWorker:
    """The server's data about one worker."""

    address: str
    expires_at_ms: int
    draining: bool = False
    complaints: Complaints = field(default_factory=Complaints)


@dataclass(slots=True)
class StoredQuery:
    """The server's data about one query."""

    graph: StageGraph
    channels: dict[ChannelName, ChannelState]
    records: dict[ChannelName, list[bytes]]
    delivered: dict[Edge, int]
    members: dict[WorkerId, bool]
    next_split: dict[int, int]
    payload: bytes = b""
    epoch: int = 1
    gate_open: bool = True
    version: int = 1
    commits: int = 0
    error: str = ""
    departed: dict[WorkerId, bool] = field(default_factory=dict)
    strained: set[WorkerId] = field(default_factory=set)
    lost_strained: set[WorkerId] = field(default_factory=set)
    rereads: list[ReRead] = field(default_factory=list)
    claims: dict[tuple[WorkerId, int], ReRead] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryStore:
    """The server: the data that a Redis would hold. `gcs.incarnation` explains how its incarnations are told apart."""

    now_ms: Callable[[], int]
    run_id: str = "1"
    replication_id: str = "1"
    workers: dict[WorkerId, StoredWorker] = field(default_factory=dict)
    expelled: set[WorkerId] = field(default_factory=set)
    queries: dict[QueryId, StoredQuery] = field(default_factory=dict)
    barred: set[QueryId] = field(default_factory=set)

    @property
    def incarnation(self) -> tuple[str, str]:
        """The present incarnation."""
        return self.run_id, self.replication_id

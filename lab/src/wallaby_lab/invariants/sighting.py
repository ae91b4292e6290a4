"""What the invariants inspect: the store's state of a query, and that of each running worker."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wallaby.lineage.attempt import ChannelRun
from wallaby.lineage.names import ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.snapshot import ChannelState, ReRead


class StoreState(Protocol):
    """The store's state of a query; the in-memory store's own class has this form."""

    @property
    def epoch(self) -> int:
        """The query's epoch."""
        ...

    @property
    def gate_open(self) -> bool:
        """May workers write?"""
        ...

    @property
    def members(self) -> Mapping[WorkerId, bool]:
        """Its workers, and whether they are draining."""
        ...

    @property
    def channels(self) -> Mapping[ChannelName, ChannelState]:
        """Its channels."""
        ...

    @property
    def records(self) -> Mapping[ChannelName, Sequence[bytes]]:
        """The records of each channel, encoded."""
        ...

    @property
    def delivered(self) -> Mapping[Edge, int]:
        """Per edge, how many outputs need no more sending."""
        ...

    @property
    def rereads(self) -> Sequence[ReRead]:
        """Re-reads that are not claimed."""
        ...

    @property
    def claims(self) -> Mapping[tuple[WorkerId, int], ReRead]:
        """Re-reads that a worker's slot holds."""
        ...

    @property
    def next_split(self) -> Mapping[int, int]:
        """Per reader stage, the number of splits that were given out."""
        ...


@dataclass(slots=True)
class WorkerState:
    """One running worker's state of a query. A crashed or paused worker is not inspected."""

    epoch: int
    runs: Mapping[ChannelName, ChannelRun]
    outbox: Outbox
    backups: Container[TaskName]
    #: Optional side inputs that were too large, by channel, epoch of its run, and link: nothing of them is needed.
    given_up: Container[tuple[ChannelName, int, int]] = ()

"""The input and output of `reconcile`: a snapshot of a query in the GCS, and a plan for it.

Both hold channels, edges and ranges, never an entry per output: their size grows with the stage graph and
not with the work done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wallaby.lineage.names import ChannelName, Edge, WorkerId


@dataclass(frozen=True, slots=True)
class ChannelState:
    """What the GCS holds of one channel."""

    host: WorkerId
    #: The first output that the present host makes itself: not 0 for moved readers, and for channels that continue from
    #: a saved state.
    base: int = 0
    #: The number of committed records.
    length: int = 0
    #: Its last record is committed.
    final: bool = False
    #: Nobody will draw from it again, so it commits no more (early end).
    closed: bool = False
    #: The split that its next task reads, for a reader that has claimed one.
    split: int | None = None
    #: Workers lost, unannounced, while its outstanding task ran.
    losses: int = 0
    #: The epoch of its present channel run: in which it came to its host, or was rewound in place.
    since_epoch: int = 1

    @property
    def ended(self) -> bool:
        """Will the channel never commit again?"""
        return self.final or self.closed


@dataclass(frozen=True, slots=True)
class ReRead:
    """Outputs `[first, end)` of a reader's channel, to be read again for these edges."""

    channel: ChannelName
    first: int
    end: int
    edges: tuple[Edge, ...]

    def __str__(self) -> str:
        return f"{self.channel}.t{self.first}..{self.end - 1} for " + " ".join(map(str, self.edges))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A query's state in the GCS at one moment."""

    #: Counts the writes to the query; a plan is applied only to the version that it was made from.
    version: int
    epoch: int
    gate_open: bool
    #: Workers that may host channels, in the order in which they joined.
    members: tuple[WorkerId, ...]
    #: Workers that still serve their backups but get no more work.
    draining: tuple[WorkerId, ...]
    #: Workers that are gone, and whether that had been announced.
    departed: Mapping[WorkerId, bool]
    channels: Mapping[ChannelName, ChannelState]
    #: Per edge, how many outputs the producer's present host need not send any more.
    delivered: Mapping[Edge, int]
    #: Re-reads not yet completed, whether claimed or not.
    rereads: tuple[ReRead, ...]
    #: Members that are short of memory because of this query, and workers that were lost, unannounced, while they were.
    strained: tuple[WorkerId, ...] = ()
    lost_strained: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What a resume changes, as one transaction. Empty fields change nothing."""

    hosts: Mapping[ChannelName, WorkerId] = field(default_factory=dict)
    bases: Mapping[ChannelName, int] = field(default_factory=dict)
    delivered: Mapping[Edge, int] = field(default_factory=dict)
    losses: Mapping[ChannelName, int] = field(default_factory=dict)
    closed: tuple[ChannelName, ...] = ()
    #: Replaces the whole queue of re-reads; all claims are void.
    rereads: tuple[ReRead, ...] = ()
    #: Channels that start again from their initial or a saved state: for reports and checks, implied by `hosts`.
    rewound: tuple[ChannelName, ...] = ()

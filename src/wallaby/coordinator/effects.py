"""The effects of the coordinator. An answer of None means that no answer came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wallaby.gcs.interface import QueryStatus, WorkerLease
from wallaby.lineage.effects import Effect, FailPoint
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import ChannelName, QueryId, WorkerId
from wallaby.lineage.snapshot import RecoveryPlan, Snapshot
from wallaby.lineage.verdict import Verdict
from wallaby.node.standing import Standing


@dataclass(frozen=True, slots=True)
class Watch(Effect[tuple[WorkerLease, ...] | None]):
    """Read the leases of all workers."""

    point = FailPoint.WATCH


@dataclass(frozen=True, slots=True)
class Ping(Effect[bool | None]):
    """Ask a worker directly, not over the store: the answer is whether it answered in time."""

    worker: WorkerId
    point = FailPoint.PING


@dataclass(frozen=True, slots=True)
class Inquire(Effect[Mapping[WorkerId, Standing] | None]):
    """Ask processes directly, not over the store, about a query: the answer has the `Standing` of each."""

    query: QueryId
    workers: tuple[WorkerId, ...]
    point = FailPoint.PING
    #: Many silent workers are waited for, several at a time.
    answered_within_seconds = 600.0


@dataclass(frozen=True, slots=True)
class Expel(Effect[bool | None]):
    """Remove a worker for good: the answer is True."""

    worker: WorkerId
    #: It is expelled only because a wire to it or from it is cut: it renews its lease and would answer.
    unreachable: bool = False
    point = FailPoint.EXPEL


@dataclass(frozen=True, slots=True)
class ReadStatus(Effect[QueryStatus | None]):
    """Read the status of a query: the answer is a `QueryStatus`."""

    query: QueryId
    point = FailPoint.STATUS


@dataclass(frozen=True, slots=True)
class AddMember(Effect[Verdict | None]):
    """Make a worker a member: the answer is a verdict."""

    query: QueryId
    worker: WorkerId
    point = FailPoint.JOIN


@dataclass(frozen=True, slots=True)
class Freeze(Effect[Verdict | None]):
    """Close the gate and remove members: the answer is a verdict."""

    query: QueryId
    lost: tuple[WorkerId, ...]
    draining: tuple[WorkerId, ...]
    point = FailPoint.FREEZE


@dataclass(frozen=True, slots=True)
class SnapshotReply:
    """A query's state, None if it has ended, and the committed records of its channels, if requested."""

    snapshot: Snapshot | None
    records: Mapping[ChannelName, tuple[bytes, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TakeSnapshot(Effect[SnapshotReply | None]):
    """Read a query's state at one moment; with its records, if requested."""

    query: QueryId
    with_records: bool = False
    point = FailPoint.SNAPSHOT


@dataclass(frozen=True, slots=True)
class Resume(Effect[Verdict | None]):
    """Apply a plan and open the gate: the answer is a verdict."""

    query: QueryId
    plan: RecoveryPlan
    version: int
    point = FailPoint.RESUME


@dataclass(frozen=True, slots=True)
class Remove(Effect[bool | None]):
    """Delete a query's keys: the answer is True. With `barred`, a submit that is still under way will be refused."""

    query: QueryId
    barred: bool = False
    point = FailPoint.REMOVE


@dataclass(frozen=True, slots=True)
class Submit(Effect[Verdict | None]):
    """Create a query in the store: the answer is a verdict."""

    query: QueryId
    graph: StageGraph
    hosts: Mapping[ChannelName, WorkerId]
    payload: bytes
    point = FailPoint.SUBMIT


@dataclass(frozen=True, slots=True)
class AskToDrain(Effect[bool | None]):
    """Note in the store that a worker is about to leave: the answer is True."""

    worker: WorkerId
    point = FailPoint.DRAIN


@dataclass(frozen=True, slots=True)
class ReadNeed(Effect[bool | None]):
    """Is a worker a member of some query in the store? The answer is True or False."""

    worker: WorkerId
    point = FailPoint.DRAIN

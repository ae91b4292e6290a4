"""The effects of the coordinator. An answer of None means that none came."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.lineage.effects import FailPoint
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.lineage.snapshot import Plan


@dataclass(frozen=True, slots=True)
class Watch:
    """The leases of all workers."""

    point = FailPoint.WATCH


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask a worker, not over the store: the answer is whether it answered in time."""

    worker: WorkerId
    point = FailPoint.PING


@dataclass(frozen=True, slots=True)
class Expel:
    """Remove a worker for good: the answer is True."""

    worker: WorkerId
    point = FailPoint.EXPEL


@dataclass(frozen=True, slots=True)
class ReadStatus:
    """The answer is a `QueryStatus`."""

    query: QueryId
    point = FailPoint.STATUS


@dataclass(frozen=True, slots=True)
class Join:
    """Make a worker a member: the answer is a verdict."""

    query: QueryId
    worker: WorkerId
    point = FailPoint.JOIN


@dataclass(frozen=True, slots=True)
class Freeze:
    """Close the gate and remove members: the answer is a verdict."""

    query: QueryId
    lost: tuple[WorkerId, ...]
    draining: tuple[WorkerId, ...]
    point = FailPoint.FREEZE


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """The answer is `(snapshot or None, records of each channel)`, the latter only if they are asked for."""

    query: QueryId
    with_records: bool = False
    point = FailPoint.SNAPSHOT


@dataclass(frozen=True, slots=True)
class Resume:
    """Apply a plan and open the gate: the answer is a verdict."""

    query: QueryId
    plan: Plan
    version: int
    point = FailPoint.RESUME


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a query's keys: the answer is True."""

    query: QueryId
    point = FailPoint.REMOVE

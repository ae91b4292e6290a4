"""The effects of a TaskManager besides those of the algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.gcs.interface import QueryView
from wallaby.lineage.effects import Effect, Effects, FailPoint
from wallaby.lineage.names import QueryId, WorkerId
from wallaby.node.actors import ActorName


@dataclass(frozen=True, slots=True)
class Register(Effect[bool | None]):
    """Announce this worker: the answer is False if its id is not available."""

    point = FailPoint.REGISTER


@dataclass(frozen=True, slots=True)
class Renew(Effect[bool | None]):
    """Renew the lease: the answer is False if this worker has been expelled."""

    point = FailPoint.RENEW


@dataclass(frozen=True, slots=True)
class Discover(Effect[tuple[QueryId, ...] | None]):
    """List the queries that the store holds."""

    point = FailPoint.DISCOVER


@dataclass(frozen=True, slots=True)
class OpenSession(Effect[bool]):
    """Begin to work on a query: the answer is whether that was possible now."""

    query: QueryId
    point = FailPoint.DISCOVER
    #: Its payload is read, and libraries are imported.
    answered_within_seconds = 600.0


@dataclass(frozen=True, slots=True)
class Look(Effect[QueryView | None]):
    """Look at the query: the answer is a `QueryView`."""

    point = FailPoint.LOOK


@dataclass(frozen=True, slots=True)
class Spawn(Effect[None]):
    """Drive another generator of this session. One of the same name is stopped first."""

    name: ActorName
    effects: Effects[None]
    point = FailPoint.LOOK


@dataclass(frozen=True, slots=True)
class Stop(Effect[None]):
    """Stop a generator of this session at any point."""

    name: ActorName
    point = FailPoint.LOOK


@dataclass(frozen=True, slots=True)
class Complain(Effect[bool | None]):
    """Report in the store that another worker cannot be reached, or withdraw that complaint.

    The answer is None if none came. A complaint that is not renewed expires.
    """

    accused: WorkerId
    reachable: bool
    point = FailPoint.COMPLAIN

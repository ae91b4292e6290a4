"""A running query as the driver holds it: its phase, its user's requests, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from wallaby.errors import WallabyError
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.names import QueryId
from wallaby.lineage.tolerance import LINEAGE, Tolerance


class QueryPhase(IntEnum):
    """The phase of a query. It never goes back."""

    #: Its submission has not been answered yet: it is not known whether the store holds it.
    ENTERING = 0
    RUNNING = 1
    #: Its end is decided, so that a lost reply or a restart cannot change it; its keys may still be in the store.
    ENDING = 2
    ENDED = 3


@dataclass(slots=True)
class Query:
    """One query; it outlives a restarted coordinator, not the driver."""

    id: QueryId
    graph: StageGraph
    phase: QueryPhase = QueryPhase.RUNNING
    #: Its user, or another part of the engine, wants it to end.
    cancelled: bool = False
    #: The error that its user gets if it was not the user who cancelled it.
    cancelled_because: WallabyError | None = None
    #: Nothing more is needed: the whole result is at the client, or was kept and has been released.
    collected: bool = False
    #: The whole result is with the workers, where it stays until it is released.
    kept: bool = False
    error: WallabyError | None = None
    frozen_since_ms: int | None = None
    #: A submission was not answered, and may still reach the store after the query has ended.
    doubtful: bool = False
    #: Its fault-tolerance policy.
    tolerance: Tolerance = LINEAGE

    @property
    def ended(self) -> bool:
        """Has it ended, with nothing left in the store?"""
        return self.phase is QueryPhase.ENDED

    @property
    def is_over(self) -> bool:
        """Is its end decided?"""
        return self.phase >= QueryPhase.ENDING

    @property
    def is_whole(self) -> bool:
        """Is its whole result there, at the client or at the workers?"""
        return self.collected or self.kept

    def advance(self, phase: QueryPhase) -> None:
        """Advance to a phase, unless the query is already further."""
        self.phase = max(self.phase, phase)

    def end(self, error: WallabyError | None, phase: QueryPhase = QueryPhase.ENDING) -> None:
        """Decide its end, or note that it has ended."""
        self.error = error
        self.advance(phase)

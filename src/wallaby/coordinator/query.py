"""A running query as the driver holds it: its phase, its user's requests, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from wallaby.errors import QueryCancelledError, WallabyError
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


class ResultState(IntEnum):
    """How far the result of a query is; it never goes back."""

    PARTIAL = 0
    #: All of it is with the workers, where it stays until it is released.
    KEPT = 1
    #: Nothing more is needed: all of it is at the client, or was kept and has been released.
    TAKEN = 2


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The request that a query end, by its user or by another part of the engine."""

    #: The error that the user gets if it was not the user who cancelled.
    because: WallabyError | None = None


@dataclass(slots=True)
class Query:
    """One query; it outlives a restarted coordinator, not the driver."""

    id: QueryId
    graph: StageGraph
    phase: QueryPhase = QueryPhase.RUNNING
    cancellation: Cancellation | None = None
    result: ResultState = ResultState.PARTIAL
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
    def cancelled(self) -> bool:
        """Has somebody asked for its end?"""
        return self.cancellation is not None

    @property
    def cancelled_error(self) -> WallabyError:
        """The error that a cancelled query ends with."""
        because = None if self.cancellation is None else self.cancellation.because
        return because or QueryCancelledError(f"Query {self.id} was cancelled.", query=self.id)

    @property
    def is_whole(self) -> bool:
        """Is its result complete, at the client or at the workers?"""
        return self.result is not ResultState.PARTIAL

    @property
    def is_taken(self) -> bool:
        """Has the client all it needs?"""
        return self.result is ResultState.TAKEN

    def becomes_whole(self) -> None:
        """Note that the whole result is there: at the client, or at the workers that keep it."""
        self.result = ResultState.KEPT if self.graph.keeps else ResultState.TAKEN

    def cancel(self, because: WallabyError | None = None) -> None:
        """Request cancellation. A complete result is not cancelled."""
        earlier = None if self.cancellation is None else self.cancellation.because
        self.cancellation = None if self.is_whole else Cancellation(earlier or because)

    def release(self) -> None:
        """Let go of a result that is kept, or end the query that is still making it."""
        self.cancellation = None if self.is_whole else self.cancellation or Cancellation()
        self.result = ResultState.TAKEN if self.is_whole else ResultState.PARTIAL

    def advance(self, phase: QueryPhase) -> None:
        """Advance to a phase, unless the query is already further."""
        self.phase = max(self.phase, phase)

    def end(self, error: WallabyError | None, phase: QueryPhase = QueryPhase.ENDING) -> None:
        """Decide its end, or note that it has ended."""
        self.error = error
        self.advance(phase)

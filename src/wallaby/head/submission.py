"""A client's request to run a query: the query's name, and the placement of its channels."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace

from wallaby.coordinator.coordinator import too_large
from wallaby.coordinator.query import Query
from wallaby.errors import (
    GcsLostError,
    QueryTimeoutError,
    WallabyError,
    WorkerLostError,
)
from wallaby.head.time_limit import NO_LIMIT, TimeLimit
from wallaby.lineage.barriers import Start
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.payload import QueryPayload
from wallaby.observe.about import About
from wallaby.plan.physical import PhysicalPlan


@dataclass(slots=True)
class Submission:
    """A client's request, and the query that is running for it."""

    plan: PhysicalPlan
    payload: QueryPayload
    query: Query
    limit: TimeLimit = NO_LIMIT
    #: Is it restarted if it ends with the loss of a worker?
    begins_again: bool = False
    #: How often it may still be restarted because the store was lost.
    store_losses_left: int = 0
    #: The query as its user knows it.
    about: About = field(default_factory=About)
    #: How often it has lost a worker that was short of memory because of it.
    strained_losses: int = 0
    began_seconds: float = field(default_factory=time.monotonic)
    #: Its last complete snapshot, if its policy takes them, and how often it had been restarted by then.
    covered: Start | None = None
    restarts_before: int = 0
    #: Its earlier runs: what they left in the durable store is needed to the end.
    earlier: tuple[QueryId, ...] = ()
    #: Does its next run go on after the rows that the client has?
    goes_on: bool = False

    def covers(self, start: Start, restarts: int) -> None:
        """Note a complete snapshot. The client has the rows before it."""
        self.covered, self.restarts_before = start, restarts

    def run_next(self) -> None:
        """Give it another run, with a name of its own, from its last complete snapshot or from the beginning."""
        self.payload = replace(self.payload, start=self.covered)
        before, self.query = self.query, new_query(self.plan, self.payload)
        self.query.cancellation = self.query.cancellation or before.cancellation

    def forgettable(self, *, goes_on: bool) -> tuple[QueryId, ...]:
        """The runs that can be forgotten now that one has ended: all, or none if another run follows."""
        found = (*self.earlier, self.query.id)
        self.earlier = found if goes_on else ()
        return () if goes_on else found

    def ends_with(self, error: WallabyError | None, strained_losses_max: int) -> WallabyError | None:
        """The error with which the query ends: the given one, or one that says that it exhausts memory repeatedly.

        Once a snapshot has given the client all rows, nothing can go wrong with them.
        """
        if self.payload.tolerance.rolls_back and self.query.is_whole:
            return None
        if not (self.begins_again and isinstance(error, WorkerLostError) and error.fields.get("strained")):
            return error
        self.strained_losses += 1
        return (
            too_large(self.query.id, self.strained_losses)
            if self.strained_losses >= strained_losses_max
            else error
        )

    def runs_again_after(self, error: WallabyError | None, restarts: int, losses_max: int) -> bool:
        """Should it be restarted? Only a few times without progress, because it may itself kill its workers."""
        if isinstance(error, GcsLostError):  # the store has forgotten it, but works otherwise
            return self.is_repeated_after(error)
        if not (self.begins_again and isinstance(error, WorkerLostError)):
            return False
        self.goes_on = self.payload.tolerance.rolls_back
        return restarts - self.restarts_before + 1 < losses_max and not self.query.cancelled

    def is_repeated_after(self, why: BaseException | None) -> bool:
        """Was it lost with the store, and may it be restarted? Uses up one of its retries."""
        lost = isinstance(why, GcsLostError) and not self.query.cancelled
        if not lost or self.store_losses_left == 0:
            return False
        self.store_losses_left -= 1
        self.covered, self.goes_on = None, False  # all rows are held back, and made again
        return True

    def require_time(self) -> None:
        """Raise an error if the query was cancelled, or its time is over."""
        query = self.query
        if query.cancelled:
            raise query.cancelled_error
        if self.limit.is_over:
            raise self.took_too_long()

    def took_too_long(self) -> QueryTimeoutError:
        """The error of a query whose time is over."""
        return self.limit.error(f"Query {self.query.id}", query=self.query.id)


def new_query(plan: PhysicalPlan, payload: QueryPayload) -> Query:
    """A query with a new, unique name."""
    return Query(QueryId(f"q-{uuid.uuid4().hex[:12]}"), plan.graph, tolerance=payload.tolerance)


def place(plan: PhysicalPlan, members: list[WorkerId]) -> dict[ChannelName, WorkerId]:
    """Distribute the channels of each stage over the workers in turn; the collector goes to the head."""
    hosts = {name: members[name.channel % len(members)] for name in plan.graph.channels}
    return {**hosts, plan.graph.collector: HEAD}

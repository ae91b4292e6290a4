"""A client's request to run a query: the query's name, and the placement of its channels."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field

from wallaby.coordinator.coordinator import too_large
from wallaby.coordinator.query import Query
from wallaby.errors import (
    GcsLostError,
    QueryTimeoutError,
    WallabyError,
    WorkerLostError,
)
from wallaby.lineage.names import HEAD, ChannelName, QueryId, WorkerId
from wallaby.node.payload import QueryPayload
from wallaby.observe.about import About
from wallaby.plan.physical import PhysicalPlan


@dataclass(slots=True)
class Submission:
    """A client's request, and the query that is running for it."""

    plan: PhysicalPlan
    payload: QueryPayload
    timeout_seconds: float
    query: Query
    #: Is it run again if it ends with the loss of a worker?
    begins_again: bool = False
    #: How often it may still be run again because the store was lost.
    store_losses_left: int = 0
    #: What a user would call it.
    about: About = field(default_factory=About)
    #: How often it has lost a worker that was short of memory because of it.
    strained_losses: int = 0
    began_seconds: float = field(default_factory=time.monotonic)

    def ends_with(self, error: WallabyError | None, strained_losses_max: int) -> WallabyError | None:
        """The error with which it ends, if it must: a query must not exhaust its workers' memory again and again."""
        if not (self.begins_again and isinstance(error, WorkerLostError) and error.fields.get("strained")):
            return error
        self.strained_losses += 1
        return (
            too_large(self.query.id, self.strained_losses)
            if self.strained_losses >= strained_losses_max
            else error
        )

    def is_repeated_after(self, why: BaseException | None) -> bool:
        """Was it lost with the store, and may it be run again? Uses up one of its retries."""
        lost = isinstance(why, GcsLostError) and not self.query.cancelled
        if not lost or self.store_losses_left == 0:
            return False
        self.store_losses_left -= 1
        return True

    @property
    def left_seconds(self) -> float:
        """The time that it has left, if its time is limited."""
        return max(self.began_seconds + self.timeout_seconds - time.monotonic(), 0.0)

    def require_time(self) -> None:
        """Raise an error if its client does not want it any more, or its time is over."""
        query = self.query
        if query.cancelled:
            raise query.cancelled_error
        if self.timeout_seconds and not self.left_seconds:
            raise self.took_too_long()

    def took_too_long(self) -> QueryTimeoutError:
        """The error of a query whose time is over."""
        return QueryTimeoutError(
            f"Query {self.query.id} took longer than {self.timeout_seconds:g} s and was ended.",
            fix="Raise spark.wallaby.timeout, or set it to 0 for no limit.",
            query=self.query.id,
            timeout_seconds=self.timeout_seconds,
        )


def new_query(plan: PhysicalPlan, payload: QueryPayload) -> Query:
    """A query with a new, unique name."""
    return Query(QueryId(f"q-{uuid.uuid4().hex[:12]}"), plan.graph, tolerance=payload.tolerance)


def place(plan: PhysicalPlan, members: list[WorkerId]) -> dict[ChannelName, WorkerId]:
    """Distribute the channels of each stage over the workers in turn; the collector goes to the head."""
    hosts = {name: members[name.channel % len(members)] for name in plan.graph.channels}
    return {**hosts, plan.graph.collector: HEAD}

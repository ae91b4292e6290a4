"""A client's request to run a query."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from wallaby.coordinator.coordinator import too_large
from wallaby.coordinator.query import Query
from wallaby.errors import WallabyError, WorkerLostError
from wallaby.node.payload import QueryPayload
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

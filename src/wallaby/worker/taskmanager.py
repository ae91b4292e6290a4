"""The TaskManager: one worker from its registration to its end.

A worker renews its lease and opens a session for every query that the store holds. These are two generators, because a
session may take a while to open and a lease cannot wait. A worker never decides that another one is dead, and it ends
as soon as the store says that it has been expelled: until then the store refuses everything it does (invariant 6).
"""

from __future__ import annotations

from wallaby.lineage.effects import Effects, Pause, ask
from wallaby.lineage.names import QueryId
from wallaby.node.effects import Discover, OpenSession, Register, Renew

#: After this many registrations or renewals in a row without an answer, the store and the driver count as gone.
UNANSWERED_MAX = 40
#: How soon a worker looks for queries after it has registered.
REGISTERED_POLL_MS = 20


class TaskManager:
    """One incarnation of a TaskManager; a restarted one is a new worker with a new id."""

    def __init__(self, renew_every_ms: int) -> None:
        self.worker_query: set[QueryId] = set()
        self._renew_every_ms = renew_every_ms
        self._registered = False

    def run(self) -> Effects[None]:
        """Register, then renew the lease until expelled, or until the store is silent for too long."""
        unanswered = 0
        while unanswered < UNANSWERED_MAX:
            renewing = self._registered
            answer = yield from ask(Renew() if renewing else Register())
            if answer is False:
                return
            self._registered = renewing or answer is not None
            unanswered = unanswered + 1 if answer is None else 0
            if renewing or answer is None:
                yield Pause(self._renew_every_ms)

    def discover(self) -> Effects[None]:
        """After registration, open a session for every query, until the worker ends."""
        while not self._registered:
            yield Pause(REGISTERED_POLL_MS)
        while True:
            found = yield from ask(Discover())
            for query in found or ():
                if query not in self.worker_query and (yield from ask(OpenSession(query))):
                    self.worker_query.add(query)
            yield Pause(self._renew_every_ms)

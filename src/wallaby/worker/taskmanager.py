"""The TaskManager: one worker's life, from its registration to its end.

A worker renews its lease and opens a session for every query that the store holds. It never decides that
another is dead, and it ends as soon as the store says that it has been expelled: whatever it still does until
then is refused by the store (invariant 6).
"""

from __future__ import annotations

from wallaby.lineage.attempt import Effects
from wallaby.lineage.effects import Pause
from wallaby.lineage.names import QueryId
from wallaby.worker.effects import Discover, OpenSession, Register, Renew


class TaskManager:
    """One incarnation; a restarted one is a new worker with a new id."""

    def __init__(self, renew_every_ms: int) -> None:
        self.serving: set[QueryId] = set()
        self._renew_every_ms = renew_every_ms

    def run(self) -> Effects:
        """Register, then renew and discover until expelled."""
        registered = None
        while registered is None:
            registered = yield Register()
        if not registered:
            return
        while True:
            if (yield Renew()) is False:
                return
            found = yield Discover()
            for query in found or ():
                if query not in self.serving:
                    self.serving.add(query)
                    yield OpenSession(query)
            yield Pause(self._renew_every_ms)

"""Which processes reach which in the simulated world, seen from outside: nobody may be expelled without a reason."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from wallaby.lineage.names import WorkerId
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.drawn.faults import DISTURBS_CALLS

if TYPE_CHECKING:
    from wallaby_lab.simulation.world.world import World

#: The reason for an expulsion must have held when the coordinator last looked, or shortly before.
REASON_US = 600_000


class Reach:
    """Remembers for a while which workers were out of reach."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The workers that could not be reached, or reached nobody, when the coordinator looked; the latest last.
        self._out_of_reach: deque[tuple[int, set[WorkerId]]] = deque(maxlen=64)
        #: The readers of a result that a worker did not answer.
        self._blamed: dict[WorkerId, set[object]] = {}
        #: From when until when the head was paused, if it was for longer than a lease.
        self._head_paused_us = 0, 0

    def head_paused(self, until_us: int) -> None:
        """The head is paused until then: meanwhile no worker can reach it."""
        now_us = self._world.agenda.now_us
        if until_us - now_us > self._world.scenario.coordinator.lease_ms * 1000:
            self._head_paused_us = now_us, until_us

    def blame(self, worker: WorkerId, reader: object, *, reachable: bool) -> None:
        """A reader says that a worker does not answer it, or does again."""
        readers = self._blamed.setdefault(worker, set())
        (readers.discard if reachable else readers.add)(reader)

    def _was_paused_while_it_watched(self) -> bool:
        """Was the head paused shortly before its last look? What it decided before a pause, it may do after it."""
        world = self._world
        from_us, until_us = self._head_paused_us
        looked_us = self._out_of_reach[-1][0] if self._out_of_reach else 0
        watched_us = world.agenda.now_us - until_us
        return looked_us > from_us and watched_us < world.scenario.coordinator.unreachable_ms * 1000

    def note(self) -> None:
        """Note, when the coordinator looks, which workers others cannot reach for a lasting reason."""
        found = {worker for worker, readers in self._blamed.items() if readers}
        for process in self._world.live_workers():
            for worker_query in process.worker_queries.values():
                for other in self._world.processes:
                    if worker_query.session.reaching.is_out_of_reach(other):
                        found |= {process.id, other}
        self._out_of_reach.append((self._world.agenda.now_us, found))

    def require_out_of_reach(self, worker: WorkerId) -> None:
        """Nobody is expelled for a wire that nobody needs, or that works (invariant 8).

        If calls to the store may be late or lost, a complaint may be withdrawn too late.
        """
        world = self._world
        settings, live = world.scenario.coordinator, {process.id for process in world.live_workers()}
        world.complaining.require_most_wires(worker, live, settings.lease_ms, settings.unreachable_ms)
        if self._was_paused_while_it_watched() and world.complaining.accuses_itself_alone(
            worker, settings.unreachable_ms
        ):
            raise InvariantViolation(8, f"{worker} is given up, because the head was paused")
        if {kind for _, kind in world.tally.fired} & DISTURBS_CALLS or world.scenario.slow_worker:
            return
        since_us = world.agenda.now_us - REASON_US
        if not any(worker in found for at_us, found in self._out_of_reach if at_us >= since_us):
            raise InvariantViolation(8, f"{worker} is given up, although everybody reaches whom it must")

"""Perform the effects of the coordinator and of the head's requests, and judge them where they reach the store.

Simulated processes answer how a query stands as nodes do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaby.coordinator import effects as coordinating
from wallaby.coordinator.effects import Inquire, SnapshotReply
from wallaby.gcs.interface import Verdict
from wallaby.gcs.memory import MemoryGcs
from wallaby.head.actions import ACTIONS
from wallaby.lineage.effects import Effect
from wallaby.lineage.names import WorkerId
from wallaby.lineage.recoverable import recoverable
from wallaby.node.standing import Standing, standing_of, standings
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.judges.applied import require_frozen, require_need, require_resumed
from wallaby_lab.simulation.judges.patience import (
    check_patience,
    is_recovering,
    joined,
    require_lost,
    require_staying,
)
from wallaby_lab.simulation.world.lost import is_under_way
from wallaby_lab.simulation.world.process import SimulatedActor
from wallaby_lab.simulation.world.world import World


class Coordinating:
    """Performs these effects; `call` is how anybody calls the store."""

    def __init__(self, world: World, call: Callable[..., None]) -> None:
        self._world = world
        self._call = call

    def watch(self, actor: SimulatedActor, effect: coordinating.Watch) -> None:
        """Read the leases, and check what the store tells of complaints."""

        def watch(gcs: MemoryGcs) -> Any:
            self._world.reach.note()
            leases = gcs.workers()
            self._world.complaining.check(leases, self._world.agenda.now_ms())
            return leases

        self._call(actor, effect, watch)

    def expel(self, actor: SimulatedActor, effect: coordinating.Expel) -> None:
        """Remove a worker; for a cut wire there must be a reason."""
        if effect.unreachable:
            self._world.reach.require_out_of_reach(effect.worker)

        def expel(gcs: MemoryGcs) -> bool:
            gcs.expel(effect.worker)
            self._world.complaining.expelled(effect.worker)
            self._world.tally.expelled += 1
            return True

        self._call(actor, effect, expel)

    def status(self, actor: SimulatedActor, effect: coordinating.ReadStatus) -> None:
        """Read the status of a query."""
        self._call(actor, effect, lambda gcs: gcs.status(effect.query))

    def join(self, actor: SimulatedActor, effect: coordinating.AddMember) -> None:
        """Make a worker a member, unless it is about to leave."""
        require_staying(self._world, effect)
        self._call(actor, effect, lambda gcs: joined(self._world, gcs, effect))

    def freeze(self, actor: SimulatedActor, effect: coordinating.Freeze) -> None:
        """Close the gate; the freeze is judged."""

        def freeze(gcs: MemoryGcs) -> Any:
            require_lost(self._world, effect.query, effect.lost)
            nested = is_recovering(self._world, effect.query)
            before = gcs.snapshot(effect.query)
            verdict = gcs.freeze(effect.query, effect.lost, effect.draining)
            if verdict is Verdict.DONE:
                require_frozen(before, gcs.snapshot(effect.query), effect)
                self._world.tally.nested_recoveries += nested
            return verdict

        self._call(actor, effect, freeze)

    def snapshot(self, actor: SimulatedActor, effect: coordinating.TakeSnapshot) -> None:
        """Read the state of a query at one moment."""

        def snapshot(gcs: MemoryGcs) -> SnapshotReply:
            found = gcs.snapshot(effect.query)
            check_patience(self._world, effect.query, without_worker=found is not None and not found.members)
            return SnapshotReply(found, gcs.history(effect.query) if effect.with_records else {})

        self._call(actor, effect, snapshot)

    def resume(self, actor: SimulatedActor, effect: coordinating.Resume) -> None:
        """Apply a plan; both the plan and what it does are judged."""

        def resume(gcs: MemoryGcs) -> Any:
            before = gcs.snapshot(effect.query)
            verdict = gcs.resume(effect.query, effect.plan, effect.version)
            if verdict is Verdict.DONE and before is not None:
                if before.version != effect.version:
                    raise InvariantViolation(9, f"a plan for version {effect.version} meets {before.version}")
                require_resumed(before, effect.plan, gcs.snapshot(effect.query))
                running = self._world.running[effect.query]
                running.require_not_too_large(before, self._world.scenario.coordinator.strained_losses_max)
                left = recoverable(running.query.tolerance, gcs.history(effect.query))
                running.audit.planned(before, effect.plan, left)
                self._world.tally.recoveries += 1
                self._world.tally.rewound += len(effect.plan.rewound)
                self._world.tally.rewound_in_place += sum(
                    effect.plan.hosts[name] == before.channels[name].host for name in effect.plan.rewound
                )
            return verdict

        self._call(actor, effect, resume)

    def remove(self, actor: SimulatedActor, effect: coordinating.Remove) -> None:
        """Delete the keys of a query."""

        def remove(gcs: MemoryGcs) -> bool:
            gcs.remove(effect.query, barred=effect.barred)
            return True

        self._call(actor, effect, remove)

    def act(self, actor: SimulatedActor, effect: Effect[Any]) -> None:
        """Perform an action of the head as production does."""

        def act(gcs: MemoryGcs) -> Any:
            answer = ACTIONS[type(effect)](gcs, effect)
            if isinstance(effect, coordinating.ReadNeed):
                require_need(gcs.server, effect.worker, is_needed=answer)
            return answer

        self._call(actor, effect, act)


def standings_in(
    world: World, effect: Inquire, is_cut: Callable[[WorkerId], bool]
) -> dict[WorkerId, Standing]:
    """The standings, as nodes give them; a process that is gone, paused or cut off gives none."""

    def ask(worker: WorkerId) -> Standing | None:
        process = world.processes[worker]
        is_paused = process.paused_until_us > world.agenda.now_us
        if not process.alive or is_paused or is_cut(worker) or process.disarm("drop"):
            return None
        worker_query = process.worker_queries.get(effect.query)
        if worker_query is None:
            return Standing((), "", ("the query is not open here",))
        actors = [actor for actor in worker_query.actors.values() if actor.alive]
        excuses = [actor.effect for actor in actors if is_under_way(actor, world.agenda.now_us)]
        waiting = [(str(actor.name), actor.effect) for actor in actors]
        return standing_of(worker_query.session, waiting, excuses=excuses)

    told: list[dict[WorkerId, Standing]] = []
    standings(effect.workers, ask, told.append, lambda job: job())
    return told[0]

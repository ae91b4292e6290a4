"""How simulated processes save: outputs in their backups and in the durable store, and saved states."""

from __future__ import annotations

import copy
from collections.abc import Callable

from wallaby.lineage import effects as protocol
from wallaby_lab.invariants import InvariantViolation
from wallaby_lab.simulation.world.process import SimulatedActor, SimulatedQuery, worker_query_of
from wallaby_lab.simulation.world.world import World

#: The size of a backed-up output besides its rows.
OUTPUT_BYTES = 16


class Saving:
    """Performs the effects that back up outputs, and save or restore states."""

    def __init__(self, world: World, answer_later: Callable[..., None]) -> None:
        self._world = world
        self._answer_later = answer_later

    def back_up(self, actor: SimulatedActor, effect: protocol.BackUp) -> None:
        """Keep an output. That may take a while, and happens even if the actor no longer waits."""
        worker_query = worker_query_of(actor)
        running = self._world.running[worker_query.query.id]
        if worker_query.query.tolerance.durable:
            running.spooled[effect.task, effect.output.checksum, effect.final] = effect.output
            running.spooled_tasks.add(effect.task)
        delay_us = self._world.soon_us(50, 800, actor.process) + actor.keeps_late_us
        actor.keeps_late_us = 0
        self._world.agenda.after(delay_us, self._keep, actor, worker_query, effect)

    def _keep(self, actor: SimulatedActor, worker_query: SimulatedQuery, effect: protocol.BackUp) -> None:
        process = actor.process
        if process.worker_queries.get(worker_query.query.id) is not worker_query:
            return
        size_bytes = OUTPUT_BYTES + sum(size for size, _ in effect.output.slices.values())
        kept = worker_query.backups.get(effect.task)
        stays = kept is not None and not protocol.replaces(effect.since_epoch, kept[2])
        fits = stays or size_bytes <= process.room_bytes
        if fits and not stays:
            process.room_bytes -= size_bytes
            worker_query.bytes_kept += size_bytes
            worker_query.backups[effect.task] = (effect.output, effect.final, effect.since_epoch)
            if effect.point is not protocol.FailPoint.BACK_UP:
                self._world.running[worker_query.query.id].audit.made(effect.task, effect.output.checksum)
        if fits:
            worker_query.require_latest(effect.task, effect.since_epoch)
        self._world.answer(actor, effect, fits)

    def save_state(self, actor: SimulatedActor, effect: protocol.SaveState) -> None:
        """Save a copy of a state, which will be changed in place, if a checkpoint is due. A name has one content."""
        scenario = self._world.scenario
        shares = scenario.saved_shares
        share = shares[(scenario.random_seed + effect.task.stage) % len(shares)]
        saved = self._world.random.random() < share
        if saved:
            states = self._world.running[worker_query_of(actor).query.id].saved
            before = states.get((effect.task, effect.key))
            if before is not None and before.state != effect.state:
                raise InvariantViolation(2, f"two states after {effect.task} are saved as {effect.key}")
            states[effect.task, effect.key] = protocol.RestoredState(
                copy.deepcopy(effect.state), dict(effect.totals)
            )
        self._answer_later(actor, effect, saved, 50, 2_000)

    def restore_state(self, actor: SimulatedActor, effect: protocol.RestoreState) -> None:
        """Return a copy of the saved state."""
        saved = self._world.running[worker_query_of(actor).query.id].saved[effect.task, effect.key]
        self._world.tally.restored += 1
        self._answer_later(
            actor, effect, protocol.RestoredState(copy.deepcopy(saved.state), saved.totals), 50, 2_000
        )

"""The answers of simulated processes about their standing with a query."""

from __future__ import annotations

from collections.abc import Callable

from wallaby.coordinator.effects import Inquire
from wallaby.lineage.names import WorkerId
from wallaby.node.standing import Standing, standing_of, standings
from wallaby_lab.simulation.world.world import World


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
        actors = [(str(actor.name), actor.effect) for actor in worker_query.actors.values() if actor.alive]
        return standing_of(worker_query.session, actors)

    told: list[dict[WorkerId, Standing]] = []
    standings(effect.workers, ask, told.append, lambda job: job())
    return told[0]

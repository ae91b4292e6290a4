"""Apply directed schedules, and find the workers at which they are aimed; see `schedules`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wallaby.lineage.effects import Acknowledge, CommitTask, FailPoint, Push
from wallaby.lineage.names import WorkerId
from wallaby_lab.simulation.drawn.schedules import Aim
from wallaby_lab.simulation.world.process import Process, SimulatedActor
from wallaby_lab.simulation.world.wires import Trouble

#: How many microseconds of each millisecond of a hold the wires are cut.
CUT_PER_MS = 650

if TYPE_CHECKING:
    from wallaby_lab.simulation.world.world import World


def strike_holds(world: World, actor: SimulatedActor, point: FailPoint, after: bool) -> None:
    """Hold an actor at a fail point, if a hold is waiting for it."""
    for hold in [h for h in world.pending_holds if h.point is point and h.after is after]:
        if hold.nth > world.visits[point, after]:
            continue
        others = _addressed(world, actor) or [p for p in world.live_workers() if p is not actor.process]
        if hold.aimed is not None:
            others = aimed_at(world, actor, hold.aimed)
            if not others:
                continue
        world.pending_holds.remove(hold)
        world.tally.held += 1
        world.tell(f"*** {actor.process.id} {actor.name} is {hold}")
        if hold.keeps_late:
            actor.keeps_late_us = hold.hold_ms * 1000
        else:
            actor.held_until_us = world.agenda.now_us + hold.hold_ms * 1000
        if hold.submits:
            world.start_worker()
            last = len(world.scenario.workloads) - 1
            world.agenda.after(hold.hold_ms * 300, world.submit_late, last)
        if hold.cuts:
            trouble = Trouble(world.agenda.now_us + hold.hold_ms * CUT_PER_MS)
            for process in (p for p in world.live_workers() if p is not actor.process):
                world.wires.spoil(process.id, actor.process.id, trouble, one_way=True)
        if hold.crash and others:
            world.crash(world.random.choice(others), "crashed")


def _addressed(world: World, actor: SimulatedActor) -> list[Process]:
    """The other workers to which an actor sends something, or whose deliveries it acknowledges."""
    effect, worker_query = actor.effect, actor.worker_query
    hosts: set[WorkerId] = set()
    if isinstance(effect, Push):
        hosts = {effect.target}
    elif isinstance(effect, Acknowledge | CommitTask) and worker_query is not None:
        state, graph = world.store.queries.get(worker_query.query.id), worker_query.query.graph
        consumers = [state.channels[graph.consumer(edge)] for edge, _ in effect.delivered] if state else []
        hosts = {channel.host for channel in consumers if not channel.ended}
    return [p for p in world.live_workers() if p.id in hosts and p is not actor.process]


def aimed_at(world: World, actor: SimulatedActor, aim: Aim) -> list[Process]:
    """The workers of which one is to be lost; none if the actor does not have the wanted kind."""
    run = actor.run
    if aim is Aim.CONSUMER or run is None:
        return _consumers_of(world, actor)
    has_states = actor.worker_query is not None and any(
        task.of == run.channel for task, _ in world.running[actor.worker_query.query.id].saved
    )
    return [actor.process] if has_states and not run.base and run.seq > 2 else []


def _consumers_of(world: World, actor: SimulatedActor) -> list[Process]:
    """The workers whose loss rewinds the channel of an actor in place.

    The channel continues from a saved state, so its host lacks the earlier outputs, which a consumer elsewhere needs if
    it has to start again.
    """
    run, worker_query = actor.run, actor.worker_query
    if run is None or worker_query is None or not run.base or run.retracing:
        return []
    graph, state = worker_query.query.graph, world.store.queries.get(worker_query.query.id)
    if state is None or graph.is_reader(run.channel.stage):
        return []
    hosts = {
        state.channels[consumer].host
        for consumer in map(graph.consumer, graph.edges_from(run.channel))
        if not state.channels[consumer].ended
    }
    return [p for p in world.live_workers() if p.id in hosts and p is not actor.process]

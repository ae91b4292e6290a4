"""Slices that reach a simulated process: what its session accepts, and which actors that wakes."""

from __future__ import annotations

from wallaby.lineage.effects import Push, PushReply, Slice
from wallaby.lineage.names import WorkerId
from wallaby.node.actors import SESSION, ActorKind, ActorName
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.judges.beside import too_much_beside
from wallaby_lab.simulation.judges.scrutiny import Scrutiny, arrivals, known_before
from wallaby_lab.simulation.world.process import SimulatedQuery
from wallaby_lab.simulation.world.world import World


class _Watched:
    """A session whose answers are judged: see `Scrutiny.received`."""

    def __init__(self, worker_query: SimulatedQuery, scrutiny: Scrutiny) -> None:
        self._session = worker_query.session
        self._given_up = worker_query.given_up
        self._scrutiny = scrutiny

    def preview(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...], /) -> PushReply:
        return self._session.preview(epoch, target, slices)

    def receive(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...], /) -> PushReply:
        known = known_before(self._session, slices, self._given_up)
        asked = self._session.preview(epoch, target, slices)
        arrived = arrivals(self._session)
        reply = self._session.receive(epoch, target, slices)
        if reply.accepted and (epoch, target) != (self._session.context.epoch, self._session.worker):
            raise InvariantViolation(6, f"{self._session.worker} takes a push of epoch {epoch} for {target}")
        self._scrutiny.received(self._session, slices, asked, known, reply, arrived, self._given_up)
        return reply


def taken_in(
    world: World, worker_query: SimulatedQuery | None, push: Push, pieces: tuple[Slice, ...]
) -> PushReply:
    """The reply to a push of which these slices have arrived; a refusal if the query is not served."""
    if worker_query is None:
        return PushReply(accepted=False)
    session = worker_query.session
    before = {name: run.inbox.arrived for name, run in session.runs.items()}
    local = push.sender == push.target
    running = world.running[worker_query.query.id]
    watched = _Watched(worker_query, running.scrutiny)
    reply = world.scenario.flow.receive(watched, push.epoch, push.target, pieces, local=local)
    limit_bytes, refused = world.scenario.session.sides_bytes, worker_query.refused_sides
    error = too_much_beside(session, limit_bytes, worker_query.given_up, refused=refused)
    worker_query.refused_sides |= error is not None
    if error is not None and not session.over:
        running.too_much_beside = True
        process = world.processes[session.worker]
        world.spawn(process, worker_query, ActorName(ActorKind.FAILURE), session.fail(error))
    for name, run in session.runs.items():
        if run.inbox.arrived > before[name]:
            world.wake(worker_query.actors.get(ActorName(ActorKind.CHANNEL, name)), arrival=True)
    if session.context.look_wanted:
        world.wake(worker_query.actors.get(SESSION))
    world.mark_arrival(worker_query.query.id, push.target)
    return reply

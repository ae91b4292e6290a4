"""Results that stay, in the simulated world: they become whole, are read late, twice or never, and are released.

A reader is the generator of `lineage.kept`, driven beside the head's actors: it is a process of its own in reality, and
what it loses when it is killed is only its place in the result. It sees the world through the same wires as the head.
What a worker answers to a fetch is what a real one answers: outputs that it has published, in order, and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaby.coordinator.effects import Inquire
from wallaby.coordinator.query import ResultState
from wallaby.errors import KeptResultError, WallabyError
from wallaby.gcs.memory import MemoryGcs
from wallaby.head.moves import KeptMoves
from wallaby.lineage.effects import Effect, Effects, Slice
from wallaby.lineage.kept import (
    Fetch,
    KeptChannels,
    KeptPlace,
    Locate,
    ReadKept,
    ReportReach,
    kept_channels,
    read_kept,
    whole_result,
)
from wallaby.lineage.names import HEAD, QueryId, TaskName, WorkerId
from wallaby.node.actors import ActorKind, ActorName
from wallaby.node.standing import Standing
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.drawn.stay import Stay, Visit
from wallaby_lab.simulation.judges.visiting import Reader
from wallaby_lab.simulation.world.coordinating import standings_in
from wallaby_lab.simulation.world.process import SimulatedActor, worker_query_of
from wallaby_lab.simulation.world.running import Running
from wallaby_lab.simulation.world.ticket import Ticket
from wallaby_lab.simulation.world.world import World

FETCH_TIMEOUT_US = 300_000

Call = Callable[[SimulatedActor, Effect[Any], Callable[[MemoryGcs], Any]], None]


class KeptReaders:
    """Makes results whole, sends readers to them and releases them; performs what both ask for."""

    def __init__(self, world: World, call: Call, is_cut: Callable[[WorkerId, WorkerId], bool]) -> None:
        self._world = world
        self._call = call
        self._is_cut = is_cut
        self._readers: dict[str, Reader] = {}
        self._moves = KeptMoves(self._standing, lambda: world.agenda.now_ms() / 1000)
        self.methods: dict[type[Effect[Any]], Callable[[SimulatedActor, Any], None]] = {
            ReadKept: self._read_kept,
            Locate: self._locate,
            Fetch: self._fetch,
            ReportReach: self._report,
        }
        world.whole = self.whole

    def whole(self, running: Running) -> None:
        """The head says that a result is whole; it may say so again after a restart, which changes nothing."""
        world, query = self._world, running.query
        running.whole_first |= not query.cancelled
        if not query.graph.keeps:
            world.tell(f"{query.id}: the whole result is at the client")
            query.becomes_whole()
            return
        if query.result is ResultState.KEPT:
            return
        read = world.insisting.answered
        if not read or not all(read[name].final for name in self._makers(running)):
            raise InvariantViolation(7, f"{query.id} is said to be whole, and is not")
        world.tell(f"{query.id}: the whole result is with the workers")
        query.becomes_whole()
        running.was_whole = True
        stay = world.scenario.stays[int(query.id[1:]) - 1]
        for visit in stay.visits:
            world.agenda.after(visit.delay_ms * 1000, self._begin, running, visit)
        if stay.release_ms is not None or not stay.visits:
            world.agenda.after((stay.release_ms or 0) * 1000, self._release, running)

    def _makers(self, running: Running) -> list[Any]:
        graph = running.query.graph
        return [graph.producer(edge) for edge in graph.edges_into(graph.collector)]

    def _release(self, running: Running) -> None:
        self._world.tell(f"{running.query.id}: the result is released")
        running.query.release()

    # --- readers -------------------------------------------------------------------------------------

    def _begin(self, running: Running, visit: Visit) -> None:
        world, name = self._world, f"reader {len(self._readers) + 1}"
        reader = self._readers[name] = Reader(running, visit, world.agenda.now_ms())
        state = None if world.store_is_lost else world.head.gcs.snapshot(running.query.id)
        if running.query.is_over or running.query.is_taken or state is None:
            self._end(reader, KeptResultError("The result is gone."))
            return
        world.tell(f"{name} comes for {running.query.id}")
        graph = running.query.graph
        found = kept_channels(graph, state)
        known = {channel: kept.host for channel, kept in found.items()}
        effects = read_kept(whole_result(graph, found), world.agenda.now_ms, visit.patience_ms, known)
        world.spawn(world.head, None, ActorName(ActorKind.SUBMIT, name), self._to_the_end(reader, effects))

    def _to_the_end(self, reader: Reader, effects: Effects[None]) -> Effects[None]:
        try:
            yield from self._watched(reader, effects)
        except WallabyError as error:
            self._end(reader, error)
            return
        self._end(reader, None)

    def _watched(self, reader: Reader, effects: Effects[None]) -> Effects[None]:
        """The same effects; the judge sees what the head tells."""
        answer: Any = None
        while True:
            try:
                effect = effects.send(answer)
            except StopIteration:
                return
            try:
                answer = yield effect
            except WallabyError as error:
                effects.throw(error)
                raise AssertionError("a reader goes on after an error") from error
            if isinstance(effect, Locate) and answer is not None:
                reader.is_sent(effect.channel, answer.worker)
                reader.is_told(answer.moves, self._world.agenda.now_ms())

    def _end(self, reader: Reader, error: WallabyError | None) -> None:
        world, running = self._world, reader.running
        world.tell(f"a reader of {running.query.id} ends: {error or 'done'}")
        reader.over, reader.error = True, error
        gone = running.query.is_taken or running.query.is_over or world.store_is_lost
        reader.ends(world.agenda.now_ms(), gone=gone)
        stay: Stay = world.scenario.stays[int(running.query.id[1:]) - 1]
        here = [other for other in self._readers.values() if other.running is running]
        if len(here) == len(stay.visits) and all(other.over for other in here):
            self._release(running)

    # --- effects -------------------------------------------------------------------------------------

    def _read_kept(self, actor: SimulatedActor, effect: ReadKept) -> None:
        query = worker_query_of(actor).query

        def read(gcs: MemoryGcs) -> KeptChannels:
            found = gcs.snapshot(query.id)
            return {} if found is None else kept_channels(query.graph, found)

        self._call(actor, effect, read)

    def _locate(self, actor: SimulatedActor, effect: Locate) -> None:
        reader = self._reader(actor)
        query = reader.running.query
        reader.asks(self._world.agenda.now_ms())

        def locate(gcs: MemoryGcs) -> KeptPlace | WallabyError:
            found = gcs.snapshot(query.id)
            if found is None or query.is_taken:
                return KeptResultError("The result is gone.")
            host = kept_channels(query.graph, found)[effect.channel].host
            return KeptPlace(host, self._moves.of(query.id, found.members))

        self._call(actor, effect, locate)

    def _standing(self, query: QueryId, worker: WorkerId) -> Standing | None:
        def is_cut(other: WorkerId) -> bool:
            return self._is_cut(HEAD, other) or self._is_cut(other, HEAD)

        return standings_in(self._world, Inquire(query, (worker,)), is_cut).get(worker)

    def _fetch(self, actor: SimulatedActor, effect: Fetch) -> None:
        """Ask a worker for outputs; it answers with those that it has published, or not at all."""
        world = self._world
        self._reader(actor).asks(world.agenda.now_ms(), effect.worker, effect.channel)
        ticket = Ticket(world, actor, effect)
        world.agenda.after(FETCH_TIMEOUT_US, ticket.settle, None)
        world.agenda.after(world.soon_us(200, 3_000), self._serve, ticket)

    def _serve(self, ticket: Ticket[Fetch]) -> None:
        world, effect, reader = self._world, ticket.effect, self._reader(ticket.actor)
        process, query = world.processes[effect.worker], reader.running.query.id
        if not process.alive or self._is_cut(HEAD, effect.worker) or process.disarm("drop"):
            return
        if process.paused_until_us > world.agenda.now_us:
            world.agenda.after(process.paused_until_us - world.agenda.now_us, self._serve, ticket)
            return
        pieces: list[Slice] = []
        worker_query = process.worker_queries.get(query)
        if worker_query is not None:
            end = min(effect.first + reader.visit.outputs, effect.end)
            for seq in worker_query.session.fetchable(effect.channel, effect.first, end):
                task = TaskName(*effect.channel, seq)
                if task not in worker_query.backups:
                    raise InvariantViolation(5, f"{effect.worker} has published {task} and does not keep it")
                output, final, _ = worker_query.backups[task]
                size_bytes, body = output.slices[effect.edge]
                pieces.append(Slice(task, effect.edge, final, size_bytes, body))
        reader.running.audit.leaving(pieces)
        late_us = world.soon_us(200, 3_000, process)
        if process.disarm("cut") and pieces:
            pieces.pop()
        world.agenda.after(late_us, self._arrive, ticket, tuple(pieces))

    def _arrive(self, ticket: Ticket[Fetch], pieces: tuple[Slice, ...]) -> None:
        reader, effect = self._reader(ticket.actor), ticket.effect
        if ticket.is_settled or self._is_cut(effect.worker, HEAD):
            return  # whoever asked does not wait any longer
        for piece in pieces:
            reader.rows.update(piece.body or ())  # type: ignore[call-overload]
        reader.gets(effect.worker, len(pieces), self._world.agenda.now_ms())
        ticket.settle(len(pieces))

    def _report(self, actor: SimulatedActor, effect: ReportReach) -> None:
        """The head accuses a worker in its own name."""
        world, reader, worker = self._world, self._reader(actor), effect.worker
        query = reader.running.query.id
        reader.says(worker, reachable=effect.reachable)
        world.reach.blame(worker, actor, reachable=effect.reachable)

        def complain(gcs: MemoryGcs) -> bool:
            taken = gcs.complain(worker, worker, effect.reachable, query, world.scenario.complaint_ms)
            if taken and not world.store_is_lost:
                world.complaining.said(worker, worker, query, effect.reachable, world.agenda.now_ms())
            return taken

        self._call(actor, effect, complain)

    def _reader(self, actor: SimulatedActor) -> Reader:
        return self._readers[str(actor.name.of)]

"""One process of the engine, a worker or the head, which drives the generators in production.

A node is the production counterpart of the simulation's process. Its loop's thread owns every session and resumes every
generator; a `Performer` performs effects on other threads and posts the answers back. Whatever a generator may wait for
wakes it: an arriving slice, an output that may leave, news from a look. Every wait also has a time limit, so a lost
wake costs milliseconds and not the query.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Protocol

from wallaby.errors import GcsLostError, QueryError
from wallaby.lineage.effects import Answer, Effect, Effects, PushReply, Slice
from wallaby.lineage.names import ChannelName, Edge, QueryId, WorkerId
from wallaby.node.actors import SESSION, ActorKind, ActorName
from wallaby.node.driving import DrivenActor, DrivenSession, stop_actor
from wallaby.node.excuses import is_excuse, is_opening, reading
from wallaby.node.loop import Loop
from wallaby.node.outputs.cuts import with_barriers
from wallaby.node.outputs.durable_outputs import DurableOutputs
from wallaby.node.outputs.untracked import Untracked
from wallaby.node.standing import Standing, standing_of
from wallaby.observe.recorder import EventRecorder

_log = logging.getLogger(__name__)
#: How often to look for answers that were lost.
LOST_POLL_SECONDS = 5.0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Actor(DrivenActor):
    """One generator that a node drives."""

    worker_query: WorkerQuery | None = None
    #: Since when it waits for the effect's answer, by `time.monotonic`.
    since_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class WorkerQuery(DrivenSession[Actor]):
    """One query at this node: its session, its computation, and the generators that run for it."""

    query: QueryId
    #: Executes its tasks; opaque to the node.
    work: Any = None
    #: Sends its events to the head; None if it is not observed.
    recorder: EventRecorder | None = None
    #: Answers instead of the store; None for a query with fault tolerance.
    untracked: Untracked | None = None
    #: Its outputs in the durable store; None if its policy does not use one.
    durable_outputs: DurableOutputs | None = None
    #: When each present read of bodies for a push began, by `time.monotonic`.
    reads: dict[object, float] = field(default_factory=dict)
    #: Its steps that run on a kernel thread, or wait for one.
    steps: set[object] = field(default_factory=set)
    #: Does the client hold up the collector?
    waits_for_client: Callable[[], bool] = lambda: False


def worker_query_of(actor: Actor) -> WorkerQuery:
    """The query for which an actor runs; the node's own actors have none."""
    assert actor.worker_query is not None, f"{actor.name} belongs to no session"
    return actor.worker_query


class Performs(Protocol):
    """Performs effects; see `perform`."""

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        """Perform an effect; the answer is posted to the node's `answer`."""

    def close(self, worker_query: WorkerQuery) -> None:
        """A query has ended here: drop everything that was held for it."""

    def has_idle_kernel(self) -> bool:
        """Is there a thread with nothing to execute?"""

    def has_busy_kernel(self) -> bool:
        """Is there a thread that executes something?"""


class EngineNode:
    """One process of the engine; see the module. Methods run on the loop's thread, unless they say otherwise."""

    def __init__(self, worker: WorkerId, ended: Callable[[BaseException | None], None]) -> None:
        self.worker = worker
        self.worker_queries: dict[QueryId, WorkerQuery] = {}
        self.loop = Loop(f"wallaby-{worker}", self.end)
        self.performer: Performs | None = None
        #: Receives the events of workers; only on the head. Called on any thread.
        self.take_events: Callable[[bytes], None] | None = None
        #: Called when a worker reports that its store is not the one with which the engine began, and why; only on the
        #: head. Called on any thread.
        self.take_loss: Callable[[str], None] | None = None
        #: Answers the readers of kept results, given an action and a question; only on the head. Called on any thread.
        self.answer_reader: Callable[[str, bytes], bytes | None] | None = None
        self._actors: dict[ActorName, Actor] = {}
        self._ended = ended

    def start(self, performer: Performs, actors: dict[ActorName, Effects[None]]) -> None:
        """Start driving. Any thread may call this, once."""
        self.performer = performer
        self.loop.start()
        self.loop.post(self._do_without_lost)
        for name, effects in actors.items():
            self.loop.post(self.spawn, None, name, effects)

    def stop(self) -> None:
        """Stop driving at any point. Any thread may call this."""
        self.loop.stop()

    def end(self, error: BaseException) -> None:
        """End this node because it cannot continue. Any thread may call this, so that no failure is silent."""
        self._ended(error)

    # --- actors --------------------------------------------------------------------------------------

    def spawn(self, worker_query: WorkerQuery | None, name: ActorName, effects: Effects[None]) -> None:
        """Drive a generator; it replaces one of the same name."""
        actor = Actor(name, effects, worker_query)
        actors = self._actors if worker_query is None else worker_query.actors
        self.stop_actor(worker_query, name)
        actors[name] = actor
        self.loop.post(self._resume, actor, None)

    def stop_actor(self, worker_query: WorkerQuery | None, name: ActorName) -> None:
        """Stop driving a generator."""
        stop_actor(self._actors if worker_query is None else worker_query.actors, name)

    def answer(self, actor: Actor, effect: Effect[Answer], value: Answer | BaseException) -> None:
        """Post the answer to an actor's effect, or the error to throw in. Any thread may call this.

        The effect's type determines the type of the answer.
        """
        self.loop.post(self._answered, actor, effect, value)

    def _answered(self, actor: Actor, effect: Effect[Any], value: Any) -> None:
        if actor.awaits(effect):
            self._resume(actor, value)

    def _do_without_lost(self) -> None:
        """Let actors that must not wait for ever go on without answers that were lost."""
        now = time.monotonic()
        sessions = [
            query.actors[SESSION] for query in self.worker_queries.values() if SESSION in query.actors
        ]
        for actor in (*self._actors.values(), *sessions):
            waited_seconds = now - actor.since_seconds
            if actor.gives_up(waited_seconds):
                _log.error(
                    "%s: %s has waited %.0f s for an answer to %s, and goes on without it",
                    self.worker,
                    actor.name,
                    waited_seconds,
                    type(actor.effect).__name__,
                )
                self._resume(actor, None)
        self.loop.after(LOST_POLL_SECONDS, self._do_without_lost)

    def park(self, actor: Actor, limit_seconds: float, *, patient: bool) -> None:
        """Let an actor wait until it is woken, up to a limit; a patient one is not woken by arrivals."""
        wait = actor.park(patient=patient)
        # A timer must not keep the actor of an ended query alive.
        self.loop.after(limit_seconds, self._time_out, weakref.ref(actor), wait)

    def _time_out(self, of: weakref.ref[Actor], wait: int) -> None:
        actor = of()
        if actor is not None and actor.is_due(wait):
            self._resume(actor, True)

    def wake(self, actor: Actor | None, *, arrival: bool = False) -> None:
        """Wake an actor, because something that it may wait for has arrived.

        After an arrival it may wait for more, unless a kernel thread is idle.
        """
        if actor is not None and actor.wake(arrival=arrival):
            actor.idle = 0
            eager = not arrival or (self.performer is not None and self.performer.has_idle_kernel())
            self.loop.post(self._resume, actor, eager)

    def wake_named(self, name: ActorName) -> None:
        """Wake one of the node's own actors."""
        self.wake(self._actors.get(name))

    def wake_sessions(self) -> None:
        """Let every session look now, because something has changed in the store."""
        for worker_query in self.worker_queries.values():
            self.wake(worker_query.actors.get(SESSION))

    def _resume(self, actor: Actor, value: Any) -> None:
        if not actor.alive:
            return
        actor.begin_step()
        try:
            effect = actor.step(value)
        except GcsLostError as lost:
            self._ended(lost)
            return
        if effect is None:
            self._actor_ended(actor)
            return
        assert self.performer is not None
        actor.since_seconds = time.monotonic()
        self.performer.perform(actor, effect)
        if actor.worker_query is not None:
            self._after_step(actor, actor.worker_query)

    def _actor_ended(self, actor: Actor) -> None:
        if actor.name.kind.is_errand:
            self._actors.pop(actor.name, None)
        elif actor.worker_query is None:
            self._ended(None)
        elif actor.name == SESSION:
            self.close_session(actor.worker_query)
        else:
            self._after_step(actor, actor.worker_query)

    def _after_step(self, actor: Actor, worker_query: WorkerQuery) -> None:
        """Wake the actors that can continue because of what an actor of the same session has just done."""
        for other in worker_query.after_step(actor):
            self.wake(other)

    # --- sessions ------------------------------------------------------------------------------------

    def begin_query(self, worker_query: WorkerQuery) -> None:
        """Begin to serve a query."""
        if worker_query.query not in self.worker_queries:
            self.worker_queries[worker_query.query] = worker_query
            self.spawn(worker_query, SESSION, worker_query.session.run())

    def close_session(self, worker_query: WorkerQuery) -> None:
        """A query has ended for this node: drop everything that it held for it."""
        worker_query.session.over = True
        for actor in worker_query.actors.values():
            actor.end()
        self.worker_queries.pop(worker_query.query, None)
        assert self.performer is not None
        self.performer.close(worker_query)

    def fail(self, worker_query: WorkerQuery, error: QueryError) -> None:
        """End a query with an error, as if one of its tasks here had raised it."""
        if not worker_query.session.over:
            self.spawn(worker_query, ActorName(ActorKind.FAILURE), worker_query.session.fail(error))

    def receive(self, query: QueryId, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """Receive slices from another worker, or from this one by reference."""
        worker_query = self.worker_queries.get(query)
        if worker_query is None:
            return PushReply(accepted=False)
        session = worker_query.session
        before = {name: run.inbox.arrived for name, run in session.runs.items()}
        if session.context.tolerance.rolls_back:
            slices = with_barriers(slices)
        reply = session.receive(epoch, target, slices)
        if (error := session.too_much_beside()) is not None:
            self.fail(worker_query, error)
        for name, run in session.runs.items():
            if run.inbox.arrived > before[name]:
                self.wake(worker_query.actors.get(ActorName(ActorKind.CHANNEL, name)), arrival=True)
        if worker_query.session.context.look_wanted:
            self.wake(worker_query.actors.get(SESSION))
        return reply

    def preview(self, query: QueryId, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """Answer another worker which slices of a push would be accepted, before it sends the bodies."""
        worker_query = self.worker_queries.get(query)
        if worker_query is None:
            return PushReply(accepted=False)
        return worker_query.session.preview(epoch, target, slices)

    def fetchable(self, query: QueryId, channel: ChannelName, first: int, end: int) -> range:
        """Which of some outputs a reader may have from this process; see `QuerySession.fetchable`."""
        worker_query = self.worker_queries.get(query)
        return (
            range(first, first)
            if worker_query is None
            else worker_query.session.fetchable(channel, first, end)
        )

    def kept(self, query: QueryId) -> tuple[tuple[ChannelName, Edge, range], ...]:
        """The part of a kept result that is here: by channel, its edge and its outputs."""
        worker_query = self.worker_queries.get(query)
        if worker_query is None:
            return ()
        session = worker_query.session
        return tuple(
            (name, edge, session.fetchable(name, 0, session.context.outbox.published(name)))
            for name in session.runs
            for edge in session.graph.edges_from(name)
            if session.graph.stays(edge)
        )

    def standing(self, query: QueryId) -> Standing:
        """This process's standing with a query, which the head requests when nothing seems to move."""
        worker_query = self.worker_queries.get(query)
        if worker_query is None:
            opening = any(is_opening(actor, query) for actor in self._actors.values())
            return Standing(
                (), "the query is being opened" if opening else "", ("the query is not open here",)
            )
        assert self.performer is not None
        computes = self.performer.has_busy_kernel()
        actors = [actor for actor in worker_query.actors.values() if actor.alive]
        excuses = [actor.effect for actor in actors if is_excuse(actor, worker_query, computes=computes)]
        waiting = [(str(actor.name), actor.effect) for actor in actors]
        return standing_of(worker_query.session, waiting, reading(worker_query), excuses)

    def ask_standing(self, query: QueryId, limit_seconds: float) -> Standing | None:
        """The standing, for any other thread; None if the loop does not answer in time."""
        answer: Future[Standing] = Future()
        self.loop.post(lambda: answer.set_result(self.standing(query)))
        try:
            return answer.result(timeout=limit_seconds)
        except FutureTimeoutError:
            return None

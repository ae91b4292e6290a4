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
from wallaby.node.durable_outputs import DurableOutputs
from wallaby.node.effects import OpenSession
from wallaby.node.loop import Loop
from wallaby.node.session import QuerySession
from wallaby.node.standing import Standing, standing_of
from wallaby.node.untracked import Untracked
from wallaby.observe.recorder import Recorder

_log = logging.getLogger(__name__)
#: Reading outputs for a push counts as busy if it takes longer than this.
READS_SECONDS = 1.0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Actor:
    """One generator being driven."""

    name: ActorName
    effects: Effects[None]
    serving: WorkerQuery | None = None
    alive: bool = True
    #: The number of its present wait; a timer of an earlier wait does nothing.
    wait: int = 0
    parked: bool = False
    patient: bool = False
    #: How often it has waited since something last arrived for it.
    idle: int = 0
    #: The effect that it waits for.
    effect: Effect[Any] | None = None


@dataclass(slots=True, eq=False)
class WorkerQuery:
    """One query at this node: its session, its computation, and the generators that run for it."""

    query: QueryId
    session: QuerySession
    #: Executes its tasks; opaque to the node.
    work: Any = None
    #: Sends its events to the head; None if it is not observed.
    recorder: Recorder | None = None
    #: Answers instead of the store; None for a query with fault tolerance.
    untracked: Untracked | None = None
    #: Its outputs in the durable store; None if its policy does not use one.
    durable_outputs: DurableOutputs | None = None
    actors: dict[ActorName, Actor] = field(default_factory=dict)
    news: tuple[int, ...] = ()
    sent_news: int = 0
    #: When each present read of bodies for a push began, by `time.monotonic`.
    reads: dict[object, float] = field(default_factory=dict)


def serving_of(actor: Actor) -> WorkerQuery:
    """The query for which an actor runs; the node's own actors have none."""
    assert actor.serving is not None, f"{actor.name} belongs to no session"
    return actor.serving


class Performs(Protocol):
    """Performs effects; see `perform`."""

    def perform(self, actor: Actor, effect: Effect[Any]) -> None:
        """Perform an effect; the answer is posted to the node's `answer`."""

    def close(self, serving: WorkerQuery) -> None:
        """A query has ended here: drop everything that was held for it."""

    def has_idle_kernel(self) -> bool:
        """Is there a thread with nothing to execute?"""


class EngineNode:
    """One process of the engine; see the module. Methods run on the loop's thread, unless they say otherwise."""

    def __init__(self, worker: WorkerId, ended: Callable[[BaseException | None], None]) -> None:
        self.worker = worker
        self.servings: dict[QueryId, WorkerQuery] = {}
        self.loop = Loop(f"wallaby-{worker}", self.end)
        self.performer: Performs | None = None
        #: Receives the events of workers; only on the head. Called on any thread.
        self.take_events: Callable[[bytes], None] | None = None
        #: Called when a worker reports that its store is not the one with which the engine began, and why; only on the
        #: head. Called on any thread.
        self.take_loss: Callable[[str], None] | None = None
        #: Answers the readers of results that stay: the action, and what it asks. Only the head does. On any thread.
        self.answer_reader: Callable[[str, bytes], bytes | None] | None = None
        self._actors: dict[ActorName, Actor] = {}
        self._ended = ended

    def start(self, performer: Performs, actors: dict[ActorName, Effects[None]]) -> None:
        """Start driving. Any thread may call this, once."""
        self.performer = performer
        self.loop.start()
        for name, effects in actors.items():
            self.loop.post(self.spawn, None, name, effects)

    def stop(self) -> None:
        """Stop driving at any point. Any thread may call this."""
        self.loop.stop()

    def end(self, error: BaseException) -> None:
        """End this node because it cannot continue. Any thread may call this, so that no failure is silent."""
        self._ended(error)

    # --- actors --------------------------------------------------------------------------------------

    def spawn(self, serving: WorkerQuery | None, name: ActorName, effects: Effects[None]) -> None:
        """Drive a generator; it replaces one of the same name."""
        actor = Actor(name, effects, serving)
        actors = self._actors if serving is None else serving.actors
        self.stop_actor(serving, name)
        actors[name] = actor
        self.loop.post(self._resume, actor, None)

    def stop_actor(self, serving: WorkerQuery | None, name: ActorName) -> None:
        """Stop driving a generator."""
        old = (self._actors if serving is None else serving.actors).pop(name, None)
        if old is not None:
            old.alive = False

    def answer(self, actor: Actor, _effect: Effect[Answer], value: Answer | BaseException) -> None:
        """Post the answer to an actor's effect, or the error to throw in. Any thread may call this.

        The effect's type determines the type of the answer.
        """
        self.loop.post(self._resume, actor, value)

    def park(self, actor: Actor, limit_seconds: float, *, patient: bool) -> None:
        """Let an actor wait until it is woken, up to a limit; a patient one is not woken by arrivals."""
        actor.parked = True
        actor.patient = patient
        # A timer must not keep the actor of an ended query alive.
        self.loop.after(limit_seconds, self._time_out, weakref.ref(actor), actor.wait)

    def _time_out(self, of: weakref.ref[Actor], wait: int) -> None:
        actor = of()
        if actor is not None and actor.parked and actor.wait == wait:
            self._resume(actor, True)

    def wake(self, actor: Actor | None, *, arrival: bool = False) -> None:
        """Wake an actor, because something that it may wait for has arrived.

        After an arrival it may wait for more, unless a kernel thread is idle.
        """
        if actor is not None and actor.alive and actor.parked and not (arrival and actor.patient):
            actor.parked = False
            actor.idle = 0
            eager = not arrival or (self.performer is not None and self.performer.has_idle_kernel())
            self.loop.post(self._resume, actor, eager)

    def wake_named(self, name: ActorName) -> None:
        """Wake one of the node's own actors."""
        self.wake(self._actors.get(name))

    def wake_sessions(self) -> None:
        """Let every session look now, because something has changed in the store."""
        for serving in self.servings.values():
            self.wake(serving.actors.get(SESSION))

    def _resume(self, actor: Actor, value: Any) -> None:
        if not actor.alive:
            return
        actor.wait += 1
        actor.parked = False
        try:
            failed = isinstance(value, BaseException)
            effect = actor.effects.throw(value) if failed else actor.effects.send(value)
        except StopIteration:
            actor.effect = None
            self._actor_ended(actor)
            return
        except GcsLostError as lost:
            actor.alive = False
            self._ended(lost)
            return
        assert self.performer is not None
        actor.effect = effect
        self.performer.perform(actor, effect)
        if actor.serving is not None:
            self._after_step(actor, actor.serving)

    def _actor_ended(self, actor: Actor) -> None:
        actor.alive = False
        if actor.name.kind.is_errand:
            self._actors.pop(actor.name, None)
        elif actor.serving is None:
            self._ended(None)
        elif actor.name == SESSION:
            self.close_session(actor.serving)
        else:
            self._after_step(actor, actor.serving)

    def _after_step(self, actor: Actor, serving: WorkerQuery) -> None:
        """Wake the actors that can continue because of what an actor of the same session has just done."""
        session = serving.session
        if session.context.look_wanted:
            self.wake(serving.actors.get(SESSION))
        if actor.name == SESSION:
            news = session.news()
            if news != serving.news:
                serving.news = news
                for other in list(serving.actors.values()):
                    if other is not actor:
                        self.wake(other)
        elif serving.sent_news != session.context.outbox.news:
            serving.sent_news = session.context.outbox.news
            for target in session.context.outbox.targets():
                self.wake(serving.actors.get(ActorName(ActorKind.DELIVERY, target)))

    # --- sessions ------------------------------------------------------------------------------------

    def begin_serving(self, serving: WorkerQuery) -> None:
        """Begin to serve a query."""
        if serving.query not in self.servings:
            self.servings[serving.query] = serving
            self.spawn(serving, SESSION, serving.session.run())

    def close_session(self, serving: WorkerQuery) -> None:
        """A query has ended for this node: drop everything that it held for it."""
        serving.session.over = True
        for actor in serving.actors.values():
            actor.alive = False
        self.servings.pop(serving.query, None)
        assert self.performer is not None
        self.performer.close(serving)

    def fail(self, serving: WorkerQuery, error: QueryError) -> None:
        """End a query with an error, as if one of its tasks here had raised it."""
        if not serving.session.over:
            self.spawn(serving, ActorName(ActorKind.FAILURE), serving.session.fail(error))

    def receive(self, query: QueryId, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """Receive slices from another worker, or from this one by reference."""
        serving = self.servings.get(query)
        if serving is None:
            return PushReply(accepted=False)
        session = serving.session
        before = {name: run.inbox.arrived for name, run in session.runs.items()}
        reply = session.receive(epoch, target, slices)
        if (error := session.too_much_beside()) is not None:
            self.fail(serving, error)
        for name, run in session.runs.items():
            if run.inbox.arrived > before[name]:
                self.wake(serving.actors.get(ActorName(ActorKind.CHANNEL, name)), arrival=True)
        if serving.session.context.look_wanted:
            self.wake(serving.actors.get(SESSION))
        return reply

    def preview(self, query: QueryId, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """Answer another worker which slices of a push would be accepted, before it sends the bodies."""
        serving = self.servings.get(query)
        if serving is None:
            return PushReply(accepted=False)
        return serving.session.preview(epoch, target, slices)

    def fetchable(self, query: QueryId, channel: ChannelName, first: int, end: int) -> range:
        """Which of some outputs a reader may have from this process; see `QuerySession.fetchable`."""
        serving = self.servings.get(query)
        return range(first, first) if serving is None else serving.session.fetchable(channel, first, end)

    def kept(self, query: QueryId) -> tuple[tuple[ChannelName, Edge, range], ...]:
        """What of a result that stays is here: by channel, over which edge it would go, and which outputs."""
        serving = self.servings.get(query)
        if serving is None:
            return ()
        session = serving.session
        return tuple(
            (name, edge, session.fetchable(name, 0, session.context.outbox.published(name)))
            for name in session.runs
            for edge in session.graph.edges_from(name)
            if session.graph.stays(edge)
        )

    def standing(self, query: QueryId) -> Standing:
        """This process's standing with a query, which the head requests when nothing seems to move."""
        serving = self.servings.get(query)
        if serving is None:
            opening = any(
                isinstance(actor.effect, OpenSession) and actor.effect.query == query
                for actor in self._actors.values()
            )
            return Standing(
                (), "the query is being opened" if opening else "", ("the query is not open here",)
            )
        actors = [(str(actor.name), actor.effect) for actor in serving.actors.values() if actor.alive]
        return standing_of(serving.session, actors, self._reading(serving))

    def _reading(self, serving: WorkerQuery) -> str:
        """Are outputs being read for long? A disk or a durable store may be slow, which is not a stall."""
        now = time.monotonic()
        is_slow = any(now - since > READS_SECONDS for since in tuple(serving.reads.values()))
        return "outputs are being read" if is_slow else ""

    def ask_standing(self, query: QueryId, limit_seconds: float) -> Standing | None:
        """The standing, for any other thread; None if the loop does not answer in time."""
        answer: Future[Standing] = Future()
        self.loop.post(lambda: answer.set_result(self.standing(query)))
        try:
            return answer.result(timeout=limit_seconds)
        except FutureTimeoutError:
            return None

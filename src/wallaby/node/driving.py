"""Drive generators: what the node and the simulation share, without threads and without a clock.

An actor is a generator with its state between two steps. While it waits, arriving data or news of its query may wake
it. A timer carries the number of the wait that it was set for, so that a late one does nothing.

A mistake may lose an answer. The stall watch ends a query in which nothing moves any more. But some actors serve all
queries, the coordinator and the stall watch among them, and sessions remove what their queries leave behind. After some
time these get None, which means that no answer came, and ask again. An answer that comes later has no effect.

`EngineNode` drives actors on a loop of its own against the real clock; the lab's `World` drives them in the order of a
virtual one, with faults and judges around every step. They decide when a step is taken; this module decides what it
means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from wallaby.errors import GcsLostError
from wallaby.lineage.effects import Await, Effect, Effects, Pause
from wallaby.node.actors import SESSION, ActorKind, ActorName
from wallaby.node.session import QuerySession


class ActorState(Enum):
    """How an actor stands between two steps."""

    __hash__ = object.__hash__  # an enum's own hash is slow

    #: Its effect is being performed, or its next step is on the way.
    ASKING = "asking"
    #: It waits for whatever arrives or changes.
    WAITING = "waiting"
    #: It waits for a time, or for news of its query; arriving data does not wake it.
    PAUSING = "pausing"
    #: It is not driven any more; an answer that is still on the way has no effect.
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class DrivenActor:
    """One generator being driven."""

    name: ActorName
    effects: Effects[None]
    state: ActorState = field(default=ActorState.ASKING, kw_only=True)
    #: The number of its present wait; a timer of an earlier wait does nothing.
    wait: int = field(default=0, kw_only=True)
    #: How often it has waited since something last arrived for it.
    idle: int = field(default=0, kw_only=True)
    #: The effect that it waits for.
    effect: Effect[Any] | None = field(default=None, kw_only=True)

    @property
    def alive(self) -> bool:
        """Is it still driven?"""
        return self.state is not ActorState.ENDED

    def end(self) -> None:
        """Stop driving it, at any point."""
        self.state = ActorState.ENDED

    def park(self, *, patient: bool) -> int:
        """Let it wait; a patient one is not woken by arrivals. Returns the number of this wait, for its timer."""
        if self.alive:
            self.state = ActorState.PAUSING if patient else ActorState.WAITING
        return self.wait

    def is_due(self, wait: int) -> bool:
        """Does a timer that was set for this wait end it?"""
        return self._is_parked and self.wait == wait

    def wake(self, *, arrival: bool) -> bool:
        """Wake it, if it waits for such a thing: then its next step is due."""
        wakes = self.state is ActorState.WAITING or (self.state is ActorState.PAUSING and not arrival)
        if wakes:
            self.state = ActorState.ASKING
        return wakes

    def delay(self) -> None:
        """Its next step is on the way and comes later: nothing else must wake it."""
        if self._is_parked:
            self.state = ActorState.ASKING

    def begin_step(self) -> None:
        """Its next step begins: its wait is over."""
        self.wait += 1
        self.state = ActorState.ASKING

    def awaits(self, effect: Effect[Any]) -> bool:
        """Does it still wait for the answer to this effect?"""
        return self.effect is effect and self.alive

    def gives_up(self, waited_seconds: float) -> bool:
        """Does it, after this time, go on without an answer to its effect, which must have been lost?"""
        effect = self.effect
        if self.state is not ActorState.ASKING or effect is None or isinstance(effect, (Await, Pause)):
            return False
        return self.name.kind.asks_again and waited_seconds > effect.answered_within_seconds

    def step(self, value: object) -> Effect[Any] | None:
        """Send an answer in, or throw an error in; returns the next effect, None if the generator has ended.

        Raises:
            GcsLostError: the store is lost, and the actor has ended.
        """
        self.effect = None
        try:
            if isinstance(value, BaseException):
                self.effect = self.effects.throw(value)
            else:
                self.effect = self.effects.send(value)
        except StopIteration:
            self.end()
        except GcsLostError:
            self.end()
            raise
        return self.effect

    @property
    def _is_parked(self) -> bool:
        return self.state is ActorState.WAITING or self.state is ActorState.PAUSING


ActorT = TypeVar("ActorT", bound=DrivenActor)


@dataclass(slots=True, eq=False)
class DrivenSession(Generic[ActorT]):
    """The generators that run for one query in one process."""

    session: QuerySession
    actors: dict[ActorName, ActorT] = field(default_factory=dict, kw_only=True)
    #: The session's last news of the query; if it changes, all actors are woken.
    news: tuple[int, ...] = field(default=(), kw_only=True)
    sent_news: int = field(default=0, kw_only=True)

    def after_step(self, actor: ActorT) -> list[ActorT]:
        """The actors that may continue because of what one of them has just done, in the order to wake them."""
        session, actors = self.session, self.actors
        woken = [actors.get(SESSION)] if session.context.look_wanted else []
        if actor.name == SESSION:
            news = session.news()
            if news != self.news:
                self.news = news
                woken += [other for other in actors.values() if other is not actor]
        elif self.sent_news != session.context.outbox.news:
            self.sent_news = session.context.outbox.news
            woken += [
                actors.get(ActorName(ActorKind.DELIVERY, to)) for to in session.context.outbox.targets()
            ]
        return [each for each in woken if each is not None]


def stop_actor(actors: dict[ActorName, ActorT], name: ActorName) -> None:
    """Stop driving the actor of a name, if there is one."""
    old = actors.pop(name, None)
    if old is not None:
        old.end()

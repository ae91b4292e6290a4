"""An actor is woken by what it waits for, once, and a late timer or answer changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby.coordinator.effects import Inquire, Watch
from wallaby.errors import GcsLostError, QueryError
from wallaby.lineage.effects import Await, Collect, Effect, Effects, Pause, ask
from wallaby.lineage.names import QueryId
from wallaby.node.actors import COORDINATOR, DISCOVERY, SESSION, STALL_WATCH, ActorKind, ActorName
from wallaby.node.driving import ActorState, DrivenActor, stop_actor
from wallaby.node.effects import Discover, Look, OpenSession


def asking(seen: list[object]) -> Effects[None]:
    seen.append((yield from ask(Await())))
    try:
        yield Pause(10)
    except QueryError as error:
        seen.append(error)
    yield Await()


@pytest.fixture
def seen() -> list[object]:
    return []


@pytest.fixture
def actor(seen: list[object]) -> DrivenActor:
    return DrivenActor(SESSION, asking(seen))


@pytest.mark.parametrize("arrival", [True, False])
def test_an_actor_that_waits_is_woken_once(actor: DrivenActor, arrival: bool) -> None:
    assert not actor.wake(arrival=arrival), "it waits for nothing"
    actor.park(patient=False)
    assert actor.wake(arrival=arrival)
    assert not actor.wake(arrival=arrival), "its next step is on the way"


def test_an_actor_that_pauses_is_not_woken_by_arrivals(actor: DrivenActor) -> None:
    actor.park(patient=True)
    assert not actor.wake(arrival=True)
    assert actor.wake(arrival=False)


def test_a_timer_ends_only_the_wait_that_it_was_set_for(actor: DrivenActor) -> None:
    first = actor.park(patient=False)
    assert actor.is_due(first)
    actor.begin_step()
    assert not actor.is_due(first)
    second = actor.park(patient=True)
    assert actor.is_due(second)
    assert not actor.is_due(first)
    actor.delay()
    assert not actor.is_due(second), "its next step is on the way"


def test_answers_are_sent_in_and_errors_thrown_in(actor: DrivenActor, seen: list[object]) -> None:
    error = QueryError("It fails.")
    assert actor.step(None) == Await()
    assert actor.step(True) == Pause(10)
    assert actor.step(error) == actor.effect == Await()
    assert actor.step(None) is None
    assert (seen, actor.state) == ([True, error], ActorState.ENDED)


def test_an_ended_actor_stays_ended(actor: DrivenActor) -> None:
    actors = {SESSION: actor}
    stop_actor(actors, SESSION)
    stop_actor(actors, SESSION)
    assert not actors
    wait = actor.park(patient=False)
    assert not actor.is_due(wait)
    assert not actor.wake(arrival=False)
    assert not actor.alive


def test_an_actor_ends_with_its_store(actor: DrivenActor) -> None:
    actor.step(None)
    with pytest.raises(GcsLostError):
        actor.step(GcsLostError("It is gone."))
    assert not actor.alive


def requesting(name: ActorName, effect: Effect[Any]) -> tuple[DrivenActor, list[object]]:
    """An actor that has just requested an effect, and what it is answered."""
    answers: list[object] = []

    def request() -> Effects[None]:
        answers.append((yield from ask(effect)))
        yield Await()

    actor = DrivenActor(name, request())
    actor.begin_step()
    actor.step(None)
    return actor, answers


ASKING_AGAIN = [
    (COORDINATOR, Watch()),
    (DISCOVERY, Discover()),
    (SESSION, Look()),
    (STALL_WATCH, Inquire(QueryId("q"), ())),
    (DISCOVERY, OpenSession(QueryId("q"))),
]


@pytest.mark.parametrize(("name", "effect"), ASKING_AGAIN)
def test_what_a_process_needs_as_a_whole_is_not_waited_for_for_ever(
    name: ActorName, effect: Effect[Any]
) -> None:
    actor, answers = requesting(name, effect)
    assert not actor.gives_up(effect.answered_within_seconds)
    assert actor.gives_up(effect.answered_within_seconds + 1)
    actor.begin_step()
    assert actor.step(None) == Await()
    assert answers == [None]
    assert not actor.awaits(effect), "an answer that comes now is for nobody"


def test_the_answer_to_the_present_effect_counts_and_no_other() -> None:
    actor, _ = requesting(COORDINATOR, effect := Watch())
    assert actor.awaits(effect)
    assert not actor.awaits(Watch()), "another one, although it looks the same"
    actor.end()
    assert not actor.awaits(effect)


def test_a_channel_waits_and_its_query_is_ended_by_the_stall_watch() -> None:
    actor, _ = requesting(ActorName(ActorKind.CHANNEL), Collect(()))
    assert not actor.gives_up(1e9)


@pytest.mark.parametrize("effect", [Await(), Pause(10)])
def test_a_wait_is_ended_by_its_timer(effect: Effect[Any]) -> None:
    actor, _ = requesting(COORDINATOR, effect)
    assert not actor.gives_up(1e9), "its next step may be on the way"


@pytest.mark.parametrize("kind", ActorKind)
def test_every_actor_outside_of_queries_asks_again(kind: ActorKind) -> None:
    of_a_query = (ActorKind.CHANNEL, ActorKind.DELIVERY, ActorKind.RE_READ, ActorKind.FAILURE)
    assert kind.asks_again is (kind not in of_a_query)

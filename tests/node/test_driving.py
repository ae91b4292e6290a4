"""An actor is woken by what it waits for, once, and a late timer or answer changes nothing."""

from __future__ import annotations

import pytest

from wallaby.errors import GcsLostError, QueryError
from wallaby.lineage.effects import Await, Effects, Pause, ask
from wallaby.node.actors import SESSION
from wallaby.node.driving import ActorState, DrivenActor, stop_actor


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

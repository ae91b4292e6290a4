"""A worker's life: register, renew, serve every query once, and end when it is expelled."""

from __future__ import annotations

from tests.builders import Driven

from wallaby.lineage.effects import Pause
from wallaby.lineage.names import QueryId
from wallaby.node.effects import Discover, OpenSession, Register, Renew
from wallaby.worker.taskmanager import REGISTERED_POLL_MS, UNANSWERED_MAX, TaskManager

Q, P = QueryId("q"), QueryId("p")


def test_a_worker_registers_until_it_is_answered() -> None:
    run = Driven(TaskManager(500).run())
    run.answer_all(None, True, None, True, True)
    assert run.seen == [*[Register(), Pause(500)] * 2, Register(), Renew()]


def test_a_worker_whose_id_is_not_to_be_had_ends() -> None:
    run = Driven(TaskManager(500).run())
    assert run.answer(False) is None


def test_a_worker_that_can_never_register_tries_at_leisure_and_ends() -> None:
    run = Driven(TaskManager(500).run())
    for _ in range(UNANSWERED_MAX):
        assert run.now == Register()
        assert run.answer(None) == Pause(500)
        run.answer(True)
    assert run.now is None


def registered() -> tuple[Driven, Driven]:
    """A worker that has just registered: what renews, and what discovers."""
    manager = TaskManager(500)
    run = Driven(manager.run())
    run.answer(True)
    return run, Driven(manager.discover())


def test_a_worker_looks_for_no_query_before_it_is_registered() -> None:
    manager = TaskManager(500)
    run, discover = Driven(manager.run()), Driven(manager.discover())
    discover.answer_all(True, True)
    assert discover.seen == [Pause(REGISTERED_POLL_MS)] * 3
    run.answer(True)
    assert discover.answer(True) == Discover()


def test_a_worker_opens_one_session_for_every_query() -> None:
    _, discover = registered()
    discover.answer_all((P, Q), True, True)
    assert discover.seen == [Discover(), OpenSession(P), OpenSession(Q), Pause(500)]
    discover.answer_all(None, (P, Q))
    assert discover.now == Pause(500), "both are served already"


def test_a_session_that_could_not_be_opened_is_tried_again() -> None:
    _, discover = registered()
    discover.answer_all((P,), False, None, (P,))
    assert discover.now == OpenSession(P)


def test_a_worker_renews_its_lease_while_a_session_opens() -> None:
    run, discover = registered()
    discover.answer((P,))
    assert discover.now == OpenSession(P)
    run.answer_all(True, None, True, None)
    assert run.seen[1:] == [Renew(), Pause(500), Renew(), Pause(500), Renew()]


def test_a_worker_that_the_store_does_not_answer_for_too_long_ends() -> None:
    run, _ = registered()
    for _ in range(UNANSWERED_MAX - 1):
        run.answer_all(None, None)
    run.answer_all(True, None)
    for _ in range(UNANSWERED_MAX):
        assert run.now == Renew()
        run.answer_all(None, None)
    assert run.now is None


def test_a_worker_that_gets_no_answer_goes_on() -> None:
    run, discover = registered()
    assert run.answer(None) == Pause(500)
    assert discover.answer(None) == Pause(500)


def test_an_expelled_worker_ends_at_once() -> None:
    run = Driven(TaskManager(500).run())
    assert run.answer_all(True, False) is None

"""A worker's life: register, renew, serve every query once, and end when it is expelled."""

from __future__ import annotations

from tests.builders import Driven

from wallaby.lineage.effects import Pause
from wallaby.lineage.names import QueryId
from wallaby.worker.effects import Discover, OpenSession, Register, Renew
from wallaby.worker.taskmanager import UNANSWERED_MAX, TaskManager

Q, P = QueryId("q"), QueryId("p")


def test_a_worker_registers_until_it_is_answered() -> None:
    run = Driven(TaskManager(500).run())
    run.answer_all(None, None, True)
    assert run.seen == [Register(), Register(), Register(), Renew()]


def test_a_worker_whose_id_is_not_to_be_had_ends() -> None:
    run = Driven(TaskManager(500).run())
    assert run.answer(False) is None


def test_a_worker_opens_one_session_for_every_query() -> None:
    run = Driven(TaskManager(500).run())
    run.answer_all(True, True, (P, Q), True, True)
    assert run.seen[2:] == [Discover(), OpenSession(P), OpenSession(Q), Pause(500)]
    run.answer_all(None, True, (P, Q))
    assert run.now == Pause(500), "both are served already"


def test_a_session_that_could_not_be_opened_is_tried_again() -> None:
    run = Driven(TaskManager(500).run())
    run.answer_all(True, True, (P,), False, None, True, (P,))
    assert run.now == OpenSession(P)


def test_a_worker_that_the_store_does_not_answer_for_too_long_ends() -> None:
    run = Driven(TaskManager(500).run())
    run.answer(True)
    for _ in range(UNANSWERED_MAX - 1):
        run.answer_all(None, None, None)
    run.answer_all(True, (), None)
    for _ in range(UNANSWERED_MAX):
        assert run.now == Renew()
        run.answer_all(None, None, None)
    assert run.now is None


def test_a_worker_that_gets_no_answer_goes_on() -> None:
    run = Driven(TaskManager(500).run())
    run.answer_all(True, None, None)
    assert run.now == Pause(500)


def test_an_expelled_worker_ends_at_once() -> None:
    run = Driven(TaskManager(500).run())
    assert run.answer_all(True, False) is None

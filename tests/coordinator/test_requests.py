"""What clients ask of the head is settled, whatever replies of the store are lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import Driven, pipeline

from wallaby.coordinator.coordinator import Coordinator, CoordinatorSettings
from wallaby.coordinator.effects import AskToDrain, Expel, ReadNeed, Remove, Submit
from wallaby.coordinator.query import Query, QueryPhase
from wallaby.coordinator.requests import draining, submitting
from wallaby.errors import GcsLostError, GcsUnavailableError, QueryCancelledError, WallabyError
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.head import Head
from wallaby.lineage.choose import Static
from wallaby.lineage.effects import Pause
from wallaby.lineage.names import HEAD, QueryId, WorkerId
from wallaby.lineage.tolerance import LINEAGE
from wallaby.lineage.verdict import Verdict
from wallaby.node.session import QuerySessionSettings

GRAPH = pipeline()
Q, W = QueryId("q"), WorkerId("w")
HOSTS = {**dict.fromkeys(GRAPH.channels, W), GRAPH.collector: HEAD}
SETTINGS = CoordinatorSettings(submit_ms=500)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def submission() -> tuple[Query, Clock, Driven]:
    query, clock = Query(Q, GRAPH, QueryPhase.ENTERING), Clock()
    return query, clock, Driven(submitting(query, HOSTS, b"", SETTINGS, clock))


@pytest.mark.parametrize("verdict", [Verdict.DONE, Verdict.ALREADY])
def test_a_submission_is_repeated_until_the_store_has_answered(verdict: Verdict) -> None:
    query, _, run = submission()
    for _ in range(2):
        assert run.now == Submit(Q, GRAPH, HOSTS, b"")
        assert isinstance(run.answer(None), Pause)
        assert query.phase is QueryPhase.ENTERING
        run.answer(None)
    run.answer(verdict)
    assert run.now is None
    assert (query.phase, query.doubtful) == (QueryPhase.RUNNING, True)


def test_a_submission_without_an_answer_ends_with_an_error_after_its_time() -> None:
    query, clock, run = submission()
    run.answer(None)
    run.answer(None)
    clock.now_ms = SETTINGS.submit_ms + 1
    run.answer(None)
    assert run.now is None
    assert isinstance(query.error, GcsUnavailableError)
    assert query.phase is QueryPhase.ENDING, "it has yet to be removed"


def test_whoever_cancels_meanwhile_is_not_told_of_the_store() -> None:
    query, _, run = submission()
    query.cancel()
    run.answer(None)
    assert run.now is None
    assert isinstance(query.error, QueryCancelledError)


@pytest.mark.parametrize("error", [GcsLostError("lost"), WallabyError("too large")])
def test_another_error_of_a_submission_is_the_query_s(error: WallabyError) -> None:
    query, _, run = submission()
    run.throw(error)
    assert run.now is None
    assert query.error is error
    assert query.ended is isinstance(error, GcsLostError), "of a lost store nothing can be removed"


def test_nobody_tends_a_query_of_which_nobody_knows_whether_it_is_there() -> None:
    query = Query(Q, GRAPH, QueryPhase.ENTERING)
    run = Driven(Coordinator(SETTINGS, {Q: query}, lambda: 0).run())
    assert isinstance(run.answer(()), Pause)


def test_a_query_that_was_in_doubt_is_removed_and_barred() -> None:
    query = Query(Q, GRAPH, QueryPhase.ENDING, doubtful=True)
    run = Driven(Coordinator(SETTINGS, {Q: query}, lambda: 0).run())
    run.answer(())
    assert run.answer(MemoryGcs(MemoryStore(lambda: 0)).status(Q)) == Remove(Q, barred=True)


def test_each_step_of_letting_a_worker_leave_is_repeated_until_it_is_answered() -> None:
    run = Driven(draining(W, lambda: False))
    for step, answers in (
        (AskToDrain(W), [None, True]),
        (ReadNeed(W), [None, True, False]),
        (Expel(W), [None]),
    ):
        for answer in answers:
            assert run.now == step
            if isinstance(run.answer(answer), Pause):
                run.answer(None)
    assert run.now == Expel(W)
    run.answer(True)
    assert run.now is None


class Lossy(MemoryGcs):
    """A store that applies submissions, and whose answers to the first of them are lost."""

    def __init__(self, store: MemoryStore, lost: int) -> None:
        super().__init__(store)
        self.lost = lost

    def submit(self, *arguments: Any, **named: Any) -> Verdict:
        verdict = super().submit(*arguments, **named)
        self.lost -= 1
        if self.lost >= 0:
            raise GcsUnavailableError("Redis did not answer submit.")
        return verdict


def head_with(lost: int) -> tuple[Head, Lossy, Callable[[], Any]]:
    gcs = Lossy(MemoryStore(lambda: int(time.monotonic() * 1000)), lost)
    gcs.register(W, "nowhere:1", 3_600_000)
    head = Head(gcs, None, None, lambda _address, _seconds: True, SETTINGS)  # type: ignore[arg-type]
    head.start()
    session = QuerySessionSettings(Static(1), 1000)
    payload = SimpleNamespace(
        encode=lambda: b"", tolerance=LINEAGE, observed=False, session_settings=lambda: session
    )
    return head, gcs, lambda: head.submit(SimpleNamespace(graph=GRAPH), payload)  # type: ignore[arg-type]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_query_whose_submission_was_answered_late_runs_as_any_other() -> None:
    head, gcs, submit = head_with(lost=2)
    collected = submit()
    assert gcs.queries() == (collected.query,)
    collected.cancel()
    until(lambda: gcs.queries() == ())
    assert head.drain(W, 30.0)
    head.stop(1)


def test_a_query_whose_submission_is_never_answered_leaves_nothing_and_blocks_no_drain() -> None:
    """It was in the store all the time, and the user has an error: nobody else would ever remove it."""
    head, gcs, submit = head_with(lost=10_000)
    with pytest.raises(GcsUnavailableError):
        submit()
    until(lambda: gcs.queries() == ())
    assert head.drain(W, 30.0)
    assert gcs.workers() == ()
    head.stop(1)


def test_a_submission_that_is_still_under_way_when_the_engine_ends_does_not_hang() -> None:
    head, _, submit = head_with(lost=10_000)
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            list(submit().batches())
        except WallabyError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: bool(head._submissions))
    head.stop(1)
    thread.join(30)
    assert len(errors) == 1

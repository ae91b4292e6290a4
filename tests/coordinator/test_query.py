"""A query as the driver holds it: when its result is whole, what a cancel ends, and what a release lets go."""

from __future__ import annotations

from tests.builders import execute, read

from wallaby.coordinator.query import Query, ResultState
from wallaby.errors import QueryTimeoutError
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import QueryId

LINKS = (Link(0, 1), Link(1, 2))


def query(last: StageKind) -> Query:
    return Query(QueryId("q-1"), StageGraph((read(), execute(2), Stage(last, 1)), LINKS))


def test_a_cancel_ends_a_query_with_the_first_reason() -> None:
    running = query(StageKind.COLLECT)
    too_long = QueryTimeoutError("It took too long.")
    running.cancel(too_long)
    running.cancel()
    assert (running.cancelled, running.cancelled_error) == (True, too_long)


def test_a_result_that_is_whole_is_not_cancelled() -> None:
    for last in (StageKind.COLLECT, StageKind.KEEP):
        whole = query(last)
        whole.becomes_whole()
        whole.cancel()
        assert whole.is_whole
        assert not whole.cancelled


def test_a_result_that_stays_is_not_done_before_it_is_released() -> None:
    kept = query(StageKind.KEEP)
    kept.becomes_whole()
    assert kept.result is ResultState.KEPT
    kept.release()
    assert (kept.is_taken, kept.cancelled) == (True, False)


def test_a_release_before_the_result_is_whole_ends_the_query_that_makes_it() -> None:
    kept = query(StageKind.KEEP)
    kept.release()
    assert (kept.is_taken, kept.cancelled) == (False, True)

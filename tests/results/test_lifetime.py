"""One query over several runs: what cancels it is not lost between two of them, and its time is counted once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from wallaby.batches import stopping
from wallaby.errors import (
    DivideByZeroError,
    DoubtfulValueError,
    HandOverError,
    MemoryLimitError,
    QueryCancelledError,
    QueryError,
    QueryTimeoutError,
    SparkCancelledError,
    WallabyError,
)
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected
from wallaby.lineage.graph import Link, Stage, StageGraph, StageKind
from wallaby.lineage.names import QueryId
from wallaby.results import spark_run
from wallaby.results.awaited import AwaitedRun
from wallaby.results.lifetime import QueryLifetime
from wallaby.results.result import may_go_on

GRAPH = StageGraph((Stage(StageKind.READ, 1, splits=1), Stage(StageKind.COLLECT, 1)), (Link(0, 1),))
TOO_LARGE = MemoryLimitError("A build side is too large.", setting="spark.wallaby.broadcast")
DOUBT = DoubtfulValueError("A value is in doubt.")
BY_SPARK = SparkCancelledError("Job 3 cancelled.")


class Job:
    """A Spark job that stands for a query."""

    def __init__(self) -> None:
        self.finished: list[BaseException | None] = []

    def on_cancel(self, cancel: Callable[[WallabyError], None]) -> None:
        self.cancelled = cancel

    def finish(self, error: BaseException | None) -> None:
        self.finished.append(error)


class Run:
    """One run of a query in the TaskManagers."""

    def __init__(self, name: str) -> None:
        self.ended: list[WallabyError | None] = []
        self.collected = Collected(QueryId(name), GRAPH, self.end)

    def end(self, because: WallabyError | None) -> None:
        self.ended.append(because)
        self.collected.end(because or QueryCancelledError("It was cancelled."))

    def on(self, lifetime: QueryLifetime) -> Collected:
        end = self.collected.cancel
        lifetime.runs(end)
        self.collected.when_over(lambda error: lifetime.run_over(end, error))
        return self.collected


class Context:
    """As much of a Spark context as a run needs; its jobs end when their tag is cancelled."""

    def __init__(self) -> None:
        self._jsc = object()
        self.tags: list[str] = []
        self.cancelled = threading.Semaphore(0)

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - the name is PySpark's
        self.tags.append(tag)

    def removeJobTag(self, tag: str) -> None:  # noqa: N802 - as above
        self.tags.remove(tag)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - as above
        assert tag.startswith("wallaby-result-")
        self.cancelled.release()

    def job(self) -> None:
        """A job that runs until it is cancelled."""
        assert self.cancelled.acquire(timeout=30)
        raise QueryError("Job 7 cancelled.")


def lifetime(seconds: float = 0.0) -> tuple[QueryLifetime, Job]:
    job: Any = Job()
    made = QueryLifetime(lambda: job, seconds)
    made.begin()
    made.goes_on_if(lambda error: may_go_on(True, None, error))
    return made, job


def on_spark(made: QueryLifetime, action: Callable[[], object], context: Context | None = None) -> object:
    there: Any = context or Context()
    return spark_run.run_on_spark(there, made, action)


def never() -> None:
    pytest.fail("a cancelled query ran")


# --- cancelling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("because", [None, BY_SPARK])
def test_what_cancels_a_query_between_two_runs_ends_the_next(because: WallabyError | None) -> None:
    made, job = lifetime()
    first, second = Run("first"), Run("second")
    first.on(made).end(DOUBT)
    made.goes_on_after_run()
    if because is None:
        made.cancel()
    else:
        job.cancelled(because)
    assert first.ended == []
    second.on(made)
    assert second.ended == [because]
    assert len(job.finished) == 1


def test_a_query_that_was_cancelled_is_not_run_by_spark() -> None:
    made, job = lifetime()
    Run("first").on(made).end(DOUBT)
    made.cancel()
    with pytest.raises(QueryCancelledError):
        on_spark(made, never)
    with pytest.raises(QueryCancelledError):
        on_spark(made, never)
    assert isinstance(job.finished[0], QueryCancelledError)


@pytest.mark.parametrize("because", [None, BY_SPARK])
def test_a_cancellation_before_sparks_first_job_or_between_two_ends_the_next(
    because: WallabyError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_run, "AGAIN_SECONDS", 0.001)
    made, _ = lifetime()
    context = Context()

    def action() -> None:
        made.cancel(because)
        for _ in range(3):  # while no job runs
            assert context.cancelled.acquire(timeout=30)
        context.job()

    with pytest.raises(type(because) if because else QueryCancelledError):
        on_spark(made, action, context)
    assert context.tags == []


def test_a_query_that_has_ended_is_not_affected() -> None:
    made, job = lifetime()
    assert on_spark(made, lambda: 25) == 25
    made.cancel()
    assert on_spark(made, lambda: 26) == 26
    assert job.finished == [None, None]


def test_the_first_error_counts() -> None:
    made, _ = lifetime()
    run = Run("first")
    run.on(made)
    made.cancel(BY_SPARK)
    made.cancel()
    assert run.ended == [BY_SPARK]
    assert made.cancelled is BY_SPARK


def test_planning_stops_at_the_next_file() -> None:
    made, job = lifetime()

    def plan() -> None:
        with made.planning():
            job.cancelled(BY_SPARK)
            stopping.check()

    with pytest.raises(SparkCancelledError):
        plan()
    assert job.finished == [BY_SPARK]


# --- the job -------------------------------------------------------------------------------------------


def test_the_job_lasts_until_spark_has_answered() -> None:
    made, job = lifetime()
    Run("first").on(made).end(DOUBT)
    assert job.finished == []
    on_spark(made, lambda: None)
    assert job.finished == [None]


@pytest.mark.parametrize("error", [None, QueryError("Broken."), BY_SPARK])
def test_the_job_ends_with_a_run_that_nothing_can_follow(error: QueryError | None) -> None:
    made, job = lifetime()
    Run("first").on(made).end(error)
    assert job.finished == [error]


@pytest.mark.parametrize("early", [False, True])
def test_the_job_of_a_result_that_nobody_holds_ends(early: bool) -> None:
    made, job = lifetime()
    run = Run("first").on(made)
    if early:
        made.give_up()
    assert job.finished == []
    run.end(DOUBT)
    made.give_up()
    assert job.finished == [DOUBT]


def test_a_client_that_is_faster_than_the_end_of_the_run_goes_on() -> None:
    """The client gets the error before others are told of it."""
    made, job = lifetime()
    end = Run("first").collected.cancel
    made.runs(end)
    made.goes_on_after_run()
    second = Run("second")
    second.on(made)
    made.run_over(end, QueryError("after which nothing follows"))
    assert job.finished == []
    made.cancel()
    assert second.ended == [None]


def test_after_which_errors_a_query_may_go_on() -> None:
    plans = Replanning(1600, lambda _limit: None)
    assert may_go_on(False, plans, TOO_LARGE)
    assert not may_go_on(False, Replanning(0, lambda _limit: None), TOO_LARGE)
    assert may_go_on(False, None, DOUBT)
    assert may_go_on(False, None, HandOverError("The directory is full."))
    assert may_go_on(True, None, DivideByZeroError("Division by zero."))
    assert not may_go_on(False, None, DivideByZeroError("Division by zero."))
    assert not may_go_on(True, plans, BY_SPARK)
    assert not may_go_on(True, plans, KeyboardInterrupt())


# --- time ----------------------------------------------------------------------------------------------


def test_all_runs_share_one_limit() -> None:
    made, _ = lifetime(3600)
    began = made.limit.began_seconds
    Run("first").on(made)
    made.goes_on_after_run()
    with made.planning():
        pass
    Run("second").on(made)
    assert made.limit.began_seconds == began


def test_no_run_begins_after_the_limit() -> None:
    made, job = lifetime(0.001)
    threading.Event().wait(0.01)
    with pytest.raises(QueryTimeoutError, match=r"longer than 0\.001 s"):
        on_spark(made, never)
    assert isinstance(job.finished[0], QueryTimeoutError)


def test_the_limit_ends_sparks_jobs() -> None:
    made, _ = lifetime(0.05)
    context = Context()
    with pytest.raises(QueryTimeoutError) as caught:
        on_spark(made, context.job, context)
    assert caught.value.fields["timeout_seconds"] == 0.05


def test_the_limit_stops_planning() -> None:
    made, job = lifetime(0.05)

    def files() -> None:
        while True:
            stopping.check()

    with pytest.raises(QueryTimeoutError), made.planning():
        files()
    assert isinstance(job.finished[0], QueryTimeoutError)


def test_time_in_which_a_query_waits_for_its_client_does_not_count() -> None:
    made, _ = lifetime(3600)
    began = made.limit.began_seconds
    Run("first").on(made).end(DOUBT)
    threading.Event().wait(0.05)
    on_spark(made, lambda: None)
    assert 0.05 <= made.limit.began_seconds - began < 3600


def test_a_client_that_asks_spark_again_has_the_whole_time_again() -> None:
    made, _ = lifetime(3600)
    on_spark(made, lambda: None)
    began = made.limit.began_seconds
    threading.Event().wait(0.01)
    on_spark(made, lambda: None)
    assert made.limit.began_seconds > began


# --- awaited runs --------------------------------------------------------------------------------------


def awaited(made: QueryLifetime, second: Run, meanwhile: Callable[[], None]) -> AwaitedRun:
    """A run whose first plan fails; `meanwhile` is called while the second is made."""

    def begin(_limit: int) -> Collected:
        made.require()
        meanwhile()
        return second.on(made)

    plans = Replanning(1600, begin)
    made.goes_on_if(plans.avoids)
    first = Run("first").on(made)
    first.end(TOO_LARGE)
    return AwaitedRun(first, made, plans)


def test_an_awaited_query_is_cancelled_while_it_is_planned_again() -> None:
    made, job = lifetime()
    second = Run("second")
    run = awaited(made, second, made.cancel)
    with pytest.raises(QueryCancelledError):
        run.await_rows()
    assert second.ended == [None]
    assert len(job.finished) == 1


def test_the_job_of_an_awaited_query_lasts_until_its_last_run_ends() -> None:
    made, job = lifetime()
    second = Run("second")
    run = awaited(made, second, lambda: second.collected.end(None))
    assert run.await_rows() == []
    assert run.collected is second.collected
    assert job.finished == [None]


def test_what_was_cancelled_meanwhile_is_not_left_to_spark() -> None:
    """Whoever awaits a part of a query lets Spark run it after some errors, but not after this."""
    made, job = lifetime()
    first = Run("first").on(made)
    run = AwaitedRun(first, made, None)
    job.cancelled(BY_SPARK)
    broken = Collected(QueryId("broken"), GRAPH, lambda _because: None)
    broken.end(DOUBT)
    run.collected = broken
    with pytest.raises(SparkCancelledError):
        run.await_rows()

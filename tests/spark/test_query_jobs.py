"""Cancellations of Spark's reach the queries, whatever a single call to the JVM does."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from wallaby.errors import SparkCancelledError, WallabyError
from wallaby.observe.about import About
from wallaby.spark import query_jobs
from wallaby.spark.query_jobs import QueryJob, QueryJobs


class Ended:
    """An exception in the JVM, with or without a condition."""

    def __init__(self, message: str | Exception, **parameters: str) -> None:
        self.message, self.parameters = message, parameters

    def getMessage(self) -> str:  # noqa: N802 - the name is Java's
        if isinstance(self.message, Exception):
            raise self.message
        return self.message


class Jvm:
    """The JVM's side: jobs that Spark ends, failing calls between."""

    def __init__(self) -> None:
        self._jsc: Any = object()
        self.PythonErrorUtils = self
        self.ends: queue.SimpleQueue[tuple[int, Ended] | Exception | None] = queue.SimpleQueue()
        self.finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.finish_fails = False

    def next(self, _milliseconds: int) -> tuple[int, Ended] | None:
        end = self.ends.get(timeout=30)
        if isinstance(end, Exception):
            raise end
        return end

    def finish(self, job: int, _error: str | None) -> None:
        self.finished.put(job)
        if self.finish_fails:
            raise Py4JError("It does not work now.")

    def close(self) -> None:
        self.ends.put(None)

    def getMessageParameters(self, exception: Ended) -> dict[str, str]:  # noqa: N802 - the name is Spark's
        if not exception.parameters:
            raise Py4JError(
                "Method getMessageParameters([class java.lang.NullPointerException]) does not exist"
            )
        return exception.parameters


class Watched:
    """The jobs of an engine, and one query."""

    def __init__(self) -> None:
        self.jvm = Jvm()
        context: Any = self.jvm
        self.jobs = QueryJobs(context, "spared")
        self.jobs._java = self.jobs._jvm = self.jvm
        self.errors: queue.SimpleQueue[WallabyError] = queue.SimpleQueue()
        self.queries = [QueryJob(number, "1", About(), self.jobs._finish) for number in range(3)]
        for job in self.queries:
            job.on_cancel(self.errors.put)
            self.jobs._running[job.number] = job
        for thread in self.jobs._threads:
            thread.start()

    def error(self) -> WallabyError:
        return self.errors.get(timeout=30)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(query_jobs, "PAUSE_SECONDS", 0.001)
    found = Watched()
    yield found
    found.jobs.close()
    assert not any(thread.is_alive() for thread in found.jobs._threads)


CANCELLED = Ended("[SPARK_JOB_CANCELLED] …", jobId="1", reason="by hand")


@pytest.mark.parametrize("failure", [Py4JError("It failed."), Py4JNetworkError("No answer."), OSError()])
def test_a_call_that_fails_ends_no_watch(watched: Watched, failure: Exception) -> None:
    for _ in range(3):
        watched.jvm.ends.put(failure)
    watched.jvm.ends.put((1, CANCELLED))
    error = watched.error()
    assert isinstance(error, SparkCancelledError)
    assert error.what == "Job 1 cancelled by hand."


def test_an_exception_without_a_condition_ends_its_query_and_no_watch(watched: Watched) -> None:
    watched.jvm.ends.put((0, Ended("a null pointer")))
    assert watched.error().what == "a null pointer"
    watched.jvm.ends.put((1, Ended(Py4JError("It is gone."))))
    assert watched.error().what == "Spark ended job 1."
    watched.jvm.ends.put((2, CANCELLED))
    assert watched.error().getMessageParameters() == {"jobId": "1", "reason": "by hand"}


def test_a_spark_that_has_ended_is_not_asked_for_ever(watched: Watched) -> None:
    watched.jvm._jsc = None
    watched.jvm.ends.put(Py4JNetworkError("No answer."))
    watched.jobs._threads[0].join(30)
    assert not watched.jobs._threads[0].is_alive()


def test_failures_in_a_row_have_a_limit(watched: Watched) -> None:
    for _ in range(query_jobs.FAILURES_MAX):
        watched.jvm.ends.put(Py4JError("It failed."))
    watched.jobs._threads[0].join(30)
    assert not watched.jobs._threads[0].is_alive()


def test_an_end_that_spark_does_not_accept_keeps_no_other_from_it(watched: Watched) -> None:
    watched.jvm.finish_fails = True
    for job in watched.queries:
        job.finish(None)
    assert [watched.jvm.finished.get(timeout=30) for _ in watched.queries] == [0, 1, 2]

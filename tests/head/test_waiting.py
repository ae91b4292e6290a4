"""A query that finds no worker waits for one; whoever cancels it, its time limit and the engine's end are heeded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders import pipeline

from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.coordinator.query import QueryPhase
from wallaby.errors import (
    NoWorkersError,
    QueryCancelledError,
    QueryTimeoutError,
    SparkCancelledError,
    WallabyError,
)
from wallaby.exchange.backup import Backup
from wallaby.exchange.memory import ByteBudget
from wallaby.gcs.memory import MemoryGcs, MemoryStore
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.time_limit import TimeLimit
from wallaby.lineage.choose import Static
from wallaby.lineage.names import WorkerId
from wallaby.lineage.tolerance import LINEAGE
from wallaby.node.session import QuerySessionSettings

NEVER_MS = 3_600_000
PLAN: Any = SimpleNamespace(graph=pipeline())
PAYLOAD: Any = SimpleNamespace(
    encode=lambda: b"",
    tolerance=LINEAGE,
    observed=False,
    session_settings=lambda: QuerySessionSettings(Static(1), 1000),
)


class Waiting:
    """A head without workers, and the client of one query, on a thread of its own."""

    def __init__(self, no_workers_ms: int = NEVER_MS, *, recovers: bool = True) -> None:
        self.gcs = MemoryGcs(MemoryStore(lambda: int(time.monotonic() * 1000)))
        none: Any = None
        backups = Backup(ByteBudget(1), (), 0, owner="head")
        settings = CoordinatorSettings(no_workers_ms=no_workers_ms, recovers=recovers)
        self.head = Head(self.gcs, backups, none, lambda _address, _seconds: True, settings)
        self.head.start()
        self.known: list[Collected] = []
        self.errors: list[WallabyError] = []
        self._client = threading.Thread(target=lambda: None)

    def ask(self, **limits: Any) -> None:
        """Submit a query, as a client."""

        def submit() -> None:
            try:
                list(self.head.submit(PLAN, PAYLOAD, known=self.known.append, **limits).batches())
            except WallabyError as error:
                self.errors.append(error)

        self._client = threading.Thread(target=submit)
        self._client.start()
        until(lambda: bool(self.known))

    def error(self) -> WallabyError:
        """The error that the client got."""
        self._client.join(30)
        (error,) = self.errors
        assert self.gcs.queries() == ()
        return error


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    found = Waiting()
    yield found
    found.head.stop(1)


def test_it_can_be_cancelled(waiting: Waiting) -> None:
    waiting.ask()
    waiting.known[0].cancel()
    assert isinstance(waiting.error(), QueryCancelledError)


def test_it_ends_with_the_error_of_whoever_cancels_it(waiting: Waiting) -> None:
    because = SparkCancelledError("Job 3 cancelled part of cancelled job group etl.")
    waiting.ask()
    waiting.known[0].cancel(because)
    assert waiting.error() is because


def test_its_time_limit_counts(waiting: Waiting) -> None:
    waiting.ask(limit=TimeLimit(0.2))
    error = waiting.error()
    assert isinstance(error, QueryTimeoutError)
    assert error.fields["timeout_seconds"] == 0.2


def test_it_ends_with_the_engine(waiting: Waiting) -> None:
    waiting.ask()
    waiting.head.stop(1)
    assert isinstance(waiting.error(), QueryCancelledError)


def test_it_gives_up_in_the_end() -> None:
    waiting = Waiting(no_workers_ms=100)
    waiting.ask()
    assert isinstance(waiting.error(), NoWorkersError)
    waiting.head.stop(1)


def test_it_begins_with_the_first_worker_that_comes(waiting: Waiting) -> None:
    waiting.ask()
    waiting.gcs.register(WorkerId("w0"), "nowhere:1", NEVER_MS)
    until(lambda: waiting.gcs.queries() == (waiting.known[0].query,))
    waiting.known[0].cancel()
    assert isinstance(waiting.error(), QueryCancelledError)


def test_a_client_that_wakes_when_its_query_has_ended_gets_its_result(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy host, all rows of a small query may be there before the thread that submitted it runs again."""
    run, before = Head._run, []

    def wake_late(head: Head, submission: Any, *arguments: Any) -> threading.Event:
        entered = run(head, submission, *arguments)
        assert entered.wait(30)
        before.append((submission.query, submission.query.phase))
        submission.query.phase = QueryPhase.ENDING
        return entered

    monkeypatch.setattr(Head, "_run", wake_late)
    waiting.gcs.register(WorkerId("w0"), "nowhere:1", NEVER_MS)
    collected = waiting.head.submit(PLAN, PAYLOAD)
    (query, phase) = before[0]
    assert collected.query == query.id
    query.phase = phase
    collected.cancel()
    with pytest.raises(QueryCancelledError):
        list(collected.batches())


def test_queries_that_begin_again_without_workers_keep_nobody_from_the_store() -> None:
    """The coordinator has a few threads for its calls; more queries than these may wait for a worker."""
    waiting = Waiting(recovers=False)
    head = waiting.head
    waiting.gcs.register(WorkerId("w0"), "nowhere:1", NEVER_MS)
    clients = [head.submit(PLAN, PAYLOAD, begins_again=True) for _ in range(8)]
    waiting.gcs.expel(WorkerId("w0"))
    until(lambda: not head._submissions)
    called = threading.Event()
    head._performer.calls.submit(called.set)
    assert called.wait(10)
    for collected in clients:
        collected.cancel()
        with pytest.raises(QueryCancelledError):
            list(collected.batches())
    head.stop(1)

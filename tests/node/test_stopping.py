"""A task that runs is stopped between its parts or inside a statement, and never another one in its place."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from wallaby.batches import stopping
from wallaby.errors import KernelError, MemoryLimitError
from wallaby.statements.connection import DuckDbSession, KernelSettings

ENDLESS = "SELECT sum(a.range * b.range) AS n FROM range(1000000) a, range(1000000) b"
LIMIT_SECONDS = 30.0


def test_a_statement_that_never_ends_is_interrupted_with_the_error_that_is_given() -> None:
    owner, error = object(), MemoryLimitError("too much")
    begun, over = threading.Event(), threading.Event()

    def interrupt() -> None:
        begun.wait(LIMIT_SECONDS)
        while not over.wait(0.01):
            stopping.stop(owner, error)

    thread = threading.Thread(target=interrupt)
    thread.start()
    session = DuckDbSession(KernelSettings())

    def run() -> None:
        with stopping.stoppable(owner):
            begun.set()
            session.query(ENDLESS, {})

    try:
        with pytest.raises(MemoryLimitError) as caught:
            run()
        assert caught.value is error
    finally:
        over.set()
        thread.join(LIMIT_SECONDS)
    with stopping.stoppable(object()):
        assert session.query("SELECT 7 AS n", {}).to_pylist() == [{"n": 7}]
    session.close()


def test_a_stream_stops_between_two_batches() -> None:
    owner, error = object(), MemoryLimitError("too much")
    session = DuckDbSession(KernelSettings())
    schema = pa.schema([("n", pa.int64())])
    seen = 0

    def run() -> None:
        nonlocal seen
        with stopping.stoppable(owner):
            for _ in session.stream("SELECT range AS n FROM range(100000000)", {}, schema):
                seen += 1
                stopping.stop(owner, error)

    with pytest.raises(MemoryLimitError):
        run()
    assert seen == 1
    session.close()


def test_others_are_not_stopped_and_nothing_is_left_of_a_stop() -> None:
    owner, error = object(), MemoryLimitError("too much")
    with stopping.stoppable(object()):
        assert stopping.stop(owner, error) == 0
        stopping.check()
    stopping.check()
    with stopping.stoppable(owner):
        assert len(stopping.running(owner)) == stopping.stop(owner, error) == 1
        with pytest.raises(MemoryLimitError):
            stopping.check()
    assert stopping.running(owner) == ()
    with stopping.stoppable(owner):
        stopping.check()


def test_whatever_a_stopped_task_raises_it_ends_with_the_reason_for_the_stop() -> None:
    owner, error = object(), MemoryLimitError("too much")

    def run(*, stopped: bool) -> None:
        with stopping.stoppable(owner):
            if stopped:
                stopping.stop(owner, error)
            raise KernelError("of its own")

    with pytest.raises(MemoryLimitError) as caught:
        run(stopped=True)
    assert caught.value is error
    with pytest.raises(KernelError):
        run(stopped=False)

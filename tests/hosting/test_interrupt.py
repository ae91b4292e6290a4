"""Ctrl-C in the middle of a call into the JVM: TaskManagers live on, other jobs are cancelled, no call is broken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wallaby.spark import interrupt
from wallaby.spark.interrupt import Canceller, MainThreadCalls


def test_the_canceller_works_on_a_thread_of_its_own_and_answers() -> None:
    threads = []
    canceller = Canceller(lambda: threads.append(threading.current_thread().name))
    canceller.cancel()
    canceller.cancel()
    assert threads == ["wallaby-interrupt"] * 2
    canceller.end()


def test_a_slow_cancel_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "CANCEL_SECONDS", 0.05)
    release = threading.Event()

    def wait() -> None:
        release.wait(60)

    canceller = Canceller(wait)
    canceller.cancel()
    assert not release.is_set()
    release.set()
    canceller.end()


def test_its_pipes_are_closed_at_the_end() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    canceller = Canceller(lambda: None)
    canceller.end()
    assert not canceller._thread.is_alive()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


class Client:
    """Stands for Py4J's client: what happens during a call is given."""

    def __init__(self, during: Callable[[], object]) -> None:
        self._during = during

    def send_command(self, command: str, *, retry: bool = True) -> str:
        self._during()
        return self.send_command("again", retry=False) if command == "twice" and retry else f"{command}, done"


def test_an_interrupted_call_ends_first_and_a_second_interrupt_waits_for_nothing() -> None:
    interrupts: list[bool] = []
    client = Client(lambda: interrupts.append(calls.interrupt()))
    calls = MainThreadCalls(client)
    with pytest.raises(KeyboardInterrupt):
        client.send_command("a call")
    assert interrupts == [True]
    assert not calls.interrupted
    # Two interrupts within one call, which retries: the second is the handler's own to raise, at once.
    assert client.send_command("twice") == "again, done"
    assert interrupts == [True, True, False]
    assert not calls.interrupt(), "no call, so nothing to wait for"


def test_nothing_is_cancelled_any_more_when_the_interrupt_comes() -> None:
    cancelled: list[int] = []
    begun = threading.Event()

    def cancel_slowly() -> None:
        begun.set()
        threading.Event().wait(0.1)
        cancelled.append(len(cancelled))

    def during() -> None:
        assert calls.interrupt()
        canceller.ask()
        begun.wait(10)

    client = Client(during)
    canceller = Canceller(cancel_slowly, lambda: calls.interrupted)
    calls = MainThreadCalls(client, canceller.wait)
    with pytest.raises(KeyboardInterrupt):
        client.send_command("a call")
    then = len(cancelled)
    assert then
    canceller.end()
    assert len(cancelled) == then


def test_calls_of_other_threads_and_calls_without_an_interrupt_are_as_ever() -> None:
    answers: list[str] = []
    client = Client(lambda: None)
    calls = MainThreadCalls(client)
    assert client.send_command("a call") == "a call, done"
    interrupts: list[bool] = []
    client._during = lambda: interrupts.append(calls.interrupt())
    thread = threading.Thread(target=lambda: answers.append(client.send_command("elsewhere")))
    thread.start()
    thread.join(10)
    assert (answers, interrupts) == (["elsewhere, done"], [False])
    calls.end()
    assert "send_command" not in vars(client)


def test_what_an_interrupted_call_starts_later_is_cancelled_too() -> None:
    cancelled = threading.Semaphore(0)
    there = [True]
    canceller = Canceller(cancelled.release, lambda: there[0])
    canceller.ask()
    assert all(cancelled.acquire(timeout=10) for _ in range(3))
    there[0] = False
    canceller.end()

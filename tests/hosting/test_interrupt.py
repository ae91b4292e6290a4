"""Ctrl-C in the middle of a call into the JVM: TaskManagers live on, other jobs are cancelled, no call is broken."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from wallaby.spark import interrupt
from wallaby.spark.interrupt import Canceller


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
    assert "wallaby-interrupt" not in {thread.name for thread in threading.enumerate()}
    assert len(list(Path("/proc/self/fd").iterdir())) == before

"""A thread that fails says so: whoever waits for its answer would wait for ever."""

from __future__ import annotations

import queue
import threading

import pytest

from wallaby.node.pools import CallPool, GroupCommitter, KernelPool

LIMIT_SECONDS = 10.0


def _raise() -> None:
    raise OSError("the disk is gone")


@pytest.fixture
def told() -> queue.SimpleQueue[BaseException]:
    return queue.SimpleQueue()


def test_a_call_that_raises_is_told_and_the_thread_goes_on(told: queue.SimpleQueue[BaseException]) -> None:
    pool = CallPool("test", 1, told.put)
    done: queue.SimpleQueue[str] = queue.SimpleQueue()
    pool.submit(_raise)
    pool.submit(lambda: done.put("next"))
    assert isinstance(told.get(timeout=LIMIT_SECONDS), OSError)
    assert done.get(timeout=LIMIT_SECONDS) == "next"
    pool.stop(LIMIT_SECONDS)


def test_each_kernel_thread_does_a_chore_once_idle_or_after_its_job(
    told: queue.SimpleQueue[BaseException],
) -> None:
    pool = KernelPool("test", 2, told.put)
    begun: queue.SimpleQueue[int] = queue.SimpleQueue()
    go_on: queue.SimpleQueue[None] = queue.SimpleQueue()
    done: queue.SimpleQueue[int] = queue.SimpleQueue()

    def job() -> None:
        begun.put(threading.get_ident())
        go_on.get(timeout=LIMIT_SECONDS)

    pool.submit((0,), job)
    busy = begun.get(timeout=LIMIT_SECONDS)
    pool.on_each(lambda: done.put(threading.get_ident()))
    assert done.get(timeout=LIMIT_SECONDS) != busy
    assert done.empty()
    go_on.put(None)
    assert done.get(timeout=LIMIT_SECONDS) == busy
    pool.stop(LIMIT_SECONDS)
    assert done.empty()
    assert told.empty()


def test_a_kernel_that_raises_is_told_and_counts_as_idle_again(
    told: queue.SimpleQueue[BaseException],
) -> None:
    pool = KernelPool("test", 1, told.put)
    done: queue.SimpleQueue[str] = queue.SimpleQueue()
    pool.submit((0,), _raise)
    pool.submit((1,), lambda: done.put("next"))
    assert isinstance(told.get(timeout=LIMIT_SECONDS), OSError)
    assert done.get(timeout=LIMIT_SECONDS) == "next"
    pool.stop(LIMIT_SECONDS)


def test_a_commit_that_raises_is_told(told: queue.SimpleQueue[BaseException]) -> None:
    committer = GroupCommitter("test", lambda *_: _raise(), told.put)
    committer.submit("group", "request")
    assert isinstance(told.get(timeout=LIMIT_SECONDS), OSError)
    committer.stop(LIMIT_SECONDS)


def test_a_committer_that_is_stopped_commits_what_waits_and_ends(
    told: queue.SimpleQueue[BaseException],
) -> None:
    done: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def commit(group: str, requests: list[str]) -> None:
        if requests == ["first"]:  # both find the thread busy, so it collects them together
            committer.submit(group, "second")
            stop = threading.Thread(target=committer.stop, args=(0.0,))
            stop.start()
            stop.join(LIMIT_SECONDS)
        done.put(requests)

    committer = GroupCommitter("test-stopped", commit, told.put)
    (thread,) = [each for each in threading.enumerate() if each.name == "test-stopped-commit"]
    committer.submit("group", "first")
    assert [done.get(timeout=LIMIT_SECONDS) for _ in range(2)] == [["first"], ["second"]]
    thread.join(LIMIT_SECONDS)
    assert not thread.is_alive()

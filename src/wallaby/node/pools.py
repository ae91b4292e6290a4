"""The threads of a node: kernels by priority, calls to the store, pushes, and group commit.

Kernel threads only compute. What waits for disk, network or store has threads of its own, so that a slow
store or a slow peer never keeps a core idle. A job that raises is an error of ours, or one of the machine that nobody
foresaw: whoever waits for its answer would wait for ever, so all pools are told whom to call, and the node ends.
"""

from __future__ import annotations

import heapq
import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

_log = logging.getLogger(__name__)
#: Commits that go in one call, at most.
COMMITS_PER_CALL = 128

#: Told of a job that raised.
Failed = Callable[[BaseException], None]


def _do(job: Callable[[], None], failed: Failed) -> None:
    """Run a job; whatever it raises is told, and the thread lives on."""
    try:
        job()
    except BaseException as error:  # noqa: BLE001 - it is told, and ends the node
        _log.exception("%s failed", threading.current_thread().name)
        failed(error)


class KernelPool:
    """As many threads as cores; the job with the lowest priority number runs first, then the oldest."""

    def __init__(self, name: str, threads: int, failed: Failed) -> None:
        self._failed = failed
        self._jobs: list[tuple[tuple[int, ...], int, Callable[[], None]]] = []
        self._ready = threading.Condition()
        self._count = 0
        self._busy = 0
        self._stopping = False
        self._at_once = threads
        #: What each thread is to do before its next job.
        self._chores: dict[threading.Thread, Callable[[], None]] = {}
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-kernel-{at}", daemon=True)
            for at in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, priority: tuple[int, ...], job: Callable[[], None]) -> None:
        """Run a job on some thread."""
        with self._ready:
            self._count += 1
            heapq.heappush(self._jobs, (priority, self._count, job))
            self._ready.notify()

    def has_idle(self) -> bool:
        """Is a thread free and nothing waiting for one? A guess: it may change at once."""
        return self._busy + len(self._jobs) < len(self._threads)

    def narrow(self, at_once: int | None) -> None:
        """Begin jobs only while fewer than so many run, at least one; None: as many as there are threads."""
        with self._ready:
            self._at_once = len(self._threads) if at_once is None else max(at_once, 1)
            self._ready.notify_all()

    def on_each(self, chore: Callable[[], None]) -> None:
        """Have each thread do something once: at once if it is idle, else after what it runs."""
        with self._ready:
            self._chores = dict.fromkeys(self._threads, chore)
            self._ready.notify_all()

    def stop(self, wait_seconds: float) -> None:
        """Drop what waits; let what runs come to its end."""
        with self._ready:
            self._stopping = True
            self._jobs.clear()
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(wait_seconds)

    def _run(self) -> None:
        while True:
            job = chore = None
            with self._ready:
                while not self._stopping:
                    chore = self._chores.pop(threading.current_thread(), None)
                    if chore is not None:
                        break
                    if self._jobs and self._busy < self._at_once:
                        _, _, job = heapq.heappop(self._jobs)
                        self._busy += 1
                        break
                    self._ready.wait(timeout=1.0)
                if self._stopping:
                    return
            if chore is not None:
                _do(chore, self._failed)
                continue
            assert job is not None
            _do(job, self._failed)
            del job  # or an idle thread holds on to the rows of its last task
            with self._ready:
                self._busy -= 1
                if self._jobs:
                    self._ready.notify()  # one that had to wait while others ran


class CallPool:
    """Threads that wait for others: each job runs on the next free one, in order of submission."""

    def __init__(self, name: str, threads: int, failed: Failed) -> None:
        self._failed = failed
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{at}", daemon=True) for at in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job."""
        self._jobs.put(job)

    def stop(self, wait_seconds: float) -> None:
        """Let what was submitted come to its end, then end."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(wait_seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(job, self._failed)
            del job  # or an idle thread holds on to what it sent last


class GroupCommitter:
    """One thread that commits whatever has become ready since the last call, in one call per query and epoch."""

    def __init__(self, name: str, commit: Callable[[Any, list[Any]], None], failed: Failed) -> None:
        self._failed = failed
        self._waiting: queue.SimpleQueue[tuple[Any, Any] | None] = queue.SimpleQueue()
        self._commit = commit
        self._thread = threading.Thread(target=self._run, name=f"{name}-commit", daemon=True)
        self._thread.start()

    def submit(self, group: Any, request: Any) -> None:
        """Commit a request together with others of its group."""
        self._waiting.put((group, request))

    def stop(self, wait_seconds: float) -> None:
        """Commit what waits, then end."""
        self._waiting.put(None)
        self._thread.join(wait_seconds)

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            groups = self._gathered(first)
            del first  # or an idle thread holds on to the query that committed last
            while groups:
                _do(partial(self._commit, *groups.popitem()), self._failed)

    def _gathered(self, first: tuple[Any, Any]) -> dict[Any, list[Any]]:
        """A request and those that came after it, by group; the group that came last is last."""
        groups: dict[Any, list[Any]] = {first[0]: [first[1]]}
        for _ in range(COMMITS_PER_CALL):
            try:
                entry = self._waiting.get_nowait()
            except queue.Empty:
                break
            if entry is None:
                self._waiting.put(None)
                break
            groups.setdefault(entry[0], []).append(entry[1])
        return dict(reversed(groups.items()))

"""The threads of a node: kernels by priority, calls to the store, pushes, and group commit.

Kernel threads only compute. Jobs that wait for disk, network or store have their own threads, so that a slow store or
peer never keeps a core idle. If a job raises, that is a bug or an unforeseen failure of the machine, and its answer
would never come. So all pools report it to a callback, and the node ends.
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
#: The most commits in one call.
COMMITS_PER_CALL = 128

#: The callback for a job that raised.
_Failed = Callable[[BaseException], None]


def _do(job: Callable[[], None], failed: _Failed) -> None:
    """Run a job; report any exception and keep the thread alive."""
    try:
        job()
    except BaseException as error:  # noqa: BLE001 - it is told, and ends the node
        _log.exception("%s failed", threading.current_thread().name)
        failed(error)


class KernelPool:
    """As many threads as cores; the job with the lowest priority number runs first, then the oldest."""

    def __init__(self, name: str, threads: int, failed: _Failed) -> None:
        self._failed = failed
        self._jobs: list[tuple[tuple[int, ...], int, Callable[[], None]]] = []
        self._ready = threading.Condition()
        self._count = 0
        self._busy = 0
        self._stopping = False
        self._at_once = threads
        #: Actions that each thread performs before its next job.
        self._chores: dict[threading.Thread, Callable[[], None]] = {}
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-kernel-{at}", daemon=True)
            for at in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, priority: tuple[int, ...], job: Callable[[], None]) -> None:
        """Run a job on one of the threads."""
        with self._ready:
            self._count += 1
            heapq.heappush(self._jobs, (priority, self._count, job))
            self._ready.notify()

    def has_idle(self) -> bool:
        """Is a thread free while no job waits? Only a hint: it may change at once."""
        return self._busy + len(self._jobs) < len(self._threads)

    def has_busy(self) -> bool:
        """Does a thread run a job?"""
        return self._busy > 0

    def narrow(self, at_once: int | None) -> None:
        """Limit how many jobs run at once, at least one; None: as many as there are threads."""
        with self._ready:
            self._at_once = len(self._threads) if at_once is None else max(at_once, 1)
            self._ready.notify_all()

    def on_each(self, chore: Callable[[], None]) -> None:
        """Let each thread perform an action once: at once if it is idle, otherwise after its job."""
        with self._ready:
            self._chores = dict.fromkeys(self._threads, chore)
            self._ready.notify_all()

    def stop(self, wait_seconds: float) -> None:
        """Drop waiting jobs, and let running ones finish."""
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
            del job  # otherwise an idle thread would keep the rows of its last task alive
            with self._ready:
                self._busy -= 1
                if self._jobs:
                    self._ready.notify()  # wake a thread that had to wait while others ran


class CallPool:
    """Threads for jobs that wait: each job runs on the next free one, in order of submission."""

    def __init__(self, name: str, threads: int, failed: _Failed) -> None:
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
        """Let submitted jobs finish, then end."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(wait_seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(job, self._failed)
            del job  # otherwise an idle thread would keep what it sent last alive


class GroupCommitter:
    """A thread that commits everything that has become ready since its last call, per query and epoch."""

    def __init__(self, name: str, commit: Callable[[Any, list[Any]], None], failed: _Failed) -> None:
        self._failed = failed
        self._waiting: queue.SimpleQueue[tuple[Any, Any] | None] = queue.SimpleQueue()
        self._commit = commit
        self._thread = threading.Thread(target=self._run, name=f"{name}-commit", daemon=True)
        self._thread.start()

    def submit(self, group: Any, request: Any) -> None:
        """Commit a request together with others of its group."""
        self._waiting.put((group, request))

    def stop(self, wait_seconds: float) -> None:
        """Commit waiting requests, then end."""
        self._waiting.put(None)
        self._thread.join(wait_seconds)

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            groups = self._gathered(first)
            del first  # otherwise an idle thread would keep the query of its last commit alive
            while groups:
                _do(partial(self._commit, *groups.popitem()), self._failed)

    def _gathered(self, first: tuple[Any, Any]) -> dict[Any, list[Any]]:
        """A request and those that followed it, by group; the group of the last request is last."""
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

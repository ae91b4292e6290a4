"""The control loop of one process: one thread that owns all protocol state and drives all generators.

Sessions, inboxes and outboxes are touched by this thread only, so they need no locks. Whatever may block
(kernels, disk, network, the store) runs on other threads, which post their answers here. The loop itself
waits only for the next job.

It waits on a condition and not in `SimpleQueue.get(timeout=…)`. Before Python 3.13, that call waits without a limit if
its time passes while it is being called, which happens on a busy machine: then no timer would go off any more, and
queries would neither end nor recover.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)
#: The longest that the loop sleeps when there is no timer.
IDLE_SECONDS = 1.0


class Loop:
    """Jobs that any thread posts, and jobs for later times."""

    def __init__(self, name: str, on_error: Callable[[BaseException], None]) -> None:
        self._posted: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        #: Its lock may be taken twice by one thread: collecting garbage may post in the middle of posting.
        self._news = threading.Condition()
        self._timers: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._on_error = on_error
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the loop's thread."""
        self._thread.start()

    def post(self, do: Callable[..., None], *arguments: Any) -> None:
        """Run a job on the loop's thread as soon as it is free. Any thread may call this."""
        with self._news:
            self._posted.append((do, arguments))
            self._news.notify()

    def after(self, delay_seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        """Run a job later. Only for the loop's thread."""
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + delay_seconds, self._count, do, arguments))

    def stop(self, wait_seconds: float = 5.0) -> None:
        """End the loop; posted jobs are dropped."""
        with self._news:
            self._stopping = True
            self._news.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(wait_seconds)

    @property
    def is_stopped(self) -> bool:
        """Has it been told to end?"""
        return self._stopping

    def _run(self) -> None:
        while not self._stopping:
            entry = self._next(self._sleep_seconds())
            try:
                if entry is not None and not self._stopping:
                    entry[0](*entry[1])
                entry = None  # otherwise an idle loop would keep the query of its last job alive
                self._run_due_timers()
            except Exception as error:  # noqa: BLE001 - whatever it is, the process must say so and end
                _log.exception("the control loop failed")
                self._stopping = True
                self._on_error(error)

    def _next(self, timeout: float) -> tuple[Callable[..., None], tuple[Any, ...]] | None:
        """The next posted job; None if the time passes without one, or the loop is to end."""
        with self._news:
            if not self._posted and not self._stopping:
                self._news.wait(timeout)
            return self._posted.popleft() if self._posted else None

    def _sleep_seconds(self) -> float:
        if not self._timers:
            return IDLE_SECONDS
        return min(max(self._timers[0][0] - time.monotonic(), 0.0), IDLE_SECONDS)

    def _run_due_timers(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic() and not self._stopping:
            self._run_timer(*heapq.heappop(self._timers))

    def _run_timer(
        self, _at: float, _number: int, do: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        do(*arguments)

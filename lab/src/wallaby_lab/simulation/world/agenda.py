"""The virtual clock and its agenda."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Agenda:
    """Events at future times; time jumps from one to the next."""

    def __init__(self) -> None:
        self.now_us = 0
        #: What is to happen, as a heap: the time, a number that keeps the order, and the call.
        self.entries: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def now_ms(self) -> int:
        """The time in milliseconds."""
        return self.now_us // 1000

    def after(self, delay_us: int, do: Callable[..., None], *arguments: Any) -> None:
        """Schedule an event; events of the same time happen in the order in which they were scheduled."""
        self._count += 1
        at_us = self.now_us + delay_us if delay_us > 0 else self.now_us
        heapq.heappush(self.entries, (at_us, self._count, do, arguments))

    def next(self) -> bool:
        """Run the next event; False if there is none."""
        if not self.entries:
            return False
        self.now_us, _, do, arguments = heapq.heappop(self.entries)
        do(*arguments)
        return True

"""One building block: our time and the bare reference's for the same amount of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from wallaby.observe.units import duration


@dataclass(frozen=True, slots=True)
class Block:
    """Our seconds and the reference's for `amount` of `unit`. Without an amount, the seconds are the figure."""

    name: str
    reference: str
    seconds: float
    bare_seconds: float
    amount: float = 0.0
    unit: str = ""

    @property
    def ratio(self) -> float:
        """Our time over the reference's."""
        return self.seconds / self.bare_seconds

    def shown(self, seconds: float) -> str:
        """A time as amount per second, or as seconds."""
        return f"{self.amount / seconds:,.1f} {self.unit}/s" if self.amount else duration(seconds)


def best_of(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The best time of each, taken in turns, after an untimed turn."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for at, work in enumerate(works):
            began = time.perf_counter()
            work()
            if turn:
                times[at].append(time.perf_counter() - began)
    return [min(each) for each in times]

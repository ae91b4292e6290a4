"""What a coordinator must give up: a silent store at its limit, neither before nor later; a query that nobody wants."""

from __future__ import annotations

from typing import Any

from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.running import Running

#: How much longer a coordinator may take, because it asks from time to time and may be held.
SLACK_MS = 700


class Silence:
    """How long the store has not answered the coordinator, from its questions alone."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._since_ms: int | None = None

    def restarted(self) -> None:
        """Another coordinator begins, which knows nothing of the time before."""
        self._since_ms = None

    def answers(self, answer: Any, now_ms: int) -> None:
        """The store answers a look at the leases; None: it does not."""
        if answer is not None:
            self._since_ms = None
        elif self._since_ms is None:
            self._since_ms = now_ms
        elif now_ms - self._since_ms > self._limit_ms + SLACK_MS:
            raise InvariantViolation(
                7, f"the store is silent for {now_ms - self._since_ms} ms, and waited for"
            )

    def is_too_long(self, now_ms: int) -> bool:
        """Has it been silent for longer than the limit?"""
        return self._since_ms is not None and now_ms - self._since_ms > self._limit_ms


def require_ending(running: Running) -> None:
    """A query that was cancelled, or whose result was released, ends when the coordinator next looks at it."""
    if running.unwanted and not running.query.is_over:
        raise InvariantViolation(7, f"{running.query.id} goes on, and nobody wants anything of it")

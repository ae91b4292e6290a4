"""What a coordinator must give up: a silent store at its limit, neither before nor later; a query that nobody wants.

And whom the stall watch must ask.
"""

from __future__ import annotations

from typing import Any

from wallaby.coordinator.effects import Inquire
from wallaby.lineage.names import HEAD
from wallaby.node.actors import COORDINATOR
from wallaby_lab.invariants.audit import InvariantViolation
from wallaby_lab.simulation.world.process import SimulatedActor
from wallaby_lab.simulation.world.running import Running

#: How much longer a coordinator may take, because it asks from time to time and may be held.
SLACK_MS = 700


class Silence:
    """How long the store has not answered the coordinator, from its questions alone."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._since_ms: int | None = None
        #: How long the head itself was paused meanwhile.
        self._paused_ms = 0

    def paused(self, pause_ms: int) -> None:
        """The head is paused, and can give up nothing meanwhile."""
        self._paused_ms += pause_ms

    def restarted(self) -> None:
        """Another coordinator begins, which knows nothing of the time before."""
        self._since_ms = None

    def answers(self, answer: Any, now_ms: int) -> None:
        """The store answers a look at the leases; None: it does not."""
        if answer is not None:
            self._since_ms, self._paused_ms = None, 0
        elif self._since_ms is None:
            self._since_ms = now_ms
        elif now_ms - self._since_ms > self._limit_ms + self._paused_ms + SLACK_MS:
            raise InvariantViolation(
                7, f"the store is silent for {now_ms - self._since_ms} ms, and waited for"
            )

    def is_too_long(self, now_ms: int) -> bool:
        """Has it been silent for longer than the limit?"""
        return self._since_ms is not None and now_ms - self._since_ms > self._limit_ms


def judge_status(actor: SimulatedActor, running: Running, status: Any, effect: Any) -> None:
    """The coordinator, or the stall watch, has read the status of a query, and goes on with an effect.

    A query that was cancelled, or whose result was released, ends when the coordinator next looks at it. The stall
    watch asks everybody who belongs to a query: whoever is not asked may be busy (invariant 7).
    """
    if actor.name == COORDINATOR and running.unwanted and not running.query.is_over:
        raise InvariantViolation(7, f"{running.query.id} goes on, and nobody wants anything of it")
    if isinstance(effect, Inquire) and {*effect.workers} != {HEAD, *status.members, *status.draining}:
        raise InvariantViolation(7, f"only {effect.workers} are asked how {running.query.id} stands")

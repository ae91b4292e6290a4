"""Lose a TaskManager during random queries: it kills itself at a fail point that the query's seed chooses.

The queries are too short to be struck from outside. A query that never reaches the chosen point is undisturbed, and is
not counted as one with a loss.
"""

from __future__ import annotations

from random import Random
from typing import Final

from wallaby.faults.orders import ANYBODY, FaultAct, FaultOrder, FaultOrders
from wallaby.lineage.effects import FailPoint

#: The fail points at which a worker can be lost during a query.
_POINTS: Final = (
    FailPoint.READ,
    FailPoint.EXECUTE,
    FailPoint.BACK_UP,
    FailPoint.COMMIT,
    FailPoint.ADVANCE,
    FailPoint.DELIVER,
)
_VISITS_MAX: Final = 2


class Losses:
    """Orders one loss after the other."""

    def __init__(self, book: FaultOrders) -> None:
        self._book = book
        self._given = ""

    def order(self, seed: int) -> FaultOrder:
        """Order the loss of a query."""
        random = Random(f"loss {seed}")
        order = FaultOrder(
            ANYBODY,
            random.choice(_POINTS),
            random.randint(1, _VISITS_MAX),
            FaultAct.KILL,
            after=random.random() < 0.5,
        )
        self._given = self._book.give([order])
        return order

    def end(self) -> bool:
        """Withdraw the order; was a worker lost?"""
        struck = bool(self._book.struck(self._given))
        self._book.give([])
        return struck

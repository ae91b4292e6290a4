"""A TaskManager is lost in the middle of random queries: it kills itself at a fail point that the query's seed chooses.

The queries are over too soon to be struck from outside. A query that never comes to the point that was chosen is
answered undisturbed; it is counted, and not as one that lost a worker.
"""

from __future__ import annotations

from random import Random
from typing import Final

from wallaby.faults.orders import ANYBODY, FaultAct, FaultOrder, FaultOrders
from wallaby.lineage.effects import FailPoint

#: Where a worker can be lost in the middle of a query.
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
        """Order nothing any more; has a worker been lost?"""
        struck = bool(self._book.struck(self._given))
        self._book.give([])
        return struck

"""Reasons why something cannot run on Wallaby, in one form for the plan reader and the planner.

Both return `Reason`s; the engine shows them at their node and lets Spark run the query. A reason is no error: the user
gets the answer, only not from Wallaby.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallaby.errors import WallabyError


@dataclass(frozen=True, slots=True)
class Reason:
    """`what` cannot run (a node or an expression), `why`, and what `remedy` would change it, if any."""

    what: str
    why: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f" ({self.remedy})" if self.remedy else "")


class UnplannableError(WallabyError):
    """A relation for which there is no stage graph. The engine catches it and runs the query on Spark."""

    condition = "WALLABY_UNPLANNABLE"

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(map(str, reasons)), fix="Spark runs this query.")

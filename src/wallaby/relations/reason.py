"""Reasons why something cannot run on Wallaby, in one form for the plan reader and the planner.

Both return `Reason`s; the engine shows them at their node and lets Spark run the query. A reason is no error: the user
gets the answer, only not from Wallaby.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOCAL_ROWS: Final = "local rows need no engine"
COMMAND: Final = "commands have run already"
#: Why queries stay on Spark that nobody would expect anywhere else.
NOTHING_TO_DO: Final = frozenset({LOCAL_ROWS, COMMAND})


@dataclass(frozen=True, slots=True)
class Reason:
    """`what` cannot run (a node or an expression), `why`, and what `remedy` would change it, if any."""

    what: str
    why: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f" ({self.remedy})" if self.remedy else "")

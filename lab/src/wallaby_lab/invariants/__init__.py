"""The invariants of docs/protocol.md as code, for the simulation and for `wallaby chaos`.

They share no code with the algorithms that they check: `audit` follows a query from its submission to its end, and
`smallest` computes independently what a loss requires.
"""

from __future__ import annotations

from wallaby.errors import InternalError


class InvariantViolation(InternalError):  # noqa: N818 - it is what it is called
    """The protocol broke one of its own rules."""

    condition = "WALLABY_INVARIANT_VIOLATION"

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"Invariant {number}: {what}.", number=number)
        self.number = number

"""The error of a check that has found an invariant broken."""

from __future__ import annotations

from wallaby.errors import InternalError


class InvariantViolation(InternalError):  # noqa: N818 - it is what it is called
    """The protocol broke one of its own rules."""

    condition = "WALLABY_INVARIANT_VIOLATION"

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"Invariant {number}: {what}.", number=number)
        self.number = number

"""Choices among values. Of CASE, IF and COALESCE a branch that is not taken raises no error, in Spark and here."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import FLOATING, ORDERED
from wallaby.functions.catalyst.entry import exact, guarded

_BRANCHES: Final = "a branch is evaluated (so raises errors) only for the rows that take it"

ENTRIES: Final = (
    guarded("CaseWhen", "case", guard=_BRANCHES),
    guarded("If", "if", guard=_BRANCHES),
    guarded("Coalesce", "coalesce", guard=_BRANCHES),
    exact("Greatest", "greatest", ORDERED),
    exact("Least", "least", ORDERED),
    exact("NaNvl", "nanvl", FLOATING),
)

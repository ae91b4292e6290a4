"""CASE, IF and COALESCE: a branch that is not taken raises no error, in Spark and here."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.entry import guarded, unsupported

_BRANCHES: Final = "a branch is evaluated (so raises errors) only for the rows that take it"

ENTRIES: Final = (
    guarded("CaseWhen", "case", guard=_BRANCHES),
    guarded("If", "if", guard=_BRANCHES),
    guarded("Coalesce", "coalesce", guard=_BRANCHES),
    unsupported("Greatest", "`greatest` has no kernel yet", "write it with CASE"),
    unsupported("Least", "`least` has no kernel yet", "write it with CASE"),
    unsupported("NaNvl", "`nanvl` has no kernel yet"),
)

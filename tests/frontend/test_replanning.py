"""Which errors another plan avoids, and how often one is tried."""

from __future__ import annotations

from typing import cast

from wallaby.errors import MemoryLimitError
from wallaby.frontend.replanning import Replanning
from wallaby.head.collected import Collected

BROADCAST = MemoryLimitError("The build sides are too large.", setting="spark.wallaby.broadcast")
OTHER = MemoryLimitError("A row is too large.", setting="spark.wallaby.memory")


def replanning(limit_bytes: int) -> tuple[Replanning, list[int]]:
    tried: list[int] = []

    def begin(limit: int) -> Collected:
        tried.append(limit)
        return cast("Collected", object())

    return Replanning(limit_bytes, begin), tried


def test_the_limit_is_lowered_and_then_nothing_is_broadcast() -> None:
    plans, tried = replanning(1600)
    assert plans.after(BROADCAST) is not None
    assert plans.after(BROADCAST) is not None
    assert plans.after(BROADCAST) is None
    assert tried == [100, 0]


def test_another_error_is_not_avoided_by_another_plan() -> None:
    plans, tried = replanning(1600)
    assert plans.after(OTHER) is None
    assert tried == []


def test_without_broadcasts_there_is_no_other_plan() -> None:
    plans, tried = replanning(0)
    assert plans.after(BROADCAST) is None
    assert tried == []

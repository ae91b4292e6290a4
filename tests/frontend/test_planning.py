"""Planning a relation: whoever does not want it planned is asked first, when all statistics are there."""

from __future__ import annotations

from typing import Any

import pytest

from wallaby.config.settings import read_settings
from wallaby.frontend import planning
from wallaby.frontend.planning import QueryPlanner
from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.leaf import SparkLeaf
from wallaby.plan.rules.share_subplans import SharedParts
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Column
from wallaby.relations.reason import Reason
from wallaby.relations.relation import Relation, Sort
from wallaby.relations.types import LONG
from wallaby.worker.memory.shares import MemoryShares

LEAF = SparkLeaf(0, (0,), (1,), (), ("UnknownSource",), 8 << 20)
SORTED = Sort(LEAF.scan((Column(1, "a", LONG, nullable=True),)), ())


@pytest.fixture
def planner() -> QueryPlanner:
    return QueryPlanner(1, 2, MemoryShares(1 << 30, 2), lambda: None)


def test_what_somebody_is_against_is_not_planned(
    planner: QueryPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []

    def against(relation: Relation | SharedParts, statistics: Statistics, sizes: PlanSettings) -> Reason:
        assert relation is SORTED
        assert sizes.channels == 2
        rows.extend(table.rows for table in statistics.tables)
        return Reason("part", "too little")

    def never(*_: Any) -> None:
        raise AssertionError("it is planned")

    assert planner.physical(SORTED, read_settings({}, {}), (LEAF,))[0] is not None
    monkeypatch.setattr(planning, "plan_prepared", never)
    monkeypatch.setattr(planning, "prepare", never)
    found = planner.physical(SORTED, read_settings({}, {}), (LEAF,), against=against)
    assert found == (None, (Reason("part", "too little"),))
    assert rows == [1 << 20]


def test_what_somebody_is_against_once_it_is_prepared_is_not_cut_into_stages(
    planner: QueryPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def against(
        relation: Relation | SharedParts, statistics: Statistics, sizes: PlanSettings
    ) -> Reason | None:
        del statistics, sizes
        asked.append(relation)
        return Reason("part", "too little") if isinstance(relation, SharedParts) else None

    def never(*_: Any) -> None:
        raise AssertionError("it is planned")

    monkeypatch.setattr(planning, "plan_prepared", never)
    found = planner.physical(SORTED, read_settings({}, {}), (LEAF,), against=against)
    assert found == (None, (Reason("part", "too little"),))
    assert asked[0] is SORTED
    assert len(asked) == 2

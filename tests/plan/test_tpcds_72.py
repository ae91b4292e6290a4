"""TPC-DS 72 at scale factor 1: a join whose matches are hundreds of times its input must not come first.

Sales meet the stock of their item in every week and warehouse. That the week must be the same stands in another join;
in the written order there are hundreds of millions of rows before it.
"""

from __future__ import annotations

import os

from tests.plan.checks import check_plan
from tests.plan.tpcds_fixtures import FOLDER, load

from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.explain import explain
from wallaby.plan.planner import plan, rewrite
from wallaby.plan.rules import RULES
from wallaby.plan.rules.order_joins import choices, order_joins
from wallaby.plan.settings import PlanSettings
from wallaby.relations.relation import Join, Relation, Scan, children_of

STATISTICS: Statistics = load("q72.statistics.json", Statistics)  # type: ignore[assignment]  # the codec checks it
QUERY: Relation = load("q72.relation.json", Relation)  # type: ignore[assignment]  # the codec checks it


def test_the_stage_graph_is_as_reviewed() -> None:
    made = plan(QUERY, STATISTICS, PlanSettings(channels=4, workers=2))
    check_plan(made)
    golden = FOLDER / "q72.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(explain(made), encoding="utf-8")
    assert explain(made) == golden.read_text(encoding="utf-8"), "review it, then WALLABY_GOLDEN=write"


def test_no_result_on_the_way_is_larger_than_what_is_read() -> None:
    relation = QUERY
    for rule in RULES[: RULES.index(order_joins)]:
        relation = rule(relation, STATISTICS)
    (choice,) = choices(relation, STATISTICS)

    def largest(order: object) -> float:
        if isinstance(order, int):
            return 0.0
        assert isinstance(order, tuple)
        return max(choice.graph.rows(_bits(order)), *map(largest, order))

    assert largest(choice.written) > 50e6
    assert largest(choice.chosen) < 1e6


def test_stock_is_joined_by_item_and_date_at_once() -> None:
    (stock,) = (
        each
        for each in _joins(rewrite(QUERY, STATISTICS))
        if "inventory" in (_label(each.left), _label(each.right))
    )
    assert len(stock.left_keys) == 2
    assert stock.residual is not None, "fewer in stock than sold"


def _bits(order: object) -> int:
    if isinstance(order, int):
        return 1 << order
    assert isinstance(order, tuple)
    return _bits(order[0]) | _bits(order[1])


def _joins(relation: Relation) -> list[Join]:
    below = [each for child in children_of(relation) for each in _joins(child)]
    return [relation, *below] if isinstance(relation, Join) else below


def _label(relation: Relation) -> str:
    """The table of a side, if it is one."""
    while not isinstance(relation, Join) and children_of(relation):
        (relation,) = children_of(relation)
    return relation.label if isinstance(relation, Scan) else ""

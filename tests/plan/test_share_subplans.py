"""Equal parts of a query are found whatever their columns are called, and nothing else is taken for equal."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plan.builders import (
    aggregate,
    aggregation,
    all_of,
    explain_relation,
    holds,
    join,
    literal,
    named,
    same,
    statistics_of,
    tpch,
)
from tests.plan.checks import check_plan
from tests.plan.data import rows_for
from tests.plan.interpreter import Rows, Tables, evaluate, run

from wallaby.plan.planner import plan
from wallaby.plan.rules.share_subplans import share_subplans
from wallaby.plan.settings import PlanSettings
from wallaby.relations.expression import Column
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Aggregate, Filter, Input, Relation, Scan

FIXTURES = Path(__file__).parent / "fixtures" / "rules"
T = tpch(0.5)
STATISTICS = statistics_of(T)
LINE, ORDERS = T["lineitem"], T["orders"]


def again(scan: Scan, first: int) -> tuple[Scan, dict[str, Column]]:
    """The same table under other column ids, as Spark reads a view for the second time."""
    columns = tuple(replace(c, id=first + at) for at, c in enumerate(scan.columns))
    return replace(scan, columns=columns), {c.name: c for c in columns}


def per_order(scan: Scan, columns: dict[str, Column], first: int, *functions: str) -> Aggregate:
    rows = Filter(scan, holds("gt", columns["l_quantity"], literal(3)))
    key, argument = columns["l_orderkey"], columns["l_quantity"]
    made = (named(first + at, f, aggregation(f, argument)) for at, f in enumerate(functions))
    return aggregate(rows, same(key), *made)


def twice() -> dict[str, Relation]:
    first = LINE.scan_of("l_orderkey", "l_quantity")
    names = {c.name: c for c in first.columns}
    second, others = again(LINE.scan_of("l_orderkey", "l_quantity"), 500)
    left, right = per_order(first, names, 601, "sum"), per_order(second, others, 611, "sum", "max")
    other = per_order(second, others, 611, "sum")
    loose = Aggregate(
        Filter(second, holds("gt", others["l_quantity"], literal(4))), other.keys, other.aggregations
    )
    pair = (names["l_orderkey"], others["l_orderkey"])
    joined = join(ORDERS.scan_of("o_orderkey", "o_custkey"), left, (ORDERS.o_orderkey, names["l_orderkey"]))
    semi = join(joined, left, (ORDERS.o_custkey, names["l_orderkey"]), kind=JoinKind.SEMI)
    return {
        "share_a_view_that_is_used_twice": join(left, right, pair),
        "share_the_side_of_a_join_with_a_filter_above": join(
            left, Filter(right, all_of(holds("gt", right.columns[2], literal(9)))), pair, kind=JoinKind.LEFT
        ),
        "share_one_relation_in_two_places": semi,
        "share_not_what_filters_otherwise": join(left, loose, pair),
        "share_not_the_reading_of_a_table": join(first, second, pair),
    }


CASES = twice()
SHARED = {"share_a_view_that_is_used_twice", "share_the_side_of_a_join_with_a_filter_above"} | {
    "share_one_relation_in_two_places"
}


def tables() -> Tables:
    """Some rows, in which lineitem's columns are there under the numbers of its copy as well."""
    made = rows_for(T, 3)
    _, others = again(LINE.scan_of("l_orderkey", "l_quantity"), 500)
    for split in made[LINE.scan.files[0].path]:
        for row in split:
            row |= {other.id: row[getattr(LINE, name).id] for name, other in others.items()}
    return made


def answer(relation: Relation) -> Counter[tuple[object, ...]]:
    rows = tables()

    def leaf(scan: Scan | Input) -> Rows:
        assert isinstance(scan, Scan)
        return [row for split in rows[scan.files[0].path] for row in split]

    return Counter(tuple(row[c.id] for c in relation.columns) for row in evaluate(relation, leaf))


@pytest.mark.parametrize("name", CASES)
def test_equal_parts_are_taken_out_as_reviewed(name: str) -> None:
    shared = share_subplans(CASES[name], STATISTICS)
    assert bool(shared.parts) == (name in SHARED)
    parts = (f"part {number}:\n{explain_relation(part, 1)}" for number, part in enumerate(shared.parts))
    text = "\n".join((explain_relation(CASES[name]), "=>", explain_relation(shared.root), *parts, ""))
    golden = FIXTURES / f"{name}.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(), f"review it, then WALLABY_GOLDEN=write to change {golden}"


@pytest.mark.parametrize("broadcast_bytes", [0, 1 << 40])
@pytest.mark.parametrize("name", CASES)
def test_a_plan_with_shared_stages_answers_the_same(name: str, broadcast_bytes: int) -> None:
    relation = CASES[name]
    settings = PlanSettings(broadcast_bytes=broadcast_bytes, single_channel_bytes=0)
    made = plan(relation, STATISTICS, settings)
    check_plan(made)
    found = Counter(tuple(row.values()) for row in run(made, tables()))
    assert found == answer(relation)
    feeding = Counter(link.producer for link in made.graph.links)
    assert (max(feeding.values()) > 1) == (name in SHARED)

"""Run-time filters: where they go, as reviewed, and that they change no answer."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import date
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

from wallaby.lineage.graph import LinkKind
from wallaby.plan.physical import ScanFragment
from wallaby.plan.planner import plan
from wallaby.plan.rules.filter_scans import filter_scans
from wallaby.plan.settings import PlanSettings
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Filter, Input, Join, Limit, Relation, Scan

FIXTURES = Path(__file__).parent / "fixtures" / "rules"
T = tpch(10)
STATISTICS = statistics_of(T)
LINE, ORDERS, CUSTOMER, PART = T["lineitem"], T["orders"], T["customer"], T["part"]
LINES = LINE.scan_of("l_orderkey", "l_partkey", "l_quantity", "l_shipmode")
SETTINGS = PlanSettings(channels=4, workers=2, broadcast_bytes=32 << 20)
PAIR = (ORDERS.o_orderkey, LINE.l_orderkey)
CUSTOMERS = (ORDERS.o_custkey, CUSTOMER.c_custkey)


def _orders(first: date, end: date) -> Relation:
    day = ORDERS.o_orderdate
    return Filter(ORDERS.scan, all_of(holds("ge", day, literal(first)), holds("lt", day, literal(end))))


QUARTER = _orders(date(1994, 1, 1), date(1994, 4, 1))
YEARS = _orders(date(1994, 1, 1), date(1996, 1, 1))
MOST = _orders(date(1992, 1, 1), date(1998, 1, 1))
SOME_PARTS = Filter(PART.scan, holds("eq", PART.p_type, literal("PROMO X")))
#: Too wide to go to every channel.
WIDE = Filter(CUSTOMER.scan, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING")))
PER_PART = aggregate(LINES, same(LINE.l_partkey), named(301, "quantity", aggregation("sum", LINE.l_quantity)))
#: The same table under other column ids, as Spark reads it for the second time.
AGAIN = replace(LINES, columns=tuple(replace(c, id=700 + at) for at, c in enumerate(LINES.columns)))
OTHER = {c.name: c for c in AGAIN.columns}
CASES: dict[str, Relation] = {
    "filter_scans_of_the_probe_side": join(LINES, join(YEARS, WIDE, CUSTOMERS), PAIR[::-1]),
    "filter_scans_of_the_build_side": join(QUARTER, LINES, PAIR, kind=JoinKind.SEMI),
    "filter_scans_for_an_anti_join": join(QUARTER, LINES, PAIR, kind=JoinKind.ANTI),
    "filter_scans_below_an_aggregation": join(PER_PART, SOME_PARTS, (LINE.l_partkey, PART.p_partkey)),
    "filter_scans_by_what_the_key_is_joined_with": join(
        join(LINES, SOME_PARTS, (LINE.l_partkey, PART.p_partkey)),
        aggregate(LINE.scan_of("l_suppkey"), same(LINE.l_suppkey)),
        (LINE.l_partkey, LINE.l_suppkey),
        kind=JoinKind.LEFT,
    ),
    "filter_scans_read_a_table_once": join(
        join(AGAIN, SOME_PARTS, (OTHER["l_partkey"], PART.p_partkey)),
        PER_PART,
        (OTHER["l_partkey"], LINE.l_partkey),
    ),
    "filter_scans_read_a_table_twice_for_other_keys": join(
        join(AGAIN, SOME_PARTS, (OTHER["l_orderkey"], PART.p_partkey)),
        PER_PART,
        (PART.p_partkey, LINE.l_partkey),
    ),
    "filter_scans_not_of_rows_that_stay_without_partner": join(LINES, QUARTER, PAIR[::-1], kind=JoinKind.LEFT),
    "filter_scans_not_if_most_rows_stay": join(LINES, MOST, PAIR[::-1]),
    "filter_scans_not_below_a_limit": join(Limit(LINES, 5_000_000), QUARTER, PAIR[::-1], kind=JoinKind.SEMI),
    "filter_scans_not_where_the_join_comes_to_the_rows": join(LINES, SOME_PARTS, (LINE.l_partkey, PART.p_partkey)),
    "filter_scans_not_by_a_larger_table_that_is_read_again": join(
        CUSTOMER.scan, LINE.scan_of("l_suppkey"), (CUSTOMER.c_custkey, LINE.l_suppkey)
    ),
}  # fmt: skip


def filters_in(relation: Relation) -> int:
    """Semi joins of a scan that the query itself does not have."""
    if isinstance(relation, Join):
        return filters_in(relation.left) + filters_in(relation.right) + (relation.kind is JoinKind.SEMI)
    return sum(filters_in(child) for child in (getattr(relation, "child", None),) if child is not None)


def tables_of() -> Tables:
    """Some rows, in which lineitem's columns are there under the numbers of its copy as well."""
    tables = rows_for(T, 11, most=200)
    for split in tables[LINE.scan.files[0].path]:
        for row in split:
            row |= {other.id: row[own.id] for own, other in zip(LINES.columns, AGAIN.columns, strict=True)}
    return tables


def answer(relation: Relation) -> Counter[tuple[object, ...]]:
    tables = tables_of()

    def leaf(scan: Scan | Input) -> Rows:
        assert isinstance(scan, Scan)
        return [row for split in tables[scan.files[0].path] for row in split]

    return Counter(tuple(row[c.id] for c in relation.columns) for row in evaluate(relation, leaf))


@pytest.mark.parametrize("name", CASES)
def test_filters_go_where_they_were_reviewed_to_go(name: str) -> None:
    before = CASES[name]
    after = filter_scans(before, STATISTICS, SETTINGS)
    text = f"{explain_relation(before)}\n=>\n{explain_relation(after)}\n"
    golden = FIXTURES / f"{name}.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(), f"review it, then WALLABY_GOLDEN=write to change {golden}"
    assert (filters_in(after) > filters_in(before)) == ("_not_" not in name)


@pytest.mark.parametrize("name", CASES)
def test_filters_change_no_answer(name: str) -> None:
    before = CASES[name]
    assert answer(filter_scans(before, STATISTICS, SETTINGS)) == answer(before)
    if "limit" not in name:
        made = plan(before, STATISTICS, SETTINGS)
        check_plan(made)
        found = Counter(tuple(row.values()) for row in run(made, tables_of()))
        assert found == answer(before)


def test_a_filter_is_a_named_side_input_of_the_reads() -> None:
    made = plan(CASES["filter_scans_of_the_build_side"], STATISTICS, SETTINGS)
    (link,) = (link for link in made.graph.links if link.kind is LinkKind.SIDE)
    assert link.required
    read = [
        f.scan.label if isinstance(f, ScanFragment) and isinstance(f.scan, Scan) else ""
        for f in made.fragments
    ]
    assert read[link.consumer] == "lineitem"
    assert read.count("orders") == 1, "the source is computed once"

"""Each rewrite rule on small trees: what it makes of them, as reviewed, and that the answer stays the same."""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from tests.plan.builders import (
    aggregate,
    aggregation,
    all_of,
    ascending,
    call,
    column,
    explain_relation,
    holds,
    join,
    literal,
    named,
    same,
    statistics_of,
    tpch,
)
from tests.plan.data import rows_for
from tests.plan.interpreter import Rows, evaluate

from wallaby.plan.estimates.statistics import Statistics
from wallaby.plan.rules import RULES, Rule
from wallaby.plan.rules.aggregate_below_joins import aggregate_below_joins
from wallaby.plan.rules.delay_semi_joins import delay_semi_joins
from wallaby.plan.rules.drop_null_checks import drop_null_checks
from wallaby.plan.rules.flip_right_joins import flip_right_joins
from wallaby.plan.rules.narrow_decimals import narrow_decimals
from wallaby.plan.rules.order_joins import order_joins
from wallaby.plan.rules.prune_columns import prune_columns
from wallaby.plan.rules.push_filters import push_filters
from wallaby.plan.rules.push_limits import push_limits
from wallaby.relations.expression import Expression, Literal
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import Expand, Filter, Input, Limit, Project, Relation, Scan, Sort, Union
from wallaby.relations.types import STRING, decimal

FIXTURES = Path(__file__).parent / "fixtures" / "rules"
T = tpch(0.1)
#: The same tables and columns, a hundred times as large.
LARGE = tpch(10)
STATISTICS = Statistics(statistics_of(T).tables + statistics_of(LARGE).tables)
LINE, ORDERS, CUSTOMER, NATION = T["lineitem"], T["orders"], T["customer"], T["nation"]
NATIONS = NATION.scan_of("n_nationkey", "n_regionkey")
CUSTOMERS = CUSTOMER.scan_of("c_custkey", "c_mktsegment")
LINES = LINE.scan_of("l_orderkey", "l_suppkey", "l_quantity")
SOME = ORDERS.scan_of("o_orderkey", "o_custkey", "o_orderdate")
PAIR = (ORDERS.o_orderkey, LINE.l_orderkey)
MANY = holds("gt", LINE.l_quantity, literal(3))
FEW = holds("lt", ORDERS.o_custkey, literal(4))
FAILING = holds("gt", call("divide", LINE.l_quantity, LINE.l_quantity), literal(0))
ONE = named(201, "rows", aggregation("count"))
MANY_LINES = LARGE["lineitem"].scan_of("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_discount")
MANY_ORDERS = LARGE["orders"].scan_of("o_custkey", "o_shippriority")
PART, SUPPLIER = LARGE["part"], LARGE["supplier"]
BUYERS = LARGE["customer"].scan_of("c_custkey", "c_name", "c_phone")
LINES_AND_PARTS = join(MANY_LINES, PART.scan, (LINE.l_partkey, PART.p_partkey))
PARTS_AND_LINES = join(
    PART.scan,
    Filter(MANY_LINES, MANY),
    (PART.p_partkey, LINE.l_partkey),
    kind=JoinKind.LEFT,
)
PRICES = LINE.scan_of("l_orderkey", "l_quantity", "l_extendedprice", "l_discount", "l_tax")
NET = call(
    "multiply",
    LINE.l_extendedprice,
    call("subtract", literal(Decimal(1)), LINE.l_discount, type_=decimal(16, 2)),
    type_=decimal(32, 4),
)
TAXED = call(
    "multiply",
    NET,
    call("add", literal(Decimal(1)), LINE.l_tax, type_=decimal(16, 2)),
    type_=decimal(38, 6),
)
#: Its digits would not fit into 64 bits.
SQUARE = call("multiply", NET, NET, type_=decimal(38, 8))
BOUGHT = named(203, "bought", aggregation("sum", LINE.l_quantity))
PRIORITY = (
    named(204, "priority", aggregation("avg", ORDERS.o_shippriority)),
    named(205, "orders", aggregation("count")),
)
SETS = (column(206, "name", STRING), column(207, "phone", STRING), column(208, "set"))


def by_sets(name: Expression, phone: Expression) -> Expand:
    """Rows of customers and orders, by name and phone, and by name."""
    rows = join(BUYERS, MANY_ORDERS, (CUSTOMER.c_custkey, ORDERS.o_custkey))
    none = Literal(None, STRING)
    projections = (
        (ORDERS.o_shippriority, name, phone, literal(0)),
        (ORDERS.o_shippriority, name, none, literal(1)),
    )
    return Expand(rows, projections, (ORDERS.o_shippriority, *SETS))


CASES: dict[str, tuple[Rule, Relation]] = {
    "flip_right_joins": (flip_right_joins, join(SOME, LINES, PAIR, kind=JoinKind.RIGHT)),
    "push_limits": (
        push_limits,
        Limit(Project(Sort(LINES, (ascending(LINE.l_quantity),)), same(LINE.l_orderkey)), 3),
    ),
    "push_filters_into_an_inner_join": (
        push_filters,
        Filter(join(SOME, LINES, PAIR), all_of(MANY, FEW, FAILING)),
    ),
    "push_filters_into_a_left_join": (
        push_filters,
        Filter(join(SOME, LINES, PAIR, kind=JoinKind.LEFT), all_of(MANY, FEW)),
    ),
    "push_filters_makes_keys_of_equalities": (
        push_filters,
        Filter(
            join(SOME, LINES, kind=JoinKind.CROSS),
            all_of(
                holds("eq", LINE.l_orderkey, ORDERS.o_orderkey),
                holds("lt", ORDERS.o_custkey, LINE.l_suppkey),
                FEW,
            ),
        ),
    ),
    "push_filters_relates_no_sides_of_a_left_join": (
        push_filters,
        Filter(join(SOME, LINES, PAIR, kind=JoinKind.LEFT), holds("lt", ORDERS.o_custkey, LINE.l_suppkey)),
    ),
    "push_filters_below_renames": (
        push_filters,
        Filter(
            Filter(Project(LINES, (named(202, "quantity", LINE.l_quantity),)), literal(True)),
            holds("gt", named(202, "quantity", LINE.l_quantity).column, literal(3)),
        ),
    ),
    "delay_semi_joins": (
        delay_semi_joins,
        join(
            join(
                join(LINES, SOME, PAIR[::-1], kind=JoinKind.SEMI),
                Project(CUSTOMERS, same(CUSTOMER.c_custkey)),
                (LINE.l_suppkey, CUSTOMER.c_custkey),
                kind=JoinKind.ANTI,
                residual=holds("lt", CUSTOMER.c_custkey, LINE.l_orderkey),
            ),
            Filter(NATIONS, holds("eq", NATION.n_nationkey, literal(3))),
            (LINE.l_suppkey, NATION.n_nationkey),
        ),
    ),
    "delay_semi_joins_not_for_an_inner_join_that_keeps_most": (
        delay_semi_joins,
        join(
            join(LINES, CUSTOMERS, (LINE.l_suppkey, CUSTOMER.c_custkey), kind=JoinKind.SEMI),
            SOME,
            PAIR[::-1],
        ),
    ),
    "aggregate_below_joins": (
        aggregate_below_joins,
        aggregate(
            LINES_AND_PARTS,
            same(PART.p_partkey, PART.p_type),
            named(202, "more", call("add", aggregation("sum", LINE.l_quantity), literal(Decimal(1)))),
            named(205, "last", aggregation("max", LINE.l_orderkey)),
            ONE,
        ),
    ),
    "aggregate_below_joins_before_grouping_sets": (
        aggregate_below_joins,
        aggregate(by_sets(CUSTOMER.c_name, CUSTOMER.c_phone), same(*SETS), *PRIORITY),
    ),
    "aggregate_below_joins_on_the_right_of_a_left_join": (
        aggregate_below_joins,
        aggregate(
            PARTS_AND_LINES,
            same(PART.p_partkey),
            named(202, "lines", aggregation("count", LINE.l_orderkey)),
            named(205, "mean", aggregation("avg", LINE.l_quantity)),
        ),
    ),
    "aggregate_below_joins_not_where_rows_without_partner_count": (
        aggregate_below_joins,
        aggregate(PARTS_AND_LINES, same(PART.p_partkey), ONE),
    ),
    "aggregate_below_joins_by_what_the_condition_compares": (
        aggregate_below_joins,
        aggregate(
            join(
                MANY_LINES,
                SUPPLIER.scan,
                (LINE.l_suppkey, SUPPLIER.s_suppkey),
                residual=holds("not", holds("eq", LINE.l_discount, SUPPLIER.s_nationkey)),
            ),
            same(SUPPLIER.s_suppkey, LINE.l_discount),
            named(202, "largest", aggregation("max", LINE.l_quantity)),
        ),
    ),
    "aggregate_below_joins_not_for_few_groups": (
        aggregate_below_joins,
        aggregate(LINES_AND_PARTS, same(PART.p_type), BOUGHT),
    ),
    "aggregate_below_joins_not_for_few_rows": (
        aggregate_below_joins,
        aggregate(join(LINES, SOME, PAIR[::-1]), same(ORDERS.o_custkey), BOUGHT),
    ),
    "aggregate_below_joins_not_what_can_fail": (
        aggregate_below_joins,
        aggregate(
            LINES_AND_PARTS,
            same(PART.p_partkey),
            named(202, "ratio", aggregation("max", call("divide", LINE.l_quantity, LINE.l_quantity))),
        ),
    ),
    "aggregate_below_joins_not_a_sum_that_can_overflow": (
        aggregate_below_joins,
        aggregate(
            LINES_AND_PARTS, same(PART.p_partkey), named(202, "sum", aggregation("sum", LINE.l_suppkey))
        ),
    ),
    "aggregate_below_joins_not_of_both_sides": (
        aggregate_below_joins,
        aggregate(
            LINES_AND_PARTS,
            same(PART.p_partkey),
            BOUGHT,
            named(202, "type", aggregation("max", PART.p_type)),
        ),
    ),
    "drop_null_checks": (
        drop_null_checks,
        Filter(
            Project(LINES, same(LINE.l_quantity, LINE.l_suppkey)),
            all_of(holds("is_not_null", LINE.l_suppkey), MANY, holds("is_not_null", LINE.l_quantity)),
        ),
    ),
    "drop_null_checks_not_above_a_left_join": (
        drop_null_checks,
        Filter(join(SOME, LINES, PAIR, kind=JoinKind.LEFT), holds("is_not_null", LINE.l_suppkey)),
    ),
    "narrow_decimals": (
        narrow_decimals,
        aggregate(
            Project(PRICES, (*same(LINE.l_orderkey, LINE.l_discount), named(202, "net", NET))),
            same(LINE.l_orderkey),
            named(203, "most", aggregation("sum", column(202, "net", decimal(32, 4)))),
        ),
    ),
    "narrow_decimals_of_sums": (
        narrow_decimals,
        aggregate(
            PRICES,
            same(LINE.l_orderkey),
            named(203, "taxed", call("add", aggregation("sum", TAXED), aggregation("sum", LINE.l_tax))),
            named(205, "mean", aggregation("avg", NET)),
        ),
    ),
    "narrow_decimals_not_of_many_digits": (
        narrow_decimals,
        Project(PRICES, (named(202, "square", SQUARE),)),
    ),
    "order_joins": (
        order_joins,
        join(
            join(LINES, SOME, PAIR[::-1], residual=holds("lt", LINE.l_suppkey, ORDERS.o_custkey)),
            Filter(CUSTOMERS, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING"))),
            (ORDERS.o_custkey, CUSTOMER.c_custkey),
        ),
    ),
    "order_joins_by_what_is_equal_to_the_same": (
        order_joins,
        join(
            join(LINES, CUSTOMERS, (LINE.l_suppkey, CUSTOMER.c_custkey)),
            Filter(NATIONS, holds("eq", NATION.n_regionkey, literal(3))),
            (CUSTOMER.c_custkey, NATION.n_nationkey),
        ),
    ),
    "order_joins_as_written_by_keys_that_follow": (
        order_joins,
        join(
            join(
                Filter(LINES, holds("lt", LINE.l_suppkey, literal(3))),
                SOME,
                PAIR[::-1],
            ),
            CUSTOMERS,
            (ORDERS.o_custkey, CUSTOMER.c_custkey),
            (LINE.l_suppkey, CUSTOMER.c_custkey),
        ),
    ),
    "order_joins_that_multiply_rows_last": (
        order_joins,
        join(
            join(
                LINES,
                SOME,
                (LINE.l_suppkey, ORDERS.o_custkey),
                residual=holds("lt", LINE.l_quantity, literal(9)),
            ),
            Filter(NATIONS, holds("eq", NATION.n_regionkey, literal(3))),
            (LINE.l_orderkey, NATION.n_nationkey),
        ),
    ),
    "order_joins_below_one_that_can_fail": (
        order_joins,
        join(
            join(
                join(LINES, SOME, PAIR[::-1]),
                Filter(CUSTOMERS, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING"))),
                (ORDERS.o_custkey, CUSTOMER.c_custkey),
            ),
            NATIONS,
            (LINE.l_suppkey, NATION.n_nationkey),
            residual=FAILING,
        ),
    ),
    "order_joins_not_if_a_condition_can_fail": (
        order_joins,
        join(
            join(LINES, SOME, PAIR[::-1], residual=FAILING),
            Filter(CUSTOMERS, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING"))),
            (ORDERS.o_custkey, CUSTOMER.c_custkey),
        ),
    ),
    "prune_columns_of_a_join": (
        prune_columns,
        aggregate(join(Filter(SOME, FEW), Filter(LINES, MANY), PAIR), same(ORDERS.o_orderdate), ONE),
    ),
    "prune_columns_of_a_count": (prune_columns, aggregate(LINES, (), ONE)),
    "prune_columns_of_a_top": (
        prune_columns,
        Project(
            Limit(Sort(LINES, (ascending(LINE.l_quantity), ascending(LINE.l_orderkey))), 3),
            same(LINE.l_suppkey),
        ),
    ),
    "prune_columns_of_a_union": (
        prune_columns,
        Project(
            Union(
                (SOME, Project(LINES, same(LINE.l_suppkey, LINE.l_orderkey, LINE.l_orderkey))),
                (
                    column(301, "a"),
                    column(302, "b"),
                    column(303, "c"),
                ),
            ),
            same(column(303, "c"), column(301, "a")),
        ),
    ),
}


def answer(relation: Relation) -> Counter[tuple[object, ...]]:
    tables = rows_for(T, 5)

    def leaf(scan: Scan | Input) -> Rows:
        assert isinstance(scan, Scan)
        return [row for split in tables[scan.files[0].path] for row in split if 0 not in row.values()]

    return Counter(tuple(row[c.id] for c in relation.columns) for row in evaluate(relation, leaf))


@pytest.mark.parametrize("name", CASES)
def test_a_rule_gives_the_reviewed_tree(name: str) -> None:
    rule, before = CASES[name]
    after = rule(before, STATISTICS)
    text = f"{explain_relation(before)}\n=>\n{explain_relation(after)}\n"
    golden = FIXTURES / f"{name}.txt"
    if os.environ.get("WALLABY_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(), f"review it, then WALLABY_GOLDEN=write to change {golden}"


@pytest.mark.parametrize("name", CASES)
def test_a_rule_changes_no_answer(name: str) -> None:
    _, before = CASES[name]
    for rule in RULES:
        after = rule(before, STATISTICS)
        by_id = {c.id: c for c in after.columns}
        arranged = Project(after, same(*(by_id[c.id] for c in before.columns)))
        assert answer(arranged) == answer(before), rule


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _ in CASES.values()} == set(RULES)

"""Estimates: not right, but on the right side, and for the stated reasons."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from tests.plan.builders import (
    aggregate,
    aggregation,
    all_of,
    call,
    column,
    holds,
    join,
    literal,
    named,
    same,
    statistics_of,
    tpch,
)

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.estimates.selectivity import number
from wallaby.plan.estimates.statistics import Statistics
from wallaby.relations.expression import Column, Expression, Literal
from wallaby.relations.join_kind import JoinKind
from wallaby.relations.relation import (
    DataFile,
    Expand,
    Filter,
    Limit,
    Project,
    Relation,
    Scan,
    Union,
)
from wallaby.relations.types import STRING

T = tpch(1)
LINE, ORDERS, CUSTOMER = T["lineitem"], T["orders"], T["customer"]


def rows(relation: Relation) -> float:
    return Estimator(statistics_of(T)).of(relation).rows


def share(condition: Expression) -> float:
    return rows(Filter(LINE.scan, condition)) / 6_000_000


def test_a_window_of_a_column_keeps_its_share_of_the_range() -> None:
    year = all_of(
        holds("ge", LINE.l_shipdate, literal(date(1994, 1, 1))),
        holds("gt", literal(date(1995, 1, 1)), LINE.l_shipdate),
    )
    assert share(year) == pytest.approx(365 / 2526, rel=0.01)
    assert share(holds("gt", LINE.l_shipdate, literal(date(2020, 1, 1)))) == 0


def test_an_equality_keeps_one_of_the_different_values() -> None:
    assert share(holds("eq", LINE.l_shipmode, literal("MAIL"))) == pytest.approx(1 / 8)
    assert share(holds("in", LINE.l_shipmode, literal("MAIL"), literal("SHIP"))) == pytest.approx(2 / 8)
    assert share(holds("not", holds("eq", LINE.l_linestatus, literal("F")))) == pytest.approx(1 / 2)
    either = holds(
        "or", holds("eq", LINE.l_linestatus, literal("F")), holds("eq", LINE.l_linestatus, literal("O"))
    )
    assert share(either) == pytest.approx(3 / 4)


def test_conditions_that_list_values_of_one_column_count_once() -> None:
    mail = holds("eq", LINE.l_shipmode, literal("MAIL"))
    either = holds("in", LINE.l_shipmode, literal("MAIL"), literal("SHIP"))
    assert share(all_of(mail, either)) == share(all_of(either, mail)) == pytest.approx(1 / 8)
    other = holds("eq", LINE.l_linestatus, literal("F"))
    assert share(all_of(mail, other)) == pytest.approx(1 / 16)


def test_few_texts_have_a_given_part() -> None:
    green = holds("contains", LINE.l_shipmode, literal("green"))
    assert share(green) == pytest.approx(0.05)
    assert share(holds("not", green)) == pytest.approx(0.95)


def test_nulls_are_counted() -> None:
    assert share(holds("is_null", LINE.l_shipmode)) == 0
    assert share(holds("is_not_null", LINE.l_shipmode)) == 1
    assert share(literal(False)) == 0
    assert 0 < share(holds("like", LINE.l_shipmode, literal("%A%"))) < 1


def test_a_foreign_key_join_has_as_many_rows_as_refer() -> None:
    assert rows(join(LINE.scan, ORDERS.scan, (LINE.l_orderkey, ORDERS.o_orderkey))) == pytest.approx(
        6_000_000
    )
    building = Filter(CUSTOMER.scan, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING")))
    assert rows(join(ORDERS.scan, building, (ORDERS.o_custkey, CUSTOMER.c_custkey))) == pytest.approx(
        1_500_000 / 8
    )


def test_semi_and_anti_joins_share_the_left_rows() -> None:
    pair = (ORDERS.o_custkey, CUSTOMER.c_custkey)
    some = Filter(CUSTOMER.scan, holds("eq", CUSTOMER.c_mktsegment, literal("BUILDING")))
    found = rows(join(ORDERS.scan, some, pair, kind=JoinKind.SEMI))
    missing = rows(join(ORDERS.scan, some, pair, kind=JoinKind.ANTI))
    assert found + missing == pytest.approx(1_500_000)
    assert rows(join(ORDERS.scan, some, pair, kind=JoinKind.LEFT)) == 1_500_000


def test_groups_are_bounded_by_values_and_by_rows() -> None:
    count = named(201, "n", aggregation("count"))
    assert rows(aggregate(LINE.scan, same(LINE.l_returnflag, LINE.l_linestatus), count)) == pytest.approx(8)
    assert rows(aggregate(LINE.scan, same(LINE.l_orderkey, LINE.l_partkey), count)) == 6_000_000
    assert rows(aggregate(LINE.scan, (), count)) == 1
    assert rows(Limit(LINE.scan, 10)) == 10


def test_an_unknown_table_is_large() -> None:
    scan = Scan((DataFile("/other", 1, 1),), LINE.scan.columns, LINE.scan.names)
    assert Estimator(Statistics(())).of(scan).rows >= 1e9


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        (1, 2),
        (Decimal("0.1"), Decimal("0.2")),
        ("AIR", "MAIL"),
        (date(1992, 1, 1), date(1992, 1, 2)),
        (False, True),
    ],
)
def test_values_lie_on_the_number_line_in_their_order(lower: object, higher: object) -> None:
    first, second = number(lower), number(higher)
    assert first is not None
    assert second is not None
    assert first < second


def test_bytes_have_no_place_on_the_number_line() -> None:
    assert number(b"x") is None


def test_sums_and_counts_of_groups_lie_around_their_mean() -> None:
    total = named(901, "total", aggregation("sum", LINE.l_quantity))
    lines = named(902, "lines", aggregation("count"))
    groups = aggregate(LINE.scan, same(LINE.l_suppkey), total, lines)
    mean_rows = 6_000_000 / rows(groups)
    mean = mean_rows * 25.5

    def kept(column: Column, above: float) -> float:
        return rows(Filter(groups, holds("gt", column, literal(above)))) / rows(groups)

    assert kept(total.column, mean) == pytest.approx(0.5)
    assert kept(lines.column, mean_rows) == pytest.approx(0.5)
    assert kept(total.column, 1.5 * mean) < 0.01 < 0.99 < kept(total.column, 0.5 * mean)
    assert kept(total.column, 10 * mean) == 0


def test_a_computed_column_has_no_more_values_than_what_it_is_computed_from() -> None:
    year = call("year", LINE.l_shipdate, type_=LINE.l_suppkey.type)
    both = call("add", LINE.l_suppkey, LINE.l_partkey)
    projected = Project(LINE.scan, (named(901, "year", year), named(902, "both", both)))
    assert rows(aggregate(projected, same(projected.columns[0]))) <= 2527
    assert rows(aggregate(LINE.scan, (named(903, "year", year),))) <= 2527
    assert rows(aggregate(projected, same(projected.columns[1]))) == 6_000_000
    counted = aggregate(LINE.scan, same(LINE.l_suppkey), named(904, "lines", aggregation("count")))
    assert rows(aggregate(counted, same(counted.columns[1]))) < 1000


# --- keys --------------------------------------------------------------------------------------------------


def test_to_a_key_a_row_has_one_partner_at_most() -> None:
    pair = (ORDERS.o_custkey, CUSTOMER.c_custkey)
    assert rows(join(ORDERS.scan, CUSTOMER.scan, pair)) == pytest.approx(1_500_000)
    twice = join(
        join(ORDERS.scan, CUSTOMER.scan, pair), Project(CUSTOMER.scan, same(CUSTOMER.c_custkey)), pair
    )
    assert rows(twice) == pytest.approx(1_500_000)


def test_rows_without_a_partner_in_an_outer_join_have_nulls() -> None:
    pair = (CUSTOMER.c_custkey, ORDERS.o_custkey)
    outer = join(CUSTOMER.scan, ORDERS.scan, pair, kind=JoinKind.LEFT)
    unmatched = Filter(outer, holds("is_null", ORDERS.o_orderkey))
    assert rows(unmatched) >= 0.05 * rows(outer)
    assert rows(Filter(outer, holds("is_null", CUSTOMER.c_custkey))) == 0
    few = Filter(ORDERS.scan, holds("lt", ORDERS.o_custkey, literal(1_500)))
    mostly = join(CUSTOMER.scan, few, pair, kind=JoinKind.LEFT)
    assert rows(Filter(mostly, holds("is_null", ORDERS.o_orderkey))) > 0.9 * rows(mostly)


def test_keys_of_one_table_have_no_more_combinations_than_rows() -> None:
    pair = (ORDERS.o_custkey, CUSTOMER.c_custkey)
    joined = join(ORDERS.scan, CUSTOMER.scan, pair)
    keys = same(CUSTOMER.c_custkey, CUSTOMER.c_name, CUSTOMER.c_mktsegment)
    count = named(901, "n", aggregation("count"))
    assert rows(aggregate(joined, keys, count)) == pytest.approx(150_000)


def test_grouping_sets_have_the_values_of_before_and_null() -> None:
    sets = Expand(
        LINE.scan,
        ((LINE.l_shipmode, literal(0)), (Literal(None, STRING), literal(1))),
        (column(901, "mode", STRING), column(902, "set")),
    )
    count = named(903, "n", aggregation("count"))
    assert rows(sets) == 12_000_000
    assert rows(aggregate(sets, same(*sets.columns), count)) == pytest.approx((8 + 1) * 2)


def test_a_group_is_there_once_in_an_aggregation() -> None:
    total = named(901, "total", aggregation("sum", LINE.l_quantity))
    groups = aggregate(LINE.scan, same(LINE.l_suppkey), total)
    assert rows(join(ORDERS.scan, groups, (ORDERS.o_custkey, LINE.l_suppkey))) <= 1_500_000


def test_of_a_column_that_a_condition_fixes_there_is_one_value() -> None:
    one = Filter(LINE.scan, holds("eq", LINE.l_shipmode, literal("MAIL")))
    count = named(901, "n", aggregation("count"))
    keys = same(LINE.l_shipmode, LINE.l_returnflag)
    assert rows(aggregate(one, keys, count)) == pytest.approx(rows(aggregate(LINE.scan, keys, count)) / 8)


def test_rows_that_a_semi_join_left_are_not_filtered_by_its_keys_again() -> None:
    pair = (LINE.l_orderkey, ORDERS.o_orderkey)
    few = Filter(ORDERS.scan, holds("lt", ORDERS.o_custkey, literal(1_500)))
    alone = rows(join(LINE.scan, few, pair))
    filtered = join(LINE.scan, Project(few, same(ORDERS.o_orderkey)), pair, kind=JoinKind.SEMI)
    assert rows(filtered) < 6_000_000 / 50
    assert rows(join(filtered, few, pair)) == pytest.approx(alone, rel=0.1)


def test_columns_of_a_union_have_the_values_of_all() -> None:
    keys = (Project(LINE.scan, same(LINE.l_suppkey)), Project(ORDERS.scan, same(ORDERS.o_custkey)))
    both = Union(keys, (column(901, "key"),))
    count = named(902, "n", aggregation("count"))
    assert rows(both) == 7_500_000
    assert rows(aggregate(both, same(column(901, "key")), count)) <= 150_000

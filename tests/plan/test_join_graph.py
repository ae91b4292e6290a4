"""The graph of neighbouring joins: what is equal, which keys follow, and how many rows each set of sides has."""

from __future__ import annotations

import itertools

import pytest
from tests.plan.builders import Table, explain_relation, holds, join, literal, statistics_of

from wallaby.plan.estimates.estimate import Estimator
from wallaby.plan.join_graph import JoinGraph, JoinParts, equality
from wallaby.relations.expression import Expression
from wallaby.relations.relation import Filter, Relation
from wallaby.relations.types import DOUBLE, LONG

SALES = Table(
    "sales",
    1_000_000,
    2,
    [
        ("s_item", LONG, 1, 1000, 10.0),
        ("s_ticket", LONG, 1, 100_000, 64.0),
        ("s_day", LONG, 500, 599, 7.0),
    ],
)
RETURNS = Table(
    "returns",
    50_000,
    1,
    [("r_item", LONG, 1, 1000, 10.0), ("r_ticket", LONG, 1, 100_000, 64.0), ("r_other", LONG, 1, 1000, 10.0)],
)
ITEMS = Table("items", 1000, 1, [("i_item", LONG, 1, 1000, 64.0), ("i_kind", LONG, 1, 10, 4.0)])
DAYS = Table("days", 10_000, 1, [("d_day", LONG, 1, 10_000, 64.0), ("d_year", LONG, 1, 100, 7.0)])
TABLES = {table.scan.label: table for table in (SALES, RETURNS, ITEMS, DAYS)}
ESTIMATOR = Estimator(statistics_of(TABLES))


def graph(
    sides: list[Relation], *pairs: tuple[Expression, Expression], where: tuple[Expression, ...] = ()
) -> JoinGraph:
    return JoinGraph(JoinParts(sides, list(pairs), list(where)), ESTIMATOR)


def test_sides_that_are_equal_to_a_third_can_be_joined_without_it() -> None:
    made = graph(
        [SALES.scan, ITEMS.scan, RETURNS.scan],
        (SALES.s_item, ITEMS.i_item),
        (ITEMS.i_item, RETURNS.r_item),
    )
    assert made.is_joined(0b001, 0b100)
    joined = made.join(made.sides[0], made.sides[2], 0b001, 0b100)
    assert (joined.left_keys, joined.right_keys) == ((SALES.s_item,), (RETURNS.r_item,))
    last = made.join(joined, made.sides[1], 0b101, 0b010)
    assert len(last.left_keys) == 1, "one pair says that all three are equal"


def test_an_equality_among_the_conditions_is_a_key() -> None:
    made = graph(
        [SALES.scan, RETURNS.scan],
        (SALES.s_item, RETURNS.r_item),
        where=(holds("eq", RETURNS.r_ticket, SALES.s_ticket), holds("lt", SALES.s_day, RETURNS.r_other)),
    )
    joined = made.join(made.sides[0], made.sides[1], 0b01, 0b10)
    assert joined.left_keys == (SALES.s_item, SALES.s_ticket)
    assert joined.residual == holds("lt", SALES.s_day, RETURNS.r_other)


def test_two_columns_of_a_side_that_equal_the_same_are_equal() -> None:
    made = graph([SALES.scan, RETURNS.scan], (SALES.s_item, RETURNS.r_item), (SALES.s_item, RETURNS.r_other))
    assert f"filter eq({RETURNS.r_item}, {RETURNS.r_other})" in explain_relation(made.sides[1])
    assert len(made.join(made.sides[0], made.sides[1], 0b01, 0b10).left_keys) == 1


def test_a_condition_on_one_side_is_a_filter_there() -> None:
    kind = holds("lt", ITEMS.i_kind, literal(3))
    made = graph([SALES.scan, ITEMS.scan], (SALES.s_item, ITEMS.i_item), where=(kind,))
    assert made.sides[1] == Filter(ITEMS.scan, kind)


def test_floating_point_numbers_are_no_keys() -> None:
    real = Table("reals", 10, 1, [("x", DOUBLE, None, None, 64.0), ("y", DOUBLE, None, None, 64.0)])
    assert equality(holds("eq", real.x, real.y)) is None
    assert equality(holds("eq", SALES.s_item, ITEMS.i_item)) == (SALES.s_item, ITEMS.i_item)


def test_rows_do_not_depend_on_the_order_of_joins() -> None:
    sides: list[Relation] = [SALES.scan, ITEMS.scan, Filter(DAYS.scan, holds("eq", DAYS.d_year, literal(7)))]
    pairs = [(SALES.s_item, ITEMS.i_item), (SALES.s_day, DAYS.d_day)]
    rows = set()
    for order in itertools.permutations(range(3)):
        rows.add(round(graph([sides[at] for at in order], *pairs).rows(0b111)))
    assert len(rows) == 1


def test_a_row_meets_one_partner_at_most_in_a_key() -> None:
    made = graph([SALES.scan, DAYS.scan], (SALES.s_day, DAYS.d_day))
    assert made.rows(0b11) == pytest.approx(1_000_000)


def test_of_a_key_those_values_count_that_the_other_side_can_have() -> None:
    year = Filter(DAYS.scan, holds("eq", DAYS.d_year, literal(7)))
    made = graph([SALES.scan, year], (SALES.s_day, DAYS.d_day))
    share = ESTIMATOR.of(year).rows / 100
    assert made.rows(0b11) == pytest.approx(1_000_000 * share, rel=0.01), "of 100 days, not of 10,000"


def test_keys_of_several_columns_are_not_more_than_rows() -> None:
    made = graph(
        [SALES.scan, RETURNS.scan], (SALES.s_item, RETURNS.r_item), (SALES.s_ticket, RETURNS.r_ticket)
    )
    assert 50_000 <= made.rows(0b11) <= 1_000_000, "each return is of a sale"
    assert made.rows(0b11) == pytest.approx(
        ESTIMATOR.of(
            join(SALES.scan, RETURNS.scan, (SALES.s_item, RETURNS.r_item), (SALES.s_ticket, RETURNS.r_ticket))
        ).rows
    )


def test_what_a_choice_of_conditions_says_of_each_side_is_not_counted_twice() -> None:
    def branch(kind: int, day: int) -> Expression:
        return holds("and", holds("eq", ITEMS.i_kind, literal(kind)), holds("eq", SALES.s_day, literal(day)))

    def either(*conditions: Expression) -> Expression:
        return holds("or", *conditions)

    kinds = Filter(ITEMS.scan, either(*(holds("eq", ITEMS.i_kind, literal(k)) for k in (1, 2))))
    days = Filter(SALES.scan, either(*(holds("eq", SALES.s_day, literal(d)) for d in (501, 502))))
    made = graph([days, kinds], (SALES.s_item, ITEMS.i_item), where=(either(branch(1, 501), branch(2, 502)),))
    alone = graph([days, kinds], (SALES.s_item, ITEMS.i_item))
    assert made.rows(0b11) == pytest.approx(alone.rows(0b11) / 2, rel=0.1), (
        "of four combinations two are left"
    )

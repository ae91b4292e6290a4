"""Aggregations taken apart: the types of the parts and how averages end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.plan.builders import aggregate, aggregation, named, same, tpch

from wallaby.plan.aggregation import AggregationParts, take_apart
from wallaby.relations.expression import Aggregation, Call, Column, EvalMode, Literal
from wallaby.relations.types import DOUBLE, LONG, DataType, decimal

LINE = tpch()["lineitem"]


def parts(*aggregations: Aggregation, grouped: bool = True) -> AggregationParts:
    ids = itertools.count(300)
    keys = same(LINE.l_returnflag) if grouped else ()
    outputs = (named(200 + i, "value", a) for i, a in enumerate(aggregations))
    return take_apart(
        aggregate(LINE.scan, keys, *outputs),
        lambda name, type_: Column(next(ids), name, type_, nullable=True),
    )


def types(made: AggregationParts) -> list[DataType]:
    return [partial.column.type for partial in made.partials]


def test_a_decimal_average_is_an_exact_quotient_of_a_wide_sum_and_a_count() -> None:
    made = parts(aggregation("avg", LINE.l_quantity))
    assert types(made) == [decimal(25, 2), LONG]
    quotient = made.outputs[-1].expression
    assert isinstance(quotient, Call)
    assert quotient.type == decimal(19, 6)
    total, count = quotient.arguments
    assert total == made.partials[0].column
    assert isinstance(count, Call)
    assert (count.function, count.type) == ("cast", decimal(20, 0))


def test_the_sum_in_an_average_of_long_decimals_is_a_total_and_merges_as_one() -> None:
    long = replace(LINE.l_quantity, type=decimal(38, 2))
    made = parts(aggregation("avg", long), aggregation("sum", long))
    partial_functions, merge_functions = (
        [one.expression.function for one in some if isinstance(one.expression, Aggregation)]
        for some in (made.partials, made.merges)
    )
    assert partial_functions == ["total", "count", "sum"]
    assert merge_functions == ["total", "sum", "sum"]


def test_an_average_of_whole_numbers_sums_doubles() -> None:
    made = parts(aggregation("avg", LINE.l_suppkey))
    assert types(made) == [DOUBLE, LONG]
    assert made.outputs[-1].expression.type == DOUBLE


def test_sums_merge_into_their_own_type() -> None:
    made = parts(
        aggregation("sum", LINE.l_quantity), aggregation("sum", LINE.l_suppkey), aggregation("count")
    )
    assert types(made) == [decimal(25, 2), LONG, LONG]
    assert [merge.expression.type for merge in made.merges] == types(made)
    assert [m.expression.function for m in made.merges if isinstance(m.expression, Aggregation)] == [
        "sum"
    ] * 3


def test_only_without_keys_can_a_count_have_no_parts() -> None:
    assert isinstance(parts(aggregation("count")).outputs[-1].expression, Column)
    lone = parts(aggregation("count"), grouped=False).outputs[-1].expression
    assert isinstance(lone, Call)
    assert (lone.function, lone.arguments[1]) == ("coalesce", Literal(0, LONG))


def test_what_is_used_twice_is_computed_once() -> None:
    made = parts(aggregation("avg", LINE.l_quantity), aggregation("sum", LINE.l_quantity))
    assert len(made.partials) == 2


@pytest.mark.parametrize(
    ("function", "over", "mode", "mergeable"),
    [
        ("sum", "l_quantity", EvalMode.ANSI, True),
        ("sum", "l_quantity", EvalMode.LEGACY, True),
        ("sum", "l_suppkey", EvalMode.LEGACY, True),
        ("sum", "l_suppkey", EvalMode.TRY, False),
        ("avg", "l_suppkey", EvalMode.TRY, True),
        ("avg", "l_quantity", EvalMode.TRY, True),
        ("max", "l_quantity", EvalMode.LEGACY, True),
        ("collect_list", "l_quantity", EvalMode.ANSI, False),
    ],
)
def test_only_what_merges_exactly_is_merged(
    function: str, over: str, mode: EvalMode, mergeable: bool
) -> None:
    assert parts(replace(aggregation(function, getattr(LINE, over)), mode=mode)).mergeable is mergeable


def test_a_filtered_distinct_is_not_merged() -> None:
    counted = aggregation("count", LINE.l_suppkey, distinct=True)
    assert parts(counted).mergeable
    assert not parts(replace(counted, filter=LINE.l_returnflag)).mergeable

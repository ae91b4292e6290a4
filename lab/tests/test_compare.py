"""The comparison finds every kind of wrong answer, and no other."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from wallaby_lab.compare import DifferentError, require_same

RIGHT = pa.table({"k": [1, 1, 2, 3], "x": [0.1, 0.2, 0.3, None]})


def refuses(actual: pa.Table, expected: pa.Table, **how: object) -> None:
    with pytest.raises(DifferentError):
        require_same(actual, expected, **how)  # type: ignore[arg-type]


def test_an_answer_equals_itself() -> None:
    require_same(RIGHT, RIGHT)
    require_same(RIGHT, RIGHT, order=["k"])


def test_without_an_order_rows_may_stand_anywhere() -> None:
    require_same(RIGHT.take([3, 1, 0, 2]), RIGHT)


@pytest.mark.parametrize(
    "wrong",
    [
        RIGHT.slice(1),
        pa.concat_tables([RIGHT, RIGHT.slice(0, 1)]),
        RIGHT.take([0, 0, 2, 3]),
        RIGHT.rename_columns(["k", "y"]),
        RIGHT.select(["x", "k"]),
        RIGHT.select(["k"]),
        RIGHT.set_column(0, "k", pa.array([1, 1, 2, 3], pa.int32())),
        RIGHT.cast(pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("x", pa.float64())])),
        pa.table({"k": [1, 1, 2, 3], "x": [0.1, 0.2, 0.3, 0.0]}),
        pa.table({"k": [1, 1, 2, 3], "x": [0.1, 0.2, 0.3 * (1 + 1e-8), None]}),
        pa.table({"k": [1, 1, 2, 3], "x": [0.1, 0.2, math.nan, None]}),
        pa.table({"k": [1, 1, 2, 3], "x": [0.1, 0.2, math.inf, None]}),
        pa.table({"k": [1, 1, 3, 2], "x": [0.1, 0.2, 0.3, None]}),
    ],
    ids=[
        "a row is missing",
        "a row is too many",
        "one row twice, another not at all",
        "a name",
        "the columns' order",
        "a column is missing",
        "a type",
        "nullability",
        "zero for NULL",
        "a float that is off",
        "NaN",
        "infinity",
        "cells of one row in another",
    ],
)
def test_a_wrong_answer_is_refused(wrong: pa.Table) -> None:
    refuses(wrong, RIGHT)


def test_floats_may_differ_in_their_last_digits() -> None:
    require_same(pa.table({"x": [0.1 + 0.2, math.nan]}), pa.table({"x": [0.3, math.nan]}))


def test_decimals_may_not() -> None:
    refuses(pa.table({"x": [Decimal("1.0000000001")]}), pa.table({"x": [Decimal("1.0000000002")]}))


def test_rows_out_of_order_are_refused_only_where_an_order_is_fixed() -> None:
    require_same(RIGHT.take([1, 0, 2, 3]), RIGHT, order=["k"])
    refuses(RIGHT.take([0, 2, 1, 3]), RIGHT, order=["k"])
    refuses(RIGHT.take([1, 0, 2, 3]), RIGHT, order=["k", "x"])


def test_ties_may_change_places_but_not_rows() -> None:
    refuses(RIGHT.take([0, 0, 2, 3]), RIGHT, order=["k"])


def test_a_limit_may_choose_among_ties_but_only_rows_that_exist() -> None:
    every = pa.table({"k": [1, 2, 2, 2], "v": ["a", "b", "c", "d"]})
    expected = every.slice(0, 2)
    chosen = every.take([0, 3])
    refuses(chosen, expected, order=["k"])
    require_same(chosen, expected, order=["k"], unlimited=every)
    refuses(pa.table({"k": [1, 2], "v": ["a", "e"]}), expected, order=["k"], unlimited=every)
    refuses(every.take([1, 2]), expected, order=["k"], unlimited=every)
    refuses(pa.table({"k": [1, 2, 2], "v": ["a", "b", "b"]}), every.slice(0, 3), order=["k"], unlimited=every)


def test_nested_values_are_compared_in_depth() -> None:
    nested = pa.table({"n": [[{"x": 1.0}], [{"x": 2.0}]]})
    require_same(nested, nested)
    refuses(pa.table({"n": [[{"x": 1.0}], [{"x": 3.0}]]}), nested)
    refuses(pa.table({"n": [[{"x": 1.0}], []]}, schema=nested.schema), nested)


def test_empty_answers_still_have_columns() -> None:
    require_same(RIGHT.slice(0, 0), RIGHT.slice(0, 0), order=["k"])
    refuses(RIGHT.slice(0, 0).rename_columns(["k", "y"]), RIGHT.slice(0, 0))


def test_exactly_the_same_means_the_last_digit_and_the_sign_of_zero() -> None:
    one = pa.table({"x": [0.1, math.nan, 0.0, None], "y": [[1.5], [0.0], [], None]})
    require_same(one, one, exact=True)
    refuses(one.set_column(0, "x", pa.array([0.1, math.nan, -0.0, None])), one, exact=True)
    refuses(one.set_column(0, "x", pa.array([0.1 + 1.4e-17, math.nan, 0.0, None])), one, exact=True)
    refuses(one.set_column(1, "y", pa.array([[1.5], [-0.0], [], None])), one, exact=True)


def test_dates_that_python_does_not_know_are_compared_too() -> None:
    far = pa.table({"d": pa.array([3_000_000, None], pa.int32()).cast(pa.date32())})
    require_same(far, far)
    refuses(pa.table({"d": pa.array([3_000_001, None], pa.int32()).cast(pa.date32())}), far)
    refuses(pa.table({"d": pa.array([18_000, None], pa.int32()).cast(pa.date32())}), far)
    lists = pa.table({"d": pa.array([[1 << 62]], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("us")))})
    require_same(lists, lists)

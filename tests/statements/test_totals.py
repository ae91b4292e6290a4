"""Sums of the longest decimals, in windows and averages: no limit on the way, only at the end."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from tests.trees import SETTINGS, aggregation, column, named, rows_of, run

from wallaby.errors import ArithmeticOverflowError, NumericOutOfRangeError
from wallaby.functions.aggregates.moments import KURTOSIS, SKEWNESS, SQUARES
from wallaby.relations.expression import Aggregation
from wallaby.relations.relation import Aggregate, Frame, FrameUnit, Input, Window, WindowCall
from wallaby.relations.types import decimal
from wallaby.statements.connection import thread_session

SCALES = (0, 4, 18, 37, 38)
WHOLE = Frame(FrameUnit.ROWS, None, None)


def number(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def over_window(function: Aggregation, values: list[Decimal | None]) -> object:
    x = column(1, function.arguments[0].type)
    window = Window(Input(0, (x,)), (), (), (WindowCall(column(2, function.type), function, WHOLE),))
    return run(window, thread_session(SETTINGS), i0=rows_of((x,), [(value,) for value in values]))[0][1]


def of_group(function: Aggregation, values: list[Decimal | None]) -> object:
    x = column(1, function.arguments[0].type)
    aggregate = Aggregate(Input(0, (x,)), (), (named(2, function),))
    return run(aggregate, thread_session(SETTINGS), i0=rows_of((x,), [(value,) for value in values]))[0][0]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", ["sum over a window", "total of a group"])
def test_only_the_end_of_a_sum_has_to_fit(scale: int, way: str) -> None:
    type_ = decimal(38, scale)
    x = column(1, type_)

    def found(values: list[Decimal | None]) -> object:
        if way == "sum over a window":
            return over_window(aggregation("sum", type_, x), values)
        return of_group(aggregation("total", type_, x), values)

    big = 9 * 10**37 + 123_456_789
    for unscaled in (
        [big],
        [big, big, big, -big, -big, 7],
        [-big, -1, None, 5],
        [10**38 - 1, 1, -1],
        [-1, 0],
    ):
        values = [None if one is None else number(one, scale) for one in unscaled]
        assert found(values) == number(sum(one for one in unscaled if one is not None), scale)
    assert found([None, None]) is None
    too_large = NumericOutOfRangeError if way == "sum over a window" else ArithmeticOverflowError
    for unscaled in ([10**38 - 1, 1], [big] * 3, [-big] * 40):
        with pytest.raises(too_large):
            found([number(one, scale) for one in unscaled])


def test_an_average_over_a_window_is_out_of_range_with_its_sum() -> None:
    x = column(1, decimal(38, 0))
    average = aggregation("avg", decimal(38, 4), x)
    found = over_window(average, [number(10**33, 0), number(10**33 + 1, 0), None])
    assert found == Decimal("1000000000000000000000000000000000.5")
    with pytest.raises(NumericOutOfRangeError):
        over_window(average, [number(9 * 10**37, 0)] * 2)


def test_numbers_that_are_all_the_same_do_not_differ_from_their_mean() -> None:
    session = thread_session(SETTINGS)
    lists = pa.table(
        {"x": pa.array([[-14.64] * 49, [0.8405246488] * 240, [1e300] * 3], pa.list_(pa.float64()))}
    )
    found = session.query(
        f"SELECT {SQUARES}(x) AS s, {SKEWNESS}(x) AS w, {KURTOSIS}(x) AS k FROM t", {"t": lists}
    )
    assert found.to_pydict() == {"s": [0.0] * 3, "w": [None] * 3, "k": [None] * 3}

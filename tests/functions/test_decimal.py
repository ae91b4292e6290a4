"""Decimal arithmetic against Spark's rules, computed with Python's decimals."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trees import aggregation, call, column, literal, named, rows_of, run, value_of

from wallaby.errors import NumericOutOfRangeError
from wallaby.functions.numbers.decimals import divide, fit
from wallaby.relations.relation import Aggregate, Input
from wallaby.relations.types import LONG, DataType, decimal
from wallaby.statements.connection import DuckDbSession

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


def adjusted(precision: int, scale: int) -> DataType:
    """Spark's DecimalType.adjustPrecisionScale."""
    if precision <= 38:
        return decimal(precision, scale)
    return decimal(38, max(38 - (precision - scale), min(scale, 6)))


def result_type(operation: str, a: DataType, b: DataType) -> DataType:
    match operation:
        case "add" | "subtract":
            scale = max(a.scale, b.scale)
            return adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
        case "multiply":
            return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case "divide":
            scale = max(6, a.scale + b.precision + 1)
            return adjusted(a.precision - a.scale + b.scale + scale, scale)
        case _:
            scale = max(a.scale, b.scale)
            return adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def expected(operation: str, a: Decimal, b: Decimal, result: DataType) -> Decimal | None:
    """None: does not fit."""
    with localcontext(EXACT):
        match operation:
            case "add":
                value = a + b
            case "subtract":
                value = a - b
            case "multiply":
                value = Context(prec=39, rounding=ROUND_DOWN).multiply(a, b)
            case "divide":
                value = (a / b).quantize(Decimal(1).scaleb(-39), rounding=ROUND_DOWN)
            case _:
                value = a % b
        rounded = value.quantize(Decimal(1).scaleb(-result.scale), rounding=ROUND_HALF_UP)
        return rounded if abs(rounded) < Decimal(10) ** (result.precision - result.scale) else None


@st.composite
def decimals(draw: st.DrawFn) -> tuple[Decimal, DataType]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    digits = draw(st.integers(1, precision))
    unscaled = draw(st.integers(-(10**digits) + 1, 10**digits - 1))
    return Decimal(unscaled).scaleb(-scale, EXACT), decimal(precision, scale)


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide", "remainder"])
@settings(max_examples=150, deadline=None)
@given(a=decimals(), b=decimals())
def test_a_decimal_result_is_rounded_as_spark_rounds_it(
    operation: str, a: tuple[Decimal, DataType], b: tuple[Decimal, DataType], session: DuckDbSession
) -> None:
    if operation in ("divide", "remainder") and not b[0]:
        return
    type_ = result_type(operation, a[1], b[1])
    wanted = expected(operation, a[0], b[0], type_)
    expression = call(operation, type_, literal(*a), literal(*b))
    if wanted is None:
        with pytest.raises(NumericOutOfRangeError):
            value_of(expression, session)
    else:
        assert value_of(expression, session) == wanted


@pytest.mark.parametrize("precision", [4, 5, 9, 10, 17, 18, 19])
@pytest.mark.parametrize(
    "operations", [("multiply", "multiply"), ("add", "multiply"), ("multiply", "subtract")]
)
def test_nested_arithmetic_does_not_overflow_where_spark_has_room(
    precision: int, operations: tuple[str, str], session: DuckDbSession
) -> None:
    source = decimal(precision, 1)
    greatest = Decimal("9" * precision).scaleb(-1)
    side = literal(greatest, source)
    inner = result_type(operations[0], source, source)
    outer = result_type(operations[1], inner, source)
    value = expected(operations[0], greatest, greatest, inner)
    assert value is not None
    wanted = expected(operations[1], value, greatest, outer)
    nested = call(operations[0], inner, side, side)
    first, second = call(operations[1], outer, nested, side), call(operations[1], outer, side, nested)
    if wanted is None:
        for expression in (first, second):
            with pytest.raises(NumericOutOfRangeError):
                value_of(expression, session)
    else:
        assert value_of(first, session) == wanted
        assert value_of(second, session) == (EXACT.minus(wanted) if operations[1] == "subtract" else wanted)


def test_the_divisions_of_tpch_are_exact(session: DuckDbSession) -> None:
    # q14: decimal(38,6) / decimal(38,4) has 42 digits on the way.
    type_ = decimal(38, 6)
    promo = call(
        "divide",
        type_,
        call(
            "multiply",
            decimal(38, 6),
            literal(Decimal("100.00"), decimal(5, 2)),
            literal(Decimal("7.1234"), decimal(38, 4)),
        ),
        literal(Decimal("3.0001"), decimal(38, 4)),
    )
    assert value_of(promo, session) == Decimal("237.438752")


def test_nested_divisions_stay_short(session: DuckDbSession) -> None:
    expression = literal(Decimal("100.00"), decimal(7, 2))
    value = Decimal("100.00")
    nested = call("divide", decimal(15, 6), expression, literal(Decimal("3"), decimal(3, 0)))
    for _ in range(5):
        value = fit(divide(value, Decimal(3)), 15, 6)
        result, nested = nested, call("divide", decimal(15, 6), nested, literal(Decimal("3"), decimal(3, 0)))
        assert value_of(result, session) == value


@pytest.mark.parametrize(
    ("values", "average"),
    [
        (["1.00", "2.00"], "1.500000"),
        (["0.01", "0.01", "0.00"], "0.006667"),
        (["-0.01", "-0.01", "0.00"], "-0.006667"),
        ([None, "5.00"], "5.000000"),
        ([None], None),
        ([], None),
    ],
)
def test_an_average_of_decimals_is_decimal(
    values: list[str | None], average: str | None, session: DuckDbSession
) -> None:
    source = column(1, decimal(15, 2))
    tree = Aggregate(
        Input(0, (source,)),
        (),
        (
            named(2, aggregation("avg", decimal(19, 6), source)),
            named(3, aggregation("sum", decimal(25, 2), source)),
            named(4, aggregation("count", LONG, source)),
        ),
    )
    rows = rows_of((source,), [(None if v is None else Decimal(v),) for v in values])
    present = [Decimal(v) for v in values if v is not None]
    wanted = None if average is None else Decimal(average)
    assert run(tree, session, i0=rows) == [(wanted, sum(present) if present else None, len(present))]


def test_a_wide_average_has_more_digits_than_128_bits(session: DuckDbSession) -> None:
    source = column(1, decimal(32, 4))
    tree = Aggregate(Input(0, (source,)), (), (named(2, aggregation("avg", decimal(36, 8), source)),))
    rows = rows_of((source,), [(Decimal("9999999999999999999999999999.9999"),), (Decimal("0.0002"),)] * 3)
    assert run(tree, session, i0=rows) == [(Decimal("5000000000000000000000000000.00005000"),)]

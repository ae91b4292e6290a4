"""Which expressions may be computed for rows that nobody asked about."""

from __future__ import annotations

import pytest
from tests.plan.builders import call, column, holds, literal

from wallaby.relations.expression import Expression
from wallaby.relations.infallible import cannot_fail
from wallaby.relations.types import DATE, DOUBLE, INTEGER, LONG, STRING, DataType, Kind, decimal

FLOAT = DataType(Kind.FLOAT)
INT, BIG, TEXT, DAY = (
    column(1, "i", INTEGER),
    column(2, "l"),
    column(3, "s", STRING),
    column(4, "d", DATE),
)
MONEY, REAL, SHORT_REAL = column(5, "m", decimal(7, 2)), column(6, "r", DOUBLE), column(7, "f", FLOAT)


def cast(value: Expression, target: DataType) -> Expression:
    return call("cast", value, type_=target)


@pytest.mark.parametrize(
    "expression",
    [
        holds("ne", INT, literal(1)),
        holds("lt", cast(INT, LONG), BIG),
        cast(INT, decimal(10, 0)),
        cast(BIG, DOUBLE),
        cast(SHORT_REAL, DOUBLE),
        cast(MONEY, decimal(11, 6)),
        call("multiply", MONEY, MONEY, type_=decimal(15, 4)),
        call("add", MONEY, MONEY, type_=decimal(8, 2)),
        call("multiply", REAL, REAL),
        call("date_add", DAY, literal(5)),
        holds("ne", call("substring", TEXT, literal(1), literal(5)), call("upper", TEXT)),
    ],
    ids=str,
)
def test_what_has_a_value_for_every_row_cannot_fail(expression: Expression) -> None:
    assert cannot_fail(expression)


@pytest.mark.parametrize(
    "expression",
    [
        cast(BIG, INTEGER),
        cast(TEXT, INTEGER),
        cast(INT, decimal(9, 0)),
        cast(MONEY, decimal(7, 3)),
        cast(REAL, FLOAT),
        cast(REAL, LONG),
        call("divide", INT, INT),
        call("add", INT, literal(1)),
        call("multiply", MONEY, MONEY, type_=decimal(14, 4)),
        call("add", MONEY, MONEY, type_=decimal(7, 2)),
        call("date_add", DAY, INT),
        call("date_add", DAY, literal(2_000_000_000)),
        holds("lt", call("divide", INT, INT), BIG),
    ],
    ids=str,
)
def test_what_may_overflow_or_divide_by_zero_can_fail(expression: Expression) -> None:
    assert not cannot_fail(expression)

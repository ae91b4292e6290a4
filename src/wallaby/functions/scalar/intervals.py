"""Intervals: microseconds as BIGINT, months as INTEGER. Parts are cut towards zero, and have the interval's sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.scalar.clock import MICROS_PER_DAY
from wallaby.functions.scalar.function import Function, of_kinds, template
from wallaby.functions.sql_integer import fitted
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import Kind
from wallaby.sql.words import case, error


def _of_time(pattern: str) -> Function:
    return Function((1, 1), template(pattern, typed=True), of_kinds(Kind.DAY_TIME))


def _of_months(pattern: str) -> Function:
    return Function((1, 1), template(pattern, typed=True), of_kinds(Kind.YEAR_MONTH))


#: In so many years there are no more months than fit, which Spark asks of them before it adds others.
_YEARS_MAX: Final = ((1 << 31) - 1) // 12


def _months(call: Call, sql: Sequence[str]) -> str:
    made = fitted(f"(CAST({sql[0]} AS BIGINT) * 12 + {sql[1]})", call.type, EvalMode.ANSI, _TOO_LONG)
    too_many = f"{sql[1]} IS NOT NULL AND {sql[0]} NOT BETWEEN -{_YEARS_MAX} AND {_YEARS_MAX}"
    return case([(too_many, _TOO_LONG)], made)


_TOO_LONG: Final = error(
    "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "The interval has too many months."
)

FUNCTIONS: dict[str, Function] = {
    "interval_to_number": Function(
        (1, 1), template("{0}", typed=True), of_kinds((Kind.DAY_TIME, Kind.YEAR_MONTH))
    ),
    "interval_days": _of_time(f"({{0}} // {MICROS_PER_DAY})"),
    "interval_hours": _of_time(f"({{0}} % {MICROS_PER_DAY} // 3600000000)"),
    "interval_minutes": _of_time("({0} % 3600000000 // 60000000)"),
    "interval_seconds": _of_time(
        "(CAST({0} % 60000000 AS DECIMAL(12,0)) * CAST('0.000001' AS DECIMAL(6,6)))"
    ),
    "make_months": Function(
        (2, 2),
        _months,
        of_kinds((Kind.BYTE, Kind.SHORT, Kind.INTEGER)),
        lambda _: True,
    ),
    "interval_years": _of_months("({0} // 12)"),
    "interval_months": _of_months("({0} % 12)"),
}

"""Intervals: microseconds as BIGINT, months as INTEGER. Parts are cut towards zero, and have the interval's sign."""

from __future__ import annotations

from wallaby.kernels.scalar.clock import MICROS_PER_DAY
from wallaby.kernels.scalar.function import Function, of_kinds, template
from wallaby.plan.types import Kind


def _of_time(pattern: str) -> Function:
    return Function((1, 1), template(pattern, typed=True), of_kinds(Kind.DAY_TIME))


def _of_months(pattern: str) -> Function:
    return Function((1, 1), template(pattern, typed=True), of_kinds(Kind.YEAR_MONTH))


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
        template("(CAST({0} AS BIGINT) * 12 + {1})", typed=True),
        of_kinds((Kind.BYTE, Kind.SHORT, Kind.INTEGER)),
        lambda _: True,
    ),
    "interval_years": _of_months("({0} // 12)"),
    "interval_months": _of_months("({0} % 12)"),
}

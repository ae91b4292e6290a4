"""Dates."""

from __future__ import annotations

from collections.abc import Sequence

from wallaby.kernels.scalar.function import Function, template
from wallaby.kernels.sql_text import case, cast
from wallaby.plan.expression import Call
from wallaby.plan.types import Kind


def _dates(call: Call) -> str | None:
    type_ = call.arguments[0].type
    if type_.kind is not Kind.DATE:
        return f"{call.function} of {type_} is not supported"
    if len(call.arguments) == 2 and call.arguments[1].type.kind is not Kind.INTEGER:
        return f"{call.function} by {call.arguments[1].type} is not supported"
    return None


def _year(call: Call, sql: Sequence[str]) -> str:
    """DuckDB has no year 0; Java does."""
    return cast(case([(f"year({sql[0]}) < 0", f"year({sql[0]}) + 1")], f"year({sql[0]})"), call.type)


def _date_part(part: str) -> Function:
    return Function((1, 1), template(part + "({0})", typed=True), _dates)


FUNCTIONS: dict[str, Function] = {
    "year": Function((1, 1), _year, _dates),
    "month": _date_part("month"),
    "day": _date_part("day"),
    "date_add": Function((2, 2), template("({0} + {1})", typed=True), _dates),
    "add_months": Function((2, 2), template("({0} + to_months({1}))", typed=True), _dates),
}

"""Dates. Timestamps can be read and compared; what computes with them depends on a time zone and stays on Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import DATES, INTEGRAL
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import DataType

_LEAST: Final = -(2**31)


def _date_sub(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    start, days = arguments
    if not isinstance(days, Literal) or not isinstance(days.value, int) or days.value == _LEAST:
        return Refusal("the number of days to subtract is not a constant", "use date_add")
    return Call(entry.function, (start, Literal(-days.value, days.type)), kind, node.nullable)


def _months_as_number(node: Node) -> Node:
    """A constant interval of months is a number of months."""
    start, interval = node.children
    if interval.name == "Literal" and isinstance(interval.value, int):
        return replace(node, children=(start, replace(interval, type="int")))
    return node


_MONTHS: Final = guarded(
    "AddMonths",
    "add_months",
    DATES,
    INTEGRAL,
    guard="the last day of a shorter month stands for missing days",
)

ENTRIES: Final = (
    exact("Year", "year", DATES),
    exact("Month", "month", DATES),
    exact("DayOfMonth", "day", DATES),
    guarded("DateAdd", "date_add", DATES, INTEGRAL, guard="the result is a date, not a timestamp"),
    guarded("DateSub", "date_add", DATES, INTEGRAL, guard="of a constant", build=_date_sub),
    _MONTHS,
    replace(_MONTHS, catalyst="DateAddYMInterval", rewrite=_months_as_number),
)

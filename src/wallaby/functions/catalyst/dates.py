"""Dates, in the calendar of today for all times."""

from __future__ import annotations

from typing import Final

from wallaby.catalyst.data_types import DATES, INTEGRAL, TEXT, YEAR_MONTHS
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, STRING, DataType

#: The names of weekdays by their numbers from Monday on.
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            ("MO", "MON", "MONDAY"),
            ("TU", "TUE", "TUESDAY"),
            ("WE", "WED", "WEDNESDAY"),
            ("TH", "THU", "THURSDAY"),
            ("FR", "FRI", "FRIDAY"),
            ("SA", "SAT", "SATURDAY"),
            ("SU", "SUN", "SUNDAY"),
        ),
        start=1,
    )
    for name in names
}
_MONTHS: Final = "a day that the month does not have becomes its last day"
#: What units are called, and how we call them.
UNITS: Final = {
    "YEAR": "YEAR",
    "YYYY": "YEAR",
    "YY": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "MON": "MONTH",
    "MM": "MONTH",
    "WEEK": "WEEK",
}


def failing(node: Node) -> EvalMode:
    """The mode of an expression that says by a flag of its own whether it fails."""
    return EvalMode.ANSI if node.flag("failOnError") else EvalMode.TRY


def constant_text(expression: Expression) -> str | None:
    """A constant text, in capital letters."""
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value.upper()
    return None


def _next_day(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    start, name = arguments
    weekday = _WEEKDAYS.get(constant_text(name) or "")
    if weekday is None:
        return Refusal("the weekday is not a constant, or is none", "write the weekday as a constant")
    return Call(entry.function, (start, Literal(weekday, INTEGER)), kind, node.nullable)


def _trunc(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    start, name = arguments
    unit = constant_text(name)
    if unit is None:
        return Refusal("the unit is not a constant", "write the unit as a constant")
    if unit not in UNITS:
        return Literal(None, kind)
    return Call(entry.function, (start, Literal(UNITS[unit], STRING)), kind, node.nullable)


def _make_date(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    return Call(entry.function, arguments, kind, node.nullable, failing(node))


def _months(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """An interval of months is a number of months."""
    start, months = arguments
    if isinstance(months, Literal):
        number: Expression = Literal(months.value, INTEGER)
    else:
        number = Call("interval_to_number", (months,), INTEGER, months.nullable)
    return Call(entry.function, (start, number), kind, node.nullable)


ENTRIES: Final = (
    exact("Year", "year", DATES),
    exact("Quarter", "quarter", DATES),
    exact("Month", "month", DATES),
    exact("DayOfMonth", "day", DATES),
    exact("DayOfWeek", "day_of_week", DATES),
    exact("WeekDay", "weekday", DATES),
    exact("DayOfYear", "day_of_year", DATES),
    exact("WeekOfYear", "week_of_year", DATES),
    exact("YearOfWeek", "year_of_week", DATES),
    exact("DayName", "day_name", DATES),
    exact("MonthName", "month_name", DATES),
    exact("LastDay", "last_day", DATES),
    guarded("NextDay", "next_day", DATES, TEXT, guard="the weekday is a constant", build=_next_day),
    guarded("TruncDate", "trunc_date", DATES, TEXT, guard="the unit is a constant", build=_trunc),
    guarded("DateAdd", "date_add", DATES, INTEGRAL, guard="the result is a date, not a timestamp"),
    guarded("DateSub", "date_sub", DATES, INTEGRAL, guard="the result is a date, not a timestamp"),
    exact("DateDiff", "date_diff", DATES),
    guarded("AddMonths", "add_months", DATES, INTEGRAL, guard=_MONTHS),
    guarded("DateAddYMInterval", "add_months", DATES, YEAR_MONTHS, guard=_MONTHS, build=_months),
    exact("SubtractDates", "date_subtract", DATES),
    exact("UnixDate", "unix_date", DATES),
    exact("DateFromUnixDate", "date_from_unix", INTEGRAL),
    guarded(
        "MakeDate",
        "make_date",
        INTEGRAL,
        guard="an invalid date is an error (ANSI) or NULL",
        build=_make_date,
    ),
)

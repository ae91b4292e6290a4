"""Dates. Days are counted from 1970 on, in the calendar of today for all times, as Java does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.exact import times
from wallaby.functions.scalar.function import Function, Reason, Write, of_kinds, template
from wallaby.functions.scalar.words import always
from wallaby.relations.expression import Call, EvalMode, Literal
from wallaby.relations.types import Kind
from wallaby.sql.words import case, cast, error

_EPOCH: Final = "DATE '1970-01-01'"
#: Constants up to this many days are added as they are: only dates millions of years away are out of range then.
_DAYS_PLAIN: Final = 1_000_000
#: Days from 1970 on within which DuckDB's timestamps go on for ten thousand years and more.
_DAYS_NEAR: Final = 100_000_000
#: Years of DuckDB's own dates, with room for months and days.
_YEAR_NEAR: Final = 290_000
#: The last year of Java's calendar.
_YEAR_MAX: Final = 999_999_999
TOO_FAR: Final = error("ARITHMETIC_OVERFLOW", "A date or a time is too far away.")
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER)
_ONE: Final = of_kinds(Kind.DATE)
#: From a date to the first day of a unit.
_FIRST_DAYS: Final = {
    "WEEK": "({0} - CAST(isodow({0}) - 1 AS INTEGER))",
    "MONTH": "({0} - CAST(day({0}) - 1 AS INTEGER))",
    "QUARTER": "make_date(year({0}), (quarter({0}) - 1) * 3 + 1, 1)",
    "YEAR": "({0} - CAST(dayofyear({0}) - 1 AS INTEGER))",
}


def days_of(sql: str) -> str:
    """The number of a date's day."""
    return f"({sql} - {_EPOCH})"


def first_day_of(sql: str, unit: str) -> str:
    """The first day of the week, month, quarter or year that a date is in."""
    return _FIRST_DAYS[unit].format(sql)


def _part(pattern: str) -> Function:
    return Function((1, 1), template(pattern, typed=True), _ONE)


def _date_add(call: Call, sql: Sequence[str]) -> str:
    """Days beyond the last one begin again at the first, as Java's numbers do."""
    days = call.arguments[1]
    if isinstance(days, Literal) and isinstance(days.value, int) and abs(days.value) < _DAYS_PLAIN:
        return cast(f"({sql[0]} {'-' if call.function == 'date_sub' else '+'} {sql[1]})", call.type)
    sign = "-" if call.function == "date_sub" else "+"
    number = f"(CAST({days_of(sql[0])} AS BIGINT) {sign} CAST({sql[1]} AS BIGINT))"
    wrapped = f"CAST((({number} + 2147483648) & 4294967295) - 2147483648 AS INTEGER)"
    near = f"{wrapped} BETWEEN -2147483646 AND 2147483646"
    return case([(near, cast(f"({_EPOCH} + {wrapped})", call.type))], f"{times.DATE_OF}({wrapped})")


def _add_months(call: Call, sql: Sequence[str]) -> str:
    """DuckDB's own where neither the date nor the months lead out of its timestamps."""
    months = f"CAST({sql[1]} AS INTEGER)"
    near = f"{days_of(sql[0])} BETWEEN {-_DAYS_NEAR} AND {_DAYS_NEAR} AND {months} BETWEEN -99999 AND 99999"
    moved = f"{times.ADD_MONTHS}(CAST({days_of(sql[0])} AS INTEGER), {months})"
    far = f"{times.DATE_OF}({moved})"
    return case([(near, cast(f"({sql[0]} + to_months({months}))", call.type))], far)


def _next_day(call: Call, sql: Sequence[str]) -> str:
    """The next such weekday after a date; 1 is Monday."""
    return cast(f"({sql[0]} + CAST(({sql[1]} - isodow({sql[0]}) + 6) % 7 + 1 AS INTEGER))", call.type)


def _trunc(call: Call, sql: Sequence[str]) -> str:
    unit = call.arguments[1]
    assert isinstance(unit, Literal)
    return cast(first_day_of(sql[0], str(unit.value)), call.type)


def _trunc_reason(call: Call) -> str | None:
    unit = call.arguments[1]
    known = isinstance(unit, Literal) and unit.value in _FIRST_DAYS
    return None if known and call.arguments[0].type.kind is Kind.DATE else "this unit is not supported"


def _make_date(call: Call, sql: Sequence[str]) -> str:
    """A date that is none is an error or NULL; one that is too far away is Java's own error, in every mode."""
    missing = " OR ".join(f"{part} IS NULL" for part in sql)
    days = days_until(*sql)
    made = case(
        [
            (f"{sql[0]} BETWEEN -{_YEAR_NEAR} AND {_YEAR_NEAR}", f"make_date({', '.join(sql)})"),
            (
                f"{days} BETWEEN -{1 << 31} AND {(1 << 31) - 1}",
                f"{times.DATE_OF}(CAST({days} AS INTEGER))",
            ),
        ],
        TOO_FAR,
    )
    return case([(missing, "NULL"), (is_date(*sql), made)], out_of_bounds(call.mode))


def is_date(year: str, month: str, day: str) -> str:
    """Is there such a day in Java's calendar?"""
    known = f"{month} BETWEEN 1 AND 12 AND {year} BETWEEN -{_YEAR_MAX} AND {_YEAR_MAX}"
    return f"({known} AND {day} BETWEEN 1 AND day(last_day({_first_alike(year, month)})))"


def days_until(year: str, month: str, day: str) -> str:
    """The number of a day that there is, from 1970 on, as a long."""
    ages = f"((CAST({year} AS BIGINT) - {_alike(year)}) // 400)"
    first = f"CAST({_first_alike(year, month)} - {_EPOCH} AS BIGINT)"
    return f"({first} + {day} - 1 + {ages} * 146097)"


def _first_alike(year: str, month: str) -> str:
    """The first day of a month in a year that is alike; of any month, since DuckDB may compute it before it is used."""
    return f"make_date({_alike(year)}, least(greatest({month}, 1), 12), 1)"


def _alike(year: str) -> str:
    """A year with the same days, near enough for DuckDB: calendars repeat after 400 years."""
    return f"(2000 + ({year} % 400 + 400) % 400)"


def out_of_bounds(mode: EvalMode) -> str:
    """What a date or a time gives whose parts cannot be."""
    if mode is not EvalMode.ANSI:
        return "NULL"
    return error("DATETIME_FIELD_OUT_OF_BOUNDS", "A part of a date or of a time is out of its bounds.")


def _with_whole(write: Write) -> Function:
    reason: Reason = of_kinds(Kind.DATE, _WHOLE)
    return Function((2, 2), write, reason)


FUNCTIONS: dict[str, Function] = {
    "year": _part("year({0})"),
    "month": _part("month({0})"),
    "day": _part("day({0})"),
    "quarter": _part("quarter({0})"),
    "day_of_week": _part("(dayofweek({0}) + 1)"),
    "weekday": _part("(isodow({0}) - 1)"),
    "day_of_year": _part("dayofyear({0})"),
    "week_of_year": _part("weekofyear({0})"),
    "year_of_week": _part("isoyear({0})"),
    "last_day": _part("last_day({0})"),
    "day_name": _part("left(dayname({0}), 3)"),
    "month_name": _part("left(monthname({0}), 3)"),
    "unix_date": _part(f"({{0}} - {_EPOCH})"),
    "date_from_unix": Function((1, 1), template(f"({_EPOCH} + {{0}})", typed=True), of_kinds(Kind.INTEGER)),
    "date_add": _with_whole(_date_add),
    "date_sub": _with_whole(_date_add),
    "add_months": Function((2, 2), _add_months, of_kinds(Kind.DATE, _WHOLE), always),
    "date_diff": Function((2, 2), template("({0} - {1})", typed=True), _ONE),
    "next_day": _with_whole(_next_day),
    "trunc_date": Function((2, 2), _trunc, _trunc_reason),
    "make_date": Function((3, 3), _make_date, of_kinds(_WHOLE), always),
}

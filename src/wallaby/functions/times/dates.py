"""Dates. Days are counted from 1970, in today's calendar for all times, as in Java."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import DATES, INTEGRAL, INTS, SHORT_INTEGRAL, TEXT, YEAR_MONTHS
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, of_kinds, template
from wallaby.functions.size import constant
from wallaby.functions.times import zone_clocks as times
from wallaby.functions.times.clock import MICROS_PER_DAY
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import INTEGER, STRING, DataType, Kind
from wallaby.sql.words import case, cast, error

#: The names of weekdays, from Monday.
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
#: Spark's names of units, and ours.
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
    """Read the mode of an expression from its own flag."""
    return EvalMode.ANSI if node.flag("failOnError") else EvalMode.TRY


def constant_text(expression: Expression) -> str | None:
    """A constant text, in capital letters."""
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value.upper()
    return None


def _read_next_day(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    start, name = arguments
    weekday = _WEEKDAYS.get(constant_text(name) or "")
    if weekday is None:
        return Refusal(
            "the weekday is not a constant, or not the name of a day", "write the weekday as a constant"
        )
    return Call(entry.function, (start, Literal(weekday, INTEGER)), kind, node.nullable)


def _read_trunc(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    start, name = arguments
    unit = constant_text(name)
    if unit is None:
        return Refusal("the unit is not a constant", "write the unit as a constant")
    if unit not in UNITS:
        return Literal(None, kind)
    return Call(entry.function, (start, Literal(UNITS[unit], STRING)), kind, node.nullable)


def _read_make_date(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    return Call(entry.function, arguments, kind, node.nullable, failing(node))


def _months(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Treat an interval of months as a number of months."""
    start, months = arguments
    if isinstance(months, Literal):
        number: Expression = Literal(months.value, INTEGER)
    else:
        number = Call("interval_to_number", (months,), INTEGER, months.nullable)
    return Call(entry.function, (start, number), kind, node.nullable)


_EPOCH: Final = "DATE '1970-01-01'"
#: Constants up to this many days are added directly: only dates millions of years away can then be out of range.
_DAYS_PLAIN: Final = 1_000_000
#: Days from 1970 within which DuckDB's timestamps reach at least ten thousand years further.
_DAYS_NEAR: Final = 100_000_000
#: The years of DuckDB's own dates, with room for months and days.
_YEAR_NEAR: Final = 290_000
#: The last year of Java's calendar.
_YEAR_MAX: Final = 999_999_999
TOO_FAR: Final = error("ARITHMETIC_OVERFLOW", "A date or a time is too far away.")
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER)
#: SQL from a date to the first day of a unit.
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


#: The longest short name of a day or a month.
_NAME_BYTES: Final = 3


def _part(pattern: str) -> ScalarSql:
    return ScalarSql(1, template(pattern, typed=True), size=constant(_NAME_BYTES))


def _date_add(call: Call, sql: Sequence[str]) -> str:
    """Add days; they wrap around at the end, like Java's ints."""
    days = call.arguments[1]
    if isinstance(days, Literal) and isinstance(days.value, int) and abs(days.value) < _DAYS_PLAIN:
        return cast(f"({sql[0]} {'-' if call.function == 'date_sub' else '+'} {sql[1]})", call.type)
    sign = "-" if call.function == "date_sub" else "+"
    number = f"(CAST({days_of(sql[0])} AS BIGINT) {sign} CAST({sql[1]} AS BIGINT))"
    wrapped = f"CAST((({number} + 2147483648) & 4294967295) - 2147483648 AS INTEGER)"
    near = f"{wrapped} BETWEEN -2147483646 AND 2147483646"
    return case([(near, cast(f"({_EPOCH} + {wrapped})", call.type))], f"{times.DATE_OF}({wrapped})")


def _add_months(call: Call, sql: Sequence[str]) -> str:
    """Add months, with DuckDB's own function where the result stays within its timestamps."""
    months = f"CAST({sql[1]} AS INTEGER)"
    near = f"{days_of(sql[0])} BETWEEN {-_DAYS_NEAR} AND {_DAYS_NEAR} AND {months} BETWEEN -99999 AND 99999"
    moved = f"{times.ADD_MONTHS}(CAST({days_of(sql[0])} AS INTEGER), {months})"
    far = f"{times.DATE_OF}({moved})"
    return case([(near, cast(f"({sql[0]} + to_months({months}))", call.type))], far)


def _write_next_day(call: Call, sql: Sequence[str]) -> str:
    """The next given weekday after a date; 1 is Monday."""
    return cast(f"({sql[0]} + CAST(({sql[1]} - isodow({sql[0]}) + 6) % 7 + 1 AS INTEGER))", call.type)


def _write_trunc(call: Call, sql: Sequence[str]) -> str:
    unit = call.arguments[1]
    assert isinstance(unit, Literal)
    return cast(first_day_of(sql[0], str(unit.value)), call.type)


def _trunc_reason(call: Call) -> str | None:
    unit = call.arguments[1]
    known = isinstance(unit, Literal) and unit.value in _FIRST_DAYS
    return None if known and call.arguments[0].type.kind is Kind.DATE else "this unit is not supported"


def _write_make_date(call: Call, sql: Sequence[str]) -> str:
    """Make a date; an invalid one is an error or NULL, one out of range is Java's own error in every mode."""
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
    """Does this day exist in Java's calendar?"""
    known = f"{month} BETWEEN 1 AND 12 AND {year} BETWEEN -{_YEAR_MAX} AND {_YEAR_MAX}"
    return f"({known} AND {day} BETWEEN 1 AND day(last_day({_first_alike(year, month)})))"


def days_until(year: str, month: str, day: str) -> str:
    """The number of an existing day, from 1970, as a long."""
    ages = f"((CAST({year} AS BIGINT) - {_alike(year)}) // 400)"
    first = f"CAST({_first_alike(year, month)} - {_EPOCH} AS BIGINT)"
    return f"({first} + {day} - 1 + {ages} * 146097)"


def _first_alike(year: str, month: str) -> str:
    """The first day of a month in an equivalent year; valid for any month, because DuckDB may compute it early."""
    return f"make_date({_alike(year)}, least(greatest({month}, 1), 12), 1)"


def _alike(year: str) -> str:
    """A year with the same days within DuckDB's range: the calendar repeats after 400 years."""
    return f"(2000 + ({year} % 400 + 400) % 400)"


def out_of_bounds(mode: EvalMode) -> str:
    """The result for a date or a time with impossible parts."""
    if mode is not EvalMode.ANSI:
        return "NULL"
    return error("DATETIME_FIELD_OUT_OF_BOUNDS", "A part of a date or of a time is out of its bounds.")


def _subtract_dates(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"(CAST({sql[0]} - {sql[1]} AS BIGINT) * {MICROS_PER_DAY})"


FAMILY: Final = Family(
    "Dates",
    (
        exact(
            "Year",
            "year",
            DATES,
            sql=_part("year({0})"),
            examples=("year({date})", "extract(year from {date})"),
        ),
        exact("Quarter", "quarter", DATES, sql=_part("quarter({0})"), examples=("quarter({date})",)),
        exact("Month", "month", DATES, sql=_part("month({0})"), examples=("month({date})",)),
        exact("DayOfMonth", "day", DATES, sql=_part("day({0})"), examples=("day({date})",)),
        exact(
            "DayOfWeek",
            "day_of_week",
            DATES,
            sql=_part("(dayofweek({0}) + 1)"),
            examples=("dayofweek({time})",),
        ),
        exact("WeekDay", "weekday", DATES, sql=_part("(isodow({0}) - 1)"), examples=("weekday({date})",)),
        exact(
            "DayOfYear", "day_of_year", DATES, sql=_part("dayofyear({0})"), examples=("dayofyear({date})",)
        ),
        exact(
            "WeekOfYear",
            "week_of_year",
            DATES,
            sql=_part("weekofyear({0})"),
            examples=("weekofyear({date})",),
        ),
        exact(
            "YearOfWeek",
            "year_of_week",
            DATES,
            sql=_part("isoyear({0})"),
            examples=("extract(yearofweek from {date})",),
        ),
        exact(
            "DayName", "day_name", DATES, sql=_part("left(dayname({0}), 3)"), examples=("dayname({date})",)
        ),
        exact(
            "MonthName",
            "month_name",
            DATES,
            sql=_part("left(monthname({0}), 3)"),
            examples=("monthname({date})",),
        ),
        exact("LastDay", "last_day", DATES, sql=_part("last_day({0})"), examples=("last_day({time})",)),
        guarded(
            "NextDay",
            "next_day",
            DATES,
            TEXT,
            guard="the weekday is a constant",
            build=_read_next_day,
            sql=ScalarSql(2, _write_next_day, reason=of_kinds(Kind.DATE, Kind.INTEGER)),
            examples=("next_day({date}, 'MO')", "next_day({date}, 'sunday')", "next_day({time}, 'Thu')"),
        ),
        guarded(
            "TruncDate",
            "trunc_date",
            DATES,
            TEXT,
            guard="the unit is a constant",
            build=_read_trunc,
            sql=ScalarSql(2, _write_trunc, reason=_trunc_reason),
            examples=tuple(
                f"trunc({{date}}, '{unit}')" for unit in ("yy", "QUARTER", "mon", "week", "day", "?")
            ),
        ),
        guarded(
            "DateAdd",
            "date_add",
            DATES,
            SHORT_INTEGRAL,
            guard="the result is a date, not a timestamp",
            sql=ScalarSql(2, _date_add),
            examples=("date_add({date}, {small})", "{date} + 40", "date_add({date}, {int})"),
        ),
        guarded(
            "DateSub",
            "date_sub",
            DATES,
            SHORT_INTEGRAL,
            guard="the result is a date, not a timestamp",
            sql=ScalarSql(2, _date_add),
            examples=("date_sub({date}, 45)", "{date} - 1", "date_sub({date}, {small})"),
        ),
        exact(
            "DateDiff",
            "date_diff",
            DATES,
            sql=ScalarSql(2, template("({0} - {1})", typed=True)),
            examples=("datediff({time}, {time})",),
        ),
        guarded(
            "AddMonths",
            "add_months",
            DATES,
            INTEGRAL,
            guard=_MONTHS,
            sql=ScalarSql(2, _add_months, reason=of_kinds(Kind.DATE, _WHOLE), fallible=always),
            examples=(
                "add_months({date}, {small})",
                "add_months({date}, -13)",
                "unix_date(add_months({date}, 9000000))",
            ),
        ),
        guarded(
            "DateAddYMInterval",
            "add_months",
            DATES,
            YEAR_MONTHS,
            guard=_MONTHS,
            build=_months,
            examples=("{date} + interval 1 month", "{date} - interval '2-3' year to month"),
        ),
        exact(
            "SubtractDates",
            "date_subtract",
            DATES,
            sql=ScalarSql(2, _subtract_dates),
            examples=("{date} - {date}",),
        ),
        exact(
            "UnixDate", "unix_date", DATES, sql=_part(f"({{0}} - {_EPOCH})"), examples=("unix_date({date})",)
        ),
        exact(
            "DateFromUnixDate",
            "date_from_unix",
            INTS,
            sql=ScalarSql(1, template(f"({_EPOCH} + {{0}})", typed=True)),
            examples=("date_from_unix_date({small})", "date_from_unix_date(unix_date({date}))"),
        ),
        guarded(
            "MakeDate",
            "make_date",
            INTEGRAL,
            guard="an invalid date is an error (ANSI) or NULL",
            build=_read_make_date,
            sql=ScalarSql(3, _write_make_date, reason=of_kinds(_WHOLE), fallible=always),
            examples=("make_date(2000 + {small}, {small}, {small})", "make_date({int}, {small}, 28)"),
        ),
    ),
)

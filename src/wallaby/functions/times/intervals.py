"""Intervals: microseconds as BIGINT, months as INTEGER. Parts are truncated towards zero, with the interval's sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import DAY_TIMES, DECIMALS, INTEGRAL, SHORT_INTEGRAL, YEAR_MONTHS
from wallaby.functions.doubt import DOUBT, DOUBTFUL
from wallaby.functions.entry import exact, guarded, unsupported
from wallaby.functions.family import Family
from wallaby.functions.numbers.decimal_sql import unscaled
from wallaby.functions.numbers.integers import fitted
from wallaby.functions.scalar_sql import ScalarSql, of_kinds, template
from wallaby.functions.times.clock import MICROS_PER_DAY
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import Kind
from wallaby.sql.words import case, cast, error

_INTERVAL: Final = "({timestamp} - {timestamp})"
_MONTHS: Final = "make_ym_interval({small}, {small})"
_MIXED: Final = "intervals that mix months, days and times are not supported"
_FITTING: Final = f"where the product is an interval; {DOUBT}"
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
#: Up to these days and hours, with any minutes and seconds, the microseconds fit.
_DAYS_MAX: Final = 50_000_000
_HOURS_MAX: Final = 1_000_000_000


def _times(call: Call, sql: Sequence[str]) -> str:
    """An interval of days, hours, minutes and seconds with six decimal places."""
    days, hours, minutes = (f"CAST({part} AS BIGINT)" for part in sql[:3])
    micros = f"CAST({unscaled(sql[3], call.arguments[3].type)} AS BIGINT)"
    made = f"({days} * {MICROS_PER_DAY} + {hours} * 3600000000 + {minutes} * 60000000 + {micros})"
    fits = f"abs({days}) <= {_DAYS_MAX} AND abs({hours}) <= {_HOURS_MAX}"
    nothing = " OR ".join(f"{part} IS NULL" for part in sql)
    return case([(nothing, "NULL"), (fits, cast(made, call.type))], _ODD_INTERVAL)


def _multiple(call: Call, sql: Sequence[str]) -> str:
    return fitted(f"(CAST({sql[0]} AS HUGEINT) * {sql[1]})", call.type, EvalMode.ANSI, _ODD_INTERVAL)


_ODD_INTERVAL: Final = error(DOUBTFUL, "Only Spark computes this interval.")


def _of_time(pattern: str) -> ScalarSql:
    return ScalarSql(1, template(pattern, typed=True))


def _of_months(pattern: str) -> ScalarSql:
    return ScalarSql(1, template(pattern, typed=True))


#: The most years whose months fit, which Spark checks before it adds other months.
_YEARS_MAX: Final = ((1 << 31) - 1) // 12


def _months(call: Call, sql: Sequence[str]) -> str:
    made = fitted(f"(CAST({sql[0]} AS BIGINT) * 12 + {sql[1]})", call.type, EvalMode.ANSI, _TOO_LONG)
    too_many = f"{sql[1]} IS NOT NULL AND {sql[0]} NOT BETWEEN -{_YEARS_MAX} AND {_YEARS_MAX}"
    return case([(too_many, _TOO_LONG)], made)


_TOO_LONG: Final = error(
    "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "The interval has too many months."
)


FAMILY: Final = Family(
    "Intervals",
    (
        exact(
            "ExtractANSIIntervalDays",
            "interval_days",
            DAY_TIMES,
            sql=_of_time(f"({{0}} // {MICROS_PER_DAY})"),
            examples=(f"extract(day from {_INTERVAL})",),
        ),
        exact(
            "ExtractANSIIntervalHours",
            "interval_hours",
            DAY_TIMES,
            sql=_of_time(f"({{0}} % {MICROS_PER_DAY} // 3600000000)"),
            examples=(f"extract(hour from {_INTERVAL})",),
        ),
        exact(
            "ExtractANSIIntervalMinutes",
            "interval_minutes",
            DAY_TIMES,
            sql=_of_time("({0} % 3600000000 // 60000000)"),
            examples=(f"extract(minute from {_INTERVAL})",),
        ),
        exact(
            "ExtractANSIIntervalSeconds",
            "interval_seconds",
            DAY_TIMES,
            sql=_of_time("(CAST({0} % 60000000 AS DECIMAL(12,0)) * CAST('0.000001' AS DECIMAL(6,6)))"),
            examples=(f"extract(second from {_INTERVAL})",),
        ),
        exact(
            "ExtractANSIIntervalYears",
            "interval_years",
            YEAR_MONTHS,
            sql=_of_months("({0} // 12)"),
            examples=(f"extract(year from {_MONTHS})",),
        ),
        exact(
            "ExtractANSIIntervalMonths",
            "interval_months",
            YEAR_MONTHS,
            sql=_of_months("({0} % 12)"),
            examples=(f"extract(month from {_MONTHS})",),
        ),
        guarded(
            "MakeYMInterval",
            "make_months",
            SHORT_INTEGRAL,
            guard="a value that does not fit is an error",
            sql=ScalarSql(2, _months, fallible=always),
            examples=(f"extract(year from {_MONTHS})", "{date} + make_ym_interval(1, {small})"),
        ),
        guarded(
            "MakeDTInterval",
            "make_time_interval",
            SHORT_INTEGRAL,
            SHORT_INTEGRAL,
            SHORT_INTEGRAL,
            DECIMALS,
            guard=f"of up to 50 million days and a billion hours; {DOUBT}",
            sql=ScalarSql(4, _times, fallible=always, doubtful=True),
            examples=(
                "extract(day from make_dt_interval({small}, {small}, {small}, {small} + 0.25))",
                "{timestamp} + make_dt_interval(0, {small}, {small}, 1.5)",
            ),
        ),
        guarded(
            "MultiplyDTInterval",
            "multiply_interval",
            DAY_TIMES,
            INTEGRAL,
            guard=_FITTING,
            sql=ScalarSql(
                2,
                _multiple,
                reason=of_kinds((Kind.DAY_TIME, Kind.YEAR_MONTH), _WHOLE),
                fallible=always,
                doubtful=True,
            ),
            examples=(
                "{timestamp} + interval '1' hour * {small}",
                f"extract(hour from {_INTERVAL} * {{small}})",
            ),
        ),
        guarded(
            "MultiplyYMInterval",
            "multiply_interval",
            YEAR_MONTHS,
            INTEGRAL,
            guard=_FITTING,
            examples=(
                "{date} + interval '1' month * {small}",
                f"extract(month from {_MONTHS} * {{small}})",
            ),
        ),
        unsupported("MakeInterval", _MIXED, "use make_dt_interval or make_ym_interval"),
    ),
    also={
        "interval_to_number": ScalarSql(
            1, template("{0}", typed=True), reason=of_kinds((Kind.DAY_TIME, Kind.YEAR_MONTH))
        )
    },
)

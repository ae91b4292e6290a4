"""Timestamps: their parts, arithmetic with intervals, and ways to and from numbers and dates.

The rules of the zone are a call's last argument, a text, also where a timestamp without a zone does not need them.
Units are constants in capital letters, as the registry writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.exact import times
from wallaby.functions.scalar.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    day_start_micros,
    floor_divided,
    instant_micros,
    local,
    local_micros,
    micros,
    near_instant_micros,
    shifted,
    timestamp,
    zone_reason,
    zone_text,
)
from wallaby.functions.scalar.dates import TOO_FAR, days_of, days_until, first_day_of, is_date, out_of_bounds
from wallaby.functions.scalar.function import Function, Reason, Write, of_kinds, template
from wallaby.functions.scalar.words import always
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import DATE, Kind
from wallaby.relations.zone import is_fixed
from wallaby.sql.words import case, cast, error

_INSTANTS: Final = (Kind.TIMESTAMP,)
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_DAYS_TOO: Final = (*_TIMESTAMPS, Kind.DATE)
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
_TEXT: Final = (Kind.STRING,)
#: Days from 1970 on whose microseconds are longs, on every clock.
_DAYS_NEAR: Final = 106_751_989
#: Units that are cut off by the clock, and those that are the same on every clock.
_CLOCK_UNITS: Final = frozenset({"MINUTE", "HOUR", "DAY"})
_PLAIN_UNITS: Final = frozenset({"MICROSECOND", "MILLISECOND", "SECOND"})
_DATE_UNITS: Final = frozenset({"WEEK", "MONTH", "QUARTER", "YEAR"})
UNITS: Final = _CLOCK_UNITS | _PLAIN_UNITS | _DATE_UNITS
UNIT_MICROS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": 60 * MICROS_PER_SECOND,
    "HOUR": 3600 * MICROS_PER_SECOND,
    "DAY": MICROS_PER_DAY,
    "WEEK": 7 * MICROS_PER_DAY,
}
UNIT_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _zoned(*places: tuple[Kind, ...]) -> Reason:
    """Arguments of these kinds, then a zone."""
    kinds = of_kinds(*places, _TEXT)

    def reason(call: Call) -> str | None:
        return kinds(call) or zone_reason(call)

    return reason


def _local_part(pattern: str) -> Function:
    """A part of what a clock shows."""

    def write(call: Call, sql: Sequence[str]) -> str:
        return cast(pattern.format(local(sql[0], call.arguments[0].type, zone_text(call))), call.type)

    return Function((2, 2), write, _zoned(_TIMESTAMPS))


def _second_with_fraction(call: Call, sql: Sequence[str]) -> str:
    shown = local(sql[0], call.arguments[0].type, zone_text(call))
    return cast(
        f"(CAST(microsecond({shown}) AS DECIMAL(12,0)) * CAST('0.000001' AS DECIMAL(6,6)))", call.type
    )


# ------------------------------------------------------------------------------------------------ conversions
def _to_date(call: Call, sql: Sequence[str]) -> str:
    return cast(local(sql[0], call.arguments[0].type, zone_text(call)), DATE)


def _of_date(call: Call, sql: Sequence[str]) -> str:
    return timestamp(day_start_micros(sql[0], call.type, zone_text(call)), call.type)


def _to_local(call: Call, sql: Sequence[str]) -> str:
    """The clock's time as a timestamp: without a zone, or as if the clock showed UTC."""
    return timestamp(shifted(micros(sql[0]), zone_text(call)), call.type)


def _of_local(call: Call, sql: Sequence[str]) -> str:
    return timestamp(instant_micros(micros(sql[0]), zone_text(call)), call.type)


def _convert_zone(call: Call, sql: Sequence[str]) -> str:
    """What one clock shows, as another clock shows it."""
    source, target = zone_text(call, -2), zone_text(call, -1)
    return timestamp(shifted(instant_micros(micros(sql[0]), source), target), call.type)


def _convert_zone_reason(call: Call) -> str | None:
    return of_kinds(_TIMESTAMPS, _TEXT)(call) or zone_reason(call, -2) or zone_reason(call)


def _micros_of(divisor: int) -> Write:
    def write(call: Call, sql: Sequence[str]) -> str:
        written = micros(sql[0])
        return cast(written if divisor == 1 else floor_divided(written, divisor), call.type)

    return write


def _of_number(factor: int) -> Write:
    """A timestamp from a number of units."""
    limit = ((1 << 63) - 1) // factor

    def write(call: Call, sql: Sequence[str]) -> str:
        wide = f"CAST({sql[0]} AS BIGINT)"
        if factor == 1 or call.arguments[0].type.kind is not Kind.LONG:
            return timestamp(f"({wide} * {factor})", call.type)
        failed = error("DATETIME_OVERFLOW", "A timestamp is too far away.")
        product = timestamp(f"({wide} * {factor})", call.type)
        return case([(f"{wide} NOT BETWEEN {-limit} AND {limit}", failed)], product)

    return write


def _of_seconds(call: Call, sql: Sequence[str]) -> str:
    """Fractions of a microsecond are cut off of floating point, and an error in a decimal."""
    source, value = call.arguments[0].type, sql[0]
    if source.is_floating:
        product = f"(CAST({value} AS DOUBLE) * 1000000)"
        low, high = "CAST(-9223372036854775808 AS DOUBLE)", "CAST(9223372036854774784 AS DOUBLE)"
        whole = f"CAST(trunc(least(greatest({product}, {low}), {high})) AS BIGINT)"
        return case([(f"isfinite({value})", timestamp(whole, call.type))])
    return _of_number(MICROS_PER_SECOND)(call, sql)


def _unix_timestamp(call: Call, sql: Sequence[str]) -> str:
    """Cut towards 1970, unlike `unix_seconds`."""
    source = call.arguments[0].type
    if source.kind is Kind.DATE:
        written = day_start_micros(sql[0], call.type, zone_text(call))
    else:
        written = micros(sql[0])
    return cast(f"({written} // {MICROS_PER_SECOND})", call.type)


# ------------------------------------------------------------------------------------------------- arithmetic
def _unit(call: Call, place: int) -> str:
    unit = call.arguments[place]
    assert isinstance(unit, Literal)
    return str(unit.value)


def _unit_reason(place: int, units: frozenset[str], *places: tuple[Kind, ...]) -> Reason:
    zoned = _zoned(*places)

    def reason(call: Call) -> str | None:
        unit = call.arguments[place]
        known = isinstance(unit, Literal) and unit.value in units
        return zoned(call) if known else f"{call.function} of this unit is not supported"

    return reason


def _trunc(call: Call, sql: Sequence[str]) -> str:
    """The arguments are a unit, a timestamp and the zone."""
    unit, zone, instant = _unit(call, 0), zone_text(call), micros(sql[1])
    if unit in _PLAIN_UNITS:
        return timestamp(micros(f"date_trunc('{unit.lower()}', make_timestamp({instant}))"), call.type)
    shown = f"make_timestamp({shifted(instant, zone)})"
    if unit in _DATE_UNITS:
        first = first_day_of(f"CAST({shown} AS DATE)", unit)
        cut = f"(CAST({days_of(first)} AS BIGINT) * {MICROS_PER_DAY})"
    else:
        cut = micros(f"date_trunc('{unit.lower()}', {shown})")
    return timestamp(near_instant_micros(cut, instant, zone), call.type)


def _add_micros(call: Call, sql: Sequence[str]) -> str:
    """Whole days are added on the clock, the rest to the instant."""
    value, interval = sql[0], sql[1]
    type_, zone = call.arguments[0].type, zone_text(call)
    if type_.kind is Kind.TIMESTAMP_NTZ or is_fixed(zone):
        return timestamp(f"({micros(value)} + {interval})", call.type)
    whole_days = f"({interval} // {MICROS_PER_DAY} * {MICROS_PER_DAY})"
    moved = near_instant_micros(f"({local_micros(value, type_, zone)} + {whole_days})", micros(value), zone)
    return timestamp(f"({moved} + ({interval} - {whole_days}))", call.type)


def _add_time(call: Call, sql: Sequence[str]) -> str:
    return timestamp(f"({micros(sql[0])} + {sql[1]})", call.type)


def _add_months(call: Call, sql: Sequence[str]) -> str:
    value, months = sql[0], sql[1]
    type_, zone = call.arguments[0].type, zone_text(call)
    moved = micros(f"({local(value, type_, zone)} + to_months(CAST({months} AS INTEGER)))")
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return timestamp(moved, call.type)
    return timestamp(near_instant_micros(moved, micros(value), zone), call.type)


def _subtract(call: Call, sql: Sequence[str]) -> str:
    """What the clock has gone on between two timestamps."""
    return f"({' - '.join(_locals(call, sql))})"


def _locals(call: Call, sql: Sequence[str]) -> tuple[str, str]:
    zone = zone_text(call)
    first, second = (local_micros(sql[place], call.arguments[place].type, zone) for place in (-3, -2))
    return first, second


def _diff(call: Call, sql: Sequence[str]) -> str:
    """Whole units on the clock from the first to the second timestamp, cut off; the unit comes first."""
    begin, end = _locals(call, sql)
    unit = _unit(call, 0)
    if unit in UNIT_MICROS:
        return cast(f"(({end} - {begin}) // {UNIT_MICROS[unit]})", call.type)
    return cast(f"({_whole_months(begin, end)} // {UNIT_MONTHS[unit]})", call.type)


def _whole_months(begin: str, end: str) -> str:
    """Whole months from one local time to another. A day that is not over does not count."""

    def month(date: str) -> str:
        return f"(CAST(year({date}) AS BIGINT) * 12 + month({date}))"

    first, last = (f"CAST(make_timestamp({side}) AS DATE)" for side in (begin, end))
    early, late = (f"(({s} % {MICROS_PER_DAY} + {MICROS_PER_DAY}) % {MICROS_PER_DAY})" for s in (begin, end))
    forth, back = f"{last} > {first} AND {late} < {early}", f"{last} < {first} AND {late} > {early}"
    full = f"({last} + CAST({case([(forth, '-1'), (back, '1')], '0')} AS INTEGER))"
    return f"((({month(full)} - {month(first)}) * 32 + day({full}) - day({first})) // 32)"


def _subtract_dates(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
    return f"(CAST({sql[0]} - {sql[1]} AS BIGINT) * {MICROS_PER_DAY})"


def _fractional_months(call: Call, sql: Sequence[str]) -> str:
    """Months with a fraction of 31 days; whole between equal days of the month and between last days."""
    zone = zone_text(call)
    sides = [_split(sql[place], call.arguments[place], zone) for place in (0, 1)]
    (months1, day1, last1, seconds1), (months2, day2, last2, seconds2) = sides
    whole = f"CAST({months1} - {months2} AS DOUBLE)"
    seconds = f"(({day1} - {day2}) * 86400 + {seconds1} - {seconds2})"
    difference = f"({whole} + CAST({seconds} AS DOUBLE) / 2678400)"
    rounded = call.arguments[2]
    if isinstance(rounded, Literal) and rounded.value:
        difference = f"(floor({difference} * 1e8 + 0.5) / 1e8)"
    return case([(f"{day1} = {day2} OR ({last1} AND {last2})", whole)], difference)


def _split(sql: str, argument: Expression, zone: str) -> tuple[str, str, str, str]:
    """Of a timestamp: the number of its month, its day, whether that is the last, the seconds of the day so far."""
    date = cast(local(sql, argument.type, zone), DATE)
    months = f"(CAST(year({date}) AS BIGINT) * 12 + month({date}))"
    so_far = f"(({micros(sql)} - {day_start_micros(date, argument.type, zone)}) // {MICROS_PER_SECOND})"
    return months, f"day({date})", f"({date} = last_day({date}))", so_far


def _fractional_months_reason(call: Call) -> str | None:
    if not isinstance(call.arguments[2], Literal):
        return f"{call.function} with a rounding that is no constant is not supported"
    return _zoned(_INSTANTS, _INSTANTS, (Kind.BOOLEAN,))(call)


def _make(call: Call, sql: Sequence[str]) -> str:
    """Year, month, day, hour, minute, seconds as decimal(16,6), and the zone. 60 seconds are a minute."""
    year, month, day, hour, minute, second = sql[:6]
    missing = " OR ".join(f"{part} IS NULL" for part in sql[:6])
    # As many digits as fit an int, the rest is lost, as in Spark.
    digits = f"CAST({second} * CAST(1000000 AS DECIMAL(7,0)) AS BIGINT)"
    fraction = f"((({digits} + 2147483648) & 4294967295) - 2147483648)"
    valid = (
        f"{is_date(year, month, day)} AND {hour} BETWEEN 0 AND 23"
        f" AND {minute} BETWEEN 0 AND 59 AND {fraction} BETWEEN 0 AND 60000000"
    )
    days = days_until(year, month, day)
    shown = f"({days} * {MICROS_PER_DAY} + (CAST({hour} AS BIGINT) * 60 + {minute}) * 60000000 + {fraction})"
    made = shown if call.type.kind is Kind.TIMESTAMP_NTZ else instant_micros(shown, zone_text(call))
    near = f"{days} BETWEEN -{_DAYS_NEAR} AND {_DAYS_NEAR}"
    there = case([(near, timestamp(made, call.type))], TOO_FAR)
    return case([(missing, "NULL"), (valid, there)], _bad_parts(fraction, call.mode))


def _bad_parts(fraction: str, mode: EvalMode) -> str:
    if mode is not EvalMode.ANSI:
        return "NULL"
    after = f"{fraction} > 60000000 AND {fraction} < 61000000"
    failed = error("INVALID_FRACTION_OF_SECOND", "The fraction of sec must be zero.")
    return case([(after, failed)], out_of_bounds(mode))


def _of_seconds_reason(call: Call) -> str | None:
    return of_kinds((*_WHOLE, Kind.FLOAT, Kind.DOUBLE))(call)


def _to_text(call: Call, sql: Sequence[str]) -> str:
    return f"{times.TEXT}({local_micros(sql[0], call.arguments[0].type, zone_text(call))})"


_WHOLE_INTERVAL: Final = (*_WHOLE, Kind.DAY_TIME)
_WHOLE_MONTHS: Final = (*_WHOLE, Kind.YEAR_MONTH)

FUNCTIONS: dict[str, Function] = {
    "hour": _local_part("hour({0})"),
    "minute": _local_part("minute({0})"),
    "second": _local_part("second({0})"),
    "second_with_fraction": Function((2, 2), _second_with_fraction, _zoned(_TIMESTAMPS)),
    "timestamp_to_date": Function((2, 2), _to_date, _zoned(_TIMESTAMPS)),
    "date_to_timestamp": Function((2, 2), _of_date, _zoned((Kind.DATE,)), always),
    "to_clock": Function((2, 2), _to_local, _zoned(_TIMESTAMPS), always),
    "from_clock": Function((2, 2), _of_local, _zoned(_TIMESTAMPS), always),
    "convert_zone": Function((3, 3), _convert_zone, _convert_zone_reason, always),
    "unix_seconds": Function((1, 1), _micros_of(MICROS_PER_SECOND), of_kinds(_TIMESTAMPS)),
    "unix_millis": Function((1, 1), _micros_of(1000), of_kinds(_TIMESTAMPS)),
    "unix_micros": Function((1, 1), _micros_of(1), of_kinds(_TIMESTAMPS)),
    "timestamp_to_double": Function(
        (1, 1), template("(epoch_us({0}) / 1e6)", typed=True), of_kinds(_INSTANTS)
    ),
    "timestamp_to_text": Function((2, 2), _to_text, _zoned(_TIMESTAMPS)),
    "unix_timestamp": Function((2, 2), _unix_timestamp, _zoned(_DAYS_TOO)),
    "timestamp_seconds": Function((1, 1), _of_seconds, _of_seconds_reason, always),
    "timestamp_millis": Function((1, 1), _of_number(1000), of_kinds(_WHOLE), always),
    "timestamp_micros": Function((1, 1), _of_number(1), of_kinds(_WHOLE)),
    "trunc_timestamp": Function((3, 3), _trunc, _unit_reason(0, UNITS, _TEXT, _INSTANTS)),
    "timestamp_add": Function((3, 3), _add_micros, _zoned(_TIMESTAMPS, _WHOLE_INTERVAL), always),
    "timestamp_add_time": Function((2, 2), _add_time, of_kinds(_TIMESTAMPS, _WHOLE), always),
    "timestamp_add_months": Function((3, 3), _add_months, _zoned(_TIMESTAMPS, _WHOLE_MONTHS), always),
    "timestamp_subtract": Function((3, 3), _subtract, _zoned(_TIMESTAMPS, _TIMESTAMPS), always),
    "timestamp_diff": Function(
        (4, 4),
        _diff,
        _unit_reason(0, frozenset((*UNIT_MICROS, *UNIT_MONTHS)), _TEXT, _TIMESTAMPS, _TIMESTAMPS),
        always,
    ),
    "date_subtract": Function((2, 2), _subtract_dates, of_kinds(Kind.DATE)),
    "months_between": Function((4, 4), _fractional_months, _fractional_months_reason),
    "make_timestamp": Function((7, 7), _make, _zoned(*[_WHOLE] * 5, (Kind.DECIMAL,)), always),
}

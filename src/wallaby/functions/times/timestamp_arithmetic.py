"""Arithmetic of timestamps and intervals: add, subtract, and count in units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import DAY_TIMES, TIMESTAMPS, YEAR_MONTHS
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, of_kinds
from wallaby.functions.times.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    day_start_micros,
    local,
    local_micros,
    micros,
    near_instant_micros,
    timestamp,
    zone_text,
)
from wallaby.functions.times.zone_arguments import session_zone, unit_of, unit_reason, zoned
from wallaby.functions.words import always
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import DATE, LONG, STRING, DataType, Kind
from wallaby.relations.zone import is_fixed
from wallaby.sql.words import case, cast

_UNITS: Final = (
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"),
)
_INTERVAL: Final = "({timestamp} - {timestamp})"
_ZONE: Final = "by Java's rules for the zone"
_MICROS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "DAYOFYEAR": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
#: Units of constant length.
_TIME_UNITS: Final = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"})
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DIFF_UNITS: Final = frozenset({*_MICROS, *_MONTHS} - {"DAYOFYEAR"})


def _add_unit(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Add units, as microseconds or months."""
    quantity, value, zone = arguments
    unit = str(node.field("unit")).upper()
    factor = _MICROS.get(unit) or _MONTHS.get(unit)
    if factor is None:
        return Refusal(f"the unit {unit} is not known")
    if isinstance(quantity, Literal) and isinstance(quantity.value, int):
        number: Expression = Literal(quantity.value * factor, LONG)
        if abs(quantity.value * factor) > 1 << 62:
            return Refusal("the interval overflows 64 bits")
    else:
        number = Call("multiply", (quantity, Literal(factor, LONG)), LONG, quantity.nullable)
    if unit in _TIME_UNITS:
        return Call("timestamp_add_time", (value, number), kind, node.nullable)
    function = "timestamp_add" if unit in _MICROS else "timestamp_add_months"
    return Call(function, (value, number, zone), kind, node.nullable)


def _read_diff(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    unit = str(node.field("unit")).upper()
    if unit not in _DIFF_UNITS:
        return Refusal(f"the unit {unit} is not known")
    return Call(entry.function, (Literal(unit, STRING), *arguments), kind, node.nullable)


_INSTANTS: Final = (Kind.TIMESTAMP,)
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
_TEXT: Final = (Kind.STRING,)
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


def _add_micros(call: Call, sql: Sequence[str]) -> str:
    """Add microseconds: whole days in local time, the rest to the instant."""
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
    """Subtract the local times of two timestamps."""
    return f"({' - '.join(_locals(call, sql))})"


def _locals(call: Call, sql: Sequence[str]) -> tuple[str, str]:
    zone = zone_text(call)
    first, second = (local_micros(sql[place], call.arguments[place].type, zone) for place in (-3, -2))
    return first, second


def _write_diff(call: Call, sql: Sequence[str]) -> str:
    """Count whole units of local time from the first to the second timestamp, truncated; the unit comes first."""
    begin, end = _locals(call, sql)
    unit = unit_of(call, 0)
    if unit in UNIT_MICROS:
        return cast(f"(({end} - {begin}) // {UNIT_MICROS[unit]})", call.type)
    return cast(f"({_whole_months(begin, end)} // {UNIT_MONTHS[unit]})", call.type)


def _whole_months(begin: str, end: str) -> str:
    """Whole months from one local time to another. An incomplete day does not count."""

    def month(date: str) -> str:
        return f"(CAST(year({date}) AS BIGINT) * 12 + month({date}))"

    first, last = (f"CAST(make_timestamp({side}) AS DATE)" for side in (begin, end))
    early, late = (f"(({s} % {MICROS_PER_DAY} + {MICROS_PER_DAY}) % {MICROS_PER_DAY})" for s in (begin, end))
    forth, back = f"{last} > {first} AND {late} < {early}", f"{last} < {first} AND {late} > {early}"
    full = f"({last} + CAST({case([(forth, '-1'), (back, '1')], '0')} AS INTEGER))"
    return f"((({month(full)} - {month(first)}) * 32 + day({full}) - day({first})) // 32)"


def _fractional_months(call: Call, sql: Sequence[str]) -> str:
    """Months with a fraction of 31 days; whole numbers between equal days of the month and between last days."""
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
    """Split a timestamp: the number of its month, its day, whether that is the last, and the seconds of the day."""
    date = cast(local(sql, argument.type, zone), DATE)
    months = f"(CAST(year({date}) AS BIGINT) * 12 + month({date}))"
    so_far = f"(({micros(sql)} - {day_start_micros(date, argument.type, zone)}) // {MICROS_PER_SECOND})"
    return months, f"day({date})", f"({date} = last_day({date}))", so_far


def _fractional_months_reason(call: Call) -> str | None:
    if not isinstance(call.arguments[2], Literal):
        return f"{call.function} with a rounding that is no constant is not supported"
    return zoned(_INSTANTS, _INSTANTS, (Kind.BOOLEAN,))(call)


_WHOLE_INTERVAL: Final = (*_WHOLE, Kind.DAY_TIME)
_WHOLE_MONTHS: Final = (*_WHOLE, Kind.YEAR_MONTH)


FAMILY: Final = Family(
    "Timestamps",
    (
        guarded(
            "TimestampAddInterval",
            "timestamp_add",
            TIMESTAMPS,
            DAY_TIMES,
            guard=f"days {_ZONE}, hours by time",
            zones=session_zone,
            sql=ScalarSql(3, _add_micros, reason=zoned(_TIMESTAMPS, _WHOLE_INTERVAL), fallible=always),
            examples=(
                "{timestamp} + interval 1 day",
                "{timestamp_ntz} - interval '1 02:03:04.5' day to second",
                "{timestamp} + make_dt_interval({small}, {small})",
                "{date} + interval 3 hours",
            ),
        ),
        guarded(
            "TimestampAddYMInterval",
            "timestamp_add_months",
            TIMESTAMPS,
            YEAR_MONTHS,
            guard=_ZONE,
            zones=session_zone,
            sql=ScalarSql(3, _add_months, reason=zoned(_TIMESTAMPS, _WHOLE_MONTHS), fallible=always),
            examples=(
                "{timestamp} - interval 1 month",
                "{timestamp_ntz} + interval '1-1' year to month",
            ),
        ),
        guarded(
            "TimestampAdd",
            "timestamp_add",
            guard=f"days and more {_ZONE}, hours by time",
            build=_add_unit,
            zones=session_zone,
            examples=tuple(f"timestampadd({unit}, {{small}}, {{time}})" for unit in _UNITS),
        ),
        guarded(
            "TimestampDiff",
            "timestamp_diff",
            TIMESTAMPS,
            guard=_ZONE,
            build=_read_diff,
            zones=session_zone,
            sql=ScalarSql(
                4,
                _write_diff,
                reason=unit_reason(
                    0, frozenset((*UNIT_MICROS, *UNIT_MONTHS)), _TEXT, _TIMESTAMPS, _TIMESTAMPS
                ),
                fallible=always,
            ),
            examples=tuple(f"timestampdiff({unit}, {{time}}, {{time}})" for unit in _UNITS),
        ),
        guarded(
            "SubtractTimestamps",
            "timestamp_subtract",
            TIMESTAMPS,
            guard=_ZONE,
            zones=session_zone,
            sql=ScalarSql(3, _subtract, reason=zoned(_TIMESTAMPS, _TIMESTAMPS), fallible=always),
            examples=(_INTERVAL, "{timestamp_ntz} - {timestamp_ntz}", "{timestamp} - {date}"),
        ),
        guarded(
            "MonthsBetween",
            "months_between",
            guard=_ZONE,
            zones=session_zone,
            sql=ScalarSql(4, _fractional_months, reason=_fractional_months_reason),
            examples=("months_between({time}, {time})", "months_between({timestamp}, {timestamp}, false)"),
        ),
    ),
    also={
        "timestamp_add_time": ScalarSql(2, _add_time, reason=of_kinds(_TIMESTAMPS, _WHOLE), fallible=always)
    },
)

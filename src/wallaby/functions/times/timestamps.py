"""Convert timestamps to and from numbers and other zones.

A local time depends on a zone, whose rules are Java's own: the plan carries them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import FLOATING, INSTANTS, INTEGRAL
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, Write, of_kinds
from wallaby.functions.times import zone_clocks
from wallaby.functions.times.clock import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    floor_divided,
    instant_micros,
    micros,
    shifted,
    timestamp,
    zone_reason,
    zone_text,
)
from wallaby.functions.times.dates import TOO_FAR, days_until, failing, is_date, out_of_bounds
from wallaby.functions.times.zone_arguments import named_zones, session_zone, zoned
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import DataType, Kind
from wallaby.sql.words import case, cast, error

_ZONE: Final = "by Java's rules for the zone"


def _shift(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, _, *zones = arguments
    if len(zones) != 1:
        return Refusal("its zone is not a constant", "write the zone as a constant")
    return Call(entry.function, (value, *zones), kind, node.nullable)


def _convert(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    _, _, value, *zones = arguments
    if len(zones) != 2:
        return Refusal("its zones are not constants", "write the zones as constants")
    return Call(entry.function, (value, *zones), kind, node.nullable)


def _read_make(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    parts, zones = arguments[:6], arguments[6:]
    if len(node.children) > 6:
        # The expression's own zone takes precedence over the session's.
        zones = zones[1:-1]
    if len(zones) != 1:
        return Refusal("its zone is not a constant", "write the zone as a constant")
    return Call(entry.function, (*parts, *zones), kind, node.nullable, failing(node))


def _make_zones(node: Node) -> tuple[str, ...]:
    return (*named_zones(replace(node, children=node.children[6:])), *session_zone(node))


def _precise(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read the microseconds of time windows."""
    function = "unix_micros" if kind.kind is Kind.LONG else "timestamp_micros"
    return Call(function, arguments, kind, node.nullable)


_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_WHOLE: Final = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
_TEXT: Final = (Kind.STRING,)
#: Days from 1970 whose microseconds fit a long, in every zone.
_DAYS_NEAR: Final = 106_751_989


def _to_local(call: Call, sql: Sequence[str]) -> str:
    """The local time as a timestamp: without a zone, or as if it were UTC."""
    return timestamp(shifted(micros(sql[0]), zone_text(call)), call.type)


def _of_local(call: Call, sql: Sequence[str]) -> str:
    return timestamp(instant_micros(micros(sql[0]), zone_text(call)), call.type)


def _convert_zone(call: Call, sql: Sequence[str]) -> str:
    """Convert the local time of one zone to that of another."""
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
    """A timestamp from seconds; fractions of a microsecond are truncated for floats, and an error for decimals."""
    source, value = call.arguments[0].type, sql[0]
    if source.is_floating:
        product = f"(CAST({value} AS DOUBLE) * 1000000)"
        low, high = "CAST(-9223372036854775808 AS DOUBLE)", "CAST(9223372036854774784 AS DOUBLE)"
        whole = f"CAST(trunc(least(greatest({product}, {low}), {high})) AS BIGINT)"
        return case([(f"isfinite({value})", timestamp(whole, call.type))])
    return _of_number(MICROS_PER_SECOND)(call, sql)


def _write_make(call: Call, sql: Sequence[str]) -> str:
    """Make a timestamp from year, month, day, hour, minute, seconds as decimal(16,6), and zone. 60 s are a minute."""
    year, month, day, hour, minute, second = sql[:6]
    missing = " OR ".join(f"{part} IS NULL" for part in sql[:6])
    # Truncated to an int, as on Spark.
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


FAMILY: Final = Family(
    "Timestamps",
    (
        exact(
            "UnixSeconds",
            "unix_seconds",
            INSTANTS,
            sql=ScalarSql(1, _micros_of(MICROS_PER_SECOND), reason=of_kinds(_TIMESTAMPS)),
            examples=("unix_seconds({timestamp})",),
        ),
        exact(
            "UnixMillis",
            "unix_millis",
            INSTANTS,
            sql=ScalarSql(1, _micros_of(1000)),
            examples=("unix_millis({timestamp})",),
        ),
        exact(
            "UnixMicros",
            "unix_micros",
            INSTANTS,
            sql=ScalarSql(1, _micros_of(1), reason=of_kinds(_TIMESTAMPS)),
            examples=("unix_micros({timestamp})",),
        ),
        guarded(
            "SecondsToTimestamp",
            "timestamp_seconds",
            INTEGRAL | FLOATING,
            guard="a number that does not fit is an error; text that is not a number is NULL",
            sql=ScalarSql(1, _of_seconds, reason=_of_seconds_reason, fallible=always),
            examples=("timestamp_seconds({int})", "timestamp_seconds({small} * 1.5e0)"),
        ),
        exact(
            "MillisToTimestamp",
            "timestamp_millis",
            INTEGRAL,
            sql=ScalarSql(1, _of_number(1000), fallible=always),
            examples=("timestamp_millis({int})", "timestamp_millis({bigint})"),
        ),
        exact(
            "MicrosToTimestamp",
            "timestamp_micros",
            INTEGRAL,
            sql=ScalarSql(1, _of_number(1)),
            examples=("timestamp_micros({int})", "timestamp_micros(unix_micros({timestamp}))"),
        ),
        guarded(
            "FromUTCTimestamp",
            "to_clock",
            guard=f"the zone is a constant; {_ZONE}",
            build=_shift,
            zones=named_zones,
            sql=ScalarSql(2, _to_local, reason=zoned(_TIMESTAMPS), fallible=always),
            examples=(
                "from_utc_timestamp({timestamp}, 'Europe/Berlin')",
                "from_utc_timestamp({timestamp}, '+05:30')",
                "from_utc_timestamp({timestamp}, 'PST')",
            ),
        ),
        guarded(
            "ToUTCTimestamp",
            "from_clock",
            guard=f"the zone is a constant; {_ZONE}",
            build=_shift,
            zones=named_zones,
            sql=ScalarSql(2, _of_local, reason=zoned(_TIMESTAMPS), fallible=always),
            examples=(
                "to_utc_timestamp({timestamp}, 'America/New_York')",
                "to_utc_timestamp({timestamp}, 'Asia/Kolkata')",
            ),
        ),
        guarded(
            "ConvertTimezone",
            "convert_zone",
            guard=f"the zones are constants; {_ZONE}",
            build=_convert,
            zones=named_zones,
            sql=ScalarSql(3, _convert_zone, reason=_convert_zone_reason, fallible=always),
            examples=(
                "convert_timezone('America/New_York', 'Europe/Berlin', {timestamp_ntz})",
                "convert_timezone('Australia/Lord_Howe', {timestamp_ntz})",
            ),
        ),
        guarded(
            "MakeTimestamp",
            "make_timestamp",
            guard=f"an invalid time is an error (ANSI) or NULL; {_ZONE}",
            build=_read_make,
            zones=_make_zones,
            sql=ScalarSql(7, _write_make, reason=zoned(*[_WHOLE] * 5, (Kind.DECIMAL,)), fallible=always),
            examples=(
                "make_timestamp(2021, {small}, {small}, {small}, 30, 12.5)",
                "make_timestamp_ntz(2000, 2, 29, {small}, {small}, {decimal_5_2})",
                "make_timestamp(2021, 3, 28, 2, 30, 0, 'Europe/Berlin')",
                "try_make_timestamp({small}, {small}, {small}, {small}, {small}, {small})",
                "make_timestamp({int}, {small}, 28, 23, 59, 59.5)",
            ),
        ),
        exact(
            "PreciseTimestampConversion",
            "unix_micros",
            build=_precise,
            examples=("select window(timestamp_a, '1 hour').start at, count(*) c from {table} group by 1",),
        ),
    ),
    arrow_functions=(*zone_clocks.FUNCTIONS,),
)

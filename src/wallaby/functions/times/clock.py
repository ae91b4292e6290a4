"""Convert between instants and local times of a time zone in SQL.

An instant is a TIMESTAMP WITH TIME ZONE, a local time, which a clock shows, is a TIMESTAMP; both count microseconds,
and all arithmetic is done on those. DuckDB's own time zones are never used: a fixed offset is added, other zones are
looked up.
"""

from __future__ import annotations

from typing import Final

from wallaby.functions.times import zone_clocks as times
from wallaby.functions.times.zones import zone_number
from wallaby.relations.expression import Call, Literal
from wallaby.relations.types import DataType, Kind
from wallaby.relations.zone import Zone, read_zone

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND


def zone_text(call: Call, place: int = -1) -> str:
    """The rules of the zone on which a call depends: its last argument, or another one."""
    literal = call.arguments[place]
    assert isinstance(literal, Literal), "the registry puts it there"
    return str(literal.value)


def zone_reason(call: Call, place: int = -1) -> str | None:
    """Why a call's zone cannot be used; None if it can."""
    literal = call.arguments[place]
    known = isinstance(literal, Literal) and isinstance(literal.value, str)
    return None if known else f"{call.function} in a zone that is no constant is not supported"


def micros(sql: str) -> str:
    """The microseconds of a timestamp of either kind."""
    return f"epoch_us({sql})"


def timestamp(micros_sql: str, type_: DataType) -> str:
    """A timestamp from its microseconds."""
    return f"{'make_timestamptz' if type_.kind is Kind.TIMESTAMP else 'make_timestamp'}({micros_sql})"


def local_micros(sql: str, type_: DataType, zone: str) -> str:
    """The local time of a timestamp; a timestamp without a zone is a local time already."""
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return micros(sql)
    return shifted(micros(sql), zone)


def shifted(micros_sql: str, zone: str) -> str:
    """Convert microseconds of instants to those of local times."""
    offset = _offset(zone)
    if offset is None:
        return f"{times.LOCAL}({micros_sql}, {zone_number(zone)})"
    return _plus(micros_sql, offset)


def local(sql: str, type_: DataType, zone: str) -> str:
    """The local time as a TIMESTAMP."""
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return sql
    return f"make_timestamp({local_micros(sql, type_, zone)})"


def instant_micros(local_sql: str, zone: str) -> str:
    """The first instant, in microseconds, at which a clock shows a local time.

    Local times that a clock skips are moved later by the length of the gap, as in Java.
    """
    offset = _offset(zone)
    if offset is None:
        return f"{times.INSTANT}({local_sql}, {zone_number(zone)})"
    return _plus(local_sql, -offset)


def near_instant_micros(local_sql: str, before_sql: str, zone: str) -> str:
    """The same for a local time computed from that of the instant `before`, with its offset if possible."""
    offset = _offset(zone)
    if offset is None:
        preferred = f"({shifted(before_sql, zone)} - {before_sql})"
        return f"{times.INSTANT_NEAR}({local_sql}, {preferred}, {zone_number(zone)})"
    return _plus(local_sql, -offset)


def day_start_micros(date_sql: str, type_: DataType, zone: str) -> str:
    """The first microsecond of a date, as an instant or as a local time."""
    midnight = f"(CAST({date_sql} - DATE '1970-01-01' AS BIGINT) * {MICROS_PER_DAY})"
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return midnight
    offset = _offset(zone)
    if offset is None:
        return f"{times.DAY_START}({midnight}, {zone_number(zone)})"
    return _plus(midnight, -offset)


def floor_divided(sql: str, divisor: int) -> str:
    """Divide a whole number, rounded down; DuckDB truncates."""
    return f"(CASE WHEN {sql} >= 0 THEN {sql} // {divisor} ELSE -1 - ((-1 - {sql}) // {divisor}) END)"


def _offset(zone: str) -> int | None:
    known: Zone = read_zone(zone)
    return None if known.fixed_offset is None else known.fixed_offset * MICROS_PER_SECOND


def _plus(sql: str, offset: int) -> str:
    return sql if offset == 0 else f"({sql} + {offset})"

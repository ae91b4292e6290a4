"""How SQL goes between instants and what a clock in some zone shows.

An instant is a TIMESTAMP WITH TIME ZONE, a clock's time a TIMESTAMP; both count microseconds, and all arithmetic
is done on those. DuckDB's own time zones are never asked: a fixed offset is added, other zones are looked up.
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
    """The rules of the zone that a call depends on: its last argument, or another one."""
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
    """What a clock shows at a timestamp; one without a zone is what a clock shows."""
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return micros(sql)
    return shifted(micros(sql), zone)


def shifted(micros_sql: str, zone: str) -> str:
    """Microseconds of instants as those that a clock shows."""
    offset = _offset(zone)
    if offset is None:
        return f"{times.LOCAL}({micros_sql}, {zone_number(zone)})"
    return _plus(micros_sql, offset)


def local(sql: str, type_: DataType, zone: str) -> str:
    """The same as a TIMESTAMP."""
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return sql
    return f"make_timestamp({local_micros(sql, type_, zone)})"


def instant_micros(local_sql: str, zone: str) -> str:
    """The instant, in microseconds, at which a clock shows a time, given in microseconds, for the first time.

    Times that a clock leaves out are as much later as it leaves out, as in Java.
    """
    offset = _offset(zone)
    if offset is None:
        return f"{times.INSTANT}({local_sql}, {zone_number(zone)})"
    return _plus(local_sql, -offset)


def near_instant_micros(local_sql: str, before_sql: str, zone: str) -> str:
    """The same for a time that was computed from that of the instant `before`: with its offset, if that is possible."""
    offset = _offset(zone)
    if offset is None:
        preferred = f"({shifted(before_sql, zone)} - {before_sql})"
        return f"{times.INSTANT_NEAR}({local_sql}, {preferred}, {zone_number(zone)})"
    return _plus(local_sql, -offset)


def day_start_micros(date_sql: str, type_: DataType, zone: str) -> str:
    """The first microsecond of a date, as an instant or as a clock shows it."""
    midnight = f"(CAST({date_sql} - DATE '1970-01-01' AS BIGINT) * {MICROS_PER_DAY})"
    if type_.kind is Kind.TIMESTAMP_NTZ:
        return midnight
    offset = _offset(zone)
    if offset is None:
        return f"{times.DAY_START}({midnight}, {zone_number(zone)})"
    return _plus(midnight, -offset)


def floor_divided(sql: str, divisor: int) -> str:
    """A whole number divided, rounded down; DuckDB cuts off."""
    return f"(CASE WHEN {sql} >= 0 THEN {sql} // {divisor} ELSE -1 - ((-1 - {sql}) // {divisor}) END)"


def _offset(zone: str) -> int | None:
    known: Zone = read_zone(zone)
    return None if known.fixed_offset is None else known.fixed_offset * MICROS_PER_SECOND


def _plus(sql: str, offset: int) -> str:
    return sql if offset == 0 else f"({sql} + {offset})"

"""Parts of the local time of a timestamp, and timestamps truncated to a unit.

The rules of the zone are a call's last argument, as text, even if a timestamp without a zone does not need them. Units
are constants in capital letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.catalyst.data_types import TIMESTAMPS
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql
from wallaby.functions.times.clock import (
    MICROS_PER_DAY,
    local,
    micros,
    near_instant_micros,
    shifted,
    timestamp,
    zone_text,
)
from wallaby.functions.times.dates import UNITS, constant_text, days_of, first_day_of
from wallaby.functions.times.zone_arguments import session_zone, unit_of, unit_reason, zoned
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import STRING, DataType, Kind
from wallaby.sql.words import cast

_TRUNCATED: Final = (
    *("year", "yyyy", "QUARTER", "mon", "week", "DD", "day", "hour", "minute", "second", "millisecond"),
    *("microsecond", "nonsense"),
)
_ZONE: Final = "by Java's rules for the zone"
_TRUNC_UNITS: Final = UNITS | {
    "DAY": "DAY",
    "DD": "DAY",
    **{unit: unit for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}


def _read_trunc(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    name, value, zone = arguments
    unit = constant_text(name)
    if unit is None:
        return Refusal("the unit is not a constant", "write the unit as a constant")
    if unit not in _TRUNC_UNITS:
        return Literal(None, kind)
    return Call(entry.function, (Literal(_TRUNC_UNITS[unit], STRING), value, zone), kind, node.nullable)


_INSTANTS: Final = (Kind.TIMESTAMP,)
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_TEXT: Final = (Kind.STRING,)
#: Units that depend on the local time, and those that are the same in every zone.
_CLOCK_UNITS: Final = frozenset({"MINUTE", "HOUR", "DAY"})
_PLAIN_UNITS: Final = frozenset({"MICROSECOND", "MILLISECOND", "SECOND"})
_DATE_UNITS: Final = frozenset({"WEEK", "MONTH", "QUARTER", "YEAR"})
_CUT_UNITS: Final = _CLOCK_UNITS | _PLAIN_UNITS | _DATE_UNITS


def _local_part(pattern: str) -> ScalarSql:
    """A part of the local time."""

    def write(call: Call, sql: Sequence[str]) -> str:
        return cast(pattern.format(local(sql[0], call.arguments[0].type, zone_text(call))), call.type)

    return ScalarSql(2, write, zoned(_TIMESTAMPS))


def _second_with_fraction(call: Call, sql: Sequence[str]) -> str:
    shown = local(sql[0], call.arguments[0].type, zone_text(call))
    return cast(
        f"(CAST(microsecond({shown}) AS DECIMAL(12,0)) * CAST('0.000001' AS DECIMAL(6,6)))", call.type
    )


def _write_trunc(call: Call, sql: Sequence[str]) -> str:
    """Truncate; the arguments are a unit, a timestamp and the zone."""
    unit, zone, instant = unit_of(call, 0), zone_text(call), micros(sql[1])
    if unit in _PLAIN_UNITS:
        return timestamp(micros(f"date_trunc('{unit.lower()}', make_timestamp({instant}))"), call.type)
    shown = f"make_timestamp({shifted(instant, zone)})"
    if unit in _DATE_UNITS:
        first = first_day_of(f"CAST({shown} AS DATE)", unit)
        cut = f"(CAST({days_of(first)} AS BIGINT) * {MICROS_PER_DAY})"
    else:
        cut = micros(f"date_trunc('{unit.lower()}', {shown})")
    return timestamp(near_instant_micros(cut, instant, zone), call.type)


FAMILY: Final = Family(
    "Timestamps",
    (
        guarded(
            "Hour",
            "hour",
            TIMESTAMPS,
            guard=_ZONE,
            zones=session_zone,
            sql=_local_part("hour({0})"),
            examples=("hour({timestamp})", "hour({timestamp_ntz})"),
        ),
        guarded(
            "Minute",
            "minute",
            TIMESTAMPS,
            guard=_ZONE,
            zones=session_zone,
            sql=_local_part("minute({0})"),
            examples=("minute({timestamp})", "minute({timestamp_ntz})"),
        ),
        guarded(
            "Second",
            "second",
            TIMESTAMPS,
            guard=_ZONE,
            zones=session_zone,
            sql=_local_part("second({0})"),
            examples=("second({timestamp})", "second({timestamp_ntz})"),
        ),
        guarded(
            "SecondWithFraction",
            "second_with_fraction",
            TIMESTAMPS,
            guard=_ZONE,
            zones=session_zone,
            sql=ScalarSql(2, _second_with_fraction, reason=zoned(_TIMESTAMPS)),
            examples=("extract(second from {timestamp})", "extract(second from {timestamp_ntz})"),
        ),
        guarded(
            "TruncTimestamp",
            "trunc_timestamp",
            guard=f"the unit is a constant; {_ZONE}",
            build=_read_trunc,
            zones=session_zone,
            sql=ScalarSql(3, _write_trunc, reason=unit_reason(0, _CUT_UNITS, _TEXT, _INSTANTS)),
            examples=tuple(f"date_trunc('{unit}', {{time}})" for unit in _TRUNCATED),
        ),
    ),
)

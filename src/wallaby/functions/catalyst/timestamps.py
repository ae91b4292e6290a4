"""Timestamps. What a clock shows depends on a zone, whose rules are Java's own: the plan carries them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import (
    DAY_TIMES,
    FLOATING,
    INSTANTS,
    INTEGRAL,
    TIMESTAMPS,
    YEAR_MONTHS,
)
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.dates import UNITS, constant_text, failing
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded, mode_of
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import LONG, STRING, DataType, Kind

_ZONE: Final = "by Java's rules for the zone"
_TRUNC_UNITS: Final = UNITS | {
    "DAY": "DAY",
    "DD": "DAY",
    **{unit: unit for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
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
#: Units that are as long on every day.
_TIME_UNITS: Final = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"})
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DIFF_UNITS: Final = frozenset({*_MICROS, *_MONTHS} - {"DAYOFYEAR"})
#: Our name for a cast between times of two kinds, or of one to a number.
TEMPORAL_CAST: Final = "TemporalCast"
#: What such a cast is, by the kinds.
TEMPORAL_CASTS: Final = {
    (Kind.TIMESTAMP, Kind.DATE): "timestamp_to_date",
    (Kind.TIMESTAMP_NTZ, Kind.DATE): "timestamp_to_date",
    (Kind.DATE, Kind.TIMESTAMP): "date_to_timestamp",
    (Kind.DATE, Kind.TIMESTAMP_NTZ): "date_to_timestamp",
    (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ): "to_clock",
    (Kind.TIMESTAMP_NTZ, Kind.TIMESTAMP): "from_clock",
    (Kind.TIMESTAMP, Kind.LONG): "unix_seconds",
    (Kind.TIMESTAMP, Kind.DOUBLE): "timestamp_to_double",
    (Kind.TIMESTAMP, Kind.STRING): "timestamp_to_text",
    (Kind.TIMESTAMP_NTZ, Kind.STRING): "timestamp_to_text",
    (Kind.STRING, Kind.TIMESTAMP): "text_to_timestamp",
    (Kind.STRING, Kind.TIMESTAMP_NTZ): "text_to_timestamp",
    (Kind.LONG, Kind.TIMESTAMP): "seconds_to_timestamp",
    (Kind.BYTE, Kind.TIMESTAMP): "timestamp_seconds",
    (Kind.SHORT, Kind.TIMESTAMP): "timestamp_seconds",
    (Kind.INTEGER, Kind.TIMESTAMP): "timestamp_seconds",
}
_WITHOUT_ZONE: Final = frozenset(
    {"unix_seconds", "timestamp_to_double", "timestamp_seconds", "seconds_to_timestamp"}
)


def session_zone(node: Node) -> tuple[str, ...]:
    """The zone of the session, as Catalyst puts it into every expression that needs one."""
    zone = node.field("timeZoneId")
    return (str(zone),)


def named_zones(node: Node) -> tuple[str, ...]:
    """The zones that constant texts among the arguments name."""
    texts = (child.value for child in node.children if child.name == "Literal" and child.type == "string")
    return tuple(str(text["string"]) for text in texts if isinstance(text, dict) and "string" in text)


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


def _trunc(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    name, value, zone = arguments
    unit = constant_text(name)
    if unit is None:
        return Refusal("the unit is not a constant", "write the unit as a constant")
    if unit not in _TRUNC_UNITS:
        return Literal(None, kind)
    return Call(entry.function, (Literal(_TRUNC_UNITS[unit], STRING), value, zone), kind, node.nullable)


def _add_unit(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """So many units: as many microseconds, or months."""
    quantity, value, zone = arguments
    unit = str(node.field("unit")).upper()
    factor = _MICROS.get(unit) or _MONTHS.get(unit)
    if factor is None:
        return Refusal(f"the unit {unit} is not known")
    if isinstance(quantity, Literal) and isinstance(quantity.value, int):
        number: Expression = Literal(quantity.value * factor, LONG)
        if abs(quantity.value * factor) > 1 << 62:
            return Refusal("it adds more than fits")
    else:
        number = Call("multiply", (quantity, Literal(factor, LONG)), LONG, quantity.nullable)
    if unit in _TIME_UNITS:
        return Call("timestamp_add_time", (value, number), kind, node.nullable)
    function = "timestamp_add" if unit in _MICROS else "timestamp_add_months"
    return Call(function, (value, number, zone), kind, node.nullable)


def _diff(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    unit = str(node.field("unit")).upper()
    if unit not in _DIFF_UNITS:
        return Refusal(f"the unit {unit} is not known")
    return Call(entry.function, (Literal(unit, STRING), *arguments), kind, node.nullable)


def _make(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    parts, zones = arguments[:6], arguments[6:]
    if len(node.children) > 6:
        # A zone of its own comes before the session's.
        zones = zones[1:-1]
    if len(zones) != 1:
        return Refusal("its zone is not a constant", "write the zone as a constant")
    return Call(entry.function, (*parts, *zones), kind, node.nullable, failing(node))


def _make_zones(node: Node) -> tuple[str, ...]:
    return (*named_zones(replace(node, children=node.children[6:])), *session_zone(node))


def _precise(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Windows of time are computed in microseconds."""
    function = "unix_micros" if kind.kind is Kind.LONG else "timestamp_micros"
    return Call(function, arguments, kind, node.nullable)


def temporal_cast(node: Node) -> Node:
    """A cast that depends on a zone or counts microseconds has an entry of its own."""
    kinds = {kind.value: kind for kind in Kind}
    pair = kinds.get(node.children[0].type), kinds.get(node.type)
    return replace(node, class_name=TEMPORAL_CAST) if pair in TEMPORAL_CASTS else node


def _cast(
    _entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, zone = arguments
    function = TEMPORAL_CASTS[value.type.kind, kind.kind]
    taken = (value,) if function in _WITHOUT_ZONE else (value, zone)
    mode = mode_of(node)
    if isinstance(mode, Refusal):
        return mode
    return Call(function, taken, kind, node.nullable, mode)


def _zoned(entry: Entry) -> Entry:
    return replace(entry, zones=session_zone)


ENTRIES: Final = (
    _zoned(guarded("Hour", "hour", TIMESTAMPS, guard=_ZONE)),
    _zoned(guarded("Minute", "minute", TIMESTAMPS, guard=_ZONE)),
    _zoned(guarded("Second", "second", TIMESTAMPS, guard=_ZONE)),
    _zoned(guarded("SecondWithFraction", "second_with_fraction", TIMESTAMPS, guard=_ZONE)),
    _zoned(
        guarded("TruncTimestamp", "trunc_timestamp", guard=f"the unit is a constant; {_ZONE}", build=_trunc)
    ),
    _zoned(
        guarded(
            "TimestampAddInterval",
            "timestamp_add",
            TIMESTAMPS,
            DAY_TIMES,
            guard=f"days {_ZONE}, hours by time",
        )
    ),
    _zoned(guarded("TimestampAddYMInterval", "timestamp_add_months", TIMESTAMPS, YEAR_MONTHS, guard=_ZONE)),
    _zoned(
        guarded(
            "TimestampAdd", "timestamp_add", guard=f"days and more {_ZONE}, hours by time", build=_add_unit
        )
    ),
    _zoned(guarded("TimestampDiff", "timestamp_diff", TIMESTAMPS, guard=_ZONE, build=_diff)),
    _zoned(guarded("SubtractTimestamps", "timestamp_subtract", TIMESTAMPS, guard=_ZONE)),
    _zoned(guarded("MonthsBetween", "months_between", guard=_ZONE)),
    exact("UnixSeconds", "unix_seconds", INSTANTS),
    exact("UnixMillis", "unix_millis", INSTANTS),
    exact("UnixMicros", "unix_micros", INSTANTS),
    guarded(
        "SecondsToTimestamp",
        "timestamp_seconds",
        INTEGRAL | FLOATING,
        guard="a number that does not fit is an error; text that is not a number is NULL",
    ),
    exact("MillisToTimestamp", "timestamp_millis", INTEGRAL),
    exact("MicrosToTimestamp", "timestamp_micros", INTEGRAL),
    replace(
        guarded("FromUTCTimestamp", "to_clock", guard=f"the zone is a constant; {_ZONE}", build=_shift),
        zones=named_zones,
    ),
    replace(
        guarded("ToUTCTimestamp", "from_clock", guard=f"the zone is a constant; {_ZONE}", build=_shift),
        zones=named_zones,
    ),
    replace(
        guarded("ConvertTimezone", "convert_zone", guard=f"the zones are constants; {_ZONE}", build=_convert),
        zones=named_zones,
    ),
    replace(
        guarded(
            "MakeTimestamp",
            "make_timestamp",
            guard=f"an invalid time is an error (ANSI) or NULL; {_ZONE}",
            build=_make,
        ),
        zones=_make_zones,
    ),
    exact("PreciseTimestampConversion", "unix_micros", build=_precise),
    _zoned(
        guarded(
            TEMPORAL_CAST, "timestamp_to_date", guard="Wallaby's name for a cast between times", build=_cast
        )
    ),
)

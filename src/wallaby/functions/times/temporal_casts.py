"""Casts between dates, timestamps of both kinds, text and numbers of seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ArrowFunction
from wallaby.functions.casts.parsing import refuse
from wallaby.functions.doubt import DOUBTFUL, doubt
from wallaby.functions.entry import Entry, Refusal, guarded, mode_of
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, of_kinds, template
from wallaby.functions.size import constant
from wallaby.functions.times import zone_clocks as times
from wallaby.functions.times.clock import (
    MICROS_PER_SECOND,
    day_start_micros,
    local,
    local_micros,
    timestamp,
    zone_reason,
    zone_text,
)
from wallaby.functions.times.zone_arguments import session_zone, zoned
from wallaby.functions.times.zones import zone_number, zone_table
from wallaby.functions.words import always
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import BOOLEAN, DATE, INTEGER, LONG, STRING, DataType, Kind
from wallaby.sql.words import case, cast, error

#: Our name for a cast between two kinds of times, or of a time to a number.
TEMPORAL_CAST: Final = "TemporalCast"
#: The function of such a cast, by the kinds.
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


def temporal_cast(node: Node) -> Node:
    """Redirect a cast that depends on a zone or counts microseconds to its own entry."""
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


_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_AROUND: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_MOMENT: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone>\D.*)?)?)?)?)?"
)
_OFFSET: Final = re.compile(r"([+-])([01][0-9]):([0-5][0-9])")
_HOURS_MAX: Final = 17
#: The beginning of every valid timestamp.
_BEGINS: Final = re.compile(r"[0-9+T-]")


def moments(texts: pa.ChunkedArray, zones: pa.ChunkedArray, failing: pa.ChunkedArray) -> pa.Array:
    """Parse timestamps to microseconds: as local times of the zone with a number; -1: without a zone."""
    values = texts.to_pylist()
    if not values:
        return pa.array([], pa.int64())
    zone, fails = zones[0].as_py(), failing[0].as_py()
    local = np.zeros(len(values), np.int64)
    fixed = np.zeros(len(values), np.bool_)
    absent = np.zeros(len(values), np.bool_)
    for at, value in enumerate(values):
        found = None if value is None else _moment(value, fails)
        if found is None:
            absent[at] = True
            continue
        shown, offset = found
        fixed[at] = offset is not None
        local[at] = shown if offset is None or zone < 0 else shown - offset
    made = local if zone < 0 else np.where(fixed, local, zone_table(zone).instants(local))
    return pa.array(made, pa.int64(), mask=absent)


def _moment(text: str, failing: bool) -> tuple[int, int | None] | None:
    """The local time of a text, and its offset if the text has one; None for invalid text."""
    trimmed = text.strip(_AROUND)
    found = _MOMENT.fullmatch(trimmed)
    if found is None:
        if trimmed and _BEGINS.match(trimmed):
            doubt("a cast to timestamp")
        refuse(text, failing)
        return None
    year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
    hour, minute, second = (int(found[place] or 0) for place in (4, 5, 6))
    offset = None if found["zone"] is None else _offset(found["zone"])
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        days = None
        if year == 0:
            doubt("a cast to timestamp")
    if days is None or hour > 23 or minute > 59 or second > 59:
        refuse(text, failing)
        return None
    micros = int((found[7] or "")[:6].ljust(6, "0"))
    return days * _DAY + ((hour * 60 + minute) * 60 + second) * _SECOND + micros, offset


def _offset(zone: str) -> int:
    name = zone.strip(_AROUND)
    if name in ("Z", "UTC"):
        return 0
    found = _OFFSET.fullmatch(name)
    if found is None or int(found[2]) > _HOURS_MAX:
        doubt("a cast to timestamp")
    size = (int(found[2]) * 60 + int(found[3])) * 60 * _SECOND
    return -size if found[1] == "-" else size


#: DuckDB's timestamps begin a little later than Java's.
_SECONDS_MAX: Final = 9_223_372_000_000


def _moments(call: Call, sql: Sequence[str]) -> str:
    zone = -1 if call.type.kind is Kind.TIMESTAMP_NTZ else zone_number(zone_text(call))
    failing = "TRUE" if call.mode is EvalMode.ANSI else "FALSE"
    return timestamp(f"wallaby_moments({sql[0]}, {zone}, {failing})", call.type)


def _moments_reason(call: Call) -> str | None:
    return of_kinds(Kind.STRING)(call) or zone_reason(call)


def _of_seconds(call: Call, sql: Sequence[str]) -> str:
    """A timestamp from seconds; Java saturates at the last timestamp."""
    made = timestamp(f"({sql[0]} * {MICROS_PER_SECOND})", call.type)
    odd = error(DOUBTFUL, "Only Spark converts this number of seconds.")
    return case(
        [(f"{sql[0]} IS NULL", "NULL"), (f"{sql[0]} BETWEEN -{_SECONDS_MAX} AND {_SECONDS_MAX}", made)], odd
    )


_INSTANTS: Final = (Kind.TIMESTAMP,)
_TIMESTAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def _to_date(call: Call, sql: Sequence[str]) -> str:
    return cast(local(sql[0], call.arguments[0].type, zone_text(call)), DATE)


def _of_date(call: Call, sql: Sequence[str]) -> str:
    return timestamp(day_start_micros(sql[0], call.type, zone_text(call)), call.type)


def _to_text(call: Call, sql: Sequence[str]) -> str:
    return f"{times.TEXT}({local_micros(sql[0], call.arguments[0].type, zone_text(call))})"


FAMILY: Final = Family(
    "Timestamps",
    (
        guarded(
            TEMPORAL_CAST,
            "timestamp_to_date",
            guard="Wallaby's name for a cast between times",
            build=_cast,
            zones=session_zone,
            sql=ScalarSql(2, _to_date, reason=zoned(_TIMESTAMPS)),
            examples=(
                "cast({timestamp} as date)",
                "cast({timestamp_ntz} as date)",
                "cast({date} as timestamp)",
                "cast({date} as timestamp_ntz)",
                "cast({timestamp} as timestamp_ntz)",
                "cast({timestamp_ntz} as timestamp)",
                "cast({timestamp} as bigint)",
                "cast({timestamp} as double)",
                "cast({timestamp} as string)",
                "cast({timestamp_ntz} as string)",
                "cast({int} as timestamp)",
                "cast({bigint} as timestamp)",
                "try_cast({moment} as timestamp)",
                "try_cast({moment} as timestamp_ntz)",
                "cast(cast({timestamp} as string) as timestamp)",
            ),
            shown_as="Cast",
        ),
    ),
    also={
        "date_to_timestamp": ScalarSql(2, _of_date, reason=zoned((Kind.DATE,)), fallible=always),
        "timestamp_to_double": ScalarSql(
            1, template("(epoch_us({0}) / 1e6)", typed=True), reason=of_kinds(_INSTANTS)
        ),
        "timestamp_to_text": ScalarSql(2, _to_text, reason=zoned(_TIMESTAMPS), size=constant(64)),
        "text_to_timestamp": ScalarSql(2, _moments, reason=_moments_reason, fallible=always, doubtful=True),
        "seconds_to_timestamp": ScalarSql(
            1, _of_seconds, reason=of_kinds(Kind.LONG), fallible=always, doubtful=True
        ),
    },
    arrow_functions=(ArrowFunction("wallaby_moments", (STRING, INTEGER, BOOLEAN), LONG, moments),),
)

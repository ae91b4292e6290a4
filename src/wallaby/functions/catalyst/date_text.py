"""Dates and times as text, by patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import INTEGRAL, TEXT, TIMESTAMPS
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.dates import failing
from wallaby.functions.catalyst.entry import Entry, Refusal, guarded
from wallaby.functions.catalyst.timestamps import session_zone
from wallaby.functions.date_pattern import read_parts, written_parts
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import LONG, TIMESTAMP, DataType, Kind

_PATTERN: Final = "a constant pattern of y, M, d, H, h, m, s, S, a, E, D, Q and signs"
_FORM: Final = (
    "a constant pattern of yyyy, MM, dd, HH, mm, ss, S and signs; other text is an error (ANSI) or NULL"
)
#: Under another one, Spark reads and writes patterns by the rules of Java's older classes, or refuses to choose.
_POLICY: Final = ("spark.sql.legacy.timeParserPolicy", "CORRECTED")


def _unknown(pattern: Expression, parts: object) -> Refusal | None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return Refusal("the pattern is not a constant", "write the pattern as a constant")
    return Refusal(f"the pattern {pattern.value!r} has no kernel") if parts is None else None


def _texts(pattern: Expression) -> str:
    return str(pattern.value) if isinstance(pattern, Literal) else ""


def _format(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern, zone = arguments
    refusal = _unknown(pattern, written_parts(_texts(pattern)))
    if refusal is not None:
        return refusal
    if value.type.kind not in TIMESTAMPS:
        value = Call("timestamp_seconds", (value,), TIMESTAMP, value.nullable)
    return Call(entry.function, (value, pattern, zone), kind, node.nullable)


def _parse(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    value, pattern, zone = arguments
    refusal = _unknown(pattern, read_parts(_texts(pattern)))
    if refusal is not None:
        return refusal
    return Call(entry.function, (value, pattern, zone), kind, node.nullable, failing(node))


def unix_timestamp(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Seconds since 1970 of a date, a timestamp, or of text that has the form of a pattern."""
    value, _, zone = arguments
    if value.type.kind is not Kind.STRING:
        return Call(entry.function, (value, zone), kind, node.nullable)
    parsed = _parse(replace(entry, function="parse_timestamp"), node, arguments, TIMESTAMP)
    if isinstance(parsed, Refusal):
        return parsed
    return Call("unix_seconds", (parsed,), LONG, node.nullable)


def _zoned(entry: Entry) -> Entry:
    return replace(entry, zones=session_zone, requires=_POLICY)


_MOMENTS: Final = TIMESTAMPS | TEXT | {Kind.DATE}
ENTRIES: Final = (
    _zoned(guarded("DateFormatClass", "format_timestamp", TIMESTAMPS, TEXT, guard=_PATTERN, build=_format)),
    _zoned(guarded("FromUnixTime", "format_timestamp", INTEGRAL, TEXT, guard=_PATTERN, build=_format)),
    _zoned(guarded("GetTimestamp", "parse_timestamp", TEXT, guard=_FORM, build=_parse)),
    _zoned(
        guarded(
            "UnixTimestamp", "unix_timestamp", _MOMENTS, TEXT, guard=f"text by {_FORM}", build=unix_timestamp
        )
    ),
    _zoned(
        guarded(
            "ToUnixTimestamp",
            "unix_timestamp",
            _MOMENTS,
            TEXT,
            guard=f"text by {_FORM}",
            build=unix_timestamp,
        )
    ),
)

"""Catalyst's types, from their text, and its values as literals."""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

from wallaby.relations.expression import Literal
from wallaby.relations.types import DataType, Kind

INTEGRAL: Final = frozenset({Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG})
INTS: Final = frozenset({Kind.INTEGER})
LONGS: Final = frozenset({Kind.LONG})
#: Whole numbers of up to 32 bits.
SHORT_INTEGRAL: Final = INTEGRAL - LONGS
DOUBLES: Final = frozenset({Kind.DOUBLE})
DECIMALS: Final = frozenset({Kind.DECIMAL})
FLOATING: Final = frozenset({Kind.FLOAT, Kind.DOUBLE})
NUMERIC: Final = INTEGRAL | FLOATING | {Kind.DECIMAL}
TEXT: Final = frozenset({Kind.STRING})
BINARY: Final = frozenset({Kind.BINARY})
DATES: Final = frozenset({Kind.DATE})
BOOLEANS: Final = frozenset({Kind.BOOLEAN})
INSTANTS: Final = frozenset({Kind.TIMESTAMP})
TIMESTAMPS: Final = INSTANTS | {Kind.TIMESTAMP_NTZ}
DAY_TIMES: Final = frozenset({Kind.DAY_TIME})
YEAR_MONTHS: Final = frozenset({Kind.YEAR_MONTH})
INTERVALS: Final = DAY_TIMES | YEAR_MONTHS
#: Types whose order and equality all kernels share with Spark.
ORDERED: Final = NUMERIC | TEXT | DATES | BOOLEANS | TIMESTAMPS | INTERVALS | {Kind.BINARY}
ARRAYS: Final = frozenset({Kind.ARRAY})
STRUCTS: Final = frozenset({Kind.STRUCT})
MAPS: Final = frozenset({Kind.MAP})
NESTED: Final = ARRAYS | STRUCTS | MAPS
#: Types that can be compared and ordered, provided that they contain no map.
COMPARABLE: Final = ORDERED | ARRAYS | STRUCTS
#: Every type that can be read.
READABLE: Final = ORDERED | NESTED | {Kind.NULL}

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
#: The name of a struct's field: plain, or between backticks, where two backticks stand for one.
_FIELD: Final = re.compile(r"(?:(\w+)|`((?:[^`]|``)*)`):")
_FLAT_TEXT: Final = re.compile(r"[^<>,()]+(?:\([^()]*\))?")
_BY_TEXT: Final = {kind.value: DataType(kind) for kind in READABLE - NESTED - {Kind.DECIMAL}}
_INTERVAL: Final = re.compile(r"interval ((?:day|hour|minute|second|year|month)(?: to \w+)?)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = Context(prec=80)


@lru_cache(maxsize=1024)
def data_type(text: str) -> DataType | None:
    """Parse a type from its text, as `PlanWriter.java` writes it.

    None for types that cannot be read: mixed intervals, collated strings, structs without fields, and nested types that
    contain one of these, an interval or a void.
    """
    found, rest = _parsed(text)
    return None if rest else found


def _parsed(text: str) -> tuple[DataType | None, str]:
    """The type at the beginning of a text, and the rest of the text."""
    for kind, begin in ((Kind.ARRAY, "array<"), (Kind.MAP, "map<"), (Kind.STRUCT, "struct<")):
        if text.startswith(begin):
            return _nested(kind, text.removeprefix(begin))
    match = _FLAT_TEXT.match(text)
    return (_flat(match[0]), text[match.end() :]) if match else (None, text)


def _nested(kind: Kind, text: str) -> tuple[DataType | None, str]:
    children: list[DataType | None] = []
    names: list[str] = []
    while not text.startswith(">"):
        if kind is Kind.STRUCT:
            field = _FIELD.match(text)
            if field is None:
                return None, text
            names.append(field[1] if field[1] is not None else field[2].replace("``", "`"))
            text = text[field.end() :]
        child, rest = _parsed(text)
        if rest == text or not rest:
            return None, text
        children.append(child)
        text = rest.removeprefix(",")
    known = tuple(c for c in children if c is not None and c.kind not in INTERVALS | {Kind.NULL})
    complete = known and len(known) == len(children)
    return (DataType(kind, children=known, names=tuple(names)) if complete else None), text[1:]


def _flat(text: str) -> DataType | None:
    known = _BY_TEXT.get(text)
    if known is not None:
        return known
    interval = _INTERVAL.fullmatch(text)
    if interval:
        months = interval[1].startswith(("year", "month"))
        return DataType(Kind.YEAR_MONTH if months else Kind.DAY_TIME, names=(interval[1],))
    match = _DECIMAL.fullmatch(text)
    return DataType(Kind.DECIMAL, int(match[1]), int(match[2])) if match else None


def literal(value: object, kind: DataType) -> Literal | None:
    """Turn a value as Catalyst stores it into a literal of a type; None if Python has no such value."""
    if value is None:
        return Literal(None, kind)
    if isinstance(value, dict):
        return _tagged(value, kind)
    if isinstance(value, bool):
        return Literal(value, kind) if kind.kind is Kind.BOOLEAN else None
    return _whole(value, kind) if isinstance(value, int) else None


def _tagged(value: dict[str, Any], kind: DataType) -> Literal | None:
    match kind.kind, value:
        case Kind.ARRAY, {"array": list(items)}:
            return _whole_of(kind, [literal(item, kind.element) for item in items])
        case Kind.STRUCT, {"struct": list(items)} if len(items) == len(kind.children):
            return _whole_of(kind, list(map(literal, items, kind.children)))
        case Kind.MAP, {"map": [list(keys), list(values)]}:
            of_keys = _whole_of(kind, [literal(key, kind.children[0]) for key in keys])
            of_values = _whole_of(kind, [literal(value, kind.children[1]) for value in values])
            if of_keys is None or of_values is None:
                return None
            return Literal(tuple(zip(_items(of_keys), _items(of_values), strict=True)), kind)
        case ((Kind.FLOAT | Kind.DOUBLE), {"float": text}):
            return Literal(float(text), kind)
        case Kind.DECIMAL, {"decimal": text}:
            # The type's scale, so that equal literals are equal objects that print alike.
            return Literal(Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=_DIGITS), kind)
        case Kind.STRING, {"string": text}:
            return Literal(text, kind)
        case Kind.BINARY, {"binary": text}:
            return Literal(base64.b64decode(text), kind)
        case _:
            return None


def _whole_of(kind: DataType, parts: list[Literal | None]) -> Literal | None:
    """Build a nested constant from its parts; None if one of them cannot be read."""
    known = tuple(part.value for part in parts if part is not None)
    return Literal(known, kind) if len(known) == len(parts) else None


def _items(constant: Literal) -> tuple[object, ...]:
    assert isinstance(constant.value, tuple), "a nested constant is a tuple"
    return constant.value


def _whole(value: int, kind: DataType) -> Literal | None:
    try:
        match kind.kind:
            case Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG | Kind.DAY_TIME | Kind.YEAR_MONTH:
                return Literal(value, kind)
            case Kind.DATE:
                return Literal(date(1970, 1, 1) + timedelta(days=value), kind)
            case Kind.TIMESTAMP:
                return Literal(_EPOCH + timedelta(microseconds=value), kind)
            case Kind.TIMESTAMP_NTZ:
                return Literal((_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None), kind)
            case _:
                return None
    except OverflowError:
        return None  # before the year 1 or after 9999

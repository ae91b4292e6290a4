"""Catalyst's types, from their text, and its values as literals."""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final

from wallaby.plan.expression import Literal
from wallaby.plan.types import DataType, Kind

INTEGRAL: Final = frozenset({Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG})
FLOATING: Final = frozenset({Kind.FLOAT, Kind.DOUBLE})
NUMERIC: Final = INTEGRAL | FLOATING | {Kind.DECIMAL}
TEXT: Final = frozenset({Kind.STRING})
DATES: Final = frozenset({Kind.DATE})
BOOLEANS: Final = frozenset({Kind.BOOLEAN})
#: What has an order and an equality that all kernels share with Spark.
ORDERED: Final = NUMERIC | TEXT | DATES | BOOLEANS | {Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.BINARY}
#: Every type that can be read; nested ones cannot, yet.
READABLE: Final = ORDERED | {Kind.NULL}

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_BY_TEXT: Final = {kind.value: DataType(kind) for kind in READABLE - {Kind.DECIMAL}}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = Context(prec=80)


@lru_cache(maxsize=1024)
def data_type(text: str) -> DataType | None:
    """A type from its `catalogString`; None for those that cannot be read: nested, intervals, collated strings."""
    known = _BY_TEXT.get(text)
    if known is not None:
        return known
    match = _DECIMAL.fullmatch(text)
    return DataType(Kind.DECIMAL, int(match[1]), int(match[2])) if match else None


def literal(value: object, kind: DataType) -> Literal | None:
    """A value as Catalyst keeps it, as a literal of a type; None if Python has no such value."""
    if value is None:
        return Literal(None, kind)
    if isinstance(value, dict):
        return _tagged(value, kind)
    if isinstance(value, bool):
        return Literal(value, kind) if kind.kind is Kind.BOOLEAN else None
    return _whole(value, kind) if isinstance(value, int) else None


def _tagged(value: dict[str, str], kind: DataType) -> Literal | None:
    match kind.kind, value:
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


def _whole(value: int, kind: DataType) -> Literal | None:
    try:
        match kind.kind:
            case Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG:
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

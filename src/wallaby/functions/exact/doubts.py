"""Functions with so many odd cases that only the plain ones are computed: with any other value Spark runs the query."""

from __future__ import annotations

import json
import math
import re
from datetime import date
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from wallaby.functions.exact.arrow_function import ArrowFunction, Fault, per_value
from wallaby.functions.exact.parsing import refuse
from wallaby.functions.exact.zones import zone_table
from wallaby.relations.types import BOOLEAN, INTEGER, LONG, STRING

DOUBT: Final = "WALLABY_DOUBTFUL_VALUE"
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_EPOCH: Final = date(1970, 1, 1).toordinal()
_AROUND: Final = "".join(map(chr, (*range(0x21), 0x7F)))


def doubt(function: str) -> NoReturn:
    """Leave the query to Spark."""
    raise Fault(DOUBT, f"A value of {function} is only Spark's to treat.")


# ----------------------------------------------------------------------------------------------- timestamps
_MOMENT: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone>\D.*)?)?)?)?)?"
)
_OFFSET: Final = re.compile(r"([+-])([01][0-9]):([0-5][0-9])")
_HOURS_MAX: Final = 17
#: Whatever begins otherwise is no timestamp.
_BEGINS: Final = re.compile(r"[0-9+T-]")


def moments(texts: pa.ChunkedArray, zones: pa.ChunkedArray, failing: pa.ChunkedArray) -> pa.Array:
    """Microseconds of timestamps: as a clock in the zone that has a number shows them; without one (-1) as they are."""
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
    """What a clock shows, and its offset if the text has one; None for what is no timestamp."""
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
        days = date(year, month, day).toordinal() - _EPOCH
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


# ------------------------------------------------------------------------------------------------------ JSON
_PLAIN_DIGITS: Final = 15
_DIGITS_MAX: Final = 1000
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST_DAY: Final = date(1583, 1, 1)
_STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]{1,6})\]")


def json_path(path: str) -> list[str | int] | None:
    """The steps of a plain path, names and places; None for any other."""
    if not re.fullmatch(rf"\$(?:{_STEP.pattern})+", path):
        return None
    return [found[1] if found[1] is not None else int(found[2]) for found in _STEP.finditer(path)]


class _Whole(str):
    """A whole number as it is written."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        doubt("get_json_object")
    return found


def _odd(_text: str) -> NoReturn:
    doubt("get_json_object")


def _whole(text: str) -> _Whole:
    # Java writes -0 as 0, and reads no number that is very long.
    return doubt("get_json_object") if text == "-0" or len(text) > _DIGITS_MAX else _Whole(text)


def _fraction(text: str) -> float:
    return doubt("get_json_object") if len(text) > _DIGITS_MAX else float(text)


_DECODER: Final = json.JSONDecoder(
    parse_int=_whole, parse_float=_fraction, parse_constant=_odd, object_pairs_hook=_unique
)


def get_json_object(text: str, path: str) -> str | None:
    """What a path leads to: a text, a whole number, true or false."""
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        doubt("get_json_object")
    for step in json_path(path) or ():
        if isinstance(found, dict) and isinstance(step, str):
            found = found.get(step)
        elif isinstance(found, list) and isinstance(step, int):
            found = found[step] if step < len(found) else None
        else:
            doubt("get_json_object")
        if found is None:
            return None
    if found is True or found is False:
        return "true" if found else "false"
    if not isinstance(found, str) or not _is_text(found):
        doubt("get_json_object")
    return str(found)


def json_member(text: str, name: str, kind: str, bits: int) -> str | None:
    """A member of an object, which must be of a kind, as text."""
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        doubt("from_json")
    value = found.get(name) if isinstance(found, dict) else doubt("from_json")
    match kind, value:
        case _, None:
            return None
        case "whole", _Whole() if (
            len(value) <= _PLAIN_DIGITS and -(1 << bits - 1) <= int(value) < 1 << bits - 1
        ):
            return str(value)
        case "double", _Whole() if len(value) <= _PLAIN_DIGITS:
            return str(value)
        case "double", float() if math.isfinite(value):
            return repr(value)
        case "boolean", bool():
            return "true" if value else "false"
        case "text", str() if not isinstance(value, _Whole) and _is_text(value):
            return value
        case "date", str() if _DATE.fullmatch(value) and _is_date(value):
            return value
        case _:
            doubt("from_json")


def _is_date(text: str) -> bool:
    """In today's calendar."""
    try:
        return date.fromisoformat(text) >= _FIRST_DAY
    except ValueError:
        return False


def _is_text(text: str) -> bool:
    """Without halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


# --------------------------------------------------------------------------------------------------- the others
def mask(text: str, upper: str, lower: str, digit: str, other: str) -> str:
    """Every character as one that stands for its kind; an empty one leaves the kind as it is."""
    if not text.isascii():
        doubt("mask")
    kinds = (
        upper if c.isupper() else lower if c.islower() else digit if c.isdigit() else other for c in text
    )
    return "".join(kind or c for kind, c in zip(kinds, text, strict=True))


_URL: Final = re.compile(
    r"(?P<protocol>[a-zA-Z][a-zA-Z0-9]*)://(?P<authority>(?P<host>[a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z][a-zA-Z0-9]*)*)"
    r"(?::[0-9]{1,5})?)(?P<file>(?P<path>(?:/[a-zA-Z0-9._~-]*)*)(?:\?(?P<query>[a-zA-Z0-9=&._~-]*))?)"
    r"(?:#(?P<ref>[a-zA-Z0-9._~-]*))?"
)
URL_PARTS: Final = ("PROTOCOL", "AUTHORITY", "HOST", "FILE", "PATH", "QUERY", "REF")


def parse_url(text: str, part: str, key: str) -> str | None:
    """A part of an address; of its query, if there is a key, the value of that."""
    found = _URL.fullmatch(text)
    if found is None:
        doubt("parse_url")
    value = found[part.lower()]
    if value is None or not key:
        return value
    pair = re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", value)
    return None if pair is None else pair[1]


FUNCTIONS: Final = (
    ArrowFunction("wallaby_moments", (STRING, INTEGER, BOOLEAN), LONG, moments),
    per_value("wallaby_json_object", (STRING, STRING), STRING, get_json_object),
    per_value("wallaby_json_member", (STRING, STRING, STRING, INTEGER), STRING, json_member),
    per_value("wallaby_mask", (STRING,) * 5, STRING, mask),
    per_value("wallaby_parse_url", (STRING,) * 3, STRING, parse_url),
)

"""Parse values as Spark's casts do. Invalid text is an error (ANSI) or NULL.

Whole numbers, booleans and dates may have white space and control characters around them; for floating-point numbers
and decimals Java trims all characters up to the space.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal, Overflow
from typing import Final

from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.casts.floating_text import nearest_float
from wallaby.functions.numbers.decimals import DIGITS_MAX, fit
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, LONG, STRING, DataType, Kind

_AROUND: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_JAVA_AROUND: Final = "".join(map(chr, range(0x21)))
_WHOLE: Final = re.compile(r"([+-]?)([0-9]+)")
_CUT: Final = re.compile(r"([+-]?)(?=[0-9.])([0-9]*)(?:\.[0-9]*)?")
_FLOATING: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_JAVA_WORDS: Final = re.compile(r"([+-]?)(NaN|Infinity)")
_WORDS: Final = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
    "nan": math.nan,
}
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_EXPONENT: Final = re.compile(r"[eE]([+-]?\d+)")
_EXPONENT_MAX: Final = (1 << 31) - 1
_WIDE: Final = Context(prec=4000)
_TRUE: Final = frozenset(("t", "true", "y", "yes", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "0"))
_DATE: Final = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_DAYS_BEFORE_EPOCH: Final = date(1970, 1, 1).toordinal()
#: The years, and days, after which the calendar repeats.
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146097


def refuse(text: str, failing: bool) -> None:
    """Raise the error for invalid text, or return NULL."""
    if failing:
        raise ValueFault(
            "CAST_INVALID_INPUT", f"The value {text[:100]!r} cannot be cast because it is malformed."
        )


def whole(text: str, bits: int, cutting: bool, failing: bool) -> int | None:
    """A whole number of this many bits; `cutting` drops digits after a point."""
    found = (_CUT if cutting else _WHOLE).fullmatch(text.strip(_AROUND))
    number = None if found is None else int(found[1] + (found[2] or "0"))
    if number is None or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        refuse(text, failing)
        return None
    return number


def floating(text: str, failing: bool) -> float | None:
    """A double."""
    return _floating(text, failing, float)


def single(text: str, failing: bool) -> float | None:
    """A float, rounded once."""
    return _floating(text, failing, nearest_float)


def _floating(text: str, failing: bool, read: Callable[[str], float]) -> float | None:
    trimmed = text.strip(_JAVA_AROUND)
    if found := _FLOATING.fullmatch(trimmed):
        return read(found[1])
    if (known := _WORDS.get(trimmed.lower())) is not None:
        return known
    if found := _JAVA_WORDS.fullmatch(trimmed):
        return float(found[0])
    if found := _HEXADECIMAL.fullmatch(trimmed):
        return (
            nearest_float(str(Decimal(_from_hex(found[1])))) if read is nearest_float else _from_hex(found[1])
        )
    refuse(text, failing)
    return None


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def decimal(text: str, precision: int, scale: int, failing: bool) -> str | None:
    """A decimal of a type, as text, rounded half up."""
    trimmed = text.strip(_JAVA_AROUND)
    exponent = _EXPONENT.search(trimmed)
    readable = _DECIMAL.fullmatch(trimmed) and not any(ord(c) > 0xFFFF for c in trimmed)
    if not readable or (exponent and abs(int(exponent[1])) > _EXPONENT_MAX):
        refuse(text, failing)
        return None
    number = Decimal(trimmed)
    if number and number.adjusted() >= DIGITS_MAX:
        if failing:
            raise ValueFault("NUMERIC_OUT_OF_SUPPORTED_RANGE", f"The value {text[:100]} cannot be a decimal.")
        return None
    if number.adjusted() < -scale - 1:
        return "0"
    try:
        return f"{fit(_WIDE.plus(number), precision, scale):f}"
    except Overflow:
        if failing:
            raise
        return None


def boolean(text: str, failing: bool) -> bool | None:
    """A boolean from one of Spark's words for true and false."""
    word = text.strip(_AROUND).lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    refuse(text, failing)
    return None


def days(text: str, failing: bool) -> int | None:
    """The days since 1970 of a date: a year, perhaps a month, perhaps a day, after which any text may follow."""
    found = _DATE.fullmatch(text.strip(_AROUND))
    if found is None:
        refuse(text, failing)
        return None
    year = int(found[2]) * (-1 if found[1] == "-" else 1)
    try:
        cycles, within = divmod(year, _CYCLE_YEARS)
        near = date(within + _CYCLE_YEARS, int(found[3] or 1), int(found[4] or 1))
    except ValueError:
        refuse(text, failing)
        return None
    return near.toordinal() - _DAYS_BEFORE_EPOCH + (cycles - 1) * _CYCLE_DAYS


def date_text(number: int) -> str:
    """A date as text; the year has at least four digits, and a sign if it does not have exactly four."""
    cycles, within = divmod(number + _DAYS_BEFORE_EPOCH - 1, _CYCLE_DAYS)
    near = date.fromordinal(within + _CYCLE_DAYS + 1)
    year = near.year + (cycles - 1) * _CYCLE_YEARS
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{near.month:02d}-{near.day:02d}"


_FLOAT: Final = DataType(Kind.FLOAT)

FUNCTIONS: Final = (
    per_value("wallaby_whole", (STRING, INTEGER, BOOLEAN, BOOLEAN), LONG, whole),
    per_value("wallaby_double", (STRING, BOOLEAN), DOUBLE, floating),
    per_value("wallaby_float", (STRING, BOOLEAN), _FLOAT, single),
    per_value("wallaby_decimal", (STRING, INTEGER, INTEGER, BOOLEAN), STRING, decimal),
    per_value("wallaby_boolean", (STRING, BOOLEAN), BOOLEAN, boolean),
    per_value("wallaby_days", (STRING, BOOLEAN), INTEGER, days),
    per_value("wallaby_date_text", (INTEGER,), STRING, date_text),
)

"""Numbers: rounding by way of decimals, other bases, buckets."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from wallaby.functions.exact.arrow_function import Fault, per_value
from wallaby.functions.exact.floating_text import java_decimal
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, LONG, STRING

#: Enough for every double, rounded to any scale at which rounding changes it.
_WIDE: Final = Context(prec=800)
_UNSIGNED: Final = 1 << 64
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RADIX_MIN: Final = 2


def round_floating(value: float, scale: int, even: bool, java: int) -> float:
    """Java's text for a number, rounded as a decimal, as a double again. Decimals have one zero only."""
    if not math.isfinite(value):
        return value
    number = java_decimal(value, java)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "the number is finite"
    if -exponent <= scale:
        return value + 0.0
    rounding = ROUND_HALF_EVEN if even else ROUND_HALF_UP
    return float(number.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_WIDE)) + 0.0


def convert(text: str, from_base: int, to_base: int, ansi: bool) -> str | None:
    """A number from one base in another, by way of 64 bits without a sign; with one, if the base is negative."""
    if not (_RADIX_MIN <= from_base <= len(_DIGITS) and _RADIX_MIN <= abs(to_base) <= len(_DIGITS)):
        return None
    digits = text.strip(" ")
    if not digits:
        return None
    negative = digits.startswith("-")
    number = 0
    for character in digits[negative:]:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < from_base:
            break
        number = number * from_base + digit
    if number >= _UNSIGNED:
        if ansi:
            raise Fault("ARITHMETIC_OVERFLOW", "Overflow in function conv().")
        number = _UNSIGNED - 1
    if negative and to_base > 0:
        number = _UNSIGNED - 1 if number >= _UNSIGNED // 2 else -number % _UNSIGNED
    if to_base < 0 and number >= _UNSIGNED // 2:
        number, negative = _UNSIGNED - number, True
    return ("-" if negative and to_base < 0 else "") + _in_base(number, abs(to_base))


def _in_base(number: int, base: int) -> str:
    found = ""
    while number:
        number, digit = divmod(number, base)
        found = _DIGITS[digit] + found
    return found or "0"


def width_bucket(value: float, low: float, high: float, count: int) -> int | None:
    """Which of so many buckets of equal width a value belongs to; 0 and one more than all are outside."""
    bad_count = count <= 0 or count == (1 << 63) - 1
    if bad_count or math.isnan(value) or low == high or not (math.isfinite(low) and math.isfinite(high)):
        return None
    if low < high:
        if value < low:
            return 0
        return count + 1 if value >= high else _next_long(float(count) * (value - low) / (high - low))
    if value > low:
        return 0
    return count + 1 if value <= high else _next_long(float(count) * (low - value) / (low - high))


def _next_long(value: float) -> int:
    """One more than a number cut off to a long: too large a one is the greatest, after which comes the least."""
    if math.isnan(value):
        return 1
    whole = int(min(max(value, -(2.0**63)), 2.0**63))
    return whole + 1 if whole < (1 << 63) - 1 else -(1 << 63)


def format_floating(value: float, places: int, java: int) -> str | None:
    """A number with so many places, rounded half to even, and commas between thousands, as Java writes it."""
    if places < 0:
        return None
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    digits = java_decimal(value, java)
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int), "the number is finite"
    return _with_commas(
        digits if -exponent <= places else Decimal(value), places, math.copysign(1, value) < 0
    )


def format_decimal(text: str, places: int) -> str | None:
    """The same for whole numbers and decimals, which come as text."""
    number = Decimal(text)
    return None if places < 0 else _with_commas(number, places, number < 0)


def _with_commas(number: Decimal, places: int, negative: bool) -> str:
    rounded = number.copy_abs().quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN, context=_WIDE)
    return f"{'-' if negative else ''}{rounded:,f}"


FUNCTIONS: Final = (
    per_value("wallaby_format_floating", (DOUBLE, INTEGER, INTEGER), STRING, format_floating),
    per_value("wallaby_format_decimal", (STRING, INTEGER), STRING, format_decimal),
    per_value("wallaby_round", (DOUBLE, INTEGER, BOOLEAN, INTEGER), DOUBLE, round_floating),
    per_value("wallaby_conv", (STRING, INTEGER, INTEGER, BOOLEAN), STRING, convert),
    per_value("wallaby_width_bucket", (DOUBLE, DOUBLE, DOUBLE, LONG), LONG, width_bucket),
)

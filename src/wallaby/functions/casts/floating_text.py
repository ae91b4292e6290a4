"""The decimal digits with which Java writes a floating-point number.

Since version 19 Java gives the shortest digits that identify the number, but at least two. Before, it generated digits
one by one until the rest was within half a unit in the last place, which is sometimes one digit more than needed, or
not the nearest last digit; and whole numbers that fit a long lost only digits smaller than a unit in the last place.
Casts to text and to decimal, `round` and `format_number` all begin with these digits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal, Overflow
from functools import lru_cache
from typing import Final, NamedTuple

import pyarrow as pa

from wallaby.functions.arrow_function import ArrowFunction, per_value
from wallaby.functions.numbers.decimals import DIGITS_MAX, fit
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, STRING, DataType, Kind

#: The first version of Java with the shortest digits.
_SHORTEST_SINCE: Final = 19
_DOUBLE_BITS: Final = 53
_FLOAT_BITS: Final = 24
#: Numbers from 10^-3 to 10^7 are written without an exponent.
_PLAIN_FROM: Final = -3
_PLAIN_TO: Final = 7
#: Binary exponents between which whole numbers are written as longs.
_LONG_EXPONENTS: Final = range(-21, 63)
_LONG_BITS: Final = 64
_INT_BITS: Final = 32
#: With other decimal exponents, Java before 19 generates at least two digits.
_ONE_DIGIT_WILL_DO: Final = range(-3, 8)


class Digits(NamedTuple):
    """A positive number: 0.d₁d₂d₃… · 10^exponent."""

    text: str
    exponent: int


def java_text(value: float, java: int, *, single: bool) -> str:
    """The result of `Double.toString`, or of `Float.toString` for a float that came as a double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    text, exponent = java_digits(abs(value), java, single)
    if _PLAIN_FROM < exponent <= _PLAIN_TO:
        if exponent <= 0:
            return f"{sign}0.{'0' * -exponent}{text}"
        return f"{sign}{text[:exponent].ljust(exponent, '0')}.{text[exponent:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{exponent - 1}"


def java_decimal(value: float, java: int, *, single: bool = False) -> Decimal:
    """The value of Java's text for a finite number."""
    if value == 0:
        return Decimal(0)
    text, exponent = java_digits(abs(value), java, single)
    magnitude = Decimal(int(text)).scaleb(exponent - len(text))
    return -magnitude if value < 0 else magnitude


def nearest_float(text: str) -> float:
    """The float nearest to the value of a text; a double in between would round twice."""
    wide = float(text)
    found = _single(wide)
    if not math.isfinite(found) or not math.isfinite(wide) or found == wide:
        return found
    other = _neighbour(found, wide)
    if wide - found != other - wide:
        return found
    # The double is exactly between two floats, so the text itself decides.
    exact = Decimal(text).compare(Decimal(wide))
    return found if exact == 0 else max(found, other) if exact > 0 else min(found, other)


def _neighbour(found: float, towards: float) -> float:
    bits: int = struct.unpack("<i", struct.pack("<f", found))[0]
    if found == 0:
        return math.copysign(2.0**-149, towards)
    away = (towards > found) == (found > 0)
    return float(struct.unpack("<f", struct.pack("<i", bits + (1 if away else -1)))[0])


@lru_cache(maxsize=4096)
def java_digits(value: float, java: int, single: bool) -> Digits:
    """The digits of a positive, finite number, without zeros at the end."""
    return _shortest(value, single) if java >= _SHORTEST_SINCE else _generated(value, single)


def _shortest(value: float, single: bool) -> Digits:
    text = _shortest_float(value) if single else repr(value)
    digits = Decimal(text).normalize()
    if len(digits.as_tuple().digits) == 1:
        # The nearest of the two-digit numbers that identify the same value.
        two = Decimal(f"{value:.1e}").normalize()
        if _means(two, value, single):
            digits = two
    return _of_decimal(digits)


def _of_decimal(number: Decimal) -> Digits:
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "neither NaN nor infinite"
    return Digits("".join(map(str, digits)), len(digits) + exponent)


def _shortest_float(value: float) -> str:
    return next(text for text in (f"{value:.{n}e}" for n in range(9)) if _single(float(text)) == value)


def _means(text: Decimal, value: float, single: bool) -> bool:
    return (_single(float(text)) if single else float(text)) == value


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf


def _generated(value: float, single: bool) -> Digits:
    """Generate digit by digit, as Java before 19."""
    precision = _FLOAT_BITS if single else _DOUBLE_BITS
    fraction, exponent = math.frexp(value)
    significand = int(math.ldexp(fraction, _DOUBLE_BITS))
    binary_exponent = exponent - 1
    # A subnormal number has fewer bits than the others; a double of a float is never subnormal itself.
    least = -126 if single else -1022
    significant = precision - max(0, least - binary_exponent)
    trailing = (significand & -significand).bit_length() - 1
    bits = _DOUBLE_BITS - trailing
    odd = significand >> trailing
    behind_point = max(0, bits - binary_exponent - 1)
    if behind_point == 0 and binary_exponent in _LONG_EXPONENTS:
        return _whole(odd << (binary_exponent - bits + 1), binary_exponent - significant - 1)
    return _iterated(
        odd, bits, binary_exponent, behind_point, significant, _estimated(significand, binary_exponent)
    )


def _whole(number: int, insignificant_bits: int) -> Digits:
    """The digits of a whole number, without those below its precision."""
    places = math.floor(insignificant_bits * math.log10(2)) if insignificant_bits > 1 else 0
    power = 10**places
    number, rest = divmod(number, power)
    if places and rest >= power // 2:
        number += 1
    text = str(number)
    return Digits(text.rstrip("0"), len(text) + places)


def _estimated(significand: int, binary_exponent: int) -> int:
    """The decimal exponent, or one more."""
    scaled = math.ldexp(significand, 1 - _DOUBLE_BITS)
    return math.floor((scaled - 1.5) * 0.289529654 + 0.176091259 + binary_exponent * 0.301029995663981)


def _iterated(
    odd: int, bits: int, binary_exponent: int, behind_point: int, significant: int, decimal_exponent: int
) -> Digits:
    """Divide numerator by denominator until the rest is smaller than half a unit in the last place."""
    fives_up, fives_down = max(0, -decimal_exponent), max(0, decimal_exponent)
    twos_up = fives_up + behind_point + binary_exponent
    twos_down = fives_down + behind_point
    twos_unit = twos_up - significant
    twos_up -= bits - 1
    common = min(twos_up, twos_down)
    twos_up, twos_down, twos_unit = twos_up - common, twos_down - common, twos_unit - common
    if bits == 1:
        # The next number below a power of two is only half as far away.
        twos_unit -= 1
    if twos_unit < 0:
        twos_up, twos_down, twos_unit = twos_up - twos_unit, twos_down - twos_unit, 0
    needed = max(bits + twos_up + _bits_of_five(fives_up), twos_down + 1 + _bits_of_five(fives_down + 1))
    wrap = _wrapping(needed)
    rest, whole = odd * 5**fives_up << twos_up, 5**fives_down << twos_down
    unit = 5**fives_up << twos_unit
    digits: list[int] = []
    low = high = False
    first = True
    while not (low or high):
        digit, rest = divmod(rest, whole)
        rest, unit = rest * 10, wrap(unit * 10)
        sum_ = wrap(rest + unit)
        low = rest < unit or (unit <= 0 and not first)
        high = sum_ > whole * 10 or (sum_ == whole * 10 and needed >= _LONG_BITS) or (unit <= 0 and not first)
        if first and digit == 0 and not high:
            decimal_exponent -= 1
        else:
            digits.append(digit)
        if first and decimal_exponent not in _ONE_DIGIT_WILL_DO:
            low = high = False
        first = False
    double, ten_wholes = 2 * rest, whole * 10
    if high and (not low or double > ten_wholes or (double == ten_wholes and digits[-1] % 2)):
        return _rounded_up(digits, decimal_exponent + 1)
    return Digits("".join(map(str, digits)).rstrip("0") or "0", decimal_exponent + 1)


def _wrapping(bits: int) -> Callable[[int], int]:
    """Compute in ints or longs where the numbers fit, as Java does, whose additions may overflow these."""
    if bits >= _LONG_BITS:
        return lambda number: number
    half = 1 << ((_INT_BITS if bits < _INT_BITS else _LONG_BITS) - 1)
    return lambda number: (number + half) % (2 * half) - half


def _bits_of_five(power: int) -> int:
    """The number of bits that Java expects of a power of five."""
    if power == 0:
        return 0
    return (5**power).bit_length() if power < 27 else 3 * power


def _rounded_up(digits: list[int], exponent: int) -> Digits:
    number = str(int("".join(map(str, digits))) + 1)
    return Digits(number.rstrip("0"), exponent + len(number) - len(digits))


def _text(single: bool) -> Callable[[float, int], str]:
    return lambda value, java: java_text(value, java, single=single)


def decimal_text(value: float, java: int, precision: int, scale: int, failing: bool) -> str | None:
    """A finite number as a decimal of a type, through Java's text for it; NULL for NaN and infinities."""
    if not math.isfinite(value):
        return None
    number = java_decimal(value, java)
    try:
        if number.adjusted() >= DIGITS_MAX:
            raise Overflow(f"[NUMERIC_VALUE_OUT_OF_RANGE] {number} is no decimal.")
        return f"{fit(number, precision, scale):f}"
    except Overflow:
        if failing:
            raise
        return None


def _narrowed(values: pa.ChunkedArray) -> pa.Array:
    return values.cast(pa.float32(), safe=False)


_FLOAT: Final = DataType(Kind.FLOAT)

FUNCTIONS: Final = (
    per_value("wallaby_double_text", (DOUBLE, INTEGER), STRING, _text(single=False)),
    per_value("wallaby_float_text", (DOUBLE, INTEGER), STRING, _text(single=True)),
    per_value("wallaby_floating_decimal", (DOUBLE, INTEGER, INTEGER, INTEGER, BOOLEAN), STRING, decimal_text),
    ArrowFunction("wallaby_narrowed", (DOUBLE,), _FLOAT, _narrowed),
)

"""Numbers as text with a number of decimal places, and in other bases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

from wallaby.catalyst.data_types import INTS, LONGS, NUMERIC, TEXT
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import ValueFault, per_value
from wallaby.functions.casts.floating_text import java_decimal
from wallaby.functions.entry import Entry, Refusal, exact, fails, guarded
from wallaby.functions.family import Family
from wallaby.functions.scalar_sql import ScalarSql, in_ansi_mode, of_kinds, template
from wallaby.functions.size import Sizes, constant, constant_number, growing, number
from wallaby.functions.within_limit import checked
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, STRING, DataType, Kind
from wallaby.sql.words import cast

_INT: Final = frozenset({Kind.INTEGER})
_SIXTY_FOUR: Final = "in 64 bits; an overflow is an error (ANSI) or the greatest number (LEGACY)"


def _read_format(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read `format_number`, with Java's version, because it begins with Java's digits."""
    if arguments[1].type.kind is not Kind.INTEGER:
        return Refusal("a pattern for numbers is not supported yet", "give the number of places")
    return Call(entry.function, (*arguments, Literal(node.java, INTEGER)), kind, node.nullable)


#: Enough for every double, rounded to any scale at which rounding changes it.
_WIDE: Final = Context(prec=800)
_UNSIGNED: Final = 1 << 64
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RADIX_MIN: Final = 2


def convert(text: str, from_base: int, to_base: int, ansi: bool) -> str | None:
    """Convert a number between bases, through 64 unsigned bits; signed, if the base is negative."""
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
            raise ValueFault("ARITHMETIC_OVERFLOW", "Overflow in function conv().")
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


def format_floating(value: float, places: int, java: int) -> str | None:
    """A number with decimal places, rounded half to even, and thousands separators, as Java writes it."""
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
    """The same for whole numbers and decimals, which are passed as text."""
    number = Decimal(text)
    return None if places < 0 else _with_commas(number, places, number < 0)


def _with_commas(number: Decimal, places: int, negative: bool) -> str:
    rounded = number.copy_abs().quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN, context=_WIDE)
    return f"{'-' if negative else ''}{rounded:,f}"


def _conv(call: Call, sql: Sequence[str]) -> str:
    return f"wallaby_conv({', '.join(sql)}, {'TRUE' if call.mode is EvalMode.ANSI else 'FALSE'})"


def _write_format(call: Call, sql: Sequence[str]) -> str:
    source = call.arguments[0].type

    def write(value: str, places: str, java: str) -> str:
        if source.is_floating:
            return f"wallaby_format_floating({cast(value, DOUBLE)}, {places}, {java})"
        return f"wallaby_format_decimal(CAST({cast(value, source)} AS VARCHAR), {places})"

    return checked(call, sql, lambda _, places, __: f"CAST({places} AS DOUBLE)", write)


def _formatted_within(call: Call) -> tuple[Sequence[float], float] | None:
    places = constant_number(call, 1)
    return None if places is None else ((0, 0, 0), _DIGITS_MAX + max(places, 0))


def _formatted_size(call: Call, sizes: Sizes) -> tuple[str, bool] | None:  # noqa: ARG001 - the signature of a formula
    places = sizes.values[1]
    return None if places is None else (f"({number(places)} + {float(_DIGITS_MAX)})", False)


#: The digits of the largest number, with commas.
_DIGITS_MAX: Final = 512
_NUMBERS: Final = (
    *(Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG),
    *(Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL),
)


FAMILY: Final = Family(
    "Mathematics",
    (
        guarded(
            "FormatNumber",
            "format_number",
            NUMERIC,
            _INT | TEXT,
            guard="to a number of places, not by a pattern",
            build=_read_format,
            sql=ScalarSql(
                3,
                _write_format,
                reason=of_kinds(_NUMBERS, Kind.INTEGER),
                size=growing(_formatted_size, _formatted_within),
            ),
            examples=("format_number({number}, 2)", "format_number({double}, {small})"),
        ),
        exact(
            "Bin",
            "bin",
            LONGS,
            sql=ScalarSql(1, template("bin({0})"), size=constant(64)),
            examples=("bin({whole})",),
        ),
        guarded(
            "Conv",
            "conv",
            TEXT,
            INTS,
            guard=_SIXTY_FOUR,
            build=fails,
            sql=ScalarSql(3, _conv, fallible=in_ansi_mode, size=constant(65)),
            examples=("conv({digits}, 10, 16)", "conv({string}, 36, -2)", "conv({digits}, {small}, {small})"),
        ),
    ),
    arrow_functions=(
        per_value("wallaby_format_floating", (DOUBLE, INTEGER, INTEGER), STRING, format_floating),
        per_value("wallaby_format_decimal", (STRING, INTEGER), STRING, format_decimal),
        per_value("wallaby_conv", (STRING, INTEGER, INTEGER, BOOLEAN), STRING, convert),
    ),
)

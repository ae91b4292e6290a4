"""Round numbers to places after or before the point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from wallaby.catalyst.data_types import DECIMALS, INTEGRAL, NUMERIC
from wallaby.catalyst.node import Node
from wallaby.functions.arrow_function import per_value
from wallaby.functions.casts.floating_text import java_decimal
from wallaby.functions.entry import Entry, Refusal, fails, guarded
from wallaby.functions.family import Family
from wallaby.functions.numbers.decimal_sql import from_digits, unscaled
from wallaby.functions.numbers.decimals import DIGITS_MAX
from wallaby.functions.numbers.integers import fitted
from wallaby.functions.scalar_sql import ScalarSql, Write, in_ansi_mode, not_supported
from wallaby.relations.expression import Call, EvalMode, Expression, Literal
from wallaby.relations.types import BOOLEAN, DOUBLE, INTEGER, LONG, DataType, Kind, decimal
from wallaby.sql.words import case, cast, error

_BY_TEXT: Final = "to a constant scale; floating-point numbers by way of Java's text for them"
_CONSTANT: Final = "to a constant scale"
_SATURATES: Final = (
    "a double becomes a bigint; one that does not fit is an error (ANSI) or the nearest bigint (LEGACY)"
)


def _read_rounded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read rounding, with Java's version: floating-point numbers are rounded through Java's text for them."""
    scale = arguments[1]
    if not isinstance(scale, Literal) or not isinstance(scale.value, int):
        return Refusal("the scale to round to is not a constant")
    if arguments[0].type.is_floating:
        arguments = (*arguments, Literal(node.java, INTEGER))
    return fails(entry, node, arguments, kind)


#: Enough for every double, rounded to any scale at which rounding changes it.
_WIDE: Final = Context(prec=800)


def round_floating(value: float, scale: int, even: bool, java: int) -> float:
    """Round Java's text for a number as a decimal, and convert back to a double. Decimals have only one zero."""
    if not math.isfinite(value):
        return value
    number = java_decimal(value, java)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "the number is finite"
    if -exponent <= scale:
        return value + 0.0
    rounding = ROUND_HALF_EVEN if even else ROUND_HALF_UP
    return float(number.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_WIDE)) + 0.0


_GREATEST: Final = (1 << 63) - 1
_OVERFLOW: Final = error("ARITHMETIC_OVERFLOW", "The number does not fit a bigint.")
_OUT_OF_RANGE: Final = error(
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION", "The rounded number has too many digits."
)
_TWO_63: Final = "CAST(9223372036854775808 AS DOUBLE)"
#: Up to this value, a number times a power of ten is exact enough to decide on which side of a half it is.
_CLEAR_MAX: Final = 1e9
_CLEAR_SCALE_MAX: Final = 9
_CLEAR: Final = "0.00001"
#: The SQL of rounding repeats its argument, so a long argument uses a function that does not.
_REPEATED_MAX: Final = 500


def _can_grow(call: Call) -> bool:
    """Can rounding before the point make a decimal longer than its type? That is an error in every mode."""
    return in_ansi_mode(call) or (call.type.kind is Kind.DECIMAL and _places(call) < 0)


def _digits_rounded(n: str, step: str, how: str) -> str:
    """A whole number divided by a power of ten, rounded to a whole one."""
    size, rest = f"(abs({n}) // {step})", f"(abs({n}) % {step})"
    match how:
        case "half_up":
            away = f"{rest} >= {step} - {rest}"
        case "half_even":
            away = f"{rest} > {step} - {rest} OR ({rest} = {step} - {rest} AND {size} % 2 = 1)"
        case "up":
            away = f"{rest} > 0 AND {n} > 0"
        case _:
            away = f"{rest} > 0 AND {n} < 0"
    sign = case([(f"{n} < 0", "CAST(-1 AS HUGEINT)")], "CAST(1 AS HUGEINT)")
    one_more = case([(away, f"{size} + 1")], size)
    return f"({sign} * {one_more})"


def _write_rounded(how: str) -> Write:
    """Round to places after the point, or before it if they are negative."""

    def write(call: Call, sql: Sequence[str]) -> str:
        source, places = call.arguments[0].type, _places(call)
        if source.is_floating:
            return _floating_rounded(call, sql[0], how)
        scale = source.scale if source.kind is Kind.DECIMAL else 0
        if places >= scale:
            return cast(sql[0], call.type)
        if scale - places > DIGITS_MAX:
            beyond = {"up": f"{sql[0]} > 0", "down": f"{sql[0]} < 0"}.get(how, "FALSE")
            return case([(f"{sql[0]} IS NULL", "NULL"), (beyond, _OUT_OF_RANGE)], cast("0", call.type))
        n = unscaled(sql[0], source) if source.kind is Kind.DECIMAL else f"CAST({sql[0]} AS HUGEINT)"
        digits = _digits_rounded(n, _power(scale - places), how)
        if places < 0:
            digits = f"({digits} * {_power(-places)})"
        if call.type.is_integral:
            return fitted(digits, call.type, call.mode)
        if places < 0:
            too_long = f"abs({digits}) >= {_power(call.type.precision)}"
            return case([(too_long, _OUT_OF_RANGE)], cast(digits, call.type))
        return from_digits(digits, decimal(call.type.precision, max(places, 0)), call.type)

    return write


def _power(places: int) -> str:
    return f"CAST('1{'0' * places}' AS HUGEINT)"


def _places(call: Call) -> int:
    """The number of places; 0 without an argument."""
    if len(call.arguments) == 1:
        return 0
    places = call.arguments[1]
    assert isinstance(places, Literal), "refused by the reason"
    assert isinstance(places.value, int), "refused by the reason"
    return places.value


def _floating_rounded(call: Call, value: str, how: str) -> str:
    places, java = _places(call), call.arguments[2]
    assert isinstance(java, Literal), "refused by the reason"
    wide = cast(value, DOUBLE)
    even = "TRUE" if how == "half_even" else "FALSE"
    slow = f"wallaby_round({wide}, {places}, {even}, {java.value})"
    if not 0 <= places <= _CLEAR_SCALE_MAX or len(value) > _REPEATED_MAX:
        return cast(slow, call.type)
    power = f"CAST({10**places} AS DOUBLE)"
    size = f"(abs({wide}) * {power})"
    clear = f"{size} < {_CLEAR_MAX} AND abs({size} - floor({size}) - 0.5) > {_CLEAR}"
    sign = case([(f"{wide} < 0", "-1")], "1")
    quick = f"({sign} * (floor({size} + 0.5) / {power}) + CAST(0 AS DOUBLE))"
    return cast(case([(clear, quick)], slow), call.type)


def _rounded_reason(call: Call) -> str | None:
    source = call.arguments[0].type
    if not all(
        isinstance(argument, Literal) and isinstance(argument.value, int) for argument in call.arguments[1:]
    ):
        return f"{call.function} to a scale that is not constant is not supported"
    if source.is_floating:
        return None if len(call.arguments) == 3 else not_supported(call)
    return None if source.is_integral or source.kind is Kind.DECIMAL else not_supported(call)


def _whole(name: str, how: str) -> Write:
    """Ceil and floor: a decimal for decimals, a long for doubles."""

    def write(call: Call, sql: Sequence[str]) -> str:
        if call.arguments[0].type.kind is Kind.DECIMAL:
            return _write_rounded(how)(call, sql)
        if call.arguments[0].type.is_integral:
            return cast(sql[0], call.type)
        rounded = f"{name}({sql[0]})"
        ansi = call.mode is EvalMode.ANSI
        return case(
            [
                (f"isnan({sql[0]})", "0"),
                (f"{sql[0]} >= {_TWO_63}", _OVERFLOW if ansi else str(_GREATEST)),
                (f"{sql[0]} < -{_TWO_63}", _OVERFLOW if ansi else str(-_GREATEST - 1)),
            ],
            cast(rounded, LONG),
        )

    return write


def _whole_reason(call: Call) -> str | None:
    source, result = call.arguments[0].type, call.type
    if source.kind is Kind.DECIMAL:
        return None if result.kind is Kind.DECIMAL else not_supported(call)
    floating = source.is_floating and result == LONG
    return None if floating or (source.is_integral and result == LONG) else not_supported(call)


FAMILY: Final = Family(
    "Arithmetic",
    (
        guarded(
            "Round",
            "round",
            NUMERIC,
            guard=_BY_TEXT,
            build=_read_rounded,
            sql=ScalarSql((1, 3), _write_rounded("half_up"), reason=_rounded_reason, fallible=_can_grow),
            examples=("round({number})", "round({number}, 2)", "round({number}, -1)", "round({double}, 9)"),
        ),
        guarded(
            "BRound",
            "bround",
            NUMERIC,
            guard=_BY_TEXT,
            build=_read_rounded,
            sql=ScalarSql((1, 3), _write_rounded("half_even"), reason=_rounded_reason, fallible=_can_grow),
            examples=("bround({number})", "bround({number}, 1)", "bround({number}, -2)"),
        ),
        guarded(
            "RoundCeil",
            "round_ceil",
            DECIMALS,
            INTEGRAL,
            guard=_CONSTANT,
            build=_read_rounded,
            sql=ScalarSql((1, 2), _write_rounded("up"), reason=_rounded_reason, fallible=_can_grow),
            examples=("ceil({decimal}, 1)", "ceil({small}, -1)"),
        ),
        guarded(
            "RoundFloor",
            "round_floor",
            DECIMALS,
            INTEGRAL,
            guard=_CONSTANT,
            build=_read_rounded,
            sql=ScalarSql((1, 2), _write_rounded("down"), reason=_rounded_reason, fallible=_can_grow),
            examples=("floor({decimal}, 1)", "floor({double}, 2)"),
        ),
        guarded(
            "Ceil",
            "ceil",
            NUMERIC,
            guard=_SATURATES,
            build=fails,
            sql=ScalarSql(1, _whole("ceil", "up"), reason=_whole_reason, fallible=in_ansi_mode),
            examples=("ceil({number})",),
        ),
        guarded(
            "Floor",
            "floor",
            NUMERIC,
            guard=_SATURATES,
            build=fails,
            sql=ScalarSql(1, _whole("floor", "down"), reason=_whole_reason, fallible=in_ansi_mode),
            examples=("floor({number})",),
        ),
    ),
    arrow_functions=(
        per_value("wallaby_round", (DOUBLE, INTEGER, BOOLEAN, INTEGER), DOUBLE, round_floating),
    ),
)

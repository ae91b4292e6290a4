"""Arithmetic. Overflow is the hard part: an error in ANSI mode, NULL in TRY mode; in LEGACY mode it wraps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import BOOLEANS, FLOATING, INTEGRAL, NUMERIC
from wallaby.catalyst.node import Node
from wallaby.functions.catalyst.entry import Entry, Refusal, exact, guarded, plain, transparent
from wallaby.relations.expression import Call, Expression, Literal
from wallaby.relations.types import INTEGER, DataType, Kind

WIDE: Final = frozenset({Kind.INTEGER, Kind.LONG})
_OVERFLOW: Final = (
    "an overflow is an error (ANSI) or NULL (TRY, and LEGACY for decimals), or wraps around (LEGACY); "
    "decimals are rounded half up to Catalyst's type"
)
_ZERO: Final = "division by zero is an error (ANSI) or NULL; " + _OVERFLOW
_BY_TEXT: Final = "to a constant scale; floating-point numbers by way of Java's text for them"
_CONSTANT: Final = "to a constant scale"
_SATURATES: Final = (
    "a double becomes a bigint; one that does not fit is an error (ANSI) or the nearest bigint (LEGACY)"
)
_QUOTIENT_DIGITS_MAX: Final = 39
_DISTANCE: Final = "the distance counts modulo the type's bits; bits shifted out are lost"


def fails(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """What Catalyst calls failOnError or ansiEnabled is the mode."""
    fields = node.fields or {}
    flag = next((name for name in ("failOnError", "ansiEnabled") if name in fields), None)
    mode = "ANSI" if flag is None or node.flag(flag) else "LEGACY"
    return plain(entry, replace(node, mode=mode), arguments, kind)


def _divided(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Whole quotients and what remains of them: of decimals, Java's context has room for so many digits."""
    left, right = (argument.type for argument in arguments)
    if left.kind is Kind.DECIMAL and left.precision - left.scale + right.scale > _QUOTIENT_DIGITS_MAX:
        return Refusal(
            f"Spark fails if the whole quotient has more than {_QUOTIENT_DIGITS_MAX} digits",
            "cast to decimals with fewer digits",
        )
    return plain(entry, node, arguments, kind)


def _rounded(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Floating-point numbers are rounded by way of Java's text for them, so Java's version belongs to it."""
    scale = arguments[1]
    if not isinstance(scale, Literal) or not isinstance(scale.value, int):
        return Refusal("the scale to round to is not a constant")
    if arguments[0].type.is_floating:
        arguments = (*arguments, Literal(node.java, INTEGER))
    return fails(entry, node, arguments, kind)


def bits(entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType) -> Expression | Refusal:
    """These have a mode in Catalyst that means nothing."""
    return Call(entry.function, arguments, kind, node.nullable)


ENTRIES: Final = (
    guarded("Add", "add", NUMERIC, guard=_OVERFLOW),
    guarded("Subtract", "subtract", NUMERIC, guard=_OVERFLOW),
    guarded("Multiply", "multiply", NUMERIC, guard=_OVERFLOW),
    guarded("Divide", "divide", FLOATING | {Kind.DECIMAL}, guard=_ZERO),
    guarded("Remainder", "remainder", NUMERIC, guard=_ZERO, build=_divided),
    guarded("UnaryMinus", "negate", NUMERIC, guard=_OVERFLOW, build=fails),
    exact("UnaryPositive", "", NUMERIC, build=transparent),
    exact("UnscaledValue", "unscaled", frozenset({Kind.DECIMAL})),
    guarded(
        "IntegralDivide",
        "integral_divide",
        frozenset({Kind.LONG, Kind.DECIMAL}),
        guard=_ZERO,
        build=_divided,
    ),
    guarded("Pmod", "pmod", NUMERIC, guard=_ZERO, build=_divided),
    guarded("Abs", "abs", NUMERIC, guard=_OVERFLOW, build=fails),
    guarded("Round", "round", NUMERIC, guard=_BY_TEXT, build=_rounded),
    guarded("BRound", "bround", NUMERIC, guard=_BY_TEXT, build=_rounded),
    guarded("RoundCeil", "round_ceil", frozenset({Kind.DECIMAL}), INTEGRAL, guard=_CONSTANT, build=_rounded),
    guarded(
        "RoundFloor", "round_floor", frozenset({Kind.DECIMAL}), INTEGRAL, guard=_CONSTANT, build=_rounded
    ),
    guarded("Ceil", "ceil", NUMERIC, guard=_SATURATES, build=fails),
    guarded("Floor", "floor", NUMERIC, guard=_SATURATES, build=fails),
    exact("BitwiseAnd", "bit_and", INTEGRAL, build=bits),
    exact("BitwiseOr", "bit_or", INTEGRAL, build=bits),
    exact("BitwiseXor", "bit_xor", INTEGRAL, build=bits),
    exact("BitwiseNot", "bit_not", INTEGRAL),
    guarded("BitwiseCount", "bit_count", INTEGRAL | BOOLEANS, guard="of the number as a bigint"),
    guarded("BitwiseGet", "bit_get", INTEGRAL, INTEGRAL, guard="a position outside is an error"),
    guarded("ShiftLeft", "shift_left", WIDE, frozenset({Kind.INTEGER}), guard=_DISTANCE),
    guarded("ShiftRight", "shift_right", WIDE, frozenset({Kind.INTEGER}), guard=_DISTANCE),
    guarded("ShiftRightUnsigned", "shift_right_unsigned", WIDE, frozenset({Kind.INTEGER}), guard=_DISTANCE),
)

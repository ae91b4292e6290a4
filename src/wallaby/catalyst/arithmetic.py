"""Arithmetic. Overflow is the hard part: an error in ANSI mode, NULL in TRY mode; in LEGACY mode it wraps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import FLOATING, INTEGRAL, NUMERIC
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, plain, transparent, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, Expression, Literal
from wallaby.plan.types import DataType, Kind

#: Scala's BigDecimal negates with this many digits.
_NEGATED_DIGITS: Final = 34
WIDE: Final = frozenset({Kind.INTEGER, Kind.LONG})
_OVERFLOW: Final = (
    "an overflow is an error (ANSI) or NULL (TRY, and LEGACY for decimals), or wraps around (LEGACY); "
    "decimals are rounded half up to Catalyst's type"
)
_ZERO: Final = "division by zero is an error (ANSI) or NULL; " + _OVERFLOW


def _negate(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    if kind.precision > _NEGATED_DIGITS:
        return Refusal(
            f"Spark rounds the negative of a decimal to {_NEGATED_DIGITS} digits", "subtract it from 0"
        )
    mode = "ANSI" if node.flag("failOnError") else "LEGACY"
    return plain(entry, replace(node, mode=mode), arguments, kind)


def _shift(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Java looks at the lowest five or six bits of the distance only."""
    value, distance = arguments
    if not isinstance(distance, Literal) or not isinstance(distance.value, int):
        return Refusal("the distance of a shift is not a constant")
    bits = 64 if kind.kind is Kind.LONG else 32
    by = Literal(distance.value % bits, distance.type)
    return Call(entry.function, (value, by), kind, node.nullable)


ENTRIES: Final = (
    guarded("Add", "add", NUMERIC, guard=_OVERFLOW),
    guarded("Subtract", "subtract", NUMERIC, guard=_OVERFLOW),
    guarded("Multiply", "multiply", NUMERIC, guard=_OVERFLOW),
    guarded("Divide", "divide", FLOATING | {Kind.DECIMAL}, guard=_ZERO),
    guarded("Remainder", "remainder", NUMERIC, guard=_ZERO),
    guarded("UnaryMinus", "negate", NUMERIC, guard=_OVERFLOW, build=_negate),
    exact("UnaryPositive", "", NUMERIC, build=transparent),
    exact("UnscaledValue", "unscaled", frozenset({Kind.DECIMAL})),
    exact("BitwiseAnd", "bit_and", INTEGRAL),
    guarded(
        "ShiftRight",
        "shift_right",
        WIDE,
        frozenset({Kind.INTEGER}),
        guard="by a constant, modulo the type's bits",
        build=_shift,
    ),
    unsupported("IntegralDivide", "`div` has no kernel yet"),
    unsupported("Pmod", "`pmod` has no kernel yet"),
    unsupported("Abs", "`abs` has no kernel yet"),
    unsupported("Round", "Spark rounds doubles by way of decimals; there is no kernel for that yet"),
)

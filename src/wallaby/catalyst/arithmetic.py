"""Arithmetic. Overflow is the hard part: an error in ANSI mode, NULL in TRY mode; in LEGACY mode it wraps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaby.catalyst.data_types import FLOATING, NUMERIC
from wallaby.catalyst.entry import Entry, Refusal, exact, guarded, plain, transparent, unsupported
from wallaby.catalyst.node import Node
from wallaby.plan.expression import Call, EvalMode, Expression
from wallaby.plan.types import DataType, Kind

WRAPS: Final = Refusal(
    "with spark.sql.ansi.enabled=false Spark lets whole numbers wrap around on overflow",
    "set spark.sql.ansi.enabled=true, or use the try_ functions",
)
_OVERFLOW: Final = (
    "an overflow is an error (ANSI) or NULL (TRY, and LEGACY for decimals); "
    "decimals are rounded half up to Catalyst's type"
)
_ZERO: Final = "division by zero is an error (ANSI) or NULL; " + _OVERFLOW


def _checked(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    made = plain(entry, node, arguments, kind)
    wraps = isinstance(made, Call) and made.mode is EvalMode.LEGACY and kind.is_integral
    return WRAPS if wraps else made


def _negate(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    mode = "ANSI" if node.flag("failOnError") else "LEGACY"
    return _checked(entry, replace(node, mode=mode), arguments, kind)


ENTRIES: Final = (
    guarded("Add", "add", NUMERIC, guard=_OVERFLOW, build=_checked),
    guarded("Subtract", "subtract", NUMERIC, guard=_OVERFLOW, build=_checked),
    guarded("Multiply", "multiply", NUMERIC, guard=_OVERFLOW, build=_checked),
    guarded("Divide", "divide", FLOATING | {Kind.DECIMAL}, guard=_ZERO, build=_checked),
    guarded("Remainder", "remainder", NUMERIC, guard=_ZERO, build=_checked),
    guarded("UnaryMinus", "negate", NUMERIC, guard=_OVERFLOW, build=_negate),
    exact("UnaryPositive", "", NUMERIC, build=transparent),
    unsupported("IntegralDivide", "`div` has no kernel yet"),
    unsupported("Pmod", "`pmod` has no kernel yet"),
    unsupported("Abs", "`abs` has no kernel yet"),
    unsupported("Round", "Spark rounds doubles by way of decimals; there is no kernel for that yet"),
)

"""Bits of whole numbers. Java looks at the lowest five or six bits of a distance only, and lets results wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wallaby.functions.scalar.function import Function, Reason, of_kinds, template, unsupported
from wallaby.functions.sql_integer import fitted
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import INTEGER, LONG, DataType, Kind
from wallaby.sql.words import case, cast, error

_BITS: Final = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INTEGER: 32, Kind.LONG: 64}
_WHOLE: Final = tuple(_BITS)
_SHIFTED: Final = of_kinds((Kind.INTEGER, Kind.LONG), Kind.INTEGER)


def _distance(call: Call, sql: Sequence[str]) -> str:
    return f"({sql[1]} & {_BITS[call.type.kind] - 1})"


def _left(call: Call, sql: Sequence[str]) -> str:
    power = f"(CAST(1 AS HUGEINT) << {_distance(call, sql)})"
    return fitted(f"(CAST({sql[0]} AS HUGEINT) * {power})", call.type, EvalMode.LEGACY)


def _right(call: Call, sql: Sequence[str]) -> str:
    return cast(f"({sql[0]} >> {_distance(call, sql)})", call.type)


def _right_unsigned(call: Call, sql: Sequence[str]) -> str:
    ones = f"CAST('{(1 << _BITS[call.type.kind]) - 1}' AS HUGEINT)"
    positive = f"(CAST({sql[0]} AS HUGEINT) & {ones})"
    return fitted(f"({positive} >> {_distance(call, sql)})", call.type, EvalMode.LEGACY)


def _count(call: Call, sql: Sequence[str]) -> str:
    """Of the number as a long, so a negative one has many."""
    if call.arguments[0].type.kind is Kind.BOOLEAN:
        return cast(sql[0], INTEGER)
    return cast(f"bit_count({cast(sql[0], LONG)})", call.type)


def _get(call: Call, sql: Sequence[str]) -> str:
    bits = _BITS[call.arguments[0].type.kind]
    outside = error("INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE", f"A position is between 0 and {bits - 1}.")
    missing = f"{sql[0]} IS NULL OR {sql[1]} IS NULL"
    found = cast(f"(({cast(sql[0], LONG)} >> {sql[1]}) & 1)", call.type)
    return case([(missing, "NULL"), (f"{sql[1]} BETWEEN 0 AND {bits - 1}", found)], outside)


def _same(call: Call) -> str | None:
    found: set[DataType] = {argument.type for argument in call.arguments}
    return None if found == {call.type} and call.type.is_integral else unsupported(call)


_GET_KINDS: Final[Reason] = of_kinds(_WHOLE, Kind.INTEGER)

FUNCTIONS: dict[str, Function] = {
    "bit_and": Function((2, 2), template("({0} & {1})"), _same),
    "bit_or": Function((2, 2), template("({0} | {1})"), _same),
    "bit_xor": Function((2, 2), template("xor({0}, {1})"), _same),
    "bit_not": Function((1, 1), template("(~{0})"), _same),
    "bit_count": Function((1, 1), _count, of_kinds((*_WHOLE, Kind.BOOLEAN))),
    "bit_get": Function((2, 2), _get, _GET_KINDS, lambda call: True),  # noqa: ARG005 - always
    "shift_left": Function((2, 2), _left, _SHIFTED),
    "shift_right": Function((2, 2), _right, _SHIFTED),
    "shift_right_unsigned": Function((2, 2), _right_unsigned, _SHIFTED),
}

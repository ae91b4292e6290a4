"""Arithmetic: overflow and division by zero are the hard parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wallaby.functions.scalar.function import Function
from wallaby.functions.sql_decimal import by_zero, decimal_sql, negated, unscaled
from wallaby.functions.sql_integer import computed, fitted
from wallaby.relations.expression import Call, EvalMode
from wallaby.relations.types import INTEGER, DataType, Kind
from wallaby.sql.words import case, cast, normalized

#: So many digits fit a long.
_LONG_DIGITS = 18


def _arithmetic(sign: str, operation: str) -> Callable[[Call, Sequence[str]], str]:
    def write(call: Call, sql: Sequence[str]) -> str:
        if call.type.kind is Kind.DECIMAL:
            left, right = call.arguments
            return decimal_sql(operation, sql[0], left, sql[1], right, call.type, call.mode)
        if call.type.is_integral:
            return computed(sign, sql[0], sql[1], call.type, call.mode)
        return cast(f"({sql[0]} {sign} {sql[1]})", call.type)

    return write


def _divide(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("divide", sql[0], left, sql[1], right, call.type, call.mode)
    if call.mode is not EvalMode.ANSI:
        return cast(f"({sql[0]} / nullif({sql[1]}, 0))", call.type)
    return case(
        [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode))],
        cast(f"({sql[0]} / {sql[1]})", call.type),
    )


def _remainder(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("remainder", sql[0], left, sql[1], right, call.type, call.mode)
    branches = [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode, remainder=True))]
    if call.type.is_integral:
        # The least number divided by -1 overflows in DuckDB; the remainder is 0.
        branches.append((f"{sql[1]} = -1 AND {sql[0]} IS NOT NULL", cast("0", call.type)))
    return case(branches, cast(f"({sql[0]} % {sql[1]})", call.type))


def _arithmetic_reason(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments} | {call.type.kind}
    if kinds == {Kind.DECIMAL} or (len(kinds) == 1 and (call.type.is_integral or call.type.is_floating)):
        if call.function == "divide" and call.type.is_integral:
            return "whole division is not supported"
        return None
    types = ", ".join(str(argument.type) for argument in call.arguments)
    return f"{call.function}({types}) is not supported"


def _arithmetic_fallible(call: Call) -> bool:
    can_fail = not call.type.is_floating or call.function in ("divide", "remainder")
    return call.mode is EvalMode.ANSI and can_fail


def negative(sql: str, type_: DataType, mode: EvalMode) -> str:
    """Whole numbers by subtraction: DuckDB widens the negative of a constant, and would not see its overflow.

    In Spark the negative of a short number overflows like that of a long one, not like its difference from another.
    """
    if mode is EvalMode.ANSI and type_.kind in (Kind.BYTE, Kind.SHORT):
        return fitted(computed("-", "CAST(0 AS INTEGER)", sql, INTEGER, mode), type_, mode)
    if type_.is_integral:
        return computed("-", cast("0", type_), sql, type_, mode)
    if type_.kind is Kind.DECIMAL:
        return negated(sql, type_)
    return cast(f"(-({sql}))", type_)


def _negate(call: Call, sql: Sequence[str]) -> str:
    return negative(sql[0], call.type, call.mode)


def _normalize(call: Call, sql: Sequence[str]) -> str:
    return normalized(sql[0], call.type)


def _unscaled(call: Call, sql: Sequence[str]) -> str:
    return cast(unscaled(sql[0], call.arguments[0].type), call.type)


def _decimal(call: Call) -> str | None:
    type_ = call.arguments[0].type
    narrow = type_.kind is Kind.DECIMAL and type_.precision <= _LONG_DIGITS
    return None if narrow else f"{call.function} of {type_} is not supported"


def _floating(call: Call) -> str | None:
    type_ = call.arguments[0].type
    return None if type_.is_floating else f"{call.function} of {type_} is not supported"


def _binary(sign: str, operation: str) -> Function:
    return Function((2, 2), _arithmetic(sign, operation), _arithmetic_reason, _arithmetic_fallible)


FUNCTIONS: dict[str, Function] = {
    "add": _binary("+", "add"),
    "subtract": _binary("-", "subtract"),
    "multiply": _binary("*", "multiply"),
    "divide": Function((2, 2), _divide, _arithmetic_reason, _arithmetic_fallible),
    "remainder": Function((2, 2), _remainder, _arithmetic_reason, _arithmetic_fallible),
    "negate": Function((1, 1), _negate, _arithmetic_reason, _arithmetic_fallible),
    "unscaled": Function((1, 1), _unscaled, _decimal),
    "normalize": Function((1, 1), _normalize, _floating),
}

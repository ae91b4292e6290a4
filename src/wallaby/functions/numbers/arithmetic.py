"""Arithmetic. Overflow is the difficult part: an error in ANSI mode, NULL in TRY mode, and a wrap in LEGACY mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from wallaby.catalyst.data_types import DECIMALS, FLOATING, NUMERIC
from wallaby.catalyst.node import Node
from wallaby.functions.entry import Entry, Refusal, exact, fails, guarded, plain, transparent
from wallaby.functions.family import Family
from wallaby.functions.numbers import decimals
from wallaby.functions.numbers.decimal_sql import SIGNS, by_zero, decimal_sql, negated, unscaled
from wallaby.functions.numbers.decimals import DIGITS_MAX
from wallaby.functions.numbers.integers import computed, fitted
from wallaby.functions.scalar_sql import ScalarSql, in_ansi_mode, not_supported
from wallaby.relations import functions
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import INTEGER, DataType, Kind, decimal
from wallaby.sql.words import case, cast

_OVERFLOW: Final = (
    "an overflow is an error (ANSI) or NULL (TRY, and LEGACY for decimals), or wraps around (LEGACY); "
    "decimals are rounded half up to Catalyst's type"
)
_ZERO: Final = "division by zero is an error (ANSI) or NULL; " + _OVERFLOW
_QUOTIENT_DIGITS_MAX: Final = 39


def _divided(
    entry: Entry, node: Node, arguments: tuple[Expression, ...], kind: DataType
) -> Expression | Refusal:
    """Read whole quotients and remainders; for decimals, Java's context limits the digits."""
    left, right = (argument.type for argument in arguments)
    if left.kind is Kind.DECIMAL and left.precision - left.scale + right.scale > _QUOTIENT_DIGITS_MAX:
        return Refusal(
            f"Spark fails if the whole quotient has more than {_QUOTIENT_DIGITS_MAX} digits",
            "cast to decimals with fewer digits",
        )
    return plain(entry, node, arguments, kind)


#: The digits that always fit a long.
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
        # The smallest number divided by -1 overflows in DuckDB; the remainder is 0.
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
    """Negate whole numbers by subtraction: DuckDB widens the negative of a constant, and would miss its overflow.

    In Spark the negation of a short number overflows like that of a long one, not like a subtraction.
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


def _unscaled(call: Call, sql: Sequence[str]) -> str:
    return cast(unscaled(sql[0], call.arguments[0].type), call.type)


def _decimal(call: Call) -> str | None:
    type_ = call.arguments[0].type
    narrow = type_.kind is Kind.DECIMAL and type_.precision <= _LONG_DIGITS
    return None if narrow else f"{call.function} of {type_} is not supported"


def _binary(sign: str, operation: str) -> ScalarSql:
    return ScalarSql(2, _arithmetic(sign, operation), _arithmetic_reason, _arithmetic_fallible)


def _in_64_bits(sign: str) -> ScalarSql:
    """Write a sum or product of decimals of which planning knows that it has at most 18 digits."""

    def write(call: Call, sql: Sequence[str]) -> str:  # noqa: ARG001 - the signature of a writer
        return f"({sql[0]} {sign} {sql[1]})"

    return ScalarSql(2, write, _arithmetic_reason)


def _abs(call: Call, sql: Sequence[str]) -> str:
    if call.type.is_floating:
        return cast(f"abs({sql[0]})", call.type)
    return case([(f"{sql[0]} < 0", negative(sql[0], call.type, call.mode))], sql[0])


def _integral_divide(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    zero = (f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode))
    if left.type.kind is Kind.DECIMAL:
        scale = max(left.type.scale, right.type.scale)
        lefts, rights = (
            unscaled(one, decimal(side.type.precision - side.type.scale + scale, scale))
            for one, side in zip(sql, call.arguments, strict=True)
        )
        return case([zero], fitted(f"({lefts} // {rights})", call.type, EvalMode.LEGACY))
    wide = f"(CAST({sql[0]} AS HUGEINT) // {sql[1]})"
    return case([zero], fitted(wide, call.type, call.mode))


def _integral_divide_reason(call: Call) -> str | None:
    left, right = (argument.type for argument in call.arguments)
    if left.kind is Kind.DECIMAL and right.kind is Kind.DECIMAL:
        scale = max(left.scale, right.scale)
        fits = all(side.precision - side.scale + scale <= DIGITS_MAX for side in (left, right))
        return None if fits else not_supported(call)
    return None if left.kind is Kind.LONG and right.kind is Kind.LONG else not_supported(call)


def _positive_modulo(call: Call, sql: Sequence[str]) -> str:
    left, right = call.arguments
    if call.type.kind is Kind.DECIMAL:
        return decimal_sql("pmod", sql[0], left, sql[1], right, call.type, call.mode)
    branches = [(f"{sql[1]} = 0 AND {sql[0]} IS NOT NULL", by_zero(call.mode, remainder=True))]
    rest = f"({sql[0]} % {sql[1]})"
    if not call.type.is_integral:
        again = f"(({rest} + {sql[1]}) % {sql[1]})"
        return case([*branches, (f"{rest} < 0", cast(again, call.type))], cast(rest, call.type))
    branches.append((f"{sql[1]} = -1 AND {sql[0]} IS NOT NULL", cast("0", call.type)))
    # The sum of two negative numbers may overflow to a positive one.
    wide = f"(CAST({rest} AS HUGEINT) + {sql[1]})"
    wrapped = wide if call.type.kind in (Kind.BYTE, Kind.SHORT) else fitted(wide, call.type, EvalMode.LEGACY)
    return case(
        [*branches, (f"{rest} < 0", cast(f"({wrapped} % {sql[1]})", call.type))], cast(rest, call.type)
    )


def _same_number(call: Call) -> str | None:
    kinds = {argument.type.kind for argument in call.arguments} | {call.type.kind}
    numeric = call.type.is_integral or call.type.is_floating or call.type.kind is Kind.DECIMAL
    return None if len(kinds) == 1 and numeric else not_supported(call)


FAMILY: Final = Family(
    "Arithmetic",
    (
        guarded(
            "Add",
            "add",
            NUMERIC,
            guard=_OVERFLOW,
            sql=_binary("+", "add"),
            examples=("{number} + {number}", "try_add({number}, {number})"),
        ),
        guarded(
            "Subtract",
            "subtract",
            NUMERIC,
            guard=_OVERFLOW,
            sql=_binary("-", "subtract"),
            examples=("{number} - {number}", "try_subtract({number}, {number})"),
        ),
        guarded(
            "Multiply",
            "multiply",
            NUMERIC,
            guard=_OVERFLOW,
            sql=_binary("*", "multiply"),
            examples=("{number} * {number}", "try_multiply({number}, {number})"),
        ),
        guarded(
            "Divide",
            "divide",
            FLOATING | {Kind.DECIMAL},
            guard=_ZERO,
            sql=ScalarSql(2, _divide, reason=_arithmetic_reason, fallible=_arithmetic_fallible),
            examples=("{number} / {number}", "try_divide({number}, {number})"),
        ),
        guarded(
            "Remainder",
            "remainder",
            NUMERIC,
            guard=_ZERO,
            build=_divided,
            sql=ScalarSql(2, _remainder, reason=_arithmetic_reason, fallible=_arithmetic_fallible),
            examples=("{number} % {number}", "try_mod({number}, {number})"),
        ),
        guarded(
            "UnaryMinus",
            "negate",
            NUMERIC,
            guard=_OVERFLOW,
            build=fails,
            sql=ScalarSql(1, _negate, reason=_arithmetic_reason, fallible=_arithmetic_fallible),
            examples=("-{number}",),
        ),
        exact(
            "UnaryPositive",
            "",
            NUMERIC,
            build=transparent,
            without_example="Catalyst removes it before a plan is optimized",
        ),
        exact(
            "UnscaledValue",
            "unscaled",
            DECIMALS,
            sql=ScalarSql(1, _unscaled, reason=_decimal),
            examples=("sum({decimal_5_2})", "avg({decimal_9_0})"),
        ),
        guarded(
            "IntegralDivide",
            "integral_divide",
            frozenset({Kind.LONG, Kind.DECIMAL}),
            guard=_ZERO,
            build=_divided,
            sql=ScalarSql(2, _integral_divide, reason=_integral_divide_reason, fallible=in_ansi_mode),
            examples=("{whole} div {whole}", "{decimal_9_0} div {decimal_5_2}"),
        ),
        guarded(
            "Pmod",
            "pmod",
            NUMERIC,
            guard=_ZERO,
            build=_divided,
            sql=ScalarSql(2, _positive_modulo, reason=_same_number, fallible=in_ansi_mode),
            examples=("pmod({number}, {number})",),
        ),
        guarded(
            "Abs",
            "abs",
            NUMERIC,
            guard=_OVERFLOW,
            build=fails,
            sql=ScalarSql(1, _abs, reason=_same_number, fallible=in_ansi_mode),
            examples=("abs({number})",),
        ),
    ),
    also={functions.IN_64_BITS[name]: _in_64_bits(sign) for name, sign in SIGNS.items()},
    arrow_functions=(*decimals.FUNCTIONS,),
)

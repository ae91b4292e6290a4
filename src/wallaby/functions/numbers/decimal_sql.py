"""Decimal arithmetic with Spark's result types and rounding (HALF_UP), on numbers of at most 38 digits.

Spark computes a result exactly, or truncates it after 39 digits, and then rounds it to the type that Catalyst chose; no
such type has 39 digits, so there is only one rounding. DuckDB adds and multiplies exactly as long as the result has 38
digits, and divides decimals as doubles. So additions and multiplications whose exact scale is the result's are DuckDB's
own; divisions use 128-bit whole numbers if the shifted dividend fits; everything else uses the exact but slow functions
of `decimals`.

DuckDB gives sums and products its own precision, the *width*. Inside an expression only the value counts, and casting
each result costs a quarter of the time of TPC-H 1, so only the result of a whole expression is cast, by `output_sql`.
But two numbers of at most 18 digits have a result of at most 18 digits in DuckDB, or an overflow: where Catalyst allows
more, one side is widened. It need not be if planning knows from the bounds of columns that the result is short enough:
then such numbers stay in 64 bits (`plan/rules/narrow_decimals.py`).
"""

from __future__ import annotations

from wallaby.functions.numbers.decimals import DIGITS_MAX, decimal_name
from wallaby.relations import functions
from wallaby.relations.expression import Call, EvalMode, Expression
from wallaby.relations.types import DataType, Kind, decimal
from wallaby.sql.words import case, cast, error

#: The digits that DuckDB stores in 64 bits.
_NARROW_MAX = 18

#: Longer decimals lose digits when they are negated.
_NEGATED_DIGITS_MAX = 34

#: The SQL of a division repeats its sides a dozen times. If the sides are longer than this, a function that repeats
#: them once is used, or nested divisions would grow without bound.
_REPEATED_MAX = 4000
_DIVIDE_BY_ZERO = error("DIVIDE_BY_ZERO", "Division by zero.")
_REMAINDER_BY_ZERO = error("REMAINDER_BY_ZERO", "Remainder by zero.")


def by_zero(mode: EvalMode, *, remainder: bool = False) -> str:
    """The result of a division by zero."""
    if mode is not EvalMode.ANSI:
        return "NULL"
    return _REMAINDER_BY_ZERO if remainder else _DIVIDE_BY_ZERO


def decimal_sql(
    operation: str,
    left: str,
    left_side: Expression,
    right: str,
    right_side: Expression,
    result: DataType,
    mode: EvalMode,
) -> str:
    """Write add, subtract, multiply, divide or remainder. An overflow is an error only in ANSI mode."""
    left_type, right_type = left_side.type, right_side.type
    if mode is not EvalMode.ANSI and _may_overflow(operation, left_type, right_type, result):
        return _slow(operation, left, right, result, mode)
    match operation:
        case "add" | "subtract" | "multiply" if _is_plain(operation, left_type, right_type, result):
            narrow = max(_width(left_side), _width(right_side)) <= _NARROW_MAX
            if narrow and _needed(operation, left_side, right_side) > _NARROW_MAX:
                left = cast(left, decimal(_NARROW_MAX + 1, left_type.scale))
            return f"({left} {SIGNS[operation]} {right})"
        case "divide" if _fits_quotient(left_type, right_type, result) and len(left + right) < _REPEATED_MAX:
            return _divide(left, left_type, right, right_type, result, mode)
        case "remainder" if _fits_remainder(left_type, right_type):
            common = decimal(DIGITS_MAX, max(left_type.scale, right_type.scale))
            return case(
                [(f"{right} = 0 AND {left} IS NOT NULL", by_zero(mode, remainder=True))],
                cast(f"({cast(left, common)} % {cast(right, common)})", result),
            )
        case _:
            return _slow(operation, left, right, result, mode)


#: The operations that DuckDB itself computes exactly.
SIGNS = {functions.ADD: "+", functions.SUBTRACT: "-", functions.MULTIPLY: "*"}
_IN_64_BITS = {short: plain for plain, short in functions.IN_64_BITS.items()}


def _may_overflow(operation: str, left: DataType, right: DataType, result: DataType) -> bool:
    """Can the result have more digits before the point than its type?"""
    lefts, rights = left.precision - left.scale, right.precision - right.scale
    match operation:
        case "add" | "subtract":
            digits = max(lefts, rights) + 1
        case "multiply":
            digits = lefts + rights + (left.scale + right.scale > result.scale)
        case "divide":
            digits = lefts + right.scale + 1
        case _:
            digits = min(lefts, rights)
    return digits > result.precision - result.scale


def _is_plain(operation: str, left: DataType, right: DataType, result: DataType) -> bool:
    """Is DuckDB's own operation exact?"""
    if operation == "multiply":
        return left.scale + right.scale == result.scale
    return _fits_sum(left, right, result)


def _width(expression: Expression) -> int:
    """The precision that DuckDB gives an expression in the form written here."""
    match expression:
        case Call(function="add" | "subtract" | "multiply", arguments=(left, right)) if _is_plain(
            expression.function, left.type, right.type, expression.type
        ):
            needed = _needed(expression.function, left, right)
            if max(_width(left), _width(right)) <= _NARROW_MAX < needed:
                # One side was cast to one more digit than that.
                needed = _needed_of(
                    expression.function,
                    (_NARROW_MAX + 1, left.type.scale),
                    (_width(right), right.type.scale),
                )
            return min(needed, DIGITS_MAX)
        case Call(function=short, arguments=(left, right)) if short in _IN_64_BITS:
            narrow = max(_width(left), _width(right)) <= _NARROW_MAX
            return min(_needed(_IN_64_BITS[short], left, right), _NARROW_MAX if narrow else DIGITS_MAX)
        case _ if expression.type.kind is Kind.DECIMAL:
            return expression.type.precision
        case _:
            return DIGITS_MAX


def _needed(operation: str, left: Expression, right: Expression) -> int:
    return _needed_of(operation, (_width(left), left.type.scale), (_width(right), right.type.scale))


def _needed_of(operation: str, left: tuple[int, int], right: tuple[int, int]) -> int:
    """The precision of DuckDB's result, before it is capped, from precisions and scales."""
    if operation == "multiply":
        return left[0] + right[0]
    return max(left[0] - left[1], right[0] - right[1]) + max(left[1], right[1]) + 1


def _fits_sum(left: DataType, right: DataType, result: DataType) -> bool:
    """Do both sides always fit the result's type exactly?"""
    return all(
        side.scale <= result.scale and side.precision - side.scale <= result.precision - result.scale
        for side in (left, right)
    )


def _fits_remainder(left: DataType, right: DataType) -> bool:
    scale = max(left.scale, right.scale)
    return all(side.precision - side.scale + scale <= DIGITS_MAX for side in (left, right))


def _fits_quotient(left: DataType, right: DataType, result: DataType) -> bool:
    """Do both sides' digits fit, with the dividend shifted so that the whole quotient has the result's scale?"""
    shift = result.scale - left.scale + right.scale
    return (
        shift >= 0
        and left.precision + max(shift, left.scale) <= DIGITS_MAX
        and right.precision + right.scale <= DIGITS_MAX
    )


def _divide(
    left: str, left_type: DataType, right: str, right_type: DataType, result: DataType, mode: EvalMode
) -> str:
    shift = result.scale - left_type.scale + right_type.scale
    # `n` and `d` are computed once for each row: DuckDB shares equal expressions.
    n = f"({unscaled(left, left_type)} * CAST('1{'0' * shift}' AS HUGEINT))"
    d = unscaled(right, right_type)
    quotient, rest = f"({n} // {d})", f"abs({n} % {d})"
    away = case([(f"({n} < 0) <> ({d} < 0)", "CAST(-1 AS HUGEINT)")], "CAST(1 AS HUGEINT)")
    rounded = case([(f"{rest} >= abs({d}) - {rest}", f"{quotient} + {away}")], quotient)
    return case(
        [(f"{right} = 0 AND {left} IS NOT NULL", by_zero(mode))],
        from_digits(f"({rounded})", result, result),
    )


def unscaled(sql: str, type_: DataType) -> str:
    """A decimal's unscaled whole number."""
    if type_.precision + type_.scale > DIGITS_MAX:
        return f"CAST(replace(CAST({cast(sql, type_)} AS VARCHAR), '.', '') AS HUGEINT)"
    wide = cast(sql, decimal(DIGITS_MAX, type_.scale))
    return f"CAST({wide} * CAST('1{'0' * type_.scale}' AS DECIMAL(38,0)) AS HUGEINT)"


def from_digits(sql: str, type_: DataType, result: DataType) -> str:
    """A decimal from its unscaled whole number, by multiplying with the smallest decimal of its scale."""
    if type_.scale == 0:
        return cast(sql, result)
    smallest = cast(f"'0.{'0' * (type_.scale - 1)}1'", decimal(type_.scale, type_.scale))
    return cast(f"(CAST({sql} AS DECIMAL(38,0)) * {smallest})", result)


def negated(sql: str, type_: DataType) -> str:
    """The negative. Spark rounds it to 34 digits, half to even."""
    if type_.precision <= _NEGATED_DIGITS_MAX:
        return cast(f"(-({sql}))", type_)
    return cast(f"wallaby_negated(CAST({sql} AS VARCHAR), {type_.precision}, {type_.scale})", type_)


def _slow(operation: str, left: str, right: str, result: DataType, mode: EvalMode) -> str:
    name = decimal_name(operation, null_on_error=mode is not EvalMode.ANSI)
    arguments = f"CAST({left} AS VARCHAR), CAST({right} AS VARCHAR), {result.precision}, {result.scale}"
    return cast(f"{name}({arguments})", result)

"""Casts with Spark's ANSI semantics, and why some of them stay on Spark.

DuckDB rounds where Spark truncates, accepts text that Spark refuses, and writes numbers differently. Only casts that
agree for every value are here.
"""

from __future__ import annotations

from wallaby.functions.numbers.integers import fitted
from wallaby.relations.expression import EvalMode
from wallaby.relations.types import DataType, Kind, decimal
from wallaby.sql.types import duckdb_type, is_carried
from wallaby.sql.words import case, cast

#: Up to this many digits a decimal's digits and the power of ten it is divided by are exact doubles.
_EXACT_DOUBLE_DIGITS = 15
#: The digits of the longest 32-bit number.
_INTEGER_DIGITS = 10
_DIGITS_MAX = 38
_GREATEST = "CAST(9223372036854775808 AS DOUBLE)"
_WIDENING = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)


def cast_reason(source: DataType, target: DataType, mode: EvalMode) -> str | None:
    """Why a cast is not done here; None if it is."""
    if source == target or (source.kind is Kind.NULL and is_carried(target)):
        return None
    if not _has_rule(source, target):
        return f"cast from {source} to {target} is not supported"
    wraps = target.is_integral and not source.is_integral
    if mode is EvalMode.LEGACY and wraps and not _cannot_fail(source, target):
        return f"cast from {source} to {target} in {mode.value} mode is not supported"
    return None


def cast_sql(sql: str, source: DataType, target: DataType, mode: EvalMode) -> str:
    """The SQL of a cast that `cast_reason` accepts."""
    if source == target:
        return sql
    if mode is EvalMode.LEGACY and source.is_integral and target.is_integral:
        return fitted(f"CAST({sql} AS HUGEINT)", target, mode)
    if mode is not EvalMode.ANSI and not _cannot_fail(source, target):
        return _to_null(sql, source, target)
    if source.is_floating and target.is_integral:
        return _floating_to_integral(sql, target)
    if source.is_floating and target.kind is Kind.DECIMAL:
        return _floating_to_decimal(sql, "CAST", target)
    if source.kind is Kind.DECIMAL and target.is_integral:
        return cast(f"trunc({_as_spark_cuts(sql, source, target)})", target)
    if source.kind is Kind.DECIMAL and target.is_floating:
        exact = target.kind is Kind.DOUBLE and source.precision <= _EXACT_DOUBLE_DIGITS
        return cast(sql if exact else f"CAST({sql} AS VARCHAR)", target)
    if target.kind is Kind.BOOLEAN:
        return f"({sql} <> 0)"
    return cast(sql, target)


def _has_rule(source: DataType, target: DataType) -> bool:
    match source.kind, target.kind:
        case ((Kind.BYTE | Kind.SHORT | Kind.INTEGER | Kind.LONG), _):
            return (
                target.is_integral
                or target.is_floating
                or target.kind in (Kind.DECIMAL, Kind.STRING, Kind.BOOLEAN)
            )
        case Kind.DECIMAL, _:
            return target.is_integral or target.is_floating or target.kind in (Kind.DECIMAL, Kind.BOOLEAN)
        case ((Kind.FLOAT | Kind.DOUBLE), _):
            exact = (
                target.kind is Kind.DECIMAL
                and target.precision - target.scale <= _EXACT_DOUBLE_DIGITS
                and target.scale < _DIGITS_MAX
            )
            wider = (source.kind, target.kind) == (Kind.FLOAT, Kind.DOUBLE)
            return target.is_integral or exact or wider or target.kind is Kind.BOOLEAN
        case Kind.BOOLEAN, _:
            return target.is_integral or target.is_floating or target.kind is Kind.STRING
        case _:
            return False


def _cannot_fail(source: DataType, target: DataType) -> bool:
    """Does the cast succeed for every value? Then all modes agree."""
    if source.kind is Kind.BOOLEAN or target.is_floating or target.kind in (Kind.STRING, Kind.BOOLEAN):
        return True
    if source.is_integral and target.is_integral:
        return _WIDENING.index(source.kind) <= _WIDENING.index(target.kind)
    if target.kind is Kind.DECIMAL and not source.is_floating:
        digits = {Kind.BYTE: 3, Kind.SHORT: 5, Kind.INTEGER: 10, Kind.LONG: 19}.get(
            source.kind, source.precision - source.scale + (1 if source.scale > target.scale else 0)
        )
        return digits <= target.precision - target.scale
    return False


def fallible_cast(source: DataType, target: DataType) -> bool:
    """Can the cast of a value end in an error?"""
    return source != target and source.kind is not Kind.NULL and not _cannot_fail(source, target)


def _to_null(sql: str, source: DataType, target: DataType) -> str:
    """A cast that gives NULL where it would fail."""
    if source.is_floating and target.kind is Kind.DECIMAL:
        return _floating_to_decimal(sql, "TRY_CAST", target)
    cut = (
        sql
        if target.kind is Kind.DECIMAL or source.is_integral
        else f"trunc({_as_spark_cuts(sql, source, target)})"
    )
    written = f"TRY_CAST({cut} AS {duckdb_type(target)})"
    if source.is_floating and target.kind is Kind.LONG:
        return case([(f"{sql} = {_GREATEST}", "9223372036854775807")], written)
    return written


def _as_spark_cuts(sql: str, source: DataType, target: DataType) -> str:
    """A number as Spark has it before it truncates the fraction.

    Decimals become whole numbers of up to 32 bits through doubles: 4.99…9 with enough nines is 5 before truncation.
    """
    short = source.scale <= _EXACT_DOUBLE_DIGITS - _INTEGER_DIGITS or source.precision <= _EXACT_DOUBLE_DIGITS
    if source.kind is not Kind.DECIMAL or target.kind is Kind.LONG or short:
        return sql
    return f"CAST(CAST({sql} AS VARCHAR) AS DOUBLE)"


def _floating_to_decimal(sql: str, word: str, target: DataType) -> str:
    """Cast through Java's text for the number; NaN and infinities become NULL in all modes.

    DuckDB reads a text with an exponent only into a type that has a digit before the point.
    """
    wide = f"CAST({sql} AS DOUBLE)"
    with_room = duckdb_type(decimal(_DIGITS_MAX, target.scale))
    written = f"{word}({word}(CAST({wide} AS VARCHAR) AS {with_room}) AS {duckdb_type(target)})"
    return case([(f"isfinite({wide})", written)])


def _floating_to_integral(sql: str, target: DataType) -> str:
    """Truncate; a number out of range is an error, except 2^63, which Spark casts to the greatest long."""
    cut = cast(f"trunc({sql})", target)
    if target.kind is not Kind.LONG:
        return cut
    return case([(f"{sql} = {_GREATEST}", "9223372036854775807")], cut)

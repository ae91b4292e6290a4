"""Overflow of whole numbers: an error (ANSI), NULL (TRY), or a wrap (LEGACY).

DuckDB's own arithmetic raises an error. For the other modes the result is computed in 128 bits first, which hold
every sum, difference and product of two longs.
"""

from __future__ import annotations

from typing import Final

from wallaby.relations.expression import EvalMode
from wallaby.relations.types import DataType, Kind
from wallaby.sql.types import duckdb_type
from wallaby.sql.words import case, cast, error

_BITS: Final = {
    Kind.BYTE: 8,
    Kind.SHORT: 16,
    Kind.INTEGER: 32,
    Kind.LONG: 64,
    Kind.DAY_TIME: 64,
    Kind.YEAR_MONTH: 32,
}
_OVERFLOW: Final = error("ARITHMETIC_OVERFLOW", "The result does not fit its type.")


def computed(sign: str, left: str, right: str, type_: DataType, mode: EvalMode) -> str:
    """A sum, difference or product of two whole numbers of one type."""
    if mode is EvalMode.ANSI:
        return cast(f"({left} {sign} {right})", type_)
    return fitted(f"(CAST({left} AS HUGEINT) {sign} {right})", type_, mode)


def fitted(wide: str, type_: DataType, mode: EvalMode, overflow: str = _OVERFLOW) -> str:
    """A number of up to 128 bits in a type if it fits, otherwise the result of the mode; `overflow` is ANSI's error.

    In nested expressions, such as a chain of additions, `wide` must be written only once.
    """
    half = 1 << (_BITS[type_.kind] - 1)
    match mode:
        case EvalMode.ANSI:
            fits = f"{wide} IS NULL OR {wide} BETWEEN {-half} AND {half - 1}"
            return case([(fits, cast(wide, type_))], overflow)
        case EvalMode.TRY:
            return f"TRY_CAST({wide} AS {duckdb_type(type_)})"
        case EvalMode.LEGACY:
            # The lowest bits; the highest of them is the sign.
            bits = f"CAST('{2 * half - 1}' AS HUGEINT)"
            return cast(f"((({wide} + {half}) & {bits}) - {half})", type_)

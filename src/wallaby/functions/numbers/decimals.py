"""Arithmetic on decimals whose intermediate results have more than 38 digits, rounded as on Spark."""

from __future__ import annotations

import itertools
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, Overflow
from typing import Final

import pyarrow as pa

from wallaby.errors import InternalError
from wallaby.functions.arrow_function import ArrowFunction, ValueFault, per_value
from wallaby.relations.types import INTEGER, STRING

#: Enough digits for every sum, product, or quotient with 39 digits after the point.
_WIDE: Final = Context(prec=160, rounding=ROUND_HALF_UP)
_SCALA: Final = Context(prec=34, rounding=ROUND_HALF_EVEN)
_QUOTIENT_STEP: Final = Decimal(1).scaleb(-39)
#: Digits are passed as text: one DuckDB function for each operation instead of one for each triple of types.
DIGITS_MAX: Final = 38


def add(left: Decimal, right: Decimal) -> Decimal:
    """The exact sum."""
    return _WIDE.add(left, right)


def subtract(left: Decimal, right: Decimal) -> Decimal:
    """The exact difference."""
    return _WIDE.subtract(left, right)


def multiply(left: Decimal, right: Decimal) -> Decimal:
    """The exact product. Spark truncates it after 39 digits, one more than a result can have."""
    return _WIDE.multiply(left, right)


def divide(left: Decimal, right: Decimal) -> Decimal:
    """The quotient, truncated after 39 digits after the point, as on Spark."""
    if not right:
        raise ZeroDivisionError("[DIVIDE_BY_ZERO] Division by zero.")
    # Long division in whole numbers: a quotient of `prec` digits would be rounded.
    shift = 39 + _exponent(left) - _exponent(right)
    numerator, denominator = _unscaled(left), _unscaled(right)
    if shift >= 0:
        numerator *= 10**shift
    else:
        denominator *= 10**-shift
    return _WIDE.multiply(Decimal(_cut_quotient(numerator, denominator)), _QUOTIENT_STEP)


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """The remainder of a division; it has the dividend's sign."""
    if not right:
        raise ZeroDivisionError("[REMAINDER_BY_ZERO] Remainder by zero.")
    return _WIDE.remainder(left, right)


def pmod(left: Decimal, right: Decimal) -> Decimal:
    """The remainder; a negative one is moved towards the divisor once."""
    rest = remainder(left, right)
    return remainder(_WIDE.add(rest, right), right) if rest < 0 else rest


OPERATIONS: Final = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "remainder": remainder,
    "pmod": pmod,
}


def fit(value: Decimal, precision: int, scale: int) -> Decimal:
    """Round HALF_UP to the scale; too many digits are an error, as under ANSI rules."""
    rounded = value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    if abs(_unscaled(rounded)) >= 10**precision:
        raise Overflow(
            f"[NUMERIC_VALUE_OUT_OF_RANGE] {value} cannot be represented as Decimal({precision}, {scale})."
        )
    return rounded


def negated(text: str, precision: int, scale: int) -> str:
    """The negative as Scala's `BigDecimal` computes it, with the digits of its default context."""
    negative = _SCALA.minus(Decimal(text))
    try:
        return f"{fit(negative, precision, scale):f}"
    except Overflow:
        condition = "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION"
        raise ValueFault(
            condition, f"{negative} cannot be represented as Decimal({precision}, {scale})."
        ) from None


def decimal_name(operation: str, *, null_on_error: bool = False) -> str:
    """DuckDB's name for an operation on decimals: (left, right, precision, scale), the first two as text."""
    if operation not in OPERATIONS:
        raise InternalError(f"There is no decimal operation {operation!r}.")
    return f"wallaby_decimal_{'try_' if null_on_error else ''}{operation}"


class _DecimalFunction:
    """One operation over whole arrays. NULL gives NULL; errors may also become NULL."""

    def __init__(self, operation: str, *, null_on_error: bool) -> None:
        self._compute = OPERATIONS[operation]
        self._ignored = (Overflow, ZeroDivisionError) if null_on_error else ()

    def __call__(
        self,
        left: pa.ChunkedArray,
        right: pa.ChunkedArray,
        precision: pa.ChunkedArray,
        scale: pa.ChunkedArray,
    ) -> pa.Array:
        rows = zip(left.to_pylist(), right.to_pylist(), precision.to_pylist(), scale.to_pylist(), strict=True)
        return pa.array([self._one(*row) for row in rows], pa.string())

    def _one(self, left: str | None, right: str | None, precision: int, scale: int) -> str | None:
        if left is None or right is None:
            return None
        try:
            return f"{fit(self._compute(Decimal(left), Decimal(right)), precision, scale):f}"
        except self._ignored:
            return None


def _unscaled(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    return -number if sign else number


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "neither NaN nor infinite"
    return exponent


def _cut_quotient(numerator: int, denominator: int) -> int:
    """The whole quotient, truncated towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return -quotient if (numerator < 0) != (denominator < 0) else quotient


FUNCTIONS: Final = (
    per_value("wallaby_negated", (STRING, INTEGER, INTEGER), STRING, negated),
    *(
        ArrowFunction(
            decimal_name(operation, null_on_error=null_on_error),
            (STRING, STRING, INTEGER, INTEGER),
            STRING,
            _DecimalFunction(operation, null_on_error=null_on_error),
        )
        for operation, null_on_error in itertools.product(OPERATIONS, (False, True))
    ),
)

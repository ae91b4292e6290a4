"""Java's `StrictMath` as functions for DuckDB. All NaNs are Spark's one NaN."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Final

import numpy as np
import pyarrow as pa

from wallaby.functions.arrow_function import ArrowFunction
from wallaby.functions.numbers import angles, exponentials
from wallaby.functions.numbers.double_halves import Doubles
from wallaby.relations.types import DOUBLE


def logarithm(base: Doubles, x: Doubles) -> Doubles:
    """The logarithm to any base."""
    return exponentials.log(x) / exponentials.log(base)


def atanh(x: Doubles) -> Doubles:
    """The inverse hyperbolic tangent, as Spark computes it."""
    return 0.5 * (exponentials.log1p(x) - exponentials.log1p(-x))


def atan2(y: Doubles, x: Doubles) -> Doubles:
    """The angle of a point; Spark replaces negative zeros."""
    return angles.atan2(y + 0.0, x + 0.0)


def _over_arrays(name: str, places: int, compute: Callable[..., Doubles]) -> ArrowFunction:
    def over(*columns: pa.ChunkedArray) -> pa.Array:
        absent = np.zeros(len(columns[0]), np.bool_)
        for column in columns:
            if column.null_count:
                absent |= column.is_null().to_numpy()
        with np.errstate(all="ignore"):
            found = compute(*(np.ascontiguousarray(column.to_numpy(), np.float64) for column in columns))
        return pa.array(np.where(np.isnan(found), np.nan, found), mask=absent)

    # DuckDB inspects the number of parameters.
    parameters = [Parameter(f"p{place}", Parameter.POSITIONAL_ONLY) for place in range(places)]
    over.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return ArrowFunction(name, (DOUBLE,) * places, DOUBLE, over)


FUNCTIONS: Final = (
    *(
        _over_arrays(f"wallaby_{name}", 1, getattr(exponentials, name))
        for name in ("exp", "expm1", "log", "log10", "log1p")
    ),
    *(
        _over_arrays(f"wallaby_{name}", 1, getattr(angles, name))
        for name in ("asin", "acos", "atan", "sinh", "cosh", "tanh", "cbrt")
    ),
    _over_arrays("wallaby_atanh", 1, atanh),
    _over_arrays("wallaby_logarithm", 2, logarithm),
    _over_arrays("wallaby_power", 2, exponentials.power),
    _over_arrays("wallaby_atan2", 2, atan2),
    _over_arrays("wallaby_hypot", 2, angles.hypot),
)

"""The two halves of doubles: the upper one has sign, exponent and the first twenty bits behind the point.

Sun's fdlibm, which Java's `StrictMath` is by definition, compares upper halves, changes exponents in them and cuts
lower ones off. Here all of it is done for whole arrays.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_UPPER: Final = np.int64(-1 << 32)
_MAGNITUDE: Final = 0x7FFFFFFF


def upper(x: Doubles) -> Ints:
    """The upper half, with its sign."""
    return x.view(np.int64) >> 32


def magnitude(x: Doubles) -> Ints:
    """The upper half of the absolute value."""
    return upper(x) & _MAGNITUDE


def cut(x: Doubles) -> Doubles:
    """Without the lower half."""
    return (x.view(np.int64) & _UPPER).view(np.float64)


def with_upper(x: Doubles, half: Ints) -> Doubles:
    """With another upper half."""
    return ((x.view(np.int64) & ~_UPPER) | (half << 32)).view(np.float64)


def from_upper(half: Ints) -> Doubles:
    """An upper half alone."""
    return (half << 32).view(np.float64)


def scaled(x: Doubles, k: Ints) -> Doubles:
    """Times 2 to the power of k, by way of the exponent, whatever becomes of it."""
    return (x.view(np.int64) + (k << 52)).view(np.float64)


def chosen(otherwise: Doubles, *branches: tuple[Bools, Doubles | float]) -> Doubles:
    """For each value what the first branch says whose condition it meets."""
    found = otherwise
    for condition, value in reversed(branches):
        found = np.where(condition, value, found)
    return found


def polynomial(x: Doubles, *coefficients: float) -> Doubles:
    """`c0 + x * (c1 + x * (c2 + …))`, rounded at every step."""
    found: Doubles = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        found = coefficient + x * found
    return found

"""The two halves of doubles: the upper one has sign, exponent and the first twenty bits after the point.

Sun's fdlibm, which defines Java's `StrictMath`, compares upper halves, changes exponents in them and clears lower ones.
This module does the same for whole arrays.
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
    """Clear the lower half."""
    return (x.view(np.int64) & _UPPER).view(np.float64)


def with_upper(x: Doubles, half: Ints) -> Doubles:
    """Replace the upper half."""
    return ((x.view(np.int64) & ~_UPPER) | (half << 32)).view(np.float64)


def from_upper(half: Ints) -> Doubles:
    """A double with an upper half and an empty lower half."""
    return (half << 32).view(np.float64)


def scaled(x: Doubles, k: Ints) -> Doubles:
    """Multiply by 2 to the power of k by changing the exponent, without checks."""
    return (x.view(np.int64) + (k << 52)).view(np.float64)


def chosen(otherwise: Doubles, *branches: tuple[Bools, Doubles | float]) -> Doubles:
    """For each value, the result of the first branch whose condition it meets."""
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

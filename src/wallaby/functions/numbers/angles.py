"""Arcs, hyperbolic functions, cube roots and hypotenuses to the last bit of Java's `StrictMath`.

As in `exponentials`, these are Sun's published methods, for whole arrays. Sines, cosines and tangents are missing: for
them Spark calls `Math`, which a virtual machine may compute differently.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from wallaby.functions.numbers.double_halves import Doubles, chosen, cut, magnitude, polynomial, upper
from wallaby.functions.numbers.exponentials import exp, expm1

_HALF_PI_HIGH: Final = 1.57079632679489655800e00
_HALF_PI_LOW: Final = 6.12323399573676603587e-17
_QUARTER_PI: Final = 7.85398163397448278999e-01
_PI: Final = 3.14159265358979311600e00
_PI_LOW: Final = 1.2246467991473531772e-16
_ASIN_P: Final = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_ASIN_Q: Final = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_ATAN: Final = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
_ATAN_HIGH: Final = np.array(
    [4.63647609000806093515e-01, _QUARTER_PI, 9.82793723247329054082e-01, _HALF_PI_HIGH]
)
_ATAN_LOW: Final = np.array(
    [2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, _HALF_PI_LOW]
)
#: Up to this value, half of a squared exponential is a double.
_HYPERBOLIC_MAX: Final = 710.4758600739439


def _ratio(t: Doubles) -> Doubles:
    return t * polynomial(t, *_ASIN_P) / polynomial(t, *_ASIN_Q)


def asin(x: Doubles) -> Doubles:
    """The arc sine."""
    size = np.abs(x)
    inner = x + x * _ratio(x * x)
    t = (1.0 - size) * 0.5
    r = _ratio(t)
    s = np.sqrt(t)
    far = _HALF_PI_HIGH - (2.0 * (s + s * r) - _HALF_PI_LOW)
    w = cut(s)
    c = (t - w * w) / (s + w)
    p = 2.0 * s * r - (_HALF_PI_LOW - 2.0 * c)
    q = _QUARTER_PI - 2.0 * w
    outer = np.where(magnitude(x) >= 0x3FEF3333, far, _QUARTER_PI - (p - q))
    return chosen(
        np.copysign(outer, x),
        (np.isnan(x) | (size > 1), np.nan),
        (size == 1, x * _HALF_PI_HIGH + x * _HALF_PI_LOW),
        (magnitude(x) < 0x3E400000, x),
        (magnitude(x) < 0x3FE00000, inner),
    )


def acos(x: Doubles) -> Doubles:
    """The arc cosine."""
    inner = _HALF_PI_HIGH - (x - (_HALF_PI_LOW - x * _ratio(x * x)))
    z = (1.0 + x) * 0.5
    s = np.sqrt(z)
    w = _ratio(z) * s - _HALF_PI_LOW
    negative = _PI - 2.0 * (s + w)
    z = (1.0 - x) * 0.5
    s = np.sqrt(z)
    first = cut(s)
    c = (z - first * first) / (s + first)
    w = _ratio(z) * s + c
    return chosen(
        2.0 * (first + w),
        (np.isnan(x) | (np.abs(x) > 1), np.nan),
        (x == 1, 0.0),
        (x == -1, _PI + 2.0 * _HALF_PI_LOW),
        (magnitude(x) <= 0x3C600000, _HALF_PI_HIGH + _HALF_PI_LOW),
        (magnitude(x) < 0x3FE00000, inner),
        (x < 0, negative),
    )


def atan(x: Doubles) -> Doubles:
    """The arc tangent."""
    ix = magnitude(x)
    size = np.abs(x)
    part = np.select([ix < 0x3FE60000, ix < 0x3FF30000, ix < 0x40038000], [0, 1, 2], 3)
    direct = ix < 0x3FDC0000
    y = chosen(
        -1.0 / size,
        (direct, x),
        (part == 0, (2.0 * size - 1.0) / (2.0 + size)),
        (part == 1, (size - 1.0) / (size + 1.0)),
        (part == 2, (size - 1.5) / (1.0 + 1.5 * size)),
    )
    z = y * y
    w = z * z
    sum_ = z * polynomial(w, *_ATAN[0::2]) + w * polynomial(w, *_ATAN[1::2])
    found = _ATAN_HIGH[part] - ((y * sum_ - _ATAN_LOW[part]) - y)
    return chosen(
        np.copysign(found, x),
        (np.isnan(x), np.nan),
        (ix >= 0x44100000, np.copysign(_HALF_PI_HIGH + _HALF_PI_LOW, x)),
        (ix < 0x3E200000, x),
        (direct, y - y * sum_),
    )


def atan2(y: Doubles, x: Doubles) -> Doubles:
    """The angle of a point."""
    left = upper(x) < 0
    k = (magnitude(y) - magnitude(x)) >> 20
    z = chosen(atan(np.abs(y / x)), (k > 60, _HALF_PI_HIGH + 0.5 * _PI_LOW), (left & (k < -60), 0.0))
    found = np.where(left, _PI - (z - _PI_LOW), z)
    # The sign is that of y in all quadrants.
    found = np.copysign(found, y)
    corner = np.where(left, 3.0 * _QUARTER_PI, _QUARTER_PI)
    return chosen(
        found,
        (np.isnan(x) | np.isnan(y), np.nan),
        (x == 1, atan(y)),
        (y == 0, np.where(left, np.copysign(_PI, y), y)),
        (x == 0, np.copysign(_HALF_PI_HIGH, y)),
        (np.isinf(x) & np.isinf(y), np.copysign(corner, y)),
        (np.isinf(x), np.copysign(np.where(left, _PI, 0.0), y)),
        (np.isinf(y), np.copysign(_HALF_PI_HIGH, y)),
    )


def sinh(x: Doubles) -> Doubles:
    """The hyperbolic sine."""
    size, half = np.abs(x), np.copysign(0.5, x)
    t = expm1(size)
    w = exp(0.5 * size)
    return chosen(
        np.copysign(np.inf, x),
        (~np.isfinite(x), x),
        (magnitude(x) < 0x3E300000, x),
        (magnitude(x) < 0x3FF00000, half * (2.0 * t - t * t / (t + 1.0))),
        (size < 22, half * (t + t / (t + 1.0))),
        (magnitude(x) < 0x40862E42, half * exp(size)),
        (size <= _HYPERBOLIC_MAX, (half * w) * w),
    )


def cosh(x: Doubles) -> Doubles:
    """The hyperbolic cosine."""
    size = np.abs(x)
    t = expm1(size)
    w = 1.0 + t
    e = exp(size)
    h = exp(0.5 * size)
    return chosen(
        np.full_like(x, np.inf),
        (np.isnan(x), np.nan),
        (magnitude(x) < 0x3C800000, w),
        (magnitude(x) < 0x3FD62E43, 1.0 + (t * t) / (w + w)),
        (size < 22, 0.5 * e + 0.5 / e),
        (magnitude(x) < 0x40862E42, 0.5 * e),
        (size <= _HYPERBOLIC_MAX, (0.5 * h) * h),
    )


def tanh(x: Doubles) -> Doubles:
    """The hyperbolic tangent."""
    size = np.abs(x)
    far, near = expm1(2.0 * size), expm1(-2.0 * size)
    found = np.where(magnitude(x) >= 0x3FF00000, 1.0 - 2.0 / (far + 2.0), -near / (near + 2.0))
    return chosen(
        np.copysign(found, x),
        (np.isnan(x), np.nan),
        (magnitude(x) < 0x3C800000, x * (1.0 + x)),
        (size >= 22, np.copysign(1.0, x)),
    )


def cbrt(x: Doubles) -> Doubles:
    """The cube root."""
    size = np.abs(x)
    small = magnitude(x) < 0x00100000
    # Divide the exponent by three in the upper half; a very small number is first multiplied by a power of two.
    t = np.where(
        small,
        _divided(size * 2.0**54, 696219795),
        _divided(size, 715094163),
    )
    r = t * t / size
    s = 5.42857142857142815906e-01 + r * t
    t = t * (
        3.57142857142857150787e-01
        + 1.60714285714285720630e00 / (s + 1.41428571428571436819e00 + -7.05306122448979611050e-01 / s)
    )
    # Rounded up to twenty bits, so that its square is exact.
    t = (((t.view(np.int64) >> 32) + 1) << 32).view(np.float64)
    s = t * t
    r = size / s
    w = t + t
    r = (r - t) / (w + r)
    return chosen(np.copysign(t + t * r, x), (~np.isfinite(x) | (x == 0), x))


def _divided(x: Doubles, added: int) -> Doubles:
    return ((upper(x) // 3 + added) << 32).view(np.float64)


def hypot(x: Doubles, y: Doubles) -> Doubles:
    """The root of the sum of two squares, without intermediate overflow."""
    swapped = magnitude(y) > magnitude(x)
    a, b = np.abs(np.where(swapped, y, x)), np.abs(np.where(swapped, x, y))
    large, little = a, b
    apart = (magnitude(a) - magnitude(b)) > 0x3C00000
    huge = magnitude(a) > 0x5F300000
    a, b = np.where(huge, a * 2.0**-600, a), np.where(huge, b * 2.0**-600, b)
    k = np.where(huge, 600, 0)
    tiny = magnitude(b) < 0x20B00000
    subnormal = tiny & (magnitude(b) <= 0x000FFFFF)
    factor = np.where(subnormal, 2.0**1022, np.where(tiny, 2.0**600, 1.0))
    a, b = a * factor, b * factor
    k = k - np.where(subnormal, 1022, np.where(tiny, 600, 0))
    w = a - b
    t1 = cut(a)
    t2 = a - t1
    wide = np.sqrt(t1 * t1 - (b * (-b) - t2 * (a + t1)))
    a = a + a
    y1 = cut(b)
    y2 = b - y1
    t1 = cut(a)
    t2 = a - t1
    near = np.sqrt(t1 * y1 - (w * (-w) - (t1 * y2 + t2 * b)))
    found = np.ldexp(np.where(w > b, wide, near), k)
    return chosen(
        found,
        (np.isinf(x) | np.isinf(y), np.inf),
        (np.isnan(x) | np.isnan(y), np.nan),
        (apart, large + little),
        (little == 0, large),
    )

"""Exponentials, logarithms and powers to the last bit of Java's `StrictMath`.

By definition that is Sun's fdlibm: these are its published methods (reductions of arguments, polynomials, thresholds),
for whole arrays. Every operation is rounded in the order of fdlibm, and both branches of its conditions are computed
for all values. `tests/engine/answers/test_mathematics.py` compares with Spark.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from wallaby.functions.numbers.double_halves import (
    Doubles,
    chosen,
    cut,
    from_upper,
    magnitude,
    polynomial,
    scaled,
    upper,
    with_upper,
)

_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_LN2_INVERSE: Final = 1.44269504088896338700e00
_OVERFLOW: Final = 7.09782712893383973096e02
_UNDERFLOW: Final = -7.45133219101941108420e02
_EXP: Final = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_EXPM1: Final = (
    1.0,
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)
_LOG: Final = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_LOG10_INVERSE: Final = 4.34294481903251816668e-01
_LOG10_2_HIGH: Final = 3.01029995663611771306e-01
_LOG10_2_LOW: Final = 3.69423907715893078616e-13

#: Upper halves of half of the logarithm of 2, of one and a half times it, and of 1.
_HALF_LN2: Final = 0x3FD62E42
_THREE_HALF_LN2: Final = 0x3FF0A2B2
_ONE: Final = 0x3FF00000
_FRACTION: Final = 0xFFFFF


def _reduced(x: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """A number as k times the logarithm of 2 and two parts of a small rest."""
    negative = upper(x) < 0
    half = np.where(negative, -0.5, 0.5)
    k = np.where(
        magnitude(x) < _THREE_HALF_LN2, np.where(negative, -1.0, 1.0), np.trunc(_LN2_INVERSE * x + half)
    )
    k = np.where(magnitude(x) > _HALF_LN2, k, 0.0)
    k = np.where(np.isfinite(x) & (np.abs(x) < 2 * _OVERFLOW), k, 0.0)
    return k, x - k * _LN2_HIGH, k * _LN2_LOW


def exp(x: Doubles) -> Doubles:
    """E to the power of x."""
    k, high, low = _reduced(x)
    rest = np.where(k == 0, x, high - low)
    t = rest * rest
    c = rest - t * polynomial(t, *_EXP)
    near = 1.0 - ((rest * c) / (c - 2.0) - rest)
    far = 1.0 - ((low - (rest * c) / (2.0 - c)) - high)
    whole = k.astype(np.int64)
    tiny = scaled(far, whole + 1000) * 2.0**-1000
    return chosen(
        np.where(whole >= -1021, scaled(far, whole), tiny),
        (np.isnan(x), x),
        (x > _OVERFLOW, np.inf),
        (x < _UNDERFLOW, 0.0),
        (magnitude(x) < 0x3E300000, 1.0 + x),
        (k == 0, near),
    )


def expm1(x: Doubles) -> Doubles:
    """E to the power of x, less one."""
    k, high, low = _reduced(x)
    rest = np.where(k == 0, x, high - low)
    c = np.where(k == 0, 0.0, (high - rest) - low)
    half = 0.5 * rest
    square = rest * half
    r = polynomial(square, *_EXPM1)
    t = 3.0 - r * half
    e = square * ((r - t) / (6.0 - rest * t))
    near = rest - (rest * e - square)
    e = (rest * (e - c) - c) - square
    whole = k.astype(np.int64)
    power = from_upper((0x3FF - whole) << 20)
    few = scaled((1.0 - power) - (e - rest), whole)
    many = scaled((rest - (e + power)) + 1.0, whole)
    return chosen(
        np.where(whole < 20, few, many),
        (np.isnan(x), x),
        (x > _OVERFLOW, np.inf),
        ((magnitude(x) >= 0x4043687A) & (x < 0), -1.0),
        (magnitude(x) < 0x3C900000, x),
        (k == 0, near),
        (k == -1, 0.5 * (rest - e) - 0.5),
        ((k == 1) & (rest < -0.25), -2.0 * (e - (rest + 0.5))),
        (k == 1, 1.0 + 2.0 * (rest - e)),
        ((k <= -2) | (k > 56), scaled(1.0 - (e - rest), whole) - 1.0),
    )


def log(x: Doubles) -> Doubles:
    """The natural logarithm."""
    small = upper(x) < 0x00100000
    usual = np.where(small, x * 2.0**54, x)
    exponent = (upper(usual) >> 20) - 1023 - np.where(small, 54, 0)
    fraction = upper(usual) & _FRACTION
    i = (fraction + 0x95F64) & 0x100000
    f = with_upper(usual, fraction | (i ^ _ONE)) - 1.0
    k = (exponent + (i >> 20)).astype(np.float64)
    high, low = k * _LN2_HIGH, k * _LN2_LOW
    # Close to a power of two.
    r = f * f * (0.5 - 0.33333333333333333 * f)
    close = chosen(
        high - ((r - low) - f),
        ((f == 0) & (k == 0), 0.0),
        (f == 0, high + low),
        (k == 0, f - r),
    )
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * polynomial(w, _LOG[1], _LOG[3], _LOG[5])
    odd = z * polynomial(w, _LOG[0], _LOG[2], _LOG[4], _LOG[6])
    r = odd + even
    half = 0.5 * f * f
    middle = ((fraction - 0x6147A) | (0x6B851 - fraction)) > 0
    inner = np.where(k == 0, f - (half - s * (half + r)), high - ((half - (s * (half + r) + low)) - f))
    outer = np.where(k == 0, f - s * (f - r), high - ((s * (f - r) - low) - f))
    return chosen(
        np.where(middle, inner, outer),
        (np.isnan(x) | (x == np.inf), x),
        (x == 0, -np.inf),
        (x < 0, np.nan),
        ((_FRACTION & (2 + fraction)) < 3, close),
    )


def log10(x: Doubles) -> Doubles:
    """The logarithm to the base of ten."""
    small = upper(x) < 0x00100000
    usual = np.where(small, x * 2.0**54, x)
    k = (upper(usual) >> 20) - 1023 - np.where(small, 54, 0)
    i = (k < 0).astype(np.int64)
    y = (k + i).astype(np.float64)
    mantissa = with_upper(usual, (upper(usual) & _FRACTION) | ((0x3FF - i) << 20))
    z = y * _LOG10_2_LOW + _LOG10_INVERSE * log(mantissa)
    return chosen(
        z + y * _LOG10_2_HIGH,
        (np.isnan(x) | (x == np.inf), x),
        (x == 0, -np.inf),
        (x < 0, np.nan),
    )


def log1p(x: Doubles) -> Doubles:
    """The natural logarithm of 1 + x."""
    direct = (upper(x) < 0x3FDA827A) & ((upper(x) > 0) | (magnitude(x) <= 0x3FD2BEC3))
    huge = upper(x) >= 0x43400000
    u = np.where(huge, x, 1.0 + x)
    exponent = (upper(u) >> 20) - 1023
    c = np.where(huge, 0.0, np.where(exponent > 0, 1.0 - (u - x), x - (u - 1.0)) / u)
    fraction = upper(u) & _FRACTION
    below = fraction < 0x6A09E
    mantissa = with_upper(u, fraction | np.where(below, _ONE, 0x3FE00000))
    left = np.where(below, fraction, (0x00100000 - fraction) >> 2)
    left = np.where(direct, 1, left)
    k = np.where(direct, 0.0, (exponent + np.where(below, 0, 1)).astype(np.float64))
    f = np.where(direct, x, mantissa - 1.0)
    half = 0.5 * f * f
    high, low = k * _LN2_HIGH, k * _LN2_LOW + c
    r = half * (1.0 - 0.66666666666666666 * f)
    close = chosen(
        high - ((r - low) - f),
        ((f == 0) & (k == 0), 0.0),
        (f == 0, high + (c + k * _LN2_LOW)),
        (k == 0, f - r),
    )
    s = f / (2.0 + f)
    z = s * s
    r = z * polynomial(z, *_LOG)
    usual = np.where(k == 0, f - (half - s * (half + r)), high - ((half - (s * (half + r) + low)) - f))
    return chosen(
        usual,
        (np.isnan(x) | (x == np.inf), x),
        (x == -1, -np.inf),
        (x < -1, np.nan),
        (magnitude(x) < 0x3C900000, x),
        (magnitude(x) < 0x3E200000, x - x * x * 0.5),
        (left == 0, close),
    )


_BASES: Final = (1.0, 1.5)
_BASE_LOG_HIGH: Final = (0.0, 5.84962487220764160156e-01)
_BASE_LOG_LOW: Final = (0.0, 1.35003920212974897128e-08)
_POW: Final = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_LN2: Final = 6.93147180559945286227e-01
_LN2_ROUGH: Final = 6.93147182464599609375e-01
_LN2_REST: Final = -1.90465429995776804525e-09
_BEYOND: Final = 8.0085662595372944372e-17
_CP: Final = 9.61796693925975554329e-01
_CP_HIGH: Final = 9.61796700954437255859e-01
_CP_LOW: Final = -7.02846165095275826516e-09
_LN2_INVERSE_HIGH: Final = 1.44269502162933349609e00
_LN2_INVERSE_LOW: Final = 1.92596299112661746887e-08


def power(x: Doubles, y: Doubles) -> Doubles:
    """X to the power of y."""
    size = np.abs(x)
    whole = (np.floor(y) == y) & (np.abs(y) >= 1)
    odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(np.where(np.isfinite(y), y, 0.0), 2.0) != 0)
    negative = upper(x) < 0
    sign = np.where(negative & odd, -1.0, 1.0)
    special = np.where(upper(y) < 0, 1.0 / size, size)
    special = chosen(special, (negative & (size == 1) & ~whole, np.nan), (negative & odd, -special))
    ix = magnitude(x)
    grows = np.where(ix <= 0x3FEFFFFF, y < 0, y > 0)
    huge = np.where(grows, np.inf, 0.0)
    return chosen(
        sign * _power_of_positive(size, y),
        (y == 0, 1.0),
        (np.isnan(x) | np.isnan(y), np.nan),
        (np.isinf(y) & (size == 1), np.nan),
        (np.isinf(y), np.where((size > 1) == (y > 0), np.inf, 0.0)),
        (y == 1, x),
        (y == -1, 1.0 / x),
        (y == 2, x * x),
        ((y == 0.5) & ~negative, np.sqrt(x)),
        (np.isinf(x) | (x == 0) | (size == 1), special),
        (negative & ~whole, np.nan),
        (magnitude(y) > 0x43F00000, huge),
        ((magnitude(y) > 0x41E00000) & ((ix < 0x3FEFFFFF) | (ix > _ONE)), sign * huge),
    )


def _power_of_positive(x: Doubles, y: Doubles) -> Doubles:
    high, low = _log2_in_parts(x)
    t_high, t_low = _log2_near_one(x)
    close = magnitude(y) > 0x41E00000
    high, low = np.where(close, t_high, high), np.where(close, t_low, low)
    first = cut(y)
    p_low = (y - first) * high + y * low
    p_high = first * high
    z = p_low + p_high
    above = (z > 1024) | ((z == 1024) & (p_low + _BEYOND > z - p_high))
    below = (z < -1075) | ((z == -1075) & (p_low <= z - p_high))
    return chosen(_exp2_of_parts(p_high, p_low, z), (above, np.inf), (below, 0.0))


def _log2_near_one(x: Doubles) -> tuple[Doubles, Doubles]:
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _LN2_INVERSE_HIGH * t
    v = t * _LN2_INVERSE_LOW - w * _LN2_INVERSE
    first = cut(u + v)
    return first, v - (first - u)


def _log2_in_parts(x: Doubles) -> tuple[Doubles, Doubles]:
    """The logarithm to the base of two, as a number with an empty lower half and a rest."""
    small = upper(x) < 0x00100000
    x = np.where(small, x * 2.0**53, x)
    n = np.where(small, -53, 0) + (upper(x) >> 20) - 0x3FF
    fraction = upper(x) & _FRACTION
    last = fraction >= 0xBB67A
    k = ((fraction > 0x3988E) & ~last).astype(np.int64)
    n = n + last
    ix = (fraction | _ONE) - np.where(last, 0x00100000, 0)
    x = with_upper(x, ix)
    base = np.where(k == 1, _BASES[1], _BASES[0])
    u, v = x - base, 1.0 / (x + base)
    s = u * v
    s_high = cut(s)
    t_high = from_upper(((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = x - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    square = s * s
    r = square * square * polynomial(square, *_POW)
    r = r + s_low * (s_high + s)
    square = s_high * s_high
    t_high = cut(3.0 + square + r)
    t_low = r - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = cut(u + v)
    p_low = v - (p_high - u)
    z_high = _CP_HIGH * p_high
    z_low = _CP_LOW * p_high + p_low * _CP + np.where(k == 1, _BASE_LOG_LOW[1], _BASE_LOG_LOW[0])
    added = np.where(k == 1, _BASE_LOG_HIGH[1], _BASE_LOG_HIGH[0])
    t = n.astype(np.float64)
    first = cut(((z_high + z_low) + added) + t)
    return first, z_low - (((first - t) - added) - z_high)


def _exp2_of_parts(p_high: Doubles, p_low: Doubles, z: Doubles) -> Doubles:
    """Two to the power of the sum of two numbers; z is approximately that sum."""
    j = upper(z)
    i = j & 0x7FFFFFFF
    inside = (i > 0x3FE00000) & (np.abs(z) <= 1100)
    k = np.where(inside, (i >> 20) - 0x3FF, 0)
    n = j + (0x00100000 >> (k + 1))
    k = np.where(inside, ((n & 0x7FFFFFFF) >> 20) - 0x3FF, 0)
    t = from_upper(n & ~(0x000FFFFF >> k))
    n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
    n = np.where(inside, np.where(j < 0, -n, n), 0)
    p_high = np.where(inside, p_high - t, p_high)
    t = cut(p_low + p_high)
    u = t * _LN2_ROUGH
    v = (p_low - (t - p_high)) * _LN2 + t * _LN2_REST
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * polynomial(t, *_EXP)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    return np.ldexp(1.0 - (r - z), n)

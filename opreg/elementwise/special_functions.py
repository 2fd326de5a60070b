"""Special functions over an array module: erf, its inverse, gamma, its logarithm, polygamma and Bessel functions.

NumPy has none of them. Each is written in array arithmetic from a published formula, so the same code runs on NumPy and
CuPy. In float64 the relative error stays near 1e-15, away from zeros of the function. For float32 inputs, ``erf``
computes in float32 and the others in float64; narrower dtypes are treated as float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ..core.cache import cached
from ..core.spec import is_single_or_double
from ..typing import Array, ArrayModule

__all__ = ["bessel_i", "erf", "erfinv", "gamma", "gammaln", "of_equal_zeros", "polygamma"]

N = TypeVar("N", Array, float)


def _single(xp: ArrayModule, x: Array) -> Array:
    return x if is_single_or_double(x.dtype) else x.astype(xp.float32)


def _store(x: Array, value: Array, out: Array | None) -> Array:
    if out is None:
        return value.astype(x.dtype)
    out[...] = value
    return out


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """The value of a polynomial by Horner's rule, highest power first; only the sum is allocated."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total *= x
        total += coefficient
    return total


# --------------------------------------------------------------------------------------------- error function
# W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969) 631-637: one of
# erf(x) / x in x squared, up to 0.5, and one of erfc(x) exp(x squared) in x, up to 4.

_ERF_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
          3.20937758913846947e3)
_ERF_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_ERFC_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
           2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
           1.23033935479799725e3)
_ERFC_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
           3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)


def _erf_small(x: Array, squared: Array) -> Array:
    return x * _polynomial(squared, _ERF_P) / _polynomial(squared, _ERF_Q)


def _erfc_large(xp: ArrayModule, x: Array, squared: Array) -> Array:
    return xp.exp(-squared) * _polynomial(x, _ERFC_P) / _polynomial(x, _ERFC_Q)


# artanh(erf(x)) / x as a polynomial in x squared, up to 4, fitted for the least relative error of erf, 7e-8. One
# polynomial covers the whole range, and NumPy computes the hyperbolic tangent of float32 with vector instructions.
_ERF_SINGLE = (5.422082813782071e-09, 2.756362075274325e-08, -4.794485292762277e-06, 8.459604258776112e-05,
               -6.148370432245699e-04, -1.952894051400855e-04, 1.0276986463817628e-01, 1.12837924713161)


def _erf_single(xp: ArrayModule, x: Array, wide: Array, out: Array | None) -> Array:
    """erf in float32, within four units in the last place, with a third of the passes over the array."""
    wide = xp.clip(wide, -4.0, 4.0)  # erf is 1 from there on
    value = _polynomial(wide * wide, _ERF_SINGLE)
    value *= wide
    if out is not None and out.dtype == value.dtype:
        return xp.tanh(value, out=out)
    return _store(x, xp.tanh(value), out)


def erf(xp: ArrayModule, x: Array, out: Array | None = None) -> Array:
    """The error function.

    Examples
    --------
    >>> import numpy as np
    >>> erf(np, np.array([0.0, 0.5, -np.inf]))
    array([ 0.        ,  0.52049988, -1.        ])
    """
    wide = _single(xp, x)
    if wide.dtype.itemsize == 4:
        return _erf_single(xp, x, wide, out)
    size = xp.minimum(xp.abs(wide), 6.0)  # erf is 1 from there on, in float64 too
    squared = size * size
    large = 1.0 - _erfc_large(xp, size, squared)
    value = xp.where(size <= 0.5, _erf_small(size, squared), large)
    return _store(x, xp.copysign(value, wide), out)


def erfinv(xp: ArrayModule, x: Array, out: Array | None = None) -> Array:
    """The inverse of the error function; infinite at -1 and 1, NaN beyond.

    Starts from S. Winitzki's formula (A handy approximation for the error function and its inverse, 2008),
    whose error is at most 2e-3, and takes two steps of Halley's method, each of which cubes the error.

    Examples
    --------
    >>> import numpy as np
    >>> erfinv(np, np.array([0.0, 0.5, -0.9]))
    array([ 0.        ,  0.47693628, -1.16308715])
    """
    wide = x.astype(xp.float64)
    size = xp.abs(wide)
    complement = 1.0 - size
    half = 0.5 * xp.log(complement * (1.0 + size))
    middle = 2.0 / (math.pi * 0.147) + half
    y = xp.where(size < 0.1, size * (0.5 * math.sqrt(math.pi)),
                 xp.sqrt(xp.sqrt(middle * middle - half * (2.0 / 0.147)) - middle))
    for _ in range(2):
        squared = y * y
        error = xp.where(size < 0.5, _erf_small(y, squared) - size, complement - _erfc_large(xp, y, squared))
        step = error * xp.exp(squared) * (0.5 * math.sqrt(math.pi))
        y -= step / (1.0 + y * step)
    y = xp.where(size == 1.0, math.inf, y)
    return _store(x, xp.copysign(y, wide), out)


# --------------------------------------------------------------------------------------------- gamma function

#: Bernoulli numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = 0.5772156649015329


def _zeta(power: int, x: N) -> N:
    """The sum of (x + k) ** -power over k = 0, 1, ..., by Euler-Maclaurin's formula, x > 0, power > 1.

    NIST Digital Library of Mathematical Functions, 25.11.5.
    """
    end = x + 10.0
    total = end ** (1 - power) / (power - 1) + 0.5 * end ** -power
    factor = float(power)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + end ** (1 - power - 2 * j) * (bernoulli * factor / math.factorial(2 * j))
        factor *= (power + 2 * j - 1) * (power + 2 * j)
    for k in range(9, -1, -1):
        total = total + (x + k) ** -power
    return total


@functools.cache
def _series() -> tuple[float, ...]:
    """Coefficients of log gamma(2 + z) / z, highest power first; good to 1e-17 for abs(z) <= 0.5.

    Abramowitz and Stegun, 6.1.33.
    """
    coefficients = [(-1) ** k * _zeta(k, 2.0) / k for k in range(27, 1, -1)]
    return (*coefficients, 1.0 - _EULER)


def _near_two(xp: ArrayModule, x: Array) -> tuple[Array, Array, Array]:
    """``z`` in [-0.5, 0.5], ``top`` and ``bottom``: gamma(x) = gamma(2 + z) top / bottom, for 0 <= x <= 8."""
    top = xp.ones_like(x)
    for _ in range(6):
        high = x > 2.5
        x = xp.where(high, x - 1.0, x)
        top = xp.where(high, top * x, top)
    rounded = xp.rint(x)
    z = x - rounded
    bottom = xp.where(rounded < 2.0, 1.0 + z, 1.0)
    return z, top, xp.where(rounded < 1.0, bottom * x, bottom)


def _tail(x: Array) -> Array:
    """Remainder of Stirling's formula for log gamma, for x >= 8. Abramowitz and Stegun, 6.1.40."""
    inverse = 1.0 / x
    terms = [b / (2 * j * (2 * j - 1)) for j, b in enumerate(_BERNOULLI, 1)]
    return _polynomial(inverse * inverse, terms[::-1]) * inverse


def _sine(xp: ArrayModule, x: Array) -> Array:
    """sin(pi x) up to its sign, exactly zero at integers."""
    return xp.sin(math.pi * (x - xp.rint(x)))


def _sign_of_sine(xp: ArrayModule, x: Array) -> Array:
    return 1.0 - 2.0 * xp.abs(xp.fmod(xp.rint(x), 2.0))


def gamma(xp: ArrayModule, x: Array, out: Array | None = None) -> Array:
    """The gamma function; NaN at negative integers, infinite at zero.

    Examples
    --------
    >>> import numpy as np
    >>> gamma(np, np.array([5.0, 0.5, -1.0]))
    array([24.        ,  1.77245385,         nan])
    """
    wide = x.astype(xp.float64)
    negative = wide < 0.0
    y = xp.where(negative, 1.0 - wide, wide)
    z, top, bottom = _near_two(xp, xp.minimum(y, 8.0))
    near = top * xp.exp(z * _polynomial(z, _series())) / bottom
    big = xp.clip(y, 8.0, 172.0)  # gamma(172) exceeds the largest float64
    root = xp.power(big, 0.5 * big - 0.25)  # the whole power would overflow too early
    far = root * xp.exp(-big) * root * (xp.exp(_tail(big)) * math.sqrt(2.0 * math.pi))
    value = xp.where(y <= 8.0, near, far)
    sine = _sine(xp, wide)
    reflected = math.pi / (xp.where(sine == 0.0, math.nan, sine * _sign_of_sine(xp, wide)) * value)
    return _store(x, xp.where(negative, reflected, value), out)


def gammaln(xp: ArrayModule, x: Array, out: Array | None = None) -> Array:
    """The logarithm of the absolute value of the gamma function.

    Examples
    --------
    >>> import numpy as np
    >>> gammaln(np, np.array([1.0, 100.0, -0.5]))
    array([  0.        , 359.13420537,   1.26551212])
    """
    wide = x.astype(xp.float64)
    negative = wide <= 0.0
    y = xp.where(negative, 1.0 - wide, wide)
    z, top, bottom = _near_two(xp, xp.minimum(y, 8.0))
    near = xp.log(top) - xp.log(bottom) + z * _polynomial(z, _series())
    big = xp.maximum(y, 8.0)
    far = (big - 0.5) * (xp.log(big) - 1.0) + (0.5 * math.log(2.0 * math.pi) - 0.5) + _tail(big)
    value = xp.where(y <= 8.0, near, far)
    reflected = xp.log(math.pi / xp.abs(_sine(xp, xp.where(negative, wide, 0.5)))) - value
    reflected = xp.where(wide == -math.inf, math.inf, reflected)
    return _store(x, xp.where(negative, reflected, value), out)


@cached(64)
def _cotangent(order: int) -> tuple[float, ...]:
    """Coefficients of the derivative of pi cot(pi x) as a polynomial in the cotangent, highest power first."""
    terms = [0.0, math.pi]
    for _ in range(order):
        slope = [i * term for i, term in enumerate(terms)][1:]
        terms = [-math.pi * (a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope])]
    return tuple(terms[::-1])


def polygamma(xp: ArrayModule, order: int, x: Array, out: Array | None = None) -> Array:
    """The derivative of gammaln of order ``order + 1``; order 0 is the digamma function.

    Examples
    --------
    >>> import numpy as np
    >>> polygamma(np, 0, np.array([1.0, -0.5]))
    array([-0.57721566,  0.03648997])
    """
    order = int(order)
    wide = x.astype(xp.float64)
    negative = wide <= 0.0
    y = xp.where(negative, 1.0 - wide, wide)
    if order:
        value = (-1) ** (order + 1) * math.factorial(order) * _zeta(order + 1, y)
    else:
        end = y + 10.0
        inverse = 1.0 / (end * end)
        terms = [-b / (2 * j) for j, b in enumerate(_BERNOULLI, 1)]
        value = xp.log(end) - 0.5 / end + _polynomial(inverse, terms[::-1]) * inverse
        for k in range(9, -1, -1):
            value = value - 1.0 / (y + k)
    # NIST Digital Library of Mathematical Functions, 5.15.6.
    below = xp.where(negative, wide, 0.25)
    cotangent = 1.0 / xp.tan(math.pi * (below - xp.rint(below)))
    reflected = (-1) ** order * value - _polynomial(cotangent, _cotangent(order))
    return _store(x, xp.where(negative, reflected, value), out)


# ------------------------------------------------------------------------------------------ Bessel functions NIST
# Digital Library of Mathematical Functions, 10.25.2 up to 20, where all terms have the same sign, and 10.40.1 beyond.


@cached(64)
def _bessel_series(order: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coefficients of the series in (x / 2) squared, and of the one in 1 / x, highest powers first."""
    near = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(48)]
    far = [1.0]
    for k in range(1, 31):
        far.append(-far[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8.0 * k))
    return tuple(near[::-1]), tuple(far[::-1])


def bessel_i(xp: ArrayModule, order: int, x: Array, out: Array | None = None) -> Array:
    """The modified Bessel function of the first kind of order 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> bessel_i(np, 0, np.array([0.0, 2.0, 30.0])), bessel_i(np, 1, np.array([-2.0]))
    (array([1.00000000e+00, 2.27958530e+00, 7.81672298e+11]), array([-1.59063685]))
    """
    wide = x.astype(xp.float64)
    y = xp.abs(wide)
    near, far = _bessel_series(order)
    half = xp.minimum(y, 20.0) / 2.0
    small = _polynomial(half * half, near)
    big = xp.clip(y, 20.0, 1500.0)
    grown = xp.exp(big / 2.0)  # the whole exponential would overflow too early
    large = grown * (_polynomial(1.0 / big, far) / xp.sqrt(2.0 * math.pi * big)) * grown
    value = xp.where(y <= 20.0, small * half if order else small, large)
    return _store(x, xp.where(wide < 0.0, -value, value) if order else value, out)


@cached(64)
def of_equal_zeros(name: str, dtype: np.dtype) -> str:
    """The zero that NumPy's ``maximum`` or ``minimum`` of 0.0 and -0.0 returns: its ``first`` or ``second`` operand, or
    always the one with the same ``sign``.

    The choice depends on the processor. Compiled functions here give the same result as NumPy.

    Examples
    --------
    >>> of_equal_zeros("maximum", np.dtype("float32")) in ("first", "second", "sign")
    True
    """
    function, count = getattr(np, name), 64  # the widest registers hold 64 elements
    low, high = np.full(count, -0.0, dtype), np.zeros(count, dtype)
    forwards, backwards = [bool(np.signbit(function(*pair)).all()) for pair in ((low, high), (high, low))]
    return "sign" if forwards == backwards else "first" if forwards else "second"

"""Quotients, remainders and powers of integers over an array module: exact, in the dtype of the integers.

A result that does not fit into the dtype wraps around, as sums do. Division by zero raises no error: the quotient is
the dtype's largest value for a positive dividend, its least value for a negative one, and 0 for 0, as in MindSpore's
FloorDiv; the remainder is 0, as in NumPy.
"""

from __future__ import annotations

import numpy as np

from ..core.array_module import number_on
from ..core.spec import fits
from ..typing import Array, ArrayModule

__all__ = ["exponent", "floor_quotient", "power", "quotient", "reciprocal", "remainder"]


def quotient(xp: ArrayModule, x: Array, y: Array) -> Array:
    """The quotient, rounded towards zero.

    Examples
    --------
    >>> quotient(np, np.array([7, -7, 7, -7, 0]), np.array([2, 2, -2, 0, 0])).tolist()
    [3, -3, -3, -9223372036854775808, 0]
    """
    rounded = _rounded_down(xp, x, y)
    if rounded.dtype.kind == "i":  # a negative quotient with a remainder is one larger
        negative = xp.less(x, 0) != xp.less(y, 0)
        rounded = rounded + (negative & xp.not_equal(rounded * y, x)).astype(rounded.dtype)
    return _or_infinite(xp, x, y, rounded)


def floor_quotient(xp: ArrayModule, x: Array, y: Array) -> Array:
    """The quotient, rounded down.

    Examples
    --------
    >>> floor_quotient(np, np.array([7, -7, 7]), np.array([2, 2, 0])).tolist()
    [3, -4, 9223372036854775807]
    """
    return _or_infinite(xp, x, y, _rounded_down(xp, x, y))


def reciprocal(xp: ArrayModule, x: Array) -> Array:
    """``1 / x``, rounded towards zero."""
    return quotient(xp, number_on(xp, 1, x.dtype), x)


def remainder(xp: ArrayModule, x: Array, y: Array) -> Array:
    """The remainder, with the sign of ``y``; 0 if ``y`` is zero."""
    zero = xp.equal(y, 0).astype(y.dtype)
    return xp.remainder(x, y + zero) * (1 - zero)


def power(xp: ArrayModule, x: Array, y: Array) -> Array:
    """``x ** y``; for a negative ``y``, ``1 / x ** -y`` rounded towards zero.

    Examples
    --------
    >>> power(np, np.array([3, 2, -1, 0]), np.array([35, -1, -3, -1])).tolist()
    [50031545098999707, 0, -1, 9223372036854775807]
    """
    if y.dtype.kind == "u":
        return xp.power(x, y)
    inverse = reciprocal(xp, x)
    inverse = xp.where(xp.equal(y & 1, 0), xp.absolute(inverse), inverse)
    return xp.where(xp.less(y, 0), inverse, xp.power(x, xp.maximum(y, 0)))


def exponent(number: int, dtype: np.dtype) -> int:
    """An exponent that fits into the dtype, or -1, and gives the same powers for all integers of the dtype.

    Examples
    --------
    >>> exponent(7, np.dtype("int8")), exponent(300, np.dtype("int8")), exponent(-300, np.dtype("uint8"))
    (7, 108, -1)
    """
    if fits(number, dtype):
        return number
    if number < 0:
        return -1 if dtype.kind == "u" or number % 2 else -2
    period = 1 << 8 * dtype.itemsize - 2  # powers of odd integers repeat; those of even ones are zero from there on
    return period + number % period


def _rounded_down(xp: ArrayModule, x: Array, y: Array) -> Array:
    """The quotient rounded down, by 1 if ``y`` is zero: array modules differ in division by zero."""
    return xp.floor_divide(x, y + xp.equal(y, 0).astype(y.dtype))


def _or_infinite(xp: ArrayModule, x: Array, y: Array, quotient: Array) -> Array:
    """The quotient ``quotient``; where ``y`` is zero, the limit of the dtype with the sign of ``x``."""
    limits = np.iinfo(x.dtype)
    limit = xp.greater(x, 0).astype(x.dtype) * limits.max
    if limits.min:
        limit = limit + xp.less(x, 0).astype(x.dtype) * limits.min
    return xp.where(xp.equal(y, 0), limit, quotient)

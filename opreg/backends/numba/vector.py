"""The instructions of expressions as code that the compiler can vectorise: plain arithmetic, without branches or calls.

Every function takes and returns ``FloatValue``s, values in the code that is being emitted; calling it appends
instructions. Values are float32 or float64, and results have the same type. Most functions also take a whole register
of values. Functions that would need special care in float32 are computed in float64 and rounded. Errors are about one
unit in the last place, and at most three, over the whole range, which includes subnormal numbers, zeros of either sign,
infinities and NaN. ``fma`` may round once or twice, depending on the processor; nothing relies on either.

The polynomials are near-minimax, by interpolation at Chebyshev nodes in 50 digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from opreg.elementwise import special_functions as special
from opreg.elementwise.expression import Expression

from .values import DOUBLE, SINGLE, BoolValue, FloatValue, IntValue, Operand

__all__ = ["DETOURS", "VECTOR", "largest", "plus", "results_of", "times"]


def fma(a: FloatValue, b: Operand, c: Operand) -> FloatValue:
    """``a * b + c``."""
    return a.call("fmuladd", b, c)


def _polynomial(x: FloatValue, coefficients: Sequence[float]) -> FloatValue:
    total = fma(x, coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        total = fma(total, x, coefficient)
    return total


def _at_most(x: FloatValue, limit: float) -> FloatValue:
    return x.replaced(x > limit, limit)  # NaN stays


def _copy_sign(size: FloatValue, x: FloatValue) -> FloatValue:
    """``size`` with the sign of ``x``."""
    return size.call("copysign", x)


#: The instructions that are computed in float64 for float32, at twice the cost of a ufunc that computes in float32.
DETOURS = {"power"}


def _accept_float32(function: Callable[..., FloatValue]) -> Callable[..., FloatValue]:
    """Make a function of float64 accept float32 too: it computes in float64 and rounds the result."""
    DETOURS.add(function.__name__)

    @functools.wraps(function)
    def either(*args: FloatValue) -> FloatValue:
        if args[0].kind is DOUBLE:
            return function(*args)
        return function(*[arg.wide() for arg in args]).narrow()

    return either


# --------------------------------------------------------------------------- exponentials and their relatives


def _reduce_argument(x: FloatValue) -> tuple[FloatValue, IntValue]:
    """``y`` and ``k`` with ``exp(x) = (1 + y) * 2 ** k``; ``y`` is exact near zero."""
    kind = x.kind
    shifted = fma(x, 1.0 / math.log(2.0), kind.magic)
    exponent = shifted - kind.magic
    r = fma(exponent, -kind.log2_low, fma(exponent, -kind.log2_high, x))
    return fma(r * r, _polynomial(r, kind.exp), r), shifted.bits() - kind.pattern(kind.magic)


def _scale_by_power(x: FloatValue, k: IntValue) -> FloatValue:
    """``x * 2 ** k``, rounded once when the result is subnormal."""
    half = k >> 1
    return x * x.power_of_two(half) * x.power_of_two(k - half)


def _exp(x: FloatValue, shift: int = 0) -> FloatValue:
    """``exp(x) * 2 ** shift``."""
    x = _at_most(x, x.kind.high + 1)
    x = x.replaced(x < x.kind.low, x.kind.low)
    y, k = _reduce_argument(x)
    return _scale_by_power(1.0 + y, k + shift)


def exp(x: FloatValue) -> FloatValue:
    """The exponential."""
    return _exp(x)


def expm1(x: FloatValue) -> FloatValue:
    """``exp(x) - 1``."""
    low = -float(x.kind.mantissa)
    y, k = _reduce_argument(_at_most(x.replaced(x < low, low), x.kind.high))
    return _copy_sign(_scale_by_power(y + (1.0 - x.power_of_two(0 - k.at_most(x.kind.mantissa + 8))), k), x)


def tanh(x: FloatValue) -> FloatValue:
    """The hyperbolic tangent."""
    size = _at_most(abs(x), 0.4 * x.kind.mantissa)  # tanh is 1 from there on
    y, k = _reduce_argument(size + size)
    power = x.power_of_two(k)
    t = fma(y, power, power - 1.0)  # exp(2 * size) - 1
    return _copy_sign(t / (t + 2.0), x)


@_accept_float32
def sinh(x: FloatValue) -> FloatValue:
    """The hyperbolic sine."""
    size = abs(x)
    t = expm1(size)
    near = 0.5 * (t + t / (t + 1.0))
    return _copy_sign(near.replaced(size > 22.0, _exp(size, -1)), x)


@_accept_float32
def cosh(x: FloatValue) -> FloatValue:
    """The hyperbolic cosine."""
    half = _exp(abs(x), -1)
    return half + 0.25 / half


# ------------------------------------------------------------------------------ logarithms and their relatives


def _split(x: FloatValue) -> IntValue:
    """The ``k`` for which ``x / 2 ** k`` lies between the square roots of one half and of two."""
    return (x.bits() - x.kind.pattern(math.sqrt(0.5))) >> x.kind.mantissa


def _split_exponent(x: FloatValue) -> tuple[FloatValue, FloatValue]:
    """``whole`` and ``f`` with ``x = (1 + f) * 2 ** whole``."""
    shift = x.kind.mantissa + 2
    small = x < x.kind.tiny
    normal = x.replaced(small, x * 2.0 ** shift)
    k = _split(normal)
    mantissa = x.number(normal.bits() - (k << x.kind.mantissa))
    exponent = k.number(x.kind)
    return exponent.replaced(small, exponent - float(shift)), mantissa - 1.0


def _log(exponent: FloatValue, f: FloatValue) -> FloatValue:
    """``log(1 + f) + exponent * log(2)``: with s = f / (2 + f) the first is 2 s + s R, and 2 s is f - s f."""
    s = f / (f + 2.0)
    z = s * s
    rest = s * (f - z * _polynomial(z, f.kind.log))
    return fma(exponent, f.kind.log2_high, fma(exponent, f.kind.log2_low, -rest) + f)


def _of_positive(y: FloatValue, x: FloatValue) -> FloatValue:
    """The logarithm ``y`` of ``x``, replaced by the right value where ``x`` is zero, negative, infinite or NaN."""
    y = y.replaced(x.equals(math.inf), math.inf)
    y = y.replaced(x.equals(0.0), -math.inf)
    return y.select(x >= 0.0, math.nan)


def log(x: FloatValue) -> FloatValue:
    """The natural logarithm."""
    return _of_positive(_log(*_split_exponent(x)), x)


def log2(x: FloatValue) -> FloatValue:
    """The logarithm to base two."""
    exponent, f = _split_exponent(x)
    part = _log(exponent * 0.0, f)
    return _of_positive(fma(part, 1.0 / math.log(2.0), exponent), x)


@_accept_float32
def log10(x: FloatValue) -> FloatValue:
    """The logarithm to base ten."""
    exponent, f = _split_exponent(x)
    part = _log(exponent * 0.0, f) * (1.0 / math.log(10.0))
    # Two parts of log10 2.
    return _of_positive(fma(exponent, 3.01029995663611771306e-1, fma(exponent, 3.69423907715893078616e-13, part)), x)


def _log1p(x: FloatValue) -> FloatValue:
    u = x + 1.0
    k = _split(u)
    half = k >> 1
    first, second = x.power_of_two(0 - half), x.power_of_two(half - k)
    # Products with powers of two are exact, so only the sum is rounded.
    y = _log(k.number(x.kind), x * first * second + (first * second - 1.0))
    return y.replaced(abs(x) < 0.25 * x.kind.epsilon, x)


def log1p(x: FloatValue) -> FloatValue:
    """``log(1 + x)``."""
    y = _log1p(x).replaced(x.equals(math.inf), math.inf)
    y = y.replaced(x.equals(-1.0), -math.inf)
    return y.select(x >= -1.0, math.nan)


@_accept_float32
def arcsinh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic sine."""
    size = abs(x)
    large = size > 2.0 ** 28
    squared = size * size
    near = size + squared / ((squared + 1.0).call("sqrt") + 1.0)
    y = log1p(near.replaced(large, size - 1.0))
    return _copy_sign(y.replaced(large, y + math.log(2.0)), x)


@_accept_float32
def arccosh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic cosine."""
    large = x > 2.0 ** 28
    rest = x - 1.0
    y = log1p((rest + (rest * rest + 2.0 * rest).call("sqrt")).replaced(large, rest))
    return y.replaced(large, y + math.log(2.0)).select(x >= 1.0, math.nan)


@_accept_float32
def arctanh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic tangent."""
    size = abs(x)
    return _copy_sign(0.5 * log1p((size + size) / (1.0 - size)), x)


# ---------------------------------------------------------------------------------------------------- angles

# (atan(y) / y - 1) / y ** 2 as polynomial in y ** 2, for y up to tan(pi / 8); the same of asin, up to 1 / 2.
_ARCTAN = (0.01627194475162406, -0.03455809255141380, 0.04551108126325172, -0.05230347873016074, 0.05878914544400622,
           -0.06666423628069258, 0.07692296304974470, -0.09090908751076637, 0.1111111110510671, -0.1428571428565933,
           0.1999999999999980253, -0.3333333333333333322)
_ARCSIN = (0.02875785136742156, -0.01485188707124720, 0.01740087944269402, 0.005457506718640358, 0.01032281435018578,
           0.01147917741518491, 0.01397121297355293, 0.01735239272086997, 0.02237217294214989, 0.03038194413853125,
           0.04464285714635543, 0.07499999999998433, 0.1666666666666666783)
#: Remainders of pi / 2 and pi / 4 beyond double precision.
_HALF_PI_LOW, _QUARTER_PI_LOW = 6.123233995736766e-17, 3.061616997868383e-17


@_accept_float32
def arctan(x: FloatValue) -> FloatValue:
    """The inverse of the tangent."""
    size = abs(x)
    far, middle = size > math.tan(0.375 * math.pi), size > math.tan(0.125 * math.pi)
    top = size.replaced(middle, size - 1.0).replaced(far, -1.0)
    bottom = x.constant(1.0).replaced(middle, size + 1.0).replaced(far, size)
    y = top.replaced(far | middle, top / bottom)
    z = y * y
    high = x.constant(0.0).replaced(middle, 0.25 * math.pi).replaced(far, 0.5 * math.pi)
    low = x.constant(0.0).replaced(middle, _QUARTER_PI_LOW).replaced(far, _HALF_PI_LOW)
    return _copy_sign(high + (y + (y * (z * _polynomial(z, _ARCTAN)) + low)), x)


def _arc(size: FloatValue) -> tuple[FloatValue, FloatValue, BoolValue]:
    """``y``, ``rest`` and ``large``: the arcsine is ``y + rest``, or where ``size`` exceeds 1 / 2, which ``large``
    tells, it is pi / 2 minus twice that."""
    large = size > 0.5
    z = (size * size).replaced(large, fma(size, -0.5, 0.5))
    y = size.replaced(large, z.call("sqrt"))
    return y, y * (z * _polynomial(z, _ARCSIN)), large


def _root_rest(y: FloatValue, size: FloatValue) -> FloatValue:
    """The rounding error of ``y``, the square root of ``(1 - size) / 2``."""
    error = fma(-y, y, fma(size, -0.5, 0.5))
    return (error / (y + y)).replaced(y.equals(0.0), 0.0)


@_accept_float32
def arcsin(x: FloatValue) -> FloatValue:
    """The inverse of the sine."""
    size = abs(x)
    y, rest, large = _arc(size)
    twice = 2.0 * (rest + _root_rest(y, size)) - _HALF_PI_LOW
    far = 0.25 * math.pi - (twice - (0.25 * math.pi - (y + y)))
    return _copy_sign((y + rest).replaced(large, far), x)


@_accept_float32
def arccos(x: FloatValue) -> FloatValue:
    """The inverse of the cosine."""
    size = abs(x)
    y, rest, large = _arc(size)
    rest = rest.replaced(large, rest + _root_rest(y, size))
    near = 0.5 * math.pi - (_copy_sign(y, x) - (_HALF_PI_LOW - _copy_sign(rest, x)))
    far = 2.0 * (y + rest)
    below = math.pi - (far - 2.0 * _HALF_PI_LOW)
    return near.replaced(large, far.replaced(x < 0.0, below))


# ---------------------------------------------------------------------------------------- roots and powers


@_accept_float32
def cbrt(x: FloatValue) -> FloatValue:
    """The cube root, by an approximation and one step of Newton's method."""
    size = abs(x)
    y = exp(log(size) * (1.0 / 3.0))
    y = y - (y - size / (y * y)) * (1.0 / 3.0)
    y = y.replaced(size.equals(0.0) | size.equals(math.inf), size)
    return _copy_sign(y, x)


@_accept_float32
def hypot(x: FloatValue, y: FloatValue) -> FloatValue:
    """The square root of the sum of both squares, scaled where a square would overflow or underflow."""
    a, b = abs(x), abs(y)
    more = maximum(a, b)
    large, small = more > 2.0 ** 500, more < 2.0 ** -480
    down = x.constant(1.0).replaced(large, 2.0 ** -600).replaced(small, 2.0 ** 600)
    up = x.constant(1.0).replaced(large, 2.0 ** 600).replaced(small, 2.0 ** -600)
    a, b = a * down, b * down
    value = fma(a, a, b * b).call("sqrt") * up
    return value.replaced(abs(x).equals(math.inf) | abs(y).equals(math.inf), math.inf)


def power(x: FloatValue, y: FloatValue) -> FloatValue:
    """``x`` to the power ``y``, only for float32: it is computed in float64, and for float64 the logarithm would have
    to be more precise than that."""
    if x.kind is DOUBLE:
        raise NotImplementedError("a power in float64 has no vectorised form")
    x, y = x.wide(), y.wide()
    size = abs(x)
    value = exp(y * log(size))
    half = 0.5 * y
    whole, even = y.equals(y.call("floor")), half.equals(half.call("floor"))
    sign = _copy_sign(x.constant(1.0), x)
    value = value.replaced(whole & ~even & (sign < 0.0), -value)
    value = value.replaced((x < 0.0) & (x > -math.inf) & ~whole, math.nan)
    value = value.replaced(size.equals(1.0) & abs(y).equals(math.inf), 1.0)
    return value.replaced(x.equals(1.0) | y.equals(0.0), 1.0).narrow()


# -------------------------------------------------------------------------------------------- error function

# erf(x) / x - 1 as polynomial in x ** 2, for x up to 1 and up to 1 / 2; log(erfc(x)) for x from 1 to 4, for float32.
_ERF_TO_ONE = (7.875750626854885e-5, -8.016864287165870e-4, 5.189087423433974e-3, -2.685421201062641e-2,
               0.1128359471516022, -0.3761262666672033, 0.1283791658483509)
_ERF_TO_HALF = (1.472586548055674e-6, -1.484584925970787e-5, 1.205333512435374e-4, -8.548297753674967e-4,
                5.223977373021470e-3, -2.686617063288793e-2, 0.1128379167092535, -0.3761263890318347,
                0.1283791670955125696)
_LOG_ERFC = (-7.582681969725274e-8, 3.321684590731722e-6, -6.229835325161451e-5, 6.858366830115038e-4,
             -5.064946920216485e-3, 2.709952329399037e-2, -0.1110550173718800, -0.6309530298165722,
             -1.130675144181817, 4.163292177097496e-4)


def _near_erf(size: FloatValue, coefficients: Sequence[float]) -> FloatValue:
    return fma(size, _polynomial(size * size, coefficients), size)


def _erfc(size: FloatValue) -> FloatValue:
    """One minus the error function, for sizes from 1 / 2 to 6."""
    return exp(-(size * size)) * (_polynomial(size, special._ERFC_P) / _polynomial(size, special._ERFC_Q))


def erf(x: FloatValue) -> FloatValue:
    """The error function."""
    if x.kind is SINGLE:
        size = _at_most(abs(x), 4.0)
        y, k = _reduce_argument(_polynomial(size, _LOG_ERFC))
        far = 1.0 - (1.0 + y) * x.power_of_two(k)
        return _copy_sign(far.replaced(size <= 1.0, _near_erf(size, _ERF_TO_ONE)), x)
    size = _at_most(abs(x), 6.0)
    return _copy_sign((1.0 - _erfc(size)).replaced(size <= 0.5, _near_erf(size, _ERF_TO_HALF)), x)


@_accept_float32
def erfinv(x: FloatValue) -> FloatValue:
    """The inverse of the error function, by the formulas of ``special.erfinv``."""
    size = abs(x)
    rest = 1.0 - size
    half = 0.5 * log(rest * (1.0 + size))
    middle = half + 2.0 / (math.pi * 0.147)
    guess = ((middle * middle - half * (2.0 / 0.147)).call("sqrt") - middle).call("sqrt")
    y = guess.replaced(size < 0.1, size * (0.5 * math.sqrt(math.pi)))
    for _ in range(2):
        squared = y * y
        # From 1 / 2 on, the error is the difference of two small values.
        error = (rest - _erfc(y)).replaced(size < 0.5, _near_erf(y, _ERF_TO_HALF) - size)
        step = error * exp(squared) * (0.5 * math.sqrt(math.pi))
        y = y - step / (1.0 + y * step)
    return _copy_sign(y.replaced(size.equals(1.0), math.inf).select(size <= 1.0, math.nan), x)


# ----------------------------------------------------------------------------------- arithmetic, comparisons


def maximum(a: FloatValue, b: FloatValue) -> FloatValue:
    """The larger value, or NaN; of two zeros the same one as NumPy."""
    special_value = special.of_equal_zeros("maximum", a.kind.dtype)
    if special_value == "sign":
        return a.call("maximum", b)
    return a.select((a >= b if special_value == "first" else a > b) | a.differs(a), b)


def minimum(a: FloatValue, b: FloatValue) -> FloatValue:
    """The smaller value, or NaN; of two zeros the same one as NumPy."""
    special_value = special.of_equal_zeros("minimum", a.kind.dtype)
    if special_value == "sign":
        return a.call("minimum", b)
    return a.select((a <= b if special_value == "first" else a < b) | a.differs(a), b)


def sign(x: FloatValue) -> FloatValue:
    """-1, 0, 1 or NaN."""
    return _copy_sign(x.constant(1.0), x).replaced(x.equals(0.0), 0.0).replaced(x.differs(x), x)


def plus(total: FloatValue, x: FloatValue) -> FloatValue:
    """A step of a sum, whose order of additions the compiler may choose."""
    return total._new(total.builder.fadd(total.ir, x.ir, flags=("reassoc",)))


def times(product: FloatValue, x: FloatValue) -> FloatValue:
    """A step of a product, whose order of multiplications the compiler may choose."""
    return product._new(product.builder.fmul(product.ir, x.ir, flags=("reassoc",)))


def largest(top: FloatValue, x: FloatValue) -> FloatValue:
    """A step of a maximum, or NaN."""
    return top.call("maximum", x)


#: The instructions by name. Primitives that are missing here have no vectorised form.
VECTOR: dict[str, Callable[..., FloatValue]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda a: -a,
    "absolute": abs,
    "square": lambda a: a * a,
    "reciprocal": lambda a: 1.0 / a,
    "sign": sign,
    "positive": sign,
    "greater": lambda a, b: a.as_number(a > b),
    "greater_equal": lambda a, b: a.as_number(a >= b),
    "less": lambda a, b: a.as_number(a < b),
    "less_equal": lambda a, b: a.as_number(a <= b),
    "equal": lambda a, b: a.as_number(a.equals(b)),
    "not_equal": lambda a, b: a.as_number(a.differs(b)),
    "logical_and": lambda a, b: a.as_number(a.truth() & b.truth()),
    "logical_or": lambda a, b: a.as_number(a.truth() | b.truth()),
    "logical_xor": lambda a, b: a.as_number(a.truth() ^ b.truth()),
    "logical_not": lambda a: a.as_number(~a.truth()),
    "where": lambda c, a, b: a.select(c.truth(), b),
    "floor": lambda a: a.call("floor"),
    "ceil": lambda a: a.call("ceil"),
    "trunc": lambda a: a.call("trunc"),
    "sqrt": lambda a: a.call("sqrt"),
    **{function.__name__: function for function in (
        maximum, minimum, exp, expm1, tanh, sinh, cosh, log, log2, log10, log1p, arcsinh, arccosh, arctanh, arctan,
        arcsin, arccos, cbrt, hypot, power, erf, erfinv)},
}


def results_of(expression: Expression, inputs: Sequence[FloatValue]) -> list[FloatValue]:
    """The results of an expression of values."""
    values = list(inputs)

    def value(register: int | float) -> FloatValue:
        return values[register] if isinstance(register, int) else inputs[0].constant(register)

    for prim, args in expression.code:
        values.append(VECTOR[prim.name](*map(value, args)))
    return list(map(value, expression.results))

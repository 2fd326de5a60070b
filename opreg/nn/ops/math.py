"""Element-wise functions: arithmetic, comparisons, logic, exponentials, trigonometry, rounding.

Two operands broadcast, and are cast to their common dtype. Either may be a Python number, which changes an integer
dtype only if it is a float. Functions that are not defined on integers compute in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...cells import tree
from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import TensorLike
from ...core.registry import get, ops
from ...core.spec import is_floating, largest_exact_integer, limits
from ...errors import ArgumentError, DTypeError
from .lift import as_bool, as_floating, binary, common_dtype, like, plain, scalar, tensor, to_common_dtype

__all__ = [
    "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "approximate_equal", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i1", "bitwise_and",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clamp", "clip", "clip_by_value",
    "conj", "copysign", "cos", "cosh", "deg2rad", "digamma", "div", "divide", "eps", "eq", "equal", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "float_power", "floor", "floor_div", "floor_divide", "floor_mod", "fmax", "fmin",
    "fmod", "frac", "gcd", "ge", "greater", "greater_equal", "gt", "heaviside", "hypot", "i0", "invert", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma",
    "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "lt", "masked_fill", "maximum", "minimum", "mod", "mul", "multiply", "mvlgamma", "nan_to_num", "ne",
    "neg", "negative", "not_equal", "polygamma", "population_count", "positive", "pow", "rad2deg", "reciprocal",
    "remainder", "round", "rsqrt", "select", "sgn", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "sub",
    "subtract", "tan", "tanh", "true_divide", "trunc", "truncate_div", "where", "xdivy", "xlogy"]


# -------------------------------------------------------------------------------------- functions of one tensor


def _unary(name: str, op: str, doc: str, real: bool = True) -> Callable[[TensorLike], Tensor]:
    """A function that is one operator; with ``real`` its inputs are cast to floating-point."""
    make = as_floating if real else tensor

    def function(input: TensorLike) -> Tensor:
        return get(op)(make(input))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


abs = _unary("abs", "abs", "The absolute value.", real=False)
exp = _unary("exp", "exp", "The exponential.")
log = _unary("log", "log", "The natural logarithm.")
log2 = _unary("log2", "log2", "The logarithm to base two.")
log10 = _unary("log10", "log10", "The logarithm to base ten.")
log1p = _unary("log1p", "log1p", "The natural logarithm of one more, exact near zero.")
expm1 = _unary("expm1", "expm1", "The exponential less one, exact near zero.")
sqrt = _unary("sqrt", "sqrt", "The square root.")
rsqrt = _unary("rsqrt", "rsqrt", "One by the square root.")
square = _unary("square", "square", "The square.", real=False)
reciprocal = _unary("reciprocal", "reciprocal", "One by the number.")
sign = sgn = _unary("sign", "sign", "-1, 0 or 1.", real=False)
floor = _unary("floor", "floor", "The next whole number below.", real=False)
ceil = _unary("ceil", "ceil", "The next whole number above.", real=False)
trunc = _unary("trunc", "trunc", "The next whole number towards zero.", real=False)
sin = _unary("sin", "sin", "The sine, of radians.")
cos = _unary("cos", "cos", "The cosine, of radians.")
tan = _unary("tan", "tan", "The tangent, of radians.")
asin = arcsin = _unary("asin", "arcsin", "The angle in radians whose sine it is.")
acos = arccos = _unary("acos", "arccos", "The angle in radians whose cosine it is.")
atan = arctan = _unary("atan", "arctan", "The angle in radians whose tangent it is.")
sinh = _unary("sinh", "sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "cosh", "The hyperbolic cosine.")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent.")
asinh = arcsinh = _unary("asinh", "arcsinh", "The inverse of the hyperbolic sine.")
acosh = arccosh = _unary("acosh", "arccosh", "The inverse of the hyperbolic cosine.")
atanh = arctanh = _unary("atanh", "arctanh", "The inverse of the hyperbolic tangent.")
erf = _unary("erf", "erf", "The error function.")
erfinv = _unary("erfinv", "erfinv", "The inverse of the error function.")
lgamma = _unary("lgamma", "gammaln", "The natural logarithm of the gamma function's absolute value.")
digamma = _unary("digamma", "_polygamma", "The derivative of ``lgamma``.")
bessel_i0 = _unary("bessel_i0", "_bessel_i0", "The modified Bessel function of the first kind of order 0.")
i0 = _unary("i0", "_bessel_i0", "The modified Bessel function of the first kind of order 0.")
bessel_i1 = _unary("bessel_i1", "_bessel_i1", "The modified Bessel function of the first kind of order 1.")
rad2deg = _unary("rad2deg", "degrees", "Degrees from radians.")
deg2rad = _unary("deg2rad", "radians", "Radians from degrees.")
isnan = _unary("isnan", "_npi_isnan", "Whether it is NaN.", real=False)
isinf = _unary("isinf", "_npi_isinf", "Whether it is infinite.", real=False)
isfinite = _unary("isfinite", "_npi_isfinite", "Whether it is neither infinite nor NaN.", real=False)
logical_not = _unary("logical_not", "_npi_logical_not", "Whether it is zero, or false.", real=False)
positive = conj = _unary("positive", "_copy", "The same numbers.", real=False)


def neg(input: TensorLike) -> Tensor:
    """The negative of each element."""
    return -tensor(input)


negative = neg


def erfc(input: TensorLike) -> Tensor:
    """One minus the error function."""
    return 1 - erf(input)


def exp2(input: TensorLike) -> Tensor:
    """Two to the power of each element."""
    return exp(as_floating(input) * math.log(2))


def eps(x: TensorLike) -> Tensor:
    """The distance from 1 to the next number of the floating dtype, for each element."""
    x = tensor(x)
    if not is_floating(x._dt):
        raise DTypeError(f"eps: expected a floating dtype, got {x.dtype}")
    return ops.ones_like(x) * (2 / largest_exact_integer(x._dt))


def frac(x: TensorLike) -> Tensor:
    """The fractional part of each element."""
    x = tensor(x)
    return x - trunc(x)


def round(input: TensorLike, *, decimals: int = 0) -> Tensor:
    """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
    return ops._npi_around(tensor(input), decimals=int(decimals))


def sinc(input: TensorLike) -> Tensor:
    """``sin(pi x) / (pi x)``, and 1 at zero."""
    x = as_floating(input) * math.pi
    zero = x == 0
    return where(zero, 1.0, sin(x) / where(zero, 1.0, x))


def nan_to_num(input: TensorLike, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
              ) -> Tensor:
    """Finite values in the place of NaN (0), infinity and negative infinity (the largest and smallest of the dtype)."""
    x = tensor(input)
    return ops._npi_nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf) if is_floating(x._dt) else x


# --------------------------------------------------------------------------------------- functions of two tensors


def _python(name: str, operator: str, doc: str, parameters: tuple[str, str] = ("input", "other")
            ) -> Callable[[TensorLike, TensorLike], Tensor]:
    """A function that is one of Python's operators."""
    if parameters[0] == "input":
        def function(input: TensorLike, other: TensorLike) -> Tensor:
            return binary(operator, input, other)
    else:
        def function(x: TensorLike, y: TensorLike) -> Tensor:  # type: ignore[misc]  # parameters of other names
            return binary(operator, x, y)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


add = _python("add", "add", "The sum.")
mul = multiply = _python("mul", "mul", "The product.")
true_divide = _python("true_divide", "truediv", "The quotient; of integers in float32.")
floor_div = _python("floor_div", "floordiv", "The quotient, rounded down.", ("x", "y"))
floor_divide = _python("floor_divide", "floordiv", "The quotient, rounded down.")
floor_mod = _python("floor_mod", "mod", "The remainder, with the sign of the divisor.", ("x", "y"))
mod = _python("mod", "mod", "The remainder, with the sign of the divisor.", ("x", "y"))
eq = equal = _python("equal", "eq", "Whether numbers are equal.")
ne = not_equal = _python("not_equal", "ne", "Whether numbers differ.")
gt = greater = _python("greater", "gt", "Whether numbers of the first are greater.")
ge = greater_equal = _python("greater_equal", "ge", "Whether numbers of the first are no less.")
lt = less = _python("less", "lt", "Whether numbers of the first are less.")
le = less_equal = _python("less_equal", "le", "Whether numbers of the first are no greater.")
bitwise_and = _python("bitwise_and", "and", "The bits that are set in both.")
bitwise_or = _python("bitwise_or", "or", "The bits that are set in either.")
bitwise_xor = _python("bitwise_xor", "xor", "The bits that are set in just one.")


def invert(x: TensorLike) -> Tensor:
    """Integers with all bits inverted."""
    return ~tensor(x)


def bitwise_left_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """Integers shifted ``other`` bits to the left; bits beyond the dtype are lost."""
    x, bits = to_common_dtype(input, other)
    return x * scalar(2, x._dt) ** bits


def bitwise_right_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """Integers shifted ``other`` bits to the right; the sign is kept."""
    x, bits = to_common_dtype(input, other)
    bits = minimum(bits, 8 * x._dt.itemsize - 1)
    half, two = bits // 2, scalar(2, x._dt)  # two steps, since the power of all bits may not fit
    return x // two ** half // two ** (bits - half)


def population_count(input_x: TensorLike) -> Tensor:
    """The number of bits of integers that are 1, as uint8.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(population_count(Tensor([0, 1, 3, 255])))
    [0 1 2 8]
    """
    x = tensor(input_x)
    if x._dt.kind not in "iu":
        raise DTypeError(f"population_count: expected integers, got {x._dt}")
    count = 8 * x._dt.itemsize
    bits = [bitwise_and(bitwise_right_shift(x, scalar(place, x._dt)), scalar(1, x._dt)) for place in range(count)]
    return ops.add_n(*bits, num_args=count)._cast(np.dtype(np.uint8))


def sub(input: TensorLike, other: TensorLike) -> Tensor:
    """The difference."""
    return binary("sub", input, other)


def subtract(input: TensorLike, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``."""
    return sub(input, other if alpha == 1 else mul(other, alpha))


def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``."""
    return binary("pow", input, exponent)


def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``, in float64."""
    x, y = to_common_dtype(input, exponent)
    return x._cast(np.dtype(np.float64)) ** y._cast(np.dtype(np.float64))


def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient; of integers in float32.

    Parameters
    ----------
    rounding_mode : {None, "floor", "trunc"}
        Rounding: none, down, or towards zero; with rounding integers stay integers.
    """
    if rounding_mode not in (None, "floor", "trunc"):
        raise ArgumentError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")
    if rounding_mode == "floor":
        return floor_div(input, other)
    if rounding_mode is None:
        return true_divide(input, other)
    x, y = to_common_dtype(input, other)
    return trunc(x / y) if is_floating(x._dt) else ops.broadcast_div(x, y)


divide = div


def truncate_div(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient, rounded towards zero."""
    return div(x, y, rounding_mode="trunc")


def real_div(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient; that of integers keeps their dtype and is rounded towards zero."""
    x, y = to_common_dtype(x, y)
    return true_divide(x, y) if is_floating(x._dt) else truncate_div(x, y)


def remainder(input: TensorLike, other: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor; an integer divided by zero gives the integer, where ``floor_mod``
    gives 0."""
    x, y = to_common_dtype(input, other)
    return x - y * (x // y) if x._dt.kind in "iu" else mod(x, y)


def fmod(input: TensorLike, other: TensorLike) -> Tensor:
    """The remainder of a division rounded towards zero, with the sign of ``input``; an integer divided by zero gives
    the integer."""
    x, y = to_common_dtype(input, other)
    if x._dt.kind == "b":
        return x & False
    return x - y * div(x, y, rounding_mode="trunc")


def _symmetric(name: str, scalar_op: str, op: str, doc: str) -> Callable[[TensorLike, TensorLike], Tensor]:
    """A symmetric function of two operands, one of which may be a number."""

    def function(input: TensorLike, other: TensorLike) -> Tensor:
        if is_number(input):
            input, other = other, input
        if is_number(other) and not is_number(input) and not isinstance(other, (bool, np.bool_)):
            x = tensor(input)
            x = x._cast(common_dtype((x, other)))
            if x._dt.kind in "iu":  # clipping a bound to the dtype's range does not change the result
                least, largest = limits(x._dt)
                return get(op)(x, scalar(min(max(other, least), largest), x._dt))
            return get(scalar_op)(x, scalar=float(other))
        return get(op)(*to_common_dtype(input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


maximum = fmax = _symmetric("maximum", "_maximum_scalar", "broadcast_maximum", "The larger one, or NaN.")
minimum = fmin = _symmetric("minimum", "_minimum_scalar", "broadcast_minimum", "The smaller one, or NaN.")


def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """The square root of the sum of the squares."""
    return ops.broadcast_hypot(*to_common_dtype(input, other, real=True))


def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
    return ops._arctan2(*to_common_dtype(input, other, real=True))


arctan2 = atan2


def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """The logarithm of the sum of the exponentials."""
    x, y = to_common_dtype(input, other, real=True)
    most = ops.BlockGrad(ops.broadcast_maximum(x, y))
    return ops.log(ops.exp(x - most) + ops.exp(y - most)) + most


def logaddexp2(input: TensorLike, other: TensorLike) -> Tensor:
    """The base-two logarithm of the sum of the powers of two."""
    x, y = to_common_dtype(input, other, real=True)
    return logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0."""
    x, y = to_common_dtype(input, other, real=True)
    zero = x == 0
    return where(zero, 0.0, x * ops.log(where(zero, 1.0, y)))


def copysign(x: TensorLike, other: TensorLike) -> Tensor:
    """The absolute value of ``x`` with the sign of ``other``."""
    x, y = to_common_dtype(x, other, real=True)
    return ops.abs(x) * where(y < 0, -1.0, ops.ones_like(y))


def heaviside(input: TensorLike, values: TensorLike) -> Tensor:
    """0 below zero, 1 above, and ``values`` at zero."""
    x, values = to_common_dtype(input, values)
    return where(x == 0, values, (x > 0)._cast(x._dt))


def isclose(input: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
           ) -> Tensor:
    """Whether elements differ by at most ``atol + rtol * |other|``."""
    x, y = to_common_dtype(input, other, real=True)
    margin = atol + rtol * abs(y)
    near = ((abs(x - y) <= margin) & (margin < math.inf)) | (x == y)  # the margin of infinity is infinite
    return near | (isnan(x) & isnan(y)) if equal_nan else near


def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-05) -> Tensor:
    """Whether elements differ by less than ``tolerance``."""
    return abs(sub(x, y)) < tolerance


def _logic(name: str, op: str, doc: str) -> Callable[[TensorLike, TensorLike], Tensor]:
    def function(input: TensorLike, other: TensorLike) -> Tensor:
        return get(op)(as_bool(input), as_bool(other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


logical_and = _logic("logical_and", "_npi_logical_and", "Whether both are true, or not zero.")
logical_or = _logic("logical_or", "_npi_logical_or", "Whether one is true, or not zero.")
logical_xor = _logic("logical_xor", "_npi_logical_xor", "Whether just one is true, or not zero.")


# ------------------------------------------------------------------------------ functions of several tensors


def xdivy(x: TensorLike, y: TensorLike) -> Tensor:
    """``x / y``, and 0 where ``x`` is 0."""
    over, under = to_common_dtype(x, y, real=True)
    zero = over == 0
    return where(zero, 0.0, over / where(zero, 1.0, under))


def ldexp(x: TensorLike, other: TensorLike) -> Tensor:
    """``x * 2 ** other``."""
    value, power = to_common_dtype(x, other, real=True)
    return value * 2.0 ** power


def isneginf(input: TensorLike) -> Tensor:
    """Whether elements are negative infinity."""
    return tensor(input) == -math.inf


def isposinf(input: TensorLike) -> Tensor:
    """Whether elements are positive infinity."""
    return tensor(input) == math.inf


def signbit(input: TensorLike) -> Tensor:
    """Whether it is below zero."""
    return tensor(input) < 0


def gcd(input: TensorLike, other: TensorLike) -> Tensor:
    """The greatest common divisor of integers, by as many steps of Euclid's algorithm as the widest integers need."""
    x, y = (abs(value) for value in to_common_dtype(input, other))
    if x._dt.kind not in "iu":
        raise ArgumentError(f"gcd: expected integers, got {x.dtype}")
    for _ in range(_STEPS[x._dt.itemsize]):
        done = y == 0
        x, y = where(done, x, y), where(done, 0, x % where(done, 1, y))
    return x


#: Steps of Euclid's algorithm in its worst case, Fibonacci numbers, by the bytes of the integers.
_STEPS = {1: 13, 2: 24, 4: 47, 8: 93}


def lcm(input: TensorLike, other: TensorLike) -> Tensor:
    """The least common multiple of integers."""
    x, y = (abs(value) for value in to_common_dtype(input, other))
    divisor = gcd(x, y)
    return x // where(divisor == 0, 1, divisor) * y


def polygamma(n: TensorLike, input: TensorLike) -> Tensor:
    """The ``n``-th derivative of ``digamma``."""
    return ops._polygamma(as_floating(input), order=int(tensor(n).item()))


def mvlgamma(input: TensorLike, p: int) -> Tensor:
    """The logarithm of the ``p``-dimensional gamma function."""
    if not 1 <= p <= 1 << 16:
        raise ArgumentError(f"mvlgamma: expected p from 1 to 65,536, got {p!r}")
    x = as_floating(input)
    total = lgamma(x)
    for k in range(1, p):
        total = total + lgamma(x - k / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """``input + weight * (end - input)``."""
    x, y = to_common_dtype(input, end)
    return x + (y - x) * weight


def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return tensor(input) + mul(tensor1, tensor2) * value


def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return tensor(input) + true_divide(tensor1, tensor2) * value


def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to a range; each bound is a number, a tensor or None."""
    if min is None and max is None:
        raise ArgumentError("clamp: expected min, max or both")
    x = tensor(input)
    if is_number(min) and is_number(max) and is_floating(x._dt):
        return ops.clip(x, a_min=float(min), a_max=float(max))
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


clip = clamp


def clip_by_value(x: Any, clip_value_min: TensorLike | None = None, clip_value_max: TensorLike | None = None) -> Any:
    """Elements clipped to a range; see ``clamp``.

    Parameters
    ----------
    x : tensor, or tuple or list
        Tuples and lists of tensors, such as gradients, give tuples.

    Examples
    --------
    >>> clip_by_value((tensor([-3.0]), tensor([0.5])), -1.0, 1.0)[0]
    Tensor(shape=[1], dtype=Float32, value= [-1.00000000e+00])
    """
    if isinstance(x, (tuple, list)) and (not x or tree.tensors(x)):
        return tuple([clip_by_value(item, clip_value_min, clip_value_max) for item in x])
    return clamp(x, clip_value_min, clip_value_max)


def power_from_zero(x: Tensor, exponent: float) -> Tensor:
    """A power of nonnegative values, with a derivative of zero at zero, also for roots."""
    if exponent == 1:
        return x
    zero = x == 0
    return where(zero, 0.0, where(zero, 1.0, x) ** exponent)


def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere; each is a tensor or a number."""
    condition = tensor(condition)
    if is_number(input) and is_number(other):
        return ops._npi_where(condition, *to_common_dtype(input, other))
    if is_number(input):
        (y, _) = to_common_dtype(other, input)
        return ops._npi_where_lscalar(condition, y, scalar=plain(input))
    if is_number(other):
        (x, _) = to_common_dtype(input, other)
        return ops._npi_where_rscalar(condition, x, scalar=plain(other))
    return ops._npi_where(condition, *to_common_dtype(input, other))


def select(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere; one of them may be a number.

    Examples
    --------
    >>> x = tensor([-1.0, 2.0])
    >>> print(select(x > 0, x, 0.5))
    [0.5 2. ]
    """
    return where(condition, input, other)


def masked_fill(input_x: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """``value`` where the mask holds, ``input_x`` elsewhere; the dtype is kept."""
    x = tensor(input_x)
    return ops._npi_where(tensor(mask), like(value, x), x) if not is_number(value) else \
        ops._npi_where_lscalar(tensor(mask), x, scalar=plain(value))


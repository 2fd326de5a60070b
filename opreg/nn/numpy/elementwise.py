"""Element-wise functions, by NumPy's names and with MindSpore's dtypes.

A result is cast to ``dtype`` if that is given. Integers become float32 if the function is not defined on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import TensorDType, TensorLike
from ...core.registry import ops as registered
from ...errors import ArgumentError
from .. import ops
from .lift import as_angle, as_operand, as_real, as_tensor, in_dtype

__all__ = [
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "around",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clip", "copysign", "cos", "cosh",
    "deg2rad", "divide", "divmod", "equal", "exp", "exp2", "expm1", "fabs", "fix", "float_power", "floor",
    "floor_divide", "fmod", "gcd", "greater", "greater_equal", "heaviside", "hypot", "invert", "isclose", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "lcm", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "negative", "not_equal", "positive", "power", "rad2deg", "radians", "reciprocal", "remainder", "rint", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc"]


# --------------------------------------------------------------------------------------- functions of one array


def _unary(name: str, function: Callable[[Tensor], Tensor], doc: str, lift: Callable[[TensorLike], Tensor] = as_tensor
           ) -> Callable[..., Tensor]:
    """A function of one tensor, with MindSpore's name and parameters."""

    def call(x: TensorLike, dtype: TensorDType = None) -> Tensor:
        return in_dtype(function(lift(x)), dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _keeping_integer_dtype(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function with a result in the dtype of an integer argument."""
    return lambda x: function(x)._cast(x._dt)


abs = _unary("abs", ops.abs, "The absolute value.")
absolute = _unary("absolute", ops.abs, "The absolute value.")
fabs = _unary("fabs", ops.abs, "The absolute value.")
cbrt = _unary("cbrt", registered.cbrt, "The cube root.", as_real)
ceil = _unary("ceil", ops.ceil, "The next whole number above.", as_real)
floor = _unary("floor", ops.floor, "The next whole number below.", as_real)
trunc = _unary("trunc", ops.trunc, "The next whole number towards zero.", as_real)
rint = _unary("rint", ops.round, "The nearest whole number, the even one of two.", as_real)
sign = _unary("sign", ops.sign, "-1, 0 or 1.", as_real)
exp = _unary("exp", ops.exp, "The exponential.")
exp2 = _unary("exp2", _keeping_integer_dtype(ops.exp2), "Two to the power of the number.")
expm1 = _unary("expm1", ops.expm1, "The exponential less one, exact near zero.")
log = _unary("log", ops.log, "The natural logarithm.")
log2 = _unary("log2", ops.log2, "The logarithm to base two.")
log10 = _unary("log10", ops.log10, "The logarithm to base ten.")
log1p = _unary("log1p", ops.log1p, "The natural logarithm of one more, exact near zero.")
sqrt = _unary("sqrt", ops.sqrt, "The square root.")
square = _unary("square", ops.square, "The square.")
reciprocal = _unary("reciprocal", lambda x: ops.div(ops.ones_like(x), x, rounding_mode="trunc" if x._dt.kind in "iu"
                                                    else None), "One by the number, cut towards zero for integers.")
sin = _unary("sin", ops.sin, "The sine, of radians.", as_angle)
cos = _unary("cos", ops.cos, "The cosine, of radians.", as_angle)
tan = _unary("tan", ops.tan, "The tangent, of radians.", as_angle)
sinh = _unary("sinh", ops.sinh, "The hyperbolic sine.", as_angle)
cosh = _unary("cosh", ops.cosh, "The hyperbolic cosine.", as_angle)
tanh = _unary("tanh", ops.tanh, "The hyperbolic tangent.", as_angle)
arcsin = _unary("arcsin", ops.arcsin, "The angle in radians whose sine it is.", as_angle)
arctan = _unary("arctan", ops.arctan, "The angle in radians whose tangent it is.", as_angle)
arcsinh = _unary("arcsinh", ops.arcsinh, "The inverse of the hyperbolic sine.", as_angle)
arccosh = _unary("arccosh", ops.arccosh, "The inverse of the hyperbolic cosine.", as_angle)
arctanh = _unary("arctanh", ops.arctanh, "The inverse of the hyperbolic tangent.", as_angle)
deg2rad = _unary("deg2rad", ops.deg2rad, "Degrees as radians.")
radians = _unary("radians", ops.deg2rad, "Degrees as radians.")
rad2deg = _unary("rad2deg", ops.rad2deg, "Radians as degrees.")
isfinite = _unary("isfinite", ops.isfinite, "Whether it is neither infinite nor NaN.")
isinf = _unary("isinf", ops.isinf, "Whether it is infinite.")
isnan = _unary("isnan", ops.isnan, "Whether it is NaN.")
signbit = _unary("signbit", ops.signbit, "Whether it is below zero.")
bitwise_not = _unary("bitwise_not", lambda x: ~x, "The number with all bits of its dtype turned around.")
invert = _unary("invert", lambda x: ~x, "The number with all bits of its dtype turned around.")


def arccos(input: TensorLike, dtype: TensorDType = None) -> Tensor:
    """The inverse cosine in radians."""
    return in_dtype(ops.arccos(as_angle(input)), dtype)


def negative(a: TensorLike, dtype: TensorDType = None) -> Tensor:
    """The negative of each element."""
    return in_dtype(ops.neg(as_tensor(a)), dtype)


def positive(a: TensorLike, dtype: TensorDType = None) -> Tensor:
    """Each element unchanged."""
    return in_dtype(as_tensor(a), dtype)


def logical_not(a: TensorLike, dtype: TensorDType = None) -> Tensor:
    """Whether each element is zero or false."""
    return in_dtype(ops.logical_not(as_tensor(a)), dtype)


def fix(x: TensorLike) -> Tensor:
    """Elements rounded towards zero."""
    return trunc(x)


def isneginf(x: TensorLike) -> Tensor:
    """Whether elements are negative infinity."""
    return as_tensor(x) == -math.inf


def isposinf(x: TensorLike) -> Tensor:
    """Whether elements are positive infinity."""
    return as_tensor(x) == math.inf


# -------------------------------------------------------------------------------------- functions of two arrays


def _binary(name: str, function: Callable[[TensorLike, TensorLike], Tensor], doc: str) -> Callable[..., Tensor]:
    """A function of two operands that broadcast, with MindSpore's name and parameters."""

    def call(x1: TensorLike, x2: TensorLike, dtype: TensorDType = None) -> Tensor:
        left = as_tensor(x1) if is_number(x1) and is_number(x2) else as_operand(x1)
        return in_dtype(function(left, as_operand(x2)), dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _signed_like(x1: TensorLike, x2: TensorLike) -> Tensor:
    x = as_tensor(x1)
    return ops.copysign(x, x2)._cast(x._dt)


add = _binary("add", ops.add, "The sum.")
subtract = _binary("subtract", ops.sub, "The difference.")
multiply = _binary("multiply", ops.mul, "The product.")
divide = _binary("divide", ops.true_divide, "The quotient, floating also of integers.")
true_divide = _binary("true_divide", ops.true_divide, "The quotient, floating also of integers.")
floor_divide = _binary("floor_divide", ops.floor_div, "The whole number below the quotient.")
mod = _binary("mod", ops.floor_mod, "The remainder, with the sign of the divisor.")
remainder = _binary("remainder", ops.floor_mod, "The remainder, with the sign of the divisor.")
fmod = _binary("fmod", ops.fmod, "The remainder, with the sign of what is divided.")
power = _binary("power", ops.pow, "The first number to the power of the second.")
float_power = _binary("float_power", lambda x, y: ops.pow(as_real(x), y),
                      "The first number to the power of the second, floating also of integers.")
maximum = _binary("maximum", ops.maximum, "The larger one, or NaN.")
minimum = _binary("minimum", ops.minimum, "The smaller one, or NaN.")
equal = _binary("equal", ops.equal, "Whether both are the same.")
not_equal = _binary("not_equal", ops.not_equal, "Whether they differ.")
greater = _binary("greater", ops.greater, "Whether the first is larger.")
greater_equal = _binary("greater_equal", ops.greater_equal, "Whether the first is larger, or the same.")
less = _binary("less", ops.less, "Whether the first is smaller.")
less_equal = _binary("less_equal", ops.less_equal, "Whether the first is smaller, or the same.")
logical_and = _binary("logical_and", ops.logical_and, "Whether both are true, or not zero.")
logical_or = _binary("logical_or", ops.logical_or, "Whether one is true, or not zero.")
logical_xor = _binary("logical_xor", ops.logical_xor, "Whether just one is true, or not zero.")
bitwise_and = _binary("bitwise_and", ops.bitwise_and, "The bits that both have.")
bitwise_or = _binary("bitwise_or", ops.bitwise_or, "The bits that one has.")
bitwise_xor = _binary("bitwise_xor", ops.bitwise_xor, "The bits that just one has.")
arctan2 = _binary("arctan2", lambda *xy: ops.arctan2(*(each if is_number(each) else as_angle(each) for each in xy)),
                  "The angle in radians of the point whose height and width they are.")
hypot = _binary("hypot", ops.hypot, "The square root of both squares' sum.")
logaddexp = _binary("logaddexp", ops.logaddexp, "The logarithm of the sum of both exponentials.")
logaddexp2 = _binary("logaddexp2", ops.logaddexp2, "The logarithm to base two of the sum of two to both powers.")
heaviside = _binary("heaviside", ops.heaviside, "0 below zero, 1 above, the second number at zero.")
copysign = _binary("copysign", _signed_like, "The size of the first with the sign of the second.")
gcd = _binary("gcd", ops.gcd, "The greatest common divisor of integers.")
lcm = _binary("lcm", ops.lcm, "The least common multiple of integers.")


def around(a: TensorLike, decimals: int = 0) -> Tensor:
    """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
    return ops.round(as_tensor(a), decimals=decimals)


def round(a: TensorLike, decimals: int = 0) -> Tensor:
    """Elements rounded to ``decimals`` digits after the decimal point; see ``around``."""
    return around(a, decimals)


def divmod(x1: TensorLike, x2: TensorLike, dtype: TensorDType = None) -> tuple[Tensor, Tensor]:
    """The quotient rounded down, and the remainder."""
    return floor_divide(x1, x2, dtype), mod(x1, x2, dtype)


def isclose(a: TensorLike, b: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements differ by at most ``atol + rtol * |b|``."""
    return ops.isclose(as_tensor(a), as_tensor(b), rtol, atol, equal_nan)


def clip(x: TensorLike, xmin: TensorLike | None, xmax: TensorLike | None, dtype: TensorDType = None) -> Tensor:
    """Elements clipped to a range; a bound of None is no bound.

    Examples
    --------
    >>> print(clip([1, 5, 9], 2, 8))
    [2 5 8]
    """
    x = as_tensor(x)
    if xmin is None and xmax is None:
        raise ArgumentError("clip: expected xmin, xmax or both")
    bounds = [bound if bound is None else as_operand(bound) for bound in (xmin, xmax)]
    return in_dtype(ops.clamp(x, *bounds)._cast(x._dt), dtype)

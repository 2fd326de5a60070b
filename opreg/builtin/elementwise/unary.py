"""Element-wise operators of one array: a row of name, expression, derivative and description for each.

A derivative is written where the derived one would read more or cost more: most of these read the output ``y``, so that
the output may overwrite the input. NaN, infinities and ties give MXNet's results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

from ...core.attrs import Limit
from ...core.op import Op
from ...elementwise import expression as e
from ...elementwise.expression import Term, greater, less, maximum, minimum, reciprocal, square, trunc
from ...typing import Array, ArrayModule
from .elementwise import elementwise

__all__ = ["unary"]


def unary(name: str, function: Callable, derivative: Callable | None = None, doc: str = "",
          aliases: tuple[str, ...] = (), on_integers: Callable[..., Callable] | None = None) -> Op:
    """Register an element-wise operator of one array, ``data``."""
    return elementwise(function, name=name, arguments=("data",), derivatives=[derivative], doc=doc,
                       aliases=aliases, on_integers=on_integers)


# --------------------------------------------------------------------------------------- without attributes


def _round(x: Term) -> Term:
    rounded = trunc(x)
    rest = x - rounded
    return rounded - (e.less_equal(rest, -0.5) - e.greater_equal(rest, 0.5))


def _rint(x: Term) -> Term:
    rounded = e.floor(x)
    return rounded + greater(x - rounded, 0.5)


ROWS: list[tuple[str, Callable, Callable | None, str]] = [
    ("abs", e.absolute, None, "The absolute value."),
    ("negative", e.negative, None, "``-x``."),
    # not the instruction of that name: the sign of NaN is zero in MXNet
    ("sign", lambda x: greater(x, 0.0) - less(x, 0.0), None, "The sign: 1 for positive elements, -1 for negative ones, "
                                                             "0 for 0 and NaN."),
    ("relu", lambda x: maximum(x, 0.0), lambda g, x, y: g * e.positive(y), "``max(x, 0)``."),
    ("sigmoid", lambda x: 1.0 / (e.exp(-x) + 1.0), lambda g, x, y: g * y * (1.0 - y), "``1 / (1 + exp(-x))``."),
    ("softsign", lambda x: x / (abs(x) + 1.0), lambda g, x, y: g * square(1.0 - abs(y)), "``x / (1 + |x|)``."),
    ("square", square, None, "The square."),
    ("sqrt", e.sqrt, None, "The square root."),
    ("rsqrt", lambda x: 1.0 / e.sqrt(x), lambda g, x, y: g * -0.5 * y ** 3, "``1 / sqrt(x)``."),
    ("cbrt", e.cbrt, None, "The cube root."),
    ("rcbrt", lambda x: 1.0 / e.cbrt(x), lambda g, x, y: g * (-1.0 / 3.0) * square(square(y)),
     "``1 / cbrt(x)``."),
    ("reciprocal", reciprocal, None, "``1 / x``."),
    ("exp", e.exp, None, "The exponential."),
    ("expm1", e.expm1, None, "``exp(x) - 1``, accurate near 0."),
    ("log", e.log, None, "The natural logarithm."),
    ("log1p", e.log1p, None, "``log(1 + x)``, accurate near 0."),
    ("log2", e.log2, None, "The logarithm to base two."),
    ("log10", e.log10, None, "The logarithm to base ten."),
    ("sin", e.sin, None, "The sine of an angle in radians."),
    ("cos", e.cos, None, "The cosine of an angle in radians."),
    ("tan", e.tan, None, "The tangent of an angle in radians."),
    ("arcsin", e.arcsin, None, "The arcsine in radians, from -pi/2 to pi/2; NaN outside -1 to 1."),
    ("arccos", e.arccos, None, "The arccosine in radians, from 0 to pi; NaN outside -1 to 1."),
    ("arctan", e.arctan, None, "The arctangent in radians, from -pi/2 to pi/2."),
    ("sinh", e.sinh, None, "The hyperbolic sine."),
    ("cosh", e.cosh, None, "The hyperbolic cosine."),
    ("tanh", e.tanh, None, "The hyperbolic tangent."),
    ("arcsinh", e.arcsinh, None, "The inverse of the hyperbolic sine."),
    ("arccosh", e.arccosh, None, "The inverse of the hyperbolic cosine; NaN below 1."),
    ("arctanh", e.arctanh, None, "The inverse of the hyperbolic tangent; NaN outside -1 to 1."),
    ("degrees", lambda x: x * (180.0 / math.pi), None, "Radians converted to degrees."),
    ("radians", lambda x: x * (math.pi / 180.0), None, "Degrees converted to radians."),
    ("floor", e.floor, None, "Each element rounded down to an integer."),
    ("ceil", e.ceil, None, "Each element rounded up to an integer."),
    ("trunc", trunc, None, "Each element rounded towards zero to an integer."),
    ("fix", trunc, None, "Each element rounded towards zero to an integer."),
    ("round", _round, None, "The nearest integer; halves are rounded away from zero."),
    ("rint", _rint, None, "The nearest integer; halves are rounded down."),
    ("logical_not", e.logical_not, None, "1 where the element is zero, 0 elsewhere."),
    ("erf", e.erf, None, "The error function."),
    ("erfinv", e.erfinv, None, "The inverse of the error function; NaN outside -1 to 1."),
    ("gamma", e.gamma, None, "The gamma function; NaN at negative integers."),
    ("gammaln", e.gammaln, None, "The natural logarithm of the gamma function's absolute value."),
    ("_bessel_i0", e.bessel_i0, None, "The modified Bessel function of the first kind of order 0."),
    ("_bessel_i1", e.bessel_i1, None, "The modified Bessel function of the first kind of order 1."),
    ("_contrib_round_ste", _round, lambda g, x, y: g,
     "The nearest integer, halves rounded away from zero; the gradient is that of the identity."),
    ("_contrib_sign_ste", lambda x: greater(x, 0.0) - less(x, 0.0), lambda g, x, y: g,
     "The sign, -1, 0 or 1; the gradient is that of the identity."),
]
for _name, _function, _derivative, _doc in ROWS:
    unary(_name, _function, _derivative, _doc,
          (f"_npx_{_name}",) if _name in ("erf", "erfinv", "gamma", "gammaln", "relu", "sigmoid") else ())


# ------------------------------------------------------------------------------------------ with attributes


def clip(x: Term, *, a_min: float, a_max: float) -> Term:
    """Elements clipped to the range from ``a_min`` to ``a_max``.

    If ``a_min`` is the larger one, elements above ``a_max`` become ``a_max``, and the others ``a_min``.
    """
    raised = maximum(x, a_min)
    return minimum(raised, a_max) if a_min <= a_max else e.where(greater(x, a_max), a_max, raised)


def clip_slope(g: Term, x: Term, y: Term, *, a_min: float, a_max: float) -> Term:
    return g * (e.greater_equal(x, a_min) * e.less_equal(x, a_max))


def _clip_whole(xp: ArrayModule, data: Array, *, a_min: float, a_max: float) -> Callable[[Array], Array]:
    """A function that clips integers. The bounds are limited to the range of the dtype."""
    bounds: Sequence[float] = (a_min, a_max)
    if data.dtype.kind != "b":
        limits = xp.iinfo(data.dtype)
        bounds = [int(min(max(bound, limits.min), limits.max)) for bound in bounds]
    low, high = bounds
    if a_min > a_max:
        return lambda data: xp.where(data > high, high, xp.maximum(data, low))
    return lambda data: xp.minimum(xp.maximum(data, low), high)


unary("clip", clip, clip_slope, aliases=("_npi_clip",), on_integers=_clip_whole)


def hard_sigmoid(x: Term, *, alpha: float = 0.2, beta: float = 0.5) -> Term:
    """``alpha * x + beta``, clipped to the range from 0 to 1."""
    return minimum(maximum(x * alpha + beta, 0.0), 1.0)


unary("hard_sigmoid", hard_sigmoid,
      lambda g, x, y, *, alpha, beta: g * alpha * greater(y, 0.0) * less(y, 1.0))


def smooth_l1(x: Term, *, scalar: float = 1.0) -> Term:
    """``0.5 * (scalar * x) ** 2`` where ``|x| <= 1 / scalar ** 2``, else ``|x| - 0.5 / scalar ** 2``."""
    # R. Girshick, Fast R-CNN, arXiv:1504.08083, equation 3, with the two branches written as one product.
    limit = 1.0 / scalar ** 2 if scalar else math.inf
    size = abs(x)
    near = minimum(size, limit)
    return (size - near * 0.5) * near * scalar ** 2


unary("smooth_l1", smooth_l1, lambda g, x, y, *, scalar: g * minimum(maximum(x * scalar ** 2, -1.0), 1.0),
      aliases=("_npx_smooth_l1",))


def quadratic(x: Term, *, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> Term:
    """``a * x ** 2 + b * x + c``."""
    return (x * a + b) * x + c


unary("_contrib_quadratic", quadratic, lambda g, x, y, *, a, b, c: g * (x * (2.0 * a) + b))


def gradientmultiplier(x: Term, *, scalar: float = 1.0, is_int: bool = True) -> Term:
    """``data`` unchanged; its gradient is multiplied by ``scalar``."""
    return x


unary("_contrib_gradientmultiplier", gradientmultiplier,
      lambda g, x, y, *, scalar: g * scalar).view(lambda array: array)


# larger factorials exceed float64
Order = Annotated[int, Limit("from 0 to 170", lambda order: 0 <= order <= 170)]


def polygamma(x: Term, *, order: Order = 0) -> Term:
    """The derivative of ``gammaln`` of order ``order + 1``."""
    return e.polygamma(order)(x)


unary("_polygamma", polygamma)

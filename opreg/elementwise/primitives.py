"""Primitives, the instructions of element-wise expressions, and the terms that they are applied to.

A primitive says how it is computed on arrays, its derivative, and the operator that it corresponds to. Applied to terms
it gives a term, applied to floats the float.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, overload

import numpy as np

from ..core.cache import cached
from ..core.registry import ops
from ..core.selection import select
from ..core.value import Value
from ..typing import Array, ArrayModule
from . import counting, integers
from . import special_functions as special
from .settings import Setting

__all__ = ["Instruct", "Operand", "Primitive", "Term", "KEPT", "PRIMITIVES", "primitive", "astype", "polygamma",
           "where", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "bessel_i0",
           "bessel_i1", "cbrt", "ceil", "cos", "cosh", "divide", "equal", "erf", "erfinv", "exp", "expm1", "floor",
           "gamma", "gammaln", "greater", "greater_equal", "hypot", "less", "less_equal", "log", "log10", "log1p",
           "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
           "negative", "not_equal", "positive", "power", "reciprocal", "sign", "sin", "sinh", "sqrt", "square",
           "subtract", "tan", "tanh", "trunc"]


class Primitive(NamedTuple):
    """A primitive: how it is computed and differentiated, and which operator it corresponds to.

    Attributes
    ----------
    function : str or callable
        The name of a ufunc of the array module, or a function ``f(xp, *arrays, out=None)`` whose output may be one of
        the arrays.
    derivative : callable, optional
        ``derivative(g, y, *args)`` returns a term, or None, for each argument. Without it the derivative is zero.
    operator : str or callable
        The name of the operator, its key in ``value.BINARY``, or a function that applies it to values.
    exact, logical : bool
        Whether integers give integers; whether the result is 0 or 1.
    dtype : np.dtype, optional
        The dtype of the result if it differs from the arguments'.
    integer_function : callable, optional
        Computes the primitive on integers if ``function`` cannot.
    cost : int, optional
        The cost relative to an addition. A primitive without one is never computed twice to save memory.
    equality : bool
        Whether it compares its arguments for exact equality.
    device : callable, optional
        Computes the primitive on arrays of a device whose ufunc differs from NumPy's.
    """

    name: str
    function: str | Callable[..., Array]
    derivative: Callable[..., Sequence[Operand | None]] | None
    operator: str | Callable[..., Value]
    exact: bool = False
    logical: bool = False
    dtype: np.dtype | None = None
    integer_function: Callable[..., Array] | None = None
    cost: int | None = None
    equality: bool = False
    device: Callable[..., Array] | None = None

    def resolve(self, xp: ArrayModule, on_integers: bool = False) -> Callable[..., Array]:
        """The function that computes it on arrays of ``xp``, with ``on_integers`` on integers. The output may be
        the last positional argument, except to a function for integers."""
        function = self.integer_function if on_integers and self.integer_function is not None else self.function
        if xp is not np and not on_integers and self.device is not None:
            function = self.device
        return getattr(xp, function) if isinstance(function, str) else functools.partial(function, xp)


PRIMITIVES: dict[str, Primitive] = {}


class Instruct(Protocol):
    """A function that applies a primitive: it returns a term for terms, and a float for floats."""

    @overload
    def __call__(self, first: Term, /, *rest: Operand) -> Term: ...
    @overload
    def __call__(self, first: float, second: Term, /, *rest: Operand) -> Term: ...
    @overload
    def __call__(self, /, *args: float) -> float: ...


def primitive(name: str, function: str | Callable[..., Array] | None = None,
              derivative: Callable[..., Sequence[Operand | None]] | None = None,
              operator: str | Callable[..., Value] | None = None, *, exact: bool = False, logical: bool = False,
              integer_function: Callable[..., Array] | None = None, cost: int | None = None, equality: bool = False,
              device: Callable[..., Array] | None = None) -> Instruct:
    """Define a primitive and return the function that applies it to terms, or computes it for floats."""
    prim = Primitive(name, function or name, derivative, operator or name, exact or logical, logical, None,
                     integer_function, cost, equality, device)
    PRIMITIVES[name] = prim

    def call(*args: Operand) -> Operand:
        if any(isinstance(arg, Term) for arg in args):
            return Term(prim, args)
        for arg in args:
            if isinstance(arg, Setting):
                return arg.apply(call, args)
        with np.errstate(all="ignore"):
            return float(prim.resolve(np)(*[np.float64(arg) for arg in args]))  # type: ignore[arg-type]  # no term

    call.__name__ = name
    call.__doc__ = f"The instruction ``{name}`` on terms."
    return call  # type: ignore[return-value]  # a term or a number, as the overloads say


class Term:
    """A value in an expression: an input, or a primitive applied to terms and constants.

    Only operations that change no bit of any value are left out: ``x - 0.0``, ``x + -0.0``, ``x * 1``, ``x / 1`` and
    ``x ** 1`` are ``x``. ``x + 0.0`` is not, since it turns a negative zero into a positive one.
    """

    __slots__ = ("prim", "args")

    def __init__(self, prim: Primitive | None, args: tuple[Operand, ...]):
        self.prim, self.args = prim, args

    def __add__(self, other: Operand) -> Term:
        return self if _is_constant(other, -0.0) else add(self, other)

    def __radd__(self, other: Operand) -> Term:
        return self if _is_constant(other, -0.0) else add(other, self)

    def __sub__(self, other: Operand) -> Term:
        return self if _is_constant(other, 0.0) else subtract(self, other)

    def __rsub__(self, other: Operand) -> Term:
        return subtract(other, self)

    def __mul__(self, other: Operand) -> Term:
        return self if _is_constant(other, 1) else multiply(self, other)

    def __rmul__(self, other: Operand) -> Term:
        return self if _is_constant(other, 1) else multiply(other, self)

    def __truediv__(self, other: Operand) -> Term:
        return self if _is_constant(other, 1) else divide(self, other)

    def __rtruediv__(self, other: Operand) -> Term:
        return reciprocal(self) if _is_constant(other, 1) else divide(other, self)

    def __mod__(self, other: Operand) -> Term:
        return mod(self, other)

    def __rmod__(self, other: Operand) -> Term:
        return mod(other, self)

    def __pow__(self, other: Operand) -> Term:
        if _is_constant(other, 1):
            return self
        if _is_constant(other, 2):
            return square(self)
        if _is_constant(other, 3):  # ``power`` costs thirty times as much, and 300 times for negative elements
            return self * square(self)
        if _is_constant(other, 4):
            return square(square(self))
        return reciprocal(self) if _is_constant(other, -1) else power(self, other)

    def __rpow__(self, other: Operand) -> Term:
        return power(other, self)

    def __neg__(self) -> Term:
        return negative(self)

    def __abs__(self) -> Term:
        return absolute(self)

    def __gt__(self, other: Operand) -> Term:
        return greater(self, other)

    def __ge__(self, other: Operand) -> Term:
        return greater_equal(self, other)

    def __lt__(self, other: Operand) -> Term:
        return less(self, other)

    def __le__(self, other: Operand) -> Term:
        return less_equal(self, other)


#: An operand of an instruction; a `Setting` takes the place of a float.
Operand: TypeAlias = Term | float


def _is_constant(value: Operand, number: float) -> bool:
    """Whether a value is a constant equal to this number, with the same sign if it is zero."""
    if isinstance(value, Setting):
        return value.answers.equals(value, number)
    return (not isinstance(value, Term) and value == number
            and (number != 0 or math.copysign(1.0, value) == math.copysign(1.0, number)))


def _astype(dtype: np.dtype, xp: ArrayModule, array: Array, out: Array | None = None) -> Array:
    if out is None:
        return array.astype(dtype)
    out[...] = array
    return out


def _apply_where(condition: Value, left: Value | float, right: Value | float) -> Value:
    """``where`` as an operator, which takes no scalars."""
    shaped = left if isinstance(right, float) else right
    shaped = condition if isinstance(shaped, float) else shaped
    branches = [ops._plus_scalar(ops.zeros_like(shaped), scalar=branch) if isinstance(branch, float) else branch
                for branch in (left, right)]
    return ops.where(condition, *branches)


# ------------------------------------------------------------------------------------------ instructions

# Primitives without a derivative come first, then the others, each behind the primitives that its derivative uses.
sign = primitive("sign", cost=4, exact=True)
# The sign of a value that is not negative.
positive = primitive("positive", "sign", cost=2, operator="sign", exact=True)
floor = primitive("floor", cost=1, exact=True)
ceil = primitive("ceil", cost=1, exact=True)
trunc = primitive("trunc", cost=1, exact=True)
greater = primitive("greater", cost=2, operator="gt", logical=True)
greater_equal = primitive("greater_equal", cost=2, operator="ge", logical=True)
less = primitive("less", cost=2, operator="lt", logical=True)
less_equal = primitive("less_equal", cost=2, operator="le", logical=True)
equal = primitive("equal", cost=2, operator="eq", logical=True, equality=True)
not_equal = primitive("not_equal", cost=2, operator="ne", logical=True, equality=True)
logical_and = primitive("logical_and", logical=True)
logical_or = primitive("logical_or", logical=True)
logical_xor = primitive("logical_xor", logical=True)
logical_not = primitive("logical_not", logical=True)

add = primitive("add", cost=1, derivative=lambda g, y, a, b: (g, g), exact=True)
subtract = primitive("subtract", cost=1, derivative=lambda g, y, a, b: (g, -g), operator="sub", exact=True)
multiply = primitive("multiply", cost=1, derivative=lambda g, y, a, b: (g * b, g * a), operator="mul", exact=True)
divide = primitive("divide", cost=1, derivative=lambda g, y, a, b: (g / b, -g * y / b), operator="truediv",
                   integer_function=integers.quotient)


def _mod_on_device(xp: ArrayModule, x: Any, y: Any, out: Array | None = None) -> Array:
    """The remainder with the sign of ``y``; the remainder of CuPy is NaN if ``y`` is infinite."""
    result = xp.mod(x, y)
    if hasattr(y, "shape") or math.isinf(y):
        endless = xp.logical_and(abs(y) == math.inf, abs(x) < math.inf)
        other = xp.where(xp.logical_and(x != 0.0, xp.not_equal(x < 0.0, y < 0.0)), y, x)
        result = xp.where(endless, other, result)
    if out is None:
        return result
    out[...] = result
    return out


mod = primitive("mod", device=_mod_on_device, derivative=lambda g, y, a, b: (g, -g * floor(a / b)), exact=True,
                integer_function=integers.remainder)
negative = primitive("negative", cost=1, derivative=lambda g, y, a: (-g,), exact=True)
absolute = primitive("absolute", cost=1, derivative=lambda g, y, a: (g * sign(a),), operator="abs", exact=True)
square = primitive("square", cost=1, derivative=lambda g, y, a: (g * a * 2.0,), exact=True)
reciprocal = primitive("reciprocal", cost=2, derivative=lambda g, y, a: (-g * square(y),),
                       integer_function=integers.reciprocal)
sqrt = primitive("sqrt", cost=4, derivative=lambda g, y, a: (g * 0.5 / y,))
cbrt = primitive("cbrt", derivative=lambda g, y, a: (g / (square(y) * 3.0),))
hypot = primitive("hypot", derivative=lambda g, y, a, b: (g * a / y, g * b / y))
exp = primitive("exp", cost=4, derivative=lambda g, y, a: (g * y,))
expm1 = primitive("expm1", cost=4, derivative=lambda g, y, a: (g * (y + 1.0),))
log = primitive("log", cost=4, derivative=lambda g, y, a: (g / a,))
log1p = primitive("log1p", cost=4, derivative=lambda g, y, a: (g / (a + 1.0),))
log2 = primitive("log2", derivative=lambda g, y, a: (g / (a * math.log(2.0)),))
log10 = primitive("log10", derivative=lambda g, y, a: (g / (a * math.log(10.0)),))
power = primitive("power", operator="pow", integer_function=integers.power, derivative=lambda g, y, a, b: (
    g * b * a ** (b - 1), g * y * log(a) if isinstance(b, Term) else None))
cos: Instruct
cosh: Instruct
sin = primitive("sin", derivative=lambda g, y, a: (g * cos(a),))
cos = primitive("cos", derivative=lambda g, y, a: (-g * sin(a),))
tan = primitive("tan", derivative=lambda g, y, a: (g * (square(y) + 1.0),))
arcsin = primitive("arcsin", derivative=lambda g, y, a: (g / sqrt(1.0 - square(a)),))
arccos = primitive("arccos", derivative=lambda g, y, a: (-g / sqrt(1.0 - square(a)),))
arctan = primitive("arctan", derivative=lambda g, y, a: (g / (square(a) + 1.0),))
sinh = primitive("sinh", derivative=lambda g, y, a: (g * cosh(a),))
cosh = primitive("cosh", derivative=lambda g, y, a: (g * sinh(a),))
tanh = primitive("tanh", cost=4, derivative=lambda g, y, a: (g * (1.0 - square(y)),))
arcsinh = primitive("arcsinh", derivative=lambda g, y, a: (g / sqrt(square(a) + 1.0),))
arccosh = primitive("arccosh", derivative=lambda g, y, a: (g / sqrt(square(a) - 1.0),))
arctanh = primitive("arctanh", derivative=lambda g, y, a: (g / (1.0 - square(a)),))
# If both arguments are equal, the first gets the whole gradient, as in MXNet.
maximum = primitive("maximum", cost=1, exact=True, derivative=lambda g, y, a, b: (
    g * greater_equal(a, b), g * greater(b, a) if isinstance(b, Term) else None))
minimum = primitive("minimum", cost=1, exact=True, derivative=lambda g, y, a, b: (
    g * less_equal(a, b), g * less(b, a) if isinstance(b, Term) else None))
erf = primitive("erf", special.erf, lambda g, y, a: (g * exp(-square(a)) * (2.0 / math.sqrt(math.pi)),))
erfinv = primitive("erfinv", special.erfinv, lambda g, y, a: (g * exp(square(y)) * (math.sqrt(math.pi) / 2),))


@overload
def where(condition: Term, left: Operand, right: Operand) -> Term: ...
@overload
def where(condition: Operand, left: Operand, right: Operand) -> Operand: ...
def where(condition: Operand, left: Operand, right: Operand) -> Operand:
    """``left`` where the condition is not zero, else ``right``."""
    if not isinstance(condition, Term):
        return left if condition else right
    return _select(condition, left, right)


_select = primitive("where", select, exact=True, operator=_apply_where, derivative=lambda g, y, c, a, b: (
    None, where(c, g, 0.0), where(c, 0.0, g)))


@cached(16)
def astype(dtype: np.dtype) -> Primitive:
    """The primitive that converts to another floating-point dtype; it occurs only in compositions."""
    return Primitive(f"as_{dtype}", functools.partial(_astype, dtype), None, lambda value: ops.Cast(value, dtype=dtype),
                     dtype=dtype)


#: The mask of dropout: whether the random number at the position of an element is below a probability. Its arguments
#: are the element, a draw (see ``counting``) and the probability. Only passes build expressions with this primitive.
KEPT = Primitive("kept", counting.is_below, None, "kept", logical=True)


def polygamma(order: int) -> Instruct:
    """The primitive that computes the derivative of ``gammaln`` of order ``order + 1``."""
    name = f"polygamma{order}"
    if name not in _POLYGAMMA:
        _POLYGAMMA[name] = primitive(
            name, lambda xp, *arrays: special.polygamma(xp, order, *arrays),
            lambda g, y, a: (g * polygamma(order + 1)(a),), lambda value: ops._polygamma(value, order=order))
    return _POLYGAMMA[name]


_POLYGAMMA: dict[str, Instruct] = {}
gamma = primitive("gamma", special.gamma, lambda g, y, a: (g * y * polygamma(0)(a),))
gammaln = primitive("gammaln", special.gammaln, lambda g, y, a: (g * polygamma(0)(a),))
bessel_i0: Instruct = primitive(
    "bessel_i0", lambda xp, *arrays: special.bessel_i(xp, 0, *arrays),
    lambda g, y, a: (g * bessel_i1(a),), "_bessel_i0")
bessel_i1: Instruct = primitive(
    "bessel_i1", lambda xp, *arrays: special.bessel_i(xp, 1, *arrays),
    lambda g, y, a: (g * (bessel_i0(a) - _over(y, a)),), "_bessel_i1")


def _over(y: Term, a: Term) -> Operand:
    """The Bessel function of order 1 divided by its argument; 0.5 at zero."""
    zero = equal(a, 0.0)
    return where(zero, 0.5, y / (a + zero))

"""Scalar expressions of element-wise operators: traced once, then run, differentiated or emitted.

An expression is written as a Python function of terms, ``lambda x: 1 / (1 + exp(-x))``. Tracing it yields a
short list of primitive instructions. That list is the single description of the operator: it runs as NumPy or
CuPy ufuncs into reused buffers, a tile at a time; it is differentiated symbolically; and it is lowered to
operators again where a gradient of a gradient is wanted.

What an ``Expression`` says: registers 0 to ``arity - 1`` are the inputs, instruction ``i`` of ``code`` makes register
``arity + i`` of earlier registers and of constants (floats), ``results`` are the registers (or constants) that are
asked for, and ``result`` is the first of them. A traced expression has one result. Those that a ``Composition``
gathers from many may have several, all of one shape, to which the inputs broadcast; there each result is another
instruction's, the first that of the last, and dtypes may change where an instruction has a ``dtype``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.cache import cached
from ..core.registry import ops
from ..core.spec import is_floating
from ..core.value import forms
from . import special_functions as special
from . import tiling as schedule

__all__ = ["Term", "Expression", "Instruction", "Primitive", "PRIMITIVES", "primitive", "polygamma", "trace", "derive",
           "astype", "compiled", "in_order"]


class Primitive(NamedTuple):
    """One instruction: how it is computed, differentiated, and which operator it is.

    ``function`` is the name of a ufunc of the array module, or a function ``f(xp, *arrays, out=None)`` whose
    output may be one of the arrays. ``derivative(g, y, *args)`` gives a term, or None, for each argument;
    None as a whole says it is zero. ``operator`` is the name of the operator, the key of its forms in
    ``value.BINARY``, or a function that applies it to values. ``exact`` says that integers give integers,
    ``logical`` that it gives 0 or 1. ``dtype`` is that of the result where it is not that of the arguments.
    """

    name: str
    function: str | Callable
    derivative: Callable | None
    operator: str | Callable
    exact: bool = False
    logical: bool = False
    dtype: Any = None

    def resolve(self, xp: Any) -> Callable:
        """The function that computes it on arrays of ``xp``; a last positional argument is the output."""
        if isinstance(self.function, str):
            return getattr(xp, self.function)
        return functools.partial(self.function, xp)


PRIMITIVES: dict[str, Primitive] = {}


def primitive(name: str, function: str | Callable | None = None, derivative: Callable | None = None,
              operator: str | Callable | None = None, *, exact: bool = False, logical: bool = False
              ) -> Callable[..., Any]:
    """Define an instruction and return the function that applies it to terms, or computes it of numbers."""
    made = Primitive(name, function or name, derivative, operator or name, exact or logical, logical)
    PRIMITIVES[name] = made

    def call(*args: Any) -> Any:
        if any(isinstance(arg, Term) for arg in args):
            return Term(made, args)
        with np.errstate(all="ignore"):
            return float(made.resolve(np)(*[np.float64(arg) for arg in args]))

    call.__name__ = name
    call.__doc__ = f"The instruction ``{name}`` on terms."
    return call


class Term:
    """A number that is not known yet: an input, or a primitive of terms and constants."""

    __slots__ = ("prim", "args")

    def __init__(self, prim: Primitive | None, args: tuple):
        self.prim, self.args = prim, args

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else add(self, other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0) else add(other, self)

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0) else subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is(other, 1) else multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return self if _is(other, 1) else multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return self if _is(other, 1) else divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return reciprocal(self) if _is(other, 1) else divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return mod(self, other)

    def __rmod__(self, other: Any) -> Any:
        return mod(other, self)

    def __pow__(self, other: Any) -> Any:
        if _is(other, 1):
            return self
        if _is(other, 2):
            return square(self)
        if _is(other, 3):  # a general power costs thirty times as much
            return self * square(self)
        return reciprocal(self) if _is(other, -1) else power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return power(other, self)

    def __neg__(self) -> Any:
        return negative(self)

    def __abs__(self) -> Any:
        return absolute(self)

    def __gt__(self, other: Any) -> Any:
        return greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return greater_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return less(self, other)

    def __le__(self, other: Any) -> Any:
        return less_equal(self, other)


# Whole numbers below it are int64.
_REACH = 2.0 ** 63


def _is(value: Any, number: float) -> bool:
    return not isinstance(value, Term) and value == number


def _where(xp: Any, condition: Any, left: Any, right: Any, out: Any = None) -> Any:
    chosen = xp.where(condition, left, right)
    if out is None:
        return chosen
    out[...] = chosen
    return out


def _astype(dtype: Any, xp: Any, array: Any, out: Any = None) -> Any:
    if out is None:
        return array.astype(dtype)
    out[...] = array
    return out


def _apply_where(condition: Any, left: Any, right: Any) -> Any:
    """``where`` as an operator, which has no form for numbers."""
    shaped = left if isinstance(right, float) else right
    shaped = condition if isinstance(shaped, float) else shaped
    left, right = (ops._plus_scalar(ops.zeros_like(shaped), scalar=each) if isinstance(each, float) else each
                   for each in (left, right))
    return ops.where(condition, left, right)


# ------------------------------------------------------------------------------------------ instructions

# Those that need no derivative come first, then each after those its derivative is made of.
sign = primitive("sign", exact=True)
# The sign of a number that is not negative.
positive = primitive("positive", "sign", operator="sign", exact=True)
floor = primitive("floor", exact=True)
ceil = primitive("ceil", exact=True)
trunc = primitive("trunc", exact=True)
greater = primitive("greater", operator="gt", logical=True)
greater_equal = primitive("greater_equal", operator="ge", logical=True)
less = primitive("less", operator="lt", logical=True)
less_equal = primitive("less_equal", operator="le", logical=True)
equal = primitive("equal", operator="eq", logical=True)
not_equal = primitive("not_equal", operator="ne", logical=True)
logical_and = primitive("logical_and", logical=True)
logical_or = primitive("logical_or", logical=True)
logical_xor = primitive("logical_xor", logical=True)
logical_not = primitive("logical_not", logical=True)

add = primitive("add", derivative=lambda g, y, a, b: (g, g), exact=True)
subtract = primitive("subtract", derivative=lambda g, y, a, b: (g, -g), operator="sub", exact=True)
multiply = primitive("multiply", derivative=lambda g, y, a, b: (g * b, g * a), operator="mul", exact=True)
divide = primitive("divide", derivative=lambda g, y, a, b: (g / b, -g * y / b), operator="truediv")
mod = primitive("mod", derivative=lambda g, y, a, b: (g, -g * floor(a / b)), exact=True)
negative = primitive("negative", derivative=lambda g, y, a: (-g,), exact=True)
absolute = primitive("absolute", derivative=lambda g, y, a: (g * sign(a),), operator="abs", exact=True)
square = primitive("square", derivative=lambda g, y, a: (g * a * 2.0,), exact=True)
reciprocal = primitive("reciprocal", derivative=lambda g, y, a: (-g * square(y),))
sqrt = primitive("sqrt", derivative=lambda g, y, a: (g * 0.5 / y,))
cbrt = primitive("cbrt", derivative=lambda g, y, a: (g / (square(y) * 3.0),))
hypot = primitive("hypot", derivative=lambda g, y, a, b: (g * a / y, g * b / y))
exp = primitive("exp", derivative=lambda g, y, a: (g * y,))
expm1 = primitive("expm1", derivative=lambda g, y, a: (g * (y + 1.0),))
log = primitive("log", derivative=lambda g, y, a: (g / a,))
log1p = primitive("log1p", derivative=lambda g, y, a: (g / (a + 1.0),))
log2 = primitive("log2", derivative=lambda g, y, a: (g / (a * math.log(2.0)),))
log10 = primitive("log10", derivative=lambda g, y, a: (g / (a * math.log(10.0)),))
power = primitive("power", operator="pow", derivative=lambda g, y, a, b: (
    g * b * a ** (b - 1), g * y * log(a) if isinstance(b, Term) else None))
cos: Callable[..., Any]
cosh: Callable[..., Any]
sin = primitive("sin", derivative=lambda g, y, a: (g * cos(a),))
cos = primitive("cos", derivative=lambda g, y, a: (-g * sin(a),))
tan = primitive("tan", derivative=lambda g, y, a: (g * (square(y) + 1.0),))
arcsin = primitive("arcsin", derivative=lambda g, y, a: (g / sqrt(1.0 - square(a)),))
arccos = primitive("arccos", derivative=lambda g, y, a: (-g / sqrt(1.0 - square(a)),))
arctan = primitive("arctan", derivative=lambda g, y, a: (g / (square(a) + 1.0),))
sinh = primitive("sinh", derivative=lambda g, y, a: (g * cosh(a),))
cosh = primitive("cosh", derivative=lambda g, y, a: (g * sinh(a),))
tanh = primitive("tanh", derivative=lambda g, y, a: (g * (1.0 - square(y)),))
arcsinh = primitive("arcsinh", derivative=lambda g, y, a: (g / sqrt(square(a) + 1.0),))
arccosh = primitive("arccosh", derivative=lambda g, y, a: (g / sqrt(square(a) - 1.0),))
arctanh = primitive("arctanh", derivative=lambda g, y, a: (g / (1.0 - square(a)),))
# Where two arguments are equal MXNet gives the whole gradient to the first.
maximum = primitive("maximum", exact=True, derivative=lambda g, y, a, b: (
    g * greater_equal(a, b), g * greater(b, a) if isinstance(b, Term) else None))
minimum = primitive("minimum", exact=True, derivative=lambda g, y, a, b: (
    g * less_equal(a, b), g * less(b, a) if isinstance(b, Term) else None))
erf = primitive("erf", special.erf, lambda g, y, a: (g * exp(-square(a)) * (2.0 / math.sqrt(math.pi)),))
erfinv = primitive("erfinv", special.erfinv, lambda g, y, a: (g * exp(square(y)) * (math.sqrt(math.pi) / 2),))


def where(condition: Any, left: Any, right: Any) -> Any:
    """``left`` where the condition is not zero, else ``right``."""
    if not isinstance(condition, Term):
        return left if condition else right
    return _select(condition, left, right)


_select = primitive("where", _where, exact=True, operator=_apply_where, derivative=lambda g, y, c, a, b: (
    None, where(c, g, 0.0), where(c, 0.0, g)))


@cached(16)
def astype(dtype: np.dtype) -> Primitive:
    """The instruction that converts to another floating dtype; only compositions have it."""
    return Primitive(f"as_{dtype}", functools.partial(_astype, dtype), None, lambda value: ops.Cast(value, dtype=dtype),
                     dtype=dtype)


def polygamma(order: int) -> Callable[..., Any]:
    """The instruction that computes the derivative of ``gammaln`` of order ``order + 1``."""
    name = f"polygamma{order}"
    if name not in _POLYGAMMA:
        _POLYGAMMA[name] = primitive(
            name, lambda xp, *arrays: special.polygamma(xp, order, *arrays),
            lambda g, y, a: (g * polygamma(order + 1)(a),), lambda value: ops._polygamma(value, order=order))
    return _POLYGAMMA[name]


_POLYGAMMA: dict[str, Callable[..., Any]] = {}
gamma = primitive("gamma", special.gamma, lambda g, y, a: (g * y * polygamma(0)(a),))
gammaln = primitive("gammaln", special.gammaln, lambda g, y, a: (g * polygamma(0)(a),))
bessel_i0: Callable[..., Any] = primitive(
    "bessel_i0", lambda xp, *arrays: special.bessel_i(xp, 0, *arrays),
    lambda g, y, a: (g * bessel_i1(a),), "_bessel_i0")
bessel_i1: Callable[..., Any] = primitive(
    "bessel_i1", lambda xp, *arrays: special.bessel_i(xp, 1, *arrays),
    lambda g, y, a: (g * (bessel_i0(a) - _over(y, a)),), "_bessel_i1")


def _over(y: Any, a: Any) -> Any:
    """The Bessel function of order 1 by its argument: a half at zero."""
    zero = equal(a, 0.0)
    return where(zero, 0.5, y / (a + zero))


# ------------------------------------------------------------------------------------------- expressions


class Instruction(NamedTuple):
    """A primitive of registers. Inputs are the first registers; a constant is a float."""

    prim: Primitive
    args: tuple[int | float, ...]


def in_order(*terms: Any) -> list[Term]:
    """Terms and all they are made of, arguments first."""
    order: list[Term] = []
    seen: set[int] = set()
    stack = [(term, False) for term in reversed(terms)]
    while stack:
        each, ready = stack.pop()
        if ready:
            order.append(each)
        elif isinstance(each, Term) and id(each) not in seen:
            seen.add(id(each))
            stack.append((each, True))
            stack += [(arg, False) for arg in reversed(each.args)] if each.prim else []
    return order


def _compile(inputs: Sequence[Term], *terms: Any) -> tuple[list[Instruction], list[int | float]]:
    """The instructions, and the registers that hold the terms; equal terms share one."""
    code: list[Instruction] = []
    registers: dict[int, int] = {id(each): i for i, each in enumerate(inputs)}
    made: dict[Any, int] = {}
    for each in in_order(*terms):
        if each.prim is None:
            continue
        args = tuple([registers[id(arg)] if isinstance(arg, Term) else float(arg) for arg in each.args])
        key = (each.prim, tuple([(type(arg), arg) for arg in args]))
        if key not in made:
            code.append(Instruction(each.prim, args))
            made[key] = len(inputs) + len(code) - 1
        registers[id(each)] = made[key]
    return code, [registers[id(term)] if isinstance(term, Term) else float(term) for term in terms]


class Expression:
    """Instructions that compute one number, or a few, from several.

    Examples
    --------
    >>> expression = trace(lambda x: 1 / (1 + exp(-x)), 1)
    >>> expression
    negative(0) exp(1) add(1.0, 2) reciprocal(3)
    >>> expression(np, np.zeros(2))
    array([0.5, 0.5])
    """

    __slots__ = ("arity", "code", "result", "results", "term", "inputs", "_resolved", "_kinds")

    def __init__(self, inputs: Sequence[Term], term: Any):
        self.inputs, self.term = tuple(inputs), term
        self._settle(len(inputs), *_compile(inputs, term))

    def _settle(self, arity: int, code: list[Instruction], results: Sequence[int | float]) -> Expression:
        self.arity, self.code, self.result, self.results = arity, code, results[0], tuple(results)
        self._resolved: tuple[Any, list] = (None, [])
        self._kinds: dict[Any, tuple[Any, list[list[Any]]]] = {}
        return self

    @classmethod
    def of(cls, arity: int, code: list[Instruction], results: Sequence[int | float]) -> Expression:
        """The expression of instructions that were not traced: it has no terms, so it cannot be differentiated."""
        self = cls.__new__(cls)
        self.inputs, self.term = (), None
        return self._settle(arity, code, results)

    def __repr__(self) -> str:
        text = " ".join(f"{prim.name}({', '.join(map(str, args))})" for prim, args in self.code)
        return text or f"{self.result}"

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        """Compute on arrays that broadcast.

        Integers stay integers where every instruction gives one; else the arithmetic is float64.
        """
        if arrays[0].dtype.kind in "iub":
            return self._on_integers(xp, arrays)
        registers: list[Any] = list(arrays)
        for function, args, logical in self._functions(xp):
            values = [registers[a] if a.__class__ is int else a for a in args]
            value = function(*values)
            if logical:
                value = value.astype(next(each.dtype for each in values if each.__class__ is not float))
            registers.append(value)
        return self._answer(xp, registers)

    def on(self, xp: Any, dtype: Any) -> Callable:
        """The same as a function of arrays of one floating dtype alone, with as little as can be left to do per call.

        Examples
        --------
        >>> trace(lambda x: maximum(x, 0.0), 1).on(np, np.dtype("float32"))(np.float32([-1, 2]))
        array([0., 2.], dtype=float32)
        """
        # An array of one number costs a ufunc half of what a Python number does.
        steps = [(function, [a if isinstance(a, int) else xp.asarray(a, dtype) for a in args], logical)
                 for function, args, logical in self._functions(xp)]
        if len(steps) == 1 and self.result == self.arity and not steps[0][2]:
            function, args, _ = steps[0]
            inputs = [a if isinstance(a, int) else None for a in args]
            if inputs == list(range(self.arity)):
                return function
            if inputs == [None, 0] and self.arity == 1:
                return functools.partial(function, args[0])
            if inputs == [0, None] and self.arity == 1:
                return lambda x: function(x, args[1])

        def run(*arrays: Any) -> Any:
            registers = list(arrays)
            for function, args, logical in steps:
                value = function(*[registers[a] if a.__class__ is int else a for a in args])
                registers.append(value.astype(dtype) if logical else value)
            return self._answer(xp, registers)

        return run

    def _functions(self, xp: Any) -> list[tuple[Callable, tuple, bool]]:
        if self._resolved[0] is not xp:
            self._resolved = (xp, [(prim.resolve(xp), args, prim.logical) for prim, args in self.code])
        return self._resolved[1]

    def _on_integers(self, xp: Any, arrays: Sequence[Any]) -> Any:
        dtype = arrays[0].dtype
        wide, constants = self._among(dtype)
        registers = [array.astype(wide) for array in arrays]
        for (function, args, logical), numbers in zip(self._functions(xp), constants):
            value = function(*[registers[a] if isinstance(a, int) else xp.asarray(number, wide)
                               for a, number in zip(args, numbers)])
            registers.append(value.astype(wide) if logical else value)
        found = self._answer(xp, registers)
        return found if is_floating(wide) or dtype.kind == "b" else found.astype(dtype, copy=False)

    @property
    def exact(self) -> bool:
        """Whether integers give integers: no instruction divides, and no constant has a fraction or is out of reach."""
        return all(prim.exact and all(isinstance(a, int) or (a.is_integer() and abs(a) < _REACH) for a in args)
                   for prim, args in self.code)

    def _among(self, dtype: Any) -> tuple[Any, list[list[Any]]]:
        """The dtype in which numbers of an integer dtype are computed, so wide that no constant is cut, and the
        arguments of each instruction with their constants as numbers of it."""
        if dtype not in self._kinds:
            wide: Any = np.dtype(np.float64)
            number: type = float
            if self.exact:
                constants = [int(a) for _, args in self.code for a in args if isinstance(a, float)]
                wide, number = np.dtype(np.int64), int
                if dtype.kind != "b" and all(a == np.int64(a).astype(dtype) for a in constants):
                    wide = dtype
            self._kinds[dtype] = wide, [[a if isinstance(a, int) else number(a) for a in args] for _, args in self.code]
        return self._kinds[dtype]

    def _answer(self, xp: Any, registers: list[Any]) -> Any:
        found = tuple([registers[result] if isinstance(result, int) else
                       xp.full(registers[0].shape, result, registers[0].dtype) for result in self.results])
        return found if len(found) > 1 else found[0]

    @property
    def used(self) -> list[int]:
        """The inputs that are read."""
        read = {a for a in (*self.results, *[a for _, args in self.code for a in args]) if isinstance(a, int)}
        return [i for i in range(self.arity) if i in read]

    def steps(self, xp: Any, ins: Sequence[Any], out: Any, scratch: Callable[[int, tuple, Any], Any],
              address: Callable[[Any], Any]) -> list[Callable[[], Any]]:
        """Functions without arguments that compute into ``out``, in order; arrays are read when they run.

        Large arrays of the host are worked on a tile at a time, and shared among threads if that pays. A tile is
        computed by one of them, whole, so their number does not matter to the numbers.

        Parameters
        ----------
        xp : module
            Array module.
        ins, out : arrays
            Inputs broadcast against ``out``, an array, or a list of them where there are several results; of floating
            dtypes. An input may share memory with the first output if it covers exactly the same elements.
        scratch : function of number, shape and dtype
            Memory of its own for temporaries.
        address : function of an array
            Where its memory begins; no others than those of one address may share memory.
        """
        return schedule.steps(self, xp, ins, out, scratch, address)

    def lower(self, *ins: Any, broadcasts: bool = False) -> Any:
        """The same computation as operators on values, which have one shape unless it ``broadcasts``."""
        registers: list[Any] = list(ins)
        for prim, args in self.code:
            values = [registers[a] if isinstance(a, int) else a for a in args]
            registers.append(_lower(prim, values, broadcasts))
        if isinstance(self.result, float):
            return ops._plus_scalar(ops.zeros_like(ins[0]), scalar=self.result)
        return registers[self.result]


# Of these arrays have a short way.
_PYTHON = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def _lower(prim: Primitive, args: list[Any], broadcasts: bool) -> Any:
    """A primitive as an operator call."""
    if not isinstance(prim.operator, str):
        return prim.operator(*args)
    if len(args) == 1:
        return getattr(ops, prim.operator)(args[0])
    name = prim.operator
    same, broadcast, scalar, reflected = forms(name)
    left, right = args
    if name in _PYTHON and (isinstance(left, float) or isinstance(right, float)):
        return _PYTHON[name](left, right)
    if isinstance(right, float):
        return getattr(ops, scalar)(left, scalar=right)
    if isinstance(left, float):
        return getattr(ops, reflected)(right, scalar=left)
    return getattr(ops, broadcast if broadcasts else same)(left, right)


def compiled(inputs: Sequence[Term], *terms: Any) -> Expression:
    """The expression of several terms: the last instruction gives the first of them, and no other may use that."""
    code, registers = _compile(inputs, *terms[1:], terms[0])
    return Expression.of(len(inputs), code, [registers[-1], *registers[:-1]])


def trace(function: Callable, arity: int) -> Expression:
    """The expression of a Python function of terms."""
    inputs = [Term(None, (i,)) for i in range(arity)]
    return Expression(inputs, function(*inputs))


def derive(expression: Expression, wrt: int, output: bool = False) -> Expression:
    """The expression ``(g, *inputs) -> g * d result / d input[wrt]``; with ``output``, of the result as well.

    Examples
    --------
    >>> derive(trace(lambda x: x * x * x, 1), 0)(np, np.ones(1), np.full(1, 2.0))
    array([12.])
    >>> derive(trace(tanh, 1), 0, output=True)
    square(2) subtract(1.0, 3) multiply(0, 4)
    """
    g, result = Term(None, (-1,)), Term(None, (-2,))
    order = in_order(expression.term)
    target = expression.inputs[wrt]
    depends = {id(target)}
    for term in order:
        if term.prim and any(id(arg) in depends for arg in term.args):
            depends.add(id(term))
    grads: dict[int, Any] = {id(expression.term): g}
    for term in reversed(order):
        if term.prim is None or term.prim.derivative is None:
            continue
        if id(term) not in depends or id(term) not in grads:
            continue
        value = result if output and term is expression.term else term
        for arg, part in zip(term.args, term.prim.derivative(grads[id(term)], value, *term.args)):
            if part is not None and id(arg) in depends:
                grads[id(arg)] = part if id(arg) not in grads else grads[id(arg)] + part
    inputs = [g, *expression.inputs, result] if output else [g, *expression.inputs]
    return Expression(inputs, grads.get(id(target), 0.0))

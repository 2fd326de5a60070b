"""Scalar expressions of element-wise operators: traced once, then run, differentiated, or converted to operators.

An expression is written as a Python function of terms, ``lambda x: 1 / (1 + exp(-x))``. Tracing it gives a short list
of primitive instructions, from which everything else about the operator is derived: the list is run as NumPy or CuPy
ufuncs into reused buffers, a tile at a time; it is differentiated symbolically; and it is converted to operators again
to differentiate a gradient.

In an ``Expression``, registers 0 to ``arity - 1`` are the inputs. Instruction ``i`` of ``code`` computes register
``arity + i`` from earlier registers and constants (floats). ``results`` are the registers or constants that the
expression returns, and ``result`` is the first of them. A traced expression has one result. An expression from a
``Composition`` may have several, all of one shape, to which the inputs broadcast: each is the result of a different
instruction, the first result is that of the last instruction; and an instruction with a ``dtype`` changes the dtype.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, overload

import numpy as np

from ..core.array_module import number_on
from ..core.cache import cached
from ..core.host_memory import LARGE
from ..core.keys import exact
from ..core.launch import Call
from ..core.registry import ops
from ..core.rules import Attrs
from ..core.spec import is_floating
from ..core.value import Value, forms
from ..typing import Array, ArrayModule
from . import counting, integers
from . import special_functions as special

__all__ = ["Term", "Expression", "Instruction", "Primitive", "KEPT", "PRIMITIVES", "primitive", "polygamma", "trace",
           "derive", "accepting", "astype", "compiled", "extracted", "in_order", "lowered"]


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
        if _is_constant(other, 3):  # ``power`` costs thirty times as much
            return self * square(self)
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


#: An operand of an instruction.
Operand: TypeAlias = Term | float

# Integers smaller than this in size fit into int64.
_REACH = 2.0 ** 63


def _is_constant(value: Operand, number: float) -> bool:
    """Whether a value is a constant equal to this number, with the same sign if it is zero."""
    return (not isinstance(value, Term) and value == number
            and (number != 0 or math.copysign(1.0, value) == math.copysign(1.0, number)))


def _where(xp: ArrayModule, condition: Array, left: Array | float, right: Array | float, out: Array | None = None
           ) -> Array:
    chosen: Array = xp.where(condition, left, right)
    if out is None:
        return chosen
    out[...] = chosen
    return out


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
    """The remainder with the sign of ``y``; CuPy's is no number if ``y`` is infinite."""
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


_select = primitive("where", _where, exact=True, operator=_apply_where, derivative=lambda g, y, c, a, b: (
    None, where(c, g, 0.0), where(c, 0.0, g)))


@cached(16)
def astype(dtype: np.dtype) -> Primitive:
    """The primitive that converts to another floating-point dtype; it occurs only in compositions."""
    return Primitive(f"as_{dtype}", functools.partial(_astype, dtype), None, lambda value: ops.Cast(value, dtype=dtype),
                     dtype=dtype)


#: The mask of dropout: whether the random number at the position of an element is below a probability. Its arguments
#: are the element, a draw (see ``counting``) and the probability. Only passes make expressions with it.
KEPT = Primitive("kept", counting.kept, None, "kept", logical=True)


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


# ------------------------------------------------------------------------------------------- expressions


class Instruction(NamedTuple):
    """A primitive and its arguments: registers as ints, of which inputs are the first, and constants as floats."""

    prim: Primitive
    args: tuple[int | float, ...]


def in_order(*terms: Operand) -> list[Term]:
    """Terms and all terms that they depend on, arguments before their uses."""
    order: list[Term] = []
    visited: set[int] = set()
    stack = [(term, False) for term in reversed(terms)]
    while stack:
        term, ready = stack.pop()
        if not isinstance(term, Term):
            continue
        if ready:
            order.append(term)
        elif id(term) not in visited:
            visited.add(id(term))
            stack.append((term, True))
            stack += [(arg, False) for arg in reversed(term.args)] if term.prim else []
    return order


def _compile(inputs: Sequence[Term], *terms: Operand) -> tuple[list[Instruction], list[int | float]]:
    """The instructions for some terms, and the registers of the terms; equal terms have the same register."""
    code: list[Instruction] = []
    registers: dict[int, int] = {id(term): i for i, term in enumerate(inputs)}
    registers_of: dict[object, int] = {}  # instruction -> register
    for term in in_order(*terms):
        if term.prim is None:
            continue
        args = tuple([registers[id(arg)] if isinstance(arg, Term) else float(arg) for arg in term.args])
        key = (term.prim, exact(args))  # the number 1.0 differs from register 1, and 0.0 from -0.0
        if key not in registers_of:
            code.append(Instruction(term.prim, args))
            registers_of[key] = len(inputs) + len(code) - 1
        registers[id(term)] = registers_of[key]
    return code, [registers[id(term)] if isinstance(term, Term) else float(term) for term in terms]


#: An instruction as it is run: a function of arrays, its arguments, and whether the result is 0 or 1.
Resolved: TypeAlias = tuple[Callable[..., Array], tuple[int | float, ...], bool]


def _writing(function: Callable[..., Array]) -> Callable[[Array, Array, Array], Array]:
    """``maximum`` or ``minimum`` as a function of two arrays and the array of the result, which is their only argument
    that must be named."""
    return lambda first, second, out: function(first, second, out=out)


class Expression:
    """Instructions that compute one or several values from several, for each element.

    Examples
    --------
    >>> expression = trace(lambda x: 1 / (1 + exp(-x)), 1)
    >>> expression
    negative(0) exp(1) add(1.0, 2) reciprocal(3)
    >>> expression(np, np.zeros(2))
    array([0.5, 0.5])
    """

    __slots__ = ("arity", "code", "result", "results", "term", "inputs", "_resolved", "_kinds")

    def __init__(self, inputs: Sequence[Term], term: Operand):
        self.inputs = tuple(inputs)
        self.term: Operand | None = term
        self._set_code(len(inputs), *_compile(inputs, term))

    def _set_code(self, arity: int, code: list[Instruction], results: Sequence[int | float]) -> Expression:
        self.arity, self.code, self.result, self.results = arity, code, results[0], tuple(results)
        self._resolved: tuple[ArrayModule | None, list[Resolved]] = (None, [])
        self._kinds: dict[np.dtype, tuple[np.dtype, list[list[float]]]] = {}
        return self

    @classmethod
    def of(cls, arity: int, code: list[Instruction], results: Sequence[int | float]) -> Expression:
        """An expression from instructions that were not traced: it has no terms, so it cannot be differentiated."""
        self = cls.__new__(cls)
        self.inputs, self.term = (), None
        return self._set_code(arity, code, results)

    def __repr__(self) -> str:
        text = " ".join(f"{prim.name}({', '.join(map(str, args))})" for prim, args in self.code)
        return text or f"{self.result}"

    def __call__(self, xp: ArrayModule, *arrays: Array) -> Any:
        """Compute on arrays that broadcast.

        Integers give integers if every instruction does, or if the only one has a form for integers, as a quotient
        or a power has; else they are computed in float64.
        """
        if arrays[0].dtype.kind in "iub":
            return self._on_integers(xp, arrays)
        registers = list(arrays)
        for function, args, logical in self._functions(xp):
            values = [registers[a] if isinstance(a, int) else a for a in args]
            value = function(*values)
            if logical:
                value = value.astype(next(operand.dtype for operand in values if not isinstance(operand, float)))
            registers.append(value)
        return self._results(xp, registers)

    def on(self, xp: ArrayModule, dtype: np.dtype) -> Callable[..., Any]:
        """The expression as a function of arrays of one floating-point dtype, with everything prepared that does not
        depend on the arrays.

        Examples
        --------
        >>> trace(lambda x: maximum(x, 0.0), 1).on(np, np.dtype("float32"))(np.float32([-1, 2]))
        array([0., 2.], dtype=float32)
        """
        return self._prepared(xp, dtype, self._functions(xp))

    def integer_function(self, dtype: np.dtype) -> Callable[..., Any] | None:
        """The function of ``on`` for integer arrays of the host; None for other dtypes, and where the expression is
        computed in a wider one.

        Examples
        --------
        >>> trace(lambda x: maximum(x, 0.0), 1).integer_function(np.dtype("int8"))(np.int8([-1, 2]))
        array([0, 2], dtype=int8)
        """
        if dtype.kind not in "iu" or self._integer_dtype(dtype)[0] != dtype:
            return None
        return self._prepared(np, dtype, [(prim.resolve(np, True), args, prim.logical) for prim, args in self.code])

    def _prepared(self, xp: ArrayModule, dtype: np.dtype, functions: Sequence[Resolved]) -> Callable[..., Any]:
        # On the host, a ufunc takes half as long for a constant in an array of one element as for a Python number; a
        # device gets constants with the launch of the kernel.
        constants = [a if xp is not np else xp.asarray(a, dtype)
                     for _, args, _ in functions for a in args if not isinstance(a, int)]
        if len(functions) == 1 and self.result == self.arity and not functions[0][2]:
            function, args, _ = functions[0]
            inputs = [a if isinstance(a, int) else None for a in args]
            if inputs == list(range(self.arity)):
                return function
            if inputs == [None, 0] and self.arity == 1:
                return functools.partial(function, constants[0])
            if inputs == [0, None] and self.arity == 1:
                return lambda x: function(x, constants[0])
        # Registers are the inputs, then the constants, then the results of instructions.
        first_slot = self.arity + len(constants)
        numbers = iter(range(self.arity, first_slot))

        def register(operand: int | float) -> int:
            if not isinstance(operand, int):
                return next(numbers)
            return operand if operand < self.arity else operand - self.arity + first_slot

        read = [tuple(map(register, args)) for _, args, _ in functions]
        last = {place: step for step, places in enumerate(read) for place in places}
        last.update((register(result), len(read)) for result in self.results if isinstance(result, int))
        # A result takes the place of one that no later step reads, so that its memory is free again.
        slots, width, free, steps = [*range(first_slot)], first_slot, list[int](), []
        in_place: list[Any] = []  # the steps for large arrays: a ufunc may write over the result of another
        fresh = set[int]()  # places of results of ufuncs, which nothing else refers to
        for step, ((function, _, logical), places) in enumerate(zip(functions, read)):
            pick = operator.itemgetter(*[slots[place] for place in places])
            ended = [place for place in {*places} if place >= first_slot and last[place] == step]
            free += [slots[place] for place in ended]
            over = [slots[place] for place in ended if place in fresh]
            slots.append(free.pop() if free else width)
            width = max(width, slots[-1] + 1)
            steps.append((function, pick, len(places) == 1, logical, slots[-1]))
            in_place.append(steps[-1])
            if xp is np and dtype.kind == "f" and isinstance(function, np.ufunc) and not logical:
                fresh.add(first_slot + step)
                if over and self.arity == 1:  # all arrays have one shape
                    write = _writing(function) if function in (np.maximum, np.minimum) else function
                    into = operator.itemgetter(*[slots[place] for place in places], over[0])
                    in_place[-1] = write, into, False, False, slots[-1]
        empty = [None] * (width - first_slot)
        answer = slots[register(self.result)] if len(self.results) == 1 and isinstance(self.result, int) else None

        def run(*arrays: Array) -> Any:
            registers: list[Any] = [*arrays, *constants, *empty]
            for function, pick, single, logical, slot in steps if arrays[0].nbytes < LARGE else in_place:
                value = function(pick(registers)) if single else function(*pick(registers))
                registers[slot] = value.astype(dtype) if logical else value
            if answer is not None:
                return registers[answer]
            return self._results(xp, [*arrays, *[registers[slot] for slot in slots[first_slot:]]])

        return run

    def _functions(self, xp: ArrayModule) -> list[Resolved]:
        if self._resolved[0] is not xp:
            self._resolved = (xp, [(prim.resolve(xp), args, prim.logical) for prim, args in self.code])
        return self._resolved[1]

    def _on_integers(self, xp: ArrayModule, arrays: Sequence[Array]) -> Any:
        dtype = arrays[0].dtype
        wide, constants = self._integer_dtype(dtype)
        registers = [array.astype(wide) for array in arrays]
        for (prim, args), numbers in zip(self.code, constants):
            value = prim.resolve(xp, not is_floating(wide))(*[
                registers[a] if isinstance(a, int) else number_on(xp, each, wide) for a, each in zip(args, numbers)])
            registers.append(value.astype(wide) if prim.logical else value)
        result = self._results(xp, registers)
        return result if is_floating(wide) or dtype.kind == "b" else result.astype(dtype, copy=False)

    def on_integers(self, xp: ArrayModule, ins: Sequence[Array], out: Array) -> Callable[[], object] | None:
        """A function without arguments that computes an expression of one instruction, on integer arrays of the host,
        into ``out``; None if it cannot be computed in their dtype."""
        dtype = out.dtype
        if (xp is not np or dtype.kind not in "iu" or len(self.code) != 1 or self.results != (self.arity,)
                or not self.exact or any(array.dtype != dtype for array in ins)):
            return None
        prim, args = self.code[0]
        if prim.logical:
            return None
        function, (wide, constants) = prim.resolve(np, True), self._integer_dtype(dtype)
        if wide != dtype or not isinstance(function, np.ufunc):
            return None
        values = [ins[a] if isinstance(a, int) else number_on(np, each, dtype) for a, each in zip(args, constants[0])]
        return functools.partial(function, *values, out=out)

    @property
    def exact(self) -> bool:
        """Whether integers give integers: every instruction does, or the only one has a form for integers, and all
        constants are integers that fit into int64."""
        alone = len(self.code) == 1
        return all((prim.exact or (alone and prim.integer_function is not None))
                   and all(isinstance(a, int) or (a.is_integer() and abs(a) < _REACH) for a in args)
                   for prim, args in self.code)

    def _integer_dtype(self, dtype: np.dtype) -> tuple[np.dtype, list[list[float]]]:
        """The dtype in which arrays of an integer dtype are computed, wide enough for all constants, and the arguments
        of each instruction with the constants converted to Python's int or float."""
        if dtype not in self._kinds:
            wide: np.dtype = np.dtype(np.float64)
            number: type[float] = float
            if self.exact:
                constants = [int(a) for _, args in self.code for a in args if isinstance(a, float)]
                wide, number = np.dtype(np.int64), int
                if dtype.kind != "b" and all(a == np.int64(a).astype(dtype) for a in constants):
                    wide = dtype
            self._kinds[dtype] = wide, [[a if isinstance(a, int) else number(a) for a in args] for _, args in self.code]
        return self._kinds[dtype]

    def _results(self, xp: ArrayModule, registers: Sequence[Array]) -> Any:
        """The result, or a tuple of several."""
        results = tuple([registers[result] if isinstance(result, int) else
                         xp.full(registers[0].shape, result, registers[0].dtype) for result in self.results])
        return results if len(results) > 1 else results[0]

    @property
    def draws(self) -> set[int | float]:
        """The inputs that are draws of random numbers, arrays of their own shape and dtype; see ``counting``."""
        return {args[1] for prim, args in self.code if prim is KEPT}

    @property
    def used(self) -> list[int]:
        """The inputs that are read."""
        read = {a for a in (*self.results, *[a for _, args in self.code for a in args]) if isinstance(a, int)}
        return [i for i in range(self.arity) if i in read]

    def lower(self, *ins: Value, broadcasts: bool = False) -> Value:
        """The same computation by operators on values, which have one shape unless ``broadcasts`` is true."""
        registers = list(ins)
        for prim, args in self.code:
            values = [registers[a] if isinstance(a, int) else a for a in args]
            registers.append(lowered(prim, values, broadcasts))
        if isinstance(self.result, float):
            return ops._plus_scalar(ops.zeros_like(ins[0]), scalar=self.result)
        return registers[self.result]


# Python's operators for these work on values.
_PYTHON = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def lowered(prim: Primitive, args: Sequence[Value | float], broadcasts: bool) -> Value:
    """Apply a primitive to values by its operator."""
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


def compiled(inputs: Sequence[Term], *terms: Operand) -> Expression:
    """The expression of several terms. Its last instruction gives the first term, which no other term may use."""
    code, registers = _compile(inputs, *terms[1:], terms[0])
    return Expression.of(len(inputs), code, [registers[-1], *registers[:-1]])


def accepting(expression: Callable[[Attrs], Expression | None], accepts: Callable[[Expression, Call], str | None]
              ) -> Callable[[Call], str | None]:
    """The ``accepts`` of a kernel that needs the operator's expression: it declines attributes without one."""

    def declined(call: Call) -> str | None:
        scalar = expression(call.attrs)
        return "there is no expression for these attributes" if scalar is None else accepts(scalar, call)

    return declined


def trace(function: Callable[..., Operand], arity: int) -> Expression:
    """The expression of a Python function of terms."""
    inputs = [Term(None, (i,)) for i in range(arity)]
    return Expression(inputs, function(*inputs))


def extracted(expression: Expression, results: Sequence[int | float], known_registers: Sequence[int],
              first: Sequence[int] = ()) -> tuple[Expression, list[int]]:
    """The instructions that compute ``results`` from known registers, as an expression, and the registers it reads.

    ``first`` are known registers that become inputs in any case, before the others.

    Examples
    --------
    >>> whole = trace(lambda x, y: exp(x) * (y + 1.0), 2)
    >>> extracted(whole, [3], range(2))
    (add(0, 1.0), [1])
    """
    arity, code = expression.arity, expression.code
    ends, read = {*known_registers}, {*first}
    needed: set[int] = set()
    stack = [r for r in results if isinstance(r, int)]
    while stack:
        register = stack.pop()
        if register in ends:
            read.add(register)
        elif register not in needed:
            needed.add(register)
            stack += [a for a in code[register - arity].args if isinstance(a, int)]
    inputs = [*first, *sorted(read - {*first})]
    places: dict[int | float, int] = {register: i for i, register in enumerate(inputs)}
    taken: list[Instruction] = []
    for register in sorted(needed):
        prim, args = code[register - arity]
        places[register] = len(inputs) + len(taken)
        taken.append(Instruction(prim, tuple([places[a] if isinstance(a, int) else a for a in args])))
    return Expression.of(len(inputs), taken, [places[r] if isinstance(r, int) else r for r in results]), inputs


def derive(expression: Expression, wrt: int, output: bool = False) -> Expression:
    """The expression ``(g, *inputs) -> g * d result / d input[wrt]``; with ``output``, its last input is the result.

    Examples
    --------
    >>> derive(trace(lambda x: x * x * x, 1), 0)(np, np.ones(1), np.full(1, 2.0))
    array([12.])
    >>> derive(trace(tanh, 1), 0, output=True)
    square(2) subtract(1.0, 3) multiply(0, 4)
    """
    assert expression.term is not None, "an expression of instructions has no derivative"
    g, result = Term(None, (-1,)), Term(None, (-2,))
    order = in_order(expression.term)
    target = expression.inputs[wrt]
    depends = {id(target)}
    for term in order:
        if term.prim and any(id(arg) in depends for arg in term.args):
            depends.add(id(term))
    grads: dict[int, Operand] = {id(expression.term): g}
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

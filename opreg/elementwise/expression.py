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
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.array_module import number_on
from ..core.host_memory import LARGE
from ..core.keys import exact
from ..core.launch import Call
from ..core.registry import ops
from ..core.rules import Attrs
from ..core.slots import Slot
from ..core.spec import is_floating
from ..core.value import Value, forms
from ..typing import Array, ArrayModule
from .primitives import *  # noqa: F403  # formulas import primitives and expressions from here
from .primitives import KEPT, Operand, Primitive, Term
from .settings import Answers, Setting

__all__ = ["Expression", "Instruction", "OpenExpressions", "Resolved", "trace", "derive", "accepts_expression",
           "compiled", "extract_registers", "sort_terms", "apply_operator"]

# Integers smaller than this in size fit into int64.
_REACH = 2.0 ** 63
#: The value of an expression on large arrays of the host, a function of the expression and the arrays.
IN_TILES = Slot("operators")


class Instruction(NamedTuple):
    """A primitive and its arguments: registers as ints, of which inputs are the first, and constants as floats."""

    prim: Primitive
    args: tuple[int | float, ...]


def sort_terms(*terms: Operand) -> list[Term]:
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
    for term in sort_terms(*terms):
        if term.prim is None:
            continue
        operands: tuple[Any, ...] = term.args
        args: tuple[Any, ...] = tuple([registers[id(arg)] if isinstance(arg, Term) else
                                       arg if isinstance(arg, Setting) else float(arg) for arg in operands])
        # the number 1.0 differs from register 1, and 0.0 from -0.0
        key = (term.prim, *[arg if isinstance(arg, Setting) else exact(arg) for arg in args])
        if key not in registers_of:
            code.append(Instruction(term.prim, args))
            registers_of[key] = len(inputs) + len(code) - 1
        registers[id(term)] = registers_of[key]
    return code, [registers[id(term)] if isinstance(term, Term) else float(term) for term in terms]


#: Primitives that are faster in tiles even if they are the only instruction.
_SLOW_ALONE = frozenset({"maximum", "minimum", "where"})

#: An instruction as it is run: a function of arrays, its arguments, and whether the result is 0 or 1.
Resolved: TypeAlias = tuple[Callable[..., Array], tuple[int | float, ...], bool]


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
        depend on the arrays. Large arrays of the host are computed in tiles.

        Examples
        --------
        >>> trace(lambda x: maximum(x, 0.0), 1).on(np, np.dtype("float32"))(np.float32([-1, 2]))
        array([0., 2.], dtype=float32)
        """
        return self.open(xp, dtype)(self.constants(xp, dtype))

    def open(self, xp: ArrayModule, dtype: np.dtype) -> Callable[[Sequence[Any]], Callable[..., Any]]:
        """A function that takes ``constants``, and returns the function that ``on`` returns for them."""
        given = self._bind_functions(xp, dtype, self._functions(xp))
        if xp is not np or not self.code or (len(self.code) == 1 and self.code[0].prim.name not in _SLOW_ALONE):
            return given
        settings = any(isinstance(a, Setting) for _, args in self.code for a in args)
        in_tiles = IN_TILES.function
        least = 8 * LARGE if settings else LARGE  # a schedule for new numbers takes as long as some tiles

        def at(constants: Sequence[Any]) -> Callable[..., Any]:
            function, expression = given(constants), self._filled(constants) if settings else self

            def compute(*arrays: Array) -> Any:
                return function(*arrays) if arrays[0].nbytes < least else in_tiles(expression, arrays)

            return compute

        return at

    def _filled(self, constants: Sequence[Any]) -> Expression:
        """The expression with other constants."""
        numbers = map(float, constants)
        return Expression.of(self.arity, [Instruction(prim, tuple([a if isinstance(a, int) else next(numbers)
                                                                   for a in args])) for prim, args in self.code],
                             self.results)

    def constants(self, xp: ArrayModule, dtype: np.dtype) -> list[Any]:
        """The constants of all instructions, in the form in which the function of ``on`` holds them; settings as they
        are.

        On the host, a ufunc takes half as long for a constant in an array of one element as for a Python number; a
        device gets constants with the launch of the kernel.
        """
        return [a if xp is not np or isinstance(a, Setting) else np.asarray(a, dtype)
                for _, args in self.code for a in args if not isinstance(a, int)]

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
        functions = [(prim.resolve(np, True), args, prim.logical) for prim, args in self.code]
        return self._bind_functions(np, dtype, functions)(self.constants(np, dtype))

    def _bind_functions(self, xp: ArrayModule, dtype: np.dtype, functions: Sequence[Resolved]
                        ) -> Callable[[Sequence[Any]], Callable[..., Any]]:
        count = sum([not isinstance(a, int) for _, args in self.code for a in args])
        if len(functions) == 1 and self.result == self.arity and not functions[0][2]:
            function, args, _ = functions[0]
            inputs = [a if isinstance(a, int) else None for a in args]
            if inputs == list(range(self.arity)):
                return lambda constants: function
            if inputs == [None, 0] and self.arity == 1:
                return lambda constants: functools.partial(function, constants[0])
            if inputs == [0, None] and self.arity == 1:
                return lambda constants: lambda x: function(x, constants[0])
        # Registers are the inputs, then the constants, then the results of instructions.
        first_slot = self.arity + count
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
        for step, ((function, _, logical), places) in enumerate(zip(functions, read)):
            pick = operator.itemgetter(*[slots[place] for place in places])
            free += [slots[place] for place in {*places} if place >= first_slot and last[place] == step]
            slots.append(free.pop() if free else width)
            width = max(width, slots[-1] + 1)
            steps.append((function, pick, len(places) == 1, logical, slots[-1]))
        empty = [None] * (width - first_slot)
        answer = slots[register(self.result)] if len(self.results) == 1 and isinstance(self.result, int) else None

        def run(constants: Sequence[Any], *arrays: Array) -> Any:
            registers: list[Any] = [*arrays, *constants, *empty]
            for function, pick, single, logical, slot in steps:
                value = function(pick(registers)) if single else function(*pick(registers))
                registers[slot] = value.astype(dtype) if logical else value
            if answer is not None:
                return registers[answer]
            return self._results(xp, [*arrays, *[registers[slot] for slot in slots[first_slot:]]])

        return lambda constants: functools.partial(run, constants)

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
            registers.append(apply_operator(prim, values, broadcasts))
        if isinstance(self.result, float):
            return ops._plus_scalar(ops.zeros_like(ins[0]), scalar=self.result)
        return registers[self.result]


class OpenExpressions(NamedTuple):
    """The expressions of an operator of one input and of its gradient, traced with settings.

    Attributes
    ----------
    answers : Answers
        The answers that the settings gave; they tell for which numbers the expressions hold.
    forward : Expression
        The operator.
    slope : Expression or None
        Its gradient, None if that is zero.
    used : list of int
        The inputs of ``slope``, among the output gradient, the input and the output.
    """

    answers: Answers
    forward: Expression
    slope: Expression | None
    used: list[int]


# Python's operators for these work on values.
_PYTHON = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def apply_operator(prim: Primitive, args: Sequence[Value | float], broadcasts: bool) -> Value:
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


def accepts_expression(expression: Callable[[Attrs], Expression | None],
                       accepts: Callable[[Expression, Call], str | None]) -> Callable[[Call], str | None]:
    """The ``accepts`` of a kernel that needs the operator's expression: it declines attributes without one."""

    def declined(call: Call) -> str | None:
        scalar = expression(call.attrs)
        return "there is no expression for these attributes" if scalar is None else accepts(scalar, call)

    return declined


def trace(function: Callable[..., Operand], arity: int) -> Expression:
    """The expression of a Python function of terms."""
    inputs = [Term(None, (i,)) for i in range(arity)]
    return Expression(inputs, function(*inputs))


def extract_registers(expression: Expression, results: Sequence[int | float], known_registers: Sequence[int],
                      first: Sequence[int] = ()) -> tuple[Expression, list[int]]:
    """The instructions that compute ``results`` from known registers, as an expression, and the registers it reads.

    ``first`` are known registers that become inputs in any case, before the others.

    Examples
    --------
    >>> whole = trace(lambda x, y: exp(x) * (y + 1.0), 2)
    >>> extract_registers(whole, [3], range(2))
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
    order = sort_terms(expression.term)
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

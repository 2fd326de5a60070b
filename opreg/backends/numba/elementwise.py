"""Element-wise expressions compiled with numba: each element is read once and written once, in vector registers and on
all cores.

The instructions are those of ``vector``. Arithmetic and comparisons give the same bits as NumPy; exponentials and the
like may differ in the last one or two. For when functions are compiled, where they are cached, and how to choose
kernels, see ``compiler``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core.cache import cached
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import is_numpy_float
from opreg.elementwise.expression import Expression, accepts_expression
from opreg.errors import ArgumentError
from opreg.typing import Array, ArrayModule

from ..addressing import joined_axes, operands_of
from .compiler import Function, function_of, mode, runner, steps, unavailable
from .values import FORMATS
from .vector import DETOURS, VECTOR

__all__ = ["Arrangement", "Layout", "arrange", "attach", "bound", "fuses"]

# The least number of elements for fewer than three instructions, since their calls cost no more than that of a
# function.
_LEAST = 1 << 10
# The greatest number of inputs: fused groups have no more, and a sum of thousands would compile for minutes.
_INPUTS = 1 << 8
# The least number of elements in a row for an inner loop to pay.
_ROW = 16
# Primitives that even alone are faster compiled than in NumPy.
_COMPILED_SINGLY = frozenset({"maximum", "minimum", "exp", "erf", "erfinv", "where"})


# ---------------------------------------------------------------------------------------------------- layout


class Layout(NamedTuple):
    """The properties of its arrays that a compiled function depends on; everything else is in the table that it reads.

    Attributes
    ----------
    ins, outs : tuple of int
        For each input and output, the index of its array; an output that uses an input's memory has that input's index.
        None for an output that is not read.
    inner : tuple of bool
        For each array, whether it is contiguous along the last axis; if not, it has the same value along it.
    axes : int
        The number of axes, 1 to 3, after neighbouring ones are joined where all strides allow it.
    """

    ins: tuple[int, ...]
    outs: tuple[int | None, ...]
    inner: tuple[bool, ...]
    axes: int


class Arrangement(NamedTuple):
    """Arrays with the ``sizes`` of the axes, and the ``strides`` in elements by axis and array."""

    layout: Layout
    arrays: list[Array]
    sizes: list[int]
    strides: list[tuple[int, ...]]


def arrange(ins: Sequence[Array], outs: Sequence[Array | None]) -> Arrangement | str:
    """How a compiled function accesses arrays that broadcast, or the reason why it cannot.

    Examples
    --------
    >>> x, y = np.zeros((5, 4, 32)), np.zeros((5, 4, 32))
    >>> arrange([x, x[:, :1, :1]], [y]).layout
    Layout(ins=(0, 1), outs=(2,), inner=(True, False, True), axes=2)
    >>> arrange([x.T], [np.zeros((32, 4, 5))])
    'input 0 is not contiguous along its last axis'
    """
    result = operands_of(ins, outs)
    if isinstance(result, str):
        return result
    if not all(array.flags.aligned for array in result.arrays):
        return "an array is not aligned"
    if not all(out is None or out.flags.writeable for out in outs):
        return "an output is read-only"
    shape = next(out.shape for out in outs if out is not None)
    sizes, strides = joined_axes(shape, result.steps)
    for number, stride in enumerate(strides[-1]):
        if stride not in (0, 1) or (stride == 0 and number in result.outs):
            return (f"input {result.ins.index(number)} is not contiguous along its last axis" if number in result.ins
                    else "odd output")
    if len(sizes) > 3:
        return f"arrays that are run through along {len(sizes)} axes"
    layout = Layout(result.ins, result.outs, tuple(stride == 1 for stride in strides[-1]), len(sizes))
    return Arrangement(layout, result.arrays, sizes, strides)


# ------------------------------------------------------------------------------------------------ source text


@cached(256)
def _source(expression: Expression, layout: Layout) -> tuple[str, list[float]]:
    """The text of a function ``kernel(table, first, last)`` and the constants it reads.

    The table holds the addresses of the arrays and of the constants, the sizes of all axes but the first, and for all
    axes but the last the strides of every array. A call computes the rows from ``first`` to ``last``, where all axes
    but the last count as one; with a single axis, the elements.
    """
    count, axes = len(layout.inner), layout.axes
    constants: dict[str, int] = {}
    names = {i: f"x{number}" for i, number in enumerate(layout.ins)}
    body = []

    def name(register: int | float) -> str:
        if isinstance(register, int):
            return names[register]
        return f"c{constants.setdefault(repr(register), len(constants))}"

    for position, (prim, args) in enumerate(expression.code):
        names[expression.arity + position] = f"r{position}"
        body.append(f"r{position} = {prim.name}({', '.join(map(name, args))})")
    results = [name(register) for register in expression.results]
    read = sorted({layout.ins[i] for i in expression.used})
    fixed = [f"a{n} = address(table[{n}])" for n in range(count)] + [f"c = address(table[{count}])"]
    fixed += [f"c{n} = c[{n}]" for n in range(len(constants))]
    offset = {n: "" if axes == 1 else f"o{n}" for n in range(count)}
    outer = [f"x{n} = load(a{n}, {offset[n] or 0}, {n}, {count})" for n in read if not layout.inner[n]]
    index = {n: f"{offset[n]} + i" if offset[n] else "i" for n in range(count)}
    inner = [f"x{n} = load(a{n}, {index[n]}, {n}, {count})" for n in read if layout.inner[n]]
    inner += body + [f"store(a{n}, {index[n]}, {result}, {n}, {count})"
                     for n, result in zip(layout.outs, results) if n is not None]
    if axes == 1:
        lines = [*fixed, *outer, "for i in range(first, last):", *_indent(inner)]
    else:
        sizes = count + 1
        fixed += [f"n{axis} = table[{sizes + axis - 1}]" for axis in range(1, axes)]
        fixed += [f"s{axis}_{n} = table[{sizes + axes - 1 + axis * count + n}]"
                  for axis in range(axes - 1) for n in range(count)]
        if axes == 2:
            starts = [f"o{n} = row * s0_{n}" for n in range(count)]
        else:
            starts = ["j = row // n1", "k = row - j * n1"] + [f"o{n} = j * s0_{n} + k * s1_{n}" for n in range(count)]
        lines = [*fixed, "for row in range(first, last):",
                 *_indent([*starts, *outer, f"for i in range(n{axes - 1}):", *_indent(inner)])]
    return "\n".join(["def kernel(table, first, last):", *_indent(lines), ""]), [float(text) for text in constants]


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# ------------------------------------------------------------------------------------------------- functions


def _function(expression: Expression, dtype: np.dtype, layout: Layout) -> tuple[Function, list[float]]:
    source, constants = _source(expression, layout)
    return function_of(source, dtype, len(expression.code)), constants


def bound(expression: Expression, ins: Sequence[Array], outs: Sequence[Array]) -> Callable[[], None]:
    """A function without arguments that computes an expression of ``ins`` into ``outs``; it is compiled at once.

    Raises
    ------
    ArgumentError
        When the arrays have a layout that is not supported.
    """
    arrangement = arrange(ins, outs)
    if isinstance(arrangement, str):
        raise ArgumentError(arrangement)
    function, constants = _function(expression, outs[0].dtype, arrangement.layout)
    function.compile()
    return _runner(function, arrangement, constants)


def _runner(function: Function, arrangement: Arrangement, constants: Sequence[float]) -> Callable[[], None]:
    sizes, strides = arrangement.sizes, arrangement.strides
    numbers = np.array(constants or [0.0], function.dtype)
    extents = [*sizes[1:], *[step for steps in strides[:-1] for step in steps]]
    total = sizes[0] * sizes[1] if len(sizes) == 3 else sizes[0]
    return runner(function, [*arrangement.arrays, numbers], extents, total, math.prod(sizes) // total)


# ------------------------------------------------------------------------------------------------- attaching


def _declines(expression: Expression, call: Call) -> str | None:
    """The reason why a call of an operator with an expression is not compiled, or None."""
    out = next(out for out in call.outs if out is not None)
    if any(array is not None and array.dtype not in FORMATS for array in (*call.ins, *call.outs)):
        return f"dtype {out.dtype}: functions are compiled for float32 and float64"
    if any(array is not None and array.dtype != out.dtype for array in (*call.ins, *call.outs)):
        return "dtypes differ"
    if not expression.code or out.size == 0:
        return "nothing to compute"
    if expression.arity > _INPUTS:
        return f"{expression.arity} inputs would take long to compile"
    for prim, _ in expression.code:
        if prim.name not in VECTOR or (prim.name == "power" and out.dtype == np.float64):
            return f"{prim.name} has no vectorised form" + " in float64" * (prim.name == "power")
    arrangement = call.details = arrange(call.ins, call.outs)
    if isinstance(arrangement, str):
        return arrangement
    return _gains_nothing(expression, out, arrangement) if mode() == "auto" else None


def _gains_nothing(expression: Expression, out: Array, arrangement: Arrangement) -> str | None:
    """The reason why the ufuncs are as fast, or None."""
    names = [prim.name for prim, _ in expression.code]
    if len(names) < 3 and out.size < _LEAST:
        return f"{out.size} elements are too few"
    if len(names) == 1 and names[0] not in _COMPILED_SINGLY:
        return f"{names[0]} alone is as fast as a ufunc"
    if out.dtype == np.float32 and 3 * sum(name in DETOURS for name in names) > len(names):
        return f"{next(name for name in names if name in DETOURS)} is faster as a ufunc"
    if len(arrangement.sizes) > 1 and arrangement.sizes[-1] < _ROW:
        return f"rows of {arrangement.sizes[-1]} numbers are too short"
    return None


def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether to fuse operators on arrays of a module and a dtype; a group that is not compiled is computed by ufuncs,
    tile by tile."""
    return xp is np and is_numpy_float(dtype)


def attach(op: Op, expression: Callable[[Attrs], Expression],
           ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator with an expression, a function of its attributes, the kernel ``numba``; until the function is
    compiled, the steps of ``ufuncs`` run."""

    @op.kernel("numba", bound=True, accepts=accepts_expression(
        expression, lambda scalar, call: unavailable(call) or _declines(scalar, call)), rank=Rank.COMPILED)
    def elementwise_numba(call: Call) -> list[Callable[[], object]]:
        scalar, arrangement = expression(call.attrs), call.details
        assert isinstance(arrangement, Arrangement)
        function, constants = _function(scalar, arrangement.arrays[0].dtype, arrangement.layout)
        return steps(function, functools.partial(_runner, function, arrangement, constants),
                     functools.partial(ufuncs, call))

"""Loops: arithmetic over the elements of an array with reductions over sets of them, described once for all back ends.

A set is the elements along some axes: a row, a channel, a sample. A loop computes a function of terms that may contain
reductions over sets, see ``rows``. ``Sets`` is such a function together with the axes of the sets; for arrays of a
given shape it becomes a ``Loop``, from which back ends generate kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.cache import cached
from ..core.registry import ops
from ..core.spec import ANY, Shape, reduced_axes, show
from ..core.value import Value
from ..errors import ShapeError
from .expression import Expression, Operand, Term, compiled, equal, lowered
from .rows import REDUCTIONS, RowExpression, RowLayout, row_sum, trace_rows

__all__ = ["Loop", "Sets", "check_some", "folded", "gradient_of", "lower", "reduced", "sets"]


class Sets(NamedTuple):
    """An expression with reductions over sets, and the axes of the sets, for arrays of any shape.

    Attributes
    ----------
    rows : RowExpression
        The expression; its rows are the sets.
    axis, exclude
        The axes that a set lies along, or with ``exclude`` all but these, as in the operator ``sum``.
    keepdims : bool
        Whether results with one value per set keep the reduced axes, with length 1.
    integer_dtype : str
        The dtype in which integers are computed.
    scalar : bool
        Whether the rules are NumPy's: ``axis=()`` names no axes, and a value of all elements has rank zero.
    groups : int or None
        The number of groups that the second axis is divided into, 0 for one of each place. Then arrays have the axes
        samples, groups, and elements of a group.
    """

    rows: RowExpression
    axis: int | tuple[int, ...] | None
    exclude: bool
    keepdims: bool = True
    integer_dtype: str = "int64"
    scalar: bool = False
    groups: int | None = None

    def on(self, shapes: Sequence[Shape], folds: bool = True) -> Loop:
        """The loop over inputs of these shapes, with neighbouring axes joined or as they are."""
        shape, axes = self._seen(shapes)
        folds = (folds or not axes) and RowLayout.CYCLE not in self.rows.inputs
        loop = _loop(self.rows, shape, axes, self.keepdims, self.integer_dtype, folds, self.scalar)
        if self.groups is None:
            return loop
        data = shapes[self.rows.inputs.index(RowLayout.ELEMENT)]
        return loop._replace(results=tuple([data if along is RowLayout.ELEMENT else result
                                            for along, result in zip(self.rows.results, loop.results)]))

    def results(self, shapes: Sequence[Shape]) -> list[Shape]:
        """The shapes of the results for inputs of these shapes; empty sets have no maximum or minimum."""
        shape, axes = self._seen(shapes)
        if self.reduces and any(prim.name in ("row_max", "row_min") for prim, _ in self.rows.expression.code):
            check_some(shape, axes)
        return _results(self.rows, shape, axes, self.keepdims, self.scalar)

    @property
    def reduces(self) -> bool:
        """Whether all results have one value per set."""
        return all(along is RowLayout.ROW for along in self.rows.results)

    def _seen(self, shapes: Sequence[Shape]) -> tuple[Shape, tuple[int, ...]]:
        """The shape of an input with one value per element, and the axes of the sets in it."""
        shape = shapes[self.rows.inputs.index(RowLayout.ELEMENT)]
        if self.groups is not None:
            groups = self.groups or shape[1]
            shape = (shape[0], groups, shape[1] // max(groups, 1) * math.prod(shape[2:]))
        named = self.axis != () or not self.scalar
        return shape, reduced_axes(self.axis, self.exclude, len(shape)) if named else ()


def sets(function: Callable[..., Any], axis: int | tuple[int, ...] | None,
         inputs: tuple[RowLayout, ...] = (RowLayout.ELEMENT,), exclude: bool = False, keepdims: bool = True,
         integer_dtype: str = "int64", scalar: bool = False, groups: int | None = None, **settings: Any) -> Sets:
    """The ``Sets`` of a function, which takes a term for each input and returns one or several.
    A ``column_sum`` has the lengths of the axes of a set; of a term with one value per set it has the shape (1,).

    ``inputs`` says whether an input has a value for each element, set or place in a set; ``settings`` are passed to the
    function. For the other parameters see ``Sets``.

    Examples
    --------
    >>> sets(lambda x: (x, row_sum(x)), -1).on([(2, 3)]).results
    ((2, 3), (2, 1))
    >>> sets(row_sum, 1, keepdims=False).results([(2, 3, 4)])
    [(2, 4)]
    """
    return Sets(trace_rows(function, inputs, **settings), axis, exclude, keepdims, integer_dtype, scalar, groups)


def check_some(shape: Shape, axes: Sequence[int]) -> None:
    """Refuse axes of length zero."""
    for axis in axes:
        if shape[axis] is not ANY and shape[axis] == 0:
            raise ShapeError(f"axis {axis} of {show(shape)} has length zero: there is no element to choose")


def reduced(shape: Shape, axes: Sequence[int], keepdims: bool, scalar: bool = False) -> Shape:
    """The shape after a reduction; without any axes left it is ``(1,)``, or ``()`` with ``scalar``.

    Examples
    --------
    >>> reduced((2, 3, 4), (0, 2), False), reduced((2, 3), (0, 1), False), reduced((2, 3), (1,), True)
    ((3,), (1,), (2, 1))
    """
    if keepdims:
        return tuple([1 if i in axes else dim for i, dim in enumerate(shape)])
    return tuple([dim for i, dim in enumerate(shape) if i not in axes]) or (() if scalar else (1,))


class Loop(NamedTuple):
    """A row expression over arrays of a given shape.

    Attributes
    ----------
    rows : RowExpression
        The expression.
    view : tuple of int
        The shape to which arrays of elements are reshaped. If axes are folded, reduced and other axes alternate in it.
    axes : tuple of int
        The axes of the view that a set lies along.
    results : tuple of Shape
        The shapes of the results.
    integer_dtype : str
        The dtype that integers are computed in.
    """

    rows: RowExpression
    view: Shape
    axes: tuple[int, ...]
    results: tuple[Shape, ...]
    integer_dtype: str

    @property
    def size(self) -> int:
        """Number of elements of a set."""
        return math.prod([self.view[axis] for axis in self.axes])

    @property
    def elements(self) -> Expression | None:
        """The instructions as an ordinary expression, whose inputs broadcast in the view; None if there are reductions.
        The size of a set is a constant, and the place of an element in its set a further input, the last one, if
        ``numbers_places``.

        Examples
        --------
        >>> from opreg.elementwise.rows import row_size
        >>> both = (RowLayout.ELEMENT,) * 2
        >>> sets(lambda x, y: (x - y) / (row_size() * 2.0), 1, both).on([(2, 3), (2, 3)]).elements
        subtract(0, 1) divide(2, 6.0)
        """
        return _elements(self.rows, self.size)

    @property
    def numbers_places(self) -> bool:
        """Whether an instruction reads the place of an element in its set."""
        return any(prim.name == "column" for prim, _ in self.rows.expression.code)

    def place(self, reach: RowLayout) -> Shape:
        """The shape, in the view, of an input or a result that has one value per element, per set, per place in a set,
        or for all.

        Examples
        --------
        >>> loop = sets(lambda x: x - row_sum(x), 1).on([(2, 3, 4, 5)])
        >>> loop.view, loop.axes, loop.place(RowLayout.ROW), loop.place(RowLayout.COLUMN)
        ((2, 3, 20), (1,), (2, 1, 20), (1, 3, 1))
        """
        return _placed(reach, self.view, self.axes)


@cached(256)
def _elements(rows: RowExpression, size: int) -> Expression | None:
    expression = rows.expression
    if {*rows.results} != {RowLayout.ELEMENT} or any(prim.name in REDUCTIONS for prim, _ in expression.code):
        return None
    registers: list[Operand] = [Term(None, (i,)) for i in range(expression.arity)]
    places: list[Term] = []
    for prim, args in expression.code:
        operands = [registers[a] if isinstance(a, int) else a for a in args]
        if prim.name == "row_size":
            registers.append(float(size))
        elif prim.name == "column":
            places = places or [Term(None, (expression.arity,))]
            registers += places
        elif any(isinstance(operand, Term) for operand in operands):
            registers.append(Term(prim, tuple(operands)))
        else:
            registers.append(float(prim.resolve(np)(*operands)))
    inputs = [term for term in registers[:expression.arity] if isinstance(term, Term)]
    return compiled([*inputs, *places], *[registers[result] if isinstance(result, int) else result
                              for result in expression.results])


@cached(1024)
def _loop(rows: RowExpression, shape: Shape, axes: tuple[int, ...], keepdims: bool, integer_dtype: str, folds: bool,
          scalar: bool) -> Loop:
    view = folded(shape, axes) if folds else (shape, axes)
    return Loop(rows, *view, tuple(_results(rows, shape, axes, keepdims, scalar)), integer_dtype)


def _results(rows: RowExpression, shape: Shape, axes: Sequence[int], keepdims: bool, scalar: bool) -> list[Shape]:
    of = {RowLayout.ELEMENT: shape, RowLayout.ROW: reduced(shape, axes, keepdims, scalar),
          RowLayout.COLUMN: tuple([shape[axis] for axis in axes]), RowLayout.ALL: (1,)}
    return [of[along] for along in rows.results]


def _placed(reach: RowLayout, shape: Shape, axes: Sequence[int]) -> Shape:
    kept = {RowLayout.ELEMENT: (True, True), RowLayout.ROW: (False, True), RowLayout.COLUMN: (True, False)}
    within, among = kept.get(reach, (False, False))
    is_kept = [within if axis in axes else among or (reach is RowLayout.CYCLE and axis > 0)
               for axis in range(len(shape))]
    return tuple([n if keep else 1 for n, keep in zip(shape, is_kept)])


@cached(1024)
def folded(shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """A shape in which neighbouring axes are joined if both are reduced or neither is, and its reduced axes.

    The first axis of the result is never reduced, and at least one axis is.

    Examples
    --------
    >>> folded((2, 3, 4, 5), (1,)), folded((2, 3, 4), (2,)), folded((2, 3), (0,))
    (((2, 3, 20), (1,)), ((6, 4), (1,)), ((1, 2, 3), (1,)))
    """
    runs: list[tuple[int, bool]] = [(1, False)]
    for axis, n in enumerate(shape):
        reduced = axis in axes
        if n == 1:
            continue
        if runs[-1][1] is reduced:
            runs[-1] = runs[-1][0] * n, reduced
        else:
            runs.append((n, reduced))
    if not any(reduced for _, reduced in runs):
        runs.append((1, True))
    return tuple([n for n, _ in runs]), tuple([axis for axis, (_, reduced) in enumerate(runs) if reduced])


# --------------------------------------------------------------------------------------------- gradients

# Gradient of a reduction with respect to an element of a set: a function of the output gradient, the result, and the
# element. If several elements are the largest, each gets the integer_dtype gradient.
_REDUCTION_GRADIENTS: dict[str, Callable[[Operand, Term, Operand], Operand]] = {
    "row_sum": lambda g, y, x: g, "row_product": lambda g, y, x: g * y / x,
    "row_max": lambda g, y, x: g * equal(x, y), "row_min": lambda g, y, x: g * equal(x, y)}


@cached(256)
def gradient_of(rows: RowExpression, wrt: int, known: bool = False) -> Expression:
    """The gradient of an input as an expression of the output gradients, one for each result, then the inputs, and with
    ``known`` also the results.

    For an input with one value per set, the gradient is summed over the set. For an input with one value per place in a
    set, the caller still has to sum it over all sets.

    Examples
    --------
    >>> gradient_of(trace_rows(lambda x: x - row_sum(x), (RowLayout.ELEMENT,)), 0)
    negative(0) row_sum(2) add(0, 3)
    """
    expression, reach = rows.expression, rows.registers
    arity = expression.arity
    out_grads = [Term(None, (-1 - i,)) for i in range(len(expression.results))]
    terms = [Term(None, (i,)) for i in range(arity)]
    results = [Term(None, (arity + i,)) for i in range(len(out_grads))] if known else []
    for prim, args in expression.code:
        terms.append(Term(prim, tuple([terms[a] if isinstance(a, int) else a for a in args])))
        if known and len(terms) - 1 in expression.results:
            terms[-1] = results[expression.results.index(len(terms) - 1)]
    grads: dict[int, Operand] = {}

    def add(register: int, value: Operand, reader: RowLayout) -> None:
        if reach[register] is RowLayout.ROW and reader is RowLayout.ELEMENT:
            value = row_sum(value)
        grads[register] = grads[register] + value if register in grads else value

    for result, out_grad, along in zip(expression.results, out_grads, rows.results):
        if isinstance(result, int):
            add(result, out_grad, along)
    for register in range(len(terms) - 1, arity - 1, -1):
        prim, args = expression.code[register - arity]
        if register not in grads:
            continue
        g, y, operands = grads[register], terms[register], [terms[a] if isinstance(a, int) else a for a in args]
        parts: Sequence[Operand | None] = ()
        if prim.name in REDUCTIONS:
            parts = [_REDUCTION_GRADIENTS[prim.name](g, y, operands[0])]
        elif prim.derivative is not None:
            parts = prim.derivative(g, y, *operands)
        for a, part in zip(args, parts):
            if isinstance(a, int) and part is not None:
                add(a, part, RowLayout.ELEMENT if prim.name in ("row_sum", "row_product") else reach[register])
    return compiled([*out_grads, *terms[:arity], *results], grads.get(wrt, 0.0))


def lower(described: Sets, expression: Expression, *ins: Value) -> Value | None:
    """A computation over sets by operators on values, which broadcast against the elements; None if the result is
    zero."""
    if expression.result == 0.0 and isinstance(expression.result, float):
        return None
    registers: list[Any] = list(ins)
    for prim, args in expression.code:
        values = [registers[a] if isinstance(a, int) else a for a in args]
        if prim.name in REDUCTIONS:
            reduce = getattr(ops, _REDUCERS[prim.name])
            registers.append(reduce(values[0], axis=described.axis, exclude=described.exclude, keepdims=True))
        elif prim.name == "row_size":
            ones = ops.ones_like(ins[len(described.rows.results) + described.rows.inputs.index(RowLayout.ELEMENT)])
            registers.append(ops.sum(ones, axis=described.axis, exclude=described.exclude, keepdims=True))
        else:
            assert not all(isinstance(value, float) for value in values), f"{prim.name} is no operator"
            registers.append(lowered(prim, values, True))
    assert isinstance(expression.result, int)
    return registers[expression.result]


#: The operator for each reduction.
_REDUCERS = {"row_sum": "sum", "row_max": "max", "row_min": "min", "row_product": "prod"}

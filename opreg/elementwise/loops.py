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
from .expression import Expression, Operand, Term, apply_operator, compiled, equal
from .rows import REDUCTIONS, RowExpression, RowLayout, of_results, row_sum, trace_rows

__all__ = ["Loop", "Sets", "check_some", "fold_axes", "gradient_of", "gradients", "lower", "reduced", "sets"]


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
        The number of groups that the second axis is divided into; with 0, each place is a group. Then arrays have the
        axes samples, groups, and elements of a group.
    """

    rows: RowExpression
    axis: int | tuple[int, ...] | None
    exclude: bool
    keepdims: bool = True
    integer_dtype: str = "int64"
    scalar: bool = False
    groups: int | None = None

    def on(self, shapes: Sequence[Shape], ufuncs: bool = False) -> Loop:
        """The loop over inputs of these shapes. Neighbouring axes are joined, except for ``ufuncs`` where that would
        not help: they reduce any axes of an array as it lies, and loops without reductions are divided along the first
        axis."""
        shape, axes = self._shape_and_axes(shapes)
        lies = self.reduces or (0 in axes and not any(prim.name in REDUCTIONS for prim, _ in self.rows.expression.code))
        folds = not (ufuncs and lies and axes) and RowLayout.CYCLE not in self.rows.inputs
        loop = _loop(self.rows, shape, axes, self.keepdims, self.integer_dtype, folds, self.scalar)
        if self.groups is None:
            return loop
        data = shapes[self.rows.inputs.index(RowLayout.ELEMENT)]
        return loop._replace(results=tuple([data if along is RowLayout.ELEMENT else result
                                            for along, result in zip(self.rows.results, loop.results)]))

    def results(self, shapes: Sequence[Shape]) -> list[Shape]:
        """The shapes of the results for inputs of these shapes; empty sets have no maximum or minimum."""
        shape, axes = self._shape_and_axes(shapes)
        if self.reduces and any(prim.name in ("row_max", "row_min") for prim, _ in self.rows.expression.code):
            check_some(shape, axes)
        return _results(self.rows, shape, axes, self.keepdims, self.scalar)

    @property
    def reduces(self) -> bool:
        """Whether all results have one value per set."""
        return all(along is RowLayout.ROW for along in self.rows.results)

    def _shape_and_axes(self, shapes: Sequence[Shape]) -> tuple[Shape, tuple[int, ...]]:
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
        return _broadcast_shape(reach, self.view, self.axes)


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
    view = fold_axes(shape, axes) if folds else (shape, axes)
    return Loop(rows, *view, tuple(_results(rows, shape, axes, keepdims, scalar)), integer_dtype)


def _results(rows: RowExpression, shape: Shape, axes: Sequence[int], keepdims: bool, scalar: bool) -> list[Shape]:
    of = {RowLayout.ELEMENT: shape, RowLayout.ROW: reduced(shape, axes, keepdims, scalar),
          RowLayout.COLUMN: tuple([shape[axis] for axis in axes]), RowLayout.ALL: (1,)}
    return [of[along] for along in rows.results]


def _broadcast_shape(reach: RowLayout, shape: Shape, axes: Sequence[int]) -> Shape:
    kept = {RowLayout.ELEMENT: (True, True), RowLayout.ROW: (False, True), RowLayout.COLUMN: (True, False)}
    within, among = kept.get(reach, (False, False))
    is_kept = [within if axis in axes else among or (reach is RowLayout.CYCLE and axis > 0)
               for axis in range(len(shape))]
    return tuple([n if keep else 1 for n, keep in zip(shape, is_kept)])


@cached(1024)
def fold_axes(shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """A shape in which neighbouring axes are joined if both are reduced or neither is, and its reduced axes.

    The first axis of the result is never reduced, and at least one axis is.

    Examples
    --------
    >>> fold_axes((2, 3, 4, 5), (1,)), fold_axes((2, 3, 4), (2,)), fold_axes((2, 3), (0,))
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
# element. If several elements are the largest, each gets the whole gradient.
_REDUCTION_GRADIENTS: dict[str, Callable[[Operand, Term, Operand], Operand]] = {
    "row_sum": lambda g, y, x: g, "column_sum": lambda g, y, x: g, "row_product": lambda g, y, x: g * y / x,
    "row_max": lambda g, y, x: g * equal(x, y), "row_min": lambda g, y, x: g * equal(x, y)}


@cached(256)
def gradient_of(rows: RowExpression, wrt: tuple[int, ...], known: bool = False) -> Expression:
    """The gradients of inputs as an expression of the output gradients, one for each result, then the inputs, and with
    ``known`` also the results.

    For an input with one value per set, the gradient is summed over the set. For an input with one value per place in a
    set, or for several sets, the caller still has to sum it over these sets.

    Examples
    --------
    >>> gradient_of(trace_rows(lambda x: x - row_sum(x), (RowLayout.ELEMENT,)), (0,))
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
        if prim.name in _REDUCTION_GRADIENTS:
            parts = [_REDUCTION_GRADIENTS[prim.name](g, y, operands[0])]
        elif prim.derivative is not None:
            parts = prim.derivative(g, y, *operands)
        for a, part in zip(args, parts):
            if isinstance(a, int) and part is not None:
                add(a, part, RowLayout.ELEMENT if prim.name in ("row_sum", "row_product") else reach[register])
    return compiled([*out_grads, *terms[:arity], *results], *[grads.get(i, 0.0) for i in wrt])


def gradients(described: Sets, out_grads: Sequence[Value | None], ins: Sequence[Value], outs: Sequence[Value],
              needs: Sequence[bool]) -> list[Value | None]:
    """The gradients of the inputs of a loop, computed by operators; None where there is none.

    Examples
    --------
    >>> from opreg import nd
    >>> x, a = nd.array([[1.0, 2.0]]), nd.array([2.0])
    >>> described = sets(lambda x, a: x * row_sum(x) * a, -1, (RowLayout.ELEMENT, RowLayout.ALL))
    >>> [g.asnumpy().tolist() for g in gradients(described, [nd.ones((1, 2))], [x, a], [], (True, True))]
    [[[12.0, 12.0]], [9.0]]
    """
    present = [(i, g) for i, g in enumerate(out_grads) if g is not None]
    wanted = [i for i, need in enumerate(needs) if need]
    described = described._replace(rows=of_results(described.rows, tuple([g is not None for g in out_grads])))
    rows, known = described.rows, [outs[i] for i, _ in present] if described.reduces else []
    expression = gradient_of(rows, tuple(wanted), described.reduces)
    data = rows.inputs.index(RowLayout.ELEMENT)
    view = _View(described, ins[data])
    operands = [*zip([g for _, g in present], rows.results), *zip(ins, rows.inputs), *zip(known, rows.results)]
    used = {*expression.used, len(present) + data}
    read = [view.of(value, along) if i in used else (value, along) for i, (value, along) in enumerate(operands)]
    found: list[Value | None] = [None] * len(needs)
    for i, (value, varies) in zip(wanted, lower(view.described, expression, *read)):
        found[i] = None if value is None else view.back(value, varies, ins[i], rows.inputs[i])
    return found


class _View:
    """Values in shapes that broadcast against the elements of the sets.

    Attributes
    ----------
    described : Sets
        The loop over these shapes.
    data : Value
        The input with a value for each element.
    shape : tuple of int or None
        The shape of the elements as ``Reshape`` reads it, in which ``vector`` values lie along the last axis but one;
        None to leave the elements as they are.
    vector : RowLayout or None
        The layout of values that are one-dimensional, and lie along an axis of the elements.
    repeats : bool
        Whether values for sets are repeated for each element, since reductions may drop the axes of the sets.
    """

    __slots__ = ("described", "data", "shape", "vector", "repeats")

    def __init__(self, described: Sets, data: Value):
        rows, axis = described.rows, described.axis
        self.repeats = described.reduces and RowLayout.ROW not in rows.inputs and described.groups is None and (
            RowLayout.COLUMN not in rows.inputs)
        self.shape: tuple[int, ...] | None = None
        self.vector: RowLayout | None = None
        if described.groups is not None:
            self.shape = (0, described.groups, -1)
        elif RowLayout.COLUMN in (*rows.inputs, *rows.results):
            self.vector = RowLayout.COLUMN
        elif RowLayout.ROW in rows.inputs and described.exclude and not described.keepdims:
            self.vector = RowLayout.ROW
        if self.vector is not None:
            assert isinstance(axis, int)
            if axis >= 0:
                self.shape, described = (*[0] * axis, 0, -1), described._replace(axis=-2)
        self.described, self.data = described, data

    def of(self, value: Value, along: RowLayout) -> tuple[Value, RowLayout]:
        """An input or a result here, and its layout here."""
        described = self.described
        if along is RowLayout.ALL:
            return value, along
        if described.groups is not None and along is not RowLayout.ELEMENT:
            return ops.expand_dims(value, axis=2 if along is RowLayout.ROW else 1), along
        if along is RowLayout.ROW and self.repeats:
            return ops._backward_sum(value, self.data, axis=described.axis, keepdims=described.keepdims,
                                     exclude=described.exclude), RowLayout.ELEMENT
        if along is not self.vector:
            return value if self.shape is None else ops.Reshape(value, shape=self.shape), along
        assert isinstance(described.axis, int)
        behind = [1] * (-1 - described.axis)
        return ops.Reshape(value, shape=(-1, *behind)) if behind else value, along

    def back(self, value: Value, varies: Varies, like: Value, along: RowLayout) -> Value:
        """A gradient in the shape of its input, summed over the sets that share an element of it."""
        described, in_sets = self.described, along in (RowLayout.ELEMENT, RowLayout.COLUMN)
        if not varies.among or (in_sets and not varies.within):
            full, _ = self.of(self.data, RowLayout.ELEMENT)
            value = ops.broadcast_like(value, full if in_sets else _reduced_by("row_sum", described, full))
        if along is RowLayout.ALL:
            return ops.sum(value)
        if along in (RowLayout.COLUMN, RowLayout.CYCLE):
            return ops.sum(value, axis=1 if along is RowLayout.CYCLE else described.axis, exclude=True)
        moved = self.shape is not None or not (in_sets or described.keepdims)
        return ops.reshape_like(value, like) if moved else value


class Varies(NamedTuple):
    """Whether a value has an element for each place in a set, and for each set."""

    within: bool
    among: bool


def lower(described: Sets, expression: Expression, *operands: tuple[Value, RowLayout]
          ) -> list[tuple[Value | None, Varies]]:
    """A computation over sets by operators on values, which broadcast against the elements; None for results that are
    zero."""
    registers: list[Any] = [value for value, _ in operands]
    varies = [Varies(along in (RowLayout.ELEMENT, RowLayout.COLUMN), along in (RowLayout.ELEMENT, RowLayout.ROW))
              for _, along in operands]

    def size() -> Value:
        data = registers[len(described.rows.results) + described.rows.inputs.index(RowLayout.ELEMENT)]
        return _reduced_by("row_sum", described, ops.ones_like(data))

    for prim, args in expression.code:
        values: list[Any] = [registers[a] if isinstance(a, int) else a for a in args]
        read = [varies[a] for a in args if isinstance(a, int)]
        within, among = (any(several) for several in zip(*read)) if read else (False, False)
        if prim.name in REDUCTIONS:
            registers.append(_reduced_by(prim.name, described, values[0]) if within else
                             _reduced_of_equal(prim.name, values[0], size))
        elif prim.name == "row_size":
            registers.append(size())
        else:
            assert not all(isinstance(value, float) for value in values), f"{prim.name} is no operator"
            registers.append(apply_operator(prim, values, True))
        varies.append(Varies(within and prim.name not in REDUCTIONS, among or prim.name == "row_size"))
    assert not any(isinstance(result, float) and result for result in expression.results)
    return [(registers[result], varies[result]) if isinstance(result, int) else (None, Varies(False, False))
            for result in expression.results]


def _reduced_by(kind: str, described: Sets, value: Value) -> Value:
    """One value for each set, in the shape of the elements."""
    return getattr(ops, _REDUCERS[kind])(value, axis=described.axis, exclude=described.exclude, keepdims=True)


def _reduced_of_equal(kind: str, value: Value, size: Callable[[], Value]) -> Value:
    """The reduction of sets whose elements are equal."""
    if kind == "row_sum":
        return ops.broadcast_mul(value, size())
    return ops.broadcast_power(value, size()) if kind == "row_product" else value


#: The operator for each reduction.
_REDUCERS = {"row_sum": "sum", "row_max": "max", "row_min": "min", "row_product": "prod"}

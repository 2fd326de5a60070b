"""Joining and splitting of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Any

from ...core.attrs import Few, Limit
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Rule
from ...core.spec import ANY, Shape, check_axis, show, unify
from ...core.value import Value
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array
from ..layouts import by_axis
from ..outputs import common_shape, declare_input_shape, names_of_outputs
from ..samples import shift_axes
from .shape import declare_view

__all__ = ["MANY"]

#: Largest position by which an operator with any number of inputs names the unread ones.
MANY = 4096


def _axis_slice(axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


# ------------------------------------------------------------------------------------------------- Concat


def _joined(shapes: Sequence[Shape], dim: int) -> Shape:
    """The shape of arrays concatenated along an axis."""
    axis = check_axis(dim, len(shapes[0]), "dim")
    common: Any = None
    for shape in shapes:
        try:
            common = unify(common, (*shape[:axis], ANY, *shape[axis + 1:]))
        except ShapeError:
            raise ShapeError(f"expected shapes that differ along axis {axis} alone, got "
                             + ", ".join(show(shape) for shape in shapes)) from None
    return (*common[:axis], sum(shape[axis] for shape in shapes), *common[axis + 1:])


def _join_fill(ins: list, outs: list, dim: int, equal: bool) -> list:
    """Input shapes with dimensions filled in: those of other axes from the other inputs, and an unknown length along
    ``dim`` from the output. Several unknown lengths can be inferred only if they are ``equal``."""
    shapes = [shape for shape in (*ins, outs[0]) if shape is not None]
    if not shapes:
        return ins
    axis = check_axis(dim, len(shapes[0]), "dim")
    common: Any = None
    try:
        for shape in shapes:
            common = unify(common, (*shape[:axis], ANY, *shape[axis + 1:]))
    except ShapeError:
        return ins  # the shape rule reports inconsistent shapes
    ins = [unify(shape, common) for shape in ins]
    unsure = [i for i, shape in enumerate(ins) if shape[axis] is ANY]
    if unsure and (equal or len(unsure) == 1) and outs[0] is not None and outs[0][axis] is not ANY:
        missing = outs[0][axis] - sum(shape[axis] for i, shape in enumerate(ins) if i not in unsure)
        for position in unsure if missing % len(unsure) == 0 else ():
            ins[position] = (*ins[position][:axis], missing // len(unsure), *ins[position][axis + 1:])
    return ins


def _declare_joining(op: Op, function: str, axis: str) -> None:
    """Declare that an operator joins its inputs by a function of the array module, along the axis in the named
    attribute."""

    @op.kernel()  # no body: bodies use it to join
    def joining_xp(xp, *data, out=None, **attrs):
        return getattr(xp, function)(data, axis=attrs[axis], out=out)


def _declare_concat(name: str, aliases: tuple[str, ...], equal: bool = False) -> None:
    """Declare Concat, or its form for recurrent parameters, in which all unknown lengths are equal: they are the input
    weights of both directions."""

    @declare(name=name, cheap=True, aliases=aliases)
    def concat(*data, num_args: Few = 1, dim: int = 1):
        """The inputs concatenated along ``dim``."""

    shift_axes(concat, "dim")
    by_axis(concat, name="dim")

    @concat.fill
    def concat_fill(ins, outs, *, dim):
        return _join_fill(ins, outs, dim, equal)

    @concat.infer
    def concat_infer(*data, dim):
        return _joined(data, dim)

    _declare_joining(concat, "concatenate", "dim")

    @concat.grad
    def concat_grad(g, ins, outs, *, dim):
        if len(ins) == 1:
            return (g,)
        return tuple(ops._backward_Concat(g, *ins, num_args=len(ins) + 1, dim=dim))


_declare_concat("Concat", ("concat", "_sparse_concat"))
_declare_concat("_rnn_param_concat", ("_npi_rnn_param_concat",), True)


@declare(name="_backward_Concat", types="T,*U->*T", unread=range(1, MANY),
         outputs=lambda *, num_args: names_of_outputs(num_args - 1))
def concat_split(*data, num_args: Few = 2, dim: int = 1):
    """The first input split along ``dim`` into the shapes of the others."""


shift_axes(concat_split, "dim")


declare_input_shape(concat_split, 0, lambda g, *data, dim: (list(data), _joined(data, dim)))


def _pieces(g: Array, shapes: Sequence[Shape], dim: int) -> tuple[Array, ...]:
    axis = dim % g.ndim
    edges = accumulate((shape[axis] for shape in shapes), initial=0)
    return tuple([g[_axis_slice(axis, *edge)] for edge in pairwise(edges)])


declare_view(concat_split, lambda g, *parts, dim: functools.partial(_pieces, shapes=parts, dim=dim))


@concat_split.grad
def concat_split_grad(g, ins, outs, *, dim):
    gs = [g] if len(ins) == 2 else list(g)
    return (ops.Concat(*gs, num_args=len(gs), dim=dim), *[None] * (len(ins) - 1))


# -------------------------------------------------------------------------------------------------- stack


@declare(cheap=True, aliases=("_npi_stack",))
def stack(*data, axis: int = 0, num_args: Few = 1):
    """The inputs stacked along a new axis."""


shift_axes(stack, more=1)


@stack.fill
def stack_fill(ins, outs, *, axis):
    common: Any = None
    for shape in ins:
        common = unify(common, shape)
    if common is None and outs[0]:
        axis = check_axis(axis, len(outs[0]))
        common = (*outs[0][:axis], *outs[0][axis + 1:])
    return [common] * len(ins)


@stack.infer
def stack_infer(*data, axis):
    axis = check_axis(axis, len(data[0]) + 1)
    return (*data[0][:axis], len(data), *data[0][axis:])


_declare_joining(stack, "stack", "axis")


@stack.grad
def stack_grad(g, ins, outs, *, axis):
    parts = ops.SliceChannel(g, num_outputs=len(ins), axis=axis, squeeze_axis=True)
    return (parts,) if len(ins) == 1 else tuple(parts)


# --------------------------------------------------------------------------------------------------- split


def _parts(shape: Shape, axis: int, edges: Sequence[int], squeeze_axis: bool) -> list[Shape]:
    """Shapes of the parts of an axis between edges, which run from 0 to its length."""
    lengths = [stop - start for start, stop in pairwise(edges)]
    if not squeeze_axis:
        return [(*shape[:axis], length, *shape[axis + 1:]) for length in lengths]
    if any(length != 1 for length in lengths):
        raise ShapeError(f"squeeze_axis: the parts of axis {axis} of {show(shape)} have lengths "
                         f"{', '.join(map(str, lengths))}, expected 1 each")
    return [(*shape[:axis], *shape[axis + 1:])] * len(lengths)


def _cuts(array: Array, axis: int, edges: Sequence[int], squeeze_axis: bool) -> tuple[Array, ...]:
    if squeeze_axis:
        return tuple([array[(slice(None),) * axis + (start,)] for start in edges[:-1]])
    return tuple([array[_axis_slice(axis, *edge)] for edge in pairwise(edges)])


def _regather(g: Value | Sequence[Value], count: int, axis: int, squeeze_axis: bool) -> Value:
    """The gradient of a split: the parts' gradients concatenated."""
    gs = [g] if isinstance(g, Value) else list(g)
    if squeeze_axis:
        return ops.stack(*gs, num_args=count, axis=axis)
    return ops.Concat(*gs, num_args=count, dim=axis)


def _declare_split(op: Op, edges: Callable[..., list[int]]) -> None:
    """Declare the rules of an operator that splits its input along its attribute ``axis``; it also has
    ``squeeze_axis``.

    ``edges(shape, axis, **attrs)`` returns the starts of the parts, from 0 on, and the length of the axis.
    """
    rule = Rule(edges)
    shift_axes(op)

    def cuts(data: Shape, *_: Shape, axis: int, squeeze_axis: bool, **attrs: Any) -> Callable[[Array], Any]:
        axis = check_axis(axis, len(data))
        return functools.partial(_cuts, axis=axis, edges=rule(attrs, data, axis), squeeze_axis=squeeze_axis)

    @op.infer
    def splitting_infer(data, *, axis, squeeze_axis, **attrs):
        axis = check_axis(axis, len(data))
        if data[axis] is not ANY:
            return _parts(data, axis, rule(attrs, data, axis), squeeze_axis)
        length = () if squeeze_axis else (ANY,)
        count = len(op.signature.outputs({**attrs, "squeeze_axis": squeeze_axis}))
        return [(*data[:axis], *length, *data[axis + 1:])] * count

    declare_view(op, cuts)

    @op.grad
    def splitting_grad(g, ins, outs, *, axis, squeeze_axis):
        return (_regather(g, len(outs), axis, squeeze_axis),)


def _even(shape: Shape, axis: int, *, num_outputs: int) -> list[int]:
    if shape[axis] % num_outputs != 0:
        raise ShapeError(f"axis {axis} of {show(shape)} cannot be split into {num_outputs} equal parts")
    length = shape[axis] // num_outputs
    return [i * length for i in range(num_outputs + 1)]


@declare(name="SliceChannel", aliases=("split",),
         outputs=lambda *, num_outputs: [f"output{i}" for i in range(num_outputs)])
def split(data, *, num_outputs: Few, axis: int = 1, squeeze_axis: bool = False):
    """``data`` split into equal parts along ``axis``; with ``squeeze_axis`` their length is one, and the axis is
    removed."""


_declare_split(split, _even)


def _unsplit_shape(outs: Sequence[Shape | None], axis: int, squeeze_axis: bool) -> Shape | None:
    """The shape of a split array, as far as it is determined by its parts."""
    some: Any = None
    for shape in outs:
        if shape is not None:
            axis = check_axis(axis, len(shape) + squeeze_axis)
            some = unify(some, (*shape[:axis], ANY, *shape[axis + (not squeeze_axis):]))
    if some is None:
        return None
    length = len(outs) if squeeze_axis else sum([ANY if shape is None else shape[axis] for shape in outs])
    return (*some[:axis], length, *some[axis + 1:])


@split.fill
def split_fill(ins, outs, *, axis, squeeze_axis):
    return [_unsplit_shape([common_shape(outs)] * len(outs), axis, squeeze_axis)]


def _edges(shape: Shape, axis: int, *, indices: int | Sequence[int], sections: int) -> list[int]:
    length = shape[axis]
    if sections > 0:
        quotient, remainder = length // sections, length % sections
        return [i * quotient + min(i, remainder) for i in range(sections + 1)]
    starts = (indices,) if isinstance(indices, int) else indices
    edges = [*starts, length]
    if not length and starts and starts[0] == 0:  # all parts are empty
        return [0] * len(edges)
    if not starts or starts[0] != 0 or any(stop < start for start, stop in pairwise(edges)):
        raise AttrError(f"indices={tuple(starts)}: expected positions of at least 0 in ascending order, none beyond "
                        f"{length}, the length of axis {axis}")
    return edges


def _count(indices: int | Sequence[int], sections: int) -> int:
    return sections or (1 if isinstance(indices, int) else len(indices))


@declare(name="_split_v2", aliases=("_npi_split",),
         outputs=lambda *, indices, sections: names_of_outputs(_count(indices, sections)))
def split_v2(data, *, indices: int | tuple[int, ...], axis: int = 1, squeeze_axis: bool = False,
             sections: Annotated[int, Limit("from 0 to 65,536", lambda number: 0 <= number <= 1 << 16)] = 0):
    """``data`` split along ``axis`` at ``indices``, or into ``sections`` nearly equal parts."""


_declare_split(split_v2, _edges)


@split_v2.fill
def split_v2_fill(ins, outs, *, axis, squeeze_axis):
    return [_unsplit_shape(outs, axis, squeeze_axis)]


# --------------------------------------------------------------------------------------------- khatri_rao


@composed
def khatri_rao(*args, num_args: Few = 1):
    """The Khatri-Rao product: column ``i`` is the Kronecker product of the inputs' columns ``i``."""
    for arg in args:
        if len(arg.shape) != 2:
            raise ShapeError(f"expected matrices, got shape {show(arg.shape)}")
        unify(arg.shape[1:], args[0].shape[1:])
    result = args[0]
    for arg in args[1:]:
        product = ops.expand_dims(result, axis=1) * ops.expand_dims(arg, axis=0)
        result = ops.Reshape(product, shape=(-3, 0))
    return result

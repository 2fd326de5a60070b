"""Broadcasting to a larger shape, and the sums that are its gradient.

``_reduce_like`` is the gradient of every broadcast: it sums to the shape of another array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.array_module import add_reduce
from ...core.attrs import Count
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Attrs, Rule
from ...core.spec import ANY, Shape, axis_from_front, check_axis, is_narrow, is_single_or_double, show
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import linear
from ..samples import padded, repeat_inputs, summed_like
from .creation import declare_fill
from .shape import as_view, copy_view, repeated_parts, stored_in

__all__ = ["reduced_like", "declare_repeat", "ones_like"]


def _stretch_target(data: Shape, target: Shape) -> Shape:
    """``target``, if ``data`` broadcasts to exactly that shape."""
    if len(data) > len(target):
        raise ShapeError(f"{show(data)} does not broadcast to {show(target)}: it has more axes")
    padded = (1,) * (len(target) - len(data)) + tuple(data)
    for axis, (old, new) in enumerate(zip(padded, target)):
        if old not in (1, new):  # an unknown dimension matches any
            raise ShapeError(f"{show(data)} does not broadcast to {show(target)}: {old} against {new} "
                             f"in dimension {axis}")
    return target


def _parts(data: Shape, target: Shape) -> list[Any]:
    """Keys of the parts of a target that data are written to, to repeat them along its axes."""
    padded = (1,) * (len(target) - len(data)) + tuple(data)
    return repeated_parts(target, [axis for axis, (old, new) in enumerate(zip(padded, target)) if old != new])


def _repeated(data: Array, parts: list[Any], out: Array) -> Array:
    for part in parts:
        out[part] = data
    return out


def declare_repeat(op: Op, target: Callable[..., Shape], narrow: Callable[..., Shape] | None = None, mean: bool = False
                   ) -> None:
    """Declare view and kernel of an operator that repeats its first input along axes.

    Parameters
    ----------
    op : Op
        The operator.
    target : function
        ``target(*shapes, **attrs)``, given those of all inputs, returns the shape of the output.
    narrow : function, optional
        ``narrow(target, **attrs)`` returns the shape of as many axes, to which the input is reshaped before.
    mean : bool
        Whether to divide by the number of times that an element is repeated.
    """
    rule, reshaping = Rule(target), None if narrow is None else Rule(narrow)

    def view_shape(data: Shape, shape: Shape, attrs: Attrs) -> Shape:
        return data if reshaping is None else reshaping(attrs, shape)

    def times(data: Shape, shape: Shape) -> int:
        return max(math.prod([new for old, new in zip(data, shape) if old != new]), 1)

    if not mean:
        @op.view
        def repeating_view(array, *, out_shape, xp, **attrs):
            view = None if out_shape is None else as_view(array, view_shape(array.shape, out_shape, attrs))
            return None if view is None else xp.broadcast_to(view, out_shape)

    @op.in_parts  # no body: bodies use it to repeat
    def repeat_parts(xp, data, *like, **attrs):
        shape, dtype, empty = rule(attrs, data.shape, *[array.shape for array in like]), data.dtype, xp.empty
        before = view_shape(data.shape, shape, attrs)
        parts, number = _parts(before, shape), times(before, shape)
        # An array of one element costs a ufunc half as much as a Python number.
        count = np.asarray(number, dtype) if xp is np else number
        as_it_is = not mean and before == data.shape

        def repeat(data, *like, out=None):
            if not as_it_is:
                data = (data / count if mean else data).reshape(before)
            return _repeated(data, parts, empty(shape, dtype) if out is None else out)

        return repeat


def _declare_broadcast(op: Op, target: Callable[..., Shape]) -> None:
    """Declare the rules of an operator that broadcasts its first input to the shape that ``target`` returns."""
    rule = Rule(target)

    @op.infer
    def broadcasting_infer(data, *like, **attrs):
        return _stretch_target(data, rule(attrs, data, *like))

    declare_repeat(op, target)
    linear(op, "_reduce_like", slice(0, 1))


# --------------------------------------------------------------------------------------- to a given shape


def _broadcast_target(data: Shape, *, shape: int | Sequence[int]) -> Shape:
    """The target shape of ``broadcast_to``, where 0 keeps the dimension of ``data``."""
    shape = (shape,) if isinstance(shape, int) else shape
    skipped = len(shape) - len(data)
    if skipped < 0:
        raise ShapeError(f"{show(data)} does not broadcast to {show(tuple(shape))}: it has more axes")
    return tuple([data[i - skipped] if dim is not ANY and dim == 0 and i >= skipped else dim
                  for i, dim in enumerate(shape)])


@declare
def broadcast_to(data, *, shape: int | tuple[int, ...] = ()):
    """``data`` broadcast to ``shape``; a 0 in it keeps the length of that axis."""


_declare_broadcast(broadcast_to, _broadcast_target)


@broadcast_to.vmap
def broadcast_to_vmap(ins, batched, *, shape):
    size, *sample = ins[0].shape
    shape = _broadcast_target(sample, shape=shape)
    return ops.broadcast_to(padded(ins[0], len(shape)), shape=(size, *shape)) if all(shape) else NotImplemented


def _literal(array: Shape, *, shape: int | Shape) -> Shape:
    shape = (shape,) if isinstance(shape, int) else shape
    skipped = len(shape) - len(array)
    kept = [place for place, dim in enumerate(shape) if dim is not ANY and dim == -2]
    if kept and kept[0] < skipped:
        raise ShapeError(f"shape={shape}: -2 keeps a length, and {show(array)} has no axis there")
    return tuple([array[place - skipped] if place in kept else dim for place, dim in enumerate(shape)])


@declare(name="_np_broadcast_to", aliases=("_npi_broadcast_to",))
def np_broadcast_to(array, *, shape: int | tuple[int, ...]):
    """``array`` broadcast to ``shape``. In ``shape``, -2 keeps the length of an axis, and 0 is a length of zero."""


_declare_broadcast(np_broadcast_to, _literal)


@np_broadcast_to.vmap
def np_broadcast_to_vmap(ins, batched, *, shape):
    shape = _literal(ins[0].shape[1:], shape=shape)
    return ops._np_broadcast_to(padded(ins[0], len(shape)), shape=(ins[0].shape[0], *shape))


def _replace_lengths(data: Shape, *, axis: int | Sequence[int], size: int | Sequence[int]) -> Shape:
    """The shape ``data`` with the lengths of some axes of length one replaced."""
    axes = (axis,) if isinstance(axis, int) else axis
    sizes = (size,) if isinstance(size, int) else size
    if len(axes) != len(sizes):
        raise AttrError(f"axis={axis} and size={size} have different lengths")
    result = list(data)
    for axis, length in zip(axes, sizes):
        axis = check_axis(axis, len(data))
        if data[axis] != 1:
            raise ShapeError(f"axis {axis} of {show(data)} has length {data[axis]}, expected 1")
        result[axis] = length
    return tuple(result)


@declare(aliases=("broadcast_axes",))
def broadcast_axis(data, *, axis: int | tuple[int, ...] = (), size: Count | tuple[Count, ...] = ()):
    """``data`` repeated ``size`` times along axes of length one."""


_declare_broadcast(broadcast_axis, _replace_lengths)


# ----------------------------------------------------------------------- to the shape of another array


def _broadcast_target_of_axes(lhs: Shape, rhs: Shape, *, lhs_axes: int | Shape | None,
                              rhs_axes: int | Shape | None) -> Shape:
    """The target shape of ``broadcast_like``."""
    if lhs_axes is None and rhs_axes is None:
        return rhs
    left = (lhs_axes,) if isinstance(lhs_axes, int) else lhs_axes
    right = (rhs_axes,) if isinstance(rhs_axes, int) else rhs_axes
    if not left or not right or len(left) != len(right):
        raise AttrError(f"lhs_axes={lhs_axes} and rhs_axes={rhs_axes}: expected equally many")
    result = list(lhs)
    for i, j in zip(left, right):
        result[check_axis(i, len(lhs), "lhs_axes")] = rhs[check_axis(j, len(rhs), "rhs_axes")]
    return tuple(result)


@declare(types="T,U->T", unread=(1,))
def broadcast_like(lhs, rhs, *, lhs_axes: int | tuple[int, ...] | None = None,
                   rhs_axes: int | tuple[int, ...] | None = None):
    """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``."""


_declare_broadcast(broadcast_like, _broadcast_target_of_axes)


@declare(name="_reduce_like", types="T,U->T", unread=(1,))
def reduce_like(data, like):
    """``data`` summed to the shape of ``like``, which broadcasts to it."""


reduce_like.identity(lambda ins, outs: ins[0] == outs[0])


@reduce_like.infer
def reduce_like_infer(data, like):
    _stretch_target(like, data)
    return like


@reduce_like.view
def reduce_like_view(array, *, out_shape):
    if out_shape is None or math.prod(out_shape) != array.size:
        return None
    return as_view(array, out_shape)


@reduce_like.in_parts  # no body: bodies use it to sum
def reduce_like_in_parts(xp, data, like):
    summed, shape = _sum_down_to(xp, data, like), like.shape
    if summed is None:
        return lambda data, like, out=None: copy_view(xp, data.reshape(shape), out)
    return lambda data, like, out=None: stored_in(summed(data), out)


def reduced_like(xp: ArrayModule, data: Array, like: Array) -> Array:
    """``data`` summed to the shape of ``like``, as a new array."""
    reduced: Array = reduce_like_in_parts(xp, data, like)(data, like)
    return reduced


def _sum_down_to(xp: ArrayModule, data: Array, like: Array) -> Callable[[Array], Array] | None:
    """The function that sums arrays like the first down to the shape of the second; None where none are added."""
    shape = like.shape
    padded = (1,) * (data.ndim - len(shape)) + shape
    axes = [axis for axis, (old, new) in enumerate(zip(data.shape, padded)) if new == 1 and old != 1]
    if not axes:
        return None
    rows = data.ndim
    while rows - 1 in axes:
        rows -= 1
    wide, add = xp.float32 if is_narrow(data.dtype) else None, add_reduce if xp is np else xp.sum
    if rows == data.ndim or not is_single_or_double(data.dtype) or not data.flags.c_contiguous:
        return lambda data: add(data, tuple(axes), wide, None, True).reshape(shape)
    # A product with ones is three times as fast as a sum over short rows.
    lines, length = math.prod(data.shape[:rows]), math.prod(data.shape[rows:])
    ones, before, outer = xp.ones(length, dtype=data.dtype), data.shape[:rows], tuple([a for a in axes if a < rows])

    def summed(data: Array) -> Array:
        sums = xp.matmul(data.reshape(lines, length), ones)
        return (add(sums.reshape(before), outer) if outer else sums).reshape(shape)

    return summed


linear(reduce_like, "broadcast_like", slice(0, 1))


@reduce_like.vmap
def reduce_like_vmap(ins, batched):
    data, like = repeat_inputs(ins, batched)
    return summed_like(data, data.shape[1:], like.shape[1:])


# ----------------------------------------------------------------------------------- whole, or by number


def _repetitions(reps: int | Sequence[int], data: Shape) -> tuple[tuple[int, ...], Shape]:
    """``reps`` and the shape of ``data``, padded with ones in front to equal length."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    rank = max(len(reps), len(data))
    return (1,) * (rank - len(reps)) + reps, (1,) * (rank - len(data)) + tuple(data)


@composed(aliases=("_npi_tile",), cheap=True)
def tile(data, *, reps: Count | tuple[Count, ...]):
    """``data`` repeated ``reps`` times along each axis."""
    times, dims = _repetitions(reps, data.shape)
    apart = ops._np_reshape(data, newshape=tuple([length for dim in dims for length in (1, dim)]))
    copies = ops._np_broadcast_to(apart, shape=tuple([length for pair in zip(times, dims) for length in pair]))
    return ops._np_reshape(copies, newshape=tuple([rep * dim for rep, dim in zip(times, dims)]))


@tile.grad  # the derivative of the body takes a tenth longer
def tile_grad(g, ins, outs, *, reps):
    reps = (reps,) if isinstance(reps, int) else reps
    if 0 in reps:
        return (ops.zeros_like(ins[0]),)
    if reps:
        apart = ops.Reshape(g, shape=(-2, *[code for rep in reps for code in (rep, -1, -4)]), reverse=True)
        g = ops.sum(apart, axis=tuple(range(-2 * len(reps), 0, 2)))
    return (ops.reshape_like(g, ins[0]),)


@composed(aliases=("_np_repeat",), cheap=True)
def repeat(data, *, repeats: Count, axis: int | None = None):
    """Each element of ``data`` repeated along ``axis``, or of the flat array."""
    shape, place = axis_from_front(data.shape, axis)
    outer, inner = math.prod(shape[:place + 1]), math.prod(shape[place + 1:])
    apart = ops._np_reshape(data, newshape=(outer, 1, inner))
    copies = ops._np_broadcast_to(apart, shape=(outer, repeats, inner))
    return ops._np_reshape(copies, newshape=(*shape[:place], shape[place] * repeats, *shape[place + 1:]) if repeats
                           else (0,))


@repeat.grad  # as for tile
def repeat_grad(g, ins, outs, *, repeats, axis):
    if repeats == 0:
        return (ops.zeros_like(ins[0]),)
    if axis is None:
        return (ops.reshape_like(ops.sum(ops.Reshape(g, shape=(-1, repeats)), axis=1), ins[0]),)
    if axis < 0:
        return (ops.sum(ops.Reshape(g, shape=(-2, -1, repeats, -4, *[0] * (-1 - axis)), reverse=True), axis=axis),)
    return (ops.sum(ops.Reshape(g, shape=(*[0] * axis, -4, -1, repeats, -2)), axis=axis + 1),)


# ------------------------------------------------------------------- results that depend on the shape alone


def _declare_like(number: float, name: str, aliases: tuple[str, ...] = ()) -> Op:
    """Declare the operator that returns an array of one value in the shape of its input."""

    @declare(name=name, aliases=aliases, unread=(0,), constant=number, cheap=True)
    def filled(data):
        """An array with the shape of ``data``, filled with one value."""

    filled.doc = f"An array of the shape and dtype of ``data``, filled with {number:g}."

    declare_fill(filled, number)
    return filled


_declare_like(0.0, "zeros_like", ("_sparse_zeros_like",))
ones_like = _declare_like(1.0, "ones_like")

"""Parts of an array, cut out by ranges along its axes, and the writing of such parts.

The gradient of a cut puts the numbers back among zeros: each cut has its ``_backward_`` operator, whose own
gradient is the cut again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.attrs import Few, Number
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, check_axis, show, unify
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import as_output, together
from ..samples import along
from .shape import constant, stored

__all__: list[str] = []

Cut = tuple[slice, ...]
Bounds = int | tuple[int | None, ...]


def _put(xp: ArrayModule, g: Array, shape: Shape, cut: Cut, out: Array | None) -> Array:
    """Zeros of a shape with ``g`` at a cut."""
    if out is None:
        out = xp.zeros(shape, dtype=g.dtype)
    else:
        out[...] = 0
    out[cut] = g
    return out


# -------------------------------------------------------------------------------------------------- slice


def _listed(value: Bounds) -> tuple[int | None, ...]:
    return value if isinstance(value, tuple) else (value,)


def _cut(begin: Bounds, end: Bounds, step: Bounds, rank: int) -> Cut:
    """The slices that ``begin``, ``end`` and ``step`` describe, with NumPy's meaning."""
    starts, stops, steps = _listed(begin), _listed(end), _listed(step)
    if len(starts) != len(stops) or (steps and len(steps) != len(starts)):
        raise AttrError(f"begin={begin}, end={end}, step={step}: expected equally many of each")
    if len(starts) > rank:
        raise AttrError(f"begin={begin} names {len(starts)} axes, the array has {rank}")
    if 0 in steps:
        raise AttrError(f"step={step}: a step cannot be zero")
    return tuple([slice(*bounds) for bounds in zip(starts, stops, steps or (None,) * len(starts))])


def _cut_shape(shape: Shape, cut: Cut) -> Shape:
    dims = [ANY if dim is ANY else len(range(*part.indices(dim))) for dim, part in zip(shape, cut)]
    return (*dims, *shape[len(cut):])


@declare(name="slice", aliases=("crop", "_sparse_slice", "_npi_slice", "_npx_slice"))
def slice_(data, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """The part of ``data`` from ``begin`` to before ``end`` along the first axes; None is the edge."""


@slice_.infer
def slice_infer(data, *, begin, end, step):
    return _cut_shape(data, _cut(begin, end, step, len(data)))


@slice_.view
def slice_view(array, *, begin, end, step):
    return array[_cut(begin, end, step, array.ndim)]


@slice_.kernel()
def slice_xp(xp, data, *, begin, end, step, out=None):
    return stored(xp, data[_cut(begin, end, step, data.ndim)], out)


@slice_.grad
def slice_grad(g, ins, outs, *, begin, end, step):
    return (ops._backward_slice(g, ins[0], begin=begin, end=end, step=step),)


@declare(name="_backward_slice", types="T,U->T", unread=(1,))
def slice_put(g, data, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """Zeros of the shape of ``data`` with ``g`` where ``slice`` would cut."""


@slice_put.infer
def slice_put_infer(g, data, *, begin, end, step):
    unify(g, slice_infer(data, begin=begin, end=end, step=step))
    return data


@slice_put.kernel()
def slice_put_xp(xp, g, data, *, begin, end, step, out=None):
    return _put(xp, g, data.shape, _cut(begin, end, step, len(data.shape)), out)


@slice_put.grad
def slice_put_grad(g, ins, outs, *, begin, end, step):
    return (ops.slice(g, begin=begin, end=end, step=step), None)


# --------------------------------------------------------------------------------------------- slice_axis


def _span(begin: int, end: int | None, dim: int) -> tuple[int, int]:
    """Where ``slice_axis`` begins and ends, counted from the front."""
    start = begin + dim if begin < 0 else begin
    stop = dim if end is None else end + dim if end < 0 else end
    if not 0 <= start < stop <= dim:
        raise AttrError(f"begin={begin}, end={end} is no part of an axis of length {dim}")
    return start, stop


def _axis_cut(shape: Shape, axis: int, begin: int, end: int | None) -> Cut:
    axis = check_axis(axis, len(shape))
    return (slice(None),) * axis + (slice(*_span(begin, end, shape[axis])),)


@declare
def slice_axis(data, *, axis: int, begin: int, end: int | None):
    """The part of ``data`` from ``begin`` to before ``end`` along ``axis``; None is the edge."""


along(slice_axis)


@slice_axis.infer
def slice_axis_infer(data, *, axis, begin, end):
    axis = check_axis(axis, len(data))
    length = ANY  # of an unknown axis, as MXNet has it, even where both ends are counted from the same side
    if data[axis] is not ANY:
        start, stop = _span(begin, end, data[axis])
        length = stop - start
    return (*data[:axis], length, *data[axis + 1:])


@slice_axis.view
def slice_axis_view(array, *, axis, begin, end):
    return array[_axis_cut(array.shape, axis, begin, end)]


@slice_axis.kernel()
def slice_axis_xp(xp, data, *, axis, begin, end, out=None):
    return stored(xp, data[_axis_cut(data.shape, axis, begin, end)], out)


@slice_axis.grad
def slice_axis_grad(g, ins, outs, *, axis, begin, end):
    return (ops._backward_slice_axis(g, ins[0], axis=axis, begin=begin, end=end),)


@declare(name="_backward_slice_axis", types="T,U->T", unread=(1,))
def slice_axis_put(g, data, *, axis: int, begin: int, end: int | None):
    """Zeros of the shape of ``data`` with ``g`` where ``slice_axis`` would cut."""


along(slice_axis_put, of=1)


@slice_axis_put.infer
def slice_axis_put_infer(g, data, *, axis, begin, end):
    unify(g, slice_axis_infer(data, axis=axis, begin=begin, end=end))
    return data


@slice_axis_put.kernel()
def slice_axis_put_xp(xp, g, data, *, axis, begin, end, out=None):
    return _put(xp, g, data.shape, _axis_cut(data.shape, axis, begin, end), out)


@slice_axis_put.grad
def slice_axis_put_grad(g, ins, outs, *, axis, begin, end):
    return (ops.slice_axis(g, axis=axis, begin=begin, end=end), None)


# --------------------------------------------------------------------------------------------- slice_like


def _like_shape(data: Shape, like: Shape, axes: int | Sequence[int]) -> Shape:
    """``data`` with the lengths of ``like`` along ``axes``, along all without."""
    named = (axes,) if isinstance(axes, int) else axes
    if not named and len(data) != len(like):
        raise ShapeError(f"{show(data)} and {show(like)} differ in rank; name the axes to cut")
    result = list(data)
    for name in named or range(len(data)):
        axis, other = check_axis(name, len(data), "axes"), check_axis(name, len(like), "axes")
        if like[other] > data[axis]:
            raise ShapeError(f"axis {name} has length {data[axis]}, cannot cut {like[other]} from it")
        result[axis] = like[other]
    return tuple(result)


def _corner(shape: Shape) -> Cut:
    return tuple([slice(dim) for dim in shape])


@declare(types="T,U->T", unread=(1,))
def slice_like(data, shape_like, *, axes: int | tuple[int, ...] = ()):
    """The first numbers of ``data``, along ``axes`` (all by default) as many as ``shape_like`` has."""


@slice_like.infer
def slice_like_infer(data, shape_like, *, axes):
    return _like_shape(data, shape_like, axes)


@slice_like.view
def slice_like_view(array, *, out_shape):
    return None if out_shape is None else array[_corner(out_shape)]


@slice_like.kernel()
def slice_like_xp(xp, data, shape_like, *, axes, out=None):
    return stored(xp, data[_corner(_like_shape(data.shape, shape_like.shape, axes))], out)


@slice_like.grad
def slice_like_grad(g, ins, outs):
    return (ops._backward_slice_like(g, ins[0]), None)


@declare(name="_backward_slice_like", types="T,U->T", unread=(1,))
def slice_like_put(g, data):
    """Zeros of the shape of ``data`` with ``g`` in the first places."""


@slice_like_put.infer
def slice_like_put_infer(g, data):
    _like_shape(data, g, ())
    return data


@slice_like_put.kernel()
def slice_like_put_xp(xp, g, data, *, out=None):
    return _put(xp, g, data.shape, _corner(g.shape), out)


@slice_like_put.grad
def slice_like_put_grad(g, ins, outs):
    return (ops.slice_like(g, ins[0]), None)


# --------------------------------------------------------------------------------------------------- Crop


def _window(data: Shape, size: Sequence[int], offset: Sequence[int], center_crop: bool) -> Cut:
    """Where ``Crop`` cuts height and width."""
    cut = [slice(None), slice(None)]
    for have, want, start in zip(data[2:], size, offset):
        start = (have - want) // 2 if center_crop else start
        if want < 1 or start < 0 or start + want > have:
            raise ShapeError(f"cannot crop {want} numbers from number {start} on out of {have}")
        cut.append(slice(start, start + want))
    return tuple(cut)


@declare(name="Crop", unread=(1,), partly=(0,))
def crop(*data, num_args: Few, offset: tuple[int, ...] = (0, 0), h_w: tuple[int, ...] = (0, 0),
         center_crop: bool = False):
    """A window of the height and width of the first input, of ``h_w`` or of the size of a second input, from
    ``offset`` on or in the centre."""


def _crop_size(shapes: Sequence[Shape], h_w: Sequence[int]) -> Sequence[int]:
    if len(shapes[0]) != 4 or len(shapes) > 2 or len(shapes[-1]) != 4:
        raise ShapeError("expected one input or two, of rank 4, got " + ", ".join(show(s) for s in shapes))
    return h_w if len(shapes) == 1 else shapes[1][2:]


@crop.infer
def crop_infer(*data, offset, h_w, center_crop):
    size = _crop_size(data, h_w)
    if len(size) != 2 or len(offset) != 2:
        raise AttrError(f"h_w={h_w}, offset={offset}: expected height and width of each")
    _window(data[0], size, offset, center_crop)
    return (*data[0][:2], *size)


@crop.view
def crop_view(array, *, offset, center_crop, out_shape):
    return None if out_shape is None else array[_window(array.shape, out_shape[2:], offset, center_crop)]


@crop.kernel()
def crop_xp(xp, *data, offset, h_w, center_crop, out=None):
    size = _crop_size([array.shape for array in data], h_w)
    return stored(xp, data[0][_window(data[0].shape, size, offset, center_crop)], out)


@crop.grad
def crop_grad(g, ins, outs, *, offset, center_crop):
    first = ops._backward_Crop(g, ins[0], offset=offset, center_crop=center_crop)
    return (first, *[None] * (len(ins) - 1))


@declare(name="_backward_Crop", types="T,U->T", unread=(1,))
def crop_put(g, data, *, offset: tuple[int, ...] = (0, 0), center_crop: bool = False):
    """Zeros of the shape of ``data`` with ``g`` where ``Crop`` would cut."""


@crop_put.infer
def crop_put_infer(g, data, *, offset, center_crop):
    unify(g, crop_infer(data, g, offset=offset, h_w=(), center_crop=center_crop))
    return data


@crop_put.kernel()
def crop_put_xp(xp, g, data, *, offset, center_crop, out=None):
    return _put(xp, g, data.shape, _window(data.shape, g.shape[2:], offset, center_crop), out)


@crop_put.grad
def crop_put_grad(g, ins, outs, *, offset, center_crop):
    return (ops.Crop(g, ins[0], num_args=2, offset=offset, center_crop=center_crop), None)


# ------------------------------------------------------------------------------------------------ reverse


def _backwards(axis: int | Sequence[int], rank: int) -> Cut:
    axes = {check_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis)}
    return tuple([slice(None, None, -1 if i in axes else 1) for i in range(rank)])


@declare(aliases=("flip",))
def reverse(data, *, axis: int | tuple[int, ...]):
    """``data`` in opposite order along each ``axis``."""


along(reverse)


reverse.fill(as_output)


@reverse.infer
def reverse_infer(data, *, axis):
    _backwards(axis, len(data))
    return data


@reverse.view
def reverse_view(array, *, axis):
    return array[_backwards(axis, array.ndim)]


@reverse.kernel()
def reverse_xp(xp, data, *, axis, out=None):
    return stored(xp, data[_backwards(axis, data.ndim)], out)


@reverse.grad
def reverse_grad(g, ins, outs, *, axis):
    return (ops.reverse(g, axis=axis),)


# ------------------------------------------------------------------------------------------ parts written


def _with(xp: ArrayModule, data: Array, cut: Cut, value: Array, out: Array | None) -> Array:
    """``data`` with a part replaced, in an array of its own or in ``out``, which may be ``data``."""
    if out is None:
        out = data.copy()
    else:
        xp.copyto(out, data)
    out[cut] = value
    return out


@declare(name="_slice_assign", aliases=("_crop_assign", "_npi_slice_assign"), inplace=(0,))
def slice_assign(lhs, rhs, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """``lhs`` with the part that ``slice`` would cut replaced by ``rhs``."""


@slice_assign.fill
def slice_assign_fill(ins, outs, *, begin, end, step):
    lhs = together([ins[0], outs[0]])
    return [lhs, ins[1] if lhs is None else _cut_shape(lhs, _cut(begin, end, step, len(lhs)))]


@slice_assign.infer
def slice_assign_infer(lhs, rhs, *, begin, end, step):
    expected = _cut_shape(lhs, _cut(begin, end, step, len(lhs)))
    if rhs != expected:
        raise ShapeError(f"rhs: expected shape {show(expected)}, got {show(rhs)}")
    return lhs


@slice_assign.kernel()
def slice_assign_xp(xp, lhs, rhs, *, begin, end, step, out=None):
    return _with(xp, lhs, _cut(begin, end, step, lhs.ndim), rhs, out)


@slice_assign.grad
def slice_assign_grad(g, ins, outs, *, begin, end, step):
    where = dict(begin=begin, end=end, step=step)
    return (ops._slice_assign_scalar(g, scalar=0.0, **where), ops.slice(g, **where))


@declare(name="_slice_assign_scalar", aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"),
         inplace=(0,))
def slice_assign_scalar(data, *, scalar: Number = 0.0, begin: Bounds, end: Bounds, step: Bounds = ()):
    """``data`` with the part that ``slice`` would cut replaced by one number."""


slice_assign_scalar.fill(as_output)


@slice_assign_scalar.infer
def slice_assign_scalar_infer(data, *, begin, end, step):
    _cut(begin, end, step, len(data))
    return data


@slice_assign_scalar.kernel()
def slice_assign_scalar_xp(xp, data, *, scalar, begin, end, step, out=None):
    return _with(xp, data, _cut(begin, end, step, data.ndim), constant(xp, scalar, data.dtype), out)


@slice_assign_scalar.grad
def slice_assign_scalar_grad(g, ins, outs, *, begin, end, step):
    return (ops._slice_assign_scalar(g, scalar=0.0, begin=begin, end=end, step=step),)

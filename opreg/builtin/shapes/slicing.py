"""Slices of arrays, and writing to slices.

The gradient of a slice is zeros with the output gradient in it: each operator has a ``_backward_`` operator for this,
whose own gradient is the slice again. A family of operators is defined by one function that returns slices, from which
the rules are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from ...core.attrs import Few, Number
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.rules import Rule
from ...core.spec import ANY, Shape, check_axis, cut_length, show
from ...errors import AttrError, ShapeError
from ..outputs import as_output, common_shape, declare_input_shape, linear
from ..places import declare_fixed_writes
from ..samples import shift_axes
from .shape import declare_view

__all__ = ["Cut", "declare_slice"]

Cut = tuple[slice, ...]
Bounds = int | tuple[int | None, ...]


def _cut_shape(shape: Shape, cut: Cut) -> Shape:
    return (*map(cut_length, shape, cut), *shape[len(cut):])


def _declare_slice_view(op: Op, cut: Callable[..., Cut]) -> Rule:
    """Declare that an operator slices its first input; see ``declare_slice``."""
    rule = Rule(cut)

    @op.infer
    def cut_infer(*shapes, **attrs):
        return _cut_shape(shapes[0], rule(attrs, *shapes))

    # With an ellipsis, a slice of an array without axes is a view, too; without it, NumPy returns a number.
    declare_view(op, lambda *shapes, **attrs: itemgetter((*rule(attrs, *shapes), ...)))

    return rule


def declare_slice(op: Op, cut: Callable[..., Cut]) -> Op:
    """Declare a slicing operator, and the operator that writes its gradient into zeros.

    Parameters
    ----------
    op : Op
        The operator. Only the shape of a second input is read.
    cut : function
        ``cut(*shapes, **attrs)`` returns the slices along the first axes. It may get the shape of the output, which
        has the same lengths, in place of the second input's shape.

    Returns
    -------
    Op
        ``_backward_<name>``, the operator of the gradient.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_head")
    ... def head(data, *, rows: int): "The first rows."
    >>> declare_slice(head, lambda data, like=(), *, rows: (slice(rows),)).name
    '_backward_example_head'
    >>> head(nd.array([1.0, 2.0, 3.0]), rows=2).asnumpy().tolist()
    [1.0, 2.0]
    """
    rule = _declare_slice_view(op, cut)
    put = register(Op(f"_backward_{op.name.lstrip('_')}", op.signature.schema, ("g", "data"), unread=(1,),
                      types="T,U->T", cheap=True,
                      doc=f"Zeros of the shape of ``data`` with ``g`` where ``{op.name}`` would cut."))

    @op.grad
    def cut_grad(g, ins, outs, **attrs):
        return (put.current(g, ins[0], **attrs), *[None] * (len(ins) - 1))

    declare_input_shape(put, 0, lambda g, data, **attrs: (data, _cut_shape(data, rule(attrs, data, g))))

    declare_fixed_writes(put, lambda g, data, **attrs: rule(attrs, data, g), into_zeros=True)

    @put.grad
    def put_grad(g, ins, outs, **attrs):
        like = ins[:len(op.signature.arguments(attrs)) - 1]  # has the lengths that a second input had
        return (op.current(g, *like, **attrs), None)

    return put


# -------------------------------------------------------------------------------------------------- slice


def _bounds_tuple(value: Bounds) -> tuple[int | None, ...]:
    return value if isinstance(value, tuple) else (value,)


def _cut(data: Shape, like: Shape = (), *, begin: Bounds, end: Bounds, step: Bounds | None) -> Cut:
    """The slices for ``begin``, ``end`` and ``step``, with NumPy's meaning."""
    starts, stops, steps = _bounds_tuple(begin), _bounds_tuple(end), () if step is None else _bounds_tuple(step)
    if len(starts) != len(stops) or (steps and len(steps) != len(starts)):
        raise AttrError(f"begin={begin}, end={end}, step={step}: expected equally many of each")
    if len(starts) > len(data):
        raise AttrError(f"begin={begin} names {len(starts)} axes, the array has {len(data)}")
    if 0 in steps:
        raise AttrError(f"step={step}: a step cannot be zero")
    return tuple([slice(*bounds) for bounds in zip(starts, stops, steps or (None,) * len(starts))])


@declare(name="slice", aliases=("crop", "_sparse_slice", "_npi_slice", "_npx_slice"))
def slice_(data, *, begin: Bounds, end: Bounds, step: Bounds | None = ()):
    """The slice of ``data`` from ``begin`` to before ``end`` along the first axes; None means the edge."""


declare_slice(slice_, _cut)


# --------------------------------------------------------------------------------------------- slice_axis


def _span(begin: int, end: int | None, dim: int) -> tuple[int, int]:
    """The bounds of ``slice_axis``, as nonnegative indices."""
    start = begin + dim if begin < 0 else begin
    stop = dim if end is None else end + dim if end < 0 else end
    if not 0 <= start < stop <= dim:
        raise AttrError(f"begin={begin}, end={end} is not a part of an axis of length {dim}")
    return start, stop


def _axis_cut(data: Shape, like: Shape = (), *, axis: int, begin: int, end: int | None) -> Cut:
    axis = check_axis(axis, len(data))
    # The length of an unknown axis stays unknown, as in MXNet, even if both ends are counted from the same side.
    return (slice(None),) * axis + (slice(begin, end) if data[axis] is ANY else slice(*_span(begin, end, data[axis])),)


@declare
def slice_axis(data, *, axis: int, begin: int, end: int | None):
    """The slice of ``data`` from ``begin`` to before ``end`` along ``axis``; None means the edge."""


shift_axes(slice_axis)
shift_axes(declare_slice(slice_axis, _axis_cut), of=1)


# --------------------------------------------------------------------------------------------- slice_like


def _lengths_like(data: Shape, like: Shape, *, axes: int | Sequence[int]) -> Shape:
    """The shape ``data`` with the lengths of ``like`` along ``axes``, or along all axes; negative axes count from the
    end of ``data`` for both, as in MXNet."""
    named = (axes,) if isinstance(axes, int) else axes
    if not named and len(data) != len(like):
        raise ShapeError(f"{show(data)} and {show(like)} differ in rank; name the axes to cut")
    result = list(data)
    for name in named or range(len(data)):
        axis = check_axis(check_axis(name, len(data), "axes"), len(like), "axes")
        if like[axis] > data[axis]:
            raise ShapeError(f"axis {name} has length {data[axis]}, cannot cut {like[axis]} from it")
        result[axis] = like[axis]
    return tuple(result)


def _corner(data: Shape, like: Shape, *, axes: int | Sequence[int]) -> Cut:
    return tuple([slice(dim) for dim in _lengths_like(data, like, axes=axes)])


@declare(types="T,U->T", unread=(1,))
def slice_like(data, shape_like, *, axes: int | tuple[int, ...] = ()):
    """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has there."""


declare_slice(slice_like, _corner)
slice_like.infer(_lengths_like)  # a length known from the other input


# --------------------------------------------------------------------------------------------------- Crop


def _crop_size(shapes: Sequence[Shape], h_w: Sequence[int]) -> Sequence[int]:
    if len(shapes) > 2 or any(len(shape) != 4 for shape in shapes):
        raise ShapeError("expected one input or two, of rank 4, got " + ", ".join(show(s) for s in shapes))
    return h_w if len(shapes) == 1 else shapes[1][2:]


def _window(*shapes: Shape, h_w: Sequence[int], offset: Sequence[int], center_crop: bool) -> Cut:
    """The slices of height and width for ``Crop``."""
    size = _crop_size(shapes, h_w)
    if len(size) != 2 or len(offset) != 2:
        raise AttrError(f"h_w={h_w}, offset={offset}: expected height and width of each")
    cut = [slice(None), slice(None)]
    for have, want, start in zip(shapes[0][2:], size, offset):
        start = (have - want) // 2 if center_crop else start
        if want < 1 or start < 0 or start + want > have:
            raise ShapeError(f"cannot crop {want} elements from position {start} out of {have}")
        cut.append(slice(start, start + want))
    return tuple(cut)


@declare(name="Crop", unread=(1,), partly=(0,))
def crop(*data, num_args: Few, offset: tuple[int, ...] = (0, 0), h_w: tuple[int, ...] = (0, 0),
         center_crop: bool = False):
    """A window of the first input, along height and width: its size is ``h_w`` or that of a second input, and it lies
    at ``offset`` or in the center."""


declare_slice(crop, _window)


@crop.infer
def crop_infer(*shapes, h_w, offset, center_crop):
    _window(*shapes, h_w=h_w, offset=offset, center_crop=center_crop)
    return (*shapes[0][:2], *_crop_size(shapes, h_w))


# ------------------------------------------------------------------------------------------------ reverse


def _backwards(data: Shape, like: Shape = (), *, axis: int | Sequence[int]) -> Cut:
    axes = {check_axis(a, len(data)) for a in ((axis,) if isinstance(axis, int) else axis)}
    return tuple([slice(None, None, -1 if i in axes else 1) for i in range(len(data))])


@declare(aliases=("flip",))
def reverse(data, *, axis: int | tuple[int, ...]):
    """``data`` in reverse order along each ``axis``."""


shift_axes(reverse)


reverse.fill(as_output)


_declare_slice_view(reverse, _backwards)


linear(reverse, reverse)


# ------------------------------------------------------------------------------------------ parts written


@declare(name="_slice_assign", aliases=("_crop_assign", "_npi_slice_assign"), inplace=(0,), cheap=True)
def slice_assign(lhs, rhs, *, begin: Bounds, end: Bounds, step: Bounds | None = ()):
    """A copy of ``lhs`` whose slice from ``begin`` to before ``end`` is replaced by ``rhs``."""


@slice_assign.fill
def slice_assign_fill(ins, outs, *, begin, end, step):
    lhs = common_shape([ins[0], outs[0]])
    return [lhs, ins[1] if lhs is None else _cut_shape(lhs, _cut(lhs, begin=begin, end=end, step=step))]


declare_input_shape(slice_assign, 1, lambda lhs, rhs, **bounds: (lhs, _cut_shape(lhs, _cut(lhs, **bounds))))


declare_fixed_writes(slice_assign, lambda lhs, rhs, **bounds: _cut(lhs, **bounds))


@slice_assign.grad
def slice_assign_grad(g, ins, outs, *, begin, end, step):
    where = dict(begin=begin, end=end, step=step)
    return (ops._slice_assign_scalar(g, scalar=0.0, **where), ops.slice(g, **where))


@declare(name="_slice_assign_scalar", aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"),
         inplace=(0,), cheap=True)
def slice_assign_scalar(data, *, scalar: Number = 0.0, begin: Bounds, end: Bounds, step: Bounds | None = ()):
    """A copy of ``data`` whose slice from ``begin`` to before ``end`` is filled with ``scalar``."""


slice_assign_scalar.fill(as_output)


@slice_assign_scalar.infer
def slice_assign_scalar_infer(data, *, begin, end, step):
    _cut(data, begin=begin, end=end, step=step)
    return data


declare_fixed_writes(slice_assign_scalar, _cut)


linear(slice_assign_scalar, slice_assign_scalar, without=("scalar",))

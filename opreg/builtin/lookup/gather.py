"""Lookup by several indices or by a mask; diagonals; conversion between flat and full indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, axis_from_front, check_axis, show, unify
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import (
    adjoint_pair,
    as_output,
    declare_array_function,
    declare_gradient,
    declare_input_shape,
    in_dtype_of,
    like_inputs,
    linear,
)
from ..places import declare_reads, declare_writes
from ..shapes.shape import copy_view
from .indexing import check_some, declare_scatter, integer_indices


def _columns(xp: ArrayModule, indices: Array) -> tuple:
    """The rows of an index array, one for each indexed axis."""
    integers = indices.astype(xp.int64)
    return tuple([integers[i] for i in range(integers.shape[0])])


def _declare_replacement(op: Op, values: int, places: Callable[[ArrayModule, Array], Any],
                         read: str | None = None) -> None:
    """Declare that the output of an operator is its first input with some elements replaced by those of the input
    ``values``. ``places(xp, indices)`` gives their positions; the remaining input holds the indices. The operator has a
    gradient if an operator ``read`` gathers the elements at such indices."""

    declare_writes(op, lambda xp, *ins, **_: (ins[0], places(xp, ins[3 - values]), ins[values]))

    if read is None:
        return

    @op.grad
    def replacing_grad(g, ins, outs):
        others, gradients = list(ins[1:]), [None] * 3
        others[values - 1] = ops.zeros_like(ins[values])
        gradients[0], gradients[values] = op.current(g, *others), getattr(ops, read)(g, ins[3 - values])
        return gradients


# ------------------------------------------------------------------------------- gather_nd and scatter_nd


def _gathered_shape(data: Shape, indices: Shape) -> Shape | None:
    """The shape of what is gathered; None if the number of indexed axes is unknown."""
    if len(indices) < 2:
        raise ShapeError(f"indices: expected two axes or more, got shape {show(indices)}")
    if indices[0] is ANY:
        return None
    if indices[0] > len(data):
        raise ShapeError(f"indices: {indices[0]} rows are indices along as many axes, but {show(data)} has {len(data)}")
    for axis in range(indices[0]):
        check_some(data, axis, indices[1:])
    return (*indices[1:], *data[indices[0]:])


@declare(types="T,I->T", partly=(0,), aliases=("_npi_gather_nd", "_npx_gather_nd"))
def gather_nd(data, indices):
    """Elements or slices of ``data`` at coordinates: each column of ``indices`` holds the indices along the leading
    axes."""


gather_nd.infer(_gathered_shape)


def _at_columns(xp: ArrayModule, data: Array, indices: Array) -> tuple[Array, tuple]:
    if not indices.shape[0]:  # without coordinates, the whole array is selected
        return data[None], (xp.zeros(indices.shape[1:], xp.int64),)
    return data, _columns(xp, indices)


declare_reads(gather_nd, _at_columns)


def _with_data(*, shape: Shape | None) -> tuple[str, ...]:
    return ("g", "indices", "data") if shape is None else ("g", "indices")


@declare(name="_backward_gather_nd", types="T,I,U->T", unread=(2,), arguments=_with_data)
def gather_sum(g, indices, data, *, shape: tuple[int, ...] | None = None):
    """Zeros of the shape of ``data``, or of ``shape`` without it, with ``g`` added at the coordinates that
    ``gather_nd`` reads."""


declare_input_shape(gather_sum, 0, lambda g, indices, data=None, *, shape: (
    full := data if shape is None else shape, _gathered_shape(full, indices)))


declare_gradient(gather_nd, gather_sum)


def _parts_at(xp: ArrayModule, indices: Array, shape: Shape) -> Array:
    columns = _columns(xp, indices)
    places = xp.zeros(indices.shape[1:], dtype=xp.int64)
    for column, dim in zip(columns, shape):
        places = places * dim + integer_indices(xp, column, dim, "index")
    inner = math.prod(shape[len(columns):])
    return places.reshape(places.size, 1) * inner + xp.arange(inner)


declare_scatter(gather_sum, _parts_at)


@declare(types="T,I->T")
def scatter_nd(data, indices, *, shape: int | tuple[int, ...]):
    """Zeros of ``shape`` with ``data`` written at the coordinates ``indices``; of equal coordinates the last one
    wins."""


def _shape_tuple(shape: int | Shape) -> Shape:
    return (shape,) if isinstance(shape, int) else shape


declare_input_shape(scatter_nd, 0,
                    lambda data, indices, *, shape: (_shape_tuple(shape),
                                                     _gathered_shape(_shape_tuple(shape), indices)))


declare_writes(scatter_nd, lambda xp, data, indices, *, shape: (
    _shape_tuple(shape), _columns(xp, indices), data))


linear(gather_sum, gather_nd, slice(1, 2))
linear(scatter_nd, gather_nd)


@declare(name="_scatter_set_nd", types="T,T,I->T", aliases=("_npi_scatter_set_nd",), inplace=(0,))
def scatter_set_nd(lhs, rhs, indices, *, shape: int | tuple[int, ...] = ()):
    """``lhs`` with the elements or slices at the coordinates ``indices`` replaced by ``rhs``."""


scatter_set_nd.fill(as_output)


declare_input_shape(scatter_set_nd, 1, lambda lhs, rhs, indices: (lhs, _gathered_shape(lhs, indices)))


_declare_replacement(scatter_set_nd, 1, _columns, "gather_nd")


# ------------------------------------------------------------------------------------- parts along an axis


@declare(name="_contrib_index_copy", types="T,I,T->T", inplace=(0,))
def index_copy(old_tensor, index_vector, new_tensor):
    """``old_tensor`` with the rows at ``index_vector`` replaced by those of ``new_tensor``."""


def _copied(old_tensor: Shape, index_vector: Shape, new_tensor: Shape) -> tuple[Shape, Shape]:
    check_some(old_tensor, 0, index_vector)
    return old_tensor, (*index_vector, *old_tensor[1:])


declare_input_shape(index_copy, 2, _copied)


_declare_replacement(index_copy, 2, lambda xp, index_vector: index_vector.astype(xp.int64), "take")


@declare(name="_contrib_boolean_mask", types="T,I->T", partly=(0,), aliases=("_npi_boolean_mask",))
def boolean_mask(data, index, *, axis: int = 0):
    """The slices of ``data`` along ``axis`` where ``index`` is nonzero.

    Their number depends on values: a graph is planned up to this operator, and the rest of it once for each number of
    slices.
    """


def _masked_shapes(data: Shape, index: Shape, *, axis: int) -> tuple[Shape, Shape]:
    axis = check_axis(axis, len(data))
    return (*data[:axis], ANY, *data[axis + 1:]), (data[axis],)


declare_input_shape(boolean_mask, 1, _masked_shapes)


@boolean_mask.infer_from_data
def boolean_mask_shape(xp, data, index, *, axis):
    axis %= data.ndim
    return (*data.shape[:axis], xp.count_nonzero(index), *data.shape[axis + 1:])


@declare(name="_backward_contrib_boolean_mask", types="T,I,U->T", unread=(2,))
def boolean_mask_put(g, index, data, *, axis: int = 0):
    """Zeros of the shape of ``data`` with ``g`` at the slices where ``index`` is nonzero."""


boolean_mask_put.infer(like_inputs(2))


def _to_chosen(xp: ArrayModule, g: Array, index: Array, data: Array, *, axis: int) -> tuple[Shape, tuple, Array]:
    axis, (places,) = axis % len(data.shape), xp.nonzero(index)
    if g.shape != (*data.shape[:axis], *places.shape, *data.shape[axis + 1:]):
        raise ShapeError(f"g has shape {show(g.shape)}, the index selects a different number of slices of "
                         f"{show(data.shape)}")
    return data.shape, (slice(None),) * axis + (places,), g


declare_writes(boolean_mask_put, _to_chosen)


@declare(name="_boolean_mask_like", types="T,I,U->T", unread=(2,), partly=(0,))
def boolean_mask_like(data, index, like, *, axis: int = 0):
    """The slices of ``data`` along ``axis`` where ``index`` is nonzero, as many as ``like`` has."""


boolean_mask_like.infer(like_inputs(2))


for _op in (boolean_mask, boolean_mask_like):
    declare_reads(_op, lambda xp, data, index, *like, axis: (data, (slice(None),) * (axis % data.ndim) + (index != 0,)))
    declare_gradient(_op, boolean_mask_put)

linear(boolean_mask_put, boolean_mask_like, slice(1, None, -1))


# ----------------------------------------------------------------- results whose length depends on values


@declare(name="_npx_nonzero", types="T->int64", aliases=("_npi_nonzero",))
def nonzero(x):
    """The coordinates of the nonzero elements of ``x``, a row for each, in order.

    Their number depends on values, as for ``boolean_mask``.
    """


@nonzero.infer
def nonzero_infer(x):
    if not x:
        raise ShapeError("x: expected at least one axis, got a scalar")
    return (ANY, len(x))


@nonzero.infer_from_data
def nonzero_shape(xp, x):
    return (xp.count_nonzero(x), x.ndim)


declare_array_function(nonzero, lambda xp, x: xp.stack(xp.nonzero(x), axis=1))  # no body: its shape depends on values
nonzero.grad(ZERO)


def _unique_outputs(*, return_index: bool, return_inverse: bool, return_counts: bool) -> tuple[str, ...]:
    """Names of the outputs of ``unique``."""
    requested = {"index": return_index, "inverse": return_inverse, "counts": return_counts}
    return ("output", *[name for name, is_requested in requested.items() if is_requested])


@declare(name="_npi_unique", types="T->T,*int64", outputs=_unique_outputs)
def unique(data, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None):
    """The sorted unique elements of ``data``, or its unique slices along ``axis``.

    Further outputs, if requested: the index of the first occurrence of each unique element, the position of each
    element of ``data`` among the unique ones, and the counts. The number of unique elements depends on values, as for
    ``boolean_mask``.
    """


def _different(data: Shape, count: int, returned: tuple[str, ...], axis: int | None) -> list[Shape]:
    """Shapes of the outputs of ``unique``."""
    data, axis = axis_from_front(data, axis)
    values = (*data[:axis], count, *data[axis + 1:])
    return [values, *[(data[axis] if name == "inverse" else count,) for name in returned[1:]]]


@unique.infer
def unique_infer(data, *, return_index, return_inverse, return_counts, axis):
    return _different(data, ANY, _unique_outputs(return_index=return_index, return_inverse=return_inverse,
                                                 return_counts=return_counts), axis)


@unique.infer_from_data
def unique_shape(xp, data, *, return_index, return_inverse, return_counts, axis):
    count = xp.unique(data, axis=axis).shape[0 if axis is None else axis]
    return _different(data.shape, count, _unique_outputs(return_index=return_index, return_inverse=return_inverse,
                                                         return_counts=return_counts), axis)


def _unique(xp: ArrayModule, data: Array, *, return_index: bool, return_inverse: bool, return_counts: bool,
            axis: int | None) -> Any:
    result = xp.unique(data, return_index, return_inverse, return_counts, axis)
    return (result[0], *[array.reshape(array.size) for array in result[1:]]) if isinstance(result, tuple) else result


declare_array_function(unique, _unique)  # no body: its shape depends on values
unique.grad(ZERO)


@declare(types="T,T,I->T", inplace=(0,))
def fill_element_0index(lhs, mhs, rhs):
    """A copy of ``lhs``, where element ``rhs[i]`` of row ``i`` is replaced by ``mhs[i]``."""


@fill_element_0index.infer
def fill_element_0index_infer(lhs, mhs, rhs):
    if len(lhs) != 2:
        raise ShapeError(f"lhs: expected rows and columns, got shape {show(lhs)}")
    unify(mhs, lhs[:1])
    unify(rhs, lhs[:1])
    check_some(lhs, 1, rhs)
    return lhs


_declare_replacement(fill_element_0index, 1, lambda xp, rhs: (xp.arange(rhs.shape[0]), rhs.astype(xp.int64)))


@composed(name="_onehot_encode", types="I,T->T", unread=(1,))
def onehot_encode(lhs, rhs):
    """One-hot rows in the shape of ``rhs``, with a one in the column given by ``lhs``."""
    return ops.one_hot(lhs, depth=rhs.shape[1], dtype=rhs.dtype)


declare_form(onehot_encode, "(rows) (rows, columns) -> (rows, columns)")


# ---------------------------------------------------------------------------------------------- diagonals


def _diagonal(data: Shape, k: int, axis1: int, axis2: int) -> tuple[int, int, int]:
    """The two axes and the length of a diagonal."""
    first, second = check_axis(axis1, len(data), "axis1"), check_axis(axis2, len(data), "axis2")
    if first == second:
        raise AttrError(f"axis1={axis1} and axis2={axis2} are the same axis")
    height, width = data[first] + min(k, 0), data[second] - max(k, 0)
    if height is ANY or width is ANY:
        return first, second, ANY
    if min(height, width) < 0:
        raise AttrError(f"k={k}: axes of lengths {data[first]} and {data[second]} have no such diagonal")
    return first, second, min(height, width)


@declare
def diag(data, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """The ``k``-th diagonal over two axes of ``data``, as the last axis; for a vector, the matrix with this
    diagonal."""


@diag.infer
def diag_infer(data, *, k, axis1, axis2):
    if len(data) == 1:
        return (data[0] + abs(k),) * 2
    first, second, length = _diagonal(data, k, axis1, axis2)
    return (*[dim for i, dim in enumerate(data) if i not in (first, second)], length)


def _on_diagonal(xp: ArrayModule, values: Array, shape: Shape, k: int, axis1: int, axis2: int) -> Array:
    """Zeros of a shape, with ``values`` on a diagonal, along their last axis."""
    result = xp.zeros(shape, dtype=values.dtype)
    places = xp.arange(values.shape[-1])
    xp.moveaxis(result, (axis1, axis2), (-2, -1))[..., places - min(k, 0), places + max(k, 0)] = values
    return result


@declare(name="_backward_diag", types="T,U->T", unread=(1,))
def diag_put(g, data, *, k: int = 0, axis1: int = 0, axis2: int = 1):
    """The gradient of ``diag``: ``g`` at the elements that ``diag`` reads."""


def _along_diagonal(xp: ArrayModule, numbers: Array, *like: Array, k: int, axis1: int, axis2: int,
                    out: Array | None = None) -> Array:
    """The kernel of ``diag`` and of its gradient. ``diag`` writes a vector to a diagonal, and reads the diagonal of an
    array with more axes; the gradient does the reverse."""
    shape = like[0].shape if like else numbers.shape
    if len(shape) == 1:
        shape, axis1, axis2 = (shape[0] + abs(k),) * 2, 0, 1
    if len(numbers.shape) == len(shape):
        return copy_view(xp, numbers.diagonal(k, axis1, axis2), out)
    return copy_view(xp, _on_diagonal(xp, numbers, shape, k, axis1, axis2), out)


for _op in (diag, diag_put):
    _op.kernel()(_along_diagonal)  # no body: elements are read and written along a diagonal

adjoint_pair(diag, diag_put)


# ---------------------------------------------------------------------------------- flat indices and back


def _strides(shape: int | tuple[int, ...] | None) -> list[int]:
    """The strides of each axis, in elements; the first dimension does not matter and may be -1."""
    dims = (shape,) if isinstance(shape, int) else shape
    if not dims or any(dim <= 0 for dim in dims[1:]):
        raise AttrError(f"shape={shape}: expected the shape that the indices refer to")
    return list(accumulate(dims[:0:-1], lambda a, b: a * b, initial=1))[::-1]


@composed(name="_ravel_multi_index", aliases=("ravel_multi_index",))
def ravel_multi_index(data, *, shape: int | tuple[int, ...] | None = None):
    """Flat indices into an array of shape ``shape``; each column of ``data`` holds the indices along its axes."""
    strides = np.array(_strides(shape)).reshape(-1, *[1] * (len(data.shape) - 1))
    return in_dtype_of(ops._np_sum(ops.broadcast_mul(ops.Cast(data, dtype="int64"), strides), axis=0), data)


declare_form(ravel_multi_index, lambda *, shape: f"({len(_strides(shape))}, axis, ...) -> (axis, ...)")
ravel_multi_index.grad(ZERO)


@declare(name="_unravel_index", aliases=("unravel_index",))
def unravel_index(data, *, shape: int | tuple[int, ...] | None = None):
    """The indices along the axes of an array of shape ``shape`` for flat indices, a column for each."""


declare_form(unravel_index, lambda *, shape: f"(...) -> ({len(_strides(shape))}, ...)")


@unravel_index.kernel()  # no body: each row follows from the remainder of the one before
def unravel_index_xp(xp, data, *, shape):
    remaining, rows = data.astype(xp.int64), []
    for stride in _strides(shape):
        rows.append(remaining // stride)
        remaining = remaining % stride
    return xp.stack(rows)


unravel_index.grad(ZERO)

"""Lookups by index, and the scattered sums that are their gradients.

Indices may be of any dtype; fractions are truncated. The mode determines the treatment of indices out of range:
``clip`` takes the nearest, ``wrap`` wraps around, ``raise`` raises an error, and ``index`` counts negative indices from
the end and raises an error beyond, as subscripts do. Devices other than the host do not check indices but wrap them
around.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...core.attrs import Count, Number, Positive
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.selection import select
from ...core.spec import ANY, Shape, check_axis, show, unify
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import add_into, adjoint_pair, linear, one_of
from ..places import declare_writes, read_elements
from ..samples import alike, repeat_inputs, shift_axes
from ..shapes.shape import constant, out_or_empty, stored_in

__all__ = ["integer_indices", "check_some", "declare_choice", "add_at", "places_along", "declare_scatter"]

_FLOAT32 = np.dtype("float32")
#: Largest number of indices for which arrays that depend only on their shape are cached.
_PREPARED = 1 << 14


def integer_indices(xp: ArrayModule, indices: Array, length: int, mode: str = "clip") -> Array:
    """Indices as int64 in ``[0, length)``; with ``raise``, indices out of range become ``length``.

    NumPy's indexing then raises IndexError; CuPy's, which does not check, wraps around.

    Raises
    ------
    IndexError
        With ``index``, on the host, for an index out of range.
    """
    indices = indices.astype(xp.int64)
    if mode == "index" and xp is np:
        _refuse_beyond(indices, length)
    if mode in ("wrap", "index"):
        return indices % length
    if mode == "raise":
        return xp.where(indices < 0, length, indices)
    return indices.clip(0, length - 1)


def _refuse_beyond(indices: np.ndarray, length: int) -> None:
    """Refuse indices out of range at either end of an axis."""
    if indices.size and (indices.min() < -length or indices.max() >= length):
        beyond = indices[(indices < -length) | (indices >= length)]
        raise IndexError(f"index {beyond[0]} is out of bounds for axis with size {length}")


def check_some(data: Shape, axis: int, indices: Shape) -> None:
    """Refuse lookups along an empty axis.

    Raises
    ------
    ShapeError
        If the axis is empty and there are indices.
    """
    if data[axis] is not ANY and data[axis] == 0 and math.prod(indices) > 0:
        raise ShapeError(f"axis {axis} of {show(data)} is empty: there is nothing to look up")


def add_at(xp: ArrayModule, shape: Shape, places: Array, values: Array, spare: bool = False) -> Array:
    """Zeros of a shape with values added at flat indices, which may repeat; with ``spare`` an index may be one beyond
    the last, where a value is left out."""
    size = math.prod(shape)
    flat = xp.zeros(size + spare, dtype=values.dtype)
    # Indices are in one flat array, for which NumPy has a fast loop.
    add_into(xp, flat, xp.broadcast_to(places, values.shape).reshape(-1), values.reshape(-1))
    return flat[:size].reshape(shape)


def places_along(xp: ArrayModule, indices: Array, shape: Shape, axis: int) -> Array:
    """Flat indices into a shape for indices along one axis. The indices have three axes: outer axes, indices and inner
    axes; the first and the last may have length one."""
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    if outer != 1:
        indices = xp.arange(outer).reshape(-1, 1, 1) * shape[axis] + indices
    return indices if inner == 1 else indices * inner + xp.arange(inner)


def declare_scatter(op: Op, places: Callable[..., Array], spare: bool = False) -> None:
    """Declare that an operator scatters elements into zeros, in the shape of its last input or of its attribute
    ``shape``.

    ``places(xp, *indices, shape, **attrs)`` gives the flat index of each element. Elements with equal indices are
    added; for ``spare`` see ``add_at``.
    """
    @op.kernel()  # no body: bodies use it to add at indices
    def puts_back_xp(xp, g, *indices, shape=None, **attrs):
        if shape is None:
            indices, shape = indices[:-1], indices[-1].shape
        positions = places(xp, *indices, shape, **attrs)
        return add_at(xp, shape, positions, g.reshape(positions.shape), spare)


# --------------------------------------------------------------------------------------------------- take

Mode = Literal["raise", "wrap", "clip", "index"]


@declare(types="T,I->T", partly=(0,), aliases=("_npi_take",), cheap=True)
def take(a, indices, *, axis: int = 0, mode: Mode = "clip"):
    """The slices of ``a`` along ``axis`` at ``indices``."""


@take.infer
def take_infer(a, indices, *, axis):
    axis = check_axis(axis, len(a))
    check_some(a, axis, indices)
    return (*a[:axis], *indices, *a[axis + 1:])


def _declare_gather(op: Op, data: int) -> None:
    """Declare the kernel of an operator that gathers slices of its input ``data``, at the indices in the other
    input."""

    @op.in_parts  # no body: bodies use it to look up rows
    def looking_up_in_parts(xp, *ins, axis=0, mode="clip"):
        length = ins[data].shape[axis]
        if xp is not np or mode == "raise":
            return lambda *ins, out=None: stored_in(xp.take(ins[data], integer_indices(
                xp, ins[1 - data], length, mode), axis=axis), out)
        are_whole, inside = ins[1 - data].dtype == np.int64, "wrap" if mode == "index" else mode

        def look_up(*ins, out=None):
            indices = ins[1 - data] if are_whole else ins[1 - data].astype(np.int64)
            if mode == "index":
                _refuse_beyond(indices, length)
            return ins[data].take(indices, axis, out, inside)

        return look_up


_declare_gather(take, 0)


@take.vmap
def take_vmap(ins, batched, *, axis, mode):
    a, indices = ins
    if not batched[1]:
        return ops.take(a, indices, axis=axis % (len(a.shape) - 1) + 1, mode=mode)
    if axis % (len(a.shape) - batched[0]):
        return NotImplemented
    if not batched[0]:
        return ops.take(a, indices, axis=0, mode=mode)
    if mode in ("raise", "index"):  # kernels that refuse indices beyond one sample
        return NotImplemented
    size, length, *rest = a.shape
    return ops.take(a.reshape((size * length, *rest)), _sample_indices(indices, size, length, mode), axis=0)


def _sample_indices(indices: Any, size: int, length: int, mode: Mode) -> Any:
    """Indices into each sample as indices into the concatenated samples."""
    places = ops.Cast(indices, dtype="int64")
    if mode == "clip":
        places = ops.clip(places, a_min=0, a_max=length - 1)
    elif mode != "raise":  # negative indices count from the end
        places = ops._npi_mod_scalar(places, scalar=length)
    first = ops._contrib_arange_like(places, axis=0, step=length).reshape((size, *[1] * (len(places.shape) - 1)))
    return ops.broadcast_add(places, first)


@declare(name="_backward_take", types="T,I,U->T", unread=(2,), cheap=True)
def take_sum(g, indices, a, *, axis: int = 0, mode: Mode = "clip"):
    """Zeros of the shape of ``a`` with ``g`` added at the slices that ``take`` reads."""


def _slices_at(xp: ArrayModule, indices: Array, shape: Shape, *, axis: int, mode: Mode) -> Array:
    axis = check_axis(axis, len(shape))
    return places_along(xp, integer_indices(xp, indices, shape[axis], mode).reshape(1, -1, 1), shape, axis)


declare_scatter(take_sum, _slices_at)
adjoint_pair(take, take_sum)


@take_sum.vmap
def take_sum_vmap(ins, batched, *, axis, mode):
    g, indices, a = ins
    if not batched[1]:
        g, a = repeat_inputs([g, a], [batched[0], batched[2]])
        return ops._backward_take(g, indices, a, axis=axis % (len(a.shape) - 1) + 1, mode=mode)
    g, indices, a = repeat_inputs(ins, batched)
    size, length, *rest = a.shape
    if axis % (len(rest) + 1):
        return NotImplemented
    places = _sample_indices(indices, size, length, mode)
    return ops._backward_take(g, places, a.reshape((size * length, *rest)), axis=0)


@declare(name="_sparse_retain", types="T,I->T")
def sparse_retain(data, indices):
    """``data`` with zeros in all rows except those at ``indices``."""


@sparse_retain.infer
def sparse_retain_infer(data, indices):
    check_some(data, 0, indices)
    return data


def _retained_rows(xp: ArrayModule, data: Array, indices: Array) -> tuple[Shape, Array, Array]:
    rows = indices.astype(xp.int64)
    return data.shape, rows, data[rows]


declare_writes(sparse_retain, _retained_rows)
linear(sparse_retain, sparse_retain)


@declare(name="Embedding", types="I,T=@dtype->T", partly=(1,), cheap=True,
         aliases=("_sparse_Embedding", "_npx_embedding"))
def embedding(data, weight, *, input_dim: Positive, output_dim: Count, dtype: np.dtype = _FLOAT32,
              sparse_grad: bool = False):
    """Rows of ``weight`` at the integers in ``data``; integers out of range are clipped."""


declare_form(embedding, "(...) (@input_dim, @output_dim) -> (..., @output_dim)")


_declare_gather(embedding, 1)


@embedding.grad
def embedding_grad(g, ins, outs):
    return (None, ops._backward_take(g, *ins))


@embedding.few_rows
def embedding_few_rows(stypes, *, sparse_grad):
    return (1,) if sparse_grad else ()


@embedding.vmap
def embedding_vmap(ins, batched, **attrs):
    return NotImplemented if batched[1] else ops.Embedding(*ins, **attrs)


@composed(name="_contrib_SparseEmbedding", types="I,T=@dtype->T", partly=(1,))
def sparse_embedding(data, weight, *, input_dim: Positive, output_dim: Count, dtype: np.dtype = _FLOAT32,
                     deterministic: bool = False):
    """``Embedding`` whose gradient stores the rows that were looked up; it is deterministic in any case."""
    return ops.Embedding(data, weight, input_dim=input_dim, output_dim=output_dim, dtype=dtype, sparse_grad=True)


declare_form(sparse_embedding, "(...) (@input_dim, @output_dim) -> (..., @output_dim)")


@sparse_embedding.few_rows
def sparse_embedding_few_rows(stypes):
    return (1,)


# --------------------------------------------------------------------------------------------------- pick

PickMode = Literal["wrap", "clip", "index"]


def _shape_without_axis(data: Shape, axis: int | None, keepdims: bool) -> Shape:
    """The shape of ``data`` without an axis, or with length one there; an array with no other axis keeps it."""
    if axis is None:
        raise AttrError("axis=None: name the axis to pick along")
    axis = check_axis(axis, len(data))
    return (*data[:axis], *((1,) if keepdims else ()), *data[axis + 1:]) or (1,)


@declare(types="T,I->T", partly=(0,), aliases=("choose_element_0index", "_npx_pick"), cheap=True)
def pick(data, index, *, axis: int | None = -1, keepdims: bool = False, mode: PickMode = "clip"):
    """One element along ``axis`` for each position of the other axes, at the index that ``index`` holds at this
    position."""


shift_axes(pick, flat=True)


@pick.fill
def pick_fill(ins, outs, *, axis, keepdims):
    data, index = ins
    if data is None:
        return ins
    if index is None:
        return [data, _shape_without_axis(data, axis, keepdims)]
    return [data, one_of(index, [_shape_without_axis(data, axis, False), _shape_without_axis(data, axis, True)])]


@pick.infer
def pick_infer(data, index, *, axis, keepdims):
    if index not in (_shape_without_axis(data, axis, False),
                     _shape_without_axis(data, axis, True)) and (index or len(data) > 1):
        raise ShapeError(f"index: expected shape {show(_shape_without_axis(data, axis, keepdims))}, got {show(index)}")
    check_some(data, axis, index)
    return _shape_without_axis(data, axis, keepdims)


def _flat_indexer(xp: ArrayModule, shape: Shape, index: Array, axis: int, mode: PickMode) -> Callable[[Array], Array]:
    """A function that computes the flat indices of elements for ``pick``, from the data's shape and the indices."""
    axis = check_axis(axis, len(shape))
    length, inner = shape[axis], math.prod(shape[axis + 1:])
    if xp is not np or index.size > _PREPARED:
        places = math.prod(shape[:axis]), 1, inner
        return lambda index: places_along(xp, integer_indices(xp, index, length, mode).reshape(places), shape,
                                          axis).reshape(-1)
    first = places_along(np, np.zeros((1, 1, 1), np.int64), shape, axis).reshape(-1)
    zero, last = np.zeros((), np.int64), np.asarray(length - 1)

    def run(index: Array) -> Array:
        places = index.astype(np.int64).reshape(-1)
        if mode == "index":
            _refuse_beyond(places, length)
        if mode in ("wrap", "index"):
            places %= length
        else:
            np.minimum(np.maximum(places, zero, out=places), last, out=places)
        if inner != 1:
            places *= inner
        return np.add(places, first, places)

    return run


@pick.in_parts  # no body: bodies use it to read at indices
def pick_in_parts(xp, data, index, *, axis, keepdims, mode):
    spots, shape = _flat_indexer(xp, data.shape, index, axis, mode), _shape_without_axis(data.shape, axis, keepdims)
    few = xp is np and index.size <= _PREPARED

    def run(data: Array, index: Array, out: Array | None = None) -> Array:
        places = spots(index)
        if few:
            return data.reshape(-1).take(places.reshape(shape), None, out, "clip")  # all of them are valid
        if data.flags.c_contiguous:
            return read_elements(xp, data.reshape(-1), places.reshape(shape), out)
        # NumPy's ``unravel_index`` is wrong for a column of more indices than its buffer holds.
        key = tuple([part.reshape(shape) for part in xp.unravel_index(places, data.shape)])
        return read_elements(xp, data, key, out)

    return run


@declare(name="_backward_pick", types="T,I,U->T", unread=(2,), cheap=True)
def pick_put(g, index, data, *, axis: int | None = -1, keepdims: bool = False, mode: PickMode = "clip"):
    """Zeros of the shape of ``data`` with ``g`` at the elements that ``pick`` reads."""


shift_axes(pick_put, of=2, flat=True)


@pick_put.in_parts  # no body: bodies use it to write at indices
def pick_put_in_parts(xp, g, index, data, *, axis, mode):
    spots, shape, dtype = _flat_indexer(xp, data.shape, index, axis, mode), data.shape, g.dtype

    def run(g: Array, index: Array, data: Array, out: Array | None = None) -> Array:
        if out is None or not out.flags.c_contiguous:
            dx = xp.zeros(shape, dtype)
        else:
            dx = out
            dx.fill(0)
        dx.reshape(-1)[spots(index)] = g.reshape(-1)
        return stored_in(dx, out)

    return run


adjoint_pair(pick, pick_put)


@composed(types="T,I->T", partly=(0,))
def batch_take(a, indices):
    """One element of each row of ``a``: ``a[i, indices[i]]``; indices out of range are clipped."""
    return ops.pick(a, indices, axis=1)


declare_form(batch_take, "(rows, columns) (rows)")


# ------------------------------------------------------------------------------------- one_hot and where


@declare(types="I->@dtype", aliases=("_npx_one_hot",), cheap=True)
def one_hot(indices, *, depth: Count, on_value: Number = 1.0, off_value: Number = 0.0,
            dtype: np.dtype = _FLOAT32):
    """One-hot vectors: ``on_value`` at the index, ``off_value`` elsewhere; an index out of range gives ``off_value``
    only."""


alike(one_hot)


declare_form(one_hot, "(...) -> (..., @depth)")


@one_hot.kernel()  # no body: it writes to indices of a filled array
def one_hot_xp(xp, indices, *, depth, on_value, off_value, dtype, out=None):
    on, off = (constant(xp, value, dtype) for value in (on_value, off_value))
    result = out_or_empty(xp, (*indices.shape, depth), dtype, out)
    result[...] = off
    if depth:
        named = indices.astype(xp.int64).reshape(-1)
        nearest = xp.minimum(xp.maximum(named, 0), depth - 1)
        places = xp.arange(0, result.size, depth) + nearest
        result.reshape(-1)[places] = xp.where(named == nearest, on, off)
    return stored_in(result, out)


one_hot.grad(ZERO)


@declare(types="C,T,T->T", aliases=("_sparse_where",), cheap=True)
def where(condition, x, y):
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; a vector ``condition`` selects rows."""


alike(where)


@where.fill
def where_fill(ins, outs):
    condition, x, y = ins
    shape = unify(unify(x, y), outs[0])
    return [condition, shape, shape]


@where.infer
def where_infer(condition, x, y):
    if condition != x and condition != x[:1]:
        raise ShapeError(f"condition: expected shape {show(x)} or {show(x[:1])}, got {show(condition)}")
    return x


def declare_choice(op: Op, number_there: bool = False, rows: bool = False) -> None:
    """Declare that an operator selects its second input where its first is nonzero, and its third elsewhere.

    Parameters
    ----------
    op : Op
        The operator. If it has only two inputs, its attribute ``scalar`` takes the place of the other.
    number_there : bool
        Whether the scalar takes the place of the second input.
    rows : bool
        Whether the first input selects along the leading axes; otherwise it broadcasts.
    """

    @op.in_parts  # no body: bodies use it to select by a condition
    def choosing_in_parts(xp, condition, *arrays, scalar=None):
        rank = arrays[-1].ndim - condition.ndim
        number = constant(xp, scalar, arrays[0].dtype) if len(arrays) == 1 else None

        def choose(condition, x, y=number, *, out=None):
            if number_there:
                x, y = number, x
            if rows:
                condition = condition.reshape((*condition.shape, *(1,) * rank))
            return select(xp, condition, x, y, out)

        return choose


declare_choice(where, rows=True)


@where.grad
def where_grad(g, ins, outs, *, needs):
    zeros = ops.zeros_like(g)
    return (None, ops.where(ins[0], g, zeros) if needs[1] else None,
            ops.where(ins[0], zeros, g) if needs[2] else None)

"""Comparisons of elements: sorting, choosing, histograms, closeness.

Sorting is stable. NaN counts as the largest value: it comes last, or first in descending order.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, axis_from_front, is_floating, show, unify
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..lookup.indexing import check_some, declare_scatter, integer_indices, places_along
from ..outputs import adjoint_pair
from ..places import declare_reads
from ..samples import shift_axes

_FLOAT32 = np.dtype("float32")

# One of this number of elements, or fewer, are found by a partition, in an array of at least this size.
_FEW, _MANY = 8, 1 << 12


def _sorting_indices(xp: ArrayModule, data: Array, axis: int | None, is_ascend: bool) -> tuple[Array, Array, int]:
    """Indices that sort along an axis, with the data and the axis; both are flattened for None."""
    shape, axis = axis_from_front(data.shape, axis)
    data = data.reshape(shape)
    if is_ascend:
        return xp.argsort(data, axis=axis, kind="stable"), data, axis
    # Sorting the reversed array and reversing the result keeps equal elements in order, and negates nothing.
    places = data.shape[axis] - 1 - xp.flip(xp.argsort(xp.flip(data, axis), axis=axis, kind="stable"), axis)
    return places, data, axis


def _first_sorting_indices(xp: ArrayModule, data: Array, axis: int | None, is_ascend: bool, k: int
                           ) -> tuple[Array, Array, int]:
    """The first ``k`` of ``_sorting_indices`` along the axis, or all if ``k`` is less than one. Few of many are found
    by a partition, and only they are sorted."""
    shape, place = axis_from_front(data.shape, axis)
    length, kind = shape[place], data.dtype.kind if data.dtype.isbuiltin == 1 else ""
    k = k if k > 0 else length
    if xp is not np or data.size < _MANY or k * _FEW > length or kind not in ("f", "i", "u") or (
            kind == "f" and np.isnan(np.max(data))):
        places, data, place = _sorting_indices(xp, data, axis, is_ascend)
        return places[(slice(None),) * place + (slice(k),)], data, place
    data = data.reshape(shape)
    rows = np.moveaxis(data, place, -1)
    last = k - 1 if is_ascend else length - k
    bound = np.partition(rows, last, -1)[..., last, None]
    chosen, equal = rows < bound if is_ascend else rows > bound, rows == bound
    missing = k - np.count_nonzero(chosen, -1)[..., None]
    if (np.count_nonzero(equal, -1)[..., None] != missing).any():  # of equal elements, those with the least indices
        equal &= np.cumsum(equal, -1) <= missing
    places = np.nonzero(chosen | equal)[-1].reshape(*rows.shape[:-1], k)
    order, _, _ = _sorting_indices(np, np.take_along_axis(rows, places, -1), -1, is_ascend)
    return np.moveaxis(np.take_along_axis(places, order, -1), -1, place), data, place


# ------------------------------------------------------------------------------------------- sort, argsort


@declare(types="T->T,int32", outputs=("output0", "output1"), visible=lambda: 1, aliases=("_npi_sort",))
def sort(data, *, axis: int | None = -1, is_ascend: bool = True):
    """``data`` sorted along ``axis``, or flattened if None; a hidden output holds the indices of the elements."""


@declare(types="T->@dtype", aliases=("_npi_argsort",))
def argsort(data, *, axis: int | None = -1, is_ascend: bool = True, dtype: np.dtype = _FLOAT32):
    """Indices that sort ``data`` along ``axis``, or flattened if None."""


# --------------------------------------------------------------------------------------------------- topk

Returned = Literal["value", "indices", "mask", "both"]


def _top_outputs(ret_typ: str) -> list[str]:
    return ["output0", "output1"] if ret_typ in ("value", "both") else ["output"]


@declare(outputs=lambda *, ret_typ: _top_outputs(ret_typ),
         visible=lambda *, ret_typ: 2 if ret_typ == "both" else 1, aliases=("_npx_topk",))
def topk(data, *, axis: int | None = -1, k: int = 1, ret_typ: Returned = "indices", is_ascend: bool = False,
         dtype: np.dtype = _FLOAT32):
    """The ``k`` largest elements along ``axis``, or of the flattened ``data``; with ``is_ascend`` the smallest.

    If ``k`` is less than one, all elements. ``ret_typ`` chooses the output: their indices as ``dtype`` (``indices``),
    their values (``value``), both (``both``), or a ``mask`` with ones at their positions.
    """


@topk.types
def topk_types(ins, outs, *, ret_typ, dtype):
    if ret_typ in ("value", "both"):
        dtype_of_data = ins[0] or outs[0]
        return [dtype_of_data], [dtype_of_data, dtype]
    if ret_typ == "mask":
        dtype_of_data = ins[0] or outs[0]
        return [dtype_of_data], [dtype_of_data]
    return ins, [dtype]


def _declare_sort(op: Op, ret_typ: Returned = "both") -> None:
    """Declare the rules and the kernel of an operator that sorts elements. ``ret_typ`` tells what it returns, unless
    the operator has an attribute for this."""
    shift_axes(op, flat=True)

    @op.infer
    def ranking_infer(data, *, axis, k=0, ret_typ=ret_typ):
        flat, axis = axis_from_front(data, axis)
        if k > flat[axis]:
            raise AttrError(f"k={k}: there are {flat[axis]} elements to choose from")
        top = (*flat[:axis], k if k > 0 else flat[axis], *flat[axis + 1:])
        return data if ret_typ == "mask" else [top, top] if ret_typ in ("value", "both") else top

    @op.kernel()  # no body: no other operator returns indices in sorted order
    def ranking_xp(xp, data, *, axis, is_ascend, k=0, ret_typ=ret_typ, dtype=np.int32):
        shape = data.shape
        places, data, axis = _first_sorting_indices(xp, data, axis, is_ascend, k)
        if ret_typ == "indices":
            return places
        if ret_typ == "mask":
            mask = xp.zeros(data.shape, data.dtype)
            mask[_axis_key(xp, places, data.shape, axis)] = 1
            return mask.reshape(shape)
        return xp.take_along_axis(data, places, axis=axis), places.astype(dtype)

    @op.grad
    def ranking_grad(g, ins, outs, *, axis, ret_typ=ret_typ):
        if ret_typ in ("value", "both"):
            return (ops._backward_take_along_axis(g[0], outs[1], ins[0], axis=axis),)
        return (None,)


_declare_sort(sort)
_declare_sort(argsort, "indices")
argsort.grad(ZERO)
_declare_sort(topk)


def _axis_key(xp: ArrayModule, places: Array, shape: Shape, axis: int) -> tuple[Array, ...]:
    """The subscript that selects places along an axis of a shape."""
    key = [xp.arange(dim).reshape([-1] + [1] * (len(shape) - i - 1)) for i, dim in enumerate(shape)]
    key[axis] = places
    return tuple(key)


@declare(name="_take_along_axis", types="T,I->T")
def take_along_axis(data, indices, *, axis: int | None = -1):
    """Elements of ``data`` along ``axis``, or of the flattened ``data``, at ``indices``. If an element is read several
    times, its gradients are added."""


@take_along_axis.infer
def take_along_axis_infer(data, indices, *, axis):
    flat, axis = axis_from_front(data, axis)
    unify(indices, (*flat[:axis], ANY, *flat[axis + 1:]))
    check_some(flat, axis, indices)
    return indices


def _at_indices(xp: ArrayModule, data: Array, indices: Array, *, axis: int | None) -> tuple[Array, tuple[Array, ...]]:
    shape, axis = axis_from_front(data.shape, axis)
    return data.reshape(shape), _axis_key(xp, indices.astype(xp.int64), shape, axis)


declare_reads(take_along_axis, _at_indices)


@declare(name="_backward_take_along_axis", types="T,I,U->T", unread=(2,))
def put_along_axis(g, indices, data, *, axis: int | None = -1):
    """Zeros of the shape of ``data`` with ``g`` added at ``indices`` along ``axis``, which may repeat."""


adjoint_pair(take_along_axis, put_along_axis)


def _flat_places(xp: ArrayModule, indices: Array, shape: Shape, *, axis: int | None) -> Array:
    """Flat indices into a shape of the elements at indices along an axis, or at flat indices for None."""
    flat, axis = axis_from_front(shape, axis)
    outer, inner = math.prod(flat[:axis]), math.prod(flat[axis + 1:])
    indices = integer_indices(xp, indices, flat[axis], "index")
    return places_along(xp, indices.reshape(outer, indices.shape[axis], inner), flat, axis)


declare_scatter(put_along_axis, _flat_places)


# ---------------------------------------------------------------------------------------------- histogram


@declare(name="_histogram", types="*T->int64,T", outputs=("output0", "output1"), aliases=("_npi_histogram",),
         arguments=lambda *, bin_cnt: ("data", "bins") if bin_cnt is None else ("data",))
def histogram(data, bins, *, bin_cnt: int | None = None, range: tuple[float, ...] | None = None):
    """The number of elements of ``data`` in each bin, and the edges of the bins.

    The edges are ``bins``, or divide ``range`` into ``bin_cnt`` equal bins. The last bin includes its right edge;
    elements outside and NaN are not counted.
    """


@histogram.infer
def histogram_infer(data, bins=None, *, bin_cnt, range):
    if bin_cnt is None:
        if len(bins) != 1 or bins[0] < 2:
            raise ShapeError(f"bins: expected a row of two edges or more, got shape {show(bins)}")
        return [(bins[0] - 1,), bins]
    if bin_cnt < 1 or range is None or len(range) != 2 or not range[0] < range[1]:
        raise AttrError(f"bin_cnt={bin_cnt}, range={range}: expected the number of bins, and their range")
    return [(bin_cnt,), (bin_cnt + 1,)]


@histogram.kernel()  # no body: no operator counts elements by index
def histogram_xp(xp, data, bins=None, *, bin_cnt, range):
    edges = bins.copy() if bin_cnt is None else xp.linspace(range[0], range[1], bin_cnt + 1)
    numbers, count = data.reshape(-1).astype(edges.dtype), edges.shape[0] - 1
    places = xp.minimum(xp.searchsorted(edges, numbers, side="right") - 1, count - 1)
    inside = (numbers >= edges[0]) & (numbers <= edges[-1])
    return xp.bincount(xp.where(inside, places, count), minlength=count + 1)[:count], edges


histogram.grad(ZERO)


# -------------------------------------------------------------------------------------- counts and closeness


@composed(name="_contrib_getnnz", types="T->int64")
def getnnz(data, *, axis: Literal[0, 1] | None = None):
    """Number of stored elements of a matrix: in total, of each column (``axis=0``), or of each row (``axis=1``).

    Stored zeros of a ``csr`` matrix count; those of a dense one do not.
    """
    stored = ops.Cast(ops._npi_not_equal_scalar(data, scalar=0.0), dtype="int64")
    return ops.reshape(ops._np_sum(stored, axis=axis), shape=(-1,))


declare_form(getnnz, "(rows, columns) ->")
getnnz.grad(ZERO)


@composed(name="_contrib_allclose", types="T,T->uint8")
def allclose(a, b, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True):
    """1 if all elements of ``a`` differ from those of ``b`` by at most ``atol + rtol * |b|``, else 0; a uint8
    scalar."""
    if not is_floating(np.dtype(a.dtype)):
        a, b = ops.Cast(a, dtype="float64"), ops.Cast(b, dtype="float64")
    within = ops._npi_less_equal(ops.abs(a - b), ops.abs(b) * rtol + atol)
    near = ops._npi_logical_or(ops._npi_logical_and(within, ops._npi_isfinite(b)), ops._npi_equal(a, b))
    if equal_nan:
        near = ops._npi_logical_or(near, ops._npi_logical_and(ops._npi_isnan(a), ops._npi_isnan(b)))
    return ops.Cast(ops._np_all(near), dtype="uint8")


declare_form(allclose, "(...) (...) -> ()")
allclose.grad(ZERO)

"""Indexing: picking and writing elements by indices, sorting and searching.

Negative indices count from the end of an axis. An index beyond an axis is refused on the host and undefined on other
devices; only ``take`` has modes for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal, overload

import numpy as np

from ...cells.tensor import Tensor, take_masked
from ...cells.tensor_base import is_number
from ...cells.typing import AnyShape, TensorLike
from ...core.registry import ops
from ...core.spec import is_floating, limits, show
from ...errors import ArgumentError, DTypeError, ShapeError
from .array import broadcast_to, concat, swapaxes
from .creation import arange, full, meshgrid, zeros
from .lift import like, one_axis, shape_of, tensor
from .math import div, maximum, minimum, where

__all__ = [
    "argsort", "argwhere", "bincount", "bucketize", "cartesian_prod", "combinations", "diag", "diag_embed", "diagflat",
    "diagonal", "diagonal_scatter", "gather", "gather_d", "gather_elements", "gather_nd", "index_add", "index_fill",
    "index_select", "intopk", "masked_select", "matrix_band_part", "msort", "nonzero", "reverse_sequence", "scatter",
    "scatter_nd", "searchsorted", "select_scatter", "slice", "sort", "take", "tensor_scatter_add", "tensor_scatter_div",
    "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul", "tensor_scatter_sub",
    "tensor_scatter_update", "tensor_slice", "top_k", "topk", "trace", "tril", "triu", "unique", "unique_consecutive",
    "unique_with_pad", "unsorted_segment_sum"]


def _index(value: TensorLike, what: str) -> Tensor:
    index = tensor(value)
    if index._dt.kind not in "iu":
        raise DTypeError(f"{what}: indices must be integers, got dtype {index._dt}")
    return index


def _normalize_indices(index: Tensor, length: int) -> Tensor:
    """Indices normalised to count from the front; those beyond the axis are refused."""
    return ops.take(tensor(np.arange(length)), index, axis=0, mode="index")


def _known(value: TensorLike) -> np.ndarray:
    """Values on the host, for functions whose result shapes depend on values."""
    return tensor(value).asnumpy()


# --------------------------------------------------------------------------------------------------- selection


def gather(input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor:
    """The slices along an axis at the given indices.

    Parameters
    ----------
    batch_dims : int
        Number of leading axes that data and indices share, as a batch.
    """
    x, index = tensor(input_params), _index(input_indices, "gather")
    axis = one_axis(axis, x.ndim, "gather")
    if not batch_dims:
        return ops.take(x, index, axis=axis, mode="index")
    if batch_dims > axis or x.shape[:batch_dims] != index.shape[:batch_dims]:
        raise ShapeError(f"gather: batch_dims={batch_dims} does not fit {x.shape}, {index.shape} and axis {axis}")
    between, length, trailing = x.shape[batch_dims:axis], x.shape[axis], x.shape[axis + 1:]
    batch, middle = math.prod(x.shape[:batch_dims]), math.prod(between)
    rows = x.reshape((batch * middle * length, *trailing))
    per = _normalize_indices(index, length).reshape((batch, 1, -1))
    return ops.take(rows, per + tensor(np.arange(batch * middle).reshape(batch, middle, 1) * length), axis=0).reshape(
        (*x.shape[:batch_dims], *between, *index.shape[batch_dims:], *trailing))


def take(input: TensorLike, index: TensorLike, axis: int | None = None, mode: str = "clip") -> Tensor:
    """The slices along an axis, or elements of the flat tensor, at the given indices.

    Parameters
    ----------
    mode : {"clip", "wrap", "raise"}
        Indices beyond the axis are clipped to it, negative ones to 0; wrap around; or are refused, while negative ones
        count from the end.
    """
    x = tensor(input)
    if mode not in ("clip", "wrap", "raise"):
        raise ArgumentError(f"take: mode must be 'clip', 'wrap' or 'raise', got {mode!r}")
    return ops.take(x.reshape((-1,)) if axis is None else x, _index(index, "take"), axis=axis or 0,
                    mode="index" if mode == "raise" else mode)


def index_select(input: TensorLike, axis: int, index: TensorLike) -> Tensor:
    """The slices along an axis at the indices of a vector."""
    index = _index(index, "index_select")
    if index.ndim != 1:
        raise ShapeError(f"index_select: expected a vector of indices, got shape {index.shape}")
    return gather(input, index, axis)


def slice(input_x: TensorLike, begin: AnyShape, size: AnyShape) -> Tensor:
    """The part from ``begin`` on, of a size; -1 means up to the end.

    Parameters
    ----------
    input_x : Tensor
        A tensor of shape :math:`(d_0, ..)`.
    begin, size : tuple, list or tensor of int
        One value for each axis.

    Raises
    ------
    ValueError
        When the part exceeds the tensor, or has another number of axes.

    Examples
    --------
    >>> print(slice([[1, 2, 3], [4, 5, 6]], (0, 1), (2, -1)))
    [[2 3]
     [5 6]]
    """
    x, first, lengths = tensor(input_x), shape_of(begin), shape_of(size)
    if not len(first) == len(lengths) == x.ndim:
        raise ShapeError(f"slice: begin {first} and size {lengths} do not have one entry for each of the {x.ndim} axes "
                         f"of {x.shape}")
    lengths = tuple([all_ - at if length == -1 else length for all_, at, length in zip(x.shape, first, lengths)])
    if not all(0 <= at <= at + length <= all_ for all_, at, length in zip(x.shape, first, lengths)):
        raise ShapeError(f"slice: the part of size {lengths} from {first} on does not lie within {x.shape}")
    return ops.slice(x, begin=first, end=tuple([at + length for at, length in zip(first, lengths)]))


tensor_slice = slice


def _flat_indices(shape: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """Flat indices of elements: ``index`` along one axis, and their own position along the other axes."""
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    others = sum(np.arange(size).reshape([-1 if j == i else 1 for j in range(len(shape))]) * strides[i]
                 for i, size in enumerate(index.shape) if i != dim)
    return _normalize_indices(index, shape[dim]) * strides[dim] + tensor(np.asarray(others, np.int64))


def gather_elements(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Elements along an axis at the indices in ``index``, which has the same number of axes."""
    x, index = tensor(input), _index(index, "gather_elements")
    if x.ndim != index.ndim:
        raise ShapeError(f"gather_elements: {x.shape} and {index.shape} have different numbers of axes")
    dim = one_axis(dim, x.ndim, "gather_elements")
    return ops.take(x.reshape((-1,)), _flat_indices(x.shape, dim, index), axis=0)


def gather_d(x: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """See ``gather_elements``."""
    return gather_elements(x, dim, index)


def _columns(indices: TensorLike, what: str) -> Tensor:
    """Indices with their last axis, which holds coordinates, moved to the front, as operators expect."""
    index = _index(indices, what)
    return index.transpose((index.ndim - 1, *range(index.ndim - 1))) if index.ndim > 1 else index


def gather_nd(input_x: TensorLike, indices: TensorLike) -> Tensor:
    """The parts at coordinates, given along the last axis of ``indices``, for the leading axes."""
    return ops.gather_nd(tensor(input_x), _columns(indices, "gather_nd"))


def diag(input: TensorLike) -> Tensor:
    """A diagonal matrix from a vector; from a tensor with more axes, twice as many axes."""
    x = tensor(input)
    matrix = ops.diag(x.reshape((-1,)))
    return matrix if x.ndim < 2 else matrix.reshape(x.shape * 2)


def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonal matrices, over two axes of the result, from vectors along the last axis."""
    x = tensor(input)
    first, second = (one_axis(dim, x.ndim + 1, "diag_embed") for dim in (dim1, dim2))
    if first == second:
        raise ArgumentError(f"diag_embed: dim1 and dim2 are both {dim1}")
    count = x.shape[-1] + abs(offset)
    row, column = arange(count), arange(count)
    matrices = where(column - row.reshape((-1, 1)) == offset, ops.expand_dims(_shift_to_diagonal(x, offset), axis=-2),
                     0)
    order = [axis for axis in range(x.ndim + 1) if axis not in (first, second)]
    inverse = [0] * (x.ndim + 1)
    for at, axis in enumerate([*order, first, second]):
        inverse[axis] = at
    return matrices.transpose(tuple(inverse))


def _shift_to_diagonal(x: Tensor, offset: int) -> Tensor:
    """The elements of the last axis, moved to their columns on a diagonal."""
    if offset == 0:
        return x
    more = zeros((*x.shape[:-1], abs(offset)), x._dt)
    return concat((more, x) if offset > 0 else (x, more), -1)


def diagflat(input: TensorLike, offset: int = 0) -> Tensor:
    """A diagonal matrix of all elements of a tensor."""
    return diag_embed(tensor(input).reshape((-1,)), offset)


def matrix_band_part(x: TensorLike, lower: int, upper: int) -> Tensor:
    """Matrices with zeros more than ``lower`` below or ``upper`` above the diagonal; a negative bound keeps all."""
    x = tensor(x)
    x = x if lower < 0 else triu(x, -int(lower))
    return x if upper < 0 else tril(x, int(upper))


def select_scatter(input: TensorLike, src: TensorLike, axis: int, index: int) -> Tensor:
    """The tensor with the slice at ``index`` along an axis replaced by ``src``."""
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "select_scatter")
    src, at = like(src, x), index + x.shape[axis] if index < 0 else index
    if src.shape != x.shape[:axis] + x.shape[axis + 1:]:
        raise ShapeError(f"select_scatter: expected src of shape {x.shape[:axis] + x.shape[axis + 1:]}, got "
                         f"{src.shape}")
    on = (arange(x.shape[axis]) == at).reshape((-1, *(1,) * (x.ndim - 1 - axis)))
    return where(on, ops.expand_dims(src, axis=axis), x)


def diagonal_scatter(input: TensorLike, src: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with a diagonal over two axes replaced by ``src``, whose last axis it is; see ``diagonal``."""
    x, shape = tensor(input), diagonal(input, offset, dim1, dim2).shape
    src = like(src, x)
    if src.shape != shape:
        raise ShapeError(f"diagonal_scatter: expected src of shape {shape}, got {src.shape}")
    first, second = (one_axis(dim, x.ndim, "diagonal_scatter") for dim in (dim1, dim2))
    rows, columns = x.shape[first], x.shape[second]
    wide = diag_embed(src, offset, first, second)
    for axis, length in ((first, rows), (second, columns)):  # sets elements off the diagonal, and beyond its end
        more = length - wide.shape[axis]
        if more > 0:
            end = zeros(tuple(more if i == axis else n for i, n in enumerate(wide.shape)), x._dt)
            wide = concat((wide, end), axis)
        elif more < 0:
            wide = ops.slice_axis(wide, axis=axis, begin=0, end=length)
    column, row = arange(columns), arange(rows)
    on = column - row.reshape((-1, 1)) == offset if first < second else row - column.reshape((-1, 1)) == offset
    low, high = sorted((first, second))
    return where(on.reshape(tuple(n if i in (low, high) else 1 for i, n in enumerate(x.shape))), wide, x)


def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal over two axes, as the last axis: the main one, or ``offset`` above it; empty beyond the corners."""
    x = tensor(input)
    return ops._np_diagonal(x, offset=offset, axis1=one_axis(dim1, x.ndim, "diagonal"),
                            axis2=one_axis(dim2, x.ndim, "diagonal"))


def trace(input: TensorLike) -> Tensor:
    """The sum of the diagonal of a matrix, in its dtype."""
    x = tensor(input)
    return ops._np_sum(diagonal(x))._cast(x._dt)


def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, with zeros above a diagonal."""
    return ops._npi_tril(tensor(input), k=int(diagonal))


def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, with zeros below a diagonal."""
    return ops._npi_triu(tensor(input), k=int(diagonal))


# -------------------------------------------------------------------------------------------------------- put


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: AnyShape) -> Tensor:
    """Zeros of a shape, with ``updates`` added at the coordinates in ``indices``; the reverse of ``gather_nd``."""
    updates, dims = tensor(updates), shape_of(shape)
    return _scatter_add(zeros(dims, updates._dt), indices, updates)


def _scatter_add(x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor:
    return ops._backward_gather_nd(updates, _columns(indices, "tensor_scatter"), x)


def tensor_scatter_add(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` added at coordinates; updates of equal coordinates add up."""
    x = tensor(input_x)
    return x + _scatter_add(x, indices, like(updates, x))


def tensor_scatter_sub(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` subtracted at coordinates; updates of equal coordinates add up."""
    x = tensor(input_x)
    return x - _scatter_add(x, indices, like(updates, x))


def tensor_scatter_update(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` written at coordinates; the last of equal coordinates wins."""
    x = tensor(input_x)
    return ops._scatter_set_nd(x, like(updates, x), _columns(indices, "tensor_scatter_update"))


def _scatter_combined(name: str, neutral: Callable[[np.dtype], float], reduce: str,
                      join: Callable[[Tensor, Tensor], Tensor],
                      doc: str) -> Callable[[TensorLike, TensorLike, TensorLike], Tensor]:
    """A scatter that combines, for each element, all updates with its coordinates.

    It compares each element with each update, so time and memory grow with the product of both.
    """

    def function(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
        x, index, updates = tensor(input_x), _index(indices, name), tensor(updates)
        updates = like(updates, x)
        depth = index.shape[-1]
        lengths, trailing = x.shape[:depth], x.shape[depth:]
        at = sum((_normalize_indices(index[..., i], length) * math.prod(lengths[i + 1:])
                  for i, length in enumerate(lengths)),
                 tensor(np.zeros(1, np.int64)))
        hit = at.reshape((1, -1)) == tensor(np.arange(math.prod(lengths)).reshape(-1, 1))
        hit = hit.reshape((*hit.shape, *(1 for _ in trailing)))
        named = where(hit, updates.reshape((1, -1, *trailing)), neutral(x._dt))
        return join(x, getattr(ops, reduce)(named, axis=1).reshape(x.shape)._cast(x._dt))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _smallest_value(dtype: np.dtype) -> float:
    return -math.inf if is_floating(dtype) else limits(dtype)[0]


def _largest_value(dtype: np.dtype) -> float:
    return math.inf if is_floating(dtype) else limits(dtype)[1]


tensor_scatter_max = _scatter_combined("tensor_scatter_max", _smallest_value, "_np_max", maximum,
                                       "The larger of what is there and all of ``updates`` that name the place.")
tensor_scatter_min = _scatter_combined("tensor_scatter_min", _largest_value, "_np_min", minimum,
                                       "The smaller of what is there and all of ``updates`` that name the place.")
tensor_scatter_mul = _scatter_combined("tensor_scatter_mul", lambda dtype: 1, "_np_prod", lambda x, u: x * u,
                                       "What is there times all of ``updates`` that name the place.")
tensor_scatter_div = _scatter_combined("tensor_scatter_div", lambda dtype: 1, "_np_prod",
                                       lambda x, u: x / u if is_floating(x._dt) else div(x, u, rounding_mode="trunc"),
                                       "What is there divided by all of ``updates`` that name the place; of integers, "
                                       "cut.")


def tensor_scatter_elements(input_x: TensorLike, indices: TensorLike, updates: TensorLike, axis: int = 0,
                            reduction: str = "none") -> Tensor:
    """The tensor with ``updates`` written at indices along an axis, or added with ``reduction="add"``."""
    x, index = tensor(input_x), _index(indices, "tensor_scatter_elements")
    updates = like(updates, x)
    if reduction not in ("none", "add"):
        raise ArgumentError(f"tensor_scatter_elements: reduction must be 'none' or 'add', got {reduction!r}")
    axis = one_axis(axis, x.ndim, "tensor_scatter_elements")
    at, flat = _flat_indices(x.shape, axis, index).reshape((-1, 1)), x.reshape((-1,))
    put = tensor_scatter_add if reduction == "add" else tensor_scatter_update
    return put(flat, at, updates.reshape((-1,))).reshape(x.shape)


def scatter(input: TensorLike, axis: int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with ``src``, a tensor or one number, written at indices along an axis."""
    src = full(tensor(index).shape, src) if is_number(src) else src
    return tensor_scatter_elements(input, index, src, axis)


def index_fill(x: TensorLike, axis: int, index: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with the slices at indices along an axis filled with a number."""
    x, index = tensor(x), _index(index, "index_fill")
    axis = one_axis(axis, x.ndim, "index_fill")
    named = ops._np_any(_normalize_indices(index, x.shape[axis]).reshape((-1, 1)) == tensor(np.arange(x.shape[axis])),
                        axis=0)
    return where(named.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim))), like(value, x), x)


def index_add(x: TensorLike, indices: TensorLike, y: TensorLike, axis: int, use_lock: bool = True,
              check_index_bound: bool = True) -> Tensor:
    """The tensor with slices of ``y`` added at indices along an axis."""
    x = tensor(x)
    axis = one_axis(axis, x.ndim, "index_add")
    front = tensor_scatter_add(swapaxes(x, 0, axis), _index(indices, "index_add").reshape((-1, 1)),
                               swapaxes(like(y, x), 0, axis))
    return swapaxes(front, 0, axis)


def unsorted_segment_sum(input_x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """Sums of the slices along the first axes that have the same number in ``segment_ids``; slices with a negative
    number are left out."""
    x, ids = tensor(input_x), _index(segment_ids, "unsorted_segment_sum")
    trailing = x.shape[ids.ndim:]
    count = int(num_segments)
    # elements with a negative number are summed in an additional segment
    segments = where(ids < 0, count, _normalize_indices(maximum(ids, 0), count))
    return scatter_nd(segments.reshape((-1, 1)), x.reshape((-1, *trailing)), (count + 1, *trailing))[:count]


# ------------------------------------------------------------------------------------------- sorting and order


def sort(input_x: TensorLike, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their indices as int32."""
    x = tensor(input_x)
    axis = one_axis(axis, x.ndim, "sort")
    return ops.sort(x, axis=axis, is_ascend=not descending), argsort(x, axis, descending)


def argsort(input: TensorLike, axis: int = -1, descending: bool = False) -> Tensor:
    """Indices that sort the elements along an axis, as int32."""
    x = tensor(input)
    return ops.argsort(x, axis=one_axis(axis, x.ndim, "argsort"), is_ascend=not descending, dtype=np.dtype(np.int32))


def msort(input: TensorLike) -> Tensor:
    """Elements sorted along the first axis."""
    return sort(input, 0)[0]


def bucketize(input: TensorLike, boundaries: Sequence[float], *, right: bool = False) -> Tensor:
    """For each element the index of the interval between increasing boundaries, int32; with ``right`` intervals include
    their lower boundary."""
    x = tensor(input)
    return searchsorted(like(np.asarray(boundaries), x), x, out_int32=True, right=right)


def reverse_sequence(x: TensorLike, seq_lengths: TensorLike, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """Sequences along ``seq_dim`` reversed up to their lengths, which are given for ``batch_dim``."""
    x = tensor(x)
    time, batch = (one_axis(dim, x.ndim, "reverse_sequence") for dim in (seq_dim, batch_dim))
    if time == batch:
        raise ArgumentError(f"reverse_sequence: seq_dim and batch_dim are both {seq_dim}")
    order = (time, batch, *(axis for axis in range(x.ndim) if axis not in (time, batch)))
    turned = ops.SequenceReverse(x.transpose(order), tensor(seq_lengths), use_sequence_length=True)
    return turned.transpose(tuple(order.index(axis) for axis in range(x.ndim)))


def cartesian_prod(*inputs: TensorLike) -> Tensor:
    """The Cartesian product of vectors, a combination in each row."""
    vectors = [tensor(vector) for vector in inputs]
    return ops.stack(*[grid.reshape((-1,)) for grid in meshgrid(*vectors, indexing="ij")], axis=1,
                     num_args=len(vectors)) if len(vectors) > 1 else vectors[0].reshape((-1, 1))


def combinations(input: TensorLike, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of ``r`` elements of a vector, one in each row; ``with_replacement`` allows repetitions."""
    x = tensor(input)
    if x.ndim != 1:
        raise ShapeError(f"combinations: expected one axis, got the shape {x.shape}")
    ways = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(x.size), r)
    places = np.array(list(ways), np.int64).reshape((-1, r))
    return ops.take(x, tensor(places), axis=0)


def intopk(x1: TensorLike, x2: TensorLike, k: int) -> Tensor:
    """Whether the score of each row's class ``x2`` is among the ``k`` largest scores of the row ``x1``."""
    scores, label = tensor(x1), tensor(x2)
    own = ops.pick(scores, label, axis=1, keepdims=True, mode="index")
    return ops._np_sum((scores > own)._cast(np.dtype(np.int32)), axis=1) < k


def topk(input: TensorLike, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
        ) -> tuple[Tensor, Tensor]:
    """The ``k`` largest or smallest elements along an axis, and their indices as int32."""
    x = tensor(input)
    axis = one_axis(-1 if dim is None else dim, x.ndim, "topk")
    if not 1 <= k <= x.shape[axis]:
        raise ArgumentError(f"topk: k must be an int from 1 to {x.shape[axis]}, got {k!r}")
    return ops.topk(x, axis=axis, k=int(k), ret_typ="both", is_ascend=not largest, dtype=np.dtype(np.int32))


def top_k(input_x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis, and their indices as int32; an older name of ``topk``."""
    return topk(input_x, k, sorted=sorted)


def searchsorted(sorted_sequence: TensorLike, values: TensorLike, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: TensorLike | None = None) -> Tensor:
    """Insertion indices into the sorted last axis: before equal elements, or after them with ``right``."""
    x, values = tensor(sorted_sequence), tensor(values)
    if sorter is not None:
        x = gather_elements(x, -1, sorter)
    row = x.reshape((*x.shape[:-1], *(1,) * (values.ndim if x.ndim == 1 else 1), x.shape[-1]))
    at = values.reshape((*values.shape, 1))
    behind = row <= at if right or side == "right" else row < at
    return ops._np_sum(behind._cast(np.dtype(np.int64)), axis=-1)._cast(np.dtype("i4" if out_int32 else "i8"))


# --------------------------------------------------------------------------- whose shapes depend on values


@overload
def nonzero(input: TensorLike, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: TensorLike, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero(input: TensorLike, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Indices of the nonzero elements: one element in each row, or a tuple with one vector for each axis."""
    x = tensor(input)
    places = ops._npx_nonzero(x)
    return tuple([places[:, axis] for axis in range(x.ndim)]) if as_tuple else places


def argwhere(input: TensorLike) -> Tensor:
    """Indices of the nonzero elements, one in each row."""
    return nonzero(input)


def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where a mask holds, as a vector."""
    x, holds = tensor(input), tensor(mask)
    shape = np.broadcast_shapes(x.shape, holds.shape)
    return take_masked(broadcast_to(x, shape), broadcast_to(holds, shape))


def unique(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The distinct elements in order of first occurrence, and for each element its index among them."""
    x, int64 = tensor(input), np.dtype(np.int64)
    values, first, inverse = ops._npi_unique(x, return_index=True, return_inverse=True)
    order = ops.argsort(first, dtype=int64)
    which = ops.take(ops.argsort(order, dtype=int64), inverse).reshape(x.shape)
    return ops.take(values, order), which if x._dt == int64 else which._cast(np.dtype(np.int32))


def unique_with_pad(x: TensorLike, pad_num: int | TensorLike) -> tuple[Tensor, Tensor]:
    """The distinct elements of a vector, padded to its length with ``pad_num``; and the indices that ``unique`` gives.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(unique_with_pad(Tensor([1, 2, 2, 5, 1]), 0))
    (Tensor(shape=[5], dtype=Int64, value= [1, 2, 5, 0, 0]), Tensor(shape=[5], dtype=Int64, value= [0, 1, 1, 2, 0]))
    """
    x = tensor(x)
    if x.ndim != 1:
        raise ShapeError(f"unique_with_pad: expected a vector, got shape {show(x.shape)}")
    _, which = unique(x)
    pads = ops.zeros_like(x) + like(pad_num, x)
    return tensor_scatter_update(pads, which.reshape((-1, 1)), x), which


def bincount(input: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Counts of each integer from 0 up, or sums of weights."""
    numbers = _known(input)
    shares = None if weights is None else _known(weights)
    return tensor(np.bincount(numbers, shares, minlength).astype(np.float32))


def unique_consecutive(input: TensorLike, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Tensor | tuple[Tensor, ...]:
    """The elements without those equal to their predecessor; with ``dim``, slices along an axis.

    Parameters
    ----------
    return_inverse : bool
        Whether the index of each element in the result is returned, too.
    return_counts : bool
        Whether the length of each run is returned, too.
    dim : int, optional
        Axis whose slices are compared; by default the flat elements are compared.
    """
    x = tensor(input)
    rows = x.reshape((-1,)) if dim is None else swapaxes(x, 0, one_axis(dim, x.ndim, "unique_consecutive"))
    flat = rows.reshape((rows.shape[0], -1))
    differs = ops._np_sum((flat[1:] != flat[:-1])._cast(np.dtype(np.int64)), axis=1) > 0
    begins = concat((tensor(np.array([True])), differs), 0)
    uniques = take_masked(rows, begins)
    results = [uniques if dim is None else swapaxes(uniques, 0, dim)]
    if return_inverse:
        place = ops._np_cumsum(begins._cast(np.dtype(np.int64)), axis=0) - 1
        results.append(place.reshape(x.shape) if dim is None else place)
    if return_counts:
        at = take_masked(arange(rows.shape[0]), begins)
        results.append(concat((at[1:], tensor(np.array([rows.shape[0]]))), 0) - at)
    return results[0] if len(results) == 1 else tuple(results)

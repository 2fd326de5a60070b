"""Functions that choose, look up, compare and count: indexing by tensors, sets, histograms, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...cells import dtype as dtypes
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import AnyShape, Number, TensorDType, TensorLike
from ...core.spec import as_dtype
from ...errors import ArgumentError, ShapeError
from .. import ops
from ..ops.lift import one_axis, shape_of, to_common_dtype
from .creation import linspace
from .lift import as_operand, as_real, as_tensor

__all__ = [
    "argwhere", "array_equal", "array_equiv", "bincount", "choose", "digitize", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "in1d", "interp", "intersect1d", "isin", "isscalar", "piecewise",
    "promote_types", "ravel_multi_index", "result_type", "searchsorted", "select", "setdiff1d", "take",
    "take_along_axis", "unique", "unravel_index", "where"]

_INT32 = np.dtype(np.int32)


# ------------------------------------------------------------------------------------------------------ chosen


def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere; without both the indices where it holds.

    Examples
    --------
    >>> print(where([True, False], 1, 0))
    [1 0]
    """
    holds = as_tensor(condition) != 0
    if x is None and y is None:
        return ops.nonzero(holds, as_tuple=True)
    if x is None or y is None:
        raise ArgumentError("where: expected both x and y, or neither")
    left = as_tensor(x) if is_number(x) and is_number(y) else as_operand(x)
    return ops.where(holds, left, as_operand(y))


def argwhere(a: TensorLike) -> Tensor:
    """Indices of the nonzero elements, one in each row."""
    return ops.argwhere(as_tensor(a))


def select(condlist: Sequence[TensorLike], choicelist: Sequence[TensorLike], default: TensorLike = 0) -> Tensor:
    """For each element the first choice whose condition holds, or the default."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(f"select: expected a choice for each of {len(condlist)} conditions, got {len(choicelist)}")
    value: TensorLike = as_operand(default)
    for condition, choice in zip(list(condlist)[::-1], list(choicelist)[::-1]):
        value = where(condition, choice, value)
    return as_tensor(value)


def piecewise(x: TensorLike, condlist: TensorLike,
              funclist: Sequence[Callable[..., TensorLike] | Number], *args: Any, **kw: Any) -> Tensor:
    """For each element the result of the function, or the number, whose condition is true; an additional one is the
    default."""
    x = as_tensor(x)
    conditions = [as_tensor(each) != 0 for each in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    if len(funclist) - len(conditions) not in (0, 1):
        raise ArgumentError(f"piecewise: expected {len(conditions)} functions or one more, got {len(funclist)}")
    parts = [as_tensor(branch(x, *args, **kw) if callable(branch) else branch) for branch in funclist]
    default = parts[-1] if len(parts) > len(conditions) else ops.zeros_like(parts[0])
    value = ops.broadcast_to(default, x.shape)
    for condition, part in zip(conditions, parts):
        value = where(condition, part, value)
    return value


def _taken_places(index: Tensor, length: int, mode: str, what: str) -> Tensor:
    """Indices limited to an axis, by clipping or wrapping around."""
    if mode not in ("clip", "wrap", "raise"):
        raise ArgumentError(f"{what}: mode must be 'clip', 'wrap' or 'raise', got {mode!r}")
    if mode == "raise":
        return index
    return ops.clamp(index, 0, length - 1) if mode == "clip" else index % length


def take(a: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Slices along an axis, or elements of the flat tensor, at indices; for the modes see ``ops.take``."""
    return ops.take(as_tensor(a), as_tensor(indices), axis, mode)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: int | None) -> Tensor:
    """Elements along an axis at ``indices``, which has the same number of axes."""
    x, index = as_tensor(arr), as_tensor(indices)
    if axis is None:
        return ops.gather_elements(x.reshape((-1,)), 0, index)
    axis = one_axis(axis, x.ndim, "take_along_axis")
    shape = np.broadcast_shapes(*((*array.shape[:axis], 1, *array.shape[axis + 1:]) for array in (x, index)))
    wide, places = (ops.broadcast_to(each, (*shape[:axis], each.shape[axis], *shape[axis + 1:])) for each in (x, index))
    return ops.gather_elements(wide, axis, places)


def choose(a: TensorLike, choices: TensorLike, mode: str = "clip") -> Tensor:
    """For each element the value of the choice that it names."""
    index = as_tensor(a)
    parts = to_common_dtype(*(as_tensor(choice) for choice in (
        choices if isinstance(choices, (list, tuple)) else ops.unbind(as_tensor(choices)))))
    shape = np.broadcast_shapes(index.shape, *(part.shape for part in parts))
    places = ops.broadcast_to(_taken_places(index, len(parts), mode, "choose"), shape)
    stacked = ops.stack([ops.broadcast_to(part, shape) for part in parts])
    return ops.gather_elements(stacked, 0, ops.expand_dims(places, 0))[0]


# ------------------------------------------------------------------------------------------------ numbered places


def unravel_index(indices: TensorLike, shape: AnyShape, order: str = "C") -> tuple[Tensor, ...]:
    """Flat indices as indices along each axis.

    Parameters
    ----------
    order : {"C", "F"}
        Whether the last or the first axis varies fastest.
    """
    rest, lengths = as_tensor(indices), shape_of(shape)
    if order not in ("C", "F"):
        raise ArgumentError(f"unravel_index: order must be 'C' or 'F', got {order!r}")
    rest = ops.clamp(ops.where(rest < 0, rest + math.prod(lengths), rest), 0, math.prod(lengths) - 1)
    by_axis = []
    for length in lengths if order == "F" else lengths[::-1]:
        by_axis.append(rest % length)
        rest = rest // length
    return tuple(by_axis if order == "F" else by_axis[::-1])


def ravel_multi_index(multi_index: Sequence[TensorLike], dims: Sequence[int], mode: str = "clip", order: str = "C"
                      ) -> Tensor:
    """Indices along each axis as flat indices; see ``unravel_index``."""
    if order not in ("C", "F"):
        raise ArgumentError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    if len(multi_index) != len(dims):
        raise ArgumentError(f"ravel_multi_index: expected indices along {len(dims)} axes, got {len(multi_index)}")
    pairs = list(zip(multi_index, dims))
    total: Tensor | int = 0
    for index, length in pairs if order == "C" else pairs[::-1]:
        total = total * length + _taken_places(as_tensor(index), length, mode, "ravel_multi_index")
    return as_tensor(total)


def searchsorted(a: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None) -> Tensor:
    """Insertion indices (int32) of ``v`` into the sorted ``a``: before equal elements, or after them with
    ``side="right"``."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x = as_tensor(a)
    if x.ndim != 1:
        raise ShapeError(f"searchsorted: expected a vector, got the shape {x.shape}")
    x = x if sorter is None else ops.gather(x, as_tensor(sorter), 0)
    left, right = to_common_dtype(x, as_tensor(v))
    return ops.searchsorted(left, right, out_int32=True, side=side)


def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """Indices of the bins that contain the elements; int32.

    Parameters
    ----------
    right : bool
        Whether an edge belongs to the bin below it, instead of the one above.
    """
    edges = as_tensor(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: expected a vector of edges, got the shape {edges.shape}")
    if not edges.size:
        return ops.zeros_like(as_tensor(x))._cast(_INT32)
    rising = searchsorted(edges, x, "left" if right else "right")
    falling = edges.size - searchsorted(ops.flip(edges, (0,)), x, "left" if right else "right")
    return ops.where(edges[0] <= edges[-1], rising, falling)._cast(_INT32)


# ---------------------------------------------------------------------------------------------- set operations


def unique(x: TensorLike, return_inverse: bool = False) -> Any:
    """The distinct elements in order of first occurrence, and for each element its index among them; int32."""
    values, inverse = ops.unique(as_tensor(x))
    return (values, inverse._cast(_INT32)) if return_inverse else values


def isin(element: TensorLike, test_elements: TensorLike, invert: bool = False) -> Tensor:
    """Whether each element is in ``test_elements``, or with ``invert`` is not."""
    x, tested = to_common_dtype(as_tensor(element), as_tensor(test_elements).reshape((-1,)))
    is_member = ops.any(ops.expand_dims(x, -1) == tested, -1)
    return ops.logical_not(is_member) if invert else is_member


def in1d(ar1: TensorLike, ar2: TensorLike, invert: bool = False) -> Tensor:
    """Whether each element of the flat tensor is in ``ar2``, or with ``invert`` is not."""
    return isin(as_tensor(ar1).reshape((-1,)), ar2, invert)


def _sort_values(x: Tensor) -> Tensor:
    return ops.sort(x)[0]


def setdiff1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> Tensor:
    """The distinct elements of the first that are not in the second, sorted; ``assume_unique`` leaves their order."""
    x = as_tensor(ar1).reshape((-1,))
    x = x if assume_unique else _sort_values(unique(x))
    return ops.masked_select(x, in1d(x, ar2, invert=True))


def intersect1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that both have, sorted; with ``return_indices`` also their first indices."""
    x, y = to_common_dtype(*(as_tensor(array).reshape((-1,)) for array in (ar1, ar2)))
    common = _sort_values(unique(ops.masked_select(x, in1d(x, y))))
    if not return_indices:
        return common
    first = [ops.argmax((array.reshape((1, -1)) == common.reshape((-1, 1)))._cast(_INT32), 1)._cast(_INT32)
             for array in (x, y)]
    return common, *first


# --------------------------------------------------------------------------------------------------- comparisons


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> Tensor:
    """Whether both have the same shape and values, as a single boolean."""
    x, y = as_tensor(a1), as_tensor(a2)
    if x.shape != y.shape:
        return as_tensor(False)
    same = x == y
    return ops.all(ops.logical_or(same, ops.logical_and(ops.isnan(x), ops.isnan(y))) if equal_nan else same)


def array_equiv(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Whether both have the same values after broadcasting."""
    x, y = as_tensor(a1), as_tensor(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return as_tensor(False)
    return ops.all(x == y)


def isscalar(element: object) -> bool:
    """Whether a value is a number or text, and no tensor."""
    return isinstance(element, (str, bytes)) or (is_number(element) and not isinstance(element, TensorBase))


# ----------------------------------------------------------------------------------------- interpolation and counts


def interp(x: TensorLike, xp: TensorLike, fp: TensorLike, left: TensorLike | None = None,
           right: TensorLike | None = None) -> Tensor:
    """Linear interpolation between points; ``left`` before the first and ``right`` after the last.

    Parameters
    ----------
    xp, fp : vector
        Sorted coordinates of the points, and their values.
    """
    place, at, value = as_real(x), as_real(xp), as_real(fp)
    if at.ndim != 1 or at.shape != value.shape or not at.size:
        raise ShapeError(f"interp: expected points as two vectors of equal length, got {at.shape} and {value.shape}")
    behind = ops.clamp(searchsorted(at, place, "right"), 1, max(at.size - 1, 1))
    if at.size == 1:
        answer = ops.broadcast_to(value, place.shape) if place.ndim else value[0]
    else:
        x0, x1, y0, y1 = (ops.gather(point, places, 0) for point in (at, value) for places in (behind - 1, behind))
        wide = x1 - x0
        share = ops.where(wide == 0, 0.0, (place - x0) / ops.where(wide == 0, 1.0, wide))
        answer = y0 + (y1 - y0) * ops.clamp(share, 0.0, 1.0)
    answer = ops.where(place < at[0], value[0] if left is None else as_real(left), answer)
    return ops.where(place > at[-1], value[-1] if right is None else as_real(right), answer)


def bincount(x: TensorLike, weights: TensorLike | None = None, minlength: int = 0, length: int | None = None
             ) -> Tensor:
    """Counts of each integer from 0 up, or sums of weights; float32.

    Parameters
    ----------
    minlength : int
        Least number of counts.
    length : int
        Number of counts, if given; larger integers are not counted.
    """
    numbers = as_tensor(x)
    if numbers.ndim != 1 or numbers._dt.kind not in "iub":
        raise ArgumentError(f"bincount: expected a vector of integers, got {numbers.shape} of {numbers.dtype}")
    if length is None:
        length = max(int(ops.amax(numbers).asnumpy()) + 1 if numbers.size else 0, minlength)
    belongs = ops.arange(length).reshape((-1, 1)) == numbers
    shares = belongs._cast(np.dtype(np.float32))
    return ops.sum(shares if weights is None else shares * as_real(weights), 1)


def histogram_bin_edges(a: TensorLike, bins: int | TensorLike = 10, range: tuple[float, float] | None = None,
                        weights: TensorLike | None = None) -> Tensor:
    """Edges of equal bins, over the range of the elements, or a given range.

    Parameters
    ----------
    bins : int or vector
        Number of bins, or their edges.
    """
    if isinstance(bins, str):
        raise ArgumentError("histogram_bin_edges: bins must be a number or edges; rules given by name are not "
                            "available")
    if not isinstance(bins, (int, np.integer)):
        return as_tensor(bins)
    if bins < 1:
        raise ArgumentError(f"histogram_bin_edges: expected at least one bin, got {bins}")
    x = as_real(a)
    low, high = (ops.amin(x), ops.amax(x)) if range is None else map(as_real, range)
    same = low == high
    return linspace(ops.where(same, low - 0.5, low), ops.where(same, high + 0.5, high), int(bins) + 1)


def _bins(x: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element; the last bin includes its upper edge, and elements outside get -1."""
    at = searchsorted(edges, x, "right") - 1
    at = ops.where(x == edges[-1], edges.size - 2, at)
    return ops.where(at > edges.size - 2, -1, at)


def histogram(a: TensorLike, bins: int | TensorLike = 10, range: tuple[float, float] | None = None,
              weights: TensorLike | None = None, density: bool = False) -> tuple[Tensor, Tensor]:
    """Counts of elements in each bin, and the edges of the bins; see ``histogram_bin_edges``.

    Parameters
    ----------
    weights : tensor
        Weights of the elements.
    density : bool
        Whether counts are divided by their sum and by the bins' widths.

    Examples
    --------
    >>> print(histogram([1, 2, 1], [0, 2, 3])[0])
    [2. 1.]
    """
    edges = histogram_bin_edges(a, bins, range)
    if weights is not None and as_tensor(weights).shape != as_tensor(a).shape:
        raise ShapeError(f"histogram: weights have shape {as_tensor(weights).shape}, the data {as_tensor(a).shape}")
    counts, _ = histogramdd(as_tensor(a).reshape((-1, 1)), [edges], None, weights, density)
    return counts, edges


def histogramdd(sample: TensorLike, bins: int | Sequence[int | TensorLike] = 10,
                range: Sequence[tuple[float, float] | None] | None = None, weights: TensorLike | None = None,
                density: bool = False) -> tuple[Tensor, list[Tensor]]:
    """Counts of rows in each cell of a grid of bins, and the edges along each axis; see ``histogram``."""
    x = as_tensor(ops.stack([as_tensor(column) for column in sample], 1)
                  if isinstance(sample, (list, tuple)) else sample)
    if x.ndim != 2:
        raise ShapeError(f"histogramdd: expected data (samples, dimensions), got the shape {x.shape}")
    count = x.shape[1]
    bins_of_axes = [bins] * count if isinstance(bins, (int, np.integer)) else list(bins)
    ranges = [None] * count if range is None else list(range)
    if len(bins_of_axes) != count or len(ranges) != count:
        raise ArgumentError(f"histogramdd: expected bins and ranges for {count} axes, got {len(bins_of_axes)} and "
                            f"{len(ranges)}")
    columns = ops.unbind(x, 1)
    edges = [histogram_bin_edges(*parts) for parts in zip(columns, bins_of_axes, ranges)]
    lengths = tuple(edge.size - 1 for edge in edges)
    cell: Tensor | int = 0
    inside: Tensor | bool = True
    for column, edge, length in zip(columns, edges, lengths):
        at = _bins(column, edge)
        cell, inside = cell * length + at, ops.logical_and(inside, at >= 0)
    counts = bincount(ops.where(inside, cell, -1), None if weights is None else as_tensor(weights).reshape((-1,)),
                      length=math.prod(lengths)).reshape(lengths)
    if density:
        counts = counts / ops.sum(counts)
        for axis, edge in enumerate(edges):
            wide = as_real(ops.diff(edge))
            counts = counts / wide.reshape(tuple(-1 if i == axis else 1 for i, _ in enumerate(lengths)))
    return counts, edges


def histogram2d(x: TensorLike, y: TensorLike, bins: int | TensorLike | Sequence[int | TensorLike] = 10,
                range: Sequence[tuple[float, float] | None] | None = None, weights: TensorLike | None = None,
                density: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Counts of points in each cell of a grid of bins, and the edges along both axes; see ``histogram``."""
    both: Any = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    counts, (first, second) = histogramdd([x, y], both, range, weights, density)
    return counts, first, second


# -------------------------------------------------------------------------------------------------------- dtypes


def promote_types(type1: TensorDType, type2: TensorDType) -> dtypes.DType:
    """The common dtype of two dtypes."""
    return dtypes.of(dtypes.promote(as_dtype(type1), as_dtype(type2)))


def result_type(*arrays_and_dtypes: TensorLike | TensorDType) -> dtypes.DType:
    """The dtype that tensors, numbers and dtypes have in common."""
    dtype_names = []
    for dtype in arrays_and_dtypes:
        try:
            dtype_names.append(as_dtype(dtype))
        except (TypeError, ValueError):
            dtype_names.append(as_tensor(dtype)._dt)  # type: ignore[arg-type]
    if not dtype_names:
        raise ArgumentError("result_type: expected arrays or dtypes, got none")
    common = dtype_names[0]
    for dtype in dtype_names[1:]:
        common = dtypes.promote(common, dtype)
    return dtypes.of(common)

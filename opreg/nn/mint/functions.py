"""Functions of ``mint`` whose arguments differ from those of ``ops``: ``dim``, ``keepdim``, ``correction``."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor import operand as tensor
from ...cells.tensor_base import is_number
from ...cells.typing import AnyShape, Axes, Number, TensorDType, TensorLike
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .. import numpy as mnp
from .. import ops
from ..numpy.lift import axes_of
from ..ops.lift import as_floating, one_axis

__all__ = [
    "add", "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "argsort", "bernoulli", "bincount",
    "bitwise_not", "cat", "chunk", "clone", "concat", "count_nonzero", "cummax", "cummin", "cumsum", "diag", "diff",
    "dot", "empty", "empty_like", "equal", "fix", "flatten", "gather", "gcd", "histc", "index_add", "index_select",
    "isneginf", "item", "kthvalue", "max", "mean", "median", "meshgrid", "min", "multinomial", "nansum", "narrow",
    "norm", "normal", "permute", "prod", "rand", "randint", "randn", "repeat_interleave", "scatter", "scatter_add",
    "select", "softmax", "sort", "split", "squeeze", "stack", "std", "std_mean", "sub", "take", "topk", "transpose",
    "unique", "unique_consecutive", "var", "var_mean", "vdot", "zeros"]

_INT64 = np.dtype(np.int64)


# ------------------------------------------------------------------------------------------ element-wise functions


def add(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input + alpha * other``."""
    return ops.add(input, other if alpha == 1 else ops.mul(other, alpha))


def sub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input - alpha * other``."""
    return ops.sub(input, other if alpha == 1 else ops.mul(other, alpha))


def equal(input: TensorLike, other: TensorLike) -> bool:
    """Whether two tensors have the same shape and values."""
    x, y = tensor(input), tensor(other)
    return x.shape == y.shape and builtins.bool(ops.all(ops.equal(x, y)))


def allclose(input: TensorLike, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
             ) -> bool:
    """Whether all elements are equal within ``atol + rtol * |other|``."""
    return builtins.bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def bitwise_not(input: TensorLike) -> Tensor:
    """The inverted bits; for booleans the negation."""
    return ~tensor(input)


def fix(input: TensorLike) -> Tensor:
    """The integer part."""
    return ops.trunc(input)


def isneginf(input: TensorLike) -> Tensor:
    """Whether elements are negative infinity."""
    return tensor(input) == -math.inf


def gcd(input: TensorLike, other: TensorLike) -> Tensor:
    """The greatest common divisor of integers."""
    return mnp.gcd(input, other)


def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """The inner product of two vectors."""
    x, y = tensor(input), tensor(other)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"dot: expected two vectors of equal length, got the shapes {x.shape} and {y.shape}")
    return ops.sum(x * y)


def vdot(input: TensorLike, other: TensorLike) -> Tensor:
    """The inner product of two vectors."""
    return dot(input, other)


def clone(input: TensorLike) -> Tensor:
    """A copy, through which gradients pass."""
    return tensor(input).copy()


def item(input: TensorLike) -> Number:
    """The value of a tensor with one element."""
    return tensor(input).item()


# ------------------------------------------------------------------------------------------------------ reductions


def _reduced_axes(dim: Axes) -> Axes:
    """Axes; an empty tuple means all of them."""
    return None if dim == () else dim


def all(input: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether no element is zero."""
    return ops.all(tensor(input) != 0, _reduced_axes(dim), keepdim)


def any(input: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not zero."""
    return ops.any(tensor(input) != 0, _reduced_axes(dim), keepdim)


def amax(input: TensorLike, dim: Axes = (), keepdim: bool = False) -> Tensor:
    """The largest element; equal ones share the gradient."""
    return ops.amax(input, _reduced_axes(dim), keepdim)


def amin(input: TensorLike, dim: Axes = (), keepdim: bool = False) -> Tensor:
    """The smallest element; equal ones share the gradient."""
    return ops.amin(input, _reduced_axes(dim), keepdim)


def _extreme(name: str, input: TensorLike, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return getattr(ops, f"a{name}")(input)
    if isinstance(dim, (builtins.int, np.integer)) and not isinstance(dim, builtins.bool):
        numbers, places = getattr(ops, name)(tensor(input), int(dim), bool(keepdim))
        return numbers, places._cast(_INT64)
    return getattr(ops, f"{name}imum")(input, dim)


def max(input: TensorLike, dim: int | TensorLike | None = None, keepdim: bool = False) -> Any:
    """The largest of all elements; the largest along an axis, and its index as int64; or the element-wise maximum of
    two tensors.

    Examples
    --------
    >>> numbers, places = max([[1.0, 3.0], [4.0, 2.0]], 1)
    >>> print(numbers, places)
    [3. 4.] [1 0]
    """
    return _extreme("max", input, dim, keepdim)


def min(input: TensorLike, dim: int | TensorLike | None = None, keepdim: bool = False) -> Any:
    """The smallest of all elements; the smallest along an axis, and its index as int64; or the element-wise minimum of
    two tensors."""
    return _extreme("min", input, dim, keepdim)


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element along an axis, or in the flat tensor; int64."""
    return ops.argmax(input, dim, keepdim)._cast(_INT64)


def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element along an axis, or in the flat tensor; int64."""
    return ops.argmin(input, dim, keepdim)._cast(_INT64)


def mean(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The mean; with ``dtype``, of the elements cast to it."""
    x = tensor(input)
    return ops.mean(x if dtype is None else x.astype(dtype), _reduced_axes(dim), keepdim)


def prod(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The product; integers and booleans give int64."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(_INT64)
    return ops.prod(x, dim, keepdim)


def nansum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum of the elements that are not NaN."""
    return ops.nansum(input, _reduced_axes(dim), keepdim, dtype=dtype)


def var(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The variance, with the number of elements less ``correction`` as its divisor."""
    return ops.var(input, _reduced_axes(dim), correction, keepdim)


def std(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The square root of ``var``."""
    return ops.std(input, _reduced_axes(dim), correction, keepdim)


def var_mean(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False
             ) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
    return ops.var_mean(input, _reduced_axes(dim), correction, keepdim)


def std_mean(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False
             ) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
    return ops.std_mean(input, _reduced_axes(dim), correction, keepdim)


def count_nonzero(input: TensorLike, dim: Axes = None) -> Tensor:
    """The number of nonzero elements; int64."""
    return ops.sum((tensor(input) != 0)._cast(_INT64), _reduced_axes(dim))


def norm(input: TensorLike, p: Number | str = "fro", dim: Axes = None, keepdim: bool = False, *,
         dtype: TensorDType = None) -> Tensor:
    """The p-norm; "fro" means 2.

    Examples
    --------
    >>> print(norm([3.0, 4.0]))
    5.0
    """
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f"norm: p must be a number or 'fro', got {p!r}")
    return ops.vector_norm(as_floating(input), 2 if isinstance(p, str) else p, _reduced_axes(dim), keepdim, dtype=dtype)


def median(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median, the lower of two middle elements; along an axis with its index as int64."""
    if dim is None:
        return ops.median(tensor(input).reshape((-1,)), 0)[0]
    return ops.median(input, dim, keepdim)


def kthvalue(input: TensorLike, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The ``k``-th smallest element along an axis, counted from 1, and its index as int64."""
    x = tensor(input)
    axis = one_axis(dim, x.ndim, "kthvalue")
    if not 1 <= k <= x.shape[axis]:
        raise ArgumentError(f"kthvalue: k must be an int from 1 to {x.shape[axis]}, got {k!r}")
    selected = [ops.narrow(operand, axis, k - 1, 1) for operand in sort(x, dim=axis)]
    numbers, places = selected if keepdim else [ops.squeeze(result, axis) for result in selected]
    return numbers, places


def bincount(input: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Counts of each integer from 0 on, as int64, or sums of weights."""
    counts = ops.bincount(input, weights, minlength)
    return counts._cast(_INT64) if weights is None else counts


def histc(input: TensorLike, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """The number of elements in each of ``bins`` equal bins from ``min`` to ``max``.

    If both are equal, the bins cover the range of the elements. Elements outside are left out. The dtype is that of
    ``input``.
    """
    x = tensor(input)
    low, high = (float(min), float(max)) if min != max else (float(ops.amin(x)), float(ops.amax(x)))
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = mnp.histogram(x, int(bins), (low, high))
    return counts._cast(x._dt)


# --------------------------------------------------------------------------------------- along an axis, in order


def cumsum(input: TensorLike, dim: int, dtype: TensorDType = None) -> Tensor:
    """Cumulative sums along an axis; integers and booleans give int64."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(_INT64)
    return ops.cumsum(x, dim)


def cummax(input: TensorLike, dim: int) -> tuple[Tensor, Tensor]:
    """The cumulative maximum along an axis, and its index as int64."""
    numbers, places = ops.cummax(input, dim)
    return numbers, places._cast(_INT64)


def cummin(input: TensorLike, dim: int) -> tuple[Tensor, Tensor]:
    """The cumulative minimum along an axis, and its index as int64."""
    numbers, places = ops.cummin(input, dim)
    return numbers, places._cast(_INT64)


def diff(input: TensorLike, n: int = 1, dim: int = -1, prepend: TensorLike | None = None,
         append: TensorLike | None = None) -> Tensor:
    """The ``n``-th differences of neighbouring elements along an axis."""
    return ops.diff(input, n, dim, prepend, append)


def sort(input: TensorLike, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their indices as int64; the sort is stable."""
    numbers, places = ops.sort(input, dim, descending)
    return numbers, places._cast(_INT64)


def argsort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort the elements along an axis, as int64; the sort is stable."""
    return ops.argsort(input, dim, descending)._cast(_INT64)


def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
         ) -> tuple[Tensor, Tensor]:
    """The ``k`` largest or smallest elements along an axis, and their indices as int64."""
    numbers, places = ops.topk(input, k, dim, largest, sorted)
    return numbers, places._cast(_INT64)


def unique(input: TensorLike, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The distinct elements, sorted; on request the index of each element among them, and their counts."""
    x = tensor(input)
    _all_axes("unique", x, dim)
    uniques = unique_consecutive(ops.sort(x.reshape((-1,)))[0], return_counts=return_counts)
    numbers, *counts = uniques if return_counts else [uniques]
    places = [ops.searchsorted(numbers, x)] if return_inverse else []
    return (numbers, *places, *counts) if places or counts else numbers


def _all_axes(name: str, x: Tensor, dim: int | None) -> None:
    """Refuse an axis: elements of all axes are compared."""
    if dim is not None and x.ndim != 1:
        raise ArgumentError(f"{name}: dim must be None, got {dim!r}: all elements are compared")


def unique_consecutive(input: TensorLike, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements without those equal to their predecessor.

    Examples
    --------
    >>> print(unique_consecutive([1, 1, 2, 2, 1]))
    [1 2 1]
    """
    x = tensor(input)
    _all_axes("unique_consecutive", x, dim)
    flat = x.reshape((-1,))
    first = ops.concat([ops.ones((builtins.min(flat.shape[0], 1),), np.dtype(bool)), flat[1:] != flat[:-1]])
    numbers = flat[first]
    places = ops.cumsum(first._cast(_INT64), 0) - 1
    more = [places.reshape(x.shape)] if return_inverse else []
    if return_counts:
        more.append(bincount(places, minlength=numbers.shape[0]))
    return (numbers, *more) if more else numbers


# ------------------------------------------------------------------------------------------------ shapes and parts


def cat(tensors: Sequence[TensorLike], dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis."""
    return ops.cat(tensors, dim)


concat = cat


def stack(tensors: Sequence[TensorLike], dim: int = 0) -> Tensor:
    """Stack tensors of one shape along a new axis."""
    return ops.stack(tensors, dim)


def chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into at most ``chunks`` parts of one length, of which the last may be shorter."""
    return ops.chunk(input, chunks, dim)


def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into parts of one length, of which the last may be shorter, or of given lengths."""
    return ops.split(tensor, split_size_or_sections, dim)


def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim``."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def permute(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """Permute the axes."""
    return ops.permute(input, tuple(dims))


def transpose(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """Swap two axes.

    Examples
    --------
    >>> transpose([[[1.0, 2.0]]], 0, 2).shape
    (2, 1, 1)
    """
    return ops.swapaxes(input, dim0, dim1)


def squeeze(input: TensorLike, dim: Axes) -> Tensor:
    """Remove those of the given axes whose length is one."""
    x = tensor(input)
    chosen = axes_of(dim, x.ndim, "squeeze")
    return x.reshape(tuple(length for axis, length in enumerate(x.shape) if axis not in chosen or length != 1))


def diag(input: TensorLike, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    return mnp.diag(input, diagonal)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid from vectors: the first varies along the first axis with "ij", along the second with
    "xy"."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return ops.meshgrid(*vectors, indexing=indexing)


def narrow(input: TensorLike, dim: int, start: int, length: int) -> Tensor:
    """``length`` slices along an axis, from ``start`` on."""
    return ops.narrow(input, dim, start, length)


def select(input: TensorLike, dim: int, index: int) -> Tensor:
    """One slice along an axis, without the axis."""
    x = tensor(input)
    axis = one_axis(dim, x.ndim, "select")
    return ops.squeeze(ops.narrow(x, axis, index % x.shape[axis], 1), axis)


def repeat_interleave(input: TensorLike, repeats: int | Sequence[int] | Tensor, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each slice along an axis, or each element, repeated."""
    return ops.repeat_interleave(input, repeats, dim)


# ------------------------------------------------------------------------------------------ functions of indices


def gather(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Elements along an axis at the indices in ``index``, in its shape.

    Examples
    --------
    >>> print(gather([[1.0, 2.0], [3.0, 4.0]], 1, [[0, 0], [1, 0]]))
    [[1. 1.]
     [4. 3.]]
    """
    return ops.gather_elements(input, dim, index)


def index_select(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Slices along an axis at the indices in ``index``."""
    return ops.index_select(input, dim, index)


def index_add(input: TensorLike, dim: int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input`` with ``alpha * source`` added at indices along an axis."""
    y = tensor(source)
    return ops.index_add(tensor(input), index, y if alpha == 1 else y * alpha, dim)


def scatter(input: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """``input`` with elements of ``src``, or one number, written at indices along an axis."""
    return ops.scatter(input, dim, index, src if is_number(src) else _indexed_elements(index, src))


def scatter_add(input: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """``input`` with elements of ``src`` added at indices along an axis."""
    return ops.tensor_scatter_elements(input, index, _indexed_elements(index, src), dim, "add")


def _indexed_elements(index: TensorLike, src: TensorLike) -> Tensor:
    """The elements of ``src`` that have an index."""
    x, shape = tensor(src), tensor(index).shape
    return x if x.shape == shape or x.ndim != len(shape) else x[tuple(slice(length) for length in shape)]


def take(input: TensorLike, index: TensorLike) -> Tensor:
    """Elements of the flat tensor at indices."""
    return ops.gather(tensor(input).reshape((-1,)), index, 0)


# ---------------------------------------------------------------------------------------------- made, and drawn


def zeros(size: AnyShape, *, dtype: TensorDType = None) -> Tensor:
    """Zeros; float32 by default."""
    return ops.zeros(size, dtype)


def empty(*size: Any, dtype: TensorDType = None, device: str | None = None, pin_memory: bool = False) -> Tensor:
    """A tensor for later writes; its values are zeros here."""
    return ops.zeros(size[0] if len(size) == 1 else size, dtype)


def empty_like(input: TensorLike, *, dtype: TensorDType = None, device: str | None = None, pin_memory: bool = False
               ) -> Tensor:
    """A tensor for later writes, with the shape of ``input``; its values are zeros here."""
    return ops.zeros_like(input, dtype=dtype)


def rand(*size: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Uniform values from 0 to 1."""
    return ops.rand(*size, dtype=dtype)


def randn(*size: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Standard normal values."""
    return ops.randn(*size, dtype=dtype)


def randint(*args: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Random integers from ``low`` to before ``high``: ``randint(low, high, size)`` or ``randint(high, size)``;
    int64."""
    low, high, size = args if len(args) == 3 else (0, *args)
    return ops.randint(low, high, size, dtype=_INT64 if dtype is None else dtype)


def normal(mean: Tensor | Number = 0.0, std: Tensor | Number = 1.0, size: AnyShape | None = None,
           generator: None = None) -> Tensor:
    """Normal values with a mean and standard deviation, in their common shape, or of ``size``."""
    if size is None:
        shape = np.broadcast_shapes(*(np.shape(each) if isinstance(each, (int, float)) else tensor(each).shape
                                      for each in (mean, std)))
        return ops.normal(shape, mean, std)
    return ops.normal(size, mean, std)


def bernoulli(input: TensorLike, *, generator: None = None) -> Tensor:
    """1 with the probability given by each element, else 0."""
    x = as_floating(input)
    return ops.bernoulli(x, x)


def multinomial(input: TensorLike, num_samples: int, replacement: bool = False, *, generator: None = None) -> Tensor:
    """Indices along the last axis, drawn with probabilities proportional to the elements; int64."""
    return ops.multinomial(input, num_samples, replacement)._cast(_INT64)


def softmax(input: TensorLike, dim: int, *, dtype: TensorDType = None) -> Tensor:
    """The softmax along an axis."""
    return ops.softmax(input, dim, dtype=dtype)

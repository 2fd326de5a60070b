"""Functions of ``mint`` whose arguments are other than those of ``ops``: ``dim``, ``keepdim``, ``correction``."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cells.tensor import Tensor, tensor
from ...cells.typing import Axes, Number, TensorDType, TensorLike, TensorShape
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .. import numpy as mnp
from .. import ops
from ..numpy.lift import axes_of
from ..ops.lift import floating, one_axis

__all__ = [
    "add", "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "argsort", "bernoulli", "bincount",
    "bitwise_not", "cat", "chunk", "clone", "concat", "count_nonzero", "cummax", "cummin", "cumsum", "diag", "diff",
    "dot", "empty", "empty_like", "equal", "fix", "flatten", "gather", "gcd", "histc", "index_add", "index_select",
    "isneginf", "item", "kthvalue", "max", "mean", "median", "meshgrid", "min", "multinomial", "nansum", "narrow",
    "norm", "normal", "permute", "prod", "rand", "randint", "randn", "repeat_interleave", "scatter", "scatter_add",
    "select", "softmax", "sort", "split", "squeeze", "stack", "std", "std_mean", "sub", "take", "topk", "transpose",
    "unique", "unique_consecutive", "var", "var_mean", "vdot", "zeros"]

_INT64 = np.dtype(np.int64)


# ------------------------------------------------------------------------------------------- of numbers, and pairs


def add(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input + alpha * other``."""
    return ops.add(input, other if alpha == 1 else ops.mul(other, alpha))


def sub(input: TensorLike, other: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input - alpha * other``."""
    return ops.sub(input, other if alpha == 1 else ops.mul(other, alpha))


def equal(input: TensorLike, other: TensorLike) -> bool:
    """Whether two tensors have one shape and the same values."""
    x, y = tensor(input), tensor(other)
    return x.shape == y.shape and builtins.bool(ops.all(ops.equal(x, y)))


def allclose(input: TensorLike, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
             ) -> bool:
    """Whether all elements are equal within ``atol + rtol * |other|``."""
    return builtins.bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def bitwise_not(input: TensorLike) -> Tensor:
    """The bits that are not set; of booleans, those that do not hold."""
    return ~tensor(input)


def fix(input: TensorLike) -> Tensor:
    """The whole part."""
    return ops.trunc(input)


def isneginf(input: TensorLike) -> Tensor:
    """Whether it is infinite and below zero."""
    return tensor(input) == -math.inf


def gcd(input: TensorLike, other: TensorLike) -> Tensor:
    """The greatest common divisor of integers."""
    return mnp.gcd(input, other)


def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """The sum of products of two vectors."""
    x, y = tensor(input), tensor(other)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"dot: expected two vectors of one length, got the shapes {x.shape} and {y.shape}")
    return ops.sum(x * y)


def vdot(input: TensorLike, other: TensorLike) -> Tensor:
    """The sum of products of two vectors."""
    return dot(input, other)


def clone(input: TensorLike) -> Tensor:
    """A copy; gradients pass."""
    return tensor(input).copy()


def item(input: TensorLike) -> Number:
    """The number of a tensor that has one."""
    return tensor(input).item()


# ------------------------------------------------------------------------------------------------------ reductions


def _over(dim: Axes) -> Axes:
    """Axes: no axes mean all of them."""
    return None if dim == () else dim


def all(input: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether no number is zero."""
    return ops.all(tensor(input) != 0, _over(dim), keepdim)


def any(input: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not zero."""
    return ops.any(tensor(input) != 0, _over(dim), keepdim)


def amax(input: TensorLike, dim: Axes = (), keepdim: bool = False) -> Tensor:
    """The largest number; those that are equal share its gradient."""
    return ops.amax(input, _over(dim), keepdim)


def amin(input: TensorLike, dim: Axes = (), keepdim: bool = False) -> Tensor:
    """The smallest number; those that are equal share its gradient."""
    return ops.amin(input, _over(dim), keepdim)


def _extreme(name: str, input: TensorLike, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return getattr(ops, f"a{name}")(input)
    if isinstance(dim, (builtins.int, np.integer)) and not isinstance(dim, builtins.bool):
        numbers, places = getattr(ops, name)(tensor(input), int(dim), bool(keepdim))
        return numbers, places._cast(_INT64)
    return getattr(ops, f"{name}imum")(input, dim)


def max(input: TensorLike, dim: int | TensorLike | None = None, keepdim: bool = False) -> Any:
    """The largest of all elements; along an axis, with places as int64; or the larger of two tensors' numbers.

    Examples
    --------
    >>> numbers, places = max([[1.0, 3.0], [4.0, 2.0]], 1)
    >>> print(numbers, places)
    [3. 4.] [1 0]
    """
    return _extreme("max", input, dim, keepdim)


def min(input: TensorLike, dim: int | TensorLike | None = None, keepdim: bool = False) -> Any:
    """The smallest of all elements; along an axis, with places as int64; or the smaller of two tensors' numbers."""
    return _extreme("min", input, dim, keepdim)


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The place of the largest element along an axis, or among all in a row; int64."""
    return ops.argmax(input, dim, keepdim)._cast(_INT64)


def argmin(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The place of the smallest element along an axis, or among all in a row; int64."""
    return ops.argmin(input, dim, keepdim)._cast(_INT64)


def mean(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The mean, of numbers that were cast to ``dtype`` before."""
    x = tensor(input)
    return ops.mean(x if dtype is None else x.astype(dtype), _over(dim), keepdim)


def prod(input: TensorLike, dim: int | None = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The product; of integers and booleans in int64."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(_INT64)
    return ops.prod(x, dim, keepdim)


def nansum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum of what is a number."""
    return ops.nansum(input, _over(dim), keepdim, dtype=dtype)


def var(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The mean square of what numbers are off their mean, over ``correction`` numbers fewer."""
    return ops.var(input, _over(dim), correction, keepdim)


def std(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The square root of ``var``."""
    return ops.std(input, _over(dim), correction, keepdim)


def var_mean(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False
             ) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
    return ops.var_mean(input, _over(dim), correction, keepdim)


def std_mean(input: TensorLike, dim: Axes = None, *, correction: int = 1, keepdim: bool = False
             ) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
    return ops.std_mean(input, _over(dim), correction, keepdim)


def count_nonzero(input: TensorLike, dim: Axes = None) -> Tensor:
    """How many elements are not zero; int64."""
    return ops.sum((tensor(input) != 0)._cast(_INT64), _over(dim))


def norm(input: TensorLike, p: Number | str = "fro", dim: Axes = None, keepdim: bool = False, *,
         dtype: TensorDType = None) -> Tensor:
    """The root of the sum of p-th powers; "fro" is 2.

    Examples
    --------
    >>> print(norm([3.0, 4.0]))
    5.0
    """
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(f"norm: p must be a number or 'fro', got {p!r}")
    return ops.vector_norm(floating(input), 2 if isinstance(p, str) else p, _over(dim), keepdim, dtype=dtype)


def median(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Any:
    """The number in the middle, the lower of two; along an axis with its place as int64."""
    if dim is None:
        return ops.median(tensor(input).reshape((-1,)), 0)[0]
    return ops.median(input, dim, keepdim)


def kthvalue(input: TensorLike, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The ``k``-th smallest number along an axis, counted from 1, and its place as int64."""
    x = tensor(input)
    axis = one_axis(dim, x.ndim, "kthvalue")
    if not 1 <= k <= x.shape[axis]:
        raise ArgumentError(f"kthvalue: k must be an int from 1 to {x.shape[axis]}, got {k!r}")
    found = [ops.narrow(each, axis, k - 1, 1) for each in sort(x, dim=axis)]
    numbers, places = found if keepdim else [ops.squeeze(each, axis) for each in found]
    return numbers, places


def bincount(input: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number from 0 on is there, int64, or the sum of its weights."""
    counts = ops.bincount(input, weights, minlength)
    return counts._cast(_INT64) if weights is None else counts


def histc(input: TensorLike, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """How many elements are in each of so many bins of one width, from ``min`` to ``max``.

    If both are equal the bins reach from the smallest element to the largest. Numbers outside are left out. The
    dtype is that of ``input``.
    """
    x = tensor(input)
    low, high = (float(min), float(max)) if min != max else (float(ops.amin(x)), float(ops.amax(x)))
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = mnp.histogram(x, int(bins), (low, high))
    return counts._cast(x._dt)


# --------------------------------------------------------------------------------------- along an axis, in order


def cumsum(input: TensorLike, dim: int, dtype: TensorDType = None) -> Tensor:
    """Sums of all elements up to each along an axis; of integers and booleans in int64."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(_INT64)
    return ops.cumsum(x, dim)


def cummax(input: TensorLike, dim: int) -> tuple[Tensor, Tensor]:
    """The largest number up to each along an axis, and its place as int64."""
    numbers, places = ops.cummax(input, dim)
    return numbers, places._cast(_INT64)


def cummin(input: TensorLike, dim: int) -> tuple[Tensor, Tensor]:
    """The smallest number up to each along an axis, and its place as int64."""
    numbers, places = ops.cummin(input, dim)
    return numbers, places._cast(_INT64)


def diff(input: TensorLike, n: int = 1, dim: int = -1, prepend: TensorLike | None = None,
         append: TensorLike | None = None) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times."""
    return ops.diff(input, n, dim, prepend, append)


def sort(input: TensorLike, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Numbers in order along an axis, and the places they come from as int64; equal ones stay in their order."""
    numbers, places = ops.sort(input, dim, descending)
    return numbers, places._cast(_INT64)


def argsort(input: TensorLike, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The places of numbers in order along an axis, as int64; equal ones stay in their order."""
    return ops.argsort(input, dim, descending)._cast(_INT64)


def topk(input: TensorLike, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
         ) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along an axis, or the smallest, and their places as int64."""
    numbers, places = ops.topk(input, k, dim, largest, sorted)
    return numbers, places._cast(_INT64)


def unique(input: TensorLike, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The numbers that there are, in order; the place of each among them, and how often each is there, if asked."""
    x = tensor(input)
    _all_axes("unique", x, dim)
    found = unique_consecutive(ops.sort(x.reshape((-1,)))[0], return_counts=return_counts)
    numbers, *counts = found if return_counts else [found]
    places = [ops.searchsorted(numbers, x)] if return_inverse else []
    return (numbers, *places, *counts) if places or counts else numbers


def _all_axes(name: str, x: Tensor, dim: int | None) -> None:
    """Refuse an axis: numbers of all axes are compared."""
    if dim is not None and x.ndim != 1:
        raise ArgumentError(f"{name}: dim must be None, got {dim!r}: numbers of all axes are compared")


def unique_consecutive(input: TensorLike, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """Numbers in a row of which each is other than the one before it.

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
    """Tensors one behind the other along an axis."""
    return ops.cat(tensors, dim)


concat = cat


def stack(tensors: Sequence[TensorLike], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return ops.stack(tensors, dim)


def chunk(input: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis, as many at most, of one length but for the last."""
    return ops.chunk(input, chunks, dim)


def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis: of one length but for the last, or of the lengths given."""
    return ops.split(tensor, split_size_or_sections, dim)


def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` as one."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def permute(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """Axes in another order."""
    return ops.permute(input, tuple(dims))


def transpose(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """The tensor with two axes exchanged.

    Examples
    --------
    >>> transpose([[[1.0, 2.0]]], 0, 2).shape
    (2, 1, 1)
    """
    return ops.swapaxes(input, dim0, dim1)


def squeeze(input: TensorLike, dim: Axes) -> Tensor:
    """The tensor without those of the axes whose length is one."""
    x = tensor(input)
    chosen = axes_of(dim, x.ndim, "squeeze")
    return x.reshape(tuple(length for axis, length in enumerate(x.shape) if axis not in chosen or length != 1))


def diag(input: TensorLike, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    return mnp.diag(input, diagonal)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Vectors as coordinates of a grid: the first along the first axis with "ij", along the second with "xy"."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return ops.meshgrid(*vectors, indexing=indexing)


def narrow(input: TensorLike, dim: int, start: int, length: int) -> Tensor:
    """``length`` places of an axis, from ``start`` on."""
    return ops.narrow(input, dim, start, length)


def select(input: TensorLike, dim: int, index: int) -> Tensor:
    """One place of an axis, without the axis."""
    x = tensor(input)
    axis = one_axis(dim, x.ndim, "select")
    return ops.squeeze(ops.narrow(x, axis, index % x.shape[axis], 1), axis)


def repeat_interleave(input: TensorLike, repeats: int | Sequence[int] | Tensor, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each place of an axis, or each element, several times."""
    return ops.repeat_interleave(input, repeats, dim)


# ----------------------------------------------------------------------------------------------------- by places


def gather(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Numbers of the places along an axis that ``index`` says, in its shape.

    Examples
    --------
    >>> print(gather([[1.0, 2.0], [3.0, 4.0]], 1, [[0, 0], [1, 0]]))
    [[1. 1.]
     [4. 3.]]
    """
    return ops.gather_elements(input, dim, index)


def index_select(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Places of an axis, in the order of ``index``."""
    return ops.index_select(input, dim, index)


def index_add(input: TensorLike, dim: int, index: TensorLike, source: TensorLike, *, alpha: Number = 1) -> Tensor:
    """``input`` and ``alpha * source``, which is added at places of an axis."""
    y = tensor(source)
    return ops.index_add(tensor(input), index, y if alpha == 1 else y * alpha, dim)


def scatter(input: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """``input``, with the elements of ``src`` at the places along an axis that ``index`` says."""
    return ops.scatter(input, dim, index, _beside(index, src))


def scatter_add(input: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """``input``, with the elements of ``src`` added at the places along an axis that ``index`` says."""
    return ops.tensor_scatter_elements(input, index, _beside(index, src), dim, "add")


def _beside(index: TensorLike, src: TensorLike) -> Tensor:
    """The elements of ``src`` that places are given for."""
    x, shape = tensor(src), tensor(index).shape
    return x if x.shape == shape or x.ndim != len(shape) else x[tuple(slice(length) for length in shape)]


def take(input: TensorLike, index: TensorLike) -> Tensor:
    """Numbers of places counted over all in a row."""
    return ops.gather(tensor(input).reshape((-1,)), index, 0)


# ---------------------------------------------------------------------------------------------- made, and drawn


def zeros(size: TensorShape, *, dtype: TensorDType = None) -> Tensor:
    """Zeros, float32 if nothing is said."""
    return ops.zeros(size, dtype)


def empty(*size: Any, dtype: TensorDType = None, device: str | None = None, pin_memory: bool = False) -> Tensor:
    """Numbers to be written; they are zeros here."""
    return ops.zeros(size[0] if len(size) == 1 else size, dtype)


def empty_like(input: TensorLike, *, dtype: TensorDType = None, device: str | None = None, pin_memory: bool = False
               ) -> Tensor:
    """Numbers to be written, in the shape of ``input``; they are zeros here."""
    return ops.zeros_like(input, dtype=dtype)


def rand(*size: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Numbers from 0 to 1."""
    return ops.rand(*size, dtype=dtype)


def randn(*size: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Draws from the normal distribution."""
    return ops.randn(*size, dtype=dtype)


def randint(*args: Any, generator: None = None, dtype: TensorDType = None, device: str | None = None) -> Tensor:
    """Integers from ``low`` to before ``high``, ``randint(low, high, size)`` or ``randint(high, size)``; int64."""
    low, high, size = args if len(args) == 3 else (0, *args)
    return ops.randint(low, high, size, dtype=_INT64 if dtype is None else dtype)


def normal(mean: Tensor | Number = 0.0, std: Tensor | Number = 1.0, size: TensorShape | None = None,
           generator: None = None) -> Tensor:
    """Draws from the normal distribution with a mean and a deviation, in the shape of both, or ``size``."""
    if size is None:
        shape = np.broadcast_shapes(*(np.shape(each) if isinstance(each, (int, float)) else tensor(each).shape
                                      for each in (mean, std)))
        return ops.normal(shape, mean, std)
    return ops.normal(size, mean, std)


def bernoulli(input: TensorLike, *, generator: None = None) -> Tensor:
    """1 with the probability that each element is, else 0."""
    x = floating(input)
    return ops.bernoulli(x, x)


def multinomial(input: TensorLike, num_samples: int, replacement: bool = False, *, generator: None = None) -> Tensor:
    """Places along the last axis drawn with the probabilities there, in proportion to each other; int64."""
    return ops.multinomial(input, num_samples, replacement)._cast(_INT64)


def softmax(input: TensorLike, dim: int, *, dtype: TensorDType = None) -> Tensor:
    """The shares of exponentials in their sum along an axis."""
    return ops.softmax(input, dim, dtype=dtype)

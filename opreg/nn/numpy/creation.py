"""Functions that make tensors: from shapes and values, from Python values, and coordinates of grids."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import AnyShape, Number, TensorDType, TensorLike
from ...core.registry import ops as registered
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .. import ops
from ..ops.lift import shape_of, whole_dtype
from .lift import as_real, as_tensor, in_dtype, made

__all__ = [
    "arange", "array", "asarray", "asfarray", "bartlett", "blackman", "copy", "diag", "diag_indices", "diagflat",
    "diagonal", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "hamming", "hanning", "identity",
    "indices", "ix_", "linspace", "logspace", "meshgrid", "mgrid", "ogrid", "ones", "ones_like", "rand", "randint",
    "randn", "trace", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
    "vander", "zeros", "zeros_like"]

_FLOAT32 = np.dtype(np.float32)
_INT32 = np.dtype(np.int32)


def array(obj: TensorLike, dtype: TensorDType = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor; without a dtype, Python numbers become int32 or float32.

    Parameters
    ----------
    copy : bool
        Whether a given tensor is copied.
    ndmin : int
        Least number of axes; axes of length one are inserted in front.

    Examples
    --------
    >>> print(array([1, 2], ndmin=2).shape)
    (1, 2)
    """
    x = made(obj, dtype)
    x = x.copy() if copy and x is obj else x
    return x.reshape((*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else x


def asarray(a: TensorLike, dtype: TensorDType = None) -> Tensor:
    """A tensor; without a dtype, Python numbers become int32 or float32."""
    return made(a, dtype)


def copy(a: TensorLike) -> Tensor:
    """A copy of a tensor; Python numbers become int32 or float32."""
    return array(a)


def asfarray(a: TensorLike, dtype: TensorDType = np.float32) -> Tensor:
    """A floating-point tensor, float32 by default."""
    target = whole_dtype(dtype, np.float32)
    return made(a, target if is_floating(target) else _FLOAT32)


def _lengths(shape: AnyShape, what: str) -> tuple[int, ...]:
    """A shape, checked to have nonnegative integers."""
    if isinstance(shape, float):
        raise ArgumentError(f"{what}: expected an int or a tuple of them for the shape, got {shape!r}")
    lengths = shape_of(shape)
    if any(length < 0 for length in lengths):
        raise ShapeError(f"{what}: a shape has no negative lengths, got {lengths}")
    return lengths


def ones(shape: AnyShape, dtype: TensorDType = np.float32) -> Tensor:
    """Ones."""
    return ops.ones(_lengths(shape, "ones"), dtype)


def zeros(shape: AnyShape, dtype: TensorDType = np.float32) -> Tensor:
    """Zeros."""
    return ops.zeros(_lengths(shape, "zeros"), dtype)


def empty(shape: AnyShape, dtype: TensorDType = np.float32) -> Tensor:
    """A tensor for later writes; its values are zeros here."""
    return ops.zeros(_lengths(shape, "empty"), dtype)


def full(shape: AnyShape, fill_value: TensorLike, dtype: TensorDType = None) -> Tensor:
    """A tensor filled with a number, or with a tensor that broadcasts; its dtype is that of the value by default."""
    return in_dtype(ops.broadcast_to(as_tensor(fill_value), _lengths(shape, "full")), dtype)


def _like(x: TensorLike, value: TensorLike, dtype: TensorDType, shape: AnyShape | None, what: str) -> Tensor:
    x = as_tensor(x)
    lengths = x.shape if shape is None else _lengths(shape, what)
    return ops.broadcast_to(as_tensor(value), lengths)._cast(whole_dtype(dtype, x._dt))


def ones_like(a: TensorLike, dtype: TensorDType = None, shape: AnyShape | None = None) -> Tensor:
    """Ones, by default with the shape and dtype of a tensor."""
    return _like(a, 1, dtype, shape, "ones_like")


def zeros_like(a: TensorLike, dtype: TensorDType = None, shape: AnyShape | None = None) -> Tensor:
    """Zeros, by default with the shape and dtype of a tensor."""
    return _like(a, 0, dtype, shape, "zeros_like")


def empty_like(prototype: TensorLike, dtype: TensorDType = None, shape: AnyShape | None = None) -> Tensor:
    """A tensor for later writes, with the shape and dtype of another; its values are zeros here."""
    return _like(prototype, 0, dtype, shape, "empty_like")


def full_like(a: TensorLike, fill_value: TensorLike, dtype: TensorDType = None, shape: AnyShape | None = None
              ) -> Tensor:
    """A tensor filled with a number, by default with the shape and dtype of another."""
    return _like(a, fill_value, dtype, shape, "full_like")


def arange(start: Number | Tensor, stop: Number | Tensor | None = None, step: Number | Tensor | None = None,
           dtype: TensorDType = None) -> Tensor:
    """Values from ``start`` to before ``stop``, or from 0 to before ``start``; int32, or float32 for floats.

    Examples
    --------
    >>> print(arange(1, 7, 2))
    [1 3 5]
    """
    x = ops.arange(start, stop, 1 if step is None else step)
    return x._cast(whole_dtype(dtype, _FLOAT32 if is_floating(x._dt) else _INT32))


# ---------------------------------------------------------------------------------------------- equal distances


def linspace(start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: TensorDType = None, axis: int = 0) -> Any:
    """Equally spaced values from ``start`` to ``stop``; with ``retstep`` the distance, too.

    Parameters
    ----------
    endpoint : bool
        Whether ``stop`` is the last value; otherwise it is excluded.
    axis : int
        Position of the new axis, if the bounds have axes.

    Examples
    --------
    >>> print(linspace(0, 1, 4, endpoint=False))
    [0.   0.25 0.5  0.75]
    """
    if num < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {num}")
    first, last = as_real(start), as_real(stop)
    steps = num - 1 if endpoint else num
    step = (last - first) / steps if steps > 0 else last - first
    count = ops.arange(num)._cast(step._dt).reshape((num, *(1,) * step.ndim))
    x = first + count * step
    if endpoint and num > 1:  # the last value is exactly the given one
        x = ops.concat([ops.narrow(x, 0, 0, num - 1), ops.expand_dims(ops.broadcast_to(last, step.shape), 0)])
    x = ops.moveaxis(x, 0, axis) if x.ndim > 1 else x
    x = in_dtype(x, dtype)
    return (x, step) if retstep else x


def logspace(start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, base: TensorLike = 10.0,
             dtype: TensorDType = None, axis: int = 0) -> Tensor:
    """Powers of ``base`` with equally spaced exponents; see ``linspace``."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return in_dtype(ops.pow(as_real(base), exponents), dtype)


def geomspace(start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, dtype: TensorDType = None,
              axis: int = 0) -> Tensor:
    """A geometric sequence from ``start`` to ``stop``; see ``linspace``."""
    first = as_real(start)
    growth = linspace(0.0, ops.log(as_real(stop) / first), num, endpoint, axis=axis)
    return in_dtype(first * ops.exp(growth), dtype)


def _window_positions(count: int) -> tuple[Tensor, int]:
    """The positions 0 to ``count - 1`` of a window, and the divisor that maps the last one to 1."""
    if count < 1:
        raise ArgumentError(f"a window has at least one element, got {count}")
    return ops.arange(count, dtype=np.float32), builtins.max(count - 1, 1)


def bartlett(M: int) -> Tensor:
    """The Bartlett window; float32."""
    at, last = _window_positions(M)
    return 1.0 - ops.abs(at * 2.0 - last) / last if M > 1 else ones(1)


def _cosines(M: int, *factors: float) -> Tensor:
    at, last = _window_positions(M)
    if M == 1:
        return ones(1)
    x = full(M, factors[0], np.float32)
    for i, factor in enumerate(factors[1:], 1):
        x = x + ops.cos(at * (2 * math.pi * i / last)) * factor
    return x


def blackman(M: int) -> Tensor:
    """The Blackman window; float32."""
    return _cosines(M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Tensor:
    """The Hamming window; float32."""
    return _cosines(M, 0.54, -0.46)


def hanning(M: int) -> Tensor:
    """The von Hann window; float32."""
    return _cosines(M, 0.5, -0.5)


# ------------------------------------------------------------------------------------------ triangles, diagonals


def eye(N: int, M: int | None = None, k: int = 0, dtype: TensorDType = np.float32) -> Tensor:
    """A matrix of ``N`` rows and ``M`` columns, with ones on the diagonal ``k`` above the main one."""
    return (_column(N) + k == _row(N if M is None else M))._cast(whole_dtype(dtype, np.float32))


def identity(n: int, dtype: TensorDType = np.float32) -> Tensor:
    """Ones on the main diagonal of a square matrix."""
    return eye(n, dtype=dtype)


def _row(count: int) -> Tensor:
    return ops.arange(count)


def _column(count: int) -> Tensor:
    return ops.arange(count).reshape((count, 1))


def tri(N: int, M: int | None = None, k: int = 0, dtype: TensorDType = np.float32) -> Tensor:
    """A matrix with ones on and below the diagonal ``k`` above the main one."""
    return (_column(N) + k >= _row(N if M is None else M))._cast(whole_dtype(dtype, np.float32))


def tril(m: TensorLike, k: int = 0) -> Tensor:
    """The elements on and below the diagonal ``k`` above the main one; zeros elsewhere."""
    return ops.tril(as_tensor(m), k)


def triu(m: TensorLike, k: int = 0) -> Tensor:
    """The elements on and above the diagonal ``k`` above the main one; zeros elsewhere."""
    return ops.triu(as_tensor(m), k)


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal over two axes, along a new last axis."""
    return ops.diagonal(as_tensor(a), offset, axis1, axis2)


def trace(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: TensorDType = None) -> Tensor:
    """The sum of a diagonal over two axes."""
    return ops.sum(diagonal(a, offset, axis1, axis2), -1, dtype=dtype)


def diagflat(v: TensorLike, k: int = 0) -> Tensor:
    """A matrix with the flat elements on the diagonal ``k`` above the main one."""
    return registered._np_diagflat(as_tensor(v), k=k)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or a diagonal matrix of a vector.

    Examples
    --------
    >>> print(diag([[1, 2], [3, 4]]), diag([5], 1).shape)
    [1 4] (2, 2)
    """
    x = as_tensor(v)
    if x.ndim not in (1, 2):
        raise ShapeError(f"diag: expected one or two axes, got the shape {x.shape}")
    return diagflat(x, k) if x.ndim == 1 else diagonal(x, k)


def _places_where(holds: np.ndarray) -> tuple[Tensor, ...]:
    return tuple(as_tensor(places.astype(np.int32)) for places in np.nonzero(holds))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of ``ndim`` axes, an int32 vector for each axis."""
    return (arange(n),) * ndim


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices on and below the diagonal ``k`` above the main one, an int32 vector for each axis."""
    return _places_where(np.tri(n, m, k))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices on and above the diagonal ``k`` above the main one, an int32 vector for each axis."""
    return _places_where(1 - np.tri(n, m, k - 1))


def _rows_and_columns(x: TensorLike, what: str) -> tuple[int, int]:
    shape = as_tensor(x).shape
    if len(shape) != 2:
        raise ShapeError(f"{what}: expected two axes, got the shape {shape}")
    return shape[0], shape[1]


def tril_indices_from(arr: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """Indices of a matrix on and below a diagonal; see ``tril_indices``."""
    rows, columns = _rows_and_columns(arr, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """Indices of a matrix on and above a diagonal; see ``triu_indices``."""
    rows, columns = _rows_and_columns(arr, "triu_indices_from")
    return triu_indices(rows, k, columns)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: powers of each element in a row, the highest first unless ``increasing``."""
    x = as_tensor(x)
    if x.ndim != 1:
        raise ShapeError(f"vander: expected one axis, got the shape {x.shape}")
    columns = [ops.ones_like(x)]
    for _ in range((x.size if N is None else N) - 1):
        columns.append(columns[-1] * x)
    columns = columns[:N]
    return ops.stack(columns if increasing else columns[::-1], 1)


# ------------------------------------------------------------------------------------------------------- grids


def meshgrid(*xi: TensorLike, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector is repeated along the axes of the others.

    Parameters
    ----------
    sparse : bool
        Whether repeated axes have length one instead.
    indexing : {"xy", "ij"}
        With "xy" the first vector varies along the second axis, and the second vector along the first.
    """
    vectors = [as_tensor(x).reshape((-1,)) for x in xi]
    if not sparse:
        return ops.meshgrid(*vectors, indexing=indexing)
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    return tuple(x.reshape(tuple(x.size if i == at else 1 for i in range(len(vectors))))
                 for x, at in zip(vectors, order))


def indices(dimensions: tuple[int, ...], dtype: TensorDType = np.int32, sparse: bool = False) -> tuple[Tensor, ...]:
    """The indices of a grid: for each axis the index of each position."""
    return meshgrid(*(arange(length, dtype=dtype) for length in dimensions), sparse=sparse, indexing="ij")


def ix_(*args: TensorLike) -> tuple[Tensor, ...]:
    """Vectors, each along its own axis, which together index all of their combinations."""
    for x in args:
        if as_tensor(x).ndim != 1:
            raise ShapeError(f"ix_: expected vectors, got the shape {as_tensor(x).shape}")
    return meshgrid(*args, sparse=True, indexing="ij")


class _Grid:
    """Makes a grid from subscripts: ``grid[0:2, 0:3]``; an imaginary step such as ``5j`` gives the number of values."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        vectors = [self._along(part) for part in (key if isinstance(key, tuple) else (key,))]
        if not isinstance(key, tuple):
            return vectors[0]
        grid = meshgrid(*vectors, sparse=self._sparse, indexing="ij")
        return grid if self._sparse else ops.stack(grid)

    @staticmethod
    def _along(part: slice) -> Tensor:
        start = 0 if part.start is None else part.start
        step = 1 if part.step is None else part.step
        if isinstance(step, complex):
            return linspace(start, part.stop, int(abs(step)))
        return arange(start, part.stop, step)


#: A grid whose coordinates are full arrays.
mgrid = _Grid(sparse=False)
#: A grid whose coordinates have length one along axes on which they are constant.
ogrid = _Grid(sparse=True)


# ---------------------------------------------------------------------------------------------- random numbers


def rand(*shape: int, dtype: TensorDType = np.float32) -> Tensor:
    """Uniform values from 0 to before 1; a single value without a shape."""
    return ops.rand(*(shape or (1,)), dtype=dtype)


def randn(*shape: int, dtype: TensorDType = np.float32) -> Tensor:
    """Standard normal values; a single value without a shape."""
    return ops.randn(*(shape or (1,)), dtype=dtype)


def randint(minval: int, maxval: int | None = None, shape: AnyShape | None = None, dtype: TensorDType = np.int32
            ) -> Tensor:
    """Random integers from ``minval`` to before ``maxval``, or from 0 to before ``minval``."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return ops.randint(low, high, (1,) if shape is None else shape_of(shape), dtype=dtype)

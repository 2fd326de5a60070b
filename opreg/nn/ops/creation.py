"""Functions that make tensors from a shape and values."""

from __future__ import annotations

import builtins

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.trace import create
from ...cells.typing import AnyShape, Number, TensorDType, TensorLike
from ...core.registry import get, ops
from ...core.spec import as_dtype
from ...errors import ArgumentError
from .lift import one_axis, plain, scalar, shape_of, tensor, to_common_dtype, whole_dtype

__all__ = ["arange", "eye", "fill", "full", "full_like", "linspace", "meshgrid", "one_hot", "ones", "ones_like",
           "range", "tril_indices", "triu_indices", "zeros", "zeros_like"]


def _number(value: Tensor | Number) -> float:
    """A Python number, from a Python or NumPy number or a tensor with values."""
    return plain(value.asnumpy().item() if isinstance(value, (TensorBase, NDArray)) else value)


def zeros(size: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Zeros; float32 by default.

    Examples
    --------
    >>> print(zeros((2,)))
    [0. 0.]
    """
    return create(get("_zeros"), shape=shape_of(size), dtype=whole_dtype(dtype, np.float32))


def ones(shape: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Ones; float32 by default."""
    return create(get("_ones"), shape=shape_of(shape), dtype=whole_dtype(dtype, np.float32))


def full(size: AnyShape, fill_value: Tensor | Number, *, dtype: TensorDType = None) -> Tensor:
    """A tensor filled with one value; the default dtype is int64 for an integer and float32 for a float."""
    default = np.float32 if isinstance(_number(fill_value), float) else np.int64
    return fill(whole_dtype(dtype, default), size, fill_value)


def fill(type: TensorDType, shape: AnyShape, value: Tensor | Number) -> Tensor:
    """A tensor filled with one value, in a given dtype."""
    dtype, dims = as_dtype(type), shape_of(shape)
    if not is_number(value) and not isinstance(value, (TensorBase, NDArray)):
        raise ArgumentError(f"fill: expected a number, got {value.__class__.__name__}")
    number = _number(value)
    if dtype.kind == "b":
        return create(get("_ones" if number else "_zeros"), shape=dims, dtype=dtype)
    return create(get("_full"), shape=dims, dtype=dtype, value=number)


def _like(input: TensorLike, op: str, dtype: TensorDType) -> Tensor:
    x = tensor(input)
    return get(op)(x if dtype is None else x.astype(dtype))


def zeros_like(input: TensorLike, *, dtype: TensorDType = None) -> Tensor:
    """Zeros with the shape of a tensor, in its dtype or another."""
    return _like(input, "zeros_like", dtype)


def ones_like(input: TensorLike, *, dtype: TensorDType = None) -> Tensor:
    """Ones with the shape of a tensor, in its dtype or another."""
    return _like(input, "ones_like", dtype)


def full_like(input: TensorLike, fill_value: Tensor | Number, *, dtype: TensorDType = None) -> Tensor:
    """A tensor filled with one value, with the shape of a tensor, in its dtype or another."""
    x = tensor(input)
    return ops._npi_full_like(x, fill_value=_number(fill_value), dtype=whole_dtype(dtype, x._dt))


def eye(n: int, m: int | None = None, dtype: TensorDType = None) -> Tensor:
    """A matrix of ``n`` rows and ``m`` columns (``n`` by default) with ones on the diagonal."""
    return create(get("_eye"), N=int(n), M=int(n if m is None else m), dtype=whole_dtype(dtype, np.float32))


def arange(start: Tensor | Number = 0, end: Tensor | Number | None = None, step: Tensor | Number = 1, *,
           dtype: TensorDType = None) -> Tensor:
    """Values from ``start`` to before ``end``, or from 0 to before ``start``; int64 if all arguments are integers.

    Examples
    --------
    >>> print(arange(1, 7, 2))
    [1 3 5]
    """
    begin, stop, step = (0, _number(start), _number(step)) if end is None else map(_number, (start, end, step))
    default = np.float32 if any(isinstance(number, float) for number in (begin, stop, step)) else np.int64
    if step == 0:
        raise ArgumentError("arange: step must not be zero")
    target = whole_dtype(dtype, default)
    if begin == stop or (stop > begin) != (step > 0):
        return zeros((0,), target)
    # With an integer dtype the operator truncates the step, so fractional steps are computed in float64.
    counted = np.dtype(np.float64) if default is np.float32 and target.kind in "iu" else target
    return create(get("_arange"), start=begin, stop=stop, step=step, dtype=counted)._cast(target)


def range(start: Tensor | Number, end: Tensor | Number, step: Tensor | Number, maxlen: int = 1000000) -> Tensor:
    """Values from ``start`` to before ``end``; see ``arange``."""
    return arange(start, end, step)


def linspace(start: Tensor | Number, end: Tensor | Number, steps: int) -> Tensor:
    """Equally spaced values from ``start`` to ``end``, both included; float64 if one of them is, else float32."""
    dtypes = {value._dt for value in (start, end) if isinstance(value, TensorBase)}
    return create(get("_linspace"), start=float(_number(start)), stop=float(_number(end)), num=int(steps),
                  dtype=np.dtype(np.float64 if np.dtype(np.float64) in dtypes else np.float32))


def meshgrid(*inputs: TensorLike, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector is repeated along the axes of the others.

    Parameters
    ----------
    indexing : {"xy", "ij"}
        With "xy" the first vector varies along the second axis, and the second vector along the first.
    """
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    vectors = [tensor(vector) for vector in inputs]
    order = list(builtins.range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = tuple(vectors[i].size for i in order)
    places = {i: at for at, i in enumerate(order)}
    wide = [vector.reshape(tuple(vector.size if at == places[i] else 1 for at in builtins.range(len(shape))))
            for i, vector in enumerate(vectors)]
    return tuple(ops._np_broadcast_to(vector, shape=shape) for vector in wide)


def _true_indices(chosen: np.ndarray, dtype: TensorDType) -> Tensor:
    """Indices of the true elements, one row for each axis."""
    return tensor(np.stack(np.nonzero(chosen)).astype(whole_dtype(dtype, np.int64)))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: TensorDType = None) -> Tensor:
    """Indices of the lower triangle of a matrix, up to the diagonal ``offset`` above the main one; int64.

    Parameters
    ----------
    row, col : int
        Numbers of rows and columns of the matrix.

    Returns
    -------
    Tensor
        Two rows: the row indices and the column indices.

    Examples
    --------
    >>> print(tril_indices(2, 2))
    [[0 1 1]
     [0 0 1]]
    """
    return _true_indices(np.tri(row, col, offset), dtype)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: TensorDType = None) -> Tensor:
    """Indices of the upper triangle of a matrix, from the diagonal ``offset`` above the main one; int64.

    See ``tril_indices``.
    """
    return _true_indices(1 - np.tri(row, col, offset - 1), dtype)


def one_hot(indices: TensorLike, depth: int | Tensor, on_value: Tensor | Number = 1, off_value: Tensor | Number = 0,
            axis: int = -1) -> Tensor:
    """One-hot vectors of length ``depth`` along a new axis: ``on_value`` at the index, ``off_value`` elsewhere."""
    index = tensor(indices)
    hot = ops.one_hot(index, depth=int(_number(depth)), dtype=np.dtype(np.float32))
    axis = one_axis(axis, index.ndim + 1, "one_hot")
    if axis != index.ndim:
        order = list(builtins.range(index.ndim))
        hot = hot.transpose((*order[:axis], index.ndim, *order[axis:]))
    if is_number(on_value) and is_number(off_value):
        numbers = _number(on_value), _number(off_value)
        dtype = np.dtype(np.float32 if any(isinstance(number, float) for number in numbers) else np.int64)
        on, off = [scalar(number, dtype) for number in numbers]
    else:
        on, off = to_common_dtype(on_value, off_value)
    return ops._npi_where(hot, on, off)

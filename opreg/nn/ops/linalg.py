"""Linear algebra: products of matrices and vectors, inverses, determinants and factorizations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import TensorLike
from ...core.registry import ops
from ...core.spec import is_floating
from ...errors import ArgumentError, DTypeError, ShapeError
from .array import broadcast_to, concat, pad, swapaxes
from .creation import eye, ones
from .lift import as_floating, like, one_axis, tensor, to_common_dtype
from .math import power_from_zero, where

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "batch_dot", "bias_add", "bidense", "block_diag", "bmm", "cdist",
    "cholesky", "cholesky_inverse", "cholesky_solve", "cov", "cross", "dense", "det", "dot", "einsum", "ger", "inner",
    "inverse", "kron", "log_matrix_determinant", "logdet", "matmul", "matrix_determinant", "matrix_power", "mm", "mv",
    "outer", "slogdet", "tensor_dot"]


def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """Products of matrices in the last two axes; the axes before broadcast, and a vector is a row or a column.

    Examples
    --------
    >>> print(matmul(tensor([[1.0, 2.0]]), tensor([[3.0], [4.0]])))
    [[11.]]
    """
    return ops._npi_matmul(*to_common_dtype(input, other))


def _check_ranks(name: str, rank: tuple[int, int], x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    x, y = to_common_dtype(x, y)
    if (x.ndim, y.ndim) != rank:
        raise ShapeError(f"{name}: expected {rank[0]} and {rank[1]} axes, got shapes {x.shape} and {y.shape}")
    return x, y


def mm(input: TensorLike, mat2: TensorLike) -> Tensor:
    """The product of two matrices."""
    return matmul(*_check_ranks("mm", (2, 2), input, mat2))


def bmm(input_x: TensorLike, mat2: TensorLike) -> Tensor:
    """Products of two batches of matrices."""
    x, y = to_common_dtype(input_x, mat2)
    if x.ndim < 2 or x.shape[:-2] != y.shape[:-2]:
        raise ShapeError(f"bmm: expected equally many matrices in both, got shapes {x.shape} and {y.shape}")
    return matmul(x, y)


def mv(mat: TensorLike, vec: TensorLike) -> Tensor:
    """The product of a matrix and a vector."""
    return matmul(*_check_ranks("mv", (2, 1), mat, vec))


def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """Products over the last axis of ``input`` and the last but one of ``other``; both have at least two axes."""
    x, y = to_common_dtype(input, other)
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError(f"dot: expected at least two axes, got shapes {x.shape} and {y.shape}")
    return tensor_dot(x, y, ((x.ndim - 1,), (y.ndim - 2,)))


def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
    x, y = _check_ranks("outer", (1, 1), input, vec2)
    return x.reshape((-1, 1)) * y


def ger(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
    return outer(input, vec2)


def inner(input: TensorLike, other: TensorLike) -> Tensor:
    """Inner products over the last axis of both."""
    x, y = to_common_dtype(input, other)
    if not x.ndim or not y.ndim:
        return x * y
    return tensor_dot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


def tensor_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int | Sequence[int]]) -> Tensor:
    """Sums of products along axes of both.

    Parameters
    ----------
    axes : int, or pair of sequences of int
        A count, for the last axes of ``x1`` and the first of ``x2``; or the axes of ``x1`` and the axes of ``x2``.
    """
    x, y = to_common_dtype(x1, x2)
    if isinstance(axes, int):
        first: Sequence[int] = range(x.ndim - axes, x.ndim)
        second: Sequence[int] = range(axes)
    else:
        first, second = ((side,) if isinstance(side, int) else side for side in axes)
    left = tuple([one_axis(axis, x.ndim, "tensor_dot") for axis in first])
    right = tuple([one_axis(axis, y.ndim, "tensor_dot") for axis in second])
    if [x.shape[i] for i in left] != [y.shape[i] for i in right]:
        raise ShapeError(f"tensor_dot: axes {[*left]} of {x.shape} and {[*right]} of {y.shape} differ in length")
    return ops._npi_tensordot(x, y, a_axes_summed=left, b_axes_summed=right)


def batch_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """Sums of products along one axis of each; the first axis is a batch.

    Parameters
    ----------
    axes : int or pair of int, optional
        Axes of ``x1`` and of ``x2``; by default the last and the last but one.
    """
    x, y = to_common_dtype(x1, x2)
    if x.ndim < 2 or y.ndim < 2 or x.shape[0] != y.shape[0]:
        raise ShapeError(f"batch_dot: {x.shape} and {y.shape} need a common first axis and at least one more axis")
    axes = (x.ndim - 1, max(y.ndim - 2, 1)) if axes is None else axes
    first, second = (axes, axes) if isinstance(axes, int) else axes
    i, j = one_axis(first, x.ndim, "batch_dot"), one_axis(second, y.ndim, "batch_dot")
    if not i or not j:
        raise ArgumentError("batch_dot: the first axis is the batch, which cannot be summed over")
    rows = [k for k in range(1, x.ndim) if k != i]
    columns = [k for k in range(1, y.ndim) if k != j]
    a = x.transpose((0, *rows, i)).reshape((x.shape[0], -1, x.shape[i]))
    b = y.transpose((0, j, *columns)).reshape((y.shape[0], y.shape[j], -1))
    shape = (x.shape[0], *(x.shape[k] for k in rows), *(y.shape[k] for k in columns))
    return matmul(a, b).reshape(shape if len(shape) > 1 else (shape[0], 1))


def kron(input: TensorLike, other: TensorLike) -> Tensor:
    """The Kronecker product."""
    x, y = to_common_dtype(input, other)
    rank = max(x.ndim, y.ndim)
    a, b = ((1,) * (rank - matrix.ndim) + matrix.shape for matrix in (x, y))
    wide = x.reshape([n for dim in a for n in (dim, 1)]) * y.reshape([n for dim in b for n in (1, dim)])
    return wide.reshape([m * n for m, n in zip(a, b)])


def cross(input: TensorLike, other: TensorLike, dim: int | None = None) -> Tensor:
    """The cross product along an axis of length three, by default the first one."""
    x, y = to_common_dtype(input, other)
    if x.shape != y.shape:
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    axis = next(i for i, length in enumerate(x.shape) if length == 3) if dim is None else \
        one_axis(dim, x.ndim, "cross")
    (a, b, c), (d, e, f) = (ops.SliceChannel(vectors, num_outputs=3, axis=axis) for vectors in (x, y))
    return concat((b * f - c * e, c * d - a * f, a * e - b * d), axis)


def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Tensor:
    """Distances between all rows of ``x1`` and all rows of ``x2``.

    Parameters
    ----------
    x1, x2 : Tensor
        Floating tensors of shapes :math:`(.., P, M)` and :math:`(.., R, M)`.
    p : float
        Order of the norm: 0 counts differing elements, infinity is the largest difference.

    Returns
    -------
    Tensor
        Distances of shape :math:`(.., P, R)`. The derivative at two equal rows is zero.

    Examples
    --------
    >>> print(cdist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0], [0.0, 1.0]])))
    [[5. 1.]]
    """
    x, y = to_common_dtype(x1, x2)
    if not is_floating(x._dt):
        raise DTypeError(f"cdist: expected floating numbers, got dtype {x._dt}")
    if x.ndim < 2 or x.ndim != y.ndim or x.shape[-1] != y.shape[-1]:
        raise ShapeError("cdist: expected equally many axes, at least two, and rows of equal lengths, got shapes "
                         f"{x.shape} and {y.shape}")
    if not is_number(p) or p < 0:
        raise ArgumentError(f"cdist: p must be a number of at least 0, got {p!r}")
    return row_norms(ops.expand_dims(x, axis=-2) - ops.expand_dims(y, axis=-3), p)


def row_norms(difference: Tensor, p: float) -> Tensor:
    """Norms of order ``p`` along the last axis; the derivative at rows of zeros is zero."""
    if p == 0:
        return ops._np_sum((difference != 0)._cast(difference._dt), axis=-1)
    size = ops.abs(difference)
    if math.isinf(p):
        return ops._np_max(size, axis=-1)
    return power_from_zero(ops._np_sum(power_from_zero(size, p), axis=-1), 1 / p)


def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
         ) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``."""
    return tensor(input) * beta + mm(mat1, mat2) * alpha


def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
         ) -> Tensor:
    """``beta * input + alpha * mat @ vec``."""
    return tensor(input) * beta + mv(mat, vec) * alpha


def addr(x: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``."""
    return tensor(x) * beta + outer(vec1, vec2) * alpha


def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, beta: TensorLike = 1, alpha: TensorLike = 1
           ) -> Tensor:
    """``beta * input + alpha * batch1 @ batch2``."""
    return tensor(input) * beta + bmm(batch1, batch2) * alpha


def addbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
          ) -> Tensor:
    """``beta * input`` plus ``alpha`` times the sum of all products ``batch1 @ batch2``."""
    return tensor(input) * beta + ops._np_sum(bmm(batch1, batch2), axis=0) * alpha


def dense(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """``input @ weight.T + bias``, over the last axis."""
    x, w = to_common_dtype(input, weight)
    shape = w.shape
    if len(shape) == 1:
        product = matmul(x, w)
        return product if bias is None else product + bias
    inputs = (x, w) if bias is None else (x, w, like(bias, x))
    return ops.FullyConnected(*inputs, num_hidden=shape[0], flatten=False, no_bias=bias is None)


def bidense(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """``x @ weight[k] @ y + bias[k]`` of the last axes of two inputs, for each ``k``.

    Parameters
    ----------
    input1, input2 : Tensor
        Tensors of shapes :math:`(.., M)` and :math:`(.., N)`, which differ in the last axis only.
    weight : Tensor
        Weights of shape :math:`(K, M, N)`.
    bias : Tensor, optional
        Bias of shape :math:`(K,)`.

    Returns
    -------
    Tensor
        A tensor of shape :math:`(.., K)`.
    """
    x, y, w = to_common_dtype(input1, input2, weight)
    if w.ndim != 3 or x.shape[:-1] != y.shape[:-1] or (x.shape[-1:], y.shape[-1:]) != (w.shape[1:2], w.shape[2:]):
        raise ShapeError(f"bidense: inputs of shapes {x.shape} and {y.shape} do not fit a weight of shape {w.shape}")
    k, m, n = w.shape
    left = matmul(x.reshape((-1, m)), w.transpose((1, 0, 2)).reshape((m, k * n))).reshape((-1, k, n))
    result = ops._np_sum(left * y.reshape((-1, 1, n)), axis=-1).reshape((*x.shape[:-1], k))
    return result if bias is None else result + like(bias, result)


def bias_add(input_x: TensorLike, bias: TensorLike) -> Tensor:
    """Add a vector along the second axis."""
    x, bias = tensor(input_x), tensor(bias)
    if x.ndim < 2 or bias.shape != (x.shape[1],):
        raise ShapeError(f"bias_add: a bias of shape {bias.shape} does not fit the channels of {x.shape}")
    return x + bias.reshape((-1,) + (1,) * (x.ndim - 2))


def inverse(input: TensorLike) -> Tensor:
    """The inverse of matrices."""
    return ops._linalg_inverse(as_floating(input))


def det(input: TensorLike) -> Tensor:
    """The determinant of matrices."""
    x = as_floating(input)
    return ops._linalg_det(x).reshape(x.shape[:-2])


matrix_determinant = det


def slogdet(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The signs of determinants, and the logarithms of their absolute values.

    Examples
    --------
    >>> sign, log = slogdet(tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> float(sign), float(log)
    (-1.0, 0.0)
    """
    x = as_floating(input)
    sign, log = ops._linalg_slogdet(x)
    return sign.reshape(x.shape[:-2]), log.reshape(x.shape[:-2])


log_matrix_determinant = slogdet


def logdet(input: TensorLike) -> Tensor:
    """The logarithms of determinants; NaN for negative ones."""
    sign, log = slogdet(input)
    return where(sign < 0, math.nan, log)


def matrix_power(input: TensorLike, n: int) -> Tensor:
    """Matrices to the power ``n``; the identity for 0, powers of the inverse, in floating-point, for negative ``n``."""
    x = _square("matrix_power", input, real=n < 0)
    if n == 0:
        return broadcast_to(eye(x.shape[-1], x.shape[-1], x._dt), x.shape)
    factor = x if n > 0 else inverse(x)
    result: Tensor | None = None
    remaining = abs(int(n))
    while remaining:
        if remaining % 2:
            result = factor if result is None else matmul(result, factor)
        remaining //= 2
        factor = matmul(factor, factor) if remaining else factor
    assert result is not None
    return result


def _square(name: str, x: TensorLike, real: bool = True) -> Tensor:
    x = as_floating(x) if real else tensor(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: expected square matrices in the last two axes, got shape {x.shape}")
    return x


def cholesky(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``A = L @ L.T`` for symmetric positive definite matrices; with ``upper``,
    ``L.T``.

    Examples
    --------
    >>> print(cholesky(tensor([[4.0, 2.0], [2.0, 2.0]])))
    [[2. 0.]
     [1. 1.]]
    """
    lower = ops._linalg_potrf(_square("cholesky", input_x))
    return swapaxes(lower, -1, -2) if upper else lower


def cholesky_inverse(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The inverse of matrices, given their factors by ``cholesky``."""
    x = _square("cholesky_inverse", input_x)
    return ops._linalg_potri(swapaxes(x, -1, -2) if upper else x)


def cholesky_solve(input: TensorLike, input2: TensorLike, upper: bool = False) -> Tensor:
    """The solution ``x`` of ``A @ x = input``, given the Cholesky factor ``input2`` of ``A``.

    Parameters
    ----------
    input : Tensor
        Right-hand sides, of shape (..., n, columns).
    input2 : Tensor
        The result of ``cholesky`` for ``A``, of shape (..., n, n).
    upper : bool
        Whether the factors are upper triangular.
    """
    columns, factor = to_common_dtype(input, input2, real=True)
    factor = _square("cholesky_solve", swapaxes(factor, -1, -2) if upper else factor)
    if columns.shape[:-1] != factor.shape[:-1]:
        raise ShapeError(f"cholesky_solve: expected columns as long as the matrices have rows, got shapes "
                         f"{columns.shape} and {factor.shape}")
    return ops._linalg_trsm(factor, ops._linalg_trsm(factor, columns), transpose=True)


def block_diag(*inputs: TensorLike) -> Tensor:
    """A block-diagonal matrix of matrices; a vector is a row."""
    blocks = [matrix.reshape((1, -1)) if matrix.ndim < 2 else matrix for matrix in to_common_dtype(*inputs)]
    if any(block.ndim != 2 for block in blocks):
        raise ShapeError(f"block_diag: expected two axes at most, got shapes {[block.shape for block in blocks]}")
    width, before, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(pad(block, (before, width - before - block.shape[1])))
        before += block.shape[1]
    return concat(rows, 0)


def cov(input: TensorLike, *, correction: int = 1, fweights: TensorLike | None = None,
        aweights: TensorLike | None = None) -> Tensor:
    """The covariance matrix of variables, which are the rows; a number for a vector.

    Parameters
    ----------
    correction : int
        Number subtracted from the count of samples in the divisor.
    fweights, aweights : Tensor
        Counts of the samples, and their weights.
    """
    x = as_floating(input)
    if x.ndim > 2:
        raise ShapeError(f"cov: expected one or two axes, got the shape {x.shape}")
    x = x.reshape((1, -1)) if x.ndim < 2 else x
    weights = [tensor(weight)._cast(x._dt) for weight in (fweights, aweights) if weight is not None]
    w = ones((x.shape[1],), x._dt) if not weights else weights[0] if len(weights) == 1 else weights[0] * weights[1]
    total = ops._np_sum(w)
    less = correction if aweights is None else correction * ops._np_sum(w * weights[-1]) / total
    off = x - (ops._np_sum(x * w, axis=1) / total).reshape((-1, 1))
    value = matmul(off * w, off.T) / (total - less)
    return value.reshape(()) if value.shape == (1, 1) else value


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products given by an equation of letters: ``"ij,jk->ik"`` is the product of matrices.

    Letters after the arrow are axes of the result, all others are summed over; without an arrow the result has the
    letters that occur once, in alphabetical order. ``...`` stands for all axes without a letter.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    values = to_common_dtype(*operands)
    return ops._npi_einsum(*values, subscripts=equation, num_args=len(values))

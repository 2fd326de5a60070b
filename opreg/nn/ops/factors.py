"""Factors of matrices, solutions that follow from them, and products and distances of rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import Number, TensorLike
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .array import concat, swapaxes
from .creation import eye
from .lift import as_floating, like, one_axis, tensor, to_common_dtype
from .linalg import matmul, row_norms
from .math import maximum, where
from .primitive import adder
from .reduce import matrix_norm

__all__ = ["lstsq", "matrix_solve", "pdist", "pinv", "qr", "svd", "vander", "vecdot"]

_add = adder(globals(), __all__)


def _matrices(name: str, x: TensorLike) -> Tensor:
    x = as_floating(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: expected matrices in the last two axes, got shape {show(x.shape)}")
    return x


def _transpose(x: Tensor) -> Tensor:
    return swapaxes(x, -1, -2)


def _complete_columns(q: Tensor) -> Tensor:
    """Orthonormal columns, and after them others that make the matrix square; those have no gradient."""
    rows, columns = q.shape[-2:]
    if rows == columns:
        return q
    fixed = ops.BlockGrad(q)
    others, _ = ops._linalg_syevd(eye(rows, rows, q._dt) - matmul(fixed, _transpose(fixed)))
    return concat((q, _transpose(others)[..., columns:]), -1)  # eigenvalues ascend: 0 for the given columns, then 1


def svd(input: TensorLike, full_matrices: bool = False, compute_uv: bool = True
        ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """The singular value decomposition ``input = u @ diag(s) @ v.T`` of matrices.

    Parameters
    ----------
    input : Tensor
        Floating matrices of shape :math:`(.., M, N)`.
    full_matrices : bool
        Whether ``u`` and ``v`` are square. The columns that this adds have no gradient.
    compute_uv : bool
        Whether ``u`` and ``v`` are returned, too.

    Returns
    -------
    Tensor, or tuple of Tensor
        The singular values ``s`` in descending order, and then ``u`` and ``v``.

    Examples
    --------
    >>> print(svd(tensor([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False))
    [2. 1.]
    """
    x = _matrices("svd", input)
    wide = x.shape[-2] <= x.shape[-1]
    left, s, right = ops._npi_svd(x if wide else _transpose(x))
    if not compute_uv:
        return s
    u, v = (left, _transpose(right)) if wide else (_transpose(right), left)
    return (s, _complete_columns(u), _complete_columns(v)) if full_matrices else (s, u, v)


def qr(input: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """The QR decomposition ``input = q @ r`` of matrices: orthonormal columns, and an upper triangular matrix.

    Parameters
    ----------
    input : Tensor
        Floating matrices of shape :math:`(.., M, N)`.
    mode : {"reduced", "complete"}
        Number of columns of ``q``: the smaller of M and N, or M. Columns beyond N have no gradient.

    Examples
    --------
    >>> q, r = qr(tensor([[3.0], [4.0]]))
    >>> print(r)
    [[-5.]]
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    x = _matrices("qr", input)
    rows, columns = x.shape[-2:]
    q, r = ops._linalg_gelqf(_transpose(x[..., :rows]))
    q, r = _transpose(q), _transpose(r)
    if rows < columns:
        r = concat((r, matmul(_transpose(q), x[..., rows:])), -1)
    elif mode == "complete" and rows > columns:
        q = _complete_columns(q)
        r = concat((r, ops.zeros_like(x[..., columns:, :])), -2)
    return q, r


def lstsq(input: TensorLike, A: TensorLike) -> Tensor:
    """The matrix ``x`` for which ``input @ x`` is nearest to ``A``; of several the smallest.

    Parameters
    ----------
    input : Tensor
        A matrix of shape :math:`(M, N)` and full rank.
    A : Tensor
        Columns of shape :math:`(M, K)`, or one of shape :math:`(M,)`.

    Returns
    -------
    Tensor
        A tensor of shape :math:`(N, K)`, :math:`(N, 1)` for a vector.

    Examples
    --------
    >>> print(lstsq(tensor([[1.0], [1.0]]), tensor([1.0, 3.0])))
    [[2.]]
    """
    x, columns = to_common_dtype(input, A, real=True)
    columns = columns.reshape((-1, 1)) if columns.ndim == 1 else columns
    if x.ndim != 2 or columns.ndim != 2 or x.shape[0] != columns.shape[0]:
        raise ShapeError(f"lstsq: expected a matrix and columns as long as its own, got shapes {show(x.shape)} and "
                         f"{show(tensor(A).shape)}")
    if x.shape[0] < x.shape[1]:
        q, low = ops._linalg_gelqf(x)
        return matmul(_transpose(q), ops._linalg_trsm(low, columns))
    q, low = ops._linalg_gelqf(_transpose(x))
    return ops._linalg_trsm(low, matmul(q, columns), transpose=True)


def pinv(x: TensorLike, *, atol: TensorLike | None = None, rtol: TensorLike | None = None, hermitian: bool = False
         ) -> Tensor:
    """The pseudo-inverse of matrices.

    Parameters
    ----------
    x : Tensor
        Floating matrices of shape :math:`(.., M, N)`.
    atol, rtol : float or Tensor, optional
        A singular value counts as zero up to the larger of ``atol`` and ``rtol`` times the largest one. ``rtol`` is
        the rounding error of M or N operations by default, 0 beside ``atol``.
    hermitian : bool
        Accepted without effect: the result for a symmetric matrix is the same.

    Examples
    --------
    >>> print(pinv(tensor([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    matrices = _matrices("pinv", x)
    s, u, v = svd(matrices)
    if rtol is None:
        rtol = 0.0 if atol is not None else max(matrices.shape[-2:]) * float(np.finfo(matrices._dt).eps)
    least = ops.expand_dims(like(0.0 if atol is None else atol, s), axis=-1)
    limit = maximum(least, ops.expand_dims(like(rtol, s), axis=-1) * s[..., :1])
    large = s > limit
    inverse = where(large, 1 / where(large, s, 1.0), 0.0)
    return matmul(v * ops.expand_dims(inverse, axis=-2), _transpose(u))


def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False) -> Tensor:
    """The solution ``x`` of ``matrix @ x = rhs``, with ``adjoint`` of ``matrix.T @ x = rhs``."""
    x, columns = to_common_dtype(matrix, rhs, real=True)
    x = _matrices("matrix_solve", x)
    return ops._npi_solve(_transpose(x) if adjoint else x, columns)


def vander(x: TensorLike, N: int | None = None) -> Tensor:
    """The powers of a vector's elements, a row each: ``N`` columns, or as many as elements, down to the power 0.

    Examples
    --------
    >>> print(vander(tensor([2.0, 3.0]), 3))
    [[4. 2. 1.]
     [9. 3. 1.]]
    """
    base = tensor(x)
    if base.ndim != 1:
        raise ShapeError(f"vander: expected a vector, got shape {show(base.shape)}")
    count = base.shape[0] if N is None else int(N)
    if count < 0:
        raise ArgumentError(f"vander: N must be at least 0, got {N}")
    if base._dt.kind in "iub":
        base = base._cast(np.dtype(np.int64))
    column = base.reshape((-1, 1))
    powers: list[Tensor] = [ops.ones_like(column)]
    for _ in range(count - 1):
        powers.append(powers[-1] * column)
    return concat(powers[::-1], 1)[:, :count]


def vecdot(x: TensorLike, y: TensorLike, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis; the other axes broadcast."""
    left, right = to_common_dtype(x, y)
    product = left * right
    return ops._np_sum(product, axis=one_axis(axis, product.ndim, "vecdot"))


def pdist(input: TensorLike, p: float = 2.0) -> Tensor:
    """Distances between each row of a matrix and each later one.

    Parameters
    ----------
    input : Tensor
        A floating matrix of shape :math:`(N, M)`.
    p : float
        Order of the norm: 0 counts differing elements, infinity is the largest difference.

    Returns
    -------
    Tensor
        A vector of N (N - 1) / 2 distances. The derivative at two equal rows is zero.

    Examples
    --------
    >>> print(pdist(tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])))
    [5.        1.        4.2426405]
    """
    x = as_floating(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist: expected a matrix, got shape {show(x.shape)}")
    if p < 0:
        raise ArgumentError(f"pdist: p must be at least 0, got {p!r}")
    pairs = np.array(list(itertools.combinations(range(x.shape[0]), 2)), np.int64).reshape(-1, 2)
    first, second = (ops.take(x, tensor(pairs[:, i]), axis=0) for i in (0, 1))
    return row_norms(first - second, p)


def _qr(x: TensorLike, *, full_matrices: bool) -> tuple[Tensor, Tensor]:
    return qr(x, "complete" if full_matrices else "reduced")


def _lstsq(matrix: TensorLike, rhs: TensorLike, *, fast: bool, l2_regularizer: float) -> Tensor:
    return lstsq(matrix, rhs)


def _nuclear(x: TensorLike, *, dim: Sequence[int] | None, keepdim: bool) -> Tensor:
    x = as_floating(x)
    first, second = (-2, -1) if dim is None else dim
    return matrix_norm(x, "nuc", (first, second), keepdim)


def _pdist(x: TensorLike, *, p: Number) -> Tensor:
    return pdist(x, float(p))


_add("Svd", svd, {"full_matrices": False, "compute_uv": True})
_add("Qr", _qr, {"full_matrices": False})
_add("Lstsq", _lstsq, {"fast": True, "l2_regularizer": 0.0})
_add("MatrixSolve", matrix_solve, {"adjoint": False})
_add("NuclearNorm", _nuclear, {"dim": None, "keepdim": False})
_add("Pdist", _pdist, {"p": 2.0})

"""``mx.np.linalg``: operators, also of symbols; the last functions of this file run NumPy, on unrecorded arrays."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from opreg.core.named_errors import name_errors
from opreg.core.registry import ops

from .functions import by_numpy, call_numpy
from .values import as_value

__all__ = ["norm", "det", "slogdet", "inv", "svd", "cholesky", "qr", "solve", "tensorinv", "tensorsolve", "pinv", "eig",
           "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "matrix_power", "multi_dot", "cond"]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices; Frobenius norms and p-norms have gradients.

    Examples
    --------
    >>> from opreg import np
    >>> np.linalg.norm(np.array([3, 4]))
    array(5.)
    """
    value = as_value(x)
    order: Any = {"inf": np.inf, "-inf": -np.inf}.get(ord, ord) if isinstance(ord, str) else ord
    axes = axis if axis is None or isinstance(axis, numbers.Integral) else tuple(map(int, axis))
    flag = -2 if order is None and axes is None else {None: 1, "fro": 1, "f": 1, "nuc": 2}.get(order, -1)
    return ops._npi_norm(value, ord=2.0 if flag != -1 else float(order), axis=axes, flag=flag, keepdims=bool(keepdims))


def det(a: Any) -> Any:
    """The determinant of matrices.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.det(np.array([[2.0, 1.0], [1.0, 3.0]])).round(3))
    5.0
    """
    value = as_value(a)
    return ops._of_matrices(ops._npi_det(value), value)


def slogdet(a: Any) -> Any:
    """The sign and the logarithm of the absolute value of the determinant of matrices.

    Examples
    --------
    >>> from opreg import np
    >>> sign, logarithm = np.linalg.slogdet(np.array([[2.0, 0.0], [0.0, -3.0]]))
    >>> print(sign, logarithm.round(3))
    -1.0 1.792
    """
    value = as_value(a)
    return tuple(ops._of_matrices(each, value) for each in ops._npi_slogdet(value))


def inv(a: Any) -> Any:
    """The inverse of matrices.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return ops._npi_inv(as_value(a))


def cholesky(a: Any) -> Any:
    """The Cholesky factor: lower triangular ``L`` with ``a = L @ L.T``.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.cholesky(np.array([[4.0, 0.0], [0.0, 9.0]])))
    [[2. 0.]
     [0. 3.]]
    """
    return ops._linalg_potrf(as_value(a))


def svd(a: Any) -> Any:
    """The singular value decomposition of matrices with no more rows than columns: ``U``, the singular values, and
    ``V``.

    Examples
    --------
    >>> from opreg import np
    >>> u, values, vh = np.linalg.svd(np.array([[3.0, 0.0], [0.0, 2.0]]))
    >>> print(values)
    [3. 2.]
    """
    return tuple(ops._npi_svd(as_value(a)))


def solve(a: Any, b: Any) -> Any:
    """The solution of linear equations.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])))
    [1.  0.5]
    """
    return ops._npi_solve(*as_value(a)._pair(as_value(b)))


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of a linear map between the first axes and the others.

    Examples
    --------
    >>> from opreg import np
    >>> np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    return ops._npi_tensorinv(as_value(a), ind=int(ind))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The solution of an equation of tensors.

    Examples
    --------
    >>> from opreg import np
    >>> np.linalg.tensorsolve(np.eye(6).reshape(2, 3, 2, 3), np.ones((2, 3))).shape
    (2, 3)
    """
    return ops._npi_tensorsolve(*as_value(a)._pair(as_value(b)), a_axes=None if axes is None else tuple(map(int, axes)))


def pinv(a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """The pseudo-inverse of matrices.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.pinv(np.array([[2.0, 0.0], [0.0, 0.0]])).round(3))
    [[0.5 0. ]
     [0.  0. ]]
    """
    if isinstance(rcond, numbers.Real):
        return ops._npi_pinv_scalar_rcond(as_value(a), rcond=float(rcond), hermitian=bool(hermitian))
    return ops._npi_pinv(*as_value(a)._pair(as_value(rcond)), hermitian=bool(hermitian))


def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors, their real parts.

    Examples
    --------
    >>> from opreg import np
    >>> print(sorted(np.linalg.eig(np.array([[2.0, 0.0], [0.0, 3.0]]))[0].tolist()))
    [2.0, 3.0]
    """
    return tuple(ops._npi_eig(as_value(a)))


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.eigh(np.array([[2.0, 0.0], [0.0, 3.0]]))[0])
    [2. 3.]
    """
    return tuple(ops._npi_eigh(as_value(a), UPLO=UPLO.upper()))


def eigvals(a: Any) -> Any:
    """Eigenvalues, their real parts.

    Examples
    --------
    >>> from opreg import np
    >>> print(sorted(np.linalg.eigvals(np.array([[2.0, 0.0], [0.0, 3.0]])).tolist()))
    [2.0, 3.0]
    """
    return ops._npi_eigvals(as_value(a))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of symmetric matrices.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 3.0]])))
    [2. 3.]
    """
    return ops._npi_eigvalsh(as_value(a), UPLO=UPLO.upper())


def lstsq(a: Any, b: Any, rcond: Any = "warn") -> Any:
    """The least-squares solution, residuals, rank and singular values; "warn" is NumPy's default of ``rcond``.

    Examples
    --------
    >>> from opreg import np
    >>> print(np.linalg.lstsq(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([3.0, 4.0]), rcond=None)[0].round(3))
    [3. 2.]
    """
    return call_numpy("linalg.lstsq", a, b, None if isinstance(rcond, str) and rcond == "warn" else rcond)


qr, matrix_rank, matrix_power, multi_dot, cond = map(by_numpy, (
    "linalg.qr", "linalg.matrix_rank", "linalg.matrix_power", "linalg.multi_dot", "linalg.cond"))


name_errors(__name__, globals(), __all__)

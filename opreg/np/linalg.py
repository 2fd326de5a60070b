"""``mx.np.linalg``: norms are operators with gradients; NumPy computes the others, for unrecorded arrays."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.ndarray.ndarray import NDArray

from .functions import FUNCTIONS, by_numpy
from .values import held

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
    value = held(x)
    is_vector = isinstance(axis, numbers.Integral) or (axis is None and ord not in (None, "fro") and value.ndim == 1)
    if ord in (None, "fro") or (ord == 2 and is_vector):
        return FUNCTIONS["sqrt"](FUNCTIONS["sum"](FUNCTIONS["square"](value), axis=axis, keepdims=keepdims))
    if is_vector and ord == 1:
        return FUNCTIONS["sum"](FUNCTIONS["abs"](value), axis=axis, keepdims=keepdims)
    if is_vector and ord in (np.inf, -np.inf):
        return FUNCTIONS["max" if ord > 0 else "min"](FUNCTIONS["abs"](value), axis=axis, keepdims=keepdims)
    return by_numpy("linalg.norm")(value, ord, axis, keepdims)


def _of_matrices(a: Any, result: Any) -> Any:
    """One value a matrix: without axes for a single one, where the operator has one of length 1."""
    return result.reshape(()) if isinstance(a, NDArray) and a.ndim == 2 else result


def det(a: Any) -> Any:
    """The determinant of matrices."""
    value = held(a)
    return _of_matrices(value, ops._npi_det(value))


def slogdet(a: Any) -> Any:
    """The sign and the logarithm of the absolute value of the determinant of matrices."""
    value = held(a)
    return tuple(_of_matrices(value, part) for part in ops._npi_slogdet(value))


def inv(a: Any) -> Any:
    """The inverse of matrices."""
    return ops._npi_inv(held(a))


def cholesky(a: Any) -> Any:
    """The Cholesky factor: lower triangular ``L`` with ``a = L @ L.T``."""
    return ops._linalg_potrf(held(a))


svd, qr, solve, tensorinv, tensorsolve = map(by_numpy, (
    "linalg.svd", "linalg.qr", "linalg.solve", "linalg.tensorinv", "linalg.tensorsolve"))
pinv, eig, eigh, eigvals, eigvalsh = map(by_numpy, (
    "linalg.pinv", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh"))
lstsq, matrix_rank, matrix_power, multi_dot, cond = map(by_numpy, (
    "linalg.lstsq", "linalg.matrix_rank", "linalg.matrix_power", "linalg.multi_dot", "linalg.cond"))

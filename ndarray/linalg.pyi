# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.methods import DType, Floats, Input, Ints, Operand, Out
from opreg.ndarray.ndarray import NDArray

def det(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The determinant of matrices.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.det(mx.nd.array([[2, 0], [1, 3]])).asnumpy().round(3)
    array([6.], dtype=float32)
    """
def extractdiag(A: Input, offset: int = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """The elements of a diagonal."""
def extracttrian(A: Input, offset: int = 0, lower: bool = True, *, out: Out = None,
                 name: str | None = None) -> NDArray:
    """The elements of a triangle as a vector."""
def gelqf(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """The LQ decomposition."""
def gemm(A: Input, B: Input, C: Input, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
         beta: float = 1.0, axis: int = -2, *, out: Out = None, name: str | None = None) -> NDArray:
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta * C``.

    Examples
    --------
    >>> import opreg as mx
    >>> a, b, c = mx.nd.ones((2, 3)), mx.nd.ones((3, 2)), mx.nd.ones((2, 2))
    >>> mx.nd.linalg.gemm(a, b, c, alpha=2, beta=10).asnumpy()
    array([[16., 16.],
           [16., 16.]], dtype=float32)
    """
def gemm2(A: Input, B: Input, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
          axis: int = -2, *, out: Out = None, name: str | None = None) -> NDArray:
    """``alpha`` times the product of matrices with rows along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> a = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.linalg.gemm2(a, a, transpose_b=True, alpha=2).asnumpy()
    array([[10., 22.],
           [22., 50.]], dtype=float32)
    """
def inverse(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of matrices.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.inverse(mx.nd.array([[2, 0], [0, 4]])).asnumpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
def makediag(A: Input, offset: int = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """Zeros with the elements of ``A`` on a diagonal."""
def maketrian(A: Input, offset: int = 0, lower: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """Zeros with the elements of ``A`` in a triangle."""
def potrf(A: Input, lower: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """The Cholesky factor.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.potrf(mx.nd.array([[4, 2], [2, 5]])).asnumpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
def potri(A: Input, lower: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of ``L @ L.T``, given the lower triangular ``A = L``."""
def regular_inverse(A: Input, det: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of matrices, or zeros where the determinant ``det`` is zero."""
def slogdet(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """The sign of the determinant, and the logarithm of its absolute value."""
def sumlogdiag(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The sum of the logarithms of the diagonal elements."""
def syevd(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of symmetric matrices."""
def syrk(A: Input, transpose: bool = False, alpha: float = 1.0, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """``alpha * A @ A.T``, or with ``transpose`` ``alpha * A.T @ A``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.syrk(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
def trmm(A: Input, B: Input, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0,
         *, out: Out = None, name: str | None = None) -> NDArray:
    """``alpha * A @ B`` for a triangular matrix ``A``, or with ``rightside`` ``alpha * B @ A``."""
def trsm(A: Input, B: Input, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0,
         *, out: Out = None, name: str | None = None) -> NDArray:
    """The solution ``X`` of ``A @ X = alpha * B`` for a triangular matrix ``A``, or with ``rightside`` of …."""

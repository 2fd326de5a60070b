# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.symbol.methods import DType, Floats, Input, Ints, Operand
from opreg.symbol.symbol import Symbol

def det(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The determinant of matrices."""
def extractdiag(A: Input, offset: int = 0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """The elements of a diagonal."""
def extracttrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The elements of a triangle as a vector."""
def gelqf(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The LQ decomposition."""
def gemm(A: Input, B: Input | None = None, C: Input | None = None, transpose_a: bool = False,
         transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta * C``."""
def gemm2(A: Input, B: Input | None = None, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
          axis: int = -2, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of matrices with rows along ``axis``."""
def inverse(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of matrices."""
def makediag(A: Input, offset: int = 0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` on a diagonal."""
def maketrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` in a triangle."""
def potrf(A: Input, lower: bool = True, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The Cholesky factor."""
def potri(A: Input, lower: bool = True, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of ``L @ L.T``, given the lower triangular ``A = L``."""
def regular_inverse(A: Input, det: Input, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of matrices, or zeros where the determinant ``det`` is zero."""
def slogdet(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sign of the determinant, and the logarithm of its absolute value."""
def sumlogdiag(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of the logarithms of the diagonal elements."""
def syevd(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of symmetric matrices."""
def syrk(A: Input, transpose: bool = False, alpha: float = 1.0, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha * A @ A.T``, or with ``transpose`` ``alpha * A.T @ A``."""
def trmm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha * A @ B`` for a triangular matrix ``A``, or with ``rightside`` ``alpha * B @ A``."""
def trsm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The solution ``X`` of ``A @ X = alpha * B`` for a triangular matrix ``A``, or with ``rightside`` of …."""

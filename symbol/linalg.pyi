# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.symbol.methods import DType, Floats, Input, Ints, Operand
from opreg.symbol.symbol import Symbol

def det(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The determinant."""
def extractdiag(A: Input, offset: int = 0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """A diagonal."""
def extracttrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The elements of a triangle in a row."""
def gelqf(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Orthonormal rows ``Q`` and a lower triangular ``L``, the product of ``L`` and ``Q`` being ``A``."""
def gemm(A: Input, B: Input | None = None, C: Input | None = None, transpose_a: bool = False,
         transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta`` times ``C``."""
def gemm2(A: Input, B: Input, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
          axis: int = -2, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of matrices."""
def inverse(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse."""
def makediag(A: Input, offset: int = 0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` on a diagonal."""
def maketrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` in a triangle, as ``extracttrian`` takes them out."""
def potrf(A: Input, lower: bool = True, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The lower triangular matrix whose product with its transpose is ``A``."""
def potri(A: Input, lower: bool = True, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of the product of a lower triangular matrix and its transpose."""
def regular_inverse(A: Input, det: Input, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse, or zeros where the determinant ``det`` is zero."""
def slogdet(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sign of the determinant and the logarithm of its size."""
def sumlogdiag(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of the logarithms of the diagonal."""
def syevd(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of a symmetric matrix."""
def syrk(A: Input, transpose: bool = False, alpha: float = 1.0, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of ``A`` and its transpose."""
def trmm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of a triangular matrix ``A`` and ``B``, or of ``B`` and ``A``."""
def trsm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False, lower: bool = True,
         alpha: float = 1.0, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times ``B`` multiplied by the inverse of a triangular matrix ``A``, from the left or right."""

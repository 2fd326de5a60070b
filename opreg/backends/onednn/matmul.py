"""Matrix products by oneDNN, for use where its threads are active already; see ``shared_library``."""

from __future__ import annotations

import numpy as np

from opreg.core.addresses import address_of

from ..blas import SMALL
from . import shared_library
from .shared_library import Library

__all__ = ["SMALL", "matmul", "straight"]


def _operand(a: np.ndarray) -> tuple[bytes, int, np.ndarray]:
    """A matrix as BLAS takes it: whether it is transposed, the distance of its rows, and its array, copied if
    needed."""
    rows, columns = a.strides
    m, n = a.shape
    if a.flags.aligned:
        if columns == 4 and rows % 4 == 0 and rows >= 4 * n:
            return b"N", rows // 4, a
        if rows == 4 and columns % 4 == 0 and columns >= 4 * m:
            return b"T", columns // 4, a
    return b"N", n, np.require(a, requirements=["C", "A"])


def straight(a: np.ndarray) -> bool:
    """Whether a matrix, or each one in a stack, is read without a copy."""
    if a.ndim > 2:
        return straight(a[(0,) * (a.ndim - 2)]) and not any(step % 4 for step in a.strides)
    return _operand(a)[2] is a


def _sgemm(library: Library, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    (transpose_a, step_a, a), (transpose_b, step_b, b) = _operand(a), _operand(b)
    m, n = out.shape
    library.check("sgemm", transpose_a, transpose_b, m, n, a.shape[1], 1.0, address_of(a), step_a, address_of(b),
                  step_b, 0.0, address_of(out), n)
    shared_library.report_computation()


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``numpy.matmul``, computed by oneDNN for large matrices of float32.

    Examples
    --------
    >>> matmul(np.ones((2, 3)), np.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if (min(a.ndim, b.ndim) < 2 or a.shape[-2] * a.shape[-1] * b.shape[-1] <= SMALL or a.shape[-1] != b.shape[-2]
            or not a.dtype == b.dtype == np.float32 or shared_library.missing() is not None):
        return np.matmul(a, b, out=out)
    library = shared_library.library()
    assert isinstance(library, Library)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    if out is not None and (out.shape != shape or not out.flags.carray or out.dtype != np.float32
                            or np.may_share_memory(a, out) or np.may_share_memory(b, out)):
        return np.matmul(a, b, out=out)
    product = np.empty(shape, np.float32) if out is None else out
    if not batch:
        _sgemm(library, a, b, product)
        return product
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for index in np.ndindex(batch):
        _sgemm(library, a[index], b[index], product[index])
    return product

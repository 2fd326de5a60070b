"""Sparse storage: some rows of an array, and matrices in compressed sparse rows.

Objects of these classes are immutable, and their arrays lie on one device. On the host SciPy, if it is installed,
computes matrix products. On a GPU sums go through the operator ``_backward_take``, whose kernel adds in a fixed order:
CuPy's own ``add.reduceat`` subtracts running sums, which loses digits and spreads NaN.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from opreg.core.array_module import module_of
from opreg.core.registry import get
from opreg.core.spec import Shape
from opreg.errors import ArgumentError
from opreg.typing import Array, ArrayModule

from .context import Context, context_of
from .eager import runner_of

__all__ = ["Csr", "Rows", "Stored", "on_host", "scipy_sparse"]


INDEX = np.dtype(np.int64)
#: Dtypes whose products SciPy computes.
_PRODUCTS = (np.dtype(np.float32), np.dtype(np.float64))


@functools.cache
def scipy_sparse() -> Any:
    """The module ``scipy.sparse``, or None where SciPy is not installed."""
    try:
        import scipy.sparse  # type: ignore[import-untyped]
    except ImportError:
        return None
    return scipy.sparse


def on_host(array: Array) -> np.ndarray:
    """An array of the host with the same elements; of a device, a copy for which the host waits."""
    if isinstance(array, np.ndarray):
        return array
    return context_of(array).backend.to_numpy(array)


def _copy_to_context(array: Array, ctx: Context) -> Array:
    """An array in the memory of a context."""
    return array if context_of(array).shares(ctx) else ctx.backend.asarray(array, device=ctx.device_id)


def _runs(sorted_keys: np.ndarray) -> np.ndarray:
    """The starts of runs of equal keys."""
    starts = np.ones(len(sorted_keys), bool)
    starts[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return np.flatnonzero(starts)


def _sums(values: Array, places: Array, count: int) -> Array:
    """An array of ``count`` rows that has at each place the sum of the rows of ``values`` with this place, in their
    order."""
    shape = (count, *values.shape[1:])
    if isinstance(values, np.ndarray):
        result = np.zeros(shape, values.dtype)
        np.add.at(result, places, values)
        return result
    ctx = context_of(values)
    if not (values.size and count):
        return ctx.backend.zeros(shape, values.dtype, ctx.device_id)
    op = get("_backward_take")
    # the operator reads only the shape of the last one
    arrays = [values, places, ctx.backend.empty(shape, values.dtype, ctx.device_id)]
    return runner_of(op, op.complete({"axis": 0}), arrays, ctx)(arrays)[0]


class Rows:
    """An array of which some rows are stored; all others are zero.

    Parameters
    ----------
    elements : array
        The stored rows.
    indices : array of int64
        Their indices in the array, increasing.
    shape : tuple of int
        The shape of the array.
    """

    stype = "row_sparse"
    __array_ufunc__ = None  # NumPy leaves array + Rows to this class

    def __init__(self, elements: Array, indices: Array, shape: Shape):
        self.elements, self.indices, self.shape = elements, indices, shape

    @classmethod
    def of(cls, dense: Array) -> Rows:
        """The rows of an array that are not all zero."""
        filled = (dense != 0).reshape(dense.shape[0], math.prod(dense.shape[1:])).any(axis=1)
        indices = module_of(dense).flatnonzero(filled).astype(INDEX)
        return cls(dense[indices], indices, dense.shape)

    @classmethod
    def summed(cls, elements: Array, indices: Array, shape: Shape) -> Rows:
        """The sparse rows made from rows in any order; rows of the same index are summed in their order."""
        if not isinstance(elements, np.ndarray):
            kept, places = module_of(elements).unique(indices, return_inverse=True)
            return cls(_sums(elements, places, kept.size), kept.astype(INDEX), shape)
        order = np.argsort(indices, kind="stable")
        indices = indices[order]
        starts = _runs(indices)
        if len(starts) < len(indices):
            elements = np.add.reduceat(elements[order], starts, axis=0, dtype=elements.dtype)
        elif len(order):
            elements = elements[order]
        return cls(elements, indices[starts].astype(INDEX), shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the stored elements."""
        return self.elements.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows and their indices."""
        return self.elements.nbytes + self.indices.nbytes

    @property
    def xp(self) -> ArrayModule:
        """The array module of the stored rows."""
        return module_of(self.elements)

    def to(self, ctx: Context) -> Rows:
        """A copy in a context; this object if it is in that context already."""
        return self if context_of(self.elements).shares(ctx) else \
            Rows(_copy_to_context(self.elements, ctx), _copy_to_context(self.indices, ctx), self.shape)

    def dense(self) -> Array:
        """The dense array."""
        dense = self.xp.zeros(self.shape, dtype=self.dtype)
        dense[self.indices] = self.elements
        return dense

    def with_elements(self, elements: Array) -> Rows:
        """Sparse rows with the same indices and other elements."""
        return Rows(elements, self.indices, self.shape)

    def retain(self, indices: Array) -> Rows:
        """The rows that are among ``indices``, which may be in any order."""
        selected = self.xp.isin(self.indices, indices)
        return Rows(self.elements[selected], self.indices[selected], self.shape)

    @property
    def is_full(self) -> bool:
        """Whether all rows are stored."""
        return bool(self.indices.size == self.shape[0])

    def places(self, indices: Array) -> Array:
        """The places of rows among the stored ones, if they are stored."""
        return indices if self.is_full else self.xp.searchsorted(self.indices, indices)

    def rows_at(self, indices: Array) -> Array:
        """The rows at ``indices``; zeros for rows that are not stored."""
        xp, places, count = self.xp, self.places(indices), self.indices.size
        if self.is_full:
            return self.elements[places]
        if not count:
            return xp.zeros((*indices.shape, *self.shape[1:]), dtype=self.dtype)
        places = xp.minimum(places, count - 1)
        rows = self.elements[places]
        rows[self.indices[places] != indices] = 0
        return rows

    def joined(self, other: Rows, compute: Callable[[Array, Array], Array]) -> Rows:
        """Apply a function to the elements of two arrays, in all rows that at least one of them stores."""
        xp = self.xp
        if self.indices is other.indices or (xp is np and np.array_equal(self.indices, other.indices)):
            return self.with_elements(compute(self.elements, other.elements))
        indices = xp.unique(xp.concatenate([self.indices, other.indices]))
        return Rows(compute(self.rows_at(indices), other.rows_at(indices)), indices, self.shape)

    def __add__(self, other: Any) -> Any:
        return self.joined(other, operator.add) if isinstance(other, Rows) else self.dense() + other

    __radd__ = __add__


class Csr:
    """A matrix by rows: for each row, the stored elements and their columns.

    Parameters
    ----------
    elements : array
        The stored elements, row by row.
    indices : array of int64
        Their columns.
    indptr : array of int64
        The start of each row among them, and the end of the last one.
    shape : (int, int)
        The shape of the matrix.
    """

    stype = "csr"

    def __init__(self, elements: Array, indices: Array, indptr: Array, shape: Shape):
        self.elements, self.indices, self.indptr, self.shape = elements, indices, indptr, shape

    @classmethod
    def of(cls, dense: Array) -> Csr:
        """The elements of a matrix that are not zero."""
        if dense.ndim != 2:
            raise ArgumentError(f"csr: expected a matrix, got an array of shape {dense.shape}")
        rows, columns = module_of(dense).nonzero(dense)
        return cls.by_rows(dense[rows, columns], rows, columns, dense.shape)

    @classmethod
    def by_rows(cls, elements: Array, rows: Array, columns: Array, shape: Shape) -> Csr:
        """Make it from elements in the order of their rows."""
        xp = module_of(elements)
        indptr = xp.searchsorted(rows, xp.arange(shape[0] + 1)).astype(INDEX)
        return cls(elements, columns.astype(INDEX, copy=False), indptr, shape)

    @classmethod
    def from_elements(cls, elements: Array, rows: Array, columns: Array, shape: Shape) -> Csr:
        """The matrix made from elements in any order; elements of the same row and column are summed."""
        return cls._matrix_by_keys(Rows.summed(elements, rows.astype(INDEX) * shape[1] + columns, shape), shape)

    @classmethod
    def _matrix_by_keys(cls, rows: Rows, shape: Shape) -> Csr:
        """The matrix from stored elements whose indices count along the rows of the matrix."""
        return cls.by_rows(rows.elements, rows.indices // shape[1], rows.indices % shape[1], shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the stored elements."""
        return self.elements.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stored elements and their places."""
        return self.elements.nbytes + self.indices.nbytes + self.indptr.nbytes

    @property
    def xp(self) -> ArrayModule:
        """The array module of the stored elements."""
        return module_of(self.elements)

    def to(self, ctx: Context) -> Csr:
        """A copy in a context; this object if it is in that context already."""
        return self if context_of(self.elements).shares(ctx) else \
            Csr(_copy_to_context(self.elements, ctx), _copy_to_context(self.indices, ctx),
                _copy_to_context(self.indptr, ctx), self.shape)

    @functools.cached_property
    def rows(self) -> Array:
        """The row of each element."""
        xp = self.xp
        if xp is np:
            return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        # repeat would make the host wait for the device
        return xp.searchsorted(self.indptr, xp.arange(self.elements.size), side="right") - 1

    @property
    def _keys(self) -> Array:
        """The number of each element, counted along rows."""
        return self.rows * self.shape[1] + self.indices

    def dense(self) -> Array:
        """The dense matrix; elements of the same row and column are summed."""
        return _sums(self.elements, self._keys, math.prod(self.shape)).reshape(self.shape)

    def by_row(self) -> Rows:
        """The rows with stored elements, without a dense matrix."""
        narrow, indices = self._stored_rows()
        return Rows(narrow.dense(), indices, self.shape)

    def _stored_rows(self) -> tuple[Csr, Array]:
        """The matrix of the rows with stored elements, and the indices of these rows."""
        indices = self.xp.flatnonzero(self.xp.diff(self.indptr)).astype(INDEX)
        starts = self.xp.concatenate([self.indptr[indices], self.indptr[-1:]])
        return Csr(self.elements, self.indices, starts, (indices.size, self.shape[1])), indices

    def with_elements(self, elements: Array) -> Csr:
        """A matrix with other elements at the same positions."""
        return Csr(elements, self.indices, self.indptr, self.shape)

    def part(self, begin: int, end: int, left: int = 0, right: int | None = None) -> Csr:
        """The rows from ``begin`` to ``end``, and of these the columns from ``left`` to ``right``."""
        right = self.shape[1] if right is None else right
        start, stop = map(int, on_host(self.indptr[begin:end + 1:max(end - begin, 1)])[[0, -1]])
        elements, columns = self.elements[start:stop], self.indices[start:stop]
        if (left, right) == (0, self.shape[1]):
            return Csr(elements, columns, self.indptr[begin:end + 1] - start, (end - begin, right))
        inside = (columns >= left) & (columns < right)
        return Csr.by_rows(elements[inside], self.rows[start:stop][inside] - begin, columns[inside] - left,
                           (end - begin, right - left))

    def rows_at(self, indices: np.ndarray) -> Csr:
        """The rows at ``indices``, of a matrix on the host."""
        starts = self.indptr[indices]
        counts = self.indptr[indices + 1] - starts
        indptr = np.concatenate([np.zeros(1, INDEX), np.cumsum(counts, dtype=INDEX)])
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return Csr(self.elements[places], self.indices[places], indptr, (len(indices), self.shape[1]))

    def joined(self, other: Csr, compute: Callable[[Array, Array], Array]) -> Csr:
        """Apply a function to the elements of two matrices, in all places that at least one of them stores."""
        first, second = [Rows.summed(matrix.elements, matrix._keys, (math.prod(self.shape),))
                         for matrix in (self, other)]
        return Csr._matrix_by_keys(first.joined(second, compute), self.shape)

    def times(self, dense: Array) -> Array:
        """The product with a matrix or a vector."""
        library = scipy_sparse() if self.xp is np else None
        if library is not None and self.dtype == dense.dtype and self.dtype in _PRODUCTS:
            return library.csr_matrix((self.elements, self.indices, self.indptr), self.shape) @ dense
        factors = self.elements.reshape(-1, *[1] * (dense.ndim - 1))
        return _sums(factors * dense[self.indices], self.rows, self.shape[0])

    def times_rows(self, rows: Rows) -> Array:
        """The product with an array of stored rows, of which it reads those that it needs."""
        if rows.is_full:
            return self.times(rows.elements)
        columns, places = self.xp.unique(self.indices, return_inverse=True)
        narrow = Csr(self.elements, places.astype(INDEX, copy=False), self.indptr, (self.shape[0], columns.size))
        return narrow.times(rows.rows_at(columns))

    def transposed(self) -> Csr:
        """The transposed matrix."""
        xp = self.xp
        library = scipy_sparse() if xp is np else None
        if library is not None and self.dtype in _PRODUCTS:
            result = library.csr_matrix((self.elements, self.indices, self.indptr), self.shape).tocsc()
            return Csr(result.data, result.indices.astype(INDEX, copy=False), result.indptr.astype(INDEX, copy=False),
                       self.shape[::-1])
        order = xp.argsort(self.indices, kind="stable")
        return Csr.by_rows(self.elements[order], self.indices[order], self.rows[order], self.shape[::-1])

    def transposed_times(self, dense: Array) -> Rows:
        """The product of the transposed matrix with a matrix or a vector. It stores a row for each column that stores
        elements."""
        narrow, indices = self.transposed()._stored_rows()
        return Rows(narrow.times(dense), indices, (self.shape[1], *dense.shape[1:]))


#: The storage of a sparse array.
Stored: TypeAlias = Rows | Csr

"""Sparse storage on the host: some rows of an array, and matrices in compressed sparse rows.

Objects of these classes are immutable. SciPy, if it is installed, computes matrix products.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from opreg.core.spec import Shape
from opreg.errors import ArgumentError

__all__ = ["Csr", "Rows", "Stored", "scipy_sparse"]

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


def _runs(sorted_keys: np.ndarray) -> np.ndarray:
    """The starts of runs of equal keys."""
    starts = np.ones(len(sorted_keys), bool)
    starts[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return np.flatnonzero(starts)


class Rows:
    """An array of which some rows are stored; all others are zero.

    Parameters
    ----------
    numbers : numpy.ndarray
        The stored rows.
    indices : numpy.ndarray of int64
        Their indices in the array, increasing.
    shape : tuple of int
        The shape of the array.
    """

    stype = "row_sparse"
    __array_ufunc__ = None  # NumPy leaves array + Rows to this class

    def __init__(self, numbers: np.ndarray, indices: np.ndarray, shape: Shape):
        self.numbers, self.indices, self.shape = numbers, indices, shape

    @classmethod
    def of(cls, dense: np.ndarray) -> Rows:
        """The rows of an array that are not all zero."""
        indices = np.flatnonzero((dense != 0).reshape(len(dense), -1).any(axis=1)).astype(INDEX)
        return cls(dense[indices], indices, dense.shape)

    @classmethod
    def summed(cls, numbers: np.ndarray, indices: np.ndarray, shape: Shape) -> Rows:
        """Make it from rows in any order. Rows of the same index are summed in their order."""
        order = np.argsort(indices, kind="stable")
        indices = indices[order]
        starts = _runs(indices)
        if len(starts) < len(indices):
            numbers = np.add.reduceat(numbers[order], starts, axis=0, dtype=numbers.dtype)
        elif len(order):
            numbers = numbers[order]
        return cls(numbers, indices[starts].astype(INDEX), shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the numbers."""
        return self.numbers.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows and their indices."""
        return self.numbers.nbytes + self.indices.nbytes

    def dense(self) -> np.ndarray:
        """The dense array."""
        dense = np.zeros(self.shape, self.dtype)
        dense[self.indices] = self.numbers
        return dense

    def like(self, numbers: np.ndarray) -> Rows:
        """The same rows with other elements."""
        return Rows(numbers, self.indices, self.shape)

    def retained(self, indices: np.ndarray) -> Rows:
        """The rows that are among ``indices``, which may be in any order."""
        selected = np.isin(self.indices, indices)
        return Rows(self.numbers[selected], self.indices[selected], self.shape)

    @property
    def is_full(self) -> bool:
        """Whether all rows are stored."""
        return len(self.indices) == self.shape[0]

    def places(self, indices: np.ndarray) -> np.ndarray:
        """The places of rows among the stored ones, if they are stored."""
        return indices if self.is_full else np.searchsorted(self.indices, indices)

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        """The rows at ``indices``; zeros for rows that are not stored."""
        places = self.places(indices)
        if self.is_full:
            return self.numbers[places]
        stored = places < len(self.indices)
        stored[stored] = self.indices[places[stored]] == indices[stored]
        rows = np.zeros((*indices.shape, *self.shape[1:]), self.dtype)
        rows[stored] = self.numbers[places[stored]]
        return rows

    def joined(self, other: Rows, compute: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Rows:
        """Apply a function to the elements of two arrays, in all rows that at least one of them stores."""
        if np.array_equal(self.indices, other.indices):
            return self.like(compute(self.numbers, other.numbers))
        indices = np.union1d(self.indices, other.indices)
        return Rows(compute(self.rows_at(indices), other.rows_at(indices)), indices, self.shape)

    def __add__(self, other: Any) -> Any:
        return self.joined(other, np.add) if isinstance(other, Rows) else self.dense() + other

    __radd__ = __add__


class Csr:
    """A matrix by rows: for each row, the stored elements and their columns.

    Parameters
    ----------
    numbers : numpy.ndarray
        The stored elements, row by row.
    indices : numpy.ndarray of int64
        Their columns.
    indptr : numpy.ndarray of int64
        Where each row begins among them, and where the last one ends.
    shape : (int, int)
        That of the matrix.
    """

    stype = "csr"

    def __init__(self, numbers: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Shape):
        self.numbers, self.indices, self.indptr, self.shape = numbers, indices, indptr, shape

    @classmethod
    def of(cls, dense: np.ndarray) -> Csr:
        """The elements of a matrix that are not zero."""
        if dense.ndim != 2:
            raise ArgumentError(f"csr: expected a matrix, got an array of shape {dense.shape}")
        rows, columns = np.nonzero(dense)
        return cls.by_rows(dense[rows, columns], rows, columns, dense.shape)

    @classmethod
    def by_rows(cls, numbers: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: Shape) -> Csr:
        """Make it from elements in the order of their rows."""
        indptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(INDEX)
        return cls(numbers, columns.astype(INDEX, copy=False), indptr, shape)

    @classmethod
    def placed(cls, numbers: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: Shape) -> Csr:
        """Make it from elements in any order. Elements of the same row and column are summed."""
        keys = rows.astype(INDEX) * shape[1] + columns
        summed = Rows.summed(numbers, keys, shape)
        return cls.by_rows(summed.numbers, summed.indices // shape[1], summed.indices % shape[1], shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the numbers."""
        return self.numbers.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stored elements and their places."""
        return self.numbers.nbytes + self.indices.nbytes + self.indptr.nbytes

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """The row of each element."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def dense(self) -> np.ndarray:
        """The dense matrix; elements of the same row and column are summed."""
        dense = np.zeros(self.shape, self.dtype)
        np.add.at(dense, (self.rows, self.indices), self.numbers)
        return dense

    def like(self, numbers: np.ndarray) -> Csr:
        """The same places with other elements."""
        return Csr(numbers, self.indices, self.indptr, self.shape)

    def part(self, begin: int, end: int, left: int = 0, right: int | None = None) -> Csr:
        """The rows from ``begin`` to ``end``, and of these the columns from ``left`` to ``right``."""
        right = self.shape[1] if right is None else right
        start, stop = self.indptr[begin], self.indptr[end]
        numbers, columns = self.numbers[start:stop], self.indices[start:stop]
        if (left, right) == (0, self.shape[1]):
            return Csr(numbers, columns, self.indptr[begin:end + 1] - start, (end - begin, right))
        inside = (columns >= left) & (columns < right)
        return Csr.by_rows(numbers[inside], self.rows[start:stop][inside] - begin, columns[inside] - left,
                           (end - begin, right - left))

    def joined(self, other: Csr, compute: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Csr:
        """Apply a function to the elements of two matrices, in all places that at least one of them stores."""
        first, second = (matrix.rows * self.shape[1] + matrix.indices for matrix in (self, other))
        keys = np.union1d(first, second)
        left, right = (Rows(np.zeros(len(keys), matrix.dtype), keys, keys.shape) for matrix in (self, other))
        np.add.at(left.numbers, np.searchsorted(keys, first), self.numbers)
        np.add.at(right.numbers, np.searchsorted(keys, second), other.numbers)
        return Csr.by_rows(compute(left.numbers, right.numbers), keys // self.shape[1], keys % self.shape[1],
                           self.shape)

    def times(self, dense: np.ndarray) -> np.ndarray:
        """The product with a matrix or a vector."""
        library = scipy_sparse()
        if library is not None and self.dtype == dense.dtype and self.dtype in _PRODUCTS:
            return library.csr_matrix((self.numbers, self.indices, self.indptr), self.shape) @ dense
        result = np.zeros((self.shape[0], *dense.shape[1:]), np.result_type(self.numbers, dense))
        factors = self.numbers.reshape(-1, *[1] * (dense.ndim - 1))
        np.add.at(result, self.rows, factors * dense[self.indices])
        return result

    def times_rows(self, rows: Rows) -> np.ndarray:
        """The product with an array of stored rows, of which it reads those that it needs."""
        if rows.is_full:
            return self.times(rows.numbers)
        columns, places = np.unique(self.indices, return_inverse=True)
        narrow = Csr(self.numbers, places.astype(INDEX, copy=False), self.indptr, (self.shape[0], len(columns)))
        return narrow.times(rows.rows_at(columns))

    def turned(self) -> Csr:
        """The transposed matrix."""
        library = scipy_sparse()
        if library is not None and self.dtype in _PRODUCTS:
            result = library.csr_matrix((self.numbers, self.indices, self.indptr), self.shape).tocsc()
            return Csr(result.data, result.indices.astype(INDEX, copy=False), result.indptr.astype(INDEX, copy=False),
                       self.shape[::-1])
        order = np.argsort(self.indices, kind="stable")
        return Csr.by_rows(self.numbers[order], self.indices[order], self.rows[order], self.shape[::-1])

    def turned_times(self, dense: np.ndarray) -> Rows:
        """The product of the transposed matrix with a matrix or a vector. It stores a row for each column that stores
        elements."""
        turned = self.turned()
        indices = np.flatnonzero(np.diff(turned.indptr)).astype(INDEX)
        starts = turned.indptr[np.append(indices, self.shape[1])]
        narrow = Csr(turned.numbers, turned.indices, starts, (len(indices), self.shape[0]))
        return Rows(narrow.times(dense), indices, (self.shape[1], *dense.shape[1:]))


#: The storage of a sparse array.
Stored: TypeAlias = Rows | Csr

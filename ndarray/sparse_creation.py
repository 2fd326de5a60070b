"""Sparse arrays made from their parts, from dense ones, from matrices of SciPy, and of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core.spec import as_dtype, show
from opreg.errors import ArgumentError, ShapeError
from opreg.typing import DTypeLike

from .context import Context, cpu, current_context
from .ndarray import CSR_MATRIX, NDArray
from .sparse_arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, check_indices, empty_of, stored_as
from .sparse_numbers import INDEX, Csr, Rows

__all__ = ["csr_matrix", "row_sparse_array", "sparse_array"]


def _stored_values(source: Any, dtype: DTypeLike, what: str) -> np.ndarray:
    """Values as a NumPy array; without a given dtype, arrays keep theirs and other values become float32."""
    host = source.asnumpy() if isinstance(source, NDArray) else source
    known = getattr(source, "dtype", None) if isinstance(source, (np.ndarray, NDArray)) else None
    try:
        return np.array(host, as_dtype(dtype if dtype is not None else "float32" if known is None else known))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what}: expected numbers, got {type(source).__name__}: {error}") from error


def _places(source: Any, what: str) -> np.ndarray:
    host = np.asarray(source.asnumpy() if isinstance(source, NDArray) else source)
    if host.ndim != 1:
        raise ArgumentError(f"{what}: expected indices in one dimension, got shape {host.shape}")
    return host.astype(INDEX)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(length, (int, np.integer)) for length in value)


@CSR_MATRIX.provide
def csr_matrix(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: DTypeLike = None
               ) -> CSRNDArray:
    """A matrix in the storage type ``csr``.

    Parameters
    ----------
    arg1 : array, tuple or SciPy matrix
        A matrix; ``(data, indices, indptr)``; ``(data, (row, col))``, where elements of the same place are summed; or
        ``(M, N)`` for a matrix of zeros.
    shape : (int, int), optional
        The shape, if ``arg1`` does not determine it.
    ctx : Context, optional
        The device, by default the current context.
    dtype : dtype, optional
        The dtype; by default that of an array, or else float32.

    Raises
    ------
    ArgumentError, ShapeError
        If the parts do not fit each other.

    Examples
    --------
    >>> csr_matrix(([5, 7], ([1, 0], [2, 1])), shape=(2, 3)).asnumpy().tolist()
    [[0.0, 7.0, 0.0], [0.0, 0.0, 5.0]]
    """
    ctx, shape = current_context() if ctx is None else Context(ctx), _dims(shape)
    if shape is not None and len(shape) != 2:
        raise ShapeError(f"csr_matrix: expected the shape of a matrix, got {show(shape)}")
    if _is_shape(arg1) and len(arg1) == 2:
        return CSRNDArray(_stored_zeros("csr", arg1, shape, dtype), ctx)
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
            elements = _stored_values(arg1[0], dtype, "csr_matrix: data")
            rows, columns = (_places(index, "csr_matrix") for index in arg1[1])
            if not len(elements) == len(rows) == len(columns):
                raise ArgumentError(f"csr_matrix: {len(elements)} elements, but {len(rows)} rows and {len(columns)} "
                                    "columns for them")
            if shape is None:
                if not len(rows):
                    raise ArgumentError("csr_matrix: give the shape of a matrix without elements")
                shape = (int(rows.max()) + 1, int(columns.max()) + 1)
            if len(rows) and (min(rows.min(), columns.min()) < 0 or rows.max() >= shape[0]
                              or columns.max() >= shape[1]):
                raise ArgumentError(f"csr_matrix: an index lies outside of a matrix of shape {show(shape)}")
            return CSRNDArray(Csr.from_elements(elements, rows, columns, shape), ctx)
        if len(arg1) != 3:
            raise ArgumentError("csr_matrix: expected (data, indices, indptr), (data, (row, col)) or (M, N), got a "
                                f"tuple of {len(arg1)}")
        elements = _stored_values(arg1[0], dtype, "csr_matrix: data")
        indices, indptr = _places(arg1[1], "csr_matrix: indices"), _places(arg1[2], "csr_matrix: indptr")
        if shape is None:
            if not len(indices):
                raise ArgumentError("csr_matrix: give the shape of a matrix without elements")
            shape = (len(indptr) - 1, int(indices.max()) + 1)
        stored = Csr(elements, indices, indptr, shape)
        check_indices(stored, False)
        return CSRNDArray(stored, ctx)
    if isinstance(arg1, CSRNDArray):
        return CSRNDArray(_copy_elements(arg1, shape, dtype), ctx)
    if hasattr(arg1, "tocsr"):
        matrix = arg1.tocsr().sorted_indices()
        matrix.sum_duplicates()
        _check_agreement(matrix.shape, shape)
        return csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape, ctx, dtype or matrix.dtype)
    if isinstance(arg1, RowSparseNDArray):
        raise ArgumentError("csr_matrix: got a RowSparseNDArray, which tostype('csr') converts")
    return CSRNDArray(_stored_of("csr", arg1, shape, dtype, "csr_matrix"), ctx)


def _dims(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if shape is None else tuple(map(int, shape))


def _stored_zeros(stype: str, shape: Sequence[int], expected: tuple[int, ...] | None, dtype: DTypeLike) -> Any:
    """The `Stored` of an array of zeros; the parameter ``shape``, if given, must agree."""
    return empty_of(stype, _check_agreement(tuple(map(int, shape)), expected), as_dtype(dtype or "float32"), cpu())


def _copy_elements(array: BaseSparseNDArray, shape: tuple[int, ...] | None, dtype: DTypeLike) -> Any:
    """A copy of the `Stored` of an array, in another dtype if one is given."""
    _check_agreement(array.shape, shape)
    stored = array._stored
    return stored.with_elements(array._ctx.run(stored.elements.astype,
                                               stored.dtype if dtype is None else as_dtype(dtype)))


def _stored_of(stype: str, source: Any, shape: tuple[int, ...] | None, dtype: DTypeLike, what: str) -> Any:
    """The `Stored` of dense values; those of a device are found there."""
    dense = source if isinstance(source, NDArray) else NDArray(_stored_values(source, dtype, what), cpu())
    _check_agreement(dense.shape, shape)
    return stored_as(dense if dtype is None else dense.astype(dtype, copy=False), stype)


def _check_agreement(shape: tuple[int, ...], expected: tuple[int, ...] | None) -> tuple[int, ...]:
    if expected is not None and shape != expected:
        raise ShapeError(f"shape: the values have {show(shape)}, got {show(expected)}")
    return shape


def row_sparse_array(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None,
                     dtype: DTypeLike = None) -> RowSparseNDArray:
    """An array in the storage type ``row_sparse``.

    Parameters
    ----------
    arg1 : array or tuple
        An array; ``(data, indices)``, rows and their indices in any order; or a shape for an array of zeros.
    shape : tuple of int, optional
        The shape, if ``arg1`` does not determine it.
    ctx : Context, optional
        The device, by default the current context.
    dtype : dtype, optional
        The dtype; by default that of an array, or else float32.

    Raises
    ------
    ArgumentError, ShapeError
        If the parts do not fit each other.

    Examples
    --------
    >>> row_sparse_array(([[7, 8]], [2]), shape=(4, 2)).indices.asnumpy().tolist()
    [2]
    """
    ctx, shape = current_context() if ctx is None else Context(ctx), _dims(shape)
    if _is_shape(arg1) and len(arg1) > 1:
        return RowSparseNDArray(_stored_zeros("row_sparse", arg1, shape, dtype), ctx)
    if isinstance(arg1, tuple):
        if len(arg1) != 2:
            raise ArgumentError(f"row_sparse_array: expected (data, indices) or a shape, got a tuple of {len(arg1)}")
        elements = _stored_values(arg1[0], dtype, "row_sparse_array: data")
        indices = _places(arg1[1], "row_sparse_array: indices")
        if shape is None:
            if not len(indices):
                raise ArgumentError("row_sparse_array: give the shape of an array without rows")
            shape = (int(indices.max()) + 1, *elements.shape[1:])
        if not len(indices):
            elements = elements.reshape(0, *shape[1:])
        if len(elements) != len(indices) or elements.shape[1:] != shape[1:]:
            raise ShapeError(f"row_sparse_array: {len(indices)} indices and data of shape {show(elements.shape)} for "
                             f"an array of shape {show(shape)}")
        order = np.argsort(indices, kind="stable")
        stored = Rows(elements[order], indices[order], shape)
        check_indices(stored, True)
        return RowSparseNDArray(stored, ctx)
    if isinstance(arg1, RowSparseNDArray):
        return RowSparseNDArray(_copy_elements(arg1, shape, dtype), ctx)
    if isinstance(arg1, CSRNDArray):
        raise ArgumentError("row_sparse_array: got a CSRNDArray, which tostype('row_sparse') converts")
    return RowSparseNDArray(_stored_of("row_sparse", arg1, shape, dtype, "row_sparse_array"), ctx)


def sparse_array(source_array: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """A copy of a sparse array, or of a matrix of SciPy.

    Raises
    ------
    ArgumentError
        For a dense array, which ``nd.array`` copies.
    """
    if isinstance(source_array, RowSparseNDArray):
        return row_sparse_array(source_array, None, ctx, dtype)
    if isinstance(source_array, CSRNDArray) or hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, None, ctx, dtype)
    raise ArgumentError(f"nd.sparse.array: expected a sparse array, got {type(source_array).__name__}. "
                        "nd.array makes a dense one")

"""Records of files: arrays with their devices and sparse storage, as readers and writers of all formats exchange them.

This module deals with NumPy arrays and names of devices, and not with NDArrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.errors import ArgumentError, DTypeError, FileFormatError, list_names

__all__ = ["CPU", "DENSE_FLOOR", "DENSE_RATIO", "Device", "MAX_NDIM", "Pairs", "Record", "Shape", "Sparse", "bytes_of",
           "check_names", "decode", "element_indices", "whole_arrays"]

Shape = tuple[int, ...]
Device = tuple[str, int]
Pairs = Sequence[Any]  # records, or pairs of an array and a device
CPU: Device = ("cpu", 0)
MAX_NDIM = 64  # NumPy's own limit
# Limits of the memory for a file, in bytes and as a multiple of its length: sparse records are made dense, and tensors
# may share a storage.
DENSE_FLOOR, DENSE_RATIO = 16 << 20, 256


class Sparse(NamedTuple):
    """The storage of a sparse record.

    Attributes
    ----------
    stype : str
        ``row_sparse`` or ``csr``.
    indices : tuple of numpy.ndarray
        Row indices; or row pointers and column indices.
    shape : tuple of int
        The shape of the whole array.
    """

    stype: str
    indices: tuple[np.ndarray, ...]
    shape: Shape


def element_indices(sparse: Sparse) -> tuple[np.ndarray, ...]:
    """The indices of the stored elements in the whole array."""
    if sparse.stype == "row_sparse":
        return sparse.indices
    starts, columns = sparse.indices
    return np.repeat(np.arange(sparse.shape[0]), np.diff(starts)), columns


class Record(NamedTuple):
    """One array of a file.

    Attributes
    ----------
    array : numpy.ndarray or None
        The elements; None for a record that means "no array".
    device : tuple of str and int
        The device of the array when it was saved: ``("cpu", 0)``, ``("gpu", 1)``, ``("cpu_pinned", 0)``,
        ``("cpu_shared", 0)``.
    sparse : Sparse or None
        The storage of a sparse array, of which ``array`` has the stored elements; None for a dense one.
    """

    array: np.ndarray | None
    device: Device = CPU
    sparse: Sparse | None = None

    def dense(self) -> np.ndarray | None:
        """The whole array, with zeros where nothing is stored.

        Raises
        ------
        FileFormatError
            If the whole array is far larger than its stored elements.
        """
        if self.array is None or self.sparse is None:
            return self.array
        nbytes = math.prod(self.sparse.shape) * self.array.itemsize
        most = DENSE_FLOOR + DENSE_RATIO * (self.array.nbytes + sum(part.nbytes for part in self.sparse.indices))
        if nbytes > most:
            raise FileFormatError(f"a {self.sparse.stype} array of shape {self.sparse.shape} takes {nbytes} bytes as a "
                                  f"dense array, expected at most {most} for its stored elements")
        dense = np.zeros(self.sparse.shape, self.array.dtype)
        dense[element_indices(self.sparse)] = self.array
        return dense


def decode(values: np.ndarray, name: str) -> np.ndarray:
    """Stored elements converted to the dtype of a name, bool or bfloat16 for instance.

    Raises
    ------
    ImportError
        For bfloat16 without ml_dtypes.
    """
    if name == "bool":
        return values.astype(np.bool_)
    if name == "bfloat16":
        import ml_dtypes

        return values.view(ml_dtypes.bfloat16)
    return values


def whole_arrays(records: Pairs, names: Sequence[str], kind: str, dtypes: Collection[str]) -> dict[str, np.ndarray]:
    """The arrays of records by name, for a format in which each needs a name, elements, and one of the dtypes.

    Raises
    ------
    ArgumentError, DTypeError
        The errors of `save`; ``kind`` is the name of the format in the error.
    """
    labels = check_names(len(records), names)
    if records and not names:
        raise ArgumentError(f"arrays in a {kind} file have names: save a dict")
    arrays: dict[str, np.ndarray] = {}
    for (array, *_), label, name in zip(records, labels, names, strict=True):
        if array is None:
            raise ArgumentError(f"{label}: a {kind} file cannot hold None in place of an array; a .params file can")
        if array.dtype.name not in dtypes:
            raise DTypeError(f"{label}: a {kind} file has no dtype {array.dtype}, but {list_names([*dtypes], 20)}")
        arrays[name] = array
    return arrays


def check_names(count: int, names: Sequence[str]) -> list[str]:
    """Check the names of arrays; returns a label for each, for errors."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"names must be a sequence of str, not {names!r}")
    if names and len(names) != count:
        raise ArgumentError(f"expected {count} names or none for {count} arrays, got {len(names)}")
    if len(set(names)) != len(names):
        double = next(name for i, name in enumerate(names) if name in names[:i])
        raise ArgumentError(f"expected a different name for each array, got {double!r} more than once")
    for name in names:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ArgumentError(f"expected names that UTF-8 can encode, got {name!r}") from error
    return [f"array {i} ({names[i]!r})" if names else f"array {i}" for i in range(count)]


def bytes_of(array: np.ndarray, stored: str) -> memoryview:
    """The bytes of an array in C order, in a stored dtype; a view if no conversion is needed."""
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    array = array if stored == "u1" else array.astype(stored, copy=False)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

"""Iterators over values in text files, in the CSV or LibSVM format."""

from __future__ import annotations

import io
import math
import os
import warnings
from array import array as numbers
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray, array
from opreg.ndarray.sparse_arrays import sparse_array
from opreg.ndarray.sparse_numbers import INDEX, Csr

from ..core.array_module import backend
from ..core.files import open_to_read
from ..core.spec import Shape, as_dtype, is_floating, is_numpy_float
from ..errors import ArgumentError, FileFormatError, ShapeError, note
from ..typing import DTypeLike
from .batches import SingleArrayIter, leave, part

__all__ = ["CSVIter", "LibSVMIter"]

_IDLE = ("ctx", "prefetch_buffer")


def _shape_of_row(path: str | os.PathLike, shape: object) -> Shape:
    """The shape of a row as a tuple.

    Raises
    ------
    ShapeError
        If the shape is invalid.
    """
    dims = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if not all(isinstance(dim, (int, np.integer)) and dim >= 1 for dim in dims):
        raise ShapeError(f"{path}: expected the shape of a row, of positive integers, got {dims}")
    return tuple(map(int, dims))


def _zeros(path: str | os.PathLike, count: int, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array of zeros with ``count`` rows, or an error that states its size."""
    try:
        rows: np.ndarray = backend("cpu").zeros((count, *shape), dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        note(error, f"for rows of shape {shape} of {path}")
        raise
    return rows


def _converter(dtype: np.dtype) -> Callable[[bytes | str], Any]:
    """A function that converts a word to a number; for an integer dtype it refuses values out of range."""
    if is_floating(dtype):
        return float
    low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)

    def integer(word: bytes | str) -> int:
        try:
            number = int(word)
        except ValueError:
            number = _whole_number(float(word))
        if not low <= number <= high:
            raise ValueError(f"{number} is not a value of {dtype}")
        return number

    return integer


def _whole_number(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number} is not an integer")
    return int(number)


#: The rows of a file: dense, or a CSR matrix.
Rows: TypeAlias = np.ndarray | NDArray


def _as_ndarray(rows: Rows) -> NDArray:
    return rows if isinstance(rows, NDArray) else array(rows, dtype=rows.dtype)


class _RowsOfFiles(SingleArrayIter):
    """Iterates over batches of rows, one array of data and one of labels; an epoch starts after the rows that filled
    the last batch of the previous one."""

    def __init__(self, data: Rows, label: Rows, batch_size: int, round_batch: bool, data_name: str, label_name: str):
        if isinstance(label, np.ndarray) and label.shape[1:] == (1,):
            label = label.reshape(-1)
        self._round, self._first = round_batch, 0
        super().__init__(_as_ndarray(data), _as_ndarray(label), batch_size, False, "pad", data_name, label_name)

    def hard_reset(self) -> None:
        self._rows = []
        self._plan()

    def _plan(self) -> None:
        filled = self._round and self._rows and self.cursor >= len(self._rows) - 1
        self._first = self._pad % self.num_data if filled else 0
        order, size = self.idx[self._first:], self.batch_size
        self._rows = [order[i:i + size] for i in range(0, len(order), size)]
        last = self._rows[-1]
        self._pad = size - len(last)
        again = self._round or len(self._rows) == 1
        self._rows[-1] = np.concatenate([last, np.resize(self.idx, self._pad) if again else self._rows[-2][len(last):]])
        self.cursor = -1


class CSVIter(_RowsOfFiles):
    """Iterates over batches of rows of CSV files.

    Parameters
    ----------
    data_csv, label_csv : str
        File names; without a label file the labels are zeros. Files are read once, when the iterator is made.
    data_shape, label_shape : tuple of int
        Shape of a row.
    round_batch : bool
        Whether the last batch is filled with the first rows, after which the next epoch starts; else its remaining rows
        are those of the previous batch.
    data_name, label_name : str
        Names of inputs and labels.
    dtype : dtype
        Dtype of both; an integer dtype refuses values out of range and fractions.
    num_parts, part_index : int
        Number of parts of the rows, and the index of the part to read.
    prefetch_buffer, ctx
        Ignored: they concern MXNet's threads.

    Raises
    ------
    FileFormatError
        If a file does not consist of rows of equal length.
    ShapeError
        If the number of elements in a row does not match the shape.
    """

    def __init__(self, data_csv: str, data_shape: Sequence[int], label_csv: str | None = None,
                 label_shape: Sequence[int] = (1,), batch_size: int = 1, round_batch: bool = True,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: DTypeLike = "float32",
                 num_parts: int = 1, part_index: int = 0, **keywords: Any):
        leave("CSVIter", [name for name in keywords if name not in _IDLE], ("round_batch", "batch_size", "dtype"))
        kind = as_dtype(dtype)
        data = _read_csv(data_csv, data_shape, kind)
        if label_csv is None:
            name = f"labels of {data_csv}"
            label = _zeros(name, len(data), _shape_of_row(name, label_shape), kind)
        else:
            label = _read_csv(label_csv, label_shape, kind)
        rows = part("CSVIter", len(data), num_parts, part_index)
        data, label = data[rows], label[rows]
        super().__init__(data, label, batch_size, round_batch, data_name, label_name)


def _read_csv(path: str | os.PathLike, shape: object, dtype: np.dtype) -> np.ndarray:
    """The rows of a CSV file."""
    shape = _shape_of_row(path, shape)
    with open_to_read(path) as file:
        if not file.read(1):
            raise FileFormatError(f"{path}: expected rows of numbers, the file is empty")
        try:
            rows = _parse_values(file, dtype)
        except (ValueError, OverflowError, DeprecationWarning) as error:
            raise FileFormatError(f"{path}: expected rows of numbers, separated by commas: {_short(error)}") from None
    if not rows.size:
        raise FileFormatError(f"{path}: expected rows of numbers, there are none")
    if rows.shape[1] != math.prod(shape):
        raise ShapeError(f"{path}: a row has {rows.shape[1]} numbers, expected those of shape {shape}")
    return rows.reshape(-1, *shape)


def _parse_values(file: BinaryIO, dtype: np.dtype) -> np.ndarray:
    """The values of a file, one row per line."""
    def parsed(kind: Any, converter: Callable[[str], Any] | None = None) -> np.ndarray:
        file.seek(0)
        text = io.TextIOWrapper(file, "utf-8-sig")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # NumPy warns of files without a value
                # NumPy warns of integers that were floating-point values
                warnings.simplefilter("error", DeprecationWarning)
                return np.loadtxt(text, delimiter=",", dtype=kind, ndmin=2, converters=converter)
        finally:
            text.detach()

    if is_floating(dtype):
        with np.errstate(over="ignore"):  # values beyond the largest become infinite, as in floating-point arithmetic
            return parsed(dtype if is_numpy_float(dtype) else np.float32).astype(dtype, copy=False)
    try:
        if dtype != np.bool_:
            return parsed(dtype)
    except (ValueError, DeprecationWarning):
        pass  # integers written as 2.0 need a converter per word
    return parsed(dtype, _converter(dtype))


def _short(error: Exception) -> str:
    text = str(error)
    return text if len(text) <= 200 else f"{text[:200]} ..."


class LibSVMIter(_RowsOfFiles):
    """Iterates over batches of rows of LibSVM files, whose lines list the nonzero columns: ``label column:number
    column:number``.

    Columns count from zero. Data are CSR matrices, and so are labels from a separate file.

    Parameters
    ----------
    data_libsvm, label_libsvm : str
        File names. Labels are the rows of the label file, or without one the first words of the data's lines. Files are
        read once, when the iterator is made.
    data_shape, label_shape : tuple of int
        Shape of a row: the number of columns.
    num_parts, part_index : int
        Number of parts of the file, of equal size in bytes, and the index of the part to read. A row belongs to the
        part in which it begins.
    round_batch : bool
        Must be True: the last batch is filled with the first rows, after which the next epoch starts.
    data_name, label_name : str
        Names of inputs and labels.
    dtype : dtype
        Dtype of both; an integer dtype refuses values out of range and fractions.
    prefetch_buffer, ctx
        Ignored: they concern MXNet's threads.

    Raises
    ------
    FileFormatError
        If a line has another form, or a column twice.
    ShapeError
        If a shape is no number of columns, or if the two files differ in their number of rows.
    """

    def __init__(self, data_libsvm: str | os.PathLike, data_shape: Sequence[int],
                 label_libsvm: str | os.PathLike | None = None, label_shape: Sequence[int] = (1,), batch_size: int = 1,
                 num_parts: int = 1, part_index: int = 0, round_batch: bool = True, data_name: str = "data",
                 label_name: str = "softmax_label", dtype: DTypeLike = "float32", **keywords: Any):
        leave("LibSVMIter", [name for name in keywords if name not in _IDLE], ("round_batch", "batch_size", "dtype"))
        if not round_batch:
            raise ArgumentError("LibSVMIter: round_batch has to be True")
        if not 0 <= part_index < num_parts:
            raise ArgumentError(f"LibSVMIter: part_index={part_index} of num_parts={num_parts}: expected an integer "
                                "from 0 on that is less than the number of parts")
        dtype = as_dtype(dtype)
        label: Rows
        data, label = _columns(data_libsvm, data_shape, dtype, part_index, num_parts)
        if label_libsvm is not None:
            label, _ = _columns(label_libsvm, label_shape, dtype, part_index, num_parts)
            if label.shape[0] != data.shape[0]:
                raise ShapeError(f"{data_libsvm} has {data.shape[0]} rows, {label_libsvm} has {label.shape[0]}")
        super().__init__(data, label, batch_size, True, data_name, label_name)


def _columns(path: str | os.PathLike, shape: object, dtype: np.dtype, part: int, parts: int
             ) -> tuple[NDArray, np.ndarray]:
    """The rows of a part of a file as a CSR matrix, and their labels."""
    shape = _shape_of_row(path, shape)
    if len(shape) != 1 or shape[0] > np.iinfo(INDEX).max:
        raise ShapeError(f"{path}: expected the number of columns as the shape of a row, an int64, got {shape}")
    convert = _converter(dtype)
    code = "d" if is_floating(dtype) else "Q" if dtype.kind == "u" else "q"
    labels, values, columns, ends = numbers(code), numbers(code), numbers("q"), numbers("q")
    with open_to_read(path) as file:
        text = file.read()
    size, place = -(-len(text) // parts), 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        in_part, place = part * size <= place < (part + 1) * size, place + len(line)
        words = line.split()
        if not in_part or not words:
            continue
        indices = set()
        try:
            labels.append(convert(words[0]))
            for word in words[1:]:
                column, value = word.split(b":")
                index = int(column)
                if not 0 <= index < shape[0]:
                    raise ValueError(f"there is no column {index} of {shape[0]}")
                if index in indices:
                    raise ValueError(f"column {index} occurs twice")
                indices.add(index)
                columns.append(index)
                values.append(convert(value))
        except (ValueError, OverflowError) as error:
            raise FileFormatError(f"{path}: line {number}: expected a label and pairs column:value, got "
                                  f"{line[:50]!r}: {_short(error)}") from None
        ends.append(len(columns))
    if not labels:
        raise FileFormatError(f"{path}: there are no rows in part {part} of {parts}")
    indptr = np.array([0, *ends], INDEX)
    stored_columns = np.array(columns, INDEX)
    # orders by row, and in each row by column
    order = np.lexsort((stored_columns, np.repeat(np.arange(len(labels)), np.diff(indptr))))
    with np.errstate(over="ignore"):
        stored = Csr(np.array(values).astype(dtype)[order], stored_columns[order], indptr, (len(labels), shape[0]))
        return sparse_array(stored, cpu()), np.array(labels).astype(dtype)

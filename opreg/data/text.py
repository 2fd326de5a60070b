"""Iterators over numbers in text files: separated by commas, or by their columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import array

from ..core.files import reading
from ..core.spec import as_dtype
from ..errors import ArgumentError, FileFormatError, ShapeError
from ..typing import DTypeLike
from .batches import SingleArrayIter, leave, part

__all__ = ["CSVIter", "LibSVMIter"]

_IDLE = ("ctx", "prefetch_buffer")


class _RowsOfFiles(SingleArrayIter):
    """Batches of rows, one array of data and one of labels; a round begins behind what filled up the one before."""

    def __init__(self, data: np.ndarray, label: np.ndarray, batch_size: int, round_batch: bool, data_name: str,
                 label_name: str):
        if label.shape[1:] == (1,):
            label = label.reshape(-1)
        self._round, self._first = round_batch, 0
        super().__init__(array(data, dtype=data.dtype), array(label, dtype=label.dtype), batch_size, False, "pad",
                         data_name, label_name)

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
    """Batches of rows of numbers in text files, separated by commas.

    Parameters
    ----------
    data_csv, label_csv : str
        File names; without labels they are zeros.
    data_shape, label_shape : tuple of int
        Shape of a row.
    round_batch : bool
        Whether the last batch is filled up with the first rows, behind which the next round begins; else it keeps
        rows of the batch before it where there are no more.
    data_name, label_name : str
        Names of inputs and labels.
    dtype : dtype
        That of both.
    num_parts, part_index : int
        Into how many parts the rows are divided, and which is gone over.
    prefetch_buffer, ctx
        Of MXNet's threads, count for nothing.
    """

    def __init__(self, data_csv: str, data_shape: Sequence[int], label_csv: str | None = None,
                 label_shape: Sequence[int] = (1,), batch_size: int = 1, round_batch: bool = True,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: DTypeLike = "float32",
                 num_parts: int = 1, part_index: int = 0, **keywords: Any):
        leave("CSVIter", [name for name in keywords if name not in _IDLE], ("round_batch", "batch_size", "dtype"))
        data = self._read(data_csv, data_shape, dtype)
        if label_csv is None:
            label = np.zeros((len(data), *label_shape), data.dtype)
        else:
            label = self._read(label_csv, label_shape, dtype)
        rows = part("CSVIter", len(data), num_parts, part_index)
        data, label = data[rows], label[rows]
        super().__init__(data, label, batch_size, round_batch, data_name, label_name)

    @staticmethod
    def _read(name: str, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        try:
            rows = np.loadtxt(name, delimiter=",", dtype=as_dtype(dtype), ndmin=2)
        except ValueError as error:
            raise FileFormatError(f"{name}: expected rows of numbers, separated by commas: {error}") from None
        if not rows.size:
            raise FileFormatError(f"{name}: expected rows of numbers, the file is empty")
        if rows.shape[1] != np.prod(shape):
            raise ShapeError(f"{name}: a row has {rows.shape[1]} numbers, expected those of shape {tuple(shape)}")
        return rows.reshape(-1, *shape)


class LibSVMIter(_RowsOfFiles):
    """Batches of rows in text files that name the columns which are not zero: ``label column:number column:number``.

    Columns count from zero. Arrays are dense.

    Parameters
    ----------
    data_libsvm, label_libsvm : str
        File names; without the second, labels are those at the beginning of rows, else its rows.
    data_shape, label_shape : tuple of int
        Shape of a row: how many columns there are.
    num_parts, part_index : int
        How many parts of so many bytes the file has, and which is read; a row belongs where it begins.
    round_batch : bool
        Has to be True: the last batch is filled up with the first rows, behind which the next round begins.
    data_name, label_name : str
        Names of inputs and labels.
    dtype : dtype
        That of both.
    prefetch_buffer, ctx
        Of MXNet's threads, count for nothing.
    """

    def __init__(self, data_libsvm: str | os.PathLike, data_shape: Sequence[int],
                 label_libsvm: str | os.PathLike | None = None, label_shape: Sequence[int] = (1,), batch_size: int = 1,
                 num_parts: int = 1, part_index: int = 0, round_batch: bool = True, data_name: str = "data",
                 label_name: str = "softmax_label", dtype: DTypeLike = "float32", **keywords: Any):
        leave("LibSVMIter", [name for name in keywords if name not in _IDLE], ("round_batch", "batch_size", "dtype"))
        if not round_batch:
            raise ArgumentError("LibSVMIter: round_batch has to be True")
        if not 0 <= part_index < num_parts:
            raise ArgumentError(f"LibSVMIter: part_index={part_index} of num_parts={num_parts}: expected one from 0 on")
        dtype = as_dtype(dtype)
        data, label = _columns(data_libsvm, data_shape, dtype, part_index, num_parts)
        if label_libsvm is not None:
            label, _ = _columns(label_libsvm, label_shape, dtype, part_index, num_parts)
            if len(label) != len(data):
                raise ShapeError(f"{data_libsvm} has {len(data)} rows, {label_libsvm} has {len(label)}")
        super().__init__(data, label, batch_size, True, data_name, label_name)


def _columns(path: str | os.PathLike, shape: Sequence[int], dtype: np.dtype, part: int, parts: int
             ) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a part of a file, and what stands in front of them."""
    shape = (shape,) if isinstance(shape, int) else shape
    if len(shape) != 1 or shape[0] < 1:
        raise ShapeError(f"{path}: expected the shape of a row, so many columns, got {tuple(shape)}")
    rows, labels = [], []
    with reading(path) as file:
        text = file.read()
    size, place = -(-len(text) // parts), 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        mine, place = part * size <= place < (part + 1) * size, place + len(line)
        words = line.split()
        if not mine or not words:
            continue
        row = np.zeros(shape, dtype)
        try:
            label = float(words[0])
            for word in words[1:]:
                column, value = word.split(b":")
                if not 0 <= int(column) < shape[0]:
                    raise ValueError(f"there is no column {int(column)} of {shape[0]}")
                row[int(column)] = float(value)
        except ValueError as error:
            raise FileFormatError(f"{path}: line {number}: expected a label and numbers behind their columns, got "
                                  f"{line[:50]!r}: {error}") from None
        rows.append(row)
        labels.append(label)
    if not rows:
        raise FileFormatError(f"{path}: there are no rows in part {part} of {parts}")
    return np.stack(rows), np.array(labels, dtype)

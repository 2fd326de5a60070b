"""Iterators over numbers in text files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import array

from ..core.spec import as_dtype
from ..errors import FileFormatError, ShapeError
from ..typing import DTypeLike
from .batches import DataBatch, NDArrayIter

__all__ = ["CSVIter"]


class CSVIter(NDArrayIter):
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
    """

    def __init__(self, data_csv: str, data_shape: Sequence[int], label_csv: str | None = None,
                 label_shape: Sequence[int] = (1,), batch_size: int = 1, round_batch: bool = True,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: DTypeLike = "float32"):
        data = self._read(data_csv, data_shape, dtype)
        if label_csv is None:
            label = np.zeros((len(data), *label_shape), data.dtype)
        else:
            label = self._read(label_csv, label_shape, dtype)
        if tuple(label_shape) == (1,):
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

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def getdata(self) -> Any:
        """The rows of this batch, one array."""
        return self._take(self.data)[0]

    def getlabel(self) -> Any:
        """The labels of this batch, one array."""
        return self._take(self.label)[0]

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

"""Batches of a Gluon loader for ``Module``, by the name of ``mx.contrib.io``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opreg import ndarray
from opreg.ndarray.ndarray import NDArray

from ..core.rules import counted
from ..core.spec import as_dtype
from ..data.batches import DataDesc, DataIter
from ..errors import ArgumentError
from ..typing import DTypeLike

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """An iterator over the batches of a Gluon loader, which ``Module`` takes.

    Parameters
    ----------
    loader : DataLoader, or another object that can be iterated over several times
        Gives pairs of data and labels. The first pair decides the batch size. A shorter batch is filled up with zeros,
        and ``pad`` is their number.
    data_name, label_name : str
        The names of the inputs that take data and labels.
    dtype : dtype
        The dtype of the batches.

    Raises
    ------
    ArgumentError
        When the loader gives no batch, or no pairs.

    Examples
    --------
    >>> from opreg import gluon, nd
    >>> rows = gluon.data.ArrayDataset(nd.ones((5, 2)), nd.zeros((5,)))
    >>> batches = DataLoaderIter(gluon.data.DataLoader(rows, 2))
    >>> [(batch.data[0].shape, batch.pad) for batch in batches]
    [((2, 2), 0), ((2, 2), 0), ((2, 2), 1)]
    """

    def __init__(self, loader: Iterable[Any], data_name: str = "data", label_name: str = "softmax_label",
                 dtype: DTypeLike = "float32"):
        first = next(iter(loader), None)
        if first is None:
            raise ArgumentError("DataLoaderIter: the loader gives no batch")
        if not isinstance(first, (list, tuple)) or len(first) != 2:
            raise ArgumentError(f"DataLoaderIter: the loader must give pairs of data and labels, got {counted(first)}")
        data, label = first
        super().__init__(data.shape[0])
        self.dtype = as_dtype(dtype)
        self.provide_data = [DataDesc(data_name, data.shape, self.dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, self.dtype)]
        self._loader = loader
        self._current: tuple[NDArray, NDArray] | None = None
        self._batches: Iterator[Any]
        self.reset()

    def reset(self) -> None:
        """Restart."""
        self._batches = iter(self._loader)

    def iter_next(self) -> bool:
        """Advance to the next batch; returns whether there is one."""
        self._current = next(self._batches, None)
        return self._current is not None

    def _part(self, index: int) -> list[NDArray]:
        if self._current is None:
            raise ArgumentError("DataLoaderIter has no current batch: call next, or iter_next")
        part, pad = self._current[index].astype(self.dtype), self.getpad()
        if pad:
            zeros = ndarray.zeros((pad, *part.shape[1:]), part.context, self.dtype)
            part = ndarray.concat(part, zeros, dim=0)
        return [part]

    def getdata(self) -> list[NDArray]:
        """The data of this batch."""
        return self._part(0)

    def getlabel(self) -> list[NDArray]:
        """The labels of this batch."""
        return self._part(1)

    def getpad(self) -> int:
        """The number of zeros at the end of this batch."""
        return 0 if self._current is None else self.batch_size - self._current[0].shape[0]

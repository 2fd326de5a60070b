"""Datasets for Model: sources of batches as tuples of Tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opreg.data.batches import DataBatch

from ...cells.tensor import Tensor
from ...core.rules import as_list
from ...errors import ArgumentError
from ...training_line import batches_in

__all__ = ["Batches"]


class Batches:
    """The batches of a dataset, epoch by epoch.

    Parameters
    ----------
    owner : str
        Name of the reader in errors.
    dataset : iterable
        An iterable of tuples, lists or dicts of columns, of ``DataBatch``, or of single arrays; or an object with
        ``create_tuple_iterator`` or ``create_dict_iterator``, such as MindSpore's datasets. It is iterated again in
        each epoch, after ``reset`` if it has that method.

    Attributes
    ----------
    count : int
        Number of batches of an epoch; if the dataset does not tell, a huge number until the first epoch ends.
    batch_size : int
        Rows of a batch, 0 before the first.
    """

    def __init__(self, owner: str, dataset: Any):
        self._owner, self._dataset = owner, dataset
        names = ("create_tuple_iterator", "create_dict_iterator", "__iter__")
        sizes = [getattr(dataset, name) for name in names if hasattr(dataset, name)]
        if not sizes:
            raise ArgumentError(f"{owner}: a dataset must be iterable, or have create_tuple_iterator, got "
                                f"{type(dataset).__name__}")
        self._begin = sizes[0]
        count = batches_in(dataset)
        if count == 0:
            raise ArgumentError(f"{owner}: the dataset has no batches")
        self.count = sys.maxsize if count is None else count
        self.batch_size = 0

    def get_dataset_size(self) -> int | None:
        """Number of batches of an epoch; None while unknown."""
        return None if self.count == sys.maxsize else self.count

    def epoch(self, trim: bool = False) -> Iterator[tuple[Any, ...]]:
        """The batches of an epoch; with ``trim``, without the padding rows of the last one."""
        if hasattr(self._dataset, "reset"):
            self._dataset.reset()
        batches: Iterable[Any] = self._begin()
        done = 0
        for batch in batches:
            columns = _columns(batch, trim)
            if columns and not done:
                self.batch_size = len(columns[0]) if getattr(columns[0], "ndim", 0) else 1
            done += 1
            yield columns
        if not done:
            raise ArgumentError(f"{self._owner}: the dataset has no batches; an iterator that can be read only once, "
                                f"such as a generator, has none in a second epoch")
        self.count = done if self.count == sys.maxsize else self.count


def _columns(batch: Any, trim: bool) -> tuple[Any, ...]:
    if isinstance(batch, DataBatch):
        columns = [*batch.data, *(batch.label or ())]
        if trim and batch.pad:
            columns = [column[:len(column) - batch.pad] for column in columns]
    elif isinstance(batch, Mapping):
        columns = list(batch.values())
    else:
        columns = as_list(batch)
    return tuple([column if isinstance(column, Tensor) else Tensor(column) for column in columns])

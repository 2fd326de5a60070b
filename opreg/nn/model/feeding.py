"""Functions that feed batches of a dataset to a user's own training loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from ...cells.jit import jit
from ...core.named_errors import name_errors
from ...core.settings import Checked
from ...errors import ArgumentError
from .. import checkparam
from .batches import Batches

__all__ = ["DatasetHelper", "data_sink"]


class DatasetHelper(Checked):
    """The batches of an epoch, as tuples of Tensors, each time that it is iterated.

    Parameters
    ----------
    dataset
        A dataset of ``opreg.dataset``, or another source of batches that ``Model.train`` takes.
    dataset_sink_mode : bool
        With True, an iteration has ``sink_size`` batches, and the next one goes on after them.
    sink_size : int
        The number of batches; -1 for all batches of the dataset.
    epoch_num : int
        Accepted without effect: it may be iterated any number of times.

    Raises
    ------
    TypeError
        When the dataset is no source of batches.
    ValueError
        When ``sink_size`` is neither -1 nor positive, or the dataset has no batches.

    Examples
    --------
    >>> from opreg import dataset
    >>> rows = dataset.NumpySlicesDataset({"x": [1.0, 2.0, 3.0, 4.0]}, shuffle=False)
    >>> [x.asnumpy().tolist() for x, in DatasetHelper(rows.batch(2), dataset_sink_mode=False)]
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1):
        checkparam.check_bool(dataset_sink_mode, "dataset_sink_mode", "DatasetHelper")
        checkparam.check_is_int(sink_size, "sink_size", "DatasetHelper")
        if sink_size < -1 or sink_size == 0:
            raise ArgumentError(f"DatasetHelper: the 'sink_size' must be -1 or positive, but got sink_size {sink_size}")
        self._batches, self._size = Batches("DatasetHelper", dataset), sink_size
        self._endless = _endless(self._batches) if dataset_sink_mode and sink_size > 0 else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._batches.epoch() if self._endless is None else itertools.islice(self._endless, self._size)

    def sink_size(self) -> int | None:
        """The number of batches of an iteration; None while unknown."""
        return self._batches.get_dataset_size() if self._endless is None else self._size

    def stop_send(self) -> None:
        """Do nothing: a batch is computed when it is read."""

    continue_send = release = stop_send


def data_sink(fn: Callable[..., Any], dataset: Any, sink_size: int = 1, jit_config: object = None,
              input_signature: object = None) -> Callable[[], Any]:
    """A function without arguments that calls ``fn`` with the next batches of a dataset.

    Parameters
    ----------
    fn : callable
        Called with the columns of a batch; its last result is returned.
    dataset
        A source of batches that ``Model.train`` takes; it begins again when it ends.
    sink_size : int
        Number of batches of a call.
    jit_config : JitConfig, optional
        If it is given, ``fn`` is compiled.
    input_signature
        Accepted without effect.

    Raises
    ------
    ValueError
        When ``sink_size`` is not positive.

    Examples
    --------
    >>> from opreg import dataset
    >>> rows = dataset.NumpySlicesDataset({"x": [1.0, 2.0, 3.0]}, shuffle=False).batch(1)
    >>> step = data_sink(lambda x: float(x.sum()), rows)
    >>> [step() for _ in range(4)]
    [1.0, 2.0, 3.0, 1.0]
    """
    checkparam.check_positive_int(sink_size, "sink_size", "data_sink")
    batches = _endless(Batches("data_sink", dataset))
    if jit_config is not None:
        fn = jit(fn)

    def run() -> Any:
        result = None
        for columns in itertools.islice(batches, sink_size):
            result = fn(*columns)
        return result

    return run


def _endless(batches: Batches) -> Iterator[tuple[Any, ...]]:
    """All epochs in a row."""
    while True:
        yield from batches.epoch()


name_errors(__name__, globals(), __all__)

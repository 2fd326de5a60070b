"""Metric: a measure over batches, with ``clear``, ``update`` and ``eval``."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...cells.tensor import Tensor
from ...core.named_errors import name_errors
from ...core.settings import Checked
from ...errors import ArgumentError, OpError

__all__ = ["Metric", "rearrange_inputs"]

F = TypeVar("F", bound=Callable[..., Any])


def rearrange_inputs(func: F) -> F:
    """A decorator of ``update``: it passes the inputs that ``set_indexes`` has chosen."""

    @functools.wraps(func)
    def wrapped(self: Metric, *inputs: Any) -> Any:
        return func(self, *(inputs if self.indexes is None else [inputs[i] for i in self.indexes]))

    return wrapped  # type: ignore[return-value]


class Metric(Checked, ABC):
    """Base of measures over batches; a subclass defines ``clear``, ``update`` and ``eval``.

    Examples
    --------
    >>> class Count(Metric):
    ...     def clear(self):
    ...         self.n = 0
    ...     def update(self, *inputs):
    ...         self.n += self._convert_data(inputs[0]).size
    ...     def eval(self):
    ...         return self.n
    >>> Count()([1, 2, 3])
    3
    """

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Indices of the inputs that ``update`` reads; None for all."""
        return getattr(self, "_indexes", None)  # a subclass may not have called __init__

    def set_indexes(self, indexes: Any) -> Metric:
        """Choose the inputs of ``update`` by index; returns the metric."""
        if not isinstance(indexes, list) or not all(isinstance(i, int) for i in indexes):
            raise ArgumentError(f"set_indexes: indexes must be a list of int, got {indexes!r}")
        self._indexes = indexes
        return self

    def __call__(self, *inputs: Any) -> Any:
        """The metric of these inputs only."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abstractmethod
    def clear(self) -> None:
        """Reset the metric."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Add a batch."""

    @abstractmethod
    def eval(self) -> Any:
        """The metric of all batches since ``clear``."""

    def _convert_data(self, data: object) -> np.ndarray:
        """A tensor, list or array as an array."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, (list, np.ndarray)):
            return np.asarray(data)
        raise ArgumentError(f"{type(self).__name__}: inputs must be tensors, lists or NumPy arrays, got "
                            f"{type(data).__name__}")

    def _arrays(self, inputs: tuple[Any, ...], *what: str) -> list[np.ndarray]:
        if len(inputs) != len(what):
            raise ArgumentError(f"{type(self).__name__}.update: expected {len(what)} inputs, {' and '.join(what)}, got "
                                f"{len(inputs)}")
        return [self._convert_data(value) for value in inputs]

    def _pair(self, inputs: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        return y_pred, y

    def _some(self, samples: int) -> None:
        if not samples:
            raise OpError(f"{type(self).__name__}.eval: there are no data; call update first")


class Mean(Metric):
    """Base of measures that are a sum, divided by the number of samples."""

    def clear(self) -> None:
        self._sum, self._samples = 0.0, 0

    def eval(self) -> float:
        self._some(self._samples)
        return self._sum / self._samples


name_errors(__name__, globals(), __all__)

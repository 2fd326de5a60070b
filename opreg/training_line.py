"""Progress of a training as a single line: fraction of the epoch, speed, metrics and remaining time. The training loops
of all frameworks share it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Protocol, Self, TypeAlias

from .core.progress import Line, duration, is_enabled, is_rewritable, progress_text

__all__ = ["TrainingLine", "batches_in"]

#: Names and values of a metric.
Values: TypeAlias = Sequence[tuple[str, object]]


class _Metric(Protocol):
    """A metric that can be shown: its names and values over the epoch so far."""

    def get_global_name_value(self) -> Values: ...


class TrainingLine:
    """The progress line of ``fit``, as a ``with`` statement; it shows nothing if it is turned off.

    The end of an epoch is reported by log messages if these go to the terminal or the notebook, otherwise by the line,
    which remains. A callback with the attribute ``shows_progress``, as ``ProgressBar`` has, replaces the line.

    Parameters
    ----------
    wish : bool, optional
        Whether it is shown; by default the environment variable decides, otherwise whether the error stream is a
        terminal or a notebook.
    data : DataIter
        The batches.
    epochs : int
        The number after the last epoch.
    callbacks : list of function
        Callbacks after each batch.
    logger : Logger, or module ``logging``
        Logger of epochs.
    """

    def __init__(self, wish: bool | None, data: Any, epochs: int, callbacks: Sequence[Callable[..., object]],
                 logger: Any):
        draws = is_enabled(wish) and not any(getattr(callback, "shows_progress", False) for callback in callbacks)
        self._line = Line() if draws else None
        self._callbacks, self._epochs, self._logger = callbacks, epochs, logger
        self._data, self._total = data, batches_in(data)
        self._first = self._done = 0

    def __enter__(self) -> Self:
        if self._line is not None:
            self._line.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.__exit__()

    def begin(self) -> Sequence[Callable[..., object]]:
        """Begin an epoch; returns the callbacks for its batches."""
        if self._line is None:
            return self._callbacks
        self._done = 0
        self._line.begin()
        # The line is first: other callbacks may reset the metric.
        return [lambda param: self.show_training(param.epoch, param.nbatch, param.eval_metric), *self._callbacks]

    def values(self, metric: _Metric | None) -> Values:
        """The values of a metric that the line shows."""
        return [] if self._line is None or metric is None else metric.get_global_name_value()

    def show_training(self, epoch: int, nbatch: int, metric: _Metric | None) -> None:
        """Show a batch that was trained on: the number of its epoch, its own, and the metric of the epoch so far."""
        if not self._done:
            self._first = nbatch  # Module counts from 0, FeedForward from 1
        self._done = nbatch - self._first + 1
        if self._line is not None and self._line.due():
            seconds = self._line.seconds
            rate = self._done * _size(self._data) / seconds if seconds > 0 else 0
            rates = [f"{rate:.0f} samples/s" if rate >= 10 else f"{rate:.2g} samples/s"] if rate else []
            text = progress_text(self._done, self._total, *rates, *_values_text(self.values(metric)),
                                 seconds=seconds)
            self._line.show(f"{self._title(epoch)} {text}")

    def _title(self, epoch: int) -> str:
        return f"Epoch[{epoch}] of {self._epochs}"

    def validation_callbacks(self, callbacks: Sequence[Callable[..., object]]) -> Sequence[Callable[..., object]]:
        """Callbacks for the batches of a validation."""
        if self._line is None:
            return callbacks
        return [lambda param: self.show_validation(param.epoch, param.nbatch, param.eval_metric), *callbacks]

    def show_validation(self, epoch: int, nbatch: int, metric: _Metric | None) -> None:
        """Show a batch of a validation, as in ``show_training``."""
        if self._line is not None and self._line.due():
            parts = ["validation", str(nbatch + 1), *_values_text(self.values(metric))]
            self._line.show(f"{self._title(epoch)} {'  '.join(parts)}")

    def clear(self) -> None:
        """Hide the line until the next update."""
        if self._line is not None:
            self._line.clear()

    def end(self, epoch: int, values: Values, scores: Values = ()) -> None:
        """End an epoch, with its metrics and those of its validation."""
        if self._line is None:
            return
        self._total = self._done or self._total
        if _is_logged(self._logger):
            self._line.clear()
        else:
            parts = [f"{self._done} batches in {duration(self._line.seconds)}", *_values_text(values),
                     *[f"validation {text}" for text in _values_text(scores)]]
            self._line.leave(f"{self._title(epoch)} {'  '.join(parts)}")


def _values_text(values: Values) -> list[str]:
    return [f"{name}={value:.4g}" if isinstance(value, Real) else f"{name}={value}" for name, value in values]


def _size(data: Any) -> int:
    """Samples of a batch; 0 if unknown."""
    size = getattr(data, "batch_size", 0)
    return size if isinstance(size, int) else 0


def batches_in(data: Any) -> int | None:
    """Batches of an epoch, if known before the first one ends."""
    if hasattr(data, "get_dataset_size"):
        size = data.get_dataset_size()
        return None if size is None else int(size)
    if hasattr(data, "__len__"):
        return len(data)
    samples, size = getattr(data, "num_data", None), _size(data)
    if not isinstance(samples, int) or not size:
        return None
    return -(-samples // size) if getattr(data, "last_batch_handle", "pad") == "pad" else samples // size


def _is_logged(logger: Any) -> bool:
    """Whether messages of a logger appear on a terminal or in a notebook."""
    each: Any = logging.root if logger is logging else logger
    if not getattr(each, "isEnabledFor", lambda level: False)(logging.INFO):
        return False
    while each is not None:
        if any(handler.level <= logging.INFO and is_rewritable(getattr(handler, "stream", None))
               for handler in each.handlers):
            return True
        each = each.parent if each.propagate else None
    return False

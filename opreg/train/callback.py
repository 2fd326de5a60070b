"""Callbacks: functions that a training loop calls after each batch or epoch."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..aliases import inner
from ..core.attrs import Positive
from ..core.named_errors import name_errors
from ..core.progress import Line, is_enabled
from ..core.settings import Checked, whole_number
from .checkpoint import BatchEndParam, save_checkpoint

if TYPE_CHECKING:
    from opreg.ndarray.ndarray import NDArray
    from opreg.symbol.symbol import Symbol

__all__ = ["Speedometer", "ProgressBar", "LogValidationMetricsCallback", "do_checkpoint", "module_checkpoint",
           "log_train_metric"]

if not TYPE_CHECKING:  # MindSpore has its callbacks in a module of this name, too
    __getattr__ = inner(__name__)


def at_epochs(what: str, period: int, save: Callable[[int, Any, Any, Any], object]) -> Callable[..., None]:
    """A callback for the end of an epoch: calls ``save`` every ``period`` epochs, with the number of finished epochs,
    the symbol, and the arrays of arguments and auxiliary states."""
    period = max(1, whole_number(f"{what}: period", period))

    def callback(iter_no: int, sym: Symbol | None = None, arg: Mapping[str, NDArray] | None = None,
                 aux: Mapping[str, NDArray] | None = None) -> None:
        if (iter_no + 1) % period == 0:
            save(iter_no + 1, sym, arg, aux)

    return callback


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch: saves a checkpoint every ``period`` epochs, named by the number of finished
    epochs.

    Examples
    --------
    >>> save = do_checkpoint("net", period=2)  # save(epoch, symbol, weights, states) writes each second epoch
    >>> callable(save)
    True
    """
    return at_epochs("do_checkpoint", period, functools.partial(save_checkpoint, prefix))


class _SavableModule(Protocol):
    """A module that can save itself."""

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False) -> object:
        """Save the symbol, the parameters, and on request the optimizer's states."""


def module_checkpoint(mod: _SavableModule, prefix: str, period: int = 1, save_optimizer_states: bool = False
                      ) -> Callable[..., None]:
    """A callback for the end of an epoch: saves a checkpoint of a module, and on request its optimizer's states."""
    return at_epochs("module_checkpoint", period,
                     lambda epoch, *_: mod.save_checkpoint(prefix, epoch, save_optimizer_states))


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """A callback for the end of a batch: logs the metric every ``period`` batches."""
    whole_number("log_train_metric: period", period, 1)

    def callback(param: BatchEndParam) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return callback


class Speedometer(Checked):
    """A callback for the end of a batch: logs speed and metrics.

    Parameters
    ----------
    batch_size : int
        Number of samples of a batch.
    frequent : int
        Number of batches between two lines.
    auto_reset : bool
        Whether the metric is reset after each line.
    """

    def __init__(self, batch_size: int, frequent: Positive = 50, auto_reset: bool = True):
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self.init, self.tic, self.last_count = False, 0.0, 0

    def __call__(self, param: BatchEndParam) -> None:
        """Note a batch, and log if it is time."""
        count = param.nbatch
        if self.last_count > count:  # a new epoch
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.perf_counter()
            return
        if count % self.frequent:
            return
        elapsed = time.perf_counter() - self.tic
        speed = self.frequent * self.batch_size / elapsed if elapsed else math.inf
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
        else:
            pairs = param.eval_metric.get_name_value()
            first = count - self.frequent if self.auto_reset else 0
            if self.auto_reset:
                param.eval_metric.reset_local()
            logging.info("Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(pairs), param.epoch,
                         first, count, speed, *(part for pair in pairs for part in pair))
        self.tic = time.perf_counter()


class ProgressBar(Checked):
    """A callback for the end of a batch: a progress bar in one line, which is logged without a terminal.

    Parameters
    ----------
    total : int
        Number of all batches.
    length : int
        Length of the full bar in characters.
    """

    shows_progress = True  # so ``fit`` shows no line of its own

    def __init__(self, total: Positive, length: int = 80):
        self.total, self.bar_len = total, length
        self._line: Line | None = None
        self._epoch, self._first = -1, 0

    def __call__(self, param: BatchEndParam) -> None:
        """Note a batch, and update the bar."""
        if not is_enabled():
            logging.info("%s\r", self._bar(param.nbatch))
            return
        if self._line is None or param.epoch != self._epoch:
            self._line, self._epoch, self._first = Line(), param.epoch, param.nbatch
        done = param.nbatch - self._first + 1
        if done == self.total:
            self._line.leave(self._bar(done))
        elif self._line.due() and done < self.total:
            self._line.show(self._bar(done))

    def _bar(self, done: int) -> str:
        part = done / self.total
        filled = round(self.bar_len * part)
        return f"[{'=' * filled}{'-' * (self.bar_len - filled)}] {math.ceil(100.0 * part)}%"


class LogValidationMetricsCallback(Checked):
    """A callback for the end of a validation: logs its metrics."""

    def __call__(self, param: BatchEndParam) -> None:
        """Log the metrics."""
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)


name_errors(__name__, globals(), __all__)

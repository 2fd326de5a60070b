"""Callbacks for a training that does not improve: early stopping, and reducing the learning rate."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...cells.parameter import Parameter, assign
from ...cells.tensor import Tensor
from ...core.progress import print_above
from ...core.settings import flag, real_number, whole_number
from ...errors import ArgumentError
from .callback import Callback, RunContext, loss_of
from .callbacks import rate_of

__all__ = ["EarlyStopping", "ReduceLROnPlateau"]

#: Metrics for which smaller is better.
_LESS_IS_BETTER = ("eval_loss", "loss", "mae", "mse", "perplexity", "hausdorff_distance", "mean_surface_distance",
                   "root_mean_square_distance")


class _WatchingCallback(Callback):
    """Base of callbacks that watch a value after each epoch, and whether it improves."""

    def __init__(self, monitor: str, min_delta: float, patience: int, verbose: bool, mode: str):
        owner = type(self).__name__
        if not isinstance(monitor, str):
            raise ArgumentError(f"{owner}: monitor must be text, got {type(monitor).__name__}")
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"{owner}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        self.monitor, self.mode = monitor, mode
        self.min_delta = abs(real_number(f"{owner}: min_delta", min_delta, -math.inf))
        self.patience = whole_number(f"{owner}: patience", patience)
        self.verbose = flag(f"{owner}: verbose", verbose)
        self._less = mode == "min" or (mode == "auto" and monitor in _LESS_IS_BETTER)
        self._begin()

    def _begin(self) -> None:
        self.wait, self.best = 0, math.inf if self._less else -math.inf

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state."""
        self._begin()

    def is_improvement(self, value: float, before: float) -> bool:
        """Whether a value is better than another by more than ``min_delta``."""
        return value < before - self.min_delta if self._less else value > before + self.min_delta

    def _value(self, params: dict[str, Any]) -> float | None:
        logged = {**params.get("eval_results", {}), "loss": params.get("net_outputs")}
        value = logged.get(self.monitor)
        if self.monitor == "loss":
            value = loss_of(value[0] if isinstance(value, (tuple, list)) and value else value)
        if value is None:
            warnings.warn(f"{type(self).__name__}: the logs have no {self.monitor!r}, but only "
                          f"{', '.join(map(repr, sorted(logged)))}", UserWarning, stacklevel=2)
            return None
        if np.ndim(value):
            raise ArgumentError(f"{type(self).__name__}: {self.monitor!r} must be one number, its shape is "
                                f"{np.shape(value)}")
        return float(value)


class EarlyStopping(_WatchingCallback):
    """Stops a training that does not improve.

    Parameters
    ----------
    monitor : str
        The value to watch after each epoch: ``"loss"``, that of the last step; in ``Model.fit`` also ``"eval_loss"``,
        or a metric of the model.
    min_delta : float
        Least improvement that counts.
    patience : int
        Number of epochs to wait.
    verbose : bool
        Whether to print a message when it stops.
    mode : {"auto", "min", "max"}
        Whether smaller or larger is better; by default the name decides.
    baseline : float, optional
        A value that has to be exceeded, too.
    restore_best_weights : bool
        Whether to restore the parameters of the best epoch.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 1e-6))
    >>> stop = ms.EarlyStopping("loss", min_delta=0.1, patience=2, verbose=True)
    >>> model.train(100, [([[0.0, 1.0]], [[2.0]])], callbacks=stop)
    Epoch 00003: early stopping
    """

    def __init__(self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False,
                 mode: str = "auto", baseline: float | None = None, restore_best_weights: bool = False):
        self.stopped_epoch = 0
        self._weights: list[tuple[Parameter, np.ndarray]] = []
        super().__init__(monitor, min_delta, patience, verbose, mode)
        self.baseline = None if baseline is None else real_number("EarlyStopping: baseline", baseline, -math.inf)
        self.restore_best_weights = flag("EarlyStopping: restore_best_weights", restore_best_weights)

    def _begin(self) -> None:
        super()._begin()
        self.stopped_epoch = 0
        self._weights = []

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Stop if there was no improvement for ``patience`` epochs."""
        params = run_context.original_args()
        value = self._value(params)
        if value is None:
            return
        better = self.is_improvement(value, self.best)
        if self.restore_best_weights and (better or not self._weights):
            self._weights = [(each, each.asnumpy().copy()) for each in params["train_network"].get_parameters()]
        self.wait += 1
        if better:
            self.best = value
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = params["cur_epoch_num"]
            run_context.request_stop()
            if self._weights and self.verbose:
                print_above("Restoring model weights from the end of the best epoch.")
            for parameter, values in self._weights:
                parameter.set_data(Tensor(values))

    def on_train_end(self, run_context: RunContext) -> None:
        """Print a message if it stopped."""
        if self.stopped_epoch and self.verbose:
            print_above(f"Epoch {self.stopped_epoch:05d}: early stopping")


class ReduceLROnPlateau(_WatchingCallback):
    """Reduces the learning rate of a training that does not improve.

    Parameters
    ----------
    monitor : str
        The value to watch after each epoch: ``"loss"``, that of the last step; in ``Model.fit`` also ``"eval_loss"``,
        or a metric of the model.
    factor : float
        Factor of the reduction, between 0 and 1.
    patience : int
        Number of epochs to wait.
    verbose : bool
        Whether to print the new learning rate.
    mode : {"auto", "min", "max"}
        Whether smaller or larger is better; by default the name decides.
    min_delta : float
        Least improvement that counts.
    cooldown : int
        Number of epochs after a reduction that do not count.
    min_lr : float
        Lower bound of the learning rate.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.0625))
    >>> slower = ms.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=1e9, verbose=True)
    >>> model.train(2, [([[0.0, 1.0]], [[2.0]])], callbacks=slower)
    Epoch 00002: ReduceLROnPlateau reducing learning rate to 0.03125.
    """

    def __init__(self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False,
                 mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0):
        self.cooldown_counter = 0
        super().__init__(monitor, min_delta, patience, verbose, mode)
        self.factor = real_number("ReduceLROnPlateau: factor", factor, 0.0, 1.0, inside=True)
        self.cooldown = whole_number("ReduceLROnPlateau: cooldown", cooldown)
        self.min_lr = real_number("ReduceLROnPlateau: min_lr", min_lr)

    def _begin(self) -> None:
        super()._begin()
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Reduce the learning rate if there was no improvement for ``patience`` epochs."""
        params = run_context.original_args()
        rate = rate_of("ReduceLROnPlateau", params["optimizer"])
        value = self._value(params)
        if value is None:
            return
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best, self.wait = value, 0
        elif not self.cooldown_counter:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(rate, params["cur_epoch_num"])
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _reduce(self, rate: Parameter, epoch: int) -> None:
        old = float(rate.asnumpy())
        if old <= np.float32(self.min_lr):
            return
        new = max(float(rate.asnumpy() * np.float32(self.factor)), self.min_lr)
        assign(rate, Tensor(new, rate.dtype))
        if self.verbose:
            print_above(f"Epoch {epoch:05d}: ReduceLROnPlateau reducing learning rate to {np.float32(new)}.")

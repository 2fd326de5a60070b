"""Callbacks that print, record, and change the learning rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...cells.parameter import Parameter, assign
from ...cells.tensor import Tensor
from ...core.progress import print_above
from ...core.settings import flag, whole_number
from ...errors import ArgumentError
from .callback import Callback, RunContext, loss_of

__all__ = ["History", "LambdaCallback", "LearningRateScheduler", "LossMonitor", "TimeMonitor", "rate_of"]

#: A function that a ``LambdaCallback`` calls.
Hook: TypeAlias = Callable[[RunContext], object] | None


class LossMonitor(Callback):
    """Prints the loss, and in ``Model.fit`` the metrics of each evaluation.

    A loss that is NaN or infinite raises a ValueError.

    Parameters
    ----------
    per_print_times : int
        Number of steps between two lines; 0 prints no loss.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1, "zeros", has_bias=False)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.25))
    >>> model.train(1, [([[0.0, 1.0]], [[2.0]])] * 3, callbacks=ms.LossMonitor())
    epoch: 1 step: 1, loss is 4.0
    epoch: 1 step: 2, loss is 1.0
    epoch: 1 step: 3, loss is 0.25
    """

    def __init__(self, per_print_times: int = 1):
        self._per_print_times = whole_number("LossMonitor: per_print_times", per_print_times)
        self._last_print_time = 0

    def step_end(self, run_context: RunContext) -> None:
        """Check the loss, and print it if it is time."""
        params = run_context.original_args()
        epoch, loss = params.get("cur_epoch_num", 1), loss_of(params["net_outputs"])
        done, every = params["cur_step_num"], self._per_print_times
        step = (done - 1) % params["batch_num"] + 1
        if isinstance(loss, float) and not math.isfinite(loss):
            raise ValueError(f"In epoch: {epoch} step: {step}, loss is NAN or INF, training process cannot continue, "
                             "terminating training.")
        if done <= self._last_print_time:  # a new training has started
            self._last_print_time = 0
        if every and done - self._last_print_time >= every:
            self._last_print_time = done
            print_above(f"epoch: {epoch} step: {step}, loss is {loss}")

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print the metrics, if there was an evaluation."""
        params = run_context.original_args()
        if params.get("metrics"):
            print_above(f"Eval result: epoch {params['cur_epoch_num']}, metrics: {params['metrics']}")


class TimeMonitor(Callback):
    """Prints the time of each epoch, and the time per step, in milliseconds.

    Parameters
    ----------
    data_size : int, optional
        Number of steps of an epoch, if it is unknown.
    data_time : bool
        Whether to print the time that a training step waits for its batch, too.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False):
        self.data_size, self.data_time = data_size, flag("TimeMonitor: data_time", data_time)
        self.epoch_time = self._left = time.perf_counter()
        self._waited = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Record the time that the batch took."""
        self._waited += time.perf_counter() - self._left

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Start waiting for the next batch."""
        self._left = time.perf_counter()

    def epoch_begin(self, run_context: RunContext) -> None:
        """Start the timer."""
        self.epoch_time = self._left = time.perf_counter()
        self._waited = 0.0

    def epoch_end(self, run_context: RunContext) -> None:
        """Print the times."""
        elapsed = (time.perf_counter() - self.epoch_time) * 1000
        params = run_context.original_args()
        steps = whole_number("TimeMonitor: data_size", params.get("batch_num") or self.data_size, 1)
        waited = f" (data time: {self._waited * 1000 / steps:5.3f} ms)" if self.data_time else ""
        print_above(f"{params.get('mode', '').title()} epoch time: {elapsed:5.3f} ms, "
                    f"per step time: {elapsed / steps:5.3f} ms{waited}")


class LambdaCallback(Callback):
    """A callback made from functions, each called with a ``RunContext`` at the event of its name.

    Parameters
    ----------
    on_train_epoch_begin, on_train_epoch_end, on_train_step_begin, on_train_step_end, on_train_begin, on_train_end,
    on_eval_epoch_begin, on_eval_epoch_end, on_eval_step_begin, on_eval_step_end, on_eval_begin, on_eval_end
        The functions; each is optional.

    Examples
    --------
    >>> from opreg import Model, Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    >>> log = LambdaCallback(on_train_epoch_end=lambda context: print(context.original_args().cur_epoch_num))
    >>> model.train(2, [(Tensor([[1.0]]), Tensor([[2.0]]))], [log])
    1
    2
    """

    def __init__(self, on_train_epoch_begin: Hook = None, on_train_epoch_end: Hook = None,
                 on_train_step_begin: Hook = None, on_train_step_end: Hook = None, on_train_begin: Hook = None,
                 on_train_end: Hook = None, on_eval_epoch_begin: Hook = None, on_eval_epoch_end: Hook = None,
                 on_eval_step_begin: Hook = None, on_eval_step_end: Hook = None, on_eval_begin: Hook = None,
                 on_eval_end: Hook = None):
        functions = {name: value for name, value in locals().items() if name.startswith("on_") and value}
        for name, function in functions.items():
            if not callable(function):
                raise ArgumentError(f"LambdaCallback: {name} must be a function, got {type(function).__name__}")
        vars(self).update(functions)


class History(Callback):
    """Records the number of each epoch, the loss of its last step, and in ``Model.fit`` the metrics.

    Attributes
    ----------
    epoch : dict
        ``{"epoch": numbers of epochs}``.
    history : dict
        ``{"net_output": losses}``, and the metrics by their names.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1, "zeros", has_bias=False)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.25))
    >>> history = ms.History()
    >>> model.train(2, [([[0.0, 1.0]], [[2.0]])], callbacks=history)
    >>> history.epoch, history.history
    ({'epoch': [1, 2]}, {'net_output': [4.0, 1.0]})
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        """Start a new list of epochs; the recorded values are kept."""
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        """Record an epoch."""
        params = run_context.original_args()
        if self.epoch is None:
            self.begin(run_context)
        assert self.epoch is not None
        self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        outputs = params["net_outputs"]
        loss = loss_of(outputs[0] if isinstance(outputs, (tuple, list)) and outputs else outputs)
        for name, value in {"net_output": loss, **(params.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


class LearningRateScheduler(Callback):
    """Changes the learning rate after each step.

    Parameters
    ----------
    learning_rate_function : callable
        A function of the learning rate and the number of finished steps that returns the new rate.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.5)
    >>> halve = ms.LearningRateScheduler(lambda rate, step: rate / 2)
    >>> ms.Model(net, ms.nn.MSELoss(), optimizer).train(1, [([[0.0, 1.0]], [[2.0]])] * 2, callbacks=halve)
    >>> float(optimizer.learning_rate)
    0.125
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]):
        if not callable(learning_rate_function):
            raise ArgumentError("LearningRateScheduler: expected a function, got "
                                f"{type(learning_rate_function).__name__}")
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        """Compute and set the new rate."""
        params = run_context.original_args()
        rate = rate_of("LearningRateScheduler", params["optimizer"])
        old = float(str(np.float32(rate.asnumpy())))
        new = self.learning_rate_function(old, params["cur_step_num"])
        if not math.isclose(old, new, rel_tol=1e-10):
            assign(rate, Tensor(new, rate.dtype))


def rate_of(owner: str, optimizer: Any) -> Parameter:
    """The learning rate of an optimizer with one rate for all parameters and no schedule."""
    rate = getattr(optimizer, "learning_rate", None)
    if not isinstance(rate, Parameter):
        raise ArgumentError(f"{owner}: the optimizer must have one learning rate that is a number; schedules and "
                            f"rates of groups cannot be changed")
    return rate

"""Callbacks: objects whose methods Model calls during training and evaluation, and the context passed to them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from ...cells.tensor import Tensor
from ...core.settings import Checked
from ...errors import ArgumentError

__all__ = ["Callback", "Callbacks", "Params", "RunContext", "loss_of"]

#: Events at which callbacks are called, in training as ``on_train_begin``, in evaluation as ``on_eval_begin``.
_PLACES = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class Params(dict[str, Any]):
    """State of the run, a dict whose entries are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the state of this run has no {name!r}. Valid: {', '.join(sorted(self))}"
                                 ) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


class RunContext(Checked):
    """The argument of a callback: the state of the run, and a way to stop it.

    Parameters
    ----------
    original_args : dict
        State of the run, by name.

    Examples
    --------
    >>> context = RunContext({"cur_step_num": 3})
    >>> context.request_stop()
    >>> context.original_args()["cur_step_num"], context.get_stop_requested()
    (3, True)
    """

    def __init__(self, original_args: dict[str, Any]):
        if not isinstance(original_args, dict):
            raise ArgumentError(f"RunContext: original_args must be a dict, got {type(original_args).__name__}")
        self._original_args, self._stop_requested = original_args, False

    def original_args(self) -> Any:
        """State of the run; in training its entries are attributes, too. Callbacks may add entries."""
        return self._original_args

    def request_stop(self) -> None:
        """Request that the run stops after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_requested


class Callback(Checked):
    """Base of callbacks: a subclass defines methods for the events that it handles.

    Training enters it as a ``with`` statement. Methods without ``on_train`` and ``on_eval`` are the older interface:
    they are called in training and evaluation, and ``Model.fit``, which does both, refuses users' callbacks that define
    them.

    Examples
    --------
    >>> import opreg as ms
    >>> class Told(ms.Callback):
    ...     def on_train_epoch_end(self, run_context):
    ...         params = run_context.original_args()
    ...         print(params.cur_epoch_num, params.cur_step_num)
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params()))
    >>> model.train(2, [([[0.0, 1.0]], [[2.0]])] * 3, callbacks=Told())
    1 3
    2 6
    """

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *err: object) -> None:
        pass

    def begin(self, run_context: RunContext) -> None:
        """Handle the begin of training or evaluation."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Handle the begin of an epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Handle the begin of a batch."""

    def step_end(self, run_context: RunContext) -> None:
        """Handle the end of a batch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Handle the end of an epoch."""

    def end(self, run_context: RunContext) -> None:
        """Handle the end of training or evaluation."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Handle the begin of training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Handle the begin of an epoch of training."""
        self.epoch_begin(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Handle the begin of a training batch."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Handle the end of a training batch; ``net_outputs`` is its loss."""
        self.step_end(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Handle the end of an epoch of training and of its evaluation; in ``fit`` there are ``metrics``."""
        self.epoch_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Handle the end of training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Handle the begin of evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Handle the begin of an evaluation's batches."""
        self.epoch_begin(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Handle the begin of an evaluation batch."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Handle the end of an evaluation batch; ``net_outputs`` is the network's output."""
        self.step_end(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Handle the end of an evaluation's batches."""
        self.epoch_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Handle the end of evaluation; there are ``metrics``."""
        self.end(run_context)


class Callbacks:
    """Several callbacks, called in order; a ``with`` statement enters all of them.

    Parameters
    ----------
    callbacks : Callback, iterable of Callback, or None
        The callbacks.
    """

    def __init__(self, callbacks: Callback | Iterable[Callback] | None):
        self.all = [] if callbacks is None else [callbacks] if isinstance(callbacks,
                                                                          Callback) else _callbacks_of(callbacks)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            entered = [(stack.enter_context(callback), callback) for callback in self.all]
            self.all = [result if isinstance(result, Callback) else callback for result, callback in entered]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *err: Any) -> bool | None:
        return self._stack.__exit__(*err)

    def call(self, name: str, run_context: RunContext) -> None:
        """Call a method of all callbacks."""
        for callback in self.all:
            getattr(callback, name)(run_context)

    def refuse_old(self) -> None:
        """Raise an error if a user's callback has methods that would be called in training and evaluation."""
        for each in self.all:
            old = [name for name in _PLACES if name in vars(type(each))]
            if old and not type(each).__module__.startswith(__name__.rpartition(".")[0]):
                raise ArgumentError(f"Model.fit: {type(each).__name__} has the method {old[0]!r}, which is called "
                                    "both in "
                                    f"training and in evaluation; name it 'on_train_{old[0]}' or 'on_eval_{old[0]}'")


def _callbacks_of(callbacks: object) -> list[Callback]:
    if not isinstance(callbacks, Iterable):
        raise ArgumentError(f"callbacks must be a Callback or a list of them, got {type(callbacks).__name__}")
    result = list(callbacks)
    for i, item in enumerate(result):
        if not isinstance(item, Callback):
            raise ArgumentError(f"callbacks: element {i} must be a Callback, got {type(item).__name__}")
    return result


def loss_of(outputs: Any) -> Any:
    """The loss among a network's outputs: the mean of a tensor as a number, or the first of several."""
    if isinstance(outputs, (tuple, list)) and outputs and isinstance(outputs[0], Tensor):
        return outputs[0]
    return float(np.mean(outputs.asnumpy())) if isinstance(outputs, Tensor) else outputs

"""Callbacks: objects that a training calls, and the context that they are given."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from ...cells.tensor import Tensor

__all__ = ["Callback", "Callbacks", "Params", "RunContext", "loss_of"]

#: The places where callbacks are called, in training as ``on_train_begin``, in evaluation as ``on_eval_begin``.
_PLACES = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class Params(dict[str, Any]):
    """Facts that callbacks are told, a dict whose entries are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"callbacks are told nothing of {name!r} here, but of {', '.join(sorted(self))}"
                                 ) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


class RunContext:
    """The argument of a callback: facts about the run, and a way to stop it.

    Parameters
    ----------
    original_args : dict
        Facts about the run, by name.

    Examples
    --------
    >>> context = RunContext({"cur_step_num": 3})
    >>> context.request_stop()
    >>> context.original_args()["cur_step_num"], context.get_stop_requested()
    (3, True)
    """

    def __init__(self, original_args: dict[str, Any]):
        if not isinstance(original_args, dict):
            raise TypeError(f"RunContext: original_args must be a dict, got {type(original_args).__name__}")
        self._original_args, self._stop_requested = original_args, False

    def original_args(self) -> Any:
        """Facts about the run; in a training its entries are attributes, too. Callbacks may put more there."""
        return self._original_args

    def request_stop(self) -> None:
        """Ask that this step be the last."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether somebody asked."""
        return self._stop_requested


class Callback:
    """A callback: a subclass defines the methods for the places where it wants to be called.

    A training enters it as a ``with`` statement. The methods without ``on_train`` and ``on_eval`` are those of old:
    they are called for both, and ``Model.fit``, which does both, refuses callbacks of others that define them.

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
        """Training or evaluation begins."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """An epoch of either begins."""

    def step_begin(self, run_context: RunContext) -> None:
        """A batch of either is there."""

    def step_end(self, run_context: RunContext) -> None:
        """A batch of either is done."""

    def epoch_end(self, run_context: RunContext) -> None:
        """An epoch of either is over."""

    def end(self, run_context: RunContext) -> None:
        """Training or evaluation is over."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Training begins."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """An epoch of training begins."""
        self.epoch_begin(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """A batch to learn from is there."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """A batch was learned from; ``net_outputs`` is its loss."""
        self.step_end(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """An epoch of training is over, and its evaluation, whose ``metrics`` are there in ``fit``."""
        self.epoch_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Training is over."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Evaluation begins."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """The batches of an evaluation begin."""
        self.epoch_begin(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """A batch to evaluate is there."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """A batch was evaluated; ``net_outputs`` is what the network for it gave."""
        self.step_end(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """The batches of an evaluation are over."""
        self.epoch_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Evaluation is over; ``metrics`` are there."""
        self.end(run_context)


class Callbacks:
    """Several callbacks, called one after the other; a ``with`` statement enters all of them.

    Parameters
    ----------
    callbacks : Callback, iterable of Callback, or None
        They.
    """

    def __init__(self, callbacks: Callback | Iterable[Callback] | None):
        self.all = [] if callbacks is None else [callbacks] if isinstance(callbacks, Callback) else _listed(callbacks)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            entered = [(stack.enter_context(each), each) for each in self.all]
            self.all = [other if isinstance(other, Callback) else each for other, each in entered]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *err: Any) -> bool | None:
        return self._stack.__exit__(*err)

    def call(self, name: str, run_context: RunContext) -> None:
        """Call the method of that name of all of them."""
        for each in self.all:
            getattr(each, name)(run_context)

    def refuse_old(self) -> None:
        """An error where a user's callback has methods that would be called for training and evaluation."""
        for each in self.all:
            old = [name for name in _PLACES if name in vars(type(each))]
            if old and not type(each).__module__.startswith(__name__.rpartition(".")[0]):
                raise ValueError(f"Model.fit: {type(each).__name__} has the method {old[0]!r}, which would be called "
                                 f"in training and in evaluation; name it 'on_train_{old[0]}' or 'on_eval_{old[0]}'")


def _listed(callbacks: object) -> list[Callback]:
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks must be a Callback or a list of them, got {type(callbacks).__name__}")
    result = list(callbacks)
    for i, each in enumerate(result):
        if not isinstance(each, Callback):
            raise TypeError(f"callbacks: element {i} must be a Callback, got {type(each).__name__}")
    return result


def loss_of(outputs: Any) -> Any:
    """The loss among what a network gave: the mean of a tensor as a number, the first of several as it is."""
    if isinstance(outputs, (tuple, list)) and outputs and isinstance(outputs[0], Tensor):
        return outputs[0]
    return float(np.mean(outputs.asnumpy())) if isinstance(outputs, Tensor) else outputs

"""BaseModule: training, scoring and prediction, by methods that every module has."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.ndarray.creation import concatenate
from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import NDArray, array

from ..base import _as_list as _as_list
from ..core.settings import CheckedMethods, whole_number
from ..core.spec import Shape
from ..data.batches import Batches, DataBatch, DataDesc, DataIter, Descriptions
from ..errors import ArgumentError, OpError, did_you_mean, warn
from ..training_line import TrainingLine
from . import metric as metrics
from .checkpoint import BatchEndParam, prefix_names, split
from .initializer import InitializerLike, Uniform

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

    from .base_optimizer import Optimizer
    from .kvstore import KVStoreBase
    from .monitor import Monitor

__all__ = ["BaseModule"]

#: Weights or auxiliary states by name.
Weights: TypeAlias = Mapping[str, NDArray] | None
#: A function, or several, called at an event.
Callbacks: TypeAlias = Callable[..., object] | Sequence[Callable[..., object]] | None
#: A logger, or the module ``logging``.
Logger: TypeAlias = logging.Logger | ModuleType
#: Gradient requests: one for all, by position, or by name.
GradReq: TypeAlias = str | Sequence[str] | Mapping[str, str]
#: Keywords of an optimizer.
Settings: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]

#: The store of gradients, or its name.
Store: TypeAlias = "KVStoreBase | str | None"

#: Default initializer of weights.
SMALL = Uniform(0.01)


def _callback_list(callbacks: Callbacks) -> Sequence[Callable[..., object]]:
    return [] if callbacks is None else callbacks if isinstance(callbacks, Sequence) else [callbacks]


def _call(callbacks: Callbacks, *args: object) -> None:
    for callback in _callback_list(callbacks):
        callback(*args)


def _check_input_names(symbol: Symbol, names: Sequence[str], typename: str, throw: bool) -> None:
    """Refuse names that are no arguments of a symbol, or warn of them; ``typename`` is their role, such as ``data``."""
    arguments = symbol.list_arguments()
    for name in names:
        if name not in arguments:
            _object(f"{typename}_names: the symbol has no argument {name!r}. {did_you_mean(name, arguments)}", throw)


def _check_names_match(data_names: Sequence[str], data_shapes: Descriptions, name: str, throw: bool) -> None:
    """Refuse descriptions whose names differ from the inputs' names, or warn of them."""
    names = [desc[0] for desc in data_shapes]
    if sorted(names) != sorted(data_names):
        _object(f"{name}_shapes: described are {', '.join(names) or 'none'}; {name}_names says "
                f"{', '.join(data_names) or 'none'}", throw)


def _object(text: str, throw: bool) -> None:
    if throw:
        raise ArgumentError(text)
    warn(text)


def _parse_data_desc(data_names: Sequence[str], label_names: Sequence[str], data_shapes: Descriptions,
                     label_shapes: Descriptions | None) -> tuple[list[DataDesc], list[DataDesc] | None]:
    """Descriptions of inputs and labels; those of inputs must have the inputs' names."""
    data = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in data_shapes]
    _check_names_match(data_names, data, "data", True)
    labels = None if label_shapes is None else \
        [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in label_shapes]
    _check_names_match(label_names, labels or [], "label", False)
    return data, labels


class BaseModule(CheckedMethods):
    """A network that can be trained.

    A subclass defines ``bind``, ``init_params``, ``get_params``, ``init_optimizer``, ``forward``, ``backward``,
    ``update``, ``get_outputs`` and ``update_metric``; the other methods use these.
    """

    def __init__(self, logger: Logger = logging):
        self.logger: Any = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "logger": None if self.logger is logging else self.logger}  # Python copies no modules

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, logger=logging if state["logger"] is None else state["logger"])

    @property
    def symbol(self) -> Symbol:
        """The network's symbol."""
        return self._symbol

    # ------------------------------------------------------------------------ methods of subclasses

    data_names: list[str]
    output_names: list[str]
    data_shapes: list[DataDesc]
    label_shapes: list[DataDesc] | None
    output_shapes: list[tuple[str, Shape]]

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: GradReq = "write") -> None:
        """Make arrays and plans for inputs of these shapes."""
        raise NotImplementedError

    def init_params(self, initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Initialize the weights."""
        raise NotImplementedError

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states, on the host."""
        raise NotImplementedError

    def init_optimizer(self, kvstore: Store = "local", optimizer: str | Optimizer = "sgd",
                       optimizer_params: Settings = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Set the optimizer."""
        raise NotImplementedError

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs."""
        raise NotImplementedError

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients."""
        raise NotImplementedError

    def update(self) -> None:
        """Update the weights."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward; the next forward overwrites them."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs."""
        raise NotImplementedError

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The arguments that are neither inputs nor weights; none by default."""
        return []

    def set_states(self, states: Sequence[NDArray | Sequence[NDArray]] | None = None, value: float | None = None
                   ) -> None:
        """Set the arguments that are neither inputs nor weights; none by default."""

    def update_metric(self, eval_metric: metrics.EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric."""
        raise NotImplementedError

    def install_monitor(self, mon: Monitor) -> None:
        """Install a monitor."""
        raise NotImplementedError

    def prepare(self, data_batch: Any, sparse_row_id_fn: object = None) -> None:
        """Prepare for a batch; a module with several shapes switches to its shape."""

    # ------------------------------------------------------------------------------------- weights

    def set_params(self, arg_params: Weights, aux_params: Weights, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Set the weights."""
        self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def save_params(self, fname: str) -> None:
        """Write the weights to a file."""
        save(fname, prefix_names(*self.get_params()))

    def load_params(self, fname: str) -> None:
        """Set the weights from a file.

        Raises
        ------
        FileFormatError
            When the file holds something else.
        """
        self.set_params(*split(fname, load(fname)))

    # ------------------------------------------------------------------------------------- a batch

    def forward_backward(self, data_batch: Any) -> None:
        """Compute outputs and gradients of a training batch."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def _learn(self, data_batch: Any) -> None:
        """Compute outputs and gradients of a batch, and update the weights."""
        self.forward_backward(data_batch)
        self.update()

    def _measure(self, eval_metric: metrics.EvalMetric, data_batch: Any) -> None:
        """Add the last outputs to a metric, with the labels of a batch, or of a list of batches."""
        if isinstance(data_batch, list):
            self.update_metric(eval_metric, [batch.label for batch in data_batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, getattr(data_batch, "label", None))

    def _needs(self, *states: str) -> None:
        calls = {"binded": "bind", "params_initialized": "init_params", "optimizer_initialized": "init_optimizer"}
        missing = [calls[state] for state in states if not getattr(self, state)]
        if missing and not self.binded and "bind" not in missing:
            missing.insert(0, "bind")  # the other calls need a bound module
        if missing:
            raise OpError(f"the module is not ready: call {' and '.join(missing)} first")

    def _stays_bound(self, force_rebind: bool) -> bool:
        """Whether the module is bound and ``force_rebind`` is false; logs a warning in this case."""
        stays = self.binded and not force_rebind
        if stays:
            self.logger.warning("the module is bound already; force_rebind=True binds it again")
        return stays

    # -------------------------------------------------------------------------------------- epochs

    def score(self, eval_data: Batches, eval_metric: metrics.MetricLike, num_batch: int | None = None,
              batch_end_callback: Callbacks = None, score_end_callback: Callbacks = None, reset: bool = True,
              epoch: int = 0, sparse_row_id_fn: object = None) -> list[tuple[str, float]]:
        """Run batches and return pairs of name and value of a metric.

        Parameters
        ----------
        eval_data : DataIter
            The batches.
        eval_metric : EvalMetric, or an argument of ``metric.create``
            The metric.
        num_batch : int or None
            Largest number of batches.
        batch_end_callback, score_end_callback : function, or list of them
            Called with a ``BatchEndParam``.
        """
        self._needs("binded", "params_initialized")
        if reset:
            eval_data.reset()
        eval_metric = metrics.create(eval_metric)
        eval_metric.reset()
        if num_batch is not None:
            num_batch = whole_number("score: num_batch", num_batch)
        count = 0
        for nbatch, batch in enumerate(eval_data):
            if nbatch == num_batch:
                break
            self.prepare(batch)
            self.forward(batch, is_train=False)
            self._measure(eval_metric, batch)
            _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            count += 1
        _call(score_end_callback, BatchEndParam(epoch, count, eval_metric, locals()))
        return eval_metric.get_name_value()

    def iter_predict(self, eval_data: Batches, num_batch: int | None = None, reset: bool = True,
                     sparse_row_id_fn: object = None) -> Iterator[tuple[list[NDArray], int, DataBatch]]:
        """Outputs of each batch without padding, the number of the batch, and the batch."""
        self._needs("binded", "params_initialized")
        if reset:
            eval_data.reset()
        for nbatch, batch in enumerate(eval_data):
            if nbatch == num_batch:
                return
            self.prepare(batch)
            self.forward(batch, is_train=False)
            pad = getattr(batch, "pad", None) or 0
            yield [out[:out.shape[0] - pad] for out in self.get_outputs()], nbatch, batch

    def predict(self, eval_data: Any, num_batch: int | None = None, merge_batches: bool = True, reset: bool = True,
                always_output_list: bool = False, sparse_row_id_fn: object = None) -> Any:
        """The outputs for all batches.

        Parameters
        ----------
        eval_data : DataIter, NDArray or NumPy array
            The inputs; an array is one batch.
        merge_batches : bool
            Whether outputs of batches are concatenated; otherwise there is a list for each batch.
        always_output_list : bool
            Whether a single output is returned in a list, too.
        """
        if isinstance(eval_data, (NDArray, np.ndarray)):
            self._needs("binded", "params_initialized")
            batch = eval_data if isinstance(eval_data, NDArray) else array(eval_data)
            self.forward(DataBatch([batch]), is_train=False)
            outputs = [out.copy() for out in self.get_outputs()]
            return outputs[0] if len(outputs) == 1 and not always_output_list else outputs
        if not isinstance(eval_data, DataIter) and not hasattr(eval_data, "reset"):
            raise ArgumentError(f"predict: expected batches or an array, got {type(eval_data).__name__}")
        batches = [[out.copy() for out in outputs] for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset)]
        if not batches or not merge_batches:
            return batches
        if any(len(outputs) != len(batches[0]) for outputs in batches):
            raise ArgumentError("predict: batches differ in the number of outputs; set merge_batches=False")
        merged = [concatenate([outputs[i] for outputs in batches]) for i in range(len(batches[0]))]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(self, train_data: Batches, eval_data: Batches | None = None, eval_metric: metrics.MetricLike = "acc",
            epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None, kvstore: Store = "local",
            optimizer: str | Optimizer = "sgd", optimizer_params: Settings = (("learning_rate", 0.01),),
            eval_end_callback: Callbacks = None, eval_batch_end_callback: Callbacks = None,
            initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
            allow_missing: bool = False, force_rebind: bool = False,
            force_init: bool = False, begin_epoch: int = 0, num_epoch: int | None = None,
            validation_metric: metrics.MetricLike | None = None, monitor: Monitor | None = None,
            sparse_row_id_fn: object = None, *, progress: bool | None = None) -> None:
        """Train: bind, initialize weights and optimizer if that was not done, and iterate over the data.

        Parameters
        ----------
        train_data, eval_data : DataIter
            Batches for training, and for validation after each epoch.
        eval_metric, validation_metric : EvalMetric, or an argument of ``metric.create``
            Metrics of training and of validation; the second is the first by default.
        epoch_end_callback : function of epoch, symbol, weights and auxiliary states
            Called after each epoch.
        batch_end_callback, eval_end_callback, eval_batch_end_callback : function of ``BatchEndParam``
            Called after each batch, each validation, and each batch of a validation.
        optimizer, optimizer_params, kvstore
            See ``init_optimizer``.
        initializer, arg_params, aux_params, allow_missing, force_init
            See ``init_params``; uniform values up to 0.01 by default.
        begin_epoch, num_epoch : int
            Number of the first epoch, and the number after the last one.
        monitor : Monitor
            A monitor of the network's arrays.
        progress : bool, optional
            Whether a progress line is shown; the environment variable ``OPREG_PROGRESS`` sets the default, otherwise it
            is shown on a terminal.
        """
        if num_epoch is None:
            raise ArgumentError("fit: num_epoch is needed, the number of epochs")
        begin_epoch = whole_number("fit: begin_epoch", begin_epoch)
        num_epoch = whole_number("fit: num_epoch", num_epoch)
        sources: dict[str, object] = {"train_data": train_data, "eval_data": eval_data}
        for what, data in sources.items():
            if not hasattr(data, "reset") and (data is not None or what == "train_data"):
                raise ArgumentError(f"fit: {what}: expected an iterator over batches, such as io.NDArrayIter, got "
                                    f"{type(data).__name__}")
        self.bind(train_data.provide_data, train_data.provide_label, for_training=True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        if force_init or not self.params_initialized:
            self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        eval_metric = metrics.create(eval_metric)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        with TrainingLine(progress, train_data, num_epoch, _callback_list(batch_end_callback), self.logger) as line:
            for epoch in range(begin_epoch, num_epoch):
                began = time.perf_counter()
                values = self._epoch(epoch, train_data, eval_metric, line.begin(), monitor)
                line.clear()
                for name, value in values:
                    self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
                self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - began)
                arg_params, aux_params = self.get_params()
                self.set_params(arg_params, aux_params)  # gives all contexts equal auxiliary states
                _call(epoch_end_callback, epoch, self.symbol, arg_params, aux_params)
                scores: list[tuple[str, float]] = []
                if eval_data is not None:
                    scores = self.score(eval_data, validation_metric, score_end_callback=eval_end_callback, epoch=epoch,
                                        batch_end_callback=line.validation_callbacks(_callback_list(eval_batch_end_callback)))
                    for name, value in scores:
                        self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
                line.end(epoch, values, scores)
                train_data.reset()

    def _epoch(self, epoch: int, train_data: Batches, eval_metric: metrics.EvalMetric, batch_end_callback: Callbacks,
               monitor: Monitor | None) -> list[tuple[str, float]]:
        """Train on all batches; returns names and values of the metric, read before callbacks may reset it."""
        eval_metric.reset()
        values: list[tuple[str, float]] | None = None
        batches, nbatch = iter(train_data), 0
        following = next(batches, None)
        while following is not None:
            data_batch = following
            if monitor is not None:
                monitor.tic()
            self.prepare(data_batch)
            self._learn(data_batch)
            self._measure(eval_metric, data_batch)
            following = next(batches, None)
            if following is None:
                values = eval_metric.get_global_name_value()
            if monitor is not None:
                monitor.toc_print()
            if batch_end_callback is not None:
                _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            nbatch += 1
        if values is None:
            raise ArgumentError("fit: train_data has no batches. If it is at its end, call reset()")
        return values

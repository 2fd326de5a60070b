"""FeedForward: MXNet's interface before ``Module``, which trains and predicts in one call each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.context import Context, cpu
from opreg.ndarray.creation import zeros
from opreg.ndarray.ndarray import NDArray

from ..core.settings import Checked
from ..core.states import beginnings
from ..data.batches import DataDesc, DataIter, Descriptions, NDArrayIter
from ..errors import ArgumentError, ShapeError
from ..training_line import TrainingLine
from . import metric as metrics
from .base_module import SMALL, Callbacks, Logger, Store, Weights, _call, _callback_list
from .bucketing_module import BucketingModule
from .callback import LogValidationMetricsCallback
from .checkpoint import BatchEndParam, load_checkpoint, save_checkpoint
from .executor_manager import _check_arguments, _load_data
from .initializer import InitDesc, InitializerLike, create
from .symbol_module import Module

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor
    from opreg.symbol.symbol import Symbol

    from .base_optimizer import Optimizer
    from .monitor import Monitor

__all__ = ["FeedForward"]

_LOGGED = LogValidationMetricsCallback()


class FeedForward(Checked):
    """A network with one input and one label, which ``fit`` trains and ``predict`` runs.

    Parameters
    ----------
    symbol : Symbol, or function of a bucket key
        The network.
    ctx : Context or list of Context
        The devices.
    num_epoch, begin_epoch : int
        The number after the last epoch, and the number of the first.
    epoch_size : int or None
        Number of batches of an epoch; all by default.
    optimizer : str or Optimizer
        The optimizer; further keywords are its settings.
    initializer : Initializer
        Initial values of weights.
    numpy_batch_size : int
        Batch size for arrays.
    arg_params, aux_params : dict of str to NDArray
        Initial weights and auxiliary states.
    allow_extra_params : bool
        Whether names that the network lacks are allowed.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc"),
    ...                                     name="softmax")
    >>> model = FeedForward(net, num_epoch=300, learning_rate=0.3, numpy_batch_size=4)
    >>> model.fit(np.array([[0], [1], [2], [3.0]]), np.array([1, 3, 5, 7.0]), eval_metric="mse")
    >>> model.predict(np.array([[4.0]])).round(2).tolist()
    [[9.0]]
    """

    def __init__(self, symbol: Symbol | Callable[[Any], Symbol], ctx: Context | Sequence[Context] | None = None,
                 num_epoch: int | None = None, epoch_size: int | None = None, optimizer: str | Optimizer = "sgd",
                 initializer: InitializerLike = SMALL, numpy_batch_size: int = 128, arg_params: Weights = None,
                 aux_params: Weights = None, allow_extra_params: bool = False, begin_epoch: int = 0, **kwargs: Any):
        self.symbol: Any = symbol if hasattr(symbol, "list_arguments") else None
        self.sym_gen: Any = None if self.symbol is not None else symbol
        if self.symbol is None and not callable(symbol):
            raise ArgumentError("FeedForward: expected a Symbol, or a function that makes one, got "
                                f"{type(symbol).__name__}")
        self.ctx = [cpu()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.optimizer, self.kwargs = optimizer, dict(kwargs)
        self.initializer, self.numpy_batch_size = initializer, numpy_batch_size
        self.arg_params: Any = arg_params
        self.aux_params: Any = aux_params
        self.allow_extra_params = allow_extra_params
        self.argument_checked = False
        self._pred_exec: Executor | None = None
        if self.symbol is not None:
            self._check_arguments()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pred_exec": None}

    def _check_arguments(self) -> None:
        """Refuse a symbol with duplicate names, and drop weights that it lacks if ``allow_extra_params``."""
        if self.argument_checked:
            return
        _check_arguments(self.symbol)
        self.argument_checked = True
        if self.allow_extra_params:
            for what, names in (("arg_params", self.symbol.list_arguments()),
                                ("aux_params", self.symbol.list_auxiliary_states())):
                weights = getattr(self, what)
                setattr(self, what, weights and {name: value for name, value in weights.items() if name in names})

    @staticmethod
    def _is_data_arg(name: str) -> bool:
        return name.endswith(("data", "label"))

    def _init_params(self, inputs: Descriptions, overwrite: bool = False) -> tuple[list[str], list[str], list[str]]:
        """Weights and auxiliary states for inputs like these: the existing ones, or initialized ones."""
        described = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in inputs]
        inputs_by_name = {desc.name: desc for desc in described if desc.name in self.symbol.list_arguments()}
        shapes = self.symbol.infer_shape(**{name: desc.shape for name, desc in inputs_by_name.items()})
        dtypes = self.symbol.infer_type(**{name: desc.dtype for name, desc in inputs_by_name.items()})
        fill, arg_names = create(self.initializer or SMALL), self.symbol.list_arguments()
        aux_names, states = self.symbol.list_auxiliary_states(), beginnings(self.symbol._graph())

        def arrays_of(names: Sequence[str], own_shapes: Any, own_dtypes: Any, present: Mapping[str, NDArray] | None
                 ) -> dict[str, NDArray]:
            values = {}
            for name, shape, dtype in zip(names, own_shapes, own_dtypes):
                if name in inputs_by_name:
                    continue
                values[name] = zeros(shape, dtype=dtype)
                if present and name in present and not overwrite:
                    if present[name].shape != shape:
                        raise ShapeError(f"FeedForward: {name} has shape {present[name].shape}, expected {shape}")
                    values[name][:] = present[name]
                else:
                    desc = InitDesc(name, {"__init__": states[name]} if name in states else None)
                    desc.is_state = names is aux_names
                    fill(desc, values[name])
            return values

        self.arg_params = arrays_of(arg_names, shapes[0], dtypes[0], self.arg_params)
        self.aux_params = arrays_of(aux_names, shapes[2], dtypes[2], self.aux_params)
        return arg_names, list(self.arg_params), aux_names

    # -------------------------------------------------------------------------------------- data

    def _init_iter(self, X: Any, y: Any, is_train: bool) -> Any:
        """An iterator over batches, from an iterator or arrays."""
        if not isinstance(X, (np.ndarray, NDArray)):
            if not isinstance(X, DataIter) and not hasattr(X, "provide_data"):
                raise ArgumentError(f"X: expected a DataIter, an NDArray or a NumPy array, got {type(X).__name__}")
            return X
        if y is None:
            if is_train:
                raise ArgumentError("y: labels are needed beside an array")
            y = np.zeros(X.shape[0])
        if not isinstance(y, (np.ndarray, NDArray)):
            raise ArgumentError(f"y: expected an array, since X is one, got {type(y).__name__}")
        if X.shape[0] != y.shape[0]:
            raise ShapeError(f"X has {X.shape[0]} samples, y has {y.shape[0]}")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        if y.ndim != 1:
            raise ShapeError(f"y: expected a label for each sample, got the shape {y.shape}")
        size = min(X.shape[0], self.numpy_batch_size)
        return NDArrayIter(X, y, size, shuffle=is_train, last_batch_handle="roll_over" if is_train else "pad")

    def _init_eval_iter(self, eval_data: Any) -> Any:
        if not isinstance(eval_data, (tuple, list)):
            if eval_data is not None and not isinstance(eval_data, DataIter) and not hasattr(eval_data, "reset"):
                raise ArgumentError("eval_data: expected a DataIter, or a pair of data and labels, got "
                                    f"{type(eval_data).__name__}")
            return eval_data
        if len(eval_data) != 2 or eval_data[0] is None:
            raise ArgumentError("eval_data: expected a DataIter, or a pair of data and labels")
        data, label = [np.array(each) if isinstance(each, list) else each for each in eval_data]
        return data if label is None and isinstance(data, DataIter) else self._init_iter(data, label, is_train=True)

    # ------------------------------------------------------------------------------------ asking

    def _init_predictor(self, input_shapes: Descriptions, type_dict: Mapping[str, Any] | None = None) -> Executor:
        """An executor for inputs like these, with the weights."""
        shapes = {**{name: value.shape for name, value in self.arg_params.items()}, **dict(input_shapes)}
        executor = self._pred_exec
        if executor is None or self.symbol.infer_shape(**shapes)[0] != [array.shape for array in executor.arg_arrays]:
            executor = self._pred_exec = self.symbol.simple_bind(self.ctx[0], grad_req="null", type_dict=type_dict,
                                                                 **shapes)
        executor.copy_params_from(self.arg_params, self.aux_params)
        return executor

    def _predictions(self, X: Any, num_batch: int | None) -> Iterator[tuple[Any, list[NDArray]]]:
        """The batches, each with its outputs."""
        if self.arg_params is None:
            raise ArgumentError("FeedForward: there are no weights yet; fit it, or give it arg_params")
        types = {name: value.dtype for name, value in self.arg_params.items()}
        types.update({desc[0]: getattr(desc, "dtype", np.float32) for desc in X.provide_data})
        executor = self._init_predictor(X.provide_data, types)
        inputs = [executor.arg_dict[desc[0]] for desc in X.provide_data]
        for i, batch in enumerate(X):
            if i == num_batch:
                return
            _load_data(batch, inputs)
            yield batch, executor.forward(is_train=False)

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """The outputs for all samples, as NumPy arrays; a list for several.

        Parameters
        ----------
        X : DataIter, NDArray or NumPy array
            The inputs.
        num_batch : int or None
            Largest number of batches.
        return_data : bool
            Whether data and labels are returned, too.
        """
        X = self._init_iter(X, None, is_train=False)
        if reset:
            X.reset()
        rows: list[list[list[np.ndarray]]] = []
        for batch, outputs in self._predictions(X, num_batch):
            kinds = [outputs, batch.data, batch.label or []] if return_data else [outputs]
            rows.append([[array[:array.shape[0] - (batch.pad or 0)].asnumpy() for array in kind] for kind in kinds])
        if not rows:
            raise ArgumentError("predict: there are no batches. If the iterator is at its end, call reset()")
        joined = [[np.concatenate(arrays) for arrays in zip(*kind)] for kind in zip(*rows)]
        results = [kind[0] if len(kind) == 1 else kind for kind in joined]
        return tuple(results) if return_data else results[0]

    def score(self, X: Any, eval_metric: metrics.MetricLike = "acc", num_batch: int | None = None,
              batch_end_callback: Callbacks = None, reset: bool = True) -> Any:
        """The value of a metric over batches."""
        metric = metrics.create(eval_metric)
        X = self._init_iter(X, None, is_train=False)
        if reset:
            X.reset()
        for i, (batch, outputs) in enumerate(self._predictions(X, num_batch)):
            metric.update(batch.label, outputs)
            _call(batch_end_callback, BatchEndParam(0, i, metric, locals()))
        return metric.get()[1]

    # ---------------------------------------------------------------------------------- training

    def fit(self, X: Any, y: Any = None, eval_data: Any = None, eval_metric: metrics.MetricLike = "acc",
            epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None, kvstore: Store = "local",
            logger: Logger | None = None, work_load_list: Sequence[float] | None = None, monitor: Monitor | None = None,
            eval_end_callback: Callbacks = _LOGGED, eval_batch_end_callback: Callbacks = None, *,
            progress: bool | None = None) -> None:
        """Train on batches, or on arrays of samples and labels, which are shuffled and divided into batches.

        Parameters
        ----------
        X, y
            A DataIter; or an array of samples, and an array of labels.
        eval_data : DataIter, or pair of data and labels
            Data for validation after each epoch.
        eval_metric : EvalMetric, or an argument of ``metric.create``
            The metric of training and validation.
        epoch_end_callback : function of epoch, symbol, weights and auxiliary states
            Called after each epoch.
        batch_end_callback, eval_end_callback, eval_batch_end_callback : function of ``BatchEndParam``
            Called after each batch, each validation, and each batch of a validation.
        kvstore, work_load_list, progress
            See ``Module``.
        """
        if self.num_epoch is None:
            raise ArgumentError("FeedForward: num_epoch is needed, the number of epochs")
        data, eval_data = self._init_iter(X, y, is_train=True), self._init_eval_iter(eval_data)
        logger = logging if logger is None else logger
        if self.sym_gen is not None:
            self.symbol = self.sym_gen(data.default_bucket_key)
            self._check_arguments()
        self._init_params([*data.provide_data, *data.provide_label])
        metric, self._pred_exec = metrics.create(eval_metric), None
        module = self._module(data, logger, work_load_list)
        module.bind(data.provide_data, data.provide_label)
        if monitor is not None:
            module.install_monitor(monitor)
        module.set_params(self.arg_params, self.aux_params)
        module.init_optimizer(kvstore, self.optimizer, self.kwargs)
        data.reset()
        with TrainingLine(progress, data, self.num_epoch, _callback_list(batch_end_callback), logger) as line:
            for epoch in range(self.begin_epoch, self.num_epoch):
                began = time.perf_counter()
                self._epoch(epoch, module, data, metric, line.begin(), monitor, logger)
                line.clear()
                values, scores = line.values(metric), line.values(None)
                logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - began)
                if epoch_end_callback or epoch + 1 == self.num_epoch:
                    for weights, now in zip((self.arg_params, self.aux_params), module.get_params()):
                        for name, value in now.items():
                            weights[name][:] = value
                _call(epoch_end_callback, epoch, self.symbol, self.arg_params, self.aux_params)
                if eval_data is not None:
                    module.score(eval_data, metric, epoch=epoch, score_end_callback=eval_end_callback,
                                 batch_end_callback=line.validation_callbacks(_callback_list(eval_batch_end_callback)))
                    eval_data.reset()
                    scores = line.values(metric)
                line.end(epoch, values, scores)

    def _module(self, data: Any, logger: Logger, work_load_list: Sequence[float] | None) -> Any:
        inputs, labels = [desc[0] for desc in data.provide_data], [desc[0] for desc in data.provide_label]
        if self.sym_gen is not None:
            return BucketingModule(lambda key: (self.sym_gen(key), inputs, labels), data.default_bucket_key, logger,
                                   self.ctx, work_load_list)
        return Module(self.symbol, inputs, labels, logger, self.ctx, work_load_list)

    def _epoch(self, epoch: int, module: Any, data: Any, metric: metrics.EvalMetric, batch_end_callback: Callbacks,
               monitor: Monitor | None, logger: Any) -> None:
        """Train on ``epoch_size`` batches, or on all; the data restart when they end."""
        metric.reset()
        nbatch = empty = 0
        while True:
            began = nbatch
            for data_batch in data:
                if monitor is not None:
                    monitor.tic()
                module._learn(data_batch)
                if monitor is not None:
                    monitor.toc_print()
                module.update_metric(metric, data_batch.label)
                nbatch += 1
                _call(batch_end_callback, BatchEndParam(epoch, nbatch, metric, locals()))
                if nbatch == self.epoch_size:
                    return
            empty = empty + 1 if nbatch == began else 0
            if empty > 1:  # before the first batch, the data may still be at the end of the last epoch
                raise ArgumentError("fit: there are no batches")
            logger.info("Epoch[%d] Resetting Data Iterator", epoch)
            data.reset()
            if self.epoch_size is None:
                return

    # ------------------------------------------------------------------------------------- files

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write symbol and weights, as ``save_checkpoint``; by default under the number of epochs trained."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise ArgumentError("save: the number of the epoch is needed")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Context | Sequence[Context] | None = None, **kwargs: Any) -> FeedForward:
        """A network from a checkpoint; keywords are arguments of the constructor."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(symbol: Symbol, X: Any, y: Any = None, ctx: Context | Sequence[Context] | None = None,
               num_epoch: int | None = None, epoch_size: int | None = None, optimizer: str | Optimizer = "sgd",
               initializer: InitializerLike = SMALL, eval_data: Any = None, eval_metric: metrics.MetricLike = "acc",
               epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None, kvstore: Store = "local",
               logger: Logger | None = None, work_load_list: Sequence[float] | None = None,
               eval_end_callback: Callbacks = _LOGGED, eval_batch_end_callback: Callbacks = None, **kwargs: Any
               ) -> FeedForward:
        """Make a network and train it: the constructor and ``fit`` in one."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(X, y, eval_data, eval_metric, epoch_end_callback, batch_end_callback, kvstore, logger,
                  work_load_list, eval_end_callback=eval_end_callback, eval_batch_end_callback=eval_batch_end_callback)
        return model

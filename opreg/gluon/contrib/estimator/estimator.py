"""Estimator: a training loop with event handlers."""

from __future__ import annotations

import copy
import logging
import sys
from typing import Any

from opreg.errors import ArgumentError, UnusedError, warn
from opreg.ndarray.context import Context, cpu, gpu, num_gpus

from ....core.settings import CheckedMethods
from ....train.metric import Accuracy, EvalMetric
from ....train.metric import Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss, SoftmaxCrossEntropyLoss
from ...trainer import Trainer
from .batch_processor import BatchProcessor
from .event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    handlers_of,
    metrics_of,
)

__all__ = ["Estimator"]


class Estimator(CheckedMethods):
    """A network with its loss, metrics and trainer, and loops that train and evaluate it.

    Parameters
    ----------
    net : Block
        The network.
    loss : Loss
        The loss.
    train_metrics, val_metrics : EvalMetric or list of EvalMetric
        Metrics of training and of evaluation; by default the loss, and the accuracy.
    initializer : Initializer
        Initializer of parameters that are not initialized yet.
    trainer : Trainer
        The trainer; by default SGD with a learning rate of 0.001.
    context : Context or list of Context
        The devices; by default the first GPU, or the host.
    val_net, val_loss : Block, Loss
        Network and loss used in evaluation instead.
    batch_processor : BatchProcessor
        The computation on one batch.

    Attributes
    ----------
    logger : logging.Logger
        Logger that handlers write to, on standard output by default.

    Raises
    ------
    ArgumentError
        When a loss, metric, trainer or context has the wrong type.

    Examples
    --------
    >>> import opreg as mx
    >>> from opreg import gluon
    >>> net = gluon.nn.Dense(1, in_units=2)
    >>> net.initialize(mx.init.Zero())
    >>> trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    >>> estimator = Estimator(net, gluon.loss.L2Loss(), trainer=trainer)
    >>> estimator.logger.setLevel("WARNING")
    >>> batches = gluon.data.DataLoader(gluon.data.ArrayDataset(mx.nd.ones((8, 2)), mx.nd.ones(8)), 4)
    >>> estimator.fit(batches, epochs=20)
    >>> net(mx.nd.ones((1, 2))).asnumpy().round(2)
    array([[1.]], dtype=float32)
    """

    def __init__(self, net: Any, loss: Loss, train_metrics: Any = None, val_metrics: Any = None,
                 initializer: Any = None, trainer: Trainer | None = None,
                 context: Context | list[Context] | None = None, val_net: Any = None, val_loss: Loss | None = None,
                 batch_processor: Any = None):
        self.net, self.val_net = net, net if val_net is None else val_net
        self.loss = self._check_loss(loss)
        self.val_loss = self.loss if val_loss is None else self._check_loss(val_loss)
        self._train_metrics, self._val_metrics = metrics_of(train_metrics), metrics_of(val_metrics)
        self._name_metrics()
        self.logger = logging.Logger("Estimator", logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = self._contexts(context)
        self._initialize(initializer)
        if trainer is None:
            warn("No trainer specified: SGD with a learning rate of 0.001 is used")
            trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
        checked_trainer: object = trainer
        if not isinstance(checked_trainer, Trainer):
            raise ArgumentError(f"Estimator: trainer={trainer!r}: expected a gluon.Trainer")
        self.trainer = trainer
        self.batch_processor = BatchProcessor() if batch_processor is None else batch_processor
        for method in ("fit_batch", "evaluate_batch"):
            if not callable(getattr(self.batch_processor, method, None)):
                raise ArgumentError(f"Estimator: the batch_processor has no {method}")
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0

    @staticmethod
    def _check_loss(loss: object) -> Loss:
        if not isinstance(loss, Loss):
            raise ArgumentError(f"Estimator: loss={loss!r}: expected a loss of gluon.loss")
        return loss

    def _contexts(self, context: object) -> list[Context]:
        gpu_count = num_gpus()
        if context is None or context == []:
            if gpu_count > 1:
                warn("Estimator: gpu(0) alone is used; to use others, pass context=[mx.gpu(0), mx.gpu(1)]")
            return [gpu(0)] if gpu_count else [cpu()]
        several = [context] if isinstance(context, Context) else context
        if not isinstance(several, list) or not all(isinstance(place, Context) for place in several):
            raise ArgumentError(f"Estimator: context={context!r}: expected a Context, or a list of them")
        for place in several:
            if not place.device_type.startswith("cpu") and place.device_id >= gpu_count:
                raise UnusedError(f"Estimator: {place} does not exist: there are {gpu_count} GPUs")
        return several

    def _initialize(self, initializer: Any) -> None:
        try:
            for parameter in self.net.collect_params().values():
                parameter.list_ctx()
        except RuntimeError:
            self.net.initialize(ctx=self.context, **({} if initializer is None else {"init": initializer}))
            return
        if initializer is not None:
            warn("Network already fully initialized: the initializer is ignored; "
                 "net.initialize(…, force_reinit=True) initializes it again")

    def _name_metrics(self) -> None:
        if not self._train_metrics:
            if isinstance(self.loss, SoftmaxCrossEntropyLoss):
                self._train_metrics.append(Accuracy())
            self._train_metrics.append(LossMetric(self.loss.name.rstrip("0123456789")))
        for metric in self._train_metrics:
            metric.name = f"training {metric.name}"
        if not self._val_metrics:
            self._val_metrics = copy.deepcopy(self._train_metrics)
        for metric in self._val_metrics:
            metric.name = f"validation {metric.name.removeprefix('training ')}"

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """The metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """The metrics of evaluation."""
        return self._val_metrics

    @staticmethod
    def _refuse_others(what: str, batches: object) -> None:
        if not isinstance(batches, DataLoader):
            raise ArgumentError(f"Estimator: {what}: expected a gluon.data.DataLoader, got {type(batches).__name__}")

    def evaluate(self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Evaluate the network; ``val_metrics`` holds the results.

        Parameters
        ----------
        val_data : DataLoader
            Batches of data and labels.
        batch_axis : int
            The axis of samples.
        event_handlers : EventHandler or list of EventHandler
            Handlers besides the default ones for metrics and logging.
        """
        self._refuse_others("val_data", val_data)
        for metric in self.val_metrics:
            metric.reset()
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(
            self._add_default_handlers(event_handlers, self.val_metrics, self.val_metrics, []))
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in epoch_end:
            handler.epoch_end(self)

    def fit(self, train_data: DataLoader, val_data: DataLoader | None = None, epochs: int | None = None,
            event_handlers: Any = None, batches: int | None = None, batch_axis: int = 0) -> None:
        """Train the network for a number of epochs or batches.

        Parameters
        ----------
        train_data, val_data : DataLoader
            Batches of data and labels for training, and for evaluation after each epoch.
        epochs, batches : int
            Number of epochs, or of batches; exactly one of the two has to be given.
        event_handlers : EventHandler or list of EventHandler
            Handlers besides the default ones for stopping, updates, metrics, validation and logging; a given handler
            replaces the default one of its class.
        batch_axis : int
            The axis of samples.

        Raises
        ------
        ArgumentError
            When both or none of ``epochs`` and ``batches`` are given; for data of another type; and for handlers with
            metrics that are not the estimator's.
        """
        self._refuse_others("train_data", train_data)
        if (not epochs) == (not batches):
            raise ArgumentError(f"Estimator: epochs={epochs}, batches={batches}: give either epochs or batches")
        self.max_epoch, self.max_batch, self.batch_axis = epochs, batches, batch_axis
        train_begin, epoch_begin, batch_begin, batch_end, epoch_end, train_end = self._categorize_handlers(
            self._prepare_default_handlers(val_data, event_handlers))
        for handler in train_begin:
            handler.train_begin(self)
        stops = False
        while not stops:
            for handler in epoch_begin:
                handler.epoch_begin(self)
            for batch in train_data:
                for handler in batch_begin:
                    handler.batch_begin(self, batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                ends = [handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
                        for handler in batch_end]  # call all handlers
                if any(ends):
                    break
            ends = [handler.epoch_end(self) for handler in epoch_end]
            stops = any(ends)
        for handler in train_end:
            handler.train_end(self)

    def _prepare_default_handlers(self, val_data: DataLoader | None, event_handlers: Any) -> list[Any]:
        defaults: list[EventHandler] = [StoppingHandler(self.max_epoch, self.max_batch), GradientUpdateHandler()]
        if val_data is not None:
            defaults.append(ValidationHandler(val_data, self.evaluate))
        known_metrics = self.train_metrics + self.val_metrics
        return self._add_default_handlers(event_handlers, self.train_metrics, known_metrics, defaults)

    def _add_default_handlers(self, event_handlers: Any, metrics: list[EvalMetric], known_metrics: list[EvalMetric],
                              defaults: list[EventHandler]) -> list[Any]:
        """Handlers in their order: the given ones, and the default ones whose class is not among them."""
        handlers = handlers_of(event_handlers)
        for default in (*defaults, MetricHandler(metrics), LoggingHandler(metrics=metrics)):
            if isinstance(default, StoppingHandler) or not any(isinstance(each, type(default)) for each in handlers):
                handlers.append(default)
        for handler in handlers:
            for metric in getattr(handler, "metrics", None) or ():
                if not any(metric is known for known in known_metrics):
                    raise ArgumentError(f"Estimator: a {type(handler).__name__} has a metric {metric.name!r} that is "
                                        f"not one of the estimator's train_metrics and val_metrics")
        return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))

    def _categorize_handlers(self, handlers: list[Any]) -> list[list[Any]]:
        """Handlers by event."""
        return [[handler for handler in handlers if isinstance(handler, event)]
                for event in (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)]

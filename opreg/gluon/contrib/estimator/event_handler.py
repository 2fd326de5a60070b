"""Event handlers of an estimator.

A handler derives from the classes of its events. Handlers of an event are called in ascending order of ``priority``.
Training stops when a handler returns a true value at the end of a batch or epoch.
"""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.settings import Checked
from opreg.errors import ArgumentError, OpError, warn

from ....train.metric import CompositeEvalMetric, EvalMetric, Loss

__all__ = ["EventHandler", "TrainBegin", "TrainEnd", "EpochBegin", "EpochEnd", "BatchBegin", "BatchEnd",
           "StoppingHandler", "MetricHandler", "ValidationHandler", "LoggingHandler", "CheckpointHandler",
           "EarlyStoppingHandler", "GradientUpdateHandler", "handlers_of", "metrics_of"]


class EventHandler(Checked):
    """The base class of handlers."""


class TrainBegin(EventHandler):
    """Base of handlers called at the begin of training."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Handle the event."""


class TrainEnd(EventHandler):
    """Base of handlers called at the end of training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Handle the event."""


class EpochBegin(EventHandler):
    """Base of handlers called at the begin of each epoch."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Handle the event."""


class EpochEnd(EventHandler):
    """Base of handlers called at the end of each epoch."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Handle the event; returns whether training stops."""
        return False


class BatchBegin(EventHandler):
    """Base of handlers called at the begin of each batch."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Handle the event."""


class BatchEnd(EventHandler):
    """Base of handlers called at the end of each batch, with keywords ``batch``, ``pred``, ``label`` and ``loss``."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Handle the event; returns whether training stops."""
        return False


def handlers_of(handlers: Any) -> list[Any]:
    """Handlers as a list.

    Raises
    ------
    ArgumentError
        When one of them is no handler.
    """
    several = [handlers] if isinstance(handlers, EventHandler) else list(handlers or [])
    for handler in several:
        if not isinstance(handler, EventHandler):
            raise ArgumentError(f"event_handlers: expected handlers, got {handler!r}")
    return several


def metrics_of(metrics: Any) -> list[EvalMetric]:
    """Metrics as a flat list; a composite metric is replaced by its parts.

    Raises
    ------
    ArgumentError
        When one of them is no metric.
    """
    if isinstance(metrics, CompositeEvalMetric):
        return [part for inner in metrics.metrics for part in metrics_of(inner)]
    several = [metrics] if isinstance(metrics, EvalMetric) else metrics or []
    if isinstance(several, str) or not all(isinstance(metric, EvalMetric) for metric in several):
        raise ArgumentError(f"expected a metric or a list of them, got {metrics!r}")
    return list(several)


def _metrics_text(metrics: Sequence[EvalMetric]) -> str:
    return ", ".join("{}: {:.4f}".format(*metric.get()) for metric in metrics)


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Stops training after ``max_epoch`` epochs, or ``max_batch`` batches.

    Parameters
    ----------
    max_epoch, max_batch : int
        Number of epochs and batches; the estimator's own override them.
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None):
        self.max_epoch, self.max_batch = max_epoch, max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Updates metrics after each batch, and resets them at each epoch.

    Parameters
    ----------
    metrics : EvalMetric or list of EvalMetric
        The metrics.
    priority : int
        Priority among handlers.
    """

    def __init__(self, metrics: Any, priority: float = -1000):
        self.metrics, self.priority = metrics_of(metrics), priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates the network after a number of epochs or batches.

    Parameters
    ----------
    val_data : DataLoader
        Data of the evaluation.
    eval_fn : callable
        The evaluation, such as ``Estimator.evaluate``.
    epoch_period, batch_period : int
        Number of epochs, and of batches, between two evaluations.
    priority : int
        Priority among handlers.
    event_handlers : list of EventHandler
        Handlers of evaluation.
    """

    def __init__(self, val_data: Any, eval_fn: Callable[..., Any], epoch_period: int | None = 1,
                 batch_period: int | None = None, priority: float = -1000, event_handlers: Any = None):
        self.val_data, self.eval_fn, self.event_handlers = val_data, eval_fn, event_handlers
        self.epoch_period, self.batch_period, self.priority = epoch_period, batch_period, priority
        self.current_batch = self.current_epoch = 0

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch = self.current_epoch = 0

    def _evaluate(self, estimator: Any, count: int, period: int | None) -> None:
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        self._evaluate(estimator, self.current_batch, self.batch_period)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        self._evaluate(estimator, self.current_epoch, self.epoch_period)


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs the progress of training.

    Parameters
    ----------
    log_interval : int or "epoch"
        Number of batches between two messages, or "epoch" for messages about epochs only.
    metrics : EvalMetric or list of EvalMetric
        Metrics to log.
    priority : float
        Priority among handlers.
    """

    def __init__(self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = np.inf):
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ArgumentError(f"LoggingHandler: log_interval={log_interval!r}: expected a number of batches, or "
                                "'epoch'")
        self.metrics, self.log_interval, self.priority = metrics_of(metrics), log_interval, priority
        self._begin()

    def _begin(self) -> None:
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0
        self.train_start = self.epoch_start = self.batch_start = time.time()

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._begin()
        trainer = estimator.trainer
        estimator.logger.info("Training begin: using optimizer %s with current learning rate %.4f ",
                              type(trainer.optimizer).__name__, trainer.learning_rate)
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        estimator.logger.info("Train finished using total %ds with %d epochs. %s", time.time() - self.train_start,
                              self.current_epoch, _metrics_text(self.metrics))

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self.log_interval, int):
            self.log_interval_time += time.time() - self.batch_start
            self.processed_samples += kwargs["batch"][0].shape[0]
            if self.batch_index % self.log_interval == 0:
                estimator.logger.info("[Epoch %d][Batch %d][Samples %s] time/interval: %.3fs %s", self.current_epoch,
                                      self.batch_index, self.processed_samples, self.log_interval_time,
                                      _metrics_text(self.metrics))
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info("[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch,
                                  estimator.trainer.learning_rate)
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        estimator.logger.info("[Epoch %d] Finished in %.3fs, %s", self.current_epoch, time.time() - self.epoch_start,
                              _metrics_text(self.metrics))
        self.current_epoch += 1
        self.batch_index = 0


def _better(what: str, monitor: Any, mode: str) -> Callable[[float, float], bool]:
    """A comparison of two values of a metric: whether the first is better."""
    if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
        raise ArgumentError(f"{what}: monitor={monitor!r}: expected one metric, of the estimator's train_metrics or "
                            "val_metrics")
    if mode not in ("auto", "min", "max"):
        warn(f"{what}: mode={mode!r}: expected 'auto', 'min' or 'max'; it is taken as 'auto'", RuntimeWarning)
        mode = "auto"
    if mode == "auto":
        mode = "max" if any(word in str(monitor.get()[0]).lower() for word in ("acc", "f1")) else "min"
    return operator.gt if mode == "max" else operator.lt


def _worst(better: Callable[[float, float], bool]) -> float:
    return np.inf if better is operator.lt else -np.inf


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and trainer states during training, and the graph of a hybridized network.

    Parameters
    ----------
    model_dir, model_prefix : str
        The folder, and the prefix of the file names: ``<prefix>-epoch<n>batch<m>.params`` and ``.states``,
        ``<prefix>-best.params``, ``<prefix>-symbol.json``.
    monitor : EvalMetric
        The metric that decides which epoch is the best.
    verbose : int
        Whether saving is logged.
    save_best : bool
        Whether the best parameters are saved, too.
    mode : {"auto", "min", "max"}
        Whether a smaller or a larger metric is better; "auto" chooses larger for accuracies and F1 scores, smaller for
        others.
    epoch_period, batch_period : int
        Number of epochs, and of batches, between two checkpoints.
    max_checkpoints : int
        Number of checkpoints kept; older ones are deleted.
    resume_from_checkpoint : bool
        Whether training continues from the last checkpoint.
    """

    def __init__(self, model_dir: str | os.PathLike, model_prefix: str = "model", monitor: Any = None, verbose: int = 0,
                 save_best: bool = False, mode: str = "auto", epoch_period: int | None = 1,
                 batch_period: int | None = None, max_checkpoints: int = 5, resume_from_checkpoint: bool = False):
        self.model_dir, self.model_prefix = os.fspath(model_dir), model_prefix
        self.monitor, self.verbose, self.save_best = monitor, verbose, save_best
        self.epoch_period, self.batch_period, self.max_checkpoints = epoch_period, batch_period, max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.current_batch = self.current_epoch = 0
        self.trained_epoch = self.trained_batch = -1
        self.saved_checkpoints: list[str] = []
        if save_best:
            self.monitor_op = _better("CheckpointHandler", monitor, mode)
            self.best = _worst(self.monitor_op)
        os.makedirs(self.model_dir, exist_ok=True)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch = self.current_epoch = 0
        self.trained_epoch = self.trained_batch = -1
        if self.save_best:
            self.best = _worst(self.monitor_op)
        if self.resume_from_checkpoint:
            by = self.batch_period if estimator.max_batch else self.epoch_period
            counts_other = self.epoch_period if estimator.max_batch else self.batch_period
            if not by or counts_other:
                raise ArgumentError("CheckpointHandler: to resume from checkpoints, save them after batches if the "
                                    "estimator counts batches, and after epochs if it counts epochs; set the other "
                                    "period to None")
            self._resume(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator)
        self.current_epoch += 1

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, f"{self.model_prefix}-{name}")

    def _save_symbol(self, estimator: Any) -> None:
        graph = getattr(estimator.net, "_cached_graph", None)
        if graph:
            graph[1].save(self._path("symbol.json"))
        else:
            estimator.logger.info("The graph of the network is not written to %s: it is no HybridBlock, or is not "
                                  "hybridized", self._path("symbol.json"))

    def _save(self, estimator: Any) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            epoch += self.trained_epoch + 1
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        name = f"epoch{epoch}batch{batch}"
        self._write(estimator, name)
        self.saved_checkpoints.append(name)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            old = self.saved_checkpoints.pop(0)
            for kind in ("params", "states"):
                if os.path.exists(self._path(f"{old}.{kind}")):
                    os.remove(self._path(f"{old}.{kind}"))
        if self.verbose:
            estimator.logger.info("[Epoch %d] CheckpointHandler: %d batches, written to %s", self.current_epoch,
                                  self.current_batch + 1, self._path(name))
        if self.save_best:
            self._save_best(estimator)

    def _save_best(self, estimator: Any) -> None:
        name, value = self.monitor.get()
        if np.isnan(value):
            warn(f"CheckpointHandler: {name} has no value: is it one of the estimator's train_metrics and val_metrics?",
                 RuntimeWarning)
        elif self.monitor_op(value, self.best):
            self._write(estimator, "best")
            if self.verbose:
                estimator.logger.info("[Epoch %d] CheckpointHandler: %s went from %0.5f to %0.5f, written to %s",
                                      self.current_epoch, name, self.best, value, self._path("best"))
            self.best = value

    def _write(self, estimator: Any, name: str) -> None:
        estimator.net.save_parameters(self._path(f"{name}.params"))
        estimator.trainer.save_states(self._path(f"{name}.states"))

    def _resume(self, estimator: Any) -> None:
        pattern = re.compile(rf"{re.escape(self.model_prefix)}-(epoch(\d+)batch(\d+))\.params")
        matches = [match for match in map(pattern.fullmatch, os.listdir(self.model_dir)) if match]
        checkpoints = sorted((int(match[2]), int(match[3]), match[1]) for match in matches)
        if not checkpoints:
            estimator.logger.info("CheckpointHandler: there is no checkpoint, training begins anew")
            return
        self.saved_checkpoints = [name for _, _, name in checkpoints]
        self.trained_epoch, self.trained_batch, name = checkpoints[-1]
        for what, trained in (("max_epoch", self.trained_epoch), ("max_batch", self.trained_batch)):
            most = getattr(estimator, what)
            if most:
                if trained >= most - 1:
                    raise ArgumentError(f"CheckpointHandler: training has reached {what}={most} at the checkpoint "
                                        f"{name!r}: give a larger {what}, or leave out resume_from_checkpoint")
                setattr(estimator, what, most - trained - 1)
        if not os.path.exists(self._path(f"{name}.states")):
            raise OpError(f"CheckpointHandler: {self._path(name)}.params has no matching .states file")
        estimator.net.load_parameters(self._path(f"{name}.params"), ctx=estimator.context)
        estimator.trainer.load_states(self._path(f"{name}.states"))
        estimator.logger.warning("CheckpointHandler: training is resumed from %s", self._path(name))


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops training when a metric has not improved for some epochs.

    Parameters
    ----------
    monitor : EvalMetric
        The metric.
    min_delta : float
        Least improvement that counts.
    patience : int
        Number of epochs without improvement before it stops.
    mode : {"auto", "min", "max"}
        Whether a smaller or a larger metric is better; see ``CheckpointHandler``.
    baseline : float
        Value that the metric has to beat at first.
    """

    def __init__(self, monitor: Any, min_delta: float = 0, patience: int = 0, mode: str = "auto",
                 baseline: float | None = None):
        self.monitor_op = _better("EarlyStoppingHandler", monitor, mode)
        self.monitor, self.baseline, self.patience = monitor, baseline, patience
        self.min_delta = min_delta if self.monitor_op is operator.gt else -min_delta
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = _worst(self.monitor_op) if self.baseline is None else self.baseline

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        name, value = self.monitor.get()
        if np.isnan(value):
            warn(f"EarlyStoppingHandler: {name} has no value: is it one of the estimator's train_metrics and "
                 "val_metrics?", RuntimeWarning)
        elif self.monitor_op(value - self.min_delta, self.best):
            self.best, self.wait = value, 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.stopped_epoch > 0:
            estimator.logger.info("[Epoch %d] EarlyStoppingHandler: %s became no better", self.stopped_epoch,
                                  self.monitor.get()[0])


class GradientUpdateHandler(BatchEnd):
    """Updates parameters after each batch.

    Parameters
    ----------
    priority : int
        Priority among handlers.
    """

    def __init__(self, priority: float = -2000):
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        loss = kwargs["loss"]
        estimator.trainer.step(sum(part.shape[0] for part in (loss if isinstance(loss, list) else [loss])))

"""Estimators of Gluon, and handlers of training events."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import gluon
from opreg.gluon.contrib import estimator as est


def _data(count: int = 12) -> gluon.data.DataLoader:
    x = mx.nd.array(np.random.default_rng(0).random((count, 3)))
    return gluon.data.DataLoader(gluon.data.ArrayDataset(x, mx.nd.array(np.arange(count) % 2)), 4)


def _estimator(**keywords: Any) -> est.Estimator:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2, in_units=3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    made = est.Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer, **keywords)
    made.logger.handlers = []
    return made


class _Counts(est.TrainBegin, est.EpochBegin, est.BatchBegin, est.BatchEnd, est.EpochEnd, est.TrainEnd):
    """A handler that records events, and ends training at a given batch."""

    def __init__(self, last: int = -1):
        self.seen: list[str] = []
        self.last = last

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.seen.append("train")

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.seen.append("epoch")

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.seen.append("batch")

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        return self.seen.count("batch") == self.last

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        return self.seen.count("batch") == self.last

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")


def test_handlers_get_the_events_of_a_training() -> None:
    made, counts = _estimator(), _Counts()
    made.fit(_data(), _data(8), epochs=2, event_handlers=counts)
    assert counts.seen == ["train", *["epoch", *["batch"] * 3] * 2, "end"]
    assert [metric.name for metric in made.train_metrics] == ["training accuracy", "training softmaxcrossentropyloss"]
    assert [metric.name for metric in made.val_metrics] == ["validation accuracy",
                                                            "validation softmaxcrossentropyloss"]
    assert all(metric.num_inst for metric in made.train_metrics + made.val_metrics)
    counts = _Counts()
    made.fit(_data(), batches=4, event_handlers=[counts])
    assert counts.seen.count("batch") == 4
    counts = _Counts(last=5)
    made.fit(_data(), epochs=9, event_handlers=counts)
    assert counts.seen.count("batch") == 5


def test_a_trained_network_is_better() -> None:
    made = _estimator()
    losses = []
    for _ in range(2):
        made.evaluate(_data())
        losses.append(made.val_metrics[1].get()[1])
        made.fit(_data(), epochs=20)
    assert losses[1] < losses[0]


def test_a_handler_writes_checkpoints_and_the_best_one(tmp_path: Path) -> None:
    made = _estimator()
    made.fit(_data(), epochs=4, event_handlers=est.CheckpointHandler(
        tmp_path, "m", made.train_metrics[0], save_best=True, max_checkpoints=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "m-best.params", "m-best.states", "m-epoch2batch9.params", "m-epoch2batch9.states", "m-epoch3batch12.params",
        "m-epoch3batch12.states", "m-symbol.json"]
    again = _estimator()
    again.fit(_data(), epochs=6, event_handlers=est.CheckpointHandler(tmp_path, "m", resume_from_checkpoint=True))
    assert again.max_epoch == 2 and (tmp_path / "m-epoch5batch18.states").exists()
    with pytest.raises(mx.errors.ArgumentError, match="training has reached max_epoch=6"):
        again.fit(_data(), epochs=6, event_handlers=est.CheckpointHandler(tmp_path, "m", resume_from_checkpoint=True))
    with pytest.raises(mx.errors.ArgumentError, match="set the other period"):
        again.fit(_data(), batches=6, event_handlers=est.CheckpointHandler(tmp_path, "m", resume_from_checkpoint=True))


@pytest.mark.parametrize(("mode", "epochs"), [("max", 3), ("auto", 3)])
def test_early_stopping_ends_a_training_without_improvement(mode: str, epochs: int) -> None:
    made = _estimator()
    stopping = est.EarlyStoppingHandler(made.train_metrics[0], patience=2, mode=mode, min_delta=2.0, baseline=None)
    made.fit(_data(), epochs=9, event_handlers=stopping)
    assert stopping.current_epoch == epochs and stopping.stopped_epoch == epochs - 1


def test_the_logging_handler_logs_at_its_interval() -> None:
    made, stream = _estimator(), io.StringIO()
    made.logger.addHandler(logging.StreamHandler(stream))
    made.fit(_data(), epochs=1, event_handlers=est.LoggingHandler(2, made.train_metrics[:1]))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("Training begin: using optimizer SGD with current learning rate 0.5")
    assert lines[1:3] == ["Train for 1 epochs.", "[Epoch 0] Begin, current learning rate: 0.5000"]
    assert [line.partition("[Samples")[0] for line in lines[3:5]] == ["[Epoch 0][Batch 0]", "[Epoch 0][Batch 2]"]
    assert "training accuracy: " in lines[4] and lines[-1].startswith("Train finished using total")


@pytest.mark.parametrize(("call", "words"), [
    (lambda: est.Estimator(gluon.nn.Dense(1), "l2"), "expected a loss of gluon.loss"),  # type: ignore[arg-type]
    (lambda: _estimator(train_metrics="acc"), "expected a metric"),
    (lambda: _estimator(context="cpu"), "expected a Context"),
    (lambda: _estimator(context=[mx.gpu(100)]), "does not exist"),
    (lambda: _estimator(batch_processor=object()), "no fit_batch"),
    (lambda: _estimator().fit([1], epochs=1), "expected a gluon.data.DataLoader"),  # type: ignore[arg-type]
    (lambda: _estimator().fit(_data()), "give either epochs or batches"),
    (lambda: _estimator().fit(_data(), epochs=1, event_handlers=["log"]), "expected handlers"),
    (lambda: _estimator().fit(_data(), epochs=1, event_handlers=est.LoggingHandler(metrics=mx.metric.RMSE())),
     "not one of the estimator's"),
    (lambda: est.LoggingHandler("batch"), "expected a number of batches"),
    (lambda: est.EarlyStoppingHandler("acc"), "expected one metric"),
])
def test_wrong_arguments_of_estimators_and_handlers_are_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises(mx.errors.ArgumentError, match=words):
        call()


def test_an_estimator_has_default_handlers() -> None:
    net = gluon.nn.Dense(1)
    with pytest.warns(UserWarning, match="No trainer specified"):
        made = est.Estimator(net, gluon.loss.L2Loss())
    assert made.trainer.learning_rate == 0.001
    assert net.bias.list_ctx() == made.context
    with pytest.warns(UserWarning, match="already fully initialized"):
        est.Estimator(net, gluon.loss.L2Loss(), initializer=mx.init.Zero(), trainer=made.trainer)

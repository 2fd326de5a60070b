"""Model: arguments and order of callbacks, printed text and results equal MindSpore 2.10's."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn
from opreg.core import progress
from opreg.train import Model
from tests.core.test_progress import Terminal

X = np.linspace(-1, 1, 24).astype("f").reshape(8, 3)
Y = X.sum(axis=1, keepdims=True)
BATCHES = [(X[:4], Y[:4]), (X[4:], Y[4:])]


def model(rate: float = 0.1, start: str = "zeros", **settings: Any) -> Model:
    net = nn.Dense(3, 1, start, "zeros")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), **settings)


class Log(ms.Callback):
    """A callback that records its calls, and their arguments."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda context: self.note(name, context.original_args())

    def note(self, name: str, params: Any) -> None:
        self.seen.append((name[3:], params.get("cur_epoch_num"), params.cur_step_num, params.mode))


def one_epoch(epoch: int, evaluated: bool) -> list[tuple[Any, ...]]:
    before = 2 * (epoch - 1)
    steps = [(f"train_step_{end}", epoch, before + i, "train") for i in (1, 2) for end in ("begin", "end")]
    tests = [("eval_begin", epoch, 0, "eval"), ("eval_epoch_begin", epoch, 0, "eval"),
             *[(f"eval_step_{end}", epoch, i, "eval") for i in (1, 2) for end in ("begin", "end")],
             ("eval_epoch_end", epoch, 2, "eval"), ("eval_end", epoch, 2, "eval")]
    return [("train_epoch_begin", epoch, before, "train"), *steps, *(tests if evaluated else []),
            ("train_epoch_end", epoch, before + 2, "train")]


@pytest.mark.parametrize("frequency, evaluated", [(1, (True, True)), (2, (False, True)), ([1], (True, False))])
def test_callbacks_are_called_in_order(frequency: Any, evaluated: tuple[bool, bool]) -> None:
    log = Log()
    model(metrics={"mae"}).fit(2, BATCHES, BATCHES, frequency, callbacks=log)
    assert log.seen == [("train_begin", None, 0, "train"), *one_epoch(1, evaluated[0]), *one_epoch(2, evaluated[1]),
                        ("train_end", 2, 4, "train")]


TOLD = ["batch_num", "cur_step_num", "dataset_sink_mode", "list_callback", "mode", "network"]


def test_callbacks_get_the_documented_arguments() -> None:
    seen: dict[str, Any] = {}
    note = ms.LambdaCallback(on_train_begin=lambda c: seen.update(train=sorted(c.original_args())),
                             on_eval_begin=lambda c: seen.update(eval=sorted(c.original_args())),
                             on_train_epoch_end=lambda c: seen.update(end=dict(c.original_args())))
    made = model(metrics={"mae", "loss"})
    made.fit(1, BATCHES, BATCHES, callbacks=note)
    assert seen["train"] == sorted([
        *TOLD, "device_number", "epoch_num", "initial_step", "last_save_ckpt_step", "latest_ckpt_file", "loss_fn",
        "loss_scale_mananger", "optimizer", "parallel_mode", "train_dataset", "train_dataset_element",
        "train_network"])
    assert seen["end"]["batch_num"] == 2 and seen["end"]["eval_results"].keys() == {"mae", "loss", "eval_loss"}
    assert seen["end"]["metrics"].keys() == {"mae", "loss"} and seen["end"]["train_dataset"] is BATCHES
    made.eval(BATCHES, callbacks=note)
    assert seen["eval"] == sorted([*TOLD, "eval_network", "valid_dataset"])


PRINTED = {
    "every step": (lambda: ms.LossMonitor(), 1, "epoch: 1 step: 1, loss is 3.0\nepoch: 1 step: 2, loss is 3.0\n"),
    "every third": (lambda: ms.LossMonitor(3), 2, "epoch: 2 step: 1, loss is 3.0\n"),
    "none": (lambda: ms.LossMonitor(0), 1, ""),
}


def constant(**settings: Any) -> Model:
    """A model whose loss is always 3, and which does not learn."""
    net = nn.Dense(1, 1, "zeros", "zeros")
    weights = nn.SGD(net.trainable_params(), 0.5)
    return Model(net, lambda out, label: (out * 0.0 + label).mean(), weights, **settings)


@pytest.mark.parametrize("callback, epochs, text", PRINTED.values(), ids=PRINTED)
def test_losses_are_printed(capsys: pytest.CaptureFixture[str], callback: Callable[[], ms.Callback], epochs: int,
                            text: str) -> None:
    constant().train(epochs, [([[1.0]], [[3.0]])] * 2, callbacks=callback())
    assert capsys.readouterr().out == text


def test_metrics_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    made = constant(metrics={"mae"})
    made.fit(1, [([[1.0]], [[3.0]])], [([[1.0]], [[3.0]])], callbacks=[ms.LossMonitor(), ms.TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "epoch: 1 step: 1, loss is 3.0" and lines[2] == "Eval result: epoch 1, metrics: {'mae': 3.0}"
    assert lines[1].startswith("Eval epoch time: ") and lines[3].startswith("Train epoch time: ")
    assert lines[3].endswith(" ms") and ", per step time: " in lines[3]


def test_a_monitor_restarts_with_each_training(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = ms.LossMonitor()
    for _ in range(2):
        constant().train(1, [([[1.0]], [[3.0]])], callbacks=monitor)
    assert capsys.readouterr().out == "epoch: 1 step: 1, loss is 3.0\n" * 2


class Dataset:
    """A dataset with MindSpore's interface."""

    def __init__(self, name: str):
        setattr(self, name, lambda: iter(BATCHES if "tuple" in name else [{"x": x, "y": y} for x, y in BATCHES]))

    def get_dataset_size(self) -> int:
        return 2


DATASETS: dict[str, Callable[[], Any]] = {
    "list": lambda: BATCHES,
    "lists": lambda: [list(batch) for batch in BATCHES],
    "dicts": lambda: [{"data": x, "label": y} for x, y in BATCHES],
    "tensors": lambda: [(Tensor(x), ms.nd.array(y)) for x, y in BATCHES],
    "DataIter": lambda: ms.io.NDArrayIter(X, Y, 4),
    "create_tuple_iterator": lambda: Dataset("create_tuple_iterator"),
    "create_dict_iterator": lambda: Dataset("create_dict_iterator"),
    "no length": lambda: type("Stream", (), {"__iter__": lambda self: iter(BATCHES)})(),
}


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_a_model_trains_on_datasets_as_on_lists(dataset: Callable[[], Any]) -> None:
    expected, made, history = model(metrics={"mse"}), model(metrics={"mse"}), ms.History()
    expected.train(3, BATCHES)
    made.train(3, dataset(), callbacks=history)
    np.testing.assert_array_equal(made.predict(Tensor(X)).asnumpy(), expected.predict(Tensor(X)).asnumpy())
    assert history.epoch == {"epoch": [1, 2, 3]} and made.eval(dataset()) == expected.eval(BATCHES)


def test_rows_that_fill_a_batch_are_not_evaluated() -> None:
    made = model(metrics={"mae"})
    assert made.eval(ms.io.NDArrayIter(X, Y, 5))["mae"] == pytest.approx(np.abs(Y).mean())


def test_a_model_learns() -> None:
    made = model(0.5, metrics={"mse"})
    made.train(300, BATCHES, callbacks=ms.LearningRateScheduler(lambda rate, step: rate))
    assert made.eval(BATCHES)["mse"] < 1e-4
    compiled = model(0.5, metrics={"mse"})
    try:
        ms.set_context(mode=ms.GRAPH_MODE)
        compiled.train(300, BATCHES)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(compiled.predict(Tensor(X)).asnumpy(), made.predict(Tensor(X)).asnumpy(), rtol=1e-5)


def test_training_and_evaluation_set_the_mode() -> None:
    seen = []

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(3, 1)

        def construct(self, x: Tensor) -> Tensor:
            seen.append(self.training)
            return self.fc(x)

    net = Net()
    made = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={"loss"})
    made.fit(2, BATCHES[:1], BATCHES[:1])
    made.predict(Tensor(X), backend="lite", config={})
    assert seen == [True, False, True, False, False]


def test_a_stop_ends_the_epoch_and_the_training() -> None:
    log = Log()
    stop = ms.LambdaCallback(on_train_step_end=lambda context: context.request_stop())
    model().train(3, BATCHES, callbacks=[log, stop])
    assert [name for name, *_ in log.seen] == ["train_begin", "train_epoch_begin", "train_step_begin",
                                               "train_step_end", "train_epoch_end", "train_end"]


def test_a_users_evaluation_network_is_evaluated() -> None:
    net = nn.Dense(3, 1, "zeros", "zeros")
    own = nn.WithEvalCell(net, nn.MSELoss())
    assert Model(net, eval_network=own, eval_indexes=[0, 1, 2], metrics={"mae"}).eval(BATCHES)["mae"] > 0
    bare = Model(nn.WithLossCell(net, nn.MSELoss()), optimizer=nn.SGD(net.trainable_params(), 0.1),
                 eval_network=nn.WithLossCell(net, nn.MSELoss()), metrics={"loss"})
    bare.train(2, BATCHES)
    assert bare.eval(BATCHES)["loss"] < Model(nn.Dense(3, 1, "zeros", "zeros"), nn.MSELoss(), metrics={"loss"}
                                              ).eval(BATCHES)["loss"]


MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], object]]] = {
    "network": (TypeError, "network=3: expected a Cell", lambda: Model(3)),  # type: ignore[arg-type]
    "optimizer": (TypeError, "optimizer=3: expected an optimizer",
                  lambda: Model(nn.ReLU(), None, 3)),  # type: ignore[arg-type]
    "no loss": (ValueError, "metrics need an eval_network", lambda: Model(nn.ReLU(), metrics={"mae"})),
    "no metric": (KeyError, "Did you mean 'mae'", lambda: model(metrics={"maee"})),
    "list": (TypeError, "a dict or a set of names, got list", lambda: model(metrics=["mae"])),
    "amp_level": (ValueError, "level must be one of", lambda: model(amp_level="O4")),
    "argument": (TypeError, "takes no keyword 'metric'", lambda: model(metric=3)),
    "eval_indexes": (ValueError, "three places", lambda: model(eval_indexes=[1])),
    "epoch": (ValueError, "Model.train: epoch=0: expected an int of at least 1", lambda: model().train(0, BATCHES)),
    "half an epoch": (TypeError, "epoch=1.5: expected an int",
                      lambda: model().train(1.5, BATCHES)),  # type: ignore[arg-type]
    "initial_epoch": (ValueError, "greater than initial_epoch, 2", lambda: model().train(2, BATCHES, initial_epoch=2)),
    "sink": (TypeError, "dataset_sink_mode=1: expected True or False",
             lambda: model().train(1, BATCHES, dataset_sink_mode=1)),  # type: ignore[arg-type]
    "sink_size": (ValueError, "sink_size", lambda: model().train(1, BATCHES, sink_size=0)),
    "callback": (TypeError, "element 0 must be a Callback, got int",
                 lambda: model().train(1, BATCHES, callbacks=[3])),  # type: ignore[list-item]
    "dataset": (TypeError, "a dataset must be iterable", lambda: model().train(1, 3)),
    "empty": (ValueError, "no batches", lambda: model().train(1, [])),
    "generator": (ValueError, "read only once", lambda: model().train(2, iter(BATCHES))),
    "columns": (ValueError, "two columns, data and labels, got 3", lambda: model().train(1, [(X, Y, Y)])),
    "frequency": (TypeError, "valid_frequency must be an int or a list",
                  lambda: model().fit(1, BATCHES, None, "a")),  # type: ignore[arg-type]
    "eval": (ValueError, "needs metrics=", lambda: model().eval(BATCHES)),
    "fit": (ValueError, "needs metrics=", lambda: model().fit(1, BATCHES, BATCHES)),
    "predict": (TypeError, "inputs must be Tensors, got ndarray", lambda: model().predict(X)),
    "a back end of predict": (ValueError, "backend must be 'lite' or None, got 'light'",
                              lambda: model().predict(Tensor(X), backend="light")),
    "nan": (ValueError, "In epoch: 1 step: 1, loss is NAN or INF, training process cannot continue",
            lambda: model().train(1, [(X * np.nan, Y)], callbacks=ms.LossMonitor())),
    "monitor": (ValueError, "per_print_times=-1: expected an int of at least 0", lambda: ms.LossMonitor(-1)),
    "lambda": (TypeError, "on_train_end must "
                          "be a function", lambda: ms.LambdaCallback(on_train_end=3)),  # type: ignore[arg-type]
    "mode": (ValueError, "mode must be 'auto', 'min' or 'max'", lambda: ms.EarlyStopping(mode="less")),
    "factor": (ValueError, "factor=2: expected a number above 0 and below 1", lambda: ms.ReduceLROnPlateau(factor=2)),
    "prefix": (ValueError, "prefix must be text without '/'", lambda: ms.ModelCheckpoint("a/b")),
    "config": (ValueError, "must be above 0", lambda: ms.CheckpointConfig(0, 0, 0, 0)),
    "append_info": (ValueError, "'epoch_num', 'step_num' or a dict", lambda: ms.CheckpointConfig(append_info=["x"])),
    "rates": (ValueError, "must have one learning rate", lambda: Model(
        NET, nn.MSELoss(), nn.SGD(NET.trainable_params(), nn.ExponentialDecayLR(0.1, 0.9, 4))
    ).train(1, BATCHES, callbacks=ms.ReduceLROnPlateau("loss"))),
}
NET = nn.Dense(3, 1)


@pytest.mark.parametrize("kind, text, mistake", MISTAKES.values(), ids=MISTAKES)
def test_wrong_uses_of_models_are_refused(kind: type[Exception], text: str, mistake: Callable[[], object]) -> None:
    with pytest.raises(kind, match=text):
        mistake()


def test_older_callback_methods_are_called() -> None:
    class Old(ms.Callback):
        steps = 0

        def step_end(self, run_context: ms.RunContext) -> None:
            self.steps += 1

    old, made = Old(), model(metrics={"mae"})
    made.train(1, BATCHES, callbacks=old)
    made.eval(BATCHES, callbacks=old)
    assert old.steps == 4
    with pytest.raises(ValueError, match="name it 'on_train_step_end' or 'on_eval_step_end'"):
        made.fit(1, BATCHES, BATCHES, callbacks=old)


def test_callbacks_are_entered_and_left() -> None:
    class Left(ms.Callback):
        kinds: list[Any] = []

        def __exit__(self, *err: object) -> None:
            self.kinds.append(err[0])

    model().train(1, BATCHES, callbacks=(each for each in [Left()]))
    with pytest.raises(ZeroDivisionError):
        model().train(1, BATCHES, callbacks=[Left(), ms.LambdaCallback(on_train_end=lambda context: 1 // 0)])
    assert Left.kinds == [None, ZeroDivisionError]


WATCHED = {
    "no better": ({"patience": 2}, 3), "at once": ({}, 2), "baseline": ({"patience": 1, "baseline": -9.0}, 1),
    "more": ({"patience": 1, "mode": "max"}, 2),
}


@pytest.mark.parametrize("settings, epochs", WATCHED.values(), ids=WATCHED)
def test_early_stopping_ends_a_training_without_progress(settings: dict[str, Any], epochs: int) -> None:
    history = ms.History()
    stop = ms.EarlyStopping("eval_loss", **{"patience": 1, **settings})
    constant(metrics={"mae"}).fit(9, [([[1.0]], [[3.0]])], [([[1.0]], [[3.0]])], callbacks=[history, stop])
    assert history.epoch == {"epoch": list(range(1, epochs + 1))} and stop.stopped_epoch == epochs


def test_the_best_weights_come_back() -> None:
    net = nn.Dense(1, 1, "zeros", has_bias=False)
    made = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 2.0))  # too fast: 0, 4, -8, …
    made.train(5, [([[1.0]], [[1.0]])], callbacks=ms.EarlyStopping("loss", patience=1, restore_best_weights=True))
    assert net.weight.asnumpy().item() == 4.0


def test_a_metric_that_cannot_be_watched_is_named() -> None:
    with pytest.warns(UserWarning, match="the logs have no 'mae', but only 'loss'"):
        model().train(1, BATCHES, callbacks=ms.EarlyStopping("mae"))


FILES = {
    "all": ({}, 2, ["net-1_1", "net-1_2", "net-2_1", "net-2_2"]),
    "newest": ({"keep_checkpoint_max": 2}, 3, ["net-3_1", "net-3_2"]),
    "every third, and the last": ({"save_checkpoint_steps": 3}, 2, ["net-2_1", "net-2_2"]),
    "one in a while": ({"keep_checkpoint_max": 0, "keep_checkpoint_per_n_minutes": 9}, 2, ["net-1_1", "net-2_2"]),
    "last": ({"save_checkpoint_steps": 0, "save_checkpoint_seconds": 999}, 2, ["net-2_2"]),
}


@pytest.mark.parametrize("settings, epochs, names", FILES.values(), ids=FILES)
def test_checkpoints_are_written_and_removed_by_the_settings(tmp_path: Path, settings: dict[str, Any], epochs: int,
                                                             names: list[str]) -> None:
    made = model()
    kept = ms.ModelCheckpoint("net", str(tmp_path), ms.CheckpointConfig(**settings))
    made.train(epochs, BATCHES, callbacks=kept)
    assert sorted(os.listdir(tmp_path)) == [f"{name}.ckpt" for name in names]
    again = model()
    ms.load_param_into_net(again.train_network, ms.load_checkpoint(kept.latest_ckpt_file_name))
    np.testing.assert_array_equal(again.predict(Tensor(X)).asnumpy(), made.predict(Tensor(X)).asnumpy())


def test_checkpoints_of_another_training_get_another_name(tmp_path: Path) -> None:
    for _ in range(3):
        model().train(1, BATCHES[:1], callbacks=ms.ModelCheckpoint("net", str(tmp_path)))
    assert sorted(os.listdir(tmp_path)) == ["net-1_1.ckpt", "net_1-1_1.ckpt", "net_2-1_1.ckpt"]


def test_functions_choose_file_and_folder_of_a_checkpoint_which_stores_numbers(tmp_path: Path) -> None:
    config = ms.CheckpointConfig(append_info=["epoch_num", "step_num", {"lr": 0.5}], format="safetensors")
    kept = ms.ModelCheckpoint(lambda params: f"at{params.cur_step_num}", lambda params: str(tmp_path / "deep"), config)
    model().train(1, BATCHES, callbacks=kept)
    assert sorted(os.listdir(tmp_path / "deep")) == ["at1.safetensors", "at2.safetensors"]
    numbers = ms.load_checkpoint(kept.latest_ckpt_file_name)
    assert [numbers[name].asnumpy().item() for name in ("epoch_num", "step_num", "lr")] == [1, 2, 0.5]


def test_a_training_that_fails_leaves_a_checkpoint(tmp_path: Path) -> None:
    kept = ms.ModelCheckpoint("net", str(tmp_path), ms.CheckpointConfig(99, exception_save=True))
    fail = ms.LambdaCallback(on_train_step_end=lambda context: 1 // (2 - context.original_args().cur_step_num))
    with pytest.raises(ZeroDivisionError):
        model().train(1, BATCHES, callbacks=[kept, fail])
    assert os.listdir(tmp_path) == ["net-1_2_breakpoint.ckpt"]


def test_names_of_mindspores_modules_are_found() -> None:
    from opreg.train.metrics import Accuracy

    from opreg.train.callback import LossMonitor
    from opreg.train.model import Model as Same

    assert Same is Model is ms.Model is ms.train.Model and ms.LossMonitor is LossMonitor
    assert Accuracy is nn.Accuracy is ms.Accuracy
    with pytest.raises(AttributeError):
        ms.train.callback.Nothing  # noqa: B018


def test_prints_stand_above_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("OPREG_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_clock", terminal.clock)
    made = constant(metrics={"mae"})
    made.fit(1, [([[1.0]], [[3.0]])] * 400, [([[1.0]], [[3.0]])], callbacks=ms.LossMonitor(200))
    assert sys.stdout is terminal
    assert terminal.shown[:2] == ["epoch: 1 step: 200, loss is 3.0", "epoch: 1 step: 400, loss is 3.0"]
    assert terminal.shown[2] == "Eval result: epoch 1, metrics: {'mae': 3.0}"
    assert terminal.shown[3].startswith("Epoch[1] of 1 400 batches in 0:0") and terminal.shown[4:] == [""]
    assert "  loss=3  validation mae=3" in terminal.shown[3]
    assert "/400  0:0" in terminal.getvalue() and " samples/s  loss=3" in terminal.getvalue()


def test_no_progress_line_without_a_terminal(monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    model().train(1, BATCHES)
    assert not sys.stderr.getvalue() and not capsys.readouterr().out  # type: ignore[attr-defined]
    model().train(1, BATCHES, progress=True)
    assert "Epoch[1] of 1 2 batches" in sys.stderr.getvalue()  # type: ignore[attr-defined]

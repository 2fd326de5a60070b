"""Mixed precision: the operators in half precision, the scale of losses, and steps skipped because of overflows.

``recorded/mindspore_amp.json`` has MindSpore's answers. On a CPU MindSpore's step with a loss scale does not look for
overflows; for the recording it was made to do so, as on other devices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Parameter, Tensor, amp, nn, ops
from tests.questions import of_each

RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_amp.json").read_text())
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = np.ones((2, 2), np.float32)
#: Values with infinite gradients.
HUGE = X * np.float32(1e20)
#: Indices of the steps whose gradients overflow.
OVERFLOWS = [bool(int(each)) for each in "000010001111111000000"]


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Product(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]]), name="w")

    def construct(self, x: Tensor) -> Tensor:
        return ops.matmul(x, self.w)


class Perceptron(nn.Cell):
    """A network of layers that are on either list, a primitive, and arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.bn, self.r, self.b = nn.Dense(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dense(4, 2)
        self.mm = ops.MatMul()
        self.w = Parameter(Tensor(np.eye(2, dtype=np.float32) * 1.0001), name="w2")
        rng = np.random.default_rng(0)
        for p in self.get_parameters():
            if p.name.startswith(("a.", "b.")):
                p.set_data(Tensor(rng.uniform(-0.4, 1, p.shape).astype(np.float32)))

    def construct(self, x: Tensor) -> Tensor:
        return self.mm(self.b(self.r(self.bn(self.a(x)))) * 1.001, self.w)


def step(net: nn.Cell, scale: Any, kind: Callable[..., nn.Cell] = nn.TrainOneStepWithLossScaleCell) -> nn.Cell:
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    return kind(nn.WithLossCell(net, nn.MSELoss()), optimizer, scale).set_train()


# --------------------------------------------------------------------------------------------- loss scales


@pytest.mark.parametrize("name, scale", [
    ("dynamic", lambda: nn.DynamicLossScaleUpdateCell(2.0 ** 12, 2, 2)),
    ("fixed", lambda: nn.FixedLossScaleUpdateCell(1024.0)), ("tensor", lambda: Tensor([1024.0]))])
def test_steps_with_a_loss_scale_skip_overflows(mode: int, name: str, scale: Callable[[], Any]) -> None:
    net = Product()
    train = step(net, scale())
    for data, (loss, overflow, now, weight) in zip((X, X, HUGE, HUGE, X, X, X, X, X), RECORDED[name], strict=True):
        got = train(Tensor(data), Tensor(Y))
        np.testing.assert_allclose(got[0].asnumpy(), loss, rtol=1e-6)
        assert (bool(got[1]), got[2].asnumpy().item()) == (overflow, now)
        np.testing.assert_allclose(net.w.asnumpy().ravel(), weight, rtol=1e-6)


def test_a_compiled_step_has_a_branch_for_overflow() -> None:
    net = Product()
    train = step(net, nn.DynamicLossScaleUpdateCell(2.0 ** 12, 2, 2))
    compiled = ms.jit(lambda x, y: train(x, y))
    for data in (X, HUGE, X, HUGE):
        compiled(Tensor(data), Tensor(Y))
    explained = str(compiled.explain())
    assert explained.startswith("for ") and explained.count("\nfor ") == 1 and "runs as Python" not in explained


def test_set_sense_scale_changes_the_loss_scale() -> None:
    train = step(Product(), Tensor(1024.0))
    train.set_sense_scale(Tensor(8.0))
    assert float(train(Tensor(X), Tensor(Y))[2]) == 8
    with pytest.raises(TypeError, match="sens must be a Tensor, got float"):
        train.set_sense_scale(8.0)


_SCALED, _CLIPPED = ops.MultitypeFuncGraph("scaled"), ops.MultitypeFuncGraph("clipped")


@_SCALED.register("Tensor", "Tensor")
def _divided(scale: Tensor, gradient: Tensor) -> Tensor:
    return gradient * ops.Reciprocal()(scale)


@_CLIPPED.register("Number", "Tensor")
def _clipped(most: float, gradient: Tensor) -> Tensor:
    return nn.ClipByNorm()(gradient, ops.cast(ops.tuple_to_array((most,)), ops.dtype(gradient)))


class OwnStep(nn.TrainOneStepWithLossScaleCell):
    """A step written from the parts of the base class, as language models write theirs."""

    def construct(self, x: Tensor, y: Tensor) -> Any:
        loss = self.network(x, y)
        status, sens = self.start_overflow_check(loss, self.scale_sense)
        gradients = self.grad(self.network, self.weights)(x, y, ops.cast(sens, ms.float32))
        gradients = self.grad_reducer(gradients)
        gradients = self.hyper_map(ops.partial(_SCALED, sens), gradients)
        gradients = self.hyper_map(ops.partial(_CLIPPED, 1e9), gradients)
        overflow = self.process_loss_scale(self.get_overflow_status(status, gradients))
        if not overflow:
            self.optimizer(gradients)
        return loss, overflow, sens


def test_a_users_training_step_scales_its_loss(mode: int) -> None:
    """The step trains like the class that it derives from."""
    results = []
    for kind in (OwnStep, nn.TrainOneStepWithLossScaleCell):
        net = Product()
        train = step(net, nn.DynamicLossScaleUpdateCell(2.0 ** 12, 2, 2), kind)
        outputs = [train(Tensor(data), Tensor(Y)) for data in (X, HUGE, X)]
        results.append([*[(float(loss), bool(overflow)) for loss, overflow, _ in outputs], net.w.asnumpy()])
    assert results[0][:-1] == results[1][:-1]
    np.testing.assert_allclose(results[0][-1], results[1][-1], rtol=1e-6)


def test_a_cell_moves_the_loss_scale(mode: int) -> None:
    update, scale = nn.DynamicLossScaleUpdateCell(16.0, 2, 3), Parameter(Tensor(16.0), name="scale")
    step = ms.jit(lambda overflow: update(scale, overflow)) if mode == ms.GRAPH_MODE else \
        lambda overflow: update(scale, overflow)
    got = []
    for overflow in OVERFLOWS:
        assert bool(step(Tensor(overflow))) is overflow
        got.append([float(scale), int(update.cur_iter), int(update.last_overflow_iter)])
    assert got == RECORDED["cell"] and update.get_loss_scale() == 16


def test_a_scaler_moves_its_scale(mode: int) -> None:
    scaler = amp.DynamicLossScaler(16, 2, 3)
    adjust = ms.jit(scaler.adjust) if mode == ms.GRAPH_MODE else scaler.adjust
    got = []
    for overflow in OVERFLOWS:
        assert adjust(Tensor(not overflow)) is True
        got.append([float(scaler.scale_value), int(scaler.counter), True])
    assert got == RECORDED["scaler"]


def test_a_manager_moves_its_scale() -> None:
    manager, got = amp.DynamicLossScaleManager(16, 2, 3), []
    for overflow in OVERFLOWS:
        manager.update_loss_scale(overflow)
        got.append(manager.get_loss_scale())
    assert got == RECORDED["manager"]
    manager.bad_step_max = 2
    manager.update_loss_scale(True)
    manager.update_loss_scale(True)
    with pytest.raises(RuntimeError, match="overflowed in 3 successive steps"):
        manager.update_loss_scale(True)


def test_a_static_scaler_keeps_dtypes_and_nestings() -> None:
    scaler = amp.StaticLossScaler(1000)
    gradients = Tensor([1.5, 1.0], ms.float16), [Tensor([1.2])]
    half, (full,) = scaler.unscale(gradients)
    assert (half.dtype, full.dtype) == (ms.float16, ms.float32) and scaler.adjust(Tensor(True)) is False
    np.testing.assert_array_equal(half.asnumpy(), np.array([1.5011e-03, 1.0004e-03], np.float16))
    np.testing.assert_allclose(full.asnumpy(), [1.20000006e-03])
    assert scaler.scale(Tensor([1.0])).asnumpy().tolist() == [1000.0]


@pytest.mark.parametrize("values, expected", [
    ((Tensor([1.0, 2.0]),), True), ((Tensor([1.0, np.inf]), Tensor([1.0])), False),
    ((Tensor([1.0], ms.float16), Tensor([np.nan])), False), ((Tensor([1.0], ms.float16), Tensor([2])), True),
    ([Tensor([3])], True), ((Tensor([1.0]), [Tensor([-np.inf], ms.bfloat16)]), False), (Tensor([1.0]), True)])
def test_all_finite_finds_nan_and_infinities(mode: int, values: Any, expected: bool) -> None:
    asked = ms.jit(amp.all_finite) if mode == ms.GRAPH_MODE else amp.all_finite
    got = asked(values)
    assert (got.shape, got.dtype, bool(got)) == ((), ms.bool_, expected)


MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], object]]] = {
    "scale": (ValueError, "StaticLossScaler: scale_value=0.5: expected", lambda: amp.StaticLossScaler(0.5)),
    "text": (TypeError, "scale_value='a': expected "
                        "a number", lambda: amp.StaticLossScaler("a")),  # type: ignore[arg-type]
    "factor": (TypeError, "scale_factor=2.5: expected "
                          "an int", lambda: amp.DynamicLossScaler(2, 2.5, 3)),  # type: ignore[arg-type]
    "window": (ValueError, "scale_window=0: expected an int of at least 1", lambda: amp.DynamicLossScaler(2, 2, 0)),
    "fixed": (ValueError, "loss_scale=0.5: expected a number of at least 1", lambda: amp.FixedLossScaleManager(0.5)),
    "dynamic": (ValueError, "init_loss_scale=0.5: expected a number", lambda: amp.DynamicLossScaleManager(0.5)),
    "dynamic factor": (ValueError, "scale_factor=-1: expected a number", lambda: amp.DynamicLossScaleManager(4, -1)),
    "dynamic window": (ValueError, "scale_window=0: expected an int", lambda: amp.DynamicLossScaleManager(4, 2, 0)),
    "sense": (TypeError, "scale_sense=3.0: expected a tensor or a Cell", lambda: step(Product(), 3.0)),
    "sense of two": (ValueError, r"shape \(\) or \(1,\), got \(2,\)", lambda: step(Product(), Tensor([1.0, 2.0]))),
    "finite": (TypeError, "all_finite: expected tensors, got int", lambda: amp.all_finite(3)),
    "network": (TypeError, "network=3: expected a Cell",
                lambda: amp.auto_mixed_precision(3, "O1")),  # type: ignore[arg-type]
    "level": (ValueError, "amp_level must be one of O0, O1, O2, O3, got 'O4'",
              lambda: amp.auto_mixed_precision(nn.ReLU(), "O4")),
    "halves": (ValueError, "dtype must be float16 or bfloat16, got float32",
               lambda: amp.auto_mixed_precision(nn.ReLU(), "O1", ms.float32)),
    "no list": (ValueError, "either white_list or black_list", lambda: amp.custom_mixed_precision(nn.ReLU())),
    "no class": (TypeError, "classes of Cells and Primitives, got 3",
                 lambda: amp.custom_mixed_precision(nn.ReLU(), white_list=[3])),  # type: ignore[list-item]
    "black primitive": (TypeError, "classes of Cells, got",
                        lambda: amp.custom_mixed_precision(nn.ReLU(), black_list=[ops.MatMul])),  # type: ignore[list-item]
    "optimizer": (TypeError, "optimizer must be an Optimizer, got int",
                  lambda: amp.build_train_network(Product(), 3)),  # type: ignore[arg-type]
    "setting": (TypeError, "takes no keyword 'keep_batchnorm'", lambda: built(Product(), keep_batchnorm=True)),
    "boost": (ValueError, "boost_level must be 'O0'", lambda: built(Product(), boost_level="O1")),
    "manager": (TypeError, "must be a LossScaleManager, got float", lambda: built(Product(), loss_scale_manager=8.0)),
    "cast": (TypeError, "float16 or float32, got float64", lambda: built(Product(), cast_model_type=ms.float64))}


def built(net: nn.Cell, level: str = "O0", loss_scale: float = 1.0, **settings: Any) -> nn.Cell:
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9, loss_scale=loss_scale)
    return amp.build_train_network(net, optimizer, nn.MSELoss(), level, **settings)


@of_each(MISTAKES)
def test_wrong_uses_of_mixed_precision_are_refused(case: str) -> None:
    kind, message, call = MISTAKES[case]
    with pytest.raises(kind, match=message):
        call()


# ------------------------------------------------------------------------------------------- half precision


@pytest.mark.parametrize("level", RECORDED["levels"])
def test_listed_layers_compute_in_half_precision(mode: int, level: str) -> None:
    net: nn.Cell = Perceptron()
    if level in ("white", "black"):
        net = amp.custom_mixed_precision(net, **{f"{level}_list": [nn.Dense]})
    else:
        net = amp.auto_mixed_precision(net, level)
    got = net(Tensor(X / 7))
    assert got.dtype == ms.float32 and {p.dtype for p in net.get_parameters()} == {ms.float32}
    np.testing.assert_allclose(got.asnumpy(), RECORDED["levels"][level], rtol=1e-6 if level == "O0" else 2e-3)


@pytest.mark.parametrize("level, halves", [("O0", ""), ("O1", "ab"), ("O2", "ab"), ("O3", "abn")])
def test_auto_mixed_precision_chooses_the_dtypes_of_layers(level: str, halves: str) -> None:
    net, seen = Perceptron(), {}
    amp.auto_mixed_precision(net, level)
    for name, cell in (("a", net.a), ("n", net.bn), ("b", net.b)):
        cell.register_forward_hook(lambda _, inputs, out, name=name: seen.update({name: (inputs[0].dtype, out.dtype)}))
    net(Tensor(X))
    assert seen == {name: ((ms.float16,) if name in halves else (ms.float32,)) * 2 for name in "anb"}


def test_a_dtype_that_the_user_chose_stays_beside_a_list_of_lowered_operators() -> None:
    net = nn.SequentialCell(nn.Dense(3, 3), nn.Dense(3, 3).to_float(ms.float32))
    seen: list[Any] = []
    for cell in net:
        cell.register_forward_hook(lambda _, inputs, output: seen.append(output.dtype))
    amp.auto_mixed_precision(net, "O1", ms.bfloat16)(Tensor(X))
    assert seen == [ms.bfloat16, ms.float32]


def test_white_and_black_lists_hold_the_documented_classes() -> None:
    assert {nn.Dense, nn.Conv2d, nn.LSTMCell, ops.MatMul, ops.BatchMatMul, ops.ReLU} <= {*amp.get_white_list()}
    assert amp.get_black_list() == [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm]
    amp.get_white_list().clear()
    assert amp.get_white_list()


@pytest.mark.parametrize("case", range(len(RECORDED["training"])))
def test_training_in_half_precision_moves_weights_as_in_mindspore(mode: int, case: int) -> None:
    level, settings, losses, weights = RECORDED["training"][case]
    settings, scale = dict(settings), 1.0
    if settings.get("loss_scale_manager"):
        scale = settings["loss_scale_manager"][0]
        settings["loss_scale_manager"] = amp.FixedLossScaleManager(*settings["loss_scale_manager"])
    net = Perceptron()
    train = built(net, level, scale, **settings)
    close = {"rtol": 1e-5, "atol": 1e-6} if level == "O0" and "cast_model_type" not in settings else \
        {"rtol": 5e-3, "atol": 5e-4}
    np.testing.assert_allclose([float(train(Tensor(X / 7), Tensor(Y))) for _ in losses], losses, **close)
    for p in net.trainable_params():
        np.testing.assert_allclose(p.asnumpy().ravel(), weights[p.name], err_msg=p.name, **close)


# ------------------------------------------------------------------------------------------------- Model


BATCHES = [(Tensor(X), Tensor(Y))] * 2


@pytest.mark.parametrize("settings, scale", [
    ({"amp_level": "O2"}, 2.0 ** 24),
    ({"amp_level": "O3", "loss_scale_manager": amp.FixedLossScaleManager(8.0)}, 8.0),
    ({"loss_scale_manager": amp.DynamicLossScaleManager(16, 2, 1000)}, 16.0)])
def test_model_scales_losses(mode: int, settings: dict[str, Any], scale: float) -> None:
    net = Perceptron()
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.0), metrics={"mae"}, **settings)
    assert float(model.train_network.scale_sense) == scale
    history, seen = ms.History(), []
    model.train(30, BATCHES, [history, ms.LambdaCallback(
        on_train_step_end=lambda run: seen.append(run.original_args().net_outputs[1]))])
    assert bool(seen[0]) is (scale > 1e6) and not bool(seen[-1])
    assert model.eval(BATCHES)["mae"] < 1


def test_model_reports_overflows_to_the_manager() -> None:
    manager, net = amp.DynamicLossScaleManager(16, 2, 2), Product()
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-3), loss_scale_manager=manager)
    model.train(1, [(Tensor(data), Tensor(Y)) for data in (X, HUGE, X)])
    assert manager.get_loss_scale() == 8 == float(model.train_network.scale_sense)


def test_a_model_without_an_optimizer_refuses_to_train() -> None:
    for settings in ({"amp_level": "O2"}, {"loss_scale_manager": amp.FixedLossScaleManager()}):
        with pytest.raises(ValueError, match="need an optimizer"):
            ms.Model(Product(), nn.MSELoss(), **settings)

"""``opreg.experimental.optim``: optimizers and schedulers against what MindSpore 2.10 answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opreg.experimental import optim

import opreg as ms
from opreg.errors import ArgumentError
from tests.questions import of_each
from tests.recorded.mindspore_experimental import OPTIMIZERS, SCHEDULERS, scheduled, trained

ANSWERS = dict(json.loads(
    (Path(__file__).parent.parent / "recorded" / "mindspore_experimental.json").read_text())["cases"])


def weights() -> list[Any]:
    return [ms.Parameter(ms.Tensor([1.0, 2.0]), name="w"), ms.Parameter(ms.Tensor([3.0]), name="b")]


def test_every_recorded_case_is_compared() -> None:
    assert list(ANSWERS) == [*OPTIMIZERS, *SCHEDULERS]


@of_each(OPTIMIZERS)
def test_optimizers_move_weights_as_recorded(case: str) -> None:
    for ours, answer in zip(trained(ms, optim, case), ANSWERS[case], strict=True):
        assert np.allclose(ours, answer, 2e-5, 1e-5), (ours, answer)


@of_each(SCHEDULERS)
def test_schedulers_give_the_recorded_rates(case: str) -> None:
    assert np.allclose(scheduled(ms, optim, case), ANSWERS[case], 1e-5, 1e-7)


@pytest.mark.parametrize("case", ["Adam(p, 0.1)", "RAdam(p, 0.1)", "Rprop(p, 0.1)", "ASGD(p, 0.1)"])
def test_a_compiled_step_is_the_same(case: str) -> None:
    def train(compiled: bool) -> list[Any]:
        p = weights()
        optimizer = eval(f"optim.{case}", {"optim": optim, "p": p})
        scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x: Any) -> None:
            optimizer(ms.grad(lambda x: ((p[0] * x).sum() - p[1]).square().sum(), None, ms.ParameterTuple(p))(x))

        step = ms.jit(step) if compiled else step
        for i in range(4):
            step(ms.Tensor([1.0, i]))
            scheduler.step()
        return [each.asnumpy() for each in p]

    assert all(np.allclose(ours, eager, 1e-6) for ours, eager in zip(train(True), train(False)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rate", [0.5, np.float32(0.5), ms.Tensor(0.5)], ids=["float", "NumPy", "tensor"])
def test_a_rate_set_in_a_group_holds_from_the_next_step(compiled: bool, rate: Any) -> None:
    p = weights()
    optimizer = optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.25}], 1.0)
    step = ms.jit(lambda *g: optimizer(g)) if compiled else lambda *g: optimizer(g)
    gradients = ms.Tensor([1.0, 1.0]), ms.Tensor([1.0])
    step(*gradients)
    optimizer.param_groups[0]["lr"] = rate
    step(*gradients)
    assert p[0].asnumpy().tolist() == [-0.5, 0.5] and p[1].asnumpy().tolist() == [2.5]
    assert optimizer.param_groups[0]["lr"] is optimizer.lrs[0]
    with pytest.raises(ArgumentError, match="expected lr to be a number that is not negative"):
        optimizer.param_groups[0]["lr"] = -1.0


def test_amsgrad_keeps_the_largest_square() -> None:
    moved = []
    for amsgrad in (False, True):
        p = weights()[:1]
        optimizer = optim.Adam(p, 0.1, betas=(0.0, 0.5), amsgrad=amsgrad)
        for size in (8.0, 1.0, 1.0):
            optimizer((ms.Tensor([size, size]),))
        moved.append(1 - float(p[0].asnumpy()[0]))
    assert moved[1] < moved[0]


def test_a_users_scheduler_sets_the_rates() -> None:
    """MindSpore's documents show such an optimizer over its groups, and a scheduler that reads the rates."""
    class Descent(optim.Optimizer):
        def __init__(self, params: Any, lr: float):
            super().__init__(params, {"lr": lr, "weight_decay": 0.0})

        def construct(self, gradients: Sequence[Any]) -> None:
            for i, group in enumerate(self.param_groups):
                start, end = self.group_start_id[i:i + 2]
                for p, g in zip(self.parameters[start:end], gradients[start:end]):
                    ms.ops.assign(p, p - self.lrs[i] * g)
                assert group["lr"] is self.lrs[i]

    class Half(optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[Any]:
            return [lr * 0.5 for lr in self._last_lr]

    p = weights()
    optimizer = Descent([{"params": p[:1]}, {"params": p[1], "lr": 0.4}], lr=0.2)
    scheduler = Half(optimizer)
    optimizer((ms.Tensor([1.0, 1.0]), ms.Tensor([1.0])))
    assert np.allclose(p[0].asnumpy(), [0.9, 1.9]) and np.allclose(p[1].asnumpy(), 2.8)
    scheduler.step()
    assert [round(float(rate.asnumpy()), 6) for rate in scheduler.get_last_lr()] == [0.05, 0.1]


@of_each([
    (lambda: optim.SGD([], 0.1), ValueError, "params must not be empty"),
    (lambda: optim.SGD(weights()[0], 0.1), TypeError, "got one Parameter"),
    (lambda: optim.SGD([{"params": [1]}], 0.1), TypeError, "group 0 must be Parameters, got int"),
    (lambda: optim.SGD([{"params": weights()[:1] * 2}], 0.1), ArgumentError, "Parameter w occurs twice"),
    (lambda: optim.Adam(weights(), -0.1), ArgumentError, "lr to be a number that is not negative, got -0.1"),
    (lambda: optim.Adam(weights(), betas=(1.0, 0.9)), ArgumentError, r"betas\[0\].*below 1"),
    (lambda: optim.SGD(weights(), 0.1, nesterov=True), ArgumentError, "nesterov needs a momentum"),
    (lambda: optim.Adam(weights())((ms.Tensor([1.0, 1.0]),)), ArgumentError, "expected 2 gradients, got 1"),
    (lambda: optim.lr_scheduler.StepLR(ms.nn.SGD(weights()), 2), TypeError, "expected an optimizer of experimental"),
    (lambda: optim.lr_scheduler.StepLR(optim.SGD(weights(), 0.1), 0), ArgumentError, "step_size must be"),
    (lambda: optim.lr_scheduler.LambdaLR(optim.SGD(weights(), 0.1), [abs, abs]), ArgumentError, "each of 1 groups"),
    (lambda: optim.lr_scheduler.StepLR(optim.SGD(weights(), 0.1), 2, last_epoch=3), KeyError, "no initial_lr")])
def test_wrong_uses_of_experimental_optimizers_are_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_repr_of_an_optimizer_shows_the_settings_of_its_groups() -> None:
    w, b = weights()
    shown = repr(optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.5}], lr=0.1))
    settings = ("    dampening: 0\n    lr: {}\n    maximize: False\n    momentum: 0.0\n    nesterov: False\n"
                "    weight_decay: 0.0\n")
    assert shown == (f"SGD (\nParameter Group 0\n{settings.format(0.1)}\n"
                     f"Parameter Group 1\n{settings.format(0.5)})")


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimizer_of_ones_own_keeps_states_of_parameters(compiled: bool) -> None:
    class Heavy(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.5})
            for p in self.parameters:
                self.state[p]["moved"] = ms.Parameter(ms.ops.zeros_like(p), name=f"moved.{p.name}")

        def construct(self, gradients: Any) -> bool:
            for p, g in zip(self.parameters, gradients):
                moved = self.state[p]["moved"]
                ms.ops.assign(moved, moved * 0.5 + g)
                ms.ops.assign_sub(p, moved * 0.5)
            return True

    w, b = weights()
    optimizer = Heavy([w, b])
    step = ms.jit(lambda *given: optimizer(given)) if compiled else lambda *given: optimizer(given)
    for _ in range(2):
        step(ms.Tensor([1.0, -1.0]), ms.Tensor([2.0]))
    assert w.asnumpy().tolist() == [-0.25, 3.25]
    assert b.asnumpy().tolist() == [0.5]
    assert optimizer.state[w]["moved"].asnumpy().tolist() == [1.5, -1.5]


def test_warm_restarts_take_epochs_between_two_steps() -> None:
    net = ms.nn.Dense(1, 1)
    scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD(net.trainable_params(), lr=0.1), 2)
    found = []
    for epoch in (0.25, None, 1.5, 2.0, 7.5):
        scheduler.step(epoch)
        found.append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(found, [0.05 + 0.05 * np.cos(np.pi * at / 2) for at in (0.25, 1.25, 1.5, 0, 1.5)],
                               rtol=1e-6)
    assert scheduler.last_epoch == 7
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        scheduler.step(-1)


def test_rates_are_given_as_tensors() -> None:
    scheduler = optim.lr_scheduler.StepLR(optim.SGD(weights(), lr=0.5), 2)
    assert repr(scheduler.get_last_lr()) == "[Tensor(shape=[], dtype=Float32, value= 0.5)]"

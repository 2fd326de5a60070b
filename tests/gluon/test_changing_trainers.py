"""Trainers whose weights, gradients, states or settings change between steps: each step equals that of an updater
called for one weight after another."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.core.invalidation import renew
from opreg.core.registry import get
from opreg.gluon import nn
from tests.questions import of_each

SETTINGS = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01},
    "adam": {"learning_rate": 0.02},
    "rmsprop": {"learning_rate": 0.02, "centered": True},
    "nadam": {"learning_rate": 0.02},  # moves each weight by itself
}


class Side:
    """A network and its optimizer, moved by a trainer or by an updater."""

    def __init__(self, kind: str, by_trainer: bool):
        mx.random.seed(3)
        self.net = nn.HybridSequential(prefix="net_")
        with self.net.name_scope():
            self.net.add(nn.Dense(4, in_units=3, activation="tanh"), nn.BatchNorm(in_channels=4),
                         nn.Dense(2, in_units=4))
        self.net.initialize(mx.init.Xavier())
        self.net.hybridize()
        self.params = list(self.net.collect_params().values())
        self.optimizer = mx.optimizer.create(kind, param_dict=dict(enumerate(self.params)), **SETTINGS[kind])
        self.trainer = gluon.Trainer(self.params, self.optimizer) if by_trainer else None
        self.updater = mx.optimizer.get_updater(self.optimizer) if self.trainer is None else self.trainer._updaters[0]
        self.batch, self.extra = 4, False

    def step(self, run: int) -> None:
        x = nd.array(np.random.default_rng(run).standard_normal((4, 3)), dtype=self.params[0].dtype)
        with autograd.record():
            total = self.net(x).sin().sum()
        total.backward()
        if self.trainer is not None:
            self.trainer.step(self.batch)
            return
        self.optimizer.rescale_grad = 1 / self.batch
        for i, parameter in enumerate(self.params):
            if parameter.grad_req != "null":
                self.updater(i, parameter.grad(), parameter.data())

    def found(self) -> list[np.ndarray]:
        return [each.data().asnumpy() for each in self.params]


def _replaced(side: Side) -> None:
    """Another optimizer with the same settings and counts, and with another rate."""
    other = type(side.optimizer)(param_dict=dict(enumerate(side.params)), **{
        **SETTINGS[type(side.optimizer).__name__.lower()], "learning_rate": 0.3})
    other._all_index_update_counts = side.optimizer._all_index_update_counts
    other.num_update = side.optimizer.num_update
    other._set_current_context(0)
    side.optimizer = side.updater.optimizer = other
    if side.trainer is not None:
        side.trainer._optimizer = other


def _from_bytes(side: Side) -> None:
    side.updater.set_states(side.updater.get_states(dump_optimizer=True))


def _zeros(state: Any) -> None:
    for part in state if isinstance(state, (list, tuple)) else [state]:
        if isinstance(part, nd.NDArray):
            part[:] = 0


def _double_rate(self: Any, index: Any) -> float:
    return 0.2


def _scheduled(side: Side) -> None:
    side.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(1, factor=0.5, base_lr=0.2)


CHANGES: dict[str, Callable[[Side], object]] = {
    "nothing": lambda side: None,
    "learning rate": lambda side: side.optimizer.set_learning_rate(0.05),
    "decay": lambda side: setattr(side.optimizer, "wd", 0.1),
    "no decay": lambda side: setattr(side.optimizer, "wd", 0.0),
    "negative zero": lambda side: setattr(side.optimizer, "wd", -0.0),
    "bound of gradients": lambda side: setattr(side.optimizer, "clip_gradient", 0.01),
    "batch size": lambda side: setattr(side, "batch", side.batch * 2),
    "rate of a parameter": lambda side: setattr(side.params[0], "lr_mult", 0.25),
    "no rate of a parameter": lambda side: setattr(side.params[1], "lr_mult", 0.0),
    "decay of a parameter": lambda side: setattr(side.params[1], "wd_mult", 0.0),
    "schedule": _scheduled,
    "no parameters with rates": lambda side: setattr(side.optimizer, "param_dict", {}),
    "rates by index": lambda side: (setattr(side.optimizer, "param_dict", {}), side.optimizer.set_lr_mult({0: 3.0})),
    "decays by index": lambda side: (setattr(side.optimizer, "param_dict", {}), side.optimizer.set_wd_mult({0: 3.0})),
    "a method of the rate": lambda side: setattr(
        side.optimizer, "_get_lr", _double_rate.__get__(side.optimizer)),
    "a method of the count": lambda side: setattr(
        side.optimizer, "_update_count", lambda index: type(side.optimizer)._update_count(side.optimizer, index) + 1),
    "a method of the update": lambda side: setattr(
        side.optimizer, "update", lambda index, weight, grad, state: weight.__isub__(grad * 0.5)),
    "frozen parameter": lambda side: setattr(side.params[0], "grad_req", "null"),
    "thawed parameter": lambda side: [setattr(side.params[0], "grad_req", req) for req in ("null", "write")],
    "added gradients": lambda side: [setattr(each, "grad_req", "add") for each in side.params[:2]],
    "values": lambda side: side.params[0].set_data(nd.ones(side.params[0].shape, dtype=side.params[0].dtype)),
    "values in place": lambda side: side.params[1].data().__setitem__(slice(0, 1), 2),
    "values of all": lambda side: side.net.initialize(mx.init.One(), force_reinit=True),
    "contexts": lambda side: side.net.collect_params().reset_ctx(mx.cpu(0)),
    "gradient array": lambda side: side.params[0].data().attach_grad(),
    "dtype and back": lambda side: [side.net.cast(dtype) for dtype in ("float64", "float32")],
    "dtype": lambda side: side.net.cast("float64"),
    "zero gradients": lambda side: side.net.collect_params().zero_grad(),
    "states from bytes": _from_bytes,
    "states in place": lambda side: [_zeros(state) for state in side.updater.states.values()],
    "a state less": lambda side: side.updater.states.pop(0),
    "another optimizer": _replaced,
    "a registration": lambda side: renew(get("sgd_mom_update")),
    "in Python": lambda side: side.net.hybridize(False),
}


def _both(kind: str, changes: list[str]) -> None:
    """Three steps by trainer and updater, at first and after each change."""
    sides, run = (Side(kind, True), Side(kind, False)), 0
    for name in ("nothing", *changes):
        ends = []
        for side in sides:
            try:
                CHANGES[name](side)
                for step in range(3):
                    side.step(run + step)
                ends.append(None)
            except (ValueError, TypeError) as error:
                ends.append((type(error), str(error).split("\n")[0]))
        run += 3
        assert ends[0] == ends[1], (name, ends)
        for parameter, one, other in zip(sides[0].params, *[side.found() for side in sides]):
            assert one.dtype == other.dtype, (name, parameter.name)
            np.testing.assert_array_equal(one, other, err_msg=f"{name}: {parameter.name}")
        if ends[0] is not None:
            return


@of_each(CHANGES)
def test_changes_between_steps_take_effect(name: str) -> None:
    _both("sgd", [name])


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("seed", range(4))
def test_changes_in_any_order_take_effect(kind: str, seed: int) -> None:
    _both(kind, random.Random(f"{kind}{seed}").choices(list(CHANGES), k=6))


@pytest.mark.parametrize("kind", SETTINGS)
def test_later_steps_reuse_bound_arrays(kind: str) -> None:
    side = Side(kind, True)
    for run in range(2):
        side.step(run)
    assert (side.trainer._updates[0].segment is None) == (kind == "nadam")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda trainer: pickle.loads(pickle.dumps(trainer))],
                         ids=["deepcopy", "pickle"])
def test_a_copy_of_a_trainer_shares_no_parameters(copied: Callable[[Any], Any]) -> None:
    side = Side("sgd", True)
    for run in range(3):
        side.step(run)
    twin = copied(side.trainer)
    before = [each.data().asnumpy() for each in twin._params]
    side.step(3)
    for one, other in zip(before, twin._params):
        np.testing.assert_array_equal(one, other.data().asnumpy())
    for own, other in zip(side.params, twin._params):
        if own.grad_req != "null":
            other.grad()[:] = own.grad()
            other.data()._fresh_grad = True
    twin.step(side.batch)
    for own, other in zip(side.params, twin._params):
        if own.grad_req != "null":
            np.testing.assert_array_equal(own.data().asnumpy(), other.data().asnumpy())

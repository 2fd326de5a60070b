"""Gradients that a hybridized network computes in the arrays of its parameters agree with the plain network in every
program."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.gluon import nn
from tests.questions import of_each


class Shared(gluon.HybridBlock):
    """A dense layer, its norm, dropout, and another dense layer with the same weight."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.first = nn.Dense(3, in_units=3)
            self.norm = nn.BatchNorm(in_channels=3)
            self.drop = nn.Dropout(0.5)
            self.again = nn.Dense(3, in_units=3, params=self.first.params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.again(self.drop(self.norm(self.first(x).sin())))


class Machine:
    """A network, its input, and the results of a program."""

    def __init__(self, hybrid: bool):
        self.net = Shared(prefix="net_")
        self.net.initialize()
        rng = np.random.default_rng(1)
        self.params = list(self.net.collect_params().values())
        for each in self.params:
            if each.name.endswith(("weight", "bias", "gamma")):
                each.set_data(nd.array(rng.standard_normal(each.shape), dtype="float32"))
        if hybrid:
            self.net.hybridize()
        self.x = nd.array(rng.standard_normal((4, 3)))
        self.found: list[np.ndarray] = []

    @property
    def weight(self) -> nd.NDArray:
        return self.net.first.weight.data()

    @property
    def grad(self) -> nd.NDArray:
        return self.net.first.weight.grad()

    def forward(self, x: Any = None) -> nd.NDArray:
        with autograd.record():
            return (self.net(self.x if x is None else x) ** 2).sum()

    def see(self, *arrays: nd.NDArray) -> None:
        self.found += [each.asnumpy() for each in arrays]

    def see_all(self) -> None:
        self.see(*[each.data() for each in self.params],
                 *[each.grad() for each in self.params if each.grad_req != "null"])


def plain(m: Machine) -> None:
    m.forward().backward()


def twice(m: Machine) -> None:
    with autograd.record():
        total = (m.net(m.x) ** 2).sum() + m.net(m.x * 2).sum()
    total.backward()


def nested(m: Machine) -> None:
    with autograd.record():
        total = m.net(m.net(m.x).tanh()).sum()
    total.backward()


def two_passes(m: Machine) -> None:
    first, second = m.forward(), m.forward(m.x * 3)
    second.backward()
    m.see(m.grad)
    first.backward()


def two_heads(m: Machine) -> None:
    autograd.backward([m.forward(), m.forward(m.x * 3)])


def again(m: Machine) -> None:
    total = m.forward()
    total.backward(retain_graph=True)
    m.see(m.grad)
    m.grad[:] = 5
    total.backward()


def by_grad(m: Machine) -> None:
    m.grad[:] = 7
    m.see(*autograd.grad(m.forward(), [m.weight]))
    m.see(m.grad)


def by_grad_and_backward(m: Machine) -> None:
    total = m.forward()
    m.grad[:] = 7
    m.see(*autograd.grad(total, [m.weight], retain_graph=True))
    m.see(m.grad)
    total.backward()


def decay_before(m: Machine) -> None:
    with autograd.record():
        total = (m.weight * m.weight).sum()
        total = total + (m.net(m.x) ** 2).sum()
    total.backward()


def decay_behind(m: Machine) -> None:
    with autograd.record():
        total = (m.net(m.x) ** 2).sum()
        total = total + (m.weight * m.weight).sum()
    total.backward()


def of_its_gradient(m: Machine) -> None:
    """The loss contains the last gradient as a factor."""
    plain(m)
    with autograd.record():
        scale = m.weight * m.grad
        total = (m.net(m.x) ** 2).sum() + scale.sum()
    total.backward()


def gradient_as_input(m: Machine) -> None:
    plain(m)
    m.forward(m.grad).backward()


def gradient_as_seed(m: Machine) -> None:
    plain(m)
    with autograd.record():
        out = m.net(m.x[:3])
    out.backward(m.grad)


def weight_as_input(m: Machine) -> None:
    m.forward(m.weight).backward()


def input_with_gradient(m: Machine) -> None:
    x = m.x.copy()
    x.attach_grad()
    m.forward(x).backward()
    m.see(x.grad)


def computed_input(m: Machine) -> None:
    x = m.x.copy()
    x.attach_grad()
    with autograd.record():
        total = (m.net(x * 2) ** 2).sum()
    total.backward()
    m.see(x.grad)


def held_gradient(m: Machine) -> None:
    before = m.grad
    plain(m)
    m.weight.attach_grad()
    m.forward(m.x * 2).backward()
    m.see(before, m.weight.grad)
    m.net.first.weight._grad[0] = m.weight.grad


def replaced_since(m: Machine) -> None:
    total, before = m.forward(), m.grad
    m.net.first.weight.grad_req = "null"
    m.net.first.weight.grad_req = "write"
    before[:] = 4
    total.backward()
    m.see(before)


def added(m: Machine) -> None:
    m.net.first.weight.grad_req = "add"
    plain(m)
    plain(m)
    m.net.first.weight.grad_req = "write"
    m.net.first.weight.zero_grad()
    plain(m)


def gradients_in_one_array(m: Machine) -> None:
    whole = nd.zeros((2, 3))
    names = [m.net.norm.gamma, m.net.norm.beta]
    arrays = [each.data() for each in names]
    for i, each in enumerate(names):
        each._grad[0] = whole[i]
    autograd.mark_variables(arrays, [each._grad[0] for each in names])
    plain(m)
    m.see(whole)


def one_array_for_two(m: Machine) -> None:
    both = [m.net.norm.gamma, m.net.norm.beta]
    both[0]._grad[0] = both[1]._grad[0]
    autograd.mark_variables([each.data() for each in both], [each._grad[0] for each in both])
    plain(m)


def in_inference(m: Machine) -> None:
    with autograd.record(train_mode=False):
        total = (m.net(m.x) ** 2).sum()
    total.backward(train_mode=False)


def of_another_mode(m: Machine) -> None:
    with autograd.record(train_mode=False):
        total = (m.net(m.x) ** 2).sum()
    total.backward()


def dropped(m: Machine) -> None:
    m.forward()
    plain(m)


def view_of_gradient(m: Machine) -> None:
    row = m.grad[1]
    plain(m)
    m.see(row)


def sliced(m: Machine) -> None:
    m.forward(m.x[:2]).backward()


PROGRAMS: list[Callable[[Machine], None]] = [
    plain, twice, nested, two_passes, two_heads, again, by_grad, by_grad_and_backward, decay_before, decay_behind,
    of_its_gradient, gradient_as_input, gradient_as_seed, weight_as_input, input_with_gradient, computed_input,
    held_gradient, replaced_since, added, gradients_in_one_array, one_array_for_two,
    in_inference, of_another_mode, dropped, view_of_gradient, sliced]


def _same(programs: list[Callable[[Machine], None]], rate: float) -> None:
    found = []
    for hybrid in (True, False):
        m = Machine(hybrid)
        m.net.drop._rate = rate
        plain(m)  # plans exist when the programs begin
        for number, program in enumerate(programs):
            mx.random.seed(number)
            program(m)
            m.see_all()
        found.append(m.found)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4, err_msg=str([each.__name__ for each in programs]))


@of_each(PROGRAMS)
def test_a_program_has_the_gradients_of_the_plain_network(program: Callable[[Machine], None]) -> None:
    _same([program, plain], 0.0)


@of_each(range(10))
def test_programs_in_any_order_have_the_same_gradients(seed: int) -> None:
    _same(random.Random(seed).choices(PROGRAMS, k=6), 0.0)


def test_random_values_are_those_of_the_forward_pass() -> None:
    """A gradient that is not computed in place runs forward again, with the same random numbers."""
    found = []
    for program in (by_grad_and_backward, plain):
        m = Machine(True)
        mx.random.seed(5)
        program(m)
        found.append([each.grad().asnumpy() for each in m.params if each.grad_req != "null"])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_input_may_change_after_its_forward_pass() -> None:
    found = []
    for changed in (True, False):
        m = Machine(True)
        m.net.drop._rate = 0.0
        total = m.forward(x := m.x.copy())
        if changed:
            x[:] = 9
        found.append(autograd.grad(total, [m.weight])[0].asnumpy())
    np.testing.assert_array_equal(*found)


def test_a_gradient_is_computed_in_the_array_of_its_parameter() -> None:
    m = Machine(True)
    plain(m)
    plan = next(iter(m.net._cached_op._placed.values()))
    (_, compiled), = plan.kinds.values()
    assert [len(recorded.leaf_gradients) for plans in compiled.idle_recorded.values() for recorded in plans] == [4]


@pytest.mark.parametrize("carried", (False, True))
def test_a_network_does_not_keep_the_operators_before_it_alive(carried: bool) -> None:
    m = Machine(True)
    for _ in range(2):
        with autograd.record():
            before = nd.dot(m.x, m.weight)
        if carried:
            before.backward()
        with autograd.record():
            out = m.net(before)
        out.backward()
    assert m.net.first.bias.grad().asnumpy().any()
    node = weakref.ref(before._entry[0])
    del before, out
    assert node() is None


def test_an_array_that_replaces_another_in_the_list_of_a_parameter_is_read() -> None:
    found = []
    for hybrid in (True, False):
        m = Machine(hybrid)
        m.net(m.x)
        m.net.first.bias.list_data()[0] = nd.ones((3,))
        found.append(m.net(m.x).asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-6)

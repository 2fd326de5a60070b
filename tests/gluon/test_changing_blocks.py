"""Random programs that change a network: hybridized and plain blocks agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.gluon import nn
from tests.questions import of_each


class Scaled(gluon.HybridBlock):
    """A dense layer with a factor, a list of values and a parameter of its own."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor, self.table = factor, [1.0]
        with self.name_scope():
            self.dense = nn.Dense(2, in_units=2)
            self.vector = self.params.get("vector", shape=(1, 2), init="ones")

    def hybrid_forward(self, F: Any, x: Any, vector: Any) -> Any:
        return F.broadcast_mul(self.dense(x), vector) * self.factor * self.table[0]


class Machine:
    """A network and random changes of it.

    Parameters
    ----------
    seed : int
        Seed of the program.
    """

    def __init__(self, seed: int):
        self.random, self.numbers = random.Random(seed), np.random.RandomState(seed)
        self.net = nn.HybridSequential()
        for _ in range(self.random.randint(1, 3)):
            self.add()
        self.net.hybridize()

    def add(self) -> None:
        """Adds a layer."""
        layer = self.random.choice([
            lambda: Scaled(2.0), lambda: nn.Dense(2, in_units=2, activation="relu"), lambda: nn.LeakyReLU(0.2),
            lambda: nn.BatchNorm(in_channels=2), lambda: nn.Dropout(0.5)])()
        layer.initialize(mx.init.Normal(1))
        self.net.add(layer)

    def drawn(self, *shape: int) -> nd.NDArray:
        return nd.array(self.numbers.randn(*shape))

    def change(self) -> str:
        """Changes the network, and returns a description."""
        net, parameters = self.net, list(self.net.collect_params().values())
        parameter = self.random.choice(parameters) if parameters else None
        layers = [block for block in net._children.values() if isinstance(block, Scaled)]
        scaled = self.random.choice(layers or [Scaled(1.0)])
        what = self.random.choice(["values", "memory", "request", "another", "layer", "no layer", "order", "factor",
                                   "table", "hybridize"])
        if what == "values" and parameter is not None:
            parameter.set_data(self.drawn(*parameter.shape))
        elif what == "memory" and parameter is not None:
            parameter.data()[:] = self.drawn(*parameter.shape)
        elif what == "request" and parameter is not None:
            parameter.grad_req = self.random.choice(["write", "add", "null"])
        elif what == "another":
            other = gluon.Parameter(scaled.vector.name, shape=(1, 2))
            other.initialize(mx.init.Normal(1))
            scaled._reg_params["vector"] = other
        elif what == "layer":
            self.add()
        elif what == "no layer" and len(net) > 1:
            net._children.popitem()
        elif what == "order":
            children: Any = net._children
            children.move_to_end(next(iter(children)))
        elif what == "factor":
            scaled.factor = self.random.choice([0.5, 1.0, 3.0])
        elif what == "table":
            scaled.table[0] = self.random.choice([1.0, 2.0])
        elif what == "hybridize":
            net.hybridize()
        return what

    def parameters(self) -> Iterator[gluon.Parameter]:
        yield from self.net._collect_params_with_prefix().values()

    def answers(self, hybrid: bool, x: nd.NDArray, seed: int, train: bool, backward: bool) -> list[np.ndarray]:
        """Output, gradients and parameters of a pass; graphs, parameters and gradients are restored afterwards."""
        before = [(parameter, parameter.data().copy(), None if parameter.grad_req == "null" else
                   parameter.grad().copy()) for parameter in self.parameters()]
        self.net.apply(lambda block: vars(block).update(_active=hybrid))  # hybridize() would drop graphs
        x.attach_grad()
        mx.random.seed(seed)
        with autograd.record(train_mode=train):
            y = self.net(x)
        y.backward(train_mode=backward)
        assert x.grad is not None
        found = [y.asnumpy(), x.grad.asnumpy()]
        for parameter, data, grad in before:
            found.append(parameter.data().asnumpy())
            parameter.set_data(data)
            if grad is not None:
                found.append(parameter.grad().asnumpy())
                parameter.grad()[:] = grad
        return found


@pytest.mark.filterwarnings("ignore:Parameter .* is not used by any computation")
@of_each(range(24))
def test_a_hybridized_network_equals_an_eager_one_after_changes(seed: int) -> None:
    machine, said = Machine(seed), []
    for _ in range(6):
        said.append(machine.change())
        x = machine.drawn(machine.random.choice([2, 3]), 2)
        asked = x, machine.random.randrange(100), machine.random.random() < 0.5, machine.random.random() < 0.7
        expected = machine.answers(False, *asked)
        for one, other in zip(machine.answers(True, *asked), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=", ".join(said))

"""Blocks in compiled functions: values, gradients, states, and changes of blocks that the next run sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.gluon import nn, rnn

X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)


class Own(gluon.HybridBlock):
    """A layer, a block inside, a parameter of its own and a number."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.inner, self.chain, self.factor = nn.Dense(4, activation="relu"), nn.HybridSequential(), 2.0
            self.chain.add(nn.Dense(4, in_units=4))
            self.shift = self.params.get("shift", shape=(1,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, shift: Any) -> Any:
        return F.broadcast_add(self.chain(self.inner(x)), shift) * self.factor


class Plain(gluon.Block):
    """A block that is not hybrid."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Dense(3)

    def forward(self, x: Any) -> Any:
        return self.inner(x) * 2


def unrolled() -> tuple[gluon.Block, Callable[[Any], Any]]:
    cell = rnn.LSTMCell(3)
    return cell, lambda x: cell.unroll(2, [x, x], merge_outputs=True)[0]


def of_symbol() -> gluon.Block:
    return gluon.SymbolBlock(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), mx.sym.var("data"))


BLOCKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Dense": (lambda: nn.Dense(3), (2, 4)), "Own": (Own, (2, 4)), "Plain": (Plain, (2, 4)),
    "BatchNorm": (nn.BatchNorm, (2, 4)), "Conv2D": (lambda: nn.Conv2D(2, 3), (1, 3, 5, 5)),
    "Embedding": (lambda: nn.Embedding(5, 3), (2, 4)), "LSTM": (lambda: rnn.LSTM(3), (2, 2, 4)),
    "unrolled": (unrolled, (2, 4)), "SymbolBlock": (of_symbol, (2, 4))}


def began(name: str, hybrid: bool) -> tuple[gluon.Block, Callable[[Any], Any], np.ndarray]:
    make, shape = BLOCKS[name]
    made = make()
    net, run = made if isinstance(made, tuple) else (made, made)
    net.initialize(mx.init.Normal(1))
    if hybrid:
        net.hybridize()
    return net, run, np.random.default_rng(1).uniform(1, 3, shape).astype(np.float32)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_in_compiled_functions_have_their_values_and_gradients(name: str, hybrid: bool) -> None:
    net, run, host = began(name, hybrid)
    compiled, x = jit(lambda x: run(x)), mx.nd.array(host)
    found = compiled(Tensor(host))
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.asnumpy(), run(x).asnumpy(), 1e-5, 1e-6)

    def gradients(call: Callable[[Any], Any], value: Any) -> list[np.ndarray]:
        with autograd.record():
            out = (call(value) * 3).sum()
        out.backward()
        return [each.grad().asnumpy() for each in net.collect_params().values() if each.grad_req != "null"]

    for mine, expected in zip(gradients(compiled, Tensor(host)), gradients(run, x), strict=True):
        np.testing.assert_allclose(mine, expected, 1e-4, 1e-5)
    slope = jit(lambda x: grad(lambda x: (run(x) * 3).sum())(x))(Tensor(host))
    expected = grad(lambda x: (run(x) * 3).sum())(Tensor(host))
    np.testing.assert_allclose(slope.asnumpy(), expected.asnumpy(), 1e-4, 1e-5)


@pytest.mark.parametrize("hybrid", [False, True])
def test_training_moves_statistics(hybrid: bool) -> None:
    net, _, host = began("BatchNorm", hybrid)
    compiled = jit(lambda x: net(x))
    compiled(Tensor(host))
    before = net.running_mean.data().asnumpy()
    with autograd.record():
        compiled(Tensor(host))
    np.testing.assert_allclose(net.running_mean.data().asnumpy(), before * 0.9 + host.mean(0) * 0.1, 1e-5)


def replaced(net: Any) -> None:
    net.inner = nn.Dense(4, in_units=4, activation="tanh")
    net.inner.initialize(mx.init.Normal(1))


def longer(net: Any) -> None:
    net.chain.add(nn.Dense(3, in_units=4))
    net.chain[1].initialize(mx.init.Normal(1))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "values": lambda net: net.shift.set_data(mx.nd.ones(1) * 5), "attribute": lambda net: setattr(net, "factor", 3.0),
    "child": replaced, "longer": longer, "setting": lambda net: setattr(net.inner.act, "_act_type", "sigmoid"),
    "arrays": lambda net: net.initialize(mx.init.Normal(2), force_reinit=True),
    "hybridized": lambda net: net.hybridize()}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_blocks_are_seen(change: str) -> None:
    net = Own()
    net.initialize(mx.init.Normal(1))
    compiled = jit(lambda x: net(x))
    before = compiled(Tensor(X)).asnumpy()
    CHANGES[change](net)
    expected = net(mx.nd.array(X)).asnumpy()
    assert change == "hybridized" or expected.shape != before.shape or not np.allclose(before, expected)
    np.testing.assert_allclose(compiled(Tensor(X)).asnumpy(), expected, 1e-5, 1e-6)


def test_a_hook_that_is_registered_later_is_called() -> None:
    net = Own()
    net.initialize()
    compiled, shapes = jit(lambda x: net(x)), []
    compiled(Tensor(X))
    net.inner.register_forward_hook(lambda block, ins, out: shapes.append(out.shape))
    compiled(Tensor(X))
    assert shapes == [(2, 4)]

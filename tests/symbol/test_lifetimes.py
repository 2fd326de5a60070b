"""Arrays are freed as soon as nothing refers to them: no object that holds arrays is part of a cycle."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import ops

sym, nd = mx.sym, mx.nd


class Doubled(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("test_lifetime")
class DoubledProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Doubled()


@mx.operator.register("test_lifetime_traced")
class TracedProp(DoubledProp):
    traced = True


@mx.operator.define(name="test_lifetime_function")
def tripled(x):
    return x * 3


@tripled.grad
def tripled_grad(g, ins, outs):
    return (g * 3,)


def branch(x: Any) -> Any:
    return sym.contrib.cond(sym.sum(x) > 0, lambda: x * 2, lambda: x * 3)


def chain(x: Any) -> Any:
    outs, last = sym.contrib.foreach(lambda row, total: (row + total, row * total), x, sym.sum(x, axis=0))
    return sym.Group([outs, last])


def rounds(x: Any) -> Any:
    _, last = sym.contrib.while_loop(lambda i, each: i < 3, lambda i, each: (each, [i + 1, each * 2]),
                                     [sym.zeros((1,)), x], max_iterations=4)
    return last[1]


def layers(x: Any) -> Any:
    x = sym.Reshape(sym.Concat(x, x, dim=1), shape=(1, 1, 3, 4))
    x = sym.BatchNorm(sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=2, name="conv"), name="norm")
    x = sym.Pooling(sym.Dropout(sym.relu(x)), kernel=(2, 2), pool_type="max")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=3, name="fc"), name="softmax")


def two_places(x: Any) -> Any:
    with mx.AttrScope(ctx_group="far"):
        x = sym.tanh(x) * 2
    return x + 1


NETS = {
    "one": sym.exp, "fused": lambda x: sym.tanh(sym.exp(x) * 2 + x), "sum": lambda x: sym.sum(x * x), "loop": chain,
    "rounds": rounds, "branch": branch, "layers": layers, "places": two_places,
    "custom": lambda x: sym.Custom(x, op_type="test_lifetime"),
    "traced": lambda x: sym.Custom(x, op_type="test_lifetime_traced") + x, "function": tripled,
    "stages": lambda x: sym.tanh(sym.contrib.boolean_mask(x * 2, sym.sum(x, axis=1) > 0) * 3),
}
KINDS = {"plain": {}, "checked": {"check_kernels": True}, "recomputed": {"recompute": True}}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_an_executor_is_freed_with_its_arrays(net, kind, uncollected):
    executor = net(sym.Variable("x")).simple_bind(mx.cpu(), x=(3, 2), group2ctx={"far": mx.cpu(1)}, **kind)
    executor.arg_dict["x"][:] = np.arange(6).reshape(3, 2) / 8
    for is_train in (False, True):
        executor.forward(is_train=is_train)
    executor.backward([nd.ones(out.shape) for out in executor.outputs])
    executor.explain()
    arrays = [*executor.arg_arrays, *executor.grad_arrays, *executor.aux_arrays, *executor.outputs]
    held = [weakref.ref(executor), *[weakref.ref(each) for each in arrays],
            *[weakref.ref(each._data if each._data.base is None else each._data.base) for each in arrays]]
    del executor, arrays
    assert not any(each() is not None for each in held), [type(each()).__name__ for each in held if each() is not None]


def test_a_replaced_plan_is_freed(uncollected):
    """A plan is freed when a plan for a monitor, or for gradients as in inference, replaces it."""
    executor = sym.tanh(sym.exp(sym.Variable("x")) * 2).simple_bind(mx.cpu(), x=(3,))
    executor.forward(is_train=True)
    plan = weakref.ref(executor.plan(True))
    executor.backward(nd.ones((3,)), is_train=False)
    assert plan() is None
    executor.set_monitor_callback(lambda name, value: None)
    executor.forward()
    held = weakref.ref(executor)
    del executor
    assert held() is None


def test_an_index_of_arrays_goes_with_the_symbol_whose_gradient_was_made():
    key = np.array([0, 2])
    held = weakref.ref(key)
    symbol = ops._subscript(sym.Variable("x", shape=(3, 2)), key=(key,))
    gradient = symbol.gradient(["x"])
    del symbol, gradient, key
    assert held() is None

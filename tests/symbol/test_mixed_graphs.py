"""Random graphs of operators of all families: fused and compiled plans agree with a plan that is monitored."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.backends.numba import compiler

sym = mx.sym
Weight = Callable[..., Any]  # a variable of a shape
TOLERANCE = {"float32": 2e-4, "float64": 1e-9, "float16": 3e-2}


def _convolution(x: Any, y: Any, new: Weight, shape: tuple[int, ...]) -> Any:
    if len(shape) < 4:
        return sym.FullyConnected(x * 0.1, new(shape[-1], shape[-1]), new(shape[-1]), num_hidden=shape[-1],
                                  flatten=False)
    return sym.Convolution(x * 0.1, new(shape[1], shape[1], 3, 3), new(shape[1]), kernel=(3, 3), pad=(1, 1),
                           num_filter=shape[1])


def _recurrent(x: Any, y: Any, new: Weight, shape: tuple[int, ...]) -> Any:
    if len(shape) != 3:
        return sym.reciprocal(sym.abs(x) + 0.5)
    _, batch, size = shape
    return sym.RNN(x, new(3 * size * (2 * size + 2)) * 0.3, new(1, batch, size), state_size=size, num_layers=1,
                   mode="gru")[0]


#: Layers that keep the shape. Arguments are two values, a function that makes a weight, and the shape.
LAYERS: list[Callable[[Any, Any, Weight, tuple[int, ...]], Any]] = [
    lambda x, y, new, shape: sym.tanh(x),
    lambda x, y, new, shape: sym.relu(x) * 2.0 + 1.0,
    lambda x, y, new, shape: 1.0 / (sym.abs(x) + 0.5),
    lambda x, y, new, shape: sym.sqrt(sym.square(x) + 0.25),
    lambda x, y, new, shape: x ** 3 * 0.1 - x,
    lambda x, y, new, shape: x * y,
    lambda x, y, new, shape: sym.where(x > 0.1, x, y),
    lambda x, y, new, shape: sym.broadcast_maximum(x, y * 0.5),
    lambda x, y, new, shape: sym.broadcast_mul(x, new(*shape[:-1], 1)),
    lambda x, y, new, shape: sym.broadcast_sub(x, sym.mean(y, axis=-1, keepdims=True)),
    lambda x, y, new, shape: sym.softmax(x) + y,
    lambda x, y, new, shape: sym.log_softmax(x, axis=0),
    lambda x, y, new, shape: sym.LayerNorm(x, new(shape[-1]), new(shape[-1])),
    lambda x, y, new, shape: sym.L2Normalization(x + 0.1),
    lambda x, y, new, shape: sym.reshape(sym.transpose(x), shape=shape),
    _convolution,
    _recurrent,
]


def _net(steps: list[tuple[int, int, bool]], shape: tuple[int, ...]) -> tuple[Any, dict[str, tuple[int, ...]]]:
    shapes = {"x0": shape}

    def new(*shape: int) -> Any:
        name = f"x{len(shapes)}"
        shapes[name] = shape
        return sym.Variable(name)

    values, heads = [sym.Variable("x0")], []
    for layer, other, shown in steps:
        values.append(LAYERS[layer](values[-1], values[other % len(values)], new, shape))
        if shown:
            heads.append(values[-1])
    return sym.Group([values[-1], *heads]), shapes


def _results(net: Any, shapes: dict[str, tuple[int, ...]], dtype: str, reqs: dict[str, str], kernels: str,
             watched: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    args, grads = ({name: mx.nd.array(rng.standard_normal(shape), dtype=dtype) for name, shape in shapes.items()}
                   for _ in range(2))
    with compiler.use(kernels):
        executor = net.bind(mx.cpu(), args, grads, grad_req=reqs)
        if watched:
            executor.set_monitor_callback(lambda *each: None)
        for _ in range(2):
            executor.forward(is_train=True)
            heads = [mx.nd.array(np.cos(np.arange(out.size)).reshape(out.shape), dtype=dtype)
                     for out in executor.outputs]
            executor.backward(heads)
    return [each.asnumpy() for each in (*executor.outputs, *grads.values())]


def _same(kernels: str, steps: Any, shape: tuple[int, ...], dtype: str, reqs: list[str]) -> None:
    net, shapes = _net(steps, shape)
    requests = {name: reqs[i % len(reqs)] for i, name in enumerate(shapes)}
    with np.errstate(all="ignore"):
        wanted = _results(net, shapes, dtype, requests, "numpy", True)
        found = _results(net, shapes, dtype, requests, kernels, False)
    for one, other in zip(found, wanted, strict=True):
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


GRAPHS = given(
    st.lists(st.tuples(st.integers(0, len(LAYERS) - 1), st.integers(0, 9), st.sampled_from([False, False, True])),
             min_size=1, max_size=7),
    st.sampled_from([(1, 1), (3, 17), (64, 300), (1, 4, 5), (5, 3, 16), (2, 8, 1, 1), (2, 3, 6, 5)]),
    st.sampled_from(["float32", "float64", "float16"]),
    st.lists(st.sampled_from(["write", "add", "null"]), min_size=1, max_size=4))


@settings(max_examples=80)
@GRAPHS
def test_fused_plans_equal_the_operators_one_by_one(steps: Any, shape: tuple[int, ...], dtype: str,
                                                    reqs: list[str]) -> None:
    _same("numpy", steps, shape, dtype, reqs)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
@settings(max_examples=30)
@GRAPHS
def test_compiled_plans_equal_the_operators_one_by_one(steps: Any, shape: tuple[int, ...], dtype: str,
                                                       reqs: list[str]) -> None:
    _same("numba", steps, shape, dtype, reqs)

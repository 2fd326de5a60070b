"""Traced bodies that call the functions of ``ops`` and ``mint``, alone and beside those of ``nd``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym

ops, autograd = mx.ops, mx.autograd
_NUMBERS = itertools.count()
X = np.random.default_rng(0).standard_normal((3, 4))


@pytest.fixture(autouse=True)
def registered(unregistered: None) -> None:
    """Removes the operators of a test after it."""


def _centered(x: Any) -> Any:
    y = ops.softmax(x, -1)
    return (y - y.mean(axis=1, keepdims=True)).square().sum(axis=0)


BODIES: dict[str, Callable] = {
    "functions": lambda x: ops.relu(x) * 0.5 + ops.sigmoid(x),
    "beside nd": lambda x: nd.exp(ops.tanh(x)) + x * ops.sigmoid(x),
    "methods": _centered,
    "a constant": lambda x: ops.concat((x, ops.gelu(x)), 1)[:, 1:3] * 2 + mx.Tensor([1.0, 2.0]),
    "parts": lambda x: ops.split(x, 2, 1)[1] / 3,
    "a choice": lambda x: ops.where(ops.greater(x, 0), x, x.abs() * 0.1).reshape((-1,)),
    "mint": lambda x: mx.mint.nn.functional.silu(x) - mx.mint.mean(x),
}


def _operator(function: Callable, kind: str) -> Callable:
    name = f"test_tensor_body_{next(_NUMBERS)}"
    if kind == "define":
        return mx.operator.define(function, name=name, traced=True)

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], function(in_data[0]))

    @mx.operator.register(name)
    class Prop(mx.operator.CustomOpProp):
        traced = True

        def infer_shape(self, in_shapes):
            return in_shapes, [function(nd.zeros(in_shapes[0])).shape], []

        def create_operator(self, *_):
            return Op()

    return lambda x: (mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd).Custom(x, op_type=name)


@pytest.mark.parametrize("kind", ["define", "Prop"])
@pytest.mark.parametrize("name", BODIES)
def test_eager_calls_and_graphs_give_what_the_function_gives(name: str, kind: str) -> None:
    function = BODIES[name]
    op, x = _operator(function, kind), nd.array(X, dtype="float64")
    expected = function(x).asnumpy()
    np.testing.assert_allclose(op(x).asnumpy(), expected, rtol=1e-12)
    x.attach_grad()
    with autograd.record():
        loss = (op(x) ** 2).sum()
    loss.backward()
    graph = sym.load_json((op(sym.Variable("x")) ** 2).tojson())
    executor = graph.bind(mx.cpu(), {"x": x}, {"x": nd.zeros(X.shape, dtype="float64")})
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), expected ** 2, rtol=1e-12)
    executor.backward(nd.ones(expected.shape, dtype="float64"))
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), x.grad.asnumpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BODIES)
def test_gradients_of_both_orders_agree_with_differences(name: str) -> None:
    mx.operator.check(_operator(BODIES[name], "define"), nd.array(X, dtype="float64")).raise_if_failed()


@pytest.mark.parametrize("name", BODIES)
def test_compiled_functions_take_the_body_in(name: str) -> None:
    op, x = _operator(BODIES[name], "define"), mx.Tensor(X.astype(np.float32))
    np.testing.assert_allclose(mx.jit(lambda x: op(x))(x).asnumpy(), op(x).asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BODIES)
def test_models_of_onnx_compute_the_body(name: str, tmp_path: Any) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    op, x = _operator(BODIES[name], "define"), X.astype(np.float32)
    file = str(tmp_path / "model.onnx")
    mx.onnx.export_model(op(sym.Variable("x")), {}, [x.shape], np.float32, file)
    (found,) = runtime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_allclose(found, op(nd.array(x)).asnumpy(), rtol=1e-5, atol=1e-6)

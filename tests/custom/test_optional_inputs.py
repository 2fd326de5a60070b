"""Inputs with the default None, which calls of a defined operator may leave out."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym
from opreg.errors import ArgumentError, DTypeError

autograd, ops = mx.autograd, mx.ops
_NUMBERS = itertools.count()
_RANDOM = np.random.default_rng(0)
ARRAYS = {name: _RANDOM.standard_normal(shape) for name, shape in (
    ("x", (2, 3)), ("weight", (3, 4)), ("bias", (4,)), ("mask", (2, 4)))}


@pytest.fixture(autouse=True)
def registered(unregistered: None) -> None:
    """Removes the operators of a test after it."""


def _dense(x, weight, bias=None, mask=None, *, act: bool = True):
    y = nd.dot(x, weight)
    if bias is not None:
        y = nd.broadcast_add(y, bias)
    if mask is not None:
        y = y * mask
    return nd.tanh(y) if act else y


def _defined(function: Callable, **how: Any) -> Any:
    return mx.operator.define(function, name=f"test_optional_{next(_NUMBERS)}", **how)


def _arrays(names: Any) -> dict[str, Any]:
    return {name: nd.array(ARRAYS[name], dtype="float64") for name in names}


CALLS: list[tuple[list, dict]] = [
    (["x", "weight"], {}), (["x", "weight", "bias"], {}), (["x", "weight", None, "mask"], {}),
    (["x", "weight"], {"mask": "mask"}), (["x", "weight", "bias", "mask"], {"act": False}),
    (["x"], {"weight": "weight", "bias": "bias"}), (["x", "weight"], {"bias": None, "mask": "mask"}),
]


def _filled(call: tuple[list, dict], values: dict[str, Any]) -> tuple[list, dict]:
    """The arguments of a call, with names replaced by values."""
    args, keywords = call
    return [values.get(name) for name in args], {name: values.get(value) if not isinstance(value, bool) else value
                                                 for name, value in keywords.items()}


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_calls_graphs_and_files_have_the_inputs_that_are_given(call: tuple[list, dict]) -> None:
    op = _defined(_dense, traced=True)
    names = [name for name in ARRAYS if name in (*call[0], *call[1].values())]
    arrays = _arrays(names)
    args, keywords = _filled(call, arrays)
    expected = _dense(*args, **keywords).asnumpy()
    for array in arrays.values():
        array.attach_grad()
    with autograd.record():
        y = op(*args, **keywords)
    np.testing.assert_allclose(y.asnumpy(), expected)
    y.backward()
    args, keywords = _filled(call, {name: sym.Variable(name) for name in names})
    graph = sym.load_json(op(*args, **keywords).tojson())
    assert sorted(graph.list_arguments()) == sorted(names)
    assert graph.infer_shape(**{name: ARRAYS[name].shape for name in names})[1] == [expected.shape]
    grads = {name: nd.zeros_like(array) for name, array in arrays.items()}
    executor = graph.bind(mx.cpu(), arrays, grads)
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), expected)
    executor.backward(nd.ones(expected.shape, dtype="float64"))
    for name, array in arrays.items():
        np.testing.assert_allclose(grads[name].asnumpy(), array.grad.asnumpy())


@pytest.mark.parametrize("names", [["x", "weight"], ["x", "weight", "bias"], ["x", "weight", "bias", "mask"]])
@pytest.mark.parametrize("traced", [True, False])
def test_operators_with_optional_inputs_pass_the_check(traced: bool, names: list[str]) -> None:
    op = _defined(_dense, traced=traced)
    if not traced:

        @op.grad
        def dense_grad(g, ins, outs, *, act):
            x, weight, bias, mask = ins
            before = nd.dot(x, weight) if bias is None else nd.broadcast_add(nd.dot(x, weight), bias)
            slope = g * (1 - outs[0] ** 2) if act else g
            inner = slope if mask is None else slope * mask
            return (nd.dot(inner, weight, transpose_b=True), nd.dot(x, inner, transpose_a=True),
                    None if bias is None else nd.sum(inner, axis=0), None if mask is None else before * slope)

    mx.operator.check(op, *_arrays(names).values()).raise_if_failed()


def test_rules_get_none_for_inputs_that_are_left_out() -> None:
    def summed(x, bias=None, scale=None):
        return x * (1 if scale is None else scale)

    op, seen = _defined(summed, types="T,int32,T->T"), []

    @op.infer
    def summed_infer(x, bias, scale):
        seen.append((bias, scale))
        return x

    x, scale = sym.Variable("x"), sym.Variable("scale")
    net = op(x, scale=scale)
    assert net.infer_shape(x=(2, 3), scale=(2, 3))[1] == [(2, 3)] and (None, (2, 3)) in seen
    assert net.infer_type(x="float16")[0] == [np.float16, np.float16]
    with pytest.raises(DTypeError, match="input 'scale' is float32"):
        op(nd.ones(2, dtype="float64"), scale=nd.ones(2))


def test_rules_for_batches_and_tangents_get_none() -> None:
    def scaled(x, bias=None, scale=None):
        return x * scale

    op = _defined(scaled)

    @op.grad
    def scaled_grad(g, ins, outs):
        return g * ins[2], None, g * ins[0]

    @op.vmap
    def scaled_vmap(ins, batched):
        assert ins[1] is None and not batched[1]
        return ins[0] * ins[2]

    @op.jvp
    def scaled_jvp(t, ins, outs):
        assert t[1] is None and ins[1] is None
        return sum(tangent * value for tangent, value in ((t[0], ins[2]), (t[2], ins[0])) if tangent is not None)

    x, scale = [mx.Tensor(np.arange(start, start + 6.0, dtype=np.float32).reshape(3, 2)) for start in (1, 2)]
    product = lambda x, scale: op(x, scale=scale)  # noqa: E731
    np.testing.assert_array_equal(ops.vmap(product)(x, scale).asnumpy(), (x * scale).asnumpy())
    _, tangent = ops.jvp(product, (x, scale), (scale, x))
    np.testing.assert_array_equal(tangent.asnumpy(), (x * x + scale * scale).asnumpy())


def test_compiled_functions_and_onnx_take_optional_inputs(tmp_path: Any) -> None:
    op = _defined(_dense, traced=True)
    values = {name: array.astype(np.float32) for name, array in ARRAYS.items()}
    x, weight, mask = [mx.Tensor(values[name]) for name in ("x", "weight", "mask")]
    expected = np.tanh(values["x"] @ values["weight"] * values["mask"])
    found = mx.jit(lambda x, mask: op(x, weight, mask=mask))(x, mask)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    net, file = op(sym.Variable("x"), sym.Variable("weight"), None, sym.Variable("mask")), str(tmp_path / "model.onnx")
    mx.onnx.export_model(net, {"weight": nd.array(values["weight"])}, [(2, 3), (2, 4)], np.float32, file)
    (found,) = runtime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(
        None, {name: values[name] for name in ("x", "mask")})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_signatures_show_the_default() -> None:
    assert str(inspect.signature(_defined(_dense))) == \
        "(x, weight, bias=None, mask=None, *, act: bool = True, out=None, name=None)"


@pytest.mark.parametrize("function, words", [
    (lambda x, rate=0.5: x, r"no default but None.*\(…, \*, rate=0.5\)"),
    (lambda x, bias=None, *rest: x, r"inputs that may be left out, as bias, and any number of inputs, \*rest"),
    (lambda x, given_inputs: x, "cannot be called 'given_inputs'"),
])
def test_signatures_that_an_operator_cannot_have(function: Callable, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        mx.operator.define(function, name=f"test_optional_{next(_NUMBERS)}")


def test_an_input_without_a_default_is_needed() -> None:
    with pytest.raises(ArgumentError, match="missing weight"):
        _defined(_dense)(nd.ones((2, 3)), bias=nd.ones(4))

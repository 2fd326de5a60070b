"""The checks that ``mx.test_utils`` offers: they pass what is right and say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError

sym, nd, tools = mx.sym, mx.nd, mx.test_utils


@pytest.fixture(autouse=True)
def seeded():
    tools.set_seed(1)


class Wrong(mx.operator.CustomOp):
    """Squares, with a gradient that is too large."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[0] * 2.1)


@mx.operator.register("_checks_wrong")
class WrongProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Wrong()


X = np.array([[0.3, -1.0], [2.0, 0.5]])


def test_right_and_wrong_gradients():
    x = sym.var("x")
    tools.check_numeric_gradient(x * x, {"x": X})
    requests = {"x": "add", "y": "null"}
    tools.check_numeric_gradient(x * x * sym.var("y"), [X, X + 1], dtype=np.float64, grad_nodes=requests)
    with pytest.raises(AssertionError, match=r"gradient of x \(write\) and central differences differ in 4 of 4"):
        tools.check_numeric_gradient(sym.Custom(x, op_type="_checks_wrong"), {"x": X})
    data = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False)
    location = {"data": np.random.default_rng(0).normal(size=(6, 3)), "bn_gamma": np.ones(3), "bn_beta": np.zeros(3)}
    tools.check_numeric_gradient(data, location, {"bn_moving_mean": np.zeros(3), "bn_moving_var": np.ones(3)},
                                 dtype=np.float64, rtol=1e-3, atol=1e-5)


def test_outputs_and_gradients_as_expected():
    x = sym.var("x")
    graph = sym.Group([x * 2, x + sym.var("y")])
    tools.check_symbolic_forward(graph, [X, X], [2 * X, 2 * X])
    names = graph.list_outputs()
    tools.check_symbolic_forward(graph, {"x": X, "y": X}, dict(zip(names, [2 * X, 2 * X])))
    with pytest.raises(AssertionError, match="expected _plus"):
        tools.check_symbolic_forward(graph, [X, X], [2 * X, X])
    for request in ("write", "add", "null"):
        grads = tools.check_symbolic_backward(graph, [X, X], [X, X], {"x": 3 * X, "y": X}, grad_req=request)
    assert set(grads) == {"x", "y"}
    with pytest.raises(AssertionError, match=r"expected gradient of y \(write\)"):
        tools.check_symbolic_backward(graph, [X, X], dict(zip(names, [X, X])), [3 * X, 2 * X])
    assert np.allclose(tools.simple_forward(graph, x=X, y=X)[0], 2 * X)


def test_contexts_and_dtypes_agree():
    net = sym.FullyConnected(sym.var("x"), num_hidden=3, name="fc")
    entries = [{"ctx": mx.cpu(i), "x": (2, 4), "type_dict": {"x": dtype}}
               for i, dtype in enumerate(("float64", "float32", "float16"))]
    assert tools.check_consistency(net, entries)[0].dtype == np.float64
    other = sym.FullyConnected(sym.var("x") * 1.5, num_hidden=3, name="fc")
    with pytest.raises(AssertionError, match="output 0 of entry 1 and entry 0"):
        tools.check_consistency([net, other], entries[:2])
    tools.check_consistency([net, other], entries[:2], raise_on_err=False)


def test_comparing():
    assert tools.same(X, nd.array(X, dtype="float64")) and not tools.same(X, X.ravel())
    assert tools.almost_equal(np.float32([1]), [1 + 1e-6]) and not tools.almost_equal([1.0], [1 + 1e-6])
    assert not tools.almost_equal(X, X[0], use_broadcast=False)
    assert tools.find_max_violation([1.0, 2.0], [1.0, 3.0], rtol=0, atol=1.0) == ((1,), 1.0)
    with pytest.raises(AssertionError, match=r"left and right differ in 1 of 4 places, most at \(1, 0\): 2.0 and 5.0"):
        tools.assert_almost_equal(X, X + np.array([[0, 0], [3, 0]]), names=("left", "right"))
    with pytest.raises(AssertionError, match="nan and 1"):
        tools.assert_almost_equal([np.nan, 1.0], [1.0, 1.0])
    with pytest.raises(AssertionError, match="nan and nan"):
        tools.assert_almost_equal([np.nan], [np.nan])
    tools.assert_almost_equal([np.nan], [np.nan], equal_nan=True)
    tools.assert_allclose([np.nan, 1.0], [np.nan, 1.0])
    tools.assert_almost_equal_ignore_nan([np.nan, 1.0], [2.0, 1.0])
    assert tools.almost_equal_ignore_nan([np.nan, 1.0], [2.0, 1.0])
    with pytest.raises(AssertionError, match="shape"):
        tools.assert_almost_equal(X, X[0], use_broadcast=False)
    tools.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="did not raise"):
        tools.assert_exception(int, ValueError, "1")
    held = nd.zeros((4,))
    assert tools.same_array(held, held[1:3]) and not tools.same_array(held, held.copy())
    assert (tools.get_rtol(dtype="float16"), tools.get_atol(0.5)) == (1e-2, 0.5)


def test_random_things():
    assert len(tools.rand_shape_nd(4)) == 4 and len(tools.rand_shape_3d()) == 3 and min(tools.rand_shape_2d()) > 0
    made = tools.rand_ndarray((2, 3), dtype="float64")
    assert made.dtype == np.float64 and (abs(made.asnumpy()) <= 1).all()
    assert [each.shape for each in tools.random_arrays((2,), (3, 1))] == [(2,), (3, 1)]
    assert tools.random_sample(range(10), 10) == list(range(10))
    assert np.allclose(tools.np_reduce(X, 1, True, np.sum), X.sum(1, keepdims=True))
    assert np.allclose(tools.np_reduce(X, None, False, np.max), X.max())
    with mx.cpu(3):
        assert tools.default_context() == mx.cpu(3)
    tools.set_default_context(mx.cpu(2))
    assert tools.default_context() == mx.cpu(2)
    tools.set_default_context(None)
    assert tools.list_gpus() == list(range(mx.num_gpus())) and tools.default_dtype() is np.float32


@pytest.mark.parametrize("call, words", [
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, {"y": X}, [X]), "no 'y'"),
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, [X, X], [X]), "expected 1 arrays"),
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, {}, [X]), "x missing"),
    (lambda: tools.rand_ndarray((2,), "csr"), "storage type 'csr'"),
])
def test_check_errors(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()

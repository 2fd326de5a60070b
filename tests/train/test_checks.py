"""Checks of ``mx.test_utils``: right results pass, wrong ones raise an error."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError

sym, nd, tools = mx.sym, mx.nd, mx.test_utils


@pytest.fixture(autouse=True)
def seeded():
    tools.set_seed(1)


def registered(name: str, forward, backward) -> mx.Symbol:
    """A custom operator of one input, applied to ``x``; ``backward`` gets a function that assigns the gradient."""

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], forward(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            backward(lambda value: self.assign(in_grad[0], req[0], value), out_grad[0], in_data[0], in_grad[0])

    @mx.operator.register(f"_checks_{name}")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Op()

    return sym.Custom(sym.var("x"), op_type=f"_checks_{name}")


def square(x):
    return x * x


def square_in_float32(x):
    return nd.array(x.asnumpy() ** 2)


X = np.array([[0.3, -1.0], [2.0, 0.5]])


def test_check_numeric_gradient_tells_right_from_wrong():
    x = sym.var("x")
    tools.check_numeric_gradient(x * x, {"x": X})
    requests = {"x": "add", "y": "null"}
    tools.check_numeric_gradient(x * x * sym.var("y"), [X, X + 1], dtype=np.float64, grad_nodes=requests)
    data = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False)
    location = {"data": np.random.default_rng(0).normal(size=(6, 3)), "bn_gamma": np.ones(3), "bn_beta": np.zeros(3)}
    tools.check_numeric_gradient(data, location, {"bn_moving_mean": np.zeros(3), "bn_moving_var": np.ones(3)},
                                 dtype=np.float64, rtol=1e-3, atol=1e-5)


WRONG = {  # gradients half a percent too large; the output gradient ignored; old gradients overwritten
    "factor": (square, lambda assign, g, x, dx: assign(g * x * 2.01), "write"),
    "factor in float32": (square_in_float32, lambda assign, g, x, dx: assign(
        nd.array(g.asnumpy() * x.asnumpy() * 2.01)), "write"),
    "head": (square, lambda assign, g, x, dx: assign(x * 2), "write"),
    "request": (square, lambda assign, g, x, dx: dx.__setitem__(slice(None), g * x * 2), "add"),
    "request in float32": (square_in_float32, lambda assign, g, x, dx: dx.__setitem__(slice(None), g * x * 2), "add"),
}
RIGHT = {
    "square": (square, lambda assign, g, x, dx: assign(g * x * 2)),
    "square in float32": (square_in_float32, lambda assign, g, x, dx: assign(g * x * 2)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("what", WRONG)
def test_slightly_wrong_gradients_are_found(what, dtype):
    """Small errors of gradients are found for all values."""
    forward, backward, request = WRONG[what]
    net = registered("wrong", forward, backward)
    for seed in range(40):
        tools.set_seed(seed)
        location = {"x": np.random.default_rng(seed).normal(size=(3, 4))}
        with pytest.raises(AssertionError, match=rf"gradient of x \({request}\) and central differences differ in .* "
                                                 rf"of 12 elements.*; call set_seed\({seed}\) before the check"):
            tools.check_numeric_gradient(net, location, grad_nodes={"x": request}, dtype=dtype,
                                         **({"rtol": 1e-2, "atol": 1e-2} if request == "add" else {}))


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("what", RIGHT)
def test_right_gradients_pass(what, dtype, req):
    net = registered("right", *RIGHT[what])
    for seed in range(20):
        location = {"x": np.random.default_rng(seed).normal(size=(3, 4), scale=1 + seed % 5)}
        tools.check_numeric_gradient(net, location, grad_nodes={"x": req}, dtype=dtype)


BUILT_IN = {
    "convolution": (sym.Convolution(sym.var("x"), kernel=(3, 3), num_filter=3), (2, 3, 6, 6)),
    "pooling": (sym.Pooling(sym.var("x"), kernel=(2, 2), stride=(2, 2), pool_type="max"), (2, 2, 6, 6)),
    "norm": (sym.BatchNorm(sym.var("x"), fix_gamma=False), (4, 3, 3, 3)),
    "softmax": (sym.softmax(sym.var("x")), (3, 5)),
    "sum": (sym.sum(sym.square(sym.var("x"))), (10, 10)),
    "dense": (sym.FullyConnected(sym.var("x"), num_hidden=4), (3, 9)),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_operators_pass_check_numeric_gradient(name):
    """Right gradients in float32 are within the usual tolerances."""
    net, shape = BUILT_IN[name]
    arguments, _, states = net.infer_shape(x=shape)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        tools.check_numeric_gradient(net, [rng.normal(size=each) for each in arguments],
                                     [np.abs(rng.normal(size=each)) + 0.1 for each in states])


def test_a_failure_can_be_repeated_by_its_seed():
    net = registered("again", square, lambda assign, g, x, dx: assign(g * x * 3))
    texts = []
    for _ in range(3):
        with pytest.raises(AssertionError) as caught:
            tools.check_numeric_gradient(net, {"x": X})
        texts.append(str(caught.value))
    assert len(set(texts)) == 3
    seed = int(texts[1].split("set_seed(")[1].split(")")[0])
    tools.set_seed(seed)
    with pytest.raises(AssertionError) as caught:
        tools.check_numeric_gradient(net, {"x": X})
    assert str(caught.value) == texts[1]


def test_an_operator_without_float64_is_checked_in_float32():
    """An operator without float64 is checked in the dtype that it has."""
    class Prop(mx.operator.CustomOpProp):
        def infer_type(self, types):
            return [np.float32], [np.float32], []

        def create_operator(self, ctx, shapes, dtypes):
            class Op(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    self.assign(out_data[0], req[0], in_data[0] * in_data[0])

                def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                    self.assign(in_grad[0], req[0], out_grad[0] * in_data[0] * 2)

            return Op()

    mx.operator.register("_checks_float32")(Prop)
    tools.check_numeric_gradient(sym.Custom(sym.var("x"), op_type="_checks_float32"), {"x": X})


def test_unknown_keywords_are_refused():
    for call in (tools.check_consistency, tools.rand_ndarray):
        with pytest.raises(TypeError, match="rotl"):
            call((1, 2), [], rotl=1)
    entries = [{"ctx": mx.cpu(i), "x": (2,)} for i in range(2)]
    tools.check_consistency(sym.var("x") * 1.5, entries, use_uniform=True, rand_type="float32")


def test_symbolic_checks_compare_outputs_and_gradients():
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


def test_comparisons_use_their_tolerances():
    assert tools.same(X, nd.array(X, dtype="float64")) and not tools.same(X, X.ravel())
    assert tools.almost_equal(np.float32([1]), [1 + 1e-6]) and not tools.almost_equal([1.0], [1 + 1e-4])
    assert not tools.almost_equal(X, X[0], use_broadcast=False)
    assert tools.find_max_violation([1.0, 2.0], [1.0, 3.0], rtol=0, atol=1.0) == ((1,), 1.0)
    with pytest.raises(AssertionError, match=r"left and right differ in 1 of 4 elements; the largest difference is at "
                                             r"\(1, 0\): 2.0 and 5.0"):
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


@pytest.mark.parametrize(("dtype", "rtol", "atol"), [
    ("float16", 1e-2, 1e-1), ("float32", 1e-4, 1e-3), ("float64", 1e-5, 1e-20), ("int64", 0, 0), ("bool", 0, 0)])
def test_usual_tolerances_are_those_of_mxnet(dtype, rtol, atol):
    assert (tools.default_rtols()[np.dtype(dtype)], tools.default_atols()[np.dtype(dtype)]) == (rtol, atol)
    assert (tools.get_rtol(dtype=dtype), tools.get_atol(dtype=dtype)) == (rtol, atol)
    one = np.ones(2, dtype)
    assert tools.get_tols(one, one, None, None) == (rtol, atol)
    assert tools.get_tols(one, one, 0.5, {np.dtype(dtype): 0.25}) == (0.5, 0.25)
    tools.assert_almost_equal(one, one)
    with pytest.raises(AssertionError):
        tools.assert_almost_equal(one, (one * (1 + 2 * (rtol + atol)) if rtol else ~one).astype(dtype))


def test_tolerances_of_two_dtypes_are_those_of_the_coarser():
    tools.assert_almost_equal(nd.array([1.0]), np.array([1.0009]))
    with pytest.raises(AssertionError):
        tools.assert_almost_equal(np.array([1.0]), np.array([1.00009]))
    with pytest.raises(AssertionError, match="differ in 1 of 1 elements"):
        tools.assert_almost_equal(np.array([2 ** 31]), np.array([2 ** 31 + 1]))
    assert tools.find_max_violation(np.float32([1.0]), np.float32([1.001]))[1] < 1
    tools.assert_almost_equal(np.array([1.0]), np.array([1.1]), rtol={np.dtype("float64"): 0.2})


def test_random_test_data_has_the_requested_shapes():
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
        assert tools.default_context() == mx.current_context() == mx.nd.ones((1,)).context == mx.cpu(2)
    assert tools.default_context() == mx.cpu()
    assert tools.list_gpus() == list(range(mx.num_gpus())) and tools.default_dtype() is np.float32


@pytest.mark.parametrize("call, words", [
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, {"y": X}, [X]), "no 'y'"),
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, [X, X], [X]), "expected 1 array "),
    (lambda: tools.check_symbolic_forward(sym.var("x") * 1, {}, [X]), "x missing"),
    (lambda: tools.rand_ndarray((2,), "rows"), "storage type 'rows'"),
])
def test_wrong_arguments_of_checks_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()

"""Equal nodes and constants: the remaining nodes after the passes, and unchanged results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.core.attrs import Schema
from opreg.core.graph import INFERENCE, Node
from opreg.core.op import Op
from opreg.symbol import compile as compiler
from opreg.symbol.passes.constant_folding import fold_constants
from opreg.symbol.passes.cse import cse
from opreg.symbol.passes.fuse import fuse
from opreg.symbol.passes.rematerialization import rematerialize
from tests.questions import of_each

sym, nd = mx.sym, mx.nd

SHAPES = {"x": (3, 4), "y": (3, 4), "row": (1, 4)}


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass."""
    monkeypatch.setattr(compiler, "CHECK", True)


# ------------------------------------------------------------------------------------------------ helpers


def bound(net: Any, shapes: dict[str, tuple], without: tuple = (), *, seed: int = 0, dtype: str = "float64",
          grad_req: str = "write", **more: Any) -> Any:
    """An executor over random numbers, whose plans are made without some of the passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "PASSES", tuple(each for each in compiler.PASSES if each not in without))
        executor = net.simple_bind(mx.cpu(), grad_req, type_dict=dict.fromkeys(shapes, dtype), **shapes, **more)
        rng = np.random.default_rng(seed)
        for array in (*executor.arg_arrays, *executor.aux_arrays):
            array[:] = nd.array(rng.uniform(0.25, 2, array.shape), dtype=array.dtype)
        for is_train in (False, True):
            executor.plan(is_train)
    return executor


def results(executor: Any, seed: int = 1) -> list[np.ndarray]:
    """Outputs of inference and of training, and gradients and states after two rounds."""
    rng = np.random.default_rng(seed)
    mx.random.seed(seed)
    for grad in executor.grad_arrays:
        if grad is not None:
            grad[:] = 0.5  # initial gradient for the request "add"
    found = [out.asnumpy() for out in executor.forward(is_train=False)]
    head_grads = [nd.array(rng.uniform(-1, 1, out.shape), dtype=out.dtype) for out in executor.outputs]
    for _ in range(2):
        found += [out.asnumpy() for out in executor.forward(is_train=True)]
        executor.backward(head_grads)
    arrays = [*executor.grad_arrays, *executor.aux_arrays]
    return found + [array.asnumpy() for array in arrays if array is not None]


def assert_same(ours: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    for got, want in zip(results(ours), results(theirs), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def operators(executor: Any, is_train: bool = False) -> list[list[str]]:
    """The operators that run, forward and backward."""
    plan = executor.plan(is_train)
    return [[step.node.op.name for step in segment.steps if step.node is not None and step.kernel != "view"]
            for segment in (plan.forward, plan.backward)]


ONE = [sym.tanh, sym.square, sym.sigmoid, lambda a: a * 0.75, lambda a: a + 0.0, lambda a: a - 0.5, sym.BlockGrad,
       lambda a: sym.transpose(sym.transpose(a)), sym.softmax, lambda a: sym.clip(a, a_min=-0.5, a_max=0.5),
       lambda a: sym.reshape(sym.reshape(a, shape=(-1,)), shape=(3, 4)),
       lambda a: sym.broadcast_add(a, sym.mean(a, axis=0, keepdims=True)),
       lambda a: sym.broadcast_mul(a, sym.sum(a, axis=1, keepdims=True)),
       lambda a: sym.dot(a, sym.dot(a, a, transpose_a=True)), sym.relu, sym.ones_like]
TWO = [sym.broadcast_add, sym.broadcast_mul, sym.broadcast_sub, sym.broadcast_maximum]


def numbers() -> Any:
    """A constant sub-graph."""
    return sym.broadcast_mul(sym.arange(0, 4) * 0.25, sym.ones((1, 4))) - 0.5


@st.composite
def networks(draw: Any) -> Any:
    """A random symbol of few operators and operands, so that nodes are repeated."""
    row = sym.Variable("row")
    full = [sym.broadcast_add(sym.Variable("x"), row), sym.Variable("y") * 1.0]
    for _ in range(draw(st.integers(2, 14))):
        operand = full[draw(st.integers(max(0, len(full) - 4), len(full) - 1))]
        if draw(st.booleans()):
            found = draw(st.sampled_from(ONE))(operand)
        else:
            other = draw(st.sampled_from([*full[-3:], row, numbers()]))
            found = draw(st.sampled_from(TWO))(operand, sym.cast(other, dtype="float64"))
        full.append(sym.tanh(found))
    heads = draw(st.lists(st.sampled_from(range(len(full))), min_size=1, max_size=3, unique=True))
    return sym.Group([full[i] * 1.25 for i in heads])


def given_shapes(net: Any) -> dict[str, tuple]:
    return {name: SHAPES[name] for name in net.list_arguments()}


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(0, 2**16), st.sampled_from(["write", "add"]), st.booleans())
def test_values_do_not_change(net, seed, grad_req, fused):
    shapes, other = given_shapes(net), () if fused else (fuse,)
    ours = bound(net, shapes, other, seed=seed, grad_req=grad_req)
    theirs = bound(net, shapes, (cse, fold_constants, *other), seed=seed, grad_req=grad_req)
    assert_same(ours, theirs)
    assert sum(map(len, operators(ours, True))) <= sum(map(len, operators(theirs, True)))


# --------------------------------------------------------------------------------------------- equal nodes


def merged(net: Any, is_train: bool = False, tolerance: float = 1e-12, **shapes: tuple) -> list[list[str]]:
    """Operators that run in a graph without fusion, after a comparison of its results with the original graph."""
    executor = bound(net, shapes, (fuse,))
    assert_same(executor, bound(net, shapes, (fuse, cse, fold_constants)), tolerance)
    return operators(executor, is_train)


def test_equal_nodes_are_one():
    x = sym.Variable("x")
    assert merged(sym.dot(x, x) + sym.dot(x, x), x=(3, 3)) == [["dot", "elemwise_add"], []]


def test_equal_branches_are_merged():
    def branch(x: Any) -> Any:
        return sym.softmax(sym.tanh(sym.transpose(x)), axis=0)

    x = sym.Variable("x")
    forward, _ = merged(sym.Group([branch(x) * 2, branch(x) * 3]), x=(3, 4))
    assert forward.count("softmax") == forward.count("tanh") == 1 and forward.count("_mul_scalar") == 2


def test_equal_heads_are_both_written():
    x = sym.Variable("x")
    executor = bound(sym.Group([sym.tanh(x), sym.tanh(x)]), {"x": (3,)})
    assert operators(executor)[0] == ["tanh"]
    first, second = executor.forward()
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    assert first.asnumpy().any()


STATES = [sym.Variable(name) for name in "gbmv"]


@pytest.mark.parametrize("left, right", [
    (lambda x: x * 2.0, lambda x: x * 3.0),
    (lambda x: x * 0.0, lambda x: x * -0.0),
    (lambda x: sym.sum(x, axis=1, keepdims=True), lambda x: sym.sum(x, axis=0, keepdims=True)),
    (lambda x: sym.Dropout(x, p=0.5, mode="always"),) * 2,
    (lambda x: sym.Custom(x, op_type="test_common_identity"),) * 2,
    (lambda x: sym.BatchNorm(x, *STATES),) * 2,
], ids=["attributes", "zeros", "axes", "random", "users", "states"])
def test_different_nodes_stay(left, right):
    x = sym.Variable("x")
    executor = bound(sym.broadcast_add(left(x), right(x)), {"x": (3, 4)}, (fuse,))
    assert len(operators(executor, True)[0]) == 3


class Identity(mx.operator.CustomOp):
    """An operator that returns its input."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_common_identity")
class IdentityProp(mx.operator.CustomOpProp):
    """The Prop of ``Identity``, without declarations."""

    def create_operator(self, ctx, shapes, dtypes):
        return Identity()


def test_nodes_on_different_devices_stay_separate():
    x = sym.Variable("x")
    halves = []
    for group in ("a", "b"):
        with mx.AttrScope(ctx_group=group):
            halves.append(sym.square(x))
    with mx.AttrScope(ctx_group="c"):
        net = halves[0] + halves[1]
    executor = net.bind(mx.cpu(), {"x": nd.ones((3,))}, grad_req="null",
                        group2ctx={"a": mx.cpu(1), "b": mx.cpu(2), "c": mx.cpu(0)})
    ran = [step.node.op.name for step in executor.plan(False).forward.steps if step.node is not None]
    assert ran.count("square") == 2
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), [2, 2, 2])


def test_backward_reads_results_that_forward_keeps_anyway():
    x, w = sym.Variable("x"), sym.Variable("w")
    # The gradient of x * x * w with respect to w is the product that forward computes; it is an output.
    square = sym.dot(x, x)
    net = sym.Group([sym.BlockGrad(square), sym.elemwise_mul(sym.dot(x, x), w)])
    assert merged(net, True, x=(3, 3), w=(3, 3))[0].count("dot") == 1


@pytest.mark.parametrize("kept", [True, False], ids=["there", "gone"])
def test_merging_does_not_extend_lifetimes(kept):
    """Backward computes a value again if only forward reads it; an output of the graph is kept, and backward reads
    it."""
    names = [sym.Variable(name) for name in ("x", "gamma", "beta", "mean", "var")]
    norm = sym.BatchNorm(*names, fix_gamma=False, use_global_stats=True, output_mean_var=True)
    factor = sym.BlockGrad(sym.broadcast_mul(norm[2], names[1]))  # the gradient multiplies by it too
    executor = bound(sym.Group([norm[0], factor if kept else sym.tanh(factor)]), {"x": (5, 3)}, (fuse,))
    assert_same(executor, bound(sym.Group([norm[0], factor if kept else sym.tanh(factor)]), {"x": (5, 3)}, (cse,)))
    forward, backward = operators(executor, True)
    assert forward.count("broadcast_mul") == 1 and backward.count("broadcast_mul") == (not kept)


def test_operators_that_write_to_inputs_are_not_merged():
    weight, momentum = sym.Variable("weight"), sym.Variable("momentum")
    update = sym.sgd_mom_update(weight, sym.Variable("grad"), momentum, lr=0.5)
    net = sym.Group([momentum * 2.0, update, momentum * 2.0])
    executor = bound(net, dict.fromkeys(["weight", "grad", "momentum"], (3,)), (fuse,), grad_req="null")
    assert operators(executor)[0].count("_mul_scalar") == 2


def test_a_monitor_sees_every_operator():
    x = sym.Variable("x")
    executor = bound(sym.tanh(x, name="first") + sym.tanh(x, name="second") * sym.ones((3,), name="one"),
                     {"x": (3,)}, dtype="float32")
    seen: list[str] = []
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.forward()
    assert {"first_output", "second_output", "one_output"} <= set(seen)


def test_many_nodes_of_one_operator_and_input_take_no_longer():
    """The pass looks attributes up, and does not compare nodes in pairs."""
    x = sym.Variable("x")
    net = sym.add_n(*[x * float(i % 700) for i in range(1400)])
    executor = bound(net, {"x": (2,)}, (fuse,), grad_req="null")
    assert operators(executor)[0].count("_mul_scalar") == 699  # times one is no operation


# ---------------------------------------------------------------------------------------------- constants


def test_constants_are_computed_at_bind():
    net = sym.broadcast_mul(sym.Variable("x"), sym.cast(sym.exp(sym.arange(0, 4) * 0.5 + sym.ones((4,))), "float64"))
    forward, backward = merged(sym.tanh(net), True, 1e-6, x=(3, 4))  # constants are the reference's, in float32
    assert forward == ["broadcast_mul", "tanh"] and backward == ["_backward_tanh", "broadcast_mul"]


def test_an_output_may_be_a_constant():
    executor = bound(sym.Group([sym.arange(0, 3), sym.Variable("x") * 1.5]), {"x": (2,)}, grad_req="null")
    for _ in range(2):
        out = executor.forward()[0]
        np.testing.assert_array_equal(out.asnumpy(), [0, 1, 2])
        out[:] = 7  # the array is the user's; the folded constant does not change
    assert "_arange" not in operators(executor)[0]


def test_constants_of_inferred_shapes_are_folded():
    x = sym.Variable("x")
    net = x * sym.ones((0, 2), name="begin")
    executor = bound(net, {"x": (3, 2)}, dtype="float32")
    assert operators(executor)[0] == ["elemwise_mul"]
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), executor.arg_dict["x"].asnumpy())


@pytest.mark.parametrize("make, name", [
    (lambda: sym.zeros((256, 256)), "_zeros"),
    (lambda: sym.random.uniform(shape=(3,)), "_random_uniform"),
    (lambda: sym.zeros_like(sym.Variable("x")), "zeros_like"),
], ids=["large", "random", "of a variable"])
def test_large_constants_are_computed_in_each_run(make, name):
    executor = bound(sym.sum(make()), {} if "like" not in name else {"x": (3,)}, grad_req="null")
    assert name in operators(executor)[0]


def test_constants_are_folded_on_their_device():
    with mx.AttrScope(ctx_group="a"):
        net = sym.ones((3,)) * 2.0
    executor = (net + sym.Variable("x")).bind(mx.cpu(), {"x": nd.ones((3,))}, grad_req="null",
                                              group2ctx={"a": mx.cpu(1)})
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), [3, 3, 3])
    assert operators(executor)[0] == ["_CrossDeviceCopy", "elemwise_add"]


def test_passes_are_in_order():
    order = [each.__name__ for each in compiler.PASSES]
    assert order.index("simplify") < order.index("fold_constants") < order.index("cse")
    assert order.index("cse") < order.index("rematerialize") < order.index("assign_devices") < order.index("fuse")
    assert rematerialize in compiler.PASSES


def test_a_constant_that_is_written_over_starts_anew_in_every_run():
    w, g = map(sym.Variable, "wg")
    net = sym.sgd_mom_update(w, g, sym.zeros(shape=(2,)), lr=1.0, momentum=0.5)
    executor = net.bind(mx.cpu(), {"w": nd.ones(2), "g": nd.ones(2)})
    assert [executor.forward()[0].asnumpy()[0] for _ in range(3)] == [0, 0, 0]


def test_constants_may_be_infinite():
    assert sym.log(sym.zeros(shape=(2,))).bind(mx.cpu(), {}).forward()[0].asnumpy().tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_zeros_of_both_signs_are_different_factors(kind):
    x = sym.Variable("x")
    executor = sym.Group([1 / (x * kind(0.0)), 1 / (x * kind(-0.0))]).bind(mx.cpu(), {"x": nd.ones(1)})
    assert [out.asscalar() for out in executor.forward()] == [np.inf, -np.inf]
    assert [(1 / (nd.ones(1) * kind(zero))).asscalar() for zero in (0.0, -0.0)] == [np.inf, -np.inf]


def test_operators_with_a_mode_are_folded_for_the_mode_of_the_plan():
    """A node of inference is not merged with one of training."""
    op = Op("with_a_mode", Schema([]), ("data",), mode=True)
    op.where = None  # as if it were built in
    op.kernel()(lambda xp, data, *, is_train: data + (10 if is_train else 20))

    def applied(x, **tags):
        return sym.Symbol([(Node(op, "mode", {}, [x._entries[0]], tags=tags), 0)])

    x, ones = sym.Variable("x"), sym.ones((2,))
    net = sym.Group([applied(each, **tags) for each in (x, ones) for tags in ({}, {INFERENCE: "1"})])
    executor = net.simple_bind(mx.cpu(), grad_req="null", x=(2,))
    executor.arg_dict["x"][:] = 1
    for is_train, expected in ((True, [11, 21, 11, 21]), (False, [21] * 4), (True, [11, 21, 11, 21])):
        assert [out.asnumpy()[0] for out in executor.forward(is_train=is_train)] == expected
    assert operators(executor)[0].count("with_a_mode") <= 2


# --------------------------------------------------------------------------------------------- identities


@of_each([
    sym.identity, sym.BlockGrad, sym.make_loss, lambda x: x * 1.0, lambda x: sym.broadcast_to(x, shape=(0, 4)),
    lambda x: sym.broadcast_like(x, sym.Variable("y")), lambda x: sym.reshape_like(x, sym.Variable("y")),
    lambda x: sym.cast_storage(x, stype="default"), lambda x: sym.Dropout(x, p=0.5),
    lambda x: sym.reshape(x, shape=(3, 4)), lambda x: sym.transpose(x, axes=(0, 1)), lambda x: sym.squeeze(x),
    lambda x: sym.slice_axis(x, axis=0, begin=0, end=3), lambda x: sym.Cast(x, dtype="float64"),
    lambda x: sym.Dropout(x, p=0.0, mode="always")])
def test_identities_are_left_out(make):
    net = sym.exp(make(sym.exp(sym.Variable("x"))) * 2.0)
    shapes = {"x": (3, 4), "y": (3, 4)}
    shapes = {name: shapes[name] for name in net.list_arguments()}
    executor = bound(net, shapes, (fuse,), grad_req="null")
    assert operators(executor)[0] == ["exp", "_mul_scalar", "exp"]


@pytest.mark.parametrize("make", [
    lambda x: x * 2.0, lambda x: sym.Dropout(x, p=0.5, mode="always"), lambda x: sym.Cast(x, dtype="float32")])
def test_operators_that_are_no_identities_stay(make):
    plain = sym.exp(sym.exp(sym.Variable("x")))
    executor = bound(sym.exp(make(sym.exp(sym.Variable("x")))), {"x": (3, 4)}, (fuse,), grad_req="null")
    assert len(operators(executor)[0]) > len(operators(bound(plain, {"x": (3, 4)}, (fuse,), grad_req="null"))[0])


@pytest.mark.parametrize("make, value", [
    (sym.transpose, np.transpose), (lambda x: sym.flip(x, axis=0), np.flipud), (sym.SequenceReverse, np.flipud),
    (lambda x: sym.repeat(sym.slice_axis(x, axis=0, begin=0, end=1), 3, axis=0), lambda x: x[[0, 0, 0]])])
def test_views_in_another_order_are_no_identities(make, value):
    executor = bound(make(sym.Variable("x") * 2.0) + 1.0, {"x": (3, 3)}, grad_req="null")
    x = executor.arg_dict["x"].asnumpy()
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), value(x * 2.0) + 1.0)


@mx.operator.define(name="test_cse_shifted", outputs=("shifted", "twice"))
def shifted(x, *, by: float = 0.0):
    return x + by, x * 2.0


@shifted.infer
def shifted_infer(x):
    return [x, x]


@shifted.identity
def shifted_identity(ins, outs, *, by, is_train):
    return by == 0.0 and not is_train and ins[0] == outs[0]


@pytest.mark.parametrize("by, is_train, left", [(0.0, False, 0), (0.0, True, 1), (1.0, False, 1)])
def test_users_operators_that_are_identities_are_left_out(by, is_train, left):
    executor = bound(sym.exp(shifted(sym.exp(sym.Variable("x")), by=by)[0]), {"x": (3,)}, grad_req="null")
    x = executor.arg_dict["x"].asnumpy()
    found = executor.forward(is_train=is_train)[0].asnumpy()
    np.testing.assert_allclose(found, np.exp(np.exp(x) + by))
    assert operators(executor, is_train)[0].count("custom.test_cse_shifted") == left


def test_other_outputs_of_an_identity_are_computed():
    net = sym.Group([*shifted(sym.exp(sym.Variable("x")))])
    executor = bound(net, {"x": (3,)}, grad_req="null")
    first, second = [out.asnumpy() for out in executor.forward()]
    np.testing.assert_allclose(second, 2.0 * first)
    assert "custom.test_cse_shifted" in operators(executor)[0]


A, B = mx.sym.var("a"), mx.sym.var("b")


@pytest.mark.parametrize("make, expected", [
    (lambda: (A + 1) + (B + 2), 5), (lambda: (A + B) + (A + B), 4), (lambda: ((A + B) + A) + ((A + B) + A), 5),
    (lambda: mx.sym.Group([A * B, A * B]), 3)])
@pytest.mark.parametrize("grad_req", ["write", "null"])
def test_the_optimized_symbol_has_each_expression_once(make, expected, grad_req):
    bound = make().simple_bind(mx.cpu(), grad_req=grad_req, a=(2, 3), b=(2, 3))
    optimized = bound.get_optimized_symbol()
    assert len({node for node, _ in optimized.get_internals()._entries}) == expected
    arrays = {"a": mx.nd.ones((2, 3)), "b": mx.nd.ones((2, 3)) * 2}
    for found, wanted in zip(optimized.eval(**arrays), bound.forward(**arrays), strict=True):
        np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())


def test_the_optimized_symbol_of_inference_has_no_dropout():
    bound = (mx.sym.Dropout(A) * B).simple_bind(mx.cpu(), grad_req="null", a=(2, 3), b=(2, 3))
    assert bound.get_optimized_symbol().get_internals().list_outputs()[:2] == ["a", "b"]

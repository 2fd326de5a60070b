"""Graphs in which shapes depend on values: one plan finds the shapes, and others are made for the shapes found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import ops
from opreg.errors import ArgumentError, OpError, ShapeError
from opreg.symbol import stages

sym, nd = mx.sym, mx.nd
X = np.arange(-5, 7).reshape(4, 3) / 4.0
MASKS = ([1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0])


def half(F: Any, x: Any, i: Any) -> Any:
    return F.contrib.boolean_mask(x, i, name="half") if F is sym else F.contrib.boolean_mask(x, i)


def dense(F: Any, x: Any, i: Any) -> Any:
    weight = F.slice_axis(x, axis=0, begin=0, end=2)
    return F.FullyConnected(half(F, x, i), weight, no_bias=True, num_hidden=2)


#: Functions of a namespace, of an array whose rows are picked, and of the rows' mask: for arrays and for symbols.
NETS = {
    "alone": half,
    "operators behind": lambda F, x, i: F.tanh(half(F, x, i) * 2) + 1,
    "operators before": lambda F, x, i: half(F, F.tanh(x * x), F.broadcast_greater(i, F.mean(x, axis=1))),
    "a shape that is known again": lambda F, x, i: F.sum(half(F, x, i) * 3),
    "before and behind": lambda F, x, i: F.concat(half(F, x, i), x * 2, dim=0),
    "two of equal length": lambda F, x, i: half(F, x, i) * F.contrib.boolean_mask(x * 2, i),
    "one behind another": lambda F, x, i: F.contrib.boolean_mask(
        half(F, x, i), F.sum(half(F, x, i), axis=1) > 0) * 2,
    "along another axis": lambda F, x, i: F.contrib.boolean_mask(F.transpose(x), i, axis=1) * 2,
    "a product": dense,
}
SEVERAL = {
    "outputs of both parts": lambda F, x, i: [F.relu(half(F, x, i)), F.relu(x), F.sum(half(F, x, i)), x * 2],
    "one output on both sides": lambda F, x, i: (lambda y: [y, half(F, y, i), y + 1])(F.exp(x)),
}


def eagerly(net: Any, x: np.ndarray, i: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Outputs, and the gradient of their sum, on the tape."""
    x, i = nd.array(x), nd.array(i)
    x.attach_grad()
    with mx.autograd.record():
        found = net(nd, x, i)
        found = found if isinstance(found, list) else [found]
        total = nd.add_n(*[nd.sum(each * each) for each in found])
    total.backward()
    return [each.asnumpy() for each in found], x.grad.asnumpy()


def symbol(net: Any) -> Any:
    found = net(sym, sym.Variable("x"), sym.Variable("i"))
    return sym.Group(found) if isinstance(found, list) else found


@pytest.mark.parametrize("request_", ["write", "add"])
@pytest.mark.parametrize("net", [*NETS.values(), *SEVERAL.values()], ids=[*NETS, *SEVERAL])
def test_stages_equal_the_tape(net, request_):
    grad = nd.zeros(X.shape)
    executor = symbol(net).bind(mx.cpu(), {"x": nd.array(X), "i": nd.zeros((4,))}, {"x": grad}, request_)
    for mask in MASKS:
        grad[:] = 1
        expected, gradient = eagerly(net, X, mask)
        outputs = executor.forward(is_train=True, i=np.array(mask))
        for got, want in zip(outputs, expected):
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)
        executor.backward([2 * out for out in outputs])
        np.testing.assert_allclose(grad.asnumpy(), gradient + (request_ == "add"), rtol=1e-5)
        for got, want in zip(executor.forward(), expected):
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


def bound(net: Any = NETS["operators behind"], **more: Any) -> Any:
    executor = symbol(net).simple_bind(mx.cpu(), x=(4, 3), i=(4,), **more)
    executor.arg_dict["x"][:] = X
    return executor


def picked(executor: Any, mask: Any, **more: Any) -> np.ndarray:
    return executor.forward(i=np.array(mask), **more)[0].asnumpy()


def test_outputs_are_empty_before_the_first_run():
    executor = bound(SEVERAL["outputs of both parts"])
    assert [out.shape for out in executor.outputs] == [(0, 3), (4, 3), (0,), (4, 3)]
    picked(executor, MASKS[0])
    assert [out.shape for out in executor.outputs] == [(2, 3), (4, 3), (1,), (4, 3)]
    assert [out.shape for out in executor.output_dict.values()] == [(2, 3), (4, 3), (1,), (4, 3)]


def test_inference_of_shapes_returns_partial_shapes():
    net = symbol(NETS["operators behind"])
    assert net.infer_shape_partial(x=(4, 3), i=(4,))[1] == [(0, 3)]
    with pytest.warns(UserWarning, match=r"\(\?, 3\)"):
        assert net.infer_shape(x=(4, 3), i=(4,)) == (None, None, None)
    assert symbol(NETS["a shape that is known again"]).infer_shape(x=(4, 3), i=(4,))[1] == [(1,)]


def test_plans_of_the_last_shapes_are_kept(monkeypatch):
    monkeypatch.setattr(stages, "CACHED", 2)
    executor = bound()
    picked(executor, [1, 0, 0, 0])
    one = executor._second
    picked(executor, [1, 1, 0, 0])
    assert picked(executor, [0, 0, 1, 0]).shape == (1, 3)
    assert executor._second is one
    picked(executor, [1, 1, 1, 0])
    picked(executor, [0, 1, 1, 0])
    assert [key[0][0][0] for key in executor._second_parts] == [3, 2]
    assert executor._second is not one


def test_backward_without_forward_runs_forward_first():
    executor = bound()
    executor.arg_dict["i"][:] = [0, 1, 1, 0]
    top = nd.ones((2, 3))
    found = []
    for _ in range(2):
        executor.backward([top])
        found.append(executor.grad_dict["x"].asnumpy())
    executor.forward(is_train=True)
    executor.backward([top])
    np.testing.assert_array_equal(found, [executor.grad_dict["x"].asnumpy()] * 2)
    assert found[0].any(axis=1).tolist() == [False, True, True, False]


def test_states_move_once_and_in_training_alone():
    x = sym.BatchNorm(sym.Variable("x"), fix_gamma=False, name="before")
    x = sym.BatchNorm(sym.contrib.boolean_mask(x, sym.Variable("i")), fix_gamma=False, name="behind")
    executor = x.simple_bind(mx.cpu(), x=(4, 3), i=(4,))
    whole = sym.BatchNorm(sym.Variable("x"), fix_gamma=False, name="before").simple_bind(mx.cpu(), x=(4, 3))
    for each in (executor, whole):
        each.arg_dict["x"][:], each.arg_dict["before_gamma"][:] = X, 1
        each.aux_dict["before_moving_var"][:] = 1
    executor.arg_dict["behind_gamma"][:] = 1
    executor.arg_dict["i"][:] = [1, 1, 1, 0]
    executor.forward()
    assert not executor.aux_dict["behind_moving_mean"].asnumpy().any()
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward([nd.ones((3, 3))])
        executor.backward([nd.ones((3, 3))])
        whole.forward(is_train=True)
    np.testing.assert_array_equal(executor.aux_dict["before_moving_mean"].asnumpy(),
                                  whole.aux_dict["before_moving_mean"].asnumpy())
    assert executor.aux_dict["behind_moving_mean"].asnumpy().any()
    executor.forward()
    executor.backward([nd.ones((3, 3))], is_train=False)
    inverse = 1 / np.sqrt(executor.aux_dict["before_moving_var"].asnumpy() + 1e-3)
    inverse /= np.sqrt(executor.aux_dict["behind_moving_var"].asnumpy() + 1e-3)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), inverse * np.array([[1], [1], [1], [0]]), rtol=1e-5)


def test_a_loss_before_the_border_has_its_gradient():
    x, label, i = map(sym.Variable, ("x", "label", "i"))
    loss = sym.SoftmaxOutput(x, label)
    for behind in (lambda y: y, sym.BlockGrad):
        net = sym.broadcast_add(sym.sum(sym.contrib.boolean_mask(x, i)), sym.sum(behind(loss)))
        executor = net.simple_bind(mx.cpu(), x=(4, 3), label=(4,), i=(4,))
        executor.arg_dict["x"][:] = X
        executor.forward(is_train=True)
        executor.backward([nd.ones((1,))])
        expected = nd.softmax(nd.array(X)).asnumpy() - np.eye(3)[0]
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), expected, rtol=1e-5)


def test_staged_executors_have_monitors_and_reports():
    executor, seen = bound(NETS["before and behind"], check_kernels=True), []
    assert "planned when it has run" in executor.explain()
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.shape)))
    for mask in MASKS[:2]:
        picked(executor, mask, is_train=True)
        executor.backward([nd.ones(executor.outputs[0].shape)])
    assert ("half_output", (2, 3)) in seen
    assert ("half_output", (4, 3)) in seen
    assert [name for name, _ in seen].count("half_backward_output0") == 2
    executor.set_monitor_callback(None)
    count = len(seen)
    picked(executor, MASKS[0])
    assert len(seen) == count
    text = executor.explain()
    assert text.index("before half:") < text.index("from half of shape (4, 3):") < text.index("(2, 3):")
    assert executor.debug_str().count("training plan") == 3
    assert {row.node for row in executor.profile(1, is_train=False).rows} >= {"half"}
    assert "compared with the reference" in str(executor.kernel_report(False))
    with pytest.raises(ArgumentError, match="explain"):
        executor.plan(True)


def test_staged_executors_are_reshaped_and_used_by_modules():
    executor = bound()
    other = executor.reshape(x=(2, 3), i=(2,))
    assert picked(other, [1, 0]).shape == (1, 3)
    module = mx.mod.Module(symbol(NETS["operators behind"]), ("x", "i"), None)
    module.bind([("x", (4, 3)), ("i", (4,))], for_training=True, inputs_need_grad=True)
    module.init_params(mx.init.One())
    for mask in MASKS[:3]:
        module.forward(mx.io.DataBatch([nd.array(X), nd.array(mask)], None), is_train=True)
        found = module.get_outputs()[0]
        np.testing.assert_allclose(found.asnumpy(), eagerly(NETS["operators behind"], X, mask)[0][0], rtol=1e-6)
        module.backward([nd.ones(found.shape)])
        assert module.get_input_grads()[0].asnumpy().any(axis=1).tolist() == [bool(each) for each in mask]


def test_gradients_of_staged_graphs_are_symbols():
    x = sym.Variable("x")
    first = sym.contrib.boolean_mask(x * x * x, sym.Variable("i")).gradient(["x"])
    kept = np.array([[1], [0], [1], [0]])
    given = {"x": nd.array(X), "i": nd.array(kept.ravel())}
    executor = first.bind(mx.cpu(), given, {"x": nd.zeros((4, 3))})
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), 3 * X ** 2 * kept, rtol=1e-5)
    executor.backward([nd.ones((4, 3))])
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 6 * X * kept, rtol=1e-5)
    np.testing.assert_allclose(first.gradient(["x"]).eval(**given)[0].asnumpy(), 6 * X * kept, rtol=1e-5)


def test_stages_run_on_several_devices_and_with_recomputation():
    x = sym.contrib.boolean_mask(sym.Variable("x") * 2, sym.Variable("i"))
    with mx.AttrScope(ctx_group="far"):
        x = sym.tanh(x)
    executor = (x + 1).simple_bind(mx.cpu(), x=(4, 3), i=(4,), group2ctx={"far": mx.cpu(1)}, recompute=True)
    executor.arg_dict["i"][:] = [0, 0, 1, 1]
    out = executor.forward(is_train=True, x=X)[0]
    assert out.context == mx.cpu(1)
    executor.backward([nd.ones((2, 3))])
    expected = 2 * (1 - np.tanh(2 * X) ** 2) * [[0], [0], [1], [1]]
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_loops_may_have_value_dependent_shapes():
    def body(row, state):
        found = sym.sum(sym.contrib.boolean_mask(row, row > 0))
        return found, [state[0] + found]

    outs, _ = sym.contrib.foreach(body, sym.Variable("x"), [sym.zeros((1,))])
    executor = outs.simple_bind(mx.cpu(), x=(4, 3))
    executor.arg_dict["x"][:] = X
    np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy().ravel(), np.maximum(X, 0).sum(1))
    executor.backward([nd.ones((4, 1))])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), X > 0)


def test_random_graphs_are_those_of_the_tape():
    """The operators before, between and after two operators with such shapes are random."""
    rng = np.random.default_rng(0)
    unary = [lambda F, x: F.tanh(x), lambda F, x: x * 2 + 1, lambda F, x: F.relu(x),
             lambda F, x: F.transpose(F.transpose(x)), lambda F, x: F.concat(x, x * x, dim=0)]
    for _ in range(25):
        steps = [unary[k] for k in rng.integers(0, len(unary), 6)]
        low, high = rng.normal(size=2) / 2

        def net(F: Any, x: Any, i: Any, steps: Any = steps, low: float = low, high: float = high) -> Any:
            a = steps[1](F, steps[0](F, x))
            b = F.contrib.boolean_mask(a, F.sum(a, axis=1) > low)
            c = steps[3](F, steps[2](F, b))
            d = F.contrib.boolean_mask(c, F.max(c, axis=1) > high)
            return [steps[4](F, d), F.sum(steps[5](F, c)) + F.sum(a) + F.sum(i)]

        x = rng.normal(size=(5, 3))
        grads = {"x": nd.zeros((5, 3))}
        executor = symbol(net).bind(mx.cpu(), {"x": nd.array(x), "i": nd.zeros((5,))}, grads)
        for _ in range(2):
            expected, gradient = eagerly(net, x, np.zeros(5))
            outputs = executor.forward(is_train=True, x=x)
            for got, want in zip(outputs, expected):
                np.testing.assert_allclose(got.asnumpy(), want, rtol=2e-5, atol=1e-6)
            executor.backward([2 * out for out in outputs])
            np.testing.assert_allclose(grads["x"].asnumpy(), gradient, rtol=1e-4, atol=1e-5)
            x = rng.normal(size=(5, 3))


# --------------------------------------------------------------------------------------- operators of users


class Positive(mx.operator.CustomOp):
    """An operator that returns the positive elements in a row."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        self.assign(out_data[0], req[0], x[x > 0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        x = in_data[0].asnumpy()
        g = np.zeros_like(x)
        g[x > 0] = out_grad[0].asnumpy()
        self.assign(in_grad[0], req[0], g)


@mx.operator.register("test_positive")
class PositiveProp(mx.operator.CustomOpProp):
    def infer_shape(self, in_shape):
        return in_shape, [[None]], []

    def infer_shape_from_data(self, in_data):
        return [[int((in_data[0].asnumpy() > 0).sum())]]

    def create_operator(self, ctx, shapes, dtypes):
        return Positive()


@mx.operator.define(name="test_positive_function")
def positive(x):
    x = x.asnumpy()
    return x[x > 0]


@positive.infer_from_data
def positive_shape(x):
    return (int((x.asnumpy() > 0).sum()),)


@positive.grad
def positive_grad(g, ins, outs):
    return (ops._contrib_index_copy(ops.reshape(ins[0] * 0.0, shape=(-1,)), outs[0], g),)


@pytest.mark.parametrize("make", [lambda x: sym.Custom(x, op_type="test_positive"), positive], ids=["prop", "function"])
def test_users_declare_shapes_that_follow_from_numbers(make):
    executor = (make(sym.tanh(sym.Variable("x"))) * 2).simple_bind(mx.cpu(), "null", x=(4, 3))
    for x in (X, -X, X * 0):
        found = executor.forward(x=x)[0].asnumpy()
        np.testing.assert_allclose(found, 2 * np.tanh(x)[x > 0], rtol=1e-6)
    assert make(sym.Variable("x")).infer_shape_partial(x=(4, 3))[1] in ([(0,)], [()])


def test_a_users_operator_has_its_gradient():
    executor = (sym.Custom(sym.tanh(sym.Variable("x")), op_type="test_positive") * 2).simple_bind(mx.cpu(), x=(4, 3))
    out = executor.forward(is_train=True, x=X)[0]
    executor.backward([nd.ones(out.shape)])
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 2 * (1 - np.tanh(X) ** 2) * (X > 0), rtol=1e-5)


def test_eager_calls_of_users_operators_have_shapes_that_depend_on_values():
    x = nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        y = nd.Custom(x, op_type="test_positive")
    assert y.asnumpy().tolist() == X[X > 0].tolist()
    y.backward()
    assert (x.grad.asnumpy() == (X > 0)).all()
    assert positive(x).asnumpy().tolist() == X[X > 0].tolist()


def test_shapes_that_contradict_inferred_ones_are_refused():
    class Wrong(PositiveProp):
        def infer_shape_from_data(self, in_data):
            return [[2, 2]]

    mx.operator.register("test_wrong_from_data")(Wrong)
    executor = sym.Custom(sym.Variable("x"), op_type="test_wrong_from_data", name="wrong").simple_bind(mx.cpu(), x=(3,))
    with pytest.raises(ShapeError) as caught:
        executor.forward()
    assert any("'wrong'" in note for note in caught.value.__notes__)


def test_arguments_that_do_not_fit_the_found_shape_are_refused():
    executor = (half(sym, sym.Variable("x"), sym.Variable("i")) + sym.Variable("y")).simple_bind(
        mx.cpu(), x=(4, 3), i=(4,), y=(2, 3))
    assert picked(executor, [1, 1, 0, 0]).shape == (2, 3)
    with pytest.raises(OpError, match=r"\(3, 3\)"):
        picked(executor, [1, 1, 1, 0])
    with pytest.raises(ShapeError):
        (half(sym, sym.Variable("x"), sym.Variable("i")) + sym.Variable("y")).simple_bind(
            mx.cpu(), x=(4, 3), i=(4,), y=(2, 4))


@pytest.mark.parametrize("modes", [[("forward", False), ("backward", False)],
                                   [("forward", True), ("backward", True), ("backward", True)]])
def test_stages_that_run_again_for_gradients_draw_the_same_numbers(modes):
    """Dropout draws in the stage before such an operator, and in the one after it."""
    x, keep = sym.Variable("x"), sym.Variable("keep")
    before = sym.Dropout(x, p=0.5, mode="always")
    net = sym.Dropout(sym.contrib.boolean_mask(before, keep), p=0.5, mode="always")
    grad = nd.zeros((1000,))
    executor = net.bind(mx.cpu(), {"x": nd.ones((1000,)), "keep": nd.ones((1000,))}, {"x": grad})
    for method, is_train in modes:
        if method == "forward":
            wanted = executor.forward(is_train=is_train)[0].asnumpy()
        else:
            executor.backward([nd.ones((1000,))], is_train=is_train)
            assert (grad.asnumpy() == wanted).all()

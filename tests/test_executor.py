"""Executors: binding, running, requests, contexts, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DeviceError, DTypeError, InferenceError, NotDifferentiableError, ShapeError

sym, nd = mx.sym, mx.nd


def linear(batch: int = 2, grad_req="write"):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    executor = net.simple_bind(mx.cpu(), grad_req, data=(batch, 4))
    rng = np.random.default_rng(0)
    for value in executor.arg_arrays:
        value[:] = rng.standard_normal(value.shape)
    return executor


# ----------------------------------------------------------------------------------------------- binding


def test_bind_with_lists_and_dicts():
    x = sym.Variable("x")
    net = x * sym.Variable("y")
    a, b = nd.array([1, 2]), nd.array([3, 4])
    for args in ([a, b], {"x": a, "y": b}):
        assert net.bind(mx.cpu(), args).forward()[0].asnumpy().tolist() == [3, 8]
    assert net.eval(x=a, y=b)[0].asnumpy().tolist() == [3, 8]


def test_bound_arrays_are_the_callers():
    a, g = nd.array([1, 2]), nd.zeros((2,))
    executor = (sym.Variable("x") * 3).bind(mx.cpu(), {"x": a}, {"x": g})
    a[:] = [5, 6]
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [15, 18]
    executor.backward(nd.ones((2,)))
    assert g.asnumpy().tolist() == [3, 3]
    assert executor.arg_dict["x"] is a
    assert executor.grad_dict["x"] is g


def test_simple_bind_makes_zeros_of_inferred_shapes_and_dtypes():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    executor = net.simple_bind(mx.cpu(), data=(2, 4), type_dict={"data": "float64"})
    assert {name: value.shape for name, value in executor.arg_dict.items()} == {
        "data": (2, 4), "fc_weight": (3, 4), "fc_bias": (3,)}
    assert executor.arg_dict["fc_weight"].dtype is np.float64
    assert not executor.arg_dict["fc_weight"].asnumpy().any()


REQUESTS = [
    ("null", {}), ("write", {"data": "write", "fc_weight": "write", "fc_bias": "write"}),
    (["null", "write", "add"], {"fc_weight": "write", "fc_bias": "add"}), ({"fc_bias": "add"}, {"fc_bias": "add"}),
]


@pytest.mark.parametrize(("grad_req", "kept"), REQUESTS, ids=["text-null", "text-write", "list", "dict"])
def test_requests(grad_req, kept):
    executor = linear(grad_req=grad_req)
    assert {name for name, grad in executor.grad_dict.items() if grad is not None} == set(kept)
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(nd.ones((2, 3)))
    x = executor.arg_dict["data"].asnumpy()
    expected = {"data": np.ones((2, 3)) @ executor.arg_dict["fc_weight"].asnumpy(), "fc_weight": np.ones((3, 2)) @ x,
                "fc_bias": np.full(3, 2.0)}
    for name, req in kept.items():
        times = 2 if req == "add" else 1
        np.testing.assert_allclose(executor.grad_dict[name].asnumpy(), expected[name] * times, rtol=1e-5)


def test_shared_use_of_one_argument_sums_its_gradient():
    x = sym.Variable("x")
    executor = (x * x + sym.tanh(x) + x).simple_bind(mx.cpu(), x=(3,))
    executor.arg_dict["x"][:] = [0.5, -1, 2]
    executor.forward(is_train=True)
    executor.backward(nd.ones((3,)))
    value = np.array([0.5, -1, 2])
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 2 * value + 1 - np.tanh(value) ** 2 + 1, rtol=1e-6)


def test_an_argument_the_outputs_do_not_depend_on_has_zero_gradient():
    x, y = sym.Variable("x"), sym.Variable("y")
    executor = sym.Group([x * 2, sym.BlockGrad(y), sym.floor(y)]).simple_bind(mx.cpu(), x=(2,), y=(2,))
    executor.forward(is_train=True)
    executor.backward([nd.ones((2,))])  # where the gradient ends none is asked for
    assert executor.grad_dict["y"].asnumpy().tolist() == [0, 0]


def test_an_argument_that_is_an_output():
    x = sym.Variable("x")
    executor = sym.Group([x, x * 2]).simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = [1, 2]
    assert [out.asnumpy().tolist() for out in executor.forward(is_train=True)] == [[1, 2], [2, 4]]
    executor.backward([nd.ones((2,)), nd.ones((2,))])
    assert executor.grad_dict["x"].asnumpy().tolist() == [3, 3]


# ----------------------------------------------------------------------------------------------- running


def test_forward_takes_new_values():
    executor = linear()
    executor.forward(data=np.ones((2, 4)))
    assert executor.arg_dict["data"].asnumpy().tolist() == np.ones((2, 4)).tolist()
    executor.forward(data=nd.zeros((2, 4)))
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), np.tile(executor.arg_dict["fc_bias"].asnumpy(), (2, 1)))


@pytest.mark.parametrize(("values", "error", "words"), [
    ({"dta": np.ones((2, 4))}, ArgumentError, "Did you mean 'data'"),
    ({"data": np.ones((3, 4))}, ShapeError, "(2, 4)"),
    ({"data": [[1.0] * 4] * 2}, TypeError, "NumPy array"),
], ids=["name", "shape", "type"])
def test_forward_refuses(values, error, words):
    executor = linear()
    before = executor.arg_dict["data"].asnumpy()
    with pytest.raises(error) as caught:
        executor.forward(**values)
    assert words in str(caught.value)
    np.testing.assert_array_equal(executor.arg_dict["data"].asnumpy(), before)


def test_head_gradients_by_position_name_and_for_losses():
    executor = linear()
    for given in (nd.ones((2, 3)), [nd.ones((2, 3))], {"fc_output": nd.ones((2, 3))}):
        executor.forward(is_train=True)
        executor.backward(given)
        assert executor.grad_dict["fc_bias"].asnumpy().tolist() == [2, 2, 2]
    executor.forward(is_train=True)
    with pytest.raises(ArgumentError, match="MakeLoss"):
        executor.backward()
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        executor.backward(nd.ones((2, 2)))
    with pytest.raises(ArgumentError, match="fc_output"):
        executor.backward({"fc_outptu": nd.ones((2, 3))})


def test_backward_twice_and_without_forward():
    executor = linear()
    executor.backward(nd.ones((2, 3)))
    executor.backward(nd.ones((2, 3)))
    assert executor.grad_dict["fc_bias"].asnumpy().tolist() == [2, 2, 2]


def test_batch_norm_moves_its_statistics_once_a_step():
    net = sym.BatchNorm(sym.Variable("x"), momentum=0.5, fix_gamma=False, name="bn")
    executor = net.simple_bind(mx.cpu(), x=(4, 2))
    executor.arg_dict["x"][:] = [[0, 1], [2, 3], [4, 5], [6, 7]]
    executor.arg_dict["bn_gamma"][:] = 1
    executor.forward(is_train=True)
    moved = executor.aux_dict["bn_moving_mean"].asnumpy()
    np.testing.assert_allclose(moved, [1.5, 2.0])
    executor.backward(nd.ones((4, 2)))
    executor.backward(nd.ones((4, 2)))  # runs its forward again, and leaves the statistics
    np.testing.assert_array_equal(executor.aux_dict["bn_moving_mean"].asnumpy(), moved)
    executor.forward(is_train=False)
    np.testing.assert_array_equal(executor.aux_dict["bn_moving_mean"].asnumpy(), moved)


def test_outputs_are_written_anew_by_the_next_forward():
    executor = linear()
    (out,) = executor.forward()
    before = out.asnumpy()
    executor.forward(data=np.ones((2, 4)))
    assert (out.asnumpy() != before).any()


def test_copy_params_from():
    executor = linear()
    executor.copy_params_from({"fc_bias": nd.array([1, 2, 3], dtype="float64")})
    assert executor.arg_dict["fc_bias"].asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(ArgumentError, match="fc_bia"):
        executor.copy_params_from({"fc_weight": nd.zeros((3, 4)), "fc_bia": nd.zeros((3,))})
    assert executor.arg_dict["fc_weight"].asnumpy().any()  # nothing was half done
    executor.copy_params_from({"other": nd.zeros((1,))}, allow_extra_params=True)
    with pytest.raises(ShapeError):
        executor.copy_params_from({"fc_bias": nd.zeros((2,))})


def test_reshape_shares_what_stays():
    executor = linear()
    smaller = executor.reshape(data=(1, 4))
    assert smaller.arg_dict["fc_weight"] is executor.arg_dict["fc_weight"]
    assert smaller.forward(data=np.ones((1, 4)))[0].shape == (1, 3)
    with pytest.raises(ShapeError, match="allow_up_sizing"):
        executor.reshape(data=(8, 4))
    assert executor.reshape(allow_up_sizing=True, data=(8, 4)).forward()[0].shape == (8, 3)
    with pytest.raises(ShapeError, match="partial_shaping"):
        executor.reshape(allow_up_sizing=True, data=(2, 5))
    assert executor.reshape(partial_shaping=True, allow_up_sizing=True, data=(2, 5)).arg_dict["fc_weight"].shape == (
        3, 5)


def test_contexts_by_group():
    with mx.AttrScope(ctx_group="a"):
        net = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="one")
    with mx.AttrScope(ctx_group="b"):
        net = sym.relu(sym.FullyConnected(net, num_hidden=2, name="two"))
    groups = {"a": mx.cpu(1), "b": mx.cpu(2)}
    apart = net.simple_bind(mx.cpu(0), group2ctx=groups, x=(4, 5))
    together = net.simple_bind(mx.cpu(0), x=(4, 5))
    rng = np.random.default_rng(0)
    for name in net.list_arguments():
        value = rng.standard_normal(apart.arg_dict[name].shape)
        apart.arg_dict[name][:] = value
        together.arg_dict[name][:] = value
    assert apart.arg_dict["one_weight"].context == mx.cpu(1)
    assert apart.arg_dict["two_weight"].context == mx.cpu(2)
    for executor in (apart, together):
        executor.forward(is_train=True)
        executor.backward(nd.ones((4, 2)))
    np.testing.assert_allclose(apart.outputs[0].asnumpy(), together.outputs[0].asnumpy(), rtol=1e-6)
    for name in net.list_arguments():
        np.testing.assert_allclose(apart.grad_dict[name].asnumpy(), together.grad_dict[name].asnumpy(), rtol=1e-6)
    assert "_CrossDeviceCopy" in apart.explain()


# -------------------------------------------------------------------------------------------- inspection


def test_monitor_sees_every_output_once():
    executor = linear()
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.shape)))
    executor.forward()
    assert seen == [("fc_output", (2, 3))]
    seen.clear()
    executor.set_monitor_callback(lambda name, value: seen.append(name), monitor_all=True)
    executor.forward()
    assert seen == ["fc_data", "fc_weight", "fc_bias", "fc_output"]
    executor.set_monitor_callback(None)
    executor.forward()
    assert len(seen) == 4


def test_explain_and_debug_str():
    executor = linear()
    executor.forward(is_train=True)
    text = executor.explain()
    assert "FullyConnected fc" in text
    assert "backward:" in text
    assert "fc" in executor.debug_str()
    assert "inference plan" in executor.explain(is_train=False)


# ----------------------------------------------------------------------------------------------- refusals


def bind(args, grads=None, req="write", ctx=None):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    return net.bind(ctx or mx.cpu(), args, grads, req)


GOOD = {"data": (2, 4), "fc_weight": (3, 4), "fc_bias": (3,)}


def arrays(**changes):
    shapes = {name: changes.get(name, shape) for name, shape in {**GOOD, **changes}.items()}
    return {name: nd.zeros(shape) for name, shape in shapes.items() if shape is not None}


REFUSED = [
    ("missing", lambda: bind(arrays(fc_bias=None)), ArgumentError, ["fc_bias"]),
    ("unknown", lambda: bind(arrays(fc_bais=(3,))), ArgumentError, ["fc_bais", "Did you mean 'fc_bias'"]),
    ("too few", lambda: bind([nd.zeros((2, 4))]), ArgumentError, ["expected 3", "got 1"]),
    ("shape", lambda: bind(arrays(fc_weight=(3, 5))), ShapeError, ["(3, 4)", "(3, 5)", "'fc'", "test_executor.py"]),
    ("rank", lambda: bind(arrays(fc_bias=(3, 1))), ShapeError, ["(3, 1)", "(3,)"]),
    ("dtype", lambda: bind({**arrays(), "fc_bias": nd.zeros((3,), dtype="float64")}), DTypeError,
     ["float32", "float64", "'fc'"]),
    ("no array", lambda: bind({**arrays(), "fc_bias": 3}), ArgumentError, ["fc_bias", "int"]),
    ("context", lambda: bind(arrays(), ctx=mx.cpu(1)), DeviceError, ["cpu(0)", "cpu(1)"]),
    ("no context", lambda: bind(arrays(), ctx="cpu"), ArgumentError, ["Context"]),
    ("request", lambda: bind(arrays(), arrays(), "wirte"), ArgumentError, ["wirte", "Did you mean 'write'"]),
    ("requests", lambda: bind(arrays(), arrays(), ["write"]), ArgumentError, ["expected 3", "got 1"]),
    ("gradient shape", lambda: bind(arrays(), {"fc_bias": nd.zeros((4,))}), ShapeError, ["fc_bias", "(4,)"]),
    ("gradient name", lambda: bind(arrays(), {"bias": nd.zeros((3,))}), ArgumentError, ["bias", "fc_bias"]),
]


@pytest.mark.parametrize(("attempt", "error", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bind_refuses(attempt, error, words):
    with pytest.raises(error) as caught:
        attempt()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert all(word in text for word in words), text


def test_simple_bind_lists_what_cannot_be_inferred():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    with pytest.raises(InferenceError, match="data, fc_weight"):
        net.simple_bind(mx.cpu())
    with pytest.raises(ArgumentError, match="Did you mean 'data'"):
        net.simple_bind(mx.cpu(), dta=(2, 4))


def test_two_variables_of_one_name():
    net = sym.Variable("a") + sym.Variable("a")
    assert net.list_arguments() == ["a", "a"]
    with pytest.raises(ArgumentError, match="'a'"):
        net.bind(mx.cpu(), [nd.zeros((2,)), nd.zeros((2,))])


def test_no_gradient_through_an_operator_without_one():
    @mx.operator.define(name="test_no_gradient")
    def no_gradient(x):
        return x * 2

    executor = no_gradient(sym.Variable("x")).simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=False)
    with pytest.raises(NotDifferentiableError, match="test_no_gradient"):
        executor.forward(is_train=True)


def test_a_failed_run_leaves_the_executor_usable():
    class Moody(mx.operator.CustomOp):
        angry = False

        def forward(self, is_train, req, in_data, out_data, aux):
            if Moody.angry:
                raise KeyError("my own exception")
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("test_moody")
    class MoodyProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Moody()

    executor = (sym.Custom(sym.Variable("x"), op_type="test_moody", name="moody") * 2).simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = [1, 2]
    executor.forward()
    Moody.angry = True
    with pytest.raises(KeyError, match="my own exception") as caught:
        executor.forward()
    notes = "\n".join(caught.value.__notes__)
    assert "'moody'" in notes
    assert "test_executor.py" in notes
    assert "step" in notes
    Moody.angry = False
    assert executor.forward()[0].asnumpy().tolist() == [2, 4]
    assert not mx.autograd.is_training()

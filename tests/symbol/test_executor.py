"""Executors: binding, running, requests, contexts, errors."""

from __future__ import annotations

import copy
import pickle
import traceback

import numpy as np
import pytest

import opreg as mx
from opreg.core import generators
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


def test_bind_takes_lists_and_dicts():
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
def test_requests_write_add_or_skip_gradients(grad_req, kept):
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


def test_gradients_of_an_output_that_comes_twice_are_added():
    y = sym.Variable("x") * 3
    executor = sym.Group([y, y, y + 1]).simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True)
    executor.backward([nd.array([1, 2]), nd.array([10, 20]), nd.array([100, 200])])
    assert executor.grad_dict["x"].asnumpy().tolist() == [333, 666]


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
    executor.backward([nd.ones((2,))])  # no output gradient is needed where the gradient stops
    assert executor.grad_dict["y"].asnumpy().tolist() == [0, 0]


def test_an_argument_may_be_an_output():
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
def test_forward_refuses_wrong_values(values, error, words):
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


def test_backward_may_run_twice_and_without_forward():
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


def test_copy_params_from_copies_and_casts():
    executor = linear()
    executor.copy_params_from({"fc_bias": nd.array([1, 2, 3], dtype="float64")})
    assert executor.arg_dict["fc_bias"].asnumpy().tolist() == [1, 2, 3]
    with pytest.raises(ArgumentError, match="fc_bia"):
        executor.copy_params_from({"fc_weight": nd.zeros((3, 4)), "fc_bia": nd.zeros((3,))})
    assert executor.arg_dict["fc_weight"].asnumpy().any()  # nothing was half done
    executor.copy_params_from({"other": nd.zeros((1,))}, allow_extra_params=True)
    with pytest.raises(ShapeError):
        executor.copy_params_from({"fc_bias": nd.zeros((2,))})


def test_reshape_shares_memory():
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


def test_groups_choose_the_contexts():
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


def test_monitor_sees_inputs_before_a_step_computes_in_their_memory():
    x = sym.Variable("x")
    net = sym.broadcast_add(sym.exp(x, name="exp"), sym.tanh(sym.exp(x, name="other"), name="tanh"), name="sum")
    executor = sym.sin(net, name="sin").bind(mx.cpu(), {"x": nd.array([1.0])}, {"x": nd.zeros((1,))})
    seen = {}
    executor.set_monitor_callback(lambda name, value: seen.update({name: value.asscalar()}), monitor_all=True)
    executor.forward(is_train=True)
    executor.backward(nd.ones((1,)))
    for name, of in (("tanh_data", "other_output"), ("sum_lhs", "exp_output"), ("sum_rhs", "tanh_output"),
                     ("sin_data", "sum_output"), ("sin_backward_data", "sum_output")):
        assert seen[name] == seen[of], name


def test_explain_and_debug_str_name_the_operators():
    executor = linear()
    executor.forward(is_train=True)
    text = executor.explain()
    assert "FullyConnected fc" in text
    assert "backward:" in text
    assert "fc" in executor.debug_str()
    assert "inference plan" in executor.explain(is_train=False)


def test_explain_shows_the_memory_of_results():
    x = sym.Variable("x")
    inner = sym.exp(sym.dot(x, x, name="product"), name="inner")
    turned = sym.transpose(inner, name="turned")
    net = sym.Group([sym.sum(turned, axis=0, name="rows"), sym.dot(turned, x, name="end")])
    text = net.simple_bind(mx.cpu(), "null", x=(3, 3)).explain()
    places = {line.split()[2].rstrip(":"): line.partition("-> ")[2] for line in text.splitlines()[2:]}
    assert places["product"] == "cpu(0) arena +0, 36 bytes"
    assert places["inner"] == "in place of product, cpu(0) arena +0, 36 bytes"
    assert places["turned"] == "view of inner, cpu(0) arena +0, 36 bytes"
    assert places["rows"] == places["end"] == "bound array"


@pytest.mark.parametrize("make", [
    lambda x: mx.sym.LinearRegressionOutput(mx.sym.relu(x, name="first"), mx.sym.var("label"), name="same"),
    lambda x: mx.sym.Dropout(mx.sym.relu(x, name="first"), p=0.0, name="same"),
    lambda x: mx.sym.reshape(mx.sym.relu(x, name="first"), shape=(2, 2), name="same"),
    lambda x: mx.sym.BlockGrad(mx.sym.relu(x, name="first"), name="same"),
    lambda x: mx.sym.batch_take(mx.sym.relu(x, name="first"), mx.sym.var("i", shape=(2,)), name="same"),
])
def test_a_monitor_receives_identities_and_composed_operators(make):
    executor, seen = make(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2, 2)), []
    executor.arg_dict["x"][:] = 3
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.asnumpy().max())))
    executor.forward()
    assert seen == [("first_output", 3), ("same_output", 3)]


def test_a_monitor_receives_results_of_traced_operators_under_their_names():
    swish = mx.operator.define(lambda x: x * mx.ops.sigmoid(x), name="_example_monitored_swish", traced=True)
    both = mx.operator.define(lambda x: (swish(x), x + 1), name="_example_monitored_pair", traced=True,
                              outputs=["top", "rest"])
    x = mx.sym.var("x")
    graph = mx.sym.Group([swish(x, name="mine"), *both(x, name="two")])
    executor, seen = graph.simple_bind(mx.cpu(), x=(2,)), {}
    executor.arg_dict["x"][:] = 1
    executor.set_monitor_callback(lambda name, value: seen.update({name: value.asnumpy()}))
    outs = executor.forward(is_train=True)
    for name, out in zip(("mine_output", "two_top", "two_rest"), outs):
        np.testing.assert_array_equal(seen[name], out.asnumpy())
    assert "mine_sigmoid0_output" in seen  # nodes of the body keep their names
    executor.backward([nd.ones((2,))] * 3)
    assert "mine_backward_output" in seen


def test_a_monitor_receives_gradients_one_by_one():
    """The names are MXNet's: each has a number for the input whose gradient it is."""
    executor = linear()
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.shape)))
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    assert seen == [("fc_output", (2, 3)), ("fc_backward_output0", (2, 4)), ("fc_backward_output1", (3, 4)),
                    ("fc_backward_output2", (3,))]
    executor = sym.tanh(sym.Variable("x"), name="tanh").simple_bind(mx.cpu(), x=(2,))
    executor.set_monitor_callback(lambda name, value: seen.append((name, value.shape)))
    executor.forward(is_train=True)
    executor.backward(nd.ones((2,)))
    assert seen[4:] == [("tanh_output", (2,)), ("tanh_backward_output", (2,))]


# ------------------------------------------------------------------------------------------------- sharing


def shared(arg_names=None, buffer=None, data=(2, 4), **more):
    """An executor after a run, and another one that shares its memory."""
    net = sym.BatchNorm(sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc"), name="norm")
    first = net.simple_bind(mx.cpu(), data=(2, 4), shared_buffer=buffer)
    return first, net.simple_bind(mx.cpu(), data=data, shared_arg_names=arg_names, shared_buffer=buffer,
                                  shared_exec=first, **more)


def same(first, second, kind):
    """Names of arrays that share memory in both executors."""
    one, other = getattr(first, kind), getattr(second, kind)
    return {name for name in one if np.may_share_memory(one[name]._data, other[name]._data)}


def test_executors_share_nothing_by_default():
    first, second = shared()
    assert not any(same(first, second, kind) for kind in ("arg_dict", "grad_dict", "aux_dict"))
    second.arg_dict["data"][:] = 7
    assert not first.arg_dict["data"].asnumpy().any()


def test_arguments_that_are_named_are_shared_with_their_gradients_and_the_states():
    first, second = shared(["fc_weight", "norm_gamma"], data=(5, 4))
    for kind in ("arg_dict", "grad_dict"):
        assert same(first, second, kind) == {"fc_weight", "norm_gamma"}
    assert same(first, second, "aux_dict") == {"norm_moving_mean", "norm_moving_var"}


def test_a_pool_holds_arrays_by_name():
    pool = {}
    first, second = shared(["fc_weight"], pool, data=(1, 4))
    assert set(pool) == {*first.arg_dict, *[f"grad of {name}" for name in first.arg_dict]}
    assert same(first, second, "arg_dict") == same(first, second, "grad_dict") == set(first.arg_dict)
    assert second.arg_dict["data"].shape == (1, 4)  # the front of a larger array
    _, larger = shared(buffer=pool, data=(9, 4))
    assert pool["data"].shape == larger.arg_dict["data"].shape == (9, 4)


SHARED = [
    (["fc_wieght"], {}, ArgumentError, "Did you mean 'fc_weight'"),
    (["data"], {"data": (5, 4)}, ShapeError, r"data is \(2, 4\) float32 in shared_exec, here \(5, 4\)"),
]


@pytest.mark.parametrize(("names", "more", "error", "words"), SHARED, ids=["name", "shape"])
def test_sharing_that_is_impossible_is_refused(names, more, error, words):
    with pytest.raises(error, match=words):
        shared(names, **more)


# ------------------------------------------------------------------------------------- gradients as in inference


def test_backward_may_differentiate_as_in_inference():
    net = sym.BatchNorm(sym.Variable("data"), fix_gamma=False, eps=0.0, name="norm")
    executor = net.simple_bind(mx.cpu(), data=(4, 2))
    executor.arg_dict["data"][:] = np.arange(8).reshape(4, 2)
    executor.arg_dict["norm_gamma"][:] = 3
    executor.aux_dict["norm_moving_var"][:] = 4
    top = nd.array(np.arange(8).reshape(4, 2) ** 2)
    found = {}
    for forward in (False, True, False):
        for backward in (True, False):
            executor.forward(is_train=forward)
            executor.aux_dict["norm_moving_mean"][:], executor.aux_dict["norm_moving_var"][:] = 0, 4
            executor.backward([top], is_train=backward)
            found.setdefault(backward, []).append(executor.grad_dict["data"].asnumpy())
    for each in found[False]:
        np.testing.assert_allclose(each, top.asnumpy() * 3 / 2)
    for each in found[True]:
        np.testing.assert_allclose(each, found[True][0])
        assert abs(each - found[False][0]).max() > 1


@pytest.mark.parametrize("forward", [True, False])
def test_dropout_is_differentiated_as_it_dropped(forward):
    executor = sym.Dropout(sym.Variable("data"), p=0.5).simple_bind(mx.cpu(), data=(100,))
    executor.arg_dict["data"][:] = 1
    executor.forward(is_train=forward)
    executor.backward(nd.ones((100,)), is_train=False)
    kept = executor.outputs[0].asnumpy()
    assert set(kept) == ({0, 2} if forward else {1})
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), kept)


@pytest.mark.parametrize(("attrs", "is_train", "drops"), [
    ({"p": 0.5, "mode": "always"}, False, True), ({"p": 0.5, "mode": "always"}, True, True),
    ({"p": 0.5}, False, False), ({"p": 0.5}, True, True), ({"p": 0.0, "mode": "always"}, True, False)])
def test_dropout_drops_in_training_or_always(attrs, is_train, drops):
    executor = sym.Dropout(sym.Variable("data"), **attrs).simple_bind(mx.cpu(), data=(100,))
    executor.arg_dict["data"][:] = 1
    assert set(executor.forward(is_train=is_train)[0].asnumpy()) == ({0, 2} if drops else {1})


def test_operators_receive_the_mode_of_backward():
    class Mode(mx.operator.CustomOp):
        seen = []

        def forward(self, is_train, req, in_data, out_data, aux):
            self.seen.append(is_train)
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.seen.append(mx.autograd.is_training())
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("test_mode")
    class ModeProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Mode()

    executor = sym.Custom(sym.Variable("x"), op_type="test_mode").simple_bind(mx.cpu(), x=(2,))
    for forward, backward, expected in [(True, True, [True, True]), (False, False, [False, False, False]),
                                        (False, False, [False, False]), (True, True, [True, True]),
                                        (False, True, [False, True, True]), (True, False, [True, True, False])]:
        Mode.seen.clear()
        executor.forward(is_train=forward)
        executor.backward(nd.ones((2,)), is_train=backward)
        assert Mode.seen == expected, (forward, backward)


def test_backward_does_not_use_a_failed_forward():
    class Failing(mx.operator.CustomOp):
        fails = False

        def forward(self, is_train, req, in_data, out_data, aux):
            if Failing.fails:
                raise KeyError
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("test_failing")
    class FailingProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Failing()

    x = sym.Variable("x")
    executor = sym.Custom(sym.exp(x), op_type="test_failing").simple_bind(mx.cpu(), x=(1,))
    executor.forward(is_train=True)
    Failing.fails = True
    with pytest.raises(KeyError):
        executor.forward(is_train=True, x=nd.array([1]))
    Failing.fails = False
    executor.arg_dict["x"][:] = 2
    executor.backward(nd.ones((1,)))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), np.exp([2]), rtol=1e-6)


# ------------------------------------------------------------------------------------------ where it computes


def test_a_node_without_a_group_computes_with_its_first_input():
    a, b, c = map(sym.Variable, "abc")
    with mx.AttrScope(ctx_group="far"):
        d = sym.elemwise_add(a, b)
    net = sym.Group([d, d * c, c * d, c + 1])
    places = {"a": mx.cpu(1), "b": mx.cpu(0), "c": mx.cpu(2)}
    args = {name: nd.ones((2,), ctx=place) for name, place in places.items()}
    grads = {name: nd.zeros((2,), ctx=place) for name, place in places.items()}
    executor = net.bind(mx.cpu(), args, grads, group2ctx={"far": mx.cpu(1)})
    outputs = executor.forward(is_train=True)
    assert [out.context for out in outputs] == [mx.cpu(1), mx.cpu(1), mx.cpu(2), mx.cpu(2)]
    assert [out.asnumpy().tolist() for out in outputs] == [[2, 2], [2, 2], [2, 2], [2, 2]]
    executor.backward([nd.ones((2,)) for _ in outputs])
    assert [grads[name].asnumpy().tolist() for name in "abc"] == [[3, 3], [3, 3], [5, 5]]


def test_arrays_of_variables_in_no_group_may_lie_anywhere_only_where_there_are_groups():
    x = sym.Variable("x")
    with mx.AttrScope(ctx_group="far"):
        net = x * 2
    far = {"x": nd.ones((2,), ctx=mx.cpu(1))}
    for groups in ({"far": mx.cpu(1)}, {"far": [mx.cpu(1)]}):  # one in a list, as for one part of a batch
        assert net.bind(mx.cpu(), far, group2ctx=groups).forward()[0].context == mx.cpu(1)
    with pytest.raises(DeviceError, match=r"x lives on cpu\(1\), expected cpu\(0\)"):
        net.bind(mx.cpu(), far)
    assert net.simple_bind(mx.cpu(), x=(2,), group2ctx={"far": mx.cpu(1)}).arg_dict["x"].context == mx.cpu(0)
    for groups in ({"far": "cpu"}, {"far": [mx.cpu(0), mx.cpu(1)]}, [mx.cpu(1)]):
        with pytest.raises(ArgumentError, match="group2ctx"):
            net.bind(mx.cpu(), far, group2ctx=groups)


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
    ("unknown", lambda: bind(arrays(fc_bias=None, fc_bais=(3,))), ArgumentError, ["fc_bais", "Did you mean 'fc_bias'"]),
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
def test_bind_refuses_wrong_arguments(attempt, error, words):
    with pytest.raises(error) as caught:
        attempt()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert all(word in text for word in words), text


def test_simple_bind_lists_unknown_shapes():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    with pytest.raises(InferenceError, match=r"give the shape of data, as in simple_bind\(ctx, data="):
        net.simple_bind(mx.cpu())
    with pytest.raises(ArgumentError, match="Did you mean 'data'"):
        net.simple_bind(mx.cpu(), dta=(2, 4))


def test_two_variables_of_one_name():
    net = sym.Variable("a") - sym.Variable("a")
    assert net.list_arguments() == ["a", "a"]
    with pytest.raises(ArgumentError, match="'a'"):
        net.bind(mx.cpu(), {"a": nd.ones((2,))})
    grads = [nd.zeros((2,)), nd.zeros((2,))]
    with pytest.raises(ArgumentError, match="'a'"):
        net.bind(mx.cpu(), [nd.ones((2,)), nd.ones((2,))], {"a": grads[0]})
    executor = net.bind(mx.cpu(), [nd.ones((2,)) * 5, nd.ones((2,))], grads)  # positions distinguish them
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [4, 4]
    executor.backward(nd.ones((2,)))
    assert [grad.asnumpy().tolist() for grad in grads] == [[1, 1], [-1, -1]]
    with pytest.raises(ArgumentError, match="'a' occurs twice"):
        executor.arg_dict  # noqa: B018


def test_training_through_an_operator_without_gradient_raises_an_error():
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


def test_arrays_of_other_graphs_are_ignored():
    """A program that binds a part of its network passes all of its weights."""
    with pytest.warns(UserWarning, match="args: there is no 'fc2_weight' in the graph: it is ignored") as caught:
        executor = bind({**arrays(), "fc2_weight": nd.ones((2,))}, arrays())
    assert caught[0].filename == __file__
    assert set(executor.arg_dict) == set(GOOD)
    with pytest.warns(UserWarning, match="args_grad"):
        bind(arrays(), {**arrays(), "other": nd.ones((2,))})


def simple(**settings):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    return net.simple_bind(mx.cpu(), **{"data": (2, 4), **settings})


OTHERS = [
    ("grad_req", lambda name: bind(arrays(), arrays(), {"fc_bias": "add", name: "write"})),
    ("grad_req", lambda name: simple(grad_req={"fc_bias": "add", name: "write"})),
    ("simple_bind", lambda name: simple(**{name: (2,)})),
    ("shared_arg_names", lambda name: simple(shared_arg_names=[name])),
]


@pytest.mark.parametrize(("what", "bound"), OTHERS)
def test_names_of_other_graphs_are_ignored(what, bound):
    """One dict serves a layer with a bias and one without; one keyword serves a network with a loss and one without."""
    with pytest.warns(UserWarning, match=f"{what}: there is no 'gamma' in the graph: it is ignored") as caught:
        executor = bound("gamma")
    assert [each.filename for each in caught] == [__file__]
    assert set(executor.arg_dict) == set(GOOD)
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    assert executor.grad_dict["fc_bias"].asnumpy().tolist() == [2, 2, 2]
    with pytest.raises(ArgumentError, match=f"{what}: .*'fc_wieght'.*Did you mean 'fc_weight'"):
        bound("fc_wieght")


def test_keywords_that_are_no_shapes_are_ignored():
    x = sym.Variable("x") * 2
    with pytest.warns(UserWarning, match="axis=-1, force_rebind=True") as caught:
        executor = x.simple_bind(mx.cpu(), x=(2,), axis=-1, force_rebind=True)
    assert executor.arg_dict["x"].shape == (2,)
    assert caught[0].filename == __file__


MISTAKES = [
    ("array for a mode", lambda e: e.forward(nd.ones((2, 4))), ArgumentError, ["is_train", "(2, 4)", "forward(data="]),
    ("second gradient", lambda e: e.backward(nd.ones((2, 3)), nd.ones((2, 3))), ArgumentError, ["is_train", "list"]),
    ("name", lambda e: e.arg_dict["weight"], KeyError, ["arg_dict", "'weight'", "fc_weight"]),
    ("gradient's name", lambda e: e.grad_dict["fc_wieght"], KeyError, ["Did you mean 'fc_weight'"]),
    ("output's name", lambda e: e.output_dict["fc"], KeyError, ["fc_output"]),
    ("state's name", lambda e: e.aux_dict["mean"], KeyError, ["nothing to choose from"]),
    ("pickle", pickle.dumps, TypeError, ["bound to memory", "pickle or copy its symbol"]),
    ("deepcopy", copy.deepcopy, TypeError, ["bound to memory"]),
]


@pytest.mark.parametrize(("attempt", "error", "words"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_mistakes_raise_errors_with_a_remedy(attempt, error, words):
    with pytest.raises(error) as caught:
        attempt(linear())
    assert all(word in str(caught.value) for word in words), str(caught.value)


class Unlucky(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.compute()

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.compute()

    def compute(self):
        raise ZeroDivisionError


@mx.operator.register("test_unlucky")
class UnluckyProp(mx.operator.CustomOpProp):
    def __init__(self, shapes="known"):
        super().__init__()
        self.shapes = shapes

    def infer_shape(self, in_shape):
        return super().infer_shape(in_shape) if self.shapes == "known" else 1 / 0

    def create_operator(self, ctx, shapes, dtypes):
        return Unlucky()


@pytest.mark.parametrize("entire", [False, True])
def test_a_users_exception_stands_below_the_call(entire, monkeypatch):
    monkeypatch.setenv("OPREG_FULL_TRACEBACK", str(int(entire)))
    executor = sym.Custom(sym.Variable("x"), op_type="test_unlucky").simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(ZeroDivisionError) as caught:
        executor.forward()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-2:] == ["forward", "compute"]
    if entire:
        assert len(frames) > 6
    else:
        assert frames[1:] == ["forward", "forward", "compute"]  # the executor's, and the user's


BOUND = {
    "simple_bind": lambda net: net.simple_bind(mx.cpu(), x=(2,)), "infer_shape": lambda net: net.infer_shape(x=(2,)),
    "bind": lambda net: net.bind(mx.cpu(), {"x": nd.ones((2,))}),
}


@pytest.mark.parametrize("name", BOUND)
def test_a_props_exception_stands_below_the_call(name):
    with pytest.raises(ZeroDivisionError) as caught:
        BOUND[name](sym.Custom(sym.Variable("x"), op_type="test_unlucky", shapes="odd"))
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[2:] == [name, "infer_shape"]


# ------------------------------------------------------------------------------------------------- reshape


def test_reshape_keeps_shapes_that_do_not_follow():
    x, y = sym.Variable("x"), sym.Variable("y")
    executor = sym.Group([x * 2, y + 1]).simple_bind(mx.cpu(), x=(4, 3), y=(5,))
    executor.arg_dict["y"][:] = 3
    other = executor.reshape(x=(2, 3))
    assert [out.shape for out in other.forward()] == [(2, 3), (5,)]
    assert other.outputs[1].asnumpy().tolist() == [4] * 5
    assert other.arg_dict["y"] is executor.arg_dict["y"]


def test_outputs_of_a_smaller_executor_are_the_front_of_those_of_the_larger():
    executor = (sym.Variable("x") * 2).simple_bind(mx.cpu(), x=(4, 3))
    executor.arg_dict["x"][:] = 1
    smaller = executor.reshape(x=(2, 3))
    smaller.forward()
    assert executor.outputs[0].asnumpy().ravel().tolist() == [2] * 6 + [0] * 6
    larger = smaller.reshape(x=(4, 3), allow_up_sizing=True)
    assert not np.may_share_memory(larger.outputs[0]._data, executor.outputs[0]._data)
    assert "Total 0 MB allocated" in larger.debug_str()


def test_another_array_in_a_dict_of_an_executor_is_warned_of():
    executor = (sym.Variable("x") * 2).simple_bind(mx.cpu(), x=(2,))
    with pytest.warns(UserWarning, match=r"write into the array, arg_dict\['x'\]\[:\] = …"):
        executor.arg_dict["x"] = mx.nd.ones(2)
    assert (executor.forward()[0].asnumpy() == 0).all()


@pytest.mark.parametrize("modes", [
    [("forward", False), ("backward", False)], [("forward", True), ("backward", True), ("backward", True)],
    [("forward", True), ("forward", False), ("backward", True)]])
def test_a_forward_that_is_run_again_for_gradients_draws_the_same_numbers(modes):
    """The caller's next random numbers are the same as without the second run of forward."""
    executor = sym.Dropout(sym.Variable("x"), p=0.5, mode="always").simple_bind(mx.cpu(), x=(1000,))
    executor.arg_dict["x"][:] = 1
    wanted = None
    for method, is_train in modes:
        if method == "backward":
            executor.backward([mx.nd.ones(1000)], is_train=is_train)
            assert (executor.grad_dict["x"].asnumpy() == wanted).all()
        else:
            found = executor.forward(is_train=is_train)[0].asnumpy()
            wanted = found if is_train == modes[-1][1] else wanted
    after = mx.nd.random.uniform(shape=4).asnumpy()
    generators.seed(0)
    for _ in range(sum(method == "forward" for method, _ in modes)):
        executor.forward(is_train=True)
    assert (mx.nd.random.uniform(shape=4).asnumpy() == after).all()


def test_outputs_by_the_name_that_programs_of_mxnet_call():
    bound = (mx.sym.var("x") * 2).bind(mx.cpu(), {"x": mx.nd.ones(2)})
    bound.forward()
    (y,) = bound._get_outputs()
    assert y is bound.outputs[0] and y.asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize("way", ["bind", "simple_bind", "sparse", "by values"])
def test_an_output_that_is_a_variable_has_the_memory_of_its_array(way: str) -> None:
    x, w = sym.var("x"), sym.var("w")
    heads = [x, x * w, x, *([sym.contrib.boolean_mask(w, x)] if way == "by values" else [])]
    arrays = {"x": nd.ones(3), "w": nd.full(3, 2.0).tostype("row_sparse" if way == "sparse" else "default")}
    net = sym.Group(heads)
    executor = net.simple_bind(mx.cpu(), x=(3,), w=(3,)) if way == "simple_bind" else net.bind(
        mx.cpu(), arrays, {"x": nd.zeros(3)})
    executor.forward(is_train=True, x=nd.ones(3))
    outputs = executor.outputs
    executor.arg_dict["x"][:] = 7.0
    assert outputs[0].asnumpy().tolist() == outputs[2].asnumpy().tolist() == [7.0] * 3
    outputs[0][1] = 9.0
    assert executor.arg_dict["x"].asnumpy().tolist() == [7.0, 9.0, 7.0]
    np.testing.assert_array_equal(executor.forward()[1].asnumpy(),
                                  executor.arg_dict["x"].asnumpy() * executor.arg_dict["w"].asnumpy())
    executor.forward(is_train=True, x=nd.ones(3))
    executor.backward([nd.ones(each.shape) for each in executor.outputs])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), 2.0 + executor.arg_dict["w"].asnumpy())

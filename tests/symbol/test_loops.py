"""Loops and branches: arrays and graphs agree, gradients are right, files restore them."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, NotDifferentiableError

sym, nd = mx.sym, mx.nd


def recurrent(F):
    """A recurrent cell with weights from outside the loop, of which one is computed there."""
    def make(x, state, w, v):
        double = v * 2

        def step(each, states):
            out = F.tanh(F.broadcast_mul(each, w) + states[0] * double)
            return [out, out * out], [out]

        outputs, states = F.contrib.foreach(step, x, [state])
        return [*outputs, *states]

    return make


def accumulating(F):
    """A loop that adds squares while the sum is small."""
    def make(x, state, w, v):
        outputs, (total, count) = F.contrib.while_loop(
            lambda total, count: F.sum(total * total) < 30.0,
            lambda total, count: (total * v, [total + F.broadcast_mul(w, state) * count, count + 1]),
            [state, F.ones_like(state)], max_iterations=6)
        return [outputs, total, count]

    return make


def branching(F):
    """A branch with two ways."""
    def make(x, state, w, v):
        return F.contrib.cond(F.sum(state) > 0, lambda: [state * w, v + state], lambda: [state - w, v * v])

    return make


CASES = {"foreach": recurrent, "while": accumulating, "cond": branching}


def values(sign: float = 1.0):
    rng = np.random.default_rng(4)
    return {"x": rng.standard_normal((5, 3)), "state": np.abs(rng.standard_normal(3)) * sign,
            "w": rng.standard_normal(3), "v": rng.standard_normal(3)}


def eagerly(case, arrays):
    inputs = {name: nd.array(value, dtype="float64") for name, value in arrays.items()}
    for each in inputs.values():
        each.attach_grad()
    with mx.autograd.record():
        outs = CASES[case](nd)(**inputs)
    mx.autograd.backward(outs)
    return [out.asnumpy() for out in outs], {name: each.grad.asnumpy() for name, each in inputs.items()}


def graph(case):
    return sym.Group(CASES[case](sym)(**{name: sym.Variable(name) for name in values()}))


def bound(net, arrays, is_train=True):
    names = net.list_arguments()
    executor = net.bind(mx.cpu(), {name: nd.array(arrays[name], dtype="float64") for name in names},
                        {name: nd.zeros(arrays[name].shape, dtype="float64") for name in names})
    for _ in range(2):
        outs = [out.asnumpy() for out in executor.forward(is_train=is_train)]
        if is_train:
            executor.backward([nd.ones(out.shape, dtype="float64") for out in outs])
    return outs, {name: grad.asnumpy() for name, grad in executor.grad_dict.items()}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("case", CASES)
def test_loops_in_graphs_give_the_values_and_gradients_of_eager_loops(case, sign):
    arrays = values(sign)
    outs, grads = eagerly(case, arrays)
    net = graph(case)
    for each in (net, sym.load_json(net.tojson())):
        got, slopes = bound(each, arrays)
        for one, other in zip(got, outs):
            np.testing.assert_allclose(one, other, rtol=1e-10)
        for name, slope in slopes.items():
            np.testing.assert_allclose(slope, grads[name], rtol=1e-8, atol=1e-12, err_msg=name)
    inferred, _ = bound(net, arrays, is_train=False)
    for one, other in zip(inferred, outs):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_differences(case):
    arrays, net = values(), graph(case)
    _, grads = bound(net, arrays)
    for name in net.list_arguments():
        for index in np.ndindex(arrays[name].shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = {key: value.copy() for key, value in arrays.items()}
                moved[name][index] += step
                ends.append(sum(out.sum() for out in bound(net, moved, is_train=False)[0]))
            assert abs((ends[0] - ends[1]) / 2e-6 - grads[name][index]) < 1e-5, (name, index)


@pytest.mark.parametrize("case", CASES)
def test_files_keep_loops_and_branches(case):
    text = graph(case).tojson()
    assert sym.load_json(text).tojson() == text
    assert "subgraphs" in text


@pytest.mark.parametrize("kind", ["foreach", "while_loop", "cond"])
def test_partly_known_weights_get_their_shapes_from_the_body(kind):
    x, state, weight = sym.var("x"), sym.var("state", shape=(1,)), sym.var("weight", shape=(4, 0))

    def dense(each):
        return sym.FullyConnected(each, weight, no_bias=True, num_hidden=4)

    out = {
        "foreach": lambda: sym.contrib.foreach(lambda each, states: (dense(each), states), x, [state])[0],
        "while_loop": lambda: sym.contrib.while_loop(
            lambda count: count < 2, lambda count: (dense(x), [count + 1]), [state], max_iterations=5)[0],
        "cond": lambda: sym.contrib.cond(state < 1, lambda: dense(x), lambda: dense(x) * 2),
    }[kind]()
    arguments = out.infer_shape(x=(5, 2, 3))[0]
    assert dict(zip(out.list_arguments(), arguments))["weight"] == (4, 3 if kind == "foreach" else 6)


def test_weights_get_their_shapes_from_the_body():
    def step(each, states):
        out = sym.FullyConnected(each, num_hidden=4, name="in") + sym.FullyConnected(states, num_hidden=4, name="over")
        return out, out

    outs, last = sym.contrib.foreach(step, sym.Variable("x"), sym.Variable("state"))
    net = sym.Group([outs, last])
    shapes = dict(zip(net.list_arguments(), net.infer_shape(x=(7, 2, 3), state=(2, 4))[0]))
    assert shapes["in_weight"] == (4, 3)
    assert shapes["over_weight"] == (4, 4)
    assert net.infer_shape(x=(7, 2, 3), state=(2, 4))[1] == [(7, 2, 4), (2, 4)]


def test_dropout_draws_the_same_mask_for_backward():
    outs, last = sym.contrib.foreach(lambda each, total: (sym.Dropout(each, p=0.5) + total * 0, total),
                                     sym.Variable("x"), sym.Variable("start"))
    executor = sym.Group([outs, last]).simple_bind(mx.cpu(), x=(4, 50), start=(50,))
    executor.arg_dict["x"][:] = 1
    mask = executor.forward(is_train=True)[0].asnumpy()
    executor.backward([nd.ones((4, 50)), nd.ones((50,))])
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), mask)


def test_second_order_is_refused_by_name():
    net = graph("foreach")
    first = net.gradient(["w"])
    with pytest.raises(NotDifferentiableError, match="_foreach"):
        first.gradient(["w"])


REFUSED = [
    (lambda: sym.contrib.foreach(lambda x, s: (x, [s, s]), sym.Variable("x"), sym.Variable("s")), "2 states"),
    (lambda: sym.contrib.foreach(lambda x, s: (x, x), sym.Variable("x"), sym.Variable("s")), "does not use"),
    (lambda: sym.contrib.while_loop(lambda i: i < 3, lambda i: (i, i), sym.Variable("i"), max_iterations=0),
     "max_iterations"),
    (lambda: sym.contrib.while_loop(lambda i: True, lambda i: (i, i), sym.Variable("i"), max_iterations=2), "symbol"),
    (lambda: sym.contrib.cond(sym.Variable("p"), lambda: sym.Variable("a"),
                              lambda: [sym.Variable("a"), sym.Variable("b")]), "branch"),
    (lambda: nd.contrib.foreach(lambda x, s: (x, s), nd.zeros((2, 3)), nd.zeros((1,))) and
     nd.contrib.foreach(lambda x, s: (x, s), [nd.zeros((2,)), nd.zeros((3,))], nd.zeros((1,))), "first dimension"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_wrong_uses_of_loops_are_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


@pytest.mark.parametrize(("old", "new"), [
    ('"num_outputs": "3"', '"num_outputs": "4"'), ('"in_data_locs": "[0]"', '"in_data_locs": "[9]"'),
    ('"num_args": "5"', '"num_args": "6"'), ('"remain_locs"', '"remain_lcos"'),
])
def test_damaged_files_are_refused(old, new):
    text = graph("foreach").tojson()
    assert old in text
    with pytest.raises((ArgumentError, FileFormatError, ValueError)):
        sym.load_json(text.replace(old, new))


def test_a_loop_without_any_round():
    """Eagerly there are no outputs, since their shapes are unknown; a graph returns zeros."""
    outputs, last = nd.contrib.while_loop(lambda i: i > 3, lambda i: ([i, i], i + 1), nd.zeros((1,)), max_iterations=2)
    assert (outputs, last.asnumpy().tolist()) == ([], [0])
    outputs, last = sym.contrib.while_loop(lambda i: i > 3, lambda i: (i, i + 1), sym.Variable("i"), max_iterations=2)
    assert [each.asnumpy().tolist() for each in sym.Group([outputs, last]).eval(i=nd.zeros((1,)))] == [[[0], [0]], [0]]


def test_variables_of_one_name_made_in_both_branches_are_one():
    net = sym.contrib.cond(sym.Variable("p"), lambda: sym.Variable("x") * 2,
                           lambda: sym.Variable("x") + sym.Variable("y"))
    assert net.list_arguments() == ["p", "x", "y"]
    for p, expected in ((1, [6.0]), (0, [8.0])):
        assert net.eval(p=nd.array([p]), x=nd.array([3.0]), y=nd.array([5.0]))[0].asnumpy().tolist() == expected


def test_elements_of_data_with_one_axis_have_one():
    """An element has the shape of ``x[i]``, in graphs too."""
    def make(F, x, state):
        return F.contrib.foreach(lambda each, states: (each * states[0], [states[0] * 2]), x, [state])

    outputs, states = make(sym, sym.Variable("x"), sym.Variable("state"))
    net = sym.Group([outputs, *states])
    assert net.infer_shape(x=(3,), state=(1,))[:2] == ([(3,), (1,)], [(3, 1), (1,)])
    arrays = {"x": np.array([1.0, 2, 3]), "state": np.array([0.5])}
    outs, grads = bound(net, arrays)
    assert [each.tolist() for each in outs] == [[[0.5], [2], [6]], [4]]
    assert {name: grad.tolist() for name, grad in grads.items()} == {"x": [0.5, 1, 2], "state": [25]}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("case", CASES)
def test_a_cached_op_runs_a_loop_eagerly(case, sign):
    """A CachedOp calls each operator of each round, so that autograd records them."""
    arrays = values(sign)
    outs, grads = eagerly(case, arrays)
    net = graph(case)
    inputs = {name: nd.array(arrays[name], dtype="float64") for name in net.list_inputs()}
    for each in inputs.values():
        each.attach_grad()
    with mx.autograd.record():
        found = nd.CachedOp(net)(*inputs.values())
    mx.autograd.backward(found)
    for one, other in zip(found, outs):
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-10)
    for name, each in inputs.items():
        np.testing.assert_allclose(each.grad.asnumpy(), grads[name], rtol=1e-8, atol=1e-12, err_msg=name)


def test_a_cached_op_of_a_loop_without_any_round():
    outputs, last = sym.contrib.while_loop(lambda i: i > 3, lambda i: (i, i + 1), sym.Variable("i"), max_iterations=2)
    found = nd.CachedOp(sym.Group([outputs, last]))(nd.zeros((1,)))
    assert [each.asnumpy().tolist() for each in found] == [[[0], [0]], [0]]


def test_a_body_that_leaves_a_state_unused_is_refused():
    """The error is an AssertionError, too, as in MXNet."""
    with pytest.raises(AssertionError, match="does not use all of its states; leave out number 0"):
        sym.contrib.foreach(lambda x, states: (x, [sym.Variable("y")]), sym.Variable("x"), [sym.Variable("s")])


@pytest.mark.parametrize("F", [nd, sym])
@pytest.mark.parametrize("many", [False, True])
def test_loop_variables_keep_their_nesting(F, many):
    start = nd.ones((1,)) if F is nd else sym.Variable("x")
    for func in (lambda x: (x, x), lambda x: (x, [x])):
        _, last = F.contrib.while_loop(lambda x: x < 2, func, [start] if many else start, max_iterations=2)
        assert isinstance(last, list) == many

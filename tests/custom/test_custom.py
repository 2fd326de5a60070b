"""Operators of users: CustomOp and CustomOpProp eagerly and in graphs, ``define``, and errors in them."""

from __future__ import annotations

import copy
import gc
import itertools
import multiprocessing
import pickle
import threading
import warnings
import weakref
from typing import Literal, Optional

import numpy as np
import pytest

import opreg as mx
from opreg.errors import (
    ArgumentError,
    AttrError,
    DTypeError,
    NotDifferentiableError,
    OpError,
    ShapeError,
    UnknownOperatorError,
    as_op_error,
)
from tests.questions import of_each

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
X = np.float32([[0, 1, 2], [3, 4, 5]])
_NUMBERS = itertools.count()


class Twice(mx.operator.CustomOp):
    """Twice the first input; the gradient is doubled, too."""

    def forward(self, is_train, req, in_data, out_data, aux):
        for dst, request in zip(out_data, req):
            self.assign(dst, request, in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        for dst, request in zip(in_grad, req):
            self.assign(dst, request, out_grad[0] * 2)


def registered(operator: type = Twice, **methods) -> str:
    """Register a Prop with these methods under a name of its own."""
    name = f"test_custom_{next(_NUMBERS)}"
    methods = {"create_operator": lambda self, ctx, shapes, dtypes: operator(), **methods}
    mx.operator.register(name)(type("TestProp", (mx.operator.CustomOpProp,), methods))
    return name


def marked(values=X, req: str = "write"):
    x = nd.array(values)
    x.attach_grad(req)
    return x


def eagerly(name, *arrays, **attrs):
    return nd.Custom(*arrays, op_type=name, **attrs)


def in_a_graph(name, *arrays, is_train=False, **attrs):
    """The outputs of a bound node; arguments are named ``x0``, ``x1``, …"""
    variables = [sym.Variable(f"x{i}") for i in range(len(arrays))]
    net = sym.Custom(*variables, op_type=name, name="node", **attrs)
    executor = net.bind(mx.cpu(), {f"x{i}": array for i, array in enumerate(arrays)})
    outs = executor.forward(is_train=is_train)
    return outs[0] if len(outs) == 1 else outs


BOTH = pytest.mark.parametrize("run", [eagerly, in_a_graph])


def untouched() -> None:
    """Asserts that modes, context and the next call are as before."""
    assert (autograd.is_recording(), autograd.is_training(), mx.current_context()) == (False, False, mx.cpu())
    for run in (eagerly, in_a_graph):
        np.testing.assert_array_equal(run(NAME, nd.array(X)).asnumpy(), 2 * X)


NAME = registered()


# ---------------------------------------------------------------------------------------------- the tutorial


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], mx.nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(label.shape[0]), label] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super(SoftmaxProp, self).__init__(need_top_grad=False)  # noqa: UP008  as old programs write it

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        data_shape = in_shape[0]
        label_shape = (in_shape[0][0],)
        output_shape = in_shape[0]
        return [data_shape, label_shape], [output_shape], []

    def infer_type(self, in_type):
        dtype = in_type[0]
        return [dtype, dtype], [dtype], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


def test_the_tutorials_operator_runs_eagerly():
    x, label = marked(), nd.array([0, 2])
    with autograd.record():
        y = nd.Custom(x, label, op_type="test_softmax")
    y.backward()
    expected = nd.softmax(nd.array(X)).asnumpy()
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)
    expected[[0, 1], [0, 2]] -= 1
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5, atol=1e-7)


def test_the_tutorials_network_learns():
    """The weights after several steps equal those with the built-in loss."""

    def trained(loss):
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
        net = sym.FullyConnected(sym.Activation(net, act_type="relu"), num_hidden=3, name="fc3")
        net = loss(net)
        assert net.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc3_weight", "fc3_bias", "softmax_label"]
        executor = net.simple_bind(mx.cpu(), data=(12, 4))
        rng = np.random.default_rng(0)
        for name, array in executor.arg_dict.items():
            array[:] = rng.standard_normal(array.shape)
            if name == "softmax_label":
                array[:] = np.arange(12) % 3
        losses = []
        for _ in range(20):
            (y,) = executor.forward(is_train=True)
            losses.append(-np.log(y.asnumpy()[np.arange(12), np.arange(12) % 3]).mean())
            executor.backward()
            for name, array in executor.arg_dict.items():
                if name.startswith("fc"):
                    array -= executor.grad_dict[name] * 0.05
        assert losses[-1] < losses[0] / 2
        return executor.arg_dict["fc1_weight"].asnumpy()

    np.testing.assert_allclose(
        trained(lambda net: sym.Custom(data=net, name="softmax", op_type="test_softmax")),
        trained(lambda net: sym.SoftmaxOutput(data=net, name="softmax")), rtol=1e-4, atol=1e-5)


# ----------------------------------------------------------------------------------------- arguments of methods


def test_forward_and_backward_get_their_documented_arguments():
    """Arguments are passed by keyword: lists of NDArrays, requests, and inputs that may not be changed."""
    calls = []

    class Op(mx.operator.CustomOp):
        def forward(self, **given):
            calls.append(("forward", given))
            self.assign(given["out_data"][0], given["req"][0], given["in_data"][0] + given["in_data"][1])

        def backward(self, **given):
            calls.append(("backward", given))
            for i in range(2):
                self.assign(given["in_grad"][i], given["req"][i], given["out_grad"][0])

    name = registered(Op, list_arguments=lambda self: ["a", "b"], list_auxiliary_states=lambda self: ["state"],
                      infer_shape=lambda self, shapes: (shapes, shapes[:1], shapes[:1]))
    x, y, state = marked(), nd.ones((2, 3)), nd.ones((2, 3))
    with mx.cpu(1), autograd.record(train_mode=False):
        z = nd.Custom(x, y, state, op_type=name)
    z.backward()
    (first, forward), (second, backward) = calls
    assert (first, second) == ("forward", "backward")
    assert list(forward) == ["is_train", "req", "in_data", "out_data", "aux"]
    assert list(backward) == ["req", "out_grad", "in_data", "out_data", "in_grad", "aux"]
    assert (forward["is_train"], forward["req"], backward["req"]) == (0, ["write"], ["write", "null"])
    for given in (forward, backward):
        for key, arrays in given.items():
            if key not in ("is_train", "req"):
                assert type(arrays) is list
                assert all(isinstance(array, nd.NDArray) for array in arrays)
                assert all(array.writable is (key in ("aux", "in_grad") or (key == "out_data" and given is forward))
                           for array in arrays)
    assert (x.grad.asnumpy() == 1).all()


@pytest.mark.parametrize("scope, expected", [
    (autograd.pause, False), (autograd.record, True), (lambda: autograd.record(False), False),
    (autograd.train_mode, True),
])
def test_forward_gets_the_mode_as_is_train(scope, expected):
    seen = []

    class Op(Twice):
        def forward(self, is_train, **given):
            seen.append((is_train, autograd.is_training(), autograd.is_recording(), mx.current_context()))
            super().forward(is_train, **given)

    name = registered(Op)
    with mx.cpu(2), scope():
        nd.Custom(nd.ones(1, ctx=mx.cpu(1)), op_type=name)
    assert seen == [(expected, expected, False, mx.cpu(1))]


def test_backward_gets_the_requests_of_the_graph():
    seen = []

    class Op(Twice):
        def backward(self, req, **given):
            seen.append(req)
            super().backward(req, **given)

    net = sym.Custom(sym.Variable("a"), sym.Variable("b"), sym.Variable("c"), name="node",
                     op_type=registered(Op, list_arguments=lambda self: ["a", "b", "c"]))
    executor = net.simple_bind(mx.cpu(), {"a": "write", "b": "null", "c": "add"}, a=(2,), b=(2,), c=(2,))
    for _ in range(3):
        executor.forward(is_train=True)
        executor.backward(nd.ones(2))
    assert seen == [["write", "null", "add"]] * 3
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 2]
    assert executor.grad_dict["c"].asnumpy().tolist() == [6, 6]


def test_gradients_of_repeated_inputs_are_summed():
    name = registered(list_arguments=lambda self: ["a", "b"])
    x = marked(req="add")
    with autograd.record():
        y = nd.Custom(x, x, op_type=name)
    y.backward()
    assert (x.grad.asnumpy() == 4).all()


def test_create_operator_gets_context_shapes_and_dtypes_once():
    """An eager call and an executor create an operator once, with context, shapes and dtypes of all inputs, states
    included."""
    seen = []

    def create(self, ctx, shapes, dtypes):
        seen.append((ctx, shapes, dtypes))
        return Twice()

    name = registered(create_operator=create, list_arguments=lambda self: ["a", "b"],
                      list_auxiliary_states=lambda self: ["s"],
                      infer_shape=lambda self, shapes: (shapes, shapes[:1], shapes[:1]),
                      infer_type=lambda self, types: (types, types[:1], ["int32"]))
    x = marked()
    state = nd.zeros((2, 3), dtype="int32")
    with autograd.record():
        y = nd.Custom(x, nd.ones(4, dtype="float64"), state, op_type=name)
    y.backward()
    assert len(seen) == 1
    ((ctx, shapes, dtypes),) = seen
    assert (ctx, shapes) == (mx.cpu(), [[2, 3], [4], [2, 3]])
    for expected in ([0, 1, 4], ["float32", "float64", "int32"], [np.float32, np.float64, np.int32]):
        assert dtypes == expected
    assert np.dtype(dtypes[2]) == np.zeros(1, dtypes[2].dtype).dtype == np.int32
    nd.Custom(x, nd.ones(4, dtype="float64"), state, op_type=name)
    assert len(seen) == 2
    net = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type=name, name="node")
    executor = net.simple_bind(mx.cpu(), {"a": "write"}, a=(2, 3), b=(4,), type_dict={"b": "float64"})
    for is_train in (False, True, False):
        executor.forward(is_train=is_train)
    executor.backward(nd.ones((2, 3)))
    assert len(seen) == 3


def test_state_survives_between_forwards():
    class Counter(mx.operator.CustomOp):
        count = 0

        def forward(self, is_train, req, in_data, out_data, aux):
            self.count += 1
            self.assign(out_data[0], req[0], self.count)

    executor = sym.Custom(sym.Variable("x"), op_type=registered(Counter)).simple_bind(mx.cpu(), x=(1,))
    assert [executor.forward(is_train=train)[0].asscalar() for train in (False, True, False)] == [1, 2, 3]
    assert eagerly(registered(Counter), nd.ones(1)).asscalar() == 1


def test_forward_changes_auxiliary_states():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            aux[0][:] = aux[0] + 1
            self.assign(out_data[0], req[0], in_data[0] + aux[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * aux[0])

    name = registered(Op, list_auxiliary_states=lambda self: ["count"],
                      infer_shape=lambda self, shapes: (shapes, shapes, shapes))
    state, x = nd.zeros((2, 3)), marked()
    with autograd.record():
        y = nd.Custom(x, state, op_type=name)
    y.backward()
    np.testing.assert_array_equal(y.asnumpy(), X + 1)
    assert (state.asnumpy() == 1).all()
    assert (x.grad.asnumpy() == 1).all()
    net = sym.Custom(sym.Variable("x"), op_type=name, name="node")
    assert net.list_auxiliary_states() == ["node_count"]
    executor = net.simple_bind(mx.cpu(), x=(2, 3))
    executor.forward(is_train=True)
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    assert (executor.aux_dict["node_count"].asnumpy() == 2).all()
    assert (executor.grad_dict["x"].asnumpy() == 2).all()


class Split(mx.operator.CustomOp):
    """The sum and the difference of two inputs."""

    def forward(self, is_train, req, in_data, out_data, aux):
        a, b = in_data
        self.assign(out_data[0], req[0], a + b)
        self.assign(out_data[1], req[1], a - b)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        s, d = out_grad
        self.assign(in_grad[0], req[0], s + d)
        self.assign(in_grad[1], req[1], s - d)


SPLIT = registered(Split, list_arguments=lambda self: ["a", "b"], list_outputs=lambda self: ["sum", "difference"])


def test_several_outputs_have_gradients():
    x, y = marked(), marked(X + 1)
    with autograd.record():
        both = nd.Custom(x, y, op_type=SPLIT)
        z = both[0] * 3 + both[1]
    assert isinstance(both, list)
    z.backward()
    assert (x.grad.asnumpy() == 4).all()
    assert (y.grad.asnumpy() == 2).all()
    with autograd.record():
        total, _ = nd.Custom(x, y, op_type=SPLIT)
    total.backward()
    assert (y.grad.asnumpy() == 1).all()
    net = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type=SPLIT, name="node")
    assert net.list_outputs() == ["node_sum", "node_difference"]
    executor = (net[0] * 3 + net[1]).simple_bind(mx.cpu(), a=(2, 3), b=(2, 3))
    executor.forward(is_train=True, a=x, b=y)
    executor.backward(nd.ones((2, 3)))
    assert (executor.grad_dict["a"].asnumpy() == 4).all()
    assert (executor.grad_dict["b"].asnumpy() == 2).all()
    outs = [nd.zeros((2, 3)), nd.zeros((2, 3))]
    assert nd.Custom(x, y, op_type=SPLIT, out=outs, name="n") is outs
    assert (outs[1].asnumpy() == -1).all()


# ------------------------------------------------------------------------------------------- dependencies


class Asks(Twice):
    """An operator whose backward passes its arguments to a function of a test."""

    touch = staticmethod(lambda given: None)

    def backward(self, **given):
        type(self).touch(given)
        for dst, request in zip(given["in_grad"], given["req"]):
            self.assign(dst, request, 7)


@BOTH
@pytest.mark.parametrize("touch", [
    lambda given: given["out_grad"][0].asnumpy(), lambda given: given["out_grad"][0] * 2,
    lambda given: 2 * given["out_grad"][0], lambda given: given["out_grad"][0][:],
    lambda given: given["out_data"][0] + 1,
    lambda given: np.asarray(given["out_data"][0]),
])
def test_errors_of_undeclared_arrays_explain_themselves(run, touch):
    op = type("Op", (Asks,), {"touch": staticmethod(touch)})
    name = registered(op, declare_backward_dependency=lambda self, og, ins, outs: ins)
    with pytest.raises(OpError, match=r"out_(grad|data)\[0\] is not available in backward: .*declare_backward"
                       ) as raised:
        gradient_of(run, name)
    assert raised.value.__notes__[0].endswith("given in_data (2, 3) float32; in_grad (2, 3) float32")
    untouched()


def gradient_of(run, name):
    if run is eagerly:
        x = marked()
        with autograd.record():
            y = nd.Custom(x, op_type=name)
        y.backward()
        return x.grad
    executor = sym.Custom(sym.Variable("x"), op_type=name, name="node").simple_bind(mx.cpu(), x=(2, 3))
    executor.forward(is_train=True)
    executor.backward(nd.ones((2, 3)))
    return executor.grad_dict["x"]


@BOTH
def test_undeclared_arrays_have_no_shape(run):
    seen = []
    op = type("Op", (Asks,), {"touch": staticmethod(lambda given: seen.append(given["out_grad"][0]))})
    name = registered(op, declare_backward_dependency=lambda self, og, ins, outs: [])
    assert (gradient_of(run, name).asnumpy() == 7).all()
    assert (seen[0].shape, seen[0].dtype) == ((), None)


@BOTH
def test_backward_may_read_the_output_alone(run):
    """The input's memory belongs to another array by then, but its shape is known."""

    class Tanh(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], nd.tanh(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * (1 - out_data[0] ** 2))

    name = registered(Tanh, declare_backward_dependency=lambda self, og, ins, outs: [*og, *outs])
    np.testing.assert_allclose(gradient_of(run, name).asnumpy(), 1 - np.tanh(X if run is eagerly else 0 * X) ** 2,
                               rtol=1e-4, atol=1e-6)


def test_arrays_that_backward_does_not_read_are_not_kept():
    def held(**methods):
        net, name = sym.Variable("x"), registered(**methods)
        for _ in range(4):
            net = sym.Custom(sym.tanh(net * 2), op_type=name)
        return net.simple_bind(mx.cpu(), x=(1000,)).plan(True).nbytes

    assert held(declare_backward_dependency=lambda self, og, ins, outs: og) < held()


def test_dependencies_are_an_operators_own():
    """A call of an operator with an output gradient does not change the setting of an operator without one."""
    loss = registered(type("Op", (Asks,), {}), __init__=lambda self: mx.operator.CustomOpProp.__init__(self, False))
    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type=loss)
        nd.Custom(nd.ones(1), op_type=NAME)
    sym.Custom(sym.Variable("z"), op_type=NAME)
    y.backward()
    assert (x.grad.asnumpy() == 7).all()


def test_unwritten_gradients_are_zeros():
    class Op(Twice):
        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    name = registered(Op, list_arguments=lambda self: ["data", "label"])
    x, label = marked(), marked()
    label.grad[:] = 5
    with autograd.record():
        y = nd.Custom(x, label, op_type=name)
    y.backward()
    assert not label.grad.asnumpy().any()
    executor = sym.Custom(sym.Variable("data"), op_type=name, name="n").simple_bind(mx.cpu(), data=(2,), n_label=(2,))
    executor.grad_dict["n_label"][:] = 5
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(nd.ones(2))
        assert not executor.grad_dict["n_label"].asnumpy().any()


# ------------------------------------------------------------------------------------------------- keywords


def prop_of(init) -> str:
    return registered(__init__=init)


def test_keywords_without_annotation_are_text():
    """An attribute without annotation is given as text, as in MXNet."""
    seen = {}

    def init(self, a, b=2, **more):
        mx.operator.CustomOpProp.__init__(self)
        seen.update(a=a, b=b, **more)

    name = prop_of(init)
    eagerly(name, nd.ones(1), a=True, c=(1, 2), d=None, e=1.5, f="x", g=["y", ("z",)])
    assert seen == {"a": "True", "b": 2, "c": "(1, 2)", "d": "None", "e": "1.5", "f": "x", "g": "['y', ('z',)]"}
    with mx.AttrScope(ctx_group="dev1", __foo__="bar"):
        sym.Custom(sym.Variable("x"), op_type=name, a=1, lr_mult=2)
    assert {key: value for key, value in seen.items() if key.startswith("_")} == {
        "__ctx_group__": "dev1", "__foo__": "bar", "__lr_mult__": "2"}


class Typed(mx.operator.CustomOpProp):
    def __init__(self, a: int, b: float = 0.5, c: bool = False, d: tuple[int, ...] = (), e: Literal["x", "y"] = "x",
                 f: Optional[int] = None, g: "Hidden" = "g", h="h", i: "int | None" = None):  # noqa: F821, UP037, UP045
        super().__init__()
        TYPED.append((a, b, c, d, e, f, g, h, i))

    def create_operator(self, ctx, shapes, dtypes):
        return Twice()


TYPED: list = []
mx.operator.register("test_typed")(Typed)


@BOTH
def test_keywords_with_annotations_have_their_types(run):
    expected = (3, 2.0, True, (1, 2), "y", 4, "5", "6", 7)
    run("test_typed", nd.ones(1), a=3, b=2, c=True, d=(1, 2), e="y", f=4, g=5, h=6, i=7)
    assert TYPED[-1] == expected
    assert [type(value) for value in TYPED[-1]] == [type(value) for value in expected]
    run("test_typed", nd.ones(1), a="3", b="2", c="True", d="(1, 2)", e="y", f="4", g="5", h="6", i="7")
    assert TYPED[-1] == expected
    run("test_typed", nd.ones(1), a=3)
    assert TYPED[-1] == (3, 0.5, False, (), "x", None, "g", "h", None)


def test_keywords_survive_files():
    net = sym.Custom(sym.Variable("x"), op_type="test_typed", name="node", a=3, d=(1, 2), c=True)
    again = sym.load_json(net.tojson())
    assert TYPED[-1][:4] == (3, 0.5, True, (1, 2))
    assert again.attr("d") == "(1, 2)"
    assert again.eval(x=nd.ones(1))[0].asscalar() == 2


WRONG_KEYWORDS = [
    ({}, ArgumentError, r"Typed\(\) needs the keyword 'a'"),
    ({"a": 1, "bb": 2}, ArgumentError, r"Typed\(\) takes no keyword 'bb'. .*Valid: a, b, c"),
    ({"a": "x"}, AttrError, "attribute a: expected int, got 'x'"), ({"a": 1, "c": "TRUE"}, AttrError, "attribute c"),
    ({"a": 1, "e": "z"}, AttrError, "'x', 'y', got 'z'"), ({"a": 1.5}, AttrError, r"expected int, got 1\.5"),
]


@BOTH
@pytest.mark.parametrize("keywords, kind, words", WRONG_KEYWORDS)
def test_wrong_keywords_of_a_prop_are_refused(run, keywords, kind, words):
    with pytest.raises(kind, match=words) as caught:
        run("test_typed", nd.ones(1), **keywords)
    assert isinstance(caught.value, (TypeError, ValueError))
    assert "test_typed" in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))


def test_dunder_attributes_are_passed_only_to_props_that_take_them():
    with mx.AttrScope(ctx_group="dev1", __lr_mult__="2"):
        net = sym.Custom(sym.Variable("x"), op_type=NAME)
    assert net.attr("ctx_group") == "dev1"
    assert net.eval(x=nd.ones(1))[0].asscalar() == 2
    assert nd.Custom(nd.ones(1), op_type=NAME, __lr_mult__="2").asscalar() == 2


INPUTS = [
    (lambda: nd.Custom(op_type=NAME), r"expected 1 input \(data\), got 0"),
    (lambda: nd.Custom(nd.ones(1), nd.ones(1), op_type=NAME), r"expected 1 input \(data\), got 2"),
    (lambda: nd.Custom(nd.ones(1), data=nd.ones(1), op_type=NAME), "input data is given twice"),
    (lambda: nd.Custom(x=nd.ones(1), op_type=NAME), r"expected inputs data; there is no input 'x'$"),
    (lambda: nd.Custom(daat=nd.ones(1), op_type=NAME), "there is no input 'daat'. Did you mean 'data'"),
    (lambda: nd.Custom(5, op_type=NAME), "input data must be an array or symbol, got int"),
    (lambda: nd.Custom(nd.ones(1)), r"op_type is required: .*, as in Custom\(x, op_type='name'\)"),
    (lambda: sym.Custom(sym.Variable("x"), sym.Variable("y"), op_type=NAME), "got 2"),
    (lambda: sym.Custom(sym.Variable("x"), data=sym.Variable("y"), op_type=NAME), "input data is given twice"),
    (lambda: sym.Custom(daat=sym.Variable("x"), op_type=NAME), "there is no input 'daat'. Did you mean 'data'"),
]


@of_each(INPUTS)
def test_wrong_inputs_of_a_prop_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_inputs_by_name():
    np.testing.assert_array_equal(nd.Custom(data=nd.array(X), op_type=NAME).asnumpy(), 2 * X)
    np.testing.assert_array_equal(getattr(nd.custom, NAME)(nd.array(X)).asnumpy(), 2 * X)
    np.testing.assert_array_equal(nd.Custom(X, op_type=NAME).asnumpy(), 2 * X)
    net = getattr(sym.custom, NAME)(data=sym.Variable("x"))
    assert net.name.startswith("custom")
    assert sym.Custom(op_type=NAME, name="node").list_arguments() == ["node_data"]


UNKNOWN = [
    ("test_softmx", r"no custom operator 'test_softmx'\. Did you mean 'test_softmax'"),
    (Twice, r"op_type is the name an operator was registered by, got <class '.*\.Twice'>"),
    (Twice(), "op_type is the name an operator was registered by, got <.*Twice object"),
]


@pytest.mark.parametrize("make", [lambda name: nd.Custom(nd.ones(1), op_type=name),
                                  lambda name: sym.Custom(op_type=name)])
@pytest.mark.parametrize("name, words", UNKNOWN)
def test_unknown_operators_are_named_with_the_nearest(make, name, words):
    with pytest.raises(UnknownOperatorError, match=words):
        make(name)


def test_arrays_are_no_keywords():
    def init(self, k):
        mx.operator.CustomOpProp.__init__(self)

    name = registered(__init__=init)
    for call, kind in ((lambda: nd.Custom(nd.ones(1), op_type=name, k=nd.ones(2)), "NDArray"),
                       (lambda: sym.Custom(sym.Variable("x"), op_type=name, k=sym.Variable("y")), "Symbol")):
        with pytest.raises(ArgumentError, match=rf"operator '{name}': the keyword 'k' is an attribute of TestProp, got "
                                                rf"{kind}; inputs are those that list_arguments names"):
            call()


# ------------------------------------------------------------------------------------------------ inference


def test_shapes_are_inferred_backwards():
    def infer_shape(self, shapes):
        out = shapes[0] or [4, 5]
        return [out, [out[1]]], [out], []

    name = registered(list_arguments=lambda self: ["a", "b"], infer_shape=infer_shape)
    net = sym.Custom(sym.Variable("a"), sym.Variable("b"), op_type=name)
    assert net.infer_shape() == ([(4, 5), (5,)], [(4, 5)], [])
    assert net.infer_shape(a=(2, 3)) == ([(2, 3), (3,)], [(2, 3)], [])


def test_inference_methods_get_lists_of_shapes_and_dtypes():
    seen = []
    name = registered(infer_shape=lambda self, shapes: (seen.append(shapes), (shapes, shapes, []))[1],
                      infer_type=lambda self, types: (seen.append(types), (types, types, []))[1])
    eagerly(name, nd.zeros((2, 3), dtype="float64"))
    assert seen == [[[2, 3]], [np.float64]]
    assert type(seen[0][0][0]) is int


TYPES = [np.float64, np.dtype("float64"), "float64", 1]


@BOTH
@pytest.mark.parametrize("answer", TYPES)
def test_dtypes_may_be_declared_in_any_form(run, answer):
    name = registered(infer_type=lambda self, types: (types, [answer], []))
    assert run(name, nd.ones(2)).dtype is np.float64


def test_a_prop_may_declare_dtypes_of_unknown_inputs():
    """A Prop may declare the dtypes of inputs that are otherwise unknown, as in MXNet."""
    name = registered(list_arguments=lambda self: ["data", "index"], infer_shape=lambda self, s: (s, s[:1]),
                      infer_type=lambda self, types: ([types[0], np.int32], [np.float16], []))
    net = sym.Custom(sym.Variable("x"), sym.Variable("y"), op_type=name)
    assert net.infer_type() == ([np.float32, np.int32], [np.float16], [])
    assert net.infer_type(x=np.float64) == ([np.float64, np.int32], [np.float16], [])
    assert net.simple_bind(mx.cpu(), x=(2,), y=(3,)).arg_dict["y"].dtype is np.int32


@pytest.mark.parametrize("methods", [{}, {"traced": True}, {"list_arguments": lambda self: ["data", "other"]}])
def test_default_inference_goes_backwards(methods):
    inputs = [sym.var("x"), *[sym.var("z", shape=(2,), dtype="float16")] * ("list_arguments" in methods)]
    net = sym.Custom(sym.Custom(*inputs, op_type=registered(**methods)), op_type=registered())
    symbol = net + sym.var("y", shape=(2, 3), dtype="float16")
    assert symbol.infer_shape_partial()[0][0] == (2, 3)
    assert symbol.infer_type_partial()[0][0] == np.float16
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", x=(2, 3))
    assert {array.dtype for array in executor.arg_arrays} == {np.float16}


def test_default_inference_takes_the_spec_of_the_first_input():
    prop = mx.operator.CustomOpProp()
    assert prop.infer_shape([[2, 3]]) == ([[2, 3]], ([2, 3],), ())
    assert prop.infer_type([np.float32]) == ([np.float32], [np.float32], [])
    assert (prop.list_arguments(), prop.list_outputs(), prop.list_auxiliary_states()) == (["data"], ["output"], [])
    assert prop.declare_backward_dependency([0], [1], [2]) == [0, 1, 2]
    assert mx.operator.CustomOpProp(need_top_grad=False).declare_backward_dependency([0], [1], [2]) == [1, 2]
    assert prop.infer_storage_type(["default"]) == (["default"], ["default"], [])
    assert prop.infer_storage_type_backward(["default"], ["default"], ["default"], [None], [])[3] == ["default"]
    assert isinstance(prop.create_operator(mx.cpu(), [], []), mx.operator.CustomOp)


BAD_PROPS = [
    (dict(list_arguments=lambda self: "data"), ArgumentError, "list_arguments returned 'data', expected a list"),
    (dict(list_outputs=lambda self: [1]), ArgumentError, "list_outputs returned"),
    (dict(list_arguments=lambda self: ["a", "a"]), ArgumentError, "has a name twice"),
    (dict(list_auxiliary_states=lambda self: ["data"]), ArgumentError,
     r"list_arguments and list_auxiliary_states returned \('data', 'data'\), which has a name twice"),
    (dict(infer_shape=lambda self, s: None), ArgumentError, "infer_shape returned None, expected 2 or 3 lists"),
    (dict(infer_shape=lambda self, s: (s, 5)), ArgumentError, "expected 2 or 3 lists"),
    (dict(infer_shape=lambda self, s: (s, [s[0], s[0]])), ArgumentError, r"2 entries for its outputs, expected 1 \("),
    (dict(infer_shape=lambda self, s: (s, [5])), ArgumentError, r"lists of shapes: return \[\[2, 3\]\], \[\[5\]\]"),
    (dict(infer_shape=lambda self, s: (s, [2.5])), ArgumentError, "returned the shape 2.5, expected a tuple or list"),
    (dict(infer_shape=lambda self, s: (s, [(2.5,)])), ArgumentError, r"returned the shape \(2\.5,\)"),
    (dict(infer_shape=lambda self, s: ([[9, 9]], [s[0]])), ShapeError, r"data: expected shape \(9, 9\), got \(2, 3\)"),
    (dict(infer_type=lambda self, t: (t, ["foo"])), DTypeError, "foo"),
    (dict(infer_type=lambda self, t: (["int32"], t)), DTypeError, "data: expected dtype int32, got float32"),
    (dict(create_operator=lambda self, *_: None), ArgumentError, "create_operator returned None, expected a CustomOp"),
]


@BOTH
@pytest.mark.parametrize("methods, kind, words", BAD_PROPS)
def test_wrong_answers_of_a_prop_are_refused(run, methods, kind, words):
    with pytest.raises(kind, match=words):
        run(registered(**methods), nd.array(X))
    untouched()


@pytest.mark.parametrize("answer", [[99], None, ["data"]])
def test_wrong_backward_dependencies_are_refused(answer):
    name = registered(declare_backward_dependency=lambda self, *_: answer)
    with pytest.raises(ArgumentError, match=r"declare_backward_dependency returned .*, expected a list of numbers"):
        gradient_of(eagerly, name)


# ------------------------------------------------------------------------------------------- exceptions


class Mine(Exception):
    """An exception class of the user."""


def raising(*_, **__):
    raise Mine("my words")


PLACES = ["__init__", "list_arguments", "list_outputs", "list_auxiliary_states", "infer_shape", "infer_type",
          "create_operator", "forward", "backward", "declare_backward_dependency", "gradient"]


@BOTH
@pytest.mark.parametrize("place", PLACES)
def test_exceptions_keep_their_type(run, place):
    """The exception is raised at once, unchanged, and in every call; its notes name the operator. Later calls work."""
    if place in ("forward", "backward"):
        name = registered(type("Op", (Twice,), {place: raising}))
    else:
        name = registered(**{place: raising})
    for _ in range(2):
        with pytest.raises(Mine, match="my words") as caught:
            gradient_of(run, name)
        assert (type(caught.value), caught.value.args) == (Mine, ("my words",))
        notes = "\n".join(caught.value.__notes__)
        assert name in notes
        assert place in notes or (place == "__init__" and "making a TestProp" in notes)
        untouched()


def test_an_exception_has_a_note_with_the_node():
    name = registered(type("Op", (Twice,), {"forward": raising}))
    net = sym.Custom(sym.Variable("x") * 2, op_type=name, name="mynode") + 1
    executor = net.simple_bind(mx.cpu(), x=(2, 3))
    with pytest.raises(Mine) as caught:
        executor.forward()
    notes = "\n".join(caught.value.__notes__)
    for words in (f"operator custom.{name}", "'mynode'", "step 1 of 3", "in_data (2, 3) float32",
                  "out_data (2, 3) float32", f"made at {__file__}:"):
        assert words in notes


def test_an_exception_has_a_note_with_the_call():
    name = registered(type("Op", (Twice,), {"backward": raising}))
    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type=name)
    with pytest.raises(Mine) as caught:
        y.backward()
    notes = "\n".join(caught.value.__notes__)
    for words in (f"Op.backward of operator '{name}'", "out_grad (2, 3) float32", f"recorded at {__file__}:"):
        assert words in notes


def wrong(**methods):
    return type("Op", (Twice,), methods)


def doing(statement):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 0)
        statement(self, in_data, out_data, req)

    return wrong(forward=forward)


WRONG_OPERATORS = [
    (wrong(forward=lambda self, **_: None), OpError, "never wrote 'output', which was requested. Write self.assign"),
    (wrong(forward=lambda self, **given: given["in_data"][0] * 2), OpError,
     "requested; the NDArray that it returned is ignored. Write self.assign"),
    (doing(lambda self, ins, outs, req: outs.__setitem__(0, ins[0] * 2)), OpError, "replaced an array in the list "
                                                                                   "out_d"),
    (doing(lambda self, ins, outs, req: outs.append(0)), OpError, "replaced an array in the list out_data"),
    (doing(lambda self, ins, outs, req: self.assign(outs[0], "wirte", 0)), ArgumentError,
     "unknown request 'wirte'. Did you mean 'write'\\? Valid: null, write, inplace, add."),
    (doing(lambda self, ins, outs, req: self.assign(outs[0], "write", nd.ones((3, 3)))), ShapeError,
     r"assign: expected shape \(2, 3\), got \(3, 3\)"),
    (doing(lambda self, ins, outs, req: self.assign(outs[0], "write", "x")), ValueError, "x"),
    (doing(lambda self, ins, outs, req: self.assign(outs[0], "write", None)), ArgumentError,
     "assign: expected an array or a number, got None"),
    (doing(lambda self, ins, outs, req: self.assign(outs[0], "add", None)), ArgumentError,
     "assign: expected an array or a number, got None"),
    (doing(lambda self, ins, outs, req: self.assign(ins[0], "write", 0)), OpError, "read-only"),
    (doing(lambda self, ins, outs, req: self.assign(ins[0], "add", 0)), OpError, "read-only"),
    (doing(lambda self, ins, outs, req: ins[0].__setitem__(slice(None), 0)), OpError, "read-only"),
    (doing(lambda self, ins, outs, req: ins[0][0].__setitem__(0, 0)), OpError, "read-only"),
    (doing(lambda self, ins, outs, req: ins[0].reshape((6,)).__iadd__(1)), OpError, "read-only"),
    (doing(lambda self, ins, outs, req: nd.relu(ins[0], out=ins[0])), OpError, "read-only"),
    (wrong(forward=lambda self, train, data: None), TypeError, r"Op\.forward of operator '.*' takes \(train, data\); "
     "it is called by keyword, so its parameters must be named is_train, req, in_data, out_data, aux"),
]


@BOTH
@pytest.mark.parametrize("operator, kind, words", WRONG_OPERATORS)
def test_wrong_results_of_create_operator_are_refused(run, operator, kind, words):
    x = nd.array(X)
    for _ in range(2):
        with pytest.raises(kind, match=words):
            run(registered(operator), x)
    np.testing.assert_array_equal(x.asnumpy(), X)
    untouched()


def test_assign_follows_the_request():
    op, dst = mx.operator.CustomOp(), nd.ones((2, 3))
    for req, src, expected in (("null", 5, 1), ("write", 5, 5), ("add", 2, 7), ("inplace", nd.ones((2, 3)), 1),
                               ("add", np.full((1, 3), 2.0), 3), ("write", [4, 4, 4], 4), ("write", nd.ones(3), 1)):
        op.assign(dst, req, src)
        assert (dst.asnumpy() == expected).all(), req
    raw = np.zeros(2)
    op.assign(raw, "write", 3)
    op.assign(raw, "add", np.ones(2))
    assert raw.tolist() == [4, 4]


# -------------------------------------------------------------------------------------- nesting, threads, fork


class Nested(mx.operator.CustomOp):
    """An operator that calls another custom operator, and records a gradient, in forward."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].copy()
        x.attach_grad()
        with autograd.record():
            y = nd.Custom(x, op_type=NAME) * x
        y.backward()
        self.assign(out_data[0], req[0], x.grad)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], nd.Custom(out_grad[0], op_type=NAME) * 2)


@BOTH
def test_an_operator_may_call_operators(run):
    name = registered(Nested)
    np.testing.assert_array_equal(run(name, nd.array(X)).asnumpy(), 4 * X)
    assert (gradient_of(run, name).asnumpy() == 4).all()
    untouched()


def test_a_custom_operator_runs_in_the_callers_thread():
    seen = []

    class Op(Twice):
        def forward(self, **given):
            seen.append(threading.current_thread())
            super().forward(**given)

    name = registered(Op)
    eagerly(name, nd.ones(1))
    in_a_graph(name, nd.ones(1))
    assert seen == [threading.current_thread()] * 2


def test_threads_call_custom_operators_at_the_same_time():
    """Several threads make eager calls and run executors of their own at the same time."""
    wrong_ones: list = []

    def work(number):
        try:
            with mx.cpu(number):
                executor = sym.Custom(sym.Variable("x"), op_type=NAME).simple_bind(mx.cpu(number), x=(2, 3))
                for _ in range(20):
                    x = nd.full((2, 3), number)
                    x.attach_grad()
                    with autograd.record():
                        y = nd.Custom(x, op_type=NAME)
                    y.backward()
                    z = executor.forward(is_train=True, x=x)[0]
                    executor.backward(x)
                    assert (y.asnumpy() == z.asnumpy()).all()
                    assert (z.asnumpy() == 2 * number).all()
                    assert (executor.grad_dict["x"].asnumpy() == 2 * number).all()
                    assert y.context is mx.current_context() is mx.cpu(number)
        except BaseException as error:
            wrong_ones.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong_ones == []
    untouched()


def _in_a_child(queue):
    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type=NAME)
    y.backward()
    queue.put((y.asnumpy(), x.grad.asnumpy(), in_a_graph(NAME, x).asnumpy()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_process_calls_custom_operators():
    eagerly(NAME, nd.ones(1))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads of the test runner
        child = context.Process(target=_in_a_child, args=(queue,))
        child.start()
    y, g, z = queue.get()
    child.join()
    assert child.exitcode == 0
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(z, 2 * X)
    assert (g == 2).all()


def test_nothing_of_a_call_stays_alive():
    """Operators, Props, arrays and executors are freed with their last reference, without the cycle collector."""
    made = []

    class Op(Twice):
        def __init__(self):
            made.append(weakref.ref(self))

    def init(self):
        mx.operator.CustomOpProp.__init__(self)
        made.append(weakref.ref(self))

    name = registered(Op, __init__=init)
    gc.collect()
    gc.disable()
    try:
        x = marked()
        with autograd.record():
            y = nd.Custom(x, op_type=name)
        y.backward()
        made += [weakref.ref(x), weakref.ref(y)]
        del x, y
        net = sym.Custom(sym.Variable("x"), op_type=name)
        executor = net.simple_bind(mx.cpu(), x=(2, 3))
        executor.forward(is_train=True)
        executor.backward(nd.ones((2, 3)))
        made += [weakref.ref(executor), weakref.ref(executor.arg_dict["x"])]
        del net, executor
        assert len(made) == 8
        assert [ref() for ref in made] == [None] * 8
    finally:
        gc.enable()


def test_a_replaced_operator_is_freed():
    """When a notebook's cell defines an operator again, the former function is freed, with everything that it refers
    to."""
    held = []
    for factor in (2.0, 3.0):
        @mx.operator.define(name="_example_defined_again")
        def scaled(x):
            return x * factor

        assert scaled(nd.ones((2,))).asnumpy().tolist() == [factor] * 2
        held.append(weakref.ref(scaled))
    gc.collect()
    assert held[0]() is None
    assert held[1]() is scaled


class OldTwice(mx.operator.NumpyOp):
    factor = 2

    def forward(self, in_data, out_data):
        out_data[0][:] = self.factor * in_data[0]

    def backward(self, out_grad, in_data, out_data, in_grad):
        in_grad[0][:] = self.factor * out_grad[0]


def test_operators_of_objects_are_freed_with_the_objects():
    made = []
    for _ in range(20):
        old, x = OldTwice(), marked()
        made += [weakref.ref(old), weakref.ref(old.operator)]
        with autograd.record():
            y = old(x)
        y.backward()
        net = old(data=sym.Variable("x"), name="n")
        net = sym.load_json(net.tojson())
        executor = net.simple_bind(mx.cpu(), x=(2, 3))
        executor.forward(is_train=True)
        executor.backward(nd.ones((2, 3)))
        del old, x, y
        gc.collect()
        assert made[-1]() is not None  # the symbol holds it
        del net, executor
    gc.collect()
    assert [ref() for ref in made] == [None] * 40


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda old: pickle.loads(pickle.dumps(old))])
def test_a_copy_of_an_object_has_an_operator_of_its_own(copied):
    old = OldTwice()
    assert old.operator is old.operator
    other = copied(old)
    other.factor = 3
    assert other(nd.ones((2,))).asnumpy().tolist() == [3, 3]
    assert old(nd.ones((2,))).asnumpy().tolist() == [2, 2]


# --------------------------------------------------------------------------------------------- second order


class Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[0] * 2)


def test_a_backward_in_python_is_not_differentiated_again():
    name = registered(Square)
    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type=name)
        (g,) = autograd.grad(y, x, create_graph=True)
    np.testing.assert_array_equal(g.asnumpy(), 2 * X)
    with pytest.raises(NotDifferentiableError, match=rf"'{name}'.*TestProp.*gradient\(self, g, ins, outs\)"):
        g.backward()
    net = sym.Custom(sym.Variable("x"), op_type=name).gradient(["x"])
    np.testing.assert_array_equal(net.eval(x=nd.array(X))[0].asnumpy(), 2 * X)
    with pytest.raises(NotDifferentiableError, match="gradient"):
        net.gradient(["x"])


@BOTH
def test_a_gradient_in_operators_is_differentiable_to_any_order(run):
    name = registered(Square, gradient=lambda self, g, ins, outs: g * ins[0] * 2)
    expected = [2 * X, np.full_like(X, 2)]
    if run is eagerly:
        x = marked()
        with autograd.record():
            y, found = nd.Custom(x, op_type=name), []
            for _ in expected:
                (y,) = autograd.grad(y, x, create_graph=True)
                found.append(y)
    else:
        net, found = sym.Custom(sym.Variable("x"), op_type=name), []
        for _ in expected:
            net = net.gradient(["x"])
            found.append(net.eval(x=nd.array(X))[0])
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_a_gradient_may_not_change_its_arguments():
    """A sum gives both operands the same gradient array; changing it for one would change it for the other."""

    def gradient(self, g, ins, outs):
        g *= 5
        return g

    name = registered(gradient=gradient)
    x, y = marked(), marked()
    with autograd.record():
        z = nd.Custom(x, op_type=name) + y
    with pytest.raises(OpError, match="read-only"):
        z.backward()

    class Op(Twice):
        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            out_grad[0][:] = 0

    with autograd.record():
        z = nd.Custom(x, op_type=registered(Op)) + y
    with pytest.raises(OpError, match="read-only"):
        z.backward()


def test_a_gradient_rule_returns_gradients_of_several_inputs():
    name = registered(Split, list_arguments=lambda self: ["a", "b"], list_outputs=lambda self: ["s", "d"],
                      gradient=lambda self, g, ins, outs: (g[0] + g[1], g[0] - g[1]))
    x, y = marked(), marked()
    with autograd.record():
        s, d = nd.Custom(x, y, op_type=name)
        z = s * 3 + d
    z.backward()
    assert (x.grad.asnumpy() == 4).all()
    assert (y.grad.asnumpy() == 2).all()
    short = registered(list_arguments=lambda self: ["a", "b"], gradient=lambda self, g, ins, outs: g)
    with autograd.record():
        z = nd.Custom(x, y, op_type=short)
    with pytest.raises(ArgumentError, match="gradient returned NDArray, expected 2, one for each input"):
        z.backward()


# ---------------------------------------------------------------------------------------------- registering


def test_a_name_may_be_registered_again():
    prop = type("Prop", (mx.operator.CustomOpProp,), {})
    assert mx.operator.register("test_again")(prop) is prop
    other = type("Other", (mx.operator.CustomOpProp,), {"list_arguments": lambda self: ["other"]})
    with pytest.warns(UserWarning, match="'test_again', registered at .*, is replaced"):
        mx.operator.register("test_again")(other)
    assert mx.operator.get("custom.test_again").list_arguments() == ["other"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):  # a cell run again
            mx.operator.register("test_thrice")(prop)
    for wrong_name in (None, 5, "", prop):
        with pytest.raises(TypeError, match="expected a name"):
            mx.operator.register(wrong_name)
    for wrong_class in (Twice, 5, lambda: None):
        with pytest.raises(TypeError, match="derived from CustomOpProp"):
            mx.operator.register("test_wrong")(wrong_class)


def test_the_registry_lists_operators_by_their_names():
    names = mx.operator.get_all_registered_operators()
    assert {"Convolution", "Custom"} <= set(names) and names == sorted(names)
    assert mx.operator.get_operator_arguments("Custom").names == ["data", "op_type"]
    assert not any(name.startswith("custom.") for name in names)
    assert mx.operator.get("custom.custom_op").list_arguments() == ["data"]
    arguments = mx.operator.get_operator_arguments("FullyConnected")
    assert (arguments.narg, arguments.names[:4]) == (len(arguments.types), ["data", "weight", "bias", "num_hidden"])
    assert arguments.types[:5] == ["NDArray-or-Symbol"] * 3 + ["int of at least 1, required",
                                                               "bool, optional, default=False"]
    arguments = mx.operator.get_operator_arguments("Concat")
    assert (arguments.names[0], arguments.types[0]) == ("data", "NDArray-or-Symbol[]")
    arguments = mx.operator.get_operator_arguments("Pooling")
    assert {"{'full', 'same', 'valid'}, optional, default='valid'", "int or None, optional, default=None",
            "{None, 'NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC', 'NWC'}, optional, default=None"} <= {*arguments.types}
    assert mx.operator.get_operator_arguments("test_softmax").names == ["data", "label"]
    assert mx.operator.get_operator_arguments("test_typed").names[0] == "a"
    with pytest.raises(UnknownOperatorError, match="Convolution"):
        mx.operator.get("Convolutio")


def test_a_users_name_stands_beside_the_built_in_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mx.operator.register("relu")(type("Prop", (mx.operator.CustomOpProp,), {
            "create_operator": lambda self, *_: Twice()}))
    assert nd.Custom(nd.array([-1.0]), op_type="relu").asscalar() == -2
    assert nd.custom.relu(nd.array([-1.0])).asscalar() == -2
    assert nd.relu(nd.array([-1.0])).asscalar() == 0


# ---------------------------------------------------------------------------------------------------- define


@mx.operator.define(name="test_scaled")
def scaled(x, *, by: float = 2.0):
    """A multiple of x."""
    return x * by


@scaled.grad
def scaled_grad(g, ins, outs, *, by):
    return g * by


@mx.operator.define(name="test_both", outputs=("sum", "difference"))
def both(a, b):
    assert not autograd.is_recording()
    return a + b, a - b


@both.grad
def both_grad(g, ins, outs):
    return g[0] + g[1], g[0] - g[1]


def test_a_defined_function_is_an_operator():
    assert (scaled.list_arguments(), scaled.signature.schema.names, scaled.doc) == (["x"], ("by",), "A multiple of x.")
    x = marked()
    for call in (lambda: scaled(x, by=3), lambda: nd.custom.test_scaled(x, by="3"),
                 lambda: nd.Custom(x, op_type="test_scaled", by=3), lambda: nd.custom.test_scaled(x=x, by=3.0)):
        with autograd.record():
            y = call()
        y.backward()
        np.testing.assert_array_equal(y.asnumpy(), 3 * X)
        assert (x.grad.asnumpy() == 3).all()
    with autograd.record():
        (g,) = autograd.grad(scaled(x * x), x, create_graph=True)
    g.backward()
    assert (x.grad.asnumpy() == 4).all()


def test_a_defined_operator_runs_in_graphs_and_from_files():
    net = scaled(sym.Variable("x"), by=3) + sym.custom.test_scaled(sym.Variable("y"), name="node")
    for graph in (net, sym.load_json(net.tojson())):
        assert graph.list_arguments() == ["x", "y"]
        executor = graph.simple_bind(mx.cpu(), x=(2, 3), y=(2, 3))
        (out,) = executor.forward(is_train=True, x=nd.array(X), y=nd.ones((2, 3)))
        np.testing.assert_array_equal(out.asnumpy(), 3 * X + 2)
        executor.backward(nd.ones((2, 3)))
        assert (executor.grad_dict["x"].asnumpy() == 3).all()
        assert (executor.grad_dict["y"].asnumpy() == 2).all()
    doubled = scaled(sym.Variable("x")).simple_bind(mx.cpu(), x=(2,), type_dict={"x": "float64"})
    assert doubled.forward()[0].dtype is np.float64


def test_a_defined_operator_may_have_several_outputs():
    x, y = marked(), marked()
    with autograd.record():
        s, d = both(x, y)
        z = s * 3 + d
    z.backward()
    assert (x.grad.asnumpy() == 4).all()
    assert (y.grad.asnumpy() == 2).all()
    net = both(sym.Variable("a"), sym.Variable("b"))
    assert [name.split("_")[-1] for name in net.list_outputs()] == ["sum", "difference"]
    assert net[1].eval(a=x, b=nd.ones((2, 3)))[0].asnumpy().tolist() == (X - 1).tolist()


def test_a_definition_is_run_on_zeros_in_graphs_only():
    seen = []

    @mx.operator.define(name="test_dry")
    def dry(x):
        seen.append(x.asnumpy().tolist())
        return x[0:1]

    assert dry(nd.array([5, 6])).asnumpy().tolist() == [5]
    assert seen == [[5, 6]]
    net = dry(sym.Variable("x"))
    assert net.infer_shape(x=(3,)) == ([(3,)], [(1,)], [])
    assert seen[-1] == [0, 0, 0]

    @dry.infer
    def dry_infer(x):
        return (1,)

    before = len(seen)
    assert dry(sym.Variable("x")).infer_shape(x=(4,)) == ([(4,)], [(1,)], [])
    assert len(seen) == before


def test_results_of_a_definition_share_no_memory():
    @mx.operator.define(name="test_same")
    def same(x):
        return x

    x = nd.array(X)
    y = same(x)
    y[:] = 9
    np.testing.assert_array_equal(x.asnumpy(), X)


BAD_DEFINITIONS = [
    (lambda x: None, ArgumentError, "returned None for 'output'"),
    (lambda x: (x, x), ArgumentError, r"returned 2 values, expected 1 \(output\).* define\(outputs=\[…\]\) names"),
    (lambda x: {"y": x}, ArgumentError, "returned dict for 'output', expected an array"),
    (lambda x: {1, 2}, ArgumentError, "returned set for 'output', expected an array"),
    (lambda x: "y", ArgumentError, "returned str for 'output', expected an array"),
    (lambda x: (each for each in [x]), ArgumentError, "returned generator for 'output', expected an array"),
    (lambda x: x.__iadd__(1), OpError, "read-only"), (raising, Mine, "my words"),
    (lambda x: np.zeros(2, np.complex64), DTypeError, "complex64"),
]


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function, kind, words", BAD_DEFINITIONS)
def test_wrong_results_of_a_definition_are_refused(function, kind, words, symbolic):
    name = f"test_custom_{next(_NUMBERS)}"

    def called(x):
        return function(x)

    op = mx.operator.define(called, name=name)
    with pytest.raises(kind, match=words) as caught:
        op(sym.Variable("x")).simple_bind(mx.cpu(), x=(2,)).forward() if symbolic else op(nd.ones(2))
    assert name in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    untouched()


@pytest.mark.parametrize("returned, named", [
    (lambda x: {"low": x, "high": x}, "dict"), (lambda x: (x for _ in range(2)), "generator"),
    (lambda x: x, "NDArray"),
])
def test_several_outputs_are_a_list(returned, named):
    op = mx.operator.define(lambda x: returned(x), name=f"test_custom_{next(_NUMBERS)}", outputs=["low", "high"])
    with pytest.raises(ArgumentError, match=rf"returned {named}, expected a list of 2 values \(low, high\)"):
        op(nd.ones(2))


def test_none_for_two_inputs_is_an_error_alone():
    op = mx.operator.define(lambda x, y: x * y, name=f"test_custom_{next(_NUMBERS)}")
    op.grad(forgets)
    with autograd.record():
        y = op(marked(), marked())
    with warnings.catch_warnings(action="error"), pytest.raises(ArgumentError, match="returned NoneType, expected"):
        y.backward()


def test_states_without_shapes_ask_for_infer_shape():
    @mx.operator.register("test_shapeless_state")
    class Prop(mx.operator.CustomOpProp):
        def list_auxiliary_states(self):
            return ["mean"]

    words = r"0 entries for its auxiliary states, expected 1 \(mean\): write infer_shape, whose third list has a shape"
    with pytest.raises(ArgumentError, match=words):
        sym.Custom(sym.Variable("x"), op_type="test_shapeless_state").simple_bind(mx.cpu(), x=(2,))


def test_a_gradient_of_a_prop_that_forgets_to_return():
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("test_forgetful")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

        def gradient(self, g, ins, outs):
            g * 2

    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type="test_forgetful")
    with pytest.warns(UserWarning, match=r"Prop.gradient returned None, so zeros are used\. .* return \(None,\)$"):
        y.backward()


def forgets(g, ins, outs):
    g * 2


@pytest.mark.parametrize("rule, warns", [
    (forgets, True), (lambda g, ins, outs: None, False), (lambda g, ins, outs: (None,), False),
    (lambda g, ins, outs, *, needs: g if needs[0] else None, False),
])
def test_a_gradient_rule_that_forgets_to_return(rule, warns):
    op = mx.operator.define(lambda x: x * 2, name=f"test_custom_{next(_NUMBERS)}")
    op.grad(rule)
    x = marked()
    with autograd.record():
        y = op(x)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        y.backward()
    words = (f"the gradient of operator '{op.op_type}' returned None, so zeros are used. If that is intended, return "
             "(None,)")
    assert [str(each.message) for each in said] == [words] * warns
    if warns:
        assert said[0].filename == __file__ and said[0].lineno == forgets.__code__.co_firstlineno


def pair(x, y):
    return x * y


@pytest.mark.parametrize("rule, words", [
    (lambda g, ins, outs: {"x": g, "y": g},
     r"returned dict, expected a tuple of 2, one for each input \(x, y\)"),
    (lambda g, ins, outs: (g, {1}), "of input 'y': expected an array or a number, got set"),
    (lambda g, ins, outs: (g, "g"), "of input 'y': expected an array or a number, got str"),
])
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_that_are_no_arrays(rule, words, traced):
    for i in range(70):  # more classes of errors than are cached
        as_op_error(type(f"Failure{i}", (Exception,), {})())
    op = mx.operator.define(pair, name=f"test_custom_{next(_NUMBERS)}", traced=traced)
    op.grad(rule)
    x, y = marked(), marked()
    with autograd.record():
        z = op(x, y)
    words = f"(?m)operator '{op.op_type}'.* {words}$"
    with pytest.raises(ArgumentError, match=words):
        z.backward()

    def run():
        executor = op(sym.Variable("x"), sym.Variable("y")).simple_bind(mx.cpu(), x=(2,), y=(2,))
        executor.forward(is_train=True)
        executor.backward(nd.ones((2,)))

    with pytest.raises(ArgumentError, match=words):
        run()


def test_gradients_of_a_prop_that_are_no_arrays():
    class Operator(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("test_dict_of_gradients")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Operator()

        def gradient(self, g, ins, outs):
            return {"data": g * 2}

    x = marked()
    with autograd.record():
        y = nd.Custom(x, op_type="test_dict_of_gradients")
    with pytest.raises(ArgumentError, match=r"Prop.gradient.* 'data': expected an array or a number, got dict"):
        y.backward()


@pytest.mark.parametrize("what", ["grad", "infer", "vmap", "kernel"])
def test_a_rule_with_the_name_of_its_operator(what):
    @mx.operator.define
    def triple(x):
        return x * 3

    op = triple
    attach = op.kernel("fast") if what == "kernel" else getattr(op, what)
    with pytest.raises(ArgumentError, match=r"of operator 'triple' \(.*test_custom.py:\d+\): the rule has the name "
                                            rf"of its operator and would replace it: name it triple_{what}"):
        @attach
        def triple(x, ins=None, outs=None):
            return x

    def elsewhere():
        @attach
        def triple(*given):
            return given[0]

    assert op(nd.array([2.0])).asnumpy().tolist() == [6.0]
    elsewhere()  # other modules still find the same operator by this name


def test_a_definition_that_contradicts_its_declarations_is_refused():
    @mx.operator.define(name="test_breaks")
    def breaks(x):
        return x[0:2]

    breaks.infer(lambda x: (3,))
    with pytest.raises(ShapeError, match=r"'test_breaks', output: expected shape \(3,\), the function returned \(2,\)"):
        breaks(sym.Variable("x")).simple_bind(mx.cpu(), x=(4,)).forward()


def test_a_definition_without_gradient_says_how_to_add_one():
    @mx.operator.define(name="test_bare")
    def bare(x):
        return x * 2

    x = marked()
    with autograd.record():
        y = bare(x)
    with pytest.raises(NotDifferentiableError, match=r"@test_bare.grad \(registered at .*test_custom.py"):
        y.backward()


# ------------------------------------------------------------------------------------ built-in ones as records


def test_a_built_in_operator_has_the_methods_of_a_prop():
    op = mx.operator.get("Convolution")
    attrs = dict(kernel=(3, 3), num_filter=4)
    assert op.list_arguments(**attrs) == ["data", "weight", "bias"]
    assert op.list_arguments(no_bias=True, **attrs) == ["data", "weight"]
    assert (op.list_outputs(**attrs), op.list_auxiliary_states(**attrs)) == (["output"], [])
    assert op.infer_shape([(1, 3, 8, 8), None, None], **attrs) == (
        [[1, 3, 8, 8], [4, 3, 3, 3], [4]], [[1, 4, 6, 6]], [])
    assert op.infer_type([np.float64, None, None], **attrs) == ([np.float64] * 3, [np.float64], [])
    made = op.create_operator(mx.cpu(), [[1, 3, 8, 8], [4, 3, 3, 3], [4]], ["float32"] * 3, **attrs)
    rng = np.random.default_rng(0)
    ins = [nd.array(rng.standard_normal(shape)) for shape in ((1, 3, 8, 8), (4, 3, 3, 3), (4,))]
    out, grads = nd.zeros((1, 4, 6, 6)), [nd.ones(x.shape) for x in ins]
    made.forward(is_train=True, req=["write"], in_data=ins, out_data=[out], aux=[])
    for x in ins:
        x.attach_grad()
    with autograd.record():
        expected = nd.Convolution(*ins, **attrs)
    np.testing.assert_allclose(out.asnumpy(), expected.asnumpy(), rtol=1e-5)
    head = nd.ones(out.shape) * 0.5
    expected.backward(head)
    made.backward(["write", "add", "null"], [head], ins, [out], grads, [])
    np.testing.assert_allclose(grads[0].asnumpy(), ins[0].grad.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(grads[1].asnumpy(), ins[1].grad.asnumpy() + 1, rtol=1e-5)
    assert (grads[2].asnumpy() == 1).all()


def test_a_built_in_operator_with_states_has_the_methods_of_a_prop():
    op = mx.operator.get("BatchNorm")
    assert op.list_auxiliary_states() == ["moving_mean", "moving_var"]
    made = op.create_operator(mx.cpu(), [[4, 2]] + [[2]] * 4, ["float32"] * 5, momentum=0.5)
    x = nd.array(np.random.default_rng(0).standard_normal((4, 2)))
    out, aux = nd.zeros((4, 2)), [nd.zeros(2), nd.ones(2)]
    made.forward(False, ["write"], [x, nd.ones(2), nd.zeros(2)], [out], aux)
    assert not aux[0].asnumpy().any()
    made.forward(True, ["write"], [x, nd.ones(2), nd.zeros(2)], [out], aux)
    np.testing.assert_allclose(aux[0].asnumpy(), x.asnumpy().mean(0) / 2, rtol=1e-5)
    np.testing.assert_allclose(out.asnumpy().mean(0), [0, 0], atol=1e-6)


def test_a_prop_without_outputs_runs_for_its_effect():
    seen = []

    class Watch(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            seen.append((in_data[0].asnumpy().tolist(), len(out_data)))

    name = registered(Watch, list_outputs=lambda self: [], infer_shape=lambda self, shapes: (shapes, [], []))
    assert nd.Custom(nd.array([1, 2]), op_type=name) == []
    assert seen[-1] == ([1, 2], 0)


@BOTH
def test_an_operator_without_inputs_has_the_dtype_float32(run):
    class Fives(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], 5)

    name = registered(Fives, list_arguments=lambda self: [], infer_shape=lambda self, shapes: ([], [(2,)], []))
    out = nd.Custom(op_type=name) if run is eagerly else sym.Custom(op_type=name).simple_bind(mx.cpu()).forward()[0]
    assert (out.dtype, out.asnumpy().tolist()) == (np.float32, [5, 5])
    name = registered(Fives, list_arguments=lambda self: [])
    with pytest.raises(ArgumentError, match="has no arguments, whose shape its outputs could have: write infer_shape"):
        nd.Custom(op_type=name) if run is eagerly else sym.Custom(op_type=name).simple_bind(mx.cpu())

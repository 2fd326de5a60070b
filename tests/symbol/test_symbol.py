"""Symbols: names, attributes, composition, inference, and features that programs for MXNet use."""

from __future__ import annotations

import copy
import functools
import importlib
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, AttrError, OpError, ShapeError, UnknownOperatorError

sym = mx.sym


def mlp():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
    return sym.SoftmaxOutput(sym.Activation(net, act_type="relu", name="act"), name="softmax")


# ------------------------------------------------------------------------------------------- names, lists


NAMES = [
    (lambda d: d + 1, "_plusscalar0"), (lambda d: d + d, "_plus0"), (lambda d: d * 2, "_mulscalar0"),
    (lambda d: 1 - d, "_rminusscalar0"), (lambda d: d / 2, "_divscalar0"), (lambda d: 2 / d, "_rdivscalar0"),
    (lambda d: d ** 2, "_powerscalar0"), (lambda d: -d, "_mulscalar0"), (lambda d: d > 1, "_greater_scalar0"),
    (lambda d: d == d, "_equal0"), (sym.abs, "abs0"), (lambda d: d.reshape((1, -1)), "reshape0"),
    (lambda d: sym.FullyConnected(d, num_hidden=1), "fullyconnected0"),
]


@pytest.mark.parametrize(("make", "name"), NAMES, ids=[name for _, name in NAMES])
def test_nodes_get_names_from_their_operators(make, name):
    with sym.NameManager():
        assert make(sym.Variable("d")).name == name


OPS = [(lambda d: d + 1, "_plus_scalar"), (lambda d: d + d, "elemwise_add"), (lambda d: 1 - d, "_rminus_scalar"),
       (lambda d: d ** d, "_power"), (lambda d: d % d, "_mod"), (lambda d: d > d, "_greater"),
       (lambda d: d == d, "_equal")]


@pytest.mark.parametrize(("make", "name"), OPS, ids=[name for _, name in OPS])
def test_python_operators_are_these_operators(make, name):
    node, _ = make(sym.Variable("d"))._entries[0]
    assert node.op.name == name


def test_prefix_goes_before_explicit_names_of_operators_too():
    with sym.Prefix("p_"):
        assert sym.Variable("x").name == "x"  # as in MXNet
        assert sym.relu(sym.Variable("x"), name="r").list_outputs() == ["p_r_output"]
    assert sym.Variable("x").name == "x"


def test_symbols_list_arguments_outputs_and_states():
    net = mlp()
    assert net.list_arguments() == ["data", "fc_weight", "fc_bias", "softmax_label"]
    assert net.list_outputs() == ["softmax_output"]
    assert net.list_auxiliary_states() == []
    assert net.get_internals().list_outputs() == [
        "data", "fc_weight", "fc_bias", "fc_output", "act_output", "softmax_label", "softmax_output"]
    assert net.get_children().list_outputs() == ["act_output", "softmax_label"]
    assert sym.Variable("x").get_children() is None
    assert repr(net) == "<Symbol softmax>"


def test_batch_norm_shows_one_output_and_has_auxiliary_states():
    net = sym.BatchNorm(sym.Variable("x"), name="bn")
    assert net.list_outputs() == ["bn_output"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_arguments() == ["x", "bn_gamma", "bn_beta"]
    assert net.list_inputs() == ["x", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    assert sym.BatchNorm(sym.Variable("x"), output_mean_var=True, name="bn").list_outputs() == [
        "bn_output", "bn_mean", "bn_var"]


def test_outputs_by_name_number_and_slice():
    parts = sym.SliceChannel(sym.Variable("x"), num_outputs=3, name="sp")
    assert parts.list_outputs() == ["sp_output0", "sp_output1", "sp_output2"]
    assert parts["sp_output1"].list_outputs() == ["sp_output1"]
    assert parts[-1].list_outputs() == ["sp_output2"]
    assert parts[1:].list_outputs() == ["sp_output1", "sp_output2"]
    assert [each.name for each in parts] == ["sp"] * 3
    with pytest.raises(ArgumentError, match="Did you mean 'sp_output1'"):
        parts["sp_outptu1"]
    with pytest.raises(IndexError):
        parts[3]


def test_a_group_has_the_outputs_of_its_parts():
    a, b = sym.Variable("a"), sym.Variable("b")
    both = sym.Group([a, b * 2])
    assert both.name is None
    assert repr(sym.Group([a, b])) == "<Symbol group [a, b]>"
    assert both.list_arguments() == ["a", "b"]
    with pytest.raises(TypeError, match="at least one"):
        sym.Group([])


def test_copied_and_pickled_symbols_are_equal():
    net = mlp()
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.tojson() == net.tojson()


@pytest.mark.parametrize("use", [bool, float, lambda s: s.asnumpy(), lambda s: s.__iadd__(s), hash],
                         ids=["bool", "float", "asnumpy", "iadd", "hash"])
def test_symbols_are_not_numbers(use):
    with pytest.raises(TypeError):
        use(sym.Variable("x"))


# --------------------------------------------------------------------------------------------- attributes


def test_variables_have_attributes():
    x = sym.Variable("x", shape=(0, 3), lr_mult=2.0, wd_mult=0.5, dtype="float64", __mine__="yes")
    assert x.attr("__shape__") == "(0, 3)"
    assert x.attr("lr_mult") == x.attr("__lr_mult__") == "2.0"
    assert x.attr("__dtype__") == "1"
    assert x.list_attr()["__mine__"] == "yes"
    with pytest.raises(ArgumentError, match="__mine__"):
        sym.Variable("x", mine="no")


def test_attribute_scopes_nest():
    with mx.AttrScope(ctx_group="dev1", __a__="1"), mx.AttrScope(__a__="2"):
        net = sym.relu(sym.Variable("x"), name="r")
    assert net.attr("ctx_group") == net.attr("__ctx_group__") == "dev1"
    assert net.attr_dict()["r"] == {"__ctx_group__": "dev1", "ctx_group": "dev1", "__a__": "2"}
    with pytest.raises(AttrError, match="text"):
        mx.AttrScope(ctx_group=1)


def test_scopes_hold_for_their_thread():
    """A scope or name manager holds for its own thread, until its block ends."""
    def threads(function: Callable[[], Any]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(function).result()

    def others() -> tuple[Any, ...]:
        mx.AttrScope.current = mx.AttrScope(x="there")
        mx.name.NameManager.current = mx.name.Prefix("there_")
        with mx.AttrScope(z="inner"):
            return sym.Variable("q").list_attr(), sym.Variable("q").name, mx.AttrScope.current.get({"w": "1"})

    with mx.AttrScope(a="1"), mx.name.NameManager():
        mx.AttrScope.current = mx.AttrScope(y="hi", ctx_group="far")
        mx.name.NameManager.current = mx.name.Prefix("here_")
        assert threads(others) == ({"x": "there", "z": "inner"}, "q", {"x": "there", "z": "inner", "w": "1"})
        q = sym.Variable("q")
        assert (q.name, q.attr("y"), q.attr("a"), q.attr("ctx_group")) == ("q", "hi", None, "far")
        assert mx.name.NameManager.current.get(None, "fc") == "here_fc0"
    assert threads(lambda: mx.AttrScope.current.get()) == {}
    assert sym.Variable("q").name == "q" and sym.Variable("q").list_attr() == {}


def test_users_may_derive_scopes():
    class Marked(mx.AttrScope):
        def get(self, attr):
            made = super().get(attr)
            made["mark"] = "m"
            return made

    class Upper(mx.name.NameManager):
        def get(self, name, hint):
            return super().get(name, hint).upper()

    marked = Marked(a="1")
    for _ in range(2):
        with mx.AttrScope(b="2"), marked, Upper():
            assert sym.Variable("x").list_attr() == {"a": "1", "b": "2", "mark": "m"}
            assert sym.exp(sym.Variable("x"), name="y").name == "Y"
    assert mx.AttrScope(a="1").get({}) == {"a": "1"}


def test_operators_have_attributes_as_text():
    net = sym.Convolution(sym.Variable("x"), kernel=(3, 3), num_filter=8, name="conv", attr={"__k__": "v"}, lr_mult=2)
    assert net.attr("kernel") == "(3, 3)"
    assert net.attr_dict()["conv_weight"]["num_filter"] == "8"
    assert net.attr("lr_mult") == "2"
    with pytest.raises(AttrError, match="foo"):
        sym.Convolution(sym.Variable("x"), kernel=(3, 3), num_filter=8, attr={"foo": "1"})


@pytest.mark.parametrize("make", [
    lambda x: sym.relu(x, foo=1), lambda x: x.exp(foo=1), lambda x: sym.Flatten(data=x, foo=1),
    lambda x: sym.square(x, attr={"foo": "1"}), lambda x: sym.elemwise_add(x, x, foo=1),
    lambda x: sym.gather_nd(x, x, foo=1), lambda x: sym.identity(x, foo=1)])
def test_operators_without_attributes_take_any_keyword(make):
    """The node keeps the keyword, as in MXNet, though with a warning; files have it, too."""
    with pytest.warns(UserWarning, match="has no attributes: foo is ignored"):
        net = make(sym.Variable("x"))
    assert net.list_attr() == {"foo": "1"} and net.list_arguments()[0] == "x"
    again = mx.sym.load_json(net.tojson())
    assert again.list_attr() == {"foo": "1"} and again.tojson() == net.tojson()


@pytest.mark.parametrize("make, kind, words", [
    (lambda x: sym.FullyConnected(x, num_hidden=2, foo=1), AttrError, "foo"),
    (lambda x: sym.add_n(x, x, foo=1), AttrError, "foo"), (lambda x: sym.sum(x, foo=1), AttrError, "foo"),
    (lambda x: sym.relu(x, foo=x), ArgumentError, "foo")])
def test_others_refuse_keywords_they_do_not_know(make, kind, words):
    with pytest.raises(kind, match=words):
        make(sym.Variable("x"))


def test_operators_without_inputs_take_none():
    with pytest.warns(UserWarning, match="_random_normal has no inputs: data is ignored"):
        net = sym.random.randn(2, 3, data=sym.Variable("x"))
    assert net.list_arguments() == [] and net.eval()[0].shape == (2, 3)


# -------------------------------------------------------------------------------------------- composition


def test_composition_puts_symbols_in_the_place_of_variables():
    outer = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="outer")
    inner = sym.Activation(sym.Variable("x"), act_type="tanh", name="inner")
    by_name, by_place = outer(data=inner), outer(inner)
    assert by_name.list_arguments() == by_place.list_arguments() == ["x", "outer_weight", "outer_bias"]
    assert outer.list_arguments() == ["data", "outer_weight", "outer_bias"]  # left alone
    assert outer(data=inner, name="again").list_outputs() == ["again_output"]
    with pytest.raises(TypeError):
        outer(inner, data=inner)
    with pytest.raises(TypeError):
        outer(data=3)
    with pytest.raises(ArgumentError, match="Did you mean 'data'"):
        outer(dta=inner)


def test_missing_inputs_become_variables_and_surplus_ones_are_refused():
    net = sym.FullyConnected(sym.Variable("x"), num_hidden=2, no_bias=True, name="fc")
    assert net.list_arguments() == ["x", "fc_weight"]
    with pytest.raises(ArgumentError, match="bias"):
        sym.FullyConnected(sym.Variable("x"), bias=sym.Variable("b"), num_hidden=2, no_bias=True)


# ----------------------------------------------------------------------------------------------- inference


def test_shapes_are_inferred_forwards():
    arguments, outputs, auxiliary = mlp().infer_shape(data=(2, 3))
    assert arguments == [(2, 3), (4, 3), (4,), (2,)]
    assert outputs == [(2, 4)]
    assert auxiliary == []


def test_infer_shape_takes_shapes_by_position():
    assert mlp().infer_shape((2, 3))[1] == [(2, 4)]


def test_shapes_are_inferred_backwards():
    x, y = sym.Variable("x"), sym.Variable("y")
    assert (sym.relu(x) + y).infer_shape(y=(2, 3))[0] == [(2, 3), (2, 3)]


def test_unknown_shapes_are_listed():
    with pytest.warns(UserWarning, match="data"):
        assert mlp().infer_shape() == (None, None, None)
    arguments, outputs, _ = mlp().infer_shape_partial()
    assert arguments == [(), (4, 0), (4,), ()] or arguments == [(), (), (4,), ()]
    assert outputs[0] in ((), (0, 4))


def test_an_unknown_batch_is_filled_in_from_the_label():
    x = sym.Variable("x", shape=(0, 4))
    net = sym.LinearRegressionOutput(x, sym.Variable("label"))
    assert net.infer_shape(label=(8, 4))[0] == [(8, 4), (8, 4)]


def test_a_contradiction_names_node_and_line():
    with pytest.raises(ShapeError) as caught:
        mlp().infer_shape(data=(2, 3), fc_weight=(4, 9))
    text = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "(4, 3)" in text
    assert "(4, 9)" in text
    assert "'fc'" in text
    assert "test_symbol.py" in text


@pytest.mark.parametrize(("shapes", "error"), [
    ({"data": 3}, TypeError), ({"data": "x"}, TypeError), ({"dtaa": (2, 3)}, ArgumentError),
])
def test_wrong_shapes_are_refused(shapes, error):
    with pytest.raises(error):
        mlp().infer_shape(**shapes)


def test_dtypes_are_inferred_from_inputs_and_from_outputs():
    assert mlp().infer_type(data="float64") == ([np.float64] * 4, [np.float64], [])
    assert mlp().infer_type(fc_bias=np.float16)[0][0] is np.float16
    assert mlp().infer_type()[1] == [np.float32]
    assert mlp().infer_type_partial()[1] == [None]
    x = sym.Variable("x")
    assert sym.Cast(x, dtype="int32").infer_type(x="float64")[1] == [np.int32]


# ------------------------------------------------------------------------------------------------ gradient


def test_gradient_is_a_symbol_and_differentiable_again():
    x = sym.Variable("x")
    first = (x * x * x).gradient(["x"])
    second = first.gradient(["x"])
    value = mx.nd.array([1, 2, 3])
    np.testing.assert_allclose(first.eval(x=value)[0].asnumpy(), [3, 12, 27])
    np.testing.assert_allclose(second.eval(x=value)[0].asnumpy(), [6, 12, 18])
    with pytest.raises(ArgumentError, match="no argument"):
        first.gradient(["y"])


# ------------------------------------------------------------------------------------------------ mistakes


def test_an_unknown_operator_is_named_with_the_nearest():
    with pytest.raises(UnknownOperatorError, match="Did you mean 'FullyConnected'"):
        sym.FullyConected  # noqa: B018
    with pytest.raises(UnknownOperatorError, match="no custom operator"):
        sym.Custom(sym.Variable("x"), op_type="nobody_registered_this")
    with pytest.raises(ArgumentError, match="op_type"):
        sym.Custom(sym.Variable("x"))


@pytest.mark.parametrize(("make", "words"), [
    (sym.FullyConnected, ["num_hidden", "required"]),
    (lambda x: sym.FullyConnected(x, num_hidden="x"), ["num_hidden", "int", "'x'"]),
    (lambda x: sym.Activation(x, act_type="rleu"), ["act_type", "Did you mean 'relu'"]),
    (lambda x: sym.Convolution(x, num_filter=1, kernel="wide"), ["kernel", "tuple of int"]),
    (lambda x: sym.FullyConnected(x, num_hiden=3), ["num_hiden", "Did you mean 'num_hidden'"]),
], ids=["missing", "type", "word", "kernel", "unknown"])
def test_wrong_attributes_are_refused(make, words):
    with pytest.raises(AttrError) as caught:
        make(sym.Variable("x"))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert all(word in text for word in words), text


def test_inputs_must_be_symbols_with_one_output():
    with pytest.raises(OpError):
        sym.relu(mx.nd.zeros((2,)))
    with pytest.raises(ArgumentError, match="pick one"):
        sym.relu(sym.SliceChannel(sym.Variable("x"), num_outputs=2))
    with pytest.raises(OpError, match="input"):
        sym.relu(3)


# ------------------------------------------------------------------------------------------- quicker ways


def nets():
    """Random symbols with frequent operators, and with an entry that is used twice."""
    x, row = sym.Variable("x", shape=(3, 4)), sym.Variable("row", shape=(1, 4))
    with sym.AttrScope(ctx_group="one"):
        y = functools.reduce(lambda y, i: sym.tanh(y * y) + 0.5 * y - (y if i % 2 else x), range(6), x)
    z = sym.broadcast_maximum(sym.broadcast_mul(y, row), sym.broadcast_mul(x, row))
    norm = sym.BatchNorm(sym.FullyConnected(sym.relu(z), num_hidden=5, name="fc"), name="norm")
    return {"arithmetic": y, "broadcasting": z, "twice": sym.Group([sym.sin(x), sym.sin(sym.sin(x))]),
            "no gradient": sym.floor(x) + x, "layers": sym.softmax(norm), "cast": sym.Cast(y, dtype="float16") * 2}


def test_zero_gradients_of_unreached_inputs_have_a_name():
    x, y = sym.Variable("x"), sym.Variable("y")
    found = sym.Group([x * 2, sym.BlockGrad(y, name="stopped")]).gradient(["x", "y"])
    assert [node["name"] for node in json.loads(found.tojson())["nodes"] if node["op"] == "zeros_like"] == ["gradient"]


def described(symbol):
    """Properties of all nodes, and the entries that they read."""
    nodes = symbol._graph().nodes
    place = {node: i for i, node in enumerate(nodes)}
    return [(node.op and node.op.name, node.name, node.attrs, node.keywords, node.tags, node.where,
             [(place[source], i) for source, i in node.inputs]) for node in nodes]


@pytest.mark.parametrize("name", nets())
def test_gradients_that_are_repeated_are_those_of_the_rules(name, monkeypatch):
    module = importlib.import_module("opreg.core.backward_graph")
    symbol = nets()[name]

    def both():
        first = symbol.gradient(["x"])
        return described(first), described(first.gradient(["x"]))

    quick = both()
    monkeypatch.setattr(module, "fits", lambda _: False)
    assert both() == quick


@pytest.mark.parametrize("name", nets())
def test_one_sweep_infers_the_same_as_repeated_ones(name, monkeypatch):
    module, symbol = importlib.import_module("opreg.symbol.infer"), nets()[name]

    def specs():
        executor = symbol.simple_bind(mx.cpu(), x=(3, 4), type_dict={"x": "float64"})
        return [(node.name, each.shape, each.dtype) for node, found in executor._bound.specs.items() for each in found]

    quick = specs()
    monkeypatch.setattr(module, "_forwards", lambda *_: None)
    assert sorted(specs(), key=str) == sorted(quick, key=str)


def test_binding_says_what_it_was_given_where_all_shapes_were():
    a, b = sym.Variable("a"), sym.Variable("b")
    with pytest.raises(ShapeError) as caught:
        (a + b).simple_bind(mx.cpu(), a=(2,), b=(3,))
    assert "simple_bind with a=(2,), b=(3,)" in caught.value.__notes__


@pytest.mark.parametrize("make, given, expected", [
    (lambda x: sym.FullyConnected(x, num_hidden=4, no_bias=True, name="fc"), (0, 3), ([(0, 3), (4, 3)], [(0, 4)])),
    (lambda x: sym.sum(x, axis=1), (2, 0), ([(2, 0)], [(2,)])),
    (lambda x: x + sym.Variable("y", shape=(5, 3)), (0, 3), ([(5, 3), (5, 3)], [(5, 3)])),
    (lambda x: x + sym.Variable("y", shape=(0, 3)), (0, 3), ([(0, 3), (0, 3)], [(0, 3)])),
    (lambda x: sym.relu(x), (-1, 3), (None, None)),
    (lambda x: sym.max(x, axis=0), (0, 3), (None, None)),  # an empty array has no maximum
])
def test_a_dimension_given_as_zero_is_empty_if_nothing_determines_it(make, given, expected):
    net = make(sym.Variable("x"))
    if expected[0] is None:
        with pytest.warns(UserWarning, match="cannot infer"):
            assert net.infer_shape(x=given)[:2] == expected
        return
    assert net.infer_shape(x=given)[:2] == expected
    executor = net.simple_bind(mx.cpu(), x=given)
    assert [each.shape for each in executor.forward()] == expected[1]


HINTS = [
    (lambda x: sym.exp("x"), "Variable('x') is a variable of this name"),
    (lambda x: sym.FullyConnected(data="x", num_hidden=3), "Variable"),
    (lambda x: sym.broadcast_add(x, 3), "x + 1"),
    (lambda x: sym.concat(x, np.ones(2)), "bind a Variable"),
    (lambda x: sym.Group([x, "y"]), "'y'"),
    (lambda x: x.shape, "infer_shape"),
    (lambda x: x.lst_arguments, "no attribute 'lst_arguments'"),
]


@pytest.mark.parametrize(("attempt", "words"), HINTS)
def test_errors_of_mistakes_name_a_remedy(attempt, words):
    with pytest.raises((ArgumentError, TypeError, AttributeError)) as caught:
        attempt(sym.Variable("x"))
    assert words in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_unknown_attributes_of_nodes_of_one_name_are_one_warning():
    one, other = sym.Variable("x", attr={"__a__": "1", "__b__": "1"}), sym.Variable("x", attr={"__b__": "2"})
    assert (one + other).attr_dict() == {"x": {"__a__": "1", "__b__": "2"}}


def test_a_shape_that_is_given_counts_more_than_a_declared_one():
    x = sym.Variable("x", shape=(2, 3)) + 1
    assert x.infer_shape(x=(5, 6))[1] == [(5, 6)]
    assert x.infer_shape(x=(0, 3))[1] == x.infer_shape()[1] == [(2, 3)]
    assert x.simple_bind(mx.cpu(), x=(5, 6)).forward()[0].shape == (5, 6)
    assert x.eval(x=mx.nd.ones((4, 6)))[0].shape == (4, 6)


def test_zeros_in_shapes_are_empty_dimensions_under_np_shape():
    x = sym.Variable("x")
    net = sym.sin(x) + sym.Variable("y", shape=(0, 3))
    assert net.infer_shape(x=(2, 0))[0] == [(2, 3), (2, 3)]
    with mx.np_shape():
        assert mx.is_np_shape()
        assert net.infer_shape()[1] == [(0, 3)]
        assert sym.sin(x).infer_shape(x=())[1] == [()]
        assert sym.sin(x).infer_shape_partial()[:2] == ([None], [None])
        assert sym.sin(x).infer_shape_partial(x=(-1, 3))[1] == [(-1, 3)]
        assert net.simple_bind(mx.cpu(), x=(0, 3)).forward()[0].shape == (0, 3)
        with mx.util.np_shape(False):
            assert sym.sin(x).infer_shape_partial(x=(-1, 3))[1] == [(0, 3)]
    assert not mx.is_np_shape()
    assert mx.use_np_shape(lambda: sym.sin(x).infer_shape(x=(0, 3))[1])() == [(0, 3)]
    assert mx.set_np_shape(True) is False
    assert mx.set_np_shape(False) is True


def test_attributes_of_a_node_that_are_no_text_are_written_down():
    normal = mx.init.Normal(0.5)
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc", attr={"__init__": normal, "lr_mult": 2})
    assert net.attr("__init__") == normal.dumps() and net.attr("__lr_mult__") == "2"
    for each in (sym.square(sym.var("x"), __init__=normal), sym.var("x", __init__=normal), sym.var("x", init=normal)):
        assert each.attr("__init__") == normal.dumps()
    assert sym.load_json(net.tojson()).attr("__init__") == normal.dumps()
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (300, 200))])
    module.init_params()
    assert 0.4 < module.get_params()[0]["fc_weight"].asnumpy().std() < 0.6


def test_an_attribute_that_changes_what_a_node_computes_is_refused_apart_from_its_call() -> None:
    x = sym.Variable("x")
    y = sym.FullyConnected(x, num_hidden=3, name="y")
    said = r"operator FullyConnected, node 'y': num_hidden='5' is set beside the call .* has num_hidden=3\. Call .*=5"
    with pytest.raises(mx.errors.AttrError, match=said):
        y._set_attr(num_hidden="5")
    with pytest.raises(mx.errors.AttrError, match=said), mx.AttrScope(num_hidden="5"):
        sym.FullyConnected(x, num_hidden=3, name="y")
    y._set_attr(num_hidden="3", no_bias="False", lr_mult="2")
    with mx.AttrScope(num_hidden="3", no_bias="False"):
        z = sym.FullyConnected(x, num_hidden=3, name="z")
    for net in (y, z):
        assert net.infer_shape(x=(2, 4))[1] == mx.sym.load_json(net.tojson()).infer_shape(x=(2, 4))[1] == [(2, 3)]


def test_the_error_for_an_output_that_is_not_there_lists_the_outputs():
    with pytest.raises(IndexError, match="there is no output 2; its outputs, from 0 on, are n_output0, n_output1"):
        sym.split(sym.var("x"), num_outputs=2, name="n")[2]

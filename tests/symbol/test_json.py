"""Graphs as JSON: files of Apache MXNet, invalid files, and the graphs made from them."""

from __future__ import annotations

import copy
import json
import os
import pickle
import string
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
import opreg.ndarray as nd
import opreg.symbol as sym
from opreg import operator
from opreg.core import registry
from opreg.core.placeholder import placeholder, resolve
from opreg.core.registry import ops
from opreg.errors import AttrError, DTypeError, FileFormatError, ShapeError, UnknownOperatorError
from opreg.symbol.json import VERSION, dumps, load, loads, save
from tests.questions import of_each

MODELS = Path(__file__).parent.parent / "oracle" / "models"
JSON = MODELS / "json"
ABOUT = json.loads((JSON / "about.json").read_text())
NATIVE = (JSON / "native-1.9.1-symbol.json").read_text()
GRAPH = json.loads(NATIVE)
CALM = settings(deadline=None, max_examples=60, derandomize=True)


def quiet(text, name="<text>"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loads(text, name)


def graph_of(*nodes, heads=None, version=VERSION, **extra):
    """JSON of a graph whose nodes are given as ``(op, name, inputs, attrs)``; entries are node numbers."""
    listed = [{"op": op, "name": name, "inputs": [entry if isinstance(entry, list) else [entry, 0, 0] for entry in ins],
               **({"attrs": attrs} if attrs else {})}
              for op, name, ins, attrs in [(*node, [], {})[:4] if len(node) < 4 else node for node in nodes]]
    top = {"nodes": listed, "arg_nodes": [i for i, node in enumerate(listed) if node["op"] == "null"],
           "heads": heads or [[len(listed) - 1, 0, 0]], **extra}
    if version is not None:
        top["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(top)


def placeholders(symbol):
    return [node for node in symbol._graph().nodes if placeholder(node)]


# ------------------------------------------------------------------------------------------------ MXNet's files


@pytest.mark.parametrize("path", [*sorted(MODELS.glob("[!j]*/*-symbol.json")), JSON / "native-1.9.1-symbol.json"],
                         ids=lambda path: path.stem)
def test_files_of_mxnet_are_written_again_letter_by_letter(path):
    assert dumps(load(path)) == path.read_text()


@pytest.mark.parametrize("name", ABOUT["layouts"])
def test_every_layout_has_the_recorded_lists_of_mxnet(name):
    expected = ABOUT["layouts"][name]
    symbol = quiet((JSON / name).read_text())
    assert symbol.list_arguments() == expected["arguments"]
    assert symbol.list_outputs() == expected["outputs"]
    assert symbol.list_auxiliary_states() == expected["auxiliary_states"]
    assert symbol.attr_dict() == expected["attr_dict"]
    assert not placeholders(symbol)
    assert (dumps(symbol) == NATIVE) == expected["rewritten_is_native"] or name == "short-entries-symbol.json"


def test_short_entries_are_written_in_full():
    assert dumps(load(JSON / "short-entries-symbol.json")) == NATIVE


@pytest.mark.parametrize("name", ABOUT["layouts"])
def test_every_layout_equals_the_recorded_results_of_mxnet(name):
    with np.load(JSON / "expected.npz") as arrays:
        expected = dict(arrays)
    saved = nd.load(JSON / "net-0001.params")
    symbol = quiet((JSON / name).read_text())
    args = {key[4:]: value for key, value in saved.items() if key.startswith("arg:")}
    args |= {key[3:]: nd.array(value, dtype=value.dtype) for key, value in expected.items() if key.startswith("in/")}
    aux = {key[4:]: value for key, value in saved.items() if key.startswith("aux:")}
    grads = {key: nd.zeros(value.shape) for key, value in args.items()}
    executor = symbol.bind(nd.cpu(), args, grads, "write", aux)
    found = {f"out/{i}": out.asnumpy() for i, out in enumerate(executor.forward())}
    found |= {f"train_out/{i}": out.asnumpy() for i, out in enumerate(executor.forward(is_train=True))}
    executor.backward([nd.ones(out.shape) for out in executor.outputs])
    found |= {f"grad/{key}": value.asnumpy() for key, value in grads.items()}
    found |= {f"aux_after_backward/{key}": value.asnumpy() for key, value in aux.items()}
    for key, value in expected.items():
        if not key.startswith("in/"):
            np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("version", [903, 905, VERSION])
def test_before_0_9_5_axis_minus_one_meant_all_axes(version):
    with np.load(JSON / "argmax.npz") as arrays:
        expected = dict(arrays)
    symbol = load(JSON / f"argmax-v{version}-symbol.json")
    assert symbol.attr("axis") == (None if version < 905 else "-1")
    found = symbol.eval(data=nd.array(expected["in"]))[0].asnumpy()
    np.testing.assert_array_equal(found, expected[str(version)])


@pytest.mark.parametrize("version", [None, 800])
def test_the_mode_of_softmax_was_its_type(version):
    old = graph_of(("null", "x"), ("SoftmaxActivation", "prob", [0], {"type": "channel"}), version=version)
    symbol = loads(old)
    assert symbol.infer_shape(x=(2, 3, 4, 4))[1] == [(2, 3, 4, 4)]
    assert symbol.eval(x=nd.ones((1, 2, 3, 3)))[0].asnumpy().tolist() == np.full((1, 2, 3, 3), 0.5).tolist()
    assert json.loads(dumps(symbol))["nodes"][1]["attrs"] == {"mode": "channel"}


def test_a_newer_file_loads_with_a_warning():
    with pytest.warns(UserWarning, match=r"newer-version-symbol\.json was written by version 2\.0\.0") as record:
        symbol = load(JSON / "newer-version-symbol.json")
    assert record[0].filename == __file__
    assert dumps(symbol) == NATIVE


# Graphs that MXNet loads and opreg refuses, and the reverse.
LENIENT = {("kernel", "(2,3]"): "refused", ("dtype", "2"): "taken", ("dtype", "float"): "taken"}


@pytest.mark.parametrize("case", ABOUT["spellings"], ids=lambda case: f"{case['op']}-{case['attr']}={case['value']}")
def test_attributes_are_spelled_as_in_mxnet(case):
    answer = case["mxnet"]
    count = len(answer.get("arguments", ())) or (3 if case["op"] == "FullyConnected" else 1)
    text = graph_of(*(("null", f"in{i}") for i in range(count)), (case["op"], "node", range(count), case["attrs"]))
    choice = LENIENT.get((case["attr"], case["value"]))
    if choice == "refused" or (choice is None and "error" in answer):
        with pytest.raises((AttrError, DTypeError, ShapeError), match=case["attr"]):
            loads(text, "net.json").infer_shape(in0=(2, 3, 2, 4))
    else:
        arguments, outputs, _ = loads(text).infer_shape(in0=(2, 3, 2, 4))
        if choice is None:
            assert [list(shape) for shape in arguments] == answer["arguments"]
            assert list(outputs[0]) == answer["output"]
        assert dumps(loads(text)) == dumps(loads(dumps(loads(text))))


# ------------------------------------------------------------------------------------------------ broken files

BROKEN = {
    "bad_missing_attr": (AttrError, r"attribute num_filter \(int of at least 1\) is required"),
    "bad_bad_value": (AttrError, "num_filter: expected int of at least 1, got 'many'"),
    "bad_bad_enum": (AttrError, "got 'swoosh'"),
    "bad_unknown_key": (FileFormatError, "node 3 'conv': unknown key 'colour'"),
    "bad_no_arg_nodes": (FileFormatError, "'arg_nodes' is missing"),
    "bad_no_heads": (FileFormatError, "'heads' is missing"),
    "bad_no_inputs": (FileFormatError, "node 3 'conv': 'inputs' is missing"),
    "bad_forward_reference": (FileFormatError, "input 0 is an output of node 18, which comes later"),
    "bad_input_out_of_range": (FileFormatError, "input 0 is an output of node 999, but there are 19 nodes"),
    "bad_too_many_inputs": (FileFormatError, "node 11 'flat': operator Flatten: expected 1 input "),
    "bad_cut": (FileFormatError, r"line \d+, column \d+: no JSON"),
    "bad_no_json": (FileFormatError, "line 1, column 1: no JSON"),
    "bad_empty": (FileFormatError, "the text is empty"),
}


@of_each(ABOUT["broken"])
def test_errors_of_broken_files_name_the_wrong_part(name):
    key = name.removesuffix("-symbol.json")
    if key.startswith("bad_unknown") and key not in BROKEN:
        if key.endswith("attr"):
            with pytest.warns(UserWarning, match="operator Convolution, node 'conv': unknown attribute"):
                assert not placeholders(load(JSON / name))
        else:
            assert [node.name for node in placeholders(load(JSON / name))] == ["relu"]
        return
    kind, message = BROKEN[key]
    with pytest.raises(kind, match=message) as caught:
        load(JSON / name)
    said = [str(caught.value), *getattr(caught.value, "__notes__", ())]
    assert any(name in text for text in said)
    assert key.count("_no_") or kind is FileFormatError or any("node" in text for text in said)


def changed(*path, to):
    """The native graph with another value in one place; Ellipsis as the value removes the key."""

    def change():
        graph = copy.deepcopy(GRAPH)
        place = graph
        for step in path[:-1]:
            place = place[step]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to
        return json.dumps(graph)

    return change


CONV, RELU = 3, 4
REFUSED = {
    "a list": (lambda: "[]", r"expected an object in braces, got \[\]"),
    "a number": (lambda: "3", "expected an object"),
    "not a number": (lambda: "NaN", "expected an object"),
    "trailing text": (lambda: NATIVE + " x", "Extra data"),
    "nested brackets": (lambda: "[" * 100_000, "nested too deeply"),
    "nested braces": (lambda: '{"nodes":' * 100_000, "nested too deeply"),
    "an endless number": (lambda: "9" * 5000, "absurdly long number"),
    "a key of the graph": (changed("colour", to=1), "unknown key 'colour'"),
    "a key twice": (lambda: NATIVE.replace('"name": "relu"', '"name": "relu", "name": "relu"'),
                    "'name' stands twice"),
    "an attribute twice": (lambda: NATIVE.replace('"act_type": "relu"', '"act_type": "relu", "act_type": "relu"'),
                           "'act_type' stands twice"),
    "no nodes": (changed("nodes", to=...), "'nodes' is missing"),
    "empty nodes": (changed("nodes", to=[]), "there are 0 nodes"),
    "nodes as object": (changed("nodes", to={}), "nodes: expected a list, got {}"),
    "empty heads": (changed("heads", to=[]), "'heads' is empty"),
    "heads as number": (changed("heads", to=3), "heads: expected a list"),
    "head out of range": (changed("heads", 0, to=[99, 0, 0]), "head 0 is an output of node 99"),
    "head's output": (changed("heads", 0, to=[RELU, 1, 0]), "head 0 is output 1 of node 'relu', which has 1"),
    "head of one number": (changed("heads", 0, to=[3]), r"head 0: expected \[node, output, version\]"),
    "head of text": (changed("heads", 0, to=["3", 0, 0]), "head 0: expected a whole number, got '3'"),
    "head as number": (changed("heads", 0, to=3), "head 0: expected a list"),
    "arg_nodes out of range": (changed("arg_nodes", 0, to=99), "arg_nodes: expected a whole number below 19, got 99"),
    "arg_nodes of text": (changed("arg_nodes", to=["x"]), "arg_nodes: expected a whole number"),
    "arg_nodes as text": (changed("arg_nodes", to="x"), "arg_nodes: expected a list"),
    "node_row_ptr of text": (changed("node_row_ptr", to=["x"]), "node_row_ptr: expected a whole number"),
    "node_row_ptr as object": (changed("node_row_ptr", to={}), "node_row_ptr: expected a list"),
    "attrs of the graph": (changed("attrs", to=[]), "attrs: expected an object"),
    "version as number": (changed("attrs", "mxnet_version", to=10901), "mxnet_version: expected a list"),
    "version as text": (changed("attrs", "mxnet_version", to=["str", "x"]), r'expected \["int", number\]'),
    "version of text": (changed("attrs", "mxnet_version", to=["int", "x"]), "expected a whole number, got 'x'"),
    "node as list": (changed("nodes", CONV, to=[]), "node 3: expected an object"),
    "no op": (changed("nodes", CONV, "op", to=...), "node 3 'conv': 'op' is missing"),
    "no name": (changed("nodes", CONV, "name", to=...), "node 3: 'name' is missing"),
    "op as number": (changed("nodes", CONV, "op", to=3), "op: expected text, got 3"),
    "name as null": (changed("nodes", CONV, "name", to=None), "node 3: name: expected text, got None"),
    "half a character": (lambda: NATIVE.replace('"relu"', '"re\\ud800lu"'), "half of a character"),
    "attrs as list": (changed("nodes", CONV, "attrs", to=[]), "node 3 'conv': attrs: expected an object"),
    "attribute as number": (changed("nodes", CONV, "attrs", "num_filter", to=7), "num_filter: expected text, got 7"),
    "attrs and attr": (changed("nodes", CONV, "attr", to={}), "either 'attrs' or 'attr'"),
    "inputs as number": (changed("nodes", RELU, "inputs", to=3), "inputs: expected a list"),
    "input of a number": (changed("nodes", RELU, "inputs", to=[3]), "input 0: expected a list"),
    "input of four": (changed("nodes", RELU, "inputs", 0, to=[3, 0, 0, 0]), "input 0: expected"),
    "input of a float": (changed("nodes", RELU, "inputs", 0, to=[3.0, 0, 0]), "input 0: expected a whole number"),
    "input of a truth": (changed("nodes", RELU, "inputs", 0, to=[True, 0, 0]), "input 0: expected a whole number"),
    "negative input": (changed("nodes", RELU, "inputs", 0, to=[-1, 0, 0]), "input 0: expected a whole number"),
    "its own input": (changed("nodes", RELU, "inputs", 0, to=[RELU, 0, 0]), "node 4, which comes later"),
    "input's output": (changed("nodes", RELU, "inputs", 0, to=[CONV, 1, 0]), "output 1 of node 'conv', which has 1"),
    "too few inputs": (changed("nodes", CONV, "inputs", to=[[0, 0, 0], [1, 0, 0]]),
                       r"expected 3 inputs \(data, weight, bias\), got 2"),
    "a variable's inputs": (changed("nodes", 1, "inputs", to=[[0, 0, 0]]), "a variable has no inputs"),
    "control_deps": (changed("nodes", CONV, "control_deps", to=[99]), "control_deps: expected a whole number"),
    "control_deps as text": (changed("nodes", CONV, "control_deps", to="x"), "control_deps: expected a list"),
    "subgraphs": (changed("nodes", CONV, "subgraphs", to=3), "subgraphs: expected a list"),
    "a subgraph": (changed("nodes", CONV, "subgraphs", to=[3]), "node 3 'conv', subgraph 0: expected an object"),
    "backward_source_id": (changed("nodes", CONV, "backward_source_id", to="x"),
                           "backward_source_id: expected a number"),
    "Custom of nothing": (changed("nodes", RELU, to={"op": "Custom", "name": "c", "inputs": []}), "needs.*'op_type'"),
    "num_args": (lambda: graph_of(("null", "x"), ("add_n", "sum", [0], {"num_args": "9999"})),
                 "num_args is 9999, the node has 1 inputs"),
    "outputs of a placeholder": (lambda: graph_of(("null", "x"), ("NoSuch", "n", [0], {}), heads=[[1, 10**12, 0]]),
                                 "more than anybody means"),
}


@of_each(REFUSED)
def test_absurd_text_is_refused(what):
    make, message = REFUSED[what]
    with pytest.raises(FileFormatError, match=rf"^net\.json: .*{message}"):
        loads(make(), "net.json")


@pytest.mark.parametrize("text", ["(", "(" * 3000 + ")" * 3000, "-" * 100_000 + "1", "\x00", "slice(1, 2, 3, 4)", "'a'",
                                  "__import__('os')", "[[1], [1, 2]]", "slice(a)"], ids=lambda text: text[:12])
def test_damaged_subscripts_are_refused(text):
    saved = json.loads(ops._subscript(mx.sym.Variable("x"), key=(slice(None), -1)).tojson())
    saved["nodes"][1]["attrs"]["key"] = text
    with pytest.raises(mx.MXNetError, match="attribute key: expected a subscript"):
        mx.sym.load_json(json.dumps(saved)).eval(x=mx.nd.ones((2, 3)))


@pytest.mark.parametrize("op, name", [
    ("add_n", "num_args"), ("SliceChannel", "num_outputs"), ("_split_v2", "sections")])
def test_counts_that_would_make_lists_larger_than_memory(op, name):
    text = graph_of(("null", "x"), (op, "many", [0], {name: "9" * 15, "indices": "()"} if op[0] == "_" else
                                    {name: "9" * 15}))
    with pytest.raises(AttrError, match=f"attribute {name}: .*65,536, got '999") as caught:
        loads(text, "net.json")
    assert "net.json: node 1 'many'" in caught.value.__notes__


def test_arguments_that_are_not_text_are_refused():
    with pytest.raises(TypeError, match="expected text, got bytes"):
        loads(NATIVE.encode())


HARMLESS = {
    "arg_nodes empty": changed("arg_nodes", to=[]),
    "node_row_ptr out of date": changed("node_row_ptr", to=[999]),
    "node_row_ptr falls": changed("node_row_ptr", to=list(range(20))[::-1]),
    "other graph attributes": changed("attrs", "foo", to=["str", "x"]),
    "empty control_deps": changed("nodes", RELU, "control_deps", to=[]),
    "empty subgraphs": changed("nodes", RELU, "subgraphs", to=[]),
    "backward_source_id": changed("nodes", RELU, "backward_source_id", to=-1),
    "empty attrs": changed("nodes", 0, "attrs", to={}),
    "param beside attrs": changed("nodes", RELU, "param", to={"act_type": "tanh"}),
    "other white space": lambda: json.dumps(GRAPH, indent=7) + "\n",
    "other order": lambda: json.dumps(GRAPH, sort_keys=True),
}


@of_each(HARMLESS)
def test_irrelevant_entries_are_ignored(what):
    assert dumps(loads(HARMLESS[what]())) == NATIVE


def test_control_dependencies_are_dropped_with_a_warning():
    with pytest.warns(UserWarning, match="node 4 'relu': control dependencies are not kept"):
        assert dumps(loads(changed("nodes", RELU, "control_deps", to=[0])())) == NATIVE


def test_nodes_that_no_output_needs_are_left_out():
    graph = copy.deepcopy(GRAPH)
    graph["heads"] = [[RELU, 0, 0]]
    symbol = loads(json.dumps(graph))
    assert symbol.list_arguments() == ["data", "conv_weight", "conv_bias"]
    assert json.loads(dumps(symbol))["nodes"] == graph["nodes"][:RELU + 1]


# ------------------------------------------------------------------------------------------------ older versions

FLAT, WEIGHT, FC = 11, 12, 14
UNKNOWN = "stays, with a warning"
OLDER = [  # version, node, attribute, and its node and name after loading, or that it is unknown
    (VERSION, WEIGHT, "lr_mult", (WEIGHT, "lr_mult")),
    (VERSION, FC, "lr_mult", UNKNOWN),
    (VERSION, FC, "bias_wd_mult", UNKNOWN),
    (VERSION, FC, "foo", UNKNOWN),
    (VERSION, FC, "__foo__", (FC, "__foo__")),
    (VERSION, WEIGHT, "foo", (WEIGHT, "foo")),
    (VERSION, FLAT, "foo", (FLAT, "foo")),
    *((version, *rest) for version in (10900, 903) for rest in (
        (FLAT, "force_mirroring", (FLAT, "__force_mirroring__")),
        (WEIGHT, "wd_mult", (WEIGHT, "__wd_mult__")),
        (FC, "lr_mult", (FC, "__lr_mult__")),
        (FC, "bias_wd_mult", (13, "__wd_mult__")),
        (FC, "weight_lr_mult", (WEIGHT, "__lr_mult__")),
        (FC, "data_lr_mult", UNKNOWN),
        (FC, "foo_lr_mult", UNKNOWN),
        (FC, "foo", UNKNOWN),
        (WEIGHT, "weight_lr_mult", (WEIGHT, "weight_lr_mult")),
        (FC, "__weight_lr_mult__", (FC, "__weight_lr_mult__")),
    )),
]


@of_each(OLDER)
def test_attributes_of_older_versions_move_to_where_they_belong(version, number, name, becomes):
    graph = copy.deepcopy(GRAPH)
    graph["attrs"]["mxnet_version"][1] = version
    graph["nodes"][number].setdefault("attrs", {})[name] = "7"
    unknown = becomes is UNKNOWN
    with pytest.warns(UserWarning, match=f"unknown attribute '{name}'") if unknown else nullcontext():
        symbol = loads(json.dumps(graph))
    expected = copy.deepcopy(GRAPH)
    where, called = (number, name) if unknown else becomes
    expected["nodes"][where].setdefault("attrs", {})[called] = "7"
    assert json.loads(dumps(symbol)) == expected


def test_inputs_that_0_8_left_out_are_added_with_the_attributes_of_their_operator():
    text = json.dumps({
        "nodes": [{"op": "null", "name": "x", "inputs": []},
                  {"op": "BatchNorm", "name": "bn", "inputs": [[0, 0]], "param": {"eps": "0.1", "momentum": "0.8"},
                   "attr": {"eps": "0.2", "ctx_group": "d", "gamma_lr_mult": "9", "moving_mean_wd_mult": "5"},
                   "backward_source_id": -1}],
        "arg_nodes": [0], "heads": [[1, 0]]})
    symbol = loads(text)
    own = {"eps": "0.2", "momentum": "0.8", "ctx_group": "d", "__ctx_group__": "d"}
    assert symbol.list_arguments() == ["x", "bn_gamma", "bn_beta"]
    assert symbol.attr_dict() == {
        "bn": own, "bn_beta": own, "bn_gamma": {**own, "__lr_mult__": "9", "lr_mult": "9"},
        "bn_moving_mean": {**own, "__init__": '["zero", {}]', "__wd_mult__": "5", "wd_mult": "5"},
        "bn_moving_var": {**own, "__init__": '["one", {}]'}}
    assert dumps(loads(dumps(symbol))) == dumps(symbol)


@pytest.mark.parametrize("version,expected", [(903, '["Constant", {"value": 0.25}]'), (904, None)])
def test_before_0_9_4_variables_did_not_say_how_they_begin(version, expected):
    prelu = ("LeakyReLU", "p", [0, 1], {"act_type": "prelu"})
    text = graph_of(("null", "x"), ("null", "gamma"), prelu, version=version)
    assert loads(text).attr_dict().get("gamma", {}).get("__init__") == expected
    kept = text.replace('"name": "gamma"', '"name": "gamma", "attrs": {"__init__": "mine"}')
    assert loads(kept).attr_dict()["gamma"]["__init__"] == "mine"


# ------------------------------------------------------------------------------------------------ writing


def test_long_lists_stand_one_a_line_and_short_ones_on_one():
    many = sym.Concat(*[sym.Variable(f"v{i}") for i in range(11)], dim=1, name="c")
    assert '''
      "inputs": [
        [0, 0, 0], 
        [1, 0, 0], 
''' in dumps(many)  # noqa: W291 (MXNet puts a space after every comma)
    assert '"arg_nodes": [\n    0, \n    1, \n' in dumps(many)
    few = sym.Group([sym.Variable(f"v{i}") for i in range(10)])
    assert f'"heads": [{", ".join(f"[{i}, 0, 0]" for i in range(10))}], \n' in dumps(few)
    assert '"heads": [\n    [0, 0, 0], \n' in dumps(sym.Group([sym.Variable(f"v{i}") for i in range(11)]))


def test_names_and_attributes_keep_every_letter():
    name, value = 'é\t"\\\n\r\x01/', "ü\x7f\u4e2d\U0001f600"
    variable = sym.Variable(name, attr={'__"__': value})
    text = dumps(variable)
    assert '"name": "é\\t\\"\\\\\\n\\r\x01/", \n      "attrs": {"__\\"__": "ü\x7f\u4e2d\U0001f600"}' in text
    again = loads(text)
    assert (again.name, again.attr('__"__')) == (name, value)
    assert loads(json.dumps(json.loads(text, strict=False))).name == name


def test_auxiliary_states_count_their_uses():
    mean, var = sym.Variable("mean"), sym.Variable("var")
    first = sym.BatchNorm(sym.Variable("x"), moving_mean=mean, moving_var=var, name="b1")
    second = sym.BatchNorm(first, moving_mean=mean, moving_var=var, name="b2")
    nodes = {node["name"]: node["inputs"] for node in json.loads(dumps(second))["nodes"]}
    assert [entry[2] for entry in nodes["b1"]] == [0, 0, 0, 1, 1]
    assert [entry[2] for entry in nodes["b2"]] == [0, 0, 0, 2, 2]


HIDDEN_OUTPUTS = [  # operator, attributes, outputs that MXNet counts
    ("BatchNorm", {}, 3), ("LayerNorm", {}, 3), ("Dropout", {}, 2), ("L2Normalization", {}, 2), ("Flatten", {}, 1),
    ("Pooling", {"kernel": "(2,2)", "pool_type": "max"}, 2), ("Pooling", {"kernel": "(2,2)", "pool_type": "avg"}, 1),
    ("Pooling", {"global_pool": "True", "pool_type": "max"}, 1),
    ("Pooling", {"kernel": "(2,2)", "layout": "NHWC"}, 1), ("Pooling", {"kernel": "(2,)", "layout": "NCW"}, 2),
    ("topk", {"ret_typ": "value"}, 2), ("topk", {"ret_typ": "both"}, 2), ("topk", {}, 1), ("sort", {}, 2),
    ("LeakyReLU", {"act_type": "rrelu"}, 2), ("LeakyReLU", {}, 1), ("SliceChannel", {"num_outputs": "3"}, 3),
]


@of_each(HIDDEN_OUTPUTS)
def test_node_row_ptr_counts_hidden_outputs(op, attrs, count):
    symbol = getattr(sym, op)(sym.Variable("x"), **attrs)
    rows = json.loads(dumps(symbol))["node_row_ptr"]
    assert rows[-1] - rows[-2] == count


# ------------------------------------------------------------------------------------------------ files


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "net-symbol.json"
    symbol = sym.Variable("x") * 2
    save(symbol, path)
    assert path.read_bytes() == dumps(symbol).encode()
    assert dumps(sym.load(path)) == dumps(sym.load(str(path))) == symbol.tojson()

    def full(file):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        (symbol + 1).save(path)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == dumps(symbol).encode()


def test_files_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "net-symbol.json"
    path.write_bytes(NATIVE.encode().replace(b"relu", b"re\xfflu", 1))
    with pytest.raises(FileFormatError, match=r"net-symbol\.json: byte \d+: expected UTF-8, got 0xff"):
        load(path)
    path.write_bytes("é".join(NATIVE.split("relu")).encode())
    with pytest.raises(AttrError):  # an act_type of é
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.json")


def test_a_file_declares_the_meaning_of_its_zeros():
    def read(text):
        net = loads(text)
        return net.infer_shape_partial(data=(2, 3))[0][1:], net.attr_dict().get("w"), "is_np_shape" in dumps(net)

    def net(*shape):
        return sym.FullyConnected(sym.Variable("data"), sym.Variable("w", shape=shape), no_bias=True, num_hidden=4)

    body = sym.contrib.foreach(lambda x, s: (x + sym.sum(net(4, 0)), s), sym.Variable("rows"), sym.Variable("s"))[0]
    unknown, written = dumps(net(4, 0)), '"attrs": {"mxnet_version": ["int", 10901]}'
    assert written in unknown
    assert read(unknown) == ([(4, 3)], {"__shape__": "(4, 0)"}, False)
    with mx.np_shape():
        assert read(unknown) == ([(4, 3)], {"__shape__": "(4, -1)"}, True)
        assert loads(dumps(sym.Variable("x", shape=()))).attr("__shape__") == "()"
        empty = dumps(net(4, 0))
        assert '"attrs": {\n    "is_np_shape": ["int", 1], \n    "mxnet_version": ["int", 10901]\n  }' in empty
        with pytest.raises(ShapeError, match=r"got \(4, 0\)"):
            read(empty)
        with mx.np_shape(False):
            assert read(empty) == ([(4, 3)], {"__shape__": "(4, 0)"}, False)
            unranked, inner = dumps(sym.Variable("x", shape=())), dumps(body)
        assert loads(unranked).infer_shape_partial()[1] == [None]
        assert '"(4, -1)"' in dumps(loads(inner)) and '"(4, 0)"' not in dumps(loads(inner))


def test_symbols_are_pickled_as_text():
    symbol = load(JSON / "native-1.9.1-symbol.json")
    assert dumps(pickle.loads(pickle.dumps(symbol))) == NATIVE


def test_a_node_knows_the_file_it_comes_from():
    symbol = loads(NATIVE, "net.json")
    with pytest.raises(ShapeError, match="bias") as caught:
        symbol.infer_shape(data=(1, 2, 3, 3), fc_bias=(3, 3))
    assert "operator FullyConnected, node 'fc', made at net.json:node 14" in caught.value.__notes__


# ------------------------------------------------------------------------------------------------ placeholders

STRANGE = graph_of(
    ("null", "x"), ("null", "w"), ("FullyConnected", "fc", [0, 1], {"num_hidden": "5", "no_bias": "True"}),
    ("null", "state"), ("Sofmax", "odd", [2, [3, 0, 1]], {"depth": "3", "__ctx_group__": "dev1"}),
    ("Activation", "act", [[4, 2, 0]], {"act_type": "relu"}),
    node_row_ptr=[0, 1, 2, 3, 4, 7, 8])


def test_an_unknown_operator_is_listed_drawn_and_saved():
    symbol = loads(STRANGE, "net.json")
    assert symbol.list_arguments() == ["x", "w"]
    assert symbol.list_auxiliary_states() == ["state"]
    assert symbol.get_internals().list_outputs()[-4:] == ["odd_output0", "odd_output1", "odd_output2", "act_output"]
    assert symbol.attr_dict()["odd"] == {"depth": "3", "__ctx_group__": "dev1", "ctx_group": "dev1"}
    assert "Op:Sofmax, Name=odd\n" in symbol.debug_str()
    assert json.loads(dumps(symbol)) == json.loads(STRANGE)
    assert dumps(loads(dumps(symbol))) == dumps(symbol)
    assert dumps(pickle.loads(pickle.dumps(symbol))) == dumps(symbol)


def test_shapes_are_inferred_around_an_unknown_operator():
    symbol = loads(STRANGE, "net.json")
    arguments, outputs, states = symbol.infer_shape_partial(x=(2, 3))
    assert (arguments, outputs, states) == ([(2, 3), (5, 3)], [()], [()])
    assert symbol.infer_type(x="float16")[0][0] is np.float16
    with pytest.warns(UserWarning, match=r"^cannot infer the shapes of act_output: \?.* 'Sofmax', which is not reg"):
        assert symbol.infer_shape(x=(2, 3)) == (None, None, None)


def test_the_error_of_an_unknown_operator_names_it():
    symbol = loads(STRANGE, "net.json")
    message = r"^net\.json: node 'odd' needs the operator 'Sofmax', which is not registered\. Did you mean 'Softmax'"
    with pytest.raises(UnknownOperatorError, match=message):
        resolve(symbol._graph())
    with pytest.raises(UnknownOperatorError, match=message):
        symbol.gradient(["x"])
    with pytest.raises(UnknownOperatorError, match=message):
        placeholders(symbol)[0].op(nd.ones((2,)), nd.ones((2,)))
    assert resolve(symbol._graph(), strict=False).nodes == symbol._graph().nodes
    for bind in (lambda: symbol.simple_bind(nd.cpu(), x=(2, 3)), lambda: symbol.eval(x=nd.ones((2, 3)))):
        with pytest.raises(UnknownOperatorError, match=message):
            bind()


def test_without_node_row_ptr_a_node_has_the_outputs_that_are_used():
    symbol = loads(graph_of(("null", "x"), ("NoSuch", "n", [0], {}), heads=[[1, 3, 0]]))
    assert symbol.list_outputs() == ["n_output3"]
    assert json.loads(dumps(symbol))["node_row_ptr"] == [0, 1, 5]


def test_an_operator_registered_later_takes_the_placeholders_place(unregistered):
    inner = ("null", "x"), ("null", "seen"), ("Custom", "mine", [0, [1, 0, 1]], {"op_type": "_late", "times": "3"})
    text = graph_of(*inner, node_row_ptr=[0, 1, 2, 3])
    symbol = loads(text, "net.json")
    with pytest.raises(UnknownOperatorError, match=r"custom operator '_late'.*import the module that registers it"):
        resolve(symbol._graph())

    @operator.register("_late")
    class Late(operator.CustomOpProp):
        def __init__(self, times: int):
            super().__init__()
            self.times = times

        def list_auxiliary_states(self):
            return ["seen"]

        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], [(1,)]

        def create_operator(self, ctx, shapes, dtypes):
            return Times(self.times)

    class Times(operator.CustomOp):
        def __init__(self, times):
            self.times = times

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * self.times)

    resolved = sym.Symbol(resolve(symbol._graph()).heads)
    assert resolved.infer_shape(x=(2,)) == ([(2,)], [(2,)], [(1,)])
    executor = resolved.simple_bind(nd.cpu(), x=(2,))
    np.testing.assert_array_equal(executor.forward(x=nd.array([1, 2]))[0].asnumpy(), [3, 6])
    (node,) = [node for node in resolved._graph().nodes if node.op is not None]
    assert node.attrs["times"] == 3
    assert dumps(resolved) == dumps(loads(text)) == dumps(symbol)


MISFITS = [  # a placeholder that does not fit the operator registered later, and the error
    (graph_of(("null", "x"), ("_late", "n", [0, 0], {})), "operator _late has 1 inputs .data., the node has 2"),
    (graph_of(("null", "x"), ("_late", "n", [0], {}), heads=[[1, 1, 0]]), "_late has 1 outputs, but number 1 is used"),
]


@pytest.mark.parametrize("text,message", MISFITS)
def test_an_operator_that_does_not_fit_its_placeholder_is_refused(unregistered, text, message):
    symbol = loads(text, "net.json")

    @registry.declare(name="_late")
    def late(data, *, times: int = 2):
        """Registered after the file was read."""

    with pytest.raises(ValueError, match=message) as caught:
        resolve(symbol._graph())
    assert any("net.json" in text for text in (str(caught.value), *getattr(caught.value, "__notes__", ())))


def test_an_attribute_that_an_operator_does_not_take_is_kept_and_changes_nothing():
    dense = ("FullyConnected", "fc", [1, 2], {"num_hidden": "2", "no_bias": "True", "num_hiden": "red"})
    text = graph_of(("null", "x"), ("Flatten", "flat", [0]), ("null", "w"), dense,
                    ("FullyConnected", "more", [3, 2], dense[3]))
    with pytest.warns(UserWarning, match="num_hiden") as warned:
        symbol = loads(text, "net.json")
    (said,) = [str(each.message) for each in warned]
    assert said.startswith("net.json: operator FullyConnected, node 'fc' and 1 more: unknown attribute 'num_hiden'. It "
                           "is saved again with the graph and has no effect. Did you mean 'num_hidden'?")
    assert symbol.infer_shape(x=(2, 1, 2)) == ([(2, 1, 2), (2, 2)], [(2, 2)], [])
    executor = symbol.bind(nd.cpu(), {"x": nd.ones((2, 1, 2)), "w": nd.ones((2, 2))})
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), np.full((2, 2), 4))
    assert symbol.attr_dict()["fc"]["num_hiden"] == "red"
    assert json.loads(dumps(symbol))["nodes"] == json.loads(text)["nodes"]


def test_an_attribute_that_an_operator_registered_later_does_not_take_is_kept(unregistered):
    symbol = loads(graph_of(("null", "x"), ("_late", "n", [0], {"foo": "1"})), "net.json")

    @registry.declare(name="_late")
    def late(data, *, times: int = 2):
        """Registered after the file was read."""

    with pytest.warns(UserWarning, match=r"^net\.json: operator _late, node 'n': unknown attribute 'foo'"):
        resolved = sym.Symbol(resolve(symbol._graph()).heads)
    assert dumps(resolved) == dumps(symbol)


def test_names_in_files_do_not_find_entries_of_the_registry(unregistered):
    @operator.register("_plain")
    class Plain(operator.CustomOpProp):
        pass

    symbol = loads(graph_of(("null", "x"), ("custom._plain", "n", [0], {})))
    assert len(placeholders(symbol)) == 1
    assert json.loads(dumps(symbol))["nodes"][1]["op"] == "custom._plain"


# A loop in a file of MXNet 1.9.1: contrib.foreach over d with the state s, whose body adds s * w.
LOOP = '''{
  "nodes": [
    {
      "op": "null",_
      "name": "d",_
      "inputs": []
    },_
    {
      "op": "null",_
      "name": "w",_
      "attrs": {"__subgraph_name__": "loop0"},_
      "inputs": []
    },_
    {
      "op": "_forevery",_
      "name": "loop",_
      "attrs": {
        "num_args": "3",_
        "num_out_data": "1",_
        "num_outputs": "2"
      },_
      "inputs": [[0, 0, 0], [1, 0, 0]],_
      "subgraphs": [
        {
          "nodes": [
            {
              "op": "null",_
              "name": "d-0",_
              "attrs": {"__subgraph_name__": "loop0"},_
              "inputs": []
            },_
            {
              "op": "null",_
              "name": "w",_
              "attrs": {"__subgraph_name__": "loop0"},_
              "inputs": []
            },_
            {
              "op": "elemwise_mul",_
              "name": "_mul0",_
              "attrs": {"__subgraph_name__": "loop0"},_
              "inputs": [[0, 0, 0], [1, 0, 0]]
            },_
            {
              "op": "_copy",_
              "name": "identity0",_
              "inputs": [[2, 0, 0]]
            }
          ],_
          "arg_nodes": [0, 1],_
          "node_row_ptr": [0, 1, 2, 3, 4],_
          "heads": [[2, 0, 0], [3, 0, 0]]
        }
      ]
    }
  ],_
  "arg_nodes": [0, 1],_
  "node_row_ptr": [0, 1, 2, 4],_
  "heads": [[2, 0, 0], [2, 1, 0]],_
  "attrs": {"mxnet_version": ["int", 10901]}
}'''.replace(",_", ", ")


class _Mirror(mx.nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (-dout,)


def _hooked():
    cell = mx.nn.ReLU()
    cell.register_backward_hook(lambda cell, to_inputs, of_outputs: None)
    return cell


@pytest.mark.parametrize("make, node, code", [
    (_Mirror, "cell0", "the bprop of a Cell"), (_hooked, "hook_inputs0", "gradient hooks")])
def test_a_file_names_the_python_code_that_it_does_not_hold(make, node, code):
    symbol = make().to_symbol(mx.Tensor([1.0, -1.0]))
    with pytest.warns(UserWarning, match=rf"^node '{node}'.*: files do not hold {code}, which is Python code"):
        text = symbol.tojson()
    again = loads(text, "net.json")
    assert again.list_arguments() == symbol.list_arguments() and dumps(again) == text
    with pytest.raises(UnknownOperatorError, match=rf"^net\.json: node '{node}' called {code}, Python code of"):
        again.simple_bind(mx.cpu(), x=(2,))


def test_graphs_within_graphs_are_kept():
    symbol = loads(LOOP)
    assert dumps(symbol) == LOOP
    (node,) = placeholders(symbol)
    (body,) = node.op.signature.schema.subgraphs
    assert [inner.name for inner in body.nodes] == ["d-0", "w", "_mul0", "identity0"]
    with pytest.raises(UnknownOperatorError, match="node 'loop' needs the operator '_forevery' on 1 inner graphs"):
        resolve(symbol._graph())


def test_variables_of_bodies_are_named_by_the_outputs_that_they_stand_for():
    s, parts = sym.var("s"), sym.split(sym.var("d"), num_outputs=2, name="parts")
    _, result = sym.contrib.while_loop(lambda i, *_: i < 3, lambda i, *old: ([], [i + 1, *[x * i for x in old]]),
                                       [sym.var("i"), s, parts[1], s], max_iterations=4)
    _, body = json.loads(result[0].tojson())["nodes"][-1]["subgraphs"]
    assert [node["name"] for node in body["nodes"] if node["op"] == "null"] == ["i-0", "s-0", "parts-1", "s-1"]


def test_the_depth_of_nested_graphs_is_limited():
    graph = json.loads(LOOP)
    for _ in range(40):
        graph = {**json.loads(LOOP), "nodes": [*json.loads(LOOP)["nodes"][:2],
                                               {**json.loads(LOOP)["nodes"][2], "subgraphs": [graph]}]}
    with pytest.raises(FileFormatError, match="graphs within graphs, 33 deep"):
        loads(json.dumps(graph))


# ------------------------------------------------------------------------------------------------ users' operators


def test_attributes_of_a_users_operator_reach_its_constructor(unregistered):
    @operator.register("_scaled")
    class Scaled(operator.CustomOpProp):
        def __init__(self, factor: float, note="none", **others):
            super().__init__()
            self.factor, self.note, self.others = factor, note, others

    @operator.define(name="_halved")
    def halved(data, *, by: float = 2.0):
        """A part of the data."""
        return data / by

    x = sym.Variable("x")
    for made in (sym.Custom(x, op_type="_scaled", factor=1.5, extra=(1, 2), attr={"__lr_mult__": "2"}, name="s"),
                 sym.custom._halved(x, by=4, name="h"), halved(x)):
        text = dumps(made)
        stored = json.loads(text)["nodes"][-1]
        assert stored["op"] == "Custom"
        assert stored["attrs"]["op_type"] in ("_scaled", "_halved")
        assert dumps(loads(text)) == text
    scaled = sym.Custom(x, op_type="_scaled", factor=1.5, extra=(1, 2), attr={"__lr_mult__": "2"}, name="s")
    (node,) = [node for node in loads(dumps(scaled))._graph().nodes if node.op is not None]
    assert node.attrs.prop.factor == 1.5
    assert node.attrs.prop.note == "none"
    assert node.attrs.prop.others == {"extra": "(1, 2)", "__lr_mult__": "2"}


def test_an_exception_of_a_constructor_is_raised_unchanged(unregistered):
    @operator.register("_angry")
    class Angry(operator.CustomOpProp):
        def __init__(self, times):
            super().__init__()
            int(times)

    with pytest.raises(ValueError, match="invalid literal") as caught:
        loads(graph_of(("null", "x"), ("Custom", "n", [0], {"op_type": "_angry", "times": "many"})), "net.json")
    assert "net.json: node 1 'n'" in caught.value.__notes__


# ------------------------------------------------------------------------------------------------ rules

WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)


GROW = [  # functions of two symbols and a name that return symbols
    lambda a, b, name: [sym.Variable(name)],
    lambda a, b, name: [a * 0.5],
    lambda a, b, name: [a + b],
    lambda a, b, name: [b - a],
    lambda a, b, name: [sym.FullyConnected(a, num_hidden=3, name=name)],
    lambda a, b, name: [sym.Concat(a, b, a, dim=1, name=name)],
    lambda a, b, name: list(sym.SliceChannel(a, num_outputs=3, name=name)),
    lambda a, b, name: [sym.BatchNorm(a, name=name)],
    lambda a, b, name: [sym.Flatten(a, name=name)],
    lambda a, b, name: [sym.Activation(a, act_type="relu", name=name, attr={"__tag__": "ü"})],
    lambda a, b, name: [sym.Cast(a, dtype="float16", name=name)],
    lambda a, b, name: [loads(graph_of(("null", "y"), ("Odd", name, [0], {"k": "v"}), heads=[[1, 1, 0]]))(a)],
]


@st.composite
def graphs(draw):
    """Random symbols of a few operators, with odd names and attributes."""
    tags = st.dictionaries(WORDS.map(lambda word: f"__{word}__"), WORDS, max_size=2)
    made = [sym.Variable(draw(WORDS) or "x", attr=draw(tags))]
    for i in range(draw(st.integers(0, 12))):
        a, b = (draw(st.sampled_from(made)) for _ in range(2))
        made += draw(st.sampled_from(GROW))(a, b, draw(st.sampled_from([f"node{i}", "same"])))
    return sym.Group(draw(st.lists(st.sampled_from(made), min_size=1, max_size=3)))


@given(graphs())
@CALM
def test_written_symbols_are_read_as_the_same(symbol):
    text = dumps(symbol)
    again = loads(text)
    assert dumps(again) == text
    assert again.list_arguments() == symbol.list_arguments()
    assert again.list_outputs() == symbol.list_outputs()
    assert again.list_auxiliary_states() == symbol.list_auxiliary_states()
    assert again.attr_dict() == symbol.attr_dict()
    assert dumps(loads(json.dumps(json.loads(text, strict=False)))) == text


def test_every_beginning_of_a_file_is_refused():
    for end in range(len(NATIVE)):
        with pytest.raises(FileFormatError, match=r"^net\.json: "):
            loads(NATIVE[:end], "net.json")


def _survives(read):
    """Whether a damaged graph can be read; an error has to be one about files or operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            symbol = read()
        except (FileFormatError, AttrError, DTypeError):
            return False
        assert dumps(loads(dumps(symbol))) == dumps(symbol)
    return True


def test_a_flipped_byte_is_refused_or_harmless(tmp_path):
    path, original = tmp_path / "net-symbol.json", NATIVE.encode()
    rng = np.random.default_rng(0)
    outcomes = []
    for place in rng.integers(0, len(original), 400):
        content = bytearray(original)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        outcomes.append(_survives(lambda: load(path)))
    assert {True, False} == set(outcomes)


@given(st.data())
@CALM
def test_any_value_anywhere_is_refused_or_harmless(data):
    """A random value replaces a random part of the graph."""
    graph = copy.deepcopy(GRAPH)
    place = graph
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], (dict, list)) and place[key]) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    values = st.none() | st.booleans() | st.integers(-3, 30) | st.floats() | st.text(string.printable, max_size=4)
    place[key] = data.draw(values | st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values))
    _survives(lambda: loads(json.dumps(graph)))


# ------------------------------------------------------------------------------------------------ size


@pytest.mark.parametrize("op", ["relu", "NoSuchOperator"])
def test_deep_graphs_are_read(op):
    count = 10_000
    nodes = [("null", "x"), *((op, f"n{i}", [i], {}) for i in range(count))]
    symbol = loads(graph_of(*nodes))
    text = dumps(symbol)
    assert len(symbol._graph().nodes) == count + 1
    assert dumps(loads(text)) == text
    assert symbol.debug_str().count("\n") > 3 * count


def test_binding_takes_operators_registered_since(unregistered):
    symbol = loads(graph_of(("null", "x"), ("Custom", "mine", [0], {"op_type": "_late", "by": "4"})))

    @operator.define(name="_late")
    def late(data, *, by: float):
        """A part of the data."""
        return data / by

    assert symbol.infer_shape(x=(2,)) == ([(2,)], [(2,)], [])
    np.testing.assert_array_equal(symbol.eval(x=nd.array([4, 8]))[0].asnumpy(), [1, 2])
    np.testing.assert_array_equal(symbol.simple_bind(nd.cpu(), x=(2,)).forward()[0].asnumpy(), [0, 0])


def test_casts_of_mixed_precision_stay_out_of_files(tmp_path):
    one, other = sym.amp_multicast(sym.amp_cast(sym.Variable("x"), dtype="float16"), sym.Variable("y"), num_outputs=2)
    net = sym.relu(one, name="r") * other
    path = tmp_path / "net-symbol.json"
    net.save(path)
    for text in (path.read_text(), net.tojson()):
        assert "amp_" not in text
        assert loads(text).list_arguments() == ["x", "y"]
        assert loads(text).eval(x=nd.array([-1, 2]), y=nd.array([3, 4]))[0].asnumpy().tolist() == [0, 8]
    net.save(path, remove_amp_cast=False)
    for text in (path.read_text(), net.tojson(remove_amp_cast=False), dumps(pickle.loads(pickle.dumps(net)))):
        assert "amp_cast" in text and "amp_multicast" in text

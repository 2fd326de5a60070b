"""Graphs as text, tables and drawings."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest
from opreg.viz import Plot, plot_network, print_summary

import opreg.symbol as sym
from opreg.errors import ArgumentError, DeviceError, ShapeError
from opreg.symbol.json import load, loads

MODELS = Path(__file__).parent.parent / "oracle" / "models"
NATIVE = MODELS / "json" / "native-1.9.1-symbol.json"
UNKNOWN = json.dumps({
    "nodes": [{"op": "null", "name": "x", "inputs": []},
              {"op": "null", "name": "odd_weight", "inputs": []},
              {"op": "NoSuch", "name": "odd", "attrs": {"k": "v"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
              {"op": "Flatten", "name": "flat", "inputs": [[2, 0, 0]]}],
    "arg_nodes": [0, 1], "heads": [[3, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})


def model(name):
    return load(MODELS / name / f"{name}-symbol.json"), json.loads((MODELS / name / "about.json").read_text())


# ------------------------------------------------------------------------------------------------ debug_str


def test_debug_str_equals_mxnets():
    norm = sym.BatchNorm(sym.Variable("x"), moving_mean=sym.Variable("mean"), eps=0.1, name="bn")
    both = sym.SliceChannel(norm, num_outputs=2, name="sp")
    total = sym.elemwise_add(both[0], both[1], name="sum")
    assert sym.Group([total, both[1]]).debug_str() == """Symbol Outputs:
\toutput[0]=sum(0)
\toutput[1]=sp(1)
Variable:x
Variable:bn_gamma
Variable:bn_beta
Variable:mean
Variable:bn_moving_var
--------------------
Op:BatchNorm, Name=bn
Inputs:
\targ[0]=x(0) version=0
\targ[1]=bn_gamma(0) version=0
\targ[2]=bn_beta(0) version=0
\targ[3]=mean(0) version=1
\targ[4]=bn_moving_var(0) version=1
Attrs:
\teps=0.1
--------------------
Op:SliceChannel, Name=sp
Inputs:
\targ[0]=bn(0)
Attrs:
\tnum_outputs=2
--------------------
Op:elemwise_add, Name=sum
Inputs:
\targ[0]=sp(0)
\targ[1]=sp(1)
"""


def test_debug_str_shows_a_variable():
    assert sym.Variable("x").debug_str() == "Variable:x\n"


def test_nodes_that_have_no_inputs_or_no_operator_are_reported():
    assert "Op:_zeros, Name=z\nInputs:\nAttrs:\n" in sym.zeros((2,), name="z").debug_str()
    assert "Op:NoSuch, Name=odd\nInputs:\n\targ[0]=x(0) version=0\n" in loads(UNKNOWN).debug_str()
    custom = load(MODELS / "custom" / "custom-symbol.json").debug_str()
    assert "Op:Custom, Name=" in custom
    assert "\top_type=" in custom


# ------------------------------------------------------------------------------------------------ print_summary

# Text that MXNet prints about the model "mlp".
MLP = [("data(null)", "10", "0", ""), ("fc1(FullyConnected)", "27", "297", "data"),
       ("relu1(Activation)", "27", "0", "fc1"), ("fc2(FullyConnected)", "23", "621", "relu1"),
       ("sig2(Activation)", "23", "0", "fc2"), ("fc3(FullyConnected)", "3", "72", "sig2"),
       ("softmax(SoftmaxOutput)", "3", "0", "fc3")]


def test_the_table_is_mxnets(capsys):
    symbol, about = model("mlp")
    print_summary(symbol, {name: tuple(shape) for name, shape in about["inputs"].items()})
    rows = [f"{title:<52}{output:<24}{count:<12}{previous:<32}" for title, output, count, previous in
            [("Layer (type)", "Output Shape", "Param #", "Previous Layer"), *MLP]]
    thin, thick = "_" * 120, "=" * 120
    assert capsys.readouterr().out.splitlines() == [
        thin, rows[0], thick, *f"\n{thin}\n".join(rows[1:]).split("\n"), thick, "Total params: 990", thin]


@pytest.mark.parametrize("name", ["mlp", "lenet", "resnet", "mobilenet", "fcn", "transformer", "regression"])
def test_the_total_is_the_size_of_everything_learned(name, capsys):
    symbol, about = model(name)
    print_summary(symbol, {name: tuple(shape) for name, shape in about["inputs"].items()})
    given = {*about["inputs"], *about["labels"]}
    expected = sum(math.prod(shape) for name, shape in about["infer_shape"]["arguments"].items() if name not in given)
    assert f"\nTotal params: {expected}\n" in capsys.readouterr().out


def table(capsys, *args, **keywords):
    """Fields of the printed rows."""
    print_summary(*args, **keywords)
    lines = capsys.readouterr().out.splitlines()[3:-2]
    return [re.split(r" {2,}", line.rstrip()) for line in lines if not re.fullmatch("_*|=*", line)], lines


def test_the_table_shows_layers_of_several_inputs_and_outputs(capsys):
    both = sym.SliceChannel(sym.Variable("x"), num_outputs=2, name="sp")
    rows, _ = table(capsys, sym.elemwise_add(both[0], both[1], name="sum"), shape={"x": (1, 4, 8)})
    assert rows == [["x(null)", "4x8", "0"], ["sp(SliceChannel)", "2x8 2x8", "0", "x"],
                    ["sum(elemwise_add)", "2x8", "0", "sp"], ["", "sp"]]


def test_shared_parameters_count_once(capsys):
    weight = sym.Variable("w")
    first = sym.FullyConnected(sym.Variable("data"), weight=weight, no_bias=True, num_hidden=5, name="a")
    second = sym.FullyConnected(first, weight=weight, no_bias=True, num_hidden=5, name="b")
    rows, _ = table(capsys, second, {"data": (2, 5)})
    assert [row[2] for row in rows] == ["0", "25", "0"]


def test_unknown_shapes_are_shown_as_such(capsys):
    rows, _ = table(capsys, sym.FullyConnected(sym.Variable("data"), num_hidden=5, name="fc"))
    assert rows == [["data(null)", "0"], ["fc(FullyConnected)", "5 + ?", "data"]]
    rows, _ = table(capsys, loads(UNKNOWN), {"x": (1, 2)})
    assert rows == [["x(null)", "2", "0"], ["odd(NoSuch)", "?", "x"], ["flat(Flatten)", "0", "odd"]]
    print_summary(sym.FullyConnected(sym.Variable("data"), num_hidden=5, no_bias=True))
    assert "\nTotal params: ?\n" in capsys.readouterr().out


@pytest.mark.parametrize("positions", [(20, 30, 40, 50), (0.4, 0.6, 0.8, 1)])
def test_columns_end_at_their_declared_width(capsys, positions):
    _, lines = table(capsys, sym.Flatten(sym.Variable("x"), name="n" * 60), {"x": (1, 2)}, 50, positions)
    assert {len(line) for line in lines} == {50}
    assert lines[-2].startswith("n" * 20 + "2 ")


@pytest.mark.parametrize("show", [print_summary, plot_network])
def test_wrong_shapes_are_refused(show):
    symbol, _ = model("mlp")
    with pytest.raises(ArgumentError, match=f"{show.__name__}: .*no argument 'dta'. Did you mean 'data'"):
        show(symbol, shape={"dta": (1, 10)})
    with pytest.raises(ShapeError):
        show(symbol, shape={"data": (1, 10), "fc1_weight": (3, 3)})


# ------------------------------------------------------------------------------------------------ plot_network


def nodes(plot):
    return dict(re.findall(r'^    "([^"]+)" \[label="([^"]*)"', plot.source, re.M))


def edges(plot):
    return re.findall(r'^    "([^"]+)" -> "([^"]+)" .*label="([^"]*)"\]', plot.source, re.M)


def test_a_network_is_drawn_without_its_weights():
    plot = plot_network(load(NATIVE), shape={"data": (1, 3, 8, 8)})
    assert nodes(plot) == {
        "data": "data", "conv": r"conv\nConvolution 3x3, 7", "relu": r"relu\nActivation relu", "bn": r"bn\nBatchNorm",
        "pool": r"pool\nPooling max, 2x2/2x2", "flat": r"flat\nFlatten", "fc": r"fc\nFullyConnected 4",
        "softmax_label": "softmax_label", "softmax": r"softmax\nSoftmaxOutput", "best": r"best\nargmax",
        "best_out": r"best_out\nBlockGrad"}
    assert edges(plot) == [
        ("conv", "data", "3x8x8"), ("relu", "conv", "7x8x8"), ("bn", "relu", "7x8x8"), ("pool", "bn", "7x8x8"),
        ("flat", "pool", "7x4x4"), ("fc", "flat", "112"), ("softmax", "fc", "4"), ("softmax", "softmax_label", ""),
        ("best", "fc", "4"), ("best_out", "best", "")]


def test_weights_are_drawn_on_request():
    plot = plot_network(load(NATIVE), hide_weights=False)
    assert {"conv_weight", "bn_gamma", "bn_moving_mean"} < set(nodes(plot))
    assert ("bn", "bn_moving_var", "") in edges(plot)


@pytest.mark.parametrize("path", sorted(MODELS.glob("[!j]*/*-symbol.json")), ids=lambda path: path.stem)
def test_every_model_is_drawn(path):
    symbol = load(path)
    assert set(nodes(plot_network(symbol, hide_weights=False))) == {node.name for node in symbol._graph().nodes}


def test_operators_nobody_knows_are_drawn():
    plot = plot_network(loads(UNKNOWN), shape={"x": (1, 2)})
    assert nodes(plot) == {"x": "x", "odd": r"odd\nNoSuch", "flat": r"flat\nFlatten"}
    custom = plot_network(load(MODELS / "custom" / "custom-symbol.json"))
    assert any(r"\nCustom " in label for label in nodes(custom).values())


def test_names_are_quoted_and_distinguished():
    odd = 'a"b\\c\nd'
    total = sym.elemwise_add(sym.Variable(odd), sym.Variable("same"), name="same")
    with pytest.warns(RuntimeWarning, match="multiple variables with the same name.*Repeated names: same$") as caught:
        source = plot_network(total, title='t"', node_attrs={"shape": "hexagon", "penwidth": "2"}).source
    assert len(caught) == 1
    assert source.startswith('digraph "t\\"" {\n')
    assert r'"a\"b\\c\nd" [label="a\"b\\c\nd" shape="hexagon"' in source
    assert '"same (2)" -> "same" [' in source
    assert source.count('penwidth="2"') == 3


def test_drawings_are_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    plot = plot_network(sym.Flatten(sym.Variable("x")), title="net", save_format="svg")
    assert isinstance(plot, Plot)
    assert repr(plot) == "<Plot net, 1 edges>"
    assert (plot.save(), plot.render(tmp_path / "other.gv"), plot.save("own.svg"), plot.render("only.svg")) == (
        "net.gv", str(tmp_path / "other.gv.svg"), "own.svg", "only.svg")
    seen = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    assert plot.view(directory=tmp_path / "own") == str(tmp_path / "own" / "net.gv.svg")
    assert seen == [(tmp_path / "own" / "net.gv.svg").as_uri()]
    assert {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path) if name != "own"} == {
        "net.gv": plot.source, "other.gv": plot.source, "other.gv.svg": plot.svg, "own.svg": plot.svg,
        "only.svg": plot.svg}


def test_a_picture_that_cannot_be_made_is_an_error_and_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    plot = plot_network(sym.Flatten(sym.Variable("x")))
    with pytest.raises(DeviceError, match=r"pdf is made by the program dot .* not found.*format='svg'"):
        plot.render("net")
    assert os.listdir(tmp_path) == []
    assert plot.render("net", format="svg", cleanup=True) == "net.svg"
    assert os.listdir(tmp_path) == ["net.svg"]


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for dot is a shell script")
def test_dot_makes_the_picture_where_there_is_one(tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\n/bin/cp "$4" "$3"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    plot = plot_network(sym.Flatten(sym.Variable("x")), save_format="png")
    picture = plot.render(tmp_path / "net.gv")
    assert (picture, Path(picture).read_text()) == (str(tmp_path / "net.gv.png"), plot.source)
    dot.write_text("#!/bin/sh\necho no such format >&2; exit 3\n")
    with pytest.raises(DeviceError, match=r"made no png of .*net\.gv: no such format"):
        plot.render(tmp_path / "net.gv")

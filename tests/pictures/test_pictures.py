"""Drawings: every node and line appears once, nothing overlaps, lines lead downwards and cross no box."""

from __future__ import annotations

import json
import re
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import Tensor, nn
from opreg.errors import ArgumentError
from opreg.notebook import callback
from opreg.pictures.drawing import Box, Drawing, Wire
from opreg.pictures.graph_facts import facts_of
from opreg.pictures.layered_layout import Item, Link, arrange
from opreg.pictures.layout import lay_out
from opreg.pictures.overview import overview
from opreg.pictures.svg import path_of, svg
from opreg.pictures.timeline import timelines
from opreg.symbol.json import load, loads
from opreg.testing.report import Report, Verdict
from tests import processes
from tests.cuda import strict

MODELS = Path(__file__).parent.parent / "oracle" / "models"
UNKNOWN = json.dumps({
    "nodes": [{"op": "null", "name": "x", "inputs": []},
              {"op": "NoSuch", "name": "odd<b>&", "attrs": {"k": "v"}, "inputs": [[0, 0, 0]]}],
    "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})
NUMBER = r"-?[\d.]+"


# ------------------------------------------------------------------------------------------------ any graph


def boxes_of(level, x=0.0, y=0.0):
    """Nodes and groups with their kinds, and left, top, right and bottom in the drawing."""
    for item in level.items:
        left, top = x + item.x, y + item.y
        yield item, level, (left, top, left + item.width, top + item.height)
        if item.level is not None:
            yield from boxes_of(item.level, left, top)


def check(drawing):
    """Checks the layout of a drawing, and returns it."""
    whole = lay_out(drawing)
    found = list(boxes_of(whole))
    placed = [item.box for item, _, _ in found if item.box is not None]
    assert sorted(map(id, placed)) == sorted(map(id, drawing.boxes))
    for level in whole.levels():
        apart(level)
        for line in level.lines:
            follow(level, line)
    ends = [line.wire for level in whole.levels() for line in level.lines if line.wire is not None]
    assert sorted(wire for wire in ends if not wire.frames) == sorted(set(drawing.wires).intersection(ends))
    assert sum(wire.lines for wire in ends) == sum(wire.lines for wire in drawing.wires)
    where = {id(item.box): place for item, _, place in found if item.box is not None}
    for wire in drawing.wires:
        assert where[id(drawing.boxes[wire.source])][3] < where[id(drawing.boxes[wire.target])][1]
    return whole


def apart(level):
    """Asserts that no two boxes of a level overlap, and that all are inside of the parent."""
    for item in level.items:
        assert item.x >= 0
        assert item.x + item.width <= level.width + 1e-6
        assert item.y >= 0
        assert item.y + item.height <= level.height + 1e-6
    rows = {}
    for item in level.items:
        rows.setdefault(item.row, []).append(item)
    for row in rows.values():
        for one, other in pairwise(sorted(row, key=lambda item: item.x)):
            assert one.x + one.width < other.x
    for (one, items), (_, below) in pairwise(sorted(rows.items())):
        assert max(item.y + item.height for item in items) <= level.tops[one + 1]
        assert min(item.y for item in below) >= level.tops[one] + level.rows[one]


def follow(level, line):
    """Asserts that a line leads downwards, from its source to its target, and crosses no box."""
    points = [(float(x), float(y)) for x, y in re.findall(f"({NUMBER}) ({NUMBER})", path_of(level, line))]
    assert [y for _, y in points] == sorted(y for _, y in points)
    for number, x in ((line.source, line.route.xs[0]), (line.target, line.route.xs[-1])):
        if number is not None:
            item = level.items[number]
            assert item.x - 1e-6 <= x <= item.x + item.width + 1e-6
    inside = zip(range(line.route.first + 1, line.route.last), line.route.xs[1:-1])
    for row, x in inside:
        assert not any(item.row == row and item.x < x < item.x + item.width for item in level.items)


@st.composite
def drawings(draw):
    """Random graphs: names of any length, nested groups, lines that leave groups and enter them."""
    drawing = Drawing("any")
    count = draw(st.integers(1, 25))
    for number in range(count):
        path = tuple(draw(st.lists(st.sampled_from("abc"), max_size=3)))
        outputs = ["1×2 float32"] * draw(st.integers(1, 3))
        drawing.boxes.append(Box(f"n{number}", ["n" * draw(st.integers(1, 30))], "other", outputs, path, {"name": "n"}))
        for position in range(draw(st.integers(0, 3)) if number else 0):
            source = draw(st.integers(0, number - 1))
            output = draw(st.integers(0, len(drawing.boxes[source].outputs) - 1))
            drawing.wires.append(Wire(source, output, number, position))
    for path in draw(st.lists(st.sampled_from([("a",), ("b",), ("a", "b"), ("c", "a", "b")]), unique=True)):
        drawing.cells[path] = f"Cell {path[-1]}"
    drawing.bundled = draw(st.integers(0, 2))
    return drawing


@settings(max_examples=60, deadline=None)
@given(drawings())
def test_any_graph_is_drawn(drawing):
    level = check(drawing)
    text = svg(level, drawing.numbers())
    root = ElementTree.fromstring(text)
    names = "{http://www.w3.org/2000/svg}"
    assert sorted(int(each.get("data-node")) for each in root.iter(f"{names}g") if each.get("data-node")) == list(
        range(len(drawing.boxes)))
    ends = [(each.get("data-from"), each.get("data-to")) for each in root.iter(f"{names}path") if each.get("data-to")]
    lines = [line.wire for each in level.levels() for line in each.lines if line.wire is not None]
    assert sorted(ends) == sorted((f"{wire.source}:{wire.output}", f"{wire.target}:{wire.position}") for wire in lines)


@settings(max_examples=60, deadline=None)
@given(drawings())
def test_any_overview_has_every_node_once_and_counts_every_line(drawing):
    level = check(drawing)
    found = overview(drawing, level)
    if found is None:
        assert all(each.box is not None for each in level.items)
        return
    held = [found.members.get(number, [number]) for number in map(found.numbers.get, map(id, found.drawing.boxes))]
    assert sorted(number for members in held for number in members) == list(range(len(drawing.boxes)))
    place = {number: i for i, members in enumerate(held) for number in members}
    joined = {(place[wire.source], place[wire.target], wire.source, wire.output) for wire in drawing.wires}
    crossing = [ends for *ends, _, _ in joined if ends[0] != ends[1]]
    assert all(source < target for source, target in crossing)
    assert sum(wire.lines for wire in found.drawing.wires) == len(crossing)
    ElementTree.fromstring(svg(check(found.drawing), found.numbers))


def test_labels_tell_axes_from_sizes() -> None:
    x = mx.sym.transpose(mx.sym.Reshape(mx.sym.var("x"), shape=(2, 3, 4)), axes=(0, 2, 1))
    source = mx.viz.plot_network(x).source
    assert "Reshape 2x3x4" in source and "transpose 0,2,1" in source


def test_one_line_with_a_count_leads_from_forward_to_backward_in_a_large_plan():
    net = _residual(12, True)
    for steps in (net, net.get_internals()[5]):
        executor = steps.simple_bind(mx.cpu(), data=(2, 3))
        executor.forward(is_train=True)
        drawing = mx.viz.plot_network(executor)._drawing
        whole = check(drawing)
        between = [line.wire for line in whole.lines if line.source is not None and line.target is not None
                   and whole.items[line.source].level and whole.items[line.target].level]
        crossing = [wire for wire in drawing.wires if drawing.boxes[wire.source].path[:1] == ("forward",)
                    and drawing.boxes[wire.target].path[:1] == ("backward",)]
        assert len(crossing) > 1
        if len(drawing.boxes) > 60:
            assert [(wire.frames, wire.lines) for wire in between] == [(True, len(crossing))]
        else:
            assert drawing.bundled == 0


def test_groups_hold_their_members():
    drawing = Drawing("cells", cells={("a",): "A", ("a", "b"): "B"})
    for path in ((), ("a",), ("a", "b"), ("a", "b"), ("a",), ()):
        drawing.boxes.append(Box("n", ["n"], "other", [""], path, {}))
    drawing.wires = [Wire(i, 0, i + 1, 0) for i in range(5)]
    level = check(drawing)
    assert {inner.path: len([item for each in inner.levels() for item in each.items if item.box is not None])
            for inner in level.levels()} == {(): 6, ("a",): 4, ("a", "b"): 2}


def test_a_cell_that_is_reentered_is_drawn_twice_and_a_guessed_group_is_not_drawn():
    drawing = Drawing("back")
    for path in (("a",), ("a",), (), ("a",), ("a",)):
        drawing.boxes.append(Box("n", ["n"], "other", [""], path, {}))
    drawing.wires = [Wire(i, 0, i + 1, 0) for i in range(4)]
    assert [each.path for each in check(drawing).levels()] == [()]
    drawing.cells = {("a",): "A"}
    assert [each.path for each in check(drawing).levels()] == [(), ("a",), ("a",)]


def test_large_graphs_are_laid_out_in_time_that_grows_with_them():
    def steps(count):
        drawing = Drawing("long")
        for number in range(count):
            drawing.boxes.append(Box("n", ["node"], "other", ["2 float32"], (), {}))
            for position, back in enumerate((1, 3, 90)[:number % 4]):
                if number >= back:
                    drawing.wires.append(Wire(number - back, 0, number, position))
        calls = 0

        def count_call(frame, event, arg):
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count_call)
        try:
            lay_out(drawing)
        finally:
            sys.setprofile(None)
        return calls

    assert steps(1_600) < 12 * steps(160)


# ----------------------------------------------------------------------------------------------- drawn nodes


class Block(nn.Cell):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, channels, 3), nn.Conv2d(channels, channels, 3)
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU()

    def construct(self, x):
        return self.relu(self.norm(self.conv2(self.relu(self.conv1(x)))) + x)


def texts(plot, kind):
    return re.findall(rf'class="{kind}"[^>]*>([^<]*)<', plot.svg)


@pytest.mark.parametrize("path", sorted(MODELS.glob("[!j]*/*-symbol.json")), ids=lambda path: path.stem)
def test_every_model_is_drawn_right(path):
    plot = mx.viz.plot_network(load(path), hide_weights=False)
    check(plot._drawing)
    ElementTree.fromstring(plot.svg)


def test_shapes_are_written_at_the_outputs():
    x = mx.sym.Variable("x")
    both = mx.sym.SliceChannel(x, num_outputs=2, name="sp")
    plot = mx.viz.plot_network(mx.sym.cast(both[0], dtype="float16", name="half") , shape={"x": (3, 4, 8)})
    assert texts(plot, "flow") == ["3×4×8 float32", "3×2×8 float32", "3×2×8 float32", "3×2×8 float16"]
    assert texts(mx.viz.plot_network(x * 2, dtype={"x": "int32"}), "flow") == ["int32", "int32"]
    assert texts(mx.viz.plot_network(x * 2), "flow") == []
    with pytest.raises(ArgumentError, match="no argument 'y'"):
        mx.viz.plot_network(x * 2, dtype={"y": "int32"})


def test_cells_are_frames_around_their_operators():
    plot = mx.viz.plot_network(nn.SequentialCell(Block(2), Block(2), nn.Flatten()), inputs=(1, 2, 4, 4))
    level = check(plot._drawing)
    assert [each.title for each in level.levels()][1:] == ["0 · Block", "1 · Block"]
    assert texts(plot, "name")[:3] == ["input_data", "conv1", "relu"]
    assert texts(plot, "flow")[0] == "1×2×4×4 float32"
    weights = mx.viz.plot_network(Block(2), inputs=(1, 2, 4, 4), hide_weights=False)
    assert [each.title for each in lay_out(weights._drawing).levels()][1:] == [
        "conv1 · Conv2d", "conv2 · Conv2d", "norm · BatchNorm2d"]


@pytest.mark.parametrize(("before", "groups"), [("", ["stage1", "stage2"]), ("net_", ["net_stage1", "net_stage2"])])
def test_names_tell_groups_where_there_are_no_cells(before, groups):
    x = mx.sym.Variable("data")
    for stage in (1, 2):
        for kind in ("a", "b"):
            x = mx.sym.relu(x, name=f"{before}stage{stage}_{kind}")
    plot = mx.viz.plot_network(x)
    assert [each.path for each in lay_out(plot._drawing).levels()] == [(), *[(group,) for group in groups]]
    assert texts(plot, "name") == ["data", "a", "b", "a", "b"]


def _residual(units, behind):
    """A network of residual units with sums ``y + x``, the usual form."""
    x = mx.sym.relu(mx.sym.Variable("data"), name="relu0")
    for number in range(units):
        name = f"stage{number // 2 + 1}_unit{number % 2 + 1}"
        y = mx.sym.tanh(mx.sym.sigmoid(x, name=f"{name}_in"), name=f"{name}_out")
        x = mx.sym.relu(y * 0.5 + x, name=f"{name}_relu") if behind else y + x
    return mx.sym.relu(x, name="last")


@pytest.mark.parametrize("behind", [False, True], ids=["sum last", "relu behind"])
def test_an_unnamed_node_is_in_the_group_of_its_inputs_and_readers(behind):
    plot = mx.viz.plot_network(_residual(6, behind))
    level = check(plot._drawing)
    units = [(f"stage{stage}", f"unit{unit}") for stage in (1, 2, 3) for unit in (1, 2)]
    assert {each.path for each in level.levels()} == {(), *[unit[:1] for unit in units], *units}
    where = {item.box.name: each.path for item, each, _ in boxes_of(level) if item.box is not None}
    scalar, last = [name for name in where if "mulscalar" in name], [name for name in where if "plus" in name]
    if behind:
        assert [where[name] for name in last] == [where[name] for name in scalar] == units
    else:  # between two units of a stage, or two stages
        assert [where[name] for name in last] == [("stage1",), (), ("stage2",), (), ("stage3",), ()]


def test_an_unnamed_node_of_an_operator_that_ends_in_a_digit_has_no_group_of_its_own():
    """The name ``linalg_gemm20`` is the operator's with a number, and not ``gemm20`` in ``linalg``."""
    x = mx.sym.Variable("x")
    for layer in ("layer0", "layer1"):
        left, right = (mx.sym.relu(x, name=f"{layer}_{side}") for side in ("left", "right"))
        x = mx.sym.tanh(mx.sym.linalg_gemm2(left, right), name=f"{layer}_out")
    level = check(mx.viz.plot_network(x)._drawing)
    where = {item.box.name: each.path for item, each, _ in boxes_of(level) if item.box is not None}
    assert [path for name, path in where.items() if "gemm" in name] == [("layer0",), ("layer1",)]


def test_a_name_is_short_in_its_frame_alone():
    x = mx.sym.Variable("x")
    inside = mx.sym.relu(mx.sym.relu(x, name="part_a"), name="part_b")
    outside = mx.sym.relu(inside, name="outside")
    whole = mx.sym.relu(mx.sym.tanh(outside, name="other_c") + mx.sym.tanh(inside, name="other_d"), name="part_e")
    plot = mx.viz.plot_network(whole)  # the lines leave ``part`` and come back, so it has no frame
    level = check(plot._drawing)
    assert [each.path for each in level.levels()] == [()] or ("part",) not in {each.path for each in level.levels()}
    assert {"part_a", "part_b", "part_e"} <= set(texts(plot, "name"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "a", "a_b", "a_c", "d"]), st.integers(0, 9), st.integers(0, 9)),
                min_size=2, max_size=14))
def test_frames_and_the_text_of_a_box_give_the_nodes_name(nodes):
    made = [mx.sym.Variable("x")]
    for number, (scope, one, other) in enumerate(nodes):
        left, right = made[one % len(made)], made[other % len(made)]
        made.append(left + right if not scope else mx.sym.broadcast_mul(left, right, name=f"{scope}_n{number}"))
    drawing = mx.viz.plot_network(mx.sym.Group(made[1:]))._drawing
    for item, level, _ in boxes_of(check(drawing)):
        if item.box is not None and not item.box.name.startswith("_"):
            assert "_".join([*level.path, item.box.lines[0]]) == item.box.name


def test_operators_nobody_knows_and_names_of_any_kind_are_drawn():
    plot = mx.viz.plot_network(loads(UNKNOWN))
    assert '<g class="node unknown head"' in plot.svg
    assert texts(plot, "name") == ["x", "odd&lt;b&gt;&amp;"]
    assert "which is not registered" in plot.svg
    name = "n" * 80
    drawn = texts(mx.viz.plot_network(mx.sym.relu(mx.sym.Variable("x"), name=name)), "name")[1]
    assert len(drawn) == 30
    assert "…" in drawn


def of_words(name):
    """All texts that show a name, as XML: SVG, and HTML, which is valid XML, too."""
    x = mx.sym.Variable(name)
    net = mx.sym.exp(mx.sym.FullyConnected(x, num_hidden=2, name=f"fc{name}"), name=f"{name}e")
    bound = net.simple_bind(mx.cpu(), **{name: (2, 3)})
    chart = callback.LiveLearningCurve("accuracy")
    chart.metric_name, chart.lines = name, {name: [(0.0, 1.0), (1.0, 2.0)]}
    yield mx.viz.plot_network(net, title=name, shape={name: (2, 3)}).svg
    yield mx.viz.plot_network(bound).svg
    yield net._repr_svg_()
    yield chart._repr_svg_()
    for shown in (bound, bound.profile(1), bound.estimate(), bound.memory(), bound.explain(),
                  Report(name, [Verdict(name, name, "failed", name, name, name)])):
        yield shown._repr_html_().replace("<br>", "<br/>")
    for timeline in timelines(*(getattr(facts_of("test", bound, None, None, True, None), part)
                                for part in ("plan", "segments"))):
        yield timeline.svg({})
    page = mx.viz.page(net, title=name, shape={name: (2, 3)})
    page.html.encode()
    yield from re.findall(r"(?s)<svg.*?</svg>", page.html)


@pytest.mark.parametrize(("name", "written"), [
    ("\x00", "␀"), ("\x1b[31m", "␛[31m"), ("a\x7fb\x9f", "a\ufffdb\ufffd"), ("\ud800", "\ufffd"),
    ("\ufffe\uffff", "\ufffd\ufffd"), ("\u202eabc", "\ufffdabc"), ("]]>", "]]>"), ("&#0;", "&#0;"),
    ("</title></svg><script>", "</title></svg><script>"), ("\"'><b onload='x'", "\"'><b onload='x'"),
    ("<!--", "<!--"), ("🙂é", "🙂é")])
def test_pictures_and_tables_are_xml_whatever_a_name_is(name, written):
    plain = [ElementTree.fromstring(text) for text in of_words("plain")]
    for text, expected in zip(of_words(name), plain, strict=True):
        text.encode()
        root = ElementTree.fromstring(text)
        assert any(written in words for each in root.iter() for words in [*each.itertext(), *each.attrib.values()])
        assert {(each.tag, *each.attrib) for each in root.iter()} == {(each.tag, *each.attrib)
                                                                      for each in expected.iter()}


@pytest.mark.parametrize("names", [["\0", "␀"], ["\ud800", "\ufffd"], ["a", "a", "a (2)"], ["a (2)", "a", "a"]])
def test_nodes_of_dot_have_names_of_their_own(names):
    net = mx.sym.Group([mx.sym.Variable(name) for name in names])
    with warnings.catch_warnings(action="ignore"):
        source = mx.viz.plot_network(net).source
    source.encode()
    assert len(set(re.findall(r'(?m)^    ("[^"]*") \[', source))) == len(names)


@pytest.mark.parametrize(("scheme", "dark"), [("light", 0), ("dark", 1), ("auto", 1)])
def test_pictures_are_light_dark_or_as_the_reader_prefers(scheme, dark):
    text = mx.viz.plot_network(mx.sym.Variable("x") * 2).to_svg(scheme)
    assert text.count("#0d1117") == dark
    assert ("prefers-color-scheme" in text) == (scheme == "auto")


def test_objects_that_are_no_graphs_are_refused():
    with pytest.raises(ArgumentError, match="plot_network: expected a Symbol, a Cell or an Executor, got int"):
        mx.viz.plot_network(3)
    with pytest.raises(ArgumentError, match="scheme='pink'"):
        mx.viz.plot_network(mx.sym.Variable("x") * 2).to_svg("pink")


# ----------------------------------------------------------------------------------------------------- plans


def executor(grad_req="write"):
    x = mx.sym.Variable("x")
    net = mx.sym.FullyConnected(mx.sym.exp(x * 2 + 1), num_hidden=64, name="fc")
    return mx.sym.sum(mx.sym.tanh(net) * net).simple_bind(mx.cpu(), x=(8, 32), grad_req=grad_req)


def test_a_plan_is_drawn_with_what_is_fused_and_where_results_lie():
    bound = executor()
    plot = mx.viz.plot_network(bound)
    check(plot._drawing)
    kinds = {box.name: box.kind for box in plot._drawing.boxes}
    assert "fused" in kinds.values()
    places = [box.memory for box in plot._drawing.boxes if box.memory is not None]
    assert len(set(places)) < len(places)
    assert 'class="memory"' in plot.svg
    assert [each.path for each in lay_out(plot._drawing).levels()][:2] == [(), ("forward",)]


@pytest.mark.parametrize("grad_req", ["write", "null"])
@pytest.mark.parametrize("name", ["mlp", "lenet", "resnet", "transformer"])
def test_results_in_the_same_memory_have_disjoint_lifetimes(name, grad_req):
    about = json.loads((MODELS / name / "about.json").read_text())
    symbol = load(MODELS / name / f"{name}-symbol.json")
    bound = symbol.simple_bind(mx.cpu(), grad_req=grad_req, **{
        each: tuple(shape) for each, shape in {**about["inputs"], **about["labels"]}.items()})
    plan = bound.plan(grad_req == "write")
    for timeline in timelines(plan, bound._plans_of(plan.is_train)[0].segments):
        assert timeline.stays
        assert max(timeline.used) <= timeline.nbytes
        for i, one in enumerate(timeline.stays):
            assert 0 <= one.first <= one.last < len(timeline.used)
            for other in timeline.stays[:i]:
                together = one.first <= other.last and other.first <= one.last
                assert not (together and one.offset < other.offset + other.nbytes
                            and other.offset < one.offset + one.nbytes)
        ElementTree.fromstring(timeline.svg({}))
    check(mx.viz.plot_network(bound)._drawing)


def test_an_executor_of_several_plans_is_drawn_as_its_graph():
    x = mx.sym.Variable("x")
    bound = mx.sym.contrib.boolean_mask(x, mx.sym.Variable("m")).simple_bind(mx.cpu(), x=(4, 2), m=(4,))
    assert [box.name for box in mx.viz.plot_network(bound)._drawing.boxes][:2] == ["x", "m"]


# ------------------------------------------------------------------------------------------- print_summary


class Shared(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Dense(4, 4), nn.BatchNorm1d(4)
        self.dense.bias.requires_grad = False

    def construct(self, x, y):
        return self.norm(self.dense(self.dense(x))), y


def summary(capsys, *args):
    mx.viz.print_summary(*args, line_length=90)
    lines = capsys.readouterr().out.splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines[3:] if not re.fullmatch("_*|=*", line)]


@pytest.mark.parametrize("inputs", [[(2, 4), (3,)], (Tensor(np.ones((2, 4), np.float32)), Tensor([1.0, 2.0, 3.0]))],
                         ids=["shapes", "tensors"])
def test_a_cell_is_listed_by_its_calls(capsys, inputs):
    cell = Shared()
    before = cell.norm.moving_mean.asnumpy()
    assert summary(capsys, cell, inputs) == [
        ["Shared", "2x4 3", "0", "0"], ["dense (Dense)", "2x4", "20", "16"], ["dense (Dense)", "2x4", "0", "0"],
        ["norm (BatchNorm1d)", "2x4", "16", "8"], ["Total params: 36"], ["Trainable params: 24"],
        ["Non-trainable params: 12"]]
    np.testing.assert_array_equal(cell.norm.moving_mean.asnumpy(), before)
    assert not any("_run" in each.__dict__ for _, each in cell.cells_and_names())


def test_a_cell_without_inputs_is_listed_without_shapes(capsys):
    assert summary(capsys, nn.SequentialCell(nn.Dense(2, 3)))[:2] == [
        ["SequentialCell", "0", "0"], ["0 (Dense)", "9", "9"]]


def test_a_cell_that_cannot_be_a_graph_is_run(capsys):
    class Odd(nn.Cell):
        def construct(self, x):
            return x * float(x.asnumpy().sum())

    assert summary(capsys, Odd(), Tensor([1.0, 2.0]))[0] == ["Odd", "2", "0", "0"]


# ------------------------------------------------------------------------------------------------- notebooks


def rows(html):
    return [re.findall(r">([^<]*)</t[dh]>", row) for row in re.findall("<tr>(.*?)</tr>", html)]


@pytest.mark.parametrize(("array", "caption", "cells"), [
    (lambda: mx.nd.array([[1, 2.5]]), "NDArray (1, 2) float32 @cpu(0)", [["1", "2.5"]]),
    (lambda: Tensor([1, 2]), "Tensor (2,) int64 @cpu(0)", [["1", "2"]]),
    (lambda: mx.nd.array(7), "NDArray () float32 @cpu(0)", [["7"]]),
    (lambda: mx.nd.zeros((0, 3)), "NDArray (0, 3) float32 @cpu(0)", []),
    (lambda: mx.nd.array([[[True]]], dtype="bool"), "NDArray (1, 1, 1) bool @cpu(0), shown: [0, :, :]", [["True"]]),
    (lambda: mx.nd.arange(20), "NDArray (20,) float32 @cpu(0)", [[*"01234", "…", "15", "16", "17", "18", "19"]]),
    (lambda: Tensor([1.5], mx.bfloat16), "Tensor (1,) bfloat16 @cpu(0)", [["1.5"]]),
], ids=["matrix", "tensor", "scalar", "empty", "three axes", "long", "bfloat16"])
def test_arrays_are_shown_as_html_tables(array, caption, cells):
    html = array()._repr_html_()
    assert f"<caption>{caption}</caption>" in html
    assert rows(html) == cells


def test_numbers_on_a_device_are_shown_and_few_of_them_leave_it():
    array = mx.nd.array(np.arange(2 * 40 * 50).reshape(2, 40, 50), ctx=mx.Context("strict", 1))
    waited = strict.xp.synchronisations
    shown = rows(array._repr_html_())
    assert strict.xp.synchronisations == waited + 1
    assert (len(shown), len(shown[0])) == (11, 11)
    assert [shown[0][0], shown[0][-1], shown[-1][0], shown[5][5]] == ["0", "49", "1950", "…"]


def test_every_displayed_object_has_a_picture_or_a_table():
    x = mx.sym.Variable("a<b")
    bound = mx.sym.exp(x, name="e<f").simple_bind(mx.cpu(), **{"a<b": (2, 3)})
    assert rows(bound._repr_html_())[1:] == [["argument", "a&lt;b", "(2, 3)", "float32", "cpu(0)", "write"],
                                             ["output", "e&lt;f_output", "(2, 3)", "float32", "cpu(0)", ""]]
    for shown in (bound.profile(1), bound.estimate(), bound.memory(), bound.explain(),
                  mx.jit(lambda t: t * 2).explain(),
                  mx.sym.exp(x).bind(mx.cpu(), [mx.nd.ones((2,))], check_kernels=True).kernel_report()):
        ElementTree.fromstring(shown._repr_html_())
    assert "<b>forward:</b>" in bound.explain()._repr_html_()
    assert "e&lt;f" in bound.profile(1)._repr_html_()
    assert isinstance(bound.explain(), str)
    assert rows(nn.SequentialCell(nn.Dense(2, 3))._repr_html_())[1:] == [["SequentialCell", "0", "0"],
                                                                         ["\u20030 (Dense)", "9", "9"]]
    ElementTree.fromstring((x * 2)._repr_svg_())
    long = x
    for _ in range(400):
        long = long + 1
    assert long._repr_svg_() is None
    two, three = (mx.sym.Variable(name, shape=(size,)) for name, size in (("two", 2), ("three", 3)))
    assert mx.sym.elemwise_add(two, three)._repr_svg_() is None
    assert (mx.sym.Variable("same") + mx.sym.Variable("same"))._repr_svg_().count("same</text>") == 2
    report = mx.operator.check("relu", [[0.3, -1.2]])
    assert report._repr_html_().startswith("<table>")


def test_pictures_are_loaded_at_first_use():
    program = ("import sys, opreg as mx; x = mx.nd.ones((2,)); s = mx.sym.Variable('x') * 2; mx.nn.Dense(2, 3)\n"
               "print(any(name.startswith('opreg.pictures') for name in sys.modules))\n"
               "x._repr_html_(); print('opreg.pictures' in sys.modules)")
    done = processes.run(program)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_the_document_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parent.parent.parent / "docs" / "pictures.md").read_text()
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "pictures.md", "exec"), space)
    assert {path.name for path in tmp_path.iterdir()} == {"net.svg", "cell.svg", "plan.svg", "net.html"}
    assert "Trainable params" in capsys.readouterr().out


def test_lines_from_several_outputs_do_not_cross_beside_a_long_line() -> None:
    """The gates of an unrolled LSTM stand in the order of the outputs that they read, though one is read far below."""
    slice_, gates, product, state, out = 0, (1, 2, 3, 4), (5, 6), 7, 8
    items = [Item(200.0 if i == slice_ else 60.0, 20.0) for i in range(9)]
    links = [Link(slice_, gate, start, None, ("slice", i))
             for i, (gate, start) in enumerate(zip(gates, (-75.0, -25.0, 25.0, 75.0)))]
    links += [Link(source, target, 0.0, None, source) for source, target in (
        (1, 6), (3, 6), (2, 5), *[(each, state) for each in product], (state, out), (4, out))]
    rows = arrange(items, links)
    assert sorted(gates, key=lambda gate: rows.x[gate]) == [*gates]


@pytest.mark.parametrize("name, words", [
    ("net.html", r"\.html files are written by mx\.viz\.page\(…\)\.save"),
    ("net.PNG", r"\.png files are written by render\(format='png'\)")])
def test_a_file_that_save_does_not_write_is_refused(name: str, words: str, tmp_path: Path) -> None:
    plot = mx.viz.plot_network(mx.sym.exp(mx.sym.var("x")))
    with pytest.raises(ArgumentError, match=words):
        plot.save(tmp_path / name)
    assert not list(tmp_path.iterdir())

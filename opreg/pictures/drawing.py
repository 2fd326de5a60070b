"""Drawings of graphs: labelled nodes, and wires from their outputs to inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from opreg.core.graph import Graph, Node
from opreg.core.placeholder import placeholder
from opreg.core.spec import Spec, is_known, size
from opreg.ndarray.context import Context
from opreg.symbol.json import stored_attrs, stored_name
from opreg.symbol.passes.memory import Storage
from opreg.symbol.plan import Plan, Segment, Step

from .labels import detail, kind_of
from .measures import LINE, shorten
from .names import Path, by_cells, by_names, short_name

__all__ = ["SEVERAL", "Box", "Drawing", "Wire", "of_graph", "of_plan", "places", "spec_text", "step_facts"]

#: Number of nodes from which a plan has one line from forward to backward, and a page has an overview.
SEVERAL = 60
#: Attributes of fused nodes that only plans use.
_OWN = frozenset(("members", "operators", "origins", "parts"))
#: Facts about a node: pairs of name and text.
Facts = dict[str, str]


@dataclass
class Box:
    """A node of a drawing.

    Attributes
    ----------
    name : str
        Full name.
    lines : list of str
        Lines of text in the box, if it is in no frame.
    kind : str
        Kind of operator, a class of the style sheet that sets the colour.
    outputs : list of str
        Labels of the outputs.
    path : tuple of str
        Names of the groups that contain it, the outermost first.
    facts : dict
        Facts about the node, by name.
    memory : int or None
        Number of the memory segment of its result; results with the same number share memory in turn.
    head : bool
        Whether its result is an output of the graph.
    inside : function of a path, or None
        Lines of text in the box inside frames of this path, which already show the start of its name.
    """

    name: str
    lines: list[str]
    kind: str
    outputs: list[str]
    path: Path
    facts: Facts
    memory: int | None = None
    head: bool = False
    inside: Callable[[Path], list[str]] | None = None

    @property
    def height(self) -> float:
        """Height of the box without the labels of its outputs."""
        return LINE * len(self.lines) + 12


class Wire(NamedTuple):
    """A wire from an output of a node to an input of another, given by node numbers.

    Attributes
    ----------
    lines : int
        Number of the wires that it stands for.
    frames : bool
        Whether it connects the outermost groups that contain one of its ends only, instead of the ends.
    """

    source: int
    output: int
    target: int
    position: int
    lines: int = 1
    frames: bool = False


@dataclass
class Drawing:
    """Nodes in topological order, and wires.

    Attributes
    ----------
    title : str
    boxes, wires : list
    cells : dict
        Titles of the groups that are known, instead of guessed from names.
    nodes : dict of Node to int
        Number of each drawn node.
    bundled : int
        Number of nested groups, from the outside, between which one line stands for all wires.
    """

    title: str
    boxes: list[Box] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    cells: dict[Path, str] = field(default_factory=dict)
    nodes: dict[Node, int] = field(default_factory=dict)
    bundled: int = 0

    def numbers(self) -> dict[int, int]:
        """The number of each node, by ``id`` of its box."""
        return {id(box): number for number, box in enumerate(self.boxes)}

    def add(self, node: Node, box: Box) -> None:
        """Add a node and the wires to its inputs."""
        number = self.nodes[node] = len(self.boxes)
        for position, (source, output) in enumerate(node.inputs):
            if source in self.nodes:
                self.wires.append(Wire(self.nodes[source], output, number, position))
                labels = self.boxes[self.nodes[source]].outputs
                labels += [""] * (output + 1 - len(labels))
        self.boxes.append(box)


def spec_text(spec: Spec | None) -> str:
    """Shape and dtype as text, as far as they are known."""
    if spec is None or spec.shape is None:
        return "" if spec is None or spec.dtype is None else spec.dtype.name
    shape = "×".join(str(dim) if is_known((dim,)) else "?" for dim in spec.shape) or "scalar"
    return shape if spec.dtype is None else f"{shape} {spec.dtype.name}"


def _visible(node: Node) -> int:
    return 1 if node.op is None else node.op.signature.visible(node.attrs)


def _facts(node: Node, specs: Sequence[Spec]) -> Facts:
    facts = {"name": node.name, "operator": "" if node.op is None else stored_name(node)}
    if placeholder(node) is not None:
        facts["operator"] += ", which is not registered"
    if "operators" in node.attrs:
        facts["operator"] += f" of {', '.join(node.attrs['operators'])}"
        facts["nodes"] = ", ".join(f"{name} ({where})" if where else name
                                   for name, where in node.attrs.get("origins", ()))
    facts["attributes"] = ", ".join(f"{name}={shorten(text, 300)}" for name, text in stored_attrs(node).items()
                                    if name not in _OWN)
    facts["inputs"] = ", ".join(f"{source.name}[{index}]" if source.count > 1 else source.name
                                for source, index in node.inputs)
    facts["gives"] = ", ".join(text for text in map(spec_text, specs[:_visible(node)]) if text)
    if node.op is None and specs and is_known(specs[0].shape):
        facts["numbers"] = f"{size(specs[0].shape):,}"
    facts["made at"] = str(node.where or "")
    return {title: text for title, text in facts.items() if text}


def _labels(node: Node, specs: Sequence[Spec]) -> list[str]:
    return [spec_text(specs[i]) if i < len(specs) else "" for i in range(_visible(node))]


def _repeats_operator(name: str, node: Node) -> bool:
    """Whether a node's name, without its number, equals the text about its operator."""
    return name.rstrip("0123456789").strip("_") == detail(node).lower().strip("_")


def of_graph(title: str, graph: Graph, specs: Mapping[Node, Sequence[Spec]], hidden: set[Node],
             cells: Mapping[Path, str] | None = None) -> Drawing:
    """The drawing of a graph.

    Parameters
    ----------
    title : str
        Its name.
    graph : Graph
        The drawn graph.
    specs : mapping of Node to list of Spec
        Known shapes and dtypes; unknown for other nodes.
    hidden : set of Node
        Nodes that are not drawn.
    cells : mapping, optional
        Titles of the Cells it was traced from, by path.
    """
    drawing = Drawing(title, cells=dict(cells or {}))
    nodes = [node for node in graph.nodes if node not in hidden]
    paths = by_names(nodes) if cells is None else by_cells(nodes, cells)
    heads = {node for node, _ in graph.heads}
    for node, path in zip(nodes, paths):
        drawing.add(node,
                    Box(node.name, _lines_of_text(node, ()), kind_of(node), _labels(node, specs.get(node, ())), path,
                        _facts(node, specs.get(node, ())), None, node in heads,
                        functools.partial(_lines_of_text, node)))
    return drawing


def _lines_of_text(node: Node, path: Path) -> list[str]:
    """Lines of text in a node's box inside frames of this path."""
    name = short_name(node, path)
    return [shorten(name), *([] if node.op is None or _repeats_operator(name, node) else [shorten(detail(node))])]


# ---------------------------------------------------------------------------------------------------- plans


def step_facts(step: Step) -> Facts:
    """Facts about a step that its plan holds."""
    facts = {"kernel": step.kernel,
             "declined": "; ".join(f"{kernel}: {reason}" for kernel, reason in step.declined),
             "result in": step.where, "copies": step.copies}
    return {title: text for title, text in facts.items() if text}


def places(plan: Plan, segments: Sequence[tuple[str, Segment]]) -> dict[Storage, int]:
    """The numbers of memory segments, in order of use; segments at the same offset have the same number."""
    numbers: dict[tuple[Context, int], int] = {}
    found: dict[Storage, int] = {}
    for _, segment in segments:
        for step in segment.steps:
            for i in range(0 if step.node is None else len(plan.specs[step.node])):
                storage = plan.memory.storage.get((step.node, i))  # type: ignore[arg-type]
                if storage is not None and storage.pinned is None:
                    found[storage] = numbers.setdefault((storage.ctx, storage.offset), len(numbers))
    return found


def of_plan(title: str, plan: Plan, segments: Sequence[tuple[str, Segment]], hidden: set[str],
            times: Mapping[tuple[str, int], str]) -> Drawing:
    """The drawing of a plan: its steps that are nodes, in order of execution.

    Parameters
    ----------
    title : str
        Its name.
    plan : Plan
        The drawn plan.
    segments : sequence of (str, Segment)
        Its parts, by name.
    hidden : set of str
        Variables that are not drawn.
    times : mapping of (str, int) to str
        Durations of steps, by part and number.
    """
    drawing = Drawing(title)
    steps = [(half, number, step) for half, segment in segments for number, step in enumerate(segment.steps)
             if step.node is not None]
    halves = list(dict.fromkeys(half for half, _, _ in steps))
    paths: list[Path] = []
    for half in halves:
        group = by_names([step.node for each, _, step in steps if each == half and step.node is not None])
        paths += [(half, *path) if len(halves) > 1 else path for path in group]
    drawing.cells = {(half,): half for half in halves}
    memory = places(plan, segments)
    for (half, number, step), path in zip(steps, paths):
        node = step.node
        assert node is not None
        for source, _ in node.inputs:
            if source.op is None and source not in drawing.nodes and source.name not in hidden:
                drawing.add(source, Box(source.name, [shorten(source.name)], kind_of(source),
                                        _labels(source, plan.specs[source]), (),
                                        _facts(source, plan.specs[source])))
        specs = plan.specs[node]
        time = times.get((half, number), "")
        lines = [shorten(", ".join(node.attrs["operators"]) if "operators" in node.attrs else detail(node)),
                 shorten(" · ".join(part for part in (step.kernel, time) if part))]
        facts = {**_facts(node, specs), "step": f"{half} {number}", **step_facts(step)}
        if time:
            facts["takes"] = time
        kind = "fused" if "operators" in node.attrs else "view" if step.kernel == "view" else kind_of(node)
        storage = plan.memory.storage.get((node, 0))
        drawing.add(node, Box(node.name, _step_written(node, lines, 0, ()), kind, _labels(node, specs), path, facts,
                              None if storage is None else memory.get(storage), False,
                              functools.partial(_step_written, node, lines, int(len(halves) > 1))))
    drawing.bundled = int(len(drawing.boxes) > SEVERAL)
    return drawing


def _step_written(node: Node, lines: list[str], halves: int, path: Path) -> list[str]:
    """Lines of text in a step's box inside frames of this path, which may start with the name of a half."""
    return [shorten(short_name(node, path[halves:])), *lines]

"""Drawings of graphs: nodes with the text in them, and wires between their outputs and inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from opreg.core.graph import Graph, Node
from opreg.core.placeholder import placeholder
from opreg.core.spec import Spec, known, size
from opreg.ndarray.context import Context
from opreg.symbol.json import stored_attrs, stored_name
from opreg.symbol.passes.memory import Storage
from opreg.symbol.plan import Plan, Segment, Step

from .labels import detail, kind_of
from .measures import LINE, shortened
from .names import Path, by_cells, by_names, short_name

__all__ = ["Box", "Drawing", "Wire", "of_graph", "of_plan", "places", "spec_text", "step_facts"]

#: Attributes of fused nodes that plans alone read.
_OWN = frozenset(("members", "operators", "origins", "parts"))
#: Facts about a node, what they are and what they say.
Facts = dict[str, str]


@dataclass
class Box:
    """A node as it is drawn.

    Attributes
    ----------
    name : str
        Its whole name.
    lines : list of str
        What is written in it, as it would be without frames.
    kind : str
        What it is coloured by, a class of the style sheet.
    outputs : list of str
        What is written at its outputs.
    path : tuple of str
        The groups it is in.
    facts : dict
        What there is to say about it.
    memory : int or None
        The number of the place in memory that its result is in; results with one number take turns.
    head : bool
        Whether the graph gives its result.
    inside : function of a path, or None
        What is written in it inside of these frames, which say the beginning of its name.
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
        """Height of the box alone."""
        return LINE * len(self.lines) + 12


class Wire(NamedTuple):
    """From an output of a node to an input of another one, by their numbers; ``lines`` of them where it stands for
    several."""

    source: int
    output: int
    target: int
    position: int
    lines: int = 1


@dataclass
class Drawing:
    """Nodes, each behind those it needs, and wires.

    Attributes
    ----------
    title : str
    boxes, wires : list
    cells : dict
        Titles of groups that are more than a guess from names.
    nodes : dict of Node to int
        The numbers of what is drawn.
    """

    title: str
    boxes: list[Box] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    cells: dict[Path, str] = field(default_factory=dict)
    nodes: dict[Node, int] = field(default_factory=dict)

    def numbers(self) -> dict[int, int]:
        """The number of each node, by the identity of its box."""
        return {id(box): number for number, box in enumerate(self.boxes)}

    def add(self, node: Node, box: Box) -> None:
        """Add a node with the wires that come to it."""
        number = self.nodes[node] = len(self.boxes)
        for position, (source, output) in enumerate(node.inputs):
            if source in self.nodes:
                self.wires.append(Wire(self.nodes[source], output, number, position))
                labels = self.boxes[self.nodes[source]].outputs
                labels += [""] * (output + 1 - len(labels))
        self.boxes.append(box)


def spec_text(spec: Spec | None) -> str:
    """Shape and dtype, as far as they are known."""
    if spec is None or spec.shape is None:
        return "" if spec is None or spec.dtype is None else spec.dtype.name
    shape = "×".join(str(dim) if known((dim,)) else "?" for dim in spec.shape) or "scalar"
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
    facts["attributes"] = ", ".join(f"{name}={shortened(text, 300)}" for name, text in stored_attrs(node).items()
                                    if name not in _OWN)
    facts["inputs"] = ", ".join(f"{source.name}[{index}]" if source.count > 1 else source.name
                                for source, index in node.inputs)
    facts["gives"] = ", ".join(text for text in map(spec_text, specs[:_visible(node)]) if text)
    if node.op is None and specs and known(specs[0].shape):
        facts["numbers"] = f"{size(specs[0].shape):,}"
    facts["made at"] = str(node.where or "")
    return {title: text for title, text in facts.items() if text}


def _labels(node: Node, specs: Sequence[Spec]) -> list[str]:
    return [spec_text(specs[i]) if i < len(specs) else "" for i in range(_visible(node))]


def _says(name: str, node: Node) -> bool:
    """Whether a name says all that there is to say of the operator."""
    return name.rstrip("0123456789").strip("_") == detail(node).lower().strip("_")


def of_graph(title: str, graph: Graph, specs: Mapping[Node, Sequence[Spec]], hidden: set[Node],
             cells: Mapping[Path, str] | None = None) -> Drawing:
    """A graph as it was written.

    Parameters
    ----------
    title : str
        Its name.
    graph : Graph
        The drawn graph.
    specs : mapping of Node to list of Spec
        What is known of shapes and dtypes; nothing of nodes that are not in it.
    hidden : set of Node
        Those that are left out.
    cells : mapping, optional
        The Cells it was traced from, their titles by their paths.
    """
    drawing = Drawing(title, cells=dict(cells or {}))
    nodes = [node for node in graph.nodes if node not in hidden]
    paths = by_names(nodes) if cells is None else by_cells(nodes, cells)
    heads = {node for node, _ in graph.heads}
    for node, path in zip(nodes, paths):
        drawing.add(node, Box(node.name, _written(node, ()), kind_of(node), _labels(node, specs.get(node, ())), path,
                              _facts(node, specs.get(node, ())), None, node in heads,
                              functools.partial(_written, node)))
    return drawing


def _written(node: Node, path: Path) -> list[str]:
    """Lines in the box of a node inside of these frames."""
    name = short_name(node, path)
    return [shortened(name), *([] if node.op is None or _says(name, node) else [shortened(detail(node))])]


# ---------------------------------------------------------------------------------------------------- plans


def step_facts(step: Step) -> Facts:
    """Facts that a plan knows of a step."""
    facts = {"kernel": step.kernel,
             "declined": "; ".join(f"{kernel}: {reason}" for kernel, reason in step.declined),
             "result in": step.where, "copies": step.copies}
    return {title: text for title, text in facts.items() if text}


def places(plan: Plan, segments: Sequence[tuple[str, Segment]]) -> dict[Storage, int]:
    """Numbers of the stretches of arenas, in the order they are used; those that begin at one place have one number."""
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
    """The steps of a plan that are nodes, in the order they run.

    Parameters
    ----------
    title : str
        Its name.
    plan : Plan
        The drawn plan.
    segments : sequence of (str, Segment)
        Its parts.
    hidden : set of str
        Variables that are left out.
    times : mapping of (str, int) to str
        How long steps take, by part and number.
    """
    drawing = Drawing(title)
    steps = [(half, number, step) for half, segment in segments for number, step in enumerate(segment.steps)
             if step.node is not None]
    halves = list(dict.fromkeys(half for half, _, _ in steps))
    paths: list[Path] = []
    for half in halves:
        own = by_names([step.node for each, _, step in steps if each == half and step.node is not None])
        paths += [(half, *path) if len(halves) > 1 else path for path in own]
    drawing.cells = {(half,): half for half in halves}
    memory = places(plan, segments)
    for (half, number, step), path in zip(steps, paths):
        node = step.node
        assert node is not None
        for source, _ in node.inputs:
            if source.op is None and source not in drawing.nodes and source.name not in hidden:
                drawing.add(source, Box(source.name, [shortened(source.name)], kind_of(source),
                                        _labels(source, plan.specs[source]), (),
                                        _facts(source, plan.specs[source])))
        specs = plan.specs[node]
        time = times.get((half, number), "")
        said = [shortened(", ".join(node.attrs["operators"]) if "operators" in node.attrs else detail(node)),
                shortened(" · ".join(part for part in (step.kernel, time) if part))]
        facts = {**_facts(node, specs), "step": f"{half} {number}", **step_facts(step)}
        if time:
            facts["takes"] = time
        kind = "fused" if "operators" in node.attrs else "view" if step.kernel == "view" else kind_of(node)
        storage = plan.memory.storage.get((node, 0))
        drawing.add(node, Box(node.name, _step_written(node, said, 0, ()), kind, _labels(node, specs), path, facts,
                              None if storage is None else memory.get(storage), False,
                              functools.partial(_step_written, node, said, int(len(halves) > 1))))
    return drawing


def _step_written(node: Node, said: list[str], halves: int, path: Path) -> list[str]:
    """Lines in the box of a step inside of these frames, of which the first may be that of a half."""
    return [shortened(short_name(node, path[halves:])), *said]

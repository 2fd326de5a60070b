"""The cut of a graph with sparse arrays: the nodes that compute on stored elements, and the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from opreg.core import effects
from opreg.core.declarations import ZERO
from opreg.core.graph import Entry, Graph, Node, rewrite
from opreg.core.spec import Spec, is_known
from opreg.ndarray.sparse_rules import result_stype

from .naming import output_name

__all__ = ["SparseCut", "inputs_with_few_rows"]

T = TypeVar("T")


def inputs_with_few_rows(node: Node, stypes: Mapping[Node, str]) -> list[Node]:
    """The inputs of a node whose gradients have few rows that are not zero, as its operator says."""
    rule = None if node.op is None else node.op.rules.few_rows
    sources = [source for source, _ in node.inputs]
    indices = () if rule is None else rule(node.attrs, [stypes.get(source, "default") for source in sources])
    return [sources[i] for i in indices]


class SparseCut:
    """A graph cut in two: nodes that run one by one, and a remaining graph, which is planned.

    Attributes
    ----------
    nodes : list of Node
        The nodes that run one by one, inputs before users.
    stypes : dict of Entry to str
        The storage types of their results, and of the variables.
    crossing : dict of Entry to Node
        Entries that the remaining graph reads: results of ``nodes``, and variables that are sparse or have sparse
        gradients. Each has its variable in the remaining graph.
    heads : list of Entry
        The outputs of the graph that ``nodes`` compute.
    remaining : list of Entry
        The other outputs, as entries of the remaining graph.
    early : list of bool
        For each output of the graph, whether it is one of ``heads``.
    """

    def __init__(self, graph: Graph, specs: Mapping[Node, Sequence[Spec]], stypes: Mapping[Node, str],
                 by_rows: Collection[Node], one_by_one: bool):
        self.stypes: dict[Entry, str] = {(node, 0): stype for node, stype in stypes.items()}
        able: set[Node] = set()
        chosen: set[Node] = set()
        for node in graph.nodes if one_by_one else ():
            if not _runs_eagerly(node, specs) or any(source not in able for source, _ in node.inputs):
                continue
            able.add(node)
            stype = None if node.op is None else self._stype(node, specs, stypes, by_rows)
            if stype is not None:
                self.stypes[node, 0] = stype
                chosen.add(node)
        for node in reversed(graph.nodes):
            if node in chosen:
                chosen.update(source for source, _ in node.inputs)
        self.nodes = [node for node in graph.nodes if node in chosen and node.op is not None]
        first = {*self.nodes, *by_rows, *[node for node, stype in stypes.items() if stype != "default"]}
        self.crossing: dict[Entry, Node] = {
            entry: Node(None, entry[0].name if entry[0].op is None else output_name(entry), where=entry[0].where)
            for node in graph.nodes if node not in first for entry in node.inputs if entry[0] in first}
        self.early = [node in first for node, _ in graph.heads]
        self.heads, late = self.divided(graph.heads)

        def change(node: Node, inputs: list[Entry]) -> list[Entry]:
            new = node if node in first else node.with_inputs(inputs)
            return [(self.crossing[node, i], 0) if (node, i) in self.crossing else (new, i) for i in range(node.count)]

        self.remaining = list(rewrite(Graph(late), change).heads)

    def _stype(self, node: Node, specs: Mapping[Node, Sequence[Spec]], stypes: Mapping[Node, str],
               by_rows: Collection[Node]) -> str | None:
        """The storage type of the result of a node that runs on its own; None for others."""
        assert node.op is not None
        ins = [(self.stypes.get(entry, "default"), specs[entry[0]][entry[1]]) for entry in node.inputs]
        if any(stype != "default" for stype, _ in ins):
            return result_stype(node.op, node.attrs, ins)
        return "default" if any(source in by_rows for source in inputs_with_few_rows(node, stypes)) else None

    def divided(self, values: Sequence[T]) -> tuple[list[T], list[T]]:
        """Values for the outputs of the graph, divided into those for ``heads`` and for ``remaining``."""
        both: tuple[list[T], list[T]] = [], []
        for value, early in zip(values, self.early):
            both[not early].append(value)
        return both

    def varying_nodes(self, variables: Collection[Node]) -> set[Node]:
        """Variables, and the nodes among ``nodes`` whose results have gradients with respect to one of them."""
        result = set(variables)
        for node in self.nodes:
            if node.op is not None and node.op.rules.grad is not ZERO and any(
                    source in result for source, _ in node.inputs):
                result.add(node)
        return result


def _runs_eagerly(node: Node, specs: Mapping[Node, Sequence[Spec]]) -> bool:
    """Whether a node may run on its own: a variable, or a built-in operator that computes the same each time."""
    if not all(is_known(spec.shape) for spec in specs[node]):
        return False
    op = node.op
    return op is None or (bool(node.built_in) and not (
        effects.varies(op) or op.traits.mutates or op.traits.has_side_effect))

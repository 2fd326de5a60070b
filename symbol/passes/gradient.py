"""gradient: grow the graph of the gradients, by the walk that also serves the tape."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from opreg.gradient import walk
from opreg.graph import Entry, Graph, Node
from opreg.registry import ops

from ..symbol import RuleSymbol

__all__ = ["gradients"]


def gradients(graph: Graph, seeds: Mapping[Entry, Any], wanted: Sequence[Node]
              ) -> tuple[dict[Node, Entry], list[Node]]:
    """Entries of the gradients of wanted variables.

    Parameters
    ----------
    graph : Graph
        The forward graph.
    seeds : mapping of head entry to RuleSymbol or None
        Gradients that arrive there; None for a loss.
    wanted : sequence of variables
        With respect to what.

    Returns
    -------
    dict of variable to entry
        Without those that the heads do not depend on.
    list of Node
        The new nodes in the order they were made, which keeps few gradients alive at a time: that of a layer's
        weights stands beside that of its data.
    """
    before, RuleSymbol.made = RuleSymbol.made, []
    try:
        def values(node: Node) -> tuple[list[Any], list[Any]]:
            RuleSymbol.source = node
            return ([RuleSymbol((entry,)) for entry in node.inputs],
                    [RuleSymbol(((node, i),)) for i in range(node.count)])

        found = walk(graph.nodes, seeds, wanted, values, ops.zeros_like)
        return {node: value._entries[0] for (node, _), value in found.items()}, RuleSymbol.made
    finally:
        RuleSymbol.made, RuleSymbol.source = before, None

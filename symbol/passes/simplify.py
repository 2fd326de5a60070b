"""simplify: drop what the known shapes and the mode make an identity."""

from __future__ import annotations

from typing import Sequence

from opreg.graph import Entry, Graph, Node
from opreg.spec import Spec

__all__ = ["simplify"]


def _identity(node: Node, inputs: Sequence[Entry], specs: dict[Node, list[Spec]], is_train: bool) -> bool:
    """Whether output 0 is input 0, number for number."""
    name = node.op.name if node.op else ""
    if name in ("_reduce_like", "broadcast_like", "broadcast_to", "reshape_like"):
        source, index = node.inputs[0]
        return specs[source][index] == specs[node][0]
    return name in ("_copy", "BlockGrad") or name == "_mul_scalar" and node.attrs["scalar"] == 1.0


def simplify(nodes: list[Node], heads: Sequence[Entry], specs: dict[Node, list[Spec]], is_train: bool
             ) -> tuple[list[Node], list[Entry]]:
    """Nodes and heads with identities taken out; the order stays."""
    became: dict[Entry, Entry] = {}
    kept: list[Node] = []
    for node in nodes:
        if node.op is None:
            kept.append(node)
            continue
        inputs = [became.get(entry, entry) for entry in node.inputs]
        if _identity(node, inputs, specs, is_train):
            became[node, 0] = inputs[0]
            continue
        new = node.with_inputs(inputs)
        if new is not node:
            specs[new] = specs[node]
            for i in range(len(specs[node])):
                became[node, i] = (new, i)
        kept.append(new)
    return kept, [became.get(entry, entry) for entry in heads]

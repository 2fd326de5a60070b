"""fuse_bn_backward: the two operators that a batch norm's gradient is become one, where oneDNN computes it at once."""

from __future__ import annotations

from opreg.core.graph import Entry, Node
from opreg.symbol.program import Program

from ..operators.private import batch_norm_gradient
from ..shared_library import missing

__all__ = ["fuse_bn_backward"]


def fuse_bn_backward(program: Program) -> Program:
    """Compute the sums of a batch norm's gradient, and the gradient that is made of them, in one node."""
    seconds = _seconds(program) if missing() is None else {}
    if not seconds:
        return program
    done = set(seconds.values())

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node not in seconds:
            return [] if node in done else None
        second = seconds[node]
        inputs = [became.get(entry, entry) for entry in (*node.inputs[:2], *second.inputs[2:-2])]
        new = Node(batch_norm_gradient, second.name, {"axis": node.attrs["axis"], "scaled": second.attrs["scaled"]},
                   inputs, where=second.where)
        program.specs[new] = [*program.specs[second], *program.specs[node]]
        program.contexts[new] = program.contexts[node]
        became.update({(second, 0): (new, 0), (node, 0): (new, 1), (node, 1): (new, 2)})
        return [new]

    program.rebuild(change)
    return program


def _seconds(program: Program) -> dict[Node, Node]:
    """Pairs by the node of the sums: the gradient of them and of nothing that comes later."""
    position = {node: i for i, node in enumerate(program.nodes)}
    seconds: dict[Node, Node] = {}
    for node in program.nodes:
        if node.built_in != "_backward_normalize" or node.attrs["over"] != "batch":
            continue
        first = node.inputs[-1][0]
        if (first.built_in == "_backward_normalize_sums" and first not in seconds
                and node.inputs[-2:] == ((first, 0), (first, 1)) and node.inputs[:2] == first.inputs[:2]
                and node.inputs[-4:-2] == first.inputs[2:] and node.attrs["axis"] == first.attrs["axis"]
                and all(position[source] < position[first] for source, _ in node.inputs[:-2])):
            seconds[first] = node
    return seconds

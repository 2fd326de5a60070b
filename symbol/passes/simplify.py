"""simplify: drop what the known shapes and the mode make an identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opreg.core.graph import Entry, Node, reachable
from opreg.core.spec import Spec

from ..program import Program, replaced

__all__ = ["simplify"]

_SAME_IF_SPECS = frozenset({"_reduce_like", "broadcast_like", "broadcast_to", "_np_broadcast_to", "reshape_like",
                            "_mul_scalar"})
_SAME = frozenset({"_copy", "BlockGrad", "make_loss"})


def _identity(node: Node, inputs: Sequence[Entry], specs: Mapping[Node, Sequence[Spec]], drops: bool) -> bool:
    """Whether the output is the first input, number for number."""
    name = node.built_in
    if not name or not inputs:
        return False
    source, index = inputs[0]
    if name in _SAME_IF_SPECS:
        return specs[source][index] == specs[node][0] and (name != "_mul_scalar" or node.attrs["scalar"] == 1.0)
    if name == "Dropout":
        return not drops and (node.attrs["p"] == 0.0 or node.attrs["mode"] == "training")
    return name in _SAME


def simplify(program: Program) -> Program:
    """Take out identities, and what nobody needs then; the order stays."""
    became: dict[Entry, Entry] = {}
    drops = program.is_train or bool(program.destinations)  # gradients read the mask
    kept: list[Node] = []
    for node in program.nodes:
        inputs = [became.get(entry, entry) for entry in node.inputs] if became else node.inputs
        if _identity(node, inputs, program.specs, drops):
            became[node, 0] = inputs[0]
        else:
            kept.append(replaced(node, inputs, program.specs, became) if became else node)
    program.heads = [became.get(entry, entry) for entry in program.heads]
    program.nodes = reachable(kept, program.heads, read=True)
    return program

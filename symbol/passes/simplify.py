"""simplify: drop nodes that are identities, given their shapes and the mode."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

from opreg.core.graph import Entry, Node, reachable
from opreg.core.spec import Spec

from ..program import Program

__all__ = ["simplify"]


def _identity(node: Node, inputs: Sequence[Entry], specs: Mapping[Node, Sequence[Spec]], drops: bool) -> bool:
    """Whether the first output equals the first input, element for element."""
    if node.op is None or node.op.rules.identity is None:
        return False
    return bool(node.op.rules.identity({**node.attrs, "is_train": drops}, [specs[source][i] for source, i in inputs],
                                       specs[node]))


def simplify(program: Program) -> Program:
    """Drop identities, and nodes that are not needed without them. The order stays."""
    drops = program.is_train or bool(program.destinations)  # gradients read the mask

    @functools.cache
    def beside() -> set[Node]:
        """The nodes of which outputs other than the first are read."""
        read = itertools.chain(program.heads, *[node.inputs for node in program.nodes])
        return {node for node, index in read if index > 0}

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        inputs = [became.get(entry, entry) for entry in node.inputs] if became else node.inputs
        if not _identity(node, inputs, program.specs, drops) or (node.count > 1 and node in beside()):
            return None
        became[node, 0] = inputs[0]
        return []

    program.rebuild(change)
    program.nodes = reachable(program.nodes, program.heads, read=True)
    return program

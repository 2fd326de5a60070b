"""simplify: drop nodes that are identities, given their shapes and the mode."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

from opreg.core.addresses import address_of
from opreg.core.graph import Entry, Node, reachable
from opreg.core.rules import as_list
from opreg.core.spec import Spec

from ..program import Program
from .memory import placeholder

__all__ = ["simplify"]


def _identity(node: Node, inputs: Sequence[Entry], specs: Mapping[Node, Sequence[Spec]], drops: bool) -> bool:
    """Whether the first output equals the first input, element for element."""
    if node.op is None:
        return False
    rules = node.op.rules
    if rules.identity is not None:
        return bool(rules.identity({**node.attrs, "is_train": drops}, [specs[source][i] for source, i in inputs],
                                   specs[node]))
    return rules.view is not None and bool(inputs) and _views_everything(node, specs[inputs[0][0]][inputs[0][1]], specs)


def _views_everything(node: Node, spec: Spec, specs: Mapping[Node, Sequence[Spec]]) -> bool:
    """Whether the first output is a view of all elements of the first input, in their order."""
    if specs[node][0] != spec:
        return False
    try:
        base = placeholder(spec)
        view = node.op.rules.as_view(base, node.attrs, [out.shape for out in specs[node]])  # type: ignore[union-attr]
    except Exception:  # an error here is raised again, with the node's name, when memory is planned
        return False
    first = as_list(view)[0]
    return first is not None and first.shape == base.shape and (base.size == 0 or (
        address_of(first) == address_of(base) and all(
            step == own for length, step, own in zip(base.shape, first.strides, base.strides) if length > 1)))


def simplify(program: Program) -> Program:
    """Drop identities, and nodes that are not needed without them. The order stays."""
    drops = program.is_train or bool(program.destinations)  # if there are gradients, they read the mask

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

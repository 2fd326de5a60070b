"""Initial values of auxiliary states of users' operators: an initializer, declared with the operator.

Arrays for states are made by executors, modules and Cells, and filled by initializers, which are defined above all of
these and below none: a slot has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .slots import Slot

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["INITIALIZER", "begin", "beginnings"]

#: The initializer that something names: its name, its text or itself.
INITIALIZER = Slot("initializers")
#: The attribute of a variable that names its initializer.
_KEY = "__init__"


def beginnings(graph: Graph) -> dict[str, str]:
    """Initializers of the auxiliary states of users' operators, as text, by the names of the variables.

    The variable's own initializer comes first, then its operator's; states without either are left out.
    """
    found: dict[str, str] = {}
    for node in graph.nodes:
        op = node.op
        if op is None or op.op_type is None or not op.signature.stateful:
            continue
        states = op.signature.auxiliary(node.attrs)
        for name, (source, _) in zip(states, node.inputs[len(node.inputs) - len(states):]):
            text = source.tags.get(_KEY) or op.signature.tags.get(name, {}).get(_KEY)
            if text and source.op is None:
                found.setdefault(source.name, text)
    return found


def begin(text: str, name: str, array: Any) -> None:
    """Fill an array as an initializer says, whose text it is."""
    INITIALIZER.function(text)._init_weight(name, array)

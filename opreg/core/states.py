"""Initial values of the auxiliary states of users' operators, by an initializer that is declared with the operator.

Executors, modules and Cells make the arrays of states and fill them by initializers. Initializers are defined in a
higher layer than executors, so they are reached through a slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .slots import Slot

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["INITIALIZER", "begin", "beginnings"]

#: Gives the initializer for its name, for its text, or for itself.
INITIALIZER = Slot("initializers")
#: The attribute of a variable that names its initializer.
_KEY = "__init__"


def beginnings(graph: Graph) -> dict[str, str]:
    """Initializers of the auxiliary states of users' operators, as text, by the names of the variables.

    A variable's own initializer takes precedence over its operator's; states without one are left out.
    """
    initializers: dict[str, str] = {}
    for node in graph.nodes:
        op = node.op
        if op is None or op.op_type is None or not op.signature.stateful:
            continue
        states = op.signature.auxiliary(node.attrs)
        for name, (source, _) in zip(states, node.inputs[len(node.inputs) - len(states):]):
            text = source.tags.get(_KEY) or op.signature.tags.get(name, {}).get(_KEY)
            if text and source.op is None:
                initializers.setdefault(source.name, text)
    return initializers


def begin(text: str, name: str, array: Any) -> None:
    """Fill an array by the initializer with this text."""
    INITIALIZER.function(text)._init_weight(name, array)

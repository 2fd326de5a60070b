"""place: decide where each node computes, and copy what crosses from one context to another."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from opreg.errors import ArgumentError, did_you_mean
from opreg.graph import Entry, Node
from opreg.registry import get
from opreg.spec import Spec

__all__ = ["place"]


def place(nodes: list[Node], heads: Sequence[Entry], specs: dict[Node, list[Spec]], ctx: Any,
          group2ctx: Mapping[str, Any], variables: Mapping[Node, Any]
          ) -> tuple[list[Node], list[Entry], dict[Node, Any]]:
    """Nodes and heads with copies between contexts, and the context of every node.

    Parameters
    ----------
    nodes, heads, specs
        The graph in order; specs are extended for the copies.
    ctx : Context
        Where nodes compute that belong to no group.
    group2ctx : mapping of group to Context
        Where the nodes of a ``ctx_group`` compute.
    variables : mapping of variable to Context
        Where the bound arrays live.
    """
    contexts: dict[Node, Any] = dict(variables)
    if not group2ctx:
        contexts.update((node, ctx) for node in nodes if node not in contexts)
        if all(context == ctx for context in contexts.values()):
            return nodes, list(heads), contexts
    copy = get("_CrossDeviceCopy")
    became: dict[Entry, Entry] = {}
    copies: dict[tuple[Entry, Any], Entry] = {}
    placed: list[Node] = []
    for node in nodes:
        if node.op is None:
            placed.append(node)
            contexts.setdefault(node, ctx)
            continue
        group = node.tags.get("__ctx_group__")
        here = group2ctx.get(group, ctx) if group else ctx
        inputs = []
        for entry in node.inputs:
            entry = became.get(entry, entry)
            if contexts[entry[0]] != here:
                key = entry, here
                if key not in copies:
                    moved = Node(copy, f"{entry[0].name}_to_{here}", {}, [entry], where=entry[0].where)
                    contexts[moved] = here
                    specs[moved] = [specs[entry[0]][entry[1]]]
                    placed.append(moved)
                    copies[key] = moved, 0
                entry = copies[key]
            inputs.append(entry)
        new = node.with_inputs(inputs)
        if new is not node:
            specs[new] = specs[node]
            became.update({(node, i): (new, i) for i in range(len(specs[node]))})
        contexts[new] = here
        placed.append(new)
    return placed, [became.get(entry, entry) for entry in heads], contexts


def check_groups(nodes: list[Node], group2ctx: Mapping[str, Any]) -> None:
    """Refuse groups that no node belongs to: they are misspelt.

    Raises
    ------
    ArgumentError
        With the nearest group.
    """
    groups = {node.tags["__ctx_group__"] for node in nodes if "__ctx_group__" in node.tags}
    for group in group2ctx:
        if group not in groups:
            raise ArgumentError(f"group2ctx: no node belongs to the group {group!r}. {did_you_mean(group, groups)}")

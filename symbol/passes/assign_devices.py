"""assign_devices: choose the device of each node, and copy entries that are read on another device."""

from __future__ import annotations

from opreg.core.graph import Entry, Node
from opreg.core.registry import get
from opreg.ndarray.context import Context

from ..program import Program, replace_inputs

__all__ = ["assign_devices"]


def assign_devices(program: Program) -> Program:
    """Give every node a context: that of its ``ctx_group``, or else the default one. Outputs and gradients are copied
    to the devices of their arrays."""
    bound, contexts = program.bound, program.contexts
    if not bound.group2ctx and all(context == bound.ctx for context in contexts.values()):
        contexts.update((node, bound.ctx) for node in program.nodes)
        return program
    # Not by `rebuild`: a copy does not stand where the copied node stood, and heads of one entry may go to several
    # devices.
    became: dict[Entry, Entry] = {}
    copies: dict[tuple[Entry, Context], Entry] = {}
    placed: list[Node] = []

    def moved(entry: Entry, ctx: Context) -> Entry:
        if contexts.get(entry[0], ctx) == ctx:  # a node without a context: only the shape of this input is read
            return entry
        if (entry, ctx) not in copies:
            source, index = entry
            node = Node(get("_CrossDeviceCopy"), f"{source.name}_to_{ctx}", {}, [entry], where=source.where)
            contexts[node], program.specs[node] = ctx, [program.specs[source][index]]
            placed.append(node)
            copies[entry, ctx] = node, 0
        return copies[entry, ctx]

    homes = [*bound.places, *[contexts[variable] for variable in program.wanted]]

    def home(entry: Entry, place: Context) -> Entry:
        return entry if contexts[entry[0]].shares(place) else moved(entry, place)

    for node in program.nodes:
        ctx = bound.place(node)
        if node.op is None:
            contexts.setdefault(node, ctx)
            placed.append(node)
            # copies of outputs are made here, as a part of forward
            for entry, place in zip(program.heads, bound.places):
                if entry[0] is node:
                    home(entry, place)
            continue
        new = replace_inputs(node, [moved(became.get(entry, entry), ctx) for entry in node.inputs], program.specs,
                             became)
        contexts[new] = ctx
        placed.append(new)
    heads = [became.get(entry, entry) for entry in program.heads]
    program.heads = [*map(home, heads, homes), *heads[len(homes):]]
    program.nodes = placed
    return program

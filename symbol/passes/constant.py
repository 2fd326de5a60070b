"""constant: what depends on no variable is computed once, when the graph is bound.

Only small arrays are: to keep a large one takes memory, and to fill it takes as long as to read it.
"""

from __future__ import annotations

from typing import Any

from opreg.graph import Entry, Node, fail
from opreg.mode import quiet
from opreg.op import Kernel

from ..program import Program, nbytes, reachable
from .common import pure

__all__ = ["constant"]

#: Bytes of all results of a node that is computed at bind, at most.
MOST = 1 << 16


def constant(program: Program) -> Program:
    """Put variables that hold numbers in the place of nodes that compute them from nothing."""
    values: dict[Entry, Any] = {}
    if program.mutates:  # what is written over is no constant
        return program
    for node in program.nodes:
        if node.op is None or (node.inputs and node.inputs[0] not in values):
            continue
        kernel = _kernel(node, program)
        if kernel is not None and all(entry in values for entry in node.inputs):
            values.update(zip([(node, i) for i in range(node.count)], _computed(node, kernel, values, program)))
    if not values:
        return program

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if (node, 0) not in values:
            return None
        made = [Node(None, node.name, tags=node.tags, where=node.where) for _ in range(node.count)]
        for i, held in enumerate(made):
            program.arrays[held], program.contexts[held] = values[node, i], _place(node, program)
            program.specs[held] = [program.specs[node][i]]
            became[node, i] = held, 0
        return made

    program.rebuild(change)
    program.nodes = reachable(program.nodes, program.heads, read=True)
    return program


def _kernel(node: Node, program: Program) -> Kernel | None:
    """What computes a node that may be computed once; None where it may not."""
    op = node.op
    assert op is not None
    if not pure(op) or op.mode or not op.kernels or op.kernels[0].bound:
        return None
    return None if nbytes(program.specs[node]) > MOST else op.kernels[0]


def _place(node: Node, program: Program) -> Any:
    return program.bound.group2ctx.get(node.tags.get("__ctx_group__", ""), program.bound.ctx)


def _computed(node: Node, kernel: Kernel, values: dict[Entry, Any], program: Program) -> list[Any]:
    """Arrays of a node's results, where it computes."""
    ctx = _place(node, program)
    try:
        outs = [ctx.backend.empty(spec.shape, spec.dtype, ctx.device_id) for spec in program.specs[node]]
        given = {"out": outs[0] if len(outs) == 1 else tuple(outs)} if kernel.takes_out else {}
        ins = [ctx.xp.asarray(values[entry]) for entry in node.inputs]
        with ctx:
            found = quiet(kernel.rule.function, ctx.xp, *ins, **kernel.rule.select(node.attrs), **given)
            if not given:
                for out, each in zip(outs, found if isinstance(found, (tuple, list)) else (found,)):
                    out[...] = each
    except Exception as error:
        fail(error, node, program.specs[node])
    return outs

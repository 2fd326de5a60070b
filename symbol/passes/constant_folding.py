"""constant_folding: nodes that depend on no variable are computed once, when the graph is bound.

Only small arrays are folded. A large one would occupy memory, and filling it again takes no longer than reading it.
"""

from __future__ import annotations

from opreg.core.graph import Entry, Node, fail, reachable
from opreg.core.launch import Call, reference
from opreg.core.mode import quiet
from opreg.core.spec import is_known
from opreg.typing import Array

from ..program import Program, nbytes
from .cse import pure

__all__ = ["fold_constants"]

#: The largest number of bytes of a node's results to fold.
MOST = 1 << 16


def fold_constants(program: Program) -> Program:
    """Replace nodes that depend on no variable by variables that hold their results."""
    values: dict[Entry, Array] = {}
    if program.mutates:  # an overwritten array is no constant
        return program
    for node in program.nodes:
        if node.op is None or (node.inputs and node.inputs[0] not in values):
            continue
        if _is_foldable(node, program) and all(entry in values for entry in node.inputs):
            values.update(zip([(node, i) for i in range(node.count)], _compute_node(node, values, program)))
    if not values:
        return program

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if (node, 0) not in values:
            return None
        variables = [Node(None, node.name, tags=node.tags, where=node.where) for _ in range(node.count)]
        for i, variable in enumerate(variables):
            program.arrays[variable], program.contexts[variable] = values[node, i], program.bound.place(node)
            program.specs[variable] = [program.specs[node][i]]
            became[node, i] = variable, 0
        return variables

    program.rebuild(change)
    program.nodes = reachable(program.nodes, program.heads, read=True)
    return program


def _is_foldable(node: Node, program: Program) -> bool:
    """Whether a node may be computed at bind."""
    op = node.op
    assert op is not None
    return pure(op) and bool(op.kernels) and not op.kernels[0].bound and nbytes(program.specs[node]) <= MOST


def _compute_node(node: Node, values: dict[Entry, Array], program: Program) -> list[Array]:
    """Compute the results of a node on its device."""
    ctx, specs = program.bound.place(node), program.specs[node]
    assert node.op is not None
    try:
        outs: list[Array] = []
        for shape, dtype in specs:
            assert is_known(shape) and dtype is not None
            outs.append(ctx.backend.empty(shape, dtype, ctx.device_id))
        with ctx, ctx.entered():
            ins = [ctx.xp.asarray(values[entry]) for entry in node.inputs]
            call = Call(node.op, node.attrs, ins, outs, ["write"] * len(outs), ctx.xp, ctx,
                        node.in_training(program.is_train), specs=specs)
            for step in reference(call).steps()[0]:
                quiet(step)
    except Exception as error:
        fail(error, node, specs)
    return outs

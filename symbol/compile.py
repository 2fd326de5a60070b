"""Compilation of a bound graph to a plan: the passes, in the order they run.

A pass takes a ``Program`` and returns one. Only this file knows their order. After the last pass, memory is planned for
every entry, and a step is made for every node.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence

from opreg.core.graph import Entry, Node, reachable, verify
from opreg.core.rounding import with_tf32
from opreg.core.slots import Slot
from opreg.ndarray.context import Context
from opreg.typing import Array

from .naming import output_name
from .passes.assign_devices import assign_devices
from .passes.attention import attention
from .passes.constant_folding import fold_constants
from .passes.cse import cse
from .passes.fuse import fuse
from .passes.fuse_conv_bn import fuse_conv_bn
from .passes.gradient import gradient
from .passes.inline import inline
from .passes.memory import plan_memory
from .passes.reduce_gradients import reduce_gradients
from .passes.rematerialization import rematerialize
from .passes.simplify import simplify
from .plan import Plan, Segment, Step
from .program import Program, without_gc
from .replay import segments

__all__ = ["PASSES", "PASSES_OF_BACKENDS", "CHECK", "compile_program", "simplify_forward"]

#: Gives the passes of back ends.
PASSES_OF_BACKENDS = Slot("backends")


def layout(program: Program) -> Program:
    """Run the passes of back ends, after devices are assigned and before element-wise operators are fused."""
    for change in PASSES_OF_BACKENDS.function():
        program = _apply_change(program, change)
    return program


PASSES: tuple[Callable[[Program], Program], ...] = (
    attention, gradient, inline, simplify, fold_constants, cse, rematerialize, assign_devices, fuse_conv_bn, layout,
    fuse, reduce_gradients)

#: Passes that merge several operators into one node, drop or replace nodes, or change the layout of arrays.
_MERGING = (attention, simplify, fold_constants, cse, rematerialize, fuse_conv_bn, layout, fuse)

#: Whether to verify the graph after every pass, as tests do.
CHECK = False


@without_gc
def compile_program(program: Program) -> Plan:
    """Compile the plan of a program, which may already contain its gradients."""
    with with_tf32(program.bound.tf32):
        for change in PASSES:
            if program.watched and change in _MERGING:
                continue
            program = _apply_change(program, change)
        return _lay_out(program)


def simplify_forward(program: Program) -> Program:
    """A forward program without identities, and with equal expressions merged: its nodes are still operators of the
    graph, which later passes fuse and place."""
    for change in (simplify, cse):
        program = _apply_change(program, change)
    return program


def _apply_change(program: Program, change: Callable[[Program], Program]) -> Program:
    program = change(program)
    if CHECK:
        verify(program.graph)
    return program


class _Results:
    """The caller's arrays for outputs and gradients. A plan computes them in place if it can, or else copies them at
    the end."""

    def __init__(self, program: Program, split: int):
        bound, heads, count = program.bound, program.heads, len(program.bound.graph.heads)
        self.program, self.uses = program, Counter(heads)
        self.readers: dict[Node, dict[Node, None]] = {}  # in execution order
        for node in program.nodes:
            for entry in node.inputs:
                self.uses[entry] += 1
                self.readers.setdefault(entry[0], {})[node] = None
        self.positions = {node: i for i, node in enumerate(program.nodes)}
        self.variables: dict[int, list[Node]] = {}  # variables by the identity of their array
        for variable, array in program.arrays.items():
            self.variables.setdefault(id(array), []).append(variable)
        self.returned = {node for node, _ in heads}
        self.targets: dict[Entry, Array] = dict(program.pinned)
        self.adds: dict[Entry, Array] = {}
        self.kept: dict[Entry, int] = {}
        self.after_forward: list[tuple[Entry, Array, str]] = []
        self.after_backward: list[tuple[Entry, Array, str]] = []
        for entry, array in zip(heads, bound.outputs):
            self._result(entry, array, "write", self.after_forward, split)
        for entry, (array, req) in zip(heads[count:], program.destinations):
            self._result(entry, array, req, self.after_backward, len(program.nodes))

    def _result(self, entry: Entry, array: Array, req: str, after: list[tuple[Entry, Array, str]], until: int) -> None:
        node, index = entry
        if node.op is None and self.program.arrays[node] is array:  # the output is this variable
            return
        spec = self.program.specs[node][index]
        fits = (node.op is not None and spec.shape == array.shape and spec.dtype == array.dtype
                and self._overwrites(entry, array))
        if fits and req == "write" and entry not in self.targets:
            self.targets[entry] = array
        elif (fits and req == "add" and self.uses[entry] == 1
                and node.op.adds(self.program.contexts[node].xp)):  # type: ignore[union-attr]
            self.targets[entry] = self.adds[entry] = array
        else:
            after.append((entry, array, req))
            if entry not in self.targets:
                self.kept[entry] = max(self.kept.get(entry, 0), until)

    def _overwrites(self, entry: Entry, array: Array) -> bool:
        """Whether an entry may be computed in place in an array: not while the variable that the array holds is still
        read.

        Element-wise operators read an element of every input before they write that element of any output. In other
        operators, only the first output may overwrite an input.
        """
        maker, index = entry
        over = self.variables.get(id(array), ())
        if not self.returned.isdisjoint(over):
            return False
        for node in {reader for variable in over for reader in self.readers.get(variable, ())}:
            op = node.op
            if op is None:
                continue
            if node is maker:
                reads = [i for i, (source, _) in enumerate(node.inputs) if source in over]
                if not op.traits.inplace >= {*reads} or (index and op.rules.expression is None):
                    return False
            elif (self.positions[node] > self.positions[maker]
                    or (op.rules.view is not None and self.program.specs[node][0].dtype == array.dtype)):
                return False
        return True


def _lay_out(program: Program) -> Plan:
    split = _split(program.nodes, program.heads, len(program.bound.graph.heads))
    results = _Results(program, split)
    variables = {(node, 0): program.arrays[node] for node in program.nodes if node.op is None}
    memory = plan_memory(program.nodes, program.specs, program.contexts, variables, results.targets, results.kept)
    plan = Plan(program, split, memory, variables, results.adds)
    plan.close(_copy_steps(plan, results.after_forward),
               _copy_steps(plan, results.after_backward) + _zero_steps(program),
               Segment if program.watched else segments(plan.contexts.values()))
    return plan


def _zero_steps(program: Program) -> list[Step]:
    """Steps that write zeros as gradients of the arguments that no output depends on."""
    reached = set(program.wanted)
    return [Step(None, "zeros", [], f"{node.name}: no gradient reaches it",
                 [functools.partial(array.__setitem__, Ellipsis, 0)], [array], program.contexts[node])
            for node, (array, req) in program.bound.grads.items()
            if program.backward is not None and req == "write" and node not in reached]


def _split(nodes: list[Node], heads: Sequence[Entry], outputs: int) -> int:
    """The position of the first node of backward.

    The forward pass has the nodes that outputs need, and nodes with side effects that read no gradient. Without a
    backward pass it has all nodes.
    """
    if len(heads) == outputs:
        return len(nodes)
    needed = set(reachable(nodes, heads[:outputs]))
    backward = set(reachable(nodes, heads)) - needed
    split = 0
    for i, node in enumerate(nodes):
        if any(source in backward for source, _ in node.inputs):
            backward.add(node)
        if node in needed or (node.op is not None and node.op.traits.has_side_effect and node not in backward):
            split = i + 1
    return split


def _copy_steps(plan: Plan, results: Sequence[tuple[Entry, Array, str]]) -> list[Step]:
    """Steps that copy entries to the arrays that callers read.

    One copy may overwrite an array that a later one reads, as when two variables are swapped. The array is saved first.
    """
    saved: list[Step] = []
    steps: list[Step] = []
    written: set[int] = set()
    for entry, array, req in results:
        source, title = plan.array(entry), f"{output_name(entry)} to its bound array"
        ctx = plan.contexts[entry[0]]
        assert source is not None
        if id(plan.memory.storage[entry].pinned) in written:
            temporary = ctx.run(ctx.xp.empty_like, source)
            saved.append(_copy(f"{output_name(entry)} aside", source, temporary, ctx))
            source = temporary
        written.add(id(array))
        if req == "add":
            run = functools.partial(ctx.xp.add, array, source, array)
            steps.append(Step(None, req, [], title, [run], [array], ctx, [array, source]))
        else:
            steps.append(_copy(title, source, array, ctx))
    return saved + steps


def _copy(title: str, source: Array, array: Array, ctx: Context) -> Step:
    return Step(None, "copy", [], title, [functools.partial(array.__setitem__, Ellipsis, source)], [array], ctx,
                [source])

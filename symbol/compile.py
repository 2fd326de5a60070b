"""compile: the passes that make a plan of a bound graph, in the order they run.

Each takes a ``Program`` and returns it; this file is the only one that knows their order. At the end every entry is
given its memory and every node its step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opreg.graph import Entry, Node, verify

from .passes.gradient import gradient
from .passes.memory import plan_memory
from .passes.place import place
from .passes.simplify import simplify
from .plan import Plan, Step
from .program import Bound, Program, reachable
from .symbol import output_name

__all__ = ["PASSES", "CHECK", "compile_plan"]

PASSES: tuple[Callable[[Program], Program], ...] = (gradient, simplify, place)

#: Tests set this: the graph is verified after every pass.
CHECK = False


def compile_plan(bound: Bound, is_train: bool) -> Plan:
    """The plan of a bound graph, for training (forward and backward) or for inference."""
    program = Program.of(bound, is_train)
    for change in PASSES:
        program = change(program)
        if CHECK:
            verify(program.graph)
    return _lay_out(program)


class _Results:
    """Where heads go: computed straight into their arrays where that is possible, else brought there at the end."""

    def __init__(self, program: Program, split: int):
        bound, heads, count = program.bound, program.heads, len(program.bound.graph.heads)
        uses: dict[Entry, int] = {}
        for entry in (*heads, *[entry for node in program.nodes for entry in node.inputs]):
            uses[entry] = uses.get(entry, 0) + 1
        self.targets: dict[Entry, Any] = {}
        self.adds: dict[Entry, Any] = {}
        self.kept: dict[Entry, int] = {}
        self.after_forward: list[tuple[Entry, Any, str]] = []
        self.after_backward: list[tuple[Entry, Any, str]] = []
        for entry, array in zip(heads, bound.outputs):
            self._result(program, entry, array, "write", uses, self.after_forward, split)
        for node, entry in zip(program.wanted, heads[count:]):
            self._result(program, entry, *bound.grads[node], uses, self.after_backward, len(program.nodes))

    def _result(self, program: Program, entry: Entry, array: Any, req: str, uses: dict[Entry, int],
                after: list[tuple[Entry, Any, str]], until: int) -> None:
        node, index = entry
        spec = program.specs[node][index]
        fits = node.op is not None and spec.shape == array.shape and spec.dtype == array.dtype
        if fits and req == "write" and entry not in self.targets:
            self.targets[entry] = array
        elif fits and req == "add" and uses[entry] == 1 and node.op.adds:  # type: ignore[union-attr]
            self.targets[entry] = self.adds[entry] = array
        else:
            after.append((entry, array, req))
            if entry not in self.targets:
                self.kept[entry] = max(self.kept.get(entry, 0), until)


def _lay_out(program: Program) -> Plan:
    split = _split(program.nodes, program.heads[:len(program.bound.graph.heads)])
    results = _Results(program, split)
    variables = {(node, 0): program.arrays[node] for node in program.nodes if node.op is None}
    memory = plan_memory(program.nodes, program.specs, program.contexts, variables, results.targets, results.kept)
    plan = Plan(program, split, memory, variables, results.adds)
    plan.close([_bring(plan, *each) for each in results.after_forward],
               [_bring(plan, *each) for each in results.after_backward] + _unreached(program))
    return plan


def _unreached(program: Program) -> list[Step]:
    """Steps for the arguments that no gradient reaches: their gradients are zeros."""
    return [Step(None, "zeros", [], f"{node.name}: no gradient reaches it",
                 [functools.partial(array.__setitem__, Ellipsis, 0)], [array])
            for node, (array, req) in program.bound.grads.items()
            if program.is_train and req == "write" and node not in program.wanted]


def _split(nodes: list[Node], outputs: Sequence[Entry]) -> int:
    """The position behind the last node that an output needs: there the backward steps begin."""
    needed = set(reachable(nodes, outputs))
    return max((i + 1 for i, node in enumerate(nodes) if node in needed), default=0)


def _bring(plan: Plan, entry: Entry, array: Any, req: str) -> Step:
    """The step that brings an entry to the array a caller reads."""
    source = plan.array(entry)
    if req == "add":
        run: Callable = functools.partial(plan.contexts[entry[0]].xp.add, array, source, array)
    else:
        run = functools.partial(array.__setitem__, Ellipsis, source)
    return Step(None, req if req == "add" else "copy", [], f"{output_name(entry)} to its bound array", [run], [array])

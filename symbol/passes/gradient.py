"""gradient: the nodes of the gradients that are asked for, behind those of forward."""

from __future__ import annotations

from typing import Any

from opreg.core.backward_graph import grow
from opreg.core.graph import Entry, Node
from opreg.core.spec import Spec
from opreg.core.tracing import RuleTracer

from .. import infer as inference
from ..program import Bound, Program, reachable
from ..symbol import output_name

__all__ = ["gradient"]


def gradient(program: Program) -> Program:
    """Add the nodes that compute the gradients asked for, behind the forward ones, with their specs."""
    bound = program.bound
    if program.backward is None or not bound.grads:
        return program
    tracer = RuleTracer(known=program.specs)
    seeds, arrivals = _seeds(bound, tracer)
    for node, array in arrivals.items():
        program.arrays[node], program.contexts[node] = array, bound.ctx
        program.specs[node] = [Spec(array.shape, array.dtype)]
    found = grow(tracer, bound.graph.nodes, seeds, bound.grads, program.backward, program.watched)
    program.wanted = [node for node in bound.grads if (node, 0) in found]
    program.late = [bound.grads[node] for node in program.wanted]
    heads = [found[node, 0]._entry for node in program.wanted]
    forward = set(program.nodes)
    everything = program.nodes + list(arrivals) + tracer.nodes
    program.nodes = program.nodes + [node for node in reachable(everything, heads) if node not in forward]
    program.heads = program.heads + heads
    program.specs = inference.infer(program.graph, {}, {}, program.specs)
    return program


def _seeds(bound: Bound, tracer: RuleTracer) -> tuple[list[tuple[Entry, Any]], dict[Node, Any]]:
    """The gradients that arrive at the heads, and the variables that stand for them with their arrays."""
    seeds: list[tuple[Entry, Any]] = []
    arrivals: dict[Node, Any] = {}
    for entry, array in zip(bound.graph.heads, bound.head_grads):
        if array is None:
            seeds.append((entry, None))
            continue
        node = Node(None, f"{output_name(entry)}_grad")
        arrivals[node] = array
        seeds.append((entry, tracer.value((node, 0))))
    return seeds, arrivals

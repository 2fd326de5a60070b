"""gradient: add the nodes that compute the requested gradients, after those of forward."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from opreg.core.backward_graph import grow
from opreg.core.graph import Entry, Node, reachable
from opreg.core.spec import Spec
from opreg.core.tracing import RuleTracer, TracedValue
from opreg.typing import Array

from .. import infer as inference
from ..naming import output_name
from ..program import Program, name_for_monitors

__all__ = ["gradient"]


def gradient(program: Program) -> Program:
    """Add the nodes that compute the requested gradients, and infer their shapes and dtypes."""
    bound = program.bound
    if program.backward is None or not bound.grads:
        return program
    tracer = RuleTracer(known_specs=program.specs)
    seeds, head_grads = _seeds(program, tracer)
    for node, array in head_grads.items():
        program.arrays[node], program.contexts[node] = array, bound.ctx
        program.specs[node] = [Spec(array.shape, array.dtype)]
    titles: dict[Node, list[str]] = {}
    gradients = program.trace_rules(program.nodes, functools.partial(
        grow, tracer, program.nodes, seeds, bound.grads, program.backward, titles if program.watched else None))
    program.wanted = [node for node in bound.grads if (node, 0) in gradients]
    program.destinations = [bound.grads[node] for node in program.wanted]
    heads = [gradients[node, 0]._entry for node in program.wanted]
    forward = set(program.nodes)
    everything = program.nodes + list(head_grads) + tracer.nodes
    program.nodes = program.nodes + [node for node in reachable(everything, heads) if node not in forward]
    program.heads = program.heads + heads
    program.specs = inference.infer(program.graph, {}, {}, program.specs)
    if titles:
        program.rebuild(functools.partial(_node_with_title, titles, program.specs))
    return program


def _node_with_title(titles: Mapping[Node, Sequence[str]], specs: dict[Node, list[Spec]], node: Node,
                     became: dict[Entry, Entry]) -> list[Node] | None:
    """A node that computes gradients, with their names as its tag."""
    if node not in titles:
        return None
    return [name_for_monitors(node, [f"{node.name}_{title}" for title in titles[node]], specs, became)]


def _seeds(program: Program, tracer: RuleTracer) -> tuple[list[tuple[Entry, TracedValue | None]], dict[Node, Array]]:
    """The gradients of the heads; and the variables of bound head gradients, with their arrays."""
    seeds: list[tuple[Entry, TracedValue | None]] = []
    head_grads: dict[Node, Array] = {}
    bound = program.bound
    for entry, named, array in zip(program.heads, bound.graph.heads, bound.head_grads):
        if array is None:
            seeds.append((entry, None))
            continue
        node = Node(None, f"{output_name(named)}_grad")
        head_grads[node] = array
        seeds.append((entry, tracer.value((node, 0))))
    return seeds, head_grads

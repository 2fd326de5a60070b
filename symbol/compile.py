"""compile: the passes that make a plan of a graph, in the order they run.

    infer → gradient → infer (the new nodes) → simplify → place → memory → Plan

Each is a function of the graph, readable on its own; this file is the only one that knows their order.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Mapping, Sequence

from opreg.graph import Entry, Graph, Node, verify
from opreg.spec import Spec

from . import infer as inference
from .passes.gradient import gradients
from .passes.memory import plan_memory
from .passes.place import place
from .passes.simplify import simplify
from .plan import Plan, Step
from .symbol import RuleSymbol, output_name

__all__ = ["compile_plan", "Bound", "loss_heads"]


class Bound:
    """What a graph is bound to: raw arrays of its variables and outputs, and what is asked of their gradients.

    Attributes
    ----------
    graph : Graph
        The forward graph.
    ctx, group2ctx
        Where nodes compute.
    arrays, contexts : dict by variable
        Arguments and auxiliary states, and where they live.
    grads : dict by variable
        Gradient arrays with their request, ``(array, "write" | "add")``.
    outputs : list of arrays
        Where the heads go.
    head_grads : list of (array or None)
        Where the gradients of the heads arrive; None for losses.
    specs : dict by node
        Shapes and dtypes of the forward graph.
    """

    __slots__ = ("graph", "ctx", "group2ctx", "arrays", "contexts", "grads", "outputs", "head_grads", "specs", "memo")

    def __init__(self, graph: Graph, ctx: Any, group2ctx: Mapping[str, Any], arrays: dict[Node, Any],
                 contexts: dict[Node, Any], grads: dict[Node, tuple[Any, str]], outputs: list[Any],
                 head_grads: list[Any], specs: dict[Node, list[Spec]]):
        self.graph, self.ctx, self.group2ctx, self.arrays, self.contexts = graph, ctx, group2ctx, arrays, contexts
        self.grads, self.outputs, self.head_grads, self.specs = grads, outputs, head_grads, specs
        self.memo: dict = {}


def _reachable(nodes: Sequence[Node], heads: Sequence[Entry]) -> list[Node]:
    """The nodes that heads need, in the given order."""
    needed = {node for node, _ in heads}
    for node in reversed(nodes):
        if node in needed:
            needed.update(source for source, _ in node.inputs)
    return [node for node in nodes if node in needed]


def compile_plan(bound: Bound, is_train: bool, check: bool = False) -> Plan:
    """The plan of a bound graph, for training (forward, backward) or for inference.

    Parameters
    ----------
    bound : Bound
        The graph and its arrays.
    is_train : bool
        Mode; only a training plan has backward steps.
    check : bool
        Verify the graph between passes, as the tests do.
    """
    graph, specs = bound.graph, dict(bound.specs)
    nodes, heads = list(graph.nodes), list(graph.heads)
    arrays, contexts = dict(bound.arrays), dict(bound.contexts)
    wanted: list[Node] = []
    if is_train and bound.grads:
        seeds, seed_nodes = _seeds(bound)
        found, made = gradients(graph, seeds, list(bound.grads))
        for seed, array in seed_nodes.items():
            arrays[seed], contexts[seed] = array, bound.ctx
            specs[seed] = [Spec(array.shape, array.dtype)]
        wanted = [node for node in bound.grads if node in found]
        grad_heads = [found[node] for node in wanted]
        everything = nodes + list(seed_nodes) + made
        new = set(made)
        nodes = nodes + list(seed_nodes) + [node for node in _reachable(everything, grad_heads) if node in new]
    
        heads += grad_heads
        if check:
            verify(Graph(heads, nodes))
        specs = inference.infer(Graph(heads, nodes), {}, {}, specs)
    nodes, heads = simplify(nodes, heads, specs, is_train)
    if check:
        verify(Graph(heads, nodes))
    nodes = _reachable(nodes, heads)
    nodes, heads, placed = place(nodes, heads, specs, bound.ctx, bound.group2ctx, contexts)
    if check:
        verify(Graph(heads, nodes))
    return _lay_out(bound, nodes, heads, specs, placed, arrays, wanted, is_train)


def _seeds(bound: Bound) -> tuple[dict[Entry, Any], dict[Node, Any]]:
    """Gradients that arrive at the heads, as variables; None for losses."""
    seeds: dict[Entry, Any] = {}
    variables: dict[Node, Any] = {}
    for entry, array in zip(bound.graph.heads, bound.head_grads):
        if array is None:
            seeds.setdefault(entry, None)
            continue
        seed = Node(None, f"{output_name(entry)}_grad")
        variables[seed] = array
        value = RuleSymbol(((seed, 0),))
        seeds[entry] = value if seeds.get(entry) is None else seeds[entry] + value
    return seeds, variables


def _lay_out(bound: Bound, nodes: list[Node], heads: list[Entry], specs: dict[Node, list[Spec]],
             contexts: dict[Node, Any], arrays: dict[Node, Any], wanted: list[Node], is_train: bool) -> Plan:
    """Give every entry its memory and every node its step."""
    n_out = len(bound.graph.heads)
    split = _split(nodes, heads[:n_out])
    bound_entries = {(node, 0): arrays[node] for node in nodes if node.op is None}
    uses: dict[Entry, int] = {}
    for node in nodes:
        for entry in node.inputs:
            uses[entry] = uses.get(entry, 0) + 1
    for entry in heads:
        uses[entry] = uses.get(entry, 0) + 1
    targets: dict[Entry, Any] = {}
    kept: dict[Entry, int] = {}
    adds: dict[Entry, Any] = {}
    after_forward: list[tuple[Entry, Any, str]] = []
    after_backward: list[tuple[Entry, Any, str]] = []
    outputs = zip(heads[:n_out], bound.outputs, ["write"] * n_out)
    grads = ((entry, *bound.grads[node]) for node, entry in zip(wanted, heads[n_out:]))
    for i, (entry, array, req) in enumerate([*outputs, *grads]):
        spec = specs[entry[0]][entry[1]]
        fits = spec.shape == array.shape and spec.dtype == array.dtype and entry[0].op is not None
        if req == "write" and fits and entry not in targets:
            targets[entry] = array
        elif (req == "add" and fits and uses[entry] == 1
              and entry[0].op.name.startswith("_backward_custom.")):  # type: ignore[union-attr]
            adds[entry] = array  # an operator of users adds by itself
        else:
            if entry not in targets:
                kept[entry] = split if i < n_out and split < len(nodes) else len(nodes)
            (after_forward if i < n_out else after_backward).append((entry, array, req))
    for entry, array in adds.items():
        targets[entry] = array
    memory = plan_memory(nodes, specs, contexts, bound_entries, targets, kept)
    plan = Plan(nodes, split, specs, contexts, memory, bound_entries, is_train, bound.memo, adds)
    plan.segments([_final(plan, *each) for each in after_forward],
                  [_final(plan, *each) for each in after_backward])
    return plan


def _split(nodes: list[Node], heads: Sequence[Entry]) -> int:
    """The position after the last node that an output needs."""
    needed = set(_reachable(nodes, heads))
    return max((i + 1 for i, node in enumerate(nodes) if node in needed), default=0)


def _final(plan: Plan, entry: Entry, array: Any, req: str) -> Step:
    """The step that brings an entry to where a caller reads it, when it cannot be computed there."""
    source = plan._array(entry)
    if source.dtype.kind == "b" or req == "write":
        run: Callable = functools.partial(array.__setitem__, Ellipsis, source)
    else:
        xp = plan.contexts[entry[0]].xp
        run = functools.partial(xp.add, array, source, array)
    return Step(None, "add" if req == "add" else "copy", [], f"{output_name(entry)} to its bound array", [run], [array])


def loss_heads(graph: Graph) -> list[bool]:
    """For each head whether its gradient starts there."""
    return [node.op is not None and node.op.loss(node.attrs) for node, _ in graph.heads]

"""Subgraphs: gradient rules of built-in operators, traced once and applied many times.

A rule is ordinary code that calls operators on values. The calls of operators that a rule makes are its subgraph. When
a gradient is added to a graph, the subgraph is copied into it, with the graph's entries as inputs. Eager backward
passes run the subgraph, see ``opreg.ndarray.traced_rules``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph import Entry, Node
from .invalidation import EDITION, keep, operator_cache
from .op import Op
from .rules import Attrs
from .spec import Spec
from .tracing import RuleTracer, SpecsAsked, TracedValue

__all__ = ["Subgraph", "fits", "rule_graph", "subgraph"]


class Subgraph:
    """A list of operators over numbered places: the inputs, then the outputs of each operator, in order.

    Parameters
    ----------
    nodes : sequence of Node
        Operators in topological order.
    inputs : sequence of entry or None
        Entries of the inputs, None for a missing one.
    results : sequence of entry or None
        Entries of the results, None for a missing one.

    Attributes
    ----------
    steps : list of (Op, attrs, keywords, places, int)
        Each operator with its attributes, complete and as passed, the places it reads, and its number of outputs.
    results : list of int or None
        Places of the results.
    """

    __slots__ = ("steps", "results", "_places")

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Entry | None], results: Sequence[Entry | None]):
        places: dict[Entry | None, int] = {entry: i for i, entry in enumerate(inputs)}
        place = len(inputs)
        self.steps: list[tuple[Op, Attrs, Attrs, list[int], int]] = []
        for node in nodes:
            self.steps.append((node.op, node.attrs, node.keywords, [places[entry] for entry in node.inputs],  # type: ignore
                               node.count))
            for i in range(node.count):
                places[node, i] = place
                place += 1
        self.results = [None if entry is None else places[entry] for entry in results]
        self._places = place

    def last_uses(self) -> list[list[int]]:
        """For each step, the places that no later step reads and that are no results of the subgraph."""
        needed = {place for place in self.results if place is not None}
        first = end = self._places - sum([step[4] for step in self.steps])
        last: dict[int, int] = {}
        for number, (_, _, _, places, count) in enumerate(self.steps):
            last.update(dict.fromkeys([*range(end, end + count), *places], number))
            end += count
        done: list[list[int]] = [[] for _ in self.steps]
        for place, number in last.items():
            if place >= first and place not in needed:
                done[number].append(place)
        return done

    def read(self) -> set[int]:
        """The places whose values the results depend on."""
        reads, end = {place for place in self.results if place is not None}, self._places
        for op, _, _, places, count in reversed(self.steps):
            produced, end = range(end - count, end), end - count
            if not reads.isdisjoint(produced):
                reads.update(place for i, place in enumerate(places) if i not in op.traits.unread)
        return reads

    def inline(self, tracer: RuleTracer, inputs: Sequence[Entry | None]) -> list[TracedValue | None]:
        """Add the steps to a tracer as nodes over these entries; returns the results."""
        entries: list[Any] = list(inputs)  # None for a missing output gradient
        for op, attrs, words, places, count in self.steps:
            node = tracer.add(op, attrs, [entries[i] for i in places], words)
            if count == 1:
                entries.append((node, 0))
            else:
                entries += [(node, i) for i in range(count)]
        return [None if place is None else TracedValue(tracer, entries[place]) for place in self.results]


def rule_graph(op: Op, attrs: Attrs, out_grads: Sequence[bool], needs: Sequence[bool], is_train: bool,
               specs: Sequence[Spec] | None) -> Subgraph:
    """The gradient rule of an operator as a subgraph, whose inputs are the output gradients, inputs and outputs of the
    operator, with these ``specs``."""
    count, first = len(out_grads), len(out_grads) + len(needs)
    tracer = RuleTracer(known_specs=None if specs is None else {})
    input_specs = [Spec()] * (first + count) if specs is None else specs
    entries = [tracer.variable(f"{op.name} {i}", spec) for i, spec in enumerate(input_specs)]
    values = [tracer.value(entry) for entry in entries]
    g = [value if grad else None for value, grad in zip(values, out_grads)]
    gradients = op.differentiate(g[0] if count == 1 else tuple(g), values[count:first], values[first:], attrs, needs,
                                 is_train)
    return Subgraph(tracer.nodes, entries, [value._entry if need and value is not None else None
                                            for value, need in zip(gradients, needs)])


#: Subgraphs by operator, attributes, output gradients, needs and mode, and by the specs if the rule reads some.
_SUBGRAPHS = operator_cache(1024, "gradient rules")


def fits(op: Op) -> bool:
    """Whether the gradient rule of an operator can be cached as a subgraph: not a user's, nor one that reads no
    values."""
    return op.where is None and not op.signature.per_instance and op.traits.grad_reads


def subgraph(op: Op, attrs: Any, out_grads: tuple[bool, ...], needs: tuple[bool, ...], is_train: bool,
             specs: Callable[[], Sequence[Spec]]) -> Subgraph:
    """The gradient rule of an operator as a subgraph, from a cache.

    Parameters
    ----------
    out_grads : tuple of bool
        Whether each output has a gradient.
    needs : tuple of bool
        Whether each input needs a gradient; others get none.
    is_train : bool
        Whether the mode is training.
    specs : function
        Shapes and dtypes of gradients, inputs and outputs, as far as they are known.
    """
    key, edition = (op, attrs, out_grads, needs, is_train), EDITION[0]
    rule = _SUBGRAPHS[key]
    if rule is None:
        try:
            rule = rule_graph(op, attrs, out_grads, needs, is_train, None)
        except SpecsAsked:
            rule = SpecsAsked
        if attrs.lasting:
            keep(_SUBGRAPHS, key, rule, edition)
    if rule is SpecsAsked:
        input_specs = specs()
        rule = _SUBGRAPHS[(*key, *input_specs)]
        if rule is None:
            rule = rule_graph(op, attrs, out_grads, needs, is_train, input_specs)
            if attrs.lasting:
                keep(_SUBGRAPHS, (*key, *input_specs), rule, edition)
    return rule

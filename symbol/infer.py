"""Inference: shapes and dtypes of every entry of a graph, forwards and backwards until nothing new follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.core.graph import Graph, Node, declared_shape, fail
from opreg.core.mode import MODE
from opreg.core.spec import ANY, Shape, Spec, as_dtype, known, unify
from opreg.errors import InferenceError, OpError

__all__ = ["infer_shapes", "emptied", "infer_dtypes", "decide_dtypes", "variable_shapes", "variable_dtypes", "infer",
           "told"]

Found = dict[Node, list[Any]]
_DEFAULT = np.dtype(np.float32)


def _newer_shape(old: Shape | None, new: Shape | None) -> bool:
    """Whether a shape says more than before."""
    if new is None or old is new:
        return False
    return old is None or (not known(old) and sum([d is ANY for d in new]) < sum([d is ANY for d in old]))


def _newer_dtype(old: Any, new: Any) -> bool:
    return old is None and new is not None


class _Settling:
    """Rules applied to the nodes of a graph, each combination of operator, attributes and knowledge once.

    What is known of a node is a list that is never changed: many nodes share one, and its identity tells whether
    something new is known.
    """

    def __init__(self, found: Found, rule: Callable, newer: Callable[[Any, Any], bool]):
        self.found, self.rule, self.newer = found, rule, newer
        self._seen: dict[tuple, tuple] = {}

    def outputs(self, node: Node, outs: list[Any] | None) -> tuple[list[Any], list[tuple[int, Any]]]:
        """What follows for the outputs, and what is learned of inputs by their number."""
        found = self.found
        ins = [found[source][i] for source, i in node.inputs]
        key = node.op, id(node.attrs), *map(id, ins), id(outs)
        seen = self._seen.get(key)
        if seen is None:
            before = [None] * node.count if outs is None else outs
            try:
                new_ins, new_outs = self.rule(node.op, list(ins), list(before), node.attrs)
            except Exception as error:
                fail(error, node)
            newer = self.newer
            after = [new if newer(old, new) else old for old, new in zip(before, new_outs)]
            if outs is not None and all(new is old for new, old in zip(after, outs)):
                after = outs
            learned = [(i, new) for i, (old, new) in enumerate(zip(ins, new_ins)) if newer(old, new)]
            # While these live nothing else has their identities.
            seen = self._seen[key] = after, learned, ins, outs, node.attrs
        return seen[:2]

    def learn(self, source: Node, i: int, new: Any) -> None:
        """Enter what is learned of an output."""
        self.found[source] = [new if k == i else old for k, old in enumerate(self.found[source])]


def _propagate(graph: Graph, found: Found, rule: Callable, newer: Callable[[Any, Any], bool]) -> None:
    """Apply every node's rule until no entry learns anything; a chain is settled in one sweep."""
    settling = _Settling(found, rule, newer)
    users: dict[Node, list[Node]] = {}
    waiting: set[Node] = set()

    def back(node: Node, learned: list[tuple[int, Any]]) -> None:
        """Tell makers and other users of a node's inputs what the node knows of them."""
        if not users:
            for user in graph.nodes:
                for source, _ in user.inputs:
                    users.setdefault(source, []).append(user)
        for number, new in learned:
            source, i = node.inputs[number]
            if newer(found[source][i], new):
                settling.learn(source, i, new)
                if source.op is not None:
                    waiting.add(source)
                waiting.update([user for user in users[source] if user is not node and user in found])

    for node in graph.nodes:
        if node not in found:
            found[node], learned = settling.outputs(node, None)
            if learned:
                back(node, learned)
    forwards = False
    while waiting:
        for node in (graph.nodes if forwards else reversed(graph.nodes)):
            if node not in waiting:
                continue
            waiting.discard(node)
            outs = found[node]
            found[node], learned = settling.outputs(node, outs)
            if found[node] is not outs:
                waiting.update(users.get(node, ()))
            if learned:
                back(node, learned)
        forwards = not forwards


def infer_shapes(graph: Graph, given: Mapping[Node, Shape | None], found: Found | None = None) -> Found:
    """Shapes of all entries, as far as they follow from those of variables.

    Parameters
    ----------
    graph : Graph
        What to look at.
    given : mapping of variable to shape
        What is known; ``__shape__`` attributes of variables count too.
    found : dict, optional
        Earlier answers about some of the nodes; extended in place.

    Returns
    -------
    dict of node to list of shapes
        None where the rank, ``ANY`` where a dimension stays unknown.
    """
    found = {} if found is None else found
    for node in graph.nodes:
        if node.op is None and node not in found:
            found[node] = [_variable_shape(node, given.get(node))]
    _propagate(graph, found, lambda op, ins, outs, attrs: op.infer_shapes(ins, outs, attrs), _newer_shape)
    return found


def emptied(graph: Graph, given: Mapping[Node, Shape | None], zeros: Mapping[Node, Sequence[int]]
            ) -> dict[Node, Shape | None]:
    """Shapes of variables with the dimensions that were given as zero, and that do not follow from the rest, empty.

    Parameters
    ----------
    graph : Graph
        What to look at.
    given : mapping of variable to shape
        What is known, these dimensions unknown.
    zeros : mapping of variable to sequence of int
        Which dimensions they are.
    """
    found = infer_shapes(graph, given)
    shapes = dict(given)
    for node, places in zeros.items():
        shape = found[node][0]
        if shape is not None and any(shape[i] is ANY for i in places):
            shapes[node] = tuple([0 if i in places and dim is ANY else dim for i, dim in enumerate(shape)])
    try:
        infer_shapes(graph, shapes)
    except OpError:  # there is no answer for empty arrays
        return dict(given)
    return shapes


def infer_dtypes(graph: Graph, given: Mapping[Node, Any], found: Found | None = None) -> Found:
    """Dtypes of all entries, as far as they follow; see ``infer_shapes``."""
    found = {} if found is None else found
    for node in graph.nodes:
        if node.op is None and node not in found:
            declared = node.tags.get("__dtype__")
            dtype = given.get(node)
            if dtype is None and declared and declared != "-1":
                dtype = as_dtype(declared)
            found[node] = [dtype]
    _propagate(graph, found, lambda op, ins, outs, attrs: op.infer_dtypes(ins, outs, attrs), _newer_dtype)
    return found


def _variable_shape(node: Node, given: Shape | None) -> Shape | None:
    """What is known of a variable's shape: what is given, else what its attribute ``__shape__`` declares; a shape that
    is given in part is completed by it."""
    declared = node.tags.get("__shape__")
    if not declared or known(given):
        return given
    try:
        return unify(given, declared_shape(declared))
    except OpError as error:
        fail(error, node)


def told(shape: Shape | None) -> tuple[int, ...] | None:
    """A shape as users are told it."""
    if shape is None:
        return None if MODE.np_shape else ()
    return tuple([(-1 if MODE.np_shape else 0) if dim is ANY else dim for dim in shape])


def infer(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, Any],
          before: dict[Node, list[Spec]] | None = None) -> dict[Node, list[Spec]]:
    """Specs of all entries, complete: dtypes that nothing decides are float32.

    Raises
    ------
    InferenceError
        Listing what stays unknown.
    """
    before = before or {}
    found = _forwards(graph, shapes, dtypes, before)
    if found is not None:
        return found
    new = Graph(graph.heads, [node for node in graph.nodes if node not in before])
    shape_of: Found = {}
    dtype_of: Found = {}
    for node in new.nodes:  # what they read of others is known
        for source, _ in node.inputs:
            if source in before and source not in shape_of:
                shape_of[source] = [spec.shape for spec in before[source]]
                dtype_of[source] = [spec.dtype for spec in before[source]]
    infer_shapes(new, shapes, shape_of)
    dtype_of = decide_dtypes(new, dtypes, dtype_of)
    return {**before, **_specs_of(new.nodes, shape_of, dtype_of)}


def _forwards(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, Any],
              before: Mapping[Node, list[Spec]]) -> dict[Node, list[Spec]] | None:
    """Specs of all entries in one sweep, where those of all variables are known and the others follow; else None."""
    found = dict(before)
    seen: dict[tuple, list[Spec]] = {}
    same: dict[Spec, Spec] = {}
    for node in graph.nodes:
        if node in found:
            continue
        if node.op is None:
            shape, dtype = _variable_shape(node, shapes.get(node)), dtypes.get(node)
            if not known(shape) or dtype is None:
                return None
            found[node] = [Spec(shape, dtype)]
            continue
        ins = [found[source][i] for source, i in node.inputs]
        key = node.op, id(node.attrs), *map(id, ins)
        specs = seen.get(key)
        if specs is None:
            unknown = [None] * node.count
            try:
                _, out_shapes = node.op.infer_shapes([spec.shape for spec in ins], list(unknown), node.attrs)
                _, out_dtypes = node.op.infer_dtypes([spec.dtype for spec in ins], list(unknown), node.attrs)
            except Exception as error:
                fail(error, node)
            if not all(map(known, out_shapes)) or any(dtype is None for dtype in out_dtypes):
                return None
            made = [Spec(shape, dtype) for shape, dtype in zip(out_shapes, out_dtypes)]
            # Equal ones are one, so that a chain of the same operators is inferred once.
            specs = seen[key] = [same.setdefault(spec, spec) for spec in made]
        found[node] = specs
    return found


def decide_dtypes(graph: Graph, given: Mapping[Node, Any], found: Found | None = None) -> Found:
    """Dtypes of all entries; those of variables that nothing decides are float32."""
    earlier = found or {}
    found = infer_dtypes(graph, given, dict(earlier))
    variables = {node: found[node][0] for node in graph.nodes if node.op is None}
    if None not in variables.values():
        return found
    return infer_dtypes(graph, _decided(variables), dict(earlier))


def _decided(dtypes: Mapping[Node, Any]) -> dict[Node, Any]:
    return {node: _DEFAULT if dtype is None else dtype for node, dtype in dtypes.items()}


def variable_shapes(graph: Graph, given: Mapping[Node, Shape | None]) -> dict[Node, Shape | None]:
    """Shapes of the variables, as far as they follow from those that are given."""
    variables = [node for node in graph.nodes if node.op is None]
    found = {node: _variable_shape(node, given.get(node)) for node in variables}
    if all(map(known, found.values())):
        return found
    everything = infer_shapes(graph, given)
    return {node: everything[node][0] for node in variables}


def variable_dtypes(graph: Graph, given: Mapping[Node, Any]) -> dict[Node, Any]:
    """Dtypes of the variables, float32 where nothing decides."""
    found = infer_dtypes(graph, given)
    return _decided({node: found[node][0] for node in graph.nodes if node.op is None})


def _specs_of(nodes: Sequence[Node], shape_of: Found, dtype_of: Found) -> dict[Node, list[Spec]]:
    """Specs of nodes from shapes and dtypes; nodes of which the same is known share a list.

    Raises
    ------
    InferenceError
        Listing what stays unknown.
    """
    shared: dict[tuple[int, int], list[Spec]] = {}
    found: dict[Node, list[Spec]] = {}
    for node in nodes:
        shapes, dtypes = shape_of[node], dtype_of[node]
        key = id(shapes), id(dtypes)
        specs = shared.get(key)
        if specs is None:
            if not all(known(shape) for shape in shapes):
                raise _unknown([node for node in nodes if not all(known(shape) for shape in shape_of[node])])
            specs = shared[key] = [Spec(shape, _DEFAULT if dtype is None else dtype)
                                   for shape, dtype in zip(shapes, dtypes)]
        found[node] = specs
    return found


def _unknown(nodes: Sequence[Node]) -> InferenceError:
    variables = [node.name for node in nodes if node.op is None]
    names = ", ".join(variables or [node.name for node in nodes][:10])
    return InferenceError(f"shapes do not follow from what is given for: {names}. Give the shapes of more arguments"
                          " to bind, or shape= to their Variable")

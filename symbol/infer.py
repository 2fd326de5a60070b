"""Inference: shapes and dtypes of every entry of a graph, forwards and backwards until nothing new follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opreg.attrs import Field
from opreg.errors import InferenceError, OpError
from opreg.graph import Graph, Node, locate
from opreg.spec import ANY, Shape, Spec, as_dtype, known, unify

__all__ = ["infer_shapes", "infer_dtypes", "infer"]

Found = dict[Node, list[Any]]


def _newer_shape(old: Shape | None, new: Shape | None) -> bool:
    """Whether a shape says more than before."""
    if new is None or old is new:
        return False
    return old is None or (not known(old) and sum(d is ANY for d in new) < sum(d is ANY for d in old))


def _newer_dtype(old: Any, new: Any) -> bool:
    return old is None and new is not None


def _propagate(graph: Graph, found: Found, rule: Callable, newer: Callable[[Any, Any], bool]) -> None:
    """Apply every node's rule until no entry learns anything; a chain is settled in one sweep."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for source, _ in node.inputs:
            users.setdefault(source, []).append(node)
    waiting = set()
    for node in graph.nodes:
        if node not in found:
            found[node] = [None] * node.count
            if node.op is not None:
                waiting.add(node)
    forwards = True
    while waiting:
        for node in (graph.nodes if forwards else reversed(graph.nodes)):
            if node not in waiting:
                continue
            waiting.discard(node)
            ins = [found[source][i] for source, i in node.inputs]
            try:
                new_ins, new_outs = rule(node.op, ins, found[node], node.attrs)
            except Exception as error:
                locate(error, node)
                raise
            if any(newer(old, new) for old, new in zip(found[node], new_outs)):
                waiting.update(users.get(node, ()))
            found[node] = [new if newer(old, new) else old for old, new in zip(found[node], new_outs)]
            for (source, i), old, new in zip(node.inputs, ins, new_ins):
                if newer(old, new):
                    found[source][i] = new
                    if source.op is not None:
                        waiting.add(source)
                    waiting.update(user for user in users[source] if user is not node)
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
            declared = node.tags.get("__shape__")
            shape = declared_shape(declared) if declared else None
            try:
                found[node] = [unify(given.get(node), shape)]
            except OpError as error:
                locate(error, node)
                raise
    _propagate(graph, found, lambda op, ins, outs, attrs: op.infer_shapes(ins, outs, attrs), _newer_shape)
    return found


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


def declared_shape(text: str) -> Shape | None:
    """The shape that a ``__shape__`` attribute declares; 0 is an unknown dimension, ``()`` says nothing."""
    dims = Field("__shape__", tuple[int, ...])(text)
    return tuple(ANY if dim <= 0 else dim for dim in dims) or None


def infer(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, Any],
          before: dict[Node, list[Spec]] | None = None) -> dict[Node, list[Spec]]:
    """Specs of all entries, complete: dtypes that nothing decides are float32.

    Raises
    ------
    InferenceError
        Listing what stays unknown.
    """
    shape_of: Found = {node: [spec.shape for spec in specs] for node, specs in (before or {}).items()}
    dtype_of: Found = {node: [spec.dtype for spec in specs] for node, specs in (before or {}).items()}
    infer_shapes(graph, shapes, shape_of)
    infer_dtypes(graph, dtypes, dtype_of)
    undecided = {node: np.dtype(np.float32) for node in graph.nodes if node.op is None and dtype_of[node][0] is None}
    if undecided:
        dtype_of = {node: dtypes_ for node, dtypes_ in dtype_of.items()
                    if node.op is None and node not in undecided}
        infer_dtypes(graph, undecided, dtype_of)
    unknown = [node for node in graph.nodes if not all(known(shape) for shape in shape_of[node])]
    if unknown:
        variables = [node.name for node in unknown if node.op is None]
        names = ", ".join(variables or [node.name for node in unknown][:10])
        raise InferenceError(f"shapes do not follow from what is given for: {names}. Give the shapes of more arguments"
                             " to bind, or shape= to their Variable")
    default = np.dtype(np.float32)
    return {node: [Spec(shape, default if dtype is None else dtype)
                   for shape, dtype in zip(shape_of[node], dtype_of[node])] for node in graph.nodes}

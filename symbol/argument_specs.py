"""Shapes and dtypes of a symbol's arguments as callers give them, and those that are inferred from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from opreg.core.graph import Graph, Node
from opreg.core.placeholder import placeholder, resolve
from opreg.core.rules import Dtypes, Shapes
from opreg.core.spec import Shape, as_dtype, is_known, parse_shape, show
from opreg.errors import ArgumentError, did_you_mean
from opreg.typing import DTypeLike

from . import infer as inference
from .naming import output_name

__all__ = ["Dims", "inferred_dtypes", "inferred_shapes", "known_dtypes", "known_shapes", "unknown_shapes"]

T = TypeVar("T")

#: A shape as the caller of ``infer_shape`` gives it: 0 or -1 for an unknown dimension, None for an unknown shape.
Dims: TypeAlias = Sequence[int] | None


def _values_of_variables(graph: Graph, owner: object, what: str, args: Sequence[T | None],
                         keywords: Mapping[str, T | None]) -> tuple[Graph, dict[Node, T]]:
    """The graph, its operators looked up in the registry, and the values that the caller gave for its variables. Errors
    name the owner."""
    graph = resolve(graph, strict=False)
    arguments, auxiliary = graph.variables()
    if args and keywords:
        raise ArgumentError(f"{what}: pass values by position or by name, not both")
    if len(args) > len(arguments):
        raise ArgumentError(f"{what}: {owner!r} has {len(arguments)} arguments, got {len(args)} values")
    by_name = {node.name: node for node in arguments + auxiliary}
    values = {node: value for node, value in zip(arguments, args) if value is not None}
    for name, value in keywords.items():
        if name not in by_name:
            raise ArgumentError(f"{what}: {owner!r} has no argument {name!r}. {did_you_mean(name, by_name)}")
        if value is not None:
            values[by_name[name]] = value
    return graph, values


def known_shapes(graph: Graph, owner: object, what: str, args: Sequence[Dims], keywords: Mapping[str, Dims]
                 ) -> tuple[Graph, dict[Node, Shape | None]]:
    """The graph, and the shapes of variables that the caller gave.

    Raises
    ------
    ArgumentError
        If the graph has no such argument. The error names the caller, ``what``, and the owner of the graph, a symbol.
    """
    for name, shape in [*enumerate(args), *keywords.items()]:
        if shape is not None and (not isinstance(shape, (tuple, list))
                                  or not all(isinstance(dim, (int, np.integer)) for dim in shape)):
            raise ArgumentError(f"{what}: the shape of {name} must be a tuple of ints, got {shape!r}")
    graph, stated = _values_of_variables(graph, owner, what, args, keywords)
    shapes = {node: parse_shape(shape) for node, shape in stated.items()}
    if what != "infer_shape_partial" and any(0 in shape for shape in stated.values()):
        zeros = {node: [i for i, dim in enumerate(shape) if dim == 0] for node, shape in stated.items()}
        shapes = inference.with_empty_dims(graph, shapes, zeros)
    return graph, shapes


def inferred_shapes(graph: Graph, owner: object, what: str, args: Sequence[Dims], keywords: Mapping[str, Dims]
                    ) -> tuple[Shapes, Shapes, Shapes]:
    """Shapes of arguments, outputs and auxiliary states, from those that the caller gave."""
    graph, shapes = known_shapes(graph, owner, what, args, keywords)
    return _divide_by_role(graph, inference.infer_shapes(graph, shapes))


def unknown_shapes(graph: Graph, groups: Sequence[Shapes]) -> str:
    """The sentence of an error that lists what ``inferred_shapes`` left unknown, with the operator that takes each
    argument; empty where all shapes are known."""
    arguments, auxiliary = graph.variables()
    names = ([node.name for node in arguments], list(map(output_name, graph.heads)), [node.name for node in auxiliary])
    taken = {source.name: f", an input of {node.op.name} {node.name!r}" for node in reversed(graph.nodes)
             if node.op is not None for source, _ in node.inputs if source.op is None}
    unknown = [f"{name}: {show(shape)}{taken.get(name, '')}" for group, shapes in zip(names, groups)
               for name, shape in zip(group, shapes) if not is_known(shape)]
    if not unknown:
        return ""
    more = f"; and {len(unknown) - 10} more" if len(unknown) > 10 else ""
    stands = next(filter(None, map(placeholder, resolve(graph, strict=False).nodes)), None)
    why = f". {stands.missing()}" if stands else ""
    return f"cannot infer the shapes of {'; '.join(unknown[:10])}{more}{why}"


def known_dtypes(graph: Graph, owner: object, what: str, args: Sequence[DTypeLike], keywords: Mapping[str, DTypeLike]
                 ) -> tuple[Graph, dict[Node, np.dtype]]:
    """The graph, and the dtypes of variables that the caller gave."""
    graph, stated = _values_of_variables(graph, owner, what, args, keywords)
    return graph, {node: as_dtype(dtype) for node, dtype in stated.items()}


def inferred_dtypes(graph: Graph, owner: object, what: str, args: Sequence[DTypeLike], keywords: Mapping[str, DTypeLike]
                    ) -> tuple[Dtypes, Dtypes, Dtypes]:
    """Dtypes of arguments, outputs and auxiliary states, from those that the caller gave."""
    graph, dtypes = known_dtypes(graph, owner, what, args, keywords)
    rule = inference.decide_dtypes if what == "infer_type" else inference.infer_dtypes
    return _divide_by_role(graph, rule(graph, dtypes))


def _divide_by_role(graph: Graph, answers: Mapping[Node, list[T]]) -> tuple[list[T], list[T], list[T]]:
    """Inferred shapes or dtypes of arguments, outputs and auxiliary states, divided by role."""
    arguments, auxiliary = graph.variables()
    return ([answers[node][0] for node in arguments], [answers[node][i] for node, i in graph.heads],
            [answers[node][0] for node in auxiliary])

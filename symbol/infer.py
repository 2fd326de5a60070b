"""Inference of the shapes and dtypes of all entries of a graph, forwards and backwards through it until nothing
changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from opreg.core.graph import Graph, Node, declared_shape, fail
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import ANY, Shape, Spec, as_dtype, is_known, unify
from opreg.custom.function import FunctionUse
from opreg.errors import InferenceError, OpError

__all__ = ["forget", "infer_shapes", "with_empty_dims", "infer_dtypes", "decide_dtypes", "variable_shapes",
           "variable_dtypes", "infer", "mxnet_shape"]

K = TypeVar("K")  # the shape or dtype of an entry; None where it is unknown

#: Shapes or dtypes of the outputs of each node, as far as they are inferred.
Known: TypeAlias = dict[Node, list[K]]

#: The inference rule of an operator: shapes or dtypes of its inputs and outputs from those that are known.
Rule: TypeAlias = Callable[[Op, list[K], list[K], Attrs], tuple[Sequence[K], Sequence[K]]]

_DEFAULT = np.dtype(np.float32)
_NUMBERS = {int}  # the classes of the dimensions of a shape without unknown ones


def _newer_shape(old: Shape | None, new: Shape | None) -> bool:
    """Whether a new shape has dimensions that the old one lacks."""
    if new is None or old is new:
        return False
    return old is None or (not is_known(old) and sum([d is ANY for d in new]) < sum([d is ANY for d in old]))


def _newer_dtype(old: np.dtype | None, new: np.dtype | None) -> bool:
    return old is None and new is not None


class _Rules(Generic[K]):
    """Applies rules to the nodes of a graph, once for each combination of operator, attributes and known shapes or
    dtypes: equal layers cost one application.

    The known shapes or dtypes of a node are a list that is never modified. Many nodes share one list, and a new list
    means that something was inferred. Equal shapes of outputs are one object, so that objects tell combinations apart;
    their values do not, since an unknown dimension equals every length.
    """

    def __init__(self, known_of: Known[K], rule: Rule[K], newer: Callable[[K, K], bool]):
        self.known_of, self.rule, self.newer = known_of, rule, newer
        self._seen: dict[tuple[object, ...], tuple[list[K], list[tuple[int, K]], object]] = {}
        self._shapes: dict[object, K] = {}

    def outputs(self, node: Node, outs: list[K] | None) -> tuple[list[K], list[tuple[int, K]]]:
        """Shapes or dtypes of the outputs, and newly inferred ones of inputs, by index."""
        known_of = self.known_of
        ins = [known_of[source][i] for source, i in node.inputs]
        key = node.op, id(node.attrs), *map(id, ins), id(outs)
        result = self._seen.get(key)
        if result is None:
            before: list[Any] = [None] * node.count if outs is None else outs
            assert node.op is not None
            try:
                new_ins, new_outs = self.rule(node.op, list(ins), list(before), node.attrs)
            except Exception as error:
                fail(error, node)
            newer = self.newer
            after = [self._one(new) if newer(old, new) else old for old, new in zip(before, new_outs)]
            if outs is not None and all(new is old for new, old in zip(after, outs)):
                after = outs
            learned = [(i, new) for i, (old, new) in enumerate(zip(ins, new_ins)) if newer(old, new)]
            # These references keep the ids in the key valid.
            result = self._seen[key] = after, learned, (ins, outs, node.attrs)
        return result[:2]

    def _one(self, value: K) -> K:
        """The object for a shape or dtype: the first one that was equal to it, if its dimensions are plain numbers."""
        if isinstance(value, tuple) and {*map(type, value)} == _NUMBERS:
            return self._shapes.setdefault(value, value)
        return value

    def learn(self, source: Node, i: int, new: K) -> None:
        """Store the inferred shape or dtype of an output."""
        self.known_of[source] = [new if k == i else old for k, old in enumerate(self.known_of[source])]


def _propagate(graph: Graph, known_of: Known[K], rule: Rule[K], newer: Callable[[K, K], bool]) -> None:
    """Apply the rules of all nodes until nothing new is inferred. For a chain of nodes, one sweep is enough."""
    rules = _Rules(known_of, rule, newer)
    users: dict[Node, list[Node]] = {}
    waiting: set[Node] = set()

    def back(node: Node, learned: list[tuple[int, K]]) -> None:
        """Store what a node's rule inferred of its inputs, and apply the rules of nodes that make or read them
        again."""
        if not users:
            for user in graph.nodes:
                for source, _ in user.inputs:
                    users.setdefault(source, []).append(user)
        for number, new in learned:
            source, i = node.inputs[number]
            if newer(known_of[source][i], new):
                rules.learn(source, i, new)
                if source.op is not None:
                    waiting.add(source)
                waiting.update([user for user in users[source] if user is not node and user in known_of])

    for node in graph.nodes:
        if node not in known_of:
            known_of[node], learned = rules.outputs(node, None)
            if learned:
                back(node, learned)
    forwards = False
    while waiting:
        for node in (graph.nodes if forwards else reversed(graph.nodes)):
            if node not in waiting:
                continue
            waiting.discard(node)
            outs = known_of[node]
            known_of[node], learned = rules.outputs(node, outs)
            if known_of[node] is not outs:
                waiting.update(users.get(node, ()))
            if learned:
                back(node, learned)
        forwards = not forwards


def forget(graph: Graph) -> None:
    """Drop shapes and dtypes that earlier inferences stored in users' functions, whose dtypes may depend on them."""
    for node in graph.nodes:
        if isinstance(node.attrs, FunctionUse):
            node.attrs.shapes = node.attrs.dtypes = None
        for body in node.attrs.get("subgraphs", ()):
            forget(body._graph())


def infer_shapes(graph: Graph, shapes: Mapping[Node, Shape | None], before: Known[Shape | None] | None = None
                 ) -> Known[Shape | None]:
    """Infer the shapes of all entries from those of variables, as far as rules determine them.

    Parameters
    ----------
    graph : Graph
        The graph.
    shapes : mapping of variable to shape
        Known shapes; ``__shape__`` attributes of variables are used, too.
    before : dict, optional
        Inferred shapes of some of the nodes; extended in place.

    Returns
    -------
    dict of node to list of shapes
        A shape is None if its rank is unknown; an unknown dimension is ``ANY``.
    """
    shape_of = {} if before is None else before
    for node in graph.nodes:
        if node.op is None and node not in shape_of:
            shape_of[node] = [_variable_shape(node, shapes.get(node))]
    _propagate(graph, shape_of, lambda op, ins, outs, attrs: op.infer_shapes(ins, outs, attrs), _newer_shape)
    return shape_of


def with_empty_dims(graph: Graph, stated: Mapping[Node, Shape | None], zeros: Mapping[Node, Sequence[int]]
                    ) -> dict[Node, Shape | None]:
    """Shapes of variables in which dimensions that were given as 0 are empty, unless rules infer another size.

    Parameters
    ----------
    graph : Graph
        The graph.
    stated : mapping of variable to shape
        Known shapes, in which these dimensions are unknown.
    zeros : mapping of variable to sequence of int
        The axes that were given as 0.
    """
    shape_of = infer_shapes(graph, stated)
    shapes = dict(stated)
    for node, places in zeros.items():
        shape = shape_of[node][0]
        if shape is not None and any(shape[i] is ANY for i in places):
            shapes[node] = tuple([0 if i in places and dim is ANY else dim for i, dim in enumerate(shape)])
    try:
        infer_shapes(graph, shapes)
    except OpError:  # the operators do not take empty arrays
        return dict(stated)
    return shapes


def infer_dtypes(graph: Graph, dtypes: Mapping[Node, np.dtype | None], before: Known[np.dtype | None] | None = None
                 ) -> Known[np.dtype | None]:
    """Infer the dtypes of all entries, as far as rules determine them; see ``infer_shapes``."""
    dtype_of = {} if before is None else before
    for node in graph.nodes:
        if node.op is None and node not in dtype_of:
            declared = node.tags.get("__dtype__")
            dtype = dtypes.get(node)
            if dtype is None and declared and declared != "-1":
                dtype = as_dtype(declared)
            dtype_of[node] = [dtype]
    _propagate(graph, dtype_of, lambda op, ins, outs, attrs: op.infer_dtypes(ins, outs, attrs), _newer_dtype)
    return dtype_of


def _variable_shape(node: Node, stated: Shape | None) -> Shape | None:
    """The known shape of a variable: the given one, completed by its attribute ``__shape__``."""
    declared = node.tags.get("__shape__")
    if not declared or is_known(stated):
        return stated
    try:
        return unify(stated, declared_shape(declared))
    except OpError as error:
        fail(error, node)


def mxnet_shape(shape: Shape | None) -> Shape | None:
    """A shape in MXNet's form: 0 for an unknown dimension and ``()`` for an unknown shape; under ``np_shape``, -1 and
    None."""
    if shape is None:
        return None if MODE.np_shape else ()
    return tuple([(-1 if MODE.np_shape else 0) if dim is ANY else dim for dim in shape])


def infer(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, np.dtype | None],
          before: dict[Node, list[Spec]] | None = None) -> dict[Node, list[Spec]]:
    """Infer the shapes and dtypes of all entries. A dtype that no rule determines is float32.

    Raises
    ------
    InferenceError
        If a shape is unknown. The error lists the variables.
    """
    before = before or {}
    specs = _forwards(graph, shapes, dtypes, before)
    if specs is not None:
        return specs
    new = Graph(graph.heads, [node for node in graph.nodes if node not in before])
    shape_of: Known[Shape | None] = {}
    dtype_of: Known[np.dtype | None] = {}
    for node in new.nodes:  # their inputs among other nodes are known
        for source, _ in node.inputs:
            if source in before and source not in shape_of:
                shape_of[source] = [spec.shape for spec in before[source]]
                dtype_of[source] = [spec.dtype for spec in before[source]]
    if any(isinstance(node.attrs, FunctionUse) for node in new.nodes):  # their shapes are found by runs on these dtypes
        infer_dtypes(new, dtypes, dict(dtype_of))
    infer_shapes(new, shapes, shape_of)
    dtype_of = decide_dtypes(new, dtypes, dtype_of)
    return {**before, **_specs_of(new.nodes, shape_of, dtype_of)}


def _forwards(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, np.dtype | None],
              before: Mapping[Node, list[Spec]]) -> dict[Node, list[Spec]] | None:
    """Specs of all entries in one sweep forwards; None if those of a variable are unknown, or one sweep is not
    enough."""
    specs_of = dict(before)
    cache: dict[tuple[object, ...], list[Spec]] = {}
    same: dict[Spec, Spec] = {}
    for node in graph.nodes:
        if node in specs_of:
            continue
        if node.op is None:
            shape, dtype = _variable_shape(node, shapes.get(node)), dtypes.get(node)
            if not is_known(shape) or dtype is None:
                return None
            specs_of[node] = [Spec(shape, dtype)]
            continue
        ins = [specs_of[source][i] for source, i in node.inputs]
        key = node.op, id(node.attrs), *map(id, ins)
        specs = cache.get(key)
        if specs is None:
            try:
                outs = node.op.specs(ins, node.attrs)
            except Exception as error:
                fail(error, node)
            if not all(is_known(shape) and dtype is not None for shape, dtype in outs):
                return None
            # Equal specs are one object, so that the rule runs once for a chain of the same operator.
            specs = cache[key] = [same.setdefault(spec, spec) for spec in outs]
        specs_of[node] = specs
    return specs_of


def decide_dtypes(graph: Graph, dtypes: Mapping[Node, np.dtype | None],
                  before: Known[np.dtype | None] | None = None) -> Known[np.dtype | None]:
    """Infer the dtypes of all entries, with float32 for variables whose dtype no rule determines."""
    before = before or {}
    dtype_of = infer_dtypes(graph, dtypes, dict(before))
    variables = {node: dtype_of[node][0] for node in graph.nodes if node.op is None}
    if None not in variables.values():
        return dtype_of
    return infer_dtypes(graph, _decided(variables), dict(before))


def _decided(dtypes: Mapping[Node, np.dtype | None]) -> dict[Node, np.dtype]:
    return {node: _DEFAULT if dtype is None else dtype for node, dtype in dtypes.items()}


def variable_shapes(graph: Graph, shapes: Mapping[Node, Shape | None]) -> dict[Node, Shape | None]:
    """Infer the shapes of all variables from the known ones, as far as rules determine them."""
    variables = [node for node in graph.nodes if node.op is None]
    stated = {node: _variable_shape(node, shapes.get(node)) for node in variables}
    if all(map(is_known, stated.values())):
        return stated
    shape_of = infer_shapes(graph, shapes)
    return {node: shape_of[node][0] for node in variables}


def variable_dtypes(graph: Graph, dtypes: Mapping[Node, np.dtype | None]) -> dict[Node, np.dtype]:
    """Infer the dtypes of the variables; float32 where no rule determines one."""
    dtype_of = infer_dtypes(graph, dtypes)
    return _decided({node: dtype_of[node][0] for node in graph.nodes if node.op is None})


def _specs_of(nodes: Sequence[Node], shape_of: Known[Shape | None], dtype_of: Known[np.dtype | None]
              ) -> dict[Node, list[Spec]]:
    """Combine shapes and dtypes of nodes to specs. Nodes with the same lists of both share a list of specs.

    Raises
    ------
    InferenceError
        If a shape is unknown. The error lists the variables.
    """
    shared: dict[tuple[int, int], list[Spec]] = {}
    specs_of: dict[Node, list[Spec]] = {}
    for node in nodes:
        shapes, dtypes = shape_of[node], dtype_of[node]
        key = id(shapes), id(dtypes)
        specs = shared.get(key)
        if specs is None:
            if not all(is_known(shape) for shape in shapes):
                raise _unknown([node for node in nodes if not all(is_known(shape) for shape in shape_of[node])])
            specs = shared[key] = [Spec(shape, _DEFAULT if dtype is None else dtype)
                                   for shape, dtype in zip(shapes, dtypes)]
        specs_of[node] = specs
    return specs_of


def _unknown(nodes: Sequence[Node]) -> InferenceError:
    variables = [node.name for node in nodes if node.op is None]
    names = ", ".join(variables or [node.name for node in nodes][:10])
    return InferenceError(f"cannot infer the shapes of {names}. Give the shapes of more arguments"
                          " to bind, or shape= to their Variable")

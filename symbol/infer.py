"""Inference of the shapes and dtypes of all entries of a graph, forwards and backwards through it until nothing
changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from opreg.core.graph import Graph, Node, declared_shape, fail
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.op import infer_specs as operator_specs
from opreg.core.rules import Attrs
from opreg.core.spec import ANY, Shape, Spec, as_dtype, is_known, unify
from opreg.errors import InferenceError, OpError

__all__ = ["infer_shapes", "with_empty_dims", "infer_dtypes", "infer_specs", "infer_body", "decide_dtypes", "infer",
           "complete", "mxnet_shape"]

K = TypeVar("K")  # the shape, dtype or spec of an entry, as far as it is known

#: Values of the outputs of each node, as far as they are inferred.
Known: TypeAlias = dict[Node, list[K]]

#: The inference rule of an operator: values of its inputs and outputs from those that are known.
Rule: TypeAlias = Callable[[Op, list[K], list[K], Attrs], tuple[Sequence[K], Sequence[K]]]

_DEFAULT = np.dtype(np.float32)
_NUMBERS = {int}  # the classes of the dimensions of a shape without unknown ones


def _merged_shape(old: Shape | None, new: Shape | None) -> Shape | None:
    """The new shape if it has dimensions that the old one lacks, else the old one."""
    if new is None or old is new:
        return old
    if old is None or (not is_known(old) and sum([d is ANY for d in new]) < sum([d is ANY for d in old])):
        return new
    return old


def _merged_dtype(old: np.dtype | None, new: np.dtype | None) -> np.dtype | None:
    return new if old is None else old


def _merged_spec(old: Spec, new: Spec) -> Spec:
    """The old spec with shapes and dtypes that only the new one knows; the old object if the new one adds nothing."""
    shape, dtype = _merged_shape(old.shape, new.shape), _merged_dtype(old.dtype, new.dtype)
    return old if shape is old.shape and dtype is old.dtype else Spec(shape, dtype)


class _Inference(Generic[K]):
    """Infers the shapes, dtypes or specs of the entries of a graph: applies the rules of its nodes until nothing new
    is found. For a chain of nodes, one sweep is enough.

    A rule is applied once for each combination of operator, attributes and known values. The known values of a node are
    a list that is never modified. Many nodes share one list, and a new list means that something was inferred. Equal
    values of outputs are one object, so equal layers cost one application; objects tell combinations apart, since an
    unknown dimension equals every length.

    Parameters
    ----------
    graph : Graph
        The graph.
    known_of : dict of Node to list
        Known values of the outputs of variables, and of other nodes; extended in place.
    rule, merged : function
        The rule of an operator, and the function of an old and a new value that returns the old one if the new one
        tells nothing more.
    nothing
        The value of an entry of which nothing is known.
    """

    def __init__(self, graph: Graph, known_of: Known[K], rule: Rule[K], merged: Callable[[K, K], K], nothing: K):
        self.graph, self.known_of, self.rule, self.merged, self.nothing = graph, known_of, rule, merged, nothing
        self.given = {*known_of}
        self._seen: dict[tuple[object, ...], tuple[list[K], list[tuple[int, K]], object]] = {}
        self._values: dict[K, K] = {}
        self._users: dict[Node, list[Node]] = {}
        self._to_visit: set[Node] = set()

    def _outputs(self, node: Node, outs: list[K] | None) -> tuple[list[K], list[tuple[int, K]]]:
        """Values of the outputs, and newly inferred ones of inputs, by index."""
        known_of = self.known_of
        ins = [known_of[source][i] for source, i in node.inputs]
        key = node.op, id(node.attrs), *map(id, ins), id(outs)
        result = self._seen.get(key)
        if result is None:
            before = [self.nothing] * node.count if outs is None else outs
            assert node.op is not None
            try:
                new_ins, new_outs = self.rule(node.op, list(ins), list(before), node.attrs)
            except Exception as error:
                fail(error, node)
            merged = self.merged
            after = [old if old is new else self._first_equal(merged(old, new)) for old, new in zip(before, new_outs)]
            if outs is not None and all(new is old for new, old in zip(after, outs)):
                after = outs
            learned = [(i, more) for i, (old, new) in enumerate(zip(ins, new_ins))
                       if old is not new and (more := merged(old, new)) is not old]
            # These references keep the ids in the key valid.
            result = self._seen[key] = after, learned, (ins, outs, node.attrs)
        return result[:2]

    def _first_equal(self, value: K) -> K:
        """The first object that was equal to a value, if its dimensions are plain numbers."""
        shape = value.shape if isinstance(value, Spec) else value
        known = isinstance(shape, tuple) and {*map(type, shape)} == _NUMBERS
        return self._values.setdefault(value, value) if known else value

    def learn(self, source: Node, i: int, new: K, reader: Node | None = None) -> None:
        """Store what was inferred of an output, and let the nodes that make or read it wait for their rules, except the
        reader whose rule found it."""
        known_of = self.known_of
        known = known_of[source]
        merged = self.merged(known[i], new)
        if merged is known[i]:
            return
        if not self._users:
            for user in self.graph.nodes:
                for place, _ in user.inputs:
                    self._users.setdefault(place, []).append(user)
        known_of[source] = [merged] if len(known) == 1 else [*known[:i], merged, *known[i + 1:]]
        if source.op is not None and source not in self.given:
            self._to_visit.add(source)
        for user in self._users.get(source, ()):
            if user is not reader and user in known_of:
                self._to_visit.add(user)

    def run(self) -> Known[K]:
        """Apply the rules of all nodes that are unknown, and of nodes for which something was learned since."""
        known_of = self.known_of
        for node in self.graph.nodes:
            if node not in known_of:
                known_of[node], learned = self._outputs(node, None)
                for number, new in learned:
                    self.learn(*node.inputs[number], new, node)
        forwards = False
        while self._to_visit:
            for node in (self.graph.nodes if forwards else reversed(self.graph.nodes)):
                if node not in self._to_visit:
                    continue
                self._to_visit.discard(node)
                outs = known_of[node]
                known_of[node], learned = self._outputs(node, outs)
                if known_of[node] is not outs:
                    self._to_visit.update(self._users.get(node, ()))
                for number, new in learned:
                    self.learn(*node.inputs[number], new, node)
            forwards = not forwards
        return known_of


def infer_shapes(graph: Graph, shapes: Mapping[Node, Shape | None]) -> Known[Shape | None]:
    """Infer the shapes of all entries from those of variables, as far as rules determine them. Declared dtypes of
    variables are used where shapes depend on them.

    Parameters
    ----------
    graph : Graph
        The graph.
    shapes : mapping of variable to shape
        Known shapes; ``__shape__`` attributes of variables are used, too.

    Returns
    -------
    dict of node to list of shapes
        A shape is None if its rank is unknown; an unknown dimension is ``ANY``.
    """
    if _is_joint(graph):
        specs = _infer_jointly(graph, shapes, {}, {}, {}, False)
        return {node: [spec.shape for spec in known] for node, known in specs.items()}
    return _infer_shapes_only(graph, shapes, {})


def _infer_shapes_only(graph: Graph, shapes: Mapping[Node, Shape | None], before: Mapping[Node, list[Shape | None]]
                       ) -> Known[Shape | None]:
    """``infer_shapes`` for a graph in which no shape depends on a dtype."""
    shape_of: Known[Shape | None] = {node: [_variable_shape(node, shapes.get(node))]
                                     for node in graph.nodes if node.op is None} | dict(before)
    return _Inference(graph, shape_of, Op.infer_shapes, _merged_shape, None).run()


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


def infer_dtypes(graph: Graph, dtypes: Mapping[Node, np.dtype | None],
                 before: Mapping[Node, list[np.dtype | None]] | None = None) -> Known[np.dtype | None]:
    """Infer the dtypes of all entries from those of variables, as far as they follow without shapes; see
    ``infer_specs``."""
    dtype_of: Known[np.dtype | None] = {node: [_variable_dtype(node, dtypes.get(node))]
                                        for node in graph.nodes if node.op is None} | dict(before or {})
    return _Inference(graph, dtype_of, Op.infer_dtypes, _merged_dtype, None).run()


def infer_specs(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, np.dtype | None],
                before: Mapping[Node, list[Spec]] | None = None, decide: bool = True) -> Known[Spec]:
    """Infer the shapes and dtypes of all entries from those of variables, as far as rules determine them.

    Parameters
    ----------
    graph : Graph
        The graph.
    shapes, dtypes : mapping of variable to shape or dtype
        The known ones; the attributes ``__shape__`` and ``__dtype__`` of variables are used, too.
    before : mapping of node to list of Spec, optional
        Specs of some of the nodes.
    decide : bool
        Whether variables whose dtype no rule determines are float32.
    """
    before = before or {}
    new = Graph(graph.heads, [node for node in graph.nodes if node not in before]) if before else graph
    outside = {node: [spec.dtype for spec in specs] for node, specs in before.items()}
    if _is_joint(new):
        return _infer_jointly(new, shapes, dtypes, before, outside, decide)
    shape_of = _infer_shapes_only(new, shapes, {node: [spec.shape for spec in specs] for node, specs in before.items()})
    dtype_of = (decide_dtypes if decide else infer_dtypes)(new, dtypes, outside)
    shared: dict[tuple[int, int], list[Spec]] = {}
    spec_of = dict(before)
    for node in new.nodes:
        pair = shape_of[node], dtype_of[node]
        key = id(pair[0]), id(pair[1])
        if key not in shared:
            shared[key] = list(map(Spec, *pair))
        spec_of[node] = shared[key]
    return spec_of


def _infer_jointly(graph: Graph, shapes: Mapping[Node, Shape | None], dtypes: Mapping[Node, np.dtype | None],
                   before: Mapping[Node, list[Spec]], outside: Mapping[Node, list[np.dtype | None]], decide: bool
                   ) -> Known[Spec]:
    """``infer_specs`` for a graph in which shapes and dtypes of a node depend on each other. Such a node finds other
    dtypes when that of a variable is decided, so these are decided one after the other."""
    variables = [node for node in graph.nodes if node.op is None]
    spec_of = dict(before)
    for node in variables:
        spec_of[node] = [Spec(_variable_shape(node, shapes.get(node)), _variable_dtype(node, dtypes.get(node)))]
    inference = _Inference(graph, spec_of, operator_specs, _merged_spec, Spec())
    inference.run()
    while decide and (undecided := [node for node in variables if spec_of[node][0].dtype is None]):
        likely = infer_dtypes(graph, {node: spec_of[node][0].dtype for node in variables}, outside)
        inference.learn(undecided[0], 0, Spec(None, likely[undecided[0]][0] or _DEFAULT))
        inference.run()
    return spec_of


def _is_joint(graph: Graph) -> bool:
    """Whether shapes and dtypes of some node depend on each other; in a loop, those of a node in its body."""
    for node in graph.nodes:
        if node.op is not None and node.op.rules.specs is not None:
            bodies = node.attrs.get("subgraphs", ())
            if not bodies or any(_is_joint(body._graph()) for body in bodies):
                return True
    return False


def infer_body(graph: Graph, variables: Sequence[Node], known_specs: Sequence[Spec]) -> Known[Spec]:
    """Infer the specs of all entries of a body from those of its variables; only shapes if no dtype is known, and only
    dtypes if no shape is known."""
    shapes = {node: spec.shape for node, spec in zip(variables, known_specs)}
    dtypes = {node: spec.dtype for node, spec in zip(variables, known_specs)}
    if not _is_joint(graph):
        if all(dtype is None for dtype in dtypes.values()):
            return {node: list(map(Spec, known)) for node, known in _infer_shapes_only(graph, shapes, {}).items()}
        if all(shape is None for shape in shapes.values()):
            return {node: [Spec(None, dtype) for dtype in known] for node, known in infer_dtypes(graph, dtypes).items()}
    return infer_specs(graph, shapes, dtypes, decide=False)


def _variable_shape(node: Node, stated: Shape | None) -> Shape | None:
    """The known shape of a variable: the given one, completed by its attribute ``__shape__``."""
    declared = node.tags.get("__shape__")
    if not declared or is_known(stated):
        return stated
    try:
        return unify(stated, declared_shape(declared))
    except OpError as error:
        fail(error, node)


def _variable_dtype(node: Node, stated: np.dtype | None) -> np.dtype | None:
    """The known dtype of a variable: the given one, or that of its attribute ``__dtype__``."""
    declared = node.tags.get("__dtype__")
    return as_dtype(declared) if stated is None and declared and declared != "-1" else stated


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
    return complete(infer_specs(graph, shapes, dtypes, before)) if specs is None else specs


def complete(specs_of: Mapping[Node, list[Spec]]) -> dict[Node, list[Spec]]:
    """Specs in which unknown dtypes are float32.

    Raises
    ------
    InferenceError
        If a shape is unknown. The error lists the variables.
    """
    unknown = [node for node, specs in specs_of.items() if not all(is_known(spec.shape) for spec in specs)]
    if unknown:
        raise _cannot_infer(unknown)
    return {node: specs if all(spec.dtype is not None for spec in specs) else
            [Spec(spec.shape, spec.dtype or _DEFAULT) for spec in specs] for node, specs in specs_of.items()}


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
                  before: Mapping[Node, list[np.dtype | None]] | None = None) -> Known[np.dtype | None]:
    """Infer the dtypes of all entries without shapes, with float32 for variables whose dtype no rule determines."""
    dtype_of = infer_dtypes(graph, dtypes, before)
    variables = {node: dtype_of[node][0] for node in graph.nodes if node.op is None}
    if all(dtype is not None for dtype in variables.values()):
        return dtype_of
    return infer_dtypes(graph, {node: dtype or _DEFAULT for node, dtype in variables.items()}, before)


def _cannot_infer(nodes: Sequence[Node]) -> InferenceError:
    variables = [node.name for node in nodes if node.op is None]
    names = ", ".join(variables or [node.name for node in nodes][:10])
    return InferenceError(f"cannot infer the shapes of {names}. Give the shapes of more arguments"
                          " to bind, or shape= to their Variable")

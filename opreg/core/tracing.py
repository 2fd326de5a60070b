"""Tracing: operators applied to values that have a shape and a dtype but no elements, recorded as nodes.

A ``Tracer`` records the operators applied to its values. This module has the tracer and the values for gradient rules;
bodies of users' operators and compiled functions have their own, see ``opreg.ndarray.traced`` and
``opreg.cells.trace``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import ArgumentError, OpError, note, other_count, user_line
from ..typing import DTypeLike
from .declarations import ZERO
from .graph import Entry, Node, declared_shape, fail
from .mode import MODE
from .op import Op
from .registry import get, ops
from .rules import Attrs
from .spec import Shape, Spec, is_known
from .value import Value

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray

__all__ = ["NeedsNumbers", "RuleTracer", "Sized", "SpecsAsked", "TraceError", "TracedValue", "Tracer"]


class NeedsNumbers(OpError, NotImplementedError, TypeError):
    """A gradient rule needed elements of an array while a graph is made, where values have none."""


class TraceError(OpError, TypeError):
    """Python code needs a value that is not known while tracing; the message says in which line."""

    def __init__(self, what: str):
        where = user_line()
        super().__init__(f"{where}: {what}" if where else what)


class SpecsAsked(Exception):
    """A rule read a shape or a dtype while it was traced without them."""


class Tracer:
    """Records operators that are applied to values without elements, as nodes in the order of the calls.

    Attributes
    ----------
    nodes : list of Node
        Applications of operators.
    specs : dict of Node to list of Spec
        Shapes and dtypes of the outputs of each node.
    arrays : dict of Node to array
        Variables that stand for arrays, and the arrays.
    tags : mapping of str to str
        Tags for new variables.
    """

    tags: Mapping[str, str] = {}

    def __init__(self, nodes: list[Node] | None = None):
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.specs: dict[Node, list[Spec]] = {}
        self.arrays: dict[Node, NDArray] = {}
        self._taken = 0

    def variable(self, name: str, spec: Spec) -> Entry:
        """A new variable."""
        node = Node(None, name, tags=self.tags)
        self.specs[node] = [spec]
        return node, 0

    def spec(self, entry: Entry) -> Spec:
        """Shape and dtype of an entry."""
        return self.specs[entry[0]][entry[1]]

    def apply(self, op: Op, inputs: Sequence[Entry], keywords: Attrs) -> list[Entry]:
        """Add a node that applies an operator; returns the entries of its visible outputs."""
        attrs = op.complete(keywords)
        names = op.signature.inputs(attrs)
        if len(inputs) != len(names):
            raise ArgumentError(f"operator {op.name}: {other_count(names, len(inputs))}")
        node = self.add(op, attrs, inputs, keywords)
        return [(node, i) for i in range(op.signature.visible(attrs))]

    def recorded(self, op: Op, entries: list[Entry]) -> list[Entry]:
        """The outputs of an operator that users' code calls: no gradient passes through them while recording is
        paused."""
        return entries if MODE.recording or op.rules.grad is ZERO else list(map(self.block_gradient, entries))

    def block_gradient(self, entry: Entry) -> Entry:
        """The entry of the same values, through which no gradient passes."""
        return Tracer.apply(self, get("BlockGrad"), [entry], {})[0]

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None = None) -> Node:
        """Add a node over entries."""
        node = self._node(op, attrs, inputs, keywords)
        self._infer_specs(node)
        self.nodes.append(node)
        return node

    def _node(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None) -> Node:
        """A new node with its name, its tags and the place in user code where it was made."""
        raise NotImplementedError

    def _infer_specs(self, node: Node) -> None:
        """Infer and store the specs of a node."""
        self.specs[node] = self.infer(node, [self.specs[source][i] for source, i in node.inputs])

    @property
    def order(self) -> list[Node]:
        """All variables, then all nodes made so far."""
        return [*[node for node in self.specs if node.op is None], *self.nodes]

    def take_new(self) -> None:
        """Infer and store the specs of the nodes that gradient rules have appended."""
        for node in self.nodes[self._taken:]:
            if node not in self.specs:
                self._infer_specs(node)
        self._taken = len(self.nodes)

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """The specs of the outputs of a node, inferred from those of its inputs."""
        op = node.op
        assert op is not None
        try:
            return op.specs(ins, node.attrs)
        except Exception as error:
            self._note_failure(error, node, ins)
            raise

    def _note_failure(self, error: Exception, node: Node, ins: Sequence[Spec]) -> None:
        """Add to an error the operator, its place in user code, and its inputs."""
        note(error, f"operator {node.op.name} at {node.where}, on {', '.join(map(str, ins)) or 'no inputs'}")  # type: ignore


class Sized:
    """Properties that are computed from a shape and a dtype."""

    __slots__ = ()
    shape: Any  # some classes define it as a property
    dtype: Any

    @property
    def _dt(self) -> np.dtype:
        return self.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._dt.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._dt.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array of no dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))  # type: ignore[index]


class RuleTracer(Tracer):
    """Traces gradient rules. Specs are inferred when a rule reads them.

    Attributes
    ----------
    known : mapping of Node to list of Spec, or None
        Specs of nodes from elsewhere; with None, a rule that reads a shape or a dtype raises ``SpecsAsked``.
    source : Node or None
        The node whose gradient is traced.
    """

    def __init__(self, nodes: list[Node] | None = None, known_specs: Mapping[Node, list[Spec]] | None = {},
                 source: Node | None = None):
        super().__init__(nodes)
        self.known, self.source = known_specs, source

    def value(self, entry: Entry) -> TracedValue:
        """An entry as a value."""
        return TracedValue(self, entry)

    def call(self, op: Op, values: Sequence[object], keywords: Attrs) -> list[TracedValue]:
        """Apply an operator to values; returns its visible outputs."""
        entries = []
        for value in values:
            if not isinstance(value, TracedValue):
                raise NeedsNumbers(f"a gradient rule calls operator {op.name} on {type(value).__name__} and on traced "
                                   f"values, which have no elements")
            entries.append(value._entry)
        return list(map(self.value, self.apply(op, entries, keywords)))

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None = None) -> Node:
        """Add a node over entries."""
        source = self.source
        if source is None:
            node = Node(op, "gradient", attrs, inputs, keywords)
        else:
            node = Node(op, f"{source.name}_backward", attrs, inputs, keywords, source.tags, source.where)
        self.nodes.append(node)
        return node

    def spec(self, entry: Entry) -> Spec:
        """Shape and dtype of an entry, as far as they can be inferred."""
        if self.known is None:
            raise SpecsAsked
        waiting = [entry[0]]
        while waiting:
            node = waiting[-1]
            missing = [] if self._of(node) else [source for source, _ in node.inputs if not self._of(source)]
            if not missing:
                self.specs[waiting.pop()] = self._of(node) or self._follows(node)
            waiting += missing
        return self.specs[entry[0]][entry[1]]

    def _of(self, node: Node) -> list[Spec] | None:
        return self.specs.get(node) or self.known.get(node)  # type: ignore[union-attr]

    def _follows(self, node: Node) -> list[Spec]:
        """Specs of a node: inferred for an operator, declared for a variable."""
        if node.op is not None:
            return self.infer(node, [self.spec(entry) for entry in node.inputs])
        declared = node.tags.get("__shape__")
        return [Spec(declared_shape(declared) if declared else None)]

    def _note_failure(self, error: Exception, node: Node, ins: Sequence[Spec]) -> None:
        fail(error, node)


class TracedValue(Sized, Value):
    """A value that gradient rules are given while a graph is made: it acts as an array without elements.

    Its shape and dtype can be read if they are known.
    """

    __slots__ = ("_tracer", "_entry")
    __hash__ = None  # type: ignore[assignment]  # == compares elements
    _rank = 2

    def __init__(self, tracer: RuleTracer, entry: Entry):
        self._tracer, self._entry = tracer, entry

    def _apply(self, op: Op, values: Sequence[object], keywords: Attrs) -> Any:
        results = self._tracer.call(op, values, keywords)
        return results[0] if len(results) == 1 else results

    def _trace_call(self, op: Op, attrs: Attrs, values: Sequence[object]
                ) -> tuple[types.SimpleNamespace, list[TracedValue]]:
        """The operator applied by a function of ``nd``: the number of visible outputs, and the outputs."""
        outs = self._tracer.call(op, values, attrs)
        return types.SimpleNamespace(visible=len(outs)), outs

    def __repr__(self) -> str:
        return f"<value of a gradient, {self._entry[0].name}>"

    # -------------------------------------------------------------------------------------------- questions

    def _shape_is(self, other: object) -> bool:
        if not isinstance(other, TracedValue):
            return False
        shape = self._tracer.spec(self._entry).shape
        return is_known(shape) and shape == other._tracer.spec(other._entry).shape

    def _unknown(self, what: str) -> NeedsNumbers:
        return NeedsNumbers(f"the {what} of {self!r} is not known where its gradient is made: bind the symbol, or "
                            "declare the shapes of its variables with sym.var(name, shape=…)")

    @property
    def shape(self) -> Shape:
        """Dimensions."""
        shape = self._tracer.spec(self._entry).shape
        if shape is None or not is_known(shape):
            raise self._unknown("shape")
        return shape

    @property
    def _dt(self) -> np.dtype:
        dtype = self._tracer.spec(self._entry).dtype
        if dtype is None:
            raise self._unknown("dtype")
        return dtype

    @property
    def dtype(self) -> type:
        """The dtype as a NumPy scalar class."""
        return self._dt.type

    @property
    def T(self) -> TracedValue:
        """The array with its axes reversed."""
        return self if self.ndim < 2 else ops.transpose(self)

    def __getitem__(self, key: object) -> TracedValue:
        parts = key if isinstance(key, tuple) else (key,)
        if not all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts):
            self._refuse()
        part = ops._subscript(self, key=key)
        return part if self.ndim and part.ndim else part.reshape((1,))

    # ------------------------------------------------------------------------------------------------ methods

    def reshape(self, *shape: Any, **keywords: Any) -> TracedValue:
        """The same values in another shape."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
            shape = tuple(shape[0])
        return ops.Reshape(self, shape=tuple(keywords.pop("shape", shape)), **keywords)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> TracedValue:
        """The values converted to another dtype."""
        return ops.Cast(self, dtype=dtype)

    def copy(self) -> TracedValue:
        """The same values in another node."""
        return ops._copy(self)

    def detach(self) -> TracedValue:
        """The same values, without a gradient."""
        return ops.BlockGrad(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise NeedsNumbers(f"{self!r} is a traced value: its elements are unknown while a gradient rule is traced")

    def _binary(self, name: str, other: object, reflected: bool) -> Any:
        if isinstance(other, np.ndarray):
            self._refuse()
        return super()._binary(name, other, reflected)

    _lift = __array_ufunc__ = __array_function__ = _refuse
    __bool__ = __float__ = __int__ = __index__ = __setitem__ = _refuse
    __array__ = asnumpy = asscalar = item = tolist = as_in_context = wait_to_read = _refuse
    context = ctx = property(_refuse)

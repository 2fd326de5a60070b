"""Trace: a Python function over tensors, followed once to a graph.

While a trace goes on, operators on its values, and on Parameters, add nodes instead of computing. Shapes and dtypes
are known at once, so mistakes are refused in the line that makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.symbol.passes.gradient import grow
from opreg.symbol.rules import RuleSymbol, Specs

from ..attrs import Schema, to_text
from ..errors import ArgumentError, OpError, here, note
from ..graph import INFERENCE, Entry, Node
from ..mode import MODE
from ..op import Op
from ..registry import ops
from ..spec import Shape, Spec, known, show
from ..value import Value
from . import dtype as dtypes
from .manners import Manners
from .state import STATE
from .tensor import subscript, tensor

__all__ = ["Trace", "Traced", "TraceError", "Surprise", "Surprises", "create"]


class TraceError(OpError, TypeError):
    """Numbers were asked for while tracing, when there are none yet."""


class Traced(Manners):
    """A tensor of a trace: its shape and dtype are known, its numbers are not."""

    __slots__ = ("_entry", "_spec", "_trace", "__weakref__")
    __hash__ = object.__hash__
    _rank = 3
    has_init = False

    def __init__(self, trace: Trace, entry: Entry, spec: Spec):
        self._trace, self._entry, self._spec = trace, entry, spec

    def _apply(self, op: Op, values: Sequence[Any], given: Any) -> Any:
        return (STATE.trace or self._trace).apply(op, values, given)

    def _lift(self, value: Any) -> Any:
        return tensor(value)

    def _shape_is(self, other: Any) -> bool:
        theirs = other._spec.shape if isinstance(other, Traced) else other.shape
        return known(self._spec.shape) and known(theirs) and self._spec.shape == theirs

    def _watched(self) -> str:
        return "trace"

    # -------------------------------------------------------------------------------------------- questions

    @property
    def _dt(self) -> np.dtype:
        return np.dtype(np.float32) if self._spec.dtype is None else self._spec.dtype

    @property
    def dtype(self) -> Any:
        """The dtype, as ``mindspore.float32`` and its like."""
        return dtypes.of(self._dt)

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        shape = self._spec.shape
        if not known(shape):
            raise TraceError(f"the shape of {self!r} is not known: give example inputs, as in cell.to_symbol(x)")
        return shape  # type: ignore[return-value]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

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
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        shape = "?" if self._spec.shape is None else show(self._spec.shape)
        return f"<tensor of a trace, shape {shape}, {self._dt}, {self._entry[0].name}>"

    def value(self) -> Traced:
        """This tensor."""
        return self

    def copy(self) -> Any:
        """A tensor with the same numbers."""
        return ops._copy(self)

    def detach(self) -> Any:
        """The same numbers, through which no gradient passes."""
        return ops.BlockGrad(self)

    def __deepcopy__(self, memo: Any) -> Traced:
        return self

    # -------------------------------------------------------------------------------------------- subscripts

    def __getitem__(self, key: Any) -> Any:
        key = subscript(key, self.shape)
        if isinstance(key, Manners):
            return ops.take(self, key, axis=0, mode="clip")
        return ops._subscript(self, key=key)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = subscript(key, self.shape)
        if isinstance(key, Manners):
            raise TraceError("x[i] = … needs i while tracing: use ops.scatter_nd or ops.select")
        value = value if isinstance(value, Manners) else tensor(np.asarray(value, self._dt))
        changed = ops._subscript_assign(self, value._cast(self._dt), key=key)
        self._entry, self._spec = changed._entry, changed._spec

    # ---------------------------------------------------------------------------------------- what cannot be

    def _refuse(what: str, instead: str) -> Callable:  # type: ignore[misc]
        def method(self: Traced, *_: Any, **__: Any) -> Any:
            """Refused: a tensor of a trace has no numbers yet."""
            raise TraceError(f"{here()}: {what} needs the numbers of a tensor, which are not known while a function "
                             f"is compiled. {instead}")

        return method

    __bool__ = _refuse("a branch or a loop condition", "Use ops.select for a choice of values, ops.cond for one of "
                       "computations, ops.while_loop for a loop; or run in PYNATIVE_MODE")
    __float__ = _refuse("float()", "Keep it a tensor")
    __int__ = __index__ = _refuse("int()", "Keep it a tensor; shapes are Python numbers already")
    __array__ = _refuse("NumPy", "Use functions of ops, or a CustomOp")
    asnumpy = item = tolist = asscalar = _refuse("asnumpy() or item()", "Print it from a hook, or return it")
    backward = attach_grad = _refuse("backward()", "Use grad, which compiles too")
    __format__ = Value.__format__


class Surprise(Exception):
    """A hook of a compiled function returned something of another shape, dtype or nesting than was expected."""

    def __init__(self, key: Any, structure: Any, results: list[Any], specs: list[Spec]):
        super().__init__(f"{key} returned something else than expected")
        self.key, self.structure, self.results, self.specs = key, structure, results, specs


class Surprises:
    """What is known of the hooks of a function that is traced again because one of them returned something else.

    Attributes
    ----------
    known : dict of key to (structure, list of Spec)
        What hooks return.
    done : dict of key to (variables, results)
        Calls of Python in the run that is going on.
    replay : dict of key to (variables, results)
        Those of the run that was given up, which are not made twice.
    """

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, list[Spec]]] = {}
        self.done: dict[Any, Any] = {}
        self.replay: dict[Any, Any] = {}

    def learn(self, surprise: Surprise) -> None:
        """Take note of a surprise, and of what has run before it."""
        self.known[surprise.key] = surprise.structure, surprise.specs
        self.replay, self.done = dict(self.done), {}

    def settle(self) -> None:
        """A run is over."""
        self.done.clear()
        self.replay.clear()


class Trace:
    """What a function does, as nodes in the order they are made.

    Attributes
    ----------
    nodes : list of Node
        Applications of operators.
    specs : dict of Node to list of Spec
        Shapes and dtypes of all entries.
    variables : dict
        By identity of an array, the array and the variable that stands for it.
    values : dict
        By identity of a Parameter, what it holds from here on: the last thing assigned.
    updated : dict
        By identity, Parameters that were assigned.
    arguments : dict of entry to hooks or None
        What functions are differentiated in, and the hooks on it.
    surprises : Surprises
        What hooks returned that was not expected.
    owners : dict
        By identity, Cells and Parameters that took part: when one changes, the trace is no longer true.
    minds_training : bool
        Whether an operator joined that computes otherwise in training than in inference: it does as it would where it
        joined.
    """

    def __init__(self, title: str, parent: Trace | None = None, nodes: list[Node] | None = None):
        self.title, self.parent = title, parent
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.specs: dict[Node, list[Spec]] = {}
        self.names: set[str] = set()  # of variables
        self.variables: dict[int, tuple[NDArray, Node]] = {}
        self.values: dict[int, Traced] = {}
        self.updated: dict[int, NDArray] = {}
        self.outer: dict[Node, Traced] = {}  # of a body: what its variables are outside of it
        self.owners: dict[int, Any] = {} if parent is None else parent.owners
        self.counts: dict[str, int] = {} if parent is None else parent.counts
        self.scope: list[str] = [] if parent is None else parent.scope
        self.surprises: Surprises = Surprises() if parent is None else parent.surprises
        self.arguments: dict[Entry, Any] = {} if parent is None else parent.arguments
        self.root: Trace = self if parent is None else parent.root
        self.minds_training = False
        self._settled = 0
        self._before: list[Any] = []

    def __enter__(self) -> Trace:
        self._before.append((STATE.trace, MODE.recording))
        STATE.trace, MODE.recording = self, True  # whoever stops that blocks the gradient of what joins meanwhile
        return self

    def __exit__(self, *_: Any) -> None:
        STATE.trace, MODE.recording = self._before.pop()

    # ---------------------------------------------------------------------------------------------- variables

    def visit(self, owner: Any) -> None:
        """A Cell, with all below it whose attributes it may read, or a Parameter takes part."""
        if id(owner) not in self.owners:
            self.owners[id(owner)] = owner
            for child in getattr(owner, "_cells", {}).values():
                if child is not None:
                    self.visit(child)

    def input(self, name: str, shape: Shape | None, dtype: Any) -> Traced:
        """A new variable."""
        node = Node(None, name)
        self.names.add(name)
        self.specs[node] = [Spec(shape, dtype)]
        return Traced(self, (node, 0), self.specs[node][0])

    def wrap(self, entry: Entry) -> Traced:
        """An entry as a value."""
        return Traced(self, entry, self.specs[entry[0]][entry[1]])

    def read(self, value: Any) -> Traced:
        """What stands for something in this trace: a value of it, or an array held by a variable."""
        if isinstance(value, Traced):
            return self._mine(value)
        if not isinstance(value, NDArray):
            value = tensor(value)
        current = self.values.get(id(value))
        if current is not None:
            return current
        found = self.variables.get(id(value))
        if found is None:
            if hasattr(value, "_version"):
                self.visit(value)
            if self.parent is not None:
                outside = self.parent.read(value)
                node = Node(None, outside._entry[0].name)
                self.outer[node] = outside
            else:
                node = Node(None, self._variable_name(value), tags={"__shape__": to_text(value.shape)})
            found = self.variables[id(value)] = value, node
            self.specs[node] = [Spec(value.shape, value._data.dtype)]
        return self.wrap((found[1], 0))

    def _variable_name(self, value: NDArray) -> str:
        name = getattr(value, "name", None) or self.unique("constant")
        while name in self.names:
            name = self.unique(name)
        self.names.add(name)
        return name

    def _mine(self, value: Traced) -> Traced:
        if value._trace is self or value._entry[0] in self.specs:
            return value
        if self.parent is None:
            raise TraceError(f"{value!r} belongs to another compiled function, which is over: it must not be kept on "
                             "an attribute or in a global")
        key = id(value)
        if key not in self.variables:
            outside = self.parent._mine(value)
            node = Node(None, self.unique("captured"))
            self.outer[node] = outside
            self.specs[node] = [value._spec]
            self.variables[key] = value, node  # type: ignore[assignment]  # held, so that its identity stays its own
        return self.wrap((self.variables[key][1], 0))

    def assign(self, parameter: NDArray, value: Any) -> None:
        """From here on the parameter holds this value; it is stored when the function has run."""
        value = self.read(value)
        self.values.pop(id(parameter), None)
        variable = self.read(parameter)
        if hasattr(parameter, "_version"):
            value = self.apply(ASSIGNED, [variable, value], {})
        self.values[id(parameter)] = value
        self.updated[id(parameter)] = parameter

    def change(self, tensor: NDArray, key: Any, value: Any) -> None:
        """From here on the tensor has other numbers there; they are stored when the function has run."""
        changed = self.read(tensor).copy()
        changed[key] = value
        self.assign(tensor, changed)

    def knows(self, value: Any) -> bool:
        """Whether an array is read by name instead of computed with: a Parameter, what was assigned, what is recorded
        outside."""
        return (getattr(value, "traced", False) or id(value) in self.values
                or getattr(value, "_entry", None) is not None
                or (self.parent is not None and self.parent.knows(value)))

    # ----------------------------------------------------------------------------------------------- operators

    def unique(self, hint: str) -> str:
        """A name that begins like this and was not given yet."""
        number = self.counts.get(hint, 0)
        self.counts[hint] = number + 1
        return f"{hint}{number}"

    def apply(self, op: Op, values: Sequence[Any], given: Any) -> Any:
        """Add a node."""
        attrs = op.complete(given)
        inputs = [self.read(value) for value in values]
        names = op.arguments(attrs) + op.auxiliary(attrs)
        if len(inputs) != len(names):
            raise ArgumentError(f"operator {op.name}: expected {len(names)} inputs ({', '.join(names)}), got "
                                f"{len(inputs)}")
        made = self.add(op, attrs, [each._entry for each in inputs], given)
        if MODE.recording or op.name == "BlockGrad":
            return made
        return ops.BlockGrad(made) if isinstance(made, Traced) else tuple([ops.BlockGrad(each) for each in made])

    def add(self, op: Op, attrs: Any, inputs: Sequence[Entry], given: Any = None) -> Any:
        """Add a node over entries; a value, or a tuple of them, one an output."""
        hint = op.name.lower().strip("_")
        name = self.unique("_".join([*self.scope, hint]))
        minds = op.mode or bool(op.states)
        self.root.minds_training = self.root.minds_training or minds
        tags = {INFERENCE: "1"} if minds and not MODE.training else {}
        node = Node(op, name, attrs, inputs, given, tags, here())
        self.specs[node] = self._infer(node)
        self.nodes.append(node)
        made = tuple(Traced(self, (node, i), self.specs[node][i]) for i in range(op.visible(attrs)))
        return made[0] if len(made) == 1 else made

    def _infer(self, node: Node) -> list[Spec]:
        op, attrs = node.op, node.attrs
        assert op is not None
        ins = [self.specs[source][i] for source, i in node.inputs]
        count = len(op.outputs(attrs))
        try:
            _, shapes = op.infer_shapes([spec.shape for spec in ins], [None] * count, attrs)
            _, dtypes_ = op.infer_dtypes([spec.dtype for spec in ins], [None] * count, attrs)
        except Exception as error:
            note(error, f"operator {op.name} at {node.where}, on " + ", ".join(
                f"{'?' if spec.shape is None else show(spec.shape)} {spec.dtype}" for spec in ins))
            raise
        return [Spec(shape, dtype) for shape, dtype in zip(shapes, dtypes_)]

    # ----------------------------------------------------------------------------------------------- gradients

    def differentiate(self, seeds: Sequence[tuple[Traced, Any]], wanted: Sequence[Entry]) -> list[Traced | None]:
        """Gradients with respect to entries, grown behind all nodes so far; None where there is none."""
        order = [*[node for node in self.specs if node.op is None], *self.nodes]
        arriving = [(value._entry, functools.partial(RuleSymbol, (seed._entry,))) for value, seed in seeds]
        with self:
            found = grow(order, arriving, {node for node, _ in wanted}, self.nodes, Specs(self.specs))
        self.settle()
        return [self.wrap(found[entry]._entries[0]) if entry in found else None for entry in wanted]

    def forget(self, nodes: int, specs: int) -> None:
        """Drop what was made since there were that many nodes and specs."""
        del self.nodes[nodes:]
        for node in list(self.specs)[specs:]:
            del self.specs[node]
        self._settled = min(self._settled, nodes)

    def skip(self) -> None:
        """Leave the nodes so far to whoever made them."""
        self._settled = len(self.nodes)

    def settle(self) -> None:
        """Find the specs of nodes that gradient rules have made."""
        for node in self.nodes[self._settled:]:
            if node not in self.specs:
                self.specs[node] = self._infer(node)
        self._settled = len(self.nodes)


class _Assigned(Op):
    """The number assigned to a Parameter, of which the gradient is the Parameter's: that is what is trained."""

    def __init__(self) -> None:
        super().__init__("_assigned", Schema([], True), ("parameter", "value"))
        self.late = True

    @property
    def differentiable(self) -> bool:
        return True

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        return ins, ins[1:]

    infer_dtypes = infer_shapes

    def inline(self, attrs: Any, inputs: Sequence[Entry], specs: Any) -> tuple[list[Node], list[Entry]]:
        """No nodes, and the value itself, once gradients are made."""
        return [], [inputs[1]]

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        return [g, None]


ASSIGNED = _Assigned()


def create(op: Op, **attrs: Any) -> Any:
    """Apply an operator without inputs: a node in a trace, numbers otherwise.

    Examples
    --------
    >>> from opreg.registry import get
    >>> create(get("_zeros"), shape=(2,), dtype="float32")
    Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])
    """
    if STATE.trace is not None:
        return STATE.trace.apply(op, (), attrs)
    return tensor(np.zeros((), np.float32))._apply(op, (), attrs)

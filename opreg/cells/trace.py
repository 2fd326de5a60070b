"""Trace: a Python function over tensors, traced once to a graph.

While a trace goes on, operators on its values, and on Parameters, add nodes instead of computing. Shapes and dtypes
are known at once, so mistakes are refused in the line that makes them.
"""

from __future__ import annotations

import contextlib
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from opreg.ndarray.bodies import Use, trace_body
from opreg.ndarray.context import current_context
from opreg.ndarray.ndarray import NDArray, numbers_of
from opreg.ndarray.scalars import OneNumber

from ..core.attrs import AS_GIVEN, to_text
from ..core.backward_graph import grow
from ..core.effects import moved, varies
from ..core.graph import INFERENCE, Entry, Node
from ..core.mode import MODE
from ..core.op import Op
from ..core.registry import ops
from ..core.rules import Attrs
from ..core.spec import Shape, Spec, known, show, unify
from ..core.tracing import RuleTracer, Sized, TraceError, Tracer
from ..errors import OpError, here
from . import dtype as dtypes
from .bailout import HookSignatures
from .guards import GUARD, LOOKS, Answer, Look, Measure, Numbers, Path, Unknown, calls, effects
from .moving import moving
from .reads import Owner, Reads
from .state import STATE, untraced
from .subscripts import mask_of, subscript
from .tensor import Tensor, made, masked, picked, tensor
from .tensor_base import TensorBase
from .typing import TensorLike

__all__ = ["FunctionTracer", "TracedTensor", "LeftToPython", "create"]

_FLOAT32 = np.dtype(np.float32)


class LeftToPython(OpError, TypeError):
    """A function does what a graph can not do: it is not compiled, but run as the Python code it is.

    Attributes
    ----------
    reason : str
        What it does, and where.
    reads : Reads or None
        State that was read before.
    """

    def __init__(self, text: str, reason: str, reads: Reads | None = None):
        super().__init__(text)
        self.reason, self.reads = reason, reads


class TracedTensor(Sized, OneNumber, TensorBase):
    """A tensor of a trace: its shape and dtype are known, its numbers are not."""

    __slots__ = ("_entry", "_spec", "_home", "__weakref__")
    __hash__ = object.__hash__
    _rank = 3
    has_init = False

    def __init__(self, trace: FunctionTracer, entry: Entry, spec: Spec):
        self._home, self._entry, self._spec = trace.ref, entry, spec

    @property
    def _trace(self) -> FunctionTracer:
        """The trace it is of, which it does not keep alive."""
        trace = self._home()
        if trace is None:
            raise TraceError(f"{self!r} {_OVER}")
        return trace

    def _apply(self, op: Op, values: Sequence[Any], given: Attrs) -> Any:
        return (STATE.trace or self._trace).call(op, values, given)

    def _trace_call(self, op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[types.SimpleNamespace, Sequence[Any]]:
        return (STATE.trace or self._trace).trace_call(op, attrs, values)

    def _lift(self, value: TensorLike) -> Tensor:
        return tensor(value)

    def _shape_is(self, other: Any) -> bool:
        theirs = other._spec.shape if isinstance(other, TracedTensor) else other.shape
        return known(self._spec.shape) and known(theirs) and self._spec.shape == theirs

    def _watched(self) -> str:
        return "trace"

    # -------------------------------------------------------------------------------------------- questions

    @property
    def _dt(self) -> np.dtype:
        return np.dtype(np.float32) if self._spec.dtype is None else self._spec.dtype

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype, as ``mindspore.float32`` and its like."""
        return dtypes.of(self._dt)

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        shape = self._spec.shape
        if not known(shape):
            raise TraceError(f"the shape of {self!r} is not known: give example inputs, as in cell.to_symbol(x)")
        return shape

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        shape = "?" if self._spec.shape is None else show(self._spec.shape)
        return f"<tensor of a trace, shape {shape}, {self._dt}, {self._entry[0].name}>"

    def __str__(self) -> str:
        return str(self.asnumpy()) if self.has_text else repr(self)

    @property
    def has_text(self) -> bool:
        """Whether its text is that of its numbers: in the trace of a function, not in that of a Symbol."""
        return STATE.trace is not None and not STATE.trace.root.symbolic

    def value(self) -> TracedTensor:
        """This tensor."""
        return self

    def copy(self) -> Tensor:
        """A tensor with the same values."""
        return ops._copy(self)

    def detach(self) -> Tensor:
        """The same values, through which no gradient passes."""
        return ops.BlockGrad(self)

    def __deepcopy__(self, memodict: Any) -> TracedTensor:
        return self

    # -------------------------------------------------------------------------------------------- subscripts

    def __getitem__(self, key: Any) -> Tensor:
        mask = mask_of(key, self.shape)
        if mask is not None:
            return masked(self, mask)
        key = subscript(key, self.shape)
        if isinstance(key, TensorBase):
            return picked(self, key)
        return ops._subscript(self, key=key)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = subscript(key, self.shape)
        if isinstance(key, TensorBase):
            key = subscript(key.asnumpy(), self.shape)
        value = value if isinstance(value, TensorBase) else tensor(numbers_of(value, self._dt))
        self._become(ops._subscript_assign(self, value._cast(self._dt), key=key))

    def _become(self, changed: TracedTensor) -> None:
        """From here on it has these numbers."""
        trace = STATE.trace or self._trace
        if id(self) in trace.argument_ids:
            trace.leave("it changes an argument in place")
        self._entry, self._spec = changed._entry, changed._spec

    # --------------------------------------------------------------------------------------------- numbers

    def _look(title: str) -> Callable[[TracedTensor], Any]:  # type: ignore[misc]
        def method(self: TracedTensor) -> Any:
            """Numbers, which are looked at in every run from now on."""
            return (STATE.trace or self._trace).ask(self, title)

        return method

    __bool__, __int__, __float__, __index__ = map(_look, ("bool()", "int()", "float()", "an index"))
    asscalar = _look("asscalar()")

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """Numbers, which are looked at in every run from now on."""
        trace = STATE.trace or self._trace
        if out is not None:
            trace.leave("asnumpy(out=) writes to an array of NumPy")
        return trace.ask(self, "asnumpy()")

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """The only element, or that at a flat or full index, as a Python number."""
        if index is None:
            return (STATE.trace or self._trace).ask(self, "item()")
        return (self[index] if isinstance(index, tuple) else self.reshape((-1,))[index]).item()

    # ---------------------------------------------------------------------------------------- what cannot be

    def _refuse(what: str, instead: str) -> Callable[..., NoReturn]:  # type: ignore[misc]
        def method(self: TracedTensor, *_: object, **__: object) -> NoReturn:
            """Refused: it would leave the graph."""
            raise TraceError(f"{what} of a tensor leaves the graph of a compiled function. {instead}")

        return method

    __array__ = _refuse("NumPy", "Use functions of ops, or a CustomOp; x.asnumpy() where numbers are meant")
    backward = attach_grad = _refuse("backward()", "Use grad, which compiles too")


#: Said of values whose trace is gone.
_OVER = "belongs to another compiled function, which is over: it must not be kept on an attribute or in a global"

#: How many numbers Python may ask for in one trace.
ASKED = 1000


class Running(Owner, Protocol):
    """A Cell that runs in a trace."""

    _has_mode: bool


class FunctionTracer(Tracer):
    """Traces a function: its operators as nodes, in the order they are made.

    Attributes
    ----------
    variables : dict
        By identity of an array, the array and the variable that stands for it.
    values : dict
        By identity of a Parameter, what it holds from here on: the last thing assigned.
    updated : dict
        By identity, Parameters that were assigned.
    arguments : dict of entry to hooks or None
        What functions are differentiated in, and the hooks on it.
    hooked : set of entry
        Arguments of the function whose tensors have hooks, which are registered outside of it.
    signatures : HookSignatures
        What hooks returned that was not expected.
    constants : dict
        By identity, arrays that the function has made of Python values.
    reads : Reads
        What was found in Cells and Parameters: when it changes, the trace is no longer true.
    outer, slots : dict of variable to TracedTensor
        Of a body: what its variables are outside of it, captured or given.
    argument_ids : set of int
        Identities of the arguments of the function.
    assigns : bool
        Whether what changes is assigned: not in a Symbol, nor in the body of a loop, which run many times.
    cells : list of Cell
        Those that run, the innermost last.
    states : dict of Entry to array
        Of what operators have left in states: these.
    minds_training : bool
        Whether the mode of the caller matters: an operator joined, outside of all Cells, that may compute otherwise in
        training than in inference, or the mode was asked for.
    calls, effects : str
        What calls users' code, and what acts on others, on every run, in words, if something does.
    drawn : list of Node
        Random operators in their order.
    path, numbers : Path, Numbers or None
        How Python gets the numbers it asks for, while the function is traced.
    symbolic : bool
        Whether the trace is of a Symbol, which has no values.
    mode : bool or None
        The mode that Cells run in, where it is not their own: True of a Symbol, whose executor chooses it.
    left : str
        Why the function is left to Python, if it is.
    owner : weak reference or None
        The Cell that keeps what is compiled, which must not be kept by it.
    registered : list of HookHandle
        Of hooks that were registered meanwhile.
    """

    def __init__(self, title: str, parent: FunctionTracer | None = None, nodes: list[Node] | None = None):
        super().__init__(nodes)
        self.title, self.parent = title, parent
        self.names: set[str] = set()  # of variables
        self.variables: dict[int, tuple[NDArray, Node]] = {}
        self.values: dict[int, TracedTensor] = {}
        self.updated: dict[int, NDArray] = {}
        self.ref = weakref.ref(self)
        self.outer: dict[Node, TracedTensor] = {}
        self.slots: dict[Node, TracedTensor] = {}
        self.reads: Reads = Reads() if parent is None else parent.reads
        self.constants: dict[int, NDArray] = {} if parent is None else parent.constants
        self.counts: dict[str, int] = {} if parent is None else parent.counts
        self.cells: list[Running] = [] if parent is None else parent.cells
        self.signatures: HookSignatures = HookSignatures() if parent is None else parent.signatures
        self.arguments: dict[Entry, Any] = {} if parent is None else parent.arguments
        self.argument_ids: set[int] = set()
        self.hooked: set[Entry] = set()
        self.assigns: bool = parent is None or parent.assigns
        self.states: dict[Entry, NDArray] = {}
        self.minds_training = False
        self.calls, self.effects, self.left = "", "", ""
        self.drawn: list[Node] = []
        self.symbolic = False
        self.mode: bool | None = None
        self.path: Path | None = None
        self.numbers: Numbers | None = None
        self.owner: weakref.ref[Any] | None = None
        self.registered: list[Any] = []
        self._before: list[tuple[FunctionTracer | None, FunctionTracer | None, Any]] = []

    def __enter__(self) -> FunctionTracer:
        # Code that stops recording blocks the gradient of values that join meanwhile. All shapes are known here: a
        # 0 is an empty dimension, as outside of traces.
        token = MODE.set(MODE.now().but(recording=True, np_shape=True))
        self._before.append((STATE.trace, MODE.tracer, token))
        STATE.trace = MODE.tracer = self
        return self

    def __exit__(self, *_: object) -> None:
        STATE.trace, MODE.tracer, token = self._before.pop()
        MODE.reset(token)

    @property
    def root(self) -> FunctionTracer:
        """The trace of the whole function."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    def leave(self, reason: str) -> NoReturn:
        """Leave the function to Python."""
        root = self.root
        where = here()
        root.left = root.left or (f"{reason} ({where})" if where else reason)
        raise LeftToPython(f"{root.title} can not be a graph: {root.left}", root.left)

    @contextlib.contextmanager
    def running(self, cell: Running) -> Iterator[bool]:
        """A stretch of code in which a Cell runs, and its mode."""
        self.reads.visit(cell)
        self.cells.append(cell)
        try:
            mode = self.root.mode
            yield bool(cell.__dict__["training"]) if mode is None else mode
        finally:
            self.cells.pop()

    def mind_training(self) -> None:
        """The mode matters: that of the Cell that runs, or where none does that of the caller."""
        cell = next((cell for cell in reversed(self.cells) if cell._has_mode), None)
        if cell is None:
            self.root.minds_training = True
        else:
            self.reads.attribute(cell, "training", cell.__dict__["training"])

    def reference(self, owner: object) -> Callable[[], Any]:
        """A function that gives a Cell to nodes of this trace; it keeps the Cell alive unless the Cell keeps the
        trace."""
        own = self.root.owner
        return own if own is not None and own() is owner else (lambda: owner)

    def close(self) -> None:
        """This body is done; it keeps nothing of what it stands in."""
        self.parent, self.outer, self.slots = None, {}, {}

    # ---------------------------------------------------------------------------------------------- variables

    def input(self, name: str, shape: Shape | None, dtype: np.dtype | None) -> TracedTensor:
        """A new variable."""
        self.names.add(name)
        return self.wrap(self.variable(name, Spec(shape, dtype)))

    def wrap(self, entry: Entry) -> TracedTensor:
        """An entry as a value."""
        return TracedTensor(self, entry, self.specs[entry[0]][entry[1]])

    def read(self, value: Any) -> TracedTensor:
        """The value of this trace that stands for something: a traced value, or a variable that holds an array."""
        if isinstance(value, TracedTensor):
            return self._mine(value)
        if not isinstance(value, NDArray):
            value = tensor(value)
        current = self.values.get(id(value))
        if current is not None:
            return current
        variable = self.variables.get(id(value))
        if variable is None:
            if hasattr(value, "_version"):
                self.reads.visit(value)
            if self.parent is not None:
                outside = self.parent.read(value)
                node = Node(None, outside._entry[0].name)
                self.outer[node] = outside
            else:
                node = Node(None, self._variable_name(value), tags={"__shape__": to_text(value.shape)})
                self.arrays[node] = value
            variable = self.variables[id(value)] = value, node
            self.specs[node] = [Spec(value.shape, value._data.dtype)]
        return self.wrap((variable[1], 0))

    def _variable_name(self, value: NDArray) -> str:
        name = getattr(value, "name", None) or self.unique("constant")
        while name in self.names:
            name = self.unique(name)
        self.names.add(name)
        return name

    def _mine(self, value: TracedTensor) -> TracedTensor:
        if value._home is self.ref or value._entry[0] in self.specs:
            return value
        if self.parent is None:
            raise TraceError(f"{value!r} {_OVER}")
        key = id(value)
        if key not in self.variables:
            outside = self.parent._mine(value)
            node, _ = self.variable(self.unique("captured"), value._spec)
            self.outer[node] = outside
            self.variables[key] = value, node  # type: ignore[assignment]  # held, so that its identity stays its own
        return self.wrap((self.variables[key][1], 0))

    def assign(self, parameter: NDArray, source: Any) -> None:
        """From here on the parameter holds this value; it is stored when the function has run."""
        value = self.read(source)
        self.values.pop(id(parameter), None)
        variable = self.read(parameter)
        if hasattr(parameter, "_version"):
            value = self.call(ASSIGNED, [variable, value], {})
        self.values[id(parameter)] = value
        if id(parameter) not in self.constants:  # which the next run makes anew
            self.updated[id(parameter)] = parameter

    def change(self, tensor: NDArray, key: Any, value: Any) -> None:
        """From here on the tensor has other values there; they are stored when the function has run."""
        changed = self.read(tensor).copy()
        changed[key] = value
        self.assign(tensor, changed)

    def constant(self, value: NDArray) -> None:
        """The function itself has made this array, of Python values: it is the same in each run."""
        self.constants[id(value)] = value

    def knows(self, value: Any) -> bool:
        """Whether something is a value of the graph: computed in it, or an array from outside, which may change."""
        return isinstance(value, (TracedTensor, NDArray)) and (
            id(value) not in self.constants or id(value) in self.values)

    # ----------------------------------------------------------------------------------------------- operators

    def unique(self, hint: str) -> str:
        """A name that begins like this and was not given yet."""
        number = self.counts.get(hint, 0)
        self.counts[hint] = number + 1
        return f"{hint}{number}"

    def call(self, op: Op, values: Sequence[Any], given: Attrs) -> Any:
        """Apply an operator to values: one, or a tuple of them, one an output."""
        entries = self.apply(op, [self.read(value)._entry for value in values], given)
        if entries and entries[0][0].op is not op:
            self._move(op, entries[0][0], values)
        outs = [self.wrap(entry) for entry in entries]
        if not MODE.recording and op.name != "BlockGrad":
            outs = [ops.BlockGrad(out) for out in outs]
        return outs[0] if len(outs) == 1 else tuple(outs)

    def takes(self, op: Op, values: Sequence[Any]) -> bool:
        """Whether an operator on arrays joins: where one is a value of the graph, or each run may give something else.
        Values of a traced body, or of a gradient, have a graph of their own."""
        measured = varies(op) or any(map(self.knows, values))
        return measured and not any(hasattr(value, "_trace_call") for value in values)

    def trace_call(self, op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[types.SimpleNamespace, Sequence[Any]]:
        """The operator applied by a function of ``nd``: how many outputs a user sees, and the outputs."""
        outs = self.call(op, values, attrs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return types.SimpleNamespace(visible=len(outs)), outs

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """Shapes and dtypes of a node's outputs, float32 where nothing says otherwise. Users' code that runs to show
        them is not traced."""
        with untraced():
            specs = [Spec(shape, dtype or _FLOAT32) for shape, dtype in super().infer(node, ins)]
        if not self.root.symbolic and not all(known(spec.shape) for spec in specs):
            try:
                shapes = list(map(unify, [spec.shape for spec in specs], self._measure(node)))
            except Exception as error:
                self._failed(error, node, ins)
                raise
            specs = [Spec(shape, spec.dtype) for shape, spec in zip(shapes, specs)]
        return specs

    def _measure(self, node: Node) -> Sequence[Shape]:
        """The shapes of a node that depend on values: they are found now, and guarded in every run. The operators
        before it run once more when they are others."""
        root, op = self.root, node.op
        assert op is not None
        what = f"the shape of what operator {op.op_type or op.name!r} gives depends on values"
        if root.numbers is None or not op.rules.data_dependent:
            self.leave(f"{what}, which are not there yet")

        def find() -> Answer:
            numbers = root.numbers
            assert numbers is not None
            return Measure.of(node, numbers.of(self, node.inputs, root.effects), numbers.ctx)

        return self._guarded(Measure(op), find, node.inputs, what, node)  # type: ignore[return-value]

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], given: Attrs | None = None) -> Node:
        """Add a node over entries; where users' code may change states in place, one that gives them back."""
        if self.assigns and moved(op, attrs):
            op, attrs, given = moving(op), {"inner": attrs}, None
        return super().add(op, attrs, inputs, given)

    def _move(self, op: Op, node: Node, values: Sequence[Any]) -> None:
        """From here on states hold what a node, that of the moving form of an operator, leaves in them."""
        places = moved(op, node.attrs["inner"])
        for i, place in enumerate(places, node.count - len(places)):
            value, new = values[place], self.wrap((node, i))
            if isinstance(value, TracedTensor):
                value._become(new)
            elif isinstance(value, NDArray):
                self.states[new._entry] = value
                self.assign(value, new)

    def _node(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], given: Attrs | None) -> Node:
        cells = [cell.__dict__["_name"] for cell in self.cells]
        name = self.unique("_".join([*filter(None, cells), op.name.lower().strip("_")]))
        minds = op.traits.mode or bool(op.traits.states)
        if minds:
            self.mind_training()
        return Node(op, name, attrs, inputs, given, {INFERENCE: "1"} if minds and not MODE.training else {}, here())

    def _read_by_body(self, node: Node) -> None:
        """Call the body of a user's operator that a plan will trace, so that what it reads from outside is noted."""
        ctx = current_context() if self.root.numbers is None else self.root.numbers.ctx
        use = Use(node.name, node.tags, node.where, ctx, MODE.training,
                  [self.spec(entry) for entry in node.inputs], self.specs[node], {})
        trace_body(node.op, node.attrs, use)  # type: ignore[arg-type]  # no variable

    def _take(self, node: Node) -> None:
        """Its specs, and what Python must know of it before it may ask for numbers."""
        super()._take(node)
        op = node.op
        assert op is not None
        root, derived = self.root, getattr(node.attrs, "derived", True)
        if op.traits.traced and op.where is not None and self.reads.observer is not None and not derived:
            self._read_by_body(node)
        if op.traits.random:
            root.drawn.append(node)
        root.calls, root.effects = root.calls or calls(op), root.effects or effects(op)

    # ------------------------------------------------------------------------------------------------- numbers

    def ask(self, value: Any, title: str) -> Any:
        """Answer what Python asks of the elements of a tensor: they are computed now, and guarded in every run."""
        root, look = self.root, LOOKS[title]
        entry = self.read(value)._entry
        if root.numbers is None and not root.symbolic:
            self.leave(f"its gradient asks for {title} of what arrives")
        if root.path is None or root.numbers is None:
            raise TraceError(f"{title} needs the numbers of a tensor, which a Symbol does not know. Use "
                             "ops.select for a choice of values, ops.cond for one of computations, ops.while_loop for "
                             "a loop")

        def find() -> Answer:
            numbers = root.numbers
            assert numbers is not None
            found = made(numbers.of(self, [entry], root.calls)[0], numbers.ctx)
            self.constant(found)
            return look.of(found)

        answer = self._guarded(look, find, [entry], f"{title} asks for numbers")
        return np.array(answer) if isinstance(answer, np.ndarray) else answer

    def _guarded(self, look: Look | Measure, find: Callable[[], Answer], entries: Sequence[Entry], what: str,
                 node: Node | None = None) -> Answer:
        """The answer to a question, and a guard that asks it of these entries in every run."""
        root = self.root
        if self.parent is not None and not self.assigns:  # nobody reads the guard in such a body: it stands before it
            outside = [self.outer.get(source) for source, _ in entries]
            if any(each is None for each in outside):
                self.leave(f"{what} in the body of a loop or a branch, where they differ from round to round")
            return self.parent._guarded(look, find, [each._entry for each in outside if each is not None], what, node)
        assert root.path is not None
        if len(root.path.steps) >= ASKED:
            self.leave(f"it asks for more than {ASKED} numbers; ops.while_loop asks for none")
        try:
            fork, answer = root.path.ask(look, find)
        except Unknown as error:
            self.leave(f"{what} {error}")
        drawn = [(node, 0) for node in root.drawn if node in self.specs]
        attrs = {"fork": fork, "answer": answer, "node": node, "count": len(entries) + len(drawn)}
        self.add(GUARD, attrs, [*entries, *drawn])
        if node is not None and node in self.nodes:  # one that a gradient rule has made: the guard stands before it
            self.nodes.insert(self.nodes.index(node), self.nodes.pop())
        return answer

    # ----------------------------------------------------------------------------------------------- gradients

    def differentiate(self, seeds: Sequence[tuple[TracedTensor, TracedTensor]], wanted: Sequence[Entry],
                      order: Sequence[Node] | None = None) -> list[TracedTensor | None]:
        """Gradients with respect to entries, grown behind all nodes so far; None where there is none. ``order`` are the
        nodes that are gone back through, all by default."""
        tracer = _Rules(self)
        arriving = [(value._entry, tracer.value(seed._entry)) for value, seed in seeds]
        with self:
            gradients = grow(tracer, self.order if order is None else order, arriving, {node for node, _ in wanted})
        self.take_new()
        return [self.wrap(gradients[entry]._entry) if entry in gradients else None for entry in wanted]

    def forget(self, nodes: int, specs: int) -> None:
        """Drop what was made since there were that many nodes and specs."""
        del self.nodes[nodes:]
        for node in list(self.specs)[specs:]:
            del self.specs[node]
        self.variables = {key: held for key, held in self.variables.items() if held[1] in self.specs}
        self.constants = {}
        self._taken = min(self._taken, nodes)

    def skip(self) -> None:
        """Leave the nodes so far to their maker."""
        self._taken = len(self.nodes)


class _Rules(RuleTracer):
    """Tracer of gradient rules in a trace. A value that the backward of a user's operator leaves in a state is assigned
    to it."""

    def __init__(self, trace: FunctionTracer):
        super().__init__(trace.nodes, trace.specs)
        self._trace = trace

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """Specs of the outputs of a node."""
        with untraced():
            return super().infer(node, ins)

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], given: Attrs | None = None) -> Node:
        """Add a node over entries."""
        trace = self._trace
        states = [(i, trace.states[inputs[i]]) for i in moved(op, attrs) if inputs[i] in trace.states]
        if not states:
            return super().add(op, attrs, inputs, given)
        entries = list(inputs)
        for i, state in states:
            entries[i] = trace.read(state)._entry
        node = super().add(moving(op), {"inner": attrs}, entries)
        trace.take_new()
        first = node.count - len(moved(op, attrs)) - moved(op, attrs)[0]
        for i, state in states:
            trace.assign(state, trace.wrap((node, first + i)))
        return node


#: The number assigned to a Parameter, of which the gradient is the Parameter's: that is what is trained.
ASSIGNED = Op("_assigned", AS_GIVEN, ("parameter", "value"), per_instance=True)
ASSIGNED.shapes(lambda ins, outs: (ins, ins[1:]))
ASSIGNED.types(lambda ins, outs: (ins, ins[1:]))
ASSIGNED.grad(lambda g, ins, outs: (g, None))
ASSIGNED.inline(lambda inputs, specs: ([], [inputs[1]]))
ASSIGNED.body(lambda inputs: ([inputs[1]], {}))


def create(op: Op, **attrs: Any) -> Any:
    """Apply an operator without inputs: a node in a trace, numbers otherwise.

    Examples
    --------
    >>> from opreg.core.registry import get
    >>> create(get("_zeros"), shape=(2,), dtype="float32")
    Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])
    """
    if STATE.trace is not None:
        return STATE.trace.call(op, (), attrs)
    return tensor(np.zeros((), np.float32))._apply(op, (), attrs)

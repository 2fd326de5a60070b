"""Trace: a Python function of tensors, traced once to a graph.

During a trace operators on its values, and on Parameters, add nodes instead of computing. Shapes and dtypes are known
at once, so an error is raised in the line that causes it.
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
from opreg.ndarray.ndarray import NDArray

from ..core.attrs import AS_GIVEN, to_text
from ..core.backward_graph import grow
from ..core.chosen import override
from ..core.effects import changed_states, opaque, varies
from ..core.graph import INFERENCE, Entry, Node
from ..core.mode import MODE
from ..core.op import Op
from ..core.rules import Attrs
from ..core.spec import Shape, Spec, is_known, unify
from ..core.tracing import RuleTracer, TracedValue, TraceError, Tracer
from ..errors import user_line
from .bailout import CallSignatures, LeftToPython
from .changed_names import arrays_named_by, names_changed_by
from .guards import GUARD, TENSOR_READS, Answer, Measure, NotComputable, Path, TensorRead, TraceValues, calls, effects
from .reads import Owner, Reads
from .state import STATE, untraced
from .state_changes import with_hidden_states
from .tensor import tensor, tensor_over
from .traced_tensor import TRACE_IS_OVER, TracedTensor

__all__ = ["FunctionTracer", "create"]

_FLOAT32 = np.dtype(np.float32)

#: Largest number of values that Python may read in one trace.
MOST_READS = 1000


class RunningCell(Owner, Protocol):
    """A Cell that runs in a trace."""

    _has_mode: bool


class FunctionTracer(Tracer):
    """Traces a function: its operators become nodes, in the order in which they are called.

    Attributes
    ----------
    variables : dict
        By identity of an array, the array and its variable.
    values : dict
        By identity of a Parameter, its current value: the last one assigned.
    updated : dict
        Parameters that were assigned, by identity.
    arguments : dict of entry to hooks or None
        Differentiated arguments of functions, and their hooks.
    hooked : set of entry
        Arguments of the function whose tensors got hooks outside of it.
    signatures : CallSignatures
        Signatures of hooks that returned other values than assumed.
    constants : dict
        Arrays that the function has made from Python values, by identity.
    reads : Reads
        State of Cells and Parameters that was read: when it changes, the trace becomes invalid.
    outer, slots : dict of variable to TracedTensor
        In a body: the outer values of its variables, captured ones and inputs.
    caller_tensors : dict of int to Tensor
        By identity of an argument of the function, the tensor of the caller.
    missing_attributes : set of str
        Attributes that the function asks an argument for, and that the class of tensors lacks.
    assigns : bool
        Whether changes are assigned at the end: not in a Symbol, nor in the body of a loop, which runs many times.
    cells : list of Cell
        The running Cells, the innermost last.
    states : dict of Entry to array
        State arrays, by the entries that operators have stored in them.
    minds_training : bool
        Whether the trace depends on the caller's mode: outside of all Cells the mode was read, or an operator was
        called that depends on it.
    differentiates : bool
        Whether it computes gradients.
    differentiating : int
        Number of functions, each inside the one before, that run and are to be differentiated.
    calls, effects : str
        Text that names a call of users' code, or a side effect, that each run repeats; empty without any.
    drawn : list of Node
        Random operators in their order.
    path, trace_values : Path, TraceValues or None
        Source of the values that Python reads while the function is traced.
    symbolic : bool
        Whether the trace is of a Symbol, which has no values.
    mode : bool or None
        A mode that overrides the mode of Cells: True for a Symbol, whose executor chooses it.
    left : str
        The reason why the function runs as Python, if it does.
    owner : weak reference or None
        The Cell that holds the compiled function, which must not keep the Cell alive.
    registered : list of HookHandle
        Handles of hooks that were registered during the trace.
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
        self.cells: list[RunningCell] = [] if parent is None else parent.cells
        self.signatures: CallSignatures = CallSignatures() if parent is None else parent.signatures
        self.arguments: dict[Entry, Any] = {} if parent is None else parent.arguments
        self.caller_tensors: dict[int, Any] = {}
        self.missing_attributes: set[str] = set()
        self.hooked: set[Entry] = set()
        self.assigns: bool = parent is None or parent.assigns
        self.states: dict[Entry, NDArray] = {}
        self.moved_states: set[Entry] = set()  # variables of the states that layers move
        self.minds_training = self.differentiates = False
        self.differentiating = 0
        self.calls, self.effects, self.left = "", "", ""
        self.drawn: list[Node] = []
        self.symbolic = False
        self.mode: bool | None = None
        self.path: Path | None = None
        self.trace_values: TraceValues | None = None
        self.owner: weakref.ref[Any] | None = None
        self.registered: list[Any] = []
        self._before: list[tuple[FunctionTracer | None, FunctionTracer | None, Any]] = []

    def __enter__(self) -> FunctionTracer:
        # Code that stops recording blocks the gradient of values that join meanwhile. All shapes are known here: a 0 is
        # an empty dimension, as outside of traces.
        mode = MODE.current()
        self._before.append((STATE.trace, MODE.tracer, mode))
        try:
            STATE.trace = MODE.tracer = self
            MODE.set(mode.but(recording=True, np_shape=True))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        STATE.trace, MODE.tracer, mode = self._before.pop()
        MODE.set(mode)

    @property
    def root(self) -> FunctionTracer:
        """The trace of the whole function."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    def leave(self, reason: str) -> NoReturn:
        """Let the function run as Python."""
        root = self.root
        where = user_line()
        root.left = root.left or (f"{reason} ({where})" if where else reason)
        raise LeftToPython(f"{root.title} cannot be compiled to a graph: {root.left}", root.left)

    @contextlib.contextmanager
    def enter_cell(self, cell: RunningCell) -> Iterator[bool]:
        """A context in which a Cell runs, in its mode."""
        self.reads.visit(cell)
        self.cells.append(cell)
        try:
            mode = self.root.mode
            yield bool(cell.__dict__["training"]) if mode is None else mode
        finally:
            self.cells.pop()

    def mind_training(self) -> None:
        """Note that the trace depends on the mode: the running Cell's, or the caller's if no Cell has one."""
        cell = next((cell for cell in reversed(self.cells) if cell._has_mode), None)
        if cell is None:
            self.root.minds_training = True
        else:
            self.reads.attribute(cell, "training", cell.__dict__["training"])

    def reference(self, owner: object) -> Callable[[], Any]:
        """A function that returns a Cell to nodes of this trace; it keeps the Cell alive unless the Cell holds the
        trace."""
        owner_reference = self.root.owner
        return owner_reference if owner_reference is not None and owner_reference() is owner else (lambda: owner)

    def close(self) -> None:
        """End this body; it releases the surrounding trace."""
        self.parent, self.outer, self.slots = None, {}, {}

    # ---------------------------------------------------------------------------------------------- variables

    def input(self, name: str, shape: Shape | None, dtype: np.dtype | None) -> TracedTensor:
        """A new variable."""
        self.names.add(name)
        return self.wrap(self.variable(name, Spec(shape, dtype)))

    def rule_value(self, value: TracedValue, spec: Spec) -> TracedTensor:
        """The traced tensor of a value that a gradient rule computes in this trace."""
        entry = value._entry
        if entry[0] not in self.specs:
            self.specs[entry[0]] = [spec] * max(1, entry[0].count)
        return TracedTensor(self, entry, spec)

    def wrap(self, entry: Entry) -> TracedTensor:
        """An entry as a traced tensor."""
        return TracedTensor(self, entry, self.specs[entry[0]][entry[1]])

    def read(self, value: Any) -> TracedTensor:
        """The traced tensor of a value: itself, or the variable of an array."""
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
            raise TraceError(f"{value._title()} {TRACE_IS_OVER}")
        key = id(value)
        if key not in self.variables:
            outside = self.parent._mine(value)
            node, _ = self.variable(self.unique("captured"), value._spec)
            self.outer[node] = outside
            self.variables[key] = value, node  # type: ignore[assignment]  # held, so that its identity stays its own
        return self.wrap((self.variables[key][1], 0))

    def assign(self, parameter: NDArray, source: Any) -> None:
        """Let a parameter have a value from here on; it is stored at the end of a run."""
        value = self.read(source)
        self.values.pop(id(parameter), None)
        variable = self.read(parameter)
        if variable._entry in self.moved_states:
            self._leave_at_moved_state(variable._entry)
        if hasattr(parameter, "_version"):
            value = self.call(ASSIGNED, [variable, value], {})
        self.values[id(parameter)] = value
        if id(parameter) not in self.constants:  # the next run makes a constant again, so its new value is not stored
            self.updated[id(parameter)] = parameter

    def assigned_arrays(self) -> dict[int, NDArray]:
        """Arrays from outside that the program has given other values so far, by identity."""
        return {**({} if self.parent is None else self.parent.assigned_arrays()), **self.updated}

    def change(self, tensor: NDArray, key: Any, value: Any) -> None:
        """Let a tensor have other values at a subscript from here on; they are stored at the end of a run."""
        changed = self.read(tensor).copy()
        changed[key] = value
        self.assign(tensor, changed)

    def constant(self, value: NDArray) -> None:
        """Note that the function made this array from Python values, so that it is the same in each run."""
        self.constants[id(value)] = value

    def knows(self, value: Any) -> bool:
        """Whether a value belongs to the graph: computed in it, or an array from outside, which may change."""
        return isinstance(value, (TracedTensor, NDArray)) and (
            id(value) not in self.constants or id(value) in self.values)

    # ----------------------------------------------------------------------------------------------- operators

    def unique(self, hint: str) -> str:
        """An unused name that begins with ``hint``."""
        number = self.counts.get(hint, 0)
        self.counts[hint] = number + 1
        return f"{hint}{number}"

    def call(self, op: Op, values: Sequence[Any], keywords: Attrs) -> Any:
        """Apply an operator to values; the result is a value, or a tuple with one for each output."""
        entries = self.apply(op, [self.read(value)._entry for value in values], keywords)
        if entries and entries[0][0].op is not op:
            self._update_states(op, entries[0][0], values)
        outs = [self.wrap(entry) for entry in self.recorded(op, entries)]
        return outs[0] if len(outs) == 1 else tuple(outs)

    def takes(self, op: Op, values: Sequence[Any]) -> bool:
        """Whether the trace includes an operator on arrays: if an operand belongs to the graph, or the result may
        differ in each run. Values of a traced body, or of a gradient, have a graph of their own."""
        measured = varies(op) or any(map(self.knows, values))
        return measured and not any(hasattr(value, "_trace_call") for value in values)

    def trace_call(self, op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[types.SimpleNamespace, Sequence[Any]]:
        """Apply an operator that a function of ``nd`` calls; returns the number of outputs that a user sees, and the
        outputs."""
        outs = self.call(op, values, attrs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return types.SimpleNamespace(visible=len(outs)), outs

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """Shapes and dtypes of a node's outputs; float32 where no rule decides. Users' code that runs to find them is
        not traced; what a rule for shapes or dtypes reads is noted, and not what a dry run does."""
        by_run = node.op is None or node.op.where is None or getattr(node.attrs, "inferred_by_run", False)
        with untraced(observed=not by_run):
            specs = [Spec(shape, dtype or _FLOAT32) for shape, dtype in super().infer(node, ins)]
        if node.op is not None and by_run and getattr(node.attrs, "declares", False):
            with untraced(observed=True):
                node.op.infer_dtypes([spec.dtype for spec in ins], [None] * node.count, node.attrs)
        if not self.root.symbolic and not all(is_known(spec.shape) for spec in specs):
            try:
                shapes = list(map(unify, [spec.shape for spec in specs], self._measure(node)))
            except Exception as error:
                self._note_failure(error, node, ins)
                raise
            specs = [Spec(shape, spec.dtype) for shape, spec in zip(shapes, specs)]
        return specs

    def _measure(self, node: Node) -> Sequence[Shape]:
        """The shapes of a node that depend on values: they are computed now, and guarded in every run. If they differ,
        the operators before the node run once more."""
        root, op = self.root, node.op
        assert op is not None
        what = f"the output shape of operator {op.op_type or op.name!r} depends on values"
        if root.trace_values is None or not op.rules.data_dependent:
            self.leave(f"{what}, which a trace does not have")

        def find() -> Answer:
            known = root.trace_values
            assert known is not None
            return Measure.of(node, known.of(self, node.inputs, root.effects), known.ctx)

        return self._guard_value(Measure(op), find, node.inputs, what, node)  # type: ignore[return-value]

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None = None) -> Node:
        """Add a node over entries. It returns the new states, too, if users' code may change states in place."""
        if self.assigns and changed_states(op, attrs):
            op, attrs, keywords = with_hidden_states(op), {"inner": attrs}, None
        if self.assigns and (self.moved_states or op.traits.states):
            self._note_states(op, attrs, inputs)
        return super().add(op, attrs, inputs, keywords)

    def _note_states(self, op: Op, attrs: Attrs, inputs: Sequence[Entry]) -> None:
        """Note the states of a layer that an operator moves in training. A plan stores their new values after the
        forward steps, so nothing else may read them after it, or have assigned them before."""
        first = len(op.signature.arguments(attrs))
        places = [first + i for i in op.traits.states] if MODE.training else []
        for i, entry in enumerate(inputs):
            if i in places:
                if entry[0].op is not None:
                    self.leave(f"it assigns {op.signature.auxiliary(attrs)[i - first]}, which {op.name} moves")
            elif entry in self.moved_states:
                self._leave_at_moved_state(entry)
        self.moved_states.update(inputs[i] for i in places)

    def _leave_at_moved_state(self, entry: Entry) -> NoReturn:
        self.leave(f"it uses {entry[0].name}, which training has moved in the same call")

    def _update_states(self, op: Op, node: Node, values: Sequence[Any]) -> None:
        """Give states the new values that a node returns, for an operator that updates them in place."""
        places = changed_states(op, node.attrs["inner"])
        for i, place in enumerate(places, node.count - len(places)):
            value, new = values[place], self.wrap((node, i))
            if isinstance(value, TracedTensor):
                value._replace_value(new)
            elif isinstance(value, NDArray):
                self.states[new._entry] = value
                self.assign(value, new)

    def _node(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None) -> Node:
        cells = [cell.__dict__["_name"] for cell in self.cells]
        name = self.unique("_".join([*filter(None, cells), op.name.lower().strip("_")]))
        minds = op.traits.minds_training
        if minds:
            self.mind_training()
        tags = {INFERENCE: "1"} if minds and not MODE.training else {}
        return Node(op, name, attrs, inputs, keywords, tags, user_line())

    def _read_by_body(self, node: Node) -> None:
        """Call the body of a user's operator that a plan will trace, so that its reads from outside are noted."""
        ctx = current_context() if self.root.trace_values is None else self.root.trace_values.ctx
        use = Use(node.name, node.tags, node.where, ctx, MODE.training,
                  [self.spec(entry) for entry in node.inputs], self.specs[node], {})
        observer = self.reads.observer
        assert observer is not None
        with override(observer, copies=True):
            trace_body(node.op, node.attrs, use)  # type: ignore[arg-type]  # no variable

    def _infer_specs(self, node: Node) -> None:
        """The shapes and dtypes of a new node; they are noted before Python may read values."""
        super()._infer_specs(node)
        op = node.op
        assert op is not None
        root, derived = self.root, getattr(node.attrs, "derived", True)
        if op.traits.traced and op.where is not None and self.reads.observer is not None and not derived:
            self._read_by_body(node)
        if self.reads.observer is not None and opaque(op):
            self.reads.observer.note_changes(names_changed_by(node.attrs), f"the operator {op.op_type or op.name}")
            if assigned := self.assigned_arrays():
                self._refuse_old_values(op, node.attrs, assigned)
        if op.traits.random:
            root.drawn.append(node)
        root.calls, root.effects = root.calls or calls(op), root.effects or effects(op)

    def _refuse_old_values(self, op: Op, attrs: Attrs, assigned: dict[int, NDArray]) -> None:
        """Leave the function to Python if a user's operator may read an array that the function has assigned: its
        memory has the value from before."""
        with untraced():
            named = next((array for array in arrays_named_by(attrs) if id(array) in assigned), None)
        if named is not None:
            self.leave(f"it assigns {getattr(named, 'name', 'a tensor')}, which the operator {op.op_type or op.name} "
                       "may read later")

    # ------------------------------------------------------------------------------------------------- numbers

    def ask(self, value: Any, title: str) -> Any:
        """Give Python the elements of a tensor: they are computed now, and guarded in every run."""
        root, read = self.root, TENSOR_READS[title]
        entry = self.read(value)._entry
        if root.trace_values is None and not root.symbolic:
            self.leave(f"its gradient asks for {title} of an output gradient")
        if root.path is None or root.trace_values is None:
            raise TraceError(f"{title} reads the values of a tensor, which a Symbol does not have. Use "
                             "ops.select for a choice of values, ops.cond for one of computations, ops.while_loop for "
                             "a loop")

        def find() -> Answer:
            known = root.trace_values
            assert known is not None
            value = tensor_over(known.of(self, [entry], root.calls)[0], known.ctx)
            self.constant(value)
            return read.of(value)

        answer = self._guard_value(read, find, [entry], f"{title} asks for numbers")
        return np.array(answer) if isinstance(answer, np.ndarray) else answer

    def _guard_value(self, look: TensorRead | Measure, find: Callable[[], Answer], entries: Sequence[Entry], what: str,
                     node: Node | None = None) -> Answer:
        """A value that Python reads, and a guard that compares it in every run."""
        root = self.root
        # the guard stands in the outer trace, before the loop or branch
        if self.parent is not None and not self.assigns:
            outside = [self.outer.get(source) for source, _ in entries]
            if any(value is None for value in outside):
                self.leave(f"{what} in the body of a loop or a branch, where they differ between iterations")
            entries = [each._entry for each in outside if each is not None]
            return self.parent._guard_value(look, find, entries, what, node)
        assert root.path is not None
        if len(root.path.steps) >= MOST_READS:
            self.leave(f"it reads more than {MOST_READS} values of tensors; ops.while_loop reads none")
        try:
            fork, answer = root.path.ask(look, find)
        except NotComputable as error:
            self.leave(f"{what} {error}")
        drawn = [(node, 0) for node in root.drawn if node in self.specs]
        attrs = {"fork": fork, "answer": answer, "node": node, "count": len(entries) + len(drawn)}
        self.add(GUARD, attrs, [*entries, *drawn])
        if node is not None and node in self.nodes:  # a node of a gradient rule: the guard stands before it
            self.nodes.insert(self.nodes.index(node), self.nodes.pop())
        return answer

    # ----------------------------------------------------------------------------------------------- gradients

    def differentiate(self, seeds: Sequence[tuple[TracedTensor, TracedTensor]], entries: Sequence[Entry],
                      order: Sequence[Node] | None = None) -> list[TracedTensor | None]:
        """Gradients with respect to entries, as new nodes; None for a missing one. ``order`` limits the nodes that are
        differentiated; by default it is all."""
        tracer = _Rules(self)
        out_grads = [(value._entry, tracer.value(seed._entry)) for value, seed in seeds]
        with self:
            gradients = grow(tracer, self.order if order is None else order, out_grads, {node for node, _ in entries})
        self.take_new()
        return [self.wrap(gradients[entry]._entry) if entry in gradients else None for entry in entries]

    def variable_of(self, entry: Entry) -> Node:
        """The variable of an argument, after the tag of its hooks."""
        node, number = entry
        return node if node.op is None else node.inputs[number][0]

    def read_through(self, variable: Entry, tag: Entry) -> None:
        """Let all readers of a variable read the new last node in its place."""
        new = self.nodes.pop()
        for node in self.nodes:
            if variable in node.inputs:
                node.inputs = tuple([tag if entry == variable else entry for entry in node.inputs])
        self.nodes.insert(0, new)

    def move_after(self, node: Node, tag: Node) -> None:
        """Put the new last node, which reads all outputs of a node, between that node and all other readers, by
        exchanging the contents of the two nodes."""
        del self.nodes[-1]
        self.nodes.insert(self.nodes.index(node), tag)
        node.exchange(tag)
        self.drawn[:] = [tag if each is node else each for each in self.drawn]
        node.inputs = tuple([(tag, i) for _, i in node.inputs])

    def forget(self, nodes: int, specs: int) -> None:
        """Drop nodes and specs beyond these counts."""
        del self.nodes[nodes:]
        for node in list(self.specs)[specs:]:
            del self.specs[node]
        self.variables = {key: variable for key, variable in self.variables.items() if variable[1] in self.specs}
        self.constants = {}
        self._taken = min(self._taken, nodes)

    def skip(self) -> None:
        """Leave all nodes so far to the code that added them."""
        self._taken = len(self.nodes)


class _Rules(RuleTracer):
    """Tracer of gradient rules in a trace. States that the backward of a user's operator changes are assigned."""

    def __init__(self, trace: FunctionTracer):
        super().__init__(trace.nodes, trace.specs)
        self._trace = trace

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """Shapes and dtypes of a node's outputs."""
        with untraced():
            return super().infer(node, ins)

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None = None) -> Node:
        """Add a node over entries."""
        trace = self._trace
        states = [(i, trace.states[inputs[i]]) for i in changed_states(op, attrs) if inputs[i] in trace.states]
        if not states:
            return super().add(op, attrs, inputs, keywords)
        entries = list(inputs)
        for i, state in states:
            entries[i] = trace.read(state)._entry
        node = super().add(with_hidden_states(op), {"inner": attrs}, entries)
        trace.take_new()
        first = node.count - len(changed_states(op, attrs)) - changed_states(op, attrs)[0]
        for i, state in states:
            trace.assign(state, trace.wrap((node, first + i)))
        return node


#: The value that a trained Parameter was assigned: the Parameter gets its gradient.
ASSIGNED = Op("_assigned", AS_GIVEN, ("parameter", "value"), per_instance=True)
ASSIGNED.shapes(lambda ins, outs: (ins, ins[1:]))
ASSIGNED.types(lambda ins, outs: (ins, ins[1:]))
ASSIGNED.grad(lambda g, ins, outs: (g, None))
ASSIGNED.inline(lambda inputs, specs: ([], [inputs[1]]))
ASSIGNED.body(lambda inputs: ([inputs[1]], {}))


def create(op: Op, **attrs: Any) -> Any:
    """Apply an operator without inputs: a node in a trace, an array otherwise.

    Examples
    --------
    >>> from opreg.core.registry import get
    >>> create(get("_zeros"), shape=(2,), dtype="float32")
    Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])
    """
    if STATE.trace is not None:
        return STATE.trace.call(op, (), attrs)
    return tensor(np.zeros((), np.float32))._apply(op, (), attrs)

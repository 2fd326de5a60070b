"""Applications: calls whose gradient is a user's function, as one entry of the tape or one node of a graph.

A call of a Cell with ``bprop`` is one, and so is a call of a ``_Function``. The operators inside are not recorded: the
tape records the application, whose gradient calls the user's function. The function is written in operators, so it is
itself recorded, or traced, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from opreg.ndarray.ndarray import NDArray
from opreg.symbol import infer as inference

from ..core import effects
from ..core.attrs import AS_GIVEN
from ..core.graph import Entry, Graph, Node
from ..core.mode import MODE, Recording
from ..core.op import Op
from ..core.registry import ops
from ..core.rules import as_list
from ..core.spec import Spec, is_known
from ..core.tracing import TracedValue
from ..errors import NotDifferentiableError, OpError
from .parameter import Parameter
from .python_op import call
from .state import STATE
from .tensor import Tensor, zeros_as
from .tensor_base import TensorBase
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import LEAF, Structure

#: Gradients of the inputs' tensors and of the internal parameters; None for zeros.
Gradients: TypeAlias = tuple[Sequence[TensorBase | None], Sequence[TensorBase | None]]
T = TypeVar("T")

__all__ = ["Application", "Gradients", "application_op", "traced", "in_dtype_of", "saved_tensor_error", "spread"]


class Application:
    """One call whose gradient is a user's function.

    Parameters
    ----------
    title : str
        Its name in errors.
    kind : str
        The name of its class.
    inputs
        The structure of its inputs.
    count : int
        Number of tensors in the inputs.
    internal : list of Parameter
        Parameters whose gradients are computed, too.

    Attributes
    ----------
    out
        The structure of its output.
    visible : int
        Number of tensors in the output. A graph's node has further outputs, which its gradient reads.
    ins, outs : list of Spec
        Shapes and dtypes of the inputs' and the outputs' tensors.
    body : FunctionTracer or None
        The trace of the call, in a graph.
    slots, captured : list of Node
        Variables of the body: the inputs' tensors, and other tensors that it reads.
    variables : list of Node
        Slots, then captured variables: the inputs of the node.
    arrays : list
        Arrays of the captured variables, where they have any.
    heads : list of Entry
        Outputs of the body, then the values that it assigns to states.
    training : bool
        The mode of the call and of its gradient.
    calls_rule : bool
        Whether graphs call the user's function in each run, since it has changed a value that it reads, such as a
        counter. A trace would keep the first value.
    """

    calls_rule = False

    def __init__(self, title: str, kind: str, inputs: Structure, count: int, internal: Sequence[Parameter] = ()):
        self.title, self.kind, self.inputs, self.count, self.internal = title, kind, inputs, count, list(internal)
        self.out, self.training = LEAF, MODE.training
        self.visible = 0
        self.ins: list[Spec] = []
        self.outs: list[Spec] = []
        self.body: FunctionTracer | None = None
        self.slots: list[Node] = []
        self.captured: list[Node] = []
        self.arrays: list[NDArray | None] = []
        self.heads: list[Entry] = []

    @property
    def variables(self) -> list[Node]:
        """Variables of the body, in the order of the node's inputs."""
        return [*self.slots, *self.captured]

    @property
    def runs_as_python(self) -> bool:
        """Whether the gradient runs as Python, on values, also in a graph."""
        return False

    def version(self) -> None:
        """No version of the values that the user's function reads: it may read any."""

    def __repr__(self) -> str:
        return self.kind

    __str__ = __repr__

    def compute(self, out_grads: Sequence[TensorBase | None], ins: Sequence[TensorBase], outs: Sequence[TensorBase]
                ) -> Gradients:
        """Gradients of the inputs' tensors and of the internal parameters."""
        with Recording(None, self.training):
            return self._compute(out_grads, ins, outs)

    def _compute(self, out_grads: Sequence[TensorBase | None], ins: Sequence[TensorBase], outs: Sequence[TensorBase]
                 ) -> Gradients:
        """Call the user's function."""
        raise NotImplementedError


class _Attrs(dict[str, Any]):
    """The attributes of an application, whose gradient is a user's function. A pass that traces it observes what it
    reads from outside."""

    @property
    def calls_rule(self) -> bool:
        """Whether graphs call this function in each run."""
        return self["record"].calls_rule

    @calls_rule.setter
    def calls_rule(self, calls: bool) -> None:
        self["record"].calls_rule = calls

    @property
    def traced_title(self) -> str:
        """The traced code, as warnings name it."""
        return f"the gradient of {self['record'].title}"

    def outside(self) -> Application | None:
        """The application, whose reads no byte code tells; None if its gradient is not traced."""
        return None if self.calls_rule else self["record"]


def traced(trace: FunctionTracer, application: Application, op: Op, leaves: Sequence[TensorBase],
           words: Sequence[str], run: Callable[[Sequence[TracedTensor]], Sequence[TensorBase]]
            ) -> Sequence[TensorBase]:
    """Add an application to a trace as one node.

    Parameters
    ----------
    leaves : sequence of tensors
        The tensors of its inputs.
    words : sequence of str
        Names of these tensors.
    run : function of tensors
        Computes the call, sets ``out`` and ``visible``, and returns the tensors of the outputs.

    Returns
    -------
    list of TracedTensor
        The visible outputs.
    """
    values = [trace.read(leaf) for leaf in leaves]
    body = application.body = FunctionTracer(application.title, trace)
    application.ins = [value._spec for value in values]
    slots = [body.input(word, *spec) for word, spec in zip(words, application.ins)]
    application.slots = [slot._entry[0] for slot in slots]
    body.slots = dict(zip(application.slots, values))
    with body:
        heads = [body.read(result) for result in run(slots)]
        for weight in application.internal:
            body.read(weight)
        assigned = [(parameter, body.values[key]) for key, parameter in body.updated.items()]
    application.outs = [head._spec for head in heads]
    application.heads = [value._entry for value in (*heads, *[value for _, value in assigned])]
    application.captured = list(body.outer)
    arrays = {node: array for array, node in body.variables.values()}
    application.arrays = [arrays.get(node) for node in application.captured]
    moved = effects.changed_states(op, {"record": application})
    internal = set(map(id, application.internal))
    entries = [value._entry for value in values]
    for i, (variable, array) in enumerate(zip(application.captured, application.arrays), len(entries)):
        entry = body.outer[variable]._entry  # the user's function gives no gradient of a captured value
        entries.append(entry if i in moved or id(array) in internal else trace.block_gradient(entry))
    body.close()
    node = trace.add(op, _Attrs(record=application), entries, {op.name.strip("_"): application.kind})
    for i, (parameter, _) in enumerate(assigned, len(heads)):
        trace.assign(parameter, trace.wrap((node, i)))
    results = [trace.wrap((node, i)) for i in range(application.visible)]
    return results if MODE.recording else [ops.BlockGrad(result) for result in results]


def application_op(name: str, doc: str, optional_out_grads: bool = False) -> Op:
    """The operator of application nodes in a graph; for its other parameters see ``Op``."""
    op = Op(name, AS_GIVEN, lambda *, record: [node.name for node in record.variables],
            outputs=lambda *, record: [f"output{i}" for i in range(len(record.heads))],
            visible=lambda *, record: record.visible, mode=True, per_instance=True,
            doc=doc, optional_out_grads=optional_out_grads)
    op.together(_infer_body)
    op.chance(lambda *, record: any(effects.draws(node.op, node.attrs) for node in record.body.nodes))
    op.body(lambda inputs, *, record: (record.heads, dict(zip(record.variables, inputs))))
    op.inline(_inline_body)
    op.grad(_gradients)
    return op


def _infer_body(ins: Sequence[Spec], outs: Sequence[Spec], *, record: Application) -> tuple[list[Spec], list[Spec]]:
    """Infer specs of inputs and outputs through the body."""
    inputs = record.variables
    specs = inference.infer_body(Graph(record.heads), inputs, ins)
    return ([specs[node][0] if node in specs else spec for node, spec in zip(inputs, ins)],
            [specs[node][i] for node, i in record.heads])


def _inline_body(inputs: Sequence[Entry], specs: dict[Node, list[Spec]], *, record: Application
                 ) -> tuple[list[Node], list[Entry]]:
    """The nodes of the body over these inputs, and the entries of its outputs."""
    became: dict[Entry, Entry] = {(node, 0): entry for node, entry in zip(record.variables, inputs)}
    assert record.body is not None  # only a record with a body is in a graph
    inner = record.body.specs
    if not all(is_known(spec.shape) for values in inner.values() for spec in values):
        known_specs = {node: specs[source][i] for node, (source, i) in zip(record.variables, inputs)}
        graph = Graph(record.heads, [*record.variables, *record.body.nodes])
        inner = inference.infer(graph, {node: spec.shape for node, spec in known_specs.items()},
                                {node: spec.dtype for node, spec in known_specs.items()})
    nodes = []
    for node in record.body.nodes:
        new = node.copy([became.get(entry, entry) for entry in node.inputs])
        specs[new] = inner[node]
        for i in range(len(specs[new])):
            became[node, i] = new, i
        nodes.append(new)
    return nodes, [became.get(entry, entry) for entry in record.heads]


def _gradients(g: TracedValue | tuple[TracedValue | None, ...], ins: Sequence[TracedValue],
               outs: Sequence[TracedValue], *, record: Application, needs: Sequence[bool]) -> list[TracedValue | None]:
    count, rest = record.count, len(record.captured)
    out_grads = as_list(g)
    if any(top is not None for top in out_grads[record.visible:len(record.outs)]):
        raise NotDifferentiableError(saved_tensor_error(record.title))
    compute = _called_gradients if record.runs_as_python or record.calls_rule else _traced_gradients
    gradients, weights = compute(record, out_grads[:record.visible], ins, outs)
    by_weight = {id(weight): value for weight, value in zip(record.internal, weights)}
    return [*gradients, *[by_weight.get(id(array)) for array in record.arrays[:rest]]] if count or rest else []


def spread(g: Any) -> Iterator[Any]:
    """The gradients in a nesting of tuples, with None among them."""
    if isinstance(g, (tuple, list)):
        for part in g:
            yield from spread(part)
    elif isinstance(g, dict):
        yield from spread(list(g.values()))
    else:
        yield g


def in_dtype_of(g: TensorBase, value: TensorBase) -> TensorBase:
    """A gradient in the dtype of its value; casting a floating gradient to an integer gives a warning."""
    return g if g._dt == value._dt else ops._backward_cast(g, value)


def saved_tensor_error(title: str) -> str:
    """The text of the error for a gradient through a tensor that forward computed and saved: it is unknown, since only
    ``backward`` is defined."""
    return (f"{title}: its backward reads an intermediate tensor of forward, whose gradient is unknown: save only "
            "inputs and outputs with ctx.save_for_backward, and compute the rest again in backward")


def _traced_gradients(record: Application, out_grads: Sequence[TracedValue | None], ins: Sequence[TracedValue],
                      outs: Sequence[TracedValue]) -> tuple[Sequence[TracedValue | None], Sequence[TracedValue | None]]:
    """The gradients as further nodes: the user's function is traced."""
    trace, by_executor = STATE.trace, STATE.trace is None
    if trace is None:  # the nodes join those of the gradient
        trace = FunctionTracer(record.title, nodes=outs[0]._tracer.nodes)
        trace.symbolic, trace.mode, trace.assigns = True, True, False
        trace.skip()
    trace.take_new()

    count = record.count
    before, shown = trace.values, dict(trace.values)
    captured_specs = [record.body.specs[node][0] for node in record.captured]  # type: ignore[union-attr]
    for array, symbol, spec in zip(record.arrays, ins[count:], captured_specs):
        if isinstance(array, NDArray):
            shown[id(array)] = trace.rule_value(symbol, spec)
    trace.values = dict(shown)
    try:
        with trace:
            gradients, weights = record.compute([None if g is None else trace.rule_value(g, spec)
                                                 for g, spec in zip(out_grads, record.outs)],
                                                list(map(trace.rule_value, ins[:count], record.ins)),
                                                list(map(trace.rule_value, outs, record.outs)))
            every = [None if g is None else TracedValue(outs[0]._tracer, trace.read(g)._entry)
                     for g in (*gradients, *weights)]
        if by_executor and trace.arrays:
            read = " and ".join(getattr(array, "name", "a tensor") for array in trace.arrays.values())
            raise OpError(f"the gradient of {record.title} reads {read}, which is no input of the Symbol: make it an "
                          "input of the Cell, or compile the Cell with jit")
    finally:
        assigned = {key: value for key, value in trace.values.items() if value is not shown.get(key)}
        trace.values = {**before, **assigned}
    return every[:len(gradients)], every[len(gradients):]


def _called_gradients(record: Application, out_grads: Sequence[Any], ins: Sequence[TracedValue],
                      outs: Sequence[TracedValue]) -> tuple[Sequence[TracedValue | None], Sequence[TracedValue | None]]:
    """The gradients from the user's function run as Python on every run of the graph."""
    count, visible = record.count, record.visible

    def function(*values: Tensor) -> list[TensorBase]:
        tops, inputs, results = values[:visible], values[visible:visible + count], values[visible + count:]
        gradients, weights = record.compute(tops, inputs, results)
        return [zeros_as(like) if g is None else g
                for g, like in zip([*gradients, *weights], [*inputs, *record.internal])]

    inputs, outputs = [[value._tracer.spec(value._entry) for value in values]  # a graph may know more than the record
                       for values in (ins[:count], outs[:visible])]
    weights = [Spec(weight.shape, weight._dt) for weight in record.internal]
    results = call(function, [*out_grads, *ins[:count], *outs[:visible]], [*outputs, *inputs, *outputs],
                   [*inputs, *weights], f"the gradient of {record.title}")
    return results[:count], results[count:]

"""python_op: a Python function of tensors as a node of a graph, differentiable as often as its operators are.

Eagerly the function is called as usual. In a graph each run calls it with copies of its inputs; if a gradient is needed
the call is recorded, and the gradient is a node of the same kind, which runs backward over the record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray import backward_pass, tape
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.tape import TapeEntry

from ..core.attrs import AS_GIVEN
from ..core.launch import Call
from ..core.mode import MODE, Recording
from ..core.op import Op
from ..core.rules import as_list
from ..core.spec import Spec, show
from ..core.tracing import TracedValue
from ..core.value import Value
from ..core.versions import tick
from ..errors import ArgumentError
from .bailout import CallSignature, CallSignatures, LeftToPython, RecordedRun, SignatureChanged, StateChanged
from .captures import CurrentValues, as_variable, sources_of, value_of
from .state import STATE
from .tensor import TENSORS, Tensor, tensor, tensor_over, zeros_as
from .tensor_base import TensorBase
from .traced_tensor import TracedTensor
from .tree import flatten, key_of
from .variables import as_variables

if TYPE_CHECKING:
    from .trace import FunctionTracer

__all__ = ["PYTHON", "Record", "add_call", "call", "spec_of"]

_NOTHING: RecordedRun = ((), ())


def spec_of(value: TensorBase | NDArray) -> Spec:
    """The shape and dtype of a tensor or an array."""
    return Spec(value.shape, value._dt) if isinstance(value, TensorBase) else Spec(value.shape, value._data.dtype)


class Record:
    """One call of a Python function in a graph.

    Attributes
    ----------
    function : callable
        A function of tensors, which returns as many tensors as ``outs`` has.
    ins, outs : list of Spec
        Shapes and dtypes of its inputs and results.
    title : str
        Its name in errors.
    source : Record or None
        The record whose gradient this is.
    differentiated : bool
        Whether the graph has its gradient, so that the call must be recorded.
    place : hashable
        Key of the call among the calls of one run of a compiled function; None for other calls.
    signatures : CallSignatures
        Signatures of the calls of that function.
    number : int or None
        Its number among the calls of Python that the trace has noted.
    structured : bool
        Whether the function returns any nesting, as a chain of hooks does.
    assumed : CallSignature
        Its result and its inputs, as the trace assumes them.
    learned : bool
        Whether an earlier run found this signature.
    followed : bool
        Whether runs find out on which inputs and arrays from outside the results depend.
    read : int
        The number of inputs that are arguments of the function. Inputs after them have a place on the tape only.
    """

    def __init__(self, function: Callable[..., Any], ins: Sequence[Spec], assumed: CallSignature, title: str,
                 source: Record | None = None):
        self.function, self.ins, self.assumed, self.title, self.source = function, list(ins), assumed, title, source
        self.outs = [*assumed.specs, *map(spec_of, assumed.written)]
        self.read = len(self.ins) - len(assumed.captured if source is None else source.ins)
        self.differentiated = self.structured = self.learned = self.followed = False
        # runs recorded by executors; compiled functions store theirs in plans
        self._own_runs: dict[Record, RecordedRun] = {}
        self.place: Hashable = None
        self.number: int | None = None
        self.signatures: CallSignatures
        self._backs = 0

    def __repr__(self) -> str:
        return self.title

    __str__ = __repr__

    @property
    def latest_run(self) -> RecordedRun:
        """Variables and results of the latest run of the current plan."""
        return (self._own_runs if STATE.runs is None else STATE.runs).get(self, _NOTHING)

    @latest_run.setter
    def latest_run(self, value: RecordedRun) -> None:
        (self._own_runs if STATE.runs is None else STATE.runs)[self] = value

    def run(self, values: list[Tensor]) -> Sequence[Tensor]:
        """Call the function as one step of a plan."""
        if self.place is None:
            return self._call_function(values)
        run = self.signatures.replay.pop(self.place, None)
        if run is not None:
            self.latest_run = run
        else:
            try:
                self._call_function(values)
            except SignatureChanged as change:
                self.signatures.done[self.place] = [*self.latest_run[0], *change.captured], change.results
                raise
            except StateChanged:
                self.signatures.done[self.place] = self.latest_run
                raise
        self.signatures.done[self.place] = self.latest_run
        return self.latest_run[1]

    def _call_function(self, values: list[Tensor]) -> Sequence[Tensor]:
        """Call the function, and check that it has not changed state whose value from before is in the graph."""
        if self.number is not None:
            self.signatures.latest = self.number
        results = self._run(values)
        if self.number is not None:
            self.signatures.refuse_changes(self.number, self.title)
        return results

    def _run(self, values: list[Tensor]) -> Sequence[Tensor]:
        followed = self.followed and STATE.outside is not None and STATE.outside.followed
        if not (self.differentiated or followed):  # a plan runs without recording
            results = self._results(values)
            if self.place is not None:
                self.latest_run = (), results
            return results
        captured = self.assumed.captured
        if not captured:
            return self._record_call(values, (), followed)
        with as_variables(captured) as entries:
            return self._record_call(values, entries, followed)

    def _record_call(self, values: list[Tensor], captured: Sequence[TapeEntry], followed: bool) -> Sequence[Tensor]:
        """Call the function and record its operators; the last values are arrays with these entries."""
        inputs = []
        for i, value in enumerate(values[:self.read + len(captured)]):
            value._entry = (tape.Variable(value), 0) if i < self.read else captured[i - self.read]
            variable = tensor_over(value._data, value._ctx)  # the function may change its inputs
            variable._entry = value._entry
            inputs.append(variable)
        if self.source is not None:  # the gradient has the inputs of the operator that it belongs to
            inputs += self.source.latest_run[0]
        self.latest_run = inputs, []
        with Recording(True, None):
            self.latest_run = inputs, self._results(values, inputs if followed else None)
        return self.latest_run[1]

    def _results(self, values: Sequence[Tensor], inputs: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Call the function and check its results: also on which of the inputs they depend, if these are given. The
        results end with the new values of arrays that the function writes to."""
        assumed, start = self.assumed, tick()
        captured, outside = assumed.captured, STATE.outside if self.place is not None else None
        with CurrentValues(captured, values[self.read:], assumed.written) as current:
            returned = self.function(*values[:self.read])
            results: list[Tensor] = [] if self.structured else self._check_results(returned)
            structure = flatten(returned, results) if self.structured else assumed.structure
            written = None if outside is None or not outside.is_written() else outside
            if captured or written is not None:  # an array from outside may be a result
                results = list(map(value_of, results))
            new = [] if written is None else written.take_written(assumed.written)
            states = current.new()
        if new and self.source is not None:
            reason = f"{self.title} writes to a tensor that the function reads"
            raise LeftToPython(reason, reason)
        specs = list(map(spec_of, results)) if self.structured else assumed.specs
        same = not new and specs == assumed.specs and (
            structure is assumed.structure or key_of(structure) == key_of(assumed.structure))
        results += states
        sources = assumed.sources if same else None
        more: list[Tensor] = []
        results += [value for _, value in new]
        if inputs is not None:
            sources, entries = sources_of(results, inputs, start)
            if entries:
                arrays, more = self._captured_arrays(entries)
                captured = (*captured, *arrays)
            if self.source is not None:
                return results
            if same and self.learned and sources != assumed.sources and assumed.sources is not None:
                # the union of both, so that alternating runs do not trace anew each time
                sources = tuple(map(frozenset.union, sources, assumed.sources))
        if not same or sources != assumed.sources:
            known = set(map(id, captured))
            found = [array for array, _ in new if id(array) not in known]
            signature = CallSignature(structure, specs, (*captured, *found), sources,
                                      (*assumed.written, *[array for array, _ in new]))
            raise SignatureChanged(self.place, signature, results, [*more, *map(as_variable, found)])
        return results

    def _captured_arrays(self, entries: Sequence[TapeEntry]) -> tuple[list[NDArray], list[Tensor]]:
        """The arrays from outside with these entries, and their values as variables."""
        if self.source is not None:
            reason = f"{self.title} reads a tensor with respect to which it is differentiated again"
            raise LeftToPython(reason, reason)
        found: tuple[list[NDArray], list[Tensor]] = STATE.outside.captured(entries, self.title)
        return found

    def _check_results(self, results: Iterable[Any]) -> list[Tensor]:
        checked: list[Any] = [result if result.__class__ in TENSORS else tensor(result) for result in results]
        for i, (result, spec) in enumerate(zip(checked, self.outs)):
            if result._data.shape != spec.shape or result._data.dtype != spec.dtype:
                raise ArgumentError(
                    f"{self.title}: result {i} has shape {show(result.shape)} and dtype {result._dt}, expected "
                    f"{show(spec.shape)} and {spec.dtype}, as in the trace")
        return checked

    def back(self, heads: Sequence[int], targets: Sequence[int]) -> Record:
        """The record of the gradients of some results with respect to some inputs. Its inputs are the output gradients
        of these results, then all inputs of this record."""
        self.differentiated = True
        record = Record(functools.partial(_gradients_of_record, self, heads, targets),
                        [*[self.outs[i] for i in heads], *self.ins],
                        CallSignature(None, [self.ins[i] for i in targets]), f"the gradient of {self.title}", self)
        if self.place is not None:
            record.followed = STATE.trace is not None and STATE.trace.root.differentiating > 0
            self._backs += 1
            record.place, record.signatures = (self.place, self._backs), self.signatures
        return record

    def inputs_with_gradient(self, heads: Sequence[int]) -> Sequence[int]:
        """The inputs to which the gradients of some results flow."""
        sources = self.assumed.sources
        return range(len(self.ins)) if sources is None else sorted(frozenset().union(*[sources[i] for i in heads]))


def _gradients_of_record(record: Record, heads: Sequence[int], targets: Sequence[int], *values: Tensor) -> list[Tensor]:
    """Gradients of some results of the latest run of a record with respect to some of its inputs."""
    variables, every = record.latest_run
    wanted = [variables[i] for i in targets]
    results = [every[i] for i in heads]
    if not MODE.recording:
        places = {id(variable._entry): i for i, variable in enumerate(variables)}
        if all(id(result._entry) in places for result in results):
            # The function returned its inputs, as a hook that only reads does.
            gradients: list[Tensor | None] = [None] * len(variables)
            for result, g in zip(results, values):
                place = places[id(result._entry)]
                before = gradients[place]
                gradients[place] = g if before is None else before + g
            return [zeros_as(variable) if (found := gradients[i]) is None else found
                    for i, variable in zip(targets, wanted)]
    pairs = [(result, g) for result, g in zip(results, values) if result._entry is not None]
    if not pairs:
        return [zeros_as(variable) for variable in wanted]
    return [tensor(g) for g in backward_pass.gradients(
        [head for head, _ in pairs], wanted, [g for _, g in pairs], True, MODE.recording, None)]


#: This operator calls a Python function with copies of the output gradients.
PYTHON = Op("_python", AS_GIVEN, lambda *, record: [f"data{i}" for i in range(len(record.ins))],
            outputs=lambda *, record: [f"output{i}" for i in range(len(record.outs))],
            per_instance=True, has_side_effect=True, optional_out_grads=True, doc="a hook or a Python function")
PYTHON.shapes(lambda ins, outs, *, record: (ins, [spec.shape for spec in record.outs]))
PYTHON.types(lambda ins, outs, *, record: (ins, [spec.dtype for spec in record.outs]))


@PYTHON.grad
def _python_grad(g: Value | tuple[Value | None, ...], ins: Sequence[Value], outs: Sequence[Value], *, record: Record
                 ) -> list[Value | None]:
    tops = g if isinstance(g, tuple) else (g,)
    heads = [i for i, top in enumerate(tops) if top is not None]
    gradients: list[Value | None] = [None] * len(ins)
    targets = record.inputs_with_gradient(heads)
    if targets:
        given = [top for top in tops if top is not None]
        found = ins[0]._apply(PYTHON, [*given, *ins], {"record": record.back(heads, targets)})
        for i, gradient in zip(targets, as_list(found)):
            gradients[i] = gradient
    return gradients


@PYTHON.kernel("python", bound=True)
def _python(step: Call) -> Callable[[], None]:
    record, ctx, moves = step.attrs["record"], step.ctx, step.moves
    read = record.read

    def run() -> None:
        if moves and record.place is not None and STATE.outside is not None:
            STATE.outside.store(moves)
        results = record.run([*[tensor_over(array.copy(), ctx) for array in step.ins[:read]],
                              *[tensor_over(array, ctx) for array in step.ins[read:]]])
        for out, result in zip(step.outs, results):
            if out is not None:
                out[...] = result._data

    return run


def call(function: Callable[..., list[Any]], values: Sequence[Value], specs: Sequence[Spec], outs: Sequence[Spec],
         title: str) -> list[Any]:
    """Call a function of tensors, now, or in each run of the graph that is being traced.

    Parameters
    ----------
    function : callable
        A function of tensors, which returns a list of tensors.
    values : sequence
        Arrays, values of a trace, or of a gradient rule.
    specs, outs : sequence of Spec
        Shapes and dtypes of the values, and of the results in a graph.
    title : str
        Its name in errors.
    """
    if values and all(isinstance(value, NDArray) for value in values):
        return function(*values)
    assumed, trace = CallSignature(None, list(outs)), STATE.trace
    for value in values:
        if isinstance(value, TracedValue):  # a value that the trace of a gradient rule has
            if trace is None:
                record = Record(function, specs, assumed, title)
                return as_list(value._apply(PYTHON, values, {"record": record}))
            trace.take_new()
            adopted: list[Any] = [trace.rule_value(each, spec) for each, spec in zip(values, specs)]  # type: ignore[arg-type]
            _, results = add_call(trace, function, adopted, assumed, title)
            return [TracedValue(value._tracer, result._entry) for result in results]
    trace = trace or next(value for value in values if isinstance(value, TracedTensor))._trace
    return add_call(trace, function, values, assumed, title)[1]


def add_call(trace: FunctionTracer, function: Callable[..., Any], values: Sequence[Any], assumed: CallSignature,
             title: str, structured: bool = False) -> tuple[CallSignature, list[TracedTensor]]:
    """Add a call of a function of tensors to a trace; returns its signature and its results.

    Parameters
    ----------
    values : sequence
        Arrays, and values of the trace.
    assumed : CallSignature
        The signature, unless an earlier run found another one.
    structured : bool
        Whether the function returns any nesting of tensors; else it returns a list.
    """
    place = title, trace.unique(title)
    known = trace.signatures.known.get(place)
    signature = known or (assumed._replace(sources=None) if trace.root.symbolic else assumed)
    if not trace.root.symbolic:
        captured = set(map(id, signature.captured))
        moved = [array for key, array in trace.assigned_arrays().items() if key not in captured]
        signature = signature._replace(captured=(*signature.captured, *moved))
    inputs = [trace.read(value) for value in (*values, *signature.captured)]
    record = Record(function, list(map(spec_of, inputs)), signature, title)
    record.signatures, record.learned = trace.signatures, known is not None
    record.number, record.structured = trace.reads.note_call(), structured
    if not trace.root.symbolic:  # the runs of an executor are no runs of a compiled function
        record.place, record.followed = place, structured or trace.root.differentiating > 0
    results = trace.call(PYTHON, inputs, {"record": record})
    results = list(results) if isinstance(results, tuple) else [results]
    count = len(signature.specs)
    for array, value in zip(signature.written, results[count:]):
        trace.assign(array, value)
    return signature, results[:count]

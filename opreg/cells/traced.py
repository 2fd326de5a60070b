"""trace_function: calls a function once with traced tensors, and records a graph."""

from __future__ import annotations

import contextlib
import functools
import gc
import operator
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core import effects
from ..core.chosen import override
from ..core.graph import Entry
from ..core.held_values import CONTAINERS, elements
from ..core.mode import MODE, Recording
from ..core.parameters import signature_of
from ..core.spec import Shape
from ..errors import OpError, note
from . import tree
from .bailout import CallSignatures, LeftToPython
from .class_hooks import attributes_of
from .former_state import FormerState
from .guards import GUARD, Path, TraceValues
from .observer import Observer
from .outside import set_state
from .parameter import Parameter
from .parameter_container import ParameterContainer
from .python_op import PYTHON
from .state import STATE
from .tensor import Tensor
from .tensor_hooks import has_hooks
from .trace import FunctionTracer
from .traced_tensor import TracedTensor
from .tree import Structure
from .user_code import is_user_module

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["Traced", "symbol_of", "trace_function"]


class Traced:
    """The trace of a function: a graph, the arrays of its variables, and the structure of its results.

    Parameters
    ----------
    inputs : sequence of traced tensors
        The tensors among the arguments.
    weights : sequence of arrays
        Arrays from outside that are returned themselves where a result is one of them, as Parameters are.

    Attributes
    ----------
    inputs : list of Node
        Variables of the tensors among the arguments.
    heads : list of Entry
        The tensors among the results that a run computes.
    missing_attributes : set of str
        Attributes that the function asked arguments for, and that none of them had.
    structure
        The nesting of the results.
    places : list of (int or None)
        For each tensor in the structure of the results, the number of the argument that it is; None if a run computes
        it.
    ctx : Context
        The device.
    training : bool or None
        The mode of the caller for which it is valid; None for both.
    trains : bool
        Whether a node computes as in training, or an array from outside changes.
    captured : list of (array, Node)
        Arrays from outside, and their variables.
    assigned : list of (array, Entry)
        Arrays that change, and their final values.
    steps : sequence of (fork, answer)
        The values that Python read.
    calls, collective, random : bool
        Whether runs call Python, such as hooks; whether they communicate with other processes; whether they draw random
        values, or may, as users' operators do.
    by_run : bool
        Whether a dry run has found shapes or dtypes of an operator, which may differ in a later run.
    last : list of Entry
        An output of the last node that runs even if its result is not read; empty if there is none.
    """

    def __init__(self, trace: FunctionTracer, inputs: Sequence[TracedTensor], out: object, ctx: Context | None,
                 weights: Sequence[NDArray] = ()):
        self.trace, self.reads, self.missing_attributes = trace, trace.reads, trace.missing_attributes
        # An argument with a hook of this trace reads its variable through a tag, which a run computes.
        self.inputs = [trace.variable_of(value._entry) for value in inputs]
        arguments = {} if trace.symbolic else {id(value): number for number, value in enumerate(inputs)
                                               if value._entry[0] is self.inputs[number]}
        weight_ids = set(map(id, weights))
        self._outside = {id(container): container for container, _, _ in trace.reads.comparisons.outside()}
        structure, leaves = self._taken_apart(out)
        self._outside = {id(leaf): leaf for leaf in leaves if id(leaf) in self._outside}
        kept = not trace.symbolic  # all results of a Symbol are its outputs
        constant = [id(leaf) in self._outside or (
            kept and (isinstance(leaf, Parameter) or id(leaf) in weight_ids) and id(leaf) not in trace.values)
            for leaf in leaves]
        self.places = [arguments.get(id(leaf)) for leaf, as_it_is in zip(leaves, constant) if not as_it_is]
        self._computed = [not as_it_is and id(leaf) not in arguments for leaf, as_it_is in zip(leaves, constant)]
        self.heads: list[Entry] = [trace.read(leaf)._entry for leaf, is_head in zip(leaves, self._computed) if is_head]
        self.structure = _insert_constants(structure, iter(zip(leaves, constant))) if any(constant) else structure
        if ctx is None:
            ctx = next((array._ctx for array, _ in trace.variables.values()), current_context())
        self.ctx = ctx
        self.training = MODE.training if trace.minds_training else None
        self.assigned = [(trace.variables[key][0], trace.values[key]._entry) for key in trace.updated]
        self.captured = [(array, node) for array, node in trace.variables.values()]
        ops = [node.op for node in trace.nodes if node.op is not None]
        self.trains = bool(self.assigned) or any(node.op is not None and node.op.traits.minds_training
                                                 and node.in_training(True) for node in trace.nodes)
        self.steps = [] if trace.path is None else trace.path.steps
        self.calls = PYTHON in ops
        self.collective = any(op.traits.has_side_effect and op not in (GUARD, PYTHON) for op in ops)
        self.random = any(node.op is not None and effects.draws(node.op, node.attrs) for node in trace.nodes)
        self.by_run = any(getattr(node.attrs, "inferred_by_run", False) for node in trace.nodes)
        # Nodes that run although their results are not read belong to the first half, and so do all nodes before the
        # last of them.
        self.last: list[Entry] = [(node, 0) for node in trace.nodes if node.op is not None
                                  and effects.runs_unread(node.op, node.attrs) and node.count][-1:]
        trace.path, trace.constants = None, {}
        self.reads.close()

    @property
    def may_stop(self) -> bool:
        """Whether a run may stop in a bailout."""
        return bool(self.calls or self.steps or self.by_run)

    def _taken_apart(self, out: object) -> tuple[Structure, list[Any]]:
        """The structure of results, and their leaves: tensors, and containers from outside, which are not opened."""
        leaves: list[Any] = []
        return tree.flatten(out, leaves, lambda value: id(value) in self._outside), leaves

    def computed_leaves(self, out: object) -> list[Any]:
        """The results that the heads of the graph compute, in their order."""
        return [leaf for leaf, computed in zip(self._taken_apart(out)[1], self._computed) if computed]

    def results(self, leaves: Sequence[object], computed: Sequence[object]) -> Any:
        """The results of a run, as the function returns them, from the tensors among its arguments and those that the
        run has computed. A result that is an argument is the caller's own tensor, as in Python."""
        if len(computed) == len(self.places):
            return tree.rebuild(self.structure, iter(computed))
        remaining = iter(computed)
        return tree.rebuild(self.structure, iter([
            next(remaining) if number is None else leaves[number] for number in self.places]))


def _insert_constants(structure: Structure, leaves: Iterator[tuple[Any, bool]]) -> Structure:
    """The structure, with the results that are returned themselves as constants in it."""
    if structure is tree.LEAF:
        leaf, as_it_is = next(leaves)
        return Structure(("constant", leaf)) if as_it_is else tree.LEAF
    if structure[0] == "constant":
        return structure
    parts = tuple([_insert_constants(part, leaves) for part in structure[2]])
    return Structure((*structure[:2], parts, *structure[3:]))


def trace_function(function: Callable, arguments: Structure, specs: Sequence[tuple[Shape | None, np.dtype | None]],
                   ctx: Context | None = None, signatures: CallSignatures | None = None, path: Path | None = None,
                   leaves: Sequence[Tensor] = (), owner: weakref.ref[ParameterContainer] | None = None,
                   mode: bool = True, former: FormerState | None = None) -> Traced:
    """Trace a function with arguments of a given structure, and tensors of given shapes and dtypes.

    Parameters
    ----------
    signatures : CallSignatures, optional
        Known results of its hooks.
    path : Path, optional
        The values for its branches; without a path it may not read values.
    leaves : sequence of tensors
        The tensors whose values it may read.
    owner : weak reference, optional
        The Cell that holds the compiled function.
    mode : bool
        The mode of Cells, where values may not be read.
    former : FormerState, optional
        The state that the function read before calls of Python changed it.

    Raises
    ------
    LeftToPython
        When the function cannot be a graph.
    """
    title = getattr(function, "__name__", type(function).__name__)
    trace, inputs = _begun_trace(title, _names(function, arguments), specs, leaves, path, mode, ctx)
    trace.signatures, trace.owner = signatures or trace.signatures, owner
    trace.reads.former = former or trace.reads.former
    traced_arguments = args, kwargs = tree.rebuild(arguments, iter(inputs))
    observer = Observer(trace.reads, leaves=path is not None)
    try:
        # Later callers may not share blocked gradients, nor the current context.
        with (trace.reads.former, trace, override(STATE, blocked=0, runs=None), ctx or current_context(),
              observer if path is not None else contextlib.nullcontext()):
            observer.note_use(function)
            for container in tree.with_class(traced_arguments):
                observer.ignore(container)
            for constant in tree.constants_of(arguments) if path is not None else ():
                observer.read(constant, "an argument")
            out = function(*args, **kwargs)
            if isinstance(out, Iterator):
                out = list(out)  # new nodes belong to the trace, too
            if not trace.left and any(handle.registered for handle in trace.registered):
                trace.left = "it registers a hook, which every run would do again"
            if path is not None:
                trace.left = trace.left or _changed_by(trace, arguments, traced_arguments, inputs)
    except Exception as error:
        if path is not None and _holds(list(error.args) + [vars(error)], set()):
            trace.left = trace.left or "it keeps a tensor in the exception that it raises"
        trace.left = trace.left or (_outside_place(trace) if path is not None else "")
        if not trace.left and not observer.left:
            note(error, f"while {title} was compiled")
            raise
    finally:
        if trace.trace_values is not None:
            trace.trace_values.close()
            trace.trace_values = None
    if trace.left or observer.reason:
        _undo_changes(trace, observer)
        trace.left = trace.left or observer.reason
        raise LeftToPython(f"{title} cannot be compiled to a graph: {trace.left}", trace.left, trace.reads)
    return Traced(trace, inputs, out, ctx)


def _begun_trace(title: str, names: Sequence[str], specs: Sequence[tuple[Shape | None, np.dtype | None]],
                 leaves: Sequence[Tensor], path: Path | None, mode: bool, ctx: Context | None
                 ) -> tuple[FunctionTracer, list[TracedTensor]]:
    """A trace without operations, and its traced inputs."""
    trace = FunctionTracer(title)
    inputs = [trace.input(name, shape, dtype) for name, (shape, dtype) in zip(names, specs)]
    trace.path, trace.symbolic = path, path is None
    trace.caller_tensors = dict(zip(map(id, inputs), leaves))
    trace.assigns, trace.mode = path is not None, mode if path is None else None
    trace.hooked = {value._entry for value, leaf in zip(inputs, leaves) if has_hooks(leaf)}
    if path is not None:
        trace.trace_values = TraceValues({value._entry[0]: leaf._data for value, leaf in zip(inputs, leaves)},
                                         ctx or current_context())
    return trace, inputs


def _undo_changes(trace: FunctionTracer, observer: Observer) -> None:
    """Undo the changes that an abandoned trace made outside of its function, so that Python can run the call."""
    for handle in trace.registered:
        handle.remove()
    trace.reads.put_back()
    for generator, state in observer.drawn:
        set_state(generator, state)
    trace.reads.close(not trace.left)


def _changed_by(trace: FunctionTracer, arguments: Structure, value: object, inputs: Sequence[object]) -> str:
    """The caller's container that a trace has changed, or that holds a traced tensor, as text; empty without any."""
    leaves: list[Any] = []
    if not _same_structure(arguments, tree.flatten(value, leaves)) or any(map(operator.is_not, leaves, inputs)):
        return "it changes an argument in place"
    return _outside_place(trace)


def _outside_place(trace: FunctionTracer) -> str:
    """The place outside of the function where it keeps a traced tensor, as text; empty without any."""
    said = "it keeps a tensor in {}, which every run would do again"
    for container, before, label in trace.reads.comparisons.outside():
        earlier_ids = set(map(id, before))
        if any(_holds(element, earlier_ids) for element in elements(container)):
            return said.format(label)
    for place in trace.reads.comparisons.places():
        if (value := place.now()) is not place.before and _holds(value, set()):
            return said.format(place.label)
    return ""


def _same_structure(before: Structure, after: Structure) -> bool:
    """Whether two structures have the same kinds and constants; constants are compared by identity."""
    if before is tree.LEAF or after is tree.LEAF:
        return before is after
    if before[0] == "constant" or after[0] == "constant":
        return before[0] == after[0] and before[1] is after[1]
    alike = before[:2] == after[:2] and before[3:] == after[3:] and len(before[2]) == len(after[2])
    return alike and all(map(_same_structure, before[2], after[2]))


def _holds(value: Any, visited: set[int]) -> bool:
    """Whether a value is a traced tensor, or holds one: a container, a function, a generator, an object; values in
    ``visited`` are skipped."""
    cls = type(value)  # not ``__class__``, which an object may override
    if issubclass(cls, TracedTensor):
        return id(value) not in visited
    if id(value) in visited or issubclass(cls, _WITHOUT):
        return False
    visited.add(id(value))
    if issubclass(cls, CONTAINERS):
        parts = elements(value)
    elif issubclass(cls, types.FunctionType):
        parts = gc.get_referents(value.__closure__, *(value.__closure__ or ()), value.__defaults__)
    elif issubclass(cls, types.GeneratorType):
        parts = list(value.gi_frame.f_locals.values()) if value.gi_frame else []
    elif issubclass(cls, (Iterator, functools.partial, types.MethodType, types.BuiltinMethodType)):
        parts = gc.get_referents(value)
    elif is_user_module(cls.__module__):
        parts = [attributes_of(value)]
    else:
        return False
    return any(_holds(part, visited) for part in parts)


#: Types whose values are not searched for tensors.
_WITHOUT = (type, types.ModuleType, types.CodeType, ParameterContainer, NDArray)


def _names(function: Callable[..., Any], arguments: Structure) -> list[str]:
    """Names of the tensors among the arguments, from the signature."""
    try:
        target = function.construct if hasattr(function, "construct") else function
        words = [p.name for p in signature_of(target).parameters.values()]
    except (TypeError, ValueError):
        words = []
    positional, (_, keys, parts) = arguments[2][0][2], arguments[2][1]
    return [*tree.names(words, positional), *tree.names(keys, parts)]


def symbol_of(cell: Cell, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Symbol:
    """See ``Cell.to_symbol``."""
    leaves: list[Any] = []
    arguments = [tree.flatten(value, leaves, _is_shape) for value in inputs]
    keywords = tree.flatten(kwargs, leaves, _is_shape)
    specs: list[tuple[Shape | None, np.dtype | None]] = [
        (leaf, np.dtype(np.float32)) if _is_shape(leaf) else (leaf.shape, leaf._data.dtype) for leaf in leaves]
    if not inputs:
        parameters = signature_of(cell.construct).parameters.values()
        needed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        arguments, specs = [tree.LEAF] * len(needed), [(None, None)] * len(needed) + specs
    structure = Structure(("list", None, (Structure(("list", None, tuple(arguments))), keywords)))
    with Recording(None, True):  # a graph has no mode: its executor chooses one
        traced = trace_function(cell, structure, specs)
    if traced.assigned:
        raise OpError(f"{cell.path}.to_symbol: it assigns {', '.join(_name(a) for a, _ in traced.assigned)}, and a "
                      "Symbol can not change its arguments")
    return Symbol(traced.heads)


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and all(type(dim) is int for dim in value)


def _name(array: NDArray) -> str:
    return getattr(array, "name", "a tensor")

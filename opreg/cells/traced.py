"""trace_function: a function called once with values that have no values yet, and what it did."""

from __future__ import annotations

import contextlib
import inspect
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core import effects
from ..core.comparisons import CONTAINERS, elements, put_back
from ..core.graph import Entry, Node
from ..core.mode import MODE, Recording
from ..core.spec import Shape
from ..errors import OpError, note
from . import tree
from .bailout import HookSignatures
from .guards import GUARD, Numbers, Path
from .hooks import has_hooks
from .observer import Observer
from .parameter import Parameter
from .parameter_container import ParameterContainer
from .python_op import PYTHON
from .state import STATE
from .tensor import Tensor
from .trace import FunctionTracer, LeftToPython, TracedTensor
from .tree import Structure

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["Traced", "symbol_of", "trace_function"]


class Traced:
    """The trace of a function: a graph, the values of its variables, and how its results are nested.

    Attributes
    ----------
    inputs : list of Node
        Variables of the tensors among the arguments.
    heads : list of Entry
        The tensors among the results.
    structure
        How the results are nested.
    ctx : Context
        Where it computes.
    training : bool or None
        The mode of the caller it is true for, None for any.
    captured : list of (array, Node)
        Arrays from outside, and the variables they are bound to.
    assigned : list of (array, Entry)
        Arrays that change, and what they hold in the end.
    steps : sequence of (fork, answer)
        The numbers that Python asked for.
    calls, collective, random : bool
        Whether runs call hooks and their like; whether they take part in what several processes do; whether they draw
        random numbers, or may, as users' operators do.
    last : list of Entry
        The last that runs in any case.
    """

    def __init__(self, trace: FunctionTracer, inputs: list[Node], out: object, ctx: Context | None):
        self.trace, self.inputs, self.reads = trace, inputs, trace.reads
        self._outside = {id(container): container for container, _, _ in trace.reads.comparisons.outside()}
        structure, leaves = self._taken_apart(out)
        self._outside = {id(leaf): leaf for leaf in leaves if id(leaf) in self._outside}
        kept = [id(leaf) in self._outside or (isinstance(leaf, Parameter) and id(leaf) not in trace.values)
                for leaf in leaves]
        self._kept = kept
        self.heads: list[Entry] = [trace.read(leaf)._entry for leaf, as_it_is in zip(leaves, kept) if not as_it_is]
        self.structure = _with(structure, iter(zip(leaves, kept))) if any(kept) else structure
        if ctx is None:
            ctx = next((array._ctx for array, _ in trace.variables.values()), current_context())
        self.ctx = ctx
        self.training = MODE.training if trace.minds_training else None
        self.assigned = [(trace.variables[key][0], trace.values[key]._entry) for key in trace.updated]
        self.captured = [(array, node) for array, node in trace.variables.values()]
        ops = [node.op for node in trace.nodes if node.op is not None]
        self.steps = [] if trace.path is None else trace.path.steps
        self.calls = PYTHON in ops
        self.collective = any(op.traits.has_side_effect and op not in (GUARD, PYTHON) for op in ops)
        self.random = any(node.op is not None and effects.draws(node.op, node.attrs) for node in trace.nodes)
        # Results that are never read are computed in the first half all the same: nothing up to the last of these
        # belongs to the second.
        self.last: list[Entry] = [(node, 0) for node in trace.nodes if node.op is not None
                                  and effects.runs_unread(node.op, node.attrs) and node.count][-1:]
        trace.path, trace.constants = None, {}
        self.reads.close()

    def _taken_apart(self, out: object) -> tuple[Structure, list[Any]]:
        """How results are nested, and their leaves: tensors, and containers from outside, which stay whole."""
        leaves: list[Any] = []
        return tree.flatten(out, leaves, lambda value: id(value) in self._outside), leaves

    def computed(self, out: object) -> list[Any]:
        """The tensors among the results that its heads stand for."""
        return [leaf for leaf, as_it_is in zip(self._taken_apart(out)[1], self._kept) if not as_it_is]


def _with(structure: Structure, leaves: Iterator[tuple[Any, bool]]) -> Structure:
    """The structure with those leaves in it that are results as they are."""
    if structure is tree.LEAF:
        leaf, as_it_is = next(leaves)
        return Structure(("constant", leaf)) if as_it_is else tree.LEAF
    if structure[0] == "constant":
        return structure
    return Structure((structure[0], structure[1], tuple([_with(part, leaves) for part in structure[2]])))


class _Neutral:
    """A stretch of code of which the state of the caller is kept away, as it is not that of later callers: whether
    gradients are blocked around it, in which context it stands."""

    def __init__(self, ctx: Context | None):
        self._ctx = current_context() if ctx is None else ctx

    def __enter__(self) -> None:
        self._before = STATE.blocked, STATE.kept
        STATE.blocked, STATE.kept = 0, None
        self._ctx.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._ctx.__exit__(*error)
        STATE.blocked, STATE.kept = self._before


def trace_function(function: Callable, arguments: Structure, specs: Sequence[tuple[Shape | None, np.dtype | None]],
           ctx: Context | None = None, signatures: HookSignatures | None = None, path: Path | None = None,
           leaves: Sequence[Tensor] = (), owner: weakref.ref[ParameterContainer] | None = None,
           mode: bool = True) -> Traced:
    """Trace a function whose arguments are nested like this, with tensors of these shapes and dtypes.

    Parameters
    ----------
    signatures : HookSignatures, optional
        What is known of its hooks.
    path : Path, optional
        Which way it goes where it asks for numbers; without one it may not ask.
    leaves : sequence of tensors
        The tensors, whose numbers are looked at where it asks for some.
    owner : weak reference, optional
        The Cell that keeps what is compiled.
    mode : bool
        The mode that Cells run in where it may not ask for numbers.

    Raises
    ------
    LeftToPython
        When it does what a graph can not do.
    """
    title = getattr(function, "__name__", type(function).__name__)
    trace = FunctionTracer(title)
    trace.signatures = signatures or trace.signatures
    inputs = [trace.input(name, shape, dtype) for name, (shape, dtype) in zip(_names(function, arguments), specs)]
    trace.path, trace.symbolic, trace.owner, trace.argument_ids = path, path is None, owner, set(map(id, inputs))
    trace.assigns, trace.mode = path is not None, mode if path is None else None
    trace.hooked = {value._entry for value, leaf in zip(inputs, leaves) if has_hooks(leaf)}
    nodes = [value._entry[0] for value in inputs]
    if path is not None:
        trace.numbers = Numbers({node: leaf._data for node, leaf in zip(nodes, leaves)}, ctx or current_context())
    given = args, kwargs = tree.rebuild(arguments, iter(inputs))
    observer = Observer(trace.reads)
    try:
        with trace, _Neutral(ctx), observer if path is not None else contextlib.nullcontext():
            observer.meet(function)
            out = function(*args, **kwargs)
            if isinstance(out, Iterator):
                out = list(out)  # what it makes belongs to the trace, too
            if not trace.left and any(handle.registered for handle in trace.registered):
                trace.left = "it registers a hook, which every run would do again"
            if path is not None:
                trace.left = trace.left or _changed_by(trace, arguments, given, inputs)
    except Exception as error:
        if not trace.left:
            note(error, f"while {title} was compiled")
            raise
    finally:
        if trace.numbers is not None:
            trace.numbers.close()
            trace.numbers = None
    if trace.left or observer.reason:
        for handle in trace.registered:
            handle.remove()
        for container, before, _ in trace.reads.comparisons.outside():
            put_back(container, before)
        trace.reads.close(not trace.left)
        trace.left = trace.left or observer.reason
        raise LeftToPython(f"{title} can not be a graph: {trace.left}", trace.left, trace.reads)
    return Traced(trace, nodes, out, ctx)


def _changed_by(trace: FunctionTracer, arguments: Structure, given: object, inputs: Sequence[object]) -> str:
    """The container that a trace has changed for its caller, or keeps a tensor in; nothing where there is none."""
    leaves: list[Any] = []
    if not _alike(arguments, tree.flatten(given, leaves)) or any(map(operator.is_not, leaves, inputs)):
        return "it changes an argument in place"
    for container, before, label in trace.reads.comparisons.outside():
        known = set(map(id, before))
        if any(_holds(each, known) for each in elements(container)):
            return f"it keeps a tensor in {label}, which every run would do again"
    return ""


def _alike(before: Structure, after: Structure) -> bool:
    """Whether two structures have the same kinds and constants, these by identity."""
    if before is tree.LEAF or after is tree.LEAF:
        return before is after
    if before[0] == "constant" or after[0] == "constant":
        return before[0] == after[0] and before[1] is after[1]
    return before[:2] == after[:2] and len(before[2]) == len(after[2]) and all(map(_alike, before[2], after[2]))


def _holds(value: object, known: set[int]) -> bool:
    """Whether a value is a tensor of a trace, or a container with one; containers in ``known`` are others' concern."""
    if id(value) in known:
        return False
    if isinstance(value, CONTAINERS):
        known.add(id(value))
        return any(_holds(each, known) for each in elements(value))
    return isinstance(value, TracedTensor)


def _names(function: Callable[..., Any], arguments: Structure) -> list[str]:
    """Names of the tensors among the arguments, from the signature."""
    try:
        target = function.construct if hasattr(function, "construct") else function
        words = [p.name for p in inspect.signature(target).parameters.values()]
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
        parameters = inspect.signature(cell.construct).parameters.values()
        needed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        arguments, specs = [tree.LEAF] * len(needed), [(None, None)] * len(needed) + specs
    structure = Structure(("list", None, (Structure(("list", None, tuple(arguments))), keywords)))
    with Recording(None, True):  # an executor says itself in which mode it runs
        traced = trace_function(cell, structure, specs)
    if traced.assigned:
        raise OpError(f"{cell.path}.to_symbol: it assigns {', '.join(_name(a) for a, _ in traced.assigned)}, and a "
                      "Symbol can not change its arguments")
    return Symbol(traced.heads)


def _is_shape(value: object) -> bool:
    return isinstance(value, tuple) and all(type(dim) is int for dim in value)


def _name(array: NDArray) -> str:
    return getattr(array, "name", "a tensor")

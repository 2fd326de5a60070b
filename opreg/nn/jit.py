"""jit: functions and Cells traced to a graph, once for each kind of inputs, and run as any other plan.

Parameters are bound by their own memory: what changes them is seen by the next run. Whatever a trace depended on, an
attribute of a Cell, a hook, whether a parameter is trained, is watched; when it changes, the function is traced anew.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import tape
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.compile import compile_program
from opreg.symbol.plan import Segment
from opreg.symbol.program import Bound, Program
from opreg.symbol.symbol import Symbol

from ..errors import OpError, note, refuse_keywords
from ..graph import Entry, Graph, Node
from ..mode import MODE, Recording, quiet
from ..op import Op, watch
from ..spec import Spec, known
from . import tree
from .holder import Holder
from .parameter import Parameter
from .state import EPOCH, STATE
from .tensor import TENSORS, made, tensor
from .trace import Surprise, Surprises, Trace

__all__ = ["Jitted", "jit", "symbol_of"]

#: Held while a plan is made: two threads may make plans of one trace.
_MAKING = threading.RLock()


class _Traced:
    """What tracing a function gave: a graph, what its variables are bound to, how its results are nested.

    Attributes
    ----------
    ctx : Context
        Where it computes.
    training : bool or None
        The mode of the caller it is true for, None for any.
    """

    def __init__(self, trace: Trace, inputs: list[Node], heads: list[Entry], structure: Any, ctx: Context):
        self.trace, self.inputs, self.heads, self.structure, self.ctx = trace, inputs, heads, structure, ctx
        self.training = MODE.training if trace.minds_training else None
        self.owners = [(owner, owner._version) for owner in trace.owners.values()]
        self.epoch = EPOCH[0]
        self.assigned = [(trace.variables[key][0], trace.values[key]._entry) for key in trace.updated]
        self.held = [(array, node) for array, node in trace.variables.values()]

    def serves(self, leaves: Sequence[Any]) -> bool:
        """Whether it is true where its caller is: in place and mode."""
        ctx = leaves[0]._ctx if leaves else current_context()
        return ctx is self.ctx and (self.training is None or self.training is MODE.training)

    def stale(self) -> bool:
        """Whether something it depended on has changed."""
        for owner, version in self.owners:
            if owner._version != version:
                return True
        self.epoch = EPOCH[0]
        return False


class _Plan:
    """A traced function bound to memory and flattened.

    Parameters
    ----------
    traced : _Traced
        The function.
    late : list of Entry
        Gradients, computed by a second half.
    seeds : list of Node
        Variables of the gradients that arrive.
    """

    def __init__(self, traced: _Traced, late: Sequence[Entry] = (), seeds: Sequence[Node] = ()):
        trace = traced.trace
        ctx = self.ctx = traced.ctx
        specs = trace.specs
        private = bool(late)  # a parameter that is assigned is still read, as it was, by the second half
        assigned = {id(array) for array, _ in traced.assigned}
        arrays: dict[Node, Any] = {}
        contexts: dict[Node, Context] = {}
        self.holders: list[tuple[NDArray, Any]] = []  # arrays whose memory the plan reads
        self.copied: list[tuple[NDArray, Any]] = []  # those it reads a copy of
        for array, node in traced.held:
            contexts[node] = array._ctx
            if private and id(array) in assigned:
                arrays[node] = array._data.copy()
                self.copied.append((array, arrays[node]))
            else:
                arrays[node] = array._data
                self.holders.append((array, array._data))
        for node in (*traced.inputs, *seeds):
            arrays[node], contexts[node] = _empty(ctx, specs[node][0]), ctx
        self.slots = [arrays[node] for node in traced.inputs]
        self.seeds = [arrays[node] for node in seeds]
        heads = [*traced.heads, *[entry for _, entry in traced.assigned]]
        variables = [node for node in specs if node.op is None and node in arrays]
        graph = Graph(heads, [*variables, *trace.nodes])
        self.outputs = [_empty(ctx, specs[node][i]) for node, i in traced.heads]
        self.stored: list[tuple[NDArray, Any]] = []
        targets = []
        for array, (node, i) in traced.assigned:
            if private:
                self.stored.append((array, _empty(ctx, specs[node][i])))
                targets.append(self.stored[-1][1])
            else:
                targets.append(array._data)
        self.gradients = [_empty(ctx, specs[node][i]) for node, i in late]
        bound = Bound(graph, dict(specs), ctx, {}, arrays, contexts, {}, outputs=[*self.outputs, *targets])
        program = Program.of(bound, True)
        program.heads = [*program.heads, *late]
        program.late = [(array, "write") for array in self.gradients]
        self.plan = compile_program(program)
        self.quiet = not any(node.op is not None and node.op.effect for node in graph.nodes)
        self.kept: dict[Any, Any] = {}  # what calls of Python keep for their gradients
        self.places: list[int | None] = []  # which of the gradients each input and weight has

    def fill(self, leaves: Sequence[Any]) -> None:
        """Bring inputs, and parameters that moved to other memory, to where the plan reads them."""
        for slot, leaf in zip(self.slots, leaves):
            slot[...] = leaf._data
        for array, data in self.holders:
            if array._data is not data:
                data[...] = array._data
                array._data = data
        if self.copied:
            for array, data in self.copied:
                data[...] = array._data

    def forward(self) -> None:
        """Run the first half."""
        plan = self.plan
        native = plan.forward.native
        if native is None:
            self._run(plan.forward)
        else:
            native()
        for store in plan.stores:
            store()

    def backward(self) -> None:
        """Run the second half."""
        self._run(self.plan.backward)

    def _run(self, segment: Segment) -> None:
        if segment.plain:
            quiet(segment.run)
            return
        before = MODE.recording, MODE.training
        trace, STATE.trace = STATE.trace, None
        kept, STATE.kept = STATE.kept, self.kept
        MODE.recording, MODE.training = False, True
        try:
            if self.quiet and not segment.fresh and current_context() is self.ctx:
                quiet(segment.run)
                return
            with self.ctx, np.errstate(all="ignore"):
                segment.run()
        finally:
            MODE.recording, MODE.training = before
            STATE.trace, STATE.kept = trace, kept


def _empty(ctx: Context, spec: Spec) -> Any:
    if spec.shape is None or not known(spec.shape):
        raise OpError("a compiled function needs shapes that follow from those of its inputs: one operator's depends "
                      "on numbers")
    return ctx.backend.zeros(spec.shape, spec.dtype or np.dtype(np.float32), ctx.device_id)


class _Compiled:
    """A function compiled for inputs of one kind.

    A plan is one caller's while it runs, and while its gradient may be asked for: threads, a hook that calls what it
    hangs on, and calls that wait for their gradients each have their own.

    Attributes
    ----------
    calls_python : bool
        Whether hooks and the like are called.
    pure : bool
        Whether running it twice is running it once: nothing is called, assigned or drawn.
    idle : list of _Plan
        Plans nobody has now.
    idle_recorded : dict of tuple of bool to list of _Plan
        Those with gradients, by which inputs and weights have one.
    """

    def __init__(self, traced: _Traced, function: Callable, arguments: Any):
        self.traced, self.function, self.arguments = traced, function, arguments
        self.idle: list[_Plan] = []
        self.idle_recorded: dict[tuple[bool, ...], list[_Plan]] = {}
        held = [array for array, _ in traced.held]
        self._weights: list[Any] = [array for array in held if isinstance(array, Parameter) and array.requires_grad]
        self._others = [array for array in held if not (isinstance(array, Parameter) and array.requires_grad)]
        self._simple = traced.structure is tree.LEAF
        ops = [node.op for node in traced.trace.nodes if node.op is not None]
        self.calls_python = any(op.effect for op in ops)
        self.pure = not (self.calls_python or traced.assigned or any(op.random for op in ops))

    def call(self, leaves: Sequence[Any]) -> Any:
        """Compute; as one application on the tape where somebody wants its gradient."""
        if not MODE.recording:
            return self.run(leaves)
        closed = [array for array in self._others if array._entry is not None]
        if closed:  # somebody differentiates in a tensor that the function has from outside
            self._weights += closed
            self._others = [array for array in self._others if array._entry is None]
            self.idle_recorded = {}
        needs = tuple([each._entry is not None for each in (*leaves, *self._weights)])
        if True not in needs:
            return self.run(leaves)
        if STATE.nested and not self.pure:  # the gradient of its gradient would run it again
            return self.function(*tree.rebuild(self.arguments, iter(leaves)))
        return self.run_recorded(leaves, needs)

    def run(self, leaves: Sequence[Any]) -> Any:
        """Compute, with nothing recorded."""
        try:
            plan = self.idle.pop()
        except IndexError:
            with _MAKING:
                plan = _Plan(self.traced)
        try:
            plan.fill(leaves)
            plan.forward()
            ctx = plan.ctx
            if self._simple:
                return made(plan.outputs[0].copy(), ctx)
            return tree.rebuild(self.traced.structure, iter([made(out.copy(), ctx) for out in plan.outputs]))
        finally:
            self.idle.append(plan)

    def run_recorded(self, leaves: Sequence[Any], needs: tuple[bool, ...]) -> Any:
        """Compute as one application on the tape, which has gradients of those inputs and weights that need one."""
        idle = self.idle_recorded.setdefault(needs, [])
        try:
            plan = idle.pop()
        except IndexError:
            with _MAKING:
                plan = self._second_half(needs)
        run = _Run(self, plan, len(leaves), idle)
        plan.fill(leaves)
        plan.forward()
        every = [*leaves, *self._weights]
        before = {id(array): data.copy() for array, data in plan.copied}
        data = [before.get(id(each), each._data) for each in every]
        for array, value in plan.stored:
            array._data = value.copy()
        outs = [made(out.copy(), plan.ctx) for out in plan.outputs]
        if outs:
            tape.record(_TAPED, run, every, data, outs)
        return tree.rebuild(self.traced.structure, iter(outs))

    def _second_half(self, needs: Sequence[bool]) -> _Plan:
        """The plan with gradients of inputs and weights behind it."""
        traced, trace = self.traced, self.traced.trace
        variables = {id(array): node for array, node in traced.held}
        targets = [*traced.inputs, *[variables[id(weight)] for weight in self._weights]]
        wanted = [(node, 0) for node, need in zip(targets, needs) if need]
        count, specs = len(trace.nodes), len(trace.specs)
        pairs, seeds = [], []
        for entry in traced.heads:
            spec = trace.specs[entry[0]][entry[1]]
            seed = trace.input(trace.unique("arriving"), *spec)
            seeds.append(seed._entry[0])
            pairs.append((trace.wrap(entry), seed))
        found = trace.differentiate(pairs, wanted)
        late = [(at, value._entry) for at, value in enumerate(found) if value is not None]
        places = {wanted[at][0]: place for place, (at, _) in enumerate(late)}
        plan = _Plan(traced, [entry for _, entry in late], seeds)
        plan.places = [places.get(node) for node in targets]
        trace.forget(count, specs)
        return plan

    def gradients(self, run: _Run, arriving: Sequence[Any], ins: Sequence[Any]) -> list[Any]:
        """Gradients of inputs and weights for a run, which is run again when they were asked for already."""
        plan = run.plan
        if run.spent:
            self._run_again(plan, ins[run.count:])
        for slot, g in zip(plan.seeds, arriving):
            slot[...] = g._data
        run.spent = True  # what backward steps took over is gone
        plan.backward()
        return [None if place is None else made(plan.gradients[place].copy(), plan.ctx) for place in plan.places]

    def _run_again(self, plan: _Plan, weights: Sequence[Any]) -> None:
        """The first half with the weights of that run; auxiliary states and assigned parameters stay as they are."""
        old = {id(weight): value._data for weight, value in zip(self._weights, weights)}
        kept = [(data, data.copy(), old[id(array)]) for array, data in plan.holders if id(array) in old]
        try:
            for data, _, before in kept:
                data[...] = before
            plan._run(plan.plan.forward)
        finally:
            for data, now, _ in kept:
                data[...] = now


class _Run:
    """One recorded run of a compiled function; the plan is its own until it is forgotten.

    Attributes
    ----------
    count : int
        Number of inputs, before the weights.
    spent : bool
        Whether the plan no longer holds what gradients need.
    """

    __slots__ = ("compiled", "plan", "count", "spent", "idle")

    def __init__(self, compiled: _Compiled, plan: _Plan, count: int, idle: list[_Plan]):
        self.compiled, self.plan, self.count, self.spent = compiled, plan, count, False
        self.idle = idle  # where the plan goes back to

    def __del__(self) -> None:
        self.idle.append(self.plan)


class _Taped(tape.Taped):
    """The application of a compiled function on the tape."""

    name = "compiled function"

    def visible(self, attrs: Any) -> int:
        return 1 << 30

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> list[Any]:
        arriving = list(g) if isinstance(g, tuple) else [g]
        if MODE.recording:
            return self._again(attrs, arriving, ins)
        return attrs.compiled.gradients(attrs, arriving, ins)

    @staticmethod
    def _again(run: _Run, arriving: list[Any], ins: Any) -> list[Any]:
        """Gradients that can be differentiated again: those of the Python code, on the numbers of that run."""
        variables = [tensor(each) for each in ins]
        compiled, count = run.compiled, run.count
        weights = list(zip(compiled._weights, variables[count:]))
        before = [(array, array._data, array._entry)
                  for array in {id(each): each for each, _ in (*weights, *run.plan.copied)}.values()]
        for array, data in run.plan.copied:
            array._data = data.copy()
        for weight, variable in weights:
            weight._data, weight._entry = variable._data, variable._entry
        try:
            out = compiled.function(*tree.rebuild(compiled.arguments, iter(variables[:count])))
        finally:
            for array, data, entry in before:  # what it assigns was assigned already
                array._data, array._entry = data, entry
        heads = [(head, g) for head, g in zip(tree.tensors(out), arriving) if head._entry is not None]
        wanted = [i for i, variable in enumerate(variables) if variable._entry is not None]
        found = tape.gradients([head for head, _ in heads], [variables[i] for i in wanted], [g for _, g in heads], True,
                               True, None) if heads and wanted else []
        result: list[Any] = [None] * len(variables)
        for i, value in zip(wanted, found):
            result[i] = value
        return result


_TAPED = _Taped()


class Jitted:
    """A function or Cell that is compiled for each kind of inputs it is called with.

    ``function`` is what it was made of. Inside another compiled function it is traced along.
    """

    compiled = True

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function if not hasattr(function, "construct") else function.construct,
                                 updated=())
        self.function = function
        self._cache: dict[Any, _Compiled] = {}
        self._lock = threading.RLock()  # hooks are called by one thread at a time
        watch(self)

    def on_register(self, op: Op) -> None:
        """Compile anew."""
        self._cache.clear()

    def __getattr__(self, name: str) -> Any:
        function = self.__dict__.get("function")
        if function is not None and hasattr(function, "construct"):  # a compiled Cell is asked as the Cell is
            return getattr(function, name)
        raise AttributeError(f"a compiled function has no {name!r}")

    def __deepcopy__(self, memo: Any) -> Jitted:
        return self

    def __reduce__(self) -> Any:
        at: Any = sys.modules.get(self.__module__)
        path = getattr(self, "__qualname__", "")
        for name in path.split("."):
            at = getattr(at, name, None)
        return path if at is self else (jit, (self.function,))  # a decorated function is found by its name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        held = instance.__dict__.setdefault("_methods", {}) if hasattr(instance, "__dict__") else {}
        name = self.function.__name__
        if name not in held:
            held[name] = Jitted(functools.partial(self.function, instance))
            functools.update_wrapper(held[name], self.function, updated=())
        return held[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is not None:
            return self.function(*args, **kwargs)
        key, leaves, arguments, found = self._find(args, kwargs)
        if not found.calls_python:
            return found.call(leaves)
        with self._lock:
            return self._with_python(found, key, args, kwargs, leaves, arguments)

    def _with_python(self, found: _Compiled, key: Any, args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any],
                     arguments: Any) -> Any:
        """Call what calls Python; traced anew when a hook returns something else than it used to."""
        surprises = found.traced.trace.surprises
        try:
            while True:
                try:
                    return found.call(leaves)
                except Surprise as surprise:
                    surprises.learn(surprise)
                    found = self._cache[key] = self._compile(args, kwargs, leaves, arguments, surprises)
        finally:
            surprises.settle()

    def _general(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        given: list[Any] = []
        structure = tree.flatten([list(args), kwargs], given, lambda value: isinstance(value, np.ndarray))
        leaves = [tensor(leaf) for leaf in given]
        key = tree.key_of(structure), *[(leaf._data.shape, leaf._data.dtype) for leaf in leaves]
        return key, leaves, structure

    def _find(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Sequence[Any], Any, _Compiled]:
        """The function compiled for such arguments, its key, and the arguments taken apart."""
        kinds: list[Any] = []
        leaves: Sequence[Any] = args
        arguments: Any = None
        for arg in args:
            if arg.__class__ not in TENSORS or kwargs:
                break
            data = arg._data  # type: ignore[attr-defined]
            kinds += data.shape, data.dtype
        key: Any = tuple(kinds)
        if len(key) != 2 * len(args) or kwargs:
            key, leaves, arguments = self._general(args, kwargs)
        found = self._cache.get(key)
        if found is not None and not found.traced.serves(leaves):
            key = key, leaves[0]._ctx if leaves else current_context(), MODE.training
            found = self._cache.get(key)
        if found is None or (found.traced.epoch != EPOCH[0] and found.traced.stale()):
            found = self._cache[key] = self._compile(args, kwargs, leaves, arguments)
        return key, leaves, arguments, found

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Compile for inputs like these, without running."""
        found = self._find(args, kwargs)[-1]
        if not found.idle:
            found.idle.append(_Plan(found.traced))

    def _compile(self, args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any], arguments: Any,
                 surprises: Surprises | None = None) -> _Compiled:
        if arguments is None:
            arguments = tree.flatten([list(args), {}], [])
        traced = follow(self.function, arguments, [(leaf.shape, leaf._dt) for leaf in leaves],
                        leaves[0]._ctx if leaves else None, surprises)
        return _Compiled(traced, functools.partial(_called, self.function), arguments)

    @property
    def cache_size(self) -> int:
        """For how many kinds of inputs it is compiled."""
        return len(self._cache)

    def explain(self) -> str:
        """Each step of each plan made so far."""
        lines = []
        for key, compiled in self._cache.items():
            for title, plans in (("", compiled.idle), *((" with gradients", plans)
                                                        for plans in compiled.idle_recorded.values())):
                for plan in plans[:1]:
                    lines.append(f"for {key}{title}:")
                    steps = [*plan.plan.forward.steps, *plan.plan.backward.steps]
                    lines += [f"  {number:4} {step!s}" for number, step in enumerate(map(_line, steps))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"


def _line(step: Any) -> str:
    name = "" if step.node is None else f"{step.node.op.name} {step.node.name}: "
    return f"{name}{step.kernel} -> {step.where}"


def _called(function: Callable, arguments: Any, keywords: Any) -> Any:
    return function(*arguments, **keywords)


def follow(function: Callable, arguments: Any, specs: Sequence[tuple[Any, Any]], ctx: Context | None,
           surprises: Surprises | None = None) -> _Traced:
    """Trace a function whose arguments are nested like this, with tensors of these shapes and dtypes."""
    title = getattr(function, "__name__", type(function).__name__)
    trace = Trace(title)
    trace.surprises = surprises or trace.surprises
    names = _names(function, arguments)
    inputs = [trace.input(name, shape, dtype) for name, (shape, dtype) in zip(names, specs)]
    args, kwargs = tree.rebuild(arguments, iter(inputs))
    for owner in _within(function, args):
        trace.visit(owner)
    try:
        with trace, _Neutral(ctx):
            out = function(*args, **kwargs)
    except Exception as error:
        note(error, f"while {title} was compiled")
        raise
    leaves: list[Any] = []
    structure = tree.flatten(out, leaves)
    heads = [trace.read(leaf)._entry for leaf in leaves]
    if ctx is None:
        ctx = next((array._ctx for array, _ in trace.variables.values()), current_context())
    return _Traced(trace, [value._entry[0] for value in inputs], heads, structure, ctx)


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


def _within(function: Any, args: Sequence[Any] = ()) -> list[Any]:
    """Cells that a function has from outside, whose attributes it may read without calling them."""
    if isinstance(function, (functools.partial, types.MethodType)):
        bound = function.args if isinstance(function, functools.partial) else (function.__self__,)
        return _within(function.func if isinstance(function, functools.partial) else function.__func__,
                       (*bound, *args))
    found = list(args)
    for cell in getattr(function, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    code, outside = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    found += [outside[name] for name in code.co_names if name in outside] if code is not None else []
    return [value for value in found if isinstance(value, Holder)]


def _names(function: Callable, arguments: Any) -> list[str]:
    """Names of the tensors among the arguments, from the signature."""
    try:
        target = function.construct if hasattr(function, "construct") else function
        words = [p.name for p in inspect.signature(target).parameters.values()]
    except (TypeError, ValueError):
        words = []
    positional, (_, keys, parts) = arguments[2][0][2], arguments[2][1]
    return [*tree.names(words, positional), *tree.names(keys, parts)]


#: What MindSpore's releases let one say about how a function is compiled; nothing here follows from it.
_OPTIONS = ("capture_mode", "jit_level", "dynamic", "fullgraph", "backend", "compile_once", "exec_order",
            "disable_format_transform", "ge_options", "infer_boost")


def jit(fn: Any = None, mode: str = "", input_signature: Any = None, hash_args: Any = None, jit_config: Any = None,
        **options: Any) -> Any:
    """Compile a function: it is traced once for each kind of inputs, and run as a plan from then on.

    Branches and loops on shapes, dtypes and Python values are followed; on numbers of tensors they cannot be, and an
    error says so and names the line. ``print`` and other effects happen while tracing only; hooks act on every run.

    Parameters
    ----------
    fn : callable
        Of tensors and Python values, nested in tuples, lists and dicts. Cells are compiled with ``cell.compile`` or
        in ``GRAPH_MODE``.

    Returns
    -------
    Jitted
        To be called as the function is.

    Examples
    --------
    >>> from opreg import Tensor
    >>> @jit
    ... def area(width, height):
    ...     return width * height
    >>> area(Tensor(2.0), Tensor(3.0))
    Tensor(shape=[], dtype=Float32, value= 6)
    """
    refuse_keywords("jit", [name for name in options if name not in _OPTIONS],
                    ("mode", "input_signature", "hash_args", "jit_config", *_OPTIONS))
    if fn is None:
        return jit
    if isinstance(fn, Jitted):
        return fn
    if hasattr(fn, "construct"):
        return fn._compiled()
    if not callable(fn):
        raise TypeError(f"jit: expected a function or a Cell, got {type(fn).__name__}")
    return Jitted(fn)


def symbol_of(cell: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Symbol:
    """See ``Cell.to_symbol``."""
    leaves: list[Any] = []
    arguments = [tree.flatten(value, leaves, _is_shape) for value in inputs]
    keywords = tree.flatten(kwargs, leaves, _is_shape)
    specs: list[tuple[Any, Any]] = [(leaf, np.dtype(np.float32)) if _is_shape(leaf) else (leaf.shape, leaf._data.dtype)
                                    for leaf in leaves]
    if not inputs:
        parameters = inspect.signature(cell.construct).parameters.values()
        needed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        arguments, specs = [tree.LEAF] * len(needed), [(None, None)] * len(needed) + specs
    structure = ("list", None, (("list", None, tuple(arguments)), keywords))
    with Recording(None, True):  # an executor says itself in which mode it runs
        traced = follow(cell, structure, specs, None)
    if traced.assigned:
        raise OpError(f"{cell.path}.to_symbol: it assigns {', '.join(_name(a) for a, _ in traced.assigned)}, and a "
                      "Symbol can not change its arguments")
    return Symbol(traced.heads)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(dim) is int for dim in value)


def _name(array: Any) -> str:
    return getattr(array, "name", "a tensor")



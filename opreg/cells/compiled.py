"""Compiled: a traced function bound to memory, which runs as one application on the tape."""

from __future__ import annotations

import contextlib
import operator
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.core import generators
from opreg.core.graph import Entry, Node
from opreg.ndarray import backward_pass, tape
from opreg.ndarray.context import Context
from opreg.ndarray.gradient_target import GradientTarget
from opreg.ndarray.ndarray import NDArray

from ..core.chosen import override
from ..core.locks import rlock
from ..core.mode import MODE, Recording
from ..core.spec import is_floating
from ..core.versions import LATEST, Targets, owner_of, wrote
from ..errors import OpError
from ..typing import Array
from . import tree
from .bailout import LeftToPython, RecordedRun, SignatureChanged, StateChanged
from .bound_trace import BoundTrace
from .former_state import FormerState
from .observer import Observer
from .parameter import Parameter
from .plan_memory import PlanMemories, PlanMemory
from .python_op import Record
from .reads import Reads
from .state import STATE
from .tensor import tensor, tensor_over
from .traced import Traced
from .tree import Structure

__all__ = ["Compiled", "run_in_python"]

_data_of, _entry_of = operator.attrgetter("_data"), operator.attrgetter("_entry")

#: Held while a plan is made: two threads may make plans of one trace.
_MAKING = rlock()


class Compiled:
    """A function compiled for one kind of inputs, and for the values that its Python code reads.

    A plan belongs to one caller while it runs, and as long as its gradient may be needed: threads, a hook that calls
    its own Cell, and calls that wait for their gradients have a plan each.

    Attributes
    ----------
    certain : bool
        Whether no run ends in a bailout.
    pure : bool
        Whether a second run changes nothing: it calls no Python, sends, assigns and draws nothing.
    by_mode : bool
        Whether its gradients are computed in the mode that ``backward`` is given, as those of hybrid blocks are.
    moving : sequence of NDArray
        States that a run changes in place, such as moving statistics of hybrid blocks.
    idle : list of BoundTrace
        Plans that no caller has now.
    idle_recorded : dict of tuple of bool to list of BoundTrace
        Idle plans with gradients, by the inputs and weights that have one.
    apart : bool
        Whether gradients are computed in memory of plans, and never in that of leaves.
    wrap : function
        Makes a result of a raw array and its context.
    """

    by_mode = apart = False
    moving: Sequence[NDArray] = ()

    def __init__(self, traced: Traced, arguments: Structure, memories: PlanMemories, numbers: bool | str = False,
                 gradients_of: Sequence[Parameter] = (), wrap: Callable[[Array, Context], Any] = tensor_over):
        self.traced, self.arguments, self._memories, self._numbers = traced, arguments, memories, numbers
        self._gradients_of, self.wrap = gradients_of, wrap
        self.reads, self.ctx, self.training = traced.reads, traced.ctx, traced.training
        self.idle: list[BoundTrace] = []
        self.idle_recorded: dict[tuple[bool, ...], list[BoundTrace]] = {}
        # The entries of the last recorded run whose inputs were leaves, and what follows from them.
        self._last: tuple[Sequence[tape.TapeEntry | None], tuple[bool, ...], tuple[tape.TapeEntry, ...]] = (), (), ()
        outside = [array for array, _ in traced.captured]
        trained = {id(array) for array in outside if isinstance(array, Parameter) and array.requires_grad}
        self._weights = [array for array in outside if id(array) in trained]
        self._others = [array for array in outside if id(array) not in trained]
        every = traced.places == [None] * len(traced.places)  # whether all results are computed
        self._simple = every and traced.structure is tree.LEAF
        self._listed = every and traced.structure == ("list", None, (tree.LEAF,) * len(traced.places))
        states = traced.trace.moved_states
        self._assigned = [*[array for array, _ in traced.assigned],
                          *[array for array, node in traced.captured if (node, 0) in states]]
        self._in_python = False  # whether the gradient runs the Python code again
        self.certain = not (traced.may_stop or traced.missing_attributes)
        self.pure = not (traced.calls or traced.collective or traced.assigned or traced.random)

    def call(self, function: Callable, leaves: Sequence[NDArray]) -> Any:
        """Run it; if its gradient is requested, as one application on the tape."""
        outside = STATE.outside
        if outside is not None and outside.shares([*self._weights, *self._others], self._assigned):
            return run_in_python(function, *tree.rebuild(self.arguments, iter(leaves)))
        if not MODE.current().recording:
            return self.run(leaves)
        if self._others:
            closed = [array for array in self._others if array._entry is not None]
            if closed:  # the gradient of a captured tensor is requested
                self._weights += closed
                self._others = [array for array in self._others if array._entry is None]
                self.idle_recorded = {}
        entries = list(map(_entry_of, leaves))
        entries += map(_entry_of, self._weights)
        before, needs, taped = self._last
        if entries != before:
            needs = tuple([entry is not None for entry in entries])
            taped = tuple([tape.CONSTANT if entry is None else entry for entry in entries])
            if all(node.op is None for node, _ in taped):  # an entry of an operator would keep its node alive
                self._last = entries, needs, taped
        if True not in needs:
            return self.run(leaves)
        if self._in_python or (STATE.nested and not self.pure):  # a second derivative would run the function again
            return run_in_python(function, *tree.rebuild(self.arguments, iter(leaves)))
        return self.run_recorded(function, leaves, needs, taped)

    def changed(self) -> str | None:
        """The value read by the trace that has changed since, as text."""
        return self.reads.changed()

    def prepare(self) -> None:
        """Make a plan if there is none."""
        if not self.idle:
            with _MAKING:
                plan = self._first_half(self._memories.take())
            plan.free(self.idle)

    def _idle_or_new(self, idle: list[BoundTrace], make: Callable[[PlanMemory], BoundTrace]) -> BoundTrace:
        """An idle plan, or a new one."""
        for plan in tuple(idle):
            if plan.memory.take():
                try:
                    idle.remove(plan)
                except ValueError:  # another thread took this plan first
                    plan.memory.free()
                else:
                    return plan
        with _MAKING:
            memory = self._memories.take()
            try:
                return make(memory)
            except BaseException:
                memory.free()
                raise

    def run(self, leaves: Sequence[NDArray]) -> Any:
        """Run it without recording."""
        idle = self.idle
        try:
            plan = idle.pop()
        except IndexError:
            plan = self._idle_or_new(idle, self._first_half)
        else:
            if not plan.memory.take():  # another call is using this memory
                idle.append(plan)
                plan = self._idle_or_new(idle, self._first_half)
        reserved: Sequence[GradientTarget] = ()
        try:
            if plan.orders:
                plan.wait()
            if plan.gradient_targets:
                taken = plan.take_inputs(leaves)
                if taken is None:
                    return self._run_apart(leaves)
                reserved = taken
                plan.fill_holders()
            else:
                plan.fill(leaves)
            plan.forward()
            if plan.stored:
                for array, value in plan.stored:
                    array._data[...] = value
                    wrote(array._data)
            if self._simple:
                return tensor_over(plan.outputs[0].copy(), plan.ctx)
            wrap, ctx = self.wrap, plan.ctx
            outs = [wrap(out.copy(), ctx) for out in plan.outputs]
            return outs if self._listed else self.traced.results(leaves, outs)
        finally:
            if reserved:
                for target in reserved:
                    target.release()
            if plan.runs:
                plan.runs.clear()
            plan.memory.free()
            idle.append(plan)

    def _run_apart(self, leaves: Sequence[NDArray]) -> Any:
        """Run in other memory, because a caller still uses the last gradients."""
        self._gradients_of, self.idle = (), []
        return self.run(leaves)

    def _first_half(self, memory: PlanMemory) -> BoundTrace:
        return BoundTrace(self.traced, memory, numbers=self._numbers, gradients_of=self._gradients_of)

    def run_recorded(self, function: Callable, leaves: Sequence[NDArray], needs: tuple[bool, ...],
                     entries: tuple[tape.TapeEntry, ...]) -> Any:
        """Run as one application on the tape, with gradients of the inputs and weights that need one."""
        idle = self.idle_recorded.get(needs)
        if idle is None:
            idle = self.idle_recorded.setdefault(needs, [])
        try:
            plan = self._idle_or_new(idle, lambda memory: self._second_half(needs, memory))
        except LeftToPython:  # a bprop reads values of its output gradient, so the backward pass cannot be a graph
            self._in_python = True
            return self.call(function, leaves)
        run = _Run(self, function, plan, len(leaves), needs, idle)
        if plan.orders:
            plan.wait()
        plan.fill(leaves)
        if self.traced.calls or plan.plan.draws:
            with generators.noted_states() as run.drawn:
                plan.forward()
        else:
            plan.forward()
        data = list(map(_data_of, leaves))
        data += map(_data_of, self._weights)
        if plan.copied:
            before = {id(array): value.copy() for array, value in plan.copied}
            data = [before.get(id(array), value) for array, value in zip((*leaves, *self._weights), data)]
        for array, value in plan.stored:
            array._data = value.copy()
        wrap, ctx = self.wrap, plan.ctx
        outs = [wrap(out.copy(), ctx) for out in plan.outputs]
        if outs:
            run.node = weakref.ref(tape.record_entries(
                _TAPED, run, entries, data, outs, run, MODE.__dict__["current"]().recording))
        return outs[0] if self._simple else outs if self._listed else self.traced.results(leaves, outs)

    def targets(self) -> list[Node]:
        """Variables of the inputs, then of the weights."""
        variables = {id(array): node for array, node in self.traced.captured}
        return [*self.traced.inputs, *[variables[id(weight)] for weight in self._weights]]

    def _leaf_gradients(self) -> dict[int, Array]:
        """Arrays of the gradients of weights in which the second half may compute, by the number of the target."""
        if self.apart or not (self.certain and not self.traced.collective and not self.traced.assigned):
            return {}
        gradients: dict[int, Array] = {}
        for at, weight in enumerate(self._weights, len(self.traced.inputs)):
            leaf = None if weight._entry is None else weight._entry[0]
            if not isinstance(leaf, tape.Leaf) or leaf.req != "write" or leaf.grad is None or leaf.grad._sparse:
                continue
            data = leaf.grad._data
            if owner_of(data) is not None and data.flags.c_contiguous and data.dtype == weight._data.dtype:
                gradients[at] = data
        sharing = Counter(id(owner_of(data)) for data in (
            *gradients.values(), *[array._data for array, _ in self.traced.captured]))
        return {at: data for at, data in gradients.items() if sharing[id(owner_of(data))] == 1}

    def _second_half(self, needs: Sequence[bool], memory: PlanMemory, former: FormerState | None = None) -> BoundTrace:
        """The plan of the gradients of inputs and weights, which runs after the first half. ``former`` is the state
        that bprops read before backward hooks changed it."""
        traced, trace = self.traced, self.traced.trace
        targets = self.targets()
        targets_needed = [(node, 0) for node, need in zip(targets, needs) if need]
        count, specs, counts = len(trace.nodes), len(trace.specs), dict(trace.counts)
        pairs, seeds = [], []
        values, updated = trace.values, trace.updated
        trace.values, trace.updated = dict(values), {}
        trace.reads = Reads()  # notes the values that bprops read
        trace.reads.former = former or trace.reads.former
        try:
            for entry in traced.heads:
                spec = trace.specs[entry[0]][entry[1]]
                seed = trace.input(trace.unique("out_grads"), *spec)
                seeds.append(seed._entry[0])
                pairs.append((trace.wrap(entry), seed))
            with trace.reads.former, Observer(trace.reads):
                gradients = trace.differentiate(pairs, targets_needed)
            computed = [(at, value._entry) for at, value in enumerate(gradients) if value is not None]
            places = {targets_needed[at][0]: place for place, (at, _) in enumerate(computed)}
            in_leaves = {at: data for at, data in self._leaf_gradients().items() if targets[at] in places}
            moved = [(array, trace.values[key]._entry) for key, array in trace.updated.items()]
            plan = BoundTrace(traced, memory, [entry for _, entry in (*computed, *moved)], seeds, self._numbers,
                              into={places[targets[at]]: data for at, data in in_leaves.items()})
            plan.moved = [(array, data) for (array, _), data in zip(moved, plan.gradients[len(computed):])]
        finally:
            trace.values, trace.updated = values, updated
            trace.forget(count, specs)
            trace.counts.clear()
            trace.counts.update(counts)  # a second trace gives calls of Python the same places
            late = trace.reads
            late.close()
            traced.reads.join(late)
        plan.places, plan.leaf_gradients = [places.get(node) for node in targets], in_leaves
        plan.reads = late
        plan.results = [in_leaves.get(at) for at in range(len(targets))]
        plan.leaf_targets = Targets(in_leaves.values())
        return plan

    def gradients(self, run: _Run, out_grads: Sequence[Array], ins: Sequence[Array]) -> list[Array | None]:
        """Raw gradients of inputs and weights for a run; the first half runs again if they were computed before."""
        plan, node, this_pass = run.plan, run.node(), backward_pass.PASS
        if plan.orders:
            plan.wait()
        if node is not None and LATEST[0] > node.number:
            plan.check(node)
        leaves: Sequence[Any] = [] if node is None else node.inputs
        if plan.leaf_gradients and (this_pass.last is not node or not plan.computes_in(leaves)):
            plan = self._run_apart_from_leaves(run, ins[run.count:])
        elif plan.reads is not None and plan.reads.outdated() is not None:  # what bprops read has changed
            plan = self._run_traced_again(run, ins[run.count:])
        elif run.spent:
            self._repeat_forward(run, ins[run.count:], plan.runs)
        signatures, former = self.traced.trace.signatures, FormerState()
        running = signatures.reads, signatures.latest, signatures.done, signatures.replay
        signatures.done, signatures.replay = {}, {}
        try:
            while True:
                for slot, g in zip(plan.seeds, out_grads):
                    slot[...] = g
                run.spent = True  # backward steps have reused buffers of the forward pass
                signatures.reads = plan.reads
                try:
                    plan.backward()
                    break
                except (SignatureChanged, StateChanged) as change:
                    if isinstance(change, SignatureChanged):
                        signatures.known[change.place] = change.signature
                    else:
                        signatures.left = str(change)
                    signatures.start_over()
                    assert signatures.latest is not None and plan.reads is not None
                    former.add(signatures.latest, plan.reads.former_values())
                    plan = self._run_traced_again(run, ins[run.count:], former)
        except LeftToPython as error:
            signatures.left = error.reason
            return [None if g is None else g._data for g in _record_gradients(
                run, [tensor_over(g, plan.ctx) for g in out_grads], [tensor_over(value, plan.ctx) for value in ins],
                run.needs, None, True)]
        finally:
            signatures.reads, signatures.latest, signatures.done, signatures.replay = running
        for array, data in plan.moved:
            array._data[...] = data
            wrote(array._data)
        in_leaves = plan.leaf_gradients
        if in_leaves:
            this_pass.targets = plan.leaf_targets
            if len(in_leaves) == len(plan.gradients):
                return plan.results
        inner = [True] * len(plan.places) if node is None else [source.op is not None for source, _ in leaves]
        return [result if place is None or at in in_leaves else for_tape(plan.gradients[place], inner[at])
                for at, (place, result) in enumerate(zip(plan.places, plan.results))]

    def _repeat_forward(self, run: _Run, weights: Sequence[Array], runs: dict[Record, RecordedRun]) -> None:
        """Run the first half again with the weights, the random values and the calls of Python of that run; states and
        assigned parameters are not changed."""
        plan, signatures = run.plan, self.traced.trace.signatures
        replay = {record.place: done for record, done in runs.items() if record.place is not None}
        old = {id(weight): value for weight, value in zip(self._weights, weights)}
        saved = [(data, data.copy(), old[id(array)]) for array, data in plan.holders if id(array) in old]
        try:
            for data, _, before in saved:
                data[...] = before
            with override(signatures, done={}, replay=replay), generators.same_draws(run.drawn):
                plan.run(plan.plan.forward)
        finally:
            for data, now, _ in saved:
                data[...] = now

    def _run_apart_from_leaves(self, run: _Run, weights: Sequence[Array]) -> BoundTrace:
        """Run the first half again in a plan that computes gradients in its own memory, because the gradients of leaves
        have other values, or because this backward pass reads or sums them."""
        self.apart = backward_pass.PASS.last is not run.node()  # otherwise the arrays of the leaves have been replaced
        self.idle_recorded = {}
        idle = self.idle_recorded[run.needs] = []
        with override(self, apart=True):
            plan = self._idle_or_new(idle, lambda memory: self._second_half(run.needs, memory))
        self._run_in(plan, idle, run, weights)
        return plan

    def _run_traced_again(self, run: _Run, weights: Sequence[Array], former: FormerState | None = None) -> BoundTrace:
        """Trace the second half again, because state that bprops read has changed since."""
        self.idle_recorded = {}
        idle = self.idle_recorded[run.needs] = []
        plan = self._idle_or_new(idle, lambda memory: self._second_half(run.needs, memory, former))
        self._run_in(plan, idle, run, weights)
        return plan

    def _run_in(self, plan: BoundTrace, idle: list[BoundTrace], run: _Run, weights: Sequence[Array]) -> None:
        """Let a run have another plan, and run its first half there."""
        before, runs = run.plan, dict(run.plan.runs)
        own = [*plan.slots, *[data for _, data in plan.copied]]
        for data, value in zip(own, [*before.slots, *[value for _, value in before.copied]]):
            data[...] = value
        before.free(run.idle)
        run.plan, run.idle = plan, idle
        self._repeat_forward(run, weights, runs)

    @property
    def plans(self) -> list[tuple[str, BoundTrace]]:
        """One plan of each kind that was made, with its title."""
        plans = [("", self.idle), *[(" with gradients", recorded) for recorded in self.idle_recorded.values()]]
        return [(title, recorded[0]) for title, recorded in plans if recorded]


def for_tape(data: Array, may_keep: bool) -> Array:
    """A gradient that a plan will overwrite, for the tape: a copy if rules of other nodes may hold it, else a read-only
    view, which the tape copies or adds to a gradient of its own."""
    if may_keep or data.__class__ is not np.ndarray:
        return data.copy()
    view = data.view()
    view.setflags(False)  # type: ignore[call-arg]  # NumPy's stub knows keywords only
    return view


class CompiledOnDevice(Compiled):
    """A compiled function that enters its device, where there are several."""

    def call(self, function: Callable, leaves: Sequence[NDArray]) -> Any:
        """Run it on its device; see ``Compiled``."""
        with self.ctx.entered():
            return super().call(function, leaves)

    def run(self, leaves: Sequence[NDArray]) -> Any:
        """Run it without recording, on its device; see ``Compiled``."""
        with self.ctx.entered():
            return super().run(leaves)

    def gradients(self, run: _Run, out_grads: Sequence[Array], ins: Sequence[Array]) -> list[Array | None]:
        """Raw gradients, computed on its device; see ``Compiled``."""
        with self.ctx.entered():
            return super().gradients(run, out_grads, ins)


class _Run:
    """One recorded run of a compiled function; the plan belongs to it until the run is dropped.

    Attributes
    ----------
    function : callable
        The compiled function.
    count : int
        Number of inputs, before the weights.
    needs : tuple of bool
        Whether each input and weight needs a gradient.
    spent : bool
        Whether the plan no longer holds what gradients need.
    is_train : bool
        The mode of its caller.
    drawn : dict
        States of the random generators before the run.
    node : weak reference
        Weak reference to its node on the tape.
    """

    __slots__ = ("compiled", "function", "plan", "count", "needs", "spent", "idle", "is_train", "drawn", "node")

    drawn: generators.States
    node: weakref.ref[tape.TapeNode]

    def __init__(self, compiled: Compiled, function: Callable, plan: BoundTrace, count: int, needs: tuple[bool, ...],
                 idle: list[BoundTrace]):
        self.plan, self.idle = plan, idle  # set first, since ``__del__`` frees the plan
        self.compiled, self.function, self.needs, self.count, self.spent = compiled, function, needs, count, False
        self.is_train = MODE.current().training
        self.drawn = {}

    def back(self, attrs: _Run, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
             needs: tuple[bool, ...], wrap: object) -> list[Array | None] | None:
        """Raw gradients of inputs and weights, by the plan. None if the plan was made for another mode than that of
        this backward pass; `_gradients` then records the Python code."""
        if self.compiled.by_mode and MODE.current().training is not self.is_train:
            return None
        return self.compiled.gradients(self, out_grads, ins)  # type: ignore[arg-type]  # all outputs have gradients

    def __del__(self) -> None:
        self.plan.free(self.idle)


def run_in_python(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function as Python code, without compiling the Cells inside."""
    with override(STATE, inside=True):
        return function(*args, **kwargs)


def _gradients(g: NDArray | tuple[NDArray, ...], ins: Sequence[NDArray], outs: Sequence[NDArray], run: _Run,
               needs: Sequence[bool], is_train: bool = True) -> Sequence[NDArray | None]:
    out_grads, compiled = list(g) if isinstance(g, tuple) else [g], run.compiled
    if MODE.current().recording or (compiled.by_mode and is_train is not run.is_train):
        return _record_gradients(run, out_grads, ins, needs, is_train if compiled.by_mode else None, outs=outs)
    raws = compiled.gradients(run, [g._data for g in out_grads], [array._data for array in ins])
    return [None if data is None else tensor_over(data, run.plan.ctx) for data in raws]


def _record_gradients(run: _Run, out_grads: Sequence[NDArray], ins: Sequence[NDArray], needs: Sequence[bool],
                      is_train: bool | None, changed: bool = False, outs: Sequence[NDArray] = ()
                      ) -> list[NDArray | None]:
    """Gradients from recording the Python code on the inputs of a run: they can be differentiated again, and
    ``is_train`` may differ from the run's. ``changed`` says that hooks change values which the code reads; ``outs`` are
    the results of the run, if they must be the same again.

    Raises
    ------
    OpError
        When another value that the code reads has changed since, and cannot be set back, or when users' code that the
        function calls returns something else.
    """
    variables = [tensor(array) for array in ins]
    compiled, count, again = run.compiled, run.count, bool(MODE.current().recording)
    for variable, need in zip(variables, needs):
        if need and not again:
            variable._entry = tape.Variable(variable), 0
    weights = list(zip(compiled._weights, variables[count:]))
    before = [(array, array._data, array._entry)
              for array in {id(array): array for array, _ in (*weights, *run.plan.copied)}.values()]
    moving = [(array, array._data) for array in compiled.moving]
    for array, data in (*run.plan.copied, *moving):
        array._data = data.copy()
    for weight, variable in weights:
        weight._data, weight._entry = variable._data, variable._entry
    try:
        with (contextlib.nullcontext() if changed else compiled.reads.as_read() as label,
              generators.same_draws(run.drawn), Recording(MODE.current().recording or True, run.is_train)):
            if label is not None:
                raise OpError(f"{_TAPED.name}: a gradient that can be differentiated again, or of another mode, runs "
                              f"the function again, and {label} has changed since the first run. Compute the gradient "
                              f"before the change, or call the function without jit")
            out = run_in_python(run.function, *tree.rebuild(compiled.arguments, iter(variables[:count])))
        results = compiled.traced.computed_leaves(out)
    finally:
        for array, data, entry in before:  # restores the arrays: the run's assignments were stored already
            array._data, array._entry = data, entry
        for array, data in moving:
            array._data[...] = data  # a plan for inference reads the states from their arrays
            array._data = data
    if compiled.traced.trace.calls and not all(map(_alike, results, outs)):
        raise OpError(f"{_TAPED.name}: a gradient that can be differentiated again, or of another mode, runs the "
                      "function again, which gave other results: hooks or users' operators in it change what they "
                      "depend on. Call the function without jit")
    heads = [(head, g) for head, g in zip(results, out_grads) if head._entry is not None]
    places = [i for i, variable in enumerate(variables) if variable._entry is not None]
    gradients = backward_pass.gradients(
        [head for head, _ in heads], [variables[i] for i in places], [g for _, g in heads], True, again, is_train
    ) if heads and places else []
    result: list[NDArray | None] = [None] * len(variables)
    for i, value in zip(places, gradients):
        result[i] = value
    return result


def _alike(value: NDArray, other: NDArray) -> bool:
    """Whether two results are the same but for rounding."""
    now, before = value.asnumpy(), other.asnumpy()
    if not is_floating(before.dtype):
        return np.array_equal(now, before)
    now, before = now.astype(np.float64), before.astype(np.float64)
    size = np.max(np.abs(before), initial=0, where=np.isfinite(before))
    return bool(np.allclose(now, before, 1e-2, 1e-2 * size, equal_nan=True))


def _graph(run: _Run) -> tuple[list[Node], list[Entry]]:
    return run.compiled.targets(), run.compiled.traced.heads


#: The application of a compiled function on the tape: an output that no gradient reaches gets zeros.
_TAPED = tape.TapedFunction("compiled function", _gradients, 1 << 30, graph=_graph)

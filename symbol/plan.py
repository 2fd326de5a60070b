"""Plan: the steps that run a graph, in order. A step is a function without arguments that already holds its arrays."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeAlias
from weakref import WeakSet

from opreg.core import effects, generators, threads
from opreg.core.array_module import TRANSFERS
from opreg.core.graph import Entry, Node, fail
from opreg.core.host_memory import Workspace
from opreg.core.launch import Call, FirstRun, prepare
from opreg.core.locks import rlock
from opreg.core.mode import Recording
from opreg.core.rounding import tf32
from opreg.core.spec import Spec, is_known
from opreg.core.steps import JoinableStep, TieredStep, is_plain
from opreg.core.versions import Targets
from opreg.errors import OpError, note
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import LENT, wrap
from opreg.typing import Array

from .inspect.memory_use import largest
from .passes.memory import Memory, Storage
from .program import Program, nbytes

__all__ = ["Around", "Before", "Function", "Instrument", "Plan", "Segment", "Step", "Watch", "Wrap", "instrument_all"]

#: The work of a step: a function without arguments, which holds its arrays. A ``FirstRun`` returns the functions that
#: later runs call instead.
Function: TypeAlias = Callable[[], object]

#: States before a forward pass: those of the random generators that it drew from, and the auxiliary states that users'
#: code may have written, each as its array, its former values and their device.
Before: TypeAlias = tuple[generators.States, Sequence[tuple[Array, Array, Context]]]

#: The watch of a step: called instead of the step's work with that work as its argument, which it calls once.
Watch: TypeAlias = Callable[[Function], object]


class Step:
    """One node of a plan, with its kernel and the functions to call.

    Attributes
    ----------
    node : Node or None
        None for steps that the executor adds: copies, sums of gradients, auxiliary states, updates.
    kernel : str
        The kernel's name, or ``view`` where nothing runs.
    declined : list of (str, str)
        Kernels of higher rank that declined the node, each with its reason.
    where : str
        The place of the first output in memory, as text.
    run : list of functions
        Called in order.
    outs, ins : list of arrays
        The arrays that it writes and reads.
    ctx : Context
        The device that computes.
    copies : str
        The copies between host and device in its first run, as text.
    title : str
        The name of a step without a node.
    instructions : int
        The number of instructions for all elements, for a step without a node.
    writes : list of arrays
        The caller's arrays among those that it writes: outputs, gradients, weights, states.
    tf32 : bool or None
        Whether products that it computes may round to TF32; None where its device has none.
    """

    __slots__ = ("node", "kernel", "declined", "where", "run", "outs", "ins", "ctx", "copies", "title", "instructions",
                 "writes", "tf32")

    def __init__(self, node: Node | None, kernel: str, declined: list[tuple[str, str]], where: str,
                 run: list[Function], outs: Sequence[Array | None], ctx: Context, ins: Sequence[Array | None] = ()):
        self.node, self.kernel, self.declined, self.where, self.run = node, kernel, declined, where, run
        self.outs, self.ins, self.ctx, self.copies = outs, ins, ctx, ""
        self.title, self.instructions = "", 0
        self.tf32: bool | None = None
        self.writes: list[Array] = [] if node is not None else [out for out in outs if out is not None]


#: A function of the index of a step and the step, which returns its watch, or None for none.
Wrap: TypeAlias = "Callable[[int, Step], Watch | None]"
#: The watch of whole runs: called with the steps and with their joint work, which it calls once.
Around: TypeAlias = Callable[[Sequence[Step], Function], object]


class Instrument(NamedTuple):
    """The watches of a segment's steps and runs. It must not reference the plan, which references it."""

    watches: Mapping[Step, Watch]
    around: Around | None


class Segment:
    """Steps of a plan that run together: those of forward, of backward or of the update.

    ``instrument`` attaches watches. While any is attached, steps run one by one, neither ``plain`` nor ``native``.

    Attributes
    ----------
    steps : list of Step
        In order.
    fresh : bool
        Whether it has not run yet. The first run replaces each ``FirstRun`` by the functions that it returns.
    plain : bool
        Whether all functions are NumPy's or compiled, which read neither the mode nor the current context.
    native : function or None
        All functions as one compiled function, if all are compiled and none divides its work among threads.
    tf32 : bool or None
        The setting ``tf32`` of the steps, which is in effect while they run; None if no step has one.
    """

    __slots__ = ("steps", "fresh", "plain", "native", "tf32", "flat", "_owners", "_tiered", "_joined", "noted",
                 "_instruments", "_ways", "__weakref__")

    def __init__(self, steps: list[Step]):
        self.steps = steps
        self.tf32 = next((step.tf32 for step in steps if step.tf32 is not None), None)
        self.noted: Targets | None = None
        self.fresh, self.plain = True, False
        self.native: Function | None = None
        self.flat: list[Function] = []
        self._owners: list[Step] = []
        self._tiered: list[TieredStep] = []
        self._joined: list[JoinableStep] = []
        self._instruments: list[Instrument] = []  # innermost first
        #: ``plain`` and ``native`` from before the first instrument was attached
        self._ways: tuple[bool, Function | None] = False, None
        with _LOCK:
            _SEGMENTS.add(self)
            for wrap, around in _EVERYWHERE:
                self.instrument(wrap, around, innermost=True)

    def instrument(self, wrap: Wrap, around: Around | None = None, innermost: bool = False) -> Instrument:
        """Attach watches to steps and runs, until ``detach``.

        Parameters
        ----------
        wrap : Wrap
            Gives the watch of each step.
        around : Around, optional
            The watch of each run of all steps.
        innermost : bool
            Whether these watches see the work of a step without other watches around it, as clocks should.

        Returns
        -------
        Instrument
            The argument of ``detach``.
        """
        watches = {step: watch for number, step in enumerate(self.steps)
                   if (watch := wrap(number, step)) is not None}
        instrument = Instrument(watches, around)
        before = self._instruments
        if not before:
            self._ways = self.plain, self.native
        self._instruments = [instrument, *before] if innermost else [*before, instrument]
        self.plain, self.native = False, None
        return instrument

    def detach(self, instrument: Instrument) -> None:
        """Detach an instrument."""
        self._instruments = [attached for attached in self._instruments if attached is not instrument]
        if not self._instruments:
            self.plain, self.native = self._ways

    def _flatten(self) -> None:
        """Put the functions of all steps into one list, in which adjacent compiled functions are joined.

        All lists are computed before an attribute is assigned, so that a segment is complete once it is not ``fresh``.
        """
        functions = [_current_function(function) for step in self.steps for function in step.run]
        owners = [step for step in self.steps for _ in step.run]
        tiered = [function for function in functions if isinstance(function, TieredStep)]
        plain = all(map(is_plain, functions))
        joined: list[JoinableStep] = []
        if any(isinstance(function, JoinableStep) for function in functions):
            functions, owners = _join(functions, owners, joined)
        native = functions[0] if plain and len(functions) == len(joined) == 1 else None
        self.flat, self._owners, self._tiered, self._joined = functions, owners, tiered, joined
        self.native, self.plain, self.fresh = native, plain, False
        self._place()
        if self._instruments:
            self._ways = self.plain, self.native
            self.plain, self.native = False, None

    def _place(self) -> None:
        """Insert a switch of device wherever the next function computes on another one. The runner of the segment
        switches back."""
        if all(owner.ctx.device is None for owner in self._owners):
            return
        ctx: Context | None = None
        placed: list[tuple[Function, Step]] = []
        for function, owner in zip(self.flat, self._owners):
            if owner.ctx is not ctx and (device := owner.ctx.device) is not None:
                placed.append((device.use, owner))
                ctx = owner.ctx
            placed.append((function, owner))
        self.flat, self._owners = [function for function, _ in placed], [owner for _, owner in placed]
        self.native, self.plain = None, False

    def run(self) -> None:
        """Run all steps in order.

        An exception is raised with notes that name the operator, the node and its place in the plan.
        """
        if self.fresh or self._instruments:
            self._run_with_watches()
            return
        steps = iter(self.flat)
        try:
            for step in steps:
                step()
        except Exception as error:
            owner = self._owners[len(self.flat) - steps.__length_hint__() - 1]  # type: ignore[attr-defined]
            self._fail(error, owner, self.steps.index(owner))
        if self._tiered and all(function.made for function in self._tiered):
            self._flatten()

    def _run_with_watches(self) -> None:
        """Run steps one by one with their watches. After the first run, the functions that it returned are put in one
        list."""
        run: Function = self._one_by_one
        for instrument in self._instruments:
            if instrument.around is not None:
                run = functools.partial(instrument.around, self.steps, run)
        run()
        if self.fresh:
            self._flatten()

    def _one_by_one(self) -> None:
        every = [instrument.watches for instrument in self._instruments]
        for number, step in enumerate(self.steps):
            work: Function = (functools.partial(self._first, step) if self.fresh else
                              functools.partial(threads.call_all, step.run))
            for watches in every:
                watch = watches.get(step)
                if watch is not None:
                    work = functools.partial(watch, work)
            try:
                with step.ctx.entered():
                    work()
            except Exception as error:
                self._fail(error, step, number)

    @staticmethod
    def _first(step: Step) -> None:
        """Run a step for the first time, replacing each ``FirstRun`` by the functions that it returns."""
        functions: list[Function] = []
        before = TRANSFERS.to_host, TRANSFERS.from_host
        for function in step.run:
            if isinstance(function, FirstRun):
                functions += function()
            else:
                function()
                functions.append(function)
        step.run = functions
        step.copies = _copies(TRANSFERS.to_host - before[0], TRANSFERS.from_host - before[1])

    @property
    def targets(self) -> Targets:
        """The caller's arrays that steps write. A runner marks them as changed, where changes are watched."""
        if self.noted is None:
            self.noted = Targets({id(array): array for step in self.steps for array in step.writes}.values())
        return self.noted

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the segment itself holds, for its recordings."""
        return 0

    def description(self, step: Step | None = None) -> str:
        """How a step, or the whole segment, is recorded, as text; empty where steps simply run in order."""
        return ""

    def _fail(self, error: Exception, step: Step, number: int) -> NoReturn:
        """Raise the error of a step, with notes that name it."""
        try:
            if step.node is None:
                raise error
            note(error, step.node.describe())
            note(error, f"step {number} of {len(self.steps)}, kernel {step.kernel}")
            fail(error, step.node)
        finally:
            del error  # its traceback references this frame


#: All living segments, and the watches of these and all later ones.
_SEGMENTS: WeakSet[Segment] = WeakSet()
_EVERYWHERE: list[tuple[Wrap, Around]] = []
_LOCK = rlock()


def instrument_all(wrap: Wrap, around: Around) -> Function:
    """Attach watches to the steps of all plans, including later ones; see ``Segment.instrument``.

    Returns a function that detaches them.
    """
    with _LOCK:
        _EVERYWHERE.append((wrap, around))
        for segment in _SEGMENTS:
            segment.instrument(wrap, around, innermost=True)
    return functools.partial(_detach_all, around)


def _detach_all(around: Around) -> None:
    with _LOCK:
        _EVERYWHERE[:] = [rule for rule in _EVERYWHERE if rule[1] is not around]
        for segment in _SEGMENTS:
            for instrument in [instrument for instrument in segment._instruments if instrument.around is around]:
                segment.detach(instrument)


def _copies(to_host: int, from_host: int) -> str:
    """The copies that a first run made, as text. A copy to the host waits for the device."""
    copies = [f"{count} {'copy' if count == 1 else 'copies'} {where} the host" for count, where in
             ((to_host, "to"), (from_host, "from")) if count]
    return f"{'synchronises: ' if to_host else ''}{' and '.join(copies)} in its first run" if copies else ""


def _join(functions: Sequence[Function], owners: Sequence[Step], joined: list[JoinableStep]
          ) -> tuple[list[Function], list[Step]]:
    """The functions, with adjacent compiled ones joined, and the step of each. Joined functions are appended to
    ``joined``."""
    flat: list[Function] = []
    owning: list[Step] = []
    for compiled, row in itertools.groupby(zip(functions, owners), lambda pair: isinstance(pair[0], JoinableStep)):
        run, steps = zip(*row)
        if compiled:
            joined.append(run[0].join(run[1:]))
            run, steps = (joined[-1].run,), steps[:1]
        flat.extend(run)
        owning.extend(steps)
    return flat, owning


def _run_in_mode(is_train: bool, function: Function) -> Function:
    """A function of users' code that runs in another mode than its plan does."""
    inside = Recording(None, is_train)(function)
    if not isinstance(function, FirstRun):
        return inside
    return FirstRun(lambda: [_run_in_mode(is_train, later) for later in inside()])  # type: ignore[attr-defined]  # a list


def _current_function(function: Function) -> Function:
    """The function, or the compiled one that has replaced it."""
    return function.made or function if isinstance(function, TieredStep) else function


def _assign(arrays: Sequence[Array], values: Sequence[Array]) -> None:
    for array, value in zip(arrays, values):
        array[...] = value


class Plan:
    """The steps of a bound graph, in a mode.

    Attributes
    ----------
    forward, backward : Segment
        The steps of the two passes.
    stores : list of functions
        Called after the forward steps: they store new auxiliary states.
    memory : Memory
        The memory of all entries.
    bound : set of int
        Identities of the arrays of the variables that steps read.
    random : set of (str, int)
        Devices whose random generators steps use, as far as operators declare that.
    draws : bool
        Whether steps may draw random numbers: declared ones, users' code, and bodies of loops.
    changed : function or None
        Names a value that users' code read when it was traced, and that has changed since, if there is one. The
        attribute is None where no such value can change.
    """

    def __init__(self, program: Program, split: int, memory: Memory, variables: Mapping[Entry, Array],
                 adds: Mapping[Entry, Array]):
        self.memory, self.specs, self.contexts = memory, program.specs, program.contexts
        self.is_train, self.memo = program.is_train, program.bound.memo
        self.stores: list[Function] = []
        self.changed = program.changed_outside()
        self.random = {(place.backend_name, place.device_id) for node, place in program.contexts.items()
                       if node.op is not None and node.op.traits.random}
        self.draws = any(node.op is not None and effects.draws(node.op, node.attrs) for node in program.nodes)
        self.arrays: dict[Entry, Array] = dict(variables)
        #: Auxiliary states that users' code may write in the forward pass of a plan with a backward pass.
        self._written = [(variables[entry], program.contexts[node])
                         for node in (program.nodes[:split] if split < len(program.nodes) else [])
                         if node.op is not None
                         for entry in [node.inputs[i] for i in effects.changed_states(node.op, node.attrs)]
                         if entry in variables]
        self.bound = {id(array) for array in variables.values()}
        self._adds = adds
        # variables without noted writes; steps add those that they change in place
        self._mutated = {*program.bound.unnoted}
        self._materialised: dict[tuple[Storage, Spec], Array] = {}
        self._take = program.bound.arena
        # Shared by all steps of a context. Kernels hold a workspace rather than the plan, which would be a cycle.
        self._workspaces = {ctx: Workspace(functools.partial(self._take, ctx)) for ctx in {*program.contexts.values()}}
        self._arenas = {ctx: self._arena(ctx, nbytes, program) for ctx, nbytes in memory.arena.items() if nbytes}
        self._movers = {id(state): node for node in program.nodes for state in self._states(node)}
        #: States that several nodes move, with their values so far.
        self._moved: dict[int, tuple[Array, Array, Context]] = {}
        #: States that steps move, in their order, and functions that store the values from then.
        self._moves: tuple[tuple[list[Array], Function], ...] = ()  # a call has those before it
        self._halves = tuple([self._step(node) for node in nodes if node.op is not None]
                             for nodes in (program.nodes[:split], program.nodes[split:]))
        for state, value, ctx in self._moved.values():
            self._store(functools.partial(operator.setitem, state, ..., value), ctx)

    def _arena(self, ctx: Context, size: int, program: Program) -> Array:
        """Memory for intermediate results. If there is too little, the error names the node with the largest result."""
        try:
            return self._take(ctx, size)
        except OpError as error:
            node = max((node for node in program.nodes if node.op is not None),
                       key=lambda node: nbytes(program.specs[node]))
            outs = " and ".join(map(str, program.specs[node]))
            raise type(error)(f"{node.describe()}: {outs} among the intermediate results, {size:,} bytes, of which the "
                              f"largest are {largest(self.memory, program.specs)}: {error}") from None

    def close(self, after_forward: list[Step], after_backward: list[Step],
              segment: Callable[[list[Step]], Segment] = Segment) -> None:
        """Append to both passes the steps that copy results to the caller's arrays, and make segments of them."""
        self.forward = segment(self._halves[0] + after_forward)
        self.backward = segment(self._halves[1] + after_backward)

    def instrument(self, wrap: Callable[[str, int, Step], Watch | None]) -> None:
        """Attach watches for good. The first argument of ``wrap`` is ``forward`` or ``backward``."""
        self.forward.instrument(functools.partial(wrap, "forward"))
        self.backward.instrument(functools.partial(wrap, "backward"))

    def run_and_note_states(self, run: Callable[[], object]) -> Before:
        """Run the forward pass, and return the former states of what it changes."""
        states = [(array, ctx.run(array.copy), ctx) for array, ctx in self._written] if self._written else ()
        with generators.noted_states() as drawn:
            for place in self.random:
                generators.before_draw(*place)
            run()
        return drawn, states

    # ----------------------------------------------------------------------------------------------- arrays

    def array(self, entry: Entry) -> Array | None:
        """The array of an entry, made at first use; None for an entry that nothing reads."""
        array = self.arrays.get(entry)
        if array is None:
            storage = self.memory.storage.get(entry)
            if storage is None:
                return None
            source = self.memory.view_of.get(entry)
            if source is not None:
                self._views(entry[0], source)
                return self.arrays[entry]
            array = self.arrays[entry] = self._materialise(entry, storage)
        return array

    def _views(self, node: Node, source: Entry) -> None:
        shapes = [spec.shape for spec in self.specs[node]]
        xp = self.contexts[node].xp
        viewed = self.array(source)
        assert node.op is not None and viewed is not None
        view = node.op.rules.as_view(viewed, node.attrs, shapes, xp)
        for i, part in enumerate(view if isinstance(view, (tuple, list)) else [view]):
            self.arrays[node, i] = part

    def _materialise(self, entry: Entry, storage: Storage) -> Array:
        if storage.pinned is not None:
            return storage.pinned
        spec = self.specs[entry[0]][entry[1]]
        assert is_known(spec.shape) and spec.dtype is not None
        # Entries with the same memory, shape and dtype share one array object. Given two objects over the same memory,
        # a ufunc would first examine how they overlap, which can take as long as its work.
        key = storage, spec
        if key not in self._materialised:
            nbytes = storage.nbytes if all(spec.shape) else 0
            arena = self._arenas[storage.ctx]
            self._materialised[key] = arena[storage.offset:storage.offset + nbytes].view(spec.dtype).reshape(spec.shape)
        return self._materialised[key]

    # ------------------------------------------------------------------------------------------------ steps

    def _step(self, node: Node) -> Step:
        with self.contexts[node].entered():
            return self._prepared_step(node)

    def _prepared_step(self, node: Node) -> Step:
        op, attrs, ctx = node.op, node.attrs, self.contexts[node]
        assert op is not None
        entries = [(node, i) for i in range(len(self.specs[node]))]
        outs = [self.array(entry) for entry in entries]
        if entries and entries[0] in self.memory.view_of:
            return Step(node, "view", [], self._place(entries[0]), [], outs, ctx)
        reqs = ["null" if out is None else "write" for out in outs]
        for i, entry in enumerate(entries):
            if entry in self._adds:
                outs[i], reqs[i] = self._adds[entry], "add"
        ins = [self.array(entry) for entry in node.inputs]
        for i in op.traits.unread:  # kernels read only its shape, and its memory may be in use by others
            if i < len(ins) and ins[i] is None:
                source, index = node.inputs[i]
                ins[i] = ctx.xp.broadcast_to(ctx.xp.zeros((), self.specs[source][index].dtype),
                                             self.specs[source][index].shape)
        states = self._states(node)
        for state, i in zip(states, op.traits.states):
            if id(state) in self._moved:
                ins[len(op.signature.arguments(attrs)) + i] = self._moved[id(state)][1]
        rng = generators.generator(ctx.backend_name, ctx.device_id) if op.traits.random else None
        call = Call(op, attrs, ins, outs, reqs, ctx.xp, ctx, node.in_training(self.is_train), rng, self.specs[node],
                    self._workspaces[ctx].array, wrap, self.memo)
        call.variables = [i for i, (source, _) in enumerate(node.inputs)
                          if source.op is None and source not in self._mutated
                          and ins[i] is self.arrays.get((source, 0))]
        call.moves = self._moves
        self._mutated.update(node.inputs[i][0] for i in op.traits.mutates if i < len(node.inputs))
        ready = prepare(call)
        # whether a later node changes these states, too
        passed = any(self._movers[id(state)] is not node for state in states)
        values = [ctx.xp.empty_like(state) for state in states] if passed else states
        try:
            run, store = ready.steps(values)
        except Exception as error:
            fail(error, node, self.specs[node])
        if effects.opaque(op) and call.is_train is not self.is_train:
            run = [_run_in_mode(call.is_train, function) for function in run]
        writes = [array for entry, array in zip(entries, outs) if array is not None and self._is_callers(entry)]
        writes += [array for i, array in enumerate(ins) if i in op.traits.mutates and array is not None]
        if store is not None:
            if passed:
                run = [*run, store]
                self._moved.update((id(state), (state, value, ctx)) for state, value in zip(states, values))
                self._moves += (states, functools.partial(_assign, states, values)),
            else:
                self._moves += (states, store),
                self._store(store, ctx)
                for state in states:
                    self._moved.pop(id(state), None)
            writes += states
        if not all(getattr(array.flags, "writeable", True) for array in writes):  # CuPy's flags lack it
            fail(OpError(LENT), node)
        place = self._place(entries[0]) if entries else ""
        step = Step(node, ready.kernel.name, ready.declined, place, run, outs, ctx, ins)
        step.writes = writes
        if ctx.backend_name != "cpu":  # a single device is never entered: it has no ``ctx.device``
            step.tf32 = tf32()
        return step

    def _is_callers(self, entry: Entry) -> bool:
        """Whether an entry is computed in place in an array of the caller."""
        storage = self.memory.storage.get(entry)
        return entry in self._adds or (storage is not None and storage.pinned is not None)

    def _store(self, store: Function, ctx: Context) -> None:
        """Call a function that stores states after the forward steps."""
        self.stores.append(store if ctx.device is None else functools.partial(ctx.run, store))

    def _states(self, node: Node) -> list[Array]:
        """The bound arrays of the states that a node moves in this mode."""
        op = node.op
        if op is None or not op.traits.states or not node.in_training(self.is_train):
            return []
        first = len(op.signature.arguments(node.attrs))
        return [self.arrays[node.inputs[first + state]] for state in op.traits.states]  # bound variables

    def _place(self, entry: Entry) -> str:
        storage = self.memory.storage.get(entry)
        if storage is None:
            return "unread"
        if storage.pinned is not None:
            place = "bound array"
        else:
            place = f"{storage.ctx} arena +{storage.offset}, {storage.nbytes} bytes"
        if entry in self.memory.view_of:
            return f"view of {self.memory.view_of[entry][0].name}, {place}"
        if entry in self.memory.inplace:
            return f"in place of {self.memory.inplace[entry][0].name}, {place}"
        return place

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside bound arrays, outputs and gradients: arenas, temporaries and recordings."""
        temporaries = sum(workspace.nbytes for workspace in self._workspaces.values())
        return sum(self.memory.arena.values()) + temporaries + self.forward.nbytes + self.backward.nbytes

"""Plan: a graph made flat. A list of steps, each a function without arguments that already holds its arrays."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeAlias
from weakref import WeakSet

from opreg.core import effects, generators
from opreg.core.array_module import TRANSFERS
from opreg.core.graph import Entry, Node, fail
from opreg.core.host_memory import Workspace
from opreg.core.launch import Call, FirstRun, prepare
from opreg.core.locks import rlock
from opreg.core.mode import Recording
from opreg.core.spec import Spec, known
from opreg.core.steps import JoinableStep, TieredStep, is_plain
from opreg.core.versions import Targets
from opreg.errors import OpError, note
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import wrap
from opreg.typing import Array

from .inspect.memory_use import largest
from .passes.memory import Memory, Storage
from .program import Program, nbytes

__all__ = ["Around", "Function", "Instrument", "Plan", "Segment", "Step", "Watch", "Wrap", "instrument_all"]

#: The work of a step, a function without arguments: it holds its arrays. A first run that is watched returns what
#: takes its place.
Function: TypeAlias = Callable[[], object]

#: The watch of a step: called in place of its work, which it is given and calls once.
Watch: TypeAlias = Callable[[Function], object]


class Step:
    """One node in a plan: its kernel, why others declined, its functions.

    Attributes
    ----------
    node : Node or None
        None for what the executor adds: storing gradients that are summed or copied, auxiliary states, updates.
    kernel : str
        The kernel's name, or ``view`` where nothing runs.
    declined : list of (str, str)
        Kernels that would have come first, and why they did not.
    where : str
        Where its first output lives.
    run : list of functions
        Called in order.
    outs, ins : list of arrays
        What it computes, and what a node's step reads.
    ctx : Context
        Where it computes.
    copies : str
        What its first run has copied between the host and a device, in words.
    title : str
        What it is called where there is no node.
    instructions : int
        Those of its expression, for all elements, where there is no node.
    writes : list of arrays
        Those of the caller that it writes: outputs, gradients, weights, states.
    """

    __slots__ = ("node", "kernel", "declined", "where", "run", "outs", "ins", "ctx", "copies", "title", "instructions",
                 "writes")

    def __init__(self, node: Node | None, kernel: str, declined: list[tuple[str, str]], where: str,
                 run: list[Function], outs: Sequence[Array | None], ctx: Context, ins: Sequence[Array | None] = ()):
        self.node, self.kernel, self.declined, self.where, self.run = node, kernel, declined, where, run
        self.outs, self.ins, self.ctx, self.copies = outs, ins, ctx, ""
        self.title, self.instructions = "", 0
        self.writes: list[Array] = [] if node is not None else [out for out in outs if out is not None]


#: A function that is asked once for each step, by its number, for its watch; None for none.
Wrap: TypeAlias = "Callable[[int, Step], Watch | None]"
#: The watch of whole runs: called with the steps and with their work, which it calls once.
Around: TypeAlias = Callable[[Sequence[Step], Function], object]


class Instrument(NamedTuple):
    """A watcher of the steps and runs of a segment. It holds no plan, which holds it."""

    watches: Mapping[Step, Watch]
    around: Around | None


class Segment:
    """A stretch of a plan that runs as one: the forward, the backward or the update steps.

    All that watches steps is attached by ``instrument``. While anything is, they run one by one, and there is no
    ``plain`` or ``native`` way.

    Attributes
    ----------
    steps : list of Step
        In order.
    fresh : bool
        Whether it has not run yet: first runs are watched.
    plain : bool
        Whether its functions are NumPy's own and compiled ones alone, which know nothing of modes and contexts.
    native : function or None
        All of its functions as one, where all are compiled and share no work among threads.
    """

    __slots__ = ("steps", "fresh", "plain", "native", "flat", "_owners", "_tiered", "_joined", "noted", "_instruments",
                 "_ways", "__weakref__")

    def __init__(self, steps: list[Step]):
        self.steps = steps
        self.noted: Targets | None = None
        self.fresh, self.plain = True, False
        self.native: Function | None = None
        self.flat: list[Function] = []
        self._owners: list[Step] = []
        self._tiered: list[TieredStep] = []
        self._joined: list[JoinableStep] = []
        self._instruments: list[Instrument] = []  # from the innermost
        self._ways: tuple[bool, Function | None] = False, None  # ``plain`` and ``native`` where nothing is attached
        with _LOCK:
            _SEGMENTS.add(self)
            for wrap, around in _EVERYWHERE:
                self.instrument(wrap, around, innermost=True)

    def instrument(self, wrap: Wrap, around: Around | None = None, innermost: bool = False) -> Instrument:
        """Attach what watches the steps, until ``take_off``.

        Parameters
        ----------
        wrap : Wrap
            What watches each step.
        around : Around, optional
            What watches each run of all.
        innermost : bool
            Whether it sees a step's own work alone, and not that of what else is attached; as clocks do.

        Returns
        -------
        Instrument
            What ``take_off`` is given.
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

    def take_off(self, instrument: Instrument) -> None:
        """Take off what was attached."""
        self._instruments = [each for each in self._instruments if each is not instrument]
        if not self._instruments:
            self.plain, self.native = self._ways

    def _flatten(self) -> None:
        """Put the steps' functions in one list, compiled ones that follow each other as one.

        Everything is made aside first: who sees the segment flat sees all of it.
        """
        functions = [_now(function) for step in self.steps for function in step.run]
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
        """Enter the device of each segment where it changes; the runner of the segment comes back to the one before."""
        if all(owner.ctx.device is None for owner in self._owners):
            return
        here: Context | None = None
        placed: list[tuple[Function, Step]] = []
        for function, owner in zip(self.flat, self._owners):
            if owner.ctx is not here and (device := owner.ctx.device) is not None:
                placed.append((device.use, owner))
                here = owner.ctx
            placed.append((function, owner))
        self.flat, self._owners = [function for function, _ in placed], [owner for _, owner in placed]
        self.native, self.plain = None, False

    def run(self) -> None:
        """Run all steps in order.

        An exception leaves as itself, with notes that name the operator, the node and its place in the plan.
        """
        if self.fresh or self._instruments:
            self._run_watched()
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

    def _run_watched(self) -> None:
        """Run as it is watched, or the first time, when what comes of watched first runs takes their place."""
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
            work: Function = functools.partial(self._first if self.fresh else _work, step)
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
        """The work of a step that runs for the first time."""
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
        """Arrays of callers that are written: whoever runs it notes that, where somebody asks. ``noted``, once they are
        known."""
        if self.noted is None:
            self.noted = Targets({id(array): array for step in self.steps for array in step.writes}.values())
        return self.noted

    @property
    def nbytes(self) -> int:
        """Bytes that it holds beside its steps."""
        return 0

    def said(self, step: Step | None = None) -> str:
        """How a step runs, or all of it, where there is more to say than that steps run in order."""
        return ""

    def _fail(self, error: Exception, step: Step, number: int) -> NoReturn:
        """Raise what came out of a step."""
        try:
            if step.node is None:
                raise error
            note(error, step.node.describe())
            note(error, f"step {number} of {len(self.steps)}, kernel {step.kernel}")
            fail(error, step.node)
        finally:
            del error  # its traceback keeps this frame


#: All segments that there are, and what watches all that there are and will be.
_SEGMENTS: WeakSet[Segment] = WeakSet()
_EVERYWHERE: list[tuple[Wrap, Around]] = []
_LOCK = rlock()


def instrument_all(wrap: Wrap, around: Around) -> Function:
    """Attach what watches the steps of all plans, of those too that are made from now on; see ``Segment.instrument``.

    The function that is returned takes it off again.
    """
    with _LOCK:
        _EVERYWHERE.append((wrap, around))
        for segment in _SEGMENTS:
            segment.instrument(wrap, around, innermost=True)
    return functools.partial(_take_off_all, around)


def _take_off_all(around: Around) -> None:
    with _LOCK:
        _EVERYWHERE[:] = [each for each in _EVERYWHERE if each[1] is not around]
        for segment in _SEGMENTS:
            for each in [each for each in segment._instruments if each.around is around]:
                segment.take_off(each)


def _work(step: Step) -> None:
    for function in step.run:
        function()


def _copies(to_host: int, from_host: int) -> str:
    """Copies that a first run made, in words. A copy to the host waits for the device."""
    found = [f"{count} {'copy' if count == 1 else 'copies'} {where} the host" for count, where in
             ((to_host, "to"), (from_host, "from")) if count]
    return f"{'synchronises: ' if to_host else ''}{' and '.join(found)} in its first run" if found else ""


def _join(functions: Sequence[Function], owners: Sequence[Step], joined: list[JoinableStep]
          ) -> tuple[list[Function], list[Step]]:
    """Functions with the steps they are of, compiled ones that follow each other as one, which ``joined`` keeps."""
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


def _in_mode(is_train: bool, function: Function) -> Function:
    """A function of users' code that runs in another mode than its plan does."""
    inside = Recording(None, is_train)(function)
    if not isinstance(function, FirstRun):
        return inside
    return FirstRun(lambda: [_in_mode(is_train, later) for later in inside()])  # type: ignore[attr-defined]  # a list


def _now(function: Function) -> Function:
    """The function, or what has taken its place."""
    return function.made or function if isinstance(function, TieredStep) else function


class Plan:
    """Steps of a graph bound to arrays.

    Attributes
    ----------
    forward, backward : Segment
        What runs.
    stores : list of functions
        Run after the forward steps: new auxiliary states take their places.
    memory : Memory
        Where entries live.
    bound : set of int
        Identities of the arrays of variables that take part.
    random : set of (str, int)
        Devices whose generators its steps draw from, as far as that is known before.
    draws : bool
        Whether there are any, or steps that draw by themselves: users' code, and what loops have in their bodies.
    changed : function or None
        Says what has changed that users' code read while it was traced for these steps; None where nothing has.
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
        self.bound = {id(array) for array in variables.values()}
        self._adds = adds
        self._mutated = {*program.bound.unnoted}  # and variables that steps change in place
        self._materialised: dict[tuple[Storage, Spec], Array] = {}
        self._take = program.bound.arena
        # Shared by all steps of a context. Objects that hold one hold no plan, which holds them.
        self._workspaces = {ctx: Workspace(functools.partial(self._take, ctx)) for ctx in {*program.contexts.values()}}
        self._arenas = {ctx: self._arena(ctx, nbytes, program) for ctx, nbytes in memory.arena.items() if nbytes}
        self._halves = tuple([self._step(node) for node in nodes if node.op is not None]
                             for nodes in (program.nodes[:split], program.nodes[split:]))

    def _arena(self, ctx: Context, size: int, program: Program) -> Array:
        """Memory for the results between, or an error that names the node of the largest."""
        try:
            return self._take(ctx, size)
        except OpError as error:
            node = max((node for node in program.nodes if node.op is not None),
                       key=lambda node: nbytes(program.specs[node]))
            outs = " and ".join(map(str, program.specs[node]))
            raise type(error)(f"{node.describe()}: {outs} among the results between, {size:,} bytes, of which the "
                              f"largest are {largest(self.memory, program.specs)}: {error}") from None

    def close(self, after_forward: list[Step], after_backward: list[Step],
              segment: Callable[[list[Step]], Segment] = Segment) -> None:
        """Add the steps that bring results to where callers read them, at the ends of the two halves, and make segments
        of these."""
        self.forward = segment(self._halves[0] + after_forward)
        self.backward = segment(self._halves[1] + after_backward)

    def instrument(self, wrap: Callable[[str, int, Step], Watch | None]) -> None:
        """Attach what watches the steps for good; ``wrap`` is told the half, ``forward`` or ``backward``, too."""
        self.forward.instrument(functools.partial(wrap, "forward"))
        self.backward.instrument(functools.partial(wrap, "backward"))

    def noting(self, run: Callable[[], object]) -> generators.States:
        """Run a half; where the generators stood that it drew from."""
        with generators.noting() as drawn:
            for place in self.random:
                generators.drawing(*place)
            run()
        return drawn

    # ----------------------------------------------------------------------------------------------- arrays

    def array(self, entry: Entry) -> Array | None:
        """The array of an entry, made at first use; None when nobody reads it."""
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
        assert known(spec.shape) and spec.dtype is not None
        # Entries that take over each other's memory share one array object: of two objects over the same memory
        # a ufunc first has to find out that they overlap harmlessly, which takes as long as it does.
        key = storage, spec
        if key not in self._materialised:
            nbytes = storage.nbytes if all(spec.shape) else 0
            arena = self._arenas[storage.ctx]
            self._materialised[key] = arena[storage.offset:storage.offset + nbytes].view(spec.dtype).reshape(spec.shape)
        return self._materialised[key]

    # ------------------------------------------------------------------------------------------------ steps

    def _step(self, node: Node) -> Step:
        with self.contexts[node].entered():
            return self._made(node)

    def _made(self, node: Node) -> Step:
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
        for i in op.traits.unread:  # only its shape matters, and its memory may be gone
            if i < len(ins) and ins[i] is None:
                source, index = node.inputs[i]
                ins[i] = ctx.xp.broadcast_to(ctx.xp.zeros((), self.specs[source][index].dtype),
                                             self.specs[source][index].shape)
        rng = generators.generator(ctx.backend_name, ctx.device_id) if op.traits.random else None
        call = Call(op, attrs, ins, outs, reqs, ctx.xp, ctx, node.in_training(self.is_train), rng, self.specs[node],
                    self._workspaces[ctx].array, wrap, self.memo)
        call.variables = [i for i, (source, _) in enumerate(node.inputs)
                          if source.op is None and source not in self._mutated]
        self._mutated.update(node.inputs[i][0] for i in op.traits.mutates if i < len(node.inputs))
        ready = prepare(call)
        try:
            run, store = ready.steps(self._states(node) if call.is_train else ())
        except Exception as error:
            fail(error, node, self.specs[node])
        if effects.opaque(op) and call.is_train is not self.is_train:
            run = [_in_mode(call.is_train, function) for function in run]
        writes = [array for entry, array in zip(entries, outs) if array is not None and self._is_callers(entry)]
        writes += [array for i, array in enumerate(ins) if i in op.traits.mutates and array is not None]
        if store is not None:
            self.stores.append(store if ctx.device is None else functools.partial(ctx.run, store))
            writes += self._states(node)
        place = self._place(entries[0]) if entries else ""
        step = Step(node, ready.kernel.name, ready.declined, place, run, outs, ctx, ins)
        step.writes = writes
        return step

    def _is_callers(self, entry: Entry) -> bool:
        """Whether an entry is computed straight into an array of the caller's."""
        storage = self.memory.storage.get(entry)
        return entry in self._adds or (storage is not None and storage.pinned is not None)

    def _states(self, node: Node) -> list[Array]:
        op = node.op
        assert op is not None
        first = len(op.signature.arguments(node.attrs))
        return [self.arrays[node.inputs[first + state]] for state in op.traits.states]  # variables: theirs are there

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
        """Bytes held beside bound arrays, outputs and gradients: arenas and temporaries."""
        temporaries = sum(workspace.nbytes for workspace in self._workspaces.values())
        return sum(self.memory.arena.values()) + temporaries + self.forward.nbytes + self.backward.nbytes

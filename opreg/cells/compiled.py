"""Compiled: what a function was traced to, bound to memory and run; on the tape as one application."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.core import generators
from opreg.ndarray import tape
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.finite import inherited
from opreg.ndarray.landing import Landing
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.needed import lost
from opreg.symbol.compile import compile_program
from opreg.symbol.inspect.finite import check_numbers
from opreg.symbol.plan import Segment
from opreg.symbol.program import Bound, Program

from ..core.gradient import CUT
from ..core.graph import Entry, Graph, Node
from ..core.locks import rlock
from ..core.mode import MODE, Recording, inside, quiet
from ..core.spec import known
from ..core.versions import LATEST, WATCHED, Targets, written, wrote
from ..errors import OpError
from ..typing import Array
from . import tree
from .observer import Observer
from .parameter import Parameter
from .plan_memory import Room, Rooms
from .python_op import Kept, Record
from .reads import Reads
from .state import STATE
from .tensor import Tensor, made, tensor
from .trace import LeftToPython
from .traced import Traced
from .tree import Structure

__all__ = ["Compiled", "run_in_python"]

#: Held while a plan is made: two threads may make plans of one trace.
_MAKING = rlock()


class _Plan:
    """A traced function bound to memory and flattened.

    Parameters
    ----------
    traced : Traced
        The function.
    room : Room
        Where it computes; it is taken while it runs, and as long as its results are needed.
    late : list of Entry
        Gradients, computed by a second half.
    seeds : list of Node
        Variables of the gradients that arrive.
    numbers : bool or "debug"
        Whether steps look at what they make.
    gradients_of : sequence of Parameter
        Whose gradients the inputs are, in this order, to be computed where this reads them.
    """

    def __init__(self, traced: Traced, room: Room, late: Sequence[Entry] = (), seeds: Sequence[Node] = (),
                 numbers: bool | str = False, gradients_of: Sequence[Parameter] = ()):
        trace = traced.trace
        self.room, ctx = room, traced.ctx
        self.ctx = ctx
        stretches, specs = room.stretches(), trace.specs

        def empty(entry: Entry) -> Array:
            spec = specs[entry[0]][entry[1]]
            if spec.shape is None or not known(spec.shape):
                raise OpError("a compiled function needs shapes that follow from those of its inputs: one operator's "
                              "depends on numbers")
            return stretches.array(ctx, spec)

        private = bool(late)  # a parameter that is assigned is still read, as it was, by the second half
        aside = private or bool(traced.steps) or traced.calls  # and a run that is given up must not have changed it
        assigned = {id(array) for array, _ in traced.assigned}
        arrays: dict[Node, Array] = {}
        contexts: dict[Node, Context] = {}
        self.holders: list[tuple[NDArray, Array]] = []  # arrays whose memory the plan reads
        self.copied: list[tuple[NDArray, Array]] = []  # those it reads a copy of
        for array, node in trace.variables.values():  # those that a bprop reads among them
            contexts[node] = array._ctx
            if private and id(array) in assigned:
                arrays[node] = array._data.copy()
                self.copied.append((array, arrays[node]))
            else:
                arrays[node] = array._data
                self.holders.append((array, array._data))
        self.landings = _landings(traced, gradients_of, arrays)
        for node in (*traced.inputs, *seeds):
            if node not in arrays:
                arrays[node] = empty((node, 0))
            contexts[node] = ctx
        self.slots = [arrays[node] for node in traced.inputs]
        self.seeds = [arrays[node] for node in seeds]
        last = traced.last if late else []  # without a second half nothing can come into it
        heads = [*traced.heads, *[entry for _, entry in traced.assigned], *last]
        variables = [node for node in specs if node.op is None and node in arrays]
        graph = Graph(heads, [*variables, *trace.nodes])
        self.outputs = [empty(entry) for entry in traced.heads]
        self.stored: list[tuple[NDArray, Array]] = []  # what assigned arrays become when a run is over
        targets = []
        for array, entry in traced.assigned:
            targets.append(empty(entry) if aside else array._data)
            if aside:
                self.stored.append((array, targets[-1]))
        targets += [empty(entry) for entry in last]
        self.gradients = [empty(entry) for entry in late]
        bound = Bound(graph, dict(specs), ctx, {}, arrays, contexts, {}, outputs=[*self.outputs, *targets],
                      arena=stretches.take)
        program = Program.of(bound, True)
        program.heads = [*program.heads, *late]
        program.destinations = [(array, "write") for array in self.gradients]
        with inherited(numbers):
            self.plan = compile_program(program)
        self.orders = room.orders(set(self.plan.contexts.values()))
        if numbers:
            check_numbers(self.plan, numbers)
        self.quiet = not traced.calls
        self.targets = self._targets()
        self.kept: dict[Record, Kept] = {}  # what calls of Python keep for their gradients
        self.places: list[int | None] = []  # which of the gradients each input and weight has
        self.moved: list[tuple[NDArray, Array]] = []  # states that the second half changes, and what they become

    def wait(self) -> None:
        """Let the current streams wait for those of the run before in this room."""
        for order in self.orders:
            order()

    def land(self, leaves: Sequence[Tensor]) -> list[Landing] | None:
        """Bring inputs that do not lie where the plan reads them there; None where somebody has what lies there.

        Places that were written to are returned: they are to be released when the plan has run.
        """
        reserved: list[Landing] = []
        for slot, leaf, landing in zip(self.slots, leaves, self.landings):
            if landing is None:
                slot[...] = leaf._data
            elif not landing.holds(leaf._data):
                if landing.reserve() is None:
                    for other in reserved:
                        other.release()
                    return None
                reserved.append(landing)
                slot[...] = leaf._data
        return reserved

    def fill(self, leaves: Sequence[Tensor]) -> None:
        """Bring inputs, and parameters that moved to other memory, to where the plan reads them."""
        slots, at = self.slots, 0
        for leaf in leaves:
            slots[at][...] = leaf._data
            at += 1  # noqa: SIM113 (to begin with ``zip`` or ``enumerate`` takes as long as to copy a few numbers)
        self.fill_holders()

    def fill_holders(self) -> None:
        """Bring parameters that moved to other memory to where the plan reads them."""
        if self.holders:
            for array, data in self.holders:
                if array._data is not data:
                    data[...] = array._data
                    array._data = data
                    wrote(data)
        if self.copied:
            for array, data in self.copied:
                data[...] = array._data

    def forward(self) -> None:
        """Run the first half."""
        plan = self.plan
        for place in plan.random:
            generators.drawing(*place)
        half = plan.forward
        if half.native is not None:
            half.native()
        elif half.plain:
            try:
                MODE.__dict__["now"]().run(half.run)
            except RuntimeError as error:
                if not inside(error):
                    raise
                half.run()
        else:
            self.run(half)
        for store in plan.stores:
            store()
        if WATCHED and self.targets is not None:
            self.targets.wrote()
        if CUT.lost:  # it has gradients of its own
            CUT.tell(out.dtype for out in self.outputs)

    def _targets(self) -> Targets | None:
        """The tensors from outside that are written: those that are assigned, and states; None where none is."""
        outside = {id(data) for _, data in self.holders}
        written = {id(array): array for step in self.plan.forward.steps for array in step.writes
                   if id(array) in outside}
        return Targets(written.values()) if written else None

    def check(self, node: tape.TapeNode) -> None:
        """Refuse to go back where the second half reads tensors from outside that were written since.

        Raises
        ------
        OpError
            Naming the tensor, where the function was called, and where the tensor was written.
        """
        changed = [(array, data, write) for array, data in self.holders if (write := written(data, node.number))]
        if not changed:
            return
        read = [data for step in self.plan.backward.steps for i, data in enumerate(step.ins)
                if data is not None and not (step.node is not None and step.node.op is not None
                                             and i in step.node.op.traits.unread)]
        for array, data, write in changed:
            if any(array._ctx.xp.may_share_memory(data, each) for each in read):
                name = f"Parameter {array.name}" if isinstance(array, Parameter) else "tensor from outside"
                raise OpError(lost(node.describe(), name, data, write))

    def backward(self) -> None:
        """Run the second half."""
        self.run(self.plan.backward)

    def run(self, segment: Segment) -> None:
        """Run one of the halves."""
        if segment.plain:
            quiet(segment.run)
            return
        thread = MODE.__dict__
        # Steps that compute as in inference say so themselves.
        token, tracer = thread["set"](thread["now"]().recorded(False, True)), thread["tracer"]
        thread["tracer"] = None
        trace, STATE.trace = STATE.trace, None
        kept, STATE.kept = STATE.kept, self.kept
        try:
            if self.quiet and not segment.fresh and current_context() is self.ctx:
                quiet(segment.run)
                return
            with self.ctx, np.errstate(all="ignore"):
                segment.run()
        finally:
            thread["reset"](token)
            thread["tracer"] = tracer
            STATE.trace, STATE.kept = trace, kept

    def free(self, idle: list[_Plan]) -> None:
        """Give the memory back; what was kept of Python's is not needed again."""
        if self.kept:
            self.kept.clear()
        self.room.free()
        idle.append(self)


def _landings(traced: Traced, parameters: Sequence[Parameter], arrays: dict[Node, Array]
              ) -> Sequence[Landing | None]:
    """Memory of their own for inputs that are gradients of parameters, which learn where it is; empty if none has."""
    found: list[Landing | None] = []
    specs = traced.trace.specs
    if len(parameters) != len(traced.inputs) or traced.ctx.xp is not np:
        return found
    for parameter, node in zip(parameters, traced.inputs):
        spec, landing = specs[node][0], None
        if Landing.fits(spec) and spec.shape == parameter.shape:
            arrays[node], landing = Landing.of(spec)
            parameter._landing = landing
        found.append(landing)
    return found if any(found) else []


class Compiled:
    """A function compiled for inputs of one kind, and for the numbers it asks for.

    A plan is one caller's while it runs, and while its gradient may be asked for: threads, a hook that calls what it
    hangs on, and calls that wait for their gradients each have their own.

    Attributes
    ----------
    certain : bool
        Whether a run is never given up.
    pure : bool
        Whether running it twice is running it once: nothing is called, sent, assigned or drawn.
    idle : list of _Plan
        Plans nobody has now.
    idle_recorded : dict of tuple of bool to list of _Plan
        Those with gradients, by which inputs and weights have one.
    """

    def __init__(self, traced: Traced, arguments: Structure, rooms: Rooms, numbers: bool | str = False,
                 gradients_of: Sequence[Parameter] = ()):
        self.traced, self.arguments, self._rooms, self._numbers = traced, arguments, rooms, numbers
        self._gradients_of = gradients_of
        self.reads, self.ctx, self.training = traced.reads, traced.ctx, traced.training
        self.idle: list[_Plan] = []
        self.idle_recorded: dict[tuple[bool, ...], list[_Plan]] = {}
        outside = [array for array, _ in traced.captured]
        trained = {id(array) for array in outside if isinstance(array, Parameter) and array.requires_grad}
        self._weights = [array for array in outside if id(array) in trained]
        self._others = [array for array in outside if id(array) not in trained]
        self._simple = traced.structure is tree.LEAF
        self._in_python = False  # whether its gradient is that of the Python code
        self.certain = not (traced.calls or traced.steps)
        self.pure = not (traced.calls or traced.collective or traced.assigned or traced.random)

    def call(self, function: Callable, leaves: Sequence[Tensor]) -> Any:
        """Compute; as one application on the tape where somebody wants its gradient."""
        if not MODE.now().recording:
            return self.run(leaves)
        closed = [array for array in self._others if array._entry is not None]
        if closed:  # somebody differentiates in a tensor that the function has from outside
            self._weights += closed
            self._others = [array for array in self._others if array._entry is None]
            self.idle_recorded = {}
        needs = tuple([array._entry is not None for array in (*leaves, *self._weights)])
        if True not in needs:
            return self.run(leaves)
        if self._in_python or (STATE.nested and not self.pure):  # the gradient of its gradient would run it again
            return run_in_python(function, *tree.rebuild(self.arguments, iter(leaves)))
        return self.run_recorded(function, leaves, needs)

    def changed(self) -> str | None:
        """The thing that has changed since, in words."""
        return self.reads.changed()

    def prepare(self) -> None:
        """Make a plan, if there is none."""
        if not self.idle:
            with _MAKING:
                plan = self._first_half(self._rooms.take())
            plan.free(self.idle)

    def _another(self, idle: list[_Plan], make: Callable[[Room], _Plan]) -> _Plan:
        """A plan for one run, when it is not the first that is idle."""
        for plan in tuple(idle):
            if plan.room.take():
                try:
                    idle.remove(plan)
                except ValueError:  # another thread has taken it meanwhile
                    plan.room.free()
                else:
                    return plan
        with _MAKING:
            room = self._rooms.take()
            try:
                return make(room)
            except BaseException:
                room.free()
                raise

    def run(self, leaves: Sequence[Tensor]) -> Any:
        """Compute, with nothing recorded."""
        idle = self.idle
        try:
            plan = idle.pop()
        except IndexError:
            plan = self._another(idle, self._first_half)
        else:
            if not plan.room.take():  # another runs there
                idle.append(plan)
                plan = self._another(idle, self._first_half)
        reserved: Sequence[Landing] = ()
        try:
            if plan.orders:
                plan.wait()
            if plan.landings:
                landed = plan.land(leaves)
                if landed is None:
                    return self._run_apart(leaves)
                reserved = landed
                plan.fill_holders()
            else:
                plan.fill(leaves)
            plan.forward()
            if plan.stored:
                for array, value in plan.stored:
                    array._data[...] = value
                    wrote(array._data)
            if self._simple:
                return made(plan.outputs[0].copy(), plan.ctx)
            ctx = plan.ctx
            return tree.rebuild(self.traced.structure, iter([made(out.copy(), ctx) for out in plan.outputs]))
        finally:
            if reserved:
                for landing in reserved:
                    landing.release()
            if plan.kept:
                plan.kept.clear()
            plan.room.free()
            idle.append(plan)

    def _run_apart(self, leaves: Sequence[Tensor]) -> Any:
        """Run in other memory: somebody keeps gradients for longer than until the next are there."""
        self._gradients_of, self.idle = (), []
        return self.run(leaves)

    def _first_half(self, room: Room) -> _Plan:
        return _Plan(self.traced, room, numbers=self._numbers, gradients_of=self._gradients_of)

    def run_recorded(self, function: Callable, leaves: Sequence[Tensor], needs: tuple[bool, ...]) -> Any:
        """Compute as one application on the tape, which has gradients of those inputs and weights that need one."""
        idle = self.idle_recorded.setdefault(needs, [])
        try:
            plan = self._another(idle, lambda room: self._second_half(needs, room))
        except LeftToPython:  # a bprop asks for the numbers of what arrives
            self._in_python = True
            return self.call(function, leaves)
        run = _Run(self, function, plan, len(leaves), idle)
        plan.wait()
        plan.fill(leaves)
        with generators.noting() as run.drawn:
            plan.forward()
        every = [*leaves, *self._weights]
        before = {id(array): data.copy() for array, data in plan.copied}
        data = [before.get(id(array), array._data) for array in every]
        for array, value in plan.stored:
            array._data = value.copy()
        outs = [made(out.copy(), plan.ctx) for out in plan.outputs]
        if outs:
            tape.record(_TAPED, run, every, data, outs, None, MODE.now().recording)
            run.node = weakref.ref(outs[0]._entry[0])
        return tree.rebuild(self.traced.structure, iter(outs))

    def _second_half(self, needs: Sequence[bool], room: Room) -> _Plan:
        """The plan with gradients of inputs and weights behind it."""
        traced, trace = self.traced, self.traced.trace
        variables = {id(array): node for array, node in traced.captured}
        targets = [*traced.inputs, *[variables[id(weight)] for weight in self._weights]]
        wanted = [(node, 0) for node, need in zip(targets, needs) if need]
        count, specs = len(trace.nodes), len(trace.specs)
        pairs, seeds = [], []
        values, updated = trace.values, trace.updated
        trace.values, trace.updated = dict(values), dict(updated)
        trace.reads = Reads()  # of bprops
        try:
            for entry in traced.heads:
                spec = trace.specs[entry[0]][entry[1]]
                seed = trace.input(trace.unique("arriving"), *spec)
                seeds.append(seed._entry[0])
                pairs.append((trace.wrap(entry), seed))
            with Observer(trace.reads):
                gradients = trace.differentiate(pairs, wanted)
            computed = [(at, value._entry) for at, value in enumerate(gradients) if value is not None]
            places = {wanted[at][0]: place for place, (at, _) in enumerate(computed)}
            moved = [(array, trace.values[key]._entry) for key, array in trace.updated.items()
                     if trace.values[key] is not values.get(key)]
            plan = _Plan(traced, room, [entry for _, entry in (*computed, *moved)], seeds, self._numbers)
            plan.moved = [(array, data) for (array, _), data in zip(moved, plan.gradients[len(computed):])]
        finally:
            trace.values, trace.updated = values, updated
            trace.forget(count, specs)
            trace.reads.close()
            traced.reads.join(trace.reads)
        plan.places = [places.get(node) for node in targets]
        return plan

    def gradients(self, run: _Run, arriving: Sequence[NDArray], ins: Sequence[NDArray]) -> list[Tensor | None]:
        """Gradients of inputs and weights for a run, which is run again when they were asked for already."""
        plan, node = run.plan, run.node()
        plan.wait()
        if node is not None and LATEST[0] > node.number:
            plan.check(node)
        if run.spent:
            self._run_again(run, ins[run.count:])
        for slot, g in zip(plan.seeds, arriving):
            slot[...] = g._data
        run.spent = True  # what backward steps took over is gone
        plan.backward()
        for array, data in plan.moved:
            array._data[...] = data
            wrote(array._data)
        return [None if place is None else made(plan.gradients[place].copy(), plan.ctx) for place in plan.places]

    def _run_again(self, run: _Run, weights: Sequence[NDArray]) -> None:
        """The first half with the weights and random numbers of that run; states and assigned parameters stay as they
        are."""
        plan = run.plan
        old = {id(weight): value._data for weight, value in zip(self._weights, weights)}
        kept = [(data, data.copy(), old[id(array)]) for array, data in plan.holders if id(array) in old]
        try:
            for data, _, before in kept:
                data[...] = before
            with generators.again(run.drawn):
                plan.run(plan.plan.forward)
        finally:
            for data, now, _ in kept:
                data[...] = now

    @property
    def plans(self) -> list[tuple[str, _Plan]]:
        """One plan of each sort that was made, with its title."""
        plans = [("", self.idle), *[(" with gradients", recorded) for recorded in self.idle_recorded.values()]]
        return [(title, recorded[0]) for title, recorded in plans if recorded]


class CompiledOnDevice(Compiled):
    """One that enters its device, where there are several."""

    def call(self, function: Callable, leaves: Sequence[Tensor]) -> Any:
        """The same, there."""
        with self.ctx.entered():
            return super().call(function, leaves)

    def run(self, leaves: Sequence[Tensor]) -> Any:
        """The same, there."""
        with self.ctx.entered():
            return super().run(leaves)

    def gradients(self, run: _Run, arriving: Sequence[NDArray], ins: Sequence[NDArray]) -> list[Tensor | None]:
        """The same, there."""
        with self.ctx.entered():
            return super().gradients(run, arriving, ins)


class _Run:
    """One recorded run of a compiled function; the plan is its own until it is forgotten.

    Attributes
    ----------
    function : callable
        What was compiled.
    count : int
        Number of inputs, before the weights.
    spent : bool
        Whether the plan no longer holds what gradients need.
    training : bool
        The mode of its caller.
    drawn : dict
        Where random generators stood before it drew from them.
    node : weak reference
        To its node on the tape.
    """

    __slots__ = ("compiled", "function", "plan", "count", "spent", "idle", "training", "drawn", "node")

    drawn: generators.States
    node: weakref.ref[tape.TapeNode]

    def __init__(self, compiled: Compiled, function: Callable, plan: _Plan, count: int, idle: list[_Plan]):
        self.compiled, self.function, self.plan = compiled, function, plan
        self.count, self.spent, self.idle, self.training = count, False, idle, MODE.now().training

    def __del__(self) -> None:
        self.plan.free(self.idle)


def run_in_python(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function as the Python code it is, also where Cells are compiled when they are called."""
    inside, STATE.inside = STATE.inside, True
    try:
        return function(*args, **kwargs)
    finally:
        STATE.inside = inside


def _gradients(g: NDArray | tuple[NDArray, ...], ins: Sequence[NDArray], outs: Sequence[NDArray], run: _Run,
               needs: Sequence[bool], is_train: bool = True) -> Sequence[NDArray | None]:
    arriving = list(g) if isinstance(g, tuple) else [g]
    return _recorded(run, arriving, ins) if MODE.now().recording else run.compiled.gradients(run, arriving, ins)


def _recorded(run: _Run, arriving: Sequence[NDArray], ins: Sequence[NDArray]) -> list[NDArray | None]:
    """Gradients that can be differentiated again: those of the Python code, on the numbers of that run.

    Raises
    ------
    OpError
        When something else that the code reads is no longer as it was.
    """
    variables = [tensor(array) for array in ins]
    compiled, count = run.compiled, run.count
    changed = compiled.changed()
    if changed is not None:
        raise OpError(f"{_TAPED.name}: a gradient that can be differentiated again runs its code again, and {changed} "
                      "has changed since it ran. Ask for the gradient before, or call the function without jit")
    weights = list(zip(compiled._weights, variables[count:]))
    before = [(array, array._data, array._entry)
              for array in {id(array): array for array, _ in (*weights, *run.plan.copied)}.values()]
    for array, data in run.plan.copied:
        array._data = data.copy()
    for weight, variable in weights:
        weight._data, weight._entry = variable._data, variable._entry
    try:
        with generators.again(run.drawn), Recording(None, run.training):
            out = run_in_python(run.function, *tree.rebuild(compiled.arguments, iter(variables[:count])))
        results = [leaf for leaf, kept in zip(tree.tensors(out), compiled.traced.kept) if not kept]
    finally:
        for array, data, entry in before:  # what it assigns was assigned already
            array._data, array._entry = data, entry
    heads = [(head, g) for head, g in zip(results, arriving) if head._entry is not None]
    wanted = [i for i, variable in enumerate(variables) if variable._entry is not None]
    gradients = tape.gradients([head for head, _ in heads], [variables[i] for i in wanted], [g for _, g in heads], True,
                           True, None) if heads and wanted else []
    result: list[NDArray | None] = [None] * len(variables)
    for i, value in zip(wanted, gradients):
        result[i] = value
    return result


#: The application of a compiled function on the tape: outputs that no gradient reaches have zeros.
_TAPED = tape.Taped("compiled function", _gradients, 1 << 30)

"""Bound traces: a traced function bound to memory as a plan, which one caller runs at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any

import numpy as np

from opreg.core import generators
from opreg.ndarray.context import current_context
from opreg.ndarray.finite import inherit_choice
from opreg.ndarray.gradient_target import GradientTarget
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.overwritten import overwritten_error
from opreg.symbol.compile import compile_program
from opreg.symbol.inspect.finite import check_numbers
from opreg.symbol.plan import Segment
from opreg.symbol.program import Bound, Program

from ..core.effects import may_run_python
from ..core.gradient import CUT
from ..core.graph import Entry, Graph, Node
from ..core.launch import ANEW
from ..core.mode import MODE, is_already_entered, quiet
from ..core.spec import is_known
from ..core.versions import WATCHED, Targets, written, wrote
from ..errors import OpError
from ..ndarray import tape
from ..typing import Array
from .bailout import RecordedRun
from .captures import Outside
from .parameter import Parameter
from .plan_memory import PlanMemory
from .python_op import PYTHON, Record
from .reads import Reads
from .state import STATE
from .traced import Traced
from .variables import as_variables

__all__ = ["BoundTrace"]

_gradient_of = attrgetter("grad._data")


class BoundTrace:
    """A traced function bound to memory as a plan.

    Parameters
    ----------
    traced : Traced
        The function.
    memory : PlanMemory
        The memory of the plan, which no other run uses while this one runs and while its results are needed.
    late : list of Entry
        Gradients, which the second half of the plan computes.
    seeds : list of Node
        Variables of the output gradients.
    numbers : bool or "debug"
        Whether each step checks its results for NaN and infinities.
    into : dict of int to array
        Arrays of the caller for some of the gradients, by their number.
    gradients_of : sequence of Parameter
        Parameters whose gradients the inputs are, in this order; the gradients are computed into this plan's memory.
    """

    def __init__(self, traced: Traced, memory: PlanMemory, late: Sequence[Entry] = (), seeds: Sequence[Node] = (),
                 numbers: bool | str = False, gradients_of: Sequence[Parameter] = (),
                 into: Mapping[int, Array] = MappingProxyType({})):
        trace = traced.trace
        self.memory, ctx = memory, traced.ctx
        self.ctx = ctx
        divided, specs = memory.divide(), trace.specs

        def empty(entry: Entry) -> Array:
            spec = specs[entry[0]][entry[1]]
            if spec.shape is None or not is_known(spec.shape):
                raise OpError("a compiled function needs shapes that follow from those of its inputs: but the output "
                              "shape of an operator depends on values")
            return divided.array(ctx, spec)

        private = bool(late)  # an assigned parameter's old value is still read by the second half
        temporary = private or traced.may_stop  # a run that stops early must not have changed it
        self.holders: list[tuple[NDArray, Array]] = []  # arrays whose memory the plan reads
        self.copied: list[tuple[NDArray, Array]] = []  # arrays that the plan reads a copy of
        arrays = self._arrays_from_outside(traced, private)
        contexts = {node: array._ctx for array, node in trace.variables.values()}
        self.gradient_targets = _gradient_targets(traced, gradients_of, arrays)
        for node in (*traced.inputs, *seeds):
            if node not in arrays:
                arrays[node] = empty((node, 0))
            contexts[node] = ctx
        self.slots = [arrays[node] for node in traced.inputs]
        self.seeds = [arrays[node] for node in seeds]
        last = traced.last if late else []  # calls and other side effects stay in the first half
        heads = [*traced.heads, *[entry for _, entry in traced.assigned], *last]
        variables = [node for node in specs if node.op is None and node in arrays]
        graph = Graph(heads, [*variables, *trace.nodes])
        self.outputs = [empty(entry) for entry in traced.heads]
        self.stored: list[tuple[NDArray, Array]] = []  # values assigned at the end of a run
        targets = []
        for array, entry in traced.assigned:
            targets.append(empty(entry) if temporary else array._data)
            if temporary:
                self.stored.append((array, targets[-1]))
        targets += [empty(entry) for entry in last]
        self.gradients = [into[at] if at in into else empty(entry) for at, entry in enumerate(late)]
        bound = Bound(graph, dict(specs), ctx, {}, arrays, contexts, {}, outputs=[*self.outputs, *targets],
                      memo={ANEW: True}, arena=divided.take, unnoted={*traced.inputs, *seeds})
        program = Program.of(bound, private or traced.trains)
        program.outside = None  # the function itself notes the values that bodies read
        program.heads = [*program.heads, *late]
        program.destinations = [(array, "write") for array in self.gradients]
        with inherit_choice(numbers):
            self.plan = compile_program(program)
        self.orders = memory.orders(set(self.plan.contexts.values()))
        if numbers:
            check_numbers(self.plan, numbers)
        # Users' code reads and sets the context variables of its caller.
        self.calls = any(node.op is PYTHON for node in trace.nodes)
        self.quiet = not self.calls and not any(
            node.op is not None and may_run_python(node.op) for node in trace.nodes)
        self.differentiates = trace.differentiates
        self.followed = any(node.op is PYTHON and node.attrs["record"].followed for node in trace.nodes)
        self.outside = [array for array, _ in trace.variables.values()]
        self.trained = [array for array, _ in traced.captured if isinstance(array, Parameter) and array._requires_grad]
        self.targets = self._targets()
        self.reads: Reads | None = None  # those of the second half
        self.runs: dict[Record, RecordedRun] = {}  # results that Python calls store for their gradients
        self.places: list[int | None] = []  # position of each input's and weight's gradient
        # gradients that are in memory of leaves, by the number of the input or weight
        self.leaf_gradients: dict[int, Array] = {}
        self.results: list[Array | None] = []  # the gradients by position; None for an input or weight without one
        self._entries: Sequence[tape.TapeEntry] = ()  # the entries of the leaves in the last backward pass
        self._leaves: list[tape.Leaf] = []  # the leaves whose memory holds the gradients
        self.leaf_targets = Targets(())  # all of them
        # states that the second half changes, and arrays of their new values
        self.moved: list[tuple[NDArray, Array]] = []

    def _arrays_from_outside(self, traced: Traced, private: bool) -> dict[Node, Array]:
        """Memory of arrays from outside, also of those that a bprop reads; copies of assigned ones if they are
        private."""
        assigned = {id(array) for array, _ in traced.assigned} if private else ()
        found = {}
        for array, node in traced.trace.variables.values():
            copied = id(array) in assigned
            found[node] = array._data.copy() if copied else array._data
            (self.copied if copied else self.holders).append((array, found[node]))
        return found

    def wait(self) -> None:
        """Make the current streams wait for the previous run in this memory."""
        for order in self.orders:
            order()

    def take_inputs(self, leaves: Sequence[NDArray]) -> list[GradientTarget] | None:
        """Copy inputs to the memory that the plan reads. Returns the gradient targets that were written to, which must
        be released after the run; None if one of them is in use."""
        reserved: list[GradientTarget] = []
        for slot, leaf, target in zip(self.slots, leaves, self.gradient_targets):
            if target is None:
                slot[...] = leaf._data
            elif not target.holds(leaf._data):
                if target.reserve() is None:
                    for other in reserved:
                        other.release()
                    return None
                reserved.append(target)
                slot[...] = leaf._data
        return reserved

    def fill(self, leaves: Sequence[NDArray]) -> None:
        """Copy inputs, and parameters whose memory has moved, to the memory that the plan reads."""
        slots, at = self.slots, 0
        for leaf in leaves:
            slots[at][...] = leaf._data
            at += 1  # noqa: SIM113 (starting ``zip`` or ``enumerate`` takes as long as copying a few elements)
        self.fill_holders()

    def fill_holders(self) -> None:
        """Copy parameters whose memory has moved to the memory that the plan reads."""
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
            generators.before_draw(*place)
        half = plan.forward
        if half.native is not None:
            half.native()
        elif half.plain:
            try:
                MODE.__dict__["current"]().run(half.run)
            except RuntimeError as error:
                if not is_already_entered(error):
                    raise
                half.run()
        else:
            self.run(half)
        for store in plan.stores:
            store()
        if WATCHED and self.targets is not None:
            self.targets.wrote()
        if CUT.lost:  # it has gradients of its own
            CUT.warn(out.dtype for out in self.outputs)

    def _targets(self) -> Targets | None:
        """Tensors from outside that a run writes to: assigned ones and states; None without any."""
        outside = {id(data) for _, data in self.holders}
        written = {id(array): array for step in self.plan.forward.steps for array in step.writes
                   if id(array) in outside}
        return Targets(written.values()) if written else None

    def check(self, node: tape.TapeNode) -> None:
        """Refuse to run the second half if a tensor that it reads was written to since.

        Raises
        ------
        OpError
            The error names the tensor, the call of the function, and the write.
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
                raise OpError(overwritten_error(node.describe(), name, data, write))

    def computes_in(self, entries: Sequence[tape.TapeEntry]) -> bool:
        """Whether the inputs and weights with these entries are leaves that still store their gradients in the memory
        in which the second half computes them."""
        leaves: Sequence[Any] = self._leaves
        if entries != self._entries:
            leaves = [entries[at][0] for at in self.leaf_gradients]
            if not all(leaf.__class__ is tape.Leaf and leaf.req == "write" for leaf in leaves):
                return False
            if all(node.op is None for node, _ in entries):  # an entry of an operator would keep its node alive
                self._entries, self._leaves = entries, leaves
        return all(map(is_, map(_gradient_of, leaves), self.leaf_gradients.values()))

    def backward(self) -> None:
        """Run the second half."""
        self.run(self.plan.backward)

    def run(self, segment: Segment) -> None:
        """Run one of the halves."""
        if segment.plain:
            quiet(segment.run)
            return
        thread = MODE.__dict__
        mode, tracer = thread["current"](), thread["tracer"]
        trace, observer, runs, around = STATE.trace, STATE.observer, STATE.runs, STATE.outside
        try:
            # In a plan for training, steps that compute as in inference set the mode themselves.
            thread["set"](mode.recorded(False, self.plan.is_train))
            thread["tracer"] = STATE.trace = STATE.observer = STATE.outside = None
            STATE.runs = self.runs
            if self.quiet and not segment.fresh and current_context() is self.ctx:
                quiet(segment.run)
                return
            with self.ctx, np.errstate(all="ignore"):
                if not self.calls:
                    segment.run()
                    return
                followed = (self.followed and segment is self.plan.forward
                            and bool(mode.recording or self.differentiates))
                with as_variables(self.trained if followed else ()):
                    outside = STATE.outside = Outside.of(followed, self.outside, STATE.weights)
                    try:
                        segment.run()
                    except BaseException:
                        outside.put_back()
                        raise
        finally:
            thread["tracer"] = tracer
            STATE.trace, STATE.observer, STATE.runs, STATE.outside = trace, observer, runs, around
            thread["set"](mode)

    def free(self, idle: list[BoundTrace]) -> None:
        """Release the memory; results that Python calls stored are dropped."""
        if self.runs:
            self.runs.clear()
        self.memory.free()
        idle.append(self)


def _gradient_targets(traced: Traced, parameters: Sequence[Parameter], arrays: dict[Node, Array]
              ) -> Sequence[GradientTarget | None]:
    """Memory for inputs that are gradients of parameters, so that backward computes them there; empty without any."""
    targets: list[GradientTarget | None] = []
    specs = traced.trace.specs
    if len(parameters) != len(traced.inputs) or traced.ctx.xp is not np:
        return targets
    for parameter, node in zip(parameters, traced.inputs):
        spec, target = specs[node][0], None
        if GradientTarget.fits(spec) and spec.shape == parameter.shape:
            arrays[node], target = GradientTarget.of(spec)
            parameter._gradient_target = target
        targets.append(target)
    return targets if any(targets) else []

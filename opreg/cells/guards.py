"""Guards: checks of values that Python reads while a function is compiled, in branches, loops, ``int()`` or
``asnumpy()``.

The value is computed at once, from the part of the graph that it depends on, and Python continues with it. The graph
gets a guard, a step that compares the value in each run. If it differs, the run stops and starts over in the variant
that was traced for the new value, or that is traced now. Shapes that depend on values, with ``infer_from_data``, are
guarded in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from opreg.core import generators
from opreg.core.op import shapes_from_data
from opreg.ndarray.eager import run
from opreg.ndarray.ndarray import wrap

from ..core.attrs import AS_GIVEN
from ..core.graph import Entry, Node, fail
from ..core.launch import Call
from ..core.mode import Recording
from ..core.op import Op
from ..core.spec import Shape
from ..errors import Where, user_line
from ..typing import Array
from .bailout import ReadChanged
from .state import untraced

if TYPE_CHECKING:
    from opreg.ndarray.context import Context

    from .tensor import Tensor
    from .trace import FunctionTracer

#: The value that Python reads, or the shapes that a trace reads.
Answer: TypeAlias = float | np.generic | np.ndarray | tuple[Shape, ...]

#: The result of compiling a function.
V = TypeVar("V")

__all__ = ["GUARD", "TENSOR_READS", "Fork", "TensorRead", "Measure", "TraceValues", "Path", "NotComputable",
           "Variants", "calls", "effects", "up_to"]


class TensorRead(NamedTuple):
    """A way to read a tensor's values.

    Attributes
    ----------
    title : str
        Its name in messages.
    of : function
        Gives Python the value of a tensor.
    again : function
        Gives the value of an array on the host, in a later run.
    """

    title: str
    of: Callable[[Tensor], Answer]
    again: Callable[[np.ndarray], Answer]

    def finder(self, step: Call) -> Callable[[], Answer]:
        """A function that reads the value again in a run."""
        data, read = step.ins[0], self.again
        if isinstance(data, np.ndarray):
            return lambda: read(data)
        host = step.ctx.backend.to_numpy
        return lambda: read(host(data))


class Measure(NamedTuple):
    """A query for the shapes of an operator's outputs, which depend on the values of its inputs.

    Attributes
    ----------
    op : Op
        The operator.
    """

    op: Op

    @staticmethod
    def of(node: Node, arrays: Sequence[Array], ctx: Context) -> tuple[Shape, ...]:
        """The shapes that the operator's rule computes from raw arrays."""
        op, training = node.op, node.in_training(True)
        assert op is not None
        call = Call(op, node.attrs, list(arrays), [], [], ctx.xp, ctx, training, wrap=wrap)
        with Recording(False, training), untraced(), ctx, ctx.entered():
            try:
                return tuple(shapes_from_data(op, call))
            except Exception as error:
                fail(error, node)

    def finder(self, step: Call) -> Callable[[], Answer]:
        """A function that computes the shapes again in a run."""
        node = step.attrs["node"]
        return lambda: self.of(node, step.ins[:len(node.inputs)], step.ctx)


#: Ways in which Python reads a tensor.
TENSOR_READS = {look.title: look for look in (
    TensorRead("bool()", bool, lambda data: bool(data.item())), TensorRead("int()", int, lambda data: int(data.item())),
    TensorRead("float()", float, lambda data: float(data.item())),
    TensorRead("an index", lambda value: value.__index__(), lambda data: data.item()),
    TensorRead("item()", lambda value: value.item(), lambda data: data.item()),
    TensorRead("asscalar()", lambda value: value.asscalar(), lambda data: data.reshape(-1)[0]),
    TensorRead("asnumpy()", lambda value: np.array(value.asnumpy()), np.array))}


def _key(answer: Answer) -> Hashable:
    """A key of a value; equal keys mean that Python does the same with both values."""
    if isinstance(answer, np.ndarray):
        return answer.shape, answer.dtype, answer.tobytes()
    return answer.__class__, answer if answer.__class__ in (bool, int) else repr(answer)


class Fork:
    """A place in the program where a value is read.

    Attributes
    ----------
    where : Where or None
        The line of user code.
    look : TensorRead or Measure
        How the value is read.
    answers : dict
        Values by key.
    branches : dict
        By key, the next fork, or the number of the variant if no further value is read.
    latest
        The key of the last value.
    """

    __slots__ = ("where", "look", "answers", "branches", "latest")

    def __init__(self, where: Where | None, look: TensorRead | Measure):
        self.where, self.look = where, look
        self.answers: dict[Hashable, Answer] = {}
        self.branches: dict[Hashable, Fork | int] = {}
        self.latest: Hashable = None


#: A fork, and the value read there.
Step: TypeAlias = tuple[Fork, Answer]


class Variants(Generic[V]):
    """The variants of a function: a tree of forks, with a compiled function at each leaf.

    Attributes
    ----------
    first
        The first fork, or the number of the only variant if no value is read.
    compiled : list
        The compiled variants.
    """

    def __init__(self) -> None:
        self.first: Fork | int | None = None
        self.compiled: list[V] = []

    def at(self, fork: Fork, answer: Answer) -> V | None:
        """The variant whose value at a fork is ``answer``, with the last values at later forks; None without one."""
        key = _key(answer)
        while key in fork.branches:
            fork.latest = key
            following = fork.branches[key]
            if not isinstance(following, Fork):
                return self.compiled[following]
            fork, key = following, following.latest
        return None


def up_to(steps: Sequence[Step], fork: Fork, answer: Answer) -> list[Step]:
    """The steps of a path up to a fork, with another value there."""
    return [*steps[:next(i for i, (passed, _) in enumerate(steps) if passed is fork)], (fork, answer)]


class Path:
    """The path of one trace through the forks.

    Parameters
    ----------
    variants : Variants
        The variants that the new one will join.
    steps : sequence of (fork, answer)
        Forks whose values are known already, with these values.
    """

    def __init__(self, variants: Variants[Any], steps: Sequence[Step] = ()):
        self._variants, self._known = variants, list(steps)
        self.steps: list[Step] = []

    def ask(self, look: TensorRead | Measure, find: Callable[[], Answer]) -> Step:
        """The next fork and its value, which is computed if it is not known."""
        fork = self._next(look)
        answer = self._known.pop(0)[1] if self._known and self._known[0][0] is fork else find()
        fork.answers[_key(answer)] = answer
        self.steps.append((fork, answer))
        return fork, answer

    def _next(self, look: TensorRead | Measure) -> Fork:
        where = user_line()
        if self.steps:
            before, answer = self.steps[-1]
            fork = before.branches.get(_key(answer))
        else:
            fork = self._variants.first
        if not isinstance(fork, Fork) or (fork.where, fork.look) != (where, look):  # another branch was taken
            fork = Fork(where, look)
            if self.steps:
                before.branches[_key(answer)] = fork
            else:
                self._variants.first = fork
        return fork

    def end(self, compiled: object) -> None:
        """End the path: the trace is complete."""
        variants = self._variants
        for fork, answer in self.steps:
            fork.latest = _key(answer)
        old = fork.branches.get(fork.latest) if self.steps else variants.first
        if isinstance(old, int):
            variants.compiled[old] = compiled
        elif self.steps:
            fork.branches[fork.latest] = len(variants.compiled)
            variants.compiled.append(compiled)
        else:
            variants.first = len(variants.compiled)
            variants.compiled.append(compiled)


#: The guard operator: it compares a value, or shapes that depend on values, with those of the trace. Random operators
#: that ran while the value was computed are among its inputs, so that a run draws the same values.
GUARD = Op("_guard", AS_GIVEN, lambda *, count: [f"data{i}" for i in range(count)], types="*?->bool",
           per_instance=True, has_side_effect=True)
GUARD.shapes(lambda ins, outs: (ins, [()]))


@GUARD.kernel("guard", bound=True)
def _guard(step: Call) -> Callable[[], None]:
    """Stop the run if the value differs."""
    fork, expected = step.attrs["fork"], _key(step.attrs["answer"])
    find = fork.look.finder(step)

    def run() -> None:
        answer = find()
        if _key(answer) != expected:
            raise ReadChanged(fork, answer)

    return run


class NotComputable(Exception):
    """The value cannot be computed while the function is compiled, for the reason given."""


class TraceValues:
    """The values of a trace, computed as far as Python reads them.

    Parameters
    ----------
    inputs : dict of variable to raw array
        The inputs of the function.
    ctx : Context
        Their device.
    """

    def __init__(self, inputs: dict[Node, Array], ctx: Context):
        self._arrays: dict[Entry, Array] = {(node, 0): data for node, data in inputs.items()}
        self.ctx = ctx
        self._same: dict[Entry, Entry] = {}  # values of entries
        self._drawn = 0
        self._before: generators.States = {}  # states of random generators from before the first draw

    def of(self, trace: FunctionTracer, entries: Sequence[Entry], unrepeatable: str) -> list[Array]:
        """The raw arrays of entries of a trace, or of the body of a Cell in it. ``unrepeatable`` names an earlier step
        that must not run twice; it is empty without one.

        Raises
        ------
        NotComputable
            The error names the step that they depend on.
        """
        root = trace.root
        if unrepeatable:
            raise NotComputable(f"after {unrepeatable}, which would be called twice")
        with Recording(False, None), untraced(), generators.noted_states() as drawn:
            try:
                for node in root.drawn[self._drawn:]:  # in the order of the trace
                    self._find(trace, (node, 0))
                self._drawn = len(root.drawn)
                return [self._find(trace, entry) for entry in entries]
            finally:
                self._before = {**drawn, **self._before}

    def close(self) -> None:
        """Restore the random generators, so that a run draws the same values."""
        generators.go_back(self._before)

    def _find(self, trace: FunctionTracer, target: Entry) -> Array:
        waiting = [target]
        while waiting:
            entry = waiting[-1]
            if entry in self._arrays:
                waiting.pop()
                continue
            node = entry[0]
            missing = [source for source in self._needs(trace, entry) if source not in self._arrays]
            if missing:
                waiting += missing
            elif entry in self._same:
                self._arrays[entry] = self._arrays[self._same[entry]]
            elif node.op is not None:
                for i, data in enumerate(self._computed(node)):
                    self._arrays[node, i] = data
        return self._arrays[target]

    def _needs(self, trace: FunctionTracer, entry: Entry) -> Sequence[Entry]:
        """The entries that an entry depends on."""
        node = entry[0]
        if entry in self._same:
            return [self._same[entry]]
        if node.op is None:
            self._variable(trace, node)
            return [self._same[entry]] if entry in self._same else []
        body = None if node.op.rules.body is None else node.op.rules.body(node.attrs, node.inputs)
        if body is None:
            return node.inputs
        heads, inputs = body
        self._same.update(((slot, 0), source) for slot, source in inputs.items())
        self._same.update(((node, i), head) for i, head in enumerate(heads))
        return [self._same[entry]]

    def _variable(self, trace: FunctionTracer, node: Node) -> None:
        """Find the value of a variable: an array, or an entry outside of a body."""
        place: FunctionTracer | None = trace
        while place is not None:
            if node in place.arrays:
                self._arrays[node, 0] = place.arrays[node]._data
                return
            outside = place.outer.get(node, place.slots.get(node))
            if outside is not None:
                self._same[node, 0] = outside._entry
                return
            place = place.parent
        raise NotComputable("in the body of a loop or a branch, where they differ between iterations")

    def _computed(self, node: Node) -> list[Array]:
        op, ctx = node.op, self.ctx
        assert op is not None
        arrays = [self._arrays[entry] for entry in node.inputs]
        for i in op.traits.mutates:
            arrays[i] = arrays[i].copy()
        with Recording(False, node.in_training(True)):
            return run(op, node.attrs, arrays, ctx, None, wrap)[1][:node.count]


def effects(op: Op) -> str:
    """The side effect of an operator as text; empty for most operators."""
    return "a hook, a print or what several processes do" if op.traits.has_side_effect and op is not GUARD else ""


def calls(op: Op) -> str:
    """The reason why an operator must not run twice, as text: a side effect, or users' code; else empty."""
    return effects(op) or (f"the operator {op.name}" if op.where is not None and not op.traits.traced else "")


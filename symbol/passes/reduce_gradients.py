"""reduce_gradients: start the reduction of a bucket over ranks after its last gradient, and wait for it at the end of
backward.

Bound gradients are divided into buckets at bind. If the graph itself reads gradients, as a compiled training step does,
a bucket is a node, ``allreduce_together``, and the graph waits for it at that node.

On the host, a reduction makes progress only when it is polled, so a poll follows each long step. If gradients are
sharded, a bucket is awaited before the second one after it starts, so that at most two whole buckets exist.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.backends.private_operators import private
from opreg.core import threads
from opreg.core.attrs import AS_GIVEN
from opreg.core.graph import Entry, Graph, Node, reachable
from opreg.core.launch import Call, FirstRun
from opreg.core.op import Op
from opreg.core.spec import Shape, Spec
from opreg.core.value import Value
from opreg.ndarray.context import Context
from opreg.typing import Array, ArrayModule

from ..program import Program
from ..reduction import Bucket, GradientBuckets, Member, Reduction, first_names, joined

if TYPE_CHECKING:
    from opreg.distributed.groups import Request

__all__ = ["allreduce_together", "reduce_gradients"]

# The largest number of reductions in flight, where gradients are sharded.
_UNDER_WAY = 2
# The number of additions and multiplications from which on a step is long enough for a poll.
_LONG = 1 << 22


class _BucketReduction:
    """The reduction of a bucket in a plan: it is started and awaited.

    Attributes
    ----------
    members : list of Member
        The members of the bucket that have a gradient.
    arrays : list of arrays
        The arrays that callers read: whole gradients, or the parts of this rank.
    pinned : array or None
        The memory of the bucket, or of this rank's part, if these arrays are contiguous there and are written.
    scattered : bool
        Whether each rank gets a part.
    """

    def __init__(self, reduced: GradientBuckets, bucket: Bucket, members: list[Member], arrays: list[Array],
                 pinned: Array | None):
        self.reduced, self.bucket, self.members, self.arrays, self.pinned = reduced, bucket, members, arrays, pinned
        self.scattered = reduced.reduction.shard == "gradients"
        self._request: Request | None = None

    def place(self, member: Member) -> tuple[slice, Shape]:
        """The slice of the reduced buffer that belongs to a member, and its shape."""
        if not self.scattered:
            return slice(member.begin, member.end), member.shape
        group = self.reduced.reduction.group
        place = self.bucket.placed(member, group.rank, group.size)
        return place, (place.stop - place.start,)

    def begin(self, flat: Array, out: Array) -> None:
        """Start the reduction of ``flat``; its result is written into ``out``."""
        group, op = self.reduced.reduction.group, self.reduced.reduction.op
        self._request = (group.ireduce_scatter if self.scattered else group.iallreduce)(flat, op, out)

    def move(self) -> None:
        """Poll the reduction, if it is in flight."""
        if self._request is not None:
            self._request.test()

    def end(self) -> None:
        """Wait for the result."""
        request, self._request = self._request, None
        assert request is not None
        request.wait()

    def __str__(self) -> str:
        names = first_names([member.node.name for member in self.members])
        return f"bucket{self.bucket.number} ({names}; {self.bucket.nbytes:,} bytes)"


# ------------------------------------------------------------------------------------------- the operators


def _gradients(*, pending: _BucketReduction) -> list[str]:
    return [member.node.name for member in pending.members]


def _operator(name: str, arguments: Any, outputs: Any, doc: str) -> Op:
    return private(name, arguments, doc, outputs=outputs, visible=lambda *, pending: 0, has_side_effect=True,
                   types=lambda ins, outs, *, pending: (ins, outs))


allreduce_start = _operator("_allreduce_start", _gradients, ("bucket",), "Start the sum of gradients over all ranks.")
allreduce_wait = _operator("_allreduce_wait", ("bucket",), _gradients, "Wait for the summed gradients.")
reduce_scatter_start = _operator("_reduce_scatter_start", _gradients, ("bucket", "part"),
                                 "Start the sum of gradients over all ranks, each of which gets a part.")
reduce_scatter_wait = _operator("_reduce_scatter_wait", ("bucket", "part"), _gradients, "Wait for the summed part.")
reduce_move = private("_reduce_move", ("bucket",), "Poll the reductions in flight.", outputs=(), has_side_effect=True,
                      unread=(0,), types=lambda ins, outs: (ins, outs))

#: The operator that starts a reduction or waits for it, by whether each rank gets only its part.
_OPERATORS = {(False, "start"): allreduce_start, (False, "wait"): allreduce_wait,
              (True, "start"): reduce_scatter_start, (True, "wait"): reduce_scatter_wait}


def _start(call: Call) -> list[Callable[[], object]]:
    pending: _BucketReduction = call.attrs["pending"]
    flat, placed = call.outs[0], call.outs[0] is pending.pinned
    steps: list[Callable[[], object]] = []
    at = 0
    for i, (member, gradient) in enumerate(zip(pending.members, call.ins)):
        if at < member.begin:  # a member without a gradient
            steps.append(_set(flat[at:member.begin], 0))
        at = member.end
        if not (placed and gradient is pending.arrays[i]):
            steps.append(_set(flat[member.begin:at].reshape(member.shape), gradient))
    if at < flat.size:
        steps.append(_set(flat[at:], 0))
    steps.append(functools.partial(pending.begin, flat, call.outs[-1]))

    def first() -> list[Callable[[], object]]:
        pending.reduced.agree()
        threads.call_all(steps)
        return steps

    return [FirstRun(first)]


def _set(array: Array, value: Array | int) -> Callable[[], object]:
    return functools.partial(array.__setitem__, Ellipsis, value)


allreduce_start.kernel(bound=True)(_start)
reduce_scatter_start.kernel(bound=True)(_start)


def _wait(call: Call) -> list[Callable[[], object]]:
    pending: _BucketReduction = call.attrs["pending"]
    reduced = call.ins[-1]
    steps: list[Callable[[], object]] = [pending.end]
    for member, out, array in zip(pending.members, call.outs, pending.arrays):
        if out is not None and not (reduced is pending.pinned and out is array):
            place, shape = pending.place(member)
            steps.append(_set(out, reduced[place].reshape(shape)))
    return steps


allreduce_wait.kernel(bound=True)(_wait)
reduce_scatter_wait.kernel(bound=True)(_wait)


@reduce_move.kernel(bound=True)
def _move(call: Call) -> list[Callable[[], object]]:
    return [pending.move for pending in call.attrs["reductions"]]


#: Reduces gradients over all ranks, in one bucket; ``names`` are those of their weights.
allreduce_together = Op("_allreduce_together", AS_GIVEN, lambda *, names: names, outputs=lambda *, names: names,
                        types=lambda ins, outs: (ins, ins), per_instance=True, has_side_effect=True, grad_reads=False)
allreduce_together.where = None
allreduce_together.shapes(lambda ins, outs: (ins, ins))


@allreduce_together.kernel()
def _together(xp: ArrayModule, *gradients: Array, reduction: Reduction) -> list[Array]:
    flat = xp.concatenate([gradient.reshape(-1) for gradient in gradients])
    reduction.group.allreduce(flat, reduction.op, flat)
    ends = list(itertools.accumulate([gradient.size for gradient in gradients]))
    return [flat[end - gradient.size:end].reshape(gradient.shape) for end, gradient in zip(ends, gradients)]


@allreduce_together.grad
def _together_grad(g: Value | tuple[Value, ...], ins: Sequence[Value], outs: Sequence[Value], *, reduction: Reduction,
                   names: Sequence[str]) -> Sequence[Value]:
    out_grads = g if isinstance(g, tuple) else (g,)
    results = out_grads[0]._apply(allreduce_together, out_grads, {"reduction": reduction, "names": names})
    return results if isinstance(results, (tuple, list)) else [results]


# ------------------------------------------------------------------------------------------------ the pass


def reduce_gradients(program: Program) -> Program:
    """Add for each bucket a node that starts its reduction, and one that waits for it. The results of the latter
    replace the gradients."""
    if program.bound.reduced is not None and program.wanted:
        _reduce_wanted(program, program.bound.reduced)
    if any(node.op is allreduce_together for node in program.nodes):
        _reduce_in_graph(program)
    return program


def _reduce_wanted(program: Program, reduced: GradientBuckets) -> None:
    """Reduce the gradients of ``program.wanted``."""
    outputs = len(program.bound.graph.heads)
    gradients = dict(zip(program.wanted, zip(program.heads[outputs:], program.destinations)))
    uses, places = _uses(program), _places(program)
    forward = reachable(program.nodes, program.heads[:outputs])
    at = max([places[node] for node in forward], default=0)
    results: list[tuple[Entry, tuple[Array, str]]] = []
    behind: dict[int, list[Node]] = {}
    waits: list[Node] = []
    for bucket in reduced.buckets:
        members = [member for member in bucket.members if member.node in gradients]
        if not members:
            continue
        pending = _new_reduction(reduced, bucket, members, program)
        start = _node(program, pending, "start", [gradients[member.node][0] for member in members])
        _pin(program, pending, start, uses)
        at = max([at, *[places[node] for node, _ in start.inputs]])  # all ranks start them in this order
        ready = behind.setdefault(at, [])
        if pending.scattered and len(waits) >= _UNDER_WAY:
            ready.append(waits[-_UNDER_WAY])
        ready.append(start)
        waits.append(_node(program, pending, "wait", [(start, i) for i in range(start.count)]))
        destinations = [gradients.pop(member.node)[1] for member in members]
        results += [((waits[-1], i), destination) for i, destination in enumerate(destinations)]
    results = [*gradients.values(), *results]
    program.heads = [*program.heads[:outputs], *[entry for entry, _ in results]]
    program.destinations = [destination for _, destination in results]
    before = {node for ready in behind.values() for node in ready}
    behind.setdefault(len(program.nodes) - 1, []).extend(wait for wait in waits if wait not in before)
    program.nodes = _insert_reductions(program, behind)


def _reduce_in_graph(program: Program) -> None:
    """Reduce the gradients of ``allreduce_together`` nodes."""
    requests: dict[Node, tuple[Spec, Context, str]] = {}
    groups: dict[Reduction, list[list[Node]]] = {}
    for node in program.nodes:
        if node.op is allreduce_together:
            variables = [Node(None, name) for name in node.attrs["names"]]
            requests.update((variable, (spec, program.contexts[node], "write"))
                          for variable, spec in zip(variables, program.specs[node]))
            groups.setdefault(node.attrs["reduction"], []).append(variables)
    reductions = {reduction: map(functools.partial(_bucket_reduction, program), itertools.repeat(reduced),
                                 reduced.buckets)
                  for reduction, nodes in groups.items()
                  for reduced in [GradientBuckets(reduction, Graph((), []), nodes, requests)]}
    waits: list[Node] = []

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node.op is not allreduce_together:
            return None
        pending = next(reductions[node.attrs["reduction"]])
        start = _node(program, pending, "start", [became.get(entry, entry) for entry in node.inputs])
        wait = _node(program, pending, "wait", [(start, 0)])
        for i, array in enumerate(pending.arrays):
            became[node, i] = wait, i
            program.pinned[wait, i] = array
        waits.append(wait)
        return [wait]

    program.rebuild(change)
    starts = [wait.inputs[0][0] for wait in waits]
    places, at = _places(program), 0
    behind: dict[int, list[Node]] = {}
    for start in starts:
        at = max([at, *[places[node] for node, _ in start.inputs]])
        behind.setdefault(at, []).append(start)
    program.nodes = _insert_reductions(program, behind)
    uses = _uses(program)
    for start in starts:
        _pin(program, start.attrs["pending"], start, uses)


def _uses(program: Program) -> Counter[Entry]:
    return Counter([*program.heads, *[entry for node in program.nodes for entry in node.inputs]])


def _places(program: Program) -> dict[Node, int]:
    return {node: i for i, node in enumerate(program.nodes)}


def _insert_reductions(program: Program, behind: Mapping[int, Sequence[Node]]) -> list[Node]:
    """The nodes, with the reductions of buckets inserted after their inputs, and polls after long steps."""
    nodes: list[Node] = []
    under_way: dict[_BucketReduction, Node] = {}
    rows = [(node, *behind.get(i, ())) for i, node in enumerate(program.nodes)]
    for node in itertools.chain.from_iterable(rows):
        nodes.append(node)
        if node.op in _OPERATORS.values():
            pending = node.attrs["pending"]
            if under_way.pop(pending, None) is None:
                under_way[pending] = node
        elif under_way and _is_long(program, node):
            reductions, starts = zip(*under_way.items())
            move = Node(reduce_move, f"{node.name}_over", {"reductions": reductions}, [(starts[-1], 0)])
            program.specs[move], program.contexts[move] = [], program.contexts[node]
            nodes.append(move)
    return nodes


def _is_long(program: Program, node: Node) -> bool:
    """Whether a step on the host takes long enough that the reductions should be polled after it."""
    op, specs = node.op, program.specs
    if op is None or program.contexts[node].xp is not np:
        return False
    shapes = [specs[source][i].shape or () for source, i in node.inputs], [spec.shape or () for spec in specs[node]]
    return (op.rules.work(*shapes, node.attrs) or 0) >= _LONG


def _new_reduction(reduced: GradientBuckets, bucket: Bucket, members: list[Member],
                   program: Program) -> _BucketReduction:
    grads = program.bound.grads
    count = bucket.count // reduced.reduction.group.size if reduced.reduction.shard == "gradients" else bucket.count
    written = grads[members[0].node][1] == "write"  # all members of a bucket have the same request
    pinned = joined([grads[member.node][0] for member in bucket.members], count) if written else None
    return _BucketReduction(reduced, bucket, members, [grads[member.node][0] for member in members], pinned)


def _bucket_reduction(program: Program, reduced: GradientBuckets, bucket: Bucket) -> _BucketReduction:
    """The reduction of a bucket whose gradients only the graph reads."""
    flat = program.bound.arena(bucket.ctx, bucket.nbytes).view(bucket.dtype)
    arrays = [flat[member.begin:member.end].reshape(member.shape) for member in bucket.members]
    return _BucketReduction(reduced, bucket, bucket.members, arrays, flat)


def _node(program: Program, pending: _BucketReduction, what: str, inputs: Sequence[Entry]) -> Node:
    """Make one of the two nodes of a bucket, ``start`` or ``wait``."""
    op = _OPERATORS[pending.scattered, what]
    node = Node(op, str(pending), {"pending": pending}, inputs)
    bucket = pending.bucket
    shapes: list[Shape] = [pending.place(member)[1] for member in pending.members]
    if what == "start":
        shapes = [(bucket.count,)]
        if pending.scattered:
            shapes.append((bucket.count // pending.reduced.reduction.group.size,))
    program.specs[node] = [Spec(shape, bucket.dtype) for shape in shapes]
    program.contexts[node] = bucket.ctx
    return node


def _pin(program: Program, pending: _BucketReduction, start: Node, uses: Mapping[Entry, int]) -> None:
    """Let gradients be computed in the memory of the bucket, and the result be written there."""
    if pending.pinned is None:
        return
    program.pinned[start, start.count - 1] = pending.pinned
    if pending.scattered:
        return
    for (node, i), array in zip(start.inputs, pending.arrays):
        if node.op is not None and uses[node, i] == 1 and program.specs[node][i] == Spec(array.shape, array.dtype):
            program.pinned[node, i] = array

"""trace_bodies: what the body of a user's operator does, as nodes.

An operator that is ``traced`` is called once with values that stand for numbers, by the kernels that would call it with
arrays. A gradient that nobody wrote is the derivative of what the body did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core import generators
from opreg.core.graph import Entry, Node
from opreg.core.launch import Call, reference
from opreg.core.mode import Recording
from opreg.core.op import Op
from opreg.core.spec import Spec, is_floating
from opreg.core.tracing import RuleTracer, TraceError
from opreg.custom.gradient import COMPUTED
from opreg.errors import ArgumentError, NotDifferentiableError, Where, note
from opreg.ndarray.context import Context
from opreg.ndarray.eager import run
from opreg.ndarray.ndarray import wrap
from opreg.ndarray.traced import BodyTracer, TracedArray, wrap_traced
from opreg.ndarray.traced_numpy import INSTEAD
from opreg.typing import Array

from ..program import Program, replaced
from .gradient import grow

__all__ = ["follow", "expand", "Opened", "computed"]


class Use:
    """One use of a followed operator.

    Attributes
    ----------
    name, tags, where
        Of its node.
    ctx, is_train
        Where and in which mode it computes.
    ins, outs : list of Spec
        Of inputs, auxiliary states included, and outputs.
    memo : dict
        Where operators of users are kept between forward and backward.
    """

    def __init__(self, name: str, tags: Mapping[str, str], where: Where | None, ctx: Context, is_train: bool,
                 ins: Sequence[Spec], outs: Sequence[Spec], memo: dict[Any, Any]):
        self.name, self.tags, self.where, self.ctx, self.is_train = name, tags, where, ctx, is_train
        self.ins, self.outs, self.memo = ins, outs, memo


class Followed(NamedTuple):
    """What an operator does: its body, the variables that stand for its inputs, and the entries its outputs are."""

    body: BodyTracer
    slots: list[Entry]
    heads: list[Entry]


#: Bodies that have taken their operators' places, by operator, identity of the use's memory and inputs; with what
#: their entries have become.
Opened = dict[tuple[Op, int, tuple[Entry, ...]], tuple[Followed, dict[Entry, Entry]]]


def follow(op: Op, attrs: Any, use: Use, before: Followed | None = None) -> Followed:
    """What the operator does; of a gradient that follows from a body, behind what that did ``before``."""
    body = BodyTracer(use.name, use.tags, use.ctx) if before is None else before.body.extended()
    known = [] if before is None else before.slots
    names = op.arguments(attrs) + op.auxiliary(attrs)
    slots = [body.variable(f"{use.name}_{name}", spec)
             for name, spec in zip(names[:len(names) - len(known)], use.ins)] + known
    try:
        heads = _followed(op, attrs, use, body, slots, before)
    except (ArgumentError, TraceError) as error:
        line = f", made at {use.where}" if use.where else ""
        note(error, f"operator {op.name!r}, node {use.name!r}{line}, is traced: its body is followed once, with values "
                    "that have a shape and a dtype and no numbers")
        raise
    return Followed(body, slots, heads)


def _followed(op: Op, attrs: Any, use: Use, body: BodyTracer, slots: list[Entry], before: Followed | None = None
              ) -> list[Entry]:
    if attrs.derived:
        return _derived(attrs, use, body, slots, before)
    return _called(op, attrs, use, body, slots)


def _called(op: Op, attrs: Any, use: Use, body: BodyTracer, slots: list[Entry]) -> list[Entry]:
    """Call the user's method with values."""
    ins = [body.value(slot) for slot in slots]
    outs = [TracedArray(body, spec, None) for spec in use.outs]
    call = Call(op, attrs, list(ins), list(outs), ["write"] * len(outs), use.ctx.xp, use.ctx, use.is_train, None,
                use.outs, None, wrap_traced, use.memo)
    before = _randomness(use.ctx)
    with Recording(False, use.is_train), use.ctx:
        for step in reference(call).steps()[0]:
            step()
    if _randomness(use.ctx) != before:
        raise TraceError(f"the body draws random numbers that would be the same in every run. {INSTEAD}")
    first = len(op.arguments(attrs))
    if any(value.entry != slot for value, slot in zip(ins[first:], slots[first:])):
        raise TraceError("the body changes an auxiliary state, which only a body that is run can do: leave traced off")
    return [body.zeros(out.spec) if out.unwritten else out.entry for out in outs]


def _derived(attrs: Any, use: Use, body: BodyTracer, slots: list[Entry], before: Followed | None
             ) -> list[Entry]:
    """Differentiate what another operator does."""
    inner, count = attrs.inner, attrs.inner.op.visible(attrs.inner)
    tops, slots = slots[:count], slots[count:]
    forward = Use(use.name, use.tags, use.where, use.ctx, use.is_train, use.ins[count:], use.ins[:count], use.memo)
    heads = _followed(inner.op, inner, forward, body, slots) if before is None else before.heads
    tracer = RuleTracer(body.nodes, body.specs)
    gradients = grow(tracer, body.order, [(head, tracer.value(top)) for top, head in zip(tops, heads)],
                 {node for (node, _), need in zip(slots, attrs.needs) if need}, use.is_train)
    body.settle()
    return [body.cast(gradients[slot]._entry, spec.dtype) if slot in gradients and is_floating(spec.dtype)  # type: ignore
            else body.zeros(spec) for slot, spec in zip(slots, use.outs)]


def _randomness(ctx: Context) -> tuple[object, ...]:
    """What changes when the random generators that everybody shares are drawn from."""
    state: Any = np.random.get_state()  # noqa: NPY002  what it is for
    own = generators.generator(ctx.backend_name, ctx.device_id)
    return state[1][:4].tobytes(), state[2], repr(getattr(getattr(own, "bit_generator", None), "state", None))


def expand(program: Program, node: Node, inputs: Sequence[Entry], opened: Opened) -> tuple[list[Node], list[Entry]]:
    """The nodes that take a followed operator's place over these inputs, and the entries its outputs become.

    A gradient that follows from a body goes on where that was ``opened``: what the body draws, moves or keeps it does
    once.
    """
    bound, specs = program.bound, program.specs
    op: Any = node.op
    attrs: Any = node.attrs
    ctx = bound.group2ctx.get(node.tags.get("__ctx_group__", ""), bound.ctx) if bound.group2ctx else bound.ctx
    derived = attrs.derived and program.backward is not None
    is_train = node.in_training(program.backward if derived else program.is_train)
    use = Use(node.name, node.tags, node.where, ctx, is_train, [specs[source][i] for source, i in inputs],
              specs[node], bound.memo)
    before: Followed | None = None
    became: dict[Entry, Entry] = {}
    if attrs.derived:
        inner = attrs.inner
        own = tuple(inputs[inner.op.visible(inner):])
        before, became = opened.get((inner.op, id(inner.memo), own), (before, became))
    followed = follow(op, attrs, use, before)
    body, slots, heads = followed
    became = {**became, **dict(zip(slots, inputs))}
    nodes: list[Node] = []
    for inner in body.specs:  # as they were made
        if before is not None and inner in before.body.specs:
            continue
        if inner in body.arrays:
            array = body.arrays[inner]
            program.arrays[inner], program.contexts[inner] = array._data, array._ctx
        elif inner.op is None:
            continue
        specs[inner] = body.specs[inner]
        nodes.append(replaced(inner, [became.get(entry, entry) for entry in inner.inputs], specs, became))
    opened[op, id(attrs.memo), tuple(inputs)] = followed, became
    return nodes, [became.get(entry, entry) for entry in heads]


@COMPUTED.provide
def computed(call: Call) -> Callable[[], None]:
    """A function that computes a followed operator on the arrays of a call, operator by operator."""
    op, attrs, ctx = call.op, call.attrs, call.ctx
    use = Use(op.name, {}, None, ctx, call.is_train, [Spec(array.shape, array.dtype) for array in call.ins], call.specs,
              call.memo)
    body, slots, heads = follow(op, attrs, use)

    applied = [(node, node.op) for node in body.nodes if node.op is not None]
    drawing = next((inner.name for _, inner in applied if inner.random and call.is_train), None)
    if drawing is not None:
        raise NotDifferentiableError(f"operator {op.name.removeprefix('_gradient_')!r} draws random numbers with "
                                     f"{drawing}, which an eager backward would draw anew: give it a backward, or use "
                                     "it in a graph")

    def compute() -> None:
        values: dict[Entry, Array] = {(node, 0): array._data for node, array in body.arrays.items()}
        values.update(zip(slots, call.ins))
        for node, inner in applied:
            _, results = run(inner, node.attrs, [values[entry] for entry in node.inputs], ctx, None, wrap)
            values.update(zip([(node, i) for i in range(node.count)], results))
        for out, head in zip(call.outs, heads):
            if out is not None:
                out[...] = values[head]

    return compute

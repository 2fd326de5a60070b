"""State changes: operators that change states in place, as nodes of a trace, where values never change.

A user's operator changes its state, usually a Parameter, in its body. In a compiled function the body works on a copy.
The copy is a further output of the node, and the trace assigns it to the state. So a reader gets the value that the
state has at that point of the program, and a run that is stopped, or repeated for its gradients, changes no state.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar

from opreg.ndarray.context import current_context
from opreg.ndarray.ndarray import wrap

from ..core import effects
from ..core.attrs import AS_GIVEN
from ..core.launch import Call, Step, prepare
from ..core.mode import MODE
from ..core.op import Op, infer_specs, shapes_from_data
from ..core.rules import Attrs
from ..core.spec import Shape, Spec
from ..core.value import Value
from ..typing import Array, ArrayModule

__all__ = ["with_hidden_states"]

T = TypeVar("T")


def with_hidden_states(op: Op) -> Op:
    """An operator that computes another one and returns the new states as hidden outputs. Its only attribute,
    ``inner``, holds the attributes of the computed operator."""
    if "moving" not in op.related:
        op.related["moving"] = _operator_with_states(op)
    return op.related["moving"]


def _operator_with_states(op: Op) -> Op:
    def outputs(*, inner: Attrs) -> Sequence[str]:
        return *op.signature.outputs(inner), *[f"state{i}" for i in effects.changed_states(op, inner)]

    result = Op(op.name, AS_GIVEN, lambda *, inner: op.signature.arguments(inner), outputs=outputs,
                auxiliary=lambda *, inner: op.signature.auxiliary(inner),
                visible=lambda *, inner: op.signature.visible(inner),
                loss=lambda *, inner: op.loss(inner), mode=True, per_instance=True, unread=tuple(op.traits.unread),
                capturable=op.traits.capturable)
    result.where = op.where
    result.chance(lambda *, inner: effects.draws(op, inner))

    @result.together
    def specs(ins: Sequence[Spec], outs: Sequence[Spec], *, inner: Attrs) -> tuple[list[Spec], list[Spec]]:
        in_specs, outputs = infer_specs(op, ins, outs[:len(op.signature.outputs(inner))], inner)
        return in_specs, [*outputs, *_states(op, inner, in_specs)]

    if op.rules.data_dependent:
        @result.infer_from_data
        def measured(xp: ArrayModule, *arrays: Array, inner: Attrs) -> list[Shape]:
            call = Call(op, inner, list(arrays), [], [], xp, current_context(), MODE.training, wrap=wrap)
            return [*shapes_from_data(op, call), *[state.shape for state in _states(op, inner, arrays)]]

    @result.kernel(op.kernels[0].name, bound=True)
    def steps(call: Call) -> list[Step]:
        inner, count = call.attrs["inner"], len(op.signature.outputs(call.attrs["inner"]))
        states = call.places()[count:]
        ins = _replace_states(op, inner, call.ins, states)
        inside = Call(op, inner, ins, call.outs[:count], call.reqs[:count], call.xp, call.ctx,
                      call.is_train, call.rng, call.specs[:count], call.scratch, call.wrap, call.memo)
        copies = [functools.partial(state.__setitem__, Ellipsis, before)
                  for state, before in zip(states, _states(op, inner, call.ins))]
        return [*copies, *prepare(inside).steps()[0]]

    @result.grad
    def grad(g: Any, ins: Sequence[Value], outs: Sequence[Value], *, inner: Attrs, needs: Sequence[bool],
             is_train: bool) -> Sequence[Value | None]:
        count = len(op.signature.outputs(inner))
        return op.differentiate(g[0] if count == 1 else tuple(g[:count]), _replace_states(op, inner, ins, outs[count:]),
                                outs[:count], inner, needs, is_train)

    return result


def _states(op: Op, attrs: Attrs, ins: Sequence[T]) -> list[T]:
    """The inputs that are states."""
    return [ins[place] for place in effects.changed_states(op, attrs)]


def _replace_states(op: Op, attrs: Attrs, ins: Sequence[T], states: Sequence[T]) -> list[T]:
    """The inputs with new states in their places."""
    inputs = list(ins)
    for place, state in zip(effects.changed_states(op, attrs), states):
        inputs[place] = state
    return inputs

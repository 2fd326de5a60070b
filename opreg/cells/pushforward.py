"""Pushforward: derivatives along directions, from the inputs of a function that has run to its outputs.

An operator with a jvp rule computes its derivative by that rule. For others the directional derivative is the transpose
of the gradient: the gradient is linear in the output gradient, so its own gradient with respect to the output gradient,
in the direction of the inputs, is the derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opreg.ndarray import backward_pass

from ..core.gradient import push
from ..core.graph import reachable
from ..core.mode import Recording
from ..core.op import Op
from ..core.registry import ops
from ..core.rules import as_list
from ..core.spec import is_floating, show
from ..errors import ArgumentError, ShapeError
from .pullback import Pullback, pullback
from .state import STATE
from .tensor import as_tensor
from .tensor_base import TensorBase

__all__ = ["pushforward"]


def pushforward(back: Pullback, along: Sequence[Any]) -> list[Any] | None:
    """Derivatives of the heads along directions of the inputs; None if no operator in between has a jvp rule, so that
    one transpose of the whole does the same."""
    trace, entries = STATE.trace, [getattr(head, "_entry", None) for head in back.heads]
    recorded = [entry for entry in entries if entry is not None]
    nodes: Any = backward_pass.order_of(recorded) if trace is None else reachable(trace.nodes, recorded)
    if not any(isinstance(node.op, Op) and node.op.rules.jvp is not None for node in nodes):
        return None
    tangents: dict[Any, Any] = dict(zip(back.entries, along))
    with Recording(True if trace is None and STATE.nested else None, None):
        push(nodes, tangents, _record_pushforward if trace is None else _trace_pushforward)
    return [tangents[entry] if entry in tangents else ops.zeros_like(head) for entry, head in zip(entries, back.heads)]


def _record_pushforward(node: Any, t: list[Any]) -> Sequence[Any]:
    ins, outs = [list(map(as_tensor, arrays)) for arrays in backward_pass.arrays_of(node)]

    def through(*probes: Any) -> list[Any]:
        gradients = backward_pass.node_gradients(node, probes)
        return [gradients.get(entry) for entry in node.inputs]

    return _derivatives_of_node(node, t, ins, outs, through)


def _trace_pushforward(node: Any, t: list[Any]) -> Sequence[Any]:
    trace: Any = STATE.trace
    outs = [trace.wrap((node, i)) for i in range(node.count)]

    def through(*probes: Any) -> list[Any]:
        return trace.differentiate([(out, trace.read(probe)) for out, probe in zip(outs, probes) if probe is not None],
                                   node.inputs, [node])

    return _derivatives_of_node(node, t, list(map(trace.wrap, node.inputs)), outs, through)


def _derivatives_of_node(node: Any, t: list[Any], ins: list[Any], outs: list[Any], through: Callable[..., list[Any]]
                         ) -> Sequence[Any]:
    """The derivatives of a node's outputs, by its operator's rule or as the transpose of its gradient."""
    op, visible = node.op, node.op.signature.visible(node.attrs)
    if isinstance(op, Op) and op.rules.jvp is not None:
        with Recording(None, node.in_training(None if STATE.trace is None else True)):
            tangents, values = [op.signature.in_all_places(node.attrs, [
                value if value is None else value.shown() for value in each]) for each in (t, ins)]
            returned = op.rules.jvp(node.attrs, tangents, values, [output.shown() for output in outs[:visible]])
        return _check_derivatives(op, returned, outs[:visible])
    moving = [i for i, out in enumerate(outs) if is_floating(out._dt)]
    # An entry that is two inputs of a node has one gradient, the sum of both.
    places = [i for i, entry in enumerate(node.inputs) if t[i] is not None and entry not in node.inputs[:i]]
    reached: list[int] = []

    def transposed(*probes: Any) -> Any:
        output_grads: list[Any] = [None] * len(outs)
        for i, probe in zip(moving, probes):
            output_grads[i] = probe
        gradients = through(*output_grads)
        reached[:] = [i for i in places if gradients[i] is not None]
        return tuple([as_tensor(gradients[i]) for i in reached])

    back = pullback(transposed, [ops.zeros_like(outs[i]) for i in moving], {}, range(len(moving)))
    results: list[Any] = [None] * len(outs)
    if reached:
        for i, result in zip(moving, back(tuple([t[i] for i in reached]), keep=True)[0]):
            results[i] = result
    return results


def _check_derivatives(op: Op, returned: Any, outs: Sequence[Any]) -> list[Any]:
    """The checked results of a jvp rule, a value or None for each output."""
    results = as_list(returned)
    title = f"the jvp rule of operator {op.op_type or op.name}"
    if len(results) != len(outs):
        raise ArgumentError(f"{title} returned {len(results)} values, expected {len(outs)}, one for each output")
    for i, (result, out) in enumerate(zip(results, outs)):
        if result is None:
            continue
        if not hasattr(result, "_entry"):
            raise ArgumentError(f"{title} returned {type(result).__name__} for output {i}, expected the result "
                                "of operators on its inputs: it may be differentiated again")
        result = result if isinstance(result, TensorBase) else as_tensor(result)
        if result.shape != out.shape:
            raise ShapeError(f"{title} returned shape {show(result.shape)} for output {i}, expected {show(out.shape)}")
        results[i] = result._cast(out._dt)
    return results

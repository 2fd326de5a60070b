"""Batching: runs the trace of one sample on many samples at once.

A function is traced with one sample; then each of its nodes is applied to all samples: by the vmap rule of its
operator, by the operator's body if it has one, or in a loop over the samples. Operators are applied in the usual way,
so the tape records the computation, or the surrounding trace includes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from opreg.ndarray.bodies import Use, trace_body
from opreg.ndarray.computation import compute
from opreg.ndarray.context import current_context
from opreg.ndarray.ndarray import NDArray

from ..core import effects
from ..core.chosen import override
from ..core.graph import Entry, Node, reachable
from ..core.mode import MODE, Recording
from ..core.op import Op
from ..core.registry import ops
from ..core.rules import Attrs, BatchedCall, as_list
from ..core.spec import Spec, is_floating, show
from ..core.tracing import TraceError
from ..errors import ArgumentError, NotDifferentiableError, ShapeError, note, warn
from . import bprop, tree
from .application import Application
from .cell import Cell
from .guards import TENSOR_READS
from .state import STATE, untraced
from .tensor import Tensor, as_tensor
from .tensor_base import TensorBase
from .trace import FunctionTracer, create
from .tree import Structure

__all__ = ["BatchedValue", "map_samples"]

#: Users' operators for which the warning about looping over samples was given.
_WARNED: set[str] = set()


class BatchedValue(NamedTuple):
    """A value for all samples.

    Attributes
    ----------
    value : tensor
        The elements.
    batched : bool
        Whether the first axis is the axis of samples; otherwise all samples share the value.
    """

    value: Any
    batched: bool


def all_outputs(op: Op, attrs: Any, keywords: Attrs, values: Sequence[Any]) -> list[Any]:
    """All outputs of an operator applied to tensors, including hidden ones."""
    trace = STATE.trace
    if trace is None:
        ctx = values[0]._ctx if values else current_context()
        return compute(op, attrs, values, ctx, result_class=Tensor)[1]
    node = trace.add(op, attrs, [trace.read(value)._entry for value in values], keywords)
    return [trace.wrap((node, i)) for i in range(node.count)]


def replay(nodes: Sequence[Node], values: dict[Entry, BatchedValue], specs: Mapping[Node, Sequence[Spec]],
           size: int) -> None:
    """Apply nodes to all samples.

    Parameters
    ----------
    nodes : sequence of Node
        Nodes in the order of computation.
    values : dict of Entry to BatchedValue
        Values of the variables; the outputs of nodes are added to it.
    specs : mapping of Node to list of Spec
        Shapes and dtypes of one sample.
    size : int
        The number of samples.
    """
    for node in nodes:
        if node.op is None:
            continue
        try:
            with Recording(None, node.in_training(True)):
                outs = _outputs(node, [values[entry] for entry in node.inputs], specs[node], size)
        except Exception as error:
            note(error, f"vmap of {node.describe()}")
            raise
        values.update(zip([(node, i) for i in range(node.count)], outs))


def _outputs(node: Node, ins: Sequence[BatchedValue], specs: Sequence[Spec], size: int) -> Sequence[BatchedValue]:
    """The outputs of a node for all samples."""
    op, attrs = node.op, node.attrs
    assert op is not None
    use: Any = attrs
    batched = [batched_input.batched for batched_input in ins]
    values = [batched_input.value for batched_input in ins]
    if op.traits.mutates or effects.changed_states(op, attrs) or (op.traits.states and node.in_training(True)):
        raise ArgumentError(f"operator {op.op_type or op.name} changes its inputs in place, and samples that are "
                            f"computed at once cannot share them: return new values; layers with moving statistics do "
                            f"not change them after set_train(False)")
    if op.rules.inline is not None:
        return _application(node, ins, size)
    if not any(is_batched and i not in op.traits.unread for i, is_batched in enumerate(batched)) and size:
        values = [value[0] if is_batched else value for value, is_batched in zip(values, batched)]
        batched = [False] * len(ins)
    if not any(batched) and not (op.traits.random or (not effects.opaque(op) and effects.draws(op, attrs))):
        return [BatchedValue(out, False) for out in all_outputs(op, attrs, node.keywords, values)]
    if op.rules.vmap is not None and any(batched) and size:
        placed = op.signature.in_all_places
        returned = op.rules.vmap(attrs, placed(attrs, values if op.where is None else [
            value.shown() for value in values]), placed(attrs, batched))
        if isinstance(returned, BatchedCall):
            returned = all_outputs(op, op.complete(returned.attrs), returned.attrs, returned.ins)
        if returned is not NotImplemented:
            return _check_results(op, returned, values, specs, size)
    if op.traits.traced and op.rules.vmap is None:
        if op.where is None or use.derived:
            return _body(node, ins, specs, size)
        return _user_operator_outputs(node, ins, specs, size)
    if op.where is not None:
        _warn_of_loop(node, size)
    return _loop_over_samples(node, ins, specs, size)


def _warn_of_loop(node: Node, size: int) -> None:
    """Warn, once for each user's operator, that it runs sample by sample."""
    op: Any = node.op
    if op.name not in _WARNED:
        _WARNED.add(op.name)
        inner = getattr(node.attrs, "inner", None)
        what, instead = (f"operator {op.op_type!r} has no vmap rule: it", f"{_rule_of(node)} says how it computes them "
                         "at once") if inner is None else \
            (f"the gradient of operator {inner.op.op_type!r} needs numbers: it", "one that is written in operators "
             "computes them at once")
        warn(f"{what} runs once for each of {size} samples; {instead}", where=node.where)


def _rule_of(node: Node) -> str:
    """The vmap rule of a user's operator, in the form that its author writes it."""
    attrs: Any = node.attrs
    return attrs.named_rule("vmap") if hasattr(attrs, "named_rule") else "a vmap rule"


def _check_results(op: Op, returned: Any, ins: Sequence[Any], specs: Sequence[Spec], size: int) -> list[BatchedValue]:
    """The results of a vmap rule, checked for the shapes of samples; a built-in operator may return an output without
    an axis of samples, which all samples share."""
    outs = as_list(returned)
    title = f"the vmap rule of operator {op.op_type or op.name}"
    if len(outs) != len(specs):
        raise ArgumentError(f"{title} returned {len(outs)} values, expected {len(specs)}, one for each output")
    results = []
    for i, (out, spec) in enumerate(zip(outs, specs)):
        if not isinstance(out, NDArray) and not isinstance(out, TensorBase):
            raise ArgumentError(f"{title} returned {type(out).__name__} for output {i}, expected the result of "
                                "operators on its inputs: a gradient passes through it")
        out = ops._copy(out) if any(out is value for value in ins) else as_tensor(out)
        expected = (size, *(spec.shape or ()))
        if op.where is None and out.shape == spec.shape != expected and size != 1:
            results.append(BatchedValue(out, False))
            continue
        if out.shape != expected:
            if op.where is not None or out.size != math.prod(expected):
                raise ShapeError(f"{title} returned shape {show(out.shape)} for output {i}, expected {show(expected)}: "
                                 f"{size} samples of {show(spec.shape)}")
            out = out.reshape(expected)
        if op.where is not None and out.__class__ is Tensor and out._entry is None and MODE.recording and any(
                getattr(value, "_entry", None) is not None for value in ins) and op.differentiable:
            raise NotDifferentiableError(f"{title} computes output {i} without operators, so it has no "
                                         "gradient: write it in operators of its inputs, as op(…) itself")
        results.append(BatchedValue(out if out._dt == spec.dtype else out._cast(spec.dtype), True))
    return results


def _loop_over_samples(node: Node, ins: Sequence[BatchedValue], specs: Sequence[Spec], size: int) -> list[BatchedValue]:
    """The outputs, computed in a loop over the samples."""
    op = node.op
    assert op is not None
    if size == 0:
        return [BatchedValue(create(ops._zeros, shape=(0, *(spec.shape or ())), dtype=spec.dtype), True)
                for spec in specs]
    rows = [all_outputs(op, node.attrs, node.keywords, [value[i] if batched else value for value, batched in ins])
            for i in range(size)]
    return [BatchedValue(ops.stack(*[as_tensor(out) for out in column], axis=0, num_args=size), True)
            for column in zip(*rows)]


def _body(node: Node, ins: Sequence[BatchedValue], specs: Sequence[Spec], size: int) -> list[BatchedValue]:
    """The outputs, computed by the body of an operator."""
    op = node.op
    assert op is not None
    ctx = getattr(ins[0].value, "_ctx", None) or current_context()
    sample = [Spec(value.shape[batched:], value._dt) for value, batched in ins]
    use = Use(op.name, node.tags, node.where, ctx, node.in_training(True), sample, list(specs), {})
    body, slots, heads = trace_body(op, node.attrs, use)
    values = dict(zip(slots, ins))
    values.update({(variable, 0): BatchedValue(as_tensor(array), False) for variable, array in body.arrays.items()})
    replay(reachable(body.nodes, heads), values, body.specs, size)
    return [values[head] for head in heads]


# --------------------------------------------------------------------------------------- gradients of their own


class _WithGradient(Cell):
    """A computation on all samples with its own gradient.

    Parameters
    ----------
    forward : function of tensors
        Returns a list of tensors.
    backward : function of the output gradients, tensors and outputs
        Returns a gradient for each tensor.
    """

    _has_mode = False

    def __init__(self, forward: Callable[..., Any], backward: Callable[..., Any]):
        super().__init__(auto_prefix=False)
        self._forward, self._backward = forward, backward

    def construct(self, *values: Any) -> Any:
        return self._forward(values)

    def bprop(self, *values: Any) -> Any:
        *ins, outs, g = values
        return self._backward(g if isinstance(g, tuple) else (g,), ins, outs)


def _application(node: Node, ins: Sequence[BatchedValue], size: int) -> list[BatchedValue]:
    """The outputs of an application node, with the user's gradient if there is one."""
    op, record = node.op, node.attrs.get("record")
    assert op is not None and op.rules.inline is not None
    if not isinstance(record, Application) or record.body is None:
        _, entries = op.rules.inline(node.attrs, node.inputs, {})
        by_entry = dict(zip(node.inputs, ins))
        return [by_entry[entry] for entry in entries]
    body, count, shown = record.body, record.count, len(record.outs)

    def forward(values: Sequence[BatchedValue]) -> list[BatchedValue]:
        entries = dict(zip([(variable, 0) for variable in record.variables], values))
        replay(body.nodes, entries, body.specs, size)
        return [entries[head] for head in record.heads]

    def gradient(out_grads: Sequence[Any], values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        gradients, weights = record.compute(out_grads[:record.visible], values[:count], outs[:shown])
        by_weight = {id(weight): value for weight, value in zip(record.internal, weights)}
        return [*gradients, *[by_weight.get(id(array)) for array in record.arrays]]

    return _outputs_with_gradient(forward, gradient, ins, size, record.title)


def _user_operator_outputs(node: Node, ins: Sequence[BatchedValue], specs: Sequence[Spec],
                           size: int) -> list[BatchedValue]:
    """The outputs of a user's operator, computed by its traced body, with the user's gradient if there is one."""
    op: Any = node.op

    def forward(values: Sequence[BatchedValue]) -> list[BatchedValue]:
        return _body(node, values, specs, size)

    def gradient(out_grads: Sequence[Any], values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        return op.differentiate(out_grads[0] if len(out_grads) == 1 else tuple(out_grads), values, outs, node.attrs,
                                [is_floating(value._dt) for value in values], node.in_training(True))

    return _outputs_with_gradient(forward, gradient, ins, size, op.op_type)


def _outputs_with_gradient(forward: Callable[[Sequence[BatchedValue]], list[BatchedValue]],
                           gradient: Callable[..., list[Any]],
                           ins: Sequence[BatchedValue], size: int, title: str) -> list[BatchedValue]:
    """The outputs for all samples, with a gradient of their own.

    Parameters
    ----------
    forward : function of values of all samples
        Returns the outputs.
    gradient : function of output gradients, inputs and outputs of one sample
        Returns a gradient for each input, None where there is none.
    """
    if STATE.trace is None and not MODE.recording:
        return forward(ins)
    batched = [batched_input.batched for batched_input in ins]
    some = any(batched)

    def values_of(results: Sequence[BatchedValue]) -> list[Any]:
        """Values of the results; where some have an axis of samples, the others are repeated along one."""
        return [value if is_batched or not some else
                ops.broadcast_to(value.reshape((1, *value.shape)), shape=(size, *value.shape))
                for value, is_batched in results]

    def run(values: Sequence[Any]) -> list[Any]:
        return values_of(forward(list(map(BatchedValue, values, batched))))

    def back(g: Sequence[Any], values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        def of_one(*sample: Any) -> list[Any]:
            out_grads, inputs, results = sample[:len(g)], sample[len(g):len(g) + len(values)], sample[-len(outs):]
            return [ops.zeros_like(value) if grad is None else grad
                    for grad, value in zip(gradient(out_grads, inputs, results), inputs)]

        batched_values = [BatchedValue(value, some) for value in (*g, *outs)]
        batched_values[len(g):len(g)] = map(BatchedValue, values, batched)
        # The caller that fits gradients to their inputs sums gradients of an input that samples share.
        return values_of(map_samples(of_one, batched_values, size, title)[0])

    outs = bprop.apply(_WithGradient(run, back), tuple([batched_input.value for batched_input in ins]), {})
    return [BatchedValue(out, some) for out in outs]


# --------------------------------------------------------------------------------------------------- functions


class SampleTracer(FunctionTracer):
    """Traces a function with one sample, and applies its nodes to all samples.

    Attributes
    ----------
    samples : dict of Entry to BatchedValue
        Values of the inputs that have an axis of samples.
    """

    def __init__(self, title: str, parent: FunctionTracer | None):
        super().__init__(title, parent)
        self.assigns = False
        self.samples: dict[Entry, BatchedValue] = {}

    def outside(self) -> dict[Entry, BatchedValue]:
        """Values of captured variables: arrays, and values of the surrounding trace."""
        values = {(node, 0): BatchedValue(as_tensor(array), False) for node, array in self.arrays.items()}
        values.update({(node, 0): BatchedValue(value, False) for node, value in self.outer.items()})
        return values

    def ask(self, value: Any, title: str) -> Any:
        """Give Python the elements of a tensor that all samples share."""
        entry = self.read(value)._entry
        nodes = reachable(self.nodes, [entry])
        if not self.samples.keys() & {entry, *[source for node in nodes for source in node.inputs]}:
            values = self.outside()
            with untraced() if self.parent is None else self.parent:
                replay(nodes, values, self.specs, 1)
                number, drawn = values[entry]
                if not drawn:
                    return TENSOR_READS[title].of(number) if self.parent is None else self.parent.ask(number, title)
        raise TraceError(f"{title} reads the values of one sample in {self.title}, which computes all samples at "
                         "once. Use ops.select for a choice of values, or a plain loop over the samples")

    def leave(self, reason: str) -> NoReturn:
        """Refuse an operation that a graph cannot express."""
        raise TraceError(f"{self.title} computes all samples at once, and cannot do so here: {reason}")


def map_samples(function: Callable[..., Any], values: Sequence[BatchedValue], size: int, title: str
                ) -> tuple[list[BatchedValue], Structure]:
    """The results of a function of one sample, for all samples, and their nesting."""
    outer = STATE.trace
    trace = SampleTracer(title, outer)
    arguments: list[Any] = []
    for i, (value, batched) in enumerate(values):
        if batched:
            name = f"sample{i}" if outer is None else outer.unique("sample")
            slot = trace.input(name, value.shape[1:], value._dt)
            trace.samples[slot._entry] = BatchedValue(value, True)
            trace.caller_tensors[id(slot)] = slot
            arguments.append(slot)
        else:
            arguments.append(value)
    with trace:
        leaves: list[Any] = []
        structure = tree.flatten(function(*arguments), leaves)
        heads = [trace.read(leaf)._entry for leaf in leaves]
    for parameter in trace.updated.values():
        raise ArgumentError(f"{title} assigns {getattr(parameter, 'name', 'a tensor')}, which would differ from "
                            "sample to sample: return the new value")
    entries = {**trace.samples, **trace.outside()}
    with override(MODE, np_shape=True):
        replay(reachable(trace.nodes, heads), entries, trace.specs, size)
    argument_ids = {id(value) for value, _ in values}
    results = [BatchedValue(ops._copy(value) if id(value) in argument_ids else value, batched)
               for value, batched in map(entries.__getitem__, heads)]
    if outer is not None and not MODE.recording:
        results = [BatchedValue(ops.BlockGrad(value), batched) for value, batched in results]
    return results, structure

"""Translation of graphs to another library's own operations, so that it fuses, differentiates and places them itself.

A ``Dialect`` has a library's operations for element-wise instructions, and for the few functions in which the table of
operators is written. Nodes are applied one by one to the library's values; a traced body is expanded. An operator
without a translation raises ``Untranslatable``, and the caller then calls the operator.

The library differentiates the operations of the table. They are chosen so that the derivative is the one of the
operator here, also where both arguments of a maximum are equal. A gradient that a user wrote is translated, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from opreg.ndarray.bodies import Traced, Use, trace_body
from opreg.ndarray.context import cpu
from opreg.ndarray.eager import infer_outputs

from ..core.graph import Entry, Node
from ..core.invalidation import EDITION, keep, operator_cache
from ..core.op import Op
from ..core.rules import enter_under
from ..core.spec import Shape, Spec, check_axes, is_floating, is_known
from ..core.subgraph import Subgraph, rule_graph, subgraph
from ..core.tracing import NeedsNumbers, TraceError
from ..custom.function import FunctionUse
from ..custom.gradient import GradientUse

__all__ = ["Dialect", "NAMED", "TABLE", "Untranslatable", "may_translate", "trace_of", "translate"]


class Untranslatable(Exception):
    """An operator has no translation."""


class Dialect(Protocol):
    """The operations of a library that translations use; arguments are NumPy's."""

    #: Element-wise instructions, by the names of primitives.
    primitives: Mapping[str, Callable[..., Any]]

    def spec(self, x: Any) -> Spec:
        """Shape and dtype of a value."""

    def cast(self, x: Any, dtype: np.dtype) -> Any:
        """The same values in another dtype."""

    def array(self, numbers: np.ndarray, like: Any) -> Any:
        """Host values as a constant, on the device of ``like``."""

    def number(self, value: float, like: Any) -> Any:
        """A scalar constant in the dtype of ``like``, on its device."""

    def stop(self, x: Any) -> Any:
        """The same values without a gradient."""

    def reshape(self, x: Any, shape: Shape) -> Any:
        """The same values in another shape."""

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Permute the axes."""

    def broadcast(self, x: Any, shape: Shape) -> Any:
        """Broadcast to a shape."""

    def sum(self, x: Any, axes: Sequence[int]) -> Any:
        """Sum along some axes, which are kept with length one, in the dtype of ``x``."""

    def prod(self, x: Any, axes: Sequence[int]) -> Any:
        """Product along some axes, which are kept with length one."""

    def max(self, x: Any, axes: Sequence[int]) -> Any:
        """Maximum along some axes, which are kept with length one."""

    def min(self, x: Any, axes: Sequence[int]) -> Any:
        """Minimum along some axes, which are kept with length one."""

    def concat(self, xs: Sequence[Any], axis: int) -> Any:
        """Concatenate along an axis."""

    def flip(self, x: Any, axes: Sequence[int]) -> Any:
        """Reverse along some axes."""

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """``x`` where a boolean condition holds, ``y`` elsewhere."""

    def matmul(self, x: Any, y: Any) -> Any:
        """Matrix product, with NumPy's rules."""

    def softmax(self, x: Any, axis: int) -> Any:
        """Softmax along an axis."""

    def log_softmax(self, x: Any, axis: int) -> Any:
        """Logarithm of the softmax."""

    def subscript(self, x: Any, key: tuple[Any, ...]) -> Any:
        """``x[key]`` with numbers, slices, None and ``...``; steps are positive."""

    def elementwise(self, forward: Callable[..., Any], pull: Callable[..., Any], xs: Sequence[Any]) -> Any:
        """``forward(*xs)`` of values of one shape, where ``pull(i, g, xs, y)`` is ``g`` times the derivative in
        argument ``i``."""

    def with_gradient(self, forward: Callable[..., Sequence[Any]], backward: Callable[..., Sequence[Any]],
                      xs: Sequence[Any]) -> Sequence[Any]:
        """``forward(*xs)``, where ``backward(heads, xs, outs)`` gives the gradients of its floating arguments."""


# ----------------------------------------------------------------------------------------------- operators

#: Translations of operators: functions of the dialect, the attributes, the shapes and dtypes of the outputs, and the
#: inputs.
TABLE: dict[str, Callable[..., Any]] = {}


_says = enter_under(TABLE)


@_says("_copy")
def _identity(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    return x


@_says("BlockGrad")
def _stop(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    return d.stop(x)


@_says("Reshape", "Flatten", "expand_dims", "squeeze", "_np_reshape", "reshape_like")
def _reshape(d: Dialect, attrs: Any, outs: list[Spec], x: Any, *like: Any) -> Any:
    return d.reshape(x, _shape(outs[0]))


@_says("transpose")
def _transpose(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    rank = len(_shape(d.spec(x)))
    return d.transpose(x, [axis % rank for axis in attrs["axes"]] or [*reversed(range(rank))])


@_says("SwapAxis")
def _swap_axes(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    axes = [*range(len(_shape(d.spec(x))))]
    first, second = attrs["dim1"], attrs["dim2"]
    axes[first], axes[second] = axes[second], axes[first]
    return d.transpose(x, axes)


@_says("broadcast_to", "_np_broadcast_to", "broadcast_axis", "broadcast_like")
def _broadcast(d: Dialect, attrs: Any, outs: list[Spec], x: Any, *like: Any) -> Any:
    return d.broadcast(x, _shape(outs[0]))


@_says("_reduce_like")
def _reduce_like(d: Dialect, attrs: Any, outs: list[Spec], x: Any, like: Any) -> Any:
    shape, target = _shape(d.spec(x)), _shape(outs[0])
    padded = (1,) * (len(shape) - len(target)) + target
    axes = [i for i, (dim, target_dim) in enumerate(zip(shape, padded)) if dim != target_dim]
    return d.reshape(d.sum(x, axes) if axes else x, target)


@_says("Cast", "amp_cast")
def _cast(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    before, after = _dtype(d.spec(x)), _dtype(outs[0])
    if not is_floating(after) and is_floating(before):  # booleans, and integers rounded towards zero
        x = d.stop(x)
    return d.cast(x, after)


def _fill_with(value: float) -> Callable[..., Any]:
    return lambda d, attrs, outs, x: d.broadcast(d.cast(d.number(value, x), _dtype(outs[0])), _shape(outs[0]))


TABLE.update(zeros_like=_fill_with(0.0), ones_like=_fill_with(1.0))


def _axes_of(d: Dialect, attrs: Any, x: Any, name: str) -> tuple[int, ...]:
    rank, axis = len(_shape(d.spec(x))), attrs["axis"]
    if axis == () and name.startswith("_np"):
        return ()
    axes = check_axes(axis, rank)
    if attrs.get("exclude") and axis is not None and axis != ():
        return tuple([i for i in range(rank) if i not in axes])
    return axes


def _keeps_float_dtype(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> None:
    """Reductions are translated for floating values with an unchanged dtype."""
    if _dtype(d.spec(x)) != _dtype(outs[0]) or not is_floating(_dtype(outs[0])):
        raise Untranslatable
    if attrs.get("initial") is not None or math.prod(_shape(d.spec(x))) == 0:
        raise Untranslatable


@_says("sum", "_np_sum", "mean", "_npi_mean", "prod", "_np_prod")
def _reduce(d: Dialect, attrs: Any, outs: list[Spec], x: Any, name: str) -> Any:
    _keeps_float_dtype(d, attrs, outs, x)
    axes = _axes_of(d, attrs, x, name)
    if not axes:
        return d.reshape(x, _shape(outs[0]))
    result = d.prod(x, axes) if "prod" in name else d.sum(x, axes)
    if "mean" in name:
        shape = _shape(d.spec(x))
        result = result / math.prod([shape[i] for i in axes])
    return d.reshape(result, _shape(outs[0]))


@_says("max", "min", "_np_max", "_np_min")
def _extreme(d: Dialect, attrs: Any, outs: list[Spec], x: Any, name: str) -> Any:
    """Each of several equal extrema gets the whole gradient; with NumPy's names they share it."""
    _keeps_float_dtype(d, attrs, outs, x)
    axes = _axes_of(d, attrs, x, name)
    if not axes:
        return d.reshape(x, _shape(outs[0]))
    largest = d.max if "max" in name else d.min
    if name.startswith("_np"):
        return d.reshape(largest(x, axes), _shape(outs[0]))
    still = d.stop(x)
    top = largest(still, axes)
    return d.reshape(top + d.sum(d.where(still == top, x - still, d.number(0.0, x)), axes), _shape(outs[0]))


@_says("Concat", "stack")
def _join(d: Dialect, attrs: Any, outs: list[Spec], *xs: Any, name: str) -> Any:
    rank = len(_shape(outs[0]))
    if name == "Concat":
        return d.concat(xs, attrs["dim"] % rank)
    axis = attrs["axis"] % rank
    shape = _shape(outs[0])[:axis] + (1,) + _shape(outs[0])[axis + 1:]
    return d.concat([d.reshape(x, shape) for x in xs], axis)


@_says("SliceChannel")
def _split(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    shape = _shape(d.spec(x))
    axis = attrs["axis"] % len(shape)
    step = shape[axis] // attrs["num_outputs"]
    return [d.reshape(d.subscript(x, (slice(None),) * axis + (slice(i * step, (i + 1) * step),)), _shape(out))
            for i, out in enumerate(outs)]


@_says("reverse")
def _reverse(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    return d.flip(x, check_axes(attrs["axis"], len(_shape(d.spec(x)))))


@_says("slice_axis")
def _slice_axis(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    axis = attrs["axis"] % len(_shape(d.spec(x)))
    return _cut(d, x, (slice(None),) * axis + (slice(attrs["begin"], attrs["end"]),), outs)


@_says("_subscript")
def _subscript(d: Dialect, attrs: Any, outs: list[Spec], x: Any) -> Any:
    return _cut(d, x, attrs["key"], outs)


def _cut(d: Dialect, x: Any, key: Any, outs: list[Spec]) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    if not all(part is None or part is Ellipsis or type(part) is int
               or (isinstance(part, slice) and (part.step is None or part.step > 0)) for part in parts):
        raise Untranslatable
    return d.reshape(d.subscript(x, parts), _shape(outs[0]))


@_says("where")
def _where(d: Dialect, attrs: Any, outs: list[Spec], condition: Any, x: Any, y: Any) -> Any:
    """A vector selects rows."""
    shape = _shape(d.spec(condition))
    condition = d.reshape(condition, shape + (1,) * (len(_shape(outs[0])) - len(shape)))
    return d.where(condition != 0, x, y)


@_says("_npi_where")
def _where_broadcast(d: Dialect, attrs: Any, outs: list[Spec], condition: Any, x: Any, y: Any) -> Any:
    return d.where(condition != 0, x, y)


@_says("_npi_where_lscalar")
def _where_left(d: Dialect, attrs: Any, outs: list[Spec], condition: Any, x: Any) -> Any:
    return d.where(condition != 0, d.number(attrs["scalar"], x), x)


@_says("_npi_where_rscalar")
def _where_right(d: Dialect, attrs: Any, outs: list[Spec], condition: Any, y: Any) -> Any:
    return d.where(condition != 0, y, d.number(attrs["scalar"], y))


@_says("softmax", "log_softmax", "softmin")
def _softmax(d: Dialect, attrs: Any, outs: list[Spec], x: Any, *length: Any, name: str) -> Any:
    if length or not is_floating(_dtype(d.spec(x))) or _dtype(outs[0]) != _dtype(d.spec(x)):
        raise Untranslatable
    x = -x if name == "softmin" else x
    x = x / attrs["temperature"] if attrs["temperature"] else x
    return (d.log_softmax if name == "log_softmax" else d.softmax)(x, attrs["axis"] % len(_shape(outs[0])))


@_says("FullyConnected")
def _dense(d: Dialect, attrs: Any, outs: list[Spec], x: Any, weight: Any, *bias: Any) -> Any:
    shape = _shape(d.spec(x))
    if attrs["flatten"]:
        x = d.reshape(x, (shape[0], math.prod(shape[1:])))
    result = d.matmul(x, d.transpose(weight, (1, 0)))
    return d.reshape(result + bias[0] if bias else result, _shape(outs[0]))


@_says("dot")
def _dot(d: Dialect, attrs: Any, outs: list[Spec], x: Any, y: Any) -> Any:
    left, right = len(_shape(d.spec(x))), len(_shape(d.spec(y)))
    if attrs["transpose_a"] and left > 1:
        x = d.transpose(x, [*range(1, left), 0])
    if attrs["transpose_b"] and right > 1:
        y = d.transpose(y, [right - 1, *range(right - 1)])
    left_shape, right_shape = _shape(d.spec(x)), _shape(d.spec(y))
    product = d.matmul(d.reshape(x, (math.prod(left_shape[:-1]), left_shape[-1])),
                       d.reshape(y, (right_shape[0], math.prod(right_shape[1:]))))
    return d.reshape(product, _shape(outs[0]))


@_says("batch_dot", "_linalg_gemm2")
def _batch_dot(d: Dialect, attrs: Any, outs: list[Spec], x: Any, y: Any) -> Any:
    if attrs.get("axis", -2) != -2:
        raise Untranslatable

    def turned(value: Any, turn: bool) -> Any:
        rank = len(_shape(d.spec(value)))
        return d.transpose(value, [*range(rank - 2), rank - 1, rank - 2]) if turn else value

    product = d.matmul(turned(x, attrs["transpose_a"]), turned(y, attrs["transpose_b"]))
    return product * attrs["alpha"] if attrs.get("alpha", 1.0) != 1.0 else product


@_says("_npi_matmul")
def _matmul(d: Dialect, attrs: Any, outs: list[Spec], x: Any, y: Any) -> Any:
    return d.matmul(x, y)


#: Rules that receive the name under which they are called.
NAMED = {_reduce, _extreme, _join, _softmax}
#: Instructions whose derivative is the same in all libraries, at all values.
_SMOOTH = frozenset({"add", "subtract", "multiply", "negative", "square", "exp", "expm1", "log", "log1p", "sin", "cos",
                     "sinh", "cosh", "tanh", "sqrt"})


def _shape(spec: Spec) -> Shape:
    assert spec.shape is not None
    return spec.shape


def _dtype(spec: Spec) -> np.dtype:
    assert spec.dtype is not None
    return spec.dtype


# --------------------------------------------------------------------------------------------------- nodes


def may_translate(nodes: Sequence[Node]) -> bool:
    """Whether all nodes may have a translation; for a traced body this is known only after tracing."""
    return all(node.op is None or node.op.traits.traced or node.built_in in TABLE
               or (node.op.rules.expression is not None and node.op.where is None) for node in nodes)


class _SpecInput(NamedTuple):
    """An input as rules for shapes and dtypes look at it."""

    shape: Shape
    dtype: np.dtype


def translate(d: Dialect, nodes: Sequence[Node], values: dict[Entry, Any], heads: Sequence[Entry], is_train: bool
              ) -> list[Any]:
    """Outputs of a graph, computed with the library's values.

    Parameters
    ----------
    d : Dialect
        The library.
    nodes : sequence of Node
        Nodes in the order of computation.
    values : dict of entry to value
        Values of all variables; outputs of nodes are added.
    heads : sequence of entry
        The requested outputs.
    is_train : bool
        The mode.

    Raises
    ------
    Untranslatable
        When a node has no translation.
    """
    for node in nodes:
        if node.op is None:
            continue
        ins = [values[entry] for entry in node.inputs]
        for i, out in enumerate(_apply_operator(d, node.op, node.attrs, ins, is_train)):
            values[node, i] = out
    return [values[entry] for entry in heads]


def _apply_operator(d: Dialect, op: Op, attrs: Any, ins: list[Any], is_train: bool) -> Sequence[Any]:
    """Outputs of one operator of values."""
    values: list[Any] = [_SpecInput(_shape(d.spec(x)), _dtype(d.spec(x))) for x in ins]
    shapes, dtypes = infer_outputs(op, attrs, values)
    if not all(map(is_known, shapes)):
        raise Untranslatable
    outs = list(map(Spec, shapes, dtypes))
    if op.where is not None or op.traits.traced:
        return _translate_body(d, op, attrs, ins, outs, is_train) if op.traits.traced else _refuse(op)
    if op.name in TABLE:
        rule = TABLE[op.name]
        try:
            result = rule(d, attrs, outs, *ins, **({"name": op.name} if rule in NAMED else {}))
            return result if isinstance(result, list) else [result]
        except Untranslatable:
            if op.rules.expression is None:
                raise
    expression = op.rules.expression(attrs) if op.rules.expression is not None else None
    if expression is None or len(outs) != 1:
        return _refuse(op)
    return [_compute_expression(d, op, attrs, expression, ins, outs[0], is_train)]


def _refuse(op: Op) -> Sequence[Any]:
    raise Untranslatable(op.name)


def _compute_expression(d: Dialect, op: Op, attrs: Any, expression: Any, ins: Sequence[Any], out: Spec,
                        is_train: bool) -> Any:
    """Outputs of an element-wise operator of values; its derivative is the operator's own."""
    dtypes = {_dtype(d.spec(x)) for x in ins}
    if dtypes != {_dtype(out)} or not is_floating(_dtype(out)):
        raise Untranslatable
    if any(prim.name not in d.primitives for prim, _ in expression.code):
        raise Untranslatable(op.name)

    def forward(*xs: Any) -> Any:
        registers = list(xs)
        for prim, args in expression.code:
            registers.append(d.primitives[prim.name](*[
                registers[arg] if type(arg) is int else d.number(arg, xs[0]) for arg in args]))
        result = expression.result
        return registers[result] if type(result) is int else d.broadcast(d.number(result, xs[0]), _shape(out))

    if len(expression.code) == 1 and expression.code[0].prim.name in _SMOOTH:
        return forward(*ins)

    def pull(i: int, g: Any, xs: Sequence[Any], y: Any) -> Any:
        needs = tuple([k == i for k in range(len(xs))])
        rule = subgraph(op, attrs, (True,), needs, is_train, lambda: [out] * (len(xs) + 2))
        place = rule.results[i]
        return _run_rule(d, rule, [g, *xs, y], is_train)[place] if place is not None else \
            d.broadcast(d.number(0.0, y), _shape(out))

    return d.elementwise(forward, pull, [d.broadcast(x, _shape(out)) for x in ins])


def _run_rule(d: Dialect, rule: Subgraph, values: list[Any], is_train: bool) -> list[Any]:
    """The values of all entries of a gradient rule, from its inputs."""
    for op, attrs, _, places, _ in rule.steps:
        values += _apply_operator(d, op, attrs, [values[i] for i in places], is_train)
    return values


def _translate_body(d: Dialect, op: Op, attrs: Any, ins: list[Any], outs: list[Spec], is_train: bool) -> Sequence[Any]:
    """Outputs of the body of a traced operator of values."""
    traced = trace_of(op, attrs, [d.spec(x) for x in ins], outs, is_train)
    body = traced.body

    def forward(*xs: Any) -> list[Any]:
        values: dict[Entry, Any] = dict(zip(traced.slots, xs))
        values.update({(node, 0): d.array(array.asnumpy(), ins[0] if ins else None)
                       for node, array in body.arrays.items()})
        return translate(d, body.nodes, values, traced.heads, is_train)

    derived = isinstance(attrs, GradientUse) or (isinstance(attrs, FunctionUse) and not attrs.has_rule)
    return forward(*ins) if derived else _by_rule(d, op, attrs, ins, outs, is_train, forward)


_BODIES = operator_cache(256, "bodies in other libraries")


def trace_of(op: Op, attrs: Any, ins: list[Spec], outs: list[Spec], is_train: bool) -> Traced:
    """The trace of a body for inputs of these specs, cached until a value that the body reads changes."""
    version = attrs.version(cpu(), [_SpecInput(_shape(spec), _dtype(spec)) for spec in ins])
    key, edition = (op, version, is_train, *ins), EDITION[0]
    traced = None if version is None else _BODIES[key]
    if traced is None:
        try:
            traced = trace_body(op, attrs, Use(op.name, {}, None, cpu(), is_train, ins, outs, {}))
        except (TraceError, NeedsNumbers) as error:  # the error becomes the reason that the caller gets
            raise Untranslatable from error
        if version is not None:
            keep(_BODIES, key, traced, edition)
    return traced


def _by_rule(d: Dialect, op: Op, attrs: Any, ins: list[Any], outs: list[Spec], is_train: bool,
             forward: Callable[..., list[Any]]) -> Sequence[Any]:
    """Outputs of ``forward`` of values, with the gradient that the operator has."""
    needs = [is_floating(_dtype(d.spec(x))) for x in ins]

    def backward(heads: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        specs = [*outs, *map(d.spec, xs), *outs]
        rule = rule_graph(op, attrs, [True] * len(outs), needs, is_train, specs)
        values = _run_rule(d, rule, [*heads, *xs, *ys], is_train)
        zeros = TABLE["zeros_like"]
        return [zeros(d, {}, [d.spec(x)], x) if place is None else values[place]
                for place, x, need in zip(rule.results, xs, needs) if need]

    return d.with_gradient(forward, backward, ins)

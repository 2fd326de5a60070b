"""The gradients of LayerNorm along any axis and of softmax_cross_entropy, as kernels of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.builtin.layers import layer_norm, losses
from opreg.builtin.layers.softmax import softmax_of
from opreg.builtin.optimizers import updating
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.spec import Shape
from opreg.elementwise.expression import equal, log, maximum, trunc
from opreg.elementwise.loops import folded
from opreg.elementwise.rows import RowExpression, RowLayout, column, row_mean, row_sum, trace_rows, traced

from .. import elementwise, updates
from ..compiler import attach, can_compile, keep_details
from ..folds import bound_fold, groups_of
from ..instructions import declines
from ..rows import bound_rows, bound_rows_with_sums
from ..sets import bound_sets

__all__: list[str] = []

_ELEMENT, _ROW, _COLUMN = RowLayout.ELEMENT, RowLayout.ROW, RowLayout.COLUMN
#: A row expression, and the shape to which data are reshaped; rows lie along the second axis of this shape.
Rows = tuple[RowExpression, Shape]


def _steps(call: Call) -> list[Callable]:
    rows, view = call.details
    ins = call.ins[:len(rows.inputs)]
    if len(view) == 2:
        count, n = view
        return [bound_rows(rows, ins, call.outs, count, n, call.xp)]
    return bound_sets(rows.expression, [array.reshape(view) for array in ins], rows.inputs,
                      [None if out is None else out.reshape(view) for out in call.outs], (1,), call.xp, call.scratch)


def _attach(op: Op, rows_of: Callable[[Call], Rows | str], steps: Callable[[Call], list[Callable]] = _steps) -> None:
    """Give an operator the kernel ``cuda``, whose steps compute rows."""

    def accepts(call: Call) -> str | None:
        return declines([*call.ins, *call.outs]) or keep_details(call, rows_of(call))

    attach(op, accepts, steps)


# --------------------------------------------------------------------------------- softmax_cross_entropy
# Their bodies look a label up in the softmax, which is written and read once more; here a kernel reads each row once.


def _costs(x: Any, label: Any) -> Any:
    return -log(maximum(row_sum(softmax_of(x) * equal(column(), trunc(label))), 1e-8))


def _slopes(g: Any, x: Any, label: Any) -> Any:
    return (softmax_of(x) - equal(column(), trunc(label))) * g


def _cost_steps(call: Call) -> list[Callable]:
    """Rows with a result for each element, or with one for all: the sum of the costs."""
    rows, (count, n) = call.details
    if rows.results[0] is _ELEMENT:
        return _steps(call)
    costs = call.scratch(32, (count,), np.dtype(np.float64 if call.ins[0].dtype.itemsize == 8 else np.float32))
    return [bound_rows(rows, call.ins, [costs], count, n, call.xp),
            *bound_fold(traced(row_sum, 1), [costs], [_ELEMENT], call.outs, [(count, True)], call.xp, call.scratch)]


_attach(losses.softmax_cross_entropy,
        lambda call: (trace_rows(_costs, (_ELEMENT, _ROW)), call.ins[0].shape), _cost_steps)
_attach(losses.backward_softmax_cross_entropy,
        lambda call: (trace_rows(_slopes, (RowLayout.CYCLE, _ELEMENT, _ROW)), call.ins[1].shape), _cost_steps)

# --------------------------------------------------------------------------------------------- LayerNorm


def _backward_layer_norm(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    return _normal_slope(g * gamma, (x - mean) * inverse, inverse)


def _with_sums(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    """The gradient of the data, and the terms whose sums over rows are the gradients of gamma and beta."""
    normal = (x - mean) * inverse
    return _normal_slope(g * gamma, normal, inverse), g * normal, g


def _layer_norm_sums(g: Any, x: Any, mean: Any, inverse: Any) -> Any:
    return row_sum(g * ((x - mean) * inverse)), row_sum(g)


def _row_vector_shape(view: Shape) -> Shape:
    """The shape of a vector along the second axis."""
    return (1, view[1], *(1,) * (len(view) - 2))


def _rows_of_gradient(call: Call) -> Rows | str:
    rows = trace_rows(_backward_layer_norm, (_ELEMENT, _ELEMENT, _COLUMN, _ROW, _ROW))
    return rows, folded(call.ins[1].shape, (call.attrs["axis"] % call.ins[1].ndim,))[0]


def _gradient_steps(call: Call) -> list[Callable]:
    rows, view = call.details
    if len(view) > 2:
        return _gradient_along(call, view)
    count, n = view
    g, data, _, mean, inverse = call.ins
    requested = [out is not None for out in call.outs[1:]]
    if any(requested) and call.outs[0] is not None:
        result = bound_rows_with_sums(trace_rows(_with_sums, rows.inputs), call.ins, call.outs[0], requested, count, n,
                                      call.xp, lambda i, *spec: call.scratch(300 + i, *spec))
        if result is not None:
            step, sums = result
            expression = traced(lambda *terms: tuple(map(row_sum, terms)), len(sums))
            return [step, *bound_fold(expression, sums, [_ELEMENT] * len(sums), [out for out in call.outs[1:]
                                                                                  if out is not None],
                                      groups_of(sums[0].shape, (0,)), call.xp, call.scratch)]
    steps = []
    if any(out is not None for out in call.outs[1:]):
        steps += bound_fold(traced(_layer_norm_sums, 4), [g, data, mean, inverse],
                            [_ELEMENT, _ELEMENT, _COLUMN, _COLUMN], call.outs[1:], [(count, True), (n, False)], call.xp,
                            call.scratch)
    if call.outs[0] is not None:  # last, since it may overwrite inputs of the sums
        steps.append(bound_rows(rows, call.ins, call.outs[:1], count, n, call.xp))
    return steps


def _normal(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    return (x - mean) * inverse, g * gamma


def _normal_sums(g: Any, normal: Any) -> Any:
    return row_sum(g * normal), row_sum(g)


def _normal_slope(scaled: Any, normal: Any, inverse: Any) -> Any:
    return (scaled - normal * row_mean(scaled * normal) - row_mean(scaled)) * inverse


def _gradient_along(call: Call, view: Shape) -> list[Callable]:
    """The gradient for sets along an axis that is not the last. The normalized values are computed first, since the
    sums along the other axes read them too."""
    keep = (view[0], 1, *view[2:])
    dtype = np.dtype(np.float64 if call.ins[1].dtype.itemsize == 8 else np.float32)
    normal, scaled = [call.scratch(400 + i, view, dtype) for i in range(2)]
    g, data, gamma, mean, inverse = [array.reshape(shape) for array, shape in zip(
        call.ins, (view, view, _row_vector_shape(view), keep, keep))]
    steps: list[Callable] = [elementwise.bound_to(traced(_normal, 5), [g, data, gamma, mean, inverse],
                                                  [normal, scaled], call.xp)]
    if any(out is not None for out in call.outs[1:]):
        others = [axis for axis in range(len(view)) if axis != 1]
        steps += bound_fold(traced(_normal_sums, 2), [g, normal], [_ELEMENT, _ELEMENT], call.outs[1:],
                            groups_of(view, others), call.xp, lambda i, *spec: call.scratch(500 + i, *spec))
    if call.outs[0] is not None:
        steps += bound_sets(traced(_normal_slope, 3), [scaled, normal, inverse], [_ELEMENT, _ELEMENT, _ROW],
                            [call.outs[0].reshape(view)], (1,), call.xp, call.scratch)
    return steps


_attach(layer_norm.backward_layer_norm, _rows_of_gradient, _gradient_steps)

# --------------------------------------------------------------------------------------- optimizer updates

updating.group_updaters.append(updating.GroupUpdater("cuda", can_compile, updates.move, updates.bind))

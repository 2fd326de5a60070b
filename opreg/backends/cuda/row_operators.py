"""softmax and its relatives along any axis, LayerNorm along the last, and their gradients, by rows and columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opreg.builtin.layers import layer_norm, losses
from opreg.builtin.layers.softmax import fold
from opreg.builtin.optimizers import updating
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.registry import REGISTERED
from opreg.core.spec import Shape
from opreg.elementwise.expression import equal, exp, log, sqrt, square, trunc
from opreg.elementwise.rows import Along, RowExpression, column, row_max, row_size, row_sum, trace_rows, traced

from . import updates
from .compiler import can_compile
from .folds import bound_fold
from .instructions import STORED
from .rows import bound_rows
from .sets import bound_sets

__all__: list[str] = []

_ELEMENT, _ROW, _COLUMN = Along.ELEMENT, Along.ROW, Along.COLUMN
#: Rows, and the shape that data are seen in: the axis that they lie along is the second, if not the last.
Rows = tuple[RowExpression, Shape]


def _steps(call: Call) -> list[Callable]:
    rows, view = call.found
    ins = call.ins[:len(rows.inputs)]
    if len(view) == 2:
        count, n = view
        return [bound_rows(rows, ins, call.outs, count, n, call.xp)]
    return bound_sets(rows.expression, [array.reshape(view) for array in ins], rows.inputs,
                      [None if out is None else out.reshape(view) for out in call.outs], (1,), call.xp, call.scratch)


def _attach(op: Op, rows_of: Callable[[Call], Rows | str], steps: Callable[[Call], list[Callable]] = _steps) -> None:
    """Give an operator the kernel ``cuda``: steps that compute rows."""

    def accepts(call: Call) -> str | None:
        reason = _declines(call)
        if reason is None:
            call.found = rows_of(call)
            reason = call.found if isinstance(call.found, str) else None
        return reason

    op.kernel("cuda", bound=True, accepts=accepts, serves=can_compile)(steps)


def _declines(call: Call) -> str | None:
    for array in (*call.ins, *call.outs):
        if array is not None and array.dtype.name not in STORED:
            return f"dtype {array.dtype}: {', '.join(STORED)} are compiled"
        if array is not None and not array.flags.c_contiguous:
            return "an array is not contiguous"
    return "nothing to compute" if math.prod(call.ins[0].shape) == 0 else None


def _last(rows: RowExpression, shape: Shape, axis: int) -> Rows | str:
    view = fold(shape, axis)
    return (rows, view) if len(view) == 2 else "its axis is not the last"


# ----------------------------------------------------------------------------------------------- softmax


def _softmax(x: Any, *, scale: float) -> Any:
    scaled = x * scale
    grown = exp(scaled - row_max(scaled))
    return grown / row_sum(grown)


def _log_softmax(x: Any, *, scale: float) -> Any:
    moved = x * scale - row_max(x * scale)
    return moved - log(row_sum(exp(moved)))


def _backward_softmax(g: Any, y: Any, *, scale: float) -> Any:
    return (g - row_sum(g * y)) * y * scale


def _backward_log_softmax(g: Any, y: Any, *, scale: float) -> Any:
    return (g - exp(y) * row_sum(g)) * scale


def _scaled(function: Callable, inputs: tuple[Along, ...], sign: float = 1.0) -> Callable[[Call], Rows | str]:
    def rows_of(call: Call) -> Rows | str:
        if len(call.ins) != len(inputs) and call.attrs.get("use_length"):
            return "lengths are given"
        rows = trace_rows(function, inputs, scale=sign / (call.attrs["temperature"] or 1.0))
        return rows, fold(call.ins[0].shape, call.attrs["axis"])

    return rows_of


def _activation(call: Call) -> Rows | str:
    axis = 1 if call.attrs["mode"] == "channel" else -1
    return trace_rows(_softmax, (_ELEMENT,), scale=1.0), fold(call.ins[0].shape, axis)


_attach(REGISTERED["softmax"], _scaled(_softmax, (_ELEMENT,)))
_attach(REGISTERED["softmin"], _scaled(_softmax, (_ELEMENT,), -1.0))
_attach(REGISTERED["log_softmax"], _scaled(_log_softmax, (_ELEMENT,)))
_attach(REGISTERED["SoftmaxActivation"], _activation)
_attach(REGISTERED["_backward_softmax"], _scaled(_backward_softmax, (_ELEMENT, _ELEMENT)))
_attach(REGISTERED["_backward_log_softmax"], _scaled(_backward_log_softmax, (_ELEMENT, _ELEMENT)))

# ----------------------------------------------------------------------------------------- SoftmaxOutput


def _backward_softmax_output(y: Any, label: Any, *, scale: float) -> Any:
    """Labels are class numbers; towards zero, and a number that is no class stands for none."""
    return (y - equal(column(), trunc(label))) * scale


def _softmax_output(call: Call) -> Rows | str:
    view = losses.softmax_view(call.ins[0].shape, call.attrs["multi_output"], call.attrs["preserve_shape"])
    return trace_rows(_softmax, (_ELEMENT,), scale=1.0), view


def _softmax_output_gradient(call: Call) -> Rows | str:
    declined = losses.plain_classes(call)
    if declined:
        return declined
    view, scale = losses.plain_scale(call)
    return trace_rows(_backward_softmax_output, (_ELEMENT, _ROW), scale=scale), view


_attach(REGISTERED["SoftmaxOutput"], _softmax_output)
_attach(REGISTERED["_backward_SoftmaxOutput"], _softmax_output_gradient)

# --------------------------------------------------------------------------------------------- LayerNorm


def _layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
    mean = row_sum(x) / row_size()
    moved = x - mean
    deviation = sqrt(row_sum(square(moved)) / row_size() + eps)
    return moved / deviation * gamma + beta, mean, deviation


def _backward_layer_norm(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    normal, scaled = (x - mean) * inverse, g * gamma
    return (scaled - normal * (row_sum(scaled * normal) / row_size()) - row_sum(scaled) / row_size()) * inverse


def _layer_norm_sums(g: Any, x: Any, mean: Any, inverse: Any) -> Any:
    return row_sum(g * ((x - mean) * inverse)), row_sum(g)


def _rows_of_layer_norm(call: Call) -> Rows | str:
    rows = trace_rows(_layer_norm, (_ELEMENT, _COLUMN, _COLUMN), eps=call.attrs["eps"])
    return _last(rows, call.ins[0].shape, call.attrs["axis"])


_attach(layer_norm.layer_norm, _rows_of_layer_norm)


def _rows_of_gradient(call: Call) -> Rows | str:
    rows = trace_rows(_backward_layer_norm, (_ELEMENT, _ELEMENT, _COLUMN, _ROW, _ROW))
    return _last(rows, call.ins[1].shape, call.attrs["axis"])


def _gradient_steps(call: Call) -> list[Callable]:
    rows, (count, n) = call.found
    g, data, _, mean, inverse = call.ins
    steps = []
    if any(out is not None for out in call.outs[1:]):
        steps += bound_fold(traced(_layer_norm_sums, 4), [g, data, mean, inverse],
                            [_ELEMENT, _ELEMENT, _COLUMN, _COLUMN], call.outs[1:], [(count, True), (n, False)], call.xp,
                            call.scratch)
    if call.outs[0] is not None:  # last: it may take over the memory of what the sums read
        steps.append(bound_rows(rows, call.ins, call.outs[:1], count, n, call.xp))
    return steps


_attach(layer_norm.backward_layer_norm, _rows_of_gradient, _gradient_steps)

# --------------------------------------------------------------------------------------- optimizer updates

updating.movers.append(updating.Mover("cuda", can_compile, updates.move, updates.bind))

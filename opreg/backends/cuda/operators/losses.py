"""Losses: costs and gradients of rows of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.builtin.layers import losses
from opreg.core.launch import Call
from opreg.elementwise.expression import equal, exp, log, maximum, trunc, where
from opreg.elementwise.rows import RowLayout, column, row_max, row_sum, trace_rows, traced

from ..compiler import attach, in_pieces
from ..folds import bound_fold
from ..rows import bound_rows

__all__: list[str] = []

_ELEMENT, _ROW, _CYCLE = RowLayout.ELEMENT, RowLayout.ROW, RowLayout.CYCLE


# --------------------------------------------------------------------------------------- rows of scores
# Labels are class indices; they are rounded towards zero, and a value outside the classes stands for no class.


def _cross_entropy(x: Any, label: Any) -> Any:
    grown = exp(x - row_max(x))
    picked = row_sum(where(equal(column(), trunc(label)), grown, 0.0)) / row_sum(grown)
    return -log(maximum(picked, 1e-8))


def _backward_cross_entropy(g: Any, x: Any, label: Any) -> Any:
    grown = exp(x - row_max(x))
    return (grown / row_sum(grown) - equal(column(), trunc(label))) * g


def _cross_entropy_steps(call: Call) -> list[Callable]:
    data = call.ins[0]
    count, n = data.shape
    costs = call.scratch(32, (count,), np.dtype(np.float64 if data.dtype.itemsize == 8 else np.float32))
    rows = trace_rows(_cross_entropy, (_ELEMENT, _ROW))
    return [bound_rows(rows, call.ins, [costs], count, n, call.xp),
            *bound_fold(traced(row_sum, 1), [costs], [_ELEMENT], call.outs, [(count, True)], call.xp, call.scratch)]


def _backward_cross_entropy_steps(call: Call) -> list[Callable]:
    rows = trace_rows(_backward_cross_entropy, (_CYCLE, _ELEMENT, _ROW))
    count, n = call.ins[1].shape
    return [bound_rows(rows, call.ins, call.outs, count, n, call.xp)]


attach(losses.softmax_cross_entropy, in_pieces, _cross_entropy_steps)
attach(losses.backward_softmax_cross_entropy, in_pieces, _backward_cross_entropy_steps)

"""BatchNorm and its variants, GroupNorm, InstanceNorm, L2Normalization and the parts of their gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.builtin.layers import batch_norm
from opreg.builtin.layers.normalize import layout_of
from opreg.core.launch import Call
from opreg.core.spec import Shape
from opreg.elementwise.expression import maximum, sqrt, square
from opreg.elementwise.rows import RowLayout, row_mean, row_size, traced
from opreg.typing import Array

from .. import elementwise
from ..compiler import attach, in_pieces
from ..sets import bound_sets

_ELEMENT, _SET, _CYCLE = RowLayout.ELEMENT, RowLayout.ROW, RowLayout.CYCLE
# Means are first estimated from one sample in 16.
_PART = 16


def _sets(call: Call, function: Callable[..., Any], ins: Sequence[tuple[Array, RowLayout]],
          outs: Sequence[Array | None], axes: Sequence[int], **settings: Any) -> list[Callable]:
    return bound_sets(traced(function, len(ins), **settings), [array for array, _ in ins], [role for _, role in ins],
                      outs, axes, call.xp, call.scratch)


def _elementwise(call: Call, function: Callable[..., Any], ins: Sequence[Array], outs: Sequence[Array | None],
                 **settings: Any) -> Callable:
    return elementwise.bound_to(traced(function, len(ins), **settings), ins, outs, call.xp)


def _view(out: Array | None, shape: tuple[int, ...]) -> Array | None:
    return None if out is None else out.reshape(shape)


# --------------------------------------------------------------------------------------------- BatchNorm


def _normalize_in_training(x: Any, *rest: Any, eps: float, momentum: float, scaled: bool, relu: bool, variance: bool,
                           population: bool
                           ) -> tuple[Any, ...]:
    *gamma, beta, moving_mean, moving_var, near = rest
    apart = row_mean(x - near)
    mean = near + apart
    var = maximum(row_mean(square(x - near)) - square(apart), 0.0)
    inverse = 1.0 / sqrt(var + eps)
    y = (x - mean) * (inverse * gamma[0] if scaled else inverse) + beta
    new = moving_var * momentum + var * (1.0 - momentum)
    if population:
        new = new + var * (1.0 - momentum) / maximum(row_size() - 1.0, 1.0)
    return (maximum(y, 0.0) if relu else y, mean, var if variance else inverse,
            moving_mean * momentum + mean * (1.0 - momentum), new)


def _factors(*vectors: Any, eps: float, scaled: bool) -> tuple[Any, Any]:
    *gamma, beta, mean, var = vectors
    scale = 1.0 / sqrt(var + eps)
    scale = scale * gamma[0] if scaled else scale
    return scale, beta - mean * scale


def _scale_and_shift(x: Any, scale: Any, offset: Any, *, relu: bool) -> Any:
    y = x * scale + offset
    return maximum(y, 0.0) if relu else y


def _given(mean: Any, var: Any, *, eps: float, variance: bool) -> tuple[Any, Any]:
    return mean * 1.0, var * 1.0 if variance else 1.0 / sqrt(var + eps)


def _estimated_means(call: Call, x: Array, keep: Shape, axes: Sequence[int]) -> tuple[list[Callable], Array]:
    """Steps that compute estimates of the means, and their array: the means of a part of the samples.

    With these, mean and variance of the differences are computed in one pass over the data. The rounding error of a
    variance grows by at most ``_PART`` units in the last place.
    """
    part = x[:-(-x.shape[0] // _PART)]
    near = call.scratch(600, keep, np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32))
    return bound_sets(traced(row_mean, 1), [part], [_ELEMENT], [near], axes, call.xp,
                      lambda i, *spec: call.scratch(700 + i, *spec)), near


def _batch_norm(relu: bool = False, variance: bool = False, population: bool = False
                ) -> Callable[[Call], list[Callable]]:
    def steps(call: Call) -> list[Callable]:
        attrs = call.attrs
        data, gamma, beta, moving_mean, moving_var = call.ins
        layout = layout_of(data.shape, attrs.get("axis", 1))
        scaled = not attrs.get("fix_gamma", False)
        vectors = [*([gamma] if scaled else []), beta, moving_mean, moving_var]
        ins = [(data.reshape(layout.view), _ELEMENT), *[(vector.reshape(layout.keep), _SET) for vector in vectors]]
        y = _view(call.outs[0], layout.view)
        axes = layout.axes
        if not call.is_train or attrs.get("use_global_stats", False):
            factors = [call.scratch(i, layout.keep, beta.dtype) for i in range(2)]
            result = [_elementwise(call, _factors, [array for array, _ in ins[1:]], factors, eps=attrs["eps"],
                                   scaled=scaled),
                      _elementwise(call, _scale_and_shift, [ins[0][0], *factors], [y],
                                   relu=relu)] if y is not None else []
            if any(out is not None for out in call.outs[1:]):
                result.append(_elementwise(call, _given, [moving_mean, moving_var], call.outs[1:], eps=attrs["eps"],
                                           variance=variance))
            return result
        new = [call.xp.empty_like(state) for state in call.states]
        before, near = _estimated_means(call, ins[0][0], layout.keep, axes)
        statistics = [_view(out, layout.keep) for out in (*call.outs[1:], *new)]
        result = _sets(call, _normalize_in_training, [*ins, (near, _SET)], [y, *statistics, *[None] * (2 - len(new))],
                       axes,
                       eps=attrs["eps"], momentum=attrs["momentum"], scaled=scaled, relu=relu, variance=variance,
                       population=population)
        if new:
            call.store = functools.partial(_store, call.states, new)
        return [*before, *result]

    return steps


def _store(states: Sequence[Array], new: Sequence[Array]) -> None:
    for state, values in zip(states, new):
        state[...] = values


attach(batch_norm.batch_norm, in_pieces, _batch_norm())
attach(batch_norm.batch_norm_with_relu, in_pieces, _batch_norm(relu=True))
attach(batch_norm.batch_norm_v1, in_pieces, _batch_norm(variance=True))
attach(batch_norm.sync_batch_norm, in_pieces, _batch_norm(variance=True))
attach(batch_norm.nn_batch_norm, in_pieces, _batch_norm(population=True))

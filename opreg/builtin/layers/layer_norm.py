"""LayerNorm, InstanceNorm and GroupNorm: normalisation by statistics within one sample."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ...core.attrs import Amount, Positive
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import check_axis
from ...core.value import Value
from ...elementwise.expression import sqrt, square
from ...elementwise.loops import Sets, sets
from ...elementwise.rows import RowLayout, column_sum, row_mean
from ..forms import declare_form
from ..looped import looped
from ..samples import along, repeated, size_of
from .normalize import (
    backward_normalize_grad,
    backward_sums_grad,
    count_of,
    from_statistics,
)

__all__: list[str] = []


def _moved(dx: Value, data: Value, mean: Value, g_mean: Value | None, slope: Value | None, words: dict[str, Any]
           ) -> Value:
    """``dx`` plus the gradients through the two statistics, if there are any."""
    if g_mean is None and slope is None:
        return dx
    count = count_of(data, mean, words)
    return dx + from_statistics(data, mean, None if g_mean is None else g_mean / count,
                                 None if slope is None else slope / count, words)


@declare(name="LayerNorm", types="*T:floating->*T", aliases=("_npx_layer_norm",), inplace=(0,),
         outputs=("output", "mean", "std"), visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def layer_norm(data, gamma, beta, *, axis: int = -1, eps: Amount = 1e-5, output_mean_var: bool = False):
    """``data`` normalised to mean zero and standard deviation one along ``axis``, times ``gamma``, plus ``beta``.

    ``output_mean_var`` returns two more outputs, mean and standard deviation, through which no gradient passes.

    J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, arXiv:1607.06450.
    """


along(layer_norm, shared=(1, 2))


@layer_norm.fill
def layer_norm_fill(ins, outs, *, axis):
    if ins[0] is None:
        return ins
    vector = (ins[0][check_axis(axis, len(ins[0]))],)
    return [ins[0], vector, vector]


def _layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
    mean = row_mean(x)
    moved = x - mean
    deviation = sqrt(row_mean(square(moved)) + eps)
    return moved * (1.0 / deviation) * gamma + beta, mean, deviation


@looped(layer_norm)
def layer_norm_loop(*, axis, eps):
    return sets(_layer_norm, axis, (RowLayout.ELEMENT, RowLayout.COLUMN, RowLayout.COLUMN), eps=eps)


@layer_norm.grad  # a loop of three results is not differentiated automatically
def layer_norm_grad(g, ins, outs, *, axis, eps, output_mean_var):
    words = {"over": "axis", "axis": axis, "num_groups": 0}
    data, gamma, _ = ins
    (g, g_mean, g_std), (_, mean, std) = g, outs
    if output_mean_var:
        g_mean = g_std = None
        mean, inverse = ops._normalize_moments(data, mean, eps=eps, **words)
    else:
        inverse = 1.0 / std
    dx, d_gamma, d_beta = ops._backward_LayerNorm(g, data, gamma, mean, inverse, axis=axis)
    return _moved(dx, data, mean, g_mean, None if g_std is None else g_std * inverse, words), d_gamma, d_beta


@declare(name="_backward_LayerNorm", types="*T:floating->*T", inplace=(0,), outputs=("data", "gamma", "beta"),
         cheap=True)
def backward_layer_norm(g, data, gamma, mean, inverse, *, axis: int = -1):
    """The gradients of ``LayerNorm``."""


def _through_layer_norm(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    normal, scaled = (x - mean) * inverse, g * gamma
    dx = (scaled - normal * row_mean(scaled * normal) - row_mean(scaled)) * inverse
    return dx, column_sum(g * normal), column_sum(g)


@looped(backward_layer_norm)
def backward_layer_norm_loop(*, axis):
    element, row = RowLayout.ELEMENT, RowLayout.ROW
    return sets(_through_layer_norm, axis, (element, element, RowLayout.COLUMN, row, row))


@backward_layer_norm.vmap
def backward_layer_norm_vmap(ins, batched, *, axis):
    if batched[2]:
        return NotImplemented
    size, gamma = size_of(ins, batched), ins[2]
    g, data, mean, inverse = repeated([*ins[:2], *ins[3:]], [*batched[:2], *batched[3:]])
    rank = len(data.shape) - 1
    axis = axis % rank
    dx, _, _ = ops._backward_LayerNorm(g, data, gamma, mean, inverse, axis=axis + 1)
    shape = (size, *[1 if i == axis else dim for i, dim in enumerate(data.shape[1:])])
    normal = ops.broadcast_mul(ops.broadcast_sub(data, mean.reshape(shape)), inverse.reshape(shape))
    others = tuple([i + 1 for i in range(rank) if i != axis])
    sums = [value if not others else ops.sum(value, axis=others) for value in (g * normal, g)]
    return dx, *sums


@backward_layer_norm.grad
def backward_layer_norm_grad(h, ins, outs, *, axis):
    words: dict[str, Any] = {"over": "axis", "axis": axis, "num_groups": 0}
    across: dict[str, Any] = {"over": "batch", "axis": axis}
    g, data, gamma, mean, inverse = ins
    h_data, h_gamma, h_beta = h
    # The operators of the gradient, differentiated: first dx, from the scaled gradient and its sums.
    scaled = ops._normalize_scale(g, gamma, **across)
    sums = ops._backward_normalize_sums(scaled, data, mean, inverse, **words)
    d_scaled, d_data, d_mean, d_inverse, *h_sums = backward_normalize_grad(
        h_data, (scaled, data, mean, inverse, *sums), None, scaled=False, **words)
    from_sums = backward_sums_grad(h_sums, (scaled, data, mean, inverse), sums, **words)
    d_scaled, d_data, d_mean, d_inverse = map(operator.add, (d_scaled, d_data, d_mean, d_inverse), from_sums)
    d_g = ops._normalize_scale(d_scaled, gamma, **across)
    d_weight = ops._normalize_total(d_scaled * g, gamma, **across)
    # Then the sums over all sets: of g times the normalised data, and of g.
    d_g = (d_g + ops._normalize_scale(from_statistics(data, mean, None, inverse, words), h_gamma, **across)
           + ops._normalize_expand(h_beta, g, **across))
    scaled = ops._normalize_scale(g, h_gamma, **across)
    product, total = ops._backward_normalize_sums(scaled, data, mean, inverse, **words)
    return (d_g, d_data + ops._normalize_scale(scaled, inverse, **words), d_weight, d_mean - total * inverse,
            d_inverse + product / inverse)


@declare(name="InstanceNorm", types="*T:floating->*T", inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda: 1, cheap=True)
def instance_norm(data, gamma, beta, *, eps: Amount = 1e-3):
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel of each sample.

    D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance Normalization, arXiv:1607.08022.
    """


declare_form(instance_norm, "(samples, channels, first, ...) (channels) (channels) -> (samples, channels, first, ...) "
                      "(samples, channels) (samples, channels)")


@declare(name="GroupNorm", types="*T:floating->*T", inplace=(0,), outputs=("output", "mean", "std"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1, cheap=True)
def group_norm(data, gamma, beta, *, num_groups: Positive = 1, eps: Amount = 1e-5, output_mean_var: bool = False):
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each group of channels of each sample.

    Gamma and beta have an element for each group. ``output_mean_var`` returns two more outputs, mean and standard
    deviation, through which no gradient passes.

    Y. Wu, K. He, Group Normalization, arXiv:1803.08494, where gamma and beta belong to channels.
    """


declare_form(group_norm, "(samples, @num_groups*n, first, ...) (@num_groups) (@num_groups) "
                   "-> (samples, @num_groups*n, first, ...) (samples, @num_groups) (samples, @num_groups)")


def _sample_norm(x: Any, gamma: Any, beta: Any, *, eps: float, inverse_shown: bool) -> Any:
    mean = row_mean(x)
    moved = x - mean
    deviation = sqrt(row_mean(square(moved)) + eps)
    inverse = 1.0 / deviation
    return moved * (inverse * gamma) + beta, mean, inverse if inverse_shown else deviation


def _declare_norm(op: Op, inverse_shown: bool) -> None:
    """Declare the common rules of norms of groups of channels; without ``num_groups`` each channel is a group. The
    third output is the standard deviation, or its inverse."""

    @looped(op)
    def sample_loop(*, num_groups: int = 0, eps: float) -> Sets:
        return sets(_sample_norm, 2, (RowLayout.ELEMENT, RowLayout.CYCLE, RowLayout.CYCLE), keepdims=False,
                    groups=num_groups, eps=eps, inverse_shown=inverse_shown)

    @op.grad
    def sample_grad(g: Any, ins: Sequence[Value], outs: Sequence[Value], *, num_groups: int = 0, eps: float,
                    output_mean_var: bool = False) -> tuple[Value, Value, Value]:
        words = {"over": "group", "axis": 1, "num_groups": num_groups}
        (g, g_mean, g_last), (_, mean, last), (data, gamma, beta) = g, outs, ins
        inverse = last if inverse_shown else 1.0 / last
        if output_mean_var:  # gradients of these two outputs are blocked
            g_mean = g_last = None
            mean, inverse = ops._normalize_moments(data, mean, eps=eps, **words)
        slope = None
        if g_last is not None:
            slope = -g_last * inverse * inverse * inverse if inverse_shown else g_last * inverse
        product, total = ops._backward_normalize_sums(g, data, mean, inverse, **words)
        dx = ops._backward_normalize(g, data, gamma, mean, inverse, product, total, **words)
        return (_moved(dx, data, mean, g_mean, slope, words), ops._reduce_like(product, gamma),
                ops._reduce_like(total, beta))


_declare_norm(instance_norm, True)
_declare_norm(group_norm, False)

"""LayerNorm, InstanceNorm and GroupNorm: normalisation by statistics within one sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.attrs import Amount, Positive
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.value import Value
from ...elementwise.expression import sqrt, square
from ...elementwise.loops import Sets, gradients, sets
from ...elementwise.rows import RowLayout, column_sum, row_mean, row_size, row_sum
from ..forms import declare_form
from ..looped import by_loop, looped
from ..outputs import like_inputs
from ..samples import repeat_inputs, shift_axes, size_of
from .normalize import vectors_along


def _with_statistics(dx: Value, loop: Sets, g: Sequence[Value | None], ins: Sequence[Value], outs: Sequence[Value]
                     ) -> Value | None:
    """``dx``, the gradient of the data through the output, plus that through mean and deviation, if there is one."""
    if g[1] is None and g[2] is None:
        return dx
    through = gradients(loop, [None, *g[1:]], ins, outs, (True, False, False))[0]
    return dx if through is None else dx + through


@declare(name="LayerNorm", types="*T:floating->*T", aliases=("_npx_layer_norm",), inplace=(0,),
         outputs=("output", "mean", "std"), visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def layer_norm(data, gamma, beta, *, axis: int = -1, eps: Amount = 1e-5, output_mean_var: bool = False):
    """``data`` normalised to mean zero and standard deviation one along ``axis``, times ``gamma``, plus ``beta``.

    ``output_mean_var`` returns two more outputs, mean and standard deviation, through which no gradient passes.

    J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, arXiv:1607.06450.
    """


shift_axes(layer_norm, shared=(1, 2))


layer_norm.fill(vectors_along)


def _layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
    mean = row_mean(x)
    moved = x - mean
    deviation = sqrt(row_mean(square(moved)) + eps)
    return moved * (1.0 / deviation) * gamma + beta, mean, deviation


@looped(layer_norm)
def layer_norm_loop(*, axis, eps):
    return sets(_layer_norm, axis, (RowLayout.ELEMENT, RowLayout.COLUMN, RowLayout.COLUMN), eps=eps)


@layer_norm.grad  # a loop reads data and gradient once for all three
def layer_norm_grad(g, ins, outs, *, axis, eps, output_mean_var):
    data, gamma, _ = ins
    _, mean, deviation = outs
    if output_mean_var:  # gradients of these two outputs are blocked
        g = (g[0], None, None)
        mean, variance = ops.moments(data, axes=axis, keepdims=True)
        deviation = ops.sqrt(variance + eps)
    dx, d_gamma, d_beta = ops._backward_LayerNorm(g[0], data, gamma, mean, 1.0 / deviation, axis=axis)
    return _with_statistics(dx, layer_norm_loop(axis=axis, eps=eps), g, ins, outs), d_gamma, d_beta


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
    g, data, mean, inverse = repeat_inputs([*ins[:2], *ins[3:]], [*batched[:2], *batched[3:]])
    rank = len(data.shape) - 1
    axis = axis % rank
    dx, _, _ = ops._backward_LayerNorm(g, data, gamma, mean, inverse, axis=axis + 1)
    shape = (size, *[1 if i == axis else dim for i, dim in enumerate(data.shape[1:])])
    normal = ops.broadcast_mul(ops.broadcast_sub(data, mean.reshape(shape)), inverse.reshape(shape))
    others = tuple([i + 1 for i in range(rank) if i != axis])
    sums = [value if not others else ops.sum(value, axis=others) for value in (g * normal, g)]
    return dx, *sums


by_loop(backward_layer_norm)


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
                    output_mean_var: bool = False) -> tuple[Value | None, Value, Value]:
        data, gamma, beta = ins
        _, mean, last = outs
        inverse = last if inverse_shown else 1.0 / last
        if output_mean_var:  # gradients of these two outputs are blocked
            g = (g[0], None, None)
            mean, variance = ops.moments(ops.Reshape(data, shape=(0, num_groups, -1)), axes=2)
            inverse = 1.0 / ops.sqrt(variance + eps)
        dx, product, total = ops._backward_GroupNorm(g[0], data, gamma, mean, inverse, num_groups=num_groups)
        return (_with_statistics(dx, sample_loop(num_groups=num_groups, eps=eps), g, ins, outs),
                ops._reduce_like(product, gamma), ops._reduce_like(total, beta))


_declare_norm(instance_norm, True)
_declare_norm(group_norm, False)


@declare(name="_backward_GroupNorm", types="*T:floating->*T", inplace=(0,), outputs=("data", "product", "total"),
         cheap=True)
def backward_group_norm(g, data, gamma, mean, inverse, *, num_groups: int = 0):
    """The gradient of the data of ``GroupNorm``, and the sums in each group of each sample of ``g`` times the
    normalised data and of ``g``. With ``num_groups=0`` each channel is a group."""


backward_group_norm.infer(like_inputs(0, 3, 3))


def _through_sample_norm(g: Any, x: Any, gamma: Any, mean: Any, inverse: Any) -> Any:
    # Without a centred copy of the data; the rounding this costs is that of the data themselves.
    total, share = row_sum(g), 1.0 / row_size()
    product = (row_sum(g * x) - mean * total) * inverse
    slope = inverse * product * share
    return (g - x * slope + (slope * mean - total * share)) * (inverse * gamma), product, total


@looped(backward_group_norm)
def backward_group_norm_loop(*, num_groups):
    element, row = RowLayout.ELEMENT, RowLayout.ROW
    return sets(_through_sample_norm, 2, (element, element, RowLayout.CYCLE, row, row), keepdims=False,
                groups=num_groups)


by_loop(backward_group_norm)

"""BatchNorm and its variants: normalisation by the statistics of each channel, or by moving statistics."""

from __future__ import annotations

from collections.abc import Callable

from ...core.attrs import Amount, Fraction
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import BatchedCall, Norm
from ...core.spec import as_dtype, common_dtype
from ...core.threads import by_rows
from ...distributed import world
from ...typing import Array, ArrayModule
from ..layouts import by_axis
from ..outputs import common_floating, like_inputs, wide
from ..samples import fold_samples
from ..shapes.shape import out_or_empty, stored_in
from .normalize import layout_of, moments, vectors_along


def _batch_types(ins, outs):
    data = common_floating([ins[0], outs[0]])
    rest = common_dtype([*ins[1:], *outs[1:]])
    if data is not None:  # float16 is too imprecise for statistics
        rest = common_dtype([rest, as_dtype("float32") if data.itemsize < 4 else data])
    return [data, *[rest] * 4], [data, rest, rest]


def _batch_norm(xp: ArrayModule, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array,
                eps: float, momentum: float, fix_gamma: bool, use_global_stats: bool, axis: int, is_train: bool,
                out: Array | None, ndev: int = 1) -> tuple[Array, Array, Array, Array, Array]:
    """Output, mean, variance and the new moving mean and variance."""
    layout = layout_of(data.shape, axis)
    x = wide(data).reshape(layout.view)
    result = out_or_empty(xp, data.shape, x.dtype, None if out is None or out.dtype != x.dtype else out)
    y = source = result.reshape(layout.view)
    offset = beta.reshape(layout.keep)
    if is_train and not use_global_stats:
        mean, variance, _ = moments(xp, x, layout, y)
        mean, variance = mean.reshape(-1), variance.reshape(-1)
        if _shares_statistics(ndev):
            mean, variance, apart = _of_all_ranks(mean, variance)
            y += apart.reshape(layout.keep)
        scale = 1.0 / xp.sqrt(variance + eps)
        if not fix_gamma:
            scale *= gamma
        moving_mean = moving_mean * momentum + mean * (1.0 - momentum)
        moving_var = moving_var * momentum + variance * (1.0 - momentum)
    else:
        mean, variance = moving_mean, moving_var
        scale = 1.0 / xp.sqrt(variance + eps)
        if not fix_gamma:
            scale *= gamma
        offset = offset - (mean * scale).reshape(layout.keep)
        source = x
    factor = scale.reshape(layout.keep)

    def shifted(rows: slice) -> None:
        part = xp.multiply(source[rows], factor, out=y[rows])
        part += offset

    by_rows(xp, x, shifted)
    return stored_in(result, out), mean, variance, moving_mean, moving_var


def _shares_statistics(ndev: int) -> bool:
    """Whether ``ndev`` is the number of this program's processes, which then share their statistics."""
    return ndev > 1 and world().size == ndev


def _of_all_ranks(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Mean and variance over all ranks, which have equally many elements; and the mean of all minus this rank's
    mean."""
    overall = world().allreduce(mean, "mean")
    apart = mean - overall
    return overall, world().allreduce(variance + apart * apart, "mean"), apart


def _declare_batch_norm(op: Op, *, relu: bool = False, variance: bool = False, population: bool = False
                        ) -> Callable[..., tuple[Array, ...]]:
    """Give an operator its rules, and its kernel, which is returned.

    ``relu`` sets negative elements to zero. With ``variance`` the third output is the variance, else the inverse
    standard deviation. With ``population`` the moving variance is updated by the unbiased variance.
    """
    op.fill(vectors_along)
    op.infer(like_inputs(0, 1, 1))
    op.types(_batch_types)

    @op.kernel()  # no body: training moves states
    def batch_norm_xp(xp, data, gamma, beta, moving_mean, moving_var, *, eps, momentum, is_train, fix_gamma=False,
                      use_global_stats=False, axis=1, ndev=1, out=None):
        y, mean, spread, *states = _batch_norm(
            xp, data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, axis, is_train,
            None if out is None else out[0], ndev)
        if relu:
            y = xp.maximum(y, 0.0, out=y)
        if population and is_train:
            states[1] = states[1] + spread * ((1.0 - momentum) / max(data.size // max(mean.size, 1) - 1, 1))
        third = spread if variance else 1.0 / xp.sqrt(spread + eps)
        if out is not None:
            out[1][...], out[2][...] = mean, third
        return (y, mean, third, *(states if is_train else ()))

    @op.grad
    def batch_norm_grad(g, ins, outs, *, eps, is_train, fix_gamma=False, use_global_stats=False, output_mean_var=False,
                        axis=1, ndev=1):
        data, gamma = ins[:2]
        y, mean, third = outs
        moving = is_train and not use_global_stats
        if relu:
            g = (g[0] * (y > 0.0), *g[1:])
        if output_mean_var:  # gradients of these two outputs are blocked
            g = (g[0], None, None)
        if not is_train and not use_global_stats:  # forward may have run in training, so its statistics are not read
            mean, inverse = ins[3], ops.rsqrt(ins[4] + eps)
        elif output_mean_var and moving:
            mean, inverse = ops._normalize_moments(data, mean, eps=eps, axis=axis)
        else:
            inverse = ops.rsqrt(third + eps) if variance else third
        product, total = ops._backward_normalize_sums(g[0], data, mean, inverse, axis=axis)
        weights = [] if fix_gamma else [gamma]
        d_gamma = ops.zeros_like(gamma) if fix_gamma else product
        if not moving:
            return ops._normalize_scale(g[0], inverse * gamma if weights else inverse, axis=axis), d_gamma, total
        sums = [product, total]
        if _shares_statistics(ndev):
            sums = [ops.AllReduce(each, op="mean") for each in sums]
        dx = ops._backward_normalize(g[0], data, *weights, mean, inverse, *sums, scaled=not fix_gamma, axis=axis)
        if g[1] is not None or g[2] is not None:
            g_mean, g_third = [ops.zeros_like(mean) if each is None else each for each in g[1:]]
            g_variance = g_third if variance else g_third * inverse * inverse * inverse * -0.5
            dx = dx + ops._backward_normalize_moments(data, mean, g_mean, g_variance, axis=axis)
        return dx, d_gamma, total

    return batch_norm_xp


@declare(name="BatchNorm", aliases=("_npx_batch_norm",), mode=True, auxiliary=("moving_mean", "moving_var"),
         states=(0, 1), inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: Amount = 1e-3, momentum: Fraction = 0.9,
               fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1,
               cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None):
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel, over all samples.

    Training uses the statistics of the data, and moves ``moving_mean`` and ``moving_var`` towards them once in each
    forward pass; inference, and ``use_global_stats``, use the moving statistics. With ``fix_gamma`` gamma is taken as
    one, and its gradient is zero. ``output_mean_var`` returns two more outputs, the mean and the inverse standard
    deviation, through which no gradient passes. Gamma, beta and the statistics are float32 for 16-bit data.

    S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167.
    """


@batch_norm.norm
def batch_norm_norm(*, eps, fix_gamma, axis):
    return Norm(axis, eps, fix_gamma)


@batch_norm.vmap
def batch_norm_vmap(ins, batched, *, axis, **attrs):
    if any(batched[1:]) or not axis % (len(ins[0].shape) - 1):
        return NotImplemented
    return BatchedCall([fold_samples(ins[0]), *ins[1:]], {**attrs, "axis": axis % (len(ins[0].shape) - 1)})


@declare(name="_contrib_BatchNormWithReLU", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1),
         inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm_with_relu(data, gamma, beta, moving_mean, moving_var, *, eps: Amount = 1e-3, momentum: Fraction = 0.9,
                         fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False,
                         axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None,
                         max_calib_range: float | None = None):
    """``BatchNorm`` followed by relu."""


@declare(name="BatchNorm_v1", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1), inplace=(0,),
         outputs=("output", "mean", "var"), visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm_v1(data, gamma, beta, moving_mean, moving_var, *, eps: Amount = 1e-3, momentum: Fraction = 0.9,
                  fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False):
    """``BatchNorm`` with channels along the second axis; its third output is the variance."""


@declare(name="_contrib_SyncBatchNorm", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1),
         inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def sync_batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: Amount = 1e-3, momentum: Fraction = 0.9,
                    fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False,
                    ndev: int = 1, key: str):
    """``BatchNorm`` with channels along the second axis; its third output is the variance.

    If ``ndev`` is the number of processes, and more than one, statistics are taken over the samples of all of them,
    which have equally many. Otherwise they are the array's. ``key`` has no effect.
    """


@declare(name="_nn_batch_norm", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1), inplace=(0,),
         outputs=("output", "mean", "var"), visible=lambda: 1)
def nn_batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: Amount = 1e-5, momentum: Fraction = 0.9,
                  axis: int = 1):
    """``BatchNorm`` in training, with the unbiased variance for the update of the moving variance.

    The data are still divided by the biased standard deviation.
    """


batch_norm_xp = _declare_batch_norm(batch_norm)
_declare_batch_norm(batch_norm_with_relu, relu=True)
_declare_batch_norm(batch_norm_v1, variance=True)
_declare_batch_norm(sync_batch_norm, variance=True)
_declare_batch_norm(nn_batch_norm, population=True)

by_axis(batch_norm, (0,))
for _op in (batch_norm, batch_norm_v1, sync_batch_norm):
    _op.signature.tags = {"moving_mean": {"__init__": '["zero", {}]'}, "moving_var": {"__init__": '["one", {}]'}}

for _op in (batch_norm_v1, sync_batch_norm, nn_batch_norm):
    _op.norm(lambda *, eps, fix_gamma=False, axis=1: Norm(axis, eps, fix_gamma))

"""BatchNorm whose moving variance is that of the population the batch is a sample of, as MindSpore keeps it."""

from __future__ import annotations

from ...core.registry import declare
from ...core.rules import Norm
from .batch_norm import _batch_fill, _batch_infer, _batch_types, batch_norm_grad, batch_norm_xp

__all__: list[str] = []


@declare(name="_nn_batch_norm", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1), inplace=(0,),
         outputs=("output", "mean", "var"), visible=lambda: 1)
def nn_batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-5, momentum: float = 0.9,
                  axis: int = 1):
    """``BatchNorm`` in training, ``moving_var`` moving towards the variance divided by one less than the count.

    What the data are divided by is still their own deviation.
    """


nn_batch_norm.fill(_batch_fill)
nn_batch_norm.infer(_batch_infer)
nn_batch_norm.types(_batch_types)
nn_batch_norm.norm(lambda *, eps, axis: Norm(axis, eps, False))

_FREE = {"fix_gamma": False, "use_global_stats": False}


@nn_batch_norm.kernel()
def nn_batch_norm_xp(xp, data, *others, eps, momentum, axis, is_train, out=None):
    y, mean, inverse, *states = batch_norm_xp(xp, data, *others, eps=eps, momentum=momentum, axis=axis,
                                              is_train=is_train, out=out, **_FREE)
    if states:
        rest = max(data.size // mean.size - 1, 1)
        variance = 1.0 / (inverse * inverse) - eps
        states[1] = states[1] + variance * ((1.0 - momentum) / rest)
    return (y, mean, inverse, *states)


@nn_batch_norm.grad
def nn_batch_norm_grad(g, ins, outs, *, eps, axis, is_train):
    return batch_norm_grad(g, ins, outs, eps=eps, axis=axis, is_train=is_train, output_mean_var=False, **_FREE)

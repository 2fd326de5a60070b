"""Kernels by oneDNN for batch norm with channels last, and for copies between channels last and channels first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.layers.batch_norm import batch_norm, batch_norm_xp
from opreg.builtin.layers.sliding import channels_first
from opreg.core import threads
from opreg.core.keys import cached_by_value
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.spec import Shape, strides_of
from opreg.typing import Array, ArrayModule

from ...private_operators import to_channels_first, to_channels_last
from .. import engine, shared_library
from ..primitives import Copy, Norm, Part
from . import convolution
from .convolution import Description, compute, declined
from .private import batch_norm_gradient

#: Any layout with channels last.
LAST = "NHWC"


@cached_by_value(1024)
def _norm(part: Part, shape: Shape, eps: float, measured: bool) -> Description:
    geometry, strides = Norm(channels_first(shape, LAST), eps, measured), channels_first(strides_of(shape), LAST)
    return geometry, tuple([strides if len(shape) > 1 else (1,) for shape in geometry.shapes(part)])


def _declines(part: Part, data: Array, axis: int, measured: bool) -> str | None:
    if data.ndim < 3 or axis % data.ndim != data.ndim - 1:
        return "its channels do not come last"
    if data.size < convolution.LEAST:
        return "it is small"
    return engine.possible(part, *_norm(part, data.shape, 0.0, measured))


# ------------------------------------------------------------------------------------------------- forward


def _accepts(call: Call) -> str | None:
    measured = call.is_train and not call.attrs["use_global_stats"]
    return declined(call, call.ins) or _declines("forward", call.ins[0], call.attrs["axis"], measured)


# Other kernels are slow at batch norm with channels last.
@batch_norm.kernel("onednn", accepts=_accepts, rank=Rank.LIBRARY,
                   channels_last=convolution.reason_by_specs(batch_norm, _accepts))
def batch_norm_onednn(xp: ArrayModule, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, *,
                      eps: float, momentum: float, fix_gamma: bool, use_global_stats: bool, axis: int, is_train: bool,
                      out: Sequence[Array] | None = None) -> tuple[Array, ...]:
    """The output, the mean, the inverse of the standard deviation, and in training the new moving statistics."""
    if shared_library.forked():
        return batch_norm_xp(xp, data, gamma, beta, moving_mean, moving_var, eps=eps, momentum=momentum,
                             fix_gamma=fix_gamma, use_global_stats=use_global_stats, axis=axis, is_train=is_train,
                             out=out)
    measured = is_train and not use_global_stats
    mean, variance = (np.empty_like(moving_mean), np.empty_like(moving_var)) if measured else (moving_mean, moving_var)
    y = out[0] if out is not None and out[0].flags.carray else np.empty(data.shape, np.float32)
    scale = np.ones_like(gamma) if fix_gamma else gamma
    arrays = [np.require(array, requirements=["C", "A"]) for array in (data, mean, variance, scale, beta)]
    compute("forward", _norm("forward", data.shape, eps, measured), [arrays[0], y, *arrays[1:]])
    inverse = 1.0 / np.sqrt(variance + eps)
    if out is not None:
        out[1][...], out[2][...] = mean, inverse
        if out[0] is not y:
            out[0][...] = y
    if not is_train:
        return y, mean, inverse
    if measured:
        moving_mean = moving_mean * momentum + mean * (1.0 - momentum)
        moving_var = moving_var * momentum + variance * (1.0 - momentum)
    return y, mean, inverse, moving_mean, moving_var


# ------------------------------------------------------------------------------------------------ backward


def _bind(call: Call, part: Part, description: Description, arrays: Sequence[Array],
          before: Callable[[], object] | None = None) -> Callable[[], None]:
    """A step that computes a part; in a forked process the reference kernel does."""
    work = engine.Work(part, *description)
    run = work.bind(arrays, [call.scratch(i, (n,), np.uint8) for i, n in enumerate(work.nbytes)])

    return engine.step_of(call, run if before is None else functools.partial(threads.call_all, (before, run)))


def _in_order(call: Call) -> str | None:
    arrays = [*call.ins, *call.outs]
    reason = declined(call, call.ins)
    if reason is None and not all(array is None or array.flags.carray for array in arrays):
        reason = "an array is not contiguous"
    return reason


def _accepts_gradient(call: Call) -> str | None:
    return _in_order(call) or _declines("data", call.ins[1], call.attrs["axis"], True)


@batch_norm_gradient.kernel("onednn", bound=True, accepts=_accepts_gradient, rank=Rank.LIBRARY,
                            channels_last=convolution.reason_by_specs(batch_norm_gradient, _accepts_gradient))
def batch_norm_gradient_onednn(call: Call) -> Callable[[], None]:
    """The gradient and the two sums at once. The library would add ``eps`` to the variance; here it is given their sum,
    and zero as ``eps``."""
    g, data, *gamma, mean, inverse = call.ins
    vectors = [np.empty_like(mean) if out is None else out for out in call.outs[1:]]
    variance, scale = np.empty_like(mean), gamma[0] if gamma else np.ones_like(mean)

    def before() -> None:
        np.multiply(inverse, inverse, out=variance)
        np.divide(1.0, variance, out=variance)

    return _bind(call, "data", _norm("data", data.shape, 0.0, True),
                 [data, g, call.outs[0], mean, variance, scale, *vectors], before)


# ------------------------------------------------------------------------------------------------- copies


def _attach_copy(op: Op, last: str | None, first: str | None) -> None:
    """Attach the kernel of a copy between two layouts."""

    def accepts(call: Call) -> str | None:
        return _in_order(call) or ("it is small" if call.ins[0].size < convolution.LEAST else None)

    @op.kernel("onednn", bound=True, accepts=accepts, rank=Rank.LIBRARY)
    def copy_onednn(call: Call) -> Callable[[], None]:
        (source,), (target,) = call.ins, call.outs
        strides = channels_first(strides_of(source.shape), last), channels_first(strides_of(target.shape), first)
        return _bind(call, "forward", (Copy(channels_first(source.shape, last)), strides), [source, target])


_attach_copy(to_channels_last, None, LAST)
_attach_copy(to_channels_first, LAST, None)

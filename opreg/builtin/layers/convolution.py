"""Convolution and Deconvolution in one to three dimensions, and their gradients, which are each other's operators.

``correlation`` has the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ...core.attrs import Positive
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Attrs
from ...core.spec import ANY, Shape, is_single_or_double, show
from ...core.value import Value
from ...elementwise.loops import sets
from ...elementwise.rows import column_sum
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..layouts import by_layout
from ..looped import by_loop, looped
from ..matrices.dense import adjoint, bilinear, with_bias
from ..outputs import wide
from ..samples import declare_row_samples
from .correlation import bias_adder, correlate, match, small, spread
from .sliding import Window, channels_first, channels_last, extent, input_extent, spatial, window
from .small_correlation import SmallPlan

__all__ = ["run_convolution", "deconvolution_window", "weight_layout"]

Layout = Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]
Tune = Literal["off", "limited_workspace", "fastest"]


def run_convolution(xp: ArrayModule, shape: Shape, out: Array | None, layouts: tuple[str | None, ...], arrays: tuple,
                    compute: Callable) -> Array:
    """Let ``compute(target, *arrays)`` write an array of this shape; all arrays have channels on axis 1.

    ``layouts`` are those of the target and of the arrays. float16 is computed in float32.
    """
    work = tuple(map(wide, arrays))
    target = out if out is not None and out.dtype == work[0].dtype else xp.empty(shape, work[0].dtype)
    compute(channels_first(target, layouts[0]),
            *[array if array is None or array.ndim == 1 else channels_first(array, layout)
              for array, layout in zip(work, layouts[1:])])
    if out is None or out is target:
        return target
    out[...] = target
    return out


def weight_layout(layout: str | None, weights_first: bool) -> str | None:
    """The layout of a weight: that of the data, unless ``weights_first``, which convolutions have after a plan has
    changed their layout (``opreg.backends.passes.channels_last``)."""
    return None if weights_first else layout


def _check_groups(num_filter: int, num_group: int, channels: int) -> None:
    for what, count in (("filters", num_filter), ("channels", channels)):
        if count % num_group != 0:
            raise AttrError(f"num_group={num_group} does not divide the {count} {what}")


@declare(name="Convolution", aliases=("Convolution_v1", "_npx_convolution"), arguments=with_bias)
def convolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
                workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tune | None = None,
                cudnn_off: bool = False, layout: Layout | None = None):
    """A convolution of the data with ``num_filter`` kernels, plus a bias.

    ``weight`` has shape (num_filter, channels / num_group, *kernel), or (num_filter, *kernel, channels / num_group) for
    layouts with channels last. ``cudnn_off`` excludes cuDNN; ``workspace`` and ``cudnn_tune`` have no effect.
    """


declare_row_samples(convolution, 0)
by_layout(convolution, (0,), weights_first=True)


def _filled(ins, outs, weights, *, kernel, num_filter, num_group, no_bias, layout, weights_first=False):
    """Shapes of data, weight and bias; ``weights(channels)`` gives the first lengths of the weight."""
    data = ins[0]
    bias = [] if no_bias else [(num_filter,)]
    if data is None:
        return [None, None, *bias]
    channels = spatial(data, kernel, layout)[1]
    _check_groups(num_filter, num_group, channels)
    if outs[0] is not None and len(outs[0]) == len(data):
        data = (outs[0][0], *data[1:])
    return [data, channels_last((*weights(channels), *kernel), weight_layout(layout, weights_first)), *bias]


@convolution.fill
def convolution_fill(ins, outs, *, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout,
                     weights_first=False):
    data, *others = _filled(ins, outs, lambda channels: (num_filter, channels // num_group), kernel=kernel,
                            num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout,
                            weights_first=weights_first)
    if data is not None and outs[0] is not None and len(outs[0]) == len(data):
        batch, channels = channels_first(data, layout)[:2]
        places = input_extent(channels_first(outs[0], layout)[2:], window(kernel, stride, dilate, pad))
        data = channels_last((batch, channels, *places), layout)
    return [data, *others]


@convolution.infer
def convolution_infer(data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, layout):
    x = spatial(data, kernel, layout)
    places = extent(x[2:], window(kernel, stride, dilate, pad))
    return channels_last((x[0], num_filter, *places), layout)


@convolution.in_parts  # no body: images are unfolded a block at a time
def convolution_in_parts(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, num_group, layout,
                         weights_first=False):
    shape = convolution_infer(data.shape, weight.shape, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                              num_filter=num_filter, layout=layout)
    win, dtype, along = window(kernel, stride, dilate, pad), data.dtype, (-1, *(1,) * len(kernel))
    layouts = layout, layout, weight_layout(layout, weights_first), None
    plan = _small(xp, data, weight, shape, win, num_group, layout)

    def run(data: Array, weight: Array, bias: Array | None = None, out: Array | None = None) -> Array:
        if plan is None:
            return run_convolution(xp, shape, out, layouts, (data, weight, bias), lambda y, x, w, b: correlate(
                xp, x, w, y, win, num_group, bias_adder(b, num_group, len(kernel))))
        y = np.empty(shape, dtype) if out is None else out
        plan.correlate(data, weight, y)
        if bias is not None:
            np.add(y, bias.reshape(along), y)
        return y

    return run


def _small(xp: ArrayModule, data: Array, weight: Array, shape: Shape, win: Window, groups: int, layout: Layout | None
           ) -> SmallPlan | None:
    """The plan of a convolution that the host computes without blocks, if all arrays have channels on axis 1."""
    if xp is not np or layout not in (None, "NCW", "NCHW", "NCDHW") or not is_single_or_double(data.dtype) \
            or data.dtype != weight.dtype:
        return None
    return small(data.shape, weight.shape, shape, win, groups)


convolution_data = adjoint("_backward_Convolution_data", convolution, ("g", "weight", "data"))
declare_row_samples(convolution_data, 0, 2)
by_layout(convolution_data, (0, 2), weights_first=True)
convolution_weight = adjoint("_backward_Convolution_weight", convolution, ("g", "data", "weight"))
by_layout(convolution_weight, (0, 1), (), weights_first=True)


def _declare_gradient_kernel(op: Op, forward: Op, compute: Callable[..., object]) -> None:
    """Declare the kernel of a gradient, which ``compute(xp, g, other, into, win, num_group)`` writes; ``other`` is the
    weight for the gradient of the data, and the data for that of the weight."""
    of_data, turned = op.signature.input_names[-1] == "data", forward is not convolution

    @op.in_parts  # no body: images are unfolded a block at a time
    def gradient_in_parts(xp, g, other, like, *, kernel, stride, dilate, pad, num_group, layout, adj=(),
                          target_shape=(), weights_first=False):
        others, into = (weight_layout(layout, weights_first), layout)[::1 if of_data else -1]
        data, weight, shape, dtype = *((like, other) if of_data else (other, like)), like.shape, like.dtype
        if turned:
            size = channels_first(data.shape, layout)[2:]
            win, _ = deconvolution_window(size, kernel, stride, dilate, pad, adj, target_shape)
        else:
            win = window(kernel, stride, dilate, pad)
        plan = None if turned or g.dtype != dtype else _small(xp, data, weight, g.shape, win, num_group, layout)
        compute_small = None if plan is None else plan.spread if of_data else plan.match

        def run(g: Array, other: Array, like: Array, out: Array | None = None) -> Array:
            if compute_small is None:
                return run_convolution(xp, shape, out, (into, layout, others), (g, other),
                                       lambda into, g, other: compute(xp, g, other, into, win, num_group))
            result = np.empty(shape, dtype) if out is None else out
            compute_small(g, other, result)
            return result

        return run


_declare_gradient_kernel(convolution_data, convolution, spread)
_declare_gradient_kernel(convolution_weight, convolution, match)


@declare(name="_backward_Convolution_bias")
def convolution_bias(g, *, layout: Layout):
    """Sums of ``g`` over all axes but the channels."""


by_layout(convolution_bias, (0,), ())


@looped(convolution_bias)
def convolution_bias_loop(*, layout):
    return sets(column_sum, layout.index("C"))


by_loop(convolution_bias)


def _bias_gradient(g: Value, attrs: Attrs) -> Value:
    layout = attrs["layout"] or ("NCW", "NCHW", "NCDHW")[len(attrs["kernel"]) - 1]
    return ops._backward_Convolution_bias(g, layout=layout)


def work_of(data, weight, out, *, num_filter, **attrs):
    """Each output position multiplies one whole kernel; there are as many kernels as output channels."""
    return 2 * math.prod(out) * math.prod(weight) // max(num_filter, 1)


bilinear(convolution, convolution_data, convolution_weight, work_of, _bias_gradient)


# ----------------------------------------------------------------------------------------- Deconvolution


@declare(name="Deconvolution", aliases=("_npx_deconvolution",), arguments=with_bias)
def deconvolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                  dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), adj: tuple[int, ...] = (),
                  target_shape: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
                  workspace: int = 512, no_bias: bool = True, cudnn_tune: Tune | None = None, cudnn_off: bool = False,
                  layout: Layout | None = None):
    """A transposed convolution: each element of the data is multiplied with the kernel and added to a window of the
    output.

    ``weight`` has shape (channels, num_filter / num_group, *kernel). The output's length is ``stride * (n - 1) + dilate
    * (kernel - 1) + 1 - 2 * pad + adj`` for an axis of length ``n``, or ``target_shape``, which replaces ``pad`` and
    ``adj``.
    """


declare_row_samples(deconvolution, 0)


def deconvolution_window(size: Shape, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape, adj: Shape,
                         target_shape: Shape) -> tuple[Window, Shape]:
    """The window of the convolution that is transposed, and the spatial output shape."""
    win = window(kernel, stride, dilate, pad)
    full = tuple([s * (n - 1) + r for n, s, r in zip(size, win.stride, win.reach)])
    adj = adj or (0,) * len(kernel)
    if len(adj) != len(kernel) or min(adj) < 0:
        raise AttrError(f"adj={adj}: expected {len(kernel)} numbers of at least 0")
    if any(target_shape):
        if len(target_shape) != len(kernel) or min(target_shape) < 1:
            raise AttrError(f"target_shape={target_shape}: expected {len(kernel)} positive numbers")
        for n, target in zip(full, target_shape):
            if n < target:
                raise ShapeError(f"target_shape={target_shape} is too large: the output is at most {show(full)}")
        # the surplus is removed on both sides; if it is odd, one more element at the front
        pads = tuple([0 if n is ANY else (n - target + 1) // 2 for n, target in zip(full, target_shape)])
        return win._replace(pad=pads), target_shape
    if any(a >= s for a, s in zip(adj, win.stride)):
        raise AttrError(f"adj={adj}: expected {len(kernel)} numbers smaller than stride={win.stride}")
    places = tuple([n - 2 * p + a for n, p, a in zip(full, win.pad, adj)])
    if any(n < 1 for n in places):
        raise ShapeError(f"pad={win.pad} removes all of an output of shape {show(full)}")
    return win, places


@deconvolution.fill
def deconvolution_fill(ins, outs, *, kernel, num_filter, num_group, no_bias, layout):
    return _filled(ins, outs, lambda channels: (channels, num_filter // num_group), kernel=kernel,
                   num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)


@deconvolution.infer
def deconvolution_infer(data, weight, bias=None, *, kernel, stride, dilate, pad, adj, target_shape, num_filter, layout):
    x = spatial(data, kernel, layout)
    places = deconvolution_window(x[2:], kernel, stride, dilate, pad, adj, target_shape)[1]
    return channels_last((x[0], num_filter, *places), layout)


@deconvolution.kernel()  # no body: images are folded a block at a time
def deconvolution_xp(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, adj, target_shape, num_filter,
                     num_group, layout, out=None):
    x = channels_first(data.shape, layout)
    win, places = deconvolution_window(x[2:], kernel, stride, dilate, pad, adj, target_shape)

    def compute(y: Array, x: Array, w: Array, b: Array | None) -> None:
        spread(xp, x, w, y, win, num_group)
        if b is not None:
            y += b.reshape(-1, *(1,) * len(places))

    shape = channels_last((x[0], num_filter, *places), layout)
    return run_convolution(xp, shape, out, (layout,) * 4, (data, weight, bias), compute)


deconvolution_data = adjoint("_backward_Deconvolution_data", deconvolution, ("g", "weight", "data"))
deconvolution_weight = adjoint("_backward_Deconvolution_weight", deconvolution, ("g", "data", "weight"))

_declare_gradient_kernel(deconvolution_data, deconvolution, correlate)
_declare_gradient_kernel(deconvolution_weight, deconvolution, lambda xp, g, data, weight, win, num_group: match(
    xp, data, g, weight, win, num_group))


def _deconvolution_work(data, weight, out, *, layout, **attrs):
    """Each input position multiplies one whole kernel; there are as many kernels as input channels."""
    return 2 * math.prod(data) * math.prod(weight) // max(data[1 if layout is None else layout.index("C")], 1)


bilinear(deconvolution, deconvolution_data, deconvolution_weight, _deconvolution_work, _bias_gradient)

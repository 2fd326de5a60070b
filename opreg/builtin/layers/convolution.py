"""Convolution and Deconvolution in one to three dimensions, and their gradients, which are each other's operators.

``correlation`` has the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

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
from ..matrices.dense import adjoint, bilinear, layer_input_names
from ..outputs import wide
from ..samples import declare_row_samples
from .correlation import bias_adder, correlate, match, small, spread
from .sliding import Window, channels_first, channels_last, extent, input_extent, spatial, window

__all__ = ["ROLES", "Part", "Role", "convolution_window", "run_convolution", "shift_of", "weight_layout"]

T = TypeVar("T")

Layout = Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]
Tune = Literal["off", "limited_workspace", "fastest"]


def run_convolution(xp: ArrayModule, shape: Shape, out: Array | None, layouts: Sequence[str | None], arrays: Sequence,
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


@declare(name="Convolution", aliases=("Convolution_v1", "_npx_convolution"), arguments=layer_input_names)
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


convolution_data = adjoint("_backward_Convolution_data", convolution, ("g", "weight", "data"))
declare_row_samples(convolution_data, 0, 2)
by_layout(convolution_data, (0, 2), weights_first=True)
convolution_weight = adjoint("_backward_Convolution_weight", convolution, ("g", "data", "weight"))
by_layout(convolution_weight, (0, 1), (), weights_first=True)


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


@declare(name="Deconvolution", aliases=("_npx_deconvolution",), arguments=layer_input_names)
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


deconvolution_data = adjoint("_backward_Deconvolution_data", deconvolution, ("g", "weight", "data"))
deconvolution_weight = adjoint("_backward_Deconvolution_weight", deconvolution, ("g", "data", "weight"))


def _deconvolution_work(data, weight, out, *, layout, **attrs):
    """Each input position multiplies one whole kernel; there are as many kernels as input channels."""
    return 2 * math.prod(data) * math.prod(weight) // max(data[1 if layout is None else layout.index("C")], 1)


bilinear(deconvolution, deconvolution_data, deconvolution_weight, _deconvolution_work, _bias_gradient)


# ----------------------------------------------------------------------------------------------- kernels

#: The part of a convolution of ``x`` with ``w`` to ``y`` that is computed: ``y``, or the gradient of ``x`` or of ``w``.
Part = Literal["forward", "data", "weight"]


class Role(NamedTuple):
    """What an operator computes, as a part of a convolution.

    Attributes
    ----------
    part : Part
    reads, writes : str
        The letters of its inputs, in their order, and of its output; ``b`` is a bias.
    """

    part: Part
    reads: str
    writes: str

    def named(self, ins: Sequence[T], out: T) -> dict[str, T]:
        """Inputs and output, or their shapes, by letter."""
        return {**dict(zip(self.reads, ins)), self.writes: out}


#: The roles of the operators. A transposed convolution is the gradient of a convolution's data.
ROLES: dict[Op, Role] = {
    convolution: Role("forward", "xwb", "y"), convolution_data: Role("data", "yw", "x"),
    convolution_weight: Role("weight", "yx", "w"), deconvolution: Role("data", "ywb", "x"),
    deconvolution_data: Role("forward", "xw", "y"), deconvolution_weight: Role("weight", "xy", "w")}

# The function of each part, its name among those of a small plan, and the first array that it takes.
_COMPUTE: dict[Part, tuple[Callable[..., None], str, str]] = {
    "forward": (correlate, "correlate", "x"), "data": (spread, "spread", "y"), "weight": (match, "match", "y")}


def convolution_window(attrs: Attrs, y: Shape) -> Window:
    """The window of the convolution that an operator computes a part of, whose output ``y`` has channels on axis 1."""
    words = {name: attrs[name] for name in ("kernel", "stride", "dilate", "pad")}
    if "adj" not in attrs:
        return window(**words)
    return deconvolution_window(y[2:], **words, adj=attrs["adj"], target_shape=attrs["target_shape"])[0]


def shift_of(bias: Array, rank: int, layout: str | None) -> Array:
    """A bias in the shape that broadcasts over an output with ``rank`` spatial axes."""
    return bias.reshape(channels_last((1, bias.size, *(1,) * rank), layout))


def _declare_kernel(op: Op, role: Role) -> None:
    compute, name, first = _COMPUTE[role.part]
    biased, turned = "b" in role.reads, role.reads[0] != first

    @op.in_parts  # no body: images are unfolded a block at a time
    def convolving_in_parts(xp, *arrays, **attrs):
        layout, groups, rank = attrs["layout"], attrs["num_group"], len(attrs["kernel"])
        (inferred,), dtype = op.infer_shapes([array.shape for array in arrays], [None], attrs)[1], arrays[0].dtype
        shape: Shape = inferred or ()
        layouts = {"x": layout, "y": layout, "b": None, "w": weight_layout(layout, attrs.get("weights_first", False))}
        shapes = role.named([array.shape for array in arrays], shape)
        x, w, y = [channels_first(shapes[letter], layouts[letter]) for letter in "xwy"]
        win, small_plan = convolution_window(attrs, y), None
        if xp is np and layout in (None, "NCW", "NCHW", "NCDHW") and is_single_or_double(dtype) and (
                dtype == arrays[1].dtype):
            small_plan = small(x, w, y, win, groups)
        small_part = None if small_plan is None else getattr(small_plan, name)
        of_arrays, along = [layouts[letter] for letter in (role.writes, *role.reads)], (-1, *(1,) * rank)

        def run_blocks(target: Array, a: Array, b: Array, bias: Array | None = None) -> None:
            then = [bias_adder(bias, groups, rank)] if role.part == "forward" else []
            compute(xp, *((b, a) if turned else (a, b)), target, win, groups, *then)
            if bias is not None and not then:
                target += bias.reshape(along)

        def run(a: Array, b: Array, *rest: Array, out: Array | None = None) -> Array:
            if small_part is None:
                return run_convolution(xp, shape, out, of_arrays, (a, b, *rest[:biased]), run_blocks)
            result = np.empty(shape, dtype) if out is None else out
            if turned:
                a, b = b, a
            small_part(a, b, result)
            if biased and rest:
                np.add(result, rest[0].reshape(along), result)
            return result

        return run


for _op, _role in ROLES.items():
    _declare_kernel(_op, _role)

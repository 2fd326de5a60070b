"""DeformableConvolution and its modulated form, whose kernel positions are shifted by offsets.

The image is sampled at each kernel position plus an offset, bilinearly, and then multiplied with the kernel by a matrix
product. Offsets are channels: for each group of channels that shares offsets, down and right for each kernel position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ...core.attrs import Positive
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..layers.sliding import Window, extent, window
from ..outputs import like_inputs, wide
from .bilinear import Corner, corners, images, read, rows, slopes, spread

Layout = Literal["NCW", "NCHW", "NCDHW"]


class _Form(NamedTuple):
    """Geometry of one deformable convolution."""

    win: Window
    groups: int
    deformable_groups: int

    @property
    def taps(self) -> int:
        return math.prod(self.win.kernel)


def _form(kernel: Shape, stride: Shape, dilate: Shape, pad: Shape, num_group: int, num_deformable_group: int) -> _Form:
    if len(kernel) != 2:
        raise AttrError(f"kernel={kernel}: expected two numbers, height and width")
    return _Form(window(kernel, stride, dilate, pad), num_group, num_deformable_group)


def _shapes(data: Shape, form: _Form, num_filter: int) -> tuple[Shape, Shape, Shape, Shape]:
    """Shapes of offset, mask, weight and output for a data shape."""
    if len(data) != 4:
        raise ShapeError(f"data: expected shape (batch, channel, height, width), got {show(data)}")
    for count, what in ((form.groups, "num_group"), (form.deformable_groups, "num_deformable_group")):
        if count < 1 or data[1] % count != 0:
            raise AttrError(f"{what}={count} does not divide the {data[1]} channels")
    if num_filter < 1 or num_filter % form.groups != 0:
        raise AttrError(f"num_group={form.groups} does not divide the {num_filter} filters")
    places = extent(data[2:], form.win)
    moved = form.deformable_groups * form.taps
    return ((data[0], 2 * moved, *places), (data[0], moved, *places),
            (num_filter, data[1] // form.groups, *form.win.kernel), (data[0], num_filter, *places))


# ----------------------------------------------------------------------------------------- one image


def _corners(xp: ArrayModule, offset: Array, form: _Form, size: tuple[int, int], modulated: bool,
             slopes: bool) -> list[Corner]:
    """The pixels around each sample of one image: (offset groups × kernel positions × output positions)."""
    (high, across), (kernel, stride, dilate, pad) = offset.shape[1:], form.win
    offset = offset.reshape(form.deformable_groups, *kernel, 2, high, across)
    # Undeformed sample positions by kernel and output position along each axis, shaped to broadcast with the offsets.
    y, x = [(xp.arange(n) * s - p + (xp.arange(k) * d)[:, None]).astype(offset.dtype)
            for n, k, s, d, p in zip((high, across), kernel, stride, dilate, pad)]
    y = (offset[:, :, :, 0] + y[:, None, :, None]).reshape(-1)
    x = (offset[:, :, :, 1] + x[None, :, None, :]).reshape(-1)
    group = xp.repeat(xp.arange(form.deformable_groups), form.taps * high * across)
    if modulated:
        return corners(xp, y, x, size, group, slopes)
    # The first version reads zero outside the image, and extends the last row and column up to its border.
    inside = (y >= 0) & (y < size[0]) & (x >= 0) & (x < size[1])
    down, right = inside & (y < size[0] - 1), inside & (x < size[1] - 1)
    corner_samples = corners(xp, xp.minimum(y, size[0] - 1), xp.minimum(x, size[1] - 1), size, group, slopes)

    def where(reached: Array, part: Any) -> Any:
        return None if part is None else xp.where(reached, part, 0)

    return [corner._replace(weight=where(inside, corner.weight), down=where(down, corner.down),
                            right=where(right, corner.right)) for corner in corner_samples]


def _rows_and_corners(xp: ArrayModule, data: Array, offset: Array, form: _Form, modulated: bool, slopes: bool
                      ) -> Iterator[tuple[int, Array, list[Corner]]]:
    """Each image as rows of channels, group by group, and the pixels that its samples read."""
    _, channels, *size = data.shape
    for n in range(data.shape[0]):
        yield (n, rows(data[n].reshape(form.deformable_groups, channels // form.deformable_groups, *size)),
               _corners(xp, offset[n], form, (size[0], size[1]), modulated, slopes))


def _columns(values: Array, form: _Form) -> Array:
    """Rows of channels, one for each group, kernel and output position, as matrices (groups, channels × kernel
    positions, output positions)."""
    channels = values.shape[1]
    values = values.reshape(form.deformable_groups, form.taps, -1, channels).transpose(0, 3, 1, 2)
    return values.reshape(form.groups, form.deformable_groups * channels * form.taps // form.groups, -1)


def _rows(columns: Array, form: _Form) -> Array:
    """The inverse of ``_columns``."""
    channels = columns.shape[0] * columns.shape[1] // (form.deformable_groups * form.taps)
    columns = columns.reshape(form.deformable_groups, channels, form.taps, -1).transpose(0, 2, 3, 1)
    return columns.reshape(-1, channels)


def _convolve(xp: ArrayModule, data: Array, offset: Array, mask: Array | None, weight: Array, bias: Array | None,
              form: _Form) -> Array:
    data, offset, mask, weight, bias = map(wide, (data, offset, mask, weight, bias))
    shape = _shapes(data.shape, form, weight.shape[0])[3]
    matrices = weight.reshape(form.groups, weight.shape[0] // form.groups, -1)
    y = xp.empty(shape, data.dtype)
    for n, source, places in _rows_and_corners(xp, data, offset, form, mask is not None, False):
        values = read(xp, source, places)
        if mask is not None:
            values = values * mask[n].reshape(-1, 1)
        y[n] = xp.matmul(matrices, _columns(values, form)).reshape(shape[1:])
    if bias is not None:
        y += bias[:, None, None]
    return y


def _gradients(xp: ArrayModule, g: Array, data: Array, offset: Array, mask: Array | None, weight: Array, form: _Form
               ) -> tuple[Array, ...]:
    """Gradients of data, offset, mask (if there is one) and weight."""
    g, data, offset, mask, weight = map(wide, (g, data, offset, mask, weight))
    matrices = weight.reshape(form.groups, weight.shape[0] // form.groups, -1)
    of_data, of_offset = xp.empty(data.shape, data.dtype), xp.empty(offset.shape, data.dtype)
    of_mask = [] if mask is None else [xp.empty(mask.shape, data.dtype)]
    of_weight = xp.zeros(matrices.shape, data.dtype)
    for n, source, places in _rows_and_corners(xp, data, offset, form, mask is not None, True):
        above = g[n].reshape(form.groups, matrices.shape[1], -1)
        values, below = read(xp, source, places), _rows(xp.matmul(matrices.swapaxes(1, 2), above), form)
        if mask is not None:
            of_mask[0][n] = (values * below).sum(1).reshape(mask.shape[1:])
            scale = mask[n].reshape(-1, 1)
            values, below = values * scale, below * scale
        of_weight += xp.matmul(above, _columns(values, form).swapaxes(1, 2))
        groups = form.deformable_groups, data.shape[1] // form.deformable_groups
        of_data[n] = images(spread(xp, source.shape[0], below, places), (*groups, *data.shape[2:])).reshape(
            data.shape[1:])
        shape = (form.deformable_groups, form.taps, *offset.shape[2:])
        moved = [slope.reshape(shape) for slope in slopes(xp, source, below, places)]
        of_offset[n] = xp.stack(moved, axis=2).reshape(offset.shape[1:])
    return (of_data, of_offset, *of_mask, of_weight.reshape(weight.shape))


# ------------------------------------------------------------------------------------------- both versions


def _declare_deformable(op: Op, back: Op, modulated: bool) -> None:
    """Declare a deformable convolution, and the operator of its gradients except that of the bias; the modulated
    version has a mask after the offsets."""
    count = 4 if modulated else 3

    def parts(arrays: Sequence[Array]) -> tuple[Array, Array, Array | None, Array]:
        """Data, offset, mask or None, weight."""
        data, offset, *mask, weight = arrays[:count]
        return data, offset, mask[0] if mask else None, weight

    @op.fill
    def moving_fill(ins, outs, *, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group, no_bias):
        bias = [] if no_bias else [(num_filter,)]
        if ins[0] is None:
            return [*[None] * count, *bias]
        form = _form(kernel, stride, dilate, pad, num_group, num_deformable_group)
        offset, mask, weight, _ = _shapes(ins[0], form, num_filter)
        return [ins[0], offset, *[mask] * modulated, weight, *bias]

    @op.infer
    def moving_infer(data, *others, kernel, stride, dilate, pad, num_filter, num_group, num_deformable_group):
        form = _form(kernel, stride, dilate, pad, num_group, num_deformable_group)
        return _shapes(data, form, num_filter)[3]

    @op.grad
    def moving_grad(g, ins, outs, *, kernel, stride, dilate, pad, num_group, num_deformable_group, needs):
        gradients = back.current(g, *ins[:count], kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                                 num_group=num_group, num_deformable_group=num_deformable_group)
        bias = [ops._backward_Convolution_bias(g, layout="NCHW") if need else None for need in needs[count:]]
        return (*[gradients[i] for i in range(count)], *bias)

    back.infer(like_inputs(*range(1, count + 1)))

    def convolve(xp: ArrayModule, arrays: Sequence[Array], form: _Form) -> Array:
        return _convolve(xp, *parts(arrays), arrays[count] if len(arrays) > count else None, form)

    _declare_kernel(op, convolve)
    _declare_kernel(back, lambda xp, arrays, form: _gradients(xp, arrays[0], *parts(arrays[1:]), form))


def _declare_kernel(op: Op, function: Callable[..., Any]) -> None:
    """Declare that ``function(xp, arrays, form)`` computes an operator."""

    @op.kernel()  # no body: image by image, which limits the memory; the gradients share the samples of an image
    def by_samples_xp(xp, *arrays, kernel, stride, dilate, pad, num_group, num_deformable_group):
        return function(xp, arrays, _form(kernel, stride, dilate, pad, num_group, num_deformable_group))


# --------------------------------------------------------------------------------- DeformableConvolution


@declare(name="_contrib_DeformableConvolution",
         arguments=lambda *, no_bias: ("data", "offset", "weight") + (() if no_bias else ("bias",)))
def deformable(data, offset, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
               dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
               num_deformable_group: Positive = 1, workspace: int = 1024, no_bias: bool = False,
               layout: Layout | None = None):
    """A convolution whose kernel positions are shifted by offsets (Dai et al. 2017).

    ``offset`` has shape (batch, 2 * num_deformable_group * kernel size, *output shape): for each kernel position the
    shift down and the shift to the right, in pixels.
    """


@declare(name="_backward__contrib_DeformableConvolution", outputs=("data", "offset", "weight"))
def deformable_backward(g, data, offset, weight, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                        dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_group: Positive = 1,
                        num_deformable_group: Positive = 1):
    """The gradients of data, offsets and weight, which share the samples of the image."""


_declare_deformable(deformable, deformable_backward, False)


# ------------------------------------------------------------------------ ModulatedDeformableConvolution


@declare(name="_contrib_ModulatedDeformableConvolution",
         arguments=lambda *, no_bias: ("data", "offset", "mask", "weight") + (() if no_bias else ("bias",)))
def modulated(data, offset, mask, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
              dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
              num_deformable_group: Positive = 1, workspace: int = 1024, no_bias: bool = False, im2col_step: int = 64,
              layout: Layout | None = None):
    """A convolution whose kernel positions are shifted by offsets and weighted by ``mask`` (Zhu et al. 2018).

    ``mask`` has shape (batch, num_deformable_group * kernel size, *output shape). Unlike in
    ``_contrib_DeformableConvolution``, samples between the border and the outside are interpolated with zeros.
    """


@declare(name="_backward__contrib_ModulatedDeformableConvolution", outputs=("data", "offset", "mask", "weight"))
def modulated_backward(g, data, offset, mask, weight, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                       dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_group: Positive = 1,
                       num_deformable_group: Positive = 1):
    """The gradients of data, offsets, mask and weight, which share the samples of the image."""


_declare_deformable(modulated, modulated_backward, True)


@deformable.flops
@modulated.flops
def deformable_flops(ins, outs, *, no_bias):
    weight = ins[-1 if no_bias else -2]
    return 2 * math.prod(outs[0]) * math.prod(weight[1:])


@deformable_backward.flops
@modulated_backward.flops
def deformable_backward_flops(ins, outs):
    """The gradients of the columns and of the weight; ``g`` is the first input and the weight the last."""
    return 4 * math.prod(ins[0]) * math.prod(ins[-1][1:])

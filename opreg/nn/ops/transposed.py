"""Transposed convolutions, which the layers call, too."""

from __future__ import annotations

from collections.abc import Sequence

from ...cells.tensor import Tensor
from ...cells.typing import Sizes, TensorLike
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .lift import tensor, to_common_dtype
from .nn import sizes
from .primitive import adder

__all__ = ["conv3d_transpose"]

_add = adder(globals(), __all__)


def transposed(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], dilation: Sequence[int],
               pad_mode: str, sides: Sequence[tuple[int, int]], group: int, output_padding: Sequence[int]) -> Tensor:
    """The full transposed convolution, cropped by the padding; ``sides`` has it for each axis, before and behind."""
    kernel = weight.shape[2:]
    reaches = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    totals = [max(reach - step, 0) for reach, step in zip(reaches, stride)]
    if pad_mode == "same":
        sides = [(total // 2, total - total // 2) for total in totals]
    pad = tuple(min(pair) for pair in sides)
    more = tuple(max(step - reach, 0) if pad_mode != "pad" else 0 for reach, step in zip(reaches, stride))
    inputs = (x, weight) if bias is None else (x, weight, bias)
    y = ops.Deconvolution(*inputs, kernel=kernel, stride=stride, dilate=dilation, pad=pad, adj=more,
                          num_filter=weight.shape[1] * group, num_group=group, no_bias=bias is None)
    for axis, (before, after) in enumerate(sides, 2):
        if before != after:
            low = before - pad[axis - 2]
            high = y.shape[axis] - (after - pad[axis - 2])
            y = ops.slice_axis(y, axis=axis, begin=low, end=high)
    if any(output_padding):
        flat = (0, 0, 0, 0, *(width for more in output_padding for width in (0, more)))
        y = ops.Pad(y, mode="constant", pad_width=flat)
    return y


def conv3d_transpose(inputs: TensorLike, weight: TensorLike, pad_mode: str = "valid", padding: Sizes = 0,
                     stride: Sizes = 1, dilation: Sizes = 1, group: int = 1, output_padding: Sizes = 0) -> Tensor:
    """A transposed convolution over data (batch, channels, depth, height, width).

    Parameters
    ----------
    inputs : Tensor
        Data.
    weight : Tensor
        Kernels of shape (channels, channels of the result / group, depth, height, width).
    pad_mode : {"same", "valid", "pad"}
        Cropping to ``stride`` times the lengths; none; by ``padding``.
    padding : int or tuple of 6 int
        Elements cropped at each side: front, back, top, bottom, left, right.
    stride, dilation : int or tuple of 3 int
        Strides and dilations of the kernel.
    group : int
        Number of groups of channels.
    output_padding : int or tuple of 3 int
        Zeros behind the result, with ``pad_mode="pad"``.

    Examples
    --------
    >>> import opreg as ms
    >>> conv3d_transpose(ms.ops.ones((1, 2, 3, 3, 3)), ms.ops.ones((2, 4, 2, 2, 2)), stride=2).shape
    (1, 4, 6, 6, 6)
    """
    x, kernels = to_common_dtype(tensor(inputs), tensor(weight))
    if x.ndim != 5 or kernels.ndim != 5 or x.shape[1] != kernels.shape[0]:
        raise ShapeError("conv3d_transpose: expected data (batch, channels, …) and weight (channels, …) with five axes "
                         f"each, got {show(x.shape)} and {show(kernels.shape)}")
    mode = pad_mode.lower()
    if mode not in ("same", "valid", "pad"):
        raise ArgumentError(f"conv3d_transpose: pad_mode must be 'same', 'valid' or 'pad', got {pad_mode!r}")
    six = (padding,) * 6 if isinstance(padding, int) else tuple(padding)
    if len(six) != 6 or (mode != "pad" and any(six)):
        raise ArgumentError("conv3d_transpose: padding must be an int or six of them, and 0 unless pad_mode is 'pad', "
                            f"got {padding!r} with {pad_mode!r}")
    more = sizes(output_padding, 3, "conv3d_transpose: output_padding")
    if any(more) and mode != "pad":
        raise ArgumentError("conv3d_transpose: output_padding needs pad_mode 'pad'")
    return transposed(x, kernels, None, sizes(stride, 3, "stride"), sizes(dilation, 3, "dilation"), mode,
                      tuple(zip(six[::2], six[1::2])), group, more)


def _primitive(x: TensorLike, weight: TensorLike, *, in_channel: int, out_channel: int, kernel_size: Sizes, mode: int,
               pad_mode: str, pad: Sizes, stride: Sizes, dilation: Sizes, group: int, output_padding: Sizes,
               data_format: str) -> Tensor:
    kernels, (depth, height, width) = tensor(weight), sizes(kernel_size, 3, "Conv3DTranspose: kernel_size")
    expected = in_channel, out_channel // group, depth, height, width
    if kernels.shape != expected:
        raise ShapeError(f"Conv3DTranspose: expected a weight of shape {show(expected)}, got {show(kernels.shape)}")
    return conv3d_transpose(x, kernels, pad_mode, pad, stride, dilation, group, output_padding)


_add("Conv3DTranspose", _primitive, {"in_channel": ..., "out_channel": ..., "kernel_size": ..., "mode": 1,
                                     "pad_mode": "valid", "pad": 0, "stride": 1, "dilation": 1, "group": 1,
                                     "output_padding": 0, "data_format": "NCDHW"})

"""Convolutions and transposed convolutions in one to three dimensions, with MindSpore's padding."""

from __future__ import annotations

from typing import Any

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import InitializerLike
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import Sizes, TensorDType
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import nn
from ..ops.lift import rank_of
from ..ops.transposed import transposed
from .checks import (
    bound_of,
    channels_apart,
    check_int,
    check_ints,
    check_word,
    fan_parameter,
    flag,
    new_parameter,
    of_one_dtype,
)

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose"]

PAD_MODES = ("same", "valid", "pad")


class _Convolution(Cell):
    """Base of all six convolutions."""

    _dims = 0
    _transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 pad_mode: str = "same", padding: Sizes = 0, dilation: Sizes = 1, group: int = 1,
                 has_bias: bool = False, weight_init: InitializerLike | None = None,
                 bias_init: InitializerLike | None = None, data_format: str = "", dtype: TensorDType = float32,
                 output_padding: Sizes = 0):
        super().__init__()
        rank, dims = max(self._dims, 2), self._dims
        self.in_channels = check_int(self, "in_channels", in_channels)
        self.out_channels = check_int(self, "out_channels", out_channels)
        self.kernel_size = self._sizes("kernel_size", kernel_size, 1)
        self.stride, self.dilation = self._sizes("stride", stride, 1), self._sizes("dilation", dilation, 1)
        self.output_padding = self._sizes("output_padding", output_padding, 0, 0)
        self.pad_mode = check_word(self, "pad_mode", pad_mode, PAD_MODES)
        self.group = check_int(self, "group", group)
        if in_channels % group or out_channels % group:
            raise ArgumentError(f"{type(self).__name__}: group {group} must divide in_channels {in_channels} and "
                                f"out_channels {out_channels}")
        self.has_bias = flag(self, "has_bias", has_bias)
        self.data_format = "NCDHW" if dims == 3 else "NCHW"
        if data_format not in ("", self.data_format):
            raise ArgumentError(f"{type(self).__name__}: data_format must be {self.data_format}, got {data_format!r}")
        sides = check_ints(self, "padding", padding, 2 * dims, 0)
        if self.pad_mode != "pad" and any(sides):
            raise ArgumentError(f"{type(self).__name__}: padding must be 0 unless pad_mode is 'pad', got {padding!r} "
                                f"with pad_mode {self.pad_mode!r}")
        self.padding = (0, 0, *sides) if dims == 1 else padding
        self._sides = ((0, 0),) * (rank - dims) + tuple(zip(sides[::2], sides[1::2]))
        if any(self.output_padding) and self.pad_mode != "pad":
            raise ArgumentError(f"{type(self).__name__}: output_padding needs pad_mode 'pad'")
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (first, second // group, *self.kernel_size)
        self.weight_init, self.bias_init = weight_init, bias_init
        if dims == 1 and isinstance(weight_init, TensorBase) and len(weight_init.shape) == 3:
            weight_init = weight_init.expand_dims(2)
        self.weight = fan_parameter(weight_init, shape, "weight", dtype)
        self.bias = new_parameter(bound_of(bias_init, shape), (out_channels,), "bias", dtype) if has_bias else None

    def _sizes(self, name: str, value: Sizes, least: int, beside: int = 1) -> tuple[int, ...]:
        """A value for each axis; data of one axis are treated as images of height one."""
        if self._dims > 1:
            return check_ints(self, name, value, self._dims, least)
        return beside, check_int(self, name, value, least)

    def misfit(self, *inputs: Any) -> str | None:
        return channels_apart(self, inputs[0], 1, self.in_channels, "channels", (self._dims + 2,))

    def construct(self, x: Tensor) -> Tensor:
        """Apply the layer to ``x`` (batch, in_channels, ...)."""
        of_one_dtype(self, x, self.weight)
        if rank_of(x) not in (None, self._dims + 2):
            raise ShapeError(f"{type(self).__name__}: expected {self._dims + 2} axes, got the shape {show(x.shape)}")
        if self._dims > 1:
            return self._convolve(x)
        y = self._convolve(ops.expand_dims(x, axis=2))
        return ops.squeeze(y, axis=(2,))

    def _convolve(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def extend_repr(self) -> str:
        """All attributes."""
        return (f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
                f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
                f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
                f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}")


#: MindSpore's name, by which programs find convolutions.
_Conv = _Convolution


class _Forward(_Convolution):
    def _convolve(self, x: Tensor) -> Tensor:
        padding = tuple(width for pair in self._sides for width in pair) if self.pad_mode == "pad" else 0
        function = nn.conv3d if self._dims == 3 else nn.conv2d
        return function(x, self.weight, self.bias, self.stride, self.pad_mode, padding, self.dilation, self.group)


class _TransposedConvolution(_Convolution):
    _transposed = True

    def _convolve(self, x: Tensor) -> Tensor:
        return transposed(x, self.weight, self.bias, self.stride, self.dilation, self.pad_mode, self._sides, self.group,
                          self.output_padding)


class Conv2d(_Forward):
    """A convolution over images (batch, channels, height, width).

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the data and of the result.
    kernel_size, stride, dilation : int or tuple of 2 int
        Lengths, strides and dilations of the kernel.
    pad_mode : {"same", "valid", "pad"}
        Zeros that make ``ceil(n / stride)`` windows, with one more at the end if their number is odd; no padding; the
        given ``padding``.
    padding : int or tuple of 4 int
        Zeros (top, bottom, left, right), or one number for all sides.
    group : int
        Number of groups of channels.
    has_bias : bool
    weight_init, bias_init
        Initial values, see ``initializer``; by default uniform within ``1 / sqrt(inputs of a window)``.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> Conv2d(3, 8, 3, stride=2)(nn.Tensor([[[[1.0] * 5] * 5] * 3])).shape
    (1, 8, 3, 3)
    """

    _dims = 2


class Conv3d(_Forward):
    """A convolution over data (batch, channels, depth, height, width); see ``Conv2d``; ``padding`` has six values.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv3d(2, 4, 3)(ops.ones((1, 2, 5, 5, 5))).shape
    (1, 4, 5, 5, 5)
    """

    _dims = 3


class Conv1d(_Forward):
    """A convolution over sequences (batch, channels, length); see ``Conv2d``.

    Its weight has the shape (out_channels, in_channels / group, 1, kernel_size); a Tensor that it begins with may have
    it without the 1.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv1d(2, 4, 3, pad_mode="valid")(ops.ones((1, 2, 8))).shape
    (1, 4, 6)
    """

    _dims = 1

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, pad_mode: str = "same",
                 padding: Sizes = 0, dilation: int = 1, group: int = 1, has_bias: bool = False,
                 weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
                 dtype: TensorDType = float32):
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, dtype=dtype)


class Conv2dTranspose(_TransposedConvolution):
    """A transposed convolution over images (batch, channels, height, width); for the parameters see ``Conv2d``.

    The length of the result is ``n * stride`` with pad_mode "same", ``n * stride + max(reach - stride, 0)`` with
    "valid", and ``(n - 1) * stride + reach - padding`` with "pad", where ``reach`` is ``(kernel_size - 1) * dilation +
    1``. ``output_padding`` rows and columns of zeros are appended.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv2dTranspose(3, 4, 2, stride=2)(ops.ones((1, 3, 5, 5))).shape
    (1, 4, 10, 10)
    """

    _dims = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 pad_mode: str = "same", padding: Sizes = 0, output_padding: Sizes = 0, dilation: Sizes = 1,
                 group: int = 1, has_bias: bool = False, weight_init: InitializerLike | None = None,
                 bias_init: InitializerLike | None = None, dtype: TensorDType = float32):
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, dtype=dtype, output_padding=output_padding)


class Conv3dTranspose(_TransposedConvolution):
    """A transposed convolution over data (batch, channels, depth, height, width); see ``Conv2dTranspose``.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv3dTranspose(2, 4, 2, stride=2)(ops.ones((1, 2, 3, 3, 3))).shape
    (1, 4, 6, 6, 6)
    """

    _dims = 3

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 pad_mode: str = "same", padding: Sizes = 0, dilation: Sizes = 1, group: int = 1,
                 output_padding: Sizes = 0, has_bias: bool = False, weight_init: InitializerLike | None = None,
                 bias_init: InitializerLike | None = None, data_format: str = "NCDHW", dtype: TensorDType = float32):
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, data_format, dtype, output_padding)


class Conv1dTranspose(_TransposedConvolution):
    """A transposed convolution over sequences (batch, channels, length); see ``Conv2dTranspose``.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv1dTranspose(2, 4, 2, stride=2)(ops.ones((1, 2, 8))).shape
    (1, 4, 16)
    """

    _dims = 1

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, pad_mode: str = "same",
                 padding: Sizes = 0, dilation: int = 1, group: int = 1, has_bias: bool = False,
                 weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
                 dtype: TensorDType = float32):
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, dtype=dtype)

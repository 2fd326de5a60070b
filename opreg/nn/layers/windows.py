"""Fractional max pooling, power-average pooling, unpooling, and unfolding of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...cells.typing import Sizes
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import nn, windows
from .checks import check_ints, check_word, flag

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "MaxUnpool1d", "MaxUnpool2d",
           "MaxUnpool3d", "Unfold"]


class _Unpool(Cell):
    """Base of unpoolings, with the windows of the pooling."""

    _dims = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0):
        super().__init__()
        check_ints(self, "kernel_size", kernel_size, self._dims)
        check_ints(self, "padding", padding, self._dims, 0)
        if stride is not None:
            check_ints(self, "stride", stride, self._dims, 0)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, x: Tensor, indices: Tensor, output_size: tuple[int, ...] | None = None) -> Tensor:
        """The elements of ``x`` at the positions ``indices``, zeros elsewhere; for ``output_size`` see
        ``ops.max_unpool2d``."""
        function = getattr(windows, f"max_unpool{self._dims}d")
        return function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_Unpool):
    """Inverts ``MaxPool2d``: puts the maxima of windows of images at their positions, and zeros elsewhere.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of 2 int
        Settings of the pooling; ``stride`` is ``kernel_size`` by default.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> images = nn.Tensor([[[[1.0, 2.0], [4.0, 3.0]]]])
    >>> print(MaxUnpool2d(2)(*nn.MaxPool2d(2, 2, "pad", return_indices=True)(images)))
    [[[[0. 0.]
       [4. 0.]]]]
    """

    _dims = 2


class MaxUnpool1d(_Unpool):
    """Inverts ``MaxPool1d``: puts the maxima of windows of sequences at their positions; see ``MaxUnpool2d``."""

    _dims = 1


class MaxUnpool3d(_Unpool):
    """Inverts ``MaxPool3d``: puts the maxima of windows of volumes at their positions; see ``MaxUnpool2d``."""

    _dims = 3


class _Fractional(Cell):
    _dims = 0

    def __init__(self, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None):
        super().__init__()
        check_ints(self, "kernel_size", kernel_size, self._dims)
        windows.output_sizes(type(self).__name__, self._dims, (0,) * self._dims, output_size, output_ratio)
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = flag(self, "return_indices", return_indices)
        self._random_samples = _random_samples

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maximum of each window of ``input`` ([batch,] channels, ...), and with ``return_indices`` its index."""
        function = getattr(windows, f"fractional_max_pool{self._dims}d")
        return function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                        self._random_samples)


class FractionalMaxPool2d(_Fractional):
    """The maximum of windows of images, at random positions that give the requested number of windows.

    Parameters
    ----------
    kernel_size : int or tuple of 2 int
        Lengths of a window.
    output_size, output_ratio
        Number of windows along each axis, or its ratio to the length, between 0 and 1.
    return_indices : bool
        Whether the flat index of each maximum in its image is returned, too.
    _random_samples : Tensor of shape (batch, channels, 2), optional
        Random values that decide the positions; drawn in each call by default.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> nn.FractionalMaxPool2d(2, output_size=(2, 2))(ops.ones((1, 1, 5, 5)))[0].shape
    (1, 2, 2)
    """

    _dims = 2


class FractionalMaxPool3d(_Fractional):
    """The maximum of windows of volumes, at random positions; see ``FractionalMaxPool2d``.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> nn.FractionalMaxPool3d(2, output_size=(2, 2, 2))(ops.ones((1, 1, 5, 5, 5)))[0].shape
    (1, 2, 2, 2)
    """

    _dims = 3


class _Powers(Cell):
    _dims = 0

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False):
        super().__init__()
        check_ints(self, "kernel_size", kernel_size, self._dims)
        if stride is not None:
            check_ints(self, "stride", stride, self._dims)
        self.norm_type, self.kernel_size, self.stride = norm_type, kernel_size, stride
        self.ceil_mode = flag(self, "ceil_mode", ceil_mode)

    def construct(self, x: Tensor) -> Tensor:
        """The power average of each window of ``x`` ([batch,] channels, ...)."""
        function = getattr(windows, f"lp_pool{self._dims}d")
        return function(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_Powers):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of images.

    Parameters
    ----------
    norm_type : float
        The power, not 0.
    kernel_size, stride : int or tuple of 2 int
        Lengths and strides of the window; by default windows do not overlap.
    ceil_mode : bool
        Whether a last window may extend beyond the border.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.LPPool2d(2, (1, 2))(Tensor([[[[3.0, 4.0]]]])).asnumpy().round(3))
    [[[[5.]]]]
    """

    _dims = 2


class LPPool1d(_Powers):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of sequences; see ``LPPool2d``.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.LPPool1d(1, 2)(Tensor([[[1.0, 2.0, 3.0, 4.0]]])))
    [[[3. 7.]]]
    """

    _dims = 1


class Unfold(Cell):
    """The windows of images, moved to channels: the image's channels are innermost, then the columns of a window, then
    its rows.

    Parameters
    ----------
    ksizes, strides, rates : sequence of int
        Lengths, strides and dilations of the window, each as ``(1, rows, columns, 1)``.
    padding : {"valid", "same"}
        Whether windows lie inside the image, or zeros around it make ``ceil(length / stride)`` of them.

    Raises
    ------
    ArgumentError
        For settings of another form.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> Unfold((1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1))(nn.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).reshape((-1,))
    Tensor(shape=[4], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00,  3.00000000e+00,  4.00000000e+00])
    """

    def __init__(self, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str = "valid"):
        super().__init__()
        self.kernel, self.stride, self.dilation = (
            _inner(self, name, value) for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)))
        self.padding = check_word(self, "padding", padding, ("valid", "same"))

    def construct(self, input_x: Tensor) -> Tensor:
        """``input_x`` (batch, channels, height, width) as (batch, rows * columns * channels, windows along each)."""
        if len(input_x.shape) != 4:
            raise ShapeError(f"Unfold: expected images (batch, channels, height, width), got {show(input_x.shape)}")
        if self.padding == "same":
            input_x = nn.padded(input_x, nn.same_pads(input_x.shape[2:], self.kernel, self.stride, self.dilation))
        n, channels, *lengths = input_x.shape
        counts = [(length - dilation * (kernel - 1) - 1) // stride + 1
                  for length, kernel, stride, dilation in zip(lengths, self.kernel, self.stride, self.dilation)]
        windows = nn.unfold(input_x, self.kernel, self.dilation, 0, self.stride)
        apart = windows.reshape((n, channels, math.prod(self.kernel), *counts))
        return apart.swapaxes(1, 2).reshape((n, -1, *counts))


def _inner(cell: Cell, name: str, value: Sequence[int]) -> tuple[int, ...]:
    """The values for rows and columns."""
    if not isinstance(value, (tuple, list)) or len(value) != 4 or value[0] != 1 or value[3] != 1:
        raise ArgumentError(f"{type(cell).__name__}: {name} must be (1, rows, columns, 1), got {value!r}")
    return check_ints(cell, name, tuple(value[1:3]), 2)

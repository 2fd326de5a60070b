"""Pooling in one to three dimensions, with MindSpore's padding, and pooling to a given size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...cells.typing import Sizes
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import nn, windows
from ..ops.lift import rank_of
from .checks import check_int, check_ints, check_word, flag

__all__ = ["MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d",
           "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"]


class _Pool(Cell):
    """Base of all pooling layers: window sizes, and padding at the border."""

    _dims = 0
    _type = ""

    def __init__(self, kernel_size: Sizes, stride: Sizes, pad_mode: str, padding: Sizes, ceil_mode: bool,
                 count_include_pad: bool = True, divisor_override: int | None = None, data_format: str = ""):
        super().__init__()
        self._kernel = check_ints(self, "kernel_size", kernel_size, self._dims)
        self._stride = check_ints(self, "stride", stride, self._dims)
        self.kernel_size = (1, *self._kernel) if self._dims == 1 else kernel_size
        self.stride = (1, *self._stride) if self._dims == 1 else stride
        self.pad_mode = check_word(self, "pad_mode", pad_mode, ("same", "valid", "pad")).upper()
        self._pad = check_ints(self, "padding", padding, self._dims, 0)
        self.ceil_mode = flag(self, "ceil_mode", ceil_mode)
        self.count_include_pad = flag(self, "count_include_pad", count_include_pad)
        self.divisor_override = divisor_override
        if divisor_override is not None:
            check_int(self, "divisor_override", divisor_override)
        self._divisor = divisor_override
        # In MindSpore the zeros of pad_mode "same" count in three dimensions, and in one or two with ceil_mode.
        if self.pad_mode == "SAME" and not divisor_override and count_include_pad and (self._dims == 3 or ceil_mode):
            self._divisor = math.prod(self._kernel)
        if self.pad_mode != "PAD" and (any(self._pad) or (ceil_mode and self._type == "max")):
            raise ArgumentError(f"{type(self).__name__}: {'padding' if any(self._pad) else 'ceil_mode'} needs pad_mode "
                                f"'pad', got {pad_mode!r}")
        if data_format not in ("", "NCHW"):
            raise ArgumentError(f"{type(self).__name__}: data_format must be NCHW, got {data_format!r}")

    def construct(self, x: Tensor) -> Tensor:
        """The maximum or average of each window of ``x`` ([batch,] channels, ...)."""
        axes = self._dims
        if rank_of(x) not in (None, axes + 1, axes + 2):
            raise ShapeError(f"{type(self).__name__}: expected {axes + 1} or {axes + 2} axes, got the shape "
                             f"{show(x.shape)}")
        if self.pad_mode != "SAME":
            return self._windows(x, self._pad, self.ceil_mode, self.count_include_pad)
        pad, first = [], []
        behind = len(x.shape) - axes
        for axis, (kernel, stride) in enumerate(zip(self._kernel, self._stride), behind):
            total = nn.same_total(x.shape[axis], kernel, stride)
            if total < 0:  # no window covers the last elements
                x = ops.slice_axis(x, axis=axis, begin=0, end=x.shape[axis] + total)
            total = max(total, 0)
            # The operator pads both sides equally, and rounding up drops a surplus window at the end; with a stride
            # of one the surplus window is the first one instead.
            more = total % 2 if stride == 1 else 0
            pad.append(total // 2 + more)
            first.append(more)
        y = self._windows(x, tuple(pad), True, False)
        for axis, begin in enumerate(first, behind):
            if begin:
                y = ops.slice_axis(y, axis=axis, begin=begin, end=None)
        return y

    def _windows(self, x: Tensor, pad: tuple[int, ...], ceil: bool, count_pad: bool) -> Tensor:
        if self._type == "max":
            return nn.pool("max", self._dims, x, self._kernel, self._stride, pad, ceil)
        return nn.averages(self._dims, x, self._kernel, self._stride, pad, ceil, count_pad, self._divisor or 0)

    def extend_repr(self) -> str:
        """Windows and padding."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPool(_Pool):
    _type = "max"

    def __init__(self, kernel_size: Sizes = 1, stride: Sizes = 1, pad_mode: str = "valid", padding: Sizes = 0,
                 dilation: Sizes = 1, return_indices: bool = False, ceil_mode: bool = False, data_format: str = ""):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format=data_format)
        self.dilation, self.return_indices = dilation, flag(self, "return_indices", return_indices)
        self._dilation = check_ints(self, "dilation", dilation, self._dims)
        self._places = return_indices or any(step != 1 for step in self._dilation)
        if self._places and self.pad_mode != "PAD":
            raise ArgumentError(f"{type(self).__name__}: dilation and return_indices need pad_mode 'pad', got "
                                f"{pad_mode!r}")

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]
        """The maximum of each window of ``x`` ([batch,] channels, ...), and with ``return_indices`` its index."""
        if not self._places:
            return super().construct(x)
        pooled = windows.max_windows(x, self._dims, self._kernel, self._stride, self._pad, self._dilation,
                                     self.ceil_mode)
        return pooled if self.return_indices else pooled[0]


class MaxPool2d(_MaxPool):
    """The maximum of each window of images ([batch,] channels, height, width).

    Parameters
    ----------
    kernel_size, stride : int or tuple of 2 int
        Lengths and strides of the window.
    pad_mode : {"valid", "same", "pad"}
        No padding; padding that makes ``ceil(n / stride)`` windows; the given ``padding``. Padding never is the
        maximum.
    padding : int or tuple of 2 int
        Elements added on both sides, with pad_mode "pad".
    dilation : int or tuple of 2 int
        Dilation of the window, with pad_mode "pad".
    return_indices : bool
        Whether the flat index of each maximum in its image is returned, too, with pad_mode "pad".
    ceil_mode : bool
        Whether a last window may extend beyond the border, with pad_mode "pad".

    Examples
    --------
    >>> import opreg.nn as nn
    >>> MaxPool2d(2, 2)(nn.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).shape
    (1, 1, 1, 1)
    """

    _dims = 2


class MaxPool1d(_MaxPool):
    """The maximum of each window of sequences ([batch,] channels, length); see ``MaxPool2d``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(MaxPool1d(2, stride=2)(Tensor([[[1.0, 3.0, 5.0, 7.0]]])))
    [[[3. 7.]]]
    """

    _dims = 1


class MaxPool3d(_MaxPool):
    """The maximum of each window of data ([batch,] channels, depth, height, width); see ``MaxPool2d``.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> nn.MaxPool3d(2, 2)(ops.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _dims = 3


class AvgPool2d(_Pool):
    """The average of each window of images ([batch,] channels, height, width).

    Parameters
    ----------
    kernel_size, stride, pad_mode, padding, ceil_mode
        See ``MaxPool2d``; each pad_mode takes ``ceil_mode``.
    count_include_pad : bool
        Whether the average divides by zeros of ``padding``, too. Zeros of pad_mode "same" are counted in ``AvgPool3d``,
        and with ``ceil_mode``.
    divisor_override : int, optional
        Divisor of sums instead of the count.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(AvgPool2d(2)(Tensor([[[[1.0, 3.0], [5.0, 7.0]]]])))
    [[[[4.]]]]
    """

    _dims, _type = 2, "avg"

    def __init__(self, kernel_size: Sizes = 1, stride: Sizes = 1, pad_mode: str = "valid", padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
                 data_format: str = ""):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override,
                         data_format)


class AvgPool1d(AvgPool2d):
    """The average of each window of sequences ([batch,] channels, length); see ``AvgPool2d``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(AvgPool1d(2, stride=2)(Tensor([[[1.0, 3.0, 5.0, 7.0]]])))
    [[[2. 6.]]]
    """

    _dims = 1


class AvgPool3d(AvgPool2d):
    """The average of each window of data ([batch,] channels, depth, height, width); see ``AvgPool2d``.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> nn.AvgPool3d(2, 2)(ops.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _dims = 3


# --------------------------------------------------------------------------------------- to a given size


class _Adaptive(Cell):
    """Base of adaptive poolings: a grid over the last axes; cell ``i`` of ``m`` covers ``floor(i n / m)`` to ``ceil((i
    + 1) n / m)``."""

    _dims = 0
    _kind = ""

    def __init__(self, output_size: int | Sequence[int | None] | None):
        super().__init__()
        sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * self._dims
        if len(sizes) != self._dims:
            raise ArgumentError(f"{type(self).__name__}: output_size must be an int or {self._dims} of them, got "
                                f"{output_size!r}")
        self.output_size = tuple(None if size is None else check_int(self, "output_size", size) for size in sizes)

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The average or maximum of each cell of the grid, ([batch,] channels, ...)."""
        axes = self._dims
        if len(input.shape) not in (axes + 1, axes + 2):
            raise ShapeError(f"{type(self).__name__}: expected {axes + 1} or {axes + 2} axes, got the shape "
                             f"{show(input.shape)}")
        return nn.adaptive_pool(self._kind, axes, input, self.output_size)


class _AdaptiveMax(_Adaptive):
    """Base of adaptive max poolings, which may return the flat index of each maximum, too."""

    _kind = "max"

    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = flag(self, "return_indices", return_indices)

    def construct(self, input: Tensor) -> Any:
        """The maximum of each cell of the grid, and its flat index if that was requested."""
        if not self.return_indices:
            return super().construct(input)
        return (windows.adaptive_max_pool2d if self._dims == 2 else windows.adaptive_max_pool3d)(
            input, self.output_size, True)


class AdaptiveAvgPool2d(_Adaptive):
    """Averages over a grid of ``output_size`` (height, width) on images ([batch,] channels, height, width).

    None as a size leaves the axis unchanged.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> AdaptiveAvgPool2d(1)(nn.Tensor([[[[1.0, 2.0], [3.0, 6.0]]]]))[0, 0, 0, 0].item()
    3.0
    """

    _dims, _kind = 2, "avg"


class AdaptiveAvgPool1d(_Adaptive):
    """Averages over ``output_size`` parts of sequences ([batch,] channels, length).

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(AdaptiveAvgPool1d(2)(Tensor([[[1.0, 3.0, 5.0, 7.0]]])))
    [[[2. 6.]]]
    """

    _dims, _kind = 1, "avg"


class AdaptiveAvgPool3d(_Adaptive):
    """Averages over a grid of ``output_size`` on data ([batch,] channels, depth, height, width).

    Examples
    --------
    >>> from opreg import nn, ops
    >>> nn.AdaptiveAvgPool3d(2)(ops.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    _dims, _kind = 3, "avg"


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maxima over a grid of ``output_size`` (height, width) on images ([batch,] channels, height, width).

    Examples
    --------
    >>> from opreg import ops
    >>> AdaptiveMaxPool2d(2)(ops.ones((1, 3, 8, 8))).shape
    (1, 3, 2, 2)
    """

    _dims = 2


class AdaptiveMaxPool1d(_Adaptive):
    """Maxima over ``output_size`` parts of sequences ([batch,] channels, length)."""

    _dims, _kind = 1, "max"


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Maxima over a grid of ``output_size`` on data ([batch,] channels, depth, height, width)."""

    _dims = 3

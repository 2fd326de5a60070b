"""Resizing of images, and layers that exchange channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...cells.typing import AnyShape, Sizes
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import ResizeBilinearV2, nn
from .checks import check_int, check_word, flag

__all__ = ["Upsample", "ResizeBilinear", "PixelShuffle", "PixelUnshuffle"]


class Upsample(Cell):
    """Resizes images along all axes after the second.

    Parameters
    ----------
    size : int or tuple of int, optional
        The new lengths.
    scale_factor : float or tuple of float, optional
        Factors of the lengths, instead of ``size``.
    mode : {"nearest", "linear", "bilinear", "trilinear", "bicubic", "area"}
        The nearest element; linear interpolation, for images of one, two or three axes; cubic interpolation, for two
        axes; or means over cells.
    align_corners : bool, optional
        Whether interpolation maps the corner elements of input and output to each other.

    Examples
    --------
    >>> from opreg import ops
    >>> Upsample(scale_factor=2.0, recompute_scale_factor=True)(ops.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                 mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None):
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ArgumentError("Upsample: expected either size or scale_factor")
        self.size, self.scale_factor = size, scale_factor
        self.mode = check_word(self, "mode", mode, ("nearest", "linear", "bilinear", "trilinear", "bicubic", "area"))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        """Resize ``x`` (batch, channels, ...)."""
        old = x.shape[2:]
        setting = self.scale_factor if self.size is None else self.size
        numbers: tuple[Any, ...] = tuple(setting) if isinstance(setting, (tuple, list)) else (setting,) * len(old)
        if len(numbers) != len(old):
            raise ShapeError(f"Upsample: {len(numbers)} numbers do not fit the shape {show(x.shape)}")
        axes = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}.get(self.mode, len(old))
        if len(old) != axes:
            raise ShapeError(f"Upsample: mode {self.mode!r} needs images of {axes} axes, got the shape {show(x.shape)}")
        size, factor = (None, numbers) if self.size is None else (numbers, None)
        return nn.interpolate(x, size, factor, self.mode, self.align_corners, self.recompute_scale_factor)


class ResizeBilinear(Cell):
    """Resizes images with bilinear interpolation.

    Parameters
    ----------
    half_pixel_centers : bool
        Whether coordinates refer to the centers of pixels, instead of their corners.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> ResizeBilinear()(nn.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), scale_factor=2).shape
    (1, 1, 4, 4)
    """

    def __init__(self, half_pixel_centers: bool = False):
        super().__init__()
        self.half_pixel_centers = flag(self, "half_pixel_centers", half_pixel_centers)

    def construct(self, x: Tensor, size: AnyShape | None = None, scale_factor: int | None = None,
                  align_corners: bool = False) -> Tensor:
        """Resize ``x`` (batch, channels, height, width) to a size, or by a factor."""
        resized = ResizeBilinearV2(align_corners, self.half_pixel_centers)
        if size is not None and scale_factor is None:
            return resized(x, size)
        if size is None and scale_factor is not None:
            return resized(x, [length * check_int(self, "scale_factor", scale_factor) for length in x.shape[2:]])
        raise ArgumentError("ResizeBilinear: expected either size or scale_factor")


class PixelShuffle(Cell):
    """Moves ``upscale_factor ** 2`` channels to squares of pixels.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> PixelShuffle(2)(nn.Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]])).shape
    (1, 1, 2, 2)
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = check_int(self, "upscale_factor", upscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        """``input`` (..., channels, height, width) with fewer channels and more pixels."""
        r, shape = self.upscale_factor, input.shape
        if len(shape) < 3 or shape[-3] % (r * r):
            raise ShapeError(f"PixelShuffle: expected channels that divide by {r * r}, got the shape {show(shape)}")
        return nn.pixel_shuffle(input, r)


class PixelUnshuffle(Cell):
    """Moves squares of ``downscale_factor ** 2`` pixels to channels; the inverse of ``PixelShuffle``.

    Examples
    --------
    >>> from opreg import ops
    >>> PixelUnshuffle(2)(ops.ones((1, 3, 4, 4))).shape
    (1, 12, 2, 2)
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = check_int(self, "downscale_factor", downscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        """``input`` (..., channels, height, width) with more channels and fewer pixels."""
        r, shape = self.downscale_factor, input.shape
        if len(shape) < 3 or shape[-2] % r or shape[-1] % r:
            raise ShapeError(f"PixelUnshuffle: expected images that divide by {r}, got the shape {show(shape)}")
        return nn.pixel_unshuffle(input, r)

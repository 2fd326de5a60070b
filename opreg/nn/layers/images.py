"""Similarity of images, central crops, and gradients of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.cell import Cell
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import real_number
from ...core.spec import show
from ...errors import ArgumentError, DTypeError, ShapeError
from ..ops import math as math_
from ..ops import nn
from .checks import check_int
from .containers import CellList

__all__ = ["CentralCrop", "ImageGradients", "MSSSIM", "PSNR", "SSIM"]


def _image_batches(cell: Cell, img1: Tensor, img2: Tensor) -> tuple[Tensor, Tensor]:
    """Two batches of images as float32, checked to have the same shape and dtype."""
    if len(img1.shape) != 4 or img1.shape != img2.shape:
        raise ShapeError(f"{type(cell).__name__}: expected images (batch, channels, height, width) of one shape, got "
                         f"{show(img1.shape)} and {show(img2.shape)}")
    if img1._dt != img2._dt:
        raise DTypeError(f"{type(cell).__name__}: expected images of one dtype, got {img1.dtype} and {img2.dtype}")
    wide = img1._dt if img1._dt == np.float64 else np.dtype(np.float32)
    return img1._cast(wide), img2._cast(wide)


class PSNR(Cell):
    """The peak signal-to-noise ratio of images, in decibels: ``10 * log10(max_val**2 / mse)``.

    Parameters
    ----------
    max_val : float
        Range of the pixel values, 255 for 8 bits.

    Examples
    --------
    >>> images = Tensor(np.zeros((1, 1, 2, 2), np.float32))
    >>> print(PSNR()(images, images + 0.1).asnumpy().round(3))
    [20.]
    """

    def __init__(self, max_val: float = 1.0):
        super().__init__()
        self.max_val = real_number("PSNR: max_val", max_val, inside=True)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """One value for each pair of images (batch, channels, height, width)."""
        x, y = _image_batches(self, img1, img2)
        error = ops._npi_mean(ops.square(x - y), axis=(1, 2, 3))
        return ops.log(self.max_val ** 2 / error) * (10 / math.log(10))


class _Structure(Cell):
    """Base of structural similarities: a Gaussian window, and stabilising constants."""

    def __init__(self, max_val: float, filter_size: int, filter_sigma: float, k1: float, k2: float):
        super().__init__()
        name = type(self).__name__
        self.max_val = real_number(f"{name}: max_val", max_val, inside=True)
        self.filter_size = check_int(self, "filter_size", filter_size)
        self.filter_sigma = real_number(f"{name}: filter_sigma", filter_sigma, inside=True)
        self.k1, self.k2 = real_number(f"{name}: k1", k1), real_number(f"{name}: k2", k2)

    def _compare_windows(self, x: Tensor, y: Tensor, window: Parameter) -> tuple[Tensor, Tensor]:
        """The similarity, and its part of contrast and structure, for each channel: means over all windows."""
        n, channels, height, width = x.shape
        if min(height, width) < self.filter_size:
            raise ShapeError(f"{type(self).__name__}: images of {height} by {width} are smaller than the filter_size "
                             f"{self.filter_size}")

        def blur(images: Tensor) -> Tensor:
            return nn.conv2d(images.reshape((n * channels, 1, height, width)), window._cast(images._dt))

        mean_x, mean_y = blur(x), blur(y)
        both, squares = mean_x * mean_y, mean_x * mean_x + mean_y * mean_y
        c1, c2 = (self.k1 * self.max_val) ** 2, (self.k2 * self.max_val) ** 2
        spread = blur(x * x) + blur(y * y) - squares
        structure = ((blur(x * y) - both) * 2.0 + c2) / (spread + c2)
        whole_ = (both * 2.0 + c1) / (squares + c1) * structure
        means = [ops._npi_mean(image, axis=(1, 2, 3)).reshape((n, channels)) for image in (whole_, structure)]
        return means[0], means[1]


class _Window(Cell):
    """Holds a Gaussian window under the name that it has in MindSpore's checkpoints."""

    def __init__(self, size: int, sigma: float):
        super().__init__()
        square = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float64) ** 2  # an even window
        weight = np.exp(-(square[:, None] + square) / (2 * sigma * sigma))
        self.weight = Parameter((weight / weight.sum()).astype(np.float32)[None, None], "weight", requires_grad=False)


class SSIM(_Structure):
    """The structural similarity of images, 1 for equal ones.

    Z. Wang and others, Image Quality Assessment: From Error Visibility to Structural Similarity, 2004.

    Parameters
    ----------
    max_val : float
        Range of the pixel values, 255 for 8 bits.
    filter_size, filter_sigma : int, float
        Length and standard deviation of the Gaussian window.
    k1, k2 : float
        Factors of the stabilising constants ``(k * max_val) ** 2`` of luminance and contrast.

    Examples
    --------
    >>> images = Tensor(np.eye(12, dtype=np.float32).reshape(1, 1, 12, 12))
    >>> print(SSIM()(images, images))
    [1.]
    """

    def __init__(self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01,
                 k2: float = 0.03):
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        self.conv = _Window(self.filter_size, self.filter_sigma)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """One value for each pair of images (batch, channels, height, width)."""
        return ops._npi_mean(self._compare_windows(*_image_batches(self, img1, img2), self.conv.weight)[0], axis=-1)


class MSSSIM(_Structure):
    """The structural similarity of images at several scales, each half as large as the one before.

    Z. Wang, E. Simoncelli, A. Bovik, Multiscale Structural Similarity for Image Quality Assessment, 2003.

    Parameters
    ----------
    power_factors : tuple of float
        The weight of each scale, as an exponent.
    max_val, filter_size, filter_sigma, k1, k2
        See ``SSIM``.
    """

    def __init__(self, max_val: float = 1.0,
                 power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size: int = 11,
                 filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03):
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)) or not power_factors:
            raise ArgumentError(f"MSSSIM: power_factors must be a tuple of floats, got {power_factors!r}")
        self.power_factors = tuple([real_number("MSSSIM: power_factors", factor) for factor in power_factors])
        self.multi_convs_list = CellList([_Window(self.filter_size, self.filter_sigma) for _ in power_factors])

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        """One value for each pair of images (batch, channels, height, width)."""
        x, y = _image_batches(self, img1, img2)
        product: Tensor | None = None
        for level, (factor, window) in enumerate(zip(self.power_factors, self.multi_convs_list), 1):
            similarity, structure = self._compare_windows(x, y, window.weight)
            last = level == len(self.power_factors)
            part = math_.power_from_zero(ops.relu(similarity if last else structure), factor)
            product = part if product is None else product * part
            if not last:
                x, y = nn.avg_pool2d(x, 2, 2), nn.avg_pool2d(y, 2, 2)
        return ops._npi_mean(product, axis=-1)


class CentralCrop(Cell):
    """Crops images to their middle.

    Parameters
    ----------
    central_fraction : float
        Fraction of height and width that is kept, above 0 and at most 1.

    Examples
    --------
    >>> CentralCrop(0.5)(Tensor(np.zeros((3, 4, 8), np.float32))).shape
    (3, 2, 4)
    """

    def __init__(self, central_fraction: float):
        super().__init__()
        if not isinstance(central_fraction, float):
            raise ArgumentError("CentralCrop: central_fraction must be a float, got "
                                f"{type(central_fraction).__name__}")
        if not 0 < central_fraction <= 1:
            raise ArgumentError(f"CentralCrop: central_fraction must be above 0 and at most 1, got {central_fraction}")
        self.central_fraction = central_fraction

    def construct(self, image: Tensor) -> Tensor:
        """Crop ``image`` ([batch,] channels, height, width)."""
        if len(image.shape) not in (3, 4):
            raise ShapeError(f"CentralCrop: expected 3 or 4 axes, got the shape {show(image.shape)}")
        away = [int((length - length * self.central_fraction) / 2) for length in image.shape[-2:]]
        rows, columns = (slice(begin, length - begin) for begin, length in zip(away, image.shape[-2:]))
        return image[..., rows, columns]


class ImageGradients(Cell):
    """Differences of each pixel's lower and right neighbour and the pixel; 0 at the end.

    Examples
    --------
    >>> down, right = ImageGradients()(Tensor([[[[1, 2], [3, 5]]]]))
    >>> print(down, right)
    [[[[2 3]
       [0 0]]]] [[[[1 0]
       [2 0]]]]
    """

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Differences of ``images`` (batch, channels, height, width) along height and width."""
        if len(images.shape) != 4:
            raise ShapeError(f"ImageGradients: expected 4 axes, got the shape {show(images.shape)}")
        down, right = (self._gradient_along(images, axis) for axis in (2, 3))
        return down, right

    @staticmethod
    def _gradient_along(images: Tensor, axis: int) -> Tensor:
        length = images.shape[axis]
        last = ops.slice_axis(images, axis=axis, begin=length - 1, end=length)
        moved = ops.Concat(ops.slice_axis(images, axis=axis, begin=1, end=length), last, num_args=2, dim=axis)
        return moved - images

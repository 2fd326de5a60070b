"""Operations on colors and contrast. Images of bytes have the values that OpenCV computes in MindSpore."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.data.augmenters import EIGENVALUES, EIGENVECTORS

from ....core.settings import Checked
from ....core.spec import is_floating
from ....errors import ArgumentError, ShapeError
from ..config import stream
from .images import ConvertMode, Sometimes, check_image, reach, round_to_dtype

__all__ = ["AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness",
           "AutoContrast", "ConvertColor", "Equalize", "GaussianBlur", "Grayscale", "HsvToRgb", "Invert", "Posterize",
           "RandomAdjustSharpness", "RandomAutoContrast", "RandomColor", "RandomColorAdjust", "RandomEqualize",
           "RandomGrayscale", "RandomInvert", "RandomLighting", "RandomPosterize", "RandomSharpness", "RandomSolarize",
           "RgbToHsv", "Solarize"]

#: Weights of red, green and blue in gray (ITU-R BT.601), in parts of 2 ** 15.
_GRAY = np.array([9798, 19235, 3735], np.int32)


def _gray(pixels: np.ndarray) -> np.ndarray:
    """The gray of each pixel, as one channel of the same dtype."""
    if pixels.dtype == np.uint8:
        gray = (pixels.astype(np.int32) @ _GRAY + (1 << 14)) >> 15
    else:
        gray = pixels @ (_GRAY / (1 << 15)).astype(np.float32)
    return gray[..., None].astype(pixels.dtype)


def _blend(first: Any, part: float, second: Any, other: float, dtype: np.dtype) -> np.ndarray:
    """The sum of two images, each times a factor: the second product is rounded to float32 before, the sum after."""
    product = np.multiply(second, np.float32(other), dtype=np.float32)
    return round_to_dtype((np.multiply(first, float(np.float32(part)), dtype=np.float64) + product).astype(np.float32),
                          dtype)


def _factor(owner: str, name: str, factor: float) -> float:
    if factor < 0:
        raise ArgumentError(f"{owner}: {name} must not be negative, got {factor!r}")
    return float(np.float32(factor))


# ------------------------------------------------------------------------------------ one factor or table


class AdjustBrightness(Checked):
    """The pixels times a factor.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> int(vision.AdjustBrightness(2.0)(np.full((8, 8, 3), 100, "uint8")).max())
    200
    """

    def __init__(self, brightness_factor: float):
        self._factor = _factor("AdjustBrightness", "brightness_factor", brightness_factor)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustBrightness", image, (3,))
        return round_to_dtype(np.multiply(pixels, np.float32(self._factor), dtype=np.float32), pixels.dtype)


class AdjustContrast(Checked):
    """The pixels times a factor, plus the mean gray times one minus the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AdjustContrast(2.0)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, contrast_factor: float):
        self._factor = _factor("AdjustContrast", "contrast_factor", contrast_factor)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustContrast", image, (3,))
        mean = _gray(pixels).mean()
        if pixels.dtype != np.uint8:
            return _blend(mean, 1 - self._factor, pixels, self._factor, pixels.dtype)
        return _blend(np.floor(mean + 0.5), 1 - self._factor, np.arange(256), self._factor, pixels.dtype)[pixels]


class AdjustSaturation(Checked):
    """The pixels times a factor, plus their gray times one minus the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AdjustSaturation(2.0)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, saturation_factor: float):
        self._factor = _factor("AdjustSaturation", "saturation_factor", saturation_factor)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustSaturation", image, (3,))
        return _blend(_gray(pixels), 1 - self._factor, pixels, self._factor, pixels.dtype)


class AdjustSharpness(Checked):
    """The pixels times a factor, plus those of the smoothed image times one minus the factor.

    A smoothed pixel is the mean of nine, in which its own counts five times; those at the borders stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AdjustSharpness(2.0)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, sharpness_factor: float):
        self._factor = _factor("AdjustSharpness", "sharpness_factor", sharpness_factor)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustSharpness", image, (1, 3))
        height, width = pixels.shape[:2]
        total = np.zeros((max(height - 2, 0), max(width - 2, 0), *pixels.shape[2:]), np.float32)
        for row in range(3):
            for column in range(3):
                part = pixels[row:row + len(total), column:column + total.shape[1]]
                total += part * np.float32((5 if (row, column) == (1, 1) else 1) / 13)
        smooth = pixels.copy()
        smooth[1:height - 1, 1:width - 1] = round_to_dtype(total, pixels.dtype)
        return _blend(pixels, self._factor, smooth, 1 - self._factor, pixels.dtype)


class AdjustHue(Checked):
    """The hue rotated by a part of the circle, from -0.5 to 0.5, in an image of uint8.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AdjustHue(0.2)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, hue_factor: float):
        if not -0.5 <= hue_factor <= 0.5:
            raise ArgumentError(f"AdjustHue: hue_factor must be from -0.5 to 0.5, got {hue_factor!r}")
        self._turn = int(np.float32(hue_factor) * 255)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustHue", image, (3,), "uint8")
        most = pixels.max(axis=2)
        value, spread = most.astype(np.int32), (most - pixels.min(axis=2)).astype(np.int32)
        red, green, blue = np.moveaxis(pixels.astype(np.int32), 2, 0)
        hue = np.where(value == red, green - blue,
                       np.where(value == green, blue - red + 2 * spread, red - green + 4 * spread))
        per_spread, per_value = _reciprocals()
        hue = ((hue * per_spread[spread] + (1 << 11)) >> 12) + self._turn & 255
        return _from_hsv(hue, (spread * per_value[value] + (1 << 11)) >> 12, value)


@functools.cache
def _reciprocals() -> tuple[np.ndarray, np.ndarray]:
    """Tables of 256 / 6 and of 255 divided by each byte, in parts of 2 ** 12; 0 for the byte 0."""
    every = np.maximum(np.arange(256), 1)
    tables = np.rint([(256 << 12) / (6.0 * every), (255 << 12) / every]).astype(np.int32)
    tables[:, 0] = 0
    return tables[0], tables[1]


#: The colors red, green and blue in each sixth of the circle: 0 is the value, 1 falls, 2 rises, 3 is the lowest.
_SHADES = np.array([(0, 2, 3), (1, 0, 3), (3, 0, 2), (3, 1, 0), (2, 3, 0), (0, 3, 1)])


def _from_hsv(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The bytes of colors from bytes of hue, saturation and value, which are computed in float32."""
    sixths = np.arange(256, dtype=np.float32) * np.float32(6 / 255)
    sector = np.floor(sixths)
    part = (sixths - sector)[hue]
    ratio, value = (channel.astype(np.float32) * np.float32(1 / 255) for channel in (saturation, value))
    shades = np.empty((*value.shape, 4), np.uint8)
    # Fractions are cut off, as in OpenCV's vector instructions. OpenCV rounds only the last pixels of a row, if they
    # fill no vector register.
    for i, factor in enumerate((np.float32(1), 1 - ratio.astype(np.float64) * part,
                                1 - ratio.astype(np.float64) * (1 - part), 1 - ratio)):
        shades[..., i] = value * factor.astype(np.float32) * np.float32(255)
    return np.take_along_axis(shades, _SHADES[sector.astype(np.int32) % 6][hue], axis=2)


class AdjustGamma(Checked):
    """The power ``gamma`` of pixels, times a gain: of integers in parts of 255, of floating-point pixels from 0 to 1
    with the gain before.

    Parameters
    ----------
    gamma : float
        The exponent.
    gain : float
        The gain.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AdjustGamma(0.5)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, gamma: float, gain: float = 1):
        self._gamma, self._gain = _factor("AdjustGamma", "gamma", gamma), gain

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("AdjustGamma", image, (1, 3))
        if is_floating(pixels.dtype):
            return np.clip((pixels * np.float32(self._gain)) ** np.float32(self._gamma), 0, 1).astype(pixels.dtype)
        powers = ((np.arange(256) / 255).astype(np.float32).astype(np.float64) ** self._gamma).astype(np.float32)
        table = np.minimum(powers * (255.0 + 1 - 1e-3) * self._gain, 255)
        return table.astype(np.uint8)[check_image("AdjustGamma", pixels, dtype="uint8")]


def _histograms(owner: str, image: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """An image of uint8 with an axis of channels, and the counts of each byte in each."""
    pixels = check_image(owner, image, (1, 3), "uint8")
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return pixels, [np.bincount(channel.ravel(), minlength=256) for channel in np.moveaxis(pixels, 2, 0)]


def _looked_up(pixels: np.ndarray, tables: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([table[pixels[..., i]] for i, table in enumerate(tables)], axis=2).reshape(shape)


class AutoContrast(Checked):
    """The channels stretched linearly, so that the darkest pixel is 0 and the lightest 255.

    Parameters
    ----------
    cutoff : float
        Percentage of the darkest, and of the lightest pixels that are left out before.
    ignore : int, or sequence of int, optional
        Bytes that are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AutoContrast()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None):
        if not 0 <= cutoff < 50:
            raise ArgumentError(f"AutoContrast: cutoff must be from 0 to below 50, got {cutoff!r}")
        self._cutoff = np.float32(cutoff)
        self._ignore = [ignore] if isinstance(ignore, int) else list(ignore or ())

    def __call__(self, image: Any) -> np.ndarray:
        pixels, counts = _histograms("AutoContrast", image)
        return _looked_up(pixels, [self._table(count) for count in counts], np.shape(image))

    def _table(self, counts: np.ndarray) -> np.ndarray:
        counts[self._ignore] = 0
        cut = int(self._cutoff / np.float32(100) * np.float32(counts.sum()))
        low, high = (self._first_kept_byte(histogram, cut) for histogram in (counts, counts[::-1]))
        high = 255 - high
        every = np.arange(256)
        if high <= low:
            return every.astype(np.uint8)
        scale = np.float32(255 / (high - low))
        return np.clip((every.astype(np.float32) * scale + -low * scale).astype(np.int32), 0, 255).astype(np.uint8)

    @staticmethod
    def _first_kept_byte(counts: np.ndarray, cut: int) -> int:
        """The first byte of which pixels are left after the cut."""
        above = np.cumsum(counts) > cut
        return int(above.argmax()) if above.any() else 255


class Equalize(Checked):
    """The channels of an image of uint8 with equalized histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Equalize()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __call__(self, image: Any) -> np.ndarray:
        pixels, counts = _histograms("Equalize", image)
        return _looked_up(pixels, [self._table(count) for count in counts], np.shape(image))

    @staticmethod
    def _table(counts: np.ndarray) -> np.ndarray:
        first, total = int((counts > 0).argmax()), counts.sum()
        if counts[first] == total:
            return np.arange(256, dtype=np.uint8)
        scale = np.float32(255) / np.float32(total - counts[first])
        above = np.maximum(np.cumsum(counts) - counts[:first + 1].sum(), 0)
        return round_to_dtype(above.astype(np.float32) * scale, np.dtype(np.uint8))


class Invert(Checked):
    """The bytes of an image, each subtracted from 255.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> int(vision.Invert()(np.full((8, 8, 3), 100, "uint8")).max())
    155
    """

    def __call__(self, image: Any) -> np.ndarray:
        return 255 - check_image("Invert", image, (1, 3), "uint8")


class Posterize(Checked):
    """The bytes of an image with their highest bits alone, from 0 to 8 of them.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Posterize(4)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, bits: int):
        if not 0 <= bits <= 8:
            raise ArgumentError(f"Posterize: bits must be from 0 to 8, got {bits!r}")
        self._mask = np.uint8(256 - (1 << 8 - bits))

    def __call__(self, image: Any) -> np.ndarray:
        return check_image("Posterize", image, (1, 3), "uint8") & self._mask


class Solarize(Checked):
    """The bytes of an image inverted in a range.

    Parameters
    ----------
    threshold : float, or pair of float
        Ends of the range, which belong to it; one number, or one twice, is its lower end alone.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> int(vision.Solarize((50, 200))(np.full((8, 8, 3), 100, "uint8")).max())
    155
    """

    def __init__(self, threshold: float | Sequence[float]):
        low, high = reach("Solarize", "threshold", (threshold, threshold) if isinstance(threshold, (int, float))
                          else threshold, most=255)
        self._low, self._high = low, 255 if low == high else high

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Solarize", image, (1, 3), "uint8")
        return np.where((pixels >= self._low) & (pixels <= self._high), 255 - pixels, pixels)


# ------------------------------------------------------------------------------------------ color orders


class ConvertColor(Checked):
    """An image with its channels in another order, with opacity or without, or as gray (height, width).

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> convert = vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)
    >>> convert(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8)
    """

    def __init__(self, convert_mode: ConvertMode):
        mode = ConvertMode(convert_mode)
        self._from, self._to = mode.name.removeprefix("COLOR_").split("2")

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("ConvertColor", image, (1 if self._from == "GRAY" else len(self._from),))
        if self._from == "GRAY":
            colors = np.repeat(pixels.reshape((*pixels.shape[:2], 1)), 3, axis=2)
        else:
            colors = pixels[..., :3]
            blue_last = self._from.startswith("RGB")
            if (not blue_last if self._to == "GRAY" else blue_last != self._to.startswith("RGB")):
                colors = colors[..., ::-1]
        if self._to == "GRAY":
            return _gray(colors)[..., 0]
        if len(self._to) == 3:
            return colors.copy()
        opaque = 255 if pixels.dtype == np.uint8 else 1
        opacity = pixels[..., 3:] if len(self._from) == 4 and self._from != "GRAY" else np.full_like(
            colors[..., :1], opaque)
        return np.concatenate([colors, opacity], axis=2)


class Grayscale(Checked):
    """An image of uint8 in gray, as PIL computes it: (height, width), or three equal channels.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Grayscale(1)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8)
    """

    def __init__(self, num_output_channels: int = 1):
        if num_output_channels not in (1, 3):
            raise ArgumentError(f"Grayscale: num_output_channels must be 1 or 3, got {num_output_channels!r}")
        self._channels = num_output_channels

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Grayscale", image, (3,), "uint8")
        gray = ((pixels @ np.array([19595, 38470, 7471]) + (1 << 15)) >> 16).astype(np.uint8)
        return gray if self._channels == 1 else np.repeat(gray[..., None], 3, axis=2)


class _ColorSpace(Checked):
    """A conversion of each pixel's three channels."""

    def __init__(self, is_hwc: bool = False):
        self._axis = -1 if is_hwc else -3

    def __call__(self, image: Any) -> np.ndarray:
        pixels = np.asarray(image, np.float64)
        if pixels.ndim not in (3, 4) or pixels.shape[self._axis] != 3:
            raise ShapeError(f"{type(self).__name__}: expected images of three channels along axis {self._axis}, "
                             f"got the shape {pixels.shape}")
        return np.stack(self._convert(*np.moveaxis(pixels, self._axis, 0)), axis=self._axis)

    def _convert(self, *channels: np.ndarray) -> Sequence[np.ndarray]:
        raise NotImplementedError


class RgbToHsv(_ColorSpace):
    """Red, green and blue from 0 to 1 as hue, saturation and value, for images or batches of them: float64.

    Parameters
    ----------
    is_hwc : bool
        Whether channels are the last axis, instead of the third from the end.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RgbToHsv(is_hwc=True)(np.ones((4, 4, 3), "float32")).shape
    (4, 4, 3)
    """

    def _convert(self, *channels: np.ndarray) -> Sequence[np.ndarray]:
        red, green, _ = channels
        most, least = np.maximum.reduce(channels), np.minimum.reduce(channels)
        spread = most - least
        unit, divisor = np.where(spread == 0, 1, spread), np.where(most == 0, 1, most)
        far_red, far_green, far_blue = ((most - channel) / unit for channel in channels)
        hue = np.where(red == most, far_blue - far_green,
                       np.where(green == most, 2 + far_red - far_blue, 4 + far_green - far_red))
        return np.where(spread == 0, 0, hue / 6 % 1), spread / divisor, most


class HsvToRgb(_ColorSpace):
    """Hue, saturation and value from 0 to 1 as red, green and blue, for images or batches of them: float64.

    Parameters
    ----------
    is_hwc : bool
        Whether channels are the last axis, instead of the third from the end.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.HsvToRgb(is_hwc=True)(np.ones((4, 4, 3), "float32")).shape
    (4, 4, 3)
    """

    def _convert(self, *channels: np.ndarray) -> Sequence[np.ndarray]:
        hue, saturation, value = channels
        sector = np.trunc(hue * 6)
        part = hue * 6 - sector
        low, falling, rising = (value * (1 - saturation), value * (1 - saturation * part),
                                value * (1 - saturation * (1 - part)))
        around = (value, falling, low, low, rising, value)
        return [np.choose(sector.astype(np.int64) % 6, [around[(i + turn) % 6] for i in range(6)])
                for turn in (0, 4, 2)]


class GaussianBlur(Checked):
    """An image smoothed by a Gaussian, mirrored at its borders.

    Parameters
    ----------
    kernel_size : int, or pair of int
        Width and height of the kernel, odd numbers.
    sigma : float, or pair of float, optional
        Its standard deviations along width and height; one is for both, and by default it follows from the width.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.GaussianBlur(3)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None):
        sizes = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        if any(size < 1 or size % 2 == 0 for size in sizes):
            raise ArgumentError(f"GaussianBlur: kernel_size must be odd, got {kernel_size!r}")
        sigmas = (sigma or 0.0,) if isinstance(sigma, (int, float, type(None))) else tuple(sigma)
        # In float32; one for both follows from the width.
        usual = [float(np.float32(sigma) if sigma > 0 else np.float32(size * 0.15 + 0.35))
                 for size, sigma in zip(sizes, sigmas)]
        self._kernels = [self._kernel(size, sigma)
                         for size, sigma in zip(sizes * (3 - len(sizes)), usual * (3 - len(usual)))]

    @staticmethod
    def _kernel(size: int, sigma: float) -> np.ndarray:
        weights = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / sigma ** 2)
        return weights / weights.sum()

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("GaussianBlur", image)
        exact = pixels.dtype == np.uint8
        numbers: np.ndarray = pixels.astype(np.int64 if exact else np.float32)
        for axis, kernel in zip((1, 0), self._kernels):
            reach = len(kernel) // 2
            weights = _in_parts(kernel) if exact else kernel.astype(np.float32)
            around = [(0, 0)] * pixels.ndim
            around[axis] = reach, reach
            wide = np.moveaxis(np.pad(numbers, around, "reflect"), axis, 0)
            total = sum(wide[i:i + pixels.shape[axis]] * weight for i, weight in enumerate(weights))
            numbers = np.moveaxis(np.asarray(total), 0, axis)
        return ((numbers + (1 << 15)) >> 16).astype(np.uint8) if exact else numbers.astype(pixels.dtype)


def _in_parts(kernel: np.ndarray) -> np.ndarray:
    """The weights of a symmetric kernel in parts of 256: the rounding error of each is added to the next, up to the
    middle."""
    weights, carried = np.zeros(len(kernel), np.int64), 0.0
    for i in range(len(kernel) // 2):
        products = kernel[i] * 256 + carried
        weights[i] = weights[-1 - i] = np.rint(products)
        carried = products - weights[i]
    weights[len(kernel) // 2] = 256 - weights.sum()
    return weights


# ----------------------------------------------------------------------------------------- random changes


class RandomAdjustSharpness(Sometimes):
    """The image with its sharpness adjusted by a given degree, with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomAdjustSharpness(2.0)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degree: float, prob: float = 0.5):
        super().__init__(AdjustSharpness(degree), prob)


class RandomAutoContrast(Sometimes):
    """The image with its channels stretched, with a given probability; see ``AutoContrast``.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomAutoContrast()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None, prob: float = 0.5):
        super().__init__(AutoContrast(cutoff, ignore), prob)


class RandomEqualize(Sometimes):
    """The image with equalized histograms, with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomEqualize()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, prob: float = 0.5):
        super().__init__(Equalize(), prob)


class RandomInvert(Sometimes):
    """The inverted image, with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomInvert()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, prob: float = 0.5):
        super().__init__(Invert(), prob)


class RandomGrayscale(Sometimes):
    """The image in gray, as three equal channels, with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomGrayscale(0.5)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, prob: float = 0.1):
        super().__init__(Grayscale(3), prob)


class RandomColor(Checked):
    """The image with its saturation adjusted by a random factor from a closed range.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomColor((0.5, 1.5))(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)):
        self._range = reach("RandomColor", "degrees", degrees)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("RandomColor", image, (3,))
        factor = float(np.float32(stream().uniform(*self._range)))
        return _blend(pixels, factor, _gray(pixels), 1 - factor, pixels.dtype)


class RandomSharpness(Checked):
    """The image with its sharpness adjusted by a random factor from a range.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomSharpness((0.5, 1.5))(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)):
        self._range = reach("RandomSharpness", "degrees", degrees)

    def __call__(self, image: Any) -> np.ndarray:
        return AdjustSharpness(stream().uniform(*self._range))(image)


class RandomColorAdjust(Checked):
    """The image with brightness, contrast, saturation and hue adjusted, each by a random factor, in random order.

    Parameters
    ----------
    brightness, contrast, saturation : float, or pair of float
        Range of the factor, or how far it goes from 1.
    hue : float, or pair of float
        Range of the rotation, from -0.5 to 0.5, or how far it goes from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomColorAdjust(brightness=0.2)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, brightness: float | Sequence[float] = (1, 1), contrast: float | Sequence[float] = (1, 1),
                 saturation: float | Sequence[float] = (1, 1), hue: float | Sequence[float] = (0, 0)):
        owner = "RandomColorAdjust"
        self._changes = [(AdjustBrightness, reach(owner, "brightness", brightness)),
                         (AdjustContrast, reach(owner, "contrast", contrast)),
                         (AdjustSaturation, reach(owner, "saturation", saturation)),
                         (AdjustHue, reach(owner, "hue", hue, 0.0, -0.5, 0.5))]

    def __call__(self, image: Any) -> np.ndarray:
        random = stream()
        pixels = check_image("RandomColorAdjust", image, (3,))
        for i in random.permutation(len(self._changes)):
            change, (low, high) = self._changes[i]
            if (low, high) != ((0, 0) if change is AdjustHue else (1, 1)):
                pixels = change(random.uniform(low, high))(pixels)
        return pixels


class RandomLighting(Checked):
    """The image plus random multiples of the principal components of the colors of natural images.

    Parameters
    ----------
    alpha : float
        Standard deviation of the multiples.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomLighting(0.1)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, alpha: float = 0.05):
        self._alpha = _factor("RandomLighting", "alpha", alpha)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("RandomLighting", image, (3,))
        return round_to_dtype(pixels + (EIGENVECTORS * stream().normal(0, self._alpha, 3)) @ EIGENVALUES, pixels.dtype)


class RandomPosterize(Checked):
    """The image with its highest bits alone, a random count of them.

    Parameters
    ----------
    bits : int, or pair of int
        Range of the count, which both ends belong to, or the count.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomPosterize((2, 6))(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, bits: int | Sequence[int] = (8, 8)):
        low, high = (bits, bits) if isinstance(bits, int) else bits
        if low > high:
            raise ArgumentError(f"RandomPosterize: expected the smaller number first, got {bits!r}")
        self._kinds = [Posterize(count) for count in range(low, high + 1)]

    def __call__(self, image: Any) -> np.ndarray:
        return self._kinds[int(stream().integers(len(self._kinds)))](image)


class RandomSolarize(Checked):
    """The image inverted in a random part of a range of bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomSolarize((10, 200))(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, threshold: Sequence[int] = (0, 255)):
        self._low, self._high = reach("RandomSolarize", "threshold", threshold, most=255)

    def __call__(self, image: Any) -> np.ndarray:
        return Solarize(sorted(stream().integers(int(self._low), int(self._high), 2, endpoint=True).tolist()))(image)

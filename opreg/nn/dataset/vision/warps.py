"""Operations that move pixels: rotation, affine and perspective maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.data.warping import perspective_matrix, warp, warp_perspective

from ....core.settings import Checked
from ....errors import ArgumentError
from ..config import stream
from .images import OPENCV, Fill, Inter, Sometimes, check_image, fill_per_channel

__all__ = ["Affine", "Perspective", "RandomAffine", "RandomPerspective", "RandomRotation", "Rotate",
           "affine_image"]


def _warp(warping: Any, pixels: np.ndarray, matrix: np.ndarray, size: tuple[int, int], fill: Fill,
          interpolation: Inter) -> np.ndarray:
    wide = pixels.reshape((*pixels.shape[:2], -1))
    warped = warping(wide, matrix, *size, fill_per_channel(fill, wide.shape[2]), OPENCV[Inter(interpolation)])
    return warped.reshape((*size, *pixels.shape[2:]))


class Rotate(Checked):
    """An image rotated counter-clockwise.

    Parameters
    ----------
    degrees : float
        The angle.
    resample : Inter
        Kind of interpolation.
    expand : bool
        Whether the result is as large as the rotated image, instead of the image.
    center : pair of float, optional
        Fixed point, x and y; the middle by default.
    fill_value : int, or sequence for the channels
        Value outside of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Rotate(90)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: float, resample: Inter = Inter.NEAREST, expand: bool = False,
                 center: Sequence[float] | None = None, fill_value: Fill = 0):
        self._degrees, self._expands, self._center = float(np.float32(degrees % 360)), expand, center
        self._resample, self._value = resample, fill_value

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image(type(self).__name__, image)
        height, width = pixels.shape[:2]
        x, y = ((width - 1) / 2, (height - 1) / 2) if self._center is None else self._center
        cosine, sine = math.cos(math.radians(self._degrees)), math.sin(math.radians(self._degrees))
        matrix = np.array([[cosine, sine, (1 - cosine) * x - sine * y], [-sine, cosine, sine * x + (1 - cosine) * y]])
        size = height, width
        if self._expands:
            size, shift = _bounds(height, width, (x, y), cosine, sine)
            matrix[:, 2] += shift
        return _warp(warp, pixels, matrix, size, self._value, self._resample)


def _bounds(height: int, width: int, center: Sequence[float], cosine: float, sine: float
            ) -> tuple[tuple[int, int], tuple[float, float]]:
    """Height and width around a rotated image, and how far its middle moves, in float32 as in OpenCV."""
    half_cosine, half_sine = np.float32(cosine) * np.float32(0.5), np.float32(sine) * np.float32(0.5)
    lengths = []
    for middle, ways in ((np.float32(center[0]), (half_sine * height, half_cosine * width)),
                         (np.float32(center[1]), (half_cosine * height, half_sine * width))):
        ends = [middle - ways[0] - ways[1], middle + ways[0] - ways[1]]
        ends += [2 * middle - end for end in ends]
        lengths.append(float(max(ends) - min(ends)))
    across, down = lengths
    return (round(down), round(across)), (across / 2 - width / 2, down / 2 - height / 2)


class Affine(Checked):
    """An image rotated clockwise, sheared and scaled around its middle, and translated.

    Parameters
    ----------
    degrees : float
        The angle.
    translate : pair of float
        The translation to the right and down, as parts of width and height.
    scale : float
        The scale.
    shear : float, or pair of float
        Degrees of the shear of rows, and of columns.
    resample : Inter
        Kind of interpolation.
    fill_value : int, or sequence for the channels
        Value outside of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Affine(90.0, (0.1, 0.1), 1.0, 0.0)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: float, translate: Sequence[float], scale: float, shear: float | Sequence[float],
                 resample: Inter = Inter.NEAREST, fill_value: Fill = 0):
        if scale <= 0:
            raise ArgumentError(f"Affine: scale must be positive, got {scale!r}")
        self._degrees, self._translate, self._scale = degrees, translate, scale
        self._shear = (shear, 0.0) if isinstance(shear, (int, float)) else shear
        self._resample, self._value = resample, fill_value

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Affine", image)
        translation = [part * length for part, length in zip(self._translate, pixels.shape[1::-1])]
        return affine_image(pixels, self._degrees, translation, self._scale, self._shear, self._resample, self._value)


def affine_image(pixels: np.ndarray, degrees: float, translation: Sequence[float], scale: float,
                 shear: Sequence[float], resample: Inter, fill: Fill) -> np.ndarray:
    """An image under the map of ``Affine``, in which the translation to the right and down is in pixels."""
    height, width = pixels.shape[:2]
    matrix = _affine_matrix((width - 1) / 2, (height - 1) / 2, degrees, translation, scale, shear)
    return _warp(warp, pixels, matrix, (height, width), fill, resample)


def _affine_matrix(x: float, y: float, degrees: float, translation: Sequence[float], scale: float,
                   shear: Sequence[float]) -> np.ndarray:
    """The float32 matrix of a rotation, shear and scale around a point, then a translation."""
    angle, rows, columns = (float(np.radians(np.float32(angle))) for angle in (degrees, *shear))
    scale = float(np.float32(scale))
    turn = scale * np.array([
        [math.cos(angle - columns) / math.cos(columns),
         -math.cos(angle - columns) * math.tan(rows) / math.cos(columns) - math.sin(angle)],
        [math.sin(angle - columns) / math.cos(columns),
         -math.sin(angle - columns) * math.tan(rows) / math.cos(columns) + math.cos(angle)]])
    middle = np.array([x, y])
    return np.column_stack([turn, middle - turn @ middle + translation]).astype(np.float32)


class Perspective(Checked):
    """An image under the perspective map that leads from four points x, y to four others.

    Parameters
    ----------
    start_points, end_points : sequence of four pairs
        The points.
    interpolation : Inter
        Kind of interpolation.
    """

    def __init__(self, start_points: Sequence[Sequence[float]], end_points: Sequence[Sequence[float]],
                 interpolation: Inter = Inter.BILINEAR):
        start, end = (np.asarray(points, np.float64) for points in (start_points, end_points))
        if start.shape != (4, 2) or end.shape != (4, 2):
            raise ArgumentError(f"Perspective: expected four points x, y twice, got {start_points!r} and "
                                f"{end_points!r}")
        self._matrix, self._interpolation = perspective_matrix(start, end), interpolation

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Perspective", image)
        return _warp(warp_perspective, pixels, self._matrix, pixels.shape[:2], 0, self._interpolation)


class RandomRotation(Checked):
    """An image rotated counter-clockwise by a random angle; see ``Rotate``.

    Parameters
    ----------
    degrees : float, or pair of float
        Range of the angle, or its greatest size.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomRotation(30)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: float | Sequence[float], resample: Inter = Inter.NEAREST, expand: bool = False,
                 center: Sequence[float] | None = None, fill_value: Fill = 0):
        low, high = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        if low > high:
            raise ArgumentError(f"RandomRotation: expected the smaller angle first, got {degrees!r}")
        self._range, self._settings = (low, high), (resample, expand, center, fill_value)

    def __call__(self, image: Any) -> np.ndarray:
        return Rotate(stream().uniform(*self._range), *self._settings)(image)


class RandomAffine(Checked):
    """An image under a random affine map; see ``Affine``.

    Parameters
    ----------
    degrees : float, or pair of float
        Range of the angle, or its greatest size.
    translate : sequence of two or four, optional
        Range of the translation to the right, and of that down, as parts of width and height.
    scale : pair of float, optional
        Range of the scale.
    shear : float, or sequence of two or four, optional
        Range of the shear of rows, or its greatest size, and range of that of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomAffine(30)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, degrees: float | Sequence[float], translate: Sequence[float] | None = None,
                 scale: Sequence[float] | None = None, shear: float | Sequence[float] | None = None,
                 resample: Inter = Inter.NEAREST, fill_value: Fill = 0):
        none = (0.0, 0.0)
        angles = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        shears = (-shear, shear) if isinstance(shear, (int, float)) else shear or none
        moves = translate or none
        self._ranges = [tuple(each) for each in (angles, moves[:2], moves[2:] or none, scale or (1.0, 1.0), shears[:2],
                                                 shears[2:] or none)]
        for name, (low, high) in zip(("degrees", "translate", "translate", "scale", "shear", "shear"), self._ranges):
            if low > high:
                raise ArgumentError(f"RandomAffine: {name} must be ranges, the smaller end first, got {(low, high)}")
        self._resample, self._value = resample, fill_value

    def __call__(self, image: Any) -> np.ndarray:
        angle, across, down, scale, rows, columns = (stream().uniform(low, high) for low, high in self._ranges)
        return Affine(angle, (across, down), scale, (rows, columns), self._resample, self._value)(image)


class RandomPerspective(Sometimes):
    """An image under a random perspective map, with a given probability.

    Parameters
    ----------
    distortion_scale : float
        The distance that corners move, from 0 to 1: the part of half the width and height.
    prob : float
        Probability that the image changes.
    interpolation : Inter
        Kind of interpolation.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomPerspective(0.3)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC):
        super().__init__(self._change_perspective, prob)
        if not 0 <= distortion_scale <= 1:
            raise ArgumentError(f"RandomPerspective: distortion_scale must be from 0 to 1, got {distortion_scale!r}")
        self._scale, self._interpolation = distortion_scale, interpolation

    def _change_perspective(self, image: Any) -> np.ndarray:
        height, width = check_image("RandomPerspective", image).shape[:2]
        random, start, end = stream(), [], []
        for right, low in ((0, 0), (1, 0), (1, 1), (0, 1)):
            place = []
            for far, length in ((right, width), (low, height)):
                most = int(length / 2 * self._scale)
                place.append((far * (length - 1), abs(far * (length - 1) - int(random.integers(most + 1)))))
            start.append([low for low, _ in place])
            end.append([high for _, high in place])
        return Perspective(start, end, self._interpolation)(image)

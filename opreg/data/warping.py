"""Images under affine and perspective maps, to the last bit as OpenCV 4.5 has them.

Images are arrays (height, width, channels). A map leads from each pixel of the result back to a place in the image,
which is rounded to 1/32 of a pixel.
"""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["perspective_matrix", "warp", "warp_perspective"]

#: Number of fractional positions in a pixel that interpolation distinguishes, and number of steps of a weight.
_STEPS, _UNIT = 32, 1 << 15


def warp(image: np.ndarray, matrix: np.ndarray, height: int, width: int, fill: float | np.ndarray,
         method: int = 1) -> np.ndarray:
    """The image under an affine map.

    Parameters
    ----------
    matrix : array of shape (2, 3)
        The map from places x, y in the image to places in the result.
    height, width : int
        Size of the result.
    fill : float, or array of the channels
        Value outside of the image.
    method : {0, 1, 2, 3}
        Interpolation: nearest, linear, cubic, and 3 for linear again.
    """
    (a, b, right), (c, d, down) = np.asarray(matrix, np.float64)
    size = a * d - b * c
    size = 1 / size if size else 0.0
    a, b, c, d = d * size, -b * size, -c * size, a * size
    x, y = np.arange(width), np.arange(height)[:, None]
    places = []
    half = 512 if method == 0 else 16
    for along, across, offset in ((a, b, -a * right - b * down), (c, d, -c * right - d * down)):
        place = np.rint(along * x * 1024).astype(np.int64) + np.rint((across * y + offset) * 1024).astype(np.int64)
        places.append((place + half) >> (10 if method == 0 else 5))
    return _sample_pixels(image, places[0], places[1], fill, method)


def warp_perspective(image: np.ndarray, matrix: np.ndarray, height: int, width: int, fill: float | np.ndarray,
                     method: int = 1) -> np.ndarray:
    """The image under a perspective map, a matrix of shape (3, 3); see ``warp``."""
    x, y = np.arange(width), np.arange(height)[:, None]
    across, down, depth = (row[0] * x + (row[1] * y + row[2]) for row in np.linalg.inv(matrix))
    scale = np.divide(1 if method == 0 else _STEPS, depth, out=np.zeros_like(depth), where=depth != 0)
    far = 1 << 30  # beyond each image
    across, down = (np.rint(np.clip(place * scale, -far, far)).astype(np.int64) for place in (across, down))
    return _sample_pixels(image, across, down, fill, method)


def perspective_matrix(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The perspective map that leads from four points x, y to four others."""
    (x, y), (u, v) = start.T, end.T
    none, ones = np.zeros((4, 3)), np.ones(4)
    rows = np.concatenate([np.column_stack([x, y, ones, none, -x * u, -y * u]),
                           np.column_stack([none, x, y, ones, -x * v, -y * v])])
    return np.append(np.linalg.solve(rows, np.concatenate([u, v])), 1).reshape(3, 3)


def _sample_pixels(image: np.ndarray, across: np.ndarray, down: np.ndarray, fill: float | np.ndarray, method: int
                   ) -> np.ndarray:
    """The image at places in steps of a pixel, or of whole pixels for method 0."""
    framed = np.empty((image.shape[0] + 2, image.shape[1] + 2, image.shape[2]), image.dtype)
    framed[...] = fill
    framed[1:-1, 1:-1] = image
    rows, columns = np.arange(framed.shape[0]), np.arange(framed.shape[1])
    if method == 0:
        return framed[rows[np.clip(down + 1, 0, len(rows) - 1)], columns[np.clip(across + 1, 0, len(columns) - 1)]]
    exact = image.dtype == np.uint8
    weights = _weights(2 if method == 2 else 1, exact)[down % _STEPS, across % _STEPS]
    framed = framed.astype(weights.dtype)
    reach = weights.shape[-1]
    total = np.full((*down.shape, image.shape[2]), _UNIT // 2 if exact else 0, weights.dtype)
    for i in range(reach):
        row = np.clip(down // _STEPS + i + 2 - reach // 2, 0, len(rows) - 1)
        for j in range(reach):
            column = np.clip(across // _STEPS + j + 2 - reach // 2, 0, len(columns) - 1)
            total += framed[row, column] * weights[..., i, j, None]
    return np.clip(total >> 15, 0, 255).astype(np.uint8) if exact else total.astype(image.dtype)


@functools.cache
def _weights(method: int, exact: bool) -> np.ndarray:
    """The weights of the pixels around each step of a pixel, down and across; integers whose sum is the unit, or
    float32."""
    t = (np.arange(_STEPS, dtype=np.float32) / np.float32(_STEPS))[:, None]
    if method == 1:
        line = np.concatenate([1 - t, t], axis=1)
    else:
        bend, far = np.float32(-0.75), t + 1
        near = 1 - t
        first = ((bend * far - 5 * bend) * far + 8 * bend) * far - 4 * bend
        middle = [((bend + 2) * distance - (bend + 3)) * distance * distance + 1 for distance in (t, near)]
        line = np.concatenate([first, *middle, 1 - first - middle[0] - middle[1]], axis=1)
    weights = line[:, None, :, None] * line[None, :, None, :]
    if not exact:
        return weights
    integers = np.rint(weights * _UNIT).astype(np.int32)
    excess = integers.sum(axis=(2, 3)) - _UNIT
    reach = line.shape[1]
    for i, j in zip(*np.nonzero(excess)):  # the excess goes to one of the four weights in the middle
        middle_part = integers[i, j, reach // 2:reach // 2 + 2, reach // 2:reach // 2 + 2]
        place = (middle_part.argmax if excess[i, j] < 0 else middle_part.argmin)()
        middle_part[np.unravel_index(place, middle_part.shape)] -= excess[i, j]
    return integers

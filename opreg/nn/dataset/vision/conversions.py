"""Conversions between the bytes of a file, images, and the input arrays of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.data.codec import decode

from ....cells.dtype import dtype_to_nptype
from ....cells.typing import TensorDType
from ....core.settings import Checked
from ....errors import ArgumentError, DTypeError, ShapeError
from ..transforms import TypeCast
from .images import check_image

__all__ = ["Decode", "HWC2CHW", "LinearTransformation", "Normalize", "NormalizePad", "Rescale", "ToNumpy", "ToPIL",
           "ToTensor", "ToType"]


class Decode(Checked):
    """The decoded image from the bytes of its file: (height, width, 3), in the order red, green, blue.

    Parameters
    ----------
    to_pil : bool
        Accepted without effect: images are arrays in all operations.

    Raises
    ------
    ShapeError, DTypeError
        When the input is not a vector of bytes.
    FileFormatError
        When the bytes are no image.
    """

    def __init__(self, to_pil: bool = False):
        pass

    def __call__(self, image: Any) -> np.ndarray:
        data = np.frombuffer(image, np.uint8) if isinstance(image, bytes) else np.asarray(image)
        if data.dtype.kind == "S" and data.size == 1:  # the bytes in a column of MindDataset
            data = np.frombuffer(data.tobytes(), np.uint8)
        if data.ndim != 1:
            raise ShapeError(f"Decode: expected the bytes of a file, got the shape {data.shape}; is it decoded "
                             f"already?")
        if data.dtype != np.uint8:
            raise DTypeError(f"Decode: expected the bytes of a file as uint8, got {data.dtype}")
        return decode(data.tobytes(), name="Decode: the image")


class ToPIL(Checked):
    """The image unchanged: images are arrays in all operations.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.ToPIL()(np.full((8, 8, 3), 100, "uint8")).size
    192
    """

    def __call__(self, image: Any) -> np.ndarray:
        return check_image("ToPIL", image)


class ToNumpy(Checked):
    """The image unchanged: images are arrays in all operations.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.ToNumpy()(vision.ToPIL()(np.full((8, 8, 3), 100, "uint8"))).shape
    (8, 8, 3)
    """

    def __call__(self, image: Any) -> np.ndarray:
        return np.asarray(image)


class Rescale(Checked):
    """The pixels times a factor, plus a shift: float32.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> round(float(vision.Rescale(1 / 100, 0.5)(np.full((8, 8, 3), 100, "uint8")).max()), 2)
    1.5
    """

    def __init__(self, rescale: float, shift: float):
        self._rescale, self._shift = rescale, shift

    def __call__(self, image: Any) -> np.ndarray:
        return np.asarray(image).astype(np.float32) * np.float32(self._rescale) + np.float32(self._shift)


class Normalize(Checked):
    """The pixels minus a mean, divided by a standard deviation, for each channel: float32.

    Parameters
    ----------
    is_hwc : bool
        Whether channels are the last axis, instead of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> float(vision.Normalize([90.0] * 3, [5.0] * 3)(np.full((8, 8, 3), 100, "uint8")).max())
    2.0
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True):
        if len(mean) != len(std):
            raise ArgumentError(f"Normalize: {len(mean)} means and {len(std)} deviations")
        self._mean, self._std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self._last = is_hwc

    def __call__(self, image: Any) -> np.ndarray:
        pixels = np.asarray(image).astype(np.float32)
        mean, std = (statistic if self._last else statistic[:, None, None] for statistic in (self._mean, self._std))
        return (pixels - mean) / std


class NormalizePad(Normalize):
    """A normalized image with one more channel, of zeros.

    Parameters
    ----------
    dtype : {"float32", "float16"}
        Dtype of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.NormalizePad([90.0] * 3, [5.0] * 3)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 4)
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], dtype: str = "float32", is_hwc: bool = True):
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise ArgumentError(f"NormalizePad: dtype must be 'float32' or 'float16', got {dtype!r}")
        self._dtype = dtype

    def __call__(self, image: Any) -> np.ndarray:
        pixels = super().__call__(check_image("NormalizePad", image)).astype(self._dtype)
        return np.pad(pixels, [(0, 0), (0, 0), (0, 1)] if self._last else [(0, 1), (0, 0), (0, 0)])


class LinearTransformation(Checked):
    """The elements of an array minus a mean, times a square matrix; the shape does not change.

    Parameters
    ----------
    transformation_matrix : array of shape (n, n)
        The matrix, for arrays of n elements.
    mean_vector : array of shape (n,)
        The mean of each element.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.LinearTransformation(np.eye(192), np.zeros(192))(np.ones((3, 8, 8), "float32")).shape
    (3, 8, 8)
    """

    def __init__(self, transformation_matrix: np.ndarray, mean_vector: np.ndarray):
        count = len(mean_vector)
        if np.shape(transformation_matrix) != (count, count):
            raise ShapeError(f"LinearTransformation: expected a square matrix for a mean of {count} numbers, got the "
                             f"shape {np.shape(transformation_matrix)}")
        self._matrix, self._mean = np.asarray(transformation_matrix), np.asarray(mean_vector)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = np.asarray(image)
        if pixels.size != len(self._mean):
            raise ShapeError(f"LinearTransformation: expected {len(self._mean)} numbers, got the shape {pixels.shape}")
        return ((pixels.ravel() - self._mean) @ self._matrix).reshape(pixels.shape)


class HWC2CHW(Checked):
    """The image with channels as the first axis.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.HWC2CHW()(np.full((8, 8, 3), 100, "uint8")).shape
    (3, 8, 8)
    """

    def __call__(self, image: Any) -> np.ndarray:
        return check_image("HWC2CHW", image).transpose((2, 0, 1)).copy()


class ToTensor(Checked):
    """The image with channels as the first axis, and bytes scaled to the range from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.ToTensor()(np.full((8, 8, 3), 100, "uint8")).shape
    (3, 8, 8)
    """

    def __init__(self, output_type: TensorDType = np.float32):
        self._dtype = np.dtype(dtype_to_nptype(output_type))

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("ToTensor", image)
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        numbers = pixels.astype(np.float32) * np.float32(1 / 255) if pixels.dtype == np.uint8 else pixels
        return np.ascontiguousarray(numbers.transpose((2, 0, 1)).astype(self._dtype))


class ToType(TypeCast):
    """The pixels in another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.ToType(np.float32)(np.full((8, 8, 3), 100, "uint8")).dtype
    dtype('float32')
    """

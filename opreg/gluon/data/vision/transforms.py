"""Transforms of images, as blocks that can be chained.

Images have shape (height, width, channels), usually in uint8, until ``ToTensor`` converts them to float32.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.errors import ArgumentError, DTypeError
from opreg.ndarray import NDArray
from opreg.typing import DTypeLike

from ....core.attrs import Amount, Fraction
from ....data import image
from ...block import Block, HybridBlock
from ...nn import HybridSequential, Sequential

__all__ = ["Compose", "Cast", "ToTensor", "Normalize", "Rotate", "RandomRotation", "RandomResizedCrop", "CropResize",
           "CenterCrop", "Resize", "RandomFlipLeftRight", "RandomFlipTopBottom", "RandomBrightness", "RandomContrast",
           "RandomSaturation", "RandomHue", "RandomColorJitter", "RandomLighting", "RandomApply"]

#: One length for both edges, or (width, height).
Sizes = int | Sequence[int]


def _pair(size: Sizes) -> Sequence[int]:
    return (size, size) if isinstance(size, int) else size


class Compose(Sequential):
    """Several transforms in a row; neighbouring hybrid blocks are hybridized together.

    Parameters
    ----------
    transforms : list of Block
        The transforms, in their order.

    Examples
    --------
    >>> import opreg as mx
    >>> transform = Compose([CenterCrop(4), ToTensor()])
    >>> transform(mx.nd.ones((6, 6, 3), dtype="uint8")).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: Sequence[Block]):
        super().__init__()
        hybrid: list[HybridBlock] = []
        for transform in (*transforms, None):
            if isinstance(transform, HybridBlock):
                hybrid.append(transform)
                continue
            if len(hybrid) == 1:
                self.add(hybrid[0])
            elif hybrid:
                together = HybridSequential()
                together.add(*hybrid)
                together.hybridize()
                self.add(together)
            hybrid = []
            if transform is not None:
                self.add(transform)


class Cast(HybridBlock):
    """The values, cast to another dtype.

    Examples
    --------
    >>> import opreg as mx
    >>> Cast("float16")(mx.nd.ones(2)).dtype.__name__
    'float16'
    """

    def __init__(self, dtype: DTypeLike = "float32"):
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.cast(x, self._dtype)


class ToTensor(HybridBlock):
    """Images in uint8, (height, width, channels), as float32 from 0 to 1, (channels, height, width); batches, too.

    Examples
    --------
    >>> import opreg as mx
    >>> ToTensor()(mx.nd.full((2, 4, 3), 255, dtype="uint8")).asnumpy().max(axis=(1, 2))
    array([1., 1., 1.], dtype=float32)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """Values minus a mean, divided by a standard deviation; for images after ``ToTensor``.

    Parameters
    ----------
    mean, std : float or tuple of float
        For all channels, or for each.

    Examples
    --------
    >>> import opreg as mx
    >>> print(Normalize(1.0, 0.5)(mx.nd.full((1, 1, 2), 2.0)).asnumpy())
    [[[2. 2.]]]
    """

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0):
        super().__init__()
        self._mean, self._std = mean, std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.normalize(x, self._mean, self._std)


def _check_float32(transform: Block, x: NDArray) -> None:
    if np.dtype(x.dtype) != np.float32:
        raise DTypeError(f"{type(transform).__name__}: expected float32, got {np.dtype(x.dtype)}: put it after "
                         f"ToTensor")


class Rotate(Block):
    """An image rotated by an angle; for images after ``ToTensor``.

    Parameters
    ----------
    rotation_degrees : float
        The angle in degrees.
    zoom_in, zoom_out : bool
        Whether it is enlarged until no corner is empty, or reduced until all of it is visible.

    Raises
    ------
    DTypeError
        For dtypes other than float32.

    Examples
    --------
    >>> import opreg as mx
    >>> Rotate(90)(mx.nd.ones((3, 8, 8))).shape
    (3, 8, 8)
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False):
        super().__init__()
        self._args = rotation_degrees, zoom_in, zoom_out

    def forward(self, x: NDArray) -> NDArray:
        """Rotate an image, or a batch."""
        _check_float32(self, x)
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """An image rotated by a random angle; for images after ``ToTensor``.

    Parameters
    ----------
    angle_limits : tuple of float
        The least and the greatest angle in degrees.
    zoom_in, zoom_out : bool
        See ``Rotate``.
    rotate_with_proba : float
        Probability that it is rotated.

    Raises
    ------
    ArgumentError
        When the limits are not in order, or the probability is not from 0 to 1.
    DTypeError
        For dtypes other than float32.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomRotation((-10, 10))(mx.nd.ones((3, 8, 8))).shape
    (3, 8, 8)
    """

    def __init__(self, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False,
                 rotate_with_proba: Fraction = 1.0):
        super().__init__()
        if angle_limits[0] >= angle_limits[1]:
            raise ArgumentError(f"RandomRotation: angle_limits={angle_limits}: expected the smaller one first")
        self._args = angle_limits, zoom_in, zoom_out
        self._probability = rotate_with_proba

    def forward(self, x: NDArray) -> NDArray:
        """Rotate an image, or a batch."""
        if np.random.random() > self._probability:  # noqa: NPY002  np.random.seed decides, as in MXNet
            return x
        _check_float32(self, x)
        return image.random_rotate(x, *self._args)


class RandomResizedCrop(Block):
    """A crop of random position, area and aspect ratio, resized.

    Parameters
    ----------
    size : int or (width, height)
        Size of the result.
    scale : float or (float, float)
        Least area of the crop, as a fraction of the image's, or the least and the greatest.
    ratio : (float, float)
        Range of the ratio of width to height.
    interpolation : int
        Interpolation, by OpenCV's codes.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomResizedCrop(4)(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (4, 4, 3)
    """

    def __init__(self, size: Sizes, scale: float | tuple[float, float] = (0.08, 1.0),
                 ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: int = 1):
        super().__init__()
        self._args = _pair(size), scale, ratio, interpolation

    def forward(self, x: NDArray) -> NDArray:
        """Crop and resize an image."""
        return image.random_size_crop(x, *self._args)[0]


class CropResize(HybridBlock):
    """A given crop of an image or a batch, resized.

    Parameters
    ----------
    x, y, width, height : int
        The upper left corner and the size of the crop.
    size : int or (width, height)
        Size of the result; None does not resize.
    interpolation : int
        Interpolation, by OpenCV's codes; linear by default.

    Examples
    --------
    >>> import opreg as mx
    >>> CropResize(0, 0, 6, 4, size=(2, 3))(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (3, 2, 3)
    """

    def __init__(self, x: int, y: int, width: int, height: int, size: Sizes | None = None,
                 interpolation: int | None = None):
        super().__init__()
        self._place = x, y, width, height
        self._size, self._interpolation = size, 1 if interpolation is None else interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        part = F.image.crop(x, *self._place)
        return F.image.resize(part, self._size, False, self._interpolation) if self._size else part


class CenterCrop(Block):
    """A crop from the middle of an image; a smaller image is enlarged.

    Parameters
    ----------
    size : int or (width, height)
        Size of the crop.
    interpolation : int
        Interpolation, by OpenCV's codes.

    Examples
    --------
    >>> import opreg as mx
    >>> CenterCrop((4, 2))(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (2, 4, 3)
    """

    def __init__(self, size: Sizes, interpolation: int = 1):
        super().__init__()
        self._args = _pair(size), interpolation

    def forward(self, x: NDArray) -> NDArray:
        """Crop an image."""
        return image.center_crop(x, *self._args)[0]


class Resize(HybridBlock):
    """An image, or a batch, resized.

    Parameters
    ----------
    size : int or (width, height)
        Size of the result.
    keep_ratio : bool
        Whether an int ``size`` is the length of the shorter edge, so that the ratio of edges stays; otherwise it is
        the length of both edges.
    interpolation : int
        Interpolation, by OpenCV's codes.

    Examples
    --------
    >>> import opreg as mx
    >>> Resize(4, keep_ratio=True)(mx.nd.zeros((8, 16, 3), dtype="uint8")).shape
    (4, 8, 3)
    """

    def __init__(self, size: Sizes, keep_ratio: bool = False, interpolation: int = 1):
        super().__init__()
        self._args = size, keep_ratio, interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.resize(x, *self._args)


class RandomFlipLeftRight(HybridBlock):
    """An image, mirrored left to right with probability one half.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomFlipLeftRight()(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (8, 8, 3)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """An image, mirrored top to bottom with probability one half.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomFlipTopBottom()(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (8, 8, 3)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.random_flip_top_bottom(x)


class _RandomColor(HybridBlock):
    """An image whose colors are changed by a random factor from ``max(0, 1 - amount)`` to ``1 + amount``."""

    #: The operator of ``F.image`` that changes the image.
    _operator: str

    def __init__(self, amount: float):
        super().__init__()
        self._args = max(0, 1 - amount), 1 + amount

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return getattr(F.image, self._operator)(x, *self._args)


class RandomBrightness(_RandomColor):
    """An image times a random factor from ``max(0, 1 - brightness)`` to ``1 + brightness``.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomBrightness(0.2)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    _operator = "random_brightness"

    def __init__(self, brightness: Amount):
        super().__init__(brightness)


class RandomContrast(_RandomColor):
    """An image whose contrast is multiplied by a random factor from ``max(0, 1 - contrast)`` to ``1 + contrast``.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomContrast(0.2)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    _operator = "random_contrast"

    def __init__(self, contrast: Amount):
        super().__init__(contrast)


class RandomSaturation(_RandomColor):
    """An image whose saturation is multiplied by a random factor from ``max(0, 1 - saturation)`` to ``1 +
    saturation``.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomSaturation(0.2)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    _operator = "random_saturation"

    def __init__(self, saturation: Amount):
        super().__init__(saturation)


class RandomHue(_RandomColor):
    """An image whose hue is rotated by a random factor from ``max(0, 1 - hue)`` to ``1 + hue``.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomHue(0.2)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    _operator = "random_hue"

    def __init__(self, hue: Amount):
        super().__init__(hue)


class RandomColorJitter(HybridBlock):
    """An image whose brightness, contrast, saturation and hue are changed at random, in random order.

    Parameters
    ----------
    brightness, contrast, saturation, hue : float
        Greatest difference of each random factor from 1.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomColorJitter(brightness=0.1, hue=0.1)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    def __init__(self, brightness: Amount = 0, contrast: Amount = 0, saturation: Amount = 0, hue: Amount = 0):
        super().__init__()
        self._args = brightness, contrast, saturation, hue

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """An image with random noise along the principal components of its colours, as in AlexNet's training.

    Parameters
    ----------
    alpha : float
        Standard deviation of the noise.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomLighting(0.2)(mx.nd.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    def __init__(self, alpha: Amount):
        super().__init__()
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.image.random_lighting(x, self._alpha)


class RandomApply(Sequential):
    """Applies a transform with a given probability.

    Parameters
    ----------
    transforms : callable
        The transform.
    p : float
        Probability of the transform.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomApply(CenterCrop(4), p=1.0)(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (4, 4, 3)
    """

    def __init__(self, transforms: Callable[[Any], Any], p: Fraction = 0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, x: Any) -> Any:
        """Apply the transform, or return the image."""
        return x if self.p < random.random() else self.transforms(x)

"""Augmenters: callables that change an image before it is put into a batch, and describe themselves as text."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, array, dot, flip
from opreg.ndarray import sum as sum_of

from ..core.named_errors import name_errors
from ..core.settings import Checked
from ..errors import ArgumentError, ShapeError
from ..typing import DTypeLike
from .pixels import (
    center_crop,
    color_normalize,
    imresize,
    old_area,
    random_crop,
    random_size_crop,
    resize_short,
)

__all__ = ["Augmenter", "SequentialAug", "ResizeAug", "ForceResizeAug", "RandomCropAug", "RandomSizedCropAug",
           "CenterCropAug", "RandomOrderAug", "BrightnessJitterAug", "ContrastJitterAug", "SaturationJitterAug",
           "HueJitterAug", "ColorJitterAug", "LightingAug", "ColorNormalizeAug", "RandomGrayAug", "HorizontalFlipAug",
           "CastAug", "CreateAugmenter"]

#: Variances and principal components of the colours in ImageNet.
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009],
                         [-0.5808, -0.0045, -0.8140],
                         [-0.5836, -0.6948, 0.4203]])
MEAN, DEVIATION = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)

_LUMA = (0.299, 0.587, 0.114)


class SelfDescribing(Checked):
    """Base of objects that describe themselves by their class and arguments."""

    def __init__(self, **kwargs: Any):
        self._kwargs = {name: np.asarray(value.asnumpy() if isinstance(value, NDArray) else value).tolist()
                        if isinstance(value, (NDArray, np.ndarray)) else value for name, value in kwargs.items()}

    def dumps(self) -> Any:
        """Class and arguments, as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(SelfDescribing):
    """Base of image augmenters.

    A subclass passes its arguments to this constructor, and defines ``__call__``.

    Examples
    --------
    >>> ResizeAug(256).dumps()
    '["resizeaug", {"size": 256, "interp": 2}]'
    """

    def __call__(self, src: NDArray) -> NDArray:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class SequentialAug(Augmenter):
    """Augmenters applied in a row.

    Examples
    --------
    >>> import opreg as mx
    >>> SequentialAug([CenterCropAug((4, 2)), CastAug()])(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (2, 4, 3)
    """

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = ts

    def dumps(self) -> list[Any]:
        """Class, and the descriptions of the parts."""
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for augmenter in self.ts:
            src = augmenter(src)
        return src


class RandomOrderAug(SequentialAug):
    """Augmenters applied in random order.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomOrderAug([CenterCropAug((4, 4)), CastAug()])(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (4, 4, 3)
    """

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__(list(ts))

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)  # type: ignore[arg-type]
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Resizes images so that their shorter edge has length ``size``.

    Examples
    --------
    >>> ResizeAug(3)(array(np.zeros((6, 8, 3), "uint8"))).shape
    (3, 4, 3)
    """

    def __init__(self, size: int, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes images to ``size``, (width, height).

    Examples
    --------
    >>> ForceResizeAug((4, 2))(array(np.zeros((6, 8, 3), "uint8"))).shape
    (2, 4, 3)
    """

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return imresize(src, self.size[0], self.size[1], self.interp)


class RandomCropAug(Augmenter):
    """Crops images at a random position to ``size``, (width, height).

    Examples
    --------
    >>> import opreg as mx
    >>> RandomCropAug((4, 2))(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (2, 4, 3)
    """

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Crops images at a random position, with random area and aspect ratio, and resizes them; see
    `random_size_crop`.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomSizedCropAug((4, 2), 0.5, (0.9, 1.1))(mx.nd.ones((8, 8, 3), dtype="uint8")).shape
    (2, 4, 3)
    """

    def __init__(self, size: Sequence[int], area: float | Sequence[float], ratio: Sequence[float], interp: int = 2,
                 **kwargs: Any):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.ratio, self.interp = size, ratio, interp
        self.area = old_area("RandomSizedCropAug", area, kwargs)

    def __call__(self, src: NDArray) -> NDArray:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """Crops images in the middle to ``size``, (width, height).

    Examples
    --------
    >>> CenterCropAug((4, 2))(array(np.zeros((6, 8, 3), "uint8"))).shape
    (2, 4, 3)
    """

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: NDArray) -> NDArray:
        return center_crop(src, self.size, self.interp)[0]


class BrightnessJitterAug(Augmenter):
    """Changes the brightness by a random factor of up to 1 ± ``brightness``.

    Examples
    --------
    >>> import opreg as mx
    >>> BrightnessJitterAug(0.2)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src: NDArray) -> NDArray:
        src *= 1.0 + random.uniform(-self.brightness, self.brightness)
        return src


class ContrastJitterAug(Augmenter):
    """Changes the contrast by a random factor of up to 1 ± ``contrast``.

    Examples
    --------
    >>> import opreg as mx
    >>> ContrastJitterAug(0.2)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)
        self.contrast, self.coef = contrast, array([[_LUMA]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        gray = src * self.coef
        gray = sum_of(gray) * (3.0 * (1.0 - alpha) / gray.size)
        src *= alpha
        src += gray
        return src


class SaturationJitterAug(Augmenter):
    """Changes the saturation by a random factor of up to 1 ± ``saturation``.

    Examples
    --------
    >>> import opreg as mx
    >>> SaturationJitterAug(0.2)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)
        self.saturation, self.coef = saturation, array([[_LUMA]])

    def __call__(self, src: NDArray) -> NDArray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        gray = sum_of(src * self.coef, axis=2, keepdims=True)
        gray *= 1.0 - alpha
        src *= alpha
        src += gray
        return src


class HueJitterAug(Augmenter):
    """Rotates the hue by a random part of up to ± ``hue`` of a half turn.

    Examples
    --------
    >>> import opreg as mx
    >>> HueJitterAug(0.2)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, hue: float):
        super().__init__(hue=hue)
        self.hue = hue
        self.tyiq = np.array([_LUMA, [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
        self.ityiq = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])

    def __call__(self, src: NDArray) -> NDArray:
        angle = random.uniform(-self.hue, self.hue) * math.pi
        cosine, sine = math.cos(angle), math.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
        return dot(src, array((self.ityiq @ turn @ self.tyiq).T))


class ColorJitterAug(RandomOrderAug):
    """Changes brightness, contrast and saturation in random order; zero settings are skipped.

    Examples
    --------
    >>> import opreg as mx
    >>> ColorJitterAug(0.1, 0.1, 0.1)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, brightness: float, contrast: float, saturation: float):
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(share) for kind, share in kinds if share > 0])


class LightingAug(Augmenter):
    """Adds noise along the principal components of colours.

    Parameters
    ----------
    alphastd : float
        Standard deviation of the noise.
    eigval, eigvec : array
        Variances and principal components.

    Examples
    --------
    >>> import opreg as mx
    >>> import numpy as np
    >>> LightingAug(0.1, np.ones(3), np.eye(3))(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src: NDArray) -> NDArray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))  # noqa: NPY002 (the generator that programs seed)
        src += array(np.dot(np.asarray(self.eigvec) * alpha, np.asarray(self.eigval)))
        return src


class ColorNormalizeAug(Augmenter):
    """Subtracts a mean and divides by a standard deviation; either may be None.

    Examples
    --------
    >>> import opreg as mx
    >>> ColorNormalizeAug(mx.nd.array([1.0]), mx.nd.array([2.0]))(mx.nd.full((1, 1, 3), 5.0)).asnumpy()
    array([[[2., 2., 2.]]], dtype=float32)
    """

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (value if value is None or isinstance(value, NDArray) else array(value)
                               for value in (mean, std))

    def __call__(self, src: NDArray) -> NDArray:
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Makes images gray, with probability ``p``.

    Examples
    --------
    >>> import opreg as mx
    >>> RandomGrayAug(1.0)(mx.nd.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p, self.mat = p, array([[share] * 3 for share in (0.21, 0.72, 0.07)])

    def __call__(self, src: NDArray) -> NDArray:
        return dot(src, self.mat) if random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Mirrors images left to right, with probability ``p``.

    Examples
    --------
    >>> HorizontalFlipAug(1.0)(array([[[1.0], [2.0]]])).asnumpy().ravel()
    array([2., 1.], dtype=float32)
    """

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray) -> NDArray:
        return flip(src, axis=1) if random.random() < self.p else src


class CastAug(Augmenter):
    """Casts images to another dtype.

    Examples
    --------
    >>> CastAug()(array(np.zeros((6, 8, 3), "uint8"))).dtype.__name__
    'float32'
    """

    def __init__(self, typ: DTypeLike = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: NDArray) -> NDArray:
        return src.astype(self.typ)


def colors(what: str, value: Any, usual: Sequence[float]) -> Any:
    """A mean or standard deviation of channels: an array of one or three values, None, or True for the default."""
    if value is True:
        return np.array(usual)
    if value is not None:
        if not isinstance(value, (np.ndarray, NDArray)):
            raise ArgumentError(f"{what}: expected True, None or an array, got {value!r}")
        if value.ndim < 1 or value.shape[0] not in (1, 3):
            raise ShapeError(f"{what}: expected one number or one for each channel, got shape {value.shape}")
    return value


def color_augmenters(brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float,
                     rand_gray: float, mean: Any, std: Any) -> list[Augmenter]:
    """The augmenters of colours, which run after the cast, in their order."""
    changes: list[Augmenter] = []
    if brightness or contrast or saturation:
        changes.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        changes.append(HueJitterAug(hue))
    if pca_noise > 0:
        changes.append(LightingAug(pca_noise, EIGENVALUES, EIGENVECTORS))
    if rand_gray > 0:
        changes.append(RandomGrayAug(rand_gray))
    mean, std = colors("mean", mean, MEAN), colors("std", std, DEVIATION)
    if mean is not None or std is not None:
        changes.append(ColorNormalizeAug(mean, std))
    return changes


def CreateAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: bool = False,
                    rand_resize: bool = False, rand_mirror: bool = False, mean: Any = None, std: Any = None,
                    brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0,
                    pca_noise: float = 0, rand_gray: float = 0, inter_method: int = 2) -> list[Augmenter]:
    """The usual augmenters for training classifiers.

    Parameters
    ----------
    data_shape : tuple of int
        Channels, height and width of the result.
    resize : int
        Length to which the shorter edge is first resized; 0 for none.
    rand_crop, rand_resize, rand_mirror : bool
        Whether to crop at a random position instead of the middle, with random area and aspect ratio, and whether to
        mirror half of the images.
    mean, std : array, True or None
        Mean and standard deviation, a value for each channel; True for ImageNet's.
    brightness, contrast, saturation, hue : float
        Greatest relative change.
    pca_noise : float
        Standard deviation of noise along the principal components of colours.
    rand_gray : float
        Probability that an image is made gray.
    inter_method : int
        The interpolation; see `imresize`.

    Examples
    --------
    >>> [type(each).__name__ for each in CreateAugmenter((3, 224, 224), rand_mirror=True)]
    ['CenterCropAug', 'HorizontalFlipAug', 'CastAug']
    """
    augmenters: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    size = (data_shape[2], data_shape[1])
    if rand_resize and not rand_crop:
        raise ArgumentError("CreateAugmenter: rand_resize needs rand_crop")
    if rand_resize:
        augmenters.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    mean, std = (np.array(usual, np.float32) if value is True else value
                 for value, usual in ((mean, MEAN), (std, DEVIATION)))
    return [*augmenters, CastAug(),
            *color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)]


name_errors(__name__, globals(), __all__)

"""Augmentation by policies: operations on images whose kind and strength are drawn from a table."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.settings import Checked
from ....errors import ArgumentError
from ..config import stream
from ..transforms import apply_in_row, chance
from .colours import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from .images import Fill, Inter, check_image
from .warps import Rotate, affine_image

__all__ = ["AutoAugment", "AutoAugmentPolicy", "RandAugment", "RandomSelectSubpolicy", "TrivialAugmentWide",
           "UniformAugment"]


class AutoAugmentPolicy(enum.Enum):
    """Data sets whose policies were learned."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


#: By policy, pairs of operations: each with its probability, and the number of its strength where it has one (E. Cubuk
#: et al., AutoAugment: Learning Augmentation Strategies from Data, tables 7, 8 and 9).
_PAIRS = {AutoAugmentPolicy(name): [[each.split() for each in pair.split("+")] for pair in pairs.split(";")]
          for name, pairs in {
    "imagenet": "Posterize .4 8+Rotate .6 9;Solarize .6 5+AutoContrast .6;Equalize .8+Equalize .6;"
                "Posterize .6 7+Posterize .6 6;Equalize .4+Solarize .2 4;Equalize .4+Rotate .8 8;"
                "Solarize .6 3+Equalize .6;Posterize .8 5+Equalize 1;Rotate .2 3+Solarize .6 8;"
                "Equalize .6+Posterize .4 6;Rotate .8 8+Color .4 0;Rotate .4 9+Equalize .6;Equalize 0+Equalize .8;"
                "Invert .6+Equalize 1;Color .6 4+Contrast 1 8;Rotate .8 8+Color 1 2;Color .8 8+Solarize .8 7;"
                "Sharpness .4 7+Invert .6;ShearX .6 5+Equalize 1;Color .4 0+Equalize .6;Equalize .4+Solarize .2 4;"
                "Solarize .6 5+AutoContrast .6;Invert .6+Equalize 1;Color .6 4+Contrast 1 8;Equalize .8+Equalize .6",
    "cifar10": "Invert .1+Contrast .2 6;Rotate .7 2+TranslateX .3 9;Sharpness .8 1+Sharpness .9 3;"
               "ShearY .5 8+TranslateY .7 9;AutoContrast .5+Equalize .9;ShearY .2 7+Posterize .3 7;"
               "Color .4 3+Brightness .6 7;Sharpness .3 9+Brightness .7 9;Equalize .6+Equalize .5;"
               "Contrast .6 7+Sharpness .6 5;Color .7 7+TranslateX .5 8;Equalize .3+AutoContrast .4;"
               "TranslateY .4 3+Sharpness .2 6;Brightness .9 6+Color .2 8;Solarize .5 2+Invert 0;"
               "Equalize .2+AutoContrast .6;Equalize .2+Equalize .6;Color .9 9+Equalize .6;"
               "AutoContrast .8+Solarize .2 8;Brightness .1 3+Color .7 0;Solarize .4 5+AutoContrast .9;"
               "TranslateY .9 9+TranslateY .7 9;AutoContrast .9+Solarize .8 3;Equalize .8+Invert .1;"
               "TranslateY .7 9+AutoContrast .9",
    "svhn": "ShearX .9 4+Invert .2;ShearY .9 8+Invert .7;Equalize .6+Solarize .6 6;Invert .9+Equalize .6;"
            "Equalize .6+Rotate .9 3;ShearX .9 4+AutoContrast .8;ShearY .9 8+Invert .4;ShearY .9 5+Solarize .2 6;"
            "Invert .9+AutoContrast .8;Equalize .6+Rotate .9 3;ShearX .9 4+Solarize .3 3;ShearY .8 8+Invert .7;"
            "Equalize .9+TranslateY .6 6;Invert .9+Equalize .6;Contrast .3 3+Rotate .8 4;Invert .8+TranslateY 0 2;"
            "ShearY .7 6+Solarize .4 8;Invert .6+Rotate .8 4;ShearY .3 7+TranslateX .9 3;ShearX .1 6+Invert .6;"
            "Solarize .7 2+TranslateY .6 7;ShearY .8 4+Invert .8;ShearX .7 9+TranslateY .8 3;"
            "ShearY .8 5+AutoContrast .7;ShearX .7 2+Invert .1"}.items()}


class _Resampling(NamedTuple):
    """The interpolation of moved pixels, and the value outside of the image."""

    resample: Inter
    fill: Fill


def _shear(x: int, y: int) -> Callable[..., np.ndarray]:
    return lambda pixels, size, resampling: affine_image(
        pixels, 0.0, (0, 0), 1.0, (math.degrees(size) * x, math.degrees(size) * y), *resampling)


def _shift(x: int, y: int) -> Callable[..., np.ndarray]:
    return lambda pixels, size, resampling: affine_image(
        pixels, 0.0, (int(size) * x, int(size) * y), 1.0, (0.0, 0.0), *resampling)


#: Operations by name, as functions of an image, a strength and a `_Resampling`.
_OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "Identity": lambda pixels, size, resampling: pixels,
    "ShearX": _shear(1, 0), "ShearY": _shear(0, 1), "TranslateX": _shift(1, 0), "TranslateY": _shift(0, 1),
    "Rotate": lambda pixels, size, resampling: Rotate(size, resampling.resample, fill_value=resampling.fill)(pixels),
    "Brightness": lambda pixels, size, resampling: AdjustBrightness(1 + size)(pixels),
    "Color": lambda pixels, size, resampling: AdjustSaturation(1 + size)(pixels),
    "Contrast": lambda pixels, size, resampling: AdjustContrast(1 + size)(pixels),
    "Sharpness": lambda pixels, size, resampling: AdjustSharpness(1 + size)(pixels),
    "Posterize": lambda pixels, size, resampling: Posterize(int(size))(pixels),
    "Solarize": lambda pixels, size, resampling: Solarize(size)(pixels),
    "AutoContrast": lambda pixels, size, resampling: AutoContrast()(pixels),
    "Equalize": lambda pixels, size, resampling: Equalize()(pixels),
    "Invert": lambda pixels, size, resampling: Invert()(pixels),
}
#: Operations whose strength has either sign.
_SIGNED = frozenset({"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
                     "Sharpness"})


#: The operations that `RandAugment` and `TrivialAugmentWide` draw from.
_WITHOUT_INVERT = [name for name in _OPERATIONS if name != "Invert"]


def _strengths(count: int, shear: float, across: float, down: float, angle: float, factor: float, bits: int,
               lightest: int) -> dict[str, np.ndarray]:
    """``count`` strengths for each operation with strengths, from zero to the largest, in float32."""
    steps = np.arange(count, dtype=np.float32)

    def up_to(end: float) -> np.ndarray:
        return steps * (np.float32(end) / np.float32(count - 1))

    return {"ShearX": up_to(shear), "ShearY": up_to(shear), "TranslateX": up_to(across), "TranslateY": up_to(down),
            "Rotate": up_to(angle), **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), up_to(factor)),
            "Posterize": np.rint(8 - up_to(bits)), "Solarize": np.float32(lightest) - up_to(lightest)}


class _Drawn(Checked):
    """An operation on images of three channels that draws others."""

    def __init__(self, interpolation: Inter, fill_value: Fill):
        self._resampling = _Resampling(Inter(interpolation), fill_value)

    def _read(self, image: Any) -> np.ndarray:
        return check_image(type(self).__name__, image, (3,), "uint8")

    def _apply_operation(self, pixels: np.ndarray, name: str, size: float) -> np.ndarray:
        return _OPERATIONS[name](pixels, -size if name in _SIGNED and stream().integers(2) else size, self._resampling)


class AutoAugment(_Drawn):
    """Two operations on an image of uint8, drawn from the policy that was learned on a data set.

    Parameters
    ----------
    policy : AutoAugmentPolicy
        The policy.
    interpolation : Inter
        Kind of interpolation for operations that move pixels.
    fill_value : int, or sequence for the channels
        Value outside of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.AutoAugment()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET, interpolation: Inter = Inter.NEAREST,
                 fill_value: Fill = 0):
        super().__init__(interpolation, fill_value)
        self._pairs = _PAIRS[AutoAugmentPolicy(policy)]

    def __call__(self, image: Any) -> np.ndarray:
        pixels = self._read(image)
        height, width = pixels.shape[:2]
        strengths = _strengths(10, 0.3, 150 / 331 * width, 150 / 331 * height, 30.0, 0.9, 4, 256)
        random = stream()
        for name, prob, *number in self._pairs[int(random.integers(len(self._pairs)))]:
            if random.random() <= float(prob):
                pixels = self._apply_operation(pixels, name, float(strengths[name][int(number[0])]) if number else 0.0)
        return pixels


class RandAugment(_Drawn):
    """Some of 14 operations on an image of uint8, drawn at random, all of one strength.

    Parameters
    ----------
    num_ops : int
        Count of operations.
    magnitude : int
        Number of the strength.
    num_magnitude_bins : int
        Count of strengths, 2 at least.
    interpolation, fill_value
        See ``AutoAugment``.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandAugment()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
                 interpolation: Inter = Inter.NEAREST, fill_value: Fill = 0):
        super().__init__(interpolation, fill_value)
        if num_ops < 0 or num_magnitude_bins < 2 or not 0 <= magnitude < num_magnitude_bins:
            raise ArgumentError(f"RandAugment: expected num_ops of 0 or more, num_magnitude_bins of 2 or more and a "
                                f"magnitude below, got {num_ops}, {num_magnitude_bins} and {magnitude}")
        self._count, self._number, self._bins = num_ops, magnitude, num_magnitude_bins

    def __call__(self, image: Any) -> np.ndarray:
        pixels = self._read(image)
        height, width = pixels.shape[:2]
        strengths = _strengths(self._bins, 0.3, 150 / 331 * width, 150 / 331 * height, 30.0, 0.9, 4, 255)
        for _ in range(self._count):
            name = _WITHOUT_INVERT[int(stream().integers(len(_WITHOUT_INVERT)))]
            pixels = self._apply_operation(pixels, name,
                                           float(strengths[name][self._number]) if name in strengths else 0.0)
        return pixels


class TrivialAugmentWide(_Drawn):
    """One of 14 operations on an image of uint8, of a strength drawn at random.

    Parameters
    ----------
    num_magnitude_bins : int
        Count of strengths, 2 at least.
    interpolation, fill_value
        See ``AutoAugment``.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.TrivialAugmentWide()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST, fill_value: Fill = 0):
        super().__init__(interpolation, fill_value)
        if num_magnitude_bins < 2:
            raise ArgumentError(f"TrivialAugmentWide: num_magnitude_bins must be 2 at least, got {num_magnitude_bins}")
        self._strengths = _strengths(num_magnitude_bins, 0.99, 32.0, 32.0, 135.0, 0.99, 6, 255)

    def __call__(self, image: Any) -> np.ndarray:
        pixels, random = self._read(image), stream()
        name = _WITHOUT_INVERT[int(random.integers(len(_WITHOUT_INVERT)))]
        sizes = self._strengths.get(name, (0.0,))
        return self._apply_operation(pixels, name, float(sizes[int(random.integers(len(sizes)))]))


class UniformAugment(Checked):
    """Some of the operations, drawn at random, each of which is then applied with probability 0.5.

    Parameters
    ----------
    transforms : sequence of functions
        The operations.
    num_ops : int
        Count of operations that are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.UniformAugment([vision.Invert()], 1)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], num_ops: int = 2):
        if not 1 <= num_ops <= len(transforms):
            raise ArgumentError(f"UniformAugment: num_ops must be from 1 to {len(transforms)}, the count of "
                                f"transforms, got {num_ops}")
        self.transforms, self._count = list(transforms), num_ops

    def __call__(self, image: Any) -> Any:
        random = stream()
        for i in sorted(random.choice(len(self.transforms), self._count, replace=False)):
            if random.random() < 0.5:
                image = self.transforms[i](image)
        return image


class RandomSelectSubpolicy(Checked):
    """The operations of one of several lists, drawn at random, each applied with its probability.

    Parameters
    ----------
    policy : sequence of lists of (function, float)
        Lists of operations with their probabilities.

    Examples
    --------
    >>> RandomSelectSubpolicy([[(lambda x: x + 1, 1.0), (lambda x: x * 2, 0.0)]])(3)
    4
    """

    def __init__(self, policy: Sequence[Sequence[tuple[Callable[..., Any], float]]]):
        if not policy or not all(policy):
            raise ArgumentError("RandomSelectSubpolicy: expected lists of pairs of an operation and its probability")
        self._policy = [[(step, chance("RandomSelectSubpolicy", prob)) for step, prob in steps] for steps in policy]

    def __call__(self, *columns: Any) -> Any:
        random = stream()
        steps = self._policy[int(random.integers(len(self._policy)))]
        return apply_in_row([step for step, prob in steps if random.random() < prob], columns)

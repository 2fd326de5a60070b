"""Operations on images for ``map``: arrays of (height, width, channels), in uint8 or floating-point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....aliases import inner
from ..transforms import Compose
from .colours import (
    AdjustBrightness,
    AdjustContrast,
    AdjustGamma,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    ConvertColor,
    Equalize,
    GaussianBlur,
    Grayscale,
    HsvToRgb,
    Invert,
    Posterize,
    RandomAdjustSharpness,
    RandomAutoContrast,
    RandomColor,
    RandomColorAdjust,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomLighting,
    RandomPosterize,
    RandomSharpness,
    RandomSolarize,
    RgbToHsv,
    Solarize,
)
from .conversions import (
    HWC2CHW,
    Decode,
    LinearTransformation,
    Normalize,
    NormalizePad,
    Rescale,
    ToNumpy,
    ToPIL,
    ToTensor,
    ToType,
)
from .frames import (
    CenterCrop,
    Crop,
    CutOut,
    Erase,
    FiveCrop,
    HorizontalFlip,
    Pad,
    PadToSize,
    RandomCrop,
    RandomCropDecodeResize,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResize,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    ResizedCrop,
    SlicePatches,
    TenCrop,
    VerticalFlip,
)
from .images import (
    Border,
    ConvertMode,
    ImageBatchFormat,
    Inter,
    SliceMode,
)
from .mixing import (
    CutMixBatch,
    MixUp,
    MixUpBatch,
)
from .warps import (
    Affine,
    Perspective,
    RandomAffine,
    RandomPerspective,
    RandomRotation,
    Rotate,
)

__all__ = ["AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness",
           "Affine", "AutoContrast", "Border", "CenterCrop", "Compose", "ConvertColor", "ConvertMode", "Crop",
           "CutMixBatch", "CutOut", "Decode", "Equalize", "Erase", "FiveCrop", "GaussianBlur", "Grayscale", "HWC2CHW",
           "HorizontalFlip", "HsvToRgb", "ImageBatchFormat", "Inter", "Invert", "LinearTransformation", "MixUp",
           "MixUpBatch", "Normalize", "NormalizePad", "Pad", "PadToSize", "Perspective", "Posterize",
           "RandomAdjustSharpness", "RandomAffine", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
           "RandomCrop", "RandomCropDecodeResize", "RandomEqualize", "RandomErasing", "RandomGrayscale",
           "RandomHorizontalFlip", "RandomInvert", "RandomLighting", "RandomPerspective", "RandomPosterize",
           "RandomResize", "RandomResizedCrop", "RandomRotation", "RandomSharpness", "RandomSolarize",
           "RandomVerticalFlip", "Rescale", "Resize", "ResizedCrop", "RgbToHsv", "Rotate", "SliceMode", "SlicePatches",
           "Solarize", "TenCrop", "ToNumpy", "ToPIL", "ToTensor", "ToType", "VerticalFlip"]

if not TYPE_CHECKING:  # its submodules
    __getattr__ = inner(__name__)

# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.methods import DType, Floats, Input, Ints, Operand, Out
from opreg.ndarray.ndarray import NDArray

def adjust_lighting(data: Input, alpha: Floats, *, out: Out = None, name: str | None = None) -> NDArray:
    """The image plus ``alpha`` times the principal components of the colors of natural images."""
def crop(data: Input, x: int, y: int, width: int, height: int, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """A crop of images (..., height, width, channel), with its left edge at ``x`` and its top at ``y``."""
def flip_left_right(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The mirror image."""
def flip_top_bottom(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The mirror image."""
def normalize(data: Input, mean: float | Floats = (0.0, 0.0, 0.0, 0.0), std: float | Floats = (1.0, 1.0, 1.0, 1.0), *,
              out: Out = None, name: str | None = None) -> NDArray:
    """Images (..., channel, height, width) minus ``mean``, divided by ``std``, one value for all channels …."""
def random_brightness(data: Input, min_factor: float, max_factor: float, *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """The image with its brightness changed by a random factor, uniform in a range."""
def random_color_jitter(data: Input, brightness: float, contrast: float, saturation: float, hue: float, *,
                        out: Out = None, name: str | None = None) -> NDArray:
    """The image with brightness, contrast, saturation and hue changed in random order."""
def random_contrast(data: Input, min_factor: float, max_factor: float, *, out: Out = None,
                    name: str | None = None) -> NDArray:
    """The image with its contrast changed by a random factor, uniform in a range."""
def random_flip_left_right(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The image or its mirror image, with equal probability."""
def random_flip_top_bottom(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The image or its mirror image, with equal probability."""
def random_hue(data: Input, min_factor: float, max_factor: float, *, out: Out = None,
               name: str | None = None) -> NDArray:
    """The image with its hue changed by a random factor, uniform in a range."""
def random_lighting(data: Input, alpha_std: float = 0.05, *, out: Out = None, name: str | None = None) -> NDArray:
    """The image plus random factors, of standard deviation ``alpha_std``, times the principal components …."""
def random_saturation(data: Input, min_factor: float, max_factor: float, *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """The image with its saturation changed by a random factor, uniform in a range."""
def resize(data: Input, size: Ints = (), keep_ratio: bool = False, interp: Literal[0, 1, 2, 3, 4] = 1, *,
           out: Out = None, name: str | None = None) -> NDArray:
    """Images (..., height, width, channel) resized to ``size``, (width, height) or one number for both."""
def to_tensor(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Images (..., height, width, channel) with values up to 255, as (..., channel, height, width) with …."""

"""Preparation of images (height, width, channel) for networks: cropping, flipping, colors, normalisation.

Colors are red, green, blue, or one gray; integers are rounded toward zero, and clipped to the range of short dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, is_floating, is_single_or_double, show
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import linear
from ..shapes.slicing import Cut, declare_slice

#: Weights of red, green and blue in gray (ITU-R BT.601).
_GRAY = (0.299, 0.587, 0.114)

#: Principal components of the colors of natural images, one row per color, times their standard deviations. A.
#: Krizhevsky, I. Sutskever, G. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012.
_DIRECTIONS = tuple(tuple(part * size for part, size in zip(row, (55.46, 4.794, 1.148))) for row in (
    (-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203)))


def _image(data: Shape, batch: bool = True) -> None:
    if len(data) != 3 and not (batch and len(data) == 4):
        raise ShapeError(f"data: expected an image (height, width, channel){' or a batch of them' if batch else ''}, "
                         f"got shape {show(data)}")


def _clip_to_range(xp: ArrayModule, colours: Array, dtype: np.dtype) -> Array:
    """Values clipped to the range of a short integer dtype."""
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        return colours
    return xp.clip(colours, xp.iinfo(dtype).min, xp.iinfo(dtype).max)


def _declare_transform(op: Op, change: Callable[..., Array]) -> None:
    """Declare that an operator transforms images: ``change(xp, x, dtype, rng, **attrs)`` transforms an image in the
    working dtype; ``dtype`` is that of the result."""

    # no body: all but one draw random values, and the eager gradient of a body would draw other ones
    @op.kernel()
    def changing_xp(xp, data, *, rng=None, **attrs):
        working = data if is_single_or_double(data.dtype) else data.astype(xp.float32)
        return _clip_to_range(xp, change(xp, working, data.dtype, rng, **attrs), data.dtype)


# ------------------------------------------------------------------------------- to_tensor and normalize


@composed(name="_image_to_tensor", aliases=("_npx__image_to_tensor",), types="T->float32")
def to_tensor(data):
    """Images (..., height, width, channel) with values up to 255, as (..., channel, height, width) with values up to
    1."""
    _image(data.shape)
    dtype = np.dtype(data.dtype)
    x = data if is_floating(dtype) else ops.Cast(data, dtype="float32")
    turned = ops.transpose(x, axes=(2, 0, 1) if len(data.shape) == 3 else (0, 3, 1, 2)) / 255
    return ops.Cast(turned, dtype="float32") if is_floating(dtype) and dtype != "float32" else turned


def _per_channel(name: str, values: float | tuple[float, ...], channels: int, dtype: np.dtype) -> np.ndarray:
    """One value, or one per channel, before two axes of length one; equal values become one."""
    values = values if isinstance(values, tuple) else (values,)
    values = values[:1] if len(set(values)) == 1 else values
    if len(values) > 1 and channels is not ANY and len(values) != channels:
        raise AttrError(f"{name}={values}: expected one number or {channels}, one for each channel")
    return np.asarray(values, dtype)[:, None, None]


@composed(name="_image_normalize", aliases=("_npx__image_normalize",))
def normalize(data, *, mean: float | tuple[float, ...] = (0.0, 0.0, 0.0, 0.0),
              std: float | tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)):
    """Images (..., channel, height, width) minus ``mean``, divided by ``std``, one value for all channels or for
    each."""
    shape, dtype = data.shape, np.dtype(data.dtype)
    if len(shape) not in (3, 4) or shape[-3] not in (1, 3):
        raise ShapeError("data: expected an image (channel, height, width) of one or three channels, or a batch of "
                         f"them, got shape {show(shape)}")
    x = data if is_single_or_double(dtype) else ops.Cast(data, dtype="float32")
    around, scale = [_per_channel(name, values, shape[-3], x.dtype) for name, values in (("mean", mean), ("std", std))]
    y = ops.broadcast_div(ops.broadcast_sub(x, around), scale)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        y = ops.clip(y, a_min=float(np.iinfo(dtype).min), a_max=float(np.iinfo(dtype).max))
    return y if x is data else ops.Cast(y, dtype=dtype)


# -------------------------------------------------------------------------------------------------- crop


def _part(data: Shape, like: Shape = (), *, x: int, y: int, width: int, height: int) -> Cut:
    _image(data)
    for name, start, size, length in (("x", x, width, data[-2]), ("y", y, height, data[-3])):
        if start < 0 or size < 1 or length < start + size:
            raise AttrError(f"{name}={start}: {size} from there exceed the length {length}")
    return (*(slice(None),) * (len(data) - 3), slice(y, y + height), slice(x, x + width))


@declare(name="_image_crop", aliases=("_npx__image_crop",))
def crop(data, *, x: int, y: int, width: int, height: int):
    """A crop of images (..., height, width, channel), with its left edge at ``x`` and its top at ``y``."""


declare_slice(crop, _part)


# ------------------------------------------------------------------------------------------------- flips


def _declare_flip(words: str, axis: int) -> None:
    @composed(name=f"_image_flip_{words}", aliases=(f"_npx__image_flip_{words}",))
    def flip(data):
        """The mirror image."""
        return ops.reverse(data, axis=axis)

    @declare(name=f"_image_random_flip_{words}", aliases=(f"_npx__image_random_flip_{words}",), random=True)
    def random_flip(data):
        """The image or its mirror image, with equal probability; the gradient is the output gradient."""

    declare_form(flip, "(height, width, channel) -> (height, width, channel)")
    declare_form(random_flip, "(height, width, channel) -> (height, width, channel)")
    linear(random_flip, "_copy")

    @random_flip.kernel()  # no body: the eager gradient of a body would draw again
    def random_flip_xp(xp, data, *, rng):
        return xp.where(rng.random((1,)) < 0.5, xp.flip(data, axis), data)


_declare_flip("left_right", 1)
_declare_flip("top_bottom", 0)


# ------------------------------------------------------------------------------------------------ colors
# Each changes an image of the working dtype by a factor, an array of one element.


def _gray(xp: ArrayModule, x: Array) -> Array:
    """The gray value of each pixel, as one channel."""
    return x if x.shape[-1] == 1 else (x * xp.asarray(_GRAY, dtype=x.dtype)).sum(axis=-1, keepdims=True)


def _brightness(xp: ArrayModule, x: Array, factor: Array) -> Array:
    return x * factor


def _contrast(xp: ArrayModule, x: Array, factor: Array) -> Array:
    gray = _gray(xp, x)
    return x * factor + gray.sum() / max(1, gray.size) * (1 - factor)


def _saturation(xp: ArrayModule, x: Array, factor: Array) -> Array:
    return x if x.shape[-1] == 1 else x * factor + _gray(xp, x) * (1 - factor)


def _hue(xp: ArrayModule, x: Array, turns: Array) -> Array:
    """Colors with their hue rotated; lightness and saturation do not change.

    The hexagon of hues is that of A. Smith, Color gamut transform pairs, 1978.
    """
    if x.shape[-1] == 1:
        return x
    x = x / 255
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    high, low = x.max(axis=-1), x.min(axis=-1)
    light, spread = (high + low) / 2, high - low
    colored = spread > 1.2e-7
    unit = xp.where(colored, spread, 1)
    saturation = xp.where(colored, spread / xp.where(colored, xp.where(light < 0.5, high + low, 2 - high - low), 1), 0)
    hue = xp.where(high == red, (green - blue) / unit,
                   xp.where(high == green, (blue - red) / unit + 2, (red - green) / unit + 4))
    hue = (xp.where(colored, hue, 0) + turns * 6) % 6
    top = xp.where(light <= 0.5, light * (1 + saturation), light + saturation - light * saturation)
    bottom = 2 * light - top
    # Along the circle of hues a color rises, stays at its maximum, falls and stays at zero; the others are shifted by a
    # third.
    distance = [xp.abs((hue - center + 3) % 6 - 3) for center in (0, 2, 4)]
    return xp.stack([bottom + (top - bottom) * xp.clip(2 - d, 0, 1) for d in distance], axis=-1) * 255


def _lighting(xp: ArrayModule, x: Array, alpha: Array) -> Array:
    """Colors shifted along the three principal components by factors ``alpha``."""
    if x.shape[-1] == 1:
        return x
    return x + (xp.asarray(_DIRECTIONS, dtype=x.dtype) * alpha).sum(axis=1)


def _declare_color_change(op: Op, change: Callable[..., Array]) -> None:
    """Declare that an operator changes colors by ``change``; see ``_declare_transform``."""
    _declare_transform(op, change)

    @op.infer
    def infer(data, **attrs):
        _image(data, batch=False)
        if data[-1] not in (1, 3):
            raise ShapeError(f"data: expected one or three channels along the last axis, got shape {show(data)}")
        if attrs.get("min_factor", 0) > attrs.get("max_factor", 0) and "min_factor" in attrs:
            raise AttrError(f"min_factor={attrs['min_factor']} is above max_factor={attrs['max_factor']}")
        if len(attrs.get("alpha", _GRAY)) != 3:
            raise AttrError(f"alpha={attrs['alpha']}: expected three numbers")
        return data


def _declare_factor(name: str, change: Callable[[ArrayModule, Array, Array], Array]) -> None:
    @declare(name=f"_image_random_{name}", aliases=(f"_npx__image_random_{name}",), random=True)
    def random_color(data, *, min_factor: float, max_factor: float):
        """The image with its {name} changed by a random factor, uniform in a range; the gradient is the output
        gradient."""

    random_color.doc = random_color.doc.format(name=name)

    def by_factor(xp: ArrayModule, x: Array, dtype: np.dtype, rng: Any, min_factor: float, max_factor: float) -> Array:
        return change(xp, x, (rng.random((1,)) * (max_factor - min_factor) + min_factor).astype(x.dtype))

    _declare_color_change(random_color, by_factor)
    linear(random_color, "_copy")


for _name, _change in (("brightness", _brightness), ("contrast", _contrast), ("saturation", _saturation),
                       ("hue", _hue)):
    _declare_factor(_name, _change)


@declare(name="_image_random_color_jitter", aliases=("_npx__image_random_color_jitter",), random=True)
def color_jitter(data, *, brightness: float, contrast: float, saturation: float, hue: float):
    """The image with brightness, contrast, saturation and hue changed in random order.

    Each attribute is the largest difference of a random factor from one; for the hue it is the largest rotation, in
    turns. The gradient is the output gradient.
    """


def _jitter(xp: ArrayModule, x: Array, dtype: np.dtype, rng: Any, brightness: float, contrast: float,
            saturation: float, hue: float) -> Array:
    changes = ((_brightness, 1, brightness), (_contrast, 1, contrast), (_saturation, 1, saturation), (_hue, 0, hue))
    chosen = [change for change in changes if change[2] > 0]
    parts = rng.random((len(chosen),)) * 2 - 1
    # The order is on the device: each step computes all changes, and applies the chosen one with its factor.
    order = xp.argsort(rng.random((len(chosen),)))
    for turn in range(len(chosen)):
        for i, (change, neutral, most) in enumerate(chosen):
            factor = xp.where(order[turn:turn + 1] == i, parts[i:i + 1] * most, 0) + neutral
            x = change(xp, x, factor.astype(x.dtype))
        x = _clip_to_range(xp, x, dtype)
    return x


_declare_color_change(color_jitter, _jitter)
linear(color_jitter, "_copy")


@declare(name="_image_adjust_lighting", aliases=("_npx__image_adjust_lighting",))
def adjust_lighting(data, *, alpha: tuple[float, ...]):
    """The image plus ``alpha`` times the principal components of the colors of natural images."""


_declare_color_change(adjust_lighting, lambda xp, x, dtype, rng,
                      alpha: _lighting(xp, x, xp.asarray(alpha, dtype=x.dtype)))


linear(adjust_lighting, "_copy")


@declare(name="_image_random_lighting", aliases=("_npx__image_random_lighting",), random=True)
def random_lighting(data, *, alpha_std: float = 0.05):
    """The image plus random factors, of standard deviation ``alpha_std``, times the principal components of the colors
    of natural images; the gradient is the output gradient."""


_declare_color_change(random_lighting, lambda xp, x, dtype, rng, alpha_std: _lighting(
    xp, x, (rng.standard_normal((3,)) * alpha_std).astype(x.dtype)))
linear(random_lighting, "_copy")

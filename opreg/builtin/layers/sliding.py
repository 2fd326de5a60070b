"""Sliding windows: the geometry that convolution, pooling and im2col share.

Along one axis, kernel position ``t`` of output ``q`` reads the input at ``q * stride - pad + t * dilate``; positions
outside the input are padding.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, TypeVar

from ...core.cache import cached
from ...core.spec import ANY, Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array

__all__ = ["Window", "window", "span", "taps", "extent", "input_extent", "spatial", "channels_first", "channels_last"]

#: An array, or the shape of one.
ArrayOrShape = TypeVar("ArrayOrShape", Array, Shape)


class Window(NamedTuple):
    """Kernel size, stride, dilation and padding, a number for each axis."""

    kernel: Shape
    stride: Shape
    dilate: Shape
    pad: Shape

    @property
    def reach(self) -> Shape:
        """Number of positions of the input that a dilated kernel spans."""
        return tuple([(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate)])


@cached(1024)
def window(kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()) -> Window:
    """A window with its defaults filled in: strides and dilations of one, no padding.

    Raises
    ------
    AttrError
        For more than three dimensions, attributes of unequal length, or values out of range.

    Examples
    --------
    >>> window((3, 3), pad=(1, 1))
    Window(kernel=(3, 3), stride=(1, 1), dilate=(1, 1), pad=(1, 1))
    """
    rank = len(kernel)
    if not 1 <= rank <= 3:
        raise AttrError(f"kernel={kernel}: expected one, two or three numbers")
    result = Window(kernel, stride or (1,) * rank, dilate or (1,) * rank, pad or (0,) * rank)
    for name, values, least in zip(Window._fields, result, (1, 1, 1, 0)):
        if len(values) != rank:
            raise AttrError(f"{name}={values}: expected {rank} numbers, as many as kernel={kernel} has")
        if min(values) < least:
            raise AttrError(f"{name}={values}: expected numbers of at least {least}")
    return result


def span(size: int, offset: int, stride: int, count: int) -> tuple[slice, slice]:
    """The range of outputs that read inside an axis, if output ``q`` of ``count`` reads at ``q * stride + offset``.

    Returns
    -------
    outputs, inputs : slice
        The outputs that read inside, and the inputs that they read. Both may be empty.

    Examples
    --------
    >>> span(5, -1, 1, 5)
    (slice(1, 5, None), slice(0, 4, 1))
    """
    low = min(max(0, -(offset // stride)), count)
    high = max(low, min(count, (size - 1 - offset) // stride + 1))
    if low == high:
        return slice(low, low), slice(0, 0, stride)
    return slice(low, high), slice(low * stride + offset, (high - 1) * stride + offset + 1, stride)


@cached(1024)
def taps(w: Window, places: Shape) -> list[tuple[Shape, tuple]]:
    """Each kernel position, and the slices of the padded input that it reads for outputs of spatial shape ``places``.

    Examples
    --------
    >>> taps(window((2,), stride=(2,)), (3,))
    [((0,), (Ellipsis, slice(0, 5, 2))), ((1,), (Ellipsis, slice(1, 6, 2)))]
    """
    return [(tap, (..., *[slice(t * d, t * d + s * (n - 1) + 1, s)
                          for t, d, s, n in zip(tap, w.dilate, w.stride, places)]))
            for tap in itertools.product(*map(range, w.kernel))]


def extent(size: Shape, w: Window) -> Shape:
    """Spatial output shape of a window over an input of spatial shape ``size``.

    Raises
    ------
    ShapeError
        When the window is larger than the padded input.

    Examples
    --------
    >>> extent((7, 8), window((3, 3), stride=(2, 2)))
    (3, 3)
    """
    for axis, (n, reach, pad) in enumerate(zip(size, w.reach, w.pad)):
        if n + 2 * pad < reach:
            raise ShapeError(f"kernel {w.kernel} with dilation {w.dilate} spans {reach} positions along spatial axis "
                             f"{axis}, more than the {n + 2 * pad} of the padded input {show(size)}")
    return tuple([(n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, w.pad, w.reach, w.stride)])


def input_extent(places: Shape, w: Window) -> Shape:
    """Spatial input shape that gives the output shape ``places``; unknown if the stride allows several.

    Examples
    --------
    >>> input_extent((5, 3), window((3, 3), stride=(1, 2)))
    (7, ?)
    """
    return tuple([n - 1 + r - 2 * p if s == 1 else ANY for n, p, r, s in zip(places, w.pad, w.reach, w.stride)])


# ------------------------------------------------------------------------------------------- layouts


def spatial(shape: Shape, kernel: Shape, layout: str | None) -> Shape:
    """The shape with channels on axis 1, after a check that the number of spatial axes fits the kernel and the layout.

    Raises
    ------
    ShapeError, AttrError
        When it does not fit.

    Examples
    --------
    >>> spatial((2, 7, 8, 3), (3, 3), "NHWC")
    (2, 3, 7, 8)
    """
    rank, places = len(kernel), len(shape) - 2
    if not 1 <= rank <= 3:
        raise AttrError(f"a kernel of {rank} numbers: expected one, two or three")
    if places != rank and 1 <= places <= 3:
        raise ShapeError(f"kernel={show(kernel)} has {rank} {'axis' if rank == 1 else 'axes'}, data {show(shape)} has "
                         f"{places} beside batch and channel: kernel={show((*kernel, *kernel[-1:] * 2)[:places])}")
    if places != rank:
        axes = ", ".join(("batch", "channel", *("depth", "height", "width")[3 - rank:]))
        raise ShapeError(f"data: expected {rank + 2} axes ({axes}) for a kernel of {rank}, got shape {show(shape)}")
    if layout is not None and len(layout) != rank + 2:
        raise AttrError(f"layout={layout!r} has {len(layout)} axes, the data has {rank + 2}")
    return channels_first(shape, layout)


def channels_first(value: ArrayOrShape, layout: str | None) -> ArrayOrShape:
    """An array or shape with its channels moved from their position in ``layout`` to axis 1."""
    if layout is None or layout[1] == "C":
        return value
    if isinstance(value, tuple):
        return (value[0], value[-1], *value[1:-1])
    return value.transpose(0, value.ndim - 1, *range(1, value.ndim - 1))


def channels_last(shape: Shape, layout: str | None) -> Shape:
    """A shape with its channels moved from axis 1 to their position in ``layout``."""
    return shape if layout is None or layout[1] == "C" else (shape[0], *shape[2:], shape[1])

"""Correlation of patches of one image with displaced patches of another (Dosovitskiy et al. 2015).

For each displacement the images, one of them shifted, are multiplied and summed over channels; then sums over patches
are computed by pooling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...core.registry import declare
from ...core.spec import Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..layers.sliding import taps, window
from ..outputs import declare_gradient, wide


class _Form(NamedTuple):
    """Geometry of a correlation of images of ``size``."""

    size: Shape
    kernel: int
    reach: int
    stride1: int
    stride2: int
    pad: int

    @property
    def padded(self) -> Shape:
        return tuple([n + 2 * self.pad for n in self.size])

    @property
    def places(self) -> Shape:
        """The number of compared positions along each axis."""
        border = self.reach + (self.kernel - 1) // 2
        return tuple([-(-(n - 2 * border) // self.stride1) for n in self.padded])

    @property
    def taps(self) -> list[tuple]:
        """Slices for each element of the patches, in the part of the image that patches cover."""
        return [read for _, read in taps(window((self.kernel,) * 2, (self.stride1,) * 2), self.places)]

    @property
    def shifts(self) -> range:
        """The displacements along each axis."""
        most = self.reach // self.stride2 * self.stride2
        return range(-most, most + 1, self.stride2)

    def inner(self) -> Shape:
        """The part of the padded images that patches of the first image cover."""
        return tuple([(n - 1) * self.stride1 + self.kernel for n in self.places])

    def parts(self) -> Iterator[tuple[int, tuple, tuple]]:
        """For each displacement its number, and the corresponding parts of both padded images."""
        # A patch is given by its upper left corner, which is ``reach`` from the border of the padded image.
        inner = tuple([slice(self.reach, self.reach + n) for n in self.inner()])
        for i, down in enumerate(self.shifts):
            for j, right in enumerate(self.shifts):
                shifted = tuple([slice(s.start + by, s.stop + by) for s, by in zip(inner, (down, right))])
                yield i * len(self.shifts) + j, (..., *inner), (..., *shifted)


def _form(data: Shape, kernel_size: int, max_displacement: int, stride1: int, stride2: int, pad_size: int) -> _Form:
    if len(data) != 4:
        raise ShapeError(f"data1: expected shape (batch, channel, height, width), got {show(data)}")
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise AttrError(f"kernel_size={kernel_size}: expected an odd number")
    if min(stride1, stride2) < 1 or min(max_displacement, pad_size) < 0:
        raise AttrError(f"stride1={stride1}, stride2={stride2}, max_displacement={max_displacement}, "
                        f"pad_size={pad_size}: expected strides of at least one and no negative numbers")
    form = _Form(data[2:], kernel_size, max_displacement, stride1, stride2, pad_size)
    if any(n < 1 for n in form.places):
        raise ShapeError(f"images of {show(data[2:])} padded by {pad_size} have no position whose patch of "
                         f"{kernel_size} can be displaced by {max_displacement}")
    return form


def _padded_images(xp: ArrayModule, x: Array, form: _Form) -> Array:
    """Images padded with zeros."""
    if not form.pad:
        return x
    frame = xp.zeros((*x.shape[:2], *form.padded), x.dtype)
    frame[:, :, form.pad:-form.pad, form.pad:-form.pad] = x
    return frame


def _unpadded_images(frame: Array, form: _Form) -> Array:
    """Images without their padding."""
    return frame[:, :, form.pad:frame.shape[2] - form.pad, form.pad:frame.shape[3] - form.pad]


@declare(name="Correlation")
def correlation(data1, data2, *, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int = 1,
                pad_size: int = 0, is_multiply: bool = True):
    """Means, over patches and channels, of the products of ``data1`` and displaced ``data2``, or of their absolute
    differences if not ``is_multiply``.

    Output channels are displacements up to ``max_displacement`` in steps of ``stride2``, row by row.
    """


@correlation.infer
def correlation_infer(data1, data2, *, kernel_size, max_displacement, stride1, stride2, pad_size):
    form = _form(data1, kernel_size, max_displacement, stride1, stride2, pad_size)
    if data1 != data2:
        raise ShapeError(f"data1 and data2: expected one shape, got {show(data1)} and {show(data2)}")
    return (data1[0], len(form.shifts) ** 2, *form.places)


@correlation.kernel()  # no body: one pass for each displacement, all into one array
def correlation_xp(xp, data1, data2, *, kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply):
    form = _form(data1.shape, kernel_size, max_displacement, stride1, stride2, pad_size)
    a, b = [_padded_images(xp, x, form) for x in (wide(data1), wide(data2))]
    y, reads = xp.zeros((a.shape[0], len(form.shifts) ** 2, *form.places), a.dtype), form.taps
    for shift, inner, shifted in form.parts():
        alike = (a[inner] * b[shifted] if is_multiply else xp.abs(a[inner] - b[shifted])).sum(1)
        for read in reads:
            y[:, shift] += alike[read]
    y /= kernel_size * kernel_size * a.shape[1]
    return y


@declare(name="_backward_Correlation", outputs=("data1", "data2"))
def correlation_data(g, data1, data2, *, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1,
                     stride2: int = 1, pad_size: int = 0, is_multiply: bool = True):
    """The gradients of both images, which share the patches' part."""


declare_gradient(correlation, correlation_data)


@correlation_data.kernel()  # no body: one pass for each displacement computes both gradients
def correlation_data_xp(xp, g, data1, data2, *, kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply):
    form = _form(data1.shape, kernel_size, max_displacement, stride1, stride2, pad_size)
    g, *data = map(wide, (g, data1, data2))
    a, b = [_padded_images(xp, x, form) for x in data]
    of_a, of_b, reads = xp.zeros_like(a), xp.zeros_like(b), form.taps
    for shift, inner, shifted in form.parts():
        spread = xp.zeros((a.shape[0], *form.inner()), g.dtype)
        for read in reads:
            spread[read] += g[:, shift]
        spread = spread[:, None] / (kernel_size * kernel_size * a.shape[1])
        if is_multiply:
            of_a[inner] += spread * b[shifted]
            of_b[shifted] += spread * a[inner]
        else:
            # for equal values the first counts as the greater one
            signed = xp.where(a[inner] >= b[shifted], spread, -spread)
            of_a[inner] += signed
            of_b[shifted] -= signed
    return _unpadded_images(of_a, form), _unpadded_images(of_b, form)

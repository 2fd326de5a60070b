"""Padding of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...core.attrs import Number
from ...core.registry import declare
from ...core.spec import Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import adjoint_pair
from .shape import constant, copy_view

Mode = Literal["constant", "edge", "reflect"]
Cut = tuple[slice, ...]


def _widths(pad_width: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """The widths before and after, for each axis."""
    if len(pad_width) != 2 * rank or any(width < 0 for width in pad_width):
        raise AttrError(f"pad_width={tuple(pad_width)}: expected {2 * rank} numbers of at least 0, "
                        f"before and after for each of {rank} axes")
    return list(zip(pad_width[::2], pad_width[1::2]))


def _core(widths: list[tuple[int, int]], shape: Shape) -> Cut:
    """Slices of the data inside the padded shape."""
    return tuple([slice(before, dim - after) for (before, after), dim in zip(widths, shape)])


@declare(name="Pad", aliases=("pad",), cheap=True)
def pad(data, *, mode: Mode, pad_width: tuple[int, ...], constant_value: Number = 0.0):
    """``data`` padded with a constant, with its outermost elements, or with its reflection."""


@pad.infer
def pad_infer(data, *, mode, pad_width):
    widths = _widths(pad_width, len(data))
    if mode != "constant":
        for axis, (dim, width) in enumerate(zip(data, widths)):
            least = max(width) + 1 if mode == "reflect" else 1
            if max(width) and dim < least:
                raise ShapeError(f"axis {axis} has length {dim}: {mode!r} cannot add {max(width)} elements")
    return tuple([dim + sum(width) for dim, width in zip(data, widths)])


@pad.kernel()  # no body: bodies use it to pad
def pad_xp(xp, data, *, mode, pad_width, constant_value, out=None):
    widths = _widths(pad_width, data.ndim)
    if mode != "constant":
        return copy_view(xp, xp.pad(data, widths, mode=mode), out)
    if out is None:
        out = xp.empty(pad_infer(data.shape, mode=mode, pad_width=pad_width), dtype=data.dtype)
    out[...] = constant(xp, constant_value, data.dtype)
    out[_core(widths, out.shape)] = data
    return out


@declare(name="_backward_Pad")
def pad_fold(g, *, mode: Mode, pad_width: tuple[int, ...]):
    """The gradient of ``Pad``: the sum of the elements of ``g`` that are copies of each element."""


@pad_fold.infer
def pad_fold_infer(g, *, pad_width):
    shape = tuple([dim - sum(width) for dim, width in zip(g, _widths(pad_width, len(g)))])
    if any(dim < 0 for dim in shape):
        raise ShapeError(f"pad_width={pad_width} removes more elements than {show(g)} has")
    return shape


@pad_fold.view
def pad_fold_view(array, *, mode, pad_width):
    return array[_core(_widths(pad_width, array.ndim), array.shape)] if mode == "constant" else None


@pad_fold.kernel()  # no body: edges are added in place
def pad_fold_xp(xp, g, *, mode, pad_width, out=None):
    widths = _widths(pad_width, g.ndim)
    if mode != "constant":
        for axis, (before, after) in enumerate(widths):
            if before or after:
                g = _fold(xp, g, axis, before, after, mode)
        return copy_view(xp, g, out)
    return copy_view(xp, g[_core(widths, g.shape)], out)


def _fold(xp: ArrayModule, g: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """``g`` with its first and last elements along ``axis`` added to the elements that they are copies of."""
    g = xp.moveaxis(g, axis, 0)
    stop = g.shape[0] - after
    core = g[before:stop].copy()
    head, tail = g[:before], g[stop:]
    if mode == "edge":
        core[0] += xp.sum(head, axis=0)
        core[-1] += xp.sum(tail, axis=0)
    else:
        last = core.shape[0] - 1
        core[1:before + 1] += head[::-1]
        core[last - after:last] += tail[::-1]
    return xp.moveaxis(core, 0, axis)


adjoint_pair(pad, pad_fold, like=False)

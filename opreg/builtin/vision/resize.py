"""Resizing of images: averages over a grid of cells, and bilinear interpolation.

Both weight rows and columns separately, so an image is multiplied by a small matrix on each side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

import numpy as np

from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Attrs, Rule
from ...core.spec import ANY, Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import adjoint_pair, gradient_by, like_inputs, wide

__all__: list[str] = []


def _image(data: Shape) -> None:
    if len(data) != 4:
        raise ShapeError(f"data: expected four axes (batch, channel, height, width), got shape {show(data)}")


def _weighed(xp: ArrayModule, data: Array, rows: Array, columns: Array, *, out: Array | None) -> Array:
    """``rows @ image @ columns.T`` of every image."""
    x = wide(data)
    n, c, height, width = x.shape
    x = xp.matmul(x.reshape(n * c * height, width), columns.T).reshape(n, c, height, columns.shape[0])
    if out is None or out.dtype == x.dtype:
        return xp.matmul(rows, x, out=out)
    out[...] = xp.matmul(rows, x)
    return out


def _weighs(op: Op, shape: Callable[..., Shape], matrix: Callable[..., Array], turned: bool = False) -> None:
    """Declare that an operator multiplies images by matrices on both sides.

    ``shape`` returns the shape of the result, and ``matrix(xp, n, m, dtype, **attrs)`` maps ``n`` elements to ``m``;
    with ``turned``, for the gradient, ``m`` to ``n``. A plan makes the matrices once.
    """
    result, rule = Rule(shape), Rule(matrix)

    def matrices(xp: ArrayModule, image: Array, new: Shape, attrs: Attrs) -> list[Array]:
        dtype = wide(image[:0]).dtype
        sizes = zip(image.shape[2:], new[2:])
        return [rule(attrs, xp, m, n, dtype).T if turned else rule(attrs, xp, n, m, dtype) for n, m in sizes]

    @op.kernel()  # no body: the matrices are constants, which bodies do not hold
    def weighing_xp(xp, data, *like, out=None, **attrs):
        new = result(attrs, data.shape, *[array.shape for array in like])
        return _weighed(xp, data, *matrices(xp, data, new, attrs), out=out)

    @op.kernel("specialised", bound=True, rank=Rank.OPERATOR)
    def weighing_specialised(call: Call) -> Callable[[], object]:
        made = matrices(call.xp, call.ins[0], call.outs[0].shape, call.attrs)
        return functools.partial(_weighed, call.xp, call.ins[0], *made, out=call.outs[0])


def _like(g: Shape, data: Shape) -> Shape:
    """The shape of the gradient of resized images."""
    return data


# ---------------------------------------------------------------------------------- AdaptiveAvgPooling2D


@declare(name="_contrib_AdaptiveAvgPooling2D")
def adaptive_pooling(data, *, output_size: int | tuple[int, ...] = ()):
    """Averages over the cells of a grid of ``output_size``, (height, width) or one number for both.

    Cell ``i`` of ``m`` covers the elements from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``; cells may overlap.
    """


def _grid(output_size: int | Shape) -> Shape:
    sizes = (output_size,) if isinstance(output_size, int) else output_size or (1,)
    if len(sizes) > 2 or min(sizes) < 1:
        raise AttrError(f"output_size={output_size}: expected one or two positive numbers")
    return (*sizes, *sizes)[:2]


def _pooled(data: Shape, *, output_size: int | Shape) -> Shape:
    _image(data)
    return (*data[:2], *_grid(output_size))


def _cells(xp: ArrayModule, n: int, m: int, dtype: np.dtype) -> Array:
    """The matrix that averages ``n`` elements over ``m`` cells."""
    cell, place = xp.arange(m).reshape(m, 1), xp.arange(n)
    first, last = cell * n // m, -(-(cell + 1) * n // m)
    return ((place >= first) & (place < last)).astype(dtype) / (last - first).astype(dtype)


@declare(name="_backward_contrib_AdaptiveAvgPooling2D", types="T,U->T", unread=(1,))
def adaptive_pooling_data(g, data, *, output_size: int | tuple[int, ...] = ()):
    """The gradient of averages over cells."""


adaptive_pooling.infer(_pooled)
_weighs(adaptive_pooling, _pooled, _cells)
_weighs(adaptive_pooling_data, _like, _cells, turned=True)
adjoint_pair(adaptive_pooling, adaptive_pooling_data)


# -------------------------------------------------------------------------------------- BilinearResize2D

Mode = Literal["size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]


@declare(name="_contrib_BilinearResize2D",
         arguments=lambda *, mode: ("data", "like") if mode == "like" else ("data",))
def bilinear_resize(data, like, *, height: int = 1, width: int = 1, scale_height: float | None = None,
                    scale_width: float | None = None, mode: Mode = "size", align_corners: bool = True):
    """Images resized with bilinear interpolation.

    ``mode`` tells the size: "size" is ``height`` and ``width``, or the scales if they are given; "odd_scale" uses the
    scales, odd sizes to odd ones; "like" the size of a second input; the others the nearest even or odd size.
    ``align_corners`` maps the corner elements of input and output to each other; without it pixels are areas.
    """


def _resized(n: int, size: int, scale: float | None, mode: str) -> int:
    """The output size along an axis of length ``n``."""
    if n is ANY and (mode != "size" or scale is not None):
        return ANY
    if mode.startswith("to_"):
        wrong = n % 2 == (1 if "even" in mode else 0)
        return n + wrong * (1 if mode.endswith("up") else -1)
    if scale is None:
        if mode == "odd_scale":
            raise AttrError("mode 'odd_scale' needs scale_height and scale_width")
        return size
    odd = mode == "odd_scale" and n % 2 == 1
    # In single precision, as the attribute is in MXNet: 0.29 of 100 is 29.
    return int(np.float32(n - odd) * np.float32(scale)) + odd


def _resized_shape(data: Shape, like: Shape | None = None, *, height: int, width: int, scale_height: float | None,
                   scale_width: float | None, mode: Mode) -> Shape:
    """The shape of the resized images."""
    _image(data)
    if like is not None:
        _image(like)
        return (*data[:2], *like[2:])
    sizes = _resized(data[2], height, scale_height, mode), _resized(data[3], width, scale_width, mode)
    if any(size < 1 for size in sizes):
        raise AttrError(f"the size to resize to is {show(sizes)}: expected positive numbers")
    return (*data[:2], *sizes)


def between(xp: ArrayModule, n: int, m: int, dtype: np.dtype, *, align_corners: bool) -> Array:
    """The matrix that interpolates ``m`` elements from ``n``."""
    place = xp.arange(m).astype(xp.float64)
    if align_corners:
        place = place * ((n - 1) / max(1, m - 1))
    elif m > 1:  # a single pixel is the first one, with or without corners
        place = xp.maximum((place + 0.5) * (n / m) - 0.5, 0.0)
    low = xp.minimum(xp.floor(place).astype(xp.int64), n - 1)
    part = (place - low).astype(dtype)
    rows = xp.arange(m)
    matrix = xp.zeros((m, n), dtype)
    matrix[rows, low] = 1 - part
    matrix[rows, xp.minimum(low + 1, n - 1)] += part
    return matrix


@declare(name="_backward_contrib_BilinearResize2D", types="T,U->T", unread=(1,))
def bilinear_resize_data(g, data, *, align_corners: bool = True):
    """The gradient of resized images."""


bilinear_resize.infer(_resized_shape)
bilinear_resize_data.infer(like_inputs(1))
gradient_by(bilinear_resize, bilinear_resize_data)
_weighs(bilinear_resize, _resized_shape, between)
_weighs(bilinear_resize_data, _like, between, turned=True)


@bilinear_resize_data.grad
def bilinear_resize_data_grad(h, ins, outs, *, align_corners):
    return ops._contrib_BilinearResize2D(h, ins[0], mode="like", align_corners=align_corners), None

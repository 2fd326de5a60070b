"""Rearrangement of images: blocks to channels and back, windows to columns and back, upsampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from ...core.attrs import Count, Few, Positive
from ...core.registry import declare, ops
from ...core.spec import Shape, show, unify
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ..layers.sliding import Window, extent, taps, window
from ..outputs import adjoint_pair, linear
from .shape import copy_view, stored_in

# ------------------------------------------------------------------------------------------------- blocks


def _image(data: Shape, block_size: int) -> None:
    if len(data) != 4:
        raise ShapeError(f"expected rank 4 (batch, channels, height, width), got shape {show(data)}")
    if any(n < 1 for n in data[1:]):
        raise ShapeError(f"expected channels, height and width of at least 1, got empty images, {show(data)}")
    if block_size < 1:
        raise AttrError(f"block_size={block_size}: expected an integer of at least 1")


@composed(cheap=True)
def depth_to_space(data, *, block_size: int):
    """Moves channels to blocks of height and width: the inverse of ``space_to_depth``."""
    _image(data.shape, block_size)
    batch, channels, height, width = data.shape
    if channels % block_size**2 != 0:
        raise ShapeError(f"{channels} channels do not fill blocks of {block_size} x {block_size}")
    fewer = channels // block_size**2
    blocks = ops._np_reshape(data, newshape=(batch, block_size, block_size, fewer, height, width))
    turned = ops.transpose(blocks, axes=(0, 3, 4, 1, 5, 2))
    return ops._np_reshape(turned, newshape=(batch, fewer, height * block_size, width * block_size))


@composed(cheap=True)
def space_to_depth(data, *, block_size: int):
    """Moves blocks of height and width to channels, ordered by block row, block column, channel."""
    _image(data.shape, block_size)
    batch, channels, height, width = data.shape
    if height % block_size != 0 or width % block_size != 0:
        raise ShapeError(f"height {height} and width {width} cannot be divided into blocks of {block_size}")
    rows, columns = height // block_size, width // block_size
    blocks = ops._np_reshape(data, newshape=(batch, channels, rows, block_size, columns, block_size))
    turned = ops.transpose(blocks, axes=(0, 3, 5, 1, 2, 4))
    return ops._np_reshape(turned, newshape=(batch, channels * block_size**2, rows, columns))


# ------------------------------------------------------------------------------------------------ columns

Dims = tuple[int, ...]


def _window(space: Shape, kernel: Dims, stride: Dims, dilate: Dims, pad: Dims) -> tuple[Window, Shape]:
    """The window over an image, and the number of its positions along each axis."""
    win = window(kernel, stride, dilate, pad)
    if len(space) != len(kernel):
        raise AttrError(f"kernel={kernel}: expected {len(space)} numbers, one for each axis of the image")
    return win, extent(space, win)


@declare(cheap=True)
def im2col(data, *, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """The windows of an image as columns: (channels * kernel positions, window positions)."""


@im2col.infer
def im2col_infer(data, *, kernel, stride, dilate, pad):
    _, counts = _window(data[2:], kernel, stride, dilate, pad)
    return (data[0], data[1] * math.prod(kernel), math.prod(counts))


@im2col.kernel()  # no body: windows are strided views
def im2col_xp(xp, data, *, kernel, stride, dilate, pad, out=None):
    win, counts = _window(data.shape[2:], kernel, stride, dilate, pad)
    if any(pad):
        data = xp.pad(data, [(0, 0), (0, 0)] + [(p, p) for p in pad])
    columns = xp.empty((*data.shape[:2], *kernel, *counts), dtype=data.dtype)
    for tap, read in taps(win, counts):
        columns[(slice(None), slice(None), *tap)] = data[read]
    columns = columns.reshape(data.shape[0], data.shape[1] * math.prod(kernel), math.prod(counts))
    return columns if out is None else copy_view(xp, columns, out)


@declare(name="_backward_im2col", types="T,U->T", unread=(1,), cheap=True)
def im2col_sum(g, data, *, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """Columns added at their positions in an image of the shape of ``data``."""


@declare(cheap=True)
def col2im(data, *, output_size: Dims, kernel: Dims, stride: Dims = (), dilate: Dims = (), pad: Dims = ()):
    """The reverse of ``im2col``: columns are added at their positions in an image of ``output_size``."""


@col2im.infer
def col2im_infer(data, *, output_size, kernel, stride, dilate, pad):
    _, counts = _window(output_size, kernel, stride, dilate, pad)
    size, places = math.prod(kernel), math.prod(counts)
    if len(data) != 3 or data[1] % size != 0 or data[2] != places:
        raise ShapeError(f"expected shape (batch, channels x {size}, {places}), got {show(data)}")
    return (data[0], data[1] // size, *output_size)


@im2col_sum.kernel()  # no body: windows are strided views, added in place
@col2im.kernel()
def columns_sum_xp(xp, data, *like, kernel, stride, dilate, pad, output_size=()):
    space = like[0].shape[2:] if like else output_size
    win, counts = _window(space, kernel, stride, dilate, pad)
    columns = data.reshape((data.shape[0], data.shape[1] // math.prod(kernel), *kernel, *counts))
    image = xp.zeros((*columns.shape[:2], *[dim + 2 * p for dim, p in zip(space, win.pad)]), dtype=data.dtype)
    for tap, read in taps(win, counts):
        image[read] += columns[(slice(None), slice(None), *tap)]
    return image[(..., *[slice(p, p + dim) for dim, p in zip(space, win.pad)])]


adjoint_pair(im2col, im2col_sum)


linear(col2im, "im2col")


# --------------------------------------------------------------------------------------------- UpSampling


def _up_names(*, sample_type: str, num_args: int) -> tuple[str, ...]:
    return ("data", "weight") if sample_type == "bilinear" else tuple([f"arg{i}" for i in range(num_args)])


@composed(name="UpSampling", arguments=_up_names, cheap=True)
def upsampling(*data, scale: Positive, num_filter: Count = 0, sample_type: Literal["nearest", "bilinear"],
               multi_input_mode: Literal["concat", "sum"] = "concat", num_args: Few = 1,
               workspace: int = 512):
    """Images enlarged ``scale`` times: pixels are repeated (``nearest``), or ``weight`` is applied as a transposed
    convolution (``bilinear``).

    Further images are enlarged to the same size, and all of them are concatenated along the channels or added.
    """
    if sample_type == "bilinear":
        return ops._upsampling_bilinear(*data, scale=scale)
    shapes = [image.shape for image in data]
    parts = [ops.repeat(ops.repeat(image, repeats=across, axis=3), repeats=up, axis=2)
             for image, (up, across) in zip(data, _scales(shapes, scale))]
    if len(parts) == 1:
        return parts[0]
    if multi_input_mode == "sum":
        return ops.add_n(*parts, num_args=len(parts))
    return ops.Concat(*parts, num_args=len(parts), dim=1)


def _scales(images: Sequence[Shape], scale: int) -> list[tuple[int, int]]:
    """The factor by which each image is enlarged in height and width."""
    if len(images[0]) != 4:
        raise ShapeError(f"expected rank 4 (batch, channels, height, width), got shape {show(images[0])}")
    height, width = images[0][2] * scale, images[0][3] * scale
    for shape in images:
        if (len(shape) != 4 or any(dim < 1 for dim in shape[2:])
                or height % shape[2] != 0 or width % shape[3] != 0):
            raise ShapeError(f"an image of shape {show(shape)} cannot be enlarged to {height} x {width}")
    return [(scale, scale), *[(height // shape[2], width // shape[3]) for shape in images[1:]]]


def _spread(scale: int) -> tuple[int, int]:
    """Kernel and padding of the transposed convolution that interpolates linearly."""
    return 2 * scale - scale % 2, scale // 2


@upsampling.fill
def upsampling_fill(ins, outs, *, scale, sample_type):
    if sample_type == "bilinear" and ins[0] is not None:
        kernel, _ = _spread(scale)
        return [ins[0], (ins[0][1], 1, kernel, kernel)]
    return ins


@declare(name="_upsampling_bilinear", cheap=True)
def spreading(data, weight, *, scale: Positive):
    """Images enlarged ``scale`` times by a transposed convolution, with a separate kernel for each channel."""


@spreading.infer
def spreading_infer(data, weight, *, scale):
    kernel, _ = _spread(scale)
    unify(weight, (data[1], 1, kernel, kernel))
    return (*data[:2], data[2] * scale, data[3] * scale)


@spreading.kernel()  # no body: a transposed convolution per channel takes twice as long for small images
def spreading_xp(xp, image, weight, *, scale, out=None):
    n, c, h, w = image.shape
    kernel, edge = _spread(scale)
    result = xp.zeros((n, c, (h - 1) * scale + kernel, (w - 1) * scale + kernel), dtype=image.dtype)
    for (i, j), cut in taps(window((kernel, kernel), (scale, scale)), (h, w)):
        result[cut] += image * weight[:, 0, i, j, None, None]
    return stored_in(result[:, :, edge:edge + h * scale, edge:edge + w * scale], out)


@spreading.grad
def spreading_grad(g, ins, outs, *, scale):  # a transposed convolution, whose gradient is a convolution
    (image, weight), (kernel, edge) = ins, _spread(scale)
    window = {"kernel": (kernel, kernel), "stride": (scale, scale), "pad": (edge, edge), "no_bias": True,
              "num_filter": weight.shape[0], "num_group": weight.shape[0]}
    return ops.Convolution(g, weight, **window), ops._backward_Convolution_weight(image, g, weight, **window)

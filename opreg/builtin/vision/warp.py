"""Warping of images: sampling grids, bilinear sampling, and both in one operator."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...core.registry import declare, ops
from ...core.spec import Shape, is_narrow, show
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import formed
from ..outputs import gradient_by, wide
from .bilinear import Corner, corners, images, read, rows, slopes, spread

__all__: list[str] = []


# ----------------------------------------------------------------------------------------- GridGenerator


@declare(name="GridGenerator")
def grid_generator(data, *, transform_type: Literal["affine", "warp"], target_shape: tuple[int, ...] = (0, 0)):
    """A sampling grid: coordinates x and y from -1 to 1 for each position of an image.

    "affine" multiplies the coordinates of ``target_shape`` by a matrix of two rows and three columns; "warp" adds a
    flow, in pixels, to each position.
    """


def _target(target_shape: Shape) -> Shape:
    if len(target_shape) != 2 or min(target_shape) < 1:
        raise AttrError(f"target_shape={target_shape}: expected two positive numbers, height and width")
    return target_shape


@grid_generator.infer
def grid_generator_infer(data, *, transform_type, target_shape):
    if transform_type == "affine":
        if len(data) != 2 or data[1] != 6:
            raise ShapeError(f"data: expected affine matrices of shape (batch, 6), got {show(data)}")
        return (data[0], 2, *_target(target_shape))
    if len(data) != 4 or data[1] != 2:
        raise ShapeError(f"data: expected a flow of shape (batch, 2, height, width), got {show(data)}")
    return data


def _axes(xp: ArrayModule, size: Shape, dtype: np.dtype) -> tuple[Array, Array]:
    """x and y of each pixel, from -1 to 1, to be broadcast against each other."""
    y, x = [xp.arange(n).astype(dtype) * (2 / max(1, n - 1)) - 1 for n in size]
    return x, y[:, None]


def _base(xp: ArrayModule, size: Shape, dtype: np.dtype) -> Array:
    """Rows of x, y and ones for each pixel."""
    base = xp.ones((3, *size), dtype)
    base[0], base[1] = _axes(xp, size, dtype)
    return base.reshape(3, size[0] * size[1])


def _steps(xp: ArrayModule, size: Shape, dtype: np.dtype) -> Array:
    """The size of one pixel in x and y of the grid."""
    return xp.asarray([2 / max(1, size[1] - 1), 2 / max(1, size[0] - 1)], dtype).reshape(2, 1, 1)


@grid_generator.kernel()  # no body: pixel coordinates are constants, which bodies do not hold
def grid_generator_xp(xp, data, *, transform_type, target_shape):
    data = wide(data)
    if transform_type == "affine":
        grid = xp.matmul(data.reshape(-1, 2, 3), _base(xp, target_shape, data.dtype))
        return grid.reshape(data.shape[0], 2, *target_shape)
    grid = data * _steps(xp, data.shape[2:], data.dtype)
    for axis, places in enumerate(_axes(xp, data.shape[2:], data.dtype)):
        grid[:, axis] += places
    return grid


@declare(name="_backward_GridGenerator", types="T,U->T", unread=(1,))
def grid_generator_data(g, data, *, transform_type: Literal["affine", "warp"],
                        target_shape: tuple[int, ...] = (0, 0)):
    """The gradient of a sampling grid's matrices or flow."""


gradient_by(grid_generator, grid_generator_data)


@grid_generator_data.kernel()  # no body: as for grid_generator
def grid_generator_data_xp(xp, g, data, *, transform_type):
    g = wide(g)
    n, _, height, width = g.shape
    if transform_type == "affine":
        return xp.matmul(g.reshape(n, 2, height * width), _base(xp, (height, width), g.dtype).T).reshape(n, 6)
    return g * _steps(xp, (height, width), g.dtype)


@grid_generator_data.grad
def grid_generator_data_grad(h, ins, outs, **attrs):
    # The linear part of an affine map is its value at h minus its value at zero.
    return ops.GridGenerator(h, **attrs) - ops.GridGenerator(ops.zeros_like(h), **attrs), None


# --------------------------------------------------------------------------------------- BilinearSampler


@declare(name="BilinearSampler")
def bilinear_sampler(data, grid, *, cudnn_off: bool | None = None):
    """Images sampled at the coordinates in ``grid``, x and y from -1 to 1; zero outside of the image."""


formed(bilinear_sampler, "(batch, channel, high, across) (batch, 2, height, width) -> (batch, channel, height, width)")


def _corners(xp: ArrayModule, grid: Array, size: tuple[int, int]) -> list[Corner]:
    """The pixels around each point of a grid over images of ``size``."""
    n, _, height, width = grid.shape
    x, y = [((grid[:, axis] + 1) * ((size[1 - axis] - 1) / 2)).reshape(-1) for axis in (0, 1)]
    return corners(xp, y, x, size, xp.repeat(xp.arange(n), height * width))


@bilinear_sampler.kernel()  # no body: the gradient of a body would add each corner separately
def bilinear_sampler_xp(xp, data, grid):
    data, grid = wide(data), wide(grid)
    places = _corners(xp, grid, data.shape[2:])
    return images(read(xp, rows(data), places), (*data.shape[:2], *grid.shape[2:]))


@declare(name="_backward_BilinearSampler_data", types="T,T,U->T", unread=(2,))
def bilinear_sampler_data(g, grid, data):
    """The gradient of the sampled images."""




@bilinear_sampler_data.kernel()  # no body: one sum for all four corners
def bilinear_sampler_data_xp(xp, g, grid, data):
    g, grid = wide(g), wide(grid)
    n, _, height, width = data.shape
    places = _corners(xp, grid, (height, width))
    return images(spread(xp, n * height * width, rows(g), places), data.shape)


@bilinear_sampler_data.grad
def bilinear_sampler_data_grad(h, ins, outs, *, needs):
    g, grid, _ = ins
    return (ops.BilinearSampler(h, grid) if needs[0] else None,
            ops._backward_BilinearSampler_grid(g, h, grid) if needs[1] else None, None)


@declare(name="_backward_BilinearSampler_grid", outputs=("grid",))
def bilinear_sampler_grid(g, data, grid):
    """The gradient of the sampling coordinates."""


gradient_by(bilinear_sampler, bilinear_sampler_data, bilinear_sampler_grid)


@bilinear_sampler_grid.kernel()  # no body: both derivatives share one read of the four corners
def bilinear_sampler_grid_xp(xp, g, data, grid):
    g, data, grid = wide(g), wide(data), wide(grid)
    size = data.shape[2:]
    n, _, height, width = grid.shape
    down, right = slopes(xp, rows(data), rows(g), _corners(xp, grid, size))
    return xp.stack([(slope * ((length - 1) / 2)).reshape(n, height, width)
                     for slope, length in ((right, size[1]), (down, size[0]))], axis=1)


# ------------------------------------------------------------------------------------ SpatialTransformer


@composed(name="SpatialTransformer")
def spatial_transformer(data, loc, *, target_shape: tuple[int, ...] = (0, 0), transform_type: Literal["affine"],
                        sampler_type: Literal["bilinear"], cudnn_off: bool | None = None):
    """Images transformed by affine maps of six elements each, which map output coordinates to input coordinates."""
    dtype = np.dtype(data.dtype)
    if is_narrow(dtype):  # a coordinate may be half a pixel off in large images
        data, loc = ops.Cast(data, dtype="float32"), ops.Cast(loc, dtype="float32")
    seen = ops.BilinearSampler(data, ops.GridGenerator(loc, transform_type="affine", target_shape=target_shape))
    return ops.Cast(seen, dtype=dtype) if is_narrow(dtype) else seen


formed(spatial_transformer, "(batch, channel, height, width) (batch, 6)")


def _places(grid, transform_type):
    """The arithmetic of a grid: each coordinate is a product of three elements; a flow is added."""
    return 6 * math.prod(grid) if transform_type == "affine" else 0


@grid_generator.flops
def grid_generator_flops(ins, outs, *, transform_type):
    return _places(outs[0], transform_type)


@grid_generator_data.flops
def grid_generator_data_flops(ins, outs, *, transform_type):
    return _places(ins[0], transform_type)


@spatial_transformer.flops
def spatial_transformer_flops(ins, outs, *, transform_type):
    """The arithmetic of the sampling grid."""
    return _places((outs[0][0], 2, *outs[0][2:]), transform_type)

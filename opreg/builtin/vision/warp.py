"""Warping of images: sampling grids, bilinear sampling, and both in one operator."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...core.registry import ops
from ...core.spec import Shape, show
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ...typing import Array, DTypeLike
from ..forms import declare_form
from ..outputs import declare_gradient, in_dtype_of, like_inputs, widen

# ----------------------------------------------------------------------------------------- GridGenerator


@composed(name="GridGenerator")
def grid_generator(data, *, transform_type: Literal["affine", "warp"], target_shape: tuple[int, ...] = (0, 0)):
    """A sampling grid: coordinates x and y from -1 to 1 for each position of an image.

    "affine" multiplies the coordinates of an image of ``target_shape`` by matrices of two rows and three columns;
    "warp" adds a flow in pixels to each position.
    """
    x, shape = widen(data), data.shape
    if transform_type == "affine":
        if len(shape) != 2 or shape[1] != 6:
            raise ShapeError(f"data: expected affine matrices of shape (batch, 6), got {show(shape)}")
        if len(target_shape) != 2 or min(target_shape) < 1:
            raise AttrError(f"target_shape={target_shape}: expected two positive numbers, height and width")
        grid = ops.dot(ops._np_reshape(x, newshape=(2 * shape[0], 3)), _homogeneous_grid(target_shape, x.dtype))
        return in_dtype_of(ops._np_reshape(grid, newshape=(shape[0], 2, *target_shape)), data)
    if len(shape) != 4 or shape[1] != 2:
        raise ShapeError(f"data: expected a flow of shape (batch, 2, height, width), got {show(shape)}")
    steps, places = [constant(lambda *size, make=make: make(size, x.dtype), *shape[2:])
                     for make in (_steps, _pixel_coordinates)]
    return in_dtype_of(ops.broadcast_add(ops.broadcast_mul(x, steps), places), data)


def _pixel_coordinates(size: Shape, dtype: DTypeLike) -> Array:
    """x and y of each pixel, from -1 to 1."""
    y, x = [np.arange(n).astype(dtype) * (2 / max(1, n - 1)) - 1 for n in size]
    return np.stack(np.broadcast_arrays(x, y[:, None]))


def _homogeneous_grid(size: Shape, dtype: DTypeLike) -> Array:
    """Rows of x, y and ones for each pixel."""
    return np.concatenate((_pixel_coordinates(size, dtype), np.ones((1, *size), dtype))).reshape(3, size[0] * size[1])


def _steps(size: Shape, dtype: DTypeLike) -> Array:
    """The size of one pixel in x and y of the grid."""
    return np.asarray([2 / max(1, size[1] - 1), 2 / max(1, size[0] - 1)], dtype).reshape(2, 1, 1)


@composed(name="_backward_GridGenerator", types="T,U->T", unread=(1,))
def grid_generator_data(g, data, *, transform_type: Literal["affine", "warp"],
                        target_shape: tuple[int, ...] = (0, 0)):
    """The gradient of a sampling grid's matrices or flow."""
    x, (n, _, *size) = widen(g), g.shape
    if transform_type == "affine":
        grid = ops.dot(ops._np_reshape(x, newshape=(2 * n, math.prod(size))), _homogeneous_grid(size, x.dtype),
                       transpose_b=True)
        return in_dtype_of(ops._np_reshape(grid, newshape=(n, 6)), g)
    return in_dtype_of(ops.broadcast_mul(x, _steps(size, x.dtype)), g)


grid_generator_data.infer(like_inputs(1))
declare_gradient(grid_generator, grid_generator_data)  # derived from the body it takes 1.15 times as long


# --------------------------------------------------------------------------------------- BilinearSampler


@composed(name="BilinearSampler")
def bilinear_sampler(data, grid, *, cudnn_off: bool | None = None):
    """Images sampled bilinearly at the coordinates in ``grid``, x and y from -1 to 1; zero outside of the image."""
    (_, channels, high, across), (batch, _, height, width) = data.shape, grid.shape
    x, y = ops.SliceChannel(widen(grid) + 1, num_outputs=2, axis=1, squeeze_axis=True)
    x, y = [ops._np_reshape(side * ((size - 1) / 2), newshape=(batch * height * width,))
            for side, size in ((x, across), (y, high))]
    pixels = ops.transpose(widen(data), axes=(0, 2, 3, 1))
    rows = ops._bilinear(pixels, y, x, np.repeat(np.arange(batch), height * width))
    rows = ops._np_reshape(rows, newshape=(batch, height, width, channels))
    return in_dtype_of(ops.transpose(rows, axes=(0, 3, 1, 2)), data)


declare_form(bilinear_sampler,
             "(batch, channel, high, across) (batch, 2, height, width) -> (batch, channel, height, width)")


# ------------------------------------------------------------------------------------ SpatialTransformer


@composed(name="SpatialTransformer")
def spatial_transformer(data, loc, *, target_shape: tuple[int, ...] = (0, 0), transform_type: Literal["affine"],
                        sampler_type: Literal["bilinear"], cudnn_off: bool | None = None):
    """Images transformed by affine maps: the six elements ``loc`` of each map output coordinates to input
    coordinates."""
    grid = ops.GridGenerator(widen(loc), transform_type="affine", target_shape=target_shape)
    return in_dtype_of(ops.BilinearSampler(widen(data), grid), data)  # float16 would move pixels of large images


declare_form(spatial_transformer, "(batch, channel, height, width) (batch, 6)")


def _grid_work(grid, transform_type):
    """The number of additions and multiplications of a grid: three of each for a coordinate of an affine grid; none are
    counted for a flow."""
    return 6 * math.prod(grid) if transform_type == "affine" else 0


@grid_generator.flops
def grid_generator_flops(ins, outs, *, transform_type):
    return _grid_work(outs[0], transform_type)


@grid_generator_data.flops
def grid_generator_data_flops(ins, outs, *, transform_type):
    return _grid_work(ins[0], transform_type)


@spatial_transformer.flops
def spatial_transformer_flops(ins, outs, *, transform_type):
    """The arithmetic of the sampling grid."""
    return _grid_work((outs[0][0], 2, *outs[0][2:]), transform_type)

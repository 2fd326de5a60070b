"""Regions of interest pooled to a fixed size: ROIAlign, PSROIPooling and ROIPooling.

A region is a row (image, left, top, right, bottom). Averages over its cells weight the rows and columns of the image
separately, so they are two matrix products, with weights computed from the region's coordinates. Maxima are read from
tables of maxima over blocks whose sides are powers of two: four blocks cover any cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.attrs import Count, Limit, Positive
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.rules import Rule
from ...core.spec import Shape, limits
from ...core.threads import chunks
from ...custom.composed import composed
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..lookup.indexing import declare_scatter
from ..outputs import adjoint_pair, declare_gradient, like_inputs, wide
from .bilinear import images

__all__ = ["Cells", "round_half_away", "image_and_sides"]

#: Number of elements of a block of regions between two products, and of a block of channels in tables of maxima.
BLOCK = 1 << 22

#: Number of cells vertically and horizontally.
Cells = Annotated[tuple[int, ...], Limit("of two positive numbers, height and width",
                                         lambda size: len(size) == 2 and min(size) > 0)]


def round_half_away(xp: ArrayModule, x: Array) -> Array:
    """Nearest integers, halves away from zero."""
    return xp.copysign(xp.floor(xp.abs(x) + 0.5), x)


def image_and_sides(xp: ArrayModule, rois: Array) -> tuple[Array, Array, Array, Array, Array]:
    """The image of each region as an integer, and its left, top, right and bottom."""
    rois = wide(rois)
    return rois[:, 0].astype(xp.int64), rois[:, 1], rois[:, 2], rois[:, 3], rois[:, 4]


# ----------------------------------------------------------------------------------- averages over cells


class _Cells(NamedTuple):
    """Each region's image, and the weights of the image's rows (R, cells, height) and columns for its cells.

    ``groups`` is the grid of groups that channels are divided into when each cell reads channels of its own.
    """

    image: Array
    rows: Array
    columns: Array
    groups: Shape | None = None

    @property
    def size(self) -> Shape:
        return self.rows.shape[1], self.columns.shape[1]

    def of_image(self, xp: ArrayModule, count: int) -> Iterator[tuple[int, Array]]:
        """For each image its index and the row weights of its regions; those of other regions are zero.

        Selecting the regions instead would copy their number to the host.
        """
        for image in range(count):
            yield image, self.rows if count == 1 else xp.where((self.image == image)[:, None, None], self.rows, 0)

    def runs(self, numbers: int) -> list[slice]:
        """Consecutive blocks of regions, each region with ``numbers`` elements."""
        step = max(1, BLOCK // max(1, numbers))
        return chunks(self.rows.shape[0], step)

    def own(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Each cell, and the group of channels it reads."""
        (high, wide_), groups = self.size, self.groups or (1, 1)
        for i in range(high):
            for j in range(wide_):
                yield (i, j), (i * groups[0] // high, j * groups[1] // wide_)


def _average(xp: ArrayModule, data: Array, cells: _Cells, shape: Shape) -> Array:
    """``rows[r] @ image @ columns[r].T`` for each region, of shape (R, C, cells, cells)."""
    n, channels, height, width = shape
    (high, across), count = cells.size, cells.rows.shape[0]
    if cells.groups:
        data = data.reshape(n, channels // (cells.groups[0] * cells.groups[1]), *cells.groups, height, width)
        y = xp.zeros((count, data.shape[1], high, across), data.dtype)
        for image, weights in cells.of_image(xp, n):
            for (i, j), group in cells.own():
                t = xp.matmul(weights[:, i], data[(image, slice(None), *group)])
                y[:, :, i, j] += (t * cells.columns[:, j]).sum(2).T
        return y
    y = xp.zeros((count, channels, high, across), data.dtype)
    for image, weights in cells.of_image(xp, n):
        for part in cells.runs(channels * high * width):
            regions = weights[part].shape[0]
            t = xp.matmul(weights[part].reshape(regions * high, height), data[image])
            t = t.reshape(channels, regions, high, width).transpose(1, 0, 2, 3).reshape(regions, channels * high, width)
            y[part] += xp.matmul(t, cells.columns[part].swapaxes(1, 2)).reshape(regions, channels, high, across)
    return y


def _average_data(xp: ArrayModule, g: Array, cells: _Cells, shape: Shape) -> Array:
    """The gradient of ``_average`` with respect to its data."""
    n, channels, height, width = shape
    high, across = cells.size
    if cells.groups:
        x = xp.zeros((n, g.shape[1], *cells.groups, height, width), g.dtype)
        for image, weights in cells.of_image(xp, n):
            for (i, j), group in cells.own():
                t = g[:, :, i, j].T[:, :, None] * cells.columns[:, j]
                x[(image, slice(None), *group)] += xp.matmul(weights[:, i].T, t)
        return x.reshape(shape)
    x = xp.zeros(shape, g.dtype)
    for image, weights in cells.of_image(xp, n):
        for part in cells.runs(channels * high * width):
            regions = weights[part].shape[0]
            t = xp.matmul(g[part].reshape(regions, channels * high, across), cells.columns[part])
            t = t.reshape(regions, channels, high, width).transpose(1, 0, 2, 3).reshape(channels, regions * high, width)
            x[image] += xp.matmul(weights[part].reshape(regions * high, height).T, t)
    return x


def _declare_averages(op: Op, name: str, cells: Callable[..., _Cells]) -> None:
    """Give an operator the kernel that averages over the cells of regions, and register its gradient as ``name``. For
    images of a ``size``, ``cells(xp, rois, size, dtype, **attrs)`` returns the cells. The operator is linear in its
    data, so it is the gradient of its gradient."""
    gradient = register(Op(name, op.signature.schema, ("g", "rois", "data"), types="T,I,U->T", unread=(2,),
                           doc=f"The gradient of the data of ``{op.name}``."))
    adjoint_pair(op, gradient)
    _declare_kernel(op, _average, Rule(cells))
    _declare_kernel(gradient, _average_data, Rule(cells))


def _declare_kernel(op: Op, function: Callable[..., Array], cells: Rule) -> None:
    """Declare that ``function(xp, given, cells, shape)`` computes an operator, for images of a shape."""

    @op.kernel()  # no body: blocks of regions are written to one array, which limits the memory
    def weighing_xp(xp, weights, rois, *like, **attrs):
        weights, shape = wide(weights), (*like, weights)[0].shape
        return function(xp, weights, cells(attrs, xp, rois, shape[2:], weights.dtype), shape)


# -------------------------------------------------------------------------------------------- ROIAlign


@declare(name="_contrib_ROIAlign", types="T,I->T")
def roi_align(data, rois, *, pooled_size: Cells, spatial_scale: float, sample_ratio: int = -1,
              position_sensitive: bool = False, aligned: bool = False):
    """Averages of bilinear samples over the cells of each region (He et al. 2017, Mask R-CNN).

    A cell has ``sample_ratio`` samples along either side, or by default one for each pixel. ``aligned`` shifts regions
    by half a pixel. With ``position_sensitive`` each cell reads its own group of channels. A region with a negative
    image number is
    zero.
    """


declare_form(roi_align, lambda *, pooled_size, position_sensitive: (
    f"(batch, {math.prod(pooled_size) if position_sensitive else ''}channels, height, width) (regions, 5) "
    "-> (regions, channels, @pooled_size)"))


def _sample_weights(xp: ArrayModule, start: Array, stop: Array, cells: int, n: int, samples: int, aligned: bool,
                    dtype: np.dtype) -> Array:
    """Weights of ``n`` pixels along one axis for the samples of each cell: (R, cells, n)."""
    length = stop - start if aligned else xp.maximum(stop - start, 1.0)
    cell = (length / cells)[:, None, None]
    count = xp.full(cell.shape, float(samples), cell.dtype) if samples > 0 else xp.ceil(cell)
    step = cell / xp.maximum(count, 1.0)
    first = start[:, None, None] + xp.arange(cells)[:, None].astype(cell.dtype) * cell + step / 2
    pixel = xp.arange(n).astype(cell.dtype)
    if samples > 0:
        near, tries = xp.zeros_like(first), samples
    else:
        # At most five samples, more than half a pixel apart, lie within one pixel of a given pixel.
        near, tries = xp.clip(xp.ceil((pixel - 1 - first) / xp.where(step > 0, step, 1.0)), 0.0, None), 5
    weights = xp.zeros((*first.shape[:2], n), cell.dtype)
    for number in range(tries):
        sample = near + number
        place = first + sample * step
        inside = (place >= -1) & (place <= n) & (sample < count)
        weights += xp.where(inside, xp.maximum(1 - xp.abs(xp.clip(place, 0.0, n - 1.0) - pixel), 0.0), 0.0)
    return (weights / xp.maximum(count, 1.0)).astype(dtype)


def _align_cells(xp: ArrayModule, rois: Array, size: Shape, dtype: np.dtype, *, pooled_size: Shape,
                 spatial_scale: float, sample_ratio: int, position_sensitive: bool, aligned: bool) -> _Cells:
    image, *sides = image_and_sides(xp, rois)
    left, top, right, bottom = [side * spatial_scale - (0.5 if aligned else 0.0) for side in sides]
    rows = _sample_weights(xp, top, bottom, pooled_size[0], size[0], sample_ratio, aligned, dtype)
    columns = _sample_weights(xp, left, right, pooled_size[1], size[1], sample_ratio, aligned, dtype)
    rows = xp.where((image >= 0)[:, None, None], rows, 0)
    return _Cells(image, rows, columns, pooled_size if position_sensitive else None)


_declare_averages(roi_align, "_backward_ROIAlign", _align_cells)


# ------------------------------------------------------------------------------------------ PSROIPooling


@declare(name="_contrib_PSROIPooling", types="T,I->T")
def psroi_pooling(data, rois, *, spatial_scale: float, output_dim: Count, pooled_size: Positive, group_size: int = 0):
    """Averages over the pixels of each region's cells; each cell reads its own group of channels (Dai et al. 2016,
    R-FCN)."""


declare_form(psroi_pooling, lambda *, output_dim, pooled_size, group_size: (
    f"(batch, {output_dim * (group_size or pooled_size) ** 2}, height, width) (regions, 5) "
    "-> (regions, @output_dim, @pooled_size, @pooled_size)"))


def _cell_weights(xp: ArrayModule, start: Array, stop: Array, cells: int, n: int, dtype: np.dtype) -> Array:
    """Weights of ``n`` pixels along one axis that average over each cell: (R, cells, n)."""
    cell = (xp.maximum(stop - start, 0.1) / cells)[:, None]
    number = xp.arange(cells).astype(cell.dtype)
    first = xp.clip(xp.floor(number * cell + start[:, None]), 0, n)[:, :, None]
    last = xp.clip(xp.ceil((number + 1) * cell + start[:, None]), 0, n)[:, :, None]
    pixel = xp.arange(n)
    inside = (pixel >= first) & (pixel < last)
    return (inside / xp.maximum(last - first, 1)).astype(dtype)


def _boxed_cells(xp: ArrayModule, rois: Array, size: Shape, dtype: np.dtype, *, spatial_scale: float, pooled_size: int,
                 group_size: int) -> _Cells:
    cells, groups = pooled_size, group_size or pooled_size
    image, left, top, right, bottom = image_and_sides(xp, rois)
    rows, columns = [_cell_weights(xp, round_half_away(xp, first) * spatial_scale,
                                   (round_half_away(xp, last) + 1) * spatial_scale,
                                   cells, n,
                                   dtype) for first, last, n in ((top, bottom, size[0]), (left, right, size[1]))]
    return _Cells(image, rows, columns, (groups, groups))


_declare_averages(psroi_pooling, "_backward__contrib_PSROIPooling", _boxed_cells)


# -------------------------------------------------------------------------------------------- ROIPooling


@declare(name="ROIPooling", aliases=("_npx_roi_pooling",), types="T,I->T,int32", outputs=("output", "maxidx"),
         visible=lambda: 1)
def roi_pooling(data, rois, *, pooled_size: Cells, spatial_scale: float):
    """Maxima over the pixels of each region's cells (Girshick 2015, Fast R-CNN); a cell without pixels is zero.

    The hidden second output holds the position of each maximum in its image, or -1.
    """


declare_form(roi_pooling, "(batch, channel, height, width) (regions, 5) -> " + "(regions, channel, @pooled_size) " * 2)


def _spans(xp: ArrayModule, start: Array, stop: Array, cells: int, n: int) -> tuple[Array, Array, Array]:
    """First pixel of each cell along one axis, the number of pixels, and its binary logarithm: (R, cells).

    A region that begins or ends at NaN or infinity has no pixels.
    """
    finite = xp.isfinite(start) & xp.isfinite(stop)
    start, stop = xp.where(finite, start, n), xp.where(finite, stop, n)
    cell = (xp.maximum(stop - start + 1, 1.0) / cells)[:, None]
    number = xp.arange(cells).astype(cell.dtype)
    first = xp.clip(xp.floor(number * cell) + start[:, None], 0, n).astype(xp.int64)
    length = xp.maximum(xp.clip(xp.ceil((number + 1) * cell) + start[:, None], 0, n).astype(xp.int64) - first, 0)
    level = xp.zeros_like(length)
    for power in range(1, n.bit_length()):
        level += length >= 1 << power
    return xp.minimum(first, n - 1), length, level


def _better(xp: ArrayModule, left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
    """The larger of two maxima with its index; of equal ones the one with the smaller index."""
    (a, i), (b, j) = left, right
    takes_second = (b > a) | ((b == a) & (j < i))
    return xp.where(takes_second, b, a), xp.where(takes_second, j, i)


def _doubled_maxima(xp: ArrayModule, table: tuple[Array, Array], axis: int, step: int) -> tuple[Array, Array]:
    """Maxima over blocks twice as long along an axis, from two blocks ``step`` apart."""
    n = table[0].shape[axis]
    after = xp.minimum(xp.arange(n) + step, n - 1)
    values, places = table
    return _better(xp, table, (xp.take(values, after, axis=axis), xp.take(places, after, axis=axis)))


def _tables(xp: ArrayModule, x: Array) -> tuple[Array, Array]:
    """Maxima over blocks of 2^a by 2^b pixels starting at each pixel, and their indices: (a, b, N, height, width,
    C)."""
    height, width = x.shape[1:3]
    place = xp.arange(height * width, dtype=xp.int32).reshape(1, height, width, 1)
    # NaN is never the larger of two values, so it must not be the first one either.
    tall = (xp.where(x == x, x, limits(x.dtype)[0]), xp.broadcast_to(place, x.shape))
    levels = []
    for a in range(height.bit_length()):
        if a:
            tall = _doubled_maxima(xp, tall, 1, 1 << (a - 1))
        block = tall
        row = [block]
        for b in range(1, width.bit_length()):
            block = _doubled_maxima(xp, block, 2, 1 << (b - 1))
            row.append(block)
        levels.append([xp.stack(tables) for tables in zip(*row)])
    values, places = [xp.stack(tables) for tables in zip(*levels)]
    return values, places


@roi_pooling.kernel()  # no body: blocks of channels share tables of maxima
def roi_pooling_xp(xp, data, rois, *, pooled_size, spatial_scale):
    x = wide(data)
    n, channels, height, width = x.shape
    (high, across), count = pooled_size, rois.shape[0]
    shape = (count, channels, high, across)
    if not x.size:
        return xp.zeros(shape, x.dtype), xp.full(shape, -1, xp.int32)
    image, *sides = image_and_sides(xp, rois)
    left, top, right, bottom = [round_half_away(xp, side * spatial_scale) for side in sides]
    row, tall, a = [span[:, :, None] for span in _spans(xp, top, bottom, high, height)]
    column, long, b = [span[:, None, :] for span in _spans(xp, left, right, across, width)]
    of_image = (image >= 0) & (image < n)
    empty = (tall * long == 0) | ~of_image[:, None, None]
    levels = a * width.bit_length() + b
    table = (levels * n + xp.where(of_image, image, 0)[:, None, None]) * (height * width)
    rows, columns = (row, xp.maximum(row + tall - (1 << a), 0)), (column, xp.maximum(column + long - (1 << b), 0))
    corners = [(table + y * width + z).reshape(-1) for y in rows for z in columns]

    def some(channel: slice) -> tuple[Array, Array]:
        part = x[:, channel].transpose(0, 2, 3, 1)
        tables = [table.reshape(-1, part.shape[3]) for table in _tables(xp, part)]
        best: Any = None
        for corner in corners:
            corner_maxima = tuple([xp.take(table, corner, axis=0) for table in tables])
            best = corner_maxima if best is None else _better(xp, best, corner_maxima)
        return best

    step = max(1, BLOCK // max(1, n * height * width * height.bit_length() * width.bit_length()))
    blocks = [*map(some, chunks(channels, step))]
    empty = empty[:, None]
    values, places = [images(xp.concatenate(parts, axis=1), shape) for parts in zip(*blocks)]
    return xp.where(empty, 0, values), xp.where(empty, -1, places)


@declare(name="_backward_ROIPooling", types="T,I,J,U->T", unread=(3,))
def roi_pooling_data(g, rois, maxidx, data):
    """The gradient of ROIPooling, added at the positions of the maxima."""


def _sources(xp: ArrayModule, rois: Array, maxidx: Array, shape: Shape) -> Array:
    """Flat indices of the maxima in the data; one beyond the last for a cell without pixels."""
    n, channels, height, width = shape
    image = xp.clip(rois[:, 0].astype(xp.int64), 0, n - 1)[:, None, None, None]
    flat = (image * channels + xp.arange(channels)[:, None, None]) * (height * width)
    return xp.where(maxidx >= 0, flat + maxidx, math.prod(shape))


declare_scatter(roi_pooling_data, _sources, spare=True)
declare_form(roi_pooling_data, "(regions, channel, h, w) (regions, 5) (regions, channel, h, w) "
             "(batch, channel, height, width) -> (batch, channel, height, width)")


@composed(name="_backward_ROIPooling_at", types="T,I,J->T")
def roi_pooling_at(h, rois, maxidx):
    """Elements of ``h`` at the positions of the maxima of regions: the gradient of the gradient."""
    n, channels, height, width = h.shape
    image = ops._minimum_scalar(ops._maximum_scalar(ops.Cast(rois[:, 0], dtype="int64"), scalar=0), scalar=n - 1)
    first = ops.broadcast_add(ops._np_reshape(image * (channels * height * width), newshape=(-1, 1, 1, 1)),
                              np.arange(0, channels * height * width, height * width).reshape(-1, 1, 1))
    values = ops.take(ops._np_reshape(h, newshape=(-1,)), ops.broadcast_add(first, ops.Cast(maxidx, dtype="int64")))
    return ops._npi_where_rscalar(ops._npi_greater_equal_scalar(maxidx, scalar=0), values, scalar=0.0)


roi_pooling_at.infer(like_inputs(2))
adjoint_pair(roi_pooling_at, roi_pooling_data)
declare_gradient(roi_pooling, roi_pooling_data)

"""DeformablePSROIPooling: pooling of regions whose cells are shifted by offsets (Dai et al. 2017)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.attrs import Positive
from ...core.registry import ops
from ...core.spec import Shape, show
from ...custom.composed import composed
from ...errors import ShapeError
from ..forms import declare_form
from ..outputs import in_dtype_of, widen


@composed(name="_contrib_DeformablePSROIPooling", types="T,I,T->T,T",
          arguments=lambda *, no_trans: ("data", "rois") if no_trans else ("data", "rois", "trans"),
          outputs=("output", "top_count"), visible=lambda: 1)
def deformable_pooling(data, rois, trans=None, *, spatial_scale: float, output_dim: Positive, group_size: Positive,
                       pooled_size: Positive, part_size: int = 0, sample_per_part: Positive = 1,
                       trans_std: float = 0.0, no_trans: bool = False):
    """Averages of bilinear samples over the cells of regions; each cell is shifted, and reads its own group of
    channels.

    ``trans`` has shape (regions, 2 * classes, part_size, part_size): for each class and cell the shift to the right and
    the shift down, as fractions of the region, times ``trans_std``. The hidden second output is the number of samples
    of each cell.
    """
    x, count = widen(data), rois.shape[0]
    form = _form(None if trans is None else trans.shape, spatial_scale, output_dim, group_size, pooled_size, part_size,
                 sample_per_part, trans_std)
    *places, inside = _samples(widen(ops.BlockGrad(rois)), None if trans is None else widen(trans), form, x.shape)
    values = ops._bilinear(_channels_per_cell(x, form), *[ops._np_reshape(place, newshape=(-1,)) for place in places])
    values = ops._npi_where_rscalar(ops._np_reshape(inside, newshape=(-1, 1)), values, scalar=0.0)
    cells = (count, form.classes, form.cells, form.cells)
    sums = ops._np_sum(ops._np_reshape(values, newshape=(*cells, form.samples ** 2, form.each)), axis=4)
    counts = ops.Cast(ops._np_sum(inside, axis=(4, 5)), dtype=x.dtype)
    means = ops.broadcast_div(sums, ops._maximum_scalar(counts, scalar=1)[:, :, :, :, None])
    shape = (count, output_dim, pooled_size, pooled_size)
    means = ops._np_reshape(ops.transpose(means, axes=(0, 1, 4, 2, 3)), newshape=shape)
    counts = ops.broadcast_to(counts[:, :, None], shape=(*cells[:2], form.each, *cells[2:]))
    return in_dtype_of(means, data), in_dtype_of(ops._np_reshape(counts, newshape=shape), data)


class _Form(NamedTuple):
    """Geometry of one pooling."""

    cells: int
    groups: int
    parts: int
    samples: int
    classes: int
    each: int
    scale: float
    trans_std: float

    def part(self) -> list[int]:
        """The part, along an axis, whose offset each cell uses."""
        return [i * self.parts // self.cells for i in range(self.cells)]

    def group(self) -> list[int]:
        """The group of channels, along an axis, that each cell reads."""
        return [min(i * self.groups // self.cells, self.groups - 1) for i in range(self.cells)]


def _form(trans: Shape | None, spatial_scale: float, output_dim: int, group_size: int, pooled_size: int,
          part_size: int, sample_per_part: int, trans_std: float) -> _Form:
    classes = 1 if trans is None else trans[1] // 2
    if trans is not None and (classes < 1 or output_dim % classes != 0):
        raise ShapeError(f"trans: expected shape (regions, 2 * classes, parts, parts) with classes that divide "
                         f"output_dim={output_dim}, got {show(trans)}")
    return _Form(pooled_size, group_size, part_size or pooled_size, sample_per_part, classes, output_dim // classes,
                 spatial_scale, trans_std)


declare_form(deformable_pooling, lambda *, output_dim, group_size, pooled_size, part_size: (
    f"(batch, {output_dim * group_size ** 2}, height, width) (regions, 5) "
    f"(regions, 2classes, {part_size or pooled_size}, {part_size or pooled_size})"
    + " -> (regions, @output_dim, @pooled_size, @pooled_size)" + " (regions, @output_dim, @pooled_size, @pooled_size)"))


def _channels_per_cell(x: Any, form: _Form) -> Any:
    """Pixels as (N × class × groups down × groups across, height, width, each), a row of channels per cell."""
    n, _, height, width = x.shape
    x = ops._np_reshape(x, newshape=(n, form.classes, form.each, form.groups, form.groups, height, width))
    return ops._np_reshape(ops.transpose(x, axes=(0, 1, 3, 4, 5, 6, 2)), newshape=(-1, height, width, form.each))


def _samples(rois: Any, trans: Any, form: _Form, shape: Shape) -> tuple[Any, Any, Any, Any]:
    """Places down and across, the image and whether it counts, of each sample: (R, class, cell down, cell across,
    sample down, sample across)."""
    n, _, height, width = shape
    image, *sides = [ops._np_reshape(side, newshape=(-1, 1, 1, 1)) for side in ops.SliceChannel(
        rois, num_outputs=5, axis=1, squeeze_axis=True)]
    left, top, right, bottom = [ops.round(side) for side in sides]
    image = ops.Cast(image, dtype="int64")
    moves = [None, None]
    if trans is not None:
        part = np.array(form.part())
        moves = [ops.take(ops.take(trans[:, axis::2], part, axis=2), part, axis=3) * form.trans_std for axis in (0, 1)]

    def along(first: Any, last: Any, move: Any, axis: int) -> Any:
        """Sample positions along one axis, (R, class, cell, cell, sample)."""
        start = first * form.scale - 0.5
        length = ops._maximum_scalar((last + 1) * form.scale - 0.5 - start, scalar=0.1)
        cell = length / form.cells
        number = np.arange(form.cells, dtype=cell.dtype).reshape((1, 1, -1, 1) if axis else (1, 1, 1, -1))
        begin = ops.broadcast_add(ops.broadcast_mul(cell, number), start)
        if move is not None:
            begin = ops.broadcast_add(begin, ops.broadcast_mul(move, length))
        begin = ops.broadcast_to(begin, shape=(rois.shape[0], form.classes, form.cells, form.cells))
        steps = ops.broadcast_mul((cell / form.samples)[:, :, :, :, None], np.arange(form.samples, dtype=cell.dtype))
        return ops.broadcast_add(begin[:, :, :, :, None], steps)

    x, y = along(left, right, moves[0], 0)[:, :, :, :, None], along(top, bottom, moves[1], 1)[:, :, :, :, :, None]
    inside = ops._npi_logical_and(*[ops._npi_logical_and(
        ops._npi_greater_equal_scalar(place, scalar=-0.5), ops._npi_less_equal_scalar(place, scalar=limit - 0.5))
        for place, limit in ((y, height), (x, width))])
    there = ops._npi_logical_and(ops._npi_greater_equal_scalar(image, scalar=0), ops._npi_less_scalar(image, scalar=n))
    inside = ops._npi_logical_and(inside, there[:, :, :, :, None, None])
    group = np.array(form.group())
    cell = group[:, None] * form.groups + group
    first = ops._minimum_scalar(ops._maximum_scalar(image, scalar=0), scalar=max(n - 1, 0)) * form.classes
    source = ops.broadcast_add(first, np.arange(form.classes).reshape(-1, 1, 1)) * form.groups ** 2
    source = ops.broadcast_add(source, cell)
    y, x = [ops.broadcast_to(_clipped_place(place, limit), shape=inside.shape)
            for place, limit in ((y, height), (x, width))]
    return y, x, ops.broadcast_to(source[:, :, :, :, None, None], shape=inside.shape), inside


def _clipped_place(place: Any, n: int) -> Any:
    """The nearest place on the image. On a pixel, as at the border, the derivative is zero."""
    place = ops.clip(place, a_min=0, a_max=n - 1)
    return ops._npi_where(ops._npi_equal(place, ops.floor(place)), ops.BlockGrad(place), place)

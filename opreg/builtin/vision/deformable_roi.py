"""DeformablePSROIPooling: pooling of regions whose cells are shifted by offsets (Dai et al. 2017)."""

from __future__ import annotations

from typing import NamedTuple

from ...core.attrs import Count
from ...core.registry import declare
from ...core.spec import Shape, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import gradient_by, wide
from .bilinear import Corner, corners, read, rows, slopes, spread
from .roi import pooled, rounded, scaled

__all__: list[str] = []


@declare(name="_contrib_DeformablePSROIPooling", types="T,I,T->T,T",
         arguments=lambda *, no_trans: ("data", "rois") if no_trans else ("data", "rois", "trans"),
         outputs=("output", "top_count"), visible=lambda: 1)
def deformable_pooling(data, rois, trans, *, spatial_scale: float, output_dim: Count, group_size: int,
                       pooled_size: int, part_size: int = 0, sample_per_part: int = 1, trans_std: float = 0.0,
                       no_trans: bool = False):
    """Averages of bilinear samples over the cells of regions; each cell is shifted, and reads channels of its own.

    ``trans`` has shape (regions, 2 * classes, part_size, part_size): shifts to the right and down of the cells, for the
    channels of each class, as fractions of the region times ``trans_std``. The hidden second output counts samples.
    """


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
    if min(output_dim, group_size, pooled_size, sample_per_part) < 1:
        raise AttrError(f"output_dim={output_dim}, group_size={group_size}, pooled_size={pooled_size}, "
                        f"sample_per_part={sample_per_part}: expected positive numbers")
    if classes < 1 or output_dim % classes != 0:
        raise ShapeError(f"trans: expected shape (regions, 2 * classes, parts, parts) with classes that divide "
                         f"output_dim={output_dim}, got {show(trans)}")
    return _Form(pooled_size, group_size, part_size or pooled_size, sample_per_part, classes, output_dim // classes,
                 spatial_scale, trans_std)


@deformable_pooling.infer
def deformable_pooling_infer(data, rois, trans=None, *, spatial_scale, output_dim, group_size, pooled_size, part_size,
                             sample_per_part, trans_std):
    shape = pooled(data, rois, output_dim, (pooled_size, pooled_size))
    if data[1] != output_dim * group_size * group_size:
        raise ShapeError(f"data: expected output_dim * group_size² = {output_dim * group_size ** 2} channels, "
                         f"got shape {show(data)}")
    if trans is not None and len(trans) != 4:
        raise ShapeError(f"trans: expected shape (regions, 2 * classes, parts, parts), got {show(trans)}")
    form = _form(trans, spatial_scale, output_dim, group_size, pooled_size, part_size, sample_per_part, trans_std)
    if trans is not None and (trans[0] != rois[0] or trans[2] != form.parts or trans[3] != form.parts):
        raise ShapeError(f"trans: expected shape ({rois[0]}, {trans[1]}, {form.parts}, {form.parts}), "
                         f"got {show(trans)}")
    return [shape, shape]


def _turned(x: Array, form: _Form) -> Array:
    """Channels as (N × class × groups down × groups across, each, height, width), a row of channels per cell."""
    n, _, height, width = x.shape
    x = x.reshape(n, form.classes, form.each, form.groups, form.groups, height, width).transpose(0, 1, 3, 4, 2, 5, 6)
    return x.reshape(-1, form.each, height, width)


class _Samples(NamedTuple):
    """Samples of every region: arrays over (R, class, cell down, cell across, sample down, sample across)."""

    places: list[Corner]
    inside: Array
    counts: Array
    high: Array
    across: Array


def _samples(xp: ArrayModule, rois: Array, trans: Array | None, form: _Form, shape: Shape) -> _Samples:
    n, _, height, width = shape
    image, *sides = scaled(xp, rois)
    left, top, right, bottom = [rounded(xp, side) for side in sides]
    moves = [None, None]
    if trans is not None:
        part = xp.asarray(form.part())
        moves = [xp.take(xp.take(trans[:, axis::2], part, axis=2), part, axis=3) * form.trans_std for axis in (0, 1)]

    def along(first: Array, last: Array, move: Array | None, axis: int) -> tuple[Array, Array]:
        """Sample positions along one axis, (R, class, cell, cell, sample), and the regions' lengths."""
        start = (first * form.scale - 0.5)[:, None, None, None]
        length = xp.maximum((last + 1) * form.scale - 0.5 - start[:, 0, 0, 0], 0.1)[:, None, None, None]
        cell = length / form.cells
        number = xp.arange(form.cells).astype(cell.dtype).reshape((1, 1, -1, 1) if axis else (1, 1, 1, -1))
        begin = number * cell + start
        if move is not None:
            begin = begin + move * length
        begin = xp.broadcast_to(begin, (begin.shape[0], form.classes, form.cells, form.cells))
        step = (cell / form.samples)[..., None]
        return begin[..., None] + xp.arange(form.samples).astype(cell.dtype) * step, length

    x, across = along(left, right, moves[0], 0)
    y, high = along(top, bottom, moves[1], 1)
    y, x = y[..., :, None], x[..., None, :]
    inside = (y >= -0.5) & (y <= height - 0.5) & (x >= -0.5) & (x <= width - 0.5)
    inside = inside & ((image >= 0) & (image < n)).reshape(-1, 1, 1, 1, 1, 1)
    y, x = [xp.broadcast_to(xp.clip(place, 0, limit - 1), inside.shape) for place, limit in ((y, height), (x, width))]
    group = xp.asarray(form.group())
    cell = group[:, None] * form.groups + group
    source = (xp.clip(image, 0, max(n - 1, 0))[:, None] * form.classes + xp.arange(form.classes))[:, :, None, None]
    source = xp.broadcast_to((source * form.groups ** 2 + cell)[..., None, None], inside.shape)
    flat, valid = [array.reshape(-1) for array in (y, x)], inside.reshape(-1)
    neighbours = corners(xp, flat[0], flat[1], (height, width), source.reshape(-1))
    # A sample clamped to the border lies on a pixel and has zero derivative.
    down, right = [valid & (place != xp.floor(place)) for place in flat]
    places = [Corner(corner.row, xp.where(valid, corner.weight, 0), xp.where(down, corner.down, 0),
                     xp.where(right, corner.right, 0)) for corner in neighbours]
    return _Samples(places, inside, inside.sum((4, 5)), high, across)


@deformable_pooling.kernel()  # no body: sample positions serve both outputs
def deformable_pooling_xp(xp, data, rois, trans=None, *, spatial_scale, output_dim, group_size, pooled_size, part_size,
                          sample_per_part, trans_std):
    data, trans = wide(data), wide(trans)
    form = _form(None if trans is None else trans.shape, spatial_scale, output_dim, group_size, pooled_size, part_size,
                 sample_per_part, trans_std)
    samples = _samples(xp, rois, trans, form, data.shape)
    values = read(xp, rows(_turned(data, form)), samples.places)
    cells = values.reshape(*samples.counts.shape, form.samples ** 2, form.each).sum(4)
    cells = cells / xp.maximum(samples.counts, 1)[..., None].astype(data.dtype)
    shape = (rois.shape[0], output_dim, pooled_size, pooled_size)
    count = xp.broadcast_to(samples.counts[:, :, None], (rois.shape[0], form.classes, form.each, *shape[2:]))
    return cells.transpose(0, 1, 4, 2, 3).reshape(shape), count.reshape(shape).astype(data.dtype)


@declare(name="_backward__contrib_DeformablePSROIPooling", types="T,T,I,T->T,T",
         arguments=lambda *, no_trans: ("g", "data", "rois") if no_trans else ("g", "data", "rois", "trans"),
         outputs=lambda *, no_trans: ("data",) if no_trans else ("data", "trans"))
def deformable_pooling_data(g, data, rois, trans, *, spatial_scale: float, output_dim: Count, group_size: int,
                            pooled_size: int, part_size: int = 0, sample_per_part: int = 1, trans_std: float = 0.0,
                            no_trans: bool = False):
    """The gradients of the data and of the offsets."""


gradient_by(deformable_pooling, deformable_pooling_data)


@deformable_pooling_data.kernel()  # no body: the gradients share the sample positions
def deformable_pooling_data_xp(xp, g, data, rois, trans=None, *, spatial_scale, output_dim, group_size, pooled_size,
                               part_size, sample_per_part, trans_std):
    g, data, trans = wide(g), wide(data), wide(trans)
    form = _form(None if trans is None else trans.shape, spatial_scale, output_dim, group_size, pooled_size, part_size,
                 sample_per_part, trans_std)
    samples, source = _samples(xp, rois, trans, form, data.shape), rows(_turned(data, form))
    above = g.reshape(-1, form.classes, form.each, form.cells, form.cells).transpose(0, 1, 3, 4, 2)
    above = above / xp.maximum(samples.counts, 1)[..., None].astype(g.dtype)
    above = xp.broadcast_to(above[:, :, :, :, None], (*above.shape[:4], form.samples ** 2, form.each))
    above = above.reshape(-1, form.each)
    n, _, height, width = data.shape
    x = spread(xp, source.shape[0], above, samples.places)
    x = x.reshape(n, form.classes, form.groups, form.groups, height, width, form.each).transpose(0, 1, 6, 2, 3, 4, 5)
    x = x.reshape(data.shape)
    if trans is None:
        return x
    # Cells of a part share its offset: sum their gradients.
    part = (xp.arange(form.parts)[:, None] == xp.asarray(form.part())).astype(data.dtype)
    moved = []
    for slope, length in zip(slopes(xp, source, above, samples.places), (samples.high, samples.across)):
        cells = slope.reshape(samples.inside.shape).sum((4, 5)) * length * form.trans_std
        moved.append(xp.matmul(xp.matmul(part, cells), part.T))
    return x, xp.stack(moved[::-1], axis=2).reshape(trans.shape)

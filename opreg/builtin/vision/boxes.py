"""Boxes of detectors: overlap, non-maximum suppression, matching, and offsets from anchors.

A box is four elements along the last axis: its corners (left, top, right, bottom), or its center and sides
(x, y, width, height).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import ops
from ...custom.composed import composed
from ...errors import AttrError
from ..forms import declare_form
from ..outputs import widen
from .greedy import Format

__all__ = ["columns", "first_of", "stack_coordinates", "decode_boxes", "offsets", "overlaps", "rows_at"]

# These functions compute on values of traced bodies: arrays of coordinates.


def columns(boxes: Any) -> list[Any]:
    """The four coordinates of boxes."""
    return list(ops.SliceChannel(boxes, num_outputs=4, axis=-1, squeeze_axis=True))


def stack_coordinates(coordinates: Sequence[Any]) -> Any:
    """Boxes of four coordinates."""
    return ops.stack(*coordinates, axis=-1, num_args=4)


def rows_at(rows: Any, places: Any) -> Any:
    """The rows of each sample (batch, n, width) at places (batch, m)."""
    batch, n, width = rows.shape
    first = np.arange(0, batch * n, n)[:, None]
    flat = ops._np_reshape(rows, newshape=(batch * n, width))
    return ops.take(flat, places if batch == 1 else ops.broadcast_add(places, first))


def first_of(counts: Any, n: int) -> Any:
    """A mask (batch, n), true for the first ``counts`` (batch) elements of each row."""
    return ops._npi_greater(counts[:, None], np.arange(n))


def to_centers(coordinates: Sequence[Any]) -> list[Any]:
    """Center and sides, as four coordinates, of boxes given by corners."""
    left, top, right, bottom = coordinates
    width, height = right - left, bottom - top
    return [left + width * 0.5, top + height * 0.5, width, height]


def to_corners(coordinates: Sequence[Any]) -> list[Any]:
    """Corners, as four coordinates, of boxes given by center and sides."""
    x, y, width, height = coordinates
    width, height = width * 0.5, height * 0.5
    return [x - width, y - height, x + width, y + height]


def overlaps(a: Sequence[Any], b: Sequence[Any], form: Format = "corner") -> Any:
    """The intersection over union of boxes, each given as four coordinates; 0 for boxes without area."""
    if form == "center":
        areas = [ops.relu(width) * ops.relu(height) for _, _, width, height in (a, b)]
        a, b = to_corners(a), to_corners(b)
    else:
        areas = [ops.relu(right - left) * ops.relu(bottom - top) for left, top, right, bottom in (a, b)]
    common = [ops.relu(ops.broadcast_minimum(a[i + 2], b[i + 2]) - ops.broadcast_maximum(a[i], b[i])) for i in (0, 1)]
    both = common[0] * common[1]
    either = ops.broadcast_add(*areas) - both
    none = ops._npi_logical_not(ops._npi_greater_scalar(either, scalar=0.0))
    return ops._npi_where_lscalar(none, both / either, scalar=0.0)


# --------------------------------------------------------------------------------------------------- nms


@composed(name="_contrib_box_nms", types="T:floating->T,int32", aliases=("_contrib_box_non_maximum_suppression",),
          outputs=("output0", "output1"), visible=lambda: 1)
def box_nms(data, *, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
            score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False,
            in_format: Format = "corner", out_format: Format = "corner"):
    """Non-maximum suppression: boxes in descending order of score, without those that overlap a better one. Remaining
    rows are -1.

    ``data`` (..., boxes, elements) holds four coordinates from ``coord_start`` on, a score and, if ``id_index`` is not
    negative, a class; only boxes of one class suppress each other unless ``force_suppress``. Boxes of class
    ``background_id`` and those whose score is not above ``valid_thresh`` are removed first; of the others the ``topk``
    best take part. The hidden second output holds the origin of each box: i, or -1 - i for a removed one.
    """
    *outer, n, width = data.shape
    if coord_start < 0 or width < coord_start + 4:
        raise AttrError(f"coord_start={coord_start}: four coordinates do not fit into the {width} elements of a box")
    for name, index in (("score_index", score_index), ("id_index", id_index)):
        if (index < 0 and name == "score_index") or width <= index:
            raise AttrError(f"{name}={index} is out of range for the {width} elements of a box")
    batch = math.prod(outer)
    if topk == 0 or batch * n * width == 0:
        return data, np.broadcast_to(np.arange(n, dtype=np.int32)[:, None], (*outer, n, 1))
    flat = ops._np_reshape(data, newshape=(batch, n, width))
    score = flat[:, :, score_index]
    valid = ops._npi_greater_scalar(widen(score), scalar=valid_thresh)
    if id_index >= 0:
        valid = ops._npi_logical_and(valid, ops._npi_not_equal_scalar(flat[:, :, id_index], scalar=background_id))
    order = ops.argsort(ops._npi_where_rscalar(valid, -score, scalar=math.inf), axis=1, dtype="int64")
    counts = ops._np_sum(valid, axis=1)
    if 0 < topk < n:
        counts = ops._minimum_scalar(counts, scalar=topk)
    ordered = rows_at(flat, order)
    boxes = ordered[:, :, coord_start:coord_start + 4]
    grouped = id_index >= 0 and not force_suppress
    groups = [ordered[:, :, id_index]] if grouped else []
    alive = ops._survivors(boxes, counts, *groups, threshold=overlap_thresh, form=in_format, grouped=grouped)
    if in_format != out_format:
        converted = stack_coordinates((to_corners if out_format == "corner" else to_centers)(columns(boxes)))
        # MXNet takes a negative first coordinate for the mark of a removed box.
        converted = ops._npi_where(ops._npi_less_scalar(boxes[:, :, :1], scalar=0.0), boxes, converted)
        ordered = ops.Concat(ordered[:, :, :coord_start], converted, ordered[:, :, coord_start + 4:], num_args=3, dim=2)
    first = ops.argsort(ops._npi_logical_not(alive), axis=1, dtype="int64")
    alive = first_of(ops._np_sum(alive, axis=1), n)
    survivors = ops._npi_where_rscalar(alive[:, :, None], rows_at(ordered, first), scalar=-1.0)
    places = ops._take_along_axis(order, first, axis=1)
    places = ops._npi_where(alive, places, -1 - places)
    return ops._np_reshape(survivors, newshape=data.shape), ops.Cast(
        ops._np_reshape(places, newshape=(*outer, n, 1)), dtype="int32")


declare_form(box_nms, "(..., boxes, elements) -> (..., boxes, elements) (..., boxes, 1)")


@box_nms.grad
def box_nms_grad(g, ins, outs):
    places = ops.broadcast_like(outs[1], ins[0])
    survives = places >= 0
    g = ops.where(survives, g[0], ops.zeros_like(g[0]))
    return (ops._backward_take_along_axis(g, ops.where(survives, places, -1 - places), ins[0], axis=-2),)


# --------------------------------------------------------------------------------------------- box_iou


@composed(name="_contrib_box_iou", types="*T:floating->*T")
def box_iou(lhs, rhs, *, format: Format = "corner"):
    """Intersection over union of each box of ``lhs`` (..., 4) with each box of ``rhs``."""
    a = columns(ops._np_reshape(lhs, newshape=(math.prod(lhs.shape[:-1]), 1, 4)))
    b = columns(ops._np_reshape(rhs, newshape=(1, math.prod(rhs.shape[:-1]), 4)))
    return ops._np_reshape(overlaps(a, b, format), newshape=(*lhs.shape[:-1], *rhs.shape[:-1]))


declare_form(box_iou, "(...left, 4) (...right, 4) -> (...left, ...right)")
box_iou.grad(ZERO)


# ------------------------------------------------------------------------------------ bipartite matching


@composed(name="_contrib_bipartite_matching", types="*T:floating->*T", outputs=("output0", "output1"))
def bipartite_matching(data, *, is_ascend: bool = False, threshold: float, topk: int = -1):
    """One-to-one matching of rows and columns of a score matrix (..., rows, columns), the best score first.

    The outputs are the column of each row and the row of each column, or -1 without a match. A match has a score above
    ``threshold``,
    or below it with ``is_ascend``, where the smallest score is best; a positive ``topk`` is one less than the largest
    number of matches.
    """
    most = topk + 1 if topk > 0 else -1  # MXNet counts a match after it is made
    matches = ops._matching(-data if is_ascend else data, above=-threshold if is_ascend else threshold, most=most)
    return tuple([ops.Cast(places, dtype=data.dtype) for places in matches])


declare_form(bipartite_matching, "(..., rows, columns) -> (..., rows) (..., columns)")
bipartite_matching.grad(ZERO)


# ------------------------------------------------------------------------------------- encode and decode


def offsets(anchors: Sequence[Any], boxes: Sequence[Any]) -> list[Any]:
    """Offsets from anchors to boxes, both given by center and sides: distances in sides of the anchor, logarithms of
    ratios of sides.

    S. Ren, K. He, R. Girshick, J. Sun, Faster R-CNN, 2015, equation 2.
    """
    ax, ay, aw, ah = anchors
    x, y, w, h = boxes
    return [(x - ax) / aw, (y - ay) / ah, ops.log(w / aw), ops.log(h / ah)]


def decode_boxes(anchors: Sequence[Any], steps: Sequence[Any], factors: tuple[float, ...], most: float = -1.0
                 ) -> list[Any]:
    """Corners of the boxes that ``steps``, multiplied by ``factors``, encode relative to anchors.

    Steps are offsets of the center, divided by the sides of the anchor, and logarithms of the ratios of the sides, of
    which none exceeds ``most`` if that is positive.
    """
    x, y, width, height = anchors
    dx, dy, dw, dh = [step * factor for step, factor in zip(steps, factors)]
    if most > 0:
        dw, dh = [ops._minimum_scalar(step, scalar=most) for step in (dw, dh)]
    x, y = dx * width + x, dy * height + y
    width, height = ops.exp(dw) * width * 0.5, ops.exp(dh) * height * 0.5
    return [x - width, y - height, x + width, y + height]


@composed(name="_contrib_box_encode", types="*T:floating->*T", outputs=("output0", "output1"))
def box_encode(samples, matches, anchors, refs, means, stds):
    """Regression targets of a detector: the offsets from ``anchors`` to their matched boxes ``refs[matches]``.

    Anchors (batch, n, 4) and boxes (batch, m, 4) are given by corners, ``matches`` and ``samples`` have the shape
    (batch, n). The first output is ``(offsets - means) / stds`` where ``samples`` is above 0.5, and zero elsewhere; the
    second is the mask of these positions.
    """
    places = ops.clip(ops.Cast(matches, dtype="int64"), a_min=0, a_max=max(refs.shape[1] - 1, 0))
    codes = stack_coordinates(offsets(*[to_centers(columns(boxes)) for boxes in (anchors, rows_at(refs, places))]))
    codes = ops.broadcast_div(ops.broadcast_sub(codes, means), stds)
    chosen = ops._npi_greater_scalar(samples, scalar=0.5)[:, :, None]
    return ops._npi_where_rscalar(chosen, codes, scalar=0.0), ops.Cast(
        ops.broadcast_to(chosen, shape=anchors.shape), dtype=anchors.dtype)


declare_form(box_encode,
             "(batch, n) (batch, n) (batch, n, 4) (batch, boxes > 0, 4) (4) (4) -> (batch, n, 4) (batch, n, 4)")
box_encode.grad(ZERO)


@composed(name="_contrib_box_decode", types="*T:floating->*T")
def box_decode(data, anchors, *, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0,
               clip: float = -1.0, format: Format = "center"):
    """Boxes decoded from offsets ``data`` (batch, n, 4) to anchors (1, n, 4), as corners.

    The offsets are first multiplied by ``std0`` to ``std3``. A positive ``clip`` is the upper bound of the last two,
    which are logarithms of ratios of sides.
    """
    around = columns(anchors)
    if format == "corner":
        around = to_centers(around)
    return stack_coordinates(decode_boxes(around, columns(data), (std0, std1, std2, std3), clip))


declare_form(box_decode, "(batch, n, 4) (1, n, 4) -> (batch, n, 4)")
box_decode.grad(ZERO)

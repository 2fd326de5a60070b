"""Boxes of detectors: overlap, non-maximum suppression, matching, and offsets from anchors.

A box is four elements along the last axis: its corners (left, top, right, bottom), or its center and sides
(x, y, width, height).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.spec import show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import formed
from ..outputs import wide

__all__ = ["apart", "ratio", "survivors", "one_by_one", "offsets", "moved"]

Format = Literal["center", "corner"]

#: Corners and areas, as five arrays or as one array of them.
Arrays = Array | Sequence[Array]

#: Number of boxes compared with all later ones at once.
BLOCK = 32


def apart(boxes: Array, axis: int = -1) -> tuple[Array, Array, Array, Array]:
    """The four coordinates of boxes, as separate arrays."""
    first, second, third, fourth = [boxes[(slice(None),) * (axis % boxes.ndim) + (i,)] for i in range(4)]
    return first, second, third, fourth


def _corners(xp: ArrayModule, boxes: Array, form: Format) -> Array:
    """The corners of boxes."""
    if form == "corner":
        return boxes
    x, y, width, height = apart(boxes)
    width, height = width / 2, height / 2
    return xp.stack((x - width, y - height, x + width, y + height), axis=-1)


def _centers(xp: ArrayModule, boxes: Array, form: Format) -> Array:
    """The centers and sides of boxes."""
    if form == "center":
        return boxes
    left, top, right, bottom = apart(boxes)
    width, height = right - left, bottom - top
    return xp.stack((left + width / 2, top + height / 2, width, height), axis=-1)


def _area(xp: ArrayModule, boxes: Array, form: Format) -> Array:
    """The areas of boxes; 0 if a side is negative."""
    left, top, right, bottom = apart(boxes)
    width, height = (right, bottom) if form == "center" else (right - left, bottom - top)
    return xp.where((width < 0) | (height < 0), 0, width * height).astype(boxes.dtype)


def _common(xp: ArrayModule, a: Arrays, b: Arrays, border: int = 0) -> Array:
    """The area of the intersection of boxes, each given by four arrays of corners. With ``border=1`` boxes include
    their last pixel."""
    width = xp.minimum(a[2], b[2]) - xp.maximum(a[0], b[0]) + border
    height = xp.minimum(a[3], b[3]) - xp.maximum(a[1], b[1]) + border
    return xp.maximum(width, 0) * xp.maximum(height, 0)


def ratio(xp: ArrayModule, a: Arrays, b: Arrays, border: int = 0) -> Array:
    """The intersection over union of boxes.

    ``a`` and ``b`` are five arrays each: corners and area.
    """
    both = _common(xp, a, b, border)
    return both / (a[4] + b[4] - both)


# -------------------------------------------------------------------------------------------- one by one
# Both choose greedily, the best first, and each choice rules out others. The loops are over choices alone.


def survivors(xp: ArrayModule, alive: Array, rows: Array, clash: Callable[[Array, Array], Array],
              groups: Array | None = None, most: int | None = None) -> Array:
    """Mask of the boxes that remain when each, in order, removes the later ones that it overlaps too much.

    Parameters
    ----------
    alive : (batch, n) bools
        The boxes that take part; it is not modified.
    rows : (k, batch, n)
        Data of the boxes for ``clash(one, others)``, which gets slices of it that broadcast.
    groups : (batch, n)
        Groups of the boxes; only boxes of the same group remove each other.
    most : int
        Number of remaining boxes after which it may stop.
    """
    if xp is np:
        return _kept_on_host(alive, rows, clash, groups, alive.shape[1] if most is None else most)
    alive, n = alive.copy(), alive.shape[1]
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        hits = clash(rows[:, :, start:stop, None], rows[:, :, None, start:])
        if groups is not None:
            hits &= groups[:, start:stop, None] == groups[:, None, start:]
        live = alive[:, start:stop]
        for i in range(stop - start):
            later = live[:, i + 1:]
            xp.logical_and(later, ~(hits[:, i, i + 1:stop - start] & live[:, i:i + 1]), out=later)
        later = alive[:, stop:]
        xp.logical_and(later, ~(hits[:, :, stop - start:] & live[:, :, None]).any(axis=1), out=later)
    return alive if most is None else alive & (xp.cumsum(alive, axis=1) <= most)


def _kept_on_host(alive: Array, rows: Array, clash: Callable[[Array, Array], Array], groups: Array | None, most: int
                  ) -> Array:
    """``survivors`` on the host, where values can be read: removed boxes are not compared any more."""
    kept = np.zeros_like(alive)
    for batch in range(alive.shape[0]):
        places = np.flatnonzero(alive[batch])
        parts = [places]
        if groups is not None:
            places = places[np.argsort(groups[batch, places], kind="stable")]
            parts = np.split(places, np.flatnonzero(np.diff(groups[batch, places])) + 1)
        for part in parts:
            rest, count = rows[:, batch, part], 0
            while part.size and count < most:
                size = min(BLOCK, part.size)
                hits = clash(rest[:, :size, None], rest[:, None, :])
                live = np.ones(size, bool)
                for i in range(size):
                    if live[i]:
                        live[i + 1:] &= ~hits[i, i + 1:size]
                kept[batch, part[:size][live]] = True
                count += int(np.count_nonzero(live))
                free = ~hits[live, size:].any(axis=0)
                part, rest = part[size:][free], rest[:, size:][:, free]
    return kept & (np.cumsum(kept, axis=1) <= most)


def one_by_one(xp: ArrayModule, scores: Array, rounds: int, enough: Callable[[Array], Array]) -> Array:
    """The column matched with each row of ``scores`` (batch, n, m), or -1.

    The highest score for which ``enough`` is true matches its row and column, which are then excluded; equal scores are
    taken in the order of rows, then columns. ``scores`` is overwritten.
    """
    batch, n, m = scores.shape
    every, matches = xp.arange(batch), xp.full((batch, n), -1, dtype=xp.int64)
    for _ in range(rounds if scores.size else 0):
        best = xp.argmax(scores.reshape(batch, n * m), axis=1)
        row, column = best // m, best % m
        good = enough(scores[every, row, column])
        matches[every, row] = xp.where(good, column, matches[every, row])
        scores[every, row] = -math.inf
        scores[every, :, column] = -math.inf
    return matches


def _matched(xp: ArrayModule, columns: Array, count: int) -> Array:
    """The row matched with each of ``count`` columns, or -1."""
    hit = columns[:, :, None] == xp.arange(count)
    rows = xp.arange(columns.shape[1])[:, None]
    return xp.where(hit, rows + 1, 0).sum(axis=1) - 1


# --------------------------------------------------------------------------------------------------- nms


@declare(name="_contrib_box_nms", types="T:floating->T,int32", aliases=("_contrib_box_non_maximum_suppression",),
         outputs=("output0", "output1"), visible=lambda: 1)
def box_nms(data, *, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
            score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False,
            in_format: Format = "corner", out_format: Format = "corner"):
    """Non-maximum suppression: boxes in descending order of score, without those that overlap a better one; the rest is
    -1.

    ``data`` (..., boxes, elements) holds four coordinates from ``coord_start`` on, a score and, if ``id_index`` is not
    negative, a class; only boxes of one class suppress each other unless ``force_suppress``. Boxes of class
    ``background_id`` and those whose score is not above ``valid_thresh`` are removed first; of the others the ``topk``
    best take part. The hidden second output holds the origin of each box: i, or -1 - i for a removed one.
    """


@box_nms.infer
def box_nms_infer(data, *, coord_start, score_index, id_index):
    if len(data) < 2:
        raise ShapeError(f"data: expected axes (..., boxes, numbers), got shape {show(data)}")
    if coord_start < 0 or data[-1] < coord_start + 4:
        raise AttrError(f"coord_start={coord_start}: four coordinates do not fit in {data[-1]} numbers a box")
    for name, index in (("score_index", score_index), ("id_index", id_index)):
        if (index < 0 and name == "score_index") or data[-1] <= index:
            raise AttrError(f"{name}={index} is out of range for {data[-1]} numbers a box")
    return [data, (*data[:-1], 1)]


@box_nms.kernel()  # no body: boxes are removed one after the other
def box_nms_xp(xp, data, *, overlap_thresh, valid_thresh, topk, coord_start, score_index, id_index, background_id,
               force_suppress, in_format, out_format):
    n, width = data.shape[-2:]
    flat = data.reshape(math.prod(data.shape[:-2]), n, width)
    if topk == 0 or flat.size == 0:
        return data, xp.broadcast_to(xp.arange(n)[:, None], (*data.shape[:-1], 1))
    score = flat[:, :, score_index]
    valid = wide(score) > valid_thresh
    if id_index >= 0:
        valid &= flat[:, :, id_index] != background_id
    order = xp.argsort(xp.where(valid, -score, math.inf), axis=1, kind="stable")
    alive = xp.take_along_axis(valid, order, axis=1)
    if 0 < topk < n:
        alive &= xp.arange(n) < topk
    ordered = xp.take_along_axis(flat, order[:, :, None], axis=1)
    boxes = ordered[:, :, coord_start:coord_start + 4]
    corners = _corners(xp, boxes, in_format)
    rows = xp.stack((*apart(corners), _area(xp, boxes, in_format)))
    groups = None if force_suppress or id_index < 0 else ordered[:, :, id_index]
    alive = survivors(xp, alive, rows, lambda a, b: wide(ratio(xp, a, b)) > overlap_thresh, groups)
    if in_format != out_format:
        converted = corners if out_format == "corner" else _centers(xp, boxes, in_format)
        # MXNet takes a negative first coordinate for the mark of a removed box.
        ordered[:, :, coord_start:coord_start + 4] = xp.where(boxes[:, :, :1] < 0, boxes, converted)
    first = xp.argsort(~alive, axis=1, kind="stable")
    alive = xp.take_along_axis(alive, first, axis=1)[:, :, None]
    survivors_first = xp.where(alive, xp.take_along_axis(ordered, first[:, :, None], axis=1), -1)
    places = xp.take_along_axis(order, first, axis=1)[:, :, None]
    return survivors_first.reshape(data.shape), xp.where(alive, places, -1 - places).reshape(*data.shape[:-1], 1)


@box_nms.grad
def box_nms_grad(g, ins, outs):
    places = ops.broadcast_like(outs[1], ins[0])
    kept = places >= 0
    g = ops.where(kept, g[0], ops.zeros_like(g[0]))
    return (ops._backward_take_along_axis(g, ops.where(kept, places, -1 - places), ins[0], axis=-2),)


# --------------------------------------------------------------------------------------------- box_iou


@declare(name="_contrib_box_iou", types="*T:floating->*T")
def box_iou(lhs, rhs, *, format: Format = "corner"):
    """Intersection over union of each box of ``lhs`` (..., 4) with each box of ``rhs``."""


formed(box_iou, "(...left, 4) (...right, 4) -> (...left, ...right)")


@box_iou.kernel()  # no body: as for box_decode
def box_iou_xp(xp, lhs, rhs, *, format):
    sides = [array.reshape(-1, 4) for array in (lhs, rhs)]
    a, b = [(*apart(_corners(xp, side, format)), _area(xp, side, format)) for side in sides]
    both = _common(xp, [side[:, None] for side in a], b)
    either = a[4][:, None] + b[4] - both
    overlap = xp.where(either > 0, both / xp.where(either > 0, either, 1), 0)
    return overlap.reshape(*lhs.shape[:-1], *rhs.shape[:-1])


box_iou.grad(ZERO)


# ------------------------------------------------------------------------------------ bipartite matching


@declare(name="_contrib_bipartite_matching", types="*T:floating->*T", outputs=("output0", "output1"))
def bipartite_matching(data, *, is_ascend: bool = False, threshold: float, topk: int = -1):
    """One-to-one matching of rows and columns of a score matrix (..., rows, columns), the best score first.

    The outputs are for each row its column and for each column its row, or -1. A match has a score above ``threshold``,
    or below it with ``is_ascend``, where the smallest score is best; a positive ``topk`` is one less than the largest
    number of matches.
    """


formed(bipartite_matching, "(..., rows, columns) -> (..., rows) (..., columns)")


@bipartite_matching.kernel()  # no body: one match after the other
def bipartite_matching_xp(xp, data, *, is_ascend, threshold, topk):
    n, m = data.shape[-2:]
    scores = (-data if is_ascend else data).reshape(math.prod(data.shape[:-2]), n, m)
    scores = xp.where(xp.isnan(scores), -math.inf, scores)
    least = -threshold if is_ascend else threshold
    rounds = min(n, m, topk + 1) if topk > 0 else min(n, m)  # MXNet counts only after the match
    columns = one_by_one(xp, scores, rounds, lambda best: best > least)
    return columns.reshape(data.shape[:-1]), _matched(xp, columns, m).reshape(*data.shape[:-2], m)


bipartite_matching.grad(ZERO)


# ------------------------------------------------------------------------------------- encode and decode


def offsets(xp: ArrayModule, anchors: Arrays, boxes: Arrays) -> tuple[Array, Array, Array, Array]:
    """Offsets from anchors to boxes, both given by center and sides: distances in sides of the anchor, logarithms of
    ratios of sides.

    S. Ren, K. He, R. Girshick, J. Sun, Faster R-CNN, 2015, equation 2.
    """
    ax, ay, aw, ah = anchors
    x, y, w, h = boxes
    return (x - ax) / aw, (y - ay) / ah, xp.log(w / aw), xp.log(h / ah)


def moved(xp: ArrayModule, anchors: Arrays, steps: Arrays, factors: tuple[float, ...], most: float = -1.0) -> Array:
    """Corners of the boxes that offsets, times factors, lead to from anchors by center and sides; ``most``, if
    positive, is the largest logarithm of a ratio."""
    x, y, width, height = anchors
    dw, dh = steps[2] * factors[2], steps[3] * factors[3]
    if most > 0:
        dw, dh = xp.minimum(dw, most), xp.minimum(dh, most)
    x, y = steps[0] * factors[0] * width + x, steps[1] * factors[1] * height + y
    width, height = xp.exp(dw) * width / 2, xp.exp(dh) * height / 2
    return xp.stack((x - width, y - height, x + width, y + height), axis=-1)


@declare(name="_contrib_box_encode", types="*T:floating->*T", outputs=("output0", "output1"))
def box_encode(samples, matches, anchors, refs, means, stds):
    """Regression targets of a detector: the offsets from ``anchors`` to their matched boxes ``refs[matches]``.

    Anchors (batch, n, 4) and boxes (batch, m, 4) are given by corners, ``matches`` and ``samples`` have the shape
    (batch, n). The four offsets minus ``means``, divided by ``stds``, are given where ``samples`` is above 0.5, and
    zeros elsewhere; the second output is the mask of these positions.
    """


formed(box_encode, "(batch, n) (batch, n) (batch, n, 4) (batch, boxes > 0, 4) (4) (4) -> (batch, n, 4) (batch, n, 4)")


@box_encode.kernel()  # no body: as for box_decode
def box_encode_xp(xp, samples, matches, anchors, refs, means, stds):
    places = xp.clip(matches.astype(xp.int64), 0, max(refs.shape[1] - 1, 0))
    matched = xp.take_along_axis(refs, places[:, :, None], axis=1)
    steps = offsets(xp, apart(_centers(xp, anchors, "corner")), apart(_centers(xp, matched, "corner")))
    codes = (xp.stack(steps, axis=-1) - means) / stds
    chosen = (samples > 0.5)[:, :, None]
    return xp.where(chosen, codes, 0), xp.broadcast_to(chosen, anchors.shape)


box_encode.grad(ZERO)


@declare(name="_contrib_box_decode", types="*T:floating->*T")
def box_decode(data, anchors, *, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0,
               clip: float = -1.0, format: Format = "center"):
    """The corners of the boxes at offsets (batch, n, 4), times ``std0`` to ``std3``, from anchors (1, n, 4).

    A positive ``clip`` is an upper bound of the logarithm of a ratio of sides.
    """


formed(box_decode, "(batch, n, 4) (1, n, 4) -> (batch, n, 4)")


@box_decode.kernel()  # no body: columns are views here; a body takes 50% longer for a few boxes
def box_decode_xp(xp, data, anchors, *, std0, std1, std2, std3, clip, format):
    return moved(xp, apart(_centers(xp, anchors, format)), apart(data), (std0, std1, std2, std3), clip)


box_decode.grad(ZERO)

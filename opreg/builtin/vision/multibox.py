"""Single-shot detection: prior boxes, training targets, and decoding of predictions.

W. Liu and others, SSD: Single Shot MultiBox Detector, 2016. Boxes are given by corners, in fractions of the image.
"""

from __future__ import annotations

import math
from typing import Annotated

from ...core.attrs import Limit
from ...core.declarations import ZERO
from ...core.registry import declare
from ...core.spec import show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import formed
from ..outputs import wide
from .boxes import apart, moved, offsets, one_by_one, ratio, survivors

__all__: list[str] = []

_VARIANCES = (0.1, 0.1, 0.2, 0.2)

#: Divisor of offsets.
Variances = Annotated[tuple[float, ...], Limit("of four", lambda numbers: len(numbers) == 4)]


def _of_four(xp: ArrayModule, boxes: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Corners and area of boxes."""
    left, top, right, bottom = apart(boxes)
    return left, top, right, bottom, (right - left) * (bottom - top)


def _centered(xp: ArrayModule, boxes: Array) -> tuple[Array, Array, Array, Array]:
    """Center and sides of boxes."""
    left, top, right, bottom = apart(boxes)
    return (left + right) * 0.5, (top + bottom) * 0.5, right - left, bottom - top


# ------------------------------------------------------------------------------------------------- prior


@declare(name="_contrib_MultiBoxPrior", types="*T:floating->*T", aliases=("MultiBoxPrior",), unread=(0,))
def prior(data, *, sizes: tuple[float, ...] = (1.0,), ratios: tuple[float, ...] = (1.0,), clip: bool = False,
          steps: tuple[float, ...] = (-1.0, -1.0), offsets: tuple[float, ...] = (0.5, 0.5)):
    """Prior boxes around each position of the feature map ``data`` (batch, channel, height, width), whose values are
    not read.

    A place has one box of each size with the first ratio of width to height, and one of the first size with each
    further ratio. ``steps`` between places and ``offsets`` of the first, in steps, are (y, x); steps of -1 cover
    the image. Gives (1, boxes, 4).
    """


@prior.infer
def prior_infer(data, *, sizes, ratios, steps, offsets):
    if len(data) != 4:
        raise ShapeError(f"data: expected shape (batch, channel, height, width), got {show(data)}")
    for name, values in (("sizes", sizes), ("ratios", ratios)):
        if not values or min(values) <= 0:
            raise AttrError(f"{name}={values}: expected positive numbers")
    for name, values in (("steps", steps), ("offsets", offsets)):
        if len(values) != 2:
            raise AttrError(f"{name}={values}: expected two numbers, y and x")
    return (1, data[2] * data[3] * (len(sizes) + len(ratios) - 1), 4)


@prior.kernel()  # no body: it reads no array
def prior_xp(xp, data, *, sizes, ratios, clip, steps, offsets):
    height, width = data.shape[2:]
    dtype = wide(data[:0]).dtype
    shapes = [(size, math.sqrt(ratios[0])) for size in sizes] + [(sizes[0], math.sqrt(ratio)) for ratio in ratios[1:]]
    half_width = xp.asarray([size * height / max(width, 1) * root / 2 for size, root in shapes], dtype=dtype)
    half_height = xp.asarray([size / root / 2 for size, root in shapes], dtype=dtype)
    y, x = [(xp.arange(count).astype(dtype) + offset) * (step if step > 0 else 1 / max(count, 1))
            for count, offset, step in zip((height, width), offsets, steps)]
    x, y = x[:, None], y[:, None, None]
    boxes = xp.stack(xp.broadcast_arrays(x - half_width, y - half_height, x + half_width, y + half_height), axis=-1)
    return (xp.clip(boxes, 0, 1) if clip else boxes).reshape(1, -1, 4)


prior.grad(ZERO)


# ------------------------------------------------------------------------------------------------ target


@declare(name="_contrib_MultiBoxTarget", types="*T:floating->*T", aliases=("MultiBoxTarget",),
         outputs=("loc_target", "loc_mask", "cls_target"))
def target(anchor, label, cls_pred, *, overlap_threshold: float = 0.5, ignore_label: float = -1.0,
           negative_mining_ratio: float = -1.0, negative_mining_thresh: float = 0.5,
           minimum_negative_samples: int = 0, variances: Variances = _VARIANCES):
    """Training targets for the boxes of ``anchor`` (1, n, 4), given the objects in ``label``.

    ``label`` (batch, objects, 5 or more) holds a class and a box each; the first class -1 ends the list.
    ``cls_pred`` (batch, classes, n), class 0 the background, decides which anchors without object are hard.

    Every object takes the anchor it overlaps most, the best pair first; further anchors take the object they
    overlap most if by more than ``overlap_threshold``. The hardest of the others, ``negative_mining_ratio`` for each
    that has an object, are background if they overlap any object less than ``negative_mining_thresh``, or all are
    if the ratio is not positive. The rest is ``ignore_label``, as is everything in an image without objects.
    ``minimum_negative_samples`` has no effect.

    Gives offsets divided by ``variances`` (batch, 4 n), a mask of those that count, and classes (batch, n).
    """


formed(target, "(1, n, 4) (batch, objects, numbers > 4) (batch, classes, n) -> (batch, 4n) (batch, 4n) (batch, n)")


def _matches(xp: ArrayModule, overlaps: Array, threshold: float) -> tuple[Array, Array, Array]:
    """The object of each anchor, whether they match, and their overlap, from ``overlaps`` (batch, n, objects)."""
    count = overlaps.shape[2]
    column = one_by_one(xp, overlaps.copy(), min(overlaps.shape[1:]), lambda best: best > 1e-6)
    best = xp.where(column >= 0, column, xp.argmax(overlaps, axis=2) if count else 0)
    overlap = xp.take_along_axis(overlaps, best[:, :, None], axis=2)[:, :, 0]
    positive = column >= 0
    if threshold > 0:
        positive = positive | (overlap > threshold)
    return best, positive, overlap


@target.kernel()  # no body: one match after the other
def target_xp(xp, anchor, label, cls_pred, *, overlap_threshold, ignore_label, negative_mining_ratio,
              negative_mining_thresh, variances):
    (batch, n), objects = (label.shape[0], anchor.shape[1]), label.shape[1]
    if batch * n * objects == 0:
        zeros = xp.zeros((batch, n * 4), label.dtype)
        return zeros, zeros, xp.full((batch, n), ignore_label, dtype=label.dtype)
    anchor, label, cls_pred = wide(anchor), wide(label), wide(cls_pred)
    is_object = xp.cumsum(label[:, :, 0] == -1, axis=1) == 0
    anchor_sides = [side[:, :, None] for side in _of_four(xp, anchor)]
    label_sides = [side[:, None, :] for side in _of_four(xp, label[:, :, 1:5])]
    overlaps = ratio(xp, anchor_sides, label_sides)
    overlaps = xp.where(xp.isnan(overlaps), 0, overlaps)
    overlaps = xp.where(is_object[:, None, :], overlaps, -1).astype(label.dtype)
    best, positive, overlap = _matches(xp, overlaps, overlap_threshold)
    has_objects = is_object.any(axis=1)[:, None]
    positive &= has_objects
    if negative_mining_ratio > 0:
        free = (overlap < negative_mining_thresh) & ~positive & has_objects
        background = _hard(xp, cls_pred, free, positive.sum(axis=1), negative_mining_ratio)
    else:
        background = has_objects & ~positive
    matched = xp.take_along_axis(label, best[:, :, None], axis=1)
    steps = offsets(xp, _centered(xp, anchor), _centered(xp, matched[:, :, 1:5]))
    codes = xp.stack([step / variance for step, variance in zip(steps, variances)], axis=-1)
    mask = positive[:, :, None]
    classes = xp.where(positive, matched[:, :, 0] + 1, xp.where(background, 0, ignore_label))
    return (xp.where(mask, codes, 0).reshape(batch, -1),
            xp.broadcast_to(mask, (batch, n, 4)).reshape(batch, -1), classes)


def _hard(xp: ArrayModule, cls_pred: Array, free: Array, objects: Array, share: float) -> Array:
    """Hard negatives: the unmatched anchors with the lowest probability of background, ``share`` times as many as
    objects."""
    top = cls_pred.max(axis=1)
    sure = xp.exp(cls_pred[:, 0] - top) / xp.exp(cls_pred - top[:, None]).sum(axis=1)
    order = xp.argsort(xp.where(free, sure, math.inf), axis=1, kind="stable")
    return free & (xp.argsort(order, axis=1) < xp.floor(objects * share)[:, None])


target.grad(ZERO)


# --------------------------------------------------------------------------------------------- detection


@declare(name="_contrib_MultiBoxDetection", types="*T:floating->*T", aliases=("MultiBoxDetection",))
def detection(cls_prob, loc_pred, anchor, *, clip: bool = True, threshold: float = 0.01, background_id: int = 0,
              nms_threshold: float = 0.5, force_suppress: bool = False, variances: Variances = _VARIANCES,
              nms_topk: int = -1):
    """Decoded detections: rows of (class, score, left, top, right, bottom) in descending order of score.

    ``cls_prob`` (batch, classes, n) are probabilities, class 0 the background; ``loc_pred`` (batch, 4 n) are offsets
    times ``variances`` from the boxes of ``anchor`` (1, n, 4). Boxes below ``threshold`` are left out; of the
    ``nms_topk`` best, one that overlaps a better one of its class, or of any with ``force_suppress``, by
    ``nms_threshold`` gets the class -1. Remaining rows are -1.
    """


formed(detection, "(batch, classes, n) (batch, 4n) (1, n, 4) -> (batch, n, 6)")


@detection.kernel()  # no body: boxes are removed one after the other
def detection_xp(xp, cls_prob, loc_pred, anchor, *, clip, threshold, nms_threshold, force_suppress, variances,
                 nms_topk):
    batch, classes, n = cls_prob.shape
    if batch * n == 0 or classes < 2:
        return xp.full((batch, n, 6), -1, dtype=cls_prob.dtype)
    cls_prob, loc_pred, anchor = wide(cls_prob), wide(loc_pred), wide(anchor)
    kind = xp.argmax(cls_prob[:, 1:], axis=1)
    score = xp.take_along_axis(cls_prob[:, 1:], kind[:, None], axis=1)[:, 0]
    valid = (score > -1) & (score >= threshold)
    boxes = moved(xp, _centered(xp, anchor), apart(loc_pred.reshape(batch, n, 4)), variances)
    boxes = xp.clip(boxes, 0, 1) if clip else boxes
    rows = xp.concatenate((kind[:, :, None].astype(boxes.dtype), score[:, :, None], boxes), axis=2)
    suppress, top = 0 < nms_threshold <= 1, nms_topk if 0 < nms_topk < n else n
    order = xp.argsort(xp.where(valid, -score if suppress else 0, math.inf), axis=1, kind="stable")
    if suppress and top < n:  # after the best boxes come others in the order of anchors, as in MXNet
        order = xp.where(xp.arange(n) < top, order, xp.argsort(~valid, axis=1, kind="stable"))
    valid = xp.take_along_axis(valid, order, axis=1)
    rows = xp.take_along_axis(rows, order[:, :, None], axis=1)
    if suppress:
        kept = survivors(xp, valid & (xp.arange(n) < top), xp.stack(_of_four(xp, rows[:, :, 2:])),
                         lambda one, others: ratio(xp, one, others) >= nms_threshold,
                         None if force_suppress else rows[:, :, 0])
        rows[:, :, 0] = xp.where(kept, rows[:, :, 0], -1)
    return xp.where(valid[:, :, None], rows, -1)


detection.grad(ZERO)

"""Single-shot detection: prior boxes, training targets, and decoding of predictions.

W. Liu and others, SSD: Single Shot MultiBox Detector, 2016. Boxes are given by corners, in fractions of the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from ...core.attrs import Limit
from ...core.declarations import ZERO
from ...core.registry import ops
from ...core.spec import show
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ...typing import Array, DTypeLike
from ..forms import declare_form
from ..outputs import in_dtype_of, widen
from .boxes import columns, decode_boxes, first_of, offsets, overlaps, rows_at, stack_coordinates

_VARIANCES = (0.1, 0.1, 0.2, 0.2)

#: Divisor of offsets.
Variances = Annotated[tuple[float, ...], Limit("of four", lambda numbers: len(numbers) == 4)]


def _center_and_sides(boxes: Any) -> list[Any]:
    """Center and sides, as four coordinates, of boxes by corners."""
    left, top, right, bottom = columns(boxes)
    return [(left + right) * 0.5, (top + bottom) * 0.5, right - left, bottom - top]


# ------------------------------------------------------------------------------------------------- prior


@composed(name="_contrib_MultiBoxPrior", types="*T:floating->*T", aliases=("MultiBoxPrior", "_npx_multibox_prior"),
          unread=(0,))
def prior(data, *, sizes: tuple[float, ...] = (1.0,), ratios: tuple[float, ...] = (1.0,), clip: bool = False,
          steps: tuple[float, ...] = (-1.0, -1.0), offsets: tuple[float, ...] = (0.5, 0.5)):
    """Prior boxes around each position of the feature map ``data`` (batch, channel, height, width), whose values are
    not read.

    A position has one box of each size with the first ratio of width to height, and one of the first size with each
    further ratio. ``steps`` (y, x) are the distances between positions, and -1 divides the image evenly; ``offsets``
    (y, x) place the first position, in steps. The output has shape (1, boxes, 4).
    """
    if len(data.shape) != 4:
        raise ShapeError(f"data: expected shape (batch, channel, height, width), got {show(data.shape)}")
    for name, values in (("sizes", sizes), ("ratios", ratios)):
        if not values or min(values) <= 0:
            raise AttrError(f"{name}={values}: expected positive numbers")
    for name, values in (("steps", steps), ("offsets", offsets)):
        if len(values) != 2:
            raise AttrError(f"{name}={values}: expected two numbers, y and x")
    dtype = np.float64 if data.dtype == np.float64 else np.float32
    return constant(lambda height, width: _priors(height, width, sizes, ratios, clip, steps, offsets, dtype),
                    *data.shape[2:])


def _priors(height: int, width: int, sizes: Sequence[float], ratios: Sequence[float], clip: bool,
            steps: Sequence[float], offsets: Sequence[float], dtype: DTypeLike) -> Array:
    """The prior boxes of a feature map."""
    shapes = [(size, math.sqrt(ratios[0])) for size in sizes] + [(sizes[0], math.sqrt(ratio)) for ratio in ratios[1:]]
    half_width = np.asarray([size * height / max(width, 1) * root / 2 for size, root in shapes], dtype)
    half_height = np.asarray([size / root / 2 for size, root in shapes], dtype)
    y, x = [(np.arange(count, dtype=dtype) + offset) * (step if step > 0 else 1 / max(count, 1))
            for count, offset, step in zip((height, width), offsets, steps)]
    x, y = x[:, None], y[:, None, None]
    boxes = np.stack(np.broadcast_arrays(x - half_width, y - half_height, x + half_width, y + half_height), axis=-1)
    return (np.clip(boxes, 0, 1) if clip else boxes).reshape(1, -1, 4)


prior.grad(ZERO)


# ------------------------------------------------------------------------------------------------ target


@composed(name="_contrib_MultiBoxTarget", types="*T:floating->*T", aliases=("MultiBoxTarget", "_npx_multibox_target"),
          outputs=("loc_target", "loc_mask", "cls_target"))
def target(anchor, label, cls_pred, *, overlap_threshold: float = 0.5, ignore_label: float = -1.0,
           negative_mining_ratio: float = -1.0, negative_mining_thresh: float = 0.5,
           minimum_negative_samples: int = 0, variances: Variances = _VARIANCES):
    """Training targets for the boxes of ``anchor`` (1, n, 4), given the objects in ``label``.

    ``label`` (batch, objects, 5 or more) holds a class and a box each; the first class -1 ends the list.
    ``cls_pred`` (batch, classes, n), with the background as class 0, decides which anchors without an object are hard.

    Each object is matched with the anchor that it overlaps most, the best pair first. Each further anchor is matched
    with the object that it overlaps most, if by more than ``overlap_threshold``. The other anchors are background; with
    a positive ``negative_mining_ratio`` only the hardest of those that overlap every object less than
    ``negative_mining_thresh`` are, at most ``negative_mining_ratio`` times the number of matched anchors. The rest, and
    all anchors of an image
    without objects, have the class ``ignore_label``. ``minimum_negative_samples`` has no effect.

    The outputs are offsets divided by ``variances`` (batch, 4 n), their mask, which is 1 for matched anchors, and
    classes (batch, n).
    """
    (batch, n), objects, dtype = (label.shape[0], anchor.shape[1]), label.shape[1], np.dtype(label.dtype)
    if batch * n * objects == 0:
        zeros = np.zeros((batch, n * 4), dtype)
        return zeros, zeros, np.full((batch, n), ignore_label, dtype)
    anchor, label = widen(anchor), widen(label)
    kinds = label[:, :, 0]
    real = ops._npi_equal_scalar(ops._np_cumsum(ops._npi_equal_scalar(kinds, scalar=-1.0), axis=1), scalar=0.0)
    shared = overlaps(columns(anchor[:, :, None]), columns(label[:, None, :, 1:5]))
    shared = ops._npi_where_rscalar(real[:, None], shared, scalar=-1.0)
    best, positive, overlap = _matches(shared, overlap_threshold)
    background = ops._npi_greater(real[:, :1], positive)
    if negative_mining_ratio > 0:
        free = ops._npi_logical_and(background, ops._npi_less_scalar(overlap, scalar=negative_mining_thresh))
        background = _hard_negatives(widen(cls_pred), free, ops._np_sum(positive, axis=1), negative_mining_ratio)
    matched = rows_at(label, best)
    steps = offsets(_center_and_sides(anchor), _center_and_sides(matched[:, :, 1:5]))
    mask = positive[:, :, None]
    codes = ops._npi_where_rscalar(mask, stack_coordinates([step / each for step, each in zip(steps, variances)]),
                                   scalar=0.0)
    classes = ops._npi_where_lscalar(background, np.full((batch, n), ignore_label, label.dtype), scalar=0.0)
    classes = ops._npi_where(positive, matched[:, :, 0] + 1, classes)
    mask = ops.broadcast_to(ops.Cast(mask, dtype=dtype), shape=(batch, n, 4))
    flat = [ops._np_reshape(array, newshape=(batch, -1)) for array in (codes, mask, classes)]
    return tuple([ops.Cast(array, dtype=dtype) for array in flat])


declare_form(target,
             "(1, n, 4) (batch, objects, numbers > 4) (batch, classes, n) -> (batch, 4n) (batch, 4n) (batch, n)")
target.grad(ZERO)


def _matches(shared: Any, threshold: float) -> tuple[Any, Any, Any]:
    """The object of each anchor, whether they match, and their overlap, from the overlaps (batch, n, objects)."""
    column, _ = ops._matching(shared, above=1e-6)
    positive = ops._npi_greater_equal_scalar(column, scalar=0.0)
    best = ops._npi_where(positive, column, ops._npi_argmax(shared, axis=2))
    overlap = ops.pick(shared, best, axis=2)
    if threshold > 0:
        positive = ops._npi_logical_or(positive, ops._npi_greater_scalar(overlap, scalar=threshold))
    return best, positive, overlap


def _hard_negatives(cls_pred: Any, free: Any, objects: Any, share: float) -> Any:
    """Hard negatives: the unmatched anchors with the lowest probability of background, ``share`` times as many as
    objects."""
    sure = ops.softmax(cls_pred, axis=1)[:, 0]
    order = ops.argsort(ops._npi_where_rscalar(free, sure, scalar=math.inf), axis=1, dtype="int64")
    most = first_of(ops.floor(ops.Cast(objects, dtype="float64") * share), free.shape[1])
    return ops._npi_logical_and(free, ops._backward_take_along_axis(most, order, free, axis=1))


# --------------------------------------------------------------------------------------------- detection


@composed(name="_contrib_MultiBoxDetection", types="*T:floating->*T",
          aliases=("MultiBoxDetection", "_npx_multibox_detection"))
def detection(cls_prob, loc_pred, anchor, *, clip: bool = True, threshold: float = 0.01, background_id: int = 0,
              nms_threshold: float = 0.5, force_suppress: bool = False, variances: Variances = _VARIANCES,
              nms_topk: int = -1):
    """Decoded detections: rows of (class, score, left, top, right, bottom) in descending order of score.

    ``cls_prob`` (batch, classes, n) are probabilities; class 0 is the background. ``loc_pred`` (batch, 4 n), times
    ``variances``, are offsets from the boxes of ``anchor`` (1, n, 4). Boxes below ``threshold`` are left out. Among the
    ``nms_topk`` best, a box that overlaps a better one of its class, or with ``force_suppress`` of any class, by more
    than ``nms_threshold`` gets the class -1. Remaining rows are -1.
    """
    batch, classes, n = cls_prob.shape
    if batch * n == 0 or classes < 2:
        return np.full((batch, n, 6), -1, np.dtype(cls_prob.dtype))
    objects = widen(cls_prob)[:, 1:]
    kind, score = ops.argmax(objects, axis=1), ops.max(objects, axis=1)
    valid = ops._npi_greater_scalar(score, scalar=-1.0) if threshold <= -1 else ops._npi_greater_equal_scalar(
        score, scalar=threshold)
    steps = columns(ops._np_reshape(widen(loc_pred), newshape=(batch, n, 4)))
    boxes = decode_boxes(_center_and_sides(widen(anchor)), steps, variances)
    if clip:
        boxes = [ops.clip(side, a_min=0.0, a_max=1.0) for side in boxes]
    suppress, top = 0 < nms_threshold <= 1, nms_topk if 0 < nms_topk < n else n
    order = of_anchors = ops.argsort(ops._npi_logical_not(valid), axis=1, dtype="int64")
    if suppress:
        order = ops.argsort(ops._npi_where_rscalar(valid, -score, scalar=math.inf), axis=1, dtype="int64")
        if top < n:  # after the best boxes come others in the order of anchors, as in MXNet
            order = ops._npi_where(np.arange(n) < top, order, of_anchors)
    rows = rows_at(ops.stack(kind, score, *boxes, axis=-1, num_args=6), order)
    counts = ops._np_sum(valid, axis=1)
    if suppress:
        kinds, groups = rows[:, :, :1], [] if force_suppress else [rows[:, :, 0]]
        first = counts if top == n else ops._minimum_scalar(counts, scalar=top)
        survivors = ops._survivors(rows[:, :, 2:], first, *groups, threshold=nms_threshold, closed=True,
                                   grouped=not force_suppress)
        kinds = ops._npi_where_rscalar(survivors[:, :, None], kinds, scalar=-1.0)
        rows = ops.Concat(kinds, rows[:, :, 1:], num_args=2, dim=2)
    return in_dtype_of(ops._npi_where_rscalar(first_of(counts, n)[:, :, None], rows, scalar=-1.0), cls_prob)


declare_form(detection, "(batch, classes, n) (batch, 4n) (1, n, 4) -> (batch, n, 6)")
detection.grad(ZERO)

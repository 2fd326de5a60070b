"""Region proposals of a network that scores anchors at each position of a feature map.

S. Ren, K. He, R. Girshick, J. Sun, Faster R-CNN, 2015. Boxes are given by the corner pixels they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.attrs import Positive
from ...core.declarations import ZERO
from ...core.registry import ops
from ...custom.composed import composed
from ...errors import AttrError
from ...typing import Array
from ..forms import declare_form
from ..outputs import in_dtype_of, widen
from .boxes import rows_at, stack_coordinates


def _anchors(stride: int, ratios: tuple[float, ...], scales: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Corners of the anchors at the first position, those of the first ratio of height to width first.

    Sides before scaling are whole pixels.
    """
    for label, values in (("scales", scales), ("ratios", ratios)):
        if not values or min(values) <= 0:
            raise AttrError(f"{label}={values}: expected positive numbers")
    anchors: list[tuple[float, ...]] = []
    center = 0.5 * (stride - 1)
    for aspect in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / aspect)) + 0.5)
        height = math.floor(width * aspect + 0.5)
        for scale in scales:
            x, y = 0.5 * (width * scale - 1), 0.5 * (height * scale - 1)
            anchors.append((center - x, center - y, center + x, center + y))
    return anchors


def _declare(name: str, single: bool) -> None:
    """Declare Proposal, which takes one image, or MultiProposal, which takes a batch."""

    @composed(name=name, types="*T:floating->*T", outputs=("output", "score"),
              visible=lambda *, output_score: 2 if output_score else 1)
    def proposal(cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: Positive = 300,
                 threshold: float = 0.7, rpn_min_size: int = 16, scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
                 ratios: tuple[float, ...] = (0.5, 1.0, 2.0), feature_stride: Positive = 16, output_score: bool = False,
                 iou_loss: bool = False):
        """Region proposals of each image, (image, left, top, right, bottom), without those that overlap a better one.

        ``cls_prob`` (batch, 2 anchors, height, width) holds the scores of all anchors as background, then those as
        objects; ``bbox_pred`` (batch, 4 anchors, height, width) holds offsets of the regions from the anchors;
        ``im_info`` (batch, 3) holds height, width and scale of each image. Anchors have all ``ratios`` and ``scales``,
        and positions are ``feature_stride`` pixels apart. Regions smaller than ``rpn_min_size`` come last. Among the
        ``rpn_pre_nms_top_n`` best regions, those that overlap a better one by more than ``threshold`` are removed; at
        most ``rpn_post_nms_top_n`` remain, and if there are fewer they are repeated. With ``iou_loss``, ``bbox_pred``
        holds distances between corners in pixels.
        """
        return _propose_regions(cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold,
                                rpn_min_size, _anchors(feature_stride, ratios, scales), feature_stride, iou_loss)

    images, rows = ("1", "@rpn_post_nms_top_n") if single else ("images", "@rpn_post_nms_top_n*images")
    declare_form(proposal, lambda *, scales, ratios: (
        f"({images}, {2 * len(scales) * len(ratios)}, height > 0, width > 0) "
        f"({images}, {4 * len(scales) * len(ratios)}, height, width) ({images}, 3) -> ({rows}, 5) ({rows}, 1)"))
    proposal.grad(ZERO)


def _propose_regions(cls_prob: Any, bbox_pred: Any, im_info: Any, first: int, most: int, threshold: float,
                     least_side: int,
                     corners: Sequence[tuple[float, ...]], stride: int, iou_loss: bool) -> tuple[Any, Any]:
    """The body of both operators. Arrays of regions are (batch, anchors, height, width)."""
    (batch, _, height, width), count = cls_prob.shape, len(corners)
    scores, info = widen(cls_prob)[:, count:], widen(im_info)
    high, across, scale = [ops._np_reshape(part, newshape=(batch, 1, 1, 1))
                           for part in ops.SliceChannel(info, num_outputs=3, axis=1, squeeze_axis=True)]
    steps = ops._np_reshape(widen(bbox_pred), newshape=(batch, count, 4, height, width))
    steps = ops.SliceChannel(steps, num_outputs=4, axis=2, squeeze_axis=True)
    sides = [ops._maximum_scalar(ops.broadcast_minimum(side, most_ - 1), scalar=0.0) for side, most_ in zip(
        _regions(steps, _anchor_corners(corners, height, width, stride), iou_loss), (across, high, across, high))]
    outside = ops._npi_logical_or(ops._npi_less_equal(ops.floor(high / stride), np.arange(height)[:, None]),
                                  ops._npi_less_equal(ops.floor(across / stride), np.arange(width)))
    left, top, right, bottom = sides
    least = scale * least_side
    small = ops._npi_logical_or(ops._npi_less(right - left + 1, least), ops._npi_less(bottom - top + 1, least))
    half = ops.broadcast_mul(ops.Cast(small, dtype=scores.dtype), least / 2)
    boxes = stack_coordinates([left - half, top - half, right + half, bottom + half])
    scores = ops._npi_where_lscalar(ops._npi_logical_or(outside, small), scores, scalar=-1.0)
    count *= height * width
    boxes = ops._np_reshape(ops.transpose(boxes, axes=(0, 2, 3, 1, 4)), newshape=(batch, count, 4))
    scores = ops._np_reshape(ops.transpose(scores, axes=(0, 2, 3, 1)), newshape=(batch, count))
    order = ops.argsort(-scores, axis=1, dtype="int64")
    if 0 < first < count:
        order, count = order[:, :first], first
    boxes = rows_at(boxes, order)
    survives = ops._survivors(boxes, np.full(batch, count), threshold=threshold, border=1, most=most)
    survivor_count = ops._maximum_scalar(ops._np_sum(survives, axis=1), scalar=1)[:, None]
    place = ops._npi_mod(np.arange(most)[None], survivor_count)
    place = ops._take_along_axis(ops.argsort(ops._npi_logical_not(survives), axis=1, dtype="int64"), place, axis=1)
    scores = ops._take_along_axis(scores, ops._take_along_axis(order, place, axis=1), axis=1)
    image = np.repeat(np.arange(batch, dtype=boxes.dtype), most)[:, None]
    regions = ops.Concat(image, ops._np_reshape(rows_at(boxes, place), newshape=(-1, 4)), num_args=2, dim=1)
    return in_dtype_of(regions, cls_prob), in_dtype_of(ops._np_reshape(scores, newshape=(-1, 1)), cls_prob)


def _anchor_corners(corners: Sequence[tuple[float, ...]], height: int, width: int, stride: int) -> list[Array]:
    """Corners of the anchors at each position, as four coordinates that broadcast."""
    down, right = np.arange(height)[:, None] * stride, np.arange(width) * stride
    return [side[:, None, None] + start for side, start in zip(np.array(corners).T, (right, down, right, down))]


def _regions(steps: Sequence[Any], anchors: Sequence[Array], iou_loss: bool) -> list[Any]:
    """Corners of the regions, as four coordinates."""
    left, top, far, bottom = anchors
    if iou_loss:
        return [ops.broadcast_add(step, side) for step, side in zip(steps, anchors)]
    dx, dy, dw, dh = steps
    wide, high = far - left + 1, bottom - top + 1
    x, y = dx * wide + (left + 0.5 * (wide - 1)), dy * high + (top + 0.5 * (high - 1))
    half_wide, half_high = 0.5 * (ops.exp(dw) * wide - 1), 0.5 * (ops.exp(dh) * high - 1)
    return [x - half_wide, y - half_high, x + half_wide, y + half_high]


_declare("_contrib_Proposal", single=True)
_declare("_contrib_MultiProposal", single=False)

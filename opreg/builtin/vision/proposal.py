"""Region proposals of a network that scores anchors at each position of a feature map.

S. Ren, K. He, R. Girshick, J. Sun, Faster R-CNN, 2015. Boxes are given by the corner pixels they hold.
"""

from __future__ import annotations

import math

from ...core.declarations import ZERO
from ...core.registry import declare
from ...core.spec import ANY, show
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import wide
from .boxes import apart, ratio, survivors

__all__: list[str] = []


def _anchors(stride: int, ratios: tuple[float, ...], scales: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Corners of the anchors at the first position, those of the first ratio of height to width first.

    Sides before scaling are whole pixels.
    """
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

    @declare(name=name, types="*T:floating->*T", outputs=("output", "score"),
             visible=lambda *, output_score: 2 if output_score else 1)
    def proposal(cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300,
                 threshold: float = 0.7, rpn_min_size: int = 16, scales: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
                 ratios: tuple[float, ...] = (0.5, 1.0, 2.0), feature_stride: int = 16, output_score: bool = False,
                 iou_loss: bool = False):
        """The best regions (image, left, top, right, bottom) of each image, less those that overlap a better one.

        ``cls_prob`` (batch, 2 anchors, height, width) scores anchors as background, then as objects; ``bbox_pred``
        (batch, 4 anchors, height, width) tells where objects are from anchors; ``im_info`` (batch, 3) holds height,
        width and scale of each image. Anchors have all ``ratios`` and ``scales``, and a place of the map is
        ``feature_stride`` pixels wide. Regions smaller than ``rpn_min_size`` come last. Those of the
        ``rpn_pre_nms_top_n`` best that overlap no better one by more than ``threshold`` survive,
        ``rpn_post_nms_top_n`` at most, and are repeated if there are fewer. ``iou_loss`` says that ``bbox_pred`` is
        the distance between corners in pixels.
        """

    @proposal.fill
    def proposal_fill(ins, outs):
        cls_prob = ins[0]
        if cls_prob is not None and len(cls_prob) == 4:
            batch, scores, *size = cls_prob
            return [cls_prob, (batch, scores * 2, *size), (batch, 3)]
        return ins

    @proposal.infer
    def proposal_infer(cls_prob, bbox_pred, im_info, *, scales, ratios, rpn_post_nms_top_n, feature_stride):
        count = len(scales) * len(ratios)
        for label, values in (("scales", scales), ("ratios", ratios)):
            if not values or min(values) <= 0:
                raise AttrError(f"{label}={values}: expected positive numbers")
        if feature_stride < 1 or rpn_post_nms_top_n < 1:
            raise AttrError(f"feature_stride={feature_stride} and rpn_post_nms_top_n={rpn_post_nms_top_n}: "
                            "expected positive numbers")
        if len(cls_prob) != 4 or cls_prob[1] != 2 * count:
            raise ShapeError(f"cls_prob: expected shape (batch, {2 * count}, height, width), two scores for each of "
                             f"{count} anchors, got {show(cls_prob)}")
        if single and cls_prob[0] != 1:
            raise ShapeError(f"cls_prob: expected one image, got {cls_prob[0]}; _contrib_MultiProposal takes several")
        batch, _, *size = cls_prob
        for label, shape, expected in (("bbox_pred", bbox_pred, (batch, 4 * count, *size)),
                                       ("im_info", im_info, (batch, 3))):
            if shape != expected:
                raise ShapeError(f"{label}: expected shape {show(expected)}, got {show(shape)}")
        if size[0] is not ANY and size[1] is not ANY and size[0] * size[1] == 0:
            raise ShapeError(f"cls_prob: there is no place in {show(cls_prob)}")
        return [(batch * rpn_post_nms_top_n, 5), (batch * rpn_post_nms_top_n, 1)]

    proposal.kernel()(proposal_xp)  # no body: regions are removed one after the other
    proposal.grad(ZERO)


def _regions(xp: ArrayModule, bbox_pred: Array, info: Array, anchors: Array, stride: int, iou_loss: bool) -> Array:
    """Corners of the regions (batch, height, width, anchors), clipped to the image."""
    batch, numbers, height, width = bbox_pred.shape
    steps = bbox_pred.reshape(batch, numbers // 4, 4, height, width).transpose(0, 3, 4, 1, 2)
    down, right = xp.arange(height)[:, None, None] * stride, xp.arange(width)[:, None] * stride
    left, top, far, bottom = [side + start for side, start in zip(apart(anchors), (right, down, right, down))]
    if iou_loss:
        sides = [a + b for a, b in zip((left, top, far, bottom), apart(steps))]
    else:
        dx, dy, dw, dh = apart(steps)
        wide_, high = far - left + 1, bottom - top + 1
        x, y = dx * wide_ + (left + 0.5 * (wide_ - 1)), dy * high + (top + 0.5 * (high - 1))
        wide_, high = 0.5 * (xp.exp(dw) * wide_ - 1), 0.5 * (xp.exp(dh) * high - 1)
        sides = [x - wide_, y - high, x + wide_, y + high]
    last = [info[:, i].reshape(-1, 1, 1, 1) - 1 for i in (1, 0, 1, 0)]
    return xp.stack([xp.maximum(xp.minimum(side, most), 0) for side, most in zip(sides, last)], axis=-1)


def proposal_xp(xp, cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size,
                scales, ratios, feature_stride, iou_loss):
    """The kernel of both operators."""
    cls_prob, bbox_pred, info = wide(cls_prob), wide(bbox_pred), wide(im_info)
    batch, _, height, width = cls_prob.shape
    anchors = xp.asarray(_anchors(feature_stride, ratios, scales), dtype=bbox_pred.dtype)
    boxes = _regions(xp, bbox_pred, info, anchors, feature_stride, iou_loss)
    scores = cls_prob[:, anchors.shape[0]:].transpose(0, 2, 3, 1)
    real = [xp.floor(info[:, i] / feature_stride).reshape(-1, 1, 1, 1) for i in (0, 1)]
    outside = (xp.arange(height)[:, None, None] >= real[0]) | (xp.arange(width)[:, None] >= real[1])
    left, top, right, bottom = apart(boxes)
    least = (rpn_min_size * info[:, 2]).reshape(-1, 1, 1, 1)
    small = (right - left + 1 < least) | (bottom - top + 1 < least)
    half = xp.where(small, least / 2, 0)
    boxes = xp.stack((left - half, top - half, right + half, bottom + half), axis=-1)
    count = math.prod(boxes.shape[1:4])
    boxes = boxes.reshape(batch, count, 4)
    scores = xp.where(outside | small, -1, scores).reshape(batch, count)
    if rpn_pre_nms_top_n > 0:
        count = min(count, rpn_pre_nms_top_n)
    order = xp.argsort(-scores, axis=1, kind="stable")[:, :count]
    scores = xp.take_along_axis(scores, order, axis=1)
    boxes = xp.take_along_axis(boxes, order[:, :, None], axis=1)
    left, top, right, bottom = apart(boxes)
    rows = xp.stack((left, top, right, bottom, (right - left + 1) * (bottom - top + 1)))
    most = min(count, rpn_post_nms_top_n)
    kept = survivors(xp, xp.ones((batch, count), dtype=bool), rows,
                     lambda one, others: ratio(xp, one, others, 1) > threshold, most=most)
    place = xp.arange(rpn_post_nms_top_n) % xp.maximum(kept.sum(axis=1), 1)[:, None]
    place = xp.take_along_axis(xp.argsort(~kept, axis=1, kind="stable"), place, axis=1)
    image = xp.broadcast_to(xp.arange(batch).astype(boxes.dtype)[:, None, None], (*place.shape, 1))
    regions = xp.concatenate((image, xp.take_along_axis(boxes, place[:, :, None], axis=1)), axis=2)
    return regions.reshape(-1, 5), xp.take_along_axis(scores, place, axis=1).reshape(-1, 1)


_declare("_contrib_Proposal", single=True)
_declare("_contrib_MultiProposal", single=False)

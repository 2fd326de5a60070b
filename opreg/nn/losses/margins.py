"""Losses of margins between distances or scores, and of overlaps."""

from __future__ import annotations

import math

from ...core.registry import ops
from ..ops import losses as functions
from ..ops.lift import together
from ..optim.settings import flag, number
from ..tensor import Tensor
from .base import LossBase, sum_over

__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "SoftMarginLoss", "TripletMarginLoss", "DiceLoss",
]


class CosineEmbeddingLoss(LossBase):
    """``1 - cos`` of rows whose label is 1, ``max(0, cos - margin)`` where it is -1.

    Parameters
    ----------
    margin : float
        What two rows may have in common, from -1 to 1.
    reduction : {"mean", "sum", "none"}
        What becomes of the rows.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = number(self.cls_name, "margin", margin, -1.0, 1.0)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        self._alike(logits_x1=logits_x1, logits_x2=logits_x2)
        self._tensors(labels=labels)
        return functions.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """The distance where the label is 1, ``max(0, margin - distance)`` where it is -1.

    Parameters
    ----------
    margin : float
        How far apart what differs shall be.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = number(self.cls_name, "margin", margin, -math.inf)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        return functions.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """``max(0, -target * (input1 - input2) + margin)``: 1 wants the first to be larger, -1 the second.

    Parameters
    ----------
    margin : float
        By how much.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = number(self.cls_name, "margin", margin, -math.inf)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        self._alike(input1=input1, input2=input2)
        self._tensors(target=target)
        return functions.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(LossBase):
    """``log(1 + exp(-labels * logits))``, labels 1 and -1.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.soft_margin_loss(logits, labels, self.reduction)


class TripletMarginLoss(LossBase):
    """``max(0, distance(x, positive) - distance(x, negative) + margin)`` of vectors along the last axis.

    Parameters
    ----------
    p : int
        The distance is the p-th root of the sum of p-th powers of differences.
    swap : bool
        Whether the distance of the positive from the negative counts where it is less than that of ``x``.
    eps : float
        Added to differences.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    margin : float
        How much farther the negative shall be.
    """

    def __init__(self, p: float = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean",
                 margin: float = 1.0):
        super().__init__(reduction)
        self.p, self.swap = number(self.cls_name, "p", p, inside=True), flag(self.cls_name, "swap", swap)
        self.eps = number(self.cls_name, "eps", eps)
        self.margin = number(self.cls_name, "margin", margin, inside=True)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        self._tensors(x=x, positive=positive, negative=negative)
        return functions.triplet_margin_loss(x, positive, negative, self.margin, self.p, self.eps, self.swap,
                                             self.reduction)


class DiceLoss(LossBase):
    """``1 - 2 * sum(logits * labels) / (sum(logits ** 2) + sum(labels ** 2) + smooth)``.

    Parameters
    ----------
    smooth : float
        Keeps the denominator from zero.
    """

    def __init__(self, smooth: float = 1e-5):
        super().__init__()
        self.smooth = number(self.cls_name, "smooth", smooth, inside=True)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        self._alike(logits=logits, label=label)
        logits, label = together(logits, label, real=True)
        both = sum_over(ops.square(logits)) + sum_over(ops.square(label)) + self.smooth
        return 1.0 - sum_over(logits * label) * 2.0 / both

"""Losses with margins between distances or scores, and losses of overlaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...errors import ArgumentError, ShapeError, did_you_mean
from ..layers.activation import get_activation
from ..ops import losses as functions
from ..ops.lift import to_common_dtype
from ..ops.reduce import norm
from .base import LossBase, sum_over

__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultilabelMarginLoss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "DiceLoss", "MultiClassDiceLoss",
]


class CosineEmbeddingLoss(LossBase):
    """``1 - cos`` of rows whose label is 1, ``max(0, cos - margin)`` where it is -1.

    Parameters
    ----------
    margin : float
        Cosine above which dissimilar rows add to the loss, from -1 to 1.
    reduction : {"mean", "sum", "none"}
        Reduction of the rows.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(CosineEmbeddingLoss()(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]]), Tensor([1])).asnumpy().round(3))
    0.293
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = real_number(f"{self.cls_name}: margin", margin, -1.0, 1.0)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits_x1=logits_x1, logits_x2=logits_x2)
        self._check_tensors(labels=labels)
        return functions.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """The distance where the label is 1, ``max(0, margin - distance)`` where it is -1.

    Parameters
    ----------
    margin : float
        Distance below which dissimilar pairs add to the loss.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> round(float(nn.HingeEmbeddingLoss()(Tensor([0.3, 0.4]), Tensor([1.0, -1.0]))), 3)
    0.45
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = real_number(f"{self.cls_name}: margin", margin, -math.inf)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """``max(0, -target * (input1 - input2) + margin)``: a target of 1 ranks the first input higher, -1 the second.

    Parameters
    ----------
    margin : float
        Margin of the difference.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(MarginRankingLoss(margin=1.0)(Tensor([2.0]), Tensor([1.5]), Tensor([1.0])))
    0.5
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = real_number(f"{self.cls_name}: margin", margin, -math.inf)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        self._check_shapes(input1=input1, input2=input2)
        self._check_tensors(target=target)
        return functions.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(LossBase):
    """``log(1 + exp(-labels * logits))``, with labels 1 and -1.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> round(float(nn.SoftMarginLoss()(Tensor([0.0, 0.0]), Tensor([1.0, -1.0]))), 3)
    0.693
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits=logits, labels=labels)
        return functions.soft_margin_loss(logits, labels, self.reduction)


class TripletMarginLoss(LossBase):
    """``max(0, distance(x, positive) - distance(x, negative) + margin)`` of vectors along the last axis.

    Parameters
    ----------
    p : int
        Order of the norm that is the distance.
    swap : bool
        Whether the distance from the positive to the negative is used where it is smaller.
    eps : float
        Added to differences.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    margin : float
        Margin by which the negative has to be farther.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(TripletMarginLoss()(Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([[0.0, 1.5]])).asnumpy().round(3))
    0.5
    """

    def __init__(self, p: float = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean",
                 margin: float = 1.0):
        super().__init__(reduction)
        self.p, self.swap = real_number(f"{self.cls_name}: p", p, inside=True), flag(f"{self.cls_name}: swap", swap)
        self.eps = real_number(f"{self.cls_name}: eps", eps)
        self.margin = real_number(f"{self.cls_name}: margin", margin, inside=True)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        self._check_tensors(x=x, positive=positive, negative=negative)
        return functions.triplet_margin_loss(x, positive, negative, self.margin, self.p, self.eps, self.swap,
                                             self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """``max(0, distance(x, positive) - distance(x, negative) + margin)``, with any distance.

    Parameters
    ----------
    distance_function : callable, optional
        A function of two tensors, by default the norm of the difference along axis 1.
    swap : bool
        Whether the distance from the positive to the negative is used where it is smaller.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    margin : float
        Margin by which the negative has to be farther.

    Examples
    --------
    >>> x, near, far = Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([[3.0, 4.0]])
    >>> float(TripletMarginWithDistanceLoss(margin=5.0)(x, near, far))
    1.0
    """

    def __init__(self, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, swap: bool = False,
                 reduction: str = "mean", margin: float = 1.0):
        super().__init__(reduction)
        self.distance_function = _distance if distance_function is None else distance_function
        self.swap = flag(f"{self.cls_name}: swap", swap)
        self.margin = real_number(f"{self.cls_name}: margin", margin, -math.inf)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        self._check_tensors(x=x, positive=positive, negative=negative)
        x, positive, negative = to_common_dtype(x, positive, negative, real=True)
        return self.get_loss(functions.triplet_margins(self.distance_function, x, positive, negative, self.margin,
                                                       self.swap))


def _distance(x: Tensor, y: Tensor) -> Tensor:
    """The norm of the difference along axis 1."""
    return norm(x - y, 2, 1)


class MultilabelMarginLoss(LossBase):
    """The mean over classes of ``max(0, 1 - x[label] + x[other])``, summed over all labels and all other classes.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the rows.
    """

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        self._check_shapes(x=x, target=target)
        return functions.multilabel_margin_loss(x, target, self.reduction)


class DiceLoss(LossBase):
    """``1 - 2 * sum(logits * labels) / (sum(logits ** 2) + sum(labels ** 2) + smooth)``.

    Parameters
    ----------
    smooth : float
        Term that keeps the denominator from zero.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(DiceLoss()(Tensor([[1.0, 0.0]]), Tensor([[1.0, 0.0]])).asnumpy().round(3))
    0.0
    """

    def __init__(self, smooth: float = 1e-5):
        super().__init__()
        self.smooth = real_number(f"{self.cls_name}: smooth", smooth, inside=True)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        self._check_shapes(logits=logits, label=label)
        logits, label = to_common_dtype(logits, label, real=True)
        both = sum_over(ops.square(logits)) + sum_over(ops.square(label)) + self.smooth
        return 1.0 - sum_over(logits * label) * 2.0 / both


class MultiClassDiceLoss(LossBase):
    """The mean of the ``DiceLoss`` of each class; logits and labels have the same shape, with the classes along axis 1.

    Parameters
    ----------
    weights : Tensor, optional
        Weights of shape ``(classes, n)``: the loss of each class is multiplied by its row, so that the result has shape
        ``(n,)``.
    ignore_indiex : int, optional
        A class whose loss is left out of the sum; the divisor still counts it.
    activation : {"softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid"}, Cell or None
        Activation applied to the logits.

    Examples
    --------
    >>> labels = Tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> float(MultiClassDiceLoss(activation=None)(labels, labels)) < 1e-4
    True
    """

    def __init__(self, weights: Tensor | None = None, ignore_indiex: int | None = None,
                 activation: str | Cell | None = "softmax"):
        super().__init__()
        self.binarydiceloss = DiceLoss()
        self.weights = self._weight("weights", weights)
        if weights is not None and weights.ndim != 2:
            raise ShapeError(f"{self.cls_name}: weights must have the shape (classes, n), got {weights.shape}")
        self.ignore_indiex = ignore_indiex
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise ArgumentError(f"{self.cls_name}: activation must be one of {', '.join(_ACTIVATIONS)}, got "
                                    f"{activation!r}. {did_you_mean(activation, _ACTIVATIONS)}")
            activation = get_activation(activation)
        elif activation is not None and not isinstance(activation, Cell):
            raise ArgumentError(f"{self.cls_name}: activation must be a name or a Cell, got "
                                f"{type(activation).__name__}")
        self.activation = activation

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        self._check_shapes(logits=logits, label=label)
        if len(label.shape) < 2:
            raise ShapeError(f"{self.cls_name}: logits and labels must have the classes along axis 1, got the shape "
                             f"{label.shape}")
        classes = label.shape[1]
        if self.weights is not None and self.weights.shape[0] != classes:
            raise ShapeError(f"{self.cls_name}: weights have {self.weights.shape[0]} rows for {classes} classes")
        if self.activation is not None:
            logits = self.activation(logits)
        total: Any = 0.0
        for c in range(classes):
            if c != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, c], label[:, c])
                total += loss if self.weights is None else loss * self.weights[c]
        return total / classes


_ACTIVATIONS = ("softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid")

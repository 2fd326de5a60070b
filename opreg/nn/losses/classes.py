"""Losses of class scores; labels are class indices or probabilities."""

from __future__ import annotations

import math

from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops import losses as functions
from ..ops.activation import log_softmax
from .base import LossBase, mean, sum_over

__all__ = ["SoftmaxCrossEntropyWithLogits", "NLLLoss", "CrossEntropyLoss", "FocalLoss", "MultiMarginLoss", "CTCLoss"]


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross-entropy of the labels and the softmax of logits of shape (n, classes), one value for each of n.

    Parameters
    ----------
    sparse : bool
        Whether labels are indices of classes, of shape (n,), or probabilities, of the shape of the logits.
    reduction : {"none", "mean", "sum"}
        Reduction of the n values.

    Examples
    --------
    >>> loss = SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    >>> round(float(loss(Tensor([[1.0, 1.0]]), Tensor([0])).asnumpy()), 4)
    0.6931
    """

    def __init__(self, sparse: bool = False, reduction: str = "none"):
        super().__init__(reduction)
        self.sparse = flag(f"{self.cls_name}: sparse", sparse)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        scores = log_softmax(logits, -1)
        if self.sparse:
            if labels.shape != logits.shape[:-1]:
                raise ShapeError(f"{self.cls_name}: labels must have shape {show(logits.shape[:-1])}, got "
                                 f"{show(labels.shape)}")
            return self.get_loss(-ops.pick(scores, labels, axis=-1, mode="index"))
        self._check_shapes(logits=logits, labels=labels)
        return self.get_loss(-sum_over(scores * labels, -1))


class NLLLoss(LossBase):
    """The negative log-probabilities at the labels.

    It is called with log-probabilities of shape (n, classes, …) and class indices of shape (n, …).

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class; the mean is weighted by them.
    ignore_index : int
        A label whose samples are ignored.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(NLLLoss()(Tensor([[-0.5, -1.0], [-2.0, -0.1]]), Tensor([0, 1])))
    0.3
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)
        self.ignore_index = ignore_index

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(NLLLoss):
    """The cross-entropy of labels and the softmax of logits of shape (n, classes, …).

    Labels are indices of classes, of shape (n, …), or probabilities, of the shape of the logits.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class; the mean over indices is weighted by them.
    ignore_index : int
        An index whose samples are ignored.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    label_smoothing : float
        Part of each label that is spread evenly over all classes, from 0 to 1.

    Examples
    --------
    >>> round(float(CrossEntropyLoss()(Tensor([[1.0, 1.0]]), Tensor([0])).asnumpy()), 4)
    0.6931
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0):
        super().__init__(weight, ignore_index, reduction)
        self.label_smoothing = real_number(f"{self.cls_name}: label_smoothing", label_smoothing, 0.0, 1.0)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction,
                                       self.label_smoothing)


class FocalLoss(LossBase):
    """``-(1 - p) ** gamma * log(p)``, ``p`` the softmax of logits of shape (n, classes, …) at the labels.

    Labels are class indices, of shape (n, 1, …), or one weight for each class, of the shape of the logits.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class.
    gamma : float
        Exponent that reduces the loss of well-classified samples.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(FocalLoss()(Tensor([[2.0, 0.0]]), Tensor([[0]])).asnumpy().round(4))
    0.0018
    """

    def __init__(self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight, self.gamma = self._weight("weight", weight), real_number(f"{self.cls_name}: gamma", gamma)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        if len(logits.shape) != len(labels.shape) or len(labels.shape) < 2 or \
                labels.shape[1] not in (1, logits.shape[1]):
            raise ShapeError(f"{self.cls_name}: labels must have shape (n, 1, …) or that of the logits, "
                             f"{show(logits.shape)}, got {show(labels.shape)}")
        logits = logits.reshape((*logits.shape[:2], -1))
        labels = labels.reshape((*labels.shape[:2], -1))
        scores = log_softmax(logits, 1)
        factor = (1.0 - ops.exp(scores)) ** self.gamma
        if self.weight is not None:
            scores = scores * self.weight.reshape((1, -1, 1))
        elements = -factor * scores
        if labels.shape[1] == 1:
            named = ops.pick(elements, labels.reshape((labels.shape[0], -1)), axis=1, mode="index")
            return self.get_loss(mean(named, 1))
        return self.get_loss(mean(elements * labels, -1))


class MultiMarginLoss(LossBase):
    """The mean over other classes of ``max(0, margin - x[label] + x[class]) ** p``, of logits of shape (n, classes).

    Parameters
    ----------
    p : {1, 2}
        The power.
    margin : float
        Margin by which the label's score has to exceed the others.
    reduction : {"mean", "sum", "none"}
        Reduction of the n values.
    weight : Tensor, optional
        A weight for each class as a label.
    """

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None):
        super().__init__(reduction)
        if p not in (1, 2):
            raise ArgumentError(f"{self.cls_name}: p must be 1 or 2, got {p!r}")
        self.p, self.margin = int(p), real_number(f"{self.cls_name}: margin", margin, -math.inf)
        self.weight = self._weight("weight", weight)

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        self._check_tensors(x=x, target=target)
        return functions.multi_margin_loss(x, target, self.p, self.margin, self.weight, self.reduction)


class CTCLoss(LossBase):
    """The negative log-probability that scores over time spell a sequence, after blanks and repetitions are removed.

    It is called with log-probabilities of shape (time, n, classes), sequences of shape (n, length), and the valid
    lengths of both, of shape (n,); for one sequence the axes n are absent. The gradient is that of scores before a
    softmax, as in MindSpore.

    Parameters
    ----------
    blank : int
        Number of the blank class.
    reduction : {"mean", "none", "sum"}
        Reduction of the n values; for the mean each is divided by the length of its sequence.
    zero_infinity : bool
        Whether the loss of a sequence that is too long for its scores is zero instead of infinite.

    Examples
    --------
    >>> loss = CTCLoss(reduction="none")
    >>> sure = Tensor([[[-9.0, 0.0]], [[0.0, -9.0]]])
    >>> float(loss(sure, Tensor([[1]]), Tensor([2]), Tensor([1]))[0]) < 0.001
    True
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = flag(f"{self.cls_name}: zero_infinity", zero_infinity)

    def construct(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        self._check_tensors(log_probs=log_probs, targets=targets)
        loss, _ = functions.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                                     self.zero_infinity)
        return loss

"""Losses: Cells of predictions and labels.

Names, defaults and formulas are those of MindSpore's classes. What is a function of ``ops`` as well is that function,
whose reduction and further arguments the Cell keeps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.registry import ops
from ..core.spec import show
from ..errors import ShapeError, did_you_mean
from .cell import Cell
from .ops import losses as functions
from .ops.losses import above
from .optim.settings import flag, number
from .tensor import Tensor, tensor
from .tensor_base import TensorBase, is_number

__all__ = [
    "LossBase", "MSELoss", "RMSELoss", "L1Loss", "MAELoss", "SmoothL1Loss", "HuberLoss",
    "SoftmaxCrossEntropyWithLogits", "CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss",
    "PoissonNLLLoss", "GaussianNLLLoss", "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
    "SoftMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "TripletMarginLoss", "FocalLoss", "DiceLoss",
]

_REDUCTIONS = ("mean", "sum", "none")
_FLOAT = np.dtype(np.float32)


# ------------------------------------------------------------------------------------------------------- parts


def _mean(x: Any, axis: Any = None) -> Any:
    return ops._npi_mean(x, axis=axis)


def _sum(x: Any, axis: Any = None) -> Any:
    return ops._np_sum(x, axis=axis)


class LossBase(Cell):
    """Base of losses: ``get_loss`` reduces what ``construct`` finds for each element.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.

    Examples
    --------
    >>> class Distance(LossBase):
    ...     def construct(self, logits, labels):
    ...         return self.get_loss(abs(logits - labels))
    >>> Distance("sum")(tensor([1.0, 2.0]), tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 4)
    """

    _reductions: tuple[str, ...] = _REDUCTIONS

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        if reduction not in self._reductions:
            raise ValueError(f"{self.cls_name}: reduction must be one of {', '.join(self._reductions)}, got "
                             f"{reduction!r}. {did_you_mean(str(reduction), self._reductions)}")
        self.reduction = reduction

    def construct(self, *inputs: Any) -> Any:
        """The loss; every class of losses defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, logits, labels)")

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """All axes of a tensor."""
        return tuple(range(len(x.shape)))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """The elements times weights, reduced in float32, in their own dtype."""
        dtype = x._dt
        x = x._cast(_FLOAT)
        if not is_number(weights) or weights != 1:
            x = x * (weights if is_number(weights) else tensor(weights)._cast(_FLOAT))
        return self._reduce(x)._cast(dtype)

    def _reduce(self, x: Any) -> Any:
        """The elements, reduced in their own dtype."""
        return functions.reduced(x, self.reduction, self.cls_name)

    def _tensors(self, **values: Any) -> None:
        """Refuse what is no tensor."""
        for name, value in values.items():
            if not isinstance(value, TensorBase):
                raise TypeError(f"{self.cls_name}: {name} must be a Tensor, got {type(value).__name__}")

    def _weight(self, name: str, value: Any) -> Any:
        """Given weights, a Tensor or None."""
        if value is not None:
            self._tensors(**{name: value})
        return value

    def _alike(self, **values: Any) -> None:
        """Refuse tensors of different shapes."""
        self._tensors(**values)
        (first, one), *rest = values.items()
        for name, value in rest:
            if value.shape != one.shape:
                raise ShapeError(f"{self.cls_name}: {first} and {name} must have one shape, got {show(one.shape)} and "
                                 f"{show(value.shape)}")


# -------------------------------------------------------------------------------------------------- differences


class L1Loss(LossBase):
    """The magnitude of the difference; shapes broadcast.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.

    Examples
    --------
    >>> L1Loss()(tensor([1.0, 2.0]), tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 2)
    """

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        return functions.l1_loss(logits, labels, self.reduction)


class MAELoss(L1Loss):
    """The magnitude of the difference; another name of ``L1Loss``."""


class MSELoss(LossBase):
    """The square of the difference; shapes broadcast.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.

    Examples
    --------
    >>> MSELoss()(tensor([1.0, 2.0]), tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 5)
    """

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        return functions.mse_loss(logits, labels, self.reduction)


class RMSELoss(MSELoss):
    """The root of the mean of the square of the difference."""

    def __init__(self) -> None:
        super().__init__("mean")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        return ops.sqrt(super().construct(logits, labels))


class SmoothL1Loss(LossBase):
    """``0.5 * d ** 2 / beta`` up to ``beta``, ``d - 0.5 * beta`` beyond, ``d`` the magnitude of the difference.

    Parameters
    ----------
    beta : float
        Where the parabola ends.
    reduction : {"none", "mean", "sum"}
        What becomes of the elements.
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none"):
        super().__init__(reduction)
        self.beta = number(self.cls_name, "beta", beta, inside=True)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """``0.5 * d ** 2`` up to ``delta``, ``delta * (d - 0.5 * delta)`` beyond, ``d`` the magnitude of the difference.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    delta : float
        Where the parabola ends.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction)
        self.delta = number(self.cls_name, "delta", delta, inside=True)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.huber_loss(logits, labels, self.reduction, self.delta)


# ------------------------------------------------------------------------------------------------------ classes


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross-entropy of the labels and the softmax of logits of shape (n, classes), one number for each of n.

    Parameters
    ----------
    sparse : bool
        Whether labels are indices of classes, of shape (n,), or probabilities, of the shape of the logits.
    reduction : {"none", "mean", "sum"}
        What becomes of the n numbers.

    Examples
    --------
    >>> loss = SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    >>> round(float(loss(tensor([[1.0, 1.0]]), tensor([0])).asnumpy()), 4)
    0.6931
    """

    def __init__(self, sparse: bool = False, reduction: str = "none"):
        super().__init__(reduction)
        self.sparse = flag(self.cls_name, "sparse", sparse)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        scores = ops.log_softmax(logits, axis=-1)
        if self.sparse:
            if labels.shape != logits.shape[:-1]:
                raise ShapeError(f"{self.cls_name}: labels must have shape {show(logits.shape[:-1])}, got "
                                 f"{show(labels.shape)}")
            return self.get_loss(-ops.pick(scores, labels, axis=-1))
        self._alike(logits=logits, labels=labels)
        return self.get_loss(-_sum(scores * labels, -1))


class NLLLoss(LossBase):
    """Minus the logarithms of probabilities at the labels.

    Called with logarithms of shape (n, classes, …) and indices of classes of shape (n, …).

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class; the mean is weighted by them.
    ignore_index : int
        A label that counts nothing.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)
        self.ignore_index = ignore_index

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        return functions.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(NLLLoss):
    """The cross-entropy of labels and the softmax of logits of shape (n, classes, …).

    Labels are indices of classes, of shape (n, …), or probabilities, of the shape of the logits.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class; the mean over indices is weighted by them.
    ignore_index : int
        An index that counts nothing.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    label_smoothing : float
        How much of each label is given to all classes alike, from 0 to 1.

    Examples
    --------
    >>> round(float(CrossEntropyLoss()(tensor([[1.0, 1.0]]), tensor([0])).asnumpy()), 4)
    0.6931
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0):
        super().__init__(weight, ignore_index, reduction)
        self.label_smoothing = number(self.cls_name, "label_smoothing", label_smoothing, 0.0, 1.0)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        return functions.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction,
                                       self.label_smoothing)


class FocalLoss(LossBase):
    """``-(1 - p) ** gamma * log(p)``, ``p`` the softmax of logits of shape (n, classes, …) at the labels.

    Labels are indices of classes, of shape (n, 1, …), or of one weight a class, of the shape of the logits.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class.
    gamma : float
        How much less what is right already counts.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, weight: Any = None, gamma: float = 2.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight, self.gamma = self._weight("weight", weight), number(self.cls_name, "gamma", gamma)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels)
        if len(logits.shape) != len(labels.shape) or len(labels.shape) < 2 or \
                labels.shape[1] not in (1, logits.shape[1]):
            raise ShapeError(f"{self.cls_name}: labels must have shape (n, 1, …) or that of the logits, "
                             f"{show(logits.shape)}, got {show(labels.shape)}")
        logits = logits.reshape((*logits.shape[:2], -1))
        labels = labels.reshape((*labels.shape[:2], -1))
        scores = ops.log_softmax(logits, axis=1)
        factor = (1.0 - ops.exp(scores)) ** self.gamma
        if self.weight is not None:
            scores = scores * self.weight.reshape((1, -1, 1))
        found = -factor * scores
        if labels.shape[1] == 1:
            return self.get_loss(_mean(ops.pick(found, labels.reshape((labels.shape[0], -1)), axis=1), 1))
        return self.get_loss(_mean(found * labels, -1))


class MultiMarginLoss(LossBase):
    """The mean over other classes of ``max(0, margin - x[label] + x[class]) ** p``, of logits of shape (n, classes).

    Parameters
    ----------
    p : {1, 2}
        The power.
    margin : float
        By how much the score at the label shall be ahead.
    reduction : {"mean", "sum", "none"}
        What becomes of the n numbers.
    weight : Tensor, optional
        A weight for each class as a label.
    """

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Any = None):
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"{self.cls_name}: p must be 1 or 2, got {p!r}")
        self.p, self.margin = int(p), number(self.cls_name, "margin", margin, -math.inf)
        self.weight = self._weight("weight", weight)

    def construct(self, x: Any, target: Any) -> Tensor:
        self._tensors(x=x, target=target)
        count = x.shape[1]
        other = 1.0 - ops.one_hot(target, depth=count, dtype=x._dt)
        behind = above(x - ops.pick(x, target, axis=1, keepdims=True) + self.margin) * other
        found = _sum(behind if self.p == 1 else ops.square(behind), 1) / count
        if self.weight is not None:
            found = found * ops.take(self.weight, target, axis=0, mode="clip")
        return self._reduce(found)


# ---------------------------------------------------------------------------------------------- probabilities


class BCELoss(LossBase):
    """The cross-entropy of labels and probabilities of one of two classes.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each element; it broadcasts.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The cross-entropy of labels and the sigmoid of logits.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    weight : Tensor, optional
        A weight for each element; it broadcasts.
    pos_weight : Tensor, optional
        A weight for what speaks for a class; it broadcasts.
    """

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None):
        super().__init__(reduction)
        self.weight, self.pos_weight = self._weight("weight", weight), self._weight("pos_weight", pos_weight)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """The cross-entropy of labels and the sigmoid of logits, its mean over classes, the last axis.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class.
    reduction : {"mean", "sum", "none"}
        What becomes of the means.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)

    def construct(self, x: Any, target: Any) -> Tensor:
        self._alike(x=x, target=target)
        found = ops._softrelu(-x) + (1.0 - target) * x
        return self._reduce(_mean(found if self.weight is None else found * self.weight, -1))


class KLDivLoss(LossBase):
    """``labels * (log(labels) - logits)``: the divergence of logarithms of probabilities from probabilities.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        What becomes of the elements; ``batchmean`` is the sum divided by the length of the first axis.
    """

    _reductions = ("mean", "batchmean", "sum", "none")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        self._alike(logits=logits, labels=labels)
        return functions.kl_div(logits, labels, self.reduction)


class PoissonNLLLoss(LossBase):
    """Minus the logarithm of a Poisson density: ``exp(x) - target * x``; without ``log_input`` ``x`` is the rate.

    Parameters
    ----------
    log_input : bool
        Whether the logarithm of the rate is given.
    full : bool
        Whether Stirling's approximation of the logarithm of the factorial is added, where the target is above 1.
    eps : float
        Keeps the logarithm of a rate finite.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"):
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input: Any, target: Any) -> Tensor:
        self._tensors(input=input, target=target)
        target = target._cast(input._dt)
        if self.log_input:
            found = ops.exp(input) - target * input
        else:
            found = input - target * ops.log(input + self.eps)
        if self.full:
            large = above(target, 1.0)
            stirling = (large + 0.5) * ops.log(large) - large + 0.5 * math.log(2 * math.pi)
            found = found + stirling * (target > 1)._cast(input._dt)
        return self.get_loss(found)


class GaussianNLLLoss(LossBase):
    """Minus the logarithm of a normal density: ``0.5 * (log(var) + (logits - labels) ** 2 / var)``.

    Parameters
    ----------
    full : bool
        Whether the constant is added.
    eps : float
        The least variance.
    reduction : {"mean", "sum", "none"}
        What becomes of the elements.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction)
        self.full = flag(self.cls_name, "full", full)
        self.eps = number(self.cls_name, "eps", eps, inside=True)

    def construct(self, logits: Any, labels: Any, var: Any) -> Tensor:
        self._tensors(logits=logits, labels=labels, var=var)
        var = above(var, self.eps)
        found = (ops.log(var) + ops.square(logits - labels) / var) * 0.5
        return self._reduce(found + 0.5 * math.log(2 * math.pi) if self.full else found)


# ------------------------------------------------------------------------------------------- margins, overlaps


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

    def construct(self, logits_x1: Any, logits_x2: Any, labels: Any) -> Tensor:
        self._alike(logits_x1=logits_x1, logits_x2=logits_x2)
        self._tensors(labels=labels)
        lengths = ops.sqrt(_sum(ops.square(logits_x1), 1)) * ops.sqrt(_sum(ops.square(logits_x2), 1))
        cosine = _sum(logits_x1 * logits_x2, 1) / lengths
        same, other = (labels == 1)._cast(cosine._dt), (labels == -1)._cast(cosine._dt)
        return self.get_loss((1.0 - cosine) * same + above(cosine - self.margin) * other)


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

    def construct(self, logits: Any, labels: Any) -> Tensor:
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

    def construct(self, input1: Any, input2: Any, target: Any) -> Tensor:
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

    def construct(self, logits: Any, labels: Any) -> Tensor:
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

    def construct(self, x: Any, positive: Any, negative: Any) -> Tensor:
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

    def construct(self, logits: Any, label: Any) -> Tensor:
        self._alike(logits=logits, label=label)
        both = _sum(ops.square(logits)) + _sum(ops.square(label)) + self.smooth
        return 1.0 - _sum(logits * label) * 2.0 / both

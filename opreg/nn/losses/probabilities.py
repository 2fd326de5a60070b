"""Losses of probabilities: binary cross-entropies, divergences, log-densities."""

from __future__ import annotations

import math

from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ..ops import losses as functions
from ..ops.lift import as_floating
from ..ops.losses import above
from .base import LossBase

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss", "KLDivLoss", "PoissonNLLLoss", "GaussianNLLLoss",
]


class BCELoss(LossBase):
    """The cross-entropy of labels and probabilities of two classes.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each element; it broadcasts.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(BCELoss(reduction="none")(Tensor([0.5, 0.8]), Tensor([1.0, 0.0])).asnumpy().round(3))
    [0.693 1.609]
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits=logits, labels=labels)
        return functions.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The cross-entropy of labels and the sigmoid of logits.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    weight : Tensor, optional
        A weight for each element; it broadcasts.
    pos_weight : Tensor, optional
        A weight of positive labels; it broadcasts.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(BCEWithLogitsLoss(reduction="none")(Tensor([0.0, 2.0]), Tensor([1.0, 0.0])).asnumpy().round(3))
    [0.693 2.127]
    """

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None, pos_weight: Tensor | None = None):
        super().__init__(reduction)
        self.weight, self.pos_weight = self._weight("weight", weight), self._weight("pos_weight", pos_weight)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits=logits, labels=labels)
        return functions.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """The cross-entropy of labels and the sigmoid of logits, averaged over classes, the last axis.

    Parameters
    ----------
    weight : Tensor, optional
        A weight for each class.
    reduction : {"mean", "sum", "none"}
        Reduction of the means.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = self._weight("weight", weight)

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        self._check_shapes(x=x, target=target)
        return functions.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class KLDivLoss(LossBase):
    """``labels * (log(labels) - logits)``: the Kullback-Leibler divergence, for log-probabilities as logits.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        Reduction of the elements; ``batchmean`` is the sum divided by the length of the first axis.

    Examples
    --------
    >>> from opreg import Tensor, ops
    >>> print(KLDivLoss("sum")(ops.log(Tensor([0.5, 0.5])), Tensor([0.25, 0.75])).asnumpy().round(4))
    0.1308
    """

    _reductions = ("mean", "batchmean", "sum", "none")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits=logits, labels=labels)
        return functions.kl_div(logits, labels, self.reduction)


class PoissonNLLLoss(LossBase):
    """The negative logarithm of a Poisson density: ``exp(x) - target * x``; without ``log_input`` ``x`` is the rate.

    Parameters
    ----------
    log_input : bool
        Whether the logarithm of the rate is given.
    full : bool
        Whether Stirling's approximation of the logarithm of the factorial is added, where the target is above 1.
    eps : float
        Term that keeps the logarithm of a rate finite.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> float(nn.PoissonNLLLoss()(Tensor([0.0]), Tensor([2.0])))
    1.0
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"):
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        self._check_tensors(input=input, target=target)
        input = as_floating(input)
        target = target._cast(input._dt)
        if self.log_input:
            elements = ops.exp(input) - target * input
        else:
            elements = input - target * ops.log(input + self.eps)
        if self.full:
            large = above(target, 1.0)
            stirling = (large + 0.5) * ops.log(large) - large + 0.5 * math.log(2 * math.pi)
            elements = elements + stirling * (target > 1)._cast(input._dt)
        return self.get_loss(elements)


class GaussianNLLLoss(LossBase):
    """The negative logarithm of a normal density: ``0.5 * (log(var) + (logits - labels) ** 2 / var)``.

    Parameters
    ----------
    full : bool
        Whether the constant is added.
    eps : float
        Smallest variance that is used.
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> loss = nn.GaussianNLLLoss()
    >>> float(loss(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])))  # mean, label, variance
    2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction)
        self.full = flag(f"{self.cls_name}: full", full)
        self.eps = real_number(f"{self.cls_name}: eps", eps, inside=True)

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels, var=var)
        return functions.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)

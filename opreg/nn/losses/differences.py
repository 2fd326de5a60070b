"""Losses of the difference between predictions and labels."""

from __future__ import annotations

from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import real_number
from ..ops import losses as functions
from .base import LossBase

__all__ = ["L1Loss", "MAELoss", "MSELoss", "RMSELoss", "SmoothL1Loss", "HuberLoss"]


class L1Loss(LossBase):
    """The absolute difference; shapes broadcast.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> L1Loss()(Tensor([1.0, 2.0]), Tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 2)
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.l1_loss(logits, labels, self.reduction)


class MAELoss(L1Loss):
    """The absolute difference; another name of ``L1Loss``.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(MAELoss()(Tensor([1.0, 4.0]), Tensor([2.0, 2.0])))
    1.5
    """


class MSELoss(LossBase):
    """The squared difference; shapes broadcast.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> MSELoss()(Tensor([1.0, 2.0]), Tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 5)
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.mse_loss(logits, labels, self.reduction)


class RMSELoss(MSELoss):
    """The root of the mean squared difference.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(RMSELoss()(Tensor([0.0, 0.0]), Tensor([1.0, 7.0])))
    5.0
    """

    def __init__(self) -> None:
        super().__init__("mean")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return ops.sqrt(super().construct(logits, labels))


class SmoothL1Loss(LossBase):
    """``0.5 * d ** 2 / beta`` up to ``beta``, ``d - 0.5 * beta`` beyond, where ``d`` is the absolute difference.

    Parameters
    ----------
    beta : float
        Difference up to which the loss is quadratic.
    reduction : {"none", "mean", "sum"}
        Reduction of the elements.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(SmoothL1Loss()(Tensor([0.5, 3.0]), Tensor([0.0, 0.0])))
    [0.125 2.5  ]
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none"):
        super().__init__(reduction)
        self.beta = real_number(f"{self.cls_name}: beta", beta, inside=True)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_shapes(logits=logits, labels=labels)
        return functions.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """``0.5 * d ** 2`` up to ``delta``, ``delta * (d - 0.5 * delta)`` beyond, where ``d`` is the absolute difference.

    Shapes broadcast.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.
    delta : float
        Difference up to which the loss is quadratic.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(HuberLoss()(Tensor([0.5, 3.0]), Tensor([0.0, 0.0])))
    1.3125
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction)
        self.delta = real_number(f"{self.cls_name}: delta", delta, inside=True)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check_tensors(logits=logits, labels=labels)
        return functions.huber_loss(logits, labels, self.reduction, self.delta)

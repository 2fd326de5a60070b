"""Learning rate schedules: Cells of the step, and lists of rates by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...cells.cell import Cell
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor, tensor
from ...core.named_errors import name_errors
from ...core.registry import ops
from ...core.settings import flag, real_number, whole_number
from ...errors import ArgumentError

__all__ = ["LearningRateSchedule", "ExponentialDecayLR", "NaturalExpDecayLR", "InverseDecayLR", "CosineDecayLR",
           "PolynomialDecayLR", "WarmUpLR", "piecewise_constant_lr", "exponential_decay_lr",
           "natural_exp_decay_lr", "inverse_decay_lr", "cosine_decay_lr", "polynomial_decay_lr", "warmup_lr"]


class LearningRateSchedule(Cell):
    """Base of learning rate schedules: ``construct(global_step)`` returns the rate of a step, counted from 0.

    Examples
    --------
    >>> class Halving(LearningRateSchedule):
    ...     def construct(self, global_step):
    ...         return 0.5 ** global_step.astype("float32")
    >>> Halving()(tensor(2))
    Tensor(shape=[], dtype=Float32, value= 0.25)
    """

    def construct(self, global_step: Tensor) -> Tensor:
        """The learning rate of a step; every schedule defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, global_step)")


class HeldRate(LearningRateSchedule):
    """A Parameter that holds a constant rate."""

    def __init__(self, learning_rate: Parameter):
        super().__init__(auto_prefix=False)
        self.learning_rate = learning_rate

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate


class ListedRate(HeldRate):
    """A Parameter with a rate for each step; the last one is kept."""

    def construct(self, global_step: Tensor) -> Tensor:
        return ops.take(self.learning_rate, global_step, axis=0, mode="clip")


def _steps(global_step: Tensor) -> Tensor:
    """The step as a floating-point value."""
    return tensor(global_step)._cast(np.dtype(np.float32))


class _Decay(LearningRateSchedule):
    """Base of schedules with a decay rate, continuous or in stairs of ``decay_steps``."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False):
        super().__init__()
        self.learning_rate = real_number(f"{self.cls_name}: learning_rate", learning_rate, inside=True)
        self.decay_rate = real_number(f"{self.cls_name}: decay_rate", decay_rate, inside=True)
        self.decay_steps = whole_number(f"{self.cls_name}: decay_steps", decay_steps, 1)
        self.is_stair = flag(f"{self.cls_name}: is_stair", is_stair)

    def _part(self, global_step: Tensor) -> Tensor:
        part = _steps(global_step) / self.decay_steps
        return ops.floor(part) if self.is_stair else part


class ExponentialDecayLR(_Decay):
    """``learning_rate * decay_rate ** (step / decay_steps)``.

    Parameters
    ----------
    learning_rate : float
        The learning rate of step 0.
    decay_rate : float
        Factor of the rate in ``decay_steps``.
    decay_steps : int
        Number of steps of the decay.
    is_stair : bool
        Whether it changes only every ``decay_steps``.

    Examples
    --------
    >>> ExponentialDecayLR(0.5, 0.5, 2)(tensor(4))
    Tensor(shape=[], dtype=Float32, value= 0.125)
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.decay_rate ** self._part(global_step) * self.learning_rate


class NaturalExpDecayLR(_Decay):
    """``learning_rate * exp(-decay_rate * step)``; in stairs, with the step at which the stair began.

    Parameters
    ----------
    learning_rate, decay_rate, decay_steps, is_stair
        See ``ExponentialDecayLR``.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> schedule = nn.NaturalExpDecayLR(0.1, 0.9, 4, True)
    >>> print(round(float(schedule(Tensor(4))), 4))
    0.0027
    """

    def construct(self, global_step: Tensor) -> Tensor:
        step = self._part(global_step) * self.decay_steps if self.is_stair else _steps(global_step)
        return ops.exp(step * -self.decay_rate) * self.learning_rate


class InverseDecayLR(_Decay):
    """``learning_rate / (1 + decay_rate * step / decay_steps)``.

    Parameters
    ----------
    learning_rate, decay_rate, decay_steps, is_stair
        See ``ExponentialDecayLR``.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> schedule = nn.InverseDecayLR(0.1, 0.5, 4, True)
    >>> print(round(float(schedule(Tensor(8))), 4))
    0.05
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (self._part(global_step) * self.decay_rate + 1.0)


class CosineDecayLR(LearningRateSchedule):
    """Decreases from ``max_lr`` to ``min_lr`` along half a cosine wave, in ``decay_steps``.

    Parameters
    ----------
    min_lr, max_lr : float
        The last and the first learning rate.
    decay_steps : int
        Number of steps of the decay.

    Examples
    --------
    >>> from opreg import Tensor
    >>> rate = CosineDecayLR(0.0, 0.1, 10)
    >>> print(rate(Tensor(0)).asnumpy().round(3), rate(Tensor(5)).asnumpy().round(3))
    0.1 0.05
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int):
        super().__init__()
        self.min_lr = real_number("CosineDecayLR: min_lr", min_lr)
        self.max_lr = real_number("CosineDecayLR: max_lr", max_lr, inside=True)
        self.decay_steps = whole_number("CosineDecayLR: decay_steps", decay_steps, 1)
        if min_lr >= max_lr:
            raise ArgumentError(f"CosineDecayLR: max_lr must be above min_lr, got {max_lr} and {min_lr}")

    def construct(self, global_step: Tensor) -> Tensor:
        part = ops._minimum_scalar(_steps(global_step), scalar=float(self.decay_steps)) / self.decay_steps
        return (ops.cos(part * math.pi) + 1.0) * (0.5 * (self.max_lr - self.min_lr)) + self.min_lr


class PolynomialDecayLR(LearningRateSchedule):
    """``(learning_rate - end_learning_rate) * (1 - step / decay_steps) ** power + end_learning_rate``.

    Parameters
    ----------
    learning_rate, end_learning_rate : float
        The first and the last learning rate.
    decay_steps : int
        Number of steps of the decay.
    power : float
        Exponent of the polynomial.
    update_decay_steps : bool
        Whether ``decay_steps`` becomes its next multiple when the steps pass it; otherwise the last rate is kept.

    Examples
    --------
    >>> from opreg import Tensor
    >>> rate = PolynomialDecayLR(0.1, 0.0, 10, 1.0)
    >>> print(rate(Tensor(0)).asnumpy().round(3), rate(Tensor(5)).asnumpy().round(3))
    0.1 0.05
    """

    def __init__(self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float,
                 update_decay_steps: bool = False):
        super().__init__()
        self.learning_rate = real_number("PolynomialDecayLR: learning_rate", learning_rate, inside=True)
        self.end_learning_rate = real_number("PolynomialDecayLR: end_learning_rate", end_learning_rate)
        self.decay_steps = whole_number("PolynomialDecayLR: decay_steps", decay_steps, 1)
        self.power = real_number("PolynomialDecayLR: power", power, inside=True)
        self.update_decay_steps = flag("PolynomialDecayLR: update_decay_steps", update_decay_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        part = _steps(global_step) / self.decay_steps
        if self.update_decay_steps:
            part = part / ops._maximum_scalar(ops.ceil(part), scalar=1.0)
        else:
            part = ops._minimum_scalar(part, scalar=1.0)
        return (1.0 - part) ** self.power * (self.learning_rate - self.end_learning_rate) + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """Increases from 0 to ``learning_rate`` in ``warmup_steps``.

    Parameters
    ----------
    learning_rate : float
        The final learning rate.
    warmup_steps : int
        Number of steps of the decay.

    Examples
    --------
    >>> from opreg import Tensor
    >>> rate = WarmUpLR(0.1, 10)
    >>> print(rate(Tensor(0)).asnumpy().round(3), rate(Tensor(5)).asnumpy().round(3))
    0.0 0.05
    """

    def __init__(self, learning_rate: float, warmup_steps: int):
        super().__init__()
        self.learning_rate = real_number("WarmUpLR: learning_rate", learning_rate)
        self.warmup_steps = whole_number("WarmUpLR: warmup_steps", warmup_steps, 1)

    def construct(self, global_step: Tensor) -> Tensor:
        part = ops._minimum_scalar(_steps(global_step), scalar=float(self.warmup_steps)) / self.warmup_steps
        return part * self.learning_rate


# ----------------------------------------------------------------------------------------------- lists of rates


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """A rate for each step up to the last milestone: ``learning_rates[i]`` before ``milestone[i]``.

    Examples
    --------
    >>> piecewise_constant_lr([2, 3], [0.5, 0.1])
    [0.5, 0.5, 0.1]
    """
    owner = "piecewise_constant_lr"
    for name, value in (("milestone", milestone), ("learning_rates", learning_rates)):
        if not isinstance(value, (tuple, list)):
            raise ArgumentError(f"{owner}: {name} must be a list or tuple, got {type(value).__name__}")
    if len(milestone) != len(learning_rates):
        raise ArgumentError(f"{owner}: expected a rate for each of {len(milestone)} milestones, got "
                            f"{len(learning_rates)}")
    rates: list[float] = []
    for i, (end, rate) in enumerate(zip(milestone, learning_rates)):
        if whole_number(f"{owner}: milestone {i}", end, 1) <= len(rates):
            raise ArgumentError(f"{owner}: milestones must increase, got {end} after {len(rates)}")
        rates += [real_number(f"{owner}: learning rate {i}", rate)] * (end - len(rates))
    return rates


def _rates_by_epoch(owner: str, total_step: int, step_per_epoch: int, rate: Callable[[int], float]) -> list[float]:
    """The rate of the epoch of each step."""
    whole_number(f"{owner}: total_step", total_step, 1)
    whole_number(f"{owner}: step_per_epoch", step_per_epoch, 1)
    return [rate(step // step_per_epoch) for step in range(total_step)]


def exponential_decay_lr(learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int,
                         decay_epoch: int, is_stair: bool = False) -> list[float]:
    """``learning_rate * decay_rate ** (epoch / decay_epoch)`` for each step.

    Examples
    --------
    >>> exponential_decay_lr(0.5, 0.5, 4, 2, 1)
    [0.5, 0.5, 0.25, 0.25]
    """
    part = _decay_epochs("exponential_decay_lr", learning_rate, decay_rate, decay_epoch, is_stair)
    return _rates_by_epoch("exponential_decay_lr", total_step, step_per_epoch,
                           lambda epoch: learning_rate * decay_rate ** part(epoch))


def natural_exp_decay_lr(learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int,
                         decay_epoch: int, is_stair: bool = False) -> list[float]:
    """``learning_rate * exp(-decay_rate * epoch)`` for each step; in stairs, with the epoch at which the stair
    began."""
    part = _decay_epochs("natural_exp_decay_lr", learning_rate, decay_rate, decay_epoch, is_stair)
    return _rates_by_epoch("natural_exp_decay_lr", total_step, step_per_epoch,
                           lambda epoch: learning_rate * math.exp(-decay_rate * part(epoch) * decay_epoch))


def inverse_decay_lr(learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
                     is_stair: bool = False) -> list[float]:
    """``learning_rate / (1 + decay_rate * epoch / decay_epoch)`` for each step."""
    part = _decay_epochs("inverse_decay_lr", learning_rate, decay_rate, decay_epoch, is_stair)
    return _rates_by_epoch("inverse_decay_lr", total_step, step_per_epoch,
                           lambda epoch: learning_rate / (1 + decay_rate * part(epoch)))


def _decay_epochs(owner: str, learning_rate: float, decay_rate: float, decay_epoch: int, is_stair: bool
           ) -> Callable[[int], float]:
    """Epoch as a multiple of ``decay_epoch``."""
    real_number(f"{owner}: learning_rate", learning_rate, inside=True)
    real_number(f"{owner}: decay_rate", decay_rate, inside=True)
    whole_number(f"{owner}: decay_epoch", decay_epoch, 1)
    return (lambda epoch: epoch // decay_epoch) if flag(f"{owner}: is_stair", is_stair) else \
        (lambda epoch: epoch / decay_epoch)


def cosine_decay_lr(min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
                    ) -> list[float]:
    """From ``max_lr`` to ``min_lr`` along half a cosine wave, in ``decay_epoch`` epochs, for each step.

    Examples
    --------
    >>> [round(rate, 3) for rate in cosine_decay_lr(0.0, 0.1, 4, 2, 2)]
    [0.1, 0.1, 0.05, 0.05]
    """
    real_number("cosine_decay_lr: min_lr", min_lr)
    real_number("cosine_decay_lr: max_lr", max_lr, inside=True)
    whole_number("cosine_decay_lr: decay_epoch", decay_epoch, 1)
    if min_lr >= max_lr:
        raise ArgumentError(f"cosine_decay_lr: max_lr must be above min_lr, got {max_lr} and {min_lr}")
    return _rates_by_epoch("cosine_decay_lr", total_step, step_per_epoch,
                           lambda epoch: min_lr + 0.5 * (max_lr - min_lr) * (
        1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch)))


def polynomial_decay_lr(learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int,
                        decay_epoch: int, power: float, update_decay_epoch: bool = False) -> list[float]:
    """``(learning_rate - end_learning_rate) * (1 - epoch / decay_epoch) ** power + end_learning_rate`` for each step.

    With ``update_decay_epoch``, ``decay_epoch`` becomes its next multiple when epochs pass it; otherwise the last rate
    is kept.

    Examples
    --------
    >>> [round(rate, 3) for rate in polynomial_decay_lr(0.1, 0.0, 4, 2, 2, 1.0)]
    [0.1, 0.1, 0.05, 0.05]
    """
    real_number("polynomial_decay_lr: learning_rate", learning_rate, inside=True)
    real_number("polynomial_decay_lr: end_learning_rate", end_learning_rate)
    real_number("polynomial_decay_lr: power", power, inside=True)
    whole_number("polynomial_decay_lr: decay_epoch", decay_epoch, 1)
    flag("polynomial_decay_lr: update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        part = epoch / decay_epoch
        part = part / max(math.ceil(part), 1) if update_decay_epoch else min(part, 1.0)
        return (learning_rate - end_learning_rate) * (1 - part) ** power + end_learning_rate

    return _rates_by_epoch("polynomial_decay_lr", total_step, step_per_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """From 0 to ``learning_rate`` in ``warmup_epoch`` epochs, for each step.

    Examples
    --------
    >>> warmup_lr(0.5, 4, 1, 2)
    [0.0, 0.25, 0.5, 0.5]
    """
    real_number("warmup_lr: learning_rate", learning_rate)
    whole_number("warmup_lr: warmup_epoch", warmup_epoch, 1)
    return _rates_by_epoch("warmup_lr", total_step, step_per_epoch,
                           lambda epoch: learning_rate * min(epoch, warmup_epoch) / warmup_epoch)


name_errors(__name__, globals(), __all__)

"""Schedules of the rate by their names in MXNet before 0.6; ``lr_scheduler`` has the newer ones."""

from __future__ import annotations

import math

from ..core.settings import number, whole_number
from .lr_scheduler import LRScheduler

__all__ = ["LearningRateScheduler", "FactorScheduler"]


class LearningRateScheduler(LRScheduler):
    """A function of the number of updates, without settings; an optimizer sets its ``base_lr``."""

    def __init__(self) -> None:
        super().__init__()


class FactorScheduler(LearningRateScheduler):
    """Multiplies the rate by ``factor`` every ``step`` updates, from update ``step`` on.

    Raises
    ------
    ArgumentError
        If the step is no number of updates from 1, or the factor is not below 1.

    Examples
    --------
    >>> schedule = FactorScheduler(step=10, factor=0.5)
    >>> [schedule(n) for n in (9, 10, 20)]
    [0.01, 0.005, 0.0025]
    """

    def __init__(self, step: int, factor: float = 0.1):
        super().__init__()
        self.step = whole_number("FactorScheduler: step", step, 1)
        self.factor = number("FactorScheduler: factor", factor, -math.inf, 1, inside=True)

    def __call__(self, num_update: int) -> float:
        """The rate for a number of updates."""
        return self.base_lr * float(self.factor) ** int(num_update / self.step)

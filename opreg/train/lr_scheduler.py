"""Learning rates as functions of the number of updates, with an optional warmup."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import pairwise

from ..core.settings import CheckedMethods, number, whole_number
from ..errors import ArgumentError, did_you_mean

__all__ = ["LRScheduler", "FactorScheduler", "MultiFactorScheduler", "PolyScheduler", "CosineScheduler"]

_WARMUPS = ("linear", "constant")


class LRScheduler(CheckedMethods):
    """A function of the number of updates; a subclass defines the rate after the warmup in ``__call__``.

    Parameters
    ----------
    base_lr : float
        The rate after the warmup; an optimizer sets it to its ``learning_rate``.
    warmup_steps : int
        Number of updates of the warmup.
    warmup_begin_lr : float
        The rate at the begin of the warmup.
    warmup_mode : {"linear", "constant"}
        Whether the rate rises linearly to ``base_lr`` during the warmup, or is constant.

    Raises
    ------
    ArgumentError
        When the settings of the warmup are invalid.

    Examples
    --------
    >>> class Halving(LRScheduler):
    ...     def __call__(self, num_update):
    ...         return self.base_lr * 0.5**num_update
    >>> Halving(base_lr=0.8)(3)
    0.1
    """

    def __init__(self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear"):
        if warmup_steps < 0:
            raise ArgumentError(f"warmup_steps: expected a number of updates from 0, got {warmup_steps}")
        if warmup_mode not in _WARMUPS:
            raise ArgumentError(f"there is no warmup_mode {warmup_mode!r}. {did_you_mean(warmup_mode, _WARMUPS)}")
        if warmup_begin_lr > base_lr:
            raise ArgumentError(f"warmup_begin_lr={warmup_begin_lr} is above base_lr={base_lr}")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate at an update of the warmup."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """The rate for a number of updates, the largest one of all weights."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__, which returns the rate")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by ``factor`` every ``step`` updates, down to ``stop_factor_lr``.

    Examples
    --------
    >>> schedule = FactorScheduler(step=10, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 10, 11, 31)]
    [1.0, 1.0, 0.5, 0.125]
    """

    def __init__(self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        step = whole_number("FactorScheduler: step", step, 1)
        number(f"{type(self).__name__}: factor", factor, 0, 1)
        self.step, self.factor, self.stop_factor_lr, self.count = step, factor, stop_factor_lr, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:
            before = self.base_lr
            self.count += self.step
            self.base_lr *= self.factor
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                logging.info("Update %d: the learning rate has arrived at %.5e and stays there", num_update,
                             self.base_lr)
            else:
                logging.info("Update %d: the learning rate is now %.5e", num_update, self.base_lr)
            if self.base_lr == before:  # further steps change nothing
                self.count += (num_update - self.count - 1) // self.step * self.step
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by ``factor`` at each number of updates in the increasing list ``step``.

    Examples
    --------
    >>> schedule = MultiFactorScheduler(step=[5, 8], factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (5, 6, 9)]
    [1.0, 0.5, 0.25]
    """

    def __init__(self, step: Sequence[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, (list, tuple)) or not step:
            raise ArgumentError(f"step: expected a list of numbers of updates, got {step!r}")
        for update in step:
            number("MultiFactorScheduler: step", update)
        if step[0] < 1 or any(later <= earlier for earlier, later in pairwise(step)):
            raise ArgumentError(f"step={list(step)}: expected rising numbers from 1")
        number(f"{type(self).__name__}: factor", factor, 0, 1)
        self.step, self.factor, self.cur_step_ind, self.count = list(step), factor, 0, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update %d: the learning rate is now %.5e", num_update, self.base_lr)
        return self.base_lr


class _DecreasingScheduler(LRScheduler):
    """Base of rates that decrease from ``base_lr`` at the end of the warmup to ``final_lr`` at ``max_update``."""

    def __init__(self, max_update: int, base_lr: float, final_lr: float, warmup_steps: int, warmup_begin_lr: float,
                 warmup_mode: str):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if max_update < 1:
            raise ArgumentError(f"max_update: expected a number of updates from 1, got {max_update}")
        self.base_lr_orig, self.max_update, self.final_lr = base_lr, max_update, final_lr
        self.max_steps = max_update - warmup_steps

    def shape(self, part: float) -> float:
        """The remaining part of the decrease when ``part`` of the updates are done."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            part = (num_update - self.warmup_steps) / self.max_steps if self.max_steps else 1.0
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self.shape(part)
        return self.base_lr


class PolyScheduler(_DecreasingScheduler):
    """Decreases the rate from ``base_lr`` to ``final_lr`` by a power of the remaining updates.

    Examples
    --------
    >>> schedule = PolyScheduler(max_update=10, base_lr=1.0, pwr=2)
    >>> [schedule(n) for n in (0, 5, 10, 11)]
    [1.0, 0.25, 0.0, 0.0]
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, pwr: int = 2, final_lr: float = 0,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def shape(self, part: float) -> float:
        return (1.0 - part) ** self.power


class CosineScheduler(_DecreasingScheduler):
    """Decreases the rate from ``base_lr`` to ``final_lr`` along half a cosine wave.

    Examples
    --------
    >>> schedule = CosineScheduler(max_update=10, base_lr=1.0)
    >>> [round(schedule(n), 3) for n in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def shape(self, part: float) -> float:
        return (1.0 + math.cos(math.pi * part)) / 2.0

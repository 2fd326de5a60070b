"""Learning rate schedulers: each sets the rates of an optimizer's groups by the number of steps."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....cells.tensor import Tensor, tensor
from ....core.settings import Checked
from ....errors import ArgumentError, WrongNameError
from .optimizer import Optimizer, check_setting

__all__ = ["ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
           "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
           "ReduceLROnPlateau", "SequentialLR", "StepLR"]


def _set(optimizer: Optimizer, rates: Sequence[Any]) -> None:
    """Set the learning rates of the groups."""
    for parameter, rate in zip(optimizer.lrs, rates, strict=True):
        parameter.set_data(tensor(np.float32(float(rate))))


class LRScheduler(Checked):
    """Base of schedulers: derive from it, and define ``get_lr``, which returns a rate for each group.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer, whose rates are set now and by each ``step``.
    last_epoch : int
        Number of the last step, -1 before the first.

    Attributes
    ----------
    base_lrs : list of float
        The rates of the groups before the first step.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(self).__name__}: expected an optimizer of experimental.optim, got "
                                f"{type(optimizer).__name__}")
        if last_epoch < -1:
            raise ArgumentError(f"{type(self).__name__}: last_epoch must be an int of -1 at least, got {last_epoch!r}")
        for i, (group, rate) in enumerate(zip(optimizer.param_groups, optimizer.lrs)):
            if last_epoch != -1 and "initial_lr" not in group:
                raise WrongNameError(f"{type(self).__name__}: group {i} has no initial_lr, to resume after "
                                     f"{last_epoch}")
            group.setdefault("initial_lr", float(rate.asnumpy()))
        self.optimizer = optimizer
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.groups_num = len(self.base_lrs)
        self._last_lr = optimizer.lrs
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr(self)")

    def get_last_lr(self) -> list[Tensor]:
        """The learning rates that were set last, one for each group."""
        return [rate.value() for rate in self._last_lr]

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next step, or of step ``epoch``."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        _set(self.optimizer, self.get_lr())


class _Factor(LRScheduler):
    """Base of schedules that multiply the initial rates by a factor."""

    def _factor(self, step: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        factor = self._factor(self.last_epoch)
        return [rate * factor for rate in self.base_lrs]


def _count(owner: str, name: str, value: int, least: int = 1) -> int:
    if value != int(value) or value < least:
        raise ArgumentError(f"{owner}: {name} must be an int of {least} at least, got {value!r}")
    return int(value)


class StepLR(_Factor):
    """Multiplies the rates by ``gamma`` every ``step_size`` steps.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.01]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = _count("StepLR", "step_size", step_size), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return float(self.gamma ** (step // self.step_size))


class MultiStepLR(_Factor):
    """Multiplies the rates by ``gamma`` at each step in ``milestones``.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.1)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.01]
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return float(self.gamma ** bisect_right(self.milestones, step))


class ExponentialLR(_Factor):
    """Multiplies the rates by ``gamma`` at each step.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.025]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return float(self.gamma ** step)


class ConstantLR(_Factor):
    """Multiplies the rates by ``factor`` for the first ``total_iters`` steps.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.05]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        self.factor, self.total_iters = check_setting("ConstantLR", "factor", factor, 1.0 + 1e-9), total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.factor if step < self.total_iters else 1.0


class LinearLR(_Factor):
    """Multiplies the rates by a factor that changes linearly from ``start_factor`` to ``end_factor`` in ``total_iters``
    steps.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.075]
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1):
        self.start_factor = check_setting("LinearLR", "start_factor", start_factor, 1.0 + 1e-9)
        self.end_factor = check_setting("LinearLR", "end_factor", end_factor, 1.0 + 1e-9)
        self.total_iters = _count("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        share = min(step, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class PolynomialLR(_Factor):
    """Multiplies the rates by a power of the remaining fraction of ``total_iters`` steps.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=1.0)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.05]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = _count("PolynomialLR", "total_iters", total_iters), power
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return float((1.0 - min(step, self.total_iters) / self.total_iters) ** self.power)


class _Functions(LRScheduler):
    """Base of schedules from functions of the step, one for all groups or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
                 last_epoch: int = -1):
        count = len(getattr(optimizer, "param_groups", ()))
        self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count or not all(map(callable, self.lr_lambdas)):
            raise ArgumentError(f"{type(self).__name__}: expected a function, or one for each of {count} groups")
        super().__init__(optimizer, last_epoch)


class LambdaLR(_Functions):
    """Multiplies the initial rates by a function of the step.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9 ** epoch)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.081]
    """

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        return [rate * function(self.last_epoch) for rate, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_Functions):
    """Multiplies the rates at each step by a function of the step.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.9)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.081]
    """

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        return [rate * math.prod([float(function(step)) for step in range(1, self.last_epoch + 1)])
                for rate, function in zip(self.base_lrs, self.lr_lambdas)]


def _cosine(rate: float, least: float, share: float) -> float:
    return least + (rate - least) * (1 + math.cos(math.pi * share)) / 2


class CosineAnnealingLR(LRScheduler):
    """Decreases the rates to ``eta_min`` along a cosine in ``T_max`` steps, and increases them again.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.05]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, check_setting("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        return [_cosine(rate, self.eta_min, self.last_epoch / self.T_max) for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Decreases the rates to ``eta_min`` along a cosine in ``T_0`` steps, then restarts; each period is ``T_mult``
    times as long as the one before.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.05]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1):
        self.T_0 = _count("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = _count("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min = check_setting("CosineAnnealingWarmRestarts", "eta_min", eta_min)
        self._position: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates one step later, or those of ``epoch``, which may lie between two steps."""
        self._position = self._position + 1 if epoch is None else float(epoch)
        if self._position < 0:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: step: epoch must not be negative, got {epoch!r}")
        self.last_epoch = int(self._position)
        _set(self.optimizer, self.get_lr())

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        remaining, length = self._position, self.T_0
        while remaining >= length:
            remaining, length = remaining - length, length * self.T_mult
        return [_cosine(rate, self.eta_min, remaining / length) for rate in self.base_lrs]


class CyclicLR(LRScheduler):
    """Increases the rates linearly from ``base_lr`` to ``max_lr`` and decreases them again, in cycles.

    Parameters
    ----------
    step_size_up, step_size_down : int
        Numbers of increasing and decreasing steps; equal by default.
    mode : {"triangular", "triangular2", "exp_range"}
        Whether the amplitude is constant, halved with each cycle, or multiplied by ``gamma`` with each step.
    scale_fn : callable, optional
        A function that replaces ``mode`` and returns the factor of the amplitude, for the cycle or the step; see
        ``scale_mode``.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> scheduler = optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=4)
    >>> for _ in range(2):
    ...     scheduler.step()
    >>> [round(float(rate), 4) for rate in scheduler.get_last_lr()]
    [0.3]
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
                 step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular",
                 gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 last_epoch: int = -1):
        scales: dict[str, tuple[Callable[[float], float], str]] = {
            "triangular": (lambda cycle: 1.0, "cycle"), "triangular2": (lambda cycle: 0.5 ** (cycle - 1), "cycle"),
            "exp_range": (lambda step: gamma ** step, "iterations")}
        if scale_fn is None and mode not in scales:
            raise ArgumentError(f"CyclicLR: mode must be one of {', '.join(scales)}, got {mode!r}")
        self._scale, self._of = scales[mode] if scale_fn is None else (scale_fn, scale_mode)
        count = len(getattr(optimizer, "param_groups", ()))
        self._low, self._high = (list(rate) if isinstance(rate, (list, tuple)) else [rate] * count
                                 for rate in (base_lr, max_lr))
        if len(self._low) != count or len(self._high) != count:
            raise ArgumentError(f"CyclicLR: expected one rate or {count}, got {base_lr!r} and {max_lr!r}")
        self._up = _count("CyclicLR", "step_size_up", step_size_up)
        self._down = self._up if step_size_down is None else _count("CyclicLR", "step_size_down", step_size_down)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Sequence[Any]:
        """The learning rates of this step, one for each group."""
        cycle, at = divmod(self.last_epoch, self._up + self._down)
        height = at / self._up if at <= self._up else (self._up + self._down - at) / self._down
        height *= self._scale(cycle + 1 if self._of == "cycle" else self.last_epoch)
        return [low + (high - low) * height for low, high in zip(self._low, self._high)]


class SequentialLR(LRScheduler):
    """Uses one scheduler after the other, changing at each step in ``milestones``."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1):
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(f"SequentialLR: expected {len(schedulers) - 1} milestones for {len(schedulers)} "
                                f"schedulers, got {len(milestones)}")
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ArgumentError("SequentialLR: the schedulers are of another optimizer")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next step."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        at = bisect_right(self._milestones, self.last_epoch)
        begin = self._milestones[at - 1] if at else 0
        self._schedulers[at].step(self.last_epoch - begin)


class ReduceLROnPlateau(Checked):
    """Multiplies the rates by ``factor`` when the metric given to ``step`` has not improved for more than ``patience``
    steps.

    Parameters
    ----------
    mode : {"min", "max"}
        Whether a smaller or a larger metric is better.
    threshold, threshold_mode : float, {"rel", "abs"}
        Least improvement, relative or absolute.
    cooldown : int
        Steps after a change during which no step counts.
    min_lr : float or sequence of float
        Lower bound of rates.
    eps : float
        Smallest change that is applied.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | Sequence[float] = 0, eps: float = 1e-8):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"ReduceLROnPlateau: expected an optimizer of experimental.optim, got "
                                f"{type(optimizer).__name__}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"ReduceLROnPlateau: expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', "
                                f"got {mode!r} and {threshold_mode!r}")
        count = len(optimizer.param_groups)
        self.optimizer, self.mode, self.patience, self.cooldown = optimizer, mode, patience, cooldown
        self.factor = check_setting("ReduceLROnPlateau", "factor", factor, 1.0)
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.min_lrs: list[float] = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise ArgumentError(f"ReduceLROnPlateau: expected one min_lr or {count}, got {min_lr!r}")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether steps do not count because of a recent change."""
        return self.cooldown_counter > 0

    def _is_improvement(self, now: float) -> bool:
        margin = self.threshold * abs(self.best) if self.threshold_mode == "rel" else self.threshold
        if math.isinf(self.best):
            margin = 0.0
        return now < self.best - margin if self.mode == "min" else now > self.best + margin

    def get_last_lr(self) -> list[Tensor]:
        """The learning rates that were set last, one for each group."""
        return [rate.value() for rate in self.optimizer.lrs]

    def step(self, metrics: Any) -> None:
        """Compare the metric, and set the rates."""
        now = float(metrics)
        if self._is_improvement(now):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            rates = [float(rate.asnumpy()) for rate in self.optimizer.lrs]
            lower = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs)]
            _set(self.optimizer, [new if rate - new > self.eps else rate for rate, new in zip(rates, lower)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

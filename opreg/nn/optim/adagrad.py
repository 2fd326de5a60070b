"""Optimizers whose rate for each element follows from the squares of all gradients before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...builtin.optimizers.update_formulas import adadelta_step, leader_step, rms_step
from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...errors import ArgumentError
from .optimizer import Params, Rate, store
from .rule import Rule

__all__ = ["RMSProp", "Adagrad", "ProximalAdagrad", "FTRL", "Adadelta"]


class RMSProp(Rule):
    """RMSProp: ``v = momentum * v + lr * g / sqrt(s + epsilon)``, ``p -= v``, ``s`` a moving average of ``g ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    decay : float
        Decay factor of the averages.
    momentum : float
        Factor of the velocity.
    epsilon : float
        Term that keeps the denominator from zero.
    centered : bool
        Whether the square of the gradient's moving average is subtracted from ``s``.
    use_locking
        Accepted without effect.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> optimizer = RMSProp(net.trainable_params(), learning_rate=0.1)
    >>> _ = optimizer((Tensor([[0.5]]),))
    >>> print(net.weight.asnumpy().round(3))
    [[0.948]]
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, decay: float = 0.9, momentum: float = 0.0,
                 epsilon: float = 1e-10, use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = real_number("RMSProp: decay", decay)
        self.momentum = real_number("RMSProp: momentum", momentum)
        self.epsilon = real_number("RMSProp: epsilon", epsilon, inside=True)
        self.centered = flag("RMSProp: centered", centered)
        self.ms, self.moment = self._states("mean_square", 1.0), self._states("moment")
        if centered:
            self.mg = self._states("mean_grad")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients)):
            spread = self._mean(self.ms[i], g * g, self.decay)
            mean = self._mean(self.mg[i], g, self.decay) if self.centered else None
            step = self.moment[i] * self.momentum + rms_step(g, spread, self.epsilon, mean) * lr
            store(self.moment[i], step)
            store(p, p - step)
        return self._done


class Adagrad(Rule):
    """Adagrad: ``p -= lr * g / sqrt(s)``, where ``s`` is the sum of all ``g ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    accum : float
        Initial value of the sum.
    update_slots : bool
        Whether the sum is updated.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> optimizer = Adagrad(net.trainable_params(), learning_rate=0.1)
    >>> _ = optimizer((Tensor([[0.5]]),))
    >>> print(net.weight.asnumpy().round(3))
    [[0.915]]
    """

    def __init__(self, params: Params, accum: float = 0.1, learning_rate: Rate = 0.001, update_slots: bool = True,
                 loss_scale: float = 1.0, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = flag("Adagrad: update_slots", update_slots)
        self.accum = self._states("accum", real_number("Adagrad: accum", accum))

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, (p, g, lr) in zip(self.accum, self._prepare_step(gradients)):
            now: Tensor = total
            if self.update_slots:
                now = total + g * g
                store(total, now)
            store(p, p - rms_step(g, now) * lr)
        return self._done


class ProximalAdagrad(Rule):
    """Adagrad, followed by proximal shrinkage: parameters move by ``rate * l1`` towards zero, and are divided by ``1 +
    rate * l2``.

    ``rate`` is the rate of each element, ``lr / sqrt(s)``, as in MindSpore's kernels; its documentation has ``lr``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    accum : float
        Initial value of the sum of squares.
    l1, l2 : float
        Strengths of both regularisations.
    use_locking
        Accepted without effect.
    """

    def __init__(self, params: Params, accum: float = 0.1, learning_rate: Rate = 0.001, l1: float = 0.0,
                 l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.accum = self._states("accum", real_number("ProximalAdagrad: accum", accum))
        self.l1 = real_number("ProximalAdagrad: l1", l1)
        self.l2 = real_number("ProximalAdagrad: l2", l2)

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, (p, g, lr) in zip(self.accum, self._prepare_step(gradients)):
            now = total + g * g
            store(total, now)
            value = p - rms_step(g, now) * lr
            rate = rms_step(lr, now) if self.l1 or self.l2 else lr
            if self.l1:
                bound = rate * self.l1
                value = value - ops.broadcast_minimum(ops.broadcast_maximum(value, -bound), bound)
            store(p, value / (rate * self.l2 + 1.0) if self.l2 else value)
        return self._done


class FTRL(Rule):
    """FTRL: ``p = (clip(u, -l1, l1) - u) / (m ** -lr_power / lr + 2 * l2)``, independent of the previous ``p``.

    ``m`` is the sum of ``g ** 2``; ``u`` is the sum of ``g`` minus the increase of ``m ** -lr_power`` times ``p / lr``.

    Parameters
    ----------
    params, weight_decay, loss_scale
        See ``Optimizer``; all weights are decayed, whatever their names.
    initial_accum : float
        Initial value of ``m``.
    learning_rate : float
        One for all parameters and steps.
    lr_power : float
        At most 0.
    l1, l2 : float
        Strengths of both regularisations.
    use_locking
        Accepted without effect.
    """

    _spares = False

    def __init__(self, params: Params, initial_accum: float = 0.1, learning_rate: Rate = 0.001, lr_power: float = -0.5,
                 l1: float = 0.0, l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ArgumentError("FTRL: expected one learning rate for all steps and groups")
        self.moments = self._states("moments", real_number("FTRL: initial_accum", initial_accum))
        self.linear = self._states("linear")
        self.l1, self.l2 = real_number("FTRL: l1", l1), real_number("FTRL: l2", l2)
        self.lr_power = real_number("FTRL: lr_power", lr_power, -math.inf, 0.0)

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, linear, (p, g, lr) in zip(self.moments, self.linear, self._prepare_step(gradients)):
            now = total + g * g
            value, u = leader_step(p, g, linear, self._power(total), self._power(now), lr, self.l1, 2 * self.l2)
            store(total, now)
            store(linear, u)
            store(p, value)
        return self._done

    def _power(self, x: Tensor) -> Tensor:
        return ops.sqrt(x) if self.lr_power == -0.5 else x ** -self.lr_power


class Adadelta(Rule):
    """Adadelta: ``p -= lr * u`` with ``u = sqrt(d + epsilon) / sqrt(s + epsilon) * g``.

    ``s`` is a moving average of ``g ** 2``, ``d`` one of ``u ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    rho : float
        Decay factor of the averages, from 0 to 1.
    epsilon : float
        Term that keeps the denominator from zero.

    Examples
    --------
    >>> from opreg import Parameter, Tensor, nn
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = nn.Adadelta([weight])((Tensor([1.0]),))
    >>> print(weight.asnumpy().round(3))
    [0.997]
    """

    def __init__(self, params: Params, learning_rate: Rate = 1.0, rho: float = 0.9, epsilon: float = 1e-6,
                 loss_scale: float = 1.0, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = real_number("Adadelta: rho", rho, 0.0, 1.0)
        self.epsilon = real_number("Adadelta: epsilon", epsilon)
        self.accum, self.accum_update = self._states("accum"), self._states("accum_update")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients)):
            spread = self._mean(self.accum[i], g * g, self.rho)
            step = adadelta_step(g, spread, self.accum_update[i], self.epsilon)
            self._mean(self.accum_update[i], step * step, self.rho)
            store(p, p - step * lr)
        return self._done

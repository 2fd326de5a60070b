"""Optimizers whose steps go along the gradient: SGD and its averages, momentum, and steps of its sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...builtin.optimizers.update_formulas import average
from ...cells.cell import Cell
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...errors import ArgumentError
from .optimizer import Params, Rate, store
from .rule import FLOAT, Rule, pair

__all__ = ["SGD", "ASGD", "Momentum", "Rprop"]


class _NoMomentum(Parameter):
    """The momentum of an optimizer without velocities, which stays 0."""

    def _write(self, key: Any, value: Any) -> None:
        if np.any(value.asnumpy() if isinstance(value, NDArray) else value):
            raise _no_velocity()
        super()._write(key, value)


def _no_velocity() -> AttributeError:
    return AttributeError("SGD: momentum was 0 when the optimizer was made, so it has no velocity; make another")


class SGD(Rule):
    """Stochastic gradient descent: ``p -= lr * v`` with ``v = momentum * v + (1 - dampening) * g``, at first ``g``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    momentum : float
        Factor of the velocity; 0 for none, and then there is no velocity for a momentum set later.
    dampening : float
        Part by which a gradient's addition to the velocity is reduced.
    nesterov : bool
        Whether ``g + momentum * v`` replaces ``v``; needs momentum and no dampening.

    Examples
    --------
    >>> w = Parameter(Tensor([1.0, 2.0]), name="w")
    >>> SGD([w], learning_rate=0.5)((Tensor([1.0, 1.0]),))
    (True,)
    >>> w.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    _calls_decays = False

    def __init__(self, params: Params, learning_rate: Rate = 0.1, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float | Cell = 0.0, nesterov: bool = False, loss_scale: float = 1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        momentum_value = real_number("SGD: momentum", momentum)
        self.dampening = real_number("SGD: dampening", dampening)
        self.nesterov = flag("SGD: nesterov", nesterov)
        if nesterov and (not momentum_value or dampening):
            raise ArgumentError(f"SGD: nesterov needs a momentum above 0 and a dampening of 0, got {momentum} and "
                                f"{dampening}")
        self._moving = momentum_value > 0
        self.momentum = (Parameter if self._moving else _NoMomentum)(momentum_value, name="momentum")
        if self._moving:
            self.accum = self._states("accum")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "momentum" and not self.__dict__.get("_moving", True) and name in self._params:
            raise _no_velocity()
        super().__setattr__(name, value)

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        share = self._share() if self._moving and self.dampening else None
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients)):
            step = g
            if self._moving:
                step = self.accum[i] * self.momentum + (g if share is None else g * share)
                store(self.accum[i], step)
                if self.nesterov:
                    step = g + step * self.momentum
            store(p, p - step * lr)
        return self._done

    def _share(self) -> Tensor:
        """The factor of a gradient in the velocity: 1 in the first step."""
        return 1.0 - (self.global_step > 0)._cast(FLOAT).reshape(()) * self.dampening


class ASGD(Rule):
    """Averaged stochastic gradient descent: ``p -= eta * (g + lambd * p)``, with the average of ``p`` in ``ax``.

    ``eta`` is the learning rate at first, then ``lr / (1 + lambd * lr * t) ** alpha``.

    Parameters
    ----------
    params, learning_rate, weight_decay
        See ``Optimizer``.
    lambd : float
        Decay of the parameters, and of ``eta``.
    alpha : float
        Exponent of the decay of ``eta``.
    t0 : float
        Start of the average: ``ax`` is the mean of the parameter from step ``t0 + 2`` on, and the parameter before.
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        self.lambd = real_number("ASGD: lambd", lambd)
        self.alpha = real_number("ASGD: alpha", alpha)
        self.t0 = real_number("ASGD: t0", t0)
        self.eta = self._states_of("eta", lambda p: np.zeros((), np.float32))
        self.ax = self._states("ax_")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        first = (self.global_step == 0).reshape(())
        time = self.global_step._cast(FLOAT).reshape(()) + 1.0
        share = 1.0 / ops._maximum_scalar(time - (1.0 + self.t0), scalar=1.0)
        for eta, ax, (p, g, lr) in zip(self.eta, self.ax, self._prepare_step(gradients)):
            rate = ops._npi_where(first, lr, eta)
            value = p * (1.0 - rate * self.lambd) - g * rate
            store(ax, average(ax, value, 1.0 - share, share))
            store(p, value)
            store(eta, lr / (lr * (time * self.lambd) + 1.0) ** self.alpha)
        return self._done


class Momentum(Rule):
    """Gradient descent with momentum: ``v = momentum * v + g``, ``p -= lr * v``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    momentum : float
        Factor of the velocity.
    use_nesterov : bool
        Whether ``g + momentum * v`` replaces ``v`` in the update.

    Examples
    --------
    >>> from opreg import nn
    >>> net = nn.Dense(2, 1)
    >>> optimizer = Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
    >>> [parameter.name for parameter in optimizer.parameters]
    ['weight', 'bias']
    """

    def __init__(self, params: Params, learning_rate: Rate, momentum: float, weight_decay: float | Cell = 0.0,
                 loss_scale: float = 1.0, use_nesterov: bool = False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = Parameter(real_number("Momentum: momentum", momentum), name="momentum")
        self.use_nesterov = flag("Momentum: use_nesterov", use_nesterov)
        self.moments = self._states("moments")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for v, (p, g, lr) in zip(self.moments, self._prepare_step(gradients)):
            step = v * self.momentum + g
            store(v, step)
            if self.use_nesterov:
                step = g + step * self.momentum
            store(p, p - step * lr)
        return self._done


class Rprop(Rule):
    """Resilient propagation: ``p -= s * sign(g)``, with a step size ``s`` for each element.

    A step size grows while the sign of ``g`` is unchanged, and shrinks when it changes; then the step is skipped.

    Parameters
    ----------
    params, learning_rate, weight_decay
        See ``Optimizer``; the initial ``s`` is the learning rate.
    etas : tuple of two floats
        Factors of ``s`` when the sign changes, below 1, and when it does not, above 1.
    step_sizes : tuple of two floats
        Bounds of ``s``.

    Examples
    --------
    >>> from opreg import Parameter, Tensor, nn
    >>> weight = Parameter(Tensor([1.0, 1.0]), name="w")
    >>> _ = nn.Rprop([weight], learning_rate=0.1)((Tensor([0.001, -100.0]),))
    >>> print(weight.asnumpy().round(3))
    [0.9 1.1]
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50.0), weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        shrink, grow = pair("Rprop", "etas", etas)
        self.etaminus = real_number("Rprop: etas[0]", shrink, 0.0, 1.0, inside=True)
        self.etaplus = real_number("Rprop: etas[1]", grow, 1.0, inside=True)
        least, most = pair("Rprop", "step_sizes", step_sizes)
        self.step_size_min = real_number("Rprop: step_sizes[0]", least)
        self.step_size_max = real_number("Rprop: step_sizes[1]", most, self.step_size_min)
        self.prev, self.step_size = self._states("prev"), self._states("step_size")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        first = (self.global_step == 0).reshape(())
        for before, size, (p, g, lr) in zip(self.prev, self.step_size, self._prepare_step(gradients)):
            same = g * before
            turned = same < 0
            length = ops._npi_where(first, lr, size._cast(FLOAT))
            longer = ops._npi_where(same > 0, length * self.etaplus, length)
            length = ops._npi_where(turned, length * self.etaminus, longer)
            length = ops.clip(length, a_min=self.step_size_min, a_max=self.step_size_max)
            g = ops._npi_where_lscalar(turned, g, scalar=0.0)
            store(size, length)
            store(before, g)
            store(p, p - ops.sign(g) * length)
        return self._done

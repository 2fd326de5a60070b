"""The optimizers: each a rule over a parameter, its gradient and its states.

Formulas are those of MindSpore's documentation of the class of that name, which cites the papers; what MXNet's have
alike is written once, in ``builtin.update_formulas``. What is narrower than float32 is computed in float32, as learning
rates are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...builtin.optimizers.update_formulas import (
    adadelta_step,
    adam_step,
    average,
    correction,
    largest,
    rms_step,
    trust_ratio,
)
from ...core.registry import ops
from ..cell import Cell
from ..parameter import Parameter
from ..tensor import Tensor, tensor
from .optimizer import Optimizer, Params, Rate, store
from .settings import flag, number

__all__ = ["SGD", "Momentum", "Adam", "AdamWeightDecay", "AdaMax", "RMSProp", "Adagrad", "Adadelta", "Lamb"]

_FLOAT = np.dtype(np.float32)


def _one(name: str) -> Parameter:
    """A state that is one number, 1 at first."""
    return Parameter(tensor(np.ones(1, np.float32)), name=name)


def _rest(decay: float) -> float:
    """What is left to 1 when both are float32: the correction of the bias of averages is computed with the same."""
    return float(np.float32(1.0) - np.float32(decay))


def _once(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function, computed once for each of the values it is asked for: learning rates that parameters share."""
    known: dict[int, tuple[Tensor, Tensor]] = {}

    def call(value: Tensor) -> Tensor:
        if id(value) not in known:
            known[id(value)] = value, function(value)
        return known[id(value)][1]

    return call


class _Rule(Optimizer):
    """An optimizer whose steps are plans."""

    _planned = True

    def _averages(self, beta1: float, beta2: float, eps: float) -> None:
        self.beta1 = number(self.cls_name, "beta1", beta1, 0.0, 1.0, inside=True)
        self.beta2 = number(self.cls_name, "beta2", beta2, 0.0, 1.0, inside=True)
        self.eps = number(self.cls_name, "eps", eps, inside=True)

    def _mean(self, state: Parameter, value: Tensor, decay: float) -> Tensor:
        """A moving average with a further value in it, which becomes the state."""
        now = average(state, value, decay, _rest(decay))
        store(state, now)
        return now

    @property
    def _done(self) -> tuple[bool, ...]:
        return (True,) * len(self.parameters)


class SGD(_Rule):
    """Stochastic gradient descent: ``p -= lr * v`` with ``v = momentum * v + (1 - dampening) * g``, at first ``g``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    momentum : float
        Of the velocity; 0 is none.
    dampening : float
        Of what a gradient adds to the velocity.
    nesterov : bool
        Whether ``g + momentum * v`` takes the place of ``v``; wants momentum and no dampening.

    Examples
    --------
    >>> w = Parameter(tensor([1.0, 2.0]), name="w")
    >>> SGD([w], learning_rate=0.5)((tensor([1.0, 1.0]),))
    (True,)
    >>> w.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, loss_scale: float = 1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        momentum_value = number("SGD", "momentum", momentum)
        self.dampening = number("SGD", "dampening", dampening)
        self.nesterov = flag("SGD", "nesterov", nesterov)
        if nesterov and (not momentum_value or dampening):
            raise ValueError(f"SGD: nesterov needs a momentum above 0 and a dampening of 0, got {momentum} and "
                             f"{dampening}")
        self._moving = momentum_value > 0
        self.momentum = Parameter(momentum_value, name="momentum")
        if self._moving:
            self.accum = self._states("accum")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        share = self._share() if self._moving and self.dampening else None
        for i, (p, g, lr) in enumerate(self._prepared(gradients)):
            step = g
            if self._moving:
                step = self.accum[i] * self.momentum + (g if share is None else g * share)
                store(self.accum[i], step)
                if self.nesterov:
                    step = g + step * self.momentum
            store(p, p - step * lr)
        return self._done

    def _share(self) -> Tensor:
        """How much of a gradient the velocity takes up: all of it in the first step."""
        return 1.0 - (self.global_step > 0)._cast(_FLOAT).reshape(()) * self.dampening


class Momentum(_Rule):
    """Gradient descent with momentum: ``v = momentum * v + g``, ``p -= lr * v``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    momentum : float
        Of the velocity.
    use_nesterov : bool
        Whether ``g + momentum * v`` takes the place of ``v`` where the parameter changes.
    """

    def __init__(self, params: Params, learning_rate: Rate, momentum: float, weight_decay: float | Cell = 0.0,
                 loss_scale: float = 1.0, use_nesterov: bool = False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = Parameter(number("Momentum", "momentum", momentum), name="momentum")
        self.use_nesterov = flag("Momentum", "use_nesterov", use_nesterov)
        self.moments = self._states("moments")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for v, (p, g, lr) in zip(self.moments, self._prepared(gradients)):
            step = v * self.momentum + g
            store(v, step)
            if self.use_nesterov:
                step = g + step * self.momentum
            store(p, p - step * lr)
        return self._done


class Adam(_Rule):
    """Adam: ``p -= lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)``.

    ``m`` and ``v`` are moving averages of the gradient and of its square.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    beta1, beta2 : float
        Of the averages, between 0 and 1.
    eps : float
        Keeps the denominator from zero.
    use_nesterov : bool
        Whether ``beta1 * m + (1 - beta1) * g`` takes the place of ``m``.
    use_amsgrad : bool
        Whether the largest ``v`` so far takes the place of ``v``.
    use_locking, use_lazy, use_offload
        Accepted, without effect here.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False,
                 weight_decay: float | Cell = 0.0, loss_scale: float = 1.0, use_amsgrad: bool = False,
                 use_lazy: bool = False, use_offload: bool = False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._averages(beta1, beta2, eps)
        self.use_nesterov = flag("Adam", "use_nesterov", use_nesterov)
        self.use_amsgrad = flag("Adam", "use_amsgrad", use_amsgrad)
        self.beta1_power, self.beta2_power = _one("beta1_power"), _one("beta2_power")
        self.moment1, self.moment2 = self._states("moment1"), self._states("moment2")
        if use_amsgrad:
            self.vhat = self._states("vhat")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        power1, power2 = self.beta1_power * self.beta1, self.beta2_power * self.beta2
        store(self.beta1_power, power1)
        store(self.beta2_power, power2)
        correction = (ops.sqrt(1.0 - power2) / (1.0 - power1)).reshape(())
        corrected = _once(lambda lr: lr * correction)
        for i, (p, g, lr) in enumerate(self._prepared(gradients)):
            m = self._mean(self.moment1[i], g, self.beta1)
            v = self._mean(self.moment2[i], g * g, self.beta2)
            if self.use_nesterov:
                m = average(m, g, self.beta1, _rest(self.beta1))
            if self.use_amsgrad:
                v = ops.broadcast_maximum(self.vhat[i]._cast(v._dt), v)
                store(self.vhat[i], v)
            store(p, p - adam_step(m, v, self.eps) * corrected(lr))
        return self._done


class AdamWeightDecay(_Rule):
    """Adam without correction of its bias, decay apart: ``p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)``.

    Parameters
    ----------
    params, learning_rate, weight_decay
        As ``Optimizer`` has them.
    beta1, beta2 : float
        Of the averages of the gradient and of its square, between 0 and 1.
    eps : float
        Keeps the denominator from zero.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-6, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        self._averages(beta1, beta2, eps)
        self.moments1, self.moments2 = self._states("adam_m"), self._states("adam_v")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        decays = self._now(self._decays)
        for i, (p, g, lr) in enumerate(self._prepared(gradients, decay=False)):
            m = self._mean(self.moments1[i], g, self.beta1)
            v = self._mean(self.moments2[i], g * g, self.beta2)
            step = adam_step(m, v, self.eps)
            if self._decaying[i]:
                step = step + p * decays[i]
            store(p, p - step * lr)
        return self._done


class Lamb(_Rule):
    """LAMB: the step of Adam with decay, ``u = m' / (sqrt(v') + eps) + weight_decay * p``, as long as the parameter.

    ``p -= lr * (norm(p) / norm(u)) * u``, with 1 for the ratio where a norm is zero; ``m'`` and ``v'`` are moving
    averages of the gradient and of its square, their bias corrected.

    Parameters
    ----------
    params, learning_rate, weight_decay
        As ``Optimizer`` has them.
    beta1, beta2 : float
        Of the averages, between 0 and 1.
    eps : float
        Keeps the denominator from zero.
    """

    def __init__(self, params: Params, learning_rate: Rate, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        self._averages(beta1, beta2, eps)
        self.moments1, self.moments2 = self._states("lamb_m"), self._states("lamb_v")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        decays = self._now(self._decays)
        time = self.global_step._cast(_FLOAT).reshape(()) + 1.0
        first, second = correction(self.beta1, time), correction(self.beta2, time)
        for i, (p, g, lr) in enumerate(self._prepared(gradients, decay=False)):
            m = self._mean(self.moments1[i], g, self.beta1) * first
            v = self._mean(self.moments2[i], g * g, self.beta2) * second
            step = adam_step(m, v, self.eps)
            if self._decaying[i]:
                step = step + p * decays[i]
            length = _norm(p)
            store(p, p - step * (lr * trust_ratio(length, _norm(step), ops.ones_like(length), ops._npi_where)))
        return self._done


def _norm(x: Tensor) -> Tensor:
    return ops.sqrt(ops._np_sum(ops.square(x._cast(_FLOAT))))


class AdaMax(_Rule):
    """AdaMax: ``p -= lr / (1 - beta1**t) * m / (v + eps)`` with ``v = max(beta2 * v, |g|)``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    beta1, beta2 : float
        Of the average of the gradient, and of its largest magnitude, between 0 and 1.
    eps : float
        Keeps the denominator from zero.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, weight_decay: float | Cell = 0.0, loss_scale: float = 1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._averages(beta1, beta2, eps)
        self.beta1_power = _one("beta1_power")
        self.moment1, self.moment2 = self._states("moment1"), self._states("moment2")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        power = self.beta1_power * self.beta1
        store(self.beta1_power, power)
        corrected = _once(lambda lr: lr / (1.0 - power.reshape(())))
        for i, (p, g, lr) in enumerate(self._prepared(gradients)):
            m = self._mean(self.moment1[i], g, self.beta1)
            v = largest(self.moment2[i], g, self.beta2)
            store(self.moment2[i], v)
            store(p, p - m * corrected(lr) / (v + self.eps))
        return self._done


class RMSProp(_Rule):
    """RMSProp: ``v = momentum * v + lr * g / sqrt(s + epsilon)``, ``p -= v``, ``s`` a moving average of ``g ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    decay : float
        Of the averages.
    momentum : float
        Of the velocity.
    epsilon : float
        Keeps the denominator from zero.
    centered : bool
        Whether the square of the gradient's moving average is taken from ``s``.
    use_locking
        Accepted, without effect here.
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, decay: float = 0.9, momentum: float = 0.0,
                 epsilon: float = 1e-10, use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = number("RMSProp", "decay", decay)
        self.momentum = number("RMSProp", "momentum", momentum)
        self.epsilon = number("RMSProp", "epsilon", epsilon, inside=True)
        self.centered = flag("RMSProp", "centered", centered)
        self.ms, self.moment = self._states("mean_square", 1.0), self._states("moment")
        if centered:
            self.mg = self._states("mean_grad")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for i, (p, g, lr) in enumerate(self._prepared(gradients)):
            spread = self._mean(self.ms[i], g * g, self.decay)
            mean = self._mean(self.mg[i], g, self.decay) if self.centered else None
            step = self.moment[i] * self.momentum + rms_step(g, spread, self.epsilon, mean) * lr
            store(self.moment[i], step)
            store(p, p - step)
        return self._done


class Adagrad(_Rule):
    """Adagrad: ``p -= lr * g / sqrt(s)``, ``s`` the sum of ``g ** 2`` so far.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    accum : float
        What the sum begins with.
    update_slots : bool
        Whether the sum grows.
    """

    def __init__(self, params: Params, accum: float = 0.1, learning_rate: Rate = 0.001, update_slots: bool = True,
                 loss_scale: float = 1.0, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = flag("Adagrad", "update_slots", update_slots)
        self.accum = self._states("accum", number("Adagrad", "accum", accum))

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, (p, g, lr) in zip(self.accum, self._prepared(gradients)):
            now: Tensor = total
            if self.update_slots:
                now = total + g * g
                store(total, now)
            store(p, p - rms_step(g, now) * lr)
        return self._done


class Adadelta(_Rule):
    """Adadelta: ``p -= lr * u`` with ``u = sqrt(d + epsilon) / sqrt(s + epsilon) * g``.

    ``s`` is a moving average of ``g ** 2``, ``d`` one of ``u ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As ``Optimizer`` has them.
    rho : float
        Of the averages, from 0 to 1.
    epsilon : float
        Keeps the denominator from zero.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1.0, rho: float = 0.9, epsilon: float = 1e-6,
                 loss_scale: float = 1.0, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = number("Adadelta", "rho", rho, 0.0, 1.0)
        self.epsilon = number("Adadelta", "epsilon", epsilon)
        self.accum, self.accum_update = self._states("accum"), self._states("accum_update")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for i, (p, g, lr) in enumerate(self._prepared(gradients)):
            spread = self._mean(self.accum[i], g * g, self.rho)
            step = adadelta_step(g, spread, self.accum_update[i], self.epsilon)
            self._mean(self.accum_update[i], step * step, self.rho)
            store(p, p - step * lr)
        return self._done

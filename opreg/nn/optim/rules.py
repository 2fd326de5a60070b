"""The optimizers: each a rule over a parameter, its gradient and its states.

Formulas are those of MindSpore's documentation of the class, which cites the papers; formulas shared with MXNet's are
in ``builtin.update_formulas``. Parameters narrower than float32 are updated in float32, the dtype of learning rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...builtin.optimizers.update_formulas import (
    adadelta_step,
    adam_step,
    average,
    correction,
    largest,
    leader_step,
    rms_step,
    trust_ratio,
)
from ...cells.cell import Cell
from ...cells.parameter import Parameter, ParameterTuple
from ...cells.tensor import Tensor, tensor
from ...core.registry import ops
from ...core.spec import Shape
from .optimizer import Optimizer, Params, Rate, store
from .settings import flag, number

__all__ = ["SGD", "ASGD", "Momentum", "Rprop", "Adam", "LazyAdam", "AdamOffload", "AdamWeightDecay", "AdaFactor",
           "AdaMax", "RMSProp", "Adagrad", "ProximalAdagrad", "Adadelta", "FTRL", "LARS", "Lamb"]

_FLOAT = np.dtype(np.float32)


def _one(name: str) -> Parameter:
    """A scalar state with the initial value 1."""
    return Parameter(tensor(np.ones(1, np.float32)), name=name)


def _rest(decay: float) -> float:
    """``1 - decay`` in float32, the value with which the bias correction is computed, too."""
    return float(np.float32(1.0) - np.float32(decay))


def _once(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function, computed once for each distinct argument: parameters share learning rates."""
    known: dict[int, tuple[Tensor, Tensor]] = {}

    def call(value: Tensor) -> Tensor:
        if id(value) not in known:
            known[id(value)] = value, function(value)
        return known[id(value)][1]

    return call


class _Rule(Optimizer):
    """Base of optimizers whose steps run as plans."""

    _planned = True

    def _averages(self, beta1: float, beta2: float, eps: float) -> None:
        self.beta1 = number(self.cls_name, "beta1", beta1, 0.0, 1.0, inside=True)
        self.beta2 = number(self.cls_name, "beta2", beta2, 0.0, 1.0, inside=True)
        self.eps = number(self.cls_name, "eps", eps, inside=True)

    def _mean(self, state: Parameter, value: Tensor, decay: float) -> Tensor:
        """A moving average updated by a value; it is stored as the state."""
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
        See ``Optimizer``.
    momentum : float
        Factor of the velocity; 0 for none.
    dampening : float
        Part by which a gradient's addition to the velocity is reduced.
    nesterov : bool
        Whether ``g + momentum * v`` replaces ``v``; needs momentum and no dampening.

    Examples
    --------
    >>> w = Parameter(tensor([1.0, 2.0]), name="w")
    >>> SGD([w], learning_rate=0.5)((tensor([1.0, 1.0]),))
    (True,)
    >>> w.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    _calls_decays = False

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

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "momentum" and not self.__dict__.get("_moving", True) and name in self._params:
            raise AttributeError("SGD: momentum was 0 when the optimizer was made, so it has no velocity; make another")
        super().__setattr__(name, value)

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
        """The factor of a gradient in the velocity: 1 in the first step."""
        return 1.0 - (self.global_step > 0)._cast(_FLOAT).reshape(()) * self.dampening


class ASGD(_Rule):
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
        self.lambd = number("ASGD", "lambd", lambd)
        self.alpha = number("ASGD", "alpha", alpha)
        self.t0 = number("ASGD", "t0", t0)
        self.eta = self._states_of("eta", lambda p: np.zeros((), np.float32))
        self.ax = self._states("ax_")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        first = (self.global_step == 0).reshape(())
        time = self.global_step._cast(_FLOAT).reshape(()) + 1.0
        share = 1.0 / ops._maximum_scalar(time - (1.0 + self.t0), scalar=1.0)
        for eta, ax, (p, g, lr) in zip(self.eta, self.ax, self._prepared(gradients)):
            rate = ops._npi_where(first, lr, eta)
            value = p * (1.0 - rate * self.lambd) - g * rate
            store(ax, average(ax, value, 1.0 - share, share))
            store(p, value)
            store(eta, lr / (lr * (time * self.lambd) + 1.0) ** self.alpha)
        return self._done


class Momentum(_Rule):
    """Gradient descent with momentum: ``v = momentum * v + g``, ``p -= lr * v``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    momentum : float
        Factor of the velocity.
    use_nesterov : bool
        Whether ``g + momentum * v`` replaces ``v`` in the update.
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


class Rprop(_Rule):
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
    """

    def __init__(self, params: Params, learning_rate: Rate = 0.1, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50.0), weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        shrink, grow = _pair("Rprop", "etas", etas)
        self.etaminus = number("Rprop", "etas[0]", shrink, 0.0, 1.0, inside=True)
        self.etaplus = number("Rprop", "etas[1]", grow, 1.0, inside=True)
        least, most = _pair("Rprop", "step_sizes", step_sizes)
        self.step_size_min = number("Rprop", "step_sizes[0]", least)
        self.step_size_max = number("Rprop", "step_sizes[1]", most, self.step_size_min)
        self.prev, self.step_size = self._states("prev"), self._states("step_size")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        first = (self.global_step == 0).reshape(())
        for before, size, (p, g, lr) in zip(self.prev, self.step_size, self._prepared(gradients)):
            same = g * before
            turned = same < 0
            length = ops._npi_where(first, lr, size._cast(_FLOAT))
            longer = ops._npi_where(same > 0, length * self.etaplus, length)
            length = ops._npi_where(turned, length * self.etaminus, longer)
            length = ops.clip(length, a_min=self.step_size_min, a_max=self.step_size_max)
            g = ops._npi_where_lscalar(turned, g, scalar=0.0)
            store(size, length)
            store(before, g)
            store(p, p - ops.sign(g) * length)
        return self._done


def _pair(owner: str, name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{owner}: {name} must be a tuple of two floats, got {type(value).__name__}")
    if len(value) != 2:
        raise ValueError(f"{owner}: {name} must have two floats, got {len(value)}")
    return value


class Adam(_Rule):
    """Adam: ``p -= lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)``.

    ``m`` and ``v`` are moving averages of the gradient and of its square.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the averages, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.
    use_nesterov : bool
        Whether ``beta1 * m + (1 - beta1) * g`` replaces ``m``.
    use_amsgrad : bool
        Whether the largest previous ``v`` replaces ``v``.
    use_locking, use_lazy, use_offload
        Accepted without effect; at most one of ``use_lazy``, ``use_offload`` and ``use_amsgrad``.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False,
                 weight_decay: float | Cell = 0.0, loss_scale: float = 1.0, use_amsgrad: bool = False,
                 use_lazy: bool = False, use_offload: bool = False):
        if flag("Adam", "use_lazy", use_lazy) + flag("Adam", "use_offload", use_offload) + bool(use_amsgrad) > 1:
            raise ValueError("Adam: only one of use_lazy, use_offload and use_amsgrad can be True")
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


class LazyAdam(Adam):
    """Adam; MindSpore's updates only rows that have gradients, and here all rows have them.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale, beta1, beta2, eps, use_locking, use_nesterov
        See ``Adam``.
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False,
                 weight_decay: float | Cell = 0.0, loss_scale: float = 1.0):
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class AdamOffload(LazyAdam):
    """Adam, computed on the device of the parameters; MindSpore's computes on the host."""


class AdamWeightDecay(_Rule):
    """Adam without bias correction and with decoupled decay: ``p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)``.

    Parameters
    ----------
    params, learning_rate, weight_decay
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the averages of the gradient and of its square, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.
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
    """LAMB: the direction of Adam with decay, ``u = m' / (sqrt(v') + eps) + weight_decay * p``, scaled to the norm of
    the parameter.

    ``p -= lr * (norm(p) / norm(u)) * u``, with 1 for the ratio if a norm is zero; ``m'`` and ``v'`` are bias-corrected
    moving averages of the gradient and of its square.

    Parameters
    ----------
    params, learning_rate, weight_decay
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the averages, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.
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


class AdaFactor(_Rule):
    """Adafactor: Adam's step, with averages of squares of the rows and columns of a matrix in place of all elements.

    The step is ``u / max(1, rms(u) / clip_threshold)`` for ``u = g / sqrt(v)``, times the learning rate; vectors have
    averages of all elements.

    Parameters
    ----------
    params, weight_decay
        See ``Optimizer``; the decay is decoupled from gradients.
    learning_rate : float, Tensor, sequence of float, or LearningRateSchedule, optional
        None with ``relative_step``.
    eps : tuple of two floats
        Term added to squared gradients; and the smallest factor of ``scale_parameter``.
    clip_threshold : float
        Root mean square above which a step is scaled down.
    decay_rate : float
        Exponent of the averages' decay factor ``1 - t ** -decay_rate``.
    beta1 : float or None
        Decay factor of a moving average of steps; 0 or None for none.
    scale_parameter : bool
        Whether the learning rate is multiplied by the root mean square of the parameter; not with a schedule.
    relative_step : bool
        Whether the learning rate is ``min(0.01, 1 / sqrt(t))``, or with ``warmup_init`` ``min(1e-6 * t, 1 / sqrt(t))``.
    compression : bool
        Whether averages for vectors are held as float16.
    loss_scale : float
        Without effect, as in MindSpore: steps do not depend on the scale of gradients.
    """

    _spares = False

    def __init__(self, params: Params, learning_rate: Rate | None = None, eps: tuple[float, float] = (1e-30, 1e-3),
                 clip_threshold: float = 1.0, decay_rate: float = 0.8, beta1: float | None = 0.9,
                 weight_decay: float = 0.0, scale_parameter: bool = True, relative_step: bool = True,
                 warmup_init: bool = False, compression: bool = False, loss_scale: float = 1.0):
        self.relative_step = flag("AdaFactor", "relative_step", relative_step)
        self.warmup_init = flag("AdaFactor", "warmup_init", warmup_init)
        if relative_step and learning_rate is not None:
            raise ValueError(f"AdaFactor: relative_step=True makes the learning rate, got learning_rate="
                             f"{learning_rate}")
        if not relative_step and (learning_rate is None or warmup_init):
            raise ValueError("AdaFactor: relative_step=False wants a learning_rate, and no warmup_init")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay)
        first, second = _pair("AdaFactor", "eps", eps)
        self.epsilons = number("AdaFactor", "eps[0]", first), number("AdaFactor", "eps[1]", second)
        self.clip_threshold = number("AdaFactor", "clip_threshold", clip_threshold)
        self.decay_rate = number("AdaFactor", "decay_rate", decay_rate)
        self.beta1 = 0.0 if beta1 is None else number("AdaFactor", "beta1", beta1)
        self.scale_parameter = flag("AdaFactor", "scale_parameter", scale_parameter) and not self.dynamic_lr
        self.compression = flag("AdaFactor", "compression", compression)
        self.loss_scale = loss_scale
        if self.beta1:
            self.exp_avg = self._states("exp_avg")
        narrow = np.dtype(np.float16) if self.compression else None
        self.exp_avg_sq_row = self._squares("_row", lambda p: p.shape[:-1] if p.ndim > 1 else (1,))
        self.exp_avg_sq_col = self._squares("_col", lambda p: p.shape[:-2] + p.shape[-1:] if p.ndim > 1 else (1,))
        self.exp_avg_sq = self._squares("", lambda p: (1,) if p.ndim > 1 else p.shape, narrow)

    def _squares(self, of: str, shape: Callable[[Parameter], Shape], dtype: np.dtype | None = None) -> ParameterTuple:
        """Averages of squares; an average that a parameter does not need is a scalar, as in MindSpore's files."""
        return self._states_of(f"exp_avg_sq{of}", lambda p: np.zeros(shape(p), dtype or p._dt))

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        decays = self._now(self._decays)
        time = self.global_step._cast(_FLOAT).reshape(()) + 1.0
        share = time ** -self.decay_rate
        most = ops.rsqrt(time)
        if self.warmup_init:
            relative = ops.broadcast_minimum(most, time * 1e-6)
        else:
            relative = ops._minimum_scalar(most, scalar=0.01)
        for i, (p, g, lr) in enumerate(self._prepared(gradients, decay=False)):
            weight, g = _wide(p), _wide(g)
            rate = relative if self.relative_step else lr
            if self.scale_parameter:
                rate = rate * ops._maximum_scalar(_rms(weight), scalar=self.epsilons[1])
            step = g / ops.sqrt(self._spread(i, g * g + self.epsilons[0], share))
            step = step * (rate / ops._maximum_scalar(_rms(step) / self.clip_threshold, scalar=1.0))
            if self.beta1:
                step = self._mean(self.exp_avg[i], step, self.beta1)
            if self._decaying[i]:
                weight = weight - weight * (rate * decays[i])
            store(p, weight - step)
        return self._done

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients: steps do not depend on their scale."""
        return tuple(gradients)

    def _spread(self, i: int, squares: Tensor, share: Tensor) -> Tensor:
        """The average of squared gradients; for a matrix from the averages of its rows and columns."""

        def averaged(state: Parameter, value: Tensor) -> Tensor:
            now = average(state, value, 1.0 - share, share)
            store(state, now)
            return now

        if len(squares.shape) < 2:
            return averaged(self.exp_avg_sq[i], squares)
        rows = averaged(self.exp_avg_sq_row[i], ops.mean(squares, axis=-1))
        columns = averaged(self.exp_avg_sq_col[i], ops.mean(squares, axis=-2))
        rows = rows / ops.mean(rows, axis=-1, keepdims=True)
        return ops.expand_dims(rows, axis=-1) * ops.expand_dims(columns, axis=-2)


def _wide(x: Tensor) -> Tensor:
    """Values cast to float32 if their dtype is narrower."""
    return x._cast(_FLOAT) if x._dt.itemsize < _FLOAT.itemsize else x


def _rms(x: Tensor) -> Tensor:
    return ops.sqrt(ops.mean(ops.square(x)))


class AdaMax(_Rule):
    """AdaMax: ``p -= lr / (1 - beta1**t) * m / (v + eps)`` with ``v = max(beta2 * v, |g|)``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the average of the gradient, and of its largest absolute value, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.
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
    """Adagrad: ``p -= lr * g / sqrt(s)``, where ``s`` is the sum of all ``g ** 2``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    accum : float
        Initial value of the sum.
    update_slots : bool
        Whether the sum is updated.
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


class ProximalAdagrad(_Rule):
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
        self.accum = self._states("accum", number("ProximalAdagrad", "accum", accum))
        self.l1 = number("ProximalAdagrad", "l1", l1)
        self.l2 = number("ProximalAdagrad", "l2", l2)

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, (p, g, lr) in zip(self.accum, self._prepared(gradients)):
            now = total + g * g
            store(total, now)
            value = p - rms_step(g, now) * lr
            rate = rms_step(lr, now) if self.l1 or self.l2 else lr
            if self.l1:
                bound = rate * self.l1
                value = value - ops.broadcast_minimum(ops.broadcast_maximum(value, -bound), bound)
            store(p, value / (rate * self.l2 + 1.0) if self.l2 else value)
        return self._done


class FTRL(_Rule):
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

    def __init__(self, params: Params, initial_accum: float = 0.1, learning_rate: float = 0.001, lr_power: float = -0.5,
                 l1: float = 0.0, l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError("FTRL: expected one learning rate for all steps and groups")
        self.moments = self._states("moments", number("FTRL", "initial_accum", initial_accum))
        self.linear = self._states("linear")
        self.l1, self.l2 = number("FTRL", "l1", l1), number("FTRL", "l2", l2)
        self.lr_power = number("FTRL", "lr_power", lr_power, -math.inf, 0.0)

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        for total, linear, (p, g, lr) in zip(self.moments, self.linear, self._prepared(gradients)):
            now = total + g * g
            value, u = leader_step(p, g, linear, self._power(total), self._power(now), lr, self.l1, 2 * self.l2)
            store(total, now)
            store(linear, u)
            store(p, value)
        return self._done

    def _power(self, x: Tensor) -> Tensor:
        return ops.sqrt(x) if self.lr_power == -0.5 else x ** -self.lr_power


class Adadelta(_Rule):
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


def _is_weight(p: Parameter) -> bool:
    return "LayerNorm" not in p.name and "bias" not in p.name


class LARS(Optimizer):
    """Layer-wise rates around another optimizer, which receives the gradients ``t * (g + decay * p)``.

    ``t`` is ``coefficient * |p| / (|g| + decay * |p| + epsilon)``, and 1 where ``p`` is zero. The weight decay, and the
    division by the loss scale, are the other optimizer's settings, and applied here.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer that updates the parameters.
    epsilon : float
        Term that keeps the denominator from zero.
    coefficient : float
        Factor of the rates.
    use_clip : bool
        Whether ``min(t / lr, 1)`` replaces ``t``.
    lars_filter : callable
        A function of a parameter that tells whether it has a rate of its own; by default all except those named
        ``bias`` or ``LayerNorm``. Gradients of the others are unchanged, without decay.

    Examples
    --------
    >>> w = Parameter(tensor([3.0, 4.0]), name="w")
    >>> LARS(SGD([w], 1.0), coefficient=0.1, epsilon=0.0)((tensor([0.0, 2.0]),))
    (True,)
    >>> print(w.asnumpy())
    [3.  3.5]
    """

    def __init__(self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 0.001, use_clip: bool = False,
                 lars_filter: Callable[[Parameter], bool] | None = None):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"LARS: optimizer must be an Optimizer, got {type(optimizer).__name__}")
        super().__init__(0.0, optimizer.parameters, 0.0, optimizer.loss_scale)
        self.opt, self.global_step = optimizer, optimizer.global_step
        self.epsilon = number("LARS", "epsilon", epsilon)
        self.coefficient = number("LARS", "coefficient", coefficient, inside=True)
        self.use_clip = flag("LARS", "use_clip", use_clip)
        chosen = _is_weight if lars_filter is None else lars_filter
        self.lars_flag = tuple([bool(chosen(p)) for p in self.parameters])
        optimizer._wrapped, optimizer.decay_flags = True, (False,) * len(self.parameters)
        optimizer.loss_scale = optimizer.loss_scale

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("learning_rate", "weight_decay", "loss_scale") and "opt" in self.__dict__:
            raise AttributeError(f"LARS: {name} is a setting of the optimizer within; set it as opt.{name}")
        super().__setattr__(name, value)

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        decays, rates, scale = self.opt._now(self.opt._decays), self.opt._now(self.opt._rates), self.opt.loss_scale
        scaled = [g * (1.0 / scale) if scale != 1.0 else g for g in self._checked(gradients)]
        rows = zip(self.parameters, scaled, decays, rates, self.lars_flag)
        return self.opt(tuple([self._rated(p, g, decay, lr) if chosen else g
                               for p, g, decay, lr, chosen in rows]))

    def _rated(self, p: Parameter, g: Tensor, decay: float | Tensor, lr: Tensor) -> Tensor:
        length = _norm(p)
        below = _norm(g) + decay * length + self.epsilon
        trust = trust_ratio(self.coefficient * length, below, ops.ones_like(length), ops._npi_where)
        if self.use_clip:
            trust = ops.clip(trust / lr, a_min=0.0, a_max=1.0)
        return (g + decay * p) * trust

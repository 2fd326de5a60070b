"""Adam and its relatives: steps along a moving average of gradients, over the size of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...builtin.optimizers.update_formulas import adam_step, average, correction, largest, trust_ratio
from ...cells.cell import Cell
from ...cells.parameter import Parameter, ParameterTuple
from ...cells.tensor import Tensor, tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...core.spec import Shape
from ...errors import ArgumentError
from .optimizer import Params, Rate, store
from .rule import FLOAT, Rule, norm, one_minus, pair

__all__ = ["Adam", "LazyAdam", "AdamOffload", "AdamWeightDecay", "Lamb", "AdaFactor", "AdaMax"]


def _scalar_one(name: str) -> Parameter:
    """A scalar state with the initial value 1."""
    return Parameter(tensor(np.ones(1, np.float32)), name=name)


def _cache_by_argument(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function, computed once for each distinct argument: parameters share learning rates."""
    updated: dict[int, tuple[Tensor, Tensor]] = {}

    def call(value: Tensor) -> Tensor:
        if id(value) not in updated:
            updated[id(value)] = value, function(value)
        return updated[id(value)][1]

    return call


class Adam(Rule):
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

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> optimizer = Adam(net.trainable_params(), learning_rate=0.1)
    >>> _ = optimizer((Tensor([[0.5]]),))
    >>> print(net.weight.asnumpy().round(3))
    [[0.9]]
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, use_locking: bool = False, use_nesterov: bool = False,
                 weight_decay: float | Cell = 0.0, loss_scale: float = 1.0, use_amsgrad: bool = False,
                 use_lazy: bool = False, use_offload: bool = False):
        if flag("Adam: use_lazy", use_lazy) + flag("Adam: use_offload", use_offload) + bool(use_amsgrad) > 1:
            raise ArgumentError("Adam: only one of use_lazy, use_offload and use_amsgrad can be True")
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._averages(beta1, beta2, eps)
        self.use_nesterov = flag("Adam: use_nesterov", use_nesterov)
        self.use_amsgrad = flag("Adam: use_amsgrad", use_amsgrad)
        self.beta1_power, self.beta2_power = _scalar_one("beta1_power"), _scalar_one("beta2_power")
        self.moment1, self.moment2 = self._states("moment1"), self._states("moment2")
        if use_amsgrad:
            self.vhat = self._states("vhat")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        power1, power2 = self.beta1_power * self.beta1, self.beta2_power * self.beta2
        store(self.beta1_power, power1)
        store(self.beta2_power, power2)
        correction = (ops.sqrt(1.0 - power2) / (1.0 - power1)).reshape(())
        corrected = _cache_by_argument(lambda lr: lr * correction)
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients)):
            m = self._mean(self.moment1[i], g, self.beta1)
            v = self._mean(self.moment2[i], g * g, self.beta2)
            if self.use_nesterov:
                m = average(m, g, self.beta1, one_minus(self.beta1))
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


class AdamWeightDecay(Rule):
    """Adam without bias correction and with decoupled decay: ``p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)``.

    Parameters
    ----------
    params, learning_rate, weight_decay
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the averages of the gradient and of its square, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> optimizer = AdamWeightDecay(net.trainable_params(), learning_rate=0.1, weight_decay=0.01)
    >>> _ = optimizer((Tensor([[0.5]]),))
    >>> print(net.weight.asnumpy().round(3))
    [[0.683]]
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-6, weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        self._averages(beta1, beta2, eps)
        self.moments1, self.moments2 = self._states("adam_m"), self._states("adam_v")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        decays = self._current_settings(self._decays)
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients, decay=False)):
            m = self._mean(self.moments1[i], g, self.beta1)
            v = self._mean(self.moments2[i], g * g, self.beta2)
            step = adam_step(m, v, self.eps)
            if self._decaying[i]:
                step = step + p * decays[i]
            store(p, p - step * lr)
        return self._done


class Lamb(Rule):
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

    Examples
    --------
    >>> from opreg import Parameter, Tensor, nn
    >>> weight = Parameter(Tensor([3.0, 4.0]), name="w")
    >>> _ = nn.Lamb([weight], learning_rate=0.1)((Tensor([1.0, 1.0]),))
    >>> print(weight.asnumpy().round(3))
    [2.646 3.646]
    """

    def __init__(self, params: Params, learning_rate: Rate, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
                 weight_decay: float | Cell = 0.0):
        super().__init__(learning_rate, params, weight_decay)
        self._averages(beta1, beta2, eps)
        self.moments1, self.moments2 = self._states("lamb_m"), self._states("lamb_v")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        decays = self._current_settings(self._decays)
        time = self.global_step._cast(FLOAT).reshape(()) + 1.0
        first, second = correction(self.beta1, time), correction(self.beta2, time)
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients, decay=False)):
            m = self._mean(self.moments1[i], g, self.beta1) * first
            v = self._mean(self.moments2[i], g * g, self.beta2) * second
            step = adam_step(m, v, self.eps)
            if self._decaying[i]:
                step = step + p * decays[i]
            length = norm(p)
            store(p, p - step * (lr * trust_ratio(length, norm(step), ops.ones_like(length), ops._npi_where)))
        return self._done


class AdaFactor(Rule):
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
                 weight_decay: float | Cell = 0.0, scale_parameter: bool = True, relative_step: bool = True,
                 warmup_init: bool = False, compression: bool = False, loss_scale: float = 1.0):
        self.relative_step = flag("AdaFactor: relative_step", relative_step)
        self.warmup_init = flag("AdaFactor: warmup_init", warmup_init)
        if relative_step and learning_rate is not None:
            raise ArgumentError(f"AdaFactor: relative_step=True computes the learning rate, got learning_rate="
                                f"{learning_rate}")
        if not relative_step and (learning_rate is None or warmup_init):
            raise ArgumentError("AdaFactor: relative_step=False needs a learning_rate, and no warmup_init")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay)
        first, second = pair("AdaFactor", "eps", eps)
        self.epsilons = real_number("AdaFactor: eps[0]", first), real_number("AdaFactor: eps[1]", second)
        self.clip_threshold = real_number("AdaFactor: clip_threshold", clip_threshold)
        self.decay_rate = real_number("AdaFactor: decay_rate", decay_rate)
        self.beta1 = 0.0 if beta1 is None else real_number("AdaFactor: beta1", beta1)
        self.scale_parameter = flag("AdaFactor: scale_parameter", scale_parameter) and not self.dynamic_lr
        self.compression = flag("AdaFactor: compression", compression)
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
        decays = self._current_settings(self._decays)
        time = self.global_step._cast(FLOAT).reshape(()) + 1.0
        share = time ** -self.decay_rate
        most = ops.rsqrt(time)
        if self.warmup_init:
            relative = ops.broadcast_minimum(most, time * 1e-6)
        else:
            relative = ops._minimum_scalar(most, scalar=0.01)
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients, decay=False)):
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
    return x._cast(FLOAT) if x._dt.itemsize < FLOAT.itemsize else x


def _rms(x: Tensor) -> Tensor:
    return ops.sqrt(ops.mean(ops.square(x)))


class AdaMax(Rule):
    """AdaMax: ``p -= lr / (1 - beta1**t) * m / (v + eps)`` with ``v = max(beta2 * v, |g|)``.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        See ``Optimizer``.
    beta1, beta2 : float
        Decay factors of the average of the gradient, and of its largest absolute value, between 0 and 1.
    eps : float
        Term that keeps the denominator from zero.

    Examples
    --------
    >>> from opreg import Parameter, Tensor, nn
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = nn.AdaMax([weight], learning_rate=0.1)((Tensor([1.0]),))
    >>> print(weight.asnumpy().round(3))
    [0.9]
    """

    def __init__(self, params: Params, learning_rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 eps: float = 1e-8, weight_decay: float | Cell = 0.0, loss_scale: float = 1.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._averages(beta1, beta2, eps)
        self.beta1_power = _scalar_one("beta1_power")
        self.moment1, self.moment2 = self._states("moment1"), self._states("moment2")

    def construct(self, gradients: Sequence[Tensor]) -> tuple[bool, ...]:
        power = self.beta1_power * self.beta1
        store(self.beta1_power, power)
        corrected = _cache_by_argument(lambda lr: lr / (1.0 - power.reshape(())))
        for i, (p, g, lr) in enumerate(self._prepare_step(gradients)):
            m = self._mean(self.moment1[i], g, self.beta1)
            v = largest(self.moment2[i], g, self.beta2)
            store(self.moment2[i], v)
            store(p, p - m * corrected(lr) / (v + self.eps))
        return self._done

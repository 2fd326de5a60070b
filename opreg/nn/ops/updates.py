"""Primitives of optimizers: each updates a weight and its states by a gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...builtin.optimizers.update_formulas import adadelta_step, adam_step, average, largest, leader_step, rms_step
from ...cells.tensor import Tensor
from ...core.registry import ops
from .array import assign
from .lift import like
from .math import where
from .primitive import adder

__all__: list[str] = []

_add_class = adder(globals(), __all__)


def _add(name: str, formula: Callable[..., Sequence[Any]], settings: Mapping[str, object] | None = None,
         places: Sequence[int] = (0,), whole: bool = False) -> None:
    """Add a primitive that stores the results of a formula in the inputs at the indices ``places``. It returns the
    first of these results, with ``whole`` all of them."""

    @functools.wraps(formula)
    def update(*inputs: Any, **attrs: Any) -> Any:
        new = formula(*inputs, **attrs)
        states = [inputs[place] for place in places]
        stored = [assign(state, like(value, state)) for state, value in zip(states, new, strict=True)]
        return tuple(stored) if whole else stored[0]

    _add_class(name, update, settings)


# --------------------------------------------------------------------------- updates by moving averages


def _adam(var: Tensor, m: Tensor, v: Tensor, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
          epsilon: Any, gradient: Tensor, *, use_locking: bool, use_nesterov: bool) -> Sequence[Tensor]:
    """Update ``var`` by a step of Adam, with the averages ``m`` and ``v``; returns all three."""
    m, v = average(m, gradient, beta1), average(v, gradient * gradient, beta2)
    rate = lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)
    return var - rate * adam_step(average(m, gradient, beta1) if use_nesterov else m, v, epsilon), m, v


def _adam_weight_decay(var: Tensor, m: Tensor, v: Tensor, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any,
                       gradient: Tensor, *, use_locking: bool) -> Sequence[Tensor]:
    """Update ``var`` by a step of Adam with weight decay, without bias corrections; returns it, ``m`` and ``v``."""
    m, v = average(m, gradient, beta1), average(v, gradient * gradient, beta2)
    return var - lr * (adam_step(m, v, epsilon) + decay * var), m, v


def _ada_max(var: Tensor, m: Tensor, v: Tensor, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
             grad: Tensor) -> Sequence[Tensor]:
    """Update ``var`` by a step of AdaMax, with the average ``m`` and the largest gradient ``v``; returns all three."""
    m, v = average(m, grad, beta1), largest(v, grad, beta2)
    return var - lr / (1 - beta1_power) * m / (v + epsilon), m, v


def _add_sign(var: Tensor, m: Tensor, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Tensor
              ) -> Sequence[Tensor]:
    """Update ``var`` by a larger step where the gradient has the sign of its average ``m``; returns both."""
    m = average(m, grad, beta)
    return var - lr * (alpha + sign_decay * ops.sign(grad) * ops.sign(m)) * grad, m


def _power_sign(var: Tensor, m: Tensor, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Tensor
                ) -> Sequence[Tensor]:
    """Update ``var`` by a step that is multiplied by a power where the gradient has the sign of ``m``; returns both."""
    m = average(m, grad, beta)
    return var - lr * ops.exp(logbase * sign_decay * ops.sign(grad) * ops.sign(m)) * grad, m


_NOT_LOCKED = {"use_locking": False}
_add("Adam", _adam, {**_NOT_LOCKED, "use_nesterov": False}, (0, 1, 2), True)
_add("AdamWeightDecay", _adam_weight_decay, _NOT_LOCKED, (0, 1, 2), True)
_add("ApplyAdaMax", _ada_max, None, (0, 1, 2), True)
_add("ApplyAddSign", _add_sign, None, (0, 1), True)
_add("ApplyPowerSign", _power_sign, None, (0, 1), True)


# --------------------------------------------------------------------------- updates by sums of squares


def _adadelta(var: Tensor, accum: Tensor, accum_update: Tensor, lr: Any, rho: Any, epsilon: Any, grad: Tensor
              ) -> Sequence[Tensor]:
    """Update ``var`` by AdaDelta, with averages of squared gradients and of squared steps; returns all three."""
    accum = average(accum, grad * grad, rho)
    step = adadelta_step(grad, accum, accum_update, epsilon)
    return var - lr * step, accum, average(accum_update, step * step, rho)


def _adagrad(var: Tensor, accum: Tensor, lr: Any, grad: Tensor, *, epsilon: float = 0.0, update_slots: bool
             ) -> Sequence[Tensor]:
    """Update ``var`` by AdaGrad, and with ``update_slots`` the sum of squares ``accum``; returns both."""
    accum = accum + grad * grad if update_slots else accum
    return var - lr * adam_step(grad, accum, epsilon), accum


def _proximal_adagrad(var: Tensor, accum: Tensor, lr: Any, l1: Any, l2: Any, grad: Tensor, *, use_locking: bool
                      ) -> Sequence[Tensor]:
    """Update ``var`` by proximal AdaGrad, which sets small values to zero; returns it and the sum of squares."""
    accum = accum + grad * grad
    rate = lr / accum ** 0.5
    return _nearer(var - rate * grad, rate, l1, l2), accum


def _rms_prop(var: Tensor, mean_square: Tensor, moment: Tensor, learning_rate: Any, grad: Tensor, decay: Any,
              momentum: Any, epsilon: Any, *, use_locking: bool) -> Sequence[Tensor]:
    """Update ``var`` by RMSProp with momentum; returns it."""
    mean_square = average(mean_square, grad * grad, decay)
    moment = momentum * moment + learning_rate * rms_step(grad, mean_square, epsilon)
    return var - moment, mean_square, moment


def _centered_rms_prop(var: Tensor, mean_gradient: Tensor, mean_square: Tensor, moment: Tensor, grad: Tensor,
                       learning_rate: Any, decay: Any, momentum: Any, epsilon: Any, *, use_locking: bool
                       ) -> Sequence[Tensor]:
    """Update ``var`` by centered RMSProp, where the variance is above zero; returns it."""
    mean_gradient, mean_square = average(mean_gradient, grad, decay), average(mean_square, grad * grad, decay)
    variance = mean_square - mean_gradient * mean_gradient + epsilon
    usable = variance > 0
    moved = momentum * moment + learning_rate * rms_step(grad, where(usable, variance, 1.0))
    return where(usable, var - moved, var), mean_gradient, mean_square, where(usable, moved, moment)


def _ftrl(var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Any, l1: Any, l2: Any, lr_power: Any, *,
          use_locking: bool) -> Sequence[Tensor]:
    """Update ``var`` by FTRL, which follows the regularised leader; returns it."""
    squares = accum + grad * grad
    var, linear = leader_step(var, grad, linear, accum ** -lr_power, squares ** -lr_power, lr, l1, 2 * l2)
    return var, squares, linear


_add("ApplyAdadelta", _adadelta, None, (0, 1, 2), True)
_add("ApplyAdagrad", _adagrad, {"update_slots": True}, (0, 1), True)
_add("ApplyAdagradV2", _adagrad, {"epsilon": ..., "update_slots": True}, (0, 1), True)
_add("ApplyProximalAdagrad", _proximal_adagrad, _NOT_LOCKED, (0, 1), True)
_add("ApplyRMSProp", _rms_prop, _NOT_LOCKED, (0, 1, 2))
_add("ApplyCenteredRMSProp", _centered_rms_prop, _NOT_LOCKED, (0, 1, 2, 3))
_add("ApplyFtrl", _ftrl, _NOT_LOCKED, (0, 1, 2))


# ---------------------------------------------------------------------------- updates by gradients alone


def _nearer(moved: Tensor, rate: Any, l1: Any, l2: Any) -> Tensor:
    """The proximal operator: a weight after the shrinkage by ``l1`` and ``l2``."""
    return ops.sign(moved) * ops.relu(ops.abs(moved) - rate * l1) / (1 + rate * l2)


def _descent(var: Tensor, alpha: Any, delta: Tensor) -> Sequence[Tensor]:
    """Update ``var`` by ``alpha`` times the gradient; returns it."""
    return (var - alpha * delta,)


def _proximal_descent(var: Tensor, alpha: Any, l1: Any, l2: Any, delta: Tensor) -> Sequence[Tensor]:
    """Update ``var`` by proximal gradient descent, which sets small values to zero; returns it."""
    return (_nearer(var - alpha * delta, alpha, l1, l2),)


def _momentum(variable: Tensor, accumulation: Tensor, learning_rate: Any, gradient: Tensor, momentum: Any, *,
              use_nesterov: bool, use_locking: bool, gradient_scale: float) -> Sequence[Tensor]:
    """Update ``variable`` by a step with momentum; returns it."""
    accumulation = accumulation * momentum + gradient
    step = gradient + momentum * accumulation if use_nesterov else accumulation
    return variable - learning_rate * step, accumulation


def _keras_momentum(var: Tensor, accum: Tensor, lr: Any, grad: Tensor, momentum: Any, *, use_locking: bool,
                    use_nesterov: bool) -> Sequence[Tensor]:
    """Update ``var`` with a velocity that includes the rate, as in Keras; returns both."""
    accum = accum * momentum - lr * grad
    return var + (accum * momentum - lr * grad if use_nesterov else accum), accum


def _sgd(parameters: Tensor, gradient: Tensor, learning_rate: Any, accum: Tensor, momentum: Any, stat: Tensor, *,
         dampening: float, weight_decay: float, nesterov: bool) -> Sequence[Tensor]:
    """Move ``parameters`` by momentum, which begins where ``stat`` is above zero; returns them."""
    g = gradient + weight_decay * parameters
    accum = where(stat > 0, g, accum * momentum + (1 - dampening) * g)
    return parameters - learning_rate * (g + momentum * accum if nesterov else accum), accum, stat * 0


_add("ApplyGradientDescent", _descent)
_add("ApplyProximalGradientDescent", _proximal_descent)
_add("ApplyMomentum", _momentum, {"use_nesterov": False, "use_locking": False, "gradient_scale": 1.0}, (0, 1))
_add("ApplyKerasMomentum", _keras_momentum, {**_NOT_LOCKED, "use_nesterov": False}, (0, 1), True)
_add("SGD", _sgd, {"dampening": 0.0, "weight_decay": 0.0, "nesterov": False}, (0, 3, 5))

"""Optimizers: rules that update weights by their gradients, one class each.

Weights are identified by an index or a name. Most rules are operators (``sgd_update``, ``adam_update`` …), which write
the weight and its state in place; their formulas and sources are documented there, and shared formulas, also with
MindSpore's optimizers, are in ``builtin.update_formulas``. Unless a class tells otherwise, ``g = clip(rescale_grad *
grad)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opreg.ndarray import random, zeros
from opreg.ndarray.ndarray import NDArray, array

from ..aliases import inner
from ..builtin.optimizers.update_formulas import adadelta_step, adam_step, average, correction, largest
from ..core.attrs import Amount, Fraction
from ..core.spec import Shape
from ..errors import ArgumentError, AttrError, did_you_mean
from .base_optimizer import FLOAT16, FLOAT32, Index, Optimizer, State, apply, zeros_of
from .updater import Updater, get_updater

__all__ = ["Optimizer", "register", "create", "SGD", "NAG", "Signum", "FTML", "DCASGD", "SGLD", "Adam", "AdamW",
           "AdaGrad", "GroupAdaGrad", "RMSProp", "AdaDelta", "Ftrl", "Adamax", "Nadam", "LAMB", "LARS", "LBSGD",
           "ccSGD", "Test", "Updater", "get_updater"]

__getattr__ = inner(__name__)

register = Optimizer.register
create = Optimizer.create_optimizer


# ----------------------------------------------------------------------------- stochastic gradient descent


@register
class SGD(Optimizer):
    """Stochastic gradient descent, with optional momentum.

    Parameters
    ----------
    momentum : float
        Factor of the previous step in the next one.
    lazy_update : bool
        Whether a sparse gradient updates only its rows, and their momentum.

    Examples
    --------
    >>> weight = array([1.0, 2.0])
    >>> sgd = SGD(learning_rate=0.5, momentum=0.9)
    >>> state = sgd.create_state(0, weight)
    >>> sgd.update(0, weight, array([1.0, 1.0]), state)
    >>> weight.asnumpy(), state.asnumpy()
    (array([0.5, 1.5], dtype=float32), array([-0.5, -0.5], dtype=float32))
    """

    _plain, _with_momentum = "sgd_update", "sgd_mom_update"

    def __init__(self, momentum: Fraction = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index: Index, weight: NDArray) -> State:
        return zeros_of(weight) if self.momentum else None

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> State:
        if self._in_float32(weight):
            copy = weight.astype(FLOAT32)
            return self.create_state(index, copy), copy
        return self.create_state(index, weight)

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return (self._with_momentum, (state,)) if self._moves(state) else (self._plain, ())

    def _moves(self, momentum: Any) -> bool:
        """Whether an update changes the momentum of a weight: not if the factor is zero."""
        return momentum is not None and not (self.momentum == 0 and isinstance(momentum, NDArray))

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"momentum": self.momentum, "lazy_update": self.lazy_update, **super()._attributes(count, lr, wd)}

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if isinstance(index, (list, tuple)) or not (self.multi_precision and weight.dtype == FLOAT16):
            return super().update_multi_precision(index, weight, grad, state)
        self._check(index, weight, grad, state)
        momentum, copy = state
        _, attrs = self._step(index)
        if not self._moves(momentum):
            return apply(f"mp_{self._plain}", weight, grad, copy, **attrs)
        return apply(f"mp_{self._with_momentum}", weight, grad, momentum, copy, momentum=self.momentum, **attrs)


@register
class NAG(SGD):
    """Nesterov's accelerated gradient; plain gradient descent if ``momentum`` is zero.

    Examples
    --------
    >>> weight, nag = array([1.0]), NAG(learning_rate=0.5, momentum=0.9)
    >>> nag.update(0, weight, array([1.0]), nag.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.05], dtype=float32)
    """

    _with_momentum = "nag_mom_update"

    def __init__(self, momentum: Fraction = 0.0, **kwargs: Any):
        super().__init__(momentum=momentum, **kwargs)


@register
class ccSGD(SGD):
    """Another name of ``SGD``."""


@register
class Signum(Optimizer):
    """Steps of equal size by the sign of the gradient, or with momentum of its moving average.

    J. Bernstein et al., signSGD: compressed optimisation for non-convex problems, 2018.

    Parameters
    ----------
    momentum : float
        Zero for the sign of the gradient itself.
    wd_lh : float
        Weight decay that is not part of the gradient.

    Examples
    --------
    >>> weight, signum = array([1.0, 1.0]), Signum(learning_rate=0.5)
    >>> signum.update(0, weight, array([0.001, -100.0]), signum.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(self, learning_rate: float = 0.01, momentum: Fraction = 0.9, wd_lh: Amount = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index: Index, weight: NDArray) -> State:
        return zeros_of(weight) if self.momentum else None

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return ("signsgd_update", ()) if state is None else ("signum_update", (state,))

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"momentum": self.momentum, "wd_lh": self.wd_lh, **super()._attributes(count, lr, wd)}


@register
class DCASGD(Optimizer):
    """Gradient descent with compensation for a delayed gradient.

    S. Zheng et al., Asynchronous stochastic gradient descent with delay compensation, 2017.

    Parameters
    ----------
    momentum : float
        Factor of the previous step in the next one.
    lamda : float
        Strength of the compensation.

    Examples
    --------
    >>> import opreg as mx
    >>> optimizer = mx.optimizer.DCASGD(learning_rate=0.1)
    >>> weight = mx.nd.array([1.0, 2.0])
    >>> optimizer.update(0, weight, mx.nd.ones(2), optimizer.create_state(0, weight))
    >>> bool((weight < mx.nd.array([1.0, 2.0])).asnumpy().all())
    True
    """

    elementwise = True

    def __init__(self, momentum: Fraction = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index: Index, weight: NDArray) -> State:
        return (zeros_of(weight) if self.momentum else None), weight.copy()

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        g = self._prepare_gradient(grad)
        mom, before = state
        step = (g + weight * self._get_wd(index) + g * g * (weight - before) * self.lamda) * -self._get_lr(index)
        if mom is not None:
            mom[:] = mom * self.momentum + step
            step = mom
        before[:] = weight
        weight += step


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: half a gradient step plus normal noise of variance ``learning_rate``.

    M. Welling, Y. Teh, Bayesian learning via stochastic gradient Langevin dynamics, 2011.
    """

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        lr = self._get_lr(index)
        step = (self._prepare_gradient(grad) + weight * self._get_wd(index)) * (-lr / 2)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight += step + noise


# ------------------------------------------------------------------------------------------ Adam's kin


class _OfTwoStates(Optimizer):
    """Base of optimizers with two states of the weight's shape, zeros at first."""

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, ...]:
        return zeros_of(weight), zeros_of(weight)


class _Moments(_OfTwoStates):
    """Base of optimizers with moving averages of the gradient and its square."""

    def __init__(self, learning_rate: float, beta1: Fraction, beta2: Fraction, epsilon: Amount, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def _bias_correction(self, count: int) -> float:
        """The factor of the rate that corrects averages with initial zeros."""
        return math.sqrt(1.0 - self.beta2**count) / (1.0 - self.beta1**count)

    @property
    def _betas(self) -> dict[str, float]:
        return dict(beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon)


@register
class Adam(_Moments):
    """Adam: steps by the moving average of the gradient, divided by the root of that of its square.

    D. Kingma, J. Ba, Adam: a method for stochastic optimization, 2014.

    Examples
    --------
    >>> weight, adam = array([1.0, 1.0]), Adam(learning_rate=0.1)
    >>> adam.update(0, weight, array([0.5, -3.0]), adam.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 1.1], dtype=float32)
    """

    def __init__(self, learning_rate: float = 0.001, beta1: Fraction = 0.9, beta2: Fraction = 0.999,
                 epsilon: Amount = 1e-8, lazy_update: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lazy_update = lazy_update

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return "adam_update", tuple(state)

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"lazy_update": self.lazy_update, **self._betas,
                **super()._attributes(count, lr * self._bias_correction(count), wd)}


@register
class AdamW(_Moments):
    """Adam with decoupled weight decay: the weight also shrinks by ``learning_rate * wd`` times itself.

    I. Loshchilov, F. Hutter, Decoupled weight decay regularization, 2017.

    Parameters
    ----------
    correct_bias : bool
        Whether the averages are corrected for their initial zeros.

    Examples
    --------
    >>> weight, adam = array([1.0, 1.0]), AdamW(learning_rate=0.1, wd=0.5)
    >>> adam.update(0, weight, array([0.5, -3.0]), adam.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.85, 1.05], dtype=float32)
    """

    elementwise = True

    def __init__(self, learning_rate: float = 0.001, beta1: Fraction = 0.9, beta2: Fraction = 0.999,
                 epsilon: Amount = 1e-6, correct_bias: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.correct_bias = correct_bias

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        count, attrs = self._step(index)
        lr, wd = attrs["lr"], attrs["wd"]
        scale = array([attrs.pop("rescale_grad")], weight.context, weight.dtype)
        attrs.update(lr=lr * (self._bias_correction(count) if self.correct_bias else 1.0), wd=lr * wd, eta=1.0)
        apply("_adamw_update", weight, grad, *state, scale, **self._betas, **attrs)


@register
class LAMB(_Moments):
    """Adam's direction, scaled for each array to the norm of the weight.

    Y. You et al., Large batch optimization for deep learning: training BERT in 76 minutes, 2019.

    Parameters
    ----------
    lower_bound, upper_bound : float or None
        Bounds of the weight's norm.
    bias_correction : bool
        Whether the averages are corrected for their initial zeros.

    Examples
    --------
    >>> weight, lamb = array([3.0, 4.0]), LAMB(learning_rate=0.1)
    >>> lamb.update(0, weight, array([1.0, 1.0]), lamb.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([2.646, 3.646], dtype=float32)
    """

    _may_be_none = Optimizer._may_be_none | {"lower_bound", "upper_bound"}

    def __init__(self, learning_rate: float = 0.001, beta1: Fraction = 0.9, beta2: Fraction = 0.999,
                 epsilon: Amount = 1e-6, lower_bound: float | None = None, upper_bound: float | None = None,
                 bias_correction: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lower_bound, self.upper_bound, self.bias_correction = lower_bound, upper_bound, bias_correction

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        count, attrs = self._step(index)
        apply("_multi_lamb_update", weight, grad, *state, **self._betas, learning_rates=(attrs["lr"],),
              wds=(attrs["wd"],), rescale_grad=self.rescale_grad, clip_gradient=self._bound,
              lower_bound=self.lower_bound or -1.0, upper_bound=self.upper_bound or -1.0,
              bias_correction=self.bias_correction, step_count=(count,), num_tensors=1)


@register
class Adamax(_OfTwoStates):
    """Adam with a decaying maximum of absolute gradients in place of the root, from the same paper.

    Examples
    --------
    >>> weight, adamax = array([1.0, 1.0]), Adamax(learning_rate=0.1)
    >>> adamax.update(0, weight, array([0.5, -3.0]), adamax.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 1.1], dtype=float32)
    """

    elementwise = True

    def __init__(self, learning_rate: float = 0.002, beta1: Fraction = 0.9, beta2: Fraction = 0.999, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        count = self._update_count(index)
        lr = self._get_lr(index) / (1.0 - self.beta1**count)
        g = self._clip(grad * self.rescale_grad + weight * self._get_wd(index))
        mean, norm = state
        mean[:] = average(mean, g, self.beta1)
        norm[:] = largest(norm, g, self.beta2)
        weight -= mean / norm * lr


@register
class Nadam(_Moments):
    """Adam with Nesterov's momentum.

    T. Dozat, Incorporating Nesterov momentum into Adam, 2016.

    Parameters
    ----------
    schedule_decay : float
        Decay of the difference between the momentum and ``beta1``.

    Examples
    --------
    >>> weight, nadam = array([1.0]), Nadam(learning_rate=0.1)
    >>> nadam.update(0, weight, array([1.0]), nadam.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.894], dtype=float32)
    """

    elementwise = True

    def __init__(self, learning_rate: float = 0.001, beta1: Fraction = 0.9, beta2: Fraction = 0.999,
                 epsilon: Amount = 1e-8, schedule_decay: float = 0.004, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.schedule_decay, self.m_schedule = schedule_decay, 1.0

    def _momentum(self, count: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (count * self.schedule_decay))

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        count = self._update_count(index)
        g = self._clip(grad * self.rescale_grad + weight * self._get_wd(index))
        now, later = self._momentum(count), self._momentum(count + 1)
        self.m_schedule *= now
        after = self.m_schedule * later
        mean, var = state
        mean[:] = average(mean, g, self.beta1)
        var[:] = average(var, g * g, self.beta2)
        ahead = g * ((1.0 - now) / (1.0 - self.m_schedule)) + mean * (later / (1.0 - after))
        weight -= adam_step(ahead, var * correction(self.beta2, count), self.epsilon) * self._get_lr(index)


@register
class FTML(Optimizer):
    """Follow the moving leader.

    S. Zheng, J. Kwok, Follow the moving leader in deep learning, 2017.

    Examples
    --------
    >>> import opreg as mx
    >>> optimizer = mx.optimizer.FTML(learning_rate=0.1)
    >>> weight = mx.nd.array([1.0, 2.0])
    >>> optimizer.update(0, weight, mx.nd.ones(2), optimizer.create_state(0, weight))
    >>> bool((weight < mx.nd.array([1.0, 2.0])).asnumpy().all())
    True
    """

    def __init__(self, beta1: Fraction = 0.6, beta2: Fraction = 0.999, epsilon: Amount = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, ...]:
        return zeros_of(weight), zeros_of(weight), zeros_of(weight)

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return "ftml_update", tuple(state)

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "t": count,
                "clip_grad": self._bound, **super()._attributes(count, lr, wd)}


# ------------------------------------------------------------------------------ step sizes by coordinate


@register
class AdaGrad(Optimizer):
    """AdaGrad: steps divided by the root of the sum of all squared gradients.

    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and stochastic
    optimization, 2011.

    Examples
    --------
    >>> weight, adagrad = array([1.0, 1.0]), AdaGrad(learning_rate=0.1)
    >>> adagrad.update(0, weight, array([0.5, -3.0]), adagrad.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.9, 1.1], dtype=float32)
    """

    def __init__(self, eps: Amount = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        return zeros_of(weight)

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return "_sparse_adagrad_update", (state,)

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"epsilon": self.float_stable_eps, **super()._attributes(count, lr, wd)}


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one step size for each row of a weight, without weight decay.

    Examples
    --------
    >>> import opreg as mx
    >>> optimizer = mx.optimizer.GroupAdaGrad(learning_rate=0.1)
    >>> weight = mx.nd.array([1.0, 2.0])
    >>> optimizer.update(0, weight, mx.nd.ones(2), optimizer.create_state(0, weight))
    >>> bool((weight < mx.nd.array([1.0, 2.0])).asnumpy().all())
    True
    """

    def __init__(self, eps: Amount = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        return zeros(self._shape_of_states(weight), weight.context, weight.dtype)

    def _shape_of_states(self, weight: NDArray) -> Shape:
        return (weight.shape[0], *[1] * (weight.ndim - 1))

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        if self._get_wd(index):
            raise ArgumentError("GroupAdaGrad has no decay: expected wd=0")
        _, attrs = self._step(index)
        attrs.pop("wd")
        apply("_contrib_group_adagrad_update", weight, grad, state, epsilon=self.float_stable_eps, **attrs)


@register
class RMSProp(Optimizer):
    """RMSProp: steps divided by the root of a moving average of the squared gradient.

    Parameters
    ----------
    gamma1 : float
        Decay factor of the average.
    gamma2 : float
        Momentum, if ``centered``.
    centered : bool
        Whether the variance of the gradient is used instead of its square, after A. Graves, Generating sequences with
        recurrent neural networks, 2013.
    clip_weights : float or None
        Bound to which weights are clipped.

    Examples
    --------
    >>> weight, rmsprop = array([1.0]), RMSProp(learning_rate=0.1, gamma1=0.9)
    >>> rmsprop.update(0, weight, array([2.0]), rmsprop.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.684], dtype=float32)
    """

    _may_be_none = Optimizer._may_be_none | {"clip_weights"}

    def __init__(self, learning_rate: float = 0.001, gamma1: Fraction = 0.9, gamma2: Fraction = 0.9,
                 epsilon: Amount = 1e-8, centered: bool = False, clip_weights: float | None = None, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Index, weight: NDArray) -> tuple[NDArray, ...]:
        return tuple(zeros_of(weight) for _ in range(3 if self.centered else 1))

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return "rmspropalex_update" if self.centered else "rmsprop_update", tuple(state)

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"gamma1": self.gamma1, "gamma2": self.gamma2, "epsilon": self.epsilon,
                "clip_weights": self.clip_weights or -1.0, **super()._attributes(count, lr, wd)}


@register
class AdaDelta(_OfTwoStates):
    """AdaDelta: step sizes are derived from those of past steps; there is no learning rate.

    M. Zeiler, ADADELTA: an adaptive learning rate method, 2012.

    Parameters
    ----------
    rho : float
        Decay factor of the averages.
    epsilon : float
        Term that keeps the first steps from being zero.

    Examples
    --------
    >>> weight, adadelta = array([1.0]), AdaDelta(rho=0.9, epsilon=1e-2)
    >>> adadelta.update(0, weight, array([1.0]), adadelta.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.698], dtype=float32)
    """

    elementwise = True

    def __init__(self, rho: Fraction = 0.90, epsilon: Amount = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        g = self._prepare_gradient(grad)
        squares, steps = state
        squares[:] = average(squares, g * g, self.rho)
        step = adadelta_step(g, squares, steps, self.epsilon)
        steps[:] = average(steps, step * step, self.rho)
        weight -= step + weight * self._get_wd(index)


@register
class Ftrl(_OfTwoStates):
    """FTRL, follow the regularised leader, which makes weights exactly zero.

    H. McMahan et al., Ad click prediction: a view from the trenches, 2013.

    Parameters
    ----------
    lamda1 : float
        Strength of the L1 regularisation.
    beta : float
        Smooths the step sizes.
    learning_rate : float
        The rate without a schedule; a schedule uses its own ``base_lr``, as in MXNet.

    Examples
    --------
    >>> weight, ftrl = array([1.0, 1.0]), Ftrl(lamda1=1.0, learning_rate=0.1)
    >>> ftrl.update(0, weight, array([5.0, 0.1]), ftrl.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([0.733, 0.   ], dtype=float32)
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self.lr, self.lamda1, self.beta = learning_rate, lamda1, beta

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        return "ftrl_update", tuple(state)

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, float]:
        return {"lamda1": self.lamda1, "beta": self.beta, **super()._attributes(count, lr, wd)}


# ------------------------------------------------------------------------------------------------ others


@register
class LARS(SGD):
    """Gradient descent with momentum, with a rate for each array that is proportional to its weight's norm.

    Y. You, I. Gitman, B. Ginsburg, Large batch training of convolutional networks, 2017. Gammas, betas and biases use
    the plain rate.

    Parameters
    ----------
    eta : float
        Factor of the rate.
    eps : float
        Term that keeps the rate finite.
    momentum_correction : bool
        Whether momentum is scaled when the rate changes.

    Examples
    --------
    >>> weight, lars = array([3.0, 4.0]), LARS(learning_rate=1.0, eta=0.1)
    >>> lars.update(0, weight, array([1.0, 0.0]), lars.create_state(0, weight))
    >>> weight.asnumpy().round(3)
    array([2.5, 4. ], dtype=float32)
    """

    _decayed = ("_weight",)
    _may_be_none = Optimizer._may_be_none | {"last_lr", "cur_lr"}

    def __init__(self, momentum: Fraction = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: Amount = 0,
                 momentum_correction: bool = True, **kwargs: Any):
        super().__init__(momentum=momentum, lazy_update=lazy_update, **kwargs)
        self.eta, self.eps, self.momentum_correction = eta, eps, momentum_correction
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def _get_lr(self, index: Index) -> float:
        lr = self.learning_rate
        self.last_lr, self.cur_lr = (lr if self.cur_lr is None else self.cur_lr), lr
        return lr * self._factor(index, "lr_mult", self.lr_mult)

    def _scaled(self, index: Index, weight: NDArray, grad: NDArray, attrs: dict[str, float]) -> None:
        name = self.idx2name.get(index, str(index))
        if name.endswith(("gamma", "beta", "bias")):
            return
        w, g = (float(np.linalg.norm(array.asnumpy().astype(np.float64))) for array in (weight, grad))
        g *= self.rescale_grad
        if w > 0.0 and g > 0.0:
            attrs["lr"] *= self.eta * w / (g + attrs["wd"] * w + self.eps)

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        self._scaled(index, weight, grad, attrs)
        if state is None:
            apply("sgd_update", weight, grad, **attrs)
            return
        changed = self.momentum_correction and self.last_lr
        scale = (self.cur_lr or 0.0) / self.last_lr if changed and self.last_lr else 1.0
        apply("sgd_mom_update", weight, grad, state, momentum=self.momentum * scale, **attrs)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if not isinstance(index, (list, tuple)) and self.multi_precision and weight.dtype == FLOAT16:
            momentum, copy = state  # the order of states in SGD; in other optimizers the copy comes first
            state = copy, momentum
        Optimizer.update_multi_precision(self, index, weight, grad, state)


@register
class LBSGD(SGD):
    """Gradient descent for large batches: gradients are accumulated, and the rate rises in a warmup.

    Parameters
    ----------
    warmup_strategy : {"linear", "power2", "sqrt", "lars"}
        How the factor of the rate rises to ``batch_scale``: linearly, quadratically, or as a root of the updates;
        "lars" instead always uses, for each array, the root of the ratio of the norms of weight and gradient, between
        0.01 and 100.
    warmup_epochs : int
        Number of epochs of the warmup.
    batch_scale : int
        Number of updates whose mean gradient makes one step.
    updates_per_epoch : int
        Number of updates of an epoch.
    begin_epoch : int
        Number of the first epoch.
    num_epochs : int
        Has no effect.
    """

    def __init__(self, momentum: Fraction = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear",
                 warmup_epochs: int = 5, batch_scale: int = 1, updates_per_epoch: int = 32, begin_epoch: int = 0,
                 num_epochs: int = 60, **kwargs: Any):
        super().__init__(momentum=momentum, multi_precision=multi_precision, **kwargs)
        valid = ("linear", "power2", "sqrt", "lars")
        if warmup_strategy not in valid:
            raise AttrError(f"there is no warmup_strategy {warmup_strategy!r}. {did_you_mean(warmup_strategy, valid)}")
        self.warmup_strategy, self.warmup_epochs, self.num_epochs = warmup_strategy, warmup_epochs, num_epochs
        self.batch_scale, self.updates_per_epoch = batch_scale, updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch

    def create_state(self, index: Index, weight: NDArray) -> State:
        momentum = super().create_state(index, weight)
        return momentum if self.batch_scale == 1 else (momentum, zeros_of(weight))

    def _factor_of_rate(self, count: int, weight: NDArray, grad: NDArray, wd: float) -> float:
        if self.warmup_strategy == "lars":
            w, g = (float(np.square(array.asnumpy().astype(np.float64)).sum()) for array in (weight, grad))
            return min(max(math.sqrt(w / (g + wd * w + 1e-18)), 0.01), 100.0)
        last = self.warmup_epochs * self.updates_per_epoch
        if count >= last or last <= 1:
            return float(self.batch_scale) if count >= last else 1.0
        part = {"linear": 1.0, "power2": 2.0, "sqrt": 0.5}[self.warmup_strategy]
        return 1.0 + (self.batch_scale - 1.0) * (count / last) ** part

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd = self._get_lr(index), self._get_wd(index)
        count = self.init_updates + self._update_count(index) - self.begin_num_update
        if self.batch_scale != 1:
            state, gathered = state
            gathered += grad
            if count % self.batch_scale:
                return
            grad = gathered / self.batch_scale
            gathered[:] = 0.0
        attrs = dict(lr=lr * self._factor_of_rate(count, weight, grad, wd), wd=wd, rescale_grad=self.rescale_grad,
                     clip_gradient=self._bound)
        if state is None:
            apply("sgd_update", weight, grad, **attrs)
        else:
            apply("sgd_mom_update", weight, grad, state, momentum=self.momentum, **attrs)

    create_state_multi_precision = Optimizer.create_state_multi_precision
    update_multi_precision = Optimizer.update_multi_precision


@register
class Test(Optimizer):
    """Adds the rescaled gradient to the weight, and stores the sum as its state; for tests."""

    __test__ = False  # not a test class of pytest

    elementwise = True

    def create_state(self, index: Index, weight: NDArray) -> NDArray:
        return zeros_of(weight)

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        weight += grad * self.rescale_grad
        state[:] = weight

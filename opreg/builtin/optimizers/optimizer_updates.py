"""Optimizer updates: new weights computed from weights, gradients and states.

The new weight is the output, usually stored in the weight's own memory (``out=weight``); states are written in place.
Each update is a formula of the new weight and states, traced and run as described in ``update_formulas``.

The formulas are those of Apache MXNet's documentation of the operator of that name, which cites the papers.
Everywhere ``g = clip(rescale_grad * grad)``, where a negative ``clip_gradient`` means no clipping. MindSpore's
optimizers in ``opreg.nn.optim`` share formulas; there the learning rate multiplies the velocity, here the gradient that
is added to it.
"""

from __future__ import annotations

from ...core.registry import declare
from ...core.spec import show
from ...elementwise.expression import sign, sqrt, where
from ...errors import ShapeError
from ..forms import declare_form
from .declared import update, updates
from .update_formulas import Formula, adam_step, average, clipped, correction, leader_step, rms_step, trust_ratio
from .updating import single


def _rescale(grad, rescale_grad, clip_gradient, factor=1.0):
    """The rescaled and clipped gradient ``g``, times a factor."""
    if clip_gradient < 0:
        return grad * (rescale_grad * factor)
    return clipped(grad * rescale_grad, clip_gradient) * factor


def _decay(weight, lr, wd):
    """Weight after weight decay."""
    return weight * (1.0 - lr * wd) if wd else weight


def _with_decay(weight, g, wd):
    """``g + wd * weight``."""
    return g + weight * wd if wd else g


def _clip_with_decay(weight, grad, wd, rescale_grad, clip_gradient):
    """``clip(rescale_grad * grad + wd * weight)``, which some rules use in place of ``g``."""
    return clipped(_with_decay(weight, grad * rescale_grad, wd), clip_gradient)


# --------------------------------------------------------------------------- stochastic gradient descent


@update(aliases=("_sparse_sgd_update",), halves=True, several=True, preloaded=True)
def sgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
               clip_gradient: float = -1.0, lazy_update: bool = True):
    """Gradient descent: ``weight - lr * (g + wd * weight)``."""
    return _decay(weight, lr, wd) - _rescale(grad, rescale_grad, clip_gradient, lr)


@update(aliases=("_sparse_sgd_mom_update",), halves=True, several=True, preloaded=True)
def sgd_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True):
    """Gradient descent with momentum: ``mom = momentum * mom - lr * (g + wd * weight)``, ``weight + mom``."""
    mom = mom * momentum - _rescale(grad, rescale_grad, clip_gradient, lr)
    mom = mom - weight * (lr * wd) if wd else mom
    return weight + mom, mom


@update(halves=True)
def nag_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """Nesterov's accelerated gradient: with ``s = lr * (g + wd * weight)``, ``mom = momentum * mom - s`` and
    ``weight + momentum * mom - s``."""
    step = _with_decay(weight, _rescale(grad, rescale_grad, clip_gradient), wd) * lr
    mom = mom * momentum - step
    return weight + (mom * momentum - step), mom


# ------------------------------------------------------------------------------------------- signs only


@update
def signsgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):
    """``(1 - lr * wd) * weight - lr * sign(grad)``."""
    return _decay(weight, lr, wd) - sign(grad) * lr


@update
def signum_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                  rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0):
    """``(1 - lr * wd_lh) * weight + lr * sign(mom)``, where
    ``mom = momentum * mom - (1 - momentum) * (g + wd * weight)``."""
    g = _with_decay(weight, _rescale(grad, rescale_grad, clip_gradient), wd)
    mom = mom * momentum - g * (1.0 - momentum)
    return _decay(weight, lr, wd_lh) + sign(mom) * lr, mom


# ------------------------------------------------------------------------------------------ Adam's kin


def _moments(mean, var, g, beta1, beta2):
    return average(mean, g, beta1), average(var, g * g, beta2)


@update(aliases=("_sparse_adam_update",))
def adam_update(weight, grad, mean, var, *, lr: float, beta1: float = 0.9, beta2: float = 0.999,
                epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_gradient: float = -1.0, lazy_update: bool = True):
    """Adam: ``weight - lr * mean / (sqrt(var) + epsilon)`` with moving averages of ``s`` and ``s ** 2``,
    ``s = clip(rescale_grad * grad + wd * weight)``.

    The bias correction is part of the learning rate.
    """
    s = _clip_with_decay(weight, grad, wd, rescale_grad, clip_gradient)
    mean, var = _moments(mean, var, s, beta1, beta2)
    return weight - adam_step(mean, var, epsilon) * lr, mean, var


def adamw(xp, tmp, new, weight, grad, mean, var, scale, *, lr, beta1, beta2, epsilon, wd, eta, clip_gradient):
    # A scale that is zero or not finite skips the step. The scale is on the device, so no branch of Python reads it.
    usable = xp.isfinite(scale) & (scale != 0)
    _adamw(xp, tmp, new, weight, grad, mean, var, xp.where(usable, scale, xp.zeros_like(scale)),
           usable.astype(weight.dtype), lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon, wd=wd, eta=eta,
           clip_gradient=clip_gradient)


@Formula
def _adamw(weight, grad, mean, var, scale, usable, *, lr, beta1, beta2, epsilon, wd, eta, clip_gradient):
    moved = _moments(mean, var, _rescale(grad, scale, clip_gradient), beta1, beta2)
    mean, var = (where(usable, now, before) for now, before in zip(moved, (mean, var)))
    step = adam_step(mean, var, epsilon) * (lr * eta)
    step = step + weight * (wd * eta) if wd else step
    return weight - step * usable, mean, var


def _adamw_update(weight, grad, mean, var, rescale_grad, *, lr: float, beta1: float = 0.9,
                  beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0, eta: float,
                  clip_gradient: float = -1.0):
    """Adam with decoupled weight decay: ``weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.

    The weight and the states do not change if ``rescale_grad`` is zero or not finite, as after an overflow in float16.
    """


updates(_adamw_update, adamw, tail=1, halves=True, several=True)


@Formula
def lamb_direction(weight, grad, mean, var, *, beta1, beta2, epsilon, t, bias_correction, wd, rescale_grad,
                   clip_gradient):
    mean, var = now = _moments(mean, var, _rescale(grad, rescale_grad, clip_gradient), beta1, beta2)
    if bias_correction:
        mean, var = mean * correction(beta1, t), var * correction(beta2, t)
    return _with_decay(weight, adam_step(mean, var, epsilon), wd), *now


def lamb_step(xp, tmp, new, weight, g, r1, r2, *, lr, lower_bound, upper_bound):
    if lower_bound > 0:
        r1 = xp.maximum(r1, lower_bound)
    if upper_bound > 0:
        r1 = xp.minimum(r1, upper_bound)
    xp.multiply(g, trust_ratio(r1, r2, xp.ones_like(r1), xp.where) * lr, out=tmp(0))
    xp.subtract(weight, tmp(0), out=new)


@declare(mutates=(2, 3))
def lamb_update_phase1(weight, grad, mean, var, *, beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-6, t: int, bias_correction: bool = True, wd: float,
                       rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """LAMB's direction: ``mean / (sqrt(var) + epsilon) + wd * weight``, with bias-corrected averages."""


lamb_update_phase1.kernel()(single(lamb_direction))  # no body: it moves states


@declare(types="T,T,float32,float32,float32->float32", mutates=(2, 3))
def mp_lamb_update_phase1(weight, grad, mean, var, weight32, *, beta1: float = 0.9, beta2: float = 0.999,
                          epsilon: float = 1e-6, t: int, bias_correction: bool = True, wd: float,
                          rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """``lamb_update_phase1`` for a float32 copy of the weight."""


mp_lamb_update_phase1.kernel()(single(lamb_direction, copy=-1, moves=False))  # no body: it moves states


@declare(inplace=(0,))
def lamb_update_phase2(weight, g, r1, r2, *, lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0):
    """LAMB's step along ``g``: ``weight - lr * r1 / r2 * g``.

    ``r1`` and ``r2`` are the norms of weight and direction, the first clipped to the bounds; their ratio counts as one
    if a norm is zero.
    """


declare_form(lamb_update_phase2, "(...) (...) (1...) (1...) -> (...)")
lamb_update_phase2.kernel()(single(lamb_step))  # no body: it shares its formula with the copy below


@declare(types="T,float32,float32,float32,float32->T", inplace=(0,), mutates=(4,))
def mp_lamb_update_phase2(weight, g, r1, r2, weight32, *, lr: float, lower_bound: float = -1.0,
                          upper_bound: float = -1.0):
    """``lamb_update_phase2`` for a float32 copy of the weight."""


declare_form(mp_lamb_update_phase2, "(...) (...) (1...) (1...) (...) -> (...)")
mp_lamb_update_phase2.kernel()(single(lamb_step, copy=-1))  # no body: it moves the copy


@update
def ftml_update(weight, grad, d, v, z, *, lr: float, beta1: float = 0.6, beta2: float = 0.999,
                epsilon: float = 1e-8, t: int, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_grad: float = -1.0):
    """FTML, follow the moving leader: ``-z / d``, for the moving averages defined in the paper."""
    g = _clip_with_decay(weight, grad, wd, rescale_grad, clip_grad)
    v = average(v, g * g, beta2)
    now = (sqrt(v * correction(beta2, t)) + epsilon) * ((1.0 - beta1**t) / lr)
    z = average(z, g, beta1) - (now - d * beta1) * weight
    return -(z / now), now, v, z


# ----------------------------------------------------------------------------- step sizes by coordinate


@update(aliases=("_sparse_ftrl_update",))
def ftrl_update(weight, grad, z, n, *, lr: float, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0,
                rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """FTRL, follow the regularised leader: ``z`` shrunk by ``lamda1``, divided by ``-((beta + sqrt(n)) / lr + wd)``."""
    g = _rescale(grad, rescale_grad, clip_gradient)
    squares = n + g * g
    return *leader_step(weight, g, z, sqrt(n), sqrt(squares), lr, lamda1, wd, beta), squares


@update
def rmsprop_update(weight, grad, n, *, lr: float, gamma1: float = 0.95, epsilon: float = 1e-8,
                   wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                   clip_weights: float = -1.0):
    """RMSProp by Tieleman and Hinton: ``weight - lr * s / sqrt(n + epsilon)``, where ``n`` is the moving average of ``s
    ** 2``, and ``s = clip(rescale_grad * grad + wd * weight)``."""
    g = _clip_with_decay(weight, grad, wd, rescale_grad, clip_gradient)
    n = average(n, g * g, gamma1)
    return clipped(weight - rms_step(g, n, epsilon) * lr, clip_weights), n


@update
def rmspropalex_update(weight, grad, n, g, delta, *, lr: float, gamma1: float = 0.95, gamma2: float = 0.9,
                       epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0,
                       clip_gradient: float = -1.0, clip_weights: float = -1.0):
    """RMSProp by Graves: ``weight + delta``.

    ``delta = gamma2 * delta - lr * s / sqrt(n - g ** 2 + epsilon)``, ``n`` the moving average of ``s ** 2``
    and ``g`` that of ``s = clip(rescale_grad * grad + wd * weight)``.
    """
    s = _clip_with_decay(weight, grad, wd, rescale_grad, clip_gradient)
    n, g = average(n, s * s, gamma1), average(g, s, gamma1)
    delta = delta * gamma2 - rms_step(s, n, epsilon, g) * lr
    return clipped(weight + delta, clip_weights), n, g, delta


@update
def _sparse_adagrad_update(weight, grad, history, *, lr: float, epsilon: float = 1e-7, wd: float = 0.0,
                           rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """AdaGrad: ``history += g ** 2``, ``weight - lr * (g / sqrt(history + epsilon) + wd * weight)``."""
    g = _rescale(grad, rescale_grad, clip_gradient)
    history = history + g * g
    return _decay(weight, lr, wd) - rms_step(g, history, epsilon) * lr, history


@declare(aliases=("group_adagrad_update",), name="_contrib_group_adagrad_update", inplace=(0,), mutates=(2,))
def group_adagrad_update(weight, grad, history, *, lr: float, rescale_grad: float = 1.0,
                         clip_gradient: float = -1.0, epsilon: float = 1e-5):
    """AdaGrad with one step size for each row: ``history += mean(g ** 2)`` over each row, ``weight - lr * g /
    sqrt(history + epsilon)``."""


@group_adagrad_update.fill
def group_adagrad_fill(ins, outs):
    weight = next((shape for shape in (ins[0], ins[1], outs[0]) if shape is not None), None)
    rows = None if weight is None else (weight[0], *[1] * (len(weight) - 1))
    return [shape if input_shape is None else input_shape for input_shape, shape in zip(ins, (weight, weight, rows))]


@group_adagrad_update.infer
def group_adagrad_infer(weight, grad, history):
    if grad != weight:
        raise ShapeError(f"grad: expected shape {show(weight)}, got {show(grad)}")
    rows = (weight[0], *[1] * (len(weight) - 1))
    if history != rows:
        raise ShapeError(f"history: expected shape {show(rows)}, one element for each row, got {show(history)}")
    return weight


@group_adagrad_update.kernel()  # no body: it updates a state
def group_adagrad_xp(xp, weight, grad, history, *, lr, rescale_grad, clip_gradient, epsilon, out=None):
    new = xp.empty_like(weight) if out is None else out
    g = xp.multiply(grad, rescale_grad)
    if clip_gradient >= 0:
        xp.clip(g, -clip_gradient, clip_gradient, out=g)
    xp.add(history, xp.mean(xp.square(g), axis=tuple(range(1, g.ndim)), keepdims=True), out=history)
    xp.multiply(g, lr / xp.sqrt(history + epsilon), out=g)
    return xp.subtract(weight, g, out=new)

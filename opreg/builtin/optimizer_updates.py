"""Optimizer updates: new weights from weights, gradients and states.

The new weight is the output, which is usually asked for in the weight's own memory (``out=weight``); states
are written in place. Each rule is one function, ``rule(xp, tmp, new, weight, grad, *states, **attrs)``, run as
``updating`` says.

The formulas are those of Apache MXNet's documentation of the operator of that name, which cites the papers.
Everywhere ``g = clip(rescale_grad * grad)``, where a ``clip_gradient`` below zero means no clipping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.blas import add_multiple
from ..errors import ShapeError
from ..registry import declare
from ..spec import Shape, show
from .updating import mixed, single, tiled

__all__: list[str] = []

# Numbers from which one pass of BLAS is worth more than its call.
LONG = 1 << 14


def _zero(value: Any) -> bool:
    """Whether it is the number zero; an array is never taken for one."""
    return isinstance(value, (int, float)) and value == 0


def _scaled(xp, into, grad, factor, rescale_grad, clip_gradient):
    """``factor * g``."""
    if clip_gradient < 0:
        xp.multiply(grad, rescale_grad * factor, out=into)
        return
    xp.multiply(grad, rescale_grad, out=into)
    xp.clip(into, -clip_gradient, clip_gradient, out=into)
    if not _zero(factor - 1):
        xp.multiply(into, factor, out=into)


def _decayed(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient):
    """``g + wd * weight`` in ``tmp(0)``; ``tmp(1)`` is used."""
    g = tmp(0)
    _scaled(xp, g, grad, 1.0, rescale_grad, clip_gradient)
    if not _zero(wd):
        xp.multiply(weight, wd, out=tmp(1))
        xp.add(g, tmp(1), out=g)
    return g


def _clipped(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient):
    """``clip(rescale_grad * grad + wd * weight)``, as some rules have it, in ``tmp(0)``; uses ``tmp(1)``."""
    s = _decayed(xp, tmp, weight, grad, wd, rescale_grad, -1.0)
    if clip_gradient >= 0:
        xp.clip(s, -clip_gradient, clip_gradient, out=s)
    return s


def _average(xp, state, value, decay, work):
    """``state = decay * state + (1 - decay) * value``."""
    xp.multiply(value, 1.0 - decay, out=work)
    xp.multiply(state, decay, out=state)
    xp.add(state, work, out=state)


def _average_square(xp, state, value, decay, work):
    """``state = decay * state + (1 - decay) * value ** 2``."""
    xp.multiply(value, value, out=work)
    _average(xp, state, work, decay, work)


# --------------------------------------------------------------------------- stochastic gradient descent


def _added(new, grad, lr, rescale_grad, clip_gradient):
    """Subtract ``lr * g`` in one pass of BLAS; whether that was possible."""
    return (new.size >= LONG and clip_gradient < 0 and isinstance(lr, float)
            and add_multiple(new, -lr * rescale_grad, grad))


def _sgd_at_once(new, weight, grad, *, lr, wd, rescale_grad, clip_gradient):
    return weight is new and _zero(wd) and _added(new, grad, lr, rescale_grad, clip_gradient)


def sgd(xp, tmp, new, weight, grad, *, lr, wd, rescale_grad, clip_gradient):
    inplace = weight is new  # never a tile, which one of several threads works on
    if not _zero(wd):
        weight = xp.multiply(weight, 1.0 - lr * wd, out=new)
    if inplace and xp is np and _added(new, grad, lr, rescale_grad, clip_gradient):
        return
    step = tmp(0)
    _scaled(xp, step, grad, lr, rescale_grad, clip_gradient)
    xp.subtract(weight, step, out=new)


def sgd_mom(xp, tmp, new, weight, grad, mom, *, lr, momentum, wd, rescale_grad, clip_gradient):
    step = tmp(0)
    _scaled(xp, step, grad, lr, rescale_grad, clip_gradient)
    xp.multiply(mom, momentum, out=mom)
    xp.subtract(mom, step, out=mom)
    if not _zero(wd):
        xp.multiply(weight, lr * wd, out=step)
        xp.subtract(mom, step, out=mom)
    xp.add(weight, mom, out=new)


def _nag(xp, tmp, new, weight, grad, mom, *, lr, momentum, wd, rescale_grad, clip_gradient):
    step = _decayed(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient)
    xp.multiply(step, lr, out=step)
    xp.multiply(mom, momentum, out=mom)
    xp.subtract(mom, step, out=mom)
    xp.multiply(mom, momentum, out=tmp(1))
    xp.subtract(tmp(1), step, out=step)
    xp.add(weight, step, out=new)


@declare(aliases=("_sparse_sgd_update",), inplace=(0,))
def sgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
               clip_gradient: float = -1.0, lazy_update: bool = True):
    """Gradient descent: ``weight - lr * (g + wd * weight)``."""


sgd_update.kernel()(single(sgd, _sgd_at_once))


@declare(aliases=("_sparse_sgd_mom_update",), inplace=(0,), mutates=(2,))
def sgd_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True):
    """Gradient descent with momentum: ``mom = momentum * mom - lr * (g + wd * weight)``, ``weight + mom``."""


sgd_mom_update.kernel()(single(sgd_mom))


@declare(types="T,T,float32->T", inplace=(0,), mutates=(2,))
def mp_sgd_update(weight, grad, weight32, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0, lazy_update: bool = True):
    """``sgd_update`` of a float32 copy of the weight."""


mp_sgd_update.kernel()(mixed(sgd))


@declare(types="T,T,float32,float32->T", inplace=(0,), mutates=(2, 3))
def mp_sgd_mom_update(weight, grad, mom, weight32, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                      rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True):
    """``sgd_mom_update`` of a float32 copy of the weight."""


mp_sgd_mom_update.kernel()(mixed(sgd_mom))


@declare(inplace=(0,), mutates=(2,))
def nag_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """Nesterov's accelerated gradient: with ``s = lr * (g + wd * weight)``, ``mom = momentum * mom - s`` and
    ``weight + momentum * mom - s``."""


nag_mom_update.kernel()(single(_nag))


@declare(types="T,T,float32,float32->T", inplace=(0,), mutates=(2, 3))
def mp_nag_mom_update(weight, grad, mom, weight32, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                      rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """``nag_mom_update`` of a float32 copy of the weight."""


mp_nag_mom_update.kernel()(mixed(_nag))


# ------------------------------------------------------------------------------------------- signs only


@declare(inplace=(0,))
def signsgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):
    """``(1 - lr * wd) * weight - lr * sign(grad)``."""


@signsgd_update.kernel()
@single
def signsgd_xp(xp, tmp, new, weight, grad, *, lr, wd):
    step = xp.sign(grad, out=tmp(0))
    xp.multiply(step, lr, out=step)
    if not _zero(wd):
        weight = xp.multiply(weight, 1.0 - lr * wd, out=new)
    xp.subtract(weight, step, out=new)


@declare(inplace=(0,), mutates=(2,))
def signum_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0,
                  rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0):
    """``(1 - lr * wd_lh) * weight + lr * sign(mom)``, where
    ``mom = momentum * mom - (1 - momentum) * (g + wd * weight)``."""


@signum_update.kernel()
@single
def signum_xp(xp, tmp, new, weight, grad, mom, *, lr, momentum, wd, rescale_grad, clip_gradient, wd_lh):
    g = _decayed(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient)
    xp.multiply(g, 1.0 - momentum, out=g)
    xp.multiply(mom, momentum, out=mom)
    xp.subtract(mom, g, out=mom)
    xp.sign(mom, out=g)
    xp.multiply(g, lr, out=g)
    if not _zero(wd_lh):
        weight = xp.multiply(weight, 1.0 - lr * wd_lh, out=new)
    xp.add(weight, g, out=new)


# ------------------------------------------------------------------------------------------ Adam's kin


def _moments(xp, tmp, mean, var, g, beta1, beta2):
    _average(xp, mean, g, beta1, tmp(1))
    _average_square(xp, var, g, beta2, g)


@declare(aliases=("_sparse_adam_update",), inplace=(0,), mutates=(2, 3))
def adam_update(weight, grad, mean, var, *, lr: float, beta1: float = 0.9, beta2: float = 0.999,
                epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_gradient: float = -1.0, lazy_update: bool = True):
    """Adam: ``weight - lr * mean / (sqrt(var) + epsilon)`` with moving averages of ``s`` and ``s ** 2``,
    ``s = clip(rescale_grad * grad + wd * weight)``.

    The correction of their bias is left to the learning rate.
    """


@adam_update.kernel()
@single
def adam_xp(xp, tmp, new, weight, grad, mean, var, *, lr, beta1, beta2, epsilon, wd, rescale_grad,
            clip_gradient):
    plain = _zero(wd) and _zero(rescale_grad - 1) and clip_gradient < 0
    s = grad if plain else _clipped(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient)
    _average(xp, mean, s, beta1, tmp(1))
    g = tmp(0)
    _average_square(xp, var, s, beta2, g)
    xp.sqrt(var, out=g)
    xp.add(g, epsilon, out=g)
    xp.divide(mean, g, out=g)
    xp.multiply(g, lr, out=g)
    xp.subtract(weight, g, out=new)


def adamw(xp, tmp, new, weight, grad, mean, var, scale, *, lr, beta1, beta2, epsilon, wd, eta, clip_gradient):
    # A scale that is zero or not finite skips the step; it lives on the device, so nothing branches on it.
    usable = xp.isfinite(scale) & (scale != 0)
    g, work = tmp(0), tmp(1)
    _scaled(xp, g, grad, 1.0, xp.where(usable, scale, xp.zeros_like(scale)), clip_gradient)
    for state, decay in ((mean, beta1), (var, beta2)):
        work[...] = state
        _average(xp, work, g, decay, tmp(2))
        xp.copyto(state, work, where=usable)
        xp.multiply(g, g, out=g)
    xp.sqrt(var, out=g)
    xp.add(g, epsilon, out=g)
    xp.divide(mean, g, out=g)
    xp.multiply(g, lr * eta, out=g)
    if not _zero(wd):
        xp.multiply(weight, wd * eta, out=work)
        xp.add(g, work, out=g)
    xp.multiply(g, usable, out=g)
    xp.subtract(weight, g, out=new)


def _adamw_shapes(count: int) -> tuple[Callable, Callable]:
    """Rules of an operator whose last input is one number and whose other ``count`` are alike."""

    def fill(ins: list, outs: list) -> list:
        known = next((shape for shape in (*ins[:count], *outs) if shape is not None), None)
        return [known if shape is None else shape for shape in ins[:count]] + [ins[count] or (1,)]

    def infer(*shapes: Shape) -> Shape:
        weight, scale = shapes[0], shapes[count]
        for shape in shapes[1:count]:
            if shape != weight:
                raise ShapeError(f"expected states and gradient of shape {show(weight)}, got {show(shape)}")
        if any(dim != 1 for dim in scale):
            raise ShapeError(f"rescale_grad: expected one number, got shape {show(scale)}")
        return weight

    return fill, infer


@declare(types="T,T,T,T,S->T", inplace=(0,), mutates=(2, 3))
def _adamw_update(weight, grad, mean, var, rescale_grad, *, lr: float, beta1: float = 0.9,
                  beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0, eta: float,
                  clip_gradient: float = -1.0):
    """Adam with decay apart: ``weight - eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.

    Nothing moves when ``rescale_grad`` is zero or not finite, as it is after an overflow in float16.
    """


_fill, _infer = _adamw_shapes(4)
_adamw_update.fill(_fill)
_adamw_update.infer(_infer)
_adamw_update.kernel()(single(adamw))


@declare(types="T,T,float32,float32,float32,S->T", inplace=(0,), mutates=(2, 3, 4))
def _mp_adamw_update(weight, grad, mean, var, weight32, rescale_grad, *, lr: float, beta1: float = 0.9,
                     beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0, eta: float,
                     clip_gradient: float = -1.0):
    """``_adamw_update`` of a float32 copy of the weight."""


_fill, _infer = _adamw_shapes(5)
_mp_adamw_update.fill(_fill)
_mp_adamw_update.infer(_infer)


@_mp_adamw_update.kernel()
def mp_adamw_xp(xp, weight, grad, mean, var, weight32, scale, *, out=None, **attrs):
    return mixed(adamw)(xp, weight, grad, mean, var, scale, weight32, out=out, **attrs)


def lamb_direction(xp, tmp, new, weight, grad, mean, var, *, beta1, beta2, epsilon, t, bias_correction, wd,
                   rescale_grad, clip_gradient):
    g = tmp(0)
    _scaled(xp, g, grad, 1.0, rescale_grad, clip_gradient)
    _moments(xp, tmp, mean, var, g, beta1, beta2)
    first = 1.0 / (1.0 - beta1**t) if bias_correction else 1.0
    second = 1.0 / (1.0 - beta2**t) if bias_correction else 1.0
    xp.multiply(var, second, out=g)
    xp.sqrt(g, out=g)
    xp.add(g, epsilon, out=g)
    xp.multiply(mean, first, out=tmp(1))
    xp.divide(tmp(1), g, out=g)
    xp.multiply(weight, wd, out=tmp(1))
    xp.add(g, tmp(1), out=new)


def lamb_step(xp, tmp, new, weight, g, r1, r2, *, lr, lower_bound, upper_bound):
    if lower_bound > 0:
        r1 = xp.maximum(r1, lower_bound)
    if upper_bound > 0:
        r1 = xp.minimum(r1, upper_bound)
    both = (r1 != 0) & (r2 != 0)
    ones = xp.ones_like(r1)
    ratio = xp.where(both, r1, ones) / xp.where(both, r2, ones)
    xp.multiply(g, ratio * lr, out=tmp(0))
    xp.subtract(weight, tmp(0), out=new)


@declare(mutates=(2, 3))
def lamb_update_phase1(weight, grad, mean, var, *, beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-6, t: int, bias_correction: bool = True, wd: float,
                       rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """LAMB's direction: ``mean / (sqrt(var) + epsilon) + wd * weight``, averages unbiased."""


lamb_update_phase1.kernel()(single(lamb_direction))


@declare(types="T,T,float32,float32,float32->float32", mutates=(2, 3))
def mp_lamb_update_phase1(weight, grad, mean, var, weight32, *, beta1: float = 0.9, beta2: float = 0.999,
                          epsilon: float = 1e-6, t: int, bias_correction: bool = True, wd: float,
                          rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """``lamb_update_phase1`` of a float32 copy of the weight."""


@mp_lamb_update_phase1.kernel()
def mp_lamb_phase1_xp(xp, weight, grad, mean, var, weight32, *, out=None, **attrs):
    new = xp.empty_like(weight32) if out is None else out

    def rule(xp: Any, tmp: Any, new: Any, weight32: Any, grad: Any, *states: Any, **attrs: Any) -> None:
        wide = tmp(9)
        wide[...] = grad
        lamb_direction(xp, tmp, new, weight32, wide, *states, **attrs)

    tiled(xp, rule, new, [weight32, grad, mean, var], **attrs)
    return new


def _lamb_fill(count: int) -> Callable:
    def fill(ins: list, outs: list) -> list:
        known = next((shape for shape in (ins[0], ins[1], *ins[4:], *outs) if shape is not None), None)
        shapes = [known, known, (1,), (1,), *[known] * (count - 4)]
        return [shape if given is None else given for given, shape in zip(ins, shapes)]

    return fill


def _lamb_infer(weight: Shape, g: Shape, r1: Shape, r2: Shape, weight32: Shape | None = None) -> Shape:
    for name, shape in (("g", g), ("weight32", weight32)):
        if shape is not None and shape != weight:
            raise ShapeError(f"{name}: expected shape {show(weight)}, got {show(shape)}")
    for name, shape in (("r1", r1), ("r2", r2)):
        if any(dim != 1 for dim in shape):
            raise ShapeError(f"{name}: expected one number, got shape {show(shape)}")
    return weight


@declare(inplace=(0,))
def lamb_update_phase2(weight, g, r1, r2, *, lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0):
    """LAMB's step along ``g``: ``weight - lr * r1 / r2 * g``.

    ``r1`` and ``r2`` are the norms of weight and direction, the first kept within the bounds; their ratio
    counts as one where a norm is zero.
    """


lamb_update_phase2.fill(_lamb_fill(4))
lamb_update_phase2.infer(_lamb_infer)
lamb_update_phase2.kernel()(single(lamb_step))


@declare(types="T,float32,float32,float32,float32->T", inplace=(0,), mutates=(4,))
def mp_lamb_update_phase2(weight, g, r1, r2, weight32, *, lr: float, lower_bound: float = -1.0,
                          upper_bound: float = -1.0):
    """``lamb_update_phase2`` of a float32 copy of the weight."""


mp_lamb_update_phase2.fill(_lamb_fill(5))
mp_lamb_update_phase2.infer(_lamb_infer)
mp_lamb_update_phase2.kernel()(mixed(lamb_step))


@declare(inplace=(0,), mutates=(2, 3, 4))
def ftml_update(weight, grad, d, v, z, *, lr: float, beta1: float = 0.6, beta2: float = 0.999,
                epsilon: float = 1e-8, t: int, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_grad: float = -1.0):
    """Follow the moving leader: ``-z / d`` for the moving averages that the paper of that name defines."""


@ftml_update.kernel()
@single
def ftml_xp(xp, tmp, new, weight, grad, d, v, z, *, lr, beta1, beta2, epsilon, t, wd, rescale_grad,
            clip_grad):
    g = _clipped(xp, tmp, weight, grad, wd, rescale_grad, clip_grad)
    _average(xp, z, g, beta1, tmp(1))
    _average_square(xp, v, g, beta2, g)
    xp.multiply(v, 1.0 / (1.0 - beta2**t), out=g)
    xp.sqrt(g, out=g)
    xp.add(g, epsilon, out=g)
    xp.multiply(g, (1.0 - beta1**t) / lr, out=g)
    xp.multiply(d, beta1, out=d)
    xp.subtract(g, d, out=d)
    xp.multiply(d, weight, out=d)
    xp.subtract(z, d, out=z)
    d[...] = g
    xp.divide(z, g, out=g)
    xp.negative(g, out=new)


# ----------------------------------------------------------------------------- step sizes by coordinate


@declare(aliases=("_sparse_ftrl_update",), inplace=(0,), mutates=(2, 3))
def ftrl_update(weight, grad, z, n, *, lr: float, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0,
                rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """Follow the regularised leader: ``z`` shrunk by ``lamda1`` over ``-((beta + sqrt(n)) / lr + wd)``."""


@ftrl_update.kernel()
@single
def ftrl_xp(xp, tmp, new, weight, grad, z, n, *, lr, lamda1, beta, wd, rescale_grad, clip_gradient):
    g, before, after = tmp(0), tmp(1), tmp(2)
    _scaled(xp, g, grad, 1.0, rescale_grad, clip_gradient)
    xp.add(z, g, out=z)
    xp.sqrt(n, out=before)
    xp.multiply(g, g, out=g)
    xp.add(n, g, out=n)
    xp.sqrt(n, out=after)
    xp.subtract(after, before, out=before)
    xp.multiply(before, weight, out=before)
    xp.divide(before, lr, out=before)
    xp.subtract(z, before, out=z)
    xp.add(after, beta, out=after)
    xp.divide(after, lr, out=after)
    xp.add(after, wd, out=after)
    xp.clip(z, -lamda1, lamda1, out=g)
    xp.subtract(g, z, out=g)
    xp.divide(g, after, out=new)


def _bounded(xp: Any, new: Any, clip_weights: float) -> None:
    if clip_weights >= 0:
        xp.clip(new, -clip_weights, clip_weights, out=new)


@declare(inplace=(0,), mutates=(2,))
def rmsprop_update(weight, grad, n, *, lr: float, gamma1: float = 0.95, epsilon: float = 1e-8,
                   wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                   clip_weights: float = -1.0):
    """RMSProp after Tieleman and Hinton: ``weight - lr * s / sqrt(n + epsilon)``, ``n`` the moving average of
    ``s ** 2``, ``s = clip(rescale_grad * grad + wd * weight)``."""


@rmsprop_update.kernel()
@single
def rmsprop_xp(xp, tmp, new, weight, grad, n, *, lr, gamma1, epsilon, wd, rescale_grad, clip_gradient,
               clip_weights):
    g = _clipped(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient)
    _average_square(xp, n, g, gamma1, tmp(1))
    xp.add(n, epsilon, out=tmp(1))
    xp.sqrt(tmp(1), out=tmp(1))
    xp.divide(g, tmp(1), out=g)
    xp.multiply(g, lr, out=g)
    xp.subtract(weight, g, out=new)
    _bounded(xp, new, clip_weights)


@declare(inplace=(0,), mutates=(2, 3, 4))
def rmspropalex_update(weight, grad, n, g, delta, *, lr: float, gamma1: float = 0.95, gamma2: float = 0.9,
                       epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0,
                       clip_gradient: float = -1.0, clip_weights: float = -1.0):
    """RMSProp after Graves: ``weight + delta``.

    ``delta = gamma2 * delta - lr * s / sqrt(n - g ** 2 + epsilon)``, ``n`` the moving average of ``s ** 2``
    and ``g`` that of ``s = clip(rescale_grad * grad + wd * weight)``.
    """


@rmspropalex_update.kernel()
@single
def rmspropalex_xp(xp, tmp, new, weight, grad, n, g, delta, *, lr, gamma1, gamma2, epsilon, wd, rescale_grad,
                   clip_gradient, clip_weights):
    s, work = _clipped(xp, tmp, weight, grad, wd, rescale_grad, clip_gradient), tmp(1)
    _average_square(xp, n, s, gamma1, work)
    _average(xp, g, s, gamma1, work)
    xp.multiply(g, g, out=work)
    xp.subtract(n, work, out=work)
    xp.add(work, epsilon, out=work)
    xp.sqrt(work, out=work)
    xp.divide(s, work, out=s)
    xp.multiply(s, lr, out=s)
    xp.multiply(delta, gamma2, out=delta)
    xp.subtract(delta, s, out=delta)
    xp.add(weight, delta, out=new)
    _bounded(xp, new, clip_weights)


@declare(inplace=(0,), mutates=(2,))
def _sparse_adagrad_update(weight, grad, history, *, lr: float, epsilon: float = 1e-7, wd: float = 0.0,
                           rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """AdaGrad: ``history += g ** 2``, ``weight - lr * (g / sqrt(history + epsilon) + wd * weight)``."""


@_sparse_adagrad_update.kernel()
@single
def adagrad_xp(xp, tmp, new, weight, grad, history, *, lr, epsilon, wd, rescale_grad, clip_gradient):
    g, work = tmp(0), tmp(1)
    _scaled(xp, g, grad, 1.0, rescale_grad, clip_gradient)
    xp.multiply(g, g, out=work)
    xp.add(history, work, out=history)
    xp.add(history, epsilon, out=work)
    xp.sqrt(work, out=work)
    xp.divide(g, work, out=g)
    xp.multiply(g, lr, out=g)
    if not _zero(wd):
        weight = xp.multiply(weight, 1.0 - lr * wd, out=new)
    xp.subtract(weight, g, out=new)


@declare(aliases=("group_adagrad_update",), name="_contrib_group_adagrad_update", inplace=(0,), mutates=(2,))
def group_adagrad_update(weight, grad, history, *, lr: float, rescale_grad: float = 1.0,
                         clip_gradient: float = -1.0, epsilon: float = 1e-5):
    """AdaGrad with one step size a row: ``history += mean(g ** 2)`` over each row,
    ``weight - lr * g / sqrt(history + epsilon)``."""


@group_adagrad_update.fill
def group_adagrad_fill(ins, outs):
    weight = next((shape for shape in (ins[0], ins[1], outs[0]) if shape is not None), None)
    rows = None if weight is None else (weight[0], *[1] * (len(weight) - 1))
    return [shape if given is None else given for given, shape in zip(ins, (weight, weight, rows))]


@group_adagrad_update.infer
def group_adagrad_infer(weight, grad, history):
    if grad != weight:
        raise ShapeError(f"grad: expected shape {show(weight)}, got {show(grad)}")
    rows = (weight[0], *[1] * (len(weight) - 1))
    if history != rows:
        raise ShapeError(f"history: expected shape {show(rows)}, one number a row, got {show(history)}")
    return weight


@group_adagrad_update.kernel()
def group_adagrad_xp(xp, weight, grad, history, *, lr, rescale_grad, clip_gradient, epsilon, out=None):
    new = xp.empty_like(weight) if out is None else out
    g = xp.empty_like(grad)
    _scaled(xp, g, grad, 1.0, rescale_grad, clip_gradient)
    xp.add(history, xp.mean(xp.square(g), axis=tuple(range(1, g.ndim)), keepdims=True), out=history)
    xp.multiply(g, lr / xp.sqrt(history + epsilon), out=g)
    return xp.subtract(weight, g, out=new)

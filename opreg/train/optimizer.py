"""Optimizers: how weights move along their gradients, a class each, and the updater that keeps their states.

Weights are told apart by an index or a name. Most rules are operators (``sgd_update``, ``adam_update`` …),
which write the weight and its state in place; the formulas and their sources are written there. Unless a
class says otherwise, ``g = clip(rescale_grad * grad)``.
"""

from __future__ import annotations

import io
import json
import math
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import random, zeros
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray, array

from ..errors import ArgumentError, FileFormatError, ShapeError
from ..registry import get, ops
from ..spec import as_dtype
from .lr_scheduler import LRScheduler
from .named import Named

__all__ = ["Optimizer", "register", "create", "SGD", "NAG", "Signum", "FTML", "DCASGD", "SGLD", "Adam", "AdamW",
           "AdaGrad", "GroupAdaGrad", "RMSProp", "AdaDelta", "Ftrl", "Adamax", "Nadam", "LAMB", "LARS", "ccSGD", "Test",
           "Updater", "get_updater"]

_FLOAT16, _FLOAT32 = np.dtype("float16"), np.dtype("float32")


def _update(name: str, weight: NDArray, grad: NDArray, *states: NDArray, **attrs: Any) -> None:
    """Run the operator of that name on a weight, in place.

    The rates change from step to step, so a call by attributes would settle them anew each time: the kernel,
    which takes them as they are, is called itself.
    """
    if weight.shape != grad.shape:
        raise ShapeError(f"a weight of shape {weight.shape} got a gradient of shape {grad.shape}")
    arrays = [weight._data, grad._data, *(state._data for state in states)]
    with np.errstate(all="ignore"):
        rule = get(name).kernels[0].rule
        rule.function(weight.context.xp, *arrays, out=arrays[0], **rule.select(attrs))


def _update_all(name: str, updates: Sequence[tuple[NDArray, ...]], **attrs: Any) -> None:
    """The same for several weights of one context: weight, gradient and states each."""
    for weight, grad, *_ in updates:
        if weight.shape != grad.shape:
            raise ShapeError(f"a weight of shape {weight.shape} got a gradient of shape {grad.shape}")
    arrays = [[each._data for each in update] for update in updates]
    rule = get(name).kernels[0].rule
    together = vars(rule.function)["together"]
    with np.errstate(all="ignore"):
        together(updates[0][0].context.xp, updates=[(each[0], each) for each in arrays], **rule.select(attrs))


def _zeros(weight: NDArray) -> NDArray:
    return zeros(weight.shape, weight.context, weight.dtype)


class Optimizer:
    """What all optimizers share: rates, decay, and how often each weight was updated.

    A subclass defines ``create_state(index, weight)`` and ``update(index, weight, grad, state)``.

    Parameters
    ----------
    rescale_grad : float
        Gradients are multiplied by it; usually one over the batch size.
    param_idx2name : dict of int to str
        Names of the weights, for rates by name. Those that do not end in ``_weight`` are not decayed.
    wd : float
        Decay of weights.
    clip_gradient : float or None
        Bound of the rescaled gradient's numbers.
    learning_rate : float or None
        The rate; 0.01 by default.
    lr_scheduler : LRScheduler or None
        Gives the rate by the number of updates; begins with ``learning_rate`` if that is given.
    sym : Symbol or None
        Its variables' ``__lr_mult__`` and ``__wd_mult__`` are heeded.
    begin_num_update : int
        Where the number of updates begins.
    multi_precision : bool
        Whether float16 weights are updated in a float32 copy.
    param_dict : dict of int to objects with ``lr_mult`` and ``wd_mult``
        The weights' own factors; come before those by name.
    """

    opt_registry = Named("optimizer")

    def __init__(self, rescale_grad: float = 1.0, param_idx2name: Mapping[Any, str] | None = None, wd: float = 0.0,
                 clip_gradient: float | None = None, learning_rate: float | None = None,
                 lr_scheduler: LRScheduler | None = None, sym: Any = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: Mapping[Any, Any] | None = None):
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is not None and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None else learning_rate
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise ArgumentError("param_idx2name: expected a dict of indices to names")
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = dict(param_dict or {})
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Make an optimizer known by its class's name in lower case; a decorator."""
        return Optimizer.opt_registry.enter(klass)

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """An optimizer by its name.

        Raises
        ------
        AttrError
            For a name nobody registered.

        Examples
        --------
        >>> Optimizer.create_optimizer("SGD", momentum=0.9).momentum
        0.9
        """
        return Optimizer.opt_registry.find(name)(**kwargs)

    # ------------------------------------------------------------------------------------------- states

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """What is remembered of a weight between updates: None, an array, or a tuple of those."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """The same with a float32 copy of a float16 weight, if ``multi_precision``: ``(copy, state)``."""
        if self._in_float32(weight):
            copy = weight.astype(_FLOAT32)
            return copy, self.create_state(index, copy)
        return self.create_state(index, weight)

    def _in_float32(self, weight: NDArray) -> bool:
        if weight.dtype == _FLOAT16 and not self.multi_precision:
            warnings.warn("small steps are lost on float16 weights; set multi_precision=True", stacklevel=4)
        return self.multi_precision and weight.dtype == _FLOAT16

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Move a weight and its state by one step."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a weight moves: define update")

    def update_all(self, updates: Sequence[tuple[Any, NDArray, NDArray, Any]]) -> None:
        """Move several weights: index, weight, gradient and a state made by ``create_state_multi_precision`` each.

        A class that names its operator moves them by one call for all that share rates and dtype.
        """
        together: dict[Any, list[tuple[NDArray, ...]]] = {}
        distinct = {index for index, *_ in updates}, {id(weight._data) for _, weight, *_ in updates}
        apart = all(len(each) == len(updates) for each in distinct)
        settled = self._settled if len(updates) > 1 and apart and self._by_operator() else None
        for index, weight, grad, state in updates:
            self._set_current_context(weight.context.device_id)
            if settled is None:
                self.update_multi_precision(index, weight, grad, state)
                continue
            name, states, attrs = settled(index, state)
            key = name, weight.context, weight.dtype, *attrs.items()
            together.setdefault(key, []).append((weight, grad, *states))
        for (name, _, _, *attrs), alike in together.items():
            _update_all(name, alike, **dict(attrs))

    def _settled(self, index: Any, state: Any) -> tuple[str, tuple[NDArray, ...], dict[str, Any]]:
        """Count an update; the operator that does it, its states and attributes."""
        raise NotImplementedError

    def _by_operator(self) -> bool:
        """Whether an update is what the class that has ``_settled`` makes of it, and nothing more."""
        kind: Any = type(self)
        own: Any = next(each for each in kind.__mro__ if "_settled" in vars(each))
        return not self.multi_precision and own is not Optimizer and kind.update is own.update and (
            kind.update_multi_precision is own.update_multi_precision)

    def update_multi_precision(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        """The same for a state made by ``create_state_multi_precision``."""
        if self.multi_precision and weight.dtype == _FLOAT16:
            copy, inner = state
            self.update(index, copy, grad.astype(_FLOAT32), inner)
            weight[:] = copy
        else:
            self.update(index, weight, grad, state)

    # -------------------------------------------------------------------------------------------- rates

    @property
    def learning_rate(self) -> float:
        """The rate now."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the rate; a scheduler would forget it at once, so there must be none."""
        if self.lr_scheduler is not None:
            raise UserWarning("the learning rate comes from the lr_scheduler; set its base_lr instead")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors of the rate by name or index; others go back to those of the symbol, else to one."""
        self.lr_mult = {**self._from_symbol("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors of the decay by name or index; others go back to those of the symbol, else to one for
        names that end in ``_weight`` and zero for other names."""
        plain = {name: 0.0 for name in self.idx2name.values() if not name.endswith("_weight")}
        self.wd_mult = {**plain, **self._from_symbol("__wd_mult__"), **args_wd_mult}

    def _from_symbol(self, key: str) -> dict[Any, float]:
        if not self.sym_info:
            return {}
        attrs, names = self.sym_info
        return {name: float(attrs[name][key]) for name in names if key in attrs.get(name, ())}

    def _factor(self, index: Any, own: str, by_name: Mapping[Any, float]) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], own)
        if index in by_name:
            return by_name[index]
        return by_name.get(self.idx2name.get(index), 1.0)

    def _get_lr(self, index: Any) -> float:
        """The rate of one weight."""
        return self.learning_rate * self._factor(index, "lr_mult", self.lr_mult)

    def _get_wd(self, index: Any) -> float:
        """The decay of one weight."""
        return self.wd * self._factor(index, "wd_mult", self.wd_mult)

    def _set_current_context(self, device_id: int) -> None:
        """Count updates apart for each device that holds a copy of the weights."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> int:
        """Count an update of a weight; returns how many it has had with this one."""
        count = self._index_update_count.get(index, self.begin_num_update) + 1
        self._index_update_count[index] = count
        self.num_update = max(count, self.num_update)
        return count

    def _step(self, index: Any) -> tuple[int, dict[str, float]]:
        """Count an update; its number, and the attributes nearly all operators take."""
        count = self._update_count(index)
        return count, dict(lr=self._get_lr(index), wd=self._get_wd(index), rescale_grad=self.rescale_grad,
                           clip_gradient=self._bound)

    @property
    def _bound(self) -> float:
        """``clip_gradient`` as operators have it."""
        return self.clip_gradient or -1.0

    def _prepared(self, grad: NDArray) -> NDArray:
        """``g``, for rules written in array arithmetic."""
        return self._clip(grad * self.rescale_grad)

    def _clip(self, g: NDArray) -> NDArray:
        return ops.clip(g, a_min=-self.clip_gradient, a_max=self.clip_gradient) if self.clip_gradient else g


register = Optimizer.register
create = Optimizer.create_optimizer


# ----------------------------------------------------------------------------- stochastic gradient descent


@register
class SGD(Optimizer):
    """Gradient descent, with momentum if it is not zero.

    Parameters
    ----------
    momentum : float
        How much of the last step goes into the next.
    lazy_update : bool
        Has no effect: gradients here are dense.
    """

    _plain, _with_momentum = "sgd_update", "sgd_mom_update"

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight) if self.momentum else None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self._in_float32(weight):
            copy = weight.astype(_FLOAT32)
            return self.create_state(index, copy), copy
        return self.create_state(index, weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        name, states, attrs = self._settled(index, state)
        _update(name, weight, grad, *states, **attrs)

    def _settled(self, index: Any, state: Any) -> tuple[str, tuple[NDArray, ...], dict[str, Any]]:
        _, attrs = self._step(index)
        if state is None:
            return self._plain, (), attrs
        return self._with_momentum, (state,), {"momentum": self.momentum, **attrs}

    def update_multi_precision(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        if not (self.multi_precision and weight.dtype == _FLOAT16):
            return self.update(index, weight, grad, state)
        _, attrs = self._step(index)
        momentum, copy = state
        if momentum is None:
            return _update(f"mp_{self._plain}", weight, grad, copy, **attrs)
        return _update(f"mp_{self._with_momentum}", weight, grad, momentum, copy, momentum=self.momentum, **attrs)


@register
class NAG(SGD):
    """Nesterov's accelerated gradient; gradient descent when ``momentum`` is zero."""

    _with_momentum = "nag_mom_update"

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(momentum=momentum, **kwargs)


@register
class ccSGD(SGD):
    """Another name of ``SGD``."""


@register
class Signum(Optimizer):
    """Steps of one size: the sign of the gradient, or with momentum of its moving average.

    J. Bernstein et al., signSGD: compressed optimisation for non-convex problems, 2018.

    Parameters
    ----------
    momentum : float
        Zero for the sign of the gradient itself.
    wd_lh : float
        Decay of the weight apart from the gradient.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight) if self.momentum else None

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        if state is None:
            _update("signsgd_update", weight, grad, **attrs)
        else:
            _update("signum_update", weight, grad, state, momentum=self.momentum, wd_lh=self.wd_lh, **attrs)


@register
class DCASGD(Optimizer):
    """Gradient descent that makes up for a delay of the gradient.

    S. Zheng et al., Asynchronous stochastic gradient descent with delay compensation, 2017.

    Parameters
    ----------
    momentum : float
        How much of the last step goes into the next.
    lamda : float
        Strength of the compensation.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (_zeros(weight) if self.momentum else None), weight.copy()

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        g = self._prepared(grad)
        mom, before = state
        step = (g + weight * self._get_wd(index) + g * g * (weight - before) * self.lamda) * -self._get_lr(index)
        if mom is not None:
            mom[:] = mom * self.momentum + step
            step = mom
        before[:] = weight
        weight += step


@register
class SGLD(Optimizer):
    """Half a gradient step and normal noise of variance ``learning_rate``.

    M. Welling, Y. Teh, Bayesian learning via stochastic gradient Langevin dynamics, 2011.
    """

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        lr = self._get_lr(index)
        step = (self._prepared(grad) + weight * self._get_wd(index)) * (-lr / 2)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight += step + noise


# ------------------------------------------------------------------------------------------ Adam's kin


class _Moments(Optimizer):
    """An optimizer that keeps moving averages of the gradient and its square."""

    def __init__(self, learning_rate: float, beta1: float, beta2: float, epsilon: float, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight), _zeros(weight)

    def _corrected(self, count: int) -> float:
        """What the rate is multiplied by, so that averages that began at zero count in full."""
        return math.sqrt(1.0 - self.beta2**count) / (1.0 - self.beta1**count)

    @property
    def _betas(self) -> dict[str, float]:
        return dict(beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon)


@register
class Adam(_Moments):
    """Steps by the moving average of the gradient over the root of that of its square.

    D. Kingma, J. Ba, Adam: a method for stochastic optimization, 2014.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 lazy_update: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lazy_update = lazy_update

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        name, states, attrs = self._settled(index, state)
        _update(name, weight, grad, *states, **attrs)

    def _settled(self, index: Any, state: Any) -> tuple[str, tuple[NDArray, ...], dict[str, Any]]:
        count, attrs = self._step(index)
        attrs["lr"] *= self._corrected(count)
        return "adam_update", tuple(state), {**self._betas, **attrs}


@register
class AdamW(_Moments):
    """Adam with the decay apart: the weight also shrinks by ``learning_rate * wd`` of itself.

    I. Loshchilov, F. Hutter, Decoupled weight decay regularization, 2017.

    Parameters
    ----------
    correct_bias : bool
        Whether the averages' beginning at zero is made up for.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 correct_bias: bool = True, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.correct_bias = correct_bias

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        count, attrs = self._step(index)
        lr, wd = attrs["lr"], attrs["wd"]
        scale = array([attrs.pop("rescale_grad")], weight.context, weight.dtype)
        attrs.update(lr=lr * (self._corrected(count) if self.correct_bias else 1.0), wd=lr * wd, eta=1.0)
        _update("_adamw_update", weight, grad, *state, scale, **self._betas, **attrs)


@register
class LAMB(_Moments):
    """Adam's direction, in each array with a length in proportion to the weight's.

    Y. You et al., Large batch optimization for deep learning: training BERT in 76 minutes, 2019.

    Parameters
    ----------
    lower_bound, upper_bound : float or None
        Bounds of the weight's norm.
    bias_correction : bool
        Whether the averages' beginning at zero is made up for.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True,
                 **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lower_bound, self.upper_bound, self.bias_correction = lower_bound, upper_bound, bias_correction

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        count, attrs = self._step(index)
        _update("_multi_lamb_update", weight, grad, *state, **self._betas, learning_rates=(attrs["lr"],),
                wds=(attrs["wd"],), rescale_grad=self.rescale_grad, clip_gradient=self._bound,
                lower_bound=self.lower_bound or -1.0, upper_bound=self.upper_bound or -1.0,
                bias_correction=self.bias_correction, step_count=(count,), num_tensors=1)


@register
class Adamax(Optimizer):
    """Adam with the largest gradient instead of the root of the average square, from the same paper."""

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight), _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        count = self._update_count(index)
        lr = self._get_lr(index) / (1.0 - self.beta1**count)
        g = self._clip(grad * self.rescale_grad + weight * self._get_wd(index))
        mean, largest = state
        mean[:] = mean * self.beta1 + g * (1.0 - self.beta1)
        largest[:] = ops.broadcast_maximum(largest * self.beta2, abs(g))
        weight -= mean / largest * lr


@register
class Nadam(_Moments):
    """Adam with Nesterov's momentum.

    T. Dozat, Incorporating Nesterov momentum into Adam, 2016.

    Parameters
    ----------
    schedule_decay : float
        How fast the momentum rises to ``beta1``.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 schedule_decay: float = 0.004, **kwargs: Any):
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.schedule_decay, self.m_schedule = schedule_decay, 1.0

    def _momentum(self, count: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (count * self.schedule_decay))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        count = self._update_count(index)
        g = self._clip(grad * self.rescale_grad + weight * self._get_wd(index))
        now, later = self._momentum(count), self._momentum(count + 1)
        self.m_schedule *= now
        after = self.m_schedule * later
        mean, var = state
        mean[:] = mean * self.beta1 + g * (1.0 - self.beta1)
        var[:] = var * self.beta2 + g * g * (1.0 - self.beta2)
        ahead = g * ((1.0 - now) / (1.0 - self.m_schedule)) + mean * (later / (1.0 - after))
        weight -= ahead * self._get_lr(index) / (ops.sqrt(var / (1.0 - self.beta2**count)) + self.epsilon)


@register
class FTML(Optimizer):
    """Follow the moving leader.

    S. Zheng, J. Kwok, Follow the moving leader in deep learning, 2017.
    """

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight), _zeros(weight), _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        count, attrs = self._step(index)
        attrs["clip_grad"] = attrs.pop("clip_gradient")
        _update("ftml_update", weight, grad, *state, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon,
                t=count, **attrs)


# ------------------------------------------------------------------------------ step sizes by coordinate


@register
class AdaGrad(Optimizer):
    """Steps over the root of the sum of squares of all gradients so far.

    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and stochastic
    optimization, 2011.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        _update("_sparse_adagrad_update", weight, grad, state, epsilon=self.float_stable_eps, **attrs)


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one step size for each row of a weight; there is no decay."""

    def __init__(self, eps: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros((weight.shape[0], *[1] * (weight.ndim - 1)), weight.context, weight.dtype)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        if attrs.pop("wd"):
            raise ArgumentError("GroupAdaGrad has no decay: expected wd=0")
        _update("_contrib_group_adagrad_update", weight, grad, state, epsilon=self.float_stable_eps, **attrs)


@register
class RMSProp(Optimizer):
    """Steps over the root of a moving average of the squared gradient.

    Parameters
    ----------
    gamma1 : float
        How much of the average is kept.
    gamma2 : float
        Momentum, if ``centered``.
    centered : bool
        Whether the gradient's variance is taken instead of its square, as A. Graves does, Generating
        sequences with recurrent neural networks, 2013.
    clip_weights : float or None
        Bound of the weights' numbers.
    """

    def __init__(self, learning_rate: float = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8,
                 centered: bool = False, clip_weights: float | None = None, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(_zeros(weight) for _ in range(3 if self.centered else 1))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        attrs.update(gamma1=self.gamma1, epsilon=self.epsilon, clip_weights=self.clip_weights or -1.0)
        if self.centered:
            _update("rmspropalex_update", weight, grad, *state, gamma2=self.gamma2, **attrs)
        else:
            _update("rmsprop_update", weight, grad, *state, **attrs)


@register
class AdaDelta(Optimizer):
    """Steps whose size follows those of the last steps; there is no learning rate.

    M. Zeiler, ADADELTA: an adaptive learning rate method, 2012.

    Parameters
    ----------
    rho : float
        How much of the averages is kept.
    epsilon : float
        Keeps the first steps from being zero.
    """

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight), _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        g = self._prepared(grad)
        squares, steps = state
        squares[:] = squares * self.rho + g * g * (1.0 - self.rho)
        step = ops.sqrt(steps + self.epsilon) / ops.sqrt(squares + self.epsilon) * g
        steps[:] = steps * self.rho + step * step * (1.0 - self.rho)
        weight -= step + weight * self._get_wd(index)


@register
class Ftrl(Optimizer):
    """Follow the regularised leader, which makes weights exactly zero.

    H. McMahan et al., Ad click prediction: a view from the trenches, 2013.

    Parameters
    ----------
    lamda1 : float
        Strength of the pull to zero.
    beta : float
        Smooths the step sizes.
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1, self.beta = lamda1, beta

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight), _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        _update("ftrl_update", weight, grad, *state, lamda1=self.lamda1, beta=self.beta, **attrs)


# ------------------------------------------------------------------------------------------------ others


@register
class LARS(SGD):
    """Gradient descent with momentum, in each array with a rate in proportion to its weight's norm.

    Y. You, I. Gitman, B. Ginsburg, Large batch training of convolutional networks, 2017. Gammas, betas and
    biases are moved by the plain rate.

    Parameters
    ----------
    eta : float
        Factor of the rate.
    eps : float
        Keeps the rate finite.
    momentum_correction : bool
        Whether momentum is scaled when the rate changes.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0,
                 momentum_correction: bool = True, **kwargs: Any):
        super().__init__(momentum=momentum, lazy_update=lazy_update, **kwargs)
        self.eta, self.eps, self.momentum_correction = eta, eps, momentum_correction
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def _get_lr(self, index: Any) -> float:
        lr = super()._get_lr(index)
        self.last_lr, self.cur_lr = (lr if self.cur_lr is None else self.cur_lr), lr
        return lr

    def _scaled(self, index: Any, weight: NDArray, grad: NDArray, attrs: dict[str, float]) -> None:
        name = self.idx2name.get(index, str(index))
        if name.endswith(("gamma", "beta", "bias")):
            return
        w, g = (float(np.linalg.norm(each.asnumpy().astype(np.float64))) for each in (weight, grad))
        g *= self.rescale_grad
        if w > 0.0 and g > 0.0:
            attrs["lr"] *= self.eta * w / (g + attrs["wd"] * w + self.eps)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, attrs = self._step(index)
        self._scaled(index, weight, grad, attrs)
        if state is None:
            _update("sgd_update", weight, grad, **attrs)
            return
        changed = self.momentum_correction and self.last_lr
        scale = (self.cur_lr or 0.0) / self.last_lr if changed and self.last_lr else 1.0
        _update("sgd_mom_update", weight, grad, state, momentum=self.momentum * scale, **attrs)

    create_state_multi_precision = Optimizer.create_state_multi_precision
    update_multi_precision = Optimizer.update_multi_precision


@register
class Test(Optimizer):
    """Adds the rescaled gradient to the weight and remembers the sum; for tests."""

    __test__ = False  # not one of pytest's

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return _zeros(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        weight += grad * self.rescale_grad
        state[:] = weight


# ------------------------------------------------------------------------------------------------ updater


class Updater:
    """Applies an optimizer to weights by index, and keeps a state for each.

    Parameters
    ----------
    optimizer : Optimizer
        How weights move.

    Examples
    --------
    >>> import opreg.ndarray as nd
    >>> updater = get_updater(create("sgd", learning_rate=0.5))
    >>> weight = nd.array([1, 2])
    >>> updater(0, nd.array([1, 1]), weight); weight.asnumpy().tolist()
    [0.5, 1.5]
    """

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}
        self.aggregate_updates = False

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Move one weight, or the weights of a list."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        updates = []
        for i, g, w in zip(index, grad, weight):
            if i not in self.states:
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
                self.states_synced[i] = True
            elif not self.states_synced[i]:
                self.states[i] = self.sync_state_context(self.states[i], w.context)
                self.states_synced[i] = True
            updates.append((i, w, g, self.states[i]))
        self.optimizer.update_all(updates)

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """A state on a device."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(each, context) for each in state)
        return state

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states as bytes, with the numbers of updates.

        They are a ``.npz`` file: numbers and names, never code.

        Parameters
        ----------
        dump_optimizer : bool
            Whether the optimizer's own settings are included.
        """
        arrays: dict[str, np.ndarray] = {}
        optimizer = self.optimizer
        about: dict[str, Any] = {
            "format": _FORMAT,
            "states": [[_index(i), _packed(state, arrays)] for i, state in self.states.items()],
            "num_update": optimizer.num_update,
            "counts": [[device, [[_index(i), count] for i, count in counts.items()]]
                       for device, counts in optimizer._all_index_update_counts.items()],
        }
        if dump_optimizer:
            about["optimizer"] = type(optimizer).__name__.lower()
            about["settings"] = {name: value for name, value in vars(optimizer).items()
                                 if not name.startswith("_") and isinstance(value, (int, float, str, type(None)))}
        stream = io.BytesIO()
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(stream, **arrays)  # type: ignore[arg-type]
        return stream.getvalue()

    def set_states(self, states: bytes) -> None:
        """Take over what ``get_states`` gave.

        Raises
        ------
        FileFormatError
            When the bytes are not such states.
        ArgumentError
            When they are those of another kind of optimizer.
        """
        about, arrays = _unpacked(states)
        optimizer = self.optimizer
        named = about.get("optimizer", type(optimizer).__name__.lower())
        if named != type(optimizer).__name__.lower():
            raise ArgumentError(f"the states are those of optimizer {named!r}, this one is "
                                f"{type(optimizer).__name__.lower()!r}")
        try:
            self.states = {_of_index(i): _restored(packed, arrays) for i, packed in about["states"]}
            counts = {int(device): {_of_index(i): int(count) for i, count in pairs}
                      for device, pairs in about["counts"]}
            num_update = int(about["num_update"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(f"optimizer states: damaged ({type(error).__name__}: {error})") from None
        self.states_synced = dict.fromkeys(self.states, False)
        optimizer._all_index_update_counts = counts or {0: {}}
        optimizer._set_current_context(0)
        optimizer.num_update = num_update
        for name, value in about.get("settings", {}).items():
            if hasattr(optimizer, name) and not callable(getattr(type(optimizer), name, None)):
                setattr(optimizer, name, value)


_FORMAT = "opreg optimizer states 1"


def _index(index: Any) -> Any:
    if isinstance(index, (int, str)):
        return index
    raise ArgumentError(f"states can be saved of weights known by number or name, not by {type(index).__name__}")


def _of_index(index: Any) -> Any:
    if isinstance(index, (int, str)):
        return index
    raise TypeError(f"{index!r} is no index")


def _packed(state: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A state as JSON, its arrays apart."""
    if isinstance(state, NDArray):
        name, host = f"array{len(arrays)}", state.asnumpy()
        arrays[name] = host.view(np.uint16) if host.dtype.name == "bfloat16" else host
        return {"array": name, "dtype": host.dtype.name}
    if isinstance(state, (tuple, list)):
        return {"tuple": [_packed(each, arrays) for each in state]}
    if state is None or isinstance(state, (int, float, str)):
        return {"value": state}
    raise ArgumentError(f"states can be saved of arrays, numbers and tuples of those, not {type(state).__name__}")


def _unpacked(states: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with np.load(io.BytesIO(states), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except (ValueError, KeyError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise FileFormatError("optimizer states: expected what get_states gave, which is a .npz file "
                              f"({type(error).__name__}: {error}). States that another program has pickled are not "
                              "read, because that would run code from the file") from None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise FileFormatError("optimizer states: this is a .npz file, but not one that get_states gave")
    return about, arrays


def _restored(packed: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if "array" in packed:
        host, dtype = arrays[packed["array"]], as_dtype(packed["dtype"])
        return array(host.view(dtype) if dtype.name == "bfloat16" else host, dtype=dtype)
    if "tuple" in packed:
        return tuple(_restored(each, arrays) for each in packed["tuple"])
    return packed["value"]


def get_updater(optimizer: Optimizer) -> Updater:
    """A function of index, gradient and weight that moves the weight and remembers its state."""
    return Updater(optimizer)

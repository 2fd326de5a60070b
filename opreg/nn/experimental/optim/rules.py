"""The optimizers: each a rule for one parameter, its gradient and its states.

A rule is written in operators, so it is compiled with its training step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ....cells.parameter import Parameter, assign
from ....cells.tensor import Tensor, tensor
from ....errors import ArgumentError
from ... import ops
from .optimizer import Optimizer, check_setting

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]

_Params: TypeAlias = Iterable[Parameter] | Iterable[dict[str, Any]]


class _Rule(Optimizer):
    """Base of optimizers that update each parameter separately."""

    #: Names of the states of each parameter, and their initial values.
    _states: dict[str, str] = {}
    #: Whether the weight decay is added to gradients.
    _decays = True

    def __init__(self, params: _Params, **defaults: Any):
        super().__init__(params, defaults)
        for name, init in self._states.items():
            setattr(self, name, self.parameters.clone(prefix=name, init=init))
        self.step_t = Parameter(tensor(np.zeros((), np.float32)), name="step_t", requires_grad=False)

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        """Update the parameters by their gradients, in the order of ``parameters``."""
        if len(gradients) != len(self.parameters):
            raise ArgumentError(f"{self.cls_name}: expected {len(self.parameters)} gradients, got {len(gradients)}")
        step = assign(self.step_t, self.step_t + 1.0)
        for start, end, group, rate in zip(self.group_start_id, self.group_start_id[1:], self.param_groups, self.lrs):
            params, grads = self.parameters[start:end], tuple(gradients[start:end])
            grads = tuple([-g for g in grads]) if group.get("maximize") else grads
            grads = self._decay_weight(group["weight_decay"], params, grads) if self._decays else grads
            states = [getattr(self, name)[start:end] for name in self._states]
            for p, g, *moments in zip(params, grads, *states):
                self._change(group, rate, step, p, g, *moments)
        return True

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        raise NotImplementedError


def _betas(owner: str, betas: Sequence[float]) -> tuple[float, float]:
    first, second = betas
    return check_setting(owner, "betas[0]", first, 1.0), check_setting(owner, "betas[1]", second, 1.0)


class SGD(_Rule):
    """Stochastic gradient descent, with optional momentum.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.SGD([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"accum": "zeros"}

    def __init__(self, params: _Params, lr: float, momentum: float = 0, dampening: float = 0, weight_decay: float = 0.0,
                 nesterov: bool = False, *, maximize: bool = False):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError(f"SGD: nesterov needs a momentum above 0 and a dampening of 0, got {momentum} and "
                                f"{dampening}")
        super().__init__(params, lr=lr, momentum=check_setting("SGD", "momentum", momentum), dampening=dampening,
                         weight_decay=weight_decay, nesterov=nesterov, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        momentum = group["momentum"]
        if momentum:
            accum = assign(states[0], ops.where(step == 1.0, g, states[0] * momentum + g * (1 - group["dampening"])))
            g = g + accum * momentum if group["nesterov"] else accum
        assign(p, p - rate * g)


class Adam(_Rule):
    """Adam: moving averages of gradients and squared gradients, corrected for their initial bias.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.Adam([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"exp_avg": "zeros", "exp_avg_sq": "zeros", "max_exp_avg_sq": "zeros"}

    def __init__(self, params: _Params, lr: float = 1e-3, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=_betas(type(self).__name__, betas),
                         eps=check_setting(type(self).__name__, "eps", eps), weight_decay=weight_decay, amsgrad=amsgrad,
                         maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        correction = ops.sqrt(1 - ops.pow(group["betas"][1], step))
        self._update_parameter(group, rate, step, p, g, states, 1.0, group["eps"] / correction, correction)

    def _update_parameter(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, states: Sequence[Any],
                          decay: Any, eps: Any, correction: Any) -> None:
        first, second = group["betas"]
        m = assign(states[0], states[0] * first + g * (1 - first))
        v = assign(states[1], states[1] * second + g * g * (1 - second))
        v = assign(states[2], ops.maximum(states[2], v)) if group["amsgrad"] else v
        assign(p, p * decay - m * (rate / (1 - ops.pow(first, step))) / (ops.sqrt(v) / correction + eps))


class AdamW(Adam):
    """``Adam`` with decoupled weight decay.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.AdamW([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _decays = False

    def __init__(self, params: _Params, lr: float = 1e-3, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        self._update_parameter(group, rate, step, p, g, states, 1 - rate * group["weight_decay"], group["eps"],
                               ops.sqrt(1 - ops.pow(group["betas"][1], step)))


class Adamax(_Rule):
    """Adamax: a moving average of gradients, divided by a decaying maximum of their absolute values.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.Adamax([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"exp_avg": "zeros", "exp_inf": "zeros"}

    def __init__(self, params: _Params, lr: float = 2e-3, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, *, maximize: bool = False):
        super().__init__(params, lr=lr, betas=_betas("Adamax", betas), eps=check_setting("Adamax", "eps", eps),
                         weight_decay=weight_decay, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        first, second = group["betas"]
        m = assign(states[0], states[0] * first + g * (1 - first))
        largest = assign(states[1], ops.maximum(states[1] * second, ops.abs(g) + group["eps"]))
        assign(p, p - m * (rate / (1 - ops.pow(first, step))) / largest)


class NAdam(_Rule):
    """``Adam`` with Nesterov momentum.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.NAdam([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"exp_avg": "zeros", "exp_avg_sq": "zeros", "mu_product": "ones"}

    def __init__(self, params: _Params, lr: float = 2e-3, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 4e-3):
        super().__init__(params, lr=lr, betas=_betas("NAdam", betas), eps=check_setting("NAdam", "eps", eps),
                         weight_decay=weight_decay,
                         momentum_decay=check_setting("NAdam", "momentum_decay", momentum_decay))

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        (first, second), decay = group["betas"], group["momentum_decay"]
        now, ahead = (first * (1.0 - 0.5 * ops.pow(0.96, at * decay)) for at in (step, step + 1.0))
        m = assign(states[0], states[0] * first + g * (1 - first))
        v = assign(states[1], states[1] * second + g * g * (1 - second))
        product = assign(states[2], states[2] * now)
        size = ops.sqrt(v / (1 - ops.pow(second, step))) + group["eps"]
        assign(p, p - rate * (1.0 - now) / (1.0 - product) * g / size
               - rate * ahead / (1.0 - product * ahead) * m / size)


class RAdam(_Rule):
    """RAdam: ``Adam``, with the average of gradients only until that of squares has seen enough steps.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.RAdam([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"exp_avg": "zeros", "exp_avg_sq": "zeros"}

    def __init__(self, params: _Params, lr: float = 1e-3, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0):
        super().__init__(params, lr=lr, betas=_betas("RAdam", betas), eps=check_setting("RAdam", "eps", eps),
                         weight_decay=weight_decay)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        first, second = group["betas"]
        m = assign(states[0], states[0] * first + g * (1 - first))
        v = assign(states[1], states[1] * second + g * g * (1 - second))
        power = ops.pow(second, step)
        most = 2 / (1 - second) - 1
        length = most - 2 * step * power / (1 - power)
        enough = length > 5.0
        safe = ops.where(enough, length, 6.0)
        share = ops.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe))
        wide = ops.where(enough, share * ops.sqrt(1 - power) / (ops.sqrt(v) + group["eps"]), 1.0)
        assign(p, p - m * (rate / (1 - ops.pow(first, step))) * wide)


class RMSprop(_Rule):
    """RMSprop: gradients divided by the root of a moving average of their squares.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.RMSprop([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"mean_square": "zeros", "mean_grad": "zeros", "moment": "zeros"}

    def __init__(self, params: _Params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, maximize: bool = False):
        super().__init__(params, lr=lr, alpha=check_setting("RMSprop", "alpha", alpha),
                         eps=check_setting("RMSprop", "eps", eps), weight_decay=weight_decay,
                         momentum=check_setting("RMSprop", "momentum", momentum), centered=centered, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        alpha = group["alpha"]
        square = assign(states[0], states[0] * alpha + g * g * (1 - alpha))
        if group["centered"]:
            mean = assign(states[1], states[1] * alpha + g * (1 - alpha))
            square = square - mean * mean
        change = g / (ops.sqrt(square) + group["eps"])
        if group["momentum"]:
            change = assign(states[2], states[2] * group["momentum"] + change)
        assign(p, p - rate * change)


class Adagrad(_Rule):
    """Adagrad: gradients divided by the root of the sum of their squares.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.Adagrad([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"accum": "zeros"}

    def __init__(self, params: _Params, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False):
        begin = check_setting("Adagrad", "initial_accumulator_value", initial_accumulator_value)
        super().__init__(params, lr=lr, lr_decay=check_setting("Adagrad", "lr_decay", lr_decay),
                         weight_decay=weight_decay, initial_accumulator_value=begin,
                         eps=check_setting("Adagrad", "eps", eps), maximize=maximize)
        for state in self.accum:
            state.set_data(ops.full_like(state, begin))

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        square = assign(states[0], states[0] + g * g)
        assign(p, p - rate / (1 + (step - 1.0) * group["lr_decay"]) * g / (ops.sqrt(square) + group["eps"]))


class Adadelta(_Rule):
    """Adadelta: gradients divided by the root of a moving average of their squares, times the root of that of the
    updates.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.Adadelta([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"accum": "zeros", "accum_update": "zeros"}

    def __init__(self, params: _Params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
                 *, maximize: bool = False):
        super().__init__(params, lr=lr, rho=check_setting("Adadelta", "rho", rho),
                         eps=check_setting("Adadelta", "eps", eps), weight_decay=weight_decay, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        rho, eps = group["rho"], group["eps"]
        square = assign(states[0], states[0] * rho + g * g * (1 - rho))
        change = ops.sqrt(states[1] + eps) / ops.sqrt(square + eps) * g
        assign(states[1], states[1] * rho + change * change * (1 - rho))
        assign(p, p - rate * change)


class Rprop(_Rule):
    """Rprop: steps by the signs of gradients; a step size grows while the sign is unchanged, and shrinks when it
    changes.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.Rprop([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"prev": "zeros", "step_size": "zeros"}
    _decays = False

    def __init__(self, params: _Params, lr: float = 1e-2, etas: Sequence[float] = (0.5, 1.2),
                 step_sizes: Sequence[float] = (1e-6, 50), *, maximize: bool = False):
        if not 0 < etas[0] < 1 < etas[1]:
            raise ArgumentError(f"Rprop: expected etas (below 1, above 1), got {etas!r}")
        super().__init__(params, lr=lr, etas=tuple(etas), step_sizes=tuple(step_sizes), maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        less, more = group["etas"]
        same = ops.sign(g * states[0])
        size = ops.where(step == 1.0, ops.ones_like(p) * rate, states[1])
        size = ops.clamp(size * ops.where(same > 0, more, ops.where(same < 0, less, ops.ones_like(p))),
                         *group["step_sizes"])
        assign(states[1], size)
        g = assign(states[0], ops.where(same < 0, 0.0, g))
        assign(p, p - ops.sign(g) * size)


class ASGD(_Rule):
    """Averaged stochastic gradient descent: steps that shrink, and ``ax``, the average of the weights.

    Examples
    --------
    >>> import opreg as ms
    >>> from opreg.experimental import optim
    >>> weight = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> optimizer = optim.ASGD([weight], lr=0.1)
    >>> _ = optimizer((ms.Tensor([0.5, 0.5]),))
    >>> bool((weight.asnumpy() < [1, 2]).all())
    True
    """

    _states = {"ax": "zeros", "eta": "zeros", "mu": "ones"}

    def __init__(self, params: _Params, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0.0, maximize: bool = False):
        super().__init__(params, lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, maximize=maximize)

    def _change(self, group: dict[str, Any], rate: Any, step: Any, p: Any, g: Any, *states: Any) -> None:
        ax, eta, mu = states
        lambd = group["lambd"]
        now = ops.where(step == 1.0, ops.ones_like(eta) * rate, eta)
        moved = assign(p, p * (1.0 - now * lambd) - now * g)
        assign(ax, ax + (moved - ax) * mu)
        assign(eta, ops.ones_like(eta) * (rate / ops.pow(1.0 + step * rate * lambd, group["alpha"])))
        assign(mu, ops.ones_like(mu) / ops.maximum(1.0, step - group["t0"]))

"""LARS: rates of layers around another optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...builtin.optimizers.update_formulas import trust_ratio
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...errors import ArgumentError
from .optimizer import Optimizer
from .rule import norm

__all__ = ["LARS"]


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
    >>> from opreg.nn import SGD
    >>> w = Parameter(Tensor([3.0, 4.0]), name="w")
    >>> LARS(SGD([w], 1.0), coefficient=0.1, epsilon=0.0)((Tensor([0.0, 2.0]),))
    (True,)
    >>> print(w.asnumpy())
    [3.  3.5]
    """

    def __init__(self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 0.001, use_clip: bool = False,
                 lars_filter: Callable[[Parameter], bool] | None = None):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"LARS: optimizer must be an Optimizer, got {type(optimizer).__name__}")
        super().__init__(0.0, optimizer.parameters, 0.0, optimizer.loss_scale)
        self.learning_rate.name = "fake_lr"  # MindSpore's name for it; "learning_rate" is that of the optimizer
        self.opt, self.global_step = optimizer, optimizer.global_step
        self.epsilon = real_number("LARS: epsilon", epsilon)
        self.coefficient = real_number("LARS: coefficient", coefficient, inside=True)
        self.use_clip = flag("LARS: use_clip", use_clip)
        chosen = _is_weight if lars_filter is None else lars_filter
        self.lars_flag = tuple([bool(chosen(p)) for p in self.parameters])
        optimizer._wrapped, optimizer.decay_flags = True, (False,) * len(self.parameters)
        optimizer.loss_scale = optimizer.loss_scale

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("learning_rate", "weight_decay", "loss_scale") and "opt" in self.__dict__:
            raise AttributeError(f"LARS: {name} is a setting of the inner optimizer; set it as opt.{name}")
        super().__setattr__(name, value)

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        opt = self.opt
        decays, rates = opt._current_settings(opt._decays), opt._current_settings(opt._rates)
        scale = opt.loss_scale
        scaled = [g * (1.0 / scale) if scale != 1.0 else g for g in self._check_gradients(gradients)]
        rows = zip(self.parameters, scaled, decays, rates, self.lars_flag)
        return self.opt(tuple([self._scale_by_trust(p, g, decay, lr) if chosen else g
                               for p, g, decay, lr, chosen in rows]))

    def _scale_by_trust(self, p: Parameter, g: Tensor, decay: float | Tensor, lr: Tensor) -> Tensor:
        length = norm(p)
        below = norm(g) + decay * length + self.epsilon
        trust = trust_ratio(self.coefficient * length, below, ops.ones_like(length), ops._npi_where)
        if self.use_clip:
            trust = ops.clip(trust / lr, a_min=0.0, a_max=1.0)
        return (g + decay * p) * trust

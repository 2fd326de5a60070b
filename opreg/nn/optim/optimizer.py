"""Optimizer: a Cell that changes parameters by their gradients.

Learning rate and step are Parameters, so a compiled training step serves all steps. What an optimizer computes is
written in operators, once; called eagerly, the optimizers of this package run it as a plan of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError, did_you_mean
from ..cell import Cell
from ..parameter import Parameter, ParameterTuple, assign
from ..state import STATE
from ..tensor import tensor
from ..tensor_base import TensorBase, is_number
from .schedule import LearningRateSchedule, ListedRate
from .settings import flag, number

__all__ = ["Optimizer", "store"]

_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


class Optimizer(Cell):
    """Base of optimizers: derive from it, clone ``self.parameters`` for states, change them in ``construct``.

    Parameters
    ----------
    learning_rate : float, Tensor, sequence of float, or LearningRateSchedule
        One number; or one for each step, the last of which stays; or a Cell that is called with the step.
    parameters : list of Parameter, or list of dict
        What is trained. Dicts have ``params`` and may have ``lr``, ``weight_decay`` and ``grad_centralization``; one
        that has ``order_params`` alone says in which order gradients come.
    weight_decay : float or Cell
        Times the parameter is added to its gradient. Without groups parameters whose names contain ``beta`` or
        ``gamma`` are spared. A Cell is called with the step.
    loss_scale : float
        What the loss was multiplied by: gradients are divided by it.

    Examples
    --------
    >>> class Descent(Optimizer):
    ...     def construct(self, gradients):
    ...         for p, g in zip(self.parameters, self.scale_grad(gradients)):
    ...             assign(p, p - self.get_lr() * g)
    >>> w = Parameter(tensor([1.0, 2.0]), name="w")
    >>> Descent(0.5, [w])((tensor([1.0, 1.0]),))
    >>> w.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    #: Whether an eager call runs a plan of ``construct``.
    _planned = False

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0):
        super().__init__(auto_prefix=False)
        self.loss_scale = number(self.cls_name, "loss_scale", loss_scale, inside=True)
        self.need_scale = self.loss_scale != 1.0
        self.global_step = Parameter(tensor(np.zeros(1, np.int32)), name="global_step")
        given = self._listed(parameters, "parameters")
        self.is_group = isinstance(given[0], dict)
        kind = dict if self.is_group else Parameter
        for each in given:
            if not isinstance(each, kind):
                raise TypeError(f"{self.cls_name}: parameters must be Parameters, or dicts of groups, got "
                                f"{type(each).__name__}")
        rate = self._rate(learning_rate, "learning_rate")
        decay = self._decay(weight_decay)
        self.is_group_lr = self.is_group and any("lr" in group for group in given)
        if self.is_group:
            rows = self._rows(given, rate, decay)
        else:
            rows = [(p, rate, 0.0 if "beta" in p.name or "gamma" in p.name else decay, False) for p in given]
        self.parameters = ParameterTuple([row[0] for row in rows])
        self._rates, self._decays, self._centered = (tuple([row[i] for row in rows]) for i in (1, 2, 3))
        self.dynamic_lr = any(isinstance(each, Cell) for each in self._rates)
        self.dynamic_weight_decay = any(isinstance(each, Cell) for each in self._decays)
        self.decay_flags = tuple([isinstance(each, Cell) or each > 0 for each in self._decays])
        self.exec_weight_decay = any(self.decay_flags)
        if self.is_group:
            self._adopt_all(self._decays)
        self.weight_decay = self._decays if self.is_group else decay
        if self.is_group_lr:
            self._adopt_all(self._rates)
            self.__dict__["learning_rate"] = self._rates
        else:
            self.learning_rate = self._rates[0]

    def _adopt_all(self, settings: Sequence[Any]) -> None:
        """Make Cells among settings children, and Parameters parameters of this."""
        for each in {id(each): each for each in settings}.values():
            if isinstance(each, Cell):
                self.insert_child_to_cell(f"schedule{len(self._cells)}", each)
            elif isinstance(each, Parameter):
                self.insert_param_to_cell(each.name, each)

    # ---------------------------------------------------------------------------------------- what was given

    def _listed(self, parameters: Any, what: str) -> list[Any]:
        if parameters is None:
            raise ValueError(f"{self.cls_name}: {what} must not be None")
        if isinstance(parameters, Parameter) or not isinstance(parameters, Iterable):
            raise TypeError(f"{self.cls_name}: {what} must be a list, got {type(parameters).__name__}")
        found = list(parameters)
        if not found:
            raise ValueError(f"{self.cls_name}: {what} must not be empty; has the network parameters that are trained?")
        return found

    def _rate(self, rate: Any, name: str) -> Any:
        """A learning rate as a Parameter, or as a Cell that is called with the step."""
        if isinstance(rate, LearningRateSchedule):
            return rate
        if is_number(rate):
            rate = number(self.cls_name, name, rate)
        elif not isinstance(rate, (NDArray, np.ndarray)):
            if isinstance(rate, (str, dict)) or not isinstance(rate, Iterable):
                raise TypeError(f"{self.cls_name}: {name} must be a float, a Tensor, a list of floats or a "
                                f"LearningRateSchedule, got {type(rate).__name__}")
            rate = [number(self.cls_name, name, each) for each in rate]
        values = tensor(np.array(rate.asnumpy() if isinstance(rate, NDArray) else rate, np.float32))
        if values.ndim > 1 or not values.size:
            raise ValueError(f"{self.cls_name}: {name} must be one number or several, got shape {show(values.shape)}")
        held = Parameter(values, name=name)
        return ListedRate(held) if values.ndim else held

    def _decay(self, decay: Any) -> Any:
        """A weight decay as a float or a Cell, multiplied by the loss scale, as gradients are."""
        if isinstance(decay, Cell):
            return _Scaled(decay, self.loss_scale) if self.need_scale else decay
        return number(self.cls_name, "weight_decay", decay) * self.loss_scale

    def _rows(self, groups: list[dict[str, Any]], rate: Any, decay: Any) -> list[tuple]:
        """Parameter, rate, decay, and whether its gradients are centered, of every parameter."""
        rows: dict[int, tuple] = {}
        order: Any = None
        listed = isinstance(rate, ListedRate) and rate.learning_rate.size
        for i, group in enumerate(groups):
            for key in group:
                if key not in _KEYS:
                    raise KeyError(f"{self.cls_name}: group {i} has the key {key!r}. {did_you_mean(key, _KEYS)}")
            if "order_params" in group:
                if len(group) > 1:
                    raise ValueError(f"{self.cls_name}: group {i}: order_params must stand alone, got "
                                     f"{', '.join(group)}")
                order = self._listed(group["order_params"], "order_params")
                continue
            own_rate = self._rate(group["lr"], f"learning_rate_group_{i}") if "lr" in group else rate
            if isinstance(own_rate, ListedRate):
                listed = listed or own_rate.learning_rate.size
                if own_rate.learning_rate.size != listed:
                    raise ValueError(f"{self.cls_name}: group {i} lists {own_rate.learning_rate.size} learning rates, "
                                     f"others list {listed}")
            own_decay = self._decay(group["weight_decay"]) if "weight_decay" in group else decay
            centered = flag(self.cls_name, "grad_centralization", group.get("grad_centralization", False))
            for p in self._listed(group.get("params"), f"params of group {i}"):
                if not isinstance(p, Parameter):
                    raise TypeError(f"{self.cls_name}: group {i}: params must be Parameters, got {type(p).__name__}")
                if id(p) in rows:
                    raise ArgumentError(f"{self.cls_name}: Parameter {p.name} is in two groups")
                rows[id(p)] = p, own_rate, own_decay, centered
        if order is None:
            return list(rows.values())
        if sorted(map(id, order)) != sorted(rows):
            raise ValueError(f"{self.cls_name}: order_params must be the {len(rows)} parameters of the groups in some "
                             f"order, got {len(order)}")
        return [rows[id(p)] for p in order]

    # ------------------------------------------------------------------------------- for those who derive

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._planned and STATE.trace is None and self._plain:
            return self._cache().call(self, args, kwargs)
        return super().__call__(*args, **kwargs)

    def construct(self, *hyper_params: Any) -> Any:
        """Change the parameters by their gradients; every optimizer defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, gradients)")

    def get_lr(self) -> Any:
        """The learning rate of this step; one for each parameter, in a tuple, where groups have their own."""
        found = self._now(self._rates)
        return tuple(found) if self.is_group_lr else found[0]

    def get_weight_decay(self) -> Any:
        """The weight decay of this step times the loss scale; one for each parameter, in a tuple, with groups."""
        return tuple(self._now(self._decays)) if self.is_group else self._now([self.weight_decay])[0]

    def _now(self, settings: Sequence[Any]) -> list[Any]:
        """Settings at this step: those that are Cells are called once each."""
        known: dict[int, Any] = {}
        for each in settings:
            if isinstance(each, Cell) and id(each) not in known:
                known[id(each)] = each(self.global_step).reshape(())
        return [known.get(id(each), each) for each in settings]

    def get_lr_parameter(self, param: Any) -> Any:
        """The Parameter, or the LearningRateSchedule, that holds the learning rate of a parameter or of several."""
        if isinstance(param, list):
            return [self.get_lr_parameter(each) for each in param]
        if not isinstance(param, Parameter):
            raise TypeError(f"get_lr_parameter: expected a Parameter or a list of them, got {type(param).__name__}")
        for p, rate in zip(self.parameters, self._rates):
            if p is param:
                return rate.learning_rate if isinstance(rate, ListedRate) else rate
        raise ValueError(f"get_lr_parameter: Parameter {param.name} is not one of {self.cls_name}")

    def decay_weight(self, gradients: Sequence[Any]) -> tuple:
        """Gradients to which the weight decay times the parameter is added."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        return tuple([g + p * decay if flag else g for p, g, decay, flag in
                      zip(self.parameters, gradients, self._now(self._decays), self.decay_flags)])

    def gradients_centralization(self, gradients: Sequence[Any]) -> tuple:
        """Gradients from which, where a group asks for it, their mean over all but the first axis is taken."""
        return tuple([g - ops.mean(g, axis=tuple(range(1, len(g.shape))), keepdims=True)
                      if centered and len(g.shape) > 1 and g.shape[1] % 16 == 0 else g
                      for g, centered in zip(gradients, self._centered)])

    def scale_grad(self, gradients: Sequence[Any]) -> tuple:
        """Gradients divided by the loss scale."""
        return tuple([g * (1.0 / self.loss_scale) for g in gradients]) if self.need_scale else tuple(gradients)

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients themselves."""
        return gradients

    def _states(self, prefix: str, value: float = 0.0) -> ParameterTuple:
        """A state for each parameter, filled with a number and named after both."""
        return ParameterTuple([Parameter(ops.zeros_like(p) + value, f"{prefix}.{p.name}", p.requires_grad)
                               for p in self.parameters])

    def _prepared(self, gradients: Any, decay: bool = True) -> Iterator[tuple[Any, Any, Any]]:
        """Parameters, their gradients as the rule wants them, and their learning rates; the step goes on."""
        gradients = self._checked(gradients)
        if decay:
            gradients = self.decay_weight(gradients)
        gradients = self.scale_grad(self.gradients_centralization(gradients))
        rates = self._now(self._rates)
        assign(self.global_step, self.global_step + 1)
        return zip(self.parameters, gradients, rates)

    def _checked(self, gradients: Any) -> tuple:
        if isinstance(gradients, TensorBase) or not isinstance(gradients, (tuple, list)):
            raise TypeError(f"{self.cls_name}: expected a tuple of gradients, got {type(gradients).__name__}")
        if len(gradients) != len(self.parameters):
            raise ArgumentError(f"{self.cls_name}: expected {len(self.parameters)} gradients, one for each parameter, "
                                f"got {len(gradients)}")
        for p, g in zip(self.parameters, gradients):
            if not hasattr(g, "shape"):
                raise TypeError(f"{self.cls_name}: the gradient of {p.name} must be a Tensor, got {type(g).__name__}")
            if g.shape != p.shape:
                raise ShapeError(f"{self.cls_name}: the gradient of {p.name} has shape {show(g.shape)}, expected "
                                 f"{show(p.shape)}")
        return tuple([g._cast(p._dt) for p, g in zip(self.parameters, gradients)])


def store(parameter: Parameter, value: Any) -> None:
    """Assign a value that may have been computed in a wider dtype."""
    assign(parameter, value._cast(parameter._dt))


class _Scaled(Cell):
    """What another Cell gives, multiplied by a number."""

    def __init__(self, inner: Cell, factor: float):
        super().__init__(auto_prefix=False)
        self.inner, self.factor = inner, factor

    def construct(self, step: Any) -> Any:
        return self.inner(step) * self.factor

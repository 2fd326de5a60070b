"""Optimizer: a Cell that updates parameters by their gradients.

Learning rate and step are Parameters, so one compiled training step serves all steps. Updates are written in operators;
called eagerly, the optimizers of this package run them as a separate plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray.ndarray import NDArray

from ...cells.cell import Cell
from ...cells.jit import Cache
from ...cells.parameter import Parameter, ParameterTuple, assign
from ...cells.state import STATE
from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import TensorBase, is_number
from ...core.other_names import OPTIMIZERS
from ...core.registry import ops
from ...core.settings import flag, real_number
from ...core.spec import show
from ...errors import ArgumentError, ShapeError, WrongNameError, did_you_mean
from ..ops.multitype import HyperMap, Map
from .schedule import HeldRate, LearningRateSchedule, ListedRate

__all__ = ["Optimizer", "store", "Params", "Rate"]

#: Trained parameters: Parameters, or groups of Parameters with their own settings.
Params: TypeAlias = Iterable[Parameter | dict[str, Any]]
#: A learning rate as a caller gives it: a number, one for each step, or a Cell of the step.
Rate: TypeAlias = float | NDArray | np.ndarray | Sequence[float] | LearningRateSchedule

_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


T = TypeVar("T")


class _Row(NamedTuple):
    """A parameter with its settings, and whether its gradient is centered."""

    parameter: Parameter
    rate: Parameter | LearningRateSchedule
    decay: float | Cell
    centered: bool


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorate the constructor of an optimizer, as MindSpore's own do; it is returned unchanged."""
    return fn


class Optimizer(Cell):
    """Base of optimizers: derive from it, clone ``self.parameters`` for states, and update them in ``construct``.

    Parameters
    ----------
    learning_rate : float, Tensor, sequence of float, or LearningRateSchedule
        A number; or one per step, with the last one used from then on; or a Cell that is called with the step.
    parameters : list of Parameter, or list of dict
        The parameters to train. A dict is a group with ``params``, and optionally ``lr``, ``weight_decay`` and
        ``grad_centralization``; a dict with only ``order_params`` gives the order of the gradients.
    weight_decay : float or Cell
        Factor of the parameter that is added to its gradient. Without groups, parameters whose names contain ``beta``
        or ``gamma`` are not decayed. A Cell is called with the step.
    loss_scale : float
        Factor of the loss, by which gradients are divided.

    Settings set later, as ``optimizer.weight_decay = 0.1``, hold from the next step on, those of compiled functions,
    too. ``weight_decay`` is read and set multiplied by the loss scale; with groups it is a tuple with one for each
    parameter, and a number stands for all.

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

    _other_names = OPTIMIZERS

    #: Whether an eager call runs ``construct`` as a plan.
    _planned = False

    #: Whether weight decay leaves out parameters with ``beta`` or ``gamma`` in their names, unless a group has them.
    _spares = True

    #: Whether a weight decay may be a Cell.
    _calls_decays = True

    #: Whether another optimizer has decayed and scaled the gradients.
    _wrapped = False

    learning_rate: Any
    _target = "CPU"

    def __init__(self, learning_rate: Rate, parameters: Params, weight_decay: float | Cell = 0.0,
                 loss_scale: float = 1.0):
        super().__init__(auto_prefix=False)
        self.loss_scale = loss_scale
        self.need_scale = self.loss_scale != 1.0
        self.global_step = Parameter(tensor(np.zeros(1, np.int32)), name="global_step")
        listed = self._parameter_list(parameters, "parameters")
        kind = dict if isinstance(listed[0], dict) else Parameter
        for member in listed:
            if not isinstance(member, kind):
                raise ArgumentError(f"{self.cls_name}: parameters must be Parameters, or dicts of groups, got "
                                    f"{type(member).__name__}")
        groups = [member for member in listed if isinstance(member, dict)]
        self.is_group = bool(groups)
        rate = self._rate(learning_rate, "learning_rate")
        decay = self._decay(weight_decay)
        self.is_group_lr = self.is_group and any("lr" in group for group in groups)
        self.is_group_params_ordered = any("order_params" in group for group in groups)
        if self.is_group:
            rows = self._rows(groups, rate, decay)
        else:
            rows = [_Row(p, rate, decay if self._is_decayed(p) else 0.0, False)
                    for p in listed if isinstance(p, Parameter)]
        if self.is_group_lr:  # rates come before weights, as in MindSpore's checkpoints
            self._set_rates([row.rate for row in rows])
        else:
            self.learning_rate = rows[0].rate
        self.parameters = ParameterTuple([row.parameter for row in rows])
        if not self.is_group_lr:
            self._share_rate()
        self._centered = tuple([row.centered for row in rows])
        self._set_decays([row.decay for row in rows] if self.is_group else [decay])
        self.decay_flags = self._decaying if self.is_group else tuple([self._is_decayed(p) for p in self.parameters])

    # ------------------------------------------------------------- settings, given at first or set later

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if name == "weight_decay" and "_decays" in attributes:
            self._set_decays(self._unscaled_decays(value))
        elif name == "learning_rate" and "_decays" in attributes and self.is_group_lr:
            self._check_rates(value)
            self._set_rates(value)
        else:
            if name == "loss_scale":
                value = real_number(f"{self.cls_name}: {name}", value, inside=True)
            super().__setattr__(name, value)
            if name == "learning_rate" and "_decays" in attributes:
                self._share_rate()
            elif name == "loss_scale" and "_decays" in attributes:
                self.need_scale = value != 1.0 and not self._wrapped
                self._set_decays(self._given_decays)

    def _share_rate(self) -> None:
        """Use the learning rate for all parameters."""
        self._rates = (self.learning_rate,) * len(self.parameters)
        self.dynamic_lr = isinstance(self.learning_rate, Cell)

    def _check_rates(self, rates: Any) -> None:
        if not isinstance(rates, (tuple, list)) or len(rates) != len(self.parameters) \
                or not all(isinstance(rate, (Parameter, LearningRateSchedule)) for rate in rates):
            raise ArgumentError(f"{self.cls_name}: learning_rate must be a tuple of {len(self.parameters)} "
                                "Parameters or LearningRateSchedules, one for each parameter of the groups")

    def _set_rates(self, rates: Sequence[Any]) -> None:
        """Set the learning rates of groups: one for each parameter, all of them Cells if one is."""
        self.dynamic_lr = any(isinstance(rate, Cell) for rate in rates)
        if self.dynamic_lr:
            held_rates = {id(rate): HeldRate(rate) for rate in rates if isinstance(rate, Parameter)}
            rates = [held_rates.get(id(rate), rate) for rate in rates]
        self._rates = tuple(rates)
        self._adopt_all(self._rates)
        self.__dict__["learning_rate"] = self._rates

    def _set_decays(self, decays: Sequence[float | Cell]) -> None:
        """Set the weight decays: one for each parameter of groups, otherwise one for all parameters that are
        decayed."""
        shown = [decay if isinstance(decay, Cell) else tensor(decay * self.loss_scale, np.float32) for decay in decays]
        super().__setattr__("weight_decay", tuple(shown) if self.is_group else shown[0])
        self._given_decays = tuple(decays)
        self._decays = self._given_decays if self.is_group else tuple(
            [decays[0] if self._is_decayed(p) else 0.0 for p in self.parameters])
        self.dynamic_weight_decay = any(isinstance(decay, Cell) for decay in self._decays)
        self._decaying = tuple([not self._wrapped and (isinstance(decay, Cell) or decay > 0) for decay in self._decays])
        self.exec_weight_decay = any(self._decaying)
        if self.is_group:
            self._adopt_all(self._decays)

    def _unscaled_decays(self, decay: Any) -> list[float | Cell]:
        """Weight decays from those that the attribute shows, which are multiplied by the loss scale."""
        several = self.is_group and isinstance(decay, (tuple, list))
        if several and len(decay) != len(self.parameters):
            raise ArgumentError(f"{self.cls_name}: weight_decay must be one number, or {len(self.parameters)}, one for "
                                f"each parameter of the groups, got {len(decay)}")
        plain = [value.asnumpy().item() if isinstance(value, NDArray) and value.size == 1 else value
                 for value in (decay if several else [decay])]
        decays = [value if isinstance(value, Cell) else value / self.loss_scale for value in map(self._decay, plain)]
        return decays * len(self.parameters) if self.is_group and not several else decays

    def _adopt_all(self, settings: Sequence[object]) -> None:
        """Register Cells among settings as children, and Parameters as parameters, each once."""
        known_ids = {id(member) for member in (*self._cells.values(), *self._params.values())}
        for setting in {id(setting): setting for setting in settings if id(setting) not in known_ids}.values():
            if isinstance(setting, Cell):
                self.insert_child_to_cell(f"schedule{len(self._cells)}", setting)
            elif isinstance(setting, Parameter):
                self.insert_param_to_cell(setting.name, setting)

    # --------------------------------------------------------------------------- settings of the constructor

    def _parameter_list(self, parameters: object, what: str) -> list[Any]:
        if parameters is None:
            raise ArgumentError(f"{self.cls_name}: {what} must not be None")
        if isinstance(parameters, Parameter) or not isinstance(parameters, Iterable):
            raise ArgumentError(f"{self.cls_name}: {what} must be a list, got {type(parameters).__name__}; "
                                "net.trainable_params() lists those of a Cell")
        members = list(parameters)
        if not members:
            raise ArgumentError(f"{self.cls_name}: {what} must not be empty; does the network have trainable "
                                "parameters?")
        return members

    def _rate(self, rate: Rate, name: str) -> Parameter | LearningRateSchedule:
        """A learning rate as a Parameter, or as a Cell that is called with the step."""
        if isinstance(rate, LearningRateSchedule):
            return rate
        steps: ArrayLike
        if is_number(rate):
            steps = real_number(f"{self.cls_name}: {name}", rate)
        elif isinstance(rate, (NDArray, np.ndarray)):
            steps = rate.asnumpy() if isinstance(rate, NDArray) else rate
        elif isinstance(rate, (str, dict)) or not isinstance(rate, Iterable):
            raise ArgumentError(f"{self.cls_name}: {name} must be a float, a Tensor, a list of floats or a "
                                f"LearningRateSchedule, got {type(rate).__name__}")
        else:
            steps = [real_number(f"{self.cls_name}: {name}", step) for step in rate]
        if np.ndim(steps) == 0 and isinstance(rate, np.ndarray):
            raise ArgumentError(f"{self.cls_name}: {name} must be a float, a Tensor, a list of floats or a "
                                "LearningRateSchedule, got an array without axes")
        values = tensor(np.array(steps, np.float32))
        if values.ndim > 1 or not values.size:
            raise ArgumentError(f"{self.cls_name}: {name} must be one number or several, got shape "
                                f"{show(values.shape)}")
        parameter = Parameter(values, name=name)
        return ListedRate(parameter) if values.ndim else parameter

    def _decay(self, decay: float | Cell) -> float | Cell:
        """A weight decay, checked."""
        if not isinstance(decay, Cell):
            return real_number(f"{self.cls_name}: weight_decay", decay)
        if not self._calls_decays:
            raise ArgumentError(f"{self.cls_name}: weight_decay must be a float, also in a group, got a Cell; "
                                "only Momentum takes a Cell")
        return decay

    def _rows(self, groups: list[dict[str, Any]], rate: Parameter | LearningRateSchedule, decay: float | Cell
             ) -> list[_Row]:
        """Parameter, rate, decay, and whether its gradient is centered, for each parameter."""
        rows: dict[int, _Row] = {}
        order: list[Parameter] | None = None
        listed = isinstance(rate, ListedRate) and rate.learning_rate.size
        for i, group in enumerate(groups):
            for key in group:
                if key not in _KEYS:
                    raise WrongNameError(f"{self.cls_name}: group {i} has the key {key!r}. {did_you_mean(key, _KEYS)}")
            if "order_params" in group:
                if len(group) > 1:
                    raise ArgumentError(f"{self.cls_name}: group {i}: order_params must be the only key of its "
                                        f"group, got {', '.join(group)}")
                order = self._parameter_list(group["order_params"], "order_params")
                continue
            own_rate = self._rate(group["lr"], f"learning_rate_group_{i}") if "lr" in group else rate
            if isinstance(own_rate, ListedRate):
                listed = listed or own_rate.learning_rate.size
                if own_rate.learning_rate.size != listed:
                    raise ArgumentError(f"{self.cls_name}: group {i} lists {own_rate.learning_rate.size} learning "
                                        f"rates, others list {listed}")
            own_decay = self._decay(group["weight_decay"]) if "weight_decay" in group else decay
            centered = flag(f"{self.cls_name}: grad_centralization", group.get("grad_centralization", False))
            for p in self._parameter_list(group.get("params"), f"params of group {i}"):
                if not isinstance(p, Parameter):
                    raise ArgumentError(f"{self.cls_name}: group {i}: params must be Parameters, got "
                                        f"{type(p).__name__}")
                if id(p) in rows:
                    raise ArgumentError(f"{self.cls_name}: Parameter {p.name} is in two groups")
                rows[id(p)] = _Row(p, own_rate, own_decay, centered)
        if order is None:
            return list(rows.values())
        if sorted(map(id, order)) != sorted(rows):
            raise ArgumentError(f"{self.cls_name}: order_params must be the {len(rows)} parameters of the groups in "
                                f"some order, got {len(order)}")
        return [rows[id(p)] for p in order]

    # ------------------------------------------------------------------------------- for derived classes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._planned and STATE.trace is None and self._plain:
            return self._cache().call(super().__call__, args, kwargs)  # its own __call__ would compile once more
        return super().__call__(*args, **kwargs)

    def _cache(self) -> Cache:
        if self._jitted is None:
            self.__dict__["_jitted"] = Cache(self, gradients_of=self.parameters)
        return self._jitted

    def construct(self, *hyper_params: Any) -> Any:
        """Update the parameters by their gradients; every optimizer defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, gradients)")

    def get_lr(self) -> Tensor | tuple[Tensor, ...]:
        """The learning rate of this step; with different rates of groups a tuple, one for each parameter."""
        rates = self._current_settings(self._rates)
        return tuple(rates) if self.is_group_lr else rates[0]

    def get_weight_decay(self) -> Tensor | tuple[Tensor, ...]:
        """The weight decay of this step times the loss scale; with groups a tuple, one for each parameter."""
        now = [tensor(decay * self.loss_scale, np.float32) for decay in self._current_settings(self._given_decays)]
        return tuple(now) if self.is_group else now[0]

    def _current_settings(self, settings: Sequence[Any]) -> list[Any]:
        """Settings at this step; each Cell among them is called once."""
        values: dict[int, Tensor] = {}
        for setting in settings:
            if isinstance(setting, Cell) and id(setting) not in values:
                values[id(setting)] = setting(self.global_step).reshape(())
        return [values.get(id(setting), setting) for setting in settings]

    @property
    def target(self) -> str:
        """MindSpore's setting of the device that updates: it may be set, and has no effect."""
        return self._target

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    def _set_base_target(self, value: str) -> None:
        if value not in ("CPU", "Ascend", "GPU"):
            raise ArgumentError(f"{self.cls_name}: target must be 'CPU', 'Ascend' or 'GPU', got {value!r}")
        self._target = value

    @property
    def unique(self) -> bool:
        """MindSpore's setting of indices of sparse gradients, which is here without effect."""
        return True

    @overload
    def get_lr_parameter(self, param: Parameter) -> Parameter | LearningRateSchedule: ...

    @overload
    def get_lr_parameter(self, param: list[Parameter]) -> list[Parameter | LearningRateSchedule]: ...

    def get_lr_parameter(self, param: Parameter | list[Parameter]
                         ) -> Parameter | LearningRateSchedule | list[Parameter | LearningRateSchedule]:
        """The Parameter, or the LearningRateSchedule, of the learning rate of a parameter or of several."""
        if isinstance(param, list):
            return [self.get_lr_parameter(parameter) for parameter in param]
        if not isinstance(param, Parameter):
            raise ArgumentError(f"get_lr_parameter: expected a Parameter or a list of them, got {type(param).__name__}")
        for p, rate in zip(self.parameters, self._rates):
            if p is param:
                return rate.learning_rate if isinstance(rate, HeldRate) else rate
        raise ArgumentError(f"get_lr_parameter: Parameter {param.name} is not one of {self.cls_name}")

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients plus the weight decay times the parameter."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        weights = zip(self.parameters, gradients, self._current_settings(self._decays), self._decaying)
        return tuple([g + p * (decay * self.loss_scale) if flag else g for p, g, decay, flag in weights])

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients, centered in groups that ask for it: minus the mean over all axes but the first."""
        return tuple([g - ops.mean(g, axis=tuple(range(1, len(g.shape))), keepdims=True)
                      if centered and len(g.shape) > 1 and g.shape[1] % 16 == 0 else g
                      for g, centered in zip(gradients, self._centered)])

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients divided by the loss scale."""
        return tuple([g * (1.0 / self.loss_scale) for g in gradients]) if self.need_scale else tuple(gradients)

    def flatten_gradients(self, gradients: T) -> T:
        """The gradients unchanged."""
        return gradients

    # Methods that MindSpore's optimizers, and users' optimizers modelled on them, call in ``construct``.

    #: ``map_(function, *sequences)`` calls the function on their elements, ``hyper_map`` also on nested ones.
    map_, map_reverse, hyper_map = Map(), Map(None, True), HyperMap()
    #: Whether gradients are exchanged between processes, and weights broadcast.
    use_parallel = False

    @property
    def params(self) -> ParameterTuple:
        """The parameters; see ``parameters``."""
        return self.parameters

    _parameters = params

    @property
    def param_length(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def optim_filter(self) -> tuple[bool, ...]:
        """Flags of the parameters that this process updates: all true."""
        return (True,) * len(self.parameters)

    @property
    def global_step_increase_tensor(self) -> Tensor:
        """The increment of ``global_step``."""
        return tensor(np.ones(1, np.int32))

    def assignadd(self, variable: Parameter, value: Tensor) -> Tensor:
        """Add to a parameter, such as ``global_step``; returns its new value."""
        return assign(variable, variable + value)

    def broadcast_params(self, optim_result: T) -> T:
        """Return the argument: each process updates all parameters, so nothing is broadcast."""
        return optim_result

    def _is_decayed(self, parameter: Parameter) -> bool:
        """Whether a parameter outside of groups is decayed: not scales and shifts of norms, by their names."""
        return not (self._spares and ("beta" in parameter.name or "gamma" in parameter.name))

    def _states(self, prefix: str, value: float = 0.0) -> ParameterTuple:
        """A state for each parameter, filled with a number, and named after the prefix and the parameter."""
        return ParameterTuple([Parameter(ops.zeros_like(p) + value, None, p.requires_grad)._name_after(prefix, p)
                               for p in self.parameters])

    def _states_of(self, prefix: str, make: Callable[[Parameter], np.ndarray]) -> ParameterTuple:
        """States like ``_states``, with other shapes or dtypes."""
        return ParameterTuple([Parameter(tensor(make(p)))._name_after(prefix, p, "_") for p in self.parameters])

    def _prepare_step(self, gradients: Sequence[Tensor],
                      decay: bool = True) -> Iterator[tuple[Parameter, Tensor, Tensor]]:
        """Parameters, their prepared gradients, and their learning rates; increments the step."""
        gradients = self._check_gradients(gradients)
        if decay:
            gradients = self.decay_weight(gradients)
        gradients = self.scale_grad(self.gradients_centralization(gradients))
        rates = self._current_settings(self._rates)
        assign(self.global_step, self.global_step + 1)
        return zip(self.parameters, gradients, rates)

    def _check_gradients(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if isinstance(gradients, TensorBase) or not isinstance(gradients, (tuple, list)):
            raise ArgumentError(f"{self.cls_name}: expected a tuple of gradients, got "
                                f"{'Tensor' if isinstance(gradients, TensorBase) else type(gradients).__name__}")
        if len(gradients) != len(self.parameters):
            raise ArgumentError(f"{self.cls_name}: expected {len(self.parameters)} gradients, one for each parameter, "
                                f"got {len(gradients)}")
        for p, g in zip(self.parameters, gradients):
            if not hasattr(g, "shape"):
                raise ArgumentError(f"{self.cls_name}: the gradient of {p.name} must be a Tensor, got "
                                    f"{type(g).__name__}")
            if g.shape != p.shape:
                raise ShapeError(f"{self.cls_name}: the gradient of {p.name} has shape {show(g.shape)}, expected "
                                 f"{show(p.shape)}")
        return tuple([g._cast(p._dt) for p, g in zip(self.parameters, gradients)])


def store(parameter: Parameter, value: Tensor) -> None:
    """Assign a value that may have been computed in a wider dtype."""
    assign(parameter, value._cast(parameter._dt))

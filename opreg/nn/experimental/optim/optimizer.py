"""Optimizer: a Cell with groups of Parameters, each a dict with its own settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....cells.cell import Cell
from ....cells.parameter import Parameter, ParameterTuple
from ....cells.tensor import Tensor, tensor
from ....cells.tensor_base import TensorBase, is_number
from ....errors import ArgumentError
from ...ops.multitype import HyperMap, Map

__all__ = ["Optimizer", "check_setting"]


def check_setting(owner: str, name: str, value: float, below: float = np.inf) -> float:
    """Check a setting: not negative, and below a bound."""
    if not is_number(value) or not 0 <= value < below:
        bound = "" if below == np.inf else f" and below {below:g}"
        raise ArgumentError(f"{owner}: expected {name} to be a number that is not negative{bound}, got {value!r}")
    return float(value)


class _Group(dict[str, Any]):
    """The settings of a group; a rate that is set goes to the Parameter ``lr``, which schedulers and plans read."""

    def __setitem__(self, name: str, value: Any) -> None:
        rate = self.get(name) if name == "lr" else None
        if rate is None or rate is value:
            super().__setitem__(name, value)
        else:
            rate.set_data(_rate("a group", value))


def _rate(owner: str, value: Any) -> Tensor:
    """A learning rate, a number or a tensor of one, as a float32 scalar."""
    number = value.asnumpy().item() if isinstance(value, TensorBase) else value
    return tensor(np.float32(check_setting(owner, "lr", number)))


class Optimizer(Cell):
    """Base of optimizers with groups: derive from it, and update ``self.parameters`` in ``construct``.

    Parameters
    ----------
    params : list of Parameter, or list of dict
        The parameters to train. A dict has ``params``, and settings that override the defaults.
    defaults : dict
        Settings with their defaults, including ``lr`` and ``weight_decay``.

    Attributes
    ----------
    param_groups : list of dict
        The groups; ``lr`` of each is a Parameter, which a scheduler sets, and a number set as ``lr``.
    lrs : list of Parameter
        The learning rates of the groups.
    group_start_id : list of int
        Index in ``parameters`` at which each group begins, and the number of all parameters.
    state : dict
        State of a subclass for each parameter; an empty dict by default.
    """

    map_, hyper_map = Map(), HyperMap()

    def __init__(self, params: Iterable[Parameter] | Iterable[dict[str, Any]], defaults: Mapping[str, Any]):
        super().__init__(auto_prefix=False)
        self.defaults = dict(defaults)
        self.state: defaultdict[Parameter, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self.lrs: list[Parameter] = []
        self.group_start_id = [0]
        self.parameters = ParameterTuple(())
        if isinstance(params, Parameter):
            raise ArgumentError(f"{self.cls_name}: params must be a list, got one Parameter")
        members: list[Any] = list(params)
        if not members:
            raise ArgumentError(f"{self.cls_name}: params must not be empty; does the network have trainable "
                                "parameters?")
        for group in members if isinstance(members[0], dict) else [{"params": members}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add Parameters with their own settings."""
        if "params" not in param_group:
            raise ArgumentError(f"{self.cls_name}: a group must be a dict with params, got {param_group!r}")
        at = len(self.param_groups)
        group = {**self.defaults, **param_group}
        members = group["params"]
        group["params"] = [members] if isinstance(members, Parameter) else list(members)
        known_ids = {id(p) for p in self.parameters}
        for p in group["params"]:
            if not isinstance(p, Parameter):
                raise ArgumentError(f"{self.cls_name}: params of group {at} must be Parameters, got {type(p).__name__}")
            if id(p) in known_ids:
                raise ArgumentError(f"{self.cls_name}: Parameter {p.name} occurs twice in the groups")
            known_ids.add(id(p))
        group["lr"] = Parameter(_rate(self.cls_name, group["lr"]), name=f"learning_rate_group_{at}",
                                requires_grad=False)
        group["weight_decay"] = check_setting(self.cls_name, "weight_decay", group.get("weight_decay", 0.0))
        self.param_groups.append(_Group(group))
        self.lrs.append(group["lr"])
        self.parameters = ParameterTuple((*self.parameters, *group["params"]))
        self.group_start_id.append(len(self.parameters))

    def __repr__(self) -> str:
        """The settings of each group, in the order of their names."""
        groups = []
        for at, group in enumerate(self.param_groups):
            shown = {**group, "lr": group["lr"].value()}
            settings = [f"    {name}: {shown[name]}\n" for name in sorted(shown) if name != "params"]
            groups.append(f"\nParameter Group {at}\n{''.join(settings)}")
        return f"{self.cls_name} ({''.join(groups)})"

    def _decay_weight(self, weight_decay: float, params: Sequence[Parameter], gradients: Sequence[Tensor]
                      ) -> tuple[Tensor, ...]:
        """Gradients plus the weight decay times the parameters."""
        if not weight_decay:
            return tuple(gradients)
        return tuple([g + p * weight_decay for p, g in zip(params, gradients)])

    def construct(self, *hyper_params: Any) -> Any:
        """Update the parameters by their gradients; every optimizer defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, gradients)")

"""amp: mixed precision by MindSpore's names: networks that compute in float16 or bfloat16, and loss scaling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..cells.cell import Cell, converted
from ..cells.parameter import Parameter, assign
from ..cells.tensor import Tensor, tensor
from ..cells.tree import map_tensors
from ..core.named_errors import name_errors
from ..core.settings import Checked, flag, real_number, whole_number
from ..core.spec import as_dtype
from ..errors import ArgumentError, OpError, refuse_keywords
from . import ops
from .loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
    at_least_one,
    finite,
    unscale,
)
from .optim.optimizer import Optimizer
from .precision import (
    LEVELS,
    auto_mixed_precision,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
    lower_most,
)
from .train import TrainOneStepCell, WithLossCell

__all__ = ["auto_mixed_precision", "custom_mixed_precision", "get_white_list", "get_black_list", "build_train_network",
           "all_finite", "LossScaler", "StaticLossScaler", "DynamicLossScaler", "LossScaleManager",
           "FixedLossScaleManager", "DynamicLossScaleManager"]


def all_finite(inputs: Any) -> Tensor:
    """Whether all elements of tensors are finite.

    Parameters
    ----------
    inputs : tuple or list of Tensor
        Gradients, in any nesting and of any dtypes.

    Examples
    --------
    >>> all_finite((Tensor([1.0, 2.0]), Tensor([float("inf")])))
    Tensor(shape=[], dtype=Bool, value= False)
    """
    return finite(inputs)


# ------------------------------------------------------------------------------ loss scales of functions


class LossScaler(Checked, ABC):
    """Base of loss scales: derive from it, and define ``scale``, ``unscale`` and ``adjust``."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Multiply a tensor, or a nesting of tensors, by the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Divide a tensor, or a nesting of tensors, by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Tensor) -> bool:
        """Adjust the scale, given whether gradients are finite; returns whether the scale can change."""


class StaticLossScaler(LossScaler):
    """A loss scale that never changes.

    Parameters
    ----------
    scale_value : float
        The scale, at least one.

    Examples
    --------
    >>> scaler = StaticLossScaler(1024)
    >>> scaler.scale(Tensor(2.0)), scaler.unscale((Tensor(512.0),))
    (Tensor(shape=[], dtype=Float32, value= 2048), (Tensor(shape=[], dtype=Float32, value= 0.5),))
    """

    def __init__(self, scale_value: float):
        self.scale_value = Parameter(tensor(np.float32(at_least_one(type(self).__name__, "scale_value", scale_value))),
                                     name="scale_value")

    def scale(self, inputs: Any) -> Any:
        """Multiply a tensor, or a nesting of tensors, by the scale, in their dtypes."""
        return map_tensors(lambda x: x * self.scale_value.astype(x.dtype), inputs)

    def unscale(self, inputs: Any) -> Any:
        """Divide a tensor, or a nesting of tensors, by the scale, in their dtypes."""
        return map_tensors(lambda x: unscale(x, self.scale_value), inputs)

    def adjust(self, grads_finite: Tensor) -> bool:
        """Return False: the scale never changes."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A loss scale that is reduced when gradients overflow, and increased after some steps without overflow.

    Parameters
    ----------
    scale_value : float
        The initial scale, at least one.
    scale_factor : int
        Factor of a reduction, down to a scale of one, and of an increase.
    scale_window : int
        Steps without overflow before an increase.

    Examples
    --------
    >>> scaler = DynamicLossScaler(1024, 2, 1)
    >>> scaler.adjust(all_finite((Tensor([float("nan")]),))), float(scaler.scale_value)
    (True, 512.0)
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int):
        super().__init__(scale_value)
        self.scale_window = whole_number("DynamicLossScaler: scale_window", scale_window, 1)
        self.scale_factor = whole_number("DynamicLossScaler: scale_factor", scale_factor, 1)
        self.counter = Parameter(tensor(np.int32(0)), name="counter")

    def adjust(self, grads_finite: Tensor) -> bool:
        """Adjust the scale; returns True."""
        fine, scale, unit = tensor(grads_finite), self.scale_value, tensor(np.float32(1))
        higher = scale * self.scale_factor
        due = (self.counter == self.scale_window - 1) & ops.isfinite(higher)
        lower = ops.maximum(unit, scale / self.scale_factor)
        assign(scale, ops.where(fine, ops.where(due, higher, scale), lower))
        assign(self.counter, (self.counter + 1) % self.scale_window * fine.astype("int32"))
        return True


# ---------------------------------------------------------------------------------- loss scales of networks


class LossScaleManager(Checked):
    """Base of loss scale managers: derive from it, and define all three methods."""

    def get_loss_scale(self) -> Any:
        """The scale."""

    def update_loss_scale(self, overflow: bool) -> None:
        """Adjust the scale, given whether gradients overflowed."""

    def get_update_cell(self) -> Cell | None:
        """The Cell that adjusts the scale in a training step, or None."""
        return None


class FixedLossScaleManager(LossScaleManager):
    """A loss scale that never changes.

    Parameters
    ----------
    loss_scale : float
        The scale, at least one.
    drop_overflow_update : bool
        Whether updates are skipped when gradients overflow; otherwise the optimizer's own ``loss_scale`` has to be the
        same.

    Examples
    --------
    >>> FixedLossScaleManager(1024.0).get_loss_scale()
    1024.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True):
        at_least_one("FixedLossScaleManager", "loss_scale", loss_scale)
        self._loss_scale, self._drop_overflow_update = loss_scale, drop_overflow_update

    def get_loss_scale(self) -> float:
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether updates are skipped when gradients overflow."""
        return self._drop_overflow_update

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        """The Cell for `TrainOneStepWithLossScaleCell`; None if updates are never skipped."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that is reduced when gradients overflow, and increased after some steps without overflow.

    Parameters
    ----------
    init_loss_scale : float
        The initial scale, at least one.
    scale_factor : int
        Factor of a reduction, down to a scale of one, and of an increase.
    scale_window : int
        Steps without overflow before an increase.

    Examples
    --------
    >>> manager = DynamicLossScaleManager(1024.0, 2, 1000)
    >>> manager.update_loss_scale(True)
    >>> manager.get_loss_scale()
    512.0
    """

    def __init__(self, init_loss_scale: float = 2 ** 24, scale_factor: float = 2, scale_window: int = 2000):
        at_least_one("DynamicLossScaleManager", "init_loss_scale", init_loss_scale)
        real_number("DynamicLossScaleManager: scale_factor", scale_factor, inside=True)
        self.loss_scale, self.scale_factor = init_loss_scale, scale_factor
        self.scale_window = whole_number("DynamicLossScaleManager: scale_window", scale_window, 1)
        self.increase_ratio, self.decrease_ratio = scale_factor, 1 / scale_factor
        self.cur_iter, self.last_overflow_iter = 1, 0
        self.bad_step, self.bad_step_max = 0, 1000

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        """Adjust the scale, given whether gradients overflowed.

        Raises
        ------
        RuntimeError
            When gradients overflowed in more than 1000 steps in a row.
        """
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        if self.bad_step > self.bad_step_max:
            raise OpError(f"DynamicLossScaleManager: gradients have overflowed in {self.bad_step} successive "
                          f"steps")
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """True: updates are skipped when gradients overflow."""
        return True

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        """The Cell for `TrainOneStepWithLossScaleCell`."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)


# ------------------------------------------------------------------------------------------------ training


class _WithLossIn32(WithLossCell):
    """A network and its loss, which is computed in float32."""

    def construct(self, data: Tensor, label: Tensor) -> Tensor:
        full = np.dtype(np.float32)
        return self._loss_fn(converted(self._backbone(data), full), converted(label, full))


_SETTINGS = ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager")


def build_train_network(network: Cell, optimizer: Optimizer, loss_fn: Callable[..., Tensor] | None = None,
                        level: str = "O0", boost_level: str = "O0", **settings: Any) -> TrainOneStepCell:
    """A training step of a network in mixed precision.

    Parameters
    ----------
    network : Cell
        The network; it is changed as by `auto_mixed_precision`.
    optimizer : Optimizer
        Optimizer of the trained parameters.
    loss_fn : Cell or callable, optional
        A loss of the network's output and labels; without it the network returns the loss.
    level : {"O0", "O1", "O2", "O3"}
        See `auto_mixed_precision`. At ``O2`` a `DynamicLossScaleManager` scales the loss.
    boost_level : {"O0"}
        Only this level is supported.
    cast_model_type : float16 or float32
        The dtype in which the network computes; overrides the level.
    keep_batchnorm_fp32 : bool
        Whether the Cells of `get_black_list` compute in float32; overrides the level.
    loss_scale_manager : LossScaleManager or None
        The loss scaling; overrides the level.

    Returns
    -------
    TrainOneStepCell or TrainOneStepWithLossScaleCell
        A Cell of the inputs of a step, in training mode.

    Raises
    ------
    TypeError, ValueError
        For invalid settings.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> step = build_train_network(net, nn.SGD(net.trainable_params(), 0.1), nn.MSELoss(), level="O0")
    >>> print(step(Tensor([[1.0]]), Tensor([[3.0]])))
    4.0
    """
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"build_train_network: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    if level not in LEVELS:
        raise ArgumentError(f"build_train_network: level must be one of {', '.join(LEVELS)}, got {level!r}")
    if boost_level != "O0":
        raise ArgumentError(f"build_train_network: boost_level must be 'O0', got {boost_level!r}")
    refuse_keywords("build_train_network", [name for name in settings if name not in _SETTINGS], _SETTINGS)
    manager = settings["loss_scale_manager"] if "loss_scale_manager" in settings else \
        DynamicLossScaleManager() if level == "O2" else None
    if manager is not None and not isinstance(manager, LossScaleManager):
        raise ArgumentError("build_train_network: loss_scale_manager must be a LossScaleManager, got "
                            f"{type(manager).__name__}")
    halves = _lower(network, level, settings)
    if loss_fn is not None:
        network = (_WithLossIn32 if halves else WithLossCell)(network, loss_fn)
    scale = None
    if manager is not None:
        scale, update = manager.get_loss_scale(), manager.get_update_cell()
        if update is not None:
            return TrainOneStepWithLossScaleCell(network, optimizer, update).set_train()
    return TrainOneStepCell(network, optimizer, scale).set_train()


def _lower(network: Cell, level: str, settings: dict[str, Any]) -> bool:
    """Make a network compute in float16 by a level and settings; returns whether its results are float16."""
    half = as_dtype("float16")
    dtype = as_dtype(settings.get("cast_model_type", half if level in ("O2", "O3") else np.float32))
    if dtype not in (half, np.float32):
        raise ArgumentError(f"build_train_network: cast_model_type must be float16 or float32, got {dtype}")
    keep = flag("build_train_network: keep_batchnorm_fp32", settings.get("keep_batchnorm_fp32", level == "O2"))
    if dtype == half:
        lower_most(network, get_black_list() if keep else (), half)
    elif level == "O1":
        auto_mixed_precision(network, level)
    return dtype == half


name_errors(__name__, globals(), __all__)

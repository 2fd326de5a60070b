"""Training steps with a scaled loss, which keeps gradients in the range of float16; and Cells that adjust the scale."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cells.cell import Cell
from ..cells.parameter import Parameter, assign
from ..cells.pullback import differentiate
from ..cells.tensor import Tensor, tensor
from ..cells.tree import tensors
from ..core.registry import ops as operators
from ..core.settings import real_number
from ..core.spec import is_floating, show
from ..errors import ArgumentError
from . import ops
from .ops.collectives import AllReduce
from .ops.multitype import HyperMap
from .train import TrainOneStepCell

if TYPE_CHECKING:
    from .optim.optimizer import Optimizer

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell"]


def finite(values: Any) -> Tensor:
    """Whether all elements of tensors, in any nesting, are finite: a boolean tensor without dimensions."""
    leaves = tensors(values)
    if not leaves:
        raise ArgumentError(f"all_finite: expected tensors, got {type(values).__name__}")
    together: dict[np.dtype, list[Tensor]] = {}
    for leaf in leaves:
        together.setdefault(leaf._dt, []).append(leaf)
    counts = [operators.multi_all_finite(*alike, num_arrays=len(alike)) for dtype, alike in together.items()
              if is_floating(dtype)]
    return (functools.reduce(operator.mul, counts) > 0).reshape(()) if counts else tensor(True)


def unscale(gradient: Any, scale: Tensor) -> Any:
    """A gradient divided by the scale, in the gradient's dtype."""
    return gradient * (1 / scale).astype(gradient.dtype)


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that never changes.

    Parameters
    ----------
    loss_scale_value : float
        The scale.
    """

    def __init__(self, loss_scale_value: float):
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """The initial scale."""
        return self.loss_scale_value

    def construct(self, _: Tensor, overflow: Tensor) -> Tensor:
        """``overflow``, which tells whether gradients are not finite."""
        return overflow


class DynamicLossScaleUpdateCell(Cell):
    """A loss scale that is reduced when gradients overflow, and increased after some steps without overflow.

    Parameters
    ----------
    loss_scale_value : float
        The initial scale.
    scale_factor : float
        Factor of a reduction, down to a scale of one, and of an increase.
    scale_window : int
        Steps without overflow before an increase.

    Examples
    --------
    >>> update, scale = DynamicLossScaleUpdateCell(16.0, 2, 1), Parameter(tensor(16.0), name="scale")
    >>> update(scale, tensor(True)), float(scale)
    (Tensor(shape=[], dtype=Bool, value= True), 8.0)
    >>> update(scale, tensor(False)), float(scale)
    (Tensor(shape=[], dtype=Bool, value= False), 16.0)
    """

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int):
        super().__init__()
        self.loss_scale_value = loss_scale_value
        self.scale_factor = tensor(np.float32(scale_factor))
        self.scale_window = tensor(np.int32(scale_window))
        self.cur_iter = Parameter(tensor(np.int32(1)), name="current_iterator_step")
        self.last_overflow_iter = Parameter(tensor(np.int32(0)), name="last_overflow_iterator_step")

    def get_loss_scale(self) -> float:
        """The initial scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Tensor) -> Tensor:
        """Adjust the scale; ``overflow`` tells whether gradients are not finite, and is returned."""
        overflow, step = tensor(overflow), self.cur_iter
        due = step - self.last_overflow_iter >= self.scale_window
        lower = ops.where(overflow, ops.maximum(loss_scale / self.scale_factor, tensor(np.float32(1))), loss_scale)
        higher = ops.where(due & ~overflow, lower * self.scale_factor, lower)
        assign(self.last_overflow_iter, ops.where(due | overflow, step, self.last_overflow_iter))
        assign(loss_scale, higher)
        assign(self.cur_iter, step + 1)
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A training step with a scaled loss; when gradients overflow the optimizer is not called.

    Gradients are computed from the loss times the scale, and divided by it before the optimizer gets them. A call
    returns the loss, whether gradients overflowed, and the scale, already adjusted.

    Parameters
    ----------
    network : Cell
        A Cell that returns the loss; its inputs are the inputs of the step.
    optimizer : Optimizer
        Optimizer of the trained parameters.
    scale_sense : Tensor or Cell
        The scale, of shape ``()`` or ``(1,)``, or a Cell that adjusts it, such as `DynamicLossScaleUpdateCell`. The
        Cell has ``get_loss_scale()``, and is called with the scale and whether gradients overflowed.

    Raises
    ------
    TypeError, ValueError
        When ``scale_sense`` has another type or shape.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> step = TrainOneStepWithLossScaleCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()),
    ...     ms.nn.SGD(net.trainable_params(), 0.1), DynamicLossScaleUpdateCell(1024.0, 2, 1000))
    >>> loss, overflow, scale = step(Tensor([[1.0, 2.0]]), Tensor([[3.0]]))
    >>> bool(overflow), float(scale)
    (False, 1024.0)
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Tensor | Cell):
        super().__init__(network, optimizer)
        self.hyper_map = HyperMap()
        self.loss_scaling_manager: Any = None
        self.is_distributed = self.reducer_flag
        self.allreduce = AllReduce() if self.is_distributed else None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale_sense = tensor(np.float32(self.loss_scaling_manager.get_loss_scale()))
        if not isinstance(scale_sense, Tensor):
            raise ArgumentError("TrainOneStepWithLossScaleCell: scale_sense must be a Cell or a Tensor, got "
                                f"{type(scale_sense).__name__}")
        if scale_sense.shape not in ((), (1,)):
            raise ArgumentError("TrainOneStepWithLossScaleCell: scale_sense must have the shape () or (1,), got "
                                f"{show(scale_sense.shape)}")
        self.scale_sense = Parameter(scale_sense, name="scale_sense")

    def construct(self, *inputs: Any) -> Any:
        (_, loss), _, scaled = differentiate(self._scaled, inputs, {}, (), self.weights, True)
        gradients: Any = tuple([unscale(g, self.scale_sense) for g in scaled])
        if self.reducer_flag:
            gradients = self.grad_reducer(gradients)
        overflow = self.get_overflow_status(None, gradients)
        if not self.process_loss_scale(overflow):
            self.optimizer(gradients)
        return loss, overflow, self.scale_sense

    def _scaled(self, *inputs: Any) -> tuple[Any, ...]:
        loss = self.network(*inputs)
        return loss * self.scale_sense.reshape(()).astype(loss.dtype), loss

    def set_sense_scale(self, sens: Tensor) -> None:
        """Set the scale; the shape cannot change."""
        if not isinstance(sens, Tensor):
            raise ArgumentError(f"TrainOneStepWithLossScaleCell: sens must be a Tensor, got {type(sens).__name__}")
        self.scale_sense.set_data(sens)

    # building blocks for users' training steps that derive from this class

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """A status for ``get_overflow_status``, and ``compute_input`` unchanged; there is no state to clear."""
        return tensor(np.zeros(8, np.int32)), compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether some elements of tensors are not finite, on any process."""
        fine = finite(compute_output)
        if self.allreduce is not None:
            return self.allreduce((~fine).astype("float32")) > 0
        return ~fine

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Adjust the scale; returns ``overflow``."""
        if self.loss_scaling_manager is None:
            return overflow
        moved: Tensor = self.loss_scaling_manager(self.scale_sense, overflow)
        return moved


def at_least_one(owner: str, name: str, value: object) -> float:
    """Check a scale: a number from one up."""
    return real_number(f"{owner}: {name}", value, 1.0)

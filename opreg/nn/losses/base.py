"""Base of all losses: reduction of the elements, and checks that inputs are tensors of fitting shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cells.cell import Cell
from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import TensorBase, is_number
from ...core.registry import ops
from ...core.spec import is_floating, show
from ...errors import ArgumentError, ShapeError, did_you_mean
from ..ops import losses as functions

__all__ = ["LossBase"]

_REDUCTIONS = ("mean", "sum", "none")
_FLOAT = np.dtype(np.float32)


def mean(x: Tensor, axis: int | None = None) -> Tensor:
    """The mean over an axis, or over all."""
    return ops._npi_mean(x, axis=axis)


def sum_over(x: Tensor, axis: int | None = None) -> Tensor:
    """The sum over an axis, or over all axes."""
    return ops._np_sum(x, axis=axis)


class LossBase(Cell):
    """Base of losses: ``get_loss`` reduces the elements that ``construct`` computes.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Reduction of the elements.

    Examples
    --------
    >>> class Distance(LossBase):
    ...     def construct(self, logits, labels):
    ...         return self.get_loss(abs(logits - labels))
    >>> Distance("sum")(Tensor([1.0, 2.0]), Tensor([0.0, 5.0]))
    Tensor(shape=[], dtype=Float32, value= 4)
    """

    _reductions: tuple[str, ...] = _REDUCTIONS

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        if reduction not in self._reductions:
            raise ArgumentError(f"{self.cls_name}: reduction must be one of {', '.join(self._reductions)}, got "
                                f"{reduction!r}. {did_you_mean(str(reduction), self._reductions)}")
        self.reduction = reduction

    def construct(self, *inputs: Any) -> Any:
        """The loss; every class of losses defines its own."""
        raise NotImplementedError(f"{self.cls_name}: define construct(self, logits, labels)")

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """All axes of a tensor."""
        return tuple(range(len(x.shape)))

    def get_loss(self, x: Tensor, weights: Tensor | float = 1.0) -> Tensor:
        """The elements times weights, reduced in float32; the result has the elements' dtype if that is floating."""
        dtype = x._dt if is_floating(x._dt) else _FLOAT
        x = x._cast(_FLOAT)
        if not is_number(weights) or weights != 1:
            x = x * (weights if is_number(weights) else tensor(weights)._cast(_FLOAT))
        return self._reduce(x)._cast(dtype)

    def _reduce(self, x: Tensor) -> Tensor:
        """The elements, reduced in their own dtype."""
        return functions.reduced(x, self.reduction, self.cls_name)

    def _check_tensors(self, **values: object) -> None:
        """Refuse values that are no tensors."""
        for name, value in values.items():
            if not isinstance(value, TensorBase):
                raise ArgumentError(f"{self.cls_name}: {name} must be a Tensor, got {type(value).__name__}")

    def _weight(self, name: str, value: Tensor | None) -> Tensor | None:
        """Check weights: a Tensor or None."""
        if value is not None:
            self._check_tensors(**{name: value})
        return value

    def _check_shapes(self, **values: TensorBase) -> None:
        """Refuse tensors of different shapes."""
        self._check_tensors(**values)
        (first, like), *others = values.items()
        for name, value in others:
            if value.shape != like.shape:
                raise ShapeError(f"{self.cls_name}: {first} and {name} must have one shape, got {show(like.shape)} and "
                                 f"{show(value.shape)}")

"""Cells, tensors and ways to run them, for the tests of hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.cells.cell import Cell
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor

Run = Callable[[Any], Any]
RUNS: dict[str, Run] = {"eager": lambda function: function, "compiled": jit}
X = np.array([1.0, -2.0, 3.0], np.float32)


class Weighted(Cell):
    """A Cell with two inputs, two outputs and one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")

    def construct(self, x: Any, y: Any, scale: float = 1.0) -> Any:
        return x * self.w * scale, y * y


def numbers(value: Any) -> Any:
    """Tensors in any nesting as lists."""
    if isinstance(value, (tuple, list)):
        return tuple(map(numbers, value))
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def x() -> Tensor:
    return Tensor(X)

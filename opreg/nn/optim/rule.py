"""Rule: the base of optimizers whose steps run as plans, and the arithmetic that their steps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...builtin.optimizers.update_formulas import average
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...core.registry import ops
from ...core.settings import real_number
from ...errors import ArgumentError
from .optimizer import Optimizer, store

__all__ = ["FLOAT", "Rule", "norm", "one_minus", "pair"]

FLOAT = np.dtype(np.float32)


def one_minus(decay: float) -> float:
    """``1 - decay`` in float32, the value with which the bias correction is computed, too."""
    return float(np.float32(1.0) - np.float32(decay))


class Rule(Optimizer):
    """Base of optimizers whose steps run as plans."""

    _planned = True

    def _averages(self, beta1: float, beta2: float, eps: float) -> None:
        """Set the decay factors of two averages, and the term that keeps a denominator from zero."""
        self.beta1 = real_number(f"{self.cls_name}: beta1", beta1, 0.0, 1.0, inside=True)
        self.beta2 = real_number(f"{self.cls_name}: beta2", beta2, 0.0, 1.0, inside=True)
        self.eps = real_number(f"{self.cls_name}: eps", eps, inside=True)

    def _mean(self, state: Parameter, value: Tensor, decay: float) -> Tensor:
        """A moving average updated by a value; it is stored as the state."""
        now = average(state, value, decay, one_minus(decay))
        store(state, now)
        return now

    @property
    def _done(self) -> tuple[bool, ...]:
        return (True,) * len(self.parameters)


def norm(x: Tensor) -> Tensor:
    """The Euclidean norm, in float32."""
    return ops.sqrt(ops._np_sum(ops.square(x._cast(FLOAT))))


def pair(owner: str, name: str, value: object) -> Sequence[Any]:
    """Check a setting: a tuple of two floats."""
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(f"{owner}: {name} must be a tuple of two floats, got {type(value).__name__}")
    if len(value) != 2:
        raise ArgumentError(f"{owner}: {name} must have two floats, got {len(value)}")
    return value

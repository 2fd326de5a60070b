"""Rows: a line of facts for each use of an operator, which the generic tests run in every way to use it.

Each module of this package holds a list ``ROWS`` for one family in ``opreg/builtin``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opreg.core.registry import get

__all__ = ["Row", "all_rows", "choose", "chosen", "normal", "uniform", "integers", "spread"]

_CHOSEN: set[str] = set()


@dataclass(frozen=True, eq=False)  # arrays of rows cannot be compared
class Row:
    """One use of one operator.

    ``inputs`` are arrays in call order (auxiliary states last), float64 where gradients are checked. ``expected``
    computes the visible outputs with NumPy from them, or is None when only the oracle knows. ``grad`` lists the
    inputs whose gradient is compared with central differences; ``second`` says whether the gradient's gradient is
    too. ``dtypes`` are the floating types the row is run in, inputs cast accordingly (integer inputs stay).
    ``deterministic`` is False for random operators, ``train`` the mode, ``tolerance`` for float64.
    """

    op: str
    inputs: Sequence[Any] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    expected: Callable[..., Any] | None = None
    grad: Sequence[int] = ()
    second: bool = False
    dtypes: Sequence[str] = ("float64", "float32")
    deterministic: bool = True
    train: bool = True
    tolerance: float = 1e-6
    name: str = ""

    def __str__(self) -> str:
        return f"{self.op}-{self.name or ','.join(f'{k}={v}' for k, v in self.attrs.items())}".replace(" ", "")


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal float64 numbers, the same every time."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape) * scale


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray:
    """Uniform float64 numbers, the same every time."""
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape)


def integers(low: int, high: int, *shape: int, seed: int = 0, dtype: str = "int32") -> np.ndarray:
    """Uniform integers, the same every time."""
    return np.random.default_rng((seed, *shape)).integers(low, high, shape).astype(dtype)


def choose(name: str) -> None:
    """Restricts the rows to those of one operator, under any of its names, and of its gradient."""
    name = get(name).name
    _CHOSEN.update((name, f"_backward_{name}"))


def chosen(name: str) -> bool:
    """Whether rows of an operator are selected."""
    return not _CHOSEN or get(name).name in _CHOSEN


def all_rows() -> list[Row]:
    """Rows of all families, or of the selected operator."""
    rows: list[Row] = []
    for module in pkgutil.iter_modules(__path__):
        rows += importlib.import_module(f"{__name__}.{module.name}").ROWS
    return [row for row in rows if chosen(row.op)]


def spread(rows: Sequence[Row], most: int = 4) -> frozenset[Row]:
    """At most ``most`` rows of each operator, spread evenly over its rows; all rows of a selected operator."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.op, []).append(row)
    if _CHOSEN:
        return frozenset(rows)
    return frozenset(group[i] for group in groups.values()
                     for i in np.linspace(0, len(group) - 1, min(most, len(group))).round().astype(int))

"""Networks in which some Cells compute in half precision, and the others in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cells.cell import Cell, converted
from ..cells.typing import TensorDType
from ..core.spec import as_dtype
from ..errors import ArgumentError, is_ours
from . import layers
from . import ops as functions
from .ops.primitive import Primitive

__all__ = ["auto_mixed_precision", "custom_mixed_precision", "get_white_list", "get_black_list", "LEVELS"]

#: How much of a network computes in half precision.
LEVELS = ("O0", "O1", "O2", "O3")

_WHITE: tuple[type, ...] = (
    layers.Conv1d, layers.Conv2d, layers.Conv3d, layers.Conv1dTranspose, layers.Conv2dTranspose,
    layers.Conv3dTranspose, layers.Dense, layers.LSTMCell, layers.RNNCell, layers.GRUCell, functions.Conv2D,
    functions.Conv3D, functions.Conv2DTranspose, functions.Conv2DBackpropInput, functions.MatMul,
    functions.BatchMatMul, functions.PReLU, functions.ReLU, functions.Ger)
_BLACK: tuple[type[Cell], ...] = (layers.BatchNorm1d, layers.BatchNorm2d, layers.BatchNorm3d, layers.LayerNorm)
#: Cells that compute what a primitive does.
_CELLS_OF: dict[type, type[Cell]] = {functions.ReLU: layers.ReLU, functions.PReLU: layers.PReLU}
_FULL = np.dtype(np.float32)


def get_white_list() -> list[type]:
    """Classes of Cells and primitives that compute in half precision at the level ``O1``."""
    return list(_WHITE)


def get_black_list() -> list[type[Cell]]:
    """Classes of Cells that compute in float32 at the level ``O2``."""
    return list(_BLACK)


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: TensorDType = "float16") -> Cell:
    """Let a network compute in half precision, as far as a level says; its parameters and results are of float32.

    Parameters
    ----------
    network : Cell
        Is changed.
    amp_level : {"O0", "O1", "O2", "O3"}
        Nothing; what the list of `get_white_list` has; all but the Cells of `get_black_list`; all.
    dtype : float16 or bfloat16
        Which halves.

    Returns
    -------
    Cell
        The network.

    Raises
    ------
    TypeError, ValueError
        When ``network`` is no Cell, or the level or dtype is none of these.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.amp.auto_mixed_precision(ms.nn.Dense(2, 1), "O3")
    >>> net(ms.Tensor([[1.0, 2.0]])).dtype
    mindspore.float32
    """
    half = _checked(network, dtype)
    if amp_level not in LEVELS:
        raise ArgumentError(f"auto_mixed_precision: amp_level must be one of {', '.join(LEVELS)}, got {amp_level!r}")
    if amp_level == "O1":
        return _lower_some(network, _WHITE, half)
    return network if amp_level == "O0" else lower_most(network, _BLACK if amp_level == "O2" else (), half, _FULL)


def custom_mixed_precision(network: Cell, *, white_list: list[type] | None = None,
                           black_list: list[type[Cell]] | None = None, dtype: TensorDType = "float16") -> Cell:
    """Let a network compute in half precision where a list says so; its parameters and results are of float32.

    Parameters
    ----------
    network : Cell
        Is changed.
    white_list : list of type
        Classes of Cells and primitives that compute in half precision.
    black_list : list of type
        Instead: classes of Cells that do not.
    dtype : float16 or bfloat16
        Which halves.

    Returns
    -------
    Cell
        The network.

    Raises
    ------
    TypeError, ValueError
        When both lists are given, or none; when one has something else.
    """
    half = _checked(network, dtype)
    if (white_list is None) == (black_list is None):
        raise ValueError("custom_mixed_precision: expected either white_list or black_list")
    name, listed = ("white_list", white_list) if black_list is None else ("black_list", black_list)
    kinds = (Cell, Primitive) if black_list is None else (Cell,)
    if not isinstance(listed, list):
        raise TypeError(f"custom_mixed_precision: {name} must be a list, got {type(listed).__name__}")
    for each in listed:
        if not isinstance(each, type) or not issubclass(each, kinds):  # type: ignore[redundant-expr]
            raise TypeError(f"custom_mixed_precision: {name} must have classes of "
                            f"{' and '.join(f'{kind.__name__}s' for kind in kinds)}, got {each!r}")
    return _lower_some(network, listed, half) if black_list is None else lower_most(network, black_list, half, _FULL)


def _checked(network: object, dtype: TensorDType) -> np.dtype:
    """The halves, where the network is one."""
    if not isinstance(network, Cell):
        raise TypeError(f"mixed precision: network must be a Cell, got {type(network).__name__}")
    half = as_dtype(dtype)
    if half.name not in ("float16", "bfloat16"):
        raise ValueError(f"mixed precision: dtype must be float16 or bfloat16, got {half.name}")
    return half


def lower_most(network: Cell, black: Sequence[type[Cell]], half: np.dtype, returned: np.dtype | None = None) -> Cell:
    """Let all Cells of a network compute in halves but those of some classes, and have it return another dtype."""
    network.to_float(half)
    for _, cell in network.cells_and_names():
        if cell is not network and isinstance(cell, tuple(black)):
            cell.to_float(_FULL)._give_float(half)
    if returned is not None:
        network._give_float(returned)
    return network


def _lower_some(network: Cell, white: Sequence[type], half: np.dtype) -> Cell:
    """Let Cells and primitives of some classes compute in halves and return float32, but for Cells whose dtype the
    user has chosen."""
    kinds = {*white, *[cell for primitive, cell in _CELLS_OF.items() if primitive in white]}
    passed: set[int] = set()
    for _, cell in network.cells_and_names():
        if id(cell) in passed:
            continue
        lowered = type(cell) in kinds
        if lowered or cell._cast is not None:
            passed.update([id(inner) for _, inner in cell.cells_and_names()])
            if cell._cast is None:
                cell.to_float(half)._give_float(_FULL)
        elif not is_ours(type(cell).construct):
            for name, value in list(vars(cell).items()):
                if isinstance(value, Primitive) and type(value) in kinds:
                    setattr(cell, name, _Lowered(value, half))
    return network


class _Lowered(Primitive):
    """A primitive that computes in halves and returns float32."""

    def __init__(self, primitive: Primitive, half: np.dtype):
        super().__init__(primitive.name)
        self.attrs, self.primitive, self._half = primitive.attrs, primitive, half

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        return converted(self.primitive(*converted(inputs, self._half), **keywords), _FULL)

"""Mixed precision: networks in which some Cells compute in half precision, and the others in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cells.cell import Cell, converted
from ..cells.typing import TensorDType
from ..core.named_errors import name_errors
from ..core.spec import as_dtype
from ..errors import ArgumentError, is_ours
from . import layers
from . import ops as functions
from .ops.primitive import Primitive

__all__ = ["auto_mixed_precision", "custom_mixed_precision", "get_white_list", "get_black_list", "LEVELS"]

#: Levels of mixed precision.
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
    """Make a network compute in half precision up to a level; its parameters and results stay float32.

    Parameters
    ----------
    network : Cell
        The network, which is changed.
    amp_level : {"O0", "O1", "O2", "O3"}
        Parts in half precision: none; the classes of `get_white_list`; all except the Cells of `get_black_list`; all.
    dtype : float16 or bfloat16
        The half-precision dtype.

    Returns
    -------
    Cell
        The network.

    Raises
    ------
    TypeError, ValueError
        When ``network`` is no Cell, or the level or dtype is invalid.

    Examples
    --------
    >>> import opreg as ms
    >>> net = ms.amp.auto_mixed_precision(ms.nn.Dense(2, 1), "O3")
    >>> net(ms.Tensor([[1.0, 2.0]])).dtype
    mindspore.float32
    """
    half = _check_dtype(network, dtype)
    if amp_level not in LEVELS:
        raise ArgumentError(f"auto_mixed_precision: amp_level must be one of {', '.join(LEVELS)}, got {amp_level!r}")
    if amp_level == "O1":
        return _lower_some(network, _WHITE, half)
    return network if amp_level == "O0" else lower_most(network, _BLACK if amp_level == "O2" else (), half, _FULL)


def custom_mixed_precision(network: Cell, *, white_list: list[type] | None = None,
                           black_list: list[type[Cell]] | None = None, dtype: TensorDType = "float16") -> Cell:
    """Make parts of a network compute in half precision by a list; its parameters and results stay float32.

    Parameters
    ----------
    network : Cell
        The network, which is changed.
    white_list : list of type
        Classes of Cells and primitives that compute in half precision.
    black_list : list of type
        Classes of Cells that stay in float32, instead of ``white_list``.
    dtype : float16 or bfloat16
        The half-precision dtype.

    Returns
    -------
    Cell
        The network.

    Raises
    ------
    TypeError, ValueError
        When both lists are given, or none; when an element is invalid.
    """
    half = _check_dtype(network, dtype)
    if (white_list is None) == (black_list is None):
        raise ArgumentError("custom_mixed_precision: expected either white_list or black_list")
    name, listed = ("white_list", white_list) if black_list is None else ("black_list", black_list)
    kinds = (Cell, Primitive) if black_list is None else (Cell,)
    if not isinstance(listed, list):
        raise ArgumentError(f"custom_mixed_precision: {name} must be a list, got {type(listed).__name__}")
    for block in listed:
        if not isinstance(block, type) or not issubclass(block, kinds):  # type: ignore[redundant-expr]
            raise ArgumentError(f"custom_mixed_precision: {name} must have classes of "
                                f"{' and '.join(f'{kind.__name__}s' for kind in kinds)}, got {block!r}")
    return _lower_some(network, listed, half) if black_list is None else lower_most(network, black_list, half, _FULL)


def _check_dtype(network: object, dtype: TensorDType) -> np.dtype:
    """The half-precision dtype, after a check that the network is a Cell."""
    if not isinstance(network, Cell):
        raise ArgumentError(f"mixed precision: network must be a Cell, got {type(network).__name__}")
    half = as_dtype(dtype)
    if half.name not in ("float16", "bfloat16"):
        raise ArgumentError(f"mixed precision: dtype must be float16 or bfloat16, got {half.name}")
    return half


def lower_most(network: Cell, black: Sequence[type[Cell]], half: np.dtype, returned: np.dtype | None = None) -> Cell:
    """Make all Cells of a network compute in half precision except some classes, and cast its results to another
    dtype."""
    network.to_float(half)
    for _, cell in network.cells_and_names():
        if cell is not network and isinstance(cell, tuple(black)):
            cell.to_float(_FULL)._give_float(half)
    if returned is not None:
        network._give_float(returned)
    return network


def _lower_some(network: Cell, white: Sequence[type], half: np.dtype) -> Cell:
    """Make Cells and primitives of some classes compute in half precision and return float32, except Cells with a dtype
    set by the user."""
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
                    setattr(cell, name, _HalfPrimitive(value, half))
    return network


class _HalfPrimitive(Primitive):
    """A primitive that computes in half precision and returns float32."""

    def __init__(self, primitive: Primitive, half: np.dtype):
        super().__init__(primitive.name)
        self.attrs, self.primitive, self._half = primitive.attrs, primitive, half

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        return converted(self.primitive(*converted(inputs, self._half), **keywords), _FULL)


name_errors(__name__, globals(), __all__)

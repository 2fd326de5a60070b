"""Checks of layers' settings: an invalid number, tuple or word is refused when the layer is made, and named."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...cells import initializer as initializers
from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import InitializerLike
from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import Sizes, TensorDType
from ...core import settings
from ...core.spec import Shape, show
from ...errors import ArgumentError, DTypeError, did_you_mean

__all__ = ["no_tensor", "of_one_dtype", "channels_apart", "check_int", "check_ints", "flag", "chance", "check_word",
           "new_parameter", "fan_parameter", "bound_of"]


def check_int(cell: Cell, name: str, value: object, least: int = 1) -> int:
    """Check an integer of at least ``least``."""
    return settings.whole_number(f"{type(cell).__name__}: {name}", value, least)


def check_ints(cell: Cell, name: str, value: Sizes, count: int, least: int = 1) -> tuple[int, ...]:
    """Check ``count`` integers: a tuple, or one value for all."""
    if isinstance(value, (tuple, list)) and len(value) == 1:
        value = value[0]
    if isinstance(value, (tuple, list)):
        if len(value) != count:
            raise ArgumentError(f"{type(cell).__name__}: {name}={value!r}: expected an int or {count} of them")
        return tuple(check_int(cell, name, number, least) for number in value)
    return (check_int(cell, name, value, least),) * count


def flag(cell: Cell, name: str, value: object) -> bool:
    """Check a boolean."""
    return settings.flag(f"{type(cell).__name__}: {name}", value)


def chance(cell: Cell, name: str, value: object, low: bool = True, high: bool = True) -> float:
    """Check a number from zero to one; ``low`` and ``high`` tell whether the ends are included."""
    if (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1
            or (value == 0 and not low) or (value == 1 and not high)):
        interval = f"{'[' if low else '('}0, 1{']' if high else ')'}"
        raise ArgumentError(f"{type(cell).__name__}: {name}={value!r}: expected a number in {interval}")
    return float(value)


def check_word(cell: Cell, name: str, value: object, words: Iterable[str]) -> str:
    """Check one of some words, in lower or upper case."""
    words = tuple(words)
    if not isinstance(value, str) or value.lower() not in words:
        raise ArgumentError(f"{type(cell).__name__}: {name} must be one of {', '.join(words)}, got {value!r}. "
                            f"{did_you_mean(str(value), words)}")
    return value.lower()


# ------------------------------------------------------------------------------------------- parameters


def new_parameter(init: InitializerLike, shape: Shape, name: str, dtype: TensorDType = float32,
                  requires_grad: bool = True) -> Parameter:
    """A Parameter with initial values; see ``initializer``."""
    return Parameter(initializers.initializer(init, shape, dtype), name=name, requires_grad=requires_grad)


def fan_parameter(init: InitializerLike | None, shape: Shape, name: str, dtype: TensorDType = float32) -> Parameter:
    """A Parameter with initial values, by default uniform within ``1 / sqrt(inputs)``; see ``initializer``."""
    return new_parameter(initializers.HeUniform(math.sqrt(5)) if init is None else init, shape, name, dtype)


def bound_of(init: InitializerLike | None, shape: Shape) -> InitializerLike:
    """The initializer of the bias of a weight of this shape: by default uniform within ``1 / sqrt(inputs)``."""
    inputs = math.prod(shape[1:])
    return init if init is not None else initializers.Uniform(1 / math.sqrt(inputs)) if inputs else "zeros"


def of_one_dtype(cell: Cell, x: Tensor, weight: Tensor) -> None:
    """Refuse data whose dtype differs from that of the weights, which a function would promote.

    Raises
    ------
    DTypeError
        If the dtypes differ; the Cell that calls this gives the final text.
    """
    if no_tensor(x) or x._dt != weight._dt:
        raise DTypeError(f"{type(cell).__name__}: expected data of {weight._dt}")


def no_tensor(x: object) -> str | None:
    """The error text for an input that is no tensor."""
    return None if isinstance(x, TensorBase) else f"x must be a Tensor, got {type(x).__name__}; Tensor(x) makes one"


def channels_apart(cell: Cell, x: TensorBase, axis: int, length: int, what: str, ranks: tuple[int, ...] = ()
                   ) -> str | None:
    """The error text for an input with a wrong number of axes, or whose axis of ``what`` does not have ``length``
    elements; None if the input fits."""
    problem = no_tensor(x)
    if problem is not None:
        return problem
    kind, shape = type(cell).__name__, x.shape
    if (ranks and len(shape) not in ranks) or not shape:
        count = f"{' or '.join(map(str, ranks))} axes" if ranks else "at least one axis"
        return f"expected {count}, {length} {what} in axis {axis}, got the shape {show(shape)}"
    if shape[axis] != length:
        return f"x has {shape[axis]} {what} in axis {axis} (shape {show(shape)}), {kind} takes {length}"
    return None

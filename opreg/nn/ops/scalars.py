"""Operations on numbers, booleans, texts and sequences by MindSpore's names, computed by Python's operators.

If an operand is a tensor, the tensor's operator is used.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...cells import dtype as dtypes
from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import is_number
from ...cells.typing import Number, TensorDType
from ...errors import ArgumentError
from . import math
from .primitive import primitive

__all__ = ["Partial", "depend", "make_list", "make_range", "make_tuple", "scalar_cast", "tail", "tuple_to_array"]

_T = TypeVar("_T")

#: Python's operators, by number of operands.
_PYTHON: dict[int, dict[str, Callable]] = {1: {
    "scalar_uadd": operator.pos, "scalar_usub": operator.neg, "bool_not": operator.not_, "tuple_len": len,
    "list_len": len,
}, 2: {
    "scalar_add": operator.add, "scalar_sub": operator.sub, "scalar_mul": operator.mul,
    "scalar_max": max, "scalar_min": min,
    "scalar_div": operator.truediv, "scalar_floordiv": operator.floordiv, "scalar_mod": operator.mod,
    "scalar_pow": operator.pow, "scalar_eq": operator.eq, "scalar_ne": operator.ne, "scalar_lt": operator.lt,
    "scalar_le": operator.le, "scalar_gt": operator.gt, "scalar_ge": operator.ge, "bool_eq": operator.eq,
    "string_eq": operator.eq, "string_concat": operator.add, "is_": operator.is_, "is_not": operator.is_not,
    "tuple_getitem": operator.getitem, "list_getitem": operator.getitem, "dict_getitem": operator.getitem}}

_TENSORS: dict[str, Callable[..., Tensor]] = {
    "tensor_add": math.add, "tensor_sub": math.sub, "tensor_mul": math.mul, "tensor_div": math.real_div,
    "tensor_floordiv": math.floor_div, "tensor_mod": math.floor_mod, "tensor_pow": math.pow, "tensor_exp": math.exp,
    "tensor_lt": math.less, "tensor_le": math.less_equal, "tensor_gt": math.greater, "tensor_ge": math.greater_equal,
    "absolute": math.abs, "floordiv": math.floor_div, "floormod": math.floor_mod,
    "inv": math.reciprocal, "pows": math.pow}


def _rename(name: str, function: Callable, taken: int) -> Callable:
    """The function under another name."""
    def of_one(x: Any) -> Any:
        return function(x)

    def of_two(x: Any, y: Any) -> Any:
        return function(x, y)

    named = of_one if taken == 1 else of_two
    named.__name__ = named.__qualname__ = name
    named.__doc__ = f"What Python's ``{function.__name__}`` gives."
    return named


#: Functions of Python values by name.
OF_PYTHON = {name: _rename(name, function, taken) for taken, rows in _PYTHON.items()
             for name, function in rows.items()}
globals().update({**OF_PYTHON, **_TENSORS})
__all__ += [*OF_PYTHON, *_TENSORS]  # noqa: PLE0604  the names are text


def _partial(function: Callable[..., _T], *values: Any) -> Callable[..., _T]:
    return functools.partial(function, *values)


Partial = primitive("Partial", _partial, doc="A function with its first arguments given.")


def depend(value: _T, expr: object) -> _T:
    """The first of two values; both were computed already, in program order."""
    return value


def make_tuple(*values: _T) -> tuple[_T, ...]:
    """A tuple of the values.

    Examples
    --------
    >>> make_tuple(1, 2)
    (1, 2)
    """
    return values


def make_list(*values: _T) -> list[_T]:
    """A list of the values."""
    return list(values)


def make_range(*bounds: int) -> tuple[int, ...]:
    """The values of Python's ``range`` as a tuple.

    Examples
    --------
    >>> make_range(0, 3)
    (0, 1, 2)
    """
    return tuple(range(*bounds))


def tail(values: tuple[_T, ...]) -> tuple[_T, ...]:
    """All but the first of a tuple.

    Examples
    --------
    >>> tail((1, 2, 3))
    (2, 3)
    """
    return tuple(values)[1:]


def scalar_cast(input_x: Number, input_y: TensorDType) -> int | float:
    """A number as a Python integer, float or boolean.

    Parameters
    ----------
    input_x : number
        The number to cast.
    input_y : dtype
        The dtype: int64, float64 or bool_.

    Raises
    ------
    TypeError
        When ``input_x`` is no number.
    ValueError
        For other dtypes.

    Examples
    --------
    >>> scalar_cast(8.5, dtypes.int64)
    8
    """
    if not is_number(input_x):
        raise ArgumentError(f"For 'ScalarCast', the type of 'x' should be a number, but got {type(input_x).__name__}")
    for dtype, kind in ((dtypes.int64, int), (dtypes.float64, float), (dtypes.bool_, bool)):
        if input_y == dtype:
            return kind(input_x)
    raise ArgumentError(f"For 'ScalarCast', the supported type is in the list: [mindspore.int64, mindspore.float64, "
                        f"mindspore.bool_], but got {input_y!r}")


def tuple_to_array(input_x: Sequence[Number]) -> Tensor:
    """A tensor of the elements of a tuple: int32 if the first is an integer, else float32.

    Examples
    --------
    >>> tuple_to_array((1, 2, 3))
    Tensor(shape=[3], dtype=Int32, value= [1, 2, 3])
    """
    values = tuple(input_x)
    return tensor(np.array(values, np.int32 if values and isinstance(values[0], int) else np.float32))

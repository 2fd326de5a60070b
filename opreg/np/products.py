"""Products of vectors, matrices and tensors by NumPy's names."""

from __future__ import annotations

import numbers
from typing import Any

from opreg.core.registry import ops
from opreg.ndarray.ndarray import NDArray

from .functions import (
    FUNCTIONS,
    any_symbol,
    is_number,
    register,
    store,
)
from .shapes import reshape
from .values import as_value, common_dtype


@register
def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Products of matrices; the axes before the last two broadcast."""
    return store(ops._npi_matmul(*as_value(a)._pair(as_value(b))), out)


@register
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product over the last axis of ``a`` and the last but one of ``b``."""
    if is_number(a) or is_number(b):
        return FUNCTIONS["multiply"](a, b, out=out)
    return store(ops._np_dot(*as_value(a)._pair(as_value(b))), out)


@register
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sums of products over axes of both."""
    left, right = as_value(a)._pair(as_value(b))
    if isinstance(axes, numbers.Integral):
        return ops._npi_tensordot_int_axes(left, right, axes=int(axes))
    first, second = [(int(each),) if isinstance(each, numbers.Integral) else tuple(map(int, each)) for each in axes]
    return ops._npi_tensordot(left, right, a_axes_summed=first, b_axes_summed=second)


@register
def inner(a: Any, b: Any) -> Any:
    """Inner products over the last axes."""
    left, right = as_value(a), as_value(b)
    if isinstance(left, NDArray) and isinstance(right, NDArray) and 0 in (left.ndim, right.ndim):
        return left * right
    return tensordot(left, right, (-1, -1))


@register
def outer(a: Any, b: Any) -> Any:
    """The outer product."""
    return tensordot(reshape(a, -1), reshape(b, -1), 0)


@register
def vdot(a: Any, b: Any) -> Any:
    """The inner product of all elements."""
    return tensordot(reshape(a, -1), reshape(b, -1), 1)


@register
def einsum(subscripts: str, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    """Sums of products over axes with the same letter, with axes in the order after ``->``; an ellipsis stands for all
    axes without a letter."""
    values = [as_value(operand) for operand in operands]
    dtypes = {value._data.dtype for value in values if isinstance(value, NDArray)}
    if len(dtypes) > 1 and not any_symbol(values):
        values = [value._cast(common_dtype(*dtypes)) for value in values]
    return store(ops._npi_einsum(*values, subscripts=subscripts, optimize=int(bool(optimize)),
                                 num_args=len(values)), out)

"""Selection between two values by a condition, over an array module."""

from __future__ import annotations

import numpy as np

from ..typing import Array, ArrayModule
from .host_memory import empty
from .threads import chunks

__all__ = ["select"]

# From this number of elements on, bits are selected by arithmetic: NumPy's ``where`` branches at each element, which
# takes five times as long if the processor cannot foresee the condition.
_MANY = 1 << 12
# The number of elements that are selected at a time.
_BLOCK = 1 << 15
# The dtypes whose bits are as many as those of an integer that processors compute with fast.
_KINDS = "fdilqILQ"


def select(xp: ArrayModule, condition: Array, left: Array | float, right: Array | float, out: Array | None = None
           ) -> Array:
    """``left`` where the condition is not zero, ``right`` elsewhere, in a new array or in ``out``, which may be one of
    the arrays. Arrays broadcast, and have one dtype.

    Examples
    --------
    >>> select(np, np.array([True, False]), np.float32([1, 2]), 0.5)
    array([1. , 0.5], dtype=float32)
    """
    dtype = None
    if xp is np and condition.size >= _MANY:
        dtype = np.result_type(left, right) if out is None else out.dtype
    if dtype is None or dtype.char not in _KINDS:
        chosen: Array = xp.where(condition, left, right)
        if out is None:
            return chosen
        out[...] = chosen
        return out
    if condition.dtype.kind != "b":
        condition = condition != 0
    whole = np.dtype(f"i{dtype.itemsize}")
    first, second = np.asarray(left, dtype), np.asarray(right, dtype)
    if condition.size > _BLOCK and all(array.flags.c_contiguous and array.shape in (condition.shape, ())
                                       for array in (first, second, condition, *([] if out is None else [out]))):
        result = empty(condition.shape, dtype) if out is None else out
        flat = [array if array.ndim == 0 else array.reshape(-1) for array in (condition, first, second, result)]
        for part in chunks(condition.size, _BLOCK):
            truth, yes, no, target = [array if array.ndim == 0 else array[part] for array in flat]
            _select_bits(whole, truth, yes, no, target)
        return result
    return _select_bits(whole, condition, first, second, out)


def _select_bits(whole: np.dtype, condition: Array, left: Array, right: Array, out: Array | None) -> Array:
    first, second = left.view(whole), right.view(whole)
    mask = np.negative(condition.view(np.int8)).astype(whole)  # all bits, or none
    bits = np.bitwise_xor(first, second)
    bits = np.bitwise_and(bits, mask, mask if bits.shape in (mask.shape, ()) else None)
    if out is None:
        return np.bitwise_xor(bits, second, bits).view(left.dtype)
    np.bitwise_xor(bits, second, out.view(whole))
    return out

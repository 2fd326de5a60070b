"""Loops over numbers that stand side by side, in code that computes as many at once as a register holds.

The compiler vectorises a loop only if it can tell, or test at little cost, that no array reaches into another. Here
that is known: what is written for a number is read for no other.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .vector import KINDS, Kind, Number

__all__ = ["lanes", "row"]


@functools.cache
def _bytes() -> int:
    """Bytes of a register of this processor."""
    features = importlib.import_module("llvmlite.binding").get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def lanes(dtype: np.dtype) -> int:
    """How many numbers a register holds."""
    return _bytes() // dtype.itemsize


def row(function: Callable[..., Sequence[Number]], dtype: np.dtype) -> Any:
    """What a text calls to compute a function of numbers for some that stand side by side.

    ``row(a, a0, b, b0, ..., n)``: from the arrays and places of what the function takes, then of what it returns,
    ``n`` numbers each. An array may be read and written at the same place.
    """
    types, extending, cgutils = (importlib.import_module(f"numba.{name}") for name in
                                 ("types", "extending", "core.cgutils"))
    kind, count = KINDS[dtype], len(inspect.signature(function).parameters)

    def compute(builder: Any, kind: Kind, places: Sequence[Any], i: Any) -> None:
        here = [builder.bitcast(builder.gep(place, [i]), kind.type.as_pointer()) for place in places]
        values = [builder.load(place, align=dtype.itemsize) for place in here[:count]]
        found = function(*[Number(builder, value, kind) for value in values])
        for number, place in zip(found, here[count:], strict=True):
            builder.store(number.ir, place, align=dtype.itemsize)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        *given, n = cgutils.unpack_tuple(builder, values[0])
        places = [builder.gep(array, [place]) for array, place in zip(given[::2], given[1::2])]
        zero, one, many = (n.type(each) for each in (0, 1, lanes(dtype)))
        whole = builder.mul(builder.sdiv(n, many), many)
        for each, start, stop, step in ((kind.many(lanes(dtype)), zero, whole, many), (kind, whole, n, one)):
            with cgutils.for_range_slice(builder, start, stop, step) as (i, _):
                compute(builder, each, places, i)
        return context.get_dummy_value()

    def over(typing: Any, *args: Any) -> Any:
        return types.void(types.StarArgTuple(args)), emit

    return extending.intrinsic(over)

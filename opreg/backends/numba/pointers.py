"""How compiled functions read and write arrays of which none overlaps another.

The compiler is told so: without, it would compare all addresses with each other before each loop, which for many arrays
of a few numbers takes longer than the loop, and beyond some number of them give up.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["access"]


def _apart(builder: Any, instruction: Any, number: int, count: int) -> None:
    """Say that an instruction touches array ``number`` of ``count`` alone."""
    ir, module = importlib.import_module("llvmlite.ir"), builder.module

    def node(*parts: Any) -> Any:
        return module.add_metadata([ir.MetaDataString(module, each) if isinstance(each, str) else each
                                    for each in parts])

    domain = node("arrays")
    scopes = [node(f"array {i}", domain) for i in range(count)]
    instruction.set_metadata("alias.scope", node(scopes[number]))
    if count > 1:
        instruction.set_metadata("noalias", node(*scopes[:number], *scopes[number + 1:]))


@functools.cache
def access(dtype: np.dtype) -> dict[str, Callable]:
    """What a text calls: ``taken(array, index, number, count)`` and ``put(array, index, value, number, count)``.

    ``number`` and ``count`` are literals: which array it is, of how many.
    """
    types, extending = (importlib.import_module(f"numba.{name}") for name in ("types", "extending"))
    value = types.float32 if dtype.itemsize == 4 else types.float64
    pointer = types.CPointer(value)

    def taken(typing: Any, array: Any, index: Any, number: Any, count: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = builder.load(builder.gep(values[0], [values[1]]), align=dtype.itemsize)
            _apart(builder, found, number.literal_value, count.literal_value)
            return found

        return value(pointer, types.int64, number, count), emit

    def put(typing: Any, array: Any, index: Any, item: Any, number: Any, count: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            done = builder.store(values[2], builder.gep(values[0], [values[1]]), align=dtype.itemsize)
            _apart(builder, done, number.literal_value, count.literal_value)
            return context.get_dummy_value()

        return types.void(pointer, types.int64, value, number, count), emit

    return {each.__name__: extending.intrinsic(prefer_literal=True)(each) for each in (taken, put)}

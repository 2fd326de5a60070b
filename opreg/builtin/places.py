"""What families of operators on floating numbers share: their dtype, and where a result that wants room goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..spec import Shape, common_dtype, is_floating

__all__ = ["numbered", "floating", "wide", "place", "room", "settle"]


def numbered(count: int) -> list[str]:
    """Names of so many outputs, as MXNet gives them: with a number where there are several."""
    return ["output"] if count == 1 else [f"output{i}" for i in range(count)]


def floating(dtypes: Sequence[np.dtype | None]) -> np.dtype | None:
    """The one dtype known among several, which must be floating.

    Raises
    ------
    DTypeError
        When two differ or one holds no fractions.
    """
    found = common_dtype(dtypes)
    if found is not None and not is_floating(found):
        raise DTypeError(f"expected a floating dtype, got {found}")
    return found


def wide(array: Any) -> Any:
    """The array in a dtype whose sums can be trusted: float32 for those of 16 bits."""
    return array.astype("float32") if array.dtype.itemsize < 4 else array


def place(out: Any, like: Any) -> Any:
    """``out`` in the shape of ``like``, to compute into, or None where its layout or dtype does not allow that."""
    if out is None or out.dtype != like.dtype or not out.flags.c_contiguous:
        return None
    return out.reshape(like.shape)


def room(xp: Any, like: Any, target: Any) -> Any:
    """Where to compute a result like an array: what ``place`` answered, or new memory."""
    return xp.empty(like.shape, dtype=like.dtype) if target is None else target


def settle(out: Any, target: Any, result: Any, shape: Shape) -> Any:
    """A result in its final shape and place, when ``target`` is what ``place`` answered."""
    if out is None:
        return result.reshape(shape)
    if target is None:
        out[...] = result.reshape(shape)
    return out

"""Subscripts of arrays, ``x[key]``, in the form that NumPy takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from opreg.core.spec import Shape
from opreg.errors import SubscriptError

from .context import Context
from .protocols import Protocols

__all__ = ["index_of", "one_element", "parts_of"]


def index_of(key: Any, shape: Shape, ctx: Context, written: bool = False) -> tuple[Any, bool]:
    """A subscript as NumPy takes it, and whether it is basic. Boolean and floating-point arrays in it are converted to
    integers, and all arrays to the context."""
    if key.__class__ is slice or key is Ellipsis:
        return Ellipsis if not shape and key == slice(None) else key, True
    if key.__class__ is int and shape and -shape[0] <= key < shape[0]:
        return key, True
    parts, basic = [], True
    for part in parts_of(key, len(shape), written):
        if isinstance(part, Protocols):
            part = part._data if part._ctx.shares(ctx) else ctx.backend.asarray(part._data, device=ctx.device_id)
        elif isinstance(part, (list, tuple, range)):
            given, part = part, np.asarray(part, None if len(part) else np.int64)
            if part.dtype.kind in "OSUMmc":
                raise SubscriptError(f"a list in a subscript must have integers, got {given!r}")
        if getattr(part, "ndim", 0):
            part = part if part.dtype.kind in "iu" else ctx.run(part.astype, np.int64)
            if isinstance(part, np.ndarray) and ctx.xp is not np:
                part = ctx.backend.asarray(part, device=ctx.device_id)
            basic = False
        elif isinstance(part, (bool, np.generic)) or hasattr(part, "dtype"):
            part = int(part)
        parts.append(part)
    return (parts[0] if len(parts) == 1 and not isinstance(key, tuple) else tuple(parts)), basic


def parts_of(key: object, rank: int, written: bool) -> tuple[Any, ...]:
    """The parts of a subscript without Python's booleans, which MXNet ignores. In a read whose subscript has only
    integers, a boolean counts as an integer."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part.__class__ is bool for part in parts) and (
            written or len(parts) > rank or not all(isinstance(part, int) for part in parts)):
        return tuple(part for part in parts if part.__class__ is not bool)
    return parts


def one_element(key: object) -> tuple[object, ...]:
    """The subscript of one element, with a new axis."""
    return (*key, None) if isinstance(key, tuple) else (key, None)

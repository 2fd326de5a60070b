"""Subscripts of tensors in NumPy's terms: the meaning of ``x[key]`` when reading and writing.

For a mask or index array that does not fit, the error is an IndexError, as NumPy's, and a ValueError, too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.nesting import on_host

from ..core.spec import Shape, show
from ..errors import SubscriptError
from ..typing import Array
from .state import STATE
from .tensor_base import TensorBase

__all__ = ["mask_of", "subscript"]


def subscript(key: Any, shape: Shape) -> Any:
    """A subscript normalised for an array of that shape: Python integers, slices, None, Ellipsis, arrays of integers,
    and booleans as arrays without axes.

    A mask becomes the indices where it holds. A traced tensor becomes its values, with a guard; a traced tensor of
    integers that is the whole subscript stays a tensor. For a traced mask that is the whole subscript see ``mask_of``.

    Raises
    ------
    SubscriptError
        For a mask whose lengths differ from those of its axes, for index arrays that do not broadcast, for too many
        parts, and for a part that is no index.
    """
    if key.__class__ is int or key is Ellipsis or key is None:
        return key
    if isinstance(key, tuple):
        parts = [_part(part) for part in key]
        if any(hasattr(part, "dtype") for part in parts):
            parts = _fit_to_shape(parts, shape)
    else:
        variable = _variable(key)
        if variable is not None and variable._dt.kind in "iu":
            return variable
        part = _part(key)
        if not hasattr(part, "dtype") or (shape and part.dtype.kind != "b"):
            return part
        parts = _indices_of_mask(part, shape[:part.ndim], 0) if part.ndim and shape else _fit_to_shape([part], shape)
    return parts[0] if len(parts) == 1 else tuple(parts)


def mask_of(key: Any, shape: Shape) -> Any:
    """The traced mask that is the whole subscript, if it covers the first axes of a shape; None for other
    subscripts."""
    mask = _variable(key)
    return mask if mask is not None and mask._dt.kind == "b" and mask.ndim and mask.shape == shape[:mask.ndim] else None


def _variable(value: Any) -> Any:
    """The traced tensor of a value: itself, or the one that stands in the trace for a tensor from outside; else
    None."""
    if isinstance(value, NDArray):
        return STATE.trace.read(value) if STATE.trace is not None and STATE.trace.knows(value) else None
    return value if isinstance(value, TensorBase) else None


def _part(part: Any) -> Any:
    """One part of a subscript, normalised: a Python integer, slice, None, Ellipsis, or an array of integers or
    booleans."""
    if part.__class__ is int or part is Ellipsis or part is None:
        return part
    variable = _variable(part)
    if variable is not None:
        part = variable.asnumpy()
    elif isinstance(part, NDArray):
        part = part._data
        if part.shape and part.dtype.kind in "iub":
            return part
    elif isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        if not any(isinstance(bound, TensorBase) for bound in bounds):
            return part
        return slice(*[bound if bound is None else operator.index(bound) for bound in bounds])
    elif isinstance(part, (bool, np.bool_)):  # an attribute True would be equal to 1
        return np.array(bool(part))
    elif isinstance(part, (list, tuple, range)):
        part = np.asarray(on_host(part, (TensorBase, NDArray)))
        part = part if part.size else part.astype(np.int64)
    if hasattr(part, "dtype") and hasattr(part, "shape"):
        if part.dtype.kind not in "iub":
            raise SubscriptError(f"a subscript must have integers or bool, got dtype {part.dtype}")
        return part if part.shape or part.dtype.kind == "b" else part.item()
    try:
        return operator.index(part)
    except TypeError:
        raise SubscriptError("a subscript must have integers, slices, None, ..., bool, or lists or tensors of these, "
                             f"got {type(part).__name__} {part!r}") from None


def _axes(part: Any) -> int:
    """The number of axes that a part of a subscript covers."""
    return 0 if part is None or part is Ellipsis else part.ndim if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    """Whether a part of a subscript is an array of booleans."""
    return hasattr(part, "dtype") and part.dtype.kind == "b"


def _fit_to_shape(parts: Sequence[Any], shape: Shape) -> list[Any]:
    """The parts, with masks replaced by indices, after a check against the shape."""
    count = sum(map(_axes, parts))
    if count > len(shape):
        raise SubscriptError(f"too many indices: the tensor of shape {show(shape)} has {len(shape)} axes, {count} were "
                             "indexed")
    axis, fitted = 0, []
    for part in parts:
        if _is_mask(part) and part.ndim:
            fitted += _indices_of_mask(part, shape[axis:axis + part.ndim], axis)
        else:
            fitted.append(part)
        axis += len(shape) - count if part is Ellipsis else _axes(part)
    if axis > len(shape):
        raise SubscriptError("a subscript can have one ellipsis (...) only")
    shapes = [(int(part),) if _is_mask(part) else part.shape for part in fitted if hasattr(part, "dtype")]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise SubscriptError(f"indices of the shapes {', '.join(map(show, shapes))} do not broadcast to one shape"
                             ) from None
    return fitted


def _indices_of_mask(mask: Array, lengths: Shape, axis: int) -> list[Array]:
    """The indices where a mask over some axes holds."""
    if mask.shape != lengths:
        raise SubscriptError(f"a mask of shape {show(mask.shape)} does not fit axes of the lengths {show(lengths)}, "
                             f"from axis {axis} on")
    return list(mask.nonzero())

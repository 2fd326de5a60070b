"""Subscripts of tensors in NumPy's terms: what ``x[key]`` means, for reading and for writing.

Kinds of errors are those of both peers: where NumPy has an IndexError, MindSpore has a ValueError for masks and index
arrays that do not fit.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.spec import Shape, show
from ..errors import SubscriptError
from ..typing import Array
from .state import STATE
from .tensor_base import TensorBase

__all__ = ["mask_of", "subscript"]


def subscript(key: Any, shape: Shape) -> Any:
    """A subscript as an array of that shape takes it: of Python integers, slices, None, Ellipsis, arrays of integers,
    and booleans as arrays without axes.

    A mask becomes the indices where it holds. A tensor of a trace becomes its numbers, which are looked at in every
    run; of integers that stand alone it stays. To read where a mask of a trace holds that stands alone, see
    ``mask_of``.

    Raises
    ------
    SubscriptError
        For a mask that has not the lengths of the axes it stands for, arrays of indices that do not broadcast, too many
        parts, and what is no index.
    """
    if key.__class__ is int or key is Ellipsis or key is None:
        return key
    if isinstance(key, tuple):
        parts = [_part(part) for part in key]
        if any(hasattr(part, "dtype") for part in parts):
            parts = _fitted(parts, shape)
    else:
        variable = _variable(key)
        if variable is not None and variable._dt.kind in "iu":
            return variable
        part = _part(key)
        if not hasattr(part, "dtype") or (shape and part.dtype.kind != "b"):
            return part
        parts = _held(part, shape[:part.ndim], 0) if part.ndim and shape else _fitted([part], shape)
    return parts[0] if len(parts) == 1 else tuple(parts)


def mask_of(key: Any, shape: Shape) -> Any:
    """The tensor of booleans in a trace that a subscript is, for the first axes of a shape; None for all others."""
    mask = _variable(key)
    return mask if mask is not None and mask._dt.kind == "b" and mask.ndim and mask.shape == shape[:mask.ndim] else None


def _variable(value: Any) -> Any:
    """A tensor of a trace, or that which stands in the trace for one from outside; None for all that has numbers."""
    if isinstance(value, NDArray):
        return STATE.trace.read(value) if STATE.trace is not None and STATE.trace.knows(value) else None
    return value if isinstance(value, TensorBase) else None


def _part(part: Any) -> Any:
    """One part of a subscript: a Python integer, slice, None, Ellipsis, or an array of integers or booleans."""
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
    elif isinstance(part, (bool, np.bool_)):  # as an attribute a boolean would be equal to an integer
        return np.array(bool(part))
    elif isinstance(part, (list, tuple, range)):
        part = np.asarray(_hosted(part))
        part = part if part.size else part.astype(np.int64)
    if hasattr(part, "dtype") and hasattr(part, "shape"):
        if part.dtype.kind not in "iub":
            raise SubscriptError(f"a subscript must be of integers or truth values, got dtype {part.dtype}")
        return part if part.shape or part.dtype.kind == "b" else part.item()
    try:
        return operator.index(part)
    except TypeError:
        raise SubscriptError("a subscript must be of integers, slices, None, ..., truth values, or lists or tensors of "
                             f"them, got {type(part).__name__} {part!r}") from None


def _hosted(value: Any) -> Any:
    """A nested sequence with numbers for the tensors in it."""
    if isinstance(value, (list, tuple)):
        return [_hosted(part) for part in value]
    return value.asnumpy() if isinstance(value, (TensorBase, NDArray)) else value


def _axes(part: Any) -> int:
    """How many axes a part of a subscript stands for."""
    return 0 if part is None or part is Ellipsis else part.ndim if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    """Whether a part of a subscript is an array of booleans."""
    return hasattr(part, "dtype") and part.dtype.kind == "b"


def _fitted(parts: Sequence[Any], shape: Shape) -> list[Any]:
    """The parts with indices for masks, if all fit the shape."""
    count = sum(map(_axes, parts))
    if count > len(shape):
        raise SubscriptError(f"too many indices: the tensor of shape {show(shape)} has {len(shape)} axes, {count} were "
                             "indexed")
    axis, fitted = 0, []
    for part in parts:
        if _is_mask(part) and part.ndim:
            fitted += _held(part, shape[axis:axis + part.ndim], axis)
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


def _held(mask: Array, lengths: Shape, axis: int) -> list[Array]:
    """The indices where a mask of some axes holds."""
    if mask.shape != lengths:
        raise SubscriptError(f"a mask of shape {show(mask.shape)} does not fit axes of the lengths {show(lengths)}, "
                             f"from axis {axis} on")
    return list(mask.nonzero())

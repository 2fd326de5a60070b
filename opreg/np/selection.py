"""Functions that select or order elements, by NumPy's names: indices, insertion and deletion, sorting."""

from __future__ import annotations

import builtins
import numbers
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.errors import ArgumentError
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from .functions import (
    call_numpy,
    is_number,
    register,
    shape_attr,
    store,
)
from .shapes import reshape
from .values import as_value, new_array


def _along(value: Any, axis: int, part: Any) -> Any:
    """A part along an axis, counted from either end: a slice, or indices."""
    every = builtins.slice(None)
    return value[(every,) * axis + (part,)] if axis >= 0 else value[(..., part, *(every,) * (-1 - axis))]


@register
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise", out: Any = None) -> Any:
    """Elements along an axis at indices; an index out of range raises an error, or is clipped."""
    value = as_value(a) if axis is not None else reshape(a, -1)
    if isinstance(value, Symbol) and not isinstance(indices, Symbol) and mode == "raise":
        return _along(value, int(axis or 0), indices)
    places = as_value(np.asarray(indices)) if is_number(indices) else as_value(indices)
    return store(ops.take(value, places, axis=int(axis or 0), mode=mode), out)


def _slice_attrs(obj: Any) -> dict[str, Any]:
    return dict(start=obj.start, stop=obj.stop, step=1 if obj.step is None else obj.step)


@register
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values inserted before places along an axis; without an axis it is flattened first."""
    inputs = [as_value(arr)] if is_number(values) else [as_value(arr), as_value(values)]
    attrs: dict[str, Any] = dict(axis=axis, **(dict(val=float(values)) if is_number(values) else {}))
    if isinstance(obj, builtins.slice):
        return ops._npi_insert_slice(*inputs, **_slice_attrs(obj), **attrs)
    if isinstance(obj, numbers.Integral):
        return ops._npi_insert_scalar(*inputs, int_ind=int(obj), **attrs)
    return ops._npi_insert_tensor(*inputs, _indices(obj), **attrs)


def _indices(obj: Any) -> Any:
    """Places as an array of integers."""
    return as_value(obj if isinstance(obj, (NDArray, Symbol)) else np.asarray(obj, np.int64))


@register
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """An array without the elements at positions along an axis; if None it is flattened first."""
    if isinstance(obj, builtins.slice):
        return ops._npi_delete(as_value(arr), **_slice_attrs(obj), axis=axis)
    if isinstance(obj, numbers.Integral):
        return ops._npi_delete(as_value(arr), int_ind=int(obj), axis=axis)
    value = as_value(arr)
    flat, place = (reshape(value, -1), 0) if axis is None else (value, int(axis))
    return ops._contrib_boolean_mask(flat, ops._kept_by_deletion(flat, _indices(obj), axis=place), axis=place)


@register
def nonzero(a: Any) -> tuple[Any, ...]:
    """Indices of the nonzero elements, along each axis; a 0-d array has one axis, as in MXNet."""
    return tuple(new_array(part) for part in np.nonzero(np.atleast_1d(as_value(a).asnumpy())))


@register
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None) -> Any:
    """The sorted unique elements, or slices along an axis; on request also where each occurs first, which one each
    element is, and how often each occurs."""
    result = ops._npi_unique(as_value(ar), return_index=bool(return_index), return_inverse=bool(return_inverse),
                             return_counts=bool(return_counts), axis=axis)
    return tuple(result) if return_index or return_inverse or return_counts else result


@register
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Indices that sort the elements along an axis."""
    value = reshape(a, -1) if axis is None else as_value(a)
    return ops._npi_argsort(value, axis=-1 if axis is None else int(axis), dtype=np.dtype(np.int64))


@register
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Elements sorted along an axis."""
    return ops._npi_sort(reshape(a, -1) if axis is None else as_value(a), axis=-1 if axis is None else int(axis))


@register
def msort(a: Any) -> Any:
    """Elements sorted along the first axis."""
    return sort(a, axis=0)


@register
def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element of the flattened first array is in the second one."""
    return call_numpy("isin", reshape(ar1, -1), ar2, assume_unique, invert)


@register
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """The indices into a shape from flat indices, an array for each axis; of a symbol the rows of one symbol."""
    if order != "C":
        raise ArgumentError(f"np.unravel_index: order: expected 'C', got {order!r}")
    flat = as_value(np.asarray(indices)) if is_number(indices) else as_value(indices)
    places = ops._unravel_index(flat, shape=shape_attr(shape))
    return places if isinstance(places, Symbol) else tuple(places)


@register
def diag_indices_from(arr: Any) -> Any:
    """The indices of the main diagonal, an array for each axis; of a symbol the rows of one symbol."""
    result = ops._npi_diag_indices_from(as_value(arr))
    return result if isinstance(result, Symbol) else tuple(result)

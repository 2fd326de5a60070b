"""Operators with NumPy's rules that insert elements along an axis and delete some, under MXNet's names for them.

Values go to the end of the array first; a lookup along the axis then puts all elements in their order. This lookup has
a gradient, so insertions have gradients of the array and of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, check_axis
from ...custom.composed import composed, constant
from ...errors import ArgumentError
from ..outputs import declare_array_function
from .numpy_like_shapes import flat_shape, looked_up, reshape_value

Axis = int | None


def _names(*, val: float | None) -> list[str]:
    """The inputs of an insertion: an array, and the values unless these are one number."""
    return ["arr", "values"] if val is None else ["arr"]


def _names_with_places(*, val: float | None) -> list[str]:
    return [*_names(val=val), "obj"]


def _count(arr: Shape, values: Shape | None, axis: int, places: int, single: bool) -> tuple[int, Shape]:
    """Number of elements inserted along an axis, and the shape of their values, which broadcasts.

    All values are inserted at one place if ``places`` is 1. With ``single`` the place was a number, and the first axis
    of the values is the one along which they are inserted.
    """
    values = () if values is None else values
    if len(values) > len(arr):
        raise ArgumentError(f"values: expected no more than {len(arr)} axes, got {len(values)}")
    values = (1,) * (len(arr) - len(values)) + values
    if single:
        values = (*values[1:axis + 1], values[0], *values[axis + 1:])
    return (values[axis] if places is not ANY and places == 1 else places), values


def _append_values(arr: Any, values: Any, val: float | None, axis: Axis, places: int, single: bool) -> tuple[Any, int,
                                                                                                             int]:
    """An array with values after its elements along an axis, that axis, and the number of values."""
    arr = reshape_value(arr, flat_shape(arr.shape, axis))
    place = check_axis(-1 if axis is None else axis, len(arr.shape))
    count, laid = _count(arr.shape, None if val is not None else values.shape, place, places, single)
    whole = (*arr.shape[:place], count, *arr.shape[place + 1:])
    if val is not None:
        filled = constant(lambda *lengths: np.full(lengths, val, arr.dtype), *whole)
        return ops.Concat(arr, filled, num_args=2, dim=place), place, count
    values = values if values.dtype == arr.dtype else ops.Cast(values, dtype=arr.dtype)
    values = reshape_value(values, (1,) * (len(laid) - len(values.shape)) + values.shape)
    if single and place:
        values = ops.transpose(values, axes=(*range(1, place + 1), 0, *range(place + 1, len(laid))))
    values = ops._np_broadcast_to(values, shape=whole)
    return ops.Concat(arr, values, num_args=2, dim=place), place, count


def _insert_values(arr: Any, values: Any, val: float | None, axis: Axis, places: Callable[[int], np.ndarray],
                   single: bool
                   ) -> Any:
    """An array with values inserted before constant places."""
    length = flat_shape(arr.shape, axis)[-1 if axis is None else axis]
    number = constant(places, length).shape[0]
    joined, place, count = _append_values(arr, values, val, axis, number, single)

    def order(length: int, count: int) -> np.ndarray:
        given = places(length)
        if any(not -length <= index <= length for index in given.tolist()):
            raise ArgumentError(f"positions {given.tolist()}: expected integers from {-length} to {length}, the length "
                                f"of axis {place}")
        before = np.repeat(given, count) if len(given) == 1 else given
        return np.insert(np.arange(length), before, length + np.arange(count))

    return looked_up(joined, order, place, length, count)


@composed(name="_npi_insert_scalar", types="T,V=T->T", arguments=_names, variadic=None,
          input_names=("arr", "values"))
def insert_scalar(arr, *values, val: float | None = None, int_ind: int, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before the position ``int_ind`` along ``axis``, or
    flattened."""
    return _insert_values(arr, values[0] if values else None, val, axis, lambda length: np.array([int_ind]), True)


@composed(name="_npi_insert_slice", types="T,V=T->T", arguments=_names, variadic=None,
          input_names=("arr", "values"))
def insert_slice(arr, *values, val: float | None = None, start: int | None = None, stop: int | None = None,
                 step: int | None = None, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before the positions of a slice along ``axis``, or
    flattened."""
    return _insert_values(arr, values[0] if values else None, val, axis,
                          lambda length: np.arange(*slice(start, stop, step).indices(length)), False)


# -------------------------------------------------------------------------------------- positions in an array


@declare(name="_insertion_order", types="I->int64")
def insertion_order(obj, *, length: int):
    """The indices that put inserted elements in order: appended after ``length`` elements, each comes before its
    position in ``obj``."""


insertion_order.infer(lambda obj, *, length: (length + flat_shape(obj, None)[0],))
insertion_order.grad(ZERO)


def _order(xp: Any, obj: Any, *, length: int) -> Any:
    places = obj.reshape(-1).astype(xp.int64)
    places = xp.where(places < 0, places + length, places)
    ranks = xp.concatenate([2 * xp.arange(length) + 1, 2 * places])
    return xp.argsort(ranks, kind="stable")


declare_array_function(insertion_order, _order)  # no body: it sorts


@composed(name="_npi_insert_tensor", types="T,*?->T", arguments=_names_with_places, variadic=None,
          input_names=("arr", "values", "obj"))
def insert_tensor(arr, *others, val: float | None = None, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before the positions ``obj`` along ``axis``, or
    flattened."""
    values, obj = others if val is None else (None, *others)
    number = flat_shape(obj.shape, None)[0]
    joined, place, count = _append_values(arr, values, val, axis, number, not obj.shape)
    places = ops._np_broadcast_to(reshape_value(obj, (1,)), shape=(count,)) if number == 1 else obj
    return ops.take(joined, ops._insertion_order(places, length=joined.shape[place] - count), axis=place, mode="clip")


@declare(name="_kept_by_deletion", types="T,I->uint8", unread=(0,))
def kept_by_deletion(arr, obj, *, axis: Axis = None):
    """0 for each element along ``axis``, or of the flattened array, whose position is in ``obj`` and deleted, 1 for the
    others. Negative positions and positions beyond the end delete nothing, as in MXNet."""


kept_by_deletion.infer(lambda arr, obj, *, axis: (flat_shape(arr, axis)[-1 if axis is None else axis],))
kept_by_deletion.grad(ZERO)


def _mask_without(xp: Any, arr: Any, obj: Any, *, axis: Axis) -> Any:
    length = arr.size if axis is None else arr.shape[axis]
    places = obj.reshape(-1).astype(xp.int64)
    mask = xp.ones(length + 1, dtype=xp.uint8)
    mask[xp.where((places < 0) | (places > length), length, places)] = 0
    return mask[:length]


declare_array_function(kept_by_deletion, _mask_without)  # no body: it writes to positions


def _places_left(length: int, start: int | None, stop: int | None, step: int | None, int_ind: int | None) -> np.ndarray:
    """The places that stay."""
    if int_ind is not None and not -length <= int_ind < length:
        raise ArgumentError(f"position {int_ind}: expected an integer from {-length} to {length - 1}")
    return np.delete(np.arange(length), slice(start, stop, step) if int_ind is None else int_ind)


@composed(name="_npi_delete")
def delete(arr, *, start: int | None = None, stop: int | None = None, step: int | None = None,
           int_ind: int | None = None, axis: Axis = None):
    """``arr`` without the elements at the position ``int_ind``, or at those of a slice, along ``axis`` or flattened."""
    flat = reshape_value(arr, flat_shape(arr.shape, axis))
    place = check_axis(-1 if axis is None else axis, len(flat.shape))
    return looked_up(flat, lambda length: _places_left(length, start, stop, step, int_ind), place)

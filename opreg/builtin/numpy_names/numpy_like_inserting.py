"""Operators with NumPy's rules that insert elements along an axis and delete some, under MXNet's names for them.

Values go to the end of the array first; a lookup along the axis then puts all elements in their order. It has a
gradient, so insertions have one by the array and by the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, broadcast, check_axis
from ...custom.composed import composed
from ...errors import ArgumentError
from ..outputs import computed
from .numpy_like_shapes import flat_shape, looked_up, shaped

__all__: list[str] = []

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


def _lengthened(arr: Shape, axis: int, count: int) -> Shape:
    return (*arr[:axis], arr[axis] + count, *arr[axis + 1:])


def _inserted_shape(arr: Shape, values: Shape | None, axis: Axis, places: int, single: bool) -> Shape:
    """The shape of an array with values inserted."""
    arr = flat_shape(arr, axis)
    place = check_axis(-1 if axis is None else axis, len(arr))
    count, laid = _count(arr, values, place, places, single)
    broadcast((*arr[:place], count, *arr[place + 1:]), laid)
    return _lengthened(arr, place, count)


def _joined(arr: Any, values: Any, val: float | None, axis: Axis, places: int, single: bool) -> tuple[Any, int, int]:
    """An array with values behind its elements along an axis, that axis, and the number of values."""
    arr = shaped(arr, flat_shape(arr.shape, axis))
    place = check_axis(-1 if axis is None else axis, len(arr.shape))
    count, laid = _count(arr.shape, None if val is not None else values.shape, place, places, single)
    whole = (*arr.shape[:place], count, *arr.shape[place + 1:])
    if val is not None:
        return ops.Concat(arr, np.full(whole, val, arr.dtype), num_args=2, dim=place), place, count
    values = values if values.dtype == arr.dtype else ops.Cast(values, dtype=arr.dtype)
    values = shaped(values, (1,) * (len(laid) - len(values.shape)) + values.shape)
    if single and place:
        values = ops.transpose(values, axes=(*range(1, place + 1), 0, *range(place + 1, len(laid))))
    values = ops._np_broadcast_to(values, shape=whole)
    return ops.Concat(arr, values, num_args=2, dim=place), place, count


def _inserted(arr: Any, values: Any, val: float | None, axis: Axis, places: np.ndarray, single: bool) -> Any:
    """An array with values inserted before constant places."""
    joined, place, count = _joined(arr, values, val, axis, len(places), single)
    length = joined.shape[place] - count
    if any(not -length <= index <= length for index in places.tolist()):
        raise ArgumentError(f"places {places.tolist()}: expected numbers from {-length} to {length}, the length of "
                            f"axis {place}")
    before = np.repeat(places, count) if len(places) == 1 else places
    order = np.insert(np.arange(length), before, length + np.arange(count))
    return looked_up(joined, order, place)


@composed(name="_npi_insert_scalar", types="T,V=T->T", arguments=_names, variadic=None,
          input_names=("arr", "values"))
def insert_scalar(arr, *values, val: float | None = None, int_ind: int, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before one place along an axis, or flat."""
    return _inserted(arr, values[0] if values else None, val, axis, np.array([int_ind]), True)


@insert_scalar.infer
def insert_scalar_infer(arr, *values, axis):
    return _inserted_shape(arr, values[0] if values else None, axis, 1, True)


def _slice(length: int, start: int | None, stop: int | None, step: int | None) -> np.ndarray:
    return np.arange(*slice(start, stop, step).indices(length))


@composed(name="_npi_insert_slice", types="T,V=T->T", arguments=_names, variadic=None,
          input_names=("arr", "values"))
def insert_slice(arr, *values, val: float | None = None, start: int | None = None, stop: int | None = None,
                 step: int | None = None, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before the places of a slice along an axis, or flat."""
    length = flat_shape(arr.shape, axis)[-1 if axis is None else axis]
    return _inserted(arr, values[0] if values else None, val, axis, _slice(length, start, stop, step), False)


@insert_slice.infer
def insert_slice_infer(arr, *values, start, stop, step, axis):
    length = flat_shape(arr, axis)[-1 if axis is None else axis]
    count = ANY if length is ANY else len(_slice(length, start, stop, step))
    return _inserted_shape(arr, values[0] if values else None, axis, count, False)


# --------------------------------------------------------------------------------- places that an array holds


@declare(name="_insertion_order", types="I->int64")
def insertion_order(obj, *, length: int):
    """The order of elements, numbered from zero, in which further ones stand before the places ``obj``."""


insertion_order.infer(lambda obj, *, length: (length + flat_shape(obj, None)[0],))
insertion_order.grad(ZERO)


def _order(xp: Any, obj: Any, *, length: int) -> Any:
    places = obj.reshape(-1).astype(xp.int64)
    places = xp.where(places < 0, places + length, places)
    ranks = xp.concatenate([2 * xp.arange(length) + 1, 2 * places])
    return xp.argsort(ranks, kind="stable")


computed(insertion_order, _order)  # no body: it sorts


@composed(name="_npi_insert_tensor", types="T,*?->T", arguments=_names_with_places, variadic=None,
          input_names=("arr", "values", "obj"))
def insert_tensor(arr, *others, val: float | None = None, axis: Axis = None):
    """``arr`` with ``values``, or the number ``val``, inserted before the places in ``obj`` along an axis, or flat."""
    values, obj = others if val is None else (None, *others)
    number = flat_shape(obj.shape, None)[0]
    joined, place, count = _joined(arr, values, val, axis, number, not obj.shape)
    places = ops._np_broadcast_to(shaped(obj, (1,)), shape=(count,)) if number == 1 else obj
    return ops.take(joined, ops._insertion_order(places, length=joined.shape[place] - count), axis=place, mode="clip")


@insert_tensor.infer
def insert_tensor_infer(arr, *others, val, axis):
    values, obj = others if val is None else (None, *others)
    return _inserted_shape(arr, values, axis, flat_shape(obj, None)[0], not obj)


@declare(name="_kept_by_deletion", types="T,I->uint8", unread=(0,))
def kept_by_deletion(arr, obj, *, axis: Axis = None):
    """1 for each element along an axis, or of the flat array, that stays when those at the places ``obj`` are deleted;
    else 0. Negative places and those beyond the end change nothing, as in MXNet."""


kept_by_deletion.infer(lambda arr, obj, *, axis: (flat_shape(arr, axis)[-1 if axis is None else axis],))
kept_by_deletion.grad(ZERO)


def _kept(xp: Any, arr: Any, obj: Any, *, axis: Axis) -> Any:
    length = arr.size if axis is None else arr.shape[axis]
    places = obj.reshape(-1).astype(xp.int64)
    mask = xp.ones(length + 1, dtype=xp.uint8)
    mask[xp.where((places < 0) | (places > length), length, places)] = 0
    return mask[:length]


computed(kept_by_deletion, _kept)  # no body: it writes to places


def _remaining(length: int, start: int | None, stop: int | None, step: int | None, int_ind: int | None) -> np.ndarray:
    """The places that stay."""
    if int_ind is not None and not -length <= int_ind < length:
        raise ArgumentError(f"place {int_ind}: expected a number from {-length} to {length - 1}")
    return np.delete(np.arange(length), slice(start, stop, step) if int_ind is None else int_ind)


@composed(name="_npi_delete")
def delete(arr, *, start: int | None = None, stop: int | None = None, step: int | None = None,
           int_ind: int | None = None, axis: Axis = None):
    """``arr`` without the elements at one place, or at those of a slice, along an axis, or flat."""
    flat = shaped(arr, flat_shape(arr.shape, axis))
    place = -1 if axis is None else axis
    return looked_up(flat, _remaining(flat.shape[place], start, stop, step, int_ind), place)


@delete.infer
def delete_infer(arr, *, start, stop, step, int_ind, axis):
    flat = flat_shape(arr, axis)
    place = check_axis(-1 if axis is None else axis, len(flat))
    length = flat[place] if flat[place] is ANY else len(_remaining(flat[place], start, stop, step, int_ind))
    return (*flat[:place], length, *flat[place + 1:])

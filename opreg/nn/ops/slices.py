"""Slices that are written to a tensor: into a Parameter itself, or into a copy; and reductions of slices by segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import Number, TensorLike
from ...core.registry import ops
from ...core.spec import limits, show
from ...errors import ArgumentError, DTypeError, ShapeError
from . import indexing
from .array import assign, broadcast_to
from .creation import full
from .indexing import gather, unsorted_segment_sum
from .lift import like, one_axis, tensor
from .math import where
from .primitive import adder

__all__ = ["inplace_add", "inplace_index_add", "inplace_sub", "inplace_update", "sequence_mask", "slice_scatter",
           "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod"]

_add_class = adder(globals(), __all__)

# --------------------------------------------------------------------------- written to a Parameter


def _check_nothing(**settings: object) -> None:
    """Accept all settings of a primitive."""


def _writer(verb: str, kind: str) -> None:
    """Add a function that writes to a Parameter, and its primitive: ``scatter_add`` and ``ScatterAdd``."""
    function = getattr(indexing, f"tensor_scatter_{kind}")
    nd = verb == "scatter_nd"

    def write(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
        places = tensor(indices)
        return assign(input_x, function(input_x, places if nd else ops.expand_dims(places, axis=-1), updates))

    write.__name__ = write.__qualname__ = f"{verb}_{kind}"
    places_text = "at coordinates, which the last axis of ``indices`` holds" if nd else "at indices of the first axis"
    change = {"update": "overwritten with", "add": "with added", "sub": "less", "mul": "times", "div": "divided by",
              "max": "raised to at least", "min": "lowered to at most"}[kind]
    write.__doc__ = (f"The Parameter ``input_x`` {change} ``updates`` {places_text}; returns the Parameter, which "
                     "holds the result.")
    globals()[write.__name__] = write
    __all__.append(write.__name__)

    def call(input_x: Tensor, indices: TensorLike, updates: TensorLike, *, use_locking: bool) -> Tensor:
        return write(input_x, indices, updates)

    call.__doc__ = write.__doc__
    title = ("ScatterNd" if nd else "Scatter") + kind.capitalize()
    _add_class(title, call, {"use_locking": kind == "update"}, _check_nothing)


for _kind in ("update", "add", "sub", "mul", "div", "max", "min"):
    _writer("scatter", _kind)
    _writer("scatter_nd", _kind)


def inplace_index_add(var: Tensor, indices: TensorLike, updates: TensorLike, axis: int) -> Tensor:
    """The Parameter ``var`` with slices of ``updates`` added at indices along an axis; returns the Parameter, which
    holds the result."""
    return assign(var, indexing.index_add(var, indices, updates, axis))


def _index_add(x: Tensor, indices: TensorLike, y: TensorLike, *, axis: int, use_lock: bool, check_index_bound: bool
               ) -> Tensor:
    return inplace_index_add(x, indices, y, axis)


_add_class("IndexAdd", _index_add, {"axis": ..., "use_lock": True, "check_index_bound": True})


# ------------------------------------------------------------------------------- written to a copy


def _at_rows(name: str, function: Callable[[Tensor, TensorLike, TensorLike], Tensor], doc: str
             ) -> Callable[[TensorLike, TensorLike, int | Sequence[int]], Tensor]:
    def change(x: TensorLike, v: TensorLike, indices: int | Sequence[int]) -> Tensor:
        places = [indices] if isinstance(indices, int) else list(indices)
        return function(tensor(x), np.array(places, np.int64).reshape((-1, 1)), v)

    change.__name__ = change.__qualname__ = name
    change.__doc__ = doc
    return change


inplace_add = _at_rows("inplace_add", indexing.tensor_scatter_add,
                       "The tensor ``x`` with rows of ``v`` added at ``indices``, an int or ints; ``x`` stays, "
                       "in MindSpore.")
inplace_sub = _at_rows("inplace_sub", indexing.tensor_scatter_sub,
                       "The tensor ``x`` with the rows of ``v`` subtracted at ``indices``; see ``inplace_add``.")
inplace_update = _at_rows("inplace_update", indexing.tensor_scatter_update,
                          "The tensor ``x`` with the rows of ``v`` written at ``indices``; see ``inplace_add``.")
_add_class("InplaceAdd", inplace_add, {"indices": ...})
_add_class("InplaceSub", inplace_sub, {"indices": ...})
_add_class("InplaceUpdate", inplace_update, {"indices": ...})


def slice_scatter(input: TensorLike, src: TensorLike, axis: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """The tensor with the slice ``start:end:step`` along an axis replaced by ``src``.

    Examples
    --------
    >>> print(slice_scatter(tensor([1.0, 2.0, 3.0]), tensor([8.0, 9.0]), start=1))
    [1. 8. 9.]
    """
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "slice_scatter")
    if step <= 0:
        raise ArgumentError(f"slice_scatter: step must be above 0, got {step}")
    chosen = range(x.shape[axis])[start:end:step]
    wanted = tuple(len(chosen) if i == axis else length for i, length in enumerate(x.shape))
    src = like(src, x)
    if src.shape != wanted:
        raise ShapeError(f"slice_scatter: expected src of shape {show(wanted)}, got {show(src.shape)}")
    if not len(chosen):
        return x
    row = np.zeros(x.shape[axis], np.int64)
    row[chosen.start:chosen.stop:chosen.step] = np.arange(len(chosen))
    written = np.zeros(x.shape[axis], bool)
    written[chosen.start:chosen.stop:chosen.step] = True
    on = tensor(written.reshape((-1, *(1,) * (x.ndim - 1 - axis))))
    return where(on, gather(src, tensor(row), axis), x)


def masked_scatter(self: Tensor, mask: TensorLike, source: TensorLike) -> Tensor:
    """The tensor with elements of ``source``, in their order, where a mask holds."""
    holds = broadcast_to(mask, self.shape)
    flat = holds.reshape((-1,))
    source = like(source, self).reshape((-1,))
    place = ops._np_cumsum(flat._cast(np.dtype(np.int64)), axis=0) - 1
    return where(flat, ops.take(source, where(flat, place, 0)), self.reshape((-1,))).reshape(self.shape)


def index_put(self: Tensor, indices: Sequence[TensorLike], values: TensorLike, accumulate: bool = False) -> Tensor:
    """The tensor with values written at indices, one tensor for each of the first axes, as ``x[indices] = values``
    does; with ``accumulate`` they are added, as often as a place is named."""
    places = [tensor(each) for each in indices]
    if not places or len(places) > self.ndim:
        raise ArgumentError(f"index_put: expected one tensor of indices for each axis, at most {self.ndim}, got "
                            f"{len(places)}")
    if any(each._dt.kind == "b" for each in places):
        places = [part for each in places for part in (indexing.nonzero(each, as_tuple=True) if each._dt.kind == "b"
                                                       else (each,))]
    shape = np.broadcast_shapes(*[each.shape for each in places])
    at = ops.stack(*[broadcast_to(each, shape) for each in places], axis=-1, num_args=len(places))
    written = broadcast_to(like(values, self), shape + self.shape[len(places):])
    return (indexing.tensor_scatter_add if accumulate else indexing.tensor_scatter_update)(self, at, written)


def fill_diagonal(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """The tensor with one number on its main diagonal, whose indices are equal along all axes; with ``wrap`` the
    diagonal of a tall matrix begins again after a row without it."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ShapeError(f"fill_diagonal: expected a matrix, or axes of one length, got shape {show(self.shape)}")
    on = np.zeros(self.shape, bool)
    np.fill_diagonal(on, True, wrap)
    return where(tensor(on), like(fill_value, self), self)


def _filled(input_x: TensorLike, *, fill_value: Number, wrap: bool) -> Tensor:
    return fill_diagonal(tensor(input_x), fill_value, wrap)


_add_class("FillDiagonal", _filled, {"fill_value": ..., "wrap": False})


# -------------------------------------------------------------------------------------- segments


def sequence_mask(lengths: TensorLike, maxlen: int | None = None) -> Tensor:
    """For each length, a row of booleans that are true up to it.

    Parameters
    ----------
    lengths : Tensor
        Integers of any shape.
    maxlen : int, optional
        Length of the rows, the longest length by default.

    Examples
    --------
    >>> print(sequence_mask(tensor([1, 3])))
    [[ True False False]
     [ True  True  True]]
    """
    ends = tensor(lengths)
    if ends._dt.kind not in "iu":
        raise DTypeError(f"sequence_mask: expected integers, got dtype {ends._dt}")
    count = int(ends.max()) if maxlen is None else int(maxlen)
    return tensor(np.arange(count)) < ops.expand_dims(ends, axis=-1)


def _segments(name: str, combine: Callable[[TensorLike, TensorLike, TensorLike], Tensor],
              neutral: Callable[[np.dtype], float], doc: str
              ) -> Callable[[TensorLike, TensorLike, int | Tensor], Tensor]:
    def function(x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor:
        x, ids = tensor(x), tensor(segment_ids)
        count = int(num_segments)
        if x.shape[:ids.ndim] != ids.shape:
            raise ShapeError(f"{name}: segment_ids of shape {show(ids.shape)} do not fit the first axes of "
                             f"{show(x.shape)}")
        trailing = x.shape[ids.ndim:]
        begin = full((count + 1, *trailing), neutral(x._dt), dtype=x._dt)
        at = where(ids < 0, count, ids).reshape((-1, 1))  # slices with a negative number are in an additional segment
        return combine(begin, at, x.reshape((-1, *trailing)))[:count]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


unsorted_segment_max = _segments(
    "unsorted_segment_max", indexing.tensor_scatter_max, lambda dtype: limits(dtype)[0],
    "The largest of the slices along the first axes that have the same number in ``segment_ids``; a segment without "
    "slices is the least finite number of the dtype, and slices with a negative number are left out.")
unsorted_segment_min = _segments(
    "unsorted_segment_min", indexing.tensor_scatter_min, lambda dtype: limits(dtype)[1],
    "The smallest of the slices with the same number, the greatest finite number of the dtype if there are none; see "
    "``unsorted_segment_max``.")
unsorted_segment_prod = _segments(
    "unsorted_segment_prod", indexing.tensor_scatter_mul, lambda dtype: 1,
    "The product of the slices with the same number, 1 if there are none; see ``unsorted_segment_max``.")


def _sorted_segments(function: Callable[..., Tensor], empty: bool, mean: bool = False) -> Callable[..., Tensor]:
    """A reduction of segments whose numbers ascend, up to the last one; a segment without slices is 0 if ``empty``."""

    def reduce(input_x: TensorLike, segment_ids: TensorLike) -> Tensor:
        x, ids = tensor(input_x), tensor(segment_ids)
        count = int(ids[-1]) + 1 if ids.shape[0] else 0
        result = function(x, ids, count)
        if not empty and not mean:
            return result
        members = unsorted_segment_sum(ops.ones_like(ids), ids, count).reshape((-1, *(1,) * (x.ndim - 1)))
        return result / where(members > 0, members, 1)._cast(x._dt) if mean else where(members > 0, result, 0)

    return reduce


_add_class("UnsortedSegmentMax", unsorted_segment_max)
_add_class("UnsortedSegmentMin", unsorted_segment_min)
_add_class("UnsortedSegmentProd", unsorted_segment_prod)
_add_class("SegmentSum", _sorted_segments(unsorted_segment_sum, False))
_add_class("SegmentProd", _sorted_segments(unsorted_segment_prod, False))
_add_class("SegmentMax", _sorted_segments(unsorted_segment_max, True))
_add_class("SegmentMin", _sorted_segments(unsorted_segment_min, True))
_add_class("SegmentMean", _sorted_segments(unsorted_segment_sum, False, True))

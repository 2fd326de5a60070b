"""Rows of operators that create, reshape, move, join and split arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.cells.tensor import Tensor
from opreg.core.mode import MODE
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_floating, known
from opreg.errors import ArgumentError, AttrError, ShapeError

from ..graph import Node, UnknownNumbers
from ..open_lengths import Length, is_open
from ..rows import Given, Host, row
from ..tensors import computes, dtype_of

__all__ = ["along", "numbers", "padded", "parts_of", "reshaped", "sane", "MOST"]

#: Largest number of elements of an array that a model may request by a shape.
MOST = 1 << 28

#: An end of a slice that stands for that of its axis, whatever its length.
END = 1 << 31


def numbers(value: Any) -> tuple[int, ...]:
    """The elements of an array as Python integers."""
    return tuple([int(each) for each in np.asarray(value).reshape(-1)])


def sane(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape requested by a model; unreasonable ones are refused."""
    if any(dim < 0 for dim in shape) or math.prod(shape) > MOST:
        raise ShapeError(f"a model asks for an array of shape {tuple(shape)}")
    return tuple(shape)


# --------------------------------------------------------------------------------------------------- constants


@row("Constant")
def constant(node: Node, *, value: Any = None, sparse_value: Any = None, value_float: Any = None,
             value_floats: Any = None, value_int: Any = None, value_ints: Any = None, value_string: Any = None,
             value_strings: Any = None) -> Any:
    kinds: tuple[tuple[Any, Any], ...] = (
        (value, None), (sparse_value, None), (value_float, np.float32), (value_floats, np.float32),
        (value_int, np.int64), (value_ints, np.int64), (value_string, object), (value_strings, object))
    for given, dtype in kinds:
        if given is not None:
            return given if dtype is None else np.asarray(given, dtype)
    raise AttrError("Constant: no value is given")


@row("ConstantOfShape")
def constant_of_shape(node: Node, shape: Given, *, value: Any = None) -> Any:
    value = np.zeros(1, np.float32) if value is None else value
    codes = _open_shape(node, shape)
    if codes:
        return _expanded(node, node.lift(value.reshape((1,) * len(codes))), codes)
    return np.full(sane(numbers(node.host(shape))), value.reshape(-1)[0], value.dtype)


@row("Range")
def arange(node: Node, start: Host, limit: Given, delta: Host) -> Any:
    first, step = (value.reshape(-1)[0] for value in (start, delta))
    if step == 0:
        raise ArgumentError("Range: delta is 0")
    end = node.open_numbers(limit)
    if end is not None and isinstance(end.reshape(-1)[0], Length) and first == 0 and step == 1:
        ones = _expanded(node, node.lift(np.ones(1, start.dtype)), [end.reshape(-1)[0]])
        return ops._np_cumsum(ones, axis=0) - 1
    last = node.host(limit).reshape(-1)[0]
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    sane((count,))
    return (first + np.arange(count, dtype=start.dtype) * step).astype(start.dtype)


@row("EyeLike")
def eye_like(node: Node, x: Given, *, dtype: int | None = None, k: int = 0) -> Any:
    rows, columns = node.shape(x)
    return np.eye(rows, columns, k, node.dtype(x) if dtype is None else dtype_of(dtype))


@row("Shape")
def shape(node: Node, x: Given, *, start: int = 0, end: int | None = None) -> Any:
    lengths = node.lengths(x)[start:end]
    if known(lengths):
        return np.array(lengths, np.int64)
    rank = node.rank(x)
    first, last, _ = slice(start, end).indices(rank)
    return ops.slice_axis(ops.shape_array(x), axis=0, begin=first, end=max(last, first))


@row("Size")
def size(node: Node, x: Given) -> Any:
    return np.array(math.prod(node.shape(x)), np.int64)


# ------------------------------------------------------------------------------------------------------ shapes


@row("Reshape")
def reshape_by_attribute(node: Node, x: Any, *, shape: Any) -> Any:
    return reshaped(node, x, tuple(shape))


@row("Reshape", since=5)
def reshape(node: Node, x: Given, shape: Given, *, allowzero: int = 0) -> Any:
    codes = _open_shape(node, shape)
    open_codes, closed = [code for code in codes if is_open(code)], [code for code in codes if not is_open(code)]
    if len(open_codes) == 1 and 0 not in closed:
        rest = _without(node, x, open_codes[0]) if -1 in closed else 0
        if rest is not None:
            rest //= math.prod([code for code in closed if code != -1])
            # The dynamic length is inferred from the others.
            codes = [-1 if is_open(code) else rest if code == -1 else code for code in codes]
            return reshaped(node, node.lift(x), tuple(codes))
    if open_codes and 0 not in closed and all(
            _is_own(x, code, axis) for axis, code in enumerate(codes) if is_open(code)):
        return reshaped(node, node.lift(x), tuple([0 if is_open(code) else code for code in codes]))
    shape = node.host(shape)
    if isinstance(x, np.ndarray) and not computes(x.dtype):
        codes = [x.shape[i] if dim == 0 and not allowzero else dim for i, dim in enumerate(numbers(shape))]
        return x.reshape(codes)
    return reshaped(node, node.lift(x), numbers(shape), bool(allowzero))


def _open_shape(node: Node, shape: Any) -> list[Any]:
    """The lengths of a shape, if some are dynamic; an empty list if all are known."""
    found = None if isinstance(shape, np.ndarray) else node.open_numbers(shape)
    return list(found) if found is not None and found.ndim == 1 and any(map(is_open, found)) else []


def _is_own(x: Any, length: Any, axis: int) -> bool:
    """Whether a dynamic length is that of an axis."""
    return isinstance(length, Length) and length.is_of(x) and length.axis == axis


def _without(node: Node, x: Any, length: Any) -> int | None:
    """The number of elements for each index along the axis with this dynamic length; None if it is dynamic too, or if
    the length belongs to another array."""
    if not (isinstance(length, Length) and length.is_of(x)):
        return None
    others = [each for axis, each in enumerate(node.lengths(x)) if axis != length.axis]
    return math.prod(others) if known(tuple(others)) else None


def reshaped(node: Node, x: Any, codes: tuple[int, ...], literal: bool = False) -> Any:
    """An array in another shape, in which 0 keeps the length at its position unless ``literal``."""
    lengths = node.lengths(x)
    if not literal and not known(lengths) and codes and 0 in codes:
        places = [lengths[i] if dim == 0 and lengths[i] is not ANY else dim for i, dim in enumerate(codes)]
        if 0 in places:
            return ops.reshape(x, shape=tuple(places))
        codes = tuple(places)
    elif not literal:
        if any(dim == 0 and i >= len(lengths) for i, dim in enumerate(codes)):
            raise ShapeError(f"shape {codes} has 0 at a place that the input of {len(lengths)} axes has not")
        codes = tuple([lengths[i] if dim == 0 else dim for i, dim in enumerate(codes)])
    if codes.count(-1) == 1 and 0 in codes and literal:
        raise ShapeError(f"shape {codes} has both -1 and an empty axis")
    if codes.count(-1) == 1 and 0 in codes:
        codes = tuple([0 if dim == -1 else dim for dim in codes])
    return ops._np_reshape(x, newshape=codes)


@row("Flatten")
def flatten(node: Node, x: Any, *, axis: int = 1) -> Any:
    lengths = node.lengths(x)
    axis = axis + len(lengths) if axis < 0 else axis
    if not known(lengths):
        first, last = lengths[:axis], lengths[axis:]
        if known(last):
            return ops._np_reshape(x, newshape=(-1, math.prod(last)))
        if axis == 1:
            return ops.Flatten(x)
        return ops._np_reshape(x, newshape=(math.prod(node.shape(x)[:axis]) if first else 1, -1))
    return ops._np_reshape(x, newshape=(math.prod(lengths[:axis]), math.prod(lengths[axis:])))


@row("Squeeze")
def squeeze_by_attribute(node: Node, x: Any, *, axes: Any = None) -> Any:
    return _squeezed(node, x, axes)


@row("Squeeze", since=13)
def squeeze(node: Node, x: Any, axes: Host = None) -> Any:
    return _squeezed(node, x, None if axes is None else numbers(axes))


def _squeezed(node: Node, x: Any, axes: Sequence[int] | None) -> Any:
    if axes is None:
        axes = [i for i, dim in enumerate(node.shape(x)) if dim == 1]
    places = {node.axis(axis, x) for axis in axes}
    lengths = node.lengths(x)
    for place in places:
        if lengths[place] != 1:
            raise ShapeError(f"axis {place} has length {lengths[place]} and cannot be left out")
    kept = [dim for i, dim in enumerate(lengths) if i not in places]
    if known(tuple(kept)):
        return ops._np_reshape(x, newshape=tuple(kept))
    return ops.squeeze(x, axis=tuple(sorted(places))) if places else x


@row("Unsqueeze")
def unsqueeze_by_attribute(node: Node, x: Any, *, axes: Any) -> Any:
    return _unsqueezed(node, x, axes)


@row("Unsqueeze", since=13)
def unsqueeze(node: Node, x: Any, axes: Host) -> Any:
    return _unsqueezed(node, x, numbers(axes))


def _unsqueezed(node: Node, x: Any, axes: Sequence[int]) -> Any:
    rank = node.rank(x) + len(axes)
    for axis in sorted(axis + rank if axis < 0 else axis for axis in axes):
        x = ops.expand_dims(x, axis=axis)
    return x


@row("Transpose")
def transpose(node: Node, x: Any, *, perm: Any = None) -> Any:
    rank = node.rank(x)
    if rank < 2:
        return x
    return ops.transpose(x, axes=tuple(perm) if perm is not None else tuple(range(rank))[::-1])


@row("Expand")
def expand(node: Node, x: Any, shape: Given) -> Any:
    codes = _open_shape(node, shape)
    if codes:
        return _expanded(node, x, codes)
    wanted = numbers(node.host(shape))
    have = node.lengths(x)
    missing = len(wanted) - len(have)
    if known(have):
        return ops._np_broadcast_to(x, shape=sane(np.broadcast_shapes(have, wanted)))
    ones = ops.Cast(_full(wanted if missing >= 0 else (1,) * -missing + wanted, 1), dtype=node.dtype(x))
    return ops.broadcast_mul(x, ones)


def _expanded(node: Node, x: Any, codes: Sequence[Any]) -> Any:
    """An array broadcast to a shape with dynamic lengths, which are those of other arrays."""
    rank, given = max(len(codes), node.rank(x)), x
    have = (1,) * (rank - node.rank(x)) + node.lengths(x)
    x = _unsqueezed(node, x, range(rank - node.rank(x)))
    for axis, code in enumerate(codes, rank - len(codes)):
        if is_open(code):
            if not isinstance(code, Length):
                raise UnknownNumbers.of(node.op_type, "lengths that are known only when the graph runs")
            if code.is_of(given) and code.axis == axis - (rank - node.rank(given)):
                continue
        elif code == 1 or (have[axis] is not ANY and code == have[axis]):
            continue
        # An array that may have more than one element along the axis is multiplied by ones.
        part = x if have[axis] is not ANY and have[axis] == 1 else node.lift(np.ones((1,) * rank, node.dtype(x)))
        if isinstance(code, Length):
            part = ops.broadcast_like(part, code.value, lhs_axes=(axis,), rhs_axes=(code.axis,))
        else:
            part = ops.broadcast_axis(part, axis=(axis,), size=(code,))
        x = part if have[axis] is not ANY and have[axis] == 1 else ops.broadcast_mul(x, part)
    return x


def _full(shape: tuple[int, ...], value: float, dtype: Any = np.float32) -> Any:
    return Tensor(np.full(sane(shape), value, dtype))


@row("Tile")
def tile(node: Node, x: Any, repeats: Host) -> Any:
    reps = numbers(repeats)
    if known(node.lengths(x)):
        sane([dim * rep for dim, rep in zip(node.lengths(x), reps)])
    return ops.tile(x, reps=reps) if reps else x


@row("Identity", "SequenceIdentity")
def identity(node: Node, x: Given) -> Any:
    return x


# ---------------------------------------------------------------------------------------------- parts and joins


@row("Concat")
def concat(node: Node, *values: Given, axis: int = 1) -> Any:
    if all(isinstance(value, np.ndarray) for value in values):
        return np.concatenate(values, axis)
    values = tuple(map(node.lift, values))
    return ops.Concat(*values, dim=node.axis(axis, values[0]), num_args=len(values))


@row("Split")
def split_by_attribute(node: Node, x: Any, lengths: Host = None, *, axis: int = 0, split: Any = None) -> Any:
    return parts_of(node, x, split if lengths is None else numbers(lengths), axis, len(node.outputs))


@row("Split", since=13)
def split(node: Node, x: Any, lengths: Host = None, *, axis: int = 0, num_outputs: int | None = None) -> Any:
    return parts_of(node, x, None if lengths is None else numbers(lengths), axis, num_outputs or len(node.outputs))


def parts_of(node: Node, x: Any, lengths: Sequence[int] | None, axis: int, count: int) -> tuple[Any, ...]:
    """An array split along an axis into these lengths, or into ``count`` parts of which the last may be shorter."""
    axis = node.axis(axis, x)
    whole = node.lengths(x)[axis]
    if lengths is None:
        whole = node.length(x, axis)
        each = -(-whole // count)
        lengths = [max(min(each, whole - i * each), 0) for i in range(count)]
    if sum(lengths) != whole or min(lengths, default=0) < 0:
        raise ShapeError(f"Split: an axis of length {whole} in parts {tuple(lengths)}")
    ends = np.cumsum([0, *lengths]).tolist()
    rest: tuple[Any, ...] = (None,) * axis
    return tuple([ops._npi_slice(x, begin=(*rest, begin), end=(*rest, end)) for begin, end in itertools.pairwise(ends)])


@row("Slice")
def slice_by_attributes(node: Node, x: Any, *, starts: Any, ends: Any, axes: Any = None) -> Any:
    return sliced(node, x, starts, ends, axes, None)


@row("Slice", since=10)
def slice_by_inputs(node: Node, x: Any, starts: Host, ends: Given, axes: Host = None, steps: Host = None) -> Any:
    places = range(len(starts)) if axes is None else numbers(axes)
    stops = _open_shape(node, ends)
    for i, (place, code) in enumerate(zip(places, stops)):
        axis = node.axis(place, x)
        if isinstance(code, Length) and code.axis <= axis and starts[i] == 0 and (steps is None or steps[i] == 1):
            like = _unsqueezed(node, code.value, range(axis - code.axis))
            x = ops.slice_like(x, like, axes=(axis,))
            stops[i] = END
    stops = stops if stops and not any(map(is_open, stops)) else node.host(ends)
    return sliced(node, x, numbers(starts), numbers(stops), places, None if steps is None else numbers(steps))


def sliced(node: Node, x: Any, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None,
           steps: Sequence[int] | None) -> Any:
    """A slice of an array."""
    lengths = node.lengths(x)
    steps = [1] * len(starts) if steps is None else steps
    axes = range(len(starts)) if axes is None else axes
    begin: list[Any] = [None] * len(lengths)
    end: list[Any] = [None] * len(lengths)
    step: list[Any] = [1] * len(lengths)
    for axis, first, last, stride in zip(axes, starts, ends, steps):
        axis = node.axis(axis, x)
        if stride == 0:
            raise ArgumentError("Slice: a step is 0")
        if lengths[axis] is ANY:
            if stride != 1:
                node.shape(x)
            begin[axis], end[axis] = first, None if last >= END else last
            continue
        low, high, _ = slice(first, last, stride).indices(lengths[axis])
        begin[axis], step[axis] = low, stride
        end[axis] = high if stride > 0 or high >= 0 else None
        if (high - low) * stride <= 0:
            begin[axis], end[axis], step[axis] = 0, 0, 1
    key = tuple([slice(*each) for each in zip(begin, end, step)])
    if all(each == slice(None, None, 1) for each in key):
        return x
    if known(lengths) and all(each.step > 0 for each in key):
        return ops._npi_slice(x, begin=tuple(begin), end=tuple(end), step=tuple(step))
    return ops._npi_slice(x, begin=tuple(begin), end=tuple(end), step=tuple(step))


@row("Gather")
def gather(node: Node, x: Given, indices: Given, *, axis: int = 0) -> Any:
    if isinstance(x, np.ndarray) and not computes(x.dtype):
        return np.take(x, node.host(indices), axis)
    x = node.lift(x)
    axis = node.axis(axis, x)
    length = node.lengths(x)[axis]
    if isinstance(indices, np.ndarray) and not indices.ndim and length is not ANY and -length <= indices < length:
        first = int(indices) % length  # a view
        return _squeezed(node, ops.slice_axis(x, axis=axis, begin=first, end=first + 1), [axis])
    return ops.take(x, node.lift(indices), axis=axis, mode="wrap")  # which wraps negative indices


@row("GatherElements")
def gather_elements(node: Node, x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = node.axis(axis, x)
    if not known((*node.lengths(x), *node.lengths(indices))):
        return along(node, x, indices, axis)
    length = node.shape(x)[axis]
    indices = ops._npi_where(ops._npi_less_scalar(indices, scalar=0), indices + length, indices)
    shape = node.shape(indices)
    for place, most in enumerate(shape):  # of other axes the first elements are read
        if place != axis and node.shape(x)[place] != most:
            x = ops.slice_axis(x, axis=place, begin=0, end=most)
    return along(node, x, indices, axis)


def along(node: Node, x: Any, indices: Any, axis: int) -> Any:
    """The elements at indices along an axis. An element may be read several times: its gradients are added."""
    own, shape = node.lengths(x), node.lengths(indices)
    if not known((*own, *shape)):
        return ops.gather_nd(x, _stacked(node, _along_axis(node, x, indices, axis)))
    strides = [math.prod(own[i + 1:]) for i in range(len(own))]
    base = sum((np.arange(length).reshape(-1, *[1] * (len(shape) - 1 - i)) * strides[i]
                for i, length in enumerate(shape) if i != axis), np.zeros(shape, np.int64))
    places = node.cast(indices, np.int64) * strides[axis] + node.lift(np.broadcast_to(base, shape).astype(np.int64))
    return ops.take(ops._np_reshape(x, newshape=(-1,)), places, axis=0)


def _from_first(node: Node, indices: Any, x: Any, axis: int) -> Any:
    """Nonnegative indices of an axis; negative ones count from its end."""
    length = node.lengths(x)[axis]
    if length is ANY:
        lengths = ops.slice_axis(ops.shape_array(x), axis=0, begin=axis, end=axis + 1)
        return ops._npi_mod(node.cast(node.lift(indices), np.int64), lengths)
    if isinstance(indices, np.ndarray):
        return indices.astype(np.int64) % length
    return ops._npi_mod_scalar(ops.Cast(indices, dtype="int64"), scalar=length)


def _counted(node: Node, like: Any, axis: int) -> Any:
    """The index of each element of an array along an axis."""
    shape = node.lengths(like)
    if known(shape):
        return np.indices(shape)[axis]
    return ops._np_cumsum(ops.ones_like(node.cast(like, np.int64)), axis=axis) - 1


def _along_axis(node: Node, x: Any, indices: Any, axis: int) -> list[Any]:
    """Indices of each axis of ``x`` for indices of one axis."""
    return [_from_first(node, indices, x, axis) if each == axis else _counted(node, indices, each)
            for each in range(node.rank(indices))]


def _stacked(node: Node, places: Sequence[Any]) -> Any:
    """Indices of several axes along a new first axis."""
    if all(isinstance(place, np.ndarray) for place in places):
        return np.stack(places).astype(np.int64)
    return ops.Concat(*[ops.expand_dims(node.cast(node.lift(place), np.int64), axis=0) for place in places], dim=0,
                      num_args=len(places))


def _along_last(node: Node, indices: Any) -> list[Any]:
    """Indices of each axis, taken from the last axis."""
    count = node.length(indices, node.rank(indices) - 1)
    if isinstance(indices, np.ndarray):
        return [indices[..., i] for i in range(count)]
    return [_squeezed(node, ops.slice_axis(indices, axis=-1, begin=i, end=i + 1), [-1]) for i in range(count)]


def _as_row(indices: Any) -> Any:
    """The indices of one element as a batch of one."""
    return indices[None] if isinstance(indices, np.ndarray) else ops.expand_dims(indices, axis=0)


@row("GatherND")
def gather_nd(node: Node, x: Any, indices: Given, *, batch_dims: int = 0) -> Any:
    if node.rank(indices) == 1:  # for one element
        return _squeezed(node, gather_nd(node, x, _as_row(indices), batch_dims=batch_dims), [0])
    last = _along_last(node, indices)
    full = [_counted(node, last[0], axis) for axis in range(batch_dims)]
    full += [_from_first(node, each, x, axis) for axis, each in enumerate(last, batch_dims)]
    return ops.gather_nd(x, node.lift(_stacked(node, full)))


@row("ScatterND")
def scatter_nd(node: Node, x: Any, indices: Given, updates: Any, *, reduction: str = "none") -> Any:
    if node.rank(indices) == 1:
        indices, updates = _as_row(indices), ops.expand_dims(updates, axis=0)
    places = [_from_first(node, each, x, axis) for axis, each in enumerate(_along_last(node, indices))]
    return _scattered(node, x, _stacked(node, places), updates, reduction)


@row("ScatterElements", "Scatter")
def scatter_elements(node: Node, x: Any, indices: Given, updates: Any, *, axis: int = 0, reduction: str = "none"
                     ) -> Any:
    places = _along_axis(node, x, indices, node.axis(axis, x))
    return _scattered(node, x, _stacked(node, places), updates, reduction)


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(node: Node, x: Any, places: Any, updates: Any, reduction: str) -> Any:
    """Updates written to indices of an array, or combined with its elements."""
    if reduction == "none":
        return ops._scatter_set_nd(x, updates, node.lift(places))
    if reduction == "add":
        return x + ops._backward_gather_nd(updates, node.lift(places), x)  # which adds updates with equal indices
    if reduction in ("max", "min") and is_floating(node.dtype(x)):
        return _extreme(node, x, node.lift(places), updates, reduction == "min")
    if MODE.recording and is_floating(node.dtype(x)):
        raise ArgumentError(f"{node.op_type}: no gradient goes through reduction={reduction!r}")
    result = node.host(x).copy()
    _REDUCTIONS[reduction].at(result, tuple(node.host(places)), node.host(updates))
    return result


def _extreme(node: Node, x: Any, places: Any, updates: Any, least: bool) -> Any:
    """The maximum or minimum of each element and its updates; equal ones share the gradient."""
    if least:
        return ops.negative(_extreme(node, ops.negative(x), places, ops.negative(updates), False))
    shape, axes = node.shape(x), node.length(places, 0)
    strides = np.array([math.prod(shape[i + 1:axes]) for i in range(axes)], np.int64).reshape(-1, *[1] * (
        node.rank(places) - 1))
    rows = math.prod(shape[:axes])
    flat = ops._np_reshape(ops._np_sum(ops.broadcast_mul(node.cast(places, np.int64), node.lift(strides)), axis=0),
                           newshape=(-1, 1))
    inner = math.prod(shape[axes:])
    flat = ops._np_reshape(ops.broadcast_add(flat * inner, node.lift(np.arange(inner, dtype=np.int64))),
                           newshape=(1, -1))
    own = ops._np_reshape(x, newshape=(rows * inner,))
    given = ops._np_reshape(updates, newshape=(-1,))
    order = node.cast(ops.argsort(ops.BlockGrad(given), axis=0, dtype="int64"), np.int64)
    # Written in ascending order, the largest is written last.
    best = ops._scatter_set_nd(ops.BlockGrad(own), ops.take(ops.BlockGrad(given), order, axis=0),
                               ops.take(flat, order, axis=1), shape=(rows * inner,))
    best = ops.broadcast_maximum(best, ops.BlockGrad(own))
    dtype = node.dtype(x)
    mine = node.cast(ops._npi_equal(ops.BlockGrad(own), best), dtype)
    theirs = node.cast(ops._npi_equal(ops.BlockGrad(given), ops.gather_nd(best, flat)), dtype)
    count = mine + ops._backward_gather_nd(theirs, flat, own)
    total = _masked_elements(own, mine) + ops._backward_gather_nd(_masked_elements(given, theirs), flat, own)
    return ops._np_reshape(total / count, newshape=shape)


def _masked_elements(x: Any, where: Any) -> Any:
    """Elements where a mask is nonzero, else zero, even for infinite elements."""
    return ops.where(where, x, ops.zeros_like(x))


@row("TensorScatter")
def tensor_scatter(node: Node, past: Any, update: Any, indices: Host = None, *, axis: int = -2, mode: str = "linear"
                   ) -> Any:
    axis, shape, new = node.axis(axis, past), node.shape(past), node.shape(update)
    starts = np.zeros(shape[0], np.int64) if indices is None else indices
    places = np.indices(new)
    places[axis] += starts.reshape(-1, *[1] * (len(new) - 1))
    if mode == "circular":
        places[axis] %= shape[axis]
    return _scattered(node, past, places.astype(np.int64), update, "none")


@row("Compress")
def compress(node: Node, x: Any, condition: Given, *, axis: int | None = None) -> Any:
    try:
        picked = np.flatnonzero(node.host(condition))
    except UnknownNumbers:
        data, along = (x, node.axis(axis, x)) if axis is not None else (ops._np_reshape(x, newshape=(-1,)), 0)
        return ops._contrib_boolean_mask(data, condition, axis=along)
    if axis is None:
        return ops.take(ops._np_reshape(x, newshape=(-1,)), node.lift(picked), axis=0)
    return ops.take(x, node.lift(picked), axis=node.axis(axis, x))


@row("NonZero")
def non_zero(node: Node, x: Given) -> Any:
    try:
        x = node.host(x)
    except UnknownNumbers:
        return ops.transpose(node.cast(ops._npx_nonzero(x), np.int64), axes=(1, 0))
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64)


@row("Unique")
def unique(node: Node, x: Given, *, axis: int | None = None, sorted: int = 1) -> Any:
    try:
        x = node.host(x)
    except UnknownNumbers:
        if not sorted:
            raise
        return ops._npi_unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


@row("Trilu")
def trilu(node: Node, x: Any, k: Host = None, *, upper: int = 1) -> Any:
    return (ops._npi_triu if upper else ops._npi_tril)(x, k=0 if k is None else int(k.reshape(-1)[0]))


@row("ReverseSequence")
def reverse_sequence(node: Node, x: Any, lengths: Host, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    shape = node.shape(x)
    steps = np.arange(shape[time_axis])[:, None]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)  # time, batch
    if time_axis > batch_axis:
        order = order.T
    full = order.reshape(*order.shape, *[1] * (len(shape) - 2))
    return ops._take_along_axis(x, node.lift(np.broadcast_to(full, shape).astype(np.int64)), axis=time_axis)


@row("OneHot")
def one_hot(node: Node, indices: Any, depth: Host, values: Any, *, axis: int = -1) -> Any:
    count = int(depth.reshape(-1)[0])
    sane((*[dim for dim in node.lengths(indices) if dim is not ANY], max(count, 0)))
    rank = node.rank(indices) + 1
    axis = axis + rank if axis < 0 else axis
    whole = node.cast(indices, np.int64)
    whole = ops._npi_where(ops._npi_less_scalar(whole, scalar=0), whole + count, whole)
    classes = np.arange(count, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])
    hot = ops._npi_equal(ops.expand_dims(whole, axis=axis), node.lift(classes))
    return ops.take(values, node.cast(hot, np.int64), axis=0)


@row("Pad")
def pad_by_attributes(node: Node, x: Any, *, pads: Any = None, paddings: Any = None, mode: str = "constant",
                      value: float = 0.0) -> Any:
    return padded(node, x, tuple(pads or paddings or ()), value, mode)


@row("Pad", since=11)
def pad(node: Node, x: Any, pads: Host, value: Given = None, axes: Host = None, *, mode: str = "constant") -> Any:
    widths, rank = numbers(pads), node.rank(x)
    if axes is not None:
        full, count = [0] * (2 * rank), len(widths) // 2
        for i, axis in enumerate(numbers(axes)):
            full[node.axis(axis, x)], full[node.axis(axis, x) + rank] = widths[i], widths[i + count]
        widths = tuple(full)
    fill = 0 if value is None else node.host(value).reshape(-1)[0].item()
    return padded(node, x, widths, fill, mode)


def padded(node: Node, x: Any, pads: Sequence[int], value: float, mode: str) -> Any:
    """An array padded before and after each axis; negative widths crop."""
    rank = node.rank(x)
    if len(pads) != 2 * rank:
        raise ShapeError(f"Pad: {len(pads)} widths for {rank} axes")
    widths = list(zip(pads[:rank], pads[rank:]))
    for axis, (before, behind) in enumerate(widths):
        if before < 0 or behind < 0:
            length = node.lengths(x)[axis]
            end = min(behind, 0) or None if length is ANY else length - max(-behind, 0)
            x = ops.slice_axis(x, axis=axis, begin=max(-before, 0), end=end)
    grown = [(max(before, 0), max(behind, 0)) for before, behind in widths]
    if not any(map(any, grown)):
        return x
    if known(node.lengths(x)):
        sane([dim + sum(pair) for dim, pair in zip(node.lengths(x), grown)])
    if mode != "constant":
        for axis, pair in enumerate(grown):
            if any(pair):
                kind = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}[mode]
                order = np.pad(np.arange(node.length(x, axis)), pair, kind)  # type: ignore[call-overload]
                x = ops.take(x, node.lift(order.astype(np.int64)), axis=axis)
        return x
    new = max(0, 4 - rank)  # new axes after the first: ``Pad`` takes images and volumes
    pairs = [*grown[:1], *[(0, 0)] * new, *grown[1:]]
    if len(pairs) in (4, 5) and not any(map(any, pairs[:2])) and is_floating(node.dtype(x)):
        for _ in range(new):
            x = ops.expand_dims(x, axis=1)
        x = ops.Pad(x, mode="constant", constant_value=value, pad_width=tuple(itertools.chain(*pairs)))
        return ops.squeeze(x, axis=tuple(range(1, 1 + new))) if new else x
    for axis, (before, behind) in enumerate(grown):
        pieces = []
        for width in (before, behind):
            lengths = list(node.shape(x)) if width else []
            if width:
                lengths[axis] = width
                sane(lengths)
            pieces.append(node.lift(np.full(lengths, value).astype(node.dtype(x))) if width else None)
        joined = [part for part in (pieces[0], x, pieces[1]) if part is not None]
        if len(joined) > 1:
            x = ops.Concat(*joined, dim=axis, num_args=len(joined))
    return x


@row("SpaceToDepth")
def space_to_depth(node: Node, x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = node.lengths_but_one(x)
    parts = ops._np_reshape(x, newshape=(n, c, h // blocksize, blocksize, w // blocksize, blocksize))
    axes = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return ops._np_reshape(ops.transpose(parts, axes=axes),
                           newshape=(n, c * blocksize ** 2, h // blocksize, w // blocksize))


@row("DepthToSpace")
def depth_to_space(node: Node, x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = node.lengths_but_one(x)
    deep = c // blocksize ** 2
    if mode == "DCR":
        parts, axes = ops._np_reshape(x, newshape=(n, blocksize, blocksize, deep, h, w)), (0, 3, 4, 1, 5, 2)
    else:
        parts, axes = ops._np_reshape(x, newshape=(n, deep, blocksize, blocksize, h, w)), (0, 1, 4, 2, 5, 3)
    return ops._np_reshape(ops.transpose(parts, axes=axes), newshape=(n, deep, h * blocksize, w * blocksize))


@row("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(node: Node, x: Given, indices: Given) -> Any:
    if isinstance(x, np.ndarray) and not computes(x.dtype):
        return np.take(x, node.host(indices).reshape(-1), axis=-1)
    return ops.take(node.lift(x), ops._np_reshape(node.lift(indices), newshape=(-1,)), axis=-1)

"""Rows of operators that create and reshape arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_known
from opreg.errors import ArgumentError, AttrError, ShapeError

from ..graph import Node, UnknownNumbers
from ..open_lengths import Length, is_open
from ..rows import Given, Host, row
from ..tensors import computes, dtype_of

__all__ = ["numbers", "open_shape", "reshape_value", "check_size", "squeeze_value", "unsqueeze_value", "END", "MOST"]

#: Largest number of elements of an array that a model may request by a shape.
MOST = 1 << 28

#: An end of a slice beyond the end of an axis of any length.
END = 1 << 31


def numbers(value: Any) -> tuple[int, ...]:
    """The elements of an array as Python integers."""
    return tuple([int(each) for each in np.asarray(value).reshape(-1)])


def check_size(shape: Sequence[int]) -> tuple[int, ...]:
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
    codes = open_shape(node, shape)
    if codes:
        return _expand(node, node.lift(value.reshape((1,) * len(codes))), codes)
    return np.full(check_size(numbers(node.host(shape))), value.reshape(-1)[0], value.dtype)


@row("Range")
def arange(node: Node, start: Host, limit: Given, delta: Host) -> Any:
    first, step = (value.reshape(-1)[0] for value in (start, delta))
    if step == 0:
        raise ArgumentError("Range: delta is 0")
    end = node.open_numbers(limit)
    if end is not None and isinstance(end.reshape(-1)[0], Length) and first == 0 and step == 1:
        ones = _expand(node, node.lift(np.ones(1, start.dtype)), [end.reshape(-1)[0]])
        return ops._np_cumsum(ones, axis=0) - 1
    last = node.host(limit).reshape(-1)[0]
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    check_size((count,))
    return (first + np.arange(count, dtype=start.dtype) * step).astype(start.dtype)


@row("EyeLike")
def eye_like(node: Node, x: Given, *, dtype: int | None = None, k: int = 0) -> Any:
    rows, columns = node.shape(x)
    return np.eye(rows, columns, k, node.dtype(x) if dtype is None else dtype_of(dtype))


@row("Shape")
def shape(node: Node, x: Given, *, start: int = 0, end: int | None = None) -> Any:
    lengths = node.lengths(x)[start:end]
    if is_known(lengths):
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
    return reshape_value(node, x, tuple(shape))


@row("Reshape", since=5)
def reshape(node: Node, x: Given, shape: Given, *, allowzero: int = 0) -> Any:
    codes = open_shape(node, shape)
    open_codes, closed = [code for code in codes if is_open(code)], [code for code in codes if not is_open(code)]
    if len(open_codes) == 1 and 0 not in closed:
        rest = _without(node, x, open_codes[0]) if -1 in closed else 0
        if rest is not None:
            rest //= math.prod([code for code in closed if code != -1])
            # The dynamic length is inferred from the others.
            codes = [-1 if is_open(code) else rest if code == -1 else code for code in codes]
            return reshape_value(node, node.lift(x), tuple(codes))
    if open_codes and 0 not in closed and all(
            _is_axis_length(x, code, axis) for axis, code in enumerate(codes) if is_open(code)):
        return reshape_value(node, node.lift(x), tuple([0 if is_open(code) else code for code in codes]))
    shape = node.host(shape)
    if isinstance(x, np.ndarray) and not computes(x.dtype):
        codes = [x.shape[i] if dim == 0 and not allowzero else dim for i, dim in enumerate(numbers(shape))]
        return x.reshape(codes)
    return reshape_value(node, node.lift(x), numbers(shape), bool(allowzero))


def open_shape(node: Node, shape: Any) -> list[Any]:
    """The lengths of a shape, if some are dynamic; an empty list if all are known."""
    result = None if isinstance(shape, np.ndarray) else node.open_numbers(shape)
    return list(result) if result is not None and result.ndim == 1 and any(map(is_open, result)) else []


def _is_axis_length(x: Any, length: Any, axis: int) -> bool:
    """Whether a dynamic length is that of an axis."""
    return isinstance(length, Length) and length.is_of(x) and length.axis == axis


def _without(node: Node, x: Any, length: Any) -> int | None:
    """The number of elements for each index along the axis with this dynamic length; None if it is dynamic too, or if
    the length belongs to another array."""
    if not (isinstance(length, Length) and length.is_of(x)):
        return None
    others = [each for axis, each in enumerate(node.lengths(x)) if axis != length.axis]
    return math.prod(others) if is_known(tuple(others)) else None


def reshape_value(node: Node, x: Any, codes: tuple[int, ...], literal: bool = False) -> Any:
    """An array in another shape, in which 0 keeps the length at its position unless ``literal``."""
    lengths = node.lengths(x)
    if not literal and not is_known(lengths) and codes and 0 in codes:
        places = [lengths[i] if dim == 0 and lengths[i] is not ANY else dim for i, dim in enumerate(codes)]
        if 0 in places:
            return ops.reshape(x, shape=tuple(places))
        codes = tuple(places)
    elif not literal:
        if any(dim == 0 and i >= len(lengths) for i, dim in enumerate(codes)):
            raise ShapeError(f"shape {codes} has 0 for an axis that the input of {len(lengths)} axes does not have")
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
    if not is_known(lengths):
        first, last = lengths[:axis], lengths[axis:]
        if is_known(last):
            return ops._np_reshape(x, newshape=(-1, math.prod(last)))
        if axis == 1:
            return ops.Flatten(x)
        return ops._np_reshape(x, newshape=(math.prod(node.shape(x)[:axis]) if first else 1, -1))
    return ops._np_reshape(x, newshape=(math.prod(lengths[:axis]), math.prod(lengths[axis:])))


@row("Squeeze")
def squeeze_by_attribute(node: Node, x: Any, *, axes: Any = None) -> Any:
    return squeeze_value(node, x, axes)


@row("Squeeze", since=13)
def squeeze(node: Node, x: Any, axes: Host = None) -> Any:
    return squeeze_value(node, x, None if axes is None else numbers(axes))


def squeeze_value(node: Node, x: Any, axes: Sequence[int] | None) -> Any:
    """The value without axes of length one: the given ones, or all."""
    if axes is None:
        axes = [i for i, dim in enumerate(node.shape(x)) if dim == 1]
    places = {node.axis(axis, x) for axis in axes}
    lengths = node.lengths(x)
    for place in places:
        if lengths[place] != 1:
            raise ShapeError(f"axis {place} has length {lengths[place]} and cannot be left out")
    remaining = [dim for i, dim in enumerate(lengths) if i not in places]
    if is_known(tuple(remaining)):
        return ops._np_reshape(x, newshape=tuple(remaining))
    return ops.squeeze(x, axis=tuple(sorted(places))) if places else x


@row("Unsqueeze")
def unsqueeze_by_attribute(node: Node, x: Any, *, axes: Any) -> Any:
    return unsqueeze_value(node, x, axes)


@row("Unsqueeze", since=13)
def unsqueeze(node: Node, x: Any, axes: Host) -> Any:
    return unsqueeze_value(node, x, numbers(axes))


def unsqueeze_value(node: Node, x: Any, axes: Sequence[int]) -> Any:
    """The value with axes of length one at these places."""
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
    codes = open_shape(node, shape)
    if codes:
        return _expand(node, x, codes)
    target = numbers(node.host(shape))
    have = node.lengths(x)
    missing = len(target) - len(have)
    if is_known(have):
        return ops._np_broadcast_to(x, shape=check_size(np.broadcast_shapes(have, target)))
    ones = ops.Cast(_full(target if missing >= 0 else (1,) * -missing + target, 1), dtype=node.dtype(x))
    return ops.broadcast_mul(x, ones)


def _expand(node: Node, x: Any, codes: Sequence[Any]) -> Any:
    """An array broadcast to a shape with dynamic lengths, which are those of other arrays."""
    rank, source = max(len(codes), node.rank(x)), x
    have = (1,) * (rank - node.rank(x)) + node.lengths(x)
    x = unsqueeze_value(node, x, range(rank - node.rank(x)))
    for axis, code in enumerate(codes, rank - len(codes)):
        if is_open(code):
            if not isinstance(code, Length):
                raise UnknownNumbers.of(node.op_type, "lengths that are known only when the graph runs")
            if code.is_of(source) and code.axis == axis - (rank - node.rank(source)):
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
    return Tensor(np.full(check_size(shape), value, dtype))


@row("Tile")
def tile(node: Node, x: Any, repeats: Host) -> Any:
    reps = numbers(repeats)
    if is_known(node.lengths(x)):
        check_size([dim * rep for dim, rep in zip(node.lengths(x), reps)])
    return ops.tile(x, reps=reps) if reps else x


@row("Identity", "SequenceIdentity")
def identity(node: Node, x: Given) -> Any:
    return x

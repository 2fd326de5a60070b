"""Rows of operators that join, split, index and pad arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core.mode import MODE
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_floating, is_known
from opreg.errors import ArgumentError, ShapeError

from ..graph import Node, UnknownNumbers
from ..open_lengths import Length, is_open
from ..rows import Given, Host, row
from ..tensors import computes
from .shapes import END, check_size, numbers, open_shape, squeeze_value, unsqueeze_value

__all__ = ["gather_along", "padded", "parts_of"]


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
    return slice_value(node, x, starts, ends, axes, None)


@row("Slice", since=10)
def slice_by_inputs(node: Node, x: Any, starts: Host, ends: Given, axes: Host = None, steps: Host = None) -> Any:
    places = range(len(starts)) if axes is None else numbers(axes)
    stops = open_shape(node, ends)
    for i, (place, code) in enumerate(zip(places, stops)):
        axis = node.axis(place, x)
        if isinstance(code, Length) and code.axis <= axis and starts[i] == 0 and (steps is None or steps[i] == 1):
            like = unsqueeze_value(node, code.value, range(axis - code.axis))
            x = ops.slice_like(x, like, axes=(axis,))
            stops[i] = END
    stops = stops if stops and not any(map(is_open, stops)) else node.host(ends)
    return slice_value(node, x, numbers(starts), numbers(stops), places, None if steps is None else numbers(steps))


def slice_value(node: Node, x: Any, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None,
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
    if is_known(lengths) and all(each.step > 0 for each in key):
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
        return squeeze_value(node, ops.slice_axis(x, axis=axis, begin=first, end=first + 1), [axis])
    return ops.take(x, node.lift(indices), axis=axis, mode="wrap")  # the mode wrap also converts negative indices


@row("GatherElements")
def gather_elements(node: Node, x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = node.axis(axis, x)
    if not is_known((*node.lengths(x), *node.lengths(indices))):
        return gather_along(node, x, indices, axis)
    length = node.shape(x)[axis]
    indices = ops._npi_where(ops._npi_less_scalar(indices, scalar=0), indices + length, indices)
    shape = node.shape(indices)
    for place, most in enumerate(shape):  # along the other axes, only as many elements are read as ``indices`` has
        if place != axis and node.shape(x)[place] != most:
            x = ops.slice_axis(x, axis=place, begin=0, end=most)
    return gather_along(node, x, indices, axis)


def gather_along(node: Node, x: Any, indices: Any, axis: int) -> Any:
    """The elements at indices along an axis. An element may be read several times: its gradients are added."""
    lengths, shape = node.lengths(x), node.lengths(indices)
    if not is_known((*lengths, *shape)):
        return ops.gather_nd(x, _stacked(node, _index_along(node, x, indices, axis)))
    strides = [math.prod(lengths[i + 1:]) for i in range(len(lengths))]
    base = sum((np.arange(length).reshape(-1, *[1] * (len(shape) - 1 - i)) * strides[i]
                for i, length in enumerate(shape) if i != axis), np.zeros(shape, np.int64))
    places = node.cast(indices, np.int64) * strides[axis] + node.lift(np.broadcast_to(base, shape).astype(np.int64))
    return ops.take(ops._np_reshape(x, newshape=(-1,)), places, axis=0)


def _count_from_first(node: Node, indices: Any, x: Any, axis: int) -> Any:
    """Nonnegative indices of an axis; negative ones count from its end."""
    length = node.lengths(x)[axis]
    if length is ANY:
        lengths = ops.slice_axis(ops.shape_array(x), axis=0, begin=axis, end=axis + 1)
        return ops._npi_mod(node.cast(node.lift(indices), np.int64), lengths)
    if isinstance(indices, np.ndarray):
        return indices.astype(np.int64) % length
    return ops._npi_mod_scalar(ops.Cast(indices, dtype="int64"), scalar=length)


def _indices_along(node: Node, like: Any, axis: int) -> Any:
    """The index of each element of an array along an axis."""
    shape = node.lengths(like)
    if is_known(shape):
        return np.indices(shape)[axis]
    return ops._np_cumsum(ops.ones_like(node.cast(like, np.int64)), axis=axis) - 1


def _index_along(node: Node, x: Any, indices: Any, axis: int) -> list[Any]:
    """Indices of each axis of ``x`` for indices of one axis."""
    return [_count_from_first(node, indices, x, axis) if each == axis else _indices_along(node, indices, each)
            for each in range(node.rank(indices))]


def _stacked(node: Node, places: Sequence[Any]) -> Any:
    """Indices of several axes along a new first axis."""
    if all(isinstance(place, np.ndarray) for place in places):
        return np.stack(places).astype(np.int64)
    return ops.Concat(*[ops.expand_dims(node.cast(node.lift(place), np.int64), axis=0) for place in places], dim=0,
                      num_args=len(places))


def _indices_of_last_axis(node: Node, indices: Any) -> list[Any]:
    """Indices of each axis, taken from the last axis."""
    count = node.length(indices, node.rank(indices) - 1)
    if isinstance(indices, np.ndarray):
        return [indices[..., i] for i in range(count)]
    return [squeeze_value(node, ops.slice_axis(indices, axis=-1, begin=i, end=i + 1), [-1]) for i in range(count)]


def _add_batch_axis(indices: Any) -> Any:
    """The indices of one element as a batch of one."""
    return indices[None] if isinstance(indices, np.ndarray) else ops.expand_dims(indices, axis=0)


@row("GatherND")
def gather_nd(node: Node, x: Any, indices: Given, *, batch_dims: int = 0) -> Any:
    if node.rank(indices) == 1:  # for one element
        return squeeze_value(node, gather_nd(node, x, _add_batch_axis(indices), batch_dims=batch_dims), [0])
    last = _indices_of_last_axis(node, indices)
    full = [_indices_along(node, last[0], axis) for axis in range(batch_dims)]
    full += [_count_from_first(node, each, x, axis) for axis, each in enumerate(last, batch_dims)]
    return ops.gather_nd(x, node.lift(_stacked(node, full)))


@row("ScatterND")
def scatter_nd(node: Node, x: Any, indices: Given, updates: Any, *, reduction: str = "none") -> Any:
    if node.rank(indices) == 1:
        indices, updates = _add_batch_axis(indices), ops.expand_dims(updates, axis=0)
    places = [_count_from_first(node, each, x, axis) for axis, each in enumerate(_indices_of_last_axis(node, indices))]
    return _scatter(node, x, _stacked(node, places), updates, reduction)


@row("ScatterElements", "Scatter")
def scatter_elements(node: Node, x: Any, indices: Given, updates: Any, *, axis: int = 0, reduction: str = "none"
                     ) -> Any:
    places = _index_along(node, x, indices, node.axis(axis, x))
    return _scatter(node, x, _stacked(node, places), updates, reduction)


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(node: Node, x: Any, places: Any, updates: Any, reduction: str) -> Any:
    """Updates written to indices of an array, or combined with its elements."""
    if reduction == "none":
        return ops._scatter_set_nd(x, updates, node.lift(places))
    if reduction == "add":
        return x + ops._backward_gather_nd(updates, node.lift(places), x)  # it adds updates with equal indices
    if reduction in ("max", "min") and is_floating(node.dtype(x)):
        return _extreme(node, x, node.lift(places), updates, reduction == "min")
    if MODE.recording and is_floating(node.dtype(x)):
        raise ArgumentError(f"{node.op_type}: there is no gradient with reduction={reduction!r}")
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
    flat_updates = ops._np_reshape(updates, newshape=(-1,))
    order = node.cast(ops.argsort(ops.BlockGrad(flat_updates), axis=0, dtype="int64"), np.int64)
    # Written in ascending order, the largest is written last.
    best = ops._scatter_set_nd(ops.BlockGrad(own), ops.take(ops.BlockGrad(flat_updates), order, axis=0),
                               ops.take(flat, order, axis=1), shape=(rows * inner,))
    best = ops.broadcast_maximum(best, ops.BlockGrad(own))
    dtype = node.dtype(x)
    mine = node.cast(ops._npi_equal(ops.BlockGrad(own), best), dtype)
    theirs = node.cast(ops._npi_equal(ops.BlockGrad(flat_updates), ops.gather_nd(best, flat)), dtype)
    count = mine + ops._backward_gather_nd(theirs, flat, own)
    total = _masked_elements(own, mine) + ops._backward_gather_nd(_masked_elements(flat_updates, theirs), flat, own)
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
    return _scatter(node, past, places.astype(np.int64), update, "none")


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
    check_size((*[dim for dim in node.lengths(indices) if dim is not ANY], max(count, 0)))
    rank = node.rank(indices) + 1
    axis = axis + rank if axis < 0 else axis
    places = node.cast(indices, np.int64)
    places = ops._npi_where(ops._npi_less_scalar(places, scalar=0), places + count, places)
    classes = np.arange(count, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])
    hot = ops._npi_equal(ops.expand_dims(places, axis=axis), node.lift(classes))
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
    if is_known(node.lengths(x)):
        check_size([dim + sum(pair) for dim, pair in zip(node.lengths(x), grown)])
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
                check_size(lengths)
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

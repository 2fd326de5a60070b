"""Translations of reshaping, repeating, slicing, joining, padding and reordering; and of reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.rules import as_list
from ...core.spec import check_axes, is_floating
from ...interop.translation import Untranslatable
from .builder import Builder, Value, dynamic, product
from .table import Use, says

_BOOL = np.dtype(bool)


@says("Reshape", "_np_reshape", "_npx_reshape", "reshape_like", "Flatten", "expand_dims", "squeeze")
def _reshape(g: Builder, use: Use, x: Value, *like: Any) -> Value:
    name, rank = use.op.name, len(x.shape)
    if name == "Flatten" and rank > 0:
        return g("Flatten", x, axis=1) if rank != 2 else x
    if name == "expand_dims":
        return g.unsqueeze(x, [use.attrs["axis"] % (rank + 1)])
    if name == "squeeze" and len(use.out.shape) < rank:
        axis = use.attrs["axis"]
        axes = [i for i, dim in enumerate(x.shape) if not dynamic(dim) and dim == 1] if axis is None else [
            each % rank for each in (axis if isinstance(axis, (tuple, list)) else (axis,))]
        if rank - len(axes) == len(use.out.shape):
            return g.squeeze(x, axes)
    if name == "reshape_like" and like and use.attrs["lhs_begin"] is None and use.attrs["lhs_end"] is None and (
            use.attrs["rhs_begin"] is None and use.attrs["rhs_end"] is None):
        return g("Reshape", x, g("Shape", like[0]))
    return g.reshape(x, use.out.shape)


@says("shape_array", "size_array")
def _shape(g: Builder, use: Use, x: Value) -> Value:
    if use.op.name == "shape_array":
        return g("Shape", x)
    return g.reshape(g("Size", x), (1,))


@says("Cast", "amp_cast")
def _cast(g: Builder, use: Use, x: Value) -> Value:
    return g.cast(x, use.out.dtype)


@says("zeros_like", "ones_like", "_npi_full_like")
def _like(g: Builder, use: Use, x: Value) -> Value:
    value = {"zeros_like": 0, "ones_like": 1}.get(use.op.name)
    return g.constant_like(use.attrs["fill_value"] if value is None else value, x, use.out.dtype)


@says("_zeros", "_ones", "_full", "_zeros_without_dtype")
def _new(g: Builder, use: Use) -> Value:
    value = {"_ones": 1, "_full": use.attrs.get("value")}.get(use.op.name, 0)
    return g.broadcast(g.constant(np.asarray(value).astype(use.out.dtype)), use.out.shape)


@says("broadcast_like")
def _broadcast_like(g: Builder, use: Use, x: Value, like: Value) -> Value:
    if use.attrs["lhs_axes"] is not None:
        return g.broadcast(x, use.out.shape)
    return g.broadcast_like(x, like)


@says("tile")
def _tile(g: Builder, use: Use, x: Value) -> Value:
    reps = as_list(use.attrs["reps"])
    rank = len(x.shape)
    x = g.unsqueeze(x, range(len(reps) - rank)) if len(reps) > rank else x
    reps = [1] * (len(x.shape) - len(reps)) + reps
    return g("Tile", x, g.ints(*reps))


@says("repeat")
def _repeat(g: Builder, use: Use, x: Value) -> Value:
    axis, count = use.attrs["axis"], use.attrs["repeats"]
    if not isinstance(count, int):
        raise Untranslatable("different numbers of repeats")
    if axis is None:
        x, axis = g.reshape(x, (_flat(x),)), 0
    axis %= len(x.shape)
    before, behind = x.shape[:axis], x.shape[axis + 1:]
    wide = g("Tile", g.unsqueeze(x, [axis + 1]), g.ints(*[1] * (axis + 1), count, *[1] * len(behind)))
    return g.reshape(wide, (*before, x.shape[axis] * count, *behind))


def _flat(x: Value) -> Any:
    return math.prod(x.shape)


@says("_npi_where", "where")
def _where(g: Builder, use: Use, condition: Value, x: Value, y: Value) -> Value:
    rank = len(condition.shape)
    if use.op.name == "where" and rank < len(x.shape):  # a vector selects rows
        condition = g.unsqueeze(condition, range(rank, len(x.shape)))
    return g.where(condition, g.cast(x, use.out.dtype), g.cast(y, use.out.dtype))


@says("_npi_tril", "_npi_triu")
def _triangle(g: Builder, use: Use, x: Value) -> Value:
    upper, k = use.op.name == "_npi_triu", use.attrs["k"]
    if len(x.shape) < 2:
        raise Untranslatable("a triangle of a vector")
    if g.opset >= 14:
        return g("Trilu", x, g.constant(np.asarray(k, np.int64)), upper=int(upper))
    ones = np.ones([product([dim]) for dim in x.shape[-2:]], bool)
    return g.where(g.constant((np.triu if upper else np.tril)(ones, k)), x, 0)


@says("_np_roll")
def _roll(g: Builder, use: Use, x: Value) -> Value:
    shift, axis = use.attrs["shift"], use.attrs["axis"]
    shape = x.shape
    if axis is None:
        x = g.reshape(x, (_flat(x),))
        axis = 0
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    for by, along in zip(shifts, axes):
        along %= len(x.shape)
        length = product([x.shape[along]])
        by = by % length if length else 0
        if by:
            x = g.concat([g.slice(x, [length - by], [length], [along]), g.slice(x, [0], [length - by], [along])], along)
    return g.reshape(x, shape)


# ------------------------------------------------------------------------------------------- joining, cutting


@says("Concat", "_rnn_param_concat")
def _concat(g: Builder, use: Use, *xs: Value) -> Value:
    xs = tuple([g.cast(x, use.out.dtype) for x in xs])
    return g.concat(xs, use.attrs["dim"] % len(use.out.shape))


@says("stack")
def _stack(g: Builder, use: Use, *xs: Value) -> Value:
    axis = use.attrs["axis"] % len(use.out.shape)
    return g.concat([g.unsqueeze(x, [axis]) for x in xs], axis)


@says("SliceChannel", "_split_v2")
def _split(g: Builder, use: Use, x: Value) -> Sequence[Value]:
    axis = use.attrs["axis"] % len(x.shape)
    if use.op.name == "_split_v2" and not use.attrs["sections"]:
        return _pieces(g, use, x, axis)
    count = use.attrs["num_outputs"] if use.op.name == "SliceChannel" else use.attrs["sections"]
    length = product([x.shape[axis]])
    parts = g.split(x, axis, [length // count + (i < length % count) for i in range(count)])
    return [g.squeeze(part, [axis]) for part in parts] if use.attrs["squeeze_axis"] else parts


def _pieces(g: Builder, use: Use, x: Value, axis: int) -> Sequence[Value]:
    starts = as_list(use.attrs["indices"])
    starts = starts if starts[:1] == [0] else [0, *starts]
    ends = [*starts[1:], 2 ** 31 - 1]
    return [g.reshape(g.slice(x, [start], [max(end, start)], [axis]), out.shape) if use.attrs["squeeze_axis"] else
            g.slice(x, [start], [max(end, start)], [axis]) for start, end, out in zip(starts, ends, use.outs)]


@says("slice")
def _slice(g: Builder, use: Use, x: Value) -> Value:
    steps = [*as_list(use.attrs["step"]), *[None] * len(x.shape)]
    return g.subscript(x, [slice(begin, end, step) for begin, end, step in zip(
        as_list(use.attrs["begin"]), as_list(use.attrs["end"]), steps)])


@says("slice_axis")
def _slice_axis(g: Builder, use: Use, x: Value) -> Value:
    axis = use.attrs["axis"] % len(x.shape)
    return g.subscript(x, (slice(None),) * axis + (slice(use.attrs["begin"], use.attrs["end"]),))


@says("_image_crop")
def _image_crop(g: Builder, use: Use, x: Value) -> Value:
    left, top = use.attrs["x"], use.attrs["y"]
    part = slice(top, top + use.attrs["height"]), slice(left, left + use.attrs["width"])
    return g.subscript(x, (slice(None),) * (len(x.shape) - 3) + part)


@says("_subscript")
def _subscript(g: Builder, use: Use, x: Value) -> Value:
    key = use.attrs["key"]
    parts = key if isinstance(key, tuple) else (key,)
    if all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts):
        return g.subscript(x, parts)
    alone = [part for part in parts if not isinstance(part, slice) and part is not Ellipsis]
    if len(alone) == 1 and all(part == slice(None) for part in parts if isinstance(part, slice)):  # along one axis
        at = next(i for i, part in enumerate(parts) if part is alone[0])
        axis = at if Ellipsis not in parts[:at] else len(x.shape) - len(parts) + at
        return g("Gather", x, g.constant(_indices_from_start(alone[0], x.shape[axis])), axis=axis)
    if any(map(dynamic, x.shape)):
        raise Untranslatable("a subscript of arrays: use take, gather_nd or boolean_mask")
    try:
        places = np.arange(product(x.shape)).reshape(x.shape)[key]
    except (IndexError, TypeError, ValueError):
        raise Untranslatable("a subscript with more axes than the array") from None
    return g("Gather", g.reshape(x, (product(x.shape),)), g.constant(np.ascontiguousarray(places)), axis=0)


def _indices_from_start(indices: Any, length: Any) -> np.ndarray:
    """Indices of an axis, counted from its beginning where its length is known."""
    places = np.asarray(indices, np.int64)
    return places if dynamic(length) else np.where(places < 0, places + length, places)


@says("slice_like")
def _slice_like(g: Builder, use: Use, x: Value, like: Value) -> Value:
    named = as_list(use.attrs["axes"]) or range(len(x.shape))
    axes = [axis % len(x.shape) for axis in named]  # of both arrays
    if any(dynamic(like.shape[axis]) for axis in axes):
        if g.opset < 10:
            raise Untranslatable("ONNX has Slice with dynamic ends from opset 10 on")
        ends = g.concat([g.length(like, axis) for axis in axes], 0)
        return g("Slice", x, g.ints(*[0] * len(axes)), ends, g.ints(*axes))
    return g.slice(x, [0] * len(axes), [like.shape[axis] for axis in axes], axes)


@says("Crop")
def _crop(g: Builder, use: Use, x: Value, *like: Value) -> Value:
    rows, columns = [product([dim]) for dim in use.out.shape[2:]]
    top, left = use.attrs["offset"]
    if use.attrs["center_crop"]:
        height, width = [product([dim]) for dim in x.shape[2:]]
        top, left = (height - rows) // 2, (width - columns) // 2
    return g.slice(x, [top, left], [top + rows, left + columns], [2, 3])


@says("Pad")
def _pad(g: Builder, use: Use, x: Value) -> Value:
    width = use.attrs["pad_width"]
    return g.pad(x, width[::2], width[1::2], use.attrs["constant_value"], use.attrs["mode"])


@says("depth_to_space", "space_to_depth")
def _depth(g: Builder, use: Use, x: Value) -> Value:
    if use.op.name == "depth_to_space":
        return g("DepthToSpace", x, blocksize=use.attrs["block_size"])
    return g("SpaceToDepth", x, blocksize=use.attrs["block_size"])


@says("reverse")
def _reverse(g: Builder, use: Use, x: Value) -> Value:
    return g.flip(x, check_axes(use.attrs["axis"], len(x.shape)))


@says("_contrib_arange_like")
def _arange_like(g: Builder, use: Use, x: Value) -> Value:
    attrs = use.attrs
    if attrs["repeat"] != 1:
        raise Untranslatable("repeats along an axis whose length is dynamic")
    axis = attrs["axis"]
    count = g.reshape(g("Size", x), (1,)) if axis is None else g.length(x, axis % len(x.shape))
    result = g.cast(g.numbers_to(count), use.out.dtype) * attrs["step"] + attrs["start"]
    return g("Reshape", result, g("Shape", x)) if axis is None else result


@says("_slice_assign", "_slice_assign_scalar", "_subscript_assign")
def _assign_at(g: Builder, use: Use, x: Value, *values: Value) -> Value:
    """Assignment to indices: a scatter into the flattened array."""
    attrs = use.attrs
    key: Any = attrs.get("key")
    if use.op.name != "_subscript_assign":
        steps = [*as_list(attrs["step"]), *[None] * len(x.shape)]
        key = tuple([slice(begin, end, step) for begin, end, step in zip(
            as_list(attrs["begin"]), as_list(attrs["end"]), steps)])
    count = product(x.shape)
    try:
        places = np.arange(count).reshape(x.shape)[key]
    except (IndexError, TypeError):
        raise Untranslatable("an assignment to a subscript of arrays") from None
    value = g.cast(values[0], x.dtype) if values else g.number(attrs["scalar"], x)
    surplus = len(value.shape) - places.ndim
    value = g.reshape(value, value.shape[surplus:]) if surplus > 0 else value
    value = g.reshape(g.broadcast(value, places.shape), (places.size,))
    flat = g.reshape(x, (count,))
    indices = g.constant(np.ascontiguousarray(places.reshape(-1)).astype(np.int64))
    kind = "ScatterElements" if g.opset >= 11 else "Scatter"
    return g.reshape(g(kind, flat, indices, value, axis=0) if places.size else flat, x.shape)


# ---------------------------------------------------------------------------------------------- reductions


def _axes(use: Use, x: Value) -> list[int]:
    """The axes to reduce."""
    rank, axis = len(x.shape), use.attrs.get("axis")
    if axis == () and use.op.name.startswith("_np"):
        return []
    axes = check_axes(axis, rank)
    if use.attrs.get("exclude") and axis is not None and axis != ():
        return [i for i in range(rank) if i not in axes]
    return list(axes)


_REDUCED = {"sum": "Sum", "_np_sum": "Sum", "mean": "Mean", "_npi_mean": "Mean", "prod": "Prod", "_np_prod": "Prod",
            "max": "Max", "_np_max": "Max", "min": "Min", "_np_min": "Min", "nansum": "Sum", "nanprod": "Prod",
            "_square_sum": "Sum"}


def _wide(g: Builder, use: Use, x: Value, kind: str) -> Value:
    """A value in the dtype that sums are computed in."""
    if kind in ("Max", "Min"):
        return g.cast(x, np.int32) if x.dtype == _BOOL or (g.opset < 12 and x.dtype.itemsize < 4) else x
    if is_floating(x.dtype):
        narrow = is_floating(use.out.dtype) and use.out.dtype.itemsize <= x.dtype.itemsize
        return x if narrow else g.cast(x, use.out.dtype)
    return g.cast(x, use.out.dtype if is_floating(use.out.dtype) else np.float64 if kind == "Mean" else np.int64)


@says(*_REDUCED)
def _reduced(g: Builder, use: Use, x: Value) -> Value:
    name = use.op.name
    kind = _REDUCED[name]
    if use.attrs.get("initial") is not None:
        raise Untranslatable("a reduction with an initial value")
    axes = _axes(use, x)
    if any(not dynamic(dim) and dim == 0 for dim in x.shape):
        value = {"Sum": 0.0, "Prod": 1.0, "Mean": math.nan if is_floating(use.out.dtype) else None}.get(kind)
        if value is None:
            raise Untranslatable("a reduction of an empty array")
        return g.constant(np.full([product([dim]) for dim in use.out.shape], value, use.out.dtype))
    if name.startswith("nan") and is_floating(x.dtype):
        x = g.where(g("IsNaN", x), 0.0 if kind == "Sum" else 1.0, x)
    x = _wide(g, use, x, kind)
    x = x * x if name == "_square_sum" else x
    keep = len(use.out.shape) == len(x.shape)
    return g.reduce(kind, x, axes, keep and bool(use.attrs.get("keepdims")))


@says("norm")
def _norm(g: Builder, use: Use, x: Value) -> Value:
    order = use.attrs["ord"]
    x = g.cast(x, use.out.dtype)
    return g.reduce(f"L{order}", x, _axes(use, x), bool(use.attrs["keepdims"]))


@says("moments")
def _moments(g: Builder, use: Use, x: Value) -> Any:
    axes = list(check_axes(use.attrs["axes"], len(x.shape)))
    mean = g.mean(x, axes)
    moved = x - mean
    keep = bool(use.attrs["keepdims"])
    return [mean if keep else g.squeeze(mean, axes), g.reduce("Mean", moved * moved, axes, keep)]


@says("_npi_var", "_npi_std")
def _variance(g: Builder, use: Use, x: Value) -> Value:
    axes = _axes(use, x)
    x = g.cast(x, use.out.dtype)
    moved = x - g.mean(x, axes)
    keep = bool(use.attrs["keepdims"])
    if use.attrs["ddof"]:
        count = product([x.shape[axis] for axis in axes]) - use.attrs["ddof"]
        result = g.reduce("Sum", moved * moved, axes, keep) / float(max(count, 0))
    else:
        result = g.reduce("Mean", moved * moved, axes, keep)
    return g("Sqrt", result) if use.op.name == "_npi_std" else result


@says("argmax", "argmin", "_npi_argmax", "_npi_argmin", "argmax_channel")
def _where_extreme(g: Builder, use: Use, x: Value) -> Value:
    kind = "ArgMax" if "argmax" in use.op.name else "ArgMin"
    if x.dtype == _BOOL:
        x = g.cast(x, np.int32)
    if use.op.name == "argmax_channel":
        return g(kind, x, axis=1 if len(x.shape) > 1 else 0, keepdims=0)
    axis, keep = use.attrs["axis"], bool(use.attrs["keepdims"])
    if axis is None:
        return g.reshape(g(kind, g.reshape(x, (_flat(x),)), axis=0), use.out.shape)
    return g(kind, x, axis=axis % len(x.shape), keepdims=int(keep))


@says("_np_cumsum")
def _cumsum(g: Builder, use: Use, x: Value) -> Value:
    axis = use.attrs["axis"]
    x = g.cast(x, use.out.dtype)
    if axis is None:
        x, axis = g.reshape(x, (_flat(x),)), 0
    return g("CumSum", x, g.constant(np.asarray(axis, np.int64)))


@says("_np_any", "_np_all")
def _any(g: Builder, use: Use, x: Value) -> Value:
    kind = "Max" if use.op.name == "_np_any" else "Min"
    if any(not dynamic(dim) and dim == 0 for dim in x.shape):
        return g.constant(np.full([product([dim]) for dim in use.out.shape], kind == "Min"))
    truths = g.cast(g.truth(x), np.int32)
    return g.reduce(kind, truths, _axes(use, x), bool(use.attrs["keepdims"]))

"""Translations of lookups: by indices, in sorted order, within sequence lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.spec import is_floating
from ...interop.translation import Untranslatable
from .builder import Builder, Value, dynamic, product
from .table import Use, says

_INT64 = np.dtype(np.int64)


def _axis_indices(g: Builder, indices: Value, x: Value, axis: int, mode: str) -> Value:
    """Indices as int64, valid for the axis."""
    indices = g.cast(indices, _INT64)
    length = x.shape[axis]
    last: Any = g.squeeze(g.length(x, axis), [0]) - 1 if dynamic(length) else length - 1
    if isinstance(indices.array, np.ndarray) and not dynamic(length) and indices.array.size and (
            indices.array.min() >= 0 and indices.array.max() < length):
        return indices
    if mode in ("wrap", "index"):
        return g("Mod", indices, last + 1)
    if mode == "raise":
        return indices
    return g.smaller(g.larger(indices, 0), last)


@says("take")
def _take(g: Builder, use: Use, x: Value, indices: Value) -> Value:
    axis = use.attrs["axis"] % len(x.shape)
    return g.gather(x, _axis_indices(g, indices, x, axis, use.attrs["mode"]), axis)


@says("Embedding")
def _embedding(g: Builder, use: Use, indices: Value, weight: Value) -> Value:
    return g.gather(weight, _axis_indices(g, indices, weight, 0, "clip"), 0)


@says("pick")
def _pick(g: Builder, use: Use, x: Value, index: Value) -> Value:
    axis = use.attrs["axis"] % len(x.shape)
    if len(index.shape) < len(x.shape):
        index = g.unsqueeze(index, [axis])
    result = g("GatherElements", x, _axis_indices(g, index, x, axis, use.attrs["mode"]), axis=axis)
    return result if use.attrs["keepdims"] or len(x.shape) == 1 else g.squeeze(result, [axis])


@says("_take_along_axis")
def _gather_along(g: Builder, use: Use, x: Value, indices: Value) -> Value:
    axis = use.attrs["axis"]
    if axis is None:
        x, axis = g.reshape(x, (product(x.shape),)), 0
    return g("GatherElements", x, g.cast(indices, _INT64), axis=axis % len(x.shape))


@says("_backward_take_along_axis")
def _put_along(g: Builder, use: Use, values: Value, indices: Value, data: Value) -> Value:
    axis, zeros = use.attrs["axis"], g.constant_like(0, data, values.dtype)
    if axis is None:
        zeros, axis = g.reshape(zeros, (product(data.shape),)), 0
    result = g("ScatterElements", zeros, g.cast(indices, _INT64), values, axis=axis % len(zeros.shape),
               **_adding_attribute(g))
    return g.reshape(result, data.shape)


@says("one_hot")
def _one_hot(g: Builder, use: Use, indices: Value) -> Value:
    attrs = use.attrs
    places = g.unsqueeze(g.cast(indices, _INT64), [len(indices.shape)])
    kind = use.out.dtype
    on, off = (g.constant(np.asarray(attrs[name]).astype(kind)) for name in ("on_value", "off_value"))
    return g.where(g.compare("Equal", places, g.constant(np.arange(attrs["depth"]))), on, off)


@says("gather_nd")
def _gather_nd(g: Builder, use: Use, x: Value, indices: Value) -> Value:
    if indices.shape[0] == 0:
        raise Untranslatable("no index")
    rank = len(indices.shape)
    return g("GatherND", x, g.transpose(g.cast(indices, _INT64), [*range(1, rank), 0]))


@says("scatter_nd")
def _scatter_nd(g: Builder, use: Use, x: Value, indices: Value) -> Value:
    zeros = g.constant(np.zeros([product([dim]) for dim in use.out.shape], x.dtype))
    return _emit_scatter_nd(g, zeros, indices, x)


@says("_scatter_set_nd")
def _scatter_set(g: Builder, use: Use, x: Value, values: Value, indices: Value) -> Value:
    return _emit_scatter_nd(g, x, indices, values)


@says("_backward_gather_nd")
def _gather_sum(g: Builder, use: Use, values: Value, indices: Value, *data: Value) -> Value:
    zeros = (g.constant_like(0, data[0], values.dtype) if data else
             g.constant(np.zeros(use.attrs["shape"], values.dtype)))
    return _emit_scatter_nd(g, zeros, indices, values, **_adding_attribute(g))


def _adding_attribute(g: Builder) -> dict[str, Any]:
    """The attribute of a scattering node that adds the values of equal indices."""
    if g.opset < 16:
        raise Untranslatable(f"ONNX adds at indices from opset 16 on, but the model is to have opset {g.opset}")
    return {"reduction": "add"}


def _emit_scatter_nd(g: Builder, x: Value, indices: Value, values: Value, **attrs: Any) -> Value:
    rank = len(indices.shape)
    return g("ScatterND", x, g.transpose(g.cast(indices, _INT64), [*range(1, rank), 0]), values, **attrs)


@says("_contrib_index_copy")
def _index_copy(g: Builder, use: Use, x: Value, indices: Value, values: Value) -> Value:
    return g("ScatterND", x, g.unsqueeze(g.cast(indices, _INT64), [1]), values)


@says("_contrib_boolean_mask")
def _mask(g: Builder, use: Use, x: Value, index: Value) -> Value:
    return g("Compress", x, g.truth(index), axis=use.attrs["axis"] % len(x.shape))


@says("_npx_nonzero")
def _nonzero(g: Builder, use: Use, x: Value) -> Value:
    return g.transpose(g("NonZero", x), (1, 0))


@says("_npi_unique")
def _unique(g: Builder, use: Use, x: Value) -> list[Value]:
    attrs = use.attrs
    axis = attrs["axis"]
    kind = x.dtype
    result = g("Unique", x, count=4, axis=None if axis is None else axis % len(x.shape))
    options = ("return_index", "return_inverse", "return_counts")
    result[0].dtype = kind
    return [result[0], *[each for each, name in zip(result[1:], options) if attrs[name]]]


@says("_histogram")
def _histogram(g: Builder, use: Use, x: Value, *bins: Value) -> list[Value]:
    """The number of elements at or above each edge but the last, minus that of the next; the last edge is included."""
    attrs = use.attrs
    if bins:
        edges = bins[0]
    else:
        low, high = attrs["range"]
        edges = g.constant(np.linspace(low, high, attrs["bin_cnt"] + 1).astype(use.outs[1].dtype))
    last = product(edges.shape) - 1
    flat = g.reshape(x, (1, product(x.shape)))
    begins = g.unsqueeze(g.slice(edges, [0], [last], [0]), [1])
    ends = g.unsqueeze(g.slice(edges, [1], [last + 1], [0]), [1])
    final = g.constant((np.arange(last) == last - 1)[:, None])
    inside = g("And", g.compare("GreaterOrEqual", flat, begins), g("Or", g.compare("Less", flat, ends), g(
        "And", final, g.compare("Equal", flat, ends))))
    return [g.reduce("Sum", g.cast(inside, _INT64), [1], False), edges]


@says("diag")
def _diag(g: Builder, use: Use, x: Value) -> Value:
    """A diagonal, gathered by source indices; zeros come from an index past the end."""
    attrs = use.attrs
    shape = [product([dim]) for dim in x.shape]
    count = int(np.prod(shape))
    places = np.arange(count).reshape(shape)
    if len(shape) == 1:
        k = attrs["k"]
        taken = np.full((shape[0] + abs(k),) * 2, count)
        rows = np.arange(shape[0])
        taken[rows + max(-k, 0), rows + max(k, 0)] = places
    else:
        taken = np.diagonal(places, attrs["k"], attrs["axis1"], attrs["axis2"])
    return _take_flat(g, x, taken, count)


def _take_flat(g: Builder, x: Value, taken: np.ndarray, count: int) -> Value:
    """Elements of the flattened ``x`` by index, or zero past the end."""
    flat = g.reshape(x, (count,))
    if (taken >= count).any():
        flat = g.concat([flat, g.constant(np.zeros(1, x.dtype))], 0)
    return g.gather(flat, g.constant(np.ascontiguousarray(taken, np.int64)), 0)


def picked_last(g: Builder, x: Value, taken: np.ndarray, count: int, axes: int) -> Value:
    """Elements of the last axes, flattened, by index; see ``_take_flat``."""
    flat = g.reshape(x, (*x.shape[:len(x.shape) - axes], count))
    if (taken >= count).any():
        flat = g.pad(flat, [0] * len(flat.shape), [0] * (len(flat.shape) - 1) + [1])
    return g.gather(flat, g.constant(np.ascontiguousarray(taken, np.int64)), len(flat.shape) - 1)


@says("_linalg_extractdiag", "_linalg_extracttrian", "_linalg_makediag", "_linalg_maketrian", "_linalg_triangle")
def _triangles(g: Builder, use: Use, x: Value) -> Value:
    name, attrs = use.op.name.removeprefix("_linalg_"), use.attrs
    if name == "triangle":
        size = product(x.shape[-1:])
        ones = np.ones((size, size), bool)
        return g.where(g.constant(np.tril(ones) if attrs["lower"] else np.triu(ones)), x, 0.0)
    size = product((x if name.startswith("extract") else use.out).shape[-1:])
    numbers = np.arange(size * size).reshape(size, size)
    offset = attrs["offset"]
    if "diag" in name:
        rows, columns = np.nonzero(np.eye(size, k=offset, dtype=bool))
    else:  # row by row if lower, else column by column
        far, near = np.tril_indices(size - abs(offset))
        far = far + abs(offset)
        rows, columns = (far, near) if offset < 0 or (offset == 0 and attrs["lower"]) else (near, far)
    if name.startswith("extract"):
        return picked_last(g, x, numbers[rows, columns], size * size, 2)
    taken = np.full((size, size), len(rows))
    taken[rows, columns] = np.arange(len(rows))
    return picked_last(g, x, taken, len(rows), 1)


@says("_linalg_det")
def _det(g: Builder, use: Use, x: Value) -> Any:
    return [g("Det", x)]


@says("_linalg_sumlogdiag")
def _sum_log_diag(g: Builder, use: Use, x: Value) -> Value:
    size = product(x.shape[-1:])
    result = picked_last(g, x, np.arange(size) * (size + 1), size * size, 2)
    return g.reduce("Sum", g("Log", result), [len(result.shape) - 1], False)


@says("_unravel_index")
def _unravel(g: Builder, use: Use, x: Value) -> Value:
    shape = use.attrs["shape"]
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    flat = g.cast(x, _INT64)
    rows = []
    for i, length in enumerate(lengths):
        whole = g("Div", flat, product(lengths[i + 1:]))
        rows.append(g.unsqueeze(g("Mod", whole, length) if i else whole, [0]))
    return g.cast(g.concat(rows, 0), use.out.dtype)


@says("multi_sum_sq")
def _sums_of_squares(g: Builder, use: Use, *xs: Value) -> Value:
    wide = [g.cast(x, np.float32) for x in xs]
    sums = [g.reduce("Sum", x * x, range(len(x.shape)), False) for x in wide]
    return g.concat([g.reshape(each, (1,)) for each in sums], 0)


# ------------------------------------------------------------------------------------------------ sorting


@says("sort", "argsort", "topk")
def _sort(g: Builder, use: Use, x: Value) -> Any:
    attrs, name = use.attrs, use.op.name
    axis = attrs["axis"]
    if axis is None:
        x, axis = g.reshape(x, (product(x.shape),)), 0
    axis %= len(x.shape)
    k: Any = attrs["k"] if name == "topk" and attrs["k"] > 0 else x.shape[axis]
    k = g.length(x, axis) if dynamic(k) else k
    kind = x.dtype
    if not is_floating(kind) and kind not in (np.int32, np.int64):
        x = g.cast(x, np.int32)
    values, places = g.topk(x, k, axis, not attrs["is_ascend"])
    if name == "sort":
        return values
    returned = attrs["ret_typ"] if name == "topk" else "indices"
    if returned == "mask":
        shape = [product([dim]) for dim in x.shape]
        zeros = g.constant(np.zeros(shape, kind))
        ones = g.constant(np.ones([product([dim]) for dim in places.shape], kind))
        return g.reshape(g("ScatterElements", zeros, places, ones, axis=axis), use.out.shape)
    return places if returned == "indices" else [values, places]


# ----------------------------------------------------------------------------------------------- sequences


def _steps(g: Builder, x: Value, axis: int) -> Value:
    """The step indices, along an axis."""
    rank = len(x.shape)
    shape = [-1 if i == axis else 1 for i in range(rank)]
    if not dynamic(x.shape[axis]):
        return g.constant(np.arange(x.shape[axis], dtype=np.int64).reshape(shape))
    return g.unsqueeze(g.numbers_to(g.length(x, axis)), [i for i in range(rank) if i != axis])


def _lengths(g: Builder, x: Value, length: Value, axis: int) -> Value:
    """The sequence lengths, along the other of the first two axes."""
    rank = len(x.shape)
    return g.unsqueeze(g.cast(length, _INT64), [i for i in range(rank) if i != 1 - axis])


@says("SequenceMask")
def _sequence_mask(g: Builder, use: Use, x: Value, *length: Value) -> Value:
    attrs = use.attrs
    if not length:
        return x
    axis = attrs["axis"]
    inside = g.compare("Less", _steps(g, x, axis), _lengths(g, x, length[0], axis))
    return g.where(inside, x, attrs["value"])


@says("SequenceLast")
def _sequence_last(g: Builder, use: Use, x: Value, *length: Value) -> Value:
    axis = use.attrs["axis"]
    if not length:
        return g.subscript(x, (slice(None),) * axis + (-1,))
    before = g.larger(g.cast(length[0], _INT64) - 1, 0)  # an empty sequence has its first element here
    count = g.squeeze(g.length(x, axis), [0]) if dynamic(x.shape[axis]) else x.shape[axis]
    places = g.smaller(before, count - 1)
    last = g.compare("Equal", _steps(g, x, axis), _lengths(g, x, places, axis))
    return g.reduce("Sum", g.where(last, x, 0.0), [axis], False)


@says("SequenceReverse")
def _sequence_reverse(g: Builder, use: Use, x: Value, *length: Value) -> Value:
    axis = use.attrs["axis"]
    if not length:
        return g.flip(x, [axis])
    if g.opset >= 10:
        return g("ReverseSequence", x, g.cast(length[0], _INT64), time_axis=axis, batch_axis=1 - axis)
    raise Untranslatable("ONNX has ReverseSequence from opset 10 on")


@says("im2col")
def _im2col(g: Builder, use: Use, x: Value) -> Value:
    """A convolution whose kernels have a single nonzero element, 1."""
    attrs = use.attrs
    channels, taps = product(x.shape[1:2]), int(np.prod(attrs["kernel"]))
    rank = len(attrs["kernel"])
    ones = np.tile(np.eye(taps, dtype=x.dtype).reshape(taps, 1, *attrs["kernel"]), (channels, *[1] * (rank + 1)))
    result = g("Conv", x, g.constant(ones), kernel_shape=list(attrs["kernel"]), group=channels,
               pads=[*(attrs["pad"] or (0,) * rank)] * 2, strides=list(attrs["stride"] or (1,) * rank),
               dilations=list(attrs["dilate"] or (1,) * rank))
    return g.reshape(result, use.out.shape)


@says("col2im")
def _col2im(g: Builder, use: Use, x: Value) -> Value:
    attrs = use.attrs
    ones = (1,) * len(attrs["kernel"])
    pad = attrs["pad"] or (0,) * len(ones)
    return g("Col2Im", x, g.ints(*attrs["output_size"]), g.ints(*attrs["kernel"]), pads=[*pad, *pad],
             strides=list(attrs["stride"] or ones), dilations=list(attrs["dilate"] or ones))


@says("_contrib_fft", "_contrib_ifft")
def _fourier(g: Builder, use: Use, x: Value) -> Value:
    """The Fourier transform; ONNX's has real and imaginary parts on a last axis."""
    inverse, rank, count = use.op.name == "_contrib_ifft", len(x.shape), product(x.shape[-1:])
    wide = x if x.dtype in (np.float32, np.float64) else g.cast(x, np.float32)
    parts = g.reshape(wide, (*x.shape[:-1], count // 2, 2)) if inverse else g.unsqueeze(wide, [rank])
    axis = {"axis": rank - 1} if g.opset < 20 else {}
    result = g("DFT", parts, *([] if axis else [None, g.constant(np.asarray(rank - 1))]), inverse=int(inverse), **axis)
    if inverse:
        return g.squeeze(g.slice(result, [0], [1], [rank]), [rank]) * (count // 2)
    return g.reshape(result, (*x.shape[:-1], 2 * count))


@says("softmax_cross_entropy")
def _cross_entropy(g: Builder, use: Use, x: Value, label: Value) -> Value:
    index, places, least = g.cast(label, _INT64), _axis_indices(g, label, x, 1, "clip"), math.log(1e-8)
    result = g.squeeze(g("GatherElements", g.log_softmax(x, 1), g.unsqueeze(places, [1]), axis=1), [1])
    return -g.reduce("Sum", g.larger(g.where(g("Equal", index, places), result, least), least), [0])

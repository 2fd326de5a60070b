"""Rows of image operators: resizing, regions and boxes."""

from __future__ import annotations

import functools
import io
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.core.spec import ANY, is_floating
from opreg.errors import ArgumentError, AttrError

from ..graph import Node
from ..open_lengths import Length, is_open
from ..rows import Given, Host, row
from .layers import all_axes
from .parts import gather_along, padded
from .shapes import check_size, numbers


@row("Col2Im")
def col2im(node: Node, x: Any, image_shape: Host, block_shape: Host, *, dilations: Any = None, pads: Any = None,
           strides: Any = None) -> Any:
    image, block = numbers(image_shape), numbers(block_shape)
    count, shape = len(image), node.shape(x)
    strides, dilations, pads = strides or [1] * count, dilations or [1] * count, pads or [0] * 2 * count
    full = [length + pads[i] + pads[count + i] for i, length in enumerate(image)]
    outs = [(full[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(count)]
    channels = shape[1] // math.prod(block)
    places = []
    for i in range(count):
        grid = np.arange(outs[i]) * strides[i] + np.arange(block[i])[:, None] * dilations[i]
        wide = [1] * (2 * count)
        wide[i], wide[count + i] = grid.shape
        places.append(np.broadcast_to(grid.reshape(wide), (*block, *outs)).reshape(-1))
    columns = ops._np_reshape(x, newshape=(shape[0], channels, len(places[0])))
    moved = ops.transpose(columns, axes=(2, 0, 1))
    canvas = node.lift(np.zeros((*full, shape[0], channels), node.dtype(x)))
    canvas = ops._backward_gather_nd(moved, node.lift(np.stack(places).astype(np.int64)), canvas)
    canvas = ops.transpose(canvas, axes=(count, count + 1, *range(count)))
    return padded(node, canvas, all_axes(node, canvas, [-pad for pad in pads[:count]],
                                         [-pad for pad in pads[count:]]), 0, "constant")


_NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5), "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor, "ceil": np.ceil, "simple": np.floor}


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _weights(at: np.ndarray, length: int, scale: float, mode: str, antialias: int, a: float, exclude: int
             ) -> np.ndarray:
    """Interpolation weights of the inputs along an axis: one row per output."""
    shrink = min(scale, 1.0) if antialias else 1.0
    support = (2 if mode == "cubic" else 1) / shrink
    first = np.floor(at - support).astype(int)
    reach = np.arange(math.ceil(2 * support) + 2)
    places = first[:, None] + reach
    distance = (places - at[:, None]) * shrink
    weight = _cubic(distance, a) if mode == "cubic" else np.maximum(1 - np.abs(distance), 0)
    if exclude:
        weight = np.where((places >= 0) & (places < length), weight, 0)
    weight = weight / np.maximum(np.abs(weight.sum(1, keepdims=True)), 1e-30) * np.sign(weight.sum(1, keepdims=True))
    matrix = np.zeros((len(at), length))
    np.add.at(matrix, (np.arange(len(at))[:, None], np.clip(places, 0, length - 1)), weight)
    return matrix


def _positions(outs: int, length: int, scale: float, how: str, start: float, end: float) -> np.ndarray:
    """Positions of outputs on the axis of the input."""
    x = np.arange(outs, dtype=np.float64)
    if how == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        middle = (1 - outs / (scale * length)) * length / 2
        return middle + (x + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if outs > 1 else x * 0
    if how == "align_corners":
        return x * (length - 1) / (scale * length - 1) if scale * length != 1 else x * 0
    if how == "asymmetric":
        return x / scale
    if how == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if how == "tf_crop_and_resize":
        if outs > 1:
            return start * (length - 1) + x * (end - start) * (length - 1) / (outs - 1)
        return np.full(1, 0.5 * (start + end) * (length - 1))
    raise AttrError(f"coordinate_transformation_mode={how!r} is not known")


@row("Upsample")
def upsample_by_attribute(node: Node, x: Any, scale: Host = None, *, scales: Any = None, mode: str = "nearest") -> Any:
    factors = [float(each) for each in (scales if scale is None else scale)]
    return _resized(node, x, list(range(len(factors))), None, factors, "linear" if "linear" in mode else mode,
                    how="asymmetric", rounding="floor")


@row("Resize")
def resize_10(node: Node, x: Any, scales: Host, *, mode: str = "nearest") -> Any:
    return _resized(node, x, list(range(len(scales))), None, [float(scale) for scale in scales], mode, how="asymmetric",
                    rounding="floor")


@row("Resize", since=11)
def resize(node: Node, x: Any, roi: Host = None, scales: Host = None, sizes: Given = None, *, antialias: int = 0,
           axes: Any = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor") -> Any:
    places = list(range(node.rank(x))) if axes is None else [node.axis(axis, x) for axis in axes]
    factors = [float(scale) for scale in scales] if scales is not None and scales.size else None
    target_sizes = None if sizes is None else _sizes(node, x, sizes, places)
    if target_sizes:
        lengths = node.lengths(x)
        factors = [1.0 if each is lengths[axis] is ANY else each / node.length(x, axis)
                   for each, axis in zip(target_sizes, places)]
        if keep_aspect_ratio_policy != "stretch":
            one = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors = [one] * len(places)
            target_sizes = [math.floor(one * node.length(x, axis) + 0.5) for axis in places]
    if factors is None:
        raise ArgumentError("Resize: neither scales nor sizes are given")
    return _resized(node, x, places, target_sizes, factors, mode, coordinate_transformation_mode, nearest_mode,
                    [float(each) for each in roi] if roi is not None and roi.size else None, antialias, cubic_coeff_a,
                    exclude_outside, extrapolation_value)


def _sizes(node: Node, x: Any, sizes: Any, axes: Sequence[int]) -> list[Any]:
    """The new lengths of axes: ANY for a dynamic length that does not change."""
    result = node.open_numbers(sizes)

    if result is None or any(is_open(each) and not (isinstance(each, Length) and each.is_of(x) and each.axis == axis)
                             for each, axis in zip(result, axes)):
        result = node.host(sizes)
    return [ANY if is_open(each) else int(each) for each in result]


def _repeats(scale: float, how: str, rounding: str) -> bool:
    """Whether the nearest neighbours of outputs are the inputs, each repeated ``scale`` times, whatever the length."""
    if scale != int(scale) or how not in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        return False
    at = np.arange(2).repeat(int(scale))
    return bool((np.clip(_NEAREST[rounding](_positions(len(at), 2, scale, how, 0.0, 1.0)), 0, 1) == at).all())


def _resized(node: Node, x: Any, places: Sequence[int], sizes: Any, scales: Sequence[float], mode: str, how: str,
             rounding: str, roi: Any = None, antialias: int = 0, a: float = -0.75, exclude: int = 0,
             outside: float = 0.0) -> Any:
    """An array with some axes resized by interpolation."""
    dtype, result, missing = node.dtype(x), x, None
    for i, axis in enumerate(places):
        if scales[i] == 1 and (sizes is None or node.lengths(x)[axis] == sizes[i]) and how != "tf_crop_and_resize":
            continue
        if node.lengths(x)[axis] is ANY and sizes is None and mode == "nearest" and _repeats(scales[i], how, rounding):
            result = ops.repeat(result, repeats=int(scales[i]), axis=axis)
            continue
        length = node.length(x, axis)
        outs = math.floor(length * scales[i]) if sizes is None else sizes[i]
        check_size((outs, length))
        start, end = (roi[i], roi[len(places) + i]) if roi is not None else (0.0, 1.0)
        at = _positions(outs, length, scales[i], how, start, end)
        if mode == "nearest":
            near = np.clip(_NEAREST[rounding](at), 0, length - 1).astype(np.int64)
            result = ops.take(result, node.lift(near), axis=axis)
        else:
            matrix = _weights(at, length, scales[i], mode, antialias, a, exclude).astype(
                dtype if is_floating(dtype) else np.float32)
            moved = ops.swapaxes(node.cast(result, matrix.dtype), dim1=axis, dim2=node.rank(x) - 1)
            result = ops.swapaxes(ops._npi_matmul(moved, node.lift(np.ascontiguousarray(matrix.T))), dim1=axis,
                                  dim2=node.rank(x) - 1)
        if how == "tf_crop_and_resize":
            shape = [1] * node.rank(x)
            shape[axis] = outs
            beyond = ((at < 0) | (at > length - 1)).reshape(shape)
            missing = beyond if missing is None else missing | beyond
    if missing is not None and missing.any():
        whole = node.lift(np.broadcast_to(missing, node.shape(result)).copy())
        result = ops._npi_where(whole, ops.zeros_like(result) + outside, result)
    return node.cast(result, dtype)


@row("GridSample")
def grid_sample(node: Node, x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Any:
    shape, places = node.lengths_but_one(x), node.lengths_but_one(grid)[1:-1]
    lengths, count = shape[2:], len(shape) - 2
    many = math.prod(places)
    flat = ops._np_reshape(x, newshape=(*shape[:2], math.prod(lengths)))
    at = []
    for i, length in enumerate(lengths):
        g = ops.slice_axis(grid, axis=-1, begin=count - 1 - i, end=count - i)
        g = ops._np_reshape(g, newshape=(shape[0], 1, many))
        at.append((g + 1.0) * ((length - 1) / 2) if align_corners else ((g + 1.0) * length - 1.0) / 2)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    limits = [(0.0, length - 1.0) if align_corners else (-0.5, length - 0.5) for length in lengths]
    if mode != "cubic" and padding_mode != "zeros":
        at = [_indices_in_range(each, length, limit, padding_mode) for each, length, limit in zip(at, lengths, limits)]
    taps: list[list[tuple[Any, Any]]] = []  # pairs of index and weight for each axis
    for each in at:
        if mode == "nearest":
            taps.append([(ops._npi_around(each), None)])
            continue
        base = ops.BlockGrad(ops.floor(each))
        rest = each - base
        if mode == "linear":
            taps.append([(base, 1.0 - rest), (base + 1.0, rest)])
        else:
            taps.append([(base + float(k), _cubic_weight(rest - float(k))) for k in (-1, 0, 1, 2)])
    total = None
    for corner in itertools.product(*taps):
        index: Any = None
        weight: Any = None
        for (place, share), length, limit in zip(corner, lengths, limits):
            if padding_mode == "zeros":
                within = ops._npi_logical_and(ops._npi_greater_equal_scalar(place, scalar=0.0),
                                              ops._npi_less_equal_scalar(place, scalar=length - 1.0))
                mask = node.cast(within, node.dtype(grid))
                share = mask if share is None else share * mask
            else:
                place = _indices_in_range(place, length, limit, padding_mode)
            place = node.cast(ops.clip(ops._npi_around(place), a_min=0, a_max=length - 1), np.int64)
            index = place if index is None else index * length + place
            weight = share if weight is None else weight if share is None else weight * share
        picked = gather_along(node, flat, ops.broadcast_axis(index, axis=(1,), size=(shape[1],)), 2)
        picked = picked if weight is None else ops.broadcast_mul(picked, node.cast(weight, node.dtype(x)))
        total = picked if total is None else total + picked
    return ops._np_reshape(total, newshape=(*shape[:2], *places))


def _cubic_weight(distance: Any, a: float = -0.75) -> Any:
    d = ops.abs(distance)
    near = ((d * (a + 2)) - (a + 3)) * d * d + 1.0
    far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return ops._npi_where(ops._npi_less_equal_scalar(d, scalar=1.0), near, far)


def _indices_in_range(place: Any, length: int, limit: tuple[float, float], how: str) -> Any:
    """Indices moved inside an axis: clamped, or reflected."""
    if how == "border":
        return ops.clip(place, a_min=0, a_max=length - 1)
    low, high = limit
    span = high - low
    if span == 0:
        return ops.zeros_like(place)
    shifted = ops.abs(place - low)
    rest = shifted - ops.floor(shifted / (2 * span)) * (2 * span)
    mirrored = ops._npi_where(ops._npi_greater_scalar(rest, scalar=span), 2 * span - rest, rest) + low
    return ops.clip(mirrored, a_min=0, a_max=length - 1)


@row("RoiAlign")
def roi_align(node: Node, x: Any, rois: Given, batch: Given, *, coordinate_transformation_mode: str | None = None,
              mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Any:
    how = coordinate_transformation_mode or ("half_pixel" if node.opset >= 16 else "output_half_pixel")
    if mode == "avg":
        regions = node.lift(rois)
        image = ops.expand_dims(node.cast(node.lift(batch), node.dtype(regions)), axis=1)
        return ops._contrib_ROIAlign(x, ops.Concat(image, regions, dim=1, num_args=2),
                                     pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
                                     sample_ratio=sampling_ratio or -1, aligned=how == "half_pixel")
    return _largest_of_regions(node, x, node.host(rois), node.host(batch), how == "half_pixel", output_height,
                               output_width, sampling_ratio, spatial_scale)


def _largest_of_regions(node: Node, x: Any, rois: np.ndarray, batch: np.ndarray, half_pixel: bool, output_height: int,
                        output_width: int, sampling_ratio: int, spatial_scale: float) -> Any:
    """The maximum of weighted samples in the cells of regions."""
    channels, height, width = node.shape(x)[1:]
    results = []
    for number, (x1, y1, x2, y2) in enumerate(rois * spatial_scale - (0.5 if half_pixel else 0.0)):
        tall, long = y2 - y1, x2 - x1
        if not half_pixel:
            tall, long = max(tall, 1.0), max(long, 1.0)
        high, wide = tall / output_height, long / output_width
        rows = sampling_ratio or math.ceil(high)
        columns = sampling_ratio or math.ceil(wide)
        ys = y1 + (np.arange(output_height)[:, None] + (np.arange(rows) + 0.5) / max(rows, 1)) * high
        xs = x1 + (np.arange(output_width)[:, None] + (np.arange(columns) + 0.5) / max(columns, 1)) * wide
        image = ops.slice_axis(x, axis=0, begin=int(batch[number]), end=int(batch[number]) + 1)
        image = ops._np_reshape(image, newshape=(channels, height * width))
        shares = [ops.broadcast_mul(ops.take(image, node.lift(places), axis=1),
                                    node.lift(weights.astype(node.dtype(x))[None]))
                  for places, weights in _corners(height, width, ys.reshape(-1), xs.reshape(-1))]
        parts = ops._np_reshape(functools.reduce(ops.broadcast_maximum, shares),
                                newshape=(1, channels, output_height, rows, output_width, columns))
        results.append(ops._np_max(parts, axis=(3, 5)))
    if not results:
        return node.lift(np.zeros((0, channels, output_height, output_width), node.dtype(x)))
    return ops.Concat(*results, dim=0, num_args=len(results))


def _corners(height: int, width: int, ys: np.ndarray, xs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Flat indices of the four pixels around points, and their weights."""
    inside = ((ys > -1) & (ys < height))[:, None] & ((xs > -1) & (xs < width))
    ys, xs = np.clip(ys, 0, height - 1), np.clip(xs, 0, width - 1)
    top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    fy, fx = (ys - top)[:, None], xs - left
    return [(a[:, None] * width + b, weight * inside) for a, b, weight in (
        (top, left, (1 - fy) * (1 - fx)), (top, right, (1 - fy) * fx), (bottom, left, fy * (1 - fx)),
        (bottom, right, fy * fx))]


@row("MaxRoiPool")
def max_roi_pool(node: Node, x: Any, rois: Any, *, pooled_shape: Any, spatial_scale: float = 1.0) -> Any:
    return ops.ROIPooling(x, rois, pooled_size=tuple(pooled_shape), spatial_scale=spatial_scale)


@row("NonMaxSuppression")
def non_max_suppression(node: Node, boxes: Host, scores: Host, most: Host = None, overlap: Host = None,
                        threshold: Host = None, *, center_point_box: int = 0) -> Any:
    limit = 0 if most is None else int(most.reshape(-1)[0])
    share = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    least = None if threshold is None else float(threshold.reshape(-1)[0])
    picked: list[tuple[int, int, int]] = []
    for batch, (own, classes) in enumerate(zip(boxes, scores)):
        if center_point_box:
            half = own[:, 2:] / 2
            low, high = own[:, :2] - half, own[:, :2] + half
        else:
            low, high = np.minimum(own[:, :2], own[:, 2:]), np.maximum(own[:, :2], own[:, 2:])
        area = np.prod(high - low, 1)
        for kind, values in enumerate(classes):
            kept: list[int] = []
            for at in np.argsort(-values, kind="stable"):
                if len(kept) >= limit or (least is not None and values[at] <= least):
                    break
                inner = np.prod(np.maximum(np.minimum(high[at], high[kept]) - np.maximum(low[at], low[kept]), 0), 1)
                union = area[at] + area[kept] - inner
                if not np.any(inner > share * union):
                    kept.append(int(at))
            picked += [(batch, kind, at) for at in kept]
    return np.array(picked, np.int64).reshape(-1, 3)


@row("ImageDecoder")
def image_decoder(node: Node, stream: Host, *, pixel_format: str = "RGB") -> Any:
    from PIL import Image

    image = Image.open(io.BytesIO(stream.tobytes()))
    if pixel_format == "Grayscale":
        return np.asarray(image.convert("L"))[..., None]
    array = np.asarray(image.convert("RGB"))
    return array[..., ::-1].copy() if pixel_format == "BGR" else array

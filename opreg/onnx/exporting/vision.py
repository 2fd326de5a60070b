"""Translations for boxes and regions: non-maximum suppression, detection outputs and region pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...interop.translation import Untranslatable
from .builder import Builder, Value, dynamic
from .table import Use, says

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(bool)


def _take_second_axis(g: Builder, x: Value, places: Value) -> Value:
    """Rows or elements of ``x`` along the second axis by their indices, (batch, n)."""
    if len(x.shape) > len(places.shape):
        places = g.broadcast_like(g.unsqueeze(places, [2]), x)
    return g("GatherElements", x, places, axis=1)


def _order(g: Builder, keys: Value) -> Value:
    """Indices that sort keys in descending order, stably."""
    count = keys.shape[1]
    return g.topk(keys, g.length(keys, 1) if dynamic(count) else count, 1, True)[1]


def _truths(g: Builder, x: Value) -> Value:
    """Booleans as integers, which can be gathered."""
    return g.cast(x, np.int32)


def _four(g: Builder, boxes: Value) -> list[Value]:
    """The four coordinates of boxes, (batch, n) each."""
    return [g.squeeze(part, [2]) for part in g.split(boxes, 2, [1] * 4)]


def _area(g: Builder, boxes: Sequence[Value], form: str) -> Value:
    left, top, right, bottom = boxes
    width, height = (right, bottom) if form == "center" else (right - left, bottom - top)
    return g.where((width < 0.0) | (height < 0.0), 0.0, width * height)


def _survivors(g: Builder, alive: Value, rows: Sequence[Value], clash: Callable[[Value], Value], groups: Value | None
               ) -> Value:
    """Non-maximum suppression: each box, in order, removes the later ones that it overlaps; a loop over boxes.

    ``rows`` are corners and area; ``clash`` tells whether an overlap is too large. Only boxes of the same group remove
    each other.
    """
    inner = g.body()
    number = Value(inner, inner.names(f"{g.prefix}_number"), [()] * g.sizes, _INT64)
    going = Value(inner, inner.names(f"{g.prefix}_going"), [()] * g.sizes, _BOOL)
    before = Value(inner, inner.names(f"{g.prefix}_alive"), alive.shapes, _BOOL)
    here = [Value(inner, x.name, x.shapes, x.dtype) for x in rows]
    at = inner.unsqueeze(number, [0])

    def one(x: Value) -> Value:
        """The value of this box, (batch, 1)."""
        return inner.gather(x, at, 1)

    (left, top, right, bottom, area), own = here, [one(x) for x in here]
    width = inner.smaller(right, own[2]) - inner.larger(left, own[0])
    height = inner.smaller(bottom, own[3]) - inner.larger(top, own[1])
    both = inner.larger(width, 0.0) * inner.larger(height, 0.0)
    hit = clash(both / (area + own[4] - both))
    if groups is not None:
        kinds = Value(inner, groups.name, groups.shapes, groups.dtype)
        hit = hit & (kinds == one(kinds))
    count = inner.squeeze(inner.length(before, 1), [0])
    zero, step = inner.constant(np.asarray(0, _INT64)), inner.constant(np.asarray(1, _INT64))
    later = inner.compare("Greater", inner.unsqueeze(inner("Range", zero, count, step), [0]), number)
    living = inner.cast(one(_truths(inner, before)), _BOOL)
    after = before & ~(hit & living & later)
    graph = inner.graph(f"{g.prefix}_body", [number, going, before], [going, after])
    result: Value = g("Loop", g.squeeze(g.length(alive, 1), [0]), g.constant(np.asarray(True)), alive, body=graph)
    result.shapes, result.dtype = alive.shapes, _BOOL
    return result


@says("_contrib_box_nms")
def _nms(g: Builder, use: Use, data: Value) -> Any:
    attrs = use.attrs
    shape = data.shape
    if attrs["topk"] == 0 or any(not dynamic(dim) and dim == 0 for dim in shape):
        return [data]
    if len(shape) != 3:
        data = g.reshape(data, (_product(shape[:-2]), *shape[-2:]))

    def column(x: Value, i: int) -> Value:
        return g.squeeze(g.slice(x, [i], [i + 1], [2]), [2])

    start = attrs["coord_start"]
    score = column(data, attrs["score_index"])
    valid = score > attrs["valid_thresh"]
    if attrs["id_index"] >= 0:
        valid = valid & (column(data, attrs["id_index"]) != float(attrs["background_id"]))
    order = _order(g, g.where(valid, score, -np.inf))
    alive = g.cast(_take_second_axis(g, _truths(g, valid), order), _BOOL)
    if attrs["topk"] > 0:
        alive = alive & g.compare("Less", g.unsqueeze(g.numbers_to(g.length(data, 1)), [0]), attrs["topk"])
    ordered = _take_second_axis(g, data, order)
    boxes = _four(g, g.slice(ordered, [start], [start + 4], [2]))
    corners = boxes
    if attrs["in_format"] == "center":
        x, y, width, height = boxes[0], boxes[1], boxes[2] * 0.5, boxes[3] * 0.5
        corners = [x - width, y - height, x + width, y + height]
    groups = None if attrs["force_suppress"] or attrs["id_index"] < 0 else column(ordered, attrs["id_index"])
    alive = _survivors(g, alive, [*corners, _area(g, boxes, attrs["in_format"])],
                       lambda ratio: ratio > attrs["overlap_thresh"], groups)
    if attrs["in_format"] != attrs["out_format"]:
        if attrs["out_format"] == "corner":
            changed = corners
        else:
            left, top, right, bottom = boxes
            width, height = right - left, bottom - top
            changed = [left + width * 0.5, top + height * 0.5, width, height]
        gone = boxes[0] < 0.0
        changed = [g.unsqueeze(g.where(gone, old, new), [2]) for old, new in zip(boxes, changed)]
        ends = [(0, start), (start + 4, data.shape[2])]
        before, behind = [[g.slice(ordered, [first], [end], [2])] if end > first else [] for first, end in ends]
        ordered = g.concat([*before, *changed, *behind], 2)
    first = _order(g, _truths(g, alive))
    left = g.cast(_take_second_axis(g, _truths(g, alive), first), _BOOL)
    result = g.where(g.unsqueeze(left, [2]), _take_second_axis(g, ordered, first), -1.0)
    places = _take_second_axis(g, order, first)
    places = g.unsqueeze(g.where(left, places, -1 - places), [2])
    return [g.reshape(result, shape), g.reshape(places, (*shape[:-1], 1))]


def _product(dims: Sequence[Any]) -> Any:
    result: Any = 1
    for dim in dims:
        result = dim * result
    return result


@says("_contrib_MultiBoxDetection")
def _detection(g: Builder, use: Use, prob: Value, loc: Value, anchor: Value) -> Value:
    attrs = use.attrs
    batch, classes, count = prob.shape
    if dynamic(count) or classes < 2 or count == 0:
        raise Untranslatable("a dynamic number of anchors, or no classes")
    objects = g.slice(prob, [1], [classes], [1])
    kind = g("ArgMax", objects, axis=1, keepdims=0)
    score = g.reduce("Max", objects, [1], False)
    valid = (score > -1.0) & (score >= attrs["threshold"])
    left, top, right, bottom = _four(g, anchor)
    x, y, width, height = (left + right) * 0.5, (top + bottom) * 0.5, right - left, bottom - top
    dx, dy, dw, dh = [step * variance for step, variance in zip(
        _four(g, g.reshape(loc, (batch, count, 4))), attrs["variances"])]
    x, y = dx * width + x, dy * height + y
    width, height = g("Exp", dw) * width * 0.5, g("Exp", dh) * height * 0.5
    corners = [x - width, y - height, x + width, y + height]
    if attrs["clip"]:
        corners = [g.clip(corner, 0.0, 1.0) for corner in corners]
    rows = g.concat([g.unsqueeze(each, [2]) for each in (g.cast(kind, score.dtype), score, *corners)], 2)
    most = attrs["nms_topk"] if 0 < attrs["nms_topk"] < count else count
    suppress = 0 < attrs["nms_threshold"] <= 1
    keys = g.where(valid, score, -np.inf) if suppress else _truths(g, valid)
    order = _order(g, keys)
    inside = g.constant(np.arange(count)[None] < most)
    if suppress and most < count:
        order = g.where(inside, order, _order(g, _truths(g, valid)))
    valid = g.cast(_take_second_axis(g, _truths(g, valid), order), _BOOL)
    rows = _take_second_axis(g, rows, order)
    kinds, scores, *corners = [g.squeeze(part, [2]) for part in g.split(rows, 2, [1] * 6)]
    if suppress:
        area = (corners[2] - corners[0]) * (corners[3] - corners[1])
        remaining = _survivors(g, valid & inside, [*corners, area], lambda ratio: ratio >= attrs["nms_threshold"],
                               None if attrs["force_suppress"] else kinds)
        kinds = g.where(remaining, kinds, -1.0)
        rows = g.concat([g.unsqueeze(each, [2]) for each in (kinds, scores, *corners)], 2)
    return g.where(g.unsqueeze(valid, [2]), rows, -1.0)


@says("_survivors")
def _suppression(g: Builder, use: Use, boxes: Value, counts: Value, *groups: Value) -> Value:
    attrs, shape = use.attrs, boxes.shape
    batch, n, border = _product(shape[:-2]), shape[-2], float(attrs["border"])
    boxes, counts = g.reshape(boxes, (batch, n, 4)), g.reshape(counts, (batch, 1))
    first, second, third, fourth = _four(g, boxes)
    if attrs["form"] == "center":
        width, height = third, fourth
        first, second = first - width * 0.5, second - height * 0.5
        third, fourth = first + width, second + height
    else:
        third, fourth = third + border, fourth + border
        width, height = third - first, fourth - second
    area = g.larger(width, 0.0) * g.larger(height, 0.0)
    alive = g.compare("Less", g.unsqueeze(g.cast(g.numbers_to(g.length(boxes, 1)), counts.dtype), [0]), counts)
    limit = attrs["threshold"]
    alive = _survivors(g, alive, [first, second, third, fourth, area],
                       (lambda ratio: ratio >= limit) if attrs["closed"] else (lambda ratio: ratio > limit),
                       g.reshape(groups[0], (batch, n)) if groups else None)
    if attrs["most"] >= 0:
        rank = g("CumSum", _truths(g, alive), g.constant(np.asarray(1, _INT64)))
        alive = alive & g.compare("LessOrEqual", rank, attrs["most"])
    return g.reshape(alive, shape[:-1])


@says("_matching")
def _match_loop(g: Builder, use: Use, scores: Value) -> Any:
    """A loop over matches: the best score is taken, and its row and column are left out."""
    attrs, (*outer, n, m) = use.attrs, scores.shape
    if any(not dynamic(dim) and dim == 0 for dim in scores.shape):
        raise Untranslatable("no scores")
    scores = g.reshape(scores, (_product(outer), n, m))
    scores = g.where(g("IsNaN", scores), -np.inf, scores)
    none = g.reduce("Max", scores, [1, 2], True)
    none = g.cast(none < none, _INT64) - 1
    columns = g.broadcast_like(g.squeeze(none, [2]), g.reduce("Max", scores, [2], False))
    rows = g.broadcast_like(g.squeeze(none, [2]), g.reduce("Max", scores, [1], False))
    rounds = g("Min", g.length(scores, 1), g.length(scores, 2))
    if attrs["most"] >= 0:
        rounds = g("Min", rounds, g.ints(attrs["most"]))
    inner = g.body()
    number = Value(inner, inner.names(f"{g.prefix}_number"), [()] * g.sizes, _INT64)
    going = Value(inner, inner.names(f"{g.prefix}_going"), [()] * g.sizes, _BOOL)
    before = [Value(inner, inner.names(f"{g.prefix}_{name}"), x.shapes, x.dtype)
              for name, x in (("scores", scores), ("columns", columns), ("rows", rows))]
    left, old_columns, old_rows = before
    flat = inner.reshape(left, (_product(outer), n * m))
    best = inner("ArgMax", flat, axis=1, keepdims=1)
    good = inner("GatherElements", flat, best, axis=1) > attrs["above"]
    width = inner.length(left, 2)
    row = inner("Div", best, width)
    column = best - row * width
    at_row = inner.unsqueeze(inner.numbers_to(inner.length(left, 1)), [0]) == row
    at_column = inner.unsqueeze(inner.numbers_to(width), [0]) == column
    taken = inner.unsqueeze(at_row, [2]) | inner.unsqueeze(at_column, [1])
    after = [inner.where(taken, -np.inf, left), inner.where(at_row & good, column, old_columns),
             inner.where(at_column & good, row, old_rows)]
    graph = inner.graph(f"{g.prefix}_body", [number, going, *before], [going, *after])
    _, columns_found, rows_found = g("Loop", g.squeeze(rounds, [0]), g.constant(np.asarray(True)), scores, columns,
                                     rows, body=graph, count=3)
    results = []
    for found, like, length in ((columns_found, columns, n), (rows_found, rows, m)):
        found.shapes, found.dtype = like.shapes, _INT64
        results.append(g.reshape(found, (*outer, length)))
    return results


@says("_contrib_ROIAlign")
def _roi_align(g: Builder, use: Use, data: Value, rois: Value) -> Value:
    attrs = use.attrs
    if attrs["position_sensitive"]:
        raise Untranslatable("ONNX's RoiAlign is not position sensitive")
    if attrs["aligned"] and g.opset < 16:
        raise Untranslatable(f"ONNX has aligned regions from opset 16 on, but the model is to have opset {g.opset}")
    words: dict[str, Any] = {} if g.opset < 16 else {
        "coordinate_transformation_mode": "half_pixel" if attrs["aligned"] else "output_half_pixel"}
    number = g.squeeze(g.slice(rois, [0], [1], [1]), [1])
    rows, columns = attrs["pooled_size"]
    result = g("RoiAlign", data, g.slice(rois, [1], [5], [1]), g.cast(g.larger(number, 0.0), _INT64), mode="avg",
               output_height=rows, output_width=columns, spatial_scale=attrs["spatial_scale"],
               sampling_ratio=max(attrs["sample_ratio"], 0), **words)
    # a region with a negative number belongs to no image
    return g.where(g.unsqueeze(number < 0.0, [1, 2, 3]), 0.0, result)


@says("ROIPooling")
def _roi_pooling(g: Builder, use: Use, data: Value, rois: Value) -> Value:
    return g("MaxRoiPool", data, rois, pooled_shape=list(use.attrs["pooled_size"]),
             spatial_scale=use.attrs["spatial_scale"])

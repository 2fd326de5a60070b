"""Rows of the operators on boxes: suppression, overlap, matching, offsets, and the operators of detectors."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]


def _boxes(*shape: int, seed: int = 0, steps: int = 0) -> np.ndarray:
    """Boxes by corners in the unit square, on a grid if there are steps."""
    a = uniform(0, 1, *shape, 4, seed=seed)
    a = np.round(a * steps) / steps if steps else a
    return np.concatenate([np.minimum(a[..., :2], a[..., 2:]), np.maximum(a[..., :2], a[..., 2:])], axis=-1)


# ---------------------------------------------------------------------------------- plain ways to compute


def _corners(box, form="corner"):
    x, y, w, h = (float(each) for each in box)
    return (x, y, w, h) if form == "corner" else (x - w / 2, y - h / 2, x + w / 2, y + h / 2)


def _overlap(a, b, border=0):
    """Intersection over union of two boxes by corners; NaN for two boxes without area."""
    def area(box):
        return (box[2] - box[0] + border) * (box[3] - box[1] + border)

    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]) + border)
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]) + border)
    union = area(a) + area(b) - width * height
    return width * height / union if union else math.nan


def _greedy(order, boxes, clash, border=0):
    kept = []
    for i in order:
        if not any(clash(k, i, _overlap(boxes[k], boxes[i], border)) for k in kept):
            kept.append(i)
    return kept


def _nms(overlap_thresh=0.5, valid_thresh=0.0, topk=-1, coord_start=2, score_index=1, id_index=-1, background_id=-1,
         force_suppress=False, in_format="corner", out_format="corner"):
    def one(data):
        valid = [i for i in range(len(data)) if data[i, score_index] > valid_thresh
                 and (id_index < 0 or data[i, id_index] != background_id)]
        order = sorted(valid, key=lambda i: -data[i, score_index])[:topk if topk > 0 else None]
        boxes = [_corners(row[coord_start:coord_start + 4], in_format) for row in data]
        kept = _greedy(order, boxes, lambda k, i, overlap: overlap > overlap_thresh and (
            force_suppress or id_index < 0 or data[k, id_index] == data[i, id_index]))
        result = np.full_like(data, -1)
        result[:len(kept)] = data[kept]
        if in_format != out_format:
            for row, i in zip(result, kept):
                x, y, z, w = boxes[i]
                row[coord_start:coord_start + 4] = boxes[i] if out_format == "corner" else \
                    ((x + z) / 2, (y + w) / 2, z - x, w - y)
        return result

    return lambda data: data if topk == 0 else np.stack([
        one(each) for each in data.reshape(-1, *data.shape[-2:])]).reshape(data.shape)


def _matching(threshold, is_ascend=False, topk=-1):
    def expected(data):
        sign, (n, m) = -1 if is_ascend else 1, data.shape[-2:]
        rows, columns = np.full((data.size // (n * m), n), -1.0), np.full((data.size // (n * m), m), -1.0)
        for scores, row, column in zip(sign * data.reshape(-1, n, m), rows, columns):
            for i, j in sorted(itertools.product(range(n), range(m)), key=lambda place: -scores[place]):
                if row[i] < 0 and column[j] < 0 and scores[i, j] > sign * threshold:
                    if topk > 0 and (row >= 0).sum() > topk:
                        break
                    row[i], column[j] = j, i
        return rows.reshape(data.shape[:-1]), columns.reshape(*data.shape[:-2], m)

    return expected


def _iou(format="corner"):
    def expected(lhs, rhs):
        found = [np.nan_to_num(_overlap(_corners(a, format), _corners(b, format)))
                 for a in lhs.reshape(-1, 4) for b in rhs.reshape(-1, 4)]
        return np.array(found).reshape(*lhs.shape[:-1], *rhs.shape[:-1])

    return expected


def _centers(boxes):
    return np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], axis=-1)


def _encoded(anchors, boxes):
    a, b = _centers(anchors), _centers(boxes)
    return np.concatenate([(b[..., :2] - a[..., :2]) / a[..., 2:], np.log(b[..., 2:] / a[..., 2:])], axis=-1)


def _encode(samples, matches, anchors, refs, means, stds):
    chosen = np.stack([ref[match.astype(int)] for ref, match in zip(refs, matches)])
    mask = np.repeat(samples[..., None] > 0.5, 4, axis=-1)
    return np.where(mask, (_encoded(anchors, chosen) - means) / stds, 0), mask


def _decoded(steps, anchors, format="corner", stds=(1, 1, 1, 1), clip=-1.0):
    a = anchors if format == "center" else _centers(anchors)
    steps = steps * np.array(stds)
    size = np.exp(np.minimum(steps[..., 2:], clip if clip > 0 else np.inf)) * a[..., 2:]
    center = steps[..., :2] * a[..., 2:] + a[..., :2]
    return np.concatenate([center - size / 2, center + size / 2], axis=-1)


def _survivors(threshold, closed=False, form="corner", border=0, most=-1, grouped=False):
    def expected(boxes, counts, groups=None):
        alive = np.zeros(boxes.shape[:-1], bool)
        for place in np.ndindex(counts.shape):
            corners = [_corners(box, form) for box in boxes[place]]
            kept = _greedy(range(counts[place]), corners, lambda k, i, overlap: (
                (overlap > threshold or (closed and overlap == threshold))
                and (groups is None or groups[place][k] == groups[place][i])), border)
            alive[place][kept[:most if most >= 0 else None]] = True
        return alive

    return expected


def _matched(above, most=-1):
    def expected(scores):
        return tuple(each.astype("int64") for each in _matching(above, topk=most - 1)(scores))

    return expected


# --------------------------------------------------------------------------------------- boxes in general

_RANDOM = np.concatenate([integers(-1, 3, 2, 9, 1).astype(float), uniform(-0.3, 1, 2, 9, 1), _boxes(2, 9)], axis=-1)
_TIED = np.concatenate([integers(0, 2, 3, 7, 1).astype(float), integers(-1, 4, 3, 7, 1) / 4, _boxes(3, 7, steps=4)],
                       axis=-1)
# More boxes than are compared at once on a device.
_MANY = np.concatenate([integers(0, 3, 2, 150, 1).astype(float), uniform(0, 1, 2, 150, 1), _boxes(2, 150)], axis=-1)

ROWS: list[Row] = [
    *[Row("_contrib_box_nms", [data], attrs, expected=_nms(**attrs), name=f"{name},{attrs}")
      for name, data in (("random", _RANDOM), ("ties", _TIED), ("many", _MANY))
      for attrs in ([{}, {"id_index": 0, "overlap_thresh": 0.3},
                     {"id_index": 0, "background_id": 1, "valid_thresh": 0.2, "overlap_thresh": 0.1},
                     {"id_index": 0, "force_suppress": True, "topk": 4, "overlap_thresh": 0.2}, {"topk": 0},
                     {"in_format": "center", "overlap_thresh": 0.3}, {"valid_thresh": 2.0}]
                    if name != "many" else [{"overlap_thresh": 0.2}, {"overlap_thresh": 0.7, "id_index": 0}])],
    Row("_contrib_box_nms", [_RANDOM], {"overlap_thresh": 0.2, "topk": 5}, grad=(0,), second=True,
        expected=_nms(overlap_thresh=0.2, topk=5)),
    Row("_contrib_box_nms", [_RANDOM], {"out_format": "center", "overlap_thresh": 0.3},
        expected=_nms(out_format="center", overlap_thresh=0.3)),
    Row("_contrib_box_nms", [_RANDOM], {"in_format": "center", "out_format": "corner", "overlap_thresh": 0.3},
        expected=_nms(in_format="center", overlap_thresh=0.3)),
    Row("_contrib_box_nms", [np.concatenate([_boxes(2, 3, 5), uniform(0, 1, 2, 3, 5, 2)], axis=-1)],
        {"coord_start": 0, "score_index": 5, "overlap_thresh": 0.2},
        expected=_nms(coord_start=0, score_index=5, overlap_thresh=0.2)),
    *[Row("_survivors", [_boxes(2, 3, 70, steps=8), np.array([[0, 1, 70], [68, 7, 2]]),
                         *[integers(0, 3, 2, 3, 70)] * attrs.get("grouped", False)], attrs, _survivors(**attrs))
      for attrs in ({"threshold": 0.3}, {"threshold": 0.25, "closed": True}, {"threshold": 0.5, "border": 1, "most": 6},
                    {"threshold": 0.2, "grouped": True}, {"threshold": 0.2, "grouped": True, "most": 3},
                    {"threshold": 0.2, "form": "center"})],
    *[Row("_matching", [scores], attrs, expected=_matched(**attrs), name=f"{name},{attrs}")
      for name, scores in (("random", normal(2, 3, 4, 5)), ("ties", integers(-3, 4, 2, 5, 3) / 4))
      for attrs in ({"above": 0.1}, {"above": -9.0, "most": 2})],
    Row("_matching", [normal(2, 0, 3)], {"above": 0.1}, name="empty",
        expected=lambda scores: (np.zeros((2, 0), int), np.full((2, 3), -1))),
    *[Row("_contrib_box_iou", [_boxes(2, 3, steps=3), _boxes(4, steps=3, seed=1)], attrs, expected=_iou(**attrs))
      for attrs in ({}, {"format": "center"})],
    *[Row("_contrib_bipartite_matching", [data], attrs, expected=_matching(**attrs), name=f"{name},{attrs}")
      for name, data in (("random", normal(2, 3, 4, 5)), ("ties", integers(-3, 4, 2, 5, 3) / 4), ("one", normal(4, 3)))
      for attrs in ({"threshold": 0.1}, {"threshold": -9.0}, {"threshold": 0.3, "is_ascend": True},
                    {"threshold": -9.0, "topk": 1})],
    Row("_contrib_box_encode", [np.array([[1.0, 0, -1, 1], [1, 1, 0, 0.6]]), integers(0, 3, 2, 4).astype(float),
                                _boxes(2, 4), _boxes(2, 3, seed=1), np.array([0.1, 0.2, 0.3, 0.4]),
                                np.array([0.1, 0.1, 0.2, 0.2])], expected=_encode),
    Row("_contrib_box_decode", [normal(2, 3, 4), _boxes(1, 3)], expected=lambda x, a: _decoded(x, a, "center")),
    Row("_contrib_box_decode", [normal(2, 3, 4), _boxes(1, 3)],
        {"format": "corner", "std0": 0.1, "std1": 0.3, "std2": 0.2, "std3": 2.0, "clip": 0.1},
        expected=lambda x, a: _decoded(x, a, "corner", (0.1, 0.3, 0.2, 2.0), 0.1)),
]

# ------------------------------------------------------------------------------------ single-shot detectors


def _prior(sizes=(1.0,), ratios=(1.0,), clip=False, steps=(-1.0, -1.0), offsets=(0.5, 0.5)):
    def expected(data):
        height, width = data.shape[2:]
        found = []
        for i, j in itertools.product(range(height), range(width)):
            y = (i + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / height)
            x = (j + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / width)
            for size, ratio in [(each, ratios[0]) for each in sizes] + [(sizes[0], each) for each in ratios[1:]]:
                w, h = size * height / width * math.sqrt(ratio) / 2, size / math.sqrt(ratio) / 2
                found.append((x - w, y - h, x + w, y + h))
        return np.clip(found, 0, 1)[None] if clip else np.array(found)[None]

    return expected


def _target(overlap_threshold=0.5, ignore_label=-1.0, negative_mining_ratio=-1.0, negative_mining_thresh=0.5,
            variances=(0.1, 0.1, 0.2, 0.2)):
    def one(anchors, label, prediction):
        n = len(anchors)
        loc, mask, classes = np.zeros((n, 4)), np.zeros((n, 4)), np.full(n, ignore_label)
        count = next((i for i, row in enumerate(label) if row[0] == -1), len(label))
        if count == 0:
            return loc, mask, classes
        overlaps = np.nan_to_num([[_overlap(a, row[1:5]) for row in label[:count]] for a in anchors])
        matched: dict[int, int] = {}
        for i, j in sorted(itertools.product(range(n), range(count)), key=lambda place: -overlaps[place]):
            if i not in matched and j not in matched.values() and overlaps[i, j] > 1e-6:
                matched[i] = j
        for i in range(n):
            if overlap_threshold > 0 and overlaps[i].max() > overlap_threshold:
                matched.setdefault(i, int(overlaps[i].argmax()))
        free = [i for i in range(n) if i not in matched]
        if negative_mining_ratio > 0:
            sure = np.exp(prediction[0]) / np.exp(prediction).sum(axis=0)
            hard = [i for i in free if overlaps[i].max() < negative_mining_thresh]
            free = sorted(hard, key=lambda i: sure[i])[:int(len(matched) * negative_mining_ratio)]
        classes[free] = 0
        for i, j in matched.items():
            classes[i], mask[i] = label[j, 0] + 1, 1
            loc[i] = _encoded(anchors[i], label[j, 1:5]) / np.array(variances)
        return loc, mask, classes

    def expected(anchor, label, cls_pred):
        loc, mask, classes = zip(*[one(anchor[0], each, prediction) for each, prediction in zip(label, cls_pred)])
        return np.stack(loc).reshape(len(label), -1), np.stack(mask).reshape(len(label), -1), np.stack(classes)

    return expected


def _detection(clip=True, threshold=0.01, nms_threshold=0.5, force_suppress=False, variances=(0.1, 0.1, 0.2, 0.2)):
    def one(probability, steps, anchors):
        kind, score = probability[1:].argmax(axis=0), probability[1:].max(axis=0)
        boxes = _decoded(steps.reshape(-1, 4), anchors, stds=variances)
        boxes = np.clip(boxes, 0, 1) if clip else boxes
        order = sorted(np.flatnonzero(score >= threshold), key=lambda i: -score[i] if nms_threshold > 0 else 0)
        kept = order if nms_threshold <= 0 else _greedy(order, boxes, lambda k, i, overlap: (
            overlap >= nms_threshold and (force_suppress or kind[k] == kind[i])))
        result = np.full((len(kind), 6), -1.0)
        for row, i in zip(result, order):
            row[:] = (kind[i] if i in kept else -1, score[i], *boxes[i])
        return result

    return lambda cls_prob, loc_pred, anchor: np.stack([one(*each, anchor[0]) for each in zip(cls_prob, loc_pred)])


_ANCHORS = _boxes(1, 12, seed=3)
_LABEL = np.concatenate([integers(0, 3, 3, 4, 1).astype(float), _boxes(3, 4, seed=4)], axis=-1)
_LABEL[0, 2:] = -1  # two objects
_LABEL[2] = -1  # none
_LABEL[1, 0, 1:] = _ANCHORS[0, 5]
_PREDICTED = normal(3, 4, 12)
_PROBABILITY = uniform(0, 1, 2, 4, 12)
_STEPS = normal(2, 48)

ROWS += [
    *[Row("_contrib_MultiBoxPrior", [normal(2, 1, 3, 2)], attrs, expected=_prior(**attrs)) for attrs in (
        {}, {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0, 0.5)}, {"sizes": (0.9,), "ratios": (3.0, 1.0), "clip": True},
        {"steps": (0.3, 0.2), "offsets": (0.1, 0.7)})],
    *[Row("_contrib_MultiBoxTarget", [_ANCHORS, _LABEL, _PREDICTED], attrs, expected=_target(**attrs)) for attrs in (
        {}, {"overlap_threshold": 0.2, "ignore_label": -7.0}, {"overlap_threshold": -1.0},
        {"negative_mining_ratio": 1.5, "negative_mining_thresh": 0.3, "variances": (1.0, 2.0, 3.0, 4.0)},
        {"negative_mining_ratio": 30.0})],
    Row("_contrib_MultiBoxTarget", [_boxes(1, 9, steps=3), np.concatenate(
        [np.zeros((2, 4, 1)), _boxes(2, 4, steps=3), np.ones((2, 4, 2))], axis=-1), normal(2, 2, 9)],
        {"ignore_label": -5.0}, expected=None, name="degenerate"),
    *[Row("_contrib_MultiBoxDetection", [_PROBABILITY, _STEPS, _ANCHORS], attrs, expected=_detection(**attrs))
      for attrs in ({}, {"clip": False, "threshold": 0.6}, {"nms_threshold": 0.2, "force_suppress": True},
                    {"nms_threshold": -1.0, "threshold": 0.7}, {"variances": (0.3, 0.2, 0.1, 0.5)},
                    {"threshold": 2.0})],
    Row("_contrib_MultiBoxDetection", [_PROBABILITY, _STEPS, _ANCHORS], {"nms_topk": 3, "nms_threshold": 0.3}),
]

# ---------------------------------------------------------------------------------------- region proposals


def _proposal(pre, post, threshold, least, scales, ratios, stride, output_score=False, iou_loss=False):
    def one(image, scores, steps, info):
        found = []
        count, height, width = len(scales) * len(ratios), *scores.shape[1:]
        for i, j in itertools.product(range(height), range(width)):
            for k, (ratio, scale) in enumerate(itertools.product(ratios, scales)):
                w = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
                h = math.floor(w * ratio + 0.5) * scale
                w, x, y = w * scale, j * stride + (stride - 1) / 2, i * stride + (stride - 1) / 2
                dx, dy, dw, dh = steps[4 * k:4 * k + 4, i, j]
                if iou_loss:
                    box = [x - (w - 1) / 2 + dx, y - (h - 1) / 2 + dy, x + (w - 1) / 2 + dw, y + (h - 1) / 2 + dh]
                else:
                    x, y, w, h = x + dx * w, y + dy * h, w * math.exp(dw), h * math.exp(dh)
                    box = [x - (w - 1) / 2, y - (h - 1) / 2, x + (w - 1) / 2, y + (h - 1) / 2]
                box = [min(max(c, 0), info[1 - axis % 2] - 1) for axis, c in enumerate(box)]
                score, limit = scores[count + k, i, j], least * info[2]
                if box[2] - box[0] + 1 < limit or box[3] - box[1] + 1 < limit:
                    box = [c + (limit / 2 if axis > 1 else -limit / 2) for axis, c in enumerate(box)]
                    score = -1
                if i >= info[0] // stride or j >= info[1] // stride:
                    score = -1
                found.append((score, box))
        found = sorted(found, key=lambda each: -each[0])[:pre if pre > 0 else None]
        kept: list = []
        for score, box in found:
            if not any(_overlap(other, box, 1) > threshold for _, other in kept):
                kept.append((score, box))
        kept = [kept[:post][i % len(kept[:post])] for i in range(post)]
        return np.array([[image, *box] for _, box in kept]), np.array([[score] for score, _ in kept])

    def expected(cls_prob, bbox_pred, im_info):
        boxes, scores = zip(*[one(i, *each) for i, each in enumerate(zip(cls_prob, bbox_pred, im_info))])
        return (np.concatenate(boxes), np.concatenate(scores)) if output_score else np.concatenate(boxes)

    return expected


def _proposal_row(op, batch, pre, post, threshold, least, scales, ratios, stride, **attrs):
    count = len(scales) * len(ratios)
    return Row(op, [uniform(0, 1, batch, 2 * count, 4, 3), normal(batch, 4 * count, 4, 3, scale=0.3),
                    np.array([[55.0, 44, 1], [40, 47, 0.5]])[:batch]],
               {"rpn_pre_nms_top_n": pre, "rpn_post_nms_top_n": post, "threshold": threshold, "rpn_min_size": least,
                "scales": scales, "ratios": ratios, "feature_stride": stride, **attrs},
               expected=_proposal(pre, post, threshold, least, scales, ratios, stride, **attrs))


for _op, _batch in (("_contrib_Proposal", 1), ("_contrib_MultiProposal", 2)):
    ROWS += [
        _proposal_row(_op, _batch, 6000, 9, 0.7, 16, (1.0, 2.0), (0.5, 1.0, 2.0), 16),
        _proposal_row(_op, _batch, 12, 30, 0.4, 10, (1.0, 3.0), (1.0,), 16, output_score=True),
        _proposal_row(_op, _batch, 0, 7, 0.5, 0, (2.0,), (1.0, 0.7), 16, iou_loss=True),
    ]

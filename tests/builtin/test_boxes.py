"""Properties of suppressed and matched boxes that hold for any boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opreg.core.registry import get
from opreg.errors import AttrError, ShapeError
from opreg.ndarray import array
from tests.questions import of_each

_CORNERS = st.floats(0, 1, width=32)
_BOXES = st.integers(1, 40).flatmap(lambda n: arrays("float32", (n, 6), elements=_CORNERS))
_RULE = settings(deadline=None, max_examples=60, derandomize=True)


def _run(name: str, *inputs: np.ndarray, **attrs: object) -> list[np.ndarray]:
    found = get(name)(*[array(each, None, each.dtype) for each in inputs], **attrs)
    return [each.asnumpy() for each in (found if isinstance(found, (list, tuple)) else [found])]


def _ordered(data: np.ndarray) -> np.ndarray:
    """Rows of (class, score, corners) with corners in order and classes 0 to 2."""
    data[:, 0] = np.floor(data[:, 0] * 2.9)
    data[:, 2:] = np.concatenate([np.minimum(data[:, 2:4], data[:, 4:]), np.maximum(data[:, 2:4], data[:, 4:])], axis=1)
    return data


@_RULE
@given(_BOXES, st.sampled_from([0.0, 0.3, 0.8]), st.booleans())
def test_suppression_keeps_the_best_of_overlapping_boxes(data: np.ndarray, threshold: float, by_class: bool) -> None:
    """No two kept boxes overlap too much, and each removed box overlaps a better one that is kept."""
    data = _ordered(data)
    (found,) = _run("_contrib_box_nms", data, overlap_thresh=threshold, id_index=0 if by_class else -1)
    kept = found[found[:, 1] >= 0]
    assert (np.diff(kept[:, 1]) <= 0).all() and (found[len(kept):] == -1).all()
    (between,) = _run("_contrib_box_iou", kept[:, 2:], data[:, 2:])
    clashes = between > np.float32(threshold)
    if by_class:
        clashes &= kept[:, None, 0] == data[:, 0]
    stays = (kept[:, None] == data).all(axis=2)
    better = kept[:, None, 1] >= data[:, 1]
    gone = (data[:, 1] > 0) & ~stays.any(axis=0)
    assert (clashes & better)[:, gone].any(axis=0).all()
    twice = (data[:, None] == data).all(axis=2).sum(axis=1) > 1
    assert not (clashes & ~stays)[:, stays.any(axis=0) & ~twice].any()


@_RULE
@given(st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: arrays("float32", shape, elements=st.floats(-1, 1, width=32))), st.sampled_from([-2.0, 0.0, 0.5]))
def test_matched_rows_and_columns_agree(scores: np.ndarray, threshold: float) -> None:
    """Rows and columns agree, and no further pair would be allowed."""
    rows, columns = (each.astype(int) for each in _run("_contrib_bipartite_matching", scores, threshold=threshold))
    for row, column in enumerate(rows):
        assert column < 0 or (columns[column] == row and scores[row, column] > threshold)
    assert (rows >= 0).sum() == (columns >= 0).sum()
    assert not (scores[rows < 0][:, columns < 0] > threshold).any()


def test_encoded_boxes_are_decoded() -> None:
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 1, (1, 7, 2))
    anchors = np.concatenate([corner, corner + rng.uniform(0.1, 1, (1, 7, 2))], axis=2)
    boxes = anchors[:, ::-1].copy()
    stds = np.array([0.1, 0.1, 0.2, 0.2])
    codes, mask = _run("_contrib_box_encode", np.ones((1, 7)), np.arange(7.0)[None], anchors, boxes, np.zeros(4), stds)
    (back,) = _run("_contrib_box_decode", codes, anchors, std0=0.1, std1=0.1, std2=0.2, std3=0.2, format="corner")
    np.testing.assert_allclose(back, boxes)
    assert mask.all()


@of_each([
    ("_contrib_box_nms", [(4, 5)], {}, AttrError, "coord_start=2"),
    ("_contrib_box_nms", [(4, 6)], {"score_index": 6}, AttrError, "score_index=6"),
    ("_contrib_box_iou", [(2, 4), (2, 5)], {}, ShapeError, "rhs"),
    ("_contrib_box_encode", [(2, 3), (2, 3), (2, 3, 4), (2, 0, 4), (4,), (4,)], {}, ShapeError, "boxes > 0"),
    ("_contrib_box_decode", [(2, 3, 4), (2, 3, 4)], {}, ShapeError, "anchors"),
    ("_contrib_bipartite_matching", [(3,)], {"threshold": 0.0}, ShapeError, "rows, columns"),
    ("_contrib_MultiBoxPrior", [(1, 1, 2, 2)], {"sizes": ()}, AttrError, "sizes"),
    ("_contrib_MultiBoxTarget", [(2, 3, 4), (2, 1, 5), (2, 2, 3)], {}, ShapeError, "anchor"),
    ("_contrib_MultiBoxDetection", [(2, 2, 3), (2, 11), (1, 3, 4)], {}, ShapeError, "loc_pred"),
    ("_contrib_Proposal", [(2, 24, 2, 2), (2, 48, 2, 2), (2, 3)], {}, ShapeError, r"cls_prob: expected shape \(1, 24,"),
    ("_contrib_Proposal", [(1, 8, 2, 2), (1, 16, 2, 2), (1, 3)], {}, ShapeError, r"cls_prob: expected shape \(1, 24,"),
])
def test_wrong_arguments_of_boxes_are_refused(name: str, shapes: list, attrs: dict, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        _run(name, *[np.zeros(shape) for shape in shapes], **attrs)

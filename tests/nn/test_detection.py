"""Primitives of detection: values of MindSpore 2.10, eagerly and compiled, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, ops

ANCHORS = [[2, 2, 8, 8], [1, 1, 5, 4], [0, 0, 10, 10], [3, 4, 3, 4]]
BOXES = [[1, 2, 7, 9], [2, 2, 3, 3], [5, 5, 6, 6], [3, 4, 5, 6]]
MOVES = [[0.1, -0.2, 0.3, 5], [1, 1, -1, -9], [0, 0, 0, 0], [2, 3, 1, 1]]
SCALED = {"means": (0.1, 0.2, 0.0, 0.3), "stds": (0.1, 0.2, 0.5, 1.0)}
FEATURES = np.random.RandomState(0).randn(2, 3, 6, 7).astype(np.float32)
REGIONS = [[0, 0.2, 0.3, 3.5, 4.1], [1, 1, 1, 5, 3], [0, 2, 2, 2.1, 2.2], [1, -1, -1, 9, 9]]


def align(**settings: Any) -> Callable[..., Any]:
    made = ops.ROIAlign(**{"pooled_height": 2, "pooled_width": 3, "spatial_scale": 1.0, **settings})
    return lambda x, rois: made(x, rois)[:, 1, :, 0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("call, inputs, expected", [
    (ops.BoundingBoxEncode(), [ANCHORS, BOXES], [
        [-0.1429, 0.0714, 0.0, 0.1335], [-0.1, 0.0, -0.9163, -0.6931], [0.0455, 0.0455, -1.7047, -1.7047],
        [1.0, 1.0, 1.0986, 1.0986]]),
    (ops.BoundingBoxEncode(**SCALED), [ANCHORS, BOXES], [
        [-2.4286, -0.6429, 0.0, -0.1665], [-2.0, -1.0, -1.8326, -0.9931], [-0.5455, -0.7727, -3.4095, -2.0047],
        [9.0, 4.0, 2.1972, 0.7986]]),
    (ops.BoundingBoxDecode((12, 10)), [ANCHORS, MOVES], [
        [1.4755, 0.0, 9.9245, 12.0], [7.5803, 6.968, 8.4197, 6.032], [0.0, 0.0, 10.0, 10.0],
        [4.1409, 6.1409, 5.8591, 7.8591]]),
    (ops.BoundingBoxDecode((768, 1280), **SCALED, wh_ratio_clip=0.5), [ANCHORS, MOVES], [
        [2.2036, 0.0, 9.3364, 12.62], [2.9837, 3.6, 5.0163, 4.6], [1.1, 0.2758, 11.1, 14.1242],
        [2.9756, 4.3, 3.6244, 5.3]]),
    (ops.CheckValid(), [[[0, 0, 5, 5], [1, 1, 10, 9], [-1, 0, 2, 2], [0, 0, 11.5, 5]], [10, 12, 1]], [1, 1, 0, 0]),
    (ops.CheckValid(), [[[0, 0, 23, 19], [0, 0, 5, 20]], [10, 12, 2]], [1, 0]),
    (align(), [FEATURES, REGIONS], [[-0.177, -0.0327], [-0.5334, 0.35], [-0.5973, -0.5884], [0.6944, -0.0994]]),
    (align(sample_num=1), [FEATURES, REGIONS], [[-0.2779, 0.163], [-0.0643, 0.4903], [-0.5973, -0.6227],
                                                [-1.6091, 0.0]]),
    (align(roi_end_mode=0), [FEATURES, REGIONS], [[-0.1767, -0.0423], [-0.5259, -0.2886], [-0.5934, -0.6022],
                                                  [0.4377, 0.0417]]),
    (align(spatial_scale=0.5), [FEATURES, REGIONS], [[-0.3719, -0.0764], [-0.4525, -1.3518], [-0.6287, -0.3304],
                                                     [-0.0376, 0.4744]]),
    (ops.FloatStatus(), [[1.0, np.inf]], [1]), (ops.FloatStatus(), [[[1.0], [2.0]]], [0]),
    (ops.FloatStatus(), [[np.nan]], [1]),
])
def test_operators_of_detection_give_the_expected_values(
        call: Callable[..., Any], inputs: list[Any], expected: list[Any], compiled: bool) -> None:
    run = ms.jit(lambda *xs: call(*xs)) if compiled else call
    found = run(*[Tensor(np.array(each, np.float32)) for each in inputs]).asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=6e-5)
    assert found.shape == np.shape(expected)


@pytest.mark.parametrize("call, inputs", [
    (ops.BoundingBoxEncode(**SCALED), [ANCHORS, BOXES]), (ops.BoundingBoxDecode((99, 99)), [ANCHORS, MOVES]),
    (align(), [FEATURES, REGIONS])])
def test_gradients_agree_with_central_differences(call: Callable[..., Any], inputs: list[Any]) -> None:
    """Gradients of the first input along a random direction agree with central differences."""
    random = np.random.default_rng(1)
    x, y = (np.array(each, np.float64) + 0.013 for each in inputs)
    direction = random.normal(size=x.shape)
    loss = lambda x: (call(x, Tensor(y)) ** 2).sum()  # noqa: E731
    ends = [float(loss(Tensor(x + step * direction))) for step in (1e-6, -1e-6)]
    found = (ms.grad(loss)(Tensor(x)).asnumpy() * direction).sum()
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-5)


def greedy(boxes: np.ndarray, threshold: float) -> list[bool]:
    """Flags of the boxes that are kept, in the order of scores: a box that overlaps an earlier one too much is not."""
    kept: list[bool] = []
    for i, (x1, y1, x2, y2) in enumerate(boxes):
        keep = True
        for j in range(i):
            a1, b1, a2, b2 = boxes[j]
            both = max(0.0, min(x2, a2) - max(x1, a1)) * max(0.0, min(y2, b2) - max(y1, b1))
            if kept[j] and both / ((x2 - x1) * (y2 - y1) + (a2 - a1) * (b2 - b1) - both) > threshold:
                keep = False
        kept.append(keep)
    return kept


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_nms_with_mask_keeps_boxes_without_overlaps(threshold: float, compiled: bool) -> None:
    random = np.random.default_rng(2)
    corners = random.uniform(0, 30, (40, 2))
    boxes = np.hstack([corners, corners + random.uniform(1, 20, (40, 2)), random.normal(size=(40, 1))])
    boxes = boxes.astype(np.float32)
    flipped = boxes[:, [2, 1, 0, 3, 4]]
    call = ops.NMSWithMask(threshold)
    for given in (boxes, flipped):
        run = ms.jit(lambda x: call(x)) if compiled else call
        rows, numbers, mask = run(Tensor(given))
        order = np.argsort(-boxes[:, 4])
        np.testing.assert_array_equal(rows.asnumpy(), given[order])
        np.testing.assert_array_equal(numbers.asnumpy(), np.arange(40))
        assert mask.asnumpy().tolist() == greedy(boxes[order, :4].astype(np.float64), threshold)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [2, 4, 20])
def test_random_choice_with_mask_draws_true_positions(count: int, compiled: bool) -> None:
    mask = np.array([[True, False, True], [False, True, True]])
    choose = ops.RandomChoiceWithMask(count)
    run = ms.jit(lambda x: choose(x)) if compiled else choose
    seen = set()
    for _ in range(40):
        places, there = (each.asnumpy() for each in run(Tensor(mask)))
        assert places.shape == (count, 2) and there.sum() == min(count, 4)
        found = {tuple(place) for place in places[there].tolist()}
        assert len(found) == there.sum() and all(mask[place] for place in found) and not places[~there].any()
        seen |= found
    assert seen == {(0, 0), (0, 2), (1, 1), (1, 2)}


@pytest.mark.parametrize("call, error, said", [
    (lambda: ops.BoundingBoxEncode()(Tensor(ANCHORS), Tensor(BOXES[:2])), ValueError, "equally many boxes"),
    (lambda: ops.BoundingBoxEncode(means=(1.0,))(Tensor(ANCHORS), Tensor(BOXES)), ValueError, "must be four numbers"),
    (lambda: ops.BoundingBoxDecode((3,))(Tensor(ANCHORS), Tensor(MOVES)), ValueError, "a height and a width"),
    (lambda: ops.NMSWithMask()(Tensor(ANCHORS)), ValueError, "four corners and a score"),
    (lambda: ops.ROIAlign(1, 1, 1.0, 2, 3), ValueError, "roi_end_mode must be 0 or 1"),
    (lambda: ops.NPUAllocFloatStatus()(), ValueError, "devices have no overflow status here"),
    (lambda: ms.RowTensor(Tensor([0]), Tensor([1.0]), (3,)), ValueError, "tensors are dense"),
])
def test_errors_of_wrong_calls(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_bodies_for_sparse_tensors_are_never_called() -> None:
    scale = ops.MultitypeFuncGraph("scale")
    scale.register("Tensor", "RowTensor")(lambda scale, grad: ms.RowTensor(grad.indices, grad.values * scale, ()))
    scale.register("Tensor", "Tensor")(lambda scale, grad: scale * grad)
    assert scale(Tensor(2.0), Tensor(3.0)) == 6
    assert not isinstance(Tensor(1.0), (ms.RowTensor, ms.COOTensor, ms.CSRTensor))

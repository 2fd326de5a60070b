"""Compiled extensions of detection repositories, compared with the loops that they replace."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.contrib.detection import anchors, bbox_overlaps, bbox_selfoverlaps, cpu_nms, gpu_nms, greedy_nms, soft_nms


def boxes(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 40, (count, 2))
    return np.hstack([corner, corner + rng.integers(0, 30, (count, 2))]).astype(np.float32)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    area = [(each[2] - each[0] + 1) * (each[3] - each[1] + 1) for each in (a, b)]
    return width * height / (area[0] + area[1] - width * height)


@pytest.mark.parametrize("n, k", [(7, 5), (1, 1), (0, 3), (3, 0)])
def test_overlaps_equal_those_pair_by_pair(n: int, k: int) -> None:
    a, b = boxes(n, 0), boxes(k, 1)
    got = bbox_overlaps(a, b)
    assert got.shape == (n, k) and got.dtype == np.float64
    np.testing.assert_allclose(got, np.array([[overlap(x, y) for y in b] for x in a]).reshape(n, k), rtol=1e-6)


def test_the_covered_fraction_is_the_intersection_over_the_first_area() -> None:
    a, b = boxes(7, 0), boxes(5, 1)
    area = [(x[2] - x[0] + 1) * (x[3] - x[1] + 1) for x in a]
    common = [[overlap(x, y) / (1 + overlap(x, y)) * (area[i] + (y[2] - y[0] + 1) * (y[3] - y[1] + 1)) for y in b]
              for i, x in enumerate(a)]
    np.testing.assert_allclose(bbox_selfoverlaps(a, b), np.array(common) / np.array(area)[:, None], rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_suppression_equals_a_loop(threshold: float) -> None:
    dets = np.hstack([boxes(40, 2), np.random.default_rng(3).permutation(40).reshape(-1, 1) / 40]).astype(np.float32)
    kept: dict[bool, list[int]] = {}
    for with_equal in (False, True):
        kept[with_equal] = []
        for each in dets[:, 4].argsort()[::-1]:
            marks = [overlap(dets[best].astype(float), dets[each].astype(float)) for best in kept[with_equal]]
            if all(mark < threshold or (with_equal and mark == threshold) for mark in marks):
                kept[with_equal].append(int(each))
    assert cpu_nms(dets, threshold) == kept[False]
    assert greedy_nms(dets, threshold).tolist() == sorted(kept[False])
    assert gpu_nms(dets, threshold, device_id=1) == kept[True]


def test_suppression_of_no_boxes_gives_an_empty_list() -> None:
    assert cpu_nms(np.zeros((0, 5), np.float32), 0.5) == gpu_nms(np.zeros((0, 5), np.float32), 0.5) == []


def test_anchors_are_shifted_over_the_grid() -> None:
    base = np.array([[-8, -8, 23, 23], [-24, -8, 39, 23]], np.float32)
    got = anchors(3, 4, 16, base)
    assert got.shape == (3, 4, 2, 4) and got.dtype == np.float32
    for row in range(3):
        for column in range(4):
            np.testing.assert_array_equal(got[row, column], base + [column * 16, row * 16, column * 16, row * 16])


def loops(boxes_in: np.ndarray, sigma: float, most: float, least: float, method: int) -> tuple[list, list]:
    """Soft suppression box by box: the last box takes the place of a removed one."""
    left = [(list(map(float, box)), row) for row, box in enumerate(boxes_in)]
    i = 0
    while i < len(left):
        best = max(range(i, len(left)), key=lambda place: left[place][0][4])
        left[i], left[best] = left[best], left[i]
        place = i + 1
        while place < len(left):
            box, part = left[place][0], overlap(np.array(left[i][0]), np.array(left[place][0]))
            if part > 0:
                box[4] *= np.exp(-part * part / sigma) if method == 2 else \
                    1 if part <= most else 1 - part if method == 1 else 0
                if box[4] < least:
                    left[place] = left[-1]
                    left.pop()
                    continue
            place += 1
        i += 1
    return [box for box, _ in left], [row for _, row in left]


@pytest.mark.parametrize("method", [0, 1, 2])
@pytest.mark.parametrize("count, least", [(40, 0.001), (40, 0.3), (1, 0.5), (0, 0.5), (25, 0.0)])
def test_soft_suppression_lowers_scores_of_overlapping_boxes(method: int, count: int, least: float) -> None:
    dets = np.hstack([boxes(count, 4), np.random.default_rng(5).permutation(count).reshape(-1, 1) / max(count, 1)])
    dets = dets.astype(np.float32)
    before = dets.copy()
    stay, rows = soft_nms(dets, np.float32(0.5), np.float32(0.3), np.float32(least), np.uint8(method))
    expected, order = loops(dets, 0.5, 0.3, least, method)
    assert rows.tolist() == order and stay.dtype == np.float32
    np.testing.assert_allclose(stay, np.array(expected).reshape(-1, 5), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(dets, before)

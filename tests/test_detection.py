"""What detection repositories compile, against the loops that they compile."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.contrib.detection import anchors, bbox_overlaps, cpu_nms, gpu_nms


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
def test_overlaps(n: int, k: int) -> None:
    a, b = boxes(n, 0), boxes(k, 1)
    got = bbox_overlaps(a, b)
    assert got.shape == (n, k) and got.dtype == np.float64
    np.testing.assert_allclose(got, np.array([[overlap(x, y) for y in b] for x in a]).reshape(n, k), rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_suppression(threshold: float) -> None:
    dets = np.hstack([boxes(40, 2), np.random.default_rng(3).permutation(40).reshape(-1, 1) / 40]).astype(np.float32)
    kept: dict[bool, list[int]] = {}
    for with_equal in (False, True):
        kept[with_equal] = []
        for each in dets[:, 4].argsort()[::-1]:
            marks = [overlap(dets[best].astype(float), dets[each].astype(float)) for best in kept[with_equal]]
            if all(mark < threshold or (with_equal and mark == threshold) for mark in marks):
                kept[with_equal].append(int(each))
    assert cpu_nms(dets, threshold) == kept[False]
    assert gpu_nms(dets, threshold, device_id=1) == kept[True]


def test_nothing_to_suppress() -> None:
    assert cpu_nms(np.zeros((0, 5), np.float32), 0.5) == gpu_nms(np.zeros((0, 5), np.float32), 0.5) == []


def test_anchors() -> None:
    base = np.array([[-8, -8, 23, 23], [-24, -8, 39, 23]], np.float32)
    got = anchors(3, 4, 16, base)
    assert got.shape == (3, 4, 2, 4) and got.dtype == np.float32
    for row in range(3):
        for column in range(4):
            np.testing.assert_array_equal(got[row, column], base + [column * 16, row * 16, column * 16, row * 16])

"""Resized regions of images, maxima of windows with their indices, and distances, compared with loops in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import ops
from opreg.common import initializer as initializers
from opreg.errors import ArgumentError, ShapeError

IMAGES = np.random.default_rng(0).normal(size=(2, 5, 6, 3))
BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.2, 0.3, 1.3, 0.6], [0.9, 0.83, 0.1, 0.2]])
NUMBERS = np.array([0, 1, 1, 0])


def place(first: float, last: float, n: int, i: int, steps: int) -> float:
    """Coordinate of the i-th of equal steps between two edges."""
    return (n - 1) * ((first + last) / 2 if steps == 1 else first + i * (last - first) / (steps - 1))


def crops(images: np.ndarray, boxes: np.ndarray, size: tuple[int, int], method: str, beyond: float) -> np.ndarray:
    """The regions, element by element, in float64."""
    height, width = images.shape[1:3]
    result = np.full((len(boxes), *size, images.shape[3]), beyond)
    for k, i, j in itertools.product(range(len(boxes)), range(size[0]), range(size[1])):
        y = place(boxes[k, 0], boxes[k, 2], height, i, size[0])
        x = place(boxes[k, 1], boxes[k, 3], width, j, size[1])
        image = images[NUMBERS[k]]
        if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
            continue
        if method == "nearest":
            result[k, i, j] = image[int(y + 0.5), int(x + 0.5)]
            continue
        top, left = int(y), int(x)
        down, right = min(top + 1, height - 1), min(left + 1, width - 1)
        upper = image[top, left] * (left + 1 - x) + image[top, right] * (x - left)
        lower = image[down, left] * (left + 1 - x) + image[down, right] * (x - left)
        result[k, i, j] = upper * (top + 1 - y) + lower * (y - top)
    return result


def tensors() -> tuple[ms.Tensor, ms.Tensor, ms.Tensor]:
    return ms.Tensor(IMAGES, ms.float32), ms.Tensor(BOXES, ms.float32), ms.Tensor(NUMBERS, ms.int32)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (1, 2), (5, 1), (7, 7)])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crop_and_resize_equals_a_loop(method: str, size: tuple[int, int], compiled: bool) -> None:
    def call(images: ms.Tensor, boxes: ms.Tensor, numbers: ms.Tensor) -> ms.Tensor:
        return ops.CropAndResize(method, 0.5)(images, boxes, numbers, size)

    found = (ms.jit(call) if compiled else call)(*tensors())
    assert found.dtype == ms.float32
    np.testing.assert_allclose(found.asnumpy(), crops(IMAGES, BOXES, size, method, 0.5), atol=2e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_crop_and_resize_agree_with_differences(compiled: bool) -> None:
    """Gradients of images, and of corners inside of them, compared with central differences of the loops."""
    inside = BOXES[:2] * 0.9 + 0.03
    share = np.cos(np.arange(2 * 3 * 4 * 3)).reshape(2, 3, 4, 3)
    images, _, numbers = tensors()

    def loss(x: ms.Tensor, boxes: ms.Tensor) -> ms.Tensor:
        return (ops.crop_and_resize(x, boxes, numbers[:2], (3, 4)) * ms.Tensor(share, ms.float32)).sum()

    gradient = ms.grad(loss, (0, 1))
    found = (ms.jit(gradient) if compiled else gradient)(images, ms.Tensor(inside, ms.float32))
    for which, (given, step) in enumerate(((IMAGES, 1e-3), (inside, 1e-6))):
        expected = np.zeros_like(given)
        for index in np.ndindex(given.shape):
            sides = []
            for sign in (1, -1):
                moved = [IMAGES.copy(), inside.copy()]
                moved[which][index] += sign * step
                sides.append((crops(moved[0], moved[1], (3, 4), "bilinear", 0.0) * share).sum())
            expected[index] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found[which].asnumpy(), expected, atol=1e-4)


@pytest.mark.parametrize("change, error, match", [
    ({"image": IMAGES[0]}, ShapeError, "expected images"), ({"boxes": BOXES[:, :3]}, ShapeError, "boxes"),
    ({"box_indices": NUMBERS[:2]}, ShapeError, "box_indices"),
    ({"method": "cubic"}, ArgumentError, "crop_and_resize: method must be one of bilinear, nearest, got 'cubic'"),
])
def test_wrong_arguments_are_refused(change: dict[str, Any], error: type[Exception], match: str) -> None:
    given: dict[str, Any] = {"image": IMAGES, "boxes": BOXES, "box_indices": NUMBERS, "method": "nearest",
                             **change}
    images, boxes, numbers = (ms.Tensor(given[name]) for name in ("image", "boxes", "box_indices"))
    with pytest.raises(error, match=match):
        ops.crop_and_resize(images, boxes, numbers, (2, 2), given["method"])


@pytest.mark.parametrize("kernel, stride, mode", [(2, 2, "valid"), (3, 1, "valid"), (3, 2, "same"),
                                                  ((2, 3), (1, 2), "SAME")])
def test_max_pool_with_argmax_returns_flat_indices(kernel: Any, stride: Any, mode: str) -> None:
    """Values and gradients are those of MaxPool; places count all elements of an image."""
    x = ms.Tensor(np.random.default_rng(1).normal(size=(2, 3, 6, 7)), ms.float32)
    values, places = ops.MaxPoolWithArgmax(kernel, stride, mode)(x)
    pool = ops.MaxPool(kernel, stride, mode)
    assert places.dtype == ms.int32
    np.testing.assert_array_equal(values.asnumpy(), pool(x).asnumpy())
    flat = x.asnumpy().reshape(2, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, places.asnumpy().reshape(2, -1), 1), values.reshape(2, -1))
    square = [ms.grad(f)(x) for f in (
        lambda t: (ops.MaxPoolWithArgmax(kernel, stride, mode)(t)[0] ** 2).sum(), lambda t: (pool(t) ** 2).sum())]
    np.testing.assert_allclose(square[0].asnumpy(), square[1].asnumpy(), 1e-6)


@pytest.mark.parametrize("p", [0, 1, 2, 3, float("inf")])
def test_dist_is_the_norm_of_the_difference(p: float) -> None:
    x, y = np.array([[3.0, 1.0], [5.0, 0.0]]), np.array([1.0, 4.0])
    found = ops.dist(ms.Tensor(x), ms.Tensor(y), p)
    np.testing.assert_allclose(found.asnumpy(), np.linalg.norm((x - y).reshape(-1), p), 1e-6)


def test_index_add_changes_the_parameter() -> None:
    """The Parameter is changed, and indices may repeat."""
    weight = ms.Parameter(ms.Tensor(np.zeros((2, 3)), ms.float32), name="weight")
    add = ops.IndexAdd(axis=1)
    result = add(weight, ms.Tensor([0, 2, 0]), ms.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert weight.asnumpy().tolist() == result.asnumpy().tolist() == [[4.0, 0.0, 2.0], [10.0, 0.0, 5.0]]


def test_random_categorical_draws_by_logits() -> None:
    drawn = ops.RandomCategorical()(ms.Tensor([[0.0, 50.0, 0.0], [50.0, 0.0, 0.0]]), 4, 1)
    assert drawn.dtype == ms.int64
    assert drawn.asnumpy().tolist() == [[1] * 4, [0] * 4]


def test_users_initializers_may_call_mindspores_private_helpers() -> None:
    """Helpers that MindSpore's own initializers are written with, under its private names."""
    try:
        @initializers._register("_example_quarter")
        class _ExampleQuarter(initializers.Initializer):
            def _initialize(self, arr: np.ndarray) -> None:
                initializers._assignment(arr, np.full(arr.shape, 0.25))

        for name in ("_example_quarter", "_ExampleQuarter", _ExampleQuarter()):
            assert initializers.initializer(name, (2,)).asnumpy().tolist() == [0.25, 0.25]
    finally:
        for name in ("_example_quarter", "_examplequarter"):
            initializers._own.NAMED.pop(name, None)
    uniform = initializers._init_random_uniform(1.0, 3.0, (1000,))
    normal = initializers._init_random_normal(5.0, 0.1, (1000,))
    short = initializers._init_truncated_normal(-0.5, 1.0, 0.0, 1.0, (1000,))
    assert {array.dtype.name for array in (uniform, normal, short)} == {"float32"}
    assert 1 <= uniform.min() < 1.1 < 2.9 < uniform.max() <= 3
    assert abs(normal.mean() - 5) < 0.05
    assert -0.5 <= short.min() < short.max() <= 1

"""Metrics: results for several batches, equal to MindSpore 2.10's, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn, ops
from opreg.nn import metrics
from tests.questions import of_each

RECORD = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_metrics.json").read_text())["cases"]

CLASSES = ([[0.2, 0.5, 0.3], [0.3, 0.1, 0.6], [0.9, 0.05, 0.05]], [1, 0, 0])
METRICS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], Any]] = {
    "accuracy": (nn.Accuracy, CLASSES, 2 / 3),
    "accuracy of rows": (nn.Accuracy, (CLASSES[0], [[0, 1, 0], [1, 0, 0], [1, 0, 0]]), 2 / 3),
    "several classes": (lambda: nn.Accuracy("multilabel"), ([[0, 1], [1, 1]], [[0, 1], [1, 0]]), 0.5),
    "top 1": (nn.Top1CategoricalAccuracy, CLASSES, 2 / 3),
    "top 5": (nn.Top5CategoricalAccuracy, CLASSES, 1.0),
    "precision": (nn.Precision, CLASSES, [1.0, 1.0, 0.0]),
    "precision of several": (lambda: nn.Precision("multilabel"), ([[0, 1, 1], [1, 0, 0]], [[0, 1, 0], [1, 0, 1]]),
                             [0.5, 1.0]),
    "recall": (nn.Recall, CLASSES, [0.5, 1.0, 0.0]),
    "F1": (nn.F1, CLASSES, [2 / 3, 1.0, 0.0]),
    "Fbeta": (lambda: nn.Fbeta(2), CLASSES, [5 / 9, 1.0, 0.0]),
    "perplexity": (lambda: nn.Perplexity(0), CLASSES, 2.0),
    "mae": (nn.MAE, ([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [3.0, 0.0]]), 3.5),
    "mse": (nn.MSE, ([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [3.0, 0.0]]), 10.5),
    "loss": (nn.Loss, ([1.0, 3.0],), 2.0),
}


@pytest.mark.parametrize("make, inputs, expected", METRICS.values(), ids=METRICS)
def test_metrics_have_the_expected_values(make: Callable[[], Any], inputs: tuple[Any, ...], expected: Any) -> None:
    metric = make()
    metric.update(*(Tensor(np.array(each)) for each in inputs))
    np.testing.assert_allclose(metric.eval(), expected)
    np.testing.assert_allclose(metric(*inputs), expected)
    metric.clear()
    with pytest.raises(RuntimeError, match="there are no data"):
        metric.eval()
    with pytest.raises(ValueError, match=f"expected {len(inputs)} inputs"):
        metric.update(*inputs, *inputs)
    chosen = make().set_indexes(list(range(1, len(inputs) + 1)))
    chosen.update(None, *inputs)
    np.testing.assert_allclose(chosen.eval(), expected)


class Weighted(nn.Cell):
    """A model with scores of two classes, by a product with fixed weights."""

    def construct(self, x: Any) -> Any:
        rows = x.reshape((x.shape[0], -1))
        weights = np.arange(rows.shape[1] * 2).reshape(-1, 2) % 5 - 1.5
        return ops.matmul(rows, Tensor(weights.astype(np.float32)))


def given(metric: str, value: Any) -> Any:
    """An input of a recorded case, in its recorded type."""
    if value == "model":
        return Weighted()
    if metric == "BleuScore" or (isinstance(value, int) and metric != "OcclusionSensitivity"):
        return value
    array = np.array(value)
    if metric == "auc":
        return array
    return Tensor(array.astype(np.float32) if metric == "OcclusionSensitivity" and array.dtype.kind == "f" else array)


@of_each(RECORD, by=lambda case: case["metric"])
def test_metrics_have_the_recorded_values_of_mindspore(case: dict[str, Any]) -> None:
    name = case["metric"]
    batches = [[given(name, each) for each in batch] for batch in case["updates"]]
    if name == "auc":
        found = nn.auc(*batches[0], **case["arguments"])
    else:
        metric = getattr(nn, name)(**case["arguments"])
        assert type(metric) is getattr(ms.train, name)
        for batch in batches:
            metric.update(*batch)
        found = metric.eval()
        metric.clear()
        with pytest.raises(RuntimeError, match="there are no data"):
            metric.eval()
        with pytest.raises(ValueError, match=r"update: expected"):
            metric.update(*batches[0], *batches[0])
    flat = [found] if not isinstance(found, tuple) else found
    expected = [case["value"]] if not isinstance(found, tuple) else case["value"]
    for one, answer in zip(flat, expected, strict=True):
        for part, number in zip(*([one, answer] if isinstance(one, list) else [[one], [answer]]), strict=True):
            np.testing.assert_allclose(part, number, rtol=1e-5, atol=1e-6)


def test_every_metric_is_recorded() -> None:
    classes = {each for each in metrics.__all__ if isinstance(getattr(metrics, each), type)} - {"Metric"}
    rows = {made.__name__ for made, *_ in METRICS.values() if isinstance(made, type)}
    assert classes == rows | {case["metric"] for case in RECORD} - {"auc"}


def test_metrics_by_name() -> None:
    assert nn.names() == sorted(metrics._KINDS)  # type: ignore[attr-defined]
    assert isinstance(nn.get_metric_fn("hausdorff_distance", percentile=95.0), nn.HausdorffDistance)
    assert nn.get_metric_fn("auc", np.array([0.0, 1.0]), np.array([1.0, 1.0])) == 1.0


@pytest.mark.parametrize("kind", ["euclidean", "chessboard", "taxicab"])
@pytest.mark.parametrize("shape", [(40,), (13, 17), (6, 7, 8)], ids=str)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_distances_equal_the_minima_over_all_pairs(kind: str, shape: tuple[int, ...], share: float) -> None:
    """The distances equal the minima over all pairs of points."""
    rng = np.random.default_rng(0)
    there = rng.random(shape) < share
    there.flat[rng.integers(there.size)] = True
    steps = np.abs(np.argwhere(np.ones(shape))[:, None] - np.argwhere(there)[None])
    measured = {"euclidean": lambda: np.sqrt((steps**2).sum(axis=2)), "chessboard": lambda: steps.max(axis=2),
                "taxicab": lambda: steps.sum(axis=2)}[kind]()
    np.testing.assert_allclose(metrics.surfaces._distances_to_nearest(there, kind).ravel(), measured.min(axis=1),
                               rtol=1e-12)
    assert np.isinf(metrics.surfaces._distances_to_nearest(np.zeros(shape, bool), kind)).all()


def test_each_roc_curve_is_of_one_class_against_the_others() -> None:
    """Each curve is that of one class against all others; MindSpore's mixes classes unless there are as many
    samples."""
    rng = np.random.default_rng(0)
    scores, labels = rng.random((20, 3)), np.arange(20) % 3
    curves = nn.ROC(3)(scores, labels)
    for c in range(3):
        for part, expected in zip(curves, nn.ROC()(scores[:, c], (labels == c).astype(int)), strict=True):
            np.testing.assert_array_equal(part[c], expected)
    maps = nn.ROC(3)(np.moveaxis(scores.reshape(4, 5, 3), -1, 1), labels.reshape(4, 5))
    np.testing.assert_array_equal(maps[0][1], curves[0][1])


@pytest.mark.parametrize("settings", [{}, {"percentile": 70.0}, {"percentile": 70.0, "crop": False}], ids=str)
@pytest.mark.parametrize("predicted", [True, False])
def test_a_surface_that_is_missing_is_infinitely_far(settings: dict[str, Any], predicted: bool) -> None:
    """MindSpore's percentile of infinite distances is NaN."""
    row, nothing = np.array([[0, 0, 0, 0], [1, 1, 0, 1]]), np.zeros((2, 4))
    metric = nn.HausdorffDistance(**settings)
    metric.update(*((row, nothing) if predicted else (nothing, row)), 1)
    assert metric.eval() == np.inf


def test_a_region_of_one_point_is_its_own_surface() -> None:
    metric = nn.HausdorffDistance()
    metric.update(np.eye(3)[:1], np.eye(3)[:1], 1)
    assert metric.eval() == 0


def test_get_leaves_a_metric_unchanged() -> None:
    metric = nn.CosineSimilarity(reduction="sum")
    metric.update(Tensor(np.eye(3) + 1))
    np.testing.assert_array_equal(metric.eval(), metric.eval())
    matrix = nn.ConfusionMatrix(2)
    matrix.update([0, 1], [1, 1])
    matrix.eval()[:] = 7
    assert matrix.eval().sum() == 2


ROW = [[0, 1, 1], [1, 0, 1]]


@of_each([
    (lambda: nn.BleuScore(5), ValueError, "from 1 to 4"), (lambda: nn.BleuScore(smooth=1), TypeError, "smooth"),
    (lambda: nn.BleuScore()([["a"]], []), ValueError, "1 translations have 0"),
    (lambda: nn.ConfusionMatrix(2, "rows"), ValueError, "normalize must be one of"),
    (lambda: nn.ConfusionMatrix(2)([0, 2], [1, 1]), ValueError, "not one of the 2 classes"),
    (lambda: nn.ConfusionMatrix(2)([0, 1], ROW), ValueError, "as many axes as labels"),
    (lambda: nn.ConfusionMatrixMetric(metric_name="recal"), NotImplementedError, "Did you mean 'recall'"),
    (lambda: nn.ConfusionMatrixMetric(decrease="most"), ValueError, "decrease must be one of"),
    (lambda: nn.ConfusionMatrixMetric()([0, 1], [1, 1]), ValueError, "two axes"),
    (lambda: nn.ConfusionMatrixMetric()(ROW, [[0.5, 1, 1], [1, 0, 1]]), ValueError, "labels must be 0 and 1"),
    (lambda: nn.ConfusionMatrixMetric(calculation_method=True, decrease="none")(ROW, ROW), ValueError, "expected one"),
    (lambda: nn.CosineSimilarity("sine"), ValueError, "'dot' or 'cosine'"),
    (lambda: nn.Dice(0.0), ValueError, "smooth=0.0: expected a number above 0"),
    (lambda: nn.Dice()(ROW, [0, 1]), ValueError, r"shape \(2, 3\), labels \(2,\)"),
    (lambda: nn.HausdorffDistance("far"), ValueError, "distance_metric must be"),
    (lambda: nn.HausdorffDistance(percentile=101.0), ValueError, "percentile=101.0: expected a number from 0 to 100"),
    (lambda: nn.MeanSurfaceDistance()(ROW, ROW, 2), ValueError, "have the label 2"),
    (lambda: nn.MeanSurfaceDistance()(ROW, ROW[:1], 1), ValueError, "predictions have the shape"),
    (lambda: nn.RootMeanSquareDistance()(ROW, ROW, "1"), TypeError, "must be a number, got str"),
    (lambda: nn.ROC(2)([0.5], [1]), ValueError, "need class_num=1, got 2"),
    (lambda: nn.ROC(3)([[0.5, 0.5]], [1]), ValueError, "have 2 classes, class_num is 3"),
    (lambda: nn.ROC(2, 1)([[0.5, 0.5]], [1]), ValueError, "pos_label must be None"),
    (lambda: nn.ROC()([0.5, 0.4], [1, 1]), ValueError, "no negative samples"),
    (lambda: nn.OcclusionSensitivity(b_box=(0, 1)), TypeError, "b_box must be a list"),
    (lambda: nn.OcclusionSensitivity(b_box=[0, 3])(Weighted(), ROW[:1], [1]), ValueError, "must lie within"),
    (lambda: nn.OcclusionSensitivity(b_box=[0, 1, 0, 1])(Weighted(), ROW[:1], [1]), ValueError, "each of 1 axes"),
    (lambda: nn.OcclusionSensitivity()(Weighted(), ROW, [1]), RuntimeError, "one sample and its label"),
    (lambda: nn.OcclusionSensitivity()("model", ROW[:1], [1]), TypeError, "must be a Cell"),
    (lambda: nn.auc([0.0], np.ones(2)), TypeError, "x must be a numpy.ndarray, got list"),
    (lambda: nn.auc(np.ones(1), np.ones(1)), ValueError, "at least two points"),
    (lambda: nn.auc(np.array([0.0, 2.0, 1.0]), np.ones(3)), ValueError, "increase or decrease"),
])
def test_wrong_arguments_are_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()

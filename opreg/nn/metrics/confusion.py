"""Confusion matrices: counts of predictions by label, rates, and ROC curves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.named_errors import name_errors
from ...core.settings import flag, real_number, whole_number
from ...core.spec import is_numpy_float
from ...errors import ArgumentError, did_you_mean
from .metric import Metric, rearrange_inputs

__all__ = ["ROC", "ConfusionMatrix", "ConfusionMatrixMetric", "auc"]


class ConfusionMatrix(Metric):
    """A confusion matrix: counts of samples by class (rows) and predicted class (columns).

    Parameters
    ----------
    num_classes : int
        Number of classes.
    normalize : {"no_norm", "target", "prediction", "all"}
        Divisor of the counts: none, the sum of the row, of the column, or of all.
    threshold : float
        Threshold above which floating predictions, of the shape of labels, count as class 1.

    Examples
    --------
    >>> ConfusionMatrix(2)(np.array([0, 1, 1]), np.array([0, 0, 1]))
    array([[1., 1.],
           [0., 1.]])
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5):
        super().__init__()
        self.num_classes = whole_number("ConfusionMatrix: num_classes", num_classes, 1)
        kinds = ("no_norm", "target", "prediction", "all")
        if normalize not in kinds:
            raise ArgumentError(f"ConfusionMatrix: normalize must be one of {', '.join(map(repr, kinds))}, got "
                             f"{normalize!r}")
        self.normalize = normalize
        self.threshold = real_number("ConfusionMatrix: threshold", threshold, -np.inf)
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions, as class numbers or with classes along the second axis, and labels."""
        y_pred, y = self._pair(inputs)
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(axis=1)
        elif y_pred.ndim != y.ndim:
            raise ArgumentError(f"ConfusionMatrix.update: predictions of shape {y_pred.shape} need as many axes as "
                             f"labels, or one more, got {y.shape}")
        elif is_numpy_float(y_pred.dtype):
            y_pred = y_pred >= self.threshold
        pairs = (y.reshape(-1) * self.num_classes + y_pred.reshape(-1)).astype(int)
        counts = np.bincount(pairs, minlength=self.num_classes**2)
        if len(counts) > self.num_classes**2:
            raise ArgumentError(f"ConfusionMatrix.update: a label or a prediction is not one of the {self.num_classes} "
                             f"classes")
        self.confusion_matrix += counts.reshape(self.confusion_matrix.shape)

    def eval(self) -> np.ndarray:
        counts = self.confusion_matrix
        self._some(int(counts.sum()))
        if self.normalize == "no_norm":
            return counts.copy()
        axes = {"target": (1,), "prediction": (0,), "all": (0, 1)}[self.normalize]
        return np.nan_to_num(_quotient(counts, counts.sum(axis=axes, keepdims=True)))


class ConfusionMatrixMetric(Metric):
    """A rate computed from true and false positives and negatives.

    Parameters
    ----------
    skip_channel : bool
        Whether the first class counts; otherwise it is skipped, such as the background of an image.
    metric_name : str
        ``"sensitivity"``, ``"specificity"``, ``"precision"``, ``"accuracy"``, ``"f1 score"`` and others, with spaces or
        underscores.
    calculation_method : bool
        Whether rates are computed for each class of each sample and then averaged; otherwise from the total counts.
    decrease : {"mean", "sum", "none", "mean_batch", "sum_batch", "mean_channel", "sum_channel"}
        Reduction of the rates of a batch.

    Examples
    --------
    >>> metric = ConfusionMatrixMetric(metric_name="precision")
    >>> metric(np.array([[[0], [1]], [[1], [1]]]), np.array([[[0], [1]], [[0], [1]]])).round(4)
    array([0.6667])
    """

    def __init__(self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False,
                 decrease: str = "mean"):
        super().__init__()
        self.skip_channel = flag("ConfusionMatrixMetric: skip_channel", skip_channel)
        self.calculation_method = flag("ConfusionMatrixMetric: calculation_method", calculation_method)
        if not isinstance(metric_name, str):
            raise ArgumentError(f"ConfusionMatrixMetric: metric_name must be a str, got {type(metric_name).__name__}")
        self.metric_name = metric_name
        name = metric_name.replace(" ", "_").lower()
        if name not in _RATES:
            raise NotImplementedError(f"ConfusionMatrixMetric: there is no metric {metric_name!r}. "
                                      f"{did_you_mean(name, _RATES)}")
        self._rate = _RATES[name]
        if decrease not in _DECREASES:
            raise ArgumentError(f"ConfusionMatrixMetric: decrease must be one of {', '.join(_DECREASES)}, got "
                                f"{decrease!r}")
        self.decrease = decrease
        self.clear()

    def clear(self) -> None:
        self._counts = np.zeros(4)
        self._sum, self._rates, self._samples = 0.0, 0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions and labels, both 0 and 1, with classes along the second axis."""
        y_pred, y = self._pair(inputs)
        if y_pred.ndim < 2 or y_pred.shape != y.shape:
            raise ArgumentError(f"ConfusionMatrixMetric.update: expected predictions and labels of one shape, with two "
                             f"axes or more, got {y_pred.shape} and {y.shape}")
        if not (y.astype(np.uint8) == y).all():
            raise ArgumentError("ConfusionMatrixMetric.update: labels must be 0 and 1")
        self._samples += len(y)
        counts = _positives(y_pred, y, self.skip_channel)
        if not self.calculation_method:
            self._counts += counts.sum(axis=(0, 1))
            return
        rates, defined = _DECREASES[self.decrease](self._rate(*np.moveaxis(counts, -1, 0)))
        if np.size(rates) != 1:
            raise ArgumentError(f"ConfusionMatrixMetric: decrease={self.decrease!r} gives rates of the shape "
                             f"{np.shape(rates)}, expected one rate, as with 'mean' and 'sum'")
        self._sum += float(rates) * int(defined)
        self._rates += int(defined)

    def eval(self) -> Any:
        if self.calculation_method:
            self._some(self._rates)
            return self._sum / self._rates
        self._some(self._samples)
        return self._rate(*self._counts[:, None])


def _positives(y_pred: np.ndarray, y: np.ndarray, first: bool) -> np.ndarray:
    """True and false positives, true and false negatives, for each sample and class."""
    if not first and y.shape[1] > 1:
        y_pred, y = y_pred[:, 1:], y[:, 1:]
    predicted, actual = (array.reshape(*array.shape[:2], -1).astype(float) for array in (y_pred, y))
    both, neither = ((predicted + actual == n).sum(axis=2, dtype=float) for n in (2, 0))
    positives = actual.sum(axis=2)
    return np.stack([both, actual.shape[2] - positives - neither, neither, positives - both], axis=-1)


def _quotient(numerator: Any, denominator: Any) -> Any:
    """A quotient, NaN for a division by zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


def _declare_rate(rate: Callable[[Any, Any, Any, Any], Any], names: str) -> dict[str, Callable[..., Any]]:
    return dict.fromkeys(names.split(), rate)


#: Rates as functions of true and false positives and negatives, by all of their names.
_RATES: dict[str, Callable[..., Any]] = {
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp, tp + fn),
                    "sensitivity recall hit_rate true_positive_rate tpr"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tn, tn + fp), "specificity selectivity true_negative_rate tnr"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp, tp + fp), "precision positive_predictive_value ppv"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tn, tn + fn), "negative_predictive_value npv"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(fn, tp + fn), "miss_rate false_negative_rate fnr"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(fp, tn + fp), "fall_out false_positive_rate fpr"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(fp, tp + fp), "false_discovery_rate fdr"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(fn, tn + fn), "false_omission_rate for"),
    **_declare_rate(lambda tp, fp, tn, fn: _prevalence(_quotient(tp, tp + fn), _quotient(tn, tn + fp)),
                    "prevalence_threshold pt"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp, tp + fn + fp), "threat_score critical_success_index ts csi"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp + tn, tp + fp + tn + fn), "accuracy acc"),
    **_declare_rate(lambda tp, fp, tn, fn: (_quotient(tp, tp + fn) + _quotient(tn, tn + fp)) / 2,
                    "balanced_accuracy ba"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(2 * tp, 2 * tp + fn + fp), "f1_score f1"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp * tn - fp * fn,
                                                     np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
               "matthews_correlation_coefficient mcc"),
    **_declare_rate(lambda tp, fp, tn, fn: np.sqrt(_quotient(tp, tp + fp) * _quotient(tp, tp + fn)),
                    "fowlkes_mallows_index fm"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp, tp + fn) + _quotient(tn, tn + fp) - 1,
                    "informedness bookmaker_informedness bm"),
    **_declare_rate(lambda tp, fp, tn, fn: _quotient(tp, tp + fp) + _quotient(tn, tn + fn) - 1, "markedness deltap mk"),
}


def _prevalence(sensitivity: Any, specificity: Any) -> Any:
    return _quotient(np.sqrt(sensitivity * (1 - specificity)) + specificity - 1, sensitivity + specificity - 1)


def _mean(rates: np.ndarray, valid: np.ndarray, axis: int) -> tuple[Any, Any]:
    """Means of the known values along an axis, 0 without any, and the number of known values."""
    many = valid.sum(axis=axis)
    return np.nan_to_num(_quotient((rates * valid).sum(axis=axis), many)), many


def _sum(rates: np.ndarray, valid: np.ndarray, axis: int | tuple[int, ...]) -> tuple[Any, Any]:
    return rates.sum(axis=axis), valid.sum(axis=axis)


def _mean_of_means(rates: np.ndarray, valid: np.ndarray) -> tuple[Any, Any]:
    means, many = _mean(rates, valid, 1)
    return _mean(means, many > 0, 0)


def _mask_nan(function: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]
              ) -> Callable[[np.ndarray], tuple[Any, Any]]:
    return lambda rates: function(np.nan_to_num(rates), ~np.isnan(rates))


#: Reductions of rates by sample and class; each also returns the numbers of values.
_DECREASES: dict[str, Callable[[np.ndarray], tuple[Any, Any]]] = {
    "none": _mask_nan(lambda rates, known: (rates, known)),
    "mean": _mask_nan(_mean_of_means),
    "sum": _mask_nan(lambda rates, known: _sum(rates, known, (0, 1))),
    "mean_batch": _mask_nan(lambda rates, known: _mean(rates, known, 0)),
    "sum_batch": _mask_nan(lambda rates, known: _sum(rates, known, 0)),
    "mean_channel": _mask_nan(lambda rates, known: _mean(rates, known, 1)),
    "sum_channel": _mask_nan(lambda rates, known: _sum(rates, known, 1)),
}


class ROC(Metric):
    """ROC curves: false and true positive rates with their thresholds, for the latest batch.

    For several classes the results are three lists, with the curve of each class against the others.

    Parameters
    ----------
    class_num : int, optional
        Number of classes along the second axis of predictions; 1 or None if predictions have the shape of labels.
    pos_label : int, optional
        The positive label, 1 by default; None for several classes.

    Examples
    --------
    >>> ROC(pos_label=1)(np.array([0.9, 0.4, 0.6]), np.array([1, 0, 0]))
    (array([0. , 0. , 0.5, 1. ]), array([0., 1., 1., 1.]), array([1.9, 0.9, 0.6, 0.4]))
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None):
        super().__init__()
        self.class_num = None if class_num is None else whole_number("ROC: class_num", class_num, 1)
        if pos_label is not None and not isinstance(pos_label, int):
            raise ArgumentError(f"ROC: pos_label must be an int, got {type(pos_label).__name__}")
        self.pos_label = pos_label
        self.clear()

    def clear(self) -> None:
        self._taken: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions, with classes along the second axis if there are several, and labels."""
        y_pred, y = self._pair(inputs)
        if y_pred.ndim == y.ndim:
            if self.class_num not in (None, 1):
                raise ArgumentError(f"ROC.update: predictions of the shape of labels need class_num=1, got "
                                 f"{self.class_num}")
            y_pred = y_pred.reshape(-1, 1)
        elif y_pred.ndim == y.ndim + 1:
            if self.pos_label is not None:
                raise ArgumentError("ROC.update: with several classes, each is the positive one in turn; pos_label "
                                    f"must be None, got {self.pos_label}")
            classes = y_pred.shape[1]
            if self.class_num != classes:
                raise ArgumentError(f"ROC.update: predictions have {classes} classes, class_num is {self.class_num}")
            y_pred = np.moveaxis(y_pred, 1, -1).reshape(-1, classes)
        else:
            raise ArgumentError(f"ROC.update: predictions of shape {y_pred.shape} need as many axes as labels, or one "
                             f"less, got {y.shape}")
        self._taken = y_pred, y.reshape(-1)

    def eval(self) -> tuple[Any, Any, Any]:
        self._some(self._taken is not None)
        assert self._taken is not None
        y_pred, y = self._taken
        if self.class_num in (None, 1):
            return _curve(y_pred[:, 0], y == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(y_pred[:, c], y == c) for c in range(y_pred.shape[1])]
        false, true, thresholds = map(list, zip(*curves))
        return false, true, thresholds


def _curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # the indices of the last sample with each score
    true = np.cumsum(positive)[last]
    false = 1 + last - true
    for what, total in ("negative", false[-1]), ("positive", true[-1]):
        if not total:
            raise ArgumentError(f"ROC.eval: there are no {what} samples")
    rates = [np.append(0.0, counts / counts[-1]) for counts in (false, true)]
    return rates[0], rates[1], np.append(scores[:1] + 1, scores[last])


def auc(x: np.ndarray, y: np.ndarray, reorder: bool = False) -> Any:
    """The area under a curve, by trapezoids.

    Parameters
    ----------
    x, y : numpy.ndarray
        The points, with ``x`` increasing or decreasing.
    reorder : bool
        Whether points are sorted first.

    Examples
    --------
    >>> float(auc(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])))
    0.75
    """
    for name, values in ("x", x), ("y", y):
        if not isinstance(values, np.ndarray):
            raise ArgumentError(f"auc: {name} must be a numpy.ndarray, got {type(values).__name__}")
        if values.ndim != 1 and (values.ndim != 2 or values.shape[1] != 1):
            raise ArgumentError(f"auc: {name} must have one axis, got the shape {values.shape}")
    x, y = x.ravel(), y.ravel()
    if len(x) != len(y) or len(x) < 2:
        raise ArgumentError(f"auc: expected at least two points, and equally many x and y, got {len(x)} and {len(y)}")
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    if (steps < 0).any() and (steps > 0).any():
        raise ArgumentError("auc: x must increase or decrease; reorder=True sorts the points")
    return np.sum(np.abs(steps) * (y[1:] + y[:-1])) / 2


name_errors(__name__, globals(), __all__)

"""Losses, errors and accuracies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.settings import flag, real_number, whole_number
from ...errors import ArgumentError, OpError
from ...measures import LEAST, f_score, negative_log_likelihood
from .metric import Mean, Metric, rearrange_inputs

__all__ = ["Accuracy", "F1", "Fbeta", "Loss", "MAE", "MSE", "Perplexity", "Precision", "Recall",
           "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy"]


class Loss(Mean):
    """The mean of the mean losses of batches.

    Examples
    --------
    >>> Loss()([2.0, 4.0])
    3.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add the loss of a batch: a number, or one for each sample."""
        loss, = self._arrays(inputs, "a loss")
        if loss.ndim > 1:
            raise ArgumentError(f"Loss.update: a loss has at most one dimension, got the shape {loss.shape}")
        self._sum += float(loss.mean())
        self._samples += 1


class _PerSample(Mean):
    """Base of measures with a value for each sample, and their mean."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions and labels."""
        total, samples = self._measure(*self._pair(inputs))
        self._sum += float(total)
        self._samples += samples

    def _measure(self, y_pred: np.ndarray, y: np.ndarray) -> tuple[Any, int]:
        raise NotImplementedError


class MAE(_PerSample):
    """The absolute errors summed over each sample, averaged over all samples.

    Examples
    --------
    >>> MAE()([0.5, 2.0], [0.0, 1.0])
    0.75
    """

    def _measure(self, y_pred: np.ndarray, y: np.ndarray) -> tuple[Any, int]:
        return np.abs(y.reshape(y_pred.shape) - y_pred).sum(), len(y)


class MSE(_PerSample):
    """The squared errors summed over each sample, averaged over all samples.

    Examples
    --------
    >>> MSE()([0.5, 2.0], [0.0, 1.0])
    0.625
    """

    def _measure(self, y_pred: np.ndarray, y: np.ndarray) -> tuple[Any, int]:
        return np.square(y.reshape(y_pred.shape) - y_pred).sum(), len(y)


class TopKCategoricalAccuracy(_PerSample):
    """The fraction of samples whose label is among the ``k`` classes with the highest predictions.

    Parameters
    ----------
    k : int
        Number of classes that count.

    Examples
    --------
    >>> TopKCategoricalAccuracy(2)([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], [1, 2])
    0.5
    """

    def __init__(self, k: int):
        self.k = whole_number("TopKCategoricalAccuracy: k", k, 1)
        super().__init__()

    def _measure(self, y_pred: np.ndarray, y: np.ndarray) -> tuple[Any, int]:
        y = _classes(y_pred, y).reshape(-1, 1)
        best = np.argsort(-y_pred, axis=1)[:, :self.k]
        return (best == y).sum(), len(y)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """``TopKCategoricalAccuracy(1)``.

    Examples
    --------
    >>> import numpy as np
    >>> metric = Top1CategoricalAccuracy()
    >>> metric.update(np.array([[0.2, 0.8], [0.7, 0.3]]), np.array([1, 1]))
    >>> metric.eval()
    0.5
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """``TopKCategoricalAccuracy(5)``."""

    def __init__(self) -> None:
        super().__init__(5)


class Perplexity(_PerSample):
    """The exponential of the mean negative log-probability of the labels.

    Parameters
    ----------
    ignore_label : int, optional
        A label whose samples are ignored.

    Examples
    --------
    >>> Perplexity()([[0.5, 0.5], [0.5, 0.5]], [0, 1])
    2.0
    """

    def __init__(self, ignore_label: int | None = None):
        if ignore_label is not None and not isinstance(ignore_label, int):
            raise ArgumentError(f"Perplexity: ignore_label must be an int, got {type(ignore_label).__name__}")
        self.ignore_label = ignore_label
        super().__init__()

    def _measure(self, y_pred: np.ndarray, y: np.ndarray) -> tuple[Any, int]:
        rows = y_pred.reshape(-1, y_pred.shape[-1])
        if len(rows) != y.size:
            raise OpError(f"Perplexity.update: labels have the shape {y.shape}, predictions {y_pred.shape}")
        labels = y.reshape(-1).astype(int)
        return negative_log_likelihood(rows, labels, labels != self.ignore_label)

    def eval(self) -> float:
        return math.exp(super().eval())


class _ClassMeasure(Metric):
    """Base of measures of predicted classes.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        Whether a sample has one class, given as a number or a one-hot row; or several, with predictions and labels of 0
        and 1.
    """

    def __init__(self, eval_type: str = "classification"):
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise ArgumentError(f"{type(self).__name__}: eval_type must be 'classification' or 'multilabel', got "
                                f"{eval_type!r}")
        self._type = eval_type
        self.clear()

    def clear(self) -> None:
        self._class_num = 0

    def _check_pair(self, inputs: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
        y_pred, y = self._pair(inputs)
        if self._type == "classification":
            y = _classes(y_pred, y)
        many = self._type == "multilabel"
        expected = y_pred.shape if many else y_pred.shape[:1] + y_pred.shape[2:]
        if y.shape != expected or y_pred.ndim < 2:
            raise ArgumentError(f"{type(self).__name__}.update: predictions of shape {y_pred.shape} need labels of "
                                f"shape {expected}, got {y.shape}")
        if many and not all(np.isin(array, (0, 1)).all() for array in (y_pred, y)):
            raise ArgumentError(f"{type(self).__name__}.update: predictions and labels of several classes must be 0 "
                                "and 1")
        if self._class_num not in (0, y_pred.shape[1]):
            raise ArgumentError(f"{type(self).__name__}.update: predictions have {y_pred.shape[1]} classes, earlier "
                                f"ones had {self._class_num}")
        self._class_num = y_pred.shape[1]
        return y_pred, y


class Accuracy(_ClassMeasure):
    """The fraction of samples that are predicted correctly.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        Whether a sample has one class, or several, all of which have to be right.

    Examples
    --------
    >>> Accuracy()([[0.2, 0.8], [0.9, 0.1]], [1, 1])
    0.5
    """

    def clear(self) -> None:
        super().clear()
        self._right = self._samples = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions, with the classes along the second axis, and labels."""
        y_pred, y = self._check_pair(inputs)
        right = y_pred.argmax(axis=1) == y if self._type == "classification" else (y_pred == y).all(axis=1)
        self._right += int(right.sum())
        self._samples += right.size

    def eval(self) -> float:
        self._some(self._samples)
        return self._right / self._samples


class _Positives(_ClassMeasure):
    """Base of precision and recall: counts of predictions, of labels, and of both, by class; by sample for several
    classes."""

    def clear(self) -> None:
        super().clear()
        self._counts = np.zeros((3, 1))

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions, with the classes along the second axis, and labels."""
        y_pred, y = self._check_pair(inputs)
        first = not self._counts.any()
        if self._type == "multilabel":
            y_pred, y = (np.moveaxis(array, 1, 0).reshape(self._class_num, -1) for array in (y_pred, y))
        else:
            if y.max() >= self._class_num:
                raise ArgumentError(f"{type(self).__name__}.update: a label is {y.max()}, but predictions have "
                                    f"{self._class_num} classes")
            rows = np.eye(self._class_num)
            y_pred, y = rows[y_pred.argmax(axis=1).reshape(-1)], rows[y.astype(int).reshape(-1)]
        counts = np.stack([(y * y_pred).sum(axis=0), y_pred.sum(axis=0), y.sum(axis=0)])
        if self._type == "multilabel":
            self._counts = counts if first else np.concatenate([self._counts, counts], axis=1)
        else:
            self._counts = self._counts + counts

    def eval(self, average: bool = False) -> Any:
        """The metric of each class, or of each sample if samples have several classes; or their mean."""
        flag(f"{type(self).__name__}: average", average)
        self._some(self._class_num)
        result = self._share(*self._counts)
        return result.mean() if average else result

    def _share(self, both: np.ndarray, predicted: np.ndarray, positive: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Precision(_Positives):
    """Precision: the fraction of samples predicted as a class that belong to it.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        Whether a sample has one class, or several.

    Examples
    --------
    >>> Precision()([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]], [1, 0, 0])
    array([1. , 0.5])
    """

    def _share(self, both: np.ndarray, predicted: np.ndarray, positive: np.ndarray) -> np.ndarray:
        return both / (predicted + LEAST)


class Recall(_Positives):
    """Recall: the fraction of samples of a class that are predicted as it.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        Whether a sample has one class, or several.

    Examples
    --------
    >>> Recall()([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]], [1, 0, 0])
    array([0.5, 1. ])
    """

    def _share(self, both: np.ndarray, predicted: np.ndarray, positive: np.ndarray) -> np.ndarray:
        return both / (positive + LEAST)


class Fbeta(_Positives):
    """The F score of precision and recall, by class.

    Parameters
    ----------
    beta : float
        Weight of recall relative to precision.

    Examples
    --------
    >>> Fbeta(1.0)([[0.2, 0.8], [0.9, 0.1]], [1, 0])
    array([1., 1.])
    """

    def __init__(self, beta: float):
        self.beta = real_number(f"{type(self).__name__}: beta", beta, inside=True)
        super().__init__()

    def _share(self, both: np.ndarray, predicted: np.ndarray, positive: np.ndarray) -> np.ndarray:
        return f_score(both, predicted, positive, self.beta)


class F1(Fbeta):
    """``Fbeta(1.0)``.

    Examples
    --------
    >>> import numpy as np
    >>> metric = F1()
    >>> metric.update(np.array([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]), np.array([1, 0, 0]))
    >>> metric.eval().round(3)
    array([0.667, 0.667])
    """

    def __init__(self) -> None:
        super().__init__(1.0)


def _classes(y_pred: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels as class numbers, also if they are one-hot rows."""
    rows = y.ndim > 1 and y.ndim == y_pred.ndim and np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()
    return y.argmax(axis=1) if rows else y

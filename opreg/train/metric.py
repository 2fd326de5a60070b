"""Metrics of predictions against labels, accumulated over batches.

A metric is updated with lists of labels and predictions, in the same order; ``get`` returns its name and value since
the last ``reset``. It has two sums: ``reset_local`` resets that of ``get``, not that of ``get_global``. Sums are
computed on the host in double precision.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy

from opreg.ndarray.ndarray import NDArray

from ..aliases import inner
from ..core.attrs import Amount
from ..core.named_errors import name_errors
from ..core.settings import whole_number
from ..errors import ArgumentError, AttrError, ShapeError, did_you_mean
from ..measures import f_score, negative_log_likelihood
from .base_metric import (
    METRICS,
    Arrays,
    EvalMetric,
    Measure,
    alias,
    check_label_shapes,
    host_array,
    name_value_pairs,
    register,
)

__all__ = ["EvalMetric", "CompositeEvalMetric", "CustomMetric", "Accuracy", "TopKAccuracy", "F1", "MCC", "PCC", "MAE",
           "MSE", "RMSE", "CrossEntropy", "NegativeLogLikelihood", "Perplexity", "PearsonCorrelation", "Loss", "Torch",
           "Caffe", "register", "alias", "create", "np", "check_label_shapes"]

__getattr__ = inner(__name__)

#: Arguments from which ``create`` makes a metric.
MetricLike: TypeAlias = "EvalMetric | str | Mapping[str, Any] | Measure | Sequence[MetricLike]"


def create(metric: MetricLike, *args: Any, **kwargs: Any) -> EvalMetric:
    """A metric, from itself, its name, a function of label and prediction, the result of ``get_config`` or its JSON, or
    a list of these.

    Raises
    ------
    AttrError
        For an unregistered name, and for keywords that the metric does not take.

    Examples
    --------
    >>> create("acc").name, create(["mse", "mae"]).get()[0]
    ('accuracy', ['mse', 'mae'])
    """
    if isinstance(metric, EvalMetric):
        if args or kwargs:
            raise ArgumentError(f"metric: {metric.name} is made already, so it takes no keywords")
        return metric
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(part, *args, **kwargs) for part in metric])
    if isinstance(metric, (str, Mapping)):
        return METRICS.make(metric, args, kwargs)
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    raise ArgumentError(f"metric: expected one, its name, a function or a list of those, got {metric!r}")


@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one; names and values are lists.

    Examples
    --------
    >>> metric = CompositeEvalMetric(["mae", "mse"])
    >>> metric.update([numpy.array([1.0, 2.0])], [numpy.array([1.0, 4.0])])
    >>> metric.get()
    (['mae', 'mse'], [1.0, 2.0])
    """

    def __init__(self, metrics: Sequence[MetricLike] | None = None, name: str = "composite",
                 output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None):
        self.metrics = [create(metric) for metric in metrics or ()]
        super().__init__(name, output_names, label_names)

    def add(self, metric: MetricLike) -> None:
        """Add a metric."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric at an index.

        Raises
        ------
        ArgumentError
            When the index is out of range.
        """
        if not -len(self.metrics) <= index < len(self.metrics):
            raise ArgumentError(f"there is no metric {index}: there are {len(self.metrics)}")
        return self.metrics[index]

    def update_dict(self, label: Mapping[str, NDArray], pred: Mapping[str, NDArray]) -> None:
        label, pred = self._chosen("label", self.label_names, label), self._chosen("output", self.output_names, pred)
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    @staticmethod
    def _names_and_values(entries: Iterable[tuple[Any, Any]]) -> tuple[list[str], list[float]]:
        pairs = [pair for of_metric in entries for pair in name_value_pairs(of_metric)]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get(self) -> tuple[Any, Any]:
        return self._names_and_values(metric.get() for metric in self.metrics)

    def get_global(self) -> tuple[Any, Any]:
        return self._names_and_values(metric.get_global() for metric in self.metrics)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}

    def _chosen(self, what: str, names: Sequence[str] | None, arrays: Mapping[str, NDArray]) -> Any:
        if names is None:
            return arrays
        super()._chosen(what, names, arrays)
        return OrderedDict((name, value) for name, value in arrays.items() if name in names)


# --------------------------------------------------------------------------------------------- classification


@alias("acc")
class Accuracy(EvalMetric):
    """The fraction of correct classes.

    Parameters
    ----------
    axis : int
        Axis of the scores; predictions with the labels' rank are class numbers.

    Examples
    --------
    >>> metric = Accuracy()
    >>> metric.update([numpy.array([0, 1, 1])], [numpy.array([[0.7, 0.3], [0.4, 0.6], [0.8, 0.2]])])
    >>> print(round(metric.get()[1], 3))
    0.667
    """

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            labelled, classes = host_array(label), host_array(pred)
            if classes.shape != labelled.shape:
                if not -classes.ndim <= self.axis < classes.ndim:
                    check_label_shapes(labelled, classes, shape=True)
                classes = classes.argmax(axis=self.axis)
            labelled, classes = labelled.astype("int64").ravel(), classes.astype("int64").ravel()
            check_label_shapes(labelled, classes)
            self._add(float((labelled == classes).sum()), labelled.size)


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The fraction of labels among the ``top_k`` highest scores; ``top_k`` is more than one.

    Examples
    --------
    >>> metric = TopKAccuracy(top_k=2)
    >>> metric.update([numpy.array([0, 1])], [numpy.array([[0.3, 0.1, 0.6], [0.3, 0.1, 0.6]])])
    >>> metric.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        if whole_number("TopKAccuracy: top_k", top_k) < 2:
            raise ArgumentError(f"top_k={top_k}: expected at least two; for one there is Accuracy")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k, self._own_name = top_k, name

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "name": self._own_name}

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            classes, scores = host_array(label).astype("int64").ravel(), host_array(pred)
            if scores.ndim > 2:
                raise ShapeError(f"predictions: expected scores by row and class, got shape {scores.shape}")
            check_label_shapes(classes, scores)
            if scores.ndim == 1:
                self._add(float((scores.astype("int64") == classes).sum()), classes.size)
                continue
            count = min(self.top_k, scores.shape[1])
            # sorted with float32 scores, as in MXNet, so that the same one of equal scores counts
            best = numpy.argsort(scores.astype("float32"), axis=1)[:, scores.shape[1] - count:]
            self._add(float((best == classes[:, None]).sum()), classes.size)


class _Binary(EvalMetric):
    """Base of scores computed from true and false positives and negatives.

    ``average`` is "macro" for the mean of the batches' scores, "micro" for the score of all samples together.
    """

    def __init__(self, name: str, output_names: Sequence[str] | None, label_names: Sequence[str] | None,
                 average: str):
        if average not in ("macro", "micro"):
            raise AttrError(f"there is no average {average!r}. {did_you_mean(average, ('macro', 'micro'))}")
        self.average = average
        self._counts = self._global_counts = numpy.zeros(4)
        super().__init__(name, output_names, label_names, average=average)

    def score(self, true_yes: float, false_yes: float, false_no: float, true_no: float) -> float:
        """The score from the four counts."""
        raise NotImplementedError

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            classes, scores = host_array(label).astype("int64").ravel(), host_array(pred)
            predicted = scores.argmax(axis=1) if scores.ndim > 1 else scores.astype("int64")
            check_label_shapes(classes, predicted)
            if len(numpy.unique(classes)) > 2:
                raise ArgumentError(f"{type(self).__name__} is for two classes; the labels have "
                                    f"{len(numpy.unique(classes))}")
            counts = numpy.array([((predicted == guess) & (classes == truth)).sum()
                                  for guess, truth in ((1, 1), (1, 0), (0, 1), (0, 0))], float)
            self._counts, self._global_counts = self._counts + counts, self._global_counts + counts
        if self.average == "macro":
            self._add(self.score(*self._counts))
            self._counts = self._global_counts = numpy.zeros(4)
        else:
            self.num_inst, self.global_num_inst = int(self._counts.sum()), int(self._global_counts.sum())
            self.sum_metric = self.score(*self._counts) * self.num_inst
            self.global_sum_metric = self.score(*self._global_counts) * self.global_num_inst

    def reset(self) -> None:
        self._global_counts = numpy.zeros(4)
        super().reset()

    def reset_local(self) -> None:
        self._counts = numpy.zeros(4)
        super().reset_local()


@register
class F1(_Binary):
    """The F1 score, the harmonic mean of precision and recall, of two classes; the second is the positive one.

    Examples
    --------
    >>> metric = F1()
    >>> metric.update([numpy.array([1, 1, 0])], [numpy.array([[0.2, 0.8], [0.7, 0.3], [0.9, 0.1]])])
    >>> print(round(metric.get()[1], 3))
    0.667
    """

    def __init__(self, name: str = "f1", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None, average: str = "macro"):
        super().__init__(name, output_names, label_names, average)

    def score(self, true_yes: float, false_yes: float, false_no: float, true_no: float) -> float:
        return float(f_score(true_yes, true_yes + false_yes, true_yes + false_no))


@register
class MCC(_Binary):
    """Matthews' correlation coefficient of two classes, from -1 to 1.

    Examples
    --------
    >>> metric = MCC()
    >>> metric.update([numpy.array([1, 1, 0])], [numpy.array([[0.2, 0.8], [0.7, 0.3], [0.9, 0.1]])])
    >>> print(round(metric.get()[1], 3))
    0.5
    """

    def __init__(self, name: str = "mcc", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None, average: str = "macro"):
        super().__init__(name, output_names, label_names, average)

    def score(self, true_yes: float, false_yes: float, false_no: float, true_no: float) -> float:
        below = 1.0
        for term in (true_yes + false_yes, true_yes + false_no, true_no + false_yes, true_no + false_no):
            below *= term or 1.0
        return (true_yes * true_no - false_yes * false_no) / math.sqrt(below)


@register
class PCC(EvalMetric):
    """The correlation of true and predicted classes: Matthews' coefficient for any number of classes.

    Examples
    --------
    >>> metric = PCC()
    >>> metric.update([numpy.array([0, 1, 2])], [numpy.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.5, 0.3]])])
    >>> print(round(metric.get()[1], 3))
    0.612
    """

    def __init__(self, name: str = "pcc", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None, has_global_stats: bool = True):
        self._confusion = self._global_confusion = numpy.zeros((2, 2))
        super().__init__(name, output_names, label_names)

    @staticmethod
    def _grow_confusion(confusion: numpy.ndarray, count: int) -> numpy.ndarray:
        missing = max(count - len(confusion), 0)
        return numpy.pad(confusion, ((0, missing), (0, missing)))

    @staticmethod
    def _correlation(confusion: numpy.ndarray) -> float:
        """J. Gorodkin, Comparing two K-category assignments by a K-category correlation coefficient, 2004."""
        predicted, labelled, total = confusion.sum(axis=1), confusion.sum(axis=0), confusion.sum()
        covariance = confusion.trace() * total - predicted @ labelled
        spread = (total**2 - predicted @ predicted) * (total**2 - labelled @ labelled)
        return float(covariance / math.sqrt(spread)) if spread > 0 else float("nan")

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            classes, scores = host_array(label).astype("int64"), host_array(pred)
            predicted = (scores.argmax(axis=1) if scores.ndim > classes.ndim else scores.astype("int64")).ravel()
            classes = classes.ravel()
            check_label_shapes(classes, predicted)
            count = int(max(classes.max(initial=0), predicted.max(initial=0))) + 1
            self._confusion = self._grow_confusion(self._confusion, count)
            self._global_confusion = self._grow_confusion(self._global_confusion, count)
            numpy.add.at(self._confusion, (predicted, classes), 1)
            numpy.add.at(self._global_confusion, (predicted, classes), 1)
        self.num_inst = self.global_num_inst = 1
        self.sum_metric = self._correlation(self._confusion)
        self.global_sum_metric = self._correlation(self._global_confusion)

    def reset(self) -> None:
        self._global_confusion = numpy.zeros((2, 2))
        super().reset()

    def reset_local(self) -> None:
        self._confusion = numpy.zeros((2, 2))
        super().reset_local()


# ------------------------------------------------------------------------------------------------ likelihoods


@alias("ce", "cross-entropy")
class CrossEntropy(EvalMetric):
    """The mean negative log-probability of the correct class.

    Parameters
    ----------
    eps : float
        Term added to the probabilities.

    Examples
    --------
    >>> metric = CrossEntropy()
    >>> metric.update([numpy.array([0, 1])], [numpy.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> print(round(metric.get()[1], 3))
    0.693
    """

    def __init__(self, eps: Amount = 1e-12, name: str = "cross-entropy", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            classes, chances = host_array(label).astype("int64").ravel(), host_array(pred)
            check_label_shapes(classes, chances)
            of_label = chances[numpy.arange(classes.size), classes]
            with numpy.errstate(divide="ignore"):
                self._add(float(-numpy.log(of_label.astype(float) + self.eps).sum()), classes.size)


@alias("nll_loss", "nll-loss")
class NegativeLogLikelihood(CrossEntropy):
    """``CrossEntropy`` under another name.

    Examples
    --------
    >>> metric = NegativeLogLikelihood()
    >>> metric.update([numpy.array([0, 1])], [numpy.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> print(round(metric.get()[1], 3))
    0.693
    """

    def __init__(self, eps: Amount = 1e-12, name: str = "nll-loss", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """The exponential of the mean negative log-probability of the correct class.

    Parameters
    ----------
    ignore_label : int or None
        A label whose samples are ignored.
    axis : int
        Axis of the probabilities.

    Examples
    --------
    >>> from opreg import nd
    >>> metric = Perplexity(ignore_label=None)
    >>> metric.update([nd.array([0, 1])], [nd.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> print(round(metric.get()[1], 3))
    2.0
    """

    def __init__(self, ignore_label: int | None, axis: int = -1, name: str = "perplexity",
                 output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis)
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels: Arrays, preds: Arrays) -> None:
        total, count = 0.0, 0
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            wanted, chances = host_array(label).astype("int64").ravel(), numpy.moveaxis(host_array(pred), self.axis, -1)
            classes = chances.shape[-1]
            if wanted.size != chances.size // classes:
                raise ShapeError(f"labels and predictions differ in number: {wanted.size} and "
                                 f"{chances.size // classes}")
            # a label that is no class is clipped to the classes, as are labels of the last words of sentences
            batch_total, batch_count = negative_log_likelihood(
                chances.reshape(-1, classes), numpy.clip(wanted, 0, classes - 1), wanted != self.ignore_label)
            total, count = total + batch_total, count + batch_count
        self._add(total, count)

    def _value(self, total: float, count: int) -> float:
        return math.exp(total / count)


# ------------------------------------------------------------------------------------------------- regression


class _Error(EvalMetric):
    """Base of metrics that average a batch's mean error over batches."""

    def measure(self, difference: numpy.ndarray) -> float:
        """The error of a batch by its differences."""
        raise NotImplementedError

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            targets, predicted = (array.reshape(-1, 1) if array.ndim == 1 else array
                                  for array in (host_array(label), host_array(pred)))
            self._add(self.measure(targets.astype(float) - predicted))


@register
class MAE(_Error):
    """The mean absolute difference.

    Examples
    --------
    >>> metric = MAE()
    >>> metric.update([numpy.array([1.0, 2.0])], [numpy.array([1.0, 4.0])])
    >>> metric.get()
    ('mae', 1.0)
    """

    def __init__(self, name: str = "mae", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)

    def measure(self, difference: numpy.ndarray) -> float:
        return float(numpy.abs(difference).mean())


@register
class MSE(_Error):
    """The mean squared difference.

    Examples
    --------
    >>> metric = MSE()
    >>> metric.update([numpy.array([1.0, 2.0])], [numpy.array([1.0, 4.0])])
    >>> metric.get()
    ('mse', 2.0)
    """

    def __init__(self, name: str = "mse", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)

    def measure(self, difference: numpy.ndarray) -> float:
        return float((difference**2).mean())


@register
class RMSE(_Error):
    """The root of the mean squared difference of a batch.

    Examples
    --------
    >>> metric = RMSE()
    >>> metric.update([numpy.array([1.0, 2.0])], [numpy.array([3.0, 4.0])])
    >>> metric.get()
    ('rmse', 2.0)
    """

    def __init__(self, name: str = "rmse", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)

    def measure(self, difference: numpy.ndarray) -> float:
        return math.sqrt((difference**2).mean())


@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """The correlation of labels and predictions.

    Parameters
    ----------
    average : {"macro", "micro"}
        Whether it is the mean of the batches' correlations, or the correlation of all pairs.

    Examples
    --------
    >>> metric = PearsonCorrelation()
    >>> metric.update([numpy.array([1.0, 2.0, 3.0])], [numpy.array([10.0, 20.0, 30.0])])
    >>> print(round(metric.get()[1], 3))
    1.0
    """

    def __init__(self, name: str = "pearsonr", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None, average: str = "macro"):
        if average not in ("macro", "micro"):
            raise AttrError(f"there is no average {average!r}. {did_you_mean(average, ('macro', 'micro'))}")
        self.average = average
        super().__init__(name, output_names, label_names, average=average)

    def reset_local(self) -> None:
        super().reset_local()
        self._seen: list[numpy.ndarray] = []

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for label, pred in zip(*check_label_shapes(labels, preds, wrap=True)):
            pair = numpy.stack([host_array(pred).ravel().astype(float), host_array(label).ravel().astype(float)])
            if self.average == "macro":
                self._add(float(numpy.corrcoef(pair)[0, 1]))
            else:
                self._seen.append(pair)
                self._add(0.0)

    def get(self) -> tuple[Any, Any]:
        if self.average == "micro" and self._seen:
            return self.name, float(numpy.corrcoef(numpy.concatenate(self._seen, axis=1))[0, 1])
        return super().get()


# ----------------------------------------------------------------------------------------------------- others


@register
class Loss(EvalMetric):
    """The mean of the outputs; labels are ignored.

    Examples
    --------
    >>> from opreg import nd
    >>> metric = Loss()
    >>> metric.update(None, [nd.array([1.0, 3.0])])
    >>> metric.get()
    ('loss', 2.0)
    """

    def __init__(self, name: str = "loss", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)

    def update(self, labels: Arrays, preds: Arrays) -> None:
        for pred in preds if isinstance(preds, (list, tuple)) else [preds]:
            losses = host_array(pred)
            self._add(float(losses.sum(dtype=float)), losses.size)


@register
class Torch(Loss):
    """``Loss`` under another name."""

    def __init__(self, name: str = "torch", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)


@register
class Caffe(Torch):
    """``Loss`` under another name."""

    def __init__(self, name: str = "caffe", output_names: Sequence[str] | None = None,
                 label_names: Sequence[str] | None = None):
        super().__init__(name, output_names, label_names)


@register
class CustomMetric(EvalMetric):
    """A metric by a function of label and prediction, NumPy arrays: it returns a number, or a sum and a count.

    Parameters
    ----------
    feval : function
        See above.
    name : str
        The function's name by default.
    allow_extra_outputs : bool
        Whether there may be more predictions than labels; the surplus is ignored.

    Examples
    --------
    >>> metric = CustomMetric(lambda label, pred: float(abs(label - pred).max()), name="largest")
    >>> metric.update([numpy.array([1.0, 2.0])], [numpy.array([1.0, 4.0])])
    >>> metric.get()
    ('largest', 2.0)
    """

    def __init__(self, feval: Measure, name: str | None = None, allow_extra_outputs: bool = False,
                 output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None):
        if name is None:
            name = feval.__name__
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names, feval=feval, allow_extra_outputs=allow_extra_outputs)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    of_text = False

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(f"metric {self.name}: it computes a function, which cannot be saved as text")

    def update(self, labels: Any, preds: Any) -> None:
        labels = labels if isinstance(labels, (list, tuple)) else [labels]
        preds = preds if isinstance(preds, (list, tuple)) else [preds]
        if not self._allow_extra_outputs:
            check_label_shapes(labels, preds)
        for label, pred in zip(labels, preds):
            value = self._feval(host_array(label), host_array(pred))
            self._add(*(value if isinstance(value, tuple) else (value, 1)))


def np(numpy_feval: Measure, name: str | None = None, allow_extra_outputs: bool = False) -> CustomMetric:
    """A metric by a function of label and prediction.

    Examples
    --------
    >>> metric = np(lambda label, pred: abs(label - pred).max(), name="worst")
    >>> metric.update([numpy.array([1, 2])], [numpy.array([1.5, 4])])
    >>> name, value = metric.get()
    >>> name, float(value)
    ('worst', 2.0)
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


name_errors(__name__, globals(), __all__)

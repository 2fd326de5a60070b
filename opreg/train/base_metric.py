"""The base class of metrics, and the checks of labels and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import ArrayLike

from opreg.ndarray.ndarray import NDArray

from ..core.named_errors import name_errors
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, ShapeError, did_you_mean
from .named import Named

__all__ = ["METRICS", "Arrays", "Measure", "EvalMetric", "register", "alias", "host_array", "check_label_shapes",
           "name_value_pairs"]

#: The registered metrics.
METRICS = Named("metric")

#: Labels or predictions: an array, or a list of them.
Arrays: TypeAlias = ArrayLike | Sequence[ArrayLike]
#: A function of label and prediction that returns a value, or a sum and a count.
Measure: TypeAlias = Callable[[numpy.ndarray, numpy.ndarray], float | tuple[float, int]]


def register(klass: type, *names: str) -> type:
    """A decorator that registers a metric by the name of its class in lower case, and by further names."""
    return METRICS.enter(klass, *names)


alias = METRICS.alias


def host_array(array: Any) -> numpy.ndarray:
    """Labels or predictions as an array of NumPy."""
    return array.asnumpy() if isinstance(array, NDArray) else numpy.asarray(array)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Labels and predictions, with ``wrap`` in lists, after a check that their lengths, or with ``shape`` their shapes,
    are equal.

    Raises
    ------
    ShapeError
        When they differ.
    """
    if wrap:
        labels = labels if isinstance(labels, (list, tuple)) else [labels]
        preds = preds if isinstance(preds, (list, tuple)) else [preds]
    of_labels, of_preds = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if of_labels != of_preds:
        what = "shape" if shape else "number"
        hint = "; a metric's output_names and label_names choose among several" if wrap else ""
        raise ShapeError(f"labels and predictions differ in {what}: {of_labels} and {of_preds}{hint}")
    return labels, preds


@METRICS.of
class EvalMetric(CheckedMethods):
    """A value accumulated over batches. A subclass adds to ``sum_metric`` and ``num_inst`` in ``update``, and to
    ``global_sum_metric`` and ``global_num_inst`` if there is a value that ``reset_local`` does not reset.

    Parameters
    ----------
    name : str
        Name returned by ``get``.
    output_names, label_names : list of str or None
        Names of the predictions and labels for ``update_dict``, in order; all by default.

    Examples
    --------
    >>> class Largest(EvalMetric):
    ...     def update(self, labels, preds):
    ...         for label, pred in zip(labels, preds):
    ...             self.sum_metric = max(self.sum_metric, float(abs(label - pred).max().asscalar()))
    ...             self.num_inst = 1
    >>> from opreg import nd
    >>> metric = Largest("largest")
    >>> metric.update([nd.array([1.0, 2.0])], [nd.array([1.0, 5.0])])
    >>> metric.get()
    ('largest', 3.0)
    """

    def __init__(self, name: str, output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
                 **kwargs: Any):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._kwargs = {key: value for key, value in kwargs.items() if key != "has_global_stats"}
        self.reset()

    # A subclass may set its attributes in its own reset.
    sum_metric, num_inst = 0.0, 0
    global_sum_metric, global_num_inst = 0.0, 0

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """The arguments from which ``create`` makes it again."""
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
                "label_names": self.label_names}

    def update_dict(self, label: Mapping[str, NDArray], pred: Mapping[str, NDArray]) -> None:
        """Update with arrays by name."""
        self.update(self._chosen("label", self.label_names, label), self._chosen("output", self.output_names, pred))

    def _chosen(self, what: str, names: Sequence[str] | None, arrays: Mapping[str, NDArray]
                ) -> list[NDArray]:
        if names is None:
            return list(arrays.values())
        for name in names:
            if name not in arrays:
                raise ArgumentError(f"metric {self.name}: there is no {what} {name!r}. {did_you_mean(name, arrays)}")
        return [arrays[name] for name in names]

    def update(self, labels: Any, preds: Any) -> None:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define update, which adds a batch")

    def _add(self, value: float, count: int = 1) -> None:
        self.sum_metric += value
        self.global_sum_metric += value
        self.num_inst += count
        self.global_num_inst += count

    def reset(self) -> None:
        """Reset the metric."""
        self.global_sum_metric, self.global_num_inst = 0.0, 0
        self.reset_local()

    def reset_local(self) -> None:
        """Reset the value of ``get``."""
        self.sum_metric, self.num_inst = 0.0, 0

    def _value(self, total: float, count: int) -> float:
        """The metric from sum and count."""
        return total / count

    def get(self) -> tuple[Any, Any]:
        """Name and value since the last reset; NaN before the first update."""
        return self.name, _python_number(self._value(self.sum_metric, self.num_inst)) if self.num_inst else float("nan")

    def get_global(self) -> tuple[Any, Any]:
        """Name and value since the last ``reset``, not affected by ``reset_local``."""
        if not self.global_num_inst:  # no update so far, or the subclass has one sum only
            return self.get()
        return self.name, _python_number(self._value(self.global_sum_metric, self.global_num_inst))

    def get_name_value(self) -> list[tuple[str, float]]:
        """Pairs of name and value."""
        return name_value_pairs(self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Pairs of name and value, as in ``get_global``."""
        return name_value_pairs(self.get_global())


def _python_number(value: Any) -> Any:
    """A NumPy scalar as a Python number, which is printed without its type."""
    return value.item() if isinstance(value, numpy.generic) else value


def name_value_pairs(entry: tuple[Any, Any]) -> list[tuple[str, float]]:
    """The result of ``get``, with one name or several, as pairs."""
    names, values = (part if isinstance(part, list) else [part] for part in entry)
    return list(zip(names, values))


name_errors(__name__, globals(), __all__)

"""Metrics with MindSpore's names: measures over batches, with ``clear``, ``update`` and ``eval``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...aliases import inner
from ...core.named_errors import name_errors
from ...errors import ArgumentError, WrongNameError, did_you_mean
from . import confusion, metric, occlusion, scores, similarity, surfaces
from .confusion import *  # noqa: F403
from .confusion import ROC, ConfusionMatrix, ConfusionMatrixMetric, auc
from .metric import *  # noqa: F403
from .metric import Metric
from .occlusion import *  # noqa: F403
from .occlusion import OcclusionSensitivity
from .scores import *  # noqa: F403
from .scores import (
    F1,
    MAE,
    MSE,
    Accuracy,
    Loss,
    Perplexity,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from .similarity import *  # noqa: F403
from .similarity import BleuScore, CosineSimilarity, Dice
from .surfaces import *  # noqa: F403
from .surfaces import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = [*metric.__all__, *scores.__all__, *confusion.__all__, *similarity.__all__,  # noqa: PLE0604
               *surfaces.__all__, *occlusion.__all__, "get_metric_fn", "get_metrics", "names"]
    __getattr__ = inner(__name__)

_KINDS: dict[str, Callable[..., Any]] = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1,
    "topk": TopKCategoricalAccuracy, "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy, "mae": MAE, "mse": MSE, "loss": Loss, "perplexity": Perplexity,
    "auc": auc, "bleu_score": BleuScore, "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric, "cosine_similarity": CosineSimilarity, "dice": Dice,
    "hausdorff_distance": HausdorffDistance, "mean_surface_distance": MeanSurfaceDistance,
    "occlusion_sensitivity": OcclusionSensitivity, "roc": ROC, "root_mean_square_distance": RootMeanSquareDistance}


def names() -> list[str]:
    """The names that ``get_metric_fn`` knows.

    Examples
    --------
    >>> names()[:3]
    ['F1', 'acc', 'accuracy']
    """
    return sorted(_KINDS)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """A metric by name.

    Raises
    ------
    KeyError
        When there is no metric of that name.

    Examples
    --------
    >>> get_metric_fn("mae")([1.0], [3.0])
    2.0
    """
    if name not in _KINDS:
        raise WrongNameError(f"there is no metric {name!r}. {did_you_mean(str(name), _KINDS)}")
    return _KINDS[name](*args, **kwargs)


def get_metrics(metrics: Mapping[str, Metric] | Iterable[str] | None) -> dict[str, Metric] | None:
    """Metrics by name, from a dict of metrics or a set of names."""
    if metrics is None:
        return None
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise ArgumentError(f"metrics: a dict has names and metrics, got {name!r}: {type(metric).__name__}")
        return metrics
    if isinstance(metrics, (set, frozenset)):
        return {name: get_metric_fn(name) for name in sorted(metrics)}
    raise ArgumentError(f"metrics: expected a dict or a set of names, got {type(metrics).__name__}")


name_errors(__name__, globals(), ["get_metric_fn", "get_metrics", "names"])

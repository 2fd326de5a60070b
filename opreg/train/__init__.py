"""What a training script needs around an executor; each part is a module of its own and loads when it is
asked for. So do the names that MindSpore has here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import TRAINING, inner

if TYPE_CHECKING:
    from opreg.nn.metrics import (
        F1,
        MAE,
        MSE,
        Accuracy,
        Fbeta,
        Loss,
        Metric,
        Perplexity,
        Precision,
        Recall,
        Top1CategoricalAccuracy,
        Top5CategoricalAccuracy,
        TopKCategoricalAccuracy,
        get_metric_fn,
        names,
        rearrange_inputs,
    )
    from opreg.nn.model import (
        Callback,
        CheckpointConfig,
        EarlyStopping,
        History,
        LambdaCallback,
        LearningRateScheduler,
        LossMonitor,
        Model,
        ModelCheckpoint,
        ReduceLROnPlateau,
        RunContext,
        TimeMonitor,
    )

    __all__ = ["Accuracy", "Callback", "CheckpointConfig", "EarlyStopping", "F1", "Fbeta", "History", "LambdaCallback",
               "LearningRateScheduler", "Loss", "LossMonitor", "MAE", "MSE", "Metric", "Model", "ModelCheckpoint",
               "Perplexity", "Precision", "Recall", "ReduceLROnPlateau", "RunContext", "TimeMonitor",
               "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "get_metric_fn",
               "names", "rearrange_inputs"]
else:
    __all__ = [*TRAINING]  # noqa: PLE0604  they are text
    __getattr__ = inner(__name__)


def __dir__() -> list[str]:
    return sorted(TRAINING)

"""Parts of a training script around an executor; each part is a module that is imported at its first use. MindSpore's
names of this package are found here, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import TRAINING, inner

if TYPE_CHECKING:
    from opreg.nn.amp import (
        DynamicLossScaleManager,
        FixedLossScaleManager,
        LossScaleManager,
        build_train_network,
    )
    from opreg.nn.metrics import (
        F1,
        MAE,
        MSE,
        ROC,
        Accuracy,
        BleuScore,
        ConfusionMatrix,
        ConfusionMatrixMetric,
        CosineSimilarity,
        Dice,
        Fbeta,
        HausdorffDistance,
        Loss,
        MeanSurfaceDistance,
        Metric,
        OcclusionSensitivity,
        Perplexity,
        Precision,
        Recall,
        RootMeanSquareDistance,
        Top1CategoricalAccuracy,
        Top5CategoricalAccuracy,
        TopKCategoricalAccuracy,
        auc,
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
        SummaryCollector,
        SummaryRecord,
        TimeMonitor,
    )

    __all__ = ["Accuracy", "BleuScore", "Callback", "CheckpointConfig", "ConfusionMatrix", "ConfusionMatrixMetric",
               "CosineSimilarity", "Dice", "DynamicLossScaleManager", "EarlyStopping", "F1", "Fbeta",
               "FixedLossScaleManager", "HausdorffDistance", "History", "LambdaCallback", "LearningRateScheduler",
               "Loss", "LossMonitor", "LossScaleManager", "MAE", "MSE", "MeanSurfaceDistance", "Metric", "Model",
               "ModelCheckpoint", "OcclusionSensitivity", "Perplexity", "Precision", "ROC", "Recall",
               "ReduceLROnPlateau", "RootMeanSquareDistance", "RunContext", "SummaryCollector", "SummaryRecord",
               "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc",
               "build_train_network", "get_metric_fn", "names", "rearrange_inputs"]
else:
    __all__ = [*TRAINING]  # noqa: PLE0604  they are text
    __getattr__ = inner(__name__)


def __dir__() -> list[str]:
    return sorted(TRAINING)

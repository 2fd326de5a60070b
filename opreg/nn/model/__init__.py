"""Model: trains, evaluates and predicts, with MindSpore's callbacks."""

from __future__ import annotations

from .callback import Callback, RunContext
from .callbacks import History, LambdaCallback, LearningRateScheduler, LossMonitor, TimeMonitor
from .checkpoints import CheckpointConfig, ModelCheckpoint
from .feeding import DatasetHelper, data_sink
from .model import Model
from .plateau import EarlyStopping, ReduceLROnPlateau
from .summaries import SummaryCollector, SummaryRecord

__all__ = ["Callback", "CheckpointConfig", "DatasetHelper", "EarlyStopping", "History", "LambdaCallback",
           "LearningRateScheduler", "LossMonitor", "Model", "ModelCheckpoint", "ReduceLROnPlateau", "RunContext",
           "SummaryCollector", "SummaryRecord", "TimeMonitor", "data_sink"]

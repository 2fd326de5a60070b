"""Model: trains, evaluates and predicts, with MindSpore's callbacks."""

from __future__ import annotations

from .callback import Callback, RunContext
from .callbacks import History, LambdaCallback, LearningRateScheduler, LossMonitor, TimeMonitor
from .checkpoints import CheckpointConfig, ModelCheckpoint
from .model import Model
from .plateau import EarlyStopping, ReduceLROnPlateau
from .summaries import SummaryCollector, SummaryRecord

__all__ = ["Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
           "LossMonitor", "Model", "ModelCheckpoint", "ReduceLROnPlateau", "RunContext", "SummaryCollector",
           "SummaryRecord", "TimeMonitor"]

# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from opreg.nn.amp import DynamicLossScaleManager as DynamicLossScaleManager
from opreg.nn.amp import FixedLossScaleManager as FixedLossScaleManager
from opreg.nn.amp import LossScaleManager as LossScaleManager
from opreg.nn.amp import build_train_network as build_train_network
from opreg.nn.metrics import Accuracy as Accuracy
from opreg.nn.metrics import BleuScore as BleuScore
from opreg.nn.metrics import ConfusionMatrix as ConfusionMatrix
from opreg.nn.metrics import ConfusionMatrixMetric as ConfusionMatrixMetric
from opreg.nn.metrics import CosineSimilarity as CosineSimilarity
from opreg.nn.metrics import Dice as Dice
from opreg.nn.metrics import F1 as F1
from opreg.nn.metrics import Fbeta as Fbeta
from opreg.nn.metrics import HausdorffDistance as HausdorffDistance
from opreg.nn.metrics import Loss as Loss
from opreg.nn.metrics import MAE as MAE
from opreg.nn.metrics import MSE as MSE
from opreg.nn.metrics import MeanSurfaceDistance as MeanSurfaceDistance
from opreg.nn.metrics import Metric as Metric
from opreg.nn.metrics import OcclusionSensitivity as OcclusionSensitivity
from opreg.nn.metrics import Perplexity as Perplexity
from opreg.nn.metrics import Precision as Precision
from opreg.nn.metrics import ROC as ROC
from opreg.nn.metrics import Recall as Recall
from opreg.nn.metrics import RootMeanSquareDistance as RootMeanSquareDistance
from opreg.nn.metrics import Top1CategoricalAccuracy as Top1CategoricalAccuracy
from opreg.nn.metrics import Top5CategoricalAccuracy as Top5CategoricalAccuracy
from opreg.nn.metrics import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from opreg.nn.metrics import auc as auc
from opreg.nn.metrics import get_metric_fn as get_metric_fn
from opreg.nn.metrics import names as names
from opreg.nn.metrics import rearrange_inputs as rearrange_inputs
from opreg.nn.model import Callback as Callback
from opreg.nn.model import CheckpointConfig as CheckpointConfig
from opreg.nn.model import DatasetHelper as DatasetHelper
from opreg.nn.model import EarlyStopping as EarlyStopping
from opreg.nn.model import History as History
from opreg.nn.model import LambdaCallback as LambdaCallback
from opreg.nn.model import LearningRateScheduler as LearningRateScheduler
from opreg.nn.model import LossMonitor as LossMonitor
from opreg.nn.model import Model as Model
from opreg.nn.model import ModelCheckpoint as ModelCheckpoint
from opreg.nn.model import ReduceLROnPlateau as ReduceLROnPlateau
from opreg.nn.model import RunContext as RunContext
from opreg.nn.model import SummaryCollector as SummaryCollector
from opreg.nn.model import SummaryRecord as SummaryRecord
from opreg.nn.model import TimeMonitor as TimeMonitor
from opreg.nn.model import data_sink as data_sink

__all__ = [
    "Accuracy", "BleuScore", "Callback", "CheckpointConfig", "ConfusionMatrix", "ConfusionMatrixMetric",
    "CosineSimilarity", "DatasetHelper", "Dice", "DynamicLossScaleManager", "EarlyStopping", "F1", "Fbeta",
    "FixedLossScaleManager", "HausdorffDistance", "History", "LambdaCallback", "LearningRateScheduler", "Loss",
    "LossMonitor", "LossScaleManager", "MAE", "MSE", "MeanSurfaceDistance", "Metric", "Model", "ModelCheckpoint",
    "OcclusionSensitivity", "Perplexity", "Precision", "ROC", "Recall", "ReduceLROnPlateau", "RootMeanSquareDistance",
    "RunContext", "SummaryCollector", "SummaryRecord", "TimeMonitor", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "build_train_network", "data_sink", "get_metric_fn",
    "names", "rearrange_inputs",
]

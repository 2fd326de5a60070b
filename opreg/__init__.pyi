# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from opreg import base as base
from opreg.cells.context_settings import set_context as set_context
from opreg.cells.context_settings import get_context as get_context
from opreg.cells.context_settings import GRAPH_MODE as GRAPH_MODE
from opreg.cells.context_settings import PYNATIVE_MODE as PYNATIVE_MODE
from opreg.cells.context_settings import STRICT as STRICT
from opreg.cells.context_settings import COMPATIBLE as COMPATIBLE
from opreg.cells.context_settings import LAX as LAX
from opreg.cells import dtype as dtype
from opreg.cells.dtype import float16 as float16
from opreg.cells.dtype import float32 as float32
from opreg.cells.dtype import float64 as float64
from opreg.cells.dtype import bfloat16 as bfloat16
from opreg.cells.dtype import int8 as int8
from opreg.cells.dtype import int16 as int16
from opreg.cells.dtype import int32 as int32
from opreg.cells.dtype import int64 as int64
from opreg.cells.dtype import uint8 as uint8
from opreg.cells.dtype import uint16 as uint16
from opreg.cells.dtype import uint32 as uint32
from opreg.cells.dtype import uint64 as uint64
from opreg.cells.dtype import bool_ as bool_
from opreg.cells.dtype import half as half
from opreg.cells.dtype import single as single
from opreg.cells.dtype import double as double
from opreg.cells.dtype import float_ as float_
from opreg.cells.dtype import byte as byte
from opreg.cells.dtype import short as short
from opreg.cells.dtype import intc as intc
from opreg.cells.dtype import long as long
from opreg.cells.dtype import intp as intp
from opreg.cells.dtype import int_ as int_
from opreg.cells.dtype import ubyte as ubyte
from opreg.cells.dtype import ushort as ushort
from opreg.cells.dtype import uintc as uintc
from opreg.cells.dtype import uintp as uintp
from opreg.cells.dtype import uint as uint
from opreg.cells.dtype import complex64 as complex64
from opreg.cells.dtype import complex128 as complex128
from opreg.cells.dtype import cfloat as cfloat
from opreg.cells.dtype import cdouble as cdouble
from opreg.cells.dtype import string as string
from opreg.cells.dtype import dtype_to_nptype as dtype_to_nptype
from opreg.cells.dtype import dtype_to_pytype as dtype_to_pytype
from opreg.cells.dtype import pytype_to_dtype as pytype_to_dtype
from opreg.cells.function import _Function as _Function
from opreg.cells.grad import grad as grad
from opreg.cells.grad import value_and_grad as value_and_grad
from opreg.cells.grad import get_grad as get_grad
from opreg.cells.grad import no_grad as no_grad
from opreg.cells.grad import no_grad as _no_grad
from opreg.cells.initializer import set_seed as set_seed
from opreg.cells.initializer import get_seed as get_seed
from opreg.cells.jacobian import jvp as jvp
from opreg.cells.jacobian import vjp as vjp
from opreg.cells.jacobian import jacrev as jacrev
from opreg.cells.jacobian import jacfwd as jacfwd
from opreg.cells.jit import jit as jit
from opreg.cells.jit import ms_function as ms_function
from opreg.cells.parameter import Parameter as Parameter
from opreg.cells.parameter import ParameterTuple as ParameterTuple
from opreg.cells.sparse import COOTensor as COOTensor
from opreg.cells.sparse import CSRTensor as CSRTensor
from opreg.cells.sparse import RowTensor as RowTensor
from opreg.cells.sparse import SparseTensor as SparseTensor
from opreg.cells.tensor import Tensor as Tensor
from opreg.cells.tensor import tensor as tensor
from opreg.cells.tensor import from_numpy as from_numpy
from opreg.cells.tensor import is_tensor as is_tensor
from opreg.cells.tree import mutable as mutable
from opreg.cells.vmap import vmap as vmap
from opreg import common as common
from opreg import context as context
from opreg import contrib as contrib
from opreg.core.cache import caches as caches
from opreg.core import registry as registry
from opreg.custom import operator as operator
from opreg.data import image as image
from opreg.data import image as img
from opreg.data import mindrecord as mindrecord
from opreg.data import recordio as recordio
from opreg import distributed as distributed
from opreg import engine as engine
from opreg import error as error
from opreg import errors as errors
from opreg.errors import MXNetError as MXNetError
from opreg.errors import OpError as OpError
from opreg import gluon as gluon
from opreg import log as log
from opreg import ndarray as nd
from opreg import ndarray as ndarray
from opreg.ndarray import NDArray as NDArray
from opreg.ndarray import autograd as autograd
from opreg.ndarray.context import Context as Context
from opreg.ndarray.context import cpu as cpu
from opreg.ndarray.context import gpu as gpu
from opreg.ndarray.context import cpu_pinned as cpu_pinned
from opreg.ndarray.context import current_context as current_context
from opreg.ndarray.context import num_gpus as num_gpus
from opreg.ndarray import random as random
from opreg.ndarray import random as rnd
from opreg import nn as nn
from opreg.nn import amp as amp
from opreg.nn.amp import DynamicLossScaleManager as DynamicLossScaleManager
from opreg.nn.amp import FixedLossScaleManager as FixedLossScaleManager
from opreg.nn.amp import LossScaleManager as LossScaleManager
from opreg.nn.amp import build_train_network as build_train_network
from opreg.nn import checkparam as _checkparam
from opreg.nn.checkpoint import save_checkpoint as save_checkpoint
from opreg.nn.checkpoint import load_checkpoint as load_checkpoint
from opreg.nn.checkpoint import load_param_into_net as load_param_into_net
from opreg.nn import communication as communication
from opreg.nn.compiler_settings import JitConfig as JitConfig
from opreg.nn.compiler_settings import constexpr as constexpr
from opreg.nn.compiler_settings import jit_class as jit_class
from opreg.nn.compiler_settings import lazy_inline as lazy_inline
from opreg.nn.compiler_settings import recompute as recompute
from opreg.nn.compiler_settings import set_deterministic as set_deterministic
from opreg.nn.compiler_settings import set_device as set_device
from opreg.nn.compiler_settings import set_recursion_limit as set_recursion_limit
from opreg.nn.compiler_settings import jit_class as ms_class
from opreg.nn import dataset as dataset
from opreg.nn import experimental as experimental
from opreg.nn.generator import get_rng_state as get_rng_state
from opreg.nn.generator import set_rng_state as set_rng_state
from opreg.nn.generator import manual_seed as manual_seed
from opreg.nn.generator import initial_seed as initial_seed
from opreg.nn.generator import seed as seed
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
from opreg.nn import mint as mint
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
from opreg.nn import numpy as numpy
from opreg.nn import ops as ops
from opreg.nn.parallel import ParallelMode as ParallelMode
from opreg.nn.parallel import set_auto_parallel_context as set_auto_parallel_context
from opreg.nn.parallel import get_auto_parallel_context as get_auto_parallel_context
from opreg.nn.parallel import reset_auto_parallel_context as reset_auto_parallel_context
from opreg.nn import strategies as parallel
from opreg.nn.strategies import set_algo_parameters as set_algo_parameters
from opreg.nn.strategies import get_algo_parameters as get_algo_parameters
from opreg.nn.strategies import reset_algo_parameters as reset_algo_parameters
from opreg import notebook as notebook
from opreg import np as np
from opreg import npx as npx
from opreg import npx as numpy_extension
from opreg import onnx as onnx
from opreg.onnx.mindspore_export import export as export
from opreg import pictures as viz
from opreg import pictures as visualization
from opreg import profiler as profiler
from opreg.profiler import Profiler as Profiler
from opreg import rtc as rtc
from opreg import runtime as runtime
from opreg import symbol as sym
from opreg import symbol as symbol
from opreg.symbol import Symbol as Symbol
from opreg.symbol import executor as executor
from opreg.symbol.executor import Executor as Executor
from opreg.symbol import naming as name
from opreg.symbol import naming as attribute
from opreg.symbol.naming import AttrScope as AttrScope
from opreg import train as train
from opreg.train import callback as callback
from opreg.train import executor_manager as executor_manager
from opreg.train import initializer as init
from opreg.train import initializer as initializer
from opreg.train import io as io
from opreg.train import kvstore as kv
from opreg.train import kvstore as kvstore
from opreg.train import lr_scheduler as lr_scheduler
from opreg.train import metric as metric
from opreg.train import misc as misc
from opreg.train import model as model
from opreg.train import module as mod
from opreg.train import module as module
from opreg.train import monitor as monitor
from opreg.train import monitor as mon
from opreg.train import optimizer as optimizer
from opreg.train import optimizer as opt
from opreg.train import rnn as rnn
from opreg.train import test_utils as test_utils
from opreg import util as util
from opreg.util import np_shape as np_shape
from opreg.util import is_np_shape as is_np_shape
from opreg.util import set_np_shape as set_np_shape
from opreg.util import use_np_shape as use_np_shape
from opreg.util import is_np_array as is_np_array
from opreg.util import np_array as np_array
from opreg.util import use_np as use_np
from opreg.util import use_np_array as use_np_array

__all__ = [
    "__version__", "Accuracy", "AttrScope", "BleuScore", "COMPATIBLE", "COOTensor", "CSRTensor", "Callback",
    "CheckpointConfig", "ConfusionMatrix", "ConfusionMatrixMetric", "Context", "CosineSimilarity", "DatasetHelper",
    "Dice", "DynamicLossScaleManager", "EarlyStopping", "Executor", "F1", "Fbeta", "FixedLossScaleManager",
    "GRAPH_MODE", "HausdorffDistance", "History", "JitConfig", "LAX", "LambdaCallback", "LearningRateScheduler",
    "Loss", "LossMonitor", "LossScaleManager", "MAE", "MSE", "MXNetError", "MeanSurfaceDistance", "Metric", "Model",
    "ModelCheckpoint", "NDArray", "OcclusionSensitivity", "OpError", "PYNATIVE_MODE", "ParallelMode", "Parameter",
    "ParameterTuple", "Perplexity", "Precision", "Profiler", "ROC", "Recall", "ReduceLROnPlateau",
    "RootMeanSquareDistance", "RowTensor", "RunContext", "STRICT", "SparseTensor", "SummaryCollector",
    "SummaryRecord", "Symbol", "Tensor", "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "_Function", "_checkparam", "_no_grad", "amp", "attribute", "auc", "autograd", "base",
    "bfloat16", "bool_", "build_train_network", "byte", "caches", "callback", "cdouble", "cfloat", "common",
    "communication", "complex128", "complex64", "constexpr", "context", "contrib", "cpu", "cpu_pinned",
    "current_context", "data_sink", "dataset", "distributed", "double", "dtype", "dtype_to_nptype", "dtype_to_pytype",
    "engine", "error", "errors", "executor", "executor_manager", "experimental", "export", "float16", "float32",
    "float64", "float_", "from_numpy", "get_algo_parameters", "get_auto_parallel_context", "get_context", "get_grad",
    "get_metric_fn", "get_rng_state", "get_seed", "gluon", "gpu", "grad", "half", "image", "img", "init",
    "initial_seed", "initializer", "int16", "int32", "int64", "int8", "int_", "intc", "intp", "io", "is_np_array",
    "is_np_shape", "is_tensor", "jacfwd", "jacrev", "jit", "jit_class", "jvp", "kv", "kvstore", "lazy_inline",
    "load_checkpoint", "load_param_into_net", "log", "long", "lr_scheduler", "manual_seed", "metric", "mindrecord",
    "mint", "misc", "mod", "model", "module", "mon", "monitor", "ms_class", "ms_function", "mutable", "name", "names",
    "nd", "ndarray", "nn", "no_grad", "notebook", "np", "np_array", "np_shape", "npx", "num_gpus", "numpy",
    "numpy_extension", "onnx", "operator", "ops", "opt", "optimizer", "parallel", "profiler", "pytype_to_dtype",
    "random", "rearrange_inputs", "recompute", "recordio", "registry", "reset_algo_parameters",
    "reset_auto_parallel_context", "rnd", "rnn", "rtc", "runtime", "save_checkpoint", "seed", "set_algo_parameters",
    "set_auto_parallel_context", "set_context", "set_deterministic", "set_device", "set_np_shape",
    "set_recursion_limit", "set_rng_state", "set_seed", "short", "single", "string", "sym", "symbol", "tensor",
    "test_utils", "train", "ubyte", "uint", "uint16", "uint32", "uint64", "uint8", "uintc", "uintp", "use_np",
    "use_np_array", "use_np_shape", "ushort", "util", "value_and_grad", "visualization", "viz", "vjp", "vmap",
]

__version__: str

"""``mint.nn``: layers with PyTorch's names and arguments; ``functional`` has their functions.

>>> from opreg import mint, ops
>>> mint.nn.MaxPool2d(2)(mint.nn.Conv2d(1, 2, 3, padding=1)(ops.ones((1, 1, 4, 4)))).shape
(1, 2, 2, 2)
"""

from __future__ import annotations

from ....core.doc_examples import add_examples
from ... import layers as _layers
from ... import losses as _losses
from . import functional, layers
from .layers import *  # noqa: F403

AdaptiveAvgPool1d, AdaptiveAvgPool2d = _layers.AdaptiveAvgPool1d, _layers.AdaptiveAvgPool2d
AdaptiveAvgPool3d, Flatten, Identity = _layers.AdaptiveAvgPool3d, _layers.Flatten, _layers.Identity
ConstantPad1d, ConstantPad2d, ConstantPad3d = _layers.ConstantPad1d, _layers.ConstantPad2d, _layers.ConstantPad3d
ReflectionPad1d, ReflectionPad2d = _layers.ReflectionPad1d, _layers.ReflectionPad2d
ReflectionPad3d, ReplicationPad1d = _layers.ReflectionPad3d, _layers.ReplicationPad1d
ReplicationPad2d, ReplicationPad3d = _layers.ReplicationPad2d, _layers.ReplicationPad3d
Hardshrink, Hardsigmoid, Hardswish = _layers.HShrink, _layers.HSigmoid, _layers.HSwish
Linear, LogSigmoid, Mish, PixelShuffle = _layers.Linear, _layers.LogSigmoid, _layers.Mish, _layers.PixelShuffle
ReLU, SELU, Sigmoid, Softshrink, Tanh = _layers.ReLU, _layers.SELU, _layers.Sigmoid, _layers.SoftShrink, _layers.Tanh
BCELoss, CosineEmbeddingLoss = _losses.BCELoss, _losses.CosineEmbeddingLoss
MSELoss, SoftMarginLoss = _losses.MSELoss, _losses.SoftMarginLoss

__all__ = [  # noqa: PLE0604
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "BCELoss", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "CosineEmbeddingLoss", "Flatten", "Hardshrink", "Hardsigmoid", "Hardswish", "Identity",
    "Linear", "LogSigmoid", "MSELoss", "Mish", "PixelShuffle", "ReLU", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SELU", "Sigmoid",
    "SoftMarginLoss", "Softshrink", "Tanh", "functional",
    *layers.__all__]

add_examples(__name__, globals(), "from opreg import Tensor, mint")

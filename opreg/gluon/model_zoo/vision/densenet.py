"""DenseNets, from "Densely connected convolutional networks" (2016): each layer reads the outputs of all earlier layers
of its block."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opreg.ndarray.context import Context, cpu

from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent, Identity
from ...nn import Activation, AvgPool2D, BatchNorm, Conv2D, Dense, Dropout, Flatten, HybridSequential, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain, container_of_layers, family_function

__all__ = ["DenseNet", "get_densenet", "densenet121", "densenet161", "densenet169", "densenet201"]

#: Layers -> channels at the start, channels that a layer adds, layers in each block.
_KINDS = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]), 169: (64, 32, [6, 12, 32, 32]),
          201: (64, 32, [6, 12, 48, 32])}


def _layer(growth: int, bottleneck: int, dropout: float) -> HybridBlock:
    new = chain(BatchNorm(), Activation("relu"), Conv2D(bottleneck * growth, kernel_size=1, use_bias=False),
                BatchNorm(), Activation("relu"), Conv2D(growth, kernel_size=3, padding=1, use_bias=False),
                *([Dropout(dropout)] if dropout else ()))
    both = HybridConcurrent(axis=1, prefix="")
    both.add(Identity(), new)
    return both


def _layers(count: int, growth: int, bottleneck: int, dropout: float) -> list[HybridBlock]:
    return [_layer(growth, bottleneck, dropout) for _ in range(count)]


class DenseNet(Classifier):
    """A DenseNet, for images of 224 by 224.

    Parameters
    ----------
    num_init_features : int
        Channels of the first convolution.
    growth_rate : int
        Channels that a layer adds.
    block_config : list of int
        Layers in each block.
    bn_size : int
        Channels between the two convolutions of a layer, as a multiple of ``growth_rate``.
    dropout : float
        Dropout rate of the channels that a layer adds.
    classes : int
        Number of classes.
    """

    def __init__(self, num_init_features: int, growth_rate: int, block_config: Sequence[int], bn_size: int = 4,
                 dropout: float = 0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False),
                                  BatchNorm(), Activation("relu"), MaxPool2D(3, 2, 1))
            channels = num_init_features
            for number, layers in enumerate(block_config, 1):
                self.features.add(container_of_layers(HybridSequential(prefix=f"stage{number}_"), _layers, layers,
                                                      growth_rate, bn_size, dropout))
                channels += layers * growth_rate
                if number < len(block_config):
                    channels //= 2
                    self.features.add(chain(BatchNorm(), Activation("relu"),
                                            Conv2D(channels, kernel_size=1, use_bias=False), AvgPool2D(2, 2)))
            self.features.add(BatchNorm(), Activation("relu"), AvgPool2D(7), Flatten())
            self.output = Dense(classes)


def get_densenet(num_layers: int, pretrained: bool = False, ctx: Context | list[Context] | None = None,
                 root: str | os.PathLike | None = None, **kwargs: Any) -> DenseNet:
    """A DenseNet of 121, 161, 169 or 201 layers.

    Parameters
    ----------
    num_layers : int
        Number of layers.
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``DenseNet``.
    """
    net: DenseNet = load(DenseNet(*_KINDS[num_layers], **kwargs), f"densenet{num_layers}", pretrained, ctx or cpu(),
                         root)
    return net


densenet121, densenet161, densenet169, densenet201 = [
    family_function(__name__, f"densenet{layers}", get_densenet, layers) for layers in _KINDS]

"""VGG networks, from "Very deep convolutional networks for large-scale image recognition" (2014)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opreg.errors import ArgumentError
from opreg.ndarray.context import Context, cpu

from ....train.initializer import Xavier
from ...nn import Activation, BatchNorm, Conv2D, Dense, Dropout, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain, family_function

__all__ = ["VGG", "get_vgg", "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"]

#: Layers -> convolutions before each pooling.
_KINDS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}
_CHANNELS = [64, 128, 256, 512, 512]


class VGG(Classifier):
    """A VGG network, for images of 224 by 224.

    Parameters
    ----------
    layers, filters : list of int
        Number of convolutions before each pooling, and their channels.
    classes : int
        Number of classes.
    batch_norm : bool
        Whether a batch norm stands after each convolution.

    Raises
    ------
    ArgumentError
        When the two lists differ in length.
    """

    def __init__(self, layers: Sequence[int], filters: Sequence[int], classes: int = 1000, batch_norm: bool = False,
                 **kwargs: Any):
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise ArgumentError(f"VGG: layers={layers} and filters={filters}: expected equally many of both")
        plain: dict[str, Any] = {"weight_initializer": "normal", "bias_initializer": "zeros"}
        with self.name_scope():
            self.features = chain()
            for count, channels in zip(layers, filters, strict=True):
                for _ in range(count):
                    self.features.add(Conv2D(
                        channels, kernel_size=3, padding=1, bias_initializer="zeros",
                        weight_initializer=Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)))
                    if batch_norm:
                        self.features.add(BatchNorm())
                    self.features.add(Activation("relu"))
                self.features.add(MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(Dense(4096, activation="relu", **plain), Dropout(0.5))
            self.output = Dense(classes, **plain)


def get_vgg(num_layers: int, pretrained: bool = False, ctx: Context | list[Context] | None = None,
            root: str | os.PathLike | None = None, **kwargs: Any) -> VGG:
    """A VGG network of 11, 13, 16 or 19 layers.

    Parameters
    ----------
    num_layers : int
        Number of layers.
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``VGG``.
    """
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    net: VGG = load(VGG(_KINDS[num_layers], _CHANNELS, **kwargs), name, pretrained, ctx or cpu(), root)
    return net


def _make_with_norm(num_layers: int, **kwargs: Any) -> VGG:
    return get_vgg(num_layers, **{**kwargs, "batch_norm": True})


vgg11, vgg13, vgg16, vgg19 = [family_function(__name__, f"vgg{layers}", get_vgg, layers) for layers in _KINDS]
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = [family_function(__name__, f"vgg{layers}_bn", _make_with_norm, layers)
                                          for layers in _KINDS]

"""SqueezeNets, from "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters" (2016)."""

from __future__ import annotations

import os
from typing import Any

from opreg.errors import ArgumentError, did_you_mean
from opreg.ndarray.context import Context, cpu

from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent
from ...nn import Activation, AvgPool2D, Conv2D, Dropout, Flatten, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain, family_function

__all__ = ["SqueezeNet", "get_squeezenet", "squeezenet1_0", "squeezenet1_1"]

#: Version -> channels and kernel of the first convolution, and the layers after it: a pooling, or a fire module by its
#: channels; each of its two paths has four times as many output channels.
_KINDS: dict[str, tuple[int, int, list[int]]] = {
    "1.0": (96, 7, [0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64]),
    "1.1": (64, 3, [0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64]),
}


def _fire(channels: int) -> HybridBlock:
    squeezed = chain(Conv2D(channels, kernel_size=1), Activation("relu"))
    paths = HybridConcurrent(axis=1, prefix="")
    paths.add(chain(Conv2D(4 * channels, kernel_size=1), Activation("relu")),
              chain(Conv2D(4 * channels, kernel_size=3, padding=1), Activation("relu")))
    return chain(squeezed, paths)


class SqueezeNet(Classifier):
    """A SqueezeNet, for images of 224 by 224.

    Parameters
    ----------
    version : {"1.0", "1.1"}
        Version; 1.1 needs less computation.
    classes : int
        Number of classes.

    Raises
    ------
    ArgumentError
        For another version.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        if version not in _KINDS:
            raise ArgumentError(f"SqueezeNet: there is no version {version!r}. {did_you_mean(version, _KINDS)}")
        channels, kernel, fires = _KINDS[version]
        with self.name_scope():
            self.features = chain(Conv2D(channels, kernel_size=kernel, strides=2), Activation("relu"),
                                  *[_fire(fire) if fire else MaxPool2D(3, 2, ceil_mode=True) for fire in fires],
                                  Dropout(0.5))
            self.output = chain(Conv2D(classes, kernel_size=1), Activation("relu"), AvgPool2D(13), Flatten())


def get_squeezenet(version: str, pretrained: bool = False, ctx: Context | list[Context] | None = None,
                   root: str | os.PathLike | None = None, **kwargs: Any) -> SqueezeNet:
    """A SqueezeNet of a version.

    Parameters
    ----------
    version : {"1.0", "1.1"}
        The version.
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``SqueezeNet``.
    """
    net: SqueezeNet = load(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx or cpu(), root)
    return net


squeezenet1_0 = family_function(__name__, "squeezenet1_0", get_squeezenet, "1.0")
squeezenet1_1 = family_function(__name__, "squeezenet1_1", get_squeezenet, "1.1")

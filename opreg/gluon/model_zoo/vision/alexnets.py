"""AlexNet with one column, from "One weird trick for parallelizing convolutional neural networks" (2014)."""

from __future__ import annotations

import os
from typing import Any

from opreg.ndarray.context import Context, cpu

from ...nn import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """AlexNet, for images of 224 by 224.

    Parameters
    ----------
    classes : int
        Number of classes.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"), MaxPool2D(3, 2),
                Conv2D(192, kernel_size=5, padding=2, activation="relu"), MaxPool2D(3, 2),
                Conv2D(384, kernel_size=3, padding=1, activation="relu"),
                Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                Conv2D(256, kernel_size=3, padding=1, activation="relu"), MaxPool2D(3, 2),
                Flatten(), Dense(4096, activation="relu"), Dropout(0.5), Dense(4096, activation="relu"), Dropout(0.5))
            self.output = Dense(classes)


def alexnet(pretrained: bool = False, ctx: Context | list[Context] | None = None,
            root: str | os.PathLike | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet.

    Parameters
    ----------
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``AlexNet``.
    """
    net: AlexNet = load(AlexNet(**kwargs), "alexnet", pretrained, ctx or cpu(), root)
    return net

"""Inception v3, from "Rethinking the Inception architecture for computer vision" (2015)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from opreg.ndarray.context import Context, cpu

from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent
from ...nn import Activation, AvgPool2D, BatchNorm, Conv2D, Dense, Dropout, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain, container_of_layers

__all__ = ["Inception3", "inception_v3"]

#: A convolution: channels, kernel, stride, padding; the default stride and padding are 1 and 0.
_Conv = tuple[Any, ...]


def _conv(channels: int, kernel: Any, stride: int = 1, padding: Any = 0) -> HybridBlock:
    return chain(Conv2D(channels, kernel, stride, padding, use_bias=False), BatchNorm(epsilon=0.001),
                 Activation("relu"))


def _row(channels: int, length: int = 7) -> _Conv:
    return channels, (1, length), 1, (0, length // 2)


def _column(channels: int, length: int = 7) -> _Conv:
    return channels, (length, 1), 1, (length // 2, 0)


def _branch(*convs: _Conv) -> HybridBlock:
    return chain(*[_conv(*conv) for conv in convs])


def _average_branch(channels: int) -> HybridBlock:
    return chain(AvgPool2D(pool_size=3, strides=1, padding=1), _conv(channels, 1))


def _largest() -> HybridBlock:
    return chain(MaxPool2D(pool_size=3, strides=2))


def _split(*convs: _Conv) -> HybridBlock:
    both = HybridConcurrent(axis=1, prefix="")
    both.add(*[_branch(conv) for conv in convs])
    return both


def _a(channels: int) -> list[HybridBlock]:
    return [_branch((64, 1)), _branch((48, 1), (64, 5, 1, 2)), _branch((64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
            _average_branch(channels)]


def _b() -> list[HybridBlock]:
    return [_branch((384, 3, 2)), _branch((64, 1), (96, 3, 1, 1), (96, 3, 2)), _largest()]


def _c(channels: int) -> list[HybridBlock]:
    return [_branch((192, 1)), _branch((channels, 1), _row(channels), _column(192)),
            _branch((channels, 1), _column(channels), _row(channels), _column(channels), _row(192)),
            _average_branch(192)]


def _d() -> list[HybridBlock]:
    return [_branch((192, 1), (320, 3, 2)), _branch((192, 1), _row(192), _column(192), (192, 3, 2)), _largest()]


def _e() -> list[HybridBlock]:
    return [_branch((320, 1)), chain(_branch((384, 1)), _split(_row(384, 3), _column(384, 3))),
            chain(_branch((448, 1), (384, 3, 1, 1)), _split(_row(384, 3), _column(384, 3))), _average_branch(192)]


class Inception3(Classifier):
    """Inception v3, for images of 299 by 299.

    Parameters
    ----------
    classes : int
        Number of classes.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(_conv(32, 3, 2), _conv(32, 3), _conv(64, 3, 1, 1), MaxPool2D(3, 2), _conv(80, 1),
                                  _conv(192, 3), MaxPool2D(3, 2))
            parts: list[tuple[str, Callable[..., list[HybridBlock]], tuple[int, ...]]] = [
                ("A1", _a, (32,)), ("A2", _a, (64,)), ("A3", _a, (64,)), ("B", _b, ()), ("C1", _c, (128,)),
                ("C2", _c, (160,)), ("C3", _c, (160,)), ("C4", _c, (192,)), ("D", _d, ()), ("E1", _e, ()),
                ("E2", _e, ())]
            for name, make, arguments in parts:
                self.features.add(container_of_layers(HybridConcurrent(axis=1, prefix=f"{name}_"), make, *arguments))
            self.features.add(AvgPool2D(8), Dropout(0.5))
            self.output = Dense(classes)


def inception_v3(pretrained: bool = False, ctx: Context | list[Context] | None = None,
                 root: str | os.PathLike | None = None, **kwargs: Any) -> Inception3:
    """Inception v3.

    Parameters
    ----------
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``Inception3``.
    """
    net: Inception3 = load(Inception3(**kwargs), "inceptionv3", pretrained, ctx or cpu(), root)
    return net

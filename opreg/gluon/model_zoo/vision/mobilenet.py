"""MobileNets, from "MobileNets: efficient convolutional neural networks for mobile vision applications" (2017) and
"Inverted residuals and linear bottlenecks" (2018)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from opreg.ndarray.context import Context, cpu

from ...block import HybridBlock
from ...nn import Activation, BatchNorm, Conv2D, Dense, Flatten, GlobalAvgPool2D, HybridSequential
from ..model_store import load
from .parts import Classifier, chain, container_of_layers, family_function

__all__ = ["MobileNet", "MobileNetV2", "get_mobilenet", "get_mobilenet_v2", "mobilenet1_0", "mobilenet0_75",
           "mobilenet0_5", "mobilenet0_25", "mobilenet_v2_1_0", "mobilenet_v2_0_75", "mobilenet_v2_0_5",
           "mobilenet_v2_0_25"]

#: Channels after each pair of a depthwise and a pointwise convolution, and the stride of the depthwise one.
_PAIRS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]

#: Blocks of the second version: expansion factor, output channels, number of blocks, and stride of the first block.
_BOTTLENECKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                (6, 320, 1, 1)]


class RELU6(HybridBlock):
    """``relu6``: values clipped to the range from 0 to 6."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.clip(x, 0, 6, name="relu6")


def _conv(channels: int, kernel: int = 1, stride: int = 1, padding: int = 0, groups: int = 1,
          active: Callable[[], HybridBlock] | None = None) -> list[HybridBlock]:
    return [Conv2D(channels, kernel, stride, padding, groups=groups, use_bias=False), BatchNorm(scale=True),
            *([] if active is None else [active()])]


def _relu() -> HybridBlock:
    return Activation("relu")


class LinearBottleneck(HybridBlock):
    """An inverted residual block of the second version: three convolutions, with the input added if the shapes agree.

    Parameters
    ----------
    in_channels, channels : int
        Channels of the input and of the output.
    t : int
        Expansion factor of the channels inside.
    stride : int
        Stride of the depthwise convolution.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        inside = in_channels * t
        with self.name_scope():
            self.out = HybridSequential()
            self.out.add(*_conv(inside, active=RELU6), *_conv(inside, 3, stride, 1, inside, RELU6), *_conv(channels))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Classifier):
    """A MobileNet, for images of 224 by 224.

    Parameters
    ----------
    multiplier : float
        Factor of the numbers of channels.
    classes : int
        Number of classes.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        before = int(32 * multiplier)
        with self.name_scope():
            self.features = chain(*_conv(before, 3, 2, 1, active=_relu))
            for channels, stride in _PAIRS:
                after = int(channels * multiplier)
                self.features.add(*_conv(before, 3, stride, 1, before, _relu), *_conv(after, active=_relu))
                before = after
            self.features.add(GlobalAvgPool2D(), Flatten())
            self.output = Dense(classes)


class MobileNetV2(Classifier):
    """A MobileNet of the second version, for images of 224 by 224.

    Parameters
    ----------
    multiplier : float
        Factor of the numbers of channels.
    classes : int
        Number of classes.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)

        def features() -> list[HybridBlock]:
            before = int(32 * multiplier)
            layers = _conv(before, 3, 2, 1, active=RELU6)
            for times, channels, count, first in _BOTTLENECKS:
                for number in range(count):
                    after = int(channels * multiplier)
                    layers.append(LinearBottleneck(before, after, times, 1 if number else first))
                    before = after
            return [*layers, *_conv(max(1280, int(1280 * multiplier)), active=RELU6), GlobalAvgPool2D()]

        with self.name_scope():
            self.features = container_of_layers(HybridSequential(prefix="features_"), features)
            self.output = container_of_layers(HybridSequential(prefix="output_"), lambda: [
                Conv2D(classes, 1, use_bias=False, prefix="pred_"), Flatten()])


def _version(multiplier: float) -> str:
    """The multiplier in file names: 1.0, 0.75, 0.5, 0.25."""
    return f"{multiplier:.2f}"[:3] if multiplier in (1.0, 0.5) else f"{multiplier:.2f}"


def get_mobilenet(multiplier: float, pretrained: bool = False, ctx: Context | list[Context] | None = None,
                  root: str | os.PathLike | None = None, **kwargs: Any) -> MobileNet:
    """A MobileNet whose channels are multiplied by ``multiplier``.

    Parameters
    ----------
    multiplier : float
        Factor of the numbers of channels.
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``MobileNet``.
    """
    net: MobileNet = load(MobileNet(multiplier, **kwargs), f"mobilenet{_version(multiplier)}", pretrained,
                          ctx or cpu(), root)
    return net


def get_mobilenet_v2(multiplier: float, pretrained: bool = False, ctx: Context | list[Context] | None = None,
                     root: str | os.PathLike | None = None, **kwargs: Any) -> MobileNetV2:
    """A MobileNet of the second version whose channels are multiplied by ``multiplier``.

    Parameters
    ----------
    multiplier, pretrained, ctx, root, **kwargs
        See ``get_mobilenet``.
    """
    net: MobileNetV2 = load(MobileNetV2(multiplier, **kwargs), f"mobilenetv2_{_version(multiplier)}", pretrained,
                            ctx or cpu(), root)
    return net


mobilenet1_0, mobilenet0_75, mobilenet0_5, mobilenet0_25 = [
    family_function(__name__, f"mobilenet{name}", get_mobilenet, multiplier)
    for name, multiplier in (("1_0", 1.0), ("0_75", 0.75), ("0_5", 0.5), ("0_25", 0.25))]
mobilenet_v2_1_0, mobilenet_v2_0_75, mobilenet_v2_0_5, mobilenet_v2_0_25 = [
    family_function(__name__, f"mobilenet_v2_{name}", get_mobilenet_v2, multiplier)
    for name, multiplier in (("1_0", 1.0), ("0_75", 0.75), ("0_5", 0.5), ("0_25", 0.25))]

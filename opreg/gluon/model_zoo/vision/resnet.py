"""ResNets, from "Deep residual learning for image recognition" (2015) and "Identity mappings in deep residual networks"
(2016)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from opreg.errors import ArgumentError
from opreg.ndarray.context import Context, cpu

from ...block import HybridBlock
from ...nn import Activation, BatchNorm, Conv2D, Dense, Flatten, GlobalAvgPool2D, HybridSequential, MaxPool2D
from ..model_store import load
from .parts import Classifier, chain, container_of_layers, family_function

__all__ = ["ResNetV1", "ResNetV2", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "get_resnet",
           "resnet18_v1", "resnet34_v1", "resnet50_v1", "resnet101_v1", "resnet152_v1",
           "resnet18_v2", "resnet34_v2", "resnet50_v2", "resnet101_v2", "resnet152_v2"]


def _conv3x3(channels: int, stride: int, in_channels: int) -> Conv2D:
    return Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """Convolutions whose output is added to the input, with relu after the sum."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.body = chain(*self._layers(channels, stride, in_channels))
        self.downsample = chain(
            Conv2D(channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels), BatchNorm(),
        ) if downsample else None

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[HybridBlock]:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.Activation(self.body(x) + shortcut, act_type="relu")


class BasicBlockV1(_BlockV1):
    """Two 3x3 convolutions, for networks of 18 and 34 layers of the first version.

    Parameters
    ----------
    channels, stride : int
        Output channels, and the stride of the first convolution.
    downsample : bool
        Whether a 1x1 convolution is applied to the input before it is added.
    in_channels : int
        Input channels; 0 where the first input decides them.
    """

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[HybridBlock]:
        return [_conv3x3(channels, stride, in_channels), BatchNorm(), Activation("relu"),
                _conv3x3(channels, 1, channels), BatchNorm()]


class BottleneckV1(_BlockV1):
    """Convolutions of 1x1, 3x3 and 1x1, for networks of 50 layers and more of the first version.

    Parameters
    ----------
    channels, stride, downsample, in_channels
        See ``BasicBlockV1``; the inner convolutions have a quarter of the channels.
    """

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[HybridBlock]:
        inside = channels // 4
        return [Conv2D(inside, kernel_size=1, strides=stride), BatchNorm(), Activation("relu"),
                _conv3x3(inside, 1, inside), BatchNorm(), Activation("relu"),
                Conv2D(channels, kernel_size=1, strides=1), BatchNorm()]


class _BlockV2(HybridBlock):
    """Convolutions whose output is added to the input, with norm and relu before each."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._pairs = []
        for number, make in enumerate(self._convs(channels, stride, in_channels), 1):
            norm, conv = BatchNorm(), make()
            setattr(self, f"bn{number}", norm)
            setattr(self, f"conv{number}", conv)
            self._pairs.append((f"bn{number}", f"conv{number}"))
        self.downsample = Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels) if downsample else None

    def _convs(self, channels: int, stride: int, in_channels: int) -> list[Callable[[], HybridBlock]]:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        shortcut = x
        for number, (norm, conv) in enumerate(self._pairs):
            x = F.Activation(getattr(self, norm)(x), act_type="relu")
            if number == 0 and self.downsample is not None:
                shortcut = self.downsample(x)
            x = getattr(self, conv)(x)
        return x + shortcut


class BasicBlockV2(_BlockV2):
    """Two 3x3 convolutions, for networks of 18 and 34 layers of the second version.

    Parameters
    ----------
    channels, stride, downsample, in_channels
        See ``BasicBlockV1``.
    """

    def _convs(self, channels: int, stride: int, in_channels: int) -> list[Callable[[], HybridBlock]]:
        return [lambda: _conv3x3(channels, stride, in_channels), lambda: _conv3x3(channels, 1, channels)]


class BottleneckV2(_BlockV2):
    """Convolutions of 1x1, 3x3 and 1x1, for networks of 50 layers and more of the second version.

    Parameters
    ----------
    channels, stride, downsample, in_channels
        See ``BasicBlockV1``; the inner convolutions have a quarter of the channels.
    """

    def _convs(self, channels: int, stride: int, in_channels: int) -> list[Callable[[], HybridBlock]]:
        inside = channels // 4
        return [lambda: Conv2D(inside, kernel_size=1, strides=1, use_bias=False),
                lambda: _conv3x3(inside, stride, inside),
                lambda: Conv2D(channels, kernel_size=1, strides=1, use_bias=False)]


def _start(channels: int, thumbnail: bool) -> list[HybridBlock]:
    """The layers before the first stage."""
    if thumbnail:
        return [_conv3x3(channels, 1, 0)]
    return [Conv2D(channels, 7, 2, 3, use_bias=False), BatchNorm(), Activation("relu"), MaxPool2D(3, 2, 1)]


def _stage(number: int, block: Callable[..., HybridBlock], count: int, before: int, after: int) -> HybridSequential:
    return container_of_layers(HybridSequential(prefix=f"stage{number}_"), lambda: [
        block(after, 1 if number == 1 else 2, after != before, in_channels=before, prefix=""),
        *[block(after, 1, False, in_channels=after, prefix="") for _ in range(count - 1)]])


def _stages(what: str, block: Callable[..., HybridBlock], layers: Sequence[int], channels: Sequence[int]
            ) -> list[HybridSequential]:
    if len(layers) != len(channels) - 1:
        raise ArgumentError(f"{what}: layers={layers} and channels={channels}: expected the channels before each stage "
                            f"and after the last one")
    return [_stage(number, block, layers[number - 1], channels[number - 1], channels[number])
            for number in range(1, len(channels))]


class ResNetV1(Classifier):
    """A ResNet of the first version, for images of 224 by 224.

    Parameters
    ----------
    block : type
        The class of its blocks: ``BasicBlockV1``, ``BottleneckV1``, or another.
    layers : list of int
        Number of blocks of each stage.
    channels : list of int
        Channels before each stage, and after the last.
    classes : int
        Number of classes.
    thumbnail : bool
        Whether images are small, as in CIFAR: then it begins with a single 3x3 convolution.

    Raises
    ------
    ArgumentError
        When the lengths of the two lists do not fit.
    """

    def __init__(self, block: Callable[..., HybridBlock], layers: Sequence[int], channels: Sequence[int],
                 classes: int = 1000, thumbnail: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(*_start(channels[0], thumbnail),
                                  *_stages("ResNetV1", block, layers, channels), GlobalAvgPool2D())
            self.output = Dense(classes, in_units=channels[-1])


class ResNetV2(Classifier):
    """A ResNet of the second version, for images of 224 by 224.

    Parameters
    ----------
    block, layers, channels, classes, thumbnail
        See ``ResNetV1``; blocks are ``BasicBlockV2`` or ``BottleneckV2``.

    Raises
    ------
    ArgumentError
        When the lengths of the two lists do not fit.
    """

    def __init__(self, block: Callable[..., HybridBlock], layers: Sequence[int], channels: Sequence[int],
                 classes: int = 1000, thumbnail: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(BatchNorm(scale=False, center=False), *_start(channels[0], thumbnail),
                                  *_stages("ResNetV2", block, layers, channels), BatchNorm(), Activation("relu"),
                                  GlobalAvgPool2D(), Flatten())
            self.output = Dense(classes, in_units=channels[-1])


#: Layers -> whether blocks are bottlenecks, and the number of blocks in each stage.
_KINDS = {18: (False, [2, 2, 2, 2]), 34: (False, [3, 4, 6, 3]), 50: (True, [3, 4, 6, 3]), 101: (True, [3, 4, 23, 3]),
          152: (True, [3, 8, 36, 3])}
_CHANNELS = {False: [64, 64, 128, 256, 512], True: [64, 256, 512, 1024, 2048]}
_VERSIONS: dict[int, tuple[Any, dict[bool, type[HybridBlock]]]] = {
    1: (ResNetV1, {False: BasicBlockV1, True: BottleneckV1}), 2: (ResNetV2, {False: BasicBlockV2, True: BottleneckV2})}


def get_resnet(version: int, num_layers: int, pretrained: bool = False, ctx: Context | list[Context] | None = None,
               root: str | os.PathLike | None = None, **kwargs: Any) -> Classifier:
    """A ResNet of the first or second version, with 18, 34, 50, 101 or 152 layers.

    Parameters
    ----------
    version, num_layers : int
        The version, and the number of layers.
    pretrained, ctx, root
        Whether to load parameters, their context, and the folder of their file; see ``get_model_file``.
    **kwargs
        Keywords of ``ResNetV1`` and ``ResNetV2``.

    Raises
    ------
    ArgumentError
        When there is no such network.
    """
    if version not in _VERSIONS or num_layers not in _KINDS:
        raise ArgumentError(f"get_resnet: there is no version {version} of {num_layers} layers: versions are 1 and 2, "
                            f"layers {', '.join(map(str, _KINDS))}")
    kind, blocks = _VERSIONS[version]
    bottleneck, layers = _KINDS[num_layers]
    net: Classifier = load(kind(blocks[bottleneck], layers, _CHANNELS[bottleneck], **kwargs),
                           f"resnet{num_layers}_v{version}", pretrained, ctx or cpu(), root)
    return net


resnet18_v1, resnet34_v1, resnet50_v1, resnet101_v1, resnet152_v1 = [
    family_function(__name__, f"resnet{layers}_v1", get_resnet, 1, layers) for layers in _KINDS]
resnet18_v2, resnet34_v2, resnet50_v2, resnet101_v2, resnet152_v2 = [
    family_function(__name__, f"resnet{layers}_v2", get_resnet, 2, layers) for layers in _KINDS]

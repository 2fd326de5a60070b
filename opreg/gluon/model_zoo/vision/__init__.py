"""Networks for images: their classes, a function for each, and ``get_model``, which finds them by name."""

from __future__ import annotations

from typing import Any

from opreg.errors import ArgumentError, did_you_mean

from ....core.named_errors import name_errors
from .alexnets import (
    AlexNet,
    alexnet,
)
from .densenet import (
    DenseNet,
    densenet121,
    densenet161,
    densenet169,
    densenet201,
    get_densenet,
)
from .inception import (
    Inception3,
    inception_v3,
)
from .mobilenet import (
    MobileNet,
    MobileNetV2,
    get_mobilenet,
    get_mobilenet_v2,
    mobilenet0_5,
    mobilenet0_25,
    mobilenet0_75,
    mobilenet1_0,
    mobilenet_v2_0_5,
    mobilenet_v2_0_25,
    mobilenet_v2_0_75,
    mobilenet_v2_1_0,
)
from .parts import Classifier
from .resnet import (
    BasicBlockV1,
    BasicBlockV2,
    BottleneckV1,
    BottleneckV2,
    ResNetV1,
    ResNetV2,
    get_resnet,
    resnet18_v1,
    resnet18_v2,
    resnet34_v1,
    resnet34_v2,
    resnet50_v1,
    resnet50_v2,
    resnet101_v1,
    resnet101_v2,
    resnet152_v1,
    resnet152_v2,
)
from .squeezenet import (
    SqueezeNet,
    get_squeezenet,
    squeezenet1_0,
    squeezenet1_1,
)
from .vgg import (
    VGG,
    get_vgg,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)

__all__ = ["get_model", "AlexNet", "alexnet", "DenseNet", "get_densenet", "densenet121", "densenet161", "densenet169",
           "densenet201", "Inception3", "inception_v3", "MobileNet", "MobileNetV2", "get_mobilenet",
           "get_mobilenet_v2", "mobilenet1_0", "mobilenet0_75", "mobilenet0_5", "mobilenet0_25", "mobilenet_v2_1_0",
           "mobilenet_v2_0_75", "mobilenet_v2_0_5", "mobilenet_v2_0_25", "ResNetV1", "ResNetV2", "BasicBlockV1",
           "BasicBlockV2", "BottleneckV1", "BottleneckV2", "get_resnet", "resnet18_v1", "resnet34_v1", "resnet50_v1",
           "resnet101_v1", "resnet152_v1", "resnet18_v2", "resnet34_v2", "resnet50_v2", "resnet101_v2",
           "resnet152_v2", "SqueezeNet", "get_squeezenet", "squeezenet1_0", "squeezenet1_1", "VGG", "get_vgg",
           "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"]

#: Name -> function that makes the network.
_NETWORKS = {
    "alexnet": alexnet, "inceptionv3": inception_v3,
    "squeezenet1.0": squeezenet1_0, "squeezenet1.1": squeezenet1_1,
    **{network.__name__: network for network in (
        resnet18_v1, resnet34_v1, resnet50_v1, resnet101_v1, resnet152_v1,
        resnet18_v2, resnet34_v2, resnet50_v2, resnet101_v2, resnet152_v2,
        vgg11, vgg13, vgg16, vgg19, vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn,
        densenet121, densenet161, densenet169, densenet201)},
    "mobilenet1.0": mobilenet1_0, "mobilenet0.75": mobilenet0_75, "mobilenet0.5": mobilenet0_5,
    "mobilenet0.25": mobilenet0_25,
    "mobilenetv2_1.0": mobilenet_v2_1_0, "mobilenetv2_0.75": mobilenet_v2_0_75, "mobilenetv2_0.5": mobilenet_v2_0_5,
    "mobilenetv2_0.25": mobilenet_v2_0_25,
}


def get_model(name: str, **kwargs: Any) -> Classifier:
    """A network by its name, such as "resnet18_v1", "mobilenetv2_0.25" or "squeezenet1.1".

    Parameters
    ----------
    name : str
        The name, in any case.
    **kwargs
        Arguments of its function, such as ``pretrained``, ``ctx``, ``root`` and ``classes``.

    Raises
    ------
    ArgumentError
        When there is no such network.

    Examples
    --------
    >>> net = get_model("squeezenet1.1", classes=10)
    >>> net.output[0]
    Conv2D(None -> 10, kernel_size=(1, 1), stride=(1, 1))
    """
    if name.lower() not in _NETWORKS:
        raise ArgumentError(f"there is no network {name!r}. {did_you_mean(name.lower(), _NETWORKS)}")
    return _NETWORKS[name.lower()](**kwargs)


name_errors(__name__, globals(), __all__)

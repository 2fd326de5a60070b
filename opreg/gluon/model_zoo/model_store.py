"""Files of parameters of well-known networks, in a folder that the user fills."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from opreg.base import data_dir
from opreg.errors import ArgumentError, OpError, did_you_mean

from ...core.named_errors import name_errors

__all__ = ["get_model_file", "short_hash", "load", "purge"]

#: Network -> the SHA-1 of its file, or its first eight digits, which are part of the file name; other libraries add
#: theirs.
_model_sha1 = dict(line.split() for line in """
    alexnet 44335d1f
    densenet121 f27dbf2d
    densenet161 b6c8a957
    densenet169 2603f878
    densenet201 1cdbc116
    inceptionv3 ed47ec45
    mobilenet0.25 9f83e440
    mobilenet0.5 8e9d539c
    mobilenet0.75 529b2c7f
    mobilenet1.0 6b8c5106
    mobilenetv2_1.0 36da4ff1
    mobilenetv2_0.75 e2be7b72
    mobilenetv2_0.5 aabd26cd
    mobilenetv2_0.25 ae8f9392
    resnet18_v1 a0666292
    resnet34_v1 48216ba9
    resnet50_v1 0aee57f9
    resnet101_v1 d988c13d
    resnet152_v1 671c637a
    resnet18_v2 a81db45f
    resnet34_v2 9d6b80bb
    resnet50_v2 ecdde353
    resnet101_v2 18e93e4f
    resnet152_v2 f2695542
    squeezenet1.0 264ba497
    squeezenet1.1 33ba0f93
    vgg11 dd221b16
    vgg11_bn ee79a809
    vgg13 6bc5de58
    vgg13_bn 7d97a06c
    vgg16 e660d456
    vgg16_bn 7f01cf05
    vgg19 ad2f660d
    vgg19_bn f360b758
""".strip().splitlines())


def _folder(root: str | os.PathLike | None) -> Path:
    return Path(os.path.expanduser(os.path.join(data_dir(), "models") if root is None else root))


def short_hash(name: str) -> str:
    """The hash in the name of a network's file.

    Raises
    ------
    ArgumentError
        When no parameters of the network were published.

    Examples
    --------
    >>> short_hash("alexnet")
    '44335d1f'
    """
    if name not in _model_sha1:
        raise ArgumentError(f"there are no parameters of a network {name!r}. {did_you_mean(name, _model_sha1)}")
    return _model_sha1[name][:8]


def get_model_file(name: str, root: str | os.PathLike | None = None) -> str:
    """The path of the file of a network's parameters; nothing is downloaded.

    Parameters
    ----------
    name : str
        The network.
    root : str
        The folder: ``models`` in ``MXNET_HOME`` by default. The file is ``resnet18_v1-a0666292.params``, or
        ``resnet18_v1.params`` for the user's own parameters.

    Raises
    ------
    OpError
        When the file is missing; the message says where to put it.
    """
    folder, names = _folder(root), [f"{name}-{short_hash(name)}.params", f"{name}.params"]
    for file_name in names:
        if (folder / file_name).is_file():
            return str(folder / file_name)
    raise OpError(f"pretrained parameters of {name} are not downloaded: put {names[0]!r} into "
                  f"{str(folder.absolute())!r}, or give its folder by root=")


def load(net: Any, name: str, pretrained: bool, ctx: Any, root: str | os.PathLike | None) -> Any:
    """The network; its parameters are loaded if ``pretrained``."""
    if pretrained:
        net.load_parameters(get_model_file(name, root), ctx=ctx)
    return net


def purge(root: str | os.PathLike | None = None) -> None:
    """Remove the files of known networks from the folder."""
    for name, digits in _model_sha1.items():
        (_folder(root) / f"{name}-{digits}.params").unlink(missing_ok=True)


name_errors(__name__, globals(), __all__)

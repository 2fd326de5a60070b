"""Networks in PyTorch that ``benchmarks.imported`` writes to ONNX, with random weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["NETWORKS"]


class _Heads(nn.Module):
    """Attention by two products and a softmax."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, masked: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        shape = (*x.shape[:2], self.heads, self.size)
        query, key, value = (part.view(shape).transpose(1, 2) for part in self.joined(x).chunk(3, dim=2))
        scores = masked(query @ key.transpose(-1, -2) / math.sqrt(self.size))
        return self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape))


class _Block(nn.Module):
    """Attention and two dense layers, with a layer norm each."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = _Heads(width, heads)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)


class _Bert(nn.Module):
    """Blocks whose norms come last, and a mask of tokens that is added to the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Block(256, 4) for _ in range(2))

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        hidden = (1.0 - tokens[:, None, None, :]) * -10000.0
        for block in self.blocks:
            x = block.norms[0](x + block.heads(x, lambda scores: scores + hidden))
            x = block.norms[1](x + block.narrow(F.gelu(block.wide(x))))
        return x


class _Gpt(nn.Module):
    """Blocks whose norms come first, and scores of later tokens that are hidden."""

    def __init__(self, length: int = 128):
        super().__init__()
        self.blocks = nn.ModuleList(_Block(256, 4) for _ in range(2))
        self.register_buffer("seen", torch.ones(length, length, dtype=torch.bool).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block.heads(block.norms[0](x), lambda scores: torch.where(self.seen, scores, -3e38))
            x = x + block.narrow(F.gelu(block.wide(block.norms[1](x)), approximate="tanh"))
        return x


class _Lstm(nn.Module):
    """A bidirectional LSTM of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.out = nn.LSTM(128, 128, 2, bidirectional=True), nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(x)[0])


class _Sum(nn.Module):
    """A layer's output plus its input, or plus a projection of the input."""

    def __init__(self, layer: nn.Module, projection: nn.Module, after: nn.Module):
        super().__init__()
        self.layer, self.projection, self.after = layer, projection, after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.layer(x) + self.projection(x))


def _convolved(before: int, filters: int, kernel: int, after: nn.Module | None = None, stride: int = 1,
               groups: int = 1) -> nn.Sequential:
    """A convolution, batch norm, and an activation; outputs have about the size of inputs."""
    convolution = nn.Conv2d(before, filters, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(convolution.weight)
    return nn.Sequential(convolution, nn.BatchNorm2d(filters), *([] if after is None else [after]))


def _classified(layers: list[nn.Module], channels: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def _resnet() -> nn.Module:
    layers: list[nn.Module] = [_convolved(3, 64, 7, nn.ReLU(), 2), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for inner, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            stride, filters = (first, 1)[i > 0], 4 * inner
            body = nn.Sequential(_convolved(before, inner, 1, nn.ReLU()),
                                 _convolved(inner, inner, 3, nn.ReLU(), stride), _convolved(inner, filters, 1))
            beside = nn.Identity() if i else _convolved(before, filters, 1, stride=stride)
            layers.append(_Sum(body, beside, nn.ReLU()))
            before = filters
    return _classified(layers, before)


def _mobilenet() -> nn.Module:
    layers: list[nn.Module] = [_convolved(3, 32, 3, nn.ReLU6(), 2)]
    before = 32
    for factor, filters, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            stride, inner = (first, 1)[i > 0], before * factor
            wide = [_convolved(before, inner, 1, nn.ReLU6())] if factor > 1 else []
            body = nn.Sequential(*wide, _convolved(inner, inner, 3, nn.ReLU6(), stride, inner),
                                 _convolved(inner, filters, 1))
            layers.append(_Sum(body, nn.Identity(), nn.Identity()) if i else body)
            before = filters
    return _classified([*layers, _convolved(before, 1280, 1, nn.ReLU6())], 1280)


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


#: The networks by name, and the shapes of their inputs.
NETWORKS: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]]]] = {
    "encoder": (_encoder, [(8, 128, 256)]),
    "BERT": (_Bert, [(4, 128, 256), (4, 128)]),
    "GPT": (_Gpt, [(4, 128, 256)]),
    "ResNet-50": (_resnet, [(1, 3, 224, 224)]),
    "MobileNetV2": (_mobilenet, [(1, 3, 224, 224)]),
    "LSTM": (_Lstm, [(50, 8, 128)]),
}

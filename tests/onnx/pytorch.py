"""Networks of PyTorch, exported by both of its exporters with an open batch size, and imported.

``python -m tests.onnx.pytorch`` needs PyTorch, onnxscript and ONNX Runtime. For each network and exporter it prints how
far results are from PyTorch's, in parts of the largest number: of the Cell, of the compiled Cell, of the symbol, of
gradients of weights that the model holds as they are, and of ONNX Runtime where it runs the model that the Cell is
written to again; values for two lengths of the batch. Models that are not written again are counted. The program ends
with 1 where a number is above ``MOST``.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from torch import nn

import opreg as mx
from opreg.errors import OpError

#: The largest difference, in parts of the largest number.
MOST = 2e-4


class _Module(nn.Module):
    """A module of named layers and a function of them."""

    def __init__(self, compute: Callable[..., torch.Tensor], **layers: nn.Module):
        super().__init__()
        self.compute = compute
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.compute(self, *inputs)


def _conv(before: int, after: int, kernel: int = 3, **words: Any) -> nn.Module:
    return nn.Sequential(nn.Conv2d(before, after, kernel, padding=kernel // 2, **words), nn.BatchNorm2d(after))


def _residual(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = F.max_pool2d(F.relu(m.stem(x)), 2)
    return m.head(F.relu(m.body(x) + m.short(x)).mean((2, 3)))


def _u_net(m: Any, x: torch.Tensor) -> torch.Tensor:
    fine = F.relu(m.down(x))
    coarse = F.interpolate(F.relu(m.deep(F.avg_pool2d(fine, 2))), scale_factor=2.0, mode="bilinear")
    return m.out(torch.cat([fine, coarse, m.up(F.avg_pool2d(fine, 2))], 1))


def _lstm(m: Any, tokens: torch.Tensor) -> torch.Tensor:
    steps, (last, _) = m.lstm(m.words(tokens))
    weights = torch.softmax((steps * torch.cat([last[-2], last[-1]], 1)[:, None]).sum(2), 1)
    return m.head((steps * weights[..., None]).sum(1))


def _causal(m: Any, x: torch.Tensor) -> torch.Tensor:
    query, key, value = (part.unflatten(2, (2, 8)).transpose(1, 2) for part in m.joined(x).chunk(3, 2))
    return x + m.out(F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2))


def _rotary(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * m.norm.weight
    places = torch.arange(x.shape[1])[:, None] / 10.0 ** torch.arange(8)
    left, right = m.query(x).chunk(2, -1)
    turned = torch.cat([left * places.cos() - right * places.sin(), left * places.sin() + right * places.cos()], -1)
    return torch.softmax(torch.einsum("bqd,bkd->bqk", turned, m.key(x)) / math.sqrt(16), -1) @ x


def _patches(m: Any, x: torch.Tensor) -> torch.Tensor:
    tokens = m.patch(x).flatten(2).transpose(1, 2)
    tokens = torch.cat([m.first.weight.expand(x.shape[0], 1, 16), tokens], 1) + m.places.weight
    return m.head(m.encoder(tokens)[:, 0])


def _detector(m: Any, x: torch.Tensor) -> torch.Tensor:
    maps = [F.relu(m.body(x))]
    maps.append(F.max_pool2d(maps[0], 2))
    return torch.cat([m.boxes(each).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4) for each in maps], 1)


def _experts(m: Any, x: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(m.router(x), -1)
    best, index = weights.topk(2, -1)
    kept = torch.zeros_like(weights).scatter(-1, index, best)
    return sum(kept[..., i, None] * F.silu(getattr(m, f"expert{i}")(x)) for i in range(4))


def _seconds(m: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    hidden = m.encoder(x, src_key_padding_mask=mask > 1.5)
    return m.head(torch.where(mask[..., None] > 1.5, torch.zeros_like(hidden), hidden).cumsum(1)[:, -1])


def _encoder(**words: Any) -> nn.Module:
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, **words)


def networks() -> dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """The networks and their inputs: three samples each."""
    image, steps, words = torch.randn(3, 3, 16, 16), torch.randn(3, 6, 16), torch.randint(0, 20, (3, 7))
    return {
        "ResNet's block": (_Module(_residual, stem=_conv(3, 8, 7), body=nn.Sequential(_conv(8, 4, 1), nn.ReLU(), _conv(
            4, 16)), short=nn.Conv2d(8, 16, 1), head=nn.Linear(16, 5)), (image,)),
        "MobileNet's blocks": (nn.Sequential(_conv(3, 8, stride=2), nn.ReLU6(), _conv(8, 8, groups=8), nn.Hardswish(),
                                             _conv(8, 12, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4)),
                               (image,)),
        "U-Net": (_Module(_u_net, down=nn.Conv2d(3, 6, 3, padding=1), deep=nn.Conv2d(6, 8, 3, padding=1),
                          up=nn.ConvTranspose2d(6, 4, 2, 2), out=nn.Conv2d(18, 2, 1)), (image,)),
        "LSTM with attention": (_Module(_lstm, words=nn.Embedding(20, 6), lstm=nn.LSTM(
            6, 5, 2, bidirectional=True, batch_first=True), head=nn.Linear(10, 3)), (words,)),
        "GRU": (_Module(lambda m, x: m.head(m.gru(x)[0][:, -1]), gru=nn.GRU(16, 8, batch_first=True),
                        head=nn.Linear(8, 3)), (steps,)),
        "transformer": (nn.Sequential(_encoder(), _encoder(norm_first=True, activation="gelu")), (steps,)),
        "transformer with a mask": (_Module(_seconds, encoder=_encoder(), head=nn.Linear(16, 3)),
                                    (steps, torch.tensor([[1.0] * 6, [1.0] * 4 + [2.0] * 2, [1.0] * 5 + [2.0]]))),
        "causal attention": (_Module(_causal, joined=nn.Linear(16, 48), out=nn.Linear(16, 16)), (steps,)),
        "rotary attention": (_Module(_rotary, norm=nn.LayerNorm(16, bias=False), query=nn.Linear(16, 16),
                                     key=nn.Linear(16, 16)), (steps,)),
        "ViT": (_Module(_patches, patch=nn.Conv2d(3, 16, 4, 4), first=nn.Embedding(1, 16), places=nn.Embedding(17, 16),
                        encoder=_encoder(), head=nn.Linear(16, 4)), (image,)),
        "words and convolutions": (_Module(lambda m, x: m.head(F.relu(m.conv(m.words(x).transpose(1, 2))).amax(2)),
                                           words=nn.Embedding(20, 6), conv=nn.Conv1d(6, 8, 3, dilation=2, padding=2),
                                           head=nn.Linear(8, 3)), (words,)),
        "norms": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 3, padding=1),
                                nn.InstanceNorm2d(8, affine=True), nn.PReLU(8), nn.Conv2d(8, 4, 3)), (image,)),
        "super-resolution": (nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 12, 3), nn.LeakyReLU(0.1),
                                           nn.PixelShuffle(2)), (image,)),
        "SSD's head": (_Module(_detector, body=nn.Conv2d(3, 6, 3, padding=1), boxes=nn.Conv2d(6, 12, 3, padding=1)),
                       (image,)),
        "mixture of experts": (_Module(_experts, router=nn.Linear(16, 4),
                                       **{f"expert{i}": nn.Linear(16, 16) for i in range(4)}), (steps,)),
    }


def _written(network: nn.Module, given: tuple[torch.Tensor, ...], newer: bool, file: str) -> None:
    """Exports a network with an open first axis of its inputs."""
    names = [f"x{i}" for i in range(len(given))]
    how: dict[str, Any] = {"dynamic_shapes": (tuple({0: torch.export.Dim("batch")} for _ in given),)
                           if isinstance(network, _Module) else ({0: torch.export.Dim("batch")},)} if newer else {
        "dynamic_axes": {name: {0: "batch"} for name in names}, "opset_version": 17}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(network, given, file, dynamo=newer, input_names=names, **how)


def _apart(found: Any, wanted: Any) -> float:
    """Largest difference, relative to the largest value."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _bound(file: str, given: Sequence[np.ndarray], open_: bool) -> np.ndarray:
    """Output of a model's symbol, with an open first axis of inputs, or with the shapes of the arrays."""
    names = {f"x{i}": x for i, x in enumerate(given)}
    symbol, arguments, states = mx.onnx.import_model(file, {
        name: (-1, *x.shape[1:]) if open_ else x.shape for name, x in names.items()})
    arrays = {name: mx.nd.array(x, dtype=x.dtype) for name, x in names.items()}
    return symbol.bind(mx.cpu(), {**arguments, **arrays}, aux_states=states, grad_req="null").forward()[0].asnumpy()


def _differences(network: nn.Module, batches: list[tuple[torch.Tensor, ...]], file: str) -> Iterator[tuple[str, float]]:
    """Difference of each way to run a model from PyTorch, with the name of the way."""
    wanted = [network(*batch).detach().numpy() for batch in batches]
    given = [[x.numpy() for x in batch] for batch in batches]
    cell = mx.onnx.import_to_cell(file).set_train(False)
    for name, run in (("Cell", cell), ("compiled", mx.jit(cell))):
        yield name, max(_apart(run(*map(mx.Tensor, each)).asnumpy(), want) for each, want in zip(given, wanted))
    try:
        yield "symbol", max(_apart(_bound(file, each, True), want) for each, want in zip(given, wanted))
    except OpError:  # a shape of two lengths that are open
        yield "symbols by shape", max(_apart(_bound(file, each, False), want) for each, want in zip(given, wanted))
    own = dict(network.named_parameters())
    weights = [each for each in cell.trainable_params() if each.name in own and np.array_equal(
        each.asnumpy(), own[each.name].detach().numpy())]  # the newer exporter folds norms into others
    network.zero_grad()
    network(*batches[0]).square().sum().backward()
    slopes = mx.grad(lambda *x: (cell(*x) ** 2).sum(), None, weights)(*map(mx.Tensor, given[0])) if weights else ()
    largest = max(float(parameter.grad.abs().max()) for parameter in own.values() if parameter.grad is not None)
    yield "gradients", max((float(np.abs(slope.asnumpy() - own[each.name].grad.numpy()).max()) / largest
                            for each, slope in zip(weights, slopes)), default=0.0)
    again = mx.onnx.to_model(cell, *map(mx.Tensor, given[0]), dynamic=True)
    session = onnxruntime.InferenceSession(again.SerializeToString(), providers=["CPUExecutionProvider"])
    yield "again", max(_apart(session.run(None, {f"x{i}": x for i, x in enumerate(each)})[0], want)
                       for each, want in zip(given, wanted))


def main() -> int:
    """Prints the table; returns 1 if a value is too far from PyTorch's."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(3)
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # its operator has no translation in PyTorch
    worst, count, refused = 0.0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (network, given) in networks().items():
            for parameter in network.parameters():  # equal ones would be made one
                parameter.data.add_(torch.randn_like(parameter) * 0.05)
            network.eval()
            batches = [given, tuple(torch.cat([x, x.flip(0)])[:5] for x in given)]
            for newer in (False, True):
                file = str(Path(folder) / f"{count}.onnx")
                try:
                    _written(network, given, newer, file)
                except Exception as error:
                    print(f"{name}: PyTorch does not write it, newer={newer}: {str(error).splitlines()[0]}")
                    continue
                found: list[str] = []
                try:
                    for way, apart in _differences(network, batches, file):
                        found.append(f"{way} {apart:.0e}")
                        worst = max(worst, apart)
                except OpError as error:
                    found.append(f"then {str(error).splitlines()[0]}")
                    refused += 1
                count += 1
                print(f"{name:24} {'newer' if newer else 'older':6} {', '.join(found)}", flush=True)
    print(f"{count} models, {refused} not written again, at most {worst:.0e} from PyTorch")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())

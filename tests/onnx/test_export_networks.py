"""Whole networks as ONNX models: MXNet's files, classic networks built here, and layers, each compared with opreg, and
with ONNX Runtime if it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.errors import ArgumentError
from opreg.nn import ops
from tests.nn.layers import ROWS, LayerRow, flat, made, value
from tests.questions import of_each
from tests.symbol.test_models import FOLDER, NETWORKS, Network, load, load_arrays

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402  the package may be missing

from opreg.onnx import to_model  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def _checked(model: Any, given: dict[str, np.ndarray], wanted: list[np.ndarray], tolerance: float = 1e-4,
             reference: bool = True) -> None:
    """Asserts that the model is valid, and that both evaluators agree with opreg; ``reference``: onnx's own."""
    onnx.checker.check_model(model, full_check=True)
    given = {each.name: given[each.name] for each in model.graph.input}
    with np.errstate(all="ignore"):
        found = [ReferenceEvaluator(model).run(None, given)] if reference else []
    if onnxruntime is not None:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        found.append(session.run(None, given))
    for outs in found:
        assert [out.shape for out in outs] == [want.shape for want in wanted]
        for out, want in zip(outs, wanted):
            np.testing.assert_allclose(out, want, tolerance, tolerance * max(float(np.abs(want).max(initial=0)), 1e-6))


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


#: MXNet's networks that ONNX cannot express: operators in Python, and targets of training.
_UNSAID = {"custom": None, "ssd": "_contrib_MultiBoxTarget", "detector": "_contrib_Proposal"}


@of_each([name for name in NETWORKS if name not in _UNSAID])
def test_networks_of_mxnets_files_are_exported(name: str) -> None:
    folder = FOLDER / name
    with np.load(folder / "io.npz") as file:
        network = Network(NETWORKS[name], load(folder / f"{name}-symbol.json"),
                          load_arrays(folder / f"{name}-0001.params"), dict(file))
    wanted = [out.asnumpy() for out in network.bind().forward(is_train=False)]
    names = [each for each in network.symbol.list_arguments() if f"arg:{each}" not in network.params]
    given = {each: np.asarray(network.fed[each]) for each in names}
    model = to_model(network.symbol, *given.values(), params=network.params)
    assert [each.name for each in model.graph.output] == network.symbol.list_outputs()
    _checked(model, given, wanted)


# ------------------------------------------------------------------------------------------------- classics


class _Residual(nn.Cell):
    """Two convolutions, or three with a bottleneck, plus the input."""

    def __init__(self, channels: int, out: int, stride: int):
        super().__init__()
        inner = out // 4
        self.body = nn.SequentialCell(
            nn.Conv2d(channels, inner, 1), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride=stride, pad_mode="same"), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, out, 1), nn.BatchNorm2d(out))
        self.short = nn.Conv2d(channels, out, 1, stride=stride)

    def construct(self, x: Any) -> Any:
        return ops.relu(self.body(x) + self.short(x))


class _ResNet50(nn.Cell):
    """The stages of ResNet-50, with an eighth of the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(3, 8, 7, stride=2, pad_mode="same"), nn.BatchNorm2d(8), nn.ReLU(),
                                      nn.MaxPool2d(3, 2, pad_mode="same"))
        blocks, channels = [], 8
        for stage, count in enumerate((3, 4, 6, 3)):
            for block in range(count):
                out = 32 * 2 ** stage
                blocks.append(_Residual(channels, out, 2 if block == 0 and stage else 1))
                channels = out
        self.stages = nn.SequentialCell(*blocks)
        self.head = nn.Dense(channels, 10)

    def construct(self, x: Any) -> Any:
        return self.head(ops.mean(self.stages(self.stem(x)), (2, 3)))


class _MobileNet(nn.Cell):
    """Convolutions of each channel alone, and of each pixel alone."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Cell] = [nn.Conv2d(3, 8, 3, stride=2, pad_mode="same"), nn.ReLU6()]
        for channels in (8, 16, 32):
            parts += [nn.Conv2d(channels, channels, 3, pad_mode="same", group=channels), nn.BatchNorm2d(channels),
                      nn.HSwish(), nn.Conv2d(channels, 2 * channels, 1)]
        self.body, self.head = nn.SequentialCell(*parts), nn.Dense(64, 5)

    def construct(self, x: Any) -> Any:
        return ops.softmax(self.head(ops.mean(self.body(x), (2, 3))))


class _Attention(nn.Cell):
    """An LSTM whose steps are weighted by attention from the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(20, 6), nn.LSTM(6, 8, batch_first=True), nn.Dense(16, 4)

    def construct(self, tokens: Any) -> Any:
        steps, (last, _) = self.lstm(self.words(tokens))
        asked = ops.expand_dims(last[0], 2)
        weights = ops.softmax(ops.matmul(steps, asked), axis=1)
        return self.head(ops.concat([ops.sum(steps * weights, 1), last[0]], axis=1))


class _Transformer(nn.Cell):
    """A layer with heads of self-attention."""

    def __init__(self, width: int = 16, heads: int = 2):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.project, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.wide, self.narrow = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.project(self.first(x)).reshape(batch, length, 3, self.heads, self.size).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(parts[0], parts[1].transpose(0, 1, 3, 2)) / self.size ** 0.5
        mixed = ops.matmul(ops.softmax(scores, axis=-1), parts[2]).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.narrow(ops.gelu(self.wide(self.second(x))))


_CLASSICS: list[tuple[type[nn.Cell], np.ndarray, np.ndarray]] = [
    (_ResNet50, _floats(2, 3, 64, 64), _floats(3, 3, 64, 64)),
    (_MobileNet, _floats(2, 3, 32, 32), _floats(1, 3, 32, 32)),
    (_Attention, np.arange(10, dtype=np.int32).reshape(2, 5), np.arange(15, dtype=np.int32).reshape(3, 5)),
    (_Transformer, _floats(2, 7, 16), _floats(4, 7, 16))]


@pytest.mark.parametrize("cell, example, other", _CLASSICS, ids=[each[0].__name__ for each in _CLASSICS])
def test_classic_networks_compute_other_batches_in_onnx(cell: type[nn.Cell], example: np.ndarray,
                                                        other: np.ndarray) -> None:
    """The model is exported with one batch size, and computes another one like opreg."""
    net = cell().set_train(False)
    model = to_model(net, mx.Tensor(example), dynamic=True)
    (given,) = model.graph.input
    for x in (example, other):
        _checked(model, {given.name: x}, [net(mx.Tensor(x)).asnumpy()], 1e-3)


def test_a_detector_computes_any_batch_in_onnx() -> None:
    """A small SSD: priors of two feature maps, offsets, scores, and suppression, for any batch size."""
    data = mx.sym.Variable("data")
    small = mx.sym.Pooling(mx.sym.Convolution(data, kernel=(3, 3), pad=(1, 1), num_filter=4, name="c0"), kernel=(2, 2),
                           stride=(2, 2), pool_type="max")
    maps = [small, mx.sym.Pooling(small, kernel=(2, 2), stride=(2, 2), pool_type="max")]
    scores, offsets, anchors = [], [], []
    for i, each in enumerate(maps):
        score = mx.sym.Convolution(each, kernel=(3, 3), pad=(1, 1), num_filter=2 * 3, name=f"s{i}")
        offset = mx.sym.Convolution(each, kernel=(3, 3), pad=(1, 1), num_filter=2 * 4, name=f"o{i}")
        scores.append(mx.sym.Flatten(mx.sym.transpose(score, axes=(0, 2, 3, 1))))
        offsets.append(mx.sym.Flatten(mx.sym.transpose(offset, axes=(0, 2, 3, 1))))
        anchors.append(mx.sym.contrib.MultiBoxPrior(each, sizes=(0.3 + 0.3 * i, 0.5 + 0.3 * i), ratios=(1,)))
    prob = mx.sym.softmax(mx.sym.transpose(mx.sym.reshape(mx.sym.Concat(*scores, dim=1), shape=(0, -1, 3)),
                                           axes=(0, 2, 1)), axis=1)
    found = mx.sym.contrib.MultiBoxDetection(prob, mx.sym.Concat(*offsets, dim=1), mx.sym.Concat(*anchors, dim=1),
                                             nms_threshold=0.4, threshold=0.2)
    shape = (2, 3, 8, 8)
    shapes = dict(zip(found.list_arguments(), found.infer_shape(data=shape)[0]))
    params = {name: mx.nd.array(_floats(*each)) for name, each in shapes.items() if name != "data"}
    model = to_model(found, shape, params=params, dynamic=True)
    for batch in (2, 3):
        images = _floats(batch, *shape[1:])
        bound = found.bind(mx.cpu(), {**params, "data": mx.nd.array(images)}, grad_req="null")
        _checked(model, {"data": images}, [bound.forward()[0].asnumpy()])


# --------------------------------------------------------------------------------------------------- layers

#: Layers that the reference evaluator computes in another way than ONNX says, and ONNX Runtime as ONNX does: padding of
#: transposed convolutions, windows beyond the end, lengths of recurrent layers, windows of channels.
_EVALUATOR = frozenset(["Conv2dTranspose25", "MaxPool1d2", "MaxPool3d0", "RNN1", "LSTM1", "GRU1", "LRN0", "LRN1"])
#: Operators of layers that ONNX lacks; ``_python`` calls SciPy.
_LAYERS_UNSAID = frozenset(["_linalg_inverse", "_python"])


#: Layers whose shapes depend on the values of an input, here the size of an image.
_BY_VALUES = frozenset(["ResizeBilinear"])


@pytest.mark.parametrize("row", [row for row in ROWS if not row.train and row.name not in _BY_VALUES],
                         ids=lambda row: row.name)
def test_layers_are_exported_or_refused(row: LayerRow, request: pytest.FixtureRequest) -> None:
    layer = made(row.layer, False)
    examples = [value(each, i) for i, each in enumerate(row.inputs)]
    wanted = [out.asnumpy() for out in flat(layer(*examples))]
    try:
        model = to_model(layer, *examples)
    except ArgumentError as error:
        refused = str(error)
    else:
        leaves = [each.asnumpy() for each in flat(examples) if each is not True]
        told = request.node.callspec.id in _EVALUATOR
        _checked(model, dict(zip([each.name for each in model.graph.input], leaves)), wanted, reference=not told)
        return
    assert any(f"operator {name}" in refused for name in _LAYERS_UNSAID), refused

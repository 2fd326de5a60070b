"""Gluon's networks for images: parameters and outputs equal MXNet's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.gluon.model_zoo import model_store, vision

RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "gluon_networks.json").read_text())

#: Networks whose answers are recorded, and the size of their images.
SMALL: dict[str, tuple[Callable[[], Any], int]] = {
    "mobilenet0.25": (lambda: vision.mobilenet0_25(classes=5), 64),
    "mobilenetv2_0.25": (lambda: vision.mobilenet_v2_0_25(classes=5), 64),
    "squeezenet1.0": (lambda: vision.squeezenet1_0(classes=5), 224),
    "squeezenet1.1": (lambda: vision.squeezenet1_1(classes=5), 224),
    "ResNetV1": (lambda: vision.ResNetV1(vision.BottleneckV1, [1, 2], [8, 16, 32], classes=5, thumbnail=True), 16),
    "ResNetV2": (lambda: vision.ResNetV2(vision.BottleneckV2, [1, 2], [8, 16, 32], classes=5), 64),
    "BasicV1": (lambda: vision.ResNetV1(vision.BasicBlockV1, [1, 2], [8, 16, 32], classes=5), 64),
    "BasicV2": (lambda: vision.ResNetV2(vision.BasicBlockV2, [1, 2], [8, 8, 16], classes=5, thumbnail=True), 16),
    "DenseNet": (lambda: vision.DenseNet(8, 4, [2, 2], dropout=0.5, classes=5), 64),
    "VGG": (lambda: vision.VGG([1, 2], [4, 8], classes=5, batch_norm=True), 16),
}


def _hash(*lines: str) -> str:
    return hashlib.sha1("\n".join(lines).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", RECORDED["networks"])
def test_parameters_are_those_of_mxnet(name: str) -> None:
    net = vision.get_model(name, prefix="net_")
    parameters = dict(net.collect_params().items())
    assert RECORDED["networks"][name] == [
        len(parameters), _hash(*[f"{key} {tuple(each.shape)} {each.grad_req}" for key, each in parameters.items()]),
        _hash(*[f"{key} {each.name}" for key, each in net._collect_params_with_prefix().items()]), _hash(repr(net))]


@pytest.mark.parametrize("name", SMALL)
def test_outputs_are_those_of_mxnet(name: str) -> None:
    make, size = SMALL[name]
    net = make()
    net.initialize()
    draw = np.random.RandomState(0)
    x = mx.nd.array(draw.uniform(size=(2, 3, size, size)))
    net(x)
    for key, parameter in net.collect_params().items():
        low = 0.5 if key.endswith(("gamma", "var")) else -0.5
        scale = (12 / np.prod(parameter.shape[1:])) ** 0.5 if parameter.shape[1:] else 1
        parameter.set_data(mx.nd.array(draw.uniform(low, low + 1, parameter.shape) * scale))
    expected = np.array(RECORDED["outputs"][name])
    for _ in range(2):
        np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=2e-4, atol=2e-5 * np.abs(expected).max())
        net.hybridize()


def test_pretrained_parameters_are_read_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = mx.nd.ones((1, 3, 64, 64))
    net = vision.mobilenet0_25(classes=3)
    net.initialize()
    expected = net(x).asnumpy()
    with pytest.raises(mx.errors.OpError, match=r"put 'mobilenet0.25-9f83e440.params' into"):
        vision.mobilenet0_25(pretrained=True, root=tmp_path)
    net.save_parameters(str(tmp_path / "mobilenet0.25-9f83e440.params"))
    again = vision.get_model("MobileNet0.25", pretrained=True, root=str(tmp_path), classes=3)
    assert (again(x).asnumpy() == expected).all()
    assert vision.get_mobilenet(0.25, True, mx.cpu(1), tmp_path, classes=3).output.bias.list_ctx() == [mx.cpu(1)]
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    net.save_parameters(str(tmp_path / "models" / "mobilenet0.25.params"))
    assert model_store.get_model_file("mobilenet0.25") == str(tmp_path / "models" / "mobilenet0.25.params")
    model_store.purge(tmp_path)
    assert not (tmp_path / "mobilenet0.25-9f83e440.params").exists()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: vision.get_model("resnet18"), "Did you mean 'resnet18_v"),
    (lambda: vision.get_resnet(3, 18), "versions are 1 and 2"),
    (lambda: vision.SqueezeNet("1.2"), "no version '1.2'"),
    (lambda: vision.VGG([1], [2, 3]), "equally many of both"),
    (lambda: vision.ResNetV1(vision.BasicBlockV1, [1], [2]), "channels before each stage"),
    (lambda: model_store.short_hash("lenet"), "no parameters of a network 'lenet'"),
])
def test_unknown_networks_are_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(mx.errors.ArgumentError, match=words):
        call()


def test_a_network_learns() -> None:
    net = vision.get_resnet(1, 18, thumbnail=True, classes=2)
    net.initialize()
    net.hybridize()
    x = mx.nd.random.uniform(shape=(2, 3, 16, 16))
    with mx.autograd.record():
        loss = mx.nd.softmax_cross_entropy(net(x), mx.nd.array([0, 1]))
    loss.backward()
    assert all(each.grad().abs().sum().asscalar() > 0 for each in net.collect_params(".*conv0.*").values())

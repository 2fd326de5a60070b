"""Whole networks of Apache MXNet 1.9.1, loaded from its files and compared with its results: ``oracle/models``."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg.core.registry import ops
from opreg.custom.operator import CustomOp, CustomOpProp, register
from opreg.ndarray import Context, NDArray, array
from opreg.ndarray import load as load_arrays
from opreg.symbol import Symbol, compile, load, load_json
from tests.cuda.strict import StrictBackend

assert StrictBackend.name == "strict"  # importing it has made the device known

FOLDER = Path(__file__).parent.parent / "oracle" / "models"
NETWORKS = {path.parent.name: json.loads((path.parent / "about.json").read_text())
            for path in sorted(FOLDER.glob("*/io.npz"))}


class _Scale(CustomOp):
    def __init__(self, factor: float):
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.factor)
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


@register("scale")
class _ScaleProp(CustomOpProp):
    def __init__(self, factor):
        super().__init__(need_top_grad=True)
        self.factor = float(factor)

    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Scale(self.factor)


class _Softmax(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        x = np.exp(x - x.max(1, keepdims=True))
        self.assign(out_data[0], req[0], array(x / x.sum(1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        y = out_data[0].asnumpy()
        y[np.arange(len(y)), in_data[1].asnumpy().astype(int)] -= 1
        self.assign(in_grad[0], req[0], array(y))


@register("softmax")
class _SoftmaxProp(CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Softmax()


@dataclass
class Network:
    """A recorded network: its description, graph, arrays and MXNet's results."""

    about: dict[str, Any]
    symbol: Symbol
    params: dict[str, NDArray]
    io: dict[str, np.ndarray]

    def recorded(self, kind: str) -> dict[str, np.ndarray]:
        return {name[len(kind) + 1:]: value for name, value in self.io.items() if name.startswith(f"{kind}/")}

    @property
    def fed(self) -> dict[str, np.ndarray]:
        """Recorded inputs and labels."""
        return {**self.recorded("in"), **self.recorded("label")}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: value.shape for name, value in self.fed.items()}

    def arrays(self, kind: str) -> dict[str, NDArray]:
        return {name[4:]: value.copy() for name, value in self.params.items() if name.startswith(f"{kind}:")}

    def bind(self, gradients: Any = (), device: str = "cpu") -> Any:
        """An executor over copies of the checkpoint, with some of the gradients."""
        ctx = Context(device)
        values = {**self.arrays("arg"), **{name: array(value, dtype=value.dtype) for name, value in self.fed.items()}}
        grads = {name: array(np.full(values[name].shape, 9), dtype=values[name].dtype) for name in gradients}
        placed = [{name: value.as_in_context(ctx) for name, value in each.items()}
                  for each in (values, grads, self.arrays("aux"))]
        return self.symbol.bind(ctx, placed[0], placed[1], "write", placed[2])


devices = pytest.mark.parametrize("device", ["cpu", "strict", pytest.param("gpu", marks=pytest.mark.gpu)])
trained = pytest.mark.parametrize(
    "network", [name for name, about in NETWORKS.items() if about["trainable"]], indirect=True)
_LOADED: dict[str, Network] = {}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Each network, whose graph is verified after every pass."""
    monkeypatch.setattr(compile, "CHECK", True)
    name = request.param
    if name not in _LOADED:
        folder, about = FOLDER / name, NETWORKS[name]
        with np.load(folder / "io.npz") as file:
            _LOADED[name] = Network(about, load(folder / f"{name}-symbol.json"),
                                    load_arrays(folder / f"{name}-0001.params"), dict(file))
    return _LOADED[name]


def _near(found: Any, expected: dict[str, np.ndarray], tolerance: float, what: str) -> None:
    for name, want in expected.items():
        value = found[name].asnumpy()
        assert value.shape == want.shape and value.dtype == want.dtype, f"{what} {name}"
        largest = max(float(np.abs(want).max(initial=0)), 1e-6)
        np.testing.assert_allclose(value / largest, want / largest, 0, tolerance, err_msg=f"{what} {name}")


def _numbered(outputs: list[NDArray]) -> dict[str, NDArray]:
    return {str(i): output for i, output in enumerate(outputs)}


def _as_lists(shapes: Any) -> list[list[int]]:
    return [list(shape) for shape in shapes]


def test_models_list_the_recorded_names(network: Network) -> None:
    about, symbol = network.about, network.symbol
    assert symbol.list_arguments() == about["arguments"]
    assert symbol.list_outputs() == about["outputs"]
    assert symbol.list_auxiliary_states() == about["auxiliary_states"]
    assert symbol.get_internals().list_outputs() == about["internals"]
    assert symbol.attr_dict() == about["attr_dict"]
    nodes = json.loads(symbol.tojson())["nodes"]
    assert Counter(node["op"] for node in nodes if node["op"] != "null") == about["op_counts"]


def test_inferred_shapes_are_the_recorded_ones(network: Network) -> None:
    about, symbol = network.about, network.symbol
    for found, names, what in zip(symbol.infer_shape(**network.shapes),
                                  (about["arguments"], about["outputs"], about["auxiliary_states"]),
                                  ("arguments", "outputs", "auxiliary_states")):
        assert dict(zip(names, _as_lists(found))) == about["infer_shape"][what]
    internals = symbol.get_internals().infer_shape(**network.shapes)[1]
    assert _as_lists(internals) == about["internal_shapes"]
    kinds = symbol.infer_type(**{name: value.dtype for name, value in network.fed.items()})
    assert [[np.dtype(kind).name for kind in group] for group in kinds] == about["infer_type"]


def test_a_saved_network_is_loaded_unchanged(network: Network) -> None:
    """A network that is saved and loaded again is the same."""
    again = load_json(network.symbol.tojson())
    assert again.tojson() == network.symbol.tojson()
    assert again.attr_dict() == network.symbol.attr_dict()


@devices
def test_forward_gives_the_recorded_outputs(network: Network, device: str) -> None:
    executor = network.bind(device=device)
    for _ in range(2):  # an executor gives the same again
        outputs = executor.forward(is_train=False)
        _near(_numbered(outputs), network.recorded("out"), 1e-4, "output")
        if network.recorded("aux_after_infer"):
            _near(executor.aux_dict, network.recorded("aux_after_infer"), 1e-4, "state")
            break


@trained
@devices
def test_training_gives_the_recorded_gradients_and_statistics(network: Network, device: str) -> None:
    """MXNet's BatchNorm updates its statistics in backward, opreg's in forward."""
    executor = network.bind(network.about["gradients"], device)
    before = {name: value.asnumpy() for name, value in executor.arg_dict.items()}
    outputs = executor.forward(is_train=True)
    _near(_numbered(outputs), network.recorded("train_out"), 1e-4, "output")
    _near(executor.aux_dict, network.recorded("aux_after_backward"), 1e-4, "state")
    heads = network.recorded("head")
    executor.backward([array(heads[str(i)]) for i in range(len(heads))] or None)
    _near(executor.grad_dict, network.recorded("grad"), 1e-4, "gradient of")
    _near(executor.aux_dict, network.recorded("aux_after_backward"), 1e-4, "state")
    for name, value in executor.arg_dict.items():
        np.testing.assert_array_equal(value.asnumpy(), before[name], name)


def _loss(network: Network, outputs: list[np.ndarray]) -> float:
    """Loss of outputs, by the formula in ``about.json``."""
    labels, said = network.recorded("label"), network.about["sgd"]["loss"]
    first = outputs[0].astype(np.float64)
    if said.startswith("mean of -log"):
        label = labels["softmax_label"]
        if first.ndim > 2:  # the second axis has the classes
            first = np.moveaxis(first, 1, -1)
        chosen = label.reshape(-1)
        kept = chosen != 255
        return float(-np.log(first.reshape(-1, first.shape[-1])[kept, chosen[kept].astype(int)]).mean())
    if said == "mean of output 0":
        return float(first.mean())
    if said == "mean of output 0 plus mean of output 1":
        return float(first.mean() + outputs[1].mean(dtype=np.float64))
    if said.startswith("sum over all outputs"):
        return float(sum((output.astype(np.float64) * network.io[f"head/{i}"]).sum()
                         for i, output in enumerate(outputs)))
    if said.startswith("mean((out0"):
        p, truth = outputs[1].astype(np.float64), labels["log_label"]
        cross = -(truth * np.log(p) + (1 - truth) * np.log(1 - p))
        return float(((first - labels["lin_label"]) ** 2).mean() / 2 + cross.mean()
                     + np.abs(outputs[2] - labels["mae_label"]).mean(dtype=np.float64))
    classes = outputs[2]
    item, place = np.nonzero(classes >= 0)
    chosen = first[item, classes[item, place].astype(int), place]
    return float(-np.log(chosen).mean() + outputs[1].sum(dtype=np.float64) / max((outputs[1] > 0).sum(), 1))


@trained
def test_five_steps_give_the_recorded_weights(network: Network) -> None:
    about, heads = network.about["sgd"], network.recorded("head")
    executor = network.bind(about["updated"])
    momentum = {name: ops.zeros_like(executor.arg_dict[name]) for name in about["updated"]}
    rule = {key: about[key] for key in ("lr", "momentum", "wd", "rescale_grad")}
    losses = []
    for _ in range(about["steps"]):
        losses.append(_loss(network, [output.asnumpy() for output in executor.forward(is_train=True)]))
        executor.backward([array(heads[str(i)]) for i in range(len(heads))] or None)
        for name in about["updated"]:
            weight = executor.arg_dict[name]
            weight[:] = ops.sgd_mom_update(weight, executor.grad_dict[name], momentum[name], **rule)
    np.testing.assert_allclose(losses, network.io["sgd/loss"], 1e-3)
    _near(executor.arg_dict, {about["weight"]: network.io["sgd/weight"]}, 1e-3, "weight")
    _near(executor.aux_dict, network.recorded("sgd/aux"), 1e-3, "state")
    outputs = _numbered(executor.forward(is_train=False))
    _near(outputs, network.recorded("sgd/out"), 1e-3, "output")


def test_partial_shapes_are_completed_as_by_mxnet() -> None:
    """Shapes that MXNet infers without hints are inferred; the shape of a label also gives the batch size of the
    data."""
    about = NETWORKS["regression"]
    symbol = load(FOLDER / "regression" / "regression-symbol.json")
    for asked, given in (("infer_shape_partial_without_hints", {}),
                         ("infer_shape_from_lin_label_only", {"lin_label": (8, 2)})):
        arguments, outputs, _ = symbol.infer_shape_partial(**given)
        found = dict(zip(about["arguments"] + about["outputs"], _as_lists(arguments + outputs)))
        for name, shape in {**about[asked][0], **about[asked][1]}.items():
            assert not shape or all(dim in (0, other) for dim, other in zip(shape, found[name], strict=True)), name
    assert found["data"] == [8, 11]

"""Rows of layers: one line of facts a use of a layer, which ``test_layers`` runs in every way a layer can be used.

Those that MindSpore computes have its recorded answers; the others say with NumPy what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opreg.nn import Parameter, Tensor, layers
from opreg.nn.cell import Cell

__all__ = ["ROWS", "LayerRow", "close", "flat", "made", "numbers", "value", "widened"]


@dataclass(frozen=True)
class LayerRow:
    """One use of one layer.

    ``layer`` is the call that makes it, and its parameters are ``numbers``. ``inputs`` are as ``value`` has them.
    ``expected`` computes the output with NumPy from the inputs, and from parameters by their names where it asks for
    them; ``recorded`` has MindSpore's outputs, states afterwards and gradients instead. ``train`` is the mode;
    ``smooth`` says whether gradients are compared with central differences.
    """

    layer: str
    inputs: Sequence[Any]
    expected: Callable[..., Any] | None = None
    train: bool = False
    smooth: bool = True
    recorded: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The class of the layer."""
        return self.layer.partition("(")[0]

    def __str__(self) -> str:
        return f"{self.layer}-{'train-' if self.train else ''}{[*self.inputs, ''][0]}".replace(" ", "")


# --------------------------------------------------------------------------------------------- what goes in


def numbers(shape: Any, seed: int) -> np.ndarray:
    """Numbers that look random and are the same for both."""
    at = np.arange(int(np.prod(shape, dtype=int)))
    return np.sin(at * 1.7 + seed * 0.9 + 0.3).reshape(shape).astype("f4")


def value(spec: Any, seed: int) -> Any:
    """An input: a shape of floating numbers, or what a dict says."""
    if spec is None:
        return None
    if isinstance(spec, list):
        return Tensor(numbers(spec, seed))
    if "tuple" in spec:
        return tuple(value(each, seed + 10 + i) for i, each in enumerate(spec["tuple"]))
    if "int" in spec:
        at = np.arange(int(np.prod(spec["int"])))
        return Tensor(((at * 3 + seed) % 3).reshape(spec["int"]).astype("i4"))
    if spec["given"] is True:
        return True
    return Tensor(np.array(spec["given"], spec["dtype"]))


def made(layer: str, train: bool) -> Cell:
    """A layer with the parameters of the recorded one."""
    net = eval(layer, vars(layers).copy())
    net.set_train(train)
    for i, (name, parameter) in enumerate(sorted(net.parameters_and_names())):
        numbers_ = numbers(parameter.shape, i + 3) * np.float32(0.5)
        if "moving_var" in name:
            numbers_ = abs(numbers_) + np.float32(0.5)
        if name.endswith("gamma"):
            numbers_ = numbers_ + 1
        parameter.set_data(Tensor(numbers_.astype("f4")))
    return net


def widened(given: Any) -> Any:
    """Inputs, or a layer, with float64 in the place of float32."""
    if isinstance(given, Cell):
        for _, cell in given.cells_and_names():
            for name, p in list(cell.parameters_and_names(expand=False)):
                setattr(cell, name, Parameter(widened(p.data), name=p.name, requires_grad=p.requires_grad))
        return given
    if isinstance(given, (list, tuple)):
        return type(given)(map(widened, given))
    wide = isinstance(given, Tensor) and given.asnumpy().dtype == np.float32
    return Tensor(given.asnumpy().astype(np.float64)) if wide else given


def flat(out: Any) -> list[Any]:
    """All tensors of a result."""
    if isinstance(out, (tuple, list)):
        return [each for part in out for each in flat(part)]
    return [] if out is None else [out]


def close(found: Any, expected: Any, what: str, rtol: float = 2e-4, atol: float = 2e-5) -> None:
    """The same numbers, but for rounding."""
    np.testing.assert_allclose(np.ravel(found.asnumpy()), np.ravel(expected), rtol, atol, err_msg=what)


# --------------------------------------------------------------------------------------------------- the rows

_CASES = json.loads((Path(__file__).parent / "data" / "mindspore_layers.json").read_text())["cases"]
#: In steps where MindSpore answers, so central differences say nothing.
_STEPS = ("OneHot", "Range")

ROWS = [LayerRow(case["layer"], case["inputs"], None, case["train"], not case["layer"].startswith(_STEPS), case)
        for case in _CASES]


def _padded(mode: str) -> Callable[..., Any]:
    """Three axes padded by (1, 0, 2, 1, 0, 1), last axis first."""
    return lambda x: np.pad(x, ((0, 0), (0, 0), (0, 1), (2, 1), (1, 0)), mode)


def _instance_norm(eps: float = 1e-5) -> Callable[..., Any]:
    def expected(x: Any, *, gamma: Any, beta: Any) -> Any:
        axes, shape = tuple(range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
        y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
        return y * gamma.reshape(shape) + beta.reshape(shape)

    return expected


def _moving_norm(x: Any, *, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    mean, variance, gamma, beta = (each.reshape(-1, 1, 1) for each in (mean, variance, gamma, beta))
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def _selu(x: Any) -> Any:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


def _at_most(x: Any, most: Any) -> Any:
    """Rows that are no longer than that."""
    return x * most / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), most)


def _largest(x: Any) -> Any:
    """The largest number of each of two parts along each of three axes of length 4."""
    return x.reshape(*x.shape[:2], 2, 2, 2, 2, 2, 2).max((3, 5, 7))


ROWS += [
    LayerRow("Dropout1d(0.3)", [[2, 3, 4]], lambda x: x), LayerRow("Dropout3d()", [[2, 1, 2, 2, 2]], lambda x: x),
    LayerRow("Dropout1d(0.0)", [[2, 3, 4]], lambda x: x, train=True),
    LayerRow("Dropout3d(0.0)", [[2, 1, 2, 2, 2]], lambda x: x, train=True),
    LayerRow("ReflectionPad3d((1, 0, 2, 1, 0, 1))", [[1, 2, 2, 3, 2]], _padded("reflect")),
    LayerRow("ReplicationPad3d((1, 0, 2, 1, 0, 1))", [[1, 2, 2, 3, 2]], _padded("edge")),
    LayerRow("MatMul()", [[2, 3], [3, 4]], np.matmul),
    LayerRow("MatMul(True, False)", [[3, 2], [3, 4]], lambda x, y: x.T @ y),
    LayerRow("SyncBatchNorm(3)", [[2, 3, 4, 2]], _moving_norm),
    LayerRow("InstanceNorm1d(3)", [[2, 3, 4]], _instance_norm(), train=True),
    LayerRow("InstanceNorm2d(3, affine=False)", [[2, 3, 4, 2]], _instance_norm(), train=True),
    LayerRow("InstanceNorm3d(3, 0.1)", [[2, 3, 4, 2, 3]], _instance_norm(0.1), train=True),
    LayerRow("AdaptiveMaxPool3d(2)", [[1, 2, 4, 4, 4]], _largest),
    LayerRow("RReLU(0.3, 0.3)", [[3, 4]], lambda x: np.where(x > 0, x, 0.3 * x)),
    LayerRow("SELU()", [[3, 4]], _selu), LayerRow("SeLU()", [[3, 4]], _selu),
    LayerRow("FractionalMaxPool2d(2, 1)", [[2, 3, 4, 5]], lambda x: x[..., -2:, -2:].max((-2, -1), keepdims=True)),
    LayerRow("FractionalMaxPool2d((1, 2), output_ratio=(0.99, 0.25))", [[2, 2, 5]],
             lambda x: x[:, -1:, -2:].max((-2, -1), keepdims=True)),
    LayerRow("FractionalMaxPool3d((2, 3, 1), (1, 1, 1))", [[1, 2, 3, 4, 2]],
             lambda x: x[..., -2:, -3:, -1:].max((-3, -2, -1), keepdims=True)),
    LayerRow("Roll(1, 0)", [[3, 4]], lambda x: np.roll(x, 1, 0)),
    LayerRow("Roll((2, -1), (0, 1))", [[3, 4]], lambda x: np.roll(x, (2, -1), (0, 1))),
    LayerRow("MatDet()", [[2, 3, 3]], np.linalg.det), LayerRow("MatInverse()", [[2, 2, 2]], np.linalg.inv),
    LayerRow("ClipByNorm(1)", [[2, 3], {"given": 0.75, "dtype": "f4"}], lambda x, most: _at_most(x, most)),
    LayerRow("ClipByNorm()", [{"given": [0.0, 0.0], "dtype": "f4"}, {"given": 0.75, "dtype": "f4"}], lambda x, _: x),
    LayerRow("EmbeddingLookup(5, 3, max_norm=0.6)", [{"given": [[1, 7], [4, 0]], "dtype": "i4"}],
             lambda at, *, embedding_table: _at_most(embedding_table[at % 5], 0.6) * (at < 5)[..., None]),
    LayerRow("LPPool2d(2.0, (2, 1), (1, 2))", [[2, 3, 3]], lambda x: np.sqrt(x[:, :-1, ::2] ** 2 + x[:, 1:, ::2] ** 2)),
]

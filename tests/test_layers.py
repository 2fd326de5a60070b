"""Facts that hold for every layer, each tried on every row: see ``layers``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg.nn import Tensor, layers
from opreg.nn.cell import Cell
from opreg.nn.checkpoint import load_checkpoint, load_param_into_net, save_checkpoint
from opreg.nn.grad import grad
from opreg.nn.jit import jit

from .layers import ROWS, LayerRow, close, flat, made, numbers, value, widened
from .running import fit

#: They hold Cells, and compute nothing themselves.
HOLDERS = {"CellList", "CellDict"}
NAMES = [name for name in layers.__all__
         if isinstance(getattr(layers, name), type) and issubclass(getattr(layers, name), Cell)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HOLDERS])
def test_has_a_row(name: str) -> None:
    assert any(row.name == name for row in ROWS), f"layer {name} has no row in tests/layers.py"


def inputs_of(row: LayerRow) -> list[Any]:
    return [value(spec, i) for i, spec in enumerate(row.inputs)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_numbers(row: LayerRow, compiled: bool) -> None:
    """Outputs and moving statistics are MindSpore's, or those of NumPy."""
    net, xs = made(row.layer, row.train), inputs_of(row)
    out = flat((net.compile(*xs) if compiled else net)(*xs))
    if row.recorded is None:
        asked = inspect.signature(row.expected).parameters.values() if inspect.isfunction(row.expected) else ()
        given = {p.name: net.parameters_dict()[p.name].asnumpy() for p in asked if p.kind is p.KEYWORD_ONLY}
        close(out[0], row.expected(*[x.asnumpy() for x in xs], **given), "output")
        return
    assert [list(each.shape) for each in out] == row.recorded["shapes"]
    for each, expected in zip(out, row.recorded["outputs"]):
        close(each, expected, "output")
    for name, parameter in net.parameters_and_names():
        if name in row.recorded.get("states", ()):
            close(parameter, row.recorded["states"][name], name)


def gradients(row: LayerRow, net: Cell, xs: list[Any], compiled: bool = False
              ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A loss of all outputs, and by number and name what is differentiated and its gradients."""
    heads = [each.shape for each in flat(net(*xs))]
    like = xs[0].asnumpy().dtype if isinstance(xs[0], Tensor) and xs[0].asnumpy().dtype.kind == "f" else np.float32

    def loss(*xs: Any) -> Any:
        return sum((each * Tensor(numbers(shape, 50 + i).astype(like))).sum()
                   for i, (each, shape) in enumerate(zip(flat(net(*xs)), heads)))

    named = {name: each for name, each in net.parameters_and_names() if each.requires_grad}
    places = tuple(i for i, x in enumerate(xs) if isinstance(x, Tensor) and x.asnumpy().dtype.kind == "f")
    if not places and not named:
        return loss, {}, {}
    gradient = grad(loss, places or None, list(named.values()) or None)
    found = (jit(gradient) if compiled else gradient)(*xs)
    asked = {**{str(i): xs[i] for i in places}, **named}
    return loss, asked, dict(zip(asked, flat(found)))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("row", [row for row in ROWS if row.recorded and "gradients" in row.recorded], ids=str)
def test_gradients_are_mindspore_s(row: LayerRow, compiled: bool) -> None:
    net = made(row.layer, row.train)
    _, _, found = gradients(row, net, inputs_of(row), compiled)
    assert list(found) == list(row.recorded["gradients"])
    for name, g in found.items():
        close(g, row.recorded["gradients"][name], f"gradient of {name}")


@pytest.mark.parametrize("row", [row for row in ROWS if row.smooth], ids=str)
def test_gradients_fit_central_differences(row: LayerRow) -> None:
    """In float64, of all inputs and parameters; compiled they are the same."""
    net, xs = widened(made(row.layer, row.train)), widened(inputs_of(row))
    loss, asked, found = gradients(row, net, xs)
    values = [each.asnumpy().copy() for each in asked.values()]

    def total(arrays: list[np.ndarray]) -> float:
        moved = list(xs)
        for (name, each), array in zip(asked.items(), arrays):
            if name.isdigit():
                moved[int(name)] = Tensor(array)
            else:
                each.set_data(Tensor(array))
        return float(loss(*moved).asnumpy())

    for i, (name, g) in enumerate(found.items()):
        fit(total, values, i, g.asnumpy(), 1e-6, f"{row.layer}, {name}:")
    total(values)
    for name, g in gradients(row, net, xs, compiled=True)[2].items():
        close(g, found[name].asnumpy(), name, 1e-9, 1e-9)


_KEPT = {row.name: row for row in ROWS if list(made(row.layer, False).get_parameters())}


@pytest.mark.parametrize("name", _KEPT)
def test_a_file_holds_its_parameters(name: str, tmp_path: Path) -> None:
    """Another of its kind computes the same once it has read them."""
    row = _KEPT[name]
    first, second, xs = made(row.layer, False), made(row.layer, False), inputs_of(row)
    for parameter in second.get_parameters():
        parameter.set_data(0.25)
    save_checkpoint(first, str(tmp_path / "layer.ckpt"))
    assert load_param_into_net(second, load_checkpoint(str(tmp_path / "layer.ckpt"))) == ([], [])
    for one, other in zip(flat(first(*xs)), flat(second(*xs))):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())

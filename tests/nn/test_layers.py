"""Facts that hold for every layer, tested on every row: see ``layers``."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg import set_seed
from opreg.cells.cell import Cell
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.errors import DTypeError
from opreg.nn import Parameter, Tensor, layers
from opreg.nn.checkpoint import load_checkpoint, load_param_into_net, save_checkpoint
from tests.nn.layers import FUNCTIONS, ROWS, WITHOUT_FUNCTION, LayerRow, close, flat, made, numbers, value, widened
from tests.questions import of_each
from tests.running import fit

#: Layers that hold Cells, and compute nothing themselves.
HOLDERS = {"CellList", "CellDict"}
NAMES = [name for name in layers.__all__
         if isinstance(getattr(layers, name), type) and issubclass(getattr(layers, name), Cell)]


@of_each([name for name in NAMES if name not in HOLDERS])
def test_every_layer_has_a_row(name: str) -> None:
    assert any(row.name == name for row in ROWS), f"layer {name} has no row in tests/nn/layers.py"


def inputs_of(row: LayerRow) -> list[Any]:
    return [value(spec, i) for i, spec in enumerate(row.inputs)]


@of_each(itertools.product(ROWS, [False, True]), by=lambda case: case[0].name)
def test_values_equal_the_expected_ones(row: LayerRow, compiled: bool) -> None:
    """Outputs and moving statistics equal MindSpore's, or those of NumPy."""
    net, xs = made(row.layer, row.train), inputs_of(row)
    out = flat((net.compile(*xs) if compiled else net)(*xs))
    if row.recorded is None:
        asked = inspect.signature(row.expected).parameters.values() if inspect.isfunction(row.expected) else ()
        numbers = {name.rpartition(".")[2]: parameter.asnumpy() for name, parameter in net.parameters_dict().items()}
        given = {p.name: numbers[p.name] for p in asked if p.kind is p.KEYWORD_ONLY}
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
    """A loss of all outputs, the inputs and parameters by position and name, and their gradients."""
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


@of_each([(row, compiled) for row in ROWS if row.recorded and "gradients" in row.recorded
          for compiled in ((False,) if row.smooth else (False, True))], by=lambda case: case[0].name)
def test_gradients_are_mindspore_s(row: LayerRow, compiled: bool) -> None:
    """The test below compares compiled gradients of smooth layers with eager ones."""
    net = made(row.layer, row.train)
    _, _, found = gradients(row, net, inputs_of(row), compiled)
    assert list(found) == list(row.recorded["gradients"])
    for name, g in found.items():
        close(g, row.recorded["gradients"][name], f"gradient of {name}")


@of_each([row for row in ROWS if row.smooth], by=lambda row: row.name)
def test_gradients_fit_central_differences(row: LayerRow) -> None:
    """Float64 gradients of all inputs and parameters agree with central differences, eagerly and compiled."""
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

    fit(total, values, {i: g.asnumpy() for i, g in enumerate(found.values())}, 1e-6,
        f"{row.layer}, of {', '.join(found)}:")
    total(values)
    for name, g in gradients(row, net, xs, compiled=True)[2].items():
        close(g, found[name].asnumpy(), name, 1e-9, 1e-9)


_KEPT = {row.name: row for row in ROWS if list(made(row.layer, False).get_parameters())}


@pytest.mark.parametrize("name", _KEPT)
def test_a_file_holds_its_parameters(name: str, tmp_path: Path) -> None:
    """A second layer computes the same after it has loaded the parameters."""
    row = _KEPT[name]
    first, second, xs = made(row.layer, False), made(row.layer, False), inputs_of(row)
    for parameter in second.get_parameters():
        parameter.set_data(0.25)
    save_checkpoint(first, str(tmp_path / "layer.ckpt"))
    assert load_param_into_net(second, load_checkpoint(str(tmp_path / "layer.ckpt"))) == ([], [])
    for one, other in zip(flat(first(*xs)), flat(second(*xs))):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


# ------------------------------------------------------------------------------------------------ layers and functions


@of_each([name for name in NAMES if name not in HOLDERS])
def test_every_layer_has_a_function_or_is_listed(name: str) -> None:
    assert (name in FUNCTIONS) != (name in WITHOUT_FUNCTION), f"tests/nn/layers.py says of {name} its function, or none"


#: Kinds of inputs: a dtype, "special" for NaN and infinities among floats, "empty" for no samples.
KINDS = ["float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8", "bool", "special", "empty"]
#: Layers that refuse data of another dtype than their weights.
STRICT = {"Dense", "Linear", "Conv1d", "Conv2d", "Conv3d"}


def of_kind(x: Any, kind: str) -> Any:
    """An input in another dtype, or with special values."""
    host = x.asnumpy()
    if kind == "empty":
        return Tensor(host[:0])
    if kind == "special":
        host = host.copy()
        if host.dtype.kind == "f":
            host.ravel()[:4] = [np.nan, np.inf, -np.inf, 0][:host.size]
        return Tensor(host)
    if host.dtype.kind != "f":  # indices
        return Tensor(host.astype(kind)) if kind.startswith(("int", "uint")) else x
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
        return Tensor(host).astype(kind)
    return Tensor(host > 0) if kind == "bool" else Tensor((host * 5 if "int" in kind else host).astype(kind))


def outcome(call: Any, *xs: Any) -> Any:
    """Values of a call, or the class of its error: Python's, since functions convert errors to name themselves."""
    set_seed(1)
    try:
        return [each.float().asnumpy() if each.is_floating_point() else each.asnumpy() for each in flat(call(*xs))]
    except (ValueError, TypeError, IndexError) as error:
        return {"OpTypeError": TypeError, "OpValueError": ValueError}.get(type(error).__name__, type(error))


def _rows_and_kinds() -> list[tuple[LayerRow, list[str]]]:
    """Rows of layers with a function. The first row of a layer is tested with all kinds of inputs, each
    further row with a third of them."""
    groups = itertools.groupby(sorted(ROWS, key=lambda row: row.name), lambda row: row.name)
    return [(row, KINDS[number % 3::3] if number else KINDS) for name, rows in groups if name in FUNCTIONS
            for number, row in enumerate(rows)]


@of_each(_rows_and_kinds(), by=lambda case: case[0].name)
def test_a_layer_equals_its_function(row: LayerRow, kinds: list[str]) -> None:
    """Layer and function give the same results and errors, in every dtype and for special values."""
    for kind in kinds:
        net = made(row.layer, row.train)
        xs = [of_kind(x, kind) for x in inputs_of(row)]
        if row.name in STRICT and kind in ("float16", "bfloat16", "float64"):
            for name, p in list(net.parameters_and_names(expand=False)):
                setattr(net, name, Parameter(p.astype(kind), name=p.name))
        expected = outcome(lambda *xs: FUNCTIONS[row.name](net, *xs), *xs)
        if expected == []:
            return  # a setting that the function has not
        found, compiled = outcome(net, *xs), outcome(jit(net), *xs)
        if row.name in STRICT and ("int" in kind or kind == "bool"):
            expected = DTypeError
        if not isinstance(expected, list):
            assert found == compiled == expected, kind
            continue
        assert isinstance(found, list) and isinstance(compiled, list), kind
        for one, other, right in zip(found, compiled, expected, strict=True):
            assert one.dtype == other.dtype == right.dtype, kind
            rtol = {"float16": 4e-3, "bfloat16": 2e-2}.get(kind, 1e-5)
            if row.name != "Conv1d":  # Conv1d's images are one pixel high
                np.testing.assert_array_equal(one, right, kind)
            for near in (one, other):
                np.testing.assert_allclose(near, right, rtol, 1e-6, err_msg=kind)

"""Convolutions by cuDNN: a stand-in on the host computes the graphs that its frontend receives."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import cudnn
from opreg.errors import OpError
from tests.backends.cuda.test_products import Run, compare, needs_compiler, numbers
from tests.cuda import cudnn as standin
from tests.cuda.cudnn import installed, numerical_note, pygraph

x, w, b = (mx.sym.var(name) for name in "xwb")


@pytest.fixture(autouse=True)
def _library() -> Iterator[None]:
    with installed():
        yield


def ran() -> list[str]:
    """Functions of the library that have run on the device since the last call."""
    found = [function for function, _, _ in pygraph.done]
    pygraph.done.clear()
    return found


#: Words of convolutions and the shape of their data.
CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "one axis": ({"kernel": (3,), "stride": (2,), "pad": (1,)}, (2, 4, 9)),
    "two axes": ({"kernel": (3, 2), "pad": (1, 0)}, (2, 4, 5, 6)),
    "three axes": ({"kernel": (2, 3, 2), "stride": (1, 2, 1), "pad": (0, 1, 1)}, (2, 4, 4, 5, 3)),
    "strides": ({"kernel": (3, 3), "stride": (2, 3)}, (2, 4, 8, 9)),
    "dilation": ({"kernel": (3, 2), "dilate": (2, 3), "pad": (2, 2)}, (2, 4, 7, 6)),
    "groups": ({"kernel": (3, 3), "num_group": 2, "pad": (1, 1)}, (2, 4, 5, 5)),
    "each channel": ({"kernel": (3, 3), "num_group": 4, "pad": (1, 1)}, (2, 4, 5, 5)),
    "a place": ({"kernel": (1, 1)}, (2, 4, 5, 5)),
    "channels last": ({"kernel": (3, 2), "pad": (1, 0), "layout": "NHWC"}, (2, 5, 6, 4)),
    "channels last, groups": ({"kernel": (2, 2), "num_group": 2, "layout": "NHWC"}, (2, 5, 6, 4)),
}
TRANSPOSED: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "one axis": ({"kernel": (3,), "stride": (2,), "pad": (1,), "adj": (1,)}, (2, 4, 5)),
    "two axes": ({"kernel": (3, 2), "stride": (2, 1)}, (2, 4, 5, 6)),
    "groups": ({"kernel": (3, 3), "num_group": 2}, (2, 4, 5, 5)),
    "a target": ({"kernel": (4, 4), "stride": (2, 2), "target_shape": (9, 10)}, (2, 4, 4, 5)),
}


def weight_of(op: str, words: dict[str, Any], data: tuple[int, ...], filters: int) -> tuple[int, ...]:
    channels, groups = data[1], words.get("num_group", 1)
    if words.get("layout") == "NHWC":
        return (filters, *words["kernel"], data[-1] // groups)
    return ((channels, filters // groups) if op == "Deconvolution" else (filters, channels // groups)) + words["kernel"]


@pytest.mark.parametrize("no_bias", [False, True], ids=["bias", "no bias"])
@pytest.mark.parametrize(("op", "name"), [*[("Convolution", name) for name in CONVOLUTIONS],
                                          *[("Deconvolution", name) for name in TRANSPOSED]])
def test_convolutions_on_a_gpu_are_the_librarys_and_give_the_hosts_numbers(op: str, name: str, no_bias: bool) -> None:
    words, shape = {"Convolution": CONVOLUTIONS, "Deconvolution": TRANSPOSED}[op][name]
    net = getattr(mx.sym, op)(x, w, *[] if no_bias else [b], num_filter=8, no_bias=no_bias, **words)
    arrays = {"x": numbers(*shape), "w": numbers(*weight_of(op, words, shape, 8))}
    if not no_bias:
        arrays["b"] = numbers(8)
    found = compare(net, arrays)
    first, second = ("conv_fprop", "conv_dgrad") if op == "Convolution" else ("conv_dgrad", "conv_fprop")
    assert ran() == [first, second, "conv_wgrad"], found.text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_are_computed_as_they_are_and_sums_in_float32_at_least(dtype: str) -> None:
    net = mx.sym.Convolution(x, w, b, kernel=(3, 3), num_filter=4)
    compare(net, {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3), "b": numbers(4)}, dtype)
    graphs = list(pygraph.done)
    assert len(graphs) == 3
    computed = standin.data_type.DOUBLE if dtype == "float64" else standin.data_type.FLOAT
    assert {words["compute_data_type"] for _, words, _ in graphs} == {computed}
    # The plan has a separate step for a bias that the library does not add.
    assert ("b" in graphs[0][1]) == (dtype != "float32")


def test_tf32_and_nondeterministic_engines_are_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    net = mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True)
    arrays = {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3)}

    def notes(dtype: str) -> set[str]:
        Run(net, arrays, mx.gpu(0), dtype)
        found = {note.name for _, _, notes in pygraph.done for note in notes}
        pygraph.done.clear()
        return found

    assert notes("float32") == {"NONDETERMINISTIC", "TENSOR_CORE", "DOWN_CONVERT_INPUTS"}
    assert notes("float16") == {"NONDETERMINISTIC"}
    monkeypatch.setenv("OPREG_TF32", "1")
    assert notes("float32") == {numerical_note.NONDETERMINISTIC.name}


@needs_compiler
@pytest.mark.parametrize(("dtype", "last"), [("float16", True), ("float32", False)])
def test_plans_use_channels_last_where_the_library_is_faster(dtype: str, last: bool) -> None:
    net = mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=4, pad=(1, 1), no_bias=True)
    net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.Convolution(net, b, kernel=(3, 3), num_filter=5, no_bias=True)
    found = compare(net, {"x": numbers(2, 3, 8, 8), "w": numbers(4, 3, 3, 3), "b": numbers(5, 4, 3, 3)}, dtype)
    strides = {words["x"].stride[1] for function, words, _ in pygraph.done if function == "conv_fprop"}
    assert strides == ({1} if last else {64, 16}), found.text
    assert found.text.count("channels last") == (10 if last else 0)
    assert len(re.findall(r"^ +\d+ _to_channels", found.text, re.M)) == (4 if last else 0)  # at the borders alone
    assert found.text.count("as declared: cuDNN computes float32 with channels first") == (0 if last else 6)


def test_request_add_adds_to_the_gradient() -> None:
    net = mx.sym.Convolution(x, w, b, kernel=(3, 3), num_filter=4)
    compare(net, {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3), "b": numbers(4)}, req="add")
    assert ran() == ["conv_fprop", "conv_dgrad", "conv_wgrad"]


def test_convolutions_are_captured_and_replayed_with_new_values() -> None:
    net = mx.sym.Convolution(x, w, b, kernel=(3, 3), num_filter=4, pad=(1, 1))
    arrays = {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3), "b": numbers(4)}
    expected, found = [Run(net, arrays, ctx, "float32").executor for ctx in (mx.cpu(), mx.gpu(0))]
    for step in range(5):
        for executor, ctx in ((expected, mx.cpu()), (found, mx.gpu(0))):
            executor.arg_dict["x"][:] = mx.nd.array(numbers(2, 3, 6, 6) * step, ctx=ctx)
            executor.forward(is_train=True)
            executor.backward([mx.nd.array(numbers(2, 4, 6, 6), ctx=ctx)])
        for one, other in zip([*expected.outputs, *expected.grad_arrays], [*found.outputs, *found.grad_arrays]):
            np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), 1e-5, 1e-5)
    text = str(found.explain())
    assert "graph 0" in text
    assert "island" not in text.replace("0 islands", "")


def test_a_device_has_one_handle_which_no_capture_makes_or_destroys() -> None:
    net = mx.sym.Convolution(x, w, kernel=(1, 1), num_filter=1, no_bias=True)
    arrays = {"x": numbers(1, 1, 1, 1), "w": numbers(1, 1, 1, 1)}
    before = standin.Handle.live
    executors = [Run(net, arrays, mx.gpu(0), "float32").executor for _ in range(36)]  # each uses two streams
    for _ in range(3):
        for executor in executors:
            executor.forward(is_train=True)
            executor.backward([mx.nd.ones((1, 1, 1, 1), ctx=mx.gpu(0))])
    for executor in executors:
        assert str(executor.explain()).count(", 0 islands") == 2
    assert standin.Handle.live - before == 1
    del executor, executors
    cudnn.build.cache_clear()  # type: ignore[attr-defined]
    cudnn.frontend.cache_clear()  # type: ignore[attr-defined]
    gc.collect()
    assert standin.Handle.live == before


def test_convolutions_of_a_kind_are_planned_once() -> None:
    net = mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=3, pad=(1, 1), no_bias=True, name="first")
    net = mx.sym.Convolution(net, mx.sym.var("b"), kernel=(3, 3), num_filter=3, pad=(1, 1), no_bias=True)
    arrays = {"x": numbers(2, 3, 6, 6), "w": numbers(3, 3, 3, 3), "b": numbers(3, 3, 3, 3)}
    before = pygraph.built
    compare(net, arrays)
    compare(net, arrays)
    assert pygraph.built - before == 3
    assert len(ran()) == 12
    assert "backends.cuda.cudnn.build" in {each.name for each in mx.caches()}


@pytest.mark.parametrize(("words", "dtype", "shape", "reason"), [
    ({"cudnn_off": True}, "float32", (2, 3, 6, 6), "cudnn_off=True"),
    ({}, "float64", (2, 3, 4, 4, 4), "cuDNN has no plan: no engine for so much"),
])
def test_declined_convolutions_run_as_before_and_explain_gives_the_reason(words: dict[str, Any], dtype: str,
                                                                          shape: tuple[int, ...], reason: str
                                                                         ) -> None:
    kernel = (3,) * (len(shape) - 2)
    net = mx.sym.Convolution(x, w, kernel=kernel, num_filter=4, no_bias=True, **words)
    found = compare(net, {"x": numbers(*shape), "w": numbers(4, 3, *kernel)}, dtype)
    assert found.text.count(f"cuDNN declined: {reason}") == 3
    assert ran() == []


@pytest.mark.parametrize("function", ["_build", "load"])
def test_a_failed_allocation_is_not_cached(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exhausted memory raises an error, and the next executor uses the library again."""
    works, failing = getattr(cudnn, function), [True]

    def once(*args: Any) -> Any:
        if failing:
            failing.clear()
            raise MemoryError("for once")
        return works(*args)

    cudnn.frontend.cache_clear()
    cudnn.build.cache_clear()
    monkeypatch.setattr(cudnn, function, once)
    net = mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=5, no_bias=True)
    arrays = {"x": numbers(2, 3, 7, 7), "w": numbers(5, 3, 3, 3)}
    with pytest.raises(MemoryError, match="for once"):
        Run(net, arrays, mx.gpu(0), "float32")
    compare(net, arrays)
    assert ran() == ["conv_fprop", "conv_dgrad", "conv_wgrad"]


def test_explain_says_that_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> Any:
        raise ImportError("No module named 'cudnn'")

    monkeypatch.setattr(cudnn, "load", load)
    found = compare(mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True),
                    {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3)})
    assert found.text.count("cuDNN declined: cuDNN does not load: No module named 'cudnn'") == 3


def test_an_error_of_the_library_names_operator_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    net = mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True, name="edges")
    executor = Run(net, {"x": numbers(2, 3, 6, 6), "w": numbers(4, 3, 3, 3)}, mx.gpu(0), "float32").executor

    def execute(*args: Any, **words: Any) -> None:
        raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")

    monkeypatch.setattr(pygraph, "execute", execute)
    with pytest.raises(OpError, match="Convolution: forward of 2 x 3 x 6 x 6 with 4 x 3 x 3 x 3 to 2 x 4 x 4 x 4 in "
                                      "float32: cuDNN answers CUDNN_STATUS_EXECUTION_FAILED") as error:
        executor.forward(is_train=True)
    assert any("edges" in note for note in error.value.__notes__)


@pytest.mark.skipif(importlib.util.find_spec("cudnn") is None, reason="needs the package nvidia-cudnn-frontend")
def test_the_stand_in_has_the_signatures_of_the_package() -> None:
    import cudnn as package
    from cudnn.graph_types import Tensor

    assert set(standin.heur_mode.__members__) <= set(package.heur_mode.__members__)
    for name in ("data_type", "heur_mode", "numerical_note"):
        assert set(getattr(standin, name).__members__) <= set(getattr(package, name).__members__)
    for name in ("backend_version", "create_handle", "destroy_handle", "set_stream"):
        assert callable(getattr(package, name))
    checked = [*[(pygraph, package.pygraph, name) for name in vars(pygraph) if name[0] != "_"],
               *[(standin.Tensor, Tensor, name) for name in vars(standin.Tensor) if name.startswith("set_")]]
    for ours, real, name in checked:
        method = getattr(ours, name)
        if callable(method):
            takes, given = [list(inspect.signature(each).parameters) for each in (getattr(real, name), method)]
            # Functions of nodes take any arguments that the library's own functions take.
            assert "args" in takes or [parameter for parameter in takes if parameter in given] == given, name


@pytest.mark.skipif(importlib.util.find_spec("cudnn") is None, reason="needs the package nvidia-cudnn-frontend")
@pytest.mark.parametrize("part", ["forward", "data", "weight"])
def test_the_package_takes_the_graphs_as_far_as_it_can_without_the_library(part: Any) -> None:
    import cudnn as package

    x, w, y = [cudnn.Tensor(sizes, strides) for sizes, strides in (
        ((2, 8, 5), (40, 1, 8)), ((16, 8, 3), (24, 1, 8)), ((2, 16, 3), (48, 1, 16)))]
    kind = cudnn.Convolution(part, "float16", x, w, y, (1,), (1,), (0,), part == "forward", False)
    said: list[str] = []

    class Graph(package.pygraph):
        def validate(self) -> None:
            said.extend(str(tensor.dim) for tensor in self.get_outputs() if not tensor.is_virtual)
            raise NotImplementedError("from here on the library is asked")

    class Package:
        data_type, pygraph = package.data_type, Graph

    with pytest.raises(NotImplementedError, match="from here on"):
        cudnn._build(Package, None, cudnn._with_two_axes(kind))
    assert said == {"forward": ["[2, 16, 1, 3]"], "data": ["[2, 8, 1, 5]"], "weight": ["[16, 8, 1, 3]"]}[part]

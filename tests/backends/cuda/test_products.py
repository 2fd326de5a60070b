"""Products of matrices by cublasLt: a stand-in on the host runs the calls that the library receives."""

from __future__ import annotations

import ctypes
import enum
import gc
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import cublaslt
from opreg.backends.cuda.cublaslt import ComputeType, Epilogue
from opreg.backends.cuda.products import Matrices, describe, multiply
from opreg.errors import ArgumentError, OpError
from tests.cuda import host
from tests.cuda.cublaslt import Installed, installed
from tests.cuda.machine import Device

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")

#: Tolerance between products on the device and those of the host.
TOLERANCES = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-12}


@pytest.fixture
def lt() -> Iterator[Installed]:
    with installed() as found:
        yield found


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


class Run:
    """A graph bound to a device, run forward and backward once."""

    def __init__(self, net: Any, arrays: dict[str, np.ndarray], ctx: Any, dtype: str, req: Any = "write"):
        args = {name: mx.nd.array(each, ctx=ctx, dtype=dtype) for name, each in arrays.items()}
        grads = {name: mx.nd.ones(each.shape, ctx=ctx, dtype=dtype) for name, each in arrays.items()}
        self.executor = net.bind(ctx, args, args_grad=grads, grad_req=req)
        found = self.executor.forward(is_train=True)
        self.executor.backward([mx.nd.array(numbers(*each.shape), ctx=ctx, dtype=dtype) for each in found])
        self.numbers = [each.asnumpy().astype(float) for each in (*found, *self.executor.grad_dict.values())]
        self.text = str(self.executor.explain())


def compare(net: Any, arrays: dict[str, np.ndarray], dtype: str = "float32", req: Any = "write") -> Run:
    """Asserts that host and device give the same results, and returns those of the device."""
    expected, found = Run(net, arrays, mx.cpu(), dtype, req), Run(net, arrays, mx.gpu(0), dtype, req)
    for one, other in zip(expected.numbers, found.numbers, strict=True):
        np.testing.assert_allclose(other, one, TOLERANCES[dtype], TOLERANCES[dtype])
    return found


x, w, b = (mx.sym.var(name) for name in "xwb")

#: Graphs, the shapes of their variables, and the numbers of their products, forward and backward.
GRAPHS: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]], int]] = {
    "dense": (lambda: mx.sym.FullyConnected(x, w, b, num_hidden=5), [(4, 2, 3), (5, 6), (5,)], 3),
    "dense, rows": (lambda: mx.sym.FullyConnected(x, w, b, num_hidden=5, flatten=False), [(4, 2, 3), (5, 3), (5,)], 3),
    "dense, no bias": (lambda: mx.sym.FullyConnected(x, w, num_hidden=5, no_bias=True), [(4, 3), (5, 3)], 3),
    "dot": (lambda: mx.sym.dot(x, w), [(4, 3), (3, 5)], 3),
    "dot, left": (lambda: mx.sym.dot(x, w, transpose_a=True), [(3, 4), (3, 5)], 3),
    "dot, right": (lambda: mx.sym.dot(x, w, transpose_b=True), [(4, 3), (5, 3)], 3),
    "dot, both": (lambda: mx.sym.dot(x, w, transpose_a=True, transpose_b=True), [(3, 4), (5, 3)], 3),
    "dot of many axes": (lambda: mx.sym.dot(x, w), [(2, 4, 3), (3, 5, 2)], 3),
    "dot of vectors": (lambda: mx.sym.dot(x, w), [(7,), (7,)], 3),
    "dot of matrix and vector": (lambda: mx.sym.dot(x, w), [(4, 7), (7,)], 3),
    "batch_dot": (lambda: mx.sym.batch_dot(x, w), [(6, 4, 3), (6, 3, 5)], 3),
    "batch_dot, left": (lambda: mx.sym.batch_dot(x, w, transpose_a=True), [(2, 3, 3, 4), (2, 3, 3, 5)], 3),
    "batch_dot, both": (lambda: mx.sym.batch_dot(x, w, transpose_a=True, transpose_b=True), [(6, 3, 4), (6, 5, 3)], 3),
    "matmul": (lambda: mx.sym._npi_matmul(x, w), [(2, 4, 3), (2, 3, 5)], 3),
    "matmul, one right": (lambda: mx.sym._npi_matmul(x, w), [(2, 4, 3), (3, 5)], 3),
    "matmul, one left": (lambda: mx.sym._npi_matmul(x, w), [(4, 3), (2, 3, 5)], 3),
    "matmul, vector": (lambda: mx.sym._npi_matmul(x, w), [(2, 4, 3), (3,)], 3),
    "gemm2": (lambda: mx.sym.linalg.gemm2(x, w, transpose_b=True, alpha=0.5), [(4, 3), (5, 3)], 3),
    "syrk": (lambda: mx.sym.linalg.syrk(x, alpha=2.0), [(4, 3)], 2),
}


@needs_compiler
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_on_a_gpu_multiply_by_the_library_and_give_the_hosts_numbers(name: str, lt: Installed) -> None:
    graph, shapes, count = GRAPHS[name]
    net = graph()
    arrays = {variable: numbers(*shape) for variable, shape in zip("xwb", shapes)}
    for req in ("write", "add"):
        found = compare(net, arrays, req=req)
        done = lt.taken()
        if req == "add" and len(shapes) == 3:  # the gradient of the bias by itself
            count += 1
        assert len(done) == count, found.text
        aside = 1 + (name == "matmul, one left")  # this gradient is summed over the batch, and another step adds it
        assert sum(each.added for each in done) == (req == "add") * (count - aside), found.text
        assert {each.stream for each in done} == {lt.xp.cuda.get_current_stream().ptr}


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_launches_of_products_include_the_bias_and_its_gradient(dtype: str, lt: Installed
                                                               ) -> None:
    net = mx.sym.FullyConnected(x, w, b, num_hidden=24)
    arrays = {"x": numbers(10, 8), "w": numbers(24, 8), "b": numbers(24)}
    found = compare(net, arrays, dtype)
    done = lt.taken()
    if dtype == "float64":  # the library has no epilogues there
        assert [each.epilogue for each in done] == [Epilogue.DEFAULT] * 4
        assert {each.compute for each in done} == {ComputeType.COMPUTE_64F}
    else:
        assert sorted(each.epilogue for each in done) == [Epilogue.DEFAULT, Epilogue.BIAS, Epilogue.BGRADB]
        assert {each.compute for each in done} == {ComputeType.COMPUTE_32F}
        assert "_backward_FullyConnected_parameters" in found.text


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("refused", [[Epilogue.BGRADB], [Epilogue.BIAS], [Epilogue.BIAS, Epilogue.BGRADB]], ids=str)
@pytest.mark.parametrize("req", ["write", "add"])
def test_dense_layers_are_graphs_where_the_library_has_no_epilogue(dtype: str, refused: list[Epilogue], req: str,
                                                                   lt: Installed) -> None:
    lt.refuse(*refused)
    net = mx.sym.FullyConnected(mx.sym.tanh(mx.sym.FullyConnected(x, w, b, num_hidden=24)), num_hidden=5, name="last")
    arrays = {"x": numbers(10, 8), "w": numbers(24, 8), "b": numbers(24), "last_weight": numbers(5, 24),
              "last_bias": numbers(5)}
    found = compare(net, arrays, dtype, req=req)
    assert not {each.epilogue for each in lt.taken()} & set(refused)
    for _ in range(3):
        found.executor.forward(is_train=True)
        found.executor.backward(mx.nd.ones((10, 5), mx.gpu(0), dtype))
    said = str(found.executor.explain())
    assert said.count("1 graph, 0 islands") == 2, said


@needs_compiler
def test_a_gradient_of_a_bias_that_is_added_is_a_product_with_ones(lt: Installed) -> None:
    net = mx.sym.FullyConnected(x, w, b, num_hidden=6)
    arrays = {"x": numbers(4, 8), "w": numbers(6, 8), "b": numbers(6)}
    compare(net, arrays, req={"x": "null", "w": "write", "b": "add"})
    assert [(each.epilogue, each.added) for each in lt.taken()] == [(Epilogue.BIAS, 0), (Epilogue.DEFAULT, 0),
                                                                    (Epilogue.DEFAULT, 1)]


@needs_compiler
def test_a_result_is_added_by_a_step_of_its_own_where_the_library_declines(lt: Installed) -> None:
    net = mx.sym._npi_matmul(x, w)  # the gradient of the left factor is summed over the batch
    found = compare(net, {"x": numbers(4, 3), "w": numbers(2, 3, 5)}, req="add")
    assert "cublasLt declined: its factors are no views of its inputs" in found.text


@needs_compiler
def test_tf32_is_off_by_default(lt: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    net, arrays = mx.sym.dot(x, w), {"x": np.array([[1 + 2.0**-12]]), "w": np.array([[1.0]])}
    assert Run(net, arrays, mx.gpu(0), "float32").numbers[0] == 1 + 2.0**-12
    assert {each.compute for each in lt.taken()} == {ComputeType.COMPUTE_32F}
    monkeypatch.setenv("OPREG_TF32", "1")
    assert Run(net, arrays, mx.gpu(0), "float32").numbers[0] == 1
    assert {each.compute for each in lt.taken()} == {ComputeType.COMPUTE_32F_FAST_TF32}
    Run(net, arrays, mx.gpu(0), "float64")
    assert {each.compute for each in lt.taken()} == {ComputeType.COMPUTE_64F}


#: Graphs with a product, and the shape of its first factor. The second graph has it in the body of a loop, the third in
#: a kernel that asks the library when it runs.
ROUNDED = {
    "dot": (lambda: mx.sym.dot(x, w), (2, 1)),
    "loop": (lambda: mx.sym.contrib.foreach(lambda row, state: (mx.sym.dot(row, w), state), x, [mx.sym.zeros((1,))])[0],
             (2, 1, 1)),
    "attention": (lambda: mx.sym.broadcast_mul(mx.sym.contrib.scaled_dot_product_attention(x, x, x),
                                               w.reshape((1, 1, 1, 1))), (2, 1, 1, 1)),
}


@needs_compiler
@pytest.mark.parametrize("devices", [1, 2])  # a single device is never entered
@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("environment", [False, True])
def test_an_executor_says_whether_tf32_is_allowed(name: str, environment: bool, devices: int,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "count", devices)
    with installed():
        _check_rounding(*ROUNDED[name], environment, monkeypatch)


def _check_rounding(make: Any, shape: tuple[int, ...], environment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = 1 + 2.0**-12  # TF32 rounds it to 1

    def rounds(executor: Any) -> bool:
        executor.copy_params_from({"x": mx.nd.full(executor.arg_dict["x"].shape, fine), "w": mx.nd.ones((1, 1))})
        return executor.forward()[0].asnumpy().max() == 1

    for choice in (True, False, None):
        monkeypatch.setenv("OPREG_TF32", str(int(environment)))
        executor = make().simple_bind(mx.gpu(0), x=shape, w=(1, 1), tf32=choice)
        monkeypatch.setenv("OPREG_TF32", str(int(not environment)))  # read when it is bound
        larger = executor.reshape(x=(3, *shape[1:]), allow_up_sizing=True, partial_shaping=True)
        assert rounds(executor) == rounds(larger) == (environment if choice is None else choice)


def test_tf32_must_be_a_bool() -> None:
    with pytest.raises(ArgumentError, match="tf32='on': expected True, False or None"):
        x.simple_bind(mx.cpu(), x=(1,), tf32="on")


@needs_compiler
def test_an_algorithm_is_chosen_once_and_descriptors_die_with_their_plans(lt: Installed) -> None:
    executor = Run(mx.sym.dot(x, w), {"x": numbers(4, 8), "w": numbers(8, 16)}, mx.gpu(0), "float32").executor
    asked = lt.library.standin_heuristics()
    again = mx.sym.dot(x, w).bind(mx.gpu(0), executor.arg_dict, executor.grad_dict)
    again.forward(is_train=True)
    again.backward([mx.nd.ones((4, 16), ctx=mx.gpu(0))])
    bound = lt.library.standin_heuristics()
    assert bound <= asked + 3  # once more where the arrays are aligned in another way
    for _ in range(3):
        again.forward(is_train=True)
        again.backward([mx.nd.ones((4, 16), ctx=mx.gpu(0))])
    assert lt.library.standin_heuristics() == bound
    assert "backends.cuda.products.choose" in {each.name for each in mx.caches()}
    # three products of two executors, each with three matrices and one for the whole
    assert lt.library.standin_live() == 24
    del executor, again
    gc.collect()
    assert lt.library.standin_live() == 0


@needs_compiler
def test_a_device_has_one_handle_which_goes_with_the_library() -> None:
    with installed() as lt:
        before = lt.library.standin_handles()
        for _ in range(2):
            Run(mx.sym.dot(x, w), {"x": numbers(4, 8), "w": numbers(8, 16)}, mx.gpu(0), "float32")
        assert lt.library.standin_handles() == before + 1
    gc.collect()
    assert lt.library.standin_handles() == before


@needs_compiler
def test_products_are_captured_and_replayed_with_new_values(lt: Installed) -> None:
    net = mx.sym.FullyConnected(mx.sym.FullyConnected(x, w, b, num_hidden=6), mx.sym.var("v"), num_hidden=3,
                                no_bias=True)
    arrays = {"x": numbers(4, 8), "w": numbers(6, 8), "b": numbers(6), "v": numbers(3, 6)}
    expected, found = [Run(net, arrays, ctx, "float32", "add").executor for ctx in (mx.cpu(), mx.gpu(0))]
    for step in range(5):
        for executor, ctx in ((expected, mx.cpu()), (found, mx.gpu(0))):
            executor.arg_dict["x"][:] = mx.nd.array(numbers(4, 8) * step, ctx=ctx)
            executor.forward(is_train=True)
            executor.backward([mx.nd.array(numbers(4, 3), ctx=ctx)])
        for one, other in zip([*expected.outputs, *expected.grad_arrays], [*found.outputs, *found.grad_arrays]):
            np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), 1e-5, 1e-5)
    text = str(found.explain())
    assert "graph 0" in text
    assert "island" not in text.replace("0 islands", "")


@needs_compiler
def test_an_error_of_the_library_names_operator_and_sizes(lt: Installed) -> None:
    executor = Run(mx.sym.dot(x, w, name="scores"), {"x": numbers(4, 8), "w": numbers(8, 16)}, mx.gpu(0), "float32"
                   ).executor
    lt.library.standin_fail(1)
    try:
        with pytest.raises(OpError, match=r"dot: 4 x 8 by 8 x 16 in float32: cublasLtMatmul answers "
                                          r"CUBLAS_STATUS_EXECUTION_FAILED \(13\)") as error:
            executor.forward(is_train=True)
        assert any("scores" in note for note in error.value.__notes__)
    finally:
        lt.library.standin_fail(0)


@needs_compiler
def test_without_the_library_the_reference_multiplies_and_explain_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(major: int) -> ctypes.CDLL:
        raise OSError(f"cublasLt of CUDA {major} is not installed")

    with installed():
        monkeypatch.setattr(cublaslt, "load", load)
        cublaslt.library.cache_clear()  # type: ignore[attr-defined]
        found = compare(mx.sym.dot(x, w), {"x": numbers(4, 8), "w": numbers(8, 16)}, req="add")
    assert found.text.count("cublasLt declined: cublasLt does not load: cublasLt of CUDA 13 is not installed") == 3


# ------------------------------------------------------------------------------------------- descriptions


def view(array: np.ndarray) -> host.Array:
    return array.view(host.Array)


LAYOUTS = {
    "by rows": (lambda: np.ones((3, 5)), Matrices(3, 5, False, 5, 0)),
    "by columns": (lambda: np.ones((5, 3)).T, Matrices(3, 5, True, 3, 0)),
    "a part of the columns": (lambda: np.ones((3, 9))[:, 2:7], Matrices(3, 5, False, 9, 0)),
    "a part of the rows, turned": (lambda: np.ones((5, 9))[:, 2:5].T, Matrices(3, 5, True, 9, 0)),
    "a row": (lambda: np.ones((4, 5))[:1], Matrices(1, 5, False, 5, 0)),
    "every other number": (lambda: np.ones((3, 10))[:, ::2], None),
    "backwards": (lambda: np.ones((3, 5))[::-1], None),
    "the same row": (lambda: np.broadcast_to(np.ones(5), (3, 5)), None),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_matrices_are_described_by_their_strides_or_declined(name: str) -> None:
    make, expected = LAYOUTS[name]
    a = view(make())
    product = describe(a, view(np.ones((5, 2))), view(np.ones((a.shape[0], 2))))
    if expected is None:
        assert product == "neither rows nor columns of an array are contiguous"
    else:
        assert not isinstance(product, str)
        assert product.left == expected


@pytest.mark.parametrize(("a", "b", "out", "reason"), [
    (np.ones((2, 3)), np.ones((3, 2), np.float32), np.ones((2, 2)), "arrays of one"),
    (np.ones((2, 3), int), np.ones((3, 2), int), np.ones((2, 2), int), "arrays of one"),
    (np.ones((2, 0)), np.ones((0, 2)), np.ones((2, 2)), "nothing to multiply"),
    (np.ones((2, 3)), np.ones((3, 2)), np.ones((2, 2)).T, "rows nor columns"),
    (np.ones((4, 3, 2, 3))[::2], np.ones((2, 3, 3, 2)), np.ones((2, 3, 2, 2)), "not equally far apart"),
])
def test_products_that_cublaslt_does_not_take_give_a_reason(a: np.ndarray, b: np.ndarray, out: np.ndarray,
                                                            reason: str) -> None:
    product = describe(view(a), view(b), view(out))
    assert isinstance(product, str)
    assert reason in product


def test_a_factor_that_repeats_is_one_matrix() -> None:
    product = describe(view(np.ones((4, 2, 3))), view(np.broadcast_to(np.ones((3, 5)), (4, 3, 5))),
                       view(np.ones((4, 2, 5))))
    assert not isinstance(product, str)
    assert (product.batch, product.left.apart, product.right.apart, product.out.apart) == (4, 6, 0, 10)


# ------------------------------------------------------------------------------------------------ the header


def header(name: str) -> str:
    """The text of one of CUDA's headers, empty if none is installed."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(folder).glob("*/include") for folder in (spec.submodule_search_locations or [] if spec else [])]
    roots = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include"), *[each for place in places
                                                                                for each in place]]
    found = next((root / name for root in roots if (root / name).exists()), None)
    return "" if found is None else re.sub(r"/\*.*?\*/|//[^\n]*", "", found.read_text(errors="replace"), flags=re.S)


@pytest.mark.parametrize(("file", "kind", "prefix"), [
    ("cublas_api.h", cublaslt.Status, "CUBLAS_STATUS_"), ("cublas_api.h", cublaslt.ComputeType, "CUBLAS_"),
    ("cublas_api.h", cublaslt.Operation, "CUBLAS_OP_"), ("library_types.h", cublaslt.DataType, "CUDA_"),
    ("cublasLt.h", cublaslt.Epilogue, "CUBLASLT_EPILOGUE_"),
    ("cublasLt.h", cublaslt.DescriptorAttribute, "CUBLASLT_MATMUL_DESC_"),
    ("cublasLt.h", cublaslt.LayoutAttribute, "CUBLASLT_MATRIX_LAYOUT_"),
    ("cublasLt.h", cublaslt.PreferenceAttribute, "CUBLASLT_MATMUL_PREF_")])
def test_constants_equal_those_of_the_header(file: str, kind: type[enum.IntEnum], prefix: str) -> None:
    text = header(file)
    if not text:
        pytest.skip(f"needs {file}")
    for member in kind:
        found = re.search(rf"\b{prefix}{member.name}\s*=\s*(\d+)\s*[,}}]", text)
        assert found and int(found[1]) == member, member


#: ctypes' types for the types of the header.
C_TYPES = {ctypes.c_void_p: r".*\*|.*\[\]|cublasLt\w+_t|cudaStream_t", ctypes.c_int: r"int|cuda\w+|cublas\w+",
           ctypes.c_size_t: "size_t|uint64_t", ctypes.c_int64: "int64_t"}


def test_functions_have_the_arguments_of_the_header() -> None:
    text = header("cublasLt.h")
    if not text:
        pytest.skip("needs cublasLt.h")
    for name, takes in cublaslt.SIGNATURES.items():
        found = re.search(rf"cublasStatus_t CUBLASWINAPI {name}\(([^)]*)\)", text)
        assert found, name
        declared = [re.sub(r"\s*\b\w+(\[\])?$", r"\1", part.strip()) for part in found[1].split(",")]
        assert len(declared) == len(takes), name
        for given, parameter in zip(takes, declared):
            assert re.fullmatch(C_TYPES[given], parameter), (name, parameter)
    opaque = re.search(r"uint64_t data\[(\d+)\];\s*\} cublasLtMatmulAlgo_t;", text)
    assert opaque and ctypes.sizeof(cublaslt.Algorithm) == 8 * int(opaque[1])
    result = re.search(r"typedef struct \{([^}]*)\} cublasLtMatmulHeuristicResult_t;", text)
    assert result
    fields = re.findall(r"(\w+)(?:\[\d+\])?;", result[1])
    assert fields == [field[0] for field in cublaslt.Heuristic._fields_]


def test_bfloat16_is_the_dtype_that_the_library_multiplies() -> None:
    ones = view(np.ones((2, 2), ml_dtypes.bfloat16))
    assert not isinstance(describe(ones, ones, ones), str)


# --------------------------------------------------------------------------------- products inside of other kernels


def _attention() -> Any:
    scores = mx.sym.contrib.interleaved_matmul_selfatt_qk(x, heads=2)
    return mx.sym.contrib.interleaved_matmul_selfatt_valatt(x, mx.sym.softmax(scores), heads=2)


def _recurrent(mode: str) -> Any:
    return mx.sym.RNN(x, w, b, *[mx.sym.var("c")] * (mode == "lstm"), state_size=4, num_layers=2, bidirectional=True,
                      mode=mode)


#: Graphs whose kernels multiply, and the shapes of their variables.
MULTIPLYING: dict[str, tuple[Callable[[], Any], dict[str, tuple[int, ...]]]] = {
    "attention": (_attention, {"x": (5, 2, 24)}),
    "attention in one operator": (lambda: mx.sym.contrib.scaled_dot_product_attention(x, w, b),
                                  dict.fromkeys("xwb", (2, 3, 5, 4))),
    "prelu": (lambda: mx.sym.FullyConnected(mx.sym.LeakyReLU(x, w, act_type="prelu"), b, num_hidden=2, no_bias=True),
              {"x": (3, 4), "w": (4,), "b": (2, 4)}),
    "lstm": (lambda: _recurrent("lstm"), {"x": (3, 2, 5), "w": (800,), "b": (4, 2, 4), "c": (4, 2, 4)}),
    "gru": (lambda: _recurrent("gru"), {"x": (3, 2, 5), "w": (600,), "b": (4, 2, 4)}),
}


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MULTIPLYING)
def test_kernels_that_multiply_are_parts_of_graphs(name: str, dtype: str, lt: Installed) -> None:
    """A capture contains all steps, since the library multiplies; replays give the host's results."""
    graph, shapes = MULTIPLYING[name]
    net, arrays = graph(), {variable: numbers(*shape) for variable, shape in shapes.items()}
    found = compare(net, arrays, dtype)
    assert lt.taken()
    heads = [mx.nd.array(numbers(*out.shape), mx.gpu(0), dtype) for out in found.executor.outputs]
    for _ in range(3):
        outs = found.executor.forward(is_train=True)
        found.executor.backward(heads)
    again = [each.asnumpy().astype(float) for each in (*outs, *found.executor.grad_dict.values())]
    for one, other in zip(again, found.numbers, strict=True):
        np.testing.assert_array_equal(one, other)
    said = str(found.executor.explain())
    assert said.count("1 graph, 0 islands") == 2, said


@needs_compiler
@pytest.mark.parametrize(("a", "b"), [
    ((4, 3), (3, 5)), ((3,), (3, 5)), ((4, 3), (3,)), ((3,), (3,)), ((2, 3), (6, 3, 5)), ((6, 2, 3), (3, 1)),
    ((2, 1, 4, 3), (1, 5, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3))], ids=str)
def test_a_product_equals_numpy(a: tuple[int, ...], b: tuple[int, ...], lt: Installed) -> None:
    """Products of vectors, of stacks that broadcast, and of arrays that only the array module multiplies; also into a
    view."""
    left, right = (mx.nd.array(numbers(*shape), mx.gpu(0), "float64")._data for shape in (a, b))
    expected = np.matmul(numbers(*a), numbers(*b))
    found = multiply(lt.xp, left, right)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found.get(), expected, 1e-12, 1e-12)
    if expected.ndim:
        out = lt.xp.empty((*expected.shape, 2))[..., 0]
        assert multiply(lt.xp, left, right, out) is out
        np.testing.assert_allclose(out.get(), expected, 1e-12, 1e-12)

"""``mx.rtc``: CUDA C++ kernels of a program."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DeviceError, DTypeError
from tests.cuda import host
from tests.cuda.device import gpus

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
on_bed = pytest.mark.skipif(os.environ.get("OPREG_TEST_GPU") != "bed", reason="./run test-cupy has the bed")

SOURCE = """
extern "C" __global__ void axpy(const float *x, float *y, float alpha, int n) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) y[i] += alpha * x[i];
}
"""
TEMPLATE = """
template <class T> __global__ void reversed(const T *x, T *y) {
    extern __shared__ char memory[];
    T *held = (T *)memory;
    held[threadIdx.x] = x[threadIdx.x + blockDim.x * blockIdx.z];
    __syncthreads();
    y[threadIdx.x + blockDim.x * blockIdx.z] = held[blockDim.x - 1 - threadIdx.x];
}
"""
SIGNATURE = "const float *x, float *y, float alpha, int n"


def axpy(signature: str = SIGNATURE) -> mx.rtc.CudaKernel:
    return mx.rtc.CudaModule(SOURCE).get_kernel("axpy", signature)


@needs_compiler
@pytest.mark.parametrize("signature", [
    SIGNATURE, "const float *, float *, float, int", "const  float* x,float*y,float alpha, int32_t n",
    "const float * __restrict__ x, float * __restrict__ y, float alpha, int n"])
def test_a_launch_writes_arrays_in_place(signature: str) -> None:
    with gpus():
        x, y = mx.nd.arange(10, ctx=mx.gpu(0)), mx.nd.ones((10,), ctx=mx.gpu(0))
        axpy(signature).launch([x, y, 3.0, 10], mx.gpu(0), (2, 1, 1), (8, 1, 1))
        assert y.asnumpy().tolist() == [1 + 3 * i for i in range(10)]
        assert x.asnumpy().tolist() == [*range(10)]


@needs_compiler
def test_views_and_arrays_with_gaps_are_written() -> None:
    with gpus():
        x, y = mx.nd.ones((3,), ctx=mx.gpu(0)), mx.nd.zeros((4, 3), ctx=mx.gpu(0))
        axpy().launch([x, y[1], 2, 3], mx.gpu(0), (1, 1, 1), (3, 1, 1))
        column = mx.nd.NDArray(y._data[:, 0], mx.gpu(0))
        axpy().launch([mx.nd.ones((4,), ctx=mx.gpu(0)), column, 5, 4], mx.gpu(0), (1, 1, 1), (4, 1, 1))
        assert y.asnumpy().tolist() == [[5, 0, 0], [7, 2, 2], [5, 0, 0], [5, 0, 0]]


@needs_compiler
def test_a_compiled_program_sees_an_array_that_a_launch_wrote() -> None:
    with gpus():
        x, y = mx.nd.ones((3,), ctx=mx.gpu(0)), mx.nd.ones((3,), ctx=mx.gpu(0))
        executor = (mx.sym.var("y") * 2).bind(mx.gpu(0), {"y": y})
        for expected in (4, 6):
            axpy().launch([x, y, 1, 3], mx.gpu(0), (1, 1, 1), (3, 1, 1))
            assert executor.forward()[0].asnumpy().tolist() == [expected] * 3


@needs_compiler
def test_an_operator_launches_a_kernel_in_its_forward() -> None:
    class Axpy(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            x = in_data[0]
            y = mx.nd.ones(x.shape, ctx=x.ctx)
            axpy().launch([x, y, 2.0, x.size], x.ctx, (1, 1, 1), (4, 1, 1))
            self.assign(out_data[0], req[0], y)

    @mx.operator.register("_example_rtc")
    class AxpyProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Axpy()

    with gpus():
        x = mx.nd.arange(6, ctx=mx.gpu(0)).reshape((2, 3))
        for out in (mx.nd.Custom(x, op_type="_example_rtc"),
                    mx.sym.Custom(mx.sym.var("x"), op_type="_example_rtc").bind(mx.gpu(0), {"x": x}).forward()[0]):
            np.testing.assert_array_equal(out.asnumpy(), 1 + 2 * x.asnumpy())


@needs_compiler
@pytest.mark.parametrize("change, error, words", [
    ({"ctx": mx.cpu(0)}, ArgumentError, "expected a GPU, got ctx=cpu"),
    ({"grid": (1, 1)}, ArgumentError, "three integers as grid_dims"),
    ({"block": (1,)}, ArgumentError, "three integers as block_dims"),
    ({"args": 3}, ArgumentError, "expected 4 arguments, got 3"),
    ({0: 2.0}, ArgumentError, "'const float .x' takes an NDArray, got float"),
    ({2: "x"}, ArgumentError, "'float alpha' takes a number, got str"),
    ({0: "host"}, ArgumentError, "takes an array on gpu.0., got one on cpu.0.; as_in_context"),
    ({1: "float64"}, DTypeError, "takes an array of float32, got float64"),
])
def test_mistakes_in_a_launch_are_refused(change: dict[Any, Any], error: type[Exception], words: str) -> None:
    with gpus():
        args: list[Any] = [mx.nd.ones((3,), ctx=mx.gpu(0)), mx.nd.ones((3,), ctx=mx.gpu(0)), 1.0, 3]
        for place in {0, 1, 2} & change.keys():
            args[place] = {"host": mx.nd.ones((3,)), "float64": mx.nd.ones((3,), mx.gpu(0), "float64")}.get(
                change[place], change[place])
        with pytest.raises(error, match=words):
            axpy().launch(args[:change.get("args", 4)], change.get("ctx", mx.gpu(0)), change.get("grid", (1, 1, 1)),
                          change.get("block", (3, 1, 1)))


@needs_compiler
@pytest.mark.parametrize("signature, error, words", [
    ("const float **x", ArgumentError, "expected .*type"),
    ("const x y z", ArgumentError, "expected .*type"),
    ("flaot *x", DTypeError, "Did you mean 'float'"),
])
def test_mistakes_in_a_signature_are_refused(signature: str, error: type[Exception], words: str) -> None:
    with gpus(), pytest.raises(error, match=words):
        axpy(signature)


@on_bed
def test_kernels_use_templates_three_dimensions_and_shared_memory() -> None:
    with gpus():
        module = mx.rtc.CudaModule(TEMPLATE, exports=["reversed<float>", "reversed<double>"])
        for c, dtype in (("float", "float32"), ("double", "float64")):
            x, y = mx.nd.arange(8, ctx=mx.gpu(0), dtype=dtype), mx.nd.zeros((8,), mx.gpu(0), dtype)
            kernel = module.get_kernel(f"reversed<{c}>", f"const {c} *x, {c} *y")
            kernel.launch([x, y], mx.gpu(0), (1, 1, 2), (4, 1, 1), 64)
            assert y.asnumpy().tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


@on_bed
def test_a_text_that_does_not_compile_is_refused_with_its_line() -> None:
    with gpus(), pytest.raises(ArgumentError, match=r"'f' does not compile: .*nonsense.* in line 1: extern"):
        mx.rtc.CudaModule('extern "C" __global__ void f(int *x) { nonsense; }').get_kernel("f", "int *x")


def test_without_a_gpu_a_module_raises_an_error() -> None:
    if mx.num_gpus():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match="gpu"):
        mx.rtc.CudaModule(SOURCE)

"""An operator whose two kernels are CUDA C++ of your own, compiled and launched by CuPy.

Arrays come by DLPack: no copy, and the host waits for nothing. CuPy launches on the plan's stream, so the kernel runs
after the steps that compute its inputs and before those that read its results.

    python examples/raw_kernel.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx

SOURCE = r"""
extern "C" __global__ void softplus(const float* x, float* y, unsigned int size) {
    const unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < size) y[i] = fmaxf(x[i], 0.0f) + log1pf(expf(-fabsf(x[i])));
}
"""
GRADIENT = r"""
extern "C" __global__ void softplus_gradient(const float* x, const float* g, float* dx, unsigned int size) {
    const unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < size) dx[i] = g[i] / (1.0f + expf(-x[i]));
}
"""
THREADS = 256


class Softplus(mx.operator.CustomOp):
    """``log(1 + exp(x))`` of float32."""

    def __init__(self):
        import cupy

        self.cupy = cupy
        self.kernel, self.gradient = cupy.RawKernel(SOURCE, "softplus"), cupy.RawKernel(GRADIENT, "softplus_gradient")

    def launch(self, kernel, *ins):
        ins = [self.cupy.from_dlpack(each) for each in ins]
        out = self.cupy.empty_like(ins[0])
        kernel((-(-out.size // THREADS),), (THREADS,), (*ins, out, np.uint32(out.size)))
        return out

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], self.launch(self.kernel, in_data[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], self.launch(self.gradient, in_data[0], out_grad[0]))


@mx.operator.register("raw_softplus")
class SoftplusProp(mx.operator.CustomOpProp):
    def infer_type(self, in_type):
        if in_type[0] != np.float32:  # a raw kernel gets addresses, so the dtype must be checked here
            raise TypeError(f"raw_softplus: expected float32, got {np.dtype(in_type[0])}")
        return in_type, in_type, []

    def create_operator(self, ctx, shapes, dtypes):
        return Softplus()


def main() -> None:
    if not mx.num_gpus():
        print("no GPU here: nothing was run")
        return
    x = np.linspace(-4, 4, 600, dtype=np.float32).reshape(20, 30)
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="raw_softplus", name="softplus").simple_bind(mx.gpu(0), x=x.shape)
    out = executor.forward(is_train=True, x=x)[0]
    executor.backward(mx.nd.ones(x.shape, mx.gpu(0)))
    np.testing.assert_allclose(out.asnumpy(), np.logaddexp(x, 0), rtol=1e-5)

    # Compare the gradient with differences of outputs, on the device.
    mx.test_utils.check_numeric_gradient(mx.sym.Custom(mx.sym.var("x"), op_type="raw_softplus"), [x[:3, ::7]],
                                         numeric_eps=1e-2, rtol=1e-2, atol=1e-3, ctx=mx.gpu(0), dtype=np.float32)
    print("the kernels agree with NumPy, and their gradient with differences of outputs")


if __name__ == "__main__":
    main()

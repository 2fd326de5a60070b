"""An operator whose forward and backward are one line of C++ each, by CuPy's ElementwiseKernel; shapes broadcast, and
the kernels take the dtype of the arrays.

    python examples/elementwise_kernel.py
"""

from __future__ import annotations

import functools

import numpy as np

import opreg as mx


@functools.cache
def kernels():
    import cupy

    # 16-bit values are multiplied as float, but C++ needs one type on both sides of ?:, so the product is cast.
    return (cupy.ElementwiseKernel("T x, T slope", "T y", "y = x > 0 ? x : T(slope * x)", "leaky"),
            cupy.ElementwiseKernel("T x, T slope, T g", "T dx", "dx = x > 0 ? g : T(slope * g)", "leaky_gradient"))


class Leaky(mx.operator.CustomOp):
    """Leaky relu: ``x`` where it is positive, and ``slope * x`` elsewhere."""

    def __init__(self, slope):
        self.slope = slope

    def forward(self, is_train, req, in_data, out_data, aux):
        import cupy

        self.assign(out_data[0], req[0], kernels()[0](cupy.from_dlpack(in_data[0]), self.slope))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        import cupy

        x, g = cupy.from_dlpack(in_data[0]), cupy.from_dlpack(out_grad[0])
        self.assign(in_grad[0], req[0], kernels()[1](x, self.slope, g))


@mx.operator.register("elementwise_leaky")
class LeakyProp(mx.operator.CustomOpProp):
    def __init__(self, slope=0.1):
        super().__init__()
        self.slope = float(slope)

    def create_operator(self, ctx, shapes, dtypes):
        return Leaky(self.slope)


def main() -> None:
    if not mx.num_gpus():
        print("no GPU here: nothing was run")
        return
    numbers = np.array([[-2.0, -0.5, 3.0]])
    for dtype in ("float16", "float32", "float64"):
        x = mx.nd.array(numbers, mx.gpu(0), dtype)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type="elementwise_leaky", slope=0.25)
        y.backward()
        np.testing.assert_allclose(y.asnumpy(), [[-0.5, -0.125, 3.0]])
        np.testing.assert_allclose(x.grad.asnumpy(), [[0.25, 0.25, 1.0]])
    print("outputs and gradients are those expected, in three precisions")


if __name__ == "__main__":
    main()

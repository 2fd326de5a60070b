"""An operator whose kernels are Python functions, compiled for the GPU by numba.cuda.

By default numba launches on its own stream, so the example passes CuPy's current stream, on which the plan runs.
``sync=False`` avoids waiting: work on one stream runs in order.

    python examples/numba_kernel.py
"""

from __future__ import annotations

import functools

import numpy as np

import opreg as mx

THREADS = 128


@functools.cache
def kernels():
    from numba import cuda

    @cuda.jit
    def forward(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * x[i] * x[i]

    @cuda.jit
    def backward(x, g, dx):
        i = cuda.grid(1)
        if i < x.size:
            dx[i] = 3 * x[i] * x[i] * g[i]

    return forward, backward


def launch(kernel, *ins):
    import cupy
    from numba import cuda

    out = cupy.empty(ins[0].size, ins[0].dtype)
    stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
    arrays = [cuda.as_cuda_array(cupy.from_dlpack(each).reshape(-1), sync=False) for each in ins]
    kernel[-(-out.size // THREADS), THREADS, stream](*arrays, cuda.as_cuda_array(out, sync=False))
    return out.reshape(ins[0].shape)


class Cube(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], launch(kernels()[0], in_data[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], launch(kernels()[1], in_data[0], out_grad[0]))


@mx.operator.register("numba_cube")
class CubeProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Cube()


def main() -> None:
    try:
        from numba import cuda
    except ImportError:
        print("numba is not installed: nothing was run")
        return
    if not mx.num_gpus() or not cuda.is_available():
        print("no GPU here: nothing was run")
        return
    x = mx.nd.array(np.arange(6).reshape(2, 3), mx.gpu(0))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="numba_cube")
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), x.asnumpy() ** 3)
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * x.asnumpy() ** 2)
    print("outputs and gradients are those expected")


if __name__ == "__main__":
    main()

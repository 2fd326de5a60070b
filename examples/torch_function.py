"""An operator that calls a function of PyTorch, with its gradient by PyTorch's autograd, on the host or on a GPU.

Tensors share the memory of opreg's arrays, by DLPack. On a GPU, PyTorch uses the plan's stream, so nothing waits. A
kernel compiled by Triton can be called in the same way, on the tensors.

    python examples/torch_function.py
"""

from __future__ import annotations

import contextlib

import numpy as np

import opreg as mx


def stream_of(array):
    """A context in which PyTorch uses the stream that an array is computed on."""
    if array.context.device_type == "cpu":
        return contextlib.nullcontext()
    import cupy
    import torch

    return torch.cuda.stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr))


def tensor(array):
    import torch

    return torch.from_dlpack(array)


class Mish(mx.operator.CustomOp):
    """``x * tanh(softplus(x))``."""

    def forward(self, is_train, req, in_data, out_data, aux):
        import torch

        with stream_of(in_data[0]):
            self.assign(out_data[0], req[0], mx.nd.from_dlpack(torch.nn.functional.mish(tensor(in_data[0]))))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        import torch

        with stream_of(in_data[0]):
            x = tensor(in_data[0]).detach().requires_grad_()
            gradient, = torch.autograd.grad(torch.nn.functional.mish(x), x, tensor(out_grad[0]))
            self.assign(in_grad[0], req[0], mx.nd.from_dlpack(gradient))


@mx.operator.register("torch_mish")
class MishProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Mish()


def main() -> None:
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing was run")
        return
    ctx = mx.gpu(0) if mx.num_gpus() and torch.cuda.is_available() else mx.cpu()
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    executor = mx.sym.Custom(mx.sym.var("x"), op_type="torch_mish", name="mish").simple_bind(ctx, x=x.shape)
    out = executor.forward(is_train=True, x=x)[0]
    np.testing.assert_allclose(out.asnumpy(), x * np.tanh(np.log1p(np.exp(x))), rtol=1e-5, atol=1e-6)
    mx.test_utils.check_numeric_gradient(mx.sym.Custom(mx.sym.var("x"), op_type="torch_mish"), [x], numeric_eps=1e-2,
                                         rtol=1e-2, atol=1e-3, ctx=ctx, dtype=np.float32)
    print(f"PyTorch's function and its gradient agree with NumPy and with differences of outputs, on {ctx}")


if __name__ == "__main__":
    main()

"""The workloads in MXNet's interface, which opreg has too: the same lines run in both."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .workloads import chain, lenet_data, mlp_data, uniform

__all__ = ["cases"]


def cases(mx: Any, planned: Callable[[Any, bool], int]) -> dict[str, Callable]:
    """The functions by key; ``planned(executor, is_train)`` is the number of bytes its plan holds."""

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    class NumpyTwice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0].asnumpy() * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0].asnumpy() * 2)

    class Identity(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    for operator in (Twice, NumpyTwice, Identity):
        def create_operator(self, ctx, shapes, dtypes, operator=operator):
            return operator()

        name = f"benchmark_{operator.__name__}"
        mx.operator.register(name)(type(name, (mx.operator.CustomOpProp,), {"create_operator": create_operator}))

    def training(symbol, n):
        """Forward and backward of a symbol of one input ``x`` of n numbers."""
        executor = symbol.simple_bind(mx.cpu(), x=(n,))
        executor.arg_dict["x"][:] = uniform(n)
        ones = mx.nd.ones((n,))

        def run():
            executor.forward(is_train=True)
            executor.backward(ones)
            mx.nd.waitall()

        def check():
            return float((executor.outputs[0].asnumpy() + executor.grad_dict["x"].asnumpy()).sum(dtype="float64"))

        return run, check

    def custom(op_type):
        def case(count, n):
            y = mx.sym.Variable("x")
            for _ in range(count):
                y = mx.sym.Custom(y, op_type=op_type)
            return training(y, n)

        return case

    def elementwise(count, n):
        executor = chain(mx.sym.Variable("x"), count, mx.sym.relu).simple_bind(mx.cpu(), grad_req="null", x=(n,))
        executor.arg_dict["x"][:] = uniform(n)

        def run():
            executor.forward(is_train=False)
            mx.nd.waitall()

        return run, lambda: float(executor.outputs[0].asnumpy().sum(dtype="float64"))

    def chain_training(count, n):
        return training(chain(mx.sym.Variable("x"), count, mx.sym.relu), n)

    def chain_build(count, n):
        made: list[Callable] = []

        def run():
            made.clear()
            begin = time.perf_counter()
            made[:] = chain_training(count, n)
            made[0]()
            return time.perf_counter() - begin

        def check():
            return made[1]()

        return run, check

    def step(network, data, rate):
        """A step of SGD of a network that ends in SoftmaxOutput."""
        x, labels, parameters = data
        executor = network.simple_bind(mx.cpu(), data=x.shape, softmax_label=labels.shape,
                                       grad_req={name: "null" if name in ("data", "softmax_label") else "write"
                                                 for name in network.list_arguments()})
        executor.arg_dict["data"][:] = x
        executor.arg_dict["softmax_label"][:] = labels
        names = [name for name in network.list_arguments() if name not in ("data", "softmax_label")]
        for name, value in zip(names, parameters):
            executor.arg_dict[name][:] = value
        pairs = [(executor.arg_dict[name], executor.grad_dict[name]) for name in names]

        def run():
            executor.forward(is_train=True)
            executor.backward()
            for weight, grad in pairs:
                mx.nd.sgd_update(weight, grad, lr=rate, rescale_grad=1 / len(labels), out=weight)
            mx.nd.waitall()

        def check():
            return sum(float(abs(weight.asnumpy() - before).sum(dtype="float64"))
                       for (weight, _), before in zip(pairs, parameters))

        return run, check

    def mlp(batch, layers, rate):
        y = mx.sym.Variable("data")
        for i, n in enumerate(layers[1:]):
            y = mx.sym.FullyConnected(mx.sym.relu(y) if i else y, num_hidden=n)
        return step(mx.sym.SoftmaxOutput(y, name="softmax"), mlp_data(batch, layers), rate)

    def lenet(batch, rate):
        y = mx.sym.Variable("data")
        for filters in (20, 50):
            y = mx.sym.relu(mx.sym.Convolution(y, kernel=(5, 5), num_filter=filters))
            y = mx.sym.Pooling(y, pool_type="max", kernel=(2, 2), stride=(2, 2))
        y = mx.sym.relu(mx.sym.FullyConnected(y, num_hidden=500))
        y = mx.sym.FullyConnected(y, num_hidden=10)
        return step(mx.sym.SoftmaxOutput(y, name="softmax"), lenet_data(batch), rate)

    def eager(n, calls):
        x = mx.nd.array(uniform(n))
        made = [x]

        def run():
            for _ in range(calls):
                y = x * 2
            y.wait_to_read()
            made[0] = y

        return run, lambda: float(made[0].asnumpy().sum(dtype="float64"))

    def eager_gradient(n, calls):
        x = mx.nd.array(uniform(n))
        x.attach_grad()

        def run():
            for _ in range(calls):
                with mx.autograd.record():
                    y = x * 2
                y.backward()
            x.grad.wait_to_read()

        return run, lambda: float(x.grad.asnumpy().sum(dtype="float64"))

    def memory(is_train):
        def case(batch, width, count):
            y = mx.sym.Variable("data")
            for _ in range(count):
                y = mx.sym.relu(mx.sym.FullyConnected(y, num_hidden=width))

            def run():
                executor = y.simple_bind(mx.cpu(), grad_req="write" if is_train else "null", data=(batch, width))
                return planned(executor, is_train)

            return run, None

        return case

    return {"custom_arrays": custom("benchmark_Twice"), "custom_numpy": custom("benchmark_NumpyTwice"),
            "custom_identity": custom("benchmark_Identity"), "elementwise": elementwise,
            "elementwise_training": chain_training, "mlp": mlp, "lenet": lenet, "eager": eager,
            "eager_gradient": eager_gradient, "chain_build": chain_build, "chain": chain_training,
            "memory_training": memory(True), "memory_inference": memory(False)}

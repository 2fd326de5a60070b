"""The workloads in MXNet's interface, which opreg has too: the same lines run in both."""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .workloads import (
    EPSILON,
    adam_data,
    attention_data,
    block_data,
    chain,
    conv_data,
    conv_stack,
    deep_data,
    gelu_data,
    lenet_data,
    lstm_data,
    mlp_data,
    norm_data,
    resnet,
    resnet_data,
    total,
    uniform,
)

__all__ = ["cases"]


def cases(mx: Any, planned: Callable[[Any, bool], int], wait: Callable[[], None],
          take_note: Callable[[Any], None] = lambda executor: None) -> dict[str, Callable]:
    """The functions by key.

    ``planned(executor, is_train)`` is the number of bytes its plan holds; ``wait()`` returns once all results are
    available; ``take_note(executor)`` is called with each bound executor.
    """

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

        for kind, traced in ("custom", False), ("traced", True):  # which MXNet ignores
            name = f"{kind}_{operator.__name__}"
            mx.operator.register(name)(type(name, (mx.operator.CustomOpProp,),
                                            {"create_operator": create_operator, "traced": traced}))

    # The other frameworks read output gradients in place, compiled or not. MXNet's executor copies them.
    binds_head_grads = "head_grads" in inspect.signature(mx.sym.Symbol.simple_bind).parameters

    def bind(symbol, arrays, given=(), statistics=(), head=None):
        """An executor with values for all arguments, in their order, and the argument of its backward.

        It computes no gradients of the arguments in ``given``; ``head`` is the output gradient.
        """
        bound = binds_head_grads and head is not None
        names = symbol.list_arguments()
        reqs = {name: "null" if name in given else "write" for name in names}
        executor = symbol.simple_bind(mx.current_context(), grad_req=reqs,
                                      **{name: array.shape for name, array in zip(names, arrays)},
                                      **({"head_grads": head} if bound else {}))
        for array, value in zip([*executor.arg_arrays, *executor.aux_arrays], [*arrays, *statistics]):
            array[:] = value
        take_note(executor)
        return executor, () if bound or head is None else (head,)

    def inference(symbol, arrays, statistics=()):
        executor, _ = bind(symbol, arrays, symbol.list_arguments(), statistics)

        def run():
            executor.forward(is_train=False)
            wait()

        return run, lambda: total(executor.outputs[0].asnumpy())

    def training(symbol, arrays, g, given=(), statistics=()):
        """Forward and backward, ``g`` being the gradient of the output."""
        executor, out_grads = bind(symbol, arrays, given, statistics, mx.nd.array(g))

        def run():
            executor.forward(is_train=True)
            executor.backward(*out_grads)
            wait()

        def check():
            grads = [each for each in executor.grad_arrays if each is not None]
            return total(*(each.asnumpy() for each in [executor.outputs[0], *grads]))

        return run, check

    def custom(op_type):
        def case(count, n):
            y = mx.sym.Variable("x")
            for _ in range(count):
                y = mx.sym.Custom(y, op_type=op_type)
            return training(y, [uniform(n)], uniform(n, seed=1))

        return case

    def elementwise(count, n):
        return inference(chain(mx.sym.Variable("x"), count, mx.sym.relu), [uniform(n)])

    def chain_training(count, n):
        return training(chain(mx.sym.Variable("x"), count, mx.sym.relu), [uniform(n)], uniform(n, seed=1))

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
        executor, _ = bind(network, [x, *parameters, labels], given=("data", "softmax_label"))
        pairs = list(zip(executor.arg_arrays, executor.grad_arrays))[1:-1]

        def run_as_one():
            executor.step()
            wait()

        def run():
            executor.forward(is_train=True)
            executor.backward()
            for weight, grad in pairs:
                mx.nd.sgd_update(weight, grad, lr=rate, rescale_grad=1 / len(labels), out=weight)
            wait()

        def check():
            return total(*(weight.asnumpy() - before for (weight, _), before in zip(pairs, parameters)))

        if not hasattr(executor, "set_optimizer"):  # MXNet's
            return run, check
        executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=rate, rescale_grad=1 / len(labels)))
        return run_as_one, check

    def perceptron(name, layers):
        y = mx.sym.Variable(name)
        for i, n in enumerate(layers[1:]):
            y = mx.sym.FullyConnected(mx.sym.relu(y) if i else y, num_hidden=n)
        return y

    def few_rows(batch, layers):
        x, _, parameters = mlp_data(batch, layers)
        return inference(perceptron("x", layers), [x, *parameters])

    def mlp(batch, layers, rate):
        return step(mx.sym.SoftmaxOutput(perceptron("data", layers), name="softmax"), mlp_data(batch, layers), rate)

    def lenet(batch, rate):
        y = mx.sym.Variable("data")
        for filters in (20, 50):
            y = mx.sym.relu(mx.sym.Convolution(y, kernel=(5, 5), num_filter=filters))
            y = mx.sym.Pooling(y, pool_type="max", kernel=(2, 2), stride=(2, 2))
        y = mx.sym.relu(mx.sym.FullyConnected(y, num_hidden=500))
        y = mx.sym.FullyConnected(y, num_hidden=10)
        return step(mx.sym.SoftmaxOutput(y, name="softmax"), lenet_data(batch), rate)

    def tanh_gelu():
        x = mx.sym.Variable("x")
        return 0.5 * x * (1 + mx.sym.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def gelu(n):
        return inference(tanh_gelu(), [gelu_data(n)[0]])

    def gelu_training(n):
        x, g = gelu_data(n)
        return training(tanh_gelu(), [x], g)

    def norm_softmax(rows, width):
        return training(mx.sym.softmax(mx.sym.LayerNorm(mx.sym.Variable("x"), eps=EPSILON)), *norm_data(rows, width))

    def unit(x, stride, weight, *_):
        """A convolution with its batch norm."""
        filters, _, size, _ = weight.shape
        x = mx.sym.Convolution(x, kernel=(size, size), stride=(stride, stride), pad=(size // 2, size // 2),
                               num_filter=filters, no_bias=True)
        return mx.sym.BatchNorm(x, eps=EPSILON, momentum=0.9, fix_gamma=False)

    def convolutions(is_train):
        def case(batch, channels, size, count):
            x, parameters, statistics, g = conv_data(batch, channels, size, count)
            y = conv_stack(mx.sym.Variable("data"), parameters, statistics, unit, mx.sym.relu)
            if is_train:
                return training(y, [x, *parameters], g, ("data",), statistics)
            return inference(y, [x, *parameters], statistics)

        return case

    def resnet_18(batch, size):
        def pool(x):
            return mx.sym.Pooling(x, pool_type="max", kernel=(3, 3), stride=(2, 2), pad=(1, 1))

        def head(x, weight, bias):
            return mx.sym.FullyConnected(mx.sym.mean(x, axis=(2, 3)), num_hidden=len(bias))

        x, parameters, statistics = resnet_data(batch, size)
        y = resnet(mx.sym.Variable("data"), parameters, statistics, unit, mx.sym.relu, pool, head)
        return inference(y, [x, *parameters], statistics)

    def block(batch, tokens, width, heads, ratio):
        def dense(x, n):
            return mx.sym.FullyConnected(x, num_hidden=n, flatten=False)

        def attention(x):
            x = mx.sym.reshape(dense(x, 3 * width), (batch, tokens, 3, heads, width // heads))
            x = mx.sym.reshape(mx.sym.transpose(x, (2, 0, 3, 1, 4)), (3, batch * heads, tokens, width // heads))
            q, k, v = mx.sym.split(x, num_outputs=3, axis=0, squeeze_axis=True)
            y = mx.sym.softmax(mx.sym.batch_dot(q, k, transpose_b=True) * (width // heads) ** -0.5)
            y = mx.sym.reshape(mx.sym.batch_dot(y, v), (batch, heads, tokens, width // heads))
            return dense(mx.sym.reshape(mx.sym.transpose(y, (0, 2, 1, 3)), (batch, tokens, width)), width)

        x = mx.sym.Variable("x")
        x = x + attention(mx.sym.LayerNorm(x, eps=EPSILON))
        y = dense(mx.sym.LayerNorm(x, eps=EPSILON), ratio * width)
        y = x + dense(mx.sym.LeakyReLU(y, act_type="gelu"), width)
        return training(y, *block_data(batch, tokens, width, ratio))

    def attention(is_train):
        def case(batch, heads, tokens, size):
            arrays, g = attention_data(batch, heads, tokens, size)
            arrays, g = [x.reshape(batch * heads, tokens, size) for x in arrays], g.reshape(batch * heads, tokens, size)
            q, k, v = map(mx.sym.Variable, ("query", "key", "value"))
            y = mx.sym.batch_dot(mx.sym.softmax(mx.sym.batch_dot(q, k, transpose_b=True) * size ** -0.5), v)
            return training(y, arrays, g) if is_train else inference(y, arrays)

        return case

    def lstm(steps, batch, hidden):
        (x, *parameters), g = lstm_data(steps, batch, hidden)
        names = "x", "parameters", "state", "cell"
        y = mx.sym.RNN(*map(mx.sym.Variable, names), state_size=hidden, num_layers=1, mode="lstm")
        zeros = np.zeros((1, batch, hidden), "float32")
        return training(y, [x, np.concatenate([each.ravel() for each in parameters]), zeros, zeros], g, names[2:])

    def adam(count, rate):
        before, grads = adam_data(count)
        weights, grads = [mx.nd.array(each) for each in before], [mx.nd.array(each) for each in grads]
        take_note(7 * sum(each.nbytes for each in before))  # weight, gradient and two states are read, three written
        update, indices = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=rate)), list(range(count))

        def run():
            update(indices, grads, weights)
            wait()

        def check():
            for g in grads:
                g *= -0.5
            run()
            return total(*(weight.asnumpy() - value for weight, value in zip(weights, before)))

        return run, check

    def eager(n, calls):
        x = mx.nd.array(uniform(n))
        made = [x]

        def run():
            for _ in range(calls):
                y = x * 2
            y.wait_to_read()
            made[0] = y

        return run, lambda: total(made[0].asnumpy())

    def eager_gradient(function):
        def case(n, calls):
            x = mx.nd.array(uniform(n))
            x.attach_grad()

            def run():
                for _ in range(calls):
                    with mx.autograd.record():
                        y = function(x)
                    y.backward()
                x.grad.wait_to_read()

            return run, lambda: total(x.grad.asnumpy())

        return case

    def square_compiled(n, calls):
        x = mx.sym.Variable("x")
        executor, out_grads = bind(x * x, [uniform(n)], head=mx.nd.ones((n,)))

        def run():
            for _ in range(calls):
                executor.forward(is_train=True)
                executor.backward(*out_grads)
            wait()

        return run, lambda: total(executor.grad_arrays[0].asnumpy())

    def deep(width, count):
        y = mx.sym.Variable("data")
        for _ in range(count):
            y = mx.sym.relu(mx.sym.FullyConnected(y, num_hidden=width))
        return y

    def memory(is_train):
        def case(batch, width, count):
            def run():
                executor = deep(width, count).simple_bind(
                    mx.current_context(), grad_req="write" if is_train else "null", data=(batch, width))
                return planned(executor, is_train)

            return run, None

        return case

    def memory_peak(batch, width, count):
        return training(deep(width, count), *deep_data(batch, width, count), given=("data",))

    def records(count, batch):
        with open(os.path.join(os.path.dirname(__file__), "picture.jpg"), "rb") as file:
            picture = file.read()
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "pictures.rec")
        writer = mx.recordio.MXRecordIO(path, "w")
        for number in range(count):
            writer.write(mx.recordio.pack(mx.recordio.IRHeader(0, float(number % 10), number, 0), picture))
        writer.close()
        batches = mx.io.ImageRecordIter(
            path_imgrec=path, data_shape=(3, 224, 224), batch_size=batch, resize=256, mean_r=123.68, mean_g=116.28,
            mean_b=103.53, preprocess_threads=int(os.environ.get("OMP_NUM_THREADS") or 2), verbose=0)

        def run():
            assert folder.name
            begin = time.perf_counter()
            batches.reset()  # batches that were read ahead are not counted
            for each in batches:
                each.data[0].wait_to_read()
            return (time.perf_counter() - begin) / count

        def check():
            batches.reset()
            return total(next(batches).data[0].asnumpy())

        return run, check

    bodies = {"arrays": "Twice", "numpy": "NumpyTwice", "identity": "Identity"}
    kinds = ("custom", "traced") if hasattr(mx.operator.CustomOpProp, "traced") else ("custom",)
    customs = {f"{kind}_{key}": custom(f"{kind}_{name}") for kind in kinds for key, name in bodies.items()}

    return {**customs, "elementwise": elementwise,
            "elementwise_training": chain_training, "gelu": gelu, "gelu_training": gelu_training,
            "norm_softmax": norm_softmax, "conv_training": convolutions(True), "conv_inference": convolutions(False),
            "block": block, "attention": attention(False), "attention_training": attention(True),
            "attention_long": attention(False), "attention_long_training": attention(True), "lstm": lstm,
            "resnet_1": resnet_18, "resnet_8": resnet_18, "few_rows": few_rows, "mlp": mlp,
            "lenet": lenet, "adam": adam, "eager": eager, "records": records,
            "eager_gradient": eager_gradient(lambda x: x * 2),
            "square_eager": eager_gradient(lambda x: x * x), "square_compiled": square_compiled,
            "chain_build": chain_build, "chain": chain_training, "memory_training": memory(True),
            "memory_inference": memory(False), "memory_peak": memory_peak}

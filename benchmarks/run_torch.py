"""The workloads in PyTorch: eager, and through ``torch.compile``."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from . import device
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
    start_time,
    total,
    uniform,
)

__all__ = ["CASES", "VERSION", "clock"]

#: The device of tensors; with a stand-in for a GPU, the host.
DEVICE = "cuda" if device.DEVICE == "gpu" else "cpu"
if DEVICE == "cuda":
    torch.zeros(1, device=DEVICE)  # raises an error that tells what is missing
    torch.backends.cudnn.allow_tf32 = False  # without TF32, the default of matrix products


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class NumpyTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return tensor(numbers(x) * 2)

    @staticmethod
    def backward(ctx, g):
        return tensor(numbers(g) * 2)


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clone()


def placed(array: Any) -> Any:
    return torch.from_numpy(array).to(DEVICE)


tensor: Callable[[Any], Any] = torch.from_numpy if DEVICE == "cpu" else placed


def tensors(arrays: Any) -> list[Any]:
    return [tensor(array) for array in arrays]


def host(value: Any) -> Any:
    return value.detach().cpu().numpy()


numbers: Callable[[Any], Any] = torch.Tensor.numpy if DEVICE == "cpu" else host


def clock(run: Callable[[], Any], loops: int) -> float:
    """Seconds of ``runs`` runs: between two events on a GPU, otherwise by the host's clock."""
    if DEVICE == "cpu":
        return device.host_clock(run, loops)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(loops):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def inference(function: Callable, arrays: Any) -> Any:
    given, last = tensors(arrays), []

    def run() -> None:
        with torch.inference_mode():
            last[:] = [function(*given)]

    return run, lambda: total(host(last[0]))


def training(function: Callable, arrays: Any, g: Any, given: Any = ()) -> Any:
    """Forward and backward of a function of arrays; ``others`` are further arguments without gradients."""
    inputs, others, head = tensors(arrays), tensors(given), tensor(g)
    for each in inputs:
        each.requires_grad_()
    last: list[Any] = []

    def run() -> None:
        last.clear()  # two results do not fit into memory
        y = function(*inputs, *others)
        last[:] = y, *torch.autograd.grad(y, inputs, head)

    return run, lambda: total(*(host(each) for each in last))


def custom(operator: Any, wrap: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        def function(x: Any) -> Any:
            for _ in range(count):
                x = operator.apply(x)
            return x

        return training(wrap(function), [uniform(n)], uniform(n, seed=1))

    return case


def elementwise(wrap: Callable) -> Callable:
    return lambda count, n: inference(wrap(lambda x: chain(x, count, torch.relu)), [uniform(n)])


def chain_training(wrap: Callable) -> Callable:
    return lambda count, n: training(wrap(lambda x: chain(x, count, torch.relu)), [uniform(n)], uniform(n, seed=1))


def chain_build(count: int, n: int) -> Any:
    """Compiled by torch.compile; eager PyTorch builds a new graph in each run."""
    made: list[Any] = []

    def run() -> float:
        torch.compiler.reset()
        begin = time.perf_counter()
        made[:] = chain_training(torch.compile)(count, n)
        made[0]()
        return time.perf_counter() - begin

    def check() -> float:
        return made[1]()

    return run, check


def classified(data: Any) -> tuple[Any, Any, Any]:
    """Inputs, labels and parameters before the step."""
    return tensor(data[0]), tensor(data[1]).long(), data[2]


def step(network: Callable, data: Any, rate: float, compiled: bool) -> Any:
    """A step of SGD of a network with the mean cross-entropy."""
    x, labels, before = classified(data)
    parameters = [tensor(value.copy()).requires_grad_() for value in before]

    def loss(parameters: Any) -> Any:
        return F.cross_entropy(network(x, *parameters), labels)

    def step() -> None:
        grads = torch.autograd.grad(loss(parameters), parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, grads, alpha=-rate)

    @torch.compile
    def compiled_step() -> None:
        grads = torch.func.grad(loss)(list(parameters))
        with torch.no_grad():
            for parameter, grad in zip(parameters, grads):
                parameter.sub_(grad, alpha=rate)

    def check() -> float:
        return total(*(host(after) - value for after, value in zip(parameters, before)))

    return (compiled_step if compiled else step), check


def perceptron(x: Any, *parameters: Any) -> Any:
    for i in range(0, len(parameters), 2):
        x = F.linear(torch.relu(x) if i else x, parameters[i], parameters[i + 1])
    return x


def few_rows(wrap: Callable) -> Callable:
    def case(batch: int, layers: tuple[int, ...]) -> Any:
        x, _, parameters = mlp_data(batch, layers)
        return inference(wrap(perceptron), [x, *parameters])

    return case


def mlp(compiled: bool) -> Callable:
    return lambda batch, layers, rate: step(perceptron, mlp_data(batch, layers), rate, compiled)


def lenet(compiled: bool) -> Callable:
    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any) -> Any:
        x = F.max_pool2d(torch.relu(F.conv2d(x, w1, b1)), 2)
        x = F.max_pool2d(torch.relu(F.conv2d(x, w2, b2)), 2)
        return F.linear(torch.relu(F.linear(x.flatten(1), w3, b3)), w4, b4)

    return lambda batch, rate: step(network, lenet_data(batch), rate, compiled)


def layers(wrap: Callable) -> Callable:
    """The perceptron of modules with a hook that changes nothing."""
    def case(batch: int, layers: tuple[int, ...], rate: float, compiled: bool, hook: bool) -> Any:
        x, labels, before = classified(mlp_data(batch, layers))
        made: list[Any] = []
        for n, m in itertools.pairwise(layers):
            made += [torch.nn.ReLU(), torch.nn.Linear(n, m)] if made else [torch.nn.Linear(n, m)]
        network, loss = torch.nn.Sequential(*made).to(DEVICE), torch.nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(network.parameters(), lr=rate)
        with torch.no_grad():
            for parameter, value in zip(network.parameters(), before):
                parameter.copy_(tensor(value))
        if hook:
            made[1].register_full_backward_hook(lambda module, grad_input, grad_output: None)

        @wrap
        def run() -> None:
            optimizer.zero_grad()
            loss(network(x), labels).backward()
            optimizer.step()

        return run, lambda: total(*(host(p) - value for p, value in zip(network.parameters(), before)))

    return case


def gelu(wrap: Callable) -> Callable:
    return lambda n: inference(wrap(lambda x: F.gelu(x, approximate="tanh")), gelu_data(n)[:1])


def gelu_training(wrap: Callable) -> Callable:
    def case(n: int) -> Any:
        x, g = gelu_data(n)
        return training(wrap(lambda x: F.gelu(x, approximate="tanh")), [x], g)

    return case


def norm_softmax(wrap: Callable) -> Callable:
    def function(x: Any, gamma: Any, beta: Any) -> Any:
        return torch.softmax(F.layer_norm(x, gamma.shape, gamma, beta, EPSILON), -1)

    return lambda rows, width: training(wrap(function), *norm_data(rows, width))


def unit(is_train: bool) -> Callable:
    """A convolution with its batch norm."""
    def function(x: Any, stride: int, weight: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        x = F.conv2d(x, weight, stride=stride, padding=weight.shape[2] // 2)
        return F.batch_norm(x, mean, variance, gamma, beta, training=is_train, momentum=0.1, eps=EPSILON)

    return function


def convolutions(is_train: bool, wrap: Callable) -> Callable:
    def case(batch: int, channels: int, size: int, count: int) -> Any:
        x, parameters, statistics, g = conv_data(batch, channels, size, count)

        def function(*arrays: Any) -> Any:
            *arrays, x = arrays
            return conv_stack(x, arrays[:3 * count], arrays[3 * count:], unit(is_train), torch.relu)

        if is_train:
            return training(wrap(function), parameters, g, [*statistics, x])
        return inference(wrap(function), [*parameters, *statistics, x])

    return case


def resnet_18(wrap: Callable) -> Callable:
    def case(batch: int, size: int) -> Any:
        x, parameters, statistics = resnet_data(batch, size)

        def pool(x: Any) -> Any:
            return F.max_pool2d(x, 3, 2, 1)

        def head(x: Any, weight: Any, bias: Any) -> Any:
            return F.linear(x.mean((2, 3)), weight, bias)

        def function(x: Any, *arrays: Any) -> Any:
            n = len(parameters)
            return resnet(x, arrays[:n], arrays[n:], unit(False), torch.relu, pool, head)

        return inference(wrap(function), [x, *parameters, *statistics])

    return case


def block(wrap: Callable) -> Callable:
    def case(batch: int, tokens: int, width: int, heads: int, ratio: int) -> Any:
        def function(x: Any, *arrays: Any) -> Any:
            gamma, beta, w1, b1, w2, b2, gamma2, beta2, w3, b3, w4, b4 = arrays
            y = F.linear(F.layer_norm(x, (width,), gamma, beta, EPSILON), w1, b1)
            q, k, v = y.view(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
            x = x + F.linear(y, w2, b2)
            y = F.linear(F.layer_norm(x, (width,), gamma2, beta2, EPSILON), w3, b3)
            return x + F.linear(F.gelu(y), w4, b4)

        return training(wrap(function), *block_data(batch, tokens, width, ratio))

    return case


def attention(is_train: bool, wrap: Callable) -> Callable:
    def case(batch: int, heads: int, tokens: int, size: int) -> Any:
        arrays, g = attention_data(batch, heads, tokens, size)
        function = wrap(F.scaled_dot_product_attention)
        return training(function, arrays, g) if is_train else inference(function, arrays)

    return case


def lstm(wrap: Callable) -> Callable:
    def case(steps: int, batch: int, hidden: int) -> Any:
        def function(x: Any, *arrays: Any) -> Any:
            zeros = x.new_zeros(1, batch, hidden)
            return torch.lstm(x, (zeros, zeros), arrays, True, 1, 0.0, True, False, False)[0]

        return training(wrap(function), *lstm_data(steps, batch, hidden))

    return case


def adam(wrap: Callable) -> Callable:
    def case(count: int, rate: float) -> Any:
        before, grads = adam_data(count)
        parameters = [tensor(value.copy()).requires_grad_() for value in before]
        for parameter, g in zip(parameters, grads):
            parameter.grad = tensor(g)
        run = wrap(torch.optim.Adam(parameters, lr=rate, fused=wrap is plain).step)

        def check() -> float:
            for parameter in parameters:
                parameter.grad.mul_(-0.5)
            run()
            return total(*(host(p) - value for p, value in zip(parameters, before)))

        return run, check

    return case


def eager(n: int, calls: int) -> Any:
    x = tensor(uniform(n))
    last = [x]

    def run() -> None:
        for _ in range(calls):
            y = x * 2
        last[0] = y

    return run, lambda: total(host(last[0]))


def eager_gradient(function: Callable) -> Callable:
    def case(n: int, calls: int) -> Any:
        x, ones = tensor(uniform(n)).requires_grad_(), torch.ones(n, device=DEVICE)

        def run() -> None:
            for _ in range(calls):
                x.grad = None
                y = function(x)
                y.backward(ones)

        return run, lambda: total(host(x.grad))

    return case


def square_compiled(n: int, calls: int) -> Any:
    x, last, gradient = tensor(uniform(n)), [], torch.compile(torch.func.grad(lambda x: (x * x).sum()))

    def run() -> None:
        for _ in range(calls):
            last[:] = [gradient(x)]

    return run, lambda: total(host(last[0]))


def memory_peak(wrap: Callable) -> Callable:
    def case(batch: int, width: int, count: int) -> Any:
        def function(*arrays: Any) -> Any:
            *parameters, x = arrays
            for w, b in zip(parameters[::2], parameters[1::2]):
                x = torch.relu(F.linear(x, w, b))
            return x

        (x, *parameters), g = deep_data(batch, width, count)
        return training(wrap(function), parameters, g, [x])

    return case


def import_time() -> Any:
    return lambda: start_time("import torch"), None


def first_result() -> Any:
    return lambda: start_time("import torch; print((torch.ones(10) * 2).numpy())"), None


def plain(function: Callable) -> Callable:
    return function


torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
VERSION = torch.__version__
SHARED = {"elementwise": elementwise, "elementwise_training": chain_training, "gelu": gelu,
          "gelu_training": gelu_training, "norm_softmax": norm_softmax, "block": block, "lstm": lstm,
          "resnet_1": resnet_18, "resnet_8": resnet_18, "few_rows": few_rows, "adam": adam, "memory_peak": memory_peak,
          "conv_training": partial(convolutions, True), "conv_inference": partial(convolutions, False),
          "attention": partial(attention, False), "attention_training": partial(attention, True),
          "attention_long": partial(attention, False), "attention_long_training": partial(attention, True)}


def customs(kind: str, wrap: Callable) -> dict[str, Callable]:
    bodies = {"arrays": Twice, "numpy": NumpyTwice, "identity": Identity}
    return {f"{kind}_{key}": custom(operator, wrap) for key, operator in bodies.items()}


CASES = {
    "PyTorch": {**customs("custom", plain), **{key: case(plain) for key, case in SHARED.items()},
                "mlp": mlp(False), "layers_eager": layers(plain), "layers_hook_eager": layers(plain),
                "lenet": lenet(False), "eager": eager, "eager_gradient": eager_gradient(lambda x: x * 2),
                "square_eager": eager_gradient(lambda x: x * x), "import": import_time, "first_result": first_result,
                "chain": chain_training(plain)},
    "torch.compile": {**customs("traced", torch.compile), **{key: case(torch.compile) for key, case in SHARED.items()},
                      "mlp": mlp(True), "layers": layers(torch.compile), "layers_hook": layers(torch.compile),
                      "lenet": lenet(True), "square_compiled": square_compiled,
                      "chain_build": chain_build},  # compiling a long chain takes minutes, so there is no "chain"
}

"""The workloads in PyTorch: eager, and through ``torch.compile``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .workloads import chain, lenet_data, mlp_data, start_time, uniform

__all__ = ["CASES", "VERSION"]


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
        return torch.from_numpy(x.numpy() * 2)

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(g.numpy() * 2)


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clone()


def training(function: Callable, n: int) -> Any:
    """Forward and backward of a function of n numbers."""
    x, ones = torch.from_numpy(uniform(n)).requires_grad_(), torch.ones(n)
    last: list[Any] = []

    def run() -> None:
        y = function(x)
        last[:] = y, torch.autograd.grad(y, x, ones)[0]

    return run, lambda: float(sum(last).sum(dtype=torch.float64))


def custom(operator: Any, wrap: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        def function(x: Any) -> Any:
            for _ in range(count):
                x = operator.apply(x)
            return x

        return training(wrap(function), n)

    return case


def elementwise(wrap: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        x = torch.from_numpy(uniform(n))
        function = wrap(lambda x: chain(x, count, torch.relu))
        last: list[Any] = []

        def run() -> None:
            with torch.inference_mode():
                last[:] = [function(x)]

        return run, lambda: float(last[0].sum(dtype=torch.float64))

    return case


def chain_training(wrap: Callable) -> Callable:
    return lambda count, n: training(wrap(lambda x: chain(x, count, torch.relu)), n)


def chain_build(count: int, n: int) -> Any:
    """Through torch.compile; eager PyTorch builds its graph anew in each run."""
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


def step(network: Callable, data: Any, rate: float, compiled: bool) -> Any:
    """A step of SGD of a network with the mean cross-entropy."""
    x, labels, before = torch.from_numpy(data[0]), torch.from_numpy(data[1]).long(), data[2]
    parameters = [torch.tensor(value, requires_grad=True) for value in before]

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
        return sum(float(abs(after.detach().numpy() - value).sum(dtype="float64"))
                   for after, value in zip(parameters, before))

    return (compiled_step if compiled else step), check


def mlp(compiled: bool) -> Callable:
    def network(x: Any, *parameters: Any) -> Any:
        for i in range(0, len(parameters), 2):
            x = F.linear(torch.relu(x) if i else x, parameters[i], parameters[i + 1])
        return x

    return lambda batch, layers, rate: step(network, mlp_data(batch, layers), rate, compiled)


def lenet(compiled: bool) -> Callable:
    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any) -> Any:
        x = F.max_pool2d(torch.relu(F.conv2d(x, w1, b1)), 2)
        x = F.max_pool2d(torch.relu(F.conv2d(x, w2, b2)), 2)
        return F.linear(torch.relu(F.linear(x.flatten(1), w3, b3)), w4, b4)

    return lambda batch, rate: step(network, lenet_data(batch), rate, compiled)


def eager(n: int, calls: int) -> Any:
    x = torch.from_numpy(uniform(n))
    last = [x]

    def run() -> None:
        for _ in range(calls):
            y = x * 2
        last[0] = y

    return run, lambda: float(last[0].sum(dtype=torch.float64))


def eager_gradient(n: int, calls: int) -> Any:
    x, ones = torch.from_numpy(uniform(n)).requires_grad_(), torch.ones(n)

    def run() -> None:
        for _ in range(calls):
            x.grad = None
            y = x * 2
            y.backward(ones)

    return run, lambda: float(x.grad.sum(dtype=torch.float64))


def import_time() -> Any:
    return lambda: start_time("import torch"), None


def first_result() -> Any:
    return lambda: start_time("import torch; print((torch.ones(10) * 2).numpy())"), None


def plain(function: Callable) -> Callable:
    return function


torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
VERSION = torch.__version__
CASES = {
    "PyTorch": {"custom_arrays": custom(Twice, plain), "custom_numpy": custom(NumpyTwice, plain),
                "custom_identity": custom(Identity, plain), "elementwise": elementwise(plain),
                "elementwise_training": chain_training(plain), "mlp": mlp(False), "lenet": lenet(False),
                "eager": eager, "eager_gradient": eager_gradient, "import": import_time,
                "first_result": first_result, "chain": chain_training(plain)},
    "torch.compile": {"custom_arrays": custom(Twice, torch.compile), "custom_numpy": custom(NumpyTwice, torch.compile),
                      "custom_identity": custom(Identity, torch.compile), "elementwise": elementwise(torch.compile),
                      "elementwise_training": chain_training(torch.compile), "mlp": mlp(True), "lenet": lenet(True),
                      "chain_build": chain_build},  # which takes minutes, so there is no "chain"
}

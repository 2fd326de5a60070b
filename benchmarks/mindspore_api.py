"""The workloads of layers in MindSpore's interface, which opreg has too: the same lines run in both."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .workloads import mlp_data, total, uniform

__all__ = ["cases", "sgd"]


def square(x: Any) -> Any:
    return x * x


def sgd(ms: Any, network: Any, data: Any, rate: float, compiled: bool, wait: Callable[[], Any]) -> Any:
    """A step of SGD of a network with the mean cross-entropy."""
    x, labels, before = ms.Tensor(data[0]), ms.Tensor(data[1]), data[2]
    parameters = network.trainable_params()
    for parameter, value in zip(parameters, before):
        parameter.set_data(ms.Tensor(value))
    loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(network, loss), ms.nn.SGD(parameters, learning_rate=rate))
    step.set_train()
    if compiled:
        step = ms.jit(step)

    def run() -> None:
        step(x, labels)
        wait()

    return run, lambda: total(*(p.asnumpy() - value for p, value in zip(parameters, before)))


def cases(ms: Any, wait: Callable[[], Any]) -> dict[str, Callable]:
    """The functions by key; ``wait()`` returns once the results of all calls are available."""

    def squared(compiled: bool) -> Callable:
        def case(n: int, calls: int) -> Any:
            x, last, gradient = ms.Tensor(uniform(n)), [], ms.grad(square)
            if compiled:
                gradient = ms.jit(gradient)

            def run() -> None:
                for _ in range(calls):
                    last[:] = [gradient(x)]
                wait()

            return run, lambda: total(last[0].asnumpy())

        return case

    def layers(batch: int, layers: tuple[int, ...], rate: float, compiled: bool, hook: bool) -> Any:
        """The perceptron with a hook that changes nothing."""
        made: list[Any] = []
        for n, m in itertools.pairwise(layers):
            made += [ms.nn.ReLU(), ms.nn.Dense(n, m)] if made else [ms.nn.Dense(n, m)]
        if hook:
            made[1].register_backward_hook(lambda cell, grad_input, grad_output: None)
        return sgd(ms, ms.nn.SequentialCell(*made), mlp_data(batch, layers), rate, compiled, wait)

    return {"square_eager": squared(False), "square_compiled": squared(True), "layers": layers, "layers_hook": layers,
            "layers_eager": layers, "layers_hook_eager": layers}

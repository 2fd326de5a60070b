"""The workloads in PyTensor: compiled by ``pytensor.function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Op

from .workloads import EPSILON, chain, gelu_data, mlp_data, norm_data, start_time, total, uniform

__all__ = ["CASES", "VERSION"]


class NumpyTwice(Op):
    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2

    def pullback(self, inputs, outputs, grads):
        return [self(grads[0])]


class Identity(NumpyTwice):
    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


def followed(forward: Callable) -> Callable:
    """An operator whose gradient is the same function of the gradient; its body is a graph."""
    def pullback(inputs: Any, outputs: Any, grads: Any) -> Any:
        return [forward(grads[0])]

    def apply(x: Any) -> Any:
        inner = x.type()
        return OpFromGraph([inner], [forward(inner)], inline=True, pullback=pullback)(x)

    return apply


def variables(arrays: Any) -> list[Any]:
    return [pt.tensor(dtype=array.dtype, shape=array.shape) for array in arrays]


def compiled(inputs: list[Any], outputs: list[Any], arrays: list[Any]) -> Any:
    """A function of arrays, and the sum of its results."""
    function, last = pytensor.function(inputs, outputs), []
    function.trust_input = True

    def run() -> None:
        last[:] = function(*arrays)

    return run, lambda: total(*last)


def inference(function: Callable, arrays: list[Any]) -> Any:
    inputs = variables(arrays)
    return compiled(inputs, [function(*inputs)], arrays)


def training(function: Callable, arrays: list[Any], g: Any) -> Any:
    """Forward and backward of a function of arrays."""
    *inputs, head = variables([*arrays, g])
    y = function(*inputs)
    return compiled([*inputs, head], [y, *pytensor.grad(None, inputs, known_grads={y: head})], [*arrays, g])


def custom(operator: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        def function(x: Any) -> Any:
            for _ in range(count):
                x = operator(x)
            return x

        return training(function, [uniform(n)], uniform(n, seed=1))

    return case


def relu(x: Any) -> Any:
    return pt.maximum(x, 0)


def elementwise(count: int, n: int) -> Any:
    return inference(lambda x: chain(x, count, relu), [uniform(n)])


def chain_training(count: int, n: int) -> Any:
    return training(lambda x: chain(x, count, relu), [uniform(n)], uniform(n, seed=1))


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + pt.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def gelu(n: int) -> Any:
    return inference(tanh_gelu, list(gelu_data(n)[:1]))


def gelu_training(n: int) -> Any:
    x, g = gelu_data(n)
    return training(tanh_gelu, [x], g)


def norm_softmax(rows: int, width: int) -> Any:
    def function(x: Any, gamma: Any, beta: Any) -> Any:
        x = x - x.mean(1, keepdims=True)
        x = x / pt.sqrt((x * x).mean(1, keepdims=True) + EPSILON)
        return pt.special.softmax(x * gamma + beta, axis=1)

    return training(function, *norm_data(rows, width))


def mlp(batch: int, layers: tuple[int, ...], rate: float) -> Any:
    """The weights are shared variables, which a step updates."""
    x, labels, before = mlp_data(batch, layers)
    parameters, inputs = [pytensor.shared(value) for value in before], variables([x, labels])
    y = inputs[0]
    for i in range(0, len(parameters), 2):
        y = (relu(y) if i else y) @ parameters[i].T + parameters[i + 1]
    loss = -pt.special.log_softmax(y, axis=1)[pt.arange(batch), inputs[1]].mean()
    updates = [(p, p - rate * g) for p, g in zip(parameters, pytensor.grad(loss, parameters))]
    step = pytensor.function(inputs, updates=updates)
    step.trust_input = True

    def check() -> float:
        return total(*(p.get_value() - value for p, value in zip(parameters, before)))

    return lambda: step(x, labels), check


def square_compiled(n: int, calls: int) -> Any:
    x, last = pt.tensor(dtype="float32", shape=(n,)), []
    gradient, given = pytensor.function([x], pytensor.grad((x * x).sum(), x)), uniform(n)
    gradient.trust_input = True

    def run() -> None:
        for _ in range(calls):
            last[:] = [gradient(given)]

    return run, lambda: total(*last)


def import_time() -> Any:
    return lambda: start_time("import pytensor"), None


def first_result() -> Any:
    return lambda: start_time("import pytensor.tensor as pt; print((pt.ones(10) * 2).eval())"), None


pytensor.config.floatX = "float32"  # otherwise Python's numbers would make results float64
VERSION = pytensor.__version__
CASES = {"PyTensor": {
    "custom_numpy": custom(NumpyTwice()), "custom_identity": custom(Identity()),
    "traced_arrays": custom(followed(lambda x: x * 2)), "traced_identity": custom(followed(pt.tensor_copy)),
    "elementwise": elementwise,
    "elementwise_training": chain_training, "gelu": gelu, "gelu_training": gelu_training, "norm_softmax": norm_softmax,
    "mlp": mlp, "square_compiled": square_compiled, "import": import_time, "first_result": first_result,
}}  # the chain of 10,000 takes minutes to compile

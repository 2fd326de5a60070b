"""The workloads in JAX: compiled by ``jax.jit``, but for the eager ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.example_libraries import optimizers

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

if device.behind():
    jax.devices("gpu")  # raises an error that tells what is missing
    jax.config.update("jax_default_matmul_precision", "highest")  # without TF32, as all frameworks here

#: Runs wait for their results, unless the timer does.
wait: Callable[[Any], Any] = (lambda results: results) if device.behind() else jax.block_until_ready
_ended = jax.jit(lambda x: x + 1)


def clock(run: Callable[[], Any], loops: int) -> float:
    """Seconds of so many runs. A GPU works in order, so the last queued result is available last."""
    if not device.behind():
        return device.host_clock(run, loops)
    jax.block_until_ready(_ended(0))
    start = time.perf_counter()
    for _ in range(loops):
        run()
    jax.block_until_ready(_ended(0))
    return time.perf_counter() - start


def called_back(function: Callable) -> Callable:
    """A function of NumPy arrays as a step of a compiled program."""
    return lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def operator(forward: Callable, backward: Callable) -> Callable:
    made = jax.custom_vjp(forward)
    made.defvjp(lambda x: (forward(x), None), lambda _, g: (backward(g),))
    return made


def inference(function: Callable, arrays: Any) -> Any:
    given, last, compiled = [jnp.asarray(each) for each in arrays], [], jax.jit(function)

    def run() -> None:
        last[:] = [wait(compiled(*given))]

    return run, lambda: total(last[0])


def training(function: Callable, arrays: Any, g: Any, given: Any = ()) -> Any:
    """Forward and backward of a function of arrays; ``others`` are further arguments without gradients."""
    inputs, others, head = [jnp.asarray(each) for each in arrays], [jnp.asarray(each) for each in given], jnp.asarray(g)
    last: list[Any] = []

    @jax.jit
    def both(inputs: Any, others: Any, head: Any) -> Any:
        y, pull = jax.vjp(lambda *inputs: function(*inputs, *others), *inputs)
        return y, *pull(head)

    def run() -> None:
        last.clear()  # two results do not fit into memory
        last[:] = wait(both(inputs, others, head))

    return run, lambda: total(*last)


def custom(forward: Callable, backward: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        made = operator(forward, backward)

        def function(x: Any) -> Any:
            for _ in range(count):
                x = made(x)
            return x

        return training(function, [uniform(n)], uniform(n, seed=1))

    return case


def elementwise(count: int, n: int) -> Any:
    return inference(lambda x: chain(x, count, jax.nn.relu), [uniform(n)])


def chain_training(count: int, n: int) -> Any:
    return training(lambda x: chain(x, count, jax.nn.relu), [uniform(n)], uniform(n, seed=1))


def chain_build(count: int, n: int) -> Any:
    made: list[Any] = []

    def run() -> float:
        jax.clear_caches()
        begin = time.perf_counter()
        made[:] = chain_training(count, n)
        made[0]()
        return time.perf_counter() - begin

    def check() -> float:
        return made[1]()

    return run, check


def step(network: Callable, data: Any, rate: float) -> Any:
    """A step of SGD of a network with the mean cross-entropy; new parameters reuse the memory of the old ones."""
    x, labels = jnp.asarray(data[0]), jnp.asarray(data[1])
    state = [[jnp.array(value) for value in data[2]]]

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        y = jax.nn.log_softmax(network(x, *parameters))
        return -jnp.take_along_axis(y, labels[:, None], axis=1).mean()

    def update(parameters: Any, x: Any, labels: Any) -> Any:
        return [p - rate * g for p, g in zip(parameters, jax.grad(loss)(parameters, x, labels))]

    compiled = jax.jit(update, donate_argnums=0)

    def run() -> None:
        state[0] = wait(compiled(state[0], x, labels))

    def check() -> float:
        return total(*(np.asarray(after) - before for after, before in zip(state[0], data[2])))

    return run, check


def mlp(batch: int, layers: tuple[int, ...], rate: float) -> Any:
    def network(x: Any, *parameters: Any) -> Any:
        for i in range(0, len(parameters), 2):
            x = (jax.nn.relu(x) if i else x) @ parameters[i].T + parameters[i + 1]
        return x

    return step(network, mlp_data(batch, layers), rate)


def lenet(batch: int, rate: float) -> Any:
    def block(x: Any, w: Any, b: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        y = jax.nn.relu(y + b[:, None, None])
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, w4: Any, b4: Any) -> Any:
        x = block(block(x, w1, b1), w2, b2).reshape(len(x), -1)
        return jax.nn.relu(x @ w3.T + b3) @ w4.T + b4

    return step(network, lenet_data(batch), rate)


def gelu(n: int) -> Any:
    return inference(jax.nn.gelu, gelu_data(n)[:1])


def gelu_training(n: int) -> Any:
    x, g = gelu_data(n)
    return training(jax.nn.gelu, [x], g)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return jax.nn.standardize(x, epsilon=EPSILON) * gamma + beta


def norm_softmax(rows: int, width: int) -> Any:
    return training(lambda *arrays: jax.nn.softmax(layer_norm(*arrays)), *norm_data(rows, width))


def unit(is_train: bool) -> Callable:
    """A convolution with its batch norm."""
    def function(x: Any, stride: int, weight: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        x = jax.lax.conv_general_dilated(x, weight, (stride, stride), [(weight.shape[2] // 2,) * 2] * 2,
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
        if is_train:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        scale = gamma * jax.lax.rsqrt(variance + EPSILON)
        return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]

    return function


def convolutions(is_train: bool) -> Callable:
    def case(batch: int, channels: int, size: int, count: int) -> Any:
        x, parameters, statistics, g = conv_data(batch, channels, size, count)

        def function(*arrays: Any) -> Any:
            *arrays, x = arrays
            return conv_stack(x, arrays[:3 * count], arrays[3 * count:], unit(is_train), jax.nn.relu)

        if is_train:
            return training(function, parameters, g, [*statistics, x])
        return inference(function, [*parameters, *statistics, x])

    return case


def resnet_18(batch: int, size: int) -> Any:
    x, parameters, statistics = resnet_data(batch, size)

    def pool(x: Any) -> Any:
        sides = (0, 0), (0, 0), (1, 1), (1, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), sides)

    def head(x: Any, weight: Any, bias: Any) -> Any:
        return x.mean((2, 3)) @ weight.T + bias

    def function(x: Any, *arrays: Any) -> Any:
        n = len(parameters)
        return resnet(x, arrays[:n], arrays[n:], unit(False), jax.nn.relu, pool, head)

    return inference(function, [x, *parameters, *statistics])


def block(batch: int, tokens: int, width: int, heads: int, ratio: int) -> Any:
    def function(x: Any, *arrays: Any) -> Any:
        gamma, beta, w1, b1, w2, b2, gamma2, beta2, w3, b3, w4, b4 = arrays
        y = layer_norm(x, gamma, beta) @ w1.T + b1
        q, k, v = jnp.moveaxis(y.reshape(batch, tokens, 3, heads, -1), 2, 0)
        x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ w2.T + b2
        y = layer_norm(x, gamma2, beta2) @ w3.T + b3
        return x + jax.nn.gelu(y, approximate=False) @ w4.T + b4

    return training(function, *block_data(batch, tokens, width, ratio))


def attention(is_train: bool) -> Callable:
    def function(*arrays: Any) -> Any:
        return jax.nn.dot_product_attention(*[jnp.swapaxes(x, 1, 2) for x in arrays]).swapaxes(1, 2)

    def case(batch: int, heads: int, tokens: int, size: int) -> Any:
        arrays, g = attention_data(batch, heads, tokens, size)
        return training(function, arrays, g) if is_train else inference(function, arrays)

    return case


def lstm(steps: int, batch: int, hidden: int) -> Any:
    def function(x: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
        def step(states: Any, x: Any) -> Any:
            h, cell = states
            i, f, g, o = jnp.split(x + h @ u.T, 4, axis=1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (h, cell), h

        zeros = jnp.zeros((batch, hidden))
        return jax.lax.scan(step, (zeros, zeros), x @ w.T + (b + c))[1]

    return training(function, *lstm_data(steps, batch, hidden))


def adam(count: int, rate: float) -> Any:
    before, grads = adam_data(count)
    start, update, parameters = optimizers.adam(rate)
    compiled = jax.jit(update, donate_argnums=2)
    state = [0, start([jnp.array(value) for value in before]), [jnp.asarray(g) for g in grads]]

    def run() -> None:
        state[1] = wait(compiled(state[0], state[2], state[1]))
        state[0] += 1

    def check() -> float:
        state[2] = [g * -0.5 for g in state[2]]
        run()
        return total(*(np.asarray(after) - value for after, value in zip(parameters(state[1]), before)))

    return run, check


def eager(n: int, calls: int) -> Any:
    x = jnp.asarray(uniform(n))
    last = [x]

    def run() -> None:
        for _ in range(calls):
            y = x * 2
        last[0] = wait(y)

    return run, lambda: total(last[0])


def eager_gradient(n: int, calls: int) -> Any:
    x, ones = jnp.asarray(uniform(n)), jnp.ones(n)
    last = [x]

    def run() -> None:
        for _ in range(calls):
            _, pull = jax.vjp(lambda x: x * 2, x)
            (last[0],) = pull(ones)
        wait(last[0])

    return run, lambda: total(last[0])


def square(wrap: Callable) -> Callable:
    def case(n: int, calls: int) -> Any:
        x, last, gradient = jnp.asarray(uniform(n)), [], wrap(jax.grad(lambda x: (x * x).sum()))

        def run() -> None:
            for _ in range(calls):
                last[:] = [gradient(x)]
            wait(last[0])

        return run, lambda: total(last[0])

    return case


def import_time() -> Any:
    return lambda: start_time("import jax"), None


def first_result() -> Any:
    return lambda: start_time("import jax; print(jax.numpy.ones(10) * 2)"), None


def deep(x: Any, *parameters: Any) -> Any:
    for w, b in zip(parameters[::2], parameters[1::2]):
        x = jax.nn.relu(x @ w.T + b)
    return x


def memory(is_train: bool) -> Callable:
    def case(batch: int, width: int, count: int) -> Any:
        def both(given: Any, g: Any) -> Any:
            y, pull = jax.vjp(deep, *given)
            return y, pull(g)

        x = jax.ShapeDtypeStruct((batch, width), jnp.float32)
        layer = jax.ShapeDtypeStruct((width, width), jnp.float32), jax.ShapeDtypeStruct((width,), jnp.float32)
        given = x, *layer * count

        def run() -> int:
            lowered = jax.jit(both).lower(given, x) if is_train else jax.jit(deep).lower(*given)
            return lowered.compile().memory_analysis().temp_size_in_bytes

        return run, None

    return case


def memory_peak(batch: int, width: int, count: int) -> Any:
    (x, *parameters), g = deep_data(batch, width, count)
    return training(lambda *arrays: deep(arrays[-1], *arrays[:-1]), parameters, g, [x])


def twice(x: Any) -> Any:
    return x * 2


def copy(x: Any) -> Any:
    return jnp.copy(x)


VERSION = jax.__version__
CASES = {"JAX": {
    "custom_numpy": custom(called_back(twice), called_back(twice)), "traced_arrays": custom(twice, twice),
    "traced_identity": custom(copy, copy), "elementwise": elementwise, "elementwise_training": chain_training,
    "gelu": gelu, "gelu_training": gelu_training, "norm_softmax": norm_softmax, "conv_training": convolutions(True),
    "conv_inference": convolutions(False), "block": block, "attention": attention(False),
    "attention_training": attention(True), "attention_long": attention(False),
    "attention_long_training": attention(True), "lstm": lstm, "resnet_1": resnet_18, "resnet_8": resnet_18,
    "mlp": mlp, "lenet": lenet, "adam": adam, "eager": eager, "eager_gradient": eager_gradient,
    "square_eager": square(lambda function: function), "square_compiled": square(jax.jit), "import": import_time,
    "first_result": first_result, "chain_build": chain_build, "chain": chain_training,
    "memory_training": memory(True), "memory_inference": memory(False), "memory_peak": memory_peak,
}}

"""The workloads in JAX: compiled by ``jax.jit``, but for the eager ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .workloads import chain, lenet_data, mlp_data, start_time, uniform

__all__ = ["CASES", "VERSION"]


def called_back(function: Callable) -> Callable:
    """A function of NumPy arrays as a step of a compiled program."""
    return lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def operator(forward: Callable, backward: Callable) -> Callable:
    made = jax.custom_vjp(forward)
    made.defvjp(lambda x: (forward(x), None), lambda _, g: (backward(g),))
    return made


def training(function: Callable, n: int) -> Any:
    """Forward and backward of a function of n numbers."""
    x, ones = jnp.asarray(uniform(n)), jnp.ones(n)
    last: list[Any] = []

    @jax.jit
    def both(x: Any, g: Any) -> Any:
        y, pull = jax.vjp(function, x)
        return y, pull(g)[0]

    def run() -> None:
        last[:] = jax.block_until_ready(both(x, ones))

    return run, lambda: float(np.add(*last).sum(dtype="float64"))


def custom(forward: Callable, backward: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        made = operator(forward, backward)

        def function(x: Any) -> Any:
            for _ in range(count):
                x = made(x)
            return x

        return training(function, n)

    return case


def elementwise(count: int, n: int) -> Any:
    x = jnp.asarray(uniform(n))
    last: list[Any] = []
    function = jax.jit(lambda x: chain(x, count, jax.nn.relu))

    def run() -> None:
        last[:] = [function(x).block_until_ready()]

    return run, lambda: float(np.sum(last[0], dtype="float64"))


def chain_training(count: int, n: int) -> Any:
    return training(lambda x: chain(x, count, jax.nn.relu), n)


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
    """A step of SGD of a network with the mean cross-entropy; the old parameters' memory is given to the new."""
    x, labels = jnp.asarray(data[0]), jnp.asarray(data[1])
    state = [[jnp.array(value) for value in data[2]]]

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        y = jax.nn.log_softmax(network(x, *parameters))
        return -jnp.take_along_axis(y, labels[:, None], axis=1).mean()

    def update(parameters: Any, x: Any, labels: Any) -> Any:
        return [p - rate * g for p, g in zip(parameters, jax.grad(loss)(parameters, x, labels))]

    compiled = jax.jit(update, donate_argnums=0)

    def run() -> None:
        state[0] = jax.block_until_ready(compiled(state[0], x, labels))

    def check() -> float:
        return sum(float(abs(np.asarray(after) - before).sum(dtype="float64"))
                   for after, before in zip(state[0], data[2]))

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


def eager(n: int, calls: int) -> Any:
    x = jnp.asarray(uniform(n))
    last = [x]

    def run() -> None:
        for _ in range(calls):
            y = x * 2
        last[0] = y.block_until_ready()

    return run, lambda: float(np.sum(last[0], dtype="float64"))


def eager_gradient(n: int, calls: int) -> Any:
    x, ones = jnp.asarray(uniform(n)), jnp.ones(n)
    last = [x]

    def run() -> None:
        for _ in range(calls):
            _, pull = jax.vjp(lambda x: x * 2, x)
            (last[0],) = pull(ones)
        last[0].block_until_ready()

    return run, lambda: float(np.sum(last[0], dtype="float64"))


def import_time() -> Any:
    return lambda: start_time("import jax"), None


def first_result() -> Any:
    return lambda: start_time("import jax; print(jax.numpy.ones(10) * 2)"), None


def memory(is_train: bool) -> Callable:
    def case(batch: int, width: int, count: int) -> Any:
        def network(x: Any, parameters: Any) -> Any:
            for w, b in parameters:
                x = jax.nn.relu(x @ w.T + b)
            return x

        def both(x: Any, parameters: Any, g: Any) -> Any:
            y, pull = jax.vjp(network, x, parameters)
            return y, pull(g)

        x = jax.ShapeDtypeStruct((batch, width), jnp.float32)
        layer = jax.ShapeDtypeStruct((width, width), jnp.float32), jax.ShapeDtypeStruct((width,), jnp.float32)
        given = (x, [layer] * count, x) if is_train else (x, [layer] * count)

        def run() -> int:
            compiled = jax.jit(both if is_train else network).lower(*given).compile()
            return compiled.memory_analysis().temp_size_in_bytes

        return run, None

    return case


def twice(x: Any) -> Any:
    return x * 2


def copy(x: Any) -> Any:
    return jnp.copy(x)


VERSION = jax.__version__
CASES = {"JAX": {
    "custom_arrays": custom(twice, twice), "custom_numpy": custom(called_back(twice), called_back(twice)),
    "custom_identity": custom(copy, copy), "elementwise": elementwise, "elementwise_training": chain_training,
    "mlp": mlp, "lenet": lenet, "eager": eager, "eager_gradient": eager_gradient, "import": import_time,
    "first_result": first_result, "chain_build": chain_build, "chain": chain_training,
    "memory_training": memory(True), "memory_inference": memory(False),
}}

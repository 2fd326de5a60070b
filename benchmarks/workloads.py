"""What is measured: one table of workloads with their sizes, and the data they run on.

Each ``run_<framework>.py`` has a function for every key that the framework can do. It takes the sizes as keywords and
returns two functions without arguments: ``run``, which is timed and returns when the results are there, and ``check``,
which is called after the first run and returns a number that all frameworks must agree on.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from typing import Any, NamedTuple

__all__ = ["WORKLOADS", "Workload", "chain", "start_time", "uniform", "mlp_data", "lenet_data"]


class Workload(NamedTuple):
    """One row of the table."""

    key: str
    title: str
    unit: str  # µs, ms or MB
    sizes: dict[str, Any]
    kind: str = "timed"  # timed; own: run() returns seconds; once: run() returns bytes, the same each time


_MLP = {"batch": 64, "layers": (784, 128, 64, 10), "rate": 0.1}
_DEEP = {"batch": 1024, "width": 512, "count": 100}

WORKLOADS = (
    Workload("custom_arrays", "50 custom operators in a row on 10 numbers, bodies in the framework's own arrays, "
             "forward + backward", "µs", {"count": 50, "n": 10}),
    Workload("custom_numpy", "the same, bodies in NumPy", "µs", {"count": 50, "n": 10}),
    Workload("custom_identity", "20 custom operators that copy 10 numbers, forward + backward", "µs",
             {"count": 20, "n": 10}),
    Workload("elementwise", "200 element-wise operators on 16 numbers, forward", "µs", {"count": 200, "n": 16}),
    Workload("elementwise_training", "200 element-wise operators on 16 numbers, forward + backward", "µs",
             {"count": 200, "n": 16}),
    Workload("mlp", "perceptron 784-128-64-10 with relu, batch 64, cross-entropy, a step of SGD", "µs", _MLP),
    Workload("lenet", "LeNet on 32 pictures of 28 × 28, a step of SGD", "ms", {"batch": 32, "rate": 0.1}),
    Workload("eager", "`x * 2` on 10 numbers, eager, one of 100 calls", "µs", {"n": 10, "calls": 100}),
    Workload("eager_gradient", "`x * 2` on 10 numbers, eager, recorded, with its gradient", "µs",
             {"n": 10, "calls": 100}),
    Workload("import", "import, beyond the start of Python", "ms", {}, "own"),
    Workload("first_result", "import and the numbers of a first `x * 2`, beyond the start of Python", "ms", {}, "own"),
    Workload("chain_build", "10,000 element-wise operators: from nothing to the first gradient", "ms",
             {"count": 10_000, "n": 16}, "own"),
    Workload("chain", "10,000 element-wise operators, forward + backward", "ms", {"count": 10_000, "n": 16}),
    Workload("memory_training", "memory planned for training 100 × (fully connected 512 + relu), batch 1024", "MB",
             _DEEP, "once"),
    Workload("memory_inference", "the same for inference", "MB", _DEEP, "once"),
)


def chain(x: Any, count: int, relu: Any) -> Any:
    """``count`` element-wise operators in a row; the values stay between 0 and 1, and so do the slopes."""
    for i in range(count):
        x = relu(x) if i % 4 == 0 else x * 0.99 if i % 4 == 1 else -x if i % 4 == 2 else x + 1.0
    return x


def start_time(statement: str) -> float:
    """Seconds that a new process takes for a statement beyond starting Python; the least of three each."""
    least = {"pass": float("inf"), statement: float("inf")}
    for code in ("pass", statement) * 3:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        least[code] = min(least[code], time.perf_counter() - begin)
    return least[statement] - least["pass"]


def uniform(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """float32 numbers in [0, scale), the same in every version of NumPy."""
    import numpy as np

    return (np.random.RandomState(seed).uniform(0, scale, shape)).astype("float32")


def _labels(batch: int) -> Any:
    return (uniform(batch, seed=1) * 10).astype("int32")


def _weight(*shape: int, seed: int) -> Any:
    """Weights around 0 that keep the size of what they multiply; outputs come first."""
    fan_in = 1
    for n in shape[1:]:
        fan_in *= n
    return (uniform(*shape, seed=seed) - 0.5) * (4.0 / fan_in ** 0.5)


def mlp_data(batch: int, layers: tuple[int, ...]) -> tuple[Any, Any, list[Any]]:
    """Inputs (batch, n); labels (batch,), ints; weights (out, in) and biases (out,) by turns."""
    parameters = []
    for i, (n, m) in enumerate(itertools.pairwise(layers)):
        parameters += [_weight(m, n, seed=10 + i), uniform(m, seed=20 + i, scale=0.1)]
    return uniform(batch, layers[0]) - 0.5, _labels(batch), parameters


def lenet_data(batch: int) -> tuple[Any, Any, list[Any]]:
    """Pictures (batch, 1, 28, 28); labels (batch,), ints; weights and biases by turns.

    The network: convolution 20 of 5 × 5, relu, maximum of 2 × 2; the same with 50; dense 500, relu; dense 10.
    """
    shapes = (20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)
    parameters = []
    for i, shape in enumerate(shapes):
        parameters += [_weight(*shape, seed=10 + i), uniform(shape[0], seed=20 + i, scale=0.1)]
    return uniform(batch, 1, 28, 28) - 0.5, _labels(batch), parameters

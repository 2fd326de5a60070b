"""The workloads: one table with their sizes, and the data they run on.

Each ``run_<framework>.py`` has a function for every key that the framework can do. It takes the sizes as keywords and
returns two functions without arguments: ``run``, which is timed and returns once the results are available (on a GPU
once the work is queued), and ``check``, which is called after the first run and returns a number that all frameworks
must
agree on.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["EPSILON", "WORKLOADS", "Workload", "adam_data", "attention_data", "block_data", "chain", "conv_data",
           "conv_stack", "deep_data", "gelu_data", "lenet_data", "lstm_data", "mlp_data", "norm_data", "resnet",
           "resnet_data", "start_time", "total", "uniform"]

#: The constant that normalisations add to the variance.
EPSILON = 1e-5


class Workload(NamedTuple):
    """One row of the table."""

    key: str
    title: str
    unit: str  # µs, ms or MB
    sizes: dict[str, Any]
    # own: run() returns seconds; once: run() returns bytes; peak: the peak memory of the process is measured
    kind: str = "timed"
    late: bool = False  # a peer may not finish it


_CUSTOM, _COPIES = {"count": 50, "n": 10}, {"count": 20, "n": 10}
_CHAIN, _LONG = {"count": 200, "n": 16}, {"count": 10_000, "n": 16}
_MLP = {"batch": 64, "layers": (784, 128, 64, 10), "rate": 0.1}
_GELU, _NORM = {"n": 4 * 2 ** 20}, {"rows": 4096, "width": 1024}
_CONV = {"batch": 16, "channels": 32, "size": 32, "count": 6}
_BLOCK = {"batch": 8, "tokens": 128, "width": 256, "heads": 4, "ratio": 4}
_ATTENTION, _LONG_ATTENTION = [{"batch": 1, "heads": 8, "tokens": tokens, "size": 64} for tokens in (1024, 4096)]
_DEEP = {"batch": 1024, "width": 512, "count": 100}

WORKLOADS = (
    Workload("custom_arrays", "50 custom operators in a row on 10 elements, bodies in the framework's own arrays run "
             "as Python in each call, forward + backward", "µs", _CUSTOM),
    Workload("custom_numpy", "50 custom operators in a row on 10 elements, bodies in NumPy run as Python in each "
             "call, forward + backward", "µs", _CUSTOM),
    Workload("custom_identity", "20 custom operators that copy 10 elements, run as Python in each call, forward + "
             "backward", "µs", _COPIES),
    Workload("traced_arrays", "50 custom operators in a row on 10 elements, bodies in the framework's own arrays "
             "traced once, forward + backward", "µs", _CUSTOM),
    Workload("traced_numpy", "50 custom operators in a row on 10 elements, bodies in NumPy traced once, forward + "
             "backward", "µs", _CUSTOM),
    Workload("traced_identity", "20 custom operators that copy 10 elements, traced once, forward + backward",
             "µs", _COPIES),
    Workload("elementwise", "200 element-wise operators on 16 elements, forward", "µs", _CHAIN),
    Workload("elementwise_training", "200 element-wise operators on 16 elements, forward + backward", "µs", _CHAIN),
    Workload("gelu", "tanh-gelu of 4 M elements, forward", "ms", _GELU),
    Workload("gelu_training", "tanh-gelu of 4 M elements, forward + backward", "ms", _GELU),
    Workload("norm_softmax", "layer norm and softmax of 4096 × 1024, forward + backward", "ms", _NORM),
    Workload("conv_training", "six blocks of 3 × 3 convolution, batch norm and relu on 16 × 32 × 32 × 32, forward + "
             "backward", "ms", _CONV),
    Workload("conv_inference", "six blocks of 3 × 3 convolution, batch norm and relu on 16 × 32 × 32 × 32, inference",
             "ms", _CONV),
    Workload("block", "transformer block, batch 8, 128 tokens, width 256, 4 heads, forward + backward", "ms", _BLOCK),
    Workload("attention", "attention with 8 heads of size 64, 1,024 tokens, forward", "ms", _ATTENTION),
    Workload("attention_training", "attention with 8 heads of size 64, 1,024 tokens, forward + backward",
             "ms", _ATTENTION),
    Workload("attention_long", "attention with 8 heads of size 64, 4,096 tokens, forward", "ms", _LONG_ATTENTION),
    Workload("attention_long_training", "attention with 8 heads of size 64, 4,096 tokens, forward + backward",
             "ms", _LONG_ATTENTION),
    Workload("lstm", "LSTM, 32 steps, batch 32, 128 hidden, forward + backward", "ms",
             {"steps": 32, "batch": 32, "hidden": 128}),
    Workload("resnet_1", "ResNet-18 on one image of 224 × 224, inference", "ms", {"batch": 1, "size": 224}),
    Workload("resnet_8", "ResNet-18 on eight images of 224 × 224, inference", "ms", {"batch": 8, "size": 224}),
    Workload("few_rows", "perceptron 784-512-256-10 with relu, batch 4, inference", "µs",
             {"batch": 4, "layers": (784, 512, 256, 10)}),
    Workload("mlp", "perceptron 784-128-64-10 with relu, batch 64: a training step with cross-entropy and SGD",
             "µs", _MLP),
    Workload("layers", "this perceptron made of the framework's layers, loss and optimizer: a training step, compiled",
             "µs", {**_MLP, "compiled": True, "hook": False}),
    Workload("layers_hook", "this perceptron of layers with a backward hook on the first relu: a training step, "
             "compiled", "µs", {**_MLP, "compiled": True, "hook": True}),
    Workload("layers_eager", "this perceptron of layers: a training step, eager",
             "µs", {**_MLP, "compiled": False, "hook": False}),
    Workload("layers_hook_eager", "this perceptron of layers with a backward hook on the first relu: a training "
             "step, eager", "µs", {**_MLP, "compiled": False, "hook": True}),
    Workload("lenet", "LeNet on 32 images of 28 × 28: a training step with SGD", "ms", {"batch": 32, "rate": 0.1}),
    Workload("adam", "the framework's Adam: an update of 200 parameters of 64 to 65,536 elements",
             "ms", {"count": 200, "rate": 1e-3}),
    Workload("eager", "`x * 2` on 10 elements, eager, one of 100 calls", "µs", {"n": 10, "calls": 100}),
    Workload("eager_gradient", "`x * 2` on 10 elements, eager, recorded, with its gradient",
             "µs", {"n": 10, "calls": 100}),
    Workload("square_eager", "the gradient of `x * x` on 4 elements, eager", "µs", {"n": 4, "calls": 100}),
    Workload("square_compiled", "the gradient of `x * x` on 4 elements, compiled", "µs", {"n": 4, "calls": 100}),
    Workload("records", "one of 256 JPEGs of 500 × 375 in a record file: read, decode, resize to 256, crop to 224 × "
             "224", "ms", {"count": 256, "batch": 32}, "own"),
    Workload("import", "import of the framework, without the start of Python", "ms", {}, "own"),
    Workload("first_result", "import of the framework and a first result of `x * 2`, without the start of Python",
             "ms", {}, "own"),
    Workload("chain_build", "10,000 element-wise operators: build the graph and compute the first gradient",
             "ms", _LONG, "own", late=True),
    Workload("chain", "10,000 element-wise operators, forward + backward", "ms", _LONG, late=True),
    Workload("memory_training", "memory that is planned to train 100 × (fully connected 512 + relu), batch 1024",
             "MB", _DEEP, "once"),
    Workload("memory_inference", "memory that is planned for inference of 100 × (fully connected 512 + relu), batch "
             "1024", "MB", _DEEP, "once"),
    Workload("memory_peak", "memory of the process that trains 50 × (fully connected 512 + relu), batch 2048",
             "MB", {"batch": 2048, "width": 512, "count": 50}, "peak"),
)

# ------------------------------------------------------------------------------------------------- networks


def chain(x: Any, count: int, relu: Any) -> Any:
    """``count`` element-wise operators in a row; values and derivatives remain between 0 and 1."""
    for i in range(count):
        x = relu(x) if i % 4 == 0 else x * 0.99 if i % 4 == 1 else -x if i % 4 == 2 else x + 1.0
    return x


def conv_stack(x: Any, parameters: Sequence[Any], statistics: Sequence[Any], unit: Callable, relu: Callable) -> Any:
    """Convolutions with batch norm and relu: ``unit(x, stride, weight, gamma, beta, mean, variance)`` is one."""
    for arrays in _units(parameters, statistics):
        x = relu(unit(x, 1, *arrays))
    return x


def resnet(x: Any, parameters: Sequence[Any], statistics: Sequence[Any], unit: Callable, relu: Callable,
           pool: Callable, head: Callable) -> Any:
    """ResNet-18. ``pool`` takes maxima of 3 × 3, half as many; ``head(x, weight, bias)`` means and a dense layer.

    K. He et al., Deep residual learning for image recognition, 2016.
    """
    units = _units(parameters[:-2], statistics)
    x = pool(relu(unit(x, 2, *next(units))))
    for i in range(8):
        stride = 2 if i in (2, 4, 6) else 1
        y = relu(unit(x, stride, *next(units)))
        y = unit(y, 1, *next(units))
        x = relu(y + (unit(x, 2, *next(units)) if stride == 2 else x))
    return head(x, *parameters[-2:])


def _units(parameters: Sequence[Any], statistics: Sequence[Any]) -> Any:
    """Three parameters and two statistics at a time."""
    return zip(*[iter(parameters)] * 3, *[iter(statistics)] * 2)


# ------------------------------------------------------------------------------------------------- running


def start_time(statement: str) -> float:
    """Seconds that a new process takes for a statement, beyond starting Python: the minimum of at least three runs of
    each in turn, and of more within a second."""
    least = {"pass": float("inf"), statement: float("inf")}
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < 1:
        for code in least:
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
            least[code] = min(least[code], time.perf_counter() - begin)
        count += 1
    return least[statement] - least["pass"]


def total(*arrays: Any) -> float:
    """The check value of outputs and gradients: the sum of the absolute values of all elements."""
    import numpy as np

    return sum(float(np.abs(array).sum(dtype="float64")) for array in arrays)


# ------------------------------------------------------------------------------------------------- data


def uniform(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Random float32 values in [0, scale), the same in every version of NumPy."""
    import numpy as np

    return (np.random.RandomState(seed).uniform(0, scale, shape)).astype("float32")


def _labels(batch: int) -> Any:
    return (uniform(batch, seed=1) * 10).astype("int32")


def _weight(*shape: int, seed: int) -> Any:
    """Weights around 0 that preserve the size of their inputs; outputs are the first axis."""
    fan_in = 1
    for n in shape[1:]:
        fan_in *= n
    return (uniform(*shape, seed=seed) - 0.5) * (4.0 / fan_in ** 0.5)


def mlp_data(batch: int, layers: tuple[int, ...]) -> tuple[Any, Any, list[Any]]:
    """Inputs (batch, n); labels (batch,), ints; weights (out, in) and biases (out,) alternating."""
    parameters = []
    for i, (n, m) in enumerate(itertools.pairwise(layers)):
        parameters += [_weight(m, n, seed=10 + i), uniform(m, seed=20 + i, scale=0.1)]
    return uniform(batch, layers[0]) - 0.5, _labels(batch), parameters


def lenet_data(batch: int) -> tuple[Any, Any, list[Any]]:
    """Images (batch, 1, 28, 28); labels (batch,), ints; weights and biases alternating.

    The network: convolution 20 of 5 × 5, relu, maximum of 2 × 2; the same with 50; dense 500, relu; dense 10.
    """
    shapes = (20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)
    parameters = []
    for i, shape in enumerate(shapes):
        parameters += [_weight(*shape, seed=10 + i), uniform(shape[0], seed=20 + i, scale=0.1)]
    return uniform(batch, 1, 28, 28) - 0.5, _labels(batch), parameters


def gelu_data(n: int) -> tuple[Any, Any]:
    """Values between -4 and 4; the gradient of the result."""
    return uniform(n, scale=8.0) - 4, uniform(n, seed=1)


def norm_data(rows: int, width: int) -> tuple[list[Any], Any]:
    """Inputs, gamma and beta; the gradient of the result."""
    return [uniform(rows, width), *_norm(width, seed=10)], uniform(rows, width, seed=1)


def conv_data(batch: int, channels: int, size: int, count: int) -> tuple[Any, list[Any], list[Any], Any]:
    """Inputs (batch, channels, size, size); parameters and statistics of ``conv_stack``; the result's gradient."""
    parameters, statistics = _conv_parameters([(channels, channels, 3, 3)] * count)
    shape = batch, channels, size, size
    return uniform(*shape) - 0.5, parameters, statistics, uniform(*shape, seed=1) - 0.5


def resnet_data(batch: int, size: int) -> tuple[Any, list[Any], list[Any]]:
    """Images (batch, 3, size, size); the parameters and statistics of ``resnet``."""
    shapes = [(64, 3, 7, 7), *[(64, 64, 3, 3)] * 4]
    for n in (128, 256, 512):
        shapes += [(n, n // 2, 3, 3), (n, n, 3, 3), (n, n // 2, 1, 1), (n, n, 3, 3), (n, n, 3, 3)]
    parameters, statistics = _conv_parameters(shapes)
    head = [_weight(1000, 512, seed=2), uniform(1000, seed=3, scale=0.1)]
    return uniform(batch, 3, size, size) - 0.5, parameters + head, statistics


def block_data(batch: int, tokens: int, width: int, ratio: int) -> tuple[list[Any], Any]:
    """Inputs (batch, tokens, width) and the parameters of a transformer block; the gradient of its result.

    The block: norm, dense to queries, keys and values, softmax attention, dense, added to the input; norm, dense to
    ``ratio`` times the width, gelu, dense, added.
    """
    parameters = []
    for i, (n, m) in enumerate([(width, 3 * width), (width, width), (width, ratio * width), (ratio * width, width)]):
        if i in (0, 2):
            parameters += _norm(width, seed=30 + 10 * i)
        parameters += [_weight(m, n, seed=10 + i), uniform(m, seed=20 + i, scale=0.1)]
    shape = batch, tokens, width
    return [uniform(*shape) - 0.5, *parameters], uniform(*shape, seed=1) - 0.5


def attention_data(batch: int, heads: int, tokens: int, size: int) -> tuple[list[Any], Any]:
    """Queries, keys and values (batch, heads, tokens, size); the gradient of the result."""
    arrays = [uniform(batch, heads, tokens, size, seed=10 + i, scale=4.0) - 2.0 for i in range(3)]
    return arrays, uniform(batch, heads, tokens, size, seed=1) - 0.5


def lstm_data(steps: int, batch: int, hidden: int) -> tuple[list[Any], Any]:
    """Inputs (steps, batch, hidden), weights of inputs and of states, their biases; the gradient of the result.

    Rows of weights and biases are those of the gates input, forget, cell, output.
    """
    weights = [_weight(4 * hidden, hidden, seed=10 + i) for i in range(2)]
    biases = [uniform(4 * hidden, seed=20 + i, scale=0.1) for i in range(2)]
    shape = steps, batch, hidden
    return [uniform(*shape) - 0.5, *weights, *biases], uniform(*shape, seed=1) - 0.5


def adam_data(count: int) -> tuple[list[Any], list[Any]]:
    """Parameters and their gradients."""
    shapes = [shape for shape, _ in zip(itertools.cycle([(256, 256), (256,), (64, 64, 3, 3), (64,)]), range(count))]
    return ([uniform(*shape, seed=10 + i) - 0.5 for i, shape in enumerate(shapes)],
            [uniform(*shape, seed=1000 + i) - 0.5 for i, shape in enumerate(shapes)])


def deep_data(batch: int, width: int, count: int) -> tuple[list[Any], Any]:
    """Inputs (batch, width), weights and biases alternating; the gradient of the result."""
    parameters = []
    for i in range(count):
        parameters += [_weight(width, width, seed=10 + i), uniform(width, seed=1000 + i, scale=0.1)]
    return [uniform(batch, width) - 0.5, *parameters], uniform(batch, width, seed=1) - 0.5


def _norm(width: int, seed: int) -> list[Any]:
    return [uniform(width, seed=seed) + 0.5, uniform(width, seed=seed + 1) - 0.5]


def _conv_parameters(shapes: list[tuple[int, ...]]) -> tuple[list[Any], list[Any]]:
    """Weight, gamma and beta alternating; mean and variance alternating."""
    parameters, statistics = [], []
    for i, shape in enumerate(shapes):
        parameters += [_weight(*shape, seed=100 + i), *_norm(shape[0], seed=200 + 2 * i)]
        statistics += [uniform(shape[0], seed=300 + i) - 0.5, uniform(shape[0], seed=400 + i) + 0.5]
    return parameters, statistics

"""The workloads in MindSpore: eager, and through ``mindspore.jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms

from .mindspore_api import cases, sgd
from .workloads import lenet_data, start_time

__all__ = ["CASES", "VERSION"]


def mlp(compiled: bool) -> Callable:
    return lambda **sizes: CELLS["layers"](**sizes, compiled=compiled, hook=False)


def lenet(compiled: bool) -> Callable:
    def block(n: int, m: int) -> list[Any]:
        return [ms.nn.Conv2d(n, m, 5, pad_mode="valid", has_bias=True), ms.nn.ReLU(), ms.nn.MaxPool2d(2, 2)]

    def case(batch: int, rate: float) -> Any:
        network = ms.nn.SequentialCell(*block(1, 20), *block(20, 50), ms.nn.Flatten(), ms.nn.Dense(800, 500),
                                       ms.nn.ReLU(), ms.nn.Dense(500, 10))
        return sgd(ms, network, lenet_data(batch), rate, compiled, ms.runtime.synchronize)

    return case


def import_time() -> Any:
    return lambda: start_time("import mindspore"), None


def first_result() -> Any:
    return lambda: start_time("import mindspore as ms; print((ms.Tensor([1.0] * 10) * 2).asnumpy())"), None


VERSION = ms.__version__
CELLS = cases(ms, ms.runtime.synchronize)
CASES = {  # compiled, MindSpore leaves out the hook
    "MindSpore": {"mlp": mlp(False), "layers_eager": CELLS["layers_eager"],
                  "layers_hook_eager": CELLS["layers_hook_eager"], "lenet": lenet(False),
                  "square_eager": CELLS["square_eager"], "import": import_time, "first_result": first_result},
    "MindSpore jit": {"mlp": mlp(True), "layers": CELLS["layers"], "lenet": lenet(True),
                      "square_compiled": CELLS["square_compiled"]},
}

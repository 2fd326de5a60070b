"""Optimizers by name, and a program that writes their pickled states and the weights after more steps.

``python tests/recorded/mxnet_states.py`` under MXNet 1.9.1 writes ``mxnet_states.json``.
"""

from __future__ import annotations

import json
import os
from typing import Any

FILE = os.path.join(os.path.dirname(__file__), "mxnet_states.json")

#: Name -> optimizer, settings, dtype.
OPTIMIZERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "adam": ("adam", {"learning_rate": 0.1}, "float32"),
    "nadam": ("nadam", {"learning_rate": 0.1}, "float32"),
    "sgd": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": True}, "float16"),
    "lars": ("lars", {"learning_rate": 0.1, "momentum": 0.9, "eta": 0.5, "multi_precision": True}, "float16"),
    "rmsprop": ("rmsprop", {"learning_rate": 0.1, "centered": True}, "float32"),
}


def steps(nd: Any, updater: Any, weight: Any, begin: int, end: int) -> None:
    """Updates of one weight of two elements."""
    for step in range(begin, end):
        updater(0, nd.array([0.5 + step, -0.25 * step], dtype=weight.dtype), weight)


def main() -> None:
    import mxnet as mx

    recorded = {}
    for name, (optimizer, settings, dtype) in OPTIMIZERS.items():
        updater = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **settings))
        weight = mx.nd.array([1.5, -2.0], dtype=dtype)
        steps(mx.nd, updater, weight, 0, 3)
        weights = [weight.asnumpy().tolist()]
        states = updater.get_states(dump_optimizer=True)
        steps(mx.nd, updater, weight, 3, 6)
        recorded[name] = {"states": states.hex(), "weights": [*weights, weight.asnumpy().tolist()]}
    with open(FILE, "w") as file:
        json.dump(recorded, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()

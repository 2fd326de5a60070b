"""Names that MXNet 1.9.1 has in its modules, and the methods of its classes.

They are kept in ``mxnet_names.json``, which ``test_mxnet_names.py`` compares with. This file writes it where MXNet
is installed: ``python tests/recorded/public_names.py tests/recorded/mxnet_names.json``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import types
import warnings

#: Modules other than Gluon, sparse storage, the interface of NumPy, and tools that make converters and documentation.
MODULES = [
    "attribute", "autograd", "base", "callback", "context", "contrib", "contrib.amp", "contrib.autograd",
    "contrib.io", "contrib.quantization", "contrib.svrg_optimization", "contrib.tensorboard", "contrib.text",
    "contrib.text.embedding", "contrib.text.utils", "contrib.text.vocab", "engine", "error", "executor",
    "executor_manager", "image", "initializer", "io", "kvstore", "libinfo", "library", "log", "lr_scheduler",
    "metric", "model", "module", "module.base_module", "module.bucketing_module", "module.executor_group",
    "module.module", "module.python_module", "module.sequential_module", "monitor", "name", "ndarray",
    "ndarray.contrib", "ndarray.image", "ndarray.linalg", "ndarray.random", "notebook.callback", "operator",
    "optimizer", "profiler", "random", "recordio", "registry", "rnn", "rnn.rnn_cell", "rtc", "runtime", "symbol",
    "symbol.contrib", "symbol.image", "symbol.linalg", "symbol.random", "test_utils", "util", "visualization",
]


def members(cls: type) -> list[str]:
    """Public methods and properties of a class, with those inherited from MXNet's classes."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("mxnet")]
    return sorted({name for base in own for name, value in vars(base).items() if not name.startswith("_")
                   and (callable(value) or isinstance(value, (property, staticmethod, classmethod)))})


def names(module: types.ModuleType) -> dict[str, list[str]]:
    """Public names that a module defines, and the members of its classes."""
    found, listed = {}, getattr(module, "__all__", ())
    for name, value in sorted(vars(module).items()):
        where = getattr(value, "__module__", None)
        if name.startswith("_") or (isinstance(value, types.ModuleType) and not value.__name__.startswith("mxnet")):
            continue
        own = value.__name__.startswith(f"{module.__name__}.") if isinstance(value, types.ModuleType) else \
            name in listed or str(where).startswith(module.__name__) or isinstance(value, (int, tuple, str, dict))
        if isinstance(value, tuple) and name.endswith("_types") and module.__name__ != "mxnet.base":
            continue  # imported from there
        if own or module.__name__ == "mxnet":
            found[name] = members(value) if inspect.isclass(value) else []
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    recorded = {"": names(importlib.import_module("mxnet"))}
    recorded.update({name: names(importlib.import_module(f"mxnet.{name}")) for name in MODULES})
    with open(sys.argv[1], "w") as target:
        json.dump(recorded, target, separators=(",", ":"), sort_keys=True)
        target.write("\n")

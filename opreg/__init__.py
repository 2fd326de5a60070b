"""opreg: an operator registry and symbolic executor for people who write their own operators.

>>> import opreg as mx
>>> x = mx.sym.Variable("x")
>>> executor = (x * 2 + 1).bind(mx.cpu(), {"x": mx.nd.array([1, 2])})
>>> executor.forward()[0].asnumpy()
array([3., 5.], dtype=float32)

This module is the front door: its names are opened at first use, and importing it loads nothing.
"""

from __future__ import annotations

import importlib

from . import aliases as _aliases
from .core import slots as _slots

TYPE_CHECKING = False  # the module typing takes longer to load than all of this one
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

# Public name -> module, and the name in it; without one the module itself.
_DOORS: dict[str, tuple[str, str | None]] = {
    "nd": ("opreg.ndarray", None),
    "ndarray": ("opreg.ndarray", None),
    "sym": ("opreg.symbol", None),
    "symbol": ("opreg.symbol", None),
    "operator": ("opreg.custom.operator", None),
    "registry": ("opreg.core.registry", None),
    "autograd": ("opreg.ndarray.autograd", None),
    "random": ("opreg.ndarray.random", None),
    "rnd": ("opreg.ndarray.random", None),
    "context": ("opreg.context", None),
    "Context": ("opreg.ndarray.context", "Context"),
    "cpu": ("opreg.ndarray.context", "cpu"),
    "gpu": ("opreg.ndarray.context", "gpu"),
    "cpu_pinned": ("opreg.ndarray.context", "cpu_pinned"),
    "current_context": ("opreg.ndarray.context", "current_context"),
    "num_gpus": ("opreg.ndarray.context", "num_gpus"),
    "NDArray": ("opreg.ndarray", "NDArray"),
    "Symbol": ("opreg.symbol", "Symbol"),
    "executor": ("opreg.symbol.executor", None),
    "Executor": ("opreg.symbol.executor", "Executor"),
    "engine": ("opreg.engine", None),
    "rtc": ("opreg.rtc", None),
    "caches": ("opreg.core.cache", "caches"),
    "name": ("opreg.symbol.naming", None),
    "attribute": ("opreg.symbol.naming", None),
    "AttrScope": ("opreg.symbol.naming", "AttrScope"),
    "base": ("opreg.base", None),
    "contrib": ("opreg.contrib", None),
    "errors": ("opreg.errors", None),
    "error": ("opreg.error", None),
    "MXNetError": ("opreg.errors", "MXNetError"),
    "OpError": ("opreg.errors", "OpError"),
    "viz": ("opreg.pictures", None),
    "visualization": ("opreg.pictures", None),
    "init": ("opreg.train.initializer", None),
    "initializer": ("opreg.train.initializer", None),
    "optimizer": ("opreg.train.optimizer", None),
    "opt": ("opreg.train.optimizer", None),
    "lr_scheduler": ("opreg.train.lr_scheduler", None),
    "misc": ("opreg.train.misc", None),
    "metric": ("opreg.train.metric", None),
    "io": ("opreg.train.io", None),
    "mindrecord": ("opreg.data.mindrecord", None),
    "recordio": ("opreg.data.recordio", None),
    **dict.fromkeys(("image", "img"), ("opreg.data.image", None)),
    "mod": ("opreg.train.module", None),
    "module": ("opreg.train.module", None),
    "model": ("opreg.train.model", None),
    "kv": ("opreg.train.kvstore", None),
    "kvstore": ("opreg.train.kvstore", None),
    "executor_manager": ("opreg.train.executor_manager", None),
    "callback": ("opreg.train.callback", None),
    "monitor": ("opreg.train.monitor", None),
    "mon": ("opreg.train.monitor", None),
    "rnn": ("opreg.train.rnn", None),
    "notebook": ("opreg.notebook", None),
    "test_utils": ("opreg.train.test_utils", None),
    "profiler": ("opreg.profiler", None),
    "Profiler": ("opreg.profiler", "Profiler"),
    "distributed": ("opreg.distributed", None),
    "communication": ("opreg.nn.communication", None),
    "runtime": ("opreg.runtime", None),
    "log": ("opreg.log", None),
    "util": ("opreg.util", None),
    **{name: ("opreg.util", name) for name in (
        "np_shape", "is_np_shape", "set_np_shape", "use_np_shape",
        "is_np_array", "np_array", "use_np", "use_np_array")},
    "gluon": ("opreg.gluon", None),
    "nn": ("opreg.nn", None),
    "onnx": ("opreg.onnx", None),
    "ops": ("opreg.nn.ops", None),
    "common": ("opreg.common", None),
    "dtype": ("opreg.cells.dtype", None),
    "numpy": ("opreg.nn.numpy", None),
    "np": ("opreg.np", None),
    **dict.fromkeys(("npx", "numpy_extension"), ("opreg.npx", None)),
    "dataset": ("opreg.nn.dataset", None),
    "mint": ("opreg.nn.mint", None),
    "experimental": ("opreg.nn.experimental", None),
    **{name: ("opreg.cells.tensor", name) for name in ("Tensor", "tensor", "from_numpy", "is_tensor")},
    "_Function": ("opreg.cells.function", "_Function"),
    **{name: ("opreg.cells.parameter", name) for name in ("Parameter", "ParameterTuple")},
    **{name: ("opreg.cells.context_settings", name) for name in (
        "set_context", "get_context", "GRAPH_MODE", "PYNATIVE_MODE", "STRICT", "COMPATIBLE", "LAX")},
    **{name: ("opreg.nn.parallel", name) for name in (
        "ParallelMode", "set_auto_parallel_context", "get_auto_parallel_context", "reset_auto_parallel_context")},
    "parallel": ("opreg.nn.strategies", None),
    "_checkparam": ("opreg.nn.checkparam", None),
    **{name: ("opreg.nn.strategies", name) for name in (
        "set_algo_parameters", "get_algo_parameters", "reset_algo_parameters")},
    **{name: ("opreg.cells.grad", name) for name in (
        "grad", "value_and_grad", "get_grad", "no_grad")},
    "amp": ("opreg.nn.amp", None),
    **{name: ("opreg.cells.jacobian", name) for name in ("jvp", "vjp", "jacrev", "jacfwd")},
    "vmap": ("opreg.cells.vmap", "vmap"),
    **{name: (module, name) for name, module in _aliases.TRAINING.items()},
    "train": ("opreg.train", None),
    "mutable": ("opreg.cells.tree", "mutable"),
    **{name: ("opreg.cells.sparse", name) for name in ("COOTensor", "CSRTensor", "RowTensor", "SparseTensor")},
    "_no_grad": ("opreg.cells.grad", "no_grad"),
    **{name: ("opreg.nn.compiler_settings", name) for name in (
        "JitConfig", "constexpr", "jit_class", "lazy_inline", "recompute", "set_deterministic", "set_device",
        "set_recursion_limit")},
    "ms_class": ("opreg.nn.compiler_settings", "jit_class"),
    **{name: ("opreg.cells.jit", name) for name in ("jit", "ms_function")},
    **{name: ("opreg.cells.initializer", name) for name in ("set_seed", "get_seed")},
    **{name: ("opreg.nn.generator", name) for name in (
        "get_rng_state", "set_rng_state", "manual_seed", "initial_seed", "seed")},
    "export": ("opreg.onnx.mindspore_export", "export"),
    **{name: ("opreg.nn.checkpoint", name) for name in ("save_checkpoint", "load_checkpoint", "load_param_into_net")},
    **{name: ("opreg.cells.dtype", name) for name in (
        "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
        "uint64", "bool_", "half", "single", "double", "float_", "byte", "short", "intc", "long", "intp", "int_",
        "ubyte", "ushort", "uintc", "uintp", "uint", "complex64", "complex128", "cfloat", "cdouble", "string",
        "dtype_to_nptype", "dtype_to_pytype", "pytype_to_dtype")},
}

#: Names of MXNet that are missing here, each with its replacement.
_ABSENT = {
    "np_symbol": "symbols of np are what blocks make of np.ndarray",
    "library": "write operators with operator.CustomOp or operator.define; there is no library in C to load into",
    "libinfo": "there is no library in C; mx.__version__ and mx.runtime say what is installed",
    "tvmop": "operators are compiled by numba where it is installed",
    **dict.fromkeys(("torch", "th"),
                    "operator.CustomOp calls what it likes, PyTorch, too; nd.from_dlpack takes tensors"),
    **dict.fromkeys(("symbol_doc", "ndarray_doc"), "help(mx.nd.relu) shows what an operator does"),
}

#: The same for MindSpore: missing modules, and missing names of modules.
_ABSENT_OF_MINDSPORE = {
    "dataset.audio": "dataset.GeneratorDataset takes functions of Python",
    **{f"dataset.vision.{name}": "dataset.GeneratorDataset takes frames that another library reads"
       for name in ("DecodeVideo", "VideoDecoder", "read_video")},
    "_c_expression": "it is internal to MindSpore",
    **dict.fromkeys(("set_ps_context", "context.set_ps_context"),
                    "each process has all weights; see docs/distributed.md"),
    **dict.fromkeys(("nn.thor", "nn.optim.thor", "train.train_thor"), "nn.Momentum and nn.Lamb are optimizers to take"),
    "hub": "load_checkpoint reads files of weights",
    "scipy": "SciPy, in an operator of one's own",
    "boost": "each process trains a whole network, by nn.TrainOneStepCell or Model",
    "hal": "num_gpus() and gpu(0) are what devices are asked by",
    "rewrite": "cell.to_symbol() is a graph",
    "load": "cell.to_symbol() is a graph, which is saved",
}

# Modules that fill the slots of lower floors; each is imported when its empty slot is read.
_slots.install({
    "operators": ("opreg.builtin", "opreg.backends.operators"),
    "users' operators": ("opreg.custom.operator",),
    "arrays": ("opreg.ndarray",),
    "bodies": ("opreg.custom.reads", "opreg.ndarray.bodies"),
    "npz": ("opreg.ndarray.npz_file",),
    "safetensors": ("opreg.ndarray.safetensors_file",),
    "PyTorch's files": ("opreg.ndarray.torch_file",),
    "MindSpore's files": ("opreg.ndarray.mindspore_file",),
    "graphs": ("opreg.symbol", "opreg.symbol.show"),
    "methods of tensors": ("opreg.nn",),
    "backends": ("opreg.backends.passes",),
    "training": ("opreg.train.updater",),
    "initializers": ("opreg.train.initializer",),
    "checks": ("opreg.testing.checking",),
    "other libraries": ("opreg.interop.torch_operators", "opreg.interop.jax_functions"),
    "pictures": ("opreg.pictures",),
    "observers": ("opreg.cells.graph_reads",),
    "transforms": ("opreg.cells.vmap", "opreg.cells.jacobian"),
    "np": ("opreg.np",),
})
_aliases.install((door, module) for door, (module, name) in _DOORS.items() if name is None)
for _library, _page, _names in (("MXNet", "mxnet", _ABSENT), ("MindSpore", "mindspore_names", _ABSENT_OF_MINDSPORE)):
    _aliases.refuse(_library, {
        f"opreg.{name}": f"{name!r} of {_library} is no part of opreg: {instead}. See docs/{_page}.md"
        for name, instead in _names.items()})

#: Names that need an optional library, each with it. Without the library ``import *`` leaves the name out.
_NEEDS = {"bfloat16": "ml_dtypes"}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # found when it is asked for, since looking for libraries takes time
        return ["__version__", *_open()]
    why = _aliases.refusal_reason(f"opreg.{name}")
    if why:
        raise AttributeError(why)
    try:
        module, attribute = _DOORS[_aliases.script_door(name)]
    except KeyError:
        from .core.other_names import PACKAGES
        from .errors import did_you_mean

        advice = f": write {PACKAGES[name]}" if name in PACKAGES else f". {did_you_mean(name, _DOORS)}"
        raise AttributeError(f"opreg has no {name!r}{advice}") from None
    value: Any = importlib.import_module(module)
    value = _aliases.tidy(value) if attribute is None else getattr(value, attribute)
    globals()[name] = value
    return value


def _open() -> list[str]:
    """The names of this module that can be loaded, since the libraries that they need are installed."""
    from importlib.util import find_spec

    return [name for name in _DOORS if name not in _NEEDS or find_spec(_NEEDS[name])]


def __dir__() -> list[str]:
    return sorted(name for name in _open() if not name.startswith("_"))

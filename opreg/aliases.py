"""Modules under the names that MXNet and MindSpore have for them: ``import opreg.io``, ``opreg.common.parameter``.

Every alias is the one module itself under a second name: importing it makes no second copy of a class.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # the module typing takes longer to load than all of this one
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType, ModuleType
    from typing import Any

__all__ = ["TRAINING", "install", "refuse", "set_library", "refusal_reason", "tidy", "inner", "module_below", "adopt"]

#: Modules below ``ops`` in MindSpore: ``ops.composite.base``, ``ops.operations.math_ops``.
_FILES_OF_OPS = ("base", "array_func", "array_ops", "clip_func", "comm_ops", "control_ops", "custom_ops",
                 "debug_func", "debug_ops", "image_ops", "linalg_func", "linalg_ops", "math_func", "math_ops",
                 "nn_func", "nn_ops", "other_func", "other_ops", "parameter_func", "random_func", "random_ops",
                 "_grad_ops", "_inner_ops", "_sequence_ops", "auto_generate", "gen_ops_prim", "gen_ops_def")

#: Names in MindSpore's ``train``, and the module that has each here.
TRAINING = {
    **dict.fromkeys(("Callback", "CheckpointConfig", "DatasetHelper", "EarlyStopping", "History", "LambdaCallback",
                     "LearningRateScheduler", "LossMonitor", "Model", "ModelCheckpoint", "ReduceLROnPlateau",
                     "RunContext", "SummaryCollector", "SummaryRecord", "TimeMonitor", "data_sink"),
                    "opreg.nn.model"),
    **dict.fromkeys(("Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice",
                     "F1", "Fbeta", "HausdorffDistance", "Loss", "MAE", "MSE", "MeanSurfaceDistance", "Metric",
                     "OcclusionSensitivity", "Perplexity", "Precision", "ROC", "Recall", "RootMeanSquareDistance",
                     "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc",
                     "get_metric_fn", "names", "rearrange_inputs"), "opreg.nn.metrics"),
    **dict.fromkeys(("DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "build_train_network"),
                    "opreg.nn.amp"),
}
_TRAINING_NAMES = {name: f"{module}:{name}" for name, module in TRAINING.items()}

#: Names of modules that are no doors of ``opreg``, by package -> ``module``, or ``module:attribute``.
_DEEPER = {
    "opreg._extends": {"parse": "opreg.nn.compiler_settings"},
    "opreg.common": {"parameter": "opreg.cells.parameter", "tensor": "opreg.cells.tensor",
                     "seed": "opreg.cells.initializer", "generator": "opreg.nn.generator",
                     "_grad_function": "opreg.cells.function", "hook_handle": "opreg.cells.handles",
                     "jit_config": "opreg.nn.compiler_settings", "recompute": "opreg.nn.compiler_settings",
                     "_stub_tensor": "opreg.common.stub_tensor"},
    "opreg.contrib": {"onnx": "opreg.onnx",
                      **{name: f"opreg.contrib:{name}" for name in ("nd", "ndarray", "sym", "symbol")}},
    "opreg.core.registry": {name: f"opreg.train.named:{name}" for name in (
        "get_registry", "get_register_func", "get_alias_func", "get_create_func")},
    "opreg.data.image": {"image": "opreg.data.image", **dict.fromkeys(("det", "detection"), "opreg.data.detection")},
    "opreg.gluon.contrib.nn": {"basic_layers": "opreg.gluon.contrib.nn"},
    "opreg.gluon.contrib.data": {"sampler": "opreg.gluon.contrib.data"},
    "opreg.gluon.contrib.cnn": {"conv_layers": "opreg.gluon.contrib.cnn"},
    "opreg.gluon.contrib.rnn": dict.fromkeys(("rnn_cell", "conv_rnn_cell"), "opreg.gluon.contrib.rnn"),
    "opreg.nn": {"probability": "opreg.nn.probability", "cell": "opreg.cells.cell",
                 "grad": "opreg.cells.grad", "layer": "opreg.nn.layers",
                 "loss": "opreg.nn.losses", "wrap": "opreg.nn.train",
                 "learning_rate_schedule": "opreg.nn.optim.schedule", "dynamic_lr": "opreg.nn.optim.schedule"},
    "opreg.nn.layers": {"container": "opreg.nn.layers.containers", "normalization": "opreg.nn.layers.norm",
                        "rnns": "opreg.nn.layers.recurrent", "rnn_cells": "opreg.nn.layers.recurrent",
                        "transformer": "opreg.nn.layers.attention",
                        **dict.fromkeys(("dense", "embedding", "image", "padding"), "opreg.nn.layers")},
    "opreg.nn.losses": {"loss": "opreg.nn.losses", "_Loss": "opreg.nn.losses:LossBase"},  # MXNet's old name of Loss
    "opreg.nn.ops": {**dict.fromkeys(("operations", "functional", "composite", "function", *_FILES_OF_OPS),
                                     "opreg.nn.ops"), "grad": "opreg.nn.ops:grad",
                     "_primitive_cache": "opreg.nn.ops.primitive", "Tensor": "opreg.cells.tensor:Tensor"},
    "opreg.nn.ops:grad": {"grad_func": "opreg.nn.grad_func"},
    "opreg.nn.optim": dict.fromkeys(("ada_grad", "adadelta", "adafactor", "adam", "adamax", "asgd", "ftrl", "lamb",
                                     "lazyadam", "momentum", "proximal_ada_grad", "rmsprop", "rprop", "sgd"),
                                    "opreg.nn.optim"),
    "opreg.nn.train": {"cell_wrapper": "opreg.nn.train", "grad_reducer": "opreg.nn.parallel",
                       "loss_scale": "opreg.nn.loss_scale",
                       **{name: f"opreg.nn.loss_scale:{name}" for name in (
                           "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell")},
                       "DistributedGradReducer": "opreg.nn.parallel:DistributedGradReducer"},
    "opreg.nn.dataset": dict.fromkeys(("engine", "core", "datasets"), "opreg.nn.dataset"),
    "opreg.nn.dataset.text": dict.fromkeys(("transforms", "utils"), "opreg.nn.dataset.text"),
    "opreg.nn.dataset.transforms": dict.fromkeys(("c_transforms", "py_transforms", "transforms"),
                                                 "opreg.nn.dataset.transforms"),
    "opreg.nn.dataset.vision": dict.fromkeys(("c_transforms", "py_transforms", "transforms", "utils"),
                                             "opreg.nn.dataset.vision"),
    "opreg.nn.strategies": dict.fromkeys(("_utils", "_auto_parallel_context"), "opreg.nn.strategies"),
    "opreg.nn.communication": {"management": "opreg.nn.communication"},
    "opreg.onnx.onnx2mx": dict.fromkeys(("import_model", "import_to_gluon"), "opreg.onnx.importing"),
    "opreg.onnx.mx2onnx": {"_export_model": "opreg.onnx.exporting"},
    "opreg.profiler": {"profiling": "opreg.profiler"},
    "opreg.train": {"_utils": "opreg.train.folders", "dataset_helper": "opreg.nn.model.feeding",
                    **dict.fromkeys(("amp", "loss_scale_manager"), "opreg.nn.amp"),
                    "serialization": "opreg.nn.checkpoint", "summary": "opreg.nn.model.summaries",
                    "metrics": "opreg.nn.metrics", **_TRAINING_NAMES,
                    **{name: f"opreg.train.{name}" for name in ("callback", "model")},
                    **{name: f"opreg.nn.checkpoint:{name}" for name in (
                        "save_checkpoint", "load_checkpoint", "load_param_into_net")},
                    "export": "opreg.onnx.mindspore_export:export"},
    "opreg.nn.checkpoint": {"export": "opreg.onnx.mindspore_export:export"},
    "opreg.train.callback": {
        **_TRAINING_NAMES, "_InternalCallbackParam": "opreg.nn.model.callback:Params",
        "_handle_loss": "opreg.nn.model.callback:loss_of",
        **dict.fromkeys(("_callback", "_checkpoint", "_loss_monitor", "_time_monitor"), "opreg.train.callback")},
    "opreg.train.model": {"Model": "opreg.nn.model:Model",
                          "ParallelMode": "opreg.nn.parallel:ParallelMode"},
    "opreg.nn.model.summaries": {"summary_record": "opreg.nn.model.summaries"},
    "opreg.train.io": {"io": "opreg.train.io"},
    "opreg.train.metric": {"ndarray": "opreg.ndarray"},  # GluonTS imports it from there
    "opreg.train.module": {"module": "opreg.train.symbol_module", "base_module": "opreg.train.base_module",
                           "bucketing_module": "opreg.train.bucketing_module",
                           "executor_group": "opreg.train.executor_group",
                           "python_module": "opreg.train.python_module",
                           "sequential_module": "opreg.train.sequential_module"},
    "opreg.contrib.amp": dict.fromkeys(("amp", "loss_scaler"), "opreg.contrib.amp"),
    "opreg.train.kvstore": dict.fromkeys(("kvstore", "base"), "opreg.train.kvstore"),
    "opreg.train.optimizer": dict.fromkeys(("optimizer", "contrib"), "opreg.train.optimizer"),
    "opreg.train.rnn": {"rnn": "opreg.train.rnn", "rnn_cell": "opreg.train.rnn_cell", "io": "opreg.train.sentences"},
    **{package: {name: f"{package}:{name}" for name in ("contrib", "custom", "image", "linalg", "op", "sparse",
                                                        "_internal", *extra)}
       for package, extra in (("opreg.ndarray", ()), ("opreg.symbol", ("random",)))},
}

#: Modules with one name in two libraries: the module that scripts of each library get.
_SPOKEN = {"MXNet": {"numpy": "np"}}

#: Modules that were moved, by their earlier names.
_MOVED = {"opreg.symbol.estimate": "opreg.symbol.inspect.estimate", "opreg.train.progress": "opreg.training_line",
          "opreg.cells.settings": "opreg.nn.compiler_settings",
          **{f"opreg.cells.{name}": f"opreg.nn.{name}" for name in (
              "communication", "generator", "grad_func", "parallel", "strategies")}}


class _Aliases:
    """Finds the modules that go by a second name."""

    def __init__(self) -> None:
        self.refused: dict[str, dict[str, str]] = {}
        self.library = ""
        self.targets = {**_MOVED, **{f"{package}.{name}": target for package, names in _DEEPER.items()
                                     for name, target in names.items()}}

    def target(self, name: str) -> str:
        """The real name of what is called ``name``, perhaps below an alias; itself where there is no alias."""
        full = f"opreg.{script_door(name[6:])}" if name.startswith("opreg.") else name
        target = self.targets.get(full)
        if target is None and full != name:
            return full
        if target is not None:
            return target
        package, _, last = name.rpartition(".")
        if not package:
            return name
        real = f"{self.target(package)}.{last}"
        return self.targets.get(real, real)

    def withheld(self, name: str) -> bool:
        """Whether a module is refused: to scripts of the library that has another under this name, or to all."""
        reasons = self.refused.get(name, {})
        return self.library in reasons or bool(reasons and name not in self.targets)

    def find_spec(self, name: str, path: Iterable[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if path is None and name not in self.targets:  # a top-level module of another package
            return None
        if self.withheld(name):  # an error without ``name`` also passes through ``from opreg import gluon``
            raise ModuleNotFoundError(refusal_reason(name))
        return None if self.target(name) == name else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module of an alias by the real one."""
        name = module.__name__
        target = self.target(name)
        real, _, attribute = target.partition(":")
        thing = tidy(importlib.import_module(real))
        if attribute:
            thing = getattr(thing, attribute)
        if target in _DEEPER:  # a package there, a single file or a function here
            vars(thing).setdefault("__path__", [])
            vars(thing).setdefault("__spec__", module.__spec__)
        sys.modules[name] = thing


def _is_import_statement(finder: FrameType | None) -> bool:
    """Whether an import statement calls a finder, rather than ``import_module`` or ``importlib.util``."""
    names: list[str] = []
    while finder is not None and len(names) < 4:
        finder = finder.f_back
        names.append("" if finder is None else finder.f_code.co_name)
    return names[:2] == ["_find_spec", "_find_and_load_unlocked"] and names[3:] != ["_gcd_import"]


class _Absent:
    """The last finder: for an import statement of a missing name it raises the error of the missing attribute."""

    def find_spec(self, name: str, path: Iterable[str] | None = None, target: ModuleType | None = None) -> None:
        package, _, last = name.rpartition(".")
        ask = vars(sys.modules[package]).get("__getattr__") if package.partition(".")[0] == "opreg" else None
        if ask is not None and _is_import_statement(sys._getframe()):
            try:
                ask(last)
            except AttributeError as error:
                raise ModuleNotFoundError(str(error)) from None  # without ``name``, as above


_ALIASES = _Aliases()
_ABSENT = _Absent()


def tidy(module: ModuleType) -> ModuleType:
    """Make ``dir`` of a module, and of modules among its public names, list public names only; returns the module."""
    names_of_module = vars(module)
    public = names_of_module.get("__all__", ())
    names_of_module.setdefault("__dir__", lambda: sorted(name for name in public if not name.startswith("_")))
    for name in public:
        if names_of_module.get(name).__class__ is module.__class__:
            tidy(names_of_module[name])
    return module


def install(doors: Iterable[tuple[str, str]]) -> None:
    """Let ``opreg.<door>`` be imported as a module, for pairs of a door and the module behind it."""
    _ALIASES.targets.update((f"opreg.{door}", module) for door, module in doors if module != f"opreg.{door}")
    if _ALIASES not in sys.meta_path:  # before the finder of files, which would load a file below an alias again
        sys.meta_path.insert(0, _ALIASES)
        sys.meta_path.append(_ABSENT)


def refuse(library: str, modules: dict[str, str]) -> None:
    """Declare modules and names that a library has and this package lacks; importing one raises an error with the
    reason."""
    for name, reason in modules.items():
        for each in {name, _ALIASES.target(name)}:
            _ALIASES.refused.setdefault(each, {})[library] = reason


def set_library(library: str) -> None:
    """Declare the library of the running script: reasons for missing names are those of this library."""
    _ALIASES.library = library


def script_door(door: str) -> str:
    """The door that a script of the current library means by a name."""
    return _SPOKEN.get(_ALIASES.library, {}).get(door, door)


def refusal_reason(name: str) -> str:
    """The reason why a module is refused; empty for a module that is not."""
    reasons = _ALIASES.refused.get(name, {}) if _ALIASES.withheld(name) else {}
    return reasons.get(_ALIASES.library) or " ".join(reasons.values())


def inner(name: str, said: Callable[[str], str] | None = None) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module, which makes its importable submodules attributes of it.

    ``said`` makes the message for any other name.
    """
    # makes it a package: a failed import of a submodule asks the finder, whose error gives the reason
    vars(sys.modules[name]).setdefault("__path__", [])

    def find(attribute: str) -> Any:
        real = _ALIASES.targets.get(f"{name}.{attribute}")
        if real is None:
            refused = refusal_reason(f"{name}.{attribute}")
            raise AttributeError(refused or (said(attribute) if said else
                                             f"module {name!r} has no attribute {attribute!r}"))
        module, _, inside = real.partition(":")
        result = importlib.import_module(module)
        return getattr(result, inside) if inside else result

    return find


def module_below(name: str) -> ModuleType:
    """The module ``opreg.<name>``, real or an alias."""
    return importlib.import_module(f"opreg.{name}")


def adopt(name: str) -> None:
    """Let the bare name of a folder, as ``import symbol`` finds it in a checkout, be the package ``opreg.<name>``."""
    _ALIASES.targets[name] = f"opreg.{name}"
    sys.modules[name] = importlib.import_module(f"opreg.{name}")

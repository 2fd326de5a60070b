"""Settings of the program: the mode in which Cells run, the device of new tensors, conventions of hooks and bprop."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from opreg.ndarray.context import Context, set_default_context

from ..core.array_module import backend
from ..core.mode import MODE
from ..core.setting_reads import reads_setting
from ..errors import ArgumentError, DeviceError, did_you_mean, warn

__all__ = ["EPOCH", "GRAPH_MODE", "PYNATIVE_MODE", "STRICT", "COMPATIBLE", "LAX", "set_context", "get_context",
           "no_setting", "check_setting", "compiles"]

#: The mode in which calling an outermost Cell compiles it.
GRAPH_MODE = 0
#: The mode in which calling a Cell runs its Python code.
PYNATIVE_MODE = 1
#: Levels of ``jit_syntax_level``, accepted without effect.
STRICT, COMPATIBLE, LAX = 0, 1, 2

#: Count of all changes that may invalidate compiled functions: attributes of Cells, hooks, settings. While it is the
#: same nothing has to be compared.
EPOCH = [0]

_VALID: dict[str, tuple[Any, ...]] = {
    "mode": (GRAPH_MODE, PYNATIVE_MODE),
    "device_target": ("CPU", "GPU", "Ascend"),
    "convention": ("document", "2.4"),
    "check_bprop": (False, True),
}


def _setting_from_environment(variable: str, name: str) -> str:
    """The value of a setting from an environment variable; the default is its first valid value."""
    setting = os.environ.get(variable) or _VALID[name][0]
    if setting not in _VALID[name]:
        raise ArgumentError(f"{variable} must be one of {', '.join(map(str, _VALID[name]))}, got {setting!r}")
    return str(setting)


#: Settings without effect that programs set and read, with their defaults.
_INERT: dict[str, Any] = {
    **dict.fromkeys(("disable_format_transform", "enable_auto_mixed_precision", "enable_ge", "enable_graph_kernel",
                     "enable_sparse", "grad_for_scalar", "jit_enable_inplace_ops", "load_compile_cache",
                     "precompile_only", "pynative_synchronize", "save_compile_cache", "support_binary"), False),
    **dict.fromkeys(("enable_reduce_precision", "reserve_class_name_in_scope"), True),
    **dict.fromkeys(("aoe_tune_mode", "compile_cache_path", "env_config_path", "graph_kernel_flags", "jit_level",
                     "print_file_path"), ""),
    **{name: {} for name in ("aoe_config", "ascend_config", "gpu_config", "jit_config")},
    **dict.fromkeys(("debug_level", "inter_op_parallel_num", "memory_optimize_level", "save_graphs"), 0),
    "deterministic": "OFF", "enable_compile_cache": None, "jit_syntax_level": 2, "max_call_depth": 1000,
    "max_device_memory": 1024.0, "mempool_block_size": 1.0, "op_timeout": 900, "runtime_num_threads": os.cpu_count(),
    "save_graphs_path": ".", "variable_memory_max_size": "0"}
_CONTEXT: dict[str, Any] = {"mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0,
                            "convention": _setting_from_environment("OPREG_CONVENTION", "convention"),
                            "check_bprop": False, **_INERT}


def set_context(**settings: object) -> None:
    """Set the mode in which outermost Cells run, and the device.

    Parameters
    ----------
    mode : int
        ``GRAPH_MODE`` compiles them, ``PYNATIVE_MODE``, the default, runs their Python code.
    device_target : {"CPU", "GPU", "Ascend"}
        The device of new tensors. If this machine has no such device, and always for Ascend, it is the CPU, with a
        warning, and ``get_context`` says so.
    device_id : int
        Number of the GPU.
    convention : {"document", "2.4"}
        The convention of ``register_backward_hook``; see there. The environment variable ``OPREG_CONVENTION`` sets the
        default, which is ``document`` otherwise.
    check_bprop : bool
        Whether a ``bprop`` must return tensors with exactly the shapes and dtypes of the inputs. Otherwise its results
        are summed to the shape and cast to the dtype of the inputs, and None stands for zeros.

    Other settings, such as ``save_graphs``, are returned by ``get_context`` and have no effect.

    Examples
    --------
    >>> set_context(mode=PYNATIVE_MODE)
    >>> get_context("mode")
    1
    """
    for name, value in settings.items():
        if name not in _CONTEXT:
            raise no_setting("set_context", name, _CONTEXT)
        check_setting(name, value)
        if name == "device_id" and type(value) is not int:
            raise ArgumentError(f"set_context: device_id must be an int, got {value!r}")
    chosen = {**_CONTEXT, **settings}
    if chosen["device_target"] != _CONTEXT["device_target"] or chosen["device_id"] != _CONTEXT["device_id"]:
        place = _context_of(chosen["device_target"], chosen["device_id"])
        place.backend.zeros((1,), np.dtype(np.float32), place.device_id)  # raises for a number without a device
        set_default_context(place)
        chosen["device_target"] = place.device_type.upper()
    if chosen != _CONTEXT:
        _CONTEXT.update(chosen)
        EPOCH[0] += 1


def _context_of(target: str, number: int) -> Context:
    """The context of a device target; the CPU, with a warning, if this machine has no such device."""
    if target != "CPU":
        missing: object = "opreg has no back end for it"
        if target == "GPU":
            try:
                backend("gpu")
                return Context("gpu", number)
            except DeviceError as error:
                missing = error
        warn(f"set_context: the CPU computes in place of device_target={target!r}: {missing}")
    return Context("cpu", 0)


def no_setting(function: str, name: str, settings: Iterable[str]) -> ArgumentError:
    """The error for a name that is none of a function's settings."""
    return ArgumentError(f"{function}: there is no setting {name!r}. {did_you_mean(str(name), settings)}")


def check_setting(name: str, value: object) -> None:
    """Refuse an invalid value of a setting."""
    if name in _VALID and value not in _VALID[name]:
        raise ArgumentError(f"set_context: {name} must be one of {', '.join(map(str, _VALID[name]))}, got {value!r}")


@reads_setting
def get_context(attr_key: str) -> Any:
    """A setting of ``set_context``, or of the context around the call."""
    if attr_key not in [*_CONTEXT]:
        raise no_setting("get_context", attr_key, _CONTEXT)
    return (MODE.current().convention if attr_key == "convention" else None) or _CONTEXT[attr_key]


def compiles() -> bool:
    """Whether calling an outermost Cell compiles it."""
    return _CONTEXT["mode"] == GRAPH_MODE

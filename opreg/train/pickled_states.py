"""States of optimizers in pickles of MXNet: written for MXNet, and read without running code of the pickle.

``Updater.get_states``, ``Module.save_optimizer_states`` and ``Trainer.save_states`` of MXNet write such a pickle: a
dict of states, or a pair of this dict and the optimizer. Only arrays, numbers, texts and containers of those are read;
of an optimizer its class's name and its attributes, of a schedule of the rate that MXNet has its settings. An object
of any other class is ``OTHER``.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from opreg.ndarray.ndarray import NDArray, array
from opreg.ndarray.pickles import PICKLE_DAMAGE, SafeUnpickler

from ..core.settings import Checked, number, whole_number
from ..errors import ArgumentError, FileFormatError
from . import lr_scheduler
from .lr_scheduler import LRScheduler

__all__ = ["OTHER", "PickleContent", "read_pickle", "write_pickle"]

#: The value that replaces objects which are not needed, such as symbols.
OTHER = object()

#: Settings of MXNet's schedules, by class, beside those that all have; ``pwr`` is kept as ``power``.
_SCHEDULES = {
    "FactorScheduler": ("step", "factor", "stop_factor_lr"), "MultiFactorScheduler": ("step", "factor"),
    "PolyScheduler": ("max_update", "pwr", "final_lr"), "CosineScheduler": ("max_update", "final_lr"),
}


class PickleContent(NamedTuple):
    """The content of a pickle of MXNet.

    Attributes
    ----------
    states : dict
        By index or name of the weight.
    optimizer : str or None
        The name of the optimizer's class, if the pickle has an optimizer.
    attributes : dict
        The optimizer's attributes.
    """

    states: dict[Any, Any]
    optimizer: str | None
    attributes: dict[Any, Any]


class _Object:
    """An object of the pickle, of any class: its attributes."""

    def __init__(self, *_: Any):
        self.attributes: Any = {}

    def __setstate__(self, state: Any) -> None:
        self.attributes = state


def _reconstruct(made: Any, *_: Any) -> Any:
    """``copyreg._reconstructor``: an object of a class."""
    return made()


class _Array:
    """An array of the pickle. Its state is a record as in ``.params`` files."""

    def __init__(self, *_: Any) -> None:
        self.value: NDArray | None = None

    def __setstate__(self, state: Any) -> None:
        if state["handle"] is not None:
            self.value = array([0.0])
            self.value.__setstate__(state)


class _Text(bytes):
    """Bytes, which older protocols write as a text and its encoding."""

    def __new__(cls, content: Any = b"", *_: Any) -> _Text:
        whole = content.encode("latin1") if isinstance(content, str) else memoryview(content)
        return super().__new__(cls, whole)

    def __setstate__(self, state: Any) -> None:
        raise FileFormatError("expected no state of a text")


class _DType:
    """A dtype of NumPy. Its state has the order of bytes."""

    def __init__(self, code: Any, *_: Any):
        self.code = code

    def __setstate__(self, state: Any) -> None:
        self.code = state[1] + self.code if state[1] in "<>" else self.code


def _number(dtype: Any, content: Any) -> Any:
    """A number of NumPy as Python's."""
    code = np.dtype(dtype.code)
    if code.hasobject:
        raise FileFormatError(f"expected a number, found {code}")
    return np.frombuffer(_Text(content), code, 1)[0].item()


_READ: dict[tuple[str, str], Any] = {
    ("builtins", "bytearray"): _Text, ("builtins", "bytes"): _Text, ("_codecs", "encode"): _Text,
    ("copyreg", "_reconstructor"): _reconstruct, ("builtins", "object"): None,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "scalar"): _number, ("numpy._core.multiarray", "scalar"): _number,
}


class _Unpickler(SafeUnpickler):
    """Reads a pickle of MXNet."""

    def replacement(self, module: str, name: str) -> Any:
        """The replacement of a function or class that the pickle names."""
        module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)  # names of Python 2
        if (module, name) in _READ:
            return _READ[module, name]
        if module.startswith("mxnet.") and name in ("NDArray", "RowSparseNDArray", "CSRNDArray", "ndarray"):
            return _Array
        return type(name, (_Object,), {"__module__": module})


def read_pickle(content: bytes, name: str) -> PickleContent:
    """Read a pickle of states.

    Parameters
    ----------
    content : bytes
        The pickle.
    name : str
        A name for messages.

    Raises
    ------
    FileFormatError
        If the bytes are no pickle, or no pickle of states.
    """
    try:
        value = _Unpickler(content, "latin1").load()
        states, optimizer = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        if isinstance(states, dict) and (optimizer is None or isinstance(optimizer, _Object)):
            states = {key: _state(state) for key, state in states.items()}
            if optimizer is None:
                return PickleContent(states, None, {})
            attributes = {key: _attribute(value) for key, value in dict(optimizer.attributes).items()}
            return PickleContent(states, type(optimizer).__name__, attributes)
    except PICKLE_DAMAGE as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        reason = f"a pickle of {type(value).__name__}"
    raise FileFormatError(f"{name}: expected the result of get_states, of opreg or of MXNet, found {reason}")


def _state(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, (tuple, list)):
        return tuple(map(_state, value))
    if value is None or isinstance(value, (int, float, str)):
        return value
    raise FileFormatError(f"states are arrays, numbers and tuples of those, not {type(value).__name__}")


def _attribute(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _attribute(part) for key, part in value.items()}
    if type(value).__module__ == "mxnet.lr_scheduler" and type(value).__name__ in _SCHEDULES:
        return _schedule(type(value).__name__, dict(value.attributes))
    return value if value is None or isinstance(value, (int, float, str)) else OTHER


def _schedule(name: str, attributes: dict[str, Any]) -> LRScheduler:
    """A schedule of MXNet: made anew from its settings, and moved on to where it was."""
    names = (*_SCHEDULES[name], "warmup_steps", "warmup_begin_lr", "warmup_mode")
    attributes["pwr"] = attributes.get("power")
    schedule: LRScheduler = getattr(lr_scheduler, name)(
        base_lr=attributes["warmup_final_lr"], **{setting: attributes[setting] for setting in names})
    for reached in ("base_lr", "base_lr_orig", "count", "cur_step_ind"):
        if hasattr(schedule, reached):
            check = number if reached.startswith("base_lr") else whole_number
            setattr(schedule, reached, check(f"{name}: {reached}", attributes[reached], 0))
    return schedule


# ---------------------------------------------------------------------------------------------- writing

#: Attributes that MXNet's optimizers have and ours do not have, by the class's name.
_ADDED: dict[str, dict[str, Any]] = {
    "Optimizer": {"aggregate_num": 0},
    "SGD": {"aggregate_num": 4}, "LARS": {"aggregate_num": 4, "skip": 0}, "LAMB": {"aggregate_num": 45},
    "DCASGD": {"weight_previous": {}},
    "LBSGD": {"aggregate_num": 0, "lbmult": 1, "cumgrads": {}, "adaptive": False, "admult": 1},
}
_COUNTS = ("_all_index_update_counts", "_index_update_count")


def write_pickle(states: dict[Any, Any], optimizer: Checked | None) -> bytes:
    """A pickle of states that MXNet 1.9 reads, and ``read_pickle``, too.

    Parameters
    ----------
    states : dict
        By index or name of the weight.
    optimizer : Optimizer or None
        The optimizer, if the pickle is to contain it.

    Raises
    ------
    ArgumentError
        If MXNet does not have the optimizer, or a state or an attribute cannot be pickled.
    """
    return b"\x80\x03" + b"".join(_pickle_instructions(states if optimizer is None else (states, optimizer))) + b"."


def _pickle_instructions(value: Any) -> Iterator[bytes]:
    """Instructions of a pickle that leave the value on the stack."""
    if isinstance(value, NDArray):
        yield b"cmxnet.ndarray.ndarray\nNDArray\nN\x85R"
        yield from _pickle_instructions({name: bytearray(part) for name, part in value.__getstate__().items()})
        yield b"b"
    elif isinstance(value, Checked):  # the optimizer, or a schedule of the rate
        yield f"c{_module_in_mxnet(type(value))}\n{type(value).__name__}\n".encode() + b")\x81"
        yield from _pickle_instructions(_attributes_in_mxnet(value))
        yield b"b"
    elif isinstance(value, dict):
        yield b"}("
        for pair in value.items():
            yield from map(b"".join, map(_pickle_instructions, pair))
        yield b"u"
    elif isinstance(value, (tuple, list)):
        yield b"("
        yield from map(b"".join, map(_pickle_instructions, value))
        yield b"t" if isinstance(value, tuple) else b"l"
    else:
        try:
            yield pickle.dumps(value.item() if isinstance(value, np.generic) else value, 3)[2:-1]
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ArgumentError(f"optimizer states: {type(value).__name__} cannot be pickled: {error}") from error


def _module_in_mxnet(cls: type) -> str:
    """The name of MXNet's module that has the class; for a user's class the name of its own module."""
    if not cls.__module__.startswith("opreg."):
        return cls.__module__
    if cls.__name__ == "AdamW":
        raise ArgumentError("optimizer states: MXNet 1.9 has no optimizer AdamW, so it cannot read its states")
    if cls.__name__ == "GroupAdaGrad":
        return "mxnet.optimizer.contrib"
    return "mxnet.lr_scheduler" if issubclass(cls, LRScheduler) else "mxnet.optimizer.optimizer"


def _attributes_in_mxnet(value: Checked) -> dict[str, Any]:
    """The attributes of an optimizer or a schedule, without those that only ours have."""
    attributes: dict[str, Any] = {}
    for cls in reversed(type(value).__mro__):
        attributes.update(_ADDED.get(cls.__name__, {}))
    return attributes | {name: part for name, part in vars(value).items()
                         if name != "param_dict" and (name in _COUNTS or not name.startswith("_"))}

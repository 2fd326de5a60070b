"""Contexts: the devices of arrays, ``cpu(i)`` and ``gpu(i)``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import ParamSpec, TypeVar

import numpy as np

from opreg.core.array_module import _REGISTERED, Backend, Device, active, backend
from opreg.core.mode import MODE, quiet
from opreg.core.named_errors import name_errors, named
from opreg.core.setting_reads import reads_setting
from opreg.errors import ArgumentError, DeviceError, did_you_mean
from opreg.typing import Array, ArrayModule

# The names of ``mx.context``.
__all__ = ["Context", "cpu", "gpu", "cpu_pinned", "current_context", "set_default_context", "num_gpus",
           "gpu_memory_info"]


P = ParamSpec("P")
R = TypeVar("R")

_CONTEXTS: dict[tuple[str, int], Context] = {}
_TEXT = re.compile(r"(\w+)\((\d+)\)")


@reads_setting
def current_context() -> Context:
    """The context of new arrays: that of the innermost ``with`` block, or else the default one, ``cpu(0)`` unless it
    was set.

    Examples
    --------
    >>> from opreg import cpu
    >>> with cpu(1):
    ...     current_context()
    cpu(1)
    """
    contexts = MODE.__dict__["current"]().contexts
    return contexts[-1] if contexts else _DEFAULT[0]


class _Contexts(type):
    """The metaclass of ``Context``, which gives it ``default_ctx``, a property that programs read and set."""

    @property
    @reads_setting(answer=current_context)
    def default_ctx(cls) -> Context:
        """The context of new arrays in this thread; see ``current_context``."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx: Context) -> None:
        mode = MODE.current()
        MODE.set(mode.but(contexts=(*mode.contexts[:-1], Context(ctx))))


class Context(metaclass=_Contexts):
    """A device, given by its type and index. Each device has one object, so ``is`` compares devices.

    In a ``with`` statement, it is the device of new arrays in the block.

    Parameters
    ----------
    device_type : {"cpu", "gpu", "cpu_pinned", "cpu_shared"} or Context
        The type of the device; pinned and shared memory are on the host. ``"gpu(1)"`` gives type and index in one text.
    device_id : int
        The index of the device, from 0.

    Examples
    --------
    >>> with Context("cpu", 1):
    ...     print(current_context())
    cpu(1)
    """

    __slots__ = ("device_type", "device_id", "backend_name", "_backend")

    devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type = {name: number for number, name in devtype2str.items()}

    device_type: str
    device_id: int
    backend_name: str
    _backend: Backend | None

    @named
    def __new__(cls, device_type: str | Context, device_id: int = 0) -> Context:
        if isinstance(device_type, Context):
            return device_type
        text = _TEXT.fullmatch(device_type) if isinstance(device_type, str) else None  # type: ignore[redundant-expr]
        if text:
            device_type, device_id = text[1], int(text[2])
        if not isinstance(device_type, str) or (
                device_type not in cls.devstr2type and device_type not in _REGISTERED):
            raise DeviceError(f"there is no device type {device_type!r}. "
                              f"{did_you_mean(device_type, cls.devstr2type)}")
        number = operator.index(device_id) if hasattr(device_id, "__index__") else -1
        if number < 0:
            raise ArgumentError(f"device_id: expected an int from 0, got {device_id!r}")
        self = super().__new__(cls)
        self.device_type, self.device_id = device_type, number
        self.backend_name = "cpu" if device_type.startswith("cpu") else device_type
        self._backend = None
        return _CONTEXTS.setdefault((device_type, number), self)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "_backend" and hasattr(self, name):
            if getattr(self, name) == value:
                return
            raise ArgumentError(f"Context.{name}: {self} is the only object of its device, and cannot become another "
                                f"one. Another device is mx.Context('gpu', 1)")
        object.__setattr__(self, name, value)

    @property
    def device_typeid(self) -> int:
        """MXNet's integer for the device type."""
        return self.devstr2type[self.device_type]

    @property
    def backend(self) -> Backend:
        """The back end of the device.

        Raises
        ------
        DeviceError
            If the package, the driver or the device is missing.
        """
        current = backend(self.backend_name)
        if current is not self._backend:
            count = current.count()
            if count is not None and self.device_id >= count:
                raise DeviceError(f"{self}: this machine has {count} such devices, numbered from 0")
            self._backend = current
        return current

    @property
    def xp(self) -> ArrayModule:
        """The array module of the device, NumPy or CuPy."""
        return self.backend.xp

    @property
    def device(self) -> Device | None:
        """The device to enter before computing on it; None for the host, and for a single device."""
        return None if self.backend_name == "cpu" else self.backend.device(self.device_id)

    def entered(self) -> Device | nullcontext[None]:
        """A context manager that enters the device; it does nothing if there is no device to enter."""
        return self.device or _UNCHANGED

    def run(self, function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Call a function on the device, without numeric warnings."""
        device = self.device
        if device is None:
            return quiet(function, *args, **keywords)
        with device:
            return quiet(function, *args, **keywords)

    def shares(self, other: Context) -> bool:
        """Whether operators may have arrays of both contexts as inputs: they are the same device, or both the host."""
        return self is other or self.backend_name == other.backend_name == "cpu"

    def empty_cache(self) -> None:
        """Return cached memory to the device."""
        pool = getattr(self.xp, "get_default_memory_pool", None)
        if pool is not None:
            pool().free_all_blocks()

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __reduce__(self) -> tuple[type[Context], tuple[str, int]]:
        return Context, (self.device_type, self.device_id)

    def __enter__(self) -> Context:
        thread = MODE.__dict__
        mode = thread["current"]()
        try:
            thread["set"](mode.within(self))
        except BaseException:
            thread["set"](mode)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        thread = MODE.__dict__
        thread["set"](thread["current"]().popped("contexts"))


_UNCHANGED = nullcontext()
_CPU = Context("cpu", 0)
_DEFAULT = [_CPU]


def cpu(device_id: int = 0) -> Context:
    """The host. All its indices mean the same memory, and their arrays may be inputs of one operator; they differ only
    for ``group2ctx``.

    Examples
    --------
    >>> cpu() == Context("cpu", 0)
    True
    """
    return _CPU if device_id == 0 else Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Pinned memory of the host, which is the same as ``cpu`` here.

    Examples
    --------
    >>> cpu_pinned()
    cpu_pinned(0)
    """
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A CUDA device, whether or not it exists. Using it raises an error that tells what is missing.

    Examples
    --------
    >>> gpu(1)
    gpu(1)
    """
    return Context("gpu", device_id)


def context_of(array: Array) -> Context:
    """The context of a raw array; ``cpu(0)`` for all arrays of the host."""
    if isinstance(array, np.ndarray):
        return _CPU
    owner = next(each for each in active() if isinstance(array, getattr(each.xp, "ndarray", ())))
    return Context(owner.name, array.device.id)


def present_context(ctx: Context) -> Context:
    """A context if this machine has its device; ``cpu(0)`` otherwise, as for arrays from a pickle or a file."""
    try:
        ctx.backend.device(ctx.device_id)
    except DeviceError:
        return _CPU
    return ctx


def num_gpus() -> int:
    """The number of usable CUDA devices; 0 if the package, the driver or the devices are missing.

    Examples
    --------
    >>> num_gpus() >= 0
    True
    """
    try:
        return backend("gpu").count() or 0
    except DeviceError:
        return 0


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """The free and the total bytes of a CUDA device."""
    xp = gpu(device_id).xp
    with xp.cuda.Device(device_id):
        return tuple(xp.cuda.runtime.memGetInfo())


def set_default_context(ctx: Context) -> None:
    """Set the context of new arrays outside of ``with`` blocks, for all threads."""
    _DEFAULT[0] = Context(ctx)


name_errors(__name__, globals(), __all__)

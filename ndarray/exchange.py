"""Memory shared with other libraries: DLPack, and the interface that CUDA libraries for Python have in common.

Arrays on a device go by DLPack where both speak it: the stream that computes what is shared and the one that reads it
wait for each other there, while ``__cuda_array_interface__`` lets the host wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opreg.core.spec import as_dtype
from opreg.core.value import Value
from opreg.errors import ArgumentError, DeviceError
from opreg.typing import Array, ArrayModule

from .context import Context, cpu, gpu
from .ndarray import FOREIGN, NDArray

__all__ = ["foreign", "from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]

#: Whether NumPy takes all that comes by DLPack for read-only; before 2.1 nobody could say what may be written, and
#: nobody handed out what may not.
_UNTOLD = np.lib.NumpyVersion(np.__version__) < "2.1.0"
# Kinds of devices, as DLPack numbers them: the host, CUDA, memory of the host that CUDA knows, and of both.
_CPU, _CUDA, _PINNED, _MANAGED = 1, 2, 3, 13


class _Capsule:
    """A bare DLPack capsule, of host memory, as the protocol of today wants it: behind a method."""

    def __init__(self, capsule: object):
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


class _Writable:
    """Presents an array's memory as writeable: a bare capsule cannot say that it is, and NumPy then assumes not."""

    def __init__(self, array: np.ndarray):
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of anything that speaks DLPack, or has ``__cuda_array_interface__``, on its device.

    Numbers that do not lie one after the other are copied.

    Parameters
    ----------
    source : object with ``__dlpack__`` or ``__cuda_array_interface__``, or capsule
        What to share; a capsule is taken for host memory.

    Raises
    ------
    ArgumentError, DeviceError
        For what has neither, and for devices that are neither the host nor CUDA's.

    Examples
    --------
    >>> host = np.zeros(2, np.float32)
    >>> from_dlpack(host)[:] = 5
    >>> host
    array([5., 5.], dtype=float32)
    """
    if type(source).__name__ == "PyCapsule":
        return NDArray(np.asarray(_Writable(np.from_dlpack(_Capsule(source)))), Context("cpu"))
    if hasattr(source, "__dlpack_device__"):
        kind, number = map(int, source.__dlpack_device__())
        if kind not in (_CPU, _CUDA, _PINNED, _MANAGED):
            raise DeviceError(f"from_dlpack: a {type(source).__name__} on a device of DLPack's kind {kind}: expected "
                              "the host or a CUDA device")
        ctx = gpu(number) if kind == _CUDA else cpu()
        data = ctx.run(_shared, ctx.xp, source)
    elif hasattr(source, "__cuda_array_interface__"):
        data = gpu(0).xp.asarray(source)
        ctx = gpu(data.device.id)
    else:
        raise ArgumentError("from_dlpack: expected something that has __cuda_array_interface__ or speaks DLPack, got "
                            f"{type(source).__name__}")
    as_dtype(data.dtype)
    return NDArray(data if data.flags.c_contiguous else ctx.run(ctx.xp.ascontiguousarray, data), ctx)


def _shared(xp: ArrayModule, source: Any) -> Array:
    data = xp.from_dlpack(source)
    return np.asarray(_Writable(data)) if _UNTOLD and xp is np else data


@FOREIGN.provide
def foreign(value: object) -> NDArray | None:
    """An array over the memory of another library's array on a device; None of anything else, arrays of the host among
    it, which NumPy takes."""
    if isinstance(value, (Value, np.ndarray)):
        return None
    if hasattr(value, "__cuda_array_interface__"):
        return from_dlpack(value)
    kind = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _CPU
    return from_dlpack(value) if kind == _CUDA or (kind != _CPU and not hasattr(value, "__array__")) else None


def to_dlpack_for_read(data: NDArray) -> object:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> object:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_write()

"""Memory shared with other libraries, by DLPack and by ``__cuda_array_interface__``.

Arrays on a device are shared by DLPack if both libraries have it. DLPack synchronises the streams that compute and read
the array; ``__cuda_array_interface__`` makes the host wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opreg.core.spec import as_dtype
from opreg.core.value import Value
from opreg.errors import ArgumentError, DeviceError, DTypeError

from .context import cpu, gpu
from .dlpack import CPU, Capsule, read
from .ndarray import FOREIGN, NDArray, over

__all__ = ["foreign", "from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]

# DLPack's codes of CUDA devices, of pinned host memory, and of managed memory.
_CUDA, _PINNED, _MANAGED = 2, 3, 13


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of another library's array, by DLPack or ``__cuda_array_interface__``, on its device.

    An array that is not contiguous is copied.

    Parameters
    ----------
    source : object with ``__dlpack__`` or ``__cuda_array_interface__``, or capsule
        The array. A capsule can be read only once.

    Raises
    ------
    ArgumentError, DeviceError
        For an object with neither interface, for a capsule that was read before, and for a device that is neither the
        host nor a CUDA device.

    Examples
    --------
    >>> host = np.zeros(2, np.float32)
    >>> from_dlpack(host)[:] = 5
    >>> host
    array([5., 5.], dtype=float32)
    """
    if type(source).__name__ == "PyCapsule":
        source = Capsule(source)
    if hasattr(source, "__dlpack_device__"):
        kind, number = map(int, source.__dlpack_device__())
        if kind not in (CPU, _CUDA, _PINNED, _MANAGED):
            raise DeviceError(f"from_dlpack: a {type(source).__name__} on a device of DLPack's kind {kind}: expected "
                              "the host or a CUDA device")
        ctx = gpu(number) if kind == _CUDA else cpu()
        data = read(source) if ctx.xp is np else ctx.run(ctx.xp.from_dlpack, source)
    elif hasattr(source, "__cuda_array_interface__"):
        ctx = gpu(_device_of(source))
        data = ctx.run(ctx.xp.asarray, source)
    else:
        raise ArgumentError("from_dlpack: expected an object with __cuda_array_interface__ or __dlpack__, got "
                            f"{type(source).__name__}")
    as_dtype(data.dtype)
    return over(data if data.flags.c_contiguous else ctx.run(ctx.xp.ascontiguousarray, data), ctx)


def _device_of(source: Any) -> int:
    """The index of the device that holds the memory. ``__cuda_array_interface__`` lacks it, and CuPy copies memory that
    is not on the current device."""
    cuda, address = gpu(0).xp.cuda, source.__cuda_array_interface__["data"][0]
    return int(cuda.runtime.pointerGetAttributes(address).device if address else cuda.Device().id)


@FOREIGN.provide
def foreign(value: object) -> NDArray | None:
    """An array over the memory of another library's array. None for NumPy arrays, for objects that only NumPy can
    convert, and for all other values."""
    if isinstance(value, (Value, np.ndarray)):
        return None
    if hasattr(value, "__cuda_array_interface__"):
        return from_dlpack(value)
    if not hasattr(value, "__dlpack_device__"):
        return None
    if value.__dlpack_device__()[0] == _CUDA or not hasattr(value, "__array__"):
        return from_dlpack(value)
    try:
        return from_dlpack(value)
    except DTypeError:
        raise
    except (BufferError, TypeError, ValueError):  # the owner does not share this memory
        return None


def to_dlpack_for_read(data: NDArray) -> object:
    """A DLPack capsule that shares the memory of an array, for reading."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> object:
    """A DLPack capsule that shares the memory of an array, for writing."""
    return data.to_dlpack_for_write()

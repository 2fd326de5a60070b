"""Memory shared with other libraries: DLPack, and the interface that CUDA libraries for Python have in common.

Arrays on a device go by DLPack where both speak it: the stream that computes what is shared and the one that reads it
wait for each other there, while ``__cuda_array_interface__`` lets the host wait.
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

# Kinds of devices, as DLPack numbers them: CUDA, memory of the host that CUDA knows, and of both.
_CUDA, _PINNED, _MANAGED = 2, 3, 13


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of anything that speaks DLPack, or has ``__cuda_array_interface__``, on its device.

    Numbers that do not lie one after the other are copied.

    Parameters
    ----------
    source : object with ``__dlpack__`` or ``__cuda_array_interface__``, or capsule
        The array to share. A capsule can be read once.

    Raises
    ------
    ArgumentError, DeviceError
        For what has neither, for a capsule that was read before, and for devices that are neither the host nor CUDA's.

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
        raise ArgumentError("from_dlpack: expected something that has __cuda_array_interface__ or speaks DLPack, got "
                            f"{type(source).__name__}")
    as_dtype(data.dtype)
    return over(data if data.flags.c_contiguous else ctx.run(ctx.xp.ascontiguousarray, data), ctx)


def _device_of(source: Any) -> int:
    """The number of the device that memory is on, which ``__cuda_array_interface__`` does not say: CuPy copies what is
    on another than the current one."""
    cuda, address = gpu(0).xp.cuda, source.__cuda_array_interface__["data"][0]
    return int(cuda.runtime.pointerGetAttributes(address).device if address else cuda.Device().id)


@FOREIGN.provide
def foreign(value: object) -> NDArray | None:
    """An array over the memory of another library's array; None of anything else, of NumPy's, and of those that are
    left to NumPy to convert."""
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
    except (BufferError, TypeError, ValueError):  # it does not share these numbers
        return None


def to_dlpack_for_read(data: NDArray) -> object:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> object:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_write()

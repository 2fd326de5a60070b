"""DLPack's capsules: the device that they name, and those of host memory that NumPy makes and reads, in bfloat16 and
by older NumPy, too.

NumPy has no bfloat16. Its arrays cross as ``uint16``, and the kind of number that the capsule names is changed: in ours
before it is handed out, in another library's before NumPy reads it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError

__all__ = ["Capsule", "export", "read", "CPU"]

#: The host, as DLPack numbers kinds of devices.
CPU = 1
# Kinds of numbers, as DLPack numbers them.
_UINT, _BFLOAT = 1, 4
# Offset of the array's description in a capsule: at its start, or behind version, owner, deleter and flags.
_BEFORE = b"dltensor"
_STARTS = {_BEFORE: 0, b"dltensor_versioned": 32}
# Where it has the device: behind the address. Where it has the kind of number: behind the device and the count of axes.
_DEVICE, _KIND = 8, 20
_API = ctypes.pythonapi
#: Whether ``ndarray.__dlpack__`` knows the protocol of today.
_TODAY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Capsule:
    """A bare capsule as the protocol wants it: behind a method."""

    def __init__(self, capsule: object):
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = (ctypes.c_int32 * 2).from_address(_description(self._capsule) + _DEVICE)
        return kind, number


class _Writable:
    """Presents an array's memory as one that may be written."""

    def __init__(self, array: np.ndarray):
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def export(array: np.ndarray, *, stream: object = None, max_version: tuple[int, int] | None = None,
           dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
    """A capsule of a host array, which shares its memory unless ``copy`` is True.

    Raises
    ------
    BufferError
        For another device than the host; and for an array that may not be written, where the reader's version
        of the protocol cannot say so.

    Examples
    --------
    >>> type(export(np.zeros(2, np.float32), max_version=(1, 0))).__name__
    'PyCapsule'
    """
    if dl_device is not None and tuple(dl_device) != (CPU, 0):
        raise BufferError(f"DLPack: an array of the host is not handed out on a device of kind {dl_device[0]}: copy it "
                          "there")
    if copy:
        array = array.copy()
    bfloat16 = array.dtype.name == "bfloat16"
    shared = array.view(np.uint16) if bfloat16 else array
    keywords: dict[str, Any] = {"max_version": max_version} if _TODAY else {}
    capsule = shared.__dlpack__(stream=stream, **keywords)
    if bfloat16:
        _kind(capsule).value = _BFLOAT
    return capsule


def read(source: Any) -> np.ndarray:
    """A NumPy array over the host memory of what speaks DLPack.

    It can be written unless its owner says that it must not be, which the protocol of before could not say.

    Raises
    ------
    DTypeError
        For bfloat16, when the package ml_dtypes is not installed.

    Examples
    --------
    >>> read(np.arange(3))
    array([0, 1, 2])
    """
    capsule = _handed_out(source)
    dtype, kind = None, _kind(capsule)
    if kind.value == _BFLOAT:
        dtype, kind.value = as_dtype("bfloat16"), _UINT
    silent = _name(capsule) == _BEFORE
    data = np.from_dlpack(Capsule(capsule))
    if silent:
        data = np.asarray(_Writable(data))
    return data if dtype is None else data.view(dtype)


def _handed_out(source: Any) -> object:
    try:
        return source.__dlpack__(max_version=(1, 0)) if _TODAY else source.__dlpack__()
    except TypeError:  # it speaks the protocol of before
        return source.__dlpack__()


def _name(capsule: object) -> bytes | None:
    _API.PyCapsule_GetName.restype, _API.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return _API.PyCapsule_GetName(capsule)


def _kind(capsule: object) -> ctypes.c_uint8:
    """The kind of number that a capsule names, where it stands in memory."""
    return ctypes.c_uint8.from_address(_description(capsule) + _KIND)


def _description(capsule: object) -> int:
    """The address of a capsule's description of the array.

    Raises
    ------
    ArgumentError
        For a capsule that was read before, and one that is not DLPack's.
    """
    name = _name(capsule)
    if name is not None and name.startswith(b"used_dltensor"):
        raise ArgumentError("from_dlpack: this capsule was read before: a capsule is read once")
    if name not in _STARTS:
        raise ArgumentError(f"from_dlpack: expected a capsule of DLPack, got one of {name!r}")
    pointer = _API.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name) + _STARTS[name]

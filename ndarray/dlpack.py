"""DLPack capsules of host memory, made and read by NumPy, also for bfloat16 and by older versions of NumPy.

NumPy has no bfloat16. Such arrays are exchanged as ``uint16``, and the type code in the capsule is changed: before our
capsule is returned, and before NumPy reads one of another library.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError

__all__ = ["Capsule", "export", "read", "CPU"]

#: DLPack's code of the host.
CPU = 1
# DLPack's type codes.
_UINT, _BFLOAT = 1, 4
# The offset of the struct ``DLTensor`` in a capsule, by the capsule's name. A versioned capsule has version, context,
# deleter and flags before it.
_BEFORE = b"dltensor"
_STARTS = {_BEFORE: 0, b"dltensor_versioned": 32}
# Offsets in ``DLTensor``: of the device, after the address; of the type code, after the device and the rank.
_DEVICE, _KIND = 8, 20
_API = ctypes.pythonapi
#: Whether ``ndarray.__dlpack__`` has the parameter ``max_version``.
_HAS_MAX_VERSION = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Capsule:
    """An object with ``__dlpack__`` that returns a given capsule."""

    def __init__(self, capsule: object):
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = (ctypes.c_int32 * 2).from_address(_description(self._capsule) + _DEVICE)
        return kind, number


class _Writable:
    """Presents the memory of an array as writable."""

    def __init__(self, array: np.ndarray):
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def export(array: np.ndarray, *, stream: object = None, max_version: tuple[int, int] | None = None,
           dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
    """Make a capsule of a host array, which shares its memory unless ``copy`` is True.

    Raises
    ------
    BufferError
        For a device other than the host; and for a read-only array, if the reader's version of the protocol has no flag
        for that.

    Examples
    --------
    >>> type(export(np.zeros(2, np.float32), max_version=(1, 0))).__name__
    'PyCapsule'
    """
    if dl_device is not None and tuple(dl_device) != (CPU, 0):
        raise BufferError(f"DLPack: an array of the host cannot be exported to a device of kind {dl_device[0]}: copy "
                          f"it there")
    if copy:
        array = array.copy()
    bfloat16 = array.dtype.name == "bfloat16"
    shared = array.view(np.uint16) if bfloat16 else array
    keywords: dict[str, Any] = {"max_version": max_version} if _HAS_MAX_VERSION else {}
    capsule = shared.__dlpack__(stream=stream, **keywords)
    if bfloat16:
        _kind(capsule).value = _BFLOAT
    return capsule


def read(source: Any) -> np.ndarray:
    """A NumPy array over the host memory of an object with ``__dlpack__``.

    It is writable unless the capsule is marked as read-only. Unversioned capsules have no such mark.

    Raises
    ------
    DTypeError
        For bfloat16, when the package ml_dtypes is not installed.

    Examples
    --------
    >>> read(np.arange(3))
    array([0, 1, 2])
    """
    capsule = _export_capsule(source)
    dtype, kind = None, _kind(capsule)
    if kind.value == _BFLOAT:
        dtype, kind.value = as_dtype("bfloat16"), _UINT
    silent = _name(capsule) == _BEFORE
    data = np.from_dlpack(Capsule(capsule))
    if silent:
        data = np.asarray(_Writable(data))
    return data if dtype is None else data.view(dtype)


def _export_capsule(source: Any) -> object:
    try:
        return source.__dlpack__(max_version=(1, 0)) if _HAS_MAX_VERSION else source.__dlpack__()
    except TypeError:  # the source knows only an older version of the protocol
        return source.__dlpack__()


def _name(capsule: object) -> bytes | None:
    _API.PyCapsule_GetName.restype, _API.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return _API.PyCapsule_GetName(capsule)


def _kind(capsule: object) -> ctypes.c_uint8:
    """The type code of a capsule, in place."""
    return ctypes.c_uint8.from_address(_description(capsule) + _KIND)


def _description(capsule: object) -> int:
    """The address of ``DLTensor`` in a capsule.

    Raises
    ------
    ArgumentError
        For a capsule that was read before, or that is no capsule of DLPack.
    """
    name = _name(capsule)
    if name is not None and name.startswith(b"used_dltensor"):
        raise ArgumentError("from_dlpack: this capsule was read already, and a capsule can be read only once")
    if name not in _STARTS:
        raise ArgumentError(f"from_dlpack: expected a capsule of DLPack, got one of {name!r}")
    pointer = _API.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name) + _STARTS[name]

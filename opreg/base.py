"""Names of ``mxnet.base`` that programs use: errors, and types of values."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import errors
from .errors import *  # noqa: F403  every error has its name here, too
from .symbol.symbol import NotImplementedForSymbol

#: Names that call MXNet's library, each with its replacement.
_MACHINERY = {
    **dict.fromkeys(("check_call", "c_str", "c_str_array", "c_array", "c_array_buf", "c_handle_array", "ctypes2buffer",
                     "ctypes2numpy_shared", "c2pyerror", "get_last_ffi_error", "build_param_doc",
                     "add_fileline_to_docstring", "MXCallbackList"),
                    "there is no library in C behind the operators; call functions of nd and sym, and methods of "
                    "NDArray, Symbol and Executor"),
    **dict.fromkeys(("NDArrayHandle", "SymbolHandle", "ExecutorHandle", "KVStoreHandle", "DataIterHandle",
                     "DataIterCreatorHandle", "CachedOpHandle", "FunctionHandle", "OpHandle", "RecordIOHandle",
                     "CudaModuleHandle", "CudaKernelHandle", "ProfileHandle", "DLPackHandle"),
                    "arrays, symbols and executors are objects of Python, which have no handle"),
}

__all__ = [*errors.__all__, "NotImplementedForSymbol", "integer_types", "numeric_types", "string_types", "py_str",  # noqa: PLE0604
           "mx_uint", "mx_int", "mx_int64", "mx_float", "mx_real_t", "data_dir", "data_dir_default", "error_types",
           "classproperty", "with_metaclass", "register_error", "mx_float_p"]

integer_types = (int, np.int32, np.int64)
numeric_types = (float, int, np.generic)
string_types = (str,)

#: MXNet's C types of numbers, which are Python's here, since no C library is called.
mx_uint = mx_int = mx_int64 = int
mx_float = mx_float_p = float

#: The default dtype of arrays.
mx_real_t = np.float32


def py_str(text: bytes | str) -> str:
    """Bytes decoded as text; text is returned unchanged. Monitors get names as bytes in MXNet, and as text here.

    Examples
    --------
    >>> py_str(b"relu"), py_str("relu")
    ('relu', 'relu')
    """
    return text if isinstance(text, str) else text.decode("utf-8")


def data_dir_default() -> str:
    """The default folder for downloaded files: ``~/.mxnet``."""
    return os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """The folder for downloaded files: ``MXNET_HOME``, else ``~/.mxnet``."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


class _NullType:
    """Type of ``_Null``, the value of an attribute that the caller left out."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


#: Errors by name.
error_types: dict[str, type[Exception]] = {
    "MXNetError": errors.MXNetError, "ValueError": ValueError, "TypeError": TypeError, "AttributeError": AttributeError,
    "IndexError": IndexError, "NotImplementedError": NotImplementedError,
    "NotImplementedForSymbol": NotImplementedForSymbol}


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Make an error known by its name, or by another: a decorator, or a call with both.

    Examples
    --------
    >>> @register_error
    ... class _ExampleError(errors.MXNetError):
    ...     pass
    >>> error_types.pop("_ExampleError").__name__
    '_ExampleError'
    """
    if isinstance(func_name, type):
        func_name, cls = func_name.__name__, func_name

    def enter(error: type[Exception]) -> type[Exception]:
        error_types[func_name or error.__name__] = error
        return error

    return enter if cls is None else enter(cls)


class classproperty:
    """A property of a class: the function is given the class.

    Examples
    --------
    >>> class Example:
    ...     @classproperty
    ...     def name(cls):
    ...         return cls.__name__
    >>> Example.name
    'Example'
    """

    def __init__(self, function: Callable[[Any], Any]):
        self._function = getattr(function, "__func__", function)

    def __get__(self, instance: object, owner: type) -> Any:
        return self._function(owner)


def with_metaclass(meta: Any, *bases: type) -> Any:
    """A base class that has a metaclass, as it was written for Python 2 and 3.

    Examples
    --------
    >>> class Meta(type):
    ...     pass
    >>> class Example(with_metaclass(Meta, dict)):
    ...     pass
    >>> type(Example) is Meta, Example.__mro__[1] is dict
    (True, True)
    """

    class _Once(type):
        def __new__(cls, name: str, this_bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
            return meta(name, bases, namespace)

    return type.__new__(_Once, "_Once", (), {})


class _Machinery:
    """Stands for a function of MXNet's C library: importing it works, and calling it raises an error that tells the
    replacement."""

    def __init__(self, name: str, instead: str):
        self.__name__, self._instead = name, instead

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Raise an error that tells the replacement."""
        raise errors.OpError(f"base.{self.__name__}: {self._instead}")

    def __repr__(self) -> str:
        return f"<{self.__name__} of MXNet, which is not here>"


class _MissingFunctionError(errors.OpError, AttributeError):
    """A function of MXNet's C library was read; libraries that do without it catch the AttributeError."""


class _Library(_Machinery):
    """Stands for MXNet's C library: reading a function of it raises an error that tells the replacement."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _MissingFunctionError(f"base._LIB.{name}: {self._instead}")


_LIB = _Library("_LIB", _MACHINERY["check_call"])


def __getattr__(name: str) -> Any:
    if name in _MACHINERY:
        return globals().setdefault(name, _Machinery(name, _MACHINERY[name]))
    near = errors.did_you_mean(name, [*__all__, *_MACHINERY])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {near}")


def _as_list(value: object) -> Sequence[Any]:
    """Lists and tuples as they are, anything else as the only item of a list."""
    return value if isinstance(value, (list, tuple)) else [value]


def __dir__() -> list[str]:
    return sorted(__all__)

"""Functions that ported scripts call in place of those of Python 2, ``distutils`` and older NumPys."""

from __future__ import annotations

import importlib.util
import operator
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import total_ordering
from types import ModuleType
from typing import Any

import numpy as np

from ..core.files import open_to_read

__all__ = ["strtobool", "LooseVersion", "StrictVersion", "mkpath", "copy_tree", "load_source", "cmp", "execfile",
           "apply", "divide", "divide_in_place", "number", "format_percent", "element", "sctypes", "maximum_sctype",
           "obj2sctype", "issctype", "sctype2char", "find_common_type", "cast", "nbytes"]


def strtobool(val: str) -> int:
    """1 for a text that stands for true, such as ``"yes"``, 0 for one that stands for false.

    Raises
    ------
    ValueError
        When the text stands for neither.

    Examples
    --------
    >>> strtobool("True"), strtobool("off")
    (1, 0)
    """
    word = val.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if word in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {val!r}")


@total_ordering
class LooseVersion:
    """A version that is compared by its numbers, if it has any.

    Examples
    --------
    >>> LooseVersion("1.10.0") > "1.9.1"
    True
    """

    def __init__(self, vstring: str = "") -> None:
        self.vstring = vstring
        self.version = [int(part) if part.isdigit() else part for part in re.findall(r"\d+|[a-z]+", vstring)]

    def _key(self) -> list[tuple[bool, Any]]:
        return [(isinstance(part, int), part) for part in self.version]

    def __eq__(self, other: object) -> bool:
        return self._key() == LooseVersion(str(other))._key()

    def __lt__(self, other: object) -> bool:
        return self._key() < LooseVersion(str(other))._key()

    def __hash__(self) -> int:
        return hash(tuple(self._key()))

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"LooseVersion ('{self.vstring}')"


#: Scripts use the strict kind for versions of packages, too.
StrictVersion = LooseVersion


def mkpath(name: str) -> None:
    """Make a folder and its parents, if they are missing."""
    os.makedirs(name, exist_ok=True)


def copy_tree(src: str, dst: str) -> None:
    """Copy the content of a folder into another one, which may exist."""
    shutil.copytree(src, dst, dirs_exist_ok=True)


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """The module of a file, which is executed anew.

    Raises
    ------
    ImportError
        When the file's name does not end in that of a module.
    """
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"{pathname!r} is no file of a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cmp(x: Any, y: Any) -> int:
    """-1, 0 or 1 as x is less than y, equal, or greater.

    Examples
    --------
    >>> cmp(1, 2), cmp(2, 2), cmp("b", "a")
    (-1, 0, 1)
    """
    return int(x > y) - int(x < y)


def execfile(filename: str, globals: dict[str, Any], locals: dict[str, Any] | None = None) -> None:
    """Run a file of Python in a namespace."""
    with open_to_read(filename) as file:
        exec(compile(file.read(), filename, "exec"), globals, locals)


def apply(function: Callable[..., Any], args: Any = (), keywords: Any = None) -> Any:
    """Call a function with a tuple of arguments."""
    return function(*args, **(keywords or {}))


def _integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) or (isinstance(value, np.ndarray) and value.dtype.kind in "iu")


def divide(a: Any, b: Any) -> Any:
    """Division of Python 2: integers, and arrays of integers, are rounded down.

    Examples
    --------
    >>> divide(7, 2), divide(-7, 2), divide(7.0, 2)
    (3, -4, 3.5)
    """
    return a // b if _integer(a) and _integer(b) else a / b


def divide_in_place(a: Any, b: Any) -> Any:
    """In-place division of Python 2: integers are rounded down."""
    return operator.ifloordiv(a, b) if _integer(a) and _integer(b) else operator.itruediv(a, b)


# ------------------------------------------------------------------------- arrays of one element as numbers


def _is_number(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.size == 1 and value.ndim > 0 and value.dtype != object


def number(value: Any) -> Any:
    """An array of one element as a number; other values unchanged.

    Examples
    --------
    >>> float(number(np.array([[2.5]]))), number("3")
    (2.5, '3')
    """
    return value.item() if _is_number(value) else value


class _Shown:
    """An array of one element that formats as a number for numeric formats, and as an array otherwise."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __float__(self) -> float:
        return float(self._array.item())

    def __int__(self) -> int:
        return int(self._array.item())

    def __index__(self) -> int:
        return operator.index(self._array.item())

    def __str__(self) -> str:
        return str(self._array)

    def __repr__(self) -> str:
        return repr(self._array)


def format_percent(a: Any, b: Any) -> Any:
    """``a % b``, where arrays of one element may stand for numbers.

    Examples
    --------
    >>> format_percent("%d: %.2f %s", (1, np.ones(1), np.ones(1))), format_percent(7, 4)
    ('1: 1.00 [1.]', 3)
    """
    if isinstance(a, (str, bytes)):
        if isinstance(b, tuple):
            b = tuple([_Shown(value) if _is_number(value) else value for value in b])
        elif isinstance(b, dict):
            b = {key: _Shown(value) if _is_number(value) else value for key, value in b.items()}
        elif _is_number(b):
            b = _Shown(b)
    return a % b


def element(target: Any, value: Any) -> Any:
    """The value to store in an element of ``target``: an array of one element becomes a number, if ``target`` is
    numeric.

    Examples
    --------
    >>> element(np.zeros(3), np.ones(1)), element([0], np.ones(1))
    (1.0, array([1.]))
    """
    if _is_number(value) and isinstance(target, np.ndarray) and target.dtype != object:
        return value.item()
    return value


# --------------------------------------------------------------------------------- types of older NumPys

#: Numeric types by kind, the smallest first.
sctypes: dict[str, list[type]] = {
    "int": [np.int8, np.int16, np.int32, np.int64], "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void]}


def maximum_sctype(t: Any) -> Any:
    """The widest type of a kind.

    Examples
    --------
    >>> maximum_sctype(float) is np.longdouble, maximum_sctype("u1"), maximum_sctype(bool)
    (True, <class 'numpy.uint64'>, <class 'numpy.bool'>)
    """
    result = obj2sctype(t)
    kinds = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
    kind = None if result is None else kinds.get(np.dtype(result).kind)
    return (t if result is None else result) if kind is None else sctypes[kind][-1]


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """The scalar type of a dtype, a type, a type's name, or an array; ``default`` for other values."""
    if isinstance(rep, type) and issubclass(rep, np.generic):
        return rep
    try:
        return np.dtype(getattr(rep, "dtype", rep)).type
    except TypeError:
        return default


def issctype(rep: Any) -> bool:
    """Whether a value denotes a scalar type."""
    return isinstance(rep, (type, np.dtype)) and obj2sctype(rep, np.object_) is not np.object_


def sctype2char(sctype: Any) -> str:
    """The letter of a scalar type.

    Examples
    --------
    >>> sctype2char(np.float32)
    'f'
    """
    return np.dtype(obj2sctype(sctype)).char


def find_common_type(array_types: Sequence[Any], scalar_types: Sequence[Any]) -> np.dtype:
    """The common dtype of arrays of some dtypes, and of scalars if their kind is higher.

    Examples
    --------
    >>> find_common_type([np.float32, np.int64], []), find_common_type([np.float32], [np.int64, np.float64])
    (dtype('float64'), dtype('float32'))
    """
    if not array_types or not scalar_types:
        return np.result_type(*array_types, *scalar_types)
    array, scalar = np.result_type(*array_types), np.result_type(*scalar_types)
    order = "buifcSUVO"
    return np.result_type(array, scalar) if order.index(scalar.kind) > order.index(array.kind) else array


class _ByType:
    """A table that is indexed by types."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self._find = find

    def __getitem__(self, key: Any) -> Any:
        return self._find(key)


#: ``cast["float32"]`` makes arrays of that dtype; ``nbytes["float32"]`` is the size of an element in bytes.
cast, nbytes = _ByType(lambda key: lambda x: np.asarray(x, key)), _ByType(lambda key: np.dtype(key).itemsize)

"""What rewritten scripts call of Python 2 and of ``distutils``, and the standard library has no more."""

from __future__ import annotations

import operator
import os
import re
import shutil
from collections.abc import Callable
from functools import total_ordering
from typing import Any

import numpy as np

from ..core.files import reading

__all__ = ["strtobool", "LooseVersion", "StrictVersion", "mkpath", "copy_tree", "cmp", "execfile", "apply", "divide",
           "divide_in_place"]


def strtobool(val: str) -> int:
    """1 for text that says yes, 0 for text that says no.

    Raises
    ------
    ValueError
        It says neither.

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
    """A version that compares by its numbers, where there are any.

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


#: Versions of packages that scripts ask for are of the strict kind as well.
StrictVersion = LooseVersion


def mkpath(name: str) -> None:
    """Make a folder, and those it lies in, where they are not there."""
    os.makedirs(name, exist_ok=True)


def copy_tree(src: str, dst: str) -> None:
    """Copy what is in a folder into another one, which may be there."""
    shutil.copytree(src, dst, dirs_exist_ok=True)


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
    with reading(filename) as file:
        exec(compile(file.read(), filename, "exec"), globals, locals)


def apply(function: Callable[..., Any], args: Any = (), keywords: Any = None) -> Any:
    """Call a function with a tuple of arguments."""
    return function(*args, **(keywords or {}))


def _integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) or (isinstance(value, np.ndarray) and value.dtype.kind in "iu")


def divide(a: Any, b: Any) -> Any:
    """What ``a / b`` is in Python 2: of integers, and arrays of NumPy with integers, the next lower integer.

    Examples
    --------
    >>> divide(7, 2), divide(-7, 2), divide(7.0, 2)
    (3, -4, 3.5)
    """
    return a // b if _integer(a) and _integer(b) else a / b


def divide_in_place(a: Any, b: Any) -> Any:
    """What ``a /= b`` leaves in ``a`` in Python 2."""
    return operator.ifloordiv(a, b) if _integer(a) and _integer(b) else operator.itruediv(a, b)

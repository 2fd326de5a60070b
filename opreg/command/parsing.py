"""Parsing of command line words: shapes, arrays, attributes, and objects from a module or file."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from opreg.core.files import open_to_read
from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError, OpError, did_you_mean
from opreg.ndarray.npz_file import read_npy
from opreg.typing import Array

__all__ = ["add_import", "array", "attributes", "find_object", "import_or_load", "split_name", "shape", "shapes"]


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the argument for modules that register operators."""
    parser.add_argument("--import", nargs="+", action="extend", default=[], dest="modules", metavar="MODULE",
                        help="a module, or a file.py, that registers operators of the graph")


def split_name(word: str) -> tuple[str, str]:
    """A word split into name and value; the name is empty if there is none.

    Examples
    --------
    >>> split_name("data=1x3"), split_name("x.npy")
    (('data', '1x3'), ('', 'x.npy'))
    """
    name, sign, value = word.partition("=")
    return (name, value) if sign else ("", word)


def shape(text: str) -> tuple[int, ...]:
    """A shape written as its lengths: ``1x3x224x224``; ``()`` is a scalar's.

    Raises
    ------
    ArgumentError
        When the text is no shape.

    Examples
    --------
    >>> shape("1x3x224x224"), shape("5"), shape("()")
    ((1, 3, 224, 224), (5,), ())
    """
    if text.replace(" ", "") == "()":
        return ()
    words = text.strip("()").replace(" ", "").replace(",", "x").strip("x").split("x")
    if not all(word.isdecimal() for word in words):
        raise ArgumentError(f"{text!r} is no shape; write it as 1x3x224x224")
    return tuple(map(int, words))


def shapes(words: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes by name, each written as ``data=1x3x224x224``.

    Raises
    ------
    ArgumentError
        When a word has no name, or no valid shape.
    """
    result = {}
    for word in words:
        name, text = split_name(word)
        if not name:
            raise ArgumentError(f"{word!r}: the input of this shape is unknown. Write data={word}, with the name of "
                                f"the input")
        result[name] = shape(text)
    return result


def array(text: str) -> Array:
    """An array from a ``.npy`` file, or random values of a shape, with an optional dtype after a colon: ``2x3``,
    ``2x3:int32``.

    Raises
    ------
    ArgumentError
        When the text is neither.
    FileFormatError
        When the file holds no numeric array.
    OSError
        When there is no such file.

    Examples
    --------
    >>> array("2x3:int32").dtype.name, array("5").shape
    ('int32', (5,))
    """
    if text.endswith(".npy"):
        with open_to_read(text) as file:
            return read_npy(file, text)
    size, _, kind = text.partition(":")
    try:
        dims = shape(size)
    except ArgumentError:
        raise ArgumentError(f"{text!r} is no input; give a .npy file, or a shape for random numbers, as 2x3 or "
                            "2x3:int32") from None
    dtype, rng = as_dtype(kind or "float32"), np.random.default_rng(0)
    try:
        if dtype.kind in "iub":
            return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 10, dims)).astype(dtype)
        return np.asarray(rng.standard_normal(dims)).astype(dtype)
    except (ValueError, MemoryError) as error:
        raise ArgumentError(f"{text}: {error}") from None


def attributes(words: Sequence[str]) -> dict[str, Any]:
    """Attributes, each written as ``beta=2.0``: Python literals, or else text.

    Examples
    --------
    >>> attributes(["beta=2.0", "kernel=(3, 3)", "mode=same"])
    {'beta': 2.0, 'kernel': (3, 3), 'mode': 'same'}
    """
    result = {}
    for word in words:
        name, text = split_name(word)
        if not name:
            raise ArgumentError(f"{word!r}: an attribute is written as name=value")
        try:
            result[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            result[name] = text
    return result


def import_or_load(name: str) -> ModuleType:
    """A module by its name, relative to the working directory, or by its file.

    Raises
    ------
    ArgumentError
        When there is no such module.
    OSError
        When there is no such file.
    """
    if not name.endswith(".py"):
        working_directory = os.getcwd()
        sys.path.insert(0, working_directory)
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the missing module is one that this module imports
            raise ArgumentError(f"there is no module {error.name!r}; the name of a file includes its suffix, as in "
                                f"ops.py"
                                ) from None
        finally:
            sys.path.remove(working_directory)
    with open_to_read(name):
        pass
    path = os.path.abspath(name)
    stem = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None:
        raise OpError(f"{name}: Python cannot load it")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(stem, module)  # its classes may be pickled
    sys.path.insert(0, os.path.dirname(path))  # modules in the same folder
    spec.loader.exec_module(module)
    return module


def find_object(text: str) -> Any:
    """The object that a word names in a module or file, ``package.module:Name`` or ``file.py:Name``; other words are
    returned unchanged.

    Raises
    ------
    ArgumentError
        When the module does not define the name.
    """
    place, sign, name = text.rpartition(":")
    if not sign:
        if text.endswith(".py"):
            raise ArgumentError(f"{text}: the object in it is not named. Write {text}:Name")
        return text
    value: Any = import_or_load(place)
    for part in name.split("."):
        if not hasattr(value, part):
            words = [word for word in vars(value) if not word.startswith("_")] if hasattr(value, "__dict__") else []
            raise ArgumentError(f"{place} defines no {name!r}. {did_you_mean(part, words)}")
        value = getattr(value, part)
    return value

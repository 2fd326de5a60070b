"""The table of functions of arrays and symbols by NumPy's names, and what the modules that fill it have in common.

If no operator has the name, NumPy's function is called with the arrays: it computes on the host, or for recorded arrays
is traced to operators.
"""

from __future__ import annotations

import builtins
import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.core.named_errors import named
from opreg.core.settings import dimensions
from opreg.core.spec import as_dtype, is_floating
from opreg.errors import ArgumentError, DTypeError, did_you_mean
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from .values import FUNCTION, NUMPYS, NumpyValue, new_array

__all__ = ["FUNCTIONS", "any_symbol", "axis_attr", "by_numpy", "call_numpy", "as_floating", "function", "is_number",
           "refuse_options", "register", "register_as", "shape_attr", "store"]

#: Functions by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {}

_FLOAT32 = np.dtype(np.float32)


def register(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that adds a function to the table."""
    FUNCTIONS[function.__name__] = named(function, "opreg.np")
    return function


def store(result: Any, out: Any) -> Any:
    """Store a result in ``out`` if that is given; returns the array that has it."""
    if out is None:
        return result
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not isinstance(target, (NDArray, np.ndarray)):
        raise ArgumentError(f"out: expected an array, got {target!r}")
    target[...] = result
    return target


def as_floating(value: Any) -> Any:
    """A value in a floating dtype; a symbol's dtype is unknown."""
    return value.astype(_FLOAT32) if isinstance(value, NDArray) and not is_floating(value._data.dtype) else value


def register_as(name: str, doc: str, function: Callable[..., Any]) -> None:
    """Add a function to the table under a name, with a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    FUNCTIONS[name] = named(function, "opreg.np")


#: Options of NumPy's element-wise functions, which this package does not have, with the values that NumPy takes.
_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "where": lambda value: True,
    "casting": lambda value: value in ("no", "equiv", "safe", "same_kind", "unsafe"),
    "order": lambda value: True,
    "dtype": lambda value: _is_dtype(value),  # noqa: PLW0108  it is defined below
    "subok": lambda value: isinstance(value, (bool, np.bool_)),
}


def _is_dtype(value: Any) -> bool:
    try:
        return value is not None and as_dtype(value) is not None
    except (DTypeError, TypeError, ValueError):
        return False


def refuse_options(name: str, options: dict[str, Any]) -> None:
    """Raise an error for options of element-wise functions: not implemented here, or unknown to NumPy as well."""
    for option, value in options.items():
        if option not in _OPTIONS or not _OPTIONS[option](value):
            raise ArgumentError(f"np.{name} does not support {option}={value!r}")
        raise NotImplementedError(f"np.{name} does not take {option}={value!r}, which NumPy's function takes: leave it "
                                  f"out, or call NumPy's on asnumpy()")


def is_number(value: object) -> bool:
    """Whether a value is a number of Python or NumPy, and no array or symbol."""
    return isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, NumpyValue)


def axis_attr(axis: Any) -> Any:
    """An axis, or several, as an operator's attribute: None, an integer, or a tuple of integers."""
    if axis is None or isinstance(axis, int):
        return axis
    try:
        return operator.index(axis) if getattr(axis, "ndim", int(isinstance(axis, Sequence))) == 0 else tuple(
            map(operator.index, axis))
    except TypeError:
        raise ArgumentError(f"axis={axis!r}: expected an int, a tuple of ints or None") from None


def shape_attr(shape: Any) -> Any:
    """A shape, or one length, as an operator's attribute."""
    return int(shape) if isinstance(shape, numbers.Integral) else dimensions("shape", shape, -math.inf)


def _wrap(value: Any, floats: bool,
          kinds: tuple[type[np.ndarray] | type[np.generic], ...] = (np.ndarray, np.generic),
          ctx: Context | None = None) -> Any:
    """Results of NumPy as arrays of this library, if they are of these kinds; float64 only if an argument has it."""
    if isinstance(value, (list, tuple)):
        parts = [_wrap(part, floats, kinds, ctx) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, kinds) and (value.dtype.kind in "biu" or is_floating(value.dtype)):
        return new_array(value, ctx, _FLOAT32 if value.dtype == np.float64 and not floats else None)
    return value.as_np_ndarray() if isinstance(value, NDArray) else value


def _dtypes(values: Any) -> list[np.dtype]:
    if isinstance(values, (list, tuple)):
        return [dtype for value in values for dtype in _dtypes(value)]
    return [np.dtype(values.dtype)] if isinstance(values, (NDArray, np.ndarray)) else []


def call_numpy(name: str, *args: Any, **keywords: Any) -> Any:
    """Call NumPy's function of that name, and wrap its results; see the module."""
    place: Any = np
    for part in name.split("."):
        place = getattr(place, part)
    if any_symbol((args, keywords)):
        if name in FUNCTIONS:
            raise ArgumentError(f"np.{name} with these arguments reads shapes or dtypes, which a symbol does not have")
        raise ArgumentError(f"np.{name} is not an operator, so it cannot be applied to a symbol. "
                            f"{did_you_mean(name, FUNCTIONS)}")
    out = keywords.pop("out", None)
    result = _wrap(place(*args, **keywords), _is_wide(args, keywords))
    return store(tuple(result) if isinstance(result, tuple) else result, out)


def _is_wide(args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the arguments of a function ask for float64."""
    return np.dtype(np.float64) in _dtypes([*args, *keywords.values()]) or keywords.get("dtype") is not None


@NUMPYS.provide
def of_numpy(array: NDArray, name: str, result: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of NumPy's function ``name``, called with ``array``. Arrays in it become arrays of ``np``, and so do
    scalars if ``np`` has a function of this name. An ``out`` stays as it is."""
    if keywords.get("out") is not None:
        return result
    kinds: tuple[type[np.ndarray] | type[np.generic], ...] = (np.ndarray,)
    if name in FUNCTIONS:
        kinds = np.ndarray, np.generic
    return _wrap(result, _is_wide(args, keywords), kinds, array._ctx)


def any_symbol(values: Any) -> bool:
    """Whether a nesting contains a symbol."""
    if isinstance(values, dict):
        return any_symbol(list(values.values()))
    if isinstance(values, (list, tuple)):
        return builtins.any(any_symbol(value) for value in values)
    return isinstance(values, Symbol)


def by_numpy(name: str) -> Callable[..., Any]:
    """A function that NumPy computes, by its name below ``numpy``."""

    def function(*args: Any, **keywords: Any) -> Any:
        return call_numpy(name, *args, **keywords)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"NumPy's ``{name}`` of arrays."
    return named(function)


@FUNCTION.provide
def function(name: str) -> Callable[..., Any]:
    """The function of ``np`` of that name."""
    return FUNCTIONS.get(name) or by_numpy(name)

"""Functions of other libraries as subjects of checks: their arguments, and what is common to all of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from opreg.ndarray import NDArray

from ..cells.tensor_base import TensorBase
from ..errors import ArgumentError, DTypeError
from .uses import Subject

__all__ = ["ForeignUse", "arrays_in", "arrays_in_keywords", "fill_arrays", "is_numeric_list"]


#: The words of libraries for a dtype without a kernel.
_REFUSED = re.compile("(?=.*(half|float|double|dtype)).*(not implemented for|not supported|unsupported)",
                      re.IGNORECASE | re.DOTALL)


class ForeignUse(Subject):
    """A function of another library with its arguments, whose arrays are the inputs.

    Attributes
    ----------
    library, kind : str
        The name of the library, and the kind of the function, for reports.
    function : callable
        The function that is called.
    args : list
        Its arguments: nestings of lists, tuples and dicts that hold arrays.
    keywords : dict
        Its keyword arguments. Their arrays are inputs after those of the arguments; a list of numbers is a setting.
    any_layout : bool
        Whether arrays of the library may have any layout in memory.
    """

    train = True
    library: str
    kind = "function"
    any_layout = True
    #: The class of the library's arrays.
    array_class: Any

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], keywords: Mapping[str, Any], name: str,
                 words: Sequence[str]):
        self.function, self.keywords, self.args = function, dict(keywords), list(inputs)
        self.title = f"{self.kind} {name} of {self.library}"
        self.no_graph = f"a {self.kind} of {self.library} cannot be in a graph here"
        found = [leaf for word, value in zip(words, inputs) for leaf in arrays_in(value, self.is_array, word)]
        found += arrays_in_keywords(self.keywords, self.is_array)
        if not found:
            raise ArgumentError(f"check: {name} needs at least one array: call check({name}, x) with a typical x")
        self.arrays, self._names = [self.on_host(value) for _, value in found], [word for word, _ in found]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs: the function's parameters, with the place of an array inside of a nesting."""
        return tuple(self._names)

    def is_array(self, value: object) -> bool:
        """Whether an argument is an array: one of the library, of NumPy or of opreg, or a list of numbers."""
        return isinstance(value, (self.array_class, np.ndarray, np.generic, NDArray, TensorBase)
                          ) or is_numeric_list(value)

    def on_host(self, value: Any) -> np.ndarray:
        """An argument as an array of NumPy, in memory of its own; a list has dtype float32, as in ``nd.array``."""
        if isinstance(value, list):
            return np.asarray(value, np.float32)
        return np.array(value.asnumpy() if isinstance(value, (NDArray, TensorBase)) else value)

    def call(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """The result of a function for the arguments, with these values in the places of their arrays."""
        args, keywords = self.arguments(values)
        return function(*args, **keywords)

    def arguments(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments and the keyword arguments, with these values in the places of their arrays."""
        rest = iter(values)
        args = tuple([fill_arrays(value, rest, self.is_array) for value in self.args])
        is_array = _reject_lists(self.is_array)
        return args, {name: fill_arrays(value, rest, is_array) for name, value in self.keywords.items()}

    def settings(self) -> dict[str, Any]:
        """The keyword arguments without arrays, for reports."""
        return {name: value for name, value in self.keywords.items()
                if not any(True for _ in arrays_in(value, _reject_lists(self.is_array)))}

    @contextlib.contextmanager
    def dtype_errors(self) -> Iterator[None]:
        """A context in which an error of the library about a dtype that it does not support is a DTypeError."""
        try:
            yield
        except (NotImplementedError, RuntimeError, TypeError) as error:
            if not _REFUSED.search(str(error)):
                raise
            raise DTypeError(str(error)) from error

    def check_inference(self) -> bool:
        """Compare what the library infers about the results with a run; false if it infers nothing."""
        return False

    def compiled(self) -> ForeignUse | None:
        """The function compiled by its library; None if checks do not compile it."""
        return None


def is_numeric_list(value: object) -> bool:
    """Whether a value is a list of numbers, or of such lists."""
    return isinstance(value, list) and bool(value) and all(
        isinstance(member, Real) or is_numeric_list(member) for member in value)


def arrays_in(value: Any, is_array: Callable[[object], bool], name: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays in a nesting of lists, tuples and dicts, each with its place, such as ``x[0]['weight']``."""
    if is_array(value):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from arrays_in(part, is_array, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from arrays_in(part, is_array, f"{name}[{i}]")


def arrays_in_keywords(keywords: Mapping[str, Any], is_array: Callable[[object], bool]) -> Iterator[tuple[str, Any]]:
    """The arrays in keyword arguments, each with its place; a list of numbers is a setting."""
    for name, value in keywords.items():
        yield from arrays_in(value, _reject_lists(is_array), name)


def _reject_lists(is_array: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, (list, Real)) and is_array(value)


def fill_arrays(value: Any, values: Iterator[Any], is_array: Callable[[object], bool]) -> Any:
    """A nesting with the next of these values in the place of each array."""
    if is_array(value):
        return next(values)
    if isinstance(value, Mapping):
        return {key: fill_arrays(part, values, is_array) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [fill_arrays(part, values, is_array) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value

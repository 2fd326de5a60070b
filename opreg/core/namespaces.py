"""Namespaces of operator functions, ``nd`` and ``sym`` and their parts. Each function has the signature of its
operator."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from ..errors import ArgumentError, ShapeError, did_you_mean
from .arguments import LateSignature, signature
from .named_errors import named
from .op import Op
from .registry import find, names, nearest, on_names, ops, unknown_operator
from .value import ARITHMETIC, METHODS, Value, arithmetic

__all__ = ["Namespace", "give_signature", "front", "public", "user_function", "WRITTEN", "CONTRIB",
           "split_v2", "histogram"]

V = TypeVar("V", bound=Value)


@named
def split_v2(ary: V, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False
             ) -> V | list[V]:
    """Split an array or symbol along an axis.

    Parameters
    ----------
    ary : NDArray or Symbol
        The array.
    indices_or_sections : int or sequence of int
        The number of equal parts, or the indices before which to split.
    axis : int
        The axis.
    squeeze_axis : bool
        Whether parts of length one lose the axis.
    """
    if not isinstance(indices_or_sections, int):
        return ops._split_v2(ary, indices=(0, *indices_or_sections), axis=axis, squeeze_axis=squeeze_axis)
    shape = getattr(ary, "shape", None)
    if shape is not None and shape[axis] % indices_or_sections:
        raise ShapeError(f"split_v2: axis {axis} of {shape} cannot be split into {indices_or_sections} equal parts")
    return ops._split_v2(ary, indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=indices_or_sections)


@named
def histogram(a: Any, bins: int | Value = 10, range: tuple[float, float] | None = None) -> list[Any]:
    """The histogram of an array: the number of elements in each bin, and the edges of the bins.

    Parameters
    ----------
    a : NDArray or Symbol
        The array.
    bins : int, NDArray or Symbol
        The number of bins of equal width, or the edges of the bins.
    range : (float, float), optional
        The lower edge of the first bin and the upper edge of the last one, if ``bins`` is a number. By default these
        are the smallest and the largest element of an NDArray (half a unit away from it if there is one value), and
        both results are float32, as in MXNet.
    """
    if isinstance(bins, Value):
        return ops._histogram(a, bins)
    if range is not None:
        return ops._histogram(a, bin_cnt=bins, range=range)
    least, most = float(a.min()), float(a.max())
    margin = 0.5 if least == most else 0.0
    results = ops._histogram(ops.Cast(a, dtype="float64"), bin_cnt=bins, range=(least - margin, most + margin))
    return [ops.Cast(result, dtype="float32") for result in results]


def isnan(data: V) -> V:
    """1 where an element is NaN, and else 0, in the dtype of the data."""
    return ops._not_equal(data, data)


def isinf(data: V) -> V:
    """1 where an element is infinite, and else 0, in the dtype of the data."""
    return ops._equal_scalar(ops.abs(data), scalar=math.inf)


def isfinite(data: V) -> V:
    """1 where an element is neither infinite nor NaN, and else 0, in the dtype of the data."""
    return ops._lesser_scalar(ops.abs(data), scalar=math.inf)


#: Functions of ``contrib`` that call other operators.
CONTRIB: dict[str, Callable] = {"isnan": isnan, "isinf": isinf, "isfinite": isfinite}

#: Functions of arrays and symbols that choose an operator by their arguments.
WRITTEN: dict[str, Callable] = {
    "split_v2": split_v2, "histogram": histogram, **{name: arithmetic(name) for name in ARITHMETIC}}


for _name in {*WRITTEN} & {*METHODS}:
    _first, *_rest = inspect.signature(WRITTEN[_name]).parameters.values()
    _method: Any = getattr(Value, _name)
    _method.__doc__ = WRITTEN[_name].__doc__
    _method.__signature__ = inspect.Signature([_first.replace(name="self"), *_rest])


def give_signature(function: Callable, op: Op, name: str, module: str, further: Sequence[str] = ("out", "name"),
                   made: bool = False) -> Callable:
    """Give a closure the name, docstring and signature of the operator that it calls; see ``arguments.signature``."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = op.doc
    function.__signature__ = LateSignature(lambda: signature(op, further, made))  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function


def user_function(call: Callable[[Op, Sequence[Any], dict[str, Any]], Any], op: Op,
                  dress: Callable[[Callable, Op], Callable]) -> Callable:
    """Make the function by which users call an operator, under one of its names.

    Parameters
    ----------
    call : function of an operator, arguments and keywords
        Calls the operator.
    op : Op
        The operator of the name; ``function.become(other)`` replaces it when another operator gets the name.
    dress : function of a function and an operator
        Sets docstring and signature.
    """

    def function(*args: Any, **keywords: Any) -> Any:
        return call(op, args, keywords)

    def become(other: Op) -> None:
        nonlocal op
        op = other
        dress(function, other)

    function.become = become  # type: ignore[attr-defined]
    return dress(function, op)


def _renew(function: Any, op: Op | None) -> None:
    """Let the function of a name call the operator that has the name now."""
    if op is not None and op is not function.op and hasattr(function, "become"):
        function.become(op)


def public() -> list[str]:
    """The public names of operators."""
    return [name for name in {*names(), *WRITTEN} if name.isidentifier() and not name.startswith("_")]


def front(title: str, make: Callable[[Op, str], Callable]) -> Callable[[str], Callable]:
    """A ``__getattr__`` for ``nd`` or ``sym``, which makes the function of a name at its first use."""
    functions: dict[str, Callable] = {}

    def surface(name: str) -> Callable:
        """The function of a name; an `UnknownOperatorError` with the nearest names if there is none."""
        if name in functions:
            return functions[name]
        if name in WRITTEN:
            return WRITTEN[name]
        op = find(name) or find(f"_{name}")
        if op is None or op.name.startswith("custom."):
            users = find(f"custom.{name}")
            advice = nearest(name, [*WRITTEN]) if users is None else \
                f"A user's operator has this name: {title}.custom.{name}"
            raise unknown_operator(f"{title} has no operator {name!r}. {advice}")
        if not functions:
            on_names(renew)
        function = functions[name] = make(op, name)
        return function

    def renew(names: Sequence[str]) -> None:
        for name in {*names, *[name[1:] for name in names if name[0] == "_"]} & functions.keys():
            _renew(functions[name], find(name) or find(f"_{name}"))

    return surface


class _WithAttributes:
    """A base that holds attributes in a dict, so that a derived class can replace ``__dict__``."""


#: The dict of an object's attributes as it is.
_own: Callable[[object], dict[str, Any]] = vars(_WithAttributes)["__dict__"].__get__


class Namespace(_WithAttributes):
    """A namespace of operators with given prefixes, whose functions are made at first use.

    Parameters
    ----------
    title : str
        Its name in errors, such as ``nd.linalg``.
    prefixes : sequence of str
        Prefixes of operator names, tried in order.
    make : function of an operator and a name
        Makes the function that users call.
    """

    def __init__(self, title: str, prefixes: Sequence[str], make: Callable[[Op, str], Callable]):
        self.__name__ = title
        self._prefixes, self._make = tuple(prefixes), make
        self._made: dict[str, Callable] = {}
        self._looked_at: set[str] = set()

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # read-only, as that of a class
        """All functions by name, as modules have them; reading it makes those that are missing."""
        names = {*dir(self)} - self._looked_at
        self._looked_at |= names
        for name in names:
            getattr(self, name)
        return _own(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        op = self.operator(name)
        if op is not None:
            if not self._made:
                on_names(self._renew)
            function = self._made[name] = self._make(op, name)
            setattr(self, name, function)
            return function
        dotted = sorted(full[len(prefix):] for prefix in self._prefixes for full in names(prefix)
                        if full.endswith(f".{name}") and "." in full[len(prefix):])
        advice = f"The operator {dotted[0]!r} is called by {self.__name__.partition('.')[0]}.Custom(…, " \
                 f"op_type={dotted[0]!r})" if dotted else did_you_mean(name, dir(self))
        raise unknown_operator(f"{self.__name__} has no operator {name!r}. {advice}")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        title = self.__name__
        manner, _, part = title.partition(".")
        face = f"{manner}.Custom(…, op_type='name') or " if part == "custom" else ""
        raise ArgumentError(f"{title} holds functions and is not callable: {face}{title}.name(…)")

    def _renew(self, names: Sequence[str]) -> None:
        for prefix in self._prefixes:
            for name in {name[len(prefix):] for name in names if name.startswith(prefix)} & self._made.keys():
                _renew(self._made[name], self.operator(name))

    def operator(self, name: str) -> Op | None:
        """The operator of a name, or None."""
        return next((op for prefix in self._prefixes if (op := find(prefix + name)) is not None), None)

    def extend(self, **functions: Callable) -> None:
        """Add functions that are no operators."""
        _own(self).update(functions)

    def __dir__(self) -> list[str]:
        operators = {full[len(prefix):] for prefix in self._prefixes for full in names(prefix)
                     if full[len(prefix):].isidentifier()}
        return sorted(name for name in operators | _own(self).keys() if not name.startswith("_"))

    def __repr__(self) -> str:
        return f"<operators {self.__name__}>"

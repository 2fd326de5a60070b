"""Python's operators of arrays: a fast path for floating-point arrays of one dtype on the host, and in-place writes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.core.cache import cached
from opreg.core.invalidation import watch
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.core.rules import Attrs
from opreg.core.spec import is_numpy_float, show
from opreg.core.value import BINARY
from opreg.errors import ShapeError

from . import changes, tape
from .finite import SHORT_WAYS

__all__ = ["attach", "in_place", "leave_trace", "SHORT"]

_Scalars: TypeAlias = dict[np.dtype, dict[float | str, np.ndarray]]
#: Scalars as 0-d arrays of floating dtypes, and integers as 0-d arrays of any dtype.
_SCALARS: _Scalars = {}
_INTEGERS: _Scalars = {}
#: Attributes are floats, which represent each integer up to this one.
_REACH = 2 ** 53


def _scalar(value: float, dtype: np.dtype, scalars: _Scalars) -> np.ndarray | None:
    """A scalar as a 0-d array, with which a ufunc is twice as fast as with a Python number; None if an integer dtype,
    or a float as an attribute, does not represent it."""
    if not is_numpy_float(dtype):
        reach = np.iinfo(dtype)
        if scalars is _SCALARS or not max(reach.min, -_REACH) <= value <= min(reach.max, _REACH):
            return None
    of_dtype = scalars.setdefault(dtype, {})
    if len(of_dtype) > 1024:
        of_dtype.clear()
    of_dtype[value or str(value)] = scalar = quiet(np.array(value).astype, dtype)
    return scalar


@cached(1024, typed=True)
def _binary_operator(name: str, number: float | str | None = None) -> tuple[Op, Attrs]:
    """A built-in operator of two arrays, or of an array and a scalar, with its attributes."""
    op = get(name)
    return op, op.complete({} if number is None else {"scalar": number})


def _fast(name: str, ufunc: np.ufunc, forms: Sequence[str], result_class: type, classes: set[type],
          reflected: bool, exact: bool, truth: str | None = None, silent: bool = False) -> Callable[[Any, Any], Any]:
    """A method for one of Python's operators, with a fast path for floating-point arrays of one dtype on the host.

    Parameters
    ----------
    name : str
        The name of the operator in ``BINARY``.
    ufunc : ufunc
        The function of the fast path.
    forms : sequence of str
        The operators to record: for arrays of the same shape, for arrays that broadcast, and for a scalar.
    result_class, classes : type, set of type
        The class of the result; the classes of arrays that may be operands.
    reflected : bool
        Whether the scalar is the left operand.
    exact : bool
        Whether the ufunc equals the operator for integers, too.
    truth : {"number", "bool"}, optional
        The form in which comparisons return booleans.
    silent : bool
        Whether the operator is not recorded.
    """
    array_class: Any = np.ndarray
    new, scalars, kinds = object.__new__, _SCALARS, "fiu" if exact else "f"
    integers = _INTEGERS if exact else _SCALARS
    same, broadcast, with_number = forms
    as_number = truth == "number"

    def method(self: Any, other: Any) -> Any:
        data = self._data
        dtype = data.dtype
        kind = other.__class__
        thread = MODE.__dict__
        if data.__class__ is not array_class or thread["tracer"] is not None:
            return self._binary(name, other, reflected)
        if kind is not result_class and (kind is int or kind is float):
            table = integers if kind is int else scalars
            try:
                right = table[dtype][other or str(other)]  # 0.0 == -0.0
            except KeyError:
                scalar = _scalar(other, dtype, table) if dtype.kind in kinds else None
                if scalar is None:
                    return self._binary(name, other, reflected)
                right = scalar
        elif (kind is result_class or kind in classes) and not reflected:
            right = other._data
            if (right.__class__ is not array_class or right.dtype is not dtype or self._ctx is not other._ctx
                    or dtype.kind not in kinds):
                return self._binary(name, other, False)
        else:
            return self._binary(name, other, reflected)
        mode = thread["current"]()
        try:
            numbers = mode.run(ufunc, right, data) if reflected else mode.run(ufunc, data, right)
        except (ValueError, RuntimeError):
            numbers = None
        if numbers is None:
            return self._binary(name, other, reflected)  # the error names the shapes
        if as_number:
            numbers = numbers.astype(dtype)
        result: Any = new(result_class)
        result._data = numbers if numbers.__class__ is array_class else np.asarray(numbers)
        result._ctx = self._ctx
        result._entry = None
        entry = self._entry
        if kind is int or kind is float:
            if entry is not None and (recording := mode.recording) and not silent:
                op, attrs = _binary_operator(with_number, other or str(other))
                tape.add(op, attrs, (entry,), (data,), result, recording)
        elif (entry is not None or other._entry is not None) and (recording := mode.recording) and not silent:
            op, attrs = _binary_operator(same if data.shape == right.shape else broadcast)
            tape.add(op, attrs, (entry or tape.CONSTANT, other._entry or tape.CONSTANT), (data, right), result,
                     recording)
        return result

    def choose() -> None:
        nonlocal array_class
        array_class = np.ndarray if all(map(_is_built_in, forms)) else None  # with None, no array takes the fast path

    method.__name__ = f"__{'r' if reflected else ''}{name}__"
    SHORT_WAYS.add(method.__code__)
    for form in forms:
        _CHOICES.setdefault(form, []).append(choose)
    return method


#: For each operator that has a fast path: functions that check again whether it may be used.
_CHOICES: dict[str, list[Callable[[], None]]] = {}


def _is_built_in(name: str) -> bool:
    """Whether the operator of this name is the built-in one, with no other kernel for arrays of the host."""
    op = get(name)
    return op.family != "" and sum([not kernel.bound and kernel.serves is None for kernel in op.kernels]) == 1


class _Keeper:
    def on_register(self, op: Op | None) -> None:
        """Disable the fast paths of an operator that was registered again; all of them if it is None."""
        for choose in () if op is None else _CHOICES.get(op.name, ()):
            choose()


_KEEPER = _Keeper()
watch(_KEEPER)


_ARITHMETIC: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}
_COMPARISONS: dict[str, np.ufunc] = {"eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal,
                                     "lt": np.less, "le": np.less_equal}


#: The methods with fast paths: the class, the method's name, and the same method without a fast path.
SHORT: list[tuple[type, str, Callable[[Any, Any], Any]]] = []


def attach(cls: type, classes: set[type], comparisons: Mapping[str, Sequence[str]], truth: str,
           silent: bool = False) -> None:
    """Add Python's operators to a class of arrays; see ``_fast``. ``comparisons`` gives the forms of each comparison,
    which is not recorded if it is ``silent``."""
    def set_method(start: str, name: str, method: Callable[[Any, Any], Any]) -> None:
        setattr(cls, f"__{start}{name}__", method)
        SHORT.append((cls, f"__{start}{name}__", lambda self, other: self._binary(name, other, bool(start))))

    for name, ufunc in _ARITHMETIC.items():
        same, broadcast, right, left = BINARY[name]
        for start, number in (("", right), ("r", left)):
            set_method(start, name, _fast(name, ufunc, (same, broadcast, number), cls, classes, bool(start),
                                          name != "truediv"))
    for name, ufunc in _COMPARISONS.items():
        set_method("", name, _fast(name, ufunc, comparisons[name][:3], cls, classes, False, True, truth, silent))


def leave_trace(values: Iterable[Any]) -> None:
    """End a trace whose function computes eagerly with arrays from outside, or with tensors of the graph: their values
    may differ in another run."""
    tracer = MODE.tracer
    for value in values:
        if tracer.knows(value):
            tracer.leave("it computes with an NDArray that is no value of the graph; functions of nd take one, and "
                         "Tensor(array) makes a tensor of it")


def in_place(name: str) -> Callable[[Any, Any], Any]:
    """A method for one of Python's in-place operators, by its name in the module ``operator``."""
    compute = getattr(operator, name)
    name = name.rstrip("_")

    def method(self: Any, other: Any) -> Any:
        if MODE.tracer is not None:
            leave_trace((self, other))
        self.check_writable()
        if MODE.__dict__["current"]().recording or self._entry is not None:
            changes.update(self, other, compute, name)
            return self
        result = compute(self, other)
        if result.shape != self.shape:
            raise ShapeError(f"in-place {name}: the result has shape {show(result.shape)}, the array "
                             f"{show(self.shape)}")
        self._store(Ellipsis, result)
        return self

    method.__name__ = f"__i{name}__"
    return method

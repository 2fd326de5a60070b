"""Elements of traced values that are determined by shapes: shapes of arrays, and results of nodes that move and add
them. A dynamic length is a ``Length``, and a result computed from it is ``ANY``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.cells.parameter import Parameter
from opreg.cells.trace import FunctionTracer
from opreg.cells.traced_tensor import TracedTensor
from opreg.core.graph import Entry
from opreg.core.spec import ANY

__all__ = ["Length", "is_open", "numbers_of"]

_DEEPEST = 200  # number of nodes between a shape and its consumer


class Length(type(ANY)):  # type: ignore[misc]  # the type of ANY, which has no name of its own
    """A dynamic length: that of a value along an axis."""

    __slots__ = ("axis", "value")

    def __init__(self, value: TracedTensor, axis: int):
        self.value, self.axis = value, axis

    def is_of(self, value: object) -> bool:
        """Whether it is a length of this value."""
        return isinstance(value, TracedTensor) and value._entry == self.value._entry

    def _lost(self, *_: object) -> Any:
        return ANY

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _lost
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __pow__ = _lost


def is_open(number: object) -> bool:
    """Whether a number is known only when the graph runs.

    Examples
    --------
    >>> is_open(ANY), is_open(3)
    (True, False)
    """
    return isinstance(number, type(ANY))


def _reshape(x: np.ndarray, newshape: tuple[int, ...]) -> np.ndarray:
    return x.reshape(newshape)


def _slice(x: np.ndarray, begin: Any, end: Any, step: Any = None) -> np.ndarray:
    steps = step or (None,) * len(begin)
    return x[tuple([slice(*each) for each in zip(begin, end, steps)])]


def _sliced_axis(x: np.ndarray, axis: int, begin: int, end: int | None) -> np.ndarray:
    key: list[Any] = [slice(None)] * x.ndim
    key[axis] = slice(begin, end)
    return x[tuple(key)]


def _taken(x: np.ndarray, places: np.ndarray, axis: int = 0, mode: str = "clip") -> np.ndarray | None:
    if any(map(is_open, places.reshape(-1))):
        return None
    return np.asarray(np.take(x, places.astype(np.int64), axis, mode="wrap" if mode == "wrap" else "clip"), object)


def _cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Integers unchanged, if the dtype can represent every length."""
    return x if dtype.kind in "iu" or dtype in (np.float32, np.float64) else None


def _elementwise(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A scalar function as a function of arrays; the result is ANY if an argument is dynamic."""

    def of_arrays(*arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        return np.frompyfunc(lambda *each: ANY if any(map(is_open, each)) else function(*each, **attrs),
                             len(arrays), 1)(*arrays)

    return of_arrays


def _equal(a: Any, b: Any) -> Any:
    """Whether two numbers are equal; a length is never negative."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Length) and not is_open(other) and other < 0:
            return False
    return ANY if is_open(a) or is_open(b) else a == b


#: Functions of operators on object arrays; they return None if nothing is known.
_RULES: dict[str, Callable[..., np.ndarray | None]] = {
    "_np_reshape": _reshape, "slice": _slice, "slice_axis": _sliced_axis, "take": _taken,
    "expand_dims": np.expand_dims, "_copy": lambda x: x,
    "Cast": lambda x, dtype: _cast(x, np.dtype(dtype)),
    "squeeze": lambda x, axis=None: x.squeeze(axis),
    "Concat": lambda *xs, dim, num_args: np.concatenate(xs, dim),
    "broadcast_add": np.add, "broadcast_sub": np.subtract, "broadcast_mul": np.multiply,
    "_npi_add": np.add, "_npi_subtract": np.subtract, "_npi_multiply": np.multiply, "negative": np.negative,
    "_npi_floor_divide": _elementwise(lambda a, b: a // b if b else ANY),
    "_npi_logical_and": _elementwise(lambda a, b: a and b),
    "_npi_not_equal_scalar": _elementwise(lambda a, scalar: a != scalar),
    "_npi_equal": np.frompyfunc(_equal, 2, 1), "_npi_where": np.frompyfunc(
        lambda condition, a, b: ANY if is_open(condition) else a if condition else b, 3, 1),
    "_npi_less_scalar": _elementwise(lambda a, scalar: a < scalar),
}


def numbers_of(trace: FunctionTracer, value: TracedTensor) -> np.ndarray | None:
    """The elements of a value as an object array, with dynamic elements open; None if nothing is known."""
    home: FunctionTracer | None = trace
    while home is not None and value._entry[0] not in home.specs:
        home = home.parent
    return None if home is None else _found(home, value._entry, {}, 0)


def _found(trace: FunctionTracer, entry: Entry, cache: dict[Entry, np.ndarray | None], depth: int) -> np.ndarray | None:
    if entry in cache:
        return cache[entry]
    node = entry[0]
    result: np.ndarray | None = None
    if node.op is None:
        arrays = [array for array, variable in trace.variables.values() if variable is node]
        if arrays and not isinstance(arrays[0], (Parameter, TracedTensor)) and arrays[0]._data.dtype.kind in "iub":
            result = np.asarray(arrays[0].asnumpy()).astype(object)
    elif depth < _DEEPEST and node.op.name == "shape_array":
        source, i = node.inputs[0]
        shape = trace.specs[source][i].shape
        if shape is not None:
            result = np.empty(len(shape), object)
            result[:] = [Length(trace.wrap((source, i)), axis) if dim is ANY else dim for axis, dim in enumerate(shape)]
    elif depth < _DEEPEST and node.op.name in _RULES:
        ins = [_found(trace, each, cache, depth + 1) for each in node.inputs]
        if all(each is not None for each in ins):
            found = _RULES[node.op.name](*ins, **(node.keywords or {}))
            result = None if found is None else np.asarray(found, object)
    cache[entry] = result
    return result


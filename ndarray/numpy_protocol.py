"""NumPy's functions and ufuncs on NDArrays.

NumPy calls methods of its arguments to run a function (NEP 13 and NEP 18), also for Python's operators with a NumPy
array on the left. NumPy itself computes on arrays that are not recorded. For recorded or traced arrays, operators are
applied by the rules of traced bodies, so that no gradient is lost; a function without a rule is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opreg.core.op import Op
from opreg.core.rules import Attrs, as_list
from opreg.core.spec import Spec
from opreg.core.tracing import TraceError
from opreg.core.value import Value

from . import traced_composed as traced_composed  # enters rules
from . import traced_numpy as rules
from .context import current_context
from .ndarray import NDArray
from .protocols import BINARY_METHODS, FUNCTION, UFUNC
from .traced import BodyTracer, TracedArray

__all__ = ["ufunc", "function"]

#: Functions whose results have no gradient, such as booleans, indices and shapes.
_CONSTANT = frozenset((
    "isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor", "allclose",
    "isclose", "array_equal", "array_equiv", "any", "all", "argmax", "argmin", "argsort", "argpartition", "argwhere",
    "nonzero", "flatnonzero", "count_nonzero", "searchsorted", "digitize", "histogram", "bincount", "isin", "shape",
    "ndim", "size", "iscomplexobj", "isrealobj", "result_type", "can_cast", "min_scalar_type", "shares_memory",
    "may_share_memory", "zeros_like", "ones_like", "empty_like", "array_repr", "array_str", "array2string", "save",
    "savez", "savez_compressed", "savetxt"))
#: Functions whose result follows from where arrays are stored, which a copy would change.
_OF_MEMORY = frozenset(("shares_memory", "may_share_memory"))
#: Functions that change their first argument, and its name.
_FILLING = {"copyto": "dst", "fill_diagonal": "a", "place": "arr", "put": "a", "put_along_axis": "arr", "putmask": "a"}
#: Functions for which NumPy calls a method of the argument, so that they return NDArrays.
_METHODS = frozenset(("sum", "prod", "mean", "max", "min", "amax", "amin", "clip", "round", "around", "reshape",
                      "repeat", "squeeze", "swapaxes", "take", "transpose"))
#: Functions whose methods have other parameters than NumPy's.
_OTHERS = frozenset(("all", "any", "std", "var"))


class _Values(BodyTracer):
    """A tracer for the rules whose entries are NDArrays. Each operator is computed eagerly."""

    out_of_range = "raise"

    def __init__(self, like: Any):
        super().__init__("", {}, like._ctx if isinstance(like, NDArray) else current_context())
        self.like, self.instead = like, like._instead

    def spec(self, entry: Any) -> Spec:
        return Spec(entry.shape, entry._data.dtype if isinstance(entry, NDArray) else entry._dt)

    def apply(self, op: Op, entries: Sequence[Any], keywords: Attrs) -> list[Any]:
        results = op(*entries, **keywords)
        return as_list(results)

    def entry(self, value: object) -> Any:
        if isinstance(value, TracedArray):
            return value.entry
        return value if isinstance(value, Value) else self.like._held(np.asarray(value))

    def run(self, rule: Callable[..., Any], *args: Any) -> Any:
        """The result of a rule for arguments that contain NDArrays, as NDArrays."""
        results = rule(self, *_map_leaves(args, self._value))
        return _map_leaves(results, lambda value: self._reshape_scalar(value.entry) if isinstance(value, TracedArray)
                           else value)

    def _value(self, arg: Any) -> Any:
        return self.value(arg) if hasattr(arg, "_watched") else arg

    def _reshape_scalar(self, result: Any) -> Any:
        """A result, reshaped to (1,) if it is 0-d and its class has no 0-d arrays."""
        return result if result._scalars or result.shape else result.reshape((1,))


def _map_leaves(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to every leaf of nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        return type(value)([_map_leaves(part, function) for part in value])
    if isinstance(value, dict):
        return {key: _map_leaves(part, function) for key, part in value.items()}
    return function(value)


def _arrays(value: object) -> Iterator[Any]:
    if hasattr(value, "_watched"):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _arrays(part)


def _host(value: Any) -> Any:
    return _map_leaves(value, lambda leaf: leaf.asnumpy() if isinstance(leaf, NDArray) else leaf)


def _watched(values: object) -> tuple[Any, bool]:
    """The recorded or traced array of the highest rank, or None, and whether any is traced."""
    best: Any = None
    traced = False
    for value in _arrays(values):
        how = value._watched()
        traced = traced or how == "trace"
        if how and (best is None or value._rank > best._rank):
            best = value
    return best, traced


def _operator(name: str, left: object, right: object) -> Any:
    """The result of one of Python's operators, or NotImplemented."""
    forward, reflected = BINARY_METHODS[name]
    result: Any = NotImplemented
    if isinstance(left, Value) and hasattr(left, reflected):
        result = getattr(left, forward)(right)
    if result is NotImplemented and isinstance(right, Value) and hasattr(right, reflected):
        result = getattr(right, reflected)(left)
    return result


@UFUNC.provide
def ufunc(self: Any, ufunc: np.ufunc, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Run a ufunc; ``self`` is the array whose method NumPy has called."""
    name, outs = ufunc.__name__, keywords.pop("out", ())
    if method == "__call__" and name in BINARY_METHODS and not keywords and not outs:
        result = _operator(name, *inputs)
        if result is not NotImplemented:
            return result
    watched, traced = _watched(inputs)
    if method == "at" or (watched is not None and any(isinstance(out, np.ndarray) for out in outs)):
        raise TraceError(f"np.{name} changes a NumPy array in place, which autograd cannot record. "
                          + self._instead)
    if watched is not None and (traced or name not in _CONSTANT):
        result = _Values(watched).run(rules.ufunc, ufunc, method, inputs, keywords)
    else:
        if outs and all(isinstance(out, np.ndarray) for out in outs):
            keywords["out"] = outs
        result = getattr(ufunc, method)(*_host(inputs), **_host(keywords))
    return _store_results(result, outs)


@FUNCTION.provide
def function(self: Value, function: Any, kinds: Sequence[type], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Run a function of NumPy on arrays of these classes; ``self`` is the array whose method NumPy has called."""
    if not all(issubclass(kind, (Value, np.ndarray)) for kind in kinds):
        return NotImplemented  # NumPy then asks the other class
    ours = function.__module__ == "numpy"
    if ours and function.__name__ in _OF_MEMORY:
        return function(*[arg._data if isinstance(arg, NDArray) else arg for arg in args], **keywords)
    watched, traced = _watched((args, keywords))
    constant = ours and function.__name__ in _CONSTANT and not traced
    if (watched is not None and not constant) or (ours and function.__name__ in _METHODS):
        out = keywords.pop("out", None)
        try:
            result = _Values(self if watched is None else watched).run(rules.function, function, args, keywords)
        except Exception:
            if watched is not None:
                raise
            result = function(*_host(args), **_host(keywords))  # NumPy's own error is clearer
        return _store_results(result, () if out is None else (out,))
    if watched is not None:
        args, keywords = _map_leaves((args, keywords),
                                     lambda leaf: leaf.detach() if isinstance(leaf, NDArray) else leaf)
    if ours and function.__name__ in _FILLING:
        return _fill(function, args, keywords)
    out = keywords.get("out")
    if isinstance(out, NDArray):
        return _store_results(function(*_host(args), **_host({**keywords, "out": None})), (out,))
    if ours and function.__name__ not in _OTHERS and hasattr(type(self), function.__name__):
        return function._implementation(*args, **keywords)  # NumPy calls the method, or reads the attribute
    return function(*_host(args), **_host(keywords))


def _fill(function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> None:
    """Run a function that changes its first argument, and write the changed copy of an NDArray back."""
    target, *others = args or [keywords.pop(_FILLING[function.__name__])]
    changed = _host(target)
    function(changed, *_host(others), **_host(keywords))
    if isinstance(target, NDArray):
        target[...] = changed


def _store_results(result: Any, outs: Sequence[Any]) -> Any:
    """The results, stored in ``outs`` if they are given."""
    if not outs:
        return result
    for out, part in zip(outs, result if len(outs) > 1 else [result]):
        if out is not part and out is not None:
            out[...] = part
    return outs if len(outs) > 1 else outs[0]

"""Arguments of a compiled function whose content changes between two calls: the second call answers as Python."""

from __future__ import annotations

import array
import collections
import functools
import io
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor


class Case(NamedTuple):
    """A function that makes an argument, a number that the compiled function takes from it, and a change of it."""

    make: Callable[[], Any]
    number: Callable[[Any], Any]
    change: Callable[[Any], object]


class Holder:
    """An object with an attribute."""

    def __init__(self, k: float = 2.0):
        self.k = k


class Silent(Holder):
    """An object that raises an error when it is asked for its class."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            raise RuntimeError("it has no class")
        return object.__getattribute__(self, name)


class Failing(Holder):
    """An object whose class is a property that fails."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise ValueError("it has no class")


class Past(Holder):
    """An object whose method reads past its class."""

    def number(self) -> Any:
        return object.__getattribute__(self, "k")


def record(subarray: bool = False) -> np.void:
    """A record with a number and an object, or several."""
    kind: Any = (object, (2,)) if subarray else object
    made = np.zeros(1, [("number", "f8"), ("inner", [("held", *(kind if subarray else (kind,)))])])[0]
    made["inner"]["held"] = Holder()
    return made


CASES: dict[str, Case] = {
    "deque": Case(lambda: collections.deque([1.0, 2.0]), lambda v: v[1], lambda v: v.append(v.popleft())),
    "set": Case(lambda: {1.0}, len, lambda v: v.add(2.0)),
    "chain of dicts": Case(lambda: collections.ChainMap({"k": 2.0}), lambda v: v["k"], lambda v: v.update(k=3.0)),
    "dict of Python": Case(lambda: collections.UserDict(k=2.0), lambda v: v["k"], lambda v: v.update(k=3.0)),
    "dict in a list": Case(lambda: [{"k": 2.0}], lambda v: v[0]["k"], lambda v: v[0].update(k=3.0)),
    "set in a dict": Case(lambda: {"k": {1.0}}, lambda v: len(v["k"]), lambda v: v["k"].add(2.0)),
    "namespace": Case(lambda: types.SimpleNamespace(k=2.0), lambda v: v.k, lambda v: vars(v).update(k=3.0)),
    "partial": Case(lambda: functools.partial(max, 2.0), lambda v: v(0.0), lambda v: v.__setstate__(
        (max, (3.0,), {}, None))),
    "bytes": Case(lambda: bytearray(b"\2"), lambda v: v[0], lambda v: v.__setitem__(0, 3)),
    "memory": Case(lambda: memoryview(bytearray(b"\2")), lambda v: v[0], lambda v: v.__setitem__(0, 3)),
    "numbers": Case(lambda: array.array("f", [2.0]), lambda v: v[0], lambda v: v.__setitem__(0, 3.0)),
    "number of a record": Case(record, lambda v: float(v["number"]), lambda v: v.__setitem__("number", 3.0)),
    "object of a record": Case(record, lambda v: v["inner"]["held"].k,
                               lambda v: vars(v["inner"]["held"]).update(k=3.0)),
    "another object of a record": Case(record, lambda v: v["inner"]["held"].k,
                                       lambda v: v["inner"].__setitem__("held", Holder(3.0))),
    "object of an array in a record": Case(lambda: record(True), lambda v: v["inner"]["held"][1].k,
                                           lambda v: vars(v["inner"]["held"][1]).update(k=3.0)),
    "object": Case(Holder, lambda v: v.k, lambda v: vars(v).update(k=3.0)),
    "object without a class": Case(Silent, lambda v: v.k, lambda v: vars(v).update(k=3.0)),
    "object whose class fails": Case(Failing, lambda v: v.k, lambda v: vars(v).update(k=3.0)),
    "object in a list": Case(lambda: [Silent()], lambda v: v[0].k, lambda v: vars(v[0]).update(k=3.0)),
    "attribute past the class": Case(Past, lambda v: v.number(), lambda v: vars(v).update(k=3.0)),
    "attribute past the class, direct": Case(Holder, lambda v: object.__getattribute__(v, "k"),
                                             lambda v: vars(v).update(k=3.0)),
    "attributes by __getstate__": Case(Holder, lambda v: object.__getstate__(v)["k"], lambda v: vars(v).update(k=3.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_of_an_argument_is_seen(name: str) -> None:
    case, x = CASES[name], Tensor(np.array([1.0, -2.0], np.float32))
    compiled, value = ms.jit(lambda x, v: x * case.number(v)), case.make()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*does not see changes of.*")
        before = compiled(x, value).asnumpy()
        np.testing.assert_array_equal(before, x.asnumpy() * case.number(value))
        case.change(value)
        expected = x.asnumpy() * case.number(value)
        assert not np.array_equal(before, expected)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x, value).asnumpy(), expected)


@pytest.mark.parametrize("name", ["a generator", "an iterator", "a file"])
def test_a_function_that_takes_from_an_argument_runs_as_python(name: str) -> None:
    value: Any = {"a generator": lambda: (k for k in (2.0, 3.0)), "an iterator": lambda: iter([2.0, 3.0]),
                  "a file": lambda: io.BufferedReader(io.BytesIO(b"\2\3"))}[name]()
    compiled = ms.jit(lambda x, v: x * float(v.read(1)[0] if name == "a file" else next(v)))
    with pytest.warns(UserWarning, match="runs as Python: it (takes from an iterator|reads from a file), an argument"):
        assert [compiled(Tensor(1.0), value).item() for _ in range(2)] == [2.0, 3.0]

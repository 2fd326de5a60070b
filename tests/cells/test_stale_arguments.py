"""Arguments of a compiled function whose content changes between two calls: the second call answers as Python."""

from __future__ import annotations

import array
import collections
import dataclasses
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


class Attributes(dict):
    """A dict whose elements are attributes."""

    __getattr__ = dict.__getitem__


class Numbers(list):
    """A list with a method, and an attribute."""

    k: Any = 1.0

    def total(self) -> Any:
        return sum(self)


class Pair(tuple):
    """A pair with a method."""

    def total(self) -> Any:
        return self[0] + self[1]


Named = collections.namedtuple("Named", ["a", "b"])


class More(Named):
    """A named tuple with attributes."""


@dataclasses.dataclass
class Fields:
    """A dataclass with an attribute that is no field."""

    a: Any

    def __post_init__(self) -> None:
        self.k = 3.0


def given(value: Any, k: Any) -> Any:
    """The value with an attribute."""
    value.k = k
    return value


#: Containers of a class of their own with two tensors, and a function that reads them.
CONTAINERS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "OrderedDict": (lambda a, b: collections.OrderedDict(x=a, b=b), lambda v: v["x"] * isinstance(
        v, collections.OrderedDict) + next(iter(v.values()))),
    "an order that was changed": (lambda a, b: (v := collections.OrderedDict(x=a, b=b), v.move_to_end("x"))[0],
                                  lambda v: v[next(reversed(v))] * len(v)),
    "defaultdict": (lambda a, b: collections.defaultdict(lambda: 3.0, x=a), lambda v: v["x"] * v.copy()["none"]),
    "Counter": (lambda a, b: collections.Counter(x=a), lambda v: v["x"] * (v["none"] + 2)),
    "attributes": (lambda a, b: Attributes(x=a, b=b), lambda v: v.x * v.b),
    "list": (lambda a, b: Numbers([a, b]), lambda v: v.total() * v.k),
    "list with a number": (lambda a, b: given(Numbers([a]), 4.0), lambda v: v.total() * v.k),
    "list with a tensor": (lambda a, b: given(Numbers([a]), b), lambda v: v.total() * v.k),
    "tuple": (lambda a, b: Pair((a, b)), lambda v: v.total()),
    "named tuple": (lambda a, b: given(More(a, b), 4.0), lambda v: v.a * v.k + v.b),
    "dataclass": (lambda a, b: Fields(a), lambda v: v.a * v.k),
    "dataclass with a tensor": (lambda a, b: given(Fields(a), b), lambda v: v.a * v.k),
    "nested": (lambda a, b: [Attributes(x=Numbers([a]), b={"k": given(Fields(b), 5.0)})],
               lambda v: v[0].x.total() * v[0].b["k"].k * v[0].b["k"].a),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_keep_their_class_and_attributes(name: str) -> None:
    """As arguments and results of compiled functions and of transformations."""
    make, read = CONTAINERS[name]
    a, b = Tensor([1.0, -2.0]), Tensor([3.0, 5.0])
    gradient = ms.grad(lambda v, x: (read(v) * x).sum(), 1)
    for function in (lambda v, x: read(v) * x, gradient, ms.ops.vmap(lambda v, x: read(v) * x, (None, 0))):
        np.testing.assert_array_equal(ms.jit(function)(make(a, b), a).asnumpy(), function(make(a, b), a).asnumpy())
    result = ms.jit(lambda v: v)(make(a, b))
    assert type(result) is type(make(a, b))
    np.testing.assert_array_equal(read(result).asnumpy(), read(make(a, b)).asnumpy())
    made = ms.jit(lambda a, b: make(a * 2, b))(a, b)
    np.testing.assert_array_equal(read(made).asnumpy(), read(make(a * 2, b)).asnumpy())


@pytest.mark.parametrize("name", ["list with a number", "named tuple", "dataclass"])
def test_a_changed_attribute_of_a_container_is_seen(name: str) -> None:
    make, read = CONTAINERS[name]
    value, compiled = make(Tensor(1.0), Tensor(2.0)), ms.jit(lambda v: read(v))
    for k in (2.0, 8.0, [1.0]):
        if isinstance(k, list):
            value.k, read = k, lambda v: v[0] * v.k[0] if isinstance(v, (list, tuple)) else v.a * v.k[0]
            compiled(value)
            k[0] = 16.0
        else:
            value.k = k
        assert compiled(value).item() == read(value).item()


@pytest.mark.parametrize("name", ["a generator", "an iterator", "a file"])
def test_a_function_that_takes_from_an_argument_runs_as_python(name: str) -> None:
    value: Any = {"a generator": lambda: (k for k in (2.0, 3.0)), "an iterator": lambda: iter([2.0, 3.0]),
                  "a file": lambda: io.BufferedReader(io.BytesIO(b"\2\3"))}[name]()
    compiled = ms.jit(lambda x, v: x * float(v.read(1)[0] if name == "a file" else next(v)))
    with pytest.warns(UserWarning, match="runs as Python: it (takes from an iterator|reads from a file), an argument"):
        assert [compiled(Tensor(1.0), value).item() for _ in range(2)] == [2.0, 3.0]

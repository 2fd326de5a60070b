"""Compiled functions that store a tensor somewhere are left to Python, and store the same as Python."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opreg import Tensor, jit
from opreg.nn import Cell

Run = Callable[[Callable[..., Any]], Callable[..., Any]]
SUM: Any = None


class Holder:
    last: Any = None


class Slotted:
    __slots__ = ("last",)


def _in_a_global(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    globals()["SUM"] = Tensor(0.5)

    def keep(x: Any) -> Any:
        global SUM  # noqa: PLW0603 (as programs do)
        SUM = SUM + x
        return SUM * 2

    return run(keep), lambda: SUM


def _in_a_global_by_name(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    def keep(x: Any) -> Any:
        globals()["SUM"] = x * 2
        return x

    return run(keep), lambda: SUM


def _in_a_variable_from_outside(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    state: Any = Tensor(0.5)

    def keep(x: Any) -> Any:
        nonlocal state
        state = state * 0.5 + x
        return state

    return run(keep), lambda: state


def _in_a_variable_of_an_inner_function(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    state: Any = None

    def keep(x: Any) -> Any:
        def put() -> None:
            nonlocal state
            state = x * 3

        put()
        return x

    return run(keep), lambda: state


def _on_a_class(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    Holder.last = None

    def keep(x: Any) -> Any:
        Holder.last = x * 3 if Holder.last is None else Holder.last + x
        return Holder.last

    return run(keep), lambda: Holder.last


def _on_a_class_by_name(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    return run(lambda x: (setattr(Holder, "newest", x * 3), x)[1]), lambda: Holder.newest  # type: ignore[attr-defined]


def _on_the_class_of_a_cell(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    class Net(Cell):
        table: Any = None

        def construct(self, x: Any) -> Any:
            if Net.table is None:
                Net.table = x * 2
            return x * Net.table

    net = Net()
    return run(lambda x: net(x)), lambda: Net.table


def _on_a_function(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    def inner(x: Any) -> Any:
        inner.last = x * 2  # type: ignore[attr-defined]
        return x

    return run(lambda x: inner(x) + 1), lambda: inner.last  # type: ignore[attr-defined]


def _on_a_module(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    module: Any = types.ModuleType("module")

    def keep(x: Any) -> Any:
        module.last = x * 2
        return x

    return run(keep), lambda: module.last


def _in_a_slot(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    held: Any = Slotted()

    def keep(x: Any) -> Any:
        held.last = x * 2
        return x

    return run(keep), lambda: held.last


def _in_a_variable_of_the_thread(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    local = threading.local()

    def keep(x: Any) -> Any:
        local.last = x * 2
        return x

    return run(keep), lambda: local.last


def _in_a_variable_of_the_context(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    kept: contextvars.ContextVar[Any] = contextvars.ContextVar("kept", default=None)

    def keep(x: Any) -> Any:
        before = kept.get()
        kept.set(x * 2 if before is None else before + x)
        return x

    return run(keep), kept.get


def _in_a_variable_of_the_context_without_a_value(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
    kept: contextvars.ContextVar[Any] = contextvars.ContextVar("kept")
    return run(lambda x: (kept.set(x * 2), x)[1]), kept.get


def _within(made: Callable[[Any], Any], taken: Callable[[Any], Any]) -> Callable[[Run], Any]:
    """A program that appends to a list an object that holds a tensor."""
    def program(run: Run) -> tuple[Callable[..., Any], Callable[[], Any]]:
        kept: list[Any] = []
        return run(lambda x: (kept.append(made(x)), x)[1]), lambda: [taken(each) for each in kept]

    return program


def _object(x: Any) -> Holder:
    made = Holder()
    made.last = [x * 2]
    return made


PROGRAMS: dict[str, Callable[[Run], tuple[Callable[..., Any], Callable[[], Any]]]] = {
    each.__name__: each for each in (
        _in_a_global, _in_a_global_by_name, _in_a_variable_from_outside, _in_a_variable_of_an_inner_function,
        _on_a_class, _on_a_class_by_name, _on_the_class_of_a_cell, _on_a_function, _on_a_module, _in_a_slot,
        _in_a_variable_of_the_thread, _in_a_variable_of_the_context, _in_a_variable_of_the_context_without_a_value)} | {
    "a function": _within(lambda x: lambda: x * 2, lambda f: f()),
    "a function's default": _within(lambda x: lambda y=x: y * 2, lambda f: f()),
    "a partial": _within(lambda x: functools.partial(lambda y: y * 2, x), lambda f: f()),
    "a method": _within(lambda x: (x * 2).sum, lambda f: f()),
    "a generator": _within(lambda x: (x * i for i in (1, 2)), lambda each: each if isinstance(each, list) else 0),
    "an iterator": _within(lambda x: iter([x, x * 2]), lambda each: 0),
    "an object": _within(_object, lambda each: each.last),
    "a named tuple": _within(lambda x: collections.namedtuple("Pair", "a b")(x, x * 2), lambda pair: [*pair])}


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stored_tensor_is_the_one_of_the_last_call(name: str) -> None:
    found = []
    for run in (jit, lambda function: function):
        function, kept = PROGRAMS[name](run)
        with pytest.warns(UserWarning, match="it keeps a tensor in ") if run is jit else contextlib.nullcontext():
            results = [function(Tensor(number)).asnumpy().tolist() for number in (1.0, 4.0, 2.0)]
        found.append((results, _numbers(kept())))
    assert found[0] == found[1]


def test_an_exception_may_hold_a_tensor() -> None:
    class Wrong(Exception):
        pass

    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.append(x * 3)
        raise Wrong(x * 2)

    for number in (1.0, 4.0):
        with (pytest.warns(UserWarning, match="it keeps a tensor in the exception that it raises"),
              pytest.raises(Wrong) as raised):
            jit(function)(Tensor(number))
        assert raised.value.args[0].asnumpy() == 2 * number
    assert _numbers(seen) == [3.0, 12.0]


def test_after_an_exception_stored_tensors_stay_in_place() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.append(x * 3)
        raise KeyError("no")

    with pytest.warns(UserWarning, match="it keeps a tensor in "), pytest.raises(KeyError):
        jit(function)(Tensor(1.0))
    assert _numbers(seen) == [3.0]


def test_storing_scalars_or_old_values_keeps_a_function_compiled() -> None:
    before = Tensor(3.0)
    Holder.last, held = before, Slotted()
    held.last = before

    def function(x: Any) -> Any:
        global SUM
        SUM, Holder.last, held.last = x.shape, before, 3
        scale = lambda: x * 2  # noqa: E731 (a function that ends with the call)
        return scale() + Holder.last

    compiled = jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (1.0, 2.0):
            assert compiled(Tensor(number)).asnumpy() == 2 * number + 3
    assert (SUM, Holder.last, held.last) == ((), before, 3)
    assert compiled.cache_size == 1 and "runs as Python" not in str(compiled.explain())
    np.testing.assert_array_equal(before.asnumpy(), 3.0)

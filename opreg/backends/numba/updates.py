"""Optimizer updates compiled with numba: a number is read once and written once, whatever the rule computes of it.

A rule, as ``builtin.updating`` has them, is followed: it gets stand-ins for arrays and for the array module, and what
it calls becomes the text of a function. One call works off all weights that move by one rule; the rates are numbers
that the function reads, so they may change from step to step.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..addressing import address_of
from .compiler import Function, function_of, idle, mode, over
from .vector import KINDS, VECTOR

__all__ = ["move"]

#: A new weight and the arrays of its rule: the weight, its gradient, states.
Update = tuple[Any, Sequence[Any]]

# Numbers that a thread takes at a time.
_STRETCH = 1 << 14


# ----------------------------------------------------------------------------------------------- following


class _Refused(Exception):
    """The rule does something that is not compiled."""


class _Place:
    """Stands for an array: knows which register holds its numbers now."""

    __slots__ = ("register",)

    def __init__(self, register: str | None = None):
        self.register = register

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis or not isinstance(value, _Place):
            raise _Refused("a part of an array is written")
        self.register = value.register


class _Module:
    """Stands for the array module: notes the instructions it is asked for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: list[float] = []

    def __getattr__(self, name: str) -> Callable:
        if name not in VECTOR:
            raise _Refused(f"{name} has no vectorised form")
        return functools.partial(self._instruction, name)

    def _instruction(self, name: str, *args: Any, out: _Place | None = None) -> _Place:
        place = _Place() if out is None else out
        register = f"r{len(self.lines)}"
        self.lines.append(f"{register} = {name}({', '.join(map(self._word, args))})")
        place.register = register
        return place

    def _word(self, value: Any) -> str:
        if isinstance(value, _Place) and value.register:
            return value.register
        if not isinstance(value, (int, float)):
            raise _Refused(f"it reads a {type(value).__name__}")
        self.constants.append(float(value))
        return f"c{len(self.constants) - 1}"

    def clip(self, value: Any, low: float, high: float, out: _Place | None = None) -> _Place:
        return self._instruction("minimum", self._instruction("maximum", value, low), high, out=out)


class _Followed(NamedTuple):
    """The text of ``kernel(table, first, last)``, the constants it reads, its length in instructions.

    The table holds the address of the constants; then for each stretch of a weight how many numbers it has, and the
    addresses of its arrays.
    """

    source: str
    constants: list[float]
    length: int


@functools.lru_cache(64)
def _follow(rule: Callable, count: int, apart: bool, attrs: tuple[tuple[str, Any], ...]) -> _Followed | None:
    """What a rule of ``count`` arrays does; ``apart`` where the new weight has memory of its own. None if refused."""
    module, scratch = _Module(), dict[int, _Place]()
    arrays = [_Place(f"x{i}") for i in range(count)]
    new = _Place() if apart else arrays[0]
    try:
        rule(module, lambda number: scratch.setdefault(number, _Place()), new, *arrays, **dict(attrs))
    except _Refused:
        return None
    places = [*arrays, new] if apart else arrays
    lines = [f"a{i} = address(table[o + {i + 1}])" for i in range(len(places))]
    inner = [f"x{i} = a{i}[i]" for i in range(count)] + module.lines
    inner += [f"a{i}[i] = {place.register}" for i, place in enumerate(places) if place.register != f"x{i}"]
    text = ["def kernel(table, first, last):", "    c = address(table[0])"]
    text += [f"    c{i} = c[{i}]" for i in range(len(module.constants))]
    text += ["    for unit in range(first, last):", f"        o = 1 + unit * {len(places) + 1}"]
    text += [f"        {line}" for line in lines] + ["        for i in range(table[o]):"]
    text += [f"            {line}" for line in inner]
    return _Followed("\n".join([*text, ""]), module.constants, len(module.lines))


# --------------------------------------------------------------------------------------------------- moving


class _Table:
    """The table of some weights, and how many stretches it has; its arrays may die before it."""

    __slots__ = ("numbers", "count", "size", "watched")

    def __init__(self, columns: Sequence[Sequence[Any]], forget: Callable[[Any], object]):
        rows: list[list[Any]] = []
        for arrays in columns:
            size, item = arrays[0].size, arrays[0].itemsize
            addresses = [*map(address_of, arrays)]
            for start in range(0, size, _STRETCH):
                rows.append([min(_STRETCH, size - start), *[address + start * item for address in addresses]])
        self.count, self.size = len(rows), sum(arrays[0].size for arrays in columns)
        self.numbers = np.array([0, *[number for row in rows for number in row]], np.int64)
        self.watched = [weakref.ref(array, forget) for arrays in columns for array in arrays]


# Reading addresses takes as long as moving ten thousand numbers, and programs move the same arrays again and again.
_TABLES: dict[tuple[int, ...], _Table] = {}


def _table(columns: Sequence[Sequence[Any]]) -> _Table | None:
    """The table of arrays, each row those of one weight; None where they are not laid out alike, side by side."""
    key = (len(columns), *[id(array) for arrays in columns for array in arrays])
    found = _TABLES.get(key)
    if found is None:
        for arrays in columns:
            first = arrays[0]
            if not all(array.size == first.size and array.dtype == first.dtype and array.flags.c_contiguous
                       and array.flags.aligned and (array.flags.writeable or i == 1)  # a gradient is only read
                       for i, array in enumerate(arrays)):
                return None
        found = _TABLES[key] = _Table(columns, lambda _: _TABLES.pop(key, None))
    return found


def move(rule: Callable, updates: Sequence[Update], dtype: Any, attrs: dict[str, Any],
         otherwise: Callable[[], None]) -> None:
    """Run a rule for several weights by a compiled function, or ``otherwise`` where there is none, or none yet.

    ``dtype`` is that of the rule's scratch where it is not the weights'.
    """
    found = None if idle() or dtype is not None else _found(rule, updates, attrs)
    if found is None:
        otherwise()
        return
    function, constants, table = found
    if mode() == "numba":
        function.compile()
    if function.address is None:
        start = time.perf_counter()
        otherwise()
        function.spent(time.perf_counter() - start)
        return
    numbers, constant = table.numbers.copy(), np.array(constants or [0.0], function.dtype)
    numbers[0] = address_of(constant)
    over(function, numbers, table.count, table.size * function.length, (function, numbers, constant))()


def _found(rule: Callable, updates: Sequence[Update], attrs: dict[str, Any]
           ) -> tuple[Function, list[float], _Table] | None:
    new, arrays = updates[0]
    apart = new is not arrays[0]
    if new.dtype not in KINDS or any((each is not parts[0]) is not apart for each, parts in updates):
        return None
    if not all(isinstance(value, (int, float)) for value in attrs.values()):
        return None
    followed = _follow(rule, len(arrays), apart, tuple(attrs.items()))
    if followed is None:
        return None
    table = _table([[*parts, each] if apart else parts for each, parts in updates])
    if table is None:
        return None
    return function_of(followed.source, new.dtype, followed.length), followed.constants, table

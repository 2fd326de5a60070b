"""Private operators, which passes of back ends insert into plans: how one is made, and those that several passes use.

They are in no file and in no list of operators.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from opreg.builtin.shapes.shape import declare_copy
from opreg.core.attrs import Schema
from opreg.core.op import Op
from opreg.core.signature import Names
from opreg.core.spec import Shape

__all__ = ["PRIVATE", "private", "to_channels_first", "to_channels_last"]

#: The private operators of all back ends whose modules are imported.
PRIVATE: list[Op] = []


def private(name: str, arguments: Names, doc: str, **words: Any) -> Op:
    """Make an operator that is not registered, so it cannot be found by its name."""
    op = Op(name, Schema([]), arguments, doc=doc, **words)
    op.where = None
    PRIVATE.append(op)
    return op


def _declare_permutation(name: str, doc: str, order: Callable[[int], tuple[int, ...]]) -> Op:
    """An operator that copies an array with its axes in another order, which is computed from the rank."""
    op = private(name, ("data",), doc)

    @op.infer
    def moved_infer(data: Shape) -> Shape:
        return tuple([data[axis] for axis in order(len(data))])

    declare_copy(op, lambda data: methodcaller("transpose", order(len(data))))
    return op


to_channels_last = _declare_permutation("_to_channels_last", "The second axis brought to the end.",
                                        lambda rank: (0, *range(2, rank), 1))
to_channels_first = _declare_permutation("_to_channels_first", "The last axis brought to the second place.",
                                         lambda rank: (0, rank - 1, *range(1, rank - 1)))

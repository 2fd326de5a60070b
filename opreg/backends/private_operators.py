"""Operators of plans that passes of back ends put there: those that several share, and how one is made.

No file, no list of operators has them.
"""

from __future__ import annotations

from typing import Any

from opreg.core.attrs import Schema
from opreg.core.op import Op
from opreg.core.signature import Names
from opreg.core.spec import Shape
from opreg.typing import Array, ArrayModule

__all__ = ["PRIVATE", "private", "to_channels_first", "to_channels_last"]

#: The private operators of all back ends whose modules are imported.
PRIVATE: list[Op] = []


def private(name: str, arguments: Names, doc: str, **words: Any) -> Op:
    """An operator that nobody finds by its name."""
    op = Op(name, Schema([]), arguments, doc=doc, **words)
    op.where = None
    PRIVATE.append(op)
    return op


to_channels_last = private("_to_channels_last", ("data",), "The second axis brought to the end.")
to_channels_first = private("_to_channels_first", ("data",), "The last axis brought to the second place.")


@to_channels_last.infer
def to_channels_last_infer(data: Shape) -> Shape:
    return (data[0], *data[2:], data[1])


@to_channels_first.infer
def to_channels_first_infer(data: Shape) -> Shape:
    return (data[0], data[-1], *data[1:-1])


@to_channels_last.kernel()
def to_channels_last_xp(xp: ArrayModule, data: Array, *, out: Array | None = None) -> Array:
    return _copied(xp, data.transpose(0, *range(2, data.ndim), 1), out)


@to_channels_first.kernel()
def to_channels_first_xp(xp: ArrayModule, data: Array, *, out: Array | None = None) -> Array:
    return _copied(xp, data.transpose(0, data.ndim - 1, *range(1, data.ndim - 1)), out)


def _copied(xp: ArrayModule, view: Array, out: Array | None) -> Array:
    out = xp.empty(view.shape, view.dtype) if out is None else out
    out[...] = view
    return out

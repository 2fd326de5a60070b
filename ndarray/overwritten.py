"""Checks that arrays which the gradient of a tape node reads were not overwritten since they were recorded.

A node holds raw arrays, whose memory may have been written since. The rules of built-in operators show which arrays
they read. A user's rule gets an `OverwrittenArray` for each of them: it has a shape and a dtype, and reading an element
raises an error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from opreg.core.op import Op
from opreg.core.spec import Shape, show
from opreg.core.versions import Write, written
from opreg.errors import OpError, line_at
from opreg.typing import Array

from . import traced_rules as recipes
from .eager import runner_of

__all__ = ["OverwrittenArray", "overwritten_error", "present"]


class Recorded(Protocol):
    """The part of a tape node that the checks read; see ``TapeNode``."""

    op: Any
    attrs: Any
    ins: Sequence[Array] | None
    outs: Sequence[Array] | None
    ctx: Any
    prepared: Any
    number: float

    def describe(self) -> str:
        """The node as text for an error."""


class OverwrittenArray:
    """Replaces a raw array that was overwritten since it was recorded.

    Attributes
    ----------
    shape, dtype, ndim, size, nbytes, itemsize
        The attributes of the array.
    """

    __slots__ = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "_text")

    shape: Shape
    dtype: np.dtype

    def __init__(self, array: Array, text: str):
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size
        self.nbytes, self.itemsize, self._text = array.nbytes, array.itemsize, text

    @classmethod
    def of(cls, array: Array, text: str) -> Any:
        """The object that replaces an array."""
        return cls(array, text)

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise the error.

        Raises
        ------
        OpError
            Always. It names the operator, the array, and the lines that recorded and wrote it.
        """
        raise OpError(self._text)

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __iter__ = __len__ = refuse


def present(node: Recorded, out_grads: Sequence[Array | None], needs: tuple[bool, ...], is_train: bool
            ) -> tuple[Sequence[Any], Sequence[Any]]:
    """Raw inputs and outputs of a node for its gradient, after a check for overwritten ones.

    Parameters
    ----------
    out_grads : sequence
        Gradients of the outputs, or None.
    needs : tuple of bool
        Whether each input needs a gradient.
    is_train : bool
        The mode of the gradient.

    Raises
    ------
    OpError
        If the rule of a built-in operator reads an array that was written since the node was recorded.
    """
    ins: Sequence[Any] = node.ins or ()
    outs: Sequence[Any] = node.outs or ()
    changed = {i: write for i, data in enumerate((*ins, *outs)) if (write := written(data, node.number)) is not None}
    if not changed:
        return ins, outs
    op = node.op
    if isinstance(op, Op) and op.where is not None:  # users' operators may write their states
        count = len(op.signature.arguments(node.attrs))
        changed = {i: write for i, write in changed.items() if not count <= i < len(ins)}
    read = _read(node, ins, outs, out_grads, needs, is_train)
    every = [*ins, *outs]
    for i, write in changed.items():
        if read is None or i in read:
            text = overwritten_error(node.describe(), _name(node, i, len(ins)), every[i], write)
            every[i] = OverwrittenArray.of(every[i], text)
            if read is not None:
                every[i].refuse()
    return every[:len(ins)], every[len(ins):]


def _read(node: Recorded, ins: Sequence[Array], outs: Sequence[Array], out_grads: Sequence[Array | None],
          needs: tuple[bool, ...], is_train: bool) -> Collection[int] | None:
    """Indices, among inputs and then outputs, of the arrays that the gradient reads; None if unknown."""
    op = node.op
    prepared = node.prepared
    if prepared is None:
        if op.signature.per_instance or op.where is not None:
            return None
        prepared = runner_of(op, node.attrs, ins, node.ctx)
    return recipes.reads(prepared, [g is not None for g in out_grads], ins, outs, needs, is_train)


def _name(node: Recorded, i: int, count: int) -> str:
    """The name of an input, or, from ``count`` on, of an output."""
    op, kind = node.op, "input" if i < count else "output"
    if not isinstance(op, Op):
        return f"{kind} {i if i < count else i - count}"
    return f"{kind} {(op.signature.inputs(node.attrs) + op.signature.outputs(node.attrs))[i]}"


def overwritten_error(title: str, name: str, array: Array, write: Write) -> str:
    """The text of the error for an array that a gradient needs and that was overwritten.

    Parameters
    ----------
    title : str
        The operator, and the line that recorded it.
    name : str
        The name of the array in the operator's signature.
    """
    where = line_at(write[1])
    return (f"{title}: its gradient needs numbers that were changed in place{f', at {where}' if where else ''}. Change "
            f"a copy of its {name}, of shape {show(array.shape)}, or write x = x + y instead of x += y")

"""Arrays that the gradient of a tape node reads, and whether their elements are still the same.

A node keeps raw arrays, and others may have written to their memory since. The values that a rule reads are known
for built-in operators, from the steps of their rules. Users' rules are given a `Changed` array in the place of one
that was written: it has a shape and a dtype, and says what happened when its numbers are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opreg.core.op import Op
from opreg.core.spec import Shape, show
from opreg.core.versions import Write, written
from opreg.errors import OpError, line_at
from opreg.typing import Array

from . import traced_rules as recipes
from .eager import runner_of

if TYPE_CHECKING:
    from .tape import TapeNode

__all__ = ["Changed", "lost", "present"]


class Changed:
    """Stands for a raw array whose numbers are no longer those that were recorded.

    Attributes
    ----------
    shape, dtype, ndim, size, nbytes, itemsize
        Of the array.
    """

    __slots__ = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "_text")

    shape: Shape
    dtype: np.dtype

    def __init__(self, array: Array, text: str):
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size
        self.nbytes, self.itemsize, self._text = array.nbytes, array.itemsize, text

    @classmethod
    def of(cls, array: Array, text: str) -> Any:
        """One in the place of an array."""
        return cls(array, text)

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Say what happened.

        Raises
        ------
        OpError
            Naming the operator, the array, where it was recorded and where it was written.
        """
        raise OpError(self._text)

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __iter__ = __len__ = refuse


def present(node: TapeNode, out_grads: Sequence[Array | None], needs: tuple[bool, ...], is_train: bool
            ) -> tuple[Sequence[Any], Sequence[Any]]:
    """Raw inputs and outputs of a node, as its gradient may read them.

    Parameters
    ----------
    out_grads : sequence
        Gradients of the outputs, None where there is none.
    needs : tuple of bool
        Which inputs want a gradient.
    is_train : bool
        The mode of the gradient.

    Raises
    ------
    OpError
        When the rule of a built-in operator reads numbers that were written since the node was recorded.
    """
    ins: Sequence[Any] = node.ins or ()
    outs: Sequence[Any] = node.outs or ()
    changed = {i: write for i, data in enumerate((*ins, *outs)) if (write := written(data, node.number)) is not None}
    if not changed:
        return ins, outs
    op = node.op
    if isinstance(op, Op) and op.where is not None:  # what an operator of users keeps as a state is theirs
        count = len(op.signature.arguments(node.attrs))
        changed = {i: write for i, write in changed.items() if not count <= i < len(ins)}
    read = _read(node, ins, outs, out_grads, needs, is_train)
    every = [*ins, *outs]
    for i, write in changed.items():
        if read is None or i in read:
            every[i] = Changed.of(every[i], lost(node.describe(), _name(node, i, len(ins)), every[i], write))
            if read is not None:
                every[i].refuse()
    return every[:len(ins)], every[len(ins):]


def _read(node: TapeNode, ins: Sequence[Array], outs: Sequence[Array], out_grads: Sequence[Array | None],
          needs: tuple[bool, ...], is_train: bool) -> Collection[int] | None:
    """The places among inputs, then outputs, whose numbers the gradient reads; None if unknown."""
    op = node.op
    prepared = node.prepared
    if prepared is None:
        if op.signature.per_instance or op.where is not None:
            return None
        prepared = runner_of(op, node.attrs, ins, node.ctx)
    return recipes.reads(prepared, [g is not None for g in out_grads], ins, outs, needs, is_train)


def _name(node: TapeNode, i: int, count: int) -> str:
    """The name of an input, or, from ``count`` on, of an output."""
    op, kind = node.op, "input" if i < count else "output"
    if not isinstance(op, Op):
        return f"{kind} {i if i < count else i - count}"
    return f"{kind} {(op.signature.inputs(node.attrs) + op.signature.outputs(node.attrs))[i]}"


def lost(title: str, name: str, array: Array, write: Write) -> str:
    """The error about arrays that a gradient needs and that were written since.

    Parameters
    ----------
    title : str
        The operator, and where it was recorded.
    name : str
        The array, as the operator calls it.
    """
    where = line_at(write[1])
    return (f"{title}: its gradient needs numbers that were changed in place{f', at {where}' if where else ''}. Change "
            f"a copy of its {name}, of shape {show(array.shape)}, or write x = x + y instead of x += y")

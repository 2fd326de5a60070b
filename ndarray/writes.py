"""Writes that a tape may have to know of: which memory was changed when, and who still needs what was there.

Nothing is asked of operators: they run as fast as if nobody wrote. A write is noted where an array may be on a tape,
with a number from the count that numbers the nodes. Before a backward pass what was noted is compared with the memory
that the nodes hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from opreg.errors import OpError, Where, here
from opreg.typing import Array

from . import traced_rules as recipes
from .eager import settle

if TYPE_CHECKING:
    from opreg.core.op import Op

    from .tape import Taped, TapeNode

__all__ = ["LOG", "note", "check"]

#: By the first and the last byte of what was written: the number of the last write there, and the line that did it.
LOG: dict[tuple[int, int], tuple[int, Where | None]] = {}
_LIMIT = 1024


def _bounds(data: Array) -> tuple[int, int]:
    """The first byte of an array, and the one behind its last."""
    interface = getattr(data, "__cuda_array_interface__", None) or data.__array_interface__
    low = high = interface["data"][0]
    for dim, stride in zip(data.shape, data.strides):
        low += min((dim - 1) * stride, 0)
        high += max((dim - 1) * stride, 0)
    return low, high + data.itemsize


def note(data: Array, number: int) -> None:
    """The memory of an array was written."""
    if not data.size:
        return
    if len(LOG) >= _LIMIT:
        LOG.pop(next(iter(LOG)), None)
    place = _bounds(data)
    LOG.pop(place, None)  # the newest stand last
    LOG[place] = number, here()


def check(order: Sequence[TapeNode]) -> None:
    """Refuse to go back over nodes whose gradients need numbers that are no longer there.

    Raises
    ------
    OpError
        Naming operator, the line where it was recorded, and that which changed the numbers.
    """
    noted = list(LOG.items())
    for node in reversed(order):
        op, ins, outs = node.op, node.ins, node.outs
        if op is None or ins is None or outs is None or not op.grad_reads:
            continue
        later = [(low, high, where) for (low, high), (number, where) in noted if number > node.number]
        if not later:
            continue
        for i, data in enumerate((*ins, *outs)):
            low, high = _bounds(data) if data.size else (0, 0)
            for start, end, where in later:
                if low < end and start < high and i in _read(node, op, ins, outs):
                    place = f", at {where}" if where else ""
                    raise OpError(f"{node.describe()}: its gradient needs numbers that were changed in place{place}. "
                                  "Change a copy of them, or write x = x + y instead of x += y")


def _read(node: TapeNode, op: Op | Taped, ins: Sequence[Array], outs: Sequence[Array]) -> Collection[int]:
    """The places among inputs, then outputs, whose numbers the gradient reads; all where nobody knows."""
    places = None
    if not op.per_instance and op.where is None:
        settled = node.settled or settle(op, node.attrs, ins, node.ctx)
        places = recipes.reads(settled, ins, outs)
    return range(len(ins) + len(outs)) if places is None else places

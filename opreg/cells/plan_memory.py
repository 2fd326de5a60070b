"""Memory that the plans of a compiled function share.

A function that is called with many shapes has a plan for each. Between runs a plan needs none of its memory, so plans
share one memory, as large as the largest plan needs; several runs at the same time have one each. Arenas and workspaces
of a plan are taken from its memory, and released together.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Collection

import numpy as np

from opreg.ndarray.context import Context

from ..core.host_memory import LARGE, PAGE
from ..core.spec import Spec, size
from ..typing import Array

__all__ = ["PlanMemory", "PlanMemories"]

_ALIGNED = 64


class PlanMemory:
    """Memory for one plan at a time: ``take`` takes it if it is free, and returns whether it was; ``free`` releases
    it."""

    def __init__(self) -> None:
        lock = threading.Lock()
        self.take, self.free = functools.partial(lock.acquire, False), lock.release
        self._blocks: dict[Context, list[Array]] = {}
        self._orders: dict[Context, Callable[[], None] | None] = {}

    def orders(self, contexts: Collection[Context]) -> list[Callable[[], None]]:
        """Functions to call before a run in this memory, one for each device: they make the run wait for the previous
        one, if that was on another stream."""
        for ctx in contexts:
            if ctx not in self._orders:
                self._orders[ctx] = ctx.backend.order(ctx.device_id)
        return [order for order in map(self._orders.__getitem__, contexts) if order is not None]

    @property
    def nbytes(self) -> int:
        """Bytes of all its memory."""
        return sum(int(block.nbytes) for blocks in self._blocks.values() for block in blocks)

    def divide(self) -> DividedMemory:
        """This memory, for a new plan to divide."""
        for order in self._orders.values():
            if order is not None:
                order()
        return DividedMemory(self._blocks)


class DividedMemory:
    """Memory that a plan divides, from the first block on.

    Existing blocks are used first. A new block is as large as the request and, once the memory serves a second plan, at
    least as large as all blocks so far, so that a function called with ever larger arrays allocates rarely.
    """

    def __init__(self, blocks: dict[Context, list[Array]]):
        self._blocks = blocks
        self._second = bool(blocks)
        self._used: dict[Context, list[int]] = {}

    def take(self, ctx: Context, nbytes: int) -> Array:
        """Bytes of unspecified content."""
        blocks, used = self._blocks.setdefault(ctx, []), self._used.setdefault(ctx, [])
        used += [0] * (len(blocks) - len(used))
        for i, block in enumerate(blocks):
            start = used[i] + (-used[i] % PAGE if nbytes >= LARGE else 0)
            if start + nbytes <= block.size:
                break
        else:
            least = sum(block.size for block in blocks) if self._second else 0
            i, start = len(blocks), 0
            blocks.append(ctx.backend.arena(max(nbytes, least, 1), ctx.device_id))
            used.append(0)
        used[i] = start + -(-nbytes // _ALIGNED) * _ALIGNED
        return blocks[i][start:start + nbytes]

    def array(self, ctx: Context, spec: Spec) -> Array:
        """An array of zeros."""
        dtype = np.dtype(np.float32) if spec.dtype is None else spec.dtype
        shape = spec.shape or ()
        data = self.take(ctx, size(shape) * dtype.itemsize).view(dtype).reshape(shape)
        data.fill(0)
        return data


class PlanMemories:
    """The memories of a compiled function; each lives as long as a plan uses it."""

    def __init__(self) -> None:
        self._memories: weakref.WeakSet[PlanMemory] = weakref.WeakSet()

    def take(self) -> PlanMemory:
        """A free memory, or a new one."""
        for memory in list(self._memories):
            if memory.take():
                return memory
        memory = PlanMemory()
        memory.take()
        self._memories.add(memory)
        return memory

    @property
    def nbytes(self) -> int:
        """Bytes of all memories."""
        return sum(memory.nbytes for memory in self._memories)

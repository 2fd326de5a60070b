"""memory: plan the memory of every entry, so that it is used again as soon as it is free.

The memory of an entry is a *storage*. Bound arrays, outputs and gradients have their own; all others have an offset in
the arena, one block of bytes for each context. A view has the storage of its input. An operator that may compute in
place takes over the storage of an input that is read for the last time.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

import numpy as np

from opreg.core.graph import Entry, Node, fail
from opreg.core.host_memory import LARGE, PAGE
from opreg.core.rules import as_list
from opreg.core.spec import Spec, size
from opreg.ndarray.context import Context
from opreg.typing import Array

__all__ = ["Storage", "Memory", "plan_memory", "placeholder"]

_ALIGN = 64


class Storage:
    """The memory of entries: a bound array, or a range of bytes of a context's arena."""

    __slots__ = ("nbytes", "ctx", "pinned", "last", "offset", "spec")

    def __init__(self, spec: Spec, ctx: Context, pinned: Array | None = None):
        assert spec.dtype is not None
        self.spec, self.ctx, self.pinned = spec, ctx, pinned
        self.nbytes = max(size(spec.shape or ()) * spec.dtype.itemsize, 1)
        self.last = -1
        self.offset = -1


class Memory:
    """The memory plan: the storage of every entry, the inputs of views and in-place operators, and the bytes of each
    arena."""

    def __init__(self) -> None:
        self.storage: dict[Entry, Storage] = {}
        self.view_of: dict[Entry, Entry] = {}
        self.inplace: dict[Entry, Entry] = {}
        self.arena: dict[Context, int] = {}


class _FreeRanges:
    """The free ranges of an arena, searched by best fit."""

    def __init__(self) -> None:
        self.by_offset: list[tuple[int, int]] = []
        self.end = 0

    def take(self, nbytes: int) -> int:
        """Take a free range of ``nbytes`` bytes, and return its offset. Large ranges begin at a page."""
        need, unit = -(-nbytes // _ALIGN) * _ALIGN, PAGE if nbytes >= LARGE else _ALIGN
        best = -1
        for i, (offset, length) in enumerate(self.by_offset):
            if length - -offset % unit >= need and (best < 0 or length < self.by_offset[best][1]):
                best = i
                if length == need:
                    break
        if best >= 0:
            offset, length = self.by_offset.pop(best)
        elif self.by_offset and sum(self.by_offset[-1]) == self.end:  # the last free range can grow
            offset, length = self.by_offset.pop()
        else:
            offset, length = self.end, 0
        start = offset + -offset % unit
        self.end = max(self.end, start + need)
        for begin, right in ((offset, start), (start + need, offset + length)):
            if begin < right:
                bisect.insort(self.by_offset, (begin, right - begin))
        return start

    def give(self, offset: int, nbytes: int) -> None:
        length = -(-nbytes // _ALIGN) * _ALIGN
        at = bisect.bisect(self.by_offset, (offset, 0))
        if at < len(self.by_offset) and self.by_offset[at][0] == offset + length:
            length += self.by_offset.pop(at)[1]
        if at and sum(self.by_offset[at - 1]) == offset:
            before, extra = self.by_offset.pop(at - 1)
            offset, length, at = before, length + extra, at - 1
        self.by_offset.insert(at, (offset, length))


def placeholder(spec: Spec, array: Array | None = None) -> np.ndarray:
    """An array without memory, for rules of views. It has the strides of the bound array, or else is contiguous."""
    assert spec.dtype is not None
    strides = None if array is None else array.strides
    if strides is None:
        strides, step = (), spec.dtype.itemsize
        for dim in reversed(spec.shape or ()):
            strides = (step, *strides)
            step *= max(dim, 1)
    return np.lib.stride_tricks.as_strided(np.empty(1, spec.dtype), spec.shape, strides)


def plan_memory(nodes: Sequence[Node], specs: Mapping[Node, Sequence[Spec]], contexts: Mapping[Node, Context],
                bound: Mapping[Entry, Array], targets: Mapping[Entry, Array], lifetimes: Mapping[Entry, int]) -> Memory:
    """Plan the memory of all entries.

    Parameters
    ----------
    nodes : sequence of Node
        In execution order.
    specs, contexts
        Shape and dtype of each entry, and device of each node.
    bound : mapping of entry to array
        Variables and their arrays.
    targets : mapping of entry to array
        Outputs and gradients that are computed in place in these arrays.
    lifetimes : mapping of entry to position
        Entries that must live until a position after their last reader.
    """
    memory = Memory()
    storage, view_of = memory.storage, memory.view_of
    for entry, array in bound.items():
        storage[entry] = Storage(specs[entry[0]][entry[1]], contexts[entry[0]], array)
    # Views first, since storages live as long as their views.
    full_views = _find_views(nodes, specs, contexts, {**targets, **bound}, targets, view_of)

    def root(entry: Entry) -> Entry:
        """The entry that is no view and whose storage an entry has."""
        while entry in view_of:
            entry = view_of[entry]
        return entry

    ends: dict[Entry, int] = {}
    for entry, position in _last_reads(nodes, lifetimes).items():
        base_entry = root(entry)
        ends[base_entry] = max(position, ends.get(base_entry, -1))
    dying: dict[int, list[Storage]] = {}
    frees: dict[Context, _FreeRanges] = {}
    for position, node in enumerate(nodes):
        if node.op is None:
            continue
        ctx = contexts[node]
        free = frees.setdefault(ctx, _FreeRanges())
        for i, spec in enumerate(specs[node]):
            entry = node, i
            if entry in view_of:
                storage[entry] = storage[root(entry)]
                continue
            if entry in targets:
                storage[entry] = Storage(spec, ctx, targets[entry])
                continue
            end = ends.get(entry, -1)
            if end < 0:
                continue  # an entry that is never read has no memory
            taken = _takeover(node, i, spec, position, storage, view_of, full_views, ctx) if end >= position else None
            if taken is not None:
                reused = storage[taken]
                storage[entry] = reused
                memory.inplace[entry] = taken
            else:
                reused = storage[entry] = Storage(spec, ctx)
                reused.offset = free.take(reused.nbytes)
            reused.last = max(end, position)
            dying.setdefault(reused.last, []).append(reused)
        for dead in dying.pop(position, ()):
            if dead.last == position:  # if not, a later entry uses this memory
                frees[dead.ctx].give(dead.offset, dead.nbytes)
                dead.last = -2
    memory.arena = {ctx: free.end for ctx, free in frees.items()}
    return memory


def _last_reads(nodes: Sequence[Node], lifetimes: Mapping[Entry, int]) -> dict[Entry, int]:
    """The position until which each entry must live: that of the last node that reads its elements, or a later one
    from ``lifetimes``."""
    last = dict(lifetimes)
    for position, node in enumerate(nodes):
        if node.op is not None:
            for i, entry in enumerate(node.inputs):
                if i not in node.op.traits.unread:
                    last[entry] = max(position, last.get(entry, -1))
    return last


def _find_views(nodes: Sequence[Node], specs: Mapping[Node, Sequence[Spec]], contexts: Mapping[Node, Context],
                arrays: Mapping[Entry, Array], targets: Mapping[Entry, Array], view_of: dict[Entry, Entry]
                ) -> set[Entry]:
    """Enter the views among the entries in ``view_of``, each with the input that it views.

    ``arrays`` are the arrays of variables and of ``targets``. Returns the views of all elements of their storage, in
    its order. A view of a view has the storage of the first input.
    """
    stand_ins: dict[Entry, np.ndarray] = {}
    full_views: set[Entry] = set()
    for node in nodes:
        op = node.op
        if op is None or op.rules.view is None or len(node.inputs) < 1:
            continue
        source = node.inputs[0]
        if contexts[source[0]] != contexts[node] or any((node, i) in targets for i in range(node.count)):
            continue
        base = stand_ins.get(source)
        if base is None:
            base = placeholder(specs[source[0]][source[1]], arrays.get(source))
        try:
            view = op.rules.as_view(base, node.attrs, [spec.shape for spec in specs[node]])
        except Exception as error:
            fail(error, node, specs[node])
        if view is None:
            continue
        parts = as_list(view)
        if len(parts) < node.count or any(part.dtype != spec.dtype or part.shape != spec.shape or
                                          (not np.may_share_memory(part, base) and part.size)
                                          for part, spec in zip(parts, specs[node])):
            continue
        for i, part in enumerate(parts[:node.count]):
            view_of[node, i] = source
            stand_ins[node, i] = part
            if part.size == base.size and part.flags.c_contiguous:
                full_views.add((node, i))
    return full_views


def _takeover(node: Node, index: int, spec: Spec, position: int, storage: Mapping[Entry, Storage],
              view_of: Mapping[Entry, Entry], full_views: set[Entry], ctx: Context) -> Entry | None:
    """The input whose storage output 0 may take over, or None."""
    op = node.op
    if index or op is None or not op.traits.inplace or spec.dtype is None:
        return None
    need = size(spec.shape or ()) * spec.dtype.itemsize
    for i, entry in enumerate(node.inputs):
        taken = storage.get(entry)
        if (i not in op.traits.inplace or taken is None or taken.pinned is not None or taken.last != position
                or taken.nbytes != max(need, 1) or taken.ctx != ctx or (entry in view_of and entry not in full_views)):
            continue
        others = [(k, source) for k, source in enumerate(node.inputs) if storage.get(source) is taken and k != i]
        if all(k in op.traits.inplace and source == entry for k, source in others):
            return entry
    return None

"""The memory use of a plan: bound arrays, and intermediate results, the largest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from opreg.core.graph import Entry, Node
from opreg.core.reports import NotebookTable, report
from opreg.core.spec import Spec
from opreg.ndarray.context import Context

from ..passes.memory import Memory, Storage

__all__ = ["MemoryRow", "MemoryUse", "largest", "results_between", "size_text"]

# Rows of a table by default.
_SHOWN = 20


class MemoryRow(NamedTuple):
    """The memory of an intermediate result.

    Attributes
    ----------
    nbytes : int
    node, operator : str
        The node whose result it holds first, and its operator.
    spec : Spec
        Shape and dtype of that result.
    users : tuple of str
        All nodes whose results it holds, one after the other or as views.
    ctx : Context
    offset : int
        Its first byte in the context's arena. Results with overlapping bytes live at different times.
    """

    nbytes: int
    node: str
    operator: str
    spec: Spec
    users: tuple[str, ...]
    ctx: Context
    offset: int


class MemoryUse(NotebookTable):
    """The report of ``executor.memory``; prints as a table, the largest first.

    Attributes
    ----------
    rows : list of MemoryRow
        Intermediate results, largest first.
    arena : dict of Context to int
        Bytes that these share, by device. The total is less than their sum, since they live at different times.
    temporaries : int
        Bytes of the work space of kernels.
    bound : dict of str to int
        Bytes of ``arguments``, ``gradients``, ``states`` and ``outputs``, which callers hold.
    is_train : bool
        The mode of the plan.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.sym.Variable("x")
    >>> use = mx.sym.sum(mx.sym.dot(x, x)).simple_bind(mx.cpu(), x=(64, 64), grad_req="null").memory()
    >>> [(row.operator, row.nbytes) for row in use.rows], use.bound["arguments"]
    ([('dot', 16384)], 16384)
    """

    def __init__(self, rows: Iterable[MemoryRow], arena: Mapping[Context, int], temporaries: int,
                 bound: Mapping[str, int], is_train: bool):
        self.rows = sorted(rows, key=lambda row: -row.nbytes)
        self.arena, self.temporaries, self.bound, self.is_train = dict(arena), temporaries, dict(bound), is_train

    @classmethod
    def joined(cls, parts: Sequence[MemoryUse], bound: Mapping[str, int], is_train: bool) -> MemoryUse:
        """One report for plans that exist side by side."""
        arena: dict[Context, int] = {}
        for part in parts:
            for ctx, nbytes in part.arena.items():
                arena[ctx] = arena.get(ctx, 0) + nbytes
        return cls([row for part in parts for row in part.rows], arena, sum(part.temporaries for part in parts), bound,
                   is_train)

    @property
    def total(self) -> int:
        """Bytes of arenas and temporaries."""
        return sum(self.arena.values()) + self.temporaries

    def table(self, count: int = _SHOWN) -> str:
        """The largest results, a line each."""
        lines = [f"{'training' if self.is_train else 'inference'} plan: {size_text(self.total)} beside "
                 + ", ".join(f"{name} {size_text(nbytes)}" for name, nbytes in self.bound.items())]
        lines += [f"{ctx}: {size_text(nbytes)} for results that take turns" for ctx, nbytes in self.arena.items()]
        if self.temporaries:
            lines.append(f"temporaries of kernels: {size_text(self.temporaries)}")
        lines += [f"{size_text(row.nbytes):>11}  {row.operator} {row.node} {row.spec}"
                  + (f", then {', '.join(row.users[1:])}" if len(row.users) > 1 else "") for row in self.rows[:count]]
        if len(self.rows) > count:
            lines.append(f"... and {len(self.rows) - count} more")
        return report(lines)

    __repr__ = __str__ = table


def results_between(memory: Memory, specs: Mapping[Node, Sequence[Spec]]) -> list[MemoryRow]:
    """The memory of intermediate results of a plan, one row for each."""
    users: dict[Storage, list[Entry]] = {}
    for entry, storage in memory.storage.items():
        if storage.pinned is None and entry[0].op is not None:
            users.setdefault(storage, []).append(entry)
    rows = []
    for entries in users.values():
        (node, i), storage = entries[0], memory.storage[entries[0]]
        assert node.op is not None
        rows.append(MemoryRow(storage.nbytes, node.name, node.op.name, specs[node][i],
                              tuple(dict.fromkeys(node.name for node, _ in entries)), storage.ctx, storage.offset))
    return rows


def largest(memory: Memory, specs: Mapping[Node, Sequence[Spec]], count: int = 3) -> str:
    """The largest intermediate results, as text for an error."""
    rows = sorted(results_between(memory, specs), key=lambda row: -row.nbytes)[:count]
    return ", ".join(f"{row.spec} of {row.operator} {row.node!r} ({row.nbytes:,} bytes)" for row in rows)


def size_text(nbytes: int) -> str:
    """A number of bytes with its unit."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes} bytes"

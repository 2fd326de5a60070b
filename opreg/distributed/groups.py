"""Group: the processes that compute together, and what they can do with their arrays; here of one process alone.

Engines for more derive from ``Group`` and say only how a call is posted. A call is described by a ``Call``, alike on
all ranks, which is what they compare and what errors show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.array_module import module_of
from ..core.cache import Recent
from ..core.spec import is_floating
from ..errors import ArgumentError, DTypeError, ShapeError, did_you_mean
from ..typing import Array
from .window import Window

__all__ = ["Group", "Request", "Call", "REDUCTIONS"]

#: Reductions of the values of several ranks.
REDUCTIONS = ("sum", "mean", "max", "min", "prod")


class Call(NamedTuple):
    """A collective call of a group's ranks: equal on all of them, but for sends and receives."""

    kind: str
    op: str
    #: The rank that sends, for calls that have one; else -1.
    root: int
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        how = self.op or (f"rank {self.root}" if self.root >= 0 else "")
        what = f" of {self.dtype} {self.shape}" if self.dtype else ""
        return f"{self.kind}{f'({how})' if how else ''}{what}"


class Request:
    """A call that may still be under way; its arrays belong to it until ``wait`` returns."""

    def __init__(self, result: Array):
        self._result = result

    def test(self) -> bool:
        """Let it move on a little; whether it is done."""
        return True

    def wait(self) -> Array:
        """The result, when it is there.

        Raises
        ------
        RankError
            When another rank has failed, has ended, is doing something else, or does not come in time.
        """
        return self._result


class Group:
    """Processes that compute together, each known by its rank; this class is one process alone.

    Arrays are those of array modules, NumPy's or CuPy's. ``out`` takes the result, and may be the array itself where
    the shape stays; without it the result is a new array. Calls on arrays have twins whose names begin with an ``i``,
    which return a ``Request`` at once. All ranks make the same calls in the same order.

    Attributes
    ----------
    rank, size : int
        This process, and how many there are.
    ranks : tuple of int
        Which they are among all processes.
    name : str
        What operators know the group by.
    engine : str
        What carries the numbers: ``alone``, ``mpi`` or ``nccl``.

    Examples
    --------
    >>> group = Group()
    >>> group.allreduce(np.ones(2), "mean").tolist(), group.rank, group.size
    ([1.0, 1.0], 0, 1)
    >>> request = group.iall_gather(np.ones(2))
    >>> request.wait().tolist()
    [1.0, 1.0]
    """

    engine = "alone"

    def __init__(self, ranks: Sequence[int] = (0,), rank: int = 0, name: str = "world"):
        self.ranks, self.rank, self.size, self.name = tuple(ranks), rank, len(ranks), name
        # Described once: behind large arrays Python is slow.
        self._calls = Recent(1 << 10, f"calls of {self.name}")

    def __repr__(self) -> str:
        return f"<Group {self.name}: rank {self.rank} of {self.size}, {self.engine}>"

    # ------------------------------------------------------------------------------------------ all with all

    def iallreduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Request:
        """Begin ``allreduce``."""
        return self._begin("allreduce", array, array.shape, out, op)

    def allreduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """The sum, mean, maximum, minimum or product of what all ranks bring, on all of them.

        16-bit values are added up as float32 and rounded once.
        """
        return self.iallreduce(array, op, out).wait()

    def ireduce_scatter(self, array: Array, op: str = "sum", out: Array | None = None) -> Request:
        """Begin ``reduce_scatter``."""
        shape = (self._share("reduce_scatter", array), *array.shape[1:])
        return self._begin("reduce_scatter", array, shape, out, op)

    def reduce_scatter(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """As ``allreduce``, but each rank gets its part along the first axis, whose length the size divides."""
        return self.ireduce_scatter(array, op, out).wait()

    def iall_gather(self, array: Array, out: Array | None = None) -> Request:
        """Begin ``all_gather``."""
        if not array.ndim:
            raise ShapeError("all_gather: expected an array with an axis to join along, got a number")
        return self._begin("all_gather", array, (array.shape[0] * self.size, *array.shape[1:]), out)

    def all_gather(self, array: Array, out: Array | None = None) -> Array:
        """Join the arrays of all ranks along the first axis, in the order of ranks, on all of them."""
        return self.iall_gather(array, out).wait()

    def ialltoall(self, array: Array, out: Array | None = None) -> Request:
        """Begin ``alltoall``."""
        self._share("alltoall", array)
        if out is array:
            raise ArgumentError("alltoall: out must be another array than the one that is sent")
        return self._begin("alltoall", array, array.shape, out)

    def alltoall(self, array: Array, out: Array | None = None) -> Array:
        """Part ``i`` along the first axis goes to rank ``i``; what comes is joined in the order of ranks."""
        return self.ialltoall(array, out).wait()

    # ------------------------------------------------------------------------------------------ one with others

    def ibroadcast(self, array: Array, root: int = 0, out: Array | None = None) -> Request:
        """Begin ``broadcast``."""
        self._peer("broadcast: root", root)
        return self._begin("broadcast", array, array.shape, out, root=root)

    def broadcast(self, array: Array, root: int = 0, out: Array | None = None) -> Array:
        """The array of one rank, on all of them; the others' say shape and dtype."""
        return self.ibroadcast(array, root, out).wait()

    def isend(self, array: Array, to: int, tag: int = 0) -> Request:
        """Begin ``send``."""
        self._peer("send: to", to)
        return self._post(self._call("send", "", to, array), _contiguous(array), array, tag)

    def send(self, array: Array, to: int, tag: int = 0) -> None:
        """Bring an array to one other rank, which calls ``recv``."""
        self.isend(array, to, tag).wait()

    def irecv(self, out: Array, source: int, tag: int = 0) -> Request:
        """Begin ``recv``."""
        self._peer("recv: source", source)
        return self._post(self._call("recv", "", source, out), out, out, tag)

    def recv(self, out: Array, source: int, tag: int = 0) -> Array:
        """Take what one other rank sends, of the shape and dtype of ``out``, into it."""
        return self.irecv(out, source, tag).wait()

    # ------------------------------------------------------------------------------------------ without arrays

    def barrier(self) -> None:
        """Wait until all ranks are here."""

    def exchange(self, value: object) -> list[object]:
        """Exchange small objects that can be pickled: those of all ranks, in their order. For rare questions."""
        return [value]

    def agree(self, what: str, text: str) -> None:
        """Go on if all ranks say the same.

        Parameters
        ----------
        what : str
            What is compared, for the error: ``"the graph of bind"``.
        text : str
            What this rank has; of long texts the error shows where they part.

        Raises
        ------
        RankError
            On all ranks, which names those that differ from most.
        """

    def window(self, nbytes: int) -> Window:
        """Memory that every rank reaches while the others go on: some bytes of each rank, which call this together."""
        return Window(nbytes)

    # ------------------------------------------------------------------------------------------ other groups

    def create(self, ranks: Sequence[int], name: str | None = None) -> Group | None:
        """A group of some ranks of this one, which call it; None for others that do."""
        ranks = list(ranks)
        for rank in ranks:
            self._peer("create: ranks", rank)
        if not ranks or len(set(ranks)) != len(ranks):
            raise ArgumentError(f"create: expected different ranks, got {ranks}")
        return self._create(ranks, name or f"{self.name}[{','.join(map(str, ranks))}]")

    def split(self, color: int, key: int | None = None) -> Group:
        """The group of the ranks that bring the same color, in the order of their keys."""
        brought = self.exchange((color, self.rank if key is None else key))
        mine: Group | None = None
        for each in sorted({entry[0] for entry in brought}):  # type: ignore[index]
            members = sorted((entry[1], rank) for rank, entry in enumerate(brought)  # type: ignore[index]
                             if entry[0] == each)  # type: ignore[index]
            made = self.create([rank for _, rank in members])
            mine = made or mine
        assert mine is not None
        return mine

    # ------------------------------------------------------------------------------------------ for engines

    def _begin(self, kind: str, array: Array, shape: tuple[int, ...], out: Array | None, op: str = "",
               root: int = -1) -> Request:
        call = self._call(kind, op, root, array)
        if out is None:
            out = _empty_like(array, shape)
        elif out.shape != shape or out.dtype != array.dtype:
            raise ShapeError(f"{kind}: out holds {out.dtype} {out.shape}, the result is {array.dtype} {shape}")
        return self._post(call, _contiguous(array), out, 0)

    def _call(self, kind: str, op: str, root: int, array: Array) -> Call:
        key = kind, op, root, array.shape, array.dtype
        call: Call | None = self._calls.find(key)
        if call is None:
            if kind in ("allreduce", "reduce_scatter"):
                _check_reduction(op, array)
            call = Call(kind, op, root, array.shape, str(array.dtype))
            self._calls.keep(key, call)
        return call

    def _post(self, call: Call, array: Array, out: Array, tag: int) -> Request:
        """Start a call of an array that is contiguous; the result goes to ``out``, which need not be."""
        if call.kind in ("send", "recv"):
            raise ArgumentError(f"{call.kind}: a group of one has nobody else")
        if out is not array:
            out[...] = array.reshape(out.shape)
        return Request(out)

    def _create(self, ranks: Sequence[int], name: str) -> Group | None:
        return Group([self.ranks[0]], 0, name)

    def _share(self, kind: str, array: Array) -> int:
        """How long a part of the first axis is."""
        if not array.ndim or array.shape[0] % self.size:
            raise ShapeError(f"{kind}: the first axis is divided among {self.size} ranks; got the shape {array.shape}")
        return array.shape[0] // self.size

    def _peer(self, what: str, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ArgumentError(f"{what}={rank}: the group {self.name} has ranks 0 to {self.size - 1}")


def _check_reduction(op: str, array: Array) -> None:
    if op not in REDUCTIONS:
        raise ArgumentError(f"unknown reduction {op!r}. {did_you_mean(op, REDUCTIONS)}")
    if op == "mean" and not is_floating(array.dtype):
        raise DTypeError(f"the mean of {array.dtype} is no {array.dtype}; take the sum")
    if op == "sum" and array.dtype == np.bool_:
        raise DTypeError("truth values have no sum; 'max' says whether any is true, 'min' whether all are")


def _contiguous(array: Array) -> Array:
    return array if array.flags.c_contiguous else array.copy(order="C")


def _empty_like(array: Array, shape: tuple[int, ...]) -> Array:
    """Memory on the array's device, which is the current one or the only one."""
    return module_of(array).empty(shape, array.dtype)

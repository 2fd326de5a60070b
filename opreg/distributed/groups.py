"""Group: processes that compute together, and the collective operations on their arrays; here for a single process.

Engines for several processes derive from ``Group`` and define only how a call is posted. A ``Call`` describes a call;
ranks compare these descriptions, and errors show them.
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
    """A collective call: equal on all ranks, except for sends and receives."""

    kind: str
    op: str
    #: The sending rank, for calls that have one; else -1.
    root: int
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        how = self.op or (f"rank {self.root}" if self.root >= 0 else "")
        what = f" of {self.dtype} {self.shape}" if self.dtype else ""
        return f"{self.kind}{f'({how})' if how else ''}{what}"


class Request:
    """A call that may be in progress; its arrays must not be used until ``wait`` returns."""

    def __init__(self, result: Array):
        self._result = result

    def test(self) -> bool:
        """Make progress; returns whether the call is complete."""
        return True

    def wait(self) -> Array:
        """Wait for the result, and return it.

        Raises
        ------
        RankError
            When another rank has failed or ended, calls something else, or does not arrive in time.
        """
        return self._result


class Group:
    """Processes that compute together, each with a rank; this class is a single process.

    Arrays are NumPy's or CuPy's. The result is written to ``out``, which may be the array itself if the shape is the
    same; without it the result is a new array. Each call has a non-blocking form, whose name begins with ``i`` and
    which returns a ``Request``. All ranks make the same calls in the same order.

    Attributes
    ----------
    rank, size : int
        Rank of this process, and number of processes.
    ranks : tuple of int
        Ranks in the world.
    name : str
        Name of the group for operators.
    engine : str
        Transport of the arrays: ``alone``, ``mpi`` or ``nccl``.

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
        # computed once, since Python is slow right after large arrays
        self._calls = Recent(1 << 10, f"calls of {self.name}")

    def __repr__(self) -> str:
        return f"<Group {self.name}: rank {self.rank} of {self.size}, {self.engine}>"

    # ------------------------------------------------------------------------------------------ all with all

    def iallreduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Request:
        """Start ``allreduce``."""
        return self._begin("allreduce", array, array.shape, out, op)

    def allreduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """The sum, mean, maximum, minimum or product of the arrays of all ranks, on each of them.

        16-bit values are summed in float32 and rounded once.
        """
        return self.iallreduce(array, op, out).wait()

    def ireduce_scatter(self, array: Array, op: str = "sum", out: Array | None = None) -> Request:
        """Start ``reduce_scatter``."""
        shape = (self._share("reduce_scatter", array), *array.shape[1:])
        return self._begin("reduce_scatter", array, shape, out, op)

    def reduce_scatter(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """``allreduce``, of which each rank gets its part along the first axis; the size has to divide its length."""
        return self.ireduce_scatter(array, op, out).wait()

    def iall_gather(self, array: Array, out: Array | None = None) -> Request:
        """Start ``all_gather``."""
        if not array.ndim:
            raise ShapeError("all_gather: expected an array with at least one axis, got a scalar")
        return self._begin("all_gather", array, (array.shape[0] * self.size, *array.shape[1:]), out)

    def all_gather(self, array: Array, out: Array | None = None) -> Array:
        """Concatenate the arrays of all ranks along the first axis, in the order of ranks, on each of them."""
        return self.iall_gather(array, out).wait()

    def ialltoall(self, array: Array, out: Array | None = None) -> Request:
        """Start ``alltoall``."""
        self._share("alltoall", array)
        if out is array:
            raise ArgumentError("alltoall: out must not be the array that is sent")
        return self._begin("alltoall", array, array.shape, out)

    def alltoall(self, array: Array, out: Array | None = None) -> Array:
        """Part ``i`` along the first axis is sent to rank ``i``; received parts are concatenated in the order of
        ranks."""
        return self.ialltoall(array, out).wait()

    # ------------------------------------------------------------------------------------------ one with others

    def ibroadcast(self, array: Array, root: int = 0, out: Array | None = None) -> Request:
        """Start ``broadcast``."""
        self._peer("broadcast: root", root)
        return self._begin("broadcast", array, array.shape, out, root=root)

    def broadcast(self, array: Array, root: int = 0, out: Array | None = None) -> Array:
        """The array of one rank, on all of them; arrays of the other ranks give shape and dtype."""
        return self.ibroadcast(array, root, out).wait()

    def isend(self, array: Array, to: int, tag: int = 0) -> Request:
        """Start ``send``."""
        self._peer("send: to", to)
        return self._post(self._call("send", "", to, array), _contiguous(array), array, tag)

    def send(self, array: Array, to: int, tag: int = 0) -> None:
        """Send an array to another rank, which calls ``recv``."""
        self.isend(array, to, tag).wait()

    def irecv(self, out: Array, source: int, tag: int = 0) -> Request:
        """Start ``recv``."""
        self._peer("recv: source", source)
        return self._post(self._call("recv", "", source, out), out, out, tag)

    def recv(self, out: Array, source: int, tag: int = 0) -> Array:
        """Receive an array from another rank into ``out``, which gives shape and dtype."""
        return self.irecv(out, source, tag).wait()

    # ------------------------------------------------------------------------------------------ without arrays

    def barrier(self) -> None:
        """Wait until all ranks have called it."""

    def exchange(self, value: object) -> list[object]:
        """The objects of all ranks, in the order of ranks; they are pickled, so this is for small and rare data."""
        return [value]

    def agree(self, what: str, text: str) -> None:
        """Continue if all ranks give the same text.

        Parameters
        ----------
        what : str
            Name of the compared value, for errors: ``"the graph of bind"``.
        text : str
            Text of this rank; for long texts the error shows the differing lines.

        Raises
        ------
        RankError
            On all ranks, naming the ranks that differ from the majority.
        """

    def window(self, nbytes: int) -> Window:
        """Memory of each rank that all ranks can access at any time; all ranks call this together."""
        return Window(nbytes)

    # ------------------------------------------------------------------------------------------ other groups

    def create(self, ranks: Sequence[int], name: str | None = None) -> Group | None:
        """A group of some ranks, which call this; None on other ranks that call it."""
        ranks = list(ranks)
        for rank in ranks:
            self._peer("create: ranks", rank)
        if not ranks or len(set(ranks)) != len(ranks):
            raise ArgumentError(f"create: expected different ranks, got {ranks}")
        return self._create(ranks, name or f"{self.name}[{','.join(map(str, ranks))}]")

    def split(self, color: int, key: int | None = None) -> Group:
        """The group of all ranks with the same color, in the order of their keys."""
        brought = self.exchange((color, self.rank if key is None else key))
        mine: Group | None = None
        for color_of_group in sorted({entry[0] for entry in brought}):  # type: ignore[index]
            members = sorted((entry[1], rank) for rank, entry in enumerate(brought)  # type: ignore[index]
                             if entry[0] == color_of_group)  # type: ignore[index]
            created = self.create([rank for _, rank in members])
            mine = created or mine
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
        call: Call | None = self._calls[key]
        if call is None:
            if kind in ("allreduce", "reduce_scatter"):
                _check_reduction(op, array)
            call = Call(kind, op, root, array.shape, str(array.dtype))
            self._calls.keep(key, call)
        return call

    def _post(self, call: Call, array: Array, out: Array, tag: int) -> Request:
        """Start a call on a contiguous array; the result is written to ``out``, which may be non-contiguous."""
        if call.kind in ("send", "recv"):
            raise ArgumentError(f"{call.kind}: a group of one process has no other rank")
        if out is not array:
            out[...] = array.reshape(out.shape)
        return Request(out)

    def _create(self, ranks: Sequence[int], name: str) -> Group | None:
        return Group([self.ranks[0]], 0, name)

    def _share(self, kind: str, array: Array) -> int:
        """Length of a rank's part of the first axis."""
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
        raise DTypeError(f"the mean of {array.dtype} elements is not a {array.dtype}; compute the sum")
    if op == "sum" and array.dtype == np.bool_:
        raise DTypeError("bool arrays have no sum; 'max' gives whether any element is true, 'min' whether all are")


def _contiguous(array: Array) -> Array:
    return array if array.flags.c_contiguous else array.copy(order="C")


def _empty_like(array: Array, shape: tuple[int, ...]) -> Array:
    """Memory on the array's device, which is the current or only one."""
    return module_of(array).empty(shape, array.dtype)

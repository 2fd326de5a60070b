"""Collectives between GPUs over NCCL, through CuPy: each rank has a device, and arrays do not pass through the host.

Calls run on their own stream, after the work of the current stream, which continues meanwhile; ``wait`` makes the
current stream wait for a call, while the host continues. With many calls in progress, the host waits for the oldest and
watches the other ranks. Not run on GPUs so far: it is tested on a stand-in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.addresses import address_of
from ..errors import DTypeError
from ..typing import Array, ArrayModule
from .groups import Call, Request
from .watch import Position, Watch

__all__ = ["Nccl", "identity", "serves"]

#: Number of calls in progress above which the host waits for the oldest, and so notices a dead rank.
_MOST = 64
#: NCCL's code for bfloat16, which CuPy does not name.
_BFLOAT16 = 9


def serves(xp: ArrayModule) -> bool:
    """Whether an array module supports NCCL."""
    return bool(getattr(getattr(xp.cuda, "nccl", None), "available", False))


class _NcclRequest(Request):
    """A call on the stream of a group."""

    def __init__(self, result: Array, event: Any, xp: ArrayModule, finish: Callable[[], None] | None, owner: object):
        super().__init__(result)
        self._event, self._xp, self._finish, self._held = event, xp, finish, owner

    def test(self) -> bool:
        return bool(self._event.done)

    def wait(self) -> Array:
        if self._held is not None:
            self._xp.cuda.get_current_stream().wait_event(self._event)
            if self._finish is not None:
                self._finish()
            self._finish = self._held = None
        return self._result


class Nccl:
    """A communicator of ranks with one device each.

    Parameters
    ----------
    xp : module
        CuPy.
    rank, size : int
    identity : tuple of int
        Identity that rank 0 drew and sent to all.
    """

    def __init__(self, xp: ArrayModule, rank: int, size: int, identity: tuple[int, ...], watch: Watch):
        nccl = xp.cuda.nccl
        self._xp, self._rank, self._size, self._watch, self._nccl = xp, rank, size, watch, nccl
        self._comm, self._stream = nccl.NcclCommunicator(size, identity, rank), xp.cuda.Stream(non_blocking=True)
        self._ops = {"sum": nccl.NCCL_SUM, "mean": nccl.NCCL_SUM, "max": nccl.NCCL_MAX, "min": nccl.NCCL_MIN,
                     "prod": nccl.NCCL_PROD}
        self._types = {name: getattr(nccl, f"NCCL_{name.upper()}") for name in (
            "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")}
        self._types.update(bfloat16=_BFLOAT16, bool=nccl.NCCL_UINT8)
        self._under_way: deque[tuple[Any, Position]] = deque()

    def post(self, call: Call, array: Array, out: Array, position: Position) -> Request:
        """Start a call on a contiguous array."""
        if len(self._under_way) >= _MOST:
            event, before = self._under_way.popleft()
            self._watch.wait_until(lambda: bool(event.done), before)
        if call.op and array.dtype.name not in self._types:
            raise DTypeError(f"{call}: NCCL cannot compute with {array.dtype}")
        received = out if out.flags.c_contiguous else self._xp.empty(out.shape, out.dtype)
        self._stream.wait_event(self._xp.cuda.get_current_stream().record())
        self._start(call, array, received)
        event = self._stream.record()
        self._under_way.append((event, position))

        def finish() -> None:
            if call.op == "mean":
                self._xp.divide(received, self._size, out=received)
            if received is not out:
                out[...] = received

        return _NcclRequest(out, event, self._xp, finish if call.op == "mean" or received is not out else None,
                            (array, received))

    def _start(self, call: Call, array: Array, received: Array) -> None:
        comm, source, target, stream = self._comm, address_of(array), address_of(received), self._stream.ptr
        moved = self._types["uint8"]
        if call.kind == "allreduce":
            comm.allReduce(source, target, array.size, self._types[array.dtype.name], self._ops[call.op], stream)
        elif call.kind == "reduce_scatter":
            comm.reduceScatter(source, target, received.size, self._types[array.dtype.name], self._ops[call.op], stream)
        elif call.kind == "all_gather":
            comm.allGather(source, target, array.nbytes, moved, stream)
        elif call.kind == "broadcast":
            comm.broadcast(source, target, array.nbytes, moved, call.root, stream)
        elif call.kind == "send":
            comm.send(source, array.nbytes, moved, call.root, stream)
        elif call.kind == "recv":
            comm.recv(target, array.nbytes, moved, call.root, stream)
        else:
            self._nccl.groupStart()
            share = array.nbytes // self._size
            for rank in range(self._size):
                comm.send(source + rank * share, share, moved, rank, stream)
                comm.recv(target + rank * share, share, moved, rank, stream)
            self._nccl.groupEnd()


def identity(xp: ArrayModule, rank: int, allgather: Callable[[object], Sequence[object]]) -> tuple[int, ...]:
    """The identity of a new communicator: rank 0 draws it, and sends it to the others."""
    unique_id = allgather(xp.cuda.nccl.get_unique_id() if rank == 0 else None)[0]
    assert isinstance(unique_id, tuple)
    return unique_id

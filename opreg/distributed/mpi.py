"""Groups over MPI: arrays are sent as buffers, calls do not block, and waiting ranks watch the others.

Elements of any dtype are sent as bytes. Elements that are summed need a type of MPI; 16-bit values are sent as float32.
GPU arrays use NCCL if all ranks have it, else they pass through the host.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array_module import module_of
from ..core.spec import is_floating
from ..errors import DTypeError, OpError, RankError
from ..typing import Array
from .groups import Call, Group, Request
from .mpi_window import MpiWindow
from .nccl import Nccl, identity, serves
from .watch import Position, Watch
from .window import Window

__all__ = ["MpiGroup"]

#: Size in bytes above which a call also checks whether all ranks have started it: a waiting rank sleeps until then.
_LARGE = 1 << 20
_UNKNOWN = object()
#: Type codes that MPI can sum and compare.
_NUMBERS = "bBhHiIlLqQfdFD?"


class _MpiRequest(Request):
    """A call in progress.

    Parameters
    ----------
    requests : list of mpi4py.MPI.Request
        The request of the call, and for a large one that of a barrier.
    finish : function or None
        A function that stores the received data.
    owner : object
        The object that keeps the sent memory alive until the call has ended.
    """

    def __init__(self, result: Array, watch: Watch, position: Position, requests: Sequence[Any],
                 finish: Callable[[], None] | None, owner: object):
        super().__init__(result)
        self._watch, self._position, self._requests = watch, position, requests
        self._finish, self._held, self._done = finish, owner, False

    def test(self) -> bool:
        if not self._done:
            try:
                for request in self._requests:  # called thousands of times: a generator would take as long as MPI
                    if not request.Test():
                        return False
            except Exception as error:
                raise mpi_error(self._position, error) from None
            self._done = True
            if self._finish is not None:
                self._finish()
            self._finish = self._held = None
        return True

    def wait(self) -> Array:
        if not self._done and not self.test():
            arrived = self._requests[1].Test if len(self._requests) > 1 else None
            self._watch.wait_until(self.test, self._position, arrived)
        return self._result


def mpi_error(position: Position, error: Exception) -> OpError:
    """An MPI error as a RankError or OpError."""
    return RankError(f"call {position.number}, {position.call}: MPI says: {error}; another rank may have passed a "
                     f"different size, or have ended")


class MpiGroup(Group):
    """Ranks of an MPI communicator.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    comm, control : mpi4py.MPI.Comm
        Communicators for arrays, and for control messages.
    """

    def __init__(self, mpi: Any, comm: Any, control: Any, watch: Watch, ranks: Sequence[int], name: str):
        super().__init__(ranks, comm.rank, name)
        self._mpi, self._comm, self._control, self._watch = mpi, comm, control, watch
        self._ops = {"sum": mpi.SUM, "mean": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN, "prod": mpi.PROD,
                     "": None}
        self._known: set[Call] = set()
        self._count, self._key = 0, watch.key(name, self.ranks)
        self._nccl: Any = _UNKNOWN  # transport of GPU arrays
        self._position("the beginning")

    @property
    def engine(self) -> str:  # type: ignore[override]
        """The transport used so far: ``mpi``, or ``nccl`` after GPU arrays went over it."""
        return "nccl" if isinstance(self._nccl, Nccl) else "mpi"

    def _position(self, call: object) -> Position:
        """Record the next call of this rank."""
        position = self._watch.positions[self._key] = Position(self._key, self.ranks, self._count, call)
        return position

    # ------------------------------------------------------------------------------------------------- arrays

    def _post(self, call: Call, array: Array, out: Array, tag: int) -> Request:
        between_two = call.kind in ("send", "recv")
        if not between_two:
            if call not in self._known:
                self.agree("the call", str(call))
                self._known.add(call)
            self._count += 1
        position = self._position(call)
        nccl = None if type(array) is np.ndarray or not hasattr(array, "get") else self._between_devices(array)
        if nccl is not None:
            return nccl.post(call, array, out, position)
        sent, received, finish = self._buffers(call, array, out)
        try:
            requests = [self._start(call, sent, received, tag)]
            if not between_two and sent.nbytes >= _LARGE:
                requests.append(self._control.Ibarrier())
        except self._mpi.Exception as error:
            raise mpi_error(position, error) from None
        return _MpiRequest(out, self._watch, position, requests, finish, (sent, received))

    def _between_devices(self, array: Array) -> Nccl | None:
        """The communicator for GPU arrays; None if a rank lacks NCCL. The first GPU array decides its device."""
        if self._nccl is _UNKNOWN:
            xp = module_of(array)
            answers = self._exchange(serves(xp), "whether there is NCCL")
            self._nccl = Nccl(xp, self.rank, self.size, identity(xp, self.rank, self.exchange), self._watch) \
                if all(answers) else None
        return self._nccl

    def _buffers(self, call: Call, array: Array, out: Array
                 ) -> tuple[np.ndarray, np.ndarray, Callable[[], None] | None]:
        """Buffers that MPI reads and writes, and a function to call afterwards; one buffer for calls in place."""
        source = sent = _on_host(array)
        wide = source.dtype
        if call.op and wide.char not in _NUMBERS:
            if not is_floating(wide) or wide.itemsize != 2:
                raise DTypeError(f"{call}: MPI cannot compute with {wide}")
            wide = np.dtype(np.float32)
            sent = source.astype(wide)
        if out is array:
            received = sent
        elif not hasattr(out, "get") and out.dtype == wide and out.flags.c_contiguous:
            received = out
        else:
            received = np.empty(out.shape, wide)
        if call.kind == "broadcast" and self.rank == call.root and received is not sent:
            received[...] = sent

        def finish() -> None:
            if call.op == "mean":
                np.divide(received, self.size, out=received)
            if received is not out:
                _store(out, received)

        return sent, received, finish if call.op == "mean" or received is not out else None

    def _start(self, call: Call, sent: np.ndarray, received: np.ndarray, tag: int) -> Any:
        comm, op = self._comm, self._ops[call.op]
        if call.op:
            into = received if sent.dtype.kind != "b" else _flat(received, np.uint8)
            if sent is received:
                return comm.Iallreduce(self._mpi.IN_PLACE, into, op)
            numbers = sent if sent.dtype.kind != "b" else _flat(sent, np.uint8)
            return (comm.Iallreduce if call.kind == "allreduce" else comm.Ireduce_scatter_block)(numbers, into, op)
        bytes_in, bytes_out = _flat(sent, np.uint8), _flat(received, np.uint8)
        if call.kind == "all_gather":
            return comm.Iallgather(bytes_in, bytes_out)
        if call.kind == "alltoall":
            return comm.Ialltoall(bytes_in, bytes_out)
        if call.kind == "broadcast":
            return comm.Ibcast(bytes_out, call.root)
        return comm.Isend(bytes_in, call.root, tag) if call.kind == "send" else comm.Irecv(bytes_out, call.root, tag)

    # ------------------------------------------------------------------------------------------------- questions

    def barrier(self) -> None:
        self._count += 1
        self._watch.wait_until(self._comm.Ibarrier().Test, self._position("barrier"))

    def exchange(self, value: object) -> list[object]:
        return self._exchange(value, "exchange")

    def _exchange(self, value: object, call: str) -> list[object]:
        """Exchange lengths, then objects, by non-blocking calls."""
        self._count += 1
        position = self._position(call)
        payload = np.frombuffer(self._mpi.pickle.dumps(value), np.uint8)
        lengths = np.empty(self.size, np.int64)
        self._watch.wait_until(self._control.Iallgather(np.array([payload.size], np.int64), lengths).Test, position)
        everything = np.empty(lengths.sum(), np.uint8)
        self._watch.wait_until(self._control.Iallgatherv(payload, [everything, lengths]).Test, position)
        parts = np.split(everything, np.cumsum(lengths)[:-1])
        return [self._mpi.pickle.loads(part.tobytes()) for part in parts]

    def agree(self, what: str, text: str) -> None:
        texts = [str(value_text) for value_text in self._exchange(text, f"{what}, {text}" if len(text) < 200 else what)]
        common = max(texts, key=texts.count)
        odd = [rank for rank, text in enumerate(texts) if text != common]
        if odd:
            first = odd[0]
            error = RankError(f"{what} of {_differences_text(texts, odd, common)}")
            error.rank, error.reason = self.ranks[first], f"{what} is another"
            raise error

    def window(self, nbytes: int) -> Window:
        self.barrier()  # all ranks get here first, since the next call blocks
        window = MpiWindow(self._mpi, self._comm, self._watch, self.ranks, nbytes)
        self.barrier()
        return window

    # ------------------------------------------------------------------------------------------------- groups

    def _create(self, ranks: Sequence[int], name: str) -> Group | None:
        if self.rank not in ranks:
            return None
        self._meet(ranks, f"{name} of ranks {list(ranks)}")
        members = self._comm.Get_group().Incl(ranks)
        comm, control = self._comm.Create_group(members, 0), self._comm.Create_group(members, 1)
        return type(self)(self._mpi, comm, control, self._watch, [self.ranks[rank] for rank in ranks], name)

    def _meet(self, ranks: Sequence[int], text: str) -> None:
        """Wait until some ranks reach the same point, before a blocking call."""
        tag = zlib.crc32(text.encode()) % 32768  # the largest tag that every MPI supports
        token, world_ranks = np.zeros(1, np.uint8), [self.ranks[rank] for rank in ranks]
        others = [rank for rank in ranks if rank != self.rank]
        requests = [self._control.Isend(token, rank, tag) for rank in others] + [
            self._control.Irecv(np.empty(1, np.uint8), rank, tag) for rank in others]
        position = Position(f"before {text}", tuple(world_ranks), 0, f"the new group {text}")
        self._watch.positions[position.group] = position
        self._watch.wait_until(lambda: all(request.Test() for request in requests), position)


def _flat(array: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """The same memory as a flat array."""
    return array.reshape(-1).view(dtype)


def _on_host(array: Any) -> np.ndarray:
    """A NumPy array with the elements of an array that may be on a device."""
    return array if type(array) is np.ndarray or not hasattr(array, "get") else array.get()


def _store(out: Any, received: np.ndarray) -> None:
    """Store host values, cast, in an array that may be on a device."""
    if hasattr(out, "set"):
        out.set(received.astype(out.dtype, copy=False))
    else:
        out[...] = received


def _differences_text(texts: Sequence[str], odd: Sequence[int], common: str) -> str:
    """Texts of the ranks that differ; for long texts the differing lines."""
    mine, common_text = texts[odd[0]], common
    if len(mine) + len(common_text) > 200:
        pairs = [(a, b) for a, b in zip(mine.splitlines(), common_text.splitlines()) if a != b]
        mine, common_text = pairs[0] if pairs else (f"{len(mine)} characters", f"{len(common_text)} characters")
    names = ", ".join(map(str, odd))
    return f"rank {names} is {mine}; that of rank {texts.index(common)} is {common_text}"

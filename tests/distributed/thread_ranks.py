"""Ranks that are threads of one process, for tests: any number, without MPI, with short waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from opreg.distributed.groups import Call, Group, Request
from opreg.errors import RankError

T = TypeVar("T")

_PATIENCE = 30.0


class _Board:
    """Contributions of a group's ranks to each call, by the number of the call."""

    def __init__(self, size: int):
        self.size = size
        self.brought: dict[int, dict[int, Any]] = {}
        self.arrived = threading.Condition()
        self.failed = False

    def bring(self, number: int, rank: int, value: Any) -> None:
        with self.arrived:
            self.brought.setdefault(number, {})[rank] = value
            self.arrived.notify_all()

    def all(self, number: int) -> list[Any]:
        """The contributions of all ranks, once they are complete."""
        with self.arrived:
            there = self.arrived.wait_for(lambda: self.failed or len(self.brought.get(number, ())) == self.size,
                                          _PATIENCE)
            if self.failed or not there:
                raise RankError(f"call {number}: a rank did not come")
            return [self.brought[number][rank] for rank in range(self.size)]


class _Later(Request):
    """A result that is written only when a rank waits for it."""

    def __init__(self, board: _Board, number: int, out: np.ndarray, finish: Callable[[list[Any]], np.ndarray]):
        super().__init__(out)
        self._board, self._number, self._finish, self._done = board, number, finish, False

    def test(self) -> bool:
        return self._done

    def wait(self) -> np.ndarray:
        if not self._done:
            self._result[...] = self._finish(self._board.all(self._number))
            self._done = True
        return self._result


class ThreadGroup(Group):
    """A group whose ranks are threads; sums are in the order of ranks.

    Attributes
    ----------
    calls : list of Call
        Calls that this rank has begun.
    """

    engine = "threads"

    def __init__(self, board: _Board, rank: int):
        super().__init__(range(board.size), rank)
        self._board, self._count = board, 0
        self.calls: list[Call] = []

    def _post(self, call: Call, array: np.ndarray, out: np.ndarray, tag: int) -> Request:
        self.calls.append(call)
        self._count += 1
        self._board.bring(self._count, self.rank, (call, array.copy()))

        def finish(brought: list[Any]) -> np.ndarray:
            assert {other for other, _ in brought} == {call}, [other for other, _ in brought]
            arrays = [array for _, array in brought]
            if call.kind == "all_gather":
                return np.concatenate(arrays)
            if call.kind == "broadcast":
                return arrays[call.root]
            total = arrays[0].astype(arrays[0].dtype)
            for array in arrays[1:]:
                total = total + array
            if call.op == "mean":
                total = total / np.asarray(self.size, total.dtype)
            share = len(total) // self.size
            return total if call.kind == "allreduce" else total[self.rank * share:(self.rank + 1) * share]

        return _Later(self._board, self._count, out, finish)

    def exchange(self, value: object) -> list[object]:
        self._count += 1
        self._board.bring(self._count, self.rank, value)
        return self._board.all(self._count)

    def barrier(self) -> None:
        self.exchange(None)

    def agree(self, what: str, text: str) -> None:
        texts = [str(each) for each in self.exchange(text)]
        for rank, other in enumerate(texts):
            for mine, theirs in zip(texts[0].splitlines(), other.splitlines()):
                if mine != theirs:
                    raise RankError(f"{what} of rank {rank} is {theirs}; that of rank 0 is {mine}")


def on_ranks(size: int, function: Callable[[ThreadGroup], T]) -> list[T]:
    """Results of a function of a rank's group on each rank; raises the error of the first rank that fails."""
    board = _Board(size)
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = function(ThreadGroup(board, rank))
        except BaseException as error:
            errors[rank] = error
            with board.arrived:
                board.failed = True
                board.arrived.notify_all()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _PATIENCE)
        assert not thread.is_alive(), "a rank hangs"
    for error in sorted([error for error in errors if error is not None], key=lambda error: isinstance(error, RankError)
                        and "did not come" in str(error)):
        raise error
    return results

"""Worker processes that compute rows of datasets."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from opreg.data.workers import Processes

from .config import Epoch, get_num_parallel_workers, start_stream

__all__ = ["map_rows", "count_of"]

#: Rows in flight for each process: one that it computes, and one that waits.
_AHEAD = 2


class _Row(NamedTuple):
    """A row for a process to compute, and its index."""

    epoch: int
    number: int
    given: Any

    def __str__(self) -> str:
        return str(self.number)


class _MappedDataset:
    """A function as a worker's dataset; each row has random values of its own, whichever process computes it."""

    def __init__(self, function: Callable[[int, Any], Any]):
        self._function = function

    def __getitem__(self, row: _Row) -> Any:
        start_stream(row.epoch, row.number)
        return self._function(row.number, row.given)


def _first_row(rows: list[Any]) -> Any:
    return rows[0]


def count_of(num_parallel_workers: int | None, python_multiprocessing: bool) -> int:
    """Number of worker processes; 0 if the program computes rows itself.

    Examples
    --------
    >>> count_of(4, False), count_of(1, True)
    (0, 0)
    """
    if not python_multiprocessing or "fork" not in multiprocessing.get_all_start_methods():
        return 0
    count = get_num_parallel_workers() if num_parallel_workers is None else num_parallel_workers
    return count if count > 1 else 0


def map_rows(owner: str, workers: int, function: Callable[[int, Any], Any], rows: Iterable[Any], epoch: Epoch
             ) -> Iterator[Any]:
    """The results of a function of the index and the content of each row, in the order of the rows.

    Parameters
    ----------
    owner : str
        Name of the caller in errors.
    workers : int
        Number of processes, which run during the iteration; 0 for none.
    """
    if not workers:
        yield from (function(number, row) for number, row in enumerate(rows))
        return
    processes = Processes(workers, _MappedDataset(function), _first_row, owner, "row")
    ordered: deque[int] = deque()
    try:
        for number, row in enumerate(rows):
            ordered.append(processes.order([_Row(epoch.number, number, row)]))
            if len(ordered) > _AHEAD * workers:
                yield processes.take(ordered.popleft())
        while ordered:
            yield processes.take(ordered.popleft())
    finally:
        processes.close()

"""Settings of all datasets: the seed of their shuffling, and the count of their processes.

Lengths of queues, and where memory lies, are kept, and count for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError

__all__ = ["Epoch", "get_enable_shared_mem", "get_num_parallel_workers", "get_numa_enable", "get_prefetch_size",
           "get_seed", "set_enable_shared_mem", "set_num_parallel_workers", "set_numa_enable", "set_prefetch_size",
           "set_seed"]

#: The result of ``get_seed`` before a seed was set, as in MindSpore.
_FIRST_SEED = 5489

_chosen: dict[str, int] = {"num_parallel_workers": 8, "prefetch_size": 16, "enable_shared_mem": True,
                           "numa_enable": False}
#: The generator that a seed has started, for operations on rows; none where no seed was set, or nothing was drawn.
_streams: list[np.random.Generator] = []


def set_seed(seed: int) -> None:
    """Shuffle in the same orders in every run: those of this seed, which differ from epoch to epoch."""
    _chosen["seed"] = _whole("set_seed", seed, 0)
    _streams.clear()


def get_seed() -> int:
    """The seed that was set, or the first one."""
    return _chosen.get("seed", _FIRST_SEED)


class Epoch:
    """An epoch: its number, counted from 0, and its random generator.

    Parameters
    ----------
    seed : int, optional
        Where its random numbers begin: those of the seed that was set by default, or of what NumPy's own generator
        draws, which ``opreg.set_seed`` sets.
    """

    def __init__(self, number: int = 0, seed: int | None = None):
        self.number, self.seed = number, seed
        self._drawn = 0

    def random(self) -> np.random.Generator:
        """A generator, another one each time."""
        seed = _chosen.get("seed") if self.seed is None else self.seed
        self._drawn += 1
        return np.random.default_rng((seed, self.number, self._drawn) if seed is not None else
                                     int(np.random.randint(2 ** 31)))  # noqa: NPY002  what set_seed sets

    def inner(self, count: int, at: int) -> Epoch:
        """One of the ``count`` epochs that this epoch is made of."""
        return Epoch(self.number * count + at, self.seed)


def stream() -> np.random.Generator:
    """The generator that random operations on rows draw from: the seed's, or one of what NumPy's own draws."""
    if "seed" not in _chosen:
        return Epoch().random()
    if not _streams:
        start_stream(0)
    return _streams[0]


def start_stream(*place: int) -> None:
    """Start it over for a place among others that have the seed, too."""
    if "seed" in _chosen:
        _streams[:] = [np.random.default_rng((_chosen["seed"], *place))]


def set_num_parallel_workers(num: int) -> None:
    """How many processes compute rows where ``python_multiprocessing`` is asked for and no count given."""
    _chosen["num_parallel_workers"] = _whole("set_num_parallel_workers", num, 1)


def get_num_parallel_workers() -> int:
    """The count of workers that was set."""
    return _chosen["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Keep the length of queues; there are none."""
    _chosen["prefetch_size"] = _whole("set_prefetch_size", size, 1)


def get_prefetch_size() -> int:
    """The length of queues that was set."""
    return _chosen["prefetch_size"]


def set_enable_shared_mem(enable: bool) -> None:
    """Keep whether processes share memory; those that are forked have what the program has."""
    _chosen["enable_shared_mem"] = _truth("set_enable_shared_mem", enable)


def get_enable_shared_mem() -> bool:
    """Whether processes were to share memory."""
    return bool(_chosen["enable_shared_mem"])


def set_numa_enable(numa_enable: bool) -> None:
    """Keep whether processes are bound to a part of the machine's memory; none are."""
    _chosen["numa_enable"] = _truth("set_numa_enable", numa_enable)


def get_numa_enable() -> bool:
    """Whether processes were to be bound."""
    return bool(_chosen["numa_enable"])


def _truth(owner: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{owner}: expected a bool, got {value!r}")
    return value


def _whole(owner: str, number: Any, least: int) -> int:
    if not isinstance(number, (int, np.integer)) or number < least:
        raise ArgumentError(f"{owner}: expected an int of {least} at least, got {number!r}")
    return int(number)

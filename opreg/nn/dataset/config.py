"""Settings of all datasets: the seed of shuffling, and the number of worker processes.

Settings of queues and memory are stored without effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.named_errors import name_errors
from ...core.setting_reads import reads_setting
from ...errors import ArgumentError

__all__ = ["Epoch", "get_autotune_interval", "get_enable_autotune", "get_enable_shared_mem",
           "get_num_parallel_workers", "get_numa_enable", "get_prefetch_size", "get_seed", "set_autotune_interval",
           "set_enable_autotune", "set_enable_shared_mem", "set_num_parallel_workers", "set_numa_enable",
           "set_prefetch_size", "set_seed"]

#: The result of ``get_seed`` before a seed was set, as in MindSpore.
_FIRST_SEED = 5489

_chosen: dict[str, int] = {"num_parallel_workers": 8, "prefetch_size": 16, "enable_shared_mem": True,
                           "numa_enable": False, "enable_autotune": False, "autotune_interval": 0}
#: The seeded generator of row operations; empty without a seed, or before the first draw.
_streams: list[np.random.Generator] = []


def set_seed(seed: int) -> None:
    """Seed the shuffling: orders differ between epochs, and are the same in every run."""
    _chosen["seed"] = _check_integer("set_seed", seed, 0)
    _streams.clear()


@reads_setting
def get_seed() -> int:
    """The seed that was set, or the first one."""
    return _chosen.get("seed", _FIRST_SEED)


class Epoch:
    """An epoch: its number, from 0 on, and its random generator.

    Parameters
    ----------
    seed : int, optional
        Seed of its random values; by default the seed that was set, or else one drawn from NumPy's generator, which
        ``opreg.set_seed`` seeds.
    """

    def __init__(self, number: int = 0, seed: int | None = None):
        self.number, self.seed = number, seed
        self._drawn = 0

    def random(self) -> np.random.Generator:
        """A new generator for each call."""
        seed = _chosen.get("seed") if self.seed is None else self.seed
        self._drawn += 1
        return np.random.default_rng((seed, self.number, self._drawn) if seed is not None else
                                     int(np.random.randint(2 ** 31)))  # noqa: NPY002  what set_seed sets

    def inner(self, count: int, at: int) -> Epoch:
        """One of the ``count`` inner epochs of this epoch."""
        return Epoch(self.number * count + at, self.seed)


def stream() -> np.random.Generator:
    """The generator for random operations on rows: the seeded one, or one seeded from NumPy's."""
    if "seed" not in _chosen:
        return Epoch().random()
    if not _streams:
        start_stream(0)
    return _streams[0]


def start_stream(*place: int) -> None:
    """Seed the generator for one of several places that share the seed."""
    if "seed" in _chosen:
        _streams[:] = [np.random.default_rng((_chosen["seed"], *place))]


def set_num_parallel_workers(num: int) -> None:
    """Set the default number of worker processes for ``python_multiprocessing``.

    Examples
    --------
    >>> before = get_num_parallel_workers()
    >>> set_num_parallel_workers(2)
    >>> get_num_parallel_workers()
    2
    >>> set_num_parallel_workers(before)
    """
    _chosen["num_parallel_workers"] = _check_integer("set_num_parallel_workers", num, 1)


@reads_setting
def get_num_parallel_workers() -> int:
    """The number of workers that was set."""
    return _chosen["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Store the length of queues, without effect.

    Examples
    --------
    >>> before = get_prefetch_size()
    >>> set_prefetch_size(4)
    >>> get_prefetch_size()
    4
    >>> set_prefetch_size(before)
    """
    _chosen["prefetch_size"] = _check_integer("set_prefetch_size", size, 1)


@reads_setting
def get_prefetch_size() -> int:
    """The length of queues that was set."""
    return _chosen["prefetch_size"]


def set_enable_shared_mem(enable: bool) -> None:
    """Store whether processes share memory, without effect: forked processes inherit the program's memory."""
    _chosen["enable_shared_mem"] = _truth("set_enable_shared_mem", enable)


@reads_setting
def get_enable_shared_mem() -> bool:
    """The stored setting."""
    return bool(_chosen["enable_shared_mem"])


def set_numa_enable(numa_enable: bool) -> None:
    """Store whether processes are bound to NUMA nodes, without effect."""
    _chosen["numa_enable"] = _truth("set_numa_enable", numa_enable)


@reads_setting
def get_numa_enable() -> bool:
    """The stored setting."""
    return bool(_chosen["numa_enable"])


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Store whether numbers of workers are tuned, without effect."""
    _chosen["enable_autotune"] = _truth("set_enable_autotune", enable)


@reads_setting
def get_enable_autotune() -> bool:
    """The stored setting."""
    return bool(_chosen["enable_autotune"])


def set_autotune_interval(interval: int) -> None:
    """Store after how many steps numbers of workers are tuned, without effect."""
    _chosen["autotune_interval"] = _check_integer("set_autotune_interval", interval, 0)


@reads_setting
def get_autotune_interval() -> int:
    """The stored setting."""
    return _chosen["autotune_interval"]


def _truth(owner: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{owner}: expected a bool, got {value!r}")
    return value


def _check_integer(owner: str, number: Any, least: int) -> int:
    if not isinstance(number, (int, np.integer)) or number < least:
        raise ArgumentError(f"{owner}: expected an int of {least} at least, got {number!r}")
    return int(number)


name_errors(__name__, globals(), __all__)

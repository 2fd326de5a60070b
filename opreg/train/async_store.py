"""The asynchronous store ``dist_async``: a weight is updated as soon as any process pushes a gradient.

There are no servers. The weight, states and update count of a key lie in the memory of one rank, which the others
access by one-sided MPI calls: a push takes the key's lock, fetches them, applies the optimizer, and writes them back.
Ranks wait for each other only at the lock of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.nesting import arrays_in, leaves, map_arrays

from ..distributed import Window
from ..errors import ArgumentError
from .base_optimizer import Optimizer
from .dist_stores import DistKVStore
from .stores import Key, KVStore, pairs
from .updater import Updater

__all__ = ["KIND", "AsyncKVStore"]

#: The type of this store.
KIND = "dist_async"

#: Alignment of all parts, in bytes: a line of most caches, so that a lock or a count has one for itself.
_LINE = 64
#: State of an optimizer that this store can hold: arrays, or None.
_State: TypeAlias = "NDArray | tuple[_State, ...] | None"


class _Entry(NamedTuple):
    """A key: its place in the window, behind its lock, and this rank's buffers in which it is updated."""

    window: Window
    owner: int
    offset: int
    memory: np.ndarray
    updates: np.ndarray
    weight: NDArray
    state: _State

    def fetch(self) -> None:
        self.window.read(self.owner, self.offset + _LINE, self.memory)

    def fetch_weight(self) -> None:
        self.window.read(self.owner, self.offset + 2 * _LINE, self.weight._data)

    def bring(self) -> None:
        self.window.write(self.owner, self.offset + _LINE, self.memory)

    def lock(self, what: str, shared: bool = False) -> Any:
        return self.window.lock(self.owner, self.offset, what, shared)


class AsyncKVStore(DistKVStore):
    """A store of all processes in which each push immediately updates a weight by the gradient of one process.

    All ranks initialize the same keys, and set the same optimizer, together. After that each pushes, pulls and saves at
    any time. Weights lie on the host; the keys of one ``init`` are distributed over the ranks, the largest first, each
    to the rank with the least memory in use.

    Examples
    --------
    >>> import opreg as mx
    >>> store = mx.kv.create("dist_async")
    >>> store.init("w", mx.nd.ones(2))
    >>> store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5))
    >>> store.push("w", mx.nd.ones(2))
    >>> out = mx.nd.zeros(2)
    >>> store.pull("w", out=out); out.asnumpy().tolist()
    [0.5, 0.5]
    """

    def __init__(self, type: str = KIND):
        super().__init__(type)
        self._entries: dict[Key, _Entry] = {}
        self._loads = [0] * self._group.size
        self._tried = False

    def init(self, key: Any, value: Any) -> None:
        begun = [name for name, _ in pairs("init", key, value)]
        super().init(key, value)
        self._place(begun)

    # ------------------------------------------------------------------------------------------- where keys lie

    def _place(self, names: Sequence[Key]) -> None:
        """Distribute keys and their states over the ranks."""
        states = {name: self._initial_state(name, self._updater) for name in names}
        sizes = {name: 2 * _LINE + sum(map(_lines, [self._kept[name], *arrays_in(states[name])])) for name in names}
        before, where = list(self._loads), {}
        for name in sorted(names, key=lambda name: -sizes[name]):
            owner = min(range(self._group.size), key=self._loads.__getitem__)
            where[name] = owner, self._loads[owner] - before[owner]
            self._loads[owner] += sizes[name]
        window = self._group.window(self._loads[self.rank] - before[self.rank])
        for name in names:
            entry = self._entry(window, *where[name], sizes[name], self._kept[name], states[name])
            self._entries[name], self._kept[name] = entry, entry.weight
            if isinstance(self._updater, Updater):
                entry.updates[...] = self._updater.optimizer.begin_num_update
                self._updater.states[name], self._updater.states_synced[name] = entry.state, True
            if entry.owner == self.rank:
                entry.bring()
        self.barrier()

    @staticmethod
    def _entry(window: Window, owner: int, offset: int, size: int, weight: NDArray, state: _State) -> _Entry:
        """Buffers for a key, in the layout of the window: count, weight, and states."""
        memory, end = np.zeros(size - _LINE, np.uint8), _LINE

        def moved(array: NDArray) -> NDArray:
            nonlocal end
            host = array.asnumpy()
            copy = memory[end:end + host.nbytes].view(host.dtype).reshape(host.shape)
            copy[...] = host
            end += _lines(array)
            return NDArray(copy, cpu())

        return _Entry(window, owner, offset, memory, memory[:8].view(np.int64), moved(weight), map_arrays(state, moved))

    def _initial_state(self, name: Key, updater: object) -> _State:
        """The initial state of a weight in an optimizer."""
        if not isinstance(updater, Updater):
            return None
        optimizer = updater.optimizer
        state = optimizer.create_state_multi_precision(name, self._kept[name].as_in_context(cpu()))
        for part in leaves(state):
            if part is not None and not isinstance(part, NDArray):
                raise ArgumentError(f"kvstore: {type(optimizer).__name__} keeps {part!r} of the weight {name!r}; "
                                    f"stores of the kind {self.type!r} can only store arrays")
        return cast(_State, state)

    def _set_updater(self, updater: Callable[[Any, Any, Any], object]) -> None:
        """Start again from the current weights, with the states of another optimizer; all ranks call this."""
        for name in self._entries:
            self._initial_state(name, updater)  # refused before anything has changed
        self.barrier()  # after it, no rank pushes any more
        for name, entry in self._entries.items():
            entry.fetch()
            self._kept[name] = entry.weight
        for window in dict.fromkeys(entry.window for entry in self._entries.values()):
            window.free()
        super()._set_updater(updater)
        self._loads, self._tried = [0] * self._group.size, False
        if self._entries:
            self._place(list(self._entries))

    # ------------------------------------------------------------------------------------------ calls of ranks

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Push gradients: each key's weight is updated at once by the sum of this process's gradients.

        Raises
        ------
        ArgumentError
            Without an optimizer or updater, as in MXNet, and for an optimizer whose state is not only arrays.
        RankError
            When another rank has failed or ended.
        """
        if self._updater is None:
            raise ArgumentError(f"kvstore: push: a store of the kind {self.type!r} needs an optimizer; call "
                                "set_optimizer first")
        for name, total in KVStore._sum_values(self, "push", key, value).items():
            entry = self._entries[name]
            with entry.lock(f"push of {name!r}"):
                entry.fetch()
                self._apply_update(name, total, entry)
                entry.bring()

    def _apply_update(self, name: Key, total: NDArray, entry: _Entry) -> None:
        assert self._updater is not None
        if not isinstance(self._updater, Updater):
            self._updater(name, total, entry.weight)
            return
        optimizer = self._updater.optimizer
        before = None if self._tried else _settings_without_count(optimizer)
        optimizer._index_update_count[name] = int(entry.updates[0])
        self._updater(name, total, entry.weight)
        entry.updates[...] = optimizer._index_update_count[name]
        if before is not None:
            changed = [name for name, number in _settings_without_count(optimizer).items()
                       if before.get(name) != number]
            if changed:
                raise ArgumentError(f"kvstore: {type(optimizer).__name__} changes its own {', '.join(changed)} with "
                                    f"every update, and each rank would have a different value; stores of the kind "
                                    f"{self.type!r} "
                                    "are for optimizers whose states are arrays")
            self._tried = True

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the current weights into arrays: one for each key, or those of all contexts."""
        if out is None:
            raise ArgumentError("kvstore: pull: expected arrays to copy into, out=")
        for name, _ in pairs("pull", key, out):
            self._own("pull", name)
            entry = self._entries[name]
            with entry.lock(f"pull of {name!r}", shared=True):
                entry.fetch_weight()
        super().pull(key, out, priority, ignore_sparse)

    def _store(self, key: Key, value: NDArray) -> None:
        if key in self._entries:
            entry = self._entries[key]
            with entry.lock(f"a new value of {key!r}"):
                entry.fetch()
                super()._store(key, value)
                entry.bring()

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Refused: this store sends weights, not gradients.

        Raises
        ------
        ArgumentError
            Always.
        """
        raise ArgumentError(f"kvstore: in stores of the kind {self.type!r} ranks exchange exact weights, not "
                            f"gradients, so nothing can be compressed; use 'dist_sync'")

    # ------------------------------------------------------------------------------------------- states

    def _states(self) -> Updater:
        """The updater, with the current states and counts of all keys; any rank may call this."""
        updater = super()._states()
        optimizer = updater.optimizer
        for name, entry in self._entries.items():
            with entry.lock(f"states of {name!r}", shared=True):
                entry.fetch()
            count = optimizer._index_update_count[name] = int(entry.updates[0])
            optimizer.num_update = max(optimizer.num_update, count)
        return updater

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file, for all ranks; one rank calls it."""
        updater = super()._states()
        updater.read_states(fname)
        names = list(self._entries)
        weights = [self._entries[name].weight for name in names]
        read = updater._updates_with_states(names, weights, weights)  # checked before anything is changed
        counts = updater.optimizer._index_update_count
        for name, *_, state in read:
            entry = self._entries[name]
            with entry.lock(f"new states of {name!r}"):
                entry.fetch()
                entry.updates[...] = counts.get(name, updater.optimizer.begin_num_update)
                for restored, array in zip(arrays_in(entry.state), arrays_in(state)):
                    restored[:] = array
                entry.bring()
            updater.states[name] = entry.state


def _lines(array: NDArray) -> int:
    """Bytes of an array, rounded up to the alignment."""
    return -(-array.size * np.dtype(array.dtype).itemsize // _LINE) * _LINE


def _settings_without_count(optimizer: Optimizer) -> dict[str, object]:
    """Settings of an optimizer without its update count."""
    return {name: value for name, value in optimizer.settings().items() if name != "num_update"}

"""The store on which a weight moves as soon as any process pushes: ``dist_async``.

There are no servers. A key's weight, states and count of updates lie in the memory of one rank, which the others reach
by MPI's one-sided calls: who pushes takes the key's lock, fetches them, lets the optimizer move them, and brings them
back. Nobody waits for anybody but for the lock of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.sharding import leaves, mapped

from ..core.files import reading
from ..distributed import Window
from ..errors import ArgumentError
from .base_optimizer import Optimizer
from .dist_stores import DistKVStore
from .stores import Key, KVStore, pairs
from .updater import Updater

__all__ = ["KIND", "AsyncKVStore"]

#: The type of this store.
KIND = "dist_async"

#: Bytes to a multiple of which everything begins: a line of most caches, which holds a lock or a count by itself.
_LINE = 64
#: An optimizer's state of a weight that this store can hold: arrays, or nothing.
_State: TypeAlias = "NDArray | tuple[_State, ...] | None"


class _Entry(NamedTuple):
    """A key: where it lies, behind its lock, and this rank's memory for it, in which it is moved."""

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

    def locked(self, what: str, shared: bool = False) -> Any:
        return self.window.locked(self.owner, self.offset, what, shared)


class AsyncKVStore(DistKVStore):
    """A store of all processes on which each push moves a weight at once, along what one process brings.

    All ranks begin the same keys, and choose the same optimizer, together. After that each pushes, pulls and saves when
    it likes. Weights are kept on the host; the keys that are begun in one call are spread over the ranks, the largest
    first, each to the rank that has the least.

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
        """Spread keys over the ranks, with what is kept of them."""
        states = {name: self._begun(name, self._updater) for name in names}
        sizes = {name: 2 * _LINE + sum(map(_lines, [self._kept[name], *leaves(states[name])])) for name in names}
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
        """A key in memory of its own: the count, the weight, and the states, as they lie in the window."""
        memory, end = np.zeros(size - _LINE, np.uint8), _LINE

        def moved(array: NDArray) -> NDArray:
            nonlocal end
            host = array.asnumpy()
            own = memory[end:end + host.nbytes].view(host.dtype).reshape(host.shape)
            own[...] = host
            end += _lines(array)
            return NDArray(own, cpu())

        return _Entry(window, owner, offset, memory, memory[:8].view(np.int64), moved(weight), mapped(state, moved))

    def _begun(self, name: Key, updater: object) -> _State:
        """First state that an optimizer keeps of a weight."""
        if not isinstance(updater, Updater):
            return None
        optimizer = updater.optimizer
        state = optimizer.create_state_multi_precision(name, self._kept[name].as_in_context(cpu()))
        for part in _leaves(state):
            if part is not None and not isinstance(part, NDArray):
                raise ArgumentError(f"kvstore: {type(optimizer).__name__} keeps {part!r} of the weight {name!r}; "
                                    f"stores of the kind {self.type!r} keep arrays")
        return cast(_State, state)

    def _set_updater(self, updater: Callable[[Any, Any, Any], object]) -> None:
        """Begin anew with the weights that there are, and the states of another optimizer; all ranks call this."""
        for name in self._entries:
            self._begun(name, updater)  # refused before anything has changed
        self.barrier()  # nobody pushes any more
        for name, entry in self._entries.items():
            entry.fetch()
            self._kept[name] = entry.weight
        for window in dict.fromkeys(entry.window for entry in self._entries.values()):
            window.free()
        super()._set_updater(updater)
        self._loads, self._tried = [0] * self._group.size, False
        if self._entries:
            self._place(list(self._entries))

    # ------------------------------------------------------------------------------------------- what ranks do

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Bring gradients: each key's weight moves along the sum of those of this process, by itself, at once.

        Raises
        ------
        ArgumentError
            Without an optimizer or updater, as in MXNet, and for an optimizer that keeps more than arrays.
        RankError
            When another rank has failed, or is gone.
        """
        if self._updater is None:
            raise ArgumentError(f"kvstore: push: stores of the kind {self.type!r} have nothing that sums of all "
                                "processes could take the place of; set_optimizer says how a weight moves")
        for name, total in KVStore._merged(self, "push", key, value).items():
            entry = self._entries[name]
            with entry.locked(f"push of {name!r}"):
                entry.fetch()
                self._move(name, total, entry)
                entry.bring()

    def _move(self, name: Key, total: NDArray, entry: _Entry) -> None:
        assert self._updater is not None
        if not isinstance(self._updater, Updater):
            self._updater(name, total, entry.weight)
            return
        optimizer = self._updater.optimizer
        before = None if self._tried else _numbers(optimizer)
        optimizer._index_update_count[name] = int(entry.updates[0])
        self._updater(name, total, entry.weight)
        entry.updates[...] = optimizer._index_update_count[name]
        if before is not None:
            changed = [each for each, number in _numbers(optimizer).items() if before.get(each) != number]
            if changed:
                raise ArgumentError(f"kvstore: {type(optimizer).__name__} changes its own {', '.join(changed)} with "
                                    f"every update, of which ranks would know apart; stores of the kind {self.type!r} "
                                    "are for optimizers whose states are arrays")
            self._tried = True

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy weights into arrays, as they are now: one, or those of all contexts, for each key."""
        if out is None:
            raise ArgumentError("kvstore: pull: expected arrays to copy into, out=")
        for name, _ in pairs("pull", key, out):
            self._own("pull", name)
            entry = self._entries[name]
            with entry.locked(f"pull of {name!r}", shared=True):
                entry.fetch_weight()
        super().pull(key, out, priority, ignore_sparse)

    def _store(self, key: Key, value: NDArray) -> None:
        if key in self._entries:
            entry = self._entries[key]
            with entry.locked(f"a new value of {key!r}"):
                entry.fetch()
                super()._store(key, value)
                entry.bring()

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Refused: weights travel, no gradients.

        Raises
        ------
        ArgumentError
            Always.
        """
        raise ArgumentError(f"kvstore: in stores of the kind {self.type!r} weights travel, whole and exact, and no "
                            "gradients that could be compressed; 'dist_sync' compresses them")

    # ------------------------------------------------------------------------------------------- states

    def _states(self) -> Updater:
        """The updater, with the states and counts of all keys as they are now; any rank may ask."""
        updater = super()._states()
        optimizer = updater.optimizer
        for name, entry in self._entries.items():
            with entry.locked(f"states of {name!r}", shared=True):
                entry.fetch()
            count = optimizer._index_update_count[name] = int(entry.updates[0])
            optimizer.num_update = max(optimizer.num_update, count)
        return updater

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file, for all ranks: one is enough to call it."""
        with reading(fname) as file:
            content = file.read()
        updater = super()._states()
        updater.set_states(content)
        names = list(self._entries)
        weights = [self._entries[name].weight for name in names]
        read = updater._with_states(names, weights, weights)  # before anything is changed: they fit
        counts = updater.optimizer._index_update_count
        for name, *_, state in read:
            entry = self._entries[name]
            with entry.locked(f"new states of {name!r}"):
                entry.fetch()
                entry.updates[...] = counts.get(name, updater.optimizer.begin_num_update)
                for own, array in zip(leaves(entry.state), leaves(state)):
                    own[:] = array
                entry.bring()
            updater.states[name] = entry.state


def _lines(array: NDArray) -> int:
    """Bytes of an array, up to where the next may begin."""
    return -(-array.size * np.dtype(array.dtype).itemsize // _LINE) * _LINE


def _leaves(state: Any) -> list[Any]:
    if isinstance(state, (tuple, list)):
        return [leaf for part in state for leaf in _leaves(part)]
    return [state]


def _numbers(optimizer: Optimizer) -> dict[str, object]:
    """Settings of an optimizer without the count of its updates."""
    return {name: value for name, value in optimizer.settings().items() if name != "num_update"}

"""Stores shared by all processes of a program: pushed arrays are summed over all of them.

There are no servers. Each rank holds the weights and updates them by the same sums with the same optimizer, so they
stay bit-identical: MPI returns the same sums to all ranks. Settings that have to be equal are compared when a store is
created.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opreg.ndarray.ndarray import NDArray

from ..core.versions import wrote
from ..distributed import Request, world
from ..distributed.launchers import LOCAL_RANKS, number_of_launcher
from ..errors import ArgumentError
from ..typing import Array
from .base_optimizer import Optimizer
from .stores import Key, KVStore, KVStoreBase, pairs

__all__ = ["KINDS", "DistKVStore", "Horovod"]

#: Kinds of stores of all processes; in MXNet they differ in where sums are computed.
KINDS = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device")


class DistKVStore(KVStore):
    """A store of all processes: pushed arrays are summed over the contexts of each process and over all processes.

    All ranks initialize the same keys, and push and pull them in the same order. A program without a launcher is rank 0
    of 1.

    Parameters
    ----------
    type : str
        ``dist_sync``, ``dist_device_sync`` or ``dist``, which behave the same here.

    Examples
    --------
    >>> import opreg as mx
    >>> store = mx.kv.create("dist_sync")
    >>> store.rank, store.num_workers
    (0, 1)
    """

    def __init__(self, type: str = "dist_sync"):
        super().__init__(type)
        self._group = world()
        self.rank, self.num_workers = self._group.rank, self._group.size
        self._sums: dict[Key, Array] = {}

    def init(self, key: Any, value: Any) -> None:
        """Initialize a key, or several, with the values of rank 0.

        Raises
        ------
        ArgumentError
            For a key that exists already, or has another type than the others.
        RankError
            When ranks differ in keys, shapes or dtypes.
        """
        begun = [(name, arrays[0]) for name, arrays in pairs("init", key, value)]
        self._group.agree("what kvstore.init begins", "\n".join(
            f"{name!r}: {array.dtype} {array.shape}" for name, array in begun))
        super().init(key, value)
        for name, _ in begun:
            stored = self._kept[name]
            self._group.broadcast(stored._data, out=stored._data)
            wrote(stored._data)

    def _sum_values(self, what: str, key: Any, value: Any) -> dict[Key, NDArray]:
        local = super()._sum_values(what, key, value)
        if self._threshold is not None:
            return {name: NDArray(self._exchange_compressed(name, array), array.context)
                    for name, array in local.items()}
        requests = {name: self._group.iallreduce(array._data, out=self._memory(name, array))
                    for name, array in local.items()}
        return {name: NDArray(request.wait(), local[name].context) for name, request in requests.items()}

    def _memory(self, key: Key, array: NDArray) -> Array:
        """A buffer for the sum of a key, which is reused."""
        memory = self._sums.get(key)
        if memory is None or memory.dtype != array.dtype:
            memory = self._sums[key] = array.copy()._data
        return memory

    def _exchange_compressed(self, key: Key, array: NDArray) -> Array:
        """The sum over all ranks of gradients compressed to two bits for each element, in the order of ranks."""
        assert self._threshold is not None
        xp, sent = array.context.xp, self._compress(key, -1, array)._data.reshape(-1)
        codes = xp.zeros((-(-sent.size // 4), 4), "uint8")
        codes.reshape(-1)[:sent.size] = (sent > 0) + 2 * (sent < 0)
        shifts = xp.arange(0, 8, 2, dtype="uint8")
        gathered = self._group.all_gather((codes << shifts).sum(axis=1, dtype="uint8").reshape(1, -1))
        total = xp.zeros_like(sent)
        for row in gathered:
            codes = ((row[:, None] >> shifts) & 3).reshape(-1)[:sent.size]
            total += ((codes == 1).astype(total.dtype) - (codes == 2)) * self._threshold
        return total.reshape(array.shape)

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let an optimizer update stored weights by the gradients pushed by all ranks.

        Raises
        ------
        RankError
            When ranks differ in the optimizer or its settings.
        """
        numbers = {name: value for name, value in sorted(vars(optimizer).items())
                   if isinstance(value, (bool, int, float, str, type(None)))}
        self._group.agree("the optimizer", "\n".join([type(optimizer).__name__, *(
            f"{name}={value!r}" for name, value in numbers.items())]))
        super().set_optimizer(optimizer)

    def agree(self, what: str, text: str) -> None:
        """Continue if all ranks give the same text; see ``Group.agree``."""
        self._group.agree(what, text)

    def barrier(self) -> None:
        self._group.barrier()


@KVStoreBase.register
class Horovod(KVStoreBase):
    """A store that sums over all processes and stores nothing, as MXNet's for Horovod; each rank updates its own
    weights.

    Examples
    --------
    >>> import opreg as mx
    >>> store = mx.kv.create("horovod")
    >>> gradient = mx.nd.ones(2)
    >>> store.pushpull("w", gradient); gradient.asnumpy().tolist()
    [1.0, 1.0]
    """

    type = "horovod"

    def __init__(self) -> None:
        self._group = world()
        self.rank, self.num_workers = self._group.rank, self._group.size

    @property
    def local_rank(self) -> int:
        """The number of this worker on its machine, from the launcher; else its rank."""
        return number_of_launcher(LOCAL_RANKS, self.rank)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy values of rank 0 into arrays of all ranks."""
        self._each(key, value, out, "broadcast", self._group.ibroadcast)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values over all ranks, and copy the sums into arrays, by default the pushed ones."""
        self._each(key, value, value if out is None else out, "pushpull", self._group.iallreduce)

    @staticmethod
    def _each(key: Any, value: Any, out: Any, what: str, begin: Callable[[Array], Request]) -> None:
        targets = pairs(what, key, out)
        requests = []
        for name, (array, *more) in pairs(what, key, value):
            if more:
                raise ArgumentError(f"kvstore: {what}: {name!r}: expected one array, got {len(more) + 1}; a rank of "
                                    "the kind 'horovod' has one context")
            requests.append((begin(array._data), array.context))
        for (_, arrays), (request, ctx) in zip(targets, requests):
            result = NDArray(request.wait(), ctx)
            for array in arrays:
                array[:] = result

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False for all capabilities: weights are updated outside of the store."""
        return False

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Refused: the store holds no weights."""
        raise ArgumentError("kvstore: stores of the kind 'horovod' hold no weights; each rank updates them with its "
                            "own updater")

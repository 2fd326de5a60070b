"""KVStoreBase, the interface of stores of arrays by key, and KVStore, a store in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from opreg.ndarray import sparse, where, zeros_like
from opreg.ndarray.ndarray import NDArray

from ..core.files import atomic_write
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, ShapeError, did_you_mean
from .base_optimizer import Optimizer
from .updater import Updater, get_updater

__all__ = ["KVStoreBase", "KVStore", "Key", "pairs"]

K = TypeVar("K", bound="type[KVStoreBase]")
#: A key of an array: a number or a name, not both in one store.
Key = int | str


class KVStoreBase(CheckedMethods):
    """The interface of stores that modules use; derive from it for another kind, and register the class.

    Examples
    --------
    >>> import opreg as mx
    >>> @KVStoreBase.register
    ... class Echo(KVStoreBase):
    ...     type, rank, num_workers = "echo", 0, 1
    ...     def pushpull(self, key, value, out=None, priority=0):
    ...         pass
    >>> mx.kv.create("echo").type
    'echo'
    >>> _ = KVStoreBase.kv_registry.pop("echo")
    """

    #: Name of the capability to run an optimizer.
    OPTIMIZER = "optimizer"
    #: Classes by their names in lower case.
    kv_registry: ClassVar[dict[str, type[KVStoreBase]]] = {}

    type: str
    rank: int
    num_workers: int

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Initialize keys with values, and copy these into arrays."""
        raise NotImplementedError

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values, and copy the results into arrays."""
        raise NotImplementedError

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Set the optimizer that updates stored weights by pushed gradients."""
        raise NotImplementedError

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether it has a capability; ``"optimizer"`` is the only one."""
        raise NotImplementedError

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False, format: str = "npz") -> None:
        """Write the optimizer's states to a file, with ``format="mxnet"`` one that MXNet reads."""
        raise NotImplementedError

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        raise NotImplementedError

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress pushed gradients to a few bits; refused by default."""
        raise ArgumentError(f"kvstore: stores of the kind {self.type!r} do not compress gradients")

    @staticmethod
    def register(klass: K) -> K:
        """A decorator that registers a class for ``create``, by its name."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


@KVStoreBase.register
class TestStore(KVStoreBase):
    """MXNet's example of a user's store, ``"teststore"``: it stores nothing and runs no optimizer."""

    __test__ = False  # test collectors skip it
    type, rank, num_workers = "teststore", 0, 1

    def broadcast(self, key: Any, value: NDArray, out: NDArray | list[NDArray], priority: int = 0) -> None:
        """Copy a value into arrays."""
        for array in out if isinstance(out, list) else [out]:
            array[:] = value

    def pushpull(self, key: Any, value: NDArray | list[NDArray], out: NDArray | list[NDArray] | None = None,
                 priority: int = 0) -> None:
        """Sum values, and copy the sum into arrays, by default the pushed ones."""
        values = value if isinstance(value, list) else [value]
        total = sum(value.as_in_context(values[0].context) for value in values)
        for array in values if out is None else out if isinstance(out, list) else [out]:
            array[:] = total

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether it has a capability; it cannot run an optimizer."""
        if capability.lower() != KVStoreBase.OPTIMIZER:
            raise ArgumentError(f"kvstore: is_capable: {did_you_mean(capability, [KVStoreBase.OPTIMIZER])}")
        return False


class KVStore(KVStoreBase):
    """A store in one process, which sums pushed arrays.

    Parameters
    ----------
    type : str
        Its kind, ``local`` or ``device``.

    Examples
    --------
    >>> import opreg as mx
    >>> store = mx.kv.create("local")
    >>> store.init("w", mx.nd.ones(2))
    >>> store.push("w", [mx.nd.ones(2), mx.nd.ones(2)])
    >>> out = mx.nd.zeros(2)
    >>> store.pull("w", out=out); out.asnumpy().tolist()
    [2.0, 2.0]
    """

    #: The rank of this worker, and the number of workers.
    rank = 0
    num_workers = 1

    def __init__(self, type: str = "local"):
        self.type = type
        self._kept: dict[Key, NDArray] = {}
        self._updater: Callable[[Any, Any, Any], object] | None = None
        self._threshold: float | None = None
        self._residuals: dict[tuple[Key, int], NDArray] = {}

    def __repr__(self) -> str:
        return f"<KVStore {self.type} of {len(self._kept)} keys>"

    # ------------------------------------------------------------------------------------------- arrays

    def init(self, key: Any, value: Any) -> None:
        """Initialize a key, or several, with copies of values.

        Raises
        ------
        ArgumentError
            For a key that exists already, or has another type than the others.
        """
        for name, (array, *_) in pairs("init", key, value):
            if name in self._kept:
                raise ArgumentError(f"kvstore: the key {name!r} is initialized already")
            existing = next((key_before for key_before in self._kept if type(key_before) is not type(name)), None)
            if existing is not None:
                raise ArgumentError(f"kvstore: keys are numbers or names, not both: got {name!r} beside {existing!r}")
            self._kept[name] = array.copy()

    def _sum_values(self, what: str, key: Any, value: Any) -> dict[Key, NDArray]:
        """Sums of pushed arrays by key, on the device of the key's value."""
        values: dict[Key, list[NDArray]] = {}
        for name, arrays in pairs(what, key, value):
            self._own(what, name)
            values.setdefault(name, []).extend(arrays)
        merged = {}
        for name, arrays in values.items():
            stored = self._kept[name]
            for array in arrays:
                if array.shape != stored.shape:
                    raise ShapeError(f"kvstore: {what}: {name!r} has the shape {stored.shape}, got {array.shape}")
            if self._threshold is not None and len(arrays) > 1 and "device" in self.type:
                arrays = [self._compress(name, i, array) for i, array in enumerate(arrays)]
            total = arrays[0].as_in_context(stored.context)
            for array in arrays[1:]:
                total = total + array.as_in_context(stored.context)
            merged[name] = total
        return merged

    def _compress(self, key: Key, place: int, array: NDArray) -> NDArray:
        """A gradient compressed to two bits for each element; the remainder is added to the next one."""
        limit = self._threshold
        assert limit is not None
        before = self._residuals.get((key, place))
        left = array.copy() if before is None else before + array
        sent = where(left >= limit, zeros_like(left) + limit, where(left <= -limit, zeros_like(left) - limit,
                                                                    zeros_like(left)))
        self._residuals[key, place] = left - sent
        return sent

    def _own(self, what: str, key: Key) -> NDArray:
        if key not in self._kept:
            raise ArgumentError(f"kvstore: {what}: the key {key!r} was not initialized. "
                                f"{did_you_mean(str(key), map(str, self._kept))}")
        return self._kept[key]

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Push values: their sum replaces the stored value, or updates it if there is an updater.

        Parameters
        ----------
        key : int, str, or list of them
            Keys of the values; values of a repeated key are added.
        value : NDArray, list, or list of lists
            An array, or those of all contexts, for each key.
        priority : int
            Accepted without effect: the call does all the work.
        """
        merged = self._sum_values("push", key, value)
        if self._updater is None:
            for name, total in merged.items():
                self._kept[name][:] = total
        elif isinstance(self._updater, Updater):  # in one call, which is faster
            self._updater(list(merged), list(merged.values()), [self._kept[name] for name in merged])
        else:
            for name, total in merged.items():
                self._updater(name, total, self._kept[name])

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy stored values into arrays: one for each key, or those of all contexts.

        Parameters
        ----------
        key : int, str, or list of them
            Keys of the values.
        out : NDArray, list, or list of lists
            Target arrays for each key.
        priority : int
            Accepted without effect.
        ignore_sparse : bool
            Whether ``row_sparse`` arrays are skipped, as in MXNet; ``row_sparse_pull`` fills them.
        """
        if out is None:
            raise ArgumentError("kvstore: pull: expected arrays to copy into, out=")
        for name, arrays in pairs("pull", key, out):
            stored = self._own("pull", name)
            for array in arrays:
                if not (ignore_sparse and array.stype == "row_sparse"):
                    array[:] = stored

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """``push`` and ``pull``; without ``out`` the pushed arrays are overwritten."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, ignore_sparse=False)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """``init`` and ``pull``."""
        self.init(key, value)
        self.pull(key, out, priority, ignore_sparse=False)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copy rows of stored values into ``row_sparse`` arrays.

        Parameters
        ----------
        key : int, str, or list of them
            Keys of the rows.
        out : RowSparseNDArray, list, or list of lists
            Target arrays for each key.
        priority : int
            Accepted without effect.
        row_ids : NDArray, list, or list of lists
            Row numbers, in any order; one array, or one for each target.

        Raises
        ------
        ArgumentError
            Without ``out`` or ``row_ids``, or where an array is not ``row_sparse``.
        """
        if out is None or row_ids is None:
            raise ArgumentError("kvstore: row_sparse_pull: expected arrays to copy into, out=, and rows, row_ids=")
        row_lists = [rows for rows_of_key in (row_ids if isinstance(row_ids, (list, tuple)) else [row_ids])
                     for rows in (rows_of_key if isinstance(rows_of_key, (list, tuple)) else [rows_of_key])]
        targets = [(name, array) for name, arrays in pairs("row_sparse_pull", key, out) for array in arrays]
        if len(row_lists) not in (1, len(targets)):
            raise ArgumentError(f"kvstore: row_sparse_pull: {len(targets)} arrays need as many row_ids, got "
                                f"{len(row_lists)}")
        for (name, array), rows in zip(targets, row_lists * len(targets) if len(row_lists) == 1 else row_lists):
            if array.stype != "row_sparse":
                raise ArgumentError(f"kvstore: row_sparse_pull: {name!r}: expected a row_sparse array, got one of "
                                    f"storage type {array.stype!r}")
            stored = self._own("row_sparse_pull", name).tostype("row_sparse")
            array[:] = sparse.retain(stored, rows.as_in_context(stored.context))

    def _store(self, key: Key, value: NDArray) -> None:
        """Replace the value of a key, if the key exists."""
        if key in self._kept:
            self._kept[key][:] = value

    # ----------------------------------------------------------------------------------------- updating

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Set the optimizer that updates stored weights by pushed gradients."""
        self._set_updater(get_updater(optimizer))

    def set_updater(self, updater: Callable[[Any, Any, Any], object]) -> None:
        """Set a function of key, pushed value and stored value that changes the latter in place."""
        self._set_updater(updater)

    def _set_updater(self, updater: Callable[[Any, Any, Any], object]) -> None:
        self._updater = updater

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether it has a capability; it has ``"optimizer"``, the only one."""
        if capability.lower() != KVStoreBase.OPTIMIZER:
            raise ArgumentError(f"kvstore: unknown capability {capability!r}, expected 'optimizer'")
        return True

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress gradients that contexts push, or that processes send, to two bits for each element; the remainder is
        added to the next gradient.

        Parameters
        ----------
        compression_params : dict
            ``{"type": "2bit", "threshold": 0.5}``.

        Raises
        ------
        ArgumentError
            For a store of the kind local, as in MXNet, and for another type of compression.
        """
        if not ("device" in self.type or "dist" in self.type):
            raise ArgumentError(f"kvstore: gradients are compressed in stores of the kind 'device' or 'dist', this one "
                                f"is {self.type!r}")
        settings = dict(compression_params)
        kind, threshold = settings.pop("type", None), float(settings.pop("threshold", 0.5))
        if kind != "2bit" or settings or threshold <= 0:
            raise ArgumentError("kvstore: expected {'type': '2bit', 'threshold': a positive number}, got "
                                f"{dict(compression_params)!r}")
        self._threshold = threshold

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False, format: str = "npz") -> None:
        """Write the optimizer's states to a file, completely or not at all."""
        with atomic_write(fname) as file:
            file.write(self._states().get_states(dump_optimizer, format))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        self._states().read_states(fname)

    def _states(self) -> Updater:
        if not isinstance(self._updater, Updater):
            raise ArgumentError("kvstore: it has no optimizer whose states could be saved; set_optimizer gives it one")
        return self._updater

    def barrier(self) -> None:
        """Wait for all workers."""

    def _barrier(self) -> None:
        self.barrier()


def pairs(what: str, key: Any, value: Any) -> list[tuple[Key, list[NDArray]]]:
    """Keys, each with a list of arrays, from a caller's arguments: a key with one array or several, or lists of
    both."""
    keys: Sequence[Any]
    if isinstance(key, (list, tuple)):
        keys = key
        if not isinstance(value, (list, tuple)) or len(value) != len(keys):
            got = len(value) if isinstance(value, (list, tuple)) else f"one {type(value).__name__}"
            raise ArgumentError(f"kvstore: {what}: {len(keys)} keys need as many arrays, got {got}")
        values = list(value)
    else:
        keys, values = [key], [value]
    pairs = []
    for name, values_of_key in zip(keys, values):
        if not isinstance(name, (int, str)):
            raise ArgumentError(f"kvstore: {what}: a key is a number or a name, got {type(name).__name__}")
        arrays = list(values_of_key) if isinstance(values_of_key, (list, tuple)) else [values_of_key]
        for array in arrays:
            if not isinstance(array, NDArray):
                raise ArgumentError(f"kvstore: {what}: {name!r}: expected NDArrays, got {type(array).__name__}")
        if not arrays:
            raise ArgumentError(f"kvstore: {what}: {name!r}: no arrays")
        pairs.append((name, arrays))
    return pairs

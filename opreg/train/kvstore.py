"""Stores of arrays by key, which sum gradients and hold weights, with MXNet's names: ``kv.create("local")``.

``local`` and ``device`` sum gradients over a module's contexts, ``dist_sync`` and its variants over all processes; with
``dist_async`` each process updates the weights separately. A store of another kind is a class that derives from
``KVStoreBase`` and is registered; ``create`` finds it by name, and ``Module`` and ``FeedForward`` use only methods of
the base class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opreg.ndarray.ndarray import NDArray

from ..aliases import inner
from ..core import environment
from ..core.named_errors import name_errors
from ..errors import ArgumentError, did_you_mean
from .async_store import KIND as _ASYNC
from .async_store import AsyncKVStore
from .dist_stores import KINDS as _DISTRIBUTED
from .dist_stores import DistKVStore
from .stores import KVStore, KVStoreBase, TestStore
from .updater import Updater

__all__ = ["KVStoreBase", "KVStore", "TestStore", "create"]

__getattr__ = inner(__name__)

#: Kinds of stores in one process; in MXNet they differ in where sums are computed.
_KINDS = ("local", "device", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device", "nccl")
#: Prefixes of the names of stores that are not available.
_ELSEWHERE = ("dist", "byteps", "p3")
#: Largest number of elements of a weight that a store of the kind local updates; modules update larger ones.
_UPDATED_THERE = 1 << 24


def create(name: str = "local") -> KVStoreBase:
    """A store by its kind: ``local`` or ``device``, ``dist_sync``, ``dist_device_sync`` or ``dist_async``, ``horovod``,
    or a registered class, such as the example ``teststore``.

    Raises
    ------
    ArgumentError
        For an unknown kind, and for kinds that need servers.

    Examples
    --------
    >>> from opreg import nd
    >>> store, total = create("local"), nd.zeros(2)
    >>> store.init("w", nd.zeros(2))
    >>> store.push("w", [nd.ones(2), nd.ones(2)])  # one gradient for each device
    >>> store.pull("w", out=total)
    >>> total.asnumpy()
    array([2., 2.], dtype=float32)
    """
    if not isinstance(name, str):
        raise ArgumentError(f"kvstore: expected the name of a kind, got {type(name).__name__}")
    kind = name.lower()
    if kind in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[kind]()
    if kind in _KINDS:
        return KVStore(kind)
    if kind in _DISTRIBUTED:
        return DistKVStore(kind)
    if kind == _ASYNC:
        return AsyncKVStore()
    if kind.startswith(_ELSEWHERE):
        raise ArgumentError(f"kvstore {name!r} needs servers, which opreg does not have; 'dist_sync' sums over all "
                            f"processes without servers, and KVStoreBase.register adds a class of your own")
    kinds = (*_KINDS, *_DISTRIBUTED, _ASYNC)
    raise ArgumentError(f"kvstore: there is no kind {name!r}. {did_you_mean(kind, kinds)}")


# ----------------------------------------------------------------------------- helpers of training loops


def _create_kvstore(kvstore: KVStoreBase | str | None, num_device: int, arg_params: Mapping[str, NDArray]
                    ) -> tuple[KVStoreBase | None, bool]:
    """A store, or None if one device needs none, and whether the weights are updated in it, decided as in MXNet."""
    on_store = environment.switch("MXNET_UPDATE_ON_KVSTORE", True)
    store: KVStoreBase | None
    if isinstance(kvstore, str):
        alone = num_device == 1 and "dist" not in kvstore and kvstore != "horovod"
        store = None if alone else create(kvstore)
        if kvstore == "local" and not alone:
            on_store = on_store and max((array.size for array in arg_params.values()), default=0) <= _UPDATED_THERE
    elif kvstore is None or isinstance(kvstore, KVStoreBase):
        store = kvstore
    else:
        raise ArgumentError(f"kvstore: expected a KVStore, its kind or None, got {type(kvstore).__name__}")
    return store, store is not None and on_store and store.is_capable(KVStoreBase.OPTIMIZER)


def _create_sparse_kvstore(kvstore: KVStoreBase | str | None) -> tuple[KVStoreBase, bool]:
    """A store for ``row_sparse`` weights, which are updated in it."""
    if isinstance(kvstore, str):
        return create(kvstore), True
    if isinstance(kvstore, KVStoreBase):
        return kvstore, True
    raise ArgumentError(f"kvstore: expected a KVStore or its kind for row_sparse weights, got {type(kvstore).__name__}")


def _initialize_kvstore(kvstore: Any, param_arrays: Sequence[Sequence[NDArray]], arg_params: Mapping[str, NDArray],
                        param_names: Sequence[str], update_on_kvstore: bool) -> None:
    """Initialize a store with weights; if they are updated there, or by several processes, all copies get the same
    values."""
    if isinstance(kvstore, KVStore) and (update_on_kvstore or kvstore.num_workers > 1):  # in one call, which is faster
        names = list(param_names)
        kvstore.broadcast(names, [arg_params[name] for name in names], out=[list(copies) for copies in param_arrays])
        return
    for name, copies in zip(param_names, param_arrays):
        if update_on_kvstore or getattr(kvstore, "num_workers", 1) > 1:
            kvstore.broadcast(name, arg_params[name], out=list(copies))
        elif hasattr(kvstore, "init"):
            kvstore.init(name, arg_params[name])


def _trained_weights(param_arrays: Sequence[Sequence[NDArray]], grad_arrays: Sequence[Sequence[NDArray | None]]
                     ) -> list[tuple[int, list[NDArray], list[Any]]]:
    """Index, weights and gradients of the weights that have a gradient."""
    return [(i, list(weights), list(grads)) for i, (weights, grads) in enumerate(zip(param_arrays, grad_arrays))
            if grads[0] is not None]


def _pushpull(kvstore: Any, param_names: Sequence[str], trained: Sequence[tuple[int, list[NDArray], list[Any]]],
              weights_back: bool) -> None:
    """Push gradients, and pull weights, or the sums of gradients."""
    if isinstance(kvstore, KVStore) and trained:  # in one call, which is faster
        numbers, weights, grads = zip(*trained)
        kvstore.pushpull([param_names[i] for i in numbers], list(grads), list(weights) if weights_back else None)
        return
    for i, own, pushed in trained:  # stores of other classes are called as MXNet calls them
        kvstore.pushpull(param_names[i], pushed, out=own if weights_back else None, priority=-i)


def _update_params_on_kvstore(param_arrays: Sequence[Sequence[NDArray]],
                              grad_arrays: Sequence[Sequence[NDArray | None]], kvstore: Any, param_names: Sequence[str]
                              ) -> None:
    """Push gradients to a store that updates the weights, and pull the weights."""
    _pushpull(kvstore, param_names, _trained_weights(param_arrays, grad_arrays), True)


def _update_params(param_arrays: Sequence[Sequence[NDArray]], grad_arrays: Sequence[Sequence[NDArray | None]],
                   updater: Callable[[Any, Any, Any], object], num_device: int, kvstore: Any = None,
                   param_names: Sequence[str] = ()) -> None:
    """Sum gradients in a store, if there is one, and update the weights of each context."""
    trained = _trained_weights(param_arrays, grad_arrays)
    if kvstore is not None:
        _pushpull(kvstore, param_names, trained, False)
    for k in range(num_device):
        rows = [(i * num_device + k, grads[k], weights[k]) for i, weights, grads in trained]
        if rows and isinstance(updater, Updater):  # in one call, which is faster
            updater(*map(list, zip(*rows)))
        else:
            for row in rows:
                updater(*row)


name_errors(__name__, globals(), __all__)

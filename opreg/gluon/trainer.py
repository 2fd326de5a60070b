"""Trainer: an optimizer of parameters, which sums gradients over contexts and processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.update import Update

from ..core.files import atomic_write
from ..core.settings import CheckedMethods, number
from ..errors import ArgumentError
from ..train import optimizer as optimizers
from ..train.base_optimizer import Optimizer
from ..train.kvstore import _create_kvstore, _create_sparse_kvstore
from ..train.stores import KVStore, KVStoreBase
from ..train.updater import Updater, get_updater
from .base_parameter import Parameter
from .errors import BlockError, StaleGradient
from .parameter_dict import ParameterDict

__all__ = ["Trainer"]


class Trainer(CheckedMethods):
    """Updates parameters by their gradients with an optimizer.

    Parameters
    ----------
    params : ParameterDict, dict, or list of Parameter
        The parameters to train.
    optimizer : str or Optimizer
        The optimizer, or its name.
    optimizer_params : dict, optional
        Settings of an optimizer given by name.
    kvstore : str, KVStore or None
        The store that sums gradients of several contexts or processes.
    compression_params : dict, optional
        Compression of the gradients that are sent; see ``KVStore.set_gradient_compression``.
    update_on_kvstore : bool, optional
        Whether the optimizer runs in the store; by default decided as in MXNet.

    Examples
    --------
    >>> from opreg import autograd, gluon, init, nd
    >>> net = gluon.nn.Dense(1, use_bias=False, in_units=2)
    >>> net.initialize(init.One())
    >>> trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    >>> with autograd.record():
    ...     loss = net(nd.array([[1, 3]]))
    >>> loss.backward()
    >>> trainer.step(batch_size=1)
    >>> net.weight.data().asnumpy()
    array([[ 0.5, -0.5]], dtype=float32)
    """

    def __init__(self, params: Any, optimizer: str | Optimizer, optimizer_params: Mapping[str, Any] | None = None,
                 kvstore: KVStoreBase | str | None = "device", compression_params: Mapping[str, Any] | None = None,
                 update_on_kvstore: bool | None = None):
        if isinstance(params, (dict, ParameterDict)):
            params = [params[name] for name in sorted(params.keys())]
        if not isinstance(params, (list, tuple)):
            raise BlockError(f"First argument must be a list or dict of Parameters, got {type(params)}. "
                             "net.collect_params() has those of a block")
        for parameter in params:
            if not isinstance(parameter, Parameter):
                raise BlockError("First argument must be a list or dict of Parameters, got list of "
                                 f"{type(parameter)}.")
            parameter._set_trainer(self)
        self._params: list[Parameter] = list(params)
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, optimizer_params or {})
        self._scale = self._optimizer.rescale_grad
        self._compression_params, self._choice = compression_params, (kvstore, update_on_kvstore)
        self._kvstore: Any = None
        self._reset_kvstore()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_updates": {}}

    def _check_contexts(self) -> list[Context]:
        """The contexts of all parameters."""
        contexts: list[Context] | None = None
        for parameter in self._params:
            own = parameter.list_ctx()
            if contexts is not None and contexts != own:
                raise BlockError("All Parameters must be initialized on the same set of contexts, but Parameter "
                                 f"{parameter.name} is initialized on {own} while previous Parameters are initialized "
                                 f"on {contexts}.")
            contexts = own
        return contexts or []

    def _init_optimizer(self, optimizer: str | Optimizer, settings: Mapping[str, Any]) -> None:
        numbered: dict[Any, Any] = dict(enumerate(self._params))
        if isinstance(optimizer, Optimizer):
            if settings:
                raise BlockError("optimizer_params must be None if optimizer is an instance of Optimizer instead of "
                                 "str")
            self._optimizer = optimizer
            self._optimizer.param_dict = numbered
        else:
            self._optimizer = optimizers.create(optimizer, param_dict=numbered, **settings)
        self._updaters: list[Updater] = [get_updater(self._optimizer) for _ in self._contexts]
        self._updates: dict[int, Update] = {}  # updates of the last step, by the number of the context

    # --------------------------------------------------------------------------------------------- the store

    def _reset_kvstore(self) -> None:
        """Initialize the store again at the next step."""
        if self._kvstore is not None and "dist" in self._kvstore.type:
            raise BlockError("Cannot reset distributed KVStore.")
        self._kvstore, self._kv_initialized, self._distributed = None, False, False
        self._update_on_kvstore: bool | None = None
        self._params_to_init = list(self._params)

    def _values_set(self, parameter: Parameter) -> None:
        """Note that a parameter was set: a store that holds it is initialized again with the new values."""
        if self._kv_initialized and self._update_on_kvstore and parameter not in self._params_to_init:
            self._reset_kvstore()

    def _init_kvstore(self) -> None:
        chosen, on_store = self._choice
        sparse_weight = any(parameter._stype != "default" for parameter in self._params)
        sparse_grad = any(parameter._grad_stype != "default" for parameter in self._params)
        store: KVStoreBase | None
        if sparse_weight:
            store, update = _create_sparse_kvstore(chosen)
        else:
            arrays = {parameter.name: parameter.data(self._contexts[0]) for parameter in self._params}
            store, update = _create_kvstore(chosen, len(self._contexts), arrays)
        self._distributed = store is not None and "dist" in store.type
        if sparse_grad and not sparse_weight:  # a store of one process returns sums of sparse rows, so updates run here
            if store is not None and not isinstance(store, KVStore):
                raise BlockError(f"Cannot use {type(store)} for multi-device training with sparse gradients")
            update = self._distributed
        mode = "when sparse weights are present" if sparse_weight else \
            "on dist kvstore when sparse gradients are present" if sparse_grad and self._distributed else ""
        if mode and on_store is False:
            raise BlockError(f"Cannot set update_on_kvstore=False {mode}.")
        if store is not None and self._distributed and "async" in store.type:
            update = True
            if on_store is False:
                raise BlockError("Please set update_on_kvstore=True when training in async mode.")
        if on_store is not None:
            update = on_store
        if update and store is not None and not store.is_capable(KVStoreBase.OPTIMIZER):
            if on_store:
                raise BlockError(f"Please set update_on_kvstore=False when training with {type(store)}")
            update = False
        if store is not None:
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            if update:
                store.set_optimizer(self._optimizer)
        self._kvstore, self._update_on_kvstore = store, None if store is None else update
        self._kv_initialized = True

    def _init_params(self) -> None:
        """Initialize the store with the parameters that have arrays."""
        waiting = []
        for parameter in self._params_to_init if self._kvstore is not None else ():
            if parameter._deferred_init:
                waiting.append(parameter)
            else:
                arrays = parameter.list_data()
                self._kvstore.broadcast(self._params.index(parameter), arrays[0], arrays)
        self._params_to_init = waiting

    def _ready(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    # --------------------------------------------------------------------------------------------- settings

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The current learning rate, from the schedule if there is one."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate.

        Raises
        ------
        UserWarning
            When a schedule sets the learning rate.
        """
        self._optimizer.set_learning_rate(lr)

    # ------------------------------------------------------------------------------------------------- steps

    def _check_and_rescale_grad(self, method: str, batch_size: float) -> None:
        if not number(f"Trainer.{method}: batch_size", batch_size):
            raise ArgumentError(f"Trainer.{method}: batch_size=0: gradients are divided by it")
        scale = self._scale / batch_size
        if self._update_on_kvstore and self._distributed and self._kv_initialized \
                and self._optimizer.rescale_grad != scale:
            raise UserWarning("the batch size changed, but the optimizer in the distributed store still uses that of "
                              "the first step. Set update_on_kvstore=False")
        self._optimizer.rescale_grad = scale

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Sum the gradients over contexts and processes, and update the parameters.

        Parameters
        ----------
        batch_size : int
            Number by which gradients are divided.
        ignore_stale_grad : bool
            Whether to skip parameters whose gradients no backward pass has written since the last step; otherwise they
            raise an error.

        Raises
        ------
        StaleGradient
            For such a gradient; it is a ``UserWarning``, as in MXNet.
        ArgumentError
            When ``batch_size`` is zero, or no number.
        """
        self._check_and_rescale_grad("step", batch_size)
        self._ready()
        self._allreduce_grads()
        self._update(ignore_stale_grad)

    def allreduce_grads(self) -> None:
        """Sum the gradients over contexts and processes; ``update`` then updates the parameters.

        Raises
        ------
        BlockError
            When the optimizer runs in the store.
        """
        self._ready()
        self._refuse_in_store("allreduce_grads()")
        self._allreduce_grads()

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update the parameters by summed gradients; see ``step``."""
        self._ready()
        self._refuse_in_store("update()")
        self._check_and_rescale_grad("update", batch_size)
        self._update(ignore_stale_grad)

    def _refuse_in_store(self, method: str) -> None:
        if self._update_on_kvstore:
            raise BlockError(f"{method} when parameters are updated on kvstore is not supported. Try setting "
                             "`update_on_kvstore` to False when creating trainer.")

    def _trained_parameters(self) -> list[tuple[int, Parameter]]:
        return [(i, parameter) for i, parameter in enumerate(self._params) if parameter.grad_req != "null"]

    def _allreduce_grads(self) -> None:
        if self._kvstore is None:
            return
        for i, parameter in self._trained_parameters():
            gradients = parameter.list_grad()
            self._kvstore.pushpull(i, gradients, out=parameter.list_data() if self._update_on_kvstore else gradients,
                                   priority=-i)

    def _update(self, ignore_stale_grad: bool = False) -> None:
        scaler = getattr(self, "_amp_loss_scaler", None)
        if scaler is not None and scaler.has_overflow(self._params):
            return
        trained = self._trained_parameters()
        columns = [parameter._data or parameter.list_data() for _, parameter in trained]
        fresh = [[arrays[k]._fresh_grad for arrays in columns] for k in range(len(self._contexts))]
        if not ignore_stale_grad and not all(map(all, fresh)):
            for (_, parameter), arrays in zip(trained, columns):
                for array in arrays:
                    if not array._fresh_grad:
                        raise StaleGradient(
                            f"Gradient of Parameter `{parameter.name}` on context {array.context} has not been updated "
                            "by backward since last `step`: the loss does not depend on it. If that is intended, "
                            "call step with ignore_stale_grad=True")
        if self._update_on_kvstore:
            return
        gradients = [parameter._grad or parameter.list_grad() for _, parameter in trained]
        for k, ctx in enumerate(self._contexts):
            used = [i for i, is_fresh in enumerate(fresh[k]) if is_fresh]
            if used:
                weights = [columns[i][k] for i in used]
                for array in weights:
                    array._fresh_grad = False
                self._run_update(k, ctx, [trained[i][0] for i in used], weights, [gradients[i][k] for i in used])

    def _run_update(self, k: int, ctx: Context, numbers: list[int], weights: list[NDArray], gradients: list[NDArray]
                    ) -> None:
        """Update weights on one context. The gradients of the previous step have prepared steps with their arrays."""
        update, updater = self._updates.get(k), self._updaters[k]
        if update is not None and update.updates(updater, numbers, [*weights, *gradients]):
            update.run(ctx)
            return
        names = [self._params[i].name for i in numbers]
        self._updates[k] = Update(updater, names, numbers, weights, gradients, None)
        self._updates[k].update_all()

    # ------------------------------------------------------------------------------------------------ states

    def save_states(self, fname: str | os.PathLike[str], format: str = "npz") -> None:
        """Write the optimizer's states and settings to a file, with ``format="mxnet"`` one that MXNet reads."""
        self._ready()
        if self._update_on_kvstore:
            if self._params_to_init:
                raise BlockError("Cannot save trainer states when some parameters are not yet initialized in kvstore.")
            other: dict[str, Any] = {} if format == "npz" else {"format": format}  # a user's store may have no formats
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True, **other)
            return
        with atomic_write(fname) as file:
            file.write(self._updaters[0].get_states(dump_optimizer=True, format=format))

    def load_states(self, fname: str | os.PathLike[str]) -> None:
        """Read the optimizer's states and settings from a file."""
        self._ready()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            self._optimizer = self._kvstore._updater.optimizer
        else:
            for updater in self._updaters:
                updater.read_states(fname)
        self._optimizer.param_dict = dict(enumerate(self._params))

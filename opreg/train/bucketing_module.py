"""BucketingModule: one set of weights shared by symbols that differ by a key, such as the length of sequences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import NDArray, array
from opreg.symbol import load as load_symbol
from opreg.symbol.naming import NameManager
from opreg.symbol.symbol import Symbol

from ..core.files import atomic_writes
from ..core.spec import Shape
from ..data.batches import DataDesc, Descriptions
from ..errors import ArgumentError, FileFormatError, warn
from .base_module import SMALL, BaseModule, GradReq, Logger, Settings, Store, Weights
from .base_optimizer import Optimizer
from .checkpoint import load_params
from .initializer import InitializerLike
from .metric import EvalMetric
from .parts import Groups
from .symbol_module import Module

if TYPE_CHECKING:
    from .monitor import Monitor

__all__ = ["BucketingModule"]

#: A function of a key that returns the symbol, and the names of its data and of its labels.
SymbolMaker: TypeAlias = Callable[[Any], tuple[Symbol, Sequence[str] | None, Sequence[str] | None]]


class BucketingModule(BaseModule):
    """One set of weights shared by symbols that differ by a key, such as the length of sequences.

    Parameters
    ----------
    sym_gen : function of a key
        Returns symbol, data names and label names. Automatic names are counted from the start for each key, so layers
        made in the same order share weights.
    default_bucket_key
        The key of the symbol that has all weights.
    context, work_load_list, fixed_param_names, state_names, group2ctxs
        See ``Module``.

    Notes
    -----
    Copies and pickles hold the module of the default key; modules of other keys are made when they are needed.

    Examples
    --------
    >>> import opreg as mx
    >>> def make(length):
    ...     net = mx.sym.FullyConnected(mx.sym.mean(mx.sym.var("data"), axis=1), num_hidden=2)
    ...     return mx.sym.SoftmaxOutput(net, name="softmax"), ["data"], ["softmax_label"]
    >>> module = BucketingModule(make, default_bucket_key=6)
    >>> module.bind([("data", (4, 6, 3))], [("softmax_label", (4,))])
    >>> module.init_params()
    >>> module.switch_bucket(3, [("data", (4, 3, 3))], [("softmax_label", (4,))])
    >>> sorted(module.get_params()[0])
    ['fullyconnected0_bias', 'fullyconnected0_weight']
    """

    def __init__(self, sym_gen: SymbolMaker, default_bucket_key: Any = None, logger: Logger = logging,
                 context: Context | Sequence[Context] | None = None, work_load_list: Sequence[float] | None = None,
                 fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None,
                 group2ctxs: Groups = None, compression_params: Mapping[str, Any] | None = None):
        super().__init__(logger)
        if default_bucket_key is None:
            raise ArgumentError("BucketingModule: default_bucket_key is needed")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._settings: dict[str, Any] = dict(context=context, work_load_list=work_load_list,
                                              fixed_param_names=fixed_param_names, state_names=state_names,
                                              group2ctxs=group2ctxs, compression_params=compression_params)
        self._loaded: dict[Hashable, Symbol] = {}  # symbols of keys, read from files
        self._preset: tuple[dict[str, NDArray], dict[str, NDArray]] = {}, {}
        self._buckets: dict[Hashable, Module] = {}
        self._curr_bucket_key = default_bucket_key
        self._curr_module = self._make(default_bucket_key)
        self._monitor: Monitor | None = None
        self._bound: dict[str, Any] = {}

    def _make(self, key: Hashable) -> Module:
        with NameManager():
            symbol, data_names, label_names = self._sym_gen(key)
        return Module(self._loaded.get(key, symbol), data_names, label_names, self.logger, **self._settings)

    # ------------------------------------------------------------------------------------------- files

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Write the weights, the used keys, which are numbers, and the symbol of each: all files, or none."""
        self._needs("binded", "params_initialized")
        for key in self._buckets:
            if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
                raise ArgumentError(f"save_checkpoint: expected bucket keys that are integers, got {key!r}")
        with atomic_writes():
            self.save_params(f"{prefix}-{epoch:04d}.params")
            for key, module in self._buckets.items():
                module.symbol.save(f"{prefix}-{key}-symbol.json")
            save(f"{prefix}.buckets", array(list(self._buckets), dtype="int32"))

    @staticmethod
    def load(prefix: str, epoch: int, sym_gen: SymbolMaker | None = None, default_bucket_key: Any = None,
             **kwargs: Any) -> BucketingModule:
        """A module from files of ``save_checkpoint``; its weights are set when it is bound.

        Parameters
        ----------
        prefix, epoch
            Prefix and epoch of the checkpoint.
        sym_gen, default_bucket_key, **kwargs
            Arguments of the constructor; symbols of saved keys are read from their files.
        """
        arrays = load(f"{prefix}.buckets")
        if not isinstance(arrays, list) or len(arrays) != 1 or arrays[0].ndim != 1:
            raise FileFormatError(f"{prefix}.buckets: expected one array of keys")
        keys = arrays[0].asnumpy().astype("int32").tolist()
        symbols = {key: load_symbol(f"{prefix}-{key}-symbol.json") for key in keys}
        return BucketingModule.load_dict(symbols, sym_gen, default_bucket_key, *load_params(prefix, epoch), **kwargs)

    @staticmethod
    def load_dict(sym_dict: Mapping[Any, Symbol] | None = None, sym_gen: SymbolMaker | None = None,
                  default_bucket_key: Any = None, arg_params: Weights = None, aux_params: Weights = None,
                  **kwargs: Any) -> BucketingModule:
        """A module from symbols by key, and weights."""
        needed: dict[str, object] = dict(sym_dict=sym_dict, sym_gen=sym_gen, arg_params=arg_params,
                                         aux_params=aux_params)
        for name, value in needed.items():
            if value is None:
                raise ArgumentError(f"BucketingModule: {name} is needed")
        assert sym_dict is not None and sym_gen is not None and arg_params is not None and aux_params is not None
        module = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        module._loaded, module._preset = dict(sym_dict), (dict(arg_params), dict(aux_params))
        module._curr_module = module._make(default_bucket_key)
        module.params_initialized = True
        return module

    # ------------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__(), _monitor=None, _curr_bucket_key=self._default_bucket_key)
        if self.binded:
            default = self._buckets[self._default_bucket_key]
            state.update(_buckets={self._default_bucket_key: default}, _curr_module=default)
        return state

    # --------------------------------------------------------------------------------------- questions

    @property
    def symbol(self) -> Symbol:
        """The symbol of the current key."""
        return self._curr_module.symbol

    @property
    def data_names(self) -> list[str]:  # type: ignore[override]
        """Names of the inputs."""
        return self._curr_module.data_names

    @property
    def output_names(self) -> list[str]:  # type: ignore[override]
        """Names of the outputs."""
        return self._curr_module.output_names

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]
        """Descriptions of the inputs of the current key."""
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the labels of the current key."""
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, Shape]]:  # type: ignore[override]
        """Pairs of name and shape of the current key."""
        return self._curr_module.output_shapes

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: GradReq = "write") -> None:
        """Make arrays and plans of the default key; those of other keys are made at their first batch."""
        if self._stays_bound(force_rebind):
            return
        if shared_module is not None:
            raise ArgumentError("BucketingModule: shared_module is for Module only")
        before = self.get_params() if self.params_initialized else None
        module = self._make(self._default_bucket_key)
        self._bound = dict(for_training=for_training, inputs_need_grad=inputs_need_grad, grad_req=grad_req)
        module.bind(data_shapes, label_shapes, **self._bound)
        self._buckets, self._curr_bucket_key, self._curr_module = {self._default_bucket_key: module}, \
            self._default_bucket_key, module
        self.for_training, self.inputs_need_grad, self.binded = for_training, inputs_need_grad, True
        if before is not None:
            self.params_initialized = False
            self.set_params(*before)
            self._preset = {}, {}

    def switch_bucket(self, bucket_key: Hashable, data_shapes: Descriptions, label_shapes: Descriptions | None = None
                      ) -> None:
        """Switch to a key; its module is made at its first use."""
        self._needs("binded")
        default = self._buckets[self._default_bucket_key]
        if bucket_key not in self._buckets:
            module = self._make(bucket_key)
            for name in module._param_names:
                if name not in default._exec_group.execs[0].arg_dict:
                    raise ArgumentError(f"BucketingModule: the symbol of key {bucket_key!r} has a weight {name!r} that "
                                        f"the one of the default key {self._default_bucket_key!r} has not")
            module.bind(data_shapes, label_shapes, shared_module=default, **self._bound)
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_bucket_key, self._curr_module = bucket_key, self._buckets[bucket_key]
        self._curr_module.params_initialized = self.params_initialized
        if self.optimizer_initialized and not self._curr_module.optimizer_initialized:
            self._curr_module.borrow_optimizer(default)

    def prepare(self, data_batch: Any, sparse_row_id_fn: object = None) -> None:
        """Switch to the key of a batch."""
        key = getattr(data_batch, "bucket_key", None)
        if key is not None:
            self.switch_bucket(key, data_batch.provide_data, data_batch.provide_label)

    def _mark_initialized(self) -> None:
        """Say of all keys that their weights, which they share, are set."""
        self.params_initialized = True
        for module in self._buckets.values():
            module.params_initialized = True

    def init_params(self, initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Set the weights; see ``Module.init_params``."""
        if self.params_initialized and not force_init:
            warn("the weights are set already, init_params leaves them; force_init=True sets them again")
            return
        self._needs("binded")
        self._buckets[self._default_bucket_key].init_params(initializer, arg_params, aux_params, allow_missing,
                                                            force_init, allow_extra)
        self._mark_initialized()

    def set_params(self, arg_params: Weights, aux_params: Weights, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Set the weights; see ``Module.set_params``."""
        self._needs("binded")
        default = self._buckets[self._default_bucket_key]
        default.params_initialized = self.params_initialized
        default.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self._mark_initialized()

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states, on the host."""
        self._needs("params_initialized")
        return self._buckets[self._default_bucket_key].get_params() if self.binded else self._preset

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The arguments named by ``state_names``."""
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states: Sequence[NDArray | Sequence[NDArray]] | None = None, value: float | None = None
                   ) -> None:
        """Set the arguments named by ``state_names``; see ``Module.set_states``."""
        self._curr_module.set_states(states, value)

    def init_optimizer(self, kvstore: Store = "local", optimizer: str | Optimizer = "sgd",
                       optimizer_params: Settings = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Set the optimizer; see ``Module.init_optimizer``."""
        default = self._buckets[self._default_bucket_key]
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch of any key."""
        self.prepare(data_batch)
        self._curr_module.forward(data_batch, is_train)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients."""
        self._curr_module.backward(out_grads)

    def update(self) -> None:
        """Update the weights by the gradients of the last backward."""
        self._needs("binded", "params_initialized", "optimizer_initialized")
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward."""
        return self._curr_module.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs."""
        return self._curr_module.get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric."""
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a monitor, also in modules of future keys."""
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

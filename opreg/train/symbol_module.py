"""Module: a symbol, its weights and an optimizer.

Over several contexts a batch is divided, each context works on its part, and the gradients are summed. The weights are
updated on the first context and copied to the others.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.context import Context, cpu
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.reduction import Reduction

from ..core.files import atomic_write, atomic_writes
from ..core.states import beginnings
from ..data.batches import DataDesc, Descriptions
from ..distributed import world
from ..errors import ArgumentError, ShapeError, did_you_mean, refuse_misspelt, warn
from . import optimizer as optimizers
from . import parts
from .base_module import SMALL, BaseModule, GradReq, Logger, Settings, Store, Weights
from .base_optimizer import Optimizer
from .checkpoint import load_checkpoint, tell_saved, write
from .dist_stores import DistKVStore
from .executor_group import DataParallelExecutorGroup, describe
from .initializer import Fill, InitDesc, Initializer, InitializerLike, create
from .kvstore import (
    KVStore,
    KVStoreBase,
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
)
from .metric import EvalMetric

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor
    from opreg.symbol.symbol import Symbol

    from .monitor import Monitor

__all__ = ["Module"]

class Module(BaseModule):
    """A symbol with its weights, which can be trained.

    Parameters
    ----------
    symbol : Symbol
        The network.
    data_names, label_names : sequence of str or None
        Arguments that are part of each batch; all others are weights.
    logger : logging module or logger
        Logger of ``fit``.
    context : Context or list of Context
        The devices; several divide a batch along the axis N of ``DataDesc.layout``.
    work_load_list : list of float or None
        Relative size of each context's part of a batch; equal by default.
    fixed_param_names : sequence of str or None
        Weights that are not trained.
    state_names : sequence of str or None
        Arguments that are neither, such as initial states; they are zeros until ``set_states``.
    group2ctxs : dict of str to Context or list of Context, list of dict, or None
        Contexts of the nodes of each ``ctx_group``; a list has an entry for each context of the module.

    Notes
    -----
    Copies and pickles of a module hold its weights, its optimizer and its binding, which is repeated. They do not hold
    monitors and results.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    >>> module = Module(mx.sym.LinearRegressionOutput(net, mx.sym.var("y")), label_names=["y"])
    >>> batches = mx.io.NDArrayIter(mx.nd.array([[0], [1], [2], [3]]), mx.nd.array([1, 3, 5, 7]), 4, label_name="y")
    >>> module.fit(batches, eval_metric="mse", num_epoch=300, optimizer_params={"learning_rate": 0.3})
    >>> [round(value, 2) for value in module.predict(batches).asnumpy().ravel().tolist()]
    [1.0, 3.0, 5.0, 7.0]
    """

    def __init__(self, symbol: Symbol, data_names: Sequence[str] | None = ("data",),
                 label_names: Sequence[str] | None = ("softmax_label",), logger: Logger = logging,
                 context: Context | Sequence[Context] | None = None, work_load_list: Sequence[float] | None = None,
                 fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None,
                 group2ctxs: parts.Groups = None, compression_params: Mapping[str, Any] | None = None):
        super().__init__(logger)
        context = cpu() if context is None else context
        self._context: list[Any] = list(context) if isinstance(context, (list, tuple)) else [context]
        for ctx in self._context:
            if not isinstance(ctx, Context):
                raise ArgumentError(f"Module: expected a context, got {ctx!r}")
        self._work_load_list = [1] * len(self._context) if work_load_list is None else list(work_load_list)
        if len(self._work_load_list) != len(self._context):
            raise ArgumentError(f"Module: work_load_list has {len(self._work_load_list)} entries, expected "
                                f"{len(self._context)}, one for each context")
        parts.places(group2ctxs, len(self._context))  # an error is found here, not at bind
        self._symbol, self._group2ctxs = symbol, group2ctxs
        arguments = symbol.list_arguments()
        self.data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._data_names = self.data_names
        self._state_names, self._fixed_param_names = list(state_names or ()), list(fixed_param_names or ())
        for what, names in (("data_names", self.data_names), ("state_names", self._state_names),
                            ("fixed_param_names", self._fixed_param_names)):
            for name in names:
                if name not in arguments:
                    raise ArgumentError(f"Module: {what}: the symbol has no argument {name!r}. "
                                        f"{did_you_mean(name, arguments)}")
        for name in self._label_names:
            if name not in arguments:
                logger.warning("Module: label_names: the symbol has no argument %r", name)
        # a label that the symbol lacks is still passed to metrics
        inputs = {*self.data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        # The optimizer identifies weights by these indices.
        self._numbers = {name: i for i, name in enumerate(self._param_names)}
        self._aux_names = symbol.list_auxiliary_states()
        self.output_names = self._output_names = symbol.list_outputs()
        self._output_axes = [DataDesc.get_batch_axis(symbol[i].attr("__layout__"))
                             for i in range(len(self.output_names))]
        self._exec_group: DataParallelExecutorGroup  # set by bind
        self._preset: tuple[dict[str, NDArray], dict[str, NDArray]] | None = None
        self._preload_opt_states: str | None = None
        self._unlabelled = False  # whether missing labels of a training batch were reported
        self._optimizer: Any = None
        self._updater: Any = None
        self._compression_params = compression_params
        self._kvstore: KVStoreBase | None = None  # a store given by the caller
        self._update_on_kvstore = False
        self._reduction: Reduction | None = None  # over all ranks, for a store given by name

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module from a checkpoint; its weights are set when it is bound.

        Parameters
        ----------
        prefix, epoch
            See ``load_checkpoint``.
        load_optimizer_states : bool
            Whether ``init_optimizer`` reads the optimizer's states, too.
        **kwargs
            Arguments of the constructor.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._preset, module.params_initialized = (arg_params, aux_params), True
        if load_optimizer_states:
            module._preload_opt_states = f"{prefix}-{epoch:04d}.states"
        return module

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False,
                        remove_amp_cast: bool = True) -> None:
        """Write symbol and weights, and on request the optimizer's states to ``prefix-0001.states``: all files, or
        none."""
        states = f"{prefix}-{epoch:04d}.states"
        with atomic_writes():
            write(prefix, epoch, self.symbol, *self.get_params(), remove_amp_cast)
            if save_optimizer_states:
                self.save_optimizer_states(states)
        tell_saved("checkpoint", f"{prefix}-{epoch:04d}.params")
        if save_optimizer_states:
            tell_saved("optimizer state", states)

    # ------------------------------------------------------------------------------------ questions

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]
        """Descriptions of the bound inputs."""
        self._needs("binded")
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the bound labels, or None."""
        self._needs("binded")
        return self._label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:  # type: ignore[override]
        """Pairs of name and shape."""
        self._needs("binded")
        shapes = {desc.name: desc.shape for desc in self._data_shapes + self._label_shapes}
        input_shapes = {name: shape for name, shape in shapes.items() if name in self._symbol.list_arguments()}
        return list(zip(self.output_names, self._symbol.infer_shape(**input_shapes)[1]))

    # Attributes of a module that programs of MXNet read.

    #: Whether ``_arg_params`` is out of date; never, since it reads the weights.
    _params_dirty = False

    def _sync_params_from_devices(self) -> None:
        """Do nothing: ``_arg_params`` reads the weights."""

    @property
    def _arg_params(self) -> dict[str, NDArray] | None:
        """Copies of the weights, or the initial ones; None without any. They may be set before binding, together with
        ``params_initialized``."""
        return self.get_params()[0] if self.params_initialized else None

    @_arg_params.setter
    def _arg_params(self, params: Mapping[str, NDArray]) -> None:
        self._store_arrays(params, {})

    @property
    def _aux_params(self) -> dict[str, NDArray] | None:
        """Copies of the auxiliary states, or the initial ones; see ``_arg_params``."""
        return self.get_params()[1] if self.params_initialized else None

    @_aux_params.setter
    def _aux_params(self, params: Mapping[str, NDArray]) -> None:
        self._store_arrays({}, params)

    def _store_arrays(self, args: Mapping[str, NDArray], aux: Mapping[str, NDArray]) -> None:
        """Store given weights or states, in the executors or until binding."""
        if self.binded:
            self._exec_group.set_params(args, aux, allow_extra=True)
        else:
            before = self._preset or ({}, {})
            self._preset = {**before[0], **args}, {**before[1], **aux}

    @property
    def _total_exec_bytes(self) -> int:
        return self._exec_group._total_exec_bytes

    # ------------------------------------------------------------------------------------- binding

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Module | None = None,
             grad_req: GradReq = "write") -> None:
        """Make arrays and plans for inputs of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or of pairs
            Names and shapes of the arrays of a batch.
        for_training : bool
            Whether gradients are computed.
        inputs_need_grad : bool
            Whether gradients of the inputs are computed, too.
        force_rebind : bool
            Whether to repeat it if it was done already.
        shared_module : Module
            A module whose weights are shared.
        grad_req : str, list or dict
            Gradient requests of the weights; see ``Symbol.bind``.
        """
        if self._stays_bound(force_rebind):
            return
        if inputs_need_grad and not for_training:
            raise ArgumentError("bind: inputs_need_grad=True needs for_training=True")
        before = self.get_params() if self.binded and self.params_initialized else self._preset
        self._data_shapes, self._label_shapes = self._check_shapes(data_shapes, label_shapes)
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._make_executors(shared_module)
        self.binded = True
        if shared_module is not None:
            self.params_initialized = shared_module.params_initialized
            if shared_module.optimizer_initialized:
                self.borrow_optimizer(shared_module)
        elif before is not None and self.params_initialized:
            self.set_params(*before)
            self._preset = None

    def _make_executors(self, shared_module: Module | None = None) -> None:
        self._exec_group = DataParallelExecutorGroup(
            self._symbol, self._context, self._work_load_list, self._data_shapes, self._label_shapes, self._param_names,
            self.for_training, self.inputs_need_grad, None if shared_module is None else shared_module._exec_group,
            self.logger, self._fixed_param_names, self._grad_req, self._state_names, self._group2ctxs)
        if self._reduction is not None and self.for_training:
            self._exec_group.reduce(self._reduction)

    def _check_shapes(self, data_shapes: Descriptions, label_shapes: Descriptions | None
                      ) -> tuple[list[DataDesc], list[DataDesc]]:
        data, labels = describe("data_shapes", data_shapes), describe("label_shapes", label_shapes)
        if sorted(desc.name for desc in data) != sorted(self.data_names):
            raise ArgumentError(f"bind: the inputs are {', '.join(self.data_names)}; got shapes of "
                                f"{', '.join(desc.name for desc in data) or 'nothing'}. Module(data_names=...) names "
                                "them")
        if labels and sorted(desc.name for desc in labels) != sorted(self._label_names):
            text = (f"bind: the labels are {', '.join(self._label_names) or 'none'}; got shapes of "
                    f"{', '.join(desc.name for desc in labels)}. Module(label_names=...) names them")
            if {*self._label_names, *(desc.name for desc in labels)} & set(self._symbol.list_arguments()):
                raise ArgumentError(text)
            self.logger.warning(text)  # only metrics read these labels, so this is no error
        return data, labels

    def reshape(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None) -> None:
        """Switch to inputs of other shapes; the weights are kept.

        Raises
        ------
        ShapeError
            When a weight would have another shape.
        """
        self._needs("binded")
        data, labels = self._check_shapes(data_shapes, label_shapes)
        self._exec_group.reshape(data, labels)
        self._data_shapes, self._label_shapes = data, labels

    # -------------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name != "_exec_group"}
        if self.binded:
            state["_preset"] = self.get_params() if self.params_initialized else None
            state["_held_states"] = self.get_states(merge_multi_context=False)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        states = state.pop("_held_states", None)
        super().__setstate__(state)
        if self.binded:
            self._make_executors()
            if self.params_initialized and self._preset is not None:
                self.set_params(*self._preset)
                self._preset = None
            if states:
                self.set_states(states)

    # ------------------------------------------------------------------------------------- weights

    def init_params(self, initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Initialize the weights.

        Parameters
        ----------
        initializer : Initializer, str or None
            For weights that are not given; uniform values up to 0.01 by default. Weights with their own initializer,
            ``sym.var(init=...)``, need none.
        arg_params, aux_params : dict of str to NDArray
            Initial values.
        allow_missing : bool
            Whether weights may be missing; they are initialized.
        force_init : bool
            Whether to repeat it if it was done already.
        allow_extra : bool
            Whether to ignore names that the network lacks without a warning.

        Raises
        ------
        ArgumentError
            A weight is missing. If a given name is near the missing one, the error names both.
        """
        if self.params_initialized and not force_init:
            warn("the weights are set already, init_params leaves them; force_init=True sets them again")
            return
        self._needs("binded")
        fill: Fill | None = None if initializer is None else create(initializer)
        first, attrs, states = self._exec_group.execs[0], self._symbol.attr_dict(), beginnings(self._symbol._graph())
        attrs = {**attrs, **{name: {**attrs.get(name, {}), "__init__": text} for name, text in states.items()}}
        todo: list[tuple[NDArray, NDArray | InitDesc]] = []  # writes happen after all checks
        for what, arrays, names, params in (("weight", first.arg_dict, self._param_names, arg_params),
                                            ("auxiliary state", first.aux_dict, self._aux_names, aux_params)):
            if not allow_extra:
                given = [name for name in params or () if name in names or name not in arrays]
                refuse_misspelt("init_params", given, names, may_miss=allow_missing)
            for name in names:
                if params is not None and name in params:
                    if params[name].shape != arrays[name].shape:
                        raise ShapeError(f"init_params: {name} has shape {params[name].shape}, expected "
                                         f"{arrays[name].shape}")
                    todo.append((arrays[name], params[name]))
                elif params is not None and not allow_missing:
                    raise ArgumentError(f"init_params: the {what} {name!r} is not given; allow_missing=True "
                                        f"{'leaves it as it is' if fill is None else 'has it initialized'}")
                elif fill is not None or (params is None and "__init__" in attrs.get(name, ())):
                    desc = InitDesc(name, attrs.get(name), fill)
                    desc.is_state = names is self._aux_names
                    todo.append((arrays[name], desc))
                elif params is None:
                    raise ArgumentError(f"init_params: the {what} {name!r} is not given, and there is no initializer")
        for array, source in todo:
            if isinstance(source, InitDesc):
                (fill or Initializer())(source, array)
            else:
                array._store(Ellipsis, source)
        self._spread()
        if self._update_on_kvstore and isinstance(self._kvstore, KVStore):
            for name in self._param_names:
                self._kvstore._store(name, first.arg_dict[name])
        self.params_initialized = True

    def set_params(self, arg_params: Weights, aux_params: Weights, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Set the weights; if only some are given, by ``allow_missing``, each of them must be in the network.

        Raises
        ------
        ArgumentError
            For a name that the network lacks, with ``allow_missing`` and without ``allow_extra``; and as in
            ``init_params``.
        """
        if allow_missing and not allow_extra and (force_init or not self.params_initialized):
            self._needs("binded")
            first = self._exec_group.execs[0]
            for what, params, arrays in (("weight", arg_params, first.arg_dict),
                                         ("auxiliary state", aux_params, first.aux_dict)):
                for name in params or ():
                    if name not in arrays:
                        raise ArgumentError(f"set_params: there is no {what} {name!r} in the network; allow_extra=True "
                                            f"ignores it. {did_you_mean(name, arrays)}")
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def _spread(self) -> None:
        """Copy the first context's weights to the others."""
        first = self._exec_group.execs[0]
        for executor in self._exec_group.execs[1:]:
            for name in self._param_names:
                executor.arg_dict[name]._store(Ellipsis, first.arg_dict[name])
            for name in self._aux_names:
                executor.aux_dict[name]._store(Ellipsis, first.aux_dict[name])

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states, on the host; the latter are averaged over the contexts."""
        self._needs("params_initialized")
        if not self.binded:
            return self._preset or ({}, {})
        first = self._exec_group.execs[0]
        args = {name: first.arg_dict[name].copyto(cpu()) for name in self._param_names}
        aux = {}
        for name in self._aux_names:
            copies = [executor.aux_dict[name].copyto(cpu()) for executor in self._exec_group.execs]
            aux[name] = copies[0] if len(copies) == 1 else sum(copies[1:], copies[0]) / len(copies)
        return args, aux

    # ----------------------------------------------------------------------------------- optimizer

    def init_optimizer(self, kvstore: Store = "local", optimizer: str | Optimizer = "sgd",
                       optimizer_params: Settings = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Set the optimizer.

        Parameters
        ----------
        kvstore : KVStore, str or None
            The store that sums gradients; it updates the weights if it can. A store given by name sums in this process,
            or with ``dist_sync`` over all processes, during backward.
        optimizer : str or Optimizer
            The optimizer, or its name.
        optimizer_params : dict, or pairs
            Settings of an optimizer given by name. ``rescale_grad`` is one over the batch size by default.
        force_init : bool
            Whether to repeat it if it was done already.
        """
        self._needs("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("the optimizer is initialized already; force_init=True does it again")
            return
        group, count = self._exec_group, len(self._context)
        weights = {name: group.execs[0].arg_dict[name] for name in self._param_names}
        store, on_store = _create_kvstore(kvstore, count, weights)
        if self._reduction is not None:  # the store of before summed gradients during backward
            self._reduction = None
            group.reduce(None)
        if isinstance(kvstore, str) and type(store) is KVStore and self._compression_params is None:
            store, on_store = None, False  # update() reduces and updates in one step
        # without updates in the store, each context updates its own weights
        copies = count if store is not None and not on_store else 1
        names: dict[int | str, str] = {i * copies + k: name for i, name in enumerate(self._param_names)
                                       for k in range(copies)}
        workers = store.num_workers if store is not None and "dist" in store.type and "_sync" in store.type else 1
        scale = 1.0 / ((parts.samples(self._data_shapes) or 1) * workers)
        if isinstance(optimizer, str):
            settings = {"rescale_grad": scale, **dict(optimizer_params)}
            optimizer = optimizers.create(optimizer, sym=self._symbol, param_idx2name=names, **settings)
        elif optimizer.rescale_grad != scale:
            self.logger.warning("init_optimizer: the optimizer multiplies gradients by %s, not by one over the batch "
                                "size, %s", optimizer.rescale_grad, scale)
        if not optimizer.idx2name:
            optimizer.idx2name = names  # factors of rates and of decay that were set by name stay as they are
        if isinstance(store, DistKVStore):
            store.agree("the network", parts.structure(self._symbol))
        if isinstance(kvstore, str) and type(store) is DistKVStore and self._compression_params is None and count == 1:
            self._reduce(store, optimizer)
            store, on_store = None, False  # every rank updates its own weights; gradients are summed during backward
        self._optimizer, self._updater = optimizer, None if on_store else optimizers.get_updater(optimizer)
        self._kvstore, self._update_on_kvstore = store, on_store
        if store is not None:
            if self._compression_params is not None:
                store.set_gradient_compression(self._compression_params)
            if on_store:
                store.set_optimizer(optimizer)
            _initialize_kvstore(store, group.param_arrays, weights, group.param_names, on_store)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _reduce(self, store: DistKVStore, optimizer: Optimizer) -> None:
        """Copy the weights of rank 0, and sum gradients over all ranks from now on."""
        group = self._exec_group
        weights = {name: group.execs[0].arg_dict[name] for name in self._param_names}
        store.set_optimizer(optimizer)  # raises an error if ranks have different optimizers
        _initialize_kvstore(store, group.param_arrays, weights, group.param_names, True)
        self._reduction = Reduction(world(), weights=[name for name in self._param_names
                                                      if group.execs[0].grad_dict[name] is not None])
        group.reduce(self._reduction)

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Share another module's optimizer and its states."""
        self._reduction = shared_module._reduction
        if self._reduction is not None:
            self._exec_group.reduce(self._reduction)
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._numbers = shared_module._numbers
        self._kvstore, self._update_on_kvstore = shared_module._kvstore, shared_module._update_on_kvstore
        self.optimizer_initialized = True

    def save_optimizer_states(self, fname: str, format: str = "npz") -> None:
        """Write the optimizer's states to a file, completely or not at all.

        Parameters
        ----------
        fname : str
            The file.
        format : {"npz", "mxnet"}
            The format. MXNet reads ``"mxnet"``, which contains the optimizer, since MXNet has the counts there.
        """
        self._needs("optimizer_initialized")
        if self._kvstore is not None and self._update_on_kvstore:
            other: dict[str, Any] = {} if format == "npz" else {"dump_optimizer": True, "format": format}
            self._kvstore.save_optimizer_states(fname, **other)
            return
        with atomic_write(fname) as file:
            file.write(self._updater.get_states(format == "mxnet", format))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        self._needs("optimizer_initialized")
        if self._kvstore is not None and self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            return
        self._updater.read_states(fname)

    # ------------------------------------------------------------------------------------- a batch

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, which may have other shapes.

        Parameters
        ----------
        data_batch : DataBatch, or list of them
            Inputs in the order of ``data_shapes``, and labels: an object with ``data`` and optionally ``label``, or a
            list with one for each context.
        is_train : bool or None
            Whether to run in training mode; by default if it is bound for training.
        """
        self._needs("binded", "params_initialized")
        self._load(data_batch, is_train)
        for executor in self._exec_group.execs:
            executor.forward(is_train=self.for_training if is_train is None else is_train)

    def _load(self, data_batch: Any, is_train: bool | None) -> None:
        """Copy a batch to the executors, which switch to its shapes."""
        listed = isinstance(data_batch, list)  # a named tuple is one batch, not a list of batches
        batches = data_batch if listed else [data_batch]
        if listed and len(batches) != len(self._exec_group.execs):
            raise ArgumentError(f"forward: expected {len(self._exec_group.execs)} batches, one for each context, got "
                                f"{len(batches)}")
        data = self._describe_batches("inputs", self._data_shapes, [batch.data for batch in batches],
                                      getattr(batches[0], "provide_data", None))
        labels = [list(getattr(batch, "label", None) or ()) for batch in batches]
        if not self._label_shapes:
            labels = [[] for _ in batches]  # the module was bound without labels
        if is_train and self._label_shapes and not any(labels) and not self._unlabelled:
            self._unlabelled = True
            self.logger.warning("the training batch has no labels; %s keep their values",
                                ", ".join(desc.name for desc in self._label_shapes))
        if any(labels):
            of_labels = self._describe_batches("labels", self._label_shapes, labels,
                                               getattr(batches[0], "provide_label", None))
        else:
            of_labels = self._without_labels(data)
        if data != self._data_shapes or of_labels != self._label_shapes:
            self.reshape(data, of_labels)
        arrays = [[*batch.data, *label] for batch, label in zip(batches, labels)]
        described = [*data, *(of_labels if any(labels) else ())]
        for number, (executor, share) in enumerate(zip(self._exec_group.execs, self._exec_group.shares)):
            for i, desc in enumerate(described):
                if desc.name in executor.arg_dict:
                    value = arrays[number][i] if listed else \
                        parts.cut(arrays[0][i], share, DataDesc.get_batch_axis(desc.layout))
                    executor.arg_dict[desc.name]._store(Ellipsis, value)

    @staticmethod
    def _describe_batches(what: str, old: list[DataDesc], values: Sequence[Sequence[NDArray]],
                          provided: Descriptions | None) -> list[DataDesc]:
        """Descriptions of the inputs, or of the labels, with the shapes of these batches."""
        for arrays in values:
            if len(arrays) != len(old):
                raise ArgumentError(f"forward: the {what} are {', '.join(desc.name for desc in old)}; got "
                                    f"{len(arrays)} arrays")
        ordered = old
        if provided:
            names = [desc.name for desc in describe("the batch", provided)]
            description_of = {desc.name: desc for desc in old}
            if set(names) == set(description_of):
                ordered = [description_of[name] for name in names]
        descriptions = []
        for i, desc in enumerate(ordered):
            shape, axis = list(values[0][i].shape), DataDesc.get_batch_axis(desc.layout)
            if any(list(value[i].shape) != shape for value in values[1:]):
                raise ShapeError(f"forward: {desc.name}: all batches of a list must have one shape, got "
                                 f"{', '.join(str(value[i].shape) for value in values)}")
            if axis >= 0:
                shape[axis] *= len(values)
            descriptions.append(desc if desc.shape == tuple(shape) else
                                DataDesc(desc.name, shape, desc.dtype, desc.layout))
        return descriptions

    def _without_labels(self, data: list[DataDesc]) -> list[DataDesc]:
        """Descriptions of labels for a batch without labels: their arrays have to fit the batch."""
        if data == self._data_shapes:
            return self._label_shapes
        size = parts.samples(data)
        descriptions = []
        for desc in self._label_shapes:
            shape, axis = list(desc.shape), DataDesc.get_batch_axis(desc.layout)
            if size is not None and axis >= 0:
                shape[axis] = size
            descriptions.append(DataDesc(desc.name, shape, desc.dtype, desc.layout))
        return descriptions

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients; ``out_grads`` are the gradients of outputs that are no losses."""
        self._needs("binded", "params_initialized")
        if not self.for_training:
            raise ArgumentError("backward: the module is bound for inference; bind with for_training=True")
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        for executor, share in zip(self._exec_group.execs, self._exec_group.shares):
            executor.backward(None if out_grads is None else
                              [parts.cut(grad, share, axis) for grad, axis in zip(out_grads, self._output_axes)])

    def update(self) -> None:
        """Update the weights by the gradients of the last backward."""
        self._needs("binded", "params_initialized", "optimizer_initialized")
        if self._updates_in_plan:
            self._executor_with_updates().update()
            return
        if self._kvstore is not None:
            self._update_by_kvstore(self._exec_group)
            return
        first = self._exec_group.execs[0]
        names = [name for name in self._param_names if first.grad_dict[name] is not None]
        weights = [first.arg_dict[name] for name in names]
        grads: list[Any] = [first.grad_dict[name] for name in names]
        for executor in self._exec_group.execs[1:]:
            others: Any = executor.grad_dict  # each gradient exists, since those of the first context do
            grads = [grad + others[name].as_in_context(grad.context) for name, grad in zip(names, grads)]
        self._updater([self._numbers[name] for name in names], grads, weights)  # in one call, which is faster
        for executor in self._exec_group.execs[1:]:
            for name, weight in zip(names, weights):
                executor.arg_dict[name]._store(Ellipsis, weight)

    @property
    def _updates_in_plan(self) -> bool:
        """Whether one executor computes all, and an updater of this library updates the weights."""
        return len(self._exec_group.execs) == 1 and self._kvstore is None \
            and isinstance(self._updater, optimizers.Updater)

    def _executor_with_updates(self) -> Executor:
        """The single executor, with the updates of its weights as part of its plan."""
        (executor,) = self._exec_group.execs
        if executor.updater is not self._updater:
            executor.set_optimizer(self._updater, {name: self._numbers[name] for name in self._param_names
                                                   if executor.grad_dict[name] is not None})
        return executor

    def _learn(self, data_batch: Any) -> None:
        is_inherited = all(getattr(getattr(self, name), "__func__", None) is getattr(Module, name)
                           for name in ("forward_backward", "forward", "backward", "update"))
        if not is_inherited or not self.for_training or not self._updates_in_plan:
            super()._learn(data_batch)
            return
        self._needs("binded", "params_initialized", "optimizer_initialized")
        self._load(data_batch, True)
        self._executor_with_updates().step()

    def _update_by_kvstore(self, group: DataParallelExecutorGroup) -> None:
        if self._update_on_kvstore:
            _update_params_on_kvstore(group.param_arrays, group.grad_arrays, self._kvstore, group.param_names)
        else:
            _update_params(group.param_arrays, group.grad_arrays, self._updater, len(self._context), self._kvstore,
                           group.param_names)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward, concatenated, or with ``merge_multi_context=False`` a list for each
        context."""
        self._needs("binded", "params_initialized")
        listed = [list(copies) for copies in zip(*(executor.outputs for executor in self._exec_group.execs))]
        return self._merge_outputs(listed, self._output_axes) if merge_multi_context else listed

    @staticmethod
    def _merge_outputs(listed: list[list[NDArray]], axes: Sequence[int]) -> list[NDArray]:
        return [parts.joined(arrays, axis) for arrays, axis in zip(listed, axes)]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs, in the order of ``data_shapes``."""
        if not self.inputs_need_grad:
            raise ArgumentError("get_input_grads: bind with inputs_need_grad=True to keep them")
        listed: list[list[Any]] = [[executor.grad_dict[desc.name] for executor in self._exec_group.execs]
                                   for desc in self._data_shapes]
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in self._data_shapes]
        return self._merge_outputs(listed, axes) if merge_multi_context else listed

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The arguments named by ``state_names``."""
        listed = [[executor.arg_dict[name] for executor in self._exec_group.execs] for name in self._state_names]
        return self._merge_outputs(listed, [0] * len(listed)) if merge_multi_context else listed

    def set_states(self, states: Sequence[NDArray | Sequence[NDArray]] | None = None, value: float | None = None
                   ) -> None:
        """Set the arguments named by ``state_names``: to arrays, a list for each context, or to a number."""
        if (states is None) == (value is None):
            raise ArgumentError("set_states: expected states or a value, and not both")
        for i, name in enumerate(self._state_names):
            for number, (executor, share) in enumerate(zip(self._exec_group.execs, self._exec_group.shares)):
                source: object = value
                if states is not None:
                    source = states[i][number] if isinstance(states[i], (list, tuple)) else \
                        parts.cut(states[i], share, 0)
                executor.arg_dict[name]._store(Ellipsis, source)

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric, those of each context with its labels.

        Parameters
        ----------
        eval_metric : EvalMetric
            The metric.
        labels : list of NDArray
            Labels in the order of ``label_shapes``.
        pre_sliced : bool
            Whether labels are a list for each context.
        """
        described = self._label_shapes or [DataDesc(name, ()) for name in self._label_names]
        names = [desc.name for desc in described]
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in described]
        for number, (executor, share) in enumerate(zip(self._exec_group.execs, self._exec_group.shares)):
            part = labels[number] if pre_sliced else \
                [parts.cut(label, share, axis) for label, axis in zip(labels or (), axes)]
            outputs = OrderedDict(zip(self.output_names, executor.outputs))
            eval_metric.update_dict(OrderedDict(zip(names, part)), outputs)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a monitor."""
        self._needs("binded")
        for executor in self._exec_group.execs:
            mon.install(executor)

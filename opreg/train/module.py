"""Module: a symbol, its weights and an optimizer; and BucketingModule, one set of weights under several symbols.

Over several contexts a batch is divided, each context works on its part, and the gradients are added up. The weights
move on the first context and are copied to the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opreg.ndarray.context import Context, cpu
from opreg.ndarray.creation import concatenate
from opreg.ndarray.ndarray import NDArray

from ..errors import ArgumentError, ShapeError, did_you_mean
from ..files import reading, together, whole
from . import optimizer as optimizers
from .base_module import BaseModule, Params
from .initializer import InitDesc, create
from .io import DataBatch, DataDesc
from .metric import EvalMetric
from .model import load_checkpoint, save_checkpoint

__all__ = ["BaseModule", "Module", "BucketingModule"]


def _describe(shapes: Any) -> list[DataDesc]:
    """Descriptions of inputs from those, or from pairs of name and shape."""
    return [each if isinstance(each, DataDesc) else DataDesc(*each) for each in shapes or ()]


def _part(value: Any, number: int, count: int) -> Any:
    """The rows of a batch that one of several contexts works on."""
    if count == 1:
        return value
    rows = value.shape[0]
    return value[rows * number // count:rows * (number + 1) // count]


class Module(BaseModule):
    """A symbol with its weights, which can be trained.

    Parameters
    ----------
    symbol : Symbol
        The network.
    data_names, label_names : sequence of str or None
        Arguments that come with each batch; all others are weights.
    logger : logging module or logger
        Where ``fit`` writes.
    context : Context or list of Context
        Where to compute; over several a batch is divided.
    fixed_param_names : sequence of str or None
        Weights that stay.
    state_names : sequence of str or None
        Arguments that are neither, such as initial states; they begin as zeros, see ``set_states``.
    group2ctxs : dict of str to Context or None
        Where the nodes of each ``ctx_group`` compute.

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

    def __init__(self, symbol: Any, data_names: Sequence[str] | None = ("data",),
                 label_names: Sequence[str] | None = ("softmax_label",), logger: Any = logging, context: Any = None,
                 work_load_list: Any = None, fixed_param_names: Sequence[str] | None = None,
                 state_names: Sequence[str] | None = None, group2ctxs: Any = None, compression_params: Any = None):
        super().__init__(logger)
        context = cpu() if context is None else context
        self._context: list[Context] = list(context) if isinstance(context, (list, tuple)) else [context]
        self._symbol, self._group2ctx = symbol, group2ctxs
        arguments = symbol.list_arguments()
        self.data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed = list(state_names or ()), list(fixed_param_names or ())
        for what, names in (("data_names", self.data_names), ("state_names", self._state_names),
                            ("fixed_param_names", self._fixed)):
            for name in names:
                if name not in arguments:
                    raise ArgumentError(f"Module: {what}: the symbol has no argument {name!r}. "
                                        f"{did_you_mean(name, arguments)}")
        for name in self._label_names:
            if name not in arguments:
                logger.warning("Module: label_names: the symbol has no argument %r", name)
        # A label the symbol does not have is still given to metrics.
        inputs = {*self.data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._numbers = {name: i for i, name in enumerate(self._param_names)}  # as the optimizer knows them
        self._aux_names = symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self._execs: list[Any] = []
        self._shaped: dict[Any, list[Any]] = {}
        self._preset: tuple[dict[str, NDArray], dict[str, NDArray]] | None = None
        self._preset_states: str | None = None
        self._optimizer: Any = None
        self._updater: Any = None

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module from a checkpoint; its weights are set when it is bound.

        Parameters
        ----------
        prefix, epoch
            See ``load_checkpoint``.
        load_optimizer_states : bool
            Whether ``init_optimizer`` reads the optimizer's states too.
        **kwargs
            As the constructor has them.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._preset, module.params_initialized = (arg_params, aux_params), True
        if load_optimizer_states:
            module._preset_states = f"{prefix}-{epoch:04d}.states"
        return module

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False,
                        remove_amp_cast: bool = True) -> None:
        """Write symbol and weights, and the optimizer's states to ``prefix-0001.states``: all files, or none."""
        with together():
            save_checkpoint(prefix, epoch, self.symbol, *self.get_params())
            if save_optimizer_states:
                self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    # ------------------------------------------------------------------------------------ questions

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]
        """Descriptions of the inputs it is bound with."""
        self._needs("binded")
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the labels it is bound with, or None."""
        self._needs("binded")
        return self._label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:  # type: ignore[override]
        """Pairs of name and shape."""
        self._needs("binded")
        shapes = {each.name: each.shape for each in self._data_shapes + self._label_shapes}
        known = {name: shape for name, shape in shapes.items() if name in self._symbol.list_arguments()}
        return list(zip(self.output_names, self._symbol.infer_shape(**known)[1]))

    # ------------------------------------------------------------------------------------- binding

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Make arrays and plans for inputs of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or of pairs
            Names and shapes of what comes with a batch.
        for_training : bool
            Whether gradients are kept.
        inputs_need_grad : bool
            Whether those of the inputs are, too.
        force_rebind : bool
            Whether to do it again.
        shared_module : Module
            Another whose weights are used.
        grad_req : str, list or dict
            As ``Symbol.bind`` has it, for the weights.
        """
        if self.binded and not force_rebind:
            self.logger.warning("the module is bound already; force_rebind=True binds it again")
            return
        if inputs_need_grad and not for_training:
            raise ArgumentError("bind: inputs_need_grad goes with for_training")
        before = self.get_params() if self.binded and self.params_initialized else self._preset
        self._data_shapes, self._label_shapes = self._checked(data_shapes, label_shapes)
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        requests = self._requests(grad_req)
        self._execs = []
        for number, ctx in enumerate(self._context):
            shapes, types = self._own_shapes(number), self._types()
            shared = shared_module._execs[number] if shared_module is not None else None
            weights = [] if shared is None else [name for name in self._param_names if name in shared.arg_dict]
            self._execs.append(self._symbol.simple_bind(ctx, requests, types, group2ctx=self._group2ctx,
                                                        shared_arg_names=weights, shared_exec=shared, **shapes))
        self._shaped = {self._key(): self._execs}
        self.binded = True
        if shared_module is not None:
            self.params_initialized = shared_module.params_initialized
            if shared_module.optimizer_initialized:
                self.borrow_optimizer(shared_module)
        elif before is not None and self.params_initialized:
            self.set_params(*before)
            self._preset = None

    def _checked(self, data_shapes: Any, label_shapes: Any) -> tuple[list[DataDesc], list[DataDesc]]:
        data, labels = _describe(data_shapes), _describe(label_shapes)
        if sorted(each.name for each in data) != sorted(self.data_names):
            raise ArgumentError(f"bind: the inputs are {', '.join(self.data_names)}; got shapes of "
                                f"{', '.join(each.name for each in data) or 'nothing'}")
        if labels and sorted(each.name for each in labels) != sorted(self._label_names):
            raise ArgumentError(f"bind: the labels are {', '.join(self._label_names) or 'none'}; got shapes of "
                                f"{', '.join(each.name for each in labels)}. Module(label_names=...) names them")
        if len(self._context) > 1 and any(each.shape[0] < len(self._context) for each in data):
            raise ShapeError(f"bind: a batch of {data[0].shape[0]} cannot be divided among {len(self._context)} "
                             "contexts")
        return data, labels

    def _key(self) -> Any:
        return tuple((each.name, each.shape) for each in self._data_shapes + self._label_shapes)

    def _bound_inputs(self) -> list[DataDesc]:
        arguments = set(self._symbol.list_arguments())
        return [each for each in self._data_shapes + self._label_shapes if each.name in arguments]

    def _own_shapes(self, number: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the part of a batch that a context works on."""
        count = len(self._context)
        return {each.name: (each.shape[0] * (number + 1) // count - each.shape[0] * number // count, *each.shape[1:])
                if count > 1 else each.shape for each in self._bound_inputs()}

    def _types(self) -> dict[str, Any]:
        return {each.name: each.dtype for each in self._bound_inputs()}

    def _requests(self, grad_req: Any) -> dict[str, str]:
        arguments = self._symbol.list_arguments()
        if isinstance(grad_req, str):
            given = dict.fromkeys(arguments, grad_req)
        elif isinstance(grad_req, Mapping):
            given = {**dict.fromkeys(arguments, "write"), **grad_req}
        else:
            given = dict(zip(arguments, grad_req))
        requests = {}
        for name in arguments:
            if not self.for_training or name in self._fixed or name in self._label_names or name in self._state_names:
                requests[name] = "null"
            elif name in self.data_names:
                requests[name] = given[name] if self.inputs_need_grad else "null"
            else:
                requests[name] = given[name]
        return requests

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Change over to inputs of other shapes; the weights stay."""
        self._needs("binded")
        self._data_shapes, self._label_shapes = self._checked(data_shapes, label_shapes)
        key = self._key()
        if key not in self._shaped:
            self._shaped[key] = [each.reshape(partial_shaping=True, allow_up_sizing=True, **self._own_shapes(number))
                                 for number, each in enumerate(self._execs)]
        self._execs = self._shaped[key]

    # ------------------------------------------------------------------------------------- weights

    def init_params(self, initializer: Any = None, arg_params: Params = None, aux_params: Params = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Set the weights.

        Parameters
        ----------
        initializer : Initializer, str or None
            For weights that are not given; uniform numbers up to 0.01 in ``fit``.
        arg_params, aux_params : dict of str to NDArray
            Values to begin with.
        allow_missing : bool
            Whether weights may be missing among them; the initializer makes those.
        force_init : bool
            Whether to do it again.
        allow_extra : bool
            Whether there may be arrays among them that the network does not have.

        Raises
        ------
        ArgumentError
            Naming weights that are missing or too many.
        """
        if self.params_initialized and not force_init:
            return
        self._needs("binded")
        if initializer is not None:
            initializer = create(initializer)
        attrs = self._symbol.attr_dict()
        first = self._execs[0]
        for what, own, names, given in (("weight", first.arg_dict, self._param_names, arg_params),
                                        ("auxiliary state", first.aux_dict, self._aux_names, aux_params)):
            for name in given or ():
                if name not in own and not allow_extra:
                    raise ArgumentError(f"init_params: the network has no {what} {name!r}. {did_you_mean(name, own)}")
            for name in names:
                if given is not None and name in given:
                    if given[name].shape != own[name].shape:
                        raise ShapeError(f"init_params: {name} has shape {given[name].shape}, expected "
                                         f"{own[name].shape}")
                    own[name]._store(Ellipsis, given[name])
                elif initializer is not None and (given is None or allow_missing):
                    initializer(InitDesc(name, attrs.get(name), initializer), own[name])
                elif not allow_missing:
                    raise ArgumentError(f"init_params: the {what} {name!r} is not given"
                                        + (" and there is no initializer" if initializer is None else
                                           "; allow_missing=True lets the initializer make it"))
        self._spread()
        self.params_initialized = True

    def _spread(self) -> None:
        """Copy the first context's weights to the others."""
        first = self._execs[0]
        for other in self._execs[1:]:
            for name in self._param_names:
                other.arg_dict[name]._store(Ellipsis, first.arg_dict[name])
            for name in self._aux_names:
                other.aux_dict[name]._store(Ellipsis, first.aux_dict[name])

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states, on the host; the latter are means over the contexts."""
        self._needs("params_initialized")
        if not self.binded:
            return self._preset or ({}, {})
        first = self._execs[0]
        args = {name: first.arg_dict[name].copyto(cpu()) for name in self._param_names}
        aux = {}
        for name in self._aux_names:
            held = [each.aux_dict[name].copyto(cpu()) for each in self._execs]
            aux[name] = held[0] if len(held) == 1 else sum(held[1:], held[0]) / len(held)
        return args, aux

    # ----------------------------------------------------------------------------------- optimizer

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Choose how weights move.

        Parameters
        ----------
        kvstore : str or None
            Where gradients meet; here always this process, so ``dist_`` ones are refused.
        optimizer : str or Optimizer
            Its name, or one.
        optimizer_params : dict, or pairs
            For one given by name. ``rescale_grad`` is one over the batch size by default.
        force_init : bool
            Whether to do it again.
        """
        self._needs("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("the optimizer is initialized already; force_init=True does it again")
            return
        if isinstance(kvstore, str) and kvstore.startswith("dist"):
            raise ArgumentError(f"init_optimizer: kvstore {kvstore!r} needs other machines; expected 'local', "
                                "'device' or None")
        names = dict(enumerate(self._param_names))
        scale = 1.0 / self._data_shapes[0].shape[DataDesc.get_batch_axis(self._data_shapes[0].layout)]
        if isinstance(optimizer, str):
            settings = {"rescale_grad": scale, **dict(optimizer_params)}
            optimizer = optimizers.create(optimizer, sym=self._symbol, param_idx2name=names, **settings)
        elif optimizer.rescale_grad != scale:
            self.logger.warning("init_optimizer: the optimizer multiplies gradients by %s, not by one over the batch "
                                "size, %s", optimizer.rescale_grad, scale)
        if not optimizer.idx2name:
            optimizer.idx2name = names
            optimizer.set_wd_mult({})
        self._optimizer, self._updater = optimizer, optimizers.get_updater(optimizer)
        self.optimizer_initialized = True
        if self._preset_states is not None:
            self.load_optimizer_states(self._preset_states)
            self._preset_states = None

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use another module's optimizer and its states."""
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._numbers = shared_module._numbers
        self.optimizer_initialized = True

    def save_optimizer_states(self, fname: str) -> None:
        """Write the optimizer's states to a file, whole or not at all."""
        self._needs("optimizer_initialized")
        with whole(fname) as file:
            file.write(self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        self._needs("optimizer_initialized")
        with reading(fname) as file:
            self._updater.set_states(file.read())

    # ------------------------------------------------------------------------------------- a batch

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, of other shapes too.

        Parameters
        ----------
        data_batch : DataBatch
            Inputs in the order of ``data_shapes``, and labels.
        is_train : bool or None
            Whether as in training; by default if it is bound for that.
        """
        self._needs("binded", "params_initialized")
        is_train = self.for_training if is_train is None else is_train
        if len(data_batch.data) != len(self._data_shapes):
            raise ArgumentError(f"forward: the inputs are {', '.join(each.name for each in self._data_shapes)}; got "
                                f"{len(data_batch.data)} arrays")
        labels = list(data_batch.label or ())
        if labels and not self._label_shapes and self._label_names:
            labels = []  # it is bound without
        if labels and len(labels) != len(self._label_shapes):
            raise ArgumentError(f"forward: the labels are {', '.join(self._label_names)}; got {len(labels)} arrays")
        data = self._reshaped(self._data_shapes, data_batch.data, data_batch.provide_data)
        found = self._reshaped(self._label_shapes, labels, data_batch.provide_label)
        if not labels and self._label_shapes and data != self._data_shapes:
            # Without labels their arrays still have to fit the batch.
            rows = data[0].shape[0]
            found = [DataDesc(each.name, (rows, *each.shape[1:]), each.dtype, each.layout)
                     for each in self._label_shapes]
        if data != self._data_shapes or found != self._label_shapes:
            self.reshape(data, found)
        values = dict(zip([each.name for each in data + found], [*data_batch.data, *labels]))
        for number, executor in enumerate(self._execs):
            for name, value in values.items():
                if name in executor.arg_dict:
                    executor.arg_dict[name]._store(Ellipsis, _part(value, number, len(self._execs)))
            executor.forward(is_train=is_train)

    @staticmethod
    def _reshaped(old: list[DataDesc], values: Sequence[Any], provided: Any) -> list[DataDesc]:
        """Descriptions as they are for these arrays."""
        if not values:
            return old
        names = [each.name for each in _describe(provided)] if provided else [each.name for each in old]
        by_name = {each.name: each for each in old}
        return [DataDesc(name, value.shape, by_name[name].dtype, by_name[name].layout)
                for name, value in zip(names, values)]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients; ``out_grads`` are those of outputs that come from no loss."""
        self._needs("binded", "params_initialized")
        if not self.for_training:
            raise ArgumentError("backward: the module is bound for inference; bind with for_training=True")
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        count = len(self._execs)
        for number, executor in enumerate(self._execs):
            executor.backward(None if out_grads is None else [_part(each, number, count) for each in out_grads])

    def update(self) -> None:
        """Move the weights along the gradients of the last backward."""
        self._needs("binded", "params_initialized", "optimizer_initialized")
        first = self._execs[0]
        names = [name for name in self._param_names if first.grad_dict[name] is not None]
        weights, grads = [first.arg_dict[name] for name in names], [first.grad_dict[name] for name in names]
        for other in self._execs[1:]:
            grads = [grad + other.grad_dict[name].as_in_context(grad.context) for name, grad in zip(names, grads)]
        self._updater([self._numbers[name] for name in names], grads, weights)  # together, which is quicker
        for other in self._execs[1:]:
            for name, weight in zip(names, weights):
                other.arg_dict[name]._store(Ellipsis, weight)

    def _merged(self, parts: Sequence[NDArray]) -> NDArray:
        if len(parts) == 1:
            return parts[0]
        return concatenate([part.as_in_context(parts[0].context) for part in parts])

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward, joined, or with ``merge_multi_context=False`` a list of each context's."""
        self._needs("binded", "params_initialized")
        listed = [list(parts) for parts in zip(*(each.outputs for each in self._execs))]
        return [self._merged(parts) for parts in listed] if merge_multi_context else listed

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs, in the order of ``data_names``."""
        if not self.inputs_need_grad:
            raise ArgumentError("get_input_grads: bind with inputs_need_grad=True to keep them")
        listed = [[each.grad_dict[name] for each in self._execs] for name in self.data_names]
        return [self._merged(parts) for parts in listed] if merge_multi_context else listed

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The arguments named by ``state_names``."""
        listed = [[each.arg_dict[name] for each in self._execs] for name in self._state_names]
        return [self._merged(parts) for parts in listed] if merge_multi_context else listed

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the arguments named by ``state_names``: to arrays, a list for each context, or all to one number."""
        if (states is None) == (value is None):
            raise ArgumentError("set_states: expected states or a value, and not both")
        for i, name in enumerate(self._state_names):
            for number, executor in enumerate(self._execs):
                source = value
                if states is not None:
                    source = states[i][number] if isinstance(states[i], (list, tuple)) else \
                        _part(states[i], number, len(self._execs))
                executor.arg_dict[name]._store(Ellipsis, source)

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric."""
        names = [each.name for each in self._label_shapes] or self._label_names
        outputs = dict(zip(self.output_names, self.get_outputs()))
        eval_metric.update_dict(dict(zip(names, labels or ())), outputs)

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor look inside."""
        self._needs("binded")
        for executor in self._execs:
            mon.install(executor)


class BucketingModule(BaseModule):
    """One set of weights under symbols that differ by a key, such as the length of sequences.

    Parameters
    ----------
    sym_gen : function of a key
        Returns symbol, data names and label names.
    default_bucket_key
        The key of the symbol that has all weights.
    context, fixed_param_names, state_names, group2ctxs
        As ``Module`` has them.
    """

    def __init__(self, sym_gen: Callable[[Any], tuple[Any, Any, Any]], default_bucket_key: Any = None,
                 logger: Any = logging, context: Any = None, work_load_list: Any = None,
                 fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None,
                 group2ctxs: Any = None, compression_params: Any = None):
        super().__init__(logger)
        if default_bucket_key is None:
            raise ArgumentError("BucketingModule: default_bucket_key is needed")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._settings = dict(logger=logger, context=context, fixed_param_names=fixed_param_names,
                              state_names=state_names, group2ctxs=group2ctxs)
        self._buckets: dict[Any, Module] = {}
        self._curr_bucket_key = default_bucket_key
        self._curr_module = self._make(default_bucket_key)
        self._monitor: Any = None
        self._bound: dict[str, Any] = {}

    def _make(self, key: Any) -> Module:
        symbol, data_names, label_names = self._sym_gen(key)
        return Module(symbol, data_names, label_names, **self._settings)

    @property
    def symbol(self) -> Any:
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
    def data_shapes(self) -> list[Any]:  # type: ignore[override]
        """Descriptions of the inputs of the current key."""
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:  # type: ignore[override]
        """Descriptions of the labels of the current key."""
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[Any]:  # type: ignore[override]
        """Pairs of name and shape of the current key."""
        return self._curr_module.output_shapes

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Make arrays and plans of the default key; those of others follow when they come."""
        if self.binded and not force_rebind:
            self.logger.warning("the module is bound already; force_rebind=True binds it again")
            return
        if shared_module is not None:
            raise ArgumentError("BucketingModule: shared_module is for Module only")
        before = self.get_params() if self.binded and self.params_initialized else None
        module = self._make(self._default_bucket_key)
        self._bound = dict(for_training=for_training, inputs_need_grad=inputs_need_grad, grad_req=grad_req)
        module.bind(data_shapes, label_shapes, **self._bound)
        self._buckets, self._curr_bucket_key, self._curr_module = {self._default_bucket_key: module}, \
            self._default_bucket_key, module
        self.for_training, self.inputs_need_grad, self.binded = for_training, inputs_need_grad, True
        if before is not None:
            self.params_initialized = False
            self.set_params(*before)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Change over to a key; its module is made when it first comes."""
        self._needs("binded")
        default = self._buckets[self._default_bucket_key]
        if bucket_key not in self._buckets:
            module = self._make(bucket_key)
            module.bind(data_shapes, label_shapes, shared_module=default, **self._bound)
            for name in module._param_names:
                if name not in default._execs[0].arg_dict:
                    raise ArgumentError(f"BucketingModule: the symbol of key {bucket_key!r} has a weight {name!r} that "
                                        f"the one of the default key {self._default_bucket_key!r} has not")
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_bucket_key, self._curr_module = bucket_key, self._buckets[bucket_key]
        self._curr_module.params_initialized = self.params_initialized
        if self.optimizer_initialized and not self._curr_module.optimizer_initialized:
            self._curr_module.borrow_optimizer(default)

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Any = None) -> None:
        """Change over to the key of a batch."""
        if data_batch.bucket_key is not None:
            self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)

    def init_params(self, initializer: Any = None, arg_params: Params = None, aux_params: Params = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Set the weights; see ``Module.init_params``."""
        if self.params_initialized and not force_init:
            return
        self._needs("binded")
        self._buckets[self._default_bucket_key].init_params(initializer, arg_params, aux_params, allow_missing,
                                                            force_init, allow_extra)
        self.params_initialized = True
        for module in self._buckets.values():
            module.params_initialized = True

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states, on the host."""
        self._needs("binded", "params_initialized")
        return self._buckets[self._default_bucket_key].get_params()

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Choose how weights move; see ``Module.init_optimizer``."""
        default = self._buckets[self._default_bucket_key]
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch of any key."""
        self.prepare(data_batch)
        self._curr_module.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients."""
        self._curr_module.backward(out_grads)

    def update(self) -> None:
        """Move the weights along the gradients of the last backward."""
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

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor look inside, into modules of keys to come too."""
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

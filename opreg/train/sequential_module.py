"""SequentialModule: modules in a row, each with the outputs of the one before as inputs."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.ndarray import NDArray

from ..core.spec import Shape
from ..data.batches import DataDesc, Descriptions
from ..errors import ArgumentError, refuse_keywords, refuse_misspelt
from .base_module import SMALL, BaseModule, GradReq, Logger, Settings, Store, Weights
from .base_optimizer import Optimizer
from .initializer import InitializerLike
from .metric import EvalMetric

if TYPE_CHECKING:
    from .monitor import Monitor

__all__ = ["SequentialModule"]


class SequentialModule(BaseModule):
    """Modules in a row, each with the outputs of the one before as inputs.

    Examples
    --------
    >>> import opreg as mx
    >>> first = mx.mod.Module(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="a"), label_names=None)
    >>> second = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="b"),
    ...                                             name="softmax"))
    >>> chain = SequentialModule().add(first).add(second, take_labels=True, auto_wiring=True)
    >>> chain.bind([("data", (8, 3))], [("softmax_label", (8,))])
    >>> chain.output_shapes
    [('softmax_output', (8, 2))]
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Logger = logging):
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._labels: list[DataDesc] | None = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Append a module; returns this one, so that calls can be chained.

        Parameters
        ----------
        module : BaseModule
            The module.
        take_labels : bool
            Whether it gets the labels.
        auto_wiring : bool
            Whether outputs of the module before are matched to its inputs by order instead of name.
        """
        keywords = [self.META_TAKE_LABELS, self.META_AUTO_WIRING]
        refuse_keywords("SequentialModule.add", kwargs.keys() - keywords, keywords)
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    # --------------------------------------------------------------------------------------- questions

    @property
    def data_names(self) -> list[str]:  # type: ignore[override]
        """Names of the inputs of the first module."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:  # type: ignore[override]
        """Names of the outputs of the last module."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]
        """Descriptions of the inputs."""
        self._needs("binded")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the labels, or None where no module takes them."""
        self._needs("binded")
        return self._labels

    @property
    def output_shapes(self) -> list[tuple[str, Shape]]:  # type: ignore[override]
        """Pairs of name and shape."""
        self._needs("binded")
        return self._modules[-1].output_shapes

    # ---------------------------------------------------------------------------- binding and weights

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: GradReq = "write") -> None:
        """Bind all modules, each to the outputs of the one before."""
        if self._stays_bound(force_rebind):
            return
        if shared_module is not None:
            raise ArgumentError("SequentialModule: shared_module is for Module only")
        if not self._modules:
            raise ArgumentError("SequentialModule: the module is empty; add a module")
        takes = [bool(meta.get(self.META_TAKE_LABELS)) for meta in self._metas]
        shapes: Any = data_shapes
        for i, (module, meta) in enumerate(zip(self._modules, self._metas)):
            if meta.get(self.META_AUTO_WIRING):
                if len(module.data_names) != len(shapes):
                    raise ArgumentError(f"SequentialModule: module {i} has the inputs {', '.join(module.data_names)}; "
                                        f"got {len(shapes)} arrays")
                shapes = [(name, desc[1]) for name, desc in zip(module.data_names, shapes)]
            module.bind(shapes, label_shapes if takes[i] else None, for_training,
                        bool(for_training and (inputs_need_grad or i > 0)), force_rebind, grad_req=grad_req)
            shapes = module.output_shapes
        self._labels = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in label_shapes] \
            if label_shapes is not None and any(takes) else None
        self.for_training, self.inputs_need_grad, self.binded = for_training, inputs_need_grad, True

    def init_params(self, initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Set the weights of all modules; each takes its own from the given ones.

        Raises
        ------
        ArgumentError
            When two modules have weights of the same name, or a weight is missing.
        """
        if self.params_initialized and not force_init:
            return
        self._needs("binded")
        owners: dict[str, int] = {}
        for i, module in enumerate(self._modules):
            module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, True)
            for name in (name for params in module.get_params() for name in params):
                if name in owners:
                    raise ArgumentError(f"SequentialModule: the modules {owners[name]} and {i} both have a weight "
                                        f"{name!r}")
                owners[name] = i
        if not allow_extra:
            refuse_misspelt("init_params", (*(arg_params or ()), *(aux_params or ())), list(owners),
                            may_miss=allow_missing)
        self.params_initialized = True

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Copies of weights and auxiliary states of all modules, on the host."""
        self._needs("binded", "params_initialized")
        args: dict[str, NDArray] = {}
        aux: dict[str, NDArray] = {}
        for module in self._modules:
            own_args, own_aux = module.get_params()
            args.update(own_args)
            aux.update(own_aux)
        return args, aux

    def init_optimizer(self, kvstore: Store = "local", optimizer: str | Optimizer = "sgd",
                       optimizer_params: Settings = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Set the optimizer of all modules."""
        self._needs("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("the optimizer is initialized already; force_init=True does it again")
            return
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    # ----------------------------------------------------------------------------------------- a batch

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs, module by module."""
        self._needs("binded", "params_initialized")
        batch = copy.copy(data_batch)
        for i, module in enumerate(self._modules):
            if i > 0:
                before = self._modules[i - 1]
                names = module.data_names if self._metas[i].get(self.META_AUTO_WIRING) else before.output_names
                batch.data = before.get_outputs()
                batch.provide_data = [DataDesc(name, array.shape) for name, array in zip(names, batch.data)]
            module.forward(batch, is_train)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients, from the last module to the first."""
        self._needs("binded", "params_initialized")
        for i, module in reversed(list(enumerate(self._modules))):
            module.backward(out_grads)
            if i > 0:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        """Update the weights of all modules by the gradients of the last backward."""
        self._needs("binded", "params_initialized", "optimizer_initialized")
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward."""
        self._needs("binded", "params_initialized")
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs."""
        if not self.inputs_need_grad:
            raise ArgumentError("get_input_grads: bind with inputs_need_grad=True to keep them")
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs of the modules that take labels to a metric."""
        self._needs("binded", "params_initialized")
        for module, meta in zip(self._modules, self._metas):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a monitor in all modules."""
        self._needs("binded")
        for module in self._modules:
            module.install_monitor(mon)

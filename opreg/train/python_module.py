"""Modules in Python: a step, or a loss, among modules that are symbols."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.ndarray import NDArray, array

from ..core.spec import Shape
from ..data.batches import DataDesc, Descriptions
from ..errors import ArgumentError
from .base_module import SMALL, BaseModule, GradReq, Logger, Settings, Store, Weights
from .base_optimizer import Optimizer
from .executor_group import describe
from .initializer import InitializerLike
from .metric import EvalMetric

if TYPE_CHECKING:
    from .monitor import Monitor

__all__ = ["PythonModule", "PythonLossModule"]


class PythonModule(BaseModule):
    """A module without weights; a subclass defines ``_compute_output_shapes``, ``forward`` and ``backward``.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
        Names of inputs, labels and outputs; labels may be None.
    logger : logging module or logger
        Logger of ``fit``.
    """

    def __init__(self, data_names: Sequence[str], label_names: Sequence[str] | None, output_names: Sequence[str],
                 logger: Logger = logging):
        super().__init__(logger)
        self.data_names = list(data_names)
        self._data_names, self._label_names = self.data_names, None if label_names is None else list(label_names)
        self.output_names = self._output_names = list(output_names)
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] | None = None
        self._output_shapes: list[tuple[str, Shape]] = []

    @property
    def data_shapes(self) -> list[DataDesc]:  # type: ignore[override]
        """Descriptions of the inputs."""
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:  # type: ignore[override]
        """Descriptions of the labels, or None."""
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, Shape]]:  # type: ignore[override]
        """Pairs of name and shape."""
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Empty dicts: there are no weights or auxiliary states."""
        return {}, {}

    def init_params(self, initializer: InitializerLike = SMALL, arg_params: Weights = None, aux_params: Weights = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Do nothing: there are no weights."""
        self.params_initialized = True

    def init_optimizer(self, kvstore: Store = "local", optimizer: str | Optimizer = "sgd",
                       optimizer_params: Settings = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Do nothing: there are no weights."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Do nothing: there are no weights."""

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric, if it takes labels."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise ArgumentError(f"{type(self).__name__}: it computes on one context, and needs no label slices")
        eval_metric.update_dict(dict(zip([desc.name for desc in self._label_shapes], labels)),
                                dict(zip(self.output_names, self.get_outputs())))

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: GradReq = "write") -> None:
        """Store the shapes of inputs and labels."""
        if self._stays_bound(force_rebind):
            return
        if grad_req != "write":
            raise ArgumentError(f"{type(self).__name__}: gradients are written; got grad_req={grad_req!r}")
        data = describe("data_shapes", data_shapes)
        labels = None if label_shapes is None else describe("label_shapes", label_shapes)
        for what, expected, descriptions in (("data_shapes", self._data_names, data),
                                             ("label_shapes", self._label_names, labels)):
            if descriptions is not None and [desc.name for desc in descriptions] != (expected or []):
                raise ArgumentError(f"{type(self).__name__}: {what}: expected {', '.join(expected or ['none'])}, got "
                                    f"{', '.join(desc.name for desc in descriptions)}")
        self._data_shapes, self._label_shapes = data, labels
        self.for_training, self.inputs_need_grad, self.binded = for_training, inputs_need_grad, True
        self._output_shapes = self._compute_output_shapes()

    def _compute_output_shapes(self) -> list[tuple[str, Shape]]:
        """Pairs of name and shape of the outputs, from the stored input shapes."""
        raise NotImplementedError


class PythonLossModule(PythonModule):
    """A loss after other modules: returns its input, and computes the gradient by a function.

    Parameters
    ----------
    name : str
        Name; the output is ``<name>_output``.
    data_names, label_names : sequence of str
        One name each.
    logger : logging module or logger
        Logger of ``fit``.
    grad_func : function of scores and labels
        Returns the gradient of the scores, an NDArray or data for one. A subclass may define ``_backward_impl``
        instead, which sets ``self._scores_grad``.
    """

    def __init__(self, name: str = "pyloss", data_names: Sequence[str] = ("data",),
                 label_names: Sequence[str] = ("softmax_label",), logger: Logger = logging,
                 grad_func: Callable[[NDArray, NDArray], Any] | None = None):
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise ArgumentError("PythonLossModule: expected one input and one label, got "
                                f"{', '.join(data_names)} and {', '.join(label_names)}")
        if grad_func is not None and not callable(grad_func):
            raise ArgumentError(f"PythonLossModule: grad_func: expected a function, got {type(grad_func).__name__}")
        self._name, self._grad_func = name, grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, Shape]]:
        return [(self.output_names[0], self._data_shapes[0].shape)]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Store the scores, and in training the labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradient of the scores."""
        if out_grads is not None:
            raise ArgumentError("PythonLossModule: expected no out_grads, since a loss is the last module")
        if not self.for_training:
            raise ArgumentError("backward: the module is bound for inference; bind with for_training=True")
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            raise NotImplementedError("PythonLossModule: give it a grad_func, or define _backward_impl")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, NDArray) else array(np.asarray(grad))

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The stored scores."""
        return [self._scores]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradient of the scores."""
        return [self._scores_grad]

    def install_monitor(self, mon: Monitor) -> None:
        """Refused: there is no executor."""
        raise NotImplementedError("PythonLossModule: there is no executor for a monitor")

"""SVRGModule: a module that learns by stochastic variance reduced gradients (Johnson and Zhang, 2013)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from opreg.data.batches import Descriptions
from opreg.errors import ArgumentError
from opreg.ndarray import zeros_like
from opreg.ndarray.ndarray import NDArray
from opreg.train.base_module import Callbacks, GradReq, Logger
from opreg.train.metric import EvalMetric
from opreg.train.symbol_module import Module

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A module with variance-reduced gradients: from each gradient it subtracts that of the same batch for earlier
    weights, and adds the mean gradient of all data for these weights.

    Parameters
    ----------
    symbol, data_names, label_names, logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, \
compression_params
        The parameters of ``Module``.
    update_freq : int
        Epochs from one pass over all data to the next.
    """

    def __init__(self, symbol: Any, data_names: Sequence[str] | None = ("data",),
                 label_names: Sequence[str] | None = ("softmax_label",), logger: Logger = logging, context: Any = None,
                 work_load_list: Sequence[float] | None = None, fixed_param_names: Sequence[str] | None = None,
                 state_names: Sequence[str] | None = None, group2ctxs: Any = None, compression_params: Any = None,
                 update_freq: int | None = None):
        if type(update_freq) is not int or update_freq < 1:
            raise ArgumentError(f"SVRGModule: update_freq: expected a positive number of epochs, got {update_freq!r}")
        settings = (data_names, label_names, logger, context, work_load_list, fixed_param_names, state_names,
                    group2ctxs, compression_params)
        super().__init__(symbol, *settings)
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, *settings)
        #: By context and name the mean gradient of all data.
        self._param_dict: list[dict[str, NDArray]] = []

    def bind(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: GradReq = "write") -> None:
        """Make arrays and plans, in training twice: for the weights, and for those of a while ago."""
        settings = (data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        super().bind(*settings)
        if for_training:
            self._mod_aux.bind(*settings)

    def reshape(self, data_shapes: Descriptions, label_shapes: Descriptions | None = None) -> None:
        """Change over to inputs of other shapes; the weights stay."""
        super().reshape(data_shapes, label_shapes)
        if self._mod_aux.binded:
            self._mod_aux.reshape(data_shapes, label_shapes)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""
        super().forward(data_batch, is_train)
        if is_train and self._param_dict:
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients."""
        super().backward(out_grads)
        if self._param_dict:
            self._mod_aux.backward(out_grads)

    def update_full_grads(self, train_data: Any) -> None:
        """Store copies of the weights, and the mean of the gradients of all batches for them."""
        self._needs("binded", "params_initialized")
        self._mod_aux.params_initialized = False
        self._mod_aux.init_params(None, *self.get_params())
        sums: list[dict[str, NDArray]] = [{} for _ in self._context]
        count, padding = 0, 0
        train_data.reset()
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            for total, executor in zip(sums, self._mod_aux._exec_group.execs):
                for name in self._param_names:
                    grad: Any = executor.grad_dict[name]
                    if grad is not None:
                        total[name] = total.get(name, zeros_like(grad)) + grad
            count, padding = count + 1, getattr(batch, "pad", None) or 0
        if not count:
            raise ArgumentError("update_full_grads: there are no batches")
        batch_count = count - padding / train_data.batch_size
        self._param_dict = [{name: total / batch_count for name, total in totals.items()} for totals in sums]

    def update(self) -> None:
        """Move the weights along the corrected gradients."""
        for executor, before, mean in zip(self._exec_group.execs, self._mod_aux._exec_group.execs, self._param_dict):
            for name, full in mean.items():
                grad: Any = executor.grad_dict[name]
                grad[:] = grad - before.grad_dict[name] + full
        super().update()

    def _epoch(self, epoch: int, train_data: Any, eval_metric: EvalMetric, batch_end_callback: Callbacks, monitor: Any
               ) -> list[tuple[str, float]]:
        if epoch % self.update_freq == 0:
            self.update_full_grads(train_data)
            train_data.reset()
        return super()._epoch(epoch, train_data, eval_metric, batch_end_callback, monitor)

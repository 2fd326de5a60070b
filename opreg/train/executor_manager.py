"""The trainer of networks before ``Module``: a batch divided among executors, one for each context."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.context import Context, cpu
from opreg.ndarray.ndarray import NDArray

from ..data.batches import DataDesc, Descriptions
from ..errors import ArgumentError, ShapeError
from . import parts
from .executor_group import DataParallelExecutorGroup
from .metric import EvalMetric

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

    from .monitor import Monitor

__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Slices of samples for each device, in proportion to its load; a ``ShapeError`` if there are too few samples."""
    return parts.shares(batch_size, work_load_list)


def _check_arguments(symbol: Symbol) -> None:
    """Refuse a symbol that has one name twice among its arguments, or among its auxiliary states."""
    for what, names in (("argument", symbol.list_arguments()), ("auxiliary state", symbol.list_auxiliary_states())):
        for name, count in Counter(names).items():
            if count > 1:
                raise ArgumentError(f"the symbol has the {what} {name!r} twice; give its nodes different names. All: "
                                    f"{', '.join(names)}")


def _load_general(data: Sequence[NDArray], targets: Sequence[Any]) -> None:
    """Copy arrays to other arrays, or to lists of pairs of a slice and an array."""
    for source, target in zip(data, targets):
        if isinstance(target, NDArray):
            target[:] = source
            continue
        if target[-1][0].stop != source.shape[0]:
            raise ShapeError(f"a batch of {source.shape[0]}, expected {target[-1][0].stop}")
        for share, destination in target:
            destination[:] = source[share]


def _load_data(batch: Any, targets: Sequence[Any]) -> None:
    """Copy the inputs of a batch to arrays."""
    _load_general(batch.data, targets)


def _load_label(batch: Any, targets: Sequence[Any]) -> None:
    """Copy the labels of a batch to arrays."""
    _load_general(batch.label, targets)


class DataParallelExecutorManager:
    """Executors for all contexts, and the steps of a training loop.

    Parameters
    ----------
    symbol : Symbol
        The network.
    ctx : list of Context
        The devices.
    train_data : DataIter
        Describes the arrays of a batch.
    arg_names, param_names, aux_names : list of str or None
        Arguments, weights and auxiliary states; those of the symbol by default.
    work_load_list : list of float or None
        Relative size of each context's part of a batch; equal by default.
    logger : logger
        Accepted without effect.
    sym_gen : function of a key or None
        The symbol for batches that have a ``bucket_key``; all share the weights.
    """

    def __init__(self, symbol: Symbol, ctx: Sequence[Context], train_data: Any, arg_names: Sequence[str] | None = None,
                 param_names: Sequence[str] | None = None, aux_names: Sequence[str] | None = None,
                 work_load_list: Sequence[float] | None = None, logger: object = None,
                 sym_gen: Callable[[Any], Symbol] | None = None):
        _check_arguments(symbol)
        self.ctx = list(ctx)
        if work_load_list is not None and len(work_load_list) != len(self.ctx):
            raise ArgumentError(f"work_load_list has {len(work_load_list)} entries, expected {len(self.ctx)}, one for "
                                "each context")
        inputs = [desc[0] for desc in (*train_data.provide_data, *train_data.provide_label)]
        self.arg_names = list(arg_names or symbol.list_arguments())
        self.param_names = list(param_names if param_names is not None else
                                [name for name in self.arg_names if name not in inputs])
        self.aux_names = list(aux_names if aux_names is not None else symbol.list_auxiliary_states())
        self.symbol, self.sym_gen, self.work_load_list = symbol, sym_gen, work_load_list
        self.execgrp = self._group(symbol, train_data.provide_data, train_data.provide_label)
        self.slices = self.execgrp.shares
        self._groups = {getattr(train_data, "default_bucket_key", None): self.execgrp}
        self._current = self.execgrp
        self._monitor: Monitor | None = None

    def _group(self, symbol: Symbol, data: Descriptions, labels: Descriptions | None,
               shared: DataParallelExecutorGroup | None = None) -> DataParallelExecutorGroup:
        return DataParallelExecutorGroup(symbol, self.ctx, self.work_load_list, data, labels, self.param_names, True,
                                         False, shared, logging)

    def install_monitor(self, monitor: Monitor) -> None:
        """Install a monitor."""
        self._monitor = monitor
        for group in self._groups.values():
            for executor in group.execs:
                monitor.install(executor)

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """Each weight on each context."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradient of each weight on each context."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """Each auxiliary state on each context."""
        return self.execgrp.aux_arrays

    def set_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None) -> None:
        """Copy weights and auxiliary states to all contexts."""
        for executor in self.execgrp.execs:
            executor.copy_params_from(arg_params, aux_params)

    def copy_to(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
        """Copy weights and auxiliary states, averaged over the contexts, to arrays."""
        for names, copies, target in ((self.param_names, self.param_arrays, arg_params),
                                      (self.aux_names, self.aux_arrays, aux_params)):
            for name, arrays in zip(names, copies):
                host = [array.as_in_context(cpu()) for array in arrays]
                target[name][:] = sum(host[1:], host[0]) / len(host)

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy a batch to the contexts; if symbols differ by key, that of the batch is used next."""
        key = getattr(data_batch, "bucket_key", None)
        if self.sym_gen is not None and key not in self._groups:
            symbol = self.sym_gen(key)
            self._groups[key] = self._group(symbol, data_batch.provide_data, data_batch.provide_label, self.execgrp)
            for executor in self._groups[key].execs if self._monitor is not None else ():
                assert self._monitor is not None
                self._monitor.install(executor)
        group = self._current = self._groups[key] if self.sym_gen is not None else self.execgrp
        described = [*group.data_shapes, *group.label_shapes]
        for desc, value in zip(described, [*data_batch.data, *(data_batch.label or ())]):
            axis = DataDesc.get_batch_axis(desc.layout)
            for executor, share in zip(group.execs, group.shares):
                if desc.name in executor.arg_dict:
                    executor.arg_dict[desc.name][:] = parts.cut(value, share, axis)

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs."""
        for executor in self._current.execs:
            executor.forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients."""
        for executor in self._current.execs:
            executor.backward()

    def update_metric(self, metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric, those of each context with its labels."""
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in self._current.label_shapes]
        for i, (executor, share) in enumerate(zip(self._current.execs, self._current.shares)):
            part = labels[i] if pre_sliced else [parts.cut(label, share, axis) for label, axis in zip(labels, axes)]
            metric.update(part, executor.outputs)

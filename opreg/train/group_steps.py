"""Steps of a training loop over all executors of a module, for programs with their own loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray

from ..core.spec import Shape
from ..data.batches import DataDesc
from . import parts

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor
    from opreg.symbol.symbol import Symbol

    from .metric import EvalMetric
    from .monitor import Monitor

__all__ = ["GroupSteps"]


class GroupSteps:
    """The steps of a loop over executors that share a batch."""

    symbol: Symbol
    execs: list[Executor]
    shares: list[slice | None]
    data_shapes: list[DataDesc]
    label_shapes: list[DataDesc]
    param_names: list[str]
    aux_names: list[str]
    for_training: bool

    @property
    def slices(self) -> list[slice | None]:
        """The samples of each context; None for all of them."""
        return self.shares

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return [desc.name for desc in self.data_shapes]

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return [desc.name for desc in self.label_shapes]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self.symbol.list_outputs()

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.output_names)

    @property
    def data_layouts(self) -> list[int]:
        """The axis of samples of each input; -1 if it is not divided."""
        return [DataDesc.get_batch_axis(desc.layout) for desc in self.data_shapes]

    @property
    def label_layouts(self) -> list[int]:
        """The axis of samples of each label."""
        return [DataDesc.get_batch_axis(desc.layout) for desc in self.label_shapes]

    @property
    def output_layouts(self) -> list[int]:
        """The axis of samples of each output."""
        return [DataDesc.get_batch_axis(output.attr("__layout__")) for output in self.symbol]

    @property
    def data_arrays(self) -> list[list[NDArray]]:
        """Each input on each context, in the order of ``data_shapes``."""
        return [[executor.arg_dict[desc.name] for executor in self.execs] for desc in self.data_shapes]

    @property
    def label_arrays(self) -> list[list[NDArray]]:
        """Each label that the network has on each context."""
        return [[executor.arg_dict[desc.name] for executor in self.execs] for desc in self.label_shapes
                if desc.name in self.execs[0].arg_dict]

    @property
    def input_grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradients of the inputs."""
        return [[executor.grad_dict[desc.name] for executor in self.execs] for desc in self.data_shapes]

    def set_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None,
                   allow_extra: bool = False) -> None:
        """Copy weights and auxiliary states to all contexts."""
        for executor in self.execs:
            executor.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> None:
        """Fill dicts with weights and auxiliary states on the host, averaged over the contexts."""
        for names, kind, target in ((self.param_names, "arg_dict", arg_params),
                                    (self.aux_names, "aux_dict", aux_params)):
            for name in names:
                copies = [getattr(executor, kind)[name].as_in_context(cpu()) for executor in self.execs]
                mean = sum(copies[1:], copies[0]) / len(copies)
                if name in target:
                    target[name][:] = mean
                else:
                    target[name] = mean

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Copy a batch to the contexts, and compute the outputs."""
        described = [*self.data_shapes, *self.label_shapes]
        for executor, share in zip(self.execs, self.shares):
            for desc, value in zip(described, [*data_batch.data, *(getattr(data_batch, "label", None) or ())]):
                if desc.name in executor.arg_dict:
                    executor.arg_dict[desc.name][:] = parts.cut(value, share, DataDesc.get_batch_axis(desc.layout))
            executor.forward(is_train=self.for_training if is_train is None else is_train)

    def backward(self, out_grads: Sequence[NDArray] | None = None) -> None:
        """Compute the gradients."""
        axes = self.output_layouts
        for executor, share in zip(self.execs, self.shares):
            executor.backward(None if out_grads is None else
                              [parts.cut(grad, share, axis) for grad, axis in zip(out_grads, axes)])

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """The outputs of the last forward, from index ``begin`` to before ``end``."""
        listed = [list(copies) for copies in zip(*(executor.outputs for executor in self.execs))][begin:end]
        if not merge_multi_context:
            return listed
        return [parts.joined(copies, axis) for copies, axis in zip(listed, self.output_layouts[begin:end])]

    def get_output_shapes(self) -> list[tuple[str, Shape]]:
        """Pairs of name and shape."""
        return list(zip(self.symbol.list_outputs(), [array.shape for array in self.get_outputs()]))

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs."""
        listed: list[Any] = self.input_grad_arrays
        if not merge_multi_context:
            return listed
        return [parts.joined(copies, DataDesc.get_batch_axis(desc.layout))
                for copies, desc in zip(listed, self.data_shapes)]

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the last outputs to a metric, those of each context with its labels."""
        axes, names = [DataDesc.get_batch_axis(desc.layout) for desc in self.label_shapes], self.symbol.list_outputs()
        for i, (executor, share) in enumerate(zip(self.execs, self.shares)):
            part = labels[i] if pre_sliced else [parts.cut(label, share, axis) for label, axis in zip(labels, axes)]
            eval_metric.update_dict(dict(zip([desc.name for desc in self.label_shapes], part)),
                                    dict(zip(names, executor.outputs)))

    def install_monitor(self, mon: Monitor) -> None:
        """Install a monitor."""
        for executor in self.execs:
            mon.install(executor)

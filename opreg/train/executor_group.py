"""DataParallelExecutorGroup: an executor for each context, each working on a part of the batch."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray

from ..core.spec import Shape
from ..data.batches import DataDesc, Descriptions
from ..errors import ArgumentError, ShapeError, other_count, refuse_misspelt
from . import parts
from .group_steps import GroupSteps

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor
    from opreg.symbol.reduction import Reduction
    from opreg.symbol.symbol import Symbol

__all__ = ["DataParallelExecutorGroup"]

# Shapes of batches whose executors are cached.
_MOST_SHAPES = 16


def describe(what: str, shapes: Iterable[object] | None) -> list[DataDesc]:
    """Descriptions of inputs, from descriptions or pairs of name and shape."""
    descriptions = []
    for pair in shapes or ():
        if not isinstance(pair, (tuple, list)) or len(pair) < 2 or not isinstance(pair[0], str):
            raise ArgumentError(f"{what}: expected pairs of a name and a shape, got {pair!r}")
        descriptions.append(pair if isinstance(pair, DataDesc) else DataDesc(*pair))
    return descriptions


class DataParallelExecutorGroup(GroupSteps):
    """The executors of a module, one for each context, over which a batch is divided.

    Parameters
    ----------
    symbol : Symbol
        The network.
    contexts : list of Context
        The devices.
    workload : list of float or None
        Relative size of each context's part of a batch; equal by default.
    data_shapes, label_shapes : list of DataDesc or of pairs, or None
        Names and shapes of the arrays of a batch. Entries without an argument in the network are ignored.
    param_names : sequence of str
        The weights.
    for_training, inputs_need_grad : bool
        Whether gradients are computed, and also those of the inputs.
    shared_group : DataParallelExecutorGroup or None
        Another group with the same number of contexts, whose weights and gradients are shared; inputs and states of the
        same name share memory.
    logger, state_names
        A logger, without effect; and the names of arguments that are neither inputs nor weights.
    fixed_param_names : sequence of str or None
        Weights that are not trained.
    grad_req : str, list or dict
        Gradient requests of the weights; see ``Symbol.bind``.
    group2ctxs : dict, list of dict, or None
        See ``Module``.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> group = DataParallelExecutorGroup(net, [mx.cpu(0), mx.cpu(1)], None, [("data", (4, 3))], None,
    ...                                   ["fc_weight", "fc_bias"], for_training=True, inputs_need_grad=False)
    >>> [executor.arg_dict["data"].shape for executor in group.execs]
    [(2, 3), (2, 3)]
    """

    def __init__(self, symbol: Symbol, contexts: Sequence[Context], workload: Sequence[float] | None,
                 data_shapes: Descriptions, label_shapes: Descriptions | None, param_names: Sequence[str],
                 for_training: bool, inputs_need_grad: bool, shared_group: DataParallelExecutorGroup | None = None,
                 logger: object = logging, fixed_param_names: Sequence[str] | None = None,
                 grad_req: str | Sequence[str] | Mapping[str, str] = "write",
                 state_names: Sequence[str] | None = None, group2ctxs: parts.Groups = None):
        self.symbol, self.contexts = symbol, list(contexts)
        self.workload = [1] * len(self.contexts) if workload is None else list(workload)
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.param_names, self.fixed_param_names = list(param_names), list(fixed_param_names or ())
        self.state_names = list(state_names or ())
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.data_shapes = describe("data_shapes", data_shapes)
        self.label_shapes = describe("label_shapes", label_shapes)
        self.grad_req = self._requests(grad_req)
        if shared_group is not None and len(shared_group.contexts) != len(self.contexts):
            raise ArgumentError(f"bind: shared_group is bound on {len(shared_group.contexts)} contexts, expected "
                                f"{len(self.contexts)}")
        #: Arrays of each context that are no weights; groups that share weights share these.
        self.shared_data_arrays: list[dict[str, NDArray]] = \
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        #: The samples of each context; None for all of them.
        self.shares = self._divide_batch(self._inputs())
        self.execs: list[Executor] = []
        for number, groups in enumerate(parts.places(group2ctxs, len(self.contexts))):
            self.execs.append(self._bind(number, groups, shared_group))
        self._shaped = OrderedDict([(self._key(), (self.execs, self.shares))])

    def _bind(self, number: int, groups: Mapping[str, Context] | None, shared_group: DataParallelExecutorGroup | None
              ) -> Executor:
        inputs, share = self._inputs(), self.shares[number]
        shared = None if shared_group is None else shared_group.execs[number]
        weights = [name for name in self.param_names if shared is None or name in shared.arg_dict]
        shapes: dict[str, Any] = {desc.name: parts.own_shape(desc, share) for desc in inputs}
        return self.symbol.simple_bind(
            self.contexts[number], self.grad_req, {desc.name: desc.dtype for desc in inputs}, group2ctx=groups,
            shared_arg_names=weights, shared_exec=shared, shared_buffer=self.shared_data_arrays[number],
            **shapes)

    def _requests(self, grad_req: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
        inputs = {desc.name for desc in self.data_shapes} if self.inputs_need_grad else set()
        usual = ({*self.param_names} - {*self.fixed_param_names}) | inputs
        if not self.for_training:
            return dict.fromkeys(self.arg_names, "null")
        if isinstance(grad_req, str):
            return {name: grad_req if name in usual else "null" for name in self.arg_names}
        if isinstance(grad_req, Mapping):
            refuse_misspelt("bind: grad_req", grad_req, self.arg_names)
            return {name: grad_req.get(name, "write" if name in usual else "null") for name in self.arg_names}
        if len(grad_req) != len(self.arg_names):
            raise ArgumentError(f"bind: grad_req: {other_count(self.arg_names, len(grad_req), 'request')}")
        return dict(zip(self.arg_names, grad_req))

    def reduce(self, reduction: Reduction | None) -> None:
        """Sum the gradients of the weights over all ranks, or do so no longer, for all shapes of batches."""
        for executors, _ in self._shaped.values():
            for executor in executors:
                executor.reduce(reduction)

    def _key(self) -> tuple[tuple[str, Shape], ...]:
        return tuple((desc.name, desc.shape) for desc in self.data_shapes + self.label_shapes)

    def _inputs(self) -> list[DataDesc]:
        """The inputs and labels that the network has arguments for."""
        arguments = set(self.arg_names)
        return [desc for desc in self.data_shapes + self.label_shapes if desc.name in arguments]

    def _divide_batch(self, inputs: list[DataDesc]) -> list[slice | None]:
        count = len(self.contexts)
        if count == 1:
            return [None]
        parts.agree(inputs)
        size = parts.samples(inputs)
        return [None] * count if size is None else list(parts.shares(size, self.workload))

    @property
    def batch_size(self) -> int | None:
        """Samples of a batch, or None if no layout has an axis of samples."""
        return parts.samples(self._inputs())

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """Each weight on each context, in the order of ``param_names``."""
        return [[executor.arg_dict[name] for executor in self.execs] for name in self.param_names]

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradients of the weights; None for a weight without one."""
        return [[executor.grad_dict[name] for executor in self.execs] for name in self.param_names]

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """Each auxiliary state on each context, in the order of ``aux_names``."""
        return [[executor.aux_dict[name] for executor in self.execs] for name in self.aux_names]

    @property
    def _total_exec_bytes(self) -> int:
        """Bytes of the plans of all executors, without arguments, outputs and gradients."""
        return sum(executor.plan(self.for_training).nbytes for executor in self.execs)

    def reshape(self, data_shapes: Descriptions, label_shapes: Descriptions | None) -> None:
        """Switch to inputs of other shapes; the weights are kept.

        Raises
        ------
        ShapeError
            When a weight would have another shape.
        """
        before = self.data_shapes, self.label_shapes
        self.data_shapes = describe("data_shapes", data_shapes)
        self.label_shapes = describe("label_shapes", label_shapes)
        key = self._key()
        if key not in self._shaped:
            try:
                inputs = self._inputs()
                shares = self._divide_batch(inputs)
                executors = [executor.reshape(partial_shaping=True, allow_up_sizing=True,
                                              **{desc.name: parts.own_shape(desc, share) for desc in inputs})
                             for executor, share in zip(self.execs, shares)]
                self._check_weights(executors[0])
            except Exception:
                self.data_shapes, self.label_shapes = before
                raise
            self._shaped[key] = executors, shares
            if len(self._shaped) > _MOST_SHAPES:
                self._shaped.popitem(last=False)
        self._shaped.move_to_end(key)
        last, (self.execs, self.shares) = self.execs, self._shaped[key]
        for executor, previous in zip(self.execs, last):
            executor._watch_as(previous)

    def _check_weights(self, executor: Executor) -> None:
        for name in self.param_names:
            old, new = self.execs[0].arg_dict[name].shape, executor.arg_dict[name].shape
            if old != new:
                shapes = ", ".join(f"{desc.name} {desc.shape}" for desc in self.data_shapes)
                raise ShapeError(f"inputs of other shapes, {shapes}: the weight {name!r} would have shape {new}, it "
                                 f"has {old}")

"""Executors with sparse arrays.

Operators that compute on stored elements run one by one, as eager calls, and are recorded on the tape. All others are a
plan on dense arrays. It reads dense copies of the sparse arrays that it needs; the gradients of these copies go on
through the tape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opreg.core.graph import Entry, Node, fail
from opreg.core.reports import Explanation, report
from opreg.core.spec import Spec
from opreg.ndarray import autograd, backward_pass, tape
from opreg.ndarray.computation import compute
from opreg.ndarray.context import Context
from opreg.ndarray.creation import zeros
from opreg.ndarray.ndarray import NDArray

from . import infer as inference
from .arrays import ArrayList, BoundArrays
from .executor import Executor
from .head_gradients import HeadGradients, OutGrads, check_head_gradients, order_gradients
from .inspect.monitor import MonitorCallback
from .naming import output_name
from .partitioned_executor import PartitionedExecutor, merge_outputs
from .plans import in_mode
from .reduction import GradientBuckets, Reduction
from .single_thread import SingleThread
from .sparse_cut import SparseCut
from .symbol import Symbol

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["SparseExecutor"]


class _Eager:
    """The nodes of a cut that run one by one, and are recorded.

    Parameters
    ----------
    nodes : list of Node
        The nodes, inputs before users.
    arrays : dict of Node to NDArray
        The variables that they read, or whose gradients go on through the tape.
    requests : dict of Node to (NDArray, str)
        The arrays of gradients, and what is done to them.
    ctx : Context
        The context.
    numbers : bool or str, or None
        Whether results are checked for NaN and infinities.

    Attributes
    ----------
    values : dict of Entry to NDArray
        The variables and results of the last run.
    monitor : function of name and NDArray, or None
        Called with each result.
    """

    def __init__(self, nodes: Sequence[Node], arrays: Mapping[Node, NDArray],
                 requests: Mapping[Node, tuple[NDArray, str]], ctx: Context, numbers: bool | str | None):
        self._nodes, self._arrays, self._requests, self._ctx, self._numbers = nodes, arrays, requests, ctx, numbers
        self.values: dict[Entry, NDArray] = {}
        self._leaves: list[tape.Leaf] = []
        self.monitor: MonitorCallback | None = None

    def run(self, is_train: bool, recorded: bool) -> None:
        """Compute all results."""
        in_mode(functools.partial(self._run, is_train, recorded), self._ctx, is_train)

    def _run(self, is_train: bool, recorded: bool) -> None:
        values = {(node, 0): array.detach() for node, array in self._arrays.items()}
        self._leaves = [tape.Leaf(values[node, 0], *request) for node, request in self._requests.items() if recorded]
        for node, leaf in zip(self._requests, self._leaves):
            values[node, 0]._entry = leaf, 0
        with autograd.record(is_train, self._numbers) if recorded else autograd.pause(is_train):
            for node in self._nodes:
                assert node.op is not None
                try:
                    outs = compute(node.op, node.attrs, [values[entry] for entry in node.inputs], self._ctx)[1]
                except Exception as error:
                    fail(error, node)
                values.update(((node, i), out) for i, out in enumerate(outs))
                if self.monitor is not None:
                    self.monitor(output_name((node, 0)), outs[0].copy())
        self.values = values

    def back(self, gradients: Sequence[tuple[Entry, NDArray | None]], is_train: bool) -> None:
        """Compute the gradients of variables from those of results; None is a gradient of ones."""
        recorded = [(value, gradient) for entry, gradient in gradients
                    if (value := self.values[entry])._entry is not None]
        if recorded:
            backward_pass.backward([value for value, _ in recorded], [gradient for _, gradient in recorded],
                                   train_mode=is_train)
        for leaf, grad in zip(self._leaves, [grad for grad, _ in self._requests.values()]):
            if leaf.req == "write" and not leaf.fresh:  # backward has written no gradient to this leaf
                grad._store(Ellipsis, zeros(grad.shape, self._ctx, grad.dtype))


class SparseExecutor(PartitionedExecutor):
    """An executor with sparse arguments or gradients.

    Outputs of operators that compute on stored elements have the storage types that these give them.
    """

    _reason = "arrays are sparse"

    def __init__(self, symbol: Symbol, ctx: Context, args: list[NDArray], grads: list[NDArray | None],
                 reqs: list[str], aux: list[NDArray], head_grads: OutGrads, make: Callable[..., Executor],
                 known_specs: Mapping[Node, list[Spec]], outputs: Sequence[NDArray], one_by_one: bool,
                 numbers: bool | str | None):
        graph, arrays = symbol._graph(), args + aux
        variables = [node for nodes in graph.variables() for node in nodes]
        self._specs = inference.infer_specs(
            graph, {node: array.shape for node, array in zip(variables, arrays)},
            {node: np.dtype(array.dtype) for node, array in zip(variables, arrays)}, known_specs)
        bound = check_head_gradients(head_grads, symbol.list_outputs(),
                                     [self._specs[node][i] for node, i in graph.heads], ctx,
                                     bool(outputs))
        SingleThread.__init__(self)
        BoundArrays.__init__(self, graph, ctx, args, grads, reqs, aux, bound)
        self._symbol, self._make, self._numbers = symbol, make, numbers
        self._gradients = {True: True, False: None}
        self._bind(one_by_one, outputs)

    def _bind(self, one_by_one: bool, outputs: Sequence[NDArray] = ()) -> None:
        """Decide which nodes run one by one, none unless ``one_by_one``, and bind the rest."""
        graph = self._symbol._graph()
        arrays = dict(zip(self._arguments + self._auxiliary, self.arg_arrays + self.aux_arrays))
        gradients = {node: (grad, req) for node, grad, req in zip(self._arguments, self.grad_arrays, self._reqs)
                  if grad is not None and req != "null"}
        self._cut = cut = SparseCut(graph, self._specs, {node: array.stype for node, array in arrays.items()},
                                    [node for node, (grad, _) in gradients.items() if grad._sparse], one_by_one)
        varying = cut.varying_nodes(gradients)
        # Dense copies and gradients of the entries that cross.
        self._dense_copies = {entry: self._zeros(entry) for entry in cut.crossing
                        if entry[0].op is not None or arrays[entry[0]]._sparse}
        self._crossing_grads = {entry: self._zeros(entry) for entry in cut.crossing if entry[0] in varying}
        bound, late = cut.divided(self.head_grads)
        self._remaining = self._bind_other_nodes(arrays, gradients, cut.divided(outputs)[1], late)
        read = set() if self._remaining is None else set(self._remaining._arguments)
        needed = [*cut.crossing, *cut.heads, *[entry for node in cut.nodes for entry in node.inputs]]
        used = {node for node, _ in needed}
        self._eager = _Eager(cut.nodes, {node: array for node, array in arrays.items() if node in used}, {
            # the remaining graph writes its gradients before this one adds
            node: (grad, "add" if req == "write" and node in read else req)
            for node, (grad, req) in gradients.items() if node in used}, self._ctx, self._numbers)
        self._early_outputs = [self._zeros(entry).tostype(cut.stypes.get(entry, "default")) for entry in cut.heads]
        self._early_head_grads = [None if node.op is not None and node.op.loss(node.attrs) else
                      self._zeros((node, i)) if array is None else array for (node, i), array in zip(cut.heads, bound)]
        self._heads = HeadGradients([None if top is None else top._data for top in self._early_head_grads], bound,
                                    cut.divided(self._output_names)[0], self._ctx)
        late_outputs = [] if self._remaining is None else self._remaining.outputs
        self.outputs = ArrayList("outputs", merge_outputs(cut.early, self._early_outputs, late_outputs))
        self._ran = None

    def _zeros(self, entry: Entry) -> NDArray:
        shape, dtype = self._specs[entry[0]][entry[1]]
        assert shape is not None
        return zeros(shape, self._ctx, dtype)

    def _bind_other_nodes(self, arrays: Mapping[Node, NDArray], gradients: Mapping[Node, tuple[NDArray, str]],
                          outputs: Sequence[NDArray], head_grads: OutGrads) -> Executor | None:
        if not self._cut.remaining:
            return None
        arrays_of, requested = dict(arrays), dict(gradients)
        for entry, variable in self._cut.crossing.items():
            arrays_of[variable] = self._dense_copies[entry] if entry in self._dense_copies else arrays[entry[0]]
            if entry in self._crossing_grads:
                requested[variable] = self._crossing_grads[entry], "write"
        symbol = Symbol(self._cut.remaining)
        arguments, states = symbol._graph().variables()
        requests = [requested.get(node, (None, "null")) for node in arguments]
        return self._make(symbol, args=[arrays_of[node] for node in arguments], grads=[grad for grad, _ in requests],
                          reqs=[req for _, req in requests], aux=[arrays_of[node] for node in states], outputs=outputs,
                          head_grads=head_grads)

    def reduce(self, reduce: Group | Reduction | None) -> None:
        """Sum the gradients of all ranks; see ``Executor.reduce``. All operators then compute on dense arrays, as a
        plan that sums them."""
        reduction = Reduction.of_arguments(reduce, None)
        with self._exclusive():
            self._make = functools.partial(self._make, reduction=reduction)
            self._bind(reduction is None)

    @property
    def _reduced(self) -> GradientBuckets | None:
        return None if self._remaining is None else self._remaining._reduced

    def _parts(self) -> list[Executor]:
        return [] if self._remaining is None else [self._remaining]

    # ------------------------------------------------------------------------------------------------- running

    def _run_steps(self, is_train: bool) -> None:
        self._ran, self._mode = None, is_train
        self._eager.run(is_train, self._keeps_gradients and self._gradients[is_train] is not None)
        values = self._eager.values
        for entry, array in [*zip(self._cut.heads, self._early_outputs), *self._dense_copies.items()]:
            array._store(Ellipsis, values[entry])
        for part in self._parts():
            part._run_steps(is_train)
        self._ran = is_train

    def _store(self) -> None:
        super()._store()
        for node, array in zip(self._auxiliary, self.aux_arrays):
            if array._sparse:
                array._store(Ellipsis, self._dense_copies[node, 0])

    def _back(self, out_grads: OutGrads, is_train: bool) -> None:
        mode = is_train or self._mode
        if self._gradients[mode] is not is_train:
            self._differentiate(mode, is_train)
        out_grads_given = order_gradients("backward", out_grads, self._output_names)
        first, late = self._cut.divided([*out_grads_given, *[None] * (len(self._output_names) - len(out_grads_given))])
        self._heads.take({id(top._data) for top in self._early_head_grads if top is not None}, first)
        if self._ran is not mode:
            self._repeat(mode, functools.partial(self._run_steps, mode))
        self._ran = None
        for part in self._parts():
            part._back(late, is_train)
        self._eager.back([*zip(self._cut.heads, self._early_head_grads), *self._crossing_grads.items()], is_train)

    # ---------------------------------------------------------------------------------------------- inspection

    def _set_monitor(self, callback: MonitorCallback | None, monitor_all: bool) -> None:
        self._eager.monitor = callback
        super()._set_monitor(callback, monitor_all)

    def explain(self, is_train: bool | None = None) -> Explanation:
        """Each step: of the operators that run one by one, with the storage types of inputs and results, and of the
        plan of the others."""
        stypes = self._cut.stypes
        lines = [f"  {node.op.name} {node.name}: {', '.join(stypes.get(entry, 'default') for entry in node.inputs)} -> "
                 f"{stypes.get((node, 0), 'default')}" for node in self._cut.nodes if node.op is not None]
        return Explanation(report([*(["one by one:"] if lines else []), *lines,
                                   *[line for part in self._parts() for line in part.explain(is_train).split("\n")]]))

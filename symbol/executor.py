"""Executor: a symbol bound to arrays, to be run many times."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opreg.core import generators
from opreg.core.gradient import CUT
from opreg.core.invalidation import watch, watch_memory
from opreg.core.op import Op
from opreg.core.settings import named_methods
from opreg.core.spec import is_known, show
from opreg.errors import TRIMMED, ArgumentError, OpError, did_you_mean, trim
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.nesting import arrays_in

from . import infer as inference
from .argument_specs import known_shapes
from .arrays import ArrayList, BoundArrays, reshape_array, zeros_in_shape
from .compile import simplify_forward
from .head_gradients import HeadGradients, OutGrads
from .inspect.monitor import MonitorCallback
from .inspect.plan_reports import PlanReports, ReportedPlan
from .plan import Before, Plan, Segment
from .plans import Plans, run_segment
from .program import Bound, Program
from .reduction import GradientBuckets, Reduction
from .single_thread import SingleThread
from .symbol import Symbol
from .update import Index, Update, Updater

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["Executor", "truth"]


@named_methods("forward", "backward", "update", "step", "plan", "on_register", "on_new_memory")
class Executor(SingleThread, BoundArrays, PlanReports):
    """A graph bound to arrays.

    ``forward`` computes the outputs, ``backward`` the gradients. There are two plans, for inference and for training,
    each built at first use. If the graph has operators that are ``traced``, bind builds one plan at once: the one for
    training if gradients are requested, else the one for inference. Programs make executors with ``Symbol.bind`` and
    ``Symbol.simple_bind``.

    One thread runs an executor at a time. A second thread that enters meanwhile gets an ``OpError``.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        In the order of ``list_arguments`` and ``list_auxiliary_states``; None for an argument without a gradient.
    head_grads : list of NDArray
        Gradients of the outputs that were bound; None for an output whose gradient is an argument of ``backward``.
    outputs : list of NDArray
        Arrays that each forward overwrites. An output that is a variable has the memory of the variable's array.
    """

    def __init__(self, symbol: Symbol, bound: Bound, args: list[NDArray], grads: list[NDArray | None],
                 reqs: list[str], aux: list[NDArray], head_grads: list[NDArray | None],
                 make: Callable[..., Executor], check: bool | str, numbers: bool | str):
        SingleThread.__init__(self)
        BoundArrays.__init__(self, symbol._graph(), bound.ctx, args, grads, reqs, aux, head_grads)
        self._symbol, self._bound, self._make = symbol, bound, make
        # By the mode of a forward: whether the gradients after it are those of training (True), of inference (False),
        # or none are computed (None).
        self._gradients: dict[bool, bool | None] = {True: True, False: None}
        self._plans = Plans(bound, self._gradients, check, numbers)
        self._noted: dict[bool, Before] = {}  # states before the last forward, by its mode
        self._ready: Plan | None = None  # the plan whose forward ran last, until its backward runs
        self.outputs = ArrayList("outputs", map(NDArray, bound.outputs, bound.places))
        self._heads = HeadGradients(bound.head_grads, head_grads, self._output_names, bound.ctx)
        watch(self)
        watch_memory(self)

    _symbol: Symbol
    _mode = False  # the mode of the last forward
    _update: Update | None = None  # the optimizer's update of the weights

    def __reduce__(self) -> NoReturn:
        raise ArgumentError("an executor is bound to memory: pickle or copy its symbol and its arrays, and bind them "
                            "again")

    # --------------------------------------------------------------------------------------------- running

    def plan(self, is_train: bool) -> Plan:
        """The plan for training or inference, built at first use."""
        return self._plans[is_train]

    def forward(self, is_train: bool = False, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Whether operators compute as in training, so that ``backward`` may follow.
        **kwargs : NDArray or NumPy array
            New values of arguments, copied into their arrays.

        Returns
        -------
        list of NDArray
            The outputs; the next forward writes into the same arrays.
        """
        inside, me = self._inside, get_ident()  # the code of _exclusive, inline: the call would take six times as long
        inside += (me,)
        if inside[1] != me:
            self._refuse(me)
        try:
            plans = self._plans
            if plans.orders:
                plans.wait()
            if kwargs:
                self._feed(kwargs)
            if is_train is not True and is_train is not False:
                is_train = truth("forward", is_train)
            plan = plans[is_train]
            changed = plan.changed
            if changed is not None and changed() is not None:
                plan = self._planned(is_train)
            self._ready = None
            self._mode = is_train
            if plan.draws:
                self._noted[is_train] = plan.run_and_note_states(
                    functools.partial(run_segment, plan.forward, self._ctx, is_train))
            else:
                run_segment(plan.forward, self._ctx, is_train)
            for store in plan.stores:
                store()
            self._ready = plan
            return self.outputs
        except Exception as error:
            trim(error)
            raise
        finally:
            del inside[1]

    def backward(self, out_grads: OutGrads = None, is_train: bool = True) -> None:
        """Compute the gradients of all arguments whose ``grad_req`` asks for them.

        Parameters
        ----------
        out_grads : NDArray, list or dict by output name
            Gradients of the outputs. Losses need none. By default the arrays that were bound as ``head_grads`` are
            read; gradients given here are copied into those.
        is_train : bool
            Whether operators such as BatchNorm and Dropout are differentiated as they compute in training, or as in
            inference. False may follow a ``forward`` of either mode.

        Notes
        -----
        Call it after ``forward(is_train=True)``. If that was not called, or not since the last ``backward``, the
        forward pass is run again first: with the current arguments, the random numbers of the last forward and, for
        users' operators, the auxiliary states that it began with. It changes no auxiliary states.
        """
        inside, me = self._inside, get_ident()  # the code of _exclusive, inline: the call would take six times as long
        inside += (me,)
        if inside[1] != me:
            self._refuse(me)
        try:
            self._back(out_grads, is_train if is_train is True else truth("backward", is_train))
        except Exception as error:
            trim(error)
            raise
        finally:
            del inside[1]

    def _back(self, out_grads: OutGrads, is_train: bool) -> None:
        plans = self._plans
        if plans.orders:
            plans.wait()
        mode = is_train or self._mode
        if self._gradients[mode] is not is_train:
            self._differentiate(mode, is_train)
        plan = plans[mode]
        if out_grads is not None or not self._heads.complete:
            self._heads.take(plan.bound, out_grads)
        if self._ready is not plan:
            plan = self._planned(mode)
            self._repeat(mode, functools.partial(run_segment, plan.forward, self._ctx, mode))
        self._ready = None
        run_segment(plan.backward, self._ctx, is_train)
        if CUT.lost:
            _warn_of_cut(self.grad_arrays)

    def set_optimizer(self, optimizer: Any, weights: Sequence[str] | Mapping[str, Index] | None = None) -> None:
        """Choose the optimizer of ``update``.

        Parameters
        ----------
        optimizer : Optimizer, Updater or None
            One of ``opreg.optimizer``. An updater holds the states of weights, and several executors may share it; for
            an optimizer, a new updater is made. None removes the optimizer.
        weights : sequence of str, or dict of str to int or str
            The arguments that are updated, by default all that have gradients. A dict gives the key of each in the
            optimizer; by default that is its index in ``param_idx2name`` of the optimizer, or else its name.

        Raises
        ------
        ArgumentError
            For an unknown argument, or one without a gradient.

        Examples
        --------
        >>> import opreg as mx
        >>> loss = mx.sym.MakeLoss(mx.sym.square(mx.sym.Variable("w") - 3))
        >>> executor = loss.bind(mx.cpu(), [mx.nd.zeros((2,))], args_grad=[mx.nd.zeros((2,))])
        >>> executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.25))
        >>> for _ in range(2):
        ...     _ = executor.forward(is_train=True)
        ...     executor.backward()
        ...     executor.update()
        >>> executor.arg_dict["w"].asnumpy()
        array([2.25, 2.25], dtype=float32)
        """
        with self._exclusive():
            if optimizer is None:
                self._update = None
                return
            updater: Updater = optimizer.updater() if hasattr(optimizer, "updater") else optimizer
            if not hasattr(updater, "count_updates"):
                raise ArgumentError(f"set_optimizer: expected an optimizer or an updater of opreg.optimizer, got "
                                    f"{type(optimizer).__name__}")
            gradients = {node.name: grad for node, grad, req in zip(self._arguments, self.grad_arrays, self._reqs)
                         if grad is not None and req != "null"}
            indices = weights if isinstance(weights, Mapping) else updater.indices(
                list(gradients) if weights is None else weights)
            for name in indices:
                if name not in gradients:
                    what = "no gradient is kept of" if name in self.arg_dict else "there is no argument"
                    raise ArgumentError(f"set_optimizer: {what} {name!r}. {did_you_mean(name, gradients)}")
            self._update = Update(updater, list(indices), list(indices.values()),
                                  [self.arg_dict[name] for name in indices], [gradients[name] for name in indices],
                                  self._reduced)

    def reduce(self, reduce: Group | Reduction | None) -> None:
        """Sum the gradients of all ranks from the next ``backward`` on, as ``reduce`` of ``bind`` does.

        Parameters
        ----------
        reduce : Group or Reduction, or None
            The ranks, as in ``bind``; None for the gradients of this rank alone.

        Raises
        ------
        ArgumentError
            For ``shard="gradients"``, whose arrays only ``simple_bind`` makes.
        """
        reduction = Reduction.of_arguments(reduce, None)
        if any(setting is not None and setting.shard == "gradients" for setting in (reduction, self._bound.reduction)):
            raise ArgumentError("reduce: shard='gradients' stores parts of gradients, which simple_bind allocates")
        with self._exclusive():
            self._bound.reduce(reduction)
            self._make = functools.partial(self._make, reduction=reduction)
            for mode in (False, True):
                self._forget(mode)
            if self._update is not None:
                self.set_optimizer(self._update.updater, dict(zip(self._update.names, self._update.indices)))

    @property
    def _reduced(self) -> GradientBuckets | None:
        """The gradients that are summed over all ranks, as they are bound; None without a reduction."""
        return self._bound.reduced

    def _optimized(self, method: str) -> Update:
        if self._update is None:
            raise OpError(f"{self!r} has no optimizer: set_optimizer comes before {method}")
        return self._update

    @property
    def updater(self) -> Updater | None:
        """The updater that ``set_optimizer`` was given or made; None without an optimizer."""
        return None if self._update is None else self._update.updater

    def update(self) -> None:
        """Update the weights in place by their gradients, with the optimizer of ``set_optimizer``.

        All weights with the same update rule are updated in one step. It reads the learning rate, the weight decay and
        the count of updates from arrays, so that a schedule does not change the plan. ``explain`` lists these steps
        after those of backward.

        Raises
        ------
        OpError
            When no optimizer was set.
        """
        inside, me = self._inside, get_ident()  # the code of _exclusive, inline: the call would take six times as long
        inside += (me,)
        if inside[1] != me:
            self._refuse(me)
        try:
            update = self._optimized("update")
            self._wait()
            update.run(self._ctx)
        except Exception as error:
            trim(error)
            raise
        finally:
            del inside[1]

    def step(self, out_grads: OutGrads = None, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Run one training step: ``forward(is_train=True)``, ``backward()`` and ``update()``.

        On a device that captures work, as CUDA graphs do, all three are one captured graph and one launch.

        Parameters
        ----------
        out_grads : NDArray, list or dict by output name
            Gradients of the outputs, as for ``backward``.
        **kwargs : NDArray or NumPy array
            New values of arguments, copied into their arrays.

        Returns
        -------
        list of NDArray
            The outputs with the weights before the update; the next forward writes into the same arrays.

        Raises
        ------
        OpError
            When no optimizer was set.

        Examples
        --------
        >>> import opreg as mx
        >>> loss = mx.sym.MakeLoss(mx.sym.square(mx.sym.Variable("w") - 3))
        >>> executor = loss.bind(mx.cpu(), [mx.nd.zeros((2,))], args_grad=[mx.nd.zeros((2,))])
        >>> executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.25))
        >>> [float(executor.step()[0].asnumpy()[0]) for _ in range(3)]
        [9.0, 2.25, 0.5625]
        """
        with TRIMMED, self._exclusive():
            update, plan = self._optimized("step"), self._recorded_plan()
            if plan is None:
                self.forward(True, **kwargs)
                self.backward(out_grads)
                self.update()
                return self.outputs
            self._plans.wait()
            if kwargs:
                self._feed(kwargs)
            if out_grads is not None or not self._heads.complete:
                self._heads.take(plan.bound, out_grads)
            segment = update.ready()
            self._ready, self._mode = None, True
            self._noted[True] = plan.run_and_note_states(
                functools.partial(run_segment, self._plans.step_segment(plan, segment), self._ctx, True))
            if CUT.lost:
                _warn_of_cut(self.grad_arrays)
            if segment is None:
                update.update_all()
            return self.outputs

    def _recorded_plan(self) -> Plan | None:
        """The plan for training; None where its segments are not recorded, or a monitor is set."""
        if self._gradients[True] is not True:
            self._differentiate(True, True)
        plan = self._planned(True)
        return None if self._plans.has_monitor or type(plan.forward) is Segment else plan

    def _before(self, mode: bool) -> Before:
        """The states before the last forward of a mode that a caller ran."""
        return self._noted.get(mode, ({}, ()))

    def _repeat(self, mode: bool, forward: Callable[[], None]) -> None:
        """Run a forward again for its backward, with the random numbers of the caller's last one, and without changing
        auxiliary states. If no other forward has run since, users' code reads the states that it read in that one."""
        # a write to a sparse array replaces its data
        states = [array for array in self.aux_arrays if not array._sparse]
        now = [array._ctx.run(array._data.copy) for array in states]
        draws, before = self._before(mode)
        try:
            for data, former, ctx in before if self._mode is mode else ():
                ctx.run(data.__setitem__, Ellipsis, former)
            with generators.same_draws(draws):
                forward()
        finally:
            for array, data in zip(states, now):
                array._ctx.run(array._data.__setitem__, Ellipsis, data)

    def _differentiate(self, mode: bool, is_train: bool | None) -> None:
        """Set whether gradients after a forward pass in ``mode`` are those of training or of inference."""
        self._gradients[mode] = is_train
        self._forget(mode)

    def _wait(self) -> None:
        """Wait for work in flight that reads or writes the weights."""
        self._plans.wait()

    def _forget(self, mode: bool) -> None:
        """Drop the plans for a mode; the next use builds them again."""
        self._plans.forget(mode)
        self._ready = self._plans.step = None

    def _planned(self, mode: bool) -> Plan:
        """The plan for a mode, built again if something has changed that users' code read when it was traced."""
        plan = self._plans[mode]
        if plan.changed is not None and plan.changed() is not None:
            self._forget(mode)
            plan = self._plans[mode]
        return plan

    def _run_steps(self, is_train: bool) -> None:
        """Run the steps of ``forward``, without storing new auxiliary states."""
        self._plans.wait()
        plan = self._planned(is_train)
        self._ready, self._mode = None, is_train
        self._noted[is_train] = plan.run_and_note_states(
            functools.partial(run_segment, plan.forward, self._ctx, is_train))
        self._ready = plan

    def _store(self) -> None:
        """Store the new auxiliary states of the last forward."""
        for store in [] if self._ready is None else self._ready.stores:
            store()

    def get_optimized_symbol(self) -> Symbol:
        """The graph of the forward pass for these shapes, without identities, and with equal expressions merged.

        Returns
        -------
        Symbol
            Its arguments are those that the outputs still depend on. ``explain`` shows the steps of the plan, in which
            further passes have fused operators.

        Examples
        --------
        >>> import opreg as mx
        >>> x = mx.sym.var("x")
        >>> bound = (mx.sym.exp(x) + mx.sym.exp(x)).simple_bind(mx.cpu(), x=(2,))
        >>> len(bound.get_optimized_symbol().get_internals())  # x, one exp, and the sum
        3
        """
        return Symbol(simplify_forward(Program.of(self._bound, self._keeps_gradients)).heads)

    def on_register(self, op: Op | None) -> None:
        """Drop all plans, since kernels and gradients are chosen when a plan is built."""
        for mode in (False, True):
            self._forget(mode)

    def on_new_memory(self, array: NDArray) -> None:
        """Drop all plans if they hold the former memory of an array."""
        bound = self._bound
        bound_arrays = zip(bound.arrays, [*self.arg_arrays, *self.aux_arrays])
        nodes = [node for node, other in bound_arrays if other is array]
        for node in nodes:
            before, bound.arrays[node] = bound.arrays[node], array._data
            for at, output in enumerate(self.outputs):
                if output._data is before:  # the output is this variable
                    bound.outputs[at] = output._data = array._data
        if nodes:
            self.on_register(None)

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False,
                **kwargs: Sequence[int]) -> Executor:
        """An executor for other argument shapes, which shares the arrays whose shapes do not change.

        An array that becomes smaller is a view of the first elements of the old one; so are outputs and bound head
        gradients. A head gradient that would have to be larger is not bound any more.

        Parameters
        ----------
        partial_shaping : bool
            Allow shapes of arguments that are not named to change.
        allow_up_sizing : bool
            Allow arrays to become larger; they get new memory.
        **kwargs : tuple of int
            New shapes by argument name.
        """
        arguments = {node.name for node in self._arguments}
        for name in kwargs:
            if name not in arguments:
                raise ArgumentError(f"reshape: there is no argument {name!r}. {did_you_mean(name, arguments)}")
        variables = self._arguments + self._auxiliary
        arrays = self.arg_arrays + self.aux_arrays
        graph, named = known_shapes(self._symbol._graph(), self._symbol, "reshape", (), kwargs)
        shapes = inference.infer_shapes(graph, named)
        if not all(is_known(shapes[node][0]) for node in variables):  # other variables keep their shapes
            named.update((node, old.shape) for node, old in zip(variables, arrays) if not is_known(shapes[node][0]))
            shapes = inference.infer_shapes(graph, named)
        arrays = [reshape_array(node.name, old, shapes[node][0], partial_shaping or node.name in kwargs,
                                allow_up_sizing)
                  for node, old in zip(variables, arrays)]
        args, aux = arrays[:len(self._arguments)], arrays[len(self._arguments):]
        grads = [None if grad is None else grad if old.shape == arg.shape else
                 zeros_in_shape(grad, arg.shape) for arg, old, grad in zip(args, self.arg_arrays, self.grad_arrays)]
        executor = self._make(self._symbol, args=args, grads=grads, reqs=self._reqs, aux=aux, outputs=self.outputs,
                              head_grads=self.head_grads)
        if self._update is not None:
            executor.set_optimizer(self._update.updater, dict(zip(self._update.names, self._update.indices)))
        executor._watch_as(self)
        return executor

    # ------------------------------------------------------------------------------------------- inspection

    def _set_monitor(self, callback: MonitorCallback | None, monitor_all: bool) -> None:
        self._plans.monitor(callback, monitor_all)

    def _memory_text(self) -> str:
        """The memory of the plans, as text."""
        with self._exclusive():
            total = self.plan(self._keeps_gradients).nbytes
        return "".join(f"{'training' if is_train else 'inference'} plan: {plan.nbytes / 2 ** 20:.2f} MB\n"
                       for is_train, plan in sorted(self._plans.items())) + f"Total {total >> 20} MB allocated\n"

    def _plans_of(self, is_train: bool) -> Sequence[ReportedPlan]:
        plan = self._plans[is_train]
        found, update = [("forward", plan.forward), ("backward", plan.backward)], self._update
        step = self._plans.step
        more = [] if step is None or step[0] is not plan else [f"a step of all, {step[2].description()}"]
        if update is not None and update.segment is None:
            more.append(f"update: {update.reason}")
        elif update is not None and update.segment is not None and is_train:
            found.append(("update", update.segment))
        return [ReportedPlan(plan, found, self._bound, functools.partial(run_segment, ctx=self._ctx,
                                                                         is_train=is_train), more,
                             self._plans.reports.get(is_train))]

    def _plans_to_measure(self, is_train: bool) -> Sequence[ReportedPlan]:
        self._ready = self._plans.step = None
        return self._plans_of(is_train)

    def _nbytes_bound(self) -> dict[str, int]:
        groups: dict[str, Sequence[NDArray | None]] = {
            "arguments": self.arg_arrays, "gradients": self.grad_arrays, "states": self.aux_arrays,
            "outputs": self.outputs}
        if self._update is not None:
            groups["optimizer states"] = [array for state in self._update.updater.states.values()
                                          for array in arrays_in(state)]
        return {name: sum({id(array._memory): array._memory.nbytes for array in arrays if array is not None}.values())
                for name, arrays in groups.items()}

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r} on {self._ctx}>"


def _warn_of_cut(grads: Sequence[NDArray | None]) -> None:
    """Warn where gradients of integer dtype have lost their fractions."""
    CUT.warn(grad._data.dtype for grad in grads if grad is not None)


def truth(method: str, is_train: object) -> bool:
    """The parameter ``is_train`` as a bool; an error for an array, which was meant as another parameter."""
    if hasattr(is_train, "shape") or isinstance(is_train, (list, tuple, dict)):
        shape = f" of shape {show(is_train.shape)}" if hasattr(is_train, "shape") else ""
        raise ArgumentError(f"{method}: its {'first' if method == 'forward' else 'second'} parameter is is_train, got "
                            f"{type(is_train).__name__}{shape}; "
                            + ("arguments go by name, as in forward(data=…)" if method == "forward" else
                               "gradients of several outputs go in a list, as in backward([g, h])"))
    return bool(is_train)

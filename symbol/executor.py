"""Executor: a symbol bound to arrays, to be run many times."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from opreg.backends.devices import staging
from opreg.core import generators
from opreg.core.array_module import ENTERED
from opreg.core.backward_graph import GRADIENTS
from opreg.core.gradient import CUT
from opreg.core.graph import Node
from opreg.core.looks import Explanation, Shown
from opreg.core.mode import MODE, quiet
from opreg.core.op import EDITION, Op, watch
from opreg.core.spec import known, show
from opreg.core.versions import WATCHED, wrote
from opreg.errors import TRIMMED, ArgumentError, OpError, ShapeError, did_you_mean, trim
from opreg.ndarray.context import Context
from opreg.ndarray.finite import inherited
from opreg.ndarray.ndarray import NDArray

from . import infer as inference
from .arrays import Named, reshaped, zeros
from .checking import KernelReport, check_kernels, titled
from .compile import compile_plan
from .estimate import Estimate, Machine, estimate, machine_of
from .finite import check_numbers
from .head_gradients import HeadGradients, OutGrads
from .memory_use import MemoryUse, results_between
from .plan import Plan, Segment, Step
from .profile import Profile, profile
from .program import Bound
from .reduction import Reduced, Reduction
from .replay import segments
from .sharding import leaves
from .symbol import Symbol, output_name
from .update import Index, Update, Updater

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["Executor", "truth"]

A = TypeVar("A", bound=NDArray | None)


class Executor(Shown):
    """A graph bound to arrays.

    ``forward`` computes the outputs, ``backward`` the gradients. There are two plans, for inference and training,
    each built at first use; of a graph with operators that are ``traced``, the one for training, or for inference where
    no gradients are kept, is built when it is bound. Programs make executors with ``Symbol.bind`` and
    ``Symbol.simple_bind``.

    An executor is one thread's at a time: another that comes in meanwhile gets an ``OpError``.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        In the order of ``list_arguments`` and ``list_auxiliary_states``; None where no gradient is kept.
    head_grads : list of NDArray
        Gradients of the outputs that are bound; None where ``backward`` is given them.
    outputs : list of NDArray
        Written anew by each forward.
    """

    def __init__(self, symbol: Symbol, bound: Bound, args: list[NDArray], grads: list[NDArray | None],
                 reqs: list[str], aux: list[NDArray], head_grads: list[NDArray | None],
                 make: Callable[..., Executor], check: bool | str = False, numbers: bool | str = False):
        self._hold(symbol, bound.ctx, args, grads, reqs, aux, head_grads, make)
        self._bound = bound
        self._plans: dict[bool, Plan] = {}  # those in use: without a monitor, or with one
        self._others: dict[bool, Plan] = {}
        self._check, self._numbers = check, numbers  # whether kernels and numbers are checked
        self._reports: dict[bool, Callable[[], KernelReport]] = {}
        # Where generators stood before the last forward of a mode.
        self._drawn: dict[bool, dict[tuple[str, int], object]] = {}
        self._ready: Plan | None = None  # the plan whose forward was the last to run, and its backward has not
        self.outputs = [NDArray(data, ctx) for data, ctx in zip(bound.outputs, bound.places)]
        self._heads = HeadGradients(bound.head_grads, head_grads, self._output_names, bound.ctx)
        watch(self)

    def _hold(self, symbol: Symbol, ctx: Context, args: list[NDArray], grads: list[NDArray | None], reqs: list[str],
              aux: list[NDArray], head_grads: list[NDArray | None], make: Callable[..., Executor]) -> None:
        """Take what every executor has."""
        self._symbol, self._ctx, self._make = symbol, ctx, make
        self._arguments, self._auxiliary = symbol._graph().variables()
        self.arg_arrays, self.grad_arrays, self.aux_arrays, self._reqs = args, grads, aux, reqs
        self.head_grads = head_grads
        self._output_names = symbol.list_outputs()
        self._monitor: tuple[Callable, bool] | None = None
        self._mode = False  # of the last forward
        # How gradients are taken that follow a forward of either mode: as in training, in inference, or not at all.
        self._gradients: dict[bool, bool | None] = {True: True, False: None}
        # Threads that run this, in the order they came, behind a number that keeps the list's memory.
        self._inside, self._process = [0], os.getpid()
        # By context on a device: what orders runs on several of its streams, since they use the same memory.
        self._orders: dict[Context, Callable[[], None]] = {}
        self._dicts: dict[str, Named[Any]] = {}
        self._staging: dict[str, Callable[[np.ndarray], None] | None] = {}  # of arguments on devices, by name
        self._update: Update | None = None  # how weights move
        # Forward, backward and update as one, and what that is made of.
        self._whole: tuple[Plan, Segment | None, Segment] | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("an executor is bound to memory: pickle or copy its symbol and its arrays, and bind them again")

    # --------------------------------------------------------------------------------------------- questions

    def _dict(self, what: str, named: Iterable[str], arrays: Sequence[A]) -> Named[A]:
        """Arrays by names, which are gone through once: programs ask for the dict anew for every array."""
        if what not in self._dicts:
            names = list(named)
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ArgumentError(f"{what}: the name {min(twice)!r} occurs twice; use the list instead")
            self._dicts[what] = Named(what, names, arrays)
        return self._dicts[what]

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Arguments by name."""
        return self._dict("arg_dict", (node.name for node in self._arguments), self.arg_arrays)

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradients by argument name, None where none is kept."""
        return self._dict("grad_dict", (node.name for node in self._arguments), self.grad_arrays)

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return self._dict("aux_dict", (node.name for node in self._auxiliary), self.aux_arrays)

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        return self._dict("output_dict", self._output_names, self.outputs)

    # ------------------------------------------------------------------------------------------- one at a time

    def _refuse(self, me: int) -> None:
        """A thread has come in behind another. It stays out, unless the other was one of the process that forked."""
        if self._process != os.getpid():
            self._process, self._inside[1:] = os.getpid(), [me]
            return
        self._inside.remove(me)
        raise OpError(f"{self!r}: another thread runs this executor, whose memory serves one at a time. Bind one for "
                      "each thread, which may share arguments, or let them wait for each other")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A stretch of code for one thread at a time, which may come in again, as users' operators do."""
        inside, me = self._inside, get_ident()
        inside.append(me)
        if inside[1] != me:
            self._refuse(me)
        try:
            yield
        finally:
            del inside[1]

    # --------------------------------------------------------------------------------------------- running

    def plan(self, is_train: bool) -> Plan:
        """The plan for training or inference, built at first use."""
        plan = self._plans.get(is_train)
        if plan is None:
            edition = EDITION[0]
            with inherited(self._numbers):
                plan = compile_plan(self._bound, is_train, self._gradients[is_train], self._monitor is not None)
            if self._check:
                self._reports[is_train] = check_kernels(plan, self._check != "report")
            if self._numbers:
                check_numbers(plan, self._numbers)
            for ctx in set(plan.contexts.values()) - self._orders.keys():
                order = ctx.backend.order(ctx.device_id)
                if order is not None:
                    self._orders[ctx] = order
            if edition == EDITION[0]:  # else another thread has registered something meanwhile
                self._plans[is_train] = plan
        return plan

    def forward(self, is_train: bool = False, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Whether to run as in training, so that ``backward`` may follow.
        **kwargs : NDArray or NumPy array
            New values of arguments, copied into their arrays.

        Returns
        -------
        list of NDArray
            The outputs; the next forward writes into the same arrays.
        """
        inside, me = self._inside, get_ident()  # what _alone does, in a sixth of the time
        inside.append(me)
        if inside[1] != me:
            self._refuse(me)
        try:
            if self._orders:
                self._wait()
            if kwargs:
                self._feed(kwargs)
            if is_train is not True and is_train is not False:
                is_train = truth("forward", is_train)
            plan = self._plans.get(is_train) or self.plan(is_train)
            self._ready = None
            self._mode = is_train
            if plan.draws:
                self._drawn[is_train] = plan.noting(functools.partial(self._run, plan, plan.forward, is_train))
            else:
                self._run(plan, plan.forward, is_train)
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
        """Compute the gradients of all arguments that asked for theirs.

        Parameters
        ----------
        out_grads : NDArray, list or dict by output name
            Gradients of the outputs. Losses need none. Those that are bound, as ``head_grads`` of ``bind``, are read
            where they lie; others that are given in their stead are copied into them.
        is_train : bool
            Whether operators such as BatchNorm and Dropout are differentiated as they compute in training; else as in
            inference, which may follow a ``forward`` of either mode.

        Notes
        -----
        Follows ``forward(is_train=True)``. Called without, or twice, it runs that forward by itself first, with the
        arguments as they are, the random numbers of the last one, and leaving auxiliary states alone.
        """
        inside, me = self._inside, get_ident()  # what _alone does, in a sixth of the time
        inside.append(me)
        if inside[1] != me:
            self._refuse(me)
        try:
            self._back(out_grads, is_train if is_train is True else truth("backward", is_train))
        except Exception as error:
            trim(error)
            raise
        finally:
            del inside[1]

    def _wait(self) -> None:
        """Let the current streams wait for those of the run before, which used the same memory."""
        for order in self._orders.values():
            order()

    def _back(self, out_grads: OutGrads, is_train: bool) -> None:
        self._wait()
        mode = is_train or self._mode
        if self._gradients[mode] is not is_train:
            self._differentiate(mode, is_train)
        plan = self._plans.get(mode) or self.plan(mode)
        if out_grads is not None or not self._heads.complete:
            self._heads.take(plan.bound, out_grads)
        if self._ready is not plan:
            self._repeat(mode, functools.partial(self._run, plan, plan.forward, mode))
        self._ready = None
        self._run(plan, plan.backward, is_train)
        self._tell_cut()

    def _tell_cut(self) -> None:
        """Say what gradients of whole numbers have lost."""
        if CUT.lost:
            CUT.tell(array._data.dtype for array in self.grad_arrays if array is not None)

    def set_optimizer(self, optimizer: Any, weights: Sequence[str] | Mapping[str, Index] | None = None) -> None:
        """Choose how ``update`` moves weights.

        Parameters
        ----------
        optimizer : Optimizer, Updater or None
            One of ``opreg.optimizer``. An updater keeps the states of weights, and may serve several executors; an
            optimizer gets one of its own. None for no updates any more.
        weights : sequence of str, or dict of str to int or str
            The arguments that are moved, by default all that gradients are kept of. A dict says what the optimizer
            knows them by; that is else their number in its ``param_idx2name``, or their name.

        Raises
        ------
        ArgumentError
            For an argument that there is not, or that no gradient is kept of.

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
        with self._alone():
            self._whole = None
            if optimizer is None:
                self._update = None
                return
            updater: Updater = optimizer.updater() if hasattr(optimizer, "updater") else optimizer
            if not hasattr(updater, "settle"):
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
        """From now on let gradients become those of all ranks, as ``reduce`` of ``bind`` does.

        Parameters
        ----------
        reduce : Group or Reduction, or None
            The ranks; None for gradients of this rank alone.

        Raises
        ------
        ArgumentError
            For parts of gradients, which ``simple_bind`` makes.
        """
        reduction = Reduction.asked(reduce, None)
        if any(each is not None and each.shard == "gradients" for each in (reduction, self._bound.reduction)):
            raise ArgumentError("reduce: shard='gradients' keeps parts of gradients, which simple_bind makes")
        with self._alone():
            self._bound.reduce(reduction)
            self._make = functools.partial(self._make, reduction=reduction)
            for mode in (False, True):
                self._forget(mode)
            if self._update is not None:
                self.set_optimizer(self._update.updater, dict(zip(self._update.names, self._update.indices)))

    @property
    def _reduced(self) -> Reduced | None:
        """Which gradients become those of all ranks."""
        return self._bound.reduced

    def _optimized(self, method: str) -> Update:
        if self._update is None:
            raise OpError(f"{self!r} has no optimizer: set_optimizer comes before {method}")
        return self._update

    @property
    def updater(self) -> Updater | None:
        """The updater that ``set_optimizer`` was given, or has made; None where there is none."""
        return None if self._update is None else self._update.updater

    def update(self) -> None:
        """Move the weights along their gradients, in place, as ``set_optimizer`` says.

        All weights that move alike are one step, which reads learning rate, decay and the number of the update where
        they stand: a schedule changes nothing else. ``explain`` shows these steps behind those of backward.

        Raises
        ------
        OpError
            When no optimizer was set.
        """
        inside, me = self._inside, get_ident()  # what _alone does, in a sixth of the time
        inside.append(me)
        if inside[1] != me:
            self._refuse(me)
        try:
            update = self._optimized("update")
            self._wait()
            segment = update.ready()
            if segment is None:
                update.alone()
            else:
                self._run_unseen(segment, True)
        except Exception as error:
            trim(error)
            raise
        finally:
            del inside[1]

    def step(self, out_grads: OutGrads = None, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Take a step of training: ``forward(is_train=True)``, ``backward()`` and ``update()``.

        On a device that captures work all three are one graph, which one launch replays.

        Parameters
        ----------
        out_grads : NDArray, list or dict by output name
            Gradients of the outputs, as ``backward`` has them.
        **kwargs : NDArray or NumPy array
            New values of arguments, copied into their arrays.

        Returns
        -------
        list of NDArray
            The outputs, before the weights moved; the next forward writes into the same arrays.

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
        with TRIMMED, self._alone():
            update, plan = self._optimized("step"), self._recorded_plan()
            if plan is None:
                self.forward(True, **kwargs)
                self.backward(out_grads)
                self.update()
                return self.outputs
            self._wait()
            if kwargs:
                self._feed(kwargs)
            if out_grads is not None or not self._heads.complete:
                self._heads.take(plan.bound, out_grads)
            segment = update.ready()
            self._ready, self._mode = None, True
            self._drawn[True] = plan.noting(functools.partial(self._run_unseen, self._as_one(plan, segment), True))
            self._tell_cut()
            if segment is None:
                update.alone()
            return self.outputs

    def _recorded_plan(self) -> Plan | None:
        """The plan for training, where its segments are recorded and nobody watches."""
        if self._gradients[True] is not True:
            self._differentiate(True, True)
        plan = self._plans.get(True) or self.plan(True)
        return None if self._monitor is not None or type(plan.forward) is Segment else plan

    def _as_one(self, plan: Plan, update: Segment | None) -> Segment:
        """Forward, backward and update as one segment."""
        if self._whole is None or self._whole[0] is not plan or self._whole[1] is not update:
            updates = [] if update is None else update.steps
            stores = [Step(None, "copy", [], "auxiliary states", plan.stores, [], self._ctx)] if plan.stores else []
            make = segments([*plan.contexts.values(), *[step.ctx for step in updates]])
            self._whole = plan, update, make([*plan.forward.steps, *stores, *plan.backward.steps, *updates])
        return self._whole[2]

    def _draws(self, mode: bool) -> dict[tuple[str, int], object]:
        """Where generators stood before the last forward of a mode that a caller ran."""
        return self._drawn.get(mode, {})

    def _repeat(self, mode: bool, forward: Callable[[], None]) -> None:
        """Run a forward for its backward, with the random numbers of the last that a caller ran; auxiliary states stay
        as they are."""
        states = self.aux_arrays
        before = [array._ctx.run(array._data.copy) for array in states]
        try:
            with generators.again(self._draws(mode)):
                forward()
        finally:
            for array, data in zip(states, before):
                array._ctx.run(array._data.__setitem__, Ellipsis, data)

    def _differentiate(self, mode: bool, is_train: bool | None) -> None:
        """From now on take gradients that follow a forward of a mode as in training, or as in inference."""
        self._gradients[mode] = is_train
        self._forget(mode)

    def _forget(self, mode: bool) -> None:
        """Make the plans for a mode anew when they are used again."""
        self._plans.pop(mode, None)
        self._others.pop(mode, None)
        self._ready = self._whole = None

    def _go(self, is_train: bool) -> None:
        """The steps of ``forward``, without what is stored behind them."""
        self._wait()
        plan = self._plans.get(is_train) or self.plan(is_train)
        self._ready, self._mode = None, is_train
        self._drawn[is_train] = plan.noting(functools.partial(self._run, plan, plan.forward, is_train))
        self._ready = plan

    def _store(self) -> None:
        """Let new auxiliary states take their places."""
        for store in [] if self._ready is None else self._ready.stores:
            store()

    def on_register(self, op: Op) -> None:
        """Plan anew: kernels and gradients are chosen with the plan."""
        for mode in (False, True):
            self._forget(mode)
        if self._update is not None:
            self._update.forget()

    def _run(self, plan: Plan, segment: Segment, is_train: bool) -> None:
        """Run a segment in its mode: nothing recorded, this context the current one, no numeric warnings."""
        if self._monitor is None:
            self._run_unseen(segment, is_train)
        else:
            self._in_mode(is_train, functools.partial(segment.run, functools.partial(self._report, plan)))
            segment.targets.wrote()

    def _run_unseen(self, segment: Segment, is_train: bool) -> None:
        """Do so without telling the monitor."""
        if segment.native is not None:
            segment.native()
        elif segment.plain:
            quiet(segment.run)
        else:
            self._in_mode(is_train, segment.run)
        if WATCHED:
            (segment.noted or segment.targets).wrote()

    def _in_mode(self, is_train: bool, function: Callable[[], None]) -> None:
        """Call a function in the mode that steps run in."""
        if ENTERED:
            function = functools.partial(self._entered, function)
        thread = MODE.__dict__
        token = thread["set"](thread["now"]().computing(is_train, self._ctx))
        try:
            with np.errstate(all="ignore"):
                function()
        finally:
            thread["reset"](token)

    def _entered(self, function: Callable[[], None]) -> None:
        """Call a function on the device of this context."""
        with self._ctx.entered():
            function()

    def _report(self, plan: Plan, step: Step) -> None:
        """Tell the monitor what a step has computed."""
        node = step.node
        if node is None or node.op is None or self._monitor is None:
            return
        callback, everything = self._monitor
        ctx = plan.contexts[node]
        if everything:
            names = node.op.arguments(node.attrs) + node.op.auxiliary(node.attrs)
            for name, entry in zip(names, node.inputs):
                if plan.arrays.get(entry) is not None:
                    callback(f"{node.name}_{name}", NDArray(plan.arrays[entry], ctx).copy())
        for i, data in enumerate(step.outs[:node.op.visible(node.attrs)]):
            if data is not None:
                callback(told(node, i), NDArray(data, ctx).copy())

    def _feed(self, values: Mapping[str, NDArray | np.ndarray]) -> None:
        arguments = self.arg_dict
        for name, value in values.items():
            if name not in arguments:
                raise ArgumentError(f"forward: unknown argument {name!r}. {did_you_mean(name, arguments)}")
            if not isinstance(value, (NDArray, np.ndarray)):
                raise ArgumentError(f"forward: {name} must be an NDArray or a NumPy array, got {type(value).__name__}")
            if tuple(value.shape) != arguments[name].shape:
                raise ShapeError(f"forward: {name} has shape {show(value.shape)}, it is bound with "
                                 f"{show(arguments[name].shape)}; executor.reshape makes room for another")
        for name, value in values.items():
            argument = arguments[name]
            if isinstance(argument._data, np.ndarray) or isinstance(value, NDArray):
                argument._store(Ellipsis, value)
            else:
                self._bring(name, argument, value)

    def _bring(self, name: str, argument: NDArray, value: np.ndarray) -> None:
        """Store numbers of the host in an argument on a device, without waiting for that."""
        if name not in self._staging:
            ctx = argument.context
            self._staging[name] = staging(ctx.xp, argument._data, ctx.device_id)
        bring = self._staging[name]
        if bring is None:
            argument._store(Ellipsis, value)
        else:
            quiet(bring, value)
            wrote(argument._data)

    # ---------------------------------------------------------------------------------------------- arrays

    def _get_outputs(self) -> list[NDArray]:
        """The outputs, by the name that programs of MXNet call."""
        return list(self.outputs)

    def copy_params_from(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values into arguments and auxiliary states by name, casting their dtype.

        Raises
        ------
        ArgumentError
            For a name that the graph does not have, unless ``allow_extra_params``.
        """
        todo = []
        for what, own, params in (("argument", self.arg_dict, arg_params),
                                  ("auxiliary state", self.aux_dict, aux_params or {})):
            for name, value in params.items():
                if name in own:
                    if tuple(value.shape) != own[name].shape:
                        raise ShapeError(f"copy_params_from: {name} has shape {show(value.shape)}, expected "
                                         f"{show(own[name].shape)}")
                    todo.append((own[name], value))
                elif not allow_extra_params:
                    raise ArgumentError(f"copy_params_from: there is no {what} {name!r}. {did_you_mean(name, own)}")
        for target, value in todo:  # only now: nothing is half done
            target._store(Ellipsis, value)

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False,
                **kwargs: Sequence[int]) -> Executor:
        """An executor for other argument shapes, which shares the arrays whose shapes stay.

        What becomes smaller, outputs and bound head gradients included, is the front of what there is. Head gradients
        that would have to be larger are bound no more.

        Parameters
        ----------
        partial_shaping : bool
            Allow shapes of arguments that are not named to change.
        allow_up_sizing : bool
            Allow arrays to become larger; new memory is made for them.
        **kwargs : tuple of int
            New shapes by argument name.
        """
        arguments = {node.name for node in self._arguments}
        for name in kwargs:
            if name not in arguments:
                raise ArgumentError(f"reshape: there is no argument {name!r}. {did_you_mean(name, arguments)}")
        variables = self._arguments + self._auxiliary
        arrays = self.arg_arrays + self.aux_arrays
        graph, named = self._symbol._known_shapes("reshape", (), kwargs)
        shapes = inference.variable_shapes(graph, named)
        if not all(known(shapes[node]) for node in variables):  # what does not follow stays as it is
            named.update((node, old.shape) for node, old in zip(variables, arrays) if not known(shapes[node]))
            shapes = inference.variable_shapes(graph, named)
        arrays = [reshaped(node.name, old, shapes[node], partial_shaping or node.name in kwargs, allow_up_sizing)
                  for node, old in zip(variables, arrays)]
        args, aux = arrays[:len(self._arguments)], arrays[len(self._arguments):]
        grads = [None if grad is None else grad if old.shape == arg.shape else
                 NDArray(zeros(grad.context, arg.shape, grad.dtype), grad.context)
                 for arg, old, grad in zip(args, self.arg_arrays, self.grad_arrays)]
        executor = self._make(self._symbol, args=args, grads=grads, reqs=self._reqs, aux=aux, outputs=self.outputs,
                              head_grads=self.head_grads)
        if self._update is not None:
            executor.set_optimizer(self._update.updater, dict(zip(self._update.names, self._update.indices)))
        executor._watch_as(self)
        return executor

    # ------------------------------------------------------------------------------------------- inspection

    def set_monitor_callback(self, callback: Callable[[str, NDArray], None] | None, monitor_all: bool = False) -> None:
        """Call a function with name and value of every output of every node as it is computed.

        Parameters
        ----------
        callback : function of name and NDArray, or None
            None stops it.
        monitor_all : bool
            Inputs too.
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"set_monitor_callback: expected a function, got {type(callback).__name__}")
        with self._alone():
            if (callback is None) is not (self._monitor is None):
                self._plans, self._others = self._others, self._plans
            self._monitor = None if callback is None else (callback, monitor_all)

    def _watch_as(self, other: Executor) -> None:
        """Have the monitor that another executor has."""
        if self._monitor != other._monitor:
            self.set_monitor_callback(*other._monitor or (None,))

    def debug_str(self) -> str:
        """Every node with its inputs, a line each, and what the plans hold in memory."""
        with self._alone():
            total = self.plan(self._keeps_gradients).nbytes
        return self._symbol.debug_str() + "".join(
            f"{'training' if is_train else 'inference'} plan: {plan.nbytes / 2 ** 20:.2f} MB\n"
            for is_train, plan in sorted(self._plans.items())) + f"Total {total >> 20} MB allocated\n"

    def explain(self, is_train: bool | None = None) -> Explanation:
        """Each step of a plan: its node, its kernel and why faster ones declined, where its result lives.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.
        """
        with self._alone():
            plan = self.plan(self._keeps_gradients if is_train is None else bool(is_train))
        lines = [f"{'training' if plan.is_train else 'inference'} plan, {plan.nbytes} bytes beside arguments, outputs "
                 "and gradients"]
        for title, segment in self._segments(plan):
            if segment.steps:
                lines.append(f"{title}, {segment.said()}:" if segment.said() else f"{title}:")
            for number, step in enumerate(segment.steps):
                name = f"{step.title}: " if step.title else "" if step.node is None else f"{titled(step.node)}: "
                declined = "".join(f"; {kernel} declined: {reason}" for kernel, reason in step.declined)
                copies = step.copies and f"; {step.copies}"
                said = segment.said(step) and f"; {segment.said(step)}"
                lines.append(f"  {number:4} {name}{step.kernel}{declined}{copies} -> {step.where}{said}")
        if self._whole is not None and self._whole[0] is plan:
            lines.append(f"a step of all, {self._whole[2].said()}")
        if self._update is not None and self._update.segment is None:
            lines.append(f"update: {self._update.reason}")
        return Explanation("\n".join(lines))

    def _segments(self, plan: Plan) -> list[tuple[str, Segment]]:
        """The segments that run with a plan, and what they are called."""
        found = [("forward", plan.forward), ("backward", plan.backward)]
        if plan.is_train and self._update is not None and self._update.segment is not None:
            found.append(("update", self._update.segment))
        return found

    def memory(self, is_train: bool | None = None) -> MemoryUse:
        """Where the memory of a plan goes.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Returns
        -------
        MemoryUse
            ``print`` it for a table, largest results first; ``rows`` and ``bound`` have the numbers, in bytes.
        """
        with self._alone():
            plan = self.plan(self._keeps_gradients if is_train is None else bool(is_train))
        return MemoryUse(results_between(plan.memory, plan.specs), plan.memory.arena,
                         plan.nbytes - sum(plan.memory.arena.values()), self._nbytes_bound(), plan.is_train)

    def _nbytes_bound(self) -> dict[str, int]:
        """Bytes of what callers hold, by what it is."""
        groups: dict[str, Sequence[NDArray | None]] = {
            "arguments": self.arg_arrays, "gradients": self.grad_arrays, "states": self.aux_arrays,
            "outputs": self.outputs}
        if self._update is not None:
            groups["optimizer states"] = [array for state in self._update.updater.states.values()
                                          for array in leaves(state)]
        return {name: sum({id(array._data): array._data.nbytes for array in arrays if array is not None}.values())
                for name, arrays in groups.items()}

    def profile(self, runs: int = 10, is_train: bool | None = None) -> Profile:
        """Where the time of a plan goes: run it step by step with a clock.

        Forward and backward run ``2 * runs + 1`` times with the arguments as they are, and with the gradients of the
        outputs that are bound or that the last backward was given, zeros before the first. Outputs, gradients,
        auxiliary states, what updates change and the states of random generators are restored; what users' operators
        and hooks do beside that happens in each run. A backward that was to follow runs its forward again.

        Parameters
        ----------
        runs : int
            How often each step is measured.
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Returns
        -------
        Profile
            ``print`` it for a table, slowest step first; ``rows`` has the numbers.
        """
        with self._alone():
            plan = self.plan(self._keeps_gradients if is_train is None else bool(is_train))
            self._ready = self._whole = None
            return profile(plan, self._segments(plan), self._bound,
                           lambda segment: self._run(plan, segment, plan.is_train),
                           functools.partial(self._in_mode, plan.is_train), runs)

    def estimate(self, is_train: bool | None = None, machine: Machine | str | None = None
                 ) -> Estimate:
        """How long a plan would take on a device that need not be there: what its steps do is counted, nothing runs.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.
        machine : Machine or str, optional
            What the device does: a ``Machine``, or ``"H100"`` or ``"H200"`` (``opreg.symbol.estimate.MACHINES``). By
            default that of the device where the executor is bound, by its name, and an H100 on any other.

        Returns
        -------
        Estimate
            ``print`` it for a table, longest step first; ``rows``, ``eager`` and ``replayed`` have the numbers. They
            are those of the plan for where the executor is bound, whose kernels other devices may not have.
        """
        with self._alone():
            plan = self.plan(self._keeps_gradients if is_train is None else bool(is_train))
            return estimate(plan, self._segments(plan),
                            machine_of(machine, self._ctx.backend.title(self._ctx.device_id)))

    def kernel_report(self, is_train: bool | None = None) -> KernelReport:
        """How far kernels were from the reference, in all runs of a plan so far; of an executor that checks kernels.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Raises
        ------
        ArgumentError
            When the executor was bound without ``check_kernels``.
        """
        if not self._check:
            raise ArgumentError("kernel_report: kernels are not checked; bind with check_kernels=True")
        is_train = self._keeps_gradients if is_train is None else bool(is_train)
        with self._alone():
            self.plan(is_train)
        return self._reports[is_train]()

    @property
    def _keeps_gradients(self) -> bool:
        return any(grad is not None and req != "null" for grad, req in zip(self.grad_arrays, self._reqs))

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r} on {self._ctx}>"


def truth(method: str, is_train: object) -> bool:
    """The mode that was given, which is no array."""
    if hasattr(is_train, "shape") or isinstance(is_train, (list, tuple, dict)):
        shape = f" of shape {show(is_train.shape)}" if hasattr(is_train, "shape") else ""
        raise ArgumentError(f"{method}: its {'first' if method == 'forward' else 'second'} parameter is is_train, got "
                            f"{type(is_train).__name__}{shape}; "
                            + ("arguments go by name, as in forward(data=…)" if method == "forward" else
                               "gradients of several outputs go in a list, as in backward([g, h])"))
    return bool(is_train)


def told(node: Node, index: int) -> str:
    """What a monitor is told an output is called; those that are gradients have the number of their input."""
    numbers = node.tags.get(GRADIENTS)
    return output_name((node, index)) if numbers is None else f"{node.name}_{numbers.split()[index]}"

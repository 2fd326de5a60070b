"""Executor: a symbol bound to arrays, to be run many times."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from opreg.errors import ArgumentError, DeviceError, DTypeError, InferenceError, OpError, ShapeError, did_you_mean, note
from opreg.graph import Node
from opreg.mode import MODE, quiet
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray, array
from opreg.placeholder import resolve
from opreg.spec import Spec, known, show

from . import infer as inference
from .arrivals import Arrivals
from .checking import KernelReport, check_kernels, titled
from .compile import compile_plan
from .passes.recompute import asked
from .plan import Plan, Segment, Step
from .profile import Profile, profile
from .program import Bound, uncollected
from .symbol import Symbol, output_name

__all__ = ["Executor", "bind", "simple_bind", "make"]


class Executor:
    """A graph bound to arrays.

    ``forward`` computes the outputs, ``backward`` the gradients. There are two plans, for inference and training,
    each built at first use; of a graph with operators that are ``traced``, the one for training, or for inference where
    no gradients are kept, is built when it is bound. Programs make executors with ``Symbol.bind`` and
    ``Symbol.simple_bind``.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays : list of NDArray
        In the order of ``list_arguments`` and ``list_auxiliary_states``; None where no gradient is kept.
    outputs : list of NDArray
        Written anew by each forward.
    """

    def __init__(self, symbol: Symbol, bound: Bound, arguments: list[Node], auxiliary: list[Node],
                 args: list[NDArray], grads: list[NDArray | None], reqs: list[str], aux: list[NDArray],
                 check: bool | str = False):
        self._symbol, self._bound = symbol, bound
        self._arguments, self._auxiliary = arguments, auxiliary
        self.arg_arrays, self.grad_arrays, self.aux_arrays = args, grads, aux
        self._reqs = reqs
        self._plans: dict[bool, Plan] = {}  # those in use: without a monitor, or with one
        self._others: dict[bool, Plan] = {}
        self._check = check  # whether kernels are checked
        self._reports: dict[bool, Callable[[], KernelReport]] = {}
        self._monitor: tuple[Callable, bool] | None = None
        self._ready = False  # whether a training forward has run whose backward has not
        self._output_names = symbol.list_outputs()
        self.outputs = [NDArray(data, ctx) for data, ctx in zip(bound.outputs, _places(bound))]
        self._arrivals = Arrivals(bound, self._output_names)
        self._dicts: dict[str, dict[str, Any]] = {}

    # --------------------------------------------------------------------------------------------- questions

    def _dict(self, what: str, names: Sequence[str], arrays: Sequence[Any]) -> dict[str, Any]:
        if what not in self._dicts:
            twice = {name for name in names if list(names).count(name) > 1}
            if twice:
                raise ArgumentError(f"{what}: the name {sorted(twice)[0]!r} occurs twice; use the list instead")
            self._dicts[what] = dict(zip(names, arrays))
        return self._dicts[what]

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Arguments by name."""
        return self._dict("arg_dict", [node.name for node in self._arguments], self.arg_arrays)

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradients by argument name, None where none is kept."""
        return self._dict("grad_dict", [node.name for node in self._arguments], self.grad_arrays)

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return self._dict("aux_dict", [node.name for node in self._auxiliary], self.aux_arrays)

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        return self._dict("output_dict", self._output_names, self.outputs)

    # --------------------------------------------------------------------------------------------- running

    def plan(self, is_train: bool) -> Plan:
        """The plan for training or inference, built at first use."""
        found = self._plans.get(is_train)
        if found is None:
            found = self._plans[is_train] = compile_plan(self._bound, is_train, self._monitor is not None)
            if self._check:
                self._reports[is_train] = check_kernels(found, self._check != "report")
        return found

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
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
        if kwargs:
            self._feed(kwargs)
        is_train = bool(is_train)
        plan = self._plans.get(is_train) or self.plan(is_train)
        self._run(plan, plan.forward, is_train)
        for store in plan.stores:
            store()
        self._ready = is_train
        return self.outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients of all arguments that asked for theirs.

        Parameters
        ----------
        out_grads : NDArray, list or dict by output name
            Gradients of the outputs. Losses need none.

        Notes
        -----
        Follows ``forward(is_train=True)``. Called without, or twice, it runs that forward by itself first, with the
        arguments as they are and leaving auxiliary states alone.
        """
        plan = self._plans.get(True) or self.plan(True)
        if self._bound.head_grads and self._arrivals.take(plan.bound, out_grads):
            self._forget()
            plan = self.plan(True)
        if not self._ready:
            self._run(plan, plan.forward, True)
        self._ready = False
        self._run(plan, plan.backward, True)
        if self._arrivals.lends and self._arrivals.settle(out_grads):
            self._forget()

    def _forget(self) -> None:
        """Make the training plan anew when it is used again."""
        self._plans.pop(True, None)
        self._others.pop(True, None)
        self._ready = False

    def _run(self, plan: Plan, segment: Segment, is_train: bool) -> None:
        """Run a segment in its mode: nothing recorded, this context the current one, no numeric warnings."""
        if self._monitor is None and segment.plain:
            if segment.native is not None:
                segment.native()
            else:
                quiet(segment.run)
            return
        after = None if self._monitor is None else functools.partial(self._report, plan)
        self._inside(is_train, functools.partial(segment.run, after))

    def _inside(self, is_train: bool, function: Callable[[], None]) -> None:
        """Call a function in the mode that steps run in."""
        before = MODE.recording, MODE.training
        MODE.recording, MODE.training = False, is_train
        try:
            with self._bound.ctx, np.errstate(all="ignore"):
                function()
        finally:
            MODE.recording, MODE.training = before

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
                callback(output_name((node, i)), NDArray(data, ctx).copy())

    def _feed(self, values: Mapping[str, Any]) -> None:
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
            arguments[name]._store(Ellipsis, value)

    # ---------------------------------------------------------------------------------------------- arrays

    def copy_params_from(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values into arguments and auxiliary states by name, casting their dtype.

        Raises
        ------
        ArgumentError
            For a name that the graph does not have, unless ``allow_extra_params``.
        """
        todo = []
        for what, own, given in (("argument", self.arg_dict, arg_params),
                                 ("auxiliary state", self.aux_dict, aux_params or {})):
            for name, value in given.items():
                if name in own:
                    if tuple(value.shape) != own[name].shape:
                        raise ShapeError(f"copy_params_from: {name} has shape {show(value.shape)}, expected "
                                         f"{show(own[name].shape)}")
                    todo.append((own[name], value))
                elif not allow_extra_params:
                    raise ArgumentError(f"copy_params_from: there is no {what} {name!r}. {did_you_mean(name, own)}")
        for target, value in todo:  # only now: nothing is half done
            target._store(Ellipsis, value)

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """An executor for other argument shapes, which shares the arrays whose shapes stay.

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
        shapes, _, aux_shapes = self._symbol._shapes("reshape", (), kwargs)
        args, grads, aux = [], [], []
        for node, old, grad, shape in zip(self._arguments, self.arg_arrays, self.grad_arrays, shapes):
            if not known(shape):
                raise ShapeError(f"reshape: the shape of {node.name} does not follow; give it too")
            args.append(_reshaped(node.name, old, shape, partial_shaping or node.name in kwargs, allow_up_sizing))
            grads.append(None if grad is None else
                         grad if grad.shape == shape else NDArray(_zeros(grad.context, shape, grad.dtype),
                                                                  grad.context))
        for node, old, shape in zip(self._auxiliary, self.aux_arrays, aux_shapes):
            aux.append(_reshaped(node.name, old, shape, partial_shaping, allow_up_sizing))
        return make(self._symbol, self._bound.ctx, args, grads, self._reqs, aux, self._bound.group2ctx,
                    self._check, self._bound.recompute)

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
        if (callback is None) is not (self._monitor is None):
            self._plans, self._others = self._others, self._plans
            self._ready = False  # the plan that ran forward is not the one that would run backward
        self._monitor = None if callback is None else (callback, monitor_all)

    def debug_str(self) -> str:
        """Every node with its inputs, a line each, and what the plans hold in memory."""
        text = self._symbol.debug_str()
        for is_train, plan in sorted(self._plans.items()):
            text += f"{'training' if is_train else 'inference'} plan: {plan.nbytes / 2 ** 20:.2f} MB\n"
        return text

    def explain(self, is_train: bool | None = None) -> str:
        """Each step of a plan: its node, its kernel and why faster ones declined, where its result lives.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.
        """
        plan = self.plan(bool(self._bound.grads) if is_train is None else is_train)
        lines = [f"{'training' if plan.is_train else 'inference'} plan, {plan.nbytes} bytes beside arguments, outputs "
                 "and gradients"]
        for title, segment in (("forward", plan.forward), ("backward", plan.backward)):
            if segment.steps:
                lines.append(f"{title}:")
            for number, step in enumerate(segment.steps):
                name = "" if step.node is None else f"{titled(step.node)}: "
                declined = "".join(f"; {kernel} declined: {reason}" for kernel, reason in step.declined)
                lines.append(f"  {number:4} {name}{step.kernel}{declined} -> {step.where}")
        return "\n".join(lines)

    def profile(self, runs: int = 10, is_train: bool | None = None) -> Profile:
        """Where the time of a plan goes: run it step by step with a clock.

        Forward and backward run ``2 * runs + 1`` times with the arguments as they are, and with the gradients of the
        outputs that the last backward was given, zeros before the first. Outputs, gradients, auxiliary states, what
        updates change and the states of random generators are restored; what users' operators and hooks do beside
        that happens in each run. A backward that was to follow runs its forward again.

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
        plan = self.plan(bool(self._bound.grads) if is_train is None else bool(is_train))
        self._ready = False
        return profile(plan, self._bound, lambda segment: self._run(plan, segment, plan.is_train),
                       functools.partial(self._inside, plan.is_train), runs)

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
        is_train = bool(self._bound.grads) if is_train is None else bool(is_train)
        self.plan(is_train)
        return self._reports[is_train]()

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r} on {self._bound.ctx}>"


def _places(bound: Bound) -> list[Context]:
    return [bound.group2ctx.get(node.tags.get("__ctx_group__", ""), bound.ctx) if node.op is not None else bound.ctx
            for node, _ in bound.graph.heads]


def _zeros(ctx: Context, shape: Any, dtype: Any) -> Any:
    return ctx.backend.zeros(tuple(shape), np.dtype(dtype), ctx.device_id)


def _room(ctx: Context, shape: Any, dtype: Any, node: Node) -> Any:
    """Zeros for a node's result, or an error that names the node."""
    try:
        return _zeros(ctx, shape, dtype)
    except OpError as error:
        raise type(error)(f"{node.describe()}: {error}") from None


def _reshaped(name: str, old: NDArray, shape: tuple[int, ...], allowed: bool, larger: bool) -> NDArray:
    if old.shape == shape:
        return old
    if not allowed:
        raise ShapeError(f"reshape: the shape of {name}, which was not named, changes from {show(old.shape)} to "
                         f"{show(shape)}; allow it with partial_shaping=True")
    count = int(np.prod(shape, dtype=np.int64))
    if count > old.size:
        if not larger:
            raise ShapeError(f"reshape: {name} of shape {show(shape)} is larger than its array {show(old.shape)}; "
                             "allow it with allow_up_sizing=True")
        return NDArray(_zeros(old.context, shape, old.dtype), old.context)
    return NDArray(old._data.reshape(-1)[:count].reshape(shape), old.context)


# ------------------------------------------------------------------------------------------------- binding


def _request(req: Any, names: Sequence[str]) -> list[str]:
    """One request an argument, from text, a list or a dict."""
    valid = ("null", "write", "add")

    def checked(value: Any, name: str) -> str:
        if value == "inplace":
            return "write"
        if value not in valid:
            raise ArgumentError(f"grad_req of {name}: {value!r}. {did_you_mean(value, valid)}")
        return value

    if isinstance(req, str):
        return [checked(req, "all arguments")] * len(names)
    if isinstance(req, Mapping):
        for name in req:
            if name not in names:
                raise ArgumentError(f"grad_req: there is no argument {name!r}. {did_you_mean(name, names)}")
        return [checked(req.get(name, "null"), name) for name in names]
    if isinstance(req, (list, tuple)):
        if len(req) != len(names):
            raise ArgumentError(f"grad_req: expected {len(names)} requests, one for each argument, got {len(req)}")
        return [checked(value, name) for value, name in zip(req, names)]
    raise ArgumentError(f"grad_req: expected text, a list or a dict, got {type(req).__name__}")


def _listed(what: str, given: Any, names: Sequence[str], partial: bool) -> list[Any]:
    """Arrays in the order of names, from a list or a dict; None for what a partial dict leaves out."""
    if given is None:
        given = {} if partial else []
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ArgumentError(f"{what}: there is no {name!r} in the graph. {did_you_mean(name, names)}")
        missing = [name for name in names if name not in given]
        if missing and not partial:
            raise ArgumentError(f"{what}: missing {', '.join(missing)}; the graph has {', '.join(names)}")
        return [given.get(name) for name in names]
    if not isinstance(given, (list, tuple)):
        raise ArgumentError(f"{what}: expected a list or a dict of NDArrays, got {type(given).__name__}")
    if len(given) != len(names):
        raise ArgumentError(f"{what}: expected {len(names)} arrays ({', '.join(names)}), got {len(given)}")
    return list(given)


def _context(ctx: Any) -> Context:
    if isinstance(ctx, (list, tuple)) and len(ctx) == 1:
        ctx = ctx[0]
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        raise ArgumentError(f"bind: expected a Context, such as cpu(), got {ctx!r}")
    return ctx


@uncollected
def bind(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any, group2ctx: Any,
         check_kernels: bool | str = False, recompute: bool | str | None = None) -> Executor:
    """See ``Symbol.bind``."""
    ctx, symbol = _context(ctx), _resolved(symbol)
    arguments, auxiliary = symbol._graph().variables()
    names, aux_names = [node.name for node in arguments], [node.name for node in auxiliary]
    for group in (names, aux_names):
        twice = sorted({name for name in group if group.count(name) > 1}) if len(set(group)) < len(group) else []
        if twice:
            raise ArgumentError(f"bind: two different variables are named {twice[0]!r}; give each a name of its own")
    places = _variable_places(arguments + auxiliary, ctx, group2ctx or {})
    arg_arrays = _listed("args", args, names, False)
    arrays = [_array("args", name, value, places[node]) for name, value, node in zip(names, arg_arrays, arguments)]
    grads = _listed("args_grad", args_grad, names, True)
    reqs = [req if grad is not None else "null" for req, grad in zip(_request(grad_req, names), grads)]
    for name, grad, value in zip(names, grads, arrays):
        if grad is not None:
            _array("args_grad", name, grad, None)
            if grad.shape != value.shape:
                raise ShapeError(f"args_grad: {name} has shape {show(grad.shape)}, its argument {show(value.shape)}")
    aux = [_array("aux_states", name, value, places[node]) for name, value, node in
           zip(aux_names, _listed("aux_states", aux_states, aux_names, False), auxiliary)]
    return make(symbol, ctx, arrays, grads, reqs, aux, group2ctx or {}, check_kernels, recompute)


def _array(what: str, name: str, value: Any, ctx: Context | None) -> NDArray:
    if isinstance(value, np.ndarray):
        value = array(value, ctx=ctx, dtype=value.dtype)
    if not isinstance(value, NDArray):
        raise ArgumentError(f"{what}: {name} must be an NDArray, got {type(value).__name__}")
    if ctx is not None and value.context != ctx:
        raise DeviceError(f"{what}: {name} lives on {value.context}, expected {ctx}; move it with as_in_context")
    return value


def _resolved(symbol: Symbol) -> Symbol:
    """The symbol with registered operators in the place of those that a file named."""
    graph = symbol._graph()
    resolved = resolve(graph)
    return symbol if resolved is graph else Symbol(resolved.heads)


def _variable_places(variables: Sequence[Node], ctx: Context, group2ctx: Mapping[str, Context]) -> dict[Node, Context]:
    return {node: group2ctx.get(node.tags.get("__ctx_group__", ""), ctx) for node in variables}


@uncollected
def simple_bind(symbol: Symbol, ctx: Any, grad_req: Any, type_dict: Any, group2ctx: Any, shared_exec: Any,
                shared_buffer: Any, shapes: Mapping[str, Any], check_kernels: bool | str = False,
                recompute: bool | str | None = None) -> Executor:
    """See ``Symbol.simple_bind``."""
    ctx, symbol = _context(ctx), _resolved(symbol)
    graph = symbol._graph()
    arguments, auxiliary = graph.variables()
    names = [node.name for node in arguments]
    with _noted(shapes):
        shape_of = inference.variable_shapes(*symbol._known_shapes("simple_bind", (), shapes))
        dtype_of = inference.variable_dtypes(*symbol._known_dtypes("infer_type", (), dict(type_dict or {})))
    unknown = [node.name for node in arguments + auxiliary if not known(shape_of[node])]
    if unknown:
        raise _undecided(unknown, shapes)
    with _noted(shapes):
        specs = inference.infer(graph, shape_of, dtype_of)
    places = _variable_places(arguments + auxiliary, ctx, group2ctx or {})
    shared = {} if shared_exec is None else {**shared_exec.arg_dict, **shared_exec.aux_dict}
    reqs = _request(grad_req, names)

    def prepared(node: Node) -> NDArray:
        shape, dtype = specs[node][0]
        old = shared.get(node.name, (shared_buffer or {}).get(node.name))
        if old is not None and old.shape == shape and old._data.dtype == dtype:
            return old
        made = NDArray(_zeros(places[node], shape, dtype), places[node])
        if shared_buffer is not None:
            shared_buffer[node.name] = made
        return made

    args = [prepared(node) for node in arguments]
    aux = [prepared(node) for node in auxiliary]
    grads = [None if req == "null" else NDArray(_zeros(arg.context, arg.shape, arg.dtype), arg.context)
             for req, arg in zip(reqs, args)]
    return make(symbol, ctx, args, grads, reqs, aux, group2ctx or {}, check_kernels, recompute, specs)


@contextmanager
def _noted(shapes: Mapping[str, Any]) -> Iterator[None]:
    """Errors inside say what was bound with which shapes."""
    try:
        yield
    except OpError as error:
        note(error, "simple_bind with " + ", ".join(f"{name}={shape}" for name, shape in shapes.items()))
        raise


def _undecided(unknown: list[str], shapes: Mapping[str, Any]) -> OpError:
    given = ", ".join(f"{name}={shape}" for name, shape in shapes.items()) or "nothing"
    return InferenceError(f"simple_bind: the shapes of {', '.join(unknown)} do not follow from {given}")


def make(symbol: Symbol, ctx: Context, args: list[NDArray], grads: list[NDArray | None], reqs: list[str],
         aux: list[NDArray], group2ctx: Mapping[str, Context], check: bool | str = False,
         recompute: bool | str | None = False, specs: dict[Node, list[Spec]] | None = None) -> Executor:
    """An executor over arrays in the order of the graph's variables; specs, where they are known already."""
    if check not in (False, True, "report"):
        raise ArgumentError(f"check_kernels={check!r}: expected True, False or 'report'")
    graph = symbol._graph()
    arguments, auxiliary = graph.variables()
    variables, values = arguments + auxiliary, args + aux
    if specs is None:
        specs = inference.infer(graph, {node: value.shape for node, value in zip(variables, values)},
                                {node: value._data.dtype for node, value in zip(variables, values)})
    for node, value in zip(variables, values):
        expected = specs[node][0]
        if expected.dtype != value._data.dtype:
            raise DTypeError(f"{node.describe()}: expected dtype {expected.dtype}, got {value._data.dtype}")
    wanted: dict[Node, tuple[Any, str]] = {}
    for node, grad, req in zip(arguments, grads, reqs):
        if grad is not None and req != "null":
            wanted[node] = grad._data, req
    bound = Bound(graph, specs, ctx, group2ctx, {node: value._data for node, value in zip(variables, values)},
                  {node: value.context for node, value in zip(variables, values)}, wanted, recompute=asked(recompute))
    for (node, i), place in zip(graph.heads, _places(bound)):
        shape, dtype = cast(tuple, specs[node][i])
        loss = node.op is not None and node.op.loss(node.attrs)
        bound.outputs.append(_room(place, shape, dtype, node))
        bound.head_grads.append(None if loss or not wanted else _room(ctx, shape, dtype, node))
    executor = Executor(symbol, bound, arguments, auxiliary, args, grads, reqs, aux, check)
    if any(getattr(node.op, "traced", False) for node in graph.nodes):
        executor.plan(bool(wanted))  # a body that cannot be followed says so now
    return executor

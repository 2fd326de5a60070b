"""Hybrid blocks: written once for arrays and symbols; hybridized ones run as plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from opreg import ndarray, symbol
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.io import save
from opreg.np.values import NumpySymbol, NumpyValue
from opreg.symbol.argument_specs import inferred_shapes, unknown_shapes
from opreg.symbol.json import load_json
from opreg.symbol.symbol import Group, Symbol, Variable

from ..cells.state import STATE
from ..cells.tables import Table
from ..core.invalidation import watch
from ..core.named_errors import wrong_call
from ..core.op import Op
from ..core.parameters import signature_of
from ..errors import ArgumentError, OpError, did_you_mean, is_it, warn
from ..typing import DTypeLike
from .base_block import Block
from .base_parameter import Parameter
from .errors import BlockError, DeferredInitializationError
from .plans import BlockPlans
from .reads import BlockReads, observed
from .structure import Format, flatten, gluon_value, regroup, same, symbols_and_contexts

__all__ = ["HybridBlock"]


def _like_input(value: Any, variable: Symbol) -> Symbol:
    """The variable of an input; it behaves as NumPy arrays do if the input does."""
    return variable.as_np_ndarray() if isinstance(value, NumpyValue) else variable


def _any_numpy(values: Sequence[Any]) -> bool:
    return any(isinstance(value, NumpyValue) for value in values)


#: Types of settings of layers.
_SETTING = (bool, int, float, str, tuple, type(None), FunctionType)
#: Attributes that decide what a block computes, of any type.
_FORMS = frozenset({"__class__", "forward", "hybrid_forward", "_children", "_kwargs", "_reg_params"})
#: Count of all changes of blocks; while it is the same all traced graphs are valid.
_CHANGES = [0]


class _Patches:
    """Counts the methods of arrays and symbols that programs replaced: a graph traced with the former methods is
    outdated."""

    count = 0

    def on_register(self, op: Op | None) -> None:
        """Count a change that concerns any operator."""
        if op is None:
            _CHANGES[0] += 1
            self.count += 1


_PATCHES = _Patches()
watch(_PATCHES)
#: Settings of MXNet's ``hybridize`` that are accepted without effect.
_SETTINGS = ("backend", "backend_opts", "static_alloc", "static_shape", "inline_limit", "forward_bulk_size",
             "backward_bulk_size", "clear")


class HybridBlock(Block):
    """A block that is written once for arrays and symbols; hybridized, it runs as a plan.

    Define ``hybrid_forward(F, x, ...)``: ``F`` is ``nd`` or ``sym``, and parameters are passed by the names of their
    attributes. After ``hybridize()`` the first call traces it, and calls run plans, in training and inference. It is
    traced again when a child, a layer's setting, a parameter's array, or a value that your Python code read during the
    trace has changed: these are compared before each call, as by ``jit``, and values that cannot be compared are named
    in a warning.

    Examples
    --------
    >>> from opreg import gluon, nd
    >>> class Scale(gluon.HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.factor = self.params.get("factor", shape=(1,), init="ones")
    ...     def hybrid_forward(self, F, x, factor):
    ...         return F.broadcast_mul(x, factor)
    >>> net = Scale()
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """

    _cached_graph: Any = ()
    _cached_op: BlockPlans | None = None
    _seen: BlockReads | None = None
    _in_format: Format = 0
    _out_format: Format = 0
    _active = False
    _flags: Sequence[tuple[str, Any]] = ()
    _traced: tuple[int, tuple[int, ...]] = (-1, ())
    #: Types of the traced arrays: for each input and output whether it belongs to ``np``; None if unknown.
    _faces: tuple[bool, Sequence[bool]] | None = None
    _monitor: tuple[Callable[..., Any], bool] | None = None
    #: Attributes that a copy does not share.
    _traces: Sequence[str] = ("_cached_graph", "_cached_op", "_seen", "_traced", "_faces")

    def __setattr__(self, name: str, value: Any) -> None:
        existed, before = name in self.__dict__, self.__dict__.get(name)
        super().__setattr__(name, Table(self, value) if name == "_kwargs" and type(value) is dict else value)
        if isinstance(value, (HybridBlock, Parameter)) or name in _FORMS or (
                isinstance(value, _SETTING) and (existed or hasattr(type(self), name)) and not (
                    type(before) is type(value) and before == value)):
            self._clear_cached_op()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._clear_cached_op()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self._traces}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(settings := state.get("_kwargs"), dict):
            self.__dict__["_kwargs"] = Table(self, settings)

    # ---------------------------------------------------------------------------------------------- tracing

    def _versions(self) -> tuple[int, ...]:
        """The counts of changes of this block, of all blocks inside, and of other blocks that the trace used."""
        counts: list[int] = [_PATCHES.count]

        def visit(block: Block) -> None:
            counts.append(block._version)
            for child in block._children.values():
                visit(child)

        visit(self)
        for block in () if self._seen is None else self._seen.blocks:
            visit(block)
        return tuple(counts)

    def _check_graph(self) -> None:
        """Drop the graph if a block inside, or a value that the trace read from outside, has changed."""
        reads = self._seen
        if reads is not None and reads.changed is not None and reads.changed() is not None:
            self._clear_cached_op()
        changes, versions = self._traced
        if self._cached_graph and changes != _CHANGES[0]:
            now = self._versions()
            if now != versions:
                self._clear_cached_op()
            else:
                self.__dict__["_traced"] = _CHANGES[0], now

    def _get_graph(self, *args: Any) -> tuple[list[Symbol], Symbol]:
        """The variables of inputs, and the outputs as one symbol; traces if there is no graph."""
        self._check_graph()
        graph: tuple[list[Symbol], Symbol] = self._cached_graph
        if not graph:
            flat, in_format = flatten(args, "input")
            count = sum(value is not None for value in flat)
            if not count:
                raise BlockError(f"{self.name}: all arguments are None, so there is nothing to trace")
            names = iter(["data"] if count == 1 else [f"data{i}" for i in range(count)])
            inputs = [None if value is None else _like_input(value, gluon_value(Variable(next(names))))
                      for value in flat]
            parameters = {name: gluon_value(parameter.var()) for name, parameter in self._reg_params.items()}
            nested = regroup(inputs, in_format)
            with self.name_scope():
                out, reads = observed(self, symbol, *nested, **parameters)
            heads, out_format = flatten(out, "output")
            graph = [value for value in inputs if value is not None], Group(heads)
            self._replace(
                _seen=reads, _in_format=in_format, _out_format=out_format,
                _faces=(_any_numpy(inputs), [isinstance(head, NumpySymbol) for head in heads for _ in head._entries]),
                _cached_graph=graph)
            self.__dict__["_traced"] = _CHANGES[0], self._versions()
        return graph

    def _build_cache(self, *args: Any) -> BlockPlans:
        """Make the plans of the graph, and the parameters whose shapes these inputs decide."""
        inputs, out = self._get_graph(*args)
        numbers = {variable.name: i for i, variable in enumerate(inputs)}
        names, parameters = out.list_inputs(), self._graph_params()
        for name in names:
            if name not in parameters and name not in numbers:
                input_names = ", ".join(map(str, numbers))
                raise BlockError(f"{self.name}: Unknown input to HybridBlock: hybrid_forward makes the variable "
                                 f"{name!r}, which is neither an input ({input_names}) nor a parameter")
        used = set(names)
        unread = ", ".join(f"{i}-th" for name, i in numbers.items() if name not in used)
        if unread:
            warn(f"The {unread} input to HybridBlock is not used by any computation. Is this intended?")
        unread = ", ".join(name for name in parameters if name not in used)
        if unread:
            warn(f"Parameter {unread} is not used by any computation. Is this intended?")
        every: list[int | Parameter] = [numbers[name] if name in numbers else parameters[name] for name in names]
        own = [source for source in every if isinstance(source, Parameter)]
        try:
            for parameter in own:
                parameter.list_data()
        except DeferredInitializationError:
            self._deferred_infer_shape(*args)
            for parameter in own:
                parameter._finish_deferred_init()
        plans = self.__dict__["_cached_op"] = BlockPlans(out, every, self.name)
        return plans

    def _graph_params(self) -> Mapping[str, Parameter]:
        """Parameters that the graph may read, by name."""
        registered = self._collect_params_with_prefix().values()
        return {**self.collect_params()._params, **{parameter.name: parameter for parameter in registered}}

    def _clear_cached_op(self) -> None:
        """Drop the traced graph and its plans."""
        _CHANGES[0] += 1
        self._replace(_cached_graph=(), _cached_op=None, _seen=None, _version=self._version + 1)

    def _replace(self, **values: Any) -> None:
        """Set several attributes of a trace at once. The former values are freed only after all are set: freeing runs
        code that lets other threads run, and these would see a graph without its reads."""
        before = [self.__dict__.get(name) for name in values]
        self.__dict__.update(values)
        del before

    def _call_cached_op(self, *args: Any) -> Any:
        """Run as a plan."""
        self._check_graph()
        plans, graph = self._cached_op, self._cached_graph
        if plans is None or not graph or plans.symbol is not graph[1]:  # perhaps another thread has forgotten the graph
            plans = self._build_cache(*args)
        flat, form = flatten(args, "input")
        if not same(form, self._in_format):
            raise BlockError("The argument structure of HybridBlock does not match the cached version. Stored format "
                             f"= {self._in_format}, input format = {form}")
        data = [value for value in flat if value is not None]
        outs = plans(data) if self._monitor is None else plans.run_monitored(data, *self._monitor)
        numpy = _any_numpy(data)
        faces: Any = self._faces
        faces = faces[1] if faces is not None and faces[0] is numpy else [numpy] * len(outs)
        if True in faces:
            outs = [value.as_np_ndarray() if face else value for face, value in zip(faces, outs, strict=True)]
        return regroup(outs, self._out_format)

    # ------------------------------------------------------------------------------------- shapes and dtypes

    def _deferred_infer_shape(self, *args: Any) -> None:
        """Infer shapes of parameters from inputs."""
        try:
            self.infer_shape(*args)
        except (OpError, ValueError) as error:
            raise self._wrong_call(error, args) or BlockError(
                f"{self.name}: deferred initialization failed because shape cannot be inferred: {error}") from error

    def _infer(self, attribute: str, *args: Any) -> None:
        """Infer the shapes or dtypes of parameters, ``attribute``, from those of inputs."""
        inputs, out = self._get_graph(*args)
        flat = [value for value in flatten(args, "input")[0] if value is not None]
        given = {str(variable.name): getattr(value, attribute) for variable, value in zip(inputs, flat)}
        graph = out._graph()
        if attribute == "shape":
            inferred, _, states = groups = inferred_shapes(graph, out, "infer_shape", (), given)
            if unknown := unknown_shapes(graph, groups):
                raise BlockError(f"{unknown}. Give these parameters their whole shapes")
        else:
            inferred, _, states = out.infer_type(**given)
        value_of = {**dict(zip(out.list_arguments(), inferred)), **dict(zip(out.list_auxiliary_states(), states))}
        for name, parameter in self._graph_params().items():
            if name in value_of:
                setattr(parameter, attribute, value_of[name])

    def infer_shape(self, *args: Any) -> None:
        """Infer shapes of parameters from inputs."""
        self._infer("shape", *args)

    def infer_type(self, *args: Any) -> None:
        """Infer dtypes of parameters from inputs."""
        self._infer("dtype", *args)

    # ------------------------------------------------------------------------------------------------ settings

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Register a hybrid block as a child.

        Raises
        ------
        BlockError
            For a block that is not hybrid.
        """
        if not isinstance(block, HybridBlock):
            raise BlockError(f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. "
                             "If you are using Sequential, please try HybridSequential instead.")
        super().register_child(block, name)

    def _edited(self, name: str, before: object, now: object) -> None:
        """Discard plans after a change of a child, of a registered Parameter, or of a setting of the operator."""
        self._clear_cached_op()

    def hybridize(self, active: bool = True, backend: str | None = None, clear: bool = True, **kwargs: Any) -> None:
        """Run this block as plans from its next call on, or, with ``active=False``, operator by operator.

        Parameters
        ----------
        backend : str, optional
            Name of a backend of MXNet; accepted without effect.
        clear : bool
            Whether the traced graph is dropped.
        **kwargs
            Further settings of MXNet, such as ``static_alloc`` and ``static_shape``, accepted without effect: a plan's
            memory is always static.
        """
        unknown = [name for name in kwargs if name not in _SETTINGS]
        if unknown:
            warn(f"HybridBlock.hybridize: {unknown[0]}={kwargs[unknown[0]]!r} has no effect. "
                 f"{did_you_mean(unknown[0], ('active', *_SETTINGS))}")
        self.__dict__.update(_active=active, _flags=[(name, kwargs[name]) for name in _SETTINGS if name in kwargs])
        if clear:
            self._clear_cached_op()
        if (active and self._forward_hooks) or self._forward_pre_hooks:
            warn(f'"{self}" is being hybridized while still having forward hook/pre-hook. If "{self}" is a child of '
                 "HybridBlock, the hooks will not take effect.")
        super().hybridize(active, **kwargs)

    def optimize_for(self, x: Any, *args: Any, backend: str | None = None, clear: bool = False, **kwargs: Any) -> None:
        """Hybridize, and trace for these inputs.

        Raises
        ------
        BlockError
            Without a backend, which MXNet requires.
        """
        if not backend:
            raise BlockError('Must specify "backend" to optimize_for')
        self.hybridize(True, backend, clear, **kwargs)
        self._build_cache(x, *args)

    def cast(self, dtype: DTypeLike) -> None:
        """Cast all parameters to another dtype."""
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """See ``Block.register_op_hook``."""
        self.__dict__["_monitor"] = callback, monitor_all
        super().register_op_hook(callback, monitor_all)

    # ------------------------------------------------------------------------------------------------- files

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> tuple[str, str]:
        """Write the traced graph to ``<path>-symbol.json`` and the parameters to ``<path>-<epoch>.params``, for
        ``SymbolBlock.imports`` and ``Module``.

        Returns
        -------
        tuple of str
            The names of both files.

        Raises
        ------
        BlockError
            When the block was not yet hybridized and called.
        """
        self._check_graph()
        if self._cached_op is None:
            raise BlockError("Please first call block.hybridize() and then run forward with this block at least once "
                             "before calling export.")
        out = self._cached_op.symbol
        names = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
        out.save(names[0], remove_amp_cast=remove_amp_cast)
        states = set(out.list_auxiliary_states())
        save(names[1], {f"{'aux' if source.name in states else 'arg'}:{source.name}": source._reduce()
                        for source in self._cached_op.inputs if isinstance(source, Parameter)})
        return names

    def _saved_graph(self) -> dict[str, Any]:
        if not self._cached_graph:
            return {"hybridized": False}
        inputs, out = self._cached_graph
        return {"in_format": self._in_format, "out_format": self._out_format,
                "inputs": [variable.tojson() for variable in inputs], "symbol": out.tojson(), "hybridized": True}

    def _load_graph(self, entry: Mapping[str, Any]) -> None:
        if entry["hybridized"]:
            self.__dict__.update(
                _in_format=entry["in_format"], _out_format=entry["out_format"], _active=True, _cached_op=None,
                _cached_graph=([load_json(text) for text in entry["inputs"]], load_json(entry["symbol"])),
                _seen=None, _traced=(_CHANGES[0], self._versions()), _faces=None)

    # ------------------------------------------------------------------------------------------------- calls

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute outputs from arrays or symbols, by ``hybrid_forward`` or as a plan.

        Raises
        ------
        BlockError
            When inputs mix arrays and symbols, or are neither; in a hybridized block, when arrays have different
            contexts.
        """
        has_symbols, contexts = symbols_and_contexts((x, *args)) if args else symbols_and_contexts(x)
        if has_symbols and contexts:
            raise BlockError("In HybridBlock, we do not support mixed NDArrays and Symbols types for the input. Please "
                             "check the type of the args.")
        if has_symbols:
            parameters: dict[str, Any] = {
                name: gluon_value(parameter.var()) for name, parameter in self._reg_params.items()}
            with self.name_scope():
                return self.hybrid_forward(symbol, x, *args, **parameters)
        if not contexts:
            kinds = ", ".join([type(value).__name__ for value in (x, *args)])
            raise BlockError("In HybridBlock, there must be one NDArray or one Symbol in the input. Please check the "
                             f"type of the args: {kinds}. mx.nd.array(x) makes an NDArray")
        ctx = contexts[0]
        if current_context() is ctx:
            return self._compute(ctx, contexts, x, *args)
        with ctx:
            return self._compute(ctx, contexts, x, *args)

    def _compute(self, ctx: Context, contexts: Sequence[Context], x: Any, *args: Any) -> Any:
        """The outputs for arrays in these contexts, the first of which is the current one."""
        if self._active and STATE.trace is None:  # a compiled function takes the operators into its own graph
            if contexts.count(ctx) != len(contexts):
                raise BlockError(f"Find multiple contexts in the input, After hybridized, the HybridBlock only "
                                 f"supports one input context: {sorted(set(map(str, contexts)))}")
            return self._call_cached_op(x, *args)
        try:
            parameters = {name: parameter.data(ctx) for name, parameter in self._reg_params.items()}
        except DeferredInitializationError:
            self._deferred_infer_shape(x, *args)
            for parameter in self.params.values():
                parameter._finish_deferred_init()
            parameters = {name: parameter.data(ctx) for name, parameter in self._reg_params.items()}
        return self.hybrid_forward(ndarray, x, *args, **parameters)

    def _wrong_call(self, error: Exception, args: tuple[Any, ...]) -> ArgumentError | None:
        if type(self).forward is not HybridBlock.forward:
            return super()._wrong_call(error, args)
        method = self.hybrid_forward
        given = {next(iter(signature_of(method).parameters), ""), *self._reg_params}  # F, and the parameters
        return wrong_call(error, f"{type(self).__name__}.hybrid_forward", method, args, {}, given)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute outputs with functions of ``F``, which is ``nd`` or ``sym``.

        Parameters
        ----------
        F : module
            The module of functions.
        x : NDArray or Symbol
            The first input.
        *args, **kwargs
            Further inputs, and the parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward{is_it(type(self), 'hybrid_forward')}")



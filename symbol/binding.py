"""The functions behind ``Symbol.bind`` and ``Symbol.simple_bind``: they check arguments, make arrays, and build an
executor."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from opreg.core import rounding
from opreg.core.graph import Entry, Node, rewrite
from opreg.core.placeholder import resolve
from opreg.core.spec import Shape, Spec, is_known, show, size
from opreg.core.states import begin, beginnings
from opreg.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    InferenceError,
    OpError,
    ShapeError,
    did_you_mean,
    note,
    other_count,
    refuse_misspelt,
)
from opreg.ndarray import finite
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import _STORAGE_TYPE_STR_TO_ID, STORAGE_TYPES, NDArray, array
from opreg.typing import Array, DTypeLike

from . import infer as inference
from .argument_specs import known_dtypes, known_shapes
from .arrays import Gradients, Requests, Values, front, zeros
from .entries import BIND, SIMPLE_BIND
from .executor import Executor
from .head_gradients import OutGrads, check_head_gradients
from .passes.rematerialization import recompute_setting
from .program import Bound, without_gc
from .reduction import Reduction, divide_into_buckets
from .sharding import bucket_arrays
from .sparse_cut import inputs_with_few_rows
from .sparse_executor import SparseExecutor
from .stages import UNREDUCED, StagedExecutor, depends_on_data
from .symbol import Symbol

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["bind", "simple_bind", "make"]

_GROUP = "__ctx_group__"
#: Storage types by the text of MXNet's codes, as variables store them.
_STYPES = {str(_STORAGE_TYPE_STR_TO_ID[kind]): kind for kind in STORAGE_TYPES}


# --------------------------------------------------------------------------------------------- arguments of bind


def _request(req: Requests, names: Sequence[str]) -> list[str]:
    """The gradient request of each argument."""
    valid = ("null", "write", "add")

    def checked(value: str, name: str) -> str:
        if value == "inplace":
            return "write"
        if value not in valid:
            raise ArgumentError(f"grad_req of {name}: {value!r}. {did_you_mean(value, valid)}")
        return value

    if isinstance(req, str):
        return [checked(req, "all arguments")] * len(names)
    if isinstance(req, Mapping):
        refuse_misspelt("grad_req", req, names)
        return [checked(req.get(name, "null"), name) for name in names]
    if isinstance(req, (list, tuple)):
        if len(req) != len(names):
            raise ArgumentError(f"grad_req: {other_count(names, len(req), 'request')}")
        return [checked(value, name) for value, name in zip(req, names)]
    raise ArgumentError(f"grad_req: expected text, a list or a dict, got {type(req).__name__}")


def _order_arrays(what: str, arrays: Values | Gradients | None, nodes: Sequence[Node], partial: bool
                  ) -> list[NDArray | np.ndarray | None]:
    """Arrays in the order of variables, from a list or a dict by name; None for a name that a partial dict leaves
    out."""
    names = [node.name for node in nodes]
    if arrays is None:
        arrays = {} if partial else []
    if isinstance(arrays, Mapping):
        if arrays:
            _check_names(what, nodes, ", or give arrays as a list")
        missing = [name for name in names if name not in arrays]
        refuse_misspelt(what, arrays, names)
        if missing and not partial:
            raise ArgumentError(f"{what}: missing {', '.join(missing)}; the graph has {', '.join(names)}")
        return [arrays.get(name) for name in names]
    if not isinstance(arrays, (list, tuple)):
        raise ArgumentError(f"{what}: expected a list or a dict of NDArrays, got {type(arrays).__name__}")
    if len(arrays) != len(names):
        raise ArgumentError(f"{what}: {other_count(names, len(arrays), 'array')}")
    return list(arrays)


def _context(ctx: Context | Sequence[Context] | None, what: str = "bind") -> Context:
    if isinstance(ctx, (list, tuple)) and len(ctx) == 1:
        ctx = ctx[0]
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        raise ArgumentError(f"{what}: expected a Context, such as cpu(), got {ctx!r}")
    return ctx


def _groups(group2ctx: Mapping[str, Context] | None) -> dict[str, Context]:
    """The context of each group."""
    if group2ctx is not None and not isinstance(group2ctx, Mapping):
        raise ArgumentError(f"group2ctx: expected a dict of str to Context, got {group2ctx!r}")
    return {name: _context(ctx, f"group2ctx[{name!r}]") for name, ctx in (group2ctx or {}).items()}


def _array(what: str, name: str, value: NDArray | np.ndarray | None, ctx: Context | None) -> NDArray:
    if isinstance(value, np.ndarray):
        value = array(value, ctx=ctx, dtype=value.dtype)
    if not isinstance(value, NDArray):
        raise ArgumentError(f"{what}: {name} must be an NDArray, got {type(value).__name__}")
    if ctx is not None and value.context != ctx:
        raise DeviceError(f"{what}: {name} lives on {value.context}, expected {ctx}; move it with as_in_context")
    return value


def resolve_operators(symbol: Symbol) -> Symbol:
    """The symbol with its operators looked up in the registry; see ``resolve``."""
    graph = symbol._graph()
    current = resolve(graph)
    return symbol if current is graph else Symbol(current.heads)


# ------------------------------------------------------------------------------------------------ where it computes


def _variable_place(node: Node, ctx: Context, groups: Mapping[str, Context]) -> Context | None:
    """The context of a variable; None if there are groups and the variable is in none, since then the context of its
    array counts."""
    return groups.get(node.tags.get(_GROUP, ""), None if groups else ctx)


def _assign_groups(symbol: Symbol, ctx: Context, groups: dict[str, Context],
                   contexts: Mapping[Node, Context]) -> Symbol:
    """The symbol with every operator in a group. An operator without one joins the device of its first input."""
    graph = symbol._graph()
    if not groups:
        return symbol
    where: dict[Node, Context] = dict(contexts)

    def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
        if node.op is None:
            return None
        place = groups.get(node.tags.get(_GROUP, ""))
        if place is not None or not inputs or where[inputs[0][0]] == ctx:
            new = node.with_inputs(inputs)
        else:
            place = groups[str(where[inputs[0][0]])] = where[inputs[0][0]]
            tags = {**node.tags, _GROUP: str(place)}
            new = Node(node.op, node.name, node.attrs, inputs, node.keywords, tags, node.where)
        where[new] = place or ctx
        return [(new, i) for i in range(node.count)]

    grouped = rewrite(graph, change)
    return symbol if grouped is graph else Symbol(grouped.heads)


# ------------------------------------------------------------------------------------------------- binding


@BIND.provide
@without_gc
def bind(symbol: Symbol, ctx: Context | Sequence[Context] | None, args: Values, args_grad: Gradients | None,
         grad_req: Requests, aux_states: Values | None, group2ctx: Mapping[str, Context] | None,
         check_kernels: bool | str = False, recompute: bool | str | None = None,
         head_grads: OutGrads = None, check_numbers: bool | str | None = None,
         reduce: Group | Reduction | None = None, shard: str | None = None, tf32: bool | None = None) -> Executor:
    """See ``Symbol.bind``."""
    reduction = Reduction.of_arguments(reduce, shard)
    if reduction is not None and reduction.shard == "gradients" and args_grad is not None:
        raise ArgumentError("bind: shard='gradients' stores parts of gradients, which simple_bind allocates; args_grad "
                            "are full gradients")
    ctx, symbol, groups = _context(ctx), resolve_operators(symbol), _groups(group2ctx)
    arguments, auxiliary = symbol._graph().variables()
    names, aux_names = [node.name for node in arguments], [node.name for node in auxiliary]
    arrays = [_array("args", name, value, _variable_place(node, ctx, groups))
              for name, value, node in zip(names, _order_arrays("args", args, arguments, False), arguments)]
    grads: list[NDArray | None] = []
    for name, grad, value in zip(names, _order_arrays("args_grad", args_grad, arguments, True), arrays):
        if grad is not None and not isinstance(grad, NDArray):
            raise ArgumentError(f"args_grad: {name} must be an NDArray, got {type(grad).__name__}")
        if grad is not None and grad.shape != value.shape:
            raise ShapeError(f"args_grad: {name} has shape {show(grad.shape)}, its argument {show(value.shape)}")
        if grad is not None and not grad.context.shares(value.context):
            raise DeviceError(f"args_grad: {name} lives on {grad.context}, its argument on {value.context}; allocate "
                              f"it there, as in nd.zeros({show(value.shape)}, ctx=mx.{value.context})")
        if grad is not None and not grad.writable:
            grad.check_writable(f"args_grad: {name}")
        grads.append(grad)
    reqs = [req if grad is not None else "null" for req, grad in zip(_request(grad_req, names), grads)]
    aux = [_array("aux_states", name, value, _variable_place(node, ctx, groups)) for name, value, node in
           zip(aux_names, _order_arrays("aux_states", aux_states, auxiliary, False), auxiliary)]
    return make(symbol, ctx, arrays, grads, reqs, aux, groups, check_kernels, recompute, head_grads=head_grads,
                numbers=check_numbers, reduction=reduction, tf32=tf32)


@SIMPLE_BIND.provide
@without_gc
def simple_bind(symbol: Symbol, ctx: Context | Sequence[Context] | None, grad_req: Requests,
                type_dict: Mapping[str, DTypeLike] | None, stype_dict: Mapping[str, str] | None,
                group2ctx: Mapping[str, Context] | None, shared_arg_names: Sequence[str] | None,
                shared_exec: Executor | None, shared_buffer: dict[str, NDArray] | None,
                keywords: Mapping[str, object], check_kernels: bool | str = False, recompute: bool | str | None = None,
                head_grads: OutGrads = None, check_numbers: bool | str | None = None,
                reduce: Group | Reduction | None = None, shard: str | None = None, tf32: bool | None = None
                ) -> Executor:
    """See ``Symbol.simple_bind``."""
    ctx, symbol, groups = _context(ctx), resolve_operators(symbol), _groups(group2ctx)
    graph = symbol._graph()
    arguments, auxiliary = graph.variables()
    names = [node.name for node in arguments]
    _check_names("simple_bind", arguments + auxiliary)
    shapes = _shapes(keywords, names + [node.name for node in auxiliary])
    with _note_shapes(shapes):
        _, stated_shapes = known_shapes(graph, symbol, "simple_bind", (), shapes)
        _, stated_dtypes = known_dtypes(graph, symbol, "infer_type", (), dict(type_dict or {}))
        known = inference.infer_specs(graph, stated_shapes, stated_dtypes)
    spec_of = {node: known[node][0] for node in arguments + auxiliary}
    unknown = [node for node, spec in spec_of.items() if not is_known(spec.shape)]
    if unknown:
        raise _unknown_shapes(symbol, unknown, shapes)
    with _note_shapes(shapes):
        specs = None if any(map(depends_on_data, graph.nodes)) else inference.complete(known)
    stored = {node.name: _STYPES.get(stype, stype) for node in arguments
              if (stype := node.tags.get("__storage_type__")) is not None} | dict(stype_dict or {})
    stypes = {node: stored.get(node.name, "default") for node in arguments}
    by_rows = {source for node in graph.nodes for source in inputs_with_few_rows(node, stypes)}
    dense = {source for node in graph.nodes if node.op is not None and node.op.rules.few_rows is not None
            for source, _ in node.inputs if source not in by_rows}
    sharing = _ArraySource(shared_arg_names, shared_exec, shared_buffer, names)
    args: list[NDArray] = []
    grads: list[NDArray | None] = []
    reqs = _request(grad_req, names)
    reduction = Reduction.of_arguments(reduce, shard)
    requested = {node: (spec_of[node], _variable_place(node, ctx, groups) or ctx, req)
              for node, req in zip(arguments, reqs) if req != "null"}
    in_buckets = {} if reduction is None else bucket_arrays(divide_into_buckets(reduction, graph, requested))
    for node, req in zip(arguments, reqs):
        spec, place = spec_of[node], _variable_place(node, ctx, groups) or ctx
        weight, grad = in_buckets.get(node, (None, None))
        stype = stypes[node]
        args.append(sharing.argument("arg_dict", node.name, spec, place, weight).tostype(stype))
        slope = None if req == "null" else sharing.argument("grad_dict", node.name, spec, place, grad)
        grads.append(slope.tostype("row_sparse") if slope is not None and (
            node in by_rows or (stype == "row_sparse" and node not in dense)) else slope)
    aux = [sharing.state(node.name, spec_of[node], _variable_place(node, ctx, groups) or ctx)
           for node in auxiliary]
    if auxiliary:
        sharing.begin(beginnings(graph), dict(zip([node.name for node in auxiliary], aux)))
    return make(symbol, ctx, args, grads, reqs, aux, groups, check_kernels, recompute, specs, head_grads=head_grads,
                numbers=check_numbers, reduction=reduction, tf32=tf32)


def _check_names(what: str, nodes: Sequence[Node], otherwise: str = "") -> None:
    """Refuse two variables of the same name, since arrays are found by name."""
    first: dict[str, Node] = {}
    for node in nodes:
        earlier = first.setdefault(node.name, node)
        if earlier is not node:
            places = [str(variable.where) for variable in (earlier, node) if variable.where is not None]
            lines = f" (made at {' and '.join(places)})" if places else ""
            raise ArgumentError(f"{what}: two variables are named {node.name!r}{lines}: give one of them, or the node "
                                f"that it belongs to, another name, or share one Variable{otherwise}")


def _shapes(keywords: Mapping[str, object], names: Sequence[str]) -> dict[str, Sequence[int]]:
    """The shapes of variables among the keywords. Other keywords only warn, since MXNet ignores them."""
    shapes = {name: value for name, value in keywords.items() if isinstance(value, (tuple, list))}
    others = ", ".join(f"{name}={value!r}" for name, value in keywords.items() if name not in shapes)
    for name, value in keywords.items():
        if name in names and name not in shapes and value is not None:
            raise ArgumentError(f"simple_bind: {name}: expected a shape, a tuple as in {name}=(32, 10), got "
                                f"{value if isinstance(value, int) else type(value).__name__}")
    if others:
        warnings.warn(f"simple_bind: {others} ignored: keywords are shapes of arguments, as tuples",
                      UserWarning, stacklevel=5)
    refuse_misspelt("simple_bind", shapes, names)
    return {name: shapes[name] for name in names if name in shapes}


@contextmanager
def _note_shapes(shapes: Mapping[str, Sequence[int]]) -> Iterator[None]:
    """Add to errors of this block the shapes that ``simple_bind`` was called with."""
    try:
        yield
    except OpError as error:
        given = ", ".join([f"{name}={shape}" for name, shape in shapes.items()])
        note(error, f"simple_bind with {given or 'no shapes'}")
        raise


def _unknown_shapes(symbol: Symbol, unknown: Sequence[Node], shapes: Mapping[str, Sequence[int]]) -> OpError:
    """An error that asks for the shapes of unknown variables. Variables that operators made for their inputs, such as
    weights, are named only if there are no others."""
    operator_variables = {source for node in symbol._graph().nodes if node.op is not None
            for name, (source, _) in zip(node.op.signature.inputs(node.attrs), node.inputs)
            if source.op is None and source.name == f"{node.name}_{name}"}
    names = [node.name for node in unknown if node not in operator_variables] or [node.name for node in unknown]
    known_shapes = f"; given {', '.join(f'{name}={shape}' for name, shape in shapes.items())}" if shapes else ""
    return InferenceError(f"simple_bind: give the shape of {', '.join(names)}, as in simple_bind(ctx, "
                          f"{names[0]}=(…)){known_shapes}")


class _ArraySource:
    """The source of the arrays of ``simple_bind``: another executor, a pool, or new memory.

    Parameters
    ----------
    shared : list of str or None
        Arguments whose arrays and gradients are those of the other executor.
    executor : Executor or None
        The other executor. If arguments or a pool are shared, its auxiliary states of equal shape and dtype are shared,
        too.
    pool : dict of str to NDArray or None
        Arrays of the other arguments, by name, and of their gradients, by ``grad of`` and the name. An array of the
        same size or larger is used; a smaller one is replaced.
    """

    def __init__(self, shared: Sequence[str] | None, executor: Executor | None, pool: dict[str, NDArray] | None,
                 names: Sequence[str]):
        refuse_misspelt("shared_arg_names", shared or (), names)
        if pool is not None and not isinstance(pool, dict):
            raise ArgumentError(f"shared_buffer: expected a dict of NDArrays, got {type(pool).__name__}")
        self._shared, self._executor, self._pool = frozenset(shared or ()), executor, pool
        self._shared_states: set[str] = set()

    def argument(self, kind: str, name: str, spec: Spec, place: Context, bound: NDArray | None = None) -> NDArray:
        """The array of an argument, or of its gradient where ``kind`` is ``grad_dict``; by default ``bound``, or else
        new zeros."""
        if bound is not None:
            spec = Spec(bound.shape, bound._data.dtype)
        if name in self._shared:
            shared = self._of_executor(kind, name, spec)
        elif self._pool is not None:
            shared = self._pooled(name if kind == "arg_dict" else f"grad of {name}", spec, place)
        else:
            shared = None
        if shared is not None:
            return shared
        return _zeros(spec, place) if bound is None else bound

    def state(self, name: str, spec: Spec, place: Context) -> NDArray:
        """The array of an auxiliary state, shared or new."""
        old = self._executor.aux_dict.get(name) if self._executor is not None and (
            self._shared or self._pool is not None) else None
        if old is not None and _is(old, spec):
            self._shared_states.add(name)
            return old
        return _zeros(spec, place)

    def begin(self, texts: Mapping[str, str], states: Mapping[str, NDArray]) -> None:
        """Give the states that are not shared their initial values."""
        for name, text in texts.items():
            if name not in self._shared_states:
                begin(text, name, states[name])

    def _of_executor(self, kind: str, name: str, spec: Spec) -> NDArray | None:
        if self._executor is None:
            return None
        arrays: dict[str, NDArray | None] = getattr(self._executor, kind)
        if name not in arrays:
            raise ArgumentError(f"shared_arg_names: the executor of shared_exec has no argument {name!r}. "
                                f"{did_you_mean(name, arrays)}")
        old = arrays[name]
        if old is not None and not _is(old, spec):
            raise ShapeError(f"shared_arg_names: {name} is {show(old.shape)} {old._data.dtype} in shared_exec, here "
                             f"{show(spec.shape)} {spec.dtype}")
        return old

    def _pooled(self, name: str, spec: Spec, place: Context) -> NDArray:
        pool, count = self._pool, size(spec.shape or ())
        assert pool is not None
        old = pool.get(name)
        if old is None or old._data.dtype != spec.dtype or old.size < count or old.context != place:
            old = pool[name] = _zeros(spec, place)
        return old if old.shape == spec.shape else front(old, spec.shape or ())


def _is(old: NDArray, spec: Spec) -> bool:
    return old.shape == spec.shape and old._data.dtype == spec.dtype


def _zeros(spec: Spec, place: Context) -> NDArray:
    assert is_known(spec.shape)
    return NDArray(zeros(place, spec.shape, spec.dtype), place)


def _result_zeros(place: Context, shape: Shape, dtype: DTypeLike, node: Node) -> Array:
    """Zeros for the result of a node. If memory is short, the error names the node."""
    try:
        return zeros(place, shape, dtype)
    except OpError as error:
        raise type(error)(f"{node.describe()}: {error}") from None


def make(symbol: Symbol, ctx: Context, args: list[NDArray], grads: list[NDArray | None], reqs: list[str],
         aux: list[NDArray], groups: dict[str, Context], check: bool | str = False,
         recompute: bool | str | None = False, specs: Mapping[Node, list[Spec]] | None = None,
         outputs: Sequence[NDArray] = (), head_grads: OutGrads = None, numbers: bool | str | None = None,
         reduction: Reduction | None = None, tf32: bool | None = None, unnoted: Set[Node] = frozenset()) -> Executor:
    """Make an executor from arrays in the order of the graph's variables.

    ``specs`` holds shapes and dtypes of nodes that are already inferred. ``outputs`` are those of an executor that is
    reshaped; they are used again where they are large enough. ``unnoted`` is as in ``Bound``.
    """
    if check not in (False, True, "report"):
        raise ArgumentError(f"check_kernels={check!r}: expected True, False or 'report'")
    arguments, auxiliary = symbol._graph().variables()
    variables, values = arguments + auxiliary, args + aux
    symbol = _assign_groups(symbol, ctx, groups, {node: value.context for node, value in zip(variables, values)})
    graph = symbol._graph()
    recompute, numbers, tf32 = recompute_setting(recompute), finite.check_setting(numbers), rounding.tf32(tf32)
    again = functools.partial(make, ctx=ctx, groups=groups, check=check, recompute=recompute, numbers=numbers,
                              reduction=reduction, tf32=tf32, unnoted=unnoted)
    if any(each is not None and each._sparse for each in (*values, *grads)):
        one_by_one = reduction is None and not groups
        return SparseExecutor(symbol, ctx, args, grads, reqs, aux, head_grads, again, specs or {}, outputs, one_by_one,
                              numbers)
    shapes = {node: value.shape for node, value in zip(variables, values)}
    dtypes = {node: value._data.dtype for node, value in zip(variables, values)}
    specs = specs or {}
    if any(depends_on_data(node) and node not in specs for node in graph.nodes):
        if reduction is not None:
            raise ArgumentError(UNREDUCED)
        return StagedExecutor(symbol, ctx, args, grads, reqs, aux, head_grads, again, specs, bool(outputs))
    specs = inference.infer(graph, shapes, dtypes, dict(specs))
    for node, bound_dtype in dtypes.items():
        if specs[node][0].dtype != bound_dtype:
            raise DTypeError(f"{node.describe()}: expected dtype {specs[node][0].dtype}, got {bound_dtype}")
    requests: dict[Node, tuple[Array, str]] = {}
    for node, grad, req in zip(arguments, grads, reqs):
        if grad is not None and req != "null":
            requests[node] = grad._data, req
    bound = Bound(graph, specs, ctx, groups, {node: value._data for node, value in zip(variables, values)},
                  {node: value.context for node, value in zip(variables, values)}, requests, recompute=recompute,
                  tf32=tf32, unnoted=unnoted)
    bound.reduce(reduction)
    gradients = check_head_gradients(head_grads, symbol.list_outputs(), [specs[node][i] for node, i in graph.heads],
                                     ctx, reshaped=bool(outputs))
    for (node, i), place, old, gradient in zip(graph.heads, bound.places, [*outputs, *[None] * len(graph.heads)],
                                               gradients):
        shape, dtype = specs[node][i]
        assert is_known(shape)
        if bound.contexts.get(node) == place:  # the variable is an output, whose array is the caller's own memory
            bound.outputs.append(bound.arrays[node])
        elif old is not None and (old._data.dtype, old.context) == (dtype, place) and old.size >= size(shape):
            bound.outputs.append(front(old, shape)._data)
        else:
            bound.outputs.append(_result_zeros(place, shape, dtype, node))
        if not requests or (node.op is not None and node.op.loss(node.attrs)):
            bound.head_grads.append(None)
        else:
            bound.head_grads.append(_result_zeros(ctx, shape, dtype, node) if gradient is None else gradient._data)
    executor = Executor(symbol, bound, args, grads, reqs, aux, gradients, again, check, numbers)
    if any(node.op is not None and node.op.traits.traced and (node.op.where or node.op.signature.per_instance)
           for node in graph.nodes):
        executor.plan(bool(requests))  # raises now if the body of a user's operator cannot be traced
    return executor
